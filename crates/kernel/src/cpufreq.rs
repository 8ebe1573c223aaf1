//! `kernel/sched/cpufreq_schedutil.c`: the frequency that CPUs ask for by their utilization.
//!
//! CPUs that share a clock share a *policy*. When a root queue's utilization changes, its CPU's policy may ask for another
//! frequency. The driver knows how long the hardware takes, and sets the frequency at once or in a thread of the policy.
//!
//! Must not know: how long switching takes, what a frequency is good for.
//!
//! Departs: no clamps (uclamp), no reserved `SCHED_DEADLINE` bandwidth; interrupts take no time from tasks.

mod driver;
mod io_boost;
mod policy;

use fairlab_event::{Cpu, Ns};

use crate::all_cpus::Shared;
use crate::cpufreq::rules::DeadlineUse;
use crate::cpumask::CpuMask;
use crate::entity::CfsRqId;
use crate::generation::Feature;
use crate::pelt::{CpuScale, CpuUtil};
use crate::rq::LockedRq;

use policy::SugovPolicy;
pub(crate) use policy::{Cpufreq, UtilFor};
pub use policy::{FrequencyDomain, FrequencyRequest};

pub(crate) mod rules;

#[cfg(test)]
pub(crate) mod tests;

/// What a policy would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NextFrequency {
    /// Computed, before it is resolved, kHz.
    raw: u64,
    /// The frequency to ask for, kHz.
    khz: u32,
    /// How many CPUs were looked at.
    looked_at: u32,
}

impl Shared {
    /// What the scheduler is told of the frequency of `cpu`, as a part of 1024 (`arch_scale_freq_capacity()`), and its capacity.
    pub(crate) fn cpu_scale(&self, cpu: Cpu) -> CpuScale {
        let told = self.policy_of(cpu).filter(|policy| policy.domain.invariant);
        let frequency = told.map_or(CpuScale::FULL.frequency, SugovPolicy::part_of_max);
        CpuScale { frequency, capacity: self.arch_scale_cpu_capacity(cpu) }
    }

    pub(crate) fn policy_of(&self, cpu: Cpu) -> Option<&SugovPolicy> {
        let number = self.cpufreq.policy_of.get(cpu.index()).copied().flatten()?;
        Some(&self.cpufreq.policies[number])
    }

    /// The CPUs of a policy.
    pub(crate) fn cpus_of_policy(&self, policy: usize) -> CpuMask {
        self.cpufreq.policies[policy].domain.cpus.and(self.topology.online())
    }

    /// `cpu` goes idle once more (`tick_nohz_get_idle_calls_cpu()`).
    pub(crate) fn count_idle_call(&mut self, cpu: Cpu) {
        if let Some((calls, _)) = self.cpufreq.idle_calls.get_mut(cpu.index()) {
            *calls += 1;
        }
    }

    /// Kernel: `sugov_should_update_freq()`; only a CPU of the policy may ask (`cpufreq_this_cpu_can_update()`).
    fn sugov_should_update_freq(&self, number: usize, now: Ns) -> bool {
        let policy = &self.cpufreq.policies[number];
        let may_ask = policy.domain.cpus.contains(self.trace.here);
        let rested = policy.last_update.is_none_or(|last| now.since(last) >= policy.domain.rate_limit);
        may_ask && rested
    }

    /// The frequency that the busiest CPU of a policy needs.
    ///
    /// Kernel: `sugov_next_freq_shared()`, `get_next_freq()`, `sugov_effective_cpu_perf()`, `sugov_hold_freq()`. Variants:
    /// `OnFrequency` to v5.13, `OnUtilization` from v5.14 (8f1b971b4750); `Nowhere` to v6.7, `AtCapacity` from v6.8 (9c0b4bb7f630);
    /// `Current` to v6.7, `QuarterAboveCurrent` from v6.8 (e37617c8e53a). What counts as utilization is load tracking's.
    /// Departs: the frequency of full capacity is a clock's highest (b3edde44e5d4 takes what firmware tells).
    fn sugov_next_freq(&self, number: usize, asking: Cpu) -> NextFrequency {
        let policy = &self.cpufreq.policies[number];
        let rules = &self.generation.frequency;
        let (mut util, mut max, mut looked_at) = (0, 1, 0);
        for cpu in self.cpus_of_policy(number).iter() {
            looked_at += 1;
            let capacity = self.arch_scale_cpu_capacity(cpu);
            let of_cpu = self.sugov_get_util(cpu);
            if of_cpu * max > capacity * util {
                (util, max) = (of_cpu, capacity);
            }
        }
        let reference = policy.reference(rules.reference);
        let raw = rules.headroom_end.bound(rules.headroom.map(util, reference, max), reference);
        if raw == policy.raw {
            return NextFrequency { raw, khz: policy.next, looked_at };
        }
        let khz = policy.domain.resolve(raw);
        let (calls, seen) = self.cpufreq.idle_calls[asking.index()];
        if looked_at == 1 && khz < policy.next && calls == seen {
            // It has not idled since: less would come too early.
            return NextFrequency { raw: policy.raw, khz: policy.next, looked_at };
        }
        NextFrequency { raw, khz, looked_at }
    }

