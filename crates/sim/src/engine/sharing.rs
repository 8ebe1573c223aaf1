//! What sharing costs in a run: threads of a core, bandwidth, refills, distances, cache lines.
//!
//! Every effect is a figure of the machine's table `[sharing]`. A machine without the table has no [`SharingEffects`], and pays one
//! test for that.
//!
//! Departs: an interrupt's work runs at the speed of the core, whatever the bandwidth. CPUs that take turns share nothing.
//!
//! Must not know: which scheduler decides, what a workload is for.

mod bandwidth;
mod lines;
mod refill;
#[cfg(test)]
mod tests;

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::work_events::SchedulerWork;
use fairlab_kernel::{CpuMask, TaskId, Topology};

use super::cpu::CpuPhase;
use super::{ComputeSegment, Engine};
use crate::machine::speed::WHOLE;
use crate::machine::{Machine, Sharing};
use crate::scheduler_core::{LineUse, SchedulerCore, SharedLine};
use crate::workload::MemoryUse;
use bandwidth::MemoryBandwidth;
use lines::CacheLines;
use refill::Caches;

/// How far two CPUs are from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SharingDistance {
    /// They are threads of one core, or one CPU.
    Core,
    /// They share a cluster.
    Cluster,
    /// They share a last-level cache.
    Llc,
    /// They are of one node.
    Node,
    /// They are of different nodes.
    Remote,
}

impl SharingDistance {
    /// From one CPU to another.
    pub fn between(topology: &Topology, one: Cpu, other: Cpu) -> SharingDistance {
        let (from, to) = (topology.place(one), topology.place(other));
        match () {
            () if from.core == to.core => SharingDistance::Core,
            () if topology.cluster_mask(one).contains(other) => SharingDistance::Cluster,
            () if from.llc == to.llc => SharingDistance::Llc,
            () if from.node == to.node => SharingDistance::Node,
            () => SharingDistance::Remote,
        }
    }

    /// From `cpu` to the nearest of others.
    pub fn to_nearest(topology: &Topology, cpu: Cpu, others: &CpuMask) -> SharingDistance {
        let within = [
            (topology.smt_mask(cpu), SharingDistance::Core),
            (topology.cluster_mask(cpu), SharingDistance::Cluster),
            (topology.llc_mask(cpu), SharingDistance::Llc),
            (topology.node_mask(cpu), SharingDistance::Node),
        ];
        let near = within.into_iter().find(|(mask, _)| !mask.and(others).is_empty());
        near.map_or(SharingDistance::Remote, |(_, distance)| distance)
    }

    /// From `cpu` to the farthest of others.
    pub fn to_farthest(topology: &Topology, cpu: Cpu, others: &CpuMask) -> SharingDistance {
        let beyond = [
            (topology.node_mask(cpu), SharingDistance::Remote),
            (topology.llc_mask(cpu), SharingDistance::Node),
            (topology.cluster_mask(cpu), SharingDistance::Llc),
            (topology.smt_mask(cpu), SharingDistance::Cluster),
        ];
        let far = beyond.into_iter().find(|(mask, _)| !mask.contains_all(others));
        far.map_or(SharingDistance::Core, |(_, distance)| distance)
    }

    /// What goes with it.
    pub fn of(self, figures: [u64; 5]) -> u64 {
        figures[self as usize]
    }
}

/// All that is remembered where sharing costs something.
pub(super) struct SharingEffects {
    sharing: Sharing,
    /// The CPU on which something happens just now.
    here: Cpu,
    /// How long what it sends waits for lines that have to come first.
    late: Ns,
    /// What each thread does with memory, by its place among threads.
    memory: Vec<MemoryUse>,
    /// Whose present segment is traffic alone.
    moves: Vec<bool>,
    bandwidth: MemoryBandwidth,
    caches: Caches,
    lines: CacheLines,
    /// Per CPU until when it waited for lines on its way to sleep.
    asleep_from: Vec<Ns>,
    /// Lent to the scheduler, which fills it.
    used: Vec<LineUse>,
}

impl SharingEffects {
    /// What a machine's figures ask for; `None`: nothing.
    pub fn of(machine: &Machine) -> Option<Box<SharingEffects>> {
        if machine.sharing.is_off() || machine.in_turn {
            return None;
        }
        let topology = &machine.topology;
        Some(Box::new(SharingEffects {
            sharing: machine.sharing,
            here: Cpu(0),
            late: Ns::ZERO,
            memory: Vec::new(),
            moves: Vec::new(),
            bandwidth: MemoryBandwidth::new(machine.sharing, topology),
            caches: Caches::new(machine.sharing, topology),
            lines: CacheLines::new(machine.sharing, topology.nr_cpus()),
            asleep_from: vec![Ns::ZERO; topology.nr_cpus()],
            used: Vec::new(),
        }))
    }

