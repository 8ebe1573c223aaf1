//! What the writer writes, the reader reads back unchanged; and the form is that of tracefs.

use std::io;

use fairlab_event::{Comm, Context, Cpu, Event, EventKind, Flags, Ns, Pid, Sink, TextFields};
use fairlab_trace::ftrace_text::{FtraceTextWriter, TextWriteOptions};
use fairlab_trace::{Trouble, read_path};

use crate::kept::{Kept, read_recording, read_text, testdata};
use crate::random::Random;

fn written(events: &[Kept], options: TextWriteOptions) -> (Vec<u8>, u64) {
    let mut writer = FtraceTextWriter::with_options(Vec::new(), options);
    for event in events {
        event.replay(&mut writer);
    }
    let altered = writer.losses().events();
    (writer.finish().expect("memory takes everything"), altered)
}

#[test]
fn random_events_come_back_unchanged() {
    for seed in 1..400 {
        let mut random = Random::new(seed);
        let events: Vec<Kept> = (0..100).map(|_| random.event()).collect();
        let (text, altered) = written(&events, TextWriteOptions::default());
        assert_eq!(altered, 0, "seed {seed}");
        let (back, _) = read_text(&text);
        for (index, (event, back)) in events.iter().zip(&back).enumerate() {
            assert_eq!(event, back, "seed {seed}, event {index}, in:\n{}", String::from_utf8_lossy(&text));
        }
        assert_eq!(events.len(), back.len(), "seed {seed}");
    }
}

#[test]
fn without_the_column_only_thread_groups_are_lost() {
    for seed in 1..50 {
        let mut random = Random::new(seed);
        let mut events: Vec<Kept> = (0..100).map(|_| random.event()).collect();
        let (text, altered) = written(&events, TextWriteOptions { tgid: false });
        let with_tgid = |event: &&mut Kept| event.event.context.tgid != Pid::UNKNOWN;
        assert_eq!(altered, events.iter_mut().filter(with_tgid).count() as u64, "seed {seed}");
        for event in &mut events {
            event.event.context.tgid = Pid::UNKNOWN;
        }
        let (back, _) = read_text(&text);
        // Lost events whose only context was a thread group lose that, and with it their own line.
        assert_eq!(events, back, "seed {seed}");
    }
}

#[test]
fn recordings_come_back_unchanged() {
    for name in ["ftrace-6.18-hackbench.txt.zst", "ftrace-7.2-probed.txt.zst", "eevdf-vhost.mail.txt"] {
        let (events, _) = read_recording(name);
        let (text, altered) = written(&events, TextWriteOptions::default());
        let (back, stats) = read_text(&text);
        assert_eq!((altered, stats.worst()), (0, None), "{name}");
        assert!(events == back, "{name}");
    }
}

/// Apart from its stamps' three more digits and its header, the text is what the kernel wrote.
#[test]
fn the_form_is_the_kernels_to_the_byte() {
    let mut writer = FtraceTextWriter::new(Vec::new());
    let options = fairlab_trace::ReadOptions::default();
    read_path(&testdata("ftrace-6.18-hackbench.txt.zst"), &options, &mut writer).expect("a trace");
    let ours = String::from_utf8(writer.finish().expect("memory takes everything")).expect("text");
    let kernels =
        zstd::decode_all(std::fs::File::open(testdata("ftrace-6.18-hackbench.txt.zst")).expect("a file"))
            .expect("a zstd stream");
    let kernels = String::from_utf8(kernels).expect("text");
    let lines = |text: &str| {
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_string).collect::<Vec<_>>()
    };
    let (ours, kernels) = (lines(&ours), lines(&kernels));
    assert_eq!(ours.len(), kernels.len());
    for (ours, kernels) in ours.iter().zip(&kernels) {
        assert_eq!(&ours.replacen("000: ", ": ", 1), kernels);
    }
}

