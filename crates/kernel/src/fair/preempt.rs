//! Preemption by a wakeup.

use crate::all_cpus::Shared;
use crate::core::KernelContext;
use crate::decision::{PreemptDecision, PreemptReason};
use crate::entity::SeId;
use crate::fair::granularity::WakeupPreemptionTest;
use crate::fair::rules::{SliceProtection, TestPick, WakeupPreemption, WokenBuddy};
use crate::fair::{FailedTest, ForcedPreemption, PendingTest, ShortBuddy, ShortPreference};
use crate::generation::Feature;
use crate::group::{IdlePreemption, IdleProtection};
use crate::rq::LockedRq;
use crate::task::{Policy, TaskId};

impl Shared {
    /// What is decided before virtual times are compared; only then is `curr` charged. Pure.
    ///
    /// `pending`: a reschedule was asked for before the running task was charged for this test.
    pub(crate) fn preempts_without_vruntime(
        &self,
        curr: TaskId,
        task: TaskId,
        pending: bool,
    ) -> Option<PreemptDecision> {
        let never = |reason| Some(PreemptDecision { preempt: false, reason });
        if curr == task {
            return never(PreemptReason::SameEntity);
        }
        if self.throttled_for_preemption(task) {
            return never(PreemptReason::Throttled);
        }
        let goes_on =
            self.generation.preemption.pending_test == PendingTest::GoesOn && self.has(Feature::PreemptShort);
        if pending && !goes_on {
            return never(PreemptReason::AlreadyPending);
        }
        self.preempts_by_policy(curr, task)
    }

    /// Whether a fair task that was just queued takes the CPU from a running fair task, where nothing else has decided; `curr` and
    /// `woken` are the two's [`competitors`](Self::competitors). Pure.
    ///
    /// Kernel: `check_preempt_wakeup()` (v6.7: `check_preempt_wakeup_fair()`), kernel/sched/fair.c. Variants:
    /// `Granularity` to v6.5, `PickDecides` from v6.6.
    pub(crate) fn check_preempt_wakeup(&self, task: TaskId, (curr, woken): (SeId, SeId)) -> PreemptDecision {
        let decide = |preempt, reason| PreemptDecision { preempt, reason };
        match self.generation.fair.wakeup_preemption {
            WakeupPreemption::Granularity => match self.wakeup_preempt_entity(curr, woken) {
                WakeupPreemptionTest::Behind => decide(true, PreemptReason::BeyondGranularity),
                _ => decide(false, PreemptReason::WithinGranularity),
            },
            WakeupPreemption::PickDecides => {
                let overrides = self.preempts_by_shorter_request(woken, curr);
                if let Some(reason) = self.never_preempts(task, woken).filter(|_| !overrides) {
                    return decide(false, reason);
                }
                if !overrides && self.forces_preemption(curr) {
                    return decide(true, PreemptReason::CurrNotEligible);
                }
                let becomes_buddy = self.becomes_buddy(task, (curr, woken));
                if becomes_buddy && self.tasks[task.index()].woken_sync {
                    return self.preempts_promising_waker(curr, woken);
                }
                match self.picked_in_test(task, (curr, woken), overrides) == Some(woken) {
                    true if overrides => decide(true, PreemptReason::ShorterRequest),
                    true => decide(true, PreemptReason::WouldBePicked),
                    false if overrides && self.short_and_eligible(woken) => {
                        decide(true, PreemptReason::ShorterRequest)
                    }
                    false => decide(false, PreemptReason::WouldNotBePicked),
                }
            }
        }
    }

    /// Whether a test by a task, and no interrupt, takes the CPU away for no other reason than that who runs has no lag left.
    ///
    /// Kernel: `check_preempt_wakeup_fair()`, kernel/sched/fair.c, from e837456fdca8 to 15257cc2f905.
    fn forces_preemption(&self, curr: SeId) -> bool {
        if self.generation.preemption.forced_preemption == ForcedPreemption::Never {
            return false;
        }
        let line = self.line_of(self.se(curr).cfs_rq);
        self.trace.mode == KernelContext::Task
            && !self.cfs(line).is_eligible(self.se(curr).vruntime, self.running(line))
    }

