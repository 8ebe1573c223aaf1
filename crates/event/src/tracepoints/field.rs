//! Fields of tracepoints: what they hold, how they are given and taken.
//!
//! Must not know: which tracepoints there are.

use super::Tracepoint;
use crate::{Comm, Cpu, Ns, Pid, Prio, TaskState};

/// One field of a tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracepointField {
    /// Its name in a binary record.
    pub name: &'static str,
    /// What the kernel prints before the value.
    pub label: &'static str,
    /// What it holds.
    pub form: FieldForm,
    /// Its column in a table of events.
    pub column: FieldColumn,
}

/// What a field holds, and how the kernel prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldForm {
    /// A task's name.
    Comm,
    /// A thread or process.
    Pid,
    /// A priority.
    Prio,
    /// A CPU.
    Cpu,
    /// The CPU of a wakeup, in three digits or more. Kernels before v4.3 print whether it succeeded before it.
    TargetCpu,
    /// Why a task leaves its CPU, as letters.
    State,
    /// A duration, with its unit.
    Nanoseconds,
    /// A number without sign, 64 bits.
    Unsigned,
    /// A number with sign, 64 bits.
    Signed,
    /// A number without sign, 32 bits.
    Count,
    /// Text of any length.
    Text,
    /// True or false; older kernels do not report it.
    FlagSince,
    /// A number with the unit of a duration; today's kernels do not report it.
    NanosecondsUntil,
}

impl FieldForm {
    /// Whether only some releases report it.
    pub const fn is_optional(self) -> bool {
        matches!(self, FieldForm::FlagSince | FieldForm::NanosecondsUntil)
    }

    /// Whether today's kernels report it.
    pub const fn is_reported_today(self) -> bool {
        !matches!(self, FieldForm::NanosecondsUntil)
    }
}

/// One value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TracepointValue<'t> {
    /// A task's name.
    Comm(Comm),
    /// A thread or process.
    Pid(Pid),
    /// A priority.
    Prio(Prio),
    /// A CPU.
    Cpu(Cpu),
    /// Why a task leaves its CPU.
    State(TaskState),
    /// A duration.
    Nanoseconds(Ns),
    /// A number without sign.
    Unsigned(u64),
    /// A number with sign.
    Signed(i64),
    /// A number of 32 bits.
    Count(u32),
    /// A text.
    Text(&'t str),
    /// True or false, or not reported.
    Flag(Option<bool>),
    /// A number with the unit of a duration, or not reported.
    NanosecondsUntil(Option<u64>),
}

impl TracepointValue<'_> {
    /// Whether the field was reported.
    pub const fn is_reported(&self) -> bool {
        !matches!(self, TracepointValue::Flag(None) | TracepointValue::NanosecondsUntil(None))
    }
}

/// Takes the fields of one event, one after the other in the order of its row.
pub trait FieldSink<'t> {
    /// Takes one field.
    fn field(&mut self, field: &'static TracepointField, value: TracepointValue<'t>);
}

