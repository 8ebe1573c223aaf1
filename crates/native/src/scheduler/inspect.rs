//! The scheduler's state, read from the kernel's memory by the names of members.
//!
//! A member that the tree does not have is not shown. Where a value means nothing, it is left out as the model leaves it out.

use fairlab_event::Cpu;
use fairlab_kernel::domain::BalanceState;
use fairlab_kernel::open_loop::{RestState, RestingCpu, RndState};
use fairlab_kernel::pelt::SchedAvg;
use fairlab_kernel::struct_members::{DOMAIN_MEMBERS, StructMember, StructMembers};
use fairlab_kernel::{GroupId, TaskId};
use fairlab_sim::Inspect;

use super::NativeScheduler;
use crate::abi::GroupPtr;
use crate::image::LoadedImage;

/// `enum fl_object`.
const TASK: i32 = 0;
const ENTITY: i32 = 1;
const QUEUE: i32 = 2;
const CPU: i32 = 3;
const DOMAIN: i32 = 4;

/// Numbers of fields by the names that the image gives them.
#[derive(Clone, Debug)]
pub(super) struct FieldNumbers {
    task: Vec<String>,
    entity: Vec<String>,
    queue: Vec<String>,
    cpu: Vec<String>,
    domain: Vec<String>,
    /// Tasks have a lag.
    has_lag: bool,
}

impl FieldNumbers {
    pub fn of(image: &LoadedImage) -> FieldNumbers {
        let entity = image.fields(ENTITY);
        let has_lag = entity.iter().any(|name| name == "vlag");
        let (task, queue) = (image.fields(TASK), image.fields(QUEUE));
        FieldNumbers { task, entity, queue, cpu: image.fields(CPU), domain: image.fields(DOMAIN), has_lag }
    }
}

/// The value of the first of these names that the list has.
fn value(list: &[String], names: &[&str], read: impl Fn(i32) -> u64) -> Option<i64> {
    let place = names.iter().find_map(|name| list.iter().position(|field| field == name))?;
    Some(read(place as i32) as i64)
}

/// What an entity holds, of a task or a group alike.
const ENTITY_MEMBERS: [(StructMember, &str); 10] = [
    (StructMember::EntityWeight, "weight"),
    (StructMember::SumExecRuntime, "sum_exec_runtime"),
    (StructMember::PrevSumExecRuntime, "prev_sum_exec_runtime"),
    (StructMember::EntityLoadAvg, "load_avg"),
    (StructMember::EntityRunnableAvg, "runnable_avg"),
    (StructMember::EntityUtilAvg, "util_avg"),
    (StructMember::EntityLoadSum, "load_sum"),
    (StructMember::EntityRunnableSum, "runnable_sum"),
    (StructMember::EntityUtilSum, "util_sum"),
    (StructMember::EntityLastUpdate, "last_update_time"),
];

const QUEUE_MEMBERS: [(StructMember, &[&str]); 14] = [
    (StructMember::NrRunning, &["nr_queued"]),
    (StructMember::HNrRunning, &["h_nr_queued"]),
    (StructMember::QueueWeight, &["weight"]),
    (StructMember::QueueZero, &["zero_vruntime", "min_vruntime"]),
    (StructMember::SumOfKeys, &["sum_w_vruntime"]),
    (StructMember::SumOfWeights, &["sum_weight"]),
    (StructMember::QueueLoadAvg, &["load_avg"]),
    (StructMember::QueueRunnableAvg, &["runnable_avg"]),
    (StructMember::QueueUtilAvg, &["util_avg"]),
    (StructMember::QueueLoadSum, &["load_sum"]),
    (StructMember::QueueRunnableSum, &["runnable_sum"]),
    (StructMember::QueueUtilSum, &["util_sum"]),
    (StructMember::QueueLastUpdate, &["last_update_time"]),
    (StructMember::TgLoadAvgContrib, &["tg_load_avg_contrib"]),
];

const RQ_MEMBERS: [(StructMember, &str); 7] = [
    (StructMember::RqNrRunning, "nr_running"),
    (StructMember::AvgIdle, "avg_idle"),
    (StructMember::MaxIdleBalanceCost, "max_idle_balance_cost"),
    (StructMember::NextBalance, "next_balance"),
    (StructMember::HasBlockedLoad, "has_blocked_load"),
    (StructMember::LastBlockedLoadUpdate, "last_blocked_load_update_tick"),
    (StructMember::RdOverload, "overloaded"),
];

const LLC_MEMBERS: [(StructMember, &str); 3] = [
    (StructMember::HasIdleCores, "has_idle_cores"),
    (StructMember::NrIdleScan, "nr_idle_scan"),
    (StructMember::NrBusyCpus, "nr_busy_cpus"),
];

/// What [`DOMAIN_MEMBERS`] shows of each domain.
const DOMAIN_FIELDS: [&str; 4] =
    ["nr_balance_failed", "balance_interval", "last_balance", "max_newidle_lb_cost"];

