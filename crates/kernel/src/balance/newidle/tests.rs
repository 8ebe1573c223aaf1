//! How far a CPU that goes idle searches, what it remembers of that, and what it asks of others.

use super::*;
use crate::cpumask::CpuMask;
use crate::task::Policy;
use crate::testbed::{MS, SchedulerTestbed};
use crate::topology::{SmtNumbering, Topology};

/// Searches in vain, `pause` apart, until the chance is recomputed.
pub(crate) fn ratio_after(kernel: &str, pause: u64) -> u32 {
    let mut bed = SchedulerTestbed::new(kernel, 2, 1);
    for _ in 0..600 {
        bed.pass(pause);
        bed.at(0);
        bed.scheduler.update_newidle_stats(Cpu(0), 0, 0);
    }
    bed.scheduler.domain_state(Cpu(0), 0).newidle_ratio
}

#[test]
fn the_chance_of_a_search_follows_its_success_and_how_rare_it_is() {
    assert_eq!(ratio_after("v6.19", MS), 256, "256 of the 512 before it succeeded");
    assert_eq!(ratio_after("v7.1", MS), 256 + 122, "half a second, each 4.2 ms of it one more");
    assert_eq!(ratio_after("v7.1", 100 * MS), 1024, "as good as certain");
}

/// Whether a CPU searches for work whose real-time task leaves it with nothing but a sleeper that is still queued.
pub(crate) fn searches_beside_a_sleeper(kernel: &str) -> bool {
    let mut bed = SchedulerTestbed::new(kernel, 2, 1);
    let (_, waits) = (bed.spawn(0, 0), bed.spawn(0, 0));
    bed.pass(3 * MS);
    bed.sleep(0);
    assert_eq!(bed.scheduler.nr_running(Cpu(0)), 2, "{kernel}: it has run ahead, and stays queued");
    bed.spawn_with(0, 0, Policy::Fifo(1), CpuMask::single(Cpu(0)));
    bed.schedule(0);
    bed.at(0);
    bed.scheduler.move_queued_task(waits, Cpu(1));
    bed.leave(0);
    !bed.scheduler.skips_newidle(Cpu(0))
}

#[test]
fn a_queued_sleeper_keeps_a_cpu_that_leaves_real_time_from_searching_to_v6_18() {
    assert_eq!(["v6.12", "v6.18", "v6.19"].map(searches_beside_a_sleeper), [false, false, true]);
}

/// To v6.18 such a CPU does not begin to search, and so nobody notes since when it idles.
#[test]
fn nobody_notes_that_a_cpu_idles_that_leaves_a_real_time_task_beside_a_sleeper() {
    let stamped = |kernel: &str| {
        let mut bed = SchedulerTestbed::new(kernel, 2, 1);
        let (_, waits) = (bed.spawn(0, 0), bed.spawn(0, 0));
        bed.pass(3 * MS);
        bed.sleep(0);
        bed.spawn_with(0, 0, Policy::Fifo(1), CpuMask::single(Cpu(0)));
        bed.schedule(0);
        bed.at(0);
        bed.scheduler.move_queued_task(waits, Cpu(1));
        bed.sleep(0);
        assert!(bed.scheduler.runs_idle_task(Cpu(0)), "{kernel}: the sleeper has left");
        bed.scheduler.rqs[0].idle_time.idle_stamp.is_some()
    };
    assert_eq!(["v6.12", "v6.18", "v6.19"].map(stamped), [false, false, true]);
}

#[test]
fn going_idle_searches_only_if_that_takes_less_than_idling() {
    let searches = |kernel: &str, avg_idle, cost| {
        let mut bed = SchedulerTestbed::new(kernel, 2, 1);
        bed.spawn(0, 1);
        bed.spawn(0, 1);
        bed.at(0);
        bed.scheduler.rqs[0].idle_time.avg_idle = avg_idle;
        bed.scheduler.domain_state_mut(Cpu(0), 0).max_newidle_lb_cost = cost;
        let (mut search, update) = bed.scheduler.newidle_begin(Cpu(0));
        (update.cpus, bed.scheduler.newidle_next(Cpu(0), &mut search))
    };
    assert_eq!(searches("v5.15", 600_000, 0), (1, Some(0)));
    assert_eq!(searches("v5.15", 400_000, 0), (0, None), "less than sched_migration_cost");
    assert_eq!(searches("v5.15", 600_000, 700_000), (1, None), "load is aged for nothing");
    assert_eq!(searches("v5.16", 400_000, 0), (1, Some(0)));
    assert_eq!(searches("v5.16", 600_000, 700_000), (0, None));
}

