//! How the time of each reader and each answer grows with a trace.
//!
//! `cargo bench -p fairlab-cli --bench growth` makes traces of some events and of four times as many, and prints the exponent: 1 is
//! time in proportion to the events, 2 is four times as much for each. There are two cases: few tasks that wake each other, and
//! tasks that are all woken before the first of them runs, so that there are half as many as events.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use fairlab_analysis::causes::Causes;
use fairlab_analysis::explain::{Explain, ExplainOptions};
use fairlab_analysis::latency::{Latency, LatencyOptions};
use fairlab_analysis::summary::{SummaryOptions, TraceSummary};
use fairlab_analysis::timehist::{Timehist, TimehistOptions, TimehistRow};
use fairlab_event::{
    Comm, Context, Cpu, Event, EventKind, Flags, Ns, Pid, Prio, Sink, Switch, TaskState, Wakeup,
};
use fairlab_page::timeline::{TimelineRecorder, TraceDescription};
use fairlab_trace::{OutputFormat, ReadOptions, TraceWriter, read_path};

/// The shorter trace of each case.
const EVENTS: usize = 100_000;
/// How much longer the other is.
const TIMES: usize = 4;
/// The best of so many rounds counts: what disturbs one only makes it slower.
const ROUNDS: usize = 3;
const CPUS: u32 = 8;

#[derive(Clone, Copy, Debug)]
enum GrowthCase {
    /// Sixty-four tasks sleep and are woken in turn.
    FewTasks,
    /// All tasks are woken, then each runs once.
    AllWait,
}

impl GrowthCase {
    const fn name(self) -> &'static str {
        match self {
            GrowthCase::FewTasks => "64 tasks",
            GrowthCase::AllWait => "all wait",
        }
    }

    fn events(self, count: usize) -> Vec<Event<'static>> {
        let tasks = match self {
            GrowthCase::FewTasks => 64,
            GrowthCase::AllWait => count / 2,
        };
        let mut running = [Pid(0); CPUS as usize];
        let mut events = Vec::with_capacity(count);
        let mut now = 1_000_000;
        let turns = count / (2 * tasks);
        for _ in 0..turns {
            for task in 0..tasks {
                now += 1_000;
                events.push(waking(Ns(now), task));
            }
            for task in 0..tasks {
                now += 1_000;
                let (cpu, next) = (cpu_of(task), pid_of(task));
                let prev = std::mem::replace(&mut running[cpu.index()], next);
                events.push(switch(Ns(now), cpu, prev, next));
            }
        }
        events
    }
}

fn pid_of(task: usize) -> Pid {
    Pid(1000 + task as i32)
}

fn cpu_of(task: usize) -> Cpu {
    Cpu(task as u32 % CPUS)
}

fn comm_of(pid: Pid) -> Comm {
    if pid.is_idle() { "swapper".into() } else { format!("task-{}", pid.0).as_str().into() }
}

fn context(pid: Pid) -> Context {
    Context { comm: comm_of(pid), pid, tgid: pid, flags: Flags::new(b"d..2.") }
}

fn waking(time: Ns, task: usize) -> Event<'static> {
    let pid = pid_of(task);
    let wakeup = Wakeup { comm: comm_of(pid), pid, prio: Prio(120), target_cpu: cpu_of(task) };
    Event { context: context(Pid(0)), ..Event::new(time, cpu_of(task), EventKind::SchedWaking(wakeup)) }
}

