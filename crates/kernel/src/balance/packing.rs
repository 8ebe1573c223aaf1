//! Packing of tasks on preferred CPUs (`SD_ASYM_PACKING`): those that boost highest, and big ones where capacities do not
//! say so.
//!
//! Must not know: why a CPU is preferred.

use fairlab_event::Cpu;

use crate::balance::decided::LbEnv;
use crate::balance::imbalance::{Imbalance, MigrationType};
use crate::balance::rules::{Comparison, Packing, PackingPush};
use crate::balance::statistics::{SdLbStats, SgLbStats};
use crate::cpumask::CpuMask;
use crate::domain::rules::SiblingPriority;
use crate::domain::{SchedDomain, SdFlags};
use crate::schedstat::CpuIdleType;
use crate::scheduler::Scheduler;

impl Scheduler {
    /// How preferred a CPU is: the higher the better.
    ///
    /// Kernel: `arch_asym_cpu_priority()`, `sched_set_itmt_core_prio()`, arch/x86/kernel/itmt.c. Variants: the second thread
    /// of a core comes behind cores of less priority to v6.4 (183b8ec38f1e, 046a5a95c3b0).
    pub(crate) fn asym_cpu_priority(&self, cpu: Cpu) -> u32 {
        let threads = self.shared.topology.smt_mask(cpu);
        let place = 1 + threads.iter().take_while(|&thread| thread != cpu).count() as u32;
        let priority = self.shared.topology.core_priority(cpu);
        let most = if self.shared.topology.has_smt() { 2 } else { 1 };
        match self.shared.generation.domain.sibling_priority {
            SiblingPriority::Divided => priority * most / place,
            SiblingPriority::DividedBySquare => priority * most / (place * place),
            SiblingPriority::OfCore => priority,
        }
    }

    /// Whether the first CPU is preferred to the second (`sched_asym_prefer()`).
    fn asym_prefers(&self, one: Cpu, other: Cpu) -> bool {
        self.asym_cpu_priority(one) > self.asym_cpu_priority(other)
    }

    /// The priority of the most preferred CPU of a group (`sg->asym_prefer_cpu`).
    fn priority_of(&self, cpus: &CpuMask) -> u32 {
        cpus.iter().map(|cpu| self.asym_cpu_priority(cpu)).max().unwrap_or(0)
    }

    /// Whether a CPU's priority counts in `sd`: between cores, if the rest of its core is idle (`sched_use_asym_prio()`).
    fn uses_asym_priority(&self, sd: &SchedDomain, cpu: Cpu) -> bool {
        self.shared.generation.balance.packing != Packing::FromIdleCores
            || sd.flags.has(SdFlags::SHARE_CPUCAPACITY)
            || self.is_core_idle_but(cpu)
    }

    /// Notes whether a group's tasks should be moved to the preferred CPU that balances, and how preferred the group is.
    ///
    /// Kernel: the end of `update_sg_lb_stats()`, `sched_asym()` (v6.9: `sched_group_asym()`), kernel/sched/fair.c. Variants:
    /// a state of the group from v5.5 (490ba971d8b4), before see [`Scheduler::packing_allows`].
    /// Departs: of several groups as little preferred the last one is taken in all kernels.
    pub(super) fn note_packing(
        &self,
        attempt: &LbEnv,
        is_local: bool,
        sds: &SdLbStats,
        sums: &mut SgLbStats,
        span: &CpuMask,
    ) {
        let sd = self.domain(attempt.cpu, attempt.level);
        if !sd.flags.has(SdFlags::ASYM_PACKING) || attempt.idle == CpuIdleType::NotIdle {
            return;
        }
        sums.priority = self.priority_of(span);
        let has_tasks = !is_local && sums.sum_h_nr_running > 0;
        sums.asym_packing = self.shared.generation.balance.comparison == Comparison::GroupTypes
            && has_tasks
            && self.can_pack(attempt, sd, &sds.local_stat, sums);
    }

