//! CPUs that share a clock, and what a governor remembers of them.
//!
//! Must not know: when a governor is asked.

use fairlab_event::Ns;

use crate::cpufreq::rules::{Headroom, HeadroomEnd, Reference};
use crate::cpumask::CpuMask;

/// CPUs that share a clock, and what it can do (`struct cpufreq_policy`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrequencyDomain {
    /// The CPUs (`related_cpus`).
    pub cpus: CpuMask,
    /// Frequencies that the clock can have, kHz, rising.
    pub frequencies: Vec<u32>,
    /// The least time between two changes (`rate_limit_us`).
    pub rate_limit: Ns,
    /// Whether a CPU can switch by itself, at once; otherwise a thread does it (`fast_switch_enabled`).
    pub fast_switch: bool,
    /// Whether the scheduler is told which frequency is in force (`arch_scale_freq_invariant()`); otherwise it takes the clock for
    /// one that always runs at its highest, and a governor goes by the frequency in force instead of the highest.
    pub invariant: bool,
}

impl FrequencyDomain {
    /// The highest frequency, kHz (`cpuinfo.max_freq`).
    pub fn max(&self) -> u32 {
        self.frequencies.last().copied().unwrap_or(1)
    }

    /// The lowest frequency that is at least `khz`, or the highest (`CPUFREQ_RELATION_L`).
    pub(crate) fn resolve(&self, khz: u64) -> u32 {
        let fast_enough = self.frequencies.iter().find(|&&frequency| u64::from(frequency) >= khz);
        fast_enough.copied().unwrap_or_else(|| self.max())
    }
}

/// A frequency that a policy asks its driver for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrequencyRequest {
    /// The policy, numbered in order of [`Scheduler::set_frequency_domains`].
    pub policy: usize,
    /// The frequency, kHz.
    pub khz: u32,
}

/// One policy's state (`struct sugov_policy`).
#[derive(Clone, Debug)]
pub(crate) struct SugovPolicy {
    pub(crate) domain: FrequencyDomain,
    /// The frequency in force, kHz.
    pub(crate) current: u32,
    /// The one last asked for, kHz (`next_freq`).
    pub(crate) next: u32,
    /// The one last computed, before it was resolved, kHz (`cached_raw_freq`).
    pub(crate) raw: u64,
    pub(crate) last_update: Option<Ns>,
    /// The thread has been told and has not switched yet.
    pub(crate) work_in_progress: bool,
}

/// All policies of a machine, and who belongs to which.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cpufreq {
    pub(crate) policies: Vec<SugovPolicy>,
    pub(crate) policy_of: Vec<Option<usize>>,
    /// Per CPU: how far its clock is raised for tasks that come back from I/O.
    pub(crate) boosts: Vec<IoBoost>,
    /// Per CPU: how often it has gone idle, and at the last look (`saved_idle_calls`).
    pub(crate) idle_calls: Vec<(u64, u64)>,
    pub(crate) requests: Vec<FrequencyRequest>,
    /// CPUs looked at by governors since the driver last asked.
    pub(crate) looked_at: u32,
}

impl Cpufreq {
    pub fn asks_driver(&self) -> bool {
        self.looked_at > 0 || !self.requests.is_empty()
    }
}

impl Headroom {
    /// The frequency that goes with `util` of `capacity` where all of it takes `khz` (`map_util_freq()`), kHz.
    pub(crate) const fn map(self, util: u64, khz: u64, capacity: u64) -> u64 {
        match self {
            Headroom::OnFrequency => (khz + (khz >> 2)) * util / capacity,
            Headroom::OnUtilization => khz * (util + (util >> 2)) / capacity,
        }
    }
}

impl HeadroomEnd {
    /// What is left of a frequency with headroom, if the whole of a CPU takes `khz`, kHz.
    pub(crate) fn bound(self, raw: u64, khz: u64) -> u64 {
        match self {
            HeadroomEnd::Nowhere => raw,
            HeadroomEnd::AtCapacity => raw.min(khz),
        }
    }
}

impl SugovPolicy {
    /// The frequency in force as a part of 1024 of the highest.
    pub(crate) fn part_of_max(&self) -> u64 {
        u64::from(self.current) * WHOLE / u64::from(self.domain.max())
    }

    /// The frequency that the whole of a CPU is taken to need, kHz (`get_capacity_ref_freq()`).
    pub(crate) fn reference(&self, rule: Reference) -> u64 {
        let current = u64::from(self.current);
        match rule {
            _ if self.domain.invariant => u64::from(self.domain.max()),
            Reference::Current => current,
            Reference::QuarterAboveCurrent => current + (current >> 2),
        }
    }
}

/// For what it is asked how much of a CPU is used (`enum cpu_util_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UtilFor {
    /// The frequency that it needs.
    Frequency,
    /// For how long it draws power.
    Time,
}

/// The whole of a CPU (`SCHED_CAPACITY_SCALE`).
pub(crate) const WHOLE: u64 = 1024;

/// A CPU's boost (in `struct sugov_cpu`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IoBoost {
    /// How far, in 1024ths of its capacity (`iowait_boost`).
    pub(crate) boost: u64,
    /// A wakeup has asked for it since it was last applied (`iowait_boost_pending`).
    pub(crate) pending: bool,
    /// When the governor was last told about the CPU (`last_update`).
    pub(crate) last_update: Ns,
}

impl IoBoost {
    /// How much of a CPU of this capacity it stands for.
    pub fn of(self, capacity: u64) -> u64 {
        self.boost * capacity / WHOLE
    }

    /// Forgets it when a tick has passed since the CPU was last heard of. Returns whether it did.
    ///
    /// Kernel: `sugov_iowait_reset()`.
    pub(crate) fn reset(&mut self, now: Ns, tick: Ns, to: Option<u64>) -> bool {
        let is_old = now.since(self.last_update) > tick;
        if is_old {
            (self.boost, self.pending) = (to.unwrap_or(0), to.is_some());
        }
        is_old
    }
}
