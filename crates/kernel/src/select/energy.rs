//! Wakeups on machines with an energy model: the CPU on which the task takes the least energy.
//!
//! Idle CPUs are not looked for here; how much of each CPU is used says enough.
//!
//! Must not know: where powers come from.

#[cfg(test)]
mod reference;

use fairlab_event::Cpu;

use super::rules::{EnergyAware, EnergyCandidates, EnergyGain, EnergyUtil};
use super::{Wakee, decide};
use crate::cpufreq::UtilFor;
use crate::cpumask::CpuMask;
use crate::decision::{CpuDecision, SelectReason};
use crate::domain::fits_capacity;
use crate::energy::{CostedDomain, EnergyModel};
use crate::generation::Feature;
use crate::pelt::{CpuUtil, SchedAvg, TaskUtil};
use crate::scheduler::Scheduler;

/// A wakeup by energy, under way.
struct EnergyWakeup<'s> {
    scheduler: &'s Scheduler,
    wakee: Wakee,
    /// The task's averages, aged to now.
    avg: SchedAvg,
    /// CPUs among which it is placed.
    span: CpuMask,
    /// CPUs looked at.
    scanned: u32,
}

/// Who of a domain could take the task.
#[derive(Clone, Copy, Debug, Default)]
struct EnergyCandidateCpus {
    /// The room that the previous CPU has, if it is here and the task fits.
    prev: Option<u64>,
    /// The roomiest that comes into question, with its room.
    roomiest: Option<(u64, Cpu)>,
}

impl Scheduler {
    /// The CPU on which the task takes the least energy; `None` if it is not placed by energy. Pure.
    ///
    /// Kernel: `find_energy_efficient_cpu()`, kernel/sched/fair.c. Variants: `WholeMachine` to v5.3, `ByDomain` from v5.4
    /// (eb92692b2544); who is weighed, how much must be saved and how use is counted are rules of their own.
    /// Departs: no utilization clamps; interrupts and heat take nothing.
    #[inline]
    pub(super) fn find_energy_efficient_cpu(&self, wakee: Wakee) -> Option<CpuDecision> {
        let model = self.energy.as_deref()?;
        self.least_energy(model, wakee)
    }

    fn least_energy(&self, model: &EnergyModel, wakee: Wakee) -> Option<CpuDecision> {
        let rule = self.shared.generation.select.energy_aware;
        if rule == EnergyAware::No || self.domains.root().overutilized {
            return None;
        }
        let mut domain = self.domains.of_cpu(wakee.here).sd_asym_cpucapacity;
        while let Some(id) = domain.filter(|&id| !self.domains.domain(id).span.contains(wakee.prev)) {
            domain = self.domains.domain(id).parent;
        }
        let span = self.domains.domain(domain?).span;
        let avg = self.synced_avg(wakee.task);
        if self.shared.generation.pelt.task_util_est(&avg) == 0 {
            return Some(decide(wakee.prev, SelectReason::PrevEnergy, 0));
        }
        let mut placing = EnergyWakeup { scheduler: self, wakee, avg, span, scanned: 0 };
        let cpu = match rule {
            EnergyAware::WholeMachine => placing.by_machine(model),
            EnergyAware::ByDomain | EnergyAware::No => placing.by_domain(model),
        };
        let reason = if cpu == wakee.prev { SelectReason::PrevEnergy } else { SelectReason::LeastEnergy };
        Some(decide(cpu, reason, placing.scanned))
    }
}

