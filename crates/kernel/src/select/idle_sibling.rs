//! `select_idle_sibling()`: an idle CPU that shares the cache with the target.

use fairlab_event::Cpu;

use super::decide;
use crate::core::Scheduler;
use crate::cpumask::CpuMask;
use crate::decision::{CpuDecision, SelectReason};
use crate::task::TaskId;
use crate::tracepoint::Mode;

impl Scheduler {
    /// An idle CPU for `task` near `target`, or else `target`. Pure.
    ///
    /// Kernel: `select_idle_sibling()`, kernel/sched/fair.c, as v6.0 to v6.6 have it.
    /// Departs: the scan has no limit (`SIS_UTIL` needs utilisation averages); asymmetric capacities are not modelled.
    pub(super) fn select_idle_sibling(&self, task: TaskId, here: Cpu, prev: Cpu, target: Cpu) -> CpuDecision {
        if self.looks_idle(target) {
            return decide(target, SelectReason::TargetIdle, 1);
        }
        let near = |cpu: Cpu| self.topology.share_cache(cpu, target);
        if prev != target && near(prev) && self.looks_idle(prev) {
            return decide(prev, SelectReason::PrevIdle, 2);
        }
        if self.woken_by_kthread_of(prev, here) {
            return decide(prev, SelectReason::PerCpuKthread, 2);
        }
        let woken = &self.tasks[task.index()];
        let recent = woken.recent_used_cpu;
        let is_candidate =
            recent != prev && recent != target && near(recent) && woken.allowed.contains(recent);
        if is_candidate && self.looks_idle(recent) {
            return decide(recent, SelectReason::RecentUsedIdle, 3);
        }
        self.search_llc(task, prev, target)
    }

    /// Searches the target's cache domain: a wholly idle core if there may be one, else the previous core's threads,
    /// else every CPU.
    fn search_llc(&self, task: TaskId, prev: Cpu, target: Cpu) -> CpuDecision {
        let mut scanned = 0;
        let llc = self.topology.place(target).llc;
        let expect_core = self.topology.has_smt() && self.has_idle_cores[llc as usize];
        let try_siblings = self.topology.has_smt() && !expect_core && self.topology.share_cache(prev, target);
        if let Some(cpu) = try_siblings.then(|| self.select_idle_smt(task, prev, &mut scanned)).flatten() {
            return decide(cpu, SelectReason::IdleSibling, scanned);
        }
        let candidates = self.topology.llc_mask(target).and(&self.tasks[task.index()].allowed);
        let found = match expect_core {
            true => self.select_idle_core(candidates, target, &mut scanned),
            false => self.select_idle_cpu(candidates, target, &mut scanned),
        };
        let mut decision = found.unwrap_or_else(|| decide(target, SelectReason::NoIdle, 0));
        decision.scanned = scanned;
        if expect_core && decision.reason != SelectReason::IdleCore {
            decision.no_idle_core_in = Some(llc);
        }
        decision
    }

    /// Kernel: `select_idle_cpu()` without a core to look for: the first idle CPU after the target, and around.
    fn select_idle_cpu(&self, candidates: CpuMask, target: Cpu, scanned: &mut u32) -> Option<CpuDecision> {
        candidates.iter_wrap(Cpu(target.0 + 1)).find_map(|cpu| {
            *scanned += 1;
            self.looks_idle(cpu).then(|| decide(cpu, SelectReason::IdleInLlc, 0))
        })
    }

    /// Kernel: `select_idle_cpu()` with `select_idle_core()`: a wholly idle core wins at once; the first idle thread
    /// seen on the way is kept for when there is none.
    fn select_idle_core(
        &self,
        mut candidates: CpuMask,
        target: Cpu,
        scanned: &mut u32,
    ) -> Option<CpuDecision> {
        let mut fallback = None;
        let order = candidates.iter_wrap(Cpu(target.0 + 1)).collect::<Vec<_>>();
        for core in order {
            if !candidates.contains(core) {
                continue;
            }
            if self.core_is_idle(core, &candidates, &mut fallback, scanned) {
                return Some(decide(core, SelectReason::IdleCore, 0));
            }
            candidates = candidates.and_not(self.topology.smt_mask(core));
        }
        fallback.map(|cpu| decide(cpu, SelectReason::IdleInLlc, 0))
    }

    /// Whether every thread of a core is idle; looks no further than it must.
    fn core_is_idle(
        &self,
        core: Cpu,
        allowed: &CpuMask,
        fallback: &mut Option<Cpu>,
        scanned: &mut u32,
    ) -> bool {
        let mut idle = true;
        for cpu in self.topology.smt_mask(core).iter() {
            *scanned += 1;
            if self.idle_cpu(cpu) {
                if fallback.is_none() && allowed.contains(cpu) {
                    *fallback = Some(cpu);
                }
                continue;
            }
            idle = false;
            if fallback.is_some() {
                break;
            }
            if self.sched_idle_cpu(cpu) && allowed.contains(cpu) {
                *fallback = Some(cpu);
                break;
            }
        }
        idle
    }

