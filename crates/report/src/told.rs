//! Runs that are told: perf's table of latencies, the longest waits as stories, and the lines of the trace that show one.
//!
//! Must not know: which report wants it.

use std::sync::Arc;

use fairlab_analysis::explain::story::{Story, WaitCause, WaitEnd};
use fairlab_analysis::explain::{Explain, ExplainOptions};
use fairlab_analysis::latency::{Latency, LatencyOptions, SortKey};
use fairlab_event::{Event, EventKind, Ns, Sink, UntypedTracepoint};
use fairlab_lab::names::wanted_for;
use fairlab_lab::{LabError, RunSpec};
use fairlab_trace::{OutputFormat, TraceWriter};
use minijinja::Value;
use minijinja::context;
use serde::Deserialize;

use super::ScenarioContext;
use super::expressions::Cell;
use super::meanwhile::Tries;
use fairlab_analysis::watched::{Wait, matches};

/// Which run is told, and what of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tell {
    /// The side.
    pub side: String,
    /// The name among its runs.
    pub name: String,
    /// The run with the longest wait of what is watched under this name; the first one without.
    pub watch: Option<String>,
    /// Stories of tasks of this name alone.
    #[serde(default = "any")]
    task: String,
    /// Stories of waits of so long or longer, ms.
    #[serde(default)]
    least_ms: f64,
    /// Among so many of the longest waits they are looked for.
    #[serde(default = "many")]
    stories: usize,
    /// How many rows of perf's table.
    #[serde(default)]
    rows: usize,
    /// Whether lines of the trace are shown.
    #[serde(default)]
    excerpt: bool,
    /// Events of these names are listed.
    #[serde(default)]
    events: Vec<String>,
}

fn any() -> String {
    "*".to_string()
}

fn many() -> usize {
    1000
}

/// The longest wait after a wakeup in a run, as a story. Gives `None` when it was stopped.
pub(crate) fn longest_wait(bench: &ScenarioContext<'_>, spec: RunSpec) -> Result<Option<String>, LabError> {
    let spec = RunSpec { by_name: wanted_for(BALANCING)?, ..spec };
    let explain = Explain::new(ExplainOptions { worst: many(), ..ExplainOptions::default() });
    let mut sinks = (Plain(explain), Tries::default());
    let Some(_) = bench.look(&spec, &mut sinks)? else { return Ok(None) };
    let (Plain(explain), tries) = sinks;
    let stories = explain.finish().map(|explanation| explanation.stories).unwrap_or_default();
    Ok(Some(words_of(first_of(&stories), &tries)))
}

/// A metric of what balancing tells: a run that has it tells the tries.
const BALANCING: &str = "lb_moved";

fn words_of(story: Option<&Story>, tries: &Tries) -> String {
    story.map_or("No task waited.".to_string(), |story| format!("{story}{}", tries.during(story)))
}

/// The longest wait after a wakeup; of none, the longest.
fn first_of(stories: &[Story]) -> Option<&Story> {
    stories.iter().find(|story| story.cause == WaitCause::Wakeup).or(stories.first())
}

/// Whether what ran before the waiter was taken away to another CPU.
fn ended_by_migration(story: &Story) -> bool {
    let moved_last = || story.runs.last().is_some_and(|run| run.moved.is_some());
    matches!(story.end_cause, WaitEnd::Stopper { .. }) || moved_last()
}

impl Tell {
    /// Makes the run once more and tells it. Gives `None` when it was stopped.
    ///
    /// # Errors
    /// There is no such run, or it fails.
    pub fn of(&self, bench: &ScenarioContext<'_>, cells: &[Arc<Cell>]) -> Result<Option<Value>, LabError> {
        let found = cells.iter().find(|cell| cell.plan.side == self.side && cell.plan.name == self.name);
        let cell = found.ok_or_else(|| {
            LabError::new(
                format!("no run of side '{}' is called '{}'", self.side, self.name),
                "correct the report",
            )
        })?;
        let (seed, wait) = self.seed_of(cell);
        let plain = bench.spec(&cell.plan, seed)?;
        let spec = RunSpec { by_name: wanted_for(BALANCING)?, ..plain.clone() };
        let sort = LatencyOptions { sort: vec![SortKey::Max], ..LatencyOptions::default() };
        let explain = ExplainOptions { worst: self.stories, ..ExplainOptions::default() };
        let mut sinks = (
            Plain((Latency::new(sort), Explain::new(explain))),
            (Tries::default(), Listed::of(&self.events)),
        );
        let Some(_) = bench.look(&spec, &mut sinks)? else { return Ok(None) };
        let (Plain((latency, explain)), (tries, events)) = sinks;
        let stories = explain.finish().map(|explanation| explanation.stories).unwrap_or_default();
        let meant = |story: &Story| {
            matches(&self.task, &story.task.comm.to_str()) && story.length().as_ms_f64() >= self.least_ms
        };
        let stories = stories.into_iter().filter(meant).collect::<Vec<_>>();
        let by_migration = stories.iter().filter(|story| ended_by_migration(story)).count();
        let excerpt = match wait.filter(|_| self.excerpt) {
            Some(wait) => {
                let mut excerpt = Excerpt::new(wait);
                let Some(_) = bench.look(&plain, &mut excerpt)? else { return Ok(None) };
                excerpt.text()
            }
            None => String::new(),
        };
        let story = first_of(&stories);
        let tick = 1_000_000_000 / spec.machine.hz;
        Ok(Some(context! {
            latency => latency.finish().map(|table| head_of(&table.to_string(), self.rows)).unwrap_or_default(),
            story => words_of(story, &tries),
            ended_by_migration => story.map(ended_by_migration),
            by_migration => share(by_migration, stories.len()),
            excerpt,
            events => events.listed,
            wait => wait.map(|wait| context! {
                ms => wait.length().as_ms_f64(),
                lag => wait.lag,
                ahead_ms => wait.far_ahead as f64 / 1e6,
                ticks => wait.end.0 / tick - wait.start.0 / tick,
            }),
        }))
    }

