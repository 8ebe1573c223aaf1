//! `FtraceEvent` to an event.
//!
//! Facts: protos/perfetto/trace/ftrace/*.proto. Must not know: packets, other events.

use std::fmt::Write;

use fairlab_event::{
    Comm, Cpu, EventKind, Field, FieldSource, Fields as TextFields, Flags, Ns, Pid, Prio, Switch, TaskState,
    Tracepoint, Untyped, Wakeup,
};

use super::event::field;
use super::wire::{Fields, Value};
use crate::tracepoint::flags;
use crate::tracepoint::state_table::StateTable;

/// What stands around an event's own part.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Around<'b> {
    pub(super) pid: Option<Pid>,
    pub(super) flags: Flags,
    /// Which event it is, and its own part.
    pub(super) own: Option<(u64, &'b [u8])>,
}

/// Takes an event apart.
#[inline]
pub(super) fn around(event: &[u8]) -> Option<Around<'_>> {
    let mut around = Around::default();
    let mut fields = Fields::of(event);
    for (field, value) in fields.by_ref() {
        match (field, value) {
            (1, _) => {}
            (2, Value::Number(pid)) => around.pid = Some(Pid(pid as i32)),
            (5, Value::Number(bits)) => around.flags = flags::columns(bits as u8, 0),
            (_, Value::Bytes(own)) => around.own = Some((field, own)),
            _ => {}
        }
    }
    fields.is_whole().then_some(around)
}

/// Texts of an event that has none of its own in the file.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    text: String,
}

/// What an event's own part tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Told<'b> {
    Event(EventKind<'b>),
    /// It is of a kind that is not read.
    Unknown,
    /// Its name, where its fields cannot be read.
    Unreadable(&'static str),
}

/// The event of `field` with the part `own`.
#[inline]
pub(super) fn own<'b>(field: u64, own: &'b [u8], states: &StateTable, scratch: &'b mut Scratch) -> Told<'b> {
    let told = |tracepoint: Tracepoint, kind: Option<EventKind<'b>>| match kind {
        Some(kind) => Told::Event(kind),
        None => Told::Unreadable(tracepoint.name()),
    };
    match field {
        field::SCHED_SWITCH => {
            told(Tracepoint::SchedSwitch, sched_switch(own, states).map(EventKind::SchedSwitch))
        }
        field::SCHED_WAKING => told(Tracepoint::SchedWaking, wakeup(own).map(EventKind::SchedWaking)),
        field::SCHED_WAKEUP => told(Tracepoint::SchedWakeup, wakeup(own).map(EventKind::SchedWakeup)),
        field::SCHED_WAKEUP_NEW => {
            told(Tracepoint::SchedWakeupNew, wakeup(own).map(EventKind::SchedWakeupNew))
        }
        _ => seldom(field, own, scratch),
    }
}

fn seldom<'b>(field: u64, own: &'b [u8], scratch: &'b mut Scratch) -> Told<'b> {
    let parts = Parts::of(own);
    let text = |place| std::str::from_utf8(parts.text(place)).ok();
    let task = |place| (Comm::new(parts.text(place)), Pid(parts.int(place + 1)));
    let kind = match field {
        _ if !parts.is_whole => return Told::Unreadable(name_of(field)),
        field::SCHED_MIGRATE_TASK => {
            let (comm, pid) = task(1);
            let [orig_cpu, dest_cpu] = [4, 5].map(|place| Cpu(parts.int(place).cast_unsigned()));
            EventKind::SchedMigrateTask { comm, pid, prio: Prio(parts.int(3)), orig_cpu, dest_cpu }
        }
        field::SCHED_PROCESS_FORK => {
            let ((comm, pid), (child_comm, child_pid)) = (task(1), task(3));
            EventKind::SchedProcessFork { comm, pid, child_comm, child_pid }
        }
        field::SCHED_PROCESS_EXEC => {
            let [pid, old_pid] = [2, 3].map(|place| Pid(parts.int(place)));
            match text(1) {
                Some(filename) => EventKind::SchedProcessExec { filename, pid, old_pid },
                None => return Told::Unreadable(name_of(field)),
            }
        }
        field::SCHED_PROCESS_EXIT => {
            let (comm, pid) = task(1);
            EventKind::SchedProcessExit { comm, pid, prio: Prio(parts.int(4)), group_dead: None }
        }
        field::PRINT => match text(2) {
            Some(text) => EventKind::Marker { text: text.strip_suffix('\n').unwrap_or(text) },
            None => return Told::Unknown,
        },
        field::GENERIC => return generic(own, scratch),
        _ => return printed(field, &parts, scratch),
    };
    Told::Event(kind)
}

fn name_of(field: u64) -> &'static str {
    match field {
        field::SCHED_MIGRATE_TASK => Tracepoint::SchedMigrateTask.name(),
        field::SCHED_PROCESS_FORK => Tracepoint::SchedProcessFork.name(),
        field::SCHED_PROCESS_EXEC => Tracepoint::SchedProcessExec.name(),
        field::SCHED_PROCESS_EXIT => Tracepoint::SchedProcessExit.name(),
        _ => "",
    }
}

