//! Stories of real waits, held against what the recordings' analysts found by hand.

use std::path::{Path, PathBuf};

use fairlab_analysis::explain::story::{AskedBy, CpuMode, Departure, Story, WaitCause, WaitEnd};
use fairlab_analysis::explain::{Explain, ExplainOptions, Explanation};
use fairlab_analysis::selector::TraceSelector;
use fairlab_analysis::task_selector::TaskSelector;
use fairlab_event::{Comm, Cpu, Ns, Pid};
use fairlab_trace::{ReadOptions, ftrace_text, read_path};

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

fn explain(recording: &str, options: ExplainOptions) -> Explanation {
    let mut explain = Explain::new(options);
    read_path(&testdata(recording), &ReadOptions::default(), &mut explain).expect(recording);
    explain.finish().expect("switches")
}

fn worst(recording: &str) -> Story {
    let mut explanation = explain(recording, ExplainOptions { worst: 1, ..ExplainOptions::default() });
    explanation.stories.pop().expect("a wait")
}

#[track_caller]
fn check(story: &Story, expected: &str) {
    let text = story.to_string();
    for (line, expected) in text.lines().zip(expected.lines()) {
        assert_eq!(line, expected);
    }
    assert_eq!(text, expected);
}

/// The report's own excerpt. The reporter put the cause into the vruntimes of the two tasks; the list found that those
/// belong to different queues and that the group's deadline was what kept the vhost running.
#[test]
fn a_kworker_starved_by_vhost() {
    let story = worst("eevdf-vhost.mail.txt");
    check(
        &story,
        "kworker/14:0:6525 (prio 120) waited 39.720 ms, from 576.161478 to 576.201198, and ran on CPU 14
   Woken by vhost-2920:2941 on CPU 14; it had slept on CPU 14.
   At 576.161479 queued on CPU 14, where vhost-2920:2941 ran.
   Who ran instead:
     576.161479  vhost-2920:2941 ran on for 39.713 ms, was preempted inside the kernel (R+) by the wakeup of migration/14:85 at 576.201176, was moved by the stopper migration/14:85 to CPU 15 at 576.201194
       4 ticks passed and did not preempt it: 576.171155 (after 9.704 ms) 576.181155 (after 10.000 ms) 576.191154 (after 9.999 ms) 576.201155 (after 10.000 ms)
     576.201192  migration/14:85 ran for 0.006 ms, slept (S)
   It may use CPU 14 only: it is called after that CPU and was never seen elsewhere.
   What ended it: migration/14:85 took vhost-2920:2941 away to CPU 15 at 576.201194.
   In virtual time:
     kworker/14:0:6525 was placed at 576.161478 at vruntime 86642191859, deadline 86645191859 (3.000 ms ahead), lag -1150: 3715 ns behind the average of its queue, 86642188144: not eligible, so its wakeup preempts no task.
     vhost-2920:2941 stood at vruntime 4242577168 (at 576.161448), at 4282281770 at 576.201155.
     kworker/14:0:6525 stood 82.4 s of virtual time behind vhost-2920:2941 (86642191859 against 4242577168); 82.4 s of its CPU time would close that.
     But these numbers cannot be compared: vhost-2920:2941 was placed with 4 group entities above it, kworker/14:0:6525 with 0; they belong to different queues and meet at the root only.
     There the group of vhost-2920:2941 was placed at vruntime 86640641980 at 576.161433, its deadline 614.399 ms ahead (87255041979): a weight of about 5.
     When kworker/14:0:6525 was placed that group was alone on the queue, so the average 86642188144 is where it stood: 3715 ns before kworker/14:0:6525, which it passes soon. But the tick asks for a reschedule only when the runner's deadline has passed, and that was 612.853 ms of virtual time away unless the group was reweighted.
",
    );
    let view = story.virtual_time.as_ref().expect("placements");
    assert_eq!((view.gap(), view.is_comparable()), (Some(82_399_614_691), Some(false)));
    assert_eq!(view.time_to_close(), Some(Ns(82_399_614_691)));
    let WaitEnd::Stopper { stopper, moved: Some((who, told)) } = &story.end_cause else { panic!("{story}") };
    assert_eq!((stopper.pid, who.pid, told.to), (Pid(85), Pid(2941), Cpu(15)));
}