#[test]
fn what_a_search_costs_is_remembered_and_decays() {
    let mut bed = SchedulerTestbed::new("v5.16", 2, 1);
    bed.at(0);
    bed.scheduler.update_newidle_cost(Cpu(0), 0, 25_600, 0);
    bed.scheduler.update_newidle_cost(Cpu(0), 0, 10, 0);
    assert_eq!(bed.scheduler.max_newidle_lb_cost(Cpu(0), 0), Ns(25_600));
    bed.pass(1002 * MS);
    bed.at(0);
    assert!(bed.scheduler.update_newidle_cost(Cpu(0), 0, 10, 0));
    assert_eq!(bed.scheduler.max_newidle_lb_cost(Cpu(0), 0), Ns(25_300));
    assert!(!bed.scheduler.update_newidle_cost(Cpu(0), 0, 10, 0), "once a second");
}

/// Two nodes of two cores of two threads at tick 100; some CPU has tasks to spare. Searching costs 1 us a level.
fn machine(kernel: &str) -> SchedulerTestbed {
    let topology = Topology::regular(2, 1, 2, 2, SmtNumbering::Adjacent).expect("a machine");
    let mut bed = SchedulerTestbed::on(kernel, topology);
    bed.pass(100 * MS);
    bed.at(0);
    bed.scheduler.shared.overloaded = true;
    bed.scheduler.rqs[0].idle_time.avg_idle = 600_000;
    for level in 0..3 {
        let state = bed.scheduler.domain_state_mut(Cpu(0), level);
        (state.max_newidle_lb_cost, state.decay_max_lb_cost, state.last_balance) = (1_000, 1 << 40, 100);
    }
    bed.scheduler.balance.cpus[0].next_balance = 5_000;
    bed
}

/// The levels that are searched, each of which takes `cost`.
fn search(bed: &mut SchedulerTestbed, cost: u64) -> (Vec<usize>, NewidleSearch) {
    let (mut search, _) = bed.scheduler.newidle_begin(Cpu(0));
    let mut levels = Vec::new();
    while let Some(level) = bed.scheduler.newidle_next(Cpu(0), &mut search) {
        levels.push(level);
        let decision = bed.scheduler.decide_balance(Cpu(0), level, CpuIdleType::NewlyIdle);
        bed.scheduler.apply_balance(&decision);
        bed.scheduler.newidle_searched(&decision, Ns(cost), &mut search);
    }
    (levels, search)
}

#[test]
fn levels_are_searched_while_that_takes_less_than_the_cpu_idles() {
    let levels = |cost| search(&mut machine("v5.16"), cost).0;
    assert_eq!(levels(1_000), [0, 1, 2]);
    assert_eq!(levels(299_500), [0, 1, 2], "599 us so far and 1 us for the next");
    assert_eq!(levels(299_501), [0, 1]);
    assert_eq!(levels(599_001), [0]);
    let mut bed = machine("v5.16");
    let id = bed.scheduler.domain_id(Cpu(0), 1);
    let flags = bed.scheduler.domains.domain(id).flags;
    bed.scheduler.domains.domain_mut(id).flags = flags & !SdFlags::BALANCE_NEWIDLE;
    assert_eq!(search(&mut bed, 1_000).0, [0, 2], "where that is done");
}

#[test]
fn a_machine_without_tasks_to_spare_is_not_searched() {
    let mut bed = machine("v5.16");
    bed.scheduler.shared.overloaded = false;
    let (levels, found) = search(&mut bed, 1_000);
    assert_eq!((levels, found.searches), (vec![], false));
    let mut alone = SchedulerTestbed::new("v5.16", 1, 1);
    alone.at(0);
    alone.scheduler.shared.overloaded = true;
    assert_eq!(search(&mut alone, 1_000).0, [], "there is no one to take from");
}

#[test]
fn a_search_ends_at_the_level_at_which_it_finds_something() {
    let mut bed = machine("v5.16");
    for _ in 0..4 {
        bed.spawn(0, 2);
    }
    bed.pass(20 * MS);
    bed.at(0);
    let (levels, found) = search(&mut bed, 1_000);
    assert_eq!(levels, [0, 1]);
    assert!(found.pulled > 0);
    assert!(bed.scheduler.rqs[0].idle_time.idle_stamp.is_some());
    bed.scheduler.newidle_end(Cpu(0), &found);
    assert_eq!(bed.scheduler.rqs[0].idle_time.idle_stamp, None, "it does not go idle");
}

