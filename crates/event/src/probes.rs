//! The list of probes: which kernel functions are probed, and what is fetched there.
//!
//! A recorder of booted kernels installs these probes, the model prints them with its own values, and verification reads
//! both. A row names the functions (over the releases, newest first) and their parameters. For each value it has the printed
//! name and the C expression that finds it; `|` separates the expressions of several releases. Kernels that run elsewhere can
//! be probed by these rows, too.
//!
//! Must not know: how an expression becomes an address, what a value means to its reader.

mod names;
mod text;

pub use names::{CpuField, ProbeField, ProbePoint};
pub use text::ProbeText;

use ProbeField::*;
use ProbePoint as At;

/// A value, and where it is found: `parameter->member.inner->member`, `(struct)parameter->member` where the parameter has
/// another type, `parameter<struct.member>->other` for the structure that holds what the parameter points to, `retval`,
/// `:type` at the end where the type's own is not wanted.
pub type ProbeFetch = (ProbeField, &'static str);

/// Whether a probe stands where a function begins or where it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeSide {
    /// Where it begins.
    Entry,
    /// Where it returns.
    Return,
}

/// Which kernels and recordings have a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeOn {
    /// All recordings: its function is called too rarely to disturb.
    Rare,
    /// Recordings with probes.
    Every,
    /// Recordings with probes, of kernels whose probes at returns can tell arguments (v6.12 has both these and sleepers that stay
    /// queued).
    KeptArguments,
    /// Recordings with probes, of kernels before those.
    LostArguments,
    /// Recordings with probes, of kernels with lazy preemption, where other functions became part of their callers.
    Lazy,
}

/// One probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeSpec {
    /// Its name.
    pub point: ProbePoint,
    /// Where it stands in its function.
    pub side: ProbeSide,
    /// The kernels that have it.
    pub on: ProbeOn,
    /// The names that the function has had; the first that can be probed is.
    pub functions: &'static [&'static str],
    /// Its parameters, for kernels that do not describe it: a pointer's after the name of its structure.
    pub parameters: &'static [&'static str],
    /// What is fetched, in groups.
    pub fields: &'static [&'static [ProbeFetch]],
    /// Whether [`CPU_FIELDS`] of every CPU are fetched, too.
    pub of_each_cpu: bool,
}

/// The group of probes in tracefs that stand at calls too rare to disturb.
pub const RARE_GROUP: &str = "labmin";

/// The group of all others.
pub const GROUP: &str = "lab";

/// What is fetched of every CPU's runqueue: the path of a member from `struct rq`, and its type.
pub const CPU_FIELDS: [(CpuField, &str, &str); 5] = [
    (CpuField::LoadAvg, "cfs.avg.load_avg", "u64"),
    (CpuField::NrRunning, "nr_running", "u32"),
    (CpuField::AvgIdle, "avg_idle", "u64"),
    (CpuField::CurrentPid, "curr->pid", "s32"),
    (CpuField::WakeeFlips, "curr->wakee_flips", "u32"),
];

const CFS_RQ: &[ProbeFetch] = &[
    (CfsRq, "cfs_rq:x64"),
    (Cpu, "cfs_rq->rq->cpu"),
    (Cgroup, "cfs_rq->tg->css.cgroup->kn->id:u64"),
    (NrRunning, "cfs_rq->nr_queued|cfs_rq->nr_running:u32"),
    (QueueWeight, "cfs_rq->load.weight"),
    (Curr, "cfs_rq->curr"),
    (MinVruntime, "cfs_rq->min_vruntime:s64"),
    (AvgVruntime, "cfs_rq->sum_w_vruntime|cfs_rq->avg_vruntime:s64"),
    (AvgLoad, "cfs_rq->sum_weight|cfs_rq->avg_load:u64"),
    (Shift, "cfs_rq->sum_shift:u32"),
    (ZeroVruntime, "cfs_rq->zero_vruntime:s64"),
    (Next, "cfs_rq->next"),
    (Last, "cfs_rq->last"),
    (Skip, "cfs_rq->skip"),
];