/// A kernel 6.6.9 on which the same was rebuilt: its trace also tells how groups were reweighted.
#[test]
fn a_kworker_starved_for_157_ms() {
    check(
        &worst("ftrace-6.6-vhost-starved.txt.zst"),
        "kworker/2:1:80 (prio 120) waited 157.102 ms, from 1.536445 to 1.693547, and ran on CPU 2
   Woken by vhost-2:143 on CPU 2; it had slept on CPU 2.
   At 1.536453 queued on CPU 2, where vhost-2:143 ran.
   Who ran instead:
     1.536453  vhost-2:143 ran on for 157.059 ms, was preempted inside the kernel (R+) by the wakeup of migration/2:22 at 1.693503, was moved by the stopper migration/2:22 to CPU 1 at 1.693525
       15 ticks passed and did not preempt it: from 1.544527 to 1.684530, after 8.095 to 9.992 ms each
     1.693512  migration/2:22 ran for 0.035 ms, slept (S)
   It may use CPU 2 only: it is called after that CPU and was never seen elsewhere.
   What ended it: migration/2:22 took vhost-2:143 away to CPU 1 at 1.693525.
   In virtual time:
     kworker/2:1:80 was placed at 1.536449 at vruntime 758178539, deadline 760428539 (2.250 ms ahead), lag -21790: 84999 ns behind the average of its queue, 758093540: not eligible, so its wakeup preempts no task.
     vhost-2:143 stood at vruntime 51696860 (at 1.536411), at 199792283 at 1.684530.
     kworker/2:1:80 stood 706.481 ms of virtual time behind vhost-2:143 (758178539 against 51696860); 706.481 ms of its CPU time would close that.
     But these numbers cannot be compared: vhost-2:143 was placed with 4 group entities above it, kworker/2:1:80 with 0; they belong to different queues and meet at the root only.
     There the group of vhost-2:143 was placed at vruntime 729511386 at 1.536312, its deadline 1151.999 ms ahead (1881511385): a weight of about 2.
     At 1.536332 its weight went from 2 to 353, and the deadline stayed where it was.
     When kworker/2:1:80 was placed that group was alone on the queue, so the average 758093540 is where it stood: 84999 ns before kworker/2:1:80, which it passes soon. But the tick asks for a reschedule only when the runner's deadline has passed, and that was 1123.417 ms of virtual time away unless the group was reweighted.
",
    );
}

/// v5.7: the last worker of a burst is stacked on a busy CPU, and the CPU of its waker, idle from then on, cannot pull it.
#[test]
fn a_worker_stacked_beside_an_idle_cpu() {
    let story = worst("ftrace-5.7-schbench-stacked.txt.zst");
    check(
        &story,
        "schbench-abe4f9:277 (prio 120) waited 12.896 ms, from 3.634862 to 3.647758, and ran on CPU 1
   Woken by schbench-abe4f9:268 on CPU 9; it had slept on CPU 1.
   At 3.634867 queued on CPU 1, where schbench-abe4f9:281 ran.
   Who ran instead:
     3.634867  schbench-abe4f9:281 ran on for 12.891 ms, was preempted on the way to user mode (R) by the tick at 3.647668
       12 ticks passed and did not preempt it: from 3.635668 to 3.646690, after 0.803 to 0.976 ms each
   Idle meanwhile (affinity is not in the trace; it is taken as allowed there):
     CPU 9 for 12.873 ms, from 3.634885
   At 3.634879 CPU 9 tried to pull from CPU 1: imbalance 560 (util), moved nothing.
   At 3.641716 CPU 9 tried to pull from CPU 1: imbalance 625 (util), moved nothing.
   What ended it: schbench-abe4f9:281 was preempted by the tick at 3.647668.
",
    );
    assert_eq!((story.cause, story.waker.map(|waker| waker.mode)), (WaitCause::Wakeup, Some(CpuMode::Task)));
    assert!(matches!(&story.end_cause, WaitEnd::Preempted(_, Some(asked)) if asked.by == AskedBy::Tick));
    assert_eq!(story.runs.first().and_then(|run| run.left), Some(Departure::Preempted));
}

#[test]
fn a_task_may_be_asked_for_by_id_or_by_name() {
    let recording = "ftrace-5.7-schbench-stacked.txt.zst";
    let of = |who: &str| {
        let chosen = TraceSelector { whose: vec![TaskSelector::parse(who)], ..TraceSelector::default() };
        explain(recording, ExplainOptions { chosen, worst: 100 })
    };
    let by_pid = of("277");
    assert_eq!((by_pid.measured, by_pid.stories.len()), (1, 1));
    let by_name = of("schbench-abe4f9");
    assert!(
        by_name.measured > 10
            && by_name.stories.iter().all(|story| story.task.comm == Comm::from("schbench-abe4f9"))
    );
    let all = explain(recording, ExplainOptions { worst: 100, ..ExplainOptions::default() });
    assert!(all.measured >= by_name.measured);
    let lengths: Vec<Ns> = all.stories.iter().map(Story::length).collect();
    assert!(lengths.is_sorted_by(|one, other| one >= other));
    assert_eq!(
        explain(recording, ExplainOptions { worst: 0, ..ExplainOptions::default() }).stories,
        Vec::new()
    );
}

