//! What is probed: the functions that decide who runs, where and next to whom, with what they decide by.
//!
//! Each kernel has the functions and members that it has: what is missing is left out. Names of events and fields are
//! those that `fairlab verify` reads.
//!
//! Must not know: how a member is found in a kernel.

use crate::btf::Types;
use crate::fetch::Function;
use crate::symbols::Symbols;

/// The group of probes that stand at calls too rare to disturb.
pub const RARE_GROUP: &str = "labmin";

/// The group of all others.
pub const GROUP: &str = "lab";

/// Whether a probe stands where a function begins or where it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Entry,
    Return,
}

/// One probe.
struct Probe {
    event: &'static str,
    at: At,
    /// The names that the function has had, the first that can be probed is.
    functions: &'static [&'static str],
    /// Its parameters, for kernels that do not describe it.
    parameters: &'static [&'static str],
    /// Groups of fields.
    fields: &'static [&'static [&'static str]],
}

/// The lines that define one probe, best first: the first one that the kernel accepts is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The name of its group.
    pub group: &'static str,
    /// Its own name.
    pub event: &'static str,
    /// Lines for `kprobe_events`.
    pub lines: Vec<String>,
}

const CFS_RQ: &[&str] = &[
    "cf=cfs_rq:x64",
    "cpu=cfs_rq->rq->cpu",
    "cg=cfs_rq->tg->css.cgroup->kn->id:u64",
    "nr=cfs_rq->nr_queued|cfs_rq->nr_running:u32",
    "cw=cfs_rq->load.weight",
    "curr=cfs_rq->curr",
    "minv=cfs_rq->min_vruntime:s64",
    "avv=cfs_rq->sum_w_vruntime|cfs_rq->avg_vruntime:s64",
    "avl=cfs_rq->sum_weight|cfs_rq->avg_load:u64",
    "sh=cfs_rq->sum_shift:u32",
    "zv=cfs_rq->zero_vruntime:s64",
    "next=cfs_rq->next",
    "last=cfs_rq->last",
    "skip=cfs_rq->skip",
];

const QUEUE_AVERAGES: &[&str] = &[
    "la=cfs_rq->avg.load_avg",
    "ra=cfs_rq->avg.runnable_avg",
    "ua=cfs_rq->avg.util_avg",
    "lut=cfs_rq->avg.last_update_time",
];

const RQ_AVERAGES: &[&str] = &[
    "la=rq->cfs.avg.load_avg",
    "ra=rq->cfs.avg.runnable_avg",
    "ua=rq->cfs.avg.util_avg",
    "lut=rq->cfs.avg.last_update_time",
];

const ENTITY: &[&str] = &[
    "se=se:x64",
    "pid=se<task_struct.se>->pid",
    "my=se->my_q",
    "vr=se->vruntime:s64",
    "dl=se->deadline:s64",
    "vlag=se->vlag:s64",
    "vprot=se->vprot:s64",
];

const ENTITY_MORE: &[&str] = &[
    "w=se->load.weight",
    "on=se->on_rq:u8",
    "sl=se->slice:u64",
    "sd=se->sched_delayed:u8",
    "rd=se->rel_deadline:u8",
    "sx=se->sum_exec_runtime",
];

const CPU: &[&str] = &["cpu=rq->cpu"];
const CURRENT: &[&str] = &["cpid=rq->curr->pid"];
const TASK: &[&str] = &["pid=p->pid"];
const FLAGS: &[&str] = &["fl=flags|initial:x32"];
/// Where a function returns to: on the stack, or in a register.
const CALLER: &[&str] =
    if cfg!(target_arch = "aarch64") { &["by=%lr:symbol"] } else { &["by=+0($stack):symbol"] };
const TASK_ENTITY: &[&str] =
    &["vr=p->se.vruntime:s64", "dl=p->se.deadline:s64", "vlag=p->se.vlag:s64", "sd=p->se.sched_delayed:u8"];
