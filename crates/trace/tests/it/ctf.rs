//! Traces in the Common Trace Format: what perf makes of a recording, and what LTTng writes, made here by its layout.

use std::fs;
use std::path::Path;

use fairlab_event::{EventKind, Pid};
use fairlab_trace::{ImportError, ImportStats, ReadOptions, Trouble, is_trace_folder, read_path};

use crate::kept::{Keeper, Kept, read_recording, testdata};
use crate::peers::{Folder, run};
use crate::random::Random;

fn read(folder: &Path) -> Result<(Vec<Kept>, ImportStats), ImportError> {
    let mut keeper = Keeper::default();
    let stats = read_path(folder, &ReadOptions::default(), &mut keeper)?;
    assert_eq!(stats.events, keeper.0.len() as u64);
    Ok((keeper.0, stats))
}

/// perf's own events, but for names of who reported them, which it leaves out.
#[test]
fn what_perf_converts_is_the_recording() {
    let folder = Folder::new("ctf-perf");
    let converted = folder.0.join("converted");
    let path = |path: &Path| path.to_str().expect("a path of plain text").to_string();
    let input = path(&testdata("perf-hackbench.data"));
    run("perf", &["data", "convert", "--to-ctf", &path(&converted), "-i", &input]);
    assert!(is_trace_folder(&converted));
    let plain = |kept: &Kept| {
        let mut kept = kept.clone();
        kept.event.context.comm = fairlab_event::Comm::default();
        kept
    };
    let by_time = |kept: &Kept| (kept.event.time, kept.event.cpu);
    let (events, stats) = read(&converted).expect("a trace");
    let mut events: Vec<Kept> = events.iter().map(plain).collect();
    let is_sample = |kept: &&Kept| {
        !kept.event.kind.is_task_record() && !matches!(kept.event.kind, EventKind::Lost { .. })
    };
    let mut expected: Vec<Kept> =
        read_recording("perf-hackbench.data").0.iter().filter(is_sample).map(plain).collect();
    events.sort_by_key(by_time);
    expected.sort_by_key(by_time);
    for (event, expected) in events.iter().zip(&expected) {
        assert_eq!(event, expected);
    }
    assert_eq!((events.len(), stats.worst()), (expected.len(), None), "{:?}", stats.troubles());
}

/// What perf 6.12 converted, and what babeltrace2 2.1.2 made of that in version 2.
#[test]
fn both_versions_of_the_format_say_the_same() {
    let of = |name: &str| read(&testdata("ctf").join(name)).expect("a trace");
    let ((first, first_stats), (second, second_stats)) = (of("perf-6.12-v1.8"), of("perf-6.12-v2"));
    assert_eq!(first.len(), second.len());
    for (one, other) in first.iter().zip(&second) {
        assert_eq!(one, other);
    }
    let switches = first.iter().filter(|kept| matches!(kept.event.kind, EventKind::SchedSwitch(_)));
    assert!(switches.count() > 100 && first.len() > 500, "{}", first.len());
    assert_eq!((first_stats.worst(), second_stats.worst()), (None, None));
}

/// A description as LTTng's kernel tracer writes it, of two events.
const DESCRIPTION: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = false; } := unsigned long;
typealias integer { size = 5; align = 1; signed = false; } := uint5_t;
trace { major = 1; minor = 8; uuid = "00000000-0000-0000-0000-000000000000"; byte_order = le;
    packet.header := struct { uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; uint64_t stream_instance_id; }; };
env { hostname = "lab"; domain = "kernel"; sysname = "Linux"; kernel_release = "6.1.0-18-amd64"; tracer_name = "lttng-modules";
    tracer_major = 2; };
clock { name = "monotonic"; freq = 500000000; offset = 1332166405241713987; };
typealias integer { size = 27; align = 1; signed = false; map = clock.monotonic.value; } := uint27_clock_monotonic_t;
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := uint64_clock_monotonic_t;
struct packet_context { uint64_clock_monotonic_t timestamp_begin; uint64_clock_monotonic_t timestamp_end; uint64_t content_size;
    uint64_t packet_size; uint64_t packet_seq_num; unsigned long events_discarded; uint32_t cpu_id; };
