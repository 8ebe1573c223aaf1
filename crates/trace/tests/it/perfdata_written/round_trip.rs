//! What the writer writes, the reader reads back unchanged.

use std::collections::HashMap;

use fairlab_event::{Comm, Context, Cpu, Event, EventKind, Flags, Ns, Pid, TextFields};
use fairlab_trace::perfdata::{self, PerfDataWriter};
use fairlab_trace::{ImportStats, LossKind, ReadOptions, Severity, Trouble, WriterLosses};

use crate::kept::{Keeper, Kept, read_recording};
use crate::random::Random;

fn events(bytes: &[u8]) -> (Vec<Kept>, ImportStats) {
    let mut keeper = Keeper::default();
    let stats = perfdata::read(bytes, &ReadOptions::default(), &mut keeper).expect("a perf.data");
    assert_eq!(stats.events, keeper.0.len() as u64);
    (keeper.0, stats)
}

pub fn written<'e>(events: impl IntoIterator<Item = &'e Kept>) -> (Vec<u8>, WriterLosses) {
    let mut writer = PerfDataWriter::new(Vec::new());
    for event in events {
        event.replay(&mut writer);
    }
    let losses = writer.losses().clone();
    (writer.finish().expect("memory takes everything"), losses)
}

/// Random events such as a perf.data can hold.
struct Trace {
    random: Random,
    time: u64,
    columns: usize,
    /// Names once known are not forgotten.
    comms: HashMap<Pid, Comm>,
}

/// The largest id that a kernel gives.
const PID_MAX: i32 = 1 << 22;

impl Trace {
    fn new(seed: u64) -> Trace {
        let mut random = Random::new(seed);
        let columns = [0, 4, 5][random.below(3)];
        Trace { random, time: 0, columns, comms: HashMap::new() }
    }

    fn time(&mut self) -> Ns {
        let far = 1 << self.random.below(50);
        self.time += match self.random.below(8) {
            0 | 1 => 0,
            2 => self.random.next() % far,
            _ => self.random.next() % 5000,
        };
        Ns(self.time)
    }

    fn events(mut self, count: usize) -> Vec<Kept> {
        let mut events = Vec::new();
        while events.len() < count {
            let mut kept = self.random.event();
            let plain = kept.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            let of_idle = matches!(
                kept.event.kind,
                EventKind::TaskName { pid: Pid(0), .. } | EventKind::TaskStart { pid: Pid(0), .. }
            );
            if !plain || of_idle {
                continue;
            }
            let event = &mut kept.event;
            event.time = self.time();
            event.cpu = Cpu(event.cpu.0 % 24);
            event.context = self.context(event);
            events.push(kept);
        }
        events
    }

    fn context(&mut self, event: &Event<'_>) -> Context {
        let Context { mut comm, tgid, pid, .. } = event.context;
        let pid = if self.random.chance(2) { Pid(self.random.below(20) as i32) } else { pid };
        let renamed = self.renamed(&event.kind);
        let known = self.comms.get(&pid).copied().unwrap_or_default();
        if renamed == Some(pid) || comm.is_empty() {
            comm = known;
        }
        if pid.is_idle() {
            comm = Comm::swapper(event.cpu);
        } else if (0..=PID_MAX).contains(&pid.0) {
            self.comms.insert(pid, comm);
        } else {
            comm = Comm::default();
        }
        let all = [&b"d..2."[..], b"dNh1.", b"....a", b"DBZff", b"bns.1", b".pHa.", b".lz3b", b"dL.4."];
        let of_record = event.kind.is_task_record() || matches!(event.kind, EventKind::Lost { .. });
        let columns = if of_record { 0 } else { self.columns };
        let flags = Flags::new(&all[self.random.below(all.len())][..columns]);
        Context { comm, pid, tgid, flags }
    }

    /// Whom the event gives a name.
    fn renamed(&mut self, kind: &EventKind<'_>) -> Option<Pid> {
        let (pid, comm) = match *kind {
            EventKind::TaskName { pid, comm, .. } => (pid, comm),
            EventKind::TaskStart { pid, parent_pid, .. } => {
                (pid, self.comms.get(&parent_pid).copied().unwrap_or_default())
            }
            _ => return None,
        };
        if (0..=PID_MAX).contains(&pid.0) {
            self.comms.insert(pid, comm);
        }
        Some(pid)
    }
}

