//! The idlest group by type, from v5.5: what is idle, what has room, what bears least.

use fairlab_event::Cpu;

use super::IdlestSearch;
use crate::domain::{DomainId, SchedGroupId, SdFlags};
use crate::pelt::RunnableKind;
use crate::scheduler::Scheduler;
use crate::select::rules::{ForkNuma, IdlestCounts, IdlestLoad, IdlestSelf, IdlestTie, IdlestWeight};

/// How much room a group has, the most first (`enum group_type`, as far as wakeups come to it).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum GroupRoom {
    Spare,
    FullyBusy,
    Misfit,
    Imbalanced,
    Overloaded,
}

/// What wakeups know of a group (`struct sg_lb_stats`).
#[derive(Clone, Copy, Debug)]
struct GroupStats {
    room: GroupRoom,
    load: u64,
    avg_load: u64,
    util: u64,
    runnable: u64,
    nr_running: u32,
    idle_cpus: u32,
    capacity: u64,
    max_capacity: u64,
    weight: u32,
    misfit: bool,
}

/// The load of one task of nice 0.
const NICE_0_LOAD: u64 = 1024;

/// Differences in idle CPUs between nodes that do not matter (`NUMA_IMBALANCE_MIN`).
const NUMA_IMBALANCE_MIN: u32 = 2;

