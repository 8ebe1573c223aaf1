//! Lines to events: recognises each line, hands its event on, keeps the account of what was not understood.
//!
//! Must not know: how the parts of a line are read, nor how lines are cut from the stream.

use std::borrow::Cow;
use std::cell::Cell;
use std::io::BufRead;
use std::ops::ControlFlow;

use fairlab_event::{Comm, Context, Cpu, Event, EventKind, Ns, Sink, System, TextFields, Tracepoint};

use super::body::{LineBody, body};
use super::cursor::LineCursor;
use super::early;
use super::layout::PrefixLayout;
use super::lines::{TextLine, each_line};
use super::machine;
use super::name::{TextPrinter, name};
use super::prefix::{Prefix, prefix, without_id};
use super::printed;
use super::raw_fields::StateNumbers;
use super::record;
use super::rt_flags;
use super::sources::Sources;
use super::stamp::PrintedStamp;
use super::wrapping::{self, UnwrappedLine};
use crate::clock::{self, ClockFacts, TraceClock};
use crate::{ImportError, ImportStats, ReadOptions, Trouble};

/// Reads text of tracefs, `trace-cmd report` or `perf script` and hands its events to `sink`, in the order of the lines.
///
/// Lines that are no trace lines are counted and passed over, `#` comments and blank lines silently. A trace without
/// events, of which only the header is there, is read as such.
///
/// # Errors
/// `source` fails, or no line of it is a trace line.
pub fn read(
    source: impl BufRead,
    options: &ReadOptions,
    sink: &mut dyn Sink,
) -> Result<ImportStats, ImportError> {
    let long_names = Cell::new(0);
    let mut reader = FtraceTextReader {
        sink,
        long_names: &long_names,
        options,
        clock_name: None,
        clock: None,
        refused: None,
        stats: ImportStats::default(),
        line_number: 0,
        last_trace_line: 0,
        last_time: Ns::ZERO,
        last_time_on: Vec::new(),
        held: Vec::new(),
        layout: PrefixLayout::default(),
        printer: TextPrinter::Unknown,
        is_trace: false,
        system: Some(System::default()),
        numbers: StateNumbers::default(),
        first_foreign: None,
        markup: HtmlMarkup::Unknown,
        sources: Sources::new(options.instance.as_deref()),
        is_page: false,
        stack: None,
    };
    each_line(source, |line| reader.take(line))?;
    reader.finish()
}

/// CPUs whose last stamp is remembered. More exist nowhere; a hostile number must not cost memory.
const CPUS_MAX: usize = 1 << 14;

struct FtraceTextReader<'s> {
    sink: &'s mut dyn Sink,
    long_names: &'s Cell<u64>,
    options: &'s ReadOptions,
    /// The clock that a comment in front of the events names.
    clock_name: Option<String>,
    /// What makes time of stamps that are whole numbers, where it is known.
    clock: Option<TraceClock>,
    /// Why there is no answer.
    refused: Option<ImportError>,
    stats: ImportStats,
    /// Counted from 1.
    line_number: u64,
    /// Number of the last line that held an event.
    last_trace_line: u64,
    last_time: Ns,
    last_time_on: Vec<Ns>,
    layout: PrefixLayout,
    printer: TextPrinter,
    /// Losses reported before any line with a time: since when is not known until that comes.
    held: Vec<(Cpu, Option<u64>)>,
    /// A trace line or a trace's header was seen.
    is_trace: bool,
    /// What comments say of the kernel and the machine, before anything but comments came.
    system: Option<System>,
    /// Which kernel's states are printed as numbers.
    numbers: StateNumbers,
    /// The first line that was not understood, while there was no trace line.
    first_foreign: Option<String>,
    markup: HtmlMarkup,
    sources: Sources,
    /// The text is a page of HTML, whose lines may be of any length before the trace begins.
    is_page: bool,
    /// The event whose call stack the line before was of, and that line's number.
    stack: Option<(Prefix, u64)>,
}

/// Whether a text's lines are escaped as HTML's are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HtmlMarkup {
    /// No line has shown it yet.
    Unknown,
    Plain,
    Escaped,
}

impl<'s> FtraceTextReader<'s> {
    fn take(&mut self, line: TextLine<'_>) -> ControlFlow<()> {
        self.line_number += 1;
        match line {
            TextLine::Whole(line) => self.line(line, true),
            TextLine::Unended(line) => self.unended_line(line),
            TextLine::TooLong(start) => {
                if !self.is_trace && !self.is_page {
                    // No text at all, most likely; it need not be read to its end to know that.
                    self.foreign(start);
                    return ControlFlow::Break(());
                }
                self.stats.add(Trouble::MalformedEvent, 1, self.line_number);
            }
        }
        if self.long_names.get() > 0 {
            self.stats.add(Trouble::CommTruncated, self.long_names.take(), self.line_number);
        }
        match self.refused {
            None => ControlFlow::Continue(()),
            Some(_) => ControlFlow::Break(()),
        }
    }

    #[inline]
    fn line(&mut self, line: &[u8], ended: bool) {
        let escaped = self.markup != HtmlMarkup::Plain && self.is_escaped(line);
        if escaped || self.sources.matter() || self.plain_line(line).is_none() {
            self.any_line(line, escaped, ended);
        }
    }

    /// Whether a line is escaped; the first that has what would be, or an escape of it, decides.
    fn is_escaped(&mut self, line: &[u8]) -> bool {
        if self.markup == HtmlMarkup::Unknown && wrapping::is_unescaped(line) {
            self.markup = HtmlMarkup::Plain;
            return false;
        }
        let escaped = wrapping::has_entity(line);
        if escaped && [&b"&lt;"[..], b"&gt;"].iter().any(|mark| memchr::memmem::find(line, mark).is_some()) {
            self.markup = HtmlMarkup::Escaped;
        }
        escaped
    }

    /// A line that may be cut off. Tools end every line, so theirs surely is; text from elsewhere may end anyhow.
    fn unended_line(&mut self, line: &[u8]) {
        self.line(line, false);
        if self.printer != TextPrinter::Unknown && self.stats.count(Trouble::TruncatedFile) == 0 {
            self.stats.add(Trouble::TruncatedFile, 1, self.line_number);
        }
    }

