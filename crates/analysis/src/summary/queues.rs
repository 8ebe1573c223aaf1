//! How deep runqueues are, by time: the running and the waiting tasks count. Which part of a CPU's time counts is told by
//! [`crate::idleness`].
//!
//! Must not know: tasks.

use fairlab_event::{Cpu, Ns};

use crate::idleness::{Idled, Idleness, Observed, Scope};
use crate::tracker::{TrackedCpu, Tracker};

/// Deeper runqueues are counted under this depth.
const DEPTHS_MAX: usize = 256;

/// Of so many pieces of a stay those that are alike are put together.
const PIECES_MAX: usize = 1024;

/// The time of one CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuTime {
    /// Which.
    pub cpu: Cpu,
    /// For how long it is known what it did; 0: it never said anything.
    pub observed: Ns,
    /// For how long of that it ran the idle task.
    pub idle: Ns,
    /// Average depth of its runqueue by time.
    pub depth_mean: f64,
    /// The greatest depth.
    pub depth_max: u32,
    /// How often it switched tasks.
    pub switches: u64,
}

/// The depths of all runqueues by time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueDepths {
    /// CPU time over which depths are counted.
    pub observed: Ns,
    /// The average.
    pub mean: f64,
    /// The greatest.
    pub max: u32,
    /// CPU time at each depth, from 0 on; the last stands for it and all deeper ones.
    pub at: Vec<Ns>,
}

/// Adds up time.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    cpus: Vec<Queue>,
    depths: Vec<u64>,
    idleness: Idleness,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    since: Ns,
    known: bool,
    depth: u32,
    depth_time: u128,
    depth_max: u32,
    switches: u64,
    /// The present stay: at which depths, and for how long. It counts when it is over, and not before a hole.
    stay: Vec<(u32, u64)>,
    stays: u32,
    broken_stays: u32,
}

impl Queue {
    fn pass_time(&mut self, now: Ns) {
        let passed = now.since(self.since).0;
        self.since = now.max(self.since);
        if !self.known || passed == 0 {
            return;
        }
        match self.stay.last_mut() {
            Some((depth, time)) if *depth == self.depth => *time += passed,
            _ => self.stay.push((self.depth, passed)),
        }
        if self.stay.len() > PIECES_MAX {
            // Depths of one stay need no order.
            self.stay.sort_unstable();
            self.stay.dedup_by(|later, first| {
                let alike = later.0 == first.0;
                first.1 += if alike { later.1 } else { 0 };
                alike
            });
        }
    }

    /// The present stay is what it seemed to be.
    fn count_stay(&mut self, depths: &mut Vec<u64>) {
        for (depth, passed) in self.stay.drain(..) {
            self.depth_time += u128::from(passed) * u128::from(depth);
            self.depth_max = self.depth_max.max(depth);
            let place = (depth as usize).min(DEPTHS_MAX);
            if depths.len() <= place {
                depths.resize(place + 1, 0);
            }
            depths[place] = depths[place].saturating_add(passed);
        }
    }

    /// A CPU's state is `state` from `now` on.
    fn change(&mut self, state: &TrackedCpu, now: Ns, depths: &mut Vec<u64>) {
        self.pass_time(now);
        if self.broken_stays != state.broken_stays {
            self.stay.clear();
        } else if self.stays != state.stays {
            self.count_stay(depths);
        }
        (self.stays, self.broken_stays) = (state.stays, state.broken_stays);
        (self.known, self.depth) = (state.known, state.depth());
    }
}

impl Queues {
    /// Nothing is known yet.
    pub(super) fn new(scopes: Vec<Scope>) -> Queues {
        Queues { cpus: Vec::new(), depths: Vec::new(), idleness: Idleness::new(scopes) }
    }

    /// Takes the CPUs whose state the latest event changed.
    pub(super) fn follow(&mut self, tracker: &Tracker, now: Ns) {
        self.idleness.follow(tracker, now);
        for cpu in tracker.touched() {
            let Some(state) = tracker.cpu(cpu) else { continue };
            if self.cpus.len() <= cpu.index() {
                self.cpus.resize(cpu.index() + 1, Queue::default());
            }
            self.cpus[cpu.index()].change(state, now, &mut self.depths);
        }
    }

    /// What was before `now` does not count.
    pub(super) fn begin(&mut self, now: Ns) {
        for queue in &mut self.cpus {
            queue.pass_time(now);
            queue.stay.clear();
            (queue.depth_time, queue.depth_max, queue.switches) = (0, 0, 0);
        }
        self.depths.clear();
        self.idleness.begin(now);
    }

    /// A CPU switches tasks.
    pub(super) fn count_switch(&mut self, cpu: Cpu) {
        if let Some(queue) = self.cpus.get_mut(cpu.index()) {
            queue.switches += 1;
        }
    }

    /// The sums from `start` to `end` of `nr_cpus` CPUs, or as many as were heard of.
    pub(super) fn finish(mut self, (start, end): (Ns, Ns), nr_cpus: usize, tracker: &Tracker) -> QueueTimes {
        let idled = self.idleness.finish((start, end), nr_cpus, tracker);
        if idled.are_silent_idle {
            self.cpus.resize(idled.cpus.len(), Queue::default());
            for cpu in &idled.silent {
                self.cpus[cpu.index()].stay.push((0, end.since(start).0));
            }
        }
        for queue in &mut self.cpus {
            queue.pass_time(end);
            queue.count_stay(&mut self.depths);
        }
        let observed = idled.cpus.iter().fold(0_u64, |sum, cpu| sum.saturating_add(cpu.known));
        let depth_time: u128 = self.cpus.iter().map(|queue| queue.depth_time).sum();
        let mean = |depth_time: u128, observed: u64| depth_time as f64 / observed.max(1) as f64;
        let depths = QueueDepths {
            observed: Ns(observed),
            mean: mean(depth_time, observed),
            max: self.cpus.iter().map(|queue| queue.depth_max).max().unwrap_or(0),
            at: self.depths.into_iter().map(Ns).collect(),
        };
        let cpu_time = |((cpu, queue), observed): ((u32, &Queue), &Observed)| CpuTime {
            cpu: Cpu(cpu),
            observed: Ns(observed.known),
            idle: Ns(observed.idle),
            depth_mean: mean(queue.depth_time, observed.known),
            depth_max: queue.depth_max,
            switches: queue.switches,
        };
        let cpus = (0..).zip(&self.cpus).zip(&idled.cpus).map(cpu_time).collect();
        QueueTimes { cpus, depths, idled }
    }
}

/// What came of it.
pub(super) struct QueueTimes {
    pub(super) cpus: Vec<CpuTime>,
    pub(super) depths: QueueDepths,
    pub(super) idled: Idled,
}
