//! A recording of a real kernel by the real trace-cmd.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use fairlab_event::{Comm, DigestSink, EventKind, Flags, Ns, Pid};
use fairlab_trace::{ReadOptions, tracedat};

use super::made::{RECORDING, recording};
use crate::kept::{Kept, read_recording};

/// The recording's events without the names that it knows beside.
fn reported() -> Vec<Kept> {
    let (mut events, stats) = read_recording(RECORDING);
    assert_eq!((stats.events, stats.worst()), (31_520 + 90, None));
    events.retain(|event| !event.event.kind.is_task_record());
    events
}

#[test]
fn every_event_is_read_in_order() {
    let mut names: BTreeMap<&str, u64> = BTreeMap::new();
    let mut states: BTreeMap<String, u64> = BTreeMap::new();
    let mut latest = Ns::ZERO;
    let events = reported();
    for Kept { event, name, .. } in &events {
        assert!(latest <= event.time, "{} after {latest}", event.time);
        latest = event.time;
        let name = if name.is_empty() { event.kind.name() } else { name };
        *names.entry(name).or_default() += 1;
        if let EventKind::SchedSwitch(switch) = event.kind {
            *states.entry(switch.prev_state.to_string()).or_default() += 1;
        }
    }
    // As `grep -c` counts them in the text of the same ring buffer.
    let expected = [
        ("sched_migrate_task", 92),
        ("sched_prepare_exec", 1),
        ("sched_process_exec", 1),
        ("sched_process_exit", 81),
        ("sched_process_fork", 81),
        ("sched_process_free", 52),
        ("sched_process_wait", 82),
        ("sched_stat_runtime", 11_439),
        ("sched_switch", 7446),
        ("sched_wake_idle_without_ipi", 4),
        ("sched_wakeup", 6080),
        ("sched_wakeup_new", 81),
        ("sched_waking", 6080),
    ];
    assert_eq!(names, expected.into());
    let expected = [("D", 1), ("I", 31), ("R", 1269), ("R+", 16), ("S", 6048), ("X", 2), ("Z", 79)];
    assert_eq!(states, expected.map(|(state, count)| (state.to_string(), count)).into());
}

#[test]
fn saved_command_lines_name_the_tasks() {
    let (events, _) = read_recording(RECORDING);
    let named: Vec<(i32, Comm)> = events
        .iter()
        .filter_map(|kept| match kept.event.kind {
            EventKind::TaskName { pid, comm, .. } if kept.event.time == Ns::ZERO => Some((pid.0, comm)),
            _ => None,
        })
        .collect();
    assert_eq!(named.len(), 90);
    assert!(named.contains(&(15487, Comm::from("bash"))));
}

/// trace-cmd prints neither flags nor thread groups.
fn without_columns(events: &[Kept]) -> Vec<Kept> {
    let mut events = events.to_vec();
    for event in &mut events {
        event.event.context.flags = Flags::NONE;
        event.event.context.tgid = Pid::UNKNOWN;
    }
    events
}

#[test]
fn what_trace_cmd_prints_of_it_says_the_same() {
    let (text, _) = read_recording("trace-cmd-3.1-hackbench-ns.txt.zst");
    assert_eq!(text.len(), 8000);
    assert_eq!(without_columns(&reported()[..8000]), text);
}

#[test]
fn what_the_kernel_printed_of_the_same_buffer_says_the_same() {
    let (mut text, _) = read_recording("ftrace-6.18-hackbench.txt.zst");
    assert_eq!(text.len(), 8000);
    let mut events = reported()[..8000].to_vec();
    for event in &mut events {
        // The kernel rounds to the nearest microsecond.
        event.event.time = Ns((event.event.time.0 + 500) / 1000 * 1000);
    }
    for event in &mut text {
        event.event.context.tgid = Pid::UNKNOWN;
    }
    assert_eq!(events, text);
}

#[test]
fn a_file_a_pipe_and_a_compressed_file_give_the_same_events() {
    let options = ReadOptions::default();
    let bytes = recording();
    let path = crate::kept::testdata(RECORDING);
    let mut digests = [(); 4].map(|()| DigestSink::default());
    let [in_place, by_path, piped, detected] = &mut digests;
    let stats = tracedat::read_file(File::open(&path).expect("a recording"), &options, in_place)
        .expect("a trace.dat");
    assert_eq!(fairlab_trace::read_path(Path::new(&path), &options, by_path).expect("a trace.dat"), stats);
    assert_eq!(tracedat::read(&bytes[..], &options, piped).expect("a trace.dat"), stats);
    let compressed = zstd::encode_all(&bytes[..], 1).expect("memory");
    assert_eq!(
        fairlab_trace::read(Box::new(&compressed[..]), &options, detected).expect("a trace.dat"),
        stats
    );
    assert!(digests.iter().all(|digest| digest.digest() == digests[0].digest()));
}