    /// The seed of the run with the longest wait, the last of those, and that wait.
    fn seed_of(&self, cell: &Cell) -> (u64, Option<Wait>) {
        let Some(watch) = &self.watch else { return (1, None) };
        let waits = (1..).zip(&cell.counted).map(|(seed, counted)| {
            let longest = counted.get(watch).and_then(|counted| counted.longest);
            (seed, longest)
        });
        waits.max_by_key(|(_, wait)| wait.map(|wait| wait.length())).unwrap_or((1, None))
    }
}

/// Leaves out what only the model tells of balancing.
struct Plain<S>(S);

impl<S: Sink> Sink for Plain<S> {
    fn event(&mut self, event: &Event<'_>) {
        if !matches!(event.kind, EventKind::Other { name, .. } if name == UntypedTracepoint::DecidedBalance.name())
        {
            self.0.event(event);
        }
    }
}

/// Events that are listed, each with its time, its CPU, its task and its fields.
struct Listed<'n> {
    names: &'n [String],
    listed: Vec<Value>,
}

impl<'n> Listed<'n> {
    fn of(names: &'n [String]) -> Listed<'n> {
        Listed { names, listed: Vec::new() }
    }
}

impl Sink for Listed<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let name = event.kind.name();
        if !self.names.iter().any(|wanted| wanted == name) {
            return;
        }
        let text = match event.kind {
            EventKind::Other { fields, .. } => fields.text().to_string(),
            _ => String::new(),
        };
        let context = event.context;
        self.listed.push(context! {
            name,
            text,
            ns => event.time.0,
            cpu => event.cpu.0,
            comm => context.comm.to_str().into_owned(),
            pid => context.pid.0,
            hardirq => context.flags.in_hardirq(),
            softirq => context.flags.in_softirq(),
        });
    }
}

/// In percent; no number of none.
fn share(of: usize, all: usize) -> Option<f64> {
    (all > 0).then(|| of as f64 * 100.0 / all as f64)
}

/// The head and the first rows of perf's table.
fn head_of(table: &str, rows: usize) -> String {
    table.lines().filter(|line| !line.trim().is_empty()).take(rows + 3).collect::<Vec<_>>().join("\n")
}

/// Collects the lines of a trace that show how a wait came about.
struct Excerpt {
    wait: Wait,
    writer: TraceWriter<Vec<u8>>,
    early: u32,
    late: u32,
}

/// How many lines of each part are kept.
const LINES: u32 = 24;

impl Excerpt {
    fn new(wait: Wait) -> Excerpt {
        Excerpt { wait, writer: TraceWriter::new(OutputFormat::FtraceText, Vec::new()), early: 0, late: 0 }
    }

    fn text(self) -> String {
        let text = self.writer.finish().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let text = text.unwrap_or_default();
        text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
    }

    fn wants(&mut self, event: &Event<'_>) -> bool {
        let Wait { cpu, start, end, far_placement, pid, .. } = self.wait;
        let begins = far_placement.unwrap_or(start).0.saturating_sub(20_000);
        if event.cpu != cpu || event.time.0 < begins || event.time > end + Ns::from_us(5) {
            return false;
        }
        let about_waiter = matches!(event.kind,
            EventKind::SchedWaking(wakeup) | EventKind::SchedWakeup(wakeup) if wakeup.pid == pid)
            || matches!(event.kind, EventKind::SchedPlace(place) if place.pid == pid)
            || matches!(event.kind, EventKind::SchedStatWait(stat) if stat.pid == pid);
        if event.time >= start {
            let ending = end.since(event.time) < Ns::from_us(100);
            let tick = matches!(event.kind, EventKind::SchedStatRuntime { .. });
            self.late += 1;
            return about_waiter || ending || (tick && self.late < LINES);
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
