//! What passes over queues moved, counted and told.
//!
//! Must not know: which scenario wants it.

use std::fmt::Write as _;

use fairlab_analysis::balancing::Balancing;
use fairlab_analysis::explain::story::{Story, WaitCause};
use fairlab_analysis::explain::{Explain, ExplainOptions};
use fairlab_event::{Cpu, Event, EventKind, FieldValue, Fields, Ns, Pid, Sink, Untyped};
use fairlab_kernel::balance::{Balanced, MigrationType, TaskReason};
use fairlab_kernel::schedstat::CpuIdleType;

/// By what passes over queues (`detach_tasks()`) are told apart: for what the CPU balances, at which level, in what
/// measure.
pub(super) type PassKind = (CpuIdleType, &'static str, MigrationType);

/// How many passes there were, and how many of them moved something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Passes {
    pub tries: u64,
    pub moved: u64,
}

/// Counts passes.
#[derive(Clone, Debug, Default)]
pub(super) struct PassTally {
    from: Ns,
    balancing: Balancing,
}

impl PassTally {
    /// Counts from a time on.
    pub fn new(from: Ns) -> PassTally {
        PassTally { from, ..PassTally::default() }
    }

    fn named(&self, name: &str) -> Passes {
        let metrics = self.balancing.metrics();
        let count = |name: &str| {
            metrics.iter().find(|(known, _)| known == name).map_or(0, |&(_, count)| count as u64)
        };
        Passes { tries: count(name), moved: count(&format!("{name}_moving")) }
    }

    /// The passes of one kind.
    pub fn of(&self, (idle, level, measure): PassKind) -> Passes {
        let idle = match idle {
            CpuIdleType::NotIdle => "busy",
            CpuIdleType::Idle => "idle",
            CpuIdleType::NewlyIdle => "newidle",
        };
        self.named(&format!("lb_passes_{idle}_{level}_{}", measure.name()))
    }

    /// The passes of idle CPUs in one measure, at whatever level.
    pub fn of_idle_cpus(&self, measure: MigrationType) -> Passes {
        self.named(&format!("lb_passes_idle_{}", measure.name()))
    }
}

impl Sink for PassTally {
    fn event(&mut self, event: &Event<'_>) {
        if event.time >= self.from {
            self.balancing.event(event);
        }
    }
}

/// Among so many of the longest waits one after a wakeup is looked for.
const STORIES: usize = 1000;

/// How many tries of CPUs that idled meanwhile are told.
const TRIES_TOLD: usize = 12;

/// Watches a short run: remembers its longest wait, and every try of balancing.
pub(super) struct Witness {
    explain: Explain,
    looks: Vec<Look>,
}

/// A pass over a queue, or a try that came to none.
struct Look {
    time: Ns,
    cpu: Cpu,
    source: Option<Cpu>,
    text: String,
    /// The tasks that were looked at, and what became of each.
    tasks: Vec<(Pid, String)>,
}

impl Witness {
    /// Nothing seen yet.
    pub fn new() -> Witness {
        Witness {
            explain: Explain::new(ExplainOptions { worst: STORIES, ..ExplainOptions::default() }),
            looks: Vec::new(),
        }
    }

    /// The longest wait after a wakeup as a story, with the passes that looked at the task; `None` if there was no wait.
    pub fn tell(self) -> Option<String> {
        let Witness { explain, looks } = self;
        let explanation = explain.finish().ok()?;
        let after_wakeup = |story: &&Story| story.cause == WaitCause::Wakeup;
        let story = explanation.stories.iter().find(after_wakeup).or(explanation.stories.first())?;
        Some(format!("{story}{}", passes_during(story, &looks)))
    }
}

/// What each pass over the task's queue did with it, and what CPUs that idled meanwhile decided.
fn passes_during(story: &Story, looks: &[Look]) -> String {
    let over_its_queue = |look: &Look| {
        let stay = story.stays.iter().find(|stay| stay.from <= look.time && look.time <= stay.to);
        stay.is_some_and(|stay| Some(stay.cpu) == look.source)
    };
    let idled = |cpu: Cpu| story.idle.iter().any(|idle| idle.cpu == cpu);
    let tries = looks.iter().filter(|look| story.start <= look.time && look.time <= story.end);
    let tries = tries.filter(|look| over_its_queue(look) || idled(look.cpu)).collect::<Vec<_>>();
    let passes = tries.iter().filter(|look| over_its_queue(look)).count();
    let mut text = format!(
        "   Balancing meanwhile: {passes} passes over its queue, {} tries of CPUs that idled came to none.\n",
        tries.len() - passes
    );
    for look in tries.iter().take(TRIES_TOLD) {
        let after = look.time.since(story.start).as_ms_f64();
        let _ = writeln!(text, "      after {after:.3} ms CPU {} {}", look.cpu, look.text);
        for (pid, became) in &look.tasks {
            let who =
                if *pid == story.task.pid { "the waiting task".to_string() } else { format!("task {pid}") };
            let _ = writeln!(text, "         {who}: {became}");
        }
    }
    if tries.len() > TRIES_TOLD {
        let _ = writeln!(text, "      and {} more", tries.len() - TRIES_TOLD);
    }
    text
}

impl Sink for Witness {
    fn event(&mut self, event: &Event<'_>) {
        match event.kind {
            EventKind::Other { name, fields } if name == Untyped::DecidedBalance.name() => {
                self.looks.push(Look::of(event.time, fields));
            }
            _ => self.explain.event(event),
        }
    }
}

impl Look {
    /// As a modelled kernel tells it.
    fn of(time: Ns, fields: Fields<'_>) -> Look {
        let text = |name: &str| match fields.get(name) {
            Some(FieldValue::Text(text)) => text,
            _ => "",
        };
        let count = |name: &str| fields.unsigned(name).unwrap_or(0);
        let why = match text("idle") {
            "NewlyIdle" => "goes idle and looks",
            "Idle" => "is idle and looks",
            _ => "is busy and looks",
        };
        let described = |clauses: &[(&str, &'static str)], reason: &str| {
            clauses.iter().find(|(name, _)| *name == reason).map(|&(_, clause)| clause)
        };
        let outcome = match (described(Balanced::CLAUSES, text("reason")), count("moved"), count("push")) {
            (Some(reason), ..) => reason,
            (None, 0, 1) => "nothing moved, and it sends for the stopper",
            (None, 0, _) => "nothing moved",
            _ => "moved",
        };
        let source = fields.unsigned("source").map(|cpu| Cpu(cpu as u32));
        let wanted = source.map_or(String::new(), |source| {
            let amount = fields.signed("amount").unwrap_or(0);
            format!(" at CPU {source}, for {amount} of type {}", text("measure"))
        });
        let became = |look: &str| {
            let mut parts = look.split(':');
            let pid = Pid(parts.next()?.parse().ok()?);
            let reason = described(TaskReason::CLAUSES, parts.next()?)?;
            let size = parts.next().filter(|size| *size != "0").map(|size| format!(" ({size})"));
            Some((pid, format!("{reason}{}", size.unwrap_or_default())))
        };
        Look {
            time,
            cpu: Cpu(count("cpu") as u32),
            source,
            text: format!("{why} at level {}{wanted}: {outcome}", text("level")),
            tasks: text("looks").split(',').filter_map(became).collect(),
        }
    }
}
