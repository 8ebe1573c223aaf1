//! The name of a line's event: where it stands, and where its text begins.
//!
//! Must not know: which events exist.

use super::cursor::LineCursor;

/// Who printed the text, as far as its head tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextPrinter {
    /// It does not tell.
    Unknown,
    /// tracefs: one blank stands between an event's name and its text.
    Tracefs,
    /// trace-cmd: names are padded, so that text begins in one column.
    TraceCmd,
}

/// The column, counted from the event's name, at which trace-cmd begins an event's text.
const TRACE_CMD_TEXT_COLUMN: usize = 22;

/// Finds the event's name behind a line's stamp. Text without a name (`trace_marker_raw`) has the empty name.
///
/// Returns it with the cursor at the event's text.
#[inline]
pub(super) fn name(mut cursor: LineCursor<'_>, printer: TextPrinter) -> (&[u8], LineCursor<'_>) {
    cursor.blanks();
    let start = cursor;
    let mut name = cursor.identifier();
    // trace-cmd --ts-diff and perf's period stand between stamp and name.
    if name.is_empty() && cursor.peek() == b'('
        || cursor.peek() == b' ' && name.iter().all(u8::is_ascii_digit)
    {
        let mut ahead = cursor;
        if skip_number(&mut ahead, name.is_empty()).is_some() {
            cursor = ahead;
            name = cursor.identifier();
        }
    }
    if name.is_empty() {
        return (name, start);
    }
    let mut after = cursor;
    if after.byte(b':').is_none() {
        return without_colon(name, start, cursor);
    }
    // perf prints the subsystem too.
    let mut of_subsystem = after;
    let second = of_subsystem.identifier();
    if !second.is_empty() && of_subsystem.byte(b':').is_some() && matches!(of_subsystem.peek(), b' ' | 0) {
        (name, after) = (second, of_subsystem);
    } else if !matches!(after.peek(), b' ' | 0) {
        return (b"", start);
    }
    text_column(&mut after, name.len(), printer);
    (name, after)
}

/// Passes `(+7)` or the blanks behind a bare number, and the blanks that follow.
fn skip_number(cursor: &mut LineCursor<'_>, bracketed: bool) -> Option<()> {
    if bracketed {
        cursor.literal(b"(+")?;
        while cursor.peek().is_ascii_digit() || cursor.peek() == b'.' {
            cursor.skip(1);
        }
        cursor.byte(b')')?;
    }
    cursor.byte(b' ')?;
    cursor.blanks();
    Some(())
}

/// Passes what stands between an event's name and its text: one blank, or trace-cmd's padding.
#[inline]
fn text_column(cursor: &mut LineCursor<'_>, name_length: usize, printer: TextPrinter) {
    if printer != TextPrinter::Tracefs {
        let mut padded = *cursor;
        padded.blanks();
        let padding = padded.passed() - cursor.passed();
        if padding > 1 && name_length + 1 + padding == TRACE_CMD_TEXT_COLUMN {
            *cursor = padded;
            return;
        }
    }
    let _ = cursor.byte(b' ');
}

/// Text that is not `name: fields`: system calls (`sys_close(fd: 3)`, `sys_close -> 0x0`), perf's records
/// (`PERF_RECORD_FORK(…`, `PERF_RECORD_LOST lost 3`) and the function tracer (`vfs_read <-ksys_read`).
fn without_colon<'l>(
    name: &'l [u8],
    start: LineCursor<'l>,
    mut after: LineCursor<'l>,
) -> (&'l [u8], LineCursor<'l>) {
    let rest = after.rest();
    if rest.starts_with(b" <-") {
        return (b"function", start);
    }
    if rest.starts_with(b"(") || name.starts_with(b"PERF_RECORD_") {
        return (name, after);
    }
    if rest.starts_with(b" -> ") {
        after.skip(1);
        return (name, after);
    }
    (b"", start)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[track_caller]
    fn check(printer: TextPrinter, line: &str, expected: (&str, &str)) {
        let long_names = Cell::new(0);
        let (name, cursor) = name(LineCursor::new(line.as_bytes(), &long_names), printer);
        assert_eq!((name, cursor.rest()), (expected.0.as_bytes(), expected.1.as_bytes()), "{line:?}");
    }

    #[test]
    fn names_stand_behind_what_tools_put_before_them() {
        for printer in [TextPrinter::Unknown, TextPrinter::Tracefs, TextPrinter::TraceCmd] {
            check(printer, " cpu_idle: state=1", ("cpu_idle", "state=1"));
            check(printer, "      sched:sched_switch: a", ("sched_switch", "a"));
            check(printer, "          1       sched:sched_switch: a", ("sched_switch", "a"));
            check(printer, " (+23)    cpu_idle: state=1", ("cpu_idle", "state=1"));
            check(printer, "          cpu_idle: state=1", ("cpu_idle", "state=1"));
            check(printer, " cpu_idle:", ("cpu_idle", ""));
            check(printer, " 123: a", ("123", "a"));
            check(printer, " sys_close(fd: 3)", ("sys_close", "(fd: 3)"));
            check(printer, " sys_close -> 0x0", ("sys_close", "-> 0x0"));
            check(printer, " vfs_read <-ksys_read", ("function", "vfs_read <-ksys_read"));
            check(printer, " PERF_RECORD_FORK(1:1):(0:0)", ("PERF_RECORD_FORK", "(1:1):(0:0)"));
            check(printer, " two words: a", ("", "two words: a"));
            check(printer, " a:b", ("", "a:b"));
            check(printer, " <stack trace>", ("", "<stack trace>"));
            check(printer, " (+x) a: b", ("", "(+x) a: b"));
            check(printer, "", ("", ""));
        }
    }

    #[test]
    fn padding_is_no_text_unless_tracefs_wrote_it() {
        let line = " print:                hello";
        check(TextPrinter::TraceCmd, line, ("print", "hello"));
        check(TextPrinter::Unknown, line, ("print", "hello"));
        check(TextPrinter::Tracefs, line, ("print", "               hello"));
        check(TextPrinter::TraceCmd, " print:   hello", ("print", "  hello"));
    }
}
