//! Which of the scheduler's events a trace has, and which it lacks though its other events demand them.
//!
//! Must not know: what is judged.

use std::collections::BTreeMap;
use std::path::Path;

use fairlab_event::{Cpu, Pid, TaskState, Tracepoint, UntypedTracepoint};

use super::probe::At;
use super::record::{EventRecord, RecordKind};
use super::tally::DecisionKind;
use fairlab_files::LabError;

/// What to do where events are missing.
const HINT: &str = "record all events of the subsystem sched";

/// All that rests on where tasks are queued.
const QUEUED: [DecisionKind; 9] = [
    DecisionKind::Placement,
    DecisionKind::Pick,
    DecisionKind::WakeupPreempt,
    DecisionKind::TickPreempt,
    DecisionKind::QueueTime,
    DecisionKind::Lag,
    DecisionKind::WakeupCpu,
    DecisionKind::Balance,
    DecisionKind::DelayedDequeue,
];

/// An event's subsystem and name, and that it is missing.
#[derive(Clone, Copy, Debug)]
struct MissingEventName {
    system: &'static str,
    event: &'static str,
    absent: &'static str,
}

impl From<Tracepoint> for MissingEventName {
    fn from(tracepoint: Tracepoint) -> MissingEventName {
        MissingEventName {
            system: tracepoint.system(),
            event: tracepoint.name(),
            absent: tracepoint.absent(),
        }
    }
}

impl From<UntypedTracepoint> for MissingEventName {
    fn from(untyped: UntypedTracepoint) -> MissingEventName {
        MissingEventName { system: untyped.system(), event: untyped.name(), absent: untyped.absent() }
    }
}

/// An event that the trace lacks, though what it shows demands it.
#[derive(Clone, Copy, Debug)]
pub(super) struct MissingEvent {
    /// Its name.
    event: &'static str,
    /// Its subsystem.
    system: &'static str,
    /// What demands it.
    why: &'static str,
    /// What cannot be judged without it, and the reason that is given there.
    pub kinds: &'static [DecisionKind],
    pub reason: &'static str,
}

impl MissingEvent {
    /// What is to be said of it; `listed`: beside the trace it is named among the events that were on.
    pub(super) fn sentence(&self, listed: bool) -> String {
        let MissingEvent { event, system, why, .. } = self;
        let kinds = self.kinds.iter().copied().map(DecisionKind::name).collect::<Vec<_>>().join(", ");
        let hint = match listed {
            true => "events.txt says that it was recorded: give the whole trace",
            false if *system == Tracepoint::SchedSwitch.system() => HINT,
            false => "record that, too",
        };
        format!("{why}, and the trace has no {event}: not judged are {kinds}; {hint}")
    }

    /// Whether `events.txt`, a line an event, says that it was on.
    pub(super) fn is_listed(&self, events: &str) -> bool {
        let MissingEvent { event, system, .. } = self;
        let is_it = |name: &str| name == format!("{system}/*") || name == format!("{system}/{event}");
        events.lines().any(|line| {
            let mut words = line.split_whitespace();
            words.next() == Some("event") && words.next().is_some_and(is_it) && words.next() == Some("on")
        })
    }
}

/// Counts of events by kind.
#[derive(Clone, Debug, Default)]
pub(super) struct EventPresence {
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
    sleeps: u64,
    waits: u64,
    /// Tasks that enter a cgroup, and those that a probe shows changing their group.
    attaches: u64,
    group_moves: u64,
    groups_made: u64,
    ran_on: BTreeMap<Pid, Cpu>,
}

impl EventPresence {
    pub(super) fn note(&mut self, record: &EventRecord) {
        match &record.what {
            RecordKind::Switch(switch) => {
                self.switches += 1;
                let ended = |state| switch.prev_state.contains(state);
                self.ends += u64::from(ended(TaskState::DEAD) || ended(TaskState::ZOMBIE));
                if self.migrations == 0 && !switch.next_pid.is_idle() {
                    let before = self.ran_on.insert(switch.next_pid, record.cpu);
                    self.moves += u64::from(before.is_some_and(|before| before != record.cpu));
                }
            }
            RecordKind::Waking(_) => self.wakings += 1,
            RecordKind::Wakeup(_) => self.wakeups += 1,
            RecordKind::WakeupNew(_) => self.first_wakeups += 1,
            RecordKind::Runtime { .. } => self.runtimes += 1,
            RecordKind::Migrate { .. } => self.migrations += 1,
            RecordKind::Fork { .. } => self.forks += 1,
            RecordKind::Exit(_) => self.exits += 1,
            RecordKind::SleepEnds(_) => self.sleeps += 1,
            RecordKind::WaitEnds(..) => self.waits += 1,
            RecordKind::Group(_) => self.groups_made += 1,
            RecordKind::CgroupAttach { .. } => self.attaches += 1,
            RecordKind::Probe(probe) if probe.at == At::MoveGroup => self.group_moves += 1,
            _ => {}
        }
    }

    /// Whether there is what no walk can do without.
    pub(super) const fn suffices(&self) -> bool {
        self.switches > 0 && self.wakeups > 0 && self.runtimes > 0
    }