    /// Whether one that became preferred takes the CPU though its waker is about to sleep: only with an earlier deadline, and only
    /// once the running entity has run for the cost of a migration.
    ///
    /// Kernel: `preempt_sync()`, kernel/sched/fair.c (e837456fdca8). That time counts from the running entity's last charge,
    /// which the test itself has just made: it is 0, and enough only where a migration costs nothing.
    /// Departs: costs of 1 to 3 ns count in full; the kernel quarters them for tasks that had a choice of CPUs.
    fn preempts_promising_waker(&self, curr: SeId, woken: SeId) -> PreemptDecision {
        let earlier = self.se(woken).deadline.is_before(self.se(curr).deadline);
        match earlier && self.sysctl.migration_cost == 0 {
            true => PreemptDecision { preempt: true, reason: PreemptReason::WakerRanLong },
            false => PreemptDecision { preempt: false, reason: PreemptReason::WakerSleeps },
        }
    }

    /// What policies alone decide.
    ///
    /// Kernel: `check_preempt_wakeup()`, kernel/sched/fair.c. Variants: `Tasks` to v5.14, `TasksThenGroups` from v5.15
    /// (304000390f88), `Competitors` from v6.12 (faa42d29419d).
    fn preempts_by_policy(&self, curr: TaskId, task: TaskId) -> Option<PreemptDecision> {
        let (running, woken) = (&self.tasks[curr.index()], &self.tasks[task.index()]);
        let gives_way = PreemptDecision { preempt: true, reason: PreemptReason::CurrIsIdlePolicy };
        let never = PreemptDecision { preempt: false, reason: PreemptReason::PolicyNeverPreempts };
        let off = PreemptDecision { preempt: false, reason: PreemptReason::FeatureOff };
        if woken.policy == Policy::Normal && running.policy != Policy::Idle && !self.idle_policy_used {
            // Nothing but the feature can decide.
            return (!self.has(Feature::WakeupPreemption)).then_some(off);
        }
        let may_not = || (woken.policy != Policy::Normal).then_some(never);
        let is_off = || (!self.has(Feature::WakeupPreemption)).then_some(off);
        let tasks = || {
            let curr_is_idle = running.policy == Policy::Idle && woken.policy != Policy::Idle;
            curr_is_idle.then_some(gives_way).or_else(may_not).or_else(is_off)
        };
        let competitors = || {
            let (curr, woken) = self.find_matching_se(running.se, woken.se);
            match (self.is_idle_policy(curr), self.is_idle_policy(woken)) {
                (true, false) => Some(gives_way),
                (false, true) => Some(never),
                _ => None,
            }
        };
        match self.generation.groups.idle_preemption {
            IdlePreemption::Tasks => tasks(),
            IdlePreemption::TasksThenGroups => tasks().or_else(competitors),
            IdlePreemption::Competitors => is_off().or_else(competitors).or_else(may_not),
        }
    }

    /// The same from 7cd2ef17de5e on: whoever preempts ends it, and whoever fails shortens it, for whatever reason.
    fn protection_after_any(&mut self, task: TaskId, decision: PreemptDecision) {
        let running = self.curr(self.tasks[task.index()].cpu);
        if running == task || !self.tasks[running.index()].policy.is_fair() {
            return;
        }
        let (curr, woken) = self.competitors(running, task);
        let fails = matches!(
            decision.reason,
            PreemptReason::WouldNotBePicked
                | PreemptReason::PolicyNeverPreempts
                | PreemptReason::NewTask
                | PreemptReason::AsleepOnQueue
        );
        match decision.reason {
            PreemptReason::ShorterRequest
            | PreemptReason::WouldBePicked
            | PreemptReason::CurrIsIdlePolicy => {
                self.protect_at_most(curr, self.se(curr).vruntime);
                if decision.reason == PreemptReason::ShorterRequest {
                    self.prefer_shorter(curr, woken);
                }
            }
            _ if fails && self.has(Feature::RunToParity) => {
                let line = self.line_of(self.se(curr).cfs_rq);
                self.update_protection(line, curr);
            }
            _ => {}
        }
    }

