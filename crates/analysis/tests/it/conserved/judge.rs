//! All analyses of one trace, side by side.
//!
//! Must not know: where the trace comes from.

use std::collections::{BTreeMap, BTreeSet};

use fairlab_analysis::begins_a_trace;
use fairlab_analysis::behaviour::{BehaviourStep, Behaviours};
use fairlab_analysis::by_name::NamesWanted;
use fairlab_analysis::counts::{NameCounts, RunCounts};
use fairlab_analysis::explain::story::WaitCause;
use fairlab_analysis::explain::{Explain, ExplainOptions, Explanation};
use fairlab_analysis::latency::{Latency, LatencyOptions, LatencyTable, SortKey};
use fairlab_analysis::metrics::Metrics;
use fairlab_analysis::summary::answer::SummaryAnswer;
use fairlab_analysis::summary::{CpuTime, SummaryOptions, SummaryReport, TraceSummary};
use fairlab_analysis::task_selector::NameKind;
use fairlab_analysis::task_selector::TaskSelector;
use fairlab_analysis::timehist::{SwitchRow, Timehist, TimehistOptions, TimehistRow, TimehistSummary};
use fairlab_event::{Cpu, Event, EventKind, Ns, Pid, Sink, System, sink_fn};
use serde_json::Value;

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
    counts: RunCounts,
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

/// What a trace tells of its kernel and machine.
struct Told<'s>(&'s mut System);

impl Sink for Told<'_> {
    fn event(&mut self, _: &Event<'_>) {}

    fn system(&mut self, system: &System) {
        self.0.clone_from(system);
    }
}

