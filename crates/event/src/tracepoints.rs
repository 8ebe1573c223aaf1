//! The list of tracepoints: every tracepoint that has a type, described once.
//!
//! A row has its [`EventKind`], the kernel's subsystem and name, and whether mainline kernels have it. Its fields are in the
//! kernel's order. A field has a type, the text before the value in the kernel's output, and the column of a table. It has a name
//! in binary records if that differs. Digests, texts, records, columns, counts and the set of recorded events derive from these
//! rows by [`FieldSink`] and [`FieldSource`]. A new tracepoint is a variant of [`EventKind`] and a row.
//!
//! Must not know: files, what a reader does with a tracepoint that it cannot read.

use crate::{EventKind, Place, StatDelay, Switch, Wakeup};

mod field;
#[macro_use]
mod rows;
mod untyped;

pub use field::{
    ColumnType, FieldColumn, FieldForm, FieldSink, FieldSource, TracepointField, TracepointType,
    TracepointValue,
};
pub use untyped::UntypedTracepoint;

tracepoints! {
    /// A CPU changes from one task to another.
    SchedSwitch(Switch) = "sched" "sched_switch" mainline often {
        prev_comm: Comm "prev_comm=" PrevComm,
        prev_pid: Pid " prev_pid=" PrevPid,
        prev_prio: Prio " prev_prio=" PrevPrio,
        prev_state: State " prev_state=" PrevState,
        next_comm: Comm " ==> next_comm=" NextComm,
        next_pid: Pid " next_pid=" NextPid,
        next_prio: Prio " next_prio=" NextPrio,
    }
    /// A wakeup begins.
    SchedWaking(Wakeup) = "sched" "sched_waking" mainline often {
        comm: Comm "comm=" Comm,
        pid: Pid " pid=" Pid,
        prio: Prio " prio=" Prio,
        target_cpu: TargetCpu " target_cpu=" TargetCpu,
    }
    /// The wakee is queued.
    SchedWakeup(Wakeup) = "sched" "sched_wakeup" mainline often {
        comm: Comm "comm=" Comm,
        pid: Pid " pid=" Pid,
        prio: Prio " prio=" Prio,
        target_cpu: TargetCpu " target_cpu=" TargetCpu,
    }
    /// A new task is queued for the first time.
    SchedWakeupNew(Wakeup) = "sched" "sched_wakeup_new" mainline seldom {
        comm: Comm "comm=" Comm,
        pid: Pid " pid=" Pid,
        prio: Prio " prio=" Prio,
        target_cpu: TargetCpu " target_cpu=" TargetCpu,
    }
    /// A task changes CPUs while not running.
    SchedMigrateTask = "sched" "sched_migrate_task" mainline seldom {
        comm: Comm "comm=" Comm,
        pid: Pid " pid=" Pid,
        prio: Prio " prio=" Prio,
        orig_cpu: Cpu " orig_cpu=" OrigCpu,
        dest_cpu: Cpu " dest_cpu=" DestCpu,
    }
    /// A task creates another.
    SchedProcessFork = "sched" "sched_process_fork" mainline seldom {
        comm: Comm "comm=" Comm recorded "parent_comm",
        pid: Pid " pid=" Pid recorded "parent_pid",
        child_comm: Comm " child_comm=" ChildComm,
        child_pid: Pid " child_pid=" ChildPid,
    }
    /// A task replaces its program.
    SchedProcessExec = "sched" "sched_process_exec" mainline seldom {
        filename: Text "filename=" Filename,
        pid: Pid " pid=" Pid,
        old_pid: Pid " old_pid=" OldPid,
    }
    /// A task ends.
    SchedProcessExit = "sched" "sched_process_exit" mainline seldom {
        comm: Comm "comm=" Comm,
        pid: Pid " pid=" Pid,
        prio: Prio " prio=" Prio,
        group_dead: FlagSince " group_dead=" GroupDead,
    }
    /// Time spent runnable and not running.
    SchedStatWait(StatDelay) = "sched" "sched_stat_wait" mainline often {
        comm: Comm "comm=" Comm,
        pid: Pid " pid=" Pid,
        delay: Nanoseconds " delay=" Delay,
    }
    /// Time spent in interruptible sleep.
    SchedStatSleep(StatDelay) = "sched" "sched_stat_sleep" mainline seldom {
        comm: Comm "comm=" Comm,
        pid: Pid " pid=" Pid,
        delay: Nanoseconds " delay=" Delay,
    }
    /// Time spent in uninterruptible sleep.
    SchedStatBlocked(StatDelay) = "sched" "sched_stat_blocked" mainline seldom {
        comm: Comm "comm=" Comm,
        pid: Pid " pid=" Pid,
        delay: Nanoseconds " delay=" Delay,
    }
    /// Time spent waiting for I/O.
    SchedStatIowait(StatDelay) = "sched" "sched_stat_iowait" mainline seldom {
        comm: Comm "comm=" Comm,
        pid: Pid " pid=" Pid,
        delay: Nanoseconds " delay=" Delay,
    }
    /// CPU time accounted to a task.
    SchedStatRuntime = "sched" "sched_stat_runtime" mainline often {
        comm: Comm "comm=" Comm,
        pid: Pid " pid=" Pid,
        runtime: Nanoseconds " runtime=" Runtime,
        vruntime: NanosecondsUntil " vruntime=" Vruntime,
    }
    /// An entity is placed on its queue, in kernels that are patched to tell.
    SchedPlace(Place) = "sched" "sched_place" patched seldom {
        comm: Comm "comm=" Comm,
        pid: Pid " pid=" Pid,
        sev: Unsigned " sev=" Vruntime,
        sed: Unsigned " sed=" Deadline,
        sel: Signed " sel=" Vlag,
        avg: Unsigned " avg=" AvgVruntime,
        min: Unsigned " min=" MinVruntime,
        cpu: Cpu " cpu=" QueueCpu,
        nr: Count " nr=" NrRunning,
    }
    /// A recorder's knowledge of a task's name.
    TaskName = "fairlab" "task_name" own seldom {
        comm: Comm "comm=" Comm,
        pid: Pid " pid=" Pid,
        tgid: Pid " tgid=" Tgid,
    }
    /// A recorder's knowledge that a task began.
    TaskStart = "fairlab" "task_start" own seldom {
        pid: Pid "pid=" Pid,
        tgid: Pid " tgid=" Tgid,
        parent_pid: Pid " parent_pid=" ParentPid,
    }
    /// A recorder's knowledge that a task is about to end.
    TaskExit = "fairlab" "task_exit" own seldom {
        pid: Pid "pid=" Pid,
        tgid: Pid " tgid=" Tgid,
    }
}

