//! A trace as the data of a page that draws it as a line of time.
//!
//! `web/src/timeline` draws it. Courses are read when the page opens; stretches, which hold every switch, when the user zooms
//! in. The steps of [`keep`] leave out what does not fit into the page, and the page says so.
//!
//! Must not know: files, how users ask for a page.

mod columns;
mod courses;
mod stretch_keeper;
mod stretches;
mod waits;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fairlab_analysis::MissingEvents;
use fairlab_analysis::explain::{Explain, ExplainOptions};
use fairlab_analysis::lanes::{LaneStretch, LaneTask, Lanes, LanesReport};
use fairlab_analysis::selector::{NothingChosen, TraceSelector};
use fairlab_analysis::task_selector::TaskSelector;
use fairlab_event::{Cpu, Event, Ns, Pid, Sink, System};
use serde_json::{Value, json};

use columns::PieceBlob;
pub use stretch_keeper::KeptDetail;
use stretch_keeper::StretchKeeper;

/// How many of the worst waits are listed.
pub const WAITS: usize = 40;

/// A CPU's place in the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCpu {
    /// The CPU.
    pub cpu: Cpu,
    /// Its core, numbered over the machine.
    pub core: u32,
    /// Its last-level cache, numbered over the machine.
    pub llc: u32,
    /// Its NUMA node.
    pub node: u32,
}

/// What is known of a trace beside its events.
#[derive(Clone, Debug, Default)]
pub struct TraceDescription {
    /// What the trace is called on the page.
    pub label: String,
    /// How it came about, as every answer says it.
    pub provenance: Value,
    /// Kernel and machine.
    pub system: System,
    /// The CPUs' places, where the trace tells them.
    pub places: Vec<PageCpu>,
    /// Scheduling domains, the smallest first: name and CPUs.
    pub domains: Vec<(String, Vec<Cpu>)>,
    /// The kernel whose rules built the domains.
    pub domains_of: String,
    /// What reading it met, a line each.
    pub trouble: Vec<String>,
    /// The tasks whose rows are shown, beside CPUs; empty: all.
    pub whose: Vec<TaskSelector>,
}

/// Takes the events of a trace that is to be drawn.
pub struct TimelineRecorder {
    explain: Explain,
    lanes: Lanes<Box<dyn FnMut(LaneStretch)>>,
    keeper: StretchKeeper,
}

/// A trace that can be drawn.
pub struct TimelineDrawing {
    explanation: fairlab_analysis::explain::Explanation,
    report: LanesReport,
    keeper: StretchKeeper,
}

impl Default for TimelineRecorder {
    fn default() -> TimelineRecorder {
        let keeper = StretchKeeper::new();
        let take = keeper.taker();
        TimelineRecorder {
            explain: Explain::new(ExplainOptions { worst: WAITS, ..ExplainOptions::default() }),
            lanes: Lanes::new(Box::new(take)),
            keeper,
        }
    }
}

impl TimelineRecorder {
    /// Draws the chosen time alone, and lists the waits of the chosen tasks. Whose rows are shown, [`TraceDescription::whose`] says.
    #[must_use]
    pub fn of(mut self, chosen: TraceSelector) -> TimelineRecorder {
        self.lanes = self.lanes.within(chosen.time.from, chosen.time.to);
        self.explain = Explain::new(ExplainOptions { chosen, worst: WAITS });
        self
    }

    /// Whether the events so far hold what was chosen.
    ///
    /// # Errors
    /// They do not.
    pub fn check(&self) -> Result<(), NothingChosen> {
        self.explain.check()
    }

    /// All events were given.
    ///
    /// # Errors
    /// There was no `sched_switch`.
    pub fn finish(self) -> Result<TimelineDrawing, MissingEvents> {
        let TimelineRecorder { explain, lanes, keeper } = self;
        Ok(TimelineDrawing { report: lanes.finish()?, explanation: explain.finish()?, keeper })
    }
}

impl Sink for TimelineRecorder {
    fn event(&mut self, event: &Event<'_>) {
        self.explain.event(event);
        self.lanes.event(event);
    }

    fn system(&mut self, system: &System) {
        self.explain.system(system);
        self.lanes.system(system);
    }

    fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) {
        self.explain.allowed(pid, cpus);
        self.lanes.allowed(pid, cpus);
    }
}

impl TimelineDrawing {
    /// What the trace lacks, one clause each.
    pub fn notices(&self) -> &[String] {
        &self.report.notices
    }

    /// When the first task of a name, or of an id, or else the first mark with a text, shows; counted from the trace's beginning.
    pub fn first_of(&self, what: &str) -> Option<Ns> {
        let (start, _) = self.report.span;
        let pid = what.parse::<i32>().ok().map(Pid);
        let is_it = |task: &&LaneTask| task.comm.to_str() == what || Some(task.pid) == pid;
        let begun = |task: &LaneTask| task.course.entries.first().map(|entry| entry.from);
        let task = self.report.tasks.iter().filter(is_it).filter_map(begun).min();
        let mark = || self.report.marks.iter().find(|(_, text)| text.contains(what)).map(|&(time, _)| time);
        task.or_else(mark).map(|time| time.since(start))
    }

