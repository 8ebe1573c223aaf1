//! The longest waits of a run or a trace, each with what ran on each CPU around it: timelines small enough to stand in an answer's page.
//!
//! Must not know: which run, how it is drawn.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fairlab_analysis::explain::story::{Story, WaitCause};
use fairlab_analysis::explain::{Explain, ExplainOptions};
use fairlab_analysis::selector::TraceSelector;
use fairlab_event::{Comm, Cpu, Event, EventKind, Ns, Pid, Sink, System};
use serde_json::{Value, json};

/// How many stretches of running are drawn at most.
const DRAWN_MAX: usize = 1500;

/// How many are remembered, the latest.
const KEPT_MAX: usize = 1 << 18;

/// How many CPUs are drawn at most.
const CPUS_MAX: usize = 16;

/// How many waits of a trace are drawn at most.
const STORIES_MAX: usize = 20;

/// A task ran on a CPU.
#[derive(Clone, Copy, Debug)]
struct ExcerptRun {
    cpu: Cpu,
    pid: Pid,
    comm: Comm,
    from: Ns,
    to: Ns,
}

/// What ran on each CPU, as far as it is wanted: in some windows of time, of each the latest.
struct RanKeeper {
    running: BTreeMap<Cpu, (Pid, Comm, Ns)>,
    windows: Vec<RanWindow>,
    cpus: BTreeSet<Cpu>,
    end: Ns,
}

/// What ran in a stretch of time.
struct RanWindow {
    from: Ns,
    to: Ns,
    ran: VecDeque<ExcerptRun>,
}

impl RanKeeper {
    fn of(windows: impl Iterator<Item = (Ns, Ns)>) -> RanKeeper {
        let windows = windows.map(|(from, to)| RanWindow { from, to, ran: VecDeque::new() }).collect();
        RanKeeper { running: BTreeMap::new(), windows, cpus: BTreeSet::new(), end: Ns(0) }
    }

    fn event(&mut self, event: &Event<'_>) {
        let EventKind::SchedSwitch(switch) = &event.kind else { return };
        self.cpus.insert(event.cpu);
        self.end = self.end.max(event.time);
        let before = self.running.insert(event.cpu, (switch.next_pid, switch.next_comm, event.time));
        if let Some((pid, comm, from)) = before {
            self.keep(ExcerptRun { cpu: event.cpu, pid, comm, from, to: event.time });
        }
    }

    fn keep(&mut self, ran: ExcerptRun) {
        if ran.pid.is_idle() {
            return;
        }
        let most = KEPT_MAX / self.windows.len().max(1);
        for window in &mut self.windows {
            if ran.to > window.from && ran.from < window.to {
                if window.ran.len() == most {
                    window.ran.pop_front();
                }
                window.ran.push_back(ran);
            }
        }
    }

    /// What runs goes on until the last switch of all.
    fn close(&mut self) {
        let end = self.end;
        for (cpu, (pid, comm, from)) in std::mem::take(&mut self.running) {
            if from < end {
                self.keep(ExcerptRun { cpu, pid, comm, from, to: end });
            }
        }
    }

    /// The page's data of a wait, whose window is the one at `place`. Times are ns of the trace's clock.
    fn data(&self, place: usize, story: &Story, name: &str) -> Value {
        let cpus = self.cpus_of(story);
        let (from, to, drawn) = self.around(place, story, &cpus);
        let mut tasks = Vec::<(Pid, Comm)>::new();
        let rows = drawn.iter().map(|ran| {
            let known = tasks.iter().position(|(pid, _)| *pid == ran.pid);
            let task = known.unwrap_or_else(|| {
                tasks.push((ran.pid, ran.comm));
                tasks.len() - 1
            });
            [u64::from(ran.cpu.0), task as u64, ran.from.max(from).0, ran.to.min(to).0]
        });
        let rows = rows.collect::<Vec<_>>();
        let stays = story.stays.iter().map(|stay| [u64::from(stay.cpu.0), stay.from.0, stay.to.0]);
        json!({
            "name": name,
            "from": from.0,
            "to": to.0,
            "cpus": cpus.iter().map(|cpu| cpu.0).collect::<Vec<_>>(),
            "cpus_in_all": self.cpus.len(),
            "tasks": tasks.iter().map(|(pid, comm)| json!({ "comm": comm.to_str(), "pid": pid.0 })).collect::<Vec<_>>(),
            "ran": rows,
            "wait": {
                "comm": story.task.comm.to_str(),
                "pid": story.task.pid.0,
                "start": story.start.0,
                "end": story.end.0,
                "stays": stays.collect::<Vec<_>>(),
                "began": began(story),
                "throttled": throttled(story).0,
            },
            "text": story.to_string(),
        })
    }

