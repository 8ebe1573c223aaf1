//! The real trace-cmd opens our files and prints what our text says; we open what it converts.

use std::path::{Path, PathBuf};
use std::process::Command;

use fairlab_event::{Context, Cpu, Event, EventKind, Flags, Ns, Pid, Sink, TextFields, sink_fn};
use fairlab_trace::ftrace_text::{self, FtraceTextWriter};
use fairlab_trace::tracedat::TraceDatCompression;
use fairlab_trace::{ReadOptions, read_path};

use super::made::{BOTH, RECORDING, converted, events, recording, written};
use crate::kept::{Kept, options_of, read_recording, testdata};
use crate::random::Random;

/// A folder of one test, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fairlab-tracedat-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).expect("a file for the test");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What `trace-cmd` prints; it must succeed and complain of nothing.
fn trace_cmd(arguments: &[&str]) -> String {
    let output = Command::new("trace-cmd")
        .args(arguments)
        .output()
        .expect("trace-cmd is missing; cure: apt-get install trace-cmd");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "trace-cmd {arguments:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The lines of `trace-cmd report`, blanks made one, without the head.
fn report(path: &Path, options: &[&str]) -> Vec<String> {
    let path = path.to_str().expect("a path of plain text");
    let text = trace_cmd(&[&["report"], options, &[path]].concat());
    let lines = text.lines().filter(|line| !line.starts_with("cpus="));
    lines.map(one_blank).collect()
}

pub fn one_blank(line: &str) -> String {
    line.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// What our text of a trace says, in the form of `trace-cmd report`: no flags, no thread groups, and a name for text
/// from user space that says where it came from.
pub fn our_lines(replay: impl FnOnce(&mut dyn Sink)) -> Vec<String> {
    let options = ftrace_text::TextWriteOptions { tgid: false };
    let mut writer = FtraceTextWriter::with_options(Vec::new(), options);
    let mut plain = sink_fn(|event: &Event<'_>| {
        let context = Context { flags: Flags::NONE, ..event.context };
        writer.event(&Event { context, ..*event });
    });
    replay(&mut plain);
    drop(plain);
    let text = String::from_utf8_lossy(&writer.finish().expect("memory takes everything")).into_owned();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| one_blank(&line.replacen(": tracing_mark_write: ", ": print: tracing_mark_write: ", 1)))
        .collect()
}

/// Time and CPU of a line. trace-cmd prints events of the same time in the order of their CPUs.
fn time_and_cpu(line: &str) -> Option<(&str, &str)> {
    let (before, rest) = line.split_once("] ")?;
    Some((rest.split_once(": ")?.0, before.rsplit_once('[')?.1))
}

#[track_caller]
pub fn assert_same(reported: &[String], ours: &[String], what: &str) {
    let mut ours = ours.to_vec();
    for same_time in ours.chunk_by_mut(|one, other| {
        time_and_cpu(one).is_some_and(|(time, _)| time_and_cpu(other).is_some_and(|(other, _)| time == other))
    }) {
        same_time.sort_by(|one, other| time_and_cpu(one).cmp(&time_and_cpu(other)));
    }
    for (reported, ours) in reported.iter().zip(&ours) {
        assert_eq!(reported, ours, "{what}");
    }
    assert_eq!(reported.len(), ours.len(), "{what}");
}

#[test]
fn trace_cmd_prints_of_our_files_what_our_text_says() {
    let folder = Folder::new("print");
    for name in [
        RECORDING,
        "ftrace-6.18-rtapp.txt.xz",
        "ftrace-5.10-forkstorm.txt.gz",
        "ftrace-6.6-vhost.txt.zst",
        "ftrace-7.2-probed.txt.zst",
    ] {
        let ours = our_lines(|sink| {
            read_path(&testdata(name), &options_of(name), sink).expect("a recording");
        });
        assert!(ours.len() >= 3000, "{name}: {}", ours.len());
        for compression in BOTH {
            let (bytes, altered) = converted(name, compression);
            assert_eq!(altered, 0, "{name}");
            let path = folder.file("ours.dat", &bytes);
            let what = format!("{name} {compression:?}");
            assert_same(&report(&path, &["-N", "-t"]), &ours, &what);
            assert_eq!(report(&path, &[]).len(), ours.len(), "{what} with plugins");
        }
    }
}

