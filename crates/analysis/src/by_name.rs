//! Metrics of tasks by name, beside those of the whole machine and from its waits.
//!
//! The caller follows tasks and tells [`ByName`] what each does and what its waits were. So the sums over all names of tasks
//! are the machine's. An observation counts for the name that its task has at that time.
//!
//! Must not know: how waits are found.

mod equals;
mod places;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use fairlab_event::{Comm, Cpu, Event, EventKind, Ns, Pid, Prio, Switch, System};

use crate::counts::{GroupThrottled, MoveCounts, NameCounts};
use crate::membership::{Membership, and_above};
use crate::pid_map::{PidIndex, PidMap};
use crate::task_selector::{NameKind, TaskSelector, stem};
use equals::ComparableTask;
use places::{Colocation, CpuOccupancy, Emptiness};
pub use places::{CpuDomainNumbers, MachinePlaces};

/// Which names are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamesWanted {
    /// All of these kinds.
    pub kinds: Vec<NameKind>,
    /// These besides: a single task, a name with its number.
    pub asked: Vec<TaskSelector>,
    /// Whether the scheduler's own counters are metrics, too.
    pub counters: bool,
    /// Whether it is counted, too, on which kinds of CPUs, caches and nodes tasks run.
    pub places: bool,
    /// Whether what balancing tells is counted, too ([`balancing`](crate::balancing)).
    pub balancing: bool,
    /// Whether it is counted, too, how long tasks run from one switch to the next.
    pub stretches: bool,
}

impl NamesWanted {
    /// All names of all kinds.
    pub fn all() -> NamesWanted {
        let kinds = vec![NameKind::Task, NameKind::Group, NameKind::Workload];
        NamesWanted { kinds, ..NamesWanted::default() }
    }

    /// Whether no names are wanted.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.asked.is_empty()
    }
}

/// What a task is called whose name no event tells, as ftrace prints it.
const NAMELESS: &str = "<...>";

/// What a task does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum NameTaskState {
    /// It sleeps, or nothing is known of it.
    #[default]
    Nothing,
    /// It is runnable and does not run.
    Waits,
    Runs(Cpu),
}

/// What a wait that is over began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinishedWait {
    /// It was woken.
    Wakeup,
    /// It is new.
    Fork,
    /// It left a CPU runnable.
    Preemption,
}

/// Counts by name from what tasks do.
#[derive(Clone, Debug)]
pub(crate) struct ByName {
    wanted: NamesWanted,
    machine: Option<Emptiness>,
    names: Vec<NameSums>,
    numbers: BTreeMap<TaskSelector, u32>,
    tasks: Vec<NamedTask>,
    by_pid: PidIndex,
    membership: Membership,
    member_of: PidMap<String>,
    now: Ns,
    start: Ns,
}

/// The sums of one name.
#[derive(Clone, Debug)]
struct NameSums {
    who: TaskSelector,
    counts: NameCounts,
    moves: [u64; places::LEVELS + 1],
    together: Colocation,
    /// Run time on each CPU, ns; empty where nobody wants it.
    ran_on: Vec<u64>,
}

/// One life of one task.
#[derive(Clone, Debug)]
struct NamedTask {
    pid: Pid,
    comm: Comm,
    prio: Prio,
    group: Option<u32>,
    /// The names that are its.
    names: Vec<u32>,
    does: NameTaskState,
    since: Ns,
    /// In this life, since counting began.
    ran: u64,
    waited: u64,
    /// Where it may run, as the caller's number of a mask.
    mask: Option<u32>,
    /// It counts among the tasks of its names.
    is_counted: bool,
}

impl ByName {
    pub(crate) fn new(wanted: NamesWanted, places: Option<MachinePlaces>, start: Ns) -> ByName {
        ByName {
            wanted,
            machine: places.map(|places| Emptiness::new(places, start)),
            names: Vec::new(),
            numbers: BTreeMap::new(),
            tasks: Vec::new(),
            by_pid: PidIndex::default(),
            membership: Membership::default(),
            member_of: PidMap::default(),
            now: start,
            start,
        }
    }

    /// Takes the groups that there were, and which tasks were in them.
    pub(crate) fn system(&mut self, system: &System) {
        self.membership.system(system);
    }

    /// Takes which workload of a mix a task belongs to.
    pub(crate) fn member(&mut self, pid: Pid, name: &str) {
        self.member_of.insert(pid, name.to_string());
        self.gets_names(pid);
    }

    /// Takes where a task may run, by a number that is equal for equal sets.
    pub(crate) fn allowed(&mut self, pid: Pid, mask: Option<u32>) {
        let task = self.task(pid);
        self.tasks[task as usize].mask = mask;
    }

