//! How much is moved between two groups, in what measure, by the rules of each era.

use super::super::rules::MisfitSize;
use super::*;
use crate::domain::SchedGroupId;

fn types() -> BalanceRules {
    BalanceRules { comparison: Comparison::GroupTypes, ..BalanceRules::BASE }
}

const IDLE: ImbalanceTarget =
    ImbalanceTarget { idle: CpuIdleType::Idle, flags: SdFlags::EMPTY, imb_numa_nr: 2, load_per_task_here: 0 };
const IN_LLC: ImbalanceTarget = ImbalanceTarget { flags: SdFlags::SHARE_LLC, ..IDLE };

fn cpu(tasks: u32, util: u64) -> SgLbStats {
    SgLbStats {
        group_capacity: 1024,
        group_util: util,
        sum_nr_running: tasks,
        sum_h_nr_running: tasks,
        idle_cpus: u32::from(tasks == 0),
        group_weight: 1,
        ..SgLbStats::default()
    }
}

fn domain(local: SgLbStats, busiest: SgLbStats) -> SdLbStats {
    SdLbStats {
        busiest: Some(SchedGroupId(1)),
        busiest_stat: busiest,
        local_stat: local,
        ..SdLbStats::default()
    }
}

/// A CPU whose worker has just gone to sleep, beside one with two hogs.
#[test]
fn an_idle_cpu_fills_up_by_utilization_or_within_a_cache_by_tasks() {
    let busiest = SgLbStats { group_type: GroupType::Overloaded, ..cpu(2, 1023) };
    let imbalance = |rules: &BalanceRules, local: SgLbStats, how| {
        let imbalance = rules.calculate_imbalance(&mut domain(local, busiest), how);
        (imbalance.migration, imbalance.amount)
    };
    assert_eq!(imbalance(&types(), cpu(0, 464), IN_LLC), (MigrationType::Util, 560));
    assert_eq!(imbalance(&types(), cpu(0, 1024), IN_LLC), (MigrationType::Task, 1), "no capacity to tell");
    let fixed = BalanceRules { spare: SpareCapacity::BeyondCache, ..types() };
    assert_eq!(imbalance(&fixed, cpu(0, 464), IN_LLC), (MigrationType::Task, 1), "16b0a7a1a0af");
    assert_eq!(imbalance(&fixed, cpu(0, 464), IDLE), (MigrationType::Util, 560));
}

#[test]
fn nodes_keep_a_pair_of_tasks() {
    let node = |tasks, idle_cpus| SgLbStats { group_weight: 8, idle_cpus, ..cpu(tasks, 100) };
    let numa = ImbalanceTarget { flags: SdFlags::NUMA, ..IDLE };
    let moved = |numa_rule, halving, busiest, local, how| {
        let rules = BalanceRules { numa: numa_rule, halving, ..types() };
        rules.calculate_imbalance(&mut domain(local, busiest), how).amount
    };
    use {Halving::*, NumaAllowance::*};
    let (two, five) = ((node(2, 6), node(0, 8)), (node(5, 3), node(0, 8)));
    assert_eq!(moved(Nothing, BeforeAllowance, two.0, two.1, numa), 1);
    assert_eq!(moved(PairInSource, BeforeAllowance, two.0, two.1, numa), 0);
    assert_eq!(moved(PairInSource, BeforeAllowance, two.0, two.1, IDLE), 1, "only between nodes");
    assert_eq!(moved(PairInSource, BeforeAllowance, five.0, five.1, numa), 2);
    assert_eq!(moved(QuarterOfSource, BeforeAllowance, two.0, two.1, numa), 1, "2 is no less than 8 / 4");
    assert_eq!(moved(QuarterOfTarget, BeforeAllowance, two.0, two.1, numa), 0, "0 + 1 is");
    assert_eq!(moved(PerCache, BeforeAllowance, five.0, five.1, numa), 0);
    assert_eq!(moved(PerCache, AfterAllowance, five.0, five.1, numa), 2, "five are more than two");
    let alone = ImbalanceTarget { imb_numa_nr: 0, ..numa };
    assert_eq!(moved(PerCache, BeforeAllowance, two.0, two.1, alone), 1);
}

