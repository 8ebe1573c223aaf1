//! The sums of two traces beside each other, before and after a change, the greatest difference first.
//!
//! Sums are comparable by the time that the tasks ran, and by wait. Must not know: how sums come about; how sure a difference is.

use serde::Serialize;

use super::report::BlameReport;
use super::text::who;

/// What differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlameChange {
    /// Whether rates are of a second that the tasks ran; else they are of a wait, since on one side they were not seen to run.
    pub by_run_time: bool,
    /// All waiting.
    pub total: ChangeRow,
    /// What had the CPU.
    pub culprits: Vec<ChangeRow>,
    /// By which rule it kept it.
    pub rules: Vec<ChangeRow>,
    /// What ended the stretches.
    pub ends: Vec<ChangeRow>,
}

/// One cause on both sides. Times are ns of waiting in each second that the tasks ran, or in each wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangeRow {
    /// The cause in words.
    pub words: String,
    /// In a second before; none where the tasks did not run.
    pub before_ns_per_s: Option<f64>,
    /// In a second after.
    pub after_ns_per_s: Option<f64>,
    /// In a wait before; none where there was no wait.
    pub before_ns_per_wait: Option<f64>,
    /// In a wait after.
    pub after_ns_per_wait: Option<f64>,
    /// How much longer after, in a second or in a wait.
    pub added_ns: f64,
}

/// What times are divided by, on both sides.
#[derive(Clone, Copy)]
struct Divisors {
    ran_ns: [u64; 2],
    waits: [u64; 2],
}

impl Divisors {
    fn of(reports: [&BlameReport; 2]) -> Divisors {
        Divisors { ran_ns: reports.map(|report| report.ran_ns), waits: reports.map(|report| report.waits) }
    }

    fn by_run_time(&self) -> bool {
        self.ran_ns.iter().all(|&ran| ran > 0)
    }

    fn row(&self, words: String, times: [u64; 2]) -> ChangeRow {
        let rate = |side: usize, divisors: [u64; 2], unit: f64| {
            (divisors[side] > 0).then(|| times[side] as f64 * unit / divisors[side] as f64)
        };
        let [before_ns_per_s, after_ns_per_s] = [0, 1].map(|side| rate(side, self.ran_ns, 1e9));
        let [before_ns_per_wait, after_ns_per_wait] = [0, 1].map(|side| rate(side, self.waits, 1.0));
        let (before, after) = match self.by_run_time() {
            true => (before_ns_per_s, after_ns_per_s),
            false => (before_ns_per_wait, after_ns_per_wait),
        };
        let added_ns = after.unwrap_or(0.0) - before.unwrap_or(0.0);
        ChangeRow { words, before_ns_per_s, after_ns_per_s, before_ns_per_wait, after_ns_per_wait, added_ns }
    }

    /// A row for each of the words of either side, the greatest difference first.
    fn rows(&self, sides: [Vec<(String, u64)>; 2]) -> Vec<ChangeRow> {
        let mut times: Vec<(String, [u64; 2])> = Vec::new();
        for (side, told) in sides.into_iter().enumerate() {
            for (words, time) in told {
                match times.iter_mut().find(|(known, _)| *known == words) {
                    Some((_, times)) => times[side] = times[side].saturating_add(time),
                    None => {
                        let mut one = [0, 0];
                        one[side] = time;
                        times.push((words, one));
                    }
                }
            }
        }
        let mut rows = times.into_iter().map(|(words, times)| self.row(words, times)).collect::<Vec<_>>();
        rows.sort_by(|one, other| other.added_ns.abs().total_cmp(&one.added_ns.abs()));
        rows
    }
}

impl BlameChange {
    /// What differs between two traces.
    pub fn between(reports: [&BlameReport; 2]) -> BlameChange {
        let divisors = Divisors::of(reports);
        let culprits =
            reports.map(|report| report.culprits.iter().map(|row| (who(row), row.time_ns)).collect());
        let rules =
            reports.map(|report| report.rules.iter().map(|row| (row.words.clone(), row.time_ns)).collect());
        let ends = reports
            .map(|report| report.ends.iter().map(|row| (row.words.to_string(), row.time_ns)).collect());
        BlameChange {
            by_run_time: divisors.by_run_time(),
            total: divisors.row("all".to_string(), reports.map(|report| report.wait_ns)),
            culprits: divisors.rows(culprits),
            rules: divisors.rows(rules),
            ends: divisors.rows(ends),
        }
    }
}
