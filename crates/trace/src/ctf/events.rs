//! Fields under the names of LTTng, or of perf, as an event of the kernel.
//!
//! LTTng calls threads `tid` where the kernel says `pid`, and counts priorities from the first that is not real-time.
//! Facts: lttng-modules, instrumentation/events/sched.h. Must not know: packets.

use std::fmt::Write;

use fairlab_event::{
    Comm, Cpu, EventKind, FieldSource, Ns, Pid, Prio, TaskState, TextFields, Tracepoint, TracepointField,
};

use super::decode::{CtfFields, CtfValue};
use crate::tracepoint::state_table::StateTable;

/// How a recorder writes what it records.
#[derive(Clone, Debug)]
pub(super) struct CtfRecorder {
    /// What is to be added to priorities.
    pub(super) prio: i32,
    pub(super) states: StateTable,
}

/// What stands in every event of perf beside its own fields, and what LTTng's contexts add.
const AROUND: [&str; 18] = [
    "id",
    "timestamp",
    "perf_ip",
    "perf_tid",
    "perf_pid",
    "perf_id",
    "perf_period",
    "perf_stream_id",
    "common_type",
    "common_flags",
    "common_preempt_count",
    "common_pid",
    "cpu_id",
    "tid",
    "pid",
    "procname",
    "prio",
    "v",
];

/// Hands the event called `name` to `take`; gives back whether its fields could be read.
pub(super) fn event<T>(
    name: &str,
    fields: &CtfFields<'_>,
    recorder: &CtfRecorder,
    scratch: &mut String,
    take: impl FnOnce(EventKind<'_>) -> T,
) -> Option<T> {
    let source = CtfFieldSource { fields, recorder };
    if let Some(tracepoint) =
        Tracepoint::by_name(name.as_bytes()).filter(|tracepoint| tracepoint.is_reported())
    {
        return tracepoint.read(source, take);
    }
    scratch.clear();
    for found in fields.found.iter().filter(|found| !found.name.is_empty() && !AROUND.contains(&found.name)) {
        let separator = if scratch.is_empty() { "" } else { " " };
        // Text takes everything.
        let _ = match found.held {
            CtfValue::Number(number) => write!(scratch, "{separator}{}={}", found.name, number.cast_signed()),
            CtfValue::Text(text) => {
                write!(scratch, "{separator}{}={}", found.name, String::from_utf8_lossy(text))
            }
        };
    }
    Some(take(EventKind::Other { name, fields: TextFields::new(scratch) }))
}

#[derive(Clone, Copy)]
struct CtfFieldSource<'f, 'p> {
    fields: &'f CtfFields<'p>,
    recorder: &'f CtfRecorder,
}

impl<'p> CtfFieldSource<'_, 'p> {
    fn number(&self, field: &TracepointField) -> Option<u64> {
        self.fields.number(field.name)
    }

    /// A thread, by LTTng's name for it first.
    fn thread(&self, name: &str) -> Option<i32> {
        let thread = name.strip_suffix("pid").map(|start| format!("{start}tid"));
        let of_lttng = thread.and_then(|thread| self.fields.number(&thread));
        i32::try_from(of_lttng.or_else(|| self.fields.number(name))?.cast_signed()).ok()
    }
}

impl<'p> FieldSource<'p> for CtfFieldSource<'_, 'p> {
    fn comm<T>(
        self,
        field: &'static TracepointField,
        _: &'static TracepointField,
        rest: impl Fn(Self) -> Option<T>,
    ) -> Option<(Comm, T)> {
        Some((Comm::new(self.fields.text(field.name)?), rest(self)?))
    }

    fn pid(&mut self, field: &'static TracepointField) -> Option<Pid> {
        self.thread(field.name).map(Pid)
    }

    fn prio(&mut self, field: &'static TracepointField) -> Option<Prio> {
        let prio = i32::try_from(self.number(field)?.cast_signed()).ok()?;
        Some(Prio(prio.saturating_add(self.recorder.prio)))
    }

    fn cpu(&mut self, field: &'static TracepointField) -> Option<Cpu> {
        u32::try_from(self.number(field)?).ok().map(Cpu)
    }

    fn state(&mut self, field: &'static TracepointField) -> Option<TaskState> {
        self.recorder.states.state(self.number(field)?)
    }

    fn nanoseconds(&mut self, field: &'static TracepointField) -> Option<Ns> {
        self.number(field).map(Ns)
    }

    fn unsigned(&mut self, field: &'static TracepointField) -> Option<u64> {
        self.number(field)
    }

    fn signed(&mut self, field: &'static TracepointField) -> Option<i64> {
        self.number(field).map(u64::cast_signed)
    }

    fn count(&mut self, field: &'static TracepointField) -> Option<u32> {
        u32::try_from(self.number(field)?).ok()
    }

    fn text(&mut self, field: &'static TracepointField) -> Option<&'p str> {
        std::str::from_utf8(self.fields.text(field.name)?).ok()
    }

    fn flag(&mut self, field: &'static TracepointField) -> Option<Option<bool>> {
        Some(self.number(field).map(|flag| flag != 0))
    }

    fn nanoseconds_until(&mut self, field: &'static TracepointField) -> Option<Option<u64>> {
        Some(self.number(field))
    }

    fn end(&self, _: Tracepoint) -> Option<()> {
        Some(())
    }
}
