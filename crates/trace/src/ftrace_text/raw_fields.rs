//! The form in which `trace-cmd report -R` prints the scheduler's events: each field as it lies in the record, under its
//! name, in the record's order: ` prev_comm=bash prev_pid=7 prev_prio=120 prev_state=0x1 next_comm=…`.
//!
//! Numbers are decimal, or hexadecimal behind `0x`; a name with unprintable bytes is `ARRAY[62, 07, 00]`. Fields that a
//! kernel has between those that are known are passed over.
//!
//! Must not know: the kernel's own form.

use fairlab_event::{Comm, Cpu, EventKind, Ns, Pid, Prio, StatDelay, Switch, TaskState, Wakeup};

use super::body::Tracepoint;
use super::cursor::Cursor;
use crate::tracepoint::state_table::StateTable;

/// Reads the fields of `tracepoint`; `None` when they are not all there.
pub(super) fn event(tracepoint: Tracepoint, cursor: Cursor<'_>) -> Option<EventKind<'static>> {
    let text = cursor.rest();
    Some(match tracepoint {
        Tracepoint::Switch => EventKind::SchedSwitch(switch(text)?),
        Tracepoint::Waking => EventKind::SchedWaking(wakeup(text)?),
        Tracepoint::Wakeup => EventKind::SchedWakeup(wakeup(text)?),
        Tracepoint::WakeupNew => EventKind::SchedWakeupNew(wakeup(text)?),
        Tracepoint::MigrateTask => {
            let [comm, pid, prio, orig, dest] =
                fields(text, ["comm=", " pid=", " prio=", " orig_cpu=", " dest_cpu="])?;
            let (orig_cpu, dest_cpu) = (cpu(orig)?, cpu(dest)?);
            EventKind::SchedMigrateTask {
                comm: name(comm)?,
                pid: id(pid)?,
                prio: rank(prio)?,
                orig_cpu,
                dest_cpu,
            }
        }
        Tracepoint::Fork => {
            let [comm, pid, child_comm, child_pid] =
                fields(text, ["parent_comm=", " parent_pid=", " child_comm=", " child_pid="])?;
            let (child_comm, child_pid) = (name(child_comm)?, id(child_pid)?);
            EventKind::SchedProcessFork { comm: name(comm)?, pid: id(pid)?, child_comm, child_pid }
        }
        Tracepoint::Exit => {
            let [comm, pid, prio] = fields(text, ["comm=", " pid=", " prio="])?;
            let group_dead = match fields(prio, ["", " group_dead="]) {
                Some([_, dead]) => Some(number(dead)? != 0),
                None if memchr::memmem::find(prio, b"group_dead=").is_some() => return None,
                None => None,
            };
            EventKind::SchedProcessExit {
                comm: name(comm)?,
                pid: id(pid)?,
                prio: rank(first_word(prio))?,
                group_dead,
            }
        }
        Tracepoint::StatWait => EventKind::SchedStatWait(delay(text)?),
        Tracepoint::StatSleep => EventKind::SchedStatSleep(delay(text)?),
        Tracepoint::StatBlocked => EventKind::SchedStatBlocked(delay(text)?),
        Tracepoint::StatIowait => EventKind::SchedStatIowait(delay(text)?),
        Tracepoint::StatRuntime => {
            let [comm, pid, runtime] = fields(text, ["comm=", " pid=", " runtime="])?;
            let vruntime = match fields(runtime, ["", " vruntime="]) {
                Some([_, vruntime]) => Some(number(vruntime)? as u64),
                None if memchr::memmem::find(runtime, b"vruntime=").is_some() => return None,
                None => None,
            };
            let runtime = Ns(u64::try_from(number(first_word(runtime))?).ok()?);
            EventKind::SchedStatRuntime { comm: name(comm)?, pid: id(pid)?, runtime, vruntime }
        }
        Tracepoint::Place => return None,
    })
}

/// What stands before the fields of `sched_switch`.
const SWITCH: [&str; 7] =
    ["prev_comm=", " prev_pid=", " prev_prio=", " prev_state=", " next_comm=", " next_pid=", " next_prio="];

fn switch(text: &[u8]) -> Option<Switch> {
    let [prev_comm, prev_pid, prev_prio, prev_state, next_comm, next_pid, next_prio] = fields(text, SWITCH)?;
    Some(Switch {
        prev_comm: name(prev_comm)?,
        prev_pid: id(prev_pid)?,
        prev_prio: rank(prev_prio)?,
        prev_state: state(prev_state)?,
        next_comm: name(next_comm)?,
        next_pid: id(next_pid)?,
        next_prio: rank(next_prio)?,
    })
}

fn wakeup(text: &[u8]) -> Option<Wakeup> {
    let [comm, pid, prio, target] = fields(text, ["comm=", " pid=", " prio=", " target_cpu="])?;
    // What did not wake anybody is no wakeup.
    if let Some([_, success]) = fields(prio, ["", " success="])
        && number(success)? == 0
    {
        return None;
    }
    let (prio, target_cpu) = (rank(first_word(prio))?, cpu(target)?);
    Some(Wakeup { comm: name(comm)?, pid: id(pid)?, prio, target_cpu })
}

fn delay(text: &[u8]) -> Option<StatDelay> {
    let [comm, pid, delay] = fields(text, ["comm=", " pid=", " delay="])?;
    Some(StatDelay { comm: name(comm)?, pid: id(pid)?, delay: Ns(u64::try_from(number(delay)?).ok()?) })
}

/// The texts behind `landmarks`, which stand in this order. Behind each text that is no name stands a number; a name ends
/// where a number follows its landmark.
fn fields<'t, const N: usize>(text: &'t [u8], landmarks: [&str; N]) -> Option<[&'t [u8]; N]> {
    let mut found = [&b""[..]; N];
    let mut rest = text.trim_ascii_start().strip_prefix(landmarks.first()?.as_bytes())?;
    for (place, landmark) in landmarks.iter().enumerate().skip(1) {
        let landmark = landmark.as_bytes();
        let end = memchr::memmem::find_iter(rest, landmark).find(|at| {
            landmark.ends_with(b"comm=") || number(first_word(&rest[at + landmark.len()..])).is_some()
        })?;
        (found[place - 1], rest) = (&rest[..end], &rest[end + landmark.len()..]);
    }
    // `[ns]` is the kernel's own form, whole or cut.
    let words = &rest[first_word(rest).len()..];
    found[N - 1] = rest;
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

fn id(text: &[u8]) -> Option<Pid> {
    number_of_32(text).map(Pid)
}

fn rank(text: &[u8]) -> Option<Prio> {
    number_of_32(text).map(Prio)
}

fn cpu(text: &[u8]) -> Option<Cpu> {
    u32::try_from(number(text)?).ok().map(Cpu)
}

/// As the kernels in use mean the number, or, where it is none of theirs, as older ones did.
fn state(text: &[u8]) -> Option<TaskState> {
    let number = number(text)? as u64;
    if number > TODAY_MAX { StateTable::before_4_14() } else { StateTable::in_use() }.state(number)
}

/// The largest number that kernels from v4.14 on print.
const TODAY_MAX: u64 = 0x1ff;

/// Which kernel's numbers states are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Numbers {
    /// Not known.
    #[default]
    Unknown,
    /// Of a kernel before v4.14.
    Old,
    /// Of v4.14 or later.
    Today,
}

