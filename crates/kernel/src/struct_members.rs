//! What a task, a fair queue and a runqueue hold, by the kernel's own names of the members.
//!
//! Used to compare the model with a kernel whose memory can be read, and to print both. A member that the generation does not
//! have is left out, so that both sides show the members that both have.
//!
//! Must not know: where the values of the other side come from, which difference matters.

use fairlab_event::Cpu;

use crate::entity::SeId;
use crate::fair::rules::{Placement, SliceProtection};
use crate::group::GroupId;
use crate::scheduler::Scheduler;
use crate::task::{OnRq, TaskId};

macro_rules! members {
    ($($(#[$doc:meta])* $member:ident $name:literal,)*) => {
        /// A member of one of the kernel's structures.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum StructMember {
            $($(#[$doc])* $member,)*
        }

        impl StructMember {
            /// Every member.
            pub const ALL: &[StructMember] = &[$(StructMember::$member,)*];

            /// Its path, from the structure that messages name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(StructMember::$member => $name,)*
                }
            }
        }
    };
}

members! {
    /// The CPU of a task.
    TaskCpu "cpu",
    /// Whether a task is queued, 0 or 1; a sleeper that was left on its queue is.
    TaskOnRq "on_rq",
    /// Whether a task sleeps on its queue, 0 or 1.
    SchedDelayed "se.sched_delayed",
    /// An entity's place on the virtual time line, ns.
    Vruntime "se.vruntime",
    /// Its virtual deadline, ns.
    Deadline "se.deadline",
    /// Its lag, ns, or what stands there while it runs.
    Vlag "se.vlag",
    /// Its request, ns.
    Slice "se.slice",
    /// Where the running entity's protection ends, ns.
    Vprot "se.vprot",
    /// Its weight, scaled up.
    EntityWeight "se.load.weight",
    /// How long it has run, ns.
    SumExecRuntime "se.sum_exec_runtime",
    /// How long it had run when it was last picked, ns.
    PrevSumExecRuntime "se.prev_sum_exec_runtime",
    /// Its average load.
    EntityLoadAvg "se.avg.load_avg",
    /// Its average of being runnable, of 1024.
    EntityRunnableAvg "se.avg.runnable_avg",
    /// Its average of running, of 1024.
    EntityUtilAvg "se.avg.util_avg",
    /// The sum that its average load is made of.
    EntityLoadSum "se.avg.load_sum",
    /// The sum that its average of being runnable is made of.
    EntityRunnableSum "se.avg.runnable_sum",
    /// The sum that its average of running is made of.
    EntityUtilSum "se.avg.util_sum",
    /// When its averages were last aged, ns.
    EntityLastUpdate "se.avg.last_update_time",
    /// How often a task wakes another one than last time.
    WakeeFlips "wakee_flips",
    /// The CPU that a task used before its last one.
    RecentUsedCpu "recent_used_cpu",
    /// Entities on a queue (`nr_queued` from v6.14).
    NrRunning "cfs_rq.nr_running",
    /// Tasks below it (`h_nr_queued` from v6.14).
    HNrRunning "cfs_rq.h_nr_running",
    /// Its weight, scaled up.
    QueueWeight "cfs_rq.load.weight",
    /// Zero of its time line: `min_vruntime`, `zero_vruntime` from v6.19, ns.
    QueueZero "cfs_rq.min_vruntime",
    /// Weighted keys of those who wait (`sum_w_vruntime` from v6.19).
    SumOfKeys "cfs_rq.avg_vruntime",
    /// Weight of those who wait (`sum_weight` from v6.19).
    SumOfWeights "cfs_rq.avg_load",
    /// Its average load.
    QueueLoadAvg "cfs_rq.avg.load_avg",
    /// Its average of runnable tasks.
    QueueRunnableAvg "cfs_rq.avg.runnable_avg",
    /// Its average utilization.
    QueueUtilAvg "cfs_rq.avg.util_avg",
    /// The sum that its average load is made of.
    QueueLoadSum "cfs_rq.avg.load_sum",
    /// The sum that its average of runnable tasks is made of.
    QueueRunnableSum "cfs_rq.avg.runnable_sum",
    /// The sum that its average utilization is made of.
    QueueUtilSum "cfs_rq.avg.util_sum",
    /// When its averages were last aged, ns.
    QueueLastUpdate "cfs_rq.avg.last_update_time",
    /// What it has added to its group's load.
    TgLoadAvgContrib "cfs_rq.tg_load_avg_contrib",
    /// What is left of its slice of the group's quota, ns.
    RuntimeRemaining "cfs_rq.runtime_remaining",
    /// Whether it waits for runtime, 0 or 1.
    Throttled "cfs_rq.throttled",
    /// Queued tasks of all classes.
    RqNrRunning "rq.nr_running",
    /// How long the CPU idles at a time, ns.
    AvgIdle "rq.avg_idle",
    /// The dearest new-idle balancing of late, ns.
    MaxIdleBalanceCost "rq.max_idle_balance_cost",
    /// When it balances next, jiffies.
    NextBalance "rq.next_balance",
    /// Since when it idles, ns; 0 while it does not.
    IdleStamp "rq.idle_stamp",
    /// Whether there may be a wholly idle core under its cache, 0 or 1.
    HasIdleCores "sd_llc_shared.has_idle_cores",
    /// How many CPUs a search under its cache looks at.
    NrIdleScan "sd_llc_shared.nr_idle_scan",
    /// CPUs under its cache that do not idle with their tick stopped.
    NrBusyCpus "sd_llc_shared.nr_busy_cpus",
    /// Of its smallest domain: tries in a row that found an imbalance and moved nothing.
    NrBalanceFailed "sd.nr_balance_failed",
    /// Of its smallest domain: time between two balancings, ms.
    BalanceInterval "sd.balance_interval",
    /// Of its smallest domain: when it was balanced last, jiffies.
    LastBalance "sd.last_balance",
    /// Of its smallest domain: the dearest new-idle balancing of late, ns.
    MaxNewidleLbCost "sd.max_newidle_lb_cost",
    /// Of the domain above it: tries in a row that failed.
    ParentNrBalanceFailed "sd.parent.nr_balance_failed",
    /// Of the domain above it: time between two balancings, ms.
    ParentBalanceInterval "sd.parent.balance_interval",
    /// Of the domain above it: when it was balanced last, jiffies.
    ParentLastBalance "sd.parent.last_balance",
    /// Of the domain above it: the dearest new-idle balancing of late, ns.
    ParentMaxNewidleLbCost "sd.parent.max_newidle_lb_cost",
    /// Of the domain two above it: tries in a row that failed.
    GrandparentNrBalanceFailed "sd.parent.parent.nr_balance_failed",
    /// Of the domain two above it: time between two balancings, ms.
    GrandparentBalanceInterval "sd.parent.parent.balance_interval",
    /// Of the domain two above it: when it was balanced last, jiffies.
    GrandparentLastBalance "sd.parent.parent.last_balance",
    /// Of the domain two above it: the dearest new-idle balancing of late, ns.
    GrandparentMaxNewidleLbCost "sd.parent.parent.max_newidle_lb_cost",
    /// Whether what sleepers left is to be aged, 0 or 1.
    HasBlockedLoad "rq.has_blocked_load",
    /// When that was aged last, jiffies.
    LastBlockedLoadUpdate "rq.last_blocked_load_update_tick",
    /// Whether some CPU has tasks to spare, as balancing last saw it, 0 or 1 (`overloaded` from v6.10).
    RdOverload "rd.overload",
    /// What its queued tasks are expected to use, of 1024 (root queues).
    QueueUtilEst "cfs_rq.avg.util_est",
}

/// What is shown of a CPU's domains, the smallest first: tries that failed, the interval, when they were balanced last, the cost.
pub const DOMAIN_MEMBERS: [[StructMember; 4]; 3] = [
    [
        StructMember::NrBalanceFailed,
        StructMember::BalanceInterval,
        StructMember::LastBalance,
        StructMember::MaxNewidleLbCost,
    ],
    [
        StructMember::ParentNrBalanceFailed,
        StructMember::ParentBalanceInterval,
        StructMember::ParentLastBalance,
        StructMember::ParentMaxNewidleLbCost,
    ],
    [
        StructMember::GrandparentNrBalanceFailed,
        StructMember::GrandparentBalanceInterval,
        StructMember::GrandparentLastBalance,
        StructMember::GrandparentMaxNewidleLbCost,
    ],
];

/// Members with their values, in the order of [`StructMember`].
pub type StructMembers = Vec<(StructMember, i64)>;

impl Scheduler {
    /// What a task holds. A time line means nothing to one that is not queued; averages and counts remain.
    pub fn members_of_task(&self, id: TaskId, into: &mut StructMembers) {
        let task = &self.shared.tasks[id.index()];
        let delayed = matches!(task.on_rq, OnRq::Delayed(_));
        let on_rq = delayed || task.on_rq == OnRq::Queued;
        into.push((StructMember::TaskCpu, i64::from(task.cpu.0)));
        into.push((StructMember::TaskOnRq, i64::from(on_rq)));
        if self.shared.generation.fair.placement == Placement::Lag {
            into.push((StructMember::SchedDelayed, i64::from(delayed)));
        }
        if task.policy.is_fair() {
            self.members_of_entity(task.se, into);
        }
        into.push((StructMember::WakeeFlips, i64::from(task.wakee_flips)));
        into.push((StructMember::RecentUsedCpu, i64::from(task.recent_used_cpu.0)));
    }

    fn members_of_entity(&self, se: SeId, into: &mut StructMembers) {
        let entity = self.se(se);
        if entity.on_rq {
            into.push((StructMember::Vruntime, entity.vruntime.0 as i64));
            if self.shared.generation.fair.placement == Placement::Lag {
                into.push((StructMember::Deadline, entity.deadline.0 as i64));
                into.push((StructMember::Slice, entity.slice as i64));
            }
            // Of one that waits nobody asks for it.
            let ends_at_place =
                self.shared.generation.fair.slice_protection == SliceProtection::UntilShortestRequest;
            if ends_at_place && self.cfs(entity.cfs_rq).curr == Some(se) {
                into.push((StructMember::Vprot, entity.protected_until.0 as i64));
            }
        } else if self.shared.generation.fair.placement == Placement::Lag {
            into.push((StructMember::Vlag, entity.vlag));
        }
        into.push((StructMember::EntityWeight, entity.load.raw() as i64));
        into.push((StructMember::SumExecRuntime, entity.sum_exec_runtime as i64));
        into.push((StructMember::PrevSumExecRuntime, entity.prev_sum_exec_runtime as i64));
        into.push((StructMember::EntityLoadAvg, entity.avg.load_avg as i64));
        into.push((StructMember::EntityRunnableAvg, entity.avg.runnable_avg as i64));
        into.push((StructMember::EntityUtilAvg, entity.avg.util_avg as i64));
        into.push((StructMember::EntityLoadSum, entity.avg.load_sum as i64));
        into.push((StructMember::EntityRunnableSum, entity.avg.runnable_sum as i64));
        into.push((StructMember::EntityUtilSum, i64::from(entity.avg.util_sum)));
        into.push((StructMember::EntityLastUpdate, entity.avg.last_update_time as i64));
    }

    /// What a group's queue of one CPU holds, and its entity where there is one.
    pub fn members_of_queue(&self, cpu: Cpu, group: GroupId, into: &mut StructMembers) {
        let group = &self.shared.groups[group.0 as usize];
        if let Some(&entity) = group.entities.get(cpu.index()) {
            self.members_of_entity(entity, into);
        }
        let queue = self.cfs(group.cfs_rqs[cpu.index()]);
        into.push((StructMember::NrRunning, i64::from(queue.nr_running)));
        into.push((StructMember::HNrRunning, i64::from(queue.h_nr_running)));
        into.push((StructMember::QueueWeight, queue.load.raw() as i64));
        into.push((StructMember::QueueZero, queue.min_vruntime.0 as i64));
        if self.shared.generation.fair.placement == Placement::Lag {
            into.push((StructMember::SumOfKeys, queue.waiting_keys()));
            into.push((StructMember::SumOfWeights, queue.waiting_load()));
        }
        let tracked = &queue.tracked;
        into.push((StructMember::QueueLoadAvg, tracked.avg.load_avg as i64));
        into.push((StructMember::QueueRunnableAvg, tracked.avg.runnable_avg as i64));
        into.push((StructMember::QueueUtilAvg, tracked.avg.util_avg as i64));
        into.push((StructMember::QueueLoadSum, tracked.avg.load_sum as i64));
        into.push((StructMember::QueueRunnableSum, tracked.avg.runnable_sum as i64));
        into.push((StructMember::QueueUtilSum, i64::from(tracked.avg.util_sum)));
        into.push((StructMember::QueueLastUpdate, tracked.avg.last_update_time as i64));
        into.push((StructMember::TgLoadAvgContrib, tracked.tg_load_avg_contrib as i64));
        if queue.runtime.enabled {
            into.push((StructMember::RuntimeRemaining, queue.runtime.remaining));
            into.push((StructMember::Throttled, i64::from(queue.runtime.throttled)));
        }
    }

    /// What a runqueue holds beside its queues, and its smallest domain.
    pub fn members_of_rq(&self, cpu: Cpu, into: &mut StructMembers) {
        let rq = &self.rqs[cpu.index()];
        let idle = &rq.idle_time;
        into.push((StructMember::RqNrRunning, i64::from(rq.nr_running)));
        into.push((StructMember::AvgIdle, idle.avg_idle as i64));
        into.push((StructMember::MaxIdleBalanceCost, idle.max_idle_balance_cost as i64));
        into.push((StructMember::NextBalance, self.balance.cpus[cpu.index()].next_balance as i64));
        into.push((StructMember::IdleStamp, idle.idle_stamp.map_or(0, |stamp| stamp.0 as i64)));
        if let Some(shared) = self.domains.of_cpu(cpu).sd_llc_shared {
            let shared = self.domains.shared(shared);
            into.push((StructMember::HasIdleCores, i64::from(shared.has_idle_cores)));
            into.push((StructMember::NrIdleScan, i64::from(shared.nr_idle_scan)));
            into.push((StructMember::NrBusyCpus, i64::from(shared.nr_busy_cpus)));
        }
        for (sd, members) in self.domains.domains_of(cpu).iter().zip(DOMAIN_MEMBERS) {
            let sd = &sd.balance;
            let values = [
                sd.nr_balance_failed.into(),
                sd.balance_interval.into(),
                sd.last_balance as i64,
                sd.max_newidle_lb_cost as i64,
            ];
            into.extend(members.into_iter().zip(values));
        }
        let balance = &self.balance.cpus[cpu.index()];
        into.push((StructMember::HasBlockedLoad, i64::from(balance.has_blocked_load)));
        into.push((StructMember::LastBlockedLoadUpdate, balance.last_blocked_load_update_tick as i64));
        into.push((StructMember::RdOverload, i64::from(self.shared.overloaded)));
        let root = self.cfs(rq.cfs);
        into.push((StructMember::QueueUtilEst, root.tracked.avg.util_est.enqueued.into()));
    }

    /// The queued fair tasks of a CPU, the one that ran longest ago first (`rq->cfs_tasks`).
    pub fn fair_tasks_of(&self, cpu: Cpu, into: &mut Vec<TaskId>) {
        into.extend(self.rqs[cpu.index()].cfs_tasks.oldest_first(&self.shared.tasks));
    }
}
