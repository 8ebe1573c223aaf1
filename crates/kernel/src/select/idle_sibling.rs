//! `select_idle_sibling()`: an idle CPU that shares the cache with the target.

use fairlab_event::Cpu;

use super::rules::{Asymmetric, Cluster, KthreadStacking, RecentAllowed};
use crate::decision::{CpuDecision, IdleCpuSearch, SelectReason};
use crate::scheduler::Scheduler;
use crate::select::wakee::{Wakee, decide};
use crate::trace::KernelContext;

/// Idle CPUs that a search of the target's cluster did not look at, in order of preference.
pub(super) type ClusterCandidates = [Option<Cpu>; 2];

impl Scheduler {
    /// An idle CPU for a woken task near `target`, or else `target`. Pure.
    ///
    /// Kernel: `select_idle_sibling()`, kernel/sched/fair.c. Variants: SCHED_IDLE CPUs from v5.4 (3c29e651e16d), per-CPU
    /// kthreads from v5.6 (52262ee567ad), asymmetric capacities from v5.7 (b7a331615d25), clusters from v6.7
    /// (8881e1639f1f).
    /// Departs: no core scheduling cookies; virtual CPUs are never preempted by their host.
    pub(super) fn select_idle_sibling(&self, wakee: Wakee, target: Cpu) -> CpuDecision {
        let mut search = IdleCpuSearch { entered: true, ..IdleCpuSearch::default() };
        let mut decision = self.look_nearby(wakee, target, &mut search);
        decision.search = search;
        decision
    }

    fn look_nearby(&self, wakee: Wakee, target: Cpu, search: &mut IdleCpuSearch) -> CpuDecision {
        let Wakee { prev, here, .. } = wakee;
        let asymmetric = self.asymmetric_span(target);
        if let Some(span) = asymmetric.filter(|_| {
            matches!(
                self.shared.generation.select.asymmetric,
                Asymmetric::BestIdleNearPrev | Asymmetric::BestIdle
            )
        }) {
            return self.search_capacity(wakee, target, span, search);
        }
        if self.looks_idle(wakee, target) && self.fits(wakee, target) {
            return decide(target, SelectReason::TargetIdle, 1);
        }
        let near = |cpu: Cpu| self.domains.cpus_share_cache(cpu, target);
        let mut candidates: ClusterCandidates = [None; 2];
        if prev != target && near(prev) && self.looks_idle(wakee, prev) && self.fits(wakee, prev) {
            if !self.has_other_cluster(prev, target) {
                return decide(prev, SelectReason::PrevIdle, 2);
            }
            candidates[0] = Some(prev);
        }
        if self.woken_by_kthread_of(prev, here) && self.fits_kthread(wakee, prev) {
            return decide(prev, SelectReason::PerCpuKthread, 2);
        }
        search.reached_recent = true;
        let recent = self.shared.tasks[wakee.task.index()].recent_used_cpu;
        if recent != prev && recent != target {
            let tested = match self.shared.generation.select.recent_allowed {
                RecentAllowed::Itself => recent,
                RecentAllowed::Previous => prev,
            };
            let allowed = self.shared.tasks[wakee.task.index()].allowed.contains(tested);
            let taken = near(recent) && self.looks_idle(wakee, recent) && allowed && self.fits(wakee, recent);
            let elsewhere = taken && self.has_other_cluster(recent, target);
            search.recent = Some(taken && !elsewhere);
            if elsewhere {
                candidates[1] = Some(recent);
            } else if taken {
                return decide(recent, SelectReason::RecentUsedIdle, 3);
            }
        }
        match asymmetric {
            Some(span) => self.search_capacity(wakee, target, span, search),
            None => self.search_llc(wakee, target, candidates, search),
        }
    }

    /// Whether both are in the same cache, but not in the same cluster, and that matters.
    fn has_other_cluster(&self, cpu: Cpu, target: Cpu) -> bool {
        let looks = self.shared.generation.select.cluster != Cluster::Ignored;
        looks && !self.domains.cpus_share_resources(cpu, target)
    }

    /// Whether `prev`'s own kthread wakes the task from there: it worked for it and will sleep.
    ///
    /// Kernel: `is_per_cpu_kthread()`, kernel/sched/sched.h.
    fn woken_by_kthread_of(&self, prev: Cpu, here: Cpu) -> bool {
        let waker = &self.shared.tasks[self.curr(here).index()];
        let in_context = match self.shared.generation.select.kthread_stacking {
            KthreadStacking::No => false,
            KthreadStacking::AnyContext => true,
            KthreadStacking::TaskContext => self.shared.trace.mode == KernelContext::Task,
        };
        in_context && waker.per_cpu_kthread && prev == here && self.nr_running(here) <= 1
    }
}

