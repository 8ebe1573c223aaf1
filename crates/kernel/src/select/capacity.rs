//! Wakeups on machines whose CPUs differ in capacity: is a CPU big enough, and which idle one is.
//!
//! Must not know: where capacities come from.

use fairlab_event::Cpu;

use super::rules::{Asymmetric, KthreadStacking};
use super::{Wakee, decide};
use crate::cpumask::CpuMask;
use crate::decision::{CpuDecision, IdleCpuSearch, SelectReason};
use crate::domain::fits_capacity;
use crate::generation::Feature;
use crate::pelt::SchedAvg;
use crate::scheduler::Scheduler;
use crate::task::TaskId;

impl Scheduler {
    /// What `cpu` has left for fair tasks, of 1024, as when it last balanced.
    ///
    /// Kernel: `capacity_of()`, kernel/sched/fair.c.
    pub(crate) fn capacity_of(&self, cpu: Cpu) -> u64 {
        self.domains.cpu_capacity(cpu)
    }

    /// The domain in which a wakeup near `target` finds CPUs of every capacity.
    pub(super) fn asymmetric_span(&self, target: Cpu) -> Option<CpuMask> {
        let domain = self.domains.of_cpu(target).sd_asym_cpucapacity?;
        let looks = self.shared.generation.select.asymmetric != Asymmetric::SlowPath;
        looks.then(|| self.domains.domain(domain).span)
    }

    /// A task's averages, aged to its queue's last update while it sleeps.
    pub(super) fn synced_avg(&self, task: TaskId) -> SchedAvg {
        let entity = self.entity_of(task);
        let mut avg = entity.avg;
        let weight = crate::pelt::EntityWeight::of_task(entity.load.scaled_down());
        let updated = self.cfs(entity.cfs_rq).tracked.avg.last_update_time;
        self.shared.generation.pelt.sync_entity_load_avg(&mut avg, weight, updated);
        avg
    }

    /// What the task is expected to use (`task_util_est()`).
    fn expected_util(&self, task: TaskId) -> u64 {
        self.shared.generation.pelt.task_util_est(&self.synced_avg(task))
    }

    /// Whether a task with these averages fits into a capacity (`task_fits_capacity()`).
    pub(super) fn util_fits(&self, avg: &SchedAvg, capacity: u64) -> bool {
        fits_capacity(self.shared.generation.pelt.task_util_est(avg), capacity)
    }

    /// Whether the waking or the previous CPU may be too small, so that the wakeup is not affine.
    ///
    /// Kernel: `wake_cap()`, kernel/sched/fair.c, to v5.6 (000619680c37).
    pub(super) fn wake_cap(&self, wakee: Wakee) -> bool {
        if !matches!(
            self.shared.generation.select.asymmetric,
            Asymmetric::SlowPath | Asymmetric::BestIdleNearPrev
        ) {
            return false;
        }
        let least = self.capacity_orig_of(wakee.prev).min(self.capacity_orig_of(wakee.here));
        let most = self.domains.root().max_cpu_capacity;
        if most.saturating_sub(least) < most >> 3 {
            return false;
        }
        !fits_capacity(self.expected_util(wakee.task), least)
    }

    /// Whether `cpu` is big enough for the task, as far as that is asked.
    ///
    /// Kernel: `asym_fits_capacity()`, `asym_fits_cpu()`, kernel/sched/fair.c. Departs: no utilization clamps.
    pub(super) fn fits(&self, wakee: Wakee, cpu: Cpu) -> bool {
        let rule = self.shared.generation.select.asymmetric;
        if matches!(rule, Asymmetric::SlowPath | Asymmetric::BestIdleNearPrev | Asymmetric::BestIdle)
            || self.domains.of_cpu(cpu).sd_asym_cpucapacity.is_none()
        {
            return true;
        }
        let idle_core = || self.shared.topology.smt_mask(cpu).iter().all(|thread| self.idle_cpu(thread));
        if rule.prefers_cores() && self.shared.topology.has_smt() && !idle_core() {
            return false;
        }
        fits_capacity(self.expected_util(wakee.task), self.capacity_of(cpu))
    }

    /// The same for a CPU whose kthread wakes the task: asked from v5.17 (014ba44e8184).
    pub(super) fn fits_kthread(&self, wakee: Wakee, cpu: Cpu) -> bool {
        self.shared.generation.select.kthread_stacking != KthreadStacking::TaskContext
            || self.fits(wakee, cpu)
    }

