//! What a workload is to the engine: threads that act, and the memory that they share.
//!
//! Must not know: schedulers, costs. A program sees what user space sees: its own actions and the clock; the CPU is there for what
//! stands for the kernel's own code.

pub mod administration;
mod arguments;
pub mod catalogue;
pub mod cgroup;
pub mod daemons;
pub mod hackbench;
pub mod jobs;
pub mod mix;
pub mod periodic;
pub mod pipe;
pub mod random;
pub mod replay;
pub mod rtapp;
pub mod schbench;
pub mod schbench2;
pub mod sessions;
pub mod spinners;
pub mod stream;
pub mod tasks;
pub mod tbench;
pub mod uperf;
pub mod vhost;
pub mod warm_up;

use fairlab_event::{Comm, Cpu, Ns};
use fairlab_kernel::{CpuMask, Policy};

use crate::rng::RandomStream;
use administration::Administration;
pub use arguments::CommandLine;
use cgroup::{GroupFile, GroupSpec};

/// A thread of a workload, numbered in order of creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub u32);

impl ThreadId {
    /// The thread that exists at the start: the program's main thread.
    pub const MAIN: ThreadId = ThreadId(0);

    /// The number as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a new thread is like.
#[derive(Clone, Debug)]
pub struct ThreadSpec {
    /// Its name in traces.
    pub comm: Comm,
    /// The name of its random stream; unique within the workload.
    pub stream: String,
    /// Its nice level, −20…19.
    pub nice: i32,
    /// The CPUs that it may use.
    pub allowed: CpuMask,
    /// The control group that it starts in, by its index among the workload's; `None`: its creator's.
    pub group: Option<usize>,
    /// It is a thread of the kernel.
    pub kthread: bool,
    /// What it does with memory.
    pub memory: MemoryUse,
    /// Its policy.
    pub policy: Policy,
    /// It is the first thread of a process of its own; otherwise it is in its creator's.
    pub process: bool,
    /// It begins a session (`setsid()`), whose autogroup has this nice level (`/proc/PID/autogroup`), where the kernel has
    /// autogroups on; otherwise it is in its creator's.
    pub session: Option<i32>,
}

/// What a thread does with memory; what that costs, the machine's table `[sharing]` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Which part of its computing ([`Action::Run`]) waits for memory, at full speed and alone, in thousandths: the rest goes on as
    /// fast whoever shares the memory. At most 1000.
    pub traffic_permille: u64,
    /// What it works with, KB, which its caches have to be refilled with after a move; `None`: what the machine says of any thread.
    pub working_set_kb: Option<u64>,
}

impl ThreadSpec {
    /// A thread of nice 0 that may run anywhere.
    pub fn new(comm: &str, stream: impl Into<String>) -> ThreadSpec {
        ThreadSpec {
            comm: Comm::from(comm),
            stream: stream.into(),
            nice: 0,
            allowed: CpuMask::ALL,
            group: None,
            kthread: false,
            memory: MemoryUse::default(),
            policy: Policy::Normal,
            process: false,
            session: None,
        }
    }
}

/// How long a message is whose cost a machine tells, bytes.
pub const MESSAGE_BYTES: u32 = 100;

