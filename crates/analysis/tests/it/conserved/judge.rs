//! All analyses of one trace, side by side.
//!
//! Must not know: where the trace comes from.

use std::collections::{BTreeMap, BTreeSet};

use fairlab_analysis::behaviour::{Behaviours, Deed};
use fairlab_analysis::explain::{Explain, ExplainOptions, Explanation};
use fairlab_analysis::latency::{Latency, LatencyOptions, LatencyTable, SortKey};
use fairlab_analysis::metrics::Metrics;
use fairlab_analysis::summary::{Summary, SummaryOptions, SummaryReport};
use fairlab_analysis::timehist::{Row, SwitchRow, Timehist, TimehistOptions, TimehistSummary};
use fairlab_event::{Cpu, Event, EventKind, Ns, Pid, Sink, sink_fn};

/// The answers about one trace.
pub struct Judged {
    span: Ns,
    in_order: bool,
    /// Tasks where perf's rules for a wait and ours differ.
    quirks: BTreeSet<Pid>,
    latency: LatencyTable,
    rows: Vec<SwitchRow>,
    timehist: TimehistSummary,
    summary: SummaryReport,
    explanation: Explanation,
    replayed: BTreeMap<Pid, u64>,
    counts: fairlab_analysis::counts::Counts,
}

/// Times by task.
type ByPid = BTreeMap<Pid, u64>;

fn by_pid<T>(items: impl IntoIterator<Item = T>, of: impl Fn(T) -> (Pid, u64)) -> ByPid {
    let mut sums = ByPid::new();
    for item in items {
        let (pid, time) = of(item);
        *sums.entry(pid).or_default() += time;
    }
    sums.retain(|_, time| *time > 0);
    sums
}

/// Feeds a trace to every analysis; none if it has no switch.
pub fn judge(name: &str, read: &dyn Fn(&mut dyn Sink)) -> Option<Judged> {
    let (mut cpus, mut start, mut end) = (0, None, Ns::ZERO);
    let mut extent = sink_fn(|event: &Event<'_>| {
        let is_lost = matches!(event.kind, EventKind::Lost { .. });
        if event.kind.is_task_record() || event.cpu.0 >= 8192 || start.is_none() && is_lost {
            return;
        }
        cpus = cpus.max(event.cpu.index() + 1);
        start.get_or_insert(event.time);
        end = end.max(event.time);
    });
    read(&mut extent);
    drop(extent);
    let start = start?;
    let mut latency = Latency::new(LatencyOptions { by_pid: true, sort: vec![SortKey::Pid] });
    let mut rows = Vec::new();
    let mut timehist = Timehist::new(TimehistOptions::default(), |row: &Row| {
        if let Row::Switch(row) = row {
            rows.push(*row);
        }
    });
    let mut summary = Summary::new(SummaryOptions::default());
    let mut explain = Explain::new(ExplainOptions { worst: usize::MAX, ..ExplainOptions::default() });
    let mut behaviours = Behaviours::default();
    let mut metrics = Metrics::new(cpus, start).recorded();
    read(&mut (
        (&mut latency, &mut timehist),
        ((&mut summary, &mut explain), (&mut behaviours, &mut metrics)),
    ));
    let timehist = timehist.finish().ok()?;
    let summary = summary.finish().ok()?;
    let explanation = explain.finish().expect(name);
    let replayed = by_pid(behaviours.finish().expect(name).tasks, |task| {
        let ran = |deed: &Deed| if let Deed::Run(work) = deed { work.0 } else { 0 };
        (task.pid, task.deeds.iter().map(ran).sum())
    });
    Some(Judged {
        span: summary.span(),
        in_order: summary.late_events == 0,
        quirks: quirks(read),
        latency: latency.finish().expect(name),
        rows,
        timehist,
        summary,
        explanation,
        replayed,
        counts: metrics.into_counts(end),
    })
}