const TASK_AVERAGES: &[&str] = &[
    "tla=p->se.avg.load_avg",
    "tra=p->se.avg.runnable_avg",
    "tua=p->se.avg.util_avg",
    "wf_flips=p->wakee_flips:u32",
    "recent=p->recent_used_cpu:u32",
];
const RETURNED: &[&str] = &["ret=retval:s32"];
const DOMAIN: &[&str] = &[
    "lvl=sd->level",
    "fl=sd->flags:x32",
    "pct=sd->imbalance_pct",
    "failed=sd->nr_balance_failed",
    "intv=sd->balance_interval:u32",
    "span=sd->span",
    "nis=sd->shared->nr_idle_scan:s32",
    "hic=sd->shared->has_idle_cores:s32",
    "busy=sd->shared->nr_busy_cpus:s32",
];
const ENVIRONMENT: &[&str] = &["imb=env->imbalance:s64", "mtype=env->migration_type:u32"];
const BOTH_CPUS: &[&str] = &["src=env->src_cpu", "dst=env->dst_cpu"];

const OF_ENTITY: &[&str] = &["cfs_rq *cfs_rq", "sched_entity *se", "flags"];
const OF_RQ: &[&str] = &["rq *rq"];

const fn entry(
    event: &'static str,
    functions: &'static [&'static str],
    parameters: &'static [&'static str],
    fields: &'static [&'static [&'static str]],
) -> Probe {
    Probe { event, at: At::Entry, functions, parameters, fields }
}

const fn at_return(
    event: &'static str,
    functions: &'static [&'static str],
    parameters: &'static [&'static str],
    fields: &'static [&'static [&'static str]],
) -> Probe {
    Probe { event, at: At::Return, functions, parameters, fields }
}

const RARE: &[Probe] = &[
    entry(
        "setaff",
        &["sched_setaffinity"],
        &["pid", "cpumask *in_mask"],
        &[&["pid=pid:s32", "mask=in_mask->bits:x64"]],
    ),
    entry(
        "allowed",
        &["set_cpus_allowed_common"],
        &["task_struct *p", "cpumask *new_mask", "flags"],
        &[TASK, &["mask=ctx->new_mask->bits|new_mask->bits:x64", "fl=ctx->flags|flags:x32"]],
    ),
    entry("nice", &["set_user_nice"], &["task_struct *p", "nice"], &[TASK, &["nice=nice:s64"]]),
    entry(
        "setsched",
        &["__sched_setscheduler"],
        &["task_struct *p", "sched_attr *attr"],
        &[TASK, &["policy=attr->sched_policy", "nice=attr->sched_nice"]],
    ),
    entry(
        "shares",
        &["sched_group_set_shares"],
        &["task_group *tg", "shares"],
        &[&["cg=tg->css.cgroup->kn->id:u64", "shares=shares:u64"]],
    ),
    entry(
        "movegrp",
        &["sched_move_task"],
        &["task_struct *tsk"],
        &[&["pid=tsk->pid", "cg=tsk->sched_task_group->css.cgroup->kn->id:u64"]],
    ),
];

