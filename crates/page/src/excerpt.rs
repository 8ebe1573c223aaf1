//! The longest wait of a run, with what ran on each CPU around it: a timeline small enough to stand in an answer's page.
//!
//! Must not know: which run, how it is drawn.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fairlab_analysis::explain::story::Story;
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

/// A task ran on a CPU.
#[derive(Clone, Copy, Debug)]
struct ExcerptRun {
    cpu: Cpu,
    pid: Pid,
    comm: Comm,
    from: Ns,
    to: Ns,
}

/// Takes a run's events.
pub struct ExcerptRecorder {
    explain: Explain,
    running: BTreeMap<Cpu, (Pid, Comm, Ns)>,
    ran: VecDeque<ExcerptRun>,
    cpus: BTreeSet<Cpu>,
}

impl ExcerptRecorder {
    /// The longest of the waits that are chosen.
    pub fn new(chosen: TraceSelector) -> ExcerptRecorder {
        ExcerptRecorder {
            explain: Explain::new(ExplainOptions { chosen, worst: 1 }),
            running: BTreeMap::new(),
            ran: VecDeque::new(),
            cpus: BTreeSet::new(),
        }
    }

    fn switch(&mut self, cpu: Cpu, now: Ns, next: (Pid, Comm)) {
        self.cpus.insert(cpu);
        let before = self.running.insert(cpu, (next.0, next.1, now));
        if let Some((pid, comm, from)) = before.filter(|(pid, ..)| !pid.is_idle()) {
            if self.ran.len() == KEPT_MAX {
                self.ran.pop_front();
            }
            self.ran.push_back(ExcerptRun { cpu, pid, comm, from, to: now });
        }
    }

    /// The page's data of it; nothing where no task waited. Times are ns of the run's clock.
    pub fn data(mut self, name: &str) -> Option<Value> {
        let story = std::mem::replace(&mut self.explain, Explain::new(ExplainOptions::default())).finish();
        let story = story.ok()?.stories.into_iter().next()?;
        let end = self.ran.iter().map(|ran| ran.to).max()?;
        for (cpu, (pid, comm, from)) in std::mem::take(&mut self.running) {
            if !pid.is_idle() && from < end {
                self.ran.push_back(ExcerptRun { cpu, pid, comm, from, to: end });
            }
        }
        let cpus = self.cpus_of(&story);
        let (from, to, drawn) = self.around(&story, &cpus, end);
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
        Some(json!({
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
            },
            "text": story.to_string(),
        }))
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

    /// The time around a wait, a quarter of it on either side, as far as what ran then can be drawn; and what ran.
    fn around(&self, story: &Story, cpus: &[Cpu], end: Ns) -> (Ns, Ns, Vec<ExcerptRun>) {
        let beside = Ns(story.end.since(story.start).0 / 4 + 1_000);
        let (mut from, to) =
            (Ns(story.start.0.saturating_sub(beside.0)), Ns(end.0.min(story.end.0 + beside.0)));
        let is_seen = |ran: &&ExcerptRun| ran.to > from && ran.from < to && cpus.contains(&ran.cpu);
        let mut seen = self.ran.iter().filter(is_seen).copied().collect::<Vec<_>>();
        seen.sort_by_key(|ran| (ran.from, ran.cpu));
        if seen.len() > DRAWN_MAX {
            // How it ended says most.
            seen.drain(..seen.len() - DRAWN_MAX);
            from = seen.first().map_or(from, |first| first.from);
        }
        (from, to, seen)
    }
}

impl Sink for ExcerptRecorder {
    fn event(&mut self, event: &Event<'_>) {
        self.explain.event(event);
        if let EventKind::SchedSwitch(switch) = &event.kind {
            self.switch(event.cpu, event.time, (switch.next_pid, switch.next_comm));
        }
    }

    fn system(&mut self, system: &System) {
        self.explain.system(system);
    }

    fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) {
        self.explain.allowed(pid, cpus);
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
}
