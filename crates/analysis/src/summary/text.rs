//! The summary for people.
//!
//! Must not know: how sums come about.

use std::fmt;

use fairlab_event::{EscapedText, Ns};

use super::{Scope, SummaryReport, TaskWaitSummary, ValueSpread};
use crate::blame::text::WaitersBrief;
use crate::columns::{self, ms, us};
use crate::counts::NameCounts;
use crate::task_selector::TaskSelector;
use crate::tracker::WaitCause;

/// Prints a summary with tables of at most `rows` rows.
#[derive(Clone, Copy, Debug)]
pub struct SummaryText<'r> {
    /// The summary.
    pub report: &'r SummaryReport,
    /// The length of each table.
    pub rows: usize,
}

impl fmt::Display for SummaryText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = self.report;
        let cpus = report.cpus.iter().filter(|cpu| cpu.observed.0 > 0).count();
        let cpus = if report.tells_cpus { format!(", {cpus} CPUs") } else { String::new() };
        write!(f, "{} ms{cpus}, {} events", ms(report.span().0), report.events)?;
        for (preposition, name) in [("kernel", &report.system.release), ("on", &report.system.node)] {
            if !name.is_empty() {
                write!(f, ", {preposition} {name}")?;
            }
        }
        writeln!(f)?;
        writeln!(f)?;
        percentiles(f, "Wakeup latency", &report.all.wakeups, report.span())?;
        if self.has_forks() {
            percentiles(f, "Fork wait", &report.all.forks, report.span())?;
        }
        percentiles(f, "Preemption wait", &report.all.preemptions, report.span())?;
        self.waits(f, "name", &report.comms)?;
        self.waits(f, "task", &report.tasks)?;
        self.culprits(f)?;
        self.names(f, "name", |who| !matches!(who, TaskSelector::Group(_)))?;
        self.names(f, "group", |who| matches!(who, TaskSelector::Group(_)))?;
        self.placement(f)?;
        self.switches(f)?;
        self.migrations(f)?;
        if report.tells_cpus {
            self.cpus(f)?;
            self.depths(f)?;
            self.unconserved(f)?;
        }
        self.throttling(f)?;
        self.pairs(f)?;
        self.not_measured(f)
    }
}

/// How long tasks waited for a quota; of a group also how long it was throttled.
fn quota_cells(who: &TaskSelector, counts: &NameCounts) -> Vec<String> {
    let waited = u64::try_from(counts.throttled_wait.sum()).unwrap_or(u64::MAX);
    let group = counts.throttled.map_or_else(|| "-".to_string(), |told| ms(told.throttled_ns));
    let is_group = matches!(who, TaskSelector::Group(_));
    [Some(ms(waited)), is_group.then_some(group)].into_iter().flatten().collect()
}

/// schbench's block.
fn percentiles(f: &mut fmt::Formatter<'_>, title: &str, spread: &ValueSpread, span: Ns) -> fmt::Result {
    let (seconds, total) = (span.0 / 1_000_000_000, spread.total());
    writeln!(f, "{title} percentiles (usec) runtime {seconds} (s) ({total} total samples)")?;
    for percentile in spread.percentiles() {
        let mark = if percentile.per_mille == 990 { "*" } else { " " };
        let (whole, tenth) = (percentile.per_mille / 10, percentile.per_mille % 10);
        let value = percentile.value / 1_000;
        writeln!(f, "\t{mark}{whole}.{tenth}th: {value} ({} samples)", percentile.samples)?;
    }
    let (least, greatest) = (spread.min().unwrap_or(0) / 1_000, spread.max().unwrap_or(0) / 1_000);
    writeln!(f, "\t min={least}, max={greatest}\n")
}

/// So large a part of the CPUs' time is reported as unknown.
const UNKNOWN_SAID: f64 = 0.001;

fn share(part: f64) -> String {
    format!("{:.2} %", 100.0 * part)
}

