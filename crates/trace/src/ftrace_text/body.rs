//! What stands behind a line's time stamp: the event's name and its fields, as the kernel prints them.
//!
//! Must not know: which task and CPU reported the event, nor when.
//!
//! A task's name stands unquoted among the fields and may hold blanks, `=` and whole landmarks. Fields are therefore
//! read strictly from left to right, each candidate for a name's end being tried until everything after it reads as the
//! kernel prints it (see [`LineCursor::comm_before`]). What cannot be read strictly is tried in the forms of old kernels, of
//! the plugins of trace-cmd and perf and of `trace-cmd report -R`, then leniently (longer names, unknown words behind the
//! known fields).

use fairlab_event::{Comm, EventKind, Pid, Tracepoint};

use super::cursor::LineCursor;
use super::{early, plugin, printed, raw_fields};

/// An event's text, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineBody<'l> {
    /// A known event without text of any length.
    Known(EventKind<'static>),
    /// `sched_process_exec`, whose path is text.
    Exec {
        /// The program's path.
        filename: &'l [u8],
        /// The task.
        pid: Pid,
        /// Its id before.
        old_pid: Pid,
    },
    /// Text from user space or `trace_printk`.
    Marker(&'l [u8]),
    /// A dynamic probe: name and fields.
    Kprobe(&'l [u8], &'l [u8]),
    /// Any other event: name and fields.
    Other(&'l [u8], &'l [u8]),
    /// A known event whose fields could not be read: name and fields.
    Malformed(&'l [u8], &'l [u8]),
}

impl<'l> LineBody<'l> {
    /// The event's name.
    pub(super) fn name(&self) -> &'l [u8] {
        match self {
            LineBody::Known(kind) => kind.name().as_bytes(),
            LineBody::Exec { .. } => Tracepoint::SchedProcessExec.name().as_bytes(),
            LineBody::Marker(_) => b"print",
            LineBody::Kprobe(name, _) | LineBody::Other(name, _) | LineBody::Malformed(name, _) => name,
        }
    }
}

/// Reads the fields of `tracepoint` in the form of libtraceevent's plugin, which has one for switches and wakeups.
fn plugin_form(tracepoint: Tracepoint, mut cursor: LineCursor<'_>) -> Option<EventKind<'static>> {
    cursor.blanks();
    match tracepoint {
        Tracepoint::SchedSwitch => plugin::switch(cursor).map(EventKind::SchedSwitch),
        Tracepoint::SchedWaking => plugin::wakeup(cursor).map(EventKind::SchedWaking),
        Tracepoint::SchedWakeup => plugin::wakeup(cursor).map(EventKind::SchedWakeup),
        Tracepoint::SchedWakeupNew => plugin::wakeup(cursor).map(EventKind::SchedWakeupNew),
        _ => None,
    }
}

/// Reads the fields of `tracepoint` in any form. Of a line that is not whole, nothing is read leniently: a number at its
/// end may be the beginning of a larger one.
#[inline(never)]
fn any_form(
    tracepoint: Tracepoint,
    cursor: LineCursor<'_>,
    reporter: Comm,
    whole: bool,
) -> Option<EventKind<'static>> {
    let strictly = printed::read(tracepoint, cursor, |kind| kind)
        .or_else(|| early::event(tracepoint, cursor, reporter))
        .or_else(|| plugin_form(tracepoint, cursor));
    if strictly.is_some() || !whole {
        return strictly;
    }
    raw_fields::event(tracepoint, cursor).or_else(|| printed::read(tracepoint, cursor.lenient(), |kind| kind))
}

/// Whether a wakeup's fields say that it woke nobody, which kernels before v4.3 report too.
fn woke_nobody(tracepoint: Tracepoint, fields: &[u8]) -> bool {
    matches!(tracepoint, Tracepoint::SchedWaking | Tracepoint::SchedWakeup | Tracepoint::SchedWakeupNew)
        && memchr::memmem::find(fields, b" success=0 ").is_some()
}

