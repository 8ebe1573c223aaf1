//! An engine for tests: as many CPUs as threads, no costs but those it is told. Or a rough one, which delays and wakes
//! threads at random.
//!
//! Must not know: which workload it runs.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use fairlab_event::Ns;

use crate::rng::RandomStream;
use crate::workload::{Action, ThreadId, View, Workload};

/// What the machine charges.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IdealCosts {
    /// What a wakeup takes in the waker; the wakee runs when it is over.
    pub(super) wakeup: Ns,
    /// How late a timer is.
    pub(super) timer_slack: Ns,
    /// Up to this much late, at random, whenever a thread should run; and waits return for nothing at times.
    pub(super) roughness: Ns,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdealThreadState {
    Active,
    Waiting,
    Exited,
}

struct IdealThread {
    state: IdealThreadState,
    /// Counts waits, so that a stray wakeup of an earlier one does nothing.
    wait: u64,
    random: RandomStream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum IdealEvent {
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
    costs: IdealCosts,
    threads: Vec<IdealThread>,
    streams: BTreeSet<String>,
    queue: BinaryHeap<Reverse<(Ns, u64, ThreadId, IdealEvent)>>,
    sequence: u64,
    seed: u64,
    chaos: RandomStream,
}

impl<W: Workload> Ideal<W> {
    pub(super) fn new(workload: W, seed: u64, costs: IdealCosts) -> Ideal<W> {
        let mut ideal = Ideal {
            now: Ns::ZERO,
            wakes: Vec::new(),
            costs,
            threads: Vec::new(),
            streams: BTreeSet::new(),
            queue: BinaryHeap::new(),
            sequence: 0,
            seed,
            chaos: RandomStream::new(seed, "chaos"),
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
                IdealEvent::Continue => self.step(thread),
                IdealEvent::Woke(wakee) => {
                    self.wake(wakee);
                    self.step(thread);
                }
                IdealEvent::Stray(wait) if self.threads[thread.index()].wait == wait => self.wake(thread),
                IdealEvent::Stray(_) => {}
            }
        }
        assert!(
            self.threads.iter().all(|thread| thread.state == IdealThreadState::Exited),
            "deadlock at {}",
            self.now
        );
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
        self.threads.push(IdealThread {
            state: IdealThreadState::Active,
            wait: 0,
            random: RandomStream::new(self.seed, stream),
        });
        self.queue(self.now, thread, IdealEvent::Continue);
    }

    fn queue(&mut self, time: Ns, thread: ThreadId, what: IdealEvent) {
        let late = self.chaos.below(self.costs.roughness.0 + 1);
        self.sequence += 1;
        self.queue.push(Reverse((time + Ns(late), self.sequence, thread, what)));
    }

    fn wake(&mut self, thread: ThreadId) {
        if self.threads[thread.index()].state == IdealThreadState::Waiting {
            self.threads[thread.index()].state = IdealThreadState::Active;
            self.queue(self.now, thread, IdealEvent::Continue);
        }
    }

    fn step(&mut self, thread: ThreadId) {
        let now = self.now;
        let me = &mut self.threads[thread.index()];
        assert_eq!(me.state, IdealThreadState::Active);
        let action =
            self.workload.next(thread, &mut View { now, cpu: fairlab_event::Cpu(0), random: &mut me.random });
        match action {
            Action::Run(time) => self.queue(now + time, thread, IdealEvent::Continue),
            Action::SpinUntil(time) => {
                assert!(time > now);
                self.queue(time, thread, IdealEvent::Continue);
            }
            Action::Sleep(time) => {
                self.queue(now + time + self.costs.timer_slack, thread, IdealEvent::Continue);
            }
            Action::Wait => {
                me.state = IdealThreadState::Waiting;
                me.wait += 1;
                let wait = me.wait;
                if self.costs.roughness > Ns::ZERO && self.chaos.below(4) == 0 {
                    self.queue(now + self.costs.roughness, thread, IdealEvent::Stray(wait));
                }
            }
            Action::Wake(wakee) => {
                assert!(wakee.index() < self.threads.len() && wakee != thread);
                self.wakes.push((now, thread, wakee));
                self.queue(now + self.costs.wakeup, thread, IdealEvent::Woke(wakee));
            }
            Action::Spawn(spec) => {
                self.create(&spec.stream, spec.comm == fairlab_event::Comm::from("schbench"));
                self.queue(now, thread, IdealEvent::Continue);
            }
            Action::Io(_)
            | Action::Traffic(_)
            | Action::Await(_)
            | Action::AwaitOn(..)
            | Action::Exec
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
                self.queue(now, thread, IdealEvent::Continue);
            }
            Action::Exit => me.state = IdealThreadState::Exited,
        }
    }
}