const PROBES: &[Probe] = &[
    entry("place", &["place_entity"], OF_ENTITY, &[CFS_RQ, ENTITY, ENTITY_MORE, FLAGS]),
    at_return("place_r", &["place_entity"], OF_ENTITY, &[ENTITY, &["zv=cfs_rq->zero_vruntime:s64"]]),
    entry("enqe", &["enqueue_entity"], OF_ENTITY, &[CFS_RQ, QUEUE_AVERAGES, ENTITY, ENTITY_MORE, FLAGS]),
    entry("deqe", &["dequeue_entity"], OF_ENTITY, &[CFS_RQ, QUEUE_AVERAGES, ENTITY, ENTITY_MORE, FLAGS]),
    entry(
        "deqs",
        &["dequeue_entities"],
        &["rq *rq", "sched_entity *se", "flags"],
        &[CPU, ENTITY, ENTITY_MORE, FLAGS],
    ),
    at_return("deqs_r", &["dequeue_entities"], &["rq *rq", "sched_entity *se", "flags"], &[RETURNED, ENTITY]),
    entry("setn", &["set_next_entity"], OF_ENTITY, &[CFS_RQ, ENTITY, ENTITY_MORE]),
    entry(
        "rew",
        &["reweight_entity"],
        &["cfs_rq *cfs_rq", "sched_entity *se", "weight"],
        &[CFS_RQ, ENTITY, ENTITY_MORE, &["neww=weight:u64"]],
    ),
    at_return("rew_r", &["reweight_entity"], OF_ENTITY, &[ENTITY]),
    at_return(
        "avgv_r",
        &["avg_vruntime"],
        &["cfs_rq *cfs_rq"],
        &[&["V=retval:s64", "cf=cfs_rq:x64", "zv=cfs_rq->zero_vruntime:s64"]],
    ),
    at_return(
        "pick_r",
        &["pick_eevdf", "pick_next_entity"],
        &["cfs_rq *cfs_rq"],
        &[&[
            "se=retval:x64",
            "pid=(sched_entity)retval<task_struct.se>->pid",
            "vr=(sched_entity)retval->vruntime:s64",
            "cf=cfs_rq:x64",
        ]],
    ),
    entry("requeue", &["requeue_delayed_entity"], &["sched_entity *se"], &[ENTITY, ENTITY_MORE]),
    entry(
        "putp",
        &["put_prev_entity"],
        &["cfs_rq *cfs_rq", "sched_entity *prev"],
        &[&[
            "cf=cfs_rq:x64",
            "se=prev:x64",
            "pid=prev<task_struct.se>->pid",
            "my=prev->my_q",
            "vr=prev->vruntime:s64",
            "dl=prev->deadline:s64",
            "vlag=prev->vlag:s64",
            "vprot=prev->vprot:s64",
            "on=prev->on_rq:u8",
        ]],
    ),
    entry(
        "tick",
        &["task_tick_fair"],
        &["rq *rq", "task_struct *curr"],
        &[
            CPU,
            &[
                "pid=curr->pid",
                "vr=curr->se.vruntime:s64",
                "dl=curr->se.deadline:s64",
                "vlag=curr->se.vlag:s64",
                "sd=curr->se.sched_delayed:u8",
            ],
            RQ_AVERAGES,
        ],
    ),
    entry(
        "wkpre",
        &["wakeup_preempt_fair", "check_preempt_wakeup_fair", "check_preempt_wakeup"],
        &["rq *rq", "task_struct *p", "wake_flags"],
        &[CPU, CURRENT, TASK, &["wf=wake_flags:x32"]],
    ),
    entry("resched", &["resched_curr"], OF_RQ, &[CPU, CURRENT, CALLER]),
    entry("resched_lazy", &["resched_curr_lazy"], OF_RQ, &[CPU, CURRENT, CALLER]),
    entry("resched_tif", &["__resched_curr"], &["rq *rq", "tif"], &[CPU, CURRENT, &["tif=tif:s32"], CALLER]),
    entry("yld", &["yield_task_fair"], OF_RQ, &[CPU, CURRENT]),
    entry(
        "sel",
        &["select_task_rq_fair"],
        &["task_struct *p", "prev_cpu", "wake_flags"],
        &[TASK, &["prev=prev_cpu:s32", "sdfl=sd_flag:x32", "wf=wake_flags:x32"], TASK_AVERAGES, EACH_CPU],
    ),
    at_return("sel_r", &["select_task_rq_fair"], &["task_struct *p"], &[RETURNED, TASK]),
    entry("sic", &["select_idle_core"], &["task_struct *p", "core"], &[TASK, &["core=core:s32"]]),
    at_return("sic_r", &["select_idle_core"], &["task_struct *p", "core"], &[RETURNED, &["core=core:s32"]]),
    entry(
        "twq",
        &["ttwu_queue_wakelist"],
        &["task_struct *p", "cpu", "wake_flags"],
        &[TASK, &["c=cpu:s32", "wf=wake_flags:x32"]],
    ),
    at_return("twq_r", &["ttwu_queue_wakelist"], &[], &[&["ret=retval:u8"]]),
    entry(
        "mig",
        &["migrate_task_rq_fair"],
        &["task_struct *p", "new_cpu"],
        &[TASK, &["newcpu=new_cpu:s32"], TASK_ENTITY],
    ),
    at_return("mig_r", &["migrate_task_rq_fair"], &["task_struct *p", "new_cpu"], &[TASK, TASK_ENTITY]),
    entry(
        "lb",
        &["sched_balance_rq", "load_balance"],
        &["this_cpu", "rq *this_rq", "sched_domain *sd", "idle"],
        &[&["c=this_cpu:s32", "idle=idle:u32"], DOMAIN],
    ),
    at_return(
        "lb_r",
        &["sched_balance_rq", "load_balance"],
        &["this_cpu", "rq *this_rq", "sched_domain *sd"],
        &[RETURNED, &["c=this_cpu:s32", "lvl=sd->level"]],
    ),
    at_return(
        "fbg_r",
        &["sched_balance_find_src_group", "find_busiest_group"],
        &["lb_env *env"],
        &[
            &["grp=retval:x64", "mask=(sched_group)retval->cpumask:x64", "dst=env->dst_cpu"],
            ENVIRONMENT,
            &[
                "fbq=env->fbq_type:u32",
                "span=env->sd->span",
                "nis=env->sd->shared->nr_idle_scan:s32",
                "hic=env->sd->shared->has_idle_cores:s32",
                "busy=env->sd->shared->nr_busy_cpus:s32",
            ],
        ],
    ),
    at_return(
        "cmt_r",
        &["can_migrate_task"],
        &["task_struct *p", "lb_env *env"],
        &[RETURNED, TASK, BOTH_CPUS, &["fl=env->flags:x32"], ENVIRONMENT],
    ),
    entry(
        "det",
        &["detach_task"],
        &["task_struct *p", "lb_env *env"],
        &[TASK, BOTH_CPUS, ENVIRONMENT, TASK_ENTITY],
    ),
    entry("att", &["attach_task"], &["rq *rq", "task_struct *p"], &[CPU, TASK]),
    entry(
        "nib",
        &["sched_balance_newidle", "newidle_balance"],
        &["rq *this_rq"],
        &[&["cpu=this_rq->cpu", "avgidle=this_rq->avg_idle"]],
    ),
    at_return(
        "nib_r",
        &["sched_balance_newidle", "newidle_balance"],
        &["rq *this_rq"],
        &[RETURNED, &["cpu=this_rq->cpu"]],
    ),
    entry(
        "alb",
        &["active_load_balance_cpu_stop"],
        &["data"],
        &[&["cpu=(rq)data->cpu", "push=(rq)data->push_cpu"]],
    ),
    entry("thr", &["throttle_cfs_rq"], &["cfs_rq *cfs_rq"], &[THROTTLED]),
    entry("unthr", &["unthrottle_cfs_rq"], &["cfs_rq *cfs_rq"], &[THROTTLED]),
];

