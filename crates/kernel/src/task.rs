//! A task as the scheduler sees it (`struct task_struct`).

use fairlab_event::{Comm, Cpu, Ns, Pid, Prio, TaskState};

use crate::cpumask::CpuMask;
use crate::ids::{GroupId, SeId};
use crate::process::ProcessId;
use crate::weight::LoadWeight;

pub use crate::ids::TaskId;

/// A task's scheduling policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// `SCHED_OTHER`.
    #[default]
    Normal,
    /// `SCHED_BATCH`: as `Normal`, but its wakeups do not preempt.
    Batch,
    /// `SCHED_IDLE`: runs beside others with a very small weight.
    Idle,
    /// `SCHED_FIFO` with a priority of 1…99: runs until it sleeps or something more urgent comes.
    Fifo(u8),
    /// `SCHED_RR` with a priority of 1…99: the same, in turns with its equals.
    RoundRobin(u8),
    /// `SCHED_DEADLINE` without a bandwidth (`SCHED_FLAG_SUGOV`): `sugov:N`, which sets clocks; before real-time.
    Deadline,
    /// The stop class: `migration/N`; before everything else.
    Stop,
    /// The idle class: `swapper/N`; when there is nothing else.
    Swapper,
}

impl Policy {
    /// Whether the fair class serves it.
    pub const fn is_fair(self) -> bool {
        matches!(self, Policy::Normal | Policy::Batch | Policy::Idle)
    }

    /// Whether `sched_setattr()` sets a nice level and a slice with it (`fair_policy()`, which is not what serves it).
    pub(crate) const fn takes_nice(self) -> bool {
        matches!(self, Policy::Normal | Policy::Batch)
    }

    /// Whether the real-time class serves it.
    pub const fn is_rt(self) -> bool {
        matches!(self, Policy::Fifo(_) | Policy::RoundRobin(_))
    }

    /// Order of the classes: a higher one is asked first (`sched_class_above()`).
    pub(crate) const fn class_rank(self) -> u8 {
        match self {
            Policy::Stop => 4,
            Policy::Deadline => 3,
            Policy::Fifo(_) | Policy::RoundRobin(_) => 2,
            Policy::Normal | Policy::Batch | Policy::Idle => 1,
            Policy::Swapper => 0,
        }
    }
}

/// What a new task is like.
#[derive(Clone, Debug)]
pub struct TaskSpec {
    /// Its name.
    pub comm: Comm,
    /// Its thread id.
    pub pid: Pid,
    /// Its process id.
    pub tgid: Pid,
    /// Its policy.
    pub policy: Policy,
    /// Its nice level, −20…19.
    pub nice: i32,
    /// The CPUs that it may use.
    pub allowed: CpuMask,
    /// A kernel thread, which belongs to no process (`PF_KTHREAD`).
    pub kthread: bool,
    /// A kernel thread bound to one CPU (`is_per_cpu_kthread()`).
    pub per_cpu_kthread: bool,
}

/// Whether a task is on a runqueue (`task_struct::on_rq`, `__state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnRq {
    /// Created, never queued.
    New,
    /// Asleep, in the state that its last switch reported.
    Sleeping(TaskState),
    /// Between `sched_waking` and its activation.
    Waking,
    /// Running or waiting.
    Queued,
    /// Asleep in this state, but left on its queue until its lag has burnt off (delayed dequeue).
    Delayed(TaskState),
    /// Ended.
    Dead,
}

/// One task.
///
/// What is used together stands together, in lines of 64 bytes: a machine's CPUs and tasks take turns in the first cache.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Task {
    pub(crate) on_rq: OnRq,
    /// The CPU that it runs on, waits on, or last ran on.
    pub(crate) cpu: Cpu,
    pub(crate) se: SeId,
    pub(crate) group: GroupId,
    pub(crate) policy: Policy,
    /// It is being queued for the first time.
    pub(crate) is_new: bool,
    /// It is being woken by one that is about to sleep, on the CPU that tests whether it preempts (`WF_SYNC`).
    pub(crate) woken_sync: bool,
    /// It has left its queue until its group comes back; it still counts as queued.
    pub(crate) throttled: bool,
    /// It will leave its queue when it returns to user mode.
    pub(crate) throttle_work: bool,
    /// It has begun to exit (`PF_EXITING`).
    pub(crate) exiting: bool,
    /// It sleeps until a device is done, or has not run since (`in_iowait`).
    pub(crate) in_iowait: bool,
    pub(crate) per_cpu_kthread: bool,
    /// It counted for the last-level cache that it prefers when it was queued.
    pub(crate) pref_llc_queued: bool,
    /// It looks at all CPUs for its process when it returns to user mode.
    pub(crate) cache_work: bool,
    pub(crate) nice: i32,
    /// Neighbours on its runqueue's `cfs_tasks` list.
    pub(crate) newer: Option<TaskId>,
    pub(crate) older: Option<TaskId>,
    pub(crate) recent_used_cpu: Cpu,
    /// The NUMA node where most of its memory was found to be (`numa_preferred_nid`).
    pub(crate) preferred_node: Option<u32>,
    /// Its process, where threads of a process gather.
    pub(crate) process: Option<ProcessId>,
    /// The last-level cache that it prefers.
    pub(crate) preferred_llc: Option<u32>,
    /// How often it wakes another task than last time, halved every second (`record_wakee()`).
    pub(crate) wakee_flips: u32,
    pub(crate) last_wakee: Option<Pid>,
    /// At which jiffy; `None`: not yet, which in a kernel is long ago.
    pub(crate) wakee_flip_decay: Option<u64>,
    pub(crate) stats: TaskStats,
    pub(crate) info: SchedInfo,
    pub(crate) comm: Comm,
    pub(crate) pid: Pid,
    pub(crate) tgid: Pid,
    pub(crate) allowed: CpuMask,
    /// Where it goes if it may not stay, as was chosen when the CPUs changed that it may use.
    pub(crate) affinity_dest: Cpu,
}