    /// The page's data of this trace, with a blob of at most `bytes`, and how much of the detail is kept.
    pub fn data(self, about: &TraceDescription, bytes: usize) -> (Value, KeptDetail) {
        let TimelineDrawing { explanation, report, keeper } = self;
        let start = report.span.0;
        let mut blob = PieceBlob::default();
        let courses = courses::put(&mut blob, &report);
        let frequencies = courses::put_frequencies(&mut blob, &report);
        let throttled = courses::put_throttled(&mut blob, &report);
        let stories = explanation
            .stories
            .iter()
            .map(|story| (story.start.since(start).0, story.end.since(start).0))
            .collect::<Vec<_>>();
        let room = bytes.saturating_sub(blob.len());
        let (stretches, kept) = keeper.put(&mut blob, &stories, room);
        let value = json!({
            "label": about.label,
            "provenance": about.provenance,
            "release": about.system.release,
            "node": about.system.node,
            "origin": start.0.to_string(),
            "length": report.span.1.since(start).0,
            "events": report.events,
            "switches": report.switches,
            "kept": kept.to_json(),
            "notices": report.notices,
            "trouble": about.trouble,
            "machine": machine(about),
            "tasks": tasks(&report),
            "sets": json!({
                "name": report.sets.iter().map(|set| set.name.as_str()).collect::<Vec<_>>(),
                "group": report.sets.iter().map(|set| set.is_group).collect::<Vec<_>>(),
            }),
            "courses": courses,
            "frequencies": frequencies,
            "throttled": throttled,
            "stretches": stretches,
            "marks": report.marks.iter().map(|(time, text)| json!([time.since(start).0, text])).collect::<Vec<_>>(),
            "mark_count": report.mark_count,
            "waits": waits::stories(&explanation, &report),
            "measured": explanation.measured,
            "crossed": explanation.crossed,
            "still": waits::still(&explanation, &report),
            "still_count": explanation.still_waiting_count,
            "only": only(&report, &about.whose),
            "blob": STANDARD.encode(blob.bytes()),
        });
        (value, kept)
    }
}

/// The numbers of the tasks that are meant; null: all.
fn only(report: &LanesReport, whose: &[TaskSelector]) -> Value {
    if whose.is_empty() {
        return Value::Null;
    }
    let whose = whose.iter().cloned().map(TaskSelector::as_kept).collect::<Vec<_>>();
    let is_meant = |task: &LaneTask| {
        let comm = task.comm.to_str();
        let set = report.sets.get(task.set as usize).filter(|set| set.is_group);
        whose.iter().any(|who| match who {
            TaskSelector::Task(_) | TaskSelector::Pid(_) => who.means_task(task.pid, &comm),
            TaskSelector::Group(path) => path == "/" || set.is_some_and(|set| is_in(&set.name, path)),
            // A trace tells no workloads: who asks for one has been refused.
            TaskSelector::Workload(_) => false,
        })
    };
    let numbers = report.tasks.iter().enumerate().filter(|(_, task)| is_meant(task));
    json!(numbers.map(|(number, _)| number).collect::<Vec<_>>())
}

/// Whether a group is this one or below it.
fn is_in(group: &str, path: &str) -> bool {
    group.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn machine(about: &TraceDescription) -> Value {
    let places = about
        .places
        .iter()
        .map(|place| json!([place.cpu.0, place.core, place.llc, place.node]))
        .collect::<Vec<_>>();
    let domains = about.domains.iter().map(
        |(name, cpus)| json!({ "name": name, "cpus": cpus.iter().map(|cpu| cpu.0).collect::<Vec<_>>() }),
    );
    json!({
        "cpus": about.system.cpus,
        "places": places,
        "domains": domains.collect::<Vec<_>>(),
        "domains_of": about.domains_of,
    })
}

/// Columns, for there may be many tasks.
fn tasks(report: &LanesReport) -> Value {
    let start = report.span.0;
    let column = |of: &dyn Fn(&LaneTask) -> Value| report.tasks.iter().map(of).collect::<Vec<_>>();
    json!({
        "pid": column(&|task| json!(task.pid.0)),
        "tgid": column(&|task| json!(task.tgid.0)),
        "comm": column(&|task| json!(task.comm.to_str())),
        "prio": column(&|task| json!(task.prio.0)),
        "set": column(&|task| json!(task.set)),
        "ran": column(&|task| json!(task.ran)),
        "waited": column(&|task| json!(task.waited)),
        "exited": column(&|task| json!(task.exited.map(|time| time.since(start).0))),
        "left": column(&|task| json!(task.left.map(|left| left as u8))),
    })
}