/// Events that have no type here, as the kernel prints them.
fn printed<'b>(field: u64, parts: &Parts<'_>, scratch: &'b mut Scratch) -> Told<'b> {
    let text = &mut scratch.text;
    text.clear();
    let word = |place| String::from_utf8_lossy(parts.text(place));
    // Text takes everything.
    let (name, _) = match field {
        field::CPU_FREQUENCY | field::CPU_IDLE => {
            let event = if field == field::CPU_IDLE { Untyped::CpuIdle } else { Untyped::CpuFrequency };
            (event.name(), write!(text, "state={} cpu_id={}", parts.number(1) as u32, parts.number(2)))
        }
        field::IRQ_HANDLER_ENTRY => {
            ("irq_handler_entry", write!(text, "irq={} name={}", parts.int(1), word(2)))
        }
        field::IRQ_HANDLER_EXIT => {
            let how = if parts.int(2) != 0 { "handled" } else { "unhandled" };
            ("irq_handler_exit", write!(text, "irq={} ret={how}", parts.int(1)))
        }
        field::SOFTIRQ_ENTRY | field::SOFTIRQ_EXIT | field::SOFTIRQ_RAISE => {
            const ACTIONS: [&str; 10] = [
                "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
            ];
            let name = match field {
                field::SOFTIRQ_ENTRY => Untyped::SoftirqEntry.name(),
                field::SOFTIRQ_EXIT => Untyped::SoftirqExit.name(),
                _ => "softirq_raise",
            };
            let vector = parts.number(1);
            let action = usize::try_from(vector).ok().and_then(|vector| ACTIONS.get(vector)).unwrap_or(&"");
            (name, write!(text, "vec={vector} [action={action}]"))
        }
        field::TASK_NEWTASK => {
            let (pid, comm, flags, adj) = (parts.int(1), word(2), parts.number(3), parts.int(4));
            ("task_newtask", write!(text, "pid={pid} comm={comm} clone_flags={flags:x} oom_score_adj={adj}"))
        }
        field::TASK_RENAME => {
            let (pid, old, new, adj) = (parts.int(1), word(2), word(3), parts.int(4));
            ("task_rename", write!(text, "pid={pid} oldcomm={old} newcomm={new} oom_score_adj={adj}"))
        }
        _ => return Told::Unknown,
    };
    Told::Event(EventKind::Other { name, fields: TextFields::new(text) })
}

fn sched_switch(own: &[u8], states: &StateTable) -> Option<Switch> {
    let mut switch = Switch {
        prev_comm: Comm::default(),
        prev_pid: Pid::IDLE,
        prev_prio: Prio::default(),
        prev_state: TaskState::RUNNABLE,
        next_comm: Comm::default(),
        next_pid: Pid::IDLE,
        next_prio: Prio::default(),
    };
    let mut fields = Fields::of(own);
    for (field, value) in fields.by_ref() {
        match field {
            1 => switch.prev_comm = Comm::new(value.bytes()),
            2 => switch.prev_pid = Pid(value.int()),
            3 => switch.prev_prio = Prio(value.int()),
            4 => switch.prev_state = states.state(value.number())?,
            5 => switch.next_comm = Comm::new(value.bytes()),
            6 => switch.next_pid = Pid(value.int()),
            7 => switch.next_prio = Prio(value.int()),
            _ => {}
        }
    }
    fields.is_whole().then_some(switch)
}

fn wakeup(own: &[u8]) -> Option<Wakeup> {
    let mut wakeup =
        Wakeup { comm: Comm::default(), pid: Pid::IDLE, prio: Prio::default(), target_cpu: Cpu::default() };
    let mut fields = Fields::of(own);
    for (field, value) in fields.by_ref() {
        match field {
            1 => wakeup.comm = Comm::new(value.bytes()),
            2 => wakeup.pid = Pid(value.int()),
            3 => wakeup.prio = Prio(value.int()),
            5 => wakeup.target_cpu = Cpu(value.int().cast_unsigned()),
            _ => {}
        }
    }
    fields.is_whole().then_some(wakeup)
}

/// A message's fields by their numbers, as many as any event here has.
#[derive(Clone, Copy, Debug)]
struct Parts<'b> {
    parts: [Option<Value<'b>>; 8],
    is_whole: bool,
}

impl<'b> Parts<'b> {
    fn of(message: &'b [u8]) -> Parts<'b> {
        let mut parts = [None; 8];
        let mut fields = Fields::of(message);
        for (field, value) in fields.by_ref() {
            if let Some(part) = usize::try_from(field).ok().and_then(|field| parts.get_mut(field)) {
                *part = Some(value);
            }
        }
        Parts { parts, is_whole: fields.is_whole() }
    }

    fn get(&self, place: usize) -> Option<Value<'b>> {
        self.parts.get(place).copied().flatten()
    }

