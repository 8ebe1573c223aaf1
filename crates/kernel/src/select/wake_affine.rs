//! Whether a wakeup pulls the task towards the waker.

use fairlab_event::Cpu;

use crate::core::Scheduler;
use crate::generation::Feature;
use crate::generation::behaviour::WakeLoad;
use crate::pelt::RunnableKind;
use crate::task::TaskId;

/// `imbalance_pct` of the domain that spans both CPUs.
const IMBALANCE_PCT: i64 = 117;

impl Scheduler {
    /// Whether waker and wakee each wake so many others that pulling them together would crowd one cache.
    ///
    /// Kernel: `wake_wide()`, kernel/sched/fair.c.
    pub(super) fn wake_wide(&self, waker: TaskId, wakee: TaskId, here: Cpu) -> bool {
        let (one, other) = (self.tasks[waker.index()].wakee_flips, self.tasks[wakee.index()].wakee_flips);
        let (master, slave) = (u64::from(one.max(other)), u64::from(one.min(other)));
        let factor = self.topology.llc_size(here) as u64;
        slave >= factor && master >= slave * factor
    }

    /// The waking CPU or the one the task last ran on, whichever suits it better.
    ///
    /// Kernel: `wake_affine()`, kernel/sched/fair.c.
    pub(super) fn wake_affine(&self, task: TaskId, here: Cpu, prev: Cpu, sync: bool) -> Cpu {
        let by_idle = self.has(Feature::WaIdle).then(|| self.wake_affine_idle(here, prev, sync)).flatten();
        let by_weight =
            || self.has(Feature::WaWeight).then(|| self.wake_affine_weight(task, here, prev, sync)).flatten();
        by_idle.or_else(by_weight).unwrap_or(prev)
    }

    /// Kernel: `wake_affine_idle()`, kernel/sched/fair.c; the last test from v5.11 (d8fcb81f1acf).
    fn wake_affine_idle(&self, here: Cpu, prev: Cpu, sync: bool) -> Option<Cpu> {
        if self.idle_cpu(here) && self.topology.share_cache(here, prev) {
            return Some(if self.idle_cpu(prev) { prev } else { here });
        }
        if sync && self.nr_running(here) == 1 {
            return Some(here);
        }
        self.idle_cpu(prev).then_some(prev)
    }

    /// Kernel: `wake_affine_weight()`, kernel/sched/fair.c. Departs: all CPUs have the same capacity.
    fn wake_affine_weight(&self, task: TaskId, here: Cpu, prev: Cpu, sync: bool) -> Option<Cpu> {
        let mut this_load = self.cpu_load(here) as i64;
        if sync {
            let waker = self.task_h_load(self.curr(here)) as i64;
            if waker > this_load {
                return Some(here);
            }
            this_load -= waker;
        }
        let task_load = self.task_h_load(task) as i64;
        let bias = if self.has(Feature::WaBias) { 100 + (IMBALANCE_PCT - 100) / 2 } else { 100 };
        let this_effective = (this_load + task_load) * 100;
        let prev_effective = (self.cpu_load(prev) as i64 - task_load) * bias + i64::from(sync);
        (this_effective < prev_effective).then_some(here)
    }

    /// A CPU's load of fair tasks.
    ///
    /// Kernel: `cpu_load()`; to v5.4 `weighted_cpuload()`, which counts only what is runnable.
    pub(super) fn cpu_load(&self, cpu: Cpu) -> u64 {
        let avg = &self.cfs(self.rqs[cpu.index()].cfs).tracked.avg;
        // Where runnability is no load, there is only one load to go by.
        let has_both = self.generation.pelt.runnable == RunnableKind::LoadWeighted;
        match self.generation.behaviours.wake_load {
            WakeLoad::Runnable if has_both => avg.runnable_avg,
            WakeLoad::Runnable | WakeLoad::WithBlocked => avg.load_avg,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testbed::Bed;
    use fairlab_event::Cpu;

    /// Two caches of two CPUs would need a slow path; one cache of four shows the rules for idle CPUs.
    #[test]
    fn a_waker_that_is_about_to_sleep_pulls_the_task_if_nothing_else_waits_here() {
        let mut bed = Bed::new("v6.5", 4, 1);
        let sleeper = bed.spawn(0, 3);
        bed.sleep(3);
        for cpu in 0..4 {
            bed.spawn(0, cpu);
        }
        assert_eq!(bed.select(sleeper, 1, true).cpu, Cpu(1));
        assert_eq!(bed.select(sleeper, 1, false).cpu, Cpu(3), "loads are equal: it stays");
        bed.spawn(0, 3);
        bed.spawn(0, 3);
        assert_eq!(bed.select(sleeper, 1, false).cpu, Cpu(1), "the previous CPU is more loaded");
        assert_eq!(Bed::new("v6.5", 4, 1).scheduler.cpu_load(Cpu(0)), 0);
    }

    #[test]
    fn the_rules_can_be_switched_off() {
        let mut bed = Bed::new("v6.5+NO_WA_IDLE+NO_WA_WEIGHT", 4, 1);
        let sleeper = bed.spawn(0, 3);
        bed.sleep(3);
        for cpu in [0, 1, 2, 3, 3, 3] {
            bed.spawn(0, cpu);
        }
        assert_eq!(bed.select(sleeper, 1, true).cpu, Cpu(3));
    }

    #[test]
    fn a_waker_of_many_does_not_pull() {
        let mut bed = Bed::new("v6.5", 2, 1);
        let sleeper = bed.spawn(0, 1);
        bed.sleep(1);
        let waker = bed.spawn(0, 0);
        bed.spawn(0, 1);
        assert_eq!(bed.select(sleeper, 0, true).cpu, Cpu(0));
        bed.scheduler.tasks[waker.index()].wakee_flips = 4;
        bed.scheduler.tasks[sleeper.index()].wakee_flips = 2;
        assert_eq!(bed.select(sleeper, 0, true).cpu, Cpu(1));
    }
}
