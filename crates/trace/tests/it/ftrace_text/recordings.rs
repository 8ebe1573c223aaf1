//! Recordings of real kernels by real tools; `testdata/README.md` says how each was made.

use std::io::Read;

use fairlab_event::{Comm, EventKind, Flags, Ns, Pid, TaskState};
use fairlab_trace::Trouble;

use crate::kept::{Kept, read_recording, testdata};

/// Every recording, and its events.
const RECORDINGS: &[(&str, u64)] = &[
    ("ftrace-5.10-forkstorm.txt.gz", 3000),
    ("ftrace-6.6-vhost.txt.zst", 4000),
    ("ftrace-6.18-hackbench.txt.zst", 8000),
    ("ftrace-6.18-rtapp.txt.xz", 3000),
    ("ftrace-7.2-probed.txt.zst", 3000),
    ("trace-cmd-3.1-hackbench.txt.zst", 8000),
    ("trace-cmd-3.1-hackbench-ns.txt.zst", 8000),
    ("perf-6.1-hackbench.txt.zst", 22_146),
];

const TYPED: &[&str] = &[
    "sched_switch",
    "sched_waking",
    "sched_wakeup",
    "sched_wakeup_new",
    "sched_migrate_task",
    "sched_process_fork",
    "sched_process_exec",
    "sched_process_exit",
    "sched_stat_wait",
    "sched_stat_sleep",
    "sched_stat_blocked",
    "sched_stat_iowait",
    "sched_stat_runtime",
    "sched_place",
    "tracing_mark_write",
];