#[cfg(test)]
pub(super) mod tests {
    use crate::cpumask::CpuMask;
    use crate::decision::SelectReason;
    use crate::select::GivenCpu;
    use crate::task::{Policy, TaskId};
    use crate::testbed::{MS, SchedulerTestbed};
    use crate::topology::{SmtNumbering, Topology};
    use fairlab_event::Cpu;

    fn selected(bed: &mut SchedulerTestbed, task: TaskId, cpu: u32) -> (u32, SelectReason) {
        let decision = bed.select(task, cpu, false);
        (decision.cpu.0, decision.reason)
    }

    #[test]
    fn an_idle_previous_cpu_wins() {
        let mut bed = SchedulerTestbed::new("v6.5", 4, 2);
        let sleeper = bed.spawn(0, 2);
        bed.sleep(2);
        bed.spawn(0, 0);
        assert_eq!(selected(&mut bed, sleeper, 0), (2, SelectReason::TargetIdle));
    }

    #[test]
    fn a_cpu_that_balances_before_it_goes_idle_does_not_look_idle() {
        let mut bed = SchedulerTestbed::new("v6.5", 3, 1);
        let sleeper = bed.spawn(0, 1);
        bed.sleep(1);
        bed.spawn(0, 0);
        let leaves = bed.spawn(0, 1);
        bed.spawn(0, 2);
        bed.leave(1);
        assert_eq!(selected(&mut bed, sleeper, 0), (1, SelectReason::NoIdle), "it still runs {leaves:?}");
        bed.schedule(1);
        assert_eq!(selected(&mut bed, sleeper, 0), (1, SelectReason::TargetIdle));
    }

    #[test]
    fn a_cpu_of_which_more_tasks_are_known_does_not_bear_sched_idle_ones_alone() {
        let mut bed = SchedulerTestbed::new("v6.5", 2, 1);
        bed.spawn_with(0, 1, Policy::Idle, CpuMask::ALL);
        assert!(bed.scheduler.sched_idle_cpu(Cpu(1)));
        let known = |nr_running| [GivenCpu::default(), GivenCpu { idle: Some(false), nr_running }];
        bed.scheduler.give_cpus(&known(Some(2)));
        assert!(!bed.scheduler.sched_idle_cpu(Cpu(1)));
        bed.scheduler.give_cpus(&known(None));
        assert!(bed.scheduler.sched_idle_cpu(Cpu(1)));
    }

    /// A task that slept on CPU 1 beside others that keep every CPU busy; CPU 1 runs a SCHED_IDLE task.
    fn beside_sched_idle(kernel: &str, policy: Policy) -> (u32, SelectReason) {
        let mut bed = SchedulerTestbed::new(kernel, 2, 1);
        let sleeper = bed.spawn_with(0, 1, policy, CpuMask::ALL);
        bed.sleep(1);
        bed.spawn(0, 0);
        bed.spawn_with(0, 1, Policy::Idle, CpuMask::ALL);
        selected(&mut bed, sleeper, 0)
    }

    #[test]
    fn cpus_with_idle_policy_tasks_only_came_to_look_idle() {
        assert_eq!(beside_sched_idle("v5.3", Policy::Normal), (1, SelectReason::NoIdle));
        assert_eq!(beside_sched_idle("v5.4", Policy::Normal), (1, SelectReason::TargetIdle));
        assert_eq!(beside_sched_idle("v7.0", Policy::Idle), (1, SelectReason::TargetIdle));
        assert_eq!(beside_sched_idle("v7.1", Policy::Idle), (1, SelectReason::NoIdle));
    }

    /// A kthread of CPU 1 wakes a task that slept there; CPU 0 is idle.
    fn woken_by_kthread(kernel: &str, in_interrupt: bool) -> SelectReason {
        let mut bed = SchedulerTestbed::new(kernel, 2, 1);
        let sleeper = bed.spawn(0, 1);
        bed.sleep(1);
        let kthread = bed.spawn(0, 1);
        bed.scheduler.shared.tasks[kthread.index()].per_cpu_kthread = true;
        if in_interrupt {
            bed.select_in_interrupt(sleeper, 1).reason
        } else {
            bed.select(sleeper, 1, false).reason
        }
    }

    #[test]
    fn a_kthread_that_worked_for_a_task_keeps_it_at_its_side() {
        assert_eq!(woken_by_kthread("v5.5", false), SelectReason::IdleInLlc);
        assert_eq!(woken_by_kthread("v5.6", false), SelectReason::PerCpuKthread);
        assert_eq!(woken_by_kthread("v5.16", true), SelectReason::PerCpuKthread);
        assert_eq!(woken_by_kthread("v5.17", true), SelectReason::IdleInLlc);
    }

