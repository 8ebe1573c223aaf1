//! Which of several groups is the busiest, and when something is taken from it.

use super::*;
use crate::domain::SchedGroupId;
use CpuIdleType::{Idle, NewlyIdle, NotIdle};

fn types() -> BalanceRules {
    BalanceRules { comparison: Comparison::GroupTypes, ..BalanceRules::BASE }
}

fn spare(idle_cpus: u32, tasks: u32) -> SgLbStats {
    SgLbStats {
        idle_cpus,
        sum_nr_running: tasks,
        sum_h_nr_running: tasks,
        group_weight: 4,
        cores: 2,
        ..SgLbStats::default()
    }
}

fn against(rules: &BalanceRules, groups: &[SgLbStats]) -> Option<u32> {
    let mut sds = SdLbStats::default();
    for (index, group) in groups.iter().enumerate() {
        if rules.is_busier(&sds, group) {
            (sds.busiest, sds.busiest_stat) = (Some(SchedGroupId(index as u32)), *group);
        }
    }
    sds.busiest.map(|group| group.0)
}

#[test]
fn of_groups_with_spare_capacity_the_one_with_the_fewest_idle_cpus_is_the_busiest() {
    let groups = [spare(2, 2), spare(1, 3), spare(1, 5), spare(1, 5)];
    assert_eq!(against(&types(), &groups), Some(1), "the first of equals");
    let by_tasks = BalanceRules { spare_tie: SpareTie::FewestIdleMostTasks, ..types() };
    assert_eq!(against(&by_tasks, &groups), Some(2), "of those the one with the most tasks (5f68eb19b571)");
    assert_eq!(against(&types(), &[spare(4, 0)]), None, "nothing to take");
}

#[test]
fn the_first_of_full_groups_or_the_last_that_is_no_core() {
    let full = SgLbStats { group_type: GroupType::FullyBusy, ..spare(0, 4) };
    let core = SgLbStats { is_smt: true, ..full };
    assert_eq!(against(&types(), &[full, full]), Some(0));
    let last = BalanceRules { full_tie: FullTie::LastUnlessSmt, ..types() };
    assert_eq!(against(&last, &[full, full, core, full]), Some(2));
}

#[test]
fn by_load_the_heaviest_is_the_busiest() {
    let loaded = |avg_load| SgLbStats { avg_load, ..spare(0, 1) };
    let by_load = BalanceRules::BASE;
    assert_eq!(against(&by_load, &[loaded(100), loaded(300), loaded(300)]), Some(1));
    assert_eq!(against(&by_load, &[loaded(0)]), None);
    let overloaded = SgLbStats { group_type: GroupType::Overloaded, ..loaded(1) };
    assert_eq!(against(&by_load, &[loaded(300), overloaded]), Some(1), "its state comes first");
}

#[test]
fn misfits_of_one_size_are_told_by_their_order() {
    let misfit = |misfit_load| SgLbStats { group_type: GroupType::MisfitTask, misfit_load, ..spare(0, 1) };
    let groups = [misfit(5), misfit(9), misfit(9)];
    assert_eq!(against(&types(), &groups), Some(2));
    let strict = BalanceRules { misfit_tie: MisfitTie::FirstOfEquals, ..types() };
    assert_eq!(against(&strict, &groups), Some(1));
}

#[test]
fn a_core_of_several_tasks_gives_way_by_idle_cpus() {
    let smt =
        |idle, tasks| SgLbStats { group_type: GroupType::SmtBalance, is_smt: true, ..spare(idle, tasks) };
    let groups = [smt(2, 2), smt(1, 3)];
    let before =
        BalanceRules { smt_groups: SmtGroups::Relieved, full_tie: FullTie::LastUnlessSmt, ..types() };
    assert_eq!(against(&before, &groups), Some(0));
    let after = BalanceRules { smt_groups: SmtGroups::RelievedByIdle, ..before };
    assert_eq!(against(&after, &groups), Some(1), "450e749707bc");
}

