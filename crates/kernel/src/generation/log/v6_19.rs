//! Commits that v6.19 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("79104becf42b", git("2025-10-16"), "forfeit-on-yield", "sched/fair: Forfeit vruntime on yield", &[Fair(Yield::ForfeitRequest.effect())]),
    commit("06f2c90885e9", git("2025-10-16"), "platform-distances", "sched: Create architecture specific sched domain distances", &[
        NotModelled(&[Nodes], "NUMA levels that a platform names itself"),
    ]),
    commit("82d6e01a0699", git("2025-10-16"), "idlest-allowed", "sched/fair: Only update stats for allowed CPUs when looking for dst group", &[
        Select(IdlestCounts::AllowedCpus.effect()),
    ]),
    commit("50653216e4ff", git("2025-10-16"), "newidle-every-pick", "sched: Add support to pick functions to take rf", &[
        Balance(NewidlePlace::InPick.effect()),
    ]),
    commit("79f3f9bedd14", git("2025-11-11"), "zero-vruntime", "sched/eevdf: Fix min_vruntime vs avg_vruntime", &[
        Fair(VirtualZero::AverageAtQueueing.effect()),
    ]),
    commit("f5a538c07df2", memory("2025-11-11"), "server-stops-after-idling", "sched/deadline: Fix dl_server stop condition", &[
        Server(StopServer::AfterIdling.effect()),
        Server(IdleCharge::AsRun.effect()),
    ]),
    commit("e636ffb9e31b", memory("2025-11-11"), "server-idle-time", "sched/deadline: Fix dl_server time accounting", &[
        NotModelled(&[Apart("f5a538c07df2")], "told in the row of f5a538c07df2, which it follows"),
    ]),
    commit("aceccac58ad7", git("2025-11-17"), "next-buddy-on", "sched/fair: Enable scheduler feature NEXT_BUDDY", &[
        SetFeature(Feature::NextBuddy, true),
    ]),
    commit("e837456fdca8", git("2025-11-17"), "fork-never-preempts", "sched/fair: Reimplement NEXT_BUDDY to align with EEVDF goals", &[
        Fair(ForkPreemption::OnlyShorter.effect()),
        Fair(TestPick::BuddyFirst.effect()),
        Fair(WokenBuddy::EarlierDeadline.effect()),
        Preemption(ForcedPreemption::Ineligible.effect()),
    ]),
    commit("d206fbad9328", git("2025-11-17"), "no-cost-bump", "sched/fair: Revert max_newidle_lb_cost bump", &[Balance(CostBump::None.effect())]),
    commit("33cf66d88306", git("2025-11-17"), "newidle-chance", "sched/fair: Proportional newidle balance", &[
        Balance(NewidleChance::BySuccess.effect()),
        AddFeature(Feature::NiRandom, true),
    ]),
    commit("522fb20fbdbe", memory("2025-11"), "newidle-serialize", "sched/fair: Have SD_SERIALIZE affect newidle balancing", &[
        NotModelled(&[Nodes], "a level that one CPU at a time may balance"),
    ]),
    commit("ca125231dd29", git("2025-12-06"), "stalled-contribution", "sched/fair: Fix unfairness caused by stalled tg_load_avg_contrib when the last task migrates out", &[
        Pelt(QueueDecay::NoContribution.effect()),
    ]),
    commit("98c88dc8a1ac", git("2026-01-21"), "idle-sync-at-idle", "sched/fair: Fix pelt clock sync when entering idle", &[
        Pelt(LostIdleCheck::EveryIdling.effect()),
    ]),
    commit("15257cc2f905", git("2026-01-23"), "no-forced-preemption", "sched/fair: Revert force wakeup preemption", &[
        Preemption(ForcedPreemption::Never.effect()),
    ]),
    commit("4f70f106bca1", git("2026-01-23"), "next-buddy-off", "sched/fair: Disable scheduler feature NEXT_BUDDY", &[
        SetFeature(Feature::NextBuddy, false),
    ]),
    commit("115135422562", memory("2026-01-30"), "server-starts-deferred", "sched/deadline: Fix 'stuck' dl_server", &[
        Server(ServerStart::Deferred.effect()),
    ]),
];
