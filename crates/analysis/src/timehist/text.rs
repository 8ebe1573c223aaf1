//! Rows and summary in the layout of `perf sched timehist` 6.12, byte by byte.
//!
//! Departs: the state column tells `R+` from `R` and prints joined states (`D|K`) whole, where perf prints one letter. Where
//! events were lost there is a dash.
//!
//! Must not know: how rows come about.

use std::fmt::{self, Write};
use std::io::Write as _;

use fairlab_event::{Ns, Pid};

use super::totals::{TaskSummary, TimehistSummary};
use super::{Label, SwitchRow, TimehistRow};

/// Which columns there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimehistColumns {
    /// The state in which the task left.
    pub state: bool,
    /// The task that ran next.
    pub next: bool,
    /// Wakeups have rows, for which the others leave room.
    pub wakeups: bool,
}

/// Prints rows one after the other: the column of names grows with the longest name so far.
#[derive(Clone, Debug)]
pub struct TimehistLayout {
    columns: TimehistColumns,
    name_width: usize,
    line: RowLine,
}

/// perf's width of the column of names, as long as none is wider.
const NAME_WIDTH: usize = 30;

impl TimehistLayout {
    /// Nothing printed yet.
    pub const fn new(columns: TimehistColumns) -> TimehistLayout {
        TimehistLayout { columns, name_width: NAME_WIDTH, line: RowLine(Vec::new()) }
    }

    /// Adds the three lines above the rows to `text`.
    pub fn head(&self, text: &mut String) {
        let width = self.name_width;
        let rule = |width: usize| "-".repeat(width);
        // A string takes everything.
        let mut line = |one: [&str; 7]| {
            let [time, cpu, name, wait, delay, run, state] = one;
            let _ = write!(text, "{time:>15} {cpu:<6}  {name:<width$}  {wait:>9}  {delay:>9}  {run:>9}");
            if self.columns.state {
                let _ = write!(text, "  {state:>5}");
            }
            text.push('\n');
        };
        line(["time", "   cpu", "task name", "wait time", "sch delay", "run time", "state"]);
        line(["", "", "[tid/pid]", "(msec)", "(msec)", "(msec)", ""]);
        let (name, state) = (rule(width), rule(5));
        line([&rule(15), &rule(6), &name, &rule(9), &rule(9), &rule(9), &state]);
    }

    /// Adds one line to `text`.
    pub fn row(&mut self, row: &TimehistRow, text: &mut String) {
        self.line.0.clear();
        match row {
            TimehistRow::Switch(row) => self.switch(row),
            TimehistRow::Wakeup { time, cpu, waker, wakee } => {
                self.event(*time, cpu.0, waker);
                self.line.format(format_args!("awakened: {wakee}"));
            }
            TimehistRow::Migration { time, cpu, by, task, orig_cpu, dest_cpu } => {
                self.event(*time, cpu.0, by);
                self.line.format(format_args!("migrated: {task} cpu {orig_cpu} => {dest_cpu}"));
            }
            TimehistRow::Lost { time, cpu, count } => {
                self.line.seconds(*time);
                self.line.format(format_args!(" lost {} events on cpu {cpu}", count.unwrap_or(0)));
            }
        }
        self.line.0.push(b'\n');
        // Names are shown with what is no text escaped.
        text.push_str(std::str::from_utf8(&self.line.0).unwrap_or_default());
    }

    fn switch(&mut self, row: &SwitchRow) {
        self.begin(row.time, row.cpu.0, &row.shown.label);
        let times = [row.shown.wait, row.shown.delay, row.run];
        let line = &mut self.line;
        for (time, crossed) in times.into_iter().zip([row.crossed.off, row.crossed.delay, row.crossed.run]) {
            match crossed {
                true => line.format(format_args!("{:>10} ", "-")),
                false => line.milliseconds(time),
            }
        }
        if self.columns.state {
            // A yield and a preemption look alike in one letter.
            match row.task.tid.is_idle() {
                true => line.format(format_args!(" {:>5} ", "I")),
                false => line.format(format_args!(" {:>5} ", row.state.to_string())),
            }
        }
        let width = self.name_width;
        if self.columns.next {
            let next = format!("next: {}[{}]", row.next_comm, row.next_pid);
            line.format(format_args!(" {next:<width$}"));
        } else if self.columns.wakeups {
            line.format(format_args!("  {:<width$}", ""));
        }
    }

    /// The begin of a row about something other than a switch.
    fn event(&mut self, time: Ns, cpu: u32, by: &Label) {
        self.begin(time, cpu, by);
        self.line.format(format_args!("  {:9}  {:9}  {:9} ", "", "", ""));
    }

    fn begin(&mut self, time: Ns, cpu: u32, task: &Label) {
        let line = &mut self.line;
        line.seconds(time);
        line.0.extend(b" [");
        line.number(cpu.into(), 4, b'0');
        line.0.extend(b"]  ");
        let start = line.0.len();
        line.label(task);
        // Bytes, as perf counts them.
        let length = line.0.len() - start;
        self.name_width = self.name_width.max(length);
        line.0.resize(start + self.name_width + 1, b' ');
    }

    /// Adds the summary to `text`.
    pub fn summary(&self, summary: &TimehistSummary, text: &mut String) {
        // A string takes everything.
        let _ = self.write_summary(summary, text);
    }

