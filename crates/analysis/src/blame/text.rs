//! The sums for people: a sentence, then tables.
//!
//! Must not know: how sums come about.

use std::fmt;

use super::answer::BlameAnswer;
use super::change::{BlameChange, ChangeRow};
use super::report::{BlameReport, CulpritRow, RuleRow};
use crate::causes::WaitBehind;
use crate::columns::{self, ms};

/// Prints an answer with tables of at most `rows` rows: of one trace its sums, of two what differs.
#[derive(Clone, Copy, Debug)]
pub struct AnswerText<'r> {
    /// The answer.
    pub answer: &'r BlameAnswer,
    /// The length of each table.
    pub rows: usize,
}

/// Prints a report with tables of at most `rows` rows.
#[derive(Clone, Copy, Debug)]
pub struct BlameText<'r> {
    /// The report.
    pub report: &'r BlameReport,
    /// The length of each table.
    pub rows: usize,
}

/// Prints what differs between two reports, with tables of at most `rows` rows.
#[derive(Clone, Copy, Debug)]
pub struct ChangeText<'r> {
    /// Both sides, before and after, each with its trace's name.
    pub sides: [(&'r str, &'r BlameReport); 2],
    /// What differs.
    pub change: &'r BlameChange,
    /// The length of each table.
    pub rows: usize,
}

/// Prints what leads to the rest: the sentence, and whom the waits were behind.
#[derive(Clone, Copy, Debug)]
pub struct BlameBrief<'r>(pub &'r BlameReport);

/// Prints whom the waits of each name were behind.
#[derive(Clone, Copy, Debug)]
pub struct WaitersBrief<'r>(pub &'r [BlameReport]);

/// So many culprits stand in the sentence, and so many of each waiter where there are several.
const NAMED: usize = 3;

/// So many rows has a table that leads to the rest.
const BRIEF: usize = 5;

/// Smaller parts do not.
const PART_NAMED: f64 = 0.05;

/// Who had the CPU, in a table.
pub fn who(row: &CulpritRow) -> String {
    let name = &row.runner;
    match row.behind {
        WaitBehind::KernelThread => format!("{name} (kernel thread)"),
        WaitBehind::RealTime => format!("{name} (real-time)"),
        WaitBehind::OtherGroup => format!("{name} (another group)"),
        WaitBehind::OwnName => format!("{name} (its own name)"),
        WaitBehind::OtherName => name.clone(),
        WaitBehind::Interrupts => "interrupts and soft interrupts".to_string(),
        WaitBehind::Throttled => "its group's quota was used up".to_string(),
        WaitBehind::Idle => "an idle CPU, until that came out of idle".to_string(),
        WaitBehind::Waking => "the way from its wakeup to a queue".to_string(),
        WaitBehind::Unknown => "unknown: the trace does not show it".to_string(),
    }
}

/// What time for a quota is, where some of it is told: a group is throttled longer than its tasks wait for that.
pub fn quota_words(report: &BlameReport) -> Option<&'static str> {
    let is_told = report.culprits.iter().any(|row| row.behind == WaitBehind::Throttled);
    is_told.then_some(
        "Time for a group's quota: the part of these waits in which it was throttled. A summary has besides, as 'throttled', how long \
         the group was, whether or not a task waited.",
    )
}

/// The same, in a sentence.
fn behind(row: &CulpritRow) -> String {
    let name = &row.runner;
    match row.behind {
        WaitBehind::KernelThread => format!("behind the kernel thread '{name}'"),
        WaitBehind::RealTime => format!("behind the real-time task '{name}'"),
        WaitBehind::OtherGroup => format!("behind '{name}' of another group"),
        WaitBehind::OwnName => format!("behind its own '{name}'"),
        WaitBehind::OtherName => format!("behind '{name}'"),
        WaitBehind::Interrupts => "for interrupts".to_string(),
        WaitBehind::Throttled => "for its group's quota".to_string(),
        WaitBehind::Idle => "at a CPU that came out of idle".to_string(),
        WaitBehind::Waking => "on the way from its wakeup to a queue".to_string(),
        WaitBehind::Unknown => "behind what the trace does not show".to_string(),
    }
}