#[test]
fn the_text_is_what_a_kernel_developer_expects() {
    let context =
        Context { comm: Comm::from("bash"), pid: Pid(15487), tgid: Pid(15487), flags: Flags::new(b"d..2.") };
    let at = |time, cpu, context, kind| Event { time: Ns(time), cpu: Cpu(cpu), context, kind };
    let other = |name, text| EventKind::Other { name, fields: TextFields::new(text) };
    let mut writer = FtraceTextWriter::new(Vec::new());
    for event in [
        at(1_555_069_808_001, 0, context, other("cpu_idle", "state=1 cpu_id=0")),
        at(1_555_069_808_001, 12, Context::default(), EventKind::Lost { count: Some(7) }),
        at(1_555_069_808_002, 12, Context::default(), EventKind::Lost { count: None }),
        at(1_555_069_808_003, 1, context, other("sys_close", "(fd: 3)")),
        at(1_555_069_808_004, 1, context, other("sys_close", "-> 0x0")),
        at(
            1_555_069_808_005,
            1,
            Context { flags: Flags::NONE, ..context },
            EventKind::Marker { text: "hello" },
        ),
        at(0, 1, context, EventKind::TaskStart { pid: Pid(2), tgid: Pid(1), parent_pid: Pid(-1) }),
    ] {
        writer.event(&event);
    }
    assert_eq!(writer.losses().events(), 0);
    let text = String::from_utf8(writer.finish().expect("memory takes everything")).expect("text");
    let (header, body) = text.split_at(text.find("   bash").expect("a line") - 9);
    assert!(header.starts_with("# tracer: nop\n#\n") && header.contains("TGID    CPU#"));
    let expected = "            \
            bash-15487   (  15487) [000] d..2.  1555.069808001: cpu_idle: state=1 cpu_id=0
CPU:12 [LOST 7 EVENTS]
#!           <...>-4294967295 (-------) [012]  1555.069808002: lost_events: 
            bash-15487   (  15487) [001] d..2.  1555.069808003: sys_close(fd: 3)
            bash-15487   (  15487) [001] d..2.  1555.069808004: sys_close -> 0x0
            bash-15487   (  15487) [001]  1555.069808005: tracing_mark_write: hello
#!            bash-15487   (  15487) [001] d..2.     0.000000000: task_start: pid=2 tgid=1 parent_pid=-1
";
    assert_eq!(body, expected);
}

#[test]
fn what_the_text_cannot_hold_is_counted() {
    let altered = |context: Context, kind: EventKind<'_>| {
        let mut writer = FtraceTextWriter::new(Vec::new());
        writer.event(&Event { time: Ns(1), cpu: Cpu(0), context, kind });
        let altered = writer.losses().events();
        let text = writer.finish().expect("memory takes everything");
        let (back, stats) = read_text(&text);
        assert_eq!(back.len(), 1, "still one line: {}", String::from_utf8_lossy(&text));
        assert_eq!(stats.count(Trouble::ForeignLine), 0);
        let same = back[0] == Kept::of(&Event { time: Ns(1), cpu: Cpu(0), context, kind });
        assert_ne!(
            altered == 1,
            same,
            "counted if and only if it differs: {}",
            String::from_utf8_lossy(&text)
        );
        altered
    };
    let named = |name: &str| Context { comm: Comm::from(name), ..Context::default() };
    let flagged = |flags: &[u8]| Context { flags: Flags::new(flags), ..Context::default() };
    let marker = |text| EventKind::Marker { text };
    let other = |name, text| EventKind::Other { name, fields: TextFields::new(text) };
    let probe = |name, text| EventKind::Kprobe { name, fields: TextFields::new(text) };
    let none = Context::default();
    for (context, kind) in [
        (named(" a"), marker("x")),
        (named("<...>"), marker("x")),
        (named("a\nb"), marker("x")),
        (flagged(b"d :."), marker("x")),
        (flagged(b"1..."), marker("x")),
        (none, marker("a\nb")),
        (none, marker("a\r")),
        (none, other("tracing_mark_write", "x")),
        (none, other("sched_place", "comm= pid=0 sev=1 sed=1 sel=0 avg=0 min=0 cpu=0 nr=0")),
        (none, other("two words", "x")),
        (none, other("a:b", "x")),
        (none, other("x", "(a+0x1/0x2) b=1")),
        (none, other("PERF_RECORD_LOST", " lost 3")),
        (none, other("", "name: text")),
        (none, probe("x", "a=1")),
        (none, EventKind::TaskName { pid: Pid(1), tgid: Pid(1), comm: Comm::from("a\nb") }),
    ] {
        assert_eq!(altered(context, kind), 1, "{context:?} {kind:?}");
    }
    for (context, kind) in [
        (named("a b"), marker("")),
        (named("#! x"), marker("  two blanks, in front and behind  ")),
        (flagged(b"d..2.1.x"), marker("a\rb")),
        (none, other("sched_place", "comm= pid=what")),
        (none, other("", "<stack trace>")),
    ] {
        assert_eq!(altered(context, kind), 0, "{context:?} {kind:?}");
    }
}

/// Takes so many bytes and no more.
struct Full(usize);

impl io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_output_that_fails_is_told_at_the_end() {
    let event = Event::new(Ns(1), Cpu(0), EventKind::Marker { text: "x" });
    let mut writer = FtraceTextWriter::new(Full(100_000));
    for _ in 0..10_000 {
        writer.event(&event);
    }
    let error = writer.finish().map(|_| ()).expect_err("a full disk");
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert!(FtraceTextWriter::new(Full(100_000)).finish().is_ok());
}