fn switch(time: Ns, cpu: Cpu, prev: Pid, next: Pid) -> Event<'static> {
    let prev_state = if prev.is_idle() { TaskState::RUNNABLE } else { TaskState::INTERRUPTIBLE };
    let switch = Switch {
        prev_comm: comm_of(prev),
        prev_pid: prev,
        prev_prio: Prio(120),
        prev_state,
        next_comm: comm_of(next),
        next_pid: next,
        next_prio: Prio(120),
    };
    Event { context: context(prev), ..Event::new(time, cpu, EventKind::SchedSwitch(switch)) }
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Seconds of the best round.
fn seconds(work: &dyn Fn()) -> f64 {
    let round = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

/// Prints how long something takes for the shorter trace and the longer one, and how it grows.
fn row(what: &str, case: &str, [short, long]: [f64; 2]) {
    let exponent = (long / short).ln() / (TIMES as f64).ln();
    println!("{what:<12} {case:<10} {:>9.1} ms {:>9.1} ms {exponent:>6.2}", short * 1e3, long * 1e3);
}

fn feed(events: &[Event<'_>], sink: &mut dyn Sink) {
    events.iter().for_each(|event| sink.event(event));
}

/// An answer's name, and the work that it is.
type Answer = (&'static str, fn(&[Event<'_>]));

const ANSWERS: [Answer; 6] = [
    ("latency", |events| {
        let mut latency = Latency::new(LatencyOptions::default());
        feed(events, &mut latency);
        drop(latency.finish().expect("switches").to_string());
    }),
    ("timehist", |events| {
        let mut rows = 0;
        let mut timehist = Timehist::new(TimehistOptions::default(), |_: &TimehistRow| rows += 1);
        feed(events, &mut timehist);
        drop(timehist);
        assert!(rows > 0);
    }),
    ("summary", |events| {
        let mut summary = TraceSummary::new(SummaryOptions::default());
        feed(events, &mut summary);
        assert!(summary.finish().expect("switches").tasks.len() > 1);
    }),
    ("explain", |events| {
        let mut explain = Explain::new(ExplainOptions::default());
        feed(events, &mut explain);
        assert!(!explain.finish().expect("switches").stories.is_empty());
    }),
    ("causes", |events| {
        let mut causes = Causes::new();
        feed(events, &mut causes);
    }),
    ("view", |events| {
        let mut recorder = TimelineRecorder::default();
        feed(events, &mut recorder);
        drop(recorder.finish().expect("switches").data(&TraceDescription::default(), 17 << 20));
    }),
];

fn readers(folder: &Path, case: GrowthCase, traces: &[Vec<Event<'static>>; 2]) {
    for format in OutputFormat::ALL {
        let files = [0, 1].map(|place| {
            let mut writer = TraceWriter::new(format, Vec::new());
            feed(&traces[place], &mut writer);
            let path = folder.join(format!("{}-{place}", format.name()));
            std::fs::write(&path, writer.finish().expect("a buffer")).expect("written");
            path
        });
        let read = |path: &Path| drop(read_path(path, &ReadOptions::default(), &mut ()).expect("a trace"));
        row(format.name(), case.name(), files.map(|path| seconds(&|| read(&path))));
    }
}

/// `verify` of runs of a model, the second of which is about four times as long.
fn verify(folder: &Path) {
    let fairlab = |words: &[&str]| {
        let status = Command::new(env!("CARGO_BIN_EXE_fairlab"))
            .args(words)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(status.expect("the program starts").success(), "{words:?}");
    };
    let machine = ["--kernel", "v6.12", "--machine", "vm4"];
    let times = ["15", "60"].map(|loops| {
        let file = folder.join(format!("verify-{loops}.txt"));
        let file = file.to_str().expect("a path in UTF-8");
        fairlab(&[&["run", "hackbench", "-g", "4", "-l", loops, "--trace", file], &machine[..]].concat());
        seconds(&|| fairlab(&[&["verify", file], &machine[..]].concat()))
    });
    row("verify", "hackbench", times);
}

fn main() {
    let folder = Folder(std::env::temp_dir().join(format!("fairlab-growth-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).expect("a folder");
    println!("{:<12} {:<10} {EVENTS:>9} ev {:>9} ev {:>6}", "", "", TIMES * EVENTS, "exp.");
    for case in [GrowthCase::FewTasks, GrowthCase::AllWait] {
        let traces = [EVENTS, TIMES * EVENTS].map(|count| case.events(count));
        readers(&folder.0, case, &traces);
        for (name, answer) in ANSWERS {
            row(name, case.name(), [0, 1].map(|place| seconds(&|| answer(&traces[place]))));
        }
    }
    verify(&folder.0);
}