impl EnergyWakeup<'_> {
    /// To v5.3: by what the whole machine would take.
    fn by_machine(&mut self, model: &EnergyModel) -> Cpu {
        let prev = self.wakee.prev;
        let (mut of_prev, mut best) = (None, (u64::MAX, prev));
        for domain in &model.domains {
            let candidates = self.candidates(domain);
            if candidates.prev.is_some() {
                let energy = self.energy_of_all(model, prev);
                of_prev = Some(energy);
                best.0 = best.0.min(energy);
            }
            if let Some((_, cpu)) = candidates.roomiest {
                let energy = self.energy_of_all(model, cpu);
                if energy < best.0 {
                    best = (energy, cpu);
                }
            }
        }
        match of_prev {
            Some(energy) if energy - best.0 <= energy >> 4 => prev,
            _ => best.1,
        }
    }

    /// From v5.4: by what each candidate adds to its domain.
    fn by_domain(&mut self, model: &EnergyModel) -> Cpu {
        let rules = &self.scheduler.shared.generation.select;
        let (who, gain) = (rules.energy_candidates, rules.energy_gain);
        let prev = self.wakee.prev;
        let counts_all = matches!(who, EnergyCandidates::OtherThanPrev | EnergyCandidates::AnyCpu);
        let (mut of_prev, mut best, mut total) = (None, (u64::MAX, prev), 0u64);
        for domain in &model.domains {
            let candidates = self.candidates(domain);
            if candidates.prev.is_none() && candidates.roomiest.is_none() && !counts_all {
                continue;
            }
            let base = self.energy(domain, None);
            total = total.wrapping_add(base);
            let roomiest = candidates.roomiest.map(|(_, cpu)| cpu).filter(|&cpu| cpu != prev);
            for cpu in candidates.prev.map(|_| prev).into_iter().chain(roomiest) {
                let energy = self.energy(domain, Some(cpu));
                if energy < base && gain != EnergyGain::Sixteenth {
                    return prev;
                }
                let added = energy.wrapping_sub(base);
                if cpu == prev {
                    of_prev = Some(added);
                    best.0 = best.0.min(added);
                } else if added < best.0 {
                    best = (added, cpu);
                }
            }
        }
        let Some(added) = of_prev else { return best.1 };
        let saved = added.wrapping_sub(best.0);
        let least = if gain == EnergyGain::Any { 0 } else { added.wrapping_add(total) >> 4 };
        if saved > least { best.1 } else { prev }
    }

    /// The CPUs of a domain that are weighed.
    fn candidates(&mut self, domain: &CostedDomain) -> EnergyCandidateCpus {
        let who = self.scheduler.shared.generation.select.energy_candidates;
        let mut found = EnergyCandidateCpus::default();
        let allowed = self.scheduler.shared.tasks[self.wakee.task.index()].allowed.and(&self.span);
        for cpu in domain.cpus.iter().filter(|&cpu| allowed.contains(cpu)) {
            self.scanned += 1;
            let util = self.util(cpu, Some(cpu), false);
            let capacity = self.scheduler.capacity_of(cpu);
            if !fits_capacity(util, capacity) {
                continue;
            }
            let room = capacity - util;
            if cpu == self.wakee.prev {
                found.prev = Some(room);
                if who != EnergyCandidates::AnyCpu {
                    continue;
                }
            }
            if found.roomiest.is_none_or(|(most, _)| room > most) {
                found.roomiest = Some((room, cpu));
            }
        }
        if who == EnergyCandidates::RoomierThanPrev {
            found.roomiest =
                found.roomiest.filter(|&(room, _)| found.prev.is_none_or(|of_prev| room > of_prev));
        }
        found
    }

    /// How much of `cpu` is used when the task runs on `dest`, or nowhere. Waiting counts where a frequency is chosen.
    ///
    /// Kernel: `cpu_util_next()`, from v6.5 `cpu_util()`, kernel/sched/fair.c.
    fn util(&self, cpu: Cpu, dest: Option<Cpu>, boost: bool) -> u64 {
        let scheduler = self.scheduler;
        let task = TaskUtil {
            avg: self.avg,
            is_here: cpu == self.wakee.prev,
            is_queued: false,
            comes_here: dest == Some(cpu),
        };
        scheduler.shared.generation.pelt.cpu_util(CpuUtil {
            queue: &scheduler.cfs(scheduler.rqs[cpu.index()].cfs).tracked.avg,
            task: Some(task),
            capacity: scheduler.capacity_orig_of(cpu),
            boost,
            util_est_enabled: scheduler.has(Feature::UtilEst),
        })
    }

    fn energy_of_all(&mut self, model: &EnergyModel, dest: Cpu) -> u64 {
        model.domains.iter().map(|domain| self.energy(domain, Some(dest))).sum()
    }

    /// What a domain takes when the task runs on `dest`, or nowhere.
    ///
    /// Kernel: `compute_energy()`, kernel/sched/fair.c. Variants: see `EnergyUtil`.
    fn energy(&mut self, domain: &CostedDomain, dest: Option<Cpu>) -> u64 {
        let scheduler = self.scheduler;
        let rule = scheduler.shared.generation.select.energy_util;
        let estimate = scheduler.shared.generation.pelt.task_util_est(&self.avg);
        let (mut most, mut sum) = (0, 0);
        for cpu in domain.cpus.iter() {
            self.scanned += 1;
            let purpose = if rule == EnergyUtil::Alike { UtilFor::Time } else { UtilFor::Frequency };
            most = most.max(scheduler.shared.effective_cpu_util(cpu, self.util(cpu, dest, true), purpose));
            let fair = if rule == EnergyUtil::TaskApart && dest == Some(cpu) {
                self.util(cpu, None, false) + estimate
            } else {
                self.util(cpu, dest, false)
            };
            sum += scheduler.shared.effective_cpu_util(cpu, fair, UtilFor::Time);
        }
        let headroom = scheduler.shared.generation.frequency.headroom;
        domain.energy(scheduler.shared.generation.select.energy_cost, headroom, most, sum)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::task::{Policy, TaskId};
    use crate::testbed::SchedulerTestbed;

    /// A task that used `util` slept on `prev`; the CPUs are used to so much by others that sleep.
    fn asleep(kernel: &str, prev: u32, util: u64, used: [u64; 6]) -> (SchedulerTestbed, TaskId) {
        let mut bed = SchedulerTestbed::with_energy_model(kernel);
        let sleeper = bed.spawn(0, prev);
        bed.sleep(prev);
        bed.use_task(sleeper, util);
        for (cpu, &of_others) in (0..).zip(&used) {
            bed.use_cpu(cpu, of_others + if cpu == prev { util } else { 0 });
        }
        bed.scheduler.domains.root_mut().overutilized = false;
        (bed, sleeper)
    }

    fn placed(kernel: &str, prev: u32, util: u64, used: [u64; 6]) -> (u32, SelectReason) {
        let (mut bed, sleeper) = asleep(kernel, prev, util, used);
        let decision = bed.select(sleeper, 0, false);
        (decision.cpu.0, decision.reason)
    }

    /// Where wakeups are placed on machines used by chance, all in one number.
    pub(crate) fn placements(kernel: &str) -> u64 {
        let mut random = 1u64;
        let mut below = |limit: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % limit
        };
        (0..1800).fold(0u64, |digest, _| {
            let used = [0; 6].map(|_: u64| below(3) * below(200));
            let (mut bed, sleeper) = asleep(kernel, below(6) as u32, 1 + below(300), used);
            // Some have slept for a while: their estimate is more than their average.
            let se = bed.scheduler.shared.tasks[sleeper.index()].se;
            bed.scheduler.se_mut(se).avg.util_avg /= 1 + below(3);
            if below(4) == 0 {
                bed.spawn_with(0, below(4) as u32, Policy::Fifo(1), CpuMask::ALL);
            }
            let decision = bed.select(sleeper, 4, false);
            digest.wrapping_mul(31).wrapping_add(decision.cpu.0.into())
        })
    }

    #[test]
    fn a_small_task_leaves_a_big_cpu_for_the_roomiest_small_one() {
        for kernel in ["v5.0", "v5.3", "v5.4", "v5.10", "v5.14", "v6.0", "v6.6", "v6.12", "v7.2"] {
            let found = placed(kernel, 5, 50, [20, 15, 2, 18, 30, 0]);
            assert_eq!(found, (2, SelectReason::LeastEnergy), "{kernel}");
        }
        let (_, reason) = placed("v4.20", 5, 50, [20, 15, 2, 18, 30, 0]);
        assert_eq!(reason, SelectReason::TargetIdle, "no energy before v5.0");
    }

    #[test]
    fn a_task_that_fits_no_small_cpu_goes_to_a_big_one() {
        for kernel in ["v5.0", "v5.4", "v5.14", "v6.12"] {
            assert_eq!(placed(kernel, 1, 450, [0, 0, 0, 0, 300, 0]).0, 5, "{kernel}");
        }
    }

    /// Whether a CPU is idle is not asked: the previous one is taken though it is busy.
    #[test]
    fn a_task_goes_back_beside_another_one_while_little_is_used() {
        for kernel in ["v5.4", "v5.13"] {
            let (mut bed, sleeper) = asleep(kernel, 1, 40, [0; 6]);
            let other = bed.spawn(0, 1);
            bed.use_task(other, 10);
            bed.use_cpu(1, 50);
            bed.scheduler.domains.root_mut().overutilized = false;
            let decision = bed.select(sleeper, 0, false);
            assert_eq!((decision.cpu.0, decision.reason), (1, SelectReason::PrevEnergy), "{kernel}");
        }
    }

    #[test]
    fn a_sixteenth_had_to_be_saved_to_v5_19() {
        // 6 of 146 mW: 50 units cost 0.12 mW each on a small CPU, 0.23 on a big one.
        let used = [200, 150, 20, 180, 300, 0];
        assert_eq!(
            ["v5.0", "v5.4", "v5.19", "v6.0"].map(|kernel| placed(kernel, 5, 50, used).0),
            [5, 5, 5, 2]
        );
    }

    #[test]
    fn an_overutilized_cpu_ends_it_until_balancing_sees_none() {
        let (mut bed, sleeper) = asleep("v5.4", 5, 50, [0; 6]);
        bed.spawn(0, 3);
        bed.use_cpu(3, 500);
        bed.at(3);
        bed.scheduler.update_overutilized_status(Cpu(3));
        assert!(bed.scheduler.domains.root().overutilized);
        let decision = bed.select(sleeper, 0, false);
        assert!(!matches!(decision.reason, SelectReason::LeastEnergy | SelectReason::PrevEnergy));
        let balance = |bed: &mut SchedulerTestbed| {
            bed.at(0);
            let decision = bed.scheduler.decide_balance(Cpu(0), 0, crate::schedstat::CpuIdleType::NewlyIdle);
            bed.scheduler.apply_balance(&decision);
            bed.scheduler.domains.root().overutilized
        };
        assert!(balance(&mut bed));
        bed.use_cpu(3, 100);
        assert!(!balance(&mut bed));
    }
}
