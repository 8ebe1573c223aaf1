//! Who may be packed where, case by case: sums of groups made by hand, on the machine of [`hybrid`].

use fairlab_event::Cpu;

use super::tests::hybrid;
use crate::balance::decided::LbEnv;
use crate::balance::imbalance::MigrationType;
use crate::balance::statistics::{GroupType, SdLbStats, SgLbStats};
use crate::cpumask::CpuMask;
use crate::domain::SchedGroupId;
use crate::schedstat::CpuIdleType::{self, Idle, NewlyIdle, NotIdle};
use crate::scheduler::Scheduler;
use crate::testbed::SchedulerTestbed;
use crate::topology::{CpuPlace, Topology};

/// Preferred CPUs 0 and 2 beside others under a cache each: tasks are packed below the package, not in it.
fn two_caches(kernel: &str) -> SchedulerTestbed {
    let place = |core| CpuPlace { core, llc: core / 2, node: 0 };
    let topology = Topology::new((0..4).map(place).collect()).expect("a machine");
    SchedulerTestbed::on(kernel, topology.with_priorities(&[50, 20, 50, 20]).expect("priorities"))
}

/// `dest` looks for work at the highest level that packs.
fn attempt(scheduler: &Scheduler, dest: u32, idle: CpuIdleType) -> LbEnv {
    let cpu = Cpu(dest);
    let packing = scheduler.domains.of_cpu(cpu).sd_asym_packing.expect("a level that packs");
    let level = scheduler.domains.ids_of(cpu).position(|id| id == packing).expect("one of its own");
    LbEnv {
        cpu,
        level,
        idle,
        dest: cpu,
        cpus: CpuMask::ALL,
        migration: MigrationType::Load,
        imbalance: 0,
        pushes: false,
        pushes_llc_task: false,
        takes_misfit: false,
        lb_bias: false,
        extent: None,
        seen: Vec::new(),
        cache_use: Vec::new(),
    }
}

/// The same one level higher.
fn above(scheduler: &Scheduler, dest: u32) -> LbEnv {
    let below = attempt(scheduler, dest, NewlyIdle);
    LbEnv { level: below.level + 1, ..below }
}

/// Two CPUs, so many of them busy with a task each.
fn group(is_smt: bool, busy: u32, priority: u32) -> SgLbStats {
    SgLbStats {
        is_smt,
        group_weight: 2,
        idle_cpus: 2 - busy,
        sum_nr_running: busy,
        sum_h_nr_running: busy,
        group_load: 77,
        priority,
        ..SgLbStats::default()
    }
}

/// Whether CPU 0, of priority 100 at v5.16 and of 50 at v6.6, takes from a group of `theirs`.
fn can_pack(bed: &SchedulerTestbed, local: SgLbStats, theirs: SgLbStats) -> bool {
    let attempt = attempt(&bed.scheduler, 0, NewlyIdle);
    let sd = bed.scheduler.domain(attempt.cpu, attempt.level);
    bed.scheduler.can_pack(&attempt, sd, &local, &theirs)
}

/// `asym_smt_can_pull_tasks()` of v5.16.
#[test]
fn siblings_decided_with_priority_from_v5_16_on() {
    let bed = hybrid("v5.16", &[]);
    let (core, cpu) = (true, false);
    let (less, as_much) = (99, 100);
    for (local, theirs, expected) in [
        ((cpu, 0), (cpu, 1, less), true),
        ((cpu, 0), (cpu, 1, as_much), false),
        ((cpu, 0), (core, 1, less), true),
        ((cpu, 0), (core, 1, as_much), false),
        ((cpu, 0), (core, 2, as_much), true),
        ((core, 0), (core, 1, less), true),
        ((core, 0), (core, 1, as_much), false),
        ((core, 0), (core, 2, less), false),
        ((core, 1), (core, 1, less), false),
        ((core, 1), (core, 2, less), true),
        ((core, 0), (cpu, 1, less), true),
        ((core, 0), (cpu, 1, as_much), false),
        ((core, 1), (cpu, 1, less), false),
    ] {
        let (of_local, of_theirs) = (group(local.0, local.1, 0), group(theirs.0, theirs.1, theirs.2));
        assert_eq!(can_pack(&bed, of_local, of_theirs), expected, "{local:?} from {theirs:?}");
    }
    let bed = hybrid("v5.15", &[]);
    let by_priority =
        [less, as_much].map(|priority| can_pack(&bed, group(true, 1, 0), group(true, 2, priority)));
    assert_eq!(by_priority, [true, false]);
}