/// A report's largest cause in a line, without its end; and that of the longest waits, if it is another.
pub fn largest_cause(report: &BlameReport) -> Option<String> {
    let row = report.culprits.first()?;
    let told = format!(
        "Largest cause: {}, {}, {} of the waiting",
        who(row),
        length(row.time_ns),
        percent(row.share)
    );
    Some(match largest_of_longest(report) {
        Some(longest) if longest.tail_ns > row.tail_ns => {
            format!("{told}; of the longest waits: {}, {}", who(longest), percent(longest.tail_share))
        }
        _ => told,
    })
}

/// The culprit with the most of the longest waits; of equal ones that with the most of all.
fn largest_of_longest(report: &BlameReport) -> Option<&CulpritRow> {
    report.culprits.iter().reduce(|one, other| if other.tail_ns > one.tail_ns { other } else { one })
}

/// Whether a group's quota is the largest cause of the longest waits.
pub fn is_of_quota(report: &BlameReport) -> bool {
    largest_of_longest(report).is_some_and(|row| row.behind == WaitBehind::Throttled && row.tail_ns > 0)
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        share if share >= 10.0 => format!("{share:.0} %"),
        share => format!("{share:.1} %"),
    }
}

/// A time that reads well.
fn length(ns: u64) -> String {
    match ns {
        1_000_000_000.. => format!("{:.2} s", ns as f64 / 1e9),
        1_000_000.. => format!("{:.2} ms", ns as f64 / 1e6),
        _ => format!("{:.1} us", ns as f64 / 1e3),
    }
}

/// The greatest culprits, by their share in all waits or in the longest.
fn greatest(report: &BlameReport, share: impl Fn(&CulpritRow) -> f64) -> String {
    let mut rows = report.culprits.iter().filter(|row| share(row) >= PART_NAMED).collect::<Vec<_>>();
    rows.sort_by(|one, other| share(other).total_cmp(&share(one)));
    let named = rows.iter().take(NAMED).map(|row| format!("{} {}", percent(share(row)), behind(row)));
    let named = named.collect::<Vec<_>>().join(", ");
    if named.is_empty() { "behind many, none of them for much of it".to_string() } else { named }
}

/// All of it in one sentence.
pub fn headline(report: &BlameReport) -> String {
    let whose = match &report.whose[..] {
        [] => "All tasks".to_string(),
        names => names.join(", "),
    };
    if report.waits == 0 {
        return format!("{whose} waited in no wait that is measured.");
    }
    let wanted = report.ran_ns.saturating_add(report.wait_ns);
    let part = percent(report.wait_ns as f64 / wanted.max(1) as f64);
    let all = format!(
        "{whose} waited {} in {} waits, {part} of run and waiting time: {}",
        length(report.wait_ns),
        report.waits,
        greatest(report, |row| row.share)
    );
    let tail = &report.tail;
    // The longest of few tell nothing of their own.
    if tail.waits * 10 > report.waits {
        return format!("{all}.");
    }
    format!(
        "{all}; of its {} longest waits ({}, those of about {} and more) {}.",
        tail.waits,
        percent(tail.waits as f64 / report.waits as f64),
        length(tail.above_ns),
        greatest(report, |row| row.tail_share),
    )
}

/// A table with a title; of more rows than `most` it says how many are left out.
fn table(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    header: &[&str],
    rows: &[Vec<String>],
    most: usize,
) -> fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(f, "\n{title}")?;
    let shown = &rows[..rows.len().min(most)];
    columns::print(f, 1, header, shown)?;
    match rows.len() - shown.len() {
        0 => Ok(()),
        more => writeln!(f, "… and {more} more"),
    }
}

