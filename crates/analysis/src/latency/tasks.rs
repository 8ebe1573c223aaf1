//! What each task waits for, and how long it has waited so far.
//!
//! The rules are those of `perf sched latency` 6.12 (tools/perf/builtin-sched.c):
//!
//! * a task that leaves its CPU runnable, preempted or by its own will, waits from then on;
//! * a wakeup starts a wait only for a task that is known to sleep, not for one that runs or is queued;
//! * being switched in ends the wait and counts it;
//! * a task first seen when it is switched in counts one wait of length zero, which is no candidate for the longest;
//! * a task first seen by a wakeup slept until then; one first seen by its run time waits.
//!
//! Departs: a wait across a hole is counted apart, and a task that left its CPU in a hole sleeps until it is woken. Events of
//! a task that go back in time start and end no wait, and are counted as unordered. perf reads ordered records only; it drops
//! some of these and makes long waits of others.

use fairlab_event::{Comm, Ns, Pid, TaskState};

use crate::pid_map::PidIndex;

/// One life of one task.
#[derive(Clone, Debug)]
pub(super) struct LatencyTask {
    pub(super) pid: Pid,
    /// Its name by the trace's own knowledge of tasks.
    name: Option<Comm>,
    /// Its name in the latest event that told one.
    seen_as: Comm,
    /// Whether any scheduling event was about it.
    pub(super) heard_of: bool,
    state: LatencyTaskState,
    /// When it last left a CPU, or was first heard of.
    left_at: Ns,
    /// When its wait began, while it waits, and how many holes it had crossed until then.
    ready_at: Ns,
    holes: u32,
    /// When it was last switched in or out.
    switched_at: Ns,
    /// It was woken before it left its CPU, and has not run since.
    woken_while_running: bool,
    /// A wait of its was counted.
    pub(super) is_counted: bool,
    pub(super) waits: LatencySums,
}

/// What a task does, as far as the trace tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LatencyTaskState {
    Sleeping,
    Waiting,
    Running,
}

/// The sums of one task, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LatencySums {
    pub(super) runtime: Ns,
    /// For how long it was seen on CPUs.
    pub(super) stayed: Ns,
    pub(super) count: u64,
    pub(super) total: Ns,
    pub(super) max: Ns,
    pub(super) max_start: Ns,
    pub(super) max_end: Ns,
    /// Waits across holes: they are in none of the other sums.
    pub(super) crossed: u64,
}

/// All tasks of a trace.
#[derive(Clone, Debug, Default)]
pub(super) struct LatencyTasks {
    all: Vec<LatencyTask>,
    /// The current life of each task.
    by_pid: PidIndex,
    /// Whether the trace has knowledge of its own about names.
    named: bool,
    /// Wakeups that found the task asleep.
    pub(super) wakeups: u64,
    /// Events that go back in time.
    pub(super) unordered: u64,
    /// Waits of tasks that were woken while they still ran, whether they are counted or not.
    pub(super) woken_while_running: u64,
}

impl LatencyTasks {
    /// A task leaves its CPU.
    #[inline]
    pub(super) fn switch_out(&mut self, pid: Pid, comm: Comm, state: TaskState, now: Ns, holes: u32) {
        let task = self.find(pid, comm);
        if task.heard_of && now < task.switched_at {
            self.count_unordered();
            return;
        }
        task.leave(state.is_runnable(), now, holes);
        task.switched_at = now;
    }

    /// A task starts on a CPU; whether the wait that ends counts.
    #[inline]
    pub(super) fn switch_in(&mut self, pid: Pid, comm: Comm, now: Ns, holes: u32, counts: bool) {
        let task = self.find(pid, comm);
        if !task.heard_of {
            task.leave(true, now, holes);
        }
        if now < task.switched_at || task.state == LatencyTaskState::Waiting && now < task.ready_at {
            self.count_unordered();
            return;
        }
        task.switched_at = now;
        let differs = std::mem::take(&mut task.woken_while_running) && counts && task.holes == holes;
        if task.state == LatencyTaskState::Waiting {
            if counts {
                task.is_counted = true;
                match task.holes == holes {
                    true => task.waits.add(task.ready_at, now),
                    false => task.waits.crossed += 1,
                }
            }
            task.state = LatencyTaskState::Running;
        }
        self.woken_while_running += u64::from(differs);
    }

    /// A task that has just left to sleep was woken before; `waits`: it waits since it left.
    pub(super) fn woken_while_running(&mut self, pid: Pid, waits: bool) {
        let index = self.index(pid);
        let task = &mut self.all[index];
        if task.state != LatencyTaskState::Sleeping {
            return;
        }
        task.woken_while_running = true;
        if waits {
            task.state = LatencyTaskState::Waiting;
            self.wakeups += 1;
        }
    }

    /// A task that was supposed to have been woken as it left was not.
    pub(super) fn slept_on(&mut self, pid: Pid) {
        let index = self.index(pid);
        let task = &mut self.all[index];
        if std::mem::take(&mut task.woken_while_running) && task.state == LatencyTaskState::Waiting {
            task.state = LatencyTaskState::Sleeping;
            self.wakeups -= 1;
        }
    }

    /// A task is woken.
    #[inline]
    pub(super) fn wake(&mut self, pid: Pid, comm: Comm, now: Ns, holes: u32) {
        let task = self.find(pid, comm);
        if !task.heard_of {
            task.leave(false, now, holes);
        }
        if task.state != LatencyTaskState::Sleeping {
            return;
        }
        let in_order = now >= task.left_at;
        if in_order {
            task.state = LatencyTaskState::Waiting;
            (task.ready_at, task.holes) = (now, holes);
            task.woken_while_running = false;
        }
        self.wakeups += 1;
        self.unordered += u64::from(!in_order);
    }

