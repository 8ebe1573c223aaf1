//! Time in each state of the runqueues: how deep they are, which CPUs idle, and whether a task waits that an idle CPU might
//! run.
//!
//! A runqueue's depth counts the running and the waiting tasks. A CPU's time counts from its first event on. It is unknown
//! from the last switch before a hole to the CPU's next event. A CPU without any event has idled, if the trace accounts
//! running tasks at each tick; else its time is unknown.
//!
//! Must not know: tasks.

use fairlab_event::{Cpu, Ns};

use crate::tracker::CpuState;

/// Deeper runqueues are counted under this depth.
const DEPTHS_MAX: usize = 256;

/// Of so many pieces of a stay those that are alike are put together.
const PIECES_MAX: usize = 1024;

/// A set of CPUs that share something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// What they are: `machine`, `node 0`, `llc 3`.
    pub name: String,
    /// Its CPUs; empty means all.
    pub cpus: Vec<Cpu>,
}

/// How long a scope left work undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unconserved {
    /// Where.
    pub scope: Scope,
    /// Time during which one of its CPUs idled, with nothing queued, while on another of them a task waited behind
    /// others that may run there.
    pub time: Ns,
    /// That time, times the number of CPUs that could have worked: CPU time lost.
    pub cpu_time: Ns,
}

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
pub struct Depths {
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
    scopes: Vec<ScopeTime>,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    since: Ns,
    known: bool,
    idle: bool,
    depth: u32,
    /// Tasks that wait behind others and might run elsewhere.
    surplus: u32,
    observed: u64,
    idle_time: u64,
    depth_time: u128,
    depth_max: u32,
    switches: u64,
    /// The present stay: at which depths, and for how long, and whether idle. It counts when it is over, and not before a
    /// hole.
    stay: Vec<(u32, bool, u64)>,
    stays: u32,
    broken_stays: u32,
    /// An event was about it, reported by any CPU.
    heard_of: bool,
}

#[derive(Clone, Debug)]
struct ScopeTime {
    scope: Scope,
    members: Vec<bool>,
    since: Ns,
    idle: u32,
    surplus: u32,
    time: u64,
    cpu_time: u64,
    /// Time during which a task waited behind others and none of the CPUs that were heard of was free.
    crowded: u64,
}

impl Queue {
    /// Idle with nothing queued: it could take a task at once.
    const fn is_free(&self) -> bool {
        self.known && self.idle && self.depth == 0
    }

    fn pass_time(&mut self, now: Ns) {
        let passed = now.since(self.since).0;
        self.since = now.max(self.since);
        if !self.known || passed == 0 {
            return;
        }
        match self.stay.last_mut() {
            Some((depth, idle, time)) if (*depth, *idle) == (self.depth, self.idle) => *time += passed,
            _ => self.stay.push((self.depth, self.idle, passed)),
        }
        if self.stay.len() > PIECES_MAX {
            // Depths of one stay need no order.
            self.stay.sort_unstable();
            self.stay.dedup_by(|later, first| {
                let alike = (later.0, later.1) == (first.0, first.1);
                first.2 += if alike { later.2 } else { 0 };
                alike
            });
        }
    }

    /// The present stay is what it seemed to be.
    fn count_stay(&mut self, depths: &mut Vec<u64>) {
        for (depth, idle, passed) in self.stay.drain(..) {
            self.observed += passed;
            self.idle_time += if idle { passed } else { 0 };
            self.depth_time += u128::from(passed) * u128::from(depth);
            self.depth_max = self.depth_max.max(depth);
            let place = (depth as usize).min(DEPTHS_MAX);
            if depths.len() <= place {
                depths.resize(place + 1, 0);
            }
            depths[place] = depths[place].saturating_add(passed);
        }
    }
}

impl ScopeTime {
    fn has(&self, cpu: Cpu) -> bool {
        self.members.is_empty() || self.members.get(cpu.index()).copied().unwrap_or(false)
    }

    fn pass_time(&mut self, now: Ns) {
        let passed = now.since(self.since).0;
        self.since = now.max(self.since);
        if self.idle > 0 && self.surplus > 0 {
            self.time += passed;
            self.cpu_time =
                self.cpu_time.saturating_add(passed.saturating_mul(self.idle.min(self.surplus).into()));
        } else if self.surplus > 0 {
            self.crowded += passed;
        }
    }
}

impl Queues {
    /// Nothing is known yet.
    pub(super) fn new(scopes: Vec<Scope>) -> Queues {
        let scope_time = |scope: Scope| {
            let mut members = vec![false; scope.cpus.iter().map(|cpu| cpu.index() + 1).max().unwrap_or(0)];
            for cpu in &scope.cpus {
                members[cpu.index()] = true;
            }
            ScopeTime {
                scope,
                members,
                since: Ns::ZERO,
                idle: 0,
                surplus: 0,
                time: 0,
                cpu_time: 0,
                crowded: 0,
            }
        };
        Queues { cpus: Vec::new(), depths: Vec::new(), scopes: scopes.into_iter().map(scope_time).collect() }
    }

