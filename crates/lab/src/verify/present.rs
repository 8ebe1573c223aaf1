//! Which of the scheduler's events a trace has, and which it lacks though what it shows demands them.
//!
//! Must not know: what is judged.

use std::collections::BTreeMap;
use std::path::Path;

use fairlab_event::{Cpu, Pid, TaskState};

use super::record::{Record, What};
use crate::LabError;

/// What to do where events are missing.
const HINT: &str = "record all events of the subsystem sched";

/// Counts of events by kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Present {
    switches: u64,
    wakings: u64,
    wakeups: u64,
    runtimes: u64,
    migrations: u64,
    forks: u64,
    first_wakeups: u64,
    exits: u64,
    /// Switches away from a task that has ended.
    ends: u64,
    /// Switches to a task that ran on another CPU before, as long as no move is reported.
    moves: u64,
    /// What is printed only with `kernel.sched_schedstats`.
    delays: u64,
    ran_on: BTreeMap<Pid, Cpu>,
}

impl Present {
    pub(super) fn note(&mut self, record: &Record) {
        match &record.what {
            What::Switch(switch) => {
                self.switches += 1;
                let ended = |state| switch.prev_state.contains(state);
                self.ends += u64::from(ended(TaskState::DEAD) || ended(TaskState::ZOMBIE));
                if self.migrations == 0 && !switch.next_pid.is_idle() {
                    let before = self.ran_on.insert(switch.next_pid, record.cpu);
                    self.moves += u64::from(before.is_some_and(|before| before != record.cpu));
                }
            }
            What::Waking(_) => self.wakings += 1,
            What::Wakeup(_) => self.wakeups += 1,
            What::WakeupNew(_) => self.first_wakeups += 1,
            What::Runtime { .. } => self.runtimes += 1,
            What::Migrate { .. } => self.migrations += 1,
            What::Fork { .. } => self.forks += 1,
            What::Exit(_) => self.exits += 1,
            What::SleepEnds(_) | What::WaitEnds(_) => self.delays += 1,
            _ => {}
        }
    }

    /// Whether there is what no walk can do without.
    ///
    /// # Errors
    /// There is not.
    pub(super) fn check(&self, trace: &Path) -> Result<(), LabError> {
        let needed = [
            ("sched_switch", self.switches),
            ("sched_wakeup or sched_waking", self.wakeups + self.wakings),
            ("sched_stat_runtime", self.runtimes),
        ];
        let missing =
            needed.iter().filter(|(_, count)| *count == 0).map(|(name, _)| *name).collect::<Vec<_>>();
        if !missing.is_empty() {
            let problem = format!("{}: the trace has no {}", trace.display(), missing.join(", no "));
            return Err(LabError::new(problem, HINT));
        }
        // Without either, nothing tells where tasks are queued that are woken.
        if self.wakeups == 0 && self.migrations == 0 && self.moves > 1 {
            let problem = "tasks change CPUs, and the trace has neither sched_wakeup nor sched_migrate_task";
            return Err(LabError::new(format!("{}: {problem}", trace.display()), HINT));
        }
        Ok(())
    }

    /// What else is missing, a sentence each. One event without its counterpart may be cut off at an end of the trace.
    pub(super) fn lacks(&self) -> Vec<String> {
        let demanded = [
            ("sched_waking", self.wakings, self.wakeups, "tasks are woken"),
            ("sched_migrate_task", self.migrations, self.moves, "tasks change CPUs"),
            ("sched_process_fork", self.forks, self.first_wakeups, "tasks are created"),
            ("sched_wakeup_new", self.first_wakeups, self.forks, "tasks are created"),
            ("sched_process_exit", self.exits, self.ends, "tasks end"),
        ];
        let missing = demanded.iter().filter(|(_, count, demands, _)| *count == 0 && *demands > 1);
        let mut lacks = missing
            .map(|(name, _, _, why)| {
                format!("{why}, and the trace has no {name}: what hangs on it may be missed; {HINT}")
            })
            .collect::<Vec<_>>();
        if self.wakeups == 0 {
            lacks.push(
                "the trace has no sched_wakeup: when tasks that are woken are queued is concluded from sched_waking and \
                 what follows it"
                    .to_string(),
            );
        }
        if self.delays == 0 {
            lacks.push(
                "kernel.sched_schedstats was off: less is judged, of sleepers not whether they stay on their queues"
                    .to_string(),
            );
        }
        lacks
    }
}