    /// One with a shorter request has preempted. Kernel: `clear_buddies()` in `wakeup_preempt_fair()` from v7.1 (78cde54ea5f0),
    /// `set_short_buddy()` from v7.3 (8f97b627ff1c).
    fn prefer_shorter(&mut self, curr: SeId, woken: SeId) {
        let rules = self.generation.preemption;
        if rules.short_buddy == ShortBuddy::Nobody {
            if rules.short_preference == ShortPreference::Ignored {
                self.clear_buddies(curr);
            }
            return;
        }
        let next = self.cfs(self.line_of(self.se(woken).cfs_rq)).next;
        if next.is_none_or(|next| self.se(next).slice >= self.se(woken).slice) {
            self.set_next_buddy(woken);
        }
    }

    /// An idle entity that must give way is not kept by its protection. Kernel: f553741ac8c0.
    fn cancel_idle_protection(&mut self, task: TaskId) {
        let curr = self.curr(self.tasks[task.index()].cpu);
        if self.generation.groups.idle_protection == IdleProtection::Kept || curr == task {
            return;
        }
        let (curr, _) = self.competitors(curr, task);
        self.se_mut(curr).deadline_at_pick = None;
        self.protect_at_most(curr, self.se(curr).vruntime);
        if self.generation.preemption.short_preference == ShortPreference::Ignored {
            self.clear_buddies(curr);
        }
    }

    /// The pick of this moment, after `task` has become preferred if it does; `unprotected`: the running entity's protection does
    /// not count.
    pub(crate) fn picked_in_test(
        &self,
        task: TaskId,
        (curr, woken): (SeId, SeId),
        unprotected: bool,
    ) -> Option<SeId> {
        let rules = &self.generation.fair;
        let cfs_rq = self.line_of(self.se(woken).cfs_rq);
        let sees_buddy = rules.test_pick == TestPick::BuddyFirst
            && !(unprotected && self.generation.preemption.short_preference == ShortPreference::Ignored);
        let becomes_buddy = self.becomes_buddy(task, (curr, woken)) && !self.is_idle_policy(woken);
        let next = if becomes_buddy { Some(woken) } else { self.cfs(cfs_rq).next };
        if let Some(buddy) = self.eligible_if_preferred(cfs_rq, next).filter(|_| sees_buddy) {
            return Some(buddy);
        }
        match unprotected {
            true => self.pick_eevdf_unprotected(cfs_rq),
            false => self.pick_eevdf_of(cfs_rq),
        }
    }
}