#[test]
fn only_idle_cores_pack_from_v6_5_on_and_only_single_threads() {
    let from = |busy: &[u32], theirs| can_pack(&hybrid("v6.6", busy), group(true, 0, 0), theirs);
    assert!(from(&[], group(false, 1, 49)) && !from(&[], group(false, 1, 50)));
    assert!(from(&[], group(false, 2, 49)), "not threads of a core");
    assert!(from(&[], group(true, 1, 49)) && !from(&[], group(true, 2, 49)));
    assert!(!from(&[], group(true, 1, 50)) && !from(&[1], group(false, 1, 49)));
}

#[test]
fn a_priority_counts_between_threads_and_else_for_idle_cores() {
    let counts = |kernel: &str, level: usize, busy: &[u32]| {
        let bed = hybrid(kernel, busy);
        bed.scheduler.uses_asym_priority(&bed.scheduler.domains().domains_of(Cpu(0))[level], Cpu(0))
    };
    assert_eq!(
        [counts("v6.6", 0, &[1]), counts("v6.6", 1, &[1]), counts("v6.6", 1, &[0])],
        [true, false, true]
    );
    assert!(counts("v6.4", 1, &[1]));
    assert_eq!(two_caches("v5.10").scheduler.asym_cpu_priority(Cpu(0)), 50, "no threads to divide it by");
}

/// The priority that is noted of the group of CPUs 4 and 5, and whether its tasks should be moved to CPU 0.
fn noted(kernel: &str, idle: CpuIdleType, is_local: bool, busy: u32) -> (u32, bool) {
    let bed = hybrid(kernel, &[]);
    let (span, mut sums) = (CpuMask::parse_list("4-5").expect("a list"), group(false, busy, 0));
    let attempt = attempt(&bed.scheduler, 0, idle);
    bed.scheduler.note_packing(&attempt, is_local, &SdLbStats::default(), &mut sums, &span);
    (sums.priority, sums.asym_packing)
}

#[test]
fn groups_with_tasks_are_noted_where_an_idle_cpu_looks() {
    assert_eq!(noted("v6.6", NewlyIdle, false, 1), (20, true));
    assert_eq!(noted("v6.6", Idle, false, 1), (20, true));
    assert_eq!(noted("v6.6", NotIdle, false, 1), (0, false));
    assert_eq!(noted("v6.6", Idle, true, 1), (20, false), "its own group");
    assert_eq!(noted("v6.6", Idle, false, 0), (20, false), "nothing to move");
    assert_eq!(noted("v5.4", Idle, false, 1), (40, false), "no state of a group yet");
    let bed = two_caches("v6.6");
    let (mut sums, span) = (group(false, 1, 0), CpuMask::single(Cpu(3)));
    bed.scheduler.note_packing(&above(&bed.scheduler, 0), false, &SdLbStats::default(), &mut sums, &span);
    assert_eq!((sums.priority, sums.asym_packing), (0, false), "nothing is packed between caches");
}

/// The end of `update_sd_pick_busiest()` of v5.4; CPU 0 has priority 100.
#[test]
fn the_least_preferred_group_with_tasks_was_taken_from_to_v5_4() {
    let allows = |kernel: &str, idle, busiest: Option<u32>, sums: SgLbStats| {
        let bed = hybrid(kernel, &[]);
        let sds = SdLbStats {
            busiest: busiest.map(|_| SchedGroupId(0)),
            busiest_stat: group(false, 1, busiest.unwrap_or(0)),
            ..SdLbStats::default()
        };
        bed.scheduler.packing_allows(&attempt(&bed.scheduler, 0, idle), &sds, &sums)
    };
    assert!(allows("v5.4", Idle, None, group(false, 1, 99)));
    assert!(!allows("v5.4", Idle, None, group(false, 1, 100)), "as preferred as the CPU that looks");
    assert!(!allows("v5.4", Idle, None, group(false, 0, 99)), "nothing runs there");
    for (busiest, allowed) in [(60, true), (50, false), (40, false)] {
        assert_eq!(allows("v5.4", Idle, Some(busiest), group(false, 1, 50)), allowed, "beside {busiest}");
    }
    // Elsewhere priority says nothing.
    let empty = group(false, 0, 100);
    assert!(allows("v5.4", NotIdle, Some(40), empty) && allows("v5.10", Idle, Some(40), empty));
    assert!(allows("v5.4", Idle, Some(40), SgLbStats { group_type: GroupType::Overloaded, ..empty }));
    let bed = two_caches("v5.4");
    assert!(bed.scheduler.packing_allows(&above(&bed.scheduler, 0), &SdLbStats::default(), &empty));
}