impl fmt::Display for AnswerText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AnswerText { answer, rows } = *self;
        match (&answer.sides[..], &answer.change) {
            ([before, after], Some(change)) => {
                let sides = [before, after].map(|side| (side.trace.as_str(), &side.waiting));
                ChangeText { sides, change, rows }.fmt(f)
            }
            (sides, _) => sides.iter().try_for_each(|side| BlameText { report: &side.waiting, rows }.fmt(f)),
        }
    }
}

impl fmt::Display for BlameText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", headline(self.report))?;
        self.culprits(f)?;
        self.rules(f)?;
        self.ends(f)?;
        self.begun(f)?;
        self.wakers(f)?;
        self.places(f)?;
        self.waiters(f)?;
        self.idle(f)?;
        self.besides(f)
    }
}

/// The greatest culprits, and one row for the others.
fn brief_rows(report: &BlameReport, most: usize) -> Vec<[String; 4]> {
    let (shown, others) = report.culprits.split_at(report.culprits.len().min(most));
    let row = |row: &CulpritRow| [who(row), ms(row.time_ns), percent(row.share), percent(row.tail_share)];
    let mut rows = shown.iter().map(row).collect::<Vec<_>>();
    if !others.is_empty() {
        let sum = |part: fn(&CulpritRow) -> f64| percent(others.iter().map(part).sum());
        let time = others.iter().fold(0, |time: u64, row| time.saturating_add(row.time_ns));
        rows.push([
            format!("{} others", others.len()),
            ms(time),
            sum(|row| row.share),
            sum(|row| row.tail_share),
        ]);
    }
    rows
}

impl fmt::Display for BlameBrief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = self.0;
        writeln!(f, "{}", headline(report))?;
        let rows = brief_rows(report, BRIEF).into_iter().map(Vec::from).collect::<Vec<_>>();
        let header = ["who had the CPU", "time (msec)", "share", "of the longest"];
        table(f, "Behind whom, all waits summed", &header, &rows, usize::MAX)?;
        let told = report.rules.iter().filter(|row| row.decisions > 0).collect::<Vec<_>>();
        if told.is_empty() {
            return Ok(());
        }
        let row = |row: &&RuleRow| vec![row.words.clone(), ms(row.time_ns), percent(row.share)];
        let header = ["by which rule the waiting task was not picked", "time (msec)", "share"];
        table(f, "By rule", &header, &told.iter().map(row).collect::<Vec<_>>(), BRIEF)
    }
}

impl fmt::Display for WaitersBrief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = Vec::new();
        for report in self.0.iter().take(BRIEF) {
            let of = [report.whose.join(", "), report.waits.to_string(), ms(report.wait_ns)];
            for (place, culprit) in brief_rows(report, NAMED).into_iter().enumerate() {
                let of = if place == 0 { of.clone() } else { Default::default() };
                rows.push([&of[..], &culprit[..]].concat());
            }
        }
        let header = ["who waited", "waits", "in all", "who had the CPU", "of it", "share", "of the longest"];
        let title = "Behind whom they waited, all waits of a name summed (msec), the longest first";
        table(f, title, &header, &rows, usize::MAX)
    }
}

