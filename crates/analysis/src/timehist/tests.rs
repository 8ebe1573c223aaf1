//! Small stories, listed.

use super::text::{TimehistColumns, TimehistLayout};
use super::*;
use crate::testbed;
use fairlab_event::Prio;

/// The rows of a story, without what stands above them.
fn rows(options: TimehistOptions, columns: TimehistColumns, story: &str) -> Vec<String> {
    let mut layout = TimehistLayout::new(columns);
    let mut text = String::new();
    let mut timehist = Timehist::new(options, |row: &TimehistRow| layout.row(row, &mut text));
    testbed::feed(story, &mut timehist);
    timehist.finish().expect("switches");
    text.lines().map(str::to_string).collect()
}

const STATE: TimehistColumns = TimehistColumns { state: true, next: false, wakeups: false };

#[test]
fn preemption_inside_the_kernel_is_told_from_other_ways_to_stay_runnable() {
    let story = "a-65 0 d..2. 1000 switch swapper/0:0 R ==> a:65
        a-65 0 d..2. 2500 switch a:65 R+ ==> b:66
        b-66 0 d..2. 3500 switch b:66 R ==> a:65
        a-65 0 d..2. 5500 switch a:65 D|K ==> b:66
        b-66 0 d..2. 6500 switch b:66 S ==> swapper/0:0";
    assert_eq!(
        rows(TimehistOptions::default(), STATE, story),
        [
            "       0.001000 [0000]  <idle>                              0.000      0.000      0.000      I ",
            "       0.002500 [0000]  a[65]                               0.000      0.000      1.500     R+ ",
            "       0.003500 [0000]  b[66]                               0.000      0.000      1.000      R ",
            "       0.005500 [0000]  a[65]                               1.000      1.000      2.000    D|K ",
            "       0.006500 [0000]  b[66]                               2.000      2.000      1.000      S ",
        ]
    );
}

/// Whether sched_wakeup counts is known only when a sched_waking comes, or none.
#[test]
fn rows_are_held_back_until_it_is_known_which_wakeups_count() {
    let begin = "a-65 0 d..2. 1000 switch b:66 S ==> a:65
        a-65 0 d..2. 2000 wakeup b:66 on 0
        a-65 0 d..2. 5000 switch a:65 S ==> b:66
        b-66 0 d..2. 6000 switch b:66 S ==> a:65";
    let options = || TimehistOptions { wakeups: true, ..TimehistOptions::default() };
    let columns = TimehistColumns { wakeups: true, ..TimehistColumns::default() };
    let only_wakeup = rows(options(), columns, begin);
    assert_eq!(only_wakeup.len(), 4);
    assert!(only_wakeup[1].ends_with("awakened: b[66]"), "{only_wakeup:?}");
    assert!(only_wakeup[3].contains("4.000      3.000      1.000"), "{only_wakeup:?}");
    let with_waking = format!("{begin}\na-65 0 d..2. 7000 waking b:66 on 0");
    let passed_over = rows(options(), columns, &with_waking);
    assert_eq!(passed_over.len(), 4);
    assert!(passed_over[2].contains("4.000      0.000      1.000"), "{passed_over:?}");
    assert!(
        passed_over[3].contains("0.007000") && passed_over[3].ends_with("awakened: b[66]"),
        "{passed_over:?}"
    );
}

#[test]
fn a_trace_of_many_rows_without_wakeups_is_not_kept() {
    let mut listed = 0;
    let mut timehist = Timehist::new(TimehistOptions::default(), |_: &TimehistRow| listed += 1);
    let switch = |time: u64, prev: i32, next: i32| {
        let switch = Switch {
            prev_comm: "a".into(),
            prev_pid: Pid(prev),
            prev_prio: Prio::DEFAULT,
            prev_state: TaskState::RUNNABLE,
            next_comm: "b".into(),
            next_pid: Pid(next),
            next_prio: Prio::DEFAULT,
        };
        Event::new(Ns(time), Cpu(0), EventKind::SchedSwitch(switch))
    };
    for round in 0..HELD_MAX as u64 + 10 {
        timehist.event(&switch(round, 1, 1));
    }
    assert!(matches!(timehist.wake_source, TimehistWakeEvent::Known(ReadyBy::Wakeup)));
    assert_eq!(timehist.finish().expect("switches").switches, HELD_MAX as u64 + 10);
    assert_eq!(listed, HELD_MAX + 10);
}

#[test]
fn losses_and_wide_names_are_printed_as_perf_does() {
    let story = "a-65 0 d..2. 1000 switch b:66 S ==> a:65
        x 3 - 1500 lost 7
        a-65 0 d..2. 2000 switch a:65 S ==> b:66";
    let found = rows(TimehistOptions::default(), TimehistColumns::default(), story);
    assert_eq!(found[1], "       0.001500 lost 7 events on cpu 3");
    assert!(found[2].ends_with("     0.000      0.000      1.000 "), "{}", found[2]);
    let label = Label { comm: "fifteen letters".into(), tid: Pid(4_194_303), tgid: Pid(4_194_302) };
    let row = TimehistRow::Wakeup { time: Ns(0), cpu: Cpu(0), waker: label, wakee: label };
    let mut layout = TimehistLayout::new(TimehistColumns::default());
    let mut text = String::new();
    layout.row(&row, &mut text);
    layout.row(
        &TimehistRow::Wakeup { time: Ns(0), cpu: Cpu(0), waker: Label::idle(), wakee: label },
        &mut text,
    );
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0].find("awakened"), lines[1].find("awakened"), "{text}");
}

#[test]
fn what_goes_on_while_events_are_lost_is_listed_without_a_length() {
    let story = "a-65 0 d..2. 1000 switch a:65 S ==> b:66
        x-9 1 d..2. 1100 waking a:65 on 0
        x 1 - 1500 lost 7
        b-66 0 d..2. 2000 switch b:66 R ==> a:65
        a-65 0 d..2. 3000 switch a:65 S ==> b:66
        x 0 - 3500 lost 1
        b-66 0 d..2. 4000 switch b:66 S ==> a:65
        a-65 0 d..2. 4500 switch a:65 S ==> b:66";
    let found = rows(TimehistOptions::default(), TimehistColumns::default(), story);
    let lengths = |row: &String| row.split_whitespace().skip(3).collect::<Vec<_>>().join(" ");
    // Nothing else was lost where b ran, nor on a's CPU while it ran; what came before a ran is not known.
    let stays = [2, 3, 5, 6].map(|row| lengths(&found[row]));
    assert_eq!(stays, ["0.000 0.000 1.000", "- - 1.000", "- - -", "- 0.000 0.500"]);
}

#[test]
fn processes_are_told_by_the_context() {
    let label = |tid, tgid| Label { comm: "a".into(), tid: Pid(tid), tgid: Pid(tgid) }.to_string();
    assert_eq!((label(7, 7), label(8, 7), label(8, 0)), ("a[7]".into(), "a[8/7]".into(), "a".into()));
    assert_eq!(Label::idle().to_string(), "<idle>");
}

#[test]
fn a_trace_without_switches_has_no_answer() {
    let mut timehist = Timehist::new(TimehistOptions::default(), |_: &TimehistRow| {});
    testbed::feed("a-65 0 d..2. 2000 waking b:66 on 0", &mut timehist);
    assert!(timehist.finish().is_err());
}
