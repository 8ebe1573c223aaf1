//! What a verifier asks and sets: a pass over a queue that a real kernel chose, a push, and counts that it printed.
//!
//! Must not know: traces.

use fairlab_event::{Cpu, Ns};

use crate::balance::blocked::BlockedUpdate;
use crate::balance::decided::{BalanceDecision, DetachPass, LbEnv};
use crate::balance::imbalance::{Imbalance, MigrationType};
use crate::balance::migrate::LbfFlags;
use crate::balance::rules::{NewidleChance, PushFailures};
use crate::balance::statistics::SgLbStats;
use crate::cpumask::CpuMask;
use crate::generation::Feature;
use crate::open_loop::bring_usage;
use crate::schedstat::CpuIdleType;
use crate::scheduler::Scheduler;
use crate::task::{Policy, TaskId};

/// A task of a queue as balancing finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundTask {
    /// Which one.
    pub task: TaskId,
    /// `load_avg`.
    pub load: u64,
    /// `util_avg`.
    pub util: u64,
    /// `util_est.enqueued` and `util_est.ewma`.
    pub estimates: [u32; 2],
    /// `exec_start`: the clock of its runqueue up to which it was charged, ns.
    pub exec_start: u64,
}

impl Scheduler {
    /// What `cpu` sees of the groups of a domain if it looks now, its own first. Pure.
    pub fn groups_seen(&self, cpu: Cpu, level: usize, idle: CpuIdleType) -> Vec<SgLbStats> {
        let attempt = self.attempt(cpu, level, idle);
        self.sums_of_groups(&LbEnv { extent: self.extent_found(&attempt), ..attempt })
    }

    /// A task of `cpu` is on its way off its queues and counted there until that is done: for questions only, as it is on none
    /// of them any more.
    pub fn count_leaving(&mut self, cpu: Cpu) {
        let root = self.rqs[cpu.index()].cfs;
        self.rqs[cpu.index()].nr_running += 1;
        self.cfs_mut(root).h_nr_running += 1;
    }

    /// The CPUs of the groups of a domain, in the same order.
    pub fn group_spans(&self, cpu: Cpu, level: usize) -> impl Iterator<Item = CpuMask> {
        self.domains.groups(self.domain_id(cpu, level)).map(|id| self.domains.group(id).span)
    }

    /// The same as [`Scheduler::decide_balance`], by a CPU that has seen the groups so, one after another, before it looks for
    /// a queue now. Pure.
    pub fn decide_balance_seeing(
        &self,
        cpu: Cpu,
        level: usize,
        idle: CpuIdleType,
        seen: Vec<SgLbStats>,
    ) -> BalanceDecision {
        self.decide_attempt(LbEnv { seen, ..self.attempt(cpu, level, idle) })
    }

    /// The same as [`Scheduler::decide_balance`], if the group of `source` were the only other one. Pure.
    pub fn decide_balance_from(
        &self,
        cpu: Cpu,
        level: usize,
        idle: CpuIdleType,
        source: Cpu,
    ) -> BalanceDecision {
        let mut attempt = self.attempt(cpu, level, idle);
        let of_source = self.group_spans(cpu, level).find(|span| span.contains(source));
        let others = of_source.unwrap_or(CpuMask::EMPTY);
        attempt.cpus = attempt.cpus.and(&self.local_group(cpu, level).span.or(&others));
        self.decide_attempt(attempt)
    }

    /// What a pass over the queue of `source` would take to move `imbalance` to `cpu`, whatever made it the busiest. Pure.
    pub fn decide_pull(
        &self,
        cpu: Cpu,
        level: usize,
        idle: CpuIdleType,
        source: Cpu,
        imbalance: Imbalance,
    ) -> DetachPass {
        let mut attempt = self.given_attempt(cpu, level, idle, imbalance);
        let mut queue = self.source_queue(source);
        self.detach_tasks(&mut attempt, &mut queue, &mut LbfFlags::default())
    }