#[test]
fn a_wakeup_that_is_on_its_way_ends_a_search_before_it_begins_or_between_levels() {
    let levels = |kernel, from_level| {
        let mut bed = machine(kernel);
        let (mut search, _) = bed.scheduler.newidle_begin(Cpu(0));
        let mut levels = Vec::new();
        while let Some(level) = bed.scheduler.newidle_next(Cpu(0), &mut search) {
            levels.push(level);
            let decision = bed.scheduler.decide_balance(Cpu(0), level, CpuIdleType::NewlyIdle);
            if level == from_level {
                bed.scheduler.ttwu_pending(Cpu(0));
            }
            bed.scheduler.newidle_searched(&decision, Ns(1_000), &mut search);
        }
        levels.len()
    };
    assert_eq!(["v5.12", "v5.13"].map(|kernel| levels(kernel, 1)), [3, 2]);
    let begins = |kernel| {
        let mut bed = machine(kernel);
        bed.scheduler.ttwu_pending(Cpu(0));
        let (search, update) = bed.scheduler.newidle_begin(Cpu(0));
        assert_eq!(search.is_woken, update.cpus == 0);
        let stamped = bed.scheduler.rqs[0].idle_time.idle_stamp.is_some();
        let kicks = bed.scheduler.newidle_end(Cpu(0), &search).1;
        assert!(kicks.is_none());
        (search.is_woken, stamped)
    };
    assert_eq!(begins("v5.14-e5e678e4fea2"), (false, true));
    assert_eq!(begins("v5.14"), (true, false));
}

#[test]
fn what_arrived_meanwhile_ends_a_search() {
    let mut bed = machine("v5.16");
    let (mut search, _) = bed.scheduler.newidle_begin(Cpu(0));
    let level = bed.scheduler.newidle_next(Cpu(0), &mut search).expect("a level");
    let decision = bed.scheduler.decide_balance(Cpu(0), level, CpuIdleType::NewlyIdle);
    bed.spawn(0, 0);
    bed.scheduler.newidle_searched(&decision, Ns(1_000), &mut search);
    assert_eq!(bed.scheduler.newidle_next(Cpu(0), &mut search), None);
}

#[test]
fn each_level_remembers_what_its_search_took_and_the_cpu_the_sum() {
    let mut bed = machine("v5.16");
    bed.scheduler.set_max_idle_balance_cost(Cpu(0), 20_000);
    let (mut search, _) = bed.scheduler.newidle_begin(Cpu(0));
    bed.scheduler.newidle_updated(&mut search, Ns(5_000));
    while let Some(level) = bed.scheduler.newidle_next(Cpu(0), &mut search) {
        let decision = bed.scheduler.decide_balance(Cpu(0), level, CpuIdleType::NewlyIdle);
        bed.scheduler.newidle_searched(&decision, Ns(10_000), &mut search);
    }
    let costs = [0, 1, 2].map(|level| bed.scheduler.max_newidle_lb_cost(Cpu(0), level).0);
    assert_eq!(costs, [15_000, 10_000, 10_000], "the first counts the update before it");
    bed.scheduler.newidle_end(Cpu(0), &search);
    assert_eq!(bed.scheduler.max_idle_balance_cost(Cpu(0)), 35_000);
    let mut older = machine("v5.15");
    let (mut search, _) = older.scheduler.newidle_begin(Cpu(0));
    older.scheduler.newidle_updated(&mut search, Ns(5_000));
    assert_eq!(search, NewidleSearch { update_cost: 0, ..search }, "to v5.15 it was free");
    older.scheduler.set_max_idle_balance_cost(Cpu(0), 20_000);
    older.scheduler.newidle_end(Cpu(0), &search);
    assert_eq!(older.scheduler.max_idle_balance_cost(Cpu(0)), 20_000, "the greatest stays");
}

#[test]
fn a_search_in_vain_made_the_next_seem_dearer_in_v6_17_and_v6_18() {
    let after = |kernel, before, cost| {
        let mut bed = machine(kernel);
        bed.scheduler.domain_state_mut(Cpu(0), 0).max_newidle_lb_cost = before;
        let (mut search, _) = bed.scheduler.newidle_begin(Cpu(0));
        let level = bed.scheduler.newidle_next(Cpu(0), &mut search).expect("a level");
        let decision = bed.scheduler.decide_balance(Cpu(0), level, CpuIdleType::NewlyIdle);
        bed.scheduler.newidle_searched(&decision, Ns(cost), &mut search);
        bed.scheduler.max_newidle_lb_cost(Cpu(0), 0).0
    };
    assert_eq!(["v6.16", "v6.17", "v6.19"].map(|kernel| after(kernel, 10_000, 50)), [10_000, 15_000, 10_000]);
    assert_eq!(after("v6.17", 400_000, 50), 500_200, "up to the migration cost and a bit");
}

