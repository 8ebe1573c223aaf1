//! What threads share: locks, queues of requests, barriers, memory maps; and which threads wait for them.
//!
//! Must not know: steps, engines, when a thread asks.

use std::collections::VecDeque;

use fairlab_event::{Cpu, Ns};

use super::histogram::TimeHistogram;
use super::plan::{Arrivals, LockSpec, QueueSpec, RequestPath};
use super::rhythm::{LastReply, ReplyRhythm};
use crate::rng::RandomStream;
use crate::workload::tasks::duration::DurationSpec;
use crate::workload::{Action, ThreadId};

/// A lock in user space.
#[derive(Debug)]
pub(super) struct Lock {
    pub spec: LockSpec,
    holder: Option<ThreadId>,
    /// Since when it is held.
    since: Ns,
    /// Who sleeps on it.
    pub sleepers: VecDeque<ThreadId>,
    /// How many threads spin on it, those that are preempted too.
    pub spinners: u32,
    /// How long it was held each time.
    pub holds: TimeHistogram,
    /// How long each waited that had to wait.
    pub waits: TimeHistogram,
    /// CPU time that was burnt on it.
    pub spun: Ns,
}

impl Lock {
    pub fn new(spec: LockSpec) -> Lock {
        Lock {
            spec,
            holder: None,
            since: Ns::ZERO,
            sleepers: VecDeque::new(),
            spinners: 0,
            holds: TimeHistogram::default(),
            waits: TimeHistogram::default(),
            spun: Ns::ZERO,
        }
    }

    /// Takes it if it is free. Returns whether `thread` has it now.
    pub fn try_take(&mut self, thread: ThreadId) -> bool {
        *self.holder.get_or_insert(thread) == thread
    }

    pub fn is_held_by(&self, thread: ThreadId) -> bool {
        self.holder == Some(thread)
    }

    /// `thread` goes on as its holder.
    pub fn begin(&mut self, now: Ns) {
        self.since = now;
    }

    /// Its holder gives it back; somebody else does nothing.
    pub fn give_back(&mut self, thread: ThreadId, now: Ns, counts: bool) {
        if self.holder == Some(thread) {
            self.holder = None;
            if counts {
                self.holds.add(now.since(self.since));
            }
        }
    }
}

/// A request on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueuedRequest {
    /// When it arrived from outside, or was first put into a queue.
    pub born: Ns,
    /// Who waits for the reply.
    pub caller: Option<ThreadId>,
    /// The CPU whose kworker is to take it; `None`: whoever comes.
    pub cpu: Option<Cpu>,
}

/// Who sleeps until a request comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct SleepingTaker {
    pub thread: ThreadId,
    /// The arrival that will wake it, if those come from outside.
    until: Ns,
    /// The CPU whose kworker it is.
    cpu: Option<Cpu>,
}

/// A queue of requests.
#[derive(Debug)]
pub(super) struct RequestQueue {
    pub spec: QueueSpec,
    waiting: VecDeque<QueuedRequest>,
    /// Arrivals to come, as far as somebody needs to know: the first ones are those that sleeping takers wait for.
    upcoming: VecDeque<Ns>,
    random: Option<RandomStream>,
    last: Ns,
    /// How many arrivals have been drawn.
    drawn: usize,
    pub takers: VecDeque<SleepingTaker>,
    /// Who waits for room.
    pub putters: VecDeque<ThreadId>,
    /// From arrival to reply.
    pub latencies: TimeHistogram,
    pub rhythm: ReplyRhythm,
    pub last_reply: LastReply,
    /// Arrivals for which there was no room.
    pub dropped: u64,
    /// The most that waited at once.
    pub longest: usize,
}

impl RequestQueue {
    pub fn new(spec: QueueSpec) -> RequestQueue {
        RequestQueue {
            spec,
            waiting: VecDeque::new(),
            upcoming: VecDeque::new(),
            random: None,
            last: Ns::ZERO,
            drawn: 0,
            takers: VecDeque::new(),
            putters: VecDeque::new(),
            latencies: TimeHistogram::default(),
            rhythm: ReplyRhythm::default(),
            last_reply: LastReply::default(),
            dropped: 0,
            longest: 0,
        }
    }

    /// Requests come from outside from now on.
    pub fn open(&mut self, now: Ns, random: RandomStream) {
        self.last = now;
        self.random = Some(random);
    }