    /// How much of a CPU asks for its frequency (`sugov_get_util()`).
    fn sugov_get_util(&self, cpu: Cpu) -> u64 {
        let capacity = self.arch_scale_cpu_capacity(cpu);
        let queue = &self.cfs(CfsRqId::root(cpu)).tracked.avg;
        let util_est_enabled = self.has(Feature::UtilEst);
        let used = CpuUtil { queue, task: None, capacity, boost: true, util_est_enabled };
        let boost = self.cpufreq.boosts[cpu.index()].of(capacity);
        self.effective_cpu_util(cpu, self.generation.pelt.cpu_util(used), UtilFor::Frequency).max(boost)
    }

    /// How much of a CPU all classes use, of which `fair` the fair class; for a frequency, a queued real-time task needs all
    /// of it.
    ///
    /// Kernel: `effective_cpu_util()`, kernel/sched/syscalls.c, to v5.13 `schedutil_cpu_util()`. Variants: `FillsCpu` to v6.7,
    /// `Counts` from v6.8 (9c0b4bb7f630). Units: of 1024.
    pub(crate) fn effective_cpu_util(&self, cpu: Cpu, fair: u64, purpose: UtilFor) -> u64 {
        let (capacity, others) = (self.arch_scale_cpu_capacity(cpu), &self.cpus[cpu.index()]);
        if purpose == UtilFor::Frequency && others.rt.first().is_some() {
            return capacity;
        }
        let util = fair + others.avg_rt.util_avg;
        let with_deadlines = util + others.avg_dl.util_avg;
        let counts =
            purpose == UtilFor::Time || self.generation.frequency.deadline_use == DeadlineUse::Counts;
        match with_deadlines >= capacity {
            true => capacity,
            false if counts => with_deadlines,
            false => util,
        }
    }
}

impl LockedRq<'_> {
    /// The utilization of a root queue has changed: its policy may ask for another frequency.
    ///
    /// Kernel: `cpufreq_update_util()`, `sugov_update_single()`, `sugov_update_shared()`.
    pub(crate) fn cpufreq_update_util(&mut self) {
        self.ask_governor(false);
    }

    /// A task comes back from I/O (`SCHED_CPUFREQ_IOWAIT`).
    pub(crate) fn cpufreq_update_after_io(&mut self) {
        self.ask_governor(true);
    }

    fn ask_governor(&mut self, after_io: bool) {
        let cpu = self.rq.cpu;
        let Some(number) = self.shared.cpufreq.policy_of.get(cpu.index()).copied().flatten() else { return };
        let now = self.rq.clock;
        self.sugov_iowait_boost(number, cpu, after_io);
        if !self.shared.sugov_should_update_freq(number, now) {
            return;
        }
        self.shared
            .cpus_of_policy(number)
            .iter()
            .for_each(|of_policy| self.shared.sugov_iowait_apply(number, of_policy, now));
        let next = self.shared.sugov_next_freq(number, cpu);
        let (calls, seen) = &mut self.shared.cpufreq.idle_calls[cpu.index()];
        *seen = *calls;
        self.shared.cpufreq.looked_at += next.looked_at;
        let policy = &mut self.shared.cpufreq.policies[number];
        policy.raw = next.raw;
        if next.khz == policy.next {
            return;
        }
        policy.next = next.khz;
        policy.last_update = Some(now);
        if policy.domain.fast_switch || !std::mem::replace(&mut policy.work_in_progress, true) {
            self.shared.cpufreq.requests.push(FrequencyRequest { policy: number, khz: next.khz });
        }
    }
}
