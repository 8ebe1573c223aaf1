//! Who is kicked when, and what it does for the CPUs that idle without a tick.

use super::*;
use crate::balance::blocked::BlockedUpdate;
use crate::balance::state::Nohz;
use crate::cpumask::CpuMask;
use crate::task::{Policy, TaskId};
use crate::testbed::{MS, SchedulerTestbed};

/// Four CPUs under one cache at tick 100; `tasks` tasks run on CPU 0, `stopped` idle without a tick. Nothing is due.
fn machine(kernel: &str, tasks: u32, stopped: &[u32]) -> SchedulerTestbed {
    machine_with_load(kernel, tasks, stopped, None)
}

/// The same where a task sleeps that has run on CPU `loaded`.
fn machine_with_load(kernel: &str, tasks: u32, stopped: &[u32], loaded: Option<u32>) -> SchedulerTestbed {
    let mut bed = SchedulerTestbed::new(kernel, 4, 1);
    let mut passed = u64::from(tasks);
    if let Some(cpu) = loaded {
        bed.spawn(0, cpu);
        bed.run(cpu, 20);
        bed.sleep(cpu);
        passed += 20 * MS + 1;
    }
    for _ in 0..tasks {
        bed.spawn(0, 0);
    }
    bed.pass(100 * MS - passed);
    for &cpu in stopped {
        bed.at(cpu);
        bed.scheduler.nohz_balance_enter_idle(Cpu(cpu));
    }
    bed.scheduler.balance.nohz.next_balance = 101;
    bed.scheduler.balance.nohz.next_blocked = 100;
    bed.scheduler.balance.nohz.needs_update = false;
    bed.at(0);
    bed
}

fn nohz(bed: &mut SchedulerTestbed) -> &mut Nohz {
    &mut bed.scheduler.balance.nohz
}

fn kick_of(bed: &SchedulerTestbed, cpu: u32) -> NohzKick {
    bed.scheduler.balance.cpus[cpu as usize].kick
}

/// The tick of CPU 0: who is to be kicked.
fn tick(bed: &mut SchedulerTestbed) -> Option<u32> {
    bed.at(0);
    bed.scheduler.trigger_load_balance(Cpu(0)).kick.map(|cpu| cpu.0)
}

fn busy_cpus(bed: &SchedulerTestbed) -> u32 {
    let shared = bed.scheduler.domains.of_cpu(Cpu(0)).sd_llc_shared.expect("a cache");
    bed.scheduler.domains.shared(shared).nr_busy_cpus
}

/// The SCHED softirq of a CPU that was kicked and got there.
fn kicked(bed: &mut SchedulerTestbed, cpu: u32) -> BalanceWork {
    bed.at(cpu);
    assert!(bed.scheduler.nohz_kicked(Cpu(cpu)));
    bed.scheduler.run_rebalance_domains(Cpu(cpu))
}

fn cpu_of(bed: &SchedulerTestbed, task: TaskId) -> u32 {
    bed.scheduler.task(task).cpu().0
}

/// Whether a CPU stops its tick before one has found it idle.
pub(crate) fn stops_at_once(kernel: &str) -> bool {
    machine(kernel, 0, &[]).scheduler.idle_call_stops_tick(false)
}

#[test]
fn a_tick_stops_at_once_and_from_v7_0_on_after_one_that_found_the_cpu_idle() {
    let kernels = ["v6.19", "v7.0", "v7.0-f4c31b07b136", "debian-5.10", "debian-6.1", "debian-6.12"];
    assert_eq!(kernels.map(stops_at_once), [true, false, true, true, false, false]);
    assert!(machine("v7.0", 0, &[]).scheduler.idle_call_stops_tick(true));
}