    /// The first idle CPU from the target on that is big enough, or else the biggest idle one, or else the target.
    ///
    /// Kernel: `select_idle_capacity()`, kernel/sched/fair.c, from v5.7 (b7a331615d25). Departs: no utilization clamps.
    pub(super) fn search_capacity(
        &self,
        wakee: Wakee,
        target: Cpu,
        span: CpuMask,
        search: &mut IdleCpuSearch,
    ) -> CpuDecision {
        let util = self.expected_util(wakee.task);
        let candidates = span.and(&self.shared.tasks[wakee.task.index()].allowed);
        let rule = self.shared.generation.select.asymmetric;
        let is_bounded = rule == Asymmetric::BoundedCores;
        let prefers_cores =
            rule.prefers_cores() && self.shared.topology.has_smt() && self.may_have_idle_core(target);
        let mut left = if is_bounded { self.capacity_scan_limit(target) } else { u32::MAX };
        let mut best: Option<((u32, u64), Cpu)> = None;
        search.domain = true;
        for cpu in candidates.iter_wrap(target) {
            if left == 0 {
                break;
            }
            search.looked_at += 1;
            left -= u32::from(is_bounded && !prefers_cores);
            if !self.looks_idle(wakee, cpu) {
                continue;
            }
            let capacity = self.capacity_of(cpu);
            let preferred = !prefers_cores
                || self
                    .shared
                    .topology
                    .smt_mask(cpu)
                    .iter()
                    .all(|thread| thread == cpu || self.idle_cpu(thread));
            let fits = fits_capacity(util, capacity);
            if fits && preferred {
                return decide(cpu, SelectReason::FittingIdle, search.looked_at);
            }
            // An idle core, even if too small, then a thread that fits; among equals the biggest.
            let rank =
                (u32::from(prefers_cores && preferred) * 2 + u32::from(prefers_cores && fits), capacity);
            if best.is_none_or(|(so_far, _)| rank > so_far) {
                best = Some((rank, cpu));
            }
        }
        let mut decision = match best {
            Some((_, cpu)) => decide(cpu, SelectReason::BiggestIdle, search.looked_at),
            None => {
                search.failed = true;
                decide(target, SelectReason::NoIdle, search.looked_at)
            }
        };
        let found_core = best.is_some_and(|((tier, _), _)| tier >= 2);
        decision.no_idle_core_in =
            self.domains.of_cpu(target).sd_llc_shared.filter(|_| prefers_cores && !found_core);
        decision
    }

