//! Whether a wakeup pulls the task towards the waker.

use fairlab_event::Cpu;

use super::Wakee;
use super::rules::{AffineIdle, SyncAlone, WakeLoad};
use crate::generation::Feature;
use crate::pelt::RunnableKind;
use crate::scheduler::Scheduler;
use crate::task::{Policy, TaskId};

impl Scheduler {
    /// Whether waker and wakee each wake so many others that pulling them together would crowd one cache.
    ///
    /// Kernel: `wake_wide()`, kernel/sched/fair.c.
    pub(super) fn wake_wide(&self, waker: TaskId, wakee: TaskId, here: Cpu) -> bool {
        let (one, other) =
            (self.shared.tasks[waker.index()].wakee_flips, self.shared.tasks[wakee.index()].wakee_flips);
        let (master, slave) = (u64::from(one.max(other)), u64::from(one.min(other)));
        let factor = u64::from(self.domains.of_cpu(here).sd_llc_size);
        slave >= factor && master >= slave * factor
    }

    /// The waking CPU or the one the task last ran on, whichever suits it better, and whether their loads were weighed.
    /// `imbalance_pct` is that of the lowest domain which spans both.
    ///
    /// Kernel: `wake_affine()`, kernel/sched/fair.c.
    pub(super) fn wake_affine(&self, wakee: Wakee, sync: bool, imbalance_pct: i64) -> (Cpu, bool) {
        let by_idle = self.has(Feature::WaIdle).then(|| self.wake_affine_idle(wakee, sync)).flatten();
        if let Some(cpu) = by_idle {
            return (cpu, false);
        }
        let weighs = self.has(Feature::WaWeight);
        let by_weight = weighs.then(|| self.wake_affine_weight(wakee, sync, imbalance_pct)).flatten();
        (by_weight.unwrap_or(wakee.prev), weighs)
    }

    /// Loads were weighed on `here` for a wakeup of `task`: what tasks count of them stays for this jiffy.
    pub(super) fn remember_weighing(&mut self, here: Cpu, task: TaskId, sync: bool) {
        let waker = self.curr(here);
        if sync {
            let of_waker = match self.shared.tasks[waker.index()].policy {
                Policy::Swapper => self.rqs[here.index()].cfs,
                _ => self.entity_of(waker).cfs_rq,
            };
            self.shared.update_cfs_rq_h_load(of_waker);
            if self.shared.load_in_selection(waker) > self.cpu_load(here) {
                return;
            }
        }
        self.shared.update_cfs_rq_h_load(self.entity_of(task).cfs_rq);
    }

    /// Kernel: `wake_affine_idle()`, kernel/sched/fair.c. Variants: an idle previous CPU elsewhere from v5.11
    /// (d8fcb81f1acf); delayed sleepers left out from v6.16 (aa3ee4f0b754).
    fn wake_affine_idle(&self, wakee: Wakee, sync: bool) -> Option<Cpu> {
        let Wakee { here, prev, .. } = wakee;
        if self.idle_cpu(here) && self.domains.cpus_share_cache(here, prev) {
            return Some(if self.idle_cpu(prev) { prev } else { here });
        }
        let sleepers = match self.shared.generation.select.sync_alone {
            SyncAlone::Queued => 0,
            SyncAlone::Runnable => self.cfs(self.rqs[here.index()].cfs).h_nr_delayed,
        };
        if sync && self.nr_running(here).saturating_sub(sleepers) == 1 {
            return Some(here);
        }
        let knows_prev = self.shared.generation.select.affine_idle == AffineIdle::ThisOrPrev;
        (knows_prev && self.idle_cpu(prev)).then_some(prev)
    }