#[test]
fn a_cpu_counts_as_idle_from_when_its_tick_stops_to_its_next_tick() {
    let mut bed = machine("v5.16", 0, &[1, 2]);
    assert_eq!((nohz(&mut bed).idle_cpus.to_string(), busy_cpus(&bed)), ("1-2".to_string(), 2));
    bed.scheduler.nohz_balance_enter_idle(Cpu(1));
    assert_eq!(busy_cpus(&bed), 2, "it had stopped already");
    assert!(!nohz(&mut bed).needs_update);
    bed.scheduler.nohz_balance_enter_idle(Cpu(0));
    assert!(nohz(&mut bed).needs_update && bed.scheduler.balance.cpus[0].has_blocked_load);
    assert_eq!((nohz(&mut bed).idle_cpus.to_string(), busy_cpus(&bed)), ("0-2".to_string(), 1));
    assert_eq!(tick(&mut bed), None);
    assert_eq!(busy_cpus(&bed), 1, "it idles still, with a tick");
    bed.spawn(0, 0);
    tick(&mut bed);
    assert_eq!((nohz(&mut bed).idle_cpus.to_string(), busy_cpus(&bed)), ("1-2".to_string(), 2));
    tick(&mut bed);
    assert_eq!(busy_cpus(&bed), 2, "once");
    let mut older = machine("v5.15", 0, &[]);
    older.scheduler.nohz_balance_enter_idle(Cpu(1));
    assert!(!nohz(&mut older).needs_update && nohz(&mut older).has_blocked);
}

#[test]
fn a_cpu_with_two_tasks_kicks_an_idle_one_once_that_is_due() {
    let kicks = |tasks, stopped: &[u32], next_balance| {
        let mut bed = machine("v5.10", tasks, stopped);
        nohz(&mut bed).next_balance = next_balance;
        let cpu = tick(&mut bed)?;
        let kick = kick_of(&bed, cpu);
        assert_eq!((kick.balance, kick.stats, kick.next), (true, true, false));
        assert_eq!(nohz(&mut bed).next_balance, 101);
        Some(cpu)
    };
    assert_eq!([99, 100, 101].map(|next| kicks(2, &[1, 2, 3], next)), [Some(1), Some(1), None]);
    assert_eq!(kicks(2, &[], 100), None, "there is no one to kick");
    assert_eq!(kicks(1, &[1, 2, 3], 100), None, "a single task on the only busy CPU");
    assert_eq!(kicks(1, &[2, 3], 100), Some(2), "two busy CPUs share a cache");
}

#[test]
fn an_idle_cpu_kicks_nobody() {
    let mut bed = machine("v5.10", 0, &[1]);
    (nohz(&mut bed).next_balance, nohz(&mut bed).next_blocked) = (0, 0);
    assert_eq!(tick(&mut bed), None);
}

#[test]
fn blocked_load_is_a_reason_after_the_tick_at_which_it_is_due() {
    let kick = |has_blocked, next_blocked| {
        let mut bed = machine("v5.10", 1, &[1]);
        (nohz(&mut bed).has_blocked, nohz(&mut bed).next_blocked) = (has_blocked, next_blocked);
        tick(&mut bed).map(|cpu| kick_of(&bed, cpu))
    };
    assert_eq!(kick(true, 99), Some(NohzKick::STATS));
    assert_eq!((kick(true, 100), kick(false, 99)), (None, None));
}

#[test]
fn a_new_idle_cpu_is_a_reason_of_its_own_from_v5_16_on() {
    let mut bed = machine("v5.16", 1, &[1]);
    nohz(&mut bed).needs_update = true;
    assert_eq!(tick(&mut bed), Some(1));
    assert_eq!(kick_of(&bed, 1), NohzKick { next: true, ..NohzKick::default() });
}

/// On a machine of small and big CPUs a task that is too large is a reason, and other busy CPUs are none.
#[test]
fn a_task_that_outgrew_its_cpu_is_a_reason() {
    let kicks = |util| {
        let mut bed = SchedulerTestbed::small_and_big("v5.10");
        let task = bed.spawn(0, 0);
        bed.use_task(task, util);
        bed.pass(1);
        bed.at(3);
        bed.scheduler.nohz_balance_enter_idle(Cpu(3));
        assert_eq!(busy_cpus(&bed), 3);
        tick(&mut bed)
    };
    assert_eq!((kicks(400), kicks(500)), (None, Some(3)));
}

