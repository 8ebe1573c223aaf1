//! What message threads and workers of a live schbench do, each as the real program's.
//!
//! Must not know: when it is printed, who measures.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};

use fairlab_event::Ns;
use fairlab_sim::rng::RandomStream;
use fairlab_sim::workload::schbench::SchbenchRevision;

use super::memory::SchbenchMemory;

/// The name of all threads.
pub(super) const COMM: &str = "schbench";

/// What a thread asks the kernel for, as far as the scheduler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum KernelCall {
    /// It computes.
    Compute,
    /// It wakes this thread (`FUTEX_WAKE`): a worker by its number, or its message thread.
    Wake(Option<usize>),
    /// It sleeps until it is woken (`FUTEX_WAIT`).
    Wait,
    /// It sleeps on a timer.
    Sleep,
}

/// What a thread did, if somebody wants to know.
#[derive(Debug, Default)]
pub(super) struct Diary(pub Option<Vec<KernelCall>>);

impl Diary {
    fn note(&mut self, call: KernelCall) {
        if let Some(calls) = &mut self.0 {
            calls.push(call);
        }
    }
}

/// A thread that gives its diary, and those of the threads that it created.
pub(super) type ThreadWithDiary = JoinHandle<Vec<Diary>>;

/// Starts a thread of the program.
pub(super) fn spawn(work: impl FnOnce() -> Vec<Diary> + Send + 'static) -> Result<ThreadWithDiary, String> {
    let thread = thread::Builder::new().name(COMM.to_string()).stack_size(128 << 10);
    thread.spawn(work).map_err(|error| format!("cannot create another thread: {error}"))
}

/// A message thread: creates its workers, replies to them until all are to stop, and waits for their end.
pub(super) fn message_thread(memory: &Arc<SchbenchMemory>, index: usize, mut diary: Diary) -> Vec<Diary> {
    let first = index * memory.workers_each;
    let own = first..first + memory.workers_each;
    let mut workers = Vec::new();
    for worker in own.clone() {
        let (shared, worker_diary) = (Arc::clone(memory), Diary(diary.0.as_ref().map(|_| Vec::new())));
        // Where there is no room for more threads the program runs with those that there are.
        workers.extend(spawn(move || vec![worker_thread(&shared, worker, worker_diary)]));
    }
    if memory.requests_per_s > 0 {
        give_requests(memory, index, &mut diary);
    } else {
        reply_until_stopped(memory, index, &mut diary);
    }
    for worker in own {
        memory.workers[worker].futex.post();
    }
    let mut diaries = vec![diary];
    for worker in workers {
        diaries.extend(worker.join().unwrap_or_default());
    }
    diaries
}

fn reply_until_stopped(memory: &SchbenchMemory, index: usize, diary: &mut Diary) {
    let options = &memory.options;
    let mut random = RandomStream::new(memory.seed, &format!("message-{index}"));
    loop {
        let own = &memory.messages[index].futex;
        own.block();
        reply(memory, index, diary);
        if memory.is_stopping() {
            return reply(memory, index, diary);
        }
        if options.sleep_us > 0 || options.revision < SchbenchRevision::MessageSpin {
            own.wait(|| diary.note(KernelCall::Wait));
        }
        spin(memory, options.message_cpu_us, diary);
        let sleep_us = u64::from(options.sleep_us);
        if sleep_us > 0 && options.pipe_bytes == 0 {
            diary.note(KernelCall::Sleep);
            sleep(sleep_us + random.below(sleep_us / 4));
        }
    }
}

/// Wakes all who wait, the last comer first, after one look at the clock.
fn reply(memory: &SchbenchMemory, index: usize, diary: &mut Diary) {
    let mut batch_us = memory.clock.now_us();
    let mut next = memory.splice(index);
    while let Some(number) = next {
        next = memory.came_before(number);
        let worker = &memory.workers[number];
        if memory.options.pipe_bytes > 0 {
            worker.fill_page(2);
            batch_us = memory.clock.now_us();
        }
        worker.wake_time_us.store(batch_us, Ordering::SeqCst);
        if worker.futex.post() {
            diary.note(KernelCall::Wake(Some(number)));
        }
    }
}

