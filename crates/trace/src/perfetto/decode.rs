//! `FtraceEvent` to an event.
//!
//! Facts: protos/perfetto/trace/ftrace/*.proto. Must not know: packets, other events.

use std::fmt::Write;

use fairlab_event::{
    Comm, Cpu, EventKind, FieldSource, Flags, Ns, Pid, Prio, Switch, TaskState, TextFields, Tracepoint,
    TracepointField, UntypedTracepoint, Wakeup,
};

use super::described_events::{self, DescribedEvents};
use super::event::field;
use super::wire::{Tag, Wire, WireFields, WireValue, expected_bytes, expected_number, varint};
use crate::tracepoint::flags;
use crate::tracepoint::state_table::StateTable;

/// What stands around an event's own part.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EventEnvelope<'b> {
    pub(super) pid: Option<Pid>,
    pub(super) flags: Flags,
    /// Which event it is, and its own part.
    pub(super) own: Option<(u64, &'b [u8])>,
}

/// Tags, as bytes, of fields with a number and of those with bytes.
const fn number(field: u8) -> u8 {
    field << 3
}

const fn bytes(field: u8) -> u8 {
    field << 3 | 2
}

/// Takes an event apart.
#[inline]
pub(super) fn around(event: &[u8]) -> Option<EventEnvelope<'_>> {
    around_in_order(event).or_else(|| around_in_any_order(event))
}

/// Takes an event apart whose fields stand as recorders write them.
#[inline]
fn around_in_order(event: &[u8]) -> Option<EventEnvelope<'_>> {
    const TIME: u64 = 1;
    let mut rest = event;
    expected_number(&mut rest, number(1))?;
    let pid = Some(Pid(expected_number(&mut rest, number(2))? as i32));
    let flags = expected_number(&mut rest, number(5));
    let flags = flags.map_or(Flags::NONE, |bits| flags::columns(bits as u8, 0));
    let Tag { field, wire } = Tag::of(varint(&mut rest)?)?;
    let is_own = wire == Wire::Bytes && field != TIME && varint(&mut rest)? == rest.len() as u64;
    is_own.then_some(EventEnvelope { pid, flags, own: Some((field, rest)) })
}

fn around_in_any_order(event: &[u8]) -> Option<EventEnvelope<'_>> {
    let mut around = EventEnvelope::default();
    let mut fields = WireFields::of(event);
    for (field, value) in fields.by_ref() {
        match (field, value) {
            (1, _) => {}
            (2, WireValue::Number(pid)) => around.pid = Some(Pid(pid as i32)),
            (5, WireValue::Number(bits)) => around.flags = flags::columns(bits as u8, 0),
            (_, WireValue::Bytes(own)) => around.own = Some((field, own)),
            _ => {}
        }
    }
    fields.is_whole().then_some(around)
}

/// Texts of an event that has none of its own in the file.
#[derive(Clone, Debug, Default)]
pub(super) struct ScratchText {
    text: String,
}

impl ScratchText {
    pub(super) fn cleared(&mut self) -> &mut String {
        self.text.clear();
        &mut self.text
    }
}

/// What a trace says of how its events are to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct TraceCodes<'t> {
    pub(super) states: &'t StateTable,
    pub(super) described: &'t DescribedEvents,
}

/// What an event's own part tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum DecodedPart<'b> {
    Event(EventKind<'b>),
    /// It is of a kind that is not read.
    Unknown,
    /// It is of a kind that the trace should describe and does not.
    Undescribed,
    /// Its name, where its fields cannot be read.
    Unreadable(&'static str),
}

/// The event of `field` with the part `own`.
#[inline]
pub(super) fn own<'b>(
    field: u64,
    own: &'b [u8],
    codes: TraceCodes<'b>,
    scratch: &'b mut ScratchText,
) -> DecodedPart<'b> {
    let states = codes.states;
    let told = |tracepoint: Tracepoint, kind: Option<EventKind<'b>>| match kind {
        Some(kind) => DecodedPart::Event(kind),
        None => DecodedPart::Unreadable(tracepoint.name()),
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
        described_events::FIRST.. => codes.described.own(field, own, scratch),
        _ => seldom(field, own, scratch),
    }
}

