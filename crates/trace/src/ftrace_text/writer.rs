//! Events to text in the form of tracefs, with nanosecond stamps and the kernel's own fields.
//!
//! Must not know: how text is read; the tests know that both agree.

use std::cell::Cell;
use std::io::{self, Write};

use fairlab_event::{
    Comm, Context, Cpu, Event, EventKind, FieldForm, FieldSink, Ns, Pid, Sink, System, TextFields,
    TracepointField, TracepointValue,
};

use super::body::{LineBody, body};
use super::cursor::LineCursor;
use super::machine;
use super::prefix::is_flag;
use super::record;
use crate::losses::{EventLosses, LossKind, WriterLosses};

/// How text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextWriteOptions {
    /// Whether there is a column for thread groups, as tracefs prints with `options/record-tgid`. On by default.
    pub tgid: bool,
}

impl Default for TextWriteOptions {
    fn default() -> TextWriteOptions {
        TextWriteOptions { tgid: true }
    }
}

/// Writes events as tracefs prints them, with nanosecond stamps.
///
/// Errors of `W` are kept and returned by [`finish`](FtraceTextWriter::finish); after the first one nothing more is
/// written. What is still buffered is lost without `finish`.
///
/// What [`read`](super::read) gets back is what was written, with these exceptions, which
/// [`losses`](FtraceTextWriter::losses) counts:
/// * line feeds in names and texts become `?`, and so does a carriage return at a text's end;
/// * a context's name loses leading blanks (tracefs pads with blanks), and a task called `<...>` its name;
/// * flags lose what is no visible character, a colon, and a digit in front: these become dots;
/// * thread groups are dropped when the file has no column for them ([`TextWriteOptions::tgid`]);
/// * an event without a type whose name is that of one with a type, or a probe without its place in brackets, is read
///   as what it looks like.
///
/// Flags that are not known ([`Flags::NONE`](fairlab_event::Flags::NONE)) are left out, as old `trace-cmd report` does.
/// Ids below zero stand as the unsigned numbers that their bits make.
///
/// ftrace text has no lines for a recorder's own knowledge of tasks. [`EventKind::TaskName`], [`EventKind::TaskStart`],
/// [`EventKind::TaskExit`], and lost events whose time or context is not that of the line before, are written as
/// comments: `#!` and a line like any other, called `task_name`, `task_start`, `task_exit` or `lost_events`. Other tools
/// pass over them, `read` takes them back. What is known of kernel and machine stands in comments as in those of
/// `perf script --header`.
#[derive(Debug)]
pub struct FtraceTextWriter<W: Write> {
    output: W,
    options: TextWriteOptions,
    buffer: Vec<u8>,
    /// The time that a reader will give to lost events here.
    last_time: Ns,
    losses: WriterLosses,
    error: Option<io::Error>,
}

const BUFFER_BYTES: usize = 1 << 16;

impl<W: Write> FtraceTextWriter<W> {
    /// A writer with the default options. Nothing need be buffered by `output`.
    pub fn new(output: W) -> FtraceTextWriter<W> {
        FtraceTextWriter::with_options(output, TextWriteOptions::default())
    }

    /// A writer with options.
    pub fn with_options(output: W, options: TextWriteOptions) -> FtraceTextWriter<W> {
        let header = if options.tgid { HEADER_WITH_TGID } else { HEADER };
        let mut buffer = Vec::with_capacity(BUFFER_BYTES + BUFFER_BYTES / 4);
        buffer.extend_from_slice(header.as_bytes());
        FtraceTextWriter {
            output,
            options,
            buffer,
            last_time: Ns::ZERO,
            losses: WriterLosses::default(),
            error: None,
        }
    }

    /// Which events so far will not be read back exactly as they were given.
    pub fn losses(&self) -> &WriterLosses {
        &self.losses
    }

    /// Writes what is buffered and gives the output back.
    ///
    /// # Errors
    /// The first error that `W` returned since the beginning.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush();
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.output),
        }
    }

    fn flush(&mut self) {
        if self.error.is_none() {
            let written = self.output.write_all(&self.buffer).and_then(|()| self.output.flush());
            self.error = written.err();
        }
        self.buffer.clear();
    }
}

impl<W: Write> Sink for FtraceTextWriter<W> {
    fn event(&mut self, event: &Event<'_>) {
        let mut line = LineWriter { bytes: &mut self.buffer, losses: EventLosses::default() };
        let lost_here = event.time == self.last_time && event.context == Context::default();
        match event.kind {
            EventKind::Lost { count } if lost_here => line.lost(event.cpu, count),
            EventKind::Lost { .. }
            | EventKind::TaskName { .. }
            | EventKind::TaskStart { .. }
            | EventKind::TaskExit { .. } => {
                line.put(record::COMMENT);
                line.prefix(event, self.options.tgid);
                line.body(&event.kind);
            }
            _ => {
                line.prefix(event, self.options.tgid);
                line.body(&event.kind);
            }
        }
        line.put(b"\n");
        self.losses.add(event.kind.name(), line.losses);
        self.last_time = event.time;
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush();
        }
    }

    fn system(&mut self, system: &System) {
        self.buffer.extend_from_slice(machine::comments(system).as_bytes());
    }
}