    /// A thread begins its life at this place among threads.
    fn begin_thread(&mut self, thread: usize, memory: MemoryUse) {
        if self.memory.len() <= thread {
            self.memory.resize(thread + 1, MemoryUse::default());
            self.moves.resize(thread + 1, false);
        }
        self.memory[thread] = memory;
        self.moves[thread] = false;
        self.caches.forget(thread);
        self.bandwidth.forget(thread);
    }

    /// How fast the core lets `cpu` be while so many of its threads run, of [`WHOLE`].
    fn smt_speed(&self, topology: &Topology, busy: &CpuMask, cpu: Cpu) -> u64 {
        if self.sharing.smt_speed_2 + self.sharing.smt_speed_4 + self.sharing.smt_speed_8 == 0 {
            return WHOLE;
        }
        let mut running = topology.smt_mask(cpu).and(busy);
        running.set(cpu);
        self.sharing.smt_speed(running.weight())
    }
}

impl<C: SchedulerCore> Engine<C> {
    /// How fast `cpu` is in the kernel: by itself, and beside the threads of its core.
    pub(super) fn kernel_speed(&self, cpu: Cpu) -> u64 {
        let speed = self.clock_speed(cpu);
        match &self.effects {
            None => speed,
            Some(effects) => part(speed, effects.smt_speed(&self.machine.topology, &self.speeds.busy, cpu)),
        }
    }

    /// How fast it is at what it is at.
    pub(super) fn present_speed(&self, cpu: Cpu) -> u64 {
        let speed = self.kernel_speed(cpu);
        match &self.effects {
            None => speed,
            Some(effects) => part(speed, effects.bandwidth.speed(cpu)),
        }
    }

    /// Something happens on `cpu`.
    #[inline]
    pub(super) fn note_here(&mut self, cpu: Cpu) {
        if let Some(effects) = &mut self.effects {
            (effects.here, effects.late) = (cpu, Ns::ZERO);
        }
    }

    /// `cpu` stops idling, or begins to: the other threads of its core and other cores are slower, or faster.
    #[inline]
    pub(super) fn note_busy(&mut self, cpu: Cpu, busy: bool) {
        if self.effects.is_some() || self.speeds.go_by_busy_cores() {
            self.change_busy(cpu, busy);
        }
    }

    fn change_busy(&mut self, cpu: Cpu, busy: bool) {
        self.change_boosts(cpu, busy);
        let siblings = *self.machine.topology.smt_mask(cpu);
        if self.effects.is_some() && siblings.weight() > 1 {
            siblings.iter().for_each(|sibling| self.change_speed(sibling));
        }
    }

    /// A thread is created at this place among threads.
    pub(super) fn note_memory(&mut self, thread: usize, memory: MemoryUse) {
        if let Some(effects) = &mut self.effects {
            effects.begin_thread(thread, memory);
        }
    }

    /// The next segment of a thread is traffic alone, or what its memory says.
    #[inline]
    pub(super) fn note_moves(&mut self, thread: usize, moves: bool) {
        if let Some(effects) = &mut self.effects {
            effects.moves[thread] = moves;
        }
    }

    /// The thread that `cpu` runs goes on in user mode: from now on it draws bandwidth.
    #[inline]
    pub(super) fn begin_traffic(&mut self, cpu: Cpu, thread: usize) {
        let polls = matches!(self.threads[thread].segment, ComputeSegment::Until(_));
        let Some(effects) = &mut self.effects else { return };
        let memory = effects.memory[thread];
        let permille = if effects.moves[thread] { 1000 } else { memory.traffic_permille.min(1000) };
        let kb = memory.working_set_kb.unwrap_or(effects.sharing.working_set_kb);
        let permille = if polls { 0 } else { permille };
        if effects.bandwidth.begin(cpu, thread, permille, kb) {
            self.change_traffic(cpu);
        }
    }

    /// `cpu` leaves user mode, or draws nothing more there.
    #[inline]
    pub(super) fn end_traffic(&mut self, cpu: Cpu) {
        if let Some(effects) = &mut self.effects
            && effects.bandwidth.end(cpu)
        {
            self.change_traffic(cpu);
        }
    }

    /// `cpu` draws more or less than before: all that draw get their shares.
    fn change_traffic(&mut self, cpu: Cpu) {
        let Some(effects) = &mut self.effects else { return };
        let mut changed = effects.bandwidth.share_out();
        changed.set(cpu);
        changed.iter().for_each(|cpu| self.change_speed(cpu));
    }

    /// The thread that `cpu` has switched to finds its caches cold if it ran elsewhere since: it computes longer, or works longer in the
    /// kernel.
    #[inline]
    pub(super) fn refill_caches(&mut self, cpu: Cpu, thread: usize) {
        let Some(effects) = &mut self.effects else { return };
        let kb = effects.memory[thread].working_set_kb.unwrap_or(effects.sharing.working_set_kb);
        let refill = effects.caches.enter(cpu, thread, kb);
        if refill > Ns::ZERO {
            let segment = &mut self.threads[thread].segment;
            *segment = match *segment {
                ComputeSegment::Done => ComputeSegment::Work(refill),
                ComputeSegment::Work(left) => ComputeSegment::Work(left + refill),
                ComputeSegment::Kernel(left) => ComputeSegment::Kernel(left + refill),
                // It goes on until something happens elsewhere.
                until @ (ComputeSegment::Until(_) | ComputeSegment::Spin { .. }) => until,
            };
        }
    }

