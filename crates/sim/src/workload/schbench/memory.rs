//! What the threads of schbench share: futex words, the lists of waiting workers, statistics, the stop flag.
//!
//! Must not know: what any thread does with it.

use std::collections::VecDeque;

use fairlab_event::Ns;

use super::histogram::{Extremes, PERCENTILES, SchbenchHistogram};
use super::message::MessageStage;
use super::options::{SchbenchOptions, SchbenchRevision};
use super::worker::WorkerStage;
use crate::workload::{Action, ThreadId, ThreadSpec};

/// CPU time of writing into the page of a worker that another CPU wrote last: bytes per ns.
///
/// Measured: `memset` (glibc, `gcc -O2`) by two threads in turns, on two cores of an AMD EPYC with a common last-level
/// cache: 28 bytes per ns for 16 KiB, 69 for 256 KiB, 40 for 1 MiB. The program itself, with `-p 1048576 -m 1 -t 1`,
/// wrote 2 × 20570 MiB a second there, 43 bytes per ns.
pub(super) const COPY_BYTES_PER_NS: u64 = 40;

/// CPU time of a worker's loop beside its think time and its copying: three looks at the clock of about 25 ns each and
/// some atomic operations. Only charged when there is no think time, which contains it.
pub(super) const LOOP: Ns = Ns(100);

/// Time as `gettimeofday` tells it: whole µs.
pub(super) const fn clock_us(now: Ns) -> u64 {
    now.0 / 1_000
}

/// When `usec_spin` ends that begins now: it polls until *more* than `spin_us` have passed on a clock of whole µs.
/// A spin of 0 does not look at the clock at all.
pub(super) const fn spin_end(now: Ns, spin_us: u32) -> Ns {
    if spin_us == 0 { now } else { Ns::from_us(clock_us(now) + spin_us as u64 + 1) }
}

/// CPU time of writing `bytes` into a worker's page.
pub(super) const fn copy_cost(bytes: u32) -> Ns {
    Ns((bytes as u64).div_ceil(COPY_BYTES_PER_NS))
}

/// A futex word of the program's two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FutexValue {
    /// Its owner sleeps, is about to, or used up the last post.
    Blocked,
    /// Posted.
    Running,
}

impl FutexValue {
    /// Posts, and says whether `FUTEX_WAKE` is due: only if it was blocked.
    pub(super) fn post(&mut self) -> bool {
        std::mem::replace(self, FutexValue::Running) == FutexValue::Blocked
    }

    /// Whether there is a post to use up.
    pub(super) fn is_posted(self) -> bool {
        self == FutexValue::Running
    }

    /// Uses up a post, and says whether there was one; if not, `FUTEX_WAIT` is due.
    pub(super) fn take(&mut self) -> bool {
        std::mem::replace(self, FutexValue::Blocked) == FutexValue::Running
    }
}

/// Who a thread is. Indices are into [`SchbenchState`] of the current round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchbenchRole {
    Main,
    Message(usize),
    Worker(usize),
    /// It told whoever joins it that it is gone; only its exit is left.
    Ended,
}

/// What others see of a message thread, and where it is in its program.
#[derive(Debug)]
pub(super) struct MessageMemory {
    pub(super) thread: ThreadId,
    pub(super) futex: FutexValue,
    /// Workers that wait for a reply, in the order in which they came; the list's head is the last one.
    pub(super) list: Vec<usize>,
    /// The worker whose end it waits for.
    pub(super) joins: Option<usize>,
    pub(super) ended: bool,
    pub(super) stage: MessageStage,
}