    /// The quick way for the most common events: laid out as on the line before, printed exactly as the kernel does.
    #[inline(always)]
    fn plain_line(&mut self, line: &[u8]) -> Option<()> {
        let mut prefix = self.layout.read(line)?;
        prefix.context.flags = rt_flags::in_usual_columns(prefix.context.flags);
        let mut cursor = LineCursor::new(line, self.long_names);
        cursor.skip(self.layout.passed() + 1);
        let tracepoint = printed::tracepoint(cursor.until_colon()?)?;
        cursor.literal(b": ")?;
        printed::read(tracepoint, cursor, |kind| self.emit(&prefix, kind))
    }

    /// A line in whatever it is wrapped.
    #[inline(never)]
    fn any_line(&mut self, line: &[u8], escaped: bool, ended: bool) {
        self.is_page |= self.line_number == 1 && line.trim_ascii_start().starts_with(b"<");
        let mut plain = Cow::Borrowed(line);
        if escaped {
            plain = Cow::Owned(wrapping::without_markup(&plain));
        } else if line.ends_with(b">") || line.starts_with(b"<") {
            plain = Cow::Borrowed(wrapping::without_tags(line));
        }
        if let Some(held) = wrapping::of_string(&plain) {
            plain = Cow::Owned(held);
        }
        if let Some(held) = wrapping::without_colours(&plain) {
            plain = Cow::Owned(held);
        }
        let peeled = wrapping::peeled(&plain);
        if peeled.line.starts_with(b"#") {
            return self.comment(peeled.line);
        }
        self.say_system();
        // What is no longer wrapped is most likely laid out as the line before.
        let is_plain = peeled.line.len() < line.len() && peeled.source.is_none() && !self.sources.matter();
        if !is_plain || self.plain_line(peeled.line).is_none() {
            self.bare_line(line, &peeled, ended);
        }
    }

    /// What is left of the line `whole` without its wrapping.
    fn bare_line(&mut self, whole: &[u8], peeled: &UnwrappedLine<'_>, ended: bool) {
        let Some((mut prefix, cursor, source)) = self.front(peeled) else {
            return self.without_prefix(whole, peeled, ended);
        };
        prefix.context.flags = rt_flags::in_usual_columns(prefix.context.flags);
        self.is_trace = true;
        let (name, text) = name(cursor, self.printer);
        if let Some(kind) = record::perf_record(name, text) {
            return self.emit_record(source, &prefix, kind);
        }
        if record::is_perf_record(name, cursor) {
            self.last_trace_line = self.line_number;
            return;
        }
        let mut body = self.body(&prefix, (name, text), cursor, ended);
        if let LineBody::Known(EventKind::SchedSwitch(switch)) = &mut body
            && let Some((state, is_doubtful)) = self.numbers.state(text.rest())
        {
            switch.prev_state = state;
            if is_doubtful {
                self.stats.add(Trouble::NumberedState, 1, self.line_number);
            }
        }
        self.event((whole, source), &prefix, body, ended);
    }

