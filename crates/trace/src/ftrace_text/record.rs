//! Lines that are no tracepoints: lost events, perf's task records, and Fairlab's own comment lines for what ftrace
//! text has no words for.
//!
//! Must not know: tracepoints and their fields.
//!
//! ```text
//! CPU:3 [LOST 123 EVENTS]                                              tracefs (also without the number)
//! CPU:3 [123 EVENTS DROPPED]                                           trace-cmd
//! ##### CPU 3 buffer started ####                                      tracefs: all that this CPU did before is lost
//! ls 123 [000] 1.5: PERF_RECORD_LOST lost 123                          perf script --show-lost-events
//! ls 123 [000] 1.5: PERF_RECORD_COMM exec: ls:123/124                  perf script --show-task-events
//! ls 123 [000] 1.5: PERF_RECORD_FORK(123:125):(123:124)                (process:thread):(its creator's)
//! ls 123 [000] 1.5: PERF_RECORD_EXIT(123:125):(123:124)                 (process:thread):(its creator's)
//! #!            ls-123     [000] 1.500000000: task_name: comm=ls pid=124 tgid=123
//! #!            ls-123     [000] 1.500000000: task_start: pid=125 tgid=123 parent_pid=124
//! #!            ls-123     [000] 1.500000000: task_exit: pid=125 tgid=123
//! #!         <...>-123     [000] 1.500000000: lost_events: count=123
//! ```

use fairlab_event::{Cpu, EventKind, Tracepoint};

use super::cursor::LineCursor;
use super::printed;

/// Begins a comment line that holds an event.
pub(super) const COMMENT: &[u8] = b"#!";

/// Reads the comment of tracefs's header that counts events, `# entries-in-buffer/entries-written: 205/548666   #P:2`: how
/// many had been overwritten when the trace was read.
pub(super) fn overwritten(comment: &[u8]) -> Option<u64> {
    let counts = std::str::from_utf8(comment).ok()?.strip_prefix("# entries-in-buffer/entries-written: ")?;
    let (held, written) = counts.split_whitespace().next()?.split_once('/')?;
    let (held, written) = (held.parse::<u64>().ok()?, written.parse::<u64>().ok()?);
    written.checked_sub(held).filter(|&lost| lost > 0)
}

/// How the names of perf's own records begin.
pub(super) const PERF_RECORD: &[u8] = b"PERF_RECORD_";

/// Reads tracefs's line before the first event of a CPU whose older events were overwritten.
pub(super) fn buffer_started(comment: &[u8]) -> Option<Cpu> {
    let number =
        comment.trim_ascii_end().strip_prefix(b"##### CPU ")?.strip_suffix(b" buffer started ####")?;
    std::str::from_utf8(number).ok()?.parse().ok().map(Cpu)
}

/// Reads tracefs's and trace-cmd's line about lost events: on which CPU, and how many.
pub(super) fn lost(mut cursor: LineCursor<'_>) -> Option<(Cpu, Option<u64>)> {
    cursor.blanks();
    cursor.literal(b"CPU:")?;
    let cpu = cursor.cpu()?;
    cursor.literal(b" [")?;
    let count = match cursor.literal(b"LOST ") {
        Some(()) => match cursor.unsigned() {
            Some(count) => {
                cursor.literal(b" EVENTS]")?;
                Some(count)
            }
            None => {
                cursor.literal(b"EVENTS]")?;
                None
            }
        },
        None => {
            let count = cursor.unsigned();
            if count.is_some() {
                cursor.byte(b' ')?;
            }
            cursor.literal(b"EVENTS DROPPED]")?;
            count
        }
    };
    cursor.end()?;
    Some((cpu, count))
}

/// Whether perf printed a record of its own: behind the name stands no colon, as behind an event's.
pub(super) fn is_perf_record(name: &[u8], mut cursor: LineCursor<'_>) -> bool {
    cursor.blanks();
    name.starts_with(PERF_RECORD) && cursor.rest().get(name.len()) != Some(&b':')
}

