//! The summary of a trace: how long tasks waited, how often they switched and moved. How busy the machine was, and for how long a
//! CPU idled while a task waited.
//!
//! Definitions (those of `systing-analyze sched aggregate`, if it has the metric):
//! * *wakeup latency*: from the wakeup of a sleeping task to its running;
//! * *fork wait*: from the first queueing of a new task to its running;
//! * *preemption wait*: from leaving a CPU runnable (preempted or yielded) to running again;
//! * *involuntary switch*: the task that leaves stays runnable, as `nonvoluntary_ctxt_switches` counts it. This includes
//!   yields; they are also counted apart if the trace allows it;
//! * *migration*: `sched_migrate_task`, by what moved the task. New tasks that begin on another CPU than their creator count
//!   beside them;
//! * *runqueue depth*: the running and the waiting tasks, weighted by time;
//! * *unconserved time*: a CPU idles while, in the same scope, a task that may run there waits behind another one. Traces do
//!   not show affinities, so a task counts as allowed everywhere. Exceptions: files beside the trace bind it, or it is a
//!   kernel thread named after its CPU.
//!
//! A wait that goes on when the trace ends is listed, not measured. A wait during which events were lost is counted apart.
//!
//! Must not know: how the answer reaches a user.

pub mod answer;
mod pairs;
mod queues;
mod report;
mod spread;
pub mod text;

use std::collections::BTreeMap;

use fairlab_event::{Comm, Cpu, Event, EventKind, Ns, Pid, Sink, System, Tracepoint};

use crate::blame::{Blame, BlameOptions, RuleWords};
use crate::by_name::MachinePlaces;
use crate::idleness::Idled;
pub use crate::idleness::{Scope, Unconserved};
use crate::named::NameCounter;
use crate::selector::{NothingChosen, SelectorState, TraceSelector};
use crate::tracker::{
    CPUS_MAX, Departure, EndedWait, EnteredCpu, LeftCpu, MoveCause, StayOnCpu, Tracker, TrackerChange,
    UnfinishedStay, WaitCause,
};
use crate::{Census, MissingEvents, Needs};
use pairs::Pairs;
pub use queues::{CpuTime, QueueDepths};
use queues::{QueueTimes, Queues};
pub use report::{
    Censored, Migrations, SummaryReport, SwitchCounts, SwitchPair, TaskWaitSummary, ThrottlingSums,
    WaitSpreads,
};
pub use spread::{PERCENTILES, SpreadPercentile, ValueSpread};

/// What is known besides the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SummaryOptions {
    /// The CPUs of each last-level cache; empty: not known, the machine is taken as one.
    pub llcs: Vec<Vec<Cpu>>,
    /// The CPUs of each NUMA node; empty: not known.
    pub nodes: Vec<Vec<Cpu>>,
    /// What CPUs share, by which placement is described.
    pub places: Option<MachinePlaces>,
}

/// The events that the summary is made from.
pub const NEEDS: Needs = Needs {
    analysis: "summary",
    required: &[Tracepoint::SchedSwitch],
    one_of: (&[Tracepoint::SchedWaking, Tracepoint::SchedWakeup], "there are no wakeup latencies"),
    useful: &[
        (
            Tracepoint::SchedMigrateTask,
            "migrations are not counted, and waiting tasks are taken to stay where they were queued",
        ),
        (Tracepoint::SchedStatRuntime, "yields are not told from preemptions on the way to user mode"),
    ],
};

/// Sums up the events that it is given.
#[derive(Clone, Debug)]
pub struct TraceSummary {
    options: SummaryOptions,
    tracker: Tracker,
    /// For each task of the tracker.
    tasks: Vec<TaskSums>,
    queues: Queues,
    switches: SwitchCounts,
    migrations: Migrations,
    pairs: Pairs,
    census: Census,
    system: System,
    choosing: SelectorState,
    /// How often groups had been throttled when the stretch began, and for how long.
    throttled_before: (u64, Ns),
    /// Sums by name, from the first event on.
    named: Option<Box<NameCounter>>,
    /// The numbers of the sets of CPUs that tasks are bound to.
    bound: BTreeMap<Pid, Option<u32>>,
    /// Whom each name waited behind.
    waiters: Option<Box<Blame>>,
}

/// So many of the names that waited most are told with whom they waited behind.
const WAITERS: usize = 10;