const QUEUE_AVERAGES: &[ProbeFetch] = &[
    (LoadAvg, "cfs_rq->avg.load_avg"),
    (RunnableAvg, "cfs_rq->avg.runnable_avg"),
    (UtilAvg, "cfs_rq->avg.util_avg"),
    (LastUpdate, "cfs_rq->avg.last_update_time"),
];

const RQ_AVERAGES: &[ProbeFetch] = &[
    (LoadAvg, "rq->cfs.avg.load_avg"),
    (RunnableAvg, "rq->cfs.avg.runnable_avg"),
    (UtilAvg, "rq->cfs.avg.util_avg"),
    (LastUpdate, "rq->cfs.avg.last_update_time"),
];

const ENTITY: &[ProbeFetch] = &[
    (Entity, "se:x64"),
    (Pid, "se<task_struct.se>->pid"),
    (MyQueue, "se->my_q"),
    (Vruntime, "se->vruntime:s64"),
    (Deadline, "se->deadline:s64"),
    (Lag, "se->vlag:s64"),
    (Protected, "se->vprot:s64"),
];

const ENTITY_MORE: &[ProbeFetch] = &[
    (Weight, "se->load.weight"),
    (OnRq, "se->on_rq:u8"),
    (Slice, "se->slice:u64"),
    (Delayed, "se->sched_delayed:u8"),
    (RelativeDeadline, "se->rel_deadline:u8"),
    (SumExec, "se->sum_exec_runtime"),
];

const CPU: &[ProbeFetch] = &[(Cpu, "rq->cpu")];
const CURRENT: &[ProbeFetch] = &[(CurrentPid, "rq->curr->pid")];
const TASK: &[ProbeFetch] = &[(Pid, "p->pid")];
const FLAGS: &[ProbeFetch] = &[(Flags, "flags|initial:x32")];
/// Where a function returns to: on the stack, or in a register.
const CALLER: &[ProbeFetch] =
    if cfg!(target_arch = "aarch64") { &[(Caller, "%lr:symbol")] } else { &[(Caller, "+0($stack):symbol")] };
const TASK_ENTITY: &[ProbeFetch] = &[
    (Vruntime, "p->se.vruntime:s64"),
    (Deadline, "p->se.deadline:s64"),
    (Lag, "p->se.vlag:s64"),
    (Delayed, "p->se.sched_delayed:u8"),
];
const TASK_AVERAGES: &[ProbeFetch] = &[
    (TaskLoad, "p->se.avg.load_avg"),
    (TaskRunnable, "p->se.avg.runnable_avg"),
    (TaskUtil, "p->se.avg.util_avg"),
    (WakeeFlips, "p->wakee_flips:u32"),
    (RecentUsed, "p->recent_used_cpu:u32"),
];
const RETURNED: &[ProbeFetch] = &[(Returned, "retval:s32")];
const DOMAIN: &[ProbeFetch] = &[
    (Level, "sd->level"),
    (Flags, "sd->flags:x32"),
    (ImbalancePct, "sd->imbalance_pct"),
    (Failures, "sd->nr_balance_failed"),
    (Interval, "sd->balance_interval:u32"),
    (Span, "sd->span"),
    (NrIdleScan, "sd->shared->nr_idle_scan:s32"),
    (HasIdleCores, "sd->shared->has_idle_cores:s32"),
    (BusyCpus, "sd->shared->nr_busy_cpus:s32"),
];
const ENVIRONMENT: &[ProbeFetch] =
    &[(Imbalance, "env->imbalance:s64"), (MigrationType, "env->migration_type:u32")];
const BOTH_CPUS: &[ProbeFetch] = &[(SourceCpu, "env->src_cpu"), (DestCpu, "env->dst_cpu")];
const THROTTLED: &[ProbeFetch] = &[
    (CfsRq, "cfs_rq:x64"),
    (Cpu, "cfs_rq->rq->cpu"),
    (Cgroup, "cfs_rq->tg->css.cgroup->kn->id:u64"),
    (RuntimeRemaining, "cfs_rq->runtime_remaining:s64"),
];

