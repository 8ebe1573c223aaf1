//! What the main thread of schbench does: it creates the message threads, sleeps a second at a time, prints and resets tables
//! when due, stops all threads, and prints the end. With `-a` it repeats all that under more load.
//!
//! Must not know: how messages are passed.

use fairlab_event::Ns;

use super::memory::{SchbenchRole, SchbenchState, clock_us};
use super::options::{PIPE_BYTES_MAX, SchbenchOptions, SchbenchRevision};
use super::report::{self, LoadIncrease};
use crate::workload::{Action, ThreadId};

const SECOND_US: u64 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MainThreadStage {
    /// About to create message thread `next`.
    Create { next: usize },
    /// About to look at the clock for the first time.
    Start,
    /// Looks at the clock once a second.
    Look,
    /// About to post message thread `next` for the last time.
    Join { next: usize },
    /// Waits for the end of message thread `next`.
    Joining { next: usize },
    /// Printed everything.
    Done,
}

/// The main thread, with what it has printed.
#[derive(Debug)]
pub(super) struct MainThread {
    stage: MainThreadStage,
    printed: String,
    /// When the round began, when the last table was printed, and when the statistics were zeroed last, µs.
    start_us: u64,
    table_us: u64,
    zeroed_us: u64,
    is_warm: bool,
}

impl MainThread {
    pub(super) fn new(options: &SchbenchOptions) -> MainThread {
        let mut printed = String::new();
        if options.pipe_was_cut {
            printed.push_str(&format!("pipe size too big, using {PIPE_BYTES_MAX}\n"));
        }
        if options.auto && options.requests_per_s == 1 {
            printed.push_str(&format!("autobench rps {}\n", options.initial_requests_per_s()));
        }
        let stage = MainThreadStage::Create { next: 0 };
        MainThread { stage, printed, start_us: 0, table_us: 0, zeroed_us: 0, is_warm: false }
    }

    /// Whether all message threads are there.
    pub(super) fn has_created_all(&self) -> bool {
        !matches!(self.stage, MainThreadStage::Create { .. })
    }

    /// What the main thread does next.
    pub(super) fn next(&mut self, memory: &mut SchbenchState, now: Ns) -> Action {
        loop {
            match self.stage {
                MainThreadStage::Create { next } if next < memory.messages.len() => {
                    self.stage = MainThreadStage::Create { next: next + 1 };
                    return memory.spawn(SchbenchRole::Message(next));
                }
                MainThreadStage::Create { .. } => self.stage = MainThreadStage::Start,
                MainThreadStage::Start => {
                    if let Some(sleep) = self.start(&memory.options, now) {
                        return sleep;
                    }
                }
                MainThreadStage::Look => {
                    if let Some(sleep) = self.look(memory, now) {
                        return sleep;
                    }
                }
                MainThreadStage::Join { next } if next < memory.messages.len() => {
                    self.stage = MainThreadStage::Joining { next };
                    if let Some(wake) = memory.post_message(next) {
                        return wake;
                    }
                }
                MainThreadStage::Join { .. } => self.finish(memory),
                MainThreadStage::Joining { next } => {
                    if !memory.messages[next].ended {
                        memory.main_joins = Some(next);
                        return Action::Wait;
                    }
                    memory.main_joins = None;
                    self.stage = MainThreadStage::Join { next: next + 1 };
                }
                MainThreadStage::Done => return memory.retire(ThreadId::MAIN, None),
            }
        }
    }

    fn start(&mut self, options: &SchbenchOptions, now: Ns) -> Option<Action> {
        let now_us = clock_us(now);
        (self.start_us, self.table_us, self.zeroed_us) = (now_us, now_us, now_us);
        self.is_warm = false;
        self.stage = MainThreadStage::Look;
        // The January revision sleeps through first, and looks at the clock then.
        let sleeps = options.revision == SchbenchRevision::FinalTable;
        sleeps.then(|| Action::Sleep(Ns::from_secs(options.runtime_s.into())))
    }

