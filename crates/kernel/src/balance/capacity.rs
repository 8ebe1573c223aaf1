//! What a CPU can do, and what of it is left for fair tasks.
//!
//! Must not know: groups, what is done with it.

use fairlab_event::Cpu;

use crate::balance::decided::LbEnv;
use crate::balance::rules::{BalanceLoad, LeftForFair, MisfitTask};
use crate::cfs_rq::CfsRq;
use crate::cpumask::CpuMask;
use crate::domain::{GroupExtent, SchedDomain, fits_capacity};
use crate::generation::Feature;
use crate::pelt::{CpuUtil, RunnableKind};
use crate::schedstat::CpuIdleType;
use crate::scheduler::Scheduler;
use crate::task::TaskId;

impl Scheduler {
    /// A CPU's load of fair tasks, as balancing sees it, without bias.
    ///
    /// Kernel: `cpu_load()`; to v5.4 `weighted_cpuload()`, which counts only what is runnable (b0fb1eb4f04a).
    pub(crate) fn balanced_load(&self, cpu: Cpu) -> u64 {
        self.load_of_queue(self.cfs(self.rqs[cpu.index()].cfs))
    }

    pub(super) fn load_of_queue(&self, queue: &CfsRq) -> u64 {
        let avg = &queue.tracked.avg;
        // Where runnability is no load, there is only one load to go by.
        let has_both = self.shared.generation.pelt.runnable == RunnableKind::LoadWeighted;
        match self.shared.generation.balance.load {
            BalanceLoad::Runnable if has_both => avg.runnable_avg,
            BalanceLoad::Runnable | BalanceLoad::WithBlocked => avg.load_avg,
        }
    }

    /// What other classes leave of a CPU for fair tasks now, of 1024; at least 1.
    ///
    /// Kernel: `scale_rt_capacity()`, `update_cpu_capacity()`, kernel/sched/fair.c. Variants: `ShareOfTime` to v4.18,
    /// `AveragesOfCore` at 523e979d3164, `Averages` from v4.19 (287cdaac5700).
    /// Departs: interrupts, hosts and heat take nothing; to v4.18 deadline tasks neither.
    pub(super) fn scale_rt_capacity(&self, cpu: Cpu) -> u64 {
        let (whole, rq) = (self.capacity_orig_of(cpu), &self.rqs[cpu.index()]);
        let left = match self.shared.generation.balance.left_for_fair {
            LeftForFair::ShareOfTime => (whole * rq.rt_time.left(rq.clock.0)) >> 10,
            LeftForFair::AveragesOfCore => {
                self.shared.arch_scale_cpu_capacity(cpu).saturating_sub(self.used_by_others(cpu))
            }
            LeftForFair::Averages => whole.saturating_sub(self.used_by_others(cpu)),
        };
        left.max(1)
    }

    /// How much real-time and deadline tasks use of a CPU.
    fn used_by_others(&self, cpu: Cpu) -> u64 {
        let others = &self.shared.cpus[cpu.index()];
        others.avg_rt.util_avg + others.avg_dl.util_avg
    }

    /// What the group of the CPU that balances is found to have left; `None` if that is not computed this time.
    ///
    /// Kernel: `update_sd_lb_stats()`, kernel/sched/fair.c.
    pub(super) fn extent_found(&self, attempt: &LbEnv) -> Option<GroupExtent> {
        let domain = self.domain_id(attempt.cpu, attempt.level);
        let next_update = self.domains.capacity_of_group(self.domains.local_group(domain)).next_update;
        let computes = attempt.idle != CpuIdleType::NewlyIdle || self.shared.jiffies() >= next_update;
        computes.then(|| self.domains.extent_of_group(domain, self.scale_rt_capacity(attempt.cpu)))
    }

    /// What is found to be left is remembered, and when it is to be computed again.
    pub(super) fn set_extent(&mut self, cpu: Cpu, level: usize, extent: GroupExtent) {
        let domain = self.domain_id(cpu, level);
        self.domains.set_extent(domain, extent);
        let interval = self.msecs_to_jiffies(self.domain_state(cpu, level).balance_interval.into());
        let next_update = self.shared.jiffies() + interval.clamp(1, self.max_load_balance_interval());
        let group = self.domains.local_group(domain);
        self.domains.capacity_of_group_mut(group).next_update = next_update;
    }

