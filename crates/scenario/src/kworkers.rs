//! How long kworkers waited for their CPU, where they had been placed, and what ended the longest waits. Also how long they and
//! their clients computed.
//!
//! Must not know: which scenario wants it.

use std::collections::BTreeMap;

use fairlab_analysis::explain::story::{End, Story};
use fairlab_analysis::explain::{Explain, ExplainOptions};
use fairlab_analysis::latency::{Latency, LatencyOptions, SortKey};
use fairlab_event::{Comm, Cpu, Event, EventKind, Ns, Pid, Sink};
use fairlab_trace::{OutputFormat, TraceWriter};

/// A deadline further ahead of the vruntime is further than any slice, for a group's entity too that has a fair weight.
const FAR: i64 = 20_000_000;

/// Among so many of the longest waits of all tasks those of kworkers are looked for.
const STORIES: usize = 200;

/// A kworker's wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct KworkerWait {
    pub pid: Pid,
    pub cpu: Cpu,
    pub start: Ns,
    pub end: Ns,
    /// The lag with which it was placed, ns of virtual time.
    pub lag: Option<i64>,
    /// When an entity of a group was last placed on this CPU with a deadline far ahead, if ever.
    pub far_placement: Option<Ns>,
    /// How far ahead that was, ns of virtual time; the furthest of the placements of that moment.
    pub far_ahead: i64,
}

impl KworkerWait {
    pub fn length(&self) -> Ns {
        self.end.since(self.start)
    }

    /// How many ticks passed meanwhile, where all CPUs' ticks are multiples of `tick`.
    pub fn ticks(&self, tick: Ns) -> u64 {
        self.end.0 / tick.0 - self.start.0 / tick.0
    }
}

/// What threads of one kind computed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Computed {
    pub ms: f64,
    pub switches: u64,
}

impl Computed {
    /// How long they run a switch, us.
    pub fn us_a_switch(&self) -> f64 {
        self.ms * 1000.0 / self.switches.max(1) as f64
    }
}

/// The kinds of threads of a host whose guests use vhost-net.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    GuestCpu,
    Vhost,
    Kworker,
}

impl Kind {
    /// The kind of a thread by its name, as libvirt and the kernel name them.
    pub fn of(comm: &str) -> Option<Kind> {
        match comm {
            _ if comm.starts_with("kworker/") => Some(Kind::Kworker),
            _ if comm.starts_with("vhost-") => Some(Kind::Vhost),
            _ if comm.contains("/KVM") => Some(Kind::GuestCpu),
            _ => None,
        }
    }
}

/// Watches kworkers, and what perf and `explain` say of the whole.
pub(super) struct KworkerWatch {
    tick: Ns,
    waiting: BTreeMap<Pid, (Cpu, Ns, Option<i64>)>,
    far: BTreeMap<Cpu, (Ns, i64)>,
    /// Placements of groups' entities with a deadline far ahead.
    pub far_placements: u64,
    /// The longest wait.
    pub longest: Option<KworkerWait>,
    /// Waits of two ticks and more.
    pub long: u64,
    /// Those of them whose waiter was placed with positive lag.
    pub long_with_lag: u64,
    /// Wakeups of kworkers that led to a run.
    pub wakeups: u64,
    /// Waits of half a tick and more.
    pub late: u64,
    /// Those of them that begin at the first or second wakeup after one without lag.
    pub late_fresh: u64,
    /// How many wakeups of a kworker there have been since one without lag.
    since_no_lag: BTreeMap<Pid, u32>,
    computed: [Computed; 3],
    latency: Latency,
    explain: Explain,
}

fn is_kworker(comm: Comm) -> bool {
    Kind::of(&comm.to_str()) == Some(Kind::Kworker)
}

impl KworkerWatch {
    /// On a machine with this tick.
    pub fn new(tick: Ns) -> KworkerWatch {
        let options = LatencyOptions { sort: vec![SortKey::Max], ..LatencyOptions::default() };
        KworkerWatch {
            tick,
            waiting: BTreeMap::new(),
            far: BTreeMap::new(),
            far_placements: 0,
            longest: None,
            long: 0,
            long_with_lag: 0,
            wakeups: 0,
            late: 0,
            late_fresh: 0,
            since_no_lag: BTreeMap::new(),
            computed: [Computed::default(); 3],
            latency: Latency::new(options),
            explain: Explain::new(ExplainOptions { worst: STORIES, ..ExplainOptions::default() }),
        }
    }

    fn ended(&mut self, pid: Pid, cpu: Cpu, end: Ns) {
        let Some((_, start, lag)) = self.waiting.remove(&pid) else { return };
        let (far_placement, far_ahead) = self.far.get(&cpu).copied().unzip();
        let far_ahead = far_ahead.unwrap_or_default();
        let wait = KworkerWait { pid, cpu, start, end, lag, far_placement, far_ahead };
        self.wakeups += 1;
        let since = self.since_no_lag.entry(pid).or_insert(u32::MAX);
        *since = if lag == Some(0) { 0 } else { since.saturating_add(1) };
        if wait.length().0 >= self.tick.0 / 2 {
            self.late += 1;
            self.late_fresh += u64::from(*since <= 2);
        }
        if wait.length().0 >= 2 * self.tick.0 {
            self.long += 1;
            self.long_with_lag += u64::from(lag.is_some_and(|lag| lag > 0));
        }
        if self.longest.is_none_or(|longest| longest.length() < wait.length()) {
            self.longest = Some(wait);
        }
    }