    fn can_pack(&self, attempt: &LbEnv, sd: &SchedDomain, local: &SgLbStats, sums: &SgLbStats) -> bool {
        let prefers = self.asym_cpu_priority(attempt.dest) > sums.priority;
        let busy = |group: &SgLbStats| group.group_weight - group.idle_cpus;
        match self.shared.generation.balance.packing {
            Packing::ByPriority => prefers,
            Packing::FromIdleCores => {
                self.uses_asym_priority(sd, attempt.dest) && (!sums.is_smt || busy(sums) == 1) && prefers
            }
            Packing::BySiblings => match (local.is_smt, sums.is_smt) {
                (false, false) => prefers,
                (false, true) => busy(sums) >= 2 || prefers,
                (true, true) => busy(sums) == busy(local) + 1 && prefers,
                (true, false) => local.sum_nr_running == 0 && prefers,
            },
        }
    }

    /// To v5.4: whether a group that is the busiest of its state may be taken from, where an idle CPU looks for tasks of
    /// less preferred ones.
    ///
    /// Kernel: the end of `update_sd_pick_busiest()`, kernel/sched/fair.c.
    pub(super) fn packing_allows(&self, attempt: &LbEnv, sds: &SdLbStats, sums: &SgLbStats) -> bool {
        let sd = self.domain(attempt.cpu, attempt.level);
        if !sd.flags.has(SdFlags::ASYM_PACKING)
            || attempt.idle == CpuIdleType::NotIdle
            || self.shared.generation.balance.comparison == Comparison::GroupTypes
            || sums.group_type != sds.busiest_stat.group_type
        {
            return true;
        }
        let prefers = self.asym_cpu_priority(attempt.dest) > sums.priority;
        let less = sds.busiest.is_none() || sds.busiest_stat.priority > sums.priority;
        sums.sum_nr_running > 0 && prefers && less
    }

    /// To v5.4: the load of the busiest group is to be moved, as the CPU that balances is preferred to it.
    ///
    /// Kernel: `check_asym_packing()`, kernel/sched/fair.c.
    pub(super) fn check_asym_packing(&self, attempt: &LbEnv, sds: &SdLbStats) -> Option<Imbalance> {
        let sd = self.domain(attempt.cpu, attempt.level);
        sds.busiest?;
        let packs = sd.flags.has(SdFlags::ASYM_PACKING)
            && attempt.idle != CpuIdleType::NotIdle
            && self.shared.generation.balance.comparison != Comparison::GroupTypes
            && sds.busiest_stat.priority <= self.asym_cpu_priority(attempt.dest);
        let amount = sds.busiest_stat.group_load as i64;
        packs.then_some(Imbalance { migration: MigrationType::Load, amount })
    }

    /// Whether a running task is pushed to a preferred CPU.
    ///
    /// Kernel: `asym_active_balance()`, kernel/sched/fair.c. Variants: only when going idle to v5.0; from v6.5 also where a
    /// busy core is relieved (18ad34532755).
    pub(super) fn asym_active_balance(&self, attempt: &LbEnv, source: Cpu) -> bool {
        let sd = self.domain(attempt.cpu, attempt.level);
        let idle = match self.shared.generation.balance.packing_push {
            PackingPush::NewlyIdle => attempt.idle == CpuIdleType::NewlyIdle,
            PackingPush::Idle => attempt.idle != CpuIdleType::NotIdle,
        };
        sd.flags.has(SdFlags::ASYM_PACKING)
            && idle
            && self.uses_asym_priority(sd, attempt.dest)
            && (self.asym_prefers(attempt.dest, source) || !self.uses_asym_priority(sd, source))
    }

    /// Whether a single task stays on a CPU that is preferred to this one (`find_busiest_queue()`, from v5.16).
    pub(super) fn spares_preferred_cpu(&self, attempt: &LbEnv, cpu: Cpu) -> bool {
        let sd = self.domain(attempt.cpu, attempt.level);
        sd.flags.has(SdFlags::ASYM_PACKING)
            && self.shared.generation.balance.packing != Packing::ByPriority
            && self.uses_asym_priority(sd, cpu)
            && self.asym_prefers(cpu, attempt.dest)
    }

    /// Whether a CPU that is preferred to this busy one idles without a tick (`nohz_balancer_kick()`).
    pub(super) fn preferred_cpu_idles(&self, cpu: Cpu) -> bool {
        let Some(domain) = self.domains.of_cpu(cpu).sd_asym_packing else { return false };
        let sd = self.domains.domain(domain);
        let idle = sd.span.and(&self.balance.nohz.idle_cpus);
        idle.iter().any(|other| self.uses_asym_priority(sd, other) && self.asym_prefers(other, cpu))
    }
}

