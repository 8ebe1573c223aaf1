//! An event as `FtraceEvent`.
//!
//! Must not know: packets.

use std::borrow::Cow;

use fairlab_event::{
    Comm, Event, EventKind, FieldSink, Flags, Ns, Pid, Switch, TextFields, TracepointField, TracepointValue,
    UntypedTracepoint, Wakeup,
};

use super::proto::ProtoPart;
use crate::losses::{EventLosses, LossKind};
use crate::tracepoint::encoder::state_bits;
use crate::tracepoint::flags;

/// `FtraceEventBundle::event`.
const EVENT: u64 = 2;

/// Fields of `FtraceEvent`.
pub(super) mod field {
    pub(in super::super) const PRINT: u64 = 3;
    pub(in super::super) const SCHED_SWITCH: u64 = 4;
    pub(in super::super) const CPU_FREQUENCY: u64 = 11;
    pub(in super::super) const CPU_IDLE: u64 = 13;
    pub(in super::super) const SCHED_WAKEUP: u64 = 17;
    pub(in super::super) const SCHED_WAKING: u64 = 20;
    pub(in super::super) const SOFTIRQ_ENTRY: u64 = 24;
    pub(in super::super) const SOFTIRQ_EXIT: u64 = 25;
    pub(in super::super) const SOFTIRQ_RAISE: u64 = 26;
    pub(in super::super) const IRQ_HANDLER_ENTRY: u64 = 36;
    pub(in super::super) const IRQ_HANDLER_EXIT: u64 = 37;
    pub(in super::super) const SCHED_WAKEUP_NEW: u64 = 114;
    pub(in super::super) const TASK_NEWTASK: u64 = 235;
    pub(in super::super) const TASK_RENAME: u64 = 236;
    pub(in super::super) const SCHED_PROCESS_EXEC: u64 = 237;
    pub(in super::super) const SCHED_PROCESS_EXIT: u64 = 238;
    pub(in super::super) const SCHED_PROCESS_FORK: u64 = 239;
    pub(in super::super) const GENERIC: u64 = 327;
    pub(in super::super) const SCHED_MIGRATE_TASK: u64 = 491;
}

/// Adds an event to a bundle; tells what of it is not there as it was.
pub(super) fn put(bundle: &mut Vec<u8>, event: &Event<'_>) -> EventLosses {
    let mut losses = EventLosses::default();
    ProtoPart::of(bundle).part(EVENT, |part| {
        part.uint(1, event.time.0);
        if event.context.pid != Pid::UNKNOWN {
            part.uint(2, u64::from(event.context.pid.0 as u32));
        }
        if event.context.flags != Flags::NONE {
            let (bits, _) = flags::common(event.context.flags);
            part.uint(5, bits.into());
            losses.unless(flags::columns(bits, 0) == event.context.flags, LossKind::Flags);
        }
        let mut texts = Utf8Texts { losses: &mut losses };
        // Names are in process trees.
        texts.comm(&event.context.comm);
        put_own(part, &event.kind, &mut texts);
    });
    losses
}

/// Texts are UTF-8.
struct Utf8Texts<'l> {
    losses: &'l mut EventLosses,
}

impl Utf8Texts<'_> {
    #[inline]
    fn comm<'c>(&mut self, comm: &'c Comm) -> Cow<'c, str> {
        let text = comm.to_str();
        self.losses.unless(text.as_bytes() == comm.as_bytes(), LossKind::Text);
        text
    }

    /// Name and id of a task.
    #[inline]
    fn task(&mut self, part: &mut ProtoPart<'_>, first: u64, comm: &Comm, pid: Pid) {
        part.text(first, &self.comm(comm));
        part.int(first + 1, pid.0.into());
    }
}

/// Adds the event's own part, in the field of `FtraceEvent` that is its.
fn put_own(event: &mut ProtoPart<'_>, kind: &EventKind<'_>, texts: &mut Utf8Texts<'_>) {
    match kind {
        EventKind::SchedSwitch(switch) => {
            event.part(field::SCHED_SWITCH, |part| put_switch(part, switch, texts));
        }
        EventKind::SchedWaking(wakeup) => {
            event.part(field::SCHED_WAKING, |part| put_wakeup(part, wakeup, texts));
        }
        EventKind::SchedWakeup(wakeup) => {
            event.part(field::SCHED_WAKEUP, |part| put_wakeup(part, wakeup, texts));
        }
        EventKind::SchedWakeupNew(wakeup) => {
            event.part(field::SCHED_WAKEUP_NEW, |part| put_wakeup(part, wakeup, texts));
        }
        EventKind::SchedMigrateTask { comm, pid, prio, orig_cpu, dest_cpu } => {
            event.part(field::SCHED_MIGRATE_TASK, |part| {
                texts.task(part, 1, comm, *pid);
                part.int(3, prio.0.into());
                part.int(4, orig_cpu.0.into());
                part.int(5, dest_cpu.0.into());
            });
        }
        _ => put_seldom(event, kind, texts),
    }
}