/// Takes apart the name and the fields behind it, which the task called `reporter` reported, of a line that is whole or one
/// that the end of the file cut off. A wakeup that woke nobody is no wakeup.
pub(super) fn body<'l>(name: &'l [u8], cursor: LineCursor<'l>, reporter: Comm, whole: bool) -> LineBody<'l> {
    let fields = cursor.rest();
    let Some(tracepoint) = printed::tracepoint(name) else { return text(name, fields, cursor) };
    match any_form(tracepoint, cursor, reporter, whole) {
        Some(kind) => LineBody::Known(kind),
        None if woke_nobody(tracepoint, fields) => LineBody::Other(name, fields),
        None => LineBody::Malformed(name, fields),
    }
}

/// Events that carry text of any length, and those without a type.
fn text<'l>(name: &'l [u8], fields: &'l [u8], cursor: LineCursor<'l>) -> LineBody<'l> {
    if name == Tracepoint::SchedProcessExec.name().as_bytes() {
        return exec(cursor).or_else(|| exec(cursor.lenient())).unwrap_or(LineBody::Malformed(name, fields));
    }
    match name {
        b"tracing_mark_write" | b"bprint" | b"bputs" => LineBody::Marker(fields),
        // trace-cmd and perf print the place of the write first, which for user space is always the same function.
        b"print" => LineBody::Marker(fields.strip_prefix(b"tracing_mark_write: ").unwrap_or(fields)),
        _ if is_probe(fields) => LineBody::Kprobe(name, fields),
        _ => LineBody::Other(name, fields),
    }
}

