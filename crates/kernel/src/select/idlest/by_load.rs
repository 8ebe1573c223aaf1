//! The idlest group by load and spare capacity, to v5.4.

use fairlab_event::Cpu;

use super::IdlestSearch;
use crate::domain::{DomainId, SchedGroupId, SdFlags};
use crate::scheduler::Scheduler;

/// What a group bears.
#[derive(Clone, Copy, Debug)]
struct GroupLoads {
    /// Runnable load per capacity.
    runnable: u64,
    /// Load, blocked tasks' included, per capacity.
    average: u64,
    /// What the CPU with most to spare has to spare.
    spare: u64,
}

/// The load of one task of nice 0.
const NICE_0_LOAD: u64 = 1024;

impl Scheduler {
    /// Kernel: `find_idlest_group()`, kernel/sched/fair.c, to v5.4.
    /// Departs: `forkexec_idx` is 0 in every domain, so that no history of loads is looked at.
    pub(super) fn idlest_group_by_load(
        &self,
        domain: DomainId,
        seeker: IdlestSearch,
        this_cpu: Cpu,
    ) -> Option<SchedGroupId> {
        let sd = self.domains.domain(domain);
        let pct = u64::from(sd.imbalance_pct);
        let scale = 100 + (pct - 100) / 2;
        let imbalance = NICE_0_LOAD * (pct - 100) / 100;
        let mut this = GroupLoads { runnable: u64::MAX, average: u64::MAX, spare: 0 };
        let mut least = this;
        let (mut idlest, mut most_spare) = (None, (0, None));
        for group in self.domains.groups(domain) {
            let span = self.domains.group(group).span;
            if span.and(&self.shared.tasks[seeker.wakee.task.index()].allowed).is_empty() {
                continue;
            }
            let bears = self.bears(group, seeker);
            if span.contains(this_cpu) {
                this = bears;
                continue;
            }
            if least.runnable > bears.runnable + imbalance {
                (least, idlest) = (bears, Some(group));
            } else if bears.runnable < least.runnable.saturating_add(imbalance)
                && 100 * u128::from(least.average) > u128::from(scale * bears.average)
            {
                least.average = bears.average;
                idlest = Some(group);
            }
            if most_spare.0 < bears.spare {
                most_spare = (bears.spare, Some(group));
            }
        }
        if !seeker.is_new {
            let needed = seeker.avg.util_avg / 2;
            if this.spare > needed && scale * this.spare > 100 * most_spare.0 {
                return None;
            }
            if most_spare.0 > needed {
                return most_spare.1;
            }
        }
        let idlest = idlest?;
        let numa_stays =
            sd.flags.has(SdFlags::NUMA) && least.runnable.saturating_add(imbalance) >= this.runnable;
        let more_there = least.runnable > this.runnable.saturating_add(imbalance);
        let about_equal = this.runnable < least.runnable.saturating_add(imbalance)
            && 100 * u128::from(this.average) < u128::from(scale) * u128::from(least.average);
        (!numa_stays && !more_there && !about_equal).then_some(idlest)
    }