    /// Where it waited, and the first of the others.
    fn cpus_of(&self, story: &Story) -> Vec<Cpu> {
        let mut cpus = story.stays.iter().map(|stay| stay.cpu).take(CPUS_MAX).collect::<BTreeSet<_>>();
        for cpu in &self.cpus {
            if cpus.len() < CPUS_MAX {
                cpus.insert(*cpu);
            }
        }
        cpus.into_iter().collect()
    }

    /// The time around a wait as far as what ran then can be drawn; and what ran.
    fn around(&self, place: usize, story: &Story, cpus: &[Cpu]) -> (Ns, Ns, Vec<ExcerptRun>) {
        let (mut from, to) = window_of(story);
        let to = to.min(self.end);
        let is_seen = |ran: &&ExcerptRun| ran.to > from && ran.from < to && cpus.contains(&ran.cpu);
        let ran = self.windows.get(place).into_iter().flat_map(|window| &window.ran);
        let mut seen = ran.filter(is_seen).copied().collect::<Vec<_>>();
        seen.sort_by_key(|ran| (ran.from, ran.cpu));
        if seen.len() > DRAWN_MAX {
            // How it ended says most.
            seen.drain(..seen.len() - DRAWN_MAX);
            from = seen.first().map_or(from, |first| first.from);
        }
        (from, to, seen)
    }
}

/// How a wait began, in a word.
fn began(story: &Story) -> &'static str {
    match story.cause {
        WaitCause::Wakeup => "woken",
        WaitCause::New => "new",
        WaitCause::PreemptedInKernel | WaitCause::Preempted => "preempted",
        WaitCause::Yielded => "yielded",
        WaitCause::LeftRunnable => "left runnable",
    }
}

/// For how long a group of the task was throttled: spans of groups above each other overlap.
fn throttled(story: &Story) -> Ns {
    let mut spans = story.throttled.iter().map(|span| (span.from, span.to)).collect::<Vec<_>>();
    spans.sort_unstable();
    let (mut sum, mut until) = (Ns::ZERO, Ns::ZERO);
    for (from, to) in spans {
        sum = sum.saturating_add(to.since(from.max(until)));
        until = until.max(to);
    }
    sum
}

/// A wait, and a quarter of it on either side.
fn window_of(story: &Story) -> (Ns, Ns) {
    let beside = story.end.since(story.start).0 / 4 + 1_000;
    (Ns(story.start.0.saturating_sub(beside)), Ns(story.end.0.saturating_add(beside)))
}

/// Takes a run's events, and draws its longest wait.
pub struct ExcerptRecorder {
    explain: Explain,
    ran: RanKeeper,
}

impl ExcerptRecorder {
    /// The longest of the waits that are chosen.
    pub fn new(chosen: TraceSelector) -> ExcerptRecorder {
        let explain = Explain::new(ExplainOptions { chosen, worst: 1 });
        // Which wait it is, is known at the end: all that ran is kept, as far as there is room.
        ExcerptRecorder { explain, ran: RanKeeper::of([(Ns(0), Ns::MAX)].into_iter()) }
    }

    /// The page's data of it; nothing where no task waited.
    pub fn data(mut self, name: &str) -> Option<Value> {
        let story = self.explain.finish().ok()?.stories.into_iter().next()?;
        self.ran.close();
        Some(self.ran.data(0, &story, name))
    }
}

impl Sink for ExcerptRecorder {
    fn event(&mut self, event: &Event<'_>) {
        self.explain.event(event);
        self.ran.event(event);
    }