struct event_header_compact {
    enum : uint5_t { compact = 0 ... 30, extended = 31 } id;
    variant <id> {
        struct { uint27_clock_monotonic_t timestamp; } compact;
        struct { uint32_t id; uint64_clock_monotonic_t timestamp; } extended;
    } v;
} align(8);
stream { id = 0; event.header := struct event_header_compact; packet.context := struct packet_context; };
event { name = "sched_switch"; id = 0; stream_id = 0; fields := struct {
    integer { size = 8; align = 8; signed = 0; encoding = UTF8; base = 10; } _prev_comm[16];
    integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _prev_tid;
    integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _prev_prio;
    enum : integer { size = 64; align = 8; signed = 1; encoding = none; base = 10; } { "TASK_RUNNING" = 0, "TASK_INTERRUPTIBLE" = 1 } _prev_state;
    integer { size = 8; align = 8; signed = 0; encoding = UTF8; base = 10; } _next_comm[16];
    integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _next_tid;
    integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _next_prio; }; };
event { name = "sched_waking"; id = 40; stream_id = 0; fields := struct {
    integer { size = 8; align = 8; signed = 0; encoding = UTF8; base = 10; } _comm[16];
    integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _tid;
    integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _prio;
    integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _target_cpu; }; };
event { name = "timer_start"; id = 2; stream_id = 0; fields := struct {
    integer { size = 32; align = 8; signed = 0; encoding = none; base = 10; } _list_length;
    integer { size = 16; align = 8; signed = 0; encoding = none; base = 10; } _list[ _list_length ]; string _name; }; };
"#;

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn longs(longs: &[u64]) -> Vec<u8> {
    longs.iter().flat_map(|long| long.to_le_bytes()).collect()
}

fn comm(name: &str) -> Vec<u8> {
    let mut comm = name.as_bytes().to_vec();
    comm.resize(16, 0);
    comm
}

/// An event with the low bits of its time.
fn compact(id: u32, ticks: u32, fields: &[Vec<u8>]) -> Vec<u8> {
    [words(&[id | (ticks & 0x7ff_ffff) << 5]), fields.concat()].concat()
}

/// An event with all of its time.
fn extended(id: u32, ticks: u64, fields: &[Vec<u8>]) -> Vec<u8> {
    [vec![31], words(&[id]), longs(&[ticks]), fields.concat()].concat()
}

fn switch(prev: (&str, u32), state: u64, next: (&str, u32)) -> [Vec<u8>; 5] {
    [comm(prev.0), words(&[prev.1, 20]), longs(&[state]), comm(next.0), words(&[next.1, 20])]
}

fn packet(cpu: u32, begin: u64, sequence: u64, discarded: u64, events: &[Vec<u8>]) -> Vec<u8> {
    let events = events.concat();
    let head = 4 + 16 + 4 + 8 + 6 * 8 + 4;
    let content = (head + events.len()) as u64 * 8;
    let size = content.next_multiple_of(4096 * 8);
    let mut bytes = words(&[0xc1fc_1fc1]);
    bytes.extend([0; 16]);
    bytes.extend(words(&[0]));
    bytes.extend(longs(&[u64::from(cpu), begin, begin, content, size, sequence, discarded]));
    bytes.extend(words(&[cpu]));
    bytes.extend(events);
    bytes.resize(size as usize / 8, 0);
    bytes
}

/// The description in packets, as LTTng writes it.
fn description(release: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in DESCRIPTION.replace(RELEASE, release).as_bytes().chunks(1000) {
        let content = 37 + part.len();
        bytes.extend(words(&[0x75d1_1d57]));
        bytes.extend([0; 16]);
        bytes.extend(words(&[0, content as u32 * 8, 4096 * 8]));
        bytes.extend([0, 0, 0, 1, 8]);
        bytes.extend(part);
        bytes.resize(bytes.len().next_multiple_of(4096), 0);
    }
    bytes
}

