//! What balancers tried, where a trace has probes on `detach_tasks`.
//!
//! Entry: any probe that names the function and fetches `src`, `dst` and `imb` (and `mt`, the migration type); return:
//! one that fetches `n` on the same CPU.
//!
//! Must not know: which tasks wait.

use std::collections::VecDeque;

use fairlab_event::{Cpu, Event, EventKind, Ns, TextFields};

use super::story::PullAttempt;

/// Attempts of all CPUs lately, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Pulls {
    /// With the CPU that reported it.
    attempts: VecDeque<(Cpu, PullAttempt)>,
}

/// How many are kept.
const ATTEMPTS_MAX: usize = 1024;

/// `enum migration_type` from v5.5 on.
const MIGRATION_TYPES: [&str; 4] = ["load", "util", "task", "misfit"];

impl Pulls {
    /// Takes an event, and drops what is older than the oldest wait.
    pub(super) fn hear(&mut self, event: &Event<'_>, oldest: Option<Ns>) {
        let EventKind::Kprobe { fields, .. } = event.kind else { return };
        if !fields.text().contains("detach_tasks") {
            return;
        }
        let horizon = oldest.unwrap_or(event.time);
        while self.attempts.front().is_some_and(|(_, attempt)| attempt.time < horizon) {
            self.attempts.pop_front();
        }
        if let Some(attempt) = entry(event.time, fields) {
            self.attempts.push_back((event.cpu, attempt));
            if self.attempts.len() > ATTEMPTS_MAX {
                self.attempts.pop_front();
            }
        } else if let Some(moved) = fields.unsigned("n") {
            let open =
                |(cpu, attempt): &&mut (Cpu, PullAttempt)| *cpu == event.cpu && attempt.moved.is_none();
            if let Some((_, attempt)) = self.attempts.iter_mut().rev().find(open) {
                attempt.moved = Some(moved);
            }
        }
    }

    /// Attempts to take tasks from `src` between two times.
    pub(super) fn from(&self, src: Cpu, start: Ns, end: Ns) -> impl Iterator<Item = PullAttempt> {
        let fits =
            move |attempt: &PullAttempt| attempt.src == src && attempt.time >= start && attempt.time <= end;
        self.attempts.iter().map(|(_, attempt)| *attempt).filter(fits)
    }
}

fn entry(time: Ns, fields: TextFields<'_>) -> Option<PullAttempt> {
    let cpu = |name: &str| u32::try_from(fields.unsigned(name)?).ok().map(Cpu);
    let migration_type = fields.unsigned("mt").and_then(|number| usize::try_from(number).ok());
    Some(PullAttempt {
        time,
        dest: cpu("dst")?,
        src: cpu("src")?,
        imbalance: fields.signed("imb")?,
        migration_type: migration_type.and_then(|number| MIGRATION_TYPES.get(number).copied()),
        moved: None,
    })
}
