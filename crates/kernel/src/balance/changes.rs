//! What each upstream commit changed in balancing, oldest first within a release.
//!
//! Must not know: what the rules do.

use super::rules::{
    ActiveBalance, AffinityMark, AllPinned, ArrivalUse, BackOff, BalanceEffect, BalanceLoad, Balancer,
    BiggerCpus, BlockedLimit, BlockedTells, BusyInterval, CapacityMargin, Comparison, CoreSpreading,
    CostBump, CostDecay, CountedFailures, CountedTasks, DelayedCount, DelayedMoves, EmptyQueue,
    EnergyBalance, EnergyOverload, FullTie, GroupRunnable, Halving, IdlePolicyBusy, IdleTick, IlbAbort,
    IlbChoice, IlbOrder, IlbUpdate, Ineligible, LeftForFair, LoadStep, LocalAverage, LookLimit, Misfit,
    MisfitSize, MisfitTie, NewidleChance, NewidleCost, NewidleGate, NewidleNext, NewidlePull, NewidleStats,
    NewidleUpdate, NextKick, NextUpdate, NoLoad, NumaAllowance, Packing, PackingPush, PendingWakeup,
    PercpuKthreads, PushFailures, PushInterval, ReducedCapacity, RepickedTask, SiblingPreference,
    SingleCpuGroups, SmtGroups, SmtHeat, SpareCapacity, SpareTie, UtilSource, UtilStep,
};
use crate::generation::{Change, Effect, Feature, Release};

/// A commit that replaces rules of balancing.
macro_rules! change {
    ($commit:literal, $name:literal, ($major:literal, $minor:literal), $subject:literal, [$($rule:ident::$variant:ident),* $(,)?] $(, $more:expr)* $(,)?) => {
        Change {
            commit: $commit,
            name: $name,
            release: Some(Release($major, $minor)),
            subject: $subject,
            effects: &[$(Effect::Balance(BalanceEffect::$rule($rule::$variant)),)* $($more,)*],
            tracking: &[],
        }
    };
}

/// A commit that matters and that the model does not follow, or that changes no decision.
const fn noted(
    commit: &'static str,
    name: &'static str,
    release: (u32, u32),
    subject: &'static str,
    effects: &'static [Effect],
) -> Change {
    Change { commit, name, release: Some(Release(release.0, release.1)), subject, effects, tracking: &[] }
}