const OF_ENTITY: &[&str] = &["cfs_rq *cfs_rq", "sched_entity *se", "flags"];
const OF_RQ: &[&str] = &["rq *rq"];

/// All probes, in the order in which a recorder installs them.
pub const PROBES: &[ProbeSpec] = &[
    entry(
        At::SetAffinity,
        &["sched_setaffinity"],
        &["pid", "cpumask *in_mask"],
        &[&[(Pid, "pid:s32"), (Mask, "in_mask->bits:x64")]],
    )
    .on(ProbeOn::Rare),
    entry(
        At::SetAllowed,
        &["set_cpus_allowed_common"],
        &["task_struct *p", "cpumask *new_mask", "flags"],
        &[TASK, &[(Mask, "ctx->new_mask->bits|new_mask->bits:x64"), (Flags, "ctx->flags|flags:x32")]],
    )
    .on(ProbeOn::Rare),
    entry(At::Nice, &["set_user_nice"], &["task_struct *p", "nice"], &[TASK, &[(Nice, "nice:s64")]])
        .on(ProbeOn::Rare),
    entry(
        At::SetScheduler,
        &["__sched_setscheduler"],
        &["task_struct *p", "sched_attr *attr"],
        &[TASK, &[(Policy, "attr->sched_policy"), (Nice, "attr->sched_nice")]],
    )
    .on(ProbeOn::Rare),
    entry(
        At::SetShares,
        &["sched_group_set_shares"],
        &["task_group *tg", "shares"],
        &[&[(Cgroup, "tg->css.cgroup->kn->id:u64"), (Shares, "shares:u64")]],
    )
    .on(ProbeOn::Rare),
    entry(
        At::MoveGroup,
        &["sched_move_task"],
        &["task_struct *tsk"],
        &[&[(Pid, "tsk->pid"), (Cgroup, "tsk->sched_task_group->css.cgroup->kn->id:u64")]],
    )
    .on(ProbeOn::Rare),
    entry(At::Place, &["place_entity"], OF_ENTITY, &[CFS_RQ, ENTITY, ENTITY_MORE, FLAGS]),
    at_return(
        At::PlaceReturn,
        &["place_entity"],
        OF_ENTITY,
        &[ENTITY, &[(ZeroVruntime, "cfs_rq->zero_vruntime:s64")]],
    ),
    entry(
        At::EnqueueEntity,
        &["enqueue_entity"],
        OF_ENTITY,
        &[CFS_RQ, QUEUE_AVERAGES, ENTITY, ENTITY_MORE, FLAGS],
    ),
    entry(
        At::DequeueEntity,
        &["dequeue_entity"],
        OF_ENTITY,
        &[CFS_RQ, QUEUE_AVERAGES, ENTITY, ENTITY_MORE, FLAGS],
    ),
    entry(
        At::DequeueEntities,
        &["dequeue_entities"],
        &["rq *rq", "sched_entity *se", "flags"],
        &[CPU, ENTITY, ENTITY_MORE, FLAGS],
    ),
    at_return(
        At::DequeueEntitiesReturn,
        &["dequeue_entities"],
        &["rq *rq", "sched_entity *se", "flags"],
        &[RETURNED, ENTITY],
    ),
    entry(At::SetNextEntity, &["set_next_entity"], OF_ENTITY, &[CFS_RQ, ENTITY, ENTITY_MORE]),
    entry(
        At::ReweightEntity,
        &["reweight_entity"],
        &["cfs_rq *cfs_rq", "sched_entity *se", "weight"],
        &[CFS_RQ, ENTITY, ENTITY_MORE, &[(NewWeight, "weight:u64")]],
    ),
    at_return(At::ReweightEntityReturn, &["reweight_entity"], OF_ENTITY, &[ENTITY]),
    at_return(
        At::AverageReturn,
        &["avg_vruntime"],
        &["cfs_rq *cfs_rq"],
        &[&[(Average, "retval:s64"), (CfsRq, "cfs_rq:x64"), (ZeroVruntime, "cfs_rq->zero_vruntime:s64")]],
    ),
    at_return(
        At::PickReturn,
        &["pick_eevdf", "pick_next_entity"],
        &["cfs_rq *cfs_rq"],
        &[&[
            (Entity, "retval:x64"),
            (Pid, "(sched_entity)retval<task_struct.se>->pid"),
            (Vruntime, "(sched_entity)retval->vruntime:s64"),
            (CfsRq, "cfs_rq:x64"),
        ]],
    ),
    entry(At::RequeueDelayed, &["requeue_delayed_entity"], &["sched_entity *se"], &[ENTITY, ENTITY_MORE]),
    entry(
        At::PutPrevEntity,
        &["put_prev_entity"],
        &["cfs_rq *cfs_rq", "sched_entity *prev"],
        &[&[
            (CfsRq, "cfs_rq:x64"),
            (Entity, "prev:x64"),
            (Pid, "prev<task_struct.se>->pid"),
            (MyQueue, "prev->my_q"),
            (Vruntime, "prev->vruntime:s64"),
            (Deadline, "prev->deadline:s64"),
            (Lag, "prev->vlag:s64"),
            (Protected, "prev->vprot:s64"),
            (OnRq, "prev->on_rq:u8"),
        ]],
    ),
    entry(
        At::Tick,
        &["task_tick_fair"],
        &["rq *rq", "task_struct *curr"],
        &[
            CPU,
            &[
                (Pid, "curr->pid"),
                (Vruntime, "curr->se.vruntime:s64"),
                (Deadline, "curr->se.deadline:s64"),
                (Lag, "curr->se.vlag:s64"),
                (Delayed, "curr->se.sched_delayed:u8"),
            ],
            RQ_AVERAGES,
        ],
    ),
    entry(
        At::WakeupPreempt,
        &["wakeup_preempt_fair", "check_preempt_wakeup_fair", "check_preempt_wakeup"],
        &["rq *rq", "task_struct *p", "wake_flags"],
        &[CPU, CURRENT, TASK, &[(WakeFlags, "wake_flags:x32")]],
    ),
    entry(At::Resched, &["resched_curr"], OF_RQ, &[CPU, CURRENT, CALLER]),
    entry(At::ReschedLazy, &["resched_curr_lazy"], OF_RQ, &[CPU, CURRENT, CALLER]),
    entry(
        At::ReschedFlag,
        &["__resched_curr"],
        &["rq *rq", "tif"],
        &[CPU, CURRENT, &[(Flag, "tif:s32")], CALLER],
    ),
    entry(At::Yield, &["yield_task_fair"], OF_RQ, &[CPU, CURRENT]),
    entry(
        At::SelectTaskRq,
        &["select_task_rq_fair"],
        &["task_struct *p", "prev_cpu", "wake_flags"],
        &[
            TASK,
            &[(Previous, "prev_cpu:s32"), (SdFlag, "sd_flag:x32"), (WakeFlags, "wake_flags:x32")],
            TASK_AVERAGES,
        ],
    )
    .of_each_cpu(),
    at_return(At::SelectTaskRqReturn, &["select_task_rq_fair"], &["task_struct *p"], &[RETURNED, TASK]),
    entry(
        At::SelectIdleCore,
        &["select_idle_core"],
        &["task_struct *p", "core"],
        &[TASK, &[(Core, "core:s32")]],
    ),
    at_return(
        At::SelectIdleCoreReturn,
        &["select_idle_core"],
        &["task_struct *p", "core"],
        &[RETURNED, &[(Core, "core:s32")]],
    ),
    entry(
        At::QueueWakelist,
        &["ttwu_queue_wakelist"],
        &["task_struct *p", "cpu", "wake_flags"],
        &[TASK, &[(OtherCpu, "cpu:s32"), (WakeFlags, "wake_flags:x32")]],
    ),
    at_return(At::QueueWakelistReturn, &["ttwu_queue_wakelist"], &[], &[&[(Returned, "retval:u8")]]),
    entry(
        At::MigrateTask,
        &["migrate_task_rq_fair"],
        &["task_struct *p", "new_cpu"],
        &[TASK, &[(NewCpu, "new_cpu:s32")], TASK_ENTITY],
    ),
    at_return(
        At::MigrateTaskReturn,
        &["migrate_task_rq_fair"],
        &["task_struct *p", "new_cpu"],
        &[TASK, TASK_ENTITY],
    ),
    entry(
        At::LoadBalance,
        &["sched_balance_rq", "load_balance"],
        &["this_cpu", "rq *this_rq", "sched_domain *sd", "idle"],
        &[&[(OtherCpu, "this_cpu:s32"), (IdleType, "idle:u32")], DOMAIN],
    ),
    at_return(
        At::LoadBalanceReturn,
        &["sched_balance_rq", "load_balance"],
        &["this_cpu", "rq *this_rq", "sched_domain *sd"],
        &[RETURNED, &[(OtherCpu, "this_cpu:s32"), (Level, "sd->level")]],
    ),
    at_return(
        At::FindBusiestGroupReturn,
        &["sched_balance_find_src_group", "find_busiest_group"],
        &["lb_env *env"],
        &[
            &[
                (SchedGroup, "retval:x64"),
                (Mask, "(sched_group)retval->cpumask:x64"),
                (DestCpu, "env->dst_cpu"),
            ],
            ENVIRONMENT,
            &[
                (QueueType, "env->fbq_type:u32"),
                (Span, "env->sd->span"),
                (NrIdleScan, "env->sd->shared->nr_idle_scan:s32"),
                (HasIdleCores, "env->sd->shared->has_idle_cores:s32"),
                (BusyCpus, "env->sd->shared->nr_busy_cpus:s32"),
            ],
        ],
    ),
    at_return(
        At::CanMigrateReturn,
        &["can_migrate_task"],
        &["task_struct *p", "lb_env *env"],
        &[RETURNED, TASK, BOTH_CPUS, &[(Flags, "env->flags:x32")], ENVIRONMENT],
    ),
    entry(
        At::DetachTask,
        &["detach_task"],
        &["task_struct *p", "lb_env *env"],
        &[TASK, BOTH_CPUS, ENVIRONMENT, TASK_ENTITY],
    ),
    entry(At::AttachTask, &["attach_task"], &["rq *rq", "task_struct *p"], &[CPU, TASK]),
    entry(
        At::NewidleBalance,
        &["sched_balance_newidle", "newidle_balance"],
        &["rq *this_rq"],
        &[&[(Cpu, "this_rq->cpu"), (AvgIdle, "this_rq->avg_idle")]],
    ),
    at_return(
        At::NewidleBalanceReturn,
        &["sched_balance_newidle", "newidle_balance"],
        &["rq *this_rq"],
        &[RETURNED, &[(Cpu, "this_rq->cpu")]],
    ),
    entry(
        At::ActiveBalance,
        &["active_load_balance_cpu_stop"],
        &["data"],
        &[&[(Cpu, "(rq)data->cpu"), (PushCpu, "(rq)data->push_cpu")]],
    ),
    entry(At::Throttle, &["throttle_cfs_rq"], &["cfs_rq *cfs_rq"], &[THROTTLED]),
    entry(At::Unthrottle, &["unthrottle_cfs_rq"], &["cfs_rq *cfs_rq"], &[THROTTLED]),
    entry(At::AvailableIdle, &["available_idle_cpu"], &["cpu"], &[&[(OtherCpu, "cpu:s32")]])
        .on(ProbeOn::LostArguments),
    at_return(At::AvailableIdleReturn, &["available_idle_cpu"], &["cpu"], &[RETURNED])
        .on(ProbeOn::LostArguments),
    at_return(At::AvailableIdle, &["available_idle_cpu"], &["cpu"], &[RETURNED, &[(OtherCpu, "cpu:s32")]])
        .on(ProbeOn::KeptArguments),
    entry(
        At::EnqueueTask,
        &["enqueue_task_fair"],
        &["rq *rq", "task_struct *p", "flags"],
        &[CPU, TASK, TASK_ENTITY, FLAGS, RQ_AVERAGES],
    )
    .on(ProbeOn::Lazy),
    entry(At::Insert, &["__enqueue_entity"], OF_ENTITY, &[CFS_RQ, ENTITY]).on(ProbeOn::Lazy),
    entry(At::Remove, &["__dequeue_entity"], OF_ENTITY, &[CFS_RQ, ENTITY]).on(ProbeOn::Lazy),
    entry(
        At::SetNextTask,
        &["set_next_task_fair"],
        &["rq *rq", "task_struct *p", "first"],
        &[CPU, TASK, TASK_ENTITY, &[(First, "first:u8")]],
    )
    .on(ProbeOn::Lazy),
];

