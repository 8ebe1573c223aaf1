//! The tracepoints that Fairlab writes: where their fields lie in a record, and the `format` text that says so.
//!
//! Names, types and the way of printing are the kernel's, so that its tools print what the kernel would; the order of
//! fields, hence the offsets, are those that a 64-bit kernel gives them. `comm` is `char[16]` everywhere, as in kernels
//! before it became `__data_loc`: every tool reads that.
//!
//! Must not know: how a record is filled.

use std::fmt::Write;

use fairlab_event::TaskState;

/// One tracepoint.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The subsystem.
    pub(super) system: &'static str,
    /// The event.
    pub(super) name: &'static str,
    /// `common_type` of its records.
    pub(super) id: u16,
    /// Whether traces describe it though they have none.
    pub(super) always: bool,
    /// Its own fields, in order.
    pub(super) fields: &'static [Field],
    /// What follows `print fmt:`.
    pub(super) print_format: &'static str,
}

/// One field and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
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
pub(super) const OWN_SYSTEM: &str = "fairlab";

/// The subsystem of dynamic probes.
pub(super) const PROBE_SYSTEM: &str = "kprobes";

/// All subsystems, in the order in which traces describe them.
pub(super) const SYSTEMS: [&str; 4] = ["ftrace", "sched", OWN_SYSTEM, PROBE_SYSTEM];

/// `TRACE_PRINT`, the kernel's fixed id for text from user space.
pub(super) const PRINT_ID: u16 = 5;

const WAKEUP: &[Field] =
    &[Field::Comm("comm"), Field::Pid("pid"), Field::Int("prio"), Field::Int("target_cpu")];
const WAKEUP_PRINT: &str =
    r#""comm=%s pid=%d prio=%d target_cpu=%03d", REC->comm, REC->pid, REC->prio, REC->target_cpu"#;
const DELAY: &[Field] = &[Field::Comm("comm"), Field::Pid("pid"), Field::U64("delay")];
const DELAY_PRINT: &str =
    r#""comm=%s pid=%d delay=%Lu [ns]", REC->comm, REC->pid, (unsigned long long)REC->delay"#;

const fn sched(name: &'static str, id: u16, fields: &'static [Field], print_format: &'static str) -> Layout {
    Layout { system: "sched", name, id, always: true, fields, print_format }
}

const fn own(name: &'static str, id: u16, fields: &'static [Field], print_format: &'static str) -> Layout {
    Layout { system: OWN_SYSTEM, name, id, always: false, fields, print_format }
}