/// The kernels that have a tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TracepointOrigin {
    Mainline,
    Patched,
    Own,
}

impl Tracepoint {
    /// The subsystem of a recorder's own knowledge, which no kernel reports.
    pub const OWN_SYSTEM: &str = Tracepoint::TaskName.system();

    /// Whether mainline kernels have it. Answers are made of these, recorders switch these on, and descriptions of records
    /// have all of these.
    pub const fn is_mainline(self) -> bool {
        matches!(self.origin(), TracepointOrigin::Mainline)
    }

    /// Whether some kernel reports it; the others are a recorder's own knowledge.
    pub const fn is_reported(self) -> bool {
        !matches!(self.origin(), TracepointOrigin::Own)
    }

    /// The tracepoint called `name` of subsystem `system`.
    pub fn of_system(system: &str, name: &str) -> Option<Tracepoint> {
        Tracepoint::by_name(name.as_bytes()).filter(|tracepoint| tracepoint.system() == system)
    }

    /// All that mainline kernels have.
    pub fn mainline() -> impl Iterator<Item = Tracepoint> {
        Tracepoint::ALL.iter().copied().filter(|tracepoint| tracepoint.is_mainline())
    }

    /// The field that only some releases report.
    pub fn optional_field(self) -> Option<&'static TracepointField> {
        self.fields().iter().find(|field| field.form.is_optional())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Comm, Cpu, Ns, Pid, Prio, TaskState};

    #[test]
    fn names_are_unique_and_found() {
        for &tracepoint in Tracepoint::ALL {
            assert_eq!(Tracepoint::by_name(tracepoint.name().as_bytes()), Some(tracepoint));
            assert_eq!(Tracepoint::of_system(tracepoint.system(), tracepoint.name()), Some(tracepoint));
        }
        assert_eq!(Tracepoint::by_name(b"sched_switc"), None);
        assert_eq!(Tracepoint::of_system("lab", Tracepoint::SchedSwitch.name()), None);
        assert_eq!(Tracepoint::ALL.len(), Tracepoint::COUNT);
    }

    #[test]
    fn the_optional_field_stands_last() {
        for tracepoint in Tracepoint::ALL {
            let optional = tracepoint.fields().iter().position(|field| field.form.is_optional());
            assert!(optional.is_none_or(|place| place + 1 == tracepoint.fields().len()), "{tracepoint:?}");
        }
    }

    /// Gives back the values that it took, in their order.
    #[derive(Clone, Copy, Default)]
    struct Kept<'t> {
        values: [Option<TracepointValue<'t>>; 9],
        at: usize,
    }

    impl<'t> FieldSink<'t> for Kept<'t> {
        fn field(&mut self, _: &'static TracepointField, value: TracepointValue<'t>) {
            self.values[self.at] = Some(value);
            self.at += 1;
        }
    }

    macro_rules! gives_back {
        ($($method:ident $value:ident $type:ty,)*) => {
            $(fn $method(&mut self, _: &'static TracepointField) -> Option<$type> {
                self.at += 1;
                match self.values[self.at - 1] { Some(TracepointValue::$value(value)) => Some(value), _ => None }
            })*
        };
    }

    impl<'t> FieldSource<'t> for Kept<'t> {
        fn comm<T>(
            mut self,
            _: &'static TracepointField,
            _: &'static TracepointField,
            rest: impl Fn(Self) -> Option<T>,
        ) -> Option<(Comm, T)> {
            self.at += 1;
            let Some(TracepointValue::Comm(comm)) = self.values[self.at - 1] else { return None };
            Some((comm, rest(self)?))
        }

        gives_back! {
            pid Pid Pid, prio Prio Prio, cpu Cpu Cpu, state State TaskState, nanoseconds Nanoseconds Ns,
            unsigned Unsigned u64, signed Signed i64, count Count u32, text Text &'t str,
            flag Flag Option<bool>, nanoseconds_until NanosecondsUntil Option<u64>,
        }

        fn end(&self, tracepoint: Tracepoint) -> Option<()> {
            (self.at == tracepoint.fields().len()).then_some(())
        }
    }

    #[test]
    fn what_a_row_gives_it_takes_back() {
        let (comm, pid, prio) = (Comm::from("a"), Pid(7), Prio(120));
        let wakeup = Wakeup { comm, pid, prio, target_cpu: Cpu(3) };
        let place = Place { comm, pid, sev: 1, sed: 2, sel: -3, avg: 4, min: 5, cpu: Cpu(6), nr: 7 };
        for kind in [
            EventKind::SchedWaking(wakeup),
            EventKind::SchedProcessExec { filename: "/a b", pid, old_pid: Pid(8) },
            EventKind::SchedProcessExit { comm, pid, prio, group_dead: Some(true) },
            EventKind::SchedStatRuntime { comm, pid, runtime: Ns(9), vruntime: None },
            EventKind::SchedPlace(place),
            EventKind::TaskStart { pid, tgid: Pid(1), parent_pid: Pid(2) },
        ] {
            let mut kept = Kept::default();
            kind.give_fields(&mut kept);
            let tracepoint = kind.tracepoint().expect("a tracepoint");
            let back = tracepoint.read(Kept { at: 0, ..kept }, |kind| kind);
            assert_eq!(back, Some(kind));
        }
        let mut kept = Kept::default();
        EventKind::Marker { text: "a" }.give_fields(&mut kept);
        assert_eq!((kept.at, EventKind::Marker { text: "a" }.tracepoint()), (0, None));
    }
}