    /// Kernel: `select_idle_smt()`: another thread of the core that the task last ran on.
    fn select_idle_smt(&self, task: TaskId, prev: Cpu, scanned: &mut u32) -> Option<Cpu> {
        let threads = self.topology.smt_mask(prev).and(&self.tasks[task.index()].allowed);
        threads.iter().filter(|&cpu| cpu != prev).find(|&cpu| {
            *scanned += 1;
            self.looks_idle(cpu)
        })
    }

    /// Whether `prev`'s own kthread wakes the task from task context: it worked for it and will sleep (52262ee567ad).
    fn woken_by_kthread_of(&self, prev: Cpu, here: Cpu) -> bool {
        let waker = &self.tasks[self.curr(here).index()];
        waker.per_cpu_kthread && self.trace.mode == Mode::Task && prev == here && self.nr_running(here) <= 1
    }

    /// Idle, or busy with `SCHED_IDLE` tasks only.
    fn looks_idle(&self, cpu: Cpu) -> bool {
        self.idle_cpu(cpu) || self.sched_idle_cpu(cpu)
    }

    /// A CPU goes idle: if its siblings are idle too, its cache has a wholly idle core again.
    ///
    /// Kernel: `__update_idle_core()`, kernel/sched/fair.c.
    pub(crate) fn update_idle_core(&mut self, cpu: Cpu) {
        let llc = self.topology.place(cpu).llc as usize;
        if self.has_idle_cores[llc] || !self.topology.has_smt() {
            return;
        }
        let siblings_idle =
            self.topology.smt_mask(cpu).iter().all(|sibling| sibling == cpu || self.idle_cpu(sibling));
        self.has_idle_cores[llc] = siblings_idle;
    }
}

#[cfg(test)]
mod tests {
    use crate::decision::SelectReason;
    use crate::testbed::{Bed, MS};
    use fairlab_event::Cpu;

    fn selected(bed: &mut Bed, task: crate::task::TaskId, cpu: u32) -> (u32, SelectReason) {
        let decision = bed.select(task, cpu, false);
        (decision.cpu.0, decision.reason)
    }

    #[test]
    fn an_idle_previous_cpu_wins() {
        let mut bed = Bed::new("v6.5", 4, 2);
        let sleeper = bed.spawn(0, 2);
        bed.sleep(2);
        bed.spawn(0, 0);
        assert_eq!(selected(&mut bed, sleeper, 0), (2, SelectReason::TargetIdle));
    }

    #[test]
    fn a_wholly_idle_core_is_preferred_to_an_idle_thread() {
        let mut bed = Bed::new("v6.5", 4, 2);
        let sleeper = bed.spawn(0, 2);
        bed.sleep(2);
        for cpu in [0, 2, 4] {
            bed.spawn(0, cpu);
        }
        // CPUs 1, 3, 5 are idle threads of busy cores; 6 and 7 are an idle core.
        assert_eq!(selected(&mut bed, sleeper, 0), (6, SelectReason::IdleCore));
    }

    #[test]
    fn without_an_idle_core_the_sibling_of_the_previous_cpu_is_taken_and_the_hint_is_dropped() {
        let mut bed = Bed::new("v6.5", 4, 2);
        let sleeper = bed.spawn(0, 2);
        bed.sleep(2);
        for cpu in [0, 2, 4, 6] {
            bed.spawn(0, cpu);
        }
        let first = bed.select(sleeper, 0, false);
        assert_eq!(
            (first.cpu, first.reason, first.no_idle_core_in),
            (Cpu(3), SelectReason::IdleInLlc, Some(0))
        );
        bed.scheduler.has_idle_cores[0] = false;
        assert_eq!(selected(&mut bed, sleeper, 0), (3, SelectReason::IdleSibling));
    }

    #[test]
    fn a_full_machine_gives_the_target() {
        let mut bed = Bed::new("v6.6", 2, 1);
        let sleeper = bed.spawn(0, 1);
        bed.sleep(1);
        bed.spawn(0, 0);
        bed.spawn(0, 1);
        assert_eq!(selected(&mut bed, sleeper, 0), (1, SelectReason::NoIdle));
    }

    #[test]
    fn a_cpu_that_goes_idle_beside_an_idle_sibling_raises_the_hint() {
        let mut bed = Bed::new("v6.5", 2, 2);
        bed.scheduler.has_idle_cores[0] = false;
        bed.spawn(0, 0);
        bed.spawn(0, 1);
        bed.pass(MS);
        bed.sleep(0);
        assert!(!bed.scheduler.has_idle_cores[0], "CPU 1 is busy");
        bed.sleep(1);
        assert!(bed.scheduler.has_idle_cores[0]);
    }

    #[test]
    fn cpus_with_idle_policy_tasks_only_look_idle() {
        let mut bed = Bed::new("v6.5", 2, 1);
        let sleeper = bed.spawn(0, 1);
        bed.sleep(1);
        bed.spawn(0, 0);
        bed.spawn_with(0, 1, crate::task::Policy::Idle, crate::cpumask::CpuMask::ALL);
        assert_eq!(selected(&mut bed, sleeper, 0), (1, SelectReason::TargetIdle));
    }
}
