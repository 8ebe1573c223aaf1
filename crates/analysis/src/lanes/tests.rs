//! Small stories, and the lanes that come of them.

use super::*;
use crate::testbed::feed;

fn drawn(story: &str) -> (Vec<LaneStretch>, LanesReport) {
    let mut stretches = Vec::new();
    let mut lanes = Lanes::new(|stretch| stretches.push(stretch));
    feed(story, &mut lanes);
    let report = lanes.finish().expect("switches");
    (stretches, report)
}

/// Times in microseconds: `CPU WHAT FROM`, a task by its pid.
fn slices(stretches: &[LaneStretch], report: &LanesReport) -> Vec<String> {
    let name = |what: LaneOccupant| match what.task() {
        Some(task) => report.tasks[task as usize].pid.to_string(),
        None if what == LaneOccupant::IDLE => "idle".to_string(),
        None => "?".to_string(),
    };
    let line = |switch: &SwitchIn| {
        let wait = switch.wait.map_or(String::new(), |wait| format!(" waited {}", wait.length.0 / 1000));
        format!("{} {} {}{wait}", switch.cpu, name(switch.what), switch.time.0 / 1000)
    };
    stretches.iter().flat_map(|stretch| &stretch.switches).map(line).collect()
}

#[test]
fn slices_follow_each_other_and_end_waits() {
    let (stretches, report) = drawn(
        "
        <idle>-0 0 d..2. 10 switch swapper:0 R ==> a:65
        a-65 0 d..2. 20 waking b:66 on 0
        a-65 0 d..2. 21 wakeup b:66 on 0
        a-65 0 d..2. 30 switch a:65 S ==> b:66
        b-66 0 d..2. 45 switch b:66 D ==> swapper:0
        ",
    );
    assert_eq!(slices(&stretches, &report), ["0 65 10", "0 66 30 waited 10", "0 idle 45"]);
    let wait = stretches[0].switches[1].wait.expect("a wait");
    assert_eq!((wait.began, wait.waker), (WaitBegan::Wakeup, Some((Cpu(0), CpuMode::Task))));
    assert_eq!(stretches[0].switches[2].left, LeaveReason::Blocked);
    let ran = report.tasks.iter().map(|task| (task.pid.0, task.ran, task.waited)).collect::<Vec<_>>();
    assert_eq!(ran, [(65, 20_000, 0), (66, 15_000, 10_000)]);
    let [cpu] = &report.cpus[..] else { panic!("{:?}", report.cpus) };
    let sums = cpu
        .entries
        .iter()
        .map(|entry| (entry.ran, entry.waited))
        .fold((0, 0), |sum, entry| (sum.0 + entry.0, sum.1 + entry.1));
    assert_eq!(sums.0, 35_000);
    assert!(cpu.entries.iter().any(|entry| entry.peak == 2));
}

#[test]
fn what_lies_in_a_hole_is_unknown() {
    let (stretches, report) = drawn(
        "
        <idle>-0 0 d..2. 10 switch swapper:0 R ==> a:65
        a-65 0 d..2. 20 waking b:66 on 0
        <idle>-0 0 d..2. 50 lost 7
        c-67 0 d..2. 60 switch c:67 S ==> swapper:0
        ",
    );
    let slices = slices(&stretches, &report);
    assert_eq!(slices, ["0 65 10", "0 ? 20", "0 idle 60"]);
    let unknown: u64 = report.cpus[0].entries.iter().map(|entry| entry.other).sum();
    assert_eq!(unknown, 40_000, "time is not invented");
    assert_eq!(report.tasks[0].ran, 10_000);
}

#[test]
fn who_does_much_is_summed_up_and_no_time_is_lost() {
    let mut story = String::new();
    for turn in 0..5_000 {
        let time = 10 * turn;
        story += &format!("<idle>-0 0 d..2. {} switch swapper:0 R ==> a:65\n", time + 1);
        story += &format!("a-65 0 d..2. {} switch a:65 S ==> swapper:0\n", time + 4);
    }
    let (stretches, report) = drawn(&story);
    assert_eq!(report.tasks[0].ran, 15_000_000);
    for course in [&report.cpus[0], &report.tasks[0].course, &report.sets[0].course] {
        assert!(course.entries.len() < 400, "{}", course.entries.len());
        assert_eq!(course.entries.iter().map(|entry| entry.ran).sum::<u64>(), 15_000_000);
        assert!(course.entries.is_sorted_by_key(|entry| entry.from));
    }
    assert_eq!(stretches.len(), 1);
    assert_eq!(report.sets[0].name, "a");
}