#[test]
fn a_local_group_above_the_average_takes_nothing_more() {
    let local = SgLbStats { group_type: GroupType::FullyBusy, group_load: 900, ..cpu(1, 1000) };
    let busiest =
        SgLbStats { group_type: GroupType::Overloaded, avg_load: 800, group_load: 800, ..cpu(2, 1000) };
    let amount = |rule, total_load| {
        let rules = BalanceRules { local_average: rule, ..types() };
        let mut sds = SdLbStats { total_load, total_capacity: 2048, ..domain(local, busiest) };
        rules.calculate_imbalance(&mut sds, IDLE).amount
    };
    assert!(amount(LocalAverage::Any, 1700) != 0, "800 less 850 wraps");
    assert_eq!(amount(LocalAverage::BelowSource, 1700), 0);
    let below_source = SgLbStats { avg_load: 1000, ..busiest };
    let mut sds = SdLbStats { total_load: 1600, total_capacity: 2048, ..domain(local, below_source) };
    let rules = BalanceRules { local_average: LocalAverage::BelowSource, ..types() };
    assert!(rules.calculate_imbalance(&mut sds, IDLE).amount > 100, "900 is above 800: it overflows");
    let rules = BalanceRules { local_average: LocalAverage::BelowDomain, ..types() };
    assert_eq!(rules.calculate_imbalance(&mut sds, IDLE).amount, 0, "91dcf1e8068e");
}

#[test]
fn misfits_are_moved_by_what_was_noted_of_them_or_one_by_one() {
    let busiest = SgLbStats { group_type: GroupType::MisfitTask, misfit_load: 700, ..cpu(1, 400) };
    let mut sds = domain(cpu(0, 0), busiest);
    let sizes = ImbalanceTarget { flags: SdFlags::ASYM_CPUCAPACITY, ..IDLE };
    let by_load = types().calculate_imbalance(&mut sds, sizes);
    assert_eq!((by_load.migration, by_load.amount), (MigrationType::Misfit, 700));
    let rules = BalanceRules { misfit_size: MisfitSize::ByCapacity, ..types() };
    assert_eq!(rules.calculate_imbalance(&mut sds, sizes).amount, 1);
    let alike = rules.calculate_imbalance(&mut sds, IDLE);
    assert_eq!((alike.migration, alike.amount), (MigrationType::Load, 700), "others leave it too little");
}

/// Two hogs on one CPU and none on the other: nothing is above the average of 1024 by more than a task's load.
#[test]
fn by_load_a_whole_task_is_moved_where_it_helps() {
    let loaded = |tasks: u32, load: u64| SgLbStats {
        group_load: load,
        avg_load: load,
        load_per_task: load / u64::from(tasks.max(1)),
        ..cpu(tasks, load.min(1024))
    };
    let mut sds = domain(loaded(0, 0), loaded(2, 2048));
    (sds.total_load, sds.total_capacity) = (2048, 2048);
    sds.avg_load = sds.average();
    let old = BalanceRules::BASE;
    assert_eq!(old.calculate_imbalance(&mut sds, IDLE).amount, 1024);
    let mut uneven = domain(loaded(1, 900), loaded(1, 1000));
    uneven.avg_load = 950;
    assert_eq!(old.calculate_imbalance(&mut uneven, IDLE).amount, 1000, "a heavier task for a lighter one");
    let load_only = BalanceRules { comparison: Comparison::Load, ..old };
    assert_eq!(load_only.calculate_imbalance(&mut uneven, IDLE).amount, 50, "fcf0553db6f4");
}

#[test]
fn a_local_group_with_room_takes_half_of_the_difference_in_tasks_or_idle_cpus() {
    let four = |tasks, idle_cpus| SgLbStats { group_weight: 4, idle_cpus, ..cpu(tasks, 100) };
    let moved = |prefer_sibling, local, busiest, idle| {
        let mut sds = SdLbStats { prefer_sibling, ..domain(local, busiest) };
        let imbalance = types().calculate_imbalance(&mut sds, ImbalanceTarget { idle, ..IN_LLC });
        assert_eq!(imbalance.migration, MigrationType::Task);
        imbalance.amount
    };
    let idle = CpuIdleType::Idle;
    assert_eq!(moved(false, four(1, 4), four(9, 1), idle), 1, "three idle CPUs more");
    assert_eq!(moved(true, four(1, 4), four(9, 1), idle), 4, "eight tasks less");
    assert_eq!(moved(false, cpu(1, 0), cpu(6, 0), idle), 2, "single CPUs have none to compare");
    assert_eq!(moved(true, four(9, 4), four(1, 1), idle), 0);
    assert_eq!(moved(false, four(9, 1), four(1, 4), idle), 0, "never the other way round");
}

#[test]
fn utilization_is_filled_up_only_from_a_group_that_is_more_than_fully_busy() {
    let kind = |group_type, local_util, idle| {
        let busiest = SgLbStats { group_type, ..cpu(4, 1024) };
        let imbalance = types()
            .calculate_imbalance(&mut domain(cpu(0, local_util), busiest), ImbalanceTarget { idle, ..IDLE });
        (imbalance.migration, imbalance.amount)
    };
    let (idle, busy) = (CpuIdleType::Idle, CpuIdleType::NotIdle);
    assert_eq!(kind(GroupType::Overloaded, 1000, idle), (MigrationType::Util, 24));
    assert_eq!(kind(GroupType::FullyBusy, 1000, idle), (MigrationType::Task, 2));
    assert_eq!(kind(GroupType::Overloaded, 1025, idle), (MigrationType::Task, 1), "more use than capacity");
    assert_eq!(kind(GroupType::Overloaded, 1024, busy), (MigrationType::Util, 0), "a busy CPU waits");
}

