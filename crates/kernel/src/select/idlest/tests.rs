//! Where new tasks and those that exec go, on small machines; and the idlest CPU of one group.

use fairlab_event::{Comm, Cpu, Ns, Pid};

use crate::core::{KernelContext, WakeKind};
use crate::cpumask::CpuMask;
use crate::decision::{CpuDecision, SelectReason};
use crate::select::Wakee;
use crate::task::{Policy, TaskSpec};
use crate::testbed::SchedulerTestbed;
use crate::topology::{SmtNumbering, Topology};

/// Nodes, caches a node, cores a cache.
fn machine(kernel: &str, (nodes, llcs, cores): (u32, u32, u32)) -> SchedulerTestbed {
    let topology = Topology::regular(nodes, llcs, cores, 1, SmtNumbering::Adjacent).expect("a machine");
    SchedulerTestbed::on(kernel, topology)
}

fn fork(bed: &mut SchedulerTestbed, policy: Policy, allowed: CpuMask) -> CpuDecision {
    let (comm, pid) = (Comm::from("child"), Pid(999));
    let spec =
        TaskSpec { comm, pid, tgid: pid, policy, nice: 0, allowed, kthread: false, per_cpu_kthread: false };
    bed.scheduler.set_here(Cpu(0), KernelContext::Task, Ns(1_000_000));
    let child = bed.scheduler.new_task(&spec, Cpu(0));
    bed.scheduler.select_task_rq(child, Cpu(0), WakeKind::Fork)
}

pub(crate) fn forked_to(kernel: &str, shape: (u32, u32, u32), busy: &[u32], allowed: &str) -> u32 {
    let mut bed = machine(kernel, shape);
    for &cpu in busy {
        bed.spawn(0, cpu);
    }
    let allowed = CpuMask::parse_list(allowed).expect("a list");
    fork(&mut bed, Policy::Normal, allowed).cpu.0
}

#[test]
fn a_new_task_goes_where_most_cpus_idle_in_every_era() {
    for kernel in ["v4.18", "v5.4", "v5.5", "v5.10", "v6.6", "v7.2"] {
        assert!(forked_to(kernel, (1, 2, 2), &[0, 1], "0-3") >= 2, "{kernel}");
        assert_eq!(forked_to(kernel, (1, 1, 4), &[0, 1, 3], "0-3"), 2, "{kernel}");
    }
}

/// Where a new task goes beside much use and one running task, when the other cache has two tasks and hardly any use.
pub(crate) fn forked_beside_use(kernel: &str) -> u32 {
    let mut bed = machine(kernel, (1, 2, 2));
    for cpu in [0, 2, 3] {
        bed.spawn(0, cpu);
    }
    for (cpu, util) in [(0, 1000), (1, 1000), (2, 10), (3, 10)] {
        bed.use_cpu(cpu, util);
    }
    fork(&mut bed, Policy::Normal, CpuMask::ALL).cpu.0
}

/// In v5.5 groups had room for no tasks at all: only their use told them apart.
#[test]
fn a_group_with_an_idle_cpu_has_room() {
    let kernels = ["v5.5", "v5.6", "v5.10"];
    assert_eq!(kernels.map(|kernel| forked_beside_use(kernel) / 2), [1, 0, 0]);
}

#[test]
fn of_idle_cpus_the_one_that_wakes_the_soonest_is_taken() {
    for kernel in ["v5.10", "v6.6", "v7.2"] {
        let mut bed = machine(kernel, (1, 2, 4));
        for cpu in 0..4 {
            bed.spawn(0, cpu);
        }
        for (cpu, exit_us) in [(4, 900), (5, 900), (6, 50), (7, 50)] {
            bed.scheduler.idle_set_state(Cpu(cpu), Some(Ns::from_us(exit_us)));
        }
        assert_eq!(fork(&mut bed, Policy::Normal, CpuMask::ALL).cpu, Cpu(6), "{kernel}");
    }
}