    /// What a CPU has left for fair tasks, as a try knows it.
    pub(super) fn capacity_in(&self, attempt: &LbEnv, cpu: Cpu) -> u64 {
        match attempt.extent {
            Some(extent) if attempt.level == 0 && cpu == attempt.cpu => extent.capacity,
            _ => self.capacity_of(cpu),
        }
    }

    /// Whether other classes have taken more of a CPU than may be out of balance in a domain (`check_cpu_capacity()`).
    pub(super) fn has_reduced_capacity(&self, cpu: Cpu, sd: &SchedDomain) -> bool {
        self.capacity_of(cpu) * u64::from(sd.imbalance_pct) < self.capacity_orig_of(cpu) * 100
    }

    /// How much of a CPU fair tasks use. `boost`: waiting for it counts, too (`cpu_util_cfs_boost()`).
    pub(crate) fn cpu_util(&self, cpu: Cpu, boost: bool) -> u64 {
        self.util_of_queue(cpu, self.cfs(self.rqs[cpu.index()].cfs), boost)
    }

    pub(super) fn util_of_queue(&self, cpu: Cpu, queue: &CfsRq, boost: bool) -> u64 {
        self.shared.generation.pelt.cpu_util(CpuUtil {
            queue: &queue.tracked.avg,
            task: None,
            capacity: self.domains.cpu_capacity_orig(cpu),
            boost,
            util_est_enabled: self.has(Feature::UtilEst),
        })
    }

    /// The load of a CPU's running task if it is too large for the CPU, else 0.
    ///
    /// Kernel: `update_misfit_status()`, kernel/sched/fair.c. Variants: `Any` to v5.11, `Unbound` from v5.12 (0ae78eec8aa6),
    /// `MayGrow` from v6.10 (22d5607400c6). Departs: computed again each time, not at ticks and switches.
    pub(crate) fn misfit_task_load(&self, cpu: Cpu) -> u64 {
        let curr = self.curr(cpu);
        let task = &self.shared.tasks[curr.index()];
        let unbound = || task.allowed.weight() != 1;
        let counts = match self.shared.generation.balance.misfit_task {
            MisfitTask::Any => true,
            MisfitTask::Unbound => unbound(),
            MisfitTask::MayGrow => {
                unbound() && self.capacity_orig_of(cpu) != self.max_allowed_capacity(&task.allowed)
            }
        };
        let is_misfit = counts && task.policy.is_fair() && !self.task_fits_capacity(curr, cpu);
        if is_misfit { self.shared.task_h_load(curr).max(1) } else { 0 }
    }

    /// What the biggest of some CPUs can do (`set_task_max_allowed_capacity()`).
    fn max_allowed_capacity(&self, allowed: &CpuMask) -> u64 {
        let online = allowed.and(self.shared.topology.online());
        online.iter().map(|cpu| self.capacity_orig_of(cpu)).max().unwrap_or(0)
    }

    /// Whether a task leaves a CPU a fifth of its capacity (`task_fits_capacity()`).
    pub(crate) fn task_fits_capacity(&self, task: TaskId, cpu: Cpu) -> bool {
        fits_capacity(self.task_util_est(task), self.capacity_of(cpu))
    }