fn text(name: &str) -> String {
    let file = std::fs::File::open(testdata(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut decoder: Box<dyn Read> = match name.rsplit('.').next() {
        Some("zst") => Box::new(zstd::Decoder::new(file).expect("a zstd stream")),
        Some("xz") => Box::new(lzma_rust2::XzReader::new(file, true)),
        Some("gz") => Box::new(flate2::read::GzDecoder::new(file)),
        _ => Box::new(file),
    };
    let mut text = String::new();
    decoder.read_to_string(&mut text).unwrap_or_else(|error| panic!("{name}: {error}"));
    text
}

fn is_typed(kind: &EventKind<'_>) -> bool {
    !matches!(kind, EventKind::Other { .. } | EventKind::Kprobe { .. })
}

#[test]
fn every_line_of_every_recording_is_understood() {
    for &(name, count) in RECORDINGS {
        let (events, stats) = read_recording(name);
        assert_eq!(stats.events, count, "{name}");
        assert_eq!(stats.troubles(), [], "{name}");
        let text = text(name);
        for kind in TYPED {
            let printed = [format!(" {kind}: "), format!(":{kind}: ")];
            let lines = printed.iter().map(|printed| text.matches(printed).count()).sum::<usize>();
            let read =
                events.iter().filter(|kept| is_typed(&kept.event.kind) && kept.event.kind.name() == *kind);
            assert_eq!(read.count(), lines, "{name}: {kind}");
        }
    }
}

#[test]
fn one_ring_buffer_in_three_forms_is_one_trace() {
    let (tracefs, _) = read_recording("ftrace-6.18-hackbench.txt.zst");
    let (plugins, _) = read_recording("trace-cmd-3.1-hackbench.txt.zst");
    let (nanoseconds, _) = read_recording("trace-cmd-3.1-hackbench-ns.txt.zst");
    assert_eq!((tracefs.len(), plugins.len()), (nanoseconds.len(), nanoseconds.len()));
    for ((tracefs, plugins), nanoseconds) in tracefs.iter().zip(&plugins).zip(&nanoseconds) {
        // trace-cmd 3.1 prints neither flags nor thread groups.
        let mut expected = tracefs.clone();
        expected.event.context.tgid = Pid::UNKNOWN;
        expected.event.context.flags = Flags::NONE;
        // Both round to the nearest microsecond, but tracefs from the page's own time.
        assert!(nanoseconds.event.time.0.abs_diff(expected.event.time.0) <= 1000, "{nanoseconds:?}");
        let mut exact = nanoseconds.clone();
        exact.event.time = expected.event.time;
        assert_eq!(exact, expected);
        expected.event.kind = as_plugins_print(expected.event.kind);
        assert_eq!(plugins, &expected);
    }
}

/// libtraceevent 1.7's plugin has the letters of kernels before v4.14, and no preemption mark.
fn as_plugins_print(kind: EventKind<'static>) -> EventKind<'static> {
    let EventKind::SchedSwitch(mut switch) = kind else { return kind };
    switch.prev_state = match switch.prev_state {
        TaskState::PREEMPTED => TaskState::RUNNABLE,
        TaskState::IDLE => TaskState::from_letter(b'W').expect("a letter"),
        TaskState::ZOMBIE => TaskState::from_letter(b'X').expect("a letter"),
        other => other,
    };
    EventKind::SchedSwitch(switch)
}

#[test]
fn states_keep_the_preemption_mark() {
    let (events, _) = read_recording("ftrace-6.18-hackbench.txt.zst");
    let count = |state: &str| {
        let state = TaskState::parse(state.as_bytes()).expect("a state");
        let left =
            |kept: &&Kept| matches!(kept.event.kind, EventKind::SchedSwitch(s) if s.prev_state == state);
        events.iter().filter(left).count()
    };
    assert_eq!(["S", "R", "R+", "Z", "I", "D"].map(count), [1499, 596, 8, 25, 18, 1]);
}

#[test]
fn names_with_blanks_are_whole() {
    let text = text("ftrace-6.18-rtapp.txt.xz");
    let (events, _) = read_recording("ftrace-6.18-rtapp.txt.xz");
    let named = |comm: Comm| comm.as_bytes().starts_with(b"opt cgu.") && comm.as_bytes().len() == 10;
    let contexts = events.iter().filter(|kept| named(kept.event.context.comm)).count();
    assert_eq!(contexts, text.lines().filter(|line| line.starts_with("      opt cgu.")).count());
    assert!(contexts > 500);
    let switches = events
        .iter()
        .filter(|kept| matches!(kept.event.kind, EventKind::SchedSwitch(s) if named(s.next_comm)));
    assert_eq!(switches.count(), text.matches(" ==> next_comm=opt cgu.").count());
}

#[test]
fn probes_keep_their_fields() {
    let (events, _) = read_recording("ftrace-7.2-probed.txt.zst");
    let probes: Vec<&Kept> =
        events.iter().filter(|kept| matches!(kept.event.kind, EventKind::Kprobe { .. })).collect();
    assert_eq!(probes.len(), text("ftrace-7.2-probed.txt.zst").matches(": (").count());
    let place = probes.iter().find(|kept| kept.name == "place").expect("a probe on place_entity");
    let fields = fairlab_event::TextFields::new(&place.text);
    assert!(place.text.starts_with("(place_entity+0x0/0x180) cf=0x"));
    assert_eq!((fields.unsigned("pid"), fields.unsigned("dl")), (Some(295), Some(4_908_858_561)));
    assert_eq!(place.event.time, Ns(7_579_053_505));
}

/// The kworker that waited for nearly 40 ms.
#[test]
fn the_mail_of_seed_4_is_read_as_it_came() {
    let (events, stats) = read_recording("eevdf-vhost.mail.txt");
    assert_eq!((stats.events, stats.troubles().len()), (51, 1), "{:?}", stats.troubles());
    assert!(stats.count(Trouble::ForeignLine) > 100);
    let kworker = Comm::from("kworker/14:0");
    let woken = events.iter().rev().find_map(|kept| match kept.event.kind {
        EventKind::SchedWaking(wakeup) if wakeup.comm == kworker => Some(kept.event.time),
        _ => None,
    });
    let (runs, waited) = events
        .iter()
        .rev()
        .find_map(|kept| match kept.event.kind {
            EventKind::SchedStatWait(wait) if wait.comm == kworker => Some((kept.event.time, wait.delay)),
            _ => None,
        })
        .expect("a wait");
    assert_eq!((waited, runs.since(woken.expect("a wakeup"))), (Ns(39_718_472), Ns::from_us(39_720)));
    let places: Vec<_> = events
        .iter()
        .filter_map(|kept| match kept.event.kind {
            EventKind::SchedPlace(place) => Some(place),
            _ => None,
        })
        .collect();
    assert_eq!(places.iter().filter(|place| place.comm.is_empty() && place.pid == Pid(0)).count(), 8);
    let again =
        places.iter().find(|place| place.comm == kworker && place.sel < 0).expect("placed with negative lag");
    assert_eq!((again.sev, again.sel, again.nr), (86_642_191_859, -1150, 1));
}

/// What perf prints of its own file is what the file holds, event by event.
#[test]
fn perfs_text_and_perfs_file_are_one_trace() {
    let (text, _) = read_recording("perf-6.1-hackbench.txt.zst");
    let (file, _) = read_recording("perf-hackbench.data");
    let tracepoints: Vec<&Kept> = file.iter().filter(|kept| !kept.event.kind.is_task_record()).collect();
    assert_eq!(text.len(), tracepoints.len());
    for (text, file) in text.iter().zip(tracepoints) {
        let (text, file) = (&text.event, &file.event);
        assert_eq!((text.time, text.cpu, text.context.pid), (file.time, file.cpu, file.context.pid));
        assert_eq!(text.kind, file.kind);
    }
}
