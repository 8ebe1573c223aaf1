//! Our Perfetto traces, decoded by Perfetto's own message definitions.
//!
//! trace_processor itself is not asked: no package brings it. The decoding of states is that of its `task_state.cc`.

use std::path::Path;

use fairlab_event::{Context, Event, EventKind, Flags, Ns, Pid, Sink, System};
use fairlab_trace::ftrace_text::FtraceTextWriter;
use fairlab_trace::perfetto::PerfettoWriter;
use fairlab_trace::{LossKind, Trouble};

use crate::kept::{Kept, read_recording};
use crate::peers::{Folder, run};
use crate::random::Random;

use crate::kept;

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
    "cpu_idle": lambda m: f"state={m.state} cpu_id={m.cpu_id}",
    "cpu_frequency": lambda m: f"state={m.state} cpu_id={m.cpu_id}",
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
        if track.HasField("thread"):
            tracks[track.uuid] = f"{track.thread.thread_name}/{track.thread.tid}/{track.thread.pid}"
        print("track", tracks.get(track.parent_uuid, "-"), "/", tracks[track.uuid], track.sibling_order_rank, track.counter.unit_name)
    elif kind == "track_event":
        event = packet.track_event
        assert packet.timestamp_clock_id == 6
        notes = [f"{note.name}={note.string_value or note.uint_value}" for note in event.debug_annotations]
        notes += [f"from={flow}" for flow in event.flow_ids] + [f"to={flow}" for flow in event.terminating_flow_ids]
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

fn written(events: &[Kept]) -> (Vec<u8>, fairlab_trace::WriterLosses) {
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
    let [waker, wakee] =
        [(Pid(7), Pid(6)), (Pid(8), Pid::UNKNOWN)].map(|(pid, tgid)| writer.thread_track(pid, tgid, "sh"));
    writer.wakes(waker, Ns(102), "wakes sh 8", 1);
    writer.wait(wakee, Ns(102), Ns(107), "waits: woken", Some(1), &[("ran on CPU", 3)]);
    let losses = writer.losses().clone();
    let counts = [LossKind::LeftOut, LossKind::Fields, LossKind::Flags].map(|loss| losses.count(loss));
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
        "track - / sh/7/6 0 ",
        "track - / sh/8/8 0 ",
        "event 102 sh/7/6 3 - wakes sh 8 from=1",
        "event 102 sh/8/8 1 - waits: woken ran on CPU=3 to=1",
        "event 107 sh/8/8 2 - ",
        "100 1 7 1 print: hello",
    ];
    assert_eq!(lines, expected);
}

/// What comes back of an event: no depth of preemption, no names but those of process trees, holes without a count.
fn without_losses(kept: &Kept) -> Kept {
    let mut kept = kept.clone();
    let context = &mut kept.event.context;
    let (bits, known) = (flag_bits(context.flags), context.flags != Flags::NONE);
    context.flags = if known { Flags::new(&columns(bits)) } else { Flags::NONE };
    context.comm = fairlab_event::Comm::default();
    context.tgid = Pid::UNKNOWN;
    match &mut kept.event.kind {
        EventKind::SchedProcessExit { group_dead, .. } => *group_dead = None,
        EventKind::Lost { count } => {
            *count = None;
            *context = Context::default();
        }
        _ => {}
    }
    kept
}

fn columns(bits: u8) -> [u8; 5] {
    let irqs = match bits & 0x81 {
        0x81 => b'D',
        1 => b'd',
        0x80 => b'b',
        _ => b'.',
    };
    let resched = match bits & 0x26 {
        0x24 => b'N',
        4 => b'n',
        0x20 => b'p',
        2 => b'l',
        0x22 => b'L',
        6 => b'b',
        0x26 => b'B',
        _ => b'.',
    };
    let interrupt = match bits & 0x18 {
        0x18 => b'H',
        8 => b'h',
        0x10 => b's',
        _ => b'.',
    };
    [irqs, resched, interrupt, b'.', b'.']
}

fn read_back(bytes: &[u8]) -> (Vec<Kept>, fairlab_trace::ImportStats) {
    let mut keeper = kept::Keeper::default();
    let stats = fairlab_trace::read(Box::new(bytes), &fairlab_trace::ReadOptions::default(), &mut keeper)
        .expect("a trace of Perfetto");
    assert_eq!(stats.events, keeper.0.len() as u64);
    (keeper.0, stats)
}

