//! The form in which `trace-cmd report -R` prints the scheduler's events: each field as it lies in the record, under its
//! name, in the record's order: ` prev_comm=bash prev_pid=7 prev_prio=120 prev_state=0x1 next_comm=…`.
//!
//! Numbers are decimal, or hexadecimal behind `0x`; a name with unprintable bytes is `ARRAY[62, 07, 00]`. Fields that a
//! kernel has between those that are known are passed over.
//!
//! Must not know: the kernel's own form.

use std::sync::LazyLock;

use fairlab_event::{
    Comm, Cpu, EventKind, FieldForm, FieldSource, Ns, Pid, Prio, TaskState, Tracepoint, TracepointField,
};

use super::cursor::LineCursor;
use crate::tracepoint::state_table::StateTable;

/// Reads the fields of `tracepoint`; `None` when they are not all there. Patched kernels are not read in this form.
pub(super) fn event(tracepoint: Tracepoint, cursor: LineCursor<'_>) -> Option<EventKind<'static>> {
    if !tracepoint.is_mainline() {
        return None;
    }
    let texts = fields(cursor.rest(), landmarks(tracepoint))?;
    // What did not wake anybody is no wakeup.
    let is_wakeup = tracepoint.fields().iter().any(|field| field.form == FieldForm::TargetCpu);
    let before_last = texts.len().checked_sub(2).and_then(|place| texts.get(place))?;
    if is_wakeup
        && let Some(success) = fields(before_last, &["", " success="])
        && number(success[1])? == 0
    {
        return None;
    }
    tracepoint.read(RawFields { texts: &texts, at: 0 }, |kind| kind)
}

/// The texts of the fields ahead; the last one's reaches to the end of the line.
#[derive(Clone, Copy)]
struct RawFields<'r> {
    texts: &'r [&'r [u8]],
    at: usize,
}

impl<'r> RawFields<'r> {
    fn next(&mut self) -> Option<&'r [u8]> {
        self.at += 1;
        self.texts.get(self.at - 1).copied()
    }

    /// The number of a field that may be missing.
    fn optional(&self, field: &'static TracepointField) -> Option<Option<i128>> {
        let last = self.texts.last()?;
        match fields(last, &["", &format!(" {}=", field.name)]) {
            Some(found) => Some(Some(number(found[1])?)),
            None if memchr::memmem::find(last, format!("{}=", field.name).as_bytes()).is_some() => None,
            None => Some(None),
        }
    }
}

impl FieldSource<'static> for RawFields<'_> {
    fn comm<T>(
        mut self,
        _: &'static TracepointField,
        _: &'static TracepointField,
        rest: impl Fn(Self) -> Option<T>,
    ) -> Option<(Comm, T)> {
        let comm = name(self.next()?)?;
        Some((comm, rest(self)?))
    }

    fn pid(&mut self, _: &'static TracepointField) -> Option<Pid> {
        number_of_32(self.next()?).map(Pid)
    }

    fn prio(&mut self, _: &'static TracepointField) -> Option<Prio> {
        number_of_32(self.next()?).map(Prio)
    }

    fn cpu(&mut self, _: &'static TracepointField) -> Option<Cpu> {
        u32::try_from(number(self.next()?)?).ok().map(Cpu)
    }

    fn state(&mut self, _: &'static TracepointField) -> Option<TaskState> {
        state(self.next()?)
    }

    fn nanoseconds(&mut self, field: &'static TracepointField) -> Option<Ns> {
        self.unsigned(field).map(Ns)
    }

    fn unsigned(&mut self, _: &'static TracepointField) -> Option<u64> {
        u64::try_from(number(self.next()?)?).ok()
    }

    fn signed(&mut self, _: &'static TracepointField) -> Option<i64> {
        i64::try_from(number(self.next()?)?).ok()
    }

    fn count(&mut self, _: &'static TracepointField) -> Option<u32> {
        u32::try_from(number(self.next()?)?).ok()
    }

    fn text(&mut self, _: &'static TracepointField) -> Option<&'static str> {
        None
    }

    fn flag(&mut self, field: &'static TracepointField) -> Option<Option<bool>> {
        Some(self.optional(field)?.map(|number| number != 0))
    }

    fn nanoseconds_until(&mut self, field: &'static TracepointField) -> Option<Option<u64>> {
        Some(self.optional(field)?.map(|number| number as u64))
    }

    fn end(&self, _: Tracepoint) -> Option<()> {
        Some(())
    }
}

/// What stands before each field of a tracepoint that every release reports.
fn landmarks(tracepoint: Tracepoint) -> &'static [String] {
    static LANDMARKS: LazyLock<Vec<Vec<String>>> = LazyLock::new(|| {
        let of = |tracepoint: &Tracepoint| {
            let fields = tracepoint.fields().iter().filter(|field| !field.form.is_optional());
            let separators = std::iter::once("").chain(std::iter::repeat(" "));
            fields.zip(separators).map(|(field, separator)| format!("{separator}{}=", field.name)).collect()
        };
        Tracepoint::ALL.iter().map(of).collect()
    });
    LANDMARKS.get(tracepoint as usize).map_or(&[], Vec::as_slice)
}