const HEADER: &str = "\
# tracer: nop
#
#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
";

const HEADER_WITH_TGID: &str = "\
# tracer: nop
#
#                                          _-----=> irqs-off/BH-disabled
#                                         / _----=> need-resched
#                                        | / _---=> hardirq/softirq
#                                        || / _--=> preempt-depth
#                                        ||| / _-=> migrate-disable
#                                        |||| /     delay
#           TASK-PID       TGID    CPU#  |||||  TIMESTAMP  FUNCTION
#              | |           |       |   |||||     |         |
";

/// One line in the making.
struct LineWriter<'b> {
    bytes: &'b mut Vec<u8>,
    /// What so far cannot be read back.
    losses: EventLosses,
}

impl LineWriter<'_> {
    fn put(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
    }

    /// A name or text, without line feeds.
    fn text(&mut self, text: &[u8]) {
        let start = self.bytes.len();
        self.put(text);
        for byte in &mut self.bytes[start..] {
            if *byte == b'\n' {
                *byte = b'?';
                self.losses.unless(false, LossKind::Text);
            }
        }
    }

    /// Text at the end of a line, where a carriage return would be taken for the line's end.
    fn last_text(&mut self, text: &[u8]) {
        self.text(text);
        if text.ends_with(b"\r") {
            self.bytes.pop();
            self.put(b"?");
            self.losses.unless(false, LossKind::Text);
        }
    }

    /// tracefs's line about lost events, which has neither stamp nor task.
    fn lost(&mut self, cpu: Cpu, count: Option<u64>) {
        self.unsigned("CPU:", cpu.0.into());
        match count {
            Some(count) => {
                self.unsigned(" [LOST ", count);
                self.put(b" EVENTS]");
            }
            None => self.put(b" [LOST EVENTS]"),
        }
    }

    /// A label and a number without sign.
    fn unsigned(&mut self, label: &str, value: u64) {
        self.put(label.as_bytes());
        self.digits(value, 1);
    }

    /// A label and a number with sign.
    fn signed(&mut self, label: &str, value: i64) {
        self.put(label.as_bytes());
        if value < 0 {
            self.put(b"-");
        }
        self.digits(value.unsigned_abs(), 1);
    }

    /// Decimal digits, zeroes in front up to `width` of them.
    fn digits(&mut self, mut value: u64, width: usize) {
        let mut digits = [b'0'; DIGITS_MAX];
        let mut start = DIGITS_MAX;
        while value > 0 {
            start -= 1;
            digits[start] = b'0' + (value % 10) as u8;
            value /= 10;
        }
        self.put(&digits[start.min(DIGITS_MAX - width)..]);
    }

    /// Decimal digits, blanks behind them up to `width` in all.
    fn digits_left(&mut self, value: u64, width: usize) {
        let start = self.bytes.len();
        self.digits(value, 1);
        let missing = width.saturating_sub(self.bytes.len() - start);
        self.put(&BLANKS[..missing]);
    }

    /// Decimal digits, blanks before them up to `width` in all.
    fn digits_right(&mut self, value: u64, width: usize) {
        let length = value.checked_ilog10().map_or(1, |log| log as usize + 1);
        self.put(&BLANKS[..width.saturating_sub(length)]);
        self.digits(value, 1);
    }

    /// Everything before the event's name.
    fn prefix(&mut self, event: &Event<'_>, with_tgid: bool) {
        let context = &event.context;
        self.context_comm(&context.comm);
        self.put(b"-");
        // Negative ids cannot stand behind a dash: they are written as what they are without sign.
        self.digits_left(u64::from(context.pid.0 as u32), 7);
        self.put(b" ");
        if with_tgid {
            self.tgid(context.tgid);
        } else {
            self.losses.unless(context.tgid == Pid::UNKNOWN, LossKind::Context);
        }
        self.put(b"[");
        self.digits(event.cpu.0.into(), 3);
        self.put(b"] ");
        self.flags(context);
        self.digits_right(event.time.0 / 1_000_000_000, 5);
        self.put(b".");
        self.digits(event.time.0 % 1_000_000_000, 9);
        self.put(b": ");
    }

    /// The name in its column of 16; `<...>` when it is not known.
    fn context_comm(&mut self, comm: &Comm) {
        let known = comm.as_bytes();
        self.losses.unless(!known.starts_with(b" ") && known != b"<...>", LossKind::Context);
        let name: &[u8] = if known.is_empty() { b"<...>" } else { known };
        self.put(&BLANKS[..Comm::LEN.saturating_sub(name.len())]);
        self.text(name);
    }

    fn tgid(&mut self, tgid: Pid) {
        if tgid == Pid::UNKNOWN {
            self.put(b"(-------) ");
            return;
        }
        self.put(b"(");
        self.digits_right(u64::from(tgid.0 as u32), 7);
        self.put(b") ");
    }

    fn flags(&mut self, context: &Context) {
        let flags = context.flags.as_bytes();
        for (column, &flag) in flags.iter().enumerate() {
            let readable = is_flag(flag) && (column > 0 || !flag.is_ascii_digit());
            self.losses.unless(readable, LossKind::Flags);
            self.put(&[if readable { flag } else { b'.' }]);
        }
        if !flags.is_empty() {
            self.put(b" ");
        }
    }

    /// The event's name and fields.
    fn body(&mut self, kind: &EventKind<'_>) {
        match *kind {
            EventKind::Marker { text } => {
                self.put(EventKind::MARKER.as_bytes());
                self.put(b": ");
                self.last_text(text.as_bytes());
            }
            EventKind::Kprobe { name, fields } => self.generic(name, fields, true),
            EventKind::Other { name, fields } => self.generic(name, fields, false),
            EventKind::Lost { count } => {
                self.put(EventKind::LOST.as_bytes());
                self.put(b": ");
                if let Some(count) = count {
                    self.unsigned("count=", count);
                }
            }
            _ => {
                self.put(kind.name().as_bytes());
                self.put(b": ");
                kind.give_fields(self);
            }
        }
    }

    fn generic(&mut self, name: &str, fields: TextFields<'_>, probe: bool) {
        let fields = fields.text().as_bytes();
        self.losses.unless(reads_back(name.as_bytes(), fields, probe), LossKind::Text);
        self.text(name.as_bytes());
        match fields {
            _ if name.is_empty() => {}
            // The kernel prints system calls as calls.
            [b'(', ..] if name.starts_with("sys_") => {}
            [b'-', b'>', b' ', ..] if name.starts_with("sys_") => self.put(b" "),
            _ => self.put(b": "),
        }
        self.last_text(fields);
    }
}