#[test]
fn equally_idle_groups_keep_it_local() {
    for kernel in ["v5.5", "v6.6"] {
        assert_eq!(forked_to(kernel, (1, 2, 2), &[0, 2], "0-3"), 1, "{kernel}");
    }
}

#[test]
fn a_node_is_left_at_different_times() {
    // Two nodes of eight CPUs; so many tasks run on the first.
    let leaves_at = |kernel: &str, allowed: &str| {
        (1..=8).find(|&busy| {
            let busy = (0..busy).collect::<Vec<_>>();
            forked_to(kernel, (2, 1, 8), &busy, allowed) >= 8
        })
    };
    assert_eq!(leaves_at("v5.10", "0-15"), Some(8), "when no CPU idles there");
    assert_eq!(leaves_at("v5.11", "0-15"), Some(4), "a quarter of 16");
    assert_eq!(leaves_at("2cfb7a1b031b", "0-15"), Some(1), "a quarter of 8, itself counted, exclusive");
    assert_eq!(leaves_at("v5.18", "0-15"), Some(2), "a quarter of 8, itself counted");
    assert_eq!(leaves_at("v5.18", "0,8-15"), Some(2));
    assert_eq!(leaves_at("f5b2eeb49991", "0,8-15"), Some(1), "one CPU there is allowed");
}

#[test]
fn an_idler_group_is_told_by_its_utilization() {
    // CPU 2's group had work until now, CPU 4's had none.
    let chosen = |kernel: &str| {
        let mut bed = machine(kernel, (1, 3, 2));
        bed.spawn(0, 0);
        bed.spawn(0, 1);
        bed.spawn(0, 2);
        bed.pass(50_000_000);
        bed.tick(2);
        bed.sleep(2);
        fork(&mut bed, Policy::Normal, CpuMask::ALL).cpu.0
    };
    assert_eq!((chosen("v5.8"), chosen("v5.9") >= 4), (2, true));
}

#[test]
fn only_allowed_cpus_count_from_v6_19_on() {
    // CPU 3 idles but is not allowed.
    assert_eq!(forked_to("v6.18", (1, 2, 2), &[0, 1, 2], "1-2"), 2);
    assert_eq!(forked_to("v6.19", (1, 2, 2), &[0, 1, 2], "1-2"), 1);
}

/// Where a task that runs on CPU 0 execs to, one beside it and one of the two CPUs of another cache busy.
pub(crate) fn execs_among_three(kernel: &str) -> u32 {
    let mut bed = machine(kernel, (1, 2, 2));
    let task = bed.spawn(0, 0);
    bed.spawn(0, 1);
    bed.spawn(0, 3);
    bed.scheduler.select_task_rq(task, Cpu(0), WakeKind::Exec).cpu.0
}

#[test]
fn a_task_that_execs_does_not_count_where_it_is() {
    assert_eq!(["57abff067a08", "3318544b721d"].map(execs_among_three), [2, 0]);
}

/// How much of CPU 0 is used by others than the task that execs there and is expected to use 300.
pub(crate) fn left_by_exec(kernel: &str) -> u64 {
    let mut bed = machine(kernel, (1, 1, 2));
    let task = bed.spawn(0, 0);
    let se = bed.scheduler.shared.tasks[task.index()].se;
    bed.scheduler.se_mut(se).avg.util_est.enqueued = 300;
    let root = bed.scheduler.rqs[0].cfs;
    bed.scheduler.cfs_mut(root).tracked.avg.util_est.enqueued = 300;
    bed.scheduler.cfs_mut(root).tracked.avg.util_avg = 0;
    let wakee = Wakee { task, here: Cpu(0), prev: Cpu(0) };
    let avg = bed.scheduler.synced_avg(task);
    bed.scheduler.cpu_util_without(Cpu(0), super::IdlestSearch { wakee, avg, is_new: false })
}

#[test]
fn the_estimate_of_a_task_that_execs_is_taken_off_from_v4_20_on() {
    assert_eq!(["v4.19", "v4.20"].map(left_by_exec), [300, 0]);
}

