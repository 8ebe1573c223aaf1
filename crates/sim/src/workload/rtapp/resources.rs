//! What threads share: mutexes, condition variables, semaphores, timers, each with those who wait.
//!
//! The protocol is that of the C library: taking a free mutex costs no system call; who unlocks wakes one waiter, which
//! then tries again and may find the mutex taken.
//!
//! Must not know: steps, time.

use std::collections::VecDeque;

use super::plan::{Resource, RtAppPlan};
use crate::workload::ThreadId;

/// A mutex or a semaphore's count with its waiters.
#[derive(Clone, Debug, Default)]
struct CountedResource {
    /// How often it can be taken now: at most once for a mutex.
    free: u64,
    waiters: VecDeque<ThreadId>,
}

/// All that threads share.
#[derive(Clone, Debug)]
pub(super) struct RtAppResources {
    mutexes: Vec<CountedResource>,
    semaphores: Vec<CountedResource>,
    conditions: Vec<VecDeque<ThreadId>>,
    /// Per barrier: how many must still come before the last.
    barriers: Vec<u32>,
}

impl RtAppResources {
    pub fn new(plan: &RtAppPlan) -> RtAppResources {
        let free = CountedResource { free: 1, waiters: VecDeque::new() };
        RtAppResources {
            mutexes: vec![free; plan.mutexes],
            semaphores: vec![CountedResource::default(); plan.semaphores],
            conditions: vec![VecDeque::new(); plan.conditions],
            barriers: plan.barriers.iter().map(|barrier| barrier.others).collect(),
        }
    }

    /// Takes a mutex, or joins those who wait for it. Returns whether it was taken.
    pub fn lock(&mut self, mutex: Resource, thread: ThreadId) -> bool {
        take(&mut self.mutexes[mutex], thread)
    }

    /// Frees a mutex. Returns who is to be woken.
    pub fn unlock(&mut self, mutex: Resource) -> Option<ThreadId> {
        let mutex = &mut self.mutexes[mutex];
        mutex.free = 1;
        mutex.waiters.pop_front()
    }

    pub fn sem_wait(&mut self, semaphore: Resource, thread: ThreadId) -> bool {
        take(&mut self.semaphores[semaphore], thread)
    }

    pub fn sem_post(&mut self, semaphore: Resource) -> Option<ThreadId> {
        let semaphore = &mut self.semaphores[semaphore];
        semaphore.free += 1;
        semaphore.waiters.pop_front()
    }

    /// Joins those who wait for a condition.
    pub fn wait(&mut self, condition: Resource, thread: ThreadId) {
        self.conditions[condition].push_back(thread);
    }

    /// Takes the first off the list of a condition: it is to be woken.
    pub fn signal(&mut self, condition: Resource) -> Option<ThreadId> {
        self.conditions[condition].pop_front()
    }

    /// Takes all off the list of a condition, the first comer first.
    pub fn broadcast(&mut self, condition: Resource) -> impl Iterator<Item = ThreadId> {
        std::mem::take(&mut self.conditions[condition]).into_iter()
    }

    /// Comes to a barrier. Returns whether it is the last.
    pub fn arrive(&mut self, barrier: Resource) -> bool {
        let left = &mut self.barriers[barrier];
        let is_last = *left == 0;
        *left = left.saturating_sub(1);
        is_last
    }

    /// Goes on from a barrier.
    pub fn depart(&mut self, barrier: Resource) {
        self.barriers[barrier] += 1;
    }
}

fn take(counted: &mut CountedResource, thread: ThreadId) -> bool {
    if counted.free == 0 {
        counted.waiters.push_back(thread);
        return false;
    }
    counted.free -= 1;
    true
}
