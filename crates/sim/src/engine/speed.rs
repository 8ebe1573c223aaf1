//! How fast CPUs are: work takes longer on a small CPU, at a low frequency, beside busy cores, in heat; the kernel's own work too.
//!
//! Who chooses frequencies is the scheduler's; here what a CPU is in the middle of is stretched or shortened.

use fairlab_event::{Cpu, Ns};

use fairlab_kernel::{CpuMask, Topology};

use super::Engine;
use crate::machine::Machine;
use crate::machine::speed::{Boost, FULL_SPEED, SpeedLimit, WHOLE, scale};
use crate::scheduler_core::SchedulerCore;

/// What hardware makes of its CPUs' speeds, beside their frequencies.
pub(super) struct CpuSpeeds {
    /// What each CPU does at its highest frequency, of [`WHOLE`].
    highest: Vec<u64>,
    /// The same as things are now.
    top: Vec<u64>,
    /// CPUs that do not idle, where anything goes by that.
    pub busy: CpuMask,
    boosts: Vec<BoostState>,
    limits: Vec<LimitState>,
}

struct BoostState {
    boost: Boost,
    /// How many of its cores are busy.
    busy_cores: u32,
    /// How fast that lets them be, of [`WHOLE`].
    speed: u64,
}

struct LimitState {
    limit: SpeedLimit,
    /// How fast it lets its CPUs be now, of [`WHOLE`].
    speed: u64,
}

impl CpuSpeeds {
    /// All CPUs idle, at the beginning.
    pub fn of(machine: &Machine) -> CpuSpeeds {
        let topology = &machine.topology;
        let told = topology.cpus().map(|cpu| u64::from(topology.capacity(cpu)));
        let highest = match &machine.speeds.cpus {
            _ if machine.in_turn => vec![WHOLE; topology.nr_cpus()],
            cpus if cpus.is_empty() => told.collect::<Vec<_>>(),
            cpus => cpus.iter().copied().map(u64::from).collect(),
        };
        let boost = |boost: &Boost| BoostState { boost: boost.clone(), busy_cores: 0, speed: boost.speed(0) };
        let limit = |limit: &SpeedLimit| LimitState { limit: limit.clone(), speed: WHOLE };
        CpuSpeeds {
            top: highest.clone(),
            highest,
            busy: CpuMask::EMPTY,
            boosts: machine.speeds.boosts.iter().map(boost).collect(),
            limits: machine.speeds.limits.iter().map(limit).collect(),
        }
    }

    /// Whether it makes a difference who idles.
    pub fn go_by_busy_cores(&self) -> bool {
        !self.boosts.is_empty()
    }

    /// `cpu` is busy from now on, or idles. Returns the CPUs that are faster or slower for that.
    fn note_busy(&mut self, topology: &Topology, cpu: Cpu, busy: bool) -> CpuMask {
        let core = *topology.smt_mask(cpu);
        let was_busy = !core.and(&self.busy).is_empty();
        if busy {
            self.busy.set(cpu);
        } else {
            self.busy.clear(cpu);
        }
        let is_busy = !core.and(&self.busy).is_empty();
        let mut changed = CpuMask::EMPTY;
        if was_busy == is_busy {
            return changed;
        }
        for state in self.boosts.iter_mut().filter(|state| state.boost.cpus.contains(cpu)) {
            state.busy_cores = if is_busy { state.busy_cores + 1 } else { state.busy_cores - 1 };
            let speed = state.boost.speed(state.busy_cores);
            if std::mem::replace(&mut state.speed, speed) != speed {
                changed = changed.or(&state.boost.cpus);
            }
        }
        changed
    }

    /// Works out the speed of `cpu` anew, and returns it.
    fn renew_top(&mut self, cpu: Cpu) -> u64 {
        let boosts =
            self.boosts.iter().filter(|state| state.boost.cpus.contains(cpu)).map(|state| state.speed);
        let limits =
            self.limits.iter().filter(|state| state.limit.cpus.contains(cpu)).map(|state| state.speed);
        let top = boosts.chain(limits).fold(self.highest[cpu.index()], |speed, part| speed * part / WHOLE);
        self.top[cpu.index()] = top.max(1);
        self.top[cpu.index()]
    }
}

