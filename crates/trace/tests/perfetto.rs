//! Our Perfetto traces, decoded by Perfetto's own message definitions.
//!
//! trace_processor itself is not asked: no package brings it. The decoding of states is that of its `task_state.cc`.

#[allow(dead_code)]
#[path = "ftrace_text/kept.rs"]
mod kept;
#[path = "peers/programs.rs"]
mod peers;
#[allow(dead_code)]
#[path = "ftrace_text/random.rs"]
mod random;

use std::path::Path;

use fairlab_event::{Context, Event, EventKind, Flags, Ns, Pid, Sink};
use fairlab_trace::Loss;
use fairlab_trace::ftrace_text::FtraceTextWriter;
use fairlab_trace::perfetto::PerfettoWriter;

use kept::{Kept, read_recording};
use peers::{Folder, run};
use random::Random;

/// Prints what a trace holds: first clocks and system, then process trees and tracks, then the events in order of time.
const PROGRAM: &str = r#"
import sys
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto
trace = proto.Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())
def unknown(message):
    from google.protobuf import unknown_fields
    assert len(unknown_fields.UnknownFieldSet(message)) == 0, message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in (value if field.is_repeated else [value]):
                unknown(inner)
release, events, cleared, tracks = None, [], set(), {}
def state(bits):
    assert int(release.split(".")[0]) * 100 + int(release.split(".")[1]) >= 414 and bits < 0x200
    letters = "|".join(letter for at, letter in enumerate("SDTtXZPI") if bits >> at & 1)
    return (letters or "R") + ("+" if bits & 0x100 else "")
def task(m): return f"comm={m.comm} pid={m.pid}"
def wakeup(m): return f"{task(m)} prio={m.prio} target_cpu={m.target_cpu:03}"
bodies = {
    "sched_switch": lambda m: f"prev_comm={m.prev_comm} prev_pid={m.prev_pid} prev_prio={m.prev_prio} prev_state={state(m.prev_state)}"
        f" ==> next_comm={m.next_comm} next_pid={m.next_pid} next_prio={m.next_prio}",
    "sched_waking": wakeup, "sched_wakeup": wakeup, "sched_wakeup_new": wakeup,
    "sched_migrate_task": lambda m: f"{task(m)} prio={m.prio} orig_cpu={m.orig_cpu} dest_cpu={m.dest_cpu}",
    "sched_process_fork": lambda m: f"comm={m.parent_comm} pid={m.parent_pid} child_comm={m.child_comm} child_pid={m.child_pid}",
    "sched_process_exec": lambda m: f"filename={m.filename} pid={m.pid} old_pid={m.old_pid}",
    "sched_process_exit": lambda m: f"{task(m)} prio={m.prio}",
    "print": lambda m: m.buf,
}
def value(field):
    text = str(getattr(field, field.WhichOneof("value")))
    return text if field.name == "text" else f"{field.name}={text}" + (" [ns]" if field.name in ("delay", "runtime") or stat and field.name == "vruntime" else "")
for packet in trace.packet:
    unknown(packet)
    assert packet.trusted_packet_sequence_id in (1, 2)
    kind = packet.WhichOneof("data")
    if kind == "clock_snapshot":
        print("clocks", sorted((clock.clock_id, clock.timestamp) for clock in packet.clock_snapshot.clocks))
    elif kind == "system_info":
        release = packet.system_info.utsname.release
        print("system", packet.system_info.utsname.sysname, release)
    elif kind == "process_tree":
        for process in packet.process_tree.processes:
            print("process", process.pid, *process.cmdline)
        for thread in packet.process_tree.threads:
            print("thread", thread.tid, thread.tgid, thread.name)
    elif kind == "track_descriptor":
        track = packet.track_descriptor
        if packet.sequence_flags & 1:
            cleared.add(packet.trusted_packet_sequence_id)
        assert packet.trusted_packet_sequence_id in cleared
        assert track.uuid not in tracks and (not track.parent_uuid or track.parent_uuid in tracks)
        tracks[track.uuid] = track.name
        print("track", tracks.get(track.parent_uuid, "-"), "/", track.name, track.sibling_order_rank, track.counter.unit_name)
    elif kind == "track_event":
        event = packet.track_event
        assert packet.timestamp_clock_id == 6
        notes = [f"{note.name}={note.string_value}" for note in event.debug_annotations]
        number = event.counter_value if event.HasField("counter_value") else "-"
        print("event", packet.timestamp, tracks[event.track_uuid], event.type, number, event.name, *notes)
    elif kind == "ftrace_events":
        bundle = packet.ftrace_events
        if bundle.lost_events:
            print("lost", bundle.cpu)
        for event in bundle.event:
            name = event.WhichOneof("event")
            own = getattr(event, name)
            if name == "generic":
                name, stat = own.event_name, own.event_name == "sched_stat_runtime"
                body = " ".join(value(field) for field in own.field)
            else:
                body = bodies[name](own)
            pid = event.pid if event.HasField("pid") else -1
            events.append((event.timestamp, bundle.cpu, f"{pid} {event.common_flags} {name}: {body}"))
    else:
        assert False, kind