/// The longest waits are the same however many are asked for, and those of the latency table.
#[test]
fn the_worst_are_the_worst() {
    use fairlab_analysis::latency::{Latency, LatencyOptions, SortKey};
    let recording = "ftrace-6.18-hackbench.txt.zst";
    let lengths = |worst| {
        let explanation = explain(recording, ExplainOptions { worst, ..ExplainOptions::default() });
        explanation.stories.iter().map(Story::length).collect::<Vec<_>>()
    };
    let (few, many) = (lengths(3), lengths(50));
    assert_eq!((few.len(), many.len(), &few[..]), (3, 50, &many[..3]));
    let mut latency =
        Latency::new(LatencyOptions { by_pid: true, sort: vec![SortKey::Max], ..LatencyOptions::default() });
    read_path(&testdata(recording), &ReadOptions::default(), &mut latency).expect(recording);
    let table = latency.finish().expect("switches");
    assert_eq!(table.rows[0].max_delay, few[0]);
}

#[test]
fn the_same_trace_in_other_forms_gives_the_same_stories() {
    let options = || ExplainOptions { worst: 20, ..ExplainOptions::default() };
    let of_data = explain("perf-hackbench.data", options());
    let of_text = explain("perf-6.1-hackbench.txt.zst", options());
    assert_eq!(of_data.measured, of_text.measured);
    for (data, text) in of_data.stories.iter().zip(&of_text.stories) {
        assert_eq!(
            (data.start, data.end, data.task.pid, data.ran_on),
            (text.start, text.end, text.task.pid, text.ran_on)
        );
        assert_eq!(data.runs.len(), text.runs.len());
    }
}

/// A worker is woken 10 us before it sleeps, and waits 20 ms behind a hog: perf counts no wait, and both answers say so.
const WOKEN_WHILE_RUNNING: &str = "\
          <idle>-0     [000] d..3.     9.990000000: sched_waking: comm=boss pid=100 prio=120 target_cpu=000
          <idle>-0     [000] d..3.     9.990001000: sched_wakeup: comm=boss pid=100 prio=120 target_cpu=000
          <idle>-0     [001] d..2.    10.000000000: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=worker next_pid=200 next_prio=120
          <idle>-0     [000] d..2.    10.000000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=boss next_pid=100 next_prio=120
            boss-100   [000] d..4.    10.000990000: sched_waking: comm=worker pid=200 prio=120 target_cpu=001
          worker-200   [001] d..2.    10.001000000: sched_switch: prev_comm=worker prev_pid=200 prev_prio=120 prev_state=S ==> next_comm=hog next_pid=300 next_prio=120
             hog-300   [001] d.h3.    10.001002000: sched_wakeup: comm=worker pid=200 prio=120 target_cpu=001
             hog-300   [001] d..2.    10.021000000: sched_switch: prev_comm=hog prev_pid=300 prev_prio=120 prev_state=R+ ==> next_comm=worker next_pid=200 next_prio=120
          worker-200   [001] d..2.    10.022000000: sched_switch: prev_comm=worker prev_pid=200 prev_prio=120 prev_state=S ==> next_comm=hog next_pid=300 next_prio=120
";

#[test]
fn latency_and_explain_agree_or_say_why_not() {
    use fairlab_analysis::latency::{Latency, LatencyOptions};

    let mut explain = Explain::new(ExplainOptions::default());
    ftrace_text::read(WOKEN_WHILE_RUNNING.as_bytes(), &ReadOptions::default(), &mut explain)
        .expect("a trace");
    let explanation = explain.finish().expect("switches");
    assert_eq!(
        (explanation.stories[0].task.pid, explanation.stories[0].length()),
        (Pid(200), Ns::from_ms(20))
    );
    let told = |notices: &[String]| {
        let told = notices.iter().find(|notice| notice.starts_with("1 waits of tasks that were woken while"));
        told.cloned().unwrap_or_default()
    };
    assert!(told(&explanation.notices).contains("--woken-while-running"), "{:?}", explanation.notices);
    for (woken_while_running, total, said) in
        [(false, Ns::ZERO, "explain counts them"), (true, Ns::from_ms(20), "as explain does")]
    {
        let options = LatencyOptions { by_pid: true, woken_while_running, ..LatencyOptions::default() };
        let mut latency = Latency::new(options);
        ftrace_text::read(WOKEN_WHILE_RUNNING.as_bytes(), &ReadOptions::default(), &mut latency)
            .expect("a trace");
        let table = latency.finish().expect("switches");
        let worker = table.rows.iter().find(|row| row.pid == Pid(200)).expect("a row");
        assert_eq!(worker.max_delay, total);
        assert!(told(&table.notices).contains(said), "{:?}", table.notices);
    }
}