#[test]
fn trace_cmd_prints_the_same_of_the_recording_and_of_our_copy() {
    let folder = Folder::new("copy");
    let original = report(&testdata(RECORDING), &["-N", "-t"]);
    assert_eq!(original.len(), 31_520);
    for compression in BOTH {
        let (bytes, _) = converted(RECORDING, compression);
        let copy = report(&folder.file("copy.dat", &bytes), &["-N", "-t"]);
        assert_same(&copy, &original, "copy");
    }
    // With the flags that newer versions print by default.
    let (bytes, _) = converted(RECORDING, TraceDatCompression::None);
    let copy = folder.file("copy.dat", &bytes);
    let options = ["-N", "-t", "-l"];
    assert_same(&report(&copy, &options), &report(&testdata(RECORDING), &options), "copy with flags");
}

#[test]
fn what_trace_cmd_converts_says_the_same() {
    let folder = Folder::new("convert");
    let (original, _) = read_recording(RECORDING);
    let source = testdata(RECORDING);
    for (number, options) in [
        &["--file-version", "6"][..],
        &["--file-version", "7", "--compression", "none"],
        &["--file-version", "7", "--compression", "zstd"],
    ]
    .into_iter()
    .enumerate()
    {
        let target = folder.0.join(format!("{number}.dat"));
        let (source, target) = (source.to_str().expect("plain text"), target.to_str().expect("plain text"));
        trace_cmd(&[&["convert", "-i", source, "-o", target], options].concat());
        let (back, stats) = events(&std::fs::read(target).expect("a file"));
        assert_eq!(stats.worst(), None, "{options:?}");
        assert!(original == back, "{options:?}");
    }
}

#[test]
fn what_trace_cmd_splits_off_says_the_same() {
    let folder = Folder::new("split");
    let (original, _) = read_recording(RECORDING);
    let (source, target) = (testdata(RECORDING), folder.0.join("part"));
    let (source, target) = (source.to_str().expect("plain text"), target.to_str().expect("plain text"));
    trace_cmd(&["split", "-i", source, "-o", target, "-c"]);
    let (back, stats) = events(&std::fs::read(format!("{target}.1")).expect("a file"));
    assert_eq!(stats.worst(), None);
    assert!(original == back);
}

#[test]
fn trace_cmd_converts_our_files() {
    let folder = Folder::new("ours");
    let (original, _) = events(&recording());
    for (from, options) in [
        (TraceDatCompression::None, &["--file-version", "7", "--compression", "zstd"][..]),
        (TraceDatCompression::Zstd, &["--file-version", "6"]),
    ] {
        let (bytes, _) = converted(RECORDING, from);
        let (source, target) = (folder.file("from.dat", &bytes), folder.0.join("to.dat"));
        let (source, target) = (source.to_str().expect("plain text"), target.to_str().expect("plain text"));
        trace_cmd(&[&["convert", "-i", source, "-o", target], options].concat());
        let (back, stats) = events(&std::fs::read(target).expect("a file"));
        assert_eq!(stats.worst(), None, "{from:?}");
        let plain = |events: &[Kept]| -> Vec<Kept> {
            events.iter().filter(|kept| !kept.event.kind.is_task_record()).cloned().collect()
        };
        assert!(plain(&original) == plain(&back), "{from:?}");
    }
}

#[test]
fn trace_cmd_tells_lost_events_and_those_of_fairlabs_own() {
    let context = Context { pid: Pid(7), flags: Flags::new(b"....."), ..Context::default() };
    let mut all = Vec::new();
    for (time, cpu, context, kind) in [
        (10, 0, context, EventKind::Marker { text: "first" }),
        (20, 0, Context::default(), EventKind::Lost { count: Some(7) }),
        (20, 0, context, EventKind::Marker { text: "second" }),
        (30, 1, Context::default(), EventKind::Lost { count: None }),
        (
            30,
            1,
            context,
            EventKind::Other { name: "tick_stop", fields: TextFields::new("success=1 dependency=NONE") },
        ),
        (40, 1, Context { flags: Flags::NONE, ..context }, EventKind::TaskExit { pid: Pid(7), tgid: Pid(6) }),
    ] {
        all.push(Kept::of(&Event { time: Ns(time), cpu: Cpu(cpu), context, kind }));
    }
    let folder = Folder::new("lost");
    for compression in BOTH {
        let (bytes, altered) = written(&all, compression);
        assert_eq!((altered, events(&bytes).0 == all), (0, true));
        let lines = report(&folder.file("lost.dat", &bytes), &["-N", "-t"]);
        let expected = [
            "<...>-7 [000] 0.000000010: print: tracing_mark_write: first",
            "CPU:0 [7 EVENTS DROPPED]",
            "<...>-7 [000] 0.000000020: print: tracing_mark_write: second",
            "CPU:1 [EVENTS DROPPED]",
            "<...>-7 [001] 0.000000030: tick_stop: success=1 dependency=NONE",
            "<...>-7 [001] 0.000000040: task_exit: pid=7 tgid=6",
        ];
        assert_eq!(lines, expected);
    }
}