#[cfg(test)]
mod table;

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::balance::decided::BalanceDecision;
    use crate::testbed::{MS, SchedulerTestbed};
    use crate::topology::{CpuPlace, Topology};

    /// Two preferred cores of two threads (CPUs 0-3) and four others (4-7) under one cache; one task on each of `busy`.
    pub(super) fn hybrid(kernel: &str, busy: &[u32]) -> SchedulerTestbed {
        let place = |core| CpuPlace { core, llc: 0, node: 0 };
        let topology = Topology::new([0, 0, 1, 1, 2, 3, 4, 5].map(place).to_vec()).expect("a machine");
        let topology = topology.with_priorities(&[50, 50, 50, 50, 20, 20, 20, 20]).expect("priorities");
        let mut bed = SchedulerTestbed::on(kernel, topology);
        for &cpu in busy {
            bed.spawn(0, cpu);
        }
        bed.pass(20 * MS);
        bed
    }

    /// What an idle CPU decides between cores.
    fn between_cores(bed: &mut SchedulerTestbed, cpu: u32) -> BalanceDecision {
        bed.at(cpu);
        let level = bed.scheduler.domains().domains_of(Cpu(cpu)).len() - 1;
        bed.scheduler.decide_balance(Cpu(cpu), level, CpuIdleType::NewlyIdle)
    }

    fn source(kernel: &str, busy: &[u32], cpu: u32) -> (Option<Cpu>, bool) {
        let decision = between_cores(&mut hybrid(kernel, busy), cpu);
        (decision.source, decision.push)
    }

    /// What all idle CPUs of all machines with up to four busy ones decide, in one number.
    pub(crate) fn all_decisions(kernel: &str) -> u64 {
        let mut digest = 0u64;
        for mask in 1u32..256 {
            let busy = (0..8).filter(|cpu| mask & 1 << cpu != 0).collect::<Vec<u32>>();
            if busy.len() > 4 {
                continue;
            }
            let mut bed = hybrid(kernel, &busy);
            for cpu in (0..8).filter(|cpu| !busy.contains(cpu)) {
                for idle in [CpuIdleType::NewlyIdle, CpuIdleType::Idle] {
                    bed.at(cpu);
                    for level in 0..bed.scheduler.domains().domains_of(Cpu(cpu)).len() {
                        let decision = bed.scheduler.decide_balance(Cpu(cpu), level, idle);
                        let source = decision.source.map_or(9, |source| source.0);
                        digest = digest
                            .wrapping_mul(31)
                            .wrapping_add(u64::from(source) * 2 + u64::from(decision.push));
                    }
                }
            }
        }
        digest
    }

    #[test]
    fn a_preferred_core_that_goes_idle_takes_a_running_task_from_another() {
        for kernel in ["v5.4", "v5.10", "v5.16", "v6.5", "v6.12", "v7.2"] {
            assert_eq!(source(kernel, &[5], 0), (Some(Cpu(5)), true), "{kernel}");
            assert_eq!(source(kernel, &[0], 5).0, None, "{kernel}: never the other way round");
        }
    }

    #[test]
    fn a_second_thread_comes_behind_its_core_to_v6_4() {
        let priority =
            |kernel: &str| [0, 1, 4].map(|cpu| hybrid(kernel, &[]).scheduler.asym_cpu_priority(Cpu(cpu)));
        assert_eq!(priority("v5.15"), [100, 50, 40]);
        assert_eq!(priority("v5.16"), [100, 25, 40]);
        assert_eq!(priority("v6.5"), [50, 50, 20]);
        // The first thread of core 0 is busy.
        let second = |kernel| source(kernel, &[0, 5], 1).0;
        assert_eq!(["v5.15", "v5.16"].map(second), [Some(Cpu(5)), None]);
        assert_eq!(second("v6.6"), None, "its core is not idle");
    }

    #[test]
    fn a_busy_cpu_wakes_idle_ones_that_are_preferred() {
        let mut bed = hybrid("v6.6", &[5]);
        bed.scheduler.nohz_balance_enter_idle(Cpu(4));
        assert!(!bed.scheduler.preferred_cpu_idles(Cpu(5)));
        bed.scheduler.nohz_balance_enter_idle(Cpu(2));
        assert!(bed.scheduler.preferred_cpu_idles(Cpu(5)));
    }
}