    /// `cpu` balances in the SCHED softirq: each level that is due is tried in the state that it finds, and what comes of
    /// that is remembered: failures, intervals, and what bounds searches. At the level that `taken_from` is at, the kernel
    /// moves a task, which is to be noted when it does; at others nothing. `surely`: some level is due. Returns as
    /// [`Self::follow_newidle`].
    pub fn follow_rebalance(
        &mut self,
        finds: &Scheduler,
        cpu: Cpu,
        idle: CpuIdleType,
        taken_from: Option<Cpu>,
        surely: bool,
    ) -> bool {
        let mut tells = false;
        let jiffies = finds.shared.jiffies();
        let due = |level: &usize| finds.due_at(cpu, *level, idle);
        let taken_at = taken_from.and_then(|source| self.common_level(cpu, source));
        let is_tried = |level: &usize| due(level) <= jiffies || taken_at == Some(*level);
        let mut levels = (0..self.nr_domains(cpu)).filter(is_tried).collect::<Vec<_>>();
        if levels.is_empty() && surely {
            levels.extend((0..self.nr_domains(cpu)).min_by_key(due));
        }
        for level in levels {
            let decision = finds.decide_balance(cpu, level, idle);
            let failed = self.domain_state(cpu, level).nr_balance_failed;
            tells |= decision.overutilized.is_some();
            self.remember_as_moved(&decision, u32::from(taken_at == Some(level)));
            let state = self.domain_state_mut(cpu, level);
            state.last_balance = jiffies;
            if taken_at == Some(level) {
                state.nr_balance_failed = failed;
            }
            if !decision.continues && taken_at.is_none_or(|taken| taken <= level) {
                break;
            }
        }
        tells
    }

    /// `cpu` runs out of work: what it sees of each level that it searches, in the state that it finds, is remembered. Returns
    /// whether that tells if some CPU has more to do than it can.
    pub fn follow_newidle(&mut self, finds: &Scheduler, cpu: Cpu) -> bool {
        if !finds.newidle_searches(cpu) {
            return false;
        }
        let mut tells = false;
        for level in 0..self.nr_domains(cpu) {
            let decision = finds.decide_balance(cpu, level, CpuIdleType::NewlyIdle);
            self.note_seen(&decision);
            decision.pulls.iter().for_each(|pull| self.remember_loads_asked(pull));
            self.remember_passed_over(&decision);
            tells |= decision.overutilized.is_some();
        }
        tells
    }

    /// Whether balancing goes by loads of the past (LB_BIAS).
    pub fn goes_by_past_loads(&self) -> bool {
        self.has(Feature::LbBias)
    }

    /// `cpu` ticks: the loads of its past follow the one that it `finds`. Ticks that are missing it has idled through.
    pub fn follow_past_loads(&mut self, finds: &Scheduler, cpu: Cpu) {
        let (load, jiffies) = (finds.balanced_load(cpu), finds.shared.jiffies());
        let past = &mut self.balance.cpus[cpu.index()].cpu_load;
        if jiffies > past.last_load_update_tick + 1 {
            past.nohz_start(0);
            past.nohz_stop(load, jiffies - 1);
        }
        past.tick(load, jiffies, false);
    }

    /// Another CPU balances for `cpu`, which idles: the loads of its past have faded.
    pub fn fade_past_loads(&mut self, cpu: Cpu, now: Ns) {
        let jiffies = self.shared.jiffies_at(now);
        self.balance.cpus[cpu.index()].cpu_load.update_idle(0, jiffies);
    }

    /// `cpu` begins to balance a level: what it has left for fair tasks is recomputed, if that is done in such a try.
    pub fn follow_capacity(&mut self, cpu: Cpu, level: usize, idle: CpuIdleType) {
        self.update_blocked_others(cpu, &mut BlockedUpdate::default());
        let attempt = self.attempt(cpu, level, idle);
        let extent = self.should_we_balance(&attempt).ok().and_then(|()| self.extent_found(&attempt));
        if let Some(extent) = extent {
            self.set_extent(cpu, level, extent);
        }
    }

    /// The same for a CPU that runs out of work, at each level, if it looks for some.
    pub fn follow_capacity_when_newly_idle(&mut self, cpu: Cpu) {
        if self.newidle_searches(cpu) {
            (0..self.nr_domains(cpu))
                .for_each(|level| self.follow_capacity(cpu, level, CpuIdleType::NewlyIdle));
        }
    }

