//! One event: when, where, in which task's context, and what.

use crate::{Comm, Cpu, Ns, Pid, Prio, TaskState, TextFields};

/// One thing that a kernel reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'t> {
    /// When, on the trace's own clock.
    pub time: Ns,
    /// The CPU that reported it; for a wakeup this is where the waker (or the IPI) ran, not where the task goes.
    pub cpu: Cpu,
    /// The task that the CPU was running meanwhile.
    pub context: Context,
    /// What happened.
    pub kind: EventKind<'t>,
}

/// The task on whose CPU time an event was reported, and the mode of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// Its name; empty when the trace does not know it (`<...>`). The idle task is `<idle>` or `swapper/N`.
    pub comm: Comm,
    /// Its thread id.
    pub pid: Pid,
    /// Its process id, where the trace has it.
    pub tgid: Pid,
    /// Interrupt and preemption state.
    pub flags: Flags,
}

impl Default for Context {
    fn default() -> Context {
        Context { comm: Comm::default(), pid: Pid::UNKNOWN, tgid: Pid::UNKNOWN, flags: Flags::NONE }
    }
}

/// The flag columns of an ftrace line (`dNh2.`), kept as printed: up to eight characters, fewer on older kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags([u8; 8]);

impl Flags {
    /// Not recorded (`trace-cmd report` without latency format, `perf script`).
    pub const NONE: Flags = Flags([0; 8]);

    /// Keeps up to eight flag characters.
    #[inline]
    pub fn new(columns: &[u8]) -> Flags {
        let mut kept = [0; 8];
        let length = columns.len().min(8);
        kept[..length].copy_from_slice(&columns[..length]);
        Flags(kept)
    }

    /// The characters, with zeros behind them alone.
    #[inline]
    pub const fn from_padded(columns: [u8; 8]) -> Flags {
        Flags(columns)
    }

    /// The characters as printed; empty when none were recorded.
    pub fn as_bytes(&self) -> &[u8] {
        const LOW_BITS: u64 = u64::MAX / 0xff;
        let columns = u64::from_le_bytes(self.0);
        // The lowest bit set marks the first NUL byte.
        let nul_marks = columns.wrapping_sub(LOW_BITS) & !columns & (LOW_BITS << 7);
        &self.0[..(nul_marks.trailing_zeros() / u8::BITS) as usize]
    }

    /// Whether a reschedule was pending: the second column is one of `N n B b L l p`
    /// (lower-case `n` is `TIF_NEED_RESCHED` set by another CPU and not folded yet).
    pub const fn need_resched(self) -> bool {
        matches!(self.0[1], b'N' | b'n' | b'B' | b'b' | b'L' | b'l' | b'p')
    }

    /// These flags without a pending reschedule.
    pub const fn without_need_resched(self) -> Flags {
        let mut columns = self.0;
        if self.need_resched() {
            columns[1] = b'.';
        }
        Flags(columns)
    }

    /// Whether the event was reported from a hardware interrupt (`h`, `H`) or an NMI (`z`, `Z`).
    pub const fn in_hardirq(self) -> bool {
        matches!(self.0[2], b'h' | b'H' | b'z' | b'Z')
    }

    /// Whether the event was reported from a soft interrupt (`s`, or `H`: a hardware interrupt on top of one).
    pub const fn in_softirq(self) -> bool {
        matches!(self.0[2], b's' | b'H' | b'Z')
    }
}

/// `sched_switch`: a CPU changes from one task to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Name of the task that leaves.
    pub prev_comm: Comm,
    /// The task that leaves.
    pub prev_pid: Pid,
    /// Its priority.
    pub prev_prio: Prio,
    /// Why it leaves.
    pub prev_state: TaskState,
    /// Name of the task that starts.
    pub next_comm: Comm,
    /// The task that starts.
    pub next_pid: Pid,
    /// Its priority.
    pub next_prio: Prio,
}

/// `sched_waking`, `sched_wakeup`, `sched_wakeup_new`: a task becomes runnable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// Name of the wakee.
    pub comm: Comm,
    /// The wakee.
    pub pid: Pid,
    /// Its priority.
    pub prio: Prio,
    /// `sched_waking`: the CPU it slept on; the two others: the CPU it is queued on.
    pub target_cpu: Cpu,
}

/// `sched_stat_wait`, `sched_stat_sleep`, `sched_stat_blocked`, `sched_stat_iowait`: how long a state lasted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatDelay {
    /// Name of the task.
    pub comm: Comm,
    /// The task.
    pub pid: Pid,
    /// How long.
    pub delay: Ns,
}