# What was printed stands before what is written to the buffer below.
sys.stdout.flush()
for time, cpu, line in sorted(events, key=lambda event: event[:2]):
    sys.stdout.buffer.write(f"{time} {cpu} {line}\n".encode())
"#;

fn decoded(folder: &Folder, bytes: &[u8]) -> Vec<String> {
    let file = folder.file("ours.pftrace", bytes);
    decode(&file).lines().map(str::to_string).collect()
}

fn decode(file: &Path) -> String {
    run("peers-python", &["-c", PROGRAM, file.to_str().expect("a path of plain text")])
}

/// What `common_flags` says of interrupts and rescheduling; the letters are told apart by another test.
fn flag_bits(flags: Flags) -> u8 {
    let column = |index: usize| flags.as_bytes().get(index).copied().unwrap_or(b'.');
    let irqs = match column(0) {
        b'd' => 1,
        b'D' => 0x81,
        b'b' => 0x80,
        _ => 0,
    };
    let resched = match column(1) {
        b'N' => 0x24,
        b'n' => 4,
        b'p' => 0x20,
        b'l' => 2,
        b'L' => 0x22,
        b'b' => 6,
        b'B' => 0x26,
        _ => 0,
    };
    let interrupt = match column(2) {
        b'H' => 0x18,
        b'h' => 8,
        b's' => 0x10,
        _ => 0,
    };
    irqs | resched | interrupt
}

/// The same line, made of the event.
fn expected(kept: &Kept) -> String {
    let event = &kept.event;
    let mut writer = FtraceTextWriter::new(Vec::new());
    kept.replay(&mut writer);
    let text = String::from_utf8_lossy(&writer.finish().expect("memory takes everything")).into_owned();
    let line = text.split_terminator('\n').next_back().unwrap_or_default();
    let stamp = format!("{}: ", event.time);
    let body =
        line.split_once(&stamp).and_then(|(_, rest)| rest.split_once(": ")).map_or("", |(_, body)| body);
    let (name, body) = match event.kind {
        EventKind::Marker { .. } => ("print", kept.text.as_str()),
        EventKind::Kprobe { .. } | EventKind::Other { .. } => (kept.name.as_str(), kept.text.as_str()),
        EventKind::SchedProcessExit { .. } => {
            (event.kind.name(), body.split(" group_dead=").next().unwrap_or(body))
        }
        kind => (kind.name(), body),
    };
    let Context { pid, flags, .. } = event.context;
    format!("{} {} {pid} {} {name}: {body}", event.time.0, event.cpu, flag_bits(flags))
}

fn written(events: &[Kept]) -> (Vec<u8>, fairlab_trace::Losses) {
    let mut writer = PerfettoWriter::new(Vec::new());
    for event in events {
        event.replay(&mut writer);
    }
    let losses = writer.losses().clone();
    (writer.finish().expect("memory takes everything"), losses)
}

/// Lines about events; all others stand before them.
fn of_events(lines: &[String]) -> &[String] {
    let first = lines.iter().position(|line| line.as_bytes().first().is_some_and(u8::is_ascii_digit));
    &lines[first.unwrap_or(lines.len())..]
}

#[track_caller]
fn check(folder: &Folder, events: &[Kept], what: &str) {
    let lines = decoded(folder, &written(events).0);
    let is_ftrace = |kept: &&Kept| {
        !kept.event.kind.is_task_record() && !matches!(kept.event.kind, EventKind::Lost { .. })
    };
    let mut ours: Vec<&Kept> = events.iter().filter(is_ftrace).collect();
    ours.sort_by_key(|kept| (kept.event.time, kept.event.cpu));
    let found = of_events(&lines);
    for (line, kept) in found.iter().zip(&ours) {
        assert_eq!(line, &expected(kept), "{what}");
    }
    assert_eq!(found.len(), ours.len(), "{what}");
}

