//! Tracepoints without a type, which are recorded or read by name.
//!
//! Must not know: what their fields mean.

macro_rules! untyped {
    ($($(#[$doc:meta])* $kind:ident $system:literal $name:literal,)*) => {
        /// A tracepoint of [`EventKind::Other`](crate::EventKind::Other) that somebody looks at.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum UntypedTracepoint {
            $($(#[$doc])* $kind,)*
        }

        impl UntypedTracepoint {
            /// All of them.
            pub const ALL: &[UntypedTracepoint] = &[$(UntypedTracepoint::$kind,)*];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(UntypedTracepoint::$kind => $name,)* }
            }

            /// Its subsystem.
            pub const fn system(self) -> &'static str {
                match self { $(UntypedTracepoint::$kind => $system,)* }
            }

            /// `system/name`, as tracefs has its folder.
            pub const fn path(self) -> &'static str {
                match self { $(UntypedTracepoint::$kind => concat!($system, "/", $name),)* }
            }

            /// That a trace has none: the reason why something cannot be answered.
            pub const fn absent(self) -> &'static str {
                match self { $(UntypedTracepoint::$kind => concat!($name, " is not in the trace"),)* }
            }

            /// The one called `name`. The text of a trace prints a system call's entry without `enter_`.
            pub fn by_name(name: &str) -> Option<UntypedTracepoint> {
                Some(match name {
                    $($name => UntypedTracepoint::$kind,)*
                    _ => return UntypedTracepoint::of_call(name.strip_prefix("sys_")?),
                })
            }

            fn of_call(call: &str) -> Option<UntypedTracepoint> {
                let is_it = |kind: &UntypedTracepoint| kind.name().strip_prefix("sys_enter_") == Some(call);
                UntypedTracepoint::ALL.iter().copied().find(is_it)
            }
        }
    };
}

untyped! {
    /// The interrupt of a CPU's own timer.
    LocalTimer "irq_vectors" "local_timer_entry",
    /// The interrupt that asks a CPU to reschedule.
    Reschedule "irq_vectors" "reschedule_entry",
    /// The interrupt by which another CPU has this one call a function.
    CallFunctionSingle "irq_vectors" "call_function_single_entry",
    /// The interrupt of a function call, for several CPUs.
    CallFunction "irq_vectors" "call_function_entry",
    /// A soft interrupt begins.
    SoftirqEntry "irq" "softirq_entry",
    /// A soft interrupt ends.
    SoftirqExit "irq" "softirq_exit",
    /// A timer of high resolution expires.
    HrtimerExpire "timer" "hrtimer_expire_entry",
    /// A CPU goes into an idle state, or leaves it.
    CpuIdle "power" "cpu_idle",
    /// A CPU's clock runs at another frequency.
    CpuFrequency "power" "cpu_frequency",
    /// CPUs are interrupted, by what mask and reason.
    IpiRaise "ipi" "ipi_raise",
    /// A CPU is interrupted, and from where.
    IpiSendCpu "ipi" "ipi_send_cpu",
    /// CPUs are interrupted, and from where.
    IpiSendCpumask "ipi" "ipi_send_cpumask",
    /// `sched_yield()`.
    SchedYield "syscalls" "sys_enter_sched_yield",
    /// `sched_setaffinity()`.
    SchedSetaffinity "syscalls" "sys_enter_sched_setaffinity",
    /// `sched_setscheduler()`.
    SchedSetscheduler "syscalls" "sys_enter_sched_setscheduler",
    /// `sched_setattr()`.
    SchedSetattr "syscalls" "sys_enter_sched_setattr",
    /// `setpriority()`.
    Setpriority "syscalls" "sys_enter_setpriority",
    /// A task is now in a cgroup.
    CgroupAttachTask "cgroup" "cgroup_attach_task",
    /// A cgroup is made.
    CgroupMkdir "cgroup" "cgroup_mkdir",
    /// A task is lent the priority of one that waits for its lock, or gives it back.
    SchedPiSetprio "sched" "sched_pi_setprio",
    /// `reweight_entity()` of kernels patched to trace it.
    SchedReweight "sched" "sched_reweight",
    /// `update_deadline()` of kernels patched to trace it, with a request used up.
    SchedDeadlinePassed "sched" "sched_deadline_passed",
    /// The task that is to run next on a CPU, and why, at each level of groups. A modelled kernel tells it if asked for its
    /// decisions.
    DecidedPick "fairlab" "decided_pick",
    /// Whether a task that was queued takes the CPU, and why.
    DecidedPreempt "fairlab" "decided_preempt",
    /// Whether a tick takes the CPU away, and why.
    DecidedTick "fairlab" "decided_tick",
    /// The CPU that was selected for a task, and why.
    DecidedCpu "fairlab" "decided_cpu",
    /// What a CPU took from others, or why it took nothing.
    DecidedBalance "fairlab" "decided_balance",
    /// A CPU was set in its cache's mask of idle CPUs, or cleared (the RFC `idle-cpumask-v7`).
    DoneIdleMask "fairlab" "done_idle_mask",
    /// A wakeup scanned such a mask.
    DoneIdleMaskScan "fairlab" "done_idle_mask_scan",
    /// Work of the scheduler itself, and how long it took; kernels in virtual time tell it where decisions are asked for.
    DoneWork "fairlab" "done_work",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_calls_have_two_names() {
        assert_eq!(UntypedTracepoint::by_name("sys_enter_sched_yield"), Some(UntypedTracepoint::SchedYield));
        assert_eq!(UntypedTracepoint::by_name("sys_sched_yield"), Some(UntypedTracepoint::SchedYield));
        assert_eq!(UntypedTracepoint::by_name("sched_yield"), None);
        assert_eq!(UntypedTracepoint::by_name("sys_exit_sched_yield"), None);
        for &kind in UntypedTracepoint::ALL {
            assert_eq!(UntypedTracepoint::by_name(kind.name()), Some(kind));
            assert_eq!(kind.path(), format!("{}/{}", kind.system(), kind.name()));
        }
    }
}
