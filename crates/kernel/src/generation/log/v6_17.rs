//! Commits that v6.17 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("155213a2aed4", git("2025-07-09"), "cost-bump", "sched/fair: Bump sd->max_newidle_lb_cost when newidle balance fails", &[
        Balance(CostBump::HalfMore.effect()),
    ]),
    commit("3a0baa8e6c57", git("2025-07-09"), "protect-shortest", "sched/fair: Fix entity's lag with run to parity", &[
        Fair(SliceProtection::UntilShortestRequest.effect()),
    ]),
    commit("052c3d87c82e", git("2025-07-09"), "parity-least-slice", "sched/fair: Limit run to parity to the min slice of enqueued entities", &[
        NotModelled(&[Apart("3a0baa8e6c57")], "told in the row of 3a0baa8e6c57, which follows it"),
    ]),
    commit("0b9ca2dcabc3", git("2025-07-09"), "protection-reschedules", "sched/fair: Always trigger resched at the end of a protected period", &[
        NotModelled(&[Apart("3a0baa8e6c57")], "told in the row of 3a0baa8e6c57, of the series"),
    ]),
    commit("cccb45d7c429", page("2025-07-09"), "server-less-eager", "sched/deadline: Less agressive dl_server handling", &[
        Server(StopServer::AtPick.effect()),
    ]),
    commit("f79c9aa446d6", git("2025-07-14"), "smt-level-if-smt", "x86/smpboot: avoid SMT domain attach/destroy if SMT is not enabled", &[
        Domain(SmtLevel::IfThreads.effect()),
    ]),
    commit("1eec89a67141", git("2025-07-14"), "no-overlap-flag", "sched/topology: Remove sched_domain_topology_level::flags", &[
        Domain(OverlapFlag::Gone.effect()),
    ]),
    commit("52d15521eb75", memory("2025-08"), "server-not-counted", "sched/deadline: Don't count nr_running for dl_server proxy tasks", &[
        Server(CountServer::NotAtAll.effect()),
    ]),
];
