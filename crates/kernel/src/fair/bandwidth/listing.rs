//! Which queues below a throttled group are aged while nothing runs on them.
//!
//! Must not know: how queues are aged, and in which order.

use super::rules::{Relisting, ThrottledAgeing, ThrottledArrival};
use crate::entity::CfsRqId;
use crate::rq::LockedRq;

impl LockedRq<'_> {
    /// The queue of a group that has come back is aged again, if there is something on it or left of its averages.
    ///
    /// Kernel: `tg_unthrottle_up()`. Variants: nothing had left to v5.0; only for what is queued there to v5.12 (31bc6aeaab1d);
    /// also for averages from v5.13 (a7b359fc6a37).
    pub(super) fn list_again(&mut self, cfs_rq: CfsRqId) {
        let rules = &self.shared.generation.bandwidth;
        let needs = match (rules.throttled_ageing, rules.relisting) {
            (ThrottledAgeing::PassedOver, _) => false,
            (ThrottledAgeing::Leave, Relisting::Queued) => self.cfs(cfs_rq).nr_running >= 1,
            (ThrottledAgeing::Leave, Relisting::QueuedOrUndecayed) => {
                self.cfs(cfs_rq).nr_running >= 1 || !self.is_decayed(cfs_rq)
            }
        };
        if needs {
            self.list_add_leaf_cfs_rq(cfs_rq);
        }
    }

    /// A task has joined `cfs_rq`, and a throttled group may have ended its way up: queues there may be aged no more, since their
    /// groups were throttled.
    ///
    /// Kernel: the end of `enqueue_task_fair()`, kernel/sched/fair.c, to v5.19. Variants: `WhereItEnds` to v5.6, `WholeWay` from
    /// v5.7 (fe61468b2cbc, b34cb07dde7c).
    pub(crate) fn list_arrival(&mut self, cfs_rq: CfsRqId) {
        let from = match self.shared.generation.bandwidth.throttled_arrival {
            ThrottledArrival::WholeWay => Some(cfs_rq),
            ThrottledArrival::WhereItEnds | ThrottledArrival::Joined => self.end_of_way_up(cfs_rq),
        };
        if let Some(from) = from {
            self.list_branch(from);
        }
    }

    /// The first throttled queue from `cfs_rq` upwards.
    fn end_of_way_up(&self, cfs_rq: CfsRqId) -> Option<CfsRqId> {
        let above = |&queue: &CfsRqId| self.cfs(queue).entity.map(|se| self.se(se).cfs_rq);
        std::iter::successors(Some(cfs_rq), above).find(|&queue| self.shared.cuts_off(queue))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use fairlab_event::{Cpu, Ns};

    use crate::ablation::AblationSituation;
    use crate::fair::bandwidth::CfsLimit;
    use crate::group::GroupId;
    use crate::testbed::{MS, SchedulerTestbed};

    /// A change of the list of aged queues shows in how many are aged.
    pub(crate) const SITUATIONS: &[(&str, AblationSituation)] = &[
        ("throttled-leave-leaf-list", |kernel| aged_when_back(kernel, 20).into()),
        ("undecayed-listed", |kernel| aged_when_back(kernel, 20).into()),
        ("undecayed-branch", |kernel| aged_when_back(kernel, 4_000).into()),
        ("leaf-list-joined", |kernel| aged_after_arrival(kernel).into()),
        ("leaf-list-whole-way", |kernel| aged_after_arrival(kernel).into()),
    ];

    fn aged(bed: &mut SchedulerTestbed) -> u32 {
        bed.at(0);
        bed.scheduler.update_blocked_averages(Cpu(0)).queues
    }

    /// A task of a group within another goes to sleep as the group's runtime ends: the group is throttled without a task, and
    /// comes back. In between nothing happens there for so long.
    fn emptied(kernel: &str, milliseconds: u64) -> SchedulerTestbed {
        let mut bed = SchedulerTestbed::new(kernel, 1, 1);
        let outer = bed.scheduler.new_group(GroupId::ROOT, 100);
        let inner = bed.scheduler.new_group(outer, 100);
        nap_throttled(&mut bed, inner);
        bed.pass(milliseconds * MS);
        for _ in 0..4 {
            bed.pass(MS);
            aged(&mut bed);
        }
        bed.pass(500 * MS);
        bed.expire_timers();
        let queue = bed.scheduler.shared.cfs_rq_of_group(inner, Cpu(0));
        assert!(!bed.scheduler.cfs(queue).runtime.throttled, "{kernel}: back");
        bed
    }

    /// A task runs on CPU 0 until its group has no runtime left, and sleeps.
    fn nap_throttled(bed: &mut SchedulerTestbed, group: GroupId) {
        bed.limit(group, 5, 500, 0);
        bed.spawn_in(group, 0);
        bed.pass(6 * MS);
        bed.sleep(0);
        let queue = bed.scheduler.shared.cfs_rq_of_group(group, Cpu(0));
        assert!(bed.scheduler.cfs(queue).runtime.throttled);
    }

    fn aged_when_back(kernel: &str, milliseconds: u64) -> u32 {
        aged(&mut emptied(kernel, milliseconds))
    }

    /// How many queues are aged when a second task has come to the lowest of three groups, of which the highest is throttled.
    fn aged_after_arrival(kernel: &str) -> u32 {
        let mut bed = SchedulerTestbed::new(kernel, 1, 1);
        let mut group = GroupId::ROOT;
        for level in 0..3 {
            group = bed.scheduler.new_group(group, 100);
            if level == 0 {
                bed.limit(group, 5, 500, 0);
            }
        }
        bed.spawn_in(group, 0);
        bed.run(0, 10);
        assert!(bed.scheduler.runs_idle_task(Cpu(0)), "{kernel}: throttled");
        bed.spawn_in(group, 0);
        aged(&mut bed)
    }

    /// To v5.0 throttled queues stay listed; to v5.12 an empty one is not listed again when its group comes back, though load is
    /// left; to v5.14 those above it are not.
    #[test]
    fn a_queue_whose_group_comes_back_is_aged_with_those_above_it() {
        for (milliseconds, expected) in [(20, [3, 2, 3, 3]), (4_000, [3, 0, 1, 3])] {
            let queues =
                ["v5.0", "v5.12", "v5.14", "v5.15"].map(|kernel| aged_when_back(kernel, milliseconds));
            assert_eq!(queues, expected, "{milliseconds} ms");
        }
    }

    /// To v5.6 only the throttled queue and those above it.
    #[test]
    fn queues_below_a_throttled_one_are_aged_once_a_task_arrives() {
        let kernels = ["v5.6", "fe61468b2cbc", "v5.7"];
        assert_eq!(kernels.map(aged_after_arrival), [2, 3, 4]);
    }

    /// Two groups of equal weight compete on CPU 1; of one a task sleeps that was throttled on CPU 0. What percent of CPU 1 that
    /// group gets in the second second.
    fn share_elsewhere(kernel: &str) -> u64 {
        let mut bed = SchedulerTestbed::new(kernel, 2, 1);
        let [once_throttled, other] = [(); 2].map(|()| bed.scheduler.new_group(GroupId::ROOT, 1024));
        nap_throttled(&mut bed, once_throttled);
        bed.at(0);
        bed.scheduler.set_group_bandwidth(once_throttled, CfsLimit::UNLIMITED, Ns::ZERO);
        let task = bed.spawn_in(once_throttled, 1);
        bed.spawn_in(other, 1);
        let second = |bed: &mut SchedulerTestbed| {
            for _ in 0..250 {
                bed.run(1, 4);
                aged(bed);
            }
            bed.scheduler.sum_exec_runtime(task).0
        };
        let before = second(&mut bed);
        (second(&mut bed) - before) / (10 * MS)
    }

    /// Load that nobody ages lessens the weight of its group elsewhere for good, from v5.1 (31bc6aeaab1d) to v5.12
    /// (a7b359fc6a37).
    #[test]
    fn equal_groups_have_equal_shares_after_one_was_throttled() {
        let shares = ["v5.0", "v5.12", "v5.13", "v5.15"].map(share_elsewhere);
        assert!(shares[1] < 40, "{shares:?}");
        assert!([shares[0], shares[2], shares[3]].iter().all(|&share| share.abs_diff(50) <= 3), "{shares:?}");
    }
}
