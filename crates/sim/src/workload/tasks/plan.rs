//! What a file says: tasks with their steps, and what they share.
//!
//! Must not know: TOML, threads that run.

use fairlab_event::Ns;
use fairlab_kernel::CpuMask;

use super::duration::DurationSpec;
use crate::workload::Offer;
use crate::workload::mix::place::MemberPlace;

/// A whole file.
#[derive(Clone, Debug, Default)]
pub(super) struct TasksPlan {
    pub locks: Vec<LockSpec>,
    pub queues: Vec<QueueSpec>,
    pub barriers: Vec<BarrierSpec>,
    pub tasks: Vec<TaskPlan>,
    /// The program ends then by itself.
    pub duration: Option<Ns>,
}

/// How a lock is waited for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LockKind {
    /// Who finds it taken sleeps on a futex.
    Mutex,
    /// Who finds it taken burns CPU time in user space.
    Spin,
    /// Who finds it taken burns CPU time for a while, then sleeps for a while, again and again.
    Adaptive {
        /// What a hundred looks take.
        spin: Ns,
    },
}

#[derive(Clone, Debug)]
pub(super) struct LockSpec {
    pub name: String,
    pub kind: LockKind,
}

/// When requests come from outside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Arrivals {
    /// With exponential gaps of this mean.
    Poisson(Ns),
    /// This far apart.
    Fixed(Ns),
    /// With gaps from nothing to twice this.
    Uniform(Ns),
}

/// How requests come from who puts them to who takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestPath {
    /// A pipe or a socket: system calls, whose wakeups hint that the waker is about to sleep.
    Socket,
    /// Memory and a futex: a system call only where somebody sleeps.
    Futex,
    /// A bound workqueue: who takes is the kworker of the CPU on which the request was put.
    Kworker,
}

#[derive(Clone, Debug)]
pub(super) struct QueueSpec {
    pub name: String,
    pub arrivals: Option<Arrivals>,
    /// Arrivals interrupt these CPUs in turn; `None`: the one on which the sleeper went to sleep.
    pub irq: Option<CpuMask>,
    /// A request wakes all that wait for one.
    pub wakes_all: bool,
    pub via: RequestPath,
    /// So many requests fit in.
    pub size: Option<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct BarrierSpec {
    pub name: String,
    /// Who waits burns CPU time.
    pub spins: bool,
    /// How many threads it is for.
    pub threads: usize,
}

/// A task: threads that do one thing.
#[derive(Clone, Debug)]
pub(super) struct TaskPlan {
    pub name: String,
    pub count: usize,
    pub place: MemberPlace,
    pub kthread: bool,
    pub per_cpu: bool,
    /// Each thread is a process with memory of its own.
    pub process: bool,
    /// How long after the beginning it starts.
    pub start: Ns,
    /// How often its steps are done; `None`: for ever.
    pub repeat: Option<u64>,
    pub steps: Vec<Op>,
    /// How many counters its loops need.
    pub counters: usize,
}

/// One thing that a thread does, or a jump among them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Op {
    Run(DurationSpec),
    Syscall {
        work: DurationSpec,
        offers: Option<(Offer, Ns)>,
    },
    Fault(DurationSpec),
    Map(DurationSpec),
    Sleep(DurationSpec),
    Timer(Ns),
    Io(DurationSpec),
    Await(DurationSpec),
    Lock(usize),
    Unlock(usize),
    Take(usize),
    Put(usize),
    Call(usize),
    Reply(Option<usize>),
    /// Wakes so many threads of a task, or all that wait.
    Wake(usize, Option<u32>),
    Wait,
    Barrier(usize),
    Spawn(usize),
    Join,
    Exec(DurationSpec),
    Yield,
    Exit,
    /// The steps up to the matching end are repeated; a counter is set.
    Begin {
        counter: usize,
        times: u64,
    },
    /// Back to the step after the beginning, unless that was the last time.
    Again {
        counter: usize,
        first: usize,
    },
    /// On to that step, but with this chance in a million.
    Skip {
        chance: u64,
        to: usize,
    },
}

impl Op {
    /// Whether time passes by it.
    pub fn takes_time(&self) -> bool {
        match self {
            Op::Run(time) | Op::Sleep(time) | Op::Io(time) | Op::Await(time) => time.takes_time(),
            Op::Unlock(_) | Op::Begin { .. } | Op::Again { .. } | Op::Skip { .. } => false,
            // Who has to wait for nothing goes on at once.
            Op::Lock(_) | Op::Barrier(_) | Op::Reply(None) => false,
            _ => true,
        }
    }
}