    /// What stands behind the front: `name` with its `text`, or, from `cursor` on, what has no name.
    fn body<'l>(
        &self,
        prefix: &Prefix,
        (name, text): (&'l [u8], LineCursor<'l>),
        cursor: LineCursor<'l>,
        ended: bool,
    ) -> LineBody<'l> {
        let Context { comm, pid, .. } = prefix.context;
        if name.iter().all(u8::is_ascii_digit) {
            if let Some(kind) = early::entry(cursor, (comm, pid)) {
                return LineBody::Known(kind);
            }
            // Fields that only one event has.
            let switch = Tracepoint::SchedSwitch;
            if text.rest().trim_ascii_start().starts_with(switch.fields()[0].label.as_bytes()) {
                return body(switch.name().as_bytes(), text, comm, ended);
            }
        }
        body(name, text, comm, ended)
    }

    /// A line's front, wherever it begins, and what it is said to be of. A name that no kernel's task can have is a name and
    /// what was put before the line.
    fn front<'l>(&mut self, peeled: &UnwrappedLine<'l>) -> Option<(Prefix, LineCursor<'l>, Option<&'l [u8]>)>
    where
        's: 'l,
    {
        // The cell is copied out so that the lines' text does not borrow the reader.
        let (line, long_names): (_, &'s Cell<u64>) = (peeled.line, self.long_names);
        let before = long_names.get();
        let direct = prefix(line, long_names, &mut self.layout);
        let with_direct = long_names.get();
        if with_direct == before
            && !peeled.logged
            && direct.as_ref().is_some_and(|(prefix, _)| !is_prefixed(line, prefix.context.comm))
        {
            return direct.map(|(prefix, cursor)| (prefix, cursor, peeled.source));
        }
        for beginning in wrapping::beginnings(line) {
            let (put_before, rest) = line.split_at(beginning.at);
            // Behind blanks alone an id may stand, whose name is what was passed.
            if !beginning.marked && (peeled.logged || !rest[0].is_ascii_alphabetic() && rest[0] != b'<') {
                continue;
            }
            let inner = wrapping::peeled(rest);
            long_names.set(before);
            let Some((prefix, cursor)) = prefix(inner.line, long_names, &mut self.layout) else { continue };
            let is_same = direct
                .as_ref()
                .is_none_or(|(direct, _)| (direct.stamp, direct.cpu) == (prefix.stamp, prefix.cpu));
            let is_bare = long_names.get() == before && !is_prefixed(inner.line, prefix.context.comm);
            if is_same && is_bare {
                let named = if beginning.marked { wrapping::source(put_before) } else { None };
                return Some((prefix, cursor, peeled.source.or(inner.source).or(named)));
            }
        }
        long_names.set(with_direct);
        direct.map(|(prefix, cursor)| (prefix, cursor, peeled.source))
    }

    /// Hands on the event of a line, in whatever way its fields could be read.
    fn event(
        &mut self,
        (line, source): (&[u8], Option<&[u8]>),
        prefix: &Prefix,
        body: LineBody<'_>,
        ended: bool,
    ) {
        if !self.sources.admit(source, &text(body.name())) {
            return;
        }
        match body {
            LineBody::Known(kind) => self.emit(prefix, kind),
            LineBody::Exec { filename, pid, old_pid } => {
                self.emit(prefix, EventKind::SchedProcessExec { filename: &text(filename), pid, old_pid });
            }
            LineBody::Marker(marker) => self.emit(prefix, EventKind::Marker { text: &text(marker) }),
            LineBody::Kprobe(name, fields) => {
                let (name, fields) = (text(name), text(fields));
                self.emit(prefix, EventKind::Kprobe { name: &name, fields: TextFields::new(&fields) });
            }
            // A line that the end of the file cut off.
            LineBody::Malformed(..) | LineBody::Other(b"", _) if !ended => {
                self.stats.add(Trouble::TruncatedFile, 1, self.line_number);
            }
            LineBody::Other(name, fields) => {
                if fields.starts_with(b"<stack trace") {
                    self.stack = Some((*prefix, self.line_number));
                }
                self.emit_other(prefix, name, fields);
            }
            LineBody::Malformed(name, fields) => {
                self.stats.add(Trouble::MalformedEvent, 1, self.line_number);
                self.stats.cannot_read(&text(name), self.line_number, line);
                self.emit_other(prefix, name, fields);
            }
        }
    }

    fn emit_other(&mut self, prefix: &Prefix, name: &[u8], fields: &[u8]) {
        let (name, fields) = (text(name), text(fields));
        self.emit(prefix, EventKind::Other { name: &name, fields: TextFields::new(&fields) });
    }

    #[inline(always)]
    fn emit(&mut self, prefix: &Prefix, kind: EventKind<'_>) {
        let Some(time) = self.time(prefix.stamp) else { return self.untimed(kind.name()) };
        if !self.held.is_empty() {
            self.hand_on_held(time);
        }
        self.note_time(prefix.cpu, time);
        self.last_trace_line = self.line_number;
        self.stats.events += 1;
        self.sink.event(&Event { time, cpu: prefix.cpu, context: prefix.context, kind });
    }

    /// Hands on a record that is no tracepoint. Recorders write these out of order, so their stamps prove nothing.
    fn emit_record(&mut self, source: Option<&[u8]>, prefix: &Prefix, kind: EventKind<'_>) {
        if !self.sources.admit(source, kind.name()) {
            return;
        }
        match self.time(prefix.stamp) {
            Some(time) => self.emit_at(time, prefix.cpu, prefix.context, kind),
            None => self.untimed(kind.name()),
        }
    }

    /// Events of a CPU are missing between the line before and the line after; the text has no time of its own.
    fn lose(&mut self, cpu: Cpu, count: Option<u64>) {
        self.is_trace = true;
        // An event of time 0 is one, too.
        match self.last_time_on.is_empty() && self.last_time == Ns::ZERO {
            true => self.held.push((cpu, count)),
            false => self.emit_at(self.last_time, cpu, Context::default(), EventKind::Lost { count }),
        }
    }

    #[cold]
    fn hand_on_held(&mut self, time: Ns) {
        for (cpu, count) in std::mem::take(&mut self.held) {
            self.emit_at(time, cpu, Context::default(), EventKind::Lost { count });
        }
    }

    fn emit_at(&mut self, time: Ns, cpu: Cpu, context: Context, kind: EventKind<'_>) {
        if let EventKind::Lost { count } = kind {
            self.stats.add(Trouble::LostEvents, count.unwrap_or(1), self.line_number);
        }
        self.last_time = time;
        self.last_trace_line = self.line_number;
        self.stats.events += 1;
        self.sink.event(&Event { time, cpu, context, kind });
    }

    #[inline(always)]
    fn time(&self, stamp: PrintedStamp) -> Option<Ns> {
        match stamp {
            PrintedStamp::Time(time) => Some(time),
            PrintedStamp::Ticks(ticks) => self.clock.map(|clock| clock.ns(ticks)),
        }
    }

    /// A line whose stamp is a number that nothing tells the meaning of: of a trace of such lines there is no answer, among others
    /// it is not understood.
    #[cold]
    fn untimed(&mut self, name: &str) {
        if self.last_time_on.is_empty() {
            self.refused.get_or_insert_with(|| clock::untold(clock::UNNAMED));
        } else {
            self.stats.add(Trouble::MalformedEvent, 1, self.line_number);
            self.stats.cannot_read(name, self.line_number, b"");
        }
    }

    #[inline(always)]
    fn note_time(&mut self, cpu: Cpu, time: Ns) {
        self.last_time = time;
        match self.last_time_on.get_mut(cpu.index()) {
            Some(last) => {
                if time < *last {
                    self.stats.add(Trouble::TimeWentBack, 1, self.line_number);
                }
                *last = time;
            }
            None if cpu.index() < CPUS_MAX => {
                self.last_time_on.resize(cpu.index() + 1, Ns::ZERO);
                self.last_time_on[cpu.index()] = time;
            }
            None => {}
        }
    }

    /// A frame of the kernel's call stack, right behind its head or another frame: an event for itself.
    #[cold]
    fn is_frame(&mut self, frame: &[u8]) -> bool {
        let behind = self.stack.filter(|(_, line)| line + 1 == self.line_number);
        let Some((prefix, _)) = behind else { return false };
        self.stack = Some((prefix, self.line_number));
        self.emit_other(&prefix, b"kernel_stack", frame);
        true
    }

    /// Lost events, trace-cmd's header, and what is none of these.
    fn without_prefix(&mut self, whole: &[u8], peeled: &UnwrappedLine<'_>, ended: bool) {
        let (line, trimmed) = (peeled.line, peeled.line.trim_ascii());
        if trimmed.is_empty() || trimmed.starts_with(b"=> ") && self.is_frame(trimmed) {
            return;
        }
        let long_names = self.long_names;
        let marked = wrapping::beginnings(line).filter(|beginning| beginning.marked);
        let mut lines = [line].into_iter().chain(marked.map(|beginning| &line[beginning.at..]));
        if let Some((cpu, count)) = lines.find_map(|line| record::lost(LineCursor::new(line, long_names))) {
            return self.lose(cpu, count);
        }
        let cpus = trimmed.strip_prefix(b"cpus=");
        if self.stats.events == 0 && cpus.is_some_and(|n| !n.is_empty() && n.iter().all(u8::is_ascii_digit)) {
            self.printer = TextPrinter::TraceCmd;
            // At the very beginning it cannot be anything else; an empty trace has nothing more.
            self.is_trace |= self.line_number == 1;
            return;
        }
        // Behind a trace line, the beginning of one is what an unended line most likely is.
        if !ended && self.is_trace && self.last_trace_line + 1 == self.line_number {
            self.stats.add(Trouble::TruncatedFile, 1, self.line_number);
        } else if let Some(event) = event_in(line, long_names) {
            self.is_trace = true;
            self.event_of_nobody(whole, peeled, event);
        } else {
            self.foreign(trimmed);
        }
    }

    /// A known event whose front lacks something: the task's id, which a switch has again, or more.
    #[cold]
    fn event_of_nobody(&mut self, whole: &[u8], peeled: &UnwrappedLine<'_>, event: &str) {
        let Some((mut prefix, cursor)) = self.front_without_id(peeled.line) else {
            self.stats.cannot_read(event, self.line_number, whole);
            return self.stats.add(Trouble::MalformedEvent, 1, self.line_number);
        };
        let (name, text) = name(cursor, self.printer);
        let body = body(name, text, prefix.context.comm, true);
        if let LineBody::Known(EventKind::SchedSwitch(switch)) = body {
            prefix.context.pid = switch.prev_pid;
        }
        self.event((whole, peeled.source), &prefix, body, true);
    }

    /// The front of a line whose task has a name only, wherever it begins.
    fn front_without_id<'l>(&self, line: &'l [u8]) -> Option<(Prefix, LineCursor<'l>)>
    where
        's: 'l,
    {
        let long_names: &'s Cell<u64> = self.long_names;
        let before = long_names.get();
        let marked = wrapping::beginnings(line).filter(|beginning| beginning.marked);
        [0].into_iter().chain(marked.map(|beginning| beginning.at)).find_map(|at| {
            long_names.set(before);
            let rest = wrapping::peeled(&line[at..]).line;
            without_id(rest, long_names)
                .filter(|(prefix, _)| long_names.get() == before && !is_prefixed(rest, prefix.context.comm))
        })
    }

    /// tracefs's header, or one of Fairlab's own lines. Other comments say nothing.
    fn comment(&mut self, line: &[u8]) {
        if line.starts_with(b"# tracer:") {
            self.is_trace = true;
            self.printer = TextPrinter::Tracefs;
            return;
        }
        let Some(line) = line.strip_prefix(record::COMMENT) else {
            if let Some(cpu) = record::buffer_started(line) {
                return self.lose(cpu, None);
            }
            if let Some(count) = record::overwritten(line) {
                self.stats.add(Trouble::LostEvents, count, self.line_number);
            }
            if let Some(system) = &mut self.system {
                machine::take(system, line);
                self.clock_name = machine::clock(line).map(str::to_string).or(self.clock_name.take());
            }
            return;
        };
        let Some((prefix, cursor)) = prefix(line, self.long_names, &mut PrefixLayout::default()) else {
            return;
        };
        let (name, cursor) = name(cursor, TextPrinter::Tracefs);
        if let Some(kind) = record::comment(name, cursor) {
            self.is_trace = true;
            self.say_system();
            self.emit_record(None, &prefix, kind);
        }
    }

    fn say_system(&mut self) {
        let Some(system) = self.system.take() else { return };
        self.numbers = StateNumbers::of(&system.release);
        self.choose_clock();
        if !system.is_unknown() {
            self.sink.system(&system);
        }
    }

    /// The clock of whole numbers: that which a comment names, or whatever counts as the user says.
    #[cold]
    fn choose_clock(&mut self) {
        let name = self.clock_name.take();
        let facts = ClockFacts {
            name: name.clone().unwrap_or_else(|| clock::UNNAMED.to_string()),
            ..ClockFacts::default()
        };
        match TraceClock::new(&facts, self.options) {
            Ok(clock) => self.clock = Some(clock),
            // Fractions of a second by such a clock are none: trace-cmd prints them of any number.
            Err(error) if name.is_some() => self.refused = Some(error),
            Err(_) => {}
        }
    }

    #[cold]
    fn foreign(&mut self, line: &[u8]) {
        if !self.is_trace && self.first_foreign.is_none() {
            // Bytes that are no text help no reader.
            let is_binary = line.iter().any(|&byte| byte < b' ' && byte != b'\t' && byte != b'\r');
            self.first_foreign = Some(if is_binary { String::new() } else { quoted(line) });
        }
        self.stats.add(Trouble::ForeignLine, 1, self.line_number);
    }

    fn finish(mut self) -> Result<ImportStats, ImportError> {
        if let Some(error) = self.refused.take() {
            return Err(error);
        }
        self.hand_on_held(self.last_time);
        if self.is_trace {
            self.sources.account(&mut self.stats)?;
            return Ok(self.stats);
        }
        if self.first_foreign.as_ref().is_some_and(|first| is_table_of_toml(first)) {
            return Err(ImportError::Unsupported("this is a TOML file, no trace".to_string()));
        }
        if self.first_foreign.as_ref().is_some_and(|first| first.starts_with(['{', '['])) {
            return Err(ImportError::Unsupported(
                "this is JSON, as Chrome's and Perfetto's viewers keep traces, no trace that can be read"
                    .to_string(),
            ));
        }
        let fact = match (self.line_number, self.first_foreign) {
            (0, _) => "the input is empty".to_string(),
            (lines, None) => format!("{} lines, all of them blank or comments: no trace", grouped(lines)),
            (_, Some(first)) if first.is_empty() => {
                "it is neither text nor a binary trace of a known kind".to_string()
            }
            (lines, Some(_)) if self.is_page => format!(
                "no line among {} of this page is a trace line; what it shows may be packed in it",
                grouped(lines)
            ),
            (lines, Some(first)) => format!(
                "no line among {} is an ftrace, trace-cmd or perf script line; the first is: {first}",
                grouped(lines)
            ),
        };
        Err(ImportError::NotATrace(fact))
    }
}