#[test]
fn cpus_with_idle_policy_tasks_are_no_better_than_idle_ones_to_v5_5() {
    let chosen = |kernel: &str, policy| {
        let mut bed = machine(kernel, (1, 1, 3));
        bed.spawn(0, 0);
        bed.spawn_with(0, 1, Policy::Idle, CpuMask::ALL);
        // Stay within one group: CPUs 1 and 2.
        fork(&mut bed, policy, CpuMask::ALL).cpu.0
    };
    assert_eq!(chosen("v5.5", Policy::Normal), 2);
    assert_eq!(chosen("v7.1", Policy::Idle), 2);
}

/// Two caches of four CPUs; what is asked is the second one's group.
fn of_other_cache(kernel: &str) -> SchedulerTestbed {
    let mut bed = machine(kernel, (1, 2, 4));
    bed.spawn(0, 0);
    bed
}

/// The CPU of that group where the task of CPU 0 would go, and how many were looked at.
fn idlest_there(bed: &SchedulerTestbed) -> (u32, u32) {
    let scheduler = &bed.scheduler;
    let task = scheduler.curr(Cpu(0));
    let top = scheduler.domains.ids_of(Cpu(0)).next_back().expect("a domain");
    let group = scheduler.domains.groups(top).nth(1).expect("two caches");
    let wakee = Wakee { task, here: Cpu(0), prev: Cpu(0) };
    let seeker = super::IdlestSearch { wakee, avg: scheduler.synced_avg(task), is_new: false };
    let mut scanned = 0;
    (scheduler.find_idlest_group_cpu(group, seeker, Cpu(0), &mut scanned).0, scanned)
}

#[test]
fn of_idle_cpus_that_wake_as_soon_the_one_that_went_idle_last_is_taken() {
    let taken = |idle: &[(u32, Option<u64>, Option<u64>)]| {
        let mut bed = of_other_cache("v6.6");
        for cpu in (4..8).filter(|&cpu| idle.iter().all(|&(other, ..)| other != cpu)) {
            bed.spawn(0, cpu);
        }
        for &(cpu, since, exit) in idle {
            let rq = &mut bed.scheduler.rqs[cpu as usize];
            (rq.idle_time.idle_stamp, rq.exit_latency) = (since.map(Ns), exit);
        }
        idlest_there(&bed).0
    };
    assert_eq!(taken(&[(4, Some(100), None), (5, Some(300), None), (6, Some(200), None)]), 5);
    assert_eq!(taken(&[(5, Some(100), None), (6, Some(100), None)]), 5, "the first of equals");
    assert_eq!(taken(&[(4, None, None), (5, Some(0), None)]), 5, "one that balances has no stamp");
    assert_eq!(taken(&[(4, Some(1), None), (5, Some(100), None)]), 5);
    assert_eq!(taken(&[(4, Some(100), Some(50)), (5, Some(300), Some(50))]), 5);
    assert_eq!(taken(&[(4, Some(100), Some(50)), (5, Some(300), Some(900))]), 4);
    assert_eq!(taken(&[(4, Some(300), Some(900)), (5, Some(100), Some(50))]), 5);
}

#[test]
fn only_allowed_cpus_of_a_group_are_looked_at_and_lone_ones_not_at_all() {
    let mut bed = of_other_cache("v6.6");
    assert_eq!(idlest_there(&bed), (4, 4));
    let task = bed.scheduler.curr(Cpu(0));
    bed.scheduler.shared.tasks[task.index()].allowed = CpuMask::parse_list("0-3,6").expect("a list");
    assert_eq!(idlest_there(&bed), (6, 1));
    let mut alone = machine("v6.6", (1, 2, 1));
    alone.spawn(0, 0);
    assert_eq!(idlest_there(&alone), (1, 0));
    let mut two = machine("v6.6", (1, 2, 2));
    two.spawn(0, 0);
    two.spawn(0, 2);
    assert_eq!(idlest_there(&two), (3, 2));
}

