//! A piece of a trace's time with all that happened in it.
//!
//! Must not know: how it is found, how it is kept.

use fairlab_event::{Cpu, Ns, TaskState};

use crate::explain::story::CpuMode;
use crate::tracker::Departure;

/// What a CPU does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaneOccupant(pub u32);

impl LaneOccupant {
    /// It idles.
    pub const IDLE: LaneOccupant = LaneOccupant(0);
    /// Unknown.
    pub const UNKNOWN: LaneOccupant = LaneOccupant(1);

    /// It runs the task of this number.
    pub const fn of(task: u32) -> LaneOccupant {
        LaneOccupant(task.saturating_add(2))
    }

    /// The task that it runs.
    pub const fn task(self) -> Option<u32> {
        self.0.checked_sub(2)
    }
}

/// How what ran before left a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum LeaveReason {
    /// It is not in the trace.
    #[default]
    Unknown,
    /// The CPU idled.
    Nothing,
    /// Preempted inside the kernel (`R+`).
    PreemptedInKernel,
    /// Preempted on the way to user mode.
    Preempted,
    /// It yielded.
    Yielded,
    /// Runnable, and the trace does not tell why it left.
    Runnable,
    /// Interruptible sleep (`S`).
    Sleeps,
    /// Uninterruptible sleep (`D`).
    Blocked,
    /// Idle kernel thread (`I`).
    Idles,
    /// Any other sleep: stopped, traced, parked.
    Stopped,
    /// It exited.
    Exited,
}

impl LeaveReason {
    pub(super) fn of(how: Departure) -> LeaveReason {
        match how {
            Departure::PreemptedInKernel => LeaveReason::PreemptedInKernel,
            Departure::Preempted => LeaveReason::Preempted,
            Departure::Yielded => LeaveReason::Yielded,
            Departure::Runnable => LeaveReason::Runnable,
            Departure::Exited => LeaveReason::Exited,
            Departure::Slept(state) if state.contains(TaskState::IDLE) => LeaveReason::Idles,
            Departure::Slept(state) if state.contains(TaskState::UNINTERRUPTIBLE) => LeaveReason::Blocked,
            Departure::Slept(state) if state.contains(TaskState::INTERRUPTIBLE) || state.is_runnable() => {
                LeaveReason::Sleeps
            }
            Departure::Slept(_) => LeaveReason::Stopped,
        }
    }
}

/// Why a wait began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum WaitBegan {
    /// The task was woken.
    Wakeup = 1,
    /// It is new.
    New,
    /// It was preempted.
    Preempted,
    /// It yielded.
    Yielded,
    /// It left runnable; the trace does not tell why.
    LeftRunnable,
}

/// A wait that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneWait {
    /// How long it was.
    pub length: Ns,
    /// Why it began.
    pub began: WaitBegan,
    /// The CPU that woke the task, and in what mode.
    pub waker: Option<(Cpu, CpuMode)>,
    /// It crosses a hole: it is no measurement.
    pub crossed: bool,
}

/// A CPU begins to do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchIn {
    /// When. On one CPU times do not go back; where a hole is found out later, it may lie before the stretch.
    pub time: Ns,
    /// Where.
    pub cpu: Cpu,
    /// What it does from now on.
    pub what: LaneOccupant,
    /// How what it did before ended.
    pub left: LeaveReason,
    /// The wait that ends here.
    pub wait: Option<LaneWait>,
}

/// A waiting task is moved to another CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovedWaiting {
    /// When.
    pub time: Ns,
    /// Which task.
    pub task: u32,
    /// Where it was.
    pub from: Cpu,
    /// Where it goes.
    pub to: Cpu,
}

/// A task that waits when a stretch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StillWaits {
    /// Which.
    pub task: u32,
    /// Where, if it is queued.
    pub cpu: Option<Cpu>,
    /// Since when.
    pub since: Ns,
}

/// What a task does when a stretch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartingState {
    /// It runs.
    Runs,
    /// It waits for a CPU.
    Waits,
    /// It sleeps, and how it left.
    Sleeps(LeaveReason),
}

impl StartingState {
    /// A number: 0 runs, 1 waits, and from 2 on how it left.
    pub const fn code(self) -> u8 {
        match self {
            StartingState::Runs => 0,
            StartingState::Waits => 1,
            StartingState::Sleeps(how) => 2 + how as u8,
        }
    }
}

/// Where a task stood in virtual time when it was seen last before it came on a CPU; virtual ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VirtualFacts {
    /// Its vruntime.
    pub vruntime: u64,
    /// Its lag and its deadline, where it was placed last.
    pub placed: Option<(i64, u64)>,
}

/// All that happened from one time to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneStretch {
    /// From when.
    pub from: Ns,
    /// Until when.
    pub to: Ns,
    /// What tasks do at the beginning, those that are neither gone nor unknown.
    pub standing: Vec<(u32, StartingState)>,
    /// What CPUs do at the beginning.
    pub running: Vec<(Cpu, LaneOccupant)>,
    /// What CPUs begin to do, in the order of events.
    pub switches: Vec<SwitchIn>,
    /// Moves of waiting tasks.
    pub moves: Vec<MovedWaiting>,
    /// The tasks that wait at the end.
    pub waiting: Vec<StillWaits>,
    /// Virtual time of tasks that come on a CPU, by the place among the switches.
    pub facts: Vec<(u32, VirtualFacts)>,
}