impl SummaryText<'_> {
    fn per_second(&self, count: u64) -> String {
        format!("{:.1} /s", count as f64 * 1e9 / self.report.span().0.max(1) as f64)
    }

    /// Whether new tasks waited: otherwise tables have no columns for that.
    fn has_forks(&self) -> bool {
        self.report.all.forks.total() > 0
    }

    /// Says how many rows were left out.
    fn rest(&self, f: &mut fmt::Formatter<'_>, all: usize) -> fmt::Result {
        match all.saturating_sub(self.rows) {
            0 => Ok(()),
            left_out => writeln!(f, "… and {left_out} more"),
        }
    }

    fn waits(&self, f: &mut fmt::Formatter<'_>, title: &str, rows: &[TaskWaitSummary]) -> fmt::Result {
        writeln!(f, "Waits by {title} (usec), the longest first")?;
        let row = |row: &TaskWaitSummary| {
            let of = |spread: &ValueSpread| {
                let value = |value: Option<u64>| value.map_or_else(|| "-".to_string(), us);
                let ranks = [500, 990].map(|per_mille| value(spread.percentile(per_mille)));
                [vec![spread.total().to_string()], ranks.to_vec(), vec![value(spread.max())]].concat()
            };
            let who = match row.pid {
                Some(pid) => format!("{}:{pid}", row.comm),
                None => format!("{}:({})", row.comm, row.tasks),
            };
            let counts = [row.switches.voluntary(), row.switches.involuntary(), row.migrations];
            [
                vec![who],
                of(&row.waits.wakeups),
                if self.has_forks() { of(&row.waits.forks) } else { Vec::new() },
                of(&row.waits.preemptions),
                vec![ms(row.run.0)],
                counts.map(|count| count.to_string()).to_vec(),
            ]
            .concat()
        };
        let table: Vec<Vec<String>> = rows.iter().take(self.rows).map(row).collect();
        let of = |begin: &'static str| [begin, "p50", "p99", "max"];
        let forks = if self.has_forks() { &of("forked")[..] } else { &[] };
        let rest = ["ran (msec)", "voluntary", "involuntary", "migrations"];
        let header = [&[title][..], &of("wakeups"), forks, &of("preempted"), &rest].concat();
        columns::print(f, 1, &header, &table)?;
        self.rest(f, rows.len())?;
        writeln!(f)
    }

    fn culprits(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.report.waiting[..] {
            [] => Ok(()),
            waiting => writeln!(f, "{}", WaitersBrief(waiting)),
        }
    }

    /// Sums of the tasks that are meant, longest running time first.
    fn sums(&self, is_meant: impl Fn(&TaskSelector) -> bool) -> Vec<(&TaskSelector, &NameCounts)> {
        let mut sums = self.report.by_name.iter().filter(|(who, _)| is_meant(who)).collect::<Vec<_>>();
        sums.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.run_ns));
        sums
    }

    /// What tasks of one name come to, or of one group.
    fn names(
        &self,
        f: &mut fmt::Formatter<'_>,
        title: &str,
        is_meant: impl Fn(&TaskSelector) -> bool,
    ) -> fmt::Result {
        let sums = self.sums(is_meant);
        if sums.is_empty() {
            return Ok(());
        }
        writeln!(f, "Sums by {title} (msec; waits usec), longest running time first")?;
        let is_known = self.report.throttling.is_some();
        let value = |value: Option<u64>| value.map_or_else(|| "-".to_string(), us);
        let row = |(who, counts): &(&TaskSelector, &NameCounts)| {
            let taken = counts.run_ns as f64 + counts.wait_ns as f64;
            let slowdown = (counts.run_ns > 0).then(|| format!("{:.3}", taken / counts.run_ns as f64));
            let forks = &counts.fork_wait;
            let forks = [forks.percentile(990), forks.max()].map(value);
            let told = [
                EscapedText(&who.to_string()).to_string(),
                counts.tasks.to_string(),
                ms(counts.run_ns),
                ms(counts.wait_ns),
                slowdown.unwrap_or_else(|| "-".to_string()),
                value(counts.wakeup_latency.percentile(500)),
                value(counts.wakeup_latency.percentile(990)),
                value(counts.wakeup_latency.max()),
            ];
            let preempted = &counts.preemption_wait;
            let rest = [value(preempted.percentile(990)), value(preempted.max())];
            let quota = if is_known { quota_cells(who, counts) } else { Vec::new() };
            [&told[..], if self.has_forks() { &forks } else { &[] }, &rest, &quota].concat()
        };
        let table = sums.iter().take(self.rows).map(row).collect::<Vec<_>>();
        let told = [title, "tasks", "ran", "waited", "slowdown", "woken p50", "p99", "max"];
        let forks = if self.has_forks() { &["forked p99", "max"][..] } else { &[] };
        let has_groups = sums.iter().any(|(who, _)| matches!(who, TaskSelector::Group(_)));
        let quota = if has_groups { &["for quota", "throttled"][..] } else { &["for quota"] };
        let quota = if is_known { quota } else { &[] };
        let header = [&told[..], forks, &["preempted p99", "max"], quota].concat();
        columns::print(f, 1, &header, &table)?;
        self.rest(f, sums.len())?;
        if is_known {
            writeln!(
                f,
                "for quota: the part of their waits in which their group was throttled; blame sums the same"
            )?;
        }
        if is_known && has_groups {
            writeln!(
                f,
                "throttled: how long the group was, each CPU by itself, whether or not a task waited there"
            )?;
        }
        writeln!(f)
    }

    /// Where tasks of one name, or of one group, ran; of a machine whose topology is known.
    fn placement(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_told = |(_, counts): &(&TaskSelector, &NameCounts)| {
            counts.placement.is_some_and(|placement| placement.several_ns > 0)
                || counts.moves.is_some() && counts.migrations > 0
                || counts.unfairness.is_some()
        };
        let sums = self.sums(|_| true).into_iter().filter(is_told).collect::<Vec<_>>();
        if sums.is_empty() {
            return Ok(());
        }
        writeln!(
            f,
            "Placement: of the time, two of them on one core, cache or node while another was empty; migrations"
        )?;
        let span = self.report.span().0;
        let row = |(who, counts): &(&TaskSelector, &NameCounts)| {
            let metrics = counts.metrics(span);
            let metric =
                |name: &str| metrics.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
            let of = |name: &str| metric(name).map_or_else(|| "-".to_string(), share);
            let moves = counts.moves.unwrap_or_default();
            let count = |count: Option<u64>| count.map_or_else(|| "-".to_string(), |count| count.to_string());
            vec![
                EscapedText(&who.to_string()).to_string(),
                of("stacked_core_share"),
                of("stacked_llc_share"),
                of("stacked_node_share"),
                count(moves.smt),
                count(moves.llc),
                count(moves.node),
                count(moves.other_node),
                metric("unfairness").map_or_else(|| "-".to_string(), |value| format!("{value:.3}")),
            ]
        };
        let table = sums.iter().take(self.rows).map(row).collect::<Vec<_>>();
        let header = [
            "who",
            "core",
            "llc",
            "node",
            "within core",
            "within llc",
            "within node",
            "to other node",
            "unfairness",
        ];
        columns::print(f, 1, &header, &table)?;
        self.rest(f, sums.len())?;
        writeln!(f)
    }

    fn switches(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let switches = &self.report.switches;
        let (voluntary, involuntary) = (switches.voluntary(), switches.involuntary());
        writeln!(f, "Switches of tasks: {} ({})", switches.total(), self.per_second(switches.total()))?;
        writeln!(
            f,
            "  voluntary    {voluntary} ({}): {} slept, {} exited",
            self.per_second(voluntary),
            switches.slept,
            switches.exited
        )?;
        writeln!(
            f,
            "  involuntary  {involuntary} ({}): {} preempted in the kernel, {} on the way to user mode, {} yielded, {} not known",
            self.per_second(involuntary),
            switches.preempted_in_kernel,
            switches.preempted,
            switches.yielded,
            switches.left_runnable
        )
    }

    fn migrations(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moves = &self.report.migrations;
        writeln!(f, "Migrations: {} ({})", moves.total(), self.per_second(moves.total()))?;
        writeln!(f, "  wakeup       {}", moves.wakeup)?;
        writeln!(f, "  asked for    {} (exec, own affinity)", moves.asked)?;
        writeln!(
            f,
            "  balance      {}: {} softirq, {} new idle, {} stopper, {} not known",
            moves.balance(),
            moves.softirq,
            moves.new_idle,
            moves.stopper,
            moves.other
        )?;
        writeln!(f, "New tasks that began on another CPU than their creator's: {}\n", moves.fork)
    }

    fn cpus(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let idle = self.report.idle_share().map_or_else(|| "unknown".to_string(), share);
        write!(f, "Idle share: {idle}")?;
        match self.report.idle_bounds() {
            Some((least, most)) if most - least > UNKNOWN_SAID => {
                writeln!(f, " of what is known; {} to {} of all CPUs' time", share(least), share(most))?;
            }
            _ => writeln!(f)?,
        }
        let cpus = &self.report.cpus;
        let row = |cpu: &super::CpuTime| {
            let observed = cpu.observed.0 as f64;
            let idle =
                if cpu.observed.0 == 0 { "-".to_string() } else { share(cpu.idle.0 as f64 / observed) };
            vec![
                cpu.cpu.to_string(),
                idle,
                ms(cpu.observed.0),
                cpu.switches.to_string(),
                format!("{:.3}", cpu.depth_mean),
                cpu.depth_max.to_string(),
            ]
        };
        let known: Vec<&super::CpuTime> = cpus.iter().filter(|cpu| cpu.observed.0 > 0).collect();
        let rows: Vec<Vec<String>> = known.iter().map(|cpu| row(cpu)).collect();
        columns::print(f, 0, &["CPU", "idle", "known (msec)", "switches", "mean depth", "max depth"], &rows)?;
        let silent: Vec<String> =
            cpus.iter().filter(|cpu| cpu.observed.0 == 0).map(|cpu| cpu.cpu.to_string()).collect();
        if !silent.is_empty() {
            writeln!(f, "CPUs that said nothing, neither idle nor busy: {}", silent.join(" "))?;
        }
        writeln!(f)
    }

    fn depths(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let depths = &self.report.depths;
        writeln!(f, "Runqueue depth by time: mean {:.3}, max {}", depths.mean, depths.max)?;
        let observed = depths.observed.0.max(1) as f64;
        let row = |(depth, time): (usize, &Ns)| vec![depth.to_string(), share(time.0 as f64 / observed)];
        let used = depths.at.iter().enumerate().filter(|(_, time)| time.0 > 0);
        let rows: Vec<Vec<String>> = used.clone().map(row).take(self.rows).collect();
        columns::print(f, 0, &["depth", "of CPU time"], &rows)?;
        self.rest(f, used.count())?;
        writeln!(f)
    }

    fn unconserved(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Unconserved time: a CPU idles while a task waits that may run there")?;
        let span = self.report.span().0.max(1) as f64;
        let row = |part: &super::Unconserved| {
            let Scope { name, .. } = &part.scope;
            vec![name.clone(), ms(part.time.0), share(part.time.0 as f64 / span), ms(part.cpu_time.0)]
        };
        let rows: Vec<Vec<String>> = self.report.unconserved.iter().map(row).collect();
        columns::print(f, 1, &["within", "msec", "of the time", "CPU time lost (msec)"], &rows)?;
        writeln!(f)
    }

    fn throttling(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(throttling) = self.report.throttling else { return Ok(()) };
        let spread = &self.report.all.throttled;
        let value = |value: Option<u64>| value.map_or_else(|| "-".to_string(), us);
        writeln!(
            f,
            "Throttled: {} times, {} ms in all, counted on each CPU{}",
            throttling.count,
            ms(throttling.time.0),
            if throttling.is_concluded { "; concluded from quotas and run time" } else { "" }
        )?;
        writeln!(
            f,
            "  {} waits were for a group's quota, for p50 {} p99 {} max {} usec of them\n",
            spread.total(),
            value(spread.percentile(500)),
            value(spread.percentile(990)),
            value(spread.max())
        )
    }

    fn pairs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.report.pairs.is_empty() {
            return Ok(());
        }
        writeln!(f, "Most frequent switches from task to task")?;
        let row = |pair: &super::SwitchPair| {
            let name = |(comm, pid): (fairlab_event::Comm, fairlab_event::Pid)| format!("{comm}:{pid}");
            vec![name(pair.prev), name(pair.next), pair.count.to_string()]
        };
        let rows: Vec<Vec<String>> = self.report.pairs.iter().take(self.rows).map(row).collect();
        columns::print(f, 2, &["from", "to", "count"], &rows)?;
        if self.report.pairs_floor > 0 {
            writeln!(f, "Counts may be up to {} too low.", self.report.pairs_floor)?;
        }
        writeln!(f)
    }

    fn not_measured(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = self.report;
        if report.losses > 0 {
            let (losses, crossed) = (report.losses, report.all.crossed);
            writeln!(
                f,
                "Events were lost at {losses} places; {crossed} waits across them are not measured."
            )?;
        }
        if report.censored.is_empty() {
            return Ok(());
        }
        writeln!(f, "Still waiting when the trace ends: {}", report.censored.len())?;
        let row = |wait: &super::Censored| {
            vec![
                format!("{}:{}", wait.comm, wait.pid),
                wait.cpu.map_or_else(|| "not queued".to_string(), |cpu| format!("CPU {cpu}")),
                match wait.cause {
                    WaitCause::Wakeup => "woken",
                    WaitCause::New => "forked",
                    _ => "left runnable",
                }
                .to_string(),
                us(wait.so_far.0),
                if wait.crossed_loss { "events lost meanwhile" } else { "" }.to_string(),
            ]
        };
        let rows: Vec<Vec<String>> = report.censored.iter().take(self.rows).map(row).collect();
        columns::print(f, 3, &["task", "on", "since it was", "so far (usec)", ""], &rows)?;
        self.rest(f, report.censored.len())
    }
}
