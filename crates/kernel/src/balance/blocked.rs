//! Blocked load: what sleeping tasks left on a CPU's queues is aged, so that others see what the CPU really bears.
//!
//! Must not know: who asks, and how long it takes (the driver charges for each queue).

use fairlab_event::Cpu;

use crate::all_cpus::SharedLine;
use crate::balance::rules::{BlockedLimit, BlockedTells};
use crate::cpufreq::rules::GovernorHook;
use crate::entity::{CfsRqId, SeId};
use crate::fair::bandwidth::rules::ThrottledAgeing;
use crate::fair::load_update::LoadUpdate;
use crate::rq::LockedRq;
use crate::scheduler::Scheduler;
use crate::task::Policy;

/// What updating blocked load did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockedUpdate {
    /// CPUs.
    pub cpus: u32,
    /// Queues that were aged.
    pub queues: u32,
    /// Of those the ones that need no more of it.
    pub dropped: u32,
    /// CPUs whose averages were recomputed, so that their frequency may change.
    pub decayed: u32,
}

impl BlockedUpdate {
    /// Counts another update with this one.
    pub fn add(&mut self, other: BlockedUpdate) {
        self.cpus += other.cpus;
        self.queues += other.queues;
        self.dropped += other.dropped;
        self.decayed += other.decayed;
    }
}

impl LockedRq<'_> {
    /// A queue that something joins is aged from now on: right before the queue above it, or else at the end of the branch that is
    /// being listed from below. Returns whether that branch has reached the tree.
    ///
    /// Kernel: `list_add_leaf_cfs_rq()`, kernel/sched/fair.c.
    pub(crate) fn list_add_leaf_cfs_rq(&mut self, cfs_rq: CfsRqId) -> bool {
        if std::mem::replace(&mut self.cfs_mut(cfs_rq).listed, true) {
            return self.rq.tmp_alone_branch.is_none();
        }
        let above = self.queue_above(cfs_rq);
        let place = |queue: CfsRqId| self.rq.leaf_cfs_rqs.iter().position(|&other| other == queue);
        let (at, branch) = match (above, self.rq.tmp_alone_branch) {
            (None, _) => (self.rq.leaf_cfs_rqs.len(), None),
            (Some(above), _) if self.cfs(above).listed => (place(above).unwrap_or(0), None),
            (_, end) => (end.and_then(place).map_or(0, |end| end + 1), Some(cfs_rq)),
        };
        self.rq.leaf_cfs_rqs.insert(at, cfs_rq);
        self.rq.tmp_alone_branch = branch;
        branch.is_none()
    }

    /// The same for a queue and those above it, up to the first that are listed.
    pub(crate) fn list_branch(&mut self, cfs_rq: CfsRqId) {
        let mut level = Some(cfs_rq);
        while let Some(queue) = level.filter(|&queue| !self.list_add_leaf_cfs_rq(queue)) {
            level = self.queue_above(queue);
        }
    }

    fn queue_above(&self, cfs_rq: CfsRqId) -> Option<CfsRqId> {
        self.cfs(cfs_rq).entity.map(|se| self.se(se).cfs_rq)
    }

    /// A queue is aged no more, until something joins (`list_del_leaf_cfs_rq()`).
    pub(crate) fn list_del_leaf_cfs_rq(&mut self, cfs_rq: CfsRqId) {
        if !std::mem::replace(&mut self.cfs_mut(cfs_rq).listed, false) {
            return;
        }
        let before = self.listed_before(cfs_rq);
        if self.rq.tmp_alone_branch == Some(cfs_rq) {
            self.rq.tmp_alone_branch = before;
        }
        self.rq.leaf_cfs_rqs.retain(|&other| other != cfs_rq);
    }

    fn listed_before(&self, cfs_rq: CfsRqId) -> Option<CfsRqId> {
        let place = self.rq.leaf_cfs_rqs.iter().position(|&other| other == cfs_rq)?;
        place.checked_sub(1).map(|before| self.rq.leaf_cfs_rqs[before])
    }

    /// Whether a queue needs no more ageing. Only the queue before it is looked at for a child of its, which may be another's that
    /// was listed in between.
    ///
    /// Kernel: `cfs_rq_is_decayed()`, `child_cfs_rq_on_list()`, kernel/sched/fair.c.
    pub(crate) fn is_decayed(&self, cfs_rq: CfsRqId) -> bool {
        let queue = self.cfs(cfs_rq);
        let before = if queue.listed { self.listed_before(cfs_rq) } else { self.rq.tmp_alone_branch };
        let child_listed = before.is_some_and(|before| self.queue_above(before) == Some(cfs_rq));
        self.shared.generation.pelt.cfs_rq_is_decayed(&queue.tracked, queue.load.raw(), child_listed)
    }
}