/// The event of `field` with the part `own`, if it is one that is read and carries no text but names of tasks.
#[inline]
pub(super) fn plain(field: u64, own: &[u8], codes: TraceCodes<'_>) -> Option<EventKind<'static>> {
    let states = codes.states;
    match field {
        field::SCHED_SWITCH => sched_switch(own, states).map(EventKind::SchedSwitch),
        field::SCHED_WAKING => wakeup(own).map(EventKind::SchedWaking),
        field::SCHED_WAKEUP => wakeup(own).map(EventKind::SchedWakeup),
        field::SCHED_WAKEUP_NEW => wakeup(own).map(EventKind::SchedWakeupNew),
        field::SCHED_MIGRATE_TASK => {
            let parts = MessageFields::of(own);
            parts.is_whole.then(|| migration(&parts))
        }
        field::GENERIC => {
            let (name, rest) = name_of_generic(own)?;
            Tracepoint::by_name(name)?.read(NamedSource(NamedFields { rest }), EventKind::without_text)?
        }
        described_events::FIRST.. => codes.described.plain(field, own),
        _ => None,
    }
}

fn seldom<'b>(field: u64, own: &'b [u8], scratch: &'b mut ScratchText) -> DecodedPart<'b> {
    let parts = MessageFields::of(own);
    let text = |place| std::str::from_utf8(parts.text(place)).ok();
    let task = |place| (Comm::new(parts.text(place)), Pid(parts.int(place + 1)));
    let kind = match field {
        _ if !parts.is_whole => return DecodedPart::Unreadable(name_of(field)),
        field::SCHED_MIGRATE_TASK => migration(&parts),
        field::SCHED_PROCESS_FORK => {
            let ((comm, pid), (child_comm, child_pid)) = (task(1), task(3));
            EventKind::SchedProcessFork { comm, pid, child_comm, child_pid }
        }
        field::SCHED_PROCESS_EXEC => {
            let [pid, old_pid] = [2, 3].map(|place| Pid(parts.int(place)));
            match text(1) {
                Some(filename) => EventKind::SchedProcessExec { filename, pid, old_pid },
                None => return DecodedPart::Unreadable(name_of(field)),
            }
        }
        field::SCHED_PROCESS_EXIT => {
            let (comm, pid) = task(1);
            EventKind::SchedProcessExit { comm, pid, prio: Prio(parts.int(4)), group_dead: None }
        }
        field::PRINT => match text(2) {
            Some(text) => EventKind::Marker { text: text.strip_suffix('\n').unwrap_or(text) },
            None => return DecodedPart::Unknown,
        },
        field::GENERIC => return generic(own, scratch),
        _ => return printed(field, &parts, scratch),
    };
    DecodedPart::Event(kind)
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
fn printed<'b>(field: u64, parts: &MessageFields<'_>, scratch: &'b mut ScratchText) -> DecodedPart<'b> {
    let text = scratch.cleared();
    let word = |place| String::from_utf8_lossy(parts.text(place));
    // Text takes everything.
    let (name, _) = match field {
        field::CPU_FREQUENCY | field::CPU_IDLE => {
            let event = if field == field::CPU_IDLE {
                UntypedTracepoint::CpuIdle
            } else {
                UntypedTracepoint::CpuFrequency
            };
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
                field::SOFTIRQ_ENTRY => UntypedTracepoint::SoftirqEntry.name(),
                field::SOFTIRQ_EXIT => UntypedTracepoint::SoftirqExit.name(),
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
        _ => return DecodedPart::Unknown,
    };
    DecodedPart::Event(EventKind::Other { name, fields: TextFields::new(text) })
}

#[inline]
fn sched_switch(own: &[u8], states: &StateTable) -> Option<Switch> {
    switch_in_order(own, states).or_else(|| switch_in_any_order(own, states))
}

/// A switch whose fields stand as the kernel has them.
#[inline]
fn switch_in_order(own: &[u8], states: &StateTable) -> Option<Switch> {
    let mut rest = own;
    let switch = Switch {
        prev_comm: Comm::new(expected_bytes(&mut rest, bytes(1))?),
        prev_pid: Pid(expected_number(&mut rest, number(2))? as i32),
        prev_prio: Prio(expected_number(&mut rest, number(3))? as i32),
        prev_state: states.state(expected_number(&mut rest, number(4))?)?,
        next_comm: Comm::new(expected_bytes(&mut rest, bytes(5))?),
        next_pid: Pid(expected_number(&mut rest, number(6))? as i32),
        next_prio: Prio(expected_number(&mut rest, number(7))? as i32),
    };
    rest.is_empty().then_some(switch)
}

fn switch_in_any_order(own: &[u8], states: &StateTable) -> Option<Switch> {
    let mut switch = Switch {
        prev_comm: Comm::default(),
        prev_pid: Pid::IDLE,
        prev_prio: Prio::default(),
        prev_state: TaskState::RUNNABLE,
        next_comm: Comm::default(),
        next_pid: Pid::IDLE,
        next_prio: Prio::default(),
    };
    let mut fields = WireFields::of(own);
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

#[inline]
fn wakeup(own: &[u8]) -> Option<Wakeup> {
    wakeup_in_order(own).or_else(|| wakeup_in_any_order(own))
}

/// A wakeup whose fields stand as the kernel has them; that it succeeded only old ones tell.
#[inline]
fn wakeup_in_order(own: &[u8]) -> Option<Wakeup> {
    let mut rest = own;
    let comm = Comm::new(expected_bytes(&mut rest, bytes(1))?);
    let pid = Pid(expected_number(&mut rest, number(2))? as i32);
    let prio = Prio(expected_number(&mut rest, number(3))? as i32);
    expected_number(&mut rest, number(4));
    let target_cpu = Cpu(expected_number(&mut rest, number(5))? as u32);
    rest.is_empty().then_some(Wakeup { comm, pid, prio, target_cpu })
}

fn wakeup_in_any_order(own: &[u8]) -> Option<Wakeup> {
    let mut wakeup =
        Wakeup { comm: Comm::default(), pid: Pid::IDLE, prio: Prio::default(), target_cpu: Cpu::default() };
    let mut fields = WireFields::of(own);
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

fn migration(parts: &MessageFields<'_>) -> EventKind<'static> {
    let [orig_cpu, dest_cpu] = [4, 5].map(|place| Cpu(parts.int(place).cast_unsigned()));
    EventKind::SchedMigrateTask {
        comm: Comm::new(parts.text(1)),
        pid: Pid(parts.int(2)),
        prio: Prio(parts.int(3)),
        orig_cpu,
        dest_cpu,
    }
}

/// A message's fields by their numbers, as many as any event here has.
#[derive(Clone, Copy, Debug)]
struct MessageFields<'b> {
    parts: [Option<WireValue<'b>>; 8],
    is_whole: bool,
}

impl<'b> MessageFields<'b> {
    fn of(message: &'b [u8]) -> MessageFields<'b> {
        let mut parts = [None; 8];
        let mut fields = WireFields::of(message);
        for (field, value) in fields.by_ref() {
            if let Some(part) = usize::try_from(field).ok().and_then(|field| parts.get_mut(field)) {
                *part = Some(value);
            }
        }
        MessageFields { parts, is_whole: fields.is_whole() }
    }

    fn get(&self, place: usize) -> Option<WireValue<'b>> {
        self.parts.get(place).copied().flatten()
    }

    fn text(&self, place: usize) -> &'b [u8] {
        self.get(place).map(WireValue::bytes).unwrap_or_default()
    }

    fn number(&self, place: usize) -> u64 {
        self.get(place).map_or(0, WireValue::number)
    }

    fn int(&self, place: usize) -> i32 {
        self.get(place).map_or(0, WireValue::int)
    }
}

/// The name of a `GenericFtraceEvent`, and what may hold its fields: what follows, or all of it if the name does not stand first.
#[inline]
fn name_of_generic(own: &[u8]) -> Option<(&[u8], WireFields<'_>)> {
    const NAME: u64 = 1;
    let mut fields = WireFields::of(own);
    match fields.next()? {
        (NAME, name) => Some((name.bytes(), fields)),
        _ => Some((fields.find(|&(field, _)| field == NAME)?.1.bytes(), WireFields::of(own))),
    }
}

/// `GenericFtraceEvent`: a tracepoint that has a type here, text that was printed, or fields with names.
fn generic<'b>(own: &'b [u8], scratch: &'b mut ScratchText) -> DecodedPart<'b> {
    let Some((name, rest)) = name_of_generic(own) else { return DecodedPart::Unknown };
    let Ok(name) = std::str::from_utf8(name) else { return DecodedPart::Unknown };
    let named = NamedFields { rest };
    if let Some(tracepoint) = Tracepoint::by_name(name.as_bytes())
        && let Some(kind) = tracepoint.read(NamedSource(named), |kind| kind)
    {
        return DecodedPart::Event(kind);
    }
    let mut fields = named;
    let fields = match (fields.take(), fields.take()) {
        (Some((b"text", text)), None) => match std::str::from_utf8(text.bytes()) {
            Ok(text) => text,
            Err(_) => return DecodedPart::Unknown,
        },
        _ => named.print(scratch.cleared()),
    };
    untyped(fields.starts_with('('), name, fields)
}

/// An event that has no type here: one of the kernel's probes, or another.
pub(super) fn untyped<'b>(is_probe: bool, name: &'b str, fields: &'b str) -> DecodedPart<'b> {
    let fields = TextFields::new(fields);
    DecodedPart::Event(match is_probe {
        true => EventKind::Kprobe { name, fields },
        false => EventKind::Other { name, fields },
    })
}

/// Adds a field to the text of an event that has no type here.
pub(super) fn print_field(text: &mut String, name: &str, value: WireValue<'_>, is_unsigned: bool) {
    let separator = if text.is_empty() { "" } else { " " };
    // Text takes everything.
    let _ = match value {
        WireValue::Bytes(bytes) => write!(text, "{separator}{name}={}", String::from_utf8_lossy(bytes)),
        value if is_unsigned => write!(text, "{separator}{name}={}", value.number()),
        value => write!(text, "{separator}{name}={}", value.number().cast_signed()),
    };
}

/// Fields with names, one after the other.
#[derive(Clone, Copy, Debug)]
struct NamedFields<'b> {
    rest: WireFields<'b>,
}

impl<'b> NamedFields<'b> {
    /// The next field's name and value.
    fn take(&mut self) -> Option<(&'b [u8], WireValue<'b>)> {
        const FIELD: u64 = 2;
        let (_, field) = self.rest.find(|&(field, _)| field == FIELD)?;
        let (mut name, mut found) = (&b""[..], WireValue::Number(0));
        for (field, value) in WireFields::of(field.bytes()) {
            match field {
                1 => name = value.bytes(),
                3..=5 => found = value,
                _ => {}
            }
        }
        Some((name, found))
    }

    /// The value of the next field, if it is this one, and its name and value stand as recorders write them.
    #[inline]
    fn at_hand(&mut self, name: &[u8]) -> Option<WireValue<'b>> {
        let mut rest = self.rest.rest();
        let mut field = expected_bytes(&mut rest, bytes(2))?;
        let named = expected_bytes(&mut field, bytes(1)).filter(|found| *found == name);
        let mut values = named.map(|_| WireFields::of(field))?;
        let (_, value) = values.next().filter(|(field, _)| (3..=5).contains(field))?;
        if !values.rest().is_empty() {
            return None;
        }
        self.rest = WireFields::of(rest);
        Some(value)
    }

    /// Adds all fields to a text that is empty.
    fn print(mut self, text: &mut String) -> &str {
        while let Some((name, value)) = self.take() {
            print_field(text, &String::from_utf8_lossy(name), value, false);
        }
        text
    }
}

impl<'b> NamedValues<'b> for NamedFields<'b> {
    /// The value of the next field, if it is this one.
    #[inline]
    fn of(&mut self, field: &'static TracepointField) -> Option<WireValue<'b>> {
        let name = field.name.as_bytes();
        self.at_hand(name).or_else(|| self.take().filter(|(found, _)| *found == name).map(|(_, value)| value))
    }
}

/// Values that have the names of a tracepoint's fields.
pub(super) trait NamedValues<'b>: Copy {
    /// The value of a field, which may have to be the next.
    fn of(&mut self, field: &'static TracepointField) -> Option<WireValue<'b>>;
}

/// The fields of a tracepoint, wherever their values are found by name.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamedSource<V>(pub(super) V);

impl<'b, V: NamedValues<'b>> FieldSource<'b> for NamedSource<V> {
    fn comm<T>(
        mut self,
        field: &'static TracepointField,
        _: &'static TracepointField,
        rest: impl Fn(Self) -> Option<T>,
    ) -> Option<(Comm, T)> {
        let comm = Comm::new(self.0.of(field)?.bytes());
        Some((comm, rest(self)?))
    }

    fn pid(&mut self, field: &'static TracepointField) -> Option<Pid> {
        self.0.of(field).map(|value| Pid(value.int()))
    }

    fn prio(&mut self, field: &'static TracepointField) -> Option<Prio> {
        self.0.of(field).map(|value| Prio(value.int()))
    }

    fn cpu(&mut self, field: &'static TracepointField) -> Option<Cpu> {
        self.0.of(field).map(|value| Cpu(value.number() as u32))
    }

    fn state(&mut self, field: &'static TracepointField) -> Option<TaskState> {
        TaskState::parse(self.0.of(field)?.bytes())
    }

    fn nanoseconds(&mut self, field: &'static TracepointField) -> Option<Ns> {
        self.0.of(field).map(|value| Ns(value.number()))
    }

    fn unsigned(&mut self, field: &'static TracepointField) -> Option<u64> {
        self.0.of(field).map(WireValue::number)
    }

    fn signed(&mut self, field: &'static TracepointField) -> Option<i64> {
        self.0.of(field).map(|value| value.number().cast_signed())
    }

    fn count(&mut self, field: &'static TracepointField) -> Option<u32> {
        self.0.of(field).map(|value| value.number() as u32)
    }

    fn text(&mut self, field: &'static TracepointField) -> Option<&'b str> {
        std::str::from_utf8(self.0.of(field)?.bytes()).ok()
    }

    fn flag(&mut self, field: &'static TracepointField) -> Option<Option<bool>> {
        let mut ahead = *self;
        match ahead.0.of(field) {
            Some(flag) => {
                *self = ahead;
                Some(Some(flag.number() != 0))
            }
            None => Some(None),
        }
    }

    fn nanoseconds_until(&mut self, field: &'static TracepointField) -> Option<Option<u64>> {
        let mut ahead = *self;
        match ahead.0.of(field) {
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

#[cfg(test)]
mod tests {
    use super::super::proto::ProtoMessage;
    use super::*;

    /// A message of these fields, as they stand or the last first.
    fn message(fields: &[ProtoMessage], is_reversed: bool) -> Vec<u8> {
        let mut fields = fields.to_vec();
        if is_reversed {
            fields.reverse();
        }
        fields.iter().flat_map(|field| field.bytes().to_vec()).collect()
    }

    fn number(field: u64, value: i64) -> ProtoMessage {
        ProtoMessage::new().int(field, value)
    }

    fn text(field: u64, text: &str) -> ProtoMessage {
        ProtoMessage::new().text(field, text)
    }

    #[test]
    fn fields_in_another_order_tell_one_event() {
        let (states, described) = (StateTable::in_use(), DescribedEvents::default());
        let codes = TraceCodes { states: &states, described: &described };
        let switch = [
            text(1, "a"),
            number(2, 300),
            number(3, -1),
            number(4, 0x102),
            text(5, "from eight bytes"),
            number(6, 7),
            number(7, 120),
        ];
        let wakeup =
            [text(1, "twelve bytes"), number(2, 1 << 22), number(3, 98), number(4, 1), number(5, 4095)];
        for (field, fields) in [(field::SCHED_SWITCH, &switch[..]), (field::SCHED_WAKING, &wakeup)] {
            let [in_order, reversed] = [false, true].map(|reversed| message(fields, reversed));
            let told = plain(field, &in_order, codes).expect("an event");
            assert_eq!(plain(field, &reversed, codes), Some(told));
            assert_eq!(own(field, &in_order, codes, &mut ScratchText::default()), DecodedPart::Event(told));
            let around_it = [number(1, 1 << 50), number(2, 9), number(5, 0x15)];
            let whole =
                [&around_it[..], &[ProtoMessage::new().message(field, &ProtoMessage::new())]].concat();
            let [in_order, reversed] = [false, true].map(|reversed| message(&whole, reversed));
            let [in_order, reversed] = [&in_order, &reversed].map(|event| around(event).expect("an event"));
            let told =
                |around: &EventEnvelope<'_>| (around.pid, around.flags, around.own.map(|(field, _)| field));
            assert_eq!(told(&in_order), told(&reversed));
            assert_eq!(told(&in_order), (Some(Pid(9)), flags::columns(0x15, 0), Some(field)));
        }
    }

    #[test]
    fn an_event_that_is_cut_is_none() {
        let wakeup = message(&[text(1, "a"), number(2, 300), number(3, 98), number(5, 3)], false);
        let (states, described) = (StateTable::in_use(), DescribedEvents::default());
        let codes = TraceCodes { states: &states, described: &described };
        for end in 0..wakeup.len() {
            let told = plain(field::SCHED_WAKEUP, &wakeup[..end], codes);
            let ends_between = [0, 3, 6, 8].contains(&end);
            assert_eq!(told.is_some(), ends_between, "{end}");
        }
    }

    #[test]
    fn a_generic_event_of_a_tracepoint_is_that_wherever_its_name_stands() {
        let field = |name: &str, value: ProtoMessage| {
            let parts = [text(1, name), value].map(|part| part.bytes().to_vec()).concat();
            let mut bytes = vec![2 << 3 | 2, parts.len() as u8];
            bytes.extend(parts);
            bytes
        };
        let fields =
            [field("comm", text(3, "x")), field("pid", number(4, 5)), field("delay", number(5, 1 << 40))]
                .concat();
        let name = text(1, "sched_stat_wait").bytes().to_vec();
        let (states, described) = (StateTable::in_use(), DescribedEvents::default());
        let codes = TraceCodes { states: &states, described: &described };
        let expected = EventKind::SchedStatWait(fairlab_event::StatDelay {
            comm: Comm::from("x"),
            pid: Pid(5),
            delay: Ns(1 << 40),
        });
        for own in [[&name[..], &fields].concat(), [&fields[..], &name].concat()] {
            assert_eq!(plain(field::GENERIC, &own, codes), Some(expected));
        }
        assert_eq!(plain(field::GENERIC, &name, codes), None, "no fields");
        let other = text(1, "other").bytes().to_vec();
        assert_eq!(plain(field::GENERIC, &[&other[..], &fields].concat(), codes), None, "text");
    }
}