/// Whether what was read as the name at the beginning of `line` is more likely a mark that another program put there, with or
/// without the name. Tools put blanks before a name, which may hold anything.
fn is_prefixed(line: &[u8], comm: Comm) -> bool {
    let comm = comm.as_bytes();
    line.first() != Some(&b' ') && (comm.ends_with(b":") || memchr::memmem::find(comm, b": ").is_some())
}

/// The event that a line of another layout holds: its name and fields stand there, who reported it, where or when does not.
#[cold]
fn event_in<'l>(line: &'l [u8], long_names: &'l Cell<u64>) -> Option<&'l str> {
    memchr::memmem::find_iter(line, b"sched_").take(NAMES_TRIED_MAX).find_map(|start| {
        let mut cursor = LineCursor::new(line, long_names);
        cursor.skip(start);
        let name = cursor.identifier();
        cursor.byte(b':')?;
        match body(name, cursor, Comm::default(), true) {
            LineBody::Known(kind) => Some(kind.name()),
            LineBody::Exec { .. } => std::str::from_utf8(name).ok(),
            _ => None,
        }
    })
}

/// Whether a line is a TOML file's `[table]` or `[[table]]`.
fn is_table_of_toml(line: &str) -> bool {
    let name = line.trim_start_matches('[');
    let begins = name.starts_with(|letter: char| letter.is_ascii_alphabetic());
    name.len() < line.len() && begins && name.ends_with(']')
}

