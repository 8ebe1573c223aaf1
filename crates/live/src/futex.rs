//! Futex words as schbench uses them: a post that wakes only who sleeps, and a wait that uses the post up.
//!
//! Must not know: who sleeps, what for.

use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex::{Flags, wait, wake};

/// Its owner sleeps, is about to, or used up the last post.
const BLOCKED: u32 = 0;

/// Posted.
const RUNNING: u32 = 1;

/// A word.
#[derive(Debug, Default)]
pub(crate) struct FutexWord(AtomicU32);

impl FutexWord {
    /// Takes back a post that was not used.
    pub fn block(&self) {
        self.0.store(BLOCKED, Ordering::SeqCst);
    }

    /// Posts without waking anybody, as its owner does who needs not wait.
    pub fn run(&self) {
        self.0.store(RUNNING, Ordering::SeqCst);
    }

    /// Posts. Returns whether that took a system call, which it does only where somebody may sleep.
    pub fn post(&self) -> bool {
        let was_blocked =
            self.0.compare_exchange(BLOCKED, RUNNING, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if was_blocked {
            let _ = wake(&self.0, Flags::PRIVATE, 1);
        }
        was_blocked
    }

    /// Waits for a post and uses it up. Calls `slept` before each system call.
    pub fn wait(&self, mut slept: impl FnMut()) {
        while self.0.compare_exchange(RUNNING, BLOCKED, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            slept();
            // Interrupted, or posted just now: the loop looks again.
            let _ = wait(&self.0, Flags::PRIVATE, BLOCKED, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_wakes_once_and_is_used_once() {
        let futex = FutexWord::default();
        assert!(futex.post(), "it was blocked: wake");
        assert!(!futex.post(), "it was posted already: no system call");
        let mut slept = 0;
        futex.wait(|| slept += 1);
        assert_eq!(slept, 0, "there was a post to use up");
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| futex.wait(|| ()));
            while !waiter.is_finished() {
                futex.post();
                std::thread::yield_now();
            }
        });
    }
}
