//! An engine for tests: as many CPUs as threads, no costs but those it is told. Or a rough one, which delays and wakes
//! threads at random.
//!
//! Must not know: which workload it runs.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use fairlab_event::Ns;

use crate::rng::Stream;
use crate::workload::{Action, ThreadId, View, Workload};

/// What the machine charges.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Costs {
    /// What a wakeup takes in the waker; the wakee runs when it is over.
    pub(super) wakeup: Ns,
    /// How late a timer is.
    pub(super) timer_slack: Ns,
    /// Up to this much late, at random, whenever a thread should run; and waits return for nothing at times.
    pub(super) roughness: Ns,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Active,
    Waiting,
    Exited,
}

struct Thread {
    state: State,
    /// Counts waits, so that a stray wakeup of an earlier one does nothing.
    wait: u64,
    random: Stream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Continue,
    Woke(ThreadId),
    Stray(u64),
}

/// The machine, with a log of who did what.
pub(super) struct Ideal<W> {
    pub(super) workload: W,
    pub(super) now: Ns,
    /// Who woke whom and when, as far as `FUTEX_WAKE` was called.
    pub(super) wakes: Vec<(Ns, ThreadId, ThreadId)>,
    costs: Costs,
    threads: Vec<Thread>,
    streams: BTreeSet<String>,
    queue: BinaryHeap<Reverse<(Ns, u64, ThreadId, What)>>,
    sequence: u64,
    seed: u64,
    chaos: Stream,
}

impl<W: Workload> Ideal<W> {
    pub(super) fn new(workload: W, seed: u64, costs: Costs) -> Ideal<W> {
        let mut ideal = Ideal {
            now: Ns::ZERO,
            wakes: Vec::new(),
            costs,
            threads: Vec::new(),
            streams: BTreeSet::new(),
            queue: BinaryHeap::new(),
            sequence: 0,
            seed,
            chaos: Stream::new(seed, "chaos"),
            workload,
        };
        let main = ideal.workload.main_thread();
        ideal.create(&main.stream, main.comm == fairlab_event::Comm::from("schbench"));
        ideal
    }

    /// Runs until `end`, or until every thread is gone, which is the answer.
    pub(super) fn run(&mut self, end: Ns) -> bool {
        while let Some(&Reverse((time, _, thread, what))) = self.queue.peek() {
            if time > end {
                return false;
            }
            self.queue.pop();
            assert!(time >= self.now);
            self.now = time;
            match what {
                What::Continue => self.step(thread),
                What::Woke(wakee) => {
                    self.wake(wakee);
                    self.step(thread);
                }
                What::Stray(wait) if self.threads[thread.index()].wait == wait => self.wake(thread),
                What::Stray(_) => {}
            }
        }
        assert!(self.threads.iter().all(|thread| thread.state == State::Exited), "deadlock at {}", self.now);
        true
    }

    /// How many threads were created, the main thread included.
    pub(super) fn created(&self) -> usize {
        self.threads.len()
    }

    pub(super) fn streams(&self) -> impl Iterator<Item = &str> {
        self.streams.iter().map(String::as_str)
    }

    fn create(&mut self, stream: &str, named: bool) {
        assert!(named, "all threads have one name");
        assert!(self.streams.insert(stream.to_string()), "stream {stream} is used twice");
        let thread = ThreadId(self.threads.len() as u32);
        self.threads.push(Thread { state: State::Active, wait: 0, random: Stream::new(self.seed, stream) });
        self.queue(self.now, thread, What::Continue);
    }

    fn queue(&mut self, time: Ns, thread: ThreadId, what: What) {
        let late = self.chaos.below(self.costs.roughness.0 + 1);
        self.sequence += 1;
        self.queue.push(Reverse((time + Ns(late), self.sequence, thread, what)));
    }

    fn wake(&mut self, thread: ThreadId) {
        if self.threads[thread.index()].state == State::Waiting {
            self.threads[thread.index()].state = State::Active;
            self.queue(self.now, thread, What::Continue);
        }
    }

    fn step(&mut self, thread: ThreadId) {
        let now = self.now;
        let me = &mut self.threads[thread.index()];
        assert_eq!(me.state, State::Active);
        let action =
            self.workload.next(thread, &mut View { now, cpu: fairlab_event::Cpu(0), random: &mut me.random });
        match action {
            Action::Run(time) => self.queue(now + time, thread, What::Continue),
            Action::SpinUntil(time) => {
                assert!(time > now);
                self.queue(time, thread, What::Continue);
            }
            Action::Sleep(time) => self.queue(now + time + self.costs.timer_slack, thread, What::Continue),
            Action::Wait => {
                me.state = State::Waiting;
                me.wait += 1;
                let wait = me.wait;
                if self.costs.roughness > Ns::ZERO && self.chaos.below(4) == 0 {
                    self.queue(now + self.costs.roughness, thread, What::Stray(wait));
                }
            }
            Action::Wake(wakee) => {
                assert!(wakee.index() < self.threads.len() && wakee != thread);
                self.wakes.push((now, thread, wakee));
                self.queue(now + self.costs.wakeup, thread, What::Woke(wakee));
            }
            Action::Spawn(spec) => {
                self.create(&spec.stream, spec.comm == fairlab_event::Comm::from("schbench"));
                self.queue(now, thread, What::Continue);
            }
            Action::Io(_)
            | Action::Traffic(_)
            | Action::Await(_)
            | Action::WakeSync(_)
            | Action::SystemCall(_)
            | Action::OfferingSystemCall { .. }
            | Action::SpinOn { .. }
            | Action::Release { .. }
            | Action::Send(_)
            | Action::Receive(_) => {
                unreachable!("schbench uses futexes")
            }
            Action::Yield
            | Action::SetScheduler { .. }
            | Action::EnterGroup(_)
            | Action::LeaveGroup
            | Action::Administer(_) => {
                self.queue(now, thread, What::Continue);
            }
            Action::Exit => me.state = State::Exited,
        }
    }
}