/// Gives the fields of one event, one after the other in the order of its row; `None` where a field cannot be read.
pub trait FieldSource<'t>: Copy {
    /// Whether the end of a name is known without what follows it: names are read by [`ended_comm`](FieldSource::ended_comm) then.
    const ENDS_NAMES: bool = false;

    /// A task's name whose end is known.
    #[inline(always)]
    fn ended_comm(&mut self, _: &'static TracepointField) -> Option<Comm> {
        None
    }

    /// A task's name, and what `rest` makes of all fields behind it. A name may hold anything: in a text its end is where
    /// `rest`, beginning with the field `next`, can read all that follows.
    fn comm<T>(
        self,
        field: &'static TracepointField,
        next: &'static TracepointField,
        rest: impl Fn(Self) -> Option<T>,
    ) -> Option<(Comm, T)>;
    /// A thread or process.
    fn pid(&mut self, field: &'static TracepointField) -> Option<Pid>;
    /// A priority.
    fn prio(&mut self, field: &'static TracepointField) -> Option<Prio>;
    /// A CPU.
    fn cpu(&mut self, field: &'static TracepointField) -> Option<Cpu>;
    /// Why a task leaves its CPU.
    fn state(&mut self, field: &'static TracepointField) -> Option<TaskState>;
    /// A duration.
    fn nanoseconds(&mut self, field: &'static TracepointField) -> Option<Ns>;
    /// A number without sign.
    fn unsigned(&mut self, field: &'static TracepointField) -> Option<u64>;
    /// A number with sign.
    fn signed(&mut self, field: &'static TracepointField) -> Option<i64>;
    /// A number of 32 bits.
    fn count(&mut self, field: &'static TracepointField) -> Option<u32>;
    /// A text.
    fn text(&mut self, field: &'static TracepointField) -> Option<&'t str>;
    /// True or false; `Some(None)` where it is not reported.
    fn flag(&mut self, field: &'static TracepointField) -> Option<Option<bool>>;
    /// A number with the unit of a duration; `Some(None)` where it is not reported.
    fn nanoseconds_until(&mut self, field: &'static TracepointField) -> Option<Option<u64>>;
    /// Whether nothing stands behind the last field of `tracepoint` that must not.
    fn end(&self, tracepoint: Tracepoint) -> Option<()>;
}

/// A type of the fields of [`EventKind`](crate::EventKind).
pub trait TracepointType<'t>: Sized {
    /// As a value of any field.
    fn value(self) -> TracepointValue<'t>;

    /// Reads one field of this type. Names are read by [`FieldSource::comm`].
    fn read<S: FieldSource<'t>>(source: &mut S, field: &'static TracepointField) -> Option<Self>;
}

macro_rules! typed {
    ($($type:ty: $value:ident $method:ident,)*) => {
        $(impl<'t> TracepointType<'t> for $type {
            #[inline(always)]
            fn value(self) -> TracepointValue<'t> {
                TracepointValue::$value(self)
            }

            #[inline(always)]
            fn read<S: FieldSource<'t>>(source: &mut S, field: &'static TracepointField) -> Option<Self> {
                source.$method(field)
            }
        })*
    };
}

typed! {
    Pid: Pid pid,
    Prio: Prio prio,
    Cpu: Cpu cpu,
    TaskState: State state,
    Ns: Nanoseconds nanoseconds,
    u64: Unsigned unsigned,
    i64: Signed signed,
    u32: Count count,
    &'t str: Text text,
    Option<bool>: Flag flag,
    Option<u64>: NanosecondsUntil nanoseconds_until,
}

impl<'t> TracepointType<'t> for Comm {
    #[inline(always)]
    fn value(self) -> TracepointValue<'t> {
        TracepointValue::Comm(self)
    }

    #[inline(always)]
    fn read<S: FieldSource<'t>>(_: &mut S, _: &'static TracepointField) -> Option<Self> {
        None
    }
}

/// What a column of a table holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// UTF-8.
    Text,
    /// 32 bits with sign: the kernel's `int`.
    I32,
    /// 64 bits with sign, so that the difference of two may be negative; from 2⁶³ on they wrap to negative ones.
    I64,
    /// True or false.
    Bool,
}

macro_rules! columns {
    ($($column:ident $name:literal $type:ident,)*) => {
        /// The columns of a table of events that are fields of tracepoints, in their order. Events share a column where
        /// the field means the one thing.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum FieldColumn {
            $(#[doc = concat!("`", $name, "`.")] $column,)*
        }

        impl FieldColumn {
            /// All of them.
            pub const ALL: &[FieldColumn] = &[$(FieldColumn::$column,)*];

            /// Its name. Times and durations end in `_ns`.
            pub const fn name(self) -> &'static str {
                match self { $(FieldColumn::$column => $name,)* }
            }

            /// What it holds.
            pub const fn holds(self) -> ColumnType {
                match self { $(FieldColumn::$column => ColumnType::$type,)* }
            }
        }
    };
}

columns! {
    Comm "comm" Text,
    Pid "pid" I32,
    Tgid "tgid" I32,
    Prio "prio" I32,
    TargetCpu "target_cpu" I64,
    OrigCpu "orig_cpu" I64,
    DestCpu "dest_cpu" I64,
    PrevComm "prev_comm" Text,
    PrevPid "prev_pid" I32,
    PrevPrio "prev_prio" I32,
    PrevState "prev_state" Text,
    NextComm "next_comm" Text,
    NextPid "next_pid" I32,
    NextPrio "next_prio" I32,
    ParentPid "parent_pid" I32,
    ChildComm "child_comm" Text,
    ChildPid "child_pid" I32,
    OldPid "old_pid" I32,
    Filename "exec_filename" Text,
    GroupDead "group_dead" Bool,
    Delay "delay_ns" I64,
    Runtime "runtime_ns" I64,
    Vruntime "vruntime" I64,
    Deadline "deadline" I64,
    Vlag "vlag" I64,
    AvgVruntime "avg_vruntime" I64,
    MinVruntime "min_vruntime" I64,
    QueueCpu "queue_cpu" I64,
    NrRunning "nr_running" I64,
}
