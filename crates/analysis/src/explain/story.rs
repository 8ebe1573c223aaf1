//! One wait as a chain of causes.
//!
//! Must not know: how it is found, how it is printed.

use std::fmt;
use std::sync::Arc;

use fairlab_event::{Comm, Cpu, Ns, Pid, Prio};

use super::placement::{ExplainedPlacement, virtual_distance};
pub use crate::tracker::{Departure, MoveCause, WaitCause};

/// A task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamedPid {
    /// Its name.
    pub comm: Comm,
    /// Its id; 0 is the idle task.
    pub pid: Pid,
}

impl fmt::Display for NamedPid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid.is_idle() {
            true => f.write_str("the idle task"),
            false if self.comm.is_empty() => write!(f, "task {}", self.pid),
            false => write!(f, "{}:{}", self.comm, self.pid),
        }
    }
}

/// The mode in which a CPU did something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuMode {
    /// In the context of the task.
    Task,
    /// In a soft interrupt on top of it.
    SoftInterrupt,
    /// In a hardware interrupt on top of it.
    HardInterrupt,
}

/// The waker of a task, and where it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waker {
    /// The task that ran there.
    pub who: NamedPid,
    /// The CPU.
    pub cpu: Cpu,
    /// In its own right, or interrupted.
    pub mode: CpuMode,
}

/// What brought the waiting task to another CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaiterMove {
    /// When.
    pub time: Ns,
    /// Where it was.
    pub from: Cpu,
    /// Where it went.
    pub to: Cpu,
    /// What moved it.
    pub cause: MoveCause,
    /// The task that ran on the CPU that did it.
    pub by: NamedPid,
}

/// Part of a wait, on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitPart {
    /// Where it was queued.
    pub cpu: Cpu,
    /// Since when.
    pub from: Ns,
    /// Until when.
    pub to: Ns,
    /// What brought it there, unless its wait began there.
    pub brought_by: Option<WaiterMove>,
    /// How many others waited there when it came.
    pub ahead: u32,
    /// What ran there when it came; none is the idle task, or unknown.
    pub runner: Option<NamedPid>,
}

/// A reschedule that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReschedRequest {
    /// When, as far as the order of events tells.
    pub time: Ns,
    /// By what.
    pub by: AskedBy,
}

/// What asks for a reschedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedBy {
    /// The scheduler's tick.
    Tick,
    /// The timer that ends slices (`HRTICK`).
    Hrtick,
    /// The wakeup of a task.
    Wakeup(NamedPid),
    /// Something else.
    Other,
}

/// A tick that went by while the task waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// When.
    pub time: Ns,
    /// The CPU time that it accounted to the running task.
    pub runtime: Ns,
    /// The running task's vruntime then, where the trace tells it.
    pub vruntime: Option<u64>,
}

/// A task that ran while the other waited on the same CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherRun {
    /// The task.
    pub who: NamedPid,
    /// The CPU.
    pub cpu: Cpu,
    /// From when, not earlier than the wait.
    pub from: Ns,
    /// Until when, not later than the wait.
    pub to: Ns,
    /// It ran already when the wait began there.
    pub began_before: bool,
    /// When it came is not in the trace: it may have run earlier than `from`, and so may others.
    pub beginning_unknown: bool,
    /// How it left the CPU; none when the waiting task was moved away before.
    pub left: Option<Departure>,
    /// The reschedule that was pending when it left, if it was preempted.
    pub asked: Option<ReschedRequest>,
    /// It was then moved to another CPU.
    pub moved: Option<WaiterMove>,
    /// Ticks that went by without a switch: it was granted another stretch each time, unless slices end by a timer. The first ones.
    pub ticks: Vec<Tick>,
    /// How many such ticks there were.
    pub tick_count: u64,
    /// The last of them.
    pub last_tick: Option<Tick>,
    /// Slices end by a timer of their own, as far as the trace has shown by then.
    pub slice_timer: bool,
}

