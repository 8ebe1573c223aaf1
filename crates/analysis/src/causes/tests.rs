//! Small stories, added up.

use super::*;
use crate::testbed;

fn causes(story: &str) -> WaitCauses {
    let mut causes = Causes::new();
    testbed::feed(story, &mut causes);
    let end = causes.now;
    causes.finish(end)
}

/// Each part as one line, without the name of the reason's kind.
fn lines(found: &WaitCauses) -> String {
    let line = |part: &CausePart| {
        format!(
            "{} {:?}: {:?} {} {:?} {} {:?} {}x {} us, {} beside idle\n",
            part.waiter,
            part.wait,
            part.behind,
            part.runner,
            part.decision,
            part.reason,
            part.ended,
            part.count,
            part.time_ns / 1000,
            part.beside_idle_ns / 1000
        )
    };
    found.parts.iter().map(line).collect()
}

#[test]
fn a_wait_falls_into_stretches_and_parts() {
    let found = causes(
        "y-1 2 d..2. 1 waking y:2 on 2
         y-1 2 d..2. 1 wakeup y:2 on 2
         y-1 2 d..2. 1 switch y:1 S ==> y:2
         a-65 0 d..2. 100 switch swapper/0:0 R ==> a:65
         <idle>-0 1 d..2. 150 switch x:1 S ==> swapper/1:0
         a-65 0 d.h3. 1000 waking w-3:70 on 1
         a-65 0 d.h3. 1001 migrate w-3:70 1 => 0
         a-65 0 d.h3. 1001 decided_cpu pid=70 cpu=0 reason=NotAffine
         a-65 0 d.h3. 1002 decided_preempt cpu=0 pid=70 curr_pid=65 preempt=0 reason=WakerSleeps
         a-65 0 d.h3. 1002 wakeup w-3:70 on 0
         a-65 0 d.h1. 2000 decided_tick cpu=0 takes=0 reason=WithinSlice
         a-65 0 d.h1. 4000 runtime a:65 2000000
         a-65 0 dN.1. 4001 runtime a:65 900
         a-65 0 d..2. 4004 decided_pick cpu=0 pid=66 reasons=Leftmost
         a-65 0 d..2. 4004 switch a:65 R ==> w-4:66
         <idle>-0 1 dN.2. 4500 switch swapper/1:0 R ==> d:68
         w-4-66 0 d..2. 5000 decided_pick cpu=0 pid=70 reasons=Leftmost
         w-4-66 0 d..2. 5000 switch w-4:66 S ==> w-3:70
         w-3-70 0 d..2. 5001 switch w-3:70 S ==> a:65",
    );
    assert_eq!(
        lines(&found),
        "a PreemptedAtTick: OtherName w Pick Leftmost Slept 2x 997 us, 496 beside idle
w Wakeup: OwnName w Pick Leftmost Slept 1x 996 us, 496 beside idle
w Wakeup: OtherName a Preempt WakerSleeps AtTick 1x 998 us, 998 beside idle
w Wakeup: OtherName a Tick WithinSlice AtTick 1x 2000 us, 2000 beside idle
w Wakeup: OtherName a Pending  AtTick 1x 4 us, 4 beside idle
w Wakeup: Waking  Unknown  Queued 1x 2 us, 0 beside idle
"
    );
}

#[test]
fn parts_come_to_the_waits() {
    let found = causes(
        "y-1 2 d..2. 1 waking y:2 on 2
         y-1 2 d..2. 1 wakeup y:2 on 2
         y-1 2 d..2. 1 switch y:1 S ==> y:2
         a-65 0 d..2. 100 switch swapper/0:0 R ==> a:65
         a-65 0 d.h3. 1000 waking b:70 on 0
         a-65 0 d.h3. 1001 wakeup b:70 on 0
         <idle>-0 1 d..2. 1500 switch x:1 S ==> swapper/1:0
         <idle>-0 1 d..2. 2000 migrate b:70 0 => 1
         <idle>-0 1 d..2. 2003 switch swapper/1:0 R ==> b:70
         a-65 0 d.h3. 3000 waking c:71 on 0
         a-65 0 d.h3. 3000 wakeup c:71 on 0
         a-65 0 d..2. 9000 switch a:65 S ==> rt:72@10
         rt-72 0 d..2. 9500 switch rt:72@10 S ==> kworker/0:1:73
         kworker/0:1-73 0 d..2. 9700 switch kworker/0:1:73 I ==> d:74",
    );
    let total = found.parts.iter().map(|part| part.time_ns).sum::<u64>();
    assert_eq!((found.waits, total), (3, 1_003_000 + 6_700_000));
    let behind = |behind| {
        let parts = found.parts.iter().filter(|part| part.behind == behind);
        parts.map(|part| (part.time_ns / 1000, part.ended)).collect::<Vec<_>>()
    };
    assert_eq!(behind(WaitBehind::RealTime), [(500, StretchEnd::Slept)]);
    assert_eq!(behind(WaitBehind::KernelThread), [(200, StretchEnd::Slept)]);
    assert_eq!(behind(WaitBehind::Idle), [(3, StretchEnd::Began)]);
    assert_eq!(behind(WaitBehind::OtherName), [(999, StretchEnd::Moved), (6000, StretchEnd::Slept)]);
    // c still waits behind d when the trace ends, for no time.
    assert_eq!(found.lengths.iter().map(|length| length.waits).sum::<u64>(), 3);
}