impl BlameText<'_> {
    fn culprits(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |row: &CulpritRow| {
            vec![
                who(row),
                ms(row.time_ns),
                percent(row.share),
                percent(row.tail_share),
                row.stretches.to_string(),
                ms(row.longest_ns),
                ms(row.beside_idle_ns),
            ]
        };
        let header = [
            "who had the CPU",
            "time",
            "share",
            "of the longest",
            "stretches",
            "most in one wait",
            "beside idle",
        ];
        table(
            f,
            "Culprits (msec), the longest time first",
            &header,
            &self.report.culprits.iter().map(row).collect::<Vec<_>>(),
            self.rows,
        )?;
        match quota_words(self.report) {
            Some(words) => writeln!(f, "{words}"),
            None => Ok(()),
        }
    }

    fn rules(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.report.rules.iter().map(|row| {
            let decisions = if row.decisions == 0 { "-".to_string() } else { row.decisions.to_string() };
            vec![row.words.clone(), ms(row.time_ns), percent(row.share), decisions]
        });
        let header = ["by which rule the waiting task was not picked", "time", "share", "decisions"];
        table(f, "Rules (msec)", &header, &rows.collect::<Vec<_>>(), self.rows)
    }

    fn ends(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.report.ends.iter().map(|row| {
            vec![row.words.to_string(), ms(row.time_ns), percent(row.share), row.stretches.to_string()]
        });
        let header = ["what ended the stretch", "time", "share", "stretches"];
        table(f, "Ends (msec)", &header, &rows.collect::<Vec<_>>(), self.rows)
    }

    fn begun(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.report.begun.iter().map(|row| {
            vec![
                row.words.to_string(),
                ms(row.wait_ns),
                percent(row.share),
                row.waits.to_string(),
                ms(row.longest_ns),
            ]
        });
        let header = ["why the wait began", "time", "share", "waits", "longest"];
        table(f, "Beginnings (msec)", &header, &rows.collect::<Vec<_>>(), self.rows)
    }

    fn wakers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.report.wakers.iter().map(|row| {
            vec![
                format!("{} -> {}", row.waker, row.wakee),
                ms(row.wait_ns),
                percent(row.share),
                row.waits.to_string(),
                ms(row.longest_ns),
            ]
        });
        let header = ["waker -> who waited then", "time", "share", "waits", "longest"];
        table(f, "Wakers (msec)", &header, &rows.collect::<Vec<_>>(), self.rows)
    }

    fn places(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |function: &String| match function.is_empty() {
            true => "not shown".to_string(),
            false => function.clone(),
        };
        let rows = self.report.places.iter().map(|row| {
            vec![
                shown(&row.slept_in),
                shown(&row.woken_in),
                ms(row.wait_ns),
                percent(row.share),
                row.waits.to_string(),
                ms(row.longest_ns),
            ]
        });
        let header = ["slept in", "woken in", "waited then", "share", "waits", "longest"];
        table(f, "Call stacks (msec)", &header, &rows.collect::<Vec<_>>(), self.rows)
    }

    fn waiters(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.report.waiters.len() < 2 {
            return Ok(());
        }
        let rows = self.report.waiters.iter().map(|row| {
            vec![
                row.waiter.clone(),
                ms(row.wait_ns),
                percent(row.share),
                row.waits.to_string(),
                ms(row.longest_ns),
                ms(row.ran_ns),
                row.tasks.to_string(),
            ]
        });
        let header = ["who waited", "time", "share", "waits", "longest", "ran", "tasks"];
        table(f, "Waiters (msec)", &header, &rows.collect::<Vec<_>>(), self.rows)
    }

    fn idle(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = self.report;
        if report.waits == 0 {
            return Ok(());
        }
        let known = report.idle.affinity_known;
        let affinity = match known.waits {
            0 => "nothing tells that these tasks may not run everywhere: each CPU counts".to_string(),
            waits if waits == report.waits => "the CPUs that these tasks may run on are known".to_string(),
            waits => {
                format!("the CPUs of the task are known for {waits} waits, for the others each CPU counts")
            }
        };
        let idle = report.idle.beside_idle_ns;
        let part = percent(idle as f64 / report.wait_ns.max(1) as f64);
        writeln!(f, "\nFor {} ms of the waiting ({part}) another CPU was idle; {affinity}.", ms(idle))
    }

    /// What is in none of the sums, and what other commands count otherwise.
    fn besides(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = self.report;
        if report.latency_wait_ns != report.wait_ns {
            writeln!(
                f,
                "latency counts {} ms: without the {} ms of {} waits of tasks that were woken while they still ran, with {} ms in which \
                 {} tasks seemed runnable and had blocked.",
                ms(report.latency_wait_ns),
                ms(report.woken_while_running.wait_ns),
                report.woken_while_running.waits,
                ms(report.left_as_runnable.wait_ns),
                report.left_as_runnable.waits
            )?;
        }
        if report.still_waiting.waits > 0 {
            let still = report.still_waiting;
            writeln!(
                f,
                "In no sum: {} waits that go on at the end, for {} ms so far.",
                still.waits,
                ms(still.wait_ns)
            )?;
        }
        match report.waits_across_losses {
            0 => Ok(()),
            crossed => {
                writeln!(f, "In no sum: {crossed} waits in which events are missing, which are not measured.")
            }
        }
    }
}

