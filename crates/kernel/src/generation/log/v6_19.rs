//! Commits that v6.19 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[Change] = &[
    commit("79104becf42b", git("2025-10-16"), "forfeit-on-yield", "sched/fair: Forfeit vruntime on yield", &[Fair(Yield::ForfeitRequest.effect())]),
    commit("82d6e01a0699", git("2025-10-16"), "idlest-allowed", "sched/fair: Only update stats for allowed CPUs when looking for dst group", &[
        Select(IdlestCounts::AllowedCpus.effect()),
    ]),
    commit("79f3f9bedd14", git("2025-11-11"), "zero-vruntime", "sched/eevdf: Fix min_vruntime vs avg_vruntime", &[
        Fair(VirtualZero::AverageAtQueueing.effect()),
    ]),
    commit("e837456fdca8", git("2025-11-17"), "fork-never-preempts", "sched/fair: Reimplement NEXT_BUDDY to align with EEVDF goals", &[
        Fair(ForkPreemption::OnlyShorter.effect()),
        Fair(TestPick::BuddyFirst.effect()),
        Fair(WokenBuddy::EarlierDeadline.effect()),
    ]),
    commit("d206fbad9328", git("2025-11-17"), "no-cost-bump", "sched/fair: Revert max_newidle_lb_cost bump", &[Balance(CostBump::None.effect())]),
    commit("33cf66d88306", git("2025-11-17"), "newidle-chance", "sched/fair: Proportional newidle balance", &[
        Balance(NewidleChance::BySuccess.effect()),
        AddFeature(Feature::NiRandom, true),
    ]),
    commit("522fb20fbdbe", memory("2025-11"), "newidle-serialize", "sched/fair: Have SD_SERIALIZE affect newidle balancing", &[
        NotModelled("a level that one CPU at a time may balance"),
    ]),
    commit("ca125231dd29", git("2025-12-06"), "stalled-contribution", "sched/fair: Fix unfairness caused by stalled tg_load_avg_contrib when the last task migrates out", &[
        Pelt(QueueDecay::NoContribution.effect()),
    ]),
];
