//! Which clock a governor asks for, and how often.

use super::*;
use crate::ablation::AblationSituation;
use crate::cpufreq::rules::Headroom;
use crate::decision::PickReason;
use crate::task::{Policy, TaskId};
use crate::testbed::{MS, SchedulerTestbed};

pub(super) fn domain(cpus: &str, fast_switch: bool) -> FrequencyDomain {
    FrequencyDomain {
        cpus: CpuMask::parse_list(cpus).expect("a list of CPUs"),
        frequencies: vec![500_000, 1_000_000, 1_500_000, 2_000_000],
        rate_limit: Ns(2 * MS),
        fast_switch,
        invariant: true,
    }
}

/// Runs for `milliseconds`; requests are carried out at once. Returns them with the millisecond of each.
fn run(bed: &mut SchedulerTestbed, milliseconds: u64) -> Vec<(u64, u32)> {
    let (mut requests, mut seen) = (Vec::new(), Vec::new());
    for millisecond in 0..milliseconds {
        bed.pass(MS);
        bed.tick(0);
        bed.scheduler.take_frequency_requests(&mut requests);
        for request in requests.drain(..) {
            bed.scheduler.set_frequency(request.policy, request.khz);
            seen.push((millisecond, request.khz));
        }
    }
    seen
}

pub(super) fn hog(kernel: &str, domains: Vec<FrequencyDomain>) -> (SchedulerTestbed, TaskId) {
    let mut bed = SchedulerTestbed::new(kernel, 2, 1);
    bed.scheduler.set_frequency_domains(domains);
    let task = bed.spawn(0, 0);
    (bed, task)
}

#[test]
fn a_hog_drives_its_clock_up_step_by_step() {
    for kernel in ["v5.4", "v5.10", "v6.6", "v6.12"] {
        let (mut bed, _) = hog(kernel, vec![domain("0-1", true)]);
        let requests = run(&mut bed, 200);
        let frequencies = requests.iter().map(|&(_, khz)| khz).collect::<Vec<_>>();
        assert!(frequencies.is_sorted(), "{kernel}: {requests:?}");
        assert_eq!(frequencies.last(), Some(&2_000_000), "{kernel}: {requests:?}");
        assert!(requests.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 2), "{kernel}: {requests:?}");
        assert_eq!(bed.scheduler.cpu_scale(Cpu(1)).frequency, 1024, "the other CPU has the same clock");
    }
}

#[test]
fn a_slow_clock_slows_the_pelt_clock_and_scales_contributions_before_there_was_one() {
    for kernel in ["v4.19", "v5.10"] {
        let util_after = |domains| {
            let (mut bed, task) = hog(kernel, domains);
            for _ in 0..20 {
                bed.pass(MS);
                bed.tick(0);
            }
            bed.entity(task).avg.util_avg
        };
        let slowed = util_after(vec![FrequencyDomain {
            frequencies: vec![500_000, 2_000_000],
            rate_limit: Ns(1 << 40),
            ..domain("0", true)
        }]);
        let full = util_after(Vec::new());
        assert!(slowed < full, "{kernel}: {slowed} at a quarter of the speed, {full} at full speed");
    }
}

#[test]
fn a_real_time_task_gets_full_speed() {
    let mut bed = SchedulerTestbed::new("v6.6", 2, 1);
    bed.scheduler.set_frequency_domains(vec![domain("0", true)]);
    bed.spawn(0, 0);
    bed.spawn_with(0, 0, Policy::Fifo(10), CpuMask::ALL);
    bed.schedule(0);
    bed.pass(3 * MS);
    assert_eq!(bed.scheduler.shared.sugov_get_util(Cpu(0)), 1024);
}

#[test]
fn only_a_cpu_of_the_policy_may_ask() {
    let (mut bed, _) = hog("v6.6", vec![domain("0", true)]);
    bed.pass(50 * MS);
    bed.scheduler.set_here(Cpu(1), crate::core::KernelContext::Task, Ns(60 * MS));
    assert!(!bed.scheduler.shared.sugov_should_update_freq(0, Ns(60 * MS)));
    bed.scheduler.set_here(Cpu(0), crate::core::KernelContext::Task, Ns(60 * MS));
    assert!(bed.scheduler.shared.sugov_should_update_freq(0, Ns(60 * MS)));
}