/// The sums of one task.
#[derive(Clone, Debug, Default)]
struct TaskSums {
    wakeups: ValueSpread,
    forks: ValueSpread,
    preemptions: ValueSpread,
    throttled: ValueSpread,
    run: Ns,
    run_cut: Ns,
    switches: SwitchCounts,
    migrations: u64,
    /// Waits across holes.
    crossed: u64,
}

impl TaskSums {
    /// It ran; `is_cut`: the beginning or the end of its stay is not in the trace.
    fn ran(&mut self, time: Ns, is_cut: bool) {
        self.run = self.run.saturating_add(time);
        if is_cut {
            self.run_cut = self.run_cut.saturating_add(time);
        }
    }
}

impl TraceSummary {
    /// Nothing counted yet.
    pub fn new(options: SummaryOptions) -> TraceSummary {
        let numbered = |kind: &str, sets: &[Vec<Cpu>]| {
            let scope = |(number, cpus): (usize, &Vec<Cpu>)| Scope {
                name: format!("{kind} {number}"),
                cpus: cpus.clone(),
            };
            sets.iter().enumerate().map(scope).collect::<Vec<_>>()
        };
        let scopes =
            [vec![Scope::machine()], numbered("node", &options.nodes), numbered("llc", &options.llcs)]
                .concat();
        TraceSummary {
            options,
            tracker: Tracker::default(),
            tasks: Vec::new(),
            queues: Queues::new(scopes),
            switches: SwitchCounts::default(),
            migrations: Migrations::default(),
            pairs: Pairs::default(),
            census: Census::default(),
            system: System::default(),
            choosing: SelectorState::default(),
            throttled_before: (0, Ns::ZERO),
            named: None,
            bound: BTreeMap::new(),
            waiters: None,
        }
    }

    /// Has whom each name waited behind summed besides, with rules of the scheduler called so.
    #[must_use]
    pub fn with_culprits(self, rule_words: RuleWords) -> TraceSummary {
        let chosen = self.choosing.chosen().clone();
        let waiters = Blame::new(BlameOptions { chosen, by_thread: false, rule_words }).of_each_waiter();
        TraceSummary { waiters: Some(Box::new(waiters)), ..self }
    }

    /// The sums of some of the tasks, or of a stretch of time.
    #[must_use]
    pub fn of(self, chosen: TraceSelector) -> TraceSummary {
        TraceSummary { choosing: SelectorState::new(chosen), ..self }
    }

    /// Whether the events so far hold what was chosen.
    ///
    /// # Errors
    /// They do not.
    pub fn check(&self) -> Result<(), NothingChosen> {
        self.choosing.check()
    }

    /// The sums of all events so far.
    ///
    /// # Errors
    /// There was no `sched_switch`.
    pub fn finish(mut self) -> Result<SummaryReport, MissingEvents> {
        let mut notices = NEEDS.check(&self.census)?;
        notices.extend(self.assumptions());
        let (first, end) = self.tracker.span().unwrap_or_default();
        let start = self.choosing.time().from.map_or(first, |from| from.clamp(first, end));
        let censored = self.censored(end);
        self.count_running();
        let machine = self.system.cpus.map_or(0, |cpus| (cpus as usize).min(CPUS_MAX));
        let nr_cpus = machine.max(self.tracker.cpus().len());
        let QueueTimes { cpus, depths, idled } = self.queues.finish((start, end), nr_cpus, &self.tracker);
        let tells_cpus = self.choosing.is_everybody() && !self.tracker.is_of_tasks();
        notices.extend(of_silent(&idled).filter(|_| !self.tracker.is_of_tasks()));
        let by_name = self.named.take().map(|named| named.finish(end, &self.tracker)).unwrap_or_default();
        let tasks = waits_of_tasks(&self.tracker, self.tasks);
        let mut all = WaitSpreads::default();
        tasks.iter().for_each(|task| all.merge(&task.waits));
        let waiters = self.waiters.map(|waiters| waiters.finish_each_waiter()).transpose()?;
        let mut waiting = waiters.unwrap_or_default();
        waiting.truncate(WAITERS);
        let top = self.pairs.top(SwitchPair::KEPT);
        let name = |task: u32| (self.tracker.task(task).comm, self.tracker.task(task).pid);
        let pair = |((prev, next), count)| SwitchPair { prev: name(prev), next: name(next), count };
        Ok(SummaryReport {
            start,
            end,
            events: if self.choosing.is_all() { self.census.total() } else { self.choosing.hits() },
            tells_cpus,
            system: self.system,
            all,
            comms: waits_of_comms(&tasks),
            tasks,
            waiting,
            by_name,
            switches: self.switches,
            migrations: self.migrations,
            cpus: if tells_cpus { cpus } else { Vec::new() },
            nr_cpus,
            depths: if tells_cpus { depths } else { QueueDepths::default() },
            unconserved: if tells_cpus { idled.unconserved } else { Vec::new() },
            pairs: top.into_iter().map(pair).collect(),
            pairs_floor: self.pairs.floor(),
            censored,
            throttling: (self.choosing.is_everybody() && self.tracker.throttling().tells()).then(|| {
                let (count, time) = self.tracker.throttling().totals(end);
                let (before, time_before) = self.throttled_before;
                let (count, time) = (count.saturating_sub(before), time.since(time_before));
                ThrottlingSums { count, time, is_concluded: self.tracker.throttling().is_concluded() }
            }),
            losses: self.tracker.losses(),
            late_events: self.tracker.oddities().late_events,
            switch_gaps: self.tracker.oddities().switch_gaps,
            notices,
        })
    }

