//! The slow path for fork and exec: the idlest CPU of the machine.

use fairlab_event::Cpu;

use super::decide;
use crate::core::Scheduler;
use crate::decision::{CpuDecision, SelectReason};
use crate::task::TaskId;

impl Scheduler {
    /// The idlest allowed CPU: of the cache domain with most idle CPUs the first idle one on a wholly idle core, else the
    /// first idle one, else the least loaded one. The asking CPU's own domain wins ties. Pure.
    ///
    /// Kernel: stands for `find_idlest_cpu()`, kernel/sched/fair.c.
    /// Departs: a placeholder for the descent through scheduling domains with group statistics.
    pub(super) fn find_idlest_cpu(&self, task: TaskId, here: Cpu) -> CpuDecision {
        let allowed = self.tasks[task.index()].allowed.and(self.topology.online());
        let mut scanned = 0;
        let mut idle_in_llc = vec![0; self.has_idle_cores.len()];
        for cpu in self.topology.cpus().filter(|&cpu| self.idle_cpu(cpu)) {
            idle_in_llc[self.topology.place(cpu).llc as usize] += 1;
        }
        let mut best: Option<(IdleRank, Cpu)> = None;
        for cpu in allowed.iter_wrap(here) {
            scanned += 1;
            let rank = self.idle_rank(cpu, &idle_in_llc);
            if best.is_none_or(|(so_far, _)| rank > so_far) {
                best = Some((rank, cpu));
            }
        }
        let (_, cpu) = best.expect("a task is allowed somewhere");
        decide(cpu, SelectReason::IdlestInGroup, scanned)
    }

    fn idle_rank(&self, cpu: Cpu, idle_in_llc: &[u32]) -> IdleRank {
        let idle = |cpu: Cpu| self.idle_cpu(cpu);
        IdleRank {
            idle_in_llc: idle_in_llc[self.topology.place(cpu).llc as usize],
            idle: idle(cpu),
            core_idle: self.topology.smt_mask(cpu).iter().all(idle),
            lightness: std::cmp::Reverse(self.cpu_load(cpu)),
        }
    }
}

/// Compared field by field, the greater is the idler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct IdleRank {
    idle_in_llc: u32,
    idle: bool,
    core_idle: bool,
    lightness: std::cmp::Reverse<u64>,
}