/// `sched_place`: where an entity was placed on its queue's virtual time line, one event a hierarchy level.
///
/// Not a mainline tracepoint: reported by patched kernels at the end of `place_entity`, by kprobes, and by the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the task; empty for a group entity.
    pub comm: Comm,
    /// The task; 0 for a group entity.
    pub pid: Pid,
    /// `sched_entity::vruntime`, ns of virtual time, wraps.
    pub sev: u64,
    /// `sched_entity::deadline`, ns of virtual time, wraps.
    pub sed: u64,
    /// `sched_entity::vlag` before it is inflated for the insertion, ns of virtual time.
    pub sel: i64,
    /// `avg_vruntime()` of the queue before the insertion.
    pub avg: u64,
    /// `cfs_rq::min_vruntime`.
    pub min: u64,
    /// The queue's CPU.
    pub cpu: Cpu,
    /// `cfs_rq::nr_running` before the insertion.
    pub nr: u32,
}

/// What happened. Variants that carry text borrow it for the time of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind<'t> {
    /// A CPU changes tasks.
    SchedSwitch(Switch),
    /// A wakeup begins, in the waker's context.
    SchedWaking(Wakeup),
    /// The wakee is queued.
    SchedWakeup(Wakeup),
    /// A new task is queued for the first time.
    SchedWakeupNew(Wakeup),
    /// A task changes CPUs while not running (wakeup, balancing, affinity); reported before it is queued there.
    SchedMigrateTask {
        /// Name of the task.
        comm: Comm,
        /// The task.
        pid: Pid,
        /// Its priority.
        prio: Prio,
        /// Where it was.
        orig_cpu: Cpu,
        /// Where it goes.
        dest_cpu: Cpu,
    },
    /// A task creates another.
    SchedProcessFork {
        /// Name of the parent.
        comm: Comm,
        /// The parent.
        pid: Pid,
        /// Name of the child (its parent's, for now).
        child_comm: Comm,
        /// The child.
        child_pid: Pid,
    },
    /// A task replaces its program.
    SchedProcessExec {
        /// Path of the new program.
        filename: &'t str,
        /// The task.
        pid: Pid,
        /// Its id before, which differs when a thread other than the leader calls exec.
        old_pid: Pid,
    },
    /// A task ends.
    SchedProcessExit {
        /// Name of the task.
        comm: Comm,
        /// The task.
        pid: Pid,
        /// Its priority.
        prio: Prio,
        /// Whether its whole thread group is gone; reported from v6.16.
        group_dead: Option<bool>,
    },
    /// Time spent runnable and not running, reported when it ends.
    SchedStatWait(StatDelay),
    /// Time spent in interruptible sleep, reported at the wakeup.
    SchedStatSleep(StatDelay),
    /// Time spent in uninterruptible sleep, reported at the wakeup.
    SchedStatBlocked(StatDelay),
    /// Time spent waiting for I/O, reported at the wakeup, before `sched_stat_blocked`.
    SchedStatIowait(StatDelay),
    /// CPU time accounted to a task by `update_curr`.
    SchedStatRuntime {
        /// Name of the task.
        comm: Comm,
        /// The task.
        pid: Pid,
        /// CPU time since the last accounting.
        runtime: Ns,
        /// Its virtual runtime after it, ns of virtual time; not reported from v6.8.
        vruntime: Option<u64>,
    },
    /// An entity is placed on its queue.
    SchedPlace(Place),
    /// A dynamic probe (kprobe, kretprobe, uprobe).
    Kprobe {
        /// The probe event's name.
        name: &'t str,
        /// The place in brackets and the fetched values.
        fields: TextFields<'t>,
    },
    /// Text that user space wrote to `trace_marker`, or `trace_printk`.
    Marker {
        /// The text, without its line end.
        text: &'t str,
    },
    /// A tracepoint that Fairlab has no type for.
    Other {
        /// The event's name, without its subsystem.
        name: &'t str,
        /// What it printed, or its fields as `name=value` where the source is binary.
        fields: TextFields<'t>,
    },
    /// The trace's own knowledge of a task's name, apart from any tracepoint: `PERF_RECORD_COMM`, saved command lines.
    TaskName {
        /// The thread.
        pid: Pid,
        /// Its process.
        tgid: Pid,
        /// Its name from now on.
        comm: Comm,
    },
    /// The trace's own knowledge that a task began, apart from any tracepoint: `PERF_RECORD_FORK`.
    TaskStart {
        /// The new thread.
        pid: Pid,
        /// Its process.
        tgid: Pid,
        /// The thread that created it, whose name it inherits.
        parent_pid: Pid,
    },
    /// The trace's own knowledge that a task is about to end, apart from any tracepoint: `PERF_RECORD_EXIT`. It may still
    /// be switched out and in before its last switch.
    TaskExit {
        /// The thread.
        pid: Pid,
        /// Its process.
        tgid: Pid,
    },
    /// Events of this CPU are missing between its event before and its event after: the recorder had no room, or the oldest
    /// were overwritten. What the CPU did meanwhile is unknown, and so is all that it did before if it has no event before.
    Lost {
        /// How many, where the trace says it.
        count: Option<u64>,
    },
}