impl NativeScheduler {
    /// The fields of an entity; `read` reads one by its number in `list`.
    fn entity_members(&self, list: &[String], read: impl Fn(i32) -> u64, into: &mut StructMembers) {
        let of = |name: &str| value(list, &[name], &read);
        if of("on_rq") == Some(1) {
            into.extend(of("vruntime").map(|vruntime| (StructMember::Vruntime, vruntime)));
            into.extend(of("deadline").map(|deadline| (StructMember::Deadline, deadline)));
            into.extend(of("slice").map(|slice| (StructMember::Slice, slice)));
            into.extend(of("vprot").map(|end| (StructMember::Vprot, end)));
        } else {
            into.extend(of("vlag").map(|lag| (StructMember::Vlag, lag)));
        }
        into.extend(ENTITY_MEMBERS.iter().filter_map(|&(member, name)| Some((member, of(name)?))));
    }

    /// The level of the domain that is as wide as the last-level cache, whose CPUs share their knowledge of idle ones.
    fn llc_level(&self, cpu: Cpu) -> Option<i32> {
        let shares = |level: &i32| {
            let busy = value(&self.fields.domain, &["nr_busy_cpus"], |field| {
                self.image.read_domain(cpu.0 as i32, *level, field)
            });
            busy.is_some_and(|busy| busy >= 0)
        };
        let levels = (0..).take_while(|&level| self.image.domain_name(cpu, level as usize).is_some());
        levels.filter(shares).last()
    }
}

impl NativeScheduler {
    /// A field of a task that the engine has created, by the name that the image gives it; `None`: it has none of that name.
    pub fn task_field(&self, task: TaskId, name: &str) -> Option<i64> {
        let address = self.tasks.address(task);
        value(&self.fields.task, &[name], |field| self.image.read_task(address, field))
    }
}

/// What a rest is read from that is no member that is compared.
impl NativeScheduler {
    fn resting_cpu(&self, cpu: Cpu) -> RestingCpu {
        let number = cpu.0 as i32;
        let queue = |name| {
            value(&self.fields.queue, &[name], |field| self.image.read_queue(GroupPtr::ROOT, number, field))
        };
        let rq = |name| value(&self.fields.cpu, &[name], |field| self.image.read_cpu(number, field));
        let avg = |name| queue(name).unwrap_or(0) as u64;
        let of = |name| rq(name).unwrap_or(0) as u64;
        let llc = |name| {
            let level = self.llc_level(cpu)?;
            value(&self.fields.domain, &[name], |field| self.image.read_domain(number, level, field))
        };
        let levels = (0..).take_while(|&level| self.image.domain_name(cpu, level as usize).is_some());
        RestingCpu {
            min_vruntime: queue("zero_vruntime").or_else(|| queue("min_vruntime")).unwrap_or(0) as u64,
            avg: SchedAvg {
                last_update_time: avg("last_update_time"),
                load_sum: avg("load_sum"),
                runnable_sum: avg("runnable_sum"),
                util_sum: avg("util_sum") as u32,
                period_contrib: avg("period_contrib") as u32,
                load_avg: avg("load_avg"),
                runnable_avg: avg("runnable_avg"),
                util_avg: avg("util_avg"),
                ..SchedAvg::default()
            },
            on_list: queue("on_list").is_some_and(|on_list| on_list != 0),
            avg_idle: of("avg_idle"),
            max_idle_balance_cost: of("max_idle_balance_cost"),
            idle_stamp: of("idle_stamp"),
            next_balance: of("next_balance"),
            has_blocked_load: of("has_blocked_load") != 0,
            last_blocked_load_update_tick: of("last_blocked_load_update_tick"),
            rnd_state: rq("rnd_state_1").is_some().then(|| {
                RndState(
                    ["rnd_state_1", "rnd_state_2", "rnd_state_3", "rnd_state_4"].map(|name| of(name) as u32),
                )
            }),
            has_idle_cores: llc("has_idle_cores").is_some_and(|has| has != 0),
            nr_idle_scan: llc("nr_idle_scan").map(|number| number as u32),
            domains: levels.map(|level| self.resting_domain(number, level)).collect(),
        }
    }

    fn resting_domain(&self, cpu: i32, level: i32) -> BalanceState {
        let of = |name| {
            let read = |field| self.image.read_domain(cpu, level, field);
            value(&self.fields.domain, &[name], read).unwrap_or(0) as u64
        };
        BalanceState {
            last_balance: of("last_balance"),
            balance_interval: of("balance_interval") as u32,
            nr_balance_failed: of("nr_balance_failed") as u32,
            max_newidle_lb_cost: of("max_newidle_lb_cost"),
            decay_max_lb_cost: of("decay_max_lb_cost"),
            newidle_call: of("newidle_call") as u32,
            newidle_success: of("newidle_success") as u32,
            newidle_ratio: of("newidle_ratio") as u32,
            newidle_stamp: of("newidle_stamp"),
        }
    }
}