impl Scheduler {
    /// Kernel: `find_idlest_group()`, kernel/sched/fair.c, from v5.5 (57abff067a08); from v6.10
    /// `sched_balance_find_dst_group()`.
    /// Departs: no NUMA balancing: a task prefers the node that it is told to.
    pub(super) fn idlest_group_by_type(
        &self,
        domain: DomainId,
        seeker: IdlestSearch,
        this_cpu: Cpu,
    ) -> Option<SchedGroupId> {
        let mut local = None;
        let mut idlest: Option<(SchedGroupId, GroupStats)> = None;
        for group in self.domains.groups(domain) {
            let span = self.domains.group(group).span;
            if span.and(&self.shared.tasks[seeker.wakee.task.index()].allowed).is_empty() {
                continue;
            }
            let stats = self.wakeup_stats(domain, group, seeker);
            if span.contains(this_cpu) {
                local = Some((group, stats));
            } else if self.is_idler(idlest.as_ref().map(|(_, so_far)| so_far), &stats) {
                idlest = Some((group, stats));
            }
        }
        let (group, there) = idlest?;
        let Some((local_group, here)) = local else { return Some(group) };
        let stays = match here.room.cmp(&there.room) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Greater => false,
            std::cmp::Ordering::Equal => match self.stays_preferred(domain, seeker, this_cpu, group, &here) {
                Some(stays) => stays,
                None => self.stays_local(domain, seeker, local_group, &here, &there),
            },
        };
        (!stays).then_some(group)
    }

    /// Whether a group is idler than the idlest so far.
    ///
    /// Kernel: `update_pick_idlest()`, kernel/sched/fair.c.
    fn is_idler(&self, idlest: Option<&GroupStats>, group: &GroupStats) -> bool {
        let Some(idlest) = idlest else {
            // The kernel starts with an overloaded group of endless load.
            return !matches!(group.room, GroupRoom::Overloaded) || group.avg_load < u64::from(u32::MAX);
        };
        match group.room.cmp(&idlest.room) {
            std::cmp::Ordering::Less => return true,
            std::cmp::Ordering::Greater => return false,
            std::cmp::Ordering::Equal => {}
        }
        match group.room {
            GroupRoom::Overloaded | GroupRoom::FullyBusy => idlest.avg_load > group.avg_load,
            GroupRoom::Imbalanced => false,
            GroupRoom::Misfit => idlest.max_capacity < group.max_capacity,
            GroupRoom::Spare if idlest.idle_cpus == group.idle_cpus => {
                self.shared.generation.select.idlest_tie == IdlestTie::LeastUtilized
                    && idlest.util > group.util
            }
            GroupRoom::Spare => idlest.idle_cpus < group.idle_cpus,
        }
    }

    /// Whether a task that prefers one of two nodes with CPUs to spare stays in its local one.
    fn stays_preferred(
        &self,
        domain: DomainId,
        seeker: IdlestSearch,
        this_cpu: Cpu,
        idlest: SchedGroupId,
        here: &GroupStats,
    ) -> Option<bool> {
        let numa = self.domains.domain(domain).flags.has(SdFlags::NUMA);
        let chooses = numa && matches!(here.room, GroupRoom::Spare);
        let preferred = self.shared.tasks[seeker.wakee.task.index()].preferred_node.filter(|_| chooses)?;
        let is_in = |cpu: Cpu| self.shared.topology.place(cpu).node == preferred;
        let there = self.domains.group(idlest).span.lowest();
        is_in(this_cpu).then_some(true).or(there.filter(|&cpu| is_in(cpu)).map(|_| false))
    }

    /// Whether the task stays in its local group, which has about as much room as the idlest other one.
    fn stays_local(
        &self,
        domain: DomainId,
        seeker: IdlestSearch,
        local: SchedGroupId,
        here: &GroupStats,
        there: &GroupStats,
    ) -> bool {
        let sd = self.domains.domain(domain);
        let pct = u64::from(sd.imbalance_pct);
        let numa = sd.flags.has(SdFlags::NUMA);
        match here.room {
            GroupRoom::Overloaded | GroupRoom::FullyBusy => {
                let imbalance = NICE_0_LOAD * (pct - 100) / 100;
                (numa && there.avg_load + imbalance >= here.avg_load)
                    || there.avg_load >= here.avg_load + imbalance
                    || 100 * here.avg_load <= pct * there.avg_load
            }
            GroupRoom::Imbalanced => true,
            GroupRoom::Misfit => here.max_capacity >= there.max_capacity,
            GroupRoom::Spare => {
                (numa && self.stays_on_node(domain, seeker, local, here, there))
                    || here.idle_cpus >= there.idle_cpus
            }
        }
    }

    fn stays_on_node(
        &self,
        domain: DomainId,
        seeker: IdlestSearch,
        local: SchedGroupId,
        here: &GroupStats,
        there: &GroupStats,
    ) -> bool {
        let sd = self.domains.domain(domain);
        match self.shared.generation.select.fork_numa {
            ForkNuma::AnyIdle => here.idle_cpus > 0,
            ForkNuma::QuarterOfDomain => here.nr_running < sd.span_weight >> 2,
            ForkNuma::QuarterOfNode => here.nr_running + 1 < here.weight >> 2,
            ForkNuma::ImbNumaNr => here.nr_running < sd.imb_numa_nr,
            ForkNuma::SmallDifference => {
                let allowed = &self.shared.tasks[seeker.wakee.task.index()].allowed;
                let usable = self.domains.group(local).span.and(allowed).weight() as u32;
                let within = here.nr_running < sd.imb_numa_nr.min(usable);
                within && here.idle_cpus.abs_diff(there.idle_cpus) <= NUMA_IMBALANCE_MIN
            }
        }
    }

    /// Kernel: `update_sg_wakeup_stats()`, kernel/sched/fair.c. Variants: `None` from 57abff067a08 to v5.5, `Cpus` from v5.6
    /// (289de3598481).
    fn wakeup_stats(&self, domain: DomainId, group: SchedGroupId, seeker: IdlestSearch) -> GroupStats {
        let rules = self.shared.generation.select;
        let (known, capacity) = (self.domains.group(group), self.domains.capacity_of_group(group));
        let asymmetric = self.domains.domain(domain).flags.has(SdFlags::ASYM_CPUCAPACITY);
        let mut stats = GroupStats {
            room: GroupRoom::Spare,
            load: 0,
            avg_load: 0,
            util: 0,
            runnable: 0,
            nr_running: 0,
            idle_cpus: 0,
            capacity: capacity.capacity,
            max_capacity: capacity.max_capacity,
            weight: match rules.idlest_weight {
                IdlestWeight::Cpus => known.weight,
                IdlestWeight::None => 0,
            },
            misfit: asymmetric && !self.util_fits(&seeker.avg, capacity.max_capacity),
        };
        let counted = match rules.idlest_counts {
            IdlestCounts::EveryCpu => known.span,
            IdlestCounts::AllowedCpus => {
                known.span.and(&self.shared.tasks[seeker.wakee.task.index()].allowed)
            }
        };
        for cpu in counted.iter() {
            self.add_cpu(&mut stats, cpu, seeker);
        }
        stats.room = self.room_of(&stats, u64::from(self.domains.domain(domain).imbalance_pct), group);
        let has_load = match rules.idlest_load {
            IdlestLoad::WithSpare => stats.room < GroupRoom::FullyBusy,
            IdlestLoad::WhenBusy => matches!(stats.room, GroupRoom::FullyBusy | GroupRoom::Overloaded),
        };
        if has_load {
            stats.avg_load = stats.load * 1024 / stats.capacity;
        }
        stats
    }

    fn add_cpu(&self, stats: &mut GroupStats, cpu: Cpu, seeker: IdlestSearch) {
        let task = seeker.wakee.task;
        let avg = self.avg_of(cpu);
        let takes_off = self.shared.generation.select.idlest_self == IdlestSelf::TakenOff;
        let is_here = self.counts_on(cpu, seeker);
        let own_load = if takes_off && is_here { self.shared.task_h_load(task) } else { 0 };
        let own_runnable = if is_here { seeker.avg.runnable_avg } else { 0 };
        stats.load += self.cpu_load(cpu).saturating_sub(own_load);
        stats.util += self.cpu_util_without(cpu, seeker);
        stats.runnable += avg.runnable_avg.saturating_sub(own_runnable);
        let own = u32::from(takes_off && self.task_runs_on(task, cpu));
        let nr_running = self.nr_running(cpu).saturating_sub(own);
        stats.nr_running += nr_running;
        stats.idle_cpus += u32::from(nr_running == 0 && self.idle_cpu_without(cpu, seeker, takes_off));
    }

    /// Kernel: `idle_cpu_without()`, kernel/sched/fair.c.
    fn idle_cpu_without(&self, cpu: Cpu, seeker: IdlestSearch, takes_off: bool) -> bool {
        let coming = self.rqs[cpu.index()].ttwu_pending;
        let runs_alone = takes_off && self.curr(cpu) == seeker.wakee.task && coming == 0;
        runs_alone || self.idle_cpu(cpu)
    }

    /// Kernel: `group_classify()`, kernel/sched/fair.c; waiting counts from v5.7 (070f5e860ee2).
    fn room_of(&self, stats: &GroupStats, imbalance_pct: u64, group: SchedGroupId) -> GroupRoom {
        let waits = self.shared.generation.pelt.runnable == RunnableKind::TaskCount
            && stats.capacity * imbalance_pct < stats.runnable * 100;
        let full = stats.capacity * 100 < stats.util * imbalance_pct;
        let has_room = stats.capacity * 100 > stats.util * imbalance_pct;
        if stats.nr_running > stats.weight && (full || waits) {
            return GroupRoom::Overloaded;
        }
        if self.domains.capacity_of_group(group).imbalance {
            return GroupRoom::Imbalanced;
        }
        if stats.misfit {
            return GroupRoom::Misfit;
        }
        if stats.nr_running < stats.weight || (!waits && has_room) {
            GroupRoom::Spare
        } else {
            GroupRoom::FullyBusy
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::SelectReason;
    use crate::select::{GivenCpu, Wakee};
    use crate::testbed::SchedulerTestbed;
    use crate::topology::{SmtNumbering, Topology};

    const SPARE: GroupStats = GroupStats {
        room: GroupRoom::Spare,
        load: 0,
        avg_load: 0,
        util: 0,
        runnable: 0,
        nr_running: 0,
        idle_cpus: 0,
        capacity: 4096,
        max_capacity: 1024,
        weight: 4,
        misfit: false,
    };

    fn bears(room: GroupRoom, avg_load: u64) -> GroupStats {
        GroupStats { room, avg_load, ..SPARE }
    }

    /// Two nodes of two caches of four CPUs, and a task that execs on CPU 0.
    fn machine(kernel: &str) -> (SchedulerTestbed, IdlestSearch) {
        let topology = Topology::regular(2, 2, 4, 1, SmtNumbering::Adjacent).expect("a machine");
        let mut bed = SchedulerTestbed::on(kernel, topology);
        let task = bed.spawn(0, 0);
        let avg = bed.scheduler.synced_avg(task);
        (bed, IdlestSearch { wakee: Wakee { task, here: Cpu(0), prev: Cpu(0) }, avg, is_new: false })
    }

    /// The domains of CPU 0: its cache, its node, both nodes.
    fn level(bed: &SchedulerTestbed, level: usize) -> DomainId {
        bed.scheduler.domains.ids_of(Cpu(0)).nth(level).expect("a level")
    }

    #[test]
    fn the_idlest_group_is_told_by_its_room_and_then_by_what_matters_there() {
        let idlest = |kernel: &str, groups: &[GroupStats]| {
            let (bed, _) = machine(kernel);
            let mut so_far: Option<(usize, GroupStats)> = None;
            for (index, group) in groups.iter().enumerate() {
                if bed.scheduler.is_idler(so_far.as_ref().map(|(_, group)| group), group) {
                    so_far = Some((index, *group));
                }
            }
            so_far.map(|(index, _)| index)
        };
        use GroupRoom::{FullyBusy, Imbalanced, Misfit, Overloaded, Spare};
        assert_eq!(
            idlest(
                "v6.6",
                &[Overloaded, Imbalanced, Misfit, FullyBusy, Spare, Spare].map(|room| bears(room, 5))
            ),
            Some(4)
        );
        for room in [Overloaded, FullyBusy] {
            let groups = [7, 5, 5, 6].map(|load| bears(room, load));
            assert_eq!(idlest("v6.6", &groups), Some(1), "{room:?}: the least loaded, the first of equals");
        }
        assert_eq!(idlest("v6.6", &[7, 5].map(|load| bears(Imbalanced, load))), Some(0));
        let misfits = [512, 1024, 1024].map(|max_capacity| GroupStats { max_capacity, ..bears(Misfit, 0) });
        assert_eq!(idlest("v6.6", &misfits), Some(1), "the one with the biggest CPU");
        let idle = |idle_cpus, util| GroupStats { idle_cpus, util, ..SPARE };
        assert_eq!(idlest("v6.6", &[idle(1, 0), idle(2, 9), idle(2, 8), idle(2, 8)]), Some(2));
        assert_eq!(
            idlest("v5.8", &[idle(1, 0), idle(2, 9), idle(2, 8)]),
            Some(1),
            "utilization counts from v5.9 on"
        );
        assert_eq!(idlest("v6.6", &[bears(Overloaded, u64::from(u32::MAX))]), None, "as busy as can be");
    }

    #[test]
    fn a_task_stays_unless_another_group_is_clearly_better() {
        let (bed, seeker) = machine("v6.6");
        let stays = |at: usize, here: GroupStats, there: GroupStats| {
            let local = bed.scheduler.domains.local_group(level(&bed, at));
            bed.scheduler.stays_local(level(&bed, at), seeker, local, &here, &there)
        };
        // Within a node the other must bear 17 % less, and less by a sixth of a task of nice 0: 1024 * 17 / 100 = 174.
        for room in [GroupRoom::Overloaded, GroupRoom::FullyBusy] {
            let stays = |at, here, there| stays(at, bears(room, here), bears(room, there));
            assert!(stays(1, 1170, 1000) && !stays(1, 1171, 1000), "{room:?}");
            assert!(stays(1, 1000, 1174) && stays(1, 0, 0), "{room:?}");
            assert!(!stays(1, 200, 100), "{room:?}");
            assert!(
                stays(2, 1174, 1000) && !stays(2, 1175, 1000),
                "{room:?}: between nodes by that much, too"
            );
            assert!(stays(2, 274, 100) && !stays(2, 275, 100), "{room:?}");
        }
        assert!(stays(1, bears(GroupRoom::Imbalanced, 900), bears(GroupRoom::Imbalanced, 0)));
        let misfit = |max_capacity| GroupStats { max_capacity, ..bears(GroupRoom::Misfit, 0) };
        assert!(stays(1, misfit(512), misfit(512)) && !stays(1, misfit(512), misfit(513)));
        let idle = |idle_cpus, nr_running| GroupStats { idle_cpus, nr_running, ..SPARE };
        assert!(stays(1, idle(2, 2), idle(2, 2)) && !stays(1, idle(2, 2), idle(3, 1)));
    }

    #[test]
    fn between_nodes_few_tasks_stay_together() {
        let stays = |kernel: &str, here: (u32, u32), there: u32| {
            let (mut bed, seeker) = machine(kernel);
            let id = level(&bed, 2);
            bed.scheduler.domains.domain_mut(id).imb_numa_nr = 3;
            let local = bed.scheduler.domains.local_group(id);
            let stats = |idle_cpus, nr_running| GroupStats { idle_cpus, nr_running, weight: 8, ..SPARE };
            bed.scheduler.stays_local(id, seeker, local, &stats(here.1, here.0), &stats(there, 0))
        };
        assert_eq!([1, 0].map(|idle| stays("v5.10", (7, idle), 8)), [true, false], "while a CPU idles");
        assert_eq!([3, 4].map(|tasks| stays("v5.11", (tasks, 4), 8)), [true, false], "a quarter of 16");
        assert_eq!(
            [0, 1].map(|tasks| stays("v5.18-e496132ebedd", (tasks, 4), 8)),
            [true, false],
            "a quarter of 8, itself counted"
        );
        assert_eq!([2, 3].map(|tasks| stays("v5.18", (tasks, 4), 8)), [true, false], "imb_numa_nr");
        assert_eq!([2, 3].map(|tasks| stays("v6.6", (tasks, 6), 8)), [true, false]);
        assert_eq!([6, 5].map(|idle| stays("v6.6", (2, idle), 8)), [true, false], "a small difference");
    }

    #[test]
    fn between_nodes_with_cpus_to_spare_a_task_goes_to_the_one_that_it_prefers() {
        let (mut bed, seeker) = machine("v6.6");
        let (nodes, cores) = (level(&bed, 2), level(&bed, 1));
        let groups = bed.scheduler.domains.groups(nodes).collect::<Vec<_>>();
        let local = bed.scheduler.domains.local_group(nodes);
        let other = groups.into_iter().find(|&group| group != local).expect("another node");
        let mut stays = |domain, node, room| {
            bed.scheduler.shared.tasks[seeker.wakee.task.index()].preferred_node = node;
            let here = GroupStats { room, ..SPARE };
            bed.scheduler.stays_preferred(domain, seeker, Cpu(0), other, &here)
        };
        let there = 1;
        assert_eq!(stays(nodes, Some(0), GroupRoom::Spare), Some(true));
        assert_eq!(stays(nodes, Some(there), GroupRoom::Spare), Some(false));
        assert_eq!(stays(nodes, Some(7), GroupRoom::Spare), None, "it is neither");
        assert_eq!(stays(nodes, None, GroupRoom::Spare), None);
        assert_eq!(stays(nodes, Some(there), GroupRoom::Overloaded), None, "loads decide");
        assert_eq!(stays(cores, Some(0), GroupRoom::Spare), None, "within a node");
    }

    #[test]
    fn a_group_has_room_by_tasks_use_and_waiting() {
        let room = |kernel: &str, nr_running, util, runnable| {
            let (bed, _) = machine(kernel);
            let local = bed.scheduler.domains.local_group(level(&bed, 1));
            bed.scheduler.room_of(&GroupStats { nr_running, util, runnable, ..SPARE }, 117, local)
        };
        // 4096 of capacity: full from 3500.85 of use, waited for from 4792.3 runnable.
        assert_eq!(
            [3, 4].map(|tasks| room("v6.6", tasks, 4096, 4096)),
            [GroupRoom::Spare, GroupRoom::FullyBusy]
        );
        assert_eq!(
            [3500, 3501].map(|util| room("v6.6", 4, util, 4096)),
            [GroupRoom::Spare, GroupRoom::FullyBusy]
        );
        assert_eq!(
            [3500, 3501].map(|util| room("v6.6", 5, util, 4096)),
            [GroupRoom::Spare, GroupRoom::Overloaded]
        );
        assert_eq!(
            [4792, 4793].map(|runnable| room("v6.6", 5, 100, runnable)),
            [GroupRoom::Spare, GroupRoom::Overloaded]
        );
        assert_eq!(
            [4792, 4793].map(|runnable| room("v6.6", 4, 100, runnable)),
            [GroupRoom::Spare, GroupRoom::FullyBusy]
        );
        assert_eq!(room("v5.6", 5, 100, 4793), GroupRoom::Spare, "waiting counts from v5.7 on");
    }

    #[test]
    fn affinity_and_size_come_between() {
        let (mut bed, _) = machine("v6.6");
        let local = bed.scheduler.domains.local_group(level(&bed, 1));
        let misfit = GroupStats { misfit: true, ..SPARE };
        assert_eq!(bed.scheduler.room_of(&misfit, 117, local), GroupRoom::Misfit);
        bed.scheduler.domains.capacity_of_group_mut(local).imbalance = true;
        assert_eq!(bed.scheduler.room_of(&misfit, 117, local), GroupRoom::Imbalanced);
        let overloaded = GroupStats { nr_running: 5, util: 4096, ..misfit };
        assert_eq!(bed.scheduler.room_of(&overloaded, 117, local), GroupRoom::Overloaded);
    }

    #[test]
    fn what_is_known_of_a_cpus_idleness_counts_before_the_cores_state() {
        let idle_cpus = |given: &[GivenCpu]| {
            let (mut bed, seeker) = machine("v6.6");
            bed.spawn(0, 3);
            bed.scheduler.give_cpus(given);
            let id = level(&bed, 1);
            let local = bed.scheduler.domains.local_group(id);
            bed.scheduler.wakeup_stats(id, local, seeker).idle_cpus
        };
        let is_idle = |idle| GivenCpu { idle: Some(idle), nr_running: Some(0) };
        assert_eq!(idle_cpus(&[]), 3, "CPU 0 but for the task itself, 1 and 2");
        let [busy, idle] = [false, true].map(is_idle);
        assert_eq!(idle_cpus(&[GivenCpu::default(), busy, idle, busy]), 2);
        assert_eq!(idle_cpus(&[GivenCpu::default(), idle, idle, idle]), 4);
        assert_eq!(idle_cpus(&[busy]), 3, "without the task it idles");
    }

    /// A task that execs is not there any more where it was.
    #[test]
    fn what_a_group_bears_is_summed_up_without_the_task_itself() {
        let stats = |kernel: &str, others: u32| {
            let (mut bed, seeker) = machine(kernel);
            for _ in 0..others {
                bed.spawn(0, 1);
            }
            let id = level(&bed, 1);
            let local = bed.scheduler.domains.local_group(id);
            let root = bed.scheduler.rqs[1].cfs;
            let avg = &mut bed.scheduler.cfs_mut(root).tracked.avg;
            (avg.load_avg, avg.util_avg, avg.runnable_avg) = (5000, 900, 6000);
            bed.scheduler.wakeup_stats(id, local, seeker)
        };
        let alone = stats("v6.6", 0);
        assert_eq!((alone.nr_running, alone.idle_cpus, alone.room), (0, 4, GroupRoom::Spare));
        assert_eq!(stats("11f10e5420f6", 0).nr_running, 1, "it counted");
        let with_others = stats("v6.6", 5);
        assert_eq!(
            (with_others.nr_running, with_others.idle_cpus, with_others.room),
            (5, 3, GroupRoom::Overloaded)
        );
        // What it bears of its queue is rounded down.
        assert_eq!(
            (with_others.load, with_others.runnable),
            (5001, 6000),
            "its own averages are taken off CPU 0"
        );
        assert_eq!(with_others.avg_load, 5001 * 1024 / 4096, "for each unit of capacity");
        assert_eq!(alone.avg_load, 0, "what has room needs no load");
    }

    #[test]
    fn a_cpu_with_a_wakeup_on_its_way_does_not_idle() {
        let (mut bed, seeker) = machine("v6.6");
        assert!(bed.scheduler.idle_cpu_without(Cpu(1), seeker, true));
        bed.scheduler.ttwu_pending(Cpu(1));
        assert!(!bed.scheduler.idle_cpu_without(Cpu(1), seeker, true));
        assert!(bed.scheduler.idle_cpu_without(Cpu(0), seeker, true), "only the task itself runs there");
        assert!(!bed.scheduler.idle_cpu_without(Cpu(0), seeker, false));
        bed.spawn(0, 2);
        assert!(!bed.scheduler.idle_cpu_without(Cpu(2), seeker, true), "another one does");
    }

    #[test]
    fn a_group_without_allowed_cpus_is_passed_over() {
        let (mut bed, seeker) = machine("v6.6");
        bed.scheduler.shared.tasks[seeker.wakee.task.index()].allowed = [0, 6].map(Cpu).into_iter().collect();
        for cpu in 0..4 {
            bed.spawn(0, cpu);
            bed.spawn(0, cpu);
        }
        let decision = bed.scheduler.select_task_rq(seeker.wakee.task, Cpu(0), crate::WakeKind::Exec);
        assert_eq!((decision.cpu, decision.reason), (Cpu(6), SelectReason::IdlestInGroup));
        assert!(decision.search.own_load_asked, "it ran where it is asked for");
        let new = bed.scheduler.select_task_rq(seeker.wakee.task, Cpu(0), crate::WakeKind::Fork);
        assert!(new.search.own_load_asked == (seeker.avg.last_update_time != 0), "a new one has not run");
    }
}