    /// What was taken for granted, one clause each.
    fn assumptions(&self) -> Vec<String> {
        let mut clauses = Vec::new();
        if self.options.llcs.is_empty() && !self.tracker.is_of_tasks() {
            clauses.push(
                "the trace does not tell the topology: the machine is taken as one cache domain".to_string(),
            );
        }
        clauses.extend(self.tracker.notices(self.census.total()));
        clauses
    }

    fn censored(&self, end: Ns) -> Vec<Censored> {
        let mut censored: Vec<Censored> = self
            .tracker
            .open_waits()
            .filter(|&(index, ..)| self.choosing.means(self.tracker.task(index).pid))
            .map(|(index, wait, crossed_loss)| {
                let task = self.tracker.task(index);
                Censored {
                    comm: task.comm,
                    pid: task.pid,
                    cpu: task.waits_on(),
                    since: wait.start,
                    so_far: end.since(wait.start),
                    cause: wait.cause,
                    crossed_loss,
                }
            })
            .collect();
        censored.sort_by(|one, other| other.so_far.cmp(&one.so_far).then(one.pid.cmp(&other.pid)));
        censored
    }

    /// Tasks that run when the trace ends have run until then.
    fn count_running(&mut self) {
        for stay in self.tracker.last_stays().collect::<Vec<_>>() {
            self.ran(&stay, true);
        }
    }

    fn sums(&mut self, task: u32) -> &mut TaskSums {
        let task = task as usize;
        if self.tasks.len() <= task {
            self.tasks.resize_with(task + 1, TaskSums::default);
        }
        &mut self.tasks[task]
    }

    /// A task has stayed on a CPU; `is_cut`: the stay's beginning or end is not in the trace.
    fn ran(&mut self, stay: &UnfinishedStay, is_cut: bool) {
        let until = stay.since.saturating_add(stay.ran);
        let part = self.choosing.time().part(stay.since, until);
        if self.choosing.means(self.tracker.task(stay.task).pid) {
            self.sums(stay.task).ran(part, is_cut || part < stay.ran);
        }
    }

    fn counts(&self, task: u32, now: Ns) -> bool {
        self.choosing.is_all() || self.choosing.counts(self.tracker.task(task).pid, now)
    }

    fn left(&mut self, left: &LeftCpu, stay: &StayOnCpu, cpu: Cpu) {
        let whole =
            UnfinishedStay { task: left.task, cpu, number: 0, since: stay.seen_since, ran: stay.known() };
        self.ran(&whole, stay.since.is_none());
        if !self.counts(left.task, stay.to) {
            return;
        }
        self.switches.count(left.how);
        let sums = self.sums(left.task);
        sums.switches.count(left.how);
        sums.crossed += u64::from(left.lost_wait);
    }