#[test]
fn single_tasks_of_special_states() {
    let of = |group_type| {
        let busiest = SgLbStats { group_type, ..cpu(3, 900) };
        let imbalance = types().calculate_imbalance(&mut domain(cpu(0, 0), busiest), IDLE);
        (imbalance.migration, imbalance.amount)
    };
    assert_eq!(of(GroupType::AsymPacking), (MigrationType::Task, 3), "all go to the preferred CPU");
    assert_eq!(of(GroupType::SmtBalance), (MigrationType::Task, 1));
    assert_eq!(of(GroupType::Imbalanced), (MigrationType::Task, 1));
}

#[test]
fn nodes_keep_a_pair_at_the_limits_of_each_rule() {
    let node = |tasks, idle_cpus| SgLbStats { group_weight: 16, idle_cpus, ..cpu(tasks, 100) };
    let numa = |imb_numa_nr| ImbalanceTarget { flags: SdFlags::NUMA, imb_numa_nr, ..IDLE };
    let moved = |numa_rule, busiest, local, imb_numa_nr| {
        let rules = BalanceRules { numa: numa_rule, halving: Halving::AfterAllowance, ..types() };
        rules.calculate_imbalance(&mut domain(local, busiest), numa(imb_numa_nr)).amount
    };
    use NumaAllowance::*;
    assert_eq!([2, 3].map(|tasks| moved(PairInSource, node(tasks, 12), node(0, 16), 0)), [0, 2]);
    assert_eq!(
        [3, 4].map(|tasks| moved(QuarterOfSource, node(tasks, 14), node(0, 16), 0)),
        [0, 1],
        "a quarter of 16"
    );
    assert_eq!(
        [14, 13].map(|idle| moved(QuarterOfSource, node(3, idle), node(0, 16), 0)),
        [0, 1],
        "at most a pair"
    );
    assert_eq!(
        [2, 3].map(|tasks| moved(QuarterOfTarget, node(9, 11), node(tasks, 13), 0)),
        [0, 1],
        "with the task four"
    );
    assert_eq!([11, 10].map(|idle| moved(QuarterOfTarget, node(9, idle), node(2, 13), 0)), [0, 1]);
    assert_eq!(
        [4, 5].map(|tasks| moved(PerCache, node(9, 8), node(tasks, 10), 5)),
        [0, 1],
        "with the task five"
    );
}

#[test]
fn overloaded_groups_are_brought_to_the_average_but_no_further() {
    let overloaded = |load| SgLbStats {
        group_type: GroupType::Overloaded,
        group_load: load,
        avg_load: load,
        ..cpu(4, 1024)
    };
    let amount = |local: SgLbStats, busiest, domain_average: u64| {
        let mut sds = SdLbStats {
            total_load: 2 * domain_average,
            total_capacity: 2048,
            avg_load: domain_average,
            ..domain(local, busiest)
        };
        types().calculate_imbalance(&mut sds, IDLE).amount
    };
    assert_eq!(amount(overloaded(1000), overloaded(1600), 1200), 200, "what the local group lacks");
    assert_eq!(amount(overloaded(1000), overloaded(1600), 1500), 100, "what the other has above it");
    let full = SgLbStats { group_type: GroupType::FullyBusy, group_load: 1000, ..cpu(1, 1024) };
    assert_eq!(amount(full, overloaded(1600), 1300), 300, "its own average is computed first");
}

#[test]
fn a_local_group_as_loaded_as_the_other_or_the_domain_takes_nothing() {
    let amount = |rule, local_load, busiest_load, domain_average: u64| {
        let local = SgLbStats { group_type: GroupType::FullyBusy, group_load: local_load, ..cpu(1, 1000) };
        let busiest = SgLbStats { group_type: GroupType::Overloaded, avg_load: busiest_load, ..cpu(2, 1000) };
        let rules = BalanceRules { local_average: rule, ..types() };
        let mut sds =
            SdLbStats { total_load: 2 * domain_average, total_capacity: 2048, ..domain(local, busiest) };
        rules.calculate_imbalance(&mut sds, IDLE).amount
    };
    for rule in [LocalAverage::BelowSource, LocalAverage::BelowDomain] {
        assert_eq!(amount(rule, 900, 900, 950), 0, "{rule:?}");
        assert_eq!(amount(rule, 900, 1000, 950), 50, "{rule:?}");
    }
    assert_eq!(amount(LocalAverage::BelowDomain, 950, 1000, 950), 0);
    assert_eq!(amount(LocalAverage::BelowDomain, 960, 1000, 950), 0);
}

