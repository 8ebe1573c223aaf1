//! A comparison as a gate: what its rules say, for people, for CI, and as an exit status.
//!
//! Must not know: how rules are judged.

mod github;
mod junit;

use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};

use fairlab_event::{ShownPath, escaped};
use fairlab_lab::OutputFile;
use fairlab_lab::answer::gate::{GateAnswer, GateVerdict, RuleAnswer};
use fairlab_lab::answer::{CompareAnswer, MoreRunsAnswer, PartialRuns};
use fairlab_lab::provenance::Provenance;

use crate::args::{AnswerFormat, GateArgs};
use crate::error::CliError;
use crate::numbers::{metric, significant};
use crate::tell;

/// Where the verdicts of rules go besides; by default nowhere.
#[derive(Debug, Default)]
pub struct GateOutput {
    junit: Option<(PathBuf, RefCell<OutputFile>)>,
    github: Option<github::JobSummary>,
}

impl GateOutput {
    /// The gate that is asked for, its files opened.
    pub fn of(args: &GateArgs) -> Result<GateOutput, CliError> {
        let junit = match &args.junit {
            Some(path) => Some((
                path.clone(),
                RefCell::new(OutputFile::create(path).map_err(|error| failed(path, "--junit", &error))?),
            )),
            None => None,
        };
        Ok(GateOutput { junit, github: args.github.as_deref().map(github::JobSummary::open).transpose()? })
    }

    /// Writes the verdicts where they are wanted besides.
    pub fn report(
        self,
        answer: &CompareAnswer,
        provenance: &Provenance,
        format: AnswerFormat,
    ) -> Result<(), CliError> {
        let Some(gate) = &answer.gate else { return Ok(()) };
        if let Some((path, file)) = self.junit {
            let mut file = file.into_inner();
            let written =
                file.write_all(junit::to_xml(&answer.baseline, gate).as_bytes()).and_then(|()| file.finish());
            written.map_err(|error| failed(&path, "--junit", &error))?;
        }
        match self.github {
            Some(summary) => summary.write(answer, gate, provenance, format),
            None => Ok(()),
        }
    }
}

fn failed(path: &Path, option: &str, error: &std::io::Error) -> CliError {
    CliError::bad(
        format!("cannot write {}: {error}", ShownPath(path)),
        format!("check the place that {option} names"),
    )
}

/// What a comparison ends with. A gate decides, also on the runs of one that was stopped: what is sure of them is sure.
pub fn outcome(gate: Option<&GateAnswer>, partial: Option<PartialRuns>) -> Result<(), CliError> {
    match (gate.map(|gate| gate.outcome), partial) {
        (None, None) | (Some(GateVerdict::Passed), _) => Ok(()),
        (None, Some(_)) => Err(CliError::Interrupted),
        (Some(GateVerdict::Regression), _) => Err(CliError::No),
        (Some(GateVerdict::Undecided), partial) => {
            if let Some(PartialRuns { runs, wanted }) = partial {
                tell!("stopped: {runs} of {wanted} runs do not decide the gate");
            }
            Err(CliError::Undecided)
        }
    }
}

/// A line a rule, and one for all.
pub fn to_text(gate: &GateAnswer) -> String {
    let status = match gate.outcome {
        GateVerdict::Passed => 0,
        GateVerdict::Regression => 1,
        GateVerdict::Undecided => 3,
    };
    let lines = gate.rules.iter().map(|rule| format!("{}\n", line(rule)));
    format!("\n{}gate: {}, exit status {status}\n", lines.collect::<String>(), gate.outcome.name())
}

/// `passed: p99>+5% of v6.6: changed by -1.2 % (-2.0 to +0.1 %), 10 and 10 runs`.
pub fn line(rule: &RuleAnswer) -> String {
    let (word, text, kernel) = (rule.outcome.name(), &rule.rule, &rule.kernel);
    let [base, new] = rule.runs;
    format!("{word}: {text} of {kernel}: {}, {base} and {new} runs{}", change(rule), open(rule))
}