/// Whether no CPU is one that an `int` cannot hold: such are printed with a sign.
fn has_cpus_of_a_kernel(kind: &EventKind<'_>) -> bool {
    let cpus = match kind {
        EventKind::SchedWaking(w) | EventKind::SchedWakeup(w) | EventKind::SchedWakeupNew(w) => {
            [w.target_cpu; 2]
        }
        EventKind::SchedMigrateTask { orig_cpu, dest_cpu, .. } => [*orig_cpu, *dest_cpu],
        EventKind::SchedPlace(place) => [place.cpu; 2],
        _ => return true,
    };
    cpus.iter().all(|cpu| i32::try_from(cpu.0).is_ok())
}

/// Random names and numbers: trace-cmd reads each record by our descriptions and prints what we print.
#[test]
fn trace_cmd_reads_every_kind_of_record() {
    let folder = Folder::new("kinds");
    for seed in 1..6 {
        let mut random = Random::new(seed);
        let mut all = Vec::new();
        while all.len() < 300 {
            let mut kept = random.event();
            let plain = has_cpus_of_a_kernel(&kept.event.kind)
                && kept.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                // Our text has system calls as calls.
                && !kept.name.starts_with("sys_")
                && !format!("{kept:?}").contains(['\\', '\u{1f980}'])
                && kept.text.is_ascii();
            let printed = !kept.event.kind.is_task_record()
                && !matches!(kept.event.kind, EventKind::Lost { .. } | EventKind::Marker { .. });
            if plain && printed {
                kept.event.time = Ns(all.len() as u64 * 1000);
                kept.event.cpu = Cpu(all.len() as u32 % 3);
                kept.event.context = Context { pid: Pid(9), flags: Flags::NONE, ..Context::default() };
                all.push(kept);
            }
        }
        let ours = our_lines(|sink| all.iter().for_each(|kept| kept.replay(sink)));
        let (bytes, altered) = written(&all, BOTH[seed as usize % 2]);
        assert_eq!(altered, 0, "seed {seed}");
        let path = folder.file("kinds.dat", &bytes);
        assert_same(&report(&path, &["-N", "-t"]), &ours, &format!("seed {seed}"));
    }
}

/// A file of ours with one more option, which takes the room of zeros in front of the records.
fn with_option(bytes: &[u8], number: u16, data: &[u8]) -> Vec<u8> {
    let option = [&number.to_le_bytes()[..], &(data.len() as u32).to_le_bytes(), data].concat();
    let find = |what: &[u8]| memchr::memmem::find(bytes, what).expect("a part of the file");
    let (options_at, table_at) = (find(b"options  \0") + 10, find(b"flyrecord\0") + 10);
    let records_at =
        u64::from_le_bytes(bytes[table_at..table_at + 8].try_into().expect("eight bytes")) as usize;
    let room = bytes[..records_at].iter().rev().take_while(|&&byte| byte == 0).count();
    assert!(room > option.len(), "room for {} bytes", option.len());
    let front = &bytes[options_at..records_at - option.len()];
    [&bytes[..options_at], &option, front, &bytes[records_at..]].concat()
}

/// Options that shift times: date (µs), offset (ns), a guest's time shift, ticks to nanoseconds.
#[test]
fn times_are_shifted_as_trace_cmd_does() {
    let folder = Folder::new("shift");
    let long = |values: &[u64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let word = |value: u32| value.to_le_bytes().to_vec();
    let one = [long(&[9]), word(0), word(1), word(1), long(&[5, 1_000_000, 1])].concat();
    let second = 1_555_080_000_000;
    let samples = [long(&[second, second * 2]), long(&[100, 7_000_000_000]), long(&[1, 1])].concat();
    let two = [long(&[9]), word(1), word(2), word(1), long(&[5, 0, 1]), word(2), samples].concat();
    let ticks = [word(3), word(2), long(&[0])].concat();
    let (bytes, _) = converted(RECORDING, TraceDatCompression::None);
    for (number, data) in [(1, &b"0x10\0"[..]), (7, b"-12345\0"), (12, &one), (12, &two), (14, &ticks)] {
        let shifted = with_option(&bytes, number, data);
        let path = folder.file("shifted.dat", &shifted);
        let reported = report(&path, &["-N", "-t"]);
        let ours = our_lines(|sink| {
            fairlab_trace::tracedat::read(&shifted[..], &ReadOptions::default(), sink)
                .map(|_| ())
                .expect("a trace.dat");
        });
        assert_same(&reported, &ours, &format!("option {number}"));
    }
}
