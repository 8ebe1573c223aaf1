//! Events that a trace lacks, told by those that it has: what can be concluded without them, and what is then not taken as
//! shown.
//!
//! Must not know: which events the recorder was asked for.

use std::collections::BTreeMap;

use fairlab_event::{Pid, Switch, TaskState, Tracepoint};

use super::super::probe::At;
use super::super::record::{EventRecord, RecordKind};
use super::super::tally::DecisionKind;
use super::Walker;
use super::truth::in_interrupt;

/// How many sleeps without an event at their end show that events of that kind are not recorded.
const SLEEPS_TO_TELL: u64 = 8;

/// What a trace lacks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TraceLacks {
    /// `sched_stat_sleep`, `_blocked` or `_wait`, and has others of them: that a sleep ends without a word tells nothing.
    delays: bool,
    /// `sched_process_exit`.
    exits: bool,
    /// Probes of `sched_move_task()`, and has the events that follow it.
    pub group_moves: bool,
}

/// Sleeps of one sort that end by a wakeup, and those whose length the trace tells.
#[derive(Clone, Copy, Debug, Default)]
struct SleepCounts {
    woken: u64,
    told: u64,
}

impl SleepCounts {
    fn are_untold(self) -> bool {
        self.told == 0 && self.woken >= SLEEPS_TO_TELL
    }
}

impl Walker {
    /// Looks for what is lacking, as far as is looked ahead.
    pub(super) fn find_lacking(&mut self) {
        self.lacking = TraceLacks {
            delays: self.by_lag && self.lacks_delays(),
            exits: self.lacks_exits(),
            group_moves: self.lacks_group_moves(),
        };
        if self.lacking.delays {
            self.window.forget(is_sleep_end);
            self.seen.sleeps_end = false;
        }
    }

    /// Takes back what rests on how sleeps end, where some end without an event. Returns the notice for that.
    pub fn settle_delays(&mut self) -> Option<String> {
        const REASON: &str = "sleeps end without a word";
        if !self.lacking.delays {
            return None;
        }
        self.tally.withdraw(
            &[
                DecisionKind::DelayedDequeue,
                DecisionKind::Lag,
                DecisionKind::WakeupCpu,
                DecisionKind::Balance,
            ],
            REASON,
        );
        let ends = [Tracepoint::SchedStatWait, Tracepoint::SchedStatSleep, Tracepoint::SchedStatBlocked];
        let [wait, sleep, blocked] = ends.map(Tracepoint::name);
        Some(format!(
            "the trace has not all of {wait}, {sleep} and {blocked}: of sleepers not whether they stay on their queues is \
             judged, nor lag, wakeup_cpu, balance; record all events of the subsystem sched"
        ))
    }

    /// Whether an event that is read now is not taken as shown.
    pub(super) fn is_partly_shown(&self, what: &RecordKind) -> bool {
        self.lacking.delays && is_sleep_end(what)
    }

    /// Whether the trace tells the length of some sleeps and waits, and of no others of their sort. Where probes show sleepers
    /// leave, nothing hangs on that.
    fn lacks_delays(&self) -> bool {
        let tells = |record: &EventRecord| matches!(&record.what, RecordKind::Probe(probe) if probe.at == At::DequeueEntities);
        if self.window.all().any(tells) {
            return false;
        }
        let mut blocked: BTreeMap<Pid, bool> = BTreeMap::new();
        let mut sleeps = [SleepCounts::default(); 2];
        let mut waits = 0_u64;
        for record in self.window.all() {
            match &record.what {
                RecordKind::Switch(switch) if switch.prev_prio.nice().is_some() => {
                    blocked.extend(is_blocked(switch).map(|is_blocked| (switch.prev_pid, is_blocked)));
                }
                RecordKind::SleepEnds(pid) => {
                    if let Some(&sort) = blocked.get(pid) {
                        sleeps[usize::from(sort)].told += 1;
                    }
                }
                RecordKind::Wakeup(wakeup) => {
                    if let Some(sort) = blocked.remove(&wakeup.pid) {
                        sleeps[usize::from(sort)].woken += 1;
                    }
                }
                RecordKind::WaitEnds(..) => waits += 1,
                _ => {}
            }
        }
        let told = sleeps[0].told + sleeps[1].told;
        told > 0 && (waits == 0 || sleeps.iter().any(|sort| sort.are_untold()))
    }