#[test]
fn the_load_of_the_busiest_group_was_to_be_moved_to_a_preferred_cpu_to_v5_4() {
    let moves = |kernel: &str, idle, busiest: Option<SchedGroupId>, priority| {
        let bed = hybrid(kernel, &[]);
        let sds = SdLbStats { busiest, busiest_stat: group(false, 1, priority), ..SdLbStats::default() };
        let imbalance = bed.scheduler.check_asym_packing(&attempt(&bed.scheduler, 0, idle), &sds);
        imbalance.map(|imbalance| (imbalance.migration, imbalance.amount))
    };
    let (some, all) = (Some(SchedGroupId(0)), Some((MigrationType::Load, 77)));
    assert_eq!((moves("v5.4", Idle, some, 100), moves("v5.4", NewlyIdle, some, 40)), (all, all));
    assert_eq!(moves("v5.4", Idle, some, 101), None);
    assert_eq!(moves("v5.4", NotIdle, some, 40), None);
    assert_eq!(moves("v5.4", Idle, None, 40), None);
    assert_eq!(moves("v5.10", Idle, some, 40), None);
    let bed = two_caches("v5.4");
    let sds = SdLbStats { busiest: some, ..SdLbStats::default() };
    assert!(bed.scheduler.check_asym_packing(&above(&bed.scheduler, 0), &sds).is_none());
}

#[test]
fn a_running_task_is_pushed_to_a_preferred_cpu() {
    let pushes = |kernel: &str, busy: &[u32], dest, idle, source| {
        let bed = hybrid(kernel, busy);
        bed.scheduler.asym_active_balance(&attempt(&bed.scheduler, dest, idle), Cpu(source))
    };
    assert!(pushes("v5.0", &[5], 0, NewlyIdle, 5) && !pushes("v5.0", &[5], 0, Idle, 5));
    assert!(pushes("v5.1", &[5], 0, Idle, 5) && !pushes("v5.1", &[5], 0, NotIdle, 5));
    assert!(!pushes("v5.1", &[0], 5, Idle, 0), "not away from one");
    assert!(
        pushes("v5.15", &[0, 5], 1, Idle, 5) && !pushes("v6.6", &[0, 5], 1, Idle, 5),
        "beside a busy thread"
    );
    assert!(!pushes("v6.6", &[0], 5, Idle, 0) && pushes("v6.6", &[0, 1], 5, Idle, 0), "relieves a busy core");
    let bed = two_caches("v6.6");
    assert!(!bed.scheduler.asym_active_balance(&above(&bed.scheduler, 0), Cpu(3)));
}

#[test]
fn a_single_task_stays_on_a_preferred_cpu_from_v5_16_on() {
    let spares = |kernel: &str, busy: &[u32], dest, source| {
        let bed = hybrid(kernel, busy);
        bed.scheduler.spares_preferred_cpu(&attempt(&bed.scheduler, dest, Idle), Cpu(source))
    };
    assert!(!spares("v5.15", &[0], 5, 0) && spares("v5.16", &[0], 5, 0) && !spares("v5.16", &[5], 0, 5));
    assert!(spares("v6.6", &[0], 5, 0) && !spares("v6.6", &[0, 1], 5, 0), "its core is busy");
    assert!(!spares("v6.6", &[4], 5, 4), "no more preferred");
    let bed = two_caches("v6.6");
    assert!(!bed.scheduler.spares_preferred_cpu(&above(&bed.scheduler, 1), Cpu(2)));
}

#[test]
fn a_preferred_cpu_with_a_busy_sibling_does_not_count_as_idle_from_v6_5_on() {
    let idles = |kernel: &str| {
        let mut bed = hybrid(kernel, &[1, 5]);
        bed.scheduler.nohz_balance_enter_idle(Cpu(0));
        bed.scheduler.preferred_cpu_idles(Cpu(5))
    };
    assert_eq!(["v6.4", "v6.5"].map(idles), [true, false]);
}

#[test]
fn a_busy_thread_finds_the_level_that_packs_above_its_own() {
    let place = |core| CpuPlace { core, llc: 0, node: 0 };
    let topology = Topology::new([0, 0, 1, 1].map(place).to_vec()).expect("a machine");
    let topology = topology.with_priorities(&[20, 20, 50, 50]).expect("priorities");
    for kernel in ["v6.4", "v6.5", "v7.2"] {
        let mut bed = SchedulerTestbed::on(kernel, topology.clone());
        bed.spawn(0, 0);
        assert!(!bed.scheduler.preferred_cpu_idles(Cpu(0)), "{kernel}");
        bed.scheduler.nohz_balance_enter_idle(Cpu(2));
        assert!(bed.scheduler.preferred_cpu_idles(Cpu(0)), "{kernel}");
    }
}