    fn waited(&mut self, task: u32, ended: &EndedWait, now: Ns) {
        if !self.counts(task, now) {
            return;
        }
        let sums = self.sums(task);
        if !ended.crossed_loss && ended.throttled > Ns::ZERO {
            sums.throttled.record(ended.throttled.0);
        }
        if ended.crossed_loss {
            sums.crossed += 1;
            return;
        }
        let spread = match ended.wait.cause {
            WaitCause::Wakeup => &mut sums.wakeups,
            WaitCause::New => &mut sums.forks,
            _ => &mut sums.preemptions,
        };
        spread.record(ended.length.0);
    }

    fn moved(&mut self, task: u32, cause: MoveCause) {
        let migrations = &mut self.migrations;
        *match cause {
            MoveCause::Wakeup => &mut migrations.wakeup,
            MoveCause::Asked => &mut migrations.asked,
            MoveCause::Softirq => &mut migrations.softirq,
            MoveCause::NewIdle => &mut migrations.new_idle,
            MoveCause::Stopper => &mut migrations.stopper,
            MoveCause::Other => &mut migrations.other,
        } += 1;
        self.sums(task).migrations += 1;
    }
}

impl SwitchCounts {
    fn count(&mut self, how: Departure) {
        *self.of(how) += 1;
    }

    /// A switch that was counted by how it looked was a sleep.
    fn blocked_after_all(&mut self, seemed: Departure) {
        let count = self.of(seemed);
        *count = count.saturating_sub(1);
        self.slept += 1;
    }

    fn of(&mut self, how: Departure) -> &mut u64 {
        match how {
            Departure::Slept(_) => &mut self.slept,
            Departure::Exited => &mut self.exited,
            Departure::PreemptedInKernel => &mut self.preempted_in_kernel,
            Departure::Preempted => &mut self.preempted,
            Departure::Yielded => &mut self.yielded,
            Departure::Runnable => &mut self.left_runnable,
        }
    }
}

/// What is assumed of CPUs that no event is about.
fn of_silent(Idled { silent, are_silent_idle, .. }: &Idled) -> Option<String> {
    let (first, last) = (silent.first()?, silent.last()?);
    let which = match silent.len() {
        1 => format!("CPU {first} has"),
        count => format!("{count} CPUs ({first} to {last}) have"),
    };
    Some(match are_silent_idle {
        true => format!("{which} no event, and a task that runs would have ticked: taken as idle"),
        false => format!("{which} no event: whether idle or busy is unknown"),
    })
}

/// Every task that was heard of in a switch, a wait or a migration, the one that waited longest first.
fn waits_of_tasks(tracker: &Tracker, sums: Vec<TaskSums>) -> Vec<TaskWaitSummary> {
    let mut tasks: Vec<TaskWaitSummary> = (0..)
        .zip(sums)
        .map(|(index, sums)| {
            let task = tracker.task(index);
            TaskWaitSummary {
                comm: task.comm,
                pid: Some(task.pid),
                tasks: 1,
                waits: WaitSpreads {
                    wakeups: sums.wakeups,
                    forks: sums.forks,
                    preemptions: sums.preemptions,
                    throttled: sums.throttled,
                    crossed: sums.crossed,
                },
                run: sums.run,
                run_cut: sums.run_cut,
                switches: sums.switches,
                migrations: sums.migrations,
            }
        })
        .filter(TaskWaitSummary::is_known)
        .collect();
    sort(&mut tasks);
    tasks
}

fn waits_of_comms(tasks: &[TaskWaitSummary]) -> Vec<TaskWaitSummary> {
    let mut by_comm: BTreeMap<Comm, TaskWaitSummary> = BTreeMap::new();
    for task in tasks {
        by_comm.entry(task.comm).and_modify(|comm| comm.merge(task)).or_insert_with(|| task.clone());
    }
    let mut comms: Vec<TaskWaitSummary> = by_comm.into_values().collect();
    for comm in &mut comms {
        comm.pid = comm.pid.filter(|_| comm.tasks == 1);
    }
    sort(&mut comms);
    comms
}

fn sort(rows: &mut [TaskWaitSummary]) {
    let longest = |row: &TaskWaitSummary| row.waits.longest();
    let id = |row: &TaskWaitSummary| row.pid.unwrap_or(Pid::UNKNOWN);
    rows.sort_by(|one, other| {
        longest(other).cmp(&longest(one)).then(one.comm.cmp(&other.comm)).then(id(one).cmp(&id(other)))
    });
}

