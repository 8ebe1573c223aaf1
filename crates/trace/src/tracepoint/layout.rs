//! The tracepoints that Fairlab writes: where their fields are in a record, and the `format` text that says so.
//!
//! Names, types and the print format are the kernel's, so that its tools print what the kernel would. The order of fields,
//! and so the offsets, are those of a 64-bit kernel. `comm` is `char[16]` everywhere, as in kernels before `__data_loc`:
//! every tool reads that.
//!
//! Must not know: how a record is filled.

use std::fmt::Write;
use std::sync::LazyLock;

use fairlab_event::{FieldForm, TaskState, Tracepoint, TracepointField};

/// One tracepoint, in one of its forms: fields come and go with releases.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TracepointLayout {
    /// The subsystem.
    pub(super) system: &'static str,
    /// The event.
    pub(super) name: &'static str,
    /// Which tracepoint it is; `None` for text from user space.
    pub(super) tracepoint: Option<Tracepoint>,
    /// `common_type` of its records.
    pub(super) id: u16,
    /// Whether traces describe it though they have none.
    pub(super) always: bool,
    /// Its own fields, in order.
    pub(super) fields: Vec<LayoutField>,
    /// What follows `print fmt:`; of `sched_switch` it is made when it is known which letters there are.
    pub(super) print_format: String,
}