#[test]
fn the_first_stopped_cpu_was_kicked_or_nobody_and_then_the_first_that_idles() {
    let kicks = |kernel| {
        let mut bed = machine(kernel, 2, &[1, 2]);
        nohz(&mut bed).next_balance = 100;
        bed.scheduler.ttwu_pending(Cpu(1));
        tick(&mut bed)
    };
    assert_eq!(["v5.1", "v5.2"].map(kicks), [None, Some(2)]);
}

#[test]
fn a_cpu_that_was_asked_is_not_told_again_and_does_both() {
    let mut bed = machine("v5.10", 2, &[1]);
    assert_eq!(bed.scheduler.kick_ilb(NohzKick::STATS), Some(Cpu(1)));
    nohz(&mut bed).next_balance = 100;
    assert_eq!(tick(&mut bed), None);
    assert_eq!(kick_of(&bed, 1), NohzKick::BALANCE);
    let mut bed = machine("v5.10", 2, &[1]);
    bed.scheduler.balance.cpus[1].kick.newly_idle = true;
    assert_eq!(
        bed.scheduler.kick_ilb(NohzKick::STATS),
        Some(Cpu(1)),
        "it has asked itself for the idle loop"
    );
    assert!(kick_of(&bed, 1).newly_idle && kick_of(&bed, 1).stats);
}

#[test]
fn the_next_kick_may_come_at_the_next_tick_from_v5_9_on() {
    let next = |kernel, kick| {
        let mut bed = machine(kernel, 2, &[1]);
        nohz(&mut bed).next_balance = 50;
        bed.scheduler.kick_ilb(kick);
        nohz(&mut bed).next_balance
    };
    assert_eq!(["v5.8", "v5.9"].map(|kernel| next(kernel, NohzKick::BALANCE)), [51, 101]);
    assert_eq!(["v5.8", "v5.9"].map(|kernel| next(kernel, NohzKick::STATS)), [51, 50]);
}

#[test]
fn a_kick_is_lost_on_a_cpu_that_has_something_to_do() {
    let asked = NohzKick { newly_idle: true, ..NohzKick::BALANCE };
    let arrives = |kernel: &str, disturb: fn(&mut SchedulerTestbed)| {
        let mut bed = machine(kernel, 2, &[1]);
        bed.scheduler.balance.cpus[1].kick = asked;
        disturb(&mut bed);
        bed.at(1);
        let does = bed.scheduler.nohz_kicked(Cpu(1));
        (does, kick_of(&bed, 1), bed.scheduler.balance.cpus[1].told)
    };
    let (only_own, none) = (NohzKick { newly_idle: true, ..NohzKick::default() }, NohzKick::default());
    let busy: [fn(&mut SchedulerTestbed); 2] =
        [|bed| _ = bed.spawn(0, 1), |bed| bed.scheduler.force_need_resched(Cpu(1), true, false)];
    assert_eq!(arrives("v5.7", |_| ()), (true, asked, none));
    assert_eq!(arrives("v5.8", |_| ()), (true, none, asked));
    for disturb in busy {
        assert_eq!(arrives("v5.7", disturb), (false, only_own, none));
        assert_eq!(arrives("v5.8", disturb), (false, none, none));
    }
}

/// Whether an idle CPU balances for others in its own soft interrupt, before the interrupt by which it is kicked is there.
pub(crate) fn balances_before_told(kernel: &str) -> u64 {
    let mut bed = machine(kernel, 2, &[1]);
    let cpu = &mut bed.scheduler.balance.cpus[1];
    (cpu.kick, cpu.idle_balance) = (NohzKick::BALANCE, true);
    bed.at(1);
    bed.scheduler.nohz_idle_balance(Cpu(1)).is_some().into()
}

#[test]
fn what_a_kick_asks_for_waits_for_its_interrupt_from_v5_8_on() {
    assert_eq!(["v5.7", "v5.8", "v6.1", "v7.2"].map(balances_before_told), [1, 0, 0, 0]);
}

