//! Events to binary tracepoint records, and the formats that describe these.
//!
//! What has a type is written as a 64-bit kernel of today writes it. What has none (kprobes, other subsystems' events)
//! was given as text and is carried as text: one field that is printed as it stands.
//!
//! Must not know: in which container the records and the formats go.

use std::collections::HashMap;

use fairlab_event::{Event, EventKind, FieldSink, Ns, TracepointField, TracepointValue};

use super::flags;
use super::layout;

/// Makes records, always little-endian, and remembers which formats they need.
#[derive(Debug)]
pub(crate) struct RecordEncoder {
    /// No record is longer; text is cut.
    bytes_max: usize,
    /// Which of [`layout::all`] there are records of.
    used: Vec<bool>,
    /// Events carried as text: probes or not, and their names; their ids count on from the first.
    verbatim: Vec<(bool, String)>,
    /// Their ids by name: of those that are no probes, and of probes.
    verbatim_ids: [HashMap<String, u16>; 2],
    /// Whether a `prev_state` had letters of kernels before v4.14.
    old_letters: bool,
}

/// How an event became a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EncodeResult {
    /// Everything but the flag columns will be read back as it was.
    Exact,
    /// Text was cut, or a name changed to one that all tools can read.
    Altered,
    /// There is no record: events of this kind are none, or there are too many names.
    None,
}

/// The pointer that stands for `tracing_mark_write`, the kernel's function for text from user space.
pub(crate) const MARK_WRITE_ADDRESS: u64 = 0xffff_ffff_8100_0000;

pub(crate) use super::layout::state_bits;

/// The id of `sched_switch`, which every trace describes.
pub(crate) const SWITCH_ID: u16 = layout::SWITCH_ID;

impl RecordEncoder {
    /// An encoder whose records have at most `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> RecordEncoder {
        RecordEncoder {
            bytes_max,
            used: vec![false; layout::all().len()],
            verbatim: Vec::new(),
            verbatim_ids: [HashMap::new(), HashMap::new()],
            old_letters: false,
        }
    }

    /// Replaces `record` by that of `event`; its length is a multiple of four.
    pub(crate) fn encode(&mut self, event: &Event<'_>, record: &mut Vec<u8>) -> EncodeResult {
        record.clear();
        let mut fields = EncodedFields::new(record, self.bytes_max);
        let id = match event.kind {
            EventKind::Kprobe { name, fields: text } => self.verbatim(true, name, text.text(), &mut fields),
            EventKind::Other { name, fields: text } => self.verbatim(false, name, text.text(), &mut fields),
            _ => self.typed(&event.kind, &mut fields),
        };
        let Some(id) = id else {
            record.clear();
            return EncodeResult::None;
        };
        let exact = fields.exact;
        record.resize(record.len().next_multiple_of(size_of::<u32>()), 0);
        let (flags, preempt_count) = flags::common(event.context.flags);
        let id = id.to_le_bytes();
        record[..4].copy_from_slice(&[id[0], id[1], flags, preempt_count]);
        record[4..layout::COMMON_BYTES].copy_from_slice(&event.context.pid.0.to_le_bytes());
        if exact { EncodeResult::Exact } else { EncodeResult::Altered }
    }

    /// Subsystem and text of each format, those of a subsystem side by side, ftrace's own first.
    pub(crate) fn formats(&self) -> Vec<(&'static str, String)> {
        let typed = layout::all().iter().zip(&self.used).filter(|(layout, used)| layout.always || **used);
        let mut formats: Vec<(&'static str, String)> =
            typed.map(|(layout, _)| (layout.system, layout.format(self.old_letters))).collect();
        for ((probe, name), id) in self.verbatim.iter().zip(layout::FIRST_VERBATIM_ID..) {
            let system = match probe {
                true => layout::PROBE_SYSTEM,
                false if name.starts_with("sched_") => layout::SCHED_SYSTEM,
                false => layout::OWN_SYSTEM,
            };
            formats.push((system, layout::verbatim_format(name, id)));
        }
        let place = |system: &str| layout::SYSTEMS.iter().position(|&known| known == system);
        formats.sort_by_key(|&(system, _)| place(system));
        formats
    }

    /// The id of each tracepoint that there are records of.
    pub(crate) fn used_ids(&self) -> Vec<u16> {
        let typed =
            layout::all().iter().zip(&self.used).filter(|(_, used)| **used).map(|(layout, _)| layout.id);
        typed.chain((layout::FIRST_VERBATIM_ID..).take(self.verbatim.len())).collect()
    }

    /// An event of a tracepoint that has a type, or text from user space.
    fn typed<'r>(&mut self, kind: &EventKind<'r>, fields: &mut EncodedFields<'r>) -> Option<u16> {
        let place = match kind.tracepoint() {
            Some(tracepoint) => {
                kind.give_fields(fields);
                fields.put_text();
                self.old_letters |= fields.old_letters;
                layout::place(tracepoint, fields.whole)?
            }
            None => {
                let EventKind::Marker { text } = kind else { return None };
                fields.u64(MARK_WRITE_ADDRESS);
                // Whoever reads takes line feeds at the end for the kernel's own.
                fields.exact &= !text.ends_with('\n');
                fields.rest(text.as_bytes());
                layout::all().iter().position(|layout| layout.tracepoint.is_none())?
            }
        };
        self.used[place] = true;
        Some(layout::all()[place].id)
    }

    /// An event without a type, as the text that it prints.
    fn verbatim(
        &mut self,
        probe: bool,
        name: &str,
        text: &str,
        fields: &mut EncodedFields<'_>,
    ) -> Option<u16> {
        fields.rest(text.as_bytes());
        let known = self.verbatim_ids[usize::from(probe)].get(name).copied();
        let id = match known {
            Some(id) => id,
            None => self.add_verbatim(probe, name)?,
        };
        fields.exact &= is_word(name);
        Some(id)
    }

    fn add_verbatim(&mut self, probe: bool, name: &str) -> Option<u16> {
        let id = u16::try_from(self.verbatim.len()).ok()?.checked_add(layout::FIRST_VERBATIM_ID)?;
        let word = |byte: char| if byte.is_ascii_alphanumeric() { byte } else { '_' };
        let mut readable: String = name.chars().take(NAME_MAX).map(word).collect();
        if readable.is_empty() {
            readable.push('_');
        }
        self.verbatim.push((probe, readable));
        self.verbatim_ids[usize::from(probe)].insert(name.to_string(), id);
        Some(id)
    }
}