#[test]
fn one_task_on_one_cpu_is_left_there() {
    let mut sds = SdLbStats {
        busiest: Some(SchedGroupId(1)),
        busiest_stat: SgLbStats { group_weight: 1, ..spare(0, 1) },
        local_stat: SgLbStats { group_weight: 1, ..spare(1, 0) },
        ..SdLbStats::default()
    };
    let even = BalanceRules { single_cpu: SingleCpuGroups::ByWaiting, ..types() };
    assert_eq!(even.is_unbalanced(&mut sds, Idle, 117), Err(BalancedReason::NothingWaits));
    sds.busiest_stat.sum_h_nr_running = 2;
    assert_eq!(even.is_unbalanced(&mut sds, Idle, 117), Ok(()));
    assert_eq!(types().is_unbalanced(&mut sds, Idle, 117), Err(BalancedReason::IdleCpusEven));
    assert_eq!(even.is_unbalanced(&mut sds, NotIdle, 117), Err(BalancedReason::LeftToIdleCpus));
}

#[test]
fn siblings_are_compared_by_their_cores() {
    let by_cores = BalanceRules { cores: CoreSpreading::ByCores, ..types() };
    let (big, small) = (SgLbStats { cores: 4, ..spare(0, 4) }, SgLbStats { cores: 1, ..spare(0, 2) });
    let idle = Idle;
    assert_eq!(types().sibling_imbalance(idle, &big, &small), 2);
    assert_eq!(by_cores.sibling_imbalance(idle, &big, &small), 1, "4 over 4 cores are no more than 2 over 1");
    assert_eq!(by_cores.sibling_imbalance(idle, &small, &SgLbStats { sum_nr_running: 0, ..big }), 4);
    assert_eq!(by_cores.sibling_imbalance(NotIdle, &big, &small), 0);
}

/// A pair of groups: what the local one should take from the other.
fn taken(
    rules: &BalanceRules,
    local: SgLbStats,
    busiest: SgLbStats,
    idle: CpuIdleType,
) -> Result<(), BalancedReason> {
    taken_where(rules, false, local, busiest, idle)
}

/// The same where tasks should be spread over siblings.
fn taken_where(
    rules: &BalanceRules,
    prefer_sibling: bool,
    local: SgLbStats,
    busiest: SgLbStats,
    idle: CpuIdleType,
) -> Result<(), BalancedReason> {
    let mut sds = SdLbStats {
        busiest: Some(SchedGroupId(1)),
        busiest_stat: busiest,
        local_stat: local,
        total_load: local.group_load + busiest.group_load,
        total_capacity: local.group_capacity + busiest.group_capacity,
        prefer_sibling,
        ..SdLbStats::default()
    };
    rules.is_unbalanced(&mut sds, idle, 117)
}

/// Four CPUs that bear so much, for each unit of capacity.
fn bears(load: u64, group_type: GroupType) -> SgLbStats {
    let sums = SgLbStats { group_capacity: 4096, group_load: 4 * load, avg_load: load, ..spare(0, 5) };
    SgLbStats { group_type, ..sums }
}

#[test]
fn between_overloaded_groups_the_busiest_must_be_ahead_by_imbalance_pct() {
    let taken = |local, busiest| {
        let (local, busiest) = (bears(local, GroupType::Overloaded), bears(busiest, GroupType::Overloaded));
        taken(&types(), local, busiest, NotIdle)
    };
    assert_eq!(taken(1000, 1170), Err(BalancedReason::WithinPercent));
    assert_eq!(taken(1000, 1171), Ok(()));
    assert_eq!(taken(1000, 1000), Err(BalancedReason::LocalIsBusier));
    assert_eq!(taken(1001, 1000), Err(BalancedReason::LocalIsBusier));
    assert_eq!(taken(0, 1), Err(BalancedReason::AboveAverage), "half of one is nothing");
}

