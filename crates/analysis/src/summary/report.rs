//! The answer: sums by task, by name and over all.
//!
//! Must not know: how they come about, how they are printed.

use std::collections::BTreeMap;

use fairlab_event::{Comm, Cpu, Ns, Pid, System};

use super::{CpuTime, QueueDepths, Unconserved, ValueSpread};
use crate::blame::report::BlameReport;
use crate::counts::NameCounts;
use crate::task_selector::TaskSelector;
use crate::tracker::WaitCause;

/// The waits of one task, or of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitSpreads {
    /// Wakeup latencies, nanoseconds.
    pub wakeups: ValueSpread,
    /// First waits of new tasks, nanoseconds.
    pub forks: ValueSpread,
    /// Preemption waits, nanoseconds.
    pub preemptions: ValueSpread,
    /// For how long waits were for the quota of the task's group, those that were at all, nanoseconds. The waits themselves
    /// are among the others.
    pub throttled: ValueSpread,
    /// Waits that ended, but across a hole, where events are missing: not measured.
    pub crossed: u64,
}

impl WaitSpreads {
    pub(super) fn merge(&mut self, other: &WaitSpreads) {
        self.wakeups.merge(&other.wakeups);
        self.forks.merge(&other.forks);
        self.preemptions.merge(&other.preemptions);
        self.throttled.merge(&other.throttled);
        self.crossed += other.crossed;
    }

    /// How many were measured.
    pub fn total(&self) -> u64 {
        self.wakeups.total() + self.forks.total() + self.preemptions.total()
    }

    /// Their sum, nanoseconds.
    pub fn sum(&self) -> u64 {
        self.wakeups.sum() + self.forks.sum() + self.preemptions.sum()
    }

    /// The longest, nanoseconds.
    pub fn longest(&self) -> Option<u64> {
        self.wakeups.max().max(self.forks.max()).max(self.preemptions.max())
    }
}

/// How often tasks left their CPU, by how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchCounts {
    /// They blocked.
    pub slept: u64,
    /// They exited.
    pub exited: u64,
    /// Preempted inside the kernel (`R+`).
    pub preempted_in_kernel: u64,
    /// Preempted on the way to user mode.
    pub preempted: u64,
    /// They yielded.
    pub yielded: u64,
    /// They stayed runnable; the trace does not tell whether they were preempted or yielded.
    pub left_runnable: u64,
}

impl SwitchCounts {
    /// The task blocked or exited.
    pub const fn voluntary(&self) -> u64 {
        self.slept + self.exited
    }

    /// The task stayed runnable.
    pub const fn involuntary(&self) -> u64 {
        self.preempted_in_kernel + self.preempted + self.yielded + self.left_runnable
    }

    /// All of them.
    pub const fn total(&self) -> u64 {
        self.voluntary() + self.involuntary()
    }

    fn merge(&mut self, other: &SwitchCounts) {
        self.slept += other.slept;
        self.exited += other.exited;
        self.preempted_in_kernel += other.preempted_in_kernel;
        self.preempted += other.preempted;
        self.yielded += other.yielded;
        self.left_runnable += other.left_runnable;
    }
}

/// How often tasks were moved to another CPU, by what moved them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Migrations {
    /// Their wakeup chose another CPU.
    pub wakeup: u64,
    /// A new task began on another CPU than its creator's. That is none of the migrations: no event says that it was moved.
    pub fork: u64,
    /// The task asked for it: exec, or a change of its own affinity.
    pub asked: u64,
    /// The periodic or the NOHZ balancer, in softirq context.
    pub softirq: u64,
    /// The balancer of a CPU about to idle.
    pub new_idle: u64,
    /// The stopper: active balance, NUMA balance, or somebody's change of affinity.
    pub stopper: u64,
    /// Something else, or the trace does not tell.
    pub other: u64,
}

impl Migrations {
    /// By balancing: all but wakeup and what tasks asked for.
    pub const fn balance(&self) -> u64 {
        self.softirq + self.new_idle + self.stopper + self.other
    }

    /// All of them.
    pub const fn total(&self) -> u64 {
        self.wakeup + self.asked + self.balance()
    }
}

/// One task, or all tasks of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskWaitSummary {
    /// Its name.
    pub comm: Comm,
    /// Its id; none for several tasks.
    pub pid: Option<Pid>,
    /// How many tasks there are.
    pub tasks: u64,
    /// How long it waited.
    pub waits: WaitSpreads,
    /// How long it ran, as far as events show it.
    pub run: Ns,
    /// Of that, in stays that began before or ended behind the trace: it ran longer.
    pub run_cut: Ns,
    /// How it left its CPU.
    pub switches: SwitchCounts,
    /// `sched_migrate_task` events.
    pub migrations: u64,
}

impl TaskWaitSummary {
    pub(super) fn merge(&mut self, other: &TaskWaitSummary) {
        self.tasks += other.tasks;
        self.waits.merge(&other.waits);
        self.run = self.run.saturating_add(other.run);
        self.run_cut = self.run_cut.saturating_add(other.run_cut);
        self.switches.merge(&other.switches);
        self.migrations += other.migrations;
    }

