//! An event as `FtraceEvent`.
//!
//! Must not know: packets.

use std::borrow::Cow;

use fairlab_event::{
    Comm, Event, EventKind, Field, FieldSink, Fields, Flags, Ns, Pid, Switch, Untyped, Value, Wakeup,
};

use super::proto::{Message, put_blob};
use crate::losses::{EventLosses, Loss};
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
    let mut texts = Texts { losses: &mut losses };
    let (field, own) = own(&event.kind, &mut texts);
    // Names are in process trees.
    texts.comm(&event.context.comm);
    let mut message = Message::new().uint(1, event.time.0);
    if event.context.pid != Pid::UNKNOWN {
        message = message.uint(2, u64::from(event.context.pid.0 as u32));
    }
    if event.context.flags != Flags::NONE {
        let (bits, _) = flags::common(event.context.flags);
        message = message.uint(5, bits.into());
        losses.unless(flags::columns(bits, 0) == event.context.flags, Loss::Flags);
    }
    put_blob(bundle, EVENT, message.message(field, &own).bytes());
    losses
}

/// Texts are UTF-8.
struct Texts<'l> {
    losses: &'l mut EventLosses,
}

impl Texts<'_> {
    fn comm<'c>(&mut self, comm: &'c Comm) -> Cow<'c, str> {
        let text = comm.to_str();
        self.losses.unless(text.as_bytes() == comm.as_bytes(), Loss::Text);
        text
    }

    /// Name and id of a task.
    fn task(&mut self, message: Message, first: u64, comm: &Comm, pid: Pid) -> Message {
        message.text(first, &self.comm(comm)).int(first + 1, pid.0.into())
    }
}

/// The event's own part, and which field of `FtraceEvent` that is.
fn own(kind: &EventKind<'_>, texts: &mut Texts<'_>) -> (u64, Message) {
    let message = Message::new();
    match kind {
        EventKind::SchedSwitch(switch) => (field::SCHED_SWITCH, sched_switch(switch, texts)),
        EventKind::SchedWaking(wakeup) => (field::SCHED_WAKING, sched_wakeup(wakeup, texts)),
        EventKind::SchedWakeup(wakeup) => (field::SCHED_WAKEUP, sched_wakeup(wakeup, texts)),
        EventKind::SchedWakeupNew(wakeup) => (field::SCHED_WAKEUP_NEW, sched_wakeup(wakeup, texts)),
        EventKind::SchedMigrateTask { comm, pid, prio, orig_cpu, dest_cpu } => {
            let message = texts.task(message, 1, comm, *pid).int(3, prio.0.into());
            (field::SCHED_MIGRATE_TASK, message.int(4, orig_cpu.0.into()).int(5, dest_cpu.0.into()))
        }
        EventKind::SchedProcessFork { comm, pid, child_comm, child_pid } => {
            let message = texts.task(message, 1, comm, *pid);
            (field::SCHED_PROCESS_FORK, texts.task(message, 3, child_comm, *child_pid))
        }
        EventKind::SchedProcessExec { filename, pid, old_pid } => {
            let message = message.text(1, filename).int(2, pid.0.into()).int(3, old_pid.0.into());
            (field::SCHED_PROCESS_EXEC, message)
        }
        EventKind::SchedProcessExit { comm, pid, prio, group_dead } => {
            texts.losses.unless(group_dead.is_none(), Loss::Fields);
            let message = texts.task(message, 1, comm, *pid).int(4, prio.0.into());
            (field::SCHED_PROCESS_EXIT, message)
        }
        EventKind::Marker { text } => (field::PRINT, message.text(2, text)),
        EventKind::Other { name, fields } => {
            power(name, *fields).unwrap_or_else(|| (field::GENERIC, generic(kind, texts)))
        }
        _ => (field::GENERIC, generic(kind, texts)),
    }
}