impl Numbers {
    /// Those of a release.
    pub(super) fn of(release: &str) -> Numbers {
        let mut parts = release.split(|char: char| !char.is_ascii_digit()).map(str::parse::<u32>);
        match (parts.next(), parts.next()) {
            (Some(Ok(major)), Some(Ok(minor))) if (major, minor) < (4, 14) => Numbers::Old,
            (Some(Ok(_)), Some(Ok(_))) => Numbers::Today,
            _ => Numbers::Unknown,
        }
    }

    /// The state in a switch's fields if it is a number, and whether it is doubtful since the kernel is not known.
    pub(super) fn state(&mut self, text: &[u8]) -> Option<(TaskState, bool)> {
        let [_, _, _, printed, ..] = fields(text, SWITCH)?;
        let number = number(printed)? as u64;
        if number > TODAY_MAX {
            *self = Numbers::Old;
        }
        let (today, old) = (StateTable::in_use().state(number), StateTable::before_4_14().state(number));
        match self {
            Numbers::Old => Some((old?, false)),
            Numbers::Today => Some((today?, false)),
            Numbers::Unknown => Some((today?, today != old)),
        }
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
        event(tracepoint, Cursor::new(text.as_bytes(), &long_names)).map(|kind| format!("{kind:?}"))
    }