    /// `task` was woken by `cpu`, or left to another CPU. Returns what that took beyond a wakeup of the waker's own CPU; interrupts
    /// that follow from it go out as much later.
    #[inline]
    pub(super) fn wakeup_distance(&mut self, cpu: Cpu, task: TaskId) -> Ns {
        if self.effects.is_none() { Ns::ZERO } else { self.far_wakeup(cpu, task) }
    }

    fn far_wakeup(&mut self, cpu: Cpu, task: TaskId) -> Ns {
        let (lines, is_left) = self.charge_lines(cpu);
        let (Some(target), Some(effects)) = (self.core.task_cpu(task), &self.effects) else {
            return lines;
        };
        let distance = SharingDistance::between(&self.machine.topology, cpu, target);
        let far = distance.of(effects.sharing.wakeups());
        // Who leaves a wakeup to its CPU leaves the lock to it, too.
        let lock = if is_left { Ns::ZERO } else { self.lock_queue(cpu, target) };
        let took = lines + Ns(far) + lock;
        if let Some(effects) = &mut self.effects {
            effects.late += took;
        }
        took
    }

    /// `cpu` takes the lock of a runqueue, maybe its own. Returns how long it waits for that.
    #[inline]
    pub(super) fn lock_queue(&mut self, cpu: Cpu, of: Cpu) -> Ns {
        let Some(effects) = &mut self.effects else { return Ns::ZERO };
        let waited = effects.lines.lock_queue(&self.machine.topology, cpu, of, self.now);
        if waited > Ns::ZERO {
            self.core.tell_work(SchedulerWork::Lines, 1, waited);
        }
        waited
    }

    /// How much later than its usual time an interrupt that is sent now arrives on `cpu`.
    #[inline]
    pub(super) fn ipi_distance(&self, cpu: Cpu) -> Ns {
        let Some(effects) = &self.effects else { return Ns::ZERO };
        match SharingDistance::between(&self.machine.topology, effects.here, cpu) {
            SharingDistance::Remote => effects.late + Ns(effects.sharing.ipi_remote_ns),
            _ => effects.late,
        }
    }

    /// What the scheduler has read and written on `cpu` that CPUs share. Returns how long the lines took to come.
    #[inline]
    pub(super) fn used_lines(&mut self, cpu: Cpu) -> Ns {
        if self.effects.is_none() { Ns::ZERO } else { self.charge_lines(cpu).0 }
    }

    /// The same, and whether a wakeup was left to another CPU.
    fn charge_lines(&mut self, cpu: Cpu) -> (Ns, bool) {
        let Some(effects) = self.effects.as_mut().filter(|_| self.core.has_line_uses()) else {
            return (Ns::ZERO, false);
        };
        let SharingEffects { used, lines, .. } = &mut **effects;
        self.core.take_line_uses(used);
        let (mut took, mut is_left) = (Ns::ZERO, false);
        for used in used.drain(..) {
            is_left |= matches!(used.line, SharedLine::WakeList(of) if of != cpu);
            // One after the other.
            let waited = lines.used(&self.machine.topology, used, self.now + took);
            // What another CPU used is what no cost of its work was asked for.
            took += if used.cpu == cpu { waited } else { Ns::ZERO };
        }
        if took > Ns::ZERO {
            self.core.tell_work(SchedulerWork::Lines, 1, took);
        }
        (took, is_left)
    }

    /// `cpu` stops its tick, and sleeps when the lines that it uses for that have come.
    #[inline]
    pub(super) fn note_way_to_sleep(&mut self, cpu: Cpu) {
        let from = self.now + self.used_lines(cpu);
        if let Some(effects) = &mut self.effects {
            effects.asleep_from[cpu.index()] = from;
        }
    }

    /// How long `cpu`, which is woken now, is still on its way to sleep, with interrupts off.
    #[inline]
    pub(super) fn way_to_sleep(&self, cpu: Cpu) -> Ns {
        let Some(effects) = &self.effects else { return Ns::ZERO };
        Ns(effects.asleep_from[cpu.index()].0.saturating_sub(self.now.0))
    }

    /// Whether `cpu` is at work whose length goes by its speed.
    pub(super) fn goes_by_speed(&self, cpu: Cpu) -> bool {
        self.cpus[cpu.index()].phase != CpuPhase::Idle && !self.polls(cpu)
    }
}

/// A speed of which only so many parts of [`WHOLE`] are left.
fn part(speed: u64, of_whole: u64) -> u64 {
    if of_whole == WHOLE { speed } else { (speed * of_whole / WHOLE).max(1) }
}