/// The kernel of that description.
const RELEASE: &str = "6.1.0-18-amd64";

/// A trace of two CPUs.
fn made(folder: &Folder, streams: &[Vec<u8>]) -> std::path::PathBuf {
    made_by(RELEASE, folder, streams)
}

fn made_by(release: &str, folder: &Folder, streams: &[Vec<u8>]) -> std::path::PathBuf {
    let kernel = folder.0.join("kernel");
    fs::create_dir_all(kernel.join("index")).expect("a folder");
    fs::write(kernel.join("metadata"), description(release)).expect("a file");
    fs::write(kernel.join("index/channel0_0.idx"), b"index").expect("a file");
    for (cpu, stream) in streams.iter().enumerate() {
        fs::write(kernel.join(format!("channel0_{cpu}")), stream).expect("a file");
    }
    folder.0.clone()
}

fn two_cpus() -> [Vec<u8>; 2] {
    let waking = |name: &str, tid: u32| [comm(name), words(&[tid, 20, 1])];
    let late = 1 << 27;
    let first = packet(
        0,
        late - 10,
        0,
        0,
        &[
            compact(0, late as u32 - 5, &switch(("swapper/0", 0), 0, ("worker", 7))),
            // The low bits begin again.
            extended(40, late + 1, &waking("other", 8)),
            compact(0, 10, &switch(("worker", 7), 256, ("other", 8))),
        ],
    );
    let second = packet(0, late + 100, 1, 3, &[compact(0, 200, &switch(("other", 8), 1, ("swapper/0", 0)))]);
    let timer = [words(&[2]), vec![1, 0, 2, 0], b"tick\0".to_vec()];
    let other = packet(1, late, 5, 0, &[extended(2, late + 4, &timer)]);
    let after_gap = packet(1, late + 50, 7, 0, &[extended(2, late + 60, &timer)]);
    [[first, second].concat(), [other, after_gap].concat()]
}

#[test]
fn what_lttng_writes_is_read() {
    let folder = Folder::new("ctf-lttng");
    let trace = made(&folder, &two_cpus());
    assert!(is_trace_folder(&trace));
    let (events, stats) = read(&trace).expect("a trace");
    let told: Vec<String> = events
        .iter()
        .map(|kept| {
            let event = &kept.event;
            format!(
                "{} [{}] {} {} {}",
                event.time.0,
                event.cpu,
                event.context.pid,
                event.kind.name(),
                kept.text
            )
        })
        .collect();
    // Two ns a tick.
    let at = |ticks: i64| ((1_i64 << 27) + ticks) * 2;
    let expected = [
        format!("{} [0] 0 sched_switch ", at(-5)),
        format!("{} [0] 7 sched_waking ", at(1)),
        format!("{} [1] -1 tracing_mark_write list_length=2 name=tick", at(4)),
        format!("{} [0] 7 sched_switch ", at(10)),
        format!("{} [1] -1 lost_events ", at(60)),
        format!("{} [1] -1 tracing_mark_write list_length=2 name=tick", at(60)),
        format!("{} [0] -1 lost_events ", at(200)),
        format!("{} [0] 8 sched_switch ", at(200)),
    ];
    let expected: Vec<String> =
        expected.iter().map(|line| line.replace("tracing_mark_write", events[2].event.kind.name())).collect();
    assert_eq!(told, expected);
    assert_eq!(events[2].name, "timer_start");
    let EventKind::SchedSwitch(switch) = events[3].event.kind else { panic!("a switch") };
    assert_eq!(
        (switch.prev_prio.0, switch.prev_state.to_string(), switch.next_pid),
        (120, "R+".to_string(), Pid(8))
    );
    let EventKind::Lost { count } = events[6].event.kind else { panic!("a hole") };
    assert_eq!((count, stats.count(Trouble::LostEvents)), (Some(3), 4));
}