/// Tasks where perf's rules for a wait and ours differ: those that are woken while they go to sleep, which left a CPU as `R` up
/// to v5.17; and those woken before the trace's first `sched_waking`.
fn quirks(read: &dyn Fn(&mut dyn Sink)) -> BTreeSet<Pid> {
    let (mut running, mut runnable, mut found) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut woken = BTreeSet::new();
    let mut has_waking = false;
    let mut look = sink_fn(|event: &Event<'_>| match &event.kind {
        EventKind::SchedSwitch(switch) => {
            running.remove(&switch.prev_pid);
            runnable.remove(&switch.next_pid);
            running.insert(switch.next_pid);
            if switch.prev_state.is_runnable() {
                runnable.insert(switch.prev_pid);
            }
        }
        EventKind::SchedWaking(wakeup) => {
            has_waking = true;
            if running.contains(&wakeup.pid) || runnable.contains(&wakeup.pid) {
                found.insert(wakeup.pid);
            }
        }
        EventKind::SchedWakeup(wakeup) if !has_waking => drop(woken.insert(wakeup.pid)),
        _ => {}
    });
    read(&mut look);
    drop(look);
    if has_waking {
        found.append(&mut woken);
    }
    found
}

impl Judged {
    /// How many waits were measured.
    pub fn waits(&self) -> u64 {
        self.summary.all.wakeups.total() + self.summary.all.preemptions.total()
    }

    /// How many were not since events are missing.
    pub fn crossed(&self) -> u64 {
        self.summary.all.crossed
    }

    /// Every wait that was measured: whose, from when to when.
    pub fn measured(&self) -> BTreeSet<(Pid, Ns, Ns)> {
        self.explanation.stories.iter().map(|story| (story.task.pid, story.start, story.end)).collect()
    }

    /// Holds every analysis to time, and all to one another.
    pub fn check_agreement(&self, name: &str) {
        self.check_rows(name);
        self.check_cpus(name);
        self.check_stories(name);
        self.check_runtimes(name);
        self.check_waits(name);
        self.check_counts(name);
    }

    /// Stays on one CPU follow each other.
    fn check_rows(&self, name: &str) {
        let mut ended: BTreeMap<Cpu, Ns> = BTreeMap::new();
        let mut ran: BTreeMap<Cpu, u64> = BTreeMap::new();
        for row in &self.rows {
            *ran.entry(row.cpu).or_default() += row.run.0;
            let before = ended.insert(row.cpu, row.time).unwrap_or_default();
            let begins = row.time.since(row.run);
            assert!(
                !self.in_order || begins >= before,
                "{name}: {row:?} overlaps with what ended at {before}"
            );
            assert!(!row.crossed.run || row.run == Ns::ZERO, "{name}: {row:?}");
        }
        if self.in_order {
            assert!(ran.values().all(|&ran| ran <= self.span.0), "{name}: {ran:?} of {}", self.span);
        }
    }

    fn check_cpus(&self, name: &str) {
        for cpu in &self.summary.cpus {
            assert!(
                cpu.observed <= self.span && cpu.idle <= cpu.observed,
                "{name}: {cpu:?} of {}",
                self.span
            );
        }
        let ran: u64 = self.summary.tasks.iter().map(|task| task.run.0).sum();
        let all = self.span.0 * self.summary.cpus.len() as u64;
        let idle: u64 = self.summary.cpus.iter().map(|cpu| cpu.idle.0).sum();
        assert!(ran + idle <= all, "{name}: {ran} and {idle} of {all}");
    }

    /// No task runs longer in a story than the wait was.
    fn check_stories(&self, name: &str) {
        for story in &self.explanation.stories {
            let listed: u64 = story.runs.iter().map(|run| run.length().0).sum();
            let ran = listed + story.runs_left_out.1.0;
            let told = || format!("{name}: {ran} ns in\n{story}");
            assert!(ran + story.unknown.0 <= story.length().0, "{}", told());
            assert!(story.idle.iter().all(|idle| idle.time <= story.length()), "{}", told());
            assert!(story.runners.iter().all(|runner| runner.time.0 <= ran), "{}", told());
            let within = |from: Ns, to: Ns| from >= story.start && to <= story.end;
            assert!(story.stays.iter().all(|stay| within(stay.from, stay.to)), "{}", told());
        }
    }

