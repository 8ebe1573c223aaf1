//! Where time begins: once every thread that is started before anything else stands ready, in its group and as it is to be scheduled.
//!
//! A write to `cgroup.procs` waits for an RCU grace period, for tens of ms, and threads enter their groups one after the other.
//! Without a gate the first would run alone for that long.
//!
//! Must not know: what the threads do.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use fairlab_event::Ns;
use rustix::thread::futex::{Flags, wait, wake};

use crate::clock::Clock;

const CLOSED: u32 = 0;
const OPEN: u32 = 1;

/// Opens once, by itself, when all who are alive wait before it.
#[derive(Debug, Default)]
pub(crate) struct StartGate {
    /// [`CLOSED`] or [`OPEN`]. Who waits sleeps on it.
    word: AtomicU32,
    /// Threads before the gate.
    ready: AtomicU32,
    clock: OnceLock<Clock>,
}

impl StartGate {
    /// The time since the gate was opened; zero before.
    pub fn now(&self) -> Ns {
        self.clock.get().map_or(Ns::ZERO, Clock::now)
    }

    /// Waits until the gate is open. `alive` are the threads that are to pass it, of which the caller is one; it grows only by
    /// threads that one of them starts before it waits here itself. `has_passed` is the caller's own.
    pub fn pass(&self, has_passed: &AtomicBool, alive: &AtomicU32) {
        if has_passed.load(Ordering::Relaxed) {
            return;
        }
        has_passed.store(true, Ordering::Relaxed);
        if self.ready.fetch_add(1, Ordering::SeqCst) + 1 >= alive.load(Ordering::SeqCst) {
            self.open();
        }
        while self.word.load(Ordering::SeqCst) == CLOSED {
            let _ = wait(&self.word, Flags::PRIVATE, CLOSED, None);
        }
    }

    /// Opens the gate, if it is closed.
    pub fn open(&self) {
        self.clock.get_or_init(Clock::start);
        if self.word.swap(OPEN, Ordering::SeqCst) == CLOSED {
            let _ = wake(&self.word, Flags::PRIVATE, u32::MAX >> 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn time_begins_when_the_last_stands_ready() {
        let gate = StartGate::default();
        let alive = AtomicU32::new(3);
        thread::scope(|scope| {
            let begun = [0, 0, 30].map(|late_ms| {
                scope.spawn({
                    let (gate, alive) = (&gate, &alive);
                    move || {
                        thread::sleep(Duration::from_millis(late_ms));
                        assert_eq!(gate.now(), Ns::ZERO, "one is not ready yet");
                        gate.pass(&AtomicBool::default(), alive);
                        gate.clock.get().is_some()
                    }
                })
            });
            assert!(begun.into_iter().all(|thread| thread.join().expect("it passes")));
        });
        alive.store(9, Ordering::SeqCst);
        gate.pass(&AtomicBool::default(), &alive);
        assert!(gate.now() > Ns::ZERO, "an open gate holds nobody up");
    }

    #[test]
    fn whoever_opens_it_lets_those_through_who_wait() {
        let gate = StartGate::default();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| gate.pass(&AtomicBool::default(), &AtomicU32::new(2)));
            while gate.ready.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            assert!(!waiter.is_finished());
            gate.open();
        });
    }
}
