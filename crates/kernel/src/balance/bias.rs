//! The bias of LB_BIAS towards leaving tasks where they are, and what it made of a try (to v5.2).
//!
//! Must not know: how loads of the past are kept.

use fairlab_event::Cpu;

use crate::balance::decided::{BalanceDecision, BiasEffect};
use crate::generation::Feature;
use crate::pelt::{source_load, target_load};
use crate::schedstat::CpuIdleType;
use crate::scheduler::Scheduler;

impl Scheduler {
    /// Which of the loads of the past a try goes by; 0 is none.
    pub(super) fn load_index(&self, cpu: Cpu, level: usize, idle: CpuIdleType) -> usize {
        let indexes = self.domain(cpu, level).load_index;
        match idle {
            CpuIdleType::NotIdle => indexes.busy as usize,
            CpuIdleType::Idle => indexes.idle as usize,
            CpuIdleType::NewlyIdle => 0,
        }
    }

    /// The load of some CPUs together, each with the bias.
    pub(super) fn biased_load(&self, cpus: impl Iterator<Item = Cpu>, index: usize, is_local: bool) -> u64 {
        let biased = if is_local { target_load } else { source_load };
        let of_cpu = |cpu: Cpu| {
            let history = &self.balance.cpus[cpu.index()].cpu_load;
            biased(history, self.balanced_load(cpu), index, true)
        };
        cpus.map(of_cpu).sum()
    }

    /// What the bias made of a decision that is not applied yet.
    pub(super) fn bias_effect(&self, decision: &BalanceDecision) -> Option<BiasEffect> {
        let BalanceDecision { cpu, level, idle, .. } = *decision;
        if !self.has(Feature::LbBias) || self.load_index(cpu, level, idle) == 0 {
            return None;
        }
        let other = self.decide_balance_by(cpu, level, idle, false);
        Some(BiasEffect { moved: decision.moved(), unbiased: other.moved(), differs: other != *decision })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::{MS, SchedulerTestbed};

    /// One hog on CPU 0 for long, and for so many ticks four on CPU 1.
    fn after(kernel: &str, ticks: u32) -> Option<BiasEffect> {
        let mut bed = SchedulerTestbed::new(kernel, 2, 1);
        bed.spawn(0, 0);
        let pass = |bed: &mut SchedulerTestbed, ticks| {
            for _ in 0..ticks {
                bed.pass(MS);
                for cpu in 0..2 {
                    bed.tick(cpu);
                    bed.scheduler.trigger_load_balance(Cpu(cpu));
                    bed.return_to_user(cpu);
                }
            }
        };
        pass(&mut bed, 100);
        for _ in 0..4 {
            bed.spawn(0, 1);
        }
        pass(&mut bed, ticks);
        bed.at(0);
        let decision = bed.scheduler.decide_balance(Cpu(0), 0, CpuIdleType::NotIdle);
        bed.scheduler.bias_effect(&decision)
    }

    #[test]
    fn what_has_only_just_come_is_left_where_it_is_until_the_past_has_caught_up() {
        let early = after("v4.18", 0).expect("an effect");
        assert_eq!((early.moved, early.unbiased, early.suppressed(), early.differs), (0, 1, 1, true));
        let late = after("v4.18", 100).expect("an effect");
        assert_eq!((late.moved, late.suppressed()), (1, 0));
        assert_eq!(after("v4.18+NO_LB_BIAS", 0), None, "there is no bias");
    }
}