impl OtherRun {
    /// For how long.
    pub fn length(&self) -> Ns {
        self.to.since(self.from)
    }
}

/// A time for which a group of the waiting task was throttled on the CPU where it waited: its quota was used up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThrottledSpan {
    /// The group's path; its number if the trace does not tell that.
    pub group: String,
    /// Where.
    pub cpu: Cpu,
    /// From when, not earlier than the stay there.
    pub from: Ns,
    /// Until when, not later than the stay there.
    pub to: Ns,
    /// No probe tells of it: it is concluded from the group's quota and run time.
    pub is_concluded: bool,
}

/// What all runs of one task come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherTask {
    /// The task.
    pub who: NamedPid,
    /// How often it ran.
    pub runs: u64,
    /// For how long in all.
    pub time: Ns,
}

/// A CPU that idled meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleCpu {
    /// Which.
    pub cpu: Cpu,
    /// For how long in all.
    pub time: Ns,
    /// How often.
    pub spells: u32,
    /// The longest time in one piece.
    pub longest: Ns,
    /// When that began.
    pub longest_from: Ns,
}

impl IdleCpu {
    /// It has not idled yet.
    pub(super) const fn new(cpu: Cpu) -> IdleCpu {
        IdleCpu { cpu, time: Ns::ZERO, spells: 0, longest: Ns::ZERO, longest_from: Ns::ZERO }
    }
}

/// An attempt of a balancer to take tasks from the CPU where the task waited, as probes on `detach_tasks` tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PullAttempt {
    /// When.
    pub time: Ns,
    /// The CPU that wanted tasks.
    pub dest: Cpu,
    /// The CPU that it looked at.
    pub src: Cpu,
    /// How much was to be moved.
    pub imbalance: i64,
    /// The unit, where the probe tells.
    pub migration_type: Option<&'static str>,
    /// How many tasks were moved, where the probe tells.
    pub moved: Option<u64>,
}

/// What let the task run in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    /// The CPU was idle.
    CpuWasIdle,
    /// The task that ran blocked or exited.
    Blocked(NamedPid, Departure),
    /// The task that ran was preempted, by what asked for it.
    Preempted(NamedPid, Option<ReschedRequest>),
    /// The task that ran gave the CPU up.
    Yielded(NamedPid),
    /// The task that ran left runnable, why is not known.
    LeftRunnable(NamedPid),
    /// The stopper took away the task that ran.
    Stopper {
        /// The stopper.
        stopper: NamedPid,
        /// The task that it moved, and where to.
        moved: Option<(NamedPid, WaiterMove)>,
    },
    /// What ran before is not in the trace.
    Unknown,
}

/// The view from virtual time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualTime {
    /// The waiting task's placement for this wait.
    pub waiter: Option<Arc<ExplainedPlacement>>,
    /// What the waiting task's vruntime was when it ran at last, reckoned back from its first accounting.
    pub waiter_vruntime: Option<u64>,
    /// The task that ran when it was queued.
    pub runner: NamedPid,
    /// The runner's priority.
    pub runner_prio: Prio,
    /// The runner's vruntime then, and when it was accounted.
    pub runner_vruntime: Option<(Ns, u64)>,
    /// The runner's vruntime at its last tick meanwhile.
    pub runner_vruntime_at_end: Option<(Ns, u64)>,
    /// The runner's placement with the most levels that is known.
    pub runner_placement: Option<Arc<ExplainedPlacement>>,
    /// How many groups lie above the waiting task, by its placement with the most levels; none: it was never placed.
    pub waiter_groups: Option<usize>,
}

impl VirtualTime {
    /// Where the waiting task stood by its own entity.
    pub fn waiter_vruntime(&self) -> Option<u64> {
        let placed = self.waiter.as_ref().and_then(|placement| placement.own()).map(|own| own.sev);
        placed.or(self.waiter_vruntime)
    }

    /// Whether there is more to it than where one of the two stood.
    pub fn says_something(&self) -> bool {
        self.waiter.is_some() || self.gap().is_some()
    }

