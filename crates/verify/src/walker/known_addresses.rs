//! Probes that print an entity's address and not whose it is: a probe of the task that is queued, or the switch to it, tells.
//!
//! Must not know: what the probes are compared with.

use std::collections::BTreeMap;

use fairlab_event::{Cpu, Pid};

use super::super::probe::{At, Key, ProbeHit};
use super::super::record::{EventRecord, RecordKind};
use super::Walker;

/// What is known of addresses, as far as the trace has been read.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownAddresses {
    tasks: BTreeMap<u64, Pid>,
    /// The task that each CPU has last been shown to queue, and its vruntime then.
    queued: BTreeMap<Cpu, (Pid, u64)>,
    /// The entity that is about to run on each CPU.
    next: BTreeMap<Cpu, u64>,
}

impl Walker {
    /// Notes in a probe that has just been read which task it is about.
    pub(super) fn name_task(&mut self, record: &mut EventRecord) {
        let cpu = record.cpu;
        match &mut record.what {
            RecordKind::Probe(probe) if probe.at == At::EnqueueTask => {
                let shown = probe.task().zip(probe.unsigned(Key::Vruntime));
                self.unnamed.queued.extend(shown.map(|shown| (cpu, shown)));
            }
            RecordKind::Probe(probe) if is_unnamed(probe) => {
                let task = self.unnamed.task(cpu, probe);
                self.points_shown |= task.is_some();
                task.into_iter().for_each(|task| probe.name_task(task));
            }
            RecordKind::Switch(switch) => {
                if let Some(entity) = self.unnamed.next.remove(&cpu) {
                    self.unnamed.tasks.insert(entity, switch.next_pid);
                }
            }
            _ => {}
        }
    }
}

impl KnownAddresses {
    fn task(&mut self, cpu: Cpu, probe: &ProbeHit) -> Option<Pid> {
        let entity = probe.unsigned(Key::Entity)?;
        if let (At::Place, Some((pid, vruntime))) = (probe.at, self.queued.get(&cpu))
            && probe.unsigned(Key::Vruntime) == Some(*vruntime)
        {
            self.tasks.insert(entity, *pid);
        }
        if probe.at == At::SetNextEntity {
            self.next.insert(cpu, entity);
        }
        self.tasks.get(&entity).copied()
    }
}

fn is_unnamed(probe: &ProbeHit) -> bool {
    let named = probe.get(Key::Pid).is_some() || probe.get(Key::MyQueue).is_some();
    !named && matches!(probe.at, At::Place | At::SetNextEntity)
}

#[cfg(test)]
mod tests {
    use fairlab_event::TextFields;

    use super::*;

    #[test]
    fn an_address_is_the_tasks_that_was_queued_with_that_vruntime() {
        let probe =
            |name: &str, fields: &str| ProbeHit::read(name, TextFields::new(fields)).expect("a probe");
        let mut unnamed = KnownAddresses::default();
        unnamed.queued.insert(Cpu(1), (Pid(7), 50));
        let other = probe("place", "(place_entity+0x0/0x1) se=0x20 vr=49 dl=1 vlag=0 flags=0x9");
        let own = probe("place", "(place_entity+0x0/0x1) se=0x10 vr=50 dl=1 vlag=0 flags=0x9");
        assert!(is_unnamed(&own) && own.get(Key::Flags) == Some(9));
        assert_eq!((unnamed.task(Cpu(1), &other), unnamed.task(Cpu(1), &own)), (None, Some(Pid(7))));
        let picked = probe("setnext", "(set_next_entity+0x0/0x1) se=0x10 vr=60 dl=1 vlag=0");
        assert_eq!(unnamed.task(Cpu(0), &picked), Some(Pid(7)));
        assert_eq!(unnamed.next[&Cpu(0)], 0x10);
    }
}