    #[test]
    fn switches_have_states_as_numbers() {
        for (number, letter) in
            [("0", "R"), ("1", "S"), ("0x1", "S"), ("2", "D"), ("0x100", "R+"), ("128", "I")]
        {
            let text = format!(
                " prev_comm=a b prev_pid=7 prev_prio=120 prev_state={number} next_comm=c next_pid=-1 next_prio=0x62"
            );
            let read = read(Tracepoint::Switch, &text).expect("a switch");
            assert!(
                read.contains("\"a b\"") && read.contains("Pid(-1)") && read.contains("Prio(98)"),
                "{read}"
            );
            assert!(read.contains(&format!("prev_state: {letter}")), "{number}: {read}");
        }
    }

    #[test]
    fn numbers_mean_what_the_kernel_says() {
        let read = |numbers: &mut Numbers, number: &str| {
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
            ("4.9", "S", None),
        ] {
            assert_eq!(read(&mut Numbers::of(release), number), expected, "{release} {number}");
        }
        // A number that only old kernels have tells of those that follow.
        let mut numbers = Numbers::Unknown;
        assert_eq!(read(&mut numbers, "4096"), told("R+", false));
        assert_eq!(read(&mut numbers, "16"), told("Z", false));
    }

    #[test]
    fn names_may_be_arrays_and_hold_landmarks() {
        let wakeup = "comm=ARRAY[61, 07, 00, 31] pid=7 prio=120 success=1 target_cpu=0x3";
        assert!(read(Tracepoint::Wakeup, wakeup).expect("a wakeup").contains("a\\u{7}"));
        let wakeup = "comm=x pid=y pid=7 prio=120 target_cpu=3";
        assert!(read(Tracepoint::Waking, wakeup).expect("a wakeup").contains("\"x pid=y\""));
        assert_eq!(read(Tracepoint::Wakeup, "comm=a pid=7 prio=120 success=0 target_cpu=3"), None);
    }

    #[test]
    fn every_tracepoint_has_its_fields() {
        for (tracepoint, text) in [
            (Tracepoint::MigrateTask, "comm=a pid=1 prio=120 orig_cpu=1 dest_cpu=2"),
            (Tracepoint::Fork, "parent_comm=a parent_pid=1 child_comm=b child_pid=2"),
            (Tracepoint::Exit, "comm=a pid=1 prio=120"),
            (Tracepoint::Exit, "comm=a pid=1 prio=120 group_dead=1"),
            (Tracepoint::StatWait, "comm=a pid=1 delay=5"),
            (Tracepoint::StatRuntime, "comm=a pid=1 runtime=5"),
            (Tracepoint::StatRuntime, "comm=a pid=1 runtime=5 vruntime=18446744073709551615"),
        ] {
            assert!(read(tracepoint, text).is_some(), "{text}");
            let cut = &text[..text.rfind('=').expect("a field") + 1];
            assert_eq!(read(tracepoint, cut), None, "{cut}");
        }
        assert_eq!(read(Tracepoint::Waking, "comm=a name of sixteen pid=1 prio=2 target_cpu=3"), None);
    }
}