/// Reads what perf prints after the name of one of its own records. `None` for records that hold no event.
pub(super) fn perf_record(name: &[u8], mut cursor: LineCursor<'_>) -> Option<EventKind<'static>> {
    match name {
        b"PERF_RECORD_COMM" => {
            cursor.blanks();
            let _ = cursor.literal(b"exec: ");
            named_task(cursor)
        }
        b"PERF_RECORD_FORK" | b"PERF_RECORD_EXIT" => {
            let (tgid, pid) = process_and_thread(&mut cursor)?;
            cursor.byte(b':')?;
            let (_, parent_pid) = process_and_thread(&mut cursor)?;
            cursor.end()?;
            Some(match name {
                b"PERF_RECORD_FORK" => EventKind::TaskStart { pid, tgid, parent_pid },
                _ => EventKind::TaskExit { pid, tgid },
            })
        }
        b"PERF_RECORD_LOST" => {
            cursor.blanks();
            cursor.literal(b"lost ")?;
            Some(EventKind::Lost { count: Some(cursor.unsigned()?) })
        }
        _ => None,
    }
}

/// `name:pid/tid`.
fn named_task(cursor: LineCursor<'_>) -> Option<EventKind<'static>> {
    let (comm, (tgid, pid)) = cursor.comm_before(":", |mut cursor| {
        let tgid = cursor.pid()?;
        cursor.byte(b'/')?;
        let pid = cursor.pid()?;
        cursor.end()?;
        Some((tgid, pid))
    })?;
    Some(EventKind::TaskName { pid, tgid, comm })
}

/// `(pid:tid)`.
fn process_and_thread(cursor: &mut LineCursor<'_>) -> Option<(fairlab_event::Pid, fairlab_event::Pid)> {
    cursor.byte(b'(')?;
    let tgid = cursor.pid()?;
    cursor.byte(b':')?;
    let pid = cursor.pid()?;
    cursor.byte(b')')?;
    Some((tgid, pid))
}

/// Reads the fields of a comment line's event.
pub(super) fn comment(name: &[u8], mut cursor: LineCursor<'_>) -> Option<EventKind<'static>> {
    if name == EventKind::LOST.as_bytes() {
        let count = match cursor.literal(b"count=") {
            Some(()) => Some(cursor.unsigned()?),
            None => None,
        };
        cursor.end()?;
        return Some(EventKind::Lost { count });
    }
    let tracepoint = Tracepoint::by_name(name).filter(|tracepoint| !tracepoint.is_reported())?;
    printed::read(tracepoint, cursor, |kind| kind)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use fairlab_event::{Comm, Pid};

    use super::*;

    #[test]
    fn every_tool_says_lost_events_its_own_way() {
        let long_names = Cell::new(0);
        let read = |text: &'static str| lost(LineCursor::new(text.as_bytes(), &long_names));
        assert_eq!(read("CPU:3 [LOST 123 EVENTS]"), Some((Cpu(3), Some(123))));
        assert_eq!(read("CPU:12 [LOST EVENTS]"), Some((Cpu(12), None)));
        assert_eq!(read("CPU:3 [123 EVENTS DROPPED]"), Some((Cpu(3), Some(123))));
        assert_eq!(read("  CPU:3 [EVENTS DROPPED] "), Some((Cpu(3), None)));
        for text in ["CPU:3 [LOST -1 EVENTS]", "CPU:x [LOST EVENTS]", "CPU:3 [LOST 1 EVENTS", "CPU:3", ""] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    #[test]
    fn perf_prints_its_task_records() {
        let long_names = Cell::new(0);
        let read = |name: &str, text: &'static str| {
            perf_record(name.as_bytes(), LineCursor::new(text.as_bytes(), &long_names))
        };
        let named =
            |comm: &str| Some(EventKind::TaskName { pid: Pid(3), tgid: Pid(2), comm: Comm::from(comm) });
        assert_eq!(read("PERF_RECORD_COMM", " pool_workqueue_:2/3"), named("pool_workqueue_"));
        assert_eq!(read("PERF_RECORD_COMM", " exec: a:1/1 b:2/3"), named("a:1/1 b"));
        let start = EventKind::TaskStart { pid: Pid(125), tgid: Pid(123), parent_pid: Pid(124) };
        assert_eq!(read("PERF_RECORD_FORK", "(123:125):(123:124)"), Some(start));
        assert_eq!(read("PERF_RECORD_LOST", " lost 12"), Some(EventKind::Lost { count: Some(12) }));
        let exit = EventKind::TaskExit { pid: Pid(125), tgid: Pid(123) };
        assert_eq!(read("PERF_RECORD_EXIT", "(123:125):(123:124)"), Some(exit));
        assert_eq!(read("PERF_RECORD_MMAP", "(123:125):(123:124)"), None);
    }
}
