//! What is summed up of a group, and from which group of CPUs of another size something is taken.

use super::*;
use crate::balance::MigrationType;
use crate::cpumask::CpuMask;
use crate::task::Policy;
use crate::testbed::{MS, SchedulerTestbed};
use crate::topology::{SmtNumbering, Topology};

fn attempt(bed: &SchedulerTestbed, cpu: u32, level: usize, idle: CpuIdleType) -> LbEnv {
    LbEnv { lb_bias: false, ..bed.scheduler.attempt(Cpu(cpu), level, idle) }
}

fn sums(bed: &mut SchedulerTestbed, cpu: u32, level: usize, idle: CpuIdleType) -> SdLbStats {
    bed.at(cpu);
    let mut attempt = attempt(bed, cpu, level, idle);
    bed.scheduler.update_sd_lb_stats(&mut attempt)
}

fn bear(bed: &mut SchedulerTestbed, cpu: u32, load: u64, util: u64, runnable: u64) {
    let root = bed.scheduler.rqs[cpu as usize].cfs;
    let avg = &mut bed.scheduler.cfs_mut(root).tracked.avg;
    (avg.load_avg, avg.util_avg, avg.runnable_avg, avg.util_est.enqueued) = (load, util, runnable, 0);
}

/// Two caches of two cores of two threads: CPUs 0-3 and 4-7.
fn caches(kernel: &str) -> SchedulerTestbed {
    SchedulerTestbed::on(kernel, Topology::regular(1, 2, 2, 2, SmtNumbering::Adjacent).expect("a machine"))
}

#[test]
fn a_domain_sums_up_what_the_cpus_of_its_groups_bear() {
    let mut bed = caches("v6.6");
    for cpu in [4, 4, 4, 5, 6] {
        bed.spawn(0, cpu);
    }
    bed.spawn_with(0, 7, Policy::Fifo(1), CpuMask::ALL);
    bear(&mut bed, 0, 30, 10, 20);
    for (cpu, times) in [(4, 1), (5, 10), (6, 100)] {
        bear(&mut bed, cpu, 3 * times, times, 2 * times);
    }
    let sds = sums(&mut bed, 0, 2, CpuIdleType::Idle);
    let busiest = sds.busiest_stat;
    assert_eq!((busiest.group_load, busiest.group_util, busiest.group_runnable), (333, 111, 222));
    assert_eq!(
        (busiest.sum_h_nr_running, busiest.sum_nr_running, busiest.idle_cpus),
        (5, 6, 0),
        "one is no fair task"
    );
    assert_eq!((busiest.group_weight, busiest.cores, busiest.group_capacity), (4, 2, 4096));
    assert_eq!((sds.local_stat.group_load, sds.local_stat.idle_cpus), (30, 4));
    assert_eq!((sds.total_load, sds.total_util, sds.total_capacity, sds.scanned), (363, 121, 8192, 8));
    assert!(sds.overload, "CPU 4 has tasks to spare");
    let mut one_each = caches("v6.6");
    one_each.spawn(0, 4);
    assert!(!sums(&mut one_each, 0, 2, CpuIdleType::Idle).overload);
}

#[test]
fn cpus_that_take_no_part_any_more_are_left_out() {
    let mut bed = caches("v6.6");
    bed.spawn(0, 4);
    bed.spawn(0, 5);
    bed.at(0);
    let mut attempt = attempt(&bed, 0, 2, CpuIdleType::Idle);
    attempt.cpus.clear(Cpu(4));
    let sds = bed.scheduler.update_sd_lb_stats(&mut attempt);
    assert_eq!((sds.busiest_stat.sum_h_nr_running, sds.scanned), (1, 7));
}

#[test]
fn a_cpu_with_a_task_on_its_way_does_not_idle() {
    let mut bed = caches("v6.6");
    bed.spawn(0, 4);
    bed.scheduler.ttwu_pending(Cpu(5));
    assert_eq!(sums(&mut bed, 0, 2, CpuIdleType::Idle).busiest_stat.idle_cpus, 2);
}

