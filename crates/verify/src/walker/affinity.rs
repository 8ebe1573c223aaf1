//! Where tasks may run: the masks that a snapshot lists, and those that probes show being given.
//!
//! Must not know: what is chosen.

use fairlab_event::{Cpu, Pid};
use fairlab_kernel::{CpuMask, TaskId};

use super::super::probe::{At, Key, ProbeHit};
use super::super::record::{EventRecord, RecordKind};
use super::{Walker, bound_to};

impl Walker {
    /// `sched_setaffinity()` begins; no pid means the caller.
    pub(super) fn on_set_affinity(&mut self, record: &EventRecord, probe: &ProbeHit) {
        // What becomes of the call, another probe tells.
        if !self.seen.mask_probe {
            let pid = probe.task().filter(|pid| pid.0 != 0).unwrap_or(record.context);
            self.give_mask(pid, probe);
        }
    }

    /// A task is about to get another mask, by a call or by its group. Where it keeps its own and only may not move for a moment,
    /// it stays where it is.
    pub(super) fn on_set_allowed(&mut self, probe: &ProbeHit) {
        /// `SCA_MIGRATE_DISABLE` and `SCA_MIGRATE_ENABLE`.
        const FOR_A_MOMENT: i64 = 6;
        self.seen.mask_probe = true;
        let stays = probe.get(Key::Flags).is_some_and(|flags| flags & FOR_A_MOMENT != 0);
        if let Some(pid) = probe.task().filter(|_| !stays) {
            self.give_mask(pid, probe);
        }
    }

    /// The first 64 CPUs are shown.
    fn give_mask(&mut self, pid: Pid, probe: &ProbeHit) {
        let given = probe.unsigned(Key::Mask).zip(self.tasks.get(&pid));
        let Some((mask, task)) = given.map(|(mask, info)| (mask, info.id)) else { return };
        let allowed = (0..64).filter(|bit| mask >> bit & 1 == 1).map(Cpu).collect::<CpuMask>();
        self.sched.force_allowed(task, allowed);
        let bound = bound_to(self.sched.task(task).comm());
        if bound.is_some_and(|cpu| allowed == CpuMask::single(cpu)) {
            self.sched.force_per_cpu_kthread(task, true);
        }
    }

    /// A new task may run where its parent may.
    pub(super) fn inherit_affinity(&mut self, parent: TaskId, child: TaskId) {
        let allowed = *self.sched.task(parent).allowed();
        self.sched.force_allowed(child, allowed);
        self.sched.force_per_cpu_kthread(child, false);
    }

    /// A new task is given a mask of its own before it is queued: its CPU is selected by that.
    pub(super) fn take_mask_from_start(&mut self, child: Pid) {
        let mut coming =
            self.window.of_task(child).take_while(|record| !matches!(record.what, RecordKind::WakeupNew(_)));
        let given = coming.find_map(|record| match &record.what {
            RecordKind::Probe(probe) if probe.at == At::SetAffinity => Some(probe.clone()),
            _ => None,
        });
        drop(coming);
        if let Some(given) = given {
            self.give_mask(child, &given);
        }
    }
}