/// Every event comes back but for what is counted as lost; those of one time come in the order of CPUs.
#[test]
fn events_of_recordings_come_back() {
    for name in
        ["ftrace-5.10-forkstorm.txt.gz", "ftrace-6.6-vhost.txt.zst", "perf-hackbench.data", "perf-lost.data"]
    {
        let events = read_recording(name).0;
        let (back, _) = read_back(&written(&events).0);
        let mut expected: Vec<Kept> =
            events.iter().filter(|kept| !kept.event.kind.is_task_record()).map(without_losses).collect();
        let by_cpu = |kept: &Kept| (kept.event.cpu, kept.event.time);
        // A hole stands where the next event of its CPU is; one that nothing follows is none.
        for index in (0..expected.len()).rev() {
            if matches!(expected[index].event.kind, EventKind::Lost { .. }) {
                let cpu = expected[index].event.cpu;
                match expected[index + 1..]
                    .iter()
                    .find(|kept| kept.event.cpu == cpu)
                    .map(|kept| kept.event.time)
                {
                    Some(time) => expected[index].event.time = time,
                    None => drop(expected.remove(index)),
                }
            }
        }
        let mut back: Vec<Kept> = back.iter().map(without_losses).collect();
        expected.sort_by_key(by_cpu);
        // Holes without an event between are one.
        expected.dedup_by(|later, earlier| {
            later == earlier && matches!(later.event.kind, EventKind::Lost { .. })
        });
        back.sort_by_key(by_cpu);
        for (back, event) in back.iter().zip(&expected) {
            assert_eq!(back, event, "{name}");
        }
        assert_eq!(back.len(), expected.len(), "{name}");
    }
}

/// Perfetto's messages by hand, independent of the writer.
mod by_hand {
    pub fn varint(bytes: &mut Vec<u8>, mut value: u64) {
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
    }

    pub fn number(field: u64, value: i64) -> Vec<u8> {
        let mut bytes = Vec::new();
        varint(&mut bytes, field << 3);
        varint(&mut bytes, value as u64);
        bytes
    }

    pub fn blob(field: u64, blob: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        varint(&mut bytes, field << 3 | 2);
        varint(&mut bytes, blob.len() as u64);
        bytes.extend(blob);
        bytes
    }