#[test]
fn a_group_in_a_worse_state_takes_nothing() {
    let (overloaded, full) = (bears(1500, GroupType::Overloaded), bears(900, GroupType::FullyBusy));
    assert_eq!(taken(&types(), overloaded, full, Idle), Err(BalancedReason::LocalIsBusier));
    assert_eq!(taken(&types(), full, overloaded, NotIdle), Ok(()), "even if it is busy itself");
    for reason in [GroupType::MisfitTask, GroupType::AsymPacking, GroupType::Imbalanced] {
        let busiest = SgLbStats { group_type: reason, ..full };
        assert_eq!(taken(&types(), overloaded, busiest, NotIdle), Ok(()), "{reason:?}");
    }
    let empty = SgLbStats { sum_h_nr_running: 0, ..overloaded };
    assert_eq!(taken(&types(), full, empty, Idle), Err(BalancedReason::NothingToTake));
    let mut nobody = SdLbStats { busiest_stat: overloaded, ..SdLbStats::default() };
    assert_eq!(types().is_unbalanced(&mut nobody, Idle, 117), Err(BalancedReason::NothingToTake));
}

#[test]
fn siblings_share_tasks_if_one_has_two_more_and_the_other_room() {
    let shared = |prefers, local: SgLbStats, tasks| {
        taken_where(
            &types(),
            prefers,
            local,
            SgLbStats { group_type: GroupType::FullyBusy, ..spare(0, tasks) },
            NotIdle,
        )
    };
    assert_eq!(shared(true, spare(1, 3), 5), Ok(()));
    assert_eq!(shared(true, spare(1, 3), 4), Err(BalancedReason::LeftToIdleCpus));
    assert_eq!(shared(false, spare(1, 3), 5), Err(BalancedReason::LeftToIdleCpus));
    let full = SgLbStats { group_type: GroupType::FullyBusy, ..spare(0, 3) };
    assert_eq!(shared(true, full, 5), Err(BalancedReason::LeftToIdleCpus));
}

#[test]
fn an_idle_cpu_takes_from_a_group_with_two_idle_cpus_less() {
    let by_waiting = BalanceRules { single_cpu: SingleCpuGroups::ByWaiting, ..types() };
    for rules in [types(), by_waiting] {
        for idle in [Idle, NewlyIdle] {
            assert_eq!(taken(&rules, spare(2, 2), spare(1, 3), idle), Err(BalancedReason::IdleCpusEven));
            assert_eq!(taken(&rules, spare(3, 1), spare(1, 3), idle), Ok(()));
        }
        assert_eq!(taken(&rules, spare(3, 1), spare(1, 3), NotIdle), Err(BalancedReason::LeftToIdleCpus));
    }
}

#[test]
fn a_core_that_runs_several_tasks_gives_one_to_a_core_of_another_kind() {
    let rules =
        BalanceRules { smt_groups: SmtGroups::Relieved, single_cpu: SingleCpuGroups::ByWaiting, ..types() };
    let core = SgLbStats { group_type: GroupType::SmtBalance, is_smt: true, group_weight: 2, ..spare(0, 2) };
    let (thread, other_core) = (
        SgLbStats { group_weight: 1, ..spare(1, 0) },
        SgLbStats { is_smt: true, group_weight: 2, ..spare(1, 1) },
    );
    assert_eq!(taken(&rules, thread, core, Idle), Ok(()));
    assert_eq!(taken(&rules, other_core, core, Idle), Err(BalancedReason::IdleCpusEven));
    assert_eq!(taken(&rules, thread, core, NotIdle), Err(BalancedReason::LeftToIdleCpus));
    let spare_core = SgLbStats { group_type: GroupType::HasSpare, ..core };
    assert_eq!(
        taken(&rules, thread, spare_core, Idle),
        Err(BalancedReason::IdleCpusEven),
        "in that state only"
    );
}