#[test]
fn what_is_asked_for_while_a_thread_switches_comes_next() {
    let (mut bed, _) = hog("v5.10", vec![domain("0", false)]);
    let mut requests = Vec::new();
    for _ in 0..300 {
        bed.pass(MS);
        bed.tick(0);
        bed.scheduler.take_frequency_requests(&mut requests);
    }
    assert_eq!(requests.len(), 1, "the thread has been told once and has not begun: {requests:?}");
    let last = bed.scheduler.sugov_work(0);
    assert!(last > requests[0].khz, "it sets what was asked for last: {last} and {requests:?}");
    // While it works it can be told again.
    bed.sleep(0);
    bed.pass(100 * MS);
    bed.at(0);
    bed.scheduler.update_blocked_averages(Cpu(0));
    bed.scheduler.take_frequency_requests(&mut requests);
    assert!(requests.len() == 2 && requests[1].khz < last, "{requests:?}");
    assert_eq!(bed.scheduler.cpu_scale(Cpu(0)).frequency, 256, "nothing is in force yet");
    bed.scheduler.set_frequency(0, last);
    assert_eq!(bed.scheduler.cpu_scale(Cpu(0)).frequency, 1024);
}

/// A clock whose frequency the scheduler is not told: where a hog drives it in 200 ms, kHz.
fn clock_of_a_hog_untold(kernel: &str) -> u32 {
    let (mut bed, _) = hog(kernel, vec![FrequencyDomain { invariant: false, ..domain("0-1", true) }]);
    assert_eq!(bed.scheduler.cpu_scale(Cpu(0)).frequency, 1024, "the scheduler takes it for the highest");
    assert_eq!(bed.scheduler.frequency(Cpu(0)), 256, "it is the lowest");
    run(&mut bed, 200).last().map_or(500_000, |&(_, khz)| khz)
}

/// From 9c0b4bb7f630 on a full CPU asks for what it has, and e37617c8e53a asks for a quarter more.
#[test]
fn a_clock_that_the_scheduler_is_not_told_of_stays_low_between_two_commits() {
    for (kernel, khz) in [
        ("v5.4", 2_000_000),
        ("v6.7", 2_000_000),
        ("9c0b4bb7f630", 500_000),
        ("b3edde44e5d4", 500_000),
        ("e37617c8e53a", 2_000_000),
        ("v6.8", 2_000_000),
        ("v7.2", 2_000_000),
    ] {
        assert_eq!(clock_of_a_hog_untold(kernel), khz, "{kernel}");
    }
}

/// A thread that sets clocks goes before real-time and fair tasks, behind stoppers, and stays where it was.
#[test]
fn a_thread_that_sets_clocks_goes_before_all_but_stoppers() {
    let mut bed = SchedulerTestbed::new("v5.4", 2, 1);
    let setter = bed.spawn_with(0, 0, Policy::Deadline, CpuMask::first(2));
    assert_eq!(bed.schedule(0).reason, PickReason::DeadlineClass);
    bed.sleep(0);
    let urgent = bed.spawn_with(0, 0, Policy::Fifo(99), CpuMask::single(Cpu(0)));
    bed.schedule(0);
    assert_eq!(bed.scheduler.curr(Cpu(0)), urgent);
    assert!(bed.wake(setter, 0), "it takes the CPU");
    assert_eq!(bed.scheduler.task(setter).cpu(), Cpu(0), "though the other one idles");
    assert_eq!(bed.schedule(0).task, setter);
    assert_eq!(bed.scheduler.task(setter).prio().0, -1);
    let stopper = bed.spawn_with(0, 0, Policy::Stop, CpuMask::single(Cpu(0)));
    assert_eq!(bed.schedule(0).task, stopper);
    bed.sleep(0);
    assert_eq!(bed.scheduler.curr(Cpu(0)), setter);
}

#[test]
fn headroom_is_a_quarter_whichever_way_it_is_added() {
    for (rule, util, capacity, khz) in [
        (Headroom::OnFrequency, 333, 1024, 812_988),
        (Headroom::OnUtilization, 333, 1024, 812_500),
        (Headroom::OnFrequency, 400, 400, 2_500_000),
        (Headroom::OnUtilization, 400, 400, 2_500_000),
    ] {
        assert_eq!(rule.map(util, 2_000_000, capacity), khz, "{rule:?}");
    }
}