/// The texts behind `landmarks`, which stand in this order. Behind each text that is no name stands a number; a name ends
/// where a number follows its landmark.
fn fields<'t>(text: &'t [u8], landmarks: &[impl AsRef<str>]) -> Option<Vec<&'t [u8]>> {
    let mut found = Vec::with_capacity(landmarks.len());
    let mut rest = text.trim_ascii_start().strip_prefix(landmarks.first()?.as_ref().as_bytes())?;
    for landmark in landmarks.iter().skip(1) {
        let landmark = landmark.as_ref().as_bytes();
        let end = memchr::memmem::find_iter(rest, landmark).find(|at| {
            landmark.ends_with(b"comm=") || number(first_word(&rest[at + landmark.len()..])).is_some()
        })?;
        found.push(&rest[..end]);
        rest = &rest[end + landmark.len()..];
    }
    // `[ns]` is the kernel's own form, whole or cut.
    let words = &rest[first_word(rest).len()..];
    found.push(rest);
    (!words.starts_with(b" [")).then_some(found)
}

fn first_word(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == b' ').next().unwrap_or_default()
}

/// A decimal or hexadecimal number at the beginning of `text`.
fn number(text: &[u8]) -> Option<i128> {
    let word = std::str::from_utf8(first_word(text)).ok()?;
    let (word, negative) = word.strip_prefix('-').map_or((word, false), |word| (word, true));
    let magnitude = match word.strip_prefix("0x") {
        Some(digits) => i128::from(u64::from_str_radix(digits, 16).ok()?),
        None => i128::from(word.parse::<u64>().ok()?),
    };
    Some(if negative { -magnitude } else { magnitude })
}

/// A number of 32 bits, whichever way its sign was printed.
fn number_of_32(text: &[u8]) -> Option<i32> {
    let value = number(text)?;
    i32::try_from(value).ok().or_else(|| u32::try_from(value).ok().map(|value| value as i32))
}

/// As the kernels in use mean the number, or, where it is none of theirs, as older ones did.
fn state(text: &[u8]) -> Option<TaskState> {
    static UNTOLD: LazyLock<StateTable> = LazyLock::new(StateTable::untold);
    UNTOLD.state(number(text)? as u64)
}

/// Which kernel's numbers states are.
#[derive(Clone, Debug)]
pub(super) struct StateNumbers {
    table: StateTable,
}

impl Default for StateNumbers {
    fn default() -> StateNumbers {
        StateNumbers { table: StateTable::untold() }
    }
}

impl StateNumbers {
    /// Those of a release.
    pub(super) fn of(release: &str) -> StateNumbers {
        StateNumbers { table: StateTable::of_release(release).unwrap_or_else(StateTable::untold) }
    }

    /// The state in a switch's fields if it is a number, and whether it is doubtful since the kernel is not known.
    pub(super) fn state(&mut self, text: &[u8]) -> Option<(TaskState, bool)> {
        // `TASK_STATE_MAX` before v3.9. From there on it is `TASK_PARKED`: such a thread is seldom seen, and later kernels show
        // themselves with their first preempted task.
        const OLDEST_PREEMPTED: u64 = 0x200;
        let row = Tracepoint::SchedSwitch;
        let place = row.fields().iter().position(|field| field.form == FieldForm::State)?;
        let number = number(fields(text, landmarks(row))?.get(place)?)? as u64;
        self.table.learn(number);
        if number == OLDEST_PREEMPTED && self.table.is_untold() {
            return Some((TaskState::PREEMPTED, true));
        }
        let state = self.table.state(number)?;
        Some((state, self.table.is_doubtful(state)))
    }
}