    /// What threads of this kind computed.
    pub fn computed(&self, kind: Kind) -> Computed {
        self.computed[kind as usize]
    }

    /// The longest wait, ms.
    pub fn longest_ms(&self) -> Option<f64> {
        self.longest.map(|wait| wait.length().as_ms_f64())
    }

    /// `perf sched latency -s max`, its first rows; and the stories of kworkers' waits of two ticks and more, the longest
    /// first.
    pub fn tell(self, rows: usize) -> (String, Vec<Story>) {
        let table = self.latency.finish().map(|table| table.to_string()).unwrap_or_default();
        let mut lines =
            table.lines().filter(|line| !line.trim().is_empty()).take(rows + 3).collect::<Vec<_>>();
        lines.push("");
        let stories = self.explain.finish().map(|explanation| explanation.stories).unwrap_or_default();
        let long = |story: &Story| is_kworker(story.task.comm) && story.length().0 >= 2 * self.tick.0;
        (lines.join("\n"), stories.into_iter().filter(long).collect())
    }
}

/// Whether what ran before the waiter was taken away to another CPU.
pub(super) fn ended_by_migration(story: &Story) -> bool {
    let moved_last = || story.runs.last().is_some_and(|run| run.moved.is_some());
    matches!(story.end_cause, End::Stopper { .. }) || moved_last()
}

impl Sink for KworkerWatch {
    fn event(&mut self, event: &Event<'_>) {
        self.latency.event(event);
        self.explain.event(event);
        match event.kind {
            EventKind::SchedStatRuntime { comm, runtime, .. } => {
                if let Some(kind) = Kind::of(&comm.to_str()) {
                    self.computed[kind as usize].ms += runtime.as_ms_f64();
                }
            }
            EventKind::SchedWaking(wakeup) if is_kworker(wakeup.comm) => {
                self.waiting.insert(wakeup.pid, (wakeup.target_cpu, event.time, None));
            }
            EventKind::SchedPlace(place)
                if place.pid == Pid::IDLE && place.sed.wrapping_sub(place.sev) as i64 > FAR =>
            {
                self.far_placements += 1;
                let far = self.far.entry(place.cpu).or_insert((event.time, 0));
                // The moments of a path from a leaf to the root are one; earlier ones no longer count.
                let before = if far.0 == event.time { far.1 } else { 0 };
                *far = (event.time, before.max(place.sed.wrapping_sub(place.sev) as i64));
            }
            EventKind::SchedPlace(place) if place.pid == Pid::IDLE => {}
            EventKind::SchedPlace(place) => {
                if let Some(waiting) = self.waiting.get_mut(&place.pid) {
                    waiting.2 = Some(place.sel);
                }
            }
            EventKind::SchedSwitch(switch) => {
                if let Some(kind) = Kind::of(&switch.next_comm.to_str()) {
                    self.computed[kind as usize].switches += 1;
                }
                if is_kworker(switch.next_comm) {
                    self.ended(switch.next_pid, event.cpu, event.time);
                }
            }
            _ => {}
        }
    }
}

/// Collects the lines of a trace that show how a wait came about, in the report's format.
pub(super) struct Excerpt {
    wait: KworkerWait,
    writer: TraceWriter<Vec<u8>>,
    early: u32,
    late: u32,
}

/// How many lines of each part are kept.
const LINES: u32 = 24;

impl Excerpt {
    /// Of this wait.
    pub fn new(wait: KworkerWait) -> Excerpt {
        let writer = TraceWriter::new(OutputFormat::FtraceText, Vec::new());
        Excerpt { wait, writer, early: 0, late: 0 }
    }

    /// The lines.
    pub fn text(self) -> String {
        let text = self.writer.finish().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let text = text.unwrap_or_default();
        text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
    }

    fn wants(&mut self, event: &Event<'_>) -> bool {
        let KworkerWait { cpu, start, end, far_placement, pid, .. } = self.wait;
        let begins = far_placement.unwrap_or(start).0.saturating_sub(20_000);
        if event.cpu != cpu || event.time.0 < begins || event.time > end + Ns::from_us(5) {
            return false;
        }
        let about_kworker = matches!(event.kind,
            EventKind::SchedWaking(wakeup) | EventKind::SchedWakeup(wakeup) if wakeup.pid == pid)
            || matches!(event.kind, EventKind::SchedPlace(place) if place.pid == pid)
            || matches!(event.kind, EventKind::SchedStatWait(stat) if stat.pid == pid);
        let in_wait = event.time >= start;
        if in_wait {
            let ending = end.since(event.time) < Ns::from_us(100);
            let tick = matches!(event.kind, EventKind::SchedStatRuntime { .. });
            self.late += 1;
            return about_kworker || ending || (tick && self.late < LINES);
        }
        self.early += 1;
        self.early <= LINES || start.since(event.time) < Ns::from_us(30)
    }
}

impl Sink for Excerpt {
    fn event(&mut self, event: &Event<'_>) {
        if self.wants(event) {
            self.writer.event(event);
        }
    }
}