/// CPU 0 uses `util` of it at that millisecond: the frequency that is asked for then.
fn asks(bed: &mut SchedulerTestbed, milliseconds: u64, util: u64) -> Option<u32> {
    bed.scheduler.set_here(Cpu(0), crate::core::KernelContext::Task, Ns(milliseconds * MS));
    bed.scheduler.rqs[0].clock = Ns(milliseconds * MS);
    bed.use_cpu(0, util);
    let root = bed.scheduler.rqs[0].cfs;
    bed.scheduler.cfs_mut(root).tracked.avg.util_est = Default::default();
    bed.scheduler.rq_lock(Cpu(0)).cpufreq_update_util();
    let mut requests = Vec::new();
    bed.scheduler.take_frequency_requests(&mut requests);
    assert!(requests.len() <= 1);
    requests.first().map(|request| request.khz)
}

fn governed(kernel: &str, cpus: &str) -> SchedulerTestbed {
    let mut bed = SchedulerTestbed::new(kernel, 2, 1);
    bed.scheduler.set_frequency_domains(vec![domain(cpus, true)]);
    bed
}

#[test]
fn the_clock_is_the_lowest_that_leaves_a_fifth_of_it_free() {
    // From v5.14 on the quarter is added to the utilization, and rounded down there.
    for (kernel, more) in [("v5.10", 0), ("v6.6", 1)] {
        let at = |util: u64| asks(&mut governed(kernel, "0-1"), 10, util + more);
        assert_eq!(at(204), None, "{kernel}: 500 MHz is enough, and in force");
        assert_eq!(at(205), Some(1_000_000), "{kernel}: a quarter more than 400 MHz");
        assert_eq!([409, 410].map(at), [Some(1_000_000), Some(1_500_000)], "{kernel}");
        assert_eq!([819, 1023].map(at), [Some(2_000_000); 2], "{kernel}");
    }
}

#[test]
fn a_clock_is_changed_at_most_once_in_the_rate_limit() {
    let mut bed = governed("v6.6", "0-1");
    assert_eq!(asks(&mut bed, 10, 300), Some(1_000_000));
    assert_eq!(asks(&mut bed, 11, 900), None, "within 2 ms");
    assert_eq!(asks(&mut bed, 12, 900), Some(2_000_000));
    assert_eq!(asks(&mut bed, 14, 900), None, "it is in force");
    assert_eq!(asks(&mut bed, 15, 300), Some(1_000_000), "what changed nothing does not count");
}

#[test]
fn a_clock_of_one_cpu_is_not_slowed_down_before_that_has_idled() {
    for (cpus, expected) in [("0", None), ("0-1", Some(500_000))] {
        let mut bed = governed("v6.6", cpus);
        assert_eq!(asks(&mut bed, 10, 900), Some(2_000_000));
        assert_eq!(asks(&mut bed, 20, 100), expected, "CPUs {cpus}");
        assert_eq!(asks(&mut bed, 25, 900), expected.and(Some(2_000_000)), "faster it may be");
        bed.scheduler.shared.count_idle_call(Cpu(0));
        assert_eq!(asks(&mut bed, 30, 100), Some(500_000), "CPUs {cpus}, after idling");
    }
}

#[test]
fn the_busiest_cpu_of_a_shared_clock_decides() {
    let mut bed = governed("v6.6", "0-1");
    bed.use_cpu(1, 900);
    assert_eq!(asks(&mut bed, 10, 100), Some(2_000_000));
    let mut requests = Vec::new();
    assert_eq!(
        bed.scheduler.take_frequency_requests(&mut requests),
        0,
        "the count was taken with the request"
    );
    bed.use_cpu(1, 100);
    bed.scheduler.set_here(Cpu(1), crate::core::KernelContext::Task, Ns(30 * MS));
    bed.scheduler.rqs[1].clock = Ns(30 * MS);
    bed.scheduler.rq_lock(Cpu(1)).cpufreq_update_util();
    assert_eq!(bed.scheduler.take_frequency_requests(&mut requests), 2, "both CPUs were looked at");
}

/// A CPU that uses nothing gets a task back from I/O: the clock that it asks for, kHz.
fn clock_after_io(kernel: &str) -> u32 {
    let mut bed = governed(kernel, "0");
    let frequencies = (1..=16).map(|step| 125_000 * step).collect();
    bed.scheduler.set_frequency_domains(vec![FrequencyDomain { frequencies, ..domain("0", true) }]);
    bed.scheduler.set_here(Cpu(0), crate::core::KernelContext::Task, Ns(10 * MS));
    bed.scheduler.rq_lock(Cpu(0)).cpufreq_update_after_io();
    let mut requests = Vec::new();
    bed.scheduler.take_frequency_requests(&mut requests);
    requests.first().map_or(0, |request| request.khz)
}

