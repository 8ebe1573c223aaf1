//! The table of waits, and perf's way of printing it.

use std::collections::BTreeMap;
use std::fmt;

use fairlab_event::{Comm, Ns, Pid};

use super::tasks::{LatencySums, LatencyTask, LatencyTasks};
use super::{LatencyOptions, SortKey};

/// One task, or all tasks of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyRow {
    /// Its name; `:PID` when the trace has names and not this one.
    pub comm: Comm,
    /// Its id; of several tasks the highest.
    pub pid: Pid,
    /// How many tasks the row sums up.
    pub merged_threads: u32,
    /// CPU time by `sched_stat_runtime`; by switches where the trace has none of it.
    pub runtime: Ns,
    /// Number of waits, at least 1.
    pub count: u64,
    /// The sum of all waits.
    pub total_delay: Ns,
    /// The longest wait.
    pub max_delay: Ns,
    /// When the longest wait began; 0 when none had any length.
    pub max_start: Ns,
    /// When it ended.
    pub max_end: Ns,
    /// Waits during which events were lost: not measured, in none of the figures above.
    pub crossed: u64,
}

/// The answer.
///
/// Printed (`{}`) it is what `perf sched latency` 6.12 prints, line ends included. Only waits across holes have a line of their
/// own; perf counts them as others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyTable {
    /// Tasks that have waited, in the order asked for; without the idle task.
    pub rows: Vec<LatencyRow>,
    /// CPU time of all rows.
    pub runtime: Ns,
    /// Waits of all rows.
    pub count: u64,
    /// Wakeups of sleeping tasks, and events out of order.
    pub wakeups: u64,
    /// Events that go back in time, which start and end no wait.
    pub unordered: u64,
    /// Switches away from another task than the one that was switched in before on the same CPU: events are missing.
    pub switch_bugs: u64,
    /// Events that the recorder dropped.
    pub lost_events: u64,
    /// In how many places.
    pub lost_chunks: u64,
    /// Waits during which events were lost, of all tasks, those without a row among them: not measured.
    pub crossed: u64,
    /// Records in the trace. Counted here: events; a reader that skips records may add those.
    pub records: u64,
    /// What the table lacks because the trace does, one clause each.
    pub notices: Vec<String>,
}

impl LatencyRow {
    /// The average wait, rounded down to the nanosecond.
    pub const fn avg_delay(&self) -> Ns {
        Ns(match self.total_delay.0.checked_div(self.count) {
            Some(average) => average,
            None => 0,
        })
    }

    fn new(comm: Comm, pid: Pid, merged_threads: u32, waits: &LatencySums) -> LatencyRow {
        LatencyRow {
            comm,
            pid,
            merged_threads,
            runtime: waits.runtime,
            count: waits.count,
            total_delay: waits.total,
            max_delay: waits.max,
            max_start: waits.max_start,
            max_end: waits.max_end,
            crossed: waits.crossed,
        }
    }
}

/// The rows of `tasks` as `options` ask for them.
///
/// Before sorting they stand by name, or with `by_pid` by id, from the last to the first: perf's order among equals. Beside them
/// the number of waits during which events were lost. Unless `is_all`, only tasks with a chosen wait.
pub(super) fn rows(tasks: &LatencyTasks, options: &LatencyOptions, is_all: bool) -> (Vec<LatencyRow>, u64) {
    let is_chosen = |task: &LatencyTask| is_all || task.is_counted;
    let tasks = tasks.heard_of().into_iter().filter(|(task, _)| !task.pid.is_idle() && is_chosen(task));
    let mut rows: Vec<LatencyRow> = if options.by_pid {
        tasks.map(|(task, comm)| LatencyRow::new(comm, task.pid, 1, &task.waits)).collect()
    } else {
        let mut by_name: BTreeMap<Comm, (Pid, u32, LatencySums)> = BTreeMap::new();
        for (task, comm) in tasks {
            let (_, threads, waits) = by_name.entry(comm).or_insert((task.pid, 0, LatencySums::default()));
            *threads += 1;
            waits.merge(&task.waits);
        }
        let row = |(comm, (pid, threads, waits)): (&Comm, &(Pid, u32, LatencySums))| {
            LatencyRow::new(*comm, *pid, *threads, waits)
        };
        by_name.iter().rev().map(row).collect()
    };
    let crossed = rows.iter().map(|row| row.crossed).sum();
    rows.retain(|row| row.count > 0);
    SortKey::sort(&mut rows, &options.sort);
    (rows, crossed)
}