/// `sched_process_exec`. A path has no limit, so the last landmark is taken: no path can stand behind it.
fn exec(mut cursor: LineCursor<'_>) -> Option<LineBody<'_>> {
    cursor.blanks();
    cursor.literal(b"filename=")?;
    let path = cursor.rest();
    let length = memchr::memmem::rfind(path, b" pid=")?;
    cursor.skip(length + b" pid=".len());
    let pid = cursor.pid()?;
    cursor.literal(b" old_pid=")?;
    let old_pid = cursor.pid()?;
    cursor.end()?;
    Some(LineBody::Exec { filename: &path[..length], pid, old_pid })
}

/// Whether `fields` begin with the place of a dynamic probe: `(symbol+0x4/0x110)`, `(caller+0x4/0x20 <- function)`,
/// `(0x55d0c0de)`, or perf's bare address.
pub(super) fn is_probe(fields: &[u8]) -> bool {
    let Some(inside) = fields.strip_prefix(b"(") else { return false };
    let Some(end) = memchr::memchr(b')', inside) else { return false };
    let place = &inside[..end];
    let address = place.strip_prefix(b"0x").unwrap_or(place);
    memchr::memmem::find(place, b"+0x").is_some()
        || memchr::memmem::find(place, b" <- ").is_some()
        || (address.len() >= 4 && address.iter().all(u8::is_ascii_hexdigit))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use fairlab_event::{Comm, Ns, StatDelay};

    use super::*;

    fn read(name: &str, fields: &str) -> String {
        let long_names = Cell::new(0);
        match body(name.as_bytes(), LineCursor::new(fields.as_bytes(), &long_names), Comm::default(), true) {
            LineBody::Known(kind) => format!("{kind:?}"),
            LineBody::Exec { filename, pid, old_pid } => {
                format!("{} {pid} {old_pid}", String::from_utf8_lossy(filename))
            }
            other => format!("{other:?}").split('(').next().unwrap_or_default().to_string(),
        }
    }

    fn comm(name: &str) -> Comm {
        Comm::from(name)
    }

    #[test]
    fn fields_that_came_and_went_are_optional() {
        let runtime = |vruntime| {
            let runtime = Ns(13884);
            format!("{:?}", EventKind::SchedStatRuntime { comm: comm("a"), pid: Pid(7), runtime, vruntime })
        };
        assert_eq!(read("sched_stat_runtime", "comm=a pid=7 runtime=13884 [ns]"), runtime(None));
        let with_vruntime = "comm=a pid=7 runtime=13884 [ns] vruntime=4242577168 [ns]";
        assert_eq!(read("sched_stat_runtime", with_vruntime), runtime(Some(4_242_577_168)));
        for (fields, group_dead) in [
            ("comm=a pid=7 prio=120", None),
            ("comm=a pid=7 prio=120 group_dead=true", Some(true)),
            ("comm=a pid=7 prio=120 group_dead=false", Some(false)),
        ] {
            let prio = fairlab_event::Prio(120);
            let exit = EventKind::SchedProcessExit { comm: comm("a"), pid: Pid(7), prio, group_dead };
            assert_eq!(read("sched_process_exit", fields), format!("{exit:?}"), "{fields}");
        }
        let place = "comm= pid=0 sev=1 sed=2 sel=-3 avg=4 min=5 cpu=6 nr=7";
        assert_eq!(read("sched_place", place), read("sched_place", &format!("{place} weight=1024")));
        assert_eq!(read("sched_place", place), read("sched_place", &format!("{place} new=1")));
    }

    #[test]
    fn names_may_hold_their_own_landmarks() {
        let fork = |fields| read("sched_process_fork", fields);
        let expected = EventKind::SchedProcessFork {
            comm: comm(" pid=1 child_co"),
            pid: Pid(2),
            child_comm: comm(" child_pid=3"),
            child_pid: Pid(4),
        };
        let fields = "comm= pid=1 child_co pid=2 child_comm= child_pid=3 child_pid=4";
        assert_eq!(fork(fields), format!("{expected:?}"));
        let wait = StatDelay { comm: comm(" pid=1 delay=2"), pid: Pid(3), delay: Ns(4) };
        let expected = format!("{:?}", EventKind::SchedStatWait(wait));
        assert_eq!(read("sched_stat_wait", "comm= pid=1 delay=2 pid=3 delay=4 [ns]"), expected);
        assert_eq!(
            read("sched_process_exec", "filename=/a pid=1 old_pid=2 pid=3 old_pid=4"),
            "/a pid=1 old_pid=2 3 4"
        );
    }

    #[test]
    fn what_is_cut_or_wrong_is_malformed() {
        for (name, fields) in [
            ("sched_switch", ""),
            (
                "sched_switch",
                "prev_comm=a prev_pid=1 prev_prio=120 prev_state=Q ==> next_comm=b next_pid=2 next_prio=120",
            ),
            (
                "sched_switch",
                "prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=",
            ),
            ("sched_wakeup", "comm=a pid=1 prio=120 target_cpu=-1"),
            ("sched_wakeup", "comm=a pid=1 prio=120 target_cpu=001x"),
            ("sched_stat_wait", "comm=a pid=1 delay=5 [n"),
            ("sched_process_exit", "comm=a pid=1 prio=120 group_dead=maybe"),
            ("sched_process_exec", "filename=/a pid=3"),
            ("sched_place", "comm=a pid=1 sev=-1 sed=2 sel=-3 avg=4 min=5 cpu=6 nr=7"),
        ] {
            assert_eq!(read(name, fields), "Malformed", "{name}: {fields}");
        }
    }

    #[test]
    fn probes_are_told_by_their_place() {
        for fields in
            ["(a+0x0/0x10)", "(a+0x0/0x10) b=1", "(a <- b) ret=1", "(0x55d0c0de)", "(ffffffff8107064e) x"]
        {
            assert!(is_probe(fields.as_bytes()), "{fields}");
        }
        for fields in ["", "(", "()", "(a)", "(pid: 0, len: 8)", "(abc)", "a (b+0x1/0x2)", "(a+0x1"] {
            assert!(!is_probe(fields.as_bytes()), "{fields}");
        }
    }
}