impl<C: SchedulerCore> Engine<C> {
    /// How long `cpu` takes, as fast as it is now, for what takes `work` at full speed.
    #[inline]
    pub(super) fn time_for(&self, cpu: Cpu, work: Ns) -> Ns {
        scale(work, FULL_SPEED, self.cpus[cpu.index()].speed)
    }

    /// The same for kernel work that comes between.
    #[inline]
    pub(super) fn kernel_time_for(&self, cpu: Cpu, work: Ns) -> Ns {
        match self.effects {
            None => self.time_for(cpu, work),
            Some(_) => scale(work, FULL_SPEED, self.kernel_speed(cpu)),
        }
    }

    /// How much `cpu` does in `time`, as fast as it is now, as time at full speed.
    #[inline]
    pub(super) fn work_in(&self, cpu: Cpu, time: Ns) -> Ns {
        scale(time, self.cpus[cpu.index()].speed, FULL_SPEED)
    }

    /// Notes how fast every CPU is at the start.
    pub(super) fn note_speeds(&mut self) {
        for cpu in self.machine.topology.cpus() {
            let top = self.speeds.renew_top(cpu);
            self.core.set_top_speed(cpu, top);
            self.cpus[cpu.index()].speed = self.present_speed(cpu);
        }
    }

    /// `cpu` is faster or slower from now on: what it is in the middle of ends earlier or later.
    pub(super) fn change_speed(&mut self, cpu: Cpu) {
        let speed = self.present_speed(cpu);
        let before = std::mem::replace(&mut self.cpus[cpu.index()].speed, speed);
        if before == speed || !self.goes_by_speed(cpu) {
            return;
        }
        if let Some(standing) = self.standing(cpu) {
            standing.left = scale(standing.left, before, speed);
            return;
        }
        let left = scale(self.cpus[cpu.index()].until.since(self.now), before, speed);
        let until = self.now + left;
        self.cpus[cpu.index()].until = until;
        self.queue.arrange_phase_end(cpu, until);
    }

    /// How fast `cpu` would be if it were alone in its core: what hardware makes of it at its frequency.
    pub(super) fn clock_speed(&self, cpu: Cpu) -> u64 {
        let top = self.speeds.top[cpu.index()];
        if self.machine.in_turn { FULL_SPEED } else { (top * self.core.frequency(cpu)).max(1) }
    }

    /// `cpu` is busy from now on, or idles: cores that share what they draw are slower, or faster.
    pub(super) fn change_boosts(&mut self, cpu: Cpu, busy: bool) {
        let changed = self.speeds.note_busy(&self.machine.topology, cpu, busy);
        self.change_top_speeds(&changed);
    }

    /// Begins limits, and arranges when they change.
    pub(super) fn begin_limits(&mut self) {
        for number in 0..self.speeds.limits.len() {
            self.change_limit(number);
        }
    }

    /// A limit begins to hold, or ceases to.
    pub(super) fn change_limit(&mut self, number: usize) {
        let state = &mut self.speeds.limits[number];
        let (speed, next) = state.limit.at(self.now);
        let (cpus, before) = (state.limit.cpus, std::mem::replace(&mut state.speed, speed));
        if let (Some(next), Some(cpu)) = (next, cpus.lowest()) {
            self.queue.arrange_limit(cpu, next, number);
        }
        if before != speed {
            self.change_top_speeds(&cpus);
        }
    }

    fn change_top_speeds(&mut self, cpus: &CpuMask) {
        for cpu in cpus.iter() {
            let top = self.speeds.renew_top(cpu);
            self.core.set_top_speed(cpu, top);
            self.change_speed(cpu);
        }
    }
}