    /// A CPU's state is `state` from `now` on.
    pub(super) fn change(&mut self, cpu: Cpu, state: &CpuState, now: Ns) {
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize(cpu.index() + 1, Queue::default());
        }
        let queue = &mut self.cpus[cpu.index()];
        queue.heard_of = true;
        queue.pass_time(now);
        if queue.broken_stays != state.broken_stays {
            queue.stay.clear();
        } else if queue.stays != state.stays {
            queue.count_stay(&mut self.depths);
        }
        (queue.stays, queue.broken_stays) = (state.stays, state.broken_stays);
        let before = (queue.is_free(), queue.surplus);
        (queue.known, queue.idle, queue.depth) = (state.known, state.is_idle(), state.depth());
        // A CPU that idles with a task queued is about to run it, or does not show that its group is throttled.
        let is_behind = state.known && !state.is_idle();
        queue.surplus = if is_behind { state.movable.min(state.depth().saturating_sub(1)) } else { 0 };
        let after = (queue.is_free(), queue.surplus);
        if before == after {
            return;
        }
        for scope in self.scopes.iter_mut().filter(|scope| scope.has(cpu)) {
            scope.pass_time(now);
            scope.idle = scope.idle + u32::from(after.0) - u32::from(before.0);
            scope.surplus = scope.surplus + after.1 - before.1;
        }
    }

    /// What was before `now` does not count.
    pub(super) fn begin(&mut self, now: Ns) {
        for queue in &mut self.cpus {
            queue.pass_time(now);
            queue.stay.clear();
            (queue.observed, queue.idle_time, queue.depth_time) = (0, 0, 0);
            (queue.depth_max, queue.switches) = (0, 0);
        }
        self.depths.clear();
        for scope in &mut self.scopes {
            scope.pass_time(now);
            (scope.time, scope.cpu_time, scope.crowded) = (0, 0, 0);
        }
    }

    /// A CPU switches tasks.
    pub(super) fn count_switch(&mut self, cpu: Cpu) {
        if let Some(queue) = self.cpus.get_mut(cpu.index()) {
            queue.switches += 1;
        }
    }

    /// CPUs below `nr_cpus` that no event is about.
    pub(super) fn silent(&self, nr_cpus: usize) -> Vec<Cpu> {
        let is_silent = |cpu: &usize| self.cpus.get(*cpu).is_none_or(|queue| !queue.heard_of);
        (0..nr_cpus).filter(is_silent).map(|cpu| Cpu(cpu as u32)).collect()
    }

    /// CPUs that no event is about have idled all the time.
    fn idle_silently(&mut self, silent: &[Cpu], span: Ns) {
        for cpu in silent {
            if self.cpus.len() <= cpu.index() {
                self.cpus.resize(cpu.index() + 1, Queue::default());
            }
            self.cpus[cpu.index()].stay.push((0, true, span.0));
        }
        for scope in &mut self.scopes {
            if silent.iter().any(|cpu| scope.has(*cpu)) {
                scope.time += scope.crowded;
                scope.cpu_time = scope.cpu_time.saturating_add(scope.crowded);
            }
        }
    }

    /// The sums up to `end`; `silent` CPUs have idled for `span`.
    pub(super) fn finish(
        mut self,
        end: Ns,
        silent: &[Cpu],
        span: Ns,
    ) -> (Vec<CpuTime>, Depths, Vec<Unconserved>) {
        for scope in &mut self.scopes {
            scope.pass_time(end);
        }
        self.idle_silently(silent, span);
        for queue in &mut self.cpus {
            queue.pass_time(end);
            queue.count_stay(&mut self.depths);
        }
        let observed = self.cpus.iter().fold(0_u64, |sum, queue| sum.saturating_add(queue.observed));
        let depth_time: u128 = self.cpus.iter().map(|queue| queue.depth_time).sum();
        let mean = |depth_time: u128, observed: u64| depth_time as f64 / observed.max(1) as f64;
        let depths = Depths {
            observed: Ns(observed),
            mean: mean(depth_time, observed),
            max: self.cpus.iter().map(|queue| queue.depth_max).max().unwrap_or(0),
            at: self.depths.into_iter().map(Ns).collect(),
        };
        let cpu_time = |(cpu, queue): (u32, &Queue)| CpuTime {
            cpu: Cpu(cpu),
            observed: Ns(queue.observed),
            idle: Ns(queue.idle_time),
            depth_mean: mean(queue.depth_time, queue.observed),
            depth_max: queue.depth_max,
            switches: queue.switches,
        };
        let cpus = (0..).zip(&self.cpus).map(cpu_time).collect();
        let unconserved = |scope: ScopeTime| Unconserved {
            scope: scope.scope,
            time: Ns(scope.time),
            cpu_time: Ns(scope.cpu_time),
        };
        (cpus, depths, self.scopes.into_iter().map(unconserved).collect())
    }
}