    /// Each task ran as long in every answer.
    fn check_runtimes(&self, name: &str) {
        let summary = by_pid(&self.summary.tasks, |task| (task.pid.unwrap_or_default(), task.run.0));
        let whole =
            by_pid(&self.summary.tasks, |task| (task.pid.unwrap_or_default(), task.run.0 - task.run_cut.0));
        let timehist = by_pid(&self.timehist.tasks, |task| (task.label.tid, task.run.0));
        if self.in_order {
            assert_eq!(whole, timehist, "{name}: summary and timehist");
        }
        let stoppers =
            self.summary.tasks.iter().filter(|task| task.comm.as_bytes().starts_with(b"migration/"));
        let stoppers: BTreeSet<Pid> = stoppers.filter_map(|task| task.pid).collect();
        let without = |mut times: ByPid| {
            times.retain(|pid, _| !stoppers.contains(pid));
            times
        };
        if self.latency.notices.iter().any(|notice| notice.contains("no sched_stat_runtime")) {
            let latency = by_pid(&self.latency.rows, |row| (row.pid, row.runtime.0));
            let of_rows = |(pid, _): &(&Pid, &u64)| self.latency.rows.iter().any(|row| row.pid == **pid);
            let listed: ByPid = summary.iter().filter(of_rows).map(|(pid, time)| (*pid, *time)).collect();
            assert_eq!(listed, latency, "{name}: summary and latency, run time");
        }
        assert_eq!(without(summary), without(self.replayed.clone()), "{name}: summary and replay");
    }

    /// Each task waited as long in every answer.
    fn check_waits(&self, name: &str) {
        let summary = by_pid(&self.summary.tasks, |task| {
            let sum = task.waits.wakeups.sum() + task.waits.preemptions.sum();
            (task.pid.unwrap_or_default(), sum)
        });
        let stories = by_pid(&self.explanation.stories, |story| (story.task.pid, story.length().0));
        assert_eq!(summary, stories, "{name}: summary and explain");
        assert_eq!(
            (self.waits(), self.crossed()),
            (self.explanation.measured, self.explanation.crossed),
            "{name}: summary and explain"
        );
        if self.in_order {
            let plain = |mut times: ByPid| {
                times.retain(|pid, _| !self.quirks.contains(pid));
                times
            };
            let latency = by_pid(&self.latency.rows, |row| (row.pid, row.total_delay.0));
            assert_eq!(plain(summary.clone()), plain(latency), "{name}: summary and latency");
        }
        let delays = by_pid(&self.timehist.tasks, |task| (task.label.tid, task.delay.0));
        for (pid, delay) in delays.into_iter().filter(|(pid, _)| self.in_order && !self.quirks.contains(pid))
        {
            let waited = summary.get(&pid).copied().unwrap_or(0);
            assert!(delay <= waited, "{name}: {pid} was delayed {delay} ns and waited {waited} ns");
        }
    }

    /// Metrics know no more CPU time than there was.
    fn check_counts(&self, name: &str) {
        let counts = &self.counts;
        assert!(counts.idle_ns <= counts.cpu_ns, "{name}: {} of {}", counts.idle_ns, counts.cpu_ns);
    }

    /// Metrics know no longer wait than the summary. Departs: they see fewer signs of a hole, so that this holds where switches
    /// are missing, and not where everything is for a while and no recorder says so.
    pub fn check_longest(&self, name: &str) {
        let (found, longest) = (self.counts.wakeup_latency.max(), self.summary.all.wakeups.max());
        assert!(!self.in_order || found <= longest, "{name}: {found:?}, longest {longest:?}");
    }
}
