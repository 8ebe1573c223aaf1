//! The form in which libtraceevent's sched plugin prints switches and wakeups, for `trace-cmd report` and newer
//! `perf script`: `bash:15487 [120] S ==> swapper/0:0 [120]`, `bash:15488 [120] CPU:001`.
//!
//! Must not know: the kernel's own form.
//!
//! Blanks at a name's beginning cannot be distinguished from the padding before it and are dropped.
//!
//! Departs from the kernel's truth, and the text does not tell: the plugin prints `R` for `R+`, and plugins before
//! libtraceevent 1.8 print other letters for the states behind `t` (`X` for a zombie, `Z` for dead, `W` for idle).

use fairlab_event::{Comm, Pid, Prio, Switch, TaskState, Wakeup};

use super::cursor::LineCursor;
use super::printed::success;

const ARROW: &[u8] = b" ==> ";

/// Reads `comm:pid [prio] state ==> comm:pid [prio]`. A name may hold an arrow too: the first arrow counts on whose
/// both sides a task with a name of possible length stands.
pub(super) fn switch(cursor: LineCursor<'_>) -> Option<Switch> {
    let text = cursor.rest().trim_ascii();
    switch_before(text, task).or_else(|| switch_before(text, task_before_words))
}

fn switch_before(text: &[u8], next_task: impl Fn(&[u8]) -> Option<PluginTask>) -> Option<Switch> {
    memchr::memmem::find_iter(text, ARROW).find_map(|arrow| {
        let before = &text[..arrow];
        let blank = memchr::memrchr(b' ', before)?;
        let prev_state = TaskState::parse(&before[blank + 1..])?;
        let prev = task(&before[..blank])?;
        let next = next_task(&text[arrow + ARROW.len()..])?;
        Some(Switch {
            prev_comm: prev.comm,
            prev_pid: prev.pid,
            prev_prio: prev.prio,
            prev_state,
            next_comm: next.comm,
            next_pid: next.pid,
            next_prio: next.prio,
        })
    })
}

/// Reads `comm:pid [prio]`, behind which words may stand: `trace-cmd report -w` says ` Latency: 798.000 usecs` there.
fn task_before_words(text: &[u8]) -> Option<PluginTask> {
    memchr::memmem::find_iter(text, b"] ").find_map(|end| task(&text[..=end]))
}

/// Reads `comm:pid [prio] CPU:001`, with or without `success=1` or a note of its absence between.
pub(super) fn wakeup(cursor: LineCursor<'_>) -> Option<Wakeup> {
    let text = cursor.rest();
    let bracket = memchr::memrchr(b']', text)?;
    let task = task(&text[..=bracket])?;
    let mut after = cursor;
    after.skip(bracket + 1);
    success(&mut after)?;
    after.literal(b" CPU:")?;
    let target_cpu = after.cpu()?;
    after.end()?;
    Some(Wakeup { comm: task.comm, pid: task.pid, prio: task.prio, target_cpu })
}

pub(super) struct PluginTask {
    pub(super) comm: Comm,
    pub(super) pid: Pid,
    pub(super) prio: Prio,
}

/// Reads `comm:pid [prio]` from its end.
pub(super) fn task(text: &[u8]) -> Option<PluginTask> {
    let (text, prio) = split_at_last(text.strip_suffix(b"]")?, b'[')?;
    let (comm, pid) = split_at_last(text.strip_suffix(b" ")?, b':')?;
    if comm.len() >= Comm::LEN {
        return None;
    }
    Some(PluginTask { comm: Comm::new(comm), pid: Pid(number(pid)?), prio: Prio(number(prio)?) })
}

fn split_at_last(text: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr::memrchr(byte, text)?;
    Some((&text[..at], &text[at + 1..]))
}

fn number(digits: &[u8]) -> Option<i32> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn read_switch(text: &str) -> Option<(String, i32, String, String, i32)> {
        let long_names = Cell::new(0);
        let read = switch(LineCursor::new(text.as_bytes(), &long_names))?;
        let (prev, next) = (read.prev_comm.to_string(), read.next_comm.to_string());
        Some((prev, read.prev_pid.0, read.prev_state.to_string(), next, read.next_pid.0))
    }

    #[test]
    fn arrows_and_colons_in_names_are_no_landmarks() {
        for (prev, next) in [
            ("bash", "swapper/0"),
            ("a:1 [1] S ==> b", "c"),
            ("c", "a:1 [1] S ==> b"),
            ("==> ", ":"),
            ("", ""),
        ] {
            let text = format!("{prev}:15487 [120] R ==> {next}:16 [-1]");
            let expected = (prev.to_string(), 15487, "R".to_string(), next.to_string(), 16);
            assert_eq!(read_switch(&text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_cut_or_wrong_is_nothing() {
        for text in [
            "",
            " ==> ",
            "bash:15487 [120] S ==> swapper/0:0 [120",
            "bash:15487 [120] ==> swapper/0:0 [120]",
            "bash:15487 [120] Q ==> swapper/0:0 [120]",
            "bash 15487 [120] S ==> swapper/0:0 [120]",
            "a name of sixteen:1 [120] S ==> swapper/0:0 [120]",
        ] {
            assert_eq!(read_switch(text), None, "{text}");
        }
        let long_names = Cell::new(0);
        for text in [
            "",
            "]",
            "bash:1 [120] CPU:",
            "bash:1 120] CPU:001",
            "bash:1 [120] CPU:001x",
            "bash [120] CPU:001",
        ] {
            assert!(wakeup(LineCursor::new(text.as_bytes(), &long_names)).is_none(), "{text}");
        }
    }
}