    /// What is missing of that.
    fn lacking(&self) -> Vec<&'static str> {
        let needed = [
            (Tracepoint::SchedSwitch, self.switches),
            (Tracepoint::SchedWakeup, self.wakeups),
            (Tracepoint::SchedStatRuntime, self.runtimes),
        ];
        needed.into_iter().filter(|&(_, count)| count == 0).map(|(event, _)| event.name()).collect()
    }

    /// Whether there is what no walk can do without; `looked_at`: how many events there were at the beginning that had to have it, if there were more.
    ///
    /// # Errors
    /// There is not.
    pub(super) fn check(&self, trace: &Path, looked_at: Option<u64>) -> Result<(), LabError> {
        let missing = self.lacking();
        if !missing.is_empty() {
            let who = match looked_at {
                Some(count) => format!("the first {count} events of the trace have"),
                None => "the trace has".to_string(),
            };
            let problem = format!("{}: {who} no {}", trace.display(), missing.join(", no "));
            return Err(LabError::new(problem, HINT));
        }
        Ok(())
    }

    /// What else is missing. One event without its counterpart may be cut off at an end of the trace.
    pub(super) fn missing(&self, grouped: bool) -> Vec<MissingEvent> {
        let if_so = |is_so: bool, demands: u64| if is_so { demands } else { 0 };
        // A group that is made is made to be entered.
        let entered = self.group_moves.saturating_sub(self.ends) + 2 * self.groups_made;
        // What is taken off its queue and put back, for another nice level or group, shows by its wait that ends; so does who
        // has waited since it was created.
        let requeues = self.sleeps + self.forks + if_so(grouped, self.attaches);
        let demand = |named: MissingEventName, count, demands, why, kinds| {
            let MissingEventName { system, event, absent } = named;
            (count == 0 && demands > 1).then_some(MissingEvent { event, system, why, kinds, reason: absent })
        };
        let (created, all) = ("tasks are created", &DecisionKind::ALL);
        let demanded = [
            demand(Tracepoint::SchedWaking.into(), self.wakings, self.wakeups, "tasks are woken", all),
            demand(
                Tracepoint::SchedMigrateTask.into(),
                self.migrations,
                self.moves,
                "tasks change CPUs",
                &QUEUED,
            ),
            demand(Tracepoint::SchedProcessFork.into(), self.forks, self.first_wakeups, created, &QUEUED),
            demand(Tracepoint::SchedWakeupNew.into(), self.first_wakeups, self.forks, created, &QUEUED),
            demand(Tracepoint::SchedProcessExit.into(), self.exits, self.ends, "tasks end", &QUEUED),
            demand(
                UntypedTracepoint::CgroupAttachTask.into(),
                self.attaches,
                if_so(grouped, entered),
                "tasks enter groups",
                all,
            ),
            demand(Tracepoint::SchedStatWait.into(), self.waits, requeues, "tasks wait", all),
        ];
        demanded.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn present() -> EventPresence {
        EventPresence {
            wakings: 9,
            wakeups: 9,
            first_wakeups: 3,
            forks: 3,
            waits: 9,
            ..EventPresence::default()
        }
    }

    #[test]
    fn what_is_shown_demands_what_is_not() {
        let entering = EventPresence { group_moves: 5, ends: 2, exits: 2, ..present() };
        for (present, grouped, expected) in [
            (present(), true, vec![]),
            (EventPresence { wakings: 0, ..present() }, false, vec![("sched_waking", 10)]),
            (EventPresence { moves: 2, ..present() }, false, vec![("sched_migrate_task", 9)]),
            // One may be cut off at the beginning.
            (EventPresence { moves: 1, ..present() }, false, vec![]),
            (EventPresence { forks: 0, ..present() }, true, vec![("sched_process_fork", 9)]),
            (EventPresence { ends: 2, ..present() }, false, vec![("sched_process_exit", 9)]),
            (entering.clone(), true, vec![("cgroup_attach_task", 10)]),
            (entering, false, vec![]),
        ] {
            let missing = present.missing(grouped);
            let missing = missing.iter().map(|missing| (missing.event, missing.kinds.len()));
            assert_eq!(missing.collect::<Vec<_>>(), expected, "{present:?}");
        }
    }

    #[test]
    fn a_list_beside_the_trace_tells_that_it_was_cut() {
        let silent = EventPresence { wakings: 0, ..present() };
        let [missing] = silent.missing(false)[..] else { panic!("one is missing") };
        let on = "event power/* on\nevent sched/sched_waking on\n";
        assert!(
            missing.is_listed(on)
                && !missing.is_listed("event sched/sched_waking absent\nevent power/* on\n")
        );
        let told = missing.sentence(true);
        assert!(
            told.starts_with("tasks are woken, and the trace has no sched_waking: not judged are"),
            "{told}"
        );
        assert!(told.ends_with("; events.txt says that it was recorded: give the whole trace"), "{told}");
        assert!(missing.sentence(false).ends_with("; record all events of the subsystem sched"));
    }
}