#[test]
fn events_of_recordings_are_there() {
    let folder = Folder::new("perfetto-recordings");
    for name in [
        "ftrace-5.10-forkstorm.txt.gz",
        "ftrace-6.6-vhost.txt.zst",
        "ftrace-6.18-rtapp.txt.xz",
        "ftrace-7.2-probed.txt.zst",
        // More than one piece.
        "perf-hackbench.data",
    ] {
        check(&folder, &read_recording(name).0, name);
    }
}

#[test]
fn events_of_every_kind_are_there() {
    let folder = Folder::new("perfetto-kinds");
    let mut random = Random::new(7);
    let mut events = Vec::new();
    while events.len() < 4000 {
        let mut kept = random.event();
        let shown = format!("{:?}", kept.event);
        // Lines are the test's own; states and flags of old kernels are another test's.
        let plain = |text: &str| !text.contains(['\n', '\r', '\u{fffd}', '\u{1}', '\\']);
        let today =
            !shown.contains(['K', 'W', 'x', 'N']) || !matches!(kept.event.kind, EventKind::SchedSwitch(_));
        let cpus_of_a_kernel = ["target_cpu", "orig_cpu", "dest_cpu"].iter().all(|name| {
            shown
                .split(&format!("{name}: Cpu("))
                .skip(1)
                .all(|rest| rest.split(')').next().is_some_and(|cpu| cpu.parse::<i32>().is_ok()))
        });
        if plain(&kept.text) && plain(&shown) && today && cpus_of_a_kernel {
            kept.event.time = Ns(events.len() as u64 + 1);
            kept.event.cpu.0 %= 8;
            kept.event.context.flags = Flags::NONE;
            if kept.event.context.pid.0 < 0 {
                kept.event.context.pid = Pid::UNKNOWN;
            }
            events.push(kept);
        }
    }
    check(&folder, &events, "seed 7");
}

#[test]
fn what_is_known_beside_events_is_told() {
    let folder = Folder::new("perfetto-beside");
    let comm = |name: &str| fairlab_event::Comm::from(name);
    let context = Context { comm: comm("sh"), pid: Pid(7), tgid: Pid(6), flags: Flags::new(b"d..2.") };
    let mut writer = PerfettoWriter::new(Vec::new());
    let mut event =
        |time, kind| writer.event(&Event { time: Ns(time), cpu: fairlab_event::Cpu(1), context, kind });
    event(90, EventKind::TaskName { pid: Pid(6), tgid: Pid(6), comm: comm("leader") });
    event(100, EventKind::Marker { text: "hello" });
    event(110, EventKind::Lost { count: Some(3) });
    event(120, EventKind::TaskStart { pid: Pid(8), tgid: Pid(6), parent_pid: Pid(7) });
    event(130, EventKind::TaskExit { pid: Pid(8), tgid: Pid(6) });
    let group = writer.group("group");
    let counter = writer.counter_track(group, "number", 2, "tasks");
    let slices = writer.slice_track(group, "stretch", 1);
    writer.counter(counter, Ns(100), 4);
    writer.counter(counter, Ns(105), -1);
    writer.slice(slices, Ns(101), Ns(109), "wait", &[("why", "luck".to_string())]);
    let losses = writer.losses().clone();
    let counts = [Loss::LeftOut, Loss::Fields, Loss::Flags].map(|loss| losses.count(loss));
    assert_eq!((counts, losses.events()), ([1, 2, 1], 4), "{losses}");
    let lines = decoded(&folder, &writer.finish().expect("memory takes everything"));
    let expected = [
        "clocks [(3, 100), (6, 100)]",
        "system Linux 4.14.0",
        "process 6 leader",
        "thread 6 6 leader",
        "thread 7 6 sh",
        "thread 8 6 sh",
        "lost 1",
        "track - / group 0 ",
        "track group / number 2 tasks",
        "track group / stretch 1 ",
        "event 100 number 4 4 ",
        "event 105 number 4 -1 ",
        "event 101 stretch 1 - wait why=luck",
        "event 109 stretch 2 - ",
        "100 1 7 1 print: hello",
    ];
    assert_eq!(lines, expected);
}