/// CPU 2 is kicked. All idle CPUs are due; CPU 0 has a task that only waits.
fn puller(kernel: &str, due: [u64; 4]) -> (SchedulerTestbed, u32) {
    let mut bed = machine(kernel, 1, &[1, 2, 3]);
    let waits = bed.spawn(0, 0);
    bed.pass(10 * MS);
    for (cpu, due) in due.into_iter().enumerate() {
        bed.scheduler.balance.cpus[cpu].next_balance = due;
    }
    bed.scheduler.balance.cpus[2].ask(NohzKick::BALANCE);
    kicked(&mut bed, 2);
    let cpu = cpu_of(&bed, waits);
    (bed, cpu)
}

#[test]
fn idle_cpus_are_balanced_in_an_order_that_has_changed() {
    assert_eq!(puller("v5.12", [0; 4]).1, 1, "from the first on");
    assert_eq!(puller("v5.13", [0; 4]).1, 3, "from the next neighbour on");
    assert_eq!(puller("v5.12", [0, 900, 0, 900]).1, 2, "at last the one that was kicked");
    assert_eq!(puller("v5.13", [0, 0, 0, 900]).1, 1);
    assert_eq!(puller("v5.13", [0, 900, 0, 900]).1, 2);
    assert_eq!(puller("v5.12", [0, 900, 900, 900]).1, 2, "due or not");
    assert_eq!(puller("v5.13", [0, 900, 900, 900]).1, 0, "only if it is due");
    assert_eq!(puller("v5.13", [0, 111, 111, 111]).1, 0);
    assert_eq!(puller("v5.13", [0, 110, 111, 111]).1, 1, "from that tick on");
}

#[test]
fn the_next_kick_comes_when_the_first_of_the_idle_cpus_is_due() {
    let (mut bed, _) = puller("v5.13", [0, 900, 700, 800]);
    assert_eq!(nohz(&mut bed).next_balance, 700);
    let (mut bed, _) = puller("v5.13", [0, 99_900, 99_700, 99_800]);
    assert_eq!(nohz(&mut bed).next_balance, 101, "beyond a minute it is left as it is");
    let (mut bed, _) = puller("v5.13", [500, 60_110, 60_111, 60_109]);
    assert_eq!(nohz(&mut bed).next_balance, 60_109);
}

#[test]
fn cpus_that_found_work_are_passed_over() {
    let mut bed = machine("v5.13", 1, &[1, 2, 3]);
    let waits = bed.spawn(0, 0);
    bed.scheduler.ttwu_pending(Cpu(3));
    bed.scheduler.balance.cpus[2].ask(NohzKick::BALANCE);
    bed.scheduler.balance.cpus[3].next_balance = 105;
    kicked(&mut bed, 2);
    assert_eq!(cpu_of(&bed, waits), 1);
    let next = nohz(&mut bed).next_balance;
    assert!(next != 105, "when it would be due is not looked at: {next}");
}

#[test]
fn a_kick_for_blocked_load_moves_nothing() {
    let mut bed = machine("v5.13", 1, &[1, 2, 3]);
    let waits = bed.spawn(0, 0);
    bed.scheduler.balance.cpus[2].ask(NohzKick::STATS);
    let work = kicked(&mut bed, 2);
    assert_eq!((work.tries, work.blocked.cpus, cpu_of(&bed, waits)), (0, 3, 0));
    assert_eq!(kick_of(&bed, 2), NohzKick::default());
    assert!(!nohz(&mut bed).has_blocked, "there was none");
    assert_eq!(nohz(&mut bed).next_blocked, 100 + 32);
}

#[test]
fn a_kick_for_the_next_balance_leaves_blocked_load_alone() {
    let mut bed = machine("v5.16", 1, &[1, 2]);
    nohz(&mut bed).needs_update = true;
    bed.scheduler.balance.cpus[2].ask(NohzKick { next: true, ..NohzKick::default() });
    let work = kicked(&mut bed, 2);
    assert_eq!(work, BalanceWork::default());
    assert_eq!(nohz(&mut bed).next_blocked, 100);
    assert!(nohz(&mut bed).has_blocked && !nohz(&mut bed).needs_update);
}