/// A line of prose may name many events; a trace line names one.
const NAMES_TRIED_MAX: usize = 4;

/// How much of a line an error message quotes.
const QUOTED_CHARS: usize = 80;

/// The beginning of a line, fit for an error message.
fn quoted(line: &[u8]) -> String {
    let start = String::from_utf8_lossy(&line[..line.len().min(4 * QUOTED_CHARS)]);
    let visible = |char: char| if char.is_control() { char::REPLACEMENT_CHARACTER } else { char };
    let mut text: String = start.chars().take(QUOTED_CHARS).map(visible).collect();
    if start.chars().nth(QUOTED_CHARS).is_some() {
        text.push('…');
    }
    text
}

/// A number with commas: `1,234`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Text as Rust has it; bytes that are no UTF-8 are replaced.
#[inline]
fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

#[cfg(test)]
mod tests {
    use fairlab_event::{Flags, Pid, Prio, StatDelay, Switch, TaskState, Wakeup, sink_fn};

    use super::*;

    /// Reads `text`, shows every event as `time cpu comm/pid/tgid flags name fields`.
    fn events(text: &[u8]) -> (Vec<String>, ImportStats) {
        let mut seen = Vec::new();
        let mut sink = sink_fn(|event: &Event<'_>| {
            let Context { comm, pid, tgid, flags } = event.context;
            let flags = String::from_utf8_lossy(flags.as_bytes()).into_owned();
            let what = match event.kind {
                EventKind::Marker { text } => format!("marker {text:?}"),
                EventKind::Kprobe { name, fields } => {
                    format!("kprobe {name} {fields:?}", fields = fields.text())
                }
                EventKind::Other { name, fields } => {
                    format!("other {name} {fields:?}", fields = fields.text())
                }
                kind => kind.name().to_string(),
            };
            seen.push(format!("{} {} {comm}/{pid}/{tgid} {flags} {what}", event.time.0, event.cpu));
        });
        let stats = read(text, &ReadOptions::default(), &mut sink).expect("a trace");
        drop(sink);
        assert_eq!(stats.events, seen.len() as u64);
        (seen, stats)
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) -> ImportStats {
        let (seen, stats) = events(text.as_bytes());
        assert_eq!(seen, expected);
        stats
    }

    fn kind(line: &str) -> EventKind<'static> {
        let mut found = None;
        let mut sink = sink_fn(|event: &Event<'_>| {
            found = match event.kind {
                EventKind::Marker { .. } | EventKind::Kprobe { .. } | EventKind::Other { .. } => None,
                EventKind::SchedProcessExec { pid, old_pid, .. } => {
                    Some(EventKind::SchedProcessExec { filename: "", pid, old_pid })
                }
                EventKind::SchedSwitch(switch) => Some(EventKind::SchedSwitch(switch)),
                EventKind::SchedWaking(wakeup) => Some(EventKind::SchedWaking(wakeup)),
                EventKind::SchedWakeup(wakeup) => Some(EventKind::SchedWakeup(wakeup)),
                EventKind::SchedStatWait(delay) => Some(EventKind::SchedStatWait(delay)),
                EventKind::TaskName { pid, tgid, comm } => Some(EventKind::TaskName { pid, tgid, comm }),
                _ => None,
            };
        });
        read(line.as_bytes(), &ReadOptions::default(), &mut sink).expect("a trace");
        drop(sink);
        found.unwrap_or_else(|| panic!("no event of this kind: {line}"))
    }

    #[test]
    fn a_mail_is_read_between_its_prose() {
        let stats = check(
            "#### TRACE EXCERPT ####\n---\n\
             CPU 3/KVM-2950 [014] d.... 576.161432: sched_migrate_task: comm=vhost-2920 pid=2941 prio=120 orig_cpu=15 dest_cpu=14\n\
             --> migrates task from cpu 15 to 14\n\
             CPU 3/KVM-2950 [014] d.... 576.161433: sched_place: comm= pid=0 sev=16329848593 sed=16334604010 sel=-13 avg=16329848593 min=16329848593 cpu=14 nr=0\n\
             \n",
            &[
                "576161432000 14 CPU 3/KVM/2950/-1 d.... sched_migrate_task",
                "576161433000 14 CPU 3/KVM/2950/-1 d.... sched_place",
            ],
        );
        assert_eq!(stats.count(Trouble::ForeignLine), 2);
        assert_eq!(stats.troubles()[0].first_at, 2);
        assert_eq!(stats.troubles().len(), 1);
    }

    #[test]
    fn one_switch_in_every_form_is_one_switch() {
        let expected = EventKind::SchedSwitch(Switch {
            prev_comm: Comm::from("Web Content"),
            prev_pid: Pid(15487),
            prev_prio: Prio(120),
            prev_state: TaskState::INTERRUPTIBLE,
            next_comm: Comm::from("swapper/0"),
            next_pid: Pid(0),
            next_prio: Prio(-1),
        });
        let print_fmt = "prev_comm=Web Content prev_pid=15487 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=-1";
        let plugin = "Web Content:15487 [120] S ==> swapper/0:0 [-1]";
        for line in [
            format!("     Web Content-15487   (  15487) [000] d..2.  1555.069808: sched_switch: {print_fmt}"),
            format!("     Web Content-15487 [000]  1555.069808: sched_switch:         {plugin}"),
            format!("     Web Content-15487 [000] d..2.  1555.069808: sched_switch:         {plugin}"),
            format!("     Web Content-15487 [000]  1555.069808: sched_switch:         {print_fmt}"),
            format!("     Web Content-15487 [000]  1555.069808: (+23)    sched_switch:         {plugin}"),
            format!("Web Cont-15487   0d..2.  1555.069808: sched_switch:         {plugin}"),
            format!("     Web Content 15487 [000]  1555.069808:       sched:sched_switch: {print_fmt}"),
            format!("     Web Content 15487/15487 [000]  1555.069808:       sched:sched_switch: {plugin}"),
            format!(
                "     Web Content 15487 [000]  1555.069808:          1       sched:sched_switch: {print_fmt}"
            ),
            format!(
                "     Web Content 15487 [000]  1555.069808:       sched:sched_switch:                    {print_fmt}"
            ),
            format!("> Web Content-15487 [000] d..2. 1555.069808: sched_switch: {print_fmt}\r\n"),
        ] {
            assert_eq!(kind(&line), expected, "{line}");
        }
    }

    #[test]
    fn one_wakeup_in_every_form_is_one_wakeup() {
        let expected =
            Wakeup { comm: Comm::from("a:7 [1]"), pid: Pid(15488), prio: Prio(120), target_cpu: Cpu(1) };
        for fields in [
            "comm=a:7 [1] pid=15488 prio=120 target_cpu=001",
            "comm=a:7 [1] pid=15488 prio=120 success=1 target_cpu=001",
            "comm=a:7 [1] pid=15488 prio=120 target_cpu=001 new_field=3",
            "a:7 [1]:15488 [120] CPU:001",
            "a:7 [1]:15488 [120] success=1 CPU:001",
            "a:7 [1]:15488 [120]<CANT FIND FIELD success> CPU:001",
        ] {
            let line = format!("bash-15487 [000]  1555.069808: sched_wakeup: {fields}\n");
            assert_eq!(kind(&line), EventKind::SchedWakeup(expected), "{line}");
        }
    }

    #[test]
    fn lost_events_are_told_where_they_are() {
        let stats = check(
            "CPU:1 [LOST 5 EVENTS]\n\
             ls-9 [001] d..2. 1.000000: cpu_idle: state=1 cpu_id=1\n\
             CPU:3 [LOST 123 EVENTS]\n\
             CPU:3 [EVENTS DROPPED]\n\
             ls 9 [001] 2.000000: PERF_RECORD_LOST lost 7\n",
            &[
                "1000000000 1 /-1/-1  lost_events",
                "1000000000 1 ls/9/-1 d..2. other cpu_idle \"state=1 cpu_id=1\"",
                "1000000000 3 /-1/-1  lost_events",
                "1000000000 3 /-1/-1  lost_events",
                "2000000000 1 ls/9/-1  lost_events",
            ],
        );
        assert_eq!(stats.count(Trouble::LostEvents), 5 + 123 + 1 + 7);
    }

    #[test]
    fn a_buffer_that_starts_late_tells_that_its_beginning_is_lost() {
        let started = "##### CPU 1 buffer started ####\n";
        let line = |time: &str| format!("ls-9 [001] d..2. {time}: cpu_idle: state=1 cpu_id=1\n");
        let of_line =
            |time: u64| format!("{time}000000000 1 ls/9/-1 d..2. other cpu_idle \"state=1 cpu_id=1\"");
        let lost = "1000000000 1 /-1/-1  lost_events";
        check(&[&line("1.0"), started, &line("2.0")].concat(), &[&of_line(1), lost, &of_line(2)]);
        check(&[started, &line("1.0")].concat(), &[lost, &of_line(1)]);
    }

    #[test]
    fn records_of_perf_that_are_no_events_are_passed_over() {
        let stats = check(
            "init 0 [000] 0.000000000: PERF_RECORD_MMAP2 7/7: [0x55d000000000(0x1000) @ 0 08:01 12 0]: r-xp /bin/init\n\
             ls 9 [001] 2.000000: PERF_RECORD_SWITCH_CPU_WIDE OUT next pid/tid: 1/2\n\
             ls 9 [001] 2.000000: cpu_idle: state=1 cpu_id=1\n",
            &["2000000000 1 ls/9/-1  other cpu_idle \"state=1 cpu_id=1\""],
        );
        assert_eq!((stats.events, stats.worst()), (1, None));
    }

    #[test]
    fn events_without_a_type_keep_their_text() {
        check(
            "# tracer: nop\n\
             init-1 [003] d... 1.5: place: (place_entity+0x0/0xf0) cf=0xffffa07addbb34c0 cpu=3\n\
             init-1 [003] d... 1.5: sel_r: (wake_up_new_task+0x81/0x310 <- select_task_rq_fair) ret=1\n\
             init-1 [003] d... 1.5: probe:up: (55d0c0de) a=1\n\
             init-1 [003] d... 1.5: sys_sched_setaffinity(pid: 0, len: 8)\n\
             init-1 [003] d... 1.5: sys_close -> 0x0\n\
             init-1 [003] d... 1.5: vfs_read <-ksys_read\n\
             init-1 [003] d... 1.5: irq_vectors:local_timer_entry: vector=236\n\
             init-1 [003] d... 1.5: empty: \n\
             init-1 [003] d... 1.5: <stack trace>\n\
             init-1 [003] d... 1.5: tracing_mark_write:  B|123|two  blanks: kept \n\
             init-1 [003] d... 1.5: print: tracing_mark_write: hello\n\
             init-1 [003] d... 1.5: bprint: probe_function: hello\n",
            &[
                "1500000000 3 init/1/-1 d... kprobe place \"(place_entity+0x0/0xf0) cf=0xffffa07addbb34c0 cpu=3\"",
                "1500000000 3 init/1/-1 d... kprobe sel_r \"(wake_up_new_task+0x81/0x310 <- select_task_rq_fair) ret=1\"",
                "1500000000 3 init/1/-1 d... kprobe up \"(55d0c0de) a=1\"",
                "1500000000 3 init/1/-1 d... other sys_sched_setaffinity \"(pid: 0, len: 8)\"",
                "1500000000 3 init/1/-1 d... other sys_close \"-> 0x0\"",
                "1500000000 3 init/1/-1 d... other function \"vfs_read <-ksys_read\"",
                "1500000000 3 init/1/-1 d... other local_timer_entry \"vector=236\"",
                "1500000000 3 init/1/-1 d... other empty \"\"",
                "1500000000 3 init/1/-1 d... other  \"<stack trace>\"",
                "1500000000 3 init/1/-1 d... marker \" B|123|two  blanks: kept \"",
                "1500000000 3 init/1/-1 d... marker \"hello\"",
                "1500000000 3 init/1/-1 d... marker \"probe_function: hello\"",
            ],
        );
    }

    #[test]
    fn a_call_stack_is_an_event_for_each_frame() {
        let stack = "init-1 [003] d..2. 1.5: <stack trace>\n => __schedule\n => futex_wait_queue\n";
        let (head, first, second) = (
            "1500000000 3 init/1/-1 d..2. other  \"<stack trace>\"",
            "1500000000 3 init/1/-1 d..2. other kernel_stack \"=> __schedule\"",
            "1500000000 3 init/1/-1 d..2. other kernel_stack \"=> futex_wait_queue\"",
        );
        let stats = check(stack, &[head, first, second]);
        assert_eq!(stats.count(Trouble::ForeignLine), 0);
        // Behind anything else such a line is none, and neither is that of a program's own stack.
        let stats = check(
            &format!("{stack}ls-9 [001] d..2. 2.0: cpu_idle: state=1 cpu_id=1\n => schedule\n"),
            &[head, first, second, "2000000000 1 ls/9/-1 d..2. other cpu_idle \"state=1 cpu_id=1\""],
        );
        assert_eq!(stats.count(Trouble::ForeignLine), 1);
    }

    #[test]
    fn fields_that_cannot_be_read_are_counted_and_passed_on() {
        let stats = check(
            "ls-9 [001] d..2. 1.0: sched_switch: prev_comm=ls prev_pid=x\n\
             ls-9 [001] d..2. 1.0: sched_wakeup: comm=ls pid=99999999999 prio=120 target_cpu=001\n\
             ls-9 [001] d..2. 1.0: sched_stat_wait: comm=ls pid=9 delay=18446744073709551616 [ns]\n",
            &[
                "1000000000 1 ls/9/-1 d..2. other sched_switch \"prev_comm=ls prev_pid=x\"",
                "1000000000 1 ls/9/-1 d..2. other sched_wakeup \"comm=ls pid=99999999999 prio=120 target_cpu=001\"",
                "1000000000 1 ls/9/-1 d..2. other sched_stat_wait \"comm=ls pid=9 delay=18446744073709551616 [ns]\"",
            ],
        );
        assert_eq!(stats.count(Trouble::MalformedEvent), 3);
        let largest = StatDelay { comm: Comm::from("ls"), pid: Pid(9), delay: Ns::MAX };
        let line = "ls-9 [001] 1.0: sched_stat_wait: comm=ls pid=9 delay=18446744073709551615 [ns]";
        assert_eq!(kind(line), EventKind::SchedStatWait(largest));
    }

    #[test]
    fn long_names_are_cut_and_counted() {
        let stats = check(
            "kworker/u8:0-events_unbound-9 [001] d..2. 1.0: sched_wakeup: comm=kworker/u8:0-events_unbound pid=9 prio=120 target_cpu=001\n",
            &["1000000000 1 kworker/u8:0-ev/9/-1 d..2. sched_wakeup"],
        );
        assert_eq!(stats.count(Trouble::CommTruncated), 2);
    }

    #[test]
    fn time_that_goes_back_is_counted_for_each_cpu_alone() {
        let line = |cpu: u32, time: &str| format!("ls-9 [{cpu:03}] d..2. {time}: x: y\n");
        let text =
            [line(1, "2.0"), line(0, "1.0"), line(1, "1.9"), line(1, "1.9"), line(9_999_999, "0.1")].concat();
        let (seen, stats) = events(text.as_bytes());
        assert_eq!(seen.len(), 5);
        assert_eq!(stats.troubles().len(), 1);
        assert_eq!((stats.count(Trouble::TimeWentBack), stats.troubles()[0].first_at), (1, 3));
    }

    #[test]
    fn whole_numbers_need_the_clocks_rate() {
        let line = |stamp: &str| format!("ls-9 [001] d... {stamp}: x: y\n");
        let text = [line("2596134003"), line("5192268000")].concat();
        let with = |clock_hz, text: &str| {
            let mut times = Vec::new();
            let mut sink = sink_fn(|event: &Event<'_>| times.push(event.time.0));
            let read = read(text.as_bytes(), &ReadOptions { clock_hz, ..ReadOptions::default() }, &mut sink);
            drop(sink);
            read.map(|stats| (times, stats.worst())).map_err(|error| error.to_string())
        };
        for rate in [None, Some(0)] {
            let refused = with(rate, &text).expect_err("numbers of an untold meaning");
            assert!(refused.contains("--clock-hz") && !refused.contains('\n'), "{refused}");
        }
        assert_eq!(with(Some(2_596_134_000), &text), Ok((vec![1_000_000_001, 2_000_000_000], None)));
        // Among lines with times it is one that is not understood.
        let (seen, stats) = events([line("1.5"), line("7"), line("1.6")].concat().as_bytes());
        assert_eq!(
            (seen.len(), stats.count(Trouble::MalformedEvent), stats.troubles()[0].first_at),
            (2, 1, 2)
        );
    }

    #[test]
    fn a_comment_may_name_the_clock() {
        for (form, mark) in [("copied file", "# trace_clock: global [NAME] x"), ("word", "# clock: NAME")] {
            clock::check_all(form, |name, clock_hz| {
                let text = format!("{}\nls-9 [001] d... 52000: x: y\n", mark.replace("NAME", name));
                let mut times = Vec::new();
                let mut sink = sink_fn(|event: &Event<'_>| times.push(event.time.0));
                let options = ReadOptions { clock_hz, ..ReadOptions::default() };
                let stats = read(text.as_bytes(), &options, &mut sink);
                drop(sink);
                stats.map(|_| times[0])
            });
        }
        // trace-cmd prints any number as seconds.
        for name in ["uptime", "counter"] {
            let text = format!("# clock: {name}\nls-9 [001] d... 0.052000: x: y\n");
            let read = read(text.as_bytes(), &ReadOptions::default(), &mut ());
            assert!(matches!(read, Err(ImportError::UntoldClock(_))), "{name}");
        }
    }

    #[test]
    fn a_cut_file_says_so_only_when_the_cut_shows() {
        let whole = "ls-9 [001] d..2. 1.0: sched_wakeup: comm=ls pid=9 prio=120 target_cpu=001";
        for cut in [6, 12, 20, 26, 33, 36, 45, 70] {
            let text = format!("{whole}\n{}", &whole[..cut]);
            let (seen, stats) = events(text.as_bytes());
            assert_eq!((seen.len(), stats.count(Trouble::TruncatedFile)), (1, 1), "{cut}");
            assert_eq!(stats.troubles().len(), 1, "{cut}");
        }
        let (seen, stats) = events(format!("{whole}\n{whole}").as_bytes());
        assert_eq!((seen.len(), stats.worst()), (2, None));
        let (seen, stats) =
            events(format!("# tracer: nop\n{whole}\n{}", &whole[..whole.len() - 1]).as_bytes());
        assert_eq!((seen.len(), stats.count(Trouble::TruncatedFile)), (2, 1));
        let (_, stats) = events(format!("{whole}\nGreetings\nJane").as_bytes());
        assert_eq!((stats.count(Trouble::TruncatedFile), stats.count(Trouble::ForeignLine)), (0, 2));
    }

    #[test]
    fn bytes_that_are_no_utf8_are_kept_in_names_and_replaced_in_texts() {
        let mut found = Vec::new();
        let mut sink = sink_fn(|event: &Event<'_>| {
            found.push((event.context.comm.as_bytes().to_vec(), format!("{:?}", event.kind)));
        });
        read(
            &b"l\xffs-9 [001] d..2. 1.0: tracing_mark_write: a\xfeb\r\n"[..],
            &ReadOptions::default(),
            &mut sink,
        )
        .expect("a trace");
        drop(sink);
        assert_eq!(found, [(b"l\xffs".to_vec(), "Marker { text: \"a\u{fffd}b\" }".to_string())]);
    }

    #[test]
    fn perf_tells_of_tasks_outside_of_time() {
        let stats = check(
            "ls 9 [001] 5.0: sched:sched_switch: ls:9 [120] D ==> a:7 [120]\n\
             swapper     0 [001]     0.000000: PERF_RECORD_FORK(1:1):(0:0)\n\
             ls 9 [001] 0.0: PERF_RECORD_COMM exec: ls:9/9\n\
             ls 9 [001] 6.0: PERF_RECORD_EXIT(9:9):(1:1)\n",
            &[
                "5000000000 1 ls/9/-1  sched_switch",
                "0 1 swapper/0/-1  task_start",
                "0 1 ls/9/-1  task_name",
                "6000000000 1 ls/9/-1  task_exit",
            ],
        );
        assert_eq!(stats.worst(), None);
    }

    #[test]
    fn comment_lines_of_our_own_are_events() {
        let line =
            "#!              ls-9       (-------) [001] 1.000000000: task_name: comm=a pid=1 b pid=3 tgid=2";
        let named = EventKind::TaskName { pid: Pid(3), tgid: Pid(2), comm: Comm::from("a pid=1 b") };
        assert_eq!(kind(line), named);
        let stats = check("# tracer: nop\n#!/bin/sh\n#! ls-9 [001] 1.0: sched_switch: x\n", &[]);
        assert_eq!(stats.worst(), None);
    }

    #[test]
    fn a_layout_learned_from_one_line_does_not_bend_the_next() {
        let stats = check(
            "            bash-15487   (  15487) [000] d..2.  1555.069808: x: y\n\
             \x20           bash-15487   (  15 87) [000] d..2.  1555.069808: x: y\n\
             \x20           bash-15487   (  15487) [000] d..2.  1555.06980 : x: y\n\
             \x20      bash-154-87       (     87) [000] d..2.  1555.069808: x: y\n\
             \x20           bash-1       (-------) [1000] d..2.  1555.069808: x: y\n\
             \x20           bash-1       (-------) [001] d..2.999999.069808: x: y\n\
             \x20           bash-1       (-------) [001]        5.069808: x: y\n\
             \x20           bash-1       (-------) [001] d..2..    5.069808: x: y\n\
             \x20           bash-12345678 (      7) [001] d..2.     5.069808: x: y\n\
             \x20           bash-4294967295 (      7) [001] d..2.     5.069808: x: y\n",
            &[
                "1555069808000 0 bash/15487/15487 d..2. other x \"y\"",
                "1555069808000 0 bash-154/87/87 d..2. other x \"y\"",
                "1555069808000 1000 bash/1/-1 d..2. other x \"y\"",
                "999999069808000 1 bash/1/-1 d..2. other x \"y\"",
                "5069808000 1 bash/1/-1  other x \"y\"",
                "5069808000 1 bash/1/-1 d..2.. other x \"y\"",
                "5069808000 1 bash/12345678/7 d..2. other x \"y\"",
                "5069808000 1 bash/-1/7 d..2. other x \"y\"",
            ],
        );
        assert_eq!(stats.count(Trouble::ForeignLine), 2);
    }

    #[test]
    fn what_is_no_trace_is_named() {
        let fact = |text: &[u8]| match read(text, &ReadOptions::default(), &mut ()) {
            Err(ImportError::NotATrace(fact)) => fact,
            other => panic!("{other:?}"),
        };
        assert_eq!(fact(b""), "the input is empty");
        assert_eq!(fact(b"\n\n# nothing\n"), "3 lines, all of them blank or comments: no trace");
        let mut text = "\n  Dear \"all\",\n".to_string();
        text.push_str(&"prose\n".repeat(1232));
        assert_eq!(
            fact(text.as_bytes()),
            "no line among 1,234 is an ftrace, trace-cmd or perf script line; the first is: Dear \"all\","
        );
        let long = "ä".repeat(200);
        assert!(fact(long.as_bytes()).ends_with(&format!(" {}…", "ä".repeat(80))));
        assert_eq!(fact(&vec![0; 3 << 20]), "it is neither text nor a binary trace of a known kind");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    #[test]
    fn a_trace_without_events_is_a_trace() {
        let stats = check("# tracer: nop\n#\n# entries-in-buffer/entries-written: 0/0   #P:2\n", &[]);
        assert_eq!(stats, ImportStats::default());
        assert_eq!(check("cpus=2\n", &[]), ImportStats::default());
    }

    #[test]
    fn what_the_buffers_overwrote_is_lost() {
        let lost = |counts: &str| {
            let header = format!("# tracer: nop\n#\n# entries-in-buffer/entries-written: {counts}   #P:4\n");
            let (_, stats) = events(header.as_bytes());
            (stats.count(Trouble::LostEvents), stats.events)
        };
        assert_eq!(lost("189914/1197495"), (1_007_581, 0));
        for nothing in ["205/205", "9/3", "many/5", "5/", "/", "18446744073709551616/5"] {
            assert_eq!(lost(nothing), (0, 0), "{nothing}");
        }
    }

    #[test]
    fn an_endless_line_within_a_trace_is_counted() {
        let line = "ls-9 [001] d..2. 1.0: x: y\n";
        let text = [line, &"z".repeat(2 << 20), "\n", line].concat();
        let (seen, stats) = events(text.as_bytes());
        assert_eq!((seen.len(), stats.count(Trouble::MalformedEvent)), (2, 1));
    }

    #[test]
    fn flags_are_kept_as_they_are() {
        let line = "ls-9 [001] dNh21.ab 1.0: x: y\n";
        let mut flags = Flags::NONE;
        read(
            line.as_bytes(),
            &ReadOptions::default(),
            &mut sink_fn(|event: &Event<'_>| flags = event.context.flags),
        )
        .expect("a trace");
        assert_eq!(flags, Flags::new(b"dNh21.ab"));
    }
}