    /// How many CPUs a bounded search looks at, from v7.2.
    fn capacity_scan_limit(&self, target: Cpu) -> u32 {
        let shared = self.domains.of_cpu(target).sd_llc_shared.filter(|_| self.has(Feature::SisUtil));
        shared.map_or(u32::MAX, |shared| self.domains.shared(shared).nr_idle_scan)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use fairlab_event::Cpu;

    use super::Wakee;
    use crate::cpumask::CpuMask;
    use crate::decision::{CpuDecision, SelectReason};
    use crate::task::TaskId;
    use crate::testbed::SchedulerTestbed;
    use crate::topology::{SmtNumbering, Topology};

    /// Two small and two big CPUs under one cache, the latter with `threads` each; a task that used `util` slept on CPU 1.
    pub(crate) fn asleep_on_small(
        kernel: &str,
        threads: u32,
        util: u64,
        busy: &[u32],
    ) -> (SchedulerTestbed, TaskId) {
        let topology = Topology::regular(1, 1, 4, threads, SmtNumbering::Adjacent).expect("a machine");
        let capacities = (0..4 * threads).map(|cpu| if cpu < 2 * threads { 512 } else { 1024 });
        let topology = topology.with_capacities(&capacities.collect::<Vec<u32>>()).expect("capacities");
        let mut bed = SchedulerTestbed::on(kernel, topology);
        let sleeper = bed.spawn(0, 1);
        bed.sleep(1);
        for &cpu in busy {
            bed.spawn(0, cpu);
        }
        let se = bed.scheduler.shared.tasks[sleeper.index()].se;
        let avg = &mut bed.scheduler.se_mut(se).avg;
        avg.util_avg = util;
        (avg.util_est.enqueued, avg.util_est.ewma) = (util as u32, util as u32);
        (bed, sleeper)
    }

    fn found(decision: CpuDecision) -> (u32, SelectReason) {
        (decision.cpu.0, decision.reason)
    }

    #[test]
    fn a_task_too_big_for_its_cpu_finds_a_bigger_one() {
        for (kernel, reason) in [
            ("v5.6", SelectReason::IdlestInGroup),
            ("v5.7", SelectReason::FittingIdle),
            ("v5.10", SelectReason::FittingIdle),
            ("v7.2", SelectReason::FittingIdle),
        ] {
            let (mut bed, sleeper) = asleep_on_small(kernel, 1, 600, &[0]);
            let decision = bed.select(sleeper, 0, false);
            assert!(decision.cpu.0 >= 2, "{kernel}");
            assert_eq!(decision.reason, reason, "{kernel}");
        }
    }

    /// Where a task goes that used so much and whose recent CPU is a big idle one.
    pub(crate) fn beside_recent(kernel: &str, util: u64) -> (u32, SelectReason) {
        let (mut bed, sleeper) = asleep_on_small(kernel, 1, util, &[0, 1]);
        bed.scheduler.shared.tasks[sleeper.index()].recent_used_cpu = Cpu(3);
        found(bed.select(sleeper, 0, false))
    }

    /// Where a task goes that is too big for its CPU and is woken from CPU 5, whose task is about to sleep.
    pub(crate) fn woken_from_a_big_cpu(kernel: &str) -> u32 {
        let (mut bed, sleeper) = asleep_on_small(kernel, 2, 600, &[5]);
        found(bed.select(sleeper, 5, true)).0
    }

    #[test]
    fn a_search_begins_at_the_waker_since_wake_cap_went_away() {
        assert_eq!(["a526d466798d", "000619680c37"].map(woken_from_a_big_cpu), [4, 6]);
    }

    #[test]
    fn what_is_too_big_for_both_went_the_slow_path_while_there_was_a_search() {
        let slow = [SelectReason::IdlestInGroup, SelectReason::LocalIdlest];
        for (kernel, util, is_slow) in
            [("b7a331615d25", 600, true), ("000619680c37", 600, false), ("b7a331615d25", 100, false)]
        {
            assert_eq!(slow.contains(&beside_recent(kernel, util).1), is_slow, "{kernel}, {util}");
        }
    }

    #[test]
    fn the_recent_cpu_comes_before_the_search_from_v5_10_on() {
        for (kernel, expected) in
            [("v5.7", (2, SelectReason::FittingIdle)), ("v5.10", (3, SelectReason::RecentUsedIdle))]
        {
            assert_eq!(beside_recent(kernel, 600), expected, "{kernel}");
        }
    }

    #[test]
    fn the_biggest_idle_cpu_is_taken_when_none_is_big_enough() {
        let (mut bed, sleeper) = asleep_on_small("v6.6", 1, 1000, &[0, 1, 2]);
        assert_eq!(found(bed.select(sleeper, 0, false)), (3, SelectReason::BiggestIdle));
        bed.scheduler.shared.tasks[sleeper.index()].allowed = CpuMask::parse_list("0-2").expect("a list");
        assert_eq!(found(bed.select(sleeper, 0, false)), (1, SelectReason::NoIdle));
    }

    /// CPU 4 is an idle thread of a busy core, CPUs 6 and 7 are an idle core.
    pub(crate) fn beside_idle_core(kernel: &str) -> u32 {
        let (mut bed, sleeper) = asleep_on_small(kernel, 2, 600, &[0, 1, 5]);
        found(bed.select(sleeper, 0, false)).0
    }

    #[test]
    fn idle_cores_come_first_from_v7_2_on() {
        assert_eq!(["v7.1", "v7.2"].map(beside_idle_core), [4, 6]);
    }

    fn wakee(task: TaskId, here: u32, prev: u32) -> Wakee {
        Wakee { task, here: Cpu(here), prev: Cpu(prev) }
    }

    #[test]
    fn a_sleepers_utilization_decays_with_its_queue() {
        let (mut bed, sleeper) = asleep_on_small("v5.10", 1, 600, &[1]);
        assert_eq!(bed.scheduler.synced_avg(sleeper).util_avg, 600);
        bed.run(1, 100);
        assert!(bed.scheduler.synced_avg(sleeper).util_avg < 100);
    }

    #[test]
    fn a_wakeup_is_not_affine_where_either_cpu_is_an_eighth_smaller_and_too_small() {
        let not_affine = |kernel: &str, little: u32, util, here, prev| {
            let topology = Topology::regular(1, 1, 2, 1, SmtNumbering::Adjacent).expect("a machine");
            let mut bed =
                SchedulerTestbed::on(kernel, topology.with_capacities(&[little, 1024]).expect("capacities"));
            let sleeper = bed.spawn(0, 0);
            bed.sleep(0);
            bed.use_task(sleeper, util);
            bed.scheduler.wake_cap(wakee(sleeper, here, prev))
        };
        assert!(not_affine("v5.6", 512, 600, 0, 1) && not_affine("v5.6", 512, 600, 1, 0));
        assert!(!not_affine("v5.6", 512, 600, 1, 1), "both are big");
        assert!(!not_affine("v5.6", 512, 100, 0, 1), "it fits");
        assert!(not_affine("v5.6", 896, 900, 0, 1) && !not_affine("v5.6", 897, 900, 0, 1));
        assert!(!not_affine("v5.10", 512, 600, 0, 1), "no longer asked");
    }

    #[test]
    fn a_cpu_must_be_big_enough_from_v5_10_on_and_its_core_idle_from_v7_2_on() {
        let fits = |kernel: &str, threads, util, busy: &[u32], cpu| {
            let (bed, sleeper) = asleep_on_small(kernel, threads, util, busy);
            bed.scheduler.fits(wakee(sleeper, 0, 1), Cpu(cpu))
        };
        assert!(fits("v5.7", 1, 600, &[], 0) && !fits("v5.10", 1, 600, &[], 0));
        assert!(fits("v5.10", 1, 600, &[], 2));
        assert!(fits("v7.1", 2, 100, &[3], 2) && !fits("v7.2", 2, 100, &[3], 2));
        assert!(fits("v7.2", 2, 100, &[], 2) && !fits("v7.2", 2, 600, &[], 2));
        assert!(fits("v7.2", 1, 100, &[2], 2), "cores without threads");
        let mut alike = SchedulerTestbed::new("v5.10", 2, 1);
        let sleeper = alike.spawn(0, 0);
        alike.sleep(0);
        alike.use_task(sleeper, 1000);
        assert!(alike.scheduler.fits(wakee(sleeper, 0, 0), Cpu(1)), "all CPUs are as big");
    }

    #[test]
    fn the_cpu_of_a_kthread_must_be_big_enough_from_v5_17_on() {
        let fits = |kernel: &str, util| {
            let (bed, sleeper) = asleep_on_small(kernel, 1, util, &[]);
            bed.scheduler.fits_kthread(wakee(sleeper, 0, 1), Cpu(1))
        };
        assert_eq!([fits("v5.16", 600), fits("v5.17", 600), fits("v5.17", 100)], [true, false, true]);
    }

    /// What a search counts on the machine with threads, whose CPUs but these are busy.
    fn searched(kernel: &str, util: u64, idle: &[u32]) -> CpuDecision {
        let busy = (0..8).filter(|cpu| !idle.contains(cpu)).collect::<Vec<u32>>();
        let (mut bed, sleeper) = asleep_on_small(kernel, 2, util, &busy);
        // Kernels differ in where they begin: always with CPU 0.
        bed.select(sleeper, 0, true)
    }

    #[test]
    fn an_idle_core_comes_before_a_thread_that_fits_and_that_before_bigger_ones() {
        for (util, idle, expected) in [
            (600, &[2, 3, 4][..], (2, SelectReason::BiggestIdle)),
            (600, &[4, 6, 7], (6, SelectReason::FittingIdle)),
            (600, &[2, 3, 6, 7], (6, SelectReason::FittingIdle)),
            (1000, &[2, 3, 6, 7], (6, SelectReason::BiggestIdle)),
            (600, &[2, 4], (4, SelectReason::BiggestIdle)),
            (600, &[4, 6], (4, SelectReason::BiggestIdle)),
            (100, &[2, 4], (4, SelectReason::BiggestIdle)),
            (1000, &[2, 4], (4, SelectReason::BiggestIdle)),
            (100, &[0, 2], (0, SelectReason::BiggestIdle)),
        ] {
            assert_eq!(found(searched("v7.2", util, idle)), expected, "{util} beside {idle:?}");
        }
    }

    #[test]
    fn a_search_says_what_it_looked_at_and_whether_a_core_was_idle() {
        let of = |decision: CpuDecision| {
            let search = decision.search;
            (search.domain, search.failed, search.looked_at, decision.no_idle_core_in.is_some())
        };
        assert_eq!(of(searched("v7.2", 600, &[4])), (true, false, 8, true));
        assert_eq!(of(searched("v7.2", 1000, &[2, 3])), (true, false, 8, false));
        assert_eq!(of(searched("v7.2", 600, &[])), (true, true, 8, true));
        assert_eq!(of(searched("v7.1", 1000, &[4])), (true, false, 8, false));
    }

    /// Where a search comes to that may look at so many CPUs, only the last one being idle, and how many it looks at.
    pub(crate) fn looked_at(kernel: &str, bound: u32, expects_core: bool) -> (u32, u32) {
        let (mut bed, sleeper) = asleep_on_small(kernel, 2, 600, &[0, 1, 2, 3, 4, 5, 6]);
        if !expects_core {
            bed.forget_idle_cores();
        }
        let shared = bed.scheduler.domains.of_cpu(Cpu(0)).sd_llc_shared.expect("a cache");
        bed.scheduler.domains.shared_mut(shared).nr_idle_scan = bound;
        let decision = bed.select(sleeper, 0, true);
        (decision.cpu.0, decision.search.looked_at)
    }

    #[test]
    fn a_search_without_idle_cores_is_bounded_from_v7_2_on() {
        assert_eq!(looked_at("v7.2", 3, false), (0, 3));
        assert_eq!(looked_at("v7.2", 3, true), (7, 8), "a core is looked for everywhere");
        assert_eq!(looked_at("v7.1", 3, false), (7, 8));
        assert_eq!(looked_at("v7.2+NO_SIS_UTIL", 3, false), (7, 8));
    }
}