#[test]
fn blocked_load_that_is_left_is_remembered() {
    let left = |kernel, loaded: u32| {
        let mut bed = machine_with_load(kernel, 1, &[1, 2], Some(loaded));
        bed.scheduler.balance.cpus[2].ask(NohzKick::STATS);
        kicked(&mut bed, 2);
        nohz(&mut bed).has_blocked
    };
    for kernel in ["v5.12", "v5.13"] {
        assert_eq!([0, 1, 2].map(|loaded| left(kernel, loaded)), [false, true, true], "{kernel}");
    }
}

#[test]
fn an_idle_cpu_that_should_reschedule_stops_and_leaves_the_rest_to_others() {
    let stops = |kernel, busy| {
        let mut bed = machine(kernel, 1, &[1, 2, 3]);
        nohz(&mut bed).needs_update = true;
        let kick = NohzKick { next: true, ..NohzKick::STATS };
        if busy {
            bed.spawn(0, 2);
        }
        bed.scheduler.force_need_resched(Cpu(2), true, false);
        bed.at(2);
        let mut work = BalanceWork::default();
        bed.scheduler.balance_idle_cpus(Cpu(2), kick, NohzKind::Kicked, &mut work);
        let nohz = nohz(&mut bed);
        assert_eq!((nohz.has_blocked, nohz.needs_update), (work.blocked.cpus == 0, work.blocked.cpus == 0));
        work.blocked.cpus == 0
    };
    assert_eq!(
        [("v6.12", false), ("v6.13", false), ("v6.13", true)].map(|(k, b)| stops(k, b)),
        [true, false, true]
    );
}

/// A CPU that goes idle and idles for long finds that blocked load is due.
#[test]
fn who_updates_blocked_load_for_a_cpu_that_goes_idle_has_changed() {
    let looks = |kernel, avg_idle, next_blocked, woken| {
        let mut bed = machine(kernel, 1, &[1, 2]);
        bed.scheduler.rqs[3].idle_time.avg_idle = avg_idle;
        bed.scheduler.force_need_resched(Cpu(3), woken, false);
        nohz(&mut bed).next_blocked = next_blocked;
        bed.at(3);
        let mut work = BalanceWork::default();
        let kick = bed.scheduler.nohz_newidle_balance(Cpu(3), &mut work).map(|cpu| cpu.0);
        (work.blocked.cpus, kick, kick_of(&bed, 3).newly_idle)
    };
    let newidle = |kernel, avg_idle, next_blocked| looks(kernel, avg_idle, next_blocked, false);
    assert_eq!(newidle("v5.12", 500_000, 100), (2, None, false), "it does so itself");
    for kernel in ["v4.18", "v5.12"] {
        let asked = looks(kernel, 500_000, 100, true);
        assert_eq!(
            asked,
            (0, Some(1), false),
            "{kernel}: the task that left should have made way: it asks another"
        );
    }
    let between = "v5.13-c6f886546cb8";
    assert_eq!(newidle(between, 500_000, 100), (0, Some(1), false), "it asks another");
    assert_eq!(newidle("v5.13", 500_000, 100), (0, None, true), "its idle loop does");
    for kernel in ["v5.12", between, "v5.13"] {
        assert_eq!(newidle(kernel, 499_999, 100), (0, None, false), "{kernel}: it idles for a moment only");
        assert_eq!(newidle(kernel, 500_000, 101), (0, None, false), "{kernel}: it is not due");
    }
}

