//! What the follower asked of the hardware, kept until the leader's interrupt arrives at that CPU.
//!
//! The two may ask in different units: a kernel sends one interrupt for several wakeups, and has all its timers in one clock
//! event device. They must agree on which CPU is interrupted when.
//!
//! Must not know: what a message says.

use fairlab_event::{Cpu, Ns};
use fairlab_sim::scheduler_core::CoreRequest;

/// How long after it is due a timer may expire: its CPU leaves idle, or has interrupts off.
const LATEST: Ns = Ns(1_000_000);

/// What is on its way.
pub(super) struct PendingMessages<M> {
    /// The follower's, in order.
    interrupts: Vec<(Cpu, M)>,
    timers: Vec<(Cpu, Ns, M)>,
    /// When the follower's movable timer of each CPU expires.
    clock_events: Vec<Option<Ns>>,
    /// How many of the leader's interrupts are on their way to each CPU.
    leaders: Vec<u32>,
}

impl<M: Copy> PendingMessages<M> {
    pub fn new(nr_cpus: usize) -> PendingMessages<M> {
        PendingMessages {
            interrupts: Vec::new(),
            timers: Vec::new(),
            clock_events: vec![None; nr_cpus],
            leaders: vec![0; nr_cpus],
        }
    }

    /// The leader has interrupted `cpu`.
    pub fn leader_interrupts(&mut self, cpu: Cpu) {
        self.leaders[cpu.index()] += 1;
    }

    /// The leader's interrupt has come to `cpu`. Returns whether it is the last one that is on its way there: it then brings all
    /// that there is.
    pub fn leader_receives(&mut self, cpu: Cpu) -> bool {
        let pending = &mut self.leaders[cpu.index()];
        *pending = pending.saturating_sub(1);
        *pending == 0
    }

    /// The follower asks for something.
    pub fn add(&mut self, request: CoreRequest<M>) {
        match request {
            CoreRequest::Interrupt { cpu, message } => self.interrupts.push((cpu, message)),
            CoreRequest::Timer { cpu, expires, message } => self.timers.push((cpu, expires, message)),
            CoreRequest::ClockEvent { cpu, expires } => self.clock_events[cpu.index()] = expires,
            CoreRequest::Frequency { .. } => {}
        }
    }

    /// The follower's next interrupt of `cpu`.
    pub fn take_interrupt(&mut self, cpu: Cpu) -> Option<M> {
        let at = self.interrupts.iter().position(|(to, _)| *to == cpu)?;
        Some(self.interrupts.remove(at).1)
    }

    /// The follower's next timer of `cpu` that is due.
    pub fn take_timer(&mut self, cpu: Cpu, now: Ns) -> Option<M> {
        let due =
            self.timers.iter().enumerate().filter(|(_, (on, expires, _))| *on == cpu && *expires <= now);
        let (at, _) = due.min_by_key(|(at, (_, expires, _))| (*expires, *at))?;
        Some(self.timers.remove(at).2)
    }

    /// Whether the follower's movable timer of `cpu` is due; then it no longer runs.
    pub fn take_clock_event(&mut self, cpu: Cpu, now: Ns) -> bool {
        let timer = &mut self.clock_events[cpu.index()];
        let due = timer.is_some_and(|expires| expires <= now);
        if due {
            *timer = None;
        }
        due
    }

    /// A CPU that only one of the two has interrupted, and whether the follower has.
    pub fn lone_interrupt(&self) -> Option<(Cpu, bool)> {
        let by_leader = |cpu: Cpu| self.leaders[cpu.index()] > 0;
        let by_follower = |cpu: Cpu| self.interrupts.iter().any(|(to, _)| *to == cpu);
        let cpus = (0..self.leaders.len() as u32).map(Cpu);
        cpus.filter(|&cpu| by_leader(cpu) != by_follower(cpu)).map(|cpu| (cpu, by_follower(cpu))).next()
    }

    /// A timer of the follower that should have expired by now.
    pub fn overdue(&self, now: Ns) -> Option<(Cpu, Ns)> {
        let timers = self.timers.iter().map(|(cpu, expires, _)| (*cpu, *expires));
        timers.filter(|(_, expires)| *expires + LATEST < now).min_by_key(|(_, expires)| *expires)
    }
}
