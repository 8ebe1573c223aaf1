//! What balancing tried while a task waited, as a modelled kernel tells it.
//!
//! Must not know: which report wants it.

use std::fmt::Write as _;

use fairlab_analysis::explain::story::Story;
use fairlab_event::{Cpu, Event, EventKind, GenericValue, Ns, Pid, Sink, TextFields, UntypedTracepoint};
use fairlab_kernel::balance::{BalancedReason, TaskReason};

/// How many tries of CPUs that idled meanwhile are told.
const TRIES_TOLD: usize = 12;

/// Every try of balancing in a run.
#[derive(Default)]
pub(crate) struct Tries {
    looks: Vec<Look>,
}

impl Sink for Tries {
    fn event(&mut self, event: &Event<'_>) {
        if let EventKind::Other { name, fields } = event.kind
            && name == UntypedTracepoint::DecidedBalance.name()
        {
            self.looks.push(Look::of(event.time, fields));
        }
    }
}

impl Tries {
    /// What each pass over the task's queue did with it, and what CPUs that idled meanwhile decided; nothing where nothing is told.
    pub fn during(&self, story: &Story) -> String {
        if self.looks.is_empty() { String::new() } else { passes_during(story, &self.looks) }
    }
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

impl Look {
    /// As a modelled kernel tells it.
    fn of(time: Ns, fields: TextFields<'_>) -> Look {
        let text = |name: &str| match fields.get(name) {
            Some(GenericValue::Text(text)) => text,
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
        let outcome =
            match (described(BalancedReason::CLAUSES, text("reason")), count("moved"), count("push")) {
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
