//! What a message thread of schbench does: create its workers, then reply to all who wait, again and again; with `-R`,
//! give out requests at a steady pace.
//!
//! Must not know: what workers do with a reply, what is printed.

use fairlab_event::Ns;

use super::memory::{FutexValue, SchbenchRole, SchbenchState, clock_us, copy_cost, spin_end};
use super::options::SchbenchRevision;
use crate::rng::RandomStream;
use crate::workload::{Action, ThreadId};

/// How often a message thread looks at its list when it neither waits nor computes nor sleeps (`-p` in abe4f96): the
/// loop has one look at the clock and one atomic operation on a contended line.
const POLL: Ns = Ns(100);

/// How long such a thread may go without looking while all of its workers are known to be busy: nothing can change but
/// the stop flag, so this only makes the simulation faster.
const POLL_MAX: Ns = Ns::from_ms(1);

/// Where a message thread is in its program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MessageStage {
    /// About to create its worker `next`.
    Create { next: usize },
    /// At the top of its loop.
    Top,
    /// Wakes the batch, the last of it first; `closing` when it does so for the second time, at the end.
    Replying { batch: Vec<usize>, batch_us: u64, closing: bool },
    /// Has written the page of the batch's last worker (`-p`), which it will now wake.
    Written { batch: Vec<usize>, batch_us: u64, closing: bool },
    /// In `fwait`.
    Waiting,
    /// About to compute.
    Compute,
    /// In `usec_spin`.
    Computing { until: Ns },
    /// `-R`: about to sleep before the next batch; `turn` counts the requests given out.
    Pause { turn: usize },
    /// `-R`: about to begin a batch.
    Batch { turn: usize },
    /// `-R`: gives out requests, `left` of them, in a batch that began at `start_us`.
    Giving { turn: usize, left: usize, start_us: u64 },
    /// `-R`, at the end: posts its worker `next`, work or not.
    Release { next: usize },
    /// About to post its worker `next` for the last time.
    Join { next: usize },
    /// Waits for the end of its worker `next`.
    Joining { next: usize },
}

/// What message thread `index` does next.
pub(super) fn next(memory: &mut SchbenchState, index: usize, now: Ns, random: &mut RandomStream) -> Action {
    loop {
        // Each step puts the next stage in place.
        let stage = std::mem::replace(&mut memory.messages[index].stage, MessageStage::Top);
        let mut step = MessageStep { memory: &mut *memory, index, now };
        let action = match stage {
            MessageStage::Create { next } => step.create(next),
            MessageStage::Top => step.top(),
            MessageStage::Replying { batch, batch_us, closing } => step.reply(batch, batch_us, closing),
            MessageStage::Written { batch, batch_us, closing } => step.written(batch, batch_us, closing),
            MessageStage::Waiting => step.wait(),
            MessageStage::Compute => step.compute(),
            MessageStage::Computing { until } => step.computing(until, random),
            MessageStage::Pause { turn } => step.pause(turn),
            MessageStage::Batch { turn } => step.batch(turn),
            MessageStage::Giving { turn, left, start_us } => step.giving(turn, left, start_us),
            MessageStage::Release { next } => step.release(next),
            MessageStage::Join { next } => step.join(next),
            MessageStage::Joining { next } => step.joining(next),
        };
        if let Some(action) = action {
            return action;
        }
    }
}

/// Whether a message thread that is about to sleep has not got meanwhile what it waits for: a post, or its worker's end.
pub(super) fn must_wait(memory: &SchbenchState, index: usize) -> bool {
    let message = &memory.messages[index];
    match (&message.stage, message.joins) {
        (MessageStage::Waiting, _) => !message.futex.is_posted(),
        (_, Some(worker)) => !memory.workers[worker].ended,
        _ => true,
    }
}

/// One step of one message thread: it puts the next stage in place, and may have something for the engine to do.
struct MessageStep<'m> {
    memory: &'m mut SchbenchState,
    index: usize,
    now: Ns,
}