/// Probes that differ by what the kernel has: an answer at the return with its question, or both apart.
const IDLE_QUESTION: Probe = entry("aic", &["available_idle_cpu"], &["cpu"], &[&["c=cpu:s32"]]);
const IDLE_ANSWER: Probe = at_return("aic_r", &["available_idle_cpu"], &["cpu"], &[RETURNED]);
const IDLE_BOTH: Probe = at_return("aic", &["available_idle_cpu"], &["cpu"], &[RETURNED, &["c=cpu:s32"]]);

/// Functions that became part of others, so that the levels of the tree are what can be seen.
const TREE: &[Probe] = &[
    entry(
        "enq",
        &["enqueue_task_fair"],
        &["rq *rq", "task_struct *p", "flags"],
        &[CPU, TASK, TASK_ENTITY, FLAGS, RQ_AVERAGES],
    ),
    entry("rbins", &["__enqueue_entity"], OF_ENTITY, &[CFS_RQ, ENTITY]),
    entry("rbdel", &["__dequeue_entity"], OF_ENTITY, &[CFS_RQ, ENTITY]),
    entry(
        "setnt",
        &["set_next_task_fair"],
        &["rq *rq", "task_struct *p", "first"],
        &[CPU, TASK, TASK_ENTITY, &["first=first:u8"]],
    ),
];

const THROTTLED: &[&str] = &[
    "cf=cfs_rq:x64",
    "cpu=cfs_rq->rq->cpu",
    "cg=cfs_rq->tg->css.cgroup->kn->id:u64",
    "rem=cfs_rq->runtime_remaining:s64",
];

/// In place of itself: one of each of [`CPU_FIELDS`] for every CPU.
const EACH_CPU: &[&str] = &["*"];

/// What is fetched of every CPU's runqueue: name, path, type.
const CPU_FIELDS: [(&str, &str, &str); 5] = [
    ("la", "cfs.avg.load_avg", "u64"),
    ("nr", "nr_running", "u32"),
    ("ai", "avg_idle", "u64"),
    ("cp", "curr->pid", "s32"),
    ("cf", "curr->wakee_flips", "u32"),
];

/// More fields of CPUs than a probe can hold.
const CPUS_MAX: usize = 16;

