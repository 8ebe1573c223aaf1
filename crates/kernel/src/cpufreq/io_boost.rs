//! The boost after I/O. Tasks that wait for devices have a low utilization on any CPU, so the clock is raised for them.
//!
//! Each wakeup from I/O doubles the boost, and each update without one halves it.
//!
//! Must not know: what else a frequency is chosen by.

use fairlab_event::{Cpu, Ns};

use crate::all_cpus::Shared;
use crate::cpufreq::policy::WHOLE;
use crate::cpufreq::rules::IoBoost;
use crate::rq::LockedRq;

impl Shared {
    /// A frequency is chosen: the boost counts if it was asked for since the last time, and half of it otherwise.
    ///
    /// Kernel: `sugov_iowait_apply()`, kernel/sched/cpufreq_schedutil.c.
    pub(super) fn sugov_iowait_apply(&mut self, policy: usize, cpu: Cpu, now: Ns) {
        let tick = Ns(self.sysctl.tick);
        let boosted = &mut self.cpufreq.boosts[cpu.index()];
        if boosted.boost == 0 || boosted.reset(now, tick, None) {
            return;
        }
        let least = self.least_boost(policy);
        let boosted = &mut self.cpufreq.boosts[cpu.index()];
        if !boosted.pending {
            boosted.boost /= 2;
            if boosted.boost < least {
                boosted.boost = 0;
            }
        }
        boosted.pending = false;
    }

    fn least_boost(&self, policy: usize) -> u64 {
        let domain = &self.cpufreq.policies[policy].domain;
        match self.generation.frequency.io_boost {
            IoBoost::LowestFrequency => {
                let lowest = domain.frequencies.first().copied().unwrap_or(1);
                u64::from(lowest) * WHOLE / u64::from(domain.max())
            }
            IoBoost::Eighth => WHOLE / 8,
        }
    }
}

impl LockedRq<'_> {
    /// The governor is told about a CPU: after I/O the boost doubles, once until it is applied.
    ///
    /// Kernel: `sugov_iowait_boost()`, kernel/sched/cpufreq_schedutil.c. Variants: begins with `LowestFrequency` to v5.1,
    /// `Eighth` from v5.2 (9eca544b1491).
    /// Departs: to v5.0 it is counted in kHz, which rounds otherwise.
    pub(super) fn sugov_iowait_boost(&mut self, policy: usize, cpu: Cpu, after_io: bool) {
        let (now, tick, least) = (self.rq.clock, self.shared.sysctl.tick, self.shared.least_boost(policy));
        let boosted = &mut self.shared.cpufreq.boosts[cpu.index()];
        let reset = boosted.boost > 0 && boosted.reset(now, Ns(tick), after_io.then_some(least));
        if !reset && after_io && !boosted.pending {
            boosted.pending = true;
            boosted.boost = if boosted.boost > 0 { (boosted.boost * 2).min(WHOLE) } else { least };
        }
        boosted.last_update = now;
    }
}

#[cfg(test)]
mod tests {
    use super::super::FrequencyDomain;
    use super::super::tests::{domain, hog};
    use super::*;
    use crate::core::KernelContext;
    use crate::testbed::MS;

    /// The boost of CPU 0 after what happens, in ms: a wakeup after I/O, or a look without one. Ticks come each ms.
    fn boosts(kernel: &str, happens: &[(u64, bool)]) -> Vec<u64> {
        let (mut bed, _) = hog(kernel, vec![FrequencyDomain { rate_limit: Ns(0), ..domain("0", true) }]);
        let at = |&(millisecond, after_io): &(u64, bool)| {
            bed.scheduler.set_here(Cpu(0), KernelContext::Task, Ns(millisecond * MS));
            bed.scheduler.rqs[0].clock = Ns(millisecond * MS);
            bed.scheduler.rq_lock(Cpu(0)).ask_governor(after_io);
            bed.scheduler.shared.cpufreq.boosts[0].boost
        };
        happens.iter().map(at).collect()
    }

    /// The lowest of the clock's frequencies is a quarter of its highest.
    #[test]
    fn each_wakeup_after_io_doubles_the_boost_and_each_look_without_one_halves_it() {
        let often = [10, 11, 12, 13, 14].map(|millisecond| (millisecond, true));
        assert_eq!(boosts("v5.1", &often), [256, 512, 1024, 1024, 1024]);
        assert_eq!(boosts("v5.2", &often), [128, 256, 512, 1024, 1024]);
        let twice = [(10, true), (11, true), (12, false), (13, false), (14, false)];
        assert_eq!(boosts("v5.1", &twice), [256, 512, 256, 0, 0]);
        assert_eq!(boosts("v5.2", &twice), [128, 256, 128, 0, 0]);
    }

    #[test]
    fn a_boost_is_forgotten_after_a_tick_without_news() {
        assert_eq!(boosts("v6.6", &[(10, true), (11, true), (13, true)]), [128, 256, 128]);
        assert_eq!(boosts("v6.6", &[(10, true), (11, true), (13, false)]), [128, 256, 0]);
    }
}