impl<'t> Event<'t> {
    /// An event without context.
    pub fn new(time: Ns, cpu: Cpu, kind: EventKind<'t>) -> Event<'t> {
        Event { time, cpu, context: Context::default(), kind }
    }
}

impl<'t> EventKind<'t> {
    /// The name of text that user space wrote.
    pub const MARKER: &'static str = "tracing_mark_write";

    /// The name of lost events.
    pub const LOST: &'static str = "lost_events";

    /// Whether this is the trace's own knowledge of a task, apart from any tracepoint.
    pub const fn is_task_record(&self) -> bool {
        matches!(self, EventKind::TaskName { .. } | EventKind::TaskStart { .. } | EventKind::TaskExit { .. })
    }

    /// The event for good, if it carries no text.
    #[inline]
    pub const fn without_text(self) -> Option<EventKind<'static>> {
        Some(match self {
            EventKind::SchedSwitch(switch) => EventKind::SchedSwitch(switch),
            EventKind::SchedWaking(wakeup) => EventKind::SchedWaking(wakeup),
            EventKind::SchedWakeup(wakeup) => EventKind::SchedWakeup(wakeup),
            EventKind::SchedWakeupNew(wakeup) => EventKind::SchedWakeupNew(wakeup),
            EventKind::SchedMigrateTask { comm, pid, prio, orig_cpu, dest_cpu } => {
                EventKind::SchedMigrateTask { comm, pid, prio, orig_cpu, dest_cpu }
            }
            EventKind::SchedProcessFork { comm, pid, child_comm, child_pid } => {
                EventKind::SchedProcessFork { comm, pid, child_comm, child_pid }
            }
            EventKind::SchedProcessExit { comm, pid, prio, group_dead } => {
                EventKind::SchedProcessExit { comm, pid, prio, group_dead }
            }
            EventKind::SchedStatWait(delay) => EventKind::SchedStatWait(delay),
            EventKind::SchedStatSleep(delay) => EventKind::SchedStatSleep(delay),
            EventKind::SchedStatBlocked(delay) => EventKind::SchedStatBlocked(delay),
            EventKind::SchedStatIowait(delay) => EventKind::SchedStatIowait(delay),
            EventKind::SchedStatRuntime { comm, pid, runtime, vruntime } => {
                EventKind::SchedStatRuntime { comm, pid, runtime, vruntime }
            }
            EventKind::SchedPlace(place) => EventKind::SchedPlace(place),
            EventKind::TaskName { pid, tgid, comm } => EventKind::TaskName { pid, tgid, comm },
            EventKind::TaskStart { pid, tgid, parent_pid } => EventKind::TaskStart { pid, tgid, parent_pid },
            EventKind::TaskExit { pid, tgid } => EventKind::TaskExit { pid, tgid },
            EventKind::Lost { count } => EventKind::Lost { count },
            EventKind::SchedProcessExec { .. }
            | EventKind::Kprobe { .. }
            | EventKind::Marker { .. }
            | EventKind::Other { .. } => return None,
        })
    }

    /// The tracepoint's name as the kernel prints it. Records that are no tracepoints have names of their own.
    pub fn name(&self) -> &'t str {
        if let Some(tracepoint) = self.tracepoint() {
            return tracepoint.name();
        }
        match self {
            EventKind::Kprobe { name, .. } | EventKind::Other { name, .. } => name,
            EventKind::Lost { .. } => EventKind::LOST,
            _ => EventKind::MARKER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_small() {
        assert!(size_of::<Event<'_>>() <= 128, "{}", size_of::<Event<'_>>());
    }

    #[test]
    fn flags_tell_mode_and_pending_reschedule() {
        assert!(Flags::new(b"dNh..").need_resched() && Flags::new(b"dNh..").in_hardirq());
        assert!(Flags::new(b"dns4.").need_resched() && Flags::new(b"dns4.").in_softirq());
        assert!(!Flags::new(b"d..2.").need_resched());
        assert!(!Flags::NONE.need_resched() && Flags::NONE.as_bytes().is_empty());
        assert_eq!(Flags::new(b"d.h2.").as_bytes(), b"d.h2.");
    }
}
