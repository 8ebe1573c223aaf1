//! How long a CPU waits between two balances of a domain.
//!
//! Must not know: what was found.

use fairlab_event::Cpu;

use crate::balance::decided::{BackOffFacts, PushFacts};
use crate::balance::rules::{BackOff, BusyInterval, IdlePolicyBusy, PushInterval};
use crate::schedstat::CpuIdleType;
use crate::scheduler::Scheduler;

/// The longest interval of a domain whose tasks are all pinned, ms (`MAX_PINNED_INTERVAL`).
pub const MAX_PINNED_INTERVAL: u32 = 512;

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
        if busy && self.shared.generation.balance.busy_interval == BusyInterval::LessATick {
            ticks = ticks.saturating_sub(1);
        }
        ticks.clamp(1, self.max_load_balance_interval())
    }

    /// A tenth of a second for each CPU, in ticks (`update_max_interval()`).
    pub(super) fn max_load_balance_interval(&self) -> u64 {
        (self.ticks_per_second() * self.shared.topology.nr_cpus() as u64 / 10).max(1)
    }

    /// Whether a CPU waits as long as a busy one.
    pub(super) fn balances_as_busy(&self, cpu: Cpu, idle: CpuIdleType) -> bool {
        let idle_policy = self.shared.generation.balance.idle_policy_busy == IdlePolicyBusy::Idle;
        idle != CpuIdleType::Idle && !(idle_policy && self.sched_idle_cpu(cpu))
    }

    /// A domain was found balanced, or all was pinned: the interval doubles.
    pub(super) fn back_off(&mut self, cpu: Cpu, level: usize, idle: CpuIdleType, facts: BackOffFacts) {
        let newidle = idle == CpuIdleType::NewlyIdle;
        let stays = match self.shared.generation.balance.back_off {
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
        let rule = self.shared.generation.balance.push_interval;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpumask::CpuMask;
    use crate::task::Policy;
    use crate::testbed::SchedulerTestbed;

    /// Four CPUs under one cache: their interval is 4 ms and may grow to 8.
    fn four(kernel: &str, interval: u32) -> SchedulerTestbed {
        let mut bed = SchedulerTestbed::new(kernel, 4, 1);
        assert_eq!(bed.scheduler.domain_state(Cpu(0), 0).balance_interval, 4);
        bed.scheduler.domain_state_mut(Cpu(0), 0).balance_interval = interval;
        bed
    }

    fn interval(bed: &SchedulerTestbed) -> u32 {
        bed.scheduler.domain_state(Cpu(0), 0).balance_interval
    }

    #[test]
    fn a_busy_cpu_waits_much_longer_but_no_longer_than_a_tenth_of_a_second_for_each_cpu() {
        let ticks = |kernel, interval, busy| {
            four(kernel, interval).scheduler.get_sd_balance_interval(Cpu(0), 0, busy)
        };
        assert_eq!([false, true].map(|busy| ticks("v5.9", 4, busy)), [4, 128], "busy_factor was 32");
        assert_eq!([false, true].map(|busy| ticks("v5.10", 4, busy)), [4, 63], "16 times, less a tick");
        assert_eq!([false, true].map(|busy| ticks("v5.10", 405, busy)), [400, 400]);
        assert_eq!([false, true].map(|busy| ticks("v5.10", 0, busy)), [1, 1], "never twice in a tick");
    }

    #[test]
    fn a_cpu_with_sched_idle_tasks_only_waits_no_longer_than_an_idle_one_from_v5_6_on() {
        let busy = |kernel, policy, idle| {
            let mut bed = four(kernel, 4);
            bed.spawn_with(0, 0, policy, CpuMask::ALL);
            bed.scheduler.balances_as_busy(Cpu(0), idle)
        };
        use CpuIdleType::{Idle, NewlyIdle, NotIdle};
        assert!(busy("v5.5", Policy::Idle, NotIdle) && !busy("v5.6", Policy::Idle, NotIdle));
        assert!(busy("v5.6", Policy::Normal, NotIdle) && busy("v5.6", Policy::Normal, NewlyIdle));
        assert!(!busy("v5.6", Policy::Normal, Idle) && !busy("v5.5", Policy::Normal, Idle));
    }

    #[test]
    fn each_look_in_vain_doubles_the_interval_up_to_a_limit() {
        use CpuIdleType::{Idle, NewlyIdle, NotIdle};
        let after = |kernel, idle, (all_pinned, misfit), from| {
            let mut bed = four(kernel, from);
            bed.scheduler.back_off(Cpu(0), 0, idle, BackOffFacts { all_pinned, misfit });
            interval(&bed)
        };
        let (plain, pinned, misfit) = ((false, false), (true, false), (false, true));
        assert_eq!([4, 8].map(|from| after("v5.0", Idle, plain, from)), [8, 8]);
        assert_eq!([4, 8, 256, 512].map(|from| after("v5.0", NotIdle, pinned, from)), [8, 16, 512, 512]);
        assert_eq!(["v4.20", "v5.0", "v6.10"].map(|kernel| after(kernel, NewlyIdle, plain, 4)), [8, 4, 4]);
        assert_eq!(["v4.20", "v5.0"].map(|kernel| after(kernel, NewlyIdle, pinned, 4)), [8, 4]);
        assert_eq!(["v6.9", "v6.10"].map(|kernel| after(kernel, NotIdle, misfit, 4)), [8, 4]);
        assert_eq!(after("v6.10", NotIdle, plain, 4), 8);
    }

    #[test]
    fn what_a_push_does_to_the_interval_has_changed_twice() {
        let after = |kernel, (begun, voluntary, needed), from| {
            let mut bed = four(kernel, from);
            bed.scheduler.after_trying(Cpu(0), 0, PushFacts { begun, voluntary, needed });
            interval(&bed)
        };
        let (none, for_capacity, for_failures) =
            ((false, false, false), (true, true, true), (true, false, true));
        for kernel in ["v5.0", "v5.1", "v5.13"] {
            assert_eq!(after(kernel, none, 8), 4, "{kernel}: moving something resets it");
        }
        assert_eq!(["v5.0", "v5.1", "v5.13"].map(|kernel| after(kernel, for_capacity, 4)), [8, 4, 4]);
        assert_eq!(["v5.0", "v5.1", "v5.13"].map(|kernel| after(kernel, for_failures, 4)), [8, 8, 4]);
        assert_eq!(["v5.0", "v5.1", "v5.13"].map(|kernel| after(kernel, for_failures, 8)), [8, 8, 4]);
        assert_eq!([4, 8].map(|from| after("v5.13", (true, false, false), from)), [4, 8], "no longer needed");
    }
}