/// Longer names of events are cut; kernels have none.
const NAME_MAX: usize = 256;

/// Whether every tool takes `name` for one name.
fn is_word(name: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(word)
}

/// A record in the making; the common fields are filled in last.
struct EncodedFields<'r> {
    record: &'r mut Vec<u8>,
    bytes_max: usize,
    exact: bool,
    /// The optional field is there, if there is one.
    whole: bool,
    /// There are letters of kernels before v4.14.
    old_letters: bool,
    /// Text that stands behind all fields, and where the word is that says so.
    text: Option<(usize, &'r str)>,
}

impl<'r> EncodedFields<'r> {
    fn new(record: &'r mut Vec<u8>, bytes_max: usize) -> EncodedFields<'r> {
        EncodedFields { record, bytes_max, exact: true, whole: true, old_letters: false, text: None }
    }

    /// Goes on at a multiple of `align` behind the common fields.
    fn align(&mut self, align: usize) {
        let end = self.record.len().max(layout::COMMON_BYTES).next_multiple_of(align);
        self.record.resize(end, 0);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.align(1);
        self.record.extend_from_slice(bytes);
    }

    fn i32(&mut self, value: i32) {
        self.align(size_of::<i32>());
        self.bytes(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.align(size_of::<u64>());
        self.bytes(&value.to_le_bytes());
    }

    /// Puts the text that stands behind all fields, and says in its word where it begins and how long it is.
    fn put_text(&mut self) {
        let Some((word_at, text)) = self.text.take() else { return };
        let text_at = self.record.len();
        // Offset and length have 16 bits each.
        let room = self.bytes_max.min(usize::from(u16::MAX)).saturating_sub(text_at + 1);
        let text = self.readable(text.as_bytes(), room);
        let word = ((text.len() + 1) << 16) | text_at;
        self.record[word_at..word_at + size_of::<u32>()].copy_from_slice(&(word as u32).to_le_bytes());
        self.bytes(text);
        self.bytes(&[0]);
    }

    /// Text to the end of the record.
    fn rest(&mut self, text: &[u8]) {
        self.align(1);
        let room = self.bytes_max.saturating_sub(self.record.len() + 1);
        let text = self.readable(text, room);
        self.bytes(text);
        self.bytes(&[0]);
    }

    /// As much of `text` as will be read back: up to the first NUL, and at most `room` bytes of whole characters.
    fn readable<'t>(&mut self, text: &'t [u8], room: usize) -> &'t [u8] {
        let mut end = memchr::memchr(0, text).unwrap_or(text.len());
        if end > room {
            end = room;
            while end > 0 && text[end] & 0xc0 == 0x80 {
                end -= 1;
            }
        }
        self.exact &= end == text.len();
        &text[..end]
    }
}