#[test]
fn stretches_can_be_read_apart() {
    let mut story = String::new();
    story += "<idle>-0 1 d..2. 1 switch swapper:0 R ==> long:70\n";
    for turn in 0..9_000 {
        let time = 10 * turn;
        story += &format!("<idle>-0 0 d..2. {} switch swapper:0 R ==> a:65\n", time + 2);
        story += &format!("a-65 0 d..2. {} switch a:65 D ==> swapper:0\n", time + 5);
    }
    let (stretches, report) = drawn(&story);
    assert_eq!(stretches.len(), 2);
    assert_eq!(stretches[0].to, stretches[1].from);
    assert_eq!(stretches[1].to, report.span.1);
    let long = report.tasks.iter().position(|task| task.pid == Pid(70)).expect("a task") as u32;
    assert!(stretches[1].running.contains(&(Cpu(1), LaneOccupant::of(long))));
    assert!(stretches[1].standing.contains(&(long, StartingState::Runs)));
}

#[test]
fn a_window_knows_what_went_on_before_and_counts_its_own_time() {
    let story = "
        <idle>-0 0 d..2. 10 switch swapper:0 R ==> a:65
        a-65 0 d..2. 20 waking b:66 on 0
        a-65 0 d..2. 30 switch a:65 S ==> b:66
        b-66 0 d..2. 45 switch b:66 D ==> a:65
        a-65 0 d..2. 60 switch a:65 S ==> swapper:0
        ";
    let mut stretches = Vec::new();
    let lanes = Lanes::new(|stretch| stretches.push(stretch));
    let mut lanes = lanes.within(Some(Ns::from_us(25)), Some(Ns::from_us(50)));
    feed(story, &mut lanes);
    let report = lanes.finish().expect("switches");
    assert_eq!(report.span, (Ns::from_us(25), Ns::from_us(50)));
    assert_eq!(slices(&stretches, &report), ["0 66 30 waited 10", "0 65 45"]);
    let ran = report.tasks.iter().map(|task| (task.pid.0, task.ran)).collect::<Vec<_>>();
    assert_eq!(ran, [(65, 10_000), (66, 15_000)]);
    assert_eq!(stretches[0].running, [(Cpu(0), LaneOccupant::of(0))]);
    assert_eq!(report.switches, 2);
}

/// A group of `b`, throttled on CPU 0; `a` of no group runs meanwhile.
const HELD: &str = "
        x-1 0 ..... 1 cgroup_mkdir root=0 id=7 level=1 path=/g
        x-1 0 ..... 3 cgroup_attach_task dst_root=0 dst_id=7 dst_level=1 dst_path=/g pid=66 comm=b
        x-1 0 d..2. 10 switch x:1 S ==> b:66
        b-66 0 dN.2. 100 throttle_cfs_rq cg=7 cpu=0
        b-66 0 dN.2. 100 switch b:66 R ==> a:65
        a-65 0 d..2. 500 unthrottle_cfs_rq cg=7 cpu=0
        a-65 0 d..2. 600 switch a:65 S ==> b:66
        b-66 0 dN.2. 700 throttle_cfs_rq cg=7 cpu=0
        b-66 0 d..2. 710 switch b:66 R ==> a:65
        a-65 0 d..2. 800 migrate b:66 0 => 1
        c-67 1 d..2. 900 switch c:67 S ==> b:66
        a-65 0 d..2. 950 unthrottle_cfs_rq cg=7 cpu=0";

/// When tasks were throttled, in microseconds.
fn held(report: &LanesReport) -> Vec<(i32, u64, u64)> {
    let of = |task: &LaneTask| {
        let pid = task.pid.0;
        task.throttled.iter().map(|(from, to)| (pid, from.0 / 1000, to.0 / 1000)).collect::<Vec<_>>()
    };
    report.tasks.iter().flat_map(of).collect()
}

/// From the throttling, or from when it waits there, to the end of either, or until it waits on another CPU; the wait goes on.
#[test]
fn a_task_is_throttled_where_its_group_is_and_while_it_waits_there() {
    let (_, report) = drawn(HELD);
    assert_eq!(held(&report), [(66, 100, 500), (66, 710, 800)]);
    let without =
        HELD.lines().filter(|line| !line.contains("throttle_cfs_rq")).collect::<Vec<_>>().join("\n");
    assert_eq!(held(&drawn(&without).1), []);
}

#[test]
fn who_is_throttled_at_the_end_is_so_until_then_and_a_window_cuts() {
    let story =
        HELD.lines().take(6).chain(["a-65 0 d..2. 400 switch a:65 S ==> swapper/0:0"]).collect::<Vec<_>>();
    let (_, report) = drawn(&story.join("\n"));
    assert_eq!(held(&report), [(66, 100, 400)]);
    let lanes = Lanes::new(|_| {});
    let mut lanes = lanes.within(Some(Ns::from_us(200)), Some(Ns::from_us(450)));
    feed(HELD, &mut lanes);
    assert_eq!(held(&lanes.finish().expect("switches")), [(66, 200, 450)]);
}