pub(super) const SWITCH_ID: u16 = 300;
pub(super) static SWITCH: Layout = sched(
    "sched_switch",
    SWITCH_ID,
    &[
        Field::Comm("prev_comm"),
        Field::Pid("prev_pid"),
        Field::Int("prev_prio"),
        Field::Long("prev_state"),
        Field::Comm("next_comm"),
        Field::Pid("next_pid"),
        Field::Int("next_prio"),
    ],
    // Made when it is known which letters there are.
    "",
);
pub(super) static WAKING: Layout = sched("sched_waking", 301, WAKEUP, WAKEUP_PRINT);
pub(super) static WAKEUP_QUEUED: Layout = sched("sched_wakeup", 302, WAKEUP, WAKEUP_PRINT);
pub(super) static WAKEUP_NEW: Layout = sched("sched_wakeup_new", 303, WAKEUP, WAKEUP_PRINT);
pub(super) static MIGRATE_TASK: Layout = sched(
    "sched_migrate_task",
    304,
    &[
        Field::Comm("comm"),
        Field::Pid("pid"),
        Field::Int("prio"),
        Field::Int("orig_cpu"),
        Field::Int("dest_cpu"),
    ],
    r#""comm=%s pid=%d prio=%d orig_cpu=%d dest_cpu=%d", REC->comm, REC->pid, REC->prio, REC->orig_cpu, REC->dest_cpu"#,
);
pub(super) static PROCESS_FORK: Layout = sched(
    "sched_process_fork",
    305,
    &[
        Field::Comm("parent_comm"),
        Field::Pid("parent_pid"),
        Field::Comm("child_comm"),
        Field::Pid("child_pid"),
    ],
    r#""comm=%s pid=%d child_comm=%s child_pid=%d", REC->parent_comm, REC->parent_pid, REC->child_comm, REC->child_pid"#,
);
pub(super) static PROCESS_EXEC: Layout = sched(
    "sched_process_exec",
    306,
    &[Field::Elsewhere("filename"), Field::Pid("pid"), Field::Pid("old_pid")],
    r#""filename=%s pid=%d old_pid=%d", __get_str(filename), REC->pid, REC->old_pid"#,
);
/// As from v6.16.
pub(super) static PROCESS_EXIT: Layout = sched(
    "sched_process_exit",
    307,
    &[Field::Comm("comm"), Field::Pid("pid"), Field::Int("prio"), Field::Bool("group_dead")],
    r#""comm=%s pid=%d prio=%d group_dead=%s", REC->comm, REC->pid, REC->prio, REC->group_dead ? "true" : "false""#,
);
/// As before v6.16.
pub(super) static PROCESS_EXIT_ALONE: Layout = Layout {
    always: false,
    ..sched(
        "sched_process_exit",
        308,
        &[Field::Comm("comm"), Field::Pid("pid"), Field::Int("prio")],
        r#""comm=%s pid=%d prio=%d", REC->comm, REC->pid, REC->prio"#,
    )
};
pub(super) static STAT_WAIT: Layout = sched("sched_stat_wait", 309, DELAY, DELAY_PRINT);
pub(super) static STAT_SLEEP: Layout = sched("sched_stat_sleep", 310, DELAY, DELAY_PRINT);
pub(super) static STAT_BLOCKED: Layout = sched("sched_stat_blocked", 311, DELAY, DELAY_PRINT);
pub(super) static STAT_IOWAIT: Layout = sched("sched_stat_iowait", 312, DELAY, DELAY_PRINT);
/// As from v6.8.
pub(super) static STAT_RUNTIME: Layout = sched(
    "sched_stat_runtime",
    313,
    &[Field::Comm("comm"), Field::Pid("pid"), Field::U64("runtime")],
    r#""comm=%s pid=%d runtime=%Lu [ns]", REC->comm, REC->pid, (unsigned long long)REC->runtime"#,
);
/// As before v6.8.
pub(super) static STAT_RUNTIME_VIRTUAL: Layout = Layout {
    always: false,
    ..sched(
        "sched_stat_runtime",
        314,
        &[Field::Comm("comm"), Field::Pid("pid"), Field::U64("runtime"), Field::U64("vruntime")],
        r#""comm=%s pid=%d runtime=%Lu [ns] vruntime=%Lu [ns]", REC->comm, REC->pid, (unsigned long long)REC->runtime, (unsigned long long)REC->vruntime"#,
    )
};
pub(super) static PLACE: Layout = Layout {
    always: false,
    ..sched(
        "sched_place",
        315,
        &[
            Field::Comm("comm"),
            Field::Pid("pid"),
            Field::U64("sev"),
            Field::U64("sed"),
            Field::S64("sel"),
            Field::U64("avg"),
            Field::U64("min"),
            Field::Int("cpu"),
            Field::Unsigned("nr"),
        ],
        r#""comm=%s pid=%d sev=%llu sed=%llu sel=%lld avg=%llu min=%llu cpu=%d nr=%u", REC->comm, REC->pid, REC->sev, REC->sed, REC->sel, REC->avg, REC->min, REC->cpu, REC->nr"#,
    )
};
pub(super) static PRINT: Layout = Layout {
    system: "ftrace",
    name: "print",
    id: PRINT_ID,
    always: true,
    fields: &[Field::Address("ip"), Field::Rest("buf")],
    print_format: r#""%ps: %s", (void *)REC->ip, REC->buf"#,
};
pub(super) static TASK_NAME: Layout = own(
    "task_name",
    320,
    &[Field::Comm("comm"), Field::Pid("pid"), Field::Pid("tgid")],
    r#""comm=%s pid=%d tgid=%d", REC->comm, REC->pid, REC->tgid"#,
);
pub(super) static TASK_START: Layout = own(
    "task_start",
    321,
    &[Field::Pid("pid"), Field::Pid("tgid"), Field::Pid("parent_pid")],
    r#""pid=%d tgid=%d parent_pid=%d", REC->pid, REC->tgid, REC->parent_pid"#,
);
pub(super) static TASK_EXIT: Layout = own(
    "task_exit",
    322,
    &[Field::Pid("pid"), Field::Pid("tgid")],
    r#""pid=%d tgid=%d", REC->pid, REC->tgid"#,
);