const fn entry(
    point: ProbePoint,
    functions: &'static [&'static str],
    parameters: &'static [&'static str],
    fields: &'static [&'static [ProbeFetch]],
) -> ProbeSpec {
    let (side, on) = (ProbeSide::Entry, ProbeOn::Every);
    ProbeSpec { point, side, on, functions, parameters, fields, of_each_cpu: false }
}

const fn at_return(
    point: ProbePoint,
    functions: &'static [&'static str],
    parameters: &'static [&'static str],
    fields: &'static [&'static [ProbeFetch]],
) -> ProbeSpec {
    ProbeSpec { side: ProbeSide::Return, ..entry(point, functions, parameters, fields) }
}

impl ProbeSpec {
    const fn on(self, on: ProbeOn) -> ProbeSpec {
        ProbeSpec { on, ..self }
    }

    const fn of_each_cpu(self) -> ProbeSpec {
        ProbeSpec { of_each_cpu: true, ..self }
    }

    /// The probes at `point`, which may differ by kernel.
    pub fn at(point: ProbePoint) -> impl Iterator<Item = &'static ProbeSpec> {
        PROBES.iter().filter(move |probe| probe.point == point)
    }

    /// Its group in tracefs.
    pub const fn group(&self) -> &'static str {
        match self.on {
            ProbeOn::Rare => RARE_GROUP,
            _ => GROUP,
        }
    }
}