/// `-R`: gives a request to each of two workers of three, so many times a second.
fn give_requests(memory: &SchbenchMemory, index: usize, diary: &mut Diary) {
    let at_a_time = (memory.workers_each * 2 / 3).max(1);
    let batches_per_s = u64::from(memory.requests_per_s).div_ceil(at_a_time as u64).max(1);
    let mut turn = 0;
    loop {
        diary.note(KernelCall::Sleep);
        sleep(1_000_000 / batches_per_s);
        let batch_us = memory.clock.now_us();
        for _ in 0..at_a_time {
            let number = index * memory.workers_each + turn % memory.workers_each;
            turn += 1;
            let worker = &memory.workers[number];
            let now_us = memory.clock.now_us();
            worker.requests.lock().unwrap_or_else(PoisonError::into_inner).push(now_us);
            worker.wake_time_us.store(batch_us, Ordering::SeqCst);
            if worker.futex.post() {
                diary.note(KernelCall::Wake(Some(number)));
            }
        }
        if memory.is_stopping() {
            return;
        }
    }
}

/// A worker: thinks, asks its message thread for a reply, waits, and notes how late it woke up.
fn worker_thread(memory: &SchbenchMemory, index: usize, mut diary: Diary) -> Diary {
    let worker = &memory.workers[index];
    let gives_requests = memory.requests_per_s > 0;
    let begin_us = memory.clock.now_us();
    let mut taken = Vec::new();
    while !memory.is_stopping() {
        let turns = if gives_requests { taken.len() } else { 1 };
        for turn in 0..turns {
            spin(memory, memory.options.cpu_us, &mut diary);
            worker.loops.fetch_add(1, Ordering::Relaxed);
            let now_us = memory.clock.now_us();
            worker.runtime_us.store(now_us - begin_us, Ordering::Relaxed);
            if let Some(&asked_us) = taken.get(turn) {
                let took_us = now_us.saturating_sub(asked_us);
                worker.record(took_us.saturating_sub(memory.options.cpu_us.into()).max(1));
            }
        }
        taken.clear();
        ask_and_wait(memory, index, &mut taken, &mut diary);
        let latency_us = memory.clock.now_us().saturating_sub(worker.wake_time_us.load(Ordering::SeqCst));
        if latency_us > 0 && !gives_requests {
            worker.record(latency_us);
        }
    }
    worker.runtime_us.store(memory.clock.now_us() - begin_us, Ordering::Relaxed);
    diary
}

/// Gets in line for a reply, posts the message thread, and waits; with `-R` it first takes the requests that there are.
fn ask_and_wait(memory: &SchbenchMemory, index: usize, taken: &mut Vec<u64>, diary: &mut Diary) {
    let worker = &memory.workers[index];
    if memory.options.pipe_bytes > 0 {
        worker.fill_page(1);
    }
    worker.futex.block();
    worker.wake_time_us.store(memory.clock.now_us(), Ordering::SeqCst);
    if memory.requests_per_s == 0 {
        memory.push(index);
    } else {
        std::mem::swap(taken, &mut worker.requests.lock().unwrap_or_else(PoisonError::into_inner));
        if !taken.is_empty() {
            return worker.futex.run();
        }
    }
    if memory.messages[index / memory.workers_each].futex.post() {
        diary.note(KernelCall::Wake(None));
    }
    if !memory.is_stopping() {
        worker.futex.wait(|| diary.note(KernelCall::Wait));
    }
}

/// Computes until more than `us` have passed on a clock of whole µs; a spin of 0 does not look at it at all.
fn spin(memory: &SchbenchMemory, us: u32, diary: &mut Diary) {
    if us > 0 {
        diary.note(KernelCall::Compute);
        memory.clock.spin_until(Ns::from_us(memory.clock.now_us() + u64::from(us) + 1));
    }
}

fn sleep(us: u64) {
    thread::sleep(std::time::Duration::from_micros(us));
}
