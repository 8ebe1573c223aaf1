//! A process that has not lately woken many others, as one that starts a workload elsewhere.
//!
//! A kernel counts of each task how often it woke another one than the last time (`record_wakee()`, kernel/sched/fair.c), halves that
//! at most once a second, when the task wakes somebody, and hands it on to its children. Where both a waker's count and its
//! wakee's are high, `wake_wide()` keeps them apart. The first process has woken so many while the kernel started (31 were
//! seen, of 7.2) that every task of a workload would begin with that, and of hackbench's none would ever be pulled to its waker.
//!
//! Must not know: what the workload is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// More than the second of ticks (`HZ`) after which a count is halved.
const PAUSE: Duration = Duration::from_millis(1_020);

/// After so many halvings nothing is left of any count below a thousand.
const HALVINGS: usize = 10;

/// Wakes the same thread again and again, until this thread's count is forgotten: some ten seconds.
pub fn forget_wakees() {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let wakee = scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                thread::park();
            }
        });
        for left in (0..HALVINGS).rev() {
            thread::sleep(PAUSE);
            over.store(left == 0, Ordering::SeqCst);
            wakee.thread().unpark();
        }
    });
}