    /// Takes what an event tells of names, groups and priorities.
    pub(crate) fn hear(&mut self, event: &Event<'_>) {
        self.pass_time(event.time);
        match &event.kind {
            EventKind::SchedSwitch(Switch {
                prev_comm,
                prev_pid,
                prev_prio,
                next_comm,
                next_pid,
                next_prio,
                ..
            }) => {
                self.is_called(*prev_pid, *prev_comm, *prev_prio);
                self.is_called(*next_pid, *next_comm, *next_prio);
            }
            EventKind::SchedWaking(wakeup)
            | EventKind::SchedWakeup(wakeup)
            | EventKind::SchedWakeupNew(wakeup) => self.is_called(wakeup.pid, wakeup.comm, wakeup.prio),
            EventKind::SchedProcessFork { pid, child_pid, .. } => self.forked(*pid, *child_pid),
            _ => {
                if let Some(pid) = self.membership.hear(event) {
                    self.gets_names(pid);
                }
            }
        }
    }

    pub(crate) fn pass_time(&mut self, to: Ns) {
        self.now = self.now.max(to);
        if let Some(machine) = &mut self.machine {
            machine.pass_time(self.now);
        }
    }

    /// A CPU runs this from now on; none: unknown.
    pub(crate) fn cpu_runs(&mut self, cpu: Cpu, current: Option<Pid>) {
        let seen = match current {
            None => CpuOccupancy::Unknown,
            Some(Pid::IDLE) => CpuOccupancy::Idle,
            Some(_) => CpuOccupancy::Busy,
        };
        if let Some(machine) = &mut self.machine {
            machine.sees(cpu, seen);
        }
    }

    /// A task does something else from now on.
    pub(crate) fn becomes(&mut self, pid: Pid, does: NameTaskState) {
        let task = self.task(pid);
        if self.tasks[task as usize].does != does {
            self.settle(task);
            self.stands(task, does);
        }
    }

    /// A task runs on a CPU; if that is news, what it did since its latest change is unknown.
    pub(crate) fn shows_up(&mut self, pid: Pid, cpu: Cpu) {
        let task = self.task(pid);
        if self.tasks[task as usize].does != NameTaskState::Runs(cpu) {
            self.lose(pid);
            self.becomes(pid, NameTaskState::Runs(cpu));
        }
    }

    /// What a task did since its latest change is unknown.
    pub(crate) fn lose(&mut self, pid: Pid) {
        let now = self.now;
        if let Some(task) = self.by_pid.get(pid) {
            self.tasks[task as usize].since = now;
        }
    }

    /// What tasks that wait did since their latest change is unknown.
    pub(crate) fn lose_waits(&mut self) {
        let now = self.now;
        self.tasks
            .iter_mut()
            .filter(|task| task.does == NameTaskState::Waits)
            .for_each(|task| task.since = now);
    }

    /// A task's wait is over; for a part of it its group was throttled.
    pub(crate) fn waited(&mut self, pid: Pid, kind: FinishedWait, length: Ns, throttled: Ns) {
        self.each(pid, |name, _| {
            let counts = &mut name.counts;
            let times = match kind {
                FinishedWait::Wakeup => &mut counts.wakeup_latency,
                FinishedWait::Fork => &mut counts.fork_wait,
                FinishedWait::Preemption => &mut counts.preemption_wait,
            };
            times.record(length.0);
            if throttled > Ns::ZERO {
                counts.throttled_wait.record(throttled.0);
            }
        });
    }

    /// A task leaves its CPU after so long.
    pub(crate) fn ran(&mut self, pid: Pid, length: Ns) {
        if self.wanted.stretches {
            self.each(pid, |name, _| name.counts.run_stretches.record(length.0));
        }
    }

    /// A task leaves its CPU and stays runnable.
    pub(crate) fn left_runnable(&mut self, pid: Pid) {
        self.each(pid, |name, _| name.counts.involuntary_switches += 1);
    }

    /// A task that left its CPU then, and was taken for runnable, slept.
    pub(crate) fn slept_after_all(&mut self, pid: Pid, left: Ns) {
        if left >= self.start {
            self.each(pid, |name, _| {
                name.counts.involuntary_switches = name.counts.involuntary_switches.saturating_sub(1);
            });
        }
    }

    /// A task is moved.
    pub(crate) fn moved(&mut self, pid: Pid, from: Cpu, to: Cpu) {
        let distance = self.machine.as_ref().and_then(|machine| machine.places().distance(from, to));
        self.each(pid, |name, _| {
            name.counts.migrations += 1;
            if let Some(distance) = distance {
                name.moves[distance] += 1;
            }
        });
    }