#[test]
fn what_is_no_trace_is_told_in_a_line() {
    let error = |folder: &Path| {
        let error = read(folder).expect_err("no trace").to_string();
        assert!(!error.contains('\n'), "{error}");
        error
    };
    let folder = Folder::new("ctf-wrong");
    let trace = made(&folder, &two_cpus());
    let file = |name: &str| trace.join("kernel").join(name);
    assert!(error(&file("channel0_0")).contains("give the folder that has its metadata"));
    assert!(error(&file("metadata")).contains("give the folder that has its metadata"));
    let clockless = DESCRIPTION.lines().filter(|line| !line.starts_with("clock {")).collect::<Vec<_>>();
    assert_eq!(clockless.len() + 1, DESCRIPTION.lines().count());
    fs::write(file("metadata"), clockless.join("\n")).expect("a file");
    assert!(error(&trace).contains("describes no clock"));
    fs::write(file("metadata"), DESCRIPTION).expect("a file");
    fs::write(file("channel0_0"), vec![7; 4096]).expect("a file");
    assert!(error(&trace).contains("channel0_0: no packet that the description fits stands at byte 0"));
    fs::write(file("metadata"), "/* CTF 1.8 */\ntrace { foo };").expect("a file");
    assert!(error(&trace).contains("line 2: '}' stands where '=' is expected"));
    fs::write(file("metadata"), "/* CTF 1.8 */\nevent { name = x; };").expect("a file");
    assert!(error(&trace).contains("describes no events of the scheduler"));
    fs::write(file("metadata"), "\u{1e}{\"type\": \"preamble\"}").expect("a file");
    assert!(error(&trace).contains("fragment 1: no preamble of version 2"));
}

/// Nothing that files may hold ends in a panic.
#[test]
fn damaged_traces_are_read_as_far_as_they_go() {
    let folder = Folder::new("ctf-damaged");
    let [first, second] = two_cpus();
    let mut random = Random::new(3);
    let mut told = 0;
    for _ in 0..300 {
        let mut damaged = first.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(300);
            damaged[at] ^= 1 << random.below(8);
        }
        damaged.truncate(damaged.len() - random.below(2) * random.below(4000));
        let trace = made(&folder, &[damaged, second.clone()]);
        if random.chance(4) {
            let mut text = description(RELEASE);
            let at = random.below(text.len());
            text[at] ^= 1 << random.below(8);
            fs::write(trace.join("kernel/metadata"), text).expect("a file");
        }
        told += u32::from(read(&trace).map_or(true, |(_, stats)| !stats.troubles().is_empty()));
    }
    assert!(told > 100, "{told}");
}

#[test]
fn states_are_those_of_the_kernel() {
    for (release, numbers, letters, doubtful) in [
        ("3.8.13", [512, 16, 1], ["R+", "Z", "S"], 0),
        ("3.10.0-lttng", [1024, 512, 1], ["R+", "P", "S"], 0),
        ("4.4.0-21-generic", [2048, 32, 1], ["R+", "X", "S"], 0),
        ("4.13.0", [4096, 64, 1], ["R+", "x", "S"], 0),
        ("4.14.0", [256, 32, 1], ["R+", "Z", "S"], 0),
        ("", [4096, 32, 2048], ["R+", "Z", "R+"], 1),
    ] {
        let folder = Folder::new(&format!("ctf-states-{}", release.len()));
        let switches: Vec<Vec<u8>> = (1..)
            .zip(numbers)
            .map(|(ticks, state)| compact(0, ticks, &switch(("a", 7), state, ("b", 8))))
            .collect();
        let trace = made_by(release, &folder, &[packet(0, 0, 0, 0, &switches)]);
        let (events, stats) = read(&trace).expect("a trace");
        let states: Vec<String> = events
            .iter()
            .map(|kept| match kept.event.kind {
                EventKind::SchedSwitch(switch) => switch.prev_state.to_string(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(states, letters, "{release}");
        assert_eq!(stats.count(Trouble::NumberedState), doubtful, "{release}");
    }
}
