//! An answer as a folder of pages that link to each other: the answer, a page for each run that is drawn, the timeline of each.
//!
//! Runs of the model are made once more for that: equal seeds give equal runs. The folder gets its name when all pages are in it.
//!
//! Must not know: what the answer says.

use std::sync::atomic::AtomicBool;

use fairlab_analysis::selector::{TimeRange, TraceSelector};
use fairlab_event::{Cpu, Event, Ns, Pid, Sink, System};
use fairlab_lab::answer::RunAnswer;
use fairlab_lab::provenance::Provenance;
use fairlab_lab::{OutputFolder, RunResult, RunSpec, run_watched, sides_of};
use fairlab_page::excerpt::ExcerptRecorder;
use fairlab_page::timeline::TimelineRecorder;
use serde_json::{Value, json};

use super::view;
use crate::error::CliError;
use crate::export::{self, of_sides};
use crate::{output, provenance};

/// The page that is opened first.
const INDEX: &str = "index.html";

/// So many runs have pages; a notice tells of others.
pub const RUNS_DRAWN: usize = 50;

/// A timeline takes so much room for its numbers: a folder has many.
const TIMELINE_BYTES: usize = 2 << 20;

/// Takes the events of a run that is drawn.
struct DrawnEvents {
    timeline: TimelineRecorder,
    excerpt: ExcerptRecorder,
    system: System,
}

impl Sink for DrawnEvents {
    fn event(&mut self, event: &Event<'_>) {
        self.timeline.event(event);
        self.excerpt.event(event);
    }

    fn system(&mut self, system: &System) {
        self.system = system.clone();
        self.timeline.system(system);
        self.excerpt.system(system);
    }

    fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) {
        self.timeline.allowed(pid, cpus);
        self.excerpt.allowed(pid, cpus);
    }
}

/// A folder whose index is `title`.
pub struct PageFolder<'s> {
    folder: OutputFolder,
    title: String,
    stop: &'s AtomicBool,
}

impl<'s> PageFolder<'s> {
    /// Nothing in it yet.
    pub fn of(folder: OutputFolder, title: &str, stop: &'s AtomicBool) -> PageFolder<'s> {
        PageFolder { folder, title: title.to_string(), stop }
    }

    /// Draws a run, whose settling ended at `settled`, into a timeline called `name`; gives what an answer's page has of it: the longest
    /// wait. `up` leads to the page that links to it.
    fn timeline(
        &self,
        (spec, settled): (&RunSpec, Option<u64>),
        (name, label): (&str, &str),
        up: &Value,
    ) -> Result<(RunResult, Option<Value>), CliError> {
        let time = TimeRange { from: settled.map(Ns), to: None };
        let chosen = || TraceSelector { time, ..TraceSelector::default() };
        let mut drawn = DrawnEvents {
            timeline: TimelineRecorder::default().of(chosen()),
            excerpt: ExcerptRecorder::new(chosen()),
            system: System::default(),
        };
        let result = run_watched(spec, self.stop, &mut drawn)?.ok_or(CliError::Interrupted)?;
        let mut about = view::about(label.to_string(), drawn.system, Vec::new());
        about.provenance = of_run(spec).to_json();
        if let Ok(timeline) = drawn.timeline.finish() {
            let (trace, _) = timeline.data(&about, TIMELINE_BYTES);
            let data = json!({ "traces": [trace], "align": [0], "aligned": null, "up": up });
            self.folder.file(name, &fairlab_page::html(fairlab_page::PageKind::Timeline, label, &data))?;
        }
        Ok((result, drawn.excerpt.data(label)))
    }

    /// Writes the timeline of a run that the index itself tells of; gives the link to it.
    pub fn of_index(&self, run: (&RunSpec, Option<u64>), number: usize) -> Result<Value, CliError> {
        let label = label(run.0);
        let name = format!("timeline-{number}.html");
        self.timeline(run, (&name, &label), &self.up())?;
        Ok(json!({ "page": name, "words": format!("Timeline of {label}") }))
    }

    /// Writes a page of a run, and its timeline; gives the page's name.
    pub fn run(&self, spec: &RunSpec, number: usize) -> Result<String, CliError> {
        let settled = run_watched(spec, self.stop, &mut ())?.ok_or(CliError::Interrupted)?.settled_ns;
        let (name, timeline) = (format!("run-{number}.html"), format!("run-{number}-timeline.html"));
        let (label, workload) = (label(spec), output::words(&spec.workload));
        let title = format!("{workload} on {}", spec.machine.name);
        let up = json!({ "page": name, "words": title });
        let (result, excerpt) = self.timeline((spec, settled), (&timeline, &label), &up)?;
        let sides = sides_of(&[spec.kernel.name().to_string()], std::slice::from_ref(&result));
        let mut parts = of_sides(Some(&workload), &sides, &[]);
        parts["excerpts"] = json!(excerpt.into_iter().collect::<Vec<_>>());
        parts["links"] = json!([{ "page": timeline, "words": format!("Timeline of {label}") }]);
        parts["up"] = self.up();
        // How long it took here is nothing of the answer.
        let result = RunResult { wall_ns: 0, ..result };
        let answer = RunAnswer { partial: None, runs: vec![result], notices: Vec::new() };
        let value = output::with_provenance(&of_run(spec), json!(answer));
        self.folder.file(&name, &export::page(&title, &value, &parts))?;
        Ok(name)
    }

    fn up(&self) -> Value {
        json!({ "page": INDEX, "words": self.title })
    }

    /// Writes the index, and gives the folder its name.
    pub fn finish(self, answer: &Value, parts: &Value) -> Result<(), CliError> {
        self.folder.file(INDEX, &export::page(&self.title, answer, parts))?;
        self.folder.file("answer.json", &export::as_json(answer))?;
        Ok(self.folder.finish()?)
    }
}

/// A run in words.
fn label(spec: &RunSpec) -> String {
    format!("{}, seed {}", spec.kernel.name(), spec.seed)
}

/// How one run came about.
fn of_run(spec: &RunSpec) -> Provenance {
    let (kernel, machine) = (&spec.kernel, &spec.machine.name);
    provenance::here().by(kernel.origin()).kernel(kernel.name()).machine(machine).seeds([spec.seed])
}