    /// A task has exited: a task that has its id from now on is another one.
    pub(crate) fn ended(&mut self, pid: Pid) {
        self.becomes(pid, NameTaskState::Nothing);
        self.by_pid.remove(pid);
        self.membership.ended(pid);
        self.member_of.remove(&pid);
    }

    /// Counts from `time` on.
    pub(crate) fn begin(&mut self, time: Ns) {
        self.pass_time(time);
        (self.start, self.now) = (time, time);
        for name in &mut self.names {
            (name.counts, name.moves) = (NameCounts::default(), Default::default());
            name.ran_on.clear();
            if let Some(machine) = &self.machine {
                name.together.begin(machine);
            }
        }
        for task in &mut self.tasks {
            (task.ran, task.waited, task.since) = (0, 0, time);
            task.is_counted = false;
        }
        for task in 0..self.tasks.len() as u32 {
            if self.tasks[task as usize].does != NameTaskState::Nothing {
                self.is_there(task);
            }
        }
    }

    /// What was counted by `end`. `throttled`: what a group's quota did, by its path, where that is known.
    pub(crate) fn into_counts(
        mut self,
        end: Ns,
        throttled: &dyn Fn(&str) -> Option<GroupThrottled>,
    ) -> BTreeMap<TaskSelector, NameCounts> {
        self.pass_time(end);
        (0..self.tasks.len() as u32).for_each(|task| self.settle(task));
        let observed = end.since(self.start);
        for (name, unfairness) in equals::unfairness(self.equals(), observed) {
            self.names[name as usize].counts.unfairness = Some(unfairness);
        }
        let machine = self.machine.as_ref();
        let counts = self.names.into_iter().filter(|name| name.counts.tasks > 0).map(|name| {
            let NameSums { who, mut counts, moves, together, ran_on } = name;
            if let Some(machine) = machine {
                counts.ran_on = machine.places().sums(&ran_on);
                counts.placement = Some(together.placement(machine));
                let [smt, llc, node, other_node] = machine.places().distances();
                let known = |is_there: bool, distance: usize| is_there.then_some(moves[distance]);
                counts.moves = Some(MoveCounts {
                    smt: known(smt, 0),
                    llc: known(llc, 1),
                    node: known(node, 2),
                    other_node: known(other_node, 3),
                });
            }
            if let TaskSelector::Group(path) = &who {
                counts.throttled = throttled(path);
            }
            (who, counts)
        });
        counts.collect()
    }

    /// Tasks that could be equals of others.
    fn equals(&self) -> impl Iterator<Item = (&[u32], ComparableTask)> {
        self.tasks.iter().map(|task| {
            let NamedTask { group, prio, mask, ran, waited, .. } = task;
            let equal = ComparableTask { class: (*group, prio.0, *mask), ran: *ran, wanted: ran + waited };
            (task.names.as_slice(), equal)
        })
    }

    fn task(&mut self, pid: Pid) -> u32 {
        if let Some(task) = self.by_pid.get(pid) {
            return task;
        }
        let number = self.tasks.len() as u32;
        self.by_pid.insert(pid, number);
        self.tasks.push(NamedTask {
            pid,
            comm: Comm::default(),
            prio: Prio::DEFAULT,
            group: None,
            names: Vec::new(),
            does: NameTaskState::Nothing,
            since: self.now,
            ran: 0,
            waited: 0,
            mask: None,
            is_counted: false,
        });
        self.names_of(number);
        number
    }

    fn is_called(&mut self, pid: Pid, comm: Comm, prio: Prio) {
        if pid.is_idle() {
            return;
        }
        let task = self.task(pid);
        let state = &mut self.tasks[task as usize];
        state.prio = prio;
        if state.comm != comm && !comm.is_empty() {
            state.comm = comm;
            self.names_of(task);
        }
    }

    fn forked(&mut self, parent: Pid, child: Pid) {
        if self.by_pid.get(child).is_some() {
            self.ended(child);
        }
        self.membership.forked(parent, child);
        if let Some(member) = self.member_of.get(&parent).cloned() {
            self.member_of.entry(child).or_insert(member);
        }
    }

    fn gets_names(&mut self, pid: Pid) {
        if let Some(task) = self.by_pid.get(pid) {
            self.names_of(task);
        }
    }