/// What others see of a worker, and where it is in its program.
#[derive(Debug)]
pub(super) struct WorkerMemory {
    pub(super) thread: ThreadId,
    /// Index of its message thread.
    pub(super) message: usize,
    pub(super) futex: FutexValue,
    /// When the batch that woke it began (or when it began to wait), µs.
    pub(super) wake_time_us: u64,
    /// `-R`: when each request was made, µs, oldest first: those that wait, and those that it took.
    pub(super) requests: VecDeque<u64>,
    pub(super) taken: VecDeque<u64>,
    pub(super) extremes: Extremes,
    pub(super) loops: u64,
    /// It computes or writes, and will not ask for anything before this.
    pub(super) busy_until: Ns,
    /// When it began, and for how long it had run when it last looked, µs.
    pub(super) start_us: u64,
    pub(super) runtime_us: u64,
    pub(super) ended: bool,
    pub(super) stage: WorkerStage,
}

/// The program's memory.
#[derive(Debug)]
pub(super) struct SchbenchState {
    pub(super) options: SchbenchOptions,
    /// Who each thread is, by [`ThreadId`]. Threads are numbered in the order in which `Action::Spawn` was returned.
    pub(super) roles: Vec<SchbenchRole>,
    /// How often `-a` began again.
    pub(super) round: u32,
    /// Workers per message thread in this round.
    pub(super) worker_threads: usize,
    /// Requests per second per message thread in this round; 0 = not in `-R` mode.
    pub(super) requests_per_s: u32,
    pub(super) stopping: bool,
    /// The message thread whose end the main thread waits for.
    pub(super) main_joins: Option<usize>,
    pub(super) messages: Vec<MessageMemory>,
    /// Those of message thread `i` begin at `i × worker_threads`.
    pub(super) workers: Vec<WorkerMemory>,
    pub(super) latencies: SchbenchHistogram,
    /// How often the statistics were zeroed.
    pub(super) zeroings: u32,
    /// Worker loops completed in all rounds.
    pub(super) loops: u64,
}

impl SchbenchState {
    pub(super) fn new(options: SchbenchOptions) -> SchbenchState {
        let mut memory = SchbenchState {
            roles: vec![SchbenchRole::Main],
            round: 0,
            worker_threads: options.worker_threads as usize,
            requests_per_s: options.initial_requests_per_s(),
            stopping: false,
            main_joins: None,
            messages: Vec::new(),
            workers: Vec::new(),
            latencies: SchbenchHistogram::default(),
            zeroings: 0,
            loops: 0,
            options,
        };
        memory.begin_round();
        memory
    }

    /// Begins a round with fresh memory. `requests_per_s` holds those of all message threads, and each gets its share.
    pub(super) fn begin_round(&mut self) {
        self.requests_per_s /= self.options.message_threads;
        self.stopping = false;
        self.main_joins = None;
        self.latencies.clear();
        let messages = self.options.message_threads as usize;
        // Nobody reads a thread id before the thread exists.
        let thread = ThreadId::MAIN;
        let message = |_| MessageMemory {
            thread,
            futex: FutexValue::Blocked,
            list: Vec::new(),
            joins: None,
            ended: false,
            stage: MessageStage::Create { next: 0 },
        };
        let worker = |index: usize| WorkerMemory {
            thread,
            message: index / self.worker_threads,
            futex: FutexValue::Blocked,
            wake_time_us: 0,
            requests: VecDeque::new(),
            taken: VecDeque::new(),
            extremes: Extremes::default(),
            loops: 0,
            busy_until: Ns::ZERO,
            start_us: 0,
            runtime_us: 0,
            ended: false,
            stage: WorkerStage::Begin,
        };
        self.messages = (0..messages).map(message).collect();
        self.workers = (0..messages * self.worker_threads).map(worker).collect();
    }

    /// Creates the thread of `role`.
    pub(super) fn spawn(&mut self, role: SchbenchRole) -> Action {
        let thread = ThreadId(self.roles.len() as u32);
        self.roles.push(role);
        let name = match role {
            SchbenchRole::Message(index) => {
                self.messages[index].thread = thread;
                format!("message-{index}")
            }
            SchbenchRole::Worker(index) => {
                self.workers[index].thread = thread;
                format!("worker-{}.{}", self.workers[index].message, index % self.worker_threads)
            }
            SchbenchRole::Main | SchbenchRole::Ended => "main".to_string(),
        };
        // Names of streams are unique; only -a goes beyond round 0.
        let stream = if self.round == 0 { name } else { format!("round-{}/{name}", self.round) };
        Action::Spawn(ThreadSpec::new(super::COMM, stream))
    }