impl ProbePoint {
    /// How the line begins that a recording's list of probes has for this one, where the kernel took it as it stands.
    pub fn taken(self) -> String {
        let group = ProbeSpec::at(self).next().map_or(GROUP, ProbeSpec::group);
        format!("ok p:{group}/{} ", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_older_ones_are_known() {
        for &point in ProbePoint::ALL {
            assert_eq!(ProbePoint::by_name(point.name()), Some(point));
        }
        for &field in ProbeField::ALL {
            assert_eq!(ProbeField::by_name(field.name()), Some(field));
        }
        assert_eq!(ProbePoint::by_name("setnext"), Some(ProbePoint::SetNextEntity));
        assert_eq!(ProbeField::by_name("flags"), Some(Flags));
        assert_eq!(ProbePoint::by_name("flags"), None);
    }

    #[test]
    fn no_kernel_gets_one_probe_twice() {
        let lacks = [ProbeOn::KeptArguments, ProbeOn::LostArguments];
        for without in lacks {
            let mut points =
                PROBES.iter().filter(|probe| probe.on != without).map(|probe| probe.point.name());
            let all = points.clone().count();
            assert_eq!(points.by_ref().collect::<std::collections::BTreeSet<_>>().len(), all, "{without:?}");
        }
    }

    #[test]
    fn no_probe_prints_one_name_twice() {
        for probe in PROBES {
            let names = probe.fields.iter().copied().flatten().map(|(field, _)| field.name());
            let different = names.clone().collect::<std::collections::BTreeSet<_>>();
            assert_eq!(different.len(), names.count(), "{:?}", probe.point);
        }
    }

    #[test]
    fn lists_of_recordings_name_a_probe_with_its_group() {
        assert_eq!(ProbePoint::ReweightEntity.taken(), "ok p:lab/rew ");
        assert_eq!(ProbePoint::SetShares.taken(), "ok p:labmin/shares ");
    }
}
