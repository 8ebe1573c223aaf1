//! A thread of a task: where it is in its steps.
//!
//! Must not know: what steps do.

use std::collections::VecDeque;

use fairlab_event::Ns;

use super::resources::QueuedRequest;
use super::rhythm::LastReply;
use crate::workload::{Action, ThreadId};

/// How far the step is at which a thread is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum StepStage {
    /// It begins.
    #[default]
    Begin,
    /// It waits, or has waited, for its turn.
    Wait,
    /// What it came for goes on.
    Work,
    /// It is called, and waits for the reply.
    Reply,
    /// All of it is done.
    Done,
}

/// A thread.
#[derive(Debug, Default)]
pub(super) struct TaskThread {
    /// Its task, by number.
    pub task: usize,
    /// Whether it has set its policy, slice and so on, and waited for its start.
    pub is_set: u8,
    pub at: usize,
    pub stage: StepStage,
    pub counters: Vec<u64>,
    /// How often its steps have been done.
    pub rounds: u64,
    /// Since when this round goes on.
    pub began: Ns,
    pub request: Option<QueuedRequest>,
    /// Its last reply that was to nothing in a queue.
    pub last_reply: LastReply,
    /// What it is about to put into a queue.
    pub outgoing: Option<QueuedRequest>,
    /// A reply to what it called has come.
    pub replied: bool,
    /// What a system call was to bring about has been brought about.
    pub sent: bool,
    /// What it does before its step goes on.
    pub todo: VecDeque<Action>,
    /// When its timer next expires.
    pub timer: Option<Ns>,
    /// Since when it waits for a lock.
    pub waits_since: Ns,
    /// It is among those that sleep until somebody wakes them by name.
    pub sleeps: bool,
    /// Which round of a barrier it waits for.
    pub round: u64,
    pub parent: Option<ThreadId>,
    /// Threads that it has spawned and that have not ended.
    pub children: u32,
    pub backoff: Backoff,
    /// Which memory map it uses.
    pub map: usize,
    pub ended: bool,
}

impl TaskThread {
    /// The step is done.
    pub fn advance(&mut self) {
        self.at += 1;
        self.stage = StepStage::Begin;
        self.sent = false;
    }
}

/// How long a thread spins on adaptive locks before it sleeps, and how long it sleeps.
///
/// PostgreSQL 17, `src/backend/storage/lmgr/s_lock.c`: `perform_spin_delay()`, `finish_spin_delay()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Backoff {
    /// Looks before a sleep (`spins_per_delay`).
    looks: u64,
    /// The next sleep; zero: none since the lock is waited for (`cur_delay`).
    delay: Ns,
}

const LOOKS_AT_FIRST: u64 = 100;
const LOOKS_LEAST: u64 = 10;
const LOOKS_MOST: u64 = 1_000;
const DELAY_LEAST: Ns = Ns::from_ms(1);
const DELAY_MOST: Ns = Ns::from_secs(1);

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff { looks: LOOKS_AT_FIRST, delay: Ns::ZERO }
    }
}

impl Backoff {
    /// It begins to wait for a lock.
    pub fn begin(&mut self) {
        self.delay = Ns::ZERO;
    }

    /// How long it spins before it next sleeps, if a hundred looks take `hundred`.
    pub fn spin(&self, hundred: Ns) -> Ns {
        Ns(hundred.0.saturating_mul(self.looks) / LOOKS_AT_FIRST)
    }

    /// It has spun in vain, and sleeps for so long; `chance` is a part of 1: the next sleep is longer by that.
    pub fn sleep(&mut self, chance: f64) -> Ns {
        let delay = self.delay.max(DELAY_LEAST);
        let next = Ns(delay.0 + (delay.0 as f64 * chance) as u64);
        self.delay = if next > DELAY_MOST { DELAY_LEAST } else { next };
        delay
    }

    /// It has the lock: without a sleep it will spin for longer next time, else for a little less.
    pub fn finish(&mut self) {
        self.looks = match self.delay {
            Ns::ZERO => (self.looks + 100).min(LOOKS_MOST),
            _ => (self.looks - 1).max(LOOKS_LEAST),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_spins_in_vain_sleeps_longer_each_time_and_spins_less_afterwards() {
        let mut backoff = Backoff::default();
        backoff.begin();
        assert_eq!(backoff.spin(Ns(5_000)), Ns(5_000));
        let slept = (0..4).map(|_| backoff.sleep(0.5).0 / 1_000).collect::<Vec<_>>();
        assert_eq!(slept, [1_000, 1_500, 2_250, 3_375]);
        backoff.finish();
        assert_eq!(backoff.spin(Ns(5_000)), Ns(4_950));
        backoff.begin();
        backoff.finish();
        assert_eq!(backoff.spin(Ns(5_000)), Ns(9_950));
        for _ in 0..20 {
            backoff.begin();
            backoff.finish();
        }
        assert_eq!(backoff.spin(Ns(5_000)), Ns(50_000));
        let longest = (0..40).map(|_| backoff.sleep(1.0)).max();
        assert!(longest > Some(Ns::from_ms(500)) && longest <= Some(Ns::from_secs(1)), "{longest:?}");
    }
}
