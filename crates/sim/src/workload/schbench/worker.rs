//! What a worker of schbench does: think, ask its message thread for a reply, wait, and note how late it woke up.
//!
//! Must not know: other workers, what is printed.

use fairlab_event::Ns;

use super::memory::{FutexValue, LOOP, SchbenchState, clock_us, copy_cost, spin_end};
use crate::workload::Action;

/// Where a worker is in its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkerStage {
    /// At its first instruction.
    Begin,
    /// At the top of its loop.
    Top,
    /// `-R`: between two of the requests that it took.
    NextRequest,
    /// In `usec_spin`.
    Thinking { until: Ns },
    /// At the beginning of `msg_and_wait`.
    Copying,
    /// About to ask for a reply.
    Asking,
    /// Asked; about to wait.
    Asked,
    /// In `fwait`.
    Waiting,
    /// Replied to.
    Replied,
}

/// What worker `index` does next.
pub(super) fn next(memory: &mut SchbenchState, index: usize, now: Ns) -> Action {
    loop {
        match memory.workers[index].stage {
            WorkerStage::Begin => {
                memory.workers[index].start_us = clock_us(now);
                memory.workers[index].stage = WorkerStage::Top;
            }
            WorkerStage::Top if memory.stopping => return end(memory, index, now),
            WorkerStage::Top if memory.gives_requests() => {
                memory.workers[index].stage = WorkerStage::NextRequest;
            }
            WorkerStage::Top => think(memory, index, now),
            WorkerStage::NextRequest if memory.workers[index].taken.is_empty() => {
                memory.workers[index].stage = WorkerStage::Copying;
            }
            WorkerStage::NextRequest => think(memory, index, now),
            WorkerStage::Thinking { until } if now < until => {
                memory.workers[index].busy_until = until;
                return Action::SpinUntil(until);
            }
            WorkerStage::Thinking { .. } => thought(memory, index, now),
            WorkerStage::Copying => {
                memory.workers[index].stage = WorkerStage::Asking;
                let own = if memory.options.cpu_us == 0 { LOOP } else { Ns::ZERO };
                let cost = own + copy_cost(memory.options.pipe_bytes);
                if cost > Ns::ZERO {
                    memory.workers[index].busy_until = now + cost;
                    return Action::Run(cost);
                }
            }
            WorkerStage::Asking => {
                if let Some(wake) = ask(memory, index, now) {
                    return wake;
                }
            }
            // At the end nobody replies, so it does not wait.
            WorkerStage::Asked => {
                let stopping = memory.stopping;
                memory.workers[index].stage =
                    if stopping { WorkerStage::Replied } else { WorkerStage::Waiting };
            }
            WorkerStage::Waiting => {
                if !memory.workers[index].futex.take() {
                    return Action::Wait;
                }
                memory.workers[index].stage = WorkerStage::Replied;
            }
            WorkerStage::Replied => replied(memory, index, now),
        }
    }
}

/// Whether a worker that is about to sleep on its futex has not been posted meanwhile.
pub(super) fn must_wait(memory: &SchbenchState, index: usize) -> bool {
    !memory.workers[index].futex.is_posted()
}

fn think(memory: &mut SchbenchState, index: usize, now: Ns) {
    memory.workers[index].stage = WorkerStage::Thinking { until: spin_end(now, memory.options.cpu_us) };
}

/// A loop is complete. With `-R` its latency is what the request took beyond its computation, at least 1 µs.
fn thought(memory: &mut SchbenchState, index: usize, now: Ns) {
    let gives_requests = memory.gives_requests();
    memory.loops += 1;
    let worker = &mut memory.workers[index];
    worker.loops += 1;
    worker.runtime_us = clock_us(now).saturating_sub(worker.start_us);
    worker.stage = if gives_requests { WorkerStage::NextRequest } else { WorkerStage::Copying };
    if let Some(start_us) = worker.taken.pop_front() {
        let took_us = clock_us(now).saturating_sub(start_us);
        memory.record(index, took_us.saturating_sub(memory.options.cpu_us.into()).max(1));
    }
}

/// Gets in line for a reply and posts its message thread; with `-R` it first takes all requests that wait for it.
fn ask(memory: &mut SchbenchState, index: usize, now: Ns) -> Option<Action> {
    let gives_requests = memory.gives_requests();
    let worker = &mut memory.workers[index];
    worker.futex = FutexValue::Blocked;
    worker.wake_time_us = clock_us(now);
    if !gives_requests {
        memory.messages[worker.message].list.push(index);
    } else if !worker.requests.is_empty() {
        worker.taken = std::mem::take(&mut worker.requests);
        worker.futex = FutexValue::Running;
        worker.stage = WorkerStage::Top;
        return None;
    }
    worker.stage = WorkerStage::Asked;
    let message = worker.message;
    memory.post_message(message)
}

/// Notes how long ago the batch that woke it began, unless that is less than a µs.
fn replied(memory: &mut SchbenchState, index: usize, now: Ns) {
    let worker = &mut memory.workers[index];
    worker.stage = WorkerStage::Top;
    let latency_us = clock_us(now).saturating_sub(worker.wake_time_us);
    if latency_us > 0 && !memory.gives_requests() {
        memory.record(index, latency_us);
    }
}

/// Ends; the kernel wakes whoever joins it.
fn end(memory: &mut SchbenchState, index: usize, now: Ns) -> Action {
    let worker = &mut memory.workers[index];
    worker.runtime_us = clock_us(now).saturating_sub(worker.start_us);
    worker.ended = true;
    let thread = worker.thread;
    let message = &memory.messages[worker.message];
    let joiner = (message.joins == Some(index)).then_some(message.thread);
    memory.retire(thread, joiner)
}