#[test]
fn by_load_the_busiest_must_be_ahead_by_imbalance_pct_unless_its_state_says_so() {
    let by_load = BalanceRules::BASE;
    let other = |load| bears(load, GroupType::HasSpare);
    let taken = |local, busiest, idle| taken(&by_load, local, busiest, idle);
    assert_eq!(taken(other(1000), other(1170), NotIdle), Err(BalancedReason::WithinPercent));
    assert_eq!(taken(other(1000), other(1171), NotIdle), Ok(()));
    assert_eq!(taken(other(1000), other(1170), NewlyIdle), Err(BalancedReason::WithinPercent));
    assert_eq!(taken(other(1000), other(1000), NotIdle), Err(BalancedReason::LocalIsBusier));
    assert_eq!(taken(other(0), other(1), NotIdle), Err(BalancedReason::AboveAverage));
    for state in [GroupType::Imbalanced, GroupType::MisfitTask] {
        assert_eq!(taken(other(1000), bears(900, state), NotIdle), Ok(()), "{state:?}");
    }
    assert_eq!(
        taken(other(1000), bears(900, GroupType::Overloaded), NotIdle),
        Err(BalancedReason::LocalIsBusier)
    );
}

#[test]
fn by_load_an_idle_cpu_takes_from_a_group_without_capacity_or_with_two_idle_cpus_less() {
    let by_load = BalanceRules::BASE;
    let here = |idle_cpus, load| SgLbStats { idle_cpus, ..bears(load, GroupType::HasSpare) };
    let taken = |local, busiest, idle| taken(&by_load, local, busiest, idle);
    assert_eq!(taken(here(2, 500), here(1, 600), Idle), Err(BalancedReason::IdleCpusEven));
    assert_eq!(taken(here(3, 500), here(1, 600), Idle), Ok(()), "imbalance_pct does not matter");
    assert_eq!(
        taken(here(2, 500), SgLbStats { group_type: GroupType::Overloaded, ..here(1, 510) }, Idle),
        Ok(())
    );
    // It has no capacity left, and the local group, though it bears more, has.
    let room = SgLbStats { sum_nr_running: 3, ..here(1, 1000) };
    let none_left = SgLbStats { group_no_capacity: true, ..here(0, 900) };
    assert_eq!([Idle, NewlyIdle].map(|idle| taken(room, none_left, idle)), [Ok(()), Ok(())]);
    assert_eq!(taken(room, none_left, NotIdle), Err(BalancedReason::LocalIsBusier));
    assert_eq!(taken(room, here(0, 900), Idle), Err(BalancedReason::LocalIsBusier));
    let full = SgLbStats { sum_nr_running: 5, group_util: 4096, ..here(0, 1000) };
    assert_eq!(taken(full, none_left, Idle), Err(BalancedReason::LocalIsBusier));
}

#[test]
fn by_load_the_largest_misfit_decides_between_groups_with_one() {
    let misfit = |misfit_load, avg_load| SgLbStats {
        group_type: GroupType::MisfitTask,
        misfit_load,
        ..bears(avg_load, GroupType::MisfitTask)
    };
    let by_load = BalanceRules::BASE;
    assert_eq!(against(&by_load, &[misfit(9, 100), misfit(5, 200)]), Some(0));
    assert_eq!(against(&by_load, &[misfit(9, 100), misfit(9, 200)]), Some(1));
    assert_eq!(against(&by_load, &[misfit(5, 200), misfit(9, 100)]), Some(0), "it must bear more, too");
    assert_eq!(against(&by_load, &[misfit(5, 0)]), Some(0));
    assert_eq!(
        against(&by_load, &[bears(100, GroupType::HasSpare), bears(200, GroupType::HasSpare)]),
        Some(1),
        "without misfits"
    );
}