impl Scheduler {
    /// How often so far others have aged `cpu`'s blocked load while it idled, when it was not the kick of a busy CPU that
    /// made them: what limits on `update_nohz_stats()` are about.
    pub fn remote_updates(&self, cpu: Cpu) -> u64 {
        self.balance.cpus[cpu.index()].remote_updates
    }

    /// Ages all listed queues of a CPU, those of its groups too, whether anything runs on them or not.
    ///
    /// Kernel: `update_blocked_averages()`, `__update_blocked_fair()`, kernel/sched/fair.c. Variants: see `QueueDecay`,
    /// `ThrottledAgeing` and `BlockedTells`. Departs: interrupts leave no load.
    pub fn update_blocked_averages(&mut self, cpu: Cpu) -> BlockedUpdate {
        self.shared.note_line(SharedLine::QueueLock(cpu), true);
        self.rq_lock(cpu).update_rq_clock();
        self.age_blocked_averages(cpu)
    }

    /// The same by the queue's clock as it stands.
    ///
    /// Kernel: `__sched_balance_update_blocked_averages()`, kernel/sched/fair.c, from v7.0.
    pub(super) fn age_blocked_averages(&mut self, cpu: Cpu) -> BlockedUpdate {
        let mut update = BlockedUpdate { cpus: 1, ..BlockedUpdate::default() };
        let mut has_blocked = self.update_blocked_others(cpu, &mut update);
        // Children come before parents.
        let mut at = 0;
        let passes_over = self.shared.generation.bandwidth.throttled_ageing == ThrottledAgeing::PassedOver;
        while let Some(&cfs_rq) = self.rqs[cpu.index()].leaf_cfs_rqs.get(at) {
            if passes_over && self.shared.throttled_hierarchy(cfs_rq) {
                at += 1;
                continue;
            }
            update.queues += 1;
            let changed = self.queue_rq_lock(cfs_rq).update_cfs_rq_load_avg(cfs_rq);
            if changed {
                self.queue_rq_lock(cfs_rq).update_tg_load_avg(cfs_rq);
                if self.cfs(cfs_rq).nr_running == 0 {
                    self.cfs_mut(cfs_rq).pelt_clock.enter_idle();
                }
            }
            match self.cfs(cfs_rq).entity {
                Some(se) if !self.skip_blocked_update(se, cfs_rq) => {
                    let tells =
                        self.shared.generation.balance.blocked_tells == BlockedTells::QueuesAndParents;
                    self.entity_rq_lock(se)
                        .update_load_avg(se, LoadUpdate { tell_group: tells, ..LoadUpdate::AGE });
                }
                Some(_) => {}
                None => update.decayed |= u32::from(changed),
            }
            if self.rq_lock(cpu).is_decayed(cfs_rq) {
                self.rq_lock(cpu).list_del_leaf_cfs_rq(cfs_rq);
                update.dropped += 1;
            } else {
                at += 1;
            }
            let avg = &self.cfs(cfs_rq).tracked.avg;
            has_blocked |= avg.load_avg > 0 || avg.util_avg > 0;
        }
        let jiffies = self.shared.jiffies();
        let state = &mut self.balance.cpus[cpu.index()];
        state.last_blocked_load_update_tick = jiffies;
        state.has_blocked_load &= has_blocked;
        if update.decayed > 0 && self.shared.generation.frequency.governor_hook == GovernorHook::EntityUpdate
        {
            self.rq_lock(cpu).cpufreq_update_util();
        }
        update
    }

    /// The same for the averages of other classes. Returns whether there is some left.
    ///
    /// Kernel: `__update_blocked_others()`, kernel/sched/fair.c.
    pub(super) fn update_blocked_others(&mut self, cpu: Cpu, update: &mut BlockedUpdate) -> bool {
        let policy = self.shared.tasks[self.curr(cpu).index()].policy;
        let rt = self.rq_lock(cpu).update_rt_rq_load_avg(policy.is_rt());
        let dl = self.rq_lock(cpu).update_dl_rq_load_avg(policy == Policy::Deadline);
        update.decayed |= u32::from(rt || dl);
        let others = &self.shared.cpus[cpu.index()];
        others.avg_rt.util_avg > 0 || others.avg_dl.util_avg > 0
    }

    /// Whether nothing would change for a group's entity (`skip_blocked_update()`).
    fn skip_blocked_update(&self, se: SeId, below: CfsRqId) -> bool {
        let avg = &self.se(se).avg;
        avg.load_avg == 0 && avg.util_avg == 0 && !self.cfs(below).tracked.propagate
    }