#[test]
fn groups_say_on_which_level_the_pick_was_made() {
    let found = causes(
        "x-1 0 ..... 1 cgroup_mkdir root=0 id=7 level=1 path=/a
         x-1 0 ..... 2 cgroup_mkdir root=0 id=8 level=1 path=/b
         x-1 0 ..... 3 cgroup_attach_task dst_root=0 dst_id=7 dst_level=1 dst_path=/a pid=65 comm=a
         x-1 0 ..... 4 cgroup_attach_task dst_root=0 dst_id=8 dst_level=1 dst_path=/b pid=66 comm=b
         x-1 0 ..... 5 cgroup_attach_task dst_root=0 dst_id=7 dst_level=1 dst_path=/a pid=67 comm=c
         x-1 0 d..2. 10 waking b:66 on 0
         x-1 0 d..2. 10 wakeup b:66 on 0
         x-1 0 d..2. 10 waking c:67 on 0
         x-1 0 d..2. 10 wakeup c:67 on 0
         x-1 0 d..2. 20 decided_pick cpu=0 pid=65 reasons=EarliestDeadline,RunToParity
         x-1 0 d..2. 20 switch x:1 S ==> a:65
         a-65 0 d..2. 120 switch a:65 S ==> b:66
         b-66 0 d..2. 130 switch b:66 S ==> c:67",
    );
    let picked = |waiter: &str| {
        let parts = found.parts.iter().filter(|part| part.waiter == waiter);
        let picked = parts.filter(|part| part.decision == CauseDecision::Pick);
        picked.map(|part| (part.behind, part.reason.as_str(), part.time_ns)).collect::<Vec<_>>()
    };
    assert_eq!(picked("b"), [(WaitBehind::OtherGroup, "EarliestDeadline", 100_000)]);
    assert_eq!(picked("c"), [(WaitBehind::OtherName, "RunToParity", 100_000)]);
}

#[test]
fn who_waits_for_a_quota_waits_for_nobody_else() {
    let found = causes(
        "x-1 0 ..... 1 cgroup_mkdir root=0 id=7 level=1 path=/a
         x-1 0 ..... 3 cgroup_attach_task dst_root=0 dst_id=7 dst_level=1 dst_path=/a pid=65 comm=a
         x-1 0 d..2. 10 switch x:1 S ==> a:65
         a-65 0 dN.2. 1000 throttle_cfs_rq cg=7 cpu=0
         a-65 0 dN.2. 1000 switch a:65 R ==> z:9
         z-9 0 d..2. 5000 unthrottle_cfs_rq cg=7 cpu=0
         z-9 0 d..2. 6000 switch z:9 S ==> a:65",
    );
    let times = found.parts.iter().map(|part| (part.behind, part.time_ns / 1000)).collect::<Vec<_>>();
    assert_eq!(times, [(WaitBehind::OtherGroup, 1000), (WaitBehind::Throttled, 4000)]);
}

#[test]
fn what_came_before_the_beginning_does_not_count() {
    let mut causes = Causes::new();
    let story = |from: u64| {
        format!(
            "a-65 0 d..2. {from} waking b:70 on 0
             a-65 0 d..2. {from} wakeup b:70 on 0
             a-65 0 d..2. {} switch a:65 S ==> b:70
             b-70 0 d..2. {} switch b:70 S ==> a:65",
            from + 10,
            from + 20
        )
    };
    testbed::feed(&story(100), &mut causes);
    causes.begin(Ns(200_000));
    testbed::feed(&story(300), &mut causes);
    let found = causes.finish(Ns(1_200_000));
    assert_eq!((found.waits, found.observed_ns, found.parts.len()), (1, 1_000_000, 1));
    assert_eq!(found.parts[0].time_ns, 10_000);
}

#[test]
fn the_schedulers_own_work_adds_up_by_kind() {
    let found = causes(
        "a-65 0 d..2. 1 switch swapper/0:0 R ==> a:65
         a-65 0 d..2. 5 done_work work=Search units=3 ns=90
         a-65 0 d..2. 7 done_work work=Moves units=1 ns=500
         a-65 0 d..2. 9 done_work work=Search units=4 ns=120",
    );
    let work = found.work.iter().map(|work| (work.work.as_str(), work.count, work.units, work.time_ns));
    assert_eq!(work.collect::<Vec<_>>(), [("Search", 2, 7, 210), ("Moves", 1, 1, 500)]);
}