#[test]
fn tasks_are_spread_over_siblings_as_the_level_below_or_that_of_the_busiest_says() {
    let prefers = |kernel, here: bool, there: bool| {
        let mut bed = caches(kernel);
        bed.spawn(0, 4);
        for (cpu, prefers) in [(0, here), (4, there)] {
            let sd = bed.scheduler.domain_mut(Cpu(cpu), 1);
            sd.flags = if prefers {
                sd.flags | SdFlags::PREFER_SIBLING
            } else {
                sd.flags & !SdFlags::PREFER_SIBLING
            };
        }
        for group in bed.scheduler.domains.groups(bed.scheduler.domain_id(Cpu(0), 2)).collect::<Vec<_>>() {
            let is_there = bed.scheduler.domains.group(group).span.contains(Cpu(4));
            assert_eq!(bed.scheduler.domains.group(group).weight, 4);
            if kernel == "v6.6" && is_there {
                assert!(bed.scheduler.domains.group(group).flags.has(SdFlags::PREFER_SIBLING));
            }
        }
        sums(&mut bed, 0, 2, CpuIdleType::Idle).prefer_sibling
    };
    assert_eq!(
        [(true, false), (false, true)].map(|(here, there)| prefers("v6.4", here, there)),
        [true, false]
    );
    assert!(prefers("v6.6", false, true), "its group keeps the flags it was built with");
    let mut lowest = caches("v6.4");
    lowest.spawn(0, 1);
    assert!(!sums(&mut lowest, 0, 0, CpuIdleType::Idle).prefer_sibling, "there is no level below");
}

#[test]
fn a_core_that_runs_two_tasks_is_a_state_for_idle_cpus_from_v6_6_on() {
    let state = |kernel, idle| {
        let mut bed = caches(kernel);
        bed.spawn(0, 2);
        bed.spawn(0, 3);
        bear(&mut bed, 2, 1, 1, 1);
        bear(&mut bed, 3, 1, 1, 1);
        sums(&mut bed, 0, 1, idle).busiest_stat.group_type
    };
    assert_eq!(state("v6.5", CpuIdleType::Idle), GroupType::HasSpare);
    assert_eq!(state("v6.6", CpuIdleType::Idle), GroupType::SmtBalance);
    assert_eq!(state("v6.6", CpuIdleType::NotIdle), GroupType::HasSpare);
}

#[test]
fn by_load_a_group_with_two_tasks_more_is_relieved_if_the_other_has_room() {
    let relieved = |kernel, here: u32, there: u32, level| {
        let mut bed = caches(kernel);
        let first = if level == 2 { 4 } else { 2 };
        for cpu in (0..here).chain(first..first + there) {
            bed.spawn(0, cpu);
            bear(&mut bed, cpu, 1, 1, 1);
        }
        sums(&mut bed, 0, level, CpuIdleType::NotIdle).busiest_stat.group_no_capacity
    };
    assert_eq!([2, 3].map(|there| relieved("v5.4", 1, there, 2)), [false, true]);
    assert!(!relieved("v5.5", 1, 3, 2), "group types do without");
    assert!(!relieved("v5.4", 1, 2, 1), "a task more is not enough");
    let full = |util| {
        let mut bed = caches("v5.4");
        for cpu in 0..6 {
            bed.spawn(0, cpu);
        }
        for cpu in 4..8 {
            bed.spawn(0, cpu);
        }
        for cpu in 0..8 {
            bear(&mut bed, cpu, 1, if cpu < 4 { util } else { 1 }, 1);
        }
        bed.scheduler
            .domains
            .capacity_of_group_mut(bed.scheduler.domains.local_group(bed.scheduler.domain_id(Cpu(0), 2)))
            .imbalance = false;
        sums(&mut bed, 0, 2, CpuIdleType::NotIdle).busiest_stat.group_no_capacity
    };
    assert_eq!([100, 1000].map(full), [true, false], "six tasks there and four here, which use all there is");
}

/// Two small CPUs (0, 1) and two big ones (2, 3), each pair under a cache; tasks on some of them.
fn sizes(kernel: &str, capacities: [u32; 2], tasks: [u32; 4]) -> SchedulerTestbed {
    let topology = Topology::regular(1, 2, 2, 1, SmtNumbering::Adjacent).expect("a machine");
    let [small, big] = capacities;
    let mut bed = SchedulerTestbed::on(
        kernel,
        topology.with_capacities(&[small, small, big, big]).expect("capacities"),
    );
    for (cpu, tasks) in (0..).zip(tasks) {
        for _ in 0..tasks {
            let task = bed.spawn(0, cpu);
            bed.use_task(task, 10);
        }
    }
    bed.pass(MS);
    bed
}