    /// Whether `cpu` looks for work if it runs out of its own.
    pub fn looks_when_newly_idle(&self, cpu: Cpu) -> bool {
        self.newidle_searches(cpu)
    }

    /// Every CPU computes what it has left for fair tasks at once.
    pub fn compute_capacities(&mut self) {
        let cpus = self.shared.topology.cpus().map(|cpu| (cpu, self.nr_domains(cpu))).collect::<Vec<_>>();
        for &(cpu, _) in &cpus {
            self.update_blocked_others(cpu, &mut BlockedUpdate::default());
        }
        let levels = cpus.iter().map(|&(_, levels)| levels).max().unwrap_or(0);
        for level in 0..levels {
            for &(cpu, _) in cpus.iter().filter(|(_, levels)| level < *levels) {
                let (id, left) = (self.domain_id(cpu, level), self.scale_rt_capacity(cpu));
                let extent = self.domains.extent_of_group(id, left);
                self.set_extent(cpu, level, extent);
            }
        }
    }

    /// Whether other classes leave less of a CPU for fair tasks than it has, or did when that was last computed, or one of
    /// their tasks runs.
    pub fn others_use(&self, cpu: Cpu) -> bool {
        let (others, runs) =
            (&self.shared.cpus[cpu.index()], self.shared.tasks[self.curr(cpu).index()].policy);
        let other = runs.is_rt() || runs == Policy::Deadline;
        other
            || others.avg_rt.util_avg + others.avg_dl.util_avg > 0
            || self.capacity_of(cpu) < self.capacity_orig_of(cpu)
    }

    /// Whether some CPU has more to do than it can, as wakeups by energy know it.
    pub fn overutilized(&self) -> bool {
        self.domains.root().overutilized
    }

    /// Some CPU has more to do than it can, or none.
    pub fn force_overutilized(&mut self, overutilized: bool) {
        self.domains.root_mut().overutilized = overutilized;
    }

    /// Whether `cpu` expects to idle for long enough to do something for others meanwhile.
    pub fn idles_long(&self, cpu: Cpu) -> bool {
        self.avg_idle(cpu) >= self.shared.sysctl.migration_cost
    }

    /// Whether `cpu` has nothing to do and nothing on the way.
    pub fn idles(&self, cpu: Cpu) -> bool {
        self.idle_cpu(cpu)
    }

    /// Whether some level of `cpu` is to be balanced at `now`.
    pub fn balance_is_due(&self, cpu: Cpu, idle: CpuIdleType, now: Ns) -> bool {
        let jiffies = self.shared.jiffies_at(now);
        (0..self.nr_domains(cpu)).any(|level| self.due_at(cpu, level, idle) <= jiffies)
    }

    fn due_at(&self, cpu: Cpu, level: usize, idle: CpuIdleType) -> u64 {
        let busy = self.balances_as_busy(cpu, idle);
        self.domain_state(cpu, level).last_balance + self.get_sd_balance_interval(cpu, level, busy)
    }

    /// A real kernel's jiffies begin so long after whole ones on the clock of its trace.
    pub fn count_jiffies_from(&mut self, phase: Ns) {
        self.shared.sysctl.jiffy_phase = phase.0;
    }

    /// A real kernel counts a jiffy in so many ns, whatever its ticks are meant to last.
    pub fn count_jiffies_by(&mut self, jiffy: Ns) {
        self.shared.sysctl.jiffy = jiffy.0;
    }

    /// Balancing has moved a task from `source` to `cpu`: it has not failed there.
    pub fn note_moved(&mut self, cpu: Cpu, source: Cpu) {
        if let Some(level) = self.common_level(cpu, source) {
            self.domain_state_mut(cpu, level).nr_balance_failed = 0;
        }
    }

    fn common_level(&self, cpu: Cpu, other: Cpu) -> Option<usize> {
        self.domains.domains_of(cpu).iter().position(|sd| sd.span.contains(other))
    }