#[test]
fn the_idle_loop_updates_blocked_load_if_it_was_asked_to_and_nothing_else_comes() {
    let updated = |disturb: fn(&mut SchedulerTestbed)| {
        let mut bed = machine("v5.13", 1, &[1, 2, 3]);
        bed.scheduler.balance.cpus[3].kick.newly_idle = true;
        disturb(&mut bed);
        bed.at(3);
        let cpus = bed.scheduler.nohz_run_idle_balance(Cpu(3)).blocked.cpus;
        assert!(!kick_of(&bed, 3).newly_idle, "once");
        cpus
    };
    assert_eq!(updated(|_| ()), 3);
    assert_eq!(updated(|bed| bed.scheduler.balance.cpus[3].kick.newly_idle = false), 0);
    assert_eq!(updated(|bed| bed.scheduler.balance.cpus[3].kick.stats = true), 0, "a kick is on its way");
    assert_eq!(updated(|bed| bed.scheduler.force_need_resched(Cpu(3), true, false)), 0);
}

#[test]
fn how_often_blocked_load_of_a_cpu_is_updated_is_limited() {
    let updates = |kernel, forced, last: u64| {
        let mut bed = machine_with_load(kernel, 1, &[1], Some(1));
        bed.scheduler.balance.cpus[1].last_blocked_load_update_tick = last;
        let mut update = BlockedUpdate::default();
        assert!(bed.scheduler.update_nohz_stats(Cpu(1), forced, &mut update), "some is left");
        assert_eq!(bed.scheduler.remote_updates(Cpu(1)), u64::from(update.cpus == 1 && !forced));
        update.cpus
    };
    assert_eq!([99, 100].map(|last| updates("v5.10", false, last)), [1, 0], "once a tick");
    assert_eq!(updates("v5.10", true, 100), 1);
    let limited = "v5.10+nohz-blocked-rate-limit";
    assert_eq!([49, 50, 99].map(|last| updates(limited, false, last)), [1, 0, 0], "once in 50 ms");
    let mut bed = machine("v5.10", 1, &[1]);
    let mut update = BlockedUpdate::default();
    assert!(!bed.scheduler.update_nohz_stats(Cpu(2), true, &mut update), "it has a tick");
    bed.scheduler.balance.cpus[1].has_blocked_load = false;
    assert!(!bed.scheduler.update_nohz_stats(Cpu(1), true, &mut update) && update.cpus == 0);
}

#[test]
fn a_real_time_task_beside_a_fair_one_is_a_reason_too() {
    let mut bed = machine("v5.10", 1, &[1, 2, 3]);
    bed.spawn_with(0, 0, Policy::Fifo(10), CpuMask::ALL);
    nohz(&mut bed).next_balance = 100;
    assert_eq!(tick(&mut bed), Some(1));
}

/// Two small and two big CPUs; a large task runs on `cpu`, and another one idles: whether that is kicked.
fn kicks_for_large(kernel: &str, cpu: u32) -> bool {
    let mut bed = SchedulerTestbed::small_and_big(kernel);
    let task = bed.spawn(0, cpu);
    bed.pass(100 * MS);
    bed.at(1);
    bed.scheduler.nohz_balance_enter_idle(Cpu(1));
    nohz(&mut bed).next_balance = 0;
    (nohz(&mut bed).has_blocked, nohz(&mut bed).needs_update) = (false, false);
    bed.use_task(task, 1000);
    bed.at(cpu);
    bed.scheduler.trigger_load_balance(Cpu(cpu)).kick.is_some()
}

#[test]
fn nobody_is_kicked_for_a_task_on_the_biggest_cpu() {
    for kernel in ["v5.10", "v6.9", "v6.10"] {
        assert_eq!([0, 2].map(|cpu| kicks_for_large(kernel, cpu)), [true, false], "{kernel}");
    }
}

#[test]
fn an_idle_cpu_without_tasks_stays_idle_at_once_from_v6_12_on() {
    let stays = |kernel, queued: bool| {
        let mut bed = machine(kernel, 2, &[1]);
        if queued {
            bed.spawn(0, 1);
        }
        bed.scheduler.stays_idle(Cpu(1))
    };
    assert_eq!(["v6.11", "v6.12", "v7.2"].map(|kernel| stays(kernel, false)), [false, true, true]);
    assert!(!stays("v6.12", true), "it has something to do");
}
