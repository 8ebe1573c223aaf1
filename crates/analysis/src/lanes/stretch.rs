//! A piece of a trace's time with all that happened in it.
//!
//! Must not know: how it is found, how it is kept.

use fairlab_event::{Cpu, Ns, TaskState};

use crate::explain::story::Mode;
use crate::tracker::Departure;

/// What a CPU does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct What(pub u32);

impl What {
    /// It idles.
    pub const IDLE: What = What(0);
    /// Unknown.
    pub const UNKNOWN: What = What(1);

    /// It runs the task of this number.
    pub const fn of(task: u32) -> What {
        What(task.saturating_add(2))
    }

    /// The task that it runs.
    pub const fn task(self) -> Option<u32> {
        self.0.checked_sub(2)
    }
}

/// How what ran before left a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Leaving {
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

impl Leaving {
    pub(super) fn of(how: Departure) -> Leaving {
        match how {
            Departure::PreemptedInKernel => Leaving::PreemptedInKernel,
            Departure::Preempted => Leaving::Preempted,
            Departure::Yielded => Leaving::Yielded,
            Departure::Runnable => Leaving::Runnable,
            Departure::Exited => Leaving::Exited,
            Departure::Slept(state) if state.contains(TaskState::IDLE) => Leaving::Idles,
            Departure::Slept(state) if state.contains(TaskState::UNINTERRUPTIBLE) => Leaving::Blocked,
            Departure::Slept(state) if state.contains(TaskState::INTERRUPTIBLE) || state.is_runnable() => {
                Leaving::Sleeps
            }
            Departure::Slept(_) => Leaving::Stopped,
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
pub struct Waited {
    /// How long it was.
    pub length: Ns,
    /// Why it began.
    pub began: WaitBegan,
    /// The CPU that woke the task, and in what mode.
    pub waker: Option<(Cpu, Mode)>,
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
    pub what: What,
    /// How what it did before ended.
    pub left: Leaving,
    /// The wait that ends here.
    pub wait: Option<Waited>,
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
pub enum Standing {
    /// It runs.
    Runs,
    /// It waits for a CPU.
    Waits,
    /// It sleeps, and how it left.
    Sleeps(Leaving),
}

impl Standing {
    /// A number: 0 runs, 1 waits, and from 2 on how it left.
    pub const fn code(self) -> u8 {
        match self {
            Standing::Runs => 0,
            Standing::Waits => 1,
            Standing::Sleeps(how) => 2 + how as u8,
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
pub struct Stretch {
    /// From when.
    pub from: Ns,
    /// Until when.
    pub to: Ns,
    /// What tasks do at the beginning, those that are neither gone nor unknown.
    pub standing: Vec<(u32, Standing)>,
    /// What CPUs do at the beginning.
    pub running: Vec<(Cpu, What)>,
    /// What CPUs begin to do, in the order of events.
    pub switches: Vec<SwitchIn>,
    /// Moves of waiting tasks.
    pub moves: Vec<MovedWaiting>,
    /// The tasks that wait at the end.
    pub waiting: Vec<StillWaits>,
    /// Virtual time of tasks that come on a CPU, by the place among the switches.
    pub facts: Vec<(u32, VirtualFacts)>,
}