impl MessageStep<'_> {
    fn goto(&mut self, stage: MessageStage) {
        self.memory.messages[self.index].stage = stage;
    }

    /// The index of this message thread's worker `number`.
    const fn worker(&self, number: usize) -> usize {
        self.index * self.memory.worker_threads + number
    }

    fn create(&mut self, next: usize) -> Option<Action> {
        if next < self.memory.worker_threads {
            self.goto(MessageStage::Create { next: next + 1 });
            return Some(self.memory.spawn(SchbenchRole::Worker(self.worker(next))));
        }
        self.goto(if self.memory.gives_requests() {
            MessageStage::Pause { turn: 0 }
        } else {
            MessageStage::Top
        });
        None
    }

    fn top(&mut self) -> Option<Action> {
        self.memory.messages[self.index].futex = FutexValue::Blocked;
        self.splice(false);
        None
    }

    /// Takes the whole list and looks at the clock once for all of it.
    fn splice(&mut self, closing: bool) {
        let batch = std::mem::take(&mut self.memory.messages[self.index].list);
        self.goto(MessageStage::Replying { batch, batch_us: clock_us(self.now), closing });
    }

    fn reply(&mut self, mut batch: Vec<usize>, batch_us: u64, closing: bool) -> Option<Action> {
        if batch.is_empty() {
            self.replied_to_all(closing);
            return None;
        }
        let pipe_bytes = self.memory.options.pipe_bytes;
        if pipe_bytes > 0 {
            self.goto(MessageStage::Written { batch, batch_us, closing });
            return Some(Action::Run(copy_cost(pipe_bytes)));
        }
        let worker = batch.pop()?;
        self.goto(MessageStage::Replying { batch, batch_us, closing });
        self.memory.workers[worker].wake_time_us = batch_us;
        self.memory.post_worker(worker)
    }

    /// In pipe mode each worker's latency counts from when its own page was written.
    fn written(&mut self, mut batch: Vec<usize>, batch_us: u64, closing: bool) -> Option<Action> {
        let worker = batch.pop()?;
        self.goto(MessageStage::Replying { batch, batch_us, closing });
        self.memory.workers[worker].wake_time_us = clock_us(self.now);
        self.memory.post_worker(worker)
    }

    fn replied_to_all(&mut self, closing: bool) {
        let options = &self.memory.options;
        if closing {
            self.goto(MessageStage::Join { next: 0 });
        } else if self.memory.stopping {
            self.splice(true);
        } else if options.sleep_us > 0 || options.revision < SchbenchRevision::MessageSpin {
            self.goto(MessageStage::Waiting);
        } else {
            self.goto(MessageStage::Compute);
        }
    }

    fn wait(&mut self) -> Option<Action> {
        if self.memory.messages[self.index].futex.take() {
            self.goto(MessageStage::Compute);
            return None;
        }
        self.goto(MessageStage::Waiting);
        Some(Action::Wait)
    }

    fn compute(&mut self) -> Option<Action> {
        let until = spin_end(self.now, self.memory.options.message_cpu_us);
        self.goto(MessageStage::Computing { until });
        None
    }

    /// Computes, and then sleeps for `-s` and up to a quarter more.
    fn computing(&mut self, until: Ns, random: &mut RandomStream) -> Option<Action> {
        if self.now < until {
            self.goto(MessageStage::Computing { until });
            return Some(Action::SpinUntil(until));
        }
        self.goto(MessageStage::Top);
        let options = &self.memory.options;
        let sleep_us = u64::from(options.sleep_us);
        if sleep_us > 0 && options.pipe_bytes == 0 {
            return Some(Action::Sleep(Ns::from_us(sleep_us + random.below(sleep_us / 4))));
        }
        let polls =
            sleep_us == 0 && options.message_cpu_us == 0 && options.revision >= SchbenchRevision::MessageSpin;
        polls.then(|| self.poll())
    }

    /// Polls the list: looks again in a moment, or when the first of its workers can possibly have asked.
    fn poll(&self) -> Action {
        let first = self.index * self.memory.worker_threads;
        let workers = self.memory.workers.iter().skip(first).take(self.memory.worker_threads);
        let asks = workers.map(|worker| worker.busy_until).min().unwrap_or(self.now);
        if asks > self.now + POLL {
            Action::SpinUntil(asks.min(self.now + POLL_MAX))
        } else {
            Action::Run(POLL)
        }
    }

    /// `-R`: sleeps for as long as the wanted rate allows between two batches.
    fn pause(&mut self, turn: usize) -> Option<Action> {
        self.goto(MessageStage::Batch { turn });
        let batches_per_s = u64::from(self.memory.requests_per_s).div_ceil(self.at_a_time() as u64).max(1);
        Some(Action::Sleep(Ns::from_us(1_000_000 / batches_per_s)))
    }

    fn batch(&mut self, turn: usize) -> Option<Action> {
        self.goto(MessageStage::Giving { turn, left: self.at_a_time(), start_us: clock_us(self.now) });
        None
    }

    fn giving(&mut self, turn: usize, left: usize, start_us: u64) -> Option<Action> {
        if left == 0 {
            let stopping = self.memory.stopping;
            self.goto(if stopping {
                MessageStage::Release { next: 0 }
            } else {
                MessageStage::Pause { turn }
            });
            return None;
        }
        self.goto(MessageStage::Giving { turn: turn + 1, left: left - 1, start_us });
        let index = self.worker(turn % self.memory.worker_threads);
        let worker = &mut self.memory.workers[index];
        worker.requests.push_back(clock_us(self.now));
        worker.wake_time_us = start_us;
        self.memory.post_worker(index)
    }

    /// How many requests a batch has: one for each of two workers of three.
    fn at_a_time(&self) -> usize {
        (self.memory.worker_threads * 2 / 3).max(1)
    }

    fn release(&mut self, next: usize) -> Option<Action> {
        if next == self.memory.worker_threads {
            self.goto(MessageStage::Join { next: 0 });
            return None;
        }
        self.goto(MessageStage::Release { next: next + 1 });
        self.memory.post_worker(self.worker(next))
    }

    fn join(&mut self, next: usize) -> Option<Action> {
        if next == self.memory.worker_threads {
            return Some(self.end());
        }
        self.goto(MessageStage::Joining { next });
        self.memory.post_worker(self.worker(next))
    }

    fn joining(&mut self, next: usize) -> Option<Action> {
        let worker = self.worker(next);
        if self.memory.workers[worker].ended {
            self.memory.messages[self.index].joins = None;
            self.goto(MessageStage::Join { next: next + 1 });
            return None;
        }
        self.goto(MessageStage::Joining { next });
        self.memory.messages[self.index].joins = Some(worker);
        Some(Action::Wait)
    }

    /// Ends; the kernel wakes the main thread if it joins this one.
    fn end(&mut self) -> Action {
        let message = &mut self.memory.messages[self.index];
        message.ended = true;
        let thread = message.thread;
        let joiner = (self.memory.main_joins == Some(self.index)).then_some(ThreadId::MAIN);
        self.memory.retire(thread, joiner)
    }
}
