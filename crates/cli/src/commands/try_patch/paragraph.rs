//! The answer of `fairlab try` as a paragraph for a mail: what was run, on what, what is claimed, and how far that goes.
//!
//! Must not know: how the tables of the answer look.

use fairlab_analysis::statistics::{FALSE_DISCOVERY_RATE, MetricVerdict};
use fairlab_change::patch::{PatchMetricAnswer, TryAnswer};
use fairlab_lab::answer::MoreRunsAnswer;

use super::rows_of;
use crate::numbers::{chosen_percent, metric, significant};

/// A line of a mail is no longer.
const COLUMNS: usize = 72;

/// The paragraph; none before anything is seen. `largest`: the changes that are sure, the largest first.
pub fn of(answer: &TryAnswer, largest: &[&PatchMetricAnswer]) -> String {
    if answer.cases_seen() == 0 {
        return String::new();
    }
    let sentences = [tried(answer), claimed(answer, largest), rest(answer, largest), limits()];
    let text = sentences.into_iter().filter(|sentence| !sentence.is_empty()).collect::<Vec<_>>().join(" ");
    format!("\nIn words, for a mail:\n\n{}", filled(&text))
}

fn tried(answer: &TryAnswer) -> String {
    let (before, after) = (&answer.before, &answer.after);
    let what = match after.patches.is_empty() {
        true => format!("{} was run beside {} (Linux {})", after.source, before.source, before.release),
        false => {
            format!("{} was tried on {} (Linux {})", after.patches.join(", "), before.source, before.release)
        }
    };
    // Of an answer that is partial, those that were seen: machine by machine.
    let per_machine = answer.workloads.len().max(1);
    let machines = answer.cases_seen().div_ceil(per_machine).min(answer.machines.len());
    let workloads = answer.workloads.iter().take(answer.cases_seen());
    let workloads = workloads.map(|case| format!("\"{}\"", case.workload)).collect::<Vec<_>>().join(", ");
    let stopped = match answer.partial {
        true => {
            let all = answer.workloads.len() * answer.machines.len();
            format!(", stopped after {} of {all} cases", answer.cases_seen())
        }
        false => String::new(),
    };
    format!(
        "{what} with fairlab {}: kernel/sched/ of both trees ran in virtual time under {workloads} on {}, {} of each side in \
         each case{stopped}.",
        env!("CARGO_PKG_VERSION"),
        answer.machines[..machines].join(", "),
        answer.runs_told()
    )
}

fn claimed(answer: &TryAnswer, largest: &[&PatchMetricAnswer]) -> String {
    let Some(first) = largest.first() else {
        return match answer.sees_something() {
            true => format!("Of {} metrics none has changed for sure.", answer.rows.len()),
            false => {
                "All runs are equal, event by event: none of these workloads sees the change.".to_string()
            }
        };
    };
    let count = |(verdict, words): (MetricVerdict, &str)| match largest
        .iter()
        .filter(|row| row.verdict == verdict)
        .count()
    {
        0 => None,
        count => Some(format!("{count} {words}")),
    };
    let counts = [
        (MetricVerdict::Worse, "got worse"),
        (MetricVerdict::Better, "got better"),
        (MetricVerdict::Changed, "changed"),
    ];
    let counts = counts.into_iter().filter_map(count).collect::<Vec<_>>().join(" and ");
    let interval = match (first.ratio, first.low, first.high) {
        (Some(ratio), Some(low), Some(high)) => {
            let [ratio, low, high] = [ratio, low, high].map(significant);
            format!(" on average; run by run it is {ratio} times as much ({low} to {high} at 95 %)")
        }
        _ => String::new(),
    };
    format!(
        "Of {} metrics {counts}, for sure; at most {} % of such findings are chance. The largest: {} of \"{}\" on {} went from {} to \
         {}{interval}.",
        answer.rows.len(),
        chosen_percent(FALSE_DISCOVERY_RATE),
        first.metric,
        first.workload,
        first.machine,
        metric(&first.metric, first.before),
        metric(&first.metric, first.after)
    )
}

/// What is no claim.
fn rest(answer: &TryAnswer, largest: &[&PatchMetricAnswer]) -> String {
    let count = |verdict: MetricVerdict| rows_of(answer, |of| of == verdict).len();
    let mut parts = Vec::new();
    let equal = count(MetricVerdict::Equivalent);
    if equal > 0 {
        parts.push(format!("{} equal within {} %", are(equal), chosen_percent(answer.margin)));
    }
    let constant = count(MetricVerdict::OneCourse);
    if constant > 0 {
        parts.push(format!("{} the same in every run of a side", are(constant)));
    }
    let open = answer.rows.len() - largest.len() - equal - constant;
    if open > 0 {
        parts.push(format!("{} undecided", are(open)));
    }
    let of = if largest.is_empty() { "Of them" } else { "Of the others" };
    if parts.is_empty() { String::new() } else { format!("{of}, {}.", parts.join(", ")) }
}

/// `1 is`, `2 are`
fn are(count: usize) -> String {
    format!("{count} {}", if count == 1 { "is" } else { "are" })
}

fn limits() -> String {
    "The machines are models: caches, memory and devices are not in them, and nothing was measured on hardware. Other workloads \
     may see something else."
        .to_string()
}

/// How many metrics are undecided, and what it would take to decide them.
pub fn undecided(rows: &[&PatchMetricAnswer]) -> String {
    let more = rows.iter().filter_map(|row| match row.more_runs {
        Some(MoreRunsAnswer::About(more)) => Some((more, row.runs)),
        _ => None,
    });
    let more = more.collect::<Vec<_>>();
    let most = more.iter().max().copied();
    let Some((most, made)) = most else {
        return "undecided, and more runs will hardly decide".to_string();
    };
    let which = match more.len() {
        count if count == rows.len() => String::new(),
        count => format!(" {count} of them"),
    };
    format!("undecided: about {most} more runs a side would decide{which} (--runs {})", made + most)
}

/// The words in lines that fit into a mail.
fn filled(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= COLUMNS => {
                *line += " ";
                *line += word;
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(runs: usize, more_runs: Option<MoreRunsAnswer>) -> PatchMetricAnswer {
        PatchMetricAnswer {
            machine: "laptop8".to_string(),
            workload: "pipe".to_string(),
            metric: "switches_per_s".to_string(),
            runs,
            before: 1.0,
            after: 1.0,
            ratio: Some(1.0),
            low: Some(0.9),
            high: Some(1.1),
            q: Some(0.5),
            verdict: MetricVerdict::Undecided,
            more_runs,
            command: String::new(),
        }
    }

    #[test]
    fn what_is_undecided_says_what_would_decide() {
        let (few, many) =
            (row(10, Some(MoreRunsAnswer::About(12))), row(10, Some(MoreRunsAnswer::About(120))));
        let never = row(10, None);
        assert_eq!(
            undecided(&[&few, &many]),
            "undecided: about 120 more runs a side would decide (--runs 130)"
        );
        assert_eq!(
            undecided(&[&few, &never]),
            "undecided: about 12 more runs a side would decide 1 of them (--runs 22)"
        );
        assert_eq!(undecided(&[&never]), "undecided, and more runs will hardly decide");
    }

    #[test]
    fn lines_fit_into_a_mail() {
        let text = filled(&"word ".repeat(60));
        assert!(text.lines().all(|line| line.len() <= COLUMNS) && text.lines().count() == 5, "{text}");
    }
}