/// Every change since v4.18 that balancing depends on.
#[rustfmt::skip]
pub(crate) const BALANCE_CHANGES: &[Change] = &[
    change!("523e979d3164", "capacity-by-pelt", (4, 19), "sched/core: Use PELT for scale_rt_capacity()", [LeftForFair::Averages]),
    change!("3b1baa6496e6", "misfit", (4, 20), "sched/fair: Add 'group_misfit_task' load-balance type", [Misfit::GroupType]),
    change!("4ad3831a9d4a", "spare-bigger-cpus", (4, 20), "sched/fair: Don't move tasks to lower capacity CPUs unless necessary", [BiggerCpus::SparedByQueue]),
    change!("2802bf3cd936", "overutilized", (5, 0), "sched/fair: Add over-utilization/tipping point indicator", [EnergyBalance::Stay]),
    change!("3f130a37c442", "newidle-interval", (5, 0), "sched/fair: Don't increase sd->balance_interval on newidle balance", [BackOff::NotNewidle]),
    change!("", "packing-when-idle", (5, 1), "sched/fair: Trigger asym_packing during idle load balance", [PackingPush::Idle]),
    change!("46a745d90585", "voluntary-interval", (5, 1), "sched/fair: Fix unnecessary increase of balance interval", [PushInterval::BacksOffUnlessVoluntary]),
    change!("9b019acb72e4", "ilb-first-idle", (5, 2), "sched/nohz: Run NOHZ idle load balancer on HK_FLAG_MISC CPUs", [IlbChoice::FirstIdle]),
    change!("f6cad8df6b30", "pinned-imbalance", (5, 4), "sched/fair: Fix imbalance due to CPU affinity", [AffinityMark::ClearedUnlessAllPinned]),
    noted("490ba971d8b4", "asym-packing", (5, 5), "sched/fair: Clean up asym packing", &[
        Effect::Groundwork("what 0b0695f2b34a takes up; no functional change by itself"),
    ]),
    change!("fcf0553db6f4", "no-small-imbalance", (5, 5), "sched/fair: Remove meaningless imbalance calculation", [Comparison::Load]),
    change!("0b0695f2b34a", "rework", (5, 5), "sched/fair: Rework load_balance()", [Comparison::GroupTypes]),
    change!("5e23e4744315", "all-classes", (5, 5), "sched/fair: Use rq->nr_running when balancing load", [CountedTasks::AllClasses]),
    change!("b0fb1eb4f04a", "blocked-load", (5, 5), "sched/fair: Use load instead of runnable load in load_balance()", [BalanceLoad::WithBlocked]),
    change!("2ab4092fc82d", "even-spread", (5, 5), "sched/fair: Spread out tasks evenly when not overloaded", [SingleCpuGroups::ByWaiting]),
    change!("c63be7be59de", "misfit-by-util", (5, 5), "sched/fair: Use utilization to select misfit task", [MisfitSize::ByCapacity]),
    change!("6cf82d559e1a", "load-step", (5, 5), "sched/cfs: fix spurious active migration", [LoadStep::TwiceUnlessFailing]),
    change!("5f68eb19b571", "spare-tie", (5, 6), "sched/fair : Improve update_sd_pick_busiest for spare capacity case", [SpareTie::FewestIdleMostTasks]),
    change!("323af6deaf70", "idle-policy-interval", (5, 6), "sched/fair: Load balance aggressively for SCHED_IDLE CPUs", [IdlePolicyBusy::Idle]),
    change!("b396f52326de", "numa-pair", (5, 6), "sched/fair: Allow a small load imbalance between low utilisation SD_NUMA domains", [NumaAllowance::PairInSource]),
    change!("070f5e860ee2", "group-runnable", (5, 7), "sched/fair: Take into account runnable_avg to classify group", [GroupRunnable::Counts]),
    change!("c32b4308295a", "util-source", (5, 7), "sched/fair: Improve spreading of utilization", [UtilSource::QueueWithWaiting]),
    change!("111688ca1c4a", "negative-imbalance", (5, 7), "sched/fair: Fix negative imbalance in imbalance calculation", [LocalAverage::BelowSource]),
    change!("01cfcde9c26d", "no-load", (5, 8), "sched/fair: handle case of task_h_load() returning 0", [NoLoad::One]),
    change!("3ea2f097b17e", "next-kick", (5, 9), "sched/fair: Fix NOHZ next idle balance", [NextKick::NextTick]),
    change!("ec73240b1627", "smt-heat", (5, 10), "sched/fair: Ignore cache hotness for SMT migration", [SmtHeat::ColdBetweenThreads]),
    change!("5a7f55590467", "load-doubling", (5, 10), "sched/fair: Relax constraint on task's load during load balance", [LoadStep::DoublingWithFailures]),
    change!("e4d32e4d5444", "less-a-tick", (5, 10), "sched/fair: Minimize concurrent LBs between domain level", [BusyInterval::LessATick]),
    change!("8e1ac4299a6e", "overutilized-arrival", (5, 10), "sched/fair: Fix overutilized update in enqueue_task_fair()", [ArrivalUse::CountsAtTick]),
    change!("16b0a7a1a0af", "spread-in-llc", (5, 10), "sched/fair: Ensure tasks spreading in LLC during LB", [SpareCapacity::BeyondCache]),
    noted("45da7a2b0af8", "ilb-other", (5, 11), "sched/fair: Exclude the current CPU from find_new_ilb()", &[Effect::Groundwork("a CPU that kicks another is busy, and was never found idle")]),
    change!("7d2b5dd0bcc4", "numa-quarter", (5, 11), "sched/numa: Allow a floating imbalance between NUMA nodes", [NumaAllowance::QuarterOfSource]),
    change!("fc488ffd4297", "skip-empty-queue", (5, 12), "sched/fair: Skip idle cfs_rq", [EmptyQueue::PassedOver]),
    change!("8a41dfcda7a3", "all-pinned", (5, 12), "sched/fair: Don't set LBF_ALL_PINNED unnecessarily", [AllPinned::UntilMovable]),
    change!("e9b9734b7465", "fewer-pushes", (5, 12), "sched/fair: Reduce cases for active balance", [ActiveBalance::TasksOnly]),
    change!("0826530de3cb", "newidle-no-stats", (5, 13), "sched/fair: Remove update of blocked load from newidle_balance", [NewidleStats::LeftAsTheyAre, NewidleUpdate::KicksOther]),
    change!("64f84f273592", "ilb-once-per-tick", (5, 13), "sched/fair: Remove unused parameter of update_nohz_stats", [IlbUpdate::OncePerTick]),
    change!("7a82e5f52a35", "ilb-order", (5, 13), "sched/fair: Merge for each idle cpu loop of ILB", [IlbOrder::FromNext]),
    noted("6553fc181791", "newidle-pulled-order", (5, 13), "sched/fair: Reorder newidle_balance pulled_task tests", &[Effect::Groundwork("left out are tests that cannot come out otherwise where nothing was searched")]),
    change!("c6f886546cb8", "newidle-in-idle-loop", (5, 13), "sched/fair: Trigger the update of blocked load on newly idle cpu", [NewidleUpdate::InIdleLoop]),
    change!("acb4decc1e90", "newidle-woken", (5, 13), "sched/fair: Reduce long-tail newly idle balance cost", [PendingWakeup::EndsBetweenLevels]),
    change!("4aed8aa41524", "capacity-margin", (5, 13), "sched/fair: Introduce a CPU capacity comparison helper", [CapacityMargin::Twentieth]),
    change!("39a2a6eb5c9b", "load-shift", (5, 13), "sched/fair: Fix shift-out-of-bounds in load_balance()", [LoadStep::DoublingWithinWord]),
    change!("9bcb959d05ee", "percpu-kthreads", (5, 13), "sched/fair: Ignore percpu threads for imbalance pulls", [PercpuKthreads::PassedOver]),
    change!("23fb06d9602b", "push-failures", (5, 13), "sched/fair: Clean up active balance nr_balance_failed trickery", [PushFailures::Kept, PushInterval::ResetIfNeeded]),
    change!("e5e678e4fea2", "newidle-pending", (5, 13), "sched,fair: Skip newidle_balance if a wakeup is pending", [PendingWakeup::EndsBeforeAndBetween]),
    change!("02da26ad5ed6", "blocked-tells", (5, 13), "sched/fair: Make sure to update tg contrib for blocked load", [BlockedTells::QueuesAndParents]),
    change!("9e9af819db5d", "newidle-cost", (5, 16), "sched/fair: Account update_blocked_averages in newidle_balance cost", [NewidleCost::SearchAndUpdate]),
    change!("9d783c8dd112", "newidle-lowest-cost", (5, 16), "sched/fair: Skip update_blocked_averages if we are defering load balance", [NewidleGate::MigrationAndDomainCost]),
    change!("e60b56e46b38", "cost-decay", (5, 16), "sched/fair: Wait before decaying max_newidle_lb_cost", [CostDecay::AfterQuietSecond]),
    change!("c5b0a7eefc70", "no-migration-cost", (5, 16), "sched/fair: Remove sysctl_sched_migration_cost condition", [NewidleGate::DomainCost]),
    change!("4006a72bdd93", "asym-smt", (5, 16), "sched/fair: Consider SMT in ASYM_PACKING load balance", [Packing::BySiblings]),
    noted("efd984c481ab", "next-kick-flag", (5, 16), "sched/fair: Add NOHZ balancer flag for nohz.next_balance updates", &[Effect::Groundwork("a flag that 7fd7a9e0caba is the first to set")]),
    change!("7fd7a9e0caba", "next-update", (5, 16), "sched/fair: Trigger nohz.next_balance updates when a CPU goes NOHZ-idle", [NextUpdate::Kicked]),
    change!("792b9f65a568", "newidle-bails", (6, 0), "sched: Allow newidle balancing to bail out of load_balance", [PendingWakeup::EndsEverywhere]),
    change!("cb29a5c19d2d", "numa-halving", (6, 0), "sched/numa: Apply imbalance limitations consistently", [Halving::AfterAllowance]),
    change!("c82a69629c53", "reduced-capacity", (6, 0), "sched/fair: fix case with reduced capacity CPU", [ReducedCapacity::GroupType]),
    change!("b0defa7ae03e", "look-further", (6, 1), "sched/fair: Make sure to try to detach at least one movable task", [LookLimit::UntilOneAllowed]),
    change!("91dcf1e8068e", "imbalance-overflow", (6, 3), "sched/fair: Fix imbalance overflow", [LocalAverage::BelowDomain]),
    noted("e5ed0550c04c", "misfit-under-energy", (6, 3), "sched/fair: unlink misfit task from cpu overutilized", &[Effect::Groundwork("without clamps a CPU whose task is too large for it is overutilized")]),
    change!("eefefa716c9f", "packing-idle-cores", (6, 5), "sched/fair: Only do asym_packing load balancing from fully idle SMT cores", [Packing::FromIdleCores]),
    noted("ef7657d4d2d6", "packing-simpler", (6, 5), "sched/fair: Simplify asym_packing logic for SMT cores", &[Effect::NotModelled("taken as a part of eefefa716c9f")]),
    noted("18ad34532755", "packing-helps", (6, 5), "sched/fair: Let low-priority cores help high-priority busy SMT cores", &[Effect::NotModelled("taken as a part of eefefa716c9f")]),
    noted("c9ca07886aaa", "packing-not-even", (6, 5), "sched/fair: Do not even the number of busy CPUs via asym_packing", &[Effect::NotModelled("taken as a part of eefefa716c9f")]),
    change!("5fd6d7f43958", "full-smt-tie", (6, 5), "sched/fair: Keep a fully_busy SMT sched group as busiest", [FullTie::LastUnlessSmt]),
    change!("43726bdedd29", "busiest-sibling", (6, 5), "sched/fair: Use the busiest group to set prefer_sibling", [SiblingPreference::OfBusiest]),
    change!("fee1759e4f04", "smt-groups", (6, 6), "sched/fair: Determine active load balance for SMT sched groups", [SmtGroups::Relieved]),
    change!("7ff1693236f5", "core-spreading", (6, 6), "sched/fair: Implement prefer sibling imbalance calculation between asymmetric groups", [CoreSpreading::ByCores]),
    change!("b1bfeab9b002", "idle-core", (6, 6), "sched/fair: Consider the idle state of the whole core for load balance", [Balancer::IdleCoreOrOthers]),
    noted("f8858d96061f", "idle-core-fast", (6, 6), "sched/fair: Optimize should_we_balance() for large SMT systems", &[Effect::Groundwork("the same CPU is found with fewer looks")]),
    change!("450e749707bc", "smt4", (6, 6), "sched/fair: Fix SMT4 group_smt_balance handling", [SmtGroups::RelievedByIdle]),
    change!("1c0482707c42", "newidle-next", (6, 7), "sched/fair: Update ->next_balance correctly during newidle balance", [NewidleNext::Before]),
    change!("6d7e4782bcf5", "idle-core-fix", (6, 7), "sched/fair: Fix the decision for load balance", [Balancer::IdleCore]),
    change!("3af7524b1419", "util-doubling", (6, 8), "sched/fair: Use all little CPUs for CPU-bound workloads", [UtilStep::DoublingWithFailures]),
    change!("7f1a7229718d", "misfit-tie", (6, 9), "sched/fair: Do strict inequality check for busiest misfit task group", [MisfitTie::FirstOfEquals]),
    change!("58eeb2d79b54", "misfit-interval", (6, 10), "sched/fair: Don't double balance_interval for migrate_misfit", [BackOff::NotNewidleNorMisfit, CountedFailures::NotMisfit]),
    noted("c829d6818b60", "newidle-continue", (6, 10), "sched/fair: Simplify the continue_balancing logic in sched_balance_newidle()", &[Effect::Groundwork("one variable instead of two")]),
    change!("2feab2492deb", "look-no-further", (6, 10), "Revert \"sched/fair: Make sure to try to detach at least one movable task\"", [LookLimit::NrMigrate]),
    change!("dae4320b29f0", "repicked-task", (6, 12), "sched: Fixup set_next_task() implementations", [RepickedTask::WhereItStood]),
    change!("ff47a0acfcce", "ilb-idle", (6, 13), "sched/fair: Check idle_cpu() before need_resched() to detect ilb CPU turning busy", [IlbAbort::BusyAndNeedResched]),
    change!("1a49104496d3", "h-nr-runnable", (6, 14), "sched/fair: Use the new cfs_rq.h_nr_runnable", [DelayedCount::Runnable]),
    change!("61b82dfb6b7e", "delayed-stay", (6, 14), "sched/fair: Do not try to migrate delayed dequeue task", [DelayedMoves::ForLoadOnly]),
    noted("3229adbe7875", "overloaded-at-root", (6, 14), "sched/fair: Do not compute overloaded status unnecessarily during lb", &[Effect::Groundwork("what only the root domain reads is computed only there")]),
    change!("873199d27bb2", "eligible-first", (6, 14), "sched/core: Prioritize migrating eligible tasks in sched_balance_rq()", [Ineligible::AfterFailure]),
    change!("155213a2aed4", "cost-bump", (6, 17), "sched/fair: Bump sd->max_newidle_lb_cost when newidle balance fails", [CostBump::HalfMore]),
    change!("d206fbad9328", "no-cost-bump", (6, 19), "sched/fair: Revert max_newidle_lb_cost bump", [CostBump::None]),
    change!("33cf66d88306", "newidle-chance", (6, 19), "sched/fair: Proportional newidle balance", [NewidleChance::BySuccess], Effect::AddFeature(Feature::NiRandom, true)),
    noted("522fb20fbdbe", "newidle-serialize", (6, 19), "sched/fair: Have SD_SERIALIZE affect newidle balancing", &[
        Effect::NotModelled("a level that one CPU at a time may balance"),
    ]),
    noted("45e09225085f", "newidle-lock", (7, 0), "sched/fair: Avoid rq->lock bouncing in sched_balance_newidle()", &[Effect::Groundwork("a lock is taken and released less often")]),
    change!("f4c31b07b136", "idle-tick", (7, 0), "sched: idle: Consolidate the handling of two special cases", [IdleTick::StopsAfterOne]),
    change!("d3d663faa1d4", "eas-overload", (7, 1), "sched/fair: Filter false overloaded_group case for EAS", [EnergyOverload::WithOverutilizedCpu]),
    change!("9fe89f022c05", "newidle-rate", (7, 1), "sched/fair: More complex proportional newidle balance", [NewidleChance::BySuccessAndRate], Effect::AddFeature(Feature::NiRate, true)),
    // A choice of who builds the kernel, which 7dadeaa6e851 takes away: since CONFIG_PREEMPT_DYNAMIC most are built so.
    Change {
        commit: "",
        name: "preemptible",
        release: None,
        subject: "a build option: CONFIG_PREEMPTION, which CONFIG_PREEMPT_DYNAMIC implies whatever is chosen at boot",
        effects: &[Effect::Balance(BalanceEffect::NewidlePull(NewidlePull::OneTask))],
        tracking: &[],
    },
    Change {
        commit: "",
        name: "nohz-blocked-rate-limit",
        release: None,
        subject: "sched/fair: Rate limit calls to update_blocked_averages() for NOHZ",
        effects: &[Effect::Balance(BalanceEffect::BlockedLimit(BlockedLimit::Twentieth))],
        tracking: &[],
    },
];