    fn bears(&self, group: SchedGroupId, seeker: IdlestSearch) -> GroupLoads {
        let capacity = self.domains.capacity_of_group(group).capacity;
        let (mut runnable, mut average, mut spare) = (0, 0, 0);
        for cpu in self.domains.group(group).span.iter() {
            runnable += self.cpu_load(cpu);
            average += self.avg_of(cpu).load_avg;
            let left = self.capacity_of(cpu).saturating_sub(self.cpu_util_without(cpu, seeker));
            spare = spare.max(left);
        }
        GroupLoads { runnable: runnable * 1024 / capacity, average: average * 1024 / capacity, spare }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::Wakee;
    use crate::testbed::SchedulerTestbed;
    use crate::topology::{SmtNumbering, Topology};

    /// What the only CPU of a group bears: runnable load, load, utilization.
    type Burden = (u64, u64, u64);

    /// The CPU to which a task of CPU 0 would go, where every CPU is a group of its own and bears so much.
    fn goes_to((nodes, caches): (u32, u32), burdens: &[Burden], new: bool, util: u64) -> Option<u32> {
        let topology = Topology::regular(nodes, caches, 1, 1, SmtNumbering::Adjacent).expect("a machine");
        let mut bed = SchedulerTestbed::on("v5.4", topology);
        let task = bed.spawn(0, 0);
        for (cpu, &(runnable, load, util)) in burdens.iter().enumerate() {
            let root = bed.scheduler.rqs[cpu].cfs;
            let avg = &mut bed.scheduler.cfs_mut(root).tracked.avg;
            (avg.runnable_avg, avg.load_avg, avg.util_avg) = (runnable, load, util);
            avg.util_est.enqueued = 0;
        }
        let mut avg = bed.scheduler.synced_avg(task);
        // It is not part of what CPU 0 bears.
        (avg.util_avg, avg.last_update_time) = (util, 0);
        let seeker = IdlestSearch { wakee: Wakee { task, here: Cpu(0), prev: Cpu(0) }, avg, is_new: new };
        let domain = bed.scheduler.domains.ids_of(Cpu(0)).last().expect("a domain");
        let group = bed.scheduler.idlest_group_by_load(domain, seeker, Cpu(0))?;
        bed.scheduler.domains.group(group).span.lowest().map(|cpu| cpu.0)
    }

    /// Above a cache imbalance_pct was 125: 256 of a task's load, and 112 % of loads.
    #[test]
    fn a_new_task_leaves_a_group_that_bears_clearly_more() {
        let leaves = |here: (u64, u64), there: (u64, u64)| {
            goes_to((1, 2), &[(here.0, here.1, 0), (there.0, there.1, 0)], true, 0).is_some()
        };
        assert!(!leaves((755, 500), (500, 500)) && leaves((756, 500), (500, 500)), "by a quarter of a task");
        assert!(!leaves((500, 559), (500, 500)) && leaves((500, 560), (500, 500)), "or by 12 % of load");
        assert!(!leaves((743, 5_000), (1000, 500)), "but not where a quarter of a task more runs");
        assert!(leaves((744, 5_000), (1000, 500)));
    }

    #[test]
    fn of_other_groups_the_one_that_bears_clearly_less_is_the_idlest() {
        let idlest = |one: (u64, u64), other: (u64, u64)| {
            let here = (100_000, 100_000, 0);
            goes_to((1, 3), &[here, (one.0, one.1, 0), (other.0, other.1, 0)], true, 0)
        };
        assert_eq!(idlest((1000, 1000), (743, 5000)), Some(2), "by more than a quarter of a task");
        assert_eq!(idlest((1000, 1000), (744, 5000)), Some(1));
        assert_eq!(idlest((1000, 1000), (1000, 892)), Some(2), "or by 12 % of load");
        assert_eq!(idlest((1000, 1000), (1000, 893)), Some(1));
        assert_eq!(idlest((1000, 1000), (1255, 100)), Some(2));
        assert_eq!(idlest((1000, 1000), (1256, 100)), Some(1), "where no quarter of a task more runs");
    }

    #[test]
    fn a_task_that_execs_goes_by_spare_capacity_first() {
        let loaded = 100_000;
        let goes = |spare: [u64; 3], util| {
            let burdens = spare.map(|spare| (loaded, loaded, 1024 - spare));
            goes_to((1, 3), &burdens, false, util)
        };
        assert_eq!(goes([900, 1000, 0], 0), None, "12 % more are not worth it");
        assert_eq!(goes([892, 1000, 0], 0), Some(1));
        assert_eq!(goes([300, 300, 400], 200), Some(2), "most of all");
        assert_eq!(goes([300, 400, 400], 200), Some(1), "the first of equals");
        assert_eq!(goes([400, 400, 401], 799), None);
        assert_eq!(goes([400, 300, 401], 800), Some(2), "half of its use must fit here");
        assert_eq!(goes([0, 400, 100], 800), None, "and there: else loads decide, which are alike");
        let heavier = [(2 * loaded, 2 * loaded, 0), (loaded, loaded, 1000), (loaded, loaded, 1000)];
        assert_eq!(goes_to((1, 3), &heavier, false, 0), None, "spare capacity comes first");
        assert_eq!(goes_to((1, 3), &heavier, true, 0), Some(1), "but not for a new task");
    }

    #[test]
    fn a_node_is_left_only_for_one_where_a_quarter_of_a_task_less_runs() {
        let leaves = |runnable| goes_to((2, 1), &[(runnable, 5_000, 0), (1000, 500, 0)], true, 0).is_some();
        assert!(!leaves(1256) && leaves(1257));
    }
}