/// What a thread does next. The engine carries it out and asks again when it is done.
#[derive(Clone, Debug)]
pub enum Action {
    /// Computes for this much CPU time, in user mode. Preemption makes it last longer.
    Run(Ns),
    /// Computes until the clock says this time (busy polling), in user mode. Time passes while it is preempted, too.
    SpinUntil(Ns),
    /// Moves so many bytes between its core and memory in user mode, as a loop of STREAM does: all of it waits for memory. Where the
    /// machine tells no bandwidth, it goes at [`NOMINAL_MEGABYTES_PER_S`](crate::machine::NOMINAL_MEGABYTES_PER_S).
    Traffic(u64),
    /// Sleeps for at least this long on a timer (`nanosleep`, `usleep`): interruptible, with the default timer slack.
    Sleep(Ns),
    /// Waits for a device, which takes this long (`io_schedule()`): uninterruptible, and its CPU's clock is raised for it.
    Io(Ns),
    /// Sleeps until something outside the machine wakes it, such as a packet, which comes after this long: interruptible,
    /// and without the slack that timers have.
    Await(Ns),
    /// The same, and it interrupts this CPU, not the one on which the thread goes to sleep.
    AwaitOn(Ns, Cpu),
    /// Sleeps until another thread wakes it (`futex(FUTEX_WAIT)`): interruptible. Returns at once if by the time it would
    /// sleep there is nothing to wait for ([`Workload::must_wait`]), or if a wakeup came meanwhile. It may also return
    /// for no reason, so a program checks its memory again, as one that uses futexes does.
    Wait,
    /// Wakes a thread that waits (`futex(FUTEX_WAKE)`); does nothing but cost a system call if it does not wait.
    Wake(ThreadId),
    /// Wakes a thread that waits, as the end of a write into a pipe or socket does: with the hint that the caller is
    /// about to sleep (`WF_SYNC`).
    WakeSync(ThreadId),
    /// Works in the kernel for this long: a system call that neither sleeps nor wakes. It is preempted only where the kernel can be.
    SystemCall(Ns),
    /// Works in the kernel for `work`, and offers its CPU to others each time that `piece` of it is done. Who takes an offer, and where
    /// else the work can be preempted, is up to the kernel.
    OfferingSystemCall {
        /// What it takes beside entry and exit.
        work: Ns,
        /// What lies between two offers.
        piece: Ns,
        /// What kind of offer it makes.
        offer: Offer,
    },
    /// Burns CPU time in user mode until what it looks at has changed for it ([`Workload::sees`]), or until it has spent `most`.
    /// It can be preempted meanwhile, and then looks again when it next runs.
    SpinOn {
        /// What it looks at: a number of the workload's own, counted from 0 without gaps.
        word: u32,
        /// The CPU time after which it gives up; `Ns::MAX`: it does not.
        most: Ns,
    },
    /// Stores a value, in user mode: at once those that spin on the word, on CPUs of their own, look at it, in an order that is left to
    /// chance, until `most` of them go on.
    Release {
        /// What is stored to.
        word: u32,
        /// How many can go on.
        most: u32,
    },
    /// A system call that writes a message of so many bytes into a socket or pipe; who is woken by that is another action. What it
    /// costs are [`Costs::send`](crate::machine::KernelCosts::send) and the copying of what is longer than [`MESSAGE_BYTES`].
    Send(u32),
    /// A system call that reads such a message, which is there.
    Receive(u32),
    /// Creates a thread. It gets the next number at once; it exists when the action is done.
    Spawn(ThreadSpec),
    /// Offers the CPU (`sched_yield`).
    Yield,
    /// Begins to replace its program (`execve`), which the scheduler takes for an occasion to choose its CPU anew (`sched_exec()`). The
    /// thread keeps its name; the rest of the call's work is another action.
    Exec,
    /// Changes its own scheduling (`sched_setattr`, `sched_setaffinity`); what is `None` stays.
    SetScheduler {
        /// Its policy.
        policy: Option<Policy>,
        /// Its nice level, −20…19.
        nice: Option<i32>,
        /// A slice of its own, where the kernel lets a task ask for one.
        request: Option<Ns>,
        /// The CPUs that it may use.
        allowed: Option<CpuMask>,
    },
    /// Puts itself into one of the workload's control groups (a write to `cgroup.threads`).
    EnterGroup(usize),
    /// Puts itself into the root group.
    LeaveGroup,
    /// Does to other threads and to control groups of the workload what an administrator does.
    Administer(Box<Administration>),
    /// Ends.
    Exit,
}

/// Where kernel code that can be long offers its CPU to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// `cond_resched()`: kernels take it that are preempted nowhere else.
    CondResched,
    /// `might_sleep()`: kernels with voluntary preemption take it (`might_resched()`).
    MightSleep,
}

/// What a program sees when it is asked for its next action.
#[derive(Debug)]
pub struct View<'e> {
    /// The clock.
    pub now: Ns,
    /// The CPU that the thread runs on. Kernel code goes by it; a program of user space has no business with it.
    pub cpu: Cpu,
    /// The thread's own random stream.
    pub random: &'e mut RandomStream,
}

/// How far one of several workloads that run side by side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberProgress<'w> {
    /// Its name.
    pub name: &'w str,
    /// How many it counts, in its own unit.
    pub count: u64,
    /// From when on it counts.
    pub since: Ns,
    /// When it ended, if it has.
    pub until: Option<Ns>,
    /// When it last counted one, where it notes that.
    pub last: Option<Ns>,
}

/// From so many on, a part of one does not matter.
const FEW: u64 = 100;

/// How many a second, of a count from `from` to `to`, in whole ones. Of few, the time until the last one counts, where that is known: two
/// rounds that took long are fewer a second than two that did not.
pub fn per_second(count: u64, last: Option<Ns>, from: Ns, to: Ns) -> f64 {
    let until = last.filter(|last| (1..FEW).contains(&count) && *last > from && *last < to).unwrap_or(to);
    count as f64 / until.since(from).as_secs_f64()
}