fn takes(bed: &mut SchedulerTestbed, cpu: u32) -> bool {
    sums(bed, cpu, 1, CpuIdleType::Idle).busiest.is_some()
}

#[test]
fn a_small_cpu_takes_nothing_from_big_ones_that_are_lightly_used() {
    for kernel in ["v5.4", "v5.10", "v6.6"] {
        assert!(!takes(&mut sizes(kernel, [512, 1024], [0, 0, 1, 1]), 0), "{kernel}");
        assert!(
            takes(&mut sizes(kernel, [512, 1024], [1, 1, 0, 0]), 2),
            "{kernel}: the other way round it does"
        );
        assert!(
            takes(&mut sizes(kernel, [1000, 1024], [0, 0, 1, 1]), 0),
            "{kernel}: they are as good as alike"
        );
    }
    let between = |kernel| takes(&mut sizes(kernel, [900, 1024], [0, 0, 1, 1]), 0);
    assert!(between("v5.12") && !between("v5.13"), "a quarter, then a twentieth counts as bigger");
}

#[test]
fn a_task_that_outgrew_its_cpu_goes_to_a_bigger_one_with_room() {
    let taken = |kernel, capacities, cpu: u32, source: u32, util, busy: bool| {
        let mut bed = sizes(kernel, capacities, [0; 4]);
        let task = bed.spawn(0, source);
        bed.use_task(task, util);
        if busy {
            for other in [cpu, cpu ^ 1, cpu, cpu ^ 1] {
                bed.spawn(0, other);
                bear(&mut bed, other, 1000, 1000, 2000);
            }
        }
        let sds = sums(&mut bed, cpu, 1, CpuIdleType::Idle);
        assert!(
            sds.busiest_stat.group_type != GroupType::MisfitTask || sds.overload,
            "it is a reason to search"
        );
        sds.busiest_stat.group_type == GroupType::MisfitTask
    };
    for kernel in ["v4.20", "v5.4", "v5.10", "v6.6"] {
        assert!(taken(kernel, [512, 1024], 2, 0, 500, false), "{kernel}");
        assert!(!taken(kernel, [512, 1024], 2, 0, 400, false), "{kernel}: it fits");
        assert!(!taken(kernel, [512, 1024], 0, 2, 1000, false), "{kernel}: there is no bigger one");
        assert!(!taken(kernel, [512, 1024], 2, 0, 500, true), "{kernel}: there is no room");
        assert!(!taken(kernel, [1000, 1024], 2, 0, 990, false), "{kernel}: that one is hardly bigger");
    }
    assert!(!taken("v4.19", [512, 1024], 2, 0, 500, false), "to v4.19 nobody looked");
}

#[test]
fn a_single_task_stays_on_a_bigger_cpu() {
    let spares = |kernel, capacities, cpu| {
        let bed = sizes(kernel, capacities, [0, 0, 1, 0]);
        bed.scheduler.spares_bigger_cpu(&attempt(&bed, 0, 1, CpuIdleType::Idle), Cpu(cpu))
    };
    assert!(!spares("v4.19", [512, 1024], 2) && spares("v4.20", [512, 1024], 2));
    assert!(spares("v5.12", [1000, 1024], 2), "bigger by anything");
    assert!(!spares("v5.12", [1000, 1024], 1), "as big");
    assert!(
        spares("v5.13", [1000, 1024], 2) && spares("v5.13", [1000, 1024], 1),
        "this one must be bigger by a twentieth"
    );
    let equal = SchedulerTestbed::new("v5.10", 4, 1);
    assert!(!equal.scheduler.spares_bigger_cpu(&attempt(&equal, 0, 0, CpuIdleType::Idle), Cpu(1)));
    let big = sizes("v5.13", [512, 1024], [1, 0, 0, 0]);
    assert!(!big.scheduler.spares_bigger_cpu(&attempt(&big, 2, 1, CpuIdleType::Idle), Cpu(0)));
}