/// Idle intervals are 2, 4 and 8 ms.
#[test]
fn the_next_balance_comes_when_a_level_is_due_that_was_searched_or_given_up() {
    let next = |kernel, last: [u64; 3], cost| {
        let mut bed = machine(kernel);
        for (level, last) in last.into_iter().enumerate() {
            bed.scheduler.domain_state_mut(Cpu(0), level).last_balance = last;
        }
        let (_, found) = search(&mut bed, cost);
        bed.scheduler.newidle_end(Cpu(0), &found);
        bed.scheduler.balance.cpus[0].next_balance
    };
    for kernel in ["v6.6", "v6.7"] {
        assert_eq!(next(kernel, [100, 100, 100], 1_000), 102, "{kernel}");
        assert_eq!(next(kernel, [900, 500, 700], 1_000), 504, "{kernel}");
        assert_eq!(next(kernel, [900, 500, 300], 599_001), 504, "{kernel}: the third is not looked at");
        assert_eq!(next(kernel, [4_000, 4_000, 4_000], 1_000), 1_100, "{kernel}: within a second");
    }
    let not_searched = |kernel| {
        let mut bed = machine(kernel);
        bed.scheduler.shared.overloaded = false;
        let (_, found) = search(&mut bed, 1_000);
        bed.scheduler.newidle_end(Cpu(0), &found);
        bed.scheduler.balance.cpus[0].next_balance
    };
    assert_eq!(not_searched("v6.6"), 102, "the lowest level counts even then");
}

#[test]
fn who_found_nothing_asks_for_blocked_load_to_be_updated() {
    let asks = |kernel, tasks| {
        let mut bed = machine(kernel);
        for cpu in [1, 2] {
            bed.scheduler.nohz_balance_enter_idle(Cpu(cpu));
        }
        bed.scheduler.balance.nohz.next_blocked = 0;
        bed.scheduler.shared.overloaded = false;
        let (_, found) = search(&mut bed, 1_000);
        for _ in 0..tasks {
            bed.spawn(0, 0);
        }
        let (work, _) = bed.scheduler.newidle_end(Cpu(0), &found);
        (work.blocked.cpus, bed.scheduler.balance.cpus[0].kick.newly_idle)
    };
    assert_eq!((asks("v5.12", 0), asks("v5.13", 0), asks("v5.13", 1)), ((2, false), (0, true), (0, false)));
    let mut searched = machine("v5.12");
    searched.scheduler.nohz_balance_enter_idle(Cpu(1));
    let (_, found) = search(&mut searched, 1_000);
    searched.scheduler.balance.nohz.next_blocked = 0;
    assert_eq!(
        searched.scheduler.newidle_end(Cpu(0), &found).0.blocked.cpus,
        0,
        "to v5.12 only who did not search"
    );
}

#[test]
fn to_v5_12_each_level_updated_the_idle_cpus_it_looked_at() {
    let updated = |kernel, level, stopped: &[u32]| {
        let mut bed = machine(kernel);
        for &cpu in stopped {
            bed.scheduler.nohz_balance_enter_idle(Cpu(cpu));
        }
        bed.pass(MS);
        bed.at(0);
        let next = bed.scheduler.balance.nohz.next_blocked;
        let update = bed.scheduler.newidle_update_stats(Cpu(0), level);
        (update.cpus, bed.scheduler.balance.nohz.next_blocked - next)
    };
    assert_eq!(updated("v5.12", 1, &[2, 3, 4]).0, 2);
    assert_eq!(updated("v5.12", 2, &[2, 3, 4]).0, 3);
    assert_eq!(updated("v5.13", 2, &[2, 3, 4]).0, 0);
    assert_eq!(updated("v5.12", 0, &[2, 3]).0, 0);
}