impl<'r> FieldSink<'r> for EncodedFields<'r> {
    fn field(&mut self, _: &'static TracepointField, value: TracepointValue<'r>) {
        match value {
            TracepointValue::Comm(comm) => self.bytes(comm.padded()),
            TracepointValue::Pid(pid) => self.i32(pid.0),
            TracepointValue::Prio(prio) => self.i32(prio.0),
            TracepointValue::Cpu(cpu) => self.i32(cpu.0 as i32),
            TracepointValue::Count(count) => self.i32(count as i32),
            TracepointValue::Signed(value) => self.u64(value as u64),
            TracepointValue::Unsigned(value) | TracepointValue::Nanoseconds(Ns(value)) => self.u64(value),
            TracepointValue::State(state) => {
                let (bits, old_letters) = state_bits(state);
                self.old_letters |= old_letters;
                self.u64(bits);
            }
            TracepointValue::Text(text) => {
                self.i32(0);
                self.text = Some((self.record.len() - size_of::<u32>(), text));
            }
            TracepointValue::Flag(Some(flag)) => self.bytes(&[u8::from(flag)]),
            TracepointValue::NanosecondsUntil(Some(value)) => self.u64(value),
            TracepointValue::Flag(None) | TracepointValue::NanosecondsUntil(None) => self.whole = false,
        }
    }
}

#[cfg(test)]
mod tests {
    use fairlab_event::{
        Comm, Context, Cpu, Flags, Pid, Place, Prio, StatDelay, Switch, TaskState, TextFields as Text, Wakeup,
    };

    use super::super::Tracepoints;
    use super::*;
    use crate::endian::Endian;

    fn comm(name: &str) -> Comm {
        Comm::from(name)
    }

    /// Encodes `kind`, decodes it by the encoder's own formats.
    fn back(kind: EventKind<'_>) -> (EncodeResult, String) {
        let mut encoder = RecordEncoder::new(128);
        let mut record = Vec::new();
        let context = Context { pid: Pid(77), flags: Flags::new(b"dNh1."), ..Context::default() };
        let event = Event { time: Ns(1), cpu: Cpu(0), context, kind };
        let encoded = encoder.encode(&event, &mut record);
        assert!(record.len() % 4 == 0 && record.len() <= 128, "{}", record.len());
        let mut tracepoints = Tracepoints::new(Endian::Little);
        for (system, format) in encoder.formats() {
            assert!(tracepoints.add(system, &format), "{format}");
        }
        let mut scratch = String::new();
        let back = tracepoints.hand_on(&record, &mut scratch, |common, kind| {
            assert_eq!((common.pid, common.flags.as_bytes()), (Pid(77), &b"dNh1."[..]));
            format!("{kind:?}")
        });
        (encoded, back.expect("a record"))
    }

    #[track_caller]
    fn check(kind: EventKind<'_>) {
        assert_eq!(back(kind), (EncodeResult::Exact, format!("{kind:?}")));
    }

