//! Commits that v6.5 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("eefefa716c9f", git("2023-05-08"), "packing-idle-cores", "sched/fair: Only do asym_packing load balancing from fully idle SMT cores", &[
        Balance(Packing::FromIdleCores.effect()),
    ]),
    commit("ef7657d4d2d6", memory("2023-05-08"), "packing-simpler", "sched/fair: Simplify asym_packing logic for SMT cores", &[
        NotModelled(&[Apart("eefefa716c9f"), PreferredCpus], "taken as a part of eefefa716c9f"),
    ]),
    commit("18ad34532755", memory("2023-05-08"), "packing-helps", "sched/fair: Let low-priority cores help high-priority busy SMT cores", &[
        NotModelled(&[Apart("eefefa716c9f"), PreferredCpus], "taken as a part of eefefa716c9f"),
    ]),
    commit("5fd6d7f43958", git("2023-05-08"), "full-smt-tie", "sched/fair: Keep a fully_busy SMT sched group as busiest", &[
        Balance(FullTie::LastUnlessSmt.effect()),
    ]),
    commit("43726bdedd29", git("2023-05-08"), "busiest-sibling", "sched/fair: Use the busiest group to set prefer_sibling", &[
        Balance(SiblingPreference::OfBusiest.effect()),
    ]),
    commit("c9ca07886aaa", memory("2023-05-08"), "packing-not-even", "sched/fair: Do not even the number of busy CPUs via asym_packing", &[
        NotModelled(&[Apart("eefefa716c9f"), PreferredCpus], "taken as a part of eefefa716c9f"),
    ]),
    commit("995998ebdebd", git("2023-05-08"), "packing-cores-only", "x86/sched: Remove SD_ASYM_PACKING from the SMT domain flags", &[
        Domain(PackingLevels::Cores.effect()),
    ]),
    commit("046a5a95c3b0", git("2023-05-08"), "core-priority", "x86/sched/itmt: Give all SMT siblings of a core the same priority", &[
        Domain(SiblingPriority::OfCore.effect()),
    ]),
    commit("044f0e27dec6", memory("2023-05-08"), "packing-packages", "x86/sched: Add the SD_ASYM_PACKING flag to the die domain of hybrid processors", &[
        NotModelled(&[PreferredCpus], "packing of tasks beyond one cache"),
    ]),
    commit("bf2dc42d6beb", git("2023-05-08"), "group-smt-flag", "sched/topology: Propagate SMT flags when removing degenerate domain", &[
        Domain(GroupFlags::SmtKept.effect()),
    ]),
    commit("7d0583cf9ec7", git("2023-06-05"), "runnable-boost", "sched/fair, cpufreq: Introduce 'runnable boosting'", &[
        Pelt(RunnableBoost::Estimate.effect()),
    ]),
    commit("0dd37d6dd33a", git("2023-06-05"), "not-to-itself", "sched/fair: Don't balance task to its current running CPU", &[
        OutOfSight("a running task that is pushed to where it runs"),
    ]),
    commit("ae2ad293d6be", git("2023-07-10"), "recent-allowed", "sched/fair: Use recent_used_cpu to test p->cpus_ptr", &[
        Select(RecentAllowed::Itself.effect()),
    ]),
];