#[test]
fn the_state_of_a_group_comes_before_everything_else() {
    let full = SgLbStats { group_type: GroupType::FullyBusy, ..spare(0, 4) };
    let overloaded = |load| bears(load, GroupType::Overloaded);
    assert_eq!(against(&types(), &[spare(0, 9), full, spare(0, 9)]), Some(1));
    assert_eq!(against(&types(), &[full, overloaded(5), full]), Some(1));
    assert_eq!(against(&types(), &[overloaded(5), overloaded(6), overloaded(6), overloaded(4)]), Some(1));
    let imbalanced = SgLbStats { group_type: GroupType::Imbalanced, ..spare(0, 4) };
    assert_eq!(against(&types(), &[imbalanced, imbalanced]), Some(0), "the first");
    let preferred = |priority| SgLbStats { group_type: GroupType::AsymPacking, priority, ..spare(0, 4) };
    assert_eq!(
        against(&types(), &[preferred(5), preferred(3), preferred(4)]),
        Some(1),
        "the least preferred"
    );
    let idle = SgLbStats { sum_h_nr_running: 0, ..full };
    assert_eq!(
        against(&types(), &[spare(1, 1), idle]),
        Some(0),
        "tasks of other classes are not there to take"
    );
    let by_load = BalanceRules::BASE;
    assert_eq!(
        against(&by_load, &[SgLbStats { sum_h_nr_running: 0, ..bears(9, GroupType::HasSpare) }]),
        Some(0),
        "by load they are"
    );
}

#[test]
fn a_core_with_one_task_is_no_busier_than_a_cpu_without_threads() {
    let relieved = BalanceRules { smt_groups: SmtGroups::Relieved, ..types() };
    let core = |tasks| SgLbStats { is_smt: true, ..spare(1, tasks) };
    assert_eq!(against(&relieved, &[spare(2, 1), core(1)]), Some(0));
    assert_eq!(against(&relieved, &[spare(0, 1), core(2)]), Some(1));
    assert_eq!(against(&relieved, &[core(2), spare(2, 1)]), Some(1), "that has its task from no one");
    assert_eq!(against(&types(), &[spare(2, 1), core(1)]), Some(1), "to v6.5 by idle CPUs");
    assert_eq!(
        against(&relieved, &[core(2), SgLbStats { idle_cpus: 0, ..core(2) }]),
        Some(1),
        "two alike, by idle CPUs"
    );
}

#[test]
fn cores_of_several_tasks_are_told_by_load_if_none_has_an_idle_thread() {
    let smt = |idle, avg_load| SgLbStats {
        group_type: GroupType::SmtBalance,
        is_smt: true,
        avg_load,
        ..spare(idle, 2)
    };
    let rules = BalanceRules { smt_groups: SmtGroups::RelievedByIdle, ..types() };
    assert_eq!(against(&rules, &[smt(0, 5), smt(0, 9)]), Some(1));
    assert_eq!(against(&rules, &[smt(0, 5), smt(1, 9)]), Some(0));
    assert_eq!(against(&rules, &[smt(1, 5), smt(0, 3)]), Some(1));
}

#[test]
fn a_core_gives_one_of_two_tasks_to_a_larger_one_that_is_empty() {
    let by_cores = BalanceRules { cores: CoreSpreading::ByCores, ..types() };
    let small = |tasks| SgLbStats { cores: 1, ..spare(0, tasks) };
    let big = |tasks| SgLbStats { cores: 4, ..spare(4, tasks) };
    let ahead = |busiest, local| by_cores.sibling_imbalance(Idle, &busiest, &local);
    assert_eq!(ahead(big(2), small(0)), 2, "two over four cores, none over one");
    assert_eq!(ahead(big(1), small(0)), 1, "one task stays one");
    assert_eq!(ahead(big(2), small(1)), 1);
    assert_eq!(
        ahead(SgLbStats { cores: 2, ..big(5) }, SgLbStats { cores: 2, ..small(2) }),
        3,
        "cores alike: as before"
    );
    assert_eq!(ahead(SgLbStats { cores: 2, ..big(2) }, SgLbStats { cores: 2, ..small(5) }), 0);
    assert_eq!(ahead(big(0), small(0)), 0);
}