    #[test]
    fn every_kind_comes_back() {
        let wakeup = Wakeup { comm: comm("a b"), pid: Pid(-1), prio: Prio(-7), target_cpu: Cpu(u32::MAX) };
        let delay = StatDelay { comm: comm("w"), pid: Pid(7), delay: Ns(u64::MAX) };
        let (name, pid, prio) = (comm("0123456789abcde"), Pid(i32::MAX), Prio(120));
        let switch = |state: &str| Switch {
            prev_comm: name,
            prev_pid: pid,
            prev_prio: prio,
            prev_state: TaskState::parse(state.as_bytes()).expect(state),
            next_comm: comm(""),
            next_pid: Pid(0),
            next_prio: Prio(-1),
        };
        for state in ["R", "R+", "S", "D|K", "S|D|T|t|X|Z|P|I|K|W|x|N+", "N"] {
            check(EventKind::SchedSwitch(switch(state)));
        }
        for kind in [EventKind::SchedWaking, EventKind::SchedWakeup, EventKind::SchedWakeupNew] {
            check(kind(wakeup));
        }
        for kind in [
            EventKind::SchedStatWait,
            EventKind::SchedStatSleep,
            EventKind::SchedStatBlocked,
            EventKind::SchedStatIowait,
        ] {
            check(kind(delay));
        }
        for vruntime in [None, Some(u64::MAX)] {
            check(EventKind::SchedStatRuntime { comm: name, pid, runtime: Ns(9), vruntime });
        }
        for group_dead in [None, Some(true), Some(false)] {
            check(EventKind::SchedProcessExit { comm: name, pid, prio, group_dead });
        }
        let (orig_cpu, dest_cpu) = (Cpu(1), Cpu(4000));
        check(EventKind::SchedMigrateTask { comm: name, pid, prio, orig_cpu, dest_cpu });
        check(EventKind::SchedProcessFork { comm: name, pid, child_comm: comm("c"), child_pid: Pid(3) });
        check(EventKind::SchedProcessExec { filename: "/bin/ä b", pid, old_pid: Pid(2) });
        check(EventKind::SchedPlace(Place {
            comm: name,
            pid,
            sev: u64::MAX,
            sed: 1,
            sel: i64::MIN,
            avg: 2,
            min: 3,
            cpu: Cpu(4),
            nr: u32::MAX,
        }));
        check(EventKind::TaskName { pid, tgid: Pid(-1), comm: name });
        check(EventKind::TaskStart { pid, tgid: Pid(4), parent_pid: Pid(5) });
        check(EventKind::TaskExit { pid, tgid: Pid(4) });
        check(EventKind::Marker { text: "" });
        check(EventKind::Marker { text: "B|12|ä\nb" });
        check(EventKind::Kprobe { name: "place", fields: Text::new("(place_entity+0x0/0x130) vlag=-2") });
        check(EventKind::Other { name: "irq_handler_entry", fields: Text::new("irq=9 name=eth") });
        check(EventKind::Other { name: "sched_switch", fields: Text::new("") });
    }

    #[test]
    fn what_cannot_come_back_is_told() {
        let long = "ä".repeat(100);
        for kind in [
            EventKind::Marker { text: "a\n" },
            EventKind::Marker { text: "a\0b" },
            EventKind::Marker { text: &long },
            EventKind::SchedProcessExec { filename: &long, pid: Pid(1), old_pid: Pid(1) },
            EventKind::Other { name: "two words", fields: Text::new("x") },
            EventKind::Other { name: "", fields: Text::new("x") },
            EventKind::Kprobe { name: "x", fields: Text::new(&long) },
        ] {
            let (encoded, back) = back(kind);
            assert_eq!(encoded, EncodeResult::Altered, "{kind:?}");
            assert_ne!(back, format!("{kind:?}"));
        }
        let lost = Event::new(Ns(1), Cpu(0), EventKind::Lost { count: None });
        assert_eq!(RecordEncoder::new(128).encode(&lost, &mut Vec::new()), EncodeResult::None);
    }

    #[test]
    fn only_formats_that_tools_expect_or_records_need_are_written() {
        let mut encoder = RecordEncoder::new(128);
        let names = |encoder: &RecordEncoder| -> Vec<String> {
            let name = |text: &str| text.lines().next().unwrap_or_default()[6..].to_string();
            encoder.formats().iter().map(|(system, text)| format!("{system}/{}", name(text))).collect()
        };
        let at_first = names(&encoder);
        assert_eq!(at_first.len(), layout::all().iter().filter(|layout| layout.always).count());
        assert_eq!(at_first[..2], ["ftrace/print", "sched/sched_switch"]);
        let mut encode = |kind| {
            encoder.encode(&Event::new(Ns(1), Cpu(0), kind), &mut Vec::new());
        };
        encode(EventKind::TaskExit { pid: Pid(1), tgid: Pid(1) });
        encode(EventKind::Kprobe { name: "a-b", fields: Text::new("") });
        encode(EventKind::Other { name: "x", fields: Text::new("") });
        encode(EventKind::Other { name: "x", fields: Text::new("y") });
        encode(EventKind::Other { name: "sched_process_wait", fields: Text::new("y") });
        let later = names(&encoder);
        let added = ["sched/sched_process_wait", "fairlab/task_exit", "fairlab/x", "kprobes/a_b"];
        assert_eq!(later[at_first.len()..], added);
    }

    #[test]
    fn names_beyond_the_ids_that_there_are_give_no_record() {
        let mut encoder = RecordEncoder::new(128);
        let mut record = Vec::new();
        let mut first_without = None;
        for number in 0..70_000_u32 {
            let name = number.to_string();
            let kind = EventKind::Other { name: &name, fields: Text::new("") };
            let encoded = encoder.encode(&Event::new(Ns(1), Cpu(0), kind), &mut record);
            if encoded == EncodeResult::None && first_without.is_none() {
                first_without = Some(number);
            }
        }
        assert_eq!(first_without, Some(65_536 - 1000));
        assert!(record.is_empty());
    }
}