    /// What a task is expected to use (`task_util_est()`).
    pub(crate) fn task_util_est(&self, task: TaskId) -> u64 {
        let avg = &self.entity_of(task).avg;
        if self.has(Feature::UtilEst) { self.shared.generation.pelt.task_util_est(avg) } else { avg.util_avg }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::balance::{BalanceDecision, GroupType, MigrationType};
    use crate::task::Policy;
    use crate::testbed::{MS, SchedulerTestbed};
    use crate::topology::{SmtNumbering, Topology};

    /// A real-time task has run on `cpu` for so many ms of the last second.
    fn urgent(bed: &mut SchedulerTestbed, cpu: u32, milliseconds: u64) {
        bed.pass(1_000 * MS);
        bed.spawn_with(0, cpu, Policy::Fifo(1), CpuMask::single(Cpu(cpu)));
        bed.run(cpu, milliseconds);
        bed.sleep(cpu);
    }

    /// Two CPUs under one cache. CPU 1 has one fair task, which a real-time one has left so much of the CPU, of 1024, when CPU 1
    /// last balanced.
    fn left_beside(kernel: &str, left: u64) -> SchedulerTestbed {
        let mut bed = SchedulerTestbed::new(kernel, 2, 1);
        bed.spawn(0, 1);
        bed.pass(1_000 * MS);
        bed.tick(1);
        bed.at(1);
        bed.scheduler.shared.cpus[1].avg_rt.util_avg = 1024 - left;
        let decision = bed.scheduler.decide_balance(Cpu(1), 0, CpuIdleType::NotIdle);
        bed.scheduler.apply_balance(&decision);
        bed.at(0);
        bed
    }

    fn decide(bed: &SchedulerTestbed, idle: CpuIdleType) -> BalanceDecision {
        bed.scheduler.decide_balance(Cpu(0), 0, idle)
    }

    /// The load of a large task that runs on the first of two small CPUs and may run on `allowed`, if it is one too many there;
    /// the other two are big.
    pub(crate) fn misfit_load(kernel: &str, allowed: &str) -> u64 {
        let mut bed = SchedulerTestbed::small_and_big(kernel);
        let allowed = CpuMask::parse_list(allowed).expect("a list");
        let task = bed.spawn_with(0, 0, Policy::Normal, allowed);
        assert_eq!(bed.scheduler.curr(Cpu(0)), task);
        bed.use_task(task, 900);
        bed.scheduler.misfit_task_load(Cpu(0))
    }

    #[test]
    fn a_task_is_too_large_for_its_cpu_only_if_it_may_go_elsewhere() {
        for (kernel, misfits) in [
            ("v5.11", [true, true, true, true]),
            ("v5.12", [false, true, true, true]),
            ("v6.9", [false, true, true, true]),
            ("v6.10", [false, false, true, true]),
            ("debian-5.10", [false, true, true, true]),
        ] {
            let found = ["0", "0-1", "0,3", "0-3"].map(|allowed| misfit_load(kernel, allowed) > 0);
            assert_eq!(found, misfits, "{kernel}");
        }
    }

    #[test]
    fn real_time_tasks_leave_less_of_a_cpu() {
        for kernel in ["v4.18", "v4.19", "v7.2"] {
            let mut bed = SchedulerTestbed::new(kernel, 2, 1);
            assert_eq!(bed.scheduler.scale_rt_capacity(Cpu(1)), 1024, "{kernel}");
            urgent(&mut bed, 1, 32);
            let left = bed.scheduler.scale_rt_capacity(Cpu(1));
            // PELT counts half of it after 32 ms; before, it was 32 of 500 to 1000 ms.
            let expected = if kernel == "v4.18" { 950..1000 } else { 500..530 };
            assert!(expected.contains(&left), "{kernel}: {left}");
            assert_eq!(bed.scheduler.capacity_of(Cpu(1)), 1024, "{kernel}: it has not balanced since");
        }
        let mut bed = SchedulerTestbed::new("v6.6", 2, 1);
        bed.scheduler.shared.cpus[1].avg_rt.util_avg = 1024;
        assert_eq!(bed.scheduler.scale_rt_capacity(Cpu(1)), 1, "nothing would divide by 0");
    }

    /// What is left of a thread of a core of two.
    pub(crate) fn left_of_a_thread(kernel: &str) -> u64 {
        SchedulerTestbed::new(kernel, 1, 2).scheduler.scale_rt_capacity(Cpu(0))
    }

    #[test]
    fn a_thread_is_no_core() {
        assert_eq!(["v4.18", "523e979d3164", "v4.19", "v5.0"].map(left_of_a_thread), [589, 1024, 589, 1024]);
    }

    #[test]
    fn deadline_tasks_take_as_well() {
        let mut bed = SchedulerTestbed::new("v6.6", 2, 1);
        bed.scheduler.shared.cpus[1].avg_dl.util_avg = 200;
        bed.scheduler.shared.cpus[1].avg_rt.util_avg = 100;
        assert_eq!(bed.scheduler.scale_rt_capacity(Cpu(1)), 724);
    }

    /// CPU 1 has 724 left, and balances; its cache is a group of a machine of two.
    #[test]
    fn what_is_left_is_computed_when_a_cpu_balances_and_groups_have_it_when_their_level_is() {
        let mut bed = SchedulerTestbed::on(
            "v6.6",
            Topology::regular(1, 2, 2, 1, SmtNumbering::Adjacent).expect("a machine"),
        );
        bed.pass(1_000 * MS);
        bed.at(0);
        bed.scheduler.shared.cpus[0].avg_rt.util_avg = 300;
        let balance = |bed: &mut SchedulerTestbed, level| {
            let decision = bed.scheduler.decide_balance(Cpu(0), level, CpuIdleType::Idle);
            bed.scheduler.apply_balance(&decision);
            let groups = [0, 1].map(|level| {
                let local = bed.scheduler.domains.local_group(bed.scheduler.domain_id(Cpu(0), level));
                let group = bed.scheduler.domains.capacity_of_group(local);
                (group.capacity, group.min_capacity, group.max_capacity)
            });
            (bed.scheduler.capacity_of(Cpu(0)), groups)
        };
        let whole = (2048, 1024, 1024);
        assert_eq!(balance(&mut bed, 1), (1024, [(1024, 1024, 1024), whole]), "the lowest level comes first");
        assert_eq!(balance(&mut bed, 0), (724, [(724, 724, 724), whole]));
        assert_eq!(balance(&mut bed, 1), (724, [(724, 724, 724), (1748, 724, 1024)]));
    }

    #[test]
    fn a_cpu_that_runs_out_of_work_computes_it_after_an_interval_only() {
        let mut bed = left_beside("v5.10", 1024);
        let left_after = |bed: &mut SchedulerTestbed, ms| {
            bed.pass(ms * MS);
            bed.at(1);
            bed.scheduler.shared.cpus[1].avg_rt.util_avg = 300;
            let decision = bed.scheduler.decide_balance(Cpu(1), 0, CpuIdleType::NewlyIdle);
            bed.scheduler.apply_balance(&decision);
            bed.scheduler.capacity_of(Cpu(1))
        };
        // The interval was 2 ms, which then doubled.
        assert_eq!([1, 1].map(|ms| left_after(&mut bed, ms)), [1024, 724]);
    }

    /// What an idle CPU takes from one whose only task has that much left; and whether that is pushed.
    fn taken_from_reduced(kernel: &str, left: u64, idle: CpuIdleType) -> (bool, bool) {
        let bed = left_beside(kernel, left);
        let decision = decide(&bed, idle);
        let kind = decision.group.map(|group| group.kind);
        assert!(decision.group.is_none() || kind == Some(GroupType::MisfitTask), "{kernel}: {kind:?}");
        let by_load = decision.imbalance.migration == MigrationType::Load;
        (decision.source == Some(Cpu(1)) && by_load, decision.push)
    }

    #[test]
    fn an_idle_cpu_relieves_one_with_little_left_from_v6_0_on() {
        let pct = SchedulerTestbed::new("v6.6", 2, 1).scheduler.domain(Cpu(0), 0).imbalance_pct;
        let (enough, little) = (102_400_u64.div_ceil(pct.into()), 102_400 / u64::from(pct));
        for idle in [CpuIdleType::Idle, CpuIdleType::NewlyIdle] {
            assert_eq!(taken_from_reduced("v5.19", little, idle), (false, false), "{idle:?}");
            assert_eq!(taken_from_reduced("v6.0", little, idle), (true, true), "{idle:?}");
            assert_eq!(taken_from_reduced("v6.0", enough, idle), (false, false), "{idle:?}");
        }
        assert_eq!(taken_from_reduced("v6.0", little, CpuIdleType::NotIdle), (false, false));
    }

    #[test]
    fn a_cpu_with_as_little_left_does_not_take() {
        let mut bed = left_beside("v6.6", 500);
        bed.scheduler.shared.cpus[0].avg_rt.util_avg = 500;
        let decision = decide(&bed, CpuIdleType::Idle);
        assert_eq!((decision.source, decision.push), (Some(Cpu(1)), false));
        bed.scheduler.shared.cpus[0].avg_rt.util_avg = 300;
        assert!(decide(&bed, CpuIdleType::Idle).push);
    }

    #[test]
    fn a_busy_cpu_with_little_left_has_an_idle_one_kicked() {
        let kicks = |left| {
            let mut bed = left_beside("v5.10", left);
            bed.scheduler.nohz_balance_enter_idle(Cpu(0));
            bed.scheduler.balance.nohz.next_balance = 0;
            bed.scheduler.balance.nohz.has_blocked = false;
            bed.at(1);
            bed.scheduler.trigger_load_balance(Cpu(1)).kick
        };
        assert_eq!([1024, 500].map(kicks), [None, Some(Cpu(0))]);
    }
}
