//! For how long CPUs idled, and for how long one did while a task waited on another that an idle one might run.
//!
//! A CPU's time counts from its first event on. It is unknown from the last switch before a hole to the CPU's next event. A
//! CPU without any event has idled, if the trace accounts running tasks at each tick; else its time is unknown.
//!
//! Must not know: tasks.

use fairlab_event::{Cpu, Ns};

use crate::tracker::{TrackedCpu, Tracker};

/// A CPU that runs a task ticks within this time, whatever HZ is.
const TICKS: Ns = Ns::from_ms(20);

/// A set of CPUs that share something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// What they are: `machine`, `node 0`, `llc 3`.
    pub name: String,
    /// Its CPUs; empty means all.
    pub cpus: Vec<Cpu>,
}

impl Scope {
    /// All CPUs.
    pub(crate) fn machine() -> Scope {
        Scope { name: "machine".to_string(), cpus: Vec::new() }
    }
}

/// How long a scope left work undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unconserved {
    /// Where.
    pub scope: Scope,
    /// Time during which one of its CPUs idled while on another of them a task waited behind others that may run there.
    pub time: Ns,
    /// That time, times the number of CPUs that could have worked: CPU time lost.
    pub cpu_time: Ns,
}

/// The time of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Observed {
    /// For how long it is known what it did.
    pub(crate) known: u64,
    /// For how long of that it ran the idle task.
    pub(crate) idle: u64,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Idled {
    /// Of every CPU.
    pub(crate) cpus: Vec<Observed>,
    /// Of every scope, the machine first.
    pub(crate) unconserved: Vec<Unconserved>,
    /// CPUs that no event was about, and whether they count as idle.
    pub(crate) silent: Vec<Cpu>,
    pub(crate) are_silent_idle: bool,
}

/// Adds up time.
#[derive(Clone, Debug)]
pub(crate) struct Idleness {
    cpus: Vec<CpuTime>,
    scopes: Vec<ScopeTime>,
    /// Where tasks wait that may run on some other CPUs, and which these are; and when that was so.
    bound: Vec<(Cpu, Vec<Cpu>)>,
    bound_version: u64,
}

#[derive(Clone, Debug, Default)]
struct CpuTime {
    /// When its present stay began, as far as it is counted.
    since: Ns,
    known: bool,
    idle: bool,
    /// A task that waits there waits behind another one; how many of these may run anywhere.
    keeps_waiting: bool,
    surplus: u32,
    observed: Observed,
    stays: u32,
    broken_stays: u32,
    /// An event was about it, reported by any CPU.
    heard_of: bool,
}

impl CpuTime {
    /// The present stay is what it seemed to be.
    fn count_stay(&mut self, now: Ns) {
        let passed = now.since(self.since).0;
        self.observed.known += passed;
        self.observed.idle += if self.idle { passed } else { 0 };
    }

    /// What it does from `now` on.
    fn change(&mut self, state: &TrackedCpu, now: Ns) {
        self.heard_of = true;
        let is_broken = self.broken_stays != state.broken_stays;
        if is_broken || !self.known || self.stays != state.stays {
            if self.known && !is_broken {
                self.count_stay(now);
            }
            self.since = self.since.max(now);
            (self.stays, self.broken_stays) = (state.stays, state.broken_stays);
        }
        (self.known, self.idle, self.keeps_waiting) = (state.known, state.is_idle(), state.keeps_waiting());
        self.surplus = if self.keeps_waiting { state.movable } else { 0 };
    }
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
    /// Time during which a task waited behind others and none of the CPUs that were heard of idled.
    crowded: u64,
}

impl ScopeTime {
    fn new(scope: Scope) -> ScopeTime {
        let mut members = vec![false; scope.cpus.iter().map(|cpu| cpu.index() + 1).max().unwrap_or(0)];
        for cpu in &scope.cpus {
            members[cpu.index()] = true;
        }
        ScopeTime { scope, members, since: Ns::ZERO, idle: 0, surplus: 0, time: 0, cpu_time: 0, crowded: 0 }
    }

    fn has(&self, cpu: Cpu) -> bool {
        self.members.is_empty() || self.members.get(cpu.index()).copied().unwrap_or(false)
    }

    fn pass_time(&mut self, now: Ns, cpus: &[CpuTime], bound: &[(Cpu, Vec<Cpu>)]) {
        let passed = now.since(self.since).0;
        self.since = now.max(self.since);
        if self.idle > 0 && (self.surplus > 0 || !bound.is_empty() && self.could_move(cpus, bound)) {
            self.time += passed;
            let lost = passed.saturating_mul(self.idle.min(self.surplus.max(1)).into());
            self.cpu_time = self.cpu_time.saturating_add(lost);
        } else if self.surplus > 0 {
            self.crowded += passed;
        }
    }