/// All of them.
pub(super) static ALL: [&Layout; 20] = [
    &PRINT,
    &SWITCH,
    &WAKING,
    &WAKEUP_QUEUED,
    &WAKEUP_NEW,
    &MIGRATE_TASK,
    &PROCESS_FORK,
    &PROCESS_EXEC,
    &PROCESS_EXIT,
    &PROCESS_EXIT_ALONE,
    &STAT_WAIT,
    &STAT_SLEEP,
    &STAT_BLOCKED,
    &STAT_IOWAIT,
    &STAT_RUNTIME,
    &STAT_RUNTIME_VIRTUAL,
    &PLACE,
    &TASK_NAME,
    &TASK_START,
    &TASK_EXIT,
];

/// The first id for events that are carried as text; those below belong to the layouts.
pub(super) const FIRST_VERBATIM_ID: u16 = 1000;

impl Layout {
    /// The `format` file; with letters of kernels before v4.14 in `prev_state` when `old_letters`.
    pub(super) fn format(&self, old_letters: bool) -> String {
        let switch = self.id == SWITCH.id;
        let print_format = if switch { switch_print(old_letters) } else { self.print_format.to_string() };
        format_text(self.name, self.id, self.fields, &print_format)
    }
}

/// The `format` file of an event that is carried as text.
pub(super) fn verbatim_format(name: &str, id: u16) -> String {
    format_text(name, id, &[Field::Rest(VERBATIM)], &format!("\"%s\", REC->{VERBATIM}"))
}

fn format_text(name: &str, id: u16, fields: &[Field], print_format: &str) -> String {
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

impl Field {
    /// Its declaration, size, alignment, and whether it has a sign.
    fn declaration(self) -> (String, usize, usize, bool) {
        match self {
            Field::Comm(name) => (format!("char {name}[{COMM_BYTES}]"), COMM_BYTES, 1, false),
            Field::Pid(name) => (format!("pid_t {name}"), 4, 4, true),
            Field::Int(name) => (format!("int {name}"), 4, 4, true),
            Field::Unsigned(name) => (format!("unsigned int {name}"), 4, 4, false),
            Field::Long(name) => (format!("long {name}"), 8, 8, true),
            Field::Address(name) => (format!("unsigned long {name}"), 8, 8, false),
            Field::U64(name) => (format!("u64 {name}"), 8, 8, false),
            Field::S64(name) => (format!("s64 {name}"), 8, 8, true),
            Field::Bool(name) => (format!("bool {name}"), 1, 1, false),
            Field::Elsewhere(name) => (format!("__data_loc char[] {name}"), 4, 4, false),
            Field::Rest(name) => (format!("char {name}[]"), 0, 1, false),
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

fn switch_print(old_letters: bool) -> String {
    let letters = if old_letters { &STATE_LETTERS[..] } else { &STATE_LETTERS[..LETTERS_TODAY] };
    let mask: u64 = letters.iter().map(|&(bit, _)| bit).sum();
    let entries: Vec<String> =
        letters.iter().map(|&(bit, letter)| format!("{{ {bit:#x}, \"{}\" }}", letter as char)).collect();
    format!(
        "\"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s next_pid=%d next_prio=%d\", \
         REC->prev_comm, REC->prev_pid, REC->prev_prio, (REC->prev_state & {mask:#x}) ? \
         __print_flags(REC->prev_state & {mask:#x}, \"|\", {}) : \"R\", \
         REC->prev_state & {PREEMPTED:#x} ? \"+\" : \"\", REC->next_comm, REC->next_pid, REC->next_prio",
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
        for layout in ALL {
            let text = layout.format(true);
            let format = EventFormat::parse(layout.system, &text).expect(layout.name);
            assert_eq!((format.name.as_str(), format.id), (layout.name, layout.id));
            assert_eq!(format.own_fields().count(), layout.fields.len(), "{text}");
            ids.push(layout.id);
        }
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), ALL.len());
        assert!(ids.iter().all(|&id| id < FIRST_VERBATIM_ID));
    }

    #[test]
    fn offsets_are_those_of_a_64_bit_kernel() {
        let switch = SWITCH.format(false);
        for line in [
            "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n",
            "\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n",
            "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n",
            "\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n",
            "REC->prev_state & 0xff, \"|\", { 0x1, \"S\" }, { 0x2, \"D\" }",
        ] {
            assert!(switch.contains(line), "{line} in {switch}");
        }
        let delay = STAT_WAIT.format(false);
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
