//! What passes over queues moved, counted and told.
//!
//! Must not know: which scenario wants it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fairlab_analysis::explain::story::{Story, WaitCause};
use fairlab_analysis::explain::{Explain, ExplainOptions};
use fairlab_event::{Cpu, Event, Ns, Pid};
use fairlab_kernel::Scheduler;
use fairlab_kernel::balance::{BalanceNote, Imbalance, MigrationType, TaskLook};
use fairlab_kernel::schedstat::CpuIdleType;

use fairlab_lab::Onlooker;

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
    passes: BTreeMap<PassKind, Passes>,
    /// Running tasks that stoppers were sent for.
    pub pushes: u64,
}

impl PassTally {
    /// Counts from a time on.
    pub fn new(from: Ns) -> PassTally {
        PassTally { from, ..PassTally::default() }
    }

    /// Takes the next try of balancing.
    pub fn note(&mut self, note: &BalanceNote) {
        if note.time < self.from {
            return;
        }
        let decision = &note.decision;
        self.pushes += u64::from(decision.push);
        for pull in &decision.pulls {
            let kind = (decision.idle, note.level, decision.imbalance.migration);
            let passes = self.passes.entry(kind).or_default();
            passes.tries += 1;
            passes.moved += u64::from(pull.moved().next().is_some());
        }
    }

    /// The passes of one kind.
    pub fn of(&self, kind: PassKind) -> Passes {
        self.passes.get(&kind).copied().unwrap_or_default()
    }

    /// The passes of idle CPUs in one measure, at whatever level.
    pub fn of_idle_cpus(&self, measure: MigrationType) -> Passes {
        let chosen = self
            .passes
            .iter()
            .filter(|((idle, _, migration), _)| *idle != CpuIdleType::NotIdle && *migration == measure);
        chosen.fold(Passes::default(), |sum, (_, passes)| Passes {
            tries: sum.tries + passes.tries,
            moved: sum.moved + passes.moved,
        })
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

impl Onlooker for Witness {
    fn event(&mut self, event: &Event<'_>) {
        fairlab_event::Sink::event(&mut self.explain, event);
    }

    fn wants_balancing(&self) -> bool {
        true
    }

    fn balanced(&mut self, note: &BalanceNote, kernel: &Scheduler) {
        let decision = &note.decision;
        let why = match decision.idle {
            CpuIdleType::NewlyIdle => "goes idle and looks",
            CpuIdleType::Idle => "is idle and looks",
            CpuIdleType::NotIdle => "is busy and looks",
        };
        let looked = decision.pulls.iter().flat_map(|pull| &pull.looks);
        let became = |look: &TaskLook| {
            let size = if look.size > 0 { format!(" ({})", look.size) } else { String::new() };
            (kernel.task(look.task).pid(), format!("{}{size}", look.reason.describe()))
        };
        let outcome = match (decision.balanced, decision.moved(), decision.push) {
            (Some(reason), ..) => reason.describe(),
            (None, 0, true) => "nothing moved, and it sends for the stopper",
            (None, 0, false) => "nothing moved",
            _ => "moved",
        };
        let wanted = match (decision.source, decision.imbalance) {
            (Some(source), Imbalance { migration, amount }) => {
                format!(" at CPU {source}, for {amount} of type {}", migration.name())
            }
            _ => String::new(),
        };
        self.looks.push(Look {
            time: note.time,
            cpu: decision.cpu,
            source: decision.source,
            text: format!("{why} at level {}{wanted}: {outcome}", note.level),
            tasks: looked.map(became).collect(),
        });
    }
}