    /// Whether one that waits, and may not run everywhere, may run on a CPU that idles.
    fn could_move(&self, cpus: &[CpuTime], bound: &[(Cpu, Vec<Cpu>)]) -> bool {
        let is =
            |cpu: Cpu, what: fn(&CpuTime) -> bool| self.has(cpu) && cpus.get(cpu.index()).is_some_and(what);
        let may = |(on, allowed): &(Cpu, Vec<Cpu>)| {
            is(*on, |cpu| cpu.keeps_waiting) && allowed.iter().any(|&cpu| is(cpu, |cpu| cpu.idle))
        };
        bound.iter().any(may)
    }
}

impl Idleness {
    /// Nothing is known yet.
    pub(crate) fn new(scopes: Vec<Scope>) -> Idleness {
        let scopes = scopes.into_iter().map(ScopeTime::new).collect();
        Idleness { cpus: Vec::new(), scopes, bound: Vec::new(), bound_version: 0 }
    }

    /// Takes the CPUs whose state the latest event changed.
    #[inline]
    pub(crate) fn follow(&mut self, tracker: &Tracker, now: Ns) {
        for cpu in tracker.touched() {
            self.change(cpu, tracker, now);
        }
    }

    /// Takes a CPU's state, which is so from `now` on.
    pub(crate) fn change(&mut self, cpu: Cpu, tracker: &Tracker, now: Ns) {
        let Some(state) = tracker.cpu(cpu) else { return };
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize(cpu.index() + 1, CpuTime::default());
        }
        let new_bound = self.bound_version != tracker.bound().version();
        if new_bound || !self.bound.is_empty() {
            self.pass_time(now);
        }
        let here = &mut self.cpus[cpu.index()];
        let before = (here.idle, here.surplus);
        here.change(state, now);
        let after = (here.idle, here.surplus);
        if before != after {
            for scope in self.scopes.iter_mut().filter(|scope| scope.has(cpu)) {
                // Of tasks that may not run everywhere it has passed already.
                scope.pass_time(now, &[], &[]);
                scope.idle = scope.idle + u32::from(after.0) - u32::from(before.0);
                scope.surplus = scope.surplus + after.1 - before.1;
            }
        }
        if new_bound {
            self.bound = tracker.bound().waiting().map(|(cpu, allowed)| (cpu, allowed.to_vec())).collect();
            self.bound_version = tracker.bound().version();
        }
    }

    fn pass_time(&mut self, now: Ns) {
        self.scopes.iter_mut().for_each(|scope| scope.pass_time(now, &self.cpus, &self.bound));
    }

    /// What was before `now` does not count.
    pub(crate) fn begin(&mut self, now: Ns) {
        self.pass_time(now);
        for cpu in &mut self.cpus {
            (cpu.since, cpu.observed) = (cpu.since.max(now), Observed::default());
        }
        for scope in &mut self.scopes {
            (scope.time, scope.cpu_time, scope.crowded) = (0, 0, 0);
        }
    }

    /// The sums from `start` to `end` of `nr_cpus` CPUs, or as many as were heard of.
    pub(crate) fn finish(mut self, (start, end): (Ns, Ns), nr_cpus: usize, tracker: &Tracker) -> Idled {
        self.pass_time(end);
        self.cpus.resize(self.cpus.len().max(nr_cpus), CpuTime::default());
        for cpu in self.cpus.iter_mut().filter(|cpu| cpu.known) {
            cpu.count_stay(end);
        }
        let is_silent = |(_, cpu): &(u32, &CpuTime)| !cpu.heard_of;
        let silent = (0..).zip(&self.cpus).filter(is_silent).map(|(cpu, _)| Cpu(cpu)).collect::<Vec<_>>();
        let span = end.since(start);
        let is_whole = tracker.losses() == 0 && tracker.oddities().switch_gaps == 0;
        let are_silent_idle = is_whole && tracker.has_runtime() && span > TICKS;
        if are_silent_idle {
            for cpu in &silent {
                self.cpus[cpu.index()].observed = Observed { known: span.0, idle: span.0 };
            }
            for scope in &mut self.scopes {
                if silent.iter().any(|cpu| scope.has(*cpu)) {
                    scope.time += scope.crowded;
                    scope.cpu_time = scope.cpu_time.saturating_add(scope.crowded);
                }
            }
        }
        let unconserved = |ScopeTime { scope, time, cpu_time, .. }| Unconserved {
            scope,
            time: Ns(time),
            cpu_time: Ns(cpu_time),
        };
        Idled {
            cpus: self.cpus.iter().map(|cpu| cpu.observed).collect(),
            unconserved: self.scopes.into_iter().map(unconserved).collect(),
            silent,
            are_silent_idle,
        }
    }
}