/// The width of the first column, up to the bar.
const TASK_WIDTH: usize = 24;

impl fmt::Display for LatencyRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut task = if self.merged_threads > 1 {
            format!("  {}:({}) ", self.comm, self.merged_threads)
        } else {
            format!("  {}:{} ", self.comm, self.pid)
        };
        // Bytes, as perf counts them; a name in UTF-8 shifts the columns there too.
        while task.len() < TASK_WIDTH {
            task.push(' ');
        }
        write!(f, "{task}|{:11.3} ms |{:9} |", self.runtime.as_ms_f64(), self.count)?;
        write!(
            f,
            " avg:{:8.3} ms | max:{:8.3} ms |",
            self.avg_delay().as_ms_f64(),
            self.max_delay.as_ms_f64()
        )?;
        let (start, end) =
            (LatencySeconds(self.max_start).to_string(), LatencySeconds(self.max_end).to_string());
        write!(f, " max start: {start:>12} s | max end: {end:>12} s")
    }
}

impl fmt::Display for LatencyTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = |width: usize| "-".repeat(width);
        writeln!(f, "\n {}", rule(139))?;
        writeln!(
            f,
            "  Task                  |   Runtime ms  |  Count   | Avg delay ms    | Max delay ms    \
             | Max delay start           | Max delay end          |"
        )?;
        writeln!(f, " {}", rule(139))?;
        for row in &self.rows {
            writeln!(f, "{row}")?;
        }
        writeln!(f, " {}", rule(113))?;
        writeln!(f, "  TOTAL:                |{:11.3} ms |{:9} |", self.runtime.as_ms_f64(), self.count)?;
        writeln!(f, " {}", rule(51))?;
        self.print_trouble(f)?;
        writeln!(f)
    }
}

impl LatencyTable {
    fn print_trouble(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |part: u64, whole: u64| part as f64 / whole as f64 * 100.0;
        if self.unordered > 0 && self.wakeups > 0 {
            let share = percent(self.unordered, self.wakeups);
            writeln!(
                f,
                "  INFO: {share:.3}% unordered timestamps ({} out of {})",
                self.unordered, self.wakeups
            )?;
        }
        if self.lost_events > 0 && self.records > 0 {
            let share = percent(self.lost_events, self.records);
            let Self { lost_events, lost_chunks, records, .. } = self;
            writeln!(
                f,
                "  INFO: {share:.3}% lost events ({lost_events} out of {records}, in {lost_chunks} chunks)"
            )?;
        }
        if self.crossed > 0 {
            writeln!(f, "  INFO: {} waits across holes in the trace are not measured", self.crossed)?;
        }
        if self.switch_bugs > 0 && self.wakeups > 0 {
            let share = percent(self.switch_bugs, self.wakeups);
            let cause = if self.lost_events > 0 { " (due to lost events?)" } else { "" };
            let Self { switch_bugs, wakeups, .. } = self;
            writeln!(f, "  INFO: {share:.3}% context switch bugs ({switch_bugs} out of {wakeups}){cause}")?;
        }
        Ok(())
    }
}

/// A time in seconds, cut to microseconds.
struct LatencySeconds(Ns);

impl fmt::Display for LatencySeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0.0 / 1_000_000_000, self.0.0 % 1_000_000_000 / 1_000)
    }
}
