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
/// Printed (`{}`) it is what `perf sched latency` 6.12 prints, line ends included; [`LatencyTable::laid_out`] has other
/// versions'. Only waits across holes have a line of their own; perf counts them as others.
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

/// Which perf's layout a table has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LatencyLayout {
    /// That of perf 6.12 to 7.2: times in milliseconds.
    #[default]
    Perf6,
    /// That of perf 7.3: each time with its unit.
    Perf7,
}

impl LatencyLayout {
    /// The header's columns.
    const fn header(self) -> &'static str {
        match self {
            LatencyLayout::Perf6 => {
                "  Task                  |   Runtime ms  |  Count   | Avg delay ms    | Max delay ms    \
                 | Max delay start           | Max delay end          |"
            }
            LatencyLayout::Perf7 => {
                "  Task                    |    Runtime     |  Count   |    Avg delay    |    Max delay    \
                 |      Max delay start  |     Max delay end     |"
            }
        }
    }

    /// The lengths of the lines around the header, before the sum and behind it.
    const fn rules(self) -> [usize; 3] {
        match self {
            LatencyLayout::Perf6 => [139, 113, 51],
            LatencyLayout::Perf7 => [138, 138, 54],
        }
    }

    /// The first column up to the bar. Bytes are counted, as perf does: a name in UTF-8 shifts the columns there too.
    fn task(self, mut task: String) -> String {
        let width = match self {
            LatencyLayout::Perf6 => 24,
            LatencyLayout::Perf7 => 26,
        };
        while task.len() < width {
            task.push(' ');
        }
        task
    }

    /// The column of CPU time.
    fn runtime(self, runtime: Ns) -> String {
        match self {
            LatencyLayout::Perf6 => format!("{:11.3} ms", runtime.as_ms_f64()),
            LatencyLayout::Perf7 => with_unit(runtime, 12),
        }
    }
}

/// A time in the unit that suits it, its number in so many places.
fn with_unit(time: Ns, width: usize) -> String {
    let units = [(1_000_000_000_u64, "s "), (1_000_000, "ms"), (1_000, "us")];
    match units.into_iter().find(|(unit, _)| time.0 >= *unit) {
        Some((unit, name)) => format!("{:width$.3} {name}", time.0 as f64 / unit as f64),
        None => format!("{:width$} ns", time.0),
    }
}

/// A table in a layout of perf's.
#[derive(Clone, Copy, Debug)]
pub struct LatencyText<'t> {
    table: &'t LatencyTable,
    layout: LatencyLayout,
}

impl LatencyRow {
    fn name(&self) -> String {
        match self.merged_threads {
            0 | 1 => format!("  {}:{} ", self.comm, self.pid),
            threads => format!("  {}:({threads}) ", self.comm),
        }
    }

    fn print(&self, layout: LatencyLayout, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (task, runtime) = (layout.task(self.name()), layout.runtime(self.runtime));
        write!(f, "{task}|{runtime} |{:9} |", self.count)?;
        let (start, end) =
            (LatencySeconds(self.max_start).to_string(), LatencySeconds(self.max_end).to_string());
        if layout == LatencyLayout::Perf7 {
            let [average, longest] = [self.avg_delay(), self.max_delay].map(|delay| with_unit(delay, 13));
            return write!(f, "{average} |{longest} |{start:>20} s |{end:>20} s |");
        }
        write!(
            f,
            " avg:{:8.3} ms | max:{:8.3} ms |",
            self.avg_delay().as_ms_f64(),
            self.max_delay.as_ms_f64()
        )?;
        write!(f, " max start: {start:>12} s | max end: {end:>12} s")
    }
}

impl fmt::Display for LatencyRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.print(LatencyLayout::Perf6, f)
    }
}

impl fmt::Display for LatencyTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.laid_out(LatencyLayout::Perf6).fmt(f)
    }
}

impl fmt::Display for LatencyText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LatencyText { table, layout } = *self;
        let [around, before, behind] = layout.rules().map(|width| "-".repeat(width));
        writeln!(f, "\n {around}\n{}\n {around}", layout.header())?;
        for row in &table.rows {
            row.print(layout, f)?;
            writeln!(f)?;
        }
        let (total, runtime) = (layout.task("  TOTAL:".to_string()), layout.runtime(table.runtime));
        writeln!(f, " {before}\n{total}|{runtime} |{:9} |\n {behind}", table.count)?;
        table.print_trouble(f)?;
        writeln!(f)
    }
}

impl LatencyTable {
    /// What perf prints in that layout.
    pub const fn laid_out(&self, layout: LatencyLayout) -> LatencyText<'_> {
        LatencyText { table: self, layout }
    }

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
            writeln!(
                f,
                "  INFO: {} waits are not measured: events are missing while they went on",
                self.crossed
            )?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// As perf 7.3 prints them.
    #[test]
    fn each_unit_begins_where_perfs_does() {
        for (time, printed) in [
            (0, "            0 ns"),
            (999, "          999 ns"),
            (1_000, "        1.000 us"),
            (999_999, "      999.999 us"),
            (1_000_000, "        1.000 ms"),
            (999_999_999, "     1000.000 ms"),
            (1_000_000_000, "        1.000 s "),
            (12_345_678_901_234, "    12345.679 s "),
        ] {
            assert_eq!(with_unit(Ns(time), 13), printed);
        }
    }
}