    #[test]
    fn the_recently_used_cpu_is_the_one_before_the_previous() {
        for (kernel, expected) in [("v5.14", 2), ("v5.15", 3)] {
            let mut bed = SchedulerTestbed::new(kernel, 4, 1);
            let sleeper = bed.spawn(0, 3);
            bed.sleep(3);
            for cpu in [0, 1, 3] {
                bed.spawn(0, cpu);
            }
            bed.scheduler.shared.tasks[sleeper.index()].recent_used_cpu = Cpu(0);
            let decision = bed.select(sleeper, 1, false);
            assert_eq!((decision.cpu, decision.search.recent), (Cpu(2), Some(false)));
            bed.scheduler.apply_cpu(sleeper, decision);
            let recent = bed.scheduler.shared.tasks[sleeper.index()].recent_used_cpu;
            assert_eq!(recent, Cpu(if expected == 3 { 3 } else { 0 }), "{kernel}");
        }
    }

    /// Where a task goes that ran on CPU 3 last and on CPU 1 before, and may use CPUs `allowed`; 1 and 2 idle.
    pub(crate) fn bound_since(kernel: &str, allowed: &str) -> u32 {
        let mut bed = SchedulerTestbed::new(kernel, 4, 1);
        let sleeper = bed.spawn(0, 3);
        bed.sleep(3);
        for cpu in [0, 3] {
            bed.spawn(0, cpu);
        }
        bed.scheduler.shared.tasks[sleeper.index()].recent_used_cpu = Cpu(1);
        bed.scheduler.shared.tasks[sleeper.index()].allowed = CpuMask::parse_list(allowed).expect("a list");
        bed.select(sleeper, 0, false).cpu.0
    }

    #[test]
    fn the_recently_used_cpu_must_be_allowed_but_to_v6_4_the_previous_one_was_asked() {
        for (kernel, allowed, expected) in [
            ("v5.14", "0,2-3", 2),
            ("v5.15", "0,2-3", 0),
            ("v6.4", "0,2-3", 0),
            ("debian-6.1", "0,2-3", 2),
            ("v6.5", "0,2-3", 2),
            ("v5.14", "0-2", 1),
            ("v6.5", "0-2", 1),
        ] {
            assert_eq!(bound_since(kernel, allowed), expected, "{kernel}, {allowed}");
        }
    }

    #[test]
    fn a_cpu_that_goes_idle_beside_an_idle_sibling_raises_the_hint() {
        let mut bed = SchedulerTestbed::new("v6.5", 2, 2);
        bed.forget_idle_cores();
        bed.spawn(0, 0);
        bed.spawn(0, 1);
        bed.pass(MS);
        bed.sleep(0);
        assert!(!bed.expects_idle_core(0), "CPU 1 is busy");
        bed.sleep(1);
        assert!(bed.expects_idle_core(0));
    }

    /// CPU 0 wakes a task that slept on CPU 2, in sync; clusters are 0-1 and 2-3, CPU 1 is busy or not.
    pub(crate) fn beside_clusters(
        kernel: &str,
        neighbour_busy: bool,
        nr_idle_scan: u32,
    ) -> (u32, SelectReason) {
        let topology = Topology::regular(1, 1, 4, 1, SmtNumbering::Adjacent).expect("a machine");
        let mut bed = SchedulerTestbed::on(kernel, topology.with_clusters(&[0, 0, 1, 1]).expect("clusters"));
        let sleeper = bed.spawn(0, 2);
        bed.sleep(2);
        bed.spawn(0, 0);
        if neighbour_busy {
            bed.spawn(0, 1);
        }
        let shared = bed.scheduler.domains.of_cpu(Cpu(0)).sd_llc_shared.expect("a cache");
        bed.scheduler.domains.shared_mut(shared).nr_idle_scan = nr_idle_scan;
        let decision = bed.select(sleeper, 0, true);
        (decision.cpu.0, decision.reason)
    }

    #[test]
    fn the_targets_cluster_comes_first_from_v6_7_on() {
        assert_eq!(beside_clusters("v6.6", false, 4), (2, SelectReason::PrevIdle));
        assert_eq!(beside_clusters("v6.7", false, 4), (1, SelectReason::IdleInLlc));
        assert_eq!(beside_clusters("v6.7-22165f61d0c4", true, 1), (0, SelectReason::NoIdle));
        assert_eq!(beside_clusters("v6.7", true, 1), (2, SelectReason::IdleInOtherCluster));
    }
}