/// What v5.4 and before moved: CPUs of capacity 1024 with tasks of one load each.
fn by_load(local: SgLbStats, busiest: SgLbStats, load_per_task_here: u64) -> i64 {
    let mut sds = SdLbStats {
        total_load: local.group_load + busiest.group_load,
        total_capacity: local.group_capacity + busiest.group_capacity,
        ..domain(local, busiest)
    };
    sds.avg_load = sds.average();
    BalanceRules::BASE.calculate_imbalance(&mut sds, ImbalanceTarget { load_per_task_here, ..IDLE }).amount
}

fn tasks_of(load: u64, tasks: u32) -> SgLbStats {
    let total = load * u64::from(tasks);
    SgLbStats { group_load: total, avg_load: total, load_per_task: load, ..cpu(tasks, total.min(1024)) }
}

#[test]
fn by_load_groups_are_brought_to_the_average_if_that_is_a_task_or_more() {
    assert_eq!(by_load(tasks_of(100, 2), tasks_of(100, 8), 0), 300, "both to five");
    assert_eq!(by_load(tasks_of(100, 7), tasks_of(100, 8), 0), 100, "a task, if the difference is one");
    let overloaded = |group| SgLbStats { group_type: GroupType::Overloaded, ..group };
    let (here, there) = (overloaded(tasks_of(1000, 2)), overloaded(tasks_of(1000, 6)));
    assert_eq!(by_load(here, there, 0), 2000);
}

#[test]
fn by_load_a_group_gives_only_what_idles_no_cpu_to_one_that_is_no_better_off() {
    let group = |capacity, tasks, group_load: u64, group_type| SgLbStats {
        group_capacity: capacity * 1024,
        group_load,
        avg_load: group_load / capacity,
        load_per_task: group_load / u64::from(tasks),
        group_type,
        ..cpu(tasks, 1024)
    };
    use GroupType::{HasSpare, Overloaded};
    let (here, there) = (|state| group(20, 21, 2100, state), |tasks, state| group(58, tasks, 60_000, state));
    // Two of 60 tasks are more than 58 CPUs; the average is 796, 238 below what the 58 bear.
    assert_eq!(by_load(here(Overloaded), there(60, Overloaded), 0), 35 * 58);
    assert_eq!(by_load(here(HasSpare), there(60, Overloaded), 0), 238 * 58);
    assert_eq!(by_load(here(Overloaded), there(60, HasSpare), 0), 238 * 58);
    assert_eq!(by_load(here(Overloaded), there(58, Overloaded), 0), 238 * 58, "nothing is above capacity");
}

#[test]
fn by_load_a_misfit_is_moved_whatever_the_averages_say() {
    let misfit =
        |misfit_load| SgLbStats { group_type: GroupType::MisfitTask, misfit_load, ..tasks_of(100, 1) };
    assert_eq!(by_load(tasks_of(100, 0), misfit(700), 0), 700);
    assert_eq!(
        by_load(tasks_of(100, 0), SgLbStats { avg_load: 900, group_load: 900, ..misfit(40) }, 0),
        450,
        "half is more"
    );
}

#[test]
fn by_load_a_group_that_affinity_keeps_uneven_gives_a_task_of_at_most_the_average() {
    let heavy = SgLbStats { group_type: GroupType::Imbalanced, ..tasks_of(600, 1) };
    assert_eq!(by_load(tasks_of(400, 1), heavy, 0), 500, "its task counts 500, as much as the average");
}

/// Half a task's load is out of balance between a CPU and two; moving one would bring the two nearer to what a task of
/// theirs weighs.
#[test]
fn by_load_less_than_a_task_is_made_one_only_if_more_capacity_is_used_then() {
    let two = |tasks, load_per_task| SgLbStats {
        group_capacity: 2048,
        group_load: 500,
        avg_load: 250,
        load_per_task,
        ..cpu(tasks, 500)
    };
    let amount = |local, here| by_load(local, tasks_of(100, 3), here);
    assert_eq!(amount(two(1, 500), 0), 100, "250 of 500 each: there is room");
    assert_eq!(amount(two(2, 250), 0), 32, "250 of 250: what there is to move is less than a task");
    assert_eq!(
        [500, 250].map(|here| amount(two(0, 0), here)),
        [100, 32],
        "this CPU's tasks count if none runs"
    );
    let lighter = by_load(SgLbStats { group_load: 150, avg_load: 150, ..two(2, 75) }, tasks_of(100, 2), 0);
    assert_eq!(lighter, 100, "a heavier task for lighter ones is worth a single step");
}