    /// Whether `cpu`, after it has moved nothing from the queue of `source`, has its stopper push the running task. Pure.
    pub fn decide_push_after(
        &self,
        cpu: Cpu,
        level: usize,
        idle: CpuIdleType,
        source: Cpu,
        imbalance: Imbalance,
    ) -> bool {
        let attempt = self.given_attempt(cpu, level, idle, imbalance);
        let mut decision = BalanceDecision::new(&attempt);
        self.decide_push(&attempt, source, &mut decision);
        decision.push
    }

    fn given_attempt(&self, cpu: Cpu, level: usize, idle: CpuIdleType, imbalance: Imbalance) -> LbEnv {
        LbEnv {
            migration: imbalance.migration,
            imbalance: imbalance.amount,
            takes_misfit: imbalance.migration == MigrationType::Misfit,
            ..self.attempt(cpu, level, idle)
        }
    }

    /// Which task the stopper of `source` would push to `dest`. Pure.
    pub fn decide_push_to(&self, source: Cpu, dest: Cpu) -> Option<TaskId> {
        self.pushed_task(source, dest)
    }

    /// A pass over the queue of `cpu` has come to `task`: those before it were looked at, and stand in front of the others
    /// from now on.
    pub fn pass_over_until(&mut self, cpu: Cpu, task: TaskId) {
        let list = self.rqs[cpu.index()].cfs_tasks;
        let left =
            list.oldest_first(&self.shared.tasks).take_while(|&other| other != task).collect::<Vec<_>>();
        self.pass_over(cpu, &left);
    }

    /// The stopper of `source` has been asked to push a task to that CPU, or is done.
    pub fn force_push(&mut self, source: Cpu, dest: Option<Cpu>) {
        self.balance.cpus[source.index()].push_cpu = dest;
    }

    /// The stopper of `source` pushes a task to `dest`, as it was asked to: whoever asked has set the failures so that the task's heat
    /// does not keep it, to v5.12.
    pub fn force_push_failures(&mut self, source: Cpu, dest: Cpu) {
        let level = self.domains.domains_of(dest).iter().position(|sd| sd.span.contains(source));
        if let Some(level) =
            level.filter(|_| self.shared.generation.balance.push_failures == PushFailures::SetToForce)
        {
            let failures = self.domain(dest, level).cache_nice_tries + 1;
            self.force_balance_failures(dest, level, failures);
        }
    }

    /// Whether chance decides which levels new-idle balancing looks at (33cf66d88306).
    pub fn searches_by_chance(&self) -> bool {
        self.shared.generation.balance.newidle_chance != NewidleChance::Always && self.has(Feature::NiRandom)
    }

    /// How often balancing of a domain has failed in a row, as a real kernel counted.
    pub fn force_balance_failures(&mut self, cpu: Cpu, level: usize, failures: u32) {
        self.domain_state_mut(cpu, level).nr_balance_failed = failures;
    }

    /// The tasks of `cpu`'s queue in the order in which balancing passes over them, as a real kernel's try found them. Those
    /// that the core has elsewhere are left out.
    pub fn force_found_tasks(&mut self, cpu: Cpu, found: &[FoundTask]) {
        let mut list = self.rqs[cpu.index()].cfs_tasks;
        for given in found {
            if !list.oldest_first(&self.shared.tasks).any(|task| task == given.task) {
                continue;
            }
            list.remove(&mut self.shared.tasks, given.task);
            list.push_newest(&mut self.shared.tasks, given.task);
            let se = self.shared.tasks[given.task.index()].se;
            self.bring_entity_load(se, given.load);
            let entity = self.se_mut(se);
            entity.exec_start = given.exec_start;
            let runnable = entity.avg.runnable_avg;
            bring_usage(&mut entity.avg, runnable, given.util, 1);
            let estimate = &mut entity.avg.util_est;
            [estimate.enqueued, estimate.ewma] = given.estimates;
        }
        self.rqs[cpu.index()].cfs_tasks = list;
    }

