//! Any events in any order: no analysis may fall over, and all must agree with one another.

use fairlab_analysis::explain::{Explain, ExplainOptions};
use fairlab_analysis::summary::{SummaryOptions, TraceSummary, text::SummaryText};
use fairlab_analysis::timehist::{Timehist, TimehistOptions, TimehistRow};
use fairlab_event::{
    Comm, Context, Cpu, Event, EventKind, Flags, Ns, Pid, Place, Prio, Sink, StatDelay, Switch, TaskState,
    TextFields, Wakeup,
};

/// A multiplicative generator: the same events for the same seed on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }

    fn pid(&mut self) -> Pid {
        Pid(self.pick(&[0, 1, 2, 3, 4, 5, 6, -1, i32::MAX]))
    }

    fn cpu(&mut self) -> Cpu {
        Cpu(self.pick(&[0, 1, 2, 3, 0, 1, 2, 8191, u32::MAX]))
    }

    fn comm(&mut self) -> Comm {
        Comm::from(self.pick(&["a", "b", "kworker/1:0", "migration/0", "", "migration/2", "ksoftirqd/3"]))
    }

    fn prio(&mut self) -> Prio {
        Prio(self.pick(&[120, 120, 120, 0, 99, -7, 139]))
    }

    fn number(&mut self) -> u64 {
        self.pick(&[0, 1, 1000, 5_000_000, u64::MAX, u64::MAX - 5, 1 << 63])
    }

    fn wakeup(&mut self) -> Wakeup {
        Wakeup { comm: self.comm(), pid: self.pid(), prio: self.prio(), target_cpu: self.cpu() }
    }

    fn state(&mut self) -> TaskState {
        TaskState::parse(self.pick(&["R", "R+", "S", "D", "Z", "X", "I", "D|K"]).as_bytes()).expect("a state")
    }

    fn kind(&mut self) -> EventKind<'static> {
        let delay = StatDelay { comm: self.comm(), pid: self.pid(), delay: Ns(self.number()) };
        let (comm, pid) = (self.comm(), self.pid());
        match self.below(20) {
            0..8 => EventKind::SchedSwitch(Switch {
                prev_comm: comm,
                prev_pid: pid,
                prev_prio: self.prio(),
                prev_state: self.state(),
                next_comm: self.comm(),
                next_pid: self.pid(),
                next_prio: self.prio(),
            }),
            8 | 9 => EventKind::SchedWaking(self.wakeup()),
            10 => EventKind::SchedWakeup(self.wakeup()),
            11 => EventKind::SchedWakeupNew(self.wakeup()),
            12 => {
                let (orig_cpu, dest_cpu) = (self.cpu(), self.cpu());
                EventKind::SchedMigrateTask { comm, pid, prio: self.prio(), orig_cpu, dest_cpu }
            }
            13 => {
                let vruntime = if self.below(2) == 0 { None } else { Some(self.number()) };
                EventKind::SchedStatRuntime { comm, pid, runtime: Ns(self.number()), vruntime }
            }
            14 => EventKind::SchedPlace(Place {
                comm,
                pid,
                sev: self.number(),
                sed: self.number(),
                sel: self.number() as i64,
                avg: self.number(),
                min: self.number(),
                cpu: self.cpu(),
                nr: self.below(3) as u32,
            }),
            15 => EventKind::Lost { count: None },
            16 => EventKind::SchedStatSleep(delay),
            17 => EventKind::Kprobe {
                name: "detach",
                fields: TextFields::new("(detach_tasks+0x0/0x1) src=1 dst=2 imb=-5 mt=9"),
            },
            18 => EventKind::Other {
                name: "sched_reweight",
                fields: TextFields::new("depth=0 weight=2->353 sed=1->1"),
            },
            _ => self.task_record(comm, pid),
        }
    }

    fn task_record(&mut self, comm: Comm, pid: Pid) -> EventKind<'static> {
        match self.below(4) {
            0 => EventKind::TaskName { pid, tgid: self.pid(), comm },
            1 => EventKind::TaskStart { pid, tgid: self.pid(), parent_pid: self.pid() },
            2 => EventKind::TaskExit { pid, tgid: self.pid() },
            _ => EventKind::SchedProcessFork { comm, pid, child_comm: self.comm(), child_pid: self.pid() },
        }
    }

    fn event(&mut self, time: &mut u64) -> Event<'static> {
        *time = match self.below(40) {
            0 => self.number(),
            _ => time.saturating_add(self.below(700_000)),
        };
        let flags = Flags::new(
            self.pick(&["d..2.", "dN.2.", "d.h1.", "dNh1.", "d.s2.", "d...", "", "dnH3."]).as_bytes(),
        );
        let context = Context { comm: self.comm(), pid: self.pid(), tgid: self.pid(), flags };
        Event { time: Ns(*time), cpu: self.cpu(), context, kind: self.kind() }
    }
}

#[test]
fn no_events_make_an_analysis_fall_over_and_all_agree() {
    let mut measured = 0;
    for seed in 0..300 {
        let mut random = Random(seed);
        let (mut summary, mut explain) = (
            TraceSummary::new(SummaryOptions {
                llcs: vec![vec![Cpu(0), Cpu(1)], vec![Cpu(2)]],
                nodes: Vec::new(),
                places: None,
            }),
            Explain::new(ExplainOptions::default()),
        );
        let mut listed = 0_u64;
        let options = TimehistOptions { wakeups: true, migrations: true, ..TimehistOptions::default() };
        let mut timehist = Timehist::new(options, |row: &TimehistRow| {
            listed += u64::from(matches!(row, TimehistRow::Switch(_)));
        });
        let (mut time, mut switches) = (0, 0);
        for _ in 0..400 {
            let event = random.event(&mut time);
            let is_switch = matches!(event.kind, EventKind::SchedSwitch(_));
            switches += u64::from(is_switch && event.cpu.0 < 8192);
            summary.event(&event);
            explain.event(&event);
            timehist.event(&event);
        }
        let (report, explanation) =
            (summary.finish().expect("switches"), explain.finish().expect("switches"));
        let sums = timehist.finish().expect("switches");
        assert_eq!((sums.switches, listed), (switches, switches), "seed {seed}");
        let waits = report.all.total();
        assert_eq!((waits, report.all.crossed), (explanation.measured, explanation.crossed), "seed {seed}");
        let longest = report.all.longest();
        assert_eq!(longest, explanation.stories.first().map(|story| story.length().0), "seed {seed}");
        let text = format!("{} {explanation}", SummaryText { report: &report, rows: 3 });
        assert!(!text.is_empty());
        measured += waits;
    }
    assert!(measured > 1000, "{measured}");
}
