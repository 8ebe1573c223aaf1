//! schbench's main thread for an executor with threads of its own: what it does next, and what it prints.
//!
//! Message threads and workers are the executor's. It tells what they measured, and this main thread, which is the
//! model's, decides when to print, to zero and to stop, so that both print alike.
//!
//! Must not know: how threads run, futexes, clocks.

use fairlab_event::Ns;

use super::histogram::{Extremes, SchbenchHistogram};
use super::main_thread::MainThread;
use super::memory::{SchbenchRole, SchbenchState};
use super::options::SchbenchOptions;
use crate::workload::{Action, ThreadId};

/// What the main thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MainThreadAction {
    /// Creates this message thread; the first one begins a round.
    Create(usize),
    /// Sleeps, and looks at the clock then.
    Sleep(Ns),
    /// Posts this message thread, after all were told to stop.
    Post(usize),
    /// Waits for the end of this message thread; see [`Conductor::joined`].
    Join(usize),
    /// Has printed everything.
    Exit,
}

/// What a worker measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorkerFigures {
    /// Its smallest and largest latency.
    pub extremes: Extremes,
    /// Loops that it completed.
    pub loops: u64,
    /// For how long it has run, µs.
    pub runtime_us: u64,
}

/// The main thread.
#[derive(Debug)]
pub struct Conductor {
    memory: SchbenchState,
    main: MainThread,
    /// How much of what was printed the executor has.
    taken: usize,
    zeroings: u32,
    /// Loops of rounds before this one.
    earlier_loops: u64,
}

impl Conductor {
    /// The main thread of schbench with these options.
    pub fn new(options: SchbenchOptions) -> Conductor {
        Conductor {
            main: MainThread::new(&options),
            memory: SchbenchState::new(options),
            taken: 0,
            zeroings: 0,
            earlier_loops: 0,
        }
    }

    /// The options.
    pub const fn options(&self) -> &SchbenchOptions {
        &self.memory.options
    }

    /// Workers a message thread in this round.
    pub const fn workers(&self) -> usize {
        self.memory.worker_threads
    }

    /// Requests a second that each message thread gives out in this round; 0 where it replies to messages.
    pub const fn requests_per_s(&self) -> u32 {
        self.memory.requests_per_s
    }

    /// What to do at this time since some beginning.
    pub fn next(&mut self, now: Ns) -> MainThreadAction {
        let round = self.memory.round;
        let action = self.main.next(&mut self.memory, now);
        if self.memory.round != round {
            self.earlier_loops = self.memory.loops;
        }
        let message = |thread: ThreadId| match self.memory.roles.get(thread.index()) {
            Some(&SchbenchRole::Message(index)) => index,
            _ => 0,
        };
        match action {
            Action::Spawn(_) => {
                MainThreadAction::Create(message(ThreadId(self.memory.roles.len() as u32 - 1)))
            }
            Action::Sleep(time) => MainThreadAction::Sleep(time),
            Action::Wake(thread) => MainThreadAction::Post(message(thread)),
            Action::Wait => MainThreadAction::Join(self.memory.main_joins.unwrap_or(0)),
            _ => MainThreadAction::Exit,
        }
    }

    /// This message thread has ended, and its workers with it.
    pub fn joined(&mut self, message: usize) {
        if let Some(message) = self.memory.messages.get_mut(message) {
            message.ended = true;
        }
    }

    /// What all workers measured until now, in their order. Due before each [`Conductor::next`].
    pub fn measured(&mut self, latencies: SchbenchHistogram, workers: impl Iterator<Item = WorkerFigures>) {
        self.memory.latencies = latencies;
        self.memory.loops = self.earlier_loops;
        for (worker, figures) in self.memory.workers.iter_mut().zip(workers) {
            worker.extremes = figures.extremes;
            worker.loops = figures.loops;
            worker.runtime_us = figures.runtime_us;
            self.memory.loops += figures.loops;
        }
    }

    /// Whether statistics were zeroed since this was asked last: then the executor does so, too.
    pub fn take_zeroing(&mut self) -> bool {
        std::mem::replace(&mut self.zeroings, self.memory.zeroings) != self.memory.zeroings
    }

    /// What it printed since this was asked last.
    pub fn take_printed(&mut self) -> &str {
        let printed = self.main.printed();
        let from = std::mem::replace(&mut self.taken, printed.len());
        &printed[from..]
    }

    /// How much of all that it printed [`Conductor::take_printed`] gave already, bytes.
    pub const fn taken(&self) -> usize {
        self.taken
    }

    /// All that it printed, and if it has not come to its end, the ending as of `now`.
    pub fn output(&self, now: Ns) -> String {
        self.main.output(&self.memory, now)
    }

    /// Loops that workers completed, warm-up included.
    pub const fn loops(&self) -> u64 {
        self.memory.loops
    }

    /// The table's percentiles and maximum.
    pub fn metrics(&self) -> Vec<(String, f64)> {
        self.memory.metrics()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_thread_creates_looks_stops_and_joins() {
        let args = ["-m", "2", "-t", "3", "-r", "2"].map(String::from);
        let mut conductor = Conductor::new(SchbenchOptions::parse(&args).expect("options"));
        let second = Ns::from_secs(1);
        assert_eq!(conductor.next(Ns(0)), MainThreadAction::Create(0));
        assert_eq!(conductor.next(Ns(0)), MainThreadAction::Create(1));
        assert_eq!(conductor.next(Ns(0)), MainThreadAction::Sleep(second));
        assert_eq!(conductor.next(Ns::from_ms(1100)), MainThreadAction::Sleep(second));
        let mut latencies = SchbenchHistogram::default();
        latencies.add_to_bucket(7, 5);
        let extremes = Extremes { min: 7, max: 9 };
        let figures = WorkerFigures { extremes, loops: 3, runtime_us: 2_000_000 };
        conductor.measured(latencies, std::iter::repeat_n(figures, 6));
        assert_eq!(conductor.next(Ns::from_ms(2200)), MainThreadAction::Post(0));
        assert_eq!(conductor.next(Ns::from_ms(2200)), MainThreadAction::Join(0));
        conductor.joined(0);
        assert_eq!(conductor.next(Ns::from_ms(2200)), MainThreadAction::Post(1));
        assert_eq!(conductor.next(Ns::from_ms(2200)), MainThreadAction::Join(1));
        conductor.joined(1);
        assert_eq!(conductor.next(Ns::from_ms(2200)), MainThreadAction::Exit);
        let printed = conductor.take_printed();
        assert!(
            printed.starts_with("Latency percentiles (usec) runtime 2 (s) (5 total samples)\n"),
            "{printed}"
        );
        assert!(printed.ends_with("\tmin=7, max=9\n"), "{printed}");
        assert_eq!(conductor.take_printed(), "");
        assert_eq!(conductor.loops(), 18);
        assert!(!conductor.take_zeroing());
    }
}