#[test]
fn the_cost_of_a_level_decays_each_second_or_after_a_quiet_one() {
    let decays = |kernel, since: u64| {
        let mut bed = machine(kernel);
        bed.scheduler.domain_state_mut(Cpu(0), 0).max_newidle_lb_cost = 256_000;
        bed.scheduler.domain_state_mut(Cpu(0), 0).decay_max_lb_cost = 100;
        bed.pass(since * MS);
        bed.at(0);
        let decayed = bed.scheduler.decay_newidle_cost(Cpu(0), 0, false);
        let state = bed.scheduler.domain_state(Cpu(0), 0);
        assert_eq!(state.max_newidle_lb_cost, if decayed { 253_000 } else { 256_000 });
        (decayed, state.decay_max_lb_cost)
    };
    assert_eq!(
        [0, 1].map(|since| decays("v5.15", since)),
        [(false, 100), (true, 1_101)],
        "it is the next time"
    );
    assert_eq!(
        [1_000, 1_001].map(|since| decays("v5.16", since)),
        [(false, 100), (true, 1_101)],
        "it was the last"
    );
    let mut bed = machine("v5.15");
    bed.scheduler.domain_state_mut(Cpu(0), 0).decay_max_lb_cost = 200;
    assert!(bed.scheduler.decay_newidle_cost(Cpu(0), 0, true), "a level below has decayed");
}

#[test]
fn a_level_that_never_finds_anything_is_searched_seldom() {
    let share = |kernel: &str, ratio| {
        let mut bed = machine(kernel);
        bed.scheduler.domain_state_mut(Cpu(0), 0).newidle_ratio = ratio;
        let mut search = NewidleSearch::default();
        let mut counts = Vec::new();
        for _ in 0..500 {
            if bed.scheduler.is_tried(Cpu(0), 0, &mut search) {
                counts.push(search.weight);
            }
        }
        counts.dedup();
        assert!(counts.len() <= 1, "{kernel}: {counts:?}");
        (bed.scheduler.domain_state(Cpu(0), 0).newidle_call, counts.first().copied())
    };
    assert_eq!(share("v6.18", 0), (512, Some(1)), "to v6.18 always");
    assert_eq!(share("v6.19+NO_NI_RANDOM", 0), (512, Some(1)));
    // Calls that were not tried are counted.
    let (calls, weight) = share("v6.19", 256);
    let tried = 1012 - calls;
    assert!((90..160).contains(&tried), "{tried} of 500: about one in four");
    assert_eq!(weight, Some(4), "which counts four");
    assert_eq!(share("v6.19", 1023), (512, Some(1)));
    assert!(share("v6.19", 0).0 > 1000, "hardly ever");
    assert_eq!(share("v7.1", 1024), (512, Some(1)));
    let mut bed = machine("v6.19");
    bed.scheduler.domain_state_mut(Cpu(0), 0).newidle_ratio = 0;
    let calls = bed.scheduler.domain_state(Cpu(0), 0).newidle_call;
    let mut search = NewidleSearch::default();
    while bed.scheduler.is_tried(Cpu(0), 0, &mut search) {}
    assert_eq!(bed.scheduler.domain_state(Cpu(0), 0).newidle_call, calls + 1, "a call without success");
}

#[test]
fn a_success_counts_as_many_as_the_calls_it_stands_for() {
    let mut bed = machine("v6.19");
    let before = *bed.scheduler.domain_state(Cpu(0), 0);
    bed.scheduler.update_newidle_cost(Cpu(0), 0, 500, 4);
    let after = *bed.scheduler.domain_state(Cpu(0), 0);
    assert_eq!(after.newidle_call, before.newidle_call + 1);
    assert_eq!(after.newidle_success, before.newidle_success + 4);
    bed.scheduler.update_newidle_cost(Cpu(0), 0, 0, 0);
    assert_eq!(bed.scheduler.domain_state(Cpu(0), 0).newidle_call, after.newidle_call, "a decay is no call");
}

/// By which time a CPU ages its own blocked load whose switch began half a millisecond ago: 0 for now, 1 for then.
pub(in crate::balance) fn ages_by_the_switch(kernel: &str) -> u64 {
    let mut bed = machine(kernel);
    bed.spawn(0, 0);
    bed.pass(20 * MS);
    bed.scheduler.shared.overloaded = true;
    bed.leave(0);
    let began = bed.now;
    bed.pass(MS / 2);
    bed.at(0);
    let (search, update) = bed.scheduler.newidle_begin(Cpu(0));
    assert!(search.searches && update.cpus == 1, "{kernel}");
    u64::from(bed.scheduler.rqs[0].clock == began)
}

#[test]
fn blocked_load_is_aged_by_the_time_of_the_switch_from_v7_0() {
    assert_eq!(["v6.19", "v7.0-newidle-lock", "v7.0"].map(ages_by_the_switch), [0, 0, 1]);
}
