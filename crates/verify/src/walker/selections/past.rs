//! What tasks bring from before the trace to selections: how often they have woken others, which CPU they used before the
//! last one, and their part of their CPU's load. It decays, or a selection sets it.
//!
//! Must not know: what the kernel chose.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::decision::CpuDecision;
use fairlab_kernel::{Scheduler, TaskId};

use super::super::super::WalkAssumptions;
use super::super::Walker;
use super::super::balancing::FORGOTTEN;
use super::Selection;

/// The rest of a task's past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaskPast {
    /// The most that is left by now of how often it had woken others before the trace.
    flips_before: u32,
    /// What its count lost when the walk halved it last: the kernel may not have done so yet.
    flips_lost: u32,
    /// Whether the walk has halved its count: when the kernel did so last is known from then on, to one halving.
    halved: bool,
    /// Whether the trace has shown which CPU it used before the last one.
    pub recent_known: bool,
    /// When the trace was about it first. `None`: not yet.
    seen: Option<Ns>,
    /// Whether it began with the trace or in it, so that its averages are known.
    whole: bool,
}

/// Nothing is known.
const HIDDEN: TaskPast = TaskPast {
    flips_before: u32::MAX,
    flips_lost: 0,
    halved: false,
    recent_known: false,
    seen: None,
    whole: false,
};

/// Nothing was before the trace.
const NONE: TaskPast =
    TaskPast { flips_before: 0, flips_lost: 0, halved: true, recent_known: true, seen: None, whole: true };

/// The rest of each task's past.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct TaskPasts {
    by_id: Vec<TaskPast>,
    /// Whether the machine was started with the trace.
    none: bool,
}

impl TaskPasts {
    /// No task was before the trace.
    pub fn begin_with_machine(&mut self) {
        self.none = true;
        self.by_id.fill(NONE);
    }

    /// A task's past.
    pub(super) fn of(&mut self, task: TaskId) -> &mut TaskPast {
        let index = task.index();
        if index >= self.by_id.len() {
            self.by_id.resize(index + 1, if self.none { NONE } else { HIDDEN });
        }
        &mut self.by_id[index]
    }

    /// A new task: nothing is known of it yet.
    pub fn forget(&mut self, task: TaskId) {
        *self.of(task) = if self.none { NONE } else { HIDDEN };
    }

    /// An event is about a task.
    pub fn see(&mut self, task: TaskId, now: Ns) {
        self.of(task).seen.get_or_insert(now);
    }

    /// Whether what a task counts of its CPU's load is of this trace.
    pub(super) fn load_known(&mut self, task: TaskId, now: Ns) -> bool {
        let past = self.of(task);
        past.whole || past.seen.is_some_and(|seen| now.since(seen) >= FORGOTTEN)
    }
}

/// What a search leaves behind in some state, and in some it does not.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SearchTraces {
    /// That the cache has no wholly idle core.
    no_core: [bool; 2],
    /// The CPUs that the woken task, and that its waker used before the last one.
    recent: [[bool; 2]; 2],
}

impl SearchTraces {
    /// Notes what a decision leaves behind.
    pub fn note(&mut self, sched: &Scheduler, decision: &CpuDecision) {
        self.no_core[usize::from(decision.no_idle_core_in.is_some())] = true;
        for (seen, sets) in self.recent.iter_mut().zip(sched.remembers_cpus(&decision.search)) {
            seen[usize::from(sets)] = true;
        }
    }
}

impl Walker {
    /// A child has its parent's history of waking others; all else of it begins in the trace.
    pub(in super::super) fn inherit_past(&mut self, parent: TaskId, child: TaskId) {
        let TaskPast { flips_before, flips_lost, halved, .. } = *self.pasts.of(parent);
        *self.pasts.of(child) = TaskPast { flips_before, flips_lost, halved, ..NONE };
    }