impl Inspect for NativeScheduler {
    fn rest(&self) -> Option<RestState> {
        let of = |name| {
            value(&self.fields.cpu, &[name], |field| self.image.read_cpu(0, field)).unwrap_or(0) as u64
        };
        let uptime = self.image.uptime();
        // The kernel counted its jiffies when CPUs last ticked.
        let since = uptime.saturating_sub(of("clock")) / (1_000_000_000 / self.image.hz().max(1));
        let cpus = (0..self.nr_cpus as u32).map(|cpu| self.resting_cpu(Cpu(cpu))).collect();
        // A tree with CONFIG_PREEMPT_DYNAMIC is built preemptible, too, though nothing is preempted in its kernel work.
        let preemptible = self.is_preemptible.then_some(true);
        let (jiffies, overloaded) = (of("jiffies") + since, of("overloaded") != 0);
        Some(RestState { uptime, jiffies, preemptible, overloaded, cpus })
    }

    fn idle_task(&self, cpu: Cpu) -> TaskId {
        TaskId(cpu.0)
    }

    fn stopper(&self, cpu: Cpu) -> TaskId {
        TaskId(self.nr_cpus as u32 + cpu.0)
    }

    /// The kernel has the one that ran last at the head of its list.
    fn fair_tasks(&self, cpu: Cpu, into: &mut Vec<TaskId>) {
        into.extend(self.image.queued(cpu).into_iter().rev().map(|id| TaskId(id as u32)));
    }

    fn members_of_task(&self, task: TaskId, into: &mut StructMembers) {
        let known = self.tasks.get(task);
        let Some(address) = known.address else { return };
        let list = &self.fields.task;
        let read = |field| self.image.read_task(address, field);
        let of = |name: &str| value(list, &[name], read);
        into.extend(of("cpu").map(|cpu| (StructMember::TaskCpu, cpu)));
        into.extend(of("task_on_rq").map(|on_rq| (StructMember::TaskOnRq, i64::from(on_rq != 0))));
        if self.fields.has_lag {
            into.push((StructMember::SchedDelayed, of("sched_delayed").unwrap_or(0)));
        }
        if of("policy").is_some_and(|policy| [0, 3, 5].contains(&policy)) {
            self.entity_members(list, read, into);
        }
        into.extend(of("wakee_flips").map(|flips| (StructMember::WakeeFlips, flips)));
        into.extend(of("recent_used_cpu").map(|cpu| (StructMember::RecentUsedCpu, cpu)));
    }

    fn members_of_queue(&self, cpu: Cpu, group: GroupId, into: &mut StructMembers) {
        let (address, number) = (self.groups[group.0 as usize], cpu.0 as i32);
        if address != GroupPtr::ROOT {
            let read = |field| self.image.read_entity(address, number, field);
            self.entity_members(&self.fields.entity, read, into);
        }
        let read = |field| self.image.read_queue(address, number, field);
        let of = |names: &[&str]| value(&self.fields.queue, names, read);
        into.extend(QUEUE_MEMBERS.iter().filter_map(|(member, names)| Some((*member, of(names)?))));
        if of(&["runtime_enabled"]).is_some_and(|enabled| enabled != 0) {
            into.extend(of(&["runtime_remaining"]).map(|left| (StructMember::RuntimeRemaining, left)));
            into.extend(of(&["throttled"]).map(|throttled| (StructMember::Throttled, throttled)));
        }
    }

    fn members_of_rq(&self, cpu: Cpu, into: &mut StructMembers) {
        let number = cpu.0 as i32;
        let of = |name| value(&self.fields.cpu, &[name], |field| self.image.read_cpu(number, field));
        into.extend(RQ_MEMBERS.iter().filter_map(|&(member, name)| Some((member, of(name)?))));
        // On the engine's clock, and before its zero if the CPU idled when that began.
        let began = |stamp: i64| if stamp == 0 { 0 } else { stamp - self.image.uptime() as i64 };
        into.extend(of("idle_stamp").map(|stamp| (StructMember::IdleStamp, began(stamp))));
        let domain = |level, name| {
            value(&self.fields.domain, &[name], |field| self.image.read_domain(number, level, field))
        };
        if let Some(llc) = self.llc_level(cpu) {
            into.extend(LLC_MEMBERS.iter().filter_map(|&(member, name)| Some((member, domain(llc, name)?))));
        }
        let levels = (0..).take_while(|&level| self.image.domain_name(cpu, level as usize).is_some());
        for (level, members) in levels.zip(DOMAIN_MEMBERS) {
            let shown = members.into_iter().zip(DOMAIN_FIELDS);
            into.extend(shown.filter_map(|(member, name)| Some((member, domain(level, name)?))));
        }
        let root = |field| self.image.read_queue(GroupPtr::ROOT, number, field);
        into.extend(
            value(&self.fields.queue, &["util_est"], root).map(|est| (StructMember::QueueUtilEst, est)),
        );
    }
}
