//! What the writer writes, the reader reads back unchanged.

use std::collections::HashMap;
use std::io;

use fairlab_event::{Comm, Context, Cpu, Event, EventKind, Flags, Ns, Pid, Sink, TextFields};
use fairlab_trace::tracedat::{TraceDatCompression, TraceDatWriter};
use fairlab_trace::{Severity, Trouble};

use super::made::{BOTH, converted, events, written};
use crate::kept::{Kept, read_recording};
use crate::random::Random;

/// Random events such as a trace.dat can hold: in the order of time, each task with the name that the trace gave it.
struct Trace {
    random: Random,
    time: u64,
    columns: usize,
    tasks: HashMap<Pid, (Comm, Option<Pid>)>,
}

/// The largest id that a kernel gives.
const PID_MAX: i32 = 1 << 22;

impl Trace {
    fn new(seed: u64) -> Trace {
        let mut random = Random::new(seed);
        let columns = [0, 4, 5][random.below(3)];
        Trace { random, time: 0, columns, tasks: HashMap::new() }
    }

    fn unnamed(pid: Pid) -> Comm {
        if pid.is_idle() { Comm::from("<idle>") } else { Comm::default() }
    }

    fn flags(&mut self) -> Flags {
        let all = [&b"d..2."[..], b"dNh1.", b"....a", b"DBZff", b"bns.1", b".pHa.", b".lz3b", b"dL.4."];
        Flags::new(&all[self.random.below(all.len())][..self.columns])
    }

    /// Moves on not at all, a little, or far.
    fn time(&mut self) -> Ns {
        let far = 1 << self.random.below(60);
        self.time += match self.random.below(8) {
            0 | 1 => 0,
            2 => self.random.next() % far,
            _ => self.random.next() % 5000,
        };
        self.time %= 1 << 62;
        Ns(self.time)
    }

    fn events(mut self, count: usize) -> Vec<Kept> {
        let mut events = Vec::new();
        while events.len() < count {
            let before = self.time;
            let mut kept = self.random.event();
            if !is_plain(&kept) {
                continue;
            }
            let time = self.time();
            if time.0 < before {
                // Far enough: time would go back.
                break;
            }
            let event = &mut kept.event;
            event.time = time;
            event.cpu = Cpu(event.cpu.0 % 24);
            event.context = self.context(event);
            events.push(kept);
        }
        events
    }

    fn context(&mut self, event: &Event<'_>) -> Context {
        if matches!(event.kind, EventKind::Lost { .. }) {
            return Context::default();
        }
        let Context { comm, pid, tgid, .. } = event.context;
        let pid = if self.random.chance(2) { Pid(self.random.below(20) as i32) } else { pid };
        let flags = if event.kind.is_task_record() { Flags::NONE } else { self.flags() };
        if !(0..=PID_MAX).contains(&pid.0) {
            self.renamed(event);
            return Context { pid, flags, ..Context::default() };
        }
        // A name in the beginning may be any; what the trace itself says comes first.
        let known =
            |tasks: &mut HashMap<Pid, (Comm, Option<Pid>)>, comm| tasks.entry(pid).or_insert((comm, None)).0;
        if !matches!(event.kind, EventKind::TaskName { pid: named, .. } | EventKind::TaskStart { pid: named, .. } if named == pid)
        {
            known(&mut self.tasks, comm);
        }
        self.renamed(event);
        let (comm, group) = self.tasks.entry(pid).or_insert((comm, None));
        Context { comm: *comm, pid, tgid: *group.get_or_insert(tgid), flags }
    }

    fn renamed(&mut self, event: &Event<'_>) {
        let (pid, comm) = match event.kind {
            EventKind::TaskName { pid, comm, .. } => (pid, comm),
            EventKind::TaskStart { pid, parent_pid, .. } => {
                let unnamed = Trace::unnamed(parent_pid);
                let comm = match (0..=PID_MAX).contains(&parent_pid.0) {
                    true => self.tasks.entry(parent_pid).or_insert((unnamed, None)).0,
                    false => unnamed,
                };
                (pid, comm)
            }
            _ => return,
        };
        if (0..=PID_MAX).contains(&pid.0) {
            self.tasks.entry(pid).or_insert((comm, None)).0 = comm;
        }
    }
}