    /// Finds the names of a task; what it did up to now belongs to those before.
    fn names_of(&mut self, task: u32) {
        let does = self.tasks[task as usize].does;
        self.settle(task);
        self.stands(task, NameTaskState::Nothing);
        let NamedTask { pid, comm, .. } = self.tasks[task as usize];
        let group = self.membership.of(pid);
        self.tasks[task as usize].group = group;
        let whose = self.whose(pid, comm, group);
        let names = whose.into_iter().map(|who| self.number(who)).collect::<Vec<_>>();
        let state = &mut self.tasks[task as usize];
        if state.names != names {
            (state.names, state.is_counted) = (names, false);
        }
        self.stands(task, does);
    }

    fn whose(&self, pid: Pid, comm: Comm, group: Option<u32>) -> Vec<TaskSelector> {
        let wants = |kind| self.wanted.kinds.contains(&kind);
        let (comm, mut whose) = (comm.to_str(), Vec::new());
        if wants(NameKind::Task) {
            let name = if comm.is_empty() { NAMELESS } else { stem(&comm) };
            whose.push(TaskSelector::Task(name.to_string()));
        }
        let above = || and_above(self.membership.path(group));
        if wants(NameKind::Group) {
            whose.extend(above().map(|path| TaskSelector::Group(path.to_string())));
        }
        let member = self.member_of.get(&pid);
        if wants(NameKind::Workload) {
            whose.extend(member.map(|name| TaskSelector::Workload(name.clone())));
        }
        for asked in &self.wanted.asked {
            let is_its = match asked {
                TaskSelector::Group(asked) => asked == "/" || above().any(|path| path == asked),
                TaskSelector::Workload(name) => member == Some(name),
                TaskSelector::Task(_) | TaskSelector::Pid(_) => asked.means_task(pid, &comm),
            };
            if is_its && !whose.contains(asked) {
                whose.push(asked.clone());
            }
        }
        whose
    }

    fn number(&mut self, who: TaskSelector) -> u32 {
        let next = self.names.len() as u32;
        let number = *self.numbers.entry(who.clone()).or_insert(next);
        if number == next {
            let (counts, together) = (NameCounts::default(), Colocation::default());
            self.names.push(NameSums {
                who,
                counts,
                moves: Default::default(),
                together,
                ran_on: Vec::new(),
            });
        }
        number
    }

    fn each(&mut self, pid: Pid, mut act: impl FnMut(&mut NameSums, &mut NamedTask)) {
        let number = self.task(pid);
        self.is_there(number);
        let task = &mut self.tasks[number as usize];
        for place in 0..task.names.len() {
            let name = task.names[place] as usize;
            act(&mut self.names[name], task);
        }
    }

    /// Counts a task among those of its names, once.
    fn is_there(&mut self, task: u32) {
        let task = &mut self.tasks[task as usize];
        if !std::mem::replace(&mut task.is_counted, true) {
            task.names.iter().for_each(|&name| self.names[name as usize].counts.tasks += 1);
        }
    }

    /// Adds what a task did since its latest change.
    fn settle(&mut self, task: u32) {
        let task = &mut self.tasks[task as usize];
        let passed = self.now.since(task.since.max(self.start)).0;
        task.since = self.now;
        if let (NameTaskState::Runs(cpu), true) = (task.does, self.wanted.places) {
            for &name in &task.names {
                let ran_on = &mut self.names[name as usize].ran_on;
                if ran_on.len() <= cpu.index() {
                    ran_on.resize(cpu.index() + 1, 0);
                }
                ran_on[cpu.index()] = ran_on[cpu.index()].saturating_add(passed);
            }
        }
        let (own, sum): (&mut u64, fn(&mut NameCounts) -> &mut u64) = match task.does {
            NameTaskState::Nothing => return,
            NameTaskState::Waits => (&mut task.waited, |counts| &mut counts.wait_ns),
            NameTaskState::Runs(_) => (&mut task.ran, |counts| &mut counts.run_ns),
        };
        *own = own.saturating_add(passed);
        for &name in &task.names {
            let sum = sum(&mut self.names[name as usize].counts);
            *sum = sum.saturating_add(passed);
        }
    }

    fn stands(&mut self, task: u32, does: NameTaskState) {
        if does != NameTaskState::Nothing {
            self.is_there(task);
        }
        let task = &mut self.tasks[task as usize];
        let before = std::mem::replace(&mut task.does, does);
        task.since = self.now;
        let Some(machine) = &self.machine else { return };
        for &name in &task.names {
            let together = &mut self.names[name as usize].together;
            if let NameTaskState::Runs(cpu) = before {
                together.leaves(cpu, machine);
            }
            if let NameTaskState::Runs(cpu) = does {
                together.enters(cpu, machine);
            }
        }
    }
}