    pub fn packed(field: u64, values: &[i64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for &value in values {
            varint(&mut bytes, value as u64);
        }
        blob(field, &bytes)
    }

    /// A packet with a bundle of `cpu`.
    pub fn bundle(cpu: i64, parts: &[Vec<u8>]) -> Vec<u8> {
        packet(&[blob(1, &[number(1, cpu), parts.concat()].concat())])
    }

    pub fn packet(parts: &[Vec<u8>]) -> Vec<u8> {
        blob(1, &parts.concat())
    }

    pub fn switch(time: i64, prev: (i64, &str), state: i64, next: (i64, &str)) -> Vec<u8> {
        let own = [
            blob(1, prev.1.as_bytes()),
            number(2, prev.0),
            number(3, 120),
            number(4, state),
            blob(5, next.1.as_bytes()),
            number(6, next.0),
            number(7, 120),
        ];
        blob(2, &[number(1, time), number(2, prev.0), blob(4, &own.concat())].concat())
    }

    pub fn names(threads: &[(i64, i64, &str)]) -> Vec<u8> {
        let thread = |&(tid, tgid, name): &(i64, i64, &str)| {
            blob(2, &[number(1, tid), number(3, tgid), blob(2, name.as_bytes())].concat())
        };
        packet(&[blob(2, &threads.iter().map(thread).collect::<Vec<_>>().concat())])
    }
}

/// The text of what comes back.
fn text_of(bytes: &[u8]) -> (String, fairlab_trace::ImportStats) {
    let (events, stats) = read_back(bytes);
    let mut writer = FtraceTextWriter::new(Vec::new());
    for event in &events {
        event.replay(&mut writer);
    }
    let text = String::from_utf8(writer.finish().expect("memory takes everything")).expect("plain text");
    (text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect(), stats)
}

use by_hand::{blob, bundle, number, packed, packet, switch};

/// As Android writes: columns with names by number, the differences of times; a waking is by who runs.
fn compact() -> Vec<u8> {
    let compact = [
        blob(5, b"swapper/0"),
        blob(5, b"worker"),
        blob(5, b"other"),
        packed(1, &[1000, 3000, 2000]),
        packed(2, &[1, 0, 1]),
        packed(3, &[7, 8, 0]),
        packed(4, &[120, 110, 120]),
        packed(6, &[1, 2, 0]),
        packed(7, &[2000, 1500]),
        packed(8, &[8, 9]),
        packed(9, &[0, 1]),
        packed(10, &[110, 120]),
        packed(11, &[2, 1]),
        packed(12, &[1, 1]),
    ];
    blob(4, &compact.concat())
}

#[test]
fn columns_of_switches_and_wakings_are_read() {
    let trace = [by_hand::names(&[(7, 5, "worker")]), bundle(0, &[compact()])].concat();
    let (text, stats) = text_of(&trace);
    let expected = "\
          worker-7       (      5) [000] d....     0.000002000: sched_waking: comm=other pid=8 prio=110 target_cpu=000\n\
          worker-7       (      5) [000] d....     0.000003500: sched_waking: comm=worker pid=9 prio=120 target_cpu=001\n\
          worker-7       (      5) [000] .....     0.000004000: sched_switch: prev_comm=worker prev_pid=7 prev_prio=120 prev_state=R ==> next_comm=other next_pid=8 next_prio=110\n\
           other-8       (-------) [000] .....     0.000006000: sched_switch: prev_comm=other prev_pid=8 prev_prio=110 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n";
    let words = |text: &str| {
        text.lines()
            .map(|line| {
                line.split_once("] ")
                    .map_or("", |(_, rest)| rest)
                    .split_once(' ')
                    .map_or("", |(_, rest)| rest)
                    .trim()
                    .to_string()
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(words(&text), words(expected), "{text}");
    // Who ran before the first switch, nothing tells.
    assert_eq!(stats.count(Trouble::SkippedRecord), 1);
    let (events, _) = read_back(&trace);
    let contexts: Vec<_> =
        events.iter().map(|kept| (kept.event.context.pid.0, kept.event.context.tgid.0)).collect();
    assert_eq!(contexts, [(7, 5), (7, 5), (7, 5), (8, -1)]);
}

#[test]
fn bundles_in_any_order_and_compressed_ones_are_merged() {
    use std::io::Write;
    let late = bundle(1, &[switch(50, (0, ""), 0, (9, "c")), switch(90, (9, "c"), 1, (0, ""))]);
    let early = bundle(0, &[switch(40, (0, "swapper/0"), 0, (7, "a")), switch(60, (7, "a"), 256, (8, "b"))]);
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&early).expect("memory");
    let compressed = packet(&[blob(50, &encoder.finish().expect("memory"))]);
    let by_zstd = packet(&[blob(133, &zstd::encode_all(&early[..], 3).expect("memory"))]);
    let whole =
        packet(&[blob(133, &zstd::encode_all(&[&late[..], &early].concat()[..], 3).expect("memory"))]);
    let traces = [
        [&late[..], &early].concat(),
        [&late[..], &compressed].concat(),
        [&late[..], &by_zstd].concat(),
        whole,
    ];
    for trace in traces {
        let (events, stats) = read_back(&trace);
        let times: Vec<_> = events.iter().map(|kept| (kept.event.time.0, kept.event.cpu.0)).collect();
        assert_eq!((times, stats.worst()), (vec![(40, 0), (50, 1), (60, 0), (90, 1)], None));
        let EventKind::SchedSwitch(switch) = events[1].event.kind else { panic!("a switch") };
        assert_eq!(switch.prev_comm.to_str(), "swapper/1", "some recorders leave the idle task's name out");
    }
}

#[test]
fn holes_are_told() {
    let sequence = |packet: Vec<u8>| blob(1, &[packet, number(10, 3)].concat());
    let of = |parts: &[Vec<u8>]| blob(1, &[number(1, 0), parts.concat()].concat());
    let first = sequence(of(&[switch(40, (0, ""), 0, (7, "a"))]));
    let lost = sequence(of(&[switch(60, (7, "a"), 1, (8, "b")), number(3, 1)]));
    let dropped = sequence([of(&[switch(80, (8, "b"), 1, (0, ""))]), number(42, 1)].concat());
    let (events, stats) = read_back(&[first, lost, dropped].concat());
    let holes: Vec<_> = events
        .iter()
        .map(|kept| (kept.event.time.0, matches!(kept.event.kind, EventKind::Lost { .. })))
        .collect();
    assert_eq!(holes, [(40, false), (60, true), (60, false), (80, true), (80, false)]);
    assert_eq!(stats.count(Trouble::LostEvents), 2);
}

#[test]
fn other_clocks_machines_and_events_are_told() {
    let clock = [number(5, 2), number(6, 1000), number(7, 5000)].concat();
    let trace = bundle(0, &[switch(1040, (0, ""), 0, (7, "a")), clock]);
    assert_eq!(read_back(&trace).0[0].event.time, Ns(5040));
    let frequency = blob(
        2,
        &[number(1, 5), number(2, 7), blob(11, &[number(1, 1_200_000), number(2, 3)].concat())].concat(),
    );
    let (events, _) = read_back(&bundle(0, &[frequency]));
    assert_eq!(
        (events[0].name.as_str(), events[0].text.as_str()),
        ("cpu_frequency", "state=1200000 cpu_id=3")
    );
    let machine = |id| {
        blob(
            1,
            &[blob(1, &[number(1, 0), switch(40, (0, ""), 0, (7, "a"))].concat()), number(98, id)].concat(),
        )
    };
    let error = |bytes: &[u8]| {
        let read = fairlab_trace::read(Box::new(bytes), &fairlab_trace::ReadOptions::default(), &mut ());
        read.expect_err("refused").to_string()
    };
    assert!(error(&[machine(1), machine(2)].concat()).contains("2 machines"));
    // UNKNOWN, and one that there is not: what these count nothing tells.
    for (clock, is_told) in [(0, true), (1, false), (2, true), (3, true), (4, true), (5, false)] {
        let trace = bundle(0, &[switch(1040, (0, ""), 0, (7, "a")), number(5, clock)]);
        let read = fairlab_trace::read(Box::new(&trace[..]), &fairlab_trace::ReadOptions::default(), &mut ());
        match read {
            Ok(_) => assert!(is_told, "{clock}"),
            Err(error) => assert!(!is_told && error.to_string().contains("clock"), "{clock}: {error}"),
        }
    }
    let tracks = packet(&[number(8, 5), blob(11, &number(9, 1))]);
    assert!(
        error(&tracks).contains("no events of the kernel's scheduler: 1 packets, 1 of them about tracks")
    );
    assert!(error(b"\n\xff\x01\x02").contains("at byte 0 there is no packet"));
}

/// A `GenericEventDescriptor`: the fields' names and types by their numbers from 1 on.
fn description(field: i64, group: &str, name: &str, fields: &[(&str, i64)]) -> Vec<u8> {
    let field_of = |(at, (name, kind)): (usize, &(&str, i64))| {
        blob(2, &[number(3, at as i64 + 1), blob(1, name.as_bytes()), number(5, *kind)].concat())
    };
    let fields: Vec<_> = fields.iter().enumerate().map(field_of).collect();
    let message = [blob(1, name.as_bytes()), fields.concat()].concat();
    blob(11, &[number(1, field), blob(2, &message), blob(3, group.as_bytes())].concat())
}

/// An event of such a field.
fn described(time: i64, field: u64, own: &[Vec<u8>]) -> Vec<u8> {
    blob(2, &[number(1, time), number(2, 7), blob(field, &own.concat())].concat())
}

/// `FieldDescriptorProto::Type`.
const INT64: i64 = 3;
const UINT64: i64 = 4;
const STRING: i64 = 9;

#[test]
fn events_that_the_trace_describes_are_read() {
    let runtime = [("comm", STRING), ("pid", INT64), ("runtime", UINT64)];
    let descriptions = [
        description(65_600, "sched", "sched_stat_runtime", &runtime),
        description(65_601, "block", "block_rq", &[("dev", UINT64), ("error", INT64), ("cmd", STRING)]),
        description(65_602, "kprobes", "place", &[("__probe_ip", UINT64)]),
        // Another subsystem's, of the same name.
        description(65_603, "mine", "sched_stat_wait", &[("n", INT64)]),
        // A second description of the first says nothing.
        description(65_600, "sched", "sched_stat_iowait", &[]),
    ];
    let stat = [blob(1, b"worker"), number(2, 7), number(3, 1 << 40)];
    let events = [
        described(10, 65_600, &stat),
        // In another order, and what is zero left out.
        described(11, 65_600, &[number(3, 5), blob(1, b"idle")]),
        described(12, 65_601, &[number(1, -1), number(2, -5), blob(3, b"WS")]),
        described(13, 65_602, &[number(1, 16)]),
        described(14, 65_603, &[number(1, 3)]),
    ];
    // Descriptions stand behind the events, and in a bundle of another CPU.
    let trace = [bundle(1, &[events.concat()]), bundle(0, &descriptions)].concat();
    let (events, stats) = read_back(&trace);
    let told: Vec<_> = events.iter().map(|kept| format!("{:?}", kept.event.kind)).collect();
    let runtime = |comm: &str, pid, runtime| {
        let kind = EventKind::SchedStatRuntime {
            comm: fairlab_event::Comm::from(comm),
            pid: Pid(pid),
            runtime: Ns(runtime),
            vruntime: None,
        };
        format!("{kind:?}")
    };
    assert_eq!(told[..2], [runtime("worker", 7, 1 << 40), runtime("idle", 0, 5)]);
    let others: Vec<_> = events[2..].iter().map(|kept| (kept.name.as_str(), kept.text.as_str())).collect();
    let expected = [
        ("block_rq", "dev=18446744073709551615 error=-5 cmd=WS"),
        ("place", "__probe_ip=16"),
        ("sched_stat_wait", "n=3"),
    ];
    assert_eq!(others, expected);
    assert!(matches!(events[3].event.kind, EventKind::Kprobe { .. }));
    assert_eq!(stats.worst(), None, "{:?}", stats.troubles());
}

#[test]
fn events_that_the_trace_should_describe_are_told() {
    let stat = |time| described(time, 65_600, &[number(2, 7)]);
    let few = [(0..200).map(|at| switch(at, (0, ""), 0, (7, "a"))).collect::<Vec<_>>().concat(), stat(300)];
    let (events, stats) = read_back(&bundle(0, &few));
    assert_eq!((events.len(), stats.count(Trouble::UnknownEventFormat)), (200, 1));
    let many = bundle(0, &[switch(1, (0, ""), 0, (7, "a")), stat(2)]);
    let read = fairlab_trace::read(Box::new(&many[..]), &fairlab_trace::ReadOptions::default(), &mut ());
    let error = read.expect_err("any of them may be the scheduler's").to_string();
    assert!(error.contains("1 of 2 records are of events that the file does not describe"), "{error}");
}

#[test]
fn what_two_data_sources_gave_is_taken_once() {
    let of = |sequence, parts: &[Vec<u8>]| {
        packet(&[blob(1, &[number(1, 0), parts.concat()].concat()), number(10, sequence)])
    };
    let marker = |time, text: &str| {
        blob(2, &[number(1, time), number(2, 7), blob(3, &blob(2, text.as_bytes()))].concat())
    };
    let switches = [switch(40, (0, ""), 0, (7, "worker")), switch(1900, (7, "worker"), 1, (0, ""))];
    // Two of one text at one time are two; what one source alone has is no repetition.
    let [begin, end] = &switches;
    let markers = [marker(50, "x"), marker(50, "x"), marker(60, "y")].concat();
    let first = of(2, &[begin.clone(), markers.clone(), end.clone()]);
    let second = of(4, &[begin.clone(), markers, marker(70, "own"), end.clone()]);
    let (alone, _) = read_back(&first);
    let (both, stats) = read_back(&[first.clone(), second].concat());
    assert_eq!((alone.len(), both.len()), (5, 6));
    let told = |events: &[Kept]| {
        let mut told: Vec<_> =
            events.iter().map(|kept| (kept.event.time.0, kept.name.clone(), kept.text.clone())).collect();
        told.retain(|(_, _, text)| text != "own");
        told
    };
    assert_eq!(told(&both), told(&alone));
    assert_eq!(stats.count(Trouble::RecordedTwice), 5);
    // One source in columns, the other not.
    let (columns, _) = read_back(&of(2, &[compact()]));
    let same =
        [switch(4000, (7, "worker"), 0, (8, "other")), switch(6000, (8, "other"), 1, (0, "swapper/0"))];
    let (both, stats) = read_back(&[of(2, &[compact()]), of(4, &same)].concat());
    assert_eq!((both.len(), stats.count(Trouble::RecordedTwice)), (columns.len(), 2));
}

/// How often each kind of event is there.
fn counted(file: &str) -> (std::collections::BTreeMap<String, u64>, fairlab_trace::ImportStats) {
    let mut kinds = std::collections::BTreeMap::new();
    let mut sink = fairlab_event::sink_fn(|event: &Event<'_>| {
        *kinds.entry(event.kind.name().to_string()).or_insert(0) += 1;
    });
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(file);
    let stats =
        fairlab_trace::read_path(&path, &fairlab_trace::ReadOptions::default(), &mut sink).expect(file);
    drop(sink);
    (kinds, stats)
}

/// As counted in the files by their bytes.
#[test]
fn recordings_of_today_are_read() {
    let (kinds, stats) = counted("perfetto-56-stat-runtime.pftrace.zst");
    assert_eq!(kinds["sched_stat_runtime"], 764);
    assert_eq!(stats.count(Trouble::UnknownEventFormat), 0);
    let (kinds, stats) = counted("perfetto-56-two-sources.pftrace.zst");
    // All that one source gave, the other gave too: its events, those that are not read, and the first switches in columns,
    // of which nothing tells who leaves.
    let count = |trouble| stats.count(trouble);
    let of_one = stats.events + count(Trouble::OtherTracepoint) + count(Trouble::SkippedRecord);
    assert_eq!((kinds["sched_migrate_task"], count(Trouble::RecordedTwice)), (52, of_one), "{kinds:?}");
    assert_eq!(stats.worst(), Some(fairlab_trace::Severity::Warning));
}

/// Nothing that a file may hold ends in a panic.
#[test]
fn damaged_traces_are_read_as_far_as_they_go() {
    let events = read_recording("ftrace-6.6-vhost.txt.zst").0;
    let whole = [written(&events[..2000.min(events.len())]).0, bundle(0, &[compact()])].concat();
    let mut random = Random::new(5);
    let mut told = 0;
    for round in 0..400 {
        let mut bytes = whole.clone();
        if round % 4 == 0 {
            bytes.truncate(random.below(bytes.len()));
        }
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len().max(1));
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        let read = fairlab_trace::read(Box::new(&bytes[..]), &fairlab_trace::ReadOptions::default(), &mut ());
        told += u32::from(read.map_or(true, |stats| !stats.troubles().is_empty()));
    }
    assert!(told > 50, "{told}");
}

/// The states in which tasks leave, of a trace of this release; none: it does not tell.
fn states_of(release: Option<&str>, states: &[i64]) -> (Vec<String>, u64) {
    let system = release.map(|release| {
        packet(&[blob(45, &blob(1, &[blob(1, b"Linux"), blob(3, release.as_bytes())].concat()))])
    });
    let switches: Vec<Vec<u8>> =
        (1..).zip(states).map(|(time, &state)| switch(time, (7, "a"), state, (8, "b"))).collect();
    let (events, stats) = read_back(&[system.unwrap_or_default(), bundle(0, &switches)].concat());
    let states = events.iter().filter_map(|kept| match kept.event.kind {
        EventKind::SchedSwitch(switch) => Some(switch.prev_state.to_string()),
        _ => None,
    });
    (states.collect(), stats.count(Trouble::NumberedState))
}

#[test]
fn states_are_those_of_the_kernel() {
    for (release, numbers, letters) in [
        ("3.8.13", [512, 16], ["R+", "Z"]),
        ("3.18.120-perf", [1024, 512], ["R+", "P"]),
        ("4.4.0", [2048, 32], ["R+", "X"]),
        ("4.9.337-g1", [4096, 64], ["R+", "x"]),
        ("4.14.0", [256, 32], ["R+", "Z"]),
    ] {
        assert_eq!(
            states_of(Some(release), &numbers),
            (letters.map(str::to_string).to_vec(), 0),
            "{release}"
        );
    }
    let (letters, doubtful) = states_of(None, &[1, 256, 1024, 2048, 4096, 32, 512]);
    assert_eq!((letters.join(" ").as_str(), doubtful), ("S R+ R+ R+ R+ Z P", 2));
}

/// Viewers decode states by the release that the trace names; so does what reads it again.
#[test]
fn states_of_an_older_kernel_come_back_as_they_were() {
    let mut writer = PerfettoWriter::new(Vec::new());
    writer.system(&System { release: "4.9.337".to_string(), ..System::default() });
    for (time, state) in [(1, "X"), (2, "Z"), (3, "R+")] {
        let switch = fairlab_event::Switch {
            prev_comm: "a".into(),
            prev_pid: Pid(7),
            prev_prio: fairlab_event::Prio(120),
            prev_state: fairlab_event::TaskState::parse(state.as_bytes()).expect("a state"),
            next_comm: "b".into(),
            next_pid: Pid(8),
            next_prio: fairlab_event::Prio(120),
        };
        writer.event(&Event::new(Ns(time), fairlab_event::Cpu(0), EventKind::SchedSwitch(switch)));
    }
    let (text, stats) = text_of(&writer.finish().expect("memory takes everything"));
    let states: Vec<&str> =
        text.lines().filter_map(|line| line.split_once("prev_state=")?.1.split(' ').next()).collect();
    assert_eq!((states, stats.worst()), (vec!["X", "Z", "R+"], None));
}