    /// Counts that a task wakes another.
    pub(super) fn note_wakee(&mut self, waker: TaskId, wakee: TaskId) {
        let (halved_at, counted) = (self.sched.wakee_flips_halved_at(waker), self.sched.wakee_flips(waker));
        self.sched.record_wakee_at(self.time, waker, wakee);
        if self.sched.wakee_flips_halved_at(waker) != halved_at {
            let past = self.pasts.of(waker);
            past.flips_lost = counted - counted / 2;
            // The kernel may have halved it a moment before the trace, and not yet now.
            past.flips_before >>= u32::from(past.halved);
            past.halved = true;
        }
    }

    /// The bounds of a task's count of wakings of others. The kernel may have halved it once more by now, or once less. The task
    /// that it woke last before the trace may be the first that it is seen to wake. A rest of its first value may be left.
    pub(super) fn flips_interval(&mut self, task: TaskId) -> [u32; 2] {
        let counted = self.sched.wakee_flips(task);
        let &mut TaskPast { flips_before, flips_lost, .. } = self.pasts.of(task);
        [counted.saturating_sub(1) / 2, counted.saturating_add(flips_lost).saturating_add(flips_before)]
    }

    /// A probe shows that count.
    pub(super) fn show_flips(&mut self, task: TaskId, flips: u32) {
        self.sched.force_wakee_flips(task, flips);
        let past = self.pasts.of(task);
        (past.flips_before, past.flips_lost) = (0, 0);
    }

    /// A selection is over: what it leaves behind is known where all states agree on that.
    pub(super) fn know_search(&mut self, open: &Selection) {
        let prev = self.sched.task(open.task).cpu();
        let [leaves, clears] = open.leaves.no_core;
        if clears {
            [open.here, prev].into_iter().for_each(|cpu| self.set_idle_cores_known(cpu, !leaves));
        }
        let set = [(open.task, prev), (self.sched.curr(open.here), open.here)];
        for ((task, cpu), [keeps, sets]) in set.into_iter().zip(open.leaves.recent) {
            let is_same = self.sched.recent_used_cpu(task) == cpu;
            let past = self.pasts.of(task);
            past.recent_known =
                if keeps && sets { past.recent_known && is_same } else { past.recent_known || sets };
        }
    }

    /// A task joins the queue of `cpu`: if what it counts of the load there is of before the trace, so is that load.
    pub(super) fn pass_load_on(&mut self, open: &Selection, cpu: Cpu) {
        if !self.pasts.load_known(open.task, self.time) {
            self.cpus[cpu.index()].load_doubted = Some(self.time);
        }
    }

    /// Begins with what is to be assumed of the time before the trace, where the snapshot does not tell.
    pub(in super::super) fn lay_assumed(&mut self) {
        let assumed = self.assumed;
        if assumed == WalkAssumptions::default() {
            return;
        }
        for cpu in (0..self.cpus.len()).map(|index| Cpu(index as u32)) {
            self.sched.force_idle_cores(cpu, assumed.idle_cores);
            self.sched.force_nr_idle_scan(cpu, assumed.nr_idle_scan);
            self.sched.force_wakee_flips(self.sched.idle_task(cpu), assumed.wakee_flips);
            if !self.averages_laid {
                self.sched.force_cpu_load(cpu, assumed.load);
            }
        }
        let tasks = self.tasks.values().map(|info| info.id).collect::<Vec<_>>();
        tasks.into_iter().for_each(|task| self.begin_as_assumed(task, self.sched.task(task).cpu()));
    }

    /// A task that was there before the trace is known from now on.
    pub(in super::super) fn begin_as_assumed(&mut self, task: TaskId, cpu: Cpu) {
        if self.assumed == WalkAssumptions::default() || self.begins_with_machine {
            return;
        }
        self.sched.force_wakee_flips(task, self.assumed.wakee_flips);
        let recent = (cpu.index() + self.assumed.recent_ahead) % self.cpus.len();
        self.sched.force_recent_used_cpu(task, Cpu(recent as u32));
    }
}