/// Loads of CPUs 4 to 7, all busy; `lowly`: with a task of SCHED_IDLE.
fn least_loaded(kernel: &str, loads: [u64; 4], lowly: &[u32], idle: &[u32]) -> u32 {
    let mut bed = of_other_cache(kernel);
    for (cpu, load) in (4..).zip(loads).filter(|(cpu, _)| !idle.contains(cpu)) {
        let policy = if lowly.contains(&cpu) { Policy::Idle } else { Policy::Normal };
        bed.spawn_with(0, cpu, policy, CpuMask::ALL);
        let root = bed.scheduler.rqs[cpu as usize].cfs;
        let avg = &mut bed.scheduler.cfs_mut(root).tracked.avg;
        (avg.load_avg, avg.runnable_avg) = (load, load);
    }
    idlest_there(&bed).0
}

#[test]
fn of_busy_cpus_the_first_of_the_least_loaded_is_taken() {
    assert_eq!(least_loaded("v6.6", [900, 300, 300, 500], &[], &[]), 5);
    assert_eq!(least_loaded("v6.6", [900, 300, 300, 200], &[], &[]), 7);
}

#[test]
fn cpus_with_idle_policy_tasks_came_after_idle_ones_in_v5_4_and_like_them_from_v5_6_on() {
    let loads = [900, 300, 300, 500];
    assert_eq!(least_loaded("v5.3", loads, &[7], &[]), 5);
    assert_eq!(least_loaded("v5.4", loads, &[6, 7], &[]), 6);
    assert_eq!(least_loaded("v5.4", loads, &[6], &[7]), 7);
    assert_eq!(least_loaded("v5.4", loads, &[7], &[6]), 6);
    assert_eq!(least_loaded("v5.6", loads, &[6], &[7]), 6);
    assert_eq!(least_loaded("v5.6", loads, &[6], &[4]), 6);
}

#[test]
fn a_domain_without_an_allowed_cpu_is_not_searched() {
    let mut bed = of_other_cache("v6.6");
    let task = bed.scheduler.curr(Cpu(0));
    bed.scheduler.shared.tasks[task.index()].allowed = CpuMask::parse_list("4-7").expect("a list");
    let wakee = Wakee { task, here: Cpu(0), prev: Cpu(0) };
    let flag = crate::domain::SdFlags::BALANCE_EXEC;
    let search = |id| bed.scheduler.find_idlest_cpu(id, wakee, flag);
    let found = bed.scheduler.domains.ids_of(Cpu(0)).map(search);
    let found = found.map(|decision| (decision.cpu.0, decision.reason, decision.scanned));
    let expected = [(0, SelectReason::NoDomain, 0), (4, SelectReason::IdlestInGroup, 8 + 4 + 4)];
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[test]
fn a_sleeper_is_taken_off_what_its_own_cpu_is_used_to() {
    let mut bed = machine("v6.6", (1, 1, 3));
    let sleeper = bed.spawn(0, 1);
    bed.sleep(1);
    bed.use_task(sleeper, 200);
    for cpu in [1, 2] {
        bed.use_cpu(cpu, 500);
        let root = bed.scheduler.rqs[cpu as usize].cfs;
        // Waiting is no use.
        bed.scheduler.cfs_mut(root).tracked.avg.runnable_avg = 900;
    }
    let avg = bed.entity(sleeper).avg;
    let wakee = Wakee { task: sleeper, here: Cpu(0), prev: Cpu(1) };
    let left = |avg, cpu| {
        bed.scheduler.cpu_util_without(Cpu(cpu), super::IdlestSearch { wakee, avg, is_new: false })
    };
    assert_eq!((left(avg, 1), left(avg, 2)), (300, 500));
    let unborn = crate::pelt::SchedAvg { last_update_time: 0, ..avg };
    assert_eq!(left(unborn, 1), 500, "a new task is in no sum");
}