    /// Ages an idle CPU's blocked load, unless that was done a moment ago. Returns whether there is some left.
    ///
    /// Kernel: `update_nohz_stats()`, kernel/sched/fair.c. `forced`: by the CPU that balances for idle ones, where it does
    /// not mind when it was done.
    pub(super) fn update_nohz_stats(&mut self, cpu: Cpu, forced: bool, update: &mut BlockedUpdate) -> bool {
        let state = &self.balance.cpus[cpu.index()];
        if !state.has_blocked_load || !self.balance.nohz.idle_cpus.contains(cpu) {
            return false;
        }
        let pause = match self.shared.generation.balance.blocked_limit {
            BlockedLimit::OncePerTick => 0,
            BlockedLimit::Twentieth => self.ticks_per_second() / 20,
        };
        if !forced && self.shared.jiffies() <= state.last_blocked_load_update_tick + pause {
            return true;
        }
        update.add(self.update_blocked_averages(cpu));
        let state = &mut self.balance.cpus[cpu.index()];
        state.remote_updates += u64::from(!forced);
        state.has_blocked_load
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::GroupId;
    use crate::testbed::{MS, SchedulerTestbed};

    /// A task of a group has run on CPU 0 for 20 ms and sleeps.
    fn left(kernel: &str) -> SchedulerTestbed {
        let mut bed = SchedulerTestbed::new(kernel, 2, 1);
        bed.at(0);
        let group = bed.scheduler.new_group(GroupId::ROOT, 1024);
        bed.spawn_in(group, 0);
        bed.run(0, 20);
        bed.sleep(0);
        bed
    }

    fn update(bed: &mut SchedulerTestbed) -> BlockedUpdate {
        bed.at(0);
        bed.scheduler.update_blocked_averages(Cpu(0))
    }

    #[test]
    fn what_a_sleeper_left_fades_until_its_queues_need_no_more_updates() {
        for kernel in ["v5.4", "v5.10", "v6.1", "v6.12"] {
            let mut bed = left(kernel);
            bed.scheduler.balance.cpus[0].has_blocked_load = true;
            bed.pass(32 * MS);
            let root = bed.scheduler.rqs[0].cfs;
            let before = bed.scheduler.cfs(root).tracked.avg;
            let first = update(&mut bed);
            // The group's entity has taken the root along before its turn comes; other classes' averages have aged.
            assert_eq!(first, BlockedUpdate { cpus: 1, queues: 2, dropped: 0, decayed: 1 }, "{kernel}");
            let after = bed.scheduler.cfs(root).tracked.avg;
            let (was, is) = (before.util_avg, after.util_avg);
            assert!(
                was > 300 && is * 2 > was - was / 20 && is * 2 < was + was / 20,
                "{kernel}: {was} halves to {is}"
            );
            assert!(after.load_avg < before.load_avg, "{kernel}: the group's entity has told the root");
            assert!(bed.scheduler.balance.cpus[0].has_blocked_load, "{kernel}");
            assert_eq!(bed.scheduler.balance.cpus[0].last_blocked_load_update_tick, 52, "{kernel}");
            bed.pass(2_000 * MS);
            update(&mut bed);
            bed.pass(MS);
            update(&mut bed);
            bed.pass(MS);
            let last = update(&mut bed);
            assert!(!bed.scheduler.balance.cpus[0].has_blocked_load, "{kernel}: nothing is left");
            assert!(last.queues <= 1, "{kernel}: {last:?}: the group's queue is not listed any more");
            assert_eq!(last.decayed, 1, "{kernel}: other classes' averages age, whatever is left of them");
        }
    }

    #[test]
    fn a_root_queue_that_changed_is_counted_for_the_governor() {
        let mut bed = SchedulerTestbed::new("v5.10", 2, 1);
        bed.spawn(0, 0);
        bed.run(0, 20);
        bed.sleep(0);
        bed.pass(32 * MS);
        assert_eq!(update(&mut bed).decayed, 1);
        assert_eq!(update(&mut bed).decayed, 0, "no time has passed");
    }

    /// Queues are aged from the bottom up; one whose child is listed stays.
    #[test]
    fn a_queue_joins_the_list_once_and_before_its_parents() {
        let mut bed = SchedulerTestbed::new("v5.10", 2, 1);
        bed.at(0);
        let outer = bed.scheduler.new_group(GroupId::ROOT, 1024);
        let inner = bed.scheduler.new_group(outer, 1024);
        bed.spawn_in(inner, 0);
        bed.spawn_in(outer, 0);
        let groups = bed.scheduler.rqs[0].leaf_cfs_rqs.iter().map(|&cfs_rq| bed.scheduler.cfs(cfs_rq).group);
        assert_eq!(groups.collect::<Vec<_>>(), [inner, outer, GroupId::ROOT]);
    }

    /// What a group's queue bears is added to the group when it has faded, so that other CPUs get its share.
    #[test]
    fn a_group_is_told_what_is_left_of_its_load() {
        let mut bed = left("v5.13");
        let told = |bed: &SchedulerTestbed| bed.scheduler.shared.groups[1].load_avg;
        let before = told(&bed);
        bed.pass(100 * MS);
        update(&mut bed);
        assert!(told(&bed) * 4 < before, "{before}, then {}", told(&bed));
    }
}
