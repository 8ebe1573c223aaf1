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
const QUEUED: [DecisionKind; 11] = [
    DecisionKind::Placement,
    DecisionKind::Pick,
    DecisionKind::WakeupPreempt,
    DecisionKind::TickPreempt,
    DecisionKind::QueueTime,
    DecisionKind::Lag,
    DecisionKind::Reweight,
    DecisionKind::WakeupCpu,
    DecisionKind::Balance,
    DecisionKind::BalanceTry,
    DecisionKind::DelayedDequeue,
];

/// `QUEUED` without what a task that goes to sleep shows by itself.
const QUEUES: &[DecisionKind] = QUEUED.split_at(10).0;

/// What rests on when a task began to be woken.
const WOKEN: [DecisionKind; 5] = [
    DecisionKind::Pick,
    DecisionKind::WakeupPreempt,
    DecisionKind::DelayedDequeue,
    DecisionKind::WakeupCpu,
    DecisionKind::Balance,
];

/// What is known of the kernel otherwise.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelFacts {
    /// Tasks compete in groups.
    pub grouped: bool,
    /// In none that sessions make.
    pub in_cgroups: bool,
    /// Clocks follow the load.
    pub scaled: bool,
    /// It has tracepoints where entities are placed and reweighted.
    pub traced: bool,
}

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
    places: u64,
    reweights: u64,
    frequencies: u64,
    /// Probes of what tests for preemption lead to.
    resched_probes: u64,
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
            RecordKind::Frequency { .. } => self.frequencies += 1,
            RecordKind::Probe(probe) => {
                self.places += u64::from(probe.at == At::PlaceTracepoint);
                self.reweights += u64::from(probe.at == At::ReweightTracepoint);
                self.group_moves += u64::from(probe.at == At::MoveGroup);
                self.resched_probes += u64::from(matches!(probe.at, At::Resched | At::ReschedLazy));
            }
            _ => {}
        }
    }

    /// Whether there is what no walk can do without.
    pub(super) const fn suffices(&self) -> bool {
        self.switches > 0 && self.wakeups + self.wakings > 0 && self.runtimes > 0
    }

    /// What is missing of that.
    fn lacking(&self) -> Vec<&'static [Tracepoint]> {
        let needed: [(&[Tracepoint], u64); 3] = [
            (&[Tracepoint::SchedSwitch], self.switches),
            (&[Tracepoint::SchedWakeup, Tracepoint::SchedWaking], self.wakeups + self.wakings),
            (&[Tracepoint::SchedStatRuntime], self.runtimes),
        ];
        needed.into_iter().filter(|&(_, count)| count == 0).map(|(any, _)| any).collect()
    }

    /// Whether there is what no walk can do without; `looked_at`: how many events there were at the beginning that had to have it, if there were more.
    ///
    /// # Errors
    /// There is not.
    pub(super) fn check(&self, trace: &Path, looked_at: Option<u64>) -> Result<(), LabError> {
        let names = |any: &[Tracepoint]| any.iter().map(|one| one.name()).collect::<Vec<_>>().join(" or ");
        let missing = self.lacking().into_iter().map(names).collect::<Vec<_>>();
        if !missing.is_empty() {
            let who = match looked_at {
                Some(count) => format!("the first {count} events of the trace have"),
                None => "the trace has".to_string(),
            };
            let problem = format!("{}: {who} no {}", trace.display(), missing.join(", no "));
            return Err(LabError::new(problem, HINT));
        }
        // Without either, nothing tells where tasks are queued that are woken.
        if self.wakeups == 0 && self.migrations == 0 && self.moves > 1 {
            let [wakeup, migrate] =
                [Tracepoint::SchedWakeup, Tracepoint::SchedMigrateTask].map(Tracepoint::name);
            let problem = format!("tasks change CPUs, and the trace has neither {wakeup} nor {migrate}");
            return Err(LabError::new(format!("{}: {problem}", trace.display()), HINT));
        }
        Ok(())
    }

    /// What else is missing. One event without its counterpart may be cut off at an end of the trace.
    pub(super) fn missing(&self, beside: KernelFacts) -> Vec<MissingEvent> {
        let KernelFacts { grouped, in_cgroups, scaled, traced } = beside;
        let if_so = |is_so: bool, demands: u64| if is_so { demands } else { 0 };
        // A group that is made is made to be entered.
        let entered = self.group_moves.saturating_sub(self.ends) + 2 * self.groups_made;
        // What is taken off its queue and put back, for another nice level or group, shows by its wait that ends.
        let requeues = self.sleeps + if_so(grouped, self.attaches) + if_so(traced, self.wakeups);
        let forked: &[DecisionKind] =
            if grouped { &QUEUED } else { &[DecisionKind::QueueTime, DecisionKind::Balance] };
        let demand = |named: MissingEventName, count, demands, why, kinds| {
            let MissingEventName { system, event, absent } = named;
            (count == 0 && demands > 1).then_some(MissingEvent { event, system, why, kinds, reason: absent })
        };
        let frequency = if_so(scaled, self.wakings);
        // Where a concluded wakeup stands among probes is not certain.
        let probed = self.resched_probes + self.places;
        let (waken, all) = ("tasks are woken", &DecisionKind::ALL);
        let demanded = [
            demand(Tracepoint::SchedWaking.into(), self.wakings, self.wakeups, waken, &WOKEN),
            demand(Tracepoint::SchedWakeup.into(), self.wakeups, probed, waken, all),
            demand(
                Tracepoint::SchedMigrateTask.into(),
                self.migrations,
                self.moves,
                "tasks change CPUs",
                QUEUES,
            ),
            demand(
                Tracepoint::SchedProcessFork.into(),
                self.forks,
                self.first_wakeups,
                "tasks are created",
                forked,
            ),
            demand(
                Tracepoint::SchedWakeupNew.into(),
                self.first_wakeups,
                self.forks,
                "tasks are created",
                &QUEUED,
            ),
            demand(
                UntypedTracepoint::CgroupAttachTask.into(),
                self.attaches,
                if_so(in_cgroups, entered),
                "tasks enter groups",
                all,
            ),
            demand(Tracepoint::SchedPlace.into(), self.places, if_so(traced, self.wakeups), waken, all),
            demand(
                UntypedTracepoint::SchedReweight.into(),
                self.reweights,
                if_so(traced && grouped, self.places),
                "entities of groups are placed",
                all,
            ),
            demand(Tracepoint::SchedStatWait.into(), self.waits, requeues, "tasks wait", all),
            demand(
                UntypedTracepoint::CpuFrequency.into(),
                self.frequencies,
                frequency,
                "clocks follow the load",
                &[DecisionKind::WakeupCpu],
            ),
        ];
        demanded.into_iter().flatten().collect()
    }

    /// What is concluded, or less is judged, since other events are missing, a sentence each.
    pub(super) fn lacks(&self) -> Vec<String> {
        let mut lacks = Vec::new();
        if self.wakeups == 0 {
            let [wakeup, waking] = [Tracepoint::SchedWakeup, Tracepoint::SchedWaking].map(Tracepoint::name);
            lacks.push(format!(
                "the trace has no {wakeup}: when a woken task was queued is concluded from {waking} and later events"
            ));
        }
        if self.exits == 0 && self.ends > 1 {
            let exit = Tracepoint::SchedProcessExit.name();
            lacks.push(format!(
                "tasks end, and the trace has no {exit}: when is concluded from the last that they do"
            ));
        }
        if self.sleeps + self.waits == 0 {
            lacks.push(
                "kernel.sched_schedstats was off: less is judged, of sleepers not whether they stay on their queues"
                    .to_string(),
            );
        }
        lacks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARE: KernelFacts = KernelFacts { grouped: false, in_cgroups: false, scaled: false, traced: false };

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

    fn missing(present: &EventPresence, grouped: bool) -> Vec<(&'static str, usize)> {
        let missing = present.missing(KernelFacts { grouped, in_cgroups: grouped, ..BARE });
        missing.iter().map(|missing| (missing.event, missing.kinds.len())).collect()
    }

    #[test]
    fn what_is_shown_demands_what_is_not() {
        assert_eq!(missing(&present(), true), []);
        assert_eq!(missing(&EventPresence { wakings: 0, ..present() }, false), [("sched_waking", 5)]);
        assert_eq!(missing(&EventPresence { moves: 2, ..present() }, false), [("sched_migrate_task", 10)]);
        // One may be cut off at the beginning.
        assert_eq!(missing(&EventPresence { moves: 1, ..present() }, false), []);
        let forkless = EventPresence { forks: 0, ..present() };
        assert_eq!(missing(&forkless, false), [("sched_process_fork", 2)]);
        assert_eq!(missing(&forkless, true), [("sched_process_fork", 11)]);
        let entering = EventPresence { group_moves: 5, ends: 2, ..present() };
        assert_eq!(
            (missing(&entering, true), missing(&entering, false)),
            (vec![("cgroup_attach_task", 12)], vec![])
        );
    }

    #[test]
    fn a_list_beside_the_trace_tells_that_it_was_cut() {
        let [missing] = present().missing(KernelFacts { scaled: true, ..BARE })[..] else {
            panic!("one is missing")
        };
        let on = "event sched/* on\nevent power/cpu_frequency on\n";
        assert!(
            missing.is_listed(on)
                && !missing.is_listed("event power/cpu_frequency absent\nevent sched/* on\n")
        );
        assert_eq!(
            missing.sentence(true),
            "clocks follow the load, and the trace has no cpu_frequency: not judged are wakeup_cpu; events.txt says that it \
             was recorded: give the whole trace"
        );
        assert!(missing.sentence(false).ends_with("; record that, too"));
    }
}