/// One field and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LayoutField {
    /// A task's name in 16 bytes.
    Comm(&'static str),
    /// `pid_t`.
    Pid(&'static str),
    /// `int`.
    Int(&'static str),
    /// `unsigned int`.
    Unsigned(&'static str),
    /// `long`.
    Long(&'static str),
    /// `unsigned long`, an address.
    Address(&'static str),
    /// `u64`.
    U64(&'static str),
    /// `s64`.
    S64(&'static str),
    /// `bool`.
    Bool(&'static str),
    /// Text behind the other fields, to which the field points.
    Elsewhere(&'static str),
    /// Text to the end of the record; the last field.
    Rest(&'static str),
}

/// Bytes before a tracepoint's own fields: `common_type`, `common_flags`, `common_preempt_count`, `common_pid`.
pub(super) const COMMON_BYTES: usize = 8;

/// Bytes of a task's name.
pub(super) const COMM_BYTES: usize = 16;

/// The one field of events that are carried as the text that they print.
pub(super) const VERBATIM: &str = "fairlab_text";

/// The subsystem of what no kernel has.
pub(super) const OWN_SYSTEM: &str = Tracepoint::OWN_SYSTEM;

/// The subsystem of the scheduler's events.
pub(super) const SCHED_SYSTEM: &str = Tracepoint::SchedSwitch.system();

/// The subsystem of dynamic probes.
pub(super) const PROBE_SYSTEM: &str = "kprobes";

/// All subsystems, in the order in which traces describe them.
pub(super) const SYSTEMS: [&str; 4] = ["ftrace", SCHED_SYSTEM, OWN_SYSTEM, PROBE_SYSTEM];

/// `TRACE_PRINT`, the kernel's fixed id for text from user space.
pub(super) const PRINT_ID: u16 = 5;

/// The id of the list's first tracepoint, `sched_switch`; the scheduler's others follow.
pub(super) const SWITCH_ID: u16 = 300;

/// The id of the first of those that no kernel has.
const OWN_ID: u16 = 320;

/// All layouts: text from user space first, then the tracepoints in the order of their list, today's form first where there
/// are two.
pub(super) fn all() -> &'static [TracepointLayout] {
    static ALL: LazyLock<Vec<TracepointLayout>> = LazyLock::new(|| {
        let (mut reported, mut own) = (SWITCH_ID.., OWN_ID..);
        let mut layouts = vec![TracepointLayout {
            system: SYSTEMS[0],
            name: "print",
            tracepoint: None,
            id: PRINT_ID,
            always: true,
            fields: vec![LayoutField::Address("ip"), LayoutField::Rest("buf")],
            print_format: r#""%ps: %s", (void *)REC->ip, REC->buf"#.to_string(),
        }];
        for &tracepoint in Tracepoint::ALL {
            let ids = if tracepoint.is_reported() { &mut reported } else { &mut own };
            let today = tracepoint.optional_field().is_none_or(|field| field.form.is_reported_today());
            let forms =
                if tracepoint.optional_field().is_some() { &[today, !today][..] } else { &[true][..] };
            layouts.extend(ids.zip(forms).map(|(id, &whole)| TracepointLayout::new(tracepoint, id, whole)));
        }
        layouts
    });
    &ALL
}

/// The place in [`all`] of a tracepoint, with its optional field or without.
pub(super) fn place(tracepoint: Tracepoint, whole: bool) -> Option<usize> {
    /// By tracepoint: without the optional field, and with it.
    static PLACES: LazyLock<[[Option<usize>; 2]; Tracepoint::COUNT]> = LazyLock::new(|| {
        let mut places = [[None; 2]; Tracepoint::COUNT];
        for (place, layout) in all().iter().enumerate() {
            if let Some(tracepoint) = layout.tracepoint {
                let whole = layout.fields.len() == tracepoint.fields().len();
                places[tracepoint as usize][usize::from(whole)] = Some(place);
            }
        }
        places
    });
    PLACES[tracepoint as usize][usize::from(whole)]
}

/// The first id for events that are carried as text; those below belong to the layouts.
pub(super) const FIRST_VERBATIM_ID: u16 = 1000;

impl TracepointLayout {
    /// A tracepoint as `whole` or without its optional field.
    fn new(tracepoint: Tracepoint, id: u16, whole: bool) -> TracepointLayout {
        let has = |field: &&TracepointField| whole || !field.form.is_optional();
        let fields = || tracepoint.fields().iter().filter(has);
        let today = tracepoint.optional_field().is_none_or(|field| field.form.is_reported_today() == whole);
        let printed = fields().map(|field| format!("{}{}", field.label, printed(field.form)));
        let values = fields().map(value).collect::<Vec<_>>();
        TracepointLayout {
            system: tracepoint.system(),
            name: tracepoint.name(),
            tracepoint: Some(tracepoint),
            id,
            always: tracepoint.is_mainline() && today,
            fields: fields().map(LayoutField::of).collect(),
            print_format: format!("\"{}\", {}", printed.collect::<String>(), values.join(", ")),
        }
    }

    /// The `format` file; with letters of kernels before v4.14 in `prev_state` when `old_letters`.
    pub(super) fn format(&self, old_letters: bool) -> String {
        let print_format = self.print_format.replace(STATE_VALUE, &state_value(old_letters));
        format_text(self.name, self.id, &self.fields, &print_format)
    }
}

/// How `printf` prints a field of a form.
const fn printed(form: FieldForm) -> &'static str {
    match form {
        FieldForm::Comm | FieldForm::Text | FieldForm::FlagSince => "%s",
        FieldForm::Pid | FieldForm::Prio | FieldForm::Cpu => "%d",
        FieldForm::TargetCpu => "%03d",
        FieldForm::State => "%s%s",
        FieldForm::Nanoseconds | FieldForm::NanosecondsUntil => "%Lu [ns]",
        FieldForm::Unsigned => "%llu",
        FieldForm::Signed => "%lld",
        FieldForm::Count => "%u",
    }
}

/// What stands for the value of `prev_state` until it is known which letters there are.
const STATE_VALUE: &str = "$state";

/// The value of a field as a format names it.
fn value(field: &TracepointField) -> String {
    let name = field.name;
    match field.form {
        FieldForm::Nanoseconds | FieldForm::NanosecondsUntil => format!("(unsigned long long)REC->{name}"),
        FieldForm::FlagSince => format!("REC->{name} ? \"true\" : \"false\""),
        FieldForm::Text => format!("__get_str({name})"),
        FieldForm::State => STATE_VALUE.to_string(),
        _ => format!("REC->{name}"),
    }
}

/// The `format` file of an event that is carried as text.
pub(super) fn verbatim_format(name: &str, id: u16) -> String {
    format_text(name, id, &[LayoutField::Rest(VERBATIM)], &format!("\"%s\", REC->{VERBATIM}"))
}

fn format_text(name: &str, id: u16, fields: &[LayoutField], print_format: &str) -> String {
    let mut text = format!(
        "name: {name}\nID: {id}\nformat:\n\
         \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
         \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    );
    let mut offset = COMMON_BYTES;
    for field in fields {
        let (declaration, size, align, signed) = field.declaration();
        offset = offset.next_multiple_of(align);
        // Text takes everything.
        let _ = writeln!(
            text,
            "\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{};",
            u8::from(signed)
        );
        offset += size;
    }
    let _ = write!(text, "\nprint fmt: {print_format}\n");
    text
}

impl LayoutField {
    /// As it lies in a record of a 64-bit kernel.
    fn of(field: &TracepointField) -> LayoutField {
        let name = field.name;
        match field.form {
            FieldForm::Comm => LayoutField::Comm(name),
            FieldForm::Pid => LayoutField::Pid(name),
            FieldForm::Prio | FieldForm::Cpu | FieldForm::TargetCpu => LayoutField::Int(name),
            FieldForm::State => LayoutField::Long(name),
            FieldForm::Nanoseconds | FieldForm::NanosecondsUntil | FieldForm::Unsigned => {
                LayoutField::U64(name)
            }
            FieldForm::Signed => LayoutField::S64(name),
            FieldForm::Count => LayoutField::Unsigned(name),
            FieldForm::Text => LayoutField::Elsewhere(name),
            FieldForm::FlagSince => LayoutField::Bool(name),
        }
    }

    /// Its declaration, size, alignment, and whether it has a sign.
    fn declaration(self) -> (String, usize, usize, bool) {
        match self {
            LayoutField::Comm(name) => (format!("char {name}[{COMM_BYTES}]"), COMM_BYTES, 1, false),
            LayoutField::Pid(name) => (format!("pid_t {name}"), 4, 4, true),
            LayoutField::Int(name) => (format!("int {name}"), 4, 4, true),
            LayoutField::Unsigned(name) => (format!("unsigned int {name}"), 4, 4, false),
            LayoutField::Long(name) => (format!("long {name}"), 8, 8, true),
            LayoutField::Address(name) => (format!("unsigned long {name}"), 8, 8, false),
            LayoutField::U64(name) => (format!("u64 {name}"), 8, 8, false),
            LayoutField::S64(name) => (format!("s64 {name}"), 8, 8, true),
            LayoutField::Bool(name) => (format!("bool {name}"), 1, 1, false),
            LayoutField::Elsewhere(name) => (format!("__data_loc char[] {name}"), 4, 4, false),
            LayoutField::Rest(name) => (format!("char {name}[]"), 0, 1, false),
        }
    }
}

/// The bits of `prev_state`, in the order of [`TaskState`]'s letters: v4.14's and later, then those that were dropped
/// there, above the bit that marks preemption.
const STATE_LETTERS: [(u64, u8); 12] = [
    (0x01, b'S'),
    (0x02, b'D'),
    (0x04, b'T'),
    (0x08, b't'),
    (0x10, b'X'),
    (0x20, b'Z'),
    (0x40, b'P'),
    (0x80, b'I'),
    (0x200, b'K'),
    (0x400, b'W'),
    (0x800, b'x'),
    (0x1000, b'N'),
];
const PREEMPTED: u64 = 0x100;
const LETTERS_TODAY: usize = 8;

/// `prev_state` of a record, and whether it has letters of kernels before v4.14.
pub(crate) fn state_bits(state: TaskState) -> (u64, bool) {
    let mut bits = if state.is_preempted() { PREEMPTED } else { 0 };
    if !state.is_runnable() {
        for (bit, letter) in STATE_LETTERS {
            if TaskState::from_letter(letter).is_some_and(|letter| state.contains(letter)) {
                bits |= bit;
            }
        }
    }
    (bits, bits > PREEMPTED + (PREEMPTED - 1))
}

/// How a format makes letters of `prev_state`.
fn state_value(old_letters: bool) -> String {
    let letters = if old_letters { &STATE_LETTERS[..] } else { &STATE_LETTERS[..LETTERS_TODAY] };
    let mask: u64 = letters.iter().map(|&(bit, _)| bit).sum();
    let entries: Vec<String> =
        letters.iter().map(|&(bit, letter)| format!("{{ {bit:#x}, \"{}\" }}", letter as char)).collect();
    format!(
        "(REC->prev_state & {mask:#x}) ? __print_flags(REC->prev_state & {mask:#x}, \"|\", {}) : \"R\", \
         REC->prev_state & {PREEMPTED:#x} ? \"+\" : \"\"",
        entries.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::super::format::EventFormat;
    use super::*;

    #[test]
    fn every_format_can_be_parsed_and_ids_are_unique() {
        let mut ids = Vec::new();
        for layout in all() {
            let text = layout.format(true);
            let format = EventFormat::parse(layout.system, &text).expect(layout.name);
            assert_eq!((format.name.as_str(), format.id), (layout.name, layout.id));
            assert_eq!(format.own_fields().count(), layout.fields.len(), "{text}");
            ids.push(layout.id);
        }
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all().len());
        assert!(ids.iter().all(|&id| id < FIRST_VERBATIM_ID));
    }

    #[test]
    fn what_came_or_went_has_two_forms_and_traces_describe_todays() {
        let forms = |tracepoint| {
            let of = all().iter().filter(move |layout| layout.tracepoint == Some(tracepoint));
            of.map(|layout| (layout.id, layout.fields.len(), layout.always)).collect::<Vec<_>>()
        };
        assert_eq!(forms(Tracepoint::SchedProcessExit), [(307, 4, true), (308, 3, false)]);
        assert_eq!(forms(Tracepoint::SchedStatRuntime), [(313, 3, true), (314, 4, false)]);
        assert_eq!(forms(Tracepoint::SchedSwitch), [(SWITCH_ID, 7, true)]);
        assert_eq!(forms(Tracepoint::SchedPlace), [(315, 9, false)]);
        assert_eq!(forms(Tracepoint::TaskExit), [(322, 2, false)]);
    }

    #[test]
    fn offsets_are_those_of_a_64_bit_kernel() {
        let format = |tracepoint| all()[place(tracepoint, true).expect("a layout")].format(false);
        let switch = format(Tracepoint::SchedSwitch);
        for line in [
            "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n",
            "\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n",
            "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n",
            "\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n",
            "REC->prev_state & 0xff, \"|\", { 0x1, \"S\" }, { 0x2, \"D\" }",
        ] {
            assert!(switch.contains(line), "{line} in {switch}");
        }
        let delay = format(Tracepoint::SchedStatWait);
        assert!(delay.contains("\tfield:u64 delay;\toffset:32;\tsize:8;\tsigned:0;\n"), "{delay}");
    }

    #[test]
    fn states_have_the_bits_of_todays_kernels() {
        let bits = |text: &str| state_bits(TaskState::parse(text.as_bytes()).expect(text));
        assert_eq!(bits("R"), (0, false));
        assert_eq!(bits("R+"), (0x100, false));
        assert_eq!(bits("S"), (1, false));
        assert_eq!(bits("I"), (0x80, false));
        assert_eq!(bits("D|Z+"), (0x122, false));
        assert_eq!(bits("D|K"), (0x202, true));
    }
}