/// Which queue of the CPUs 4-7 CPU 0 takes from.
fn source(bed: &mut SchedulerTestbed, migration: MigrationType, amount: i64, misfit: bool) -> Option<u32> {
    bed.at(0);
    let attempt = LbEnv { takes_misfit: misfit, ..attempt(bed, 0, 2, CpuIdleType::Idle) };
    let group =
        bed.scheduler.domains.groups(bed.scheduler.domain_id(Cpu(0), 2)).nth(1).expect("another group");
    let imbalance = crate::balance::Imbalance { migration, amount };
    bed.scheduler.find_busiest_queue(&attempt, group, imbalance).map(|cpu| cpu.0)
}

/// CPUs 4 to 7 run so many tasks with so much load and utilization.
fn queues(kernel: &str, of: [(u32, u64, u64); 4]) -> SchedulerTestbed {
    let mut bed = caches(kernel);
    for (cpu, (tasks, ..)) in (4..).zip(of) {
        for _ in 0..tasks {
            bed.spawn(0, cpu);
        }
    }
    for (cpu, (_, load, util)) in (4..).zip(of) {
        bear(&mut bed, cpu, load, util, util);
    }
    bed
}

#[test]
fn the_queue_with_most_of_what_is_to_be_moved_is_the_source() {
    use MigrationType::{Load, Task, Util};
    let of = [(2, 500, 300), (3, 400, 200), (3, 600, 100), (2, 600, 400)];
    let source = |kernel, of, migration| source(&mut queues(kernel, of), migration, 10_000, false);
    assert_eq!(source("v6.6", of, Load), Some(6), "the first of equals");
    assert_eq!(source("v6.6", of, Util), Some(7));
    assert_eq!(source("v6.6", of, Task), Some(5), "the first of equals");
    assert_eq!(source("v6.6", [(0, 0, 0); 4], Task), None);
}

#[test]
fn a_queue_where_nothing_waits_gives_no_utilization_from_v5_7_on() {
    let of = [(1, 0, 900), (2, 0, 100), (0, 0, 0), (0, 0, 0)];
    let source = |kernel| source(&mut queues(kernel, of), MigrationType::Util, 10, false);
    assert_eq!((source("v5.6"), source("v5.7")), (Some(4), Some(5)));
}

#[test]
fn a_single_task_heavier_than_the_imbalance_stays() {
    let of = [(1, 900, 0), (1, 500, 0), (0, 0, 0), (0, 0, 0)];
    let source = |amount| source(&mut queues("v6.6", of), MigrationType::Load, amount, false);
    assert_eq!([899, 900].map(source), [Some(5), Some(4)]);
    assert_eq!(source(499), None);
    let two = [(2, 900, 0), (1, 500, 0), (0, 0, 0), (0, 0, 0)];
    assert_eq!(
        self::source(&mut queues("v6.6", two), MigrationType::Load, 10, false),
        Some(4),
        "of two one can go"
    );
}

#[test]
fn a_queue_without_fair_tasks_is_passed_over_from_v5_12_on() {
    let source = |kernel| {
        source(
            &mut queues(kernel, [(0, 900, 0), (2, 500, 0), (0, 0, 0), (0, 0, 0)]),
            MigrationType::Load,
            10_000,
            false,
        )
    };
    assert_eq!((source("v5.11"), source("v5.12")), (Some(4), Some(5)));
}

#[test]
fn a_source_that_takes_no_part_any_more_is_passed_over() {
    let mut bed = queues("v6.6", [(3, 0, 0), (2, 0, 0), (0, 0, 0), (0, 0, 0)]);
    bed.at(0);
    let mut attempt = attempt(&bed, 0, 2, CpuIdleType::Idle);
    attempt.cpus.clear(Cpu(4));
    let group =
        bed.scheduler.domains.groups(bed.scheduler.domain_id(Cpu(0), 2)).nth(1).expect("another group");
    let imbalance = crate::balance::Imbalance { migration: MigrationType::Task, amount: 1 };
    assert_eq!(bed.scheduler.find_busiest_queue(&attempt, group, imbalance), Some(Cpu(5)));
}