    /// Draws one more arrival to come.
    fn draw(&mut self) -> bool {
        let (Some(random), Some(arrivals)) = (&mut self.random, self.spec.arrivals) else { return false };
        let gap = match arrivals {
            Arrivals::Poisson(gap) => DurationSpec::Exp(gap).draw(random),
            Arrivals::Fixed(gap) => gap,
            Arrivals::Uniform(gap) => DurationSpec::Uniform(Ns::ZERO, Ns(2 * gap.0)).draw(random),
        };
        self.last += gap.max(Ns(1));
        self.upcoming.push_back(self.last);
        self.drawn += 1;
        true
    }

    /// What has arrived by now waits.
    fn fill(&mut self, now: Ns, counts: bool) {
        while self.upcoming.front().is_some() || self.draw() {
            let Some(&arrival) = self.upcoming.front() else { return };
            if arrival > now {
                return;
            }
            self.upcoming.pop_front();
            if self.is_full() {
                self.dropped += u64::from(counts);
            } else {
                self.push(QueuedRequest { born: arrival, caller: None, cpu: None });
            }
        }
    }

    /// Whether another request has no room.
    pub fn is_full(&self) -> bool {
        self.spec.size.is_some_and(|size| self.waiting.len() >= size)
    }

    pub fn push(&mut self, request: QueuedRequest) {
        self.waiting.push_back(request);
        self.longest = self.longest.max(self.waiting.len());
    }

    /// What of the CPU on which a thread runs matters here.
    pub fn bound_to(&self, cpu: Cpu) -> Option<Cpu> {
        (self.spec.via == RequestPath::Kworker).then_some(cpu)
    }

    /// Takes the request that has waited longest, of those for `cpu`; `thread` does not sleep any more.
    pub fn take(
        &mut self,
        thread: ThreadId,
        cpu: Option<Cpu>,
        now: Ns,
        counts: bool,
    ) -> Option<QueuedRequest> {
        self.takers.retain(|taker| taker.thread != thread);
        self.fill(now, counts);
        let place = self.waiting.iter().position(|request| request.cpu == cpu)?;
        self.waiting.remove(place)
    }

    /// Who has slept longest of those that a request for `cpu` may wake; it does not sleep any more.
    pub fn next_taker(&mut self, cpu: Option<Cpu>) -> Option<ThreadId> {
        let place = self.takers.iter().position(|taker| taker.cpu == cpu)?;
        self.takers.remove(place).map(|taker| taker.thread)
    }

    /// `thread` found it empty. Returns what it sleeps for: an arrival from outside, or that somebody puts something in.
    pub fn sleep(&mut self, thread: ThreadId, cpu: Option<Cpu>, now: Ns) -> Action {
        if self.spec.arrivals.is_none() {
            self.takers.push_back(SleepingTaker { thread, until: Ns::MAX, cpu });
            return Action::Wait;
        }
        // Woken one by one, the next sleeper waits for the first arrival that nobody waits for.
        let claimed = if self.spec.wakes_all {
            Ns::ZERO
        } else {
            self.takers.iter().map(|taker| taker.until).max().unwrap_or_default()
        };
        let mut place = 0;
        loop {
            match self.upcoming.get(place).copied() {
                Some(arrival) if arrival > claimed => {
                    self.takers.push_back(SleepingTaker { thread, until: arrival, cpu });
                    let time = arrival.since(now).max(Ns(1));
                    let on = self.interrupted_by(self.drawn - self.upcoming.len() + place);
                    return on.map_or(Action::Await(time), |on| Action::AwaitOn(time, on));
                }
                Some(_) => place += 1,
                None if self.draw() => {}
                None => return Action::Wait,
            }
        }
    }

    /// The CPU that the arrival of this number interrupts, if the file says that.
    fn interrupted_by(&self, arrival: usize) -> Option<Cpu> {
        let irq = self.spec.irq.as_ref()?;
        irq.iter().nth(arrival % irq.weight().max(1))
    }

    /// Whether `thread` still sleeps on it.
    pub fn has_taker(&self, thread: ThreadId) -> bool {
        self.takers.iter().any(|taker| taker.thread == thread)
    }
}

/// A barrier.
#[derive(Debug, Default)]
pub(super) struct TaskBarrier {
    pub spins: bool,
    pub threads: usize,
    pub arrived: usize,
    /// How often all have come.
    pub rounds: u64,
    pub sleepers: VecDeque<ThreadId>,
}