impl MemberProgress<'_> {
    /// How many a second, until `now`, in a run that is measured from `settled` on; `None` where it has had no time.
    pub fn per_second(&self, settled: Ns, now: Ns) -> Option<f64> {
        let (from, to) = (self.since.max(settled), self.until.unwrap_or(now));
        (to > from).then(|| per_second(self.count, self.last, from, to))
    }
}

/// A program with its threads' states and their shared memory.
///
/// Calls come in the order of virtual time, so what one thread writes the next one reads: there are no torn reads, and
/// each call is atomic.
pub trait Workload: Send {
    /// It is about to start on a machine with these CPUs: said once, before anything else that depends on them.
    fn begin_on(&mut self, cpus: &CpuMask) {
        let _ = cpus;
    }

    /// The control groups that it needs; they exist before its main thread does.
    fn groups(&self) -> Vec<GroupSpec> {
        Vec::new()
    }

    /// What is written to files of its groups on the way, each with the group's place.
    fn group_writes(&self) -> Vec<(usize, GroupFile)> {
        Vec::new()
    }

    /// Every CPU that it names, in whatever affinity.
    fn named_cpus(&self) -> CpuMask {
        CpuMask::EMPTY
    }

    /// The main thread, which exists from the start.
    fn main_thread(&self) -> ThreadSpec;

    /// What `thread` does next: called first when it first runs, and then whenever its last action is done.
    fn next(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action;

    /// Whether `thread`, which was told to [`Action::Wait`], would still wait: the comparison that `FUTEX_WAIT` makes in
    /// the kernel.
    fn must_wait(&self, thread: ThreadId) -> bool {
        let _ = thread;
        true
    }

    /// The work of `thread`'s system call is done ([`Action::SystemCall`], [`Action::Send`], [`Action::Receive`]), and the
    /// thread has not left the kernel: what it wrote is there for others now. Gives who is woken before the call
    /// returns, with `WF_SYNC`.
    fn system_call_done(&mut self, thread: ThreadId) -> Option<ThreadId> {
        let _ = thread;
        None
    }

    /// A thread has looked at `word` in vain on a CPU for `time`, until it saw what it spun for, was preempted, or gave up.
    fn spun(&mut self, word: u32, time: Ns) {
        let _ = (word, time);
    }

    /// The name of the workload that `thread` belongs to, where several run side by side; also after the thread has ended.
    fn member(&self, thread: ThreadId) -> Option<&str> {
        let _ = thread;
        None
    }

    /// Whether `thread`, which spins on `word` ([`Action::SpinOn`]), sees now what it spins for; where it takes a lock by that, it has it
    /// when this returns.
    fn sees(&mut self, thread: ThreadId, word: u32) -> bool {
        let _ = (thread, word);
        true
    }

    /// Whether its threads of the kernel must be that. Where they need not, ordinary ones stand for them on a real kernel,
    /// which nobody can tell to start any.
    fn needs_kernel_threads(&self) -> bool {
        true
    }

    /// Whether a thread of it may get a policy, a nice level or a slice of its own, or a group be changed on the way.
    fn sets_scheduling(&self) -> bool {
        false
    }

    /// Why the program cannot go on, in one line, if it cannot: whoever runs it ends the run with that.
    fn problem(&self) -> Option<String> {
        None
    }

    /// It settles first: nothing that it does counts before all of its threads have been at work for `length`, and what ends it
    /// by a time or a count begins there. Said before its start; unsaid, and with a length of zero, all counts.
    fn settle(&mut self, length: Ns) {
        let _ = length;
    }

    /// From when on what it does counts; `None` while not all of its threads are at work. One that has nothing to settle
    /// counts from its start.
    fn settled(&self) -> Option<Ns> {
        Some(Ns::ZERO)
    }

    /// What the real program would have printed until `now`.
    fn output(&self, now: Ns) -> String;

    /// What each of several workloads that run side by side counts.
    fn members(&self) -> Vec<MemberProgress<'_>> {
        Vec::new()
    }

    /// What the workload itself counts, in its own unit: (name of the unit, how many until now, since it has settled). `None` if nothing.
    fn progress(&self) -> Option<(&'static str, u64)>;

    /// When the last of those came that [`progress`](Workload::progress) counts; `None`: there was none, or it does not note that.
    fn counted_at(&self) -> Option<Ns> {
        None
    }

    /// Numbers of the program's own, beside those of the scheduler: (name with its unit last, value).
    fn metrics(&self) -> Vec<(String, f64)> {
        Vec::new()
    }

    /// How long the program runs by its own options; `None` when it does not end by itself.
    fn runtime(&self) -> Option<Ns> {
        None
    }
}