/// The change with its interval.
fn change(rule: &RuleAnswer) -> String {
    let value = |value: f64| signed(rule, value);
    match (rule.change, rule.low, rule.high) {
        (Some(change), Some(low), Some(high)) => {
            format!("changed by {} ({} to {})", value(change), value(low), value(high))
        }
        (Some(change), ..) => format!("changed by {}", value(change)),
        (None, ..) => "no change is known".to_string(),
    }
}

fn signed(rule: &RuleAnswer, value: f64) -> String {
    let sign = if value > 0.0 { "+" } else { "" };
    match rule.is_share {
        true => format!("{sign}{} %", significant(value * 100.0)),
        false => format!("{sign}{}", metric(&rule.metric, value)),
    }
}

/// What it would take to decide.
fn open(rule: &RuleAnswer) -> String {
    match (rule.why, rule.more_runs) {
        (Some(why), _) => format!("; {why}"),
        (None, Some(MoreRunsAnswer::About(more))) => {
            format!("; about {more} more runs on each side would decide this rule")
        }
        (None, Some(MoreRunsAnswer::TooMany(words))) => {
            format!("; {words} runs on each side would decide: it lies at the bound")
        }
        (None, None) => String::new(),
    }
}

/// A table of the rules.
pub fn to_markdown(gate: &GateAnswer) -> String {
    let mut text = format!(
        "**Gate: {}**\n\n| rule | kernel | verdict | change |\n|---|---|---|---|\n",
        gate.outcome.name()
    );
    for rule in &gate.rules {
        let cells = [
            rule.rule.clone(),
            rule.kernel.clone(),
            rule.outcome.name().to_string(),
            change(rule) + &open(rule),
        ];
        let cells = cells.map(|cell| escaped::markdown(&cell));
        text += &format!("| {} |\n", cells.join(" | "));
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn rule(outcome: GateVerdict, kernel: &str) -> RuleAnswer {
        RuleAnswer {
            rule: "p99>+5%".to_string(),
            metric: "wakeup_latency_ns_p99".to_string(),
            kernel: kernel.to_string(),
            outcome,
            change: Some(0.123),
            low: Some(-0.01),
            high: Some(0.25),
            bound: 0.05,
            is_share: true,
            runs: [10, 9],
            more_runs: (outcome == GateVerdict::Undecided).then_some(MoreRunsAnswer::About(12)),
            why: None,
        }
    }

    #[test]
    fn each_rule_has_a_line() {
        let gate =
            GateAnswer { outcome: GateVerdict::Undecided, rules: vec![rule(GateVerdict::Undecided, "v6.6")] };
        assert_eq!(
            to_text(&gate),
            "\nundecided: p99>+5% of v6.6: changed by +12.3 % (-1.00 % to +25.0 %), 10 and 9 runs; about 12 more runs on each side \
             would decide this rule\ngate: undecided, exit status 3\n"
        );
        let amount =
            RuleAnswer { is_share: false, change: Some(2e5), low: None, ..rule(GateVerdict::Passed, "v6.6") };
        assert_eq!(line(&amount), "passed: p99>+5% of v6.6: changed by +200 us, 10 and 9 runs");
    }

    #[test]
    fn what_was_stopped_is_undecided_unless_it_is_sure() {
        let partial = Some(PartialRuns { runs: 3, wanted: 9 });
        let of = |outcome| GateAnswer { outcome, rules: Vec::new() };
        assert!(outcome(Some(&of(GateVerdict::Passed)), partial).is_ok());
        assert!(matches!(outcome(Some(&of(GateVerdict::Regression)), partial), Err(CliError::No)));
        assert!(matches!(outcome(Some(&of(GateVerdict::Undecided)), partial), Err(CliError::Undecided)));
        assert!(matches!(outcome(None, partial), Err(CliError::Interrupted)));
    }

    #[test]
    fn names_are_no_markup() {
        let gate = GateAnswer {
            outcome: GateVerdict::Regression,
            rules: vec![rule(GateVerdict::Regression, "<img src=x>|a")],
        };
        let markdown = to_markdown(&gate);
        assert!(markdown.contains("&lt;img src=x&gt;\\|a") && !markdown.contains("<img"), "{markdown}");
    }
}