    /// CPU time is accounted to a task.
    #[inline]
    pub(super) fn account(&mut self, pid: Pid, comm: Comm, runtime: Ns, now: Ns, holes: u32) {
        let task = self.find(pid, comm);
        if !task.heard_of {
            task.leave(true, now, holes);
        }
        task.waits.runtime = Ns(task.waits.runtime.0.saturating_add(runtime.0));
    }

    /// A task has stayed on a CPU for so long.
    #[inline]
    pub(super) fn ran(&mut self, pid: Pid, time: Ns) {
        let index = self.index(pid);
        let waits = &mut self.all[index].waits;
        waits.stayed = waits.stayed.saturating_add(time);
    }

    /// Without accounting a task has run for as long as it stayed on CPUs.
    pub(super) fn take_stays_for_runtime(&mut self) {
        self.all.iter_mut().for_each(|task| task.waits.runtime = task.waits.stayed);
    }

    /// A task that seemed to run has left its CPU in a hole.
    pub(super) fn lose_sight(&mut self, pid: Pid, now: Ns, holes: u32) {
        let index = self.index(pid);
        let task = &mut self.all[index];
        if task.state == LatencyTaskState::Running {
            task.leave(false, now.max(task.switched_at), holes);
        }
    }

    /// A task that seemed to wait has run in a hole.
    pub(super) fn lose_wait(&mut self, pid: Pid, counts: bool) {
        let index = self.index(pid);
        let task = &mut self.all[index];
        if task.state == LatencyTaskState::Waiting {
            task.waits.crossed += u64::from(counts);
            task.is_counted |= counts;
            task.state = LatencyTaskState::Sleeping;
            task.woken_while_running = false;
        }
    }

    /// The trace knows a task's name.
    pub(super) fn name(&mut self, pid: Pid, comm: Comm) {
        self.named = true;
        let index = self.index(pid);
        self.all[index].name = Some(comm);
    }

    /// The trace knows that a task began: a task that had its id before is another one.
    pub(super) fn start(&mut self, pid: Pid, parent: Pid) {
        self.named = true;
        let name = self.by_pid.get(parent).and_then(|index| self.all[index as usize].name);
        if self.by_pid.get(pid).is_some_and(|index| self.all[index as usize].heard_of) {
            self.by_pid.remove(pid);
        }
        let index = self.index(pid);
        self.all[index].name = name;
    }

    /// Every life that a scheduling event was about, the highest id first, of one id the latest first.
    pub(super) fn heard_of(&self) -> Vec<(&LatencyTask, Comm)> {
        let mut tasks: Vec<_> = self.all.iter().filter(|task| task.heard_of).collect();
        tasks.reverse();
        tasks.sort_by_key(|task| std::cmp::Reverse(task.pid));
        tasks.into_iter().map(|task| (task, self.display_name(task))).collect()
    }

    /// By the trace's own knowledge if it has any, as perf does it, else by the events.
    fn display_name(&self, task: &LatencyTask) -> Comm {
        let seen_as = Some(task.seen_as).filter(|seen_as| !self.named && !seen_as.is_empty());
        task.name.or(seen_as).unwrap_or_else(|| Comm::from(format!(":{}", task.pid).as_str()))
    }

    #[inline]
    fn find(&mut self, pid: Pid, comm: Comm) -> &mut LatencyTask {
        let index = self.index(pid);
        let task = &mut self.all[index];
        if !comm.is_empty() {
            task.seen_as = comm;
        }
        task
    }

    #[inline]
    fn index(&mut self, pid: Pid) -> usize {
        self.by_pid.get(pid).map_or_else(|| self.begin(pid), |index| index as usize)
    }

    #[cold]
    fn begin(&mut self, pid: Pid) -> usize {
        let index = self.all.len();
        self.all.push(LatencyTask::new(pid));
        self.by_pid.insert(pid, index as u32);
        index
    }

    fn count_unordered(&mut self) {
        self.wakeups += 1;
        self.unordered += 1;
    }
}

impl LatencyTask {
    fn new(pid: Pid) -> LatencyTask {
        LatencyTask {
            pid,
            name: None,
            seen_as: Comm::default(),
            heard_of: false,
            state: LatencyTaskState::Sleeping,
            left_at: Ns::ZERO,
            ready_at: Ns::ZERO,
            holes: 0,
            switched_at: Ns::ZERO,
            woken_while_running: false,
            is_counted: false,
            waits: LatencySums::default(),
        }
    }

    /// It leaves its CPU, or is taken to have done so when it is first heard of.
    #[inline]
    fn leave(&mut self, runnable: bool, now: Ns, holes: u32) {
        self.heard_of = true;
        self.woken_while_running = false;
        self.state = if runnable { LatencyTaskState::Waiting } else { LatencyTaskState::Sleeping };
        self.left_at = now;
        (self.ready_at, self.holes) = (now, holes);
    }
}

impl LatencySums {
    #[inline]
    fn add(&mut self, from: Ns, to: Ns) {
        let delay = to.since(from);
        self.count += 1;
        self.total = Ns(self.total.0.saturating_add(delay.0));
        if delay > self.max {
            (self.max, self.max_start, self.max_end) = (delay, from, to);
        }
    }

    /// Adds another task's sums; of equal longest waits the first stays.
    pub(super) fn merge(&mut self, other: &LatencySums) {
        self.runtime = Ns(self.runtime.0.saturating_add(other.runtime.0));
        self.count += other.count;
        self.total = Ns(self.total.0.saturating_add(other.total.0));
        self.crossed += other.crossed;
        if other.max > self.max {
            (self.max, self.max_start, self.max_end) = (other.max, other.max_start, other.max_end);
        }
    }
}
