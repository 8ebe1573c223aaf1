//! The idlest group by type, from v5.5: what is idle, what has room, what bears least.

use fairlab_event::Cpu;

use super::Seeker;
use crate::core::Scheduler;
use crate::domain::{DomainId, SchedGroupId, SdFlags};
use crate::pelt::RunnableKind;
use crate::select::rules::{ForkNuma, IdlestCounts, IdlestLoad, IdlestSelf, IdlestTie};

/// How much room a group has, the most first (`enum group_type`, as far as wakeups come to it).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Room {
    Spare,
    FullyBusy,
    Misfit,
    Imbalanced,
    Overloaded,
}

/// What wakeups know of a group (`struct sg_lb_stats`).
#[derive(Clone, Copy, Debug)]
struct GroupStats {
    room: Room,
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
    /// Departs: no NUMA balancing, so that no task prefers a node.
    pub(super) fn idlest_group_by_type(
        &self,
        domain: DomainId,
        seeker: Seeker,
        this_cpu: Cpu,
    ) -> Option<SchedGroupId> {
        let mut local = None;
        let mut idlest: Option<(SchedGroupId, GroupStats)> = None;
        for group in self.domains.groups(domain) {
            let span = self.domains.group(group).span;
            if span.and(&self.tasks[seeker.wakee.task.index()].allowed).is_empty() {
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
            std::cmp::Ordering::Equal => self.stays_local(domain, seeker, local_group, &here, &there),
        };
        (!stays).then_some(group)
    }

    /// Whether a group is idler than the idlest so far.
    ///
    /// Kernel: `update_pick_idlest()`, kernel/sched/fair.c.
    fn is_idler(&self, idlest: Option<&GroupStats>, group: &GroupStats) -> bool {
        let Some(idlest) = idlest else {
            // The kernel starts with an overloaded group of endless load.
            return !matches!(group.room, Room::Overloaded) || group.avg_load < u64::from(u32::MAX);
        };
        match group.room.cmp(&idlest.room) {
            std::cmp::Ordering::Less => return true,
            std::cmp::Ordering::Greater => return false,
            std::cmp::Ordering::Equal => {}
        }
        match group.room {
            Room::Overloaded | Room::FullyBusy => idlest.avg_load > group.avg_load,
            Room::Imbalanced => false,
            Room::Misfit => idlest.max_capacity < group.max_capacity,
            Room::Spare if idlest.idle_cpus == group.idle_cpus => {
                self.generation.select.idlest_tie == IdlestTie::LeastUtilized && idlest.util > group.util
            }
            Room::Spare => idlest.idle_cpus < group.idle_cpus,
        }
    }

    /// Whether the task stays in its local group, which has about as much room as the idlest other one.
    fn stays_local(
        &self,
        domain: DomainId,
        seeker: Seeker,
        local: SchedGroupId,
        here: &GroupStats,
        there: &GroupStats,
    ) -> bool {
        let sd = self.domains.domain(domain);
        let pct = u64::from(sd.imbalance_pct);
        let numa = sd.flags.has(SdFlags::NUMA);
        match here.room {
            Room::Overloaded | Room::FullyBusy => {
                let imbalance = NICE_0_LOAD * (pct - 100) / 100;
                (numa && there.avg_load + imbalance >= here.avg_load)
                    || there.avg_load >= here.avg_load + imbalance
                    || 100 * here.avg_load <= pct * there.avg_load
            }
            Room::Imbalanced => true,
            Room::Misfit => here.max_capacity >= there.max_capacity,
            Room::Spare => {
                (numa && self.stays_on_node(domain, seeker, local, here, there))
                    || here.idle_cpus >= there.idle_cpus
            }
        }
    }

    fn stays_on_node(
        &self,
        domain: DomainId,
        seeker: Seeker,
        local: SchedGroupId,
        here: &GroupStats,
        there: &GroupStats,
    ) -> bool {
        let sd = self.domains.domain(domain);
        match self.generation.select.fork_numa {
            ForkNuma::AnyIdle => here.idle_cpus > 0,
            ForkNuma::QuarterOfDomain => here.nr_running < sd.span_weight >> 2,
            ForkNuma::QuarterOfNode => here.nr_running + 1 < here.weight >> 2,
            ForkNuma::ImbNumaNr => here.nr_running < sd.imb_numa_nr,
            ForkNuma::SmallDifference => {
                let allowed = &self.tasks[seeker.wakee.task.index()].allowed;
                let usable = self.domains.group(local).span.and(allowed).weight() as u32;
                let within = here.nr_running < sd.imb_numa_nr.min(usable);
                within && here.idle_cpus.abs_diff(there.idle_cpus) <= NUMA_IMBALANCE_MIN
            }
        }
    }

    /// Kernel: `update_sg_wakeup_stats()`, kernel/sched/fair.c.
    fn wakeup_stats(&self, domain: DomainId, group: SchedGroupId, seeker: Seeker) -> GroupStats {
        let rules = self.generation.select;
        let (known, capacity) = (self.domains.group(group), self.domains.capacity_of_group(group));
        let asymmetric = self.domains.domain(domain).flags.has(SdFlags::ASYM_CPUCAPACITY);
        let mut stats = GroupStats {
            room: Room::Spare,
            load: 0,
            avg_load: 0,
            util: 0,
            runnable: 0,
            nr_running: 0,
            idle_cpus: 0,
            capacity: capacity.capacity,
            max_capacity: capacity.max_capacity,
            weight: known.weight,
            misfit: asymmetric && !self.util_fits(&seeker.avg, capacity.max_capacity),
        };
        let counted = match rules.idlest_counts {
            IdlestCounts::EveryCpu => known.span,
            IdlestCounts::AllowedCpus => known.span.and(&self.tasks[seeker.wakee.task.index()].allowed),
        };
        for cpu in counted.iter() {
            self.add_cpu(&mut stats, cpu, seeker);
        }
        stats.room = self.room_of(&stats, u64::from(self.domains.domain(domain).imbalance_pct), group);
        let has_load = match rules.idlest_load {
            IdlestLoad::WithSpare => stats.room < Room::FullyBusy,
            IdlestLoad::WhenBusy => matches!(stats.room, Room::FullyBusy | Room::Overloaded),
        };
        if has_load {
            stats.avg_load = stats.load * 1024 / stats.capacity;
        }
        stats
    }

    fn add_cpu(&self, stats: &mut GroupStats, cpu: Cpu, seeker: Seeker) {
        let task = seeker.wakee.task;
        let avg = self.avg_of(cpu);
        let takes_off = self.generation.select.idlest_self == IdlestSelf::TakenOff;
        let is_here = self.counts_on(cpu, seeker);
        let own_load = if takes_off && is_here { self.task_h_load(task) } else { 0 };
        let own_runnable = if is_here { seeker.avg.runnable_avg } else { 0 };
        stats.load += self.cpu_load(cpu).saturating_sub(own_load);
        stats.util += self.cpu_util_without(cpu, seeker);
        stats.runnable += avg.runnable_avg.saturating_sub(own_runnable);
        let own = u32::from(takes_off && self.task_runs_on(task, cpu));
        let nr_running = self.queued_on(cpu).saturating_sub(own);
        stats.nr_running += nr_running;
        stats.idle_cpus += u32::from(nr_running == 0 && self.idle_cpu_without(cpu, seeker, takes_off));
    }

    /// Kernel: `idle_cpu_without()`, kernel/sched/fair.c.
    fn idle_cpu_without(&self, cpu: Cpu, seeker: Seeker, takes_off: bool) -> bool {
        let rq = &self.rqs[cpu.index()];
        let own = takes_off && rq.curr == seeker.wakee.task;
        (rq.curr == rq.idle || own) && rq.ttwu_pending == 0
    }

    /// Kernel: `group_classify()`, kernel/sched/fair.c; waiting counts from v5.7 (070f5e860ee2).
    fn room_of(&self, stats: &GroupStats, imbalance_pct: u64, group: SchedGroupId) -> Room {
        let waits = self.generation.pelt.runnable == RunnableKind::TaskCount
            && stats.capacity * imbalance_pct < stats.runnable * 100;
        let full = stats.capacity * 100 < stats.util * imbalance_pct;
        let has_room = stats.capacity * 100 > stats.util * imbalance_pct;
        if stats.nr_running > stats.weight && (full || waits) {
            return Room::Overloaded;
        }
        if self.domains.capacity_of_group(group).imbalance {
            return Room::Imbalanced;
        }
        if stats.misfit {
            return Room::Misfit;
        }
        if stats.nr_running < stats.weight || (!waits && has_room) { Room::Spare } else { Room::FullyBusy }
    }
}