    /// How far the waiting task's vruntime lay behind the runner's, virtual nanoseconds; negative: before it.
    pub fn gap(&self) -> Option<i64> {
        let (_, runner) = self.runner_vruntime?;
        Some(virtual_distance(runner, self.waiter_vruntime()?))
    }

    /// How much CPU time of the runner would close the gap, if the waiting task lay behind a runner of nice 0.
    pub fn time_to_close(&self) -> Option<Ns> {
        let gap = u64::try_from(self.gap()?).ok().filter(|&gap| gap > 0)?;
        (self.runner_prio.nice() == Some(0)).then_some(Ns(gap))
    }

    /// How many groups lie above the runner, by its placement with the most levels; none: it was never placed.
    pub fn runner_groups(&self) -> Option<usize> {
        self.runner_placement.as_ref().map(|placement| placement.groups())
    }

    /// Whether the two stand on one line of virtual time: `Some(false)` when they were placed below different numbers of
    /// groups; none when the trace does not tell.
    pub fn is_comparable(&self) -> Option<bool> {
        match (self.waiter_groups?, self.runner_groups()?) {
            (0, 0) => Some(true),
            (of_waiter, of_runner) if of_waiter != of_runner => Some(false),
            _ => None,
        }
    }
}

/// One wait.
#[derive(Clone, Debug, PartialEq)]
pub struct Story {
    /// The task that waited.
    pub task: NamedPid,
    /// Its priority.
    pub prio: Prio,
    /// Since when.
    pub start: Ns,
    /// Until when.
    pub end: Ns,
    /// Why the wait began.
    pub cause: WaitCause,
    /// What preempted it, if it was.
    pub preempted_by: Option<ReschedRequest>,
    /// Its waker, if it was woken.
    pub waker: Option<Waker>,
    /// The CPU on which it had run last, as far as its wakeup tells.
    pub prev_cpu: Option<Cpu>,
    /// Where it waited, in order.
    pub stays: Vec<WaitPart>,
    /// Stays that are not listed.
    pub stays_left_out: u64,
    /// The tasks that ran instead, in order.
    pub runs: Vec<OtherRun>,
    /// Runs that are not listed: how many, and for how long.
    pub runs_left_out: (u64, Ns),
    /// When its group was throttled where it waited, in order.
    pub throttled: Vec<ThrottledSpan>,
    /// Whether its CPU idled for so long that its group may have been throttled, which the trace does not show.
    pub perhaps_throttled: bool,
    /// For how long the trace does not show what the CPU did on which it waited.
    pub unknown: Ns,
    /// The tasks that ran longest of all, also of runs that are not listed.
    pub runners: Vec<OtherTask>,
    /// CPUs that idled meanwhile and that it may use, as far as is known, the longest first.
    pub idle: Vec<IdleCpu>,
    /// The only CPU that it may use, by its name.
    pub pinned_to: Option<Cpu>,
    /// How many other CPUs the trace shows.
    pub other_cpus: usize,
    /// Attempts to pull from where it waited.
    pub pulls: Vec<PullAttempt>,
    /// Attempts that are not listed.
    pub pulls_left_out: u64,
    /// What let it run.
    pub end_cause: WaitEnd,
    /// The CPU on which it ran at last.
    pub ran_on: Cpu,
    /// The view from virtual time, where the trace has any.
    pub virtual_time: Option<VirtualTime>,
    /// Part of what happened meanwhile was forgotten to keep memory small.
    pub incomplete: bool,
}

impl Story {
    /// For how long it waited.
    pub fn length(&self) -> Ns {
        self.end.since(self.start)
    }

    /// Whether its first accounting would tell what its vruntime was: it stood on one queue, and not known where.
    pub(super) fn wants_accounting(&self) -> bool {
        let is_plain = self.stays.len() == 1 && self.prio.nice() == Some(0);
        is_plain && self.virtual_time.as_ref().is_some_and(|view| view.waiter.is_none())
    }
}