fn put_seldom(event: &mut ProtoPart<'_>, kind: &EventKind<'_>, texts: &mut Utf8Texts<'_>) {
    match kind {
        EventKind::SchedProcessFork { comm, pid, child_comm, child_pid } => {
            event.part(field::SCHED_PROCESS_FORK, |part| {
                texts.task(part, 1, comm, *pid);
                texts.task(part, 3, child_comm, *child_pid);
            });
        }
        EventKind::SchedProcessExec { filename, pid, old_pid } => {
            event.part(field::SCHED_PROCESS_EXEC, |part| {
                part.text(1, filename);
                part.int(2, pid.0.into());
                part.int(3, old_pid.0.into());
            });
        }
        EventKind::SchedProcessExit { comm, pid, prio, group_dead } => {
            texts.losses.unless(group_dead.is_none(), LossKind::Fields);
            event.part(field::SCHED_PROCESS_EXIT, |part| {
                texts.task(part, 1, comm, *pid);
                part.int(4, prio.0.into());
            });
        }
        EventKind::Marker { text } => event.part(field::PRINT, |part| part.text(2, text)),
        EventKind::Other { name, fields } => match power(name, *fields) {
            Some((field, state, cpu)) => event.part(field, |part| {
                part.uint(1, state.into());
                part.uint(2, cpu.into());
            }),
            None => event.part(field::GENERIC, |part| put_generic(part, kind, texts)),
        },
        _ => event.part(field::GENERIC, |part| put_generic(part, kind, texts)),
    }
}

/// Frequency and idle states, which viewers draw, where they are written as the kernel prints them: field, state, CPU.
fn power(name: &str, fields: TextFields<'_>) -> Option<(u64, u32, u32)> {
    let field = match UntypedTracepoint::by_name(name)? {
        UntypedTracepoint::CpuFrequency => field::CPU_FREQUENCY,
        UntypedTracepoint::CpuIdle => field::CPU_IDLE,
        _ => return None,
    };
    let number = |name| fields.unsigned(name).and_then(|number| u32::try_from(number).ok());
    let (state, cpu) = (number("state")?, number("cpu_id")?);
    let is_all = fields.text() == format!("state={state} cpu_id={cpu}");
    is_all.then_some((field, state, cpu))
}

/// The bits of states from v4.14 on.
const STATE_MASK: u64 = 0x1ff;

fn put_switch(part: &mut ProtoPart<'_>, switch: &Switch, texts: &mut Utf8Texts<'_>) {
    let (state, old_letters) = state_bits(switch.prev_state);
    // Viewers take a state with unknown bits for none.
    let state = state & STATE_MASK;
    texts.losses.unless(!old_letters, LossKind::Fields);
    texts.task(part, 1, &switch.prev_comm, switch.prev_pid);
    part.int(3, switch.prev_prio.0.into());
    part.uint(4, state);
    texts.task(part, 5, &switch.next_comm, switch.next_pid);
    part.int(7, switch.next_prio.0.into());
}

fn put_wakeup(part: &mut ProtoPart<'_>, wakeup: &Wakeup, texts: &mut Utf8Texts<'_>) {
    let Wakeup { comm, pid, prio, target_cpu } = wakeup;
    texts.task(part, 1, comm, *pid);
    part.int(3, prio.0.into());
    // As kernels up to 5.14 said and viewers expect: it succeeded.
    part.int(4, 1);
    part.int(5, target_cpu.0.into());
}

/// `GenericFtraceEvent`: a name, and fields with names. Here those of a tracepoint that Perfetto has no type for.
struct GenericEvent<'g, 'b, 'l> {
    part: &'g mut ProtoPart<'b>,
    texts: &'g mut Utf8Texts<'l>,
}

impl GenericEvent<'_, '_, '_> {
    fn put(&mut self, name: &str, value: impl FnOnce(&mut ProtoPart<'_>)) {
        self.part.part(2, |field| {
            field.text(1, name);
            value(field);
        });
    }

    fn text(&mut self, name: &str, text: &str) {
        self.put(name, |field| field.text(3, text));
    }

    fn int(&mut self, name: &str, value: i64) {
        self.put(name, |field| field.int(4, value));
    }

    fn uint(&mut self, name: &str, value: u64) {
        self.put(name, |field| field.uint(5, value));
    }
}

impl<'t> FieldSink<'t> for GenericEvent<'_, '_, '_> {
    fn field(&mut self, field: &'static TracepointField, value: TracepointValue<'t>) {
        let name = field.name;
        match value {
            TracepointValue::Comm(comm) => {
                let text = self.texts.comm(&comm);
                self.text(name, &text);
            }
            TracepointValue::Text(text) => self.text(name, text),
            TracepointValue::State(state) => self.text(name, &state.to_string()),
            TracepointValue::Pid(pid) => self.int(name, pid.0.into()),
            TracepointValue::Prio(prio) => self.int(name, prio.0.into()),
            TracepointValue::Signed(value) => self.int(name, value),
            TracepointValue::Cpu(cpu) => self.uint(name, cpu.0.into()),
            TracepointValue::Count(count) => self.uint(name, count.into()),
            TracepointValue::Unsigned(value) | TracepointValue::Nanoseconds(Ns(value)) => {
                self.uint(name, value);
            }
            TracepointValue::NanosecondsUntil(Some(value)) => self.uint(name, value),
            TracepointValue::Flag(Some(flag)) => self.uint(name, flag.into()),
            TracepointValue::Flag(None) | TracepointValue::NanosecondsUntil(None) => {}
        }
    }
}

fn put_generic(part: &mut ProtoPart<'_>, kind: &EventKind<'_>, texts: &mut Utf8Texts<'_>) {
    part.text(1, kind.name());
    let mut generic = GenericEvent { part, texts };
    match kind {
        EventKind::Kprobe { fields, .. } | EventKind::Other { fields, .. } => {
            generic.text("text", fields.text());
        }
        _ => kind.give_fields(&mut generic),
    }
}