/// Frequency and idle states, which viewers draw, where they are told as the kernel prints them.
fn power(name: &str, fields: Fields<'_>) -> Option<(u64, Message)> {
    let field = match Untyped::by_name(name)? {
        Untyped::CpuFrequency => field::CPU_FREQUENCY,
        Untyped::CpuIdle => field::CPU_IDLE,
        _ => return None,
    };
    let number = |name| fields.unsigned(name).and_then(|number| u32::try_from(number).ok());
    let (state, cpu) = (number("state")?, number("cpu_id")?);
    let is_all = fields.text() == format!("state={state} cpu_id={cpu}");
    is_all.then(|| (field, Message::new().uint(1, state.into()).uint(2, cpu.into())))
}

/// The bits of states from v4.14 on.
const STATE_MASK: u64 = 0x1ff;

fn sched_switch(switch: &Switch, texts: &mut Texts<'_>) -> Message {
    let (state, old_letters) = state_bits(switch.prev_state);
    // Viewers take a state with unknown bits for none.
    let state = state & STATE_MASK;
    texts.losses.unless(!old_letters, Loss::Fields);
    let message = texts.task(Message::new(), 1, &switch.prev_comm, switch.prev_pid);
    let message = message.int(3, switch.prev_prio.0.into()).uint(4, state);
    texts.task(message, 5, &switch.next_comm, switch.next_pid).int(7, switch.next_prio.0.into())
}

fn sched_wakeup(wakeup: &Wakeup, texts: &mut Texts<'_>) -> Message {
    let Wakeup { comm, pid, prio, target_cpu } = wakeup;
    let message = texts.task(Message::new(), 1, comm, *pid).int(3, prio.0.into());
    // As kernels up to 5.14 said and viewers expect: it succeeded.
    message.int(4, 1).int(5, target_cpu.0.into())
}

/// `GenericFtraceEvent`: a name, and fields with names.
#[derive(Default)]
struct Generic(Message);

impl Generic {
    fn text(self, name: &str, text: &str) -> Generic {
        Generic(self.0.message(2, &Message::new().text(1, name).text(3, text)))
    }

    fn int(self, name: &str, value: i64) -> Generic {
        Generic(self.0.message(2, &Message::new().text(1, name).int(4, value)))
    }

    fn uint(self, name: &str, value: u64) -> Generic {
        Generic(self.0.message(2, &Message::new().text(1, name).uint(5, value)))
    }
}

/// The fields of a tracepoint that Perfetto has no type for.
struct GenericFields<'g, 'l> {
    event: Generic,
    texts: &'g mut Texts<'l>,
}

impl<'t> FieldSink<'t> for GenericFields<'_, '_> {
    fn field(&mut self, field: &'static Field, value: Value<'t>) {
        let (name, texts) = (field.name, &mut *self.texts);
        let event = std::mem::take(&mut self.event);
        self.event = match value {
            Value::Comm(comm) => event.text(name, &texts.comm(&comm)),
            Value::Text(text) => event.text(name, text),
            Value::State(state) => event.text(name, &state.to_string()),
            Value::Pid(pid) => event.int(name, pid.0.into()),
            Value::Prio(prio) => event.int(name, prio.0.into()),
            Value::Signed(value) => event.int(name, value),
            Value::Cpu(cpu) => event.uint(name, cpu.0.into()),
            Value::Count(count) => event.uint(name, count.into()),
            Value::Unsigned(value) | Value::Nanoseconds(Ns(value)) => event.uint(name, value),
            Value::NanosecondsUntil(Some(value)) => event.uint(name, value),
            Value::Flag(Some(flag)) => event.uint(name, flag.into()),
            Value::Flag(None) | Value::NanosecondsUntil(None) => event,
        };
    }
}

fn generic(kind: &EventKind<'_>, texts: &mut Texts<'_>) -> Message {
    let event = Generic(Message::new().text(1, kind.name()));
    if let EventKind::Kprobe { fields, .. } | EventKind::Other { fields, .. } = kind {
        return event.text("text", fields.text()).0;
    }
    let mut fields = GenericFields { event, texts };
    kind.give_fields(&mut fields);
    fields.event.0
}