/// `struct sched_statistics`: since when a task is in a state, ns; `None` when it is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TaskStats {
    pub wait_start: Option<Ns>,
    /// Waiting time carried from the queue that the task was moved away from.
    pub waited: Ns,
    pub sleep_start: Option<Ns>,
    pub block_start: Option<Ns>,
}

impl Task {
    pub(crate) fn new(spec: &TaskSpec, se: SeId, cpu: Cpu) -> Task {
        Task {
            comm: spec.comm,
            pid: spec.pid,
            tgid: spec.tgid,
            policy: spec.policy,
            nice: spec.nice,
            allowed: spec.allowed,
            affinity_dest: cpu,
            per_cpu_kthread: spec.per_cpu_kthread,
            se,
            group: GroupId::ROOT,
            on_rq: OnRq::New,
            cpu,
            is_new: false,
            woken_sync: false,
            recent_used_cpu: cpu,
            preferred_node: None,
            process: None,
            preferred_llc: None,
            pref_llc_queued: false,
            cache_work: false,
            wakee_flips: 0,
            wakee_flip_decay: None,
            last_wakee: None,
            newer: None,
            older: None,
            throttled: false,
            throttle_work: false,
            exiting: false,
            in_iowait: false,
            stats: TaskStats::default(),
            info: SchedInfo::default(),
        }
    }

    /// Its name.
    pub fn comm(&self) -> Comm {
        self.comm
    }

    /// Its thread id.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Process id.
    pub fn tgid(&self) -> Pid {
        self.tgid
    }

    /// Whether it is a kthread bound to its CPU.
    pub fn is_per_cpu_kthread(&self) -> bool {
        self.per_cpu_kthread
    }

    /// The group that it is in.
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// The CPU that it runs on, waits on, or last ran on (`task_cpu()`).
    pub fn cpu(&self) -> Cpu {
        self.cpu
    }

    /// The CPUs that it may use.
    pub fn allowed(&self) -> &CpuMask {
        &self.allowed
    }

    /// Whether it is on a queue: runs, waits to run, or sleeps there until its lag has burnt off (`task_on_rq_queued()`).
    pub fn is_queued(&self) -> bool {
        matches!(self.on_rq, OnRq::Queued | OnRq::Delayed(_))
    }

    /// Whether it sleeps and has left its queue.
    pub fn is_asleep(&self) -> bool {
        matches!(self.on_rq, OnRq::Sleeping(_))
    }

    /// Whether it has been woken, and is not queued yet.
    pub fn is_waking(&self) -> bool {
        self.on_rq == OnRq::Waking
    }

    /// Whether it sleeps on its queue.
    pub fn is_delayed(&self) -> bool {
        matches!(self.on_rq, OnRq::Delayed(_))
    }

    /// Its policy.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Its nice level, −20…19; of use to fair policies.
    pub fn nice(&self) -> i32 {
        self.nice
    }

    /// Its priority as tracepoints print it.
    pub fn prio(&self) -> Prio {
        match self.policy {
            Policy::Stop => Prio(0),
            Policy::Deadline => Prio::DEADLINE,
            Policy::Fifo(priority) | Policy::RoundRobin(priority) => Prio(99 - i32::from(priority)),
            Policy::Swapper => Prio::DEFAULT,
            _ => Prio::from_nice(self.nice),
        }
    }

    /// The weight that its policy and nice level give (`set_load_weight()`).
    pub(crate) fn load_weight(&self) -> LoadWeight {
        match self.policy {
            Policy::Idle => LoadWeight::of_idle_policy(),
            _ => LoadWeight::of_nice(self.nice),
        }
    }
}

/// What is known of one task (`struct sched_info`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SchedInfo {
    /// Since when it waits.
    pub(crate) last_queued: Option<Ns>,
    /// When it last got the CPU.
    pub(crate) last_arrival: Ns,
}