    fn lacks_group_moves(&self) -> bool {
        let begins = |record: &EventRecord| matches!(&record.what, RecordKind::Probe(probe) if probe.at == At::MoveGroup);
        let ends = |record: &EventRecord| matches!(record.what, RecordKind::CgroupAttach { .. });
        self.window.all().any(ends) && !self.window.all().any(begins)
    }

    fn lacks_exits(&self) -> bool {
        let is_exit = |record: &EventRecord| matches!(record.what, RecordKind::Exit(_));
        let is_end = |record: &EventRecord| matches!(&record.what, RecordKind::Switch(switch) if ends(switch.prev_state));
        !self.window.all().any(is_exit) && self.window.all().any(is_end)
    }

    /// A task that is dead when it is next switched out has begun to end by its last event before. That is leaving its groups,
    /// for which it is put back on its queue, or waking a task that waits for it.
    pub(super) fn conclude_exit(&mut self, record: &EventRecord) {
        if !self.lacking.exits || in_interrupt(record) {
            return;
        }
        let pid = record.context;
        let begins = match &record.what {
            RecordKind::Switch(switch) => ends(switch.prev_state),
            RecordKind::Probe(probe) if probe.at == At::MoveGroup && probe.task() == Some(pid) => {
                self.sched.exits_move() && self.left_of_life(pid).is_some_and(|left| left.moves == 0)
            }
            RecordKind::Runtime { pid: charged, .. } if *charged == pid => {
                let leaves = self.sched.exits_move() || self.recording.autogroups_enabled;
                leaves
                    && self.is_requeued_next(pid)
                    && self.left_of_life(pid) == Some(GroupMoveCounts { moves: 0, requeues: 1 })
            }
            RecordKind::Waking(_) => {
                let next = self.next_switch(record.cpu).filter(|switch| switch.prev_pid == pid);
                next.is_some_and(|switch| ends(switch.prev_state))
                    && self.left_of_life(pid) == Some(GroupMoveCounts { moves: 0, requeues: 0 })
            }
            _ => false,
        };
        if begins && self.tasks.get(&pid).is_some_and(|info| !info.exiting) {
            self.on_exit(pid);
        }
    }

    /// What a task does until it is dead; `None` if it sleeps before, or lives on.
    fn left_of_life(&self, pid: Pid) -> Option<GroupMoveCounts> {
        let mut left = GroupMoveCounts::default();
        for record in self.window.of_task(pid) {
            match &record.what {
                RecordKind::Switch(switch) if switch.next_pid == pid => left.requeues -= 1,
                RecordKind::Switch(switch) if ends(switch.prev_state) => return Some(left),
                RecordKind::Switch(switch) if !switch.prev_state.is_runnable() => return None,
                RecordKind::WaitEnds(..) => left.requeues += 1,
                RecordKind::Probe(probe) if probe.at == At::MoveGroup => left.moves += 1,
                _ => {}
            }
        }
        None
    }
}

/// How often a task changes its group, and is taken off its queue and put back while it runs: that a wait ends without a switch
/// to it shows that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct GroupMoveCounts {
    moves: u32,
    requeues: i32,
}

fn is_sleep_end(what: &RecordKind) -> bool {
    matches!(what, RecordKind::SleepEnds(_))
}

/// Whether a task that leaves its CPU sleeps so that signals do not wake it, which counts as blocked; `None` if it does not
/// sleep.
fn is_blocked(switch: &Switch) -> Option<bool> {
    let state = switch.prev_state;
    let blocks = [TaskState::UNINTERRUPTIBLE, TaskState::IDLE].iter().any(|&sort| state.contains(sort));
    (blocks || state.contains(TaskState::INTERRUPTIBLE)).then_some(blocks)
}

fn ends(state: TaskState) -> bool {
    [TaskState::ZOMBIE, TaskState::DEAD].iter().any(|&end| state.contains(end))
}