    fn text(&self, place: usize) -> &'b [u8] {
        self.get(place).map(Value::bytes).unwrap_or_default()
    }

    fn number(&self, place: usize) -> u64 {
        self.get(place).map_or(0, Value::number)
    }

    fn int(&self, place: usize) -> i32 {
        self.get(place).map_or(0, Value::int)
    }
}

/// `GenericFtraceEvent`: a tracepoint that has a type here, text that was printed, or fields with names.
fn generic<'b>(own: &'b [u8], scratch: &'b mut Scratch) -> Told<'b> {
    const NAME: u64 = 1;
    let name = Fields::of(own).find(|&(field, _)| field == NAME).map(|(_, name)| name.bytes());
    let Some(name) = name.and_then(|name| std::str::from_utf8(name).ok()) else { return Told::Unknown };
    let named = Named { rest: Fields::of(own) };
    if let Some(tracepoint) = Tracepoint::by_name(name.as_bytes())
        && let Some(kind) = tracepoint.read(named, |kind| kind)
    {
        return Told::Event(kind);
    }
    let mut fields = named;
    let fields = match (fields.take(), fields.take()) {
        (Some((b"text", text)), None) => match std::str::from_utf8(text.bytes()) {
            Ok(text) => text,
            Err(_) => return Told::Unknown,
        },
        _ => named.print(&mut scratch.text),
    };
    let (is_probe, fields) = (fields.starts_with('('), TextFields::new(fields));
    Told::Event(if is_probe { EventKind::Kprobe { name, fields } } else { EventKind::Other { name, fields } })
}

/// Fields with names, one after the other.
#[derive(Clone, Copy, Debug)]
struct Named<'b> {
    rest: Fields<'b>,
}

impl<'b> Named<'b> {
    /// The next field's name and value.
    fn take(&mut self) -> Option<(&'b [u8], Value<'b>)> {
        const FIELD: u64 = 2;
        let (_, field) = self.rest.find(|&(field, _)| field == FIELD)?;
        let (mut name, mut found) = (&b""[..], Value::Number(0));
        for (field, value) in Fields::of(field.bytes()) {
            match field {
                1 => name = value.bytes(),
                3..=5 => found = value,
                _ => {}
            }
        }
        Some((name, found))
    }

    fn of(&mut self, field: &'static Field) -> Option<Value<'b>> {
        self.take().filter(|(name, _)| *name == field.name.as_bytes()).map(|(_, value)| value)
    }

    fn print(mut self, text: &mut String) -> &str {
        text.clear();
        while let Some((name, value)) = self.take() {
            let separator = if text.is_empty() { "" } else { " " };
            let name = String::from_utf8_lossy(name);
            // Text takes everything.
            let _ = match value {
                Value::Bytes(bytes) => {
                    write!(text, "{separator}{name}={}", String::from_utf8_lossy(bytes))
                }
                value => write!(text, "{separator}{name}={}", value.number().cast_signed()),
            };
        }
        text
    }
}

impl<'b> FieldSource<'b> for Named<'b> {
    fn comm<T>(
        mut self,
        field: &'static Field,
        _: &'static Field,
        rest: impl Fn(Self) -> Option<T>,
    ) -> Option<(Comm, T)> {
        let comm = Comm::new(self.of(field)?.bytes());
        Some((comm, rest(self)?))
    }

    fn pid(&mut self, field: &'static Field) -> Option<Pid> {
        self.of(field).map(|value| Pid(value.int()))
    }

    fn prio(&mut self, field: &'static Field) -> Option<Prio> {
        self.of(field).map(|value| Prio(value.int()))
    }

    fn cpu(&mut self, field: &'static Field) -> Option<Cpu> {
        self.of(field).map(|value| Cpu(value.number() as u32))
    }

    fn state(&mut self, field: &'static Field) -> Option<TaskState> {
        TaskState::parse(self.of(field)?.bytes())
    }

    fn nanoseconds(&mut self, field: &'static Field) -> Option<Ns> {
        self.of(field).map(|value| Ns(value.number()))
    }

    fn unsigned(&mut self, field: &'static Field) -> Option<u64> {
        self.of(field).map(Value::number)
    }

    fn signed(&mut self, field: &'static Field) -> Option<i64> {
        self.of(field).map(|value| value.number().cast_signed())
    }

    fn count(&mut self, field: &'static Field) -> Option<u32> {
        self.of(field).map(|value| value.number() as u32)
    }

    fn text(&mut self, field: &'static Field) -> Option<&'b str> {
        std::str::from_utf8(self.of(field)?.bytes()).ok()
    }

    fn flag(&mut self, field: &'static Field) -> Option<Option<bool>> {
        let mut ahead = *self;
        match ahead.of(field) {
            Some(flag) => {
                *self = ahead;
                Some(Some(flag.number() != 0))
            }
            None => Some(None),
        }
    }

    fn nanoseconds_until(&mut self, field: &'static Field) -> Option<Option<u64>> {
        let mut ahead = *self;
        match ahead.of(field) {
            Some(value) => {
                *self = ahead;
                Some(Some(value.number()))
            }
            None => Some(None),
        }
    }

    fn end(&self, _: Tracepoint) -> Option<()> {
        Some(())
    }
}