    /// Ends `thread`: it wakes who joins it, if anyone does already, and exits.
    pub(super) fn retire(&mut self, thread: ThreadId, joiner: Option<ThreadId>) -> Action {
        if let Some(role) = self.roles.get_mut(thread.index()) {
            *role = SchbenchRole::Ended;
        }
        joiner.map_or(Action::Exit, Action::Wake)
    }

    /// Whether the program gives out requests (`-R`) instead of replying to messages.
    pub(super) const fn gives_requests(&self) -> bool {
        self.requests_per_s > 0
    }

    /// Counts a latency of `worker`. The program keeps it in 32 bits.
    pub(super) fn record(&mut self, worker: usize, latency_us: u64) {
        let latency_us = latency_us as u32;
        self.workers[worker].extremes.add(latency_us);
        self.latencies.add(latency_us);
    }

    /// The table's percentiles and maximum; nothing without samples.
    pub(super) fn metrics(&self) -> Vec<(String, f64)> {
        if self.latencies.samples() == 0 {
            return Vec::new();
        }
        let us = |name: &str, us: u32| (format!("schbench_latency_us_{name}"), f64::from(us));
        let percentile = |percent: f64| us(&format!("p{percent}"), self.latencies.percentile(percent));
        let mut metrics = PERCENTILES.map(percentile).to_vec();
        metrics.push(us("max", self.extremes().max));
        metrics
    }

    /// Zeroes the statistics; loops and run times stay.
    pub(super) fn zero_statistics(&mut self) {
        self.zeroings += 1;
        self.latencies.clear();
        for worker in &mut self.workers {
            worker.extremes = Extremes::default();
        }
    }

    /// The exact extremes as the program combines them. The January revision never finds a minimum below 0.
    pub(super) fn extremes(&self) -> Extremes {
        let all = Extremes::combine(self.workers.iter().map(|worker| worker.extremes));
        if self.options.revision == SchbenchRevision::FinalTable { Extremes { min: 0, ..all } } else { all }
    }

    /// `fpost` of a worker: the system call that is due, if any.
    pub(super) fn post_worker(&mut self, index: usize) -> Option<Action> {
        let worker = &mut self.workers[index];
        worker.futex.post().then_some(Action::Wake(worker.thread))
    }

    /// `fpost` of a message thread: the system call that is due, if any.
    pub(super) fn post_message(&mut self, index: usize) -> Option<Action> {
        let message = &mut self.messages[index];
        message.futex.post().then_some(Action::Wake(message.thread))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_wakes_once_and_is_used_once() {
        let mut futex = FutexValue::Blocked;
        assert!(!futex.take());
        assert!(futex.post(), "it was blocked: wake");
        assert!(!futex.post(), "it was posted already: no system call");
        assert!(futex.take());
        assert!(!futex.take(), "two posts are one");
        assert_eq!(futex, FutexValue::Blocked);
    }

    #[test]
    fn a_spin_ends_when_more_than_its_time_has_passed_on_a_clock_of_microseconds() {
        assert_eq!(spin_end(Ns(5_000), 30_000), Ns(30_006_000));
        assert_eq!(spin_end(Ns(5_999), 30_000), Ns(30_006_000));
        assert_eq!(spin_end(Ns(6_000), 30_000), Ns(30_007_000));
        assert_eq!(spin_end(Ns(5_999), 0), Ns(5_999));
    }

    #[test]
    fn copying_costs_time_by_the_byte() {
        assert_eq!(
            (copy_cost(0), copy_cost(1), copy_cost(64), copy_cost(1 << 20)),
            (Ns(0), Ns(1), Ns(2), Ns(26_215))
        );
    }
}