    /// Looks at the clock: stops when the time is over, else prints and zeroes what is due and sleeps for a second.
    fn look(&mut self, memory: &mut SchbenchState, now: Ns) -> Option<Action> {
        let elapsed_us = clock_us(now).saturating_sub(self.start_us);
        let options = &memory.options;
        let runtime_us = u64::from(options.runtime_s) * SECOND_US;
        let has_intervals = options.revision >= SchbenchRevision::Intervals;
        let endless = has_intervals && runtime_us == 0;
        if !endless && elapsed_us >= runtime_us {
            memory.stopping = true;
            self.stage = MainThreadStage::Join { next: 0 };
            return None;
        }
        if has_intervals {
            self.print_and_zero(memory, clock_us(now), elapsed_us);
        }
        Some(Action::Sleep(Ns::from_secs(1)))
    }

    /// The end of the warm-up zeroes and takes the place of a table; `-z` counts from the last zeroing.
    fn print_and_zero(&mut self, memory: &mut SchbenchState, now_us: u64, elapsed_us: u64) {
        let options = &memory.options;
        let warmup_us = u64::from(options.warmup_s) * SECOND_US;
        let zero_us = u64::from(options.zero_s) * SECOND_US;
        let interval_us = u64::from(options.interval_s) * SECOND_US;
        let measures_wakeups = options.pipe_bytes == 0 && !memory.gives_requests();
        let (warms_up, prints) = if options.revision >= SchbenchRevision::MessageSpin {
            (measures_wakeups, measures_wakeups)
        } else {
            (true, options.pipe_bytes == 0)
        };
        if warms_up && warmup_us > 0 && elapsed_us > warmup_us && !self.is_warm {
            self.is_warm = true;
            self.printed.push_str("warmup done, zeroing stats\n");
            self.zeroed_us = now_us;
            memory.zero_statistics();
        } else if prints && now_us.saturating_sub(self.table_us) >= interval_us {
            self.table_us = now_us;
            report::table(&mut self.printed, memory, elapsed_us / SECOND_US);
        }
        if zero_us > 0 && now_us.saturating_sub(self.zeroed_us) > zero_us {
            self.zeroed_us = now_us;
            memory.zero_statistics();
        }
    }

    /// Prints the ending, and with `-a` begins the next round if latencies do not hurt yet.
    fn finish(&mut self, memory: &mut SchbenchState) {
        let harder = report::harder(memory);
        let runtime_s = memory.options.runtime_s.into();
        match harder {
            None => {
                report::ending(&mut self.printed, memory, runtime_s);
                self.stage = MainThreadStage::Done;
            }
            Some(harder) => {
                report::round(&mut self.printed, memory);
                match harder {
                    LoadIncrease::Workers(workers) => memory.worker_threads = workers,
                    LoadIncrease::Requests(requests_per_s) => memory.requests_per_s = requests_per_s,
                }
                memory.round += 1;
                memory.begin_round();
                self.stage = MainThreadStage::Create { next: 0 };
            }
        }
    }

    /// What it has printed.
    pub(super) fn printed(&self) -> &str {
        &self.printed
    }

    /// What was printed until `now`, and if the program still runs, the ending as of `now`.
    pub(super) fn output(&self, memory: &SchbenchState, now: Ns) -> String {
        let mut output = self.printed.clone();
        let seconds = match self.stage {
            MainThreadStage::Done => return output,
            // Nothing began yet.
            MainThreadStage::Create { .. } | MainThreadStage::Start => 0,
            MainThreadStage::Look => clock_us(now).saturating_sub(self.start_us) / SECOND_US,
            MainThreadStage::Join { .. } | MainThreadStage::Joining { .. } => memory.options.runtime_s.into(),
        };
        report::ending(&mut output, memory, seconds);
        output
    }
}
