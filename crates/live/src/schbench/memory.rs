//! What the threads of a live schbench share: futex words, the lists of waiting workers, statistics, the stop flag.
//!
//! Must not know: what any thread does with it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use fairlab_sim::workload::schbench::histogram::{BUCKETS, Extremes, SchbenchHistogram, bucket_of};
use fairlab_sim::workload::schbench::{SchbenchOptions, WorkerFigures};

use crate::clock::Clock;
use crate::futex::FutexWord;

/// The end of a list.
const NOBODY: u32 = u32::MAX;

/// A message thread; on a cache line of its own, as are workers.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct MessageThread {
    pub futex: FutexWord,
    /// The head of the list of workers that wait for a reply: who came last.
    list: AtomicU32,
}

/// A worker.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct SchbenchWorker {
    pub futex: FutexWord,
    /// Whoever came to the list before it.
    next: AtomicU32,
    /// When the batch that woke it began, µs.
    pub wake_time_us: AtomicU64,
    /// `-R`: when each request was made, µs. Giver and taker hold it for some ns.
    pub requests: Mutex<Vec<u64>>,
    /// `-p`: what is copied. Only one of worker and message thread is at it.
    pub page: Mutex<Vec<u8>>,
    counts: Box<[AtomicU32]>,
    min_us: AtomicU32,
    max_us: AtomicU32,
    pub loops: AtomicU64,
    pub runtime_us: AtomicU64,
}

/// The program's memory during a round.
#[derive(Debug)]
pub(super) struct SchbenchMemory {
    pub options: SchbenchOptions,
    pub seed: u64,
    pub clock: Clock,
    /// Workers a message thread.
    pub workers_each: usize,
    /// `-R`: requests a second that each message thread gives out; 0 where it replies to messages.
    pub requests_per_s: u32,
    pub stopping: AtomicBool,
    pub messages: Vec<MessageThread>,
    /// Those of message thread `i` begin at `i × workers_each`.
    pub workers: Vec<SchbenchWorker>,
}

impl SchbenchMemory {
    pub fn new(
        options: &SchbenchOptions,
        workers_each: usize,
        requests_per_s: u32,
        clock: Clock,
        seed: u64,
    ) -> SchbenchMemory {
        let messages = options.message_threads as usize;
        let message = || MessageThread { futex: FutexWord::default(), list: AtomicU32::new(NOBODY) };
        let worker = || SchbenchWorker {
            futex: FutexWord::default(),
            next: AtomicU32::new(NOBODY),
            wake_time_us: AtomicU64::new(0),
            requests: Mutex::new(Vec::new()),
            page: Mutex::new(vec![0; options.pipe_bytes as usize]),
            counts: std::iter::repeat_with(AtomicU32::default).take(BUCKETS).collect(),
            min_us: AtomicU32::new(0),
            max_us: AtomicU32::new(0),
            loops: AtomicU64::new(0),
            runtime_us: AtomicU64::new(0),
        };
        SchbenchMemory {
            options: options.clone(),
            seed,
            clock,
            workers_each,
            requests_per_s,
            stopping: AtomicBool::new(false),
            messages: std::iter::repeat_with(message).take(messages).collect(),
            workers: std::iter::repeat_with(worker).take(messages * workers_each).collect(),
        }
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Puts a worker on its message thread's list.
    pub fn push(&self, worker: usize) {
        let list = &self.messages[worker / self.workers_each].list;
        let mut head = list.load(Ordering::Relaxed);
        loop {
            self.workers[worker].next.store(head, Ordering::Relaxed);
            match list.compare_exchange_weak(head, worker as u32, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => head = other,
            }
        }
    }

    /// Takes the whole list of a message thread; gives who came last.
    pub fn splice(&self, message: usize) -> Option<usize> {
        some(self.messages[message].list.swap(NOBODY, Ordering::SeqCst))
    }

    /// Who came before this worker. Must be asked before the worker is woken.
    pub fn came_before(&self, worker: usize) -> Option<usize> {
        some(self.workers[worker].next.load(Ordering::Relaxed))
    }

    /// What all workers measured until now.
    pub fn gather(&self) -> (SchbenchHistogram, Vec<WorkerFigures>) {
        let mut latencies = SchbenchHistogram::default();
        for worker in &self.workers {
            for (bucket, count) in worker.counts.iter().enumerate() {
                match count.load(Ordering::Relaxed) {
                    0 => {}
                    count => latencies.add_to_bucket(bucket, count),
                }
            }
        }
        (latencies, self.workers.iter().map(SchbenchWorker::figures).collect())
    }

    /// Zeroes the statistics while workers may count, as the real program does.
    pub fn zero_statistics(&self) {
        for worker in &self.workers {
            worker.counts.iter().for_each(|count| count.store(0, Ordering::Relaxed));
            worker.min_us.store(0, Ordering::Relaxed);
            worker.max_us.store(0, Ordering::Relaxed);
        }
    }
}

fn some(worker: u32) -> Option<usize> {
    (worker != NOBODY).then_some(worker as usize)
}

impl SchbenchWorker {
    /// Counts a latency of its own; only the worker itself does.
    pub fn record(&self, latency_us: u64) {
        let latency_us = latency_us as u32;
        let count = &self.counts[bucket_of(latency_us)];
        count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        let mut extremes = self.figures().extremes;
        extremes.add(latency_us);
        self.min_us.store(extremes.min, Ordering::Relaxed);
        self.max_us.store(extremes.max, Ordering::Relaxed);
    }

    /// Writes its page.
    pub fn fill_page(&self, byte: u8) {
        std::hint::black_box(&mut *self.page.lock().unwrap_or_else(PoisonError::into_inner)).fill(byte);
    }

    fn figures(&self) -> WorkerFigures {
        WorkerFigures {
            extremes: Extremes {
                min: self.min_us.load(Ordering::Relaxed),
                max: self.max_us.load(Ordering::Relaxed),
            },
            loops: self.loops.load(Ordering::Relaxed),
            runtime_us: self.runtime_us.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_comer_is_first_and_statistics_add_up() {
        let options = SchbenchOptions::parse(&["-m", "2", "-t", "3"].map(String::from)).expect("options");
        let memory = SchbenchMemory::new(&options, 3, 0, Clock::start(), 1);
        [4, 3, 5].into_iter().for_each(|worker| memory.push(worker));
        assert_eq!(memory.splice(0), None);
        assert_eq!(memory.splice(1), Some(5));
        assert_eq!([5, 3, 4].map(|worker| memory.came_before(worker)), [Some(3), Some(4), None]);
        assert_eq!(memory.splice(1), None);
        memory.workers[0].record(7);
        memory.workers[5].record(9_000);
        memory.workers[5].record(3);
        let (latencies, figures) = memory.gather();
        assert_eq!((latencies.samples(), latencies.percentile(50.0)), (3, 7));
        assert_eq!(figures[5].extremes, Extremes { min: 3, max: 9_000 });
        memory.zero_statistics();
        assert_eq!(memory.gather().0.samples(), 0);
    }
}