impl LockedRq<'_> {
    /// What a preemption test leaves behind at the running entity: its protection, cancelled, or shortened where the test has
    /// failed. Up to v6.18 only the test of a shorter request shortens it (e837456fdca8).
    pub(crate) fn protection_after(&mut self, task: TaskId, decision: PreemptDecision) {
        if self.shared.generation.preemption.failed_test == FailedTest::Any {
            return self.shared.protection_after_any(task, decision);
        }
        let decided_by_pick = matches!(
            decision.reason,
            PreemptReason::WouldBePicked | PreemptReason::WouldNotBePicked | PreemptReason::ShorterRequest
        );
        if decision.reason == PreemptReason::CurrIsIdlePolicy {
            return self.shared.cancel_idle_protection(task);
        }
        let changes = self.shared.generation.fair.slice_protection == SliceProtection::UntilShortestRequest
            || self.has(Feature::PreemptShort);
        if !decided_by_pick || !changes {
            return;
        }
        let running = self.shared.curr(self.rq.cpu);
        if self.shared.runs_idle_task(self.rq.cpu) {
            return;
        }
        let (curr, woken) = self.shared.competitors(running, task);
        let cfs_rq = self.shared.line_of(self.se(curr).cfs_rq);
        match self.shared.generation.fair.slice_protection {
            SliceProtection::UntilNewDeadline => {
                if self.shared.preempts_by_shorter_request(woken, curr) {
                    self.se_mut(curr).deadline_at_pick = None;
                }
            }
            SliceProtection::UntilShortestRequest if decision.reason == PreemptReason::ShorterRequest => {
                self.shared.protect_at_most(curr, self.se(curr).vruntime);
                self.shared.prefer_shorter(curr, woken);
            }
            SliceProtection::UntilShortestRequest if !decision.preempt && self.has(Feature::RunToParity) => {
                let any = self.shared.generation.fair.woken_buddy == WokenBuddy::EarlierDeadline;
                if any || self.shared.preempts_by_shorter_request(woken, curr) {
                    self.shared.update_protection(cfs_rq, curr);
                }
            }
            SliceProtection::UntilShortestRequest => {}
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use fairlab_event::Ns;

    use crate::ablation::{AblationSituation, switched};
    use crate::core::{KernelContext, WakeFlags};
    use crate::cpumask::CpuMask;
    use crate::decision::PreemptReason;
    use crate::group::GroupId;
    use crate::task::Policy;
    use crate::testbed::{MS, SchedulerTestbed};

    pub(crate) const SITUATIONS: &[(&str, AblationSituation)] = &[
        ("short-beside-preferred", |kernel| preempts_a_preferred_group(kernel).into()),
        ("no-forced-preemption", |kernel| {
            preempts_who_ran_ahead(&switched(kernel, "NO_NEXT_BUDDY"), true).into()
        }),
    ];

    /// Whether a task that is woken, by a task or by an interrupt, takes the CPU from one that has run ahead, beside a third
    /// whose turn it is.
    fn preempts_who_ran_ahead(kernel: &str, by_task: bool) -> bool {
        let mut bed = SchedulerTestbed::new(kernel, 8, 1);
        let sleeper = bed.spawn(19, 0);
        bed.sleep(0);
        bed.spawn(0, 0);
        bed.spawn(0, 0);
        bed.pass(MS);
        bed.at(0);
        if !by_task {
            bed.scheduler.set_here(fairlab_event::Cpu(0), KernelContext::Hardirq, bed.now);
        }
        bed.scheduler.ttwu_begin(sleeper, WakeFlags::default());
        bed.scheduler.ttwu_do_activate(sleeper, WakeFlags::default());
        bed.scheduler.need_resched(fairlab_event::Cpu(0))
    }

    /// From e837456fdca8 until 15257cc2f905, both of v6.19.
    #[test]
    fn a_waking_task_forced_who_ran_ahead_off_its_cpu_for_two_months() {
        let kernels = ["v6.18", "e837456fdca8", "v6.19"];
        assert_eq!(kernels.map(|kernel| preempts_who_ran_ahead(kernel, true)), [false, true, false]);
        assert!(!preempts_who_ran_ahead("e837456fdca8+NO_NEXT_BUDDY", false), "an interrupt did not");
    }

    /// Whether a task with a short slice takes the CPU from a group that is preferred since one of its tasks went to sleep.
    fn preempts_a_preferred_group(kernel: &str) -> bool {
        let mut bed = SchedulerTestbed::new(kernel, 8, 1);
        let [pairs, timer] = [(); 2].map(|()| bed.scheduler.new_group(GroupId::ROOT, 1024));
        let short = bed.spawn_in(timer, 0);
        bed.scheduler.set_scheduler(short, Policy::Normal, 0, Some(Ns(MS / 2)));
        bed.sleep(0);
        for _ in 0..3 {
            bed.spawn_in(pairs, 0);
        }
        // The first runs ahead, so that the second leaves at once.
        bed.pass(4 * MS);
        bed.tick(0);
        bed.schedule(0);
        bed.pass(MS / 10);
        bed.sleep(0);
        let root = bed.scheduler.rqs[0].cfs;
        assert!(bed.scheduler.cfs(root).next.is_some(), "{kernel}: the group is preferred");
        bed.pass(MS);
        bed.wake(short, 0);
        bed.scheduler.need_resched(fairlab_event::Cpu(0)) && bed.schedule(0).task == short
    }

    /// To v7.0 the group that runs keeps the CPU, whatever slice the woken task has (78cde54ea5f0).
    #[test]
    fn a_shorter_request_preempts_a_preferred_group() {
        let kernels = ["v6.18", "v6.19", "v7.0", "v7.1", "v7.2", "v7.0+78cde54ea5f0"];
        assert_eq!(kernels.map(preempts_a_preferred_group), [false, false, false, true, true, true]);
    }

    /// On 8 CPUs the wakeup granularity is 4 ms.
    #[test]
    fn cfs_preempts_when_the_woken_one_is_further_behind_than_the_granularity() {
        for (slept_ms, preempts) in [(3, false), (6, true)] {
            let mut bed = SchedulerTestbed::new("v6.5+NO_START_DEBIT", 8, 1);
            let (sleeper, _) = (bed.spawn(0, 0), bed.spawn(0, 0));
            bed.sleep(0);
            bed.pass(slept_ms * MS);
            assert_eq!(bed.wake(sleeper, 0), preempts, "behind by {slept_ms} ms");
        }
    }

    #[test]
    fn eevdf_preempts_by_lag_not_by_how_long_one_slept() {
        let mut bed = SchedulerTestbed::new("v6.6", 8, 1);
        let (hog, owed) = (bed.spawn(0, 0), bed.spawn(0, 0));
        bed.pass(4 * MS);
        bed.tick(0);
        assert_eq!(bed.schedule(0).task, owed);
        bed.sleep(0);
        assert!(bed.entity(owed).vlag > 0, "it waited while the other ran");
        bed.pass(MS);
        assert!(bed.wake(owed, 0), "what it is owed makes it preempt");

        let mut bed = SchedulerTestbed::new("v6.6", 8, 1);
        let (ahead, _) = (bed.spawn(0, 0), bed.spawn(0, 0));
        bed.pass(2 * MS);
        bed.sleep(0);
        assert!(bed.entity(ahead).vlag < 0, "it ran while the other waited");
        bed.pass(500 * MS);
        assert!(!bed.wake(ahead, 0), "no sleep makes up for it: {hog:?}");
    }

    #[test]
    fn policies_and_features_come_before_virtual_time() {
        let outcome = |kernel: &str, running: Policy, woken: Policy| {
            let mut bed = SchedulerTestbed::new(kernel, 8, 1);
            let sleeper = bed.spawn_with(0, 0, woken, CpuMask::ALL);
            bed.sleep(0);
            bed.pass(MS);
            let hog = bed.spawn_with(0, 0, running, CpuMask::ALL);
            bed.pass(100 * MS);
            bed.wake(sleeper, 0);
            let pending = bed.scheduler.need_resched(fairlab_event::Cpu(0));
            assert_ne!(hog, sleeper);
            pending
        };
        for kernel in ["v6.5", "v6.6"] {
            assert!(outcome(kernel, Policy::Idle, Policy::Normal), "{kernel}: idle policy always gives way");
            assert!(!outcome(kernel, Policy::Normal, Policy::Batch), "{kernel}: batch never preempts");
            assert!(!outcome(kernel, Policy::Normal, Policy::Idle), "{kernel}: idle policy never preempts");
            assert!(!outcome(&format!("{kernel}+NO_WAKEUP_PREEMPTION"), Policy::Normal, Policy::Normal));
        }
        assert!(outcome("v6.5", Policy::Normal, Policy::Normal));
    }

    #[test]
    fn reasons_are_given() {
        let mut bed = SchedulerTestbed::new("v6.5", 8, 1);
        let (one, other) = (bed.spawn(0, 0), bed.spawn(0, 0));
        assert_eq!(bed.scheduler.wakeup_preempt(one).reason, PreemptReason::SameEntity);
        assert_eq!(bed.scheduler.wakeup_preempt(other).reason, PreemptReason::WithinGranularity);
    }
}
