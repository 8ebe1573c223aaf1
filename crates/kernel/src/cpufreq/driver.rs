//! What a driver tells of clocks, and what it is asked to set them to.
//!
//! Must not know: how a frequency is chosen.

use fairlab_event::Cpu;

use crate::cpufreq::policy::{FrequencyRequest, IoBoost, SugovPolicy, WHOLE};
use crate::cpufreq::{Cpufreq, FrequencyDomain};
use crate::cpumask::CpuMask;
use crate::scheduler::Scheduler;
use crate::task::TaskId;

impl Scheduler {
    /// Puts CPUs under governors; those in no domain run at full speed for ever. A clock begins at its lowest frequency.
    pub fn set_frequency_domains(&mut self, domains: Vec<FrequencyDomain>) {
        let mut policy_of = vec![None; self.shared.topology.nr_cpus()];
        for (number, domain) in domains.iter().enumerate() {
            for cpu in domain.cpus.and(self.shared.topology.online()).iter() {
                policy_of[cpu.index()] = Some(number);
            }
        }
        let policy = |domain: FrequencyDomain| {
            let lowest = domain.frequencies.first().copied().unwrap_or(1);
            SugovPolicy {
                domain,
                current: lowest,
                next: lowest,
                raw: 0,
                last_update: None,
                work_in_progress: false,
            }
        };
        self.shared.cpufreq = Cpufreq {
            policies: domains.into_iter().map(policy).collect(),
            policy_of,
            boosts: vec![IoBoost::default(); self.shared.topology.nr_cpus()],
            idle_calls: vec![(0, 0); self.shared.topology.nr_cpus()],
            ..Cpufreq::default()
        };
    }

    /// The frequency of `cpu` in force, as a part of 1024 of its highest, whether the scheduler is told of it or not.
    pub fn frequency(&self, cpu: Cpu) -> u64 {
        self.shared.policy_of(cpu).map_or(WHOLE, SugovPolicy::part_of_max)
    }

    /// Whether a governor sets the clock of `cpu`.
    pub(crate) fn has_governor(&self, cpu: Cpu) -> bool {
        self.shared.policy_of(cpu).is_some()
    }

    /// The policies whose clocks threads set, by number.
    pub fn policies_with_threads(&self) -> Vec<usize> {
        let with_thread = |&number: &usize| !self.shared.cpufreq.policies[number].domain.fast_switch;
        (0..self.shared.cpufreq.policies.len()).filter(with_thread).collect()
    }

    /// Moves the frequencies asked for since the last call to `into`. Returns how many CPUs governors have looked at.
    pub fn take_frequency_requests(&mut self, into: &mut Vec<FrequencyRequest>) -> u32 {
        into.append(&mut self.shared.cpufreq.requests);
        std::mem::take(&mut self.shared.cpufreq.looked_at)
    }

    /// The clock of a policy runs at `khz` from now on. What its CPUs have done since their queues' clocks were last set counts
    /// as done at the new frequency.
    ///
    /// Kernel: `arch_set_freq_scale()`, drivers/base/arch_topology.c.
    pub fn set_frequency(&mut self, policy: usize, khz: u32) {
        self.shared.cpufreq.policies[policy].current = khz;
    }

    /// The thread of a policy begins to set the frequency that was asked for last, kHz. For what is asked for from now on it
    /// must be woken again.
    ///
    /// Kernel: `sugov_work()` up to the driver.
    pub fn sugov_work(&mut self, policy: usize) -> u32 {
        let policy = &mut self.shared.cpufreq.policies[policy];
        policy.work_in_progress = false;
        policy.next
    }

    /// Leaves the clock that these CPUs share only some of its frequencies.
    ///
    /// Kernel: `cpufreq_table_set_inefficient()`, drivers/cpufreq/cpufreq.c; `CPUFREQ_RELATION_E`.
    pub(crate) fn leave_frequencies(&mut self, cpus: &CpuMask, is_left: impl Fn(u32) -> bool) {
        let online = *self.shared.topology.online();
        for policy in
            self.shared.cpufreq.policies.iter_mut().filter(|policy| policy.domain.cpus.and(&online) == *cpus)
        {
            policy.domain.frequencies.retain(|&khz| is_left(khz));
        }
    }

    /// The lowest frequency that a CPU's clock can be set to, kHz.
    #[cfg(test)]
    pub(crate) fn lowest_frequency(&self, cpu: Cpu) -> u32 {
        let policy = self.shared.cpufreq.policy_of[cpu.index()].expect("a clock");
        self.shared.cpufreq.policies[policy].domain.resolve(0)
    }

    /// A task sleeps until a device is done, and comes back from that when it next runs (`io_schedule()`).
    pub fn set_in_iowait(&mut self, task: TaskId) {
        self.shared.tasks[task.index()].in_iowait = true;
    }
}