    /// Whether there is anything to tell of it.
    pub(super) fn is_known(&self) -> bool {
        self.waits.total() + self.waits.crossed + self.switches.total() + self.migrations > 0
            || self.run > Ns::ZERO
    }
}

/// A task that still waits when the trace ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Censored {
    /// Its name.
    pub comm: Comm,
    /// Its id.
    pub pid: Pid,
    /// The CPU on which it is queued, if it is.
    pub cpu: Option<Cpu>,
    /// Since when.
    pub since: Ns,
    /// For how long up to the trace's end; its whole length is unknown.
    pub so_far: Ns,
    /// Why it began.
    pub cause: WaitCause,
    /// Events were lost meanwhile: it may have run unseen.
    pub crossed_loss: bool,
}

/// How often a task followed another on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchPair {
    /// The task that left.
    pub prev: (Comm, Pid),
    /// The task that came.
    pub next: (Comm, Pid),
    /// How often.
    pub count: u64,
}

impl SwitchPair {
    /// How many are reported.
    pub const KEPT: usize = 100;
}

/// How groups were throttled that had used up their quota, each on each CPU by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThrottlingSums {
    /// How often.
    pub count: u64,
    /// For how long in all.
    pub time: Ns,
    /// No probe tells of it: it is concluded from quotas and run time.
    pub is_concluded: bool,
}

/// All sums of a trace.
///
/// Printed (`{}`) it is for people; overall percentiles stand in schbench's layout.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryReport {
    /// The first event.
    pub start: Ns,
    /// The latest event.
    pub end: Ns,
    /// How many events there are, of those that were chosen.
    pub events: u64,
    /// It is of all tasks; where some were chosen, or only some recorded, nothing is said of the machine.
    pub tells_cpus: bool,
    /// The kernel and the machine.
    pub system: System,
    /// The waits of all tasks.
    pub all: WaitSpreads,
    /// By name, the longest wait first.
    pub comms: Vec<TaskWaitSummary>,
    /// By task, the longest wait first.
    pub tasks: Vec<TaskWaitSummary>,
    /// Whom the names that waited most waited behind, the longest first, where that is asked for.
    pub waiting: Vec<BlameReport>,
    /// By name, names that differ only in a number at their end as one, and by control group.
    pub by_name: BTreeMap<TaskSelector, NameCounts>,
    /// How tasks left their CPUs; switches away from the idle task are not among them.
    pub switches: SwitchCounts,
    /// How tasks were moved.
    pub migrations: Migrations,
    /// Every CPU up to the highest that was heard of.
    pub cpus: Vec<CpuTime>,
    /// How many CPUs the machine has, as far as is known.
    pub nr_cpus: usize,
    /// Runqueue depths of all CPUs.
    pub depths: QueueDepths,
    /// Work left undone, the machine first.
    pub unconserved: Vec<Unconserved>,
    /// Which tasks follow which, the most frequent first, at most [`SwitchPair::KEPT`]; the idle task is not among them.
    pub pairs: Vec<SwitchPair>,
    /// How much too low the counts of pairs may be.
    pub pairs_floor: u64,
    /// Waits that go on when the trace ends, the longest first.
    pub censored: Vec<Censored>,
    /// How groups were throttled; none: the trace does not show it.
    pub throttling: Option<ThrottlingSums>,
    /// At how many places events were lost.
    pub losses: u32,
    /// Events earlier than one before them.
    pub late_events: u64,
    /// Switches away from another task than the one that ran.
    pub switch_gaps: u64,
    /// What the trace lacks and what was taken for granted, one clause each.
    pub notices: Vec<String>,
}

impl SummaryReport {
    /// From the first event to the latest.
    pub fn span(&self) -> Ns {
        self.end.since(self.start)
    }

    /// The least and the greatest share of all CPUs' time that can have been idle: in unknown time none was, or all.
    pub fn idle_bounds(&self) -> Option<(f64, f64)> {
        let all = self.span().0 as f64 * self.nr_cpus as f64;
        let sum = |time: fn(&CpuTime) -> Ns| self.cpus.iter().map(|cpu| time(cpu).0 as f64).sum::<f64>();
        let (observed, idle) = (sum(|cpu| cpu.observed), sum(|cpu| cpu.idle));
        (all > 0.0).then(|| (idle / all, (idle + (all - observed).max(0.0)) / all))
    }

    /// The share of the CPUs' known time that they idled; none when nothing is known.
    pub fn idle_share(&self) -> Option<f64> {
        let sum = |time: fn(&CpuTime) -> Ns| self.cpus.iter().map(|cpu| time(cpu).0 as f64).sum::<f64>();
        let observed = sum(|cpu| cpu.observed);
        (observed > 0.0).then(|| sum(|cpu| cpu.idle) / observed)
    }
}