#[test]
fn a_task_that_comes_back_from_io_raises_the_clock() {
    // A quarter more than a sixteenth, and than an eighth, of 2 GHz.
    assert_eq!(["v5.1", "v5.2", "v6.12"].map(clock_after_io), [250_000, 375_000, 375_000]);
}

/// The clock that is asked for where fair tasks use 300 of 1024, and threads that set clocks 200, kHz.
fn clock_beside_setters(kernel: &str) -> u32 {
    let mut bed = governed(kernel, "0-1");
    bed.scheduler.shared.cpus[0].avg_dl.util_avg = 200;
    asks(&mut bed, 10, 300).unwrap_or(500_000)
}

#[test]
fn time_of_the_deadline_class_asks_for_speed_from_v6_8_on() {
    assert_eq!(
        ["v5.10", "v6.7", "v6.8", "v7.2"].map(clock_beside_setters),
        [1_000_000, 1_000_000, 1_500_000, 1_500_000]
    );
}

/// What fair tasks use with what others do, for a frequency and for time.
#[test]
fn other_classes_count_while_they_last() {
    let mut bed = SchedulerTestbed::new("v6.6", 2, 1);
    bed.scheduler.shared.cpus[0].avg_rt.util_avg = 100;
    bed.scheduler.shared.cpus[0].avg_dl.util_avg = 50;
    let util = |bed: &SchedulerTestbed, fair| {
        [UtilFor::Frequency, UtilFor::Time]
            .map(|purpose| bed.scheduler.shared.effective_cpu_util(Cpu(0), fair, purpose))
    };
    assert_eq!(util(&bed, 200), [300, 350]);
    assert_eq!(util(&bed, 880), [1024, 1024], "with all together it is full");
    bed.spawn_with(0, 0, Policy::Fifo(10), CpuMask::ALL);
    bed.scheduler.shared.cpus[0].avg_rt.util_avg = 100;
    assert_eq!(util(&bed, 200), [1024, 350], "a queued real-time task needs all speed");
}

/// A thread that sets clocks is measured while it runs, and forgotten like any load.
#[test]
fn threads_that_set_clocks_leave_use_behind() {
    let mut bed = SchedulerTestbed::new("v6.6", 2, 1);
    bed.spawn_with(0, 0, Policy::Deadline, CpuMask::first(2));
    bed.schedule(0);
    bed.pass(20 * MS);
    bed.tick(0);
    let used = bed.scheduler.shared.cpus[0].avg_dl.util_avg;
    assert!((300..400).contains(&used), "{used} after 20 ms: 1 - 0.5^(20/32) of 1024");
    bed.sleep(0);
    let update = |bed: &mut SchedulerTestbed| {
        bed.at(0);
        bed.scheduler.update_blocked_averages(Cpu(0));
        bed.scheduler.shared.cpus[0].avg_dl.util_avg
    };
    bed.pass(32 * MS);
    let left = update(&mut bed);
    assert!(left.abs_diff(used / 2) <= 6, "{left} of {used}");
    bed.pass(1000 * MS);
    assert_eq!(update(&mut bed), 0);
}

/// A frequency counts from the next time that a queue's clock is set, for all the time since the last.
#[test]
fn a_new_frequency_counts_for_the_time_since_the_clock_was_last_set() {
    let util = |sets_clock_first: bool| {
        let (mut bed, task) =
            hog("v6.6", vec![FrequencyDomain { rate_limit: Ns(1 << 40), ..domain("0", true) }]);
        bed.pass(10 * MS);
        if sets_clock_first {
            bed.tick(0);
        }
        bed.scheduler.set_frequency(0, 2_000_000);
        bed.tick(0);
        bed.entity(task).avg.util_sum
    };
    assert!(util(false) > util(true), "at full speed it counts for more");
}

pub(crate) const SITUATIONS: &[(&str, AblationSituation)] = &[
    ("io-boost", |kernel| clock_after_io(kernel).into()),
    ("governor-effective", |kernel| clock_beside_setters(kernel).into()),
    ("governor-non-invariant", |kernel| clock_of_a_hog_untold(kernel).into()),
];