/// The fields of a tracepoint as the kernel prints them.
impl<'t> FieldSink<'t> for LineWriter<'_> {
    fn field(&mut self, field: &'static TracepointField, value: TracepointValue<'t>) {
        if !value.is_reported() {
            return;
        }
        self.put(field.label.as_bytes());
        match value {
            TracepointValue::Comm(comm) => self.text(comm.as_bytes()),
            TracepointValue::Text(text) => self.text(text.as_bytes()),
            TracepointValue::Pid(pid) => self.signed("", pid.0.into()),
            TracepointValue::Prio(prio) => self.signed("", prio.0.into()),
            TracepointValue::Signed(value) => self.signed("", value),
            TracepointValue::Cpu(cpu) if field.form == FieldForm::TargetCpu => self.digits(cpu.0.into(), 3),
            TracepointValue::Cpu(cpu) => self.digits(cpu.0.into(), 1),
            TracepointValue::Unsigned(value) => self.digits(value, 1),
            TracepointValue::Count(count) => self.digits(count.into(), 1),
            TracepointValue::State(state) => {
                // A vector takes everything.
                let _ = write!(self.bytes, "{state}");
            }
            TracepointValue::Nanoseconds(Ns(time)) | TracepointValue::NanosecondsUntil(Some(time)) => {
                self.digits(time, 1);
                self.put(b" [ns]");
            }
            TracepointValue::Flag(flag) => self.put(if flag == Some(true) { b"true" } else { b"false" }),
            TracepointValue::NanosecondsUntil(None) => {}
        }
    }
}

/// Whether a reader will take `name: fields` for the same generic event.
fn reads_back(name: &[u8], fields: &[u8], probe: bool) -> bool {
    let long_names = Cell::new(0);
    let cursor = LineCursor::new(fields, &long_names);
    if name.is_empty() {
        // Text without a name must not begin like one.
        return !probe && { cursor }.identifier().is_empty() && !matches!(cursor.peek(), b' ' | b'\t' | b'(');
    }
    let mut whole = LineCursor::new(name, &long_names);
    if whole.identifier() != name || record::perf_record(name, cursor).is_some() {
        return false;
    }
    match body(name, cursor, Comm::default(), true) {
        LineBody::Kprobe(..) => probe,
        LineBody::Other(..) | LineBody::Malformed(..) => !probe,
        LineBody::Known(_) | LineBody::Exec { .. } | LineBody::Marker(_) => false,
    }
}

/// The digits of the largest 64-bit number.
const DIGITS_MAX: usize = 20;

const BLANKS: &[u8; DIGITS_MAX] = b"                    ";
