//! Notes of what becomes of the masks of idle CPUs (the RFC `idle-cpumask-v7`), for those who explain it.
//!
//! Must not know: who reads them.

use fairlab_event::Cpu;

use crate::decision::CpuDecision;
use crate::scheduler::Scheduler;
use crate::select::mask_note::{IdleMaskEvent, IdleMaskNote};
use crate::select::rules::IdleMask;

impl Scheduler {
    /// Whether updates and scans of the masks are noted, until the driver takes the notes.
    pub fn set_idle_mask_notes(&mut self, enabled: bool) {
        self.idle_mask_notes = enabled.then(Vec::new);
    }

    /// Hands over the notes taken since the last call, in order.
    pub fn take_idle_mask_notes(&mut self) -> Vec<IdleMaskNote> {
        self.idle_mask_notes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// A wakeup's search has scanned the mask of the cache that it chose from.
    pub(super) fn note_scan(&mut self, decision: CpuDecision) {
        if decision.search.domain && self.shared.generation.select.idle_mask != IdleMask::None {
            self.note_idle_mask(decision.cpu, IdleMaskEvent::Scanned);
        }
    }

    /// Something happened to the mask of the cache of `of`.
    pub(super) fn note_idle_mask(&mut self, of: Cpu, event: IdleMaskEvent) {
        if self.idle_mask_notes.is_none() {
            return;
        }
        let Some(shared) = self.domains.of_cpu(of).sd_llc_shared else { return };
        let task = self.task(self.curr(self.shared.trace.here));
        let note = IdleMaskNote {
            time: self.shared.trace.now,
            cpu: self.shared.trace.here,
            comm: task.comm(),
            pid: task.pid(),
            mode: self.shared.trace.mode,
            event,
            mask: self.idle_masks[shared.0 as usize],
        };
        self.idle_mask_notes.get_or_insert_default().push(note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::{Bed, MS};

    /// Set by going idle, cleared by the tick of a busy CPU and by nothing else; an update that changes nothing is none.
    #[test]
    fn masks_are_set_by_idle_cpus_and_cleared_by_ticks() {
        let mut bed = Bed::new("v5.10+idle-cpumask-v7", 4, 1);
        bed.scheduler.set_idle_mask_notes(true);
        let sleeper = bed.spawn(0, 1);
        bed.pass(MS);
        bed.sleep(1);
        let first = bed.scheduler.take_idle_mask_notes();
        bed.wake(sleeper, 1);
        bed.schedule(1);
        bed.pass(MS);
        let woken = bed.scheduler.take_idle_mask_notes();
        let updates = |notes: &[IdleMaskNote]| {
            let update = |note: &IdleMaskNote| match note.event {
                IdleMaskEvent::Updated { idle } => Some((idle, note.mask.contains(Cpu(1)))),
                IdleMaskEvent::Scanned => None,
            };
            notes.iter().filter_map(update).collect::<Vec<_>>()
        };
        assert!(updates(&first).iter().all(|(idle, contains)| idle == contains), "{first:?}");
        assert!(updates(&woken).iter().all(|(idle, _)| !idle), "waking does not set: {woken:?}");
    }
}