    /// Which groups of a domain affinity kept from being evened out, by their first CPUs.
    pub fn force_group_marks(&mut self, cpu: Cpu, level: usize, marked: &CpuMask) {
        let groups = self.domains.groups(self.domain_id(cpu, level)).collect::<Vec<_>>();
        for id in groups {
            let first = self.domains.group(id).span.lowest();
            self.domains.capacity_of_group_mut(id).imbalance = first.is_some_and(|cpu| marked.contains(cpu));
        }
    }

    /// So many wakeups are on their way to `cpu`.
    pub fn force_ttwu_pending(&mut self, cpu: Cpu, pending: u32) {
        self.rqs[cpu.index()].ttwu_pending = pending;
    }

    /// Load, waiting and utilization of a CPU as balancing sees them, and how many tasks are queued there.
    pub fn seen_by_balancing(&self, cpu: Cpu) -> (u64, u64, u64, u32) {
        let queue = self.cfs(self.rqs[cpu.index()].cfs);
        let waiting = queue.tracked.avg.runnable_avg;
        (self.balanced_load(cpu), waiting, self.cpu_util(cpu, false), self.nr_running(cpu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::detach::NR_MIGRATE;
    use crate::testbed::{MS, SchedulerTestbed};

    /// Four CPUs under one cache, of which CPU 1 runs three tasks and CPU 0 one, a second after the start.
    fn machine(kernel: &str) -> SchedulerTestbed {
        let mut bed = SchedulerTestbed::new(kernel, 4, 1);
        bed.spawn(0, 0);
        for _ in 0..3 {
            bed.spawn(0, 1);
        }
        bed.pass(1_000 * MS);
        bed.at(0);
        bed
    }

    #[test]
    fn a_level_is_due_by_jiffies_however_long_they_last() {
        let due = |jiffy: u64| {
            let mut bed = machine("v6.6");
            bed.scheduler.count_jiffies_by(Ns(jiffy));
            bed.at(0);
            let now = bed.scheduler.shared.jiffies();
            bed.scheduler.domain_state_mut(Cpu(0), 0).last_balance = now;
            let begin = now * jiffy;
            let after =
                |ms: u64| bed.scheduler.balance_is_due(Cpu(0), CpuIdleType::Idle, Ns(begin + ms * MS));
            (1..100).find(|&ms| after(ms))
        };
        let [alike, twice] = [MS, MS / 2].map(due);
        assert_eq!(alike, twice.map(|twice| 2 * twice), "{alike:?} {twice:?}");
        let bed = machine("v6.6");
        assert!(!bed.scheduler.idles(Cpu(1)));
    }

    fn follow(
        bed: &mut SchedulerTestbed,
        idle: CpuIdleType,
        taken_from: Option<Cpu>,
        surely: bool,
    ) -> (u32, u64) {
        bed.at(0);
        let finds = bed.scheduler.clone();
        bed.scheduler.follow_rebalance(&finds, Cpu(0), idle, taken_from, surely);
        let state = bed.scheduler.domain_state(Cpu(0), 0);
        (state.nr_balance_failed, finds.shared.jiffies() - state.last_balance)
    }

    /// A big CPU has more to do than it can, and then has not: who runs out of work sees it, if it looks at all.
    #[test]
    fn who_runs_out_of_work_tells_whether_some_cpu_has_too_much_to_do() {
        let mut bed = SchedulerTestbed::with_energy_model("v6.6");
        for used in [1000, 100] {
            bed.use_cpu(4, used);
            bed.at(0);
            bed.scheduler.force_overutilized(used < 1000);
            let tells = |bed: &mut SchedulerTestbed, overloaded| {
                bed.scheduler.shared.overloaded = overloaded;
                let finds = bed.scheduler.clone();
                (bed.scheduler.follow_newidle(&finds, Cpu(0)), bed.scheduler.overutilized())
            };
            assert_eq!(tells(&mut bed, false), (false, used < 1000), "nothing to take: it does not look");
            assert_eq!(tells(&mut bed, true), (true, used == 1000));
            assert!(!bed.scheduler.shared.overloaded, "and sees that there is nothing");
        }
    }

    #[test]
    fn what_was_seen_of_groups_counts_before_what_they_are() {
        let mut bed = machine("v5.10");
        bed.at(0);
        let idle = CpuIdleType::NewlyIdle;
        let busy = bed.scheduler.groups_seen(Cpu(2), 0, idle);
        let tasks = |seen: &[SgLbStats]| seen.iter().map(|group| group.sum_nr_running).collect::<Vec<_>>();
        assert_eq!(tasks(&busy), [0, 0, 1, 3], "its own first, in the order of CPUs");
        let spans = bed.scheduler.group_spans(Cpu(2), 0).filter_map(|span| span.lowest());
        assert_eq!(spans.collect::<Vec<_>>(), [2, 3, 0, 1].map(Cpu));
        let taken_from = |bed: &SchedulerTestbed, seen: Vec<SgLbStats>| {
            bed.scheduler.decide_balance_seeing(Cpu(2), 0, idle, seen).group.map(|group| group.first)
        };
        assert_eq!(taken_from(&bed, busy.clone()), Some(Cpu(1)));
        for _ in 0..3 {
            bed.sleep(1);
        }
        bed.at(0);
        let now = bed.scheduler.groups_seen(Cpu(2), 0, idle);
        assert_eq!(tasks(&now), [0, 0, 1, 0]);
        let mut leaving = bed.scheduler.clone();
        leaving.count_leaving(Cpu(1));
        assert_eq!(tasks(&leaving.groups_seen(Cpu(2), 0, idle)), [0, 0, 1, 1]);
        assert_eq!(bed.scheduler.decide_balance(Cpu(2), 0, idle).group, None);
        assert_eq!((taken_from(&bed, now), taken_from(&bed, Vec::new())), (None, None));
        assert_eq!(taken_from(&bed, busy.clone()), Some(Cpu(1)), "as it has seen them");
        bed.scheduler.force_ttwu_pending(Cpu(2), 1);
        assert_eq!(taken_from(&bed, busy), Some(Cpu(1)), "whoever has been woken there since");
        assert!(!bed.scheduler.decide_balance(Cpu(2), 0, idle).left_to_others(), "in v5.10 it looks anyway");
        let mut bed = machine("v6.12");
        bed.scheduler.force_ttwu_pending(Cpu(2), 1);
        bed.at(2);
        assert!(bed.scheduler.decide_balance(Cpu(2), 0, idle).left_to_others(), "it has work by now");
    }

    #[test]
    fn what_would_be_taken_from_another_queue_than_the_busiest_is_its_own_measure() {
        let mut bed = machine("v6.12");
        bed.at(2);
        let tasks = |decision: &BalanceDecision| (decision.source, decision.imbalance.amount);
        let busiest = bed.scheduler.decide_balance(Cpu(2), 0, CpuIdleType::NewlyIdle);
        assert_eq!(tasks(&busiest), (Some(Cpu(1)), 1), "half of three");
        bed.spawn(0, 0);
        for _ in 0..3 {
            bed.spawn(0, 0);
        }
        bed.at(2);
        let from = |source| bed.scheduler.decide_balance_from(Cpu(2), 0, CpuIdleType::NewlyIdle, Cpu(source));
        assert_eq!(
            [from(0), from(1)].map(|decision| tasks(&decision)),
            [(Some(Cpu(0)), 2), (Some(Cpu(1)), 1)]
        );
        assert_eq!(tasks(&from(3)), (None, 0), "nothing is there");
    }

    #[test]
    fn a_try_that_moved_nothing_has_failed_and_one_that_did_has_not() {
        let mut bed = machine("v5.10");
        let is_due = |bed: &SchedulerTestbed| {
            let now = bed.scheduler.shared.trace.now;
            bed.scheduler.balance_is_due(Cpu(0), CpuIdleType::NotIdle, now)
        };
        assert!(is_due(&bed));
        assert_eq!(follow(&mut bed, CpuIdleType::NotIdle, None, false), (1, 0), "something is to be moved");
        assert!(!is_due(&bed));
        assert_eq!(follow(&mut bed, CpuIdleType::NotIdle, None, false), (1, 0), "it is not due again");
        bed.pass(2 * MS);
        assert_eq!(follow(&mut bed, CpuIdleType::NotIdle, None, false), (1, 2));
        assert_eq!(follow(&mut bed, CpuIdleType::NotIdle, None, true), (2, 0), "it is known to be due");
        bed.pass(2 * MS);
        assert_eq!(follow(&mut bed, CpuIdleType::NotIdle, Some(Cpu(1)), false), (2, 0), "so it was due");
        bed.scheduler.note_moved(Cpu(0), Cpu(1));
        assert_eq!(bed.scheduler.domain_state(Cpu(0), 0).nr_balance_failed, 0);
    }

    #[test]
    fn a_try_tells_how_far_searches_for_idle_cpus_may_go() {
        let mut bed = machine("v6.12");
        for cpu in 0..4 {
            bed.scheduler.force_cpu_util(Cpu(cpu), 1024, 1024);
        }
        assert_eq!(bed.scheduler.nr_idle_scan(Cpu(0)), Some(4), "as after the start");
        follow(&mut bed, CpuIdleType::NotIdle, None, false);
        assert_eq!(bed.scheduler.nr_idle_scan(Cpu(0)), Some(0));
    }

    /// CPU 1's tasks, from the one that balancing comes to first.
    fn listed(bed: &SchedulerTestbed) -> Vec<u32> {
        let list = bed.scheduler.rqs[1].cfs_tasks;
        list.oldest_first(&bed.scheduler.shared.tasks).map(|task| task.0).collect()
    }

    #[test]
    fn a_pass_has_looked_at_tasks_up_to_the_one_that_it_takes() {
        let mut bed = machine("v6.1");
        let before = listed(&bed);
        let (first, last) = (TaskId(before[0]), TaskId(before[2]));
        bed.scheduler.pass_over(Cpu(1), &[first, bed.scheduler.idle_task(Cpu(1))]);
        assert_eq!(listed(&bed), [before[1], before[2], before[0]], "who is not there stays away");
        bed.scheduler.pass_over_until(Cpu(1), last);
        assert_eq!(listed(&bed), [before[2], before[0], before[1]]);
    }

    #[test]
    fn tasks_that_a_pass_could_not_take_stand_in_front_of_the_others() {
        let mut bed = SchedulerTestbed::new("v5.10", 2, 1);
        for _ in 0..40 {
            bed.spawn_with(0, 1, Policy::Normal, std::iter::once(Cpu(1)).collect());
        }
        bed.pass(1_000 * MS);
        bed.at(0);
        let finds = bed.scheduler.clone();
        let decision = finds.decide_balance(Cpu(0), 0, CpuIdleType::Idle);
        assert_eq!((decision.moved(), decision.looked()), (0, NR_MIGRATE));
        let mut tasks = listed(&bed);
        bed.scheduler.remember_as_moved(&decision, 1);
        assert_eq!(listed(&bed), tasks, "a pass that has taken something reports where it came to");
        bed.scheduler.remember_as_moved(&decision, 0);
        tasks.rotate_left(NR_MIGRATE as usize);
        assert_eq!(listed(&bed), tasks);
    }

    #[test]
    fn loads_of_the_past_follow_ticks_and_fade_where_none_come() {
        let mut bed = machine("v4.18");
        assert!(bed.scheduler.goes_by_past_loads());
        assert!(!machine("v4.20").scheduler.goes_by_past_loads());
        let past = |bed: &SchedulerTestbed| bed.scheduler.balance.cpus[1].cpu_load.cpu_load;
        let tick = |bed: &mut SchedulerTestbed| {
            bed.pass(MS);
            bed.at(1);
            let finds = bed.scheduler.clone();
            bed.scheduler.follow_past_loads(&finds, Cpu(1));
            finds.balanced_load(Cpu(1))
        };
        let load = (0..100).map(|_| tick(&mut bed)).last().unwrap_or_default();
        assert!(
            load > 0 && past(&bed).iter().all(|&past| past.abs_diff(load) <= load / 50),
            "{load} {:?}",
            past(&bed)
        );
        let now = bed.scheduler.shared.trace.now;
        bed.scheduler.fade_past_loads(Cpu(1), Ns(now.0 + 1_000 * MS));
        assert!(past(&bed).iter().all(|&past| past < load), "{:?}", past(&bed));
    }
}