#[track_caller]
fn check(events_in: &[Kept], what: &str) {
    let (bytes, losses) = written(events_in);
    let (back, stats) = events(&bytes);
    for (index, (event, back)) in events_in.iter().zip(&back).enumerate() {
        assert_eq!(event, back, "{what}, event {index}");
    }
    assert_eq!((events_in.len(), losses.events()), (back.len(), 0), "{what}: {losses}");
    let lost = |kept: &Kept| match kept.event.kind {
        EventKind::Lost { count } => count.unwrap_or(1),
        _ => 0,
    };
    assert_eq!(stats.count(Trouble::LostEvents), events_in.iter().map(lost).sum::<u64>(), "{what}");
    let worst = stats.troubles().iter().filter(|count| count.trouble != Trouble::LostEvents);
    let worst = worst.map(|count| count.trouble.severity()).max();
    assert!(worst <= Some(Severity::Info), "{what}: {:?}", stats.troubles());
}

#[test]
fn random_events_come_back_unchanged() {
    for seed in 1..300 {
        check(&Trace::new(seed).events(120), &format!("seed {seed}"));
    }
}

/// Several rounds.
#[test]
fn long_traces_come_back_unchanged() {
    for seed in 1000..1003 {
        check(&Trace::new(seed).events(40_000), &format!("seed {seed}"));
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
        "perf-6.1-hackbench.txt.zst",
        "perf-hackbench.data",
        "perf-make.data",
    ] {
        check(&read_recording(name).0, name);
    }
}

/// The copy of a copy is the copy: what is made up for perf's sake is not taken for the trace's own.
#[test]
fn copies_do_not_grow() {
    for name in ["ftrace-6.18-hackbench.txt.zst", "perf-make.data"] {
        let (first, _) = written(&read_recording(name).0);
        let (second, _) = written(&events(&first).0);
        assert!(first == second, "{name}");
    }
}

#[test]
fn what_the_file_cannot_hold_is_counted() {
    let context = Context { comm: Comm::from("a"), pid: Pid(7), tgid: Pid(6), flags: Flags::new(b"d..2.") };
    let marker = EventKind::Marker { text: "x" };
    let long = "x".repeat(50_000);
    let flagged = |flags: &[u8]| Context { flags: Flags::new(flags), ..context };
    let other = |name, text| EventKind::Other { name, fields: TextFields::new(text) };
    let of_task = EventKind::TaskExit { pid: Pid(7), tgid: Pid(7) };
    for (time, context, kind, loss) in [
        (20, Context { comm: Comm::default(), ..context }, marker, LossKind::Context),
        (20, Context { comm: Comm::from("a"), ..Context::default() }, marker, LossKind::Context),
        (20, Context { comm: Comm::from("b"), pid: Pid(0), ..context }, marker, LossKind::Context),
        (20, flagged(b"d..2"), marker, LossKind::Flags),
        (20, flagged(b"X..2."), marker, LossKind::Flags),
        (20, flagged(b""), marker, LossKind::Flags),
        (20, context, of_task, LossKind::Flags),
        (20, context, EventKind::Lost { count: None }, LossKind::Flags),
        (20, context, EventKind::Marker { text: "line\n" }, LossKind::Text),
        (20, context, EventKind::Marker { text: "a\0b" }, LossKind::Text),
        (20, context, EventKind::Marker { text: &long }, LossKind::Text),
        (20, context, other("two words", "x"), LossKind::Text),
        (20, context, other("", "x"), LossKind::Text),
        (5, context, EventKind::Marker { text: "late" }, LossKind::Order),
        (u64::MAX, context, marker, LossKind::Order),
    ] {
        let idle = Context { comm: Comm::from("<idle>"), pid: Pid(0), ..flagged(b"d..2.") };
        let first = [flagged(b"d..2."), idle]
            .map(|context| Kept::of(&Event { time: Ns(10), cpu: Cpu(0), context, kind: marker }));
        let last = Kept::of(&Event { time: Ns(time), cpu: Cpu(0), context, kind });
        let (bytes, losses) = written(first.iter().chain([&last]));
        let (back, _) = events(&bytes);
        assert_eq!((losses.events(), losses.count(loss), back.len()), (1, 1, 3), "{context:?} {losses}");
        assert_ne!(back[2], last, "counted only where it differs");
    }
}

#[test]
fn cpus_that_no_kernel_has_are_left_out_and_counted() {
    let at = |cpu| Kept::of(&Event::new(Ns(1), Cpu(cpu), EventKind::Marker { text: "x" }));
    let (bytes, losses) = written(&[at(8191), at(8192), at(u32::MAX)]);
    let (back, _) = events(&bytes);
    assert_eq!((losses.count(LossKind::LeftOut), back.len(), back[0].event.cpu), (2, 1, Cpu(8191)));
}