/// Feeds a trace to every analysis; none if it has no switch.
pub fn judge(name: &str, read: &dyn Fn(&mut dyn Sink)) -> Option<Judged> {
    let (mut cpus, mut start, mut end) = (0, None, Ns::ZERO);
    let mut extent = sink_fn(|event: &Event<'_>| {
        if event.kind.is_task_record() || start.is_none() && !begins_a_trace(event) {
            return;
        }
        cpus = cpus.max(if event.cpu.0 < 8192 { event.cpu.index() + 1 } else { 0 });
        start.get_or_insert(event.time);
        end = end.max(event.time);
    });
    read(&mut extent);
    drop(extent);
    let start = start?;
    let mut latency =
        Latency::new(LatencyOptions { by_pid: true, sort: vec![SortKey::Pid], ..LatencyOptions::default() });
    let mut rows = Vec::new();
    let mut timehist = Timehist::new(TimehistOptions::default(), |row: &TimehistRow| {
        if let TimehistRow::Switch(row) = row {
            rows.push(*row);
        }
    });
    let mut summary = TraceSummary::new(SummaryOptions::default());
    let mut explain = Explain::new(ExplainOptions { worst: usize::MAX, ..ExplainOptions::default() });
    let mut behaviours = Behaviours::default();
    let mut told = System::default();
    read(&mut Told(&mut told));
    let cpus = cpus.max(told.cpus.map_or(0, |cpus| cpus as usize));
    let names = NamesWanted { kinds: vec![NameKind::Task, NameKind::Group], ..NamesWanted::default() };
    let mut metrics = Metrics::new(cpus, start).recorded().by_name(names, None);
    read(&mut (
        (&mut latency, &mut timehist),
        ((&mut summary, &mut explain), (&mut behaviours, &mut metrics)),
    ));
    let timehist = timehist.finish().ok()?;
    let summary = summary.finish().ok()?;
    let explanation = explain.finish().expect(name);
    let replayed = by_pid(behaviours.finish().expect(name).tasks, |task| {
        let ran = |deed: &BehaviourStep| if let BehaviourStep::Run(work) = deed { work.0 } else { 0 };
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
    /// What the metrics counted.
    pub fn counts(&self) -> &RunCounts {
        &self.counts
    }

    /// How many waits were measured.
    pub fn waits(&self) -> u64 {
        self.summary.all.total()
    }

    /// How many were not since events are missing.
    pub fn crossed(&self) -> u64 {
        self.summary.all.crossed
    }

    /// Every wait that was measured: whose, from when to when.
    pub fn measured(&self) -> BTreeSet<(Pid, Ns, Ns)> {
        self.explanation.stories.iter().map(|story| (story.task.pid, story.start, story.end)).collect()
    }

    /// Holds every analysis to time, and all to one another, as numbers and as they are printed.
    pub fn check_agreement(&self, name: &str) {
        self.check_conservation(name);
        self.check_printed(name);
    }

    /// Holds every analysis to time, and all to one another.
    pub fn check_conservation(&self, name: &str) {
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
        let summary = by_pid(&self.summary.tasks, |task| (task.pid.unwrap_or_default(), task.waits.sum()));
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

    /// Whatever two answers tell of one thing is one number.
    fn check_counts(&self, name: &str) {
        let (counts, summary) = (&self.counts, &self.summary);
        assert!(counts.idle_ns <= counts.cpu_ns, "{name}: {} of {}", counts.idle_ns, counts.cpu_ns);
        let told = |time: fn(&CpuTime) -> Ns| summary.cpus.iter().map(|cpu| time(cpu).0).sum::<u64>();
        let switches: u64 = summary.cpus.iter().map(|cpu| cpu.switches).sum();
        assert_eq!(
            (counts.observed_ns, counts.cpu_ns, counts.idle_ns),
            (self.span.0, told(|cpu| cpu.observed), told(|cpu| cpu.idle)),
            "{name}: metrics and summary, time"
        );
        assert_eq!((switches, counts.switches), (self.timehist.switches, switches), "{name}: switches");
        assert_eq!(counts.unconserved_ns, summary.unconserved[0].time.0, "{name}: unconserved");
        assert_eq!(
            (counts.involuntary_switches, counts.migrations),
            (summary.switches.involuntary(), summary.migrations.total()),
            "{name}: metrics and summary"
        );
        assert_eq!(counts.by_name, summary.by_name, "{name}: metrics and summary, by name");
        self.check_kinds(name);
    }

    /// Wakeups, first waits and preemptions are told apart alike.
    fn check_kinds(&self, name: &str) {
        let stories = |is_one: fn(WaitCause) -> bool| {
            let lengths = self.explanation.stories.iter().filter(|story| is_one(story.cause));
            let mut lengths = lengths.map(|story| story.length().0).collect::<Vec<_>>();
            lengths.sort_unstable();
            (lengths.len() as u64, lengths.iter().sum::<u64>(), lengths.last().copied())
        };
        let (counts, all) = (&self.counts, &self.summary.all);
        for (kind, histogram, spread, stories) in [
            ("wakeups", &counts.wakeup_latency, &all.wakeups, stories(|cause| cause == WaitCause::Wakeup)),
            ("first waits", &counts.fork_wait, &all.forks, stories(|cause| cause == WaitCause::New)),
        ] {
            let of_counts = (histogram.total(), histogram.sum() as u64, histogram.max());
            assert_eq!(of_counts, (spread.total(), spread.sum(), spread.max()), "{name}: {kind}");
            assert_eq!(of_counts, stories, "{name}: {kind}, explain");
        }
        let preempted = &all.preemptions;
        let stories = stories(WaitCause::is_off_cpu_runnable);
        assert_eq!((preempted.total(), preempted.sum(), preempted.max()), stories, "{name}: preemptions");
        let mut of_names = NameCounts::default();
        counts
            .by_name
            .iter()
            .filter(|(who, _)| who.kind() == NameKind::Task)
            .for_each(|(_, one)| of_names.merge(one));
        assert_eq!(
            (&of_names.wakeup_latency, &of_names.fork_wait, of_names.preemption_wait.total()),
            (&counts.wakeup_latency, &counts.fork_wait, preempted.total()),
            "{name}: by name"
        );
    }

    /// Metrics as they are printed stand in the summary as it is printed.
    fn check_printed(&self, name: &str) {
        let answer = serde_json::to_value(SummaryAnswer::from(&self.summary)).expect("JSON");
        let mut found = 0;
        for (metric, value) in self.counts.metrics() {
            let per_second = |count: &Value| Some(count.as_f64()? * 1e9 / self.span.0 as f64);
            let told = match metric.split_once("_ns_").filter(|_| !metric.ends_with("_per_s")) {
                Some((kind, part)) => answer[kind][format!("{part}_ns")].as_f64(),
                None => match metric {
                    "idle_share" => answer["idle_share"].as_f64(),
                    "unconserved_share" => answer["unconserved"][0]["unconserved_share"].as_f64(),
                    "involuntary_switches_per_s" => per_second(&answer["switches"]["involuntary"]),
                    "migrations_per_s" => per_second(&answer["migrations"]["total"]),
                    "nr_throttled_per_s" if self.summary.throttling.is_some() => {
                        per_second(&answer["throttling"]["nr_throttled"])
                    }
                    "throttled_ns_per_s" if self.summary.throttling.is_some() => {
                        per_second(&answer["throttling"]["throttled_ns"])
                    }
                    _ => continue,
                },
            };
            if metric == "idle_share" && self.counts.cpu_ns == 0 {
                continue;
            }
            let told = told.unwrap_or_else(|| panic!("{name}: the summary has no {metric}"));
            assert!((told - value).abs() <= value.abs() * 1e-12, "{name}: {metric} is {value}, and {told}");
            found += 1;
        }
        assert!(found >= 3 || self.span == Ns::ZERO, "{name}: {found}");
        for one in answer["by_name"].as_array().into_iter().flatten() {
            let (kind, who) = (one["kind"].as_str(), one["name"].as_str());
            let is_it = |known: &TaskSelector| {
                kind == Some(kind_of(known)) && who == Some(known.to_string().as_str())
            };
            let counts = self.counts.by_name.iter().find(|(known, _)| is_it(known)).expect("a name").1;
            let metrics: BTreeMap<String, f64> =
                counts.metrics(self.counts.observed_ns).into_iter().collect();
            let told =
                serde_json::from_value::<BTreeMap<String, f64>>(one["metrics"].clone()).expect("metrics");
            assert_eq!(metrics, told, "{name}: {who:?}");
        }
    }
}

fn kind_of(who: &TaskSelector) -> &'static str {
    if who.kind() == NameKind::Group { "group" } else { "task" }
}
