//! The names of probes and of what they fetch, each spelled only here.
//!
//! Must not know: which functions a probe is attached to, what a value means to its reader.

use crate::{Tracepoint, UntypedTracepoint};

/// Declares an enum with the name of each variant, and a name that older recordings have for it. Behind `@` stand variants that
/// are no probes: tracepoints of patched kernels tell them.
macro_rules! names {
    ($(#[$outer:meta])* $enum:ident {
        $($(#[$doc:meta])* $kind:ident $name:literal $(or $older:literal)?,)*
        $(@ $($(#[$traced_doc:meta])* $traced:ident = $traced_name:expr,)*)?
    }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $enum {
            $($(#[$doc])* $kind,)*
            $($($(#[$traced_doc])* $traced,)*)?
        }

        impl $enum {
            /// All of them, without those that tracepoints tell.
            pub const ALL: &[$enum] = &[$($enum::$kind,)*];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self {
                    $($enum::$kind => $name,)*
                    $($($enum::$traced => $traced_name,)*)?
                }
            }

            /// The one called `name`, now or in older recordings.
            pub fn by_name(name: &str) -> Option<$enum> {
                Some(match name {
                    $($name $(| $older)? => $enum::$kind,)*
                    _ => return None,
                })
            }
        }
    };
}

names! {
    /// Where a probe stands: where one of the kernel's functions begins, or where it returns.
    ProbePoint {
        /// `place_entity()`.
        Place "place",
        /// `place_entity()` returns.
        PlaceReturn "place_r",
        /// `enqueue_entity()`.
        EnqueueEntity "enqe",
        /// `dequeue_entity()`.
        DequeueEntity "deqe",
        /// `dequeue_entities()`.
        DequeueEntities "deqs",
        /// `dequeue_entities()` returns.
        DequeueEntitiesReturn "deqs_r",
        /// `enqueue_task_fair()`.
        EnqueueTask "enq",
        /// `set_next_entity()`.
        SetNextEntity "setn" or "setnext",
        /// `set_next_task_fair()`.
        SetNextTask "setnt",
        /// `put_prev_entity()`.
        PutPrevEntity "putp",
        /// `pick_eevdf()`, `pick_next_entity()` return.
        PickReturn "pick_r",
        /// `reweight_entity()`.
        ReweightEntity "rew",
        /// `reweight_entity()` returns.
        ReweightEntityReturn "rew_r",
        /// `avg_vruntime()` returns.
        AverageReturn "avgv_r",
        /// `requeue_delayed_entity()`.
        RequeueDelayed "requeue",
        /// `__enqueue_entity()`: on the time line.
        Insert "rbins",
        /// `__dequeue_entity()`: off the time line.
        Remove "rbdel",
        /// `task_tick_fair()`, before it accounts.
        Tick "tick",
        /// `check_preempt_wakeup()` and its successors.
        WakeupPreempt "wkpre",
        /// `resched_curr()`.
        Resched "resched",
        /// `resched_curr_lazy()`.
        ReschedLazy "resched_lazy",
        /// `__resched_curr()`.
        ReschedFlag "resched_tif",
        /// `yield_task_fair()`.
        Yield "yld",
        /// `migrate_task_rq_fair()`.
        MigrateTask "mig",
        /// `migrate_task_rq_fair()` returns.
        MigrateTaskReturn "mig_r",
        /// `set_user_nice()`, before the change.
        Nice "nice",
        /// `__sched_setscheduler()`.
        SetScheduler "setsched",
        /// `sched_setaffinity()`.
        SetAffinity "setaff",
        /// `set_cpus_allowed_common()`, before the change, by any caller.
        SetAllowed "allowed",
        /// `sched_move_task()`.
        MoveGroup "movegrp",
        /// `sched_group_set_shares()`.
        SetShares "shares",
        /// `select_task_rq_fair()`.
        SelectTaskRq "sel",
        /// `select_task_rq_fair()` returns.
        SelectTaskRqReturn "sel_r",
        /// `available_idle_cpu()`; at its return, with what it is asked, where a kernel keeps that.
        AvailableIdle "aic",
        /// `available_idle_cpu()` returns, where the question is told apart.
        AvailableIdleReturn "aic_r",
        /// `ttwu_queue_wakelist()`.
        QueueWakelist "twq",
        /// `ttwu_queue_wakelist()` returns.
        QueueWakelistReturn "twq_r",
        /// `newidle_balance()`, `sched_balance_newidle()`.
        NewidleBalance "nib",
        /// `newidle_balance()` returns.
        NewidleBalanceReturn "nib_r",
        /// `load_balance()`, `sched_balance_rq()`.
        LoadBalance "lb",
        /// `load_balance()` returns.
        LoadBalanceReturn "lb_r",
        /// `find_busiest_group()` returns.
        FindBusiestGroupReturn "fbg_r",
        /// `active_load_balance_cpu_stop()`.
        ActiveBalance "alb",
        /// `detach_tasks()`, of other recorders.
        DetachTasks "detach",
        /// `detach_tasks()` returns.
        DetachTasksReturn "detached",
        /// `select_idle_core()`.
        SelectIdleCore "sic",
        /// `select_idle_core()` returns.
        SelectIdleCoreReturn "sic_r",
        /// `can_migrate_task()` returns.
        CanMigrateReturn "cmt_r",
        /// `detach_task()`.
        DetachTask "det",
        /// `attach_task()`.
        AttachTask "att",
        /// `throttle_cfs_rq()`.
        Throttle "thr",
        /// `unthrottle_cfs_rq()`.
        Unthrottle "unthr",
        @
        /// `reweight_entity()`, as a tracepoint of patched kernels tells it.
        ReweightTracepoint = UntypedTracepoint::SchedReweight.name(),
        /// `place_entity()`, as a tracepoint of patched kernels tells it.
        PlaceTracepoint = Tracepoint::SchedPlace.name(),
        /// `update_deadline()` with a request used up, as a tracepoint of patched kernels tells it.
        DeadlineTracepoint = UntypedTracepoint::SchedDeadlinePassed.name(),
    }
}

names! {
    /// A value that a probe fetches.
    ProbeField {
        /// The address of a queue.
        CfsRq "cf",
        /// A CPU.
        Cpu "cpu",
        /// The cgroup of a queue, or of a task: its inode.
        Cgroup "cg",
        /// Entities on a queue.
        NrRunning "nr",
        /// A queue's weight.
        QueueWeight "cw",
        /// The address of a queue's running entity.
        Curr "curr",
        /// `min_vruntime`.
        MinVruntime "minv",
        /// The buddy to run next.
        Next "next",
        /// The buddy that ran last.
        Last "last",
        /// The buddy to pass over.
        Skip "skip",
        /// `avg_vruntime`, `sum_w_vruntime`.
        AvgVruntime "avv",
        /// `avg_load`, `sum_weight`.
        AvgLoad "avl",
        /// `sum_shift`.
        Shift "sh",
        /// `zero_vruntime`.
        ZeroVruntime "zv",
        /// A queue's `load_avg`.
        LoadAvg "la",
        /// A queue's `runnable_avg`.
        RunnableAvg "ra",
        /// A queue's `util_avg`.
        UtilAvg "ua",
        /// When a queue's averages were aged.
        LastUpdate "lut",
        /// The address of an entity.
        Entity "se",
        /// A task; of no meaning for the entity of a group.
        Pid "pid",
        /// The address of a group's own queue; 0 for a task.
        MyQueue "my",
        /// `vruntime`.
        Vruntime "vr",
        /// `deadline`.
        Deadline "dl",
        /// `vlag`.
        Lag "vlag",
        /// `vprot`.
        Protected "vprot",
        /// An entity's weight.
        Weight "w",
        /// `on_rq`.
        OnRq "on",
        /// `slice`, ns.
        Slice "sl",
        /// `sched_delayed`.
        Delayed "sd",
        /// `rel_deadline`.
        RelativeDeadline "rd",
        /// `sum_exec_runtime`, ns.
        SumExec "sx",
        /// Flags of a call.
        Flags "fl" or "flags",
        /// The weight that an entity is given.
        NewWeight "neww",
        /// A CPU's running task.
        CurrentPid "cpid",
        /// `wake_flags`.
        WakeFlags "wf",
        /// What `avg_vruntime()` returns.
        Average "V",
        /// What a function returns.
        Returned "ret",
        /// The weight that a group is given.
        Shares "shares",
        /// A nice level.
        Nice "nice",
        /// A scheduling policy.
        Policy "policy",
        /// CPUs as bits.
        Mask "mask",
        /// The CPU where a task was.
        Previous "prev",
        /// The occasion of a selection, before v5.11.
        SdFlag "sdfl",
        /// A task's `load_avg`.
        TaskLoad "tla",
        /// A task's `runnable_avg`.
        TaskRunnable "tra",
        /// A task's `util_avg`.
        TaskUtil "tua",
        /// A task's load of its CPU, its groups' weights considered.
        TaskHierarchyLoad "thl",
        /// `wakee_flips`.
        WakeeFlips "wf_flips",
        /// `recent_used_cpu`.
        RecentUsed "recent",
        /// The CPU that a function is asked about.
        OtherCpu "c",
        /// The runqueue's clock, ns; the model alone prints it.
        Clock "ck",
        /// `nr_idle_scan`.
        NrIdleScan "nis",
        /// `has_idle_cores`.
        HasIdleCores "hic",
        /// Whether a task is picked for the first time.
        First "first",
        /// Why a CPU balances.
        IdleType "idle",
        /// A domain's level.
        Level "lvl",
        /// A domain's failures.
        Failures "failed",
        /// How much is to be moved.
        Imbalance "imb",
        /// What is to be moved.
        MigrationType "mtype",
        /// Where it is moved from.
        SourceCpu "src",
        /// Where it is moved to.
        DestCpu "dst",
        /// What is to be moved, of other recorders.
        ShortMigrationType "mt",
        /// `imbalance_pct`.
        ImbalancePct "pct",
        /// A domain's failures, of other recorders.
        ShortFailures "fail",
        /// How many.
        Count "n",
        /// Wakeups on their way to the CPU that balances.
        Coming "tp",
        /// Groups that affinity kept from being evened out, by their first CPUs.
        Marked "im",
        /// Where a running task is pushed.
        PushCpu "push",
        /// Where a function returns to.
        Caller "by",
        /// A domain's interval.
        Interval "intv",
        /// A domain's CPUs as bits.
        Span "span",
        /// `nr_busy_cpus`.
        BusyCpus "busy",
        /// `fbq_type`.
        QueueType "fbq",
        /// The address of a group of CPUs.
        SchedGroup "grp",
        /// The rest of a queue's quota, ns.
        RuntimeRemaining "rem",
        /// `avg_idle`, ns.
        AvgIdle "avgidle",
        /// A core, by a CPU.
        Core "core",
        /// The flag that asks for a reschedule.
        Flag "tif",
        /// Where a task goes.
        NewCpu "newcpu",
        /// How far from the root.
        Depth "depth",
        /// Whether a reschedule was asked for.
        Asks "resched",
        /// `vruntime` before the change.
        OldVruntime "vruntime before",
        /// `deadline` before the change.
        OldDeadline "deadline before",
    }
}

names! {
    /// A value that the probes of selections and of balancing fetch of every CPU; the CPU's number follows the name.
    CpuField {
        /// The root queue's `load_avg`.
        LoadAvg "la",
        /// Tasks queued on the CPU.
        NrRunning "nr",
        /// `avg_idle`, ns.
        AvgIdle "ai",
        /// The running task.
        CurrentPid "cp",
        /// The running task's `wakee_flips`.
        WakeeFlips "cf",
        /// The root queue's `runnable_avg`.
        RunnableAvg "ra",
        /// The root queue's `util_avg`.
        UtilAvg "ua",
        /// What is expected of that average.
        UtilEstimate "ue",
        /// The running task's `load_avg`.
        CurrentLoad "cl",
        /// The running task's load of the CPU, its groups' weights considered.
        CurrentHierarchyLoad "ch",
        /// Whether the CPU is idle.
        Idle "id",
        /// One more than since when, on a clock that all CPUs share; 0 where it is not.
        IdleSince "is",
        /// What searches take on average, ns.
        ScanCost "sc",
        /// The rest of the idle time that searches may use, ns.
        WakeIdle "wi",
        /// `nr_idle_scan` of what shares the CPU's cache.
        NrIdleScan "ni",
        /// `has_idle_cores` of what shares the CPU's cache.
        HasIdleCores "hi",
        /// Its fair tasks in the order in which balancing passes over them, each as
        /// `pid:load_avg:util_avg:enqueued:ewma:exec_start`.
        Tasks "q",
        /// Its queues of groups, each as `inode:load_avg:load_avg of its entity`.
        Groups "g",
    }
}