    fn write_summary(&self, summary: &TimehistSummary, text: &mut String) -> fmt::Result {
        let width = self.name_width;
        let title = if self.columns.state { "Wait-time summary" } else { "Runtime summary" };
        let headings = match self.columns.state {
            true => "   run-time      sleep      iowait     preempt       delay",
            false => "   run-time    min-run     avg-run     max-run  stddev  migrations",
        };
        writeln!(text, "\n{title}\n{:>width$}  parent   sched-in  {headings}", "comm")?;
        let unit = if self.columns.state { "(msec)" } else { "%" };
        writeln!(
            text,
            "{:width$}            (count)       (msec)     (msec)      (msec)      (msec)       {unit}",
            ""
        )?;
        writeln!(text, "{}", "-".repeat(117))?;
        for task in &summary.tasks {
            self.task(task, text)?;
        }
        if summary.tasks.is_empty() {
            writeln!(text, "<no task was switched out>")?;
        }
        if !summary.cpus.is_empty() {
            writeln!(text, "\nIdle stats:")?;
        }
        for cpu in &summary.cpus {
            let share = 100.0 * cpu.idle.0 as f64 / summary.span.0.max(1) as f64;
            match cpu.switches {
                0 => writeln!(text, "    CPU {:2} unknown: no switch", cpu.cpu)?,
                _ => writeln!(
                    text,
                    "    CPU {:2} idle for {}  msec  ({share:6.2}%)",
                    cpu.cpu,
                    Milliseconds(cpu.idle, 6)
                )?,
            }
        }
        let tasks = summary.tasks.len();
        writeln!(text, "\n    Total number of unique tasks: {tasks}")?;
        writeln!(text, "Total number of context switches: {}", summary.switches)?;
        writeln!(text, "           Total run time (msec): {} ", Milliseconds(summary.run, 2))?;
        let span = Milliseconds(summary.span, 2);
        writeln!(text, "    Total scheduling time (msec): {span}  (x {})", summary.nr_cpus)?;
        if summary.crossed > 0 {
            writeln!(
                text,
                "\nEvents are missing during {} stays or the waits before: these are not measured.",
                summary.crossed
            )?;
        }
        Ok(())
    }

    fn task(&self, task: &TaskSummary, text: &mut String) -> fmt::Result {
        let label = task.label.to_string();
        let padding = self.name_width.saturating_sub(label.len());
        let parent = task.parent.unwrap_or(Pid::UNKNOWN);
        write!(text, "{:padding$}{label}   {parent:>5}  {:9} ", "", task.count)?;
        let (run, off) = (Milliseconds(task.run, 8), task.off);
        if self.columns.state {
            let [sleep, iowait, preempt, delay] =
                [off.sleep, off.iowait, off.preempt, task.delay].map(|time| Milliseconds(time, 6));
            return writeln!(text, "{run} {sleep}  {iowait}  {preempt}  {delay} ");
        }
        let [least, mean, most] =
            [task.run_min, task.run_mean, task.run_max].map(|time| Milliseconds(time, 6));
        let (deviation, migrations) = (task.run_deviation_percent, task.migrations);
        writeln!(text, "{run} {least}  {mean}  {most}   {deviation:5.2}   {migrations:5}")
    }
}

/// A line that is put together: a list has millions, and formatters would take most of its time.
#[derive(Clone, Debug)]
struct RowLine(Vec<u8>);

impl RowLine {
    /// Adds what is seldom or short.
    fn format(&mut self, arguments: fmt::Arguments<'_>) {
        // A list of bytes takes everything.
        let _ = self.0.write_fmt(arguments);
    }

    /// Adds a number, with `fill` before it up to `width`, which is no more than the largest has.
    #[inline]
    fn number(&mut self, mut number: u64, width: usize, fill: u8) {
        let mut digits = [fill; 20];
        let mut start = digits.len();
        while start == digits.len() || number > 0 {
            start -= 1;
            digits[start] = b'0' + (number % 10) as u8;
            number /= 10;
        }
        self.0.extend_from_slice(&digits[start.min(digits.len() - width)..]);
    }

    fn id(&mut self, Pid(id): Pid) {
        if id < 0 {
            self.0.push(b'-');
        }
        self.number(id.unsigned_abs().into(), 0, b' ');
    }

    /// Seconds cut to microseconds, as wide as perf's column.
    fn seconds(&mut self, Ns(time): Ns) {
        self.number(time / 1_000_000_000, 8, b' ');
        self.0.push(b'.');
        self.number(time % 1_000_000_000 / 1_000, 6, b'0');
    }

    /// As [`Milliseconds`], and a space.
    fn milliseconds(&mut self, Ns(time): Ns) {
        self.number(time / 1_000_000, 6, b' ');
        self.0.push(b'.');
        self.number(time % 1_000_000 / 1_000, 3, b'0');
        self.0.push(b' ');
    }

    /// As the label is displayed.
    fn label(&mut self, Label { comm, tid, tgid }: &Label) {
        match comm.as_bytes() {
            name if name.iter().all(|byte| matches!(byte, b' '..=b'~')) => self.0.extend_from_slice(name),
            _ => self.format(format_args!("{comm}")),
        }
        if tgid.is_idle() {
            return;
        }
        self.0.push(b'[');
        self.id(*tid);
        if tid != tgid {
            self.0.push(b'/');
            self.id(*tgid);
        }
        self.0.push(b']');
    }
}

/// Milliseconds cut to microseconds, the part before the point as wide as told.
struct Milliseconds(Ns, usize);

impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Milliseconds(Ns(time), width) = self;
        write!(f, "{:width$}.{:03}", time / 1_000_000, time % 1_000_000 / 1_000)
    }
}