/// The symbols that probes need: where CPUs keep their data, and all functions.
pub fn symbols() -> impl Iterator<Item = &'static str> {
    let probes = RARE.iter().chain(PROBES).chain(TREE).chain([&IDLE_BOTH]);
    let functions = probes.flat_map(|probe| probe.functions.iter().copied());
    ["runqueues", "__per_cpu_offset"].into_iter().chain(functions)
}

/// The definitions of all probes for this kernel; without `all` only the rare ones.
pub fn definitions(types: &Types<'_>, symbols: &Symbols, cpus: usize, all: bool) -> Vec<Definition> {
    let mut made: Vec<Definition> =
        RARE.iter().filter_map(|probe| definition(probe, RARE_GROUP, types, symbols, &[])).collect();
    if !all {
        return made;
    }
    let each = if cpus <= CPUS_MAX { fields_of_cpus(types, symbols, cpus) } else { Vec::new() };
    // Both that return probes read arguments and that the tree is all there is came after these structures changed.
    let is_eevdf =
        types.structure("sched_entity").is_some_and(|of| types.member(of, "sched_delayed").is_some());
    let is_lazy = types.function("resched_curr_lazy").is_some();
    let idle: &[Probe] = if is_eevdf { &[IDLE_BOTH] } else { &[IDLE_QUESTION, IDLE_ANSWER] };
    let tree = if is_lazy { TREE } else { &[] };
    let probes = PROBES.iter().chain(idle).chain(tree);
    made.extend(probes.filter_map(|probe| definition(probe, GROUP, types, symbols, &each)));
    made
}

/// One probe's lines; `None` where the kernel has none of its functions.
fn definition(
    probe: &Probe,
    group: &'static str,
    types: &Types<'_>,
    symbols: &Symbols,
    each: &[String],
) -> Option<Definition> {
    let letter = if probe.at == At::Entry { "p" } else { "r" };
    let mut lines = Vec::new();
    for name in probe.functions.iter().filter(|name| symbols.get(name).is_some()) {
        let function = Function::new(types, name, probe.parameters);
        let named = probe.fields.iter().flat_map(|fields| fields.iter());
        let fields: Vec<String> =
            named.filter(|field| **field != "*").filter_map(|field| function.field(field)).collect();
        let has_each = probe.fields.contains(&EACH_CPU) && !each.is_empty();
        let line =
            |fields: &[String]| format!("{letter}:{group}/{} {name} {}", probe.event, fields.join(" "));
        if has_each {
            lines.push(line(&[&fields[..], each].concat()));
        }
        lines.push(line(&fields));
        if probe.at == At::Return {
            // Older kernels keep no arguments until a function returns.
            let kept: Vec<String> = fields.iter().filter(|field| !field.contains("$arg")).cloned().collect();
            if kept.len() < fields.len() && !kept.is_empty() {
                lines.push(line(&kept));
            }
        }
    }
    (!lines.is_empty()).then_some(Definition { group, event: probe.event, lines })
}

/// The fields of every CPU's runqueue, through the kernel's own table of where CPUs keep their data. None where those lie further
/// from the table's values than the 32 bits that a probe adds, as on arm64.
fn fields_of_cpus(types: &Types<'_>, symbols: &Symbols, cpus: usize) -> Vec<String> {
    let (Some(queues), Some(table)) = (symbols.get("runqueues"), symbols.get("__per_cpu_offset")) else {
        return Vec::new();
    };
    if table == 0 || i32::try_from(queues.cast_signed()).is_err() {
        return Vec::new();
    }
    let offset = |structure: &str, path: &str| {
        types.structure(structure).and_then(|of| types.member(of, path)).map(|member| member.offset)
    };
    let mut fields = Vec::new();
    for cpu in 0..cpus {
        for (name, path, form) in CPU_FIELDS {
            let base = format!("@__per_cpu_offset+{}", 8 * cpu);
            let at = |path: &str| Some(queues.wrapping_add(offset("rq", path)?).cast_signed());
            let value = match path.split_once("->") {
                None => at(path).map(|at| format!("{at:+}({base})")),
                Some((pointer, inner)) => at(pointer)
                    .zip(offset("task_struct", inner))
                    .map(|(at, inner)| format!("+{inner}({at:+}({base}))")),
            };
            fields.extend(value.map(|value| format!("{name}{cpu}={value}:{form}")));
        }
    }
    fields
}