    /// Kernel: `wake_affine_weight()`, kernel/sched/fair.c.
    fn wake_affine_weight(&self, wakee: Wakee, sync: bool, imbalance_pct: i64) -> Option<Cpu> {
        let Wakee { task, here, prev } = wakee;
        let mut this_load = self.cpu_load(here) as i64;
        if sync {
            let waker = self.shared.load_in_selection(self.curr(here)) as i64;
            if waker > this_load {
                return Some(here);
            }
            this_load -= waker;
        }
        let task_load = self.shared.load_in_selection(task) as i64;
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

    /// A CPU's load of fair tasks.
    ///
    /// Kernel: `cpu_load()`; to v5.4 `weighted_cpuload()`, which counts only what is runnable.
    pub(super) fn cpu_load(&self, cpu: Cpu) -> u64 {
        let avg = &self.cfs(self.rqs[cpu.index()].cfs).tracked.avg;
        // Where runnability is no load, there is only one load to go by.
        let has_both = self.shared.generation.pelt.runnable == RunnableKind::LoadWeighted;
        match self.shared.generation.select.wake_load {
            WakeLoad::Runnable if has_both => avg.runnable_avg,
            WakeLoad::Runnable | WakeLoad::WithBlocked => avg.load_avg,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::{MS, SchedulerTestbed};
    use crate::topology::{SmtNumbering, Topology};

    /// Two caches of two CPUs would need a slow path; one cache of four shows the rules for idle CPUs.
    #[test]
    fn a_waker_that_is_about_to_sleep_pulls_the_task_if_nothing_else_waits_here() {
        let mut bed = SchedulerTestbed::new("v6.5", 4, 1);
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
        assert_eq!(SchedulerTestbed::new("v6.5", 4, 1).scheduler.cpu_load(Cpu(0)), 0);
    }

    #[test]
    fn what_a_task_counts_is_of_when_it_was_asked_for_first_in_its_jiffy() {
        let mut bed = SchedulerTestbed::new("v6.5", 2, 1);
        let sleeper = bed.spawn(0, 1);
        bed.sleep(1);
        let waker = bed.spawn(0, 0);
        let (of_waker, of_sleeper) = (bed.scheduler.rqs[0].cfs, bed.scheduler.rqs[1].cfs);
        bed.scheduler.remember_weighing(Cpu(0), sleeper, false);
        let alone = bed.scheduler.shared.task_h_load(waker);
        for queue in [of_waker, of_sleeper] {
            bed.scheduler.cfs_mut(queue).tracked.avg.load_avg *= 2;
        }
        let (half, quarter) = (alone / 2, alone / 4);
        assert!(bed.scheduler.shared.task_h_load(waker) > half, "nobody has asked before");
        assert!(
            bed.scheduler.shared.task_h_load(sleeper).abs_diff(half) < quarter,
            "others' share of what there was"
        );
        bed.pass(4 * MS);
        bed.select(sleeper, 0, false);
        assert!(bed.scheduler.shared.task_h_load(sleeper) > half + quarter, "another jiffy");
    }

    #[test]
    fn a_waker_that_exits_promises_nothing() {
        let mut bed = SchedulerTestbed::new("v5.10", 4, 1);
        let sleeper = bed.spawn(0, 3);
        bed.sleep(3);
        let wakers = [0, 1, 2, 3].map(|cpu| bed.spawn(0, cpu));
        assert_eq!(bed.select(sleeper, 1, true).cpu, Cpu(1));
        bed.scheduler.exit_signals(wakers[0]);
        assert_eq!(bed.select(sleeper, 1, true).cpu, Cpu(1), "another task exits");
        bed.scheduler.exit_signals(wakers[1]);
        assert_eq!(bed.select(sleeper, 1, true).cpu, Cpu(3), "it stays, as after a wakeup without a promise");
    }

    #[test]
    fn the_rules_can_be_switched_off() {
        let mut bed = SchedulerTestbed::new("v6.5+NO_WA_IDLE+NO_WA_WEIGHT", 4, 1);
        let sleeper = bed.spawn(0, 3);
        bed.sleep(3);
        for cpu in [0, 1, 2, 3, 3, 3] {
            bed.spawn(0, cpu);
        }
        assert_eq!(bed.select(sleeper, 1, true).cpu, Cpu(3));
    }

    #[test]
    fn a_waker_of_many_does_not_pull() {
        let mut bed = SchedulerTestbed::new("v6.5", 2, 1);
        let sleeper = bed.spawn(0, 1);
        bed.sleep(1);
        let waker = bed.spawn(0, 0);
        bed.spawn(0, 1);
        assert_eq!(bed.select(sleeper, 0, true).cpu, Cpu(0));
        bed.scheduler.shared.tasks[waker.index()].wakee_flips = 4;
        bed.scheduler.shared.tasks[sleeper.index()].wakee_flips = 2;
        assert_eq!(bed.select(sleeper, 0, true).cpu, Cpu(1));
    }

    /// CPU 0 wakes a task that slept on CPU 1, idle, in another cache.
    #[test]
    fn an_idle_previous_cpu_in_another_cache_counts_from_v5_11_on() {
        for (kernel, expected) in [("v5.10", 0), ("v5.11", 1)] {
            let topology = Topology::regular(1, 2, 2, 1, SmtNumbering::Adjacent).expect("a machine");
            let mut bed = SchedulerTestbed::on(kernel, topology);
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
            let mut bed = SchedulerTestbed::new(kernel, 4, 1);
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

    /// Two caches of two CPUs; the task slept on `prev`, and `busy` run others.
    fn caches(kernel: &str, prev: u32, busy: &[u32]) -> (SchedulerTestbed, TaskId) {
        let topology = Topology::regular(1, 2, 2, 1, SmtNumbering::Adjacent).expect("a machine");
        let mut bed = SchedulerTestbed::on(kernel, topology);
        let sleeper = bed.spawn(0, prev);
        bed.sleep(prev);
        for &cpu in busy {
            bed.spawn(0, cpu);
        }
        (bed, sleeper)
    }

    #[test]
    fn an_interrupt_on_an_idle_cpu_pulls_within_the_cache_unless_the_previous_cpu_idles() {
        let affine = |prev, busy: &[u32]| {
            let (bed, task) = caches("v5.10+NO_WA_WEIGHT", prev, busy);
            bed.scheduler.wake_affine(Wakee { task, here: Cpu(0), prev: Cpu(prev) }, false, 117).0.0
        };
        assert_eq!(affine(1, &[1]), 0);
        assert_eq!(affine(1, &[]), 1, "its caches may be warm");
        assert_eq!(affine(2, &[2]), 2, "another cache");
        assert_eq!(affine(1, &[0, 1]), 1, "nothing idles");
    }

    /// Loads of CPUs 0 (that wakes) and 3 (of before); those of the waker and the task are given.
    fn weighed(kernel: &str, (here, prev): (u64, u64), (waker, task): (u64, u64), sync: bool) -> bool {
        let (mut bed, sleeper) = caches(kernel, 3, &[0, 3]);
        for (cpu, load) in [(0, here), (3, prev)] {
            let root = bed.scheduler.rqs[cpu].cfs;
            bed.scheduler.cfs_mut(root).tracked.avg.load_avg = load;
        }
        let running = bed.scheduler.curr(Cpu(0));
        bed.scheduler.shared.hooks.answer_loads(vec![(running, waker), (sleeper, task)]);
        let wakee = Wakee { task: sleeper, here: Cpu(0), prev: Cpu(3) };
        bed.scheduler.wake_affine_weight(wakee, sync, 117) == Some(Cpu(0))
    }

    #[test]
    fn the_lighter_cpu_pulls_with_half_of_imbalance_pct_in_favour_of_the_waking_one() {
        let pulls = |here, prev| weighed("v6.6", (here, prev), (0, 0), false);
        assert!(pulls(1079, 1000) && !pulls(1080, 1000), "108 % of it");
        let unbiased = |here, prev| weighed("v6.6+NO_WA_BIAS", (here, prev), (0, 0), false);
        assert!(unbiased(999, 1000) && !unbiased(1000, 1000));
        let moved = |here, prev| weighed("v6.6+NO_WA_BIAS", (here, prev), (0, 100), false);
        assert!(moved(799, 1000) && !moved(800, 1000), "the task counts here, and no longer there");
    }

    #[test]
    fn a_waker_that_is_about_to_sleep_counts_no_longer() {
        let pulls = |here, prev, waker| weighed("v6.6+NO_WA_BIAS", (here, prev), (waker, 0), true);
        assert!(pulls(1500, 1000, 501) && pulls(1500, 1000, 500), "even at equal loads");
        assert!(!pulls(1500, 1000, 499));
        assert!(pulls(10, 0, 11), "it is all there is");
        assert!(weighed("v6.6+NO_WA_BIAS", (10, 0), (11, 900), true), "however heavy the task");
        assert!(!weighed("v6.6+NO_WA_BIAS", (10, 0), (10, 900), true));
    }

    #[test]
    fn loads_are_weighed_by_capacity() {
        let pulls = |here, prev| {
            let topology = Topology::regular(1, 2, 2, 1, SmtNumbering::Adjacent).expect("a machine");
            let topology = topology.with_capacities(&[512, 512, 1024, 1024]).expect("capacities");
            let mut bed = SchedulerTestbed::on("v6.6+NO_WA_BIAS", topology);
            let task = bed.spawn(0, 3);
            bed.sleep(3);
            for (cpu, load) in [(0, here), (3, prev)] {
                let root = bed.scheduler.rqs[cpu].cfs;
                bed.scheduler.cfs_mut(root).tracked.avg.load_avg = load;
            }
            bed.scheduler.shared.hooks.answer_loads(vec![(task, 0)]);
            bed.scheduler.wake_affine_weight(Wakee { task, here: Cpu(0), prev: Cpu(3) }, false, 117).is_some()
        };
        assert!(pulls(499, 1000) && !pulls(500, 1000), "half the capacity bears half the load");
    }

    #[test]
    fn who_wakes_many_is_told_by_both_counts() {
        let wide = |waker_flips, wakee_flips| {
            let mut bed = SchedulerTestbed::new("v6.5", 3, 1);
            let [waker, wakee] = [0, 1].map(|cpu| bed.spawn(0, cpu));
            bed.scheduler.shared.tasks[waker.index()].wakee_flips = waker_flips;
            bed.scheduler.shared.tasks[wakee.index()].wakee_flips = wakee_flips;
            bed.scheduler.wake_wide(waker, wakee, Cpu(0))
        };
        assert!(
            wide(9, 3) && wide(3, 9),
            "three CPUs share the cache: three of the one, three times that of the other"
        );
        assert!(!wide(8, 3) && !wide(9, 2) && !wide(100, 2));
    }
}