/// Whether every tool can read the event's name.
fn is_plain(kept: &Kept) -> bool {
    kept.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[track_caller]
fn check(events_in: &[Kept], compression: TraceDatCompression, seed: u64) {
    let (bytes, altered) = written(events_in, compression);
    let (back, stats) = events(&bytes);
    for (index, (event, back)) in events_in.iter().zip(&back).enumerate() {
        assert_eq!(event, back, "seed {seed}, event {index}, {compression:?}");
    }
    assert_eq!((events_in.len(), altered), (back.len(), 0), "seed {seed}");
    let lost = |kept: &Kept| match kept.event.kind {
        EventKind::Lost { count } => count.unwrap_or(1),
        _ => 0,
    };
    assert_eq!(stats.count(Trouble::LostEvents), events_in.iter().map(lost).sum::<u64>(), "seed {seed}");
    let others = stats.troubles().iter().filter(|count| count.trouble != Trouble::LostEvents).count();
    assert_eq!(others, 0, "seed {seed}: {:?}", stats.troubles());
}

#[test]
fn random_events_come_back_unchanged() {
    for seed in 1..300 {
        check(&Trace::new(seed).events(120), BOTH[seed as usize % 2], seed);
    }
}

#[test]
fn long_traces_come_back_unchanged() {
    for seed in 1000..1004 {
        let trace = Trace::new(seed).events(20_000);
        assert!(trace.len() > 100, "{}", trace.len());
        check(&trace, BOTH[seed as usize % 2], seed);
    }
}

/// All of one time: nothing but the writer's own marks tells their order.
#[test]
fn events_of_one_time_keep_their_order_across_cpus() {
    for seed in 1..50 {
        let mut random = Random::new(seed);
        let cpus = 1 + random.below(9);
        let mut trace = Vec::new();
        for time in [5, 6, 6, 1 << 40] {
            for number in 0..random.below(60) {
                let text = format!("{time} {number}");
                let event =
                    Event::new(Ns(time), Cpu(random.below(cpus) as u32), EventKind::Marker { text: &text });
                let context = Context { flags: Flags::new(b"....."), ..Context::default() };
                trace.push(Kept::of(&Event { context, ..event }));
            }
        }
        check(&trace, BOTH[seed as usize % 2], seed);
    }
}

#[test]
fn recordings_come_back_unchanged() {
    for name in [
        "trace-cmd-3.1-hackbench.dat",
        "ftrace-6.18-hackbench.txt.zst",
        "ftrace-5.10-forkstorm.txt.gz",
        "ftrace-6.6-vhost.txt.zst",
        "ftrace-7.2-probed.txt.zst",
        "trace-cmd-3.1-hackbench-ns.txt.zst",
        "perf-make.data",
    ] {
        let (recorded, _) = read_recording(name);
        for compression in BOTH {
            let (bytes, altered) = converted(name, compression);
            let (back, stats) = events(&bytes);
            assert_eq!((altered, recorded.len()), (0, back.len()), "{name}");
            assert!(recorded == back, "{name} {compression:?}");
            assert!(stats.worst() < Some(Severity::Warning), "{name}: {:?}", stats.troubles());
        }
    }
}

#[test]
fn what_the_file_cannot_hold_is_counted() {
    let context = Context { comm: Comm::from("a"), pid: Pid(7), tgid: Pid(6), flags: Flags::new(b"d..2.") };
    let marker = EventKind::Marker { text: "x" };
    let long = "x".repeat(5000);
    let (group, name) = (Context { tgid: Pid(5), ..context }, Context { comm: Comm::from("b"), ..context });
    let flagged = |flags: &[u8]| Context { flags: Flags::new(flags), ..context };
    let other = |name, text| EventKind::Other { name, fields: TextFields::new(text) };
    for (time, context, kind) in [
        (20, group, marker),
        (20, name, marker),
        (20, flagged(b"d..2"), marker),
        (20, flagged(b"X..2."), marker),
        (20, flagged(b"d..2.1"), marker),
        (20, flagged(b""), marker),
        (20, Context { comm: Comm::from("a"), ..Context::default() }, marker),
        (20, context, EventKind::Marker { text: "line\n" }),
        (20, context, EventKind::Marker { text: "a\0b" }),
        (20, context, EventKind::Marker { text: &long }),
        (20, context, other("two words", "x")),
        (20, context, other("", "x")),
        (20, context, EventKind::Lost { count: None }),
        (20, context, EventKind::TaskExit { pid: Pid(7), tgid: Pid(7) }),
    ] {
        let first = Kept::of(&Event { time: Ns(10), cpu: Cpu(1), context: flagged(b"d..2."), kind: marker });
        let second = Kept::of(&Event { time: Ns(time), cpu: Cpu(0), context, kind });
        let (bytes, altered) = written([&first, &second], TraceDatCompression::None);
        let (back, _) = events(&bytes);
        assert_eq!((altered, back.len()), (1, 2), "{context:?} {kind:?}");
        assert_eq!(back[0], first);
        assert_ne!(back[1], second, "counted only where it differs");
    }
}

#[test]
fn events_that_come_late_are_put_in_order_and_counted() {
    let at = |time, cpu| Kept::of(&Event::new(Ns(time), Cpu(cpu), EventKind::Marker { text: "x" }));
    let (bytes, altered) = written(&[at(10, 0), at(5, 1), at(10, 1), at(11, 0)], TraceDatCompression::None);
    let (back, _) = events(&bytes);
    let times: Vec<(u64, u32)> = back.iter().map(|kept| (kept.event.time.0, kept.event.cpu.0)).collect();
    assert_eq!((altered, times), (1, vec![(5, 1), (10, 0), (10, 1), (11, 0)]));
}

#[test]
fn cpus_that_no_kernel_has_are_left_out_and_counted() {
    let at = |cpu| Kept::of(&Event::new(Ns(1), Cpu(cpu), EventKind::Marker { text: "x" }));
    let (bytes, altered) = written(&[at(8191), at(8192), at(u32::MAX)], TraceDatCompression::Zstd);
    let (back, _) = events(&bytes);
    assert_eq!((altered, back.len(), back[0].event.cpu), (2, 1, Cpu(8191)));
}

#[test]
fn no_events_make_a_file_without_events() {
    for compression in BOTH {
        let (bytes, altered) = written([], compression);
        let (back, stats) = events(&bytes);
        assert_eq!((altered, back.len(), stats.worst()), (0, 0, None));
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
    for (room, fits) in [(100, false), (9000, false), (1 << 20, true)] {
        let mut writer = TraceDatWriter::new(Full(room));
        for _ in 0..1000 {
            writer.event(&event);
        }
        assert_eq!(writer.finish().is_ok(), fits, "{room}");
    }
}