    fn system(&mut self, system: &System) {
        self.explain.system(system);
    }

    fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) {
        self.explain.allowed(pid, cpus);
    }
}

/// Takes a trace's events once more, and draws waits that are known.
pub struct StoriesRecorder<'s> {
    stories: &'s [Story],
    ran: RanKeeper,
}

impl<'s> StoriesRecorder<'s> {
    /// The first of these waits, as many as a page may have.
    pub fn new(stories: &'s [Story]) -> StoriesRecorder<'s> {
        let stories = &stories[..stories.len().min(STORIES_MAX)];
        StoriesRecorder { stories, ran: RanKeeper::of(stories.iter().map(window_of)) }
    }

    /// The page's data of each, in their order.
    pub fn data(mut self) -> Vec<Value> {
        self.ran.close();
        let name = |place: usize, story: &Story| {
            format!("{}. {}:{} waited", place + 1, story.task.comm.to_str(), story.task.pid.0)
        };
        let stories = self.stories.iter().enumerate();
        stories.map(|(place, story)| self.ran.data(place, story, &name(place, story))).collect()
    }
}

impl Sink for StoriesRecorder<'_> {
    fn event(&mut self, event: &Event<'_>) {
        self.ran.event(event);
    }
}

#[cfg(test)]
mod tests {
    use fairlab_trace::{ReadOptions, read_path};
    use std::path::Path;

    use super::*;

    #[test]
    fn the_longest_wait_is_drawn_with_what_ran_meanwhile() {
        let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/perf-hackbench.data");
        let mut excerpt = ExcerptRecorder::new(TraceSelector::default());
        read_path(&trace, &ReadOptions::default(), &mut excerpt).expect("a trace");
        let data = excerpt.data("a run").expect("somebody waited");
        let number = |value: &Value| value.as_u64().expect("a number");
        let (from, to) = (number(&data["from"]), number(&data["to"]));
        let wait = &data["wait"];
        // More ran meanwhile than is drawn: it begins later, and has the wait's end.
        assert!(number(&wait["start"]) < from && from < number(&wait["end"]) && number(&wait["end"]) < to);
        assert!(
            data["text"].as_str().is_some_and(|text| text.contains("waited 20.035 ms")),
            "{}",
            data["text"]
        );
        let ran = data["ran"].as_array().expect("rows");
        assert_eq!(ran.len(), DRAWN_MAX);
        // No CPU runs two tasks at once.
        let mut until = BTreeMap::new();
        for row in ran {
            let row = row.as_array().expect("a row").iter().map(number).collect::<Vec<_>>();
            assert!(
                row[2] <= row[3]
                    && row[2] >= from
                    && row[3] <= to
                    && row[2] >= until.insert(row[0], row[3]).unwrap_or(0)
            );
        }
        assert!(ExcerptRecorder::new(TraceSelector::default()).data("nothing").is_none());
    }

    /// Waits that are known are drawn from the trace read once more, as the longest is where it is found at the end.
    #[test]
    fn known_waits_are_drawn_as_the_longest_one_is() {
        let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/perf-hackbench.data");
        let read = |sink: &mut dyn Sink| {
            read_path(&trace, &ReadOptions::default(), sink).expect("a trace");
        };
        let mut longest = ExcerptRecorder::new(TraceSelector::default());
        let mut explain = Explain::new(ExplainOptions { worst: 3, ..ExplainOptions::default() });
        read(&mut longest);
        read(&mut explain);
        let explanation = explain.finish().expect("waits");
        let mut stories = StoriesRecorder::new(&explanation.stories);
        read(&mut stories);
        let (longest, drawn) = (longest.data("a run").expect("a wait"), stories.data());
        assert_eq!(drawn.len(), 3);
        for field in ["from", "to", "cpus", "cpus_in_all", "tasks", "ran", "wait", "text"] {
            assert_eq!(drawn[0][field], longest[field], "{field}");
        }
        for (value, story) in drawn.iter().zip(&explanation.stories) {
            let ran = value["ran"].as_array().expect("what ran");
            assert!(!ran.is_empty() && value["wait"]["start"] == story.start.0, "{value}");
        }
    }
}