impl TraceSummary {
    /// The stretch begins: time is counted from there on.
    fn begin(&mut self, now: Ns) {
        self.queues.begin(now);
        self.throttled_before = self.tracker.throttling().totals(now);
        if let Some(named) = &mut self.named {
            named.begin(now, &self.tracker);
        }
    }

    /// Has sums by name follow what an event meant. `had_begun`: it is not the first in the trace's time.
    fn follow_names(&mut self, event: &Event<'_>, change: &TrackerChange, had_begun: bool) {
        if event.kind.is_task_record() {
            return;
        }
        let begin = || {
            let (whose, places) = (self.choosing.whose(), self.options.places.as_ref());
            let mut named = NameCounter::of_recording(whose, places, &self.system, event.time);
            self.bound.iter().for_each(|(pid, mask)| named.allowed(*pid, *mask));
            Box::new(named)
        };
        let named = self.named.get_or_insert_with(begin);
        if let Some((start, _)) = self.tracker.span().filter(|_| !had_begun) {
            named.begin(start, &self.tracker);
        }
        named.follow(event, change, &self.tracker, |_| true);
    }

    fn follow(&mut self, event: &Event<'_>) {
        let now = event.time;
        let had_begun = self.tracker.span().is_some();
        let change = self.tracker.event(event);
        self.follow_names(event, &change, had_begun);
        for place in 0..self.tracker.vanished().len() {
            let stay = self.tracker.vanished()[place];
            self.ran(&stay, true);
        }
        self.queues.follow(&self.tracker, now);
        match change {
            TrackerChange::Switched { cpu, stay, left, entered } => {
                self.switched(cpu, stay, left, entered, now);
            }
            TrackerChange::Woken { task, lost_wait: true, .. } => {
                let counts = self.counts(task, now);
                self.sums(task).crossed += u64::from(counts);
            }
            TrackerChange::Woken { task, seemed: Some((seemed, left)), .. } if self.counts(task, left) => {
                self.switches.blocked_after_all(seemed);
                self.sums(task).switches.blocked_after_all(seemed);
            }
            TrackerChange::Moved { task, from, to, cause } if from != to && self.counts(task, now) => {
                self.moved(task, cause);
            }
            TrackerChange::Queued { task, cpu, .. }
                if matches!(event.kind, EventKind::SchedWakeupNew(_)) && self.counts(task, now) =>
            {
                self.migrations.fork += u64::from(cpu != event.cpu);
                self.sums(task);
            }
            _ => {}
        }
    }

    fn switched(
        &mut self,
        cpu: Cpu,
        stay: StayOnCpu,
        left: Option<LeftCpu>,
        entered: Option<EnteredCpu>,
        now: Ns,
    ) {
        if self.choosing.time().has(now) {
            self.queues.count_switch(cpu);
        }
        if let Some(left) = &left {
            self.left(left, &stay, cpu);
        }
        if let Some(entered) = &entered
            && let Some(wait) = &entered.wait
        {
            self.waited(entered.task, wait, now);
        }
        if let (Some(left), Some(entered)) = (left, entered)
            && (self.counts(left.task, now) || self.counts(entered.task, now))
        {
            self.pairs.count((left.task, entered.task));
        }
    }
}

impl Sink for TraceSummary {
    fn event(&mut self, event: &Event<'_>) {
        self.census.event(event);
        let heard = self.choosing.hear(event);
        if let Some(begin) = heard.begins {
            self.begin(begin);
        }
        if let Some(end) = heard.ends {
            self.tracker.end_at(end);
        }
        if heard.is_followed {
            self.follow(event);
        }
        if let Some(waiters) = &mut self.waiters {
            waiters.event(event);
        }
    }

    fn system(&mut self, system: &System) {
        if let Some(waiters) = &mut self.waiters {
            waiters.system(system);
        }
        self.census.system(system);
        self.choosing.system(system);
        self.tracker.system(system);
        self.system.clone_from(system);
    }

    fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) {
        if let Some(waiters) = &mut self.waiters {
            waiters.allowed(pid, cpus);
        }
        let mask = self.tracker.allowed(pid, cpus);
        self.queues.follow(&self.tracker, self.tracker.now());
        match &mut self.named {
            Some(named) => named.allowed(pid, mask),
            None => drop(self.bound.insert(pid, mask)),
        }
    }
}

#[cfg(test)]
mod tests;