/// A task's name; no longer than a kernel's.
fn name(text: &[u8]) -> Option<Comm> {
    if let Some(list) = text.strip_prefix(b"ARRAY[") {
        let list = std::str::from_utf8(list.strip_suffix(b"]")?).ok()?;
        let bytes = list.split(", ").map(|byte| u8::from_str_radix(byte, 16).ok());
        let bytes = bytes.collect::<Option<Vec<u8>>>()?;
        let end = memchr::memchr(0, &bytes).unwrap_or(bytes.len());
        return (end < Comm::LEN).then(|| Comm::new(&bytes[..end]));
    }
    (text.len() < Comm::LEN).then(|| Comm::new(text))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn read(tracepoint: Tracepoint, text: &str) -> Option<String> {
        let long_names = Cell::new(0);
        event(tracepoint, LineCursor::new(text.as_bytes(), &long_names)).map(|kind| format!("{kind:?}"))
    }

    #[test]
    fn switches_have_states_as_numbers() {
        for (number, letter) in
            [("0", "R"), ("1", "S"), ("0x1", "S"), ("2", "D"), ("0x100", "R+"), ("128", "I")]
        {
            let text = format!(
                " prev_comm=a b prev_pid=7 prev_prio=120 prev_state={number} next_comm=c next_pid=-1 next_prio=0x62"
            );
            let read = read(Tracepoint::SchedSwitch, &text).expect("a switch");
            assert!(
                read.contains("\"a b\"") && read.contains("Pid(-1)") && read.contains("Prio(98)"),
                "{read}"
            );
            assert!(read.contains(&format!("prev_state: {letter}")), "{number}: {read}");
        }
    }

    #[test]
    fn numbers_mean_what_the_kernel_says() {
        let read = |numbers: &mut StateNumbers, number: &str| {
            let text = format!(
                "prev_comm=a prev_pid=7 prev_prio=120 prev_state={number} next_comm=c next_pid=8 next_prio=120"
            );
            numbers.state(text.as_bytes()).map(|(state, doubtful)| (state.to_string(), doubtful))
        };
        let told = |state: &str, doubtful| Some((state.to_string(), doubtful));
        for (release, number, expected) in [
            ("4.9.337", "16", told("Z", false)),
            ("4.9.337", "0x20", told("X", false)),
            ("4.13.0-rc2", "130", told("D|K", false)),
            ("4.14.1", "16", told("X", false)),
            ("6.18.44", "0x100", told("R+", false)),
            ("", "16", told("X", true)),
            ("", "1", told("S", false)),
            ("", "0x1000", told("R+", false)),
            ("", "0x400", told("R+", false)),
            ("", "0x200", told("R+", true)),
            ("3.8.0", "0x200", told("R+", false)),
            ("3.9.0", "0x200", told("P", false)),
            ("3.18.120", "1024", told("R+", false)),
            ("4.4.0", "2048", told("R+", false)),
            ("4.9", "S", None),
        ] {
            assert_eq!(read(&mut StateNumbers::of(release), number), expected, "{release} {number}");
        }
        // A number that only old kernels have tells of those that follow.
        let mut numbers = StateNumbers::default();
        assert_eq!(read(&mut numbers, "512"), told("R+", true));
        assert_eq!(read(&mut numbers, "4096"), told("R+", false));
        assert_eq!(read(&mut numbers, "16"), told("Z", false));
        assert_eq!(read(&mut numbers, "512"), told("P", false));
    }

    #[test]
    fn names_may_be_arrays_and_hold_landmarks() {
        let wakeup = "comm=ARRAY[61, 07, 00, 31] pid=7 prio=120 success=1 target_cpu=0x3";
        assert!(read(Tracepoint::SchedWakeup, wakeup).expect("a wakeup").contains("a\\u{7}"));
        let wakeup = "comm=x pid=y pid=7 prio=120 target_cpu=3";
        assert!(read(Tracepoint::SchedWaking, wakeup).expect("a wakeup").contains("\"x pid=y\""));
        assert_eq!(read(Tracepoint::SchedWakeup, "comm=a pid=7 prio=120 success=0 target_cpu=3"), None);
    }

    #[test]
    fn every_tracepoint_has_its_fields() {
        for (tracepoint, text) in [
            (Tracepoint::SchedMigrateTask, "comm=a pid=1 prio=120 orig_cpu=1 dest_cpu=2"),
            (Tracepoint::SchedProcessFork, "parent_comm=a parent_pid=1 child_comm=b child_pid=2"),
            (Tracepoint::SchedProcessExit, "comm=a pid=1 prio=120"),
            (Tracepoint::SchedProcessExit, "comm=a pid=1 prio=120 group_dead=1"),
            (Tracepoint::SchedStatWait, "comm=a pid=1 delay=5"),
            (Tracepoint::SchedStatRuntime, "comm=a pid=1 runtime=5"),
            (Tracepoint::SchedStatRuntime, "comm=a pid=1 runtime=5 vruntime=18446744073709551615"),
        ] {
            assert!(read(tracepoint, text).is_some(), "{text}");
            let cut = &text[..text.rfind('=').expect("a field") + 1];
            assert_eq!(read(tracepoint, cut), None, "{cut}");
        }
        assert_eq!(read(Tracepoint::SchedWaking, "comm=a name of sixteen pid=1 prio=2 target_cpu=3"), None);
    }
}
