//! How long a CPU waits between two balances of a domain.
//!
//! Must not know: what was found.

use fairlab_event::Cpu;

use crate::balance::attempt::{BackOffFacts, PushFacts};
use crate::balance::rules::{BackOff, BusyInterval, IdlePolicyBusy, PushInterval};
use crate::core::Scheduler;
use crate::schedstat::CpuIdleType;

/// The longest interval of a domain whose tasks are all pinned, ms (`MAX_PINNED_INTERVAL`).
const MAX_PINNED_INTERVAL: u32 = 512;

impl Scheduler {
    /// Ticks between two balances of a domain.
    ///
    /// Kernel: `get_sd_balance_interval()`, kernel/sched/fair.c; a tick less for busy CPUs from v5.10 (e4d32e4d5444).
    pub(super) fn get_sd_balance_interval(&self, cpu: Cpu, level: usize, busy: bool) -> u64 {
        let mut interval = u64::from(self.domain_state(cpu, level).balance_interval);
        if busy {
            interval *= u64::from(self.domain(cpu, level).busy_factor);
        }
        let mut ticks = self.msecs_to_jiffies(interval);
        if busy && self.generation.balance.busy_interval == BusyInterval::LessATick {
            ticks = ticks.saturating_sub(1);
        }
        ticks.clamp(1, self.max_load_balance_interval())
    }

    /// A tenth of a second for each CPU, in ticks (`update_max_interval()`).
    fn max_load_balance_interval(&self) -> u64 {
        (self.ticks_per_second() * self.topology.nr_cpus() as u64 / 10).max(1)
    }

    /// Whether a CPU waits as long as a busy one.
    pub(super) fn balances_as_busy(&self, cpu: Cpu, idle: CpuIdleType) -> bool {
        let idle_policy = self.generation.balance.idle_policy_busy == IdlePolicyBusy::Idle;
        idle != CpuIdleType::Idle && !(idle_policy && self.sched_idle_cpu(cpu))
    }

    /// A domain was found balanced, or all was pinned: the interval doubles.
    pub(super) fn back_off(&mut self, cpu: Cpu, level: usize, idle: CpuIdleType, facts: BackOffFacts) {
        let newidle = idle == CpuIdleType::NewlyIdle;
        let stays = match self.generation.balance.back_off {
            BackOff::Always => false,
            BackOff::NotNewidle => newidle,
            BackOff::NotNewidleNorMisfit => newidle || facts.misfit,
        };
        let max_interval = self.domain(cpu, level).max_interval;
        let state = self.domain_state_mut(cpu, level);
        let interval = state.balance_interval;
        if !stays && ((facts.all_pinned && interval < MAX_PINNED_INTERVAL) || interval < max_interval) {
            state.balance_interval *= 2;
        }
    }

    /// Something was moved, or tried to be: the interval is reset, or doubles after a push.
    pub(super) fn after_trying(&mut self, cpu: Cpu, level: usize, push: PushFacts) {
        let rule = self.generation.balance.push_interval;
        let resets = match rule {
            PushInterval::BacksOff => !push.begun,
            PushInterval::BacksOffUnlessVoluntary => !push.begun || push.voluntary,
            PushInterval::ResetIfNeeded => !push.begun || push.needed,
        };
        let (least, most) = (self.domain(cpu, level).min_interval, self.domain(cpu, level).max_interval);
        let state = self.domain_state_mut(cpu, level);
        if resets {
            state.balance_interval = least;
        } else if rule != PushInterval::ResetIfNeeded && state.balance_interval < most {
            state.balance_interval *= 2;
        }
    }
}