/// A rate: ms in a second, or us in a wait.
fn rate(ns: Option<f64>, by_run_time: bool) -> String {
    ns.map_or_else(|| "-".to_string(), |ns| format!("{:.3}", ns / if by_run_time { 1e6 } else { 1e3 }))
}

impl ChangeText<'_> {
    fn row(&self, row: &ChangeRow) -> Vec<String> {
        let by_run_time = self.change.by_run_time;
        let (before, after) = match by_run_time {
            true => (row.before_ns_per_s, row.after_ns_per_s),
            false => (row.before_ns_per_wait, row.after_ns_per_wait),
        };
        let added = format!("{:+.3}", row.added_ns / if by_run_time { 1e6 } else { 1e3 });
        let per_wait = [row.before_ns_per_wait, row.after_ns_per_wait].map(|ns| rate(ns, false));
        let [before_wait, after_wait] = per_wait;
        vec![
            row.words.clone(),
            rate(before, by_run_time),
            rate(after, by_run_time),
            added,
            before_wait,
            after_wait,
        ]
    }

    /// All that differs in a line, with the culprit that has the most of it.
    fn lead(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, within) = match self.change.by_run_time {
            true => (("ms", 1e6), "in each second that the tasks ran"),
            false => (("us", 1e3), "in each wait"),
        };
        let added = |row: &ChangeRow| format!("{:+.3} {}", row.added_ns / unit.1, unit.0);
        let total = &self.change.total;
        let most = self.change.culprits.iter().find(|row| row.added_ns * total.added_ns > 0.0);
        let part = most.map_or(String::new(), |row| format!(", of it {}: {}", added(row), row.words));
        writeln!(f, "{} of waiting {within}{part}.", added(total))
    }

    fn table(&self, f: &mut fmt::Formatter<'_>, title: &str, first: &str, rows: &[ChangeRow]) -> fmt::Result {
        let header = [first, "before", "after", "difference", "us per wait before", "after"];
        table(f, title, &header, &rows.iter().map(|row| self.row(row)).collect::<Vec<_>>(), self.rows)
    }
}

impl fmt::Display for ChangeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lead(f)?;
        for (name, (file, report)) in ["Before", "After"].into_iter().zip(self.sides) {
            writeln!(f, "{name} ({file}): {}", headline(report))?;
        }
        let unit = match self.change.by_run_time {
            true => "ms of waiting in each second that the tasks ran",
            false => "us in each wait, since on one side the tasks were not seen to run",
        };
        let total = std::slice::from_ref(&self.change.total);
        self.table(f, &format!("Waiting ({unit})"), "", total)?;
        self.table(f, "Culprits, the greatest difference first", "who had the CPU", &self.change.culprits)?;
        if let Some(words) = self.sides.iter().find_map(|(_, report)| quota_words(report)) {
            writeln!(f, "{words}")?;
        }
        self.table(f, "Rules", "by which rule the waiting task was not picked", &self.change.rules)?;
        self.table(f, "Ends", "what ended the stretch", &self.change.ends)?;
        writeln!(
            f,
            "\nOne recording a side tells no chance from effect: this is no verdict. 'fairlab compare' takes several a side."
        )
    }
}
