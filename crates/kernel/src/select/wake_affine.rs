//! Whether a wakeup pulls the task towards the waker.

use fairlab_event::Cpu;

use super::Wakee;
use super::rules::{AffineIdle, SyncAlone, WakeLoad};
use crate::core::Scheduler;
use crate::generation::Feature;
use crate::pelt::RunnableKind;
use crate::task::TaskId;

impl Scheduler {
    /// Whether waker and wakee each wake so many others that pulling them together would crowd one cache.
    ///
    /// Kernel: `wake_wide()`, kernel/sched/fair.c.
    pub(super) fn wake_wide(&self, waker: TaskId, wakee: TaskId, here: Cpu) -> bool {
        let (one, other) = (self.tasks[waker.index()].wakee_flips, self.tasks[wakee.index()].wakee_flips);
        let (master, slave) = (u64::from(one.max(other)), u64::from(one.min(other)));
        let factor = u64::from(self.domains.of_cpu(here).sd_llc_size);
        slave >= factor && master >= slave * factor
    }

    /// The waking CPU or the one the task last ran on, whichever suits it better. `imbalance_pct` is that of the lowest
    /// domain which spans both.
    ///
    /// Kernel: `wake_affine()`, kernel/sched/fair.c.
    pub(super) fn wake_affine(&self, wakee: Wakee, sync: bool, imbalance_pct: i64) -> Cpu {
        let by_idle = self.has(Feature::WaIdle).then(|| self.wake_affine_idle(wakee, sync)).flatten();
        let by_weight = || {
            let weighs = self.has(Feature::WaWeight);
            weighs.then(|| self.wake_affine_weight(wakee, sync, imbalance_pct)).flatten()
        };
        by_idle.or_else(by_weight).unwrap_or(wakee.prev)
    }

    /// Kernel: `wake_affine_idle()`, kernel/sched/fair.c. Variants: an idle previous CPU elsewhere from v5.11
    /// (d8fcb81f1acf); delayed sleepers left out from v6.16 (aa3ee4f0b754).
    fn wake_affine_idle(&self, wakee: Wakee, sync: bool) -> Option<Cpu> {
        let Wakee { here, prev, .. } = wakee;
        if self.idle_cpu(here) && self.domains.cpus_share_cache(here, prev) {
            return Some(if self.idle_cpu(prev) { prev } else { here });
        }
        let sleepers = match self.generation.select.sync_alone {
            SyncAlone::Queued => 0,
            SyncAlone::Runnable => self.cfs(self.rqs[here.index()].cfs).h_nr_delayed,
        };
        if sync && self.queued_on(here).saturating_sub(sleepers) == 1 {
            return Some(here);
        }
        let knows_prev = self.generation.select.affine_idle == AffineIdle::ThisOrPrev;
        (knows_prev && self.idle_cpu(prev)).then_some(prev)
    }

    /// Kernel: `wake_affine_weight()`, kernel/sched/fair.c. Departs: capacities do not shrink by interrupts and tasks of
    /// other classes.
    fn wake_affine_weight(&self, wakee: Wakee, sync: bool, imbalance_pct: i64) -> Option<Cpu> {
        let Wakee { task, here, prev } = wakee;
        let mut this_load = self.cpu_load(here) as i64;
        if sync {
            let waker = self.load_in_selection(self.curr(here)) as i64;
            if waker > this_load {
                return Some(here);
            }
            this_load -= waker;
        }
        let task_load = self.load_in_selection(task) as i64;
        let biased = self.has(Feature::WaBias);
        let (this_bias, prev_bias) = if biased { (100, 100 + (imbalance_pct - 100) / 2) } else { (1, 1) };
        let capacity = |cpu: Cpu| self.capacity_of(cpu) as i64;
        let this_effective = (this_load + task_load).wrapping_mul(this_bias).wrapping_mul(capacity(prev));
        let prev_effective = (self.cpu_load(prev) as i64 - task_load)
            .wrapping_mul(prev_bias)
            .wrapping_mul(capacity(here))
            .wrapping_add(i64::from(sync));
        (this_effective < prev_effective).then_some(here)
    }

    fn load_in_selection(&self, task: TaskId) -> u64 {
        let given = self.given_loads.iter().find(|(known, _)| *known == task);
        given.map_or_else(|| self.task_h_load(task), |&(_, load)| load)
    }

    /// A CPU's load of fair tasks.
    ///
    /// Kernel: `cpu_load()`; to v5.4 `weighted_cpuload()`, which counts only what is runnable.
    pub(super) fn cpu_load(&self, cpu: Cpu) -> u64 {
        let avg = &self.cfs(self.rqs[cpu.index()].cfs).tracked.avg;
        // Where runnability is no load, there is only one load to go by.
        let has_both = self.generation.pelt.runnable == RunnableKind::LoadWeighted;
        match self.generation.select.wake_load {
            WakeLoad::Runnable if has_both => avg.runnable_avg,
            WakeLoad::Runnable | WakeLoad::WithBlocked => avg.load_avg,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testbed::Bed;
    use crate::topology::{SmtNumbering, Topology};
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

    /// CPU 0 wakes a task that slept on CPU 1, idle, in another cache.
    #[test]
    fn an_idle_previous_cpu_in_another_cache_counts_from_v5_11_on() {
        for (kernel, expected) in [("v5.10", 0), ("v5.11", 1)] {
            let topology = Topology::regular(1, 2, 2, 1, SmtNumbering::Adjacent).expect("a machine");
            let mut bed = Bed::on(kernel, topology);
            let sleeper = bed.spawn(0, 3);
            bed.sleep(3);
            bed.spawn(0, 0);
            bed.spawn(0, 2);
            // The other cache looks loaded.
            let root = bed.scheduler.rqs[3].cfs;
            bed.scheduler.cfs_mut(root).tracked.avg.load_avg = 100_000;
            let decision = bed.select(sleeper, 0, false);
            assert_eq!(decision.cpu == Cpu(3), expected == 1, "{kernel}: {decision:?}");
        }
    }

    /// The waker's queue holds a sleeper whose dequeue is put off.
    #[test]
    fn delayed_sleepers_are_no_company_from_v6_16_on() {
        for (kernel, expected) in [("v6.15+NO_WA_WEIGHT", 3), ("v6.16+NO_WA_WEIGHT", 1)] {
            let mut bed = Bed::new(kernel, 4, 1);
            let sleeper = bed.spawn(0, 3);
            bed.sleep(3);
            for cpu in 0..4 {
                bed.spawn(0, cpu);
            }
            let root = bed.scheduler.rqs[1].cfs;
            bed.scheduler.rqs[1].nr_running += 1;
            bed.scheduler.cfs_mut(root).h_nr_delayed += 1;
            assert_eq!(bed.select(sleeper, 1, true).cpu, Cpu(expected), "{kernel}");
        }
    }
}