/// The memory map of a process: page faults hold its lock for reading, changes for writing (`mmap_lock`).
#[derive(Debug, Default)]
pub(super) struct MemoryMap {
    pub readers: u32,
    pub written: bool,
    /// Who sleeps on it, and whether for writing; first come, first served.
    pub sleepers: VecDeque<(ThreadId, bool)>,
}

impl MemoryMap {
    /// Takes it if that is possible and nobody else waited first; `thread` may be one that was woken for that.
    pub fn try_take(&mut self, thread: ThreadId, writes: bool) -> bool {
        let first = self.sleepers.front().is_none_or(|&(sleeper, _)| sleeper == thread);
        let free = !self.written && (!writes || self.readers == 0);
        if !first || !free {
            return false;
        }
        self.sleepers.retain(|&(sleeper, _)| sleeper != thread);
        match writes {
            true => self.written = true,
            false => self.readers += 1,
        }
        true
    }

    /// Gives it back. Returns who can have it next and is to be woken.
    pub fn give_back(&mut self, writes: bool) -> Option<ThreadId> {
        match writes {
            true => self.written = false,
            false => self.readers = self.readers.saturating_sub(1),
        }
        self.next()
    }

    /// Who has waited longest and can have it now.
    pub fn next(&self) -> Option<ThreadId> {
        let &(thread, writes) = self.sleepers.front()?;
        (!self.written && (!writes || self.readers == 0)).then_some(thread)
    }

    /// Whether `thread` has to sleep on.
    pub fn keeps(&self, thread: ThreadId) -> bool {
        self.sleepers.iter().any(|&(sleeper, _)| sleeper == thread) && self.next() != Some(thread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::tasks::plan::RequestPath;

    fn queue(arrivals: Option<Arrivals>, wakes_all: bool, size: Option<usize>) -> RequestQueue {
        let spec = QueueSpec {
            name: "q".to_string(),
            arrivals,
            irq: None,
            wakes_all,
            via: RequestPath::Socket,
            size,
        };
        let mut queue = RequestQueue::new(spec);
        queue.open(Ns::ZERO, RandomStream::new(1, "arrivals"));
        queue
    }

    #[test]
    fn requests_wait_from_their_arrival_on() {
        let mut queue = queue(Some(Arrivals::Fixed(Ns(100))), false, None);
        let me = ThreadId(1);
        assert_eq!(queue.take(me, None, Ns(99), true), None);
        assert_eq!(queue.take(me, None, Ns(350), true).map(|request| request.born), Some(Ns(100)));
        assert_eq!(queue.take(me, None, Ns(350), true).map(|request| request.born), Some(Ns(200)));
    }

    #[test]
    fn sleepers_wait_for_one_arrival_each_or_all_for_the_next() {
        let threads = [ThreadId(1), ThreadId(2), ThreadId(3)];
        let until = |wakes_all| {
            let mut queue = queue(Some(Arrivals::Fixed(Ns(100))), wakes_all, None);
            threads.map(|thread| match queue.sleep(thread, None, Ns(20)) {
                Action::Await(time) => time.0,
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(until(false), [80, 180, 280]);
        assert_eq!(until(true), [80; 3]);
    }

    #[test]
    fn what_has_no_room_is_dropped() {
        let mut queue = queue(Some(Arrivals::Fixed(Ns(100))), false, Some(2));
        assert!(queue.take(ThreadId(1), None, Ns(1_000), true).is_some());
        assert_eq!((queue.dropped, queue.longest), (8, 2));
    }

    #[test]
    fn a_map_has_many_readers_or_one_writer_in_turn() {
        let mut map = MemoryMap::default();
        let [one, two, three] = [1, 2, 3].map(ThreadId);
        assert!(map.try_take(one, false) && map.try_take(two, false) && !map.try_take(three, true));
        map.sleepers.push_back((three, true));
        assert!(!map.try_take(one, false), "a writer waits first");
        map.sleepers.push_back((one, false));
        assert_eq!(map.give_back(false), None);
        assert_eq!(map.give_back(false), Some(three));
        assert!(map.keeps(one) && !map.keeps(three) && map.try_take(three, true));
        assert_eq!(map.give_back(true), Some(one));
    }
}
