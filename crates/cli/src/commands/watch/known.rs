//! What a watch found of the commits that published reports claim: how much it would have told without being asked.
//!
//! Must not know: how anything was found.

use fairlab_report::public::PublicReport;
use serde_json::Value;

use super::text::{self, elements};
use crate::output;

/// A commit that a report claims.
struct KnownCommit<'r> {
    commit: &'r str,
    report: &'r str,
}

/// What became of it.
enum KnownOutcome {
    /// A confirmed change stands at it: case, metric and size.
    Found(String),
    /// The reason why not.
    Missed(String),
}

/// Each claimed commit with what was found at it, and how many were.
pub fn to_text(answer: &Value, reports: &[PublicReport]) -> String {
    let mut claimed: Vec<KnownCommit<'_>> = Vec::new();
    for report in reports {
        for commit in report.claims.iter().filter_map(|claim| claim.commit.as_deref()) {
            if !claimed.iter().any(|known| known.commit == commit && known.report == report.name) {
                claimed.push(KnownCommit { commit, report: &report.name });
            }
        }
    }
    let outcomes = claimed.iter().map(|known| outcome(answer, known.commit)).collect::<Vec<_>>();
    let found = outcomes.iter().filter(|outcome| matches!(outcome, KnownOutcome::Found(_))).count();
    let rows = claimed.iter().zip(&outcomes).map(|(known, outcome)| {
        let told = match outcome {
            KnownOutcome::Found(what) => what.clone(),
            KnownOutcome::Missed(why) => format!("- {why}"),
        };
        vec![known.commit.to_string(), known.report.to_string(), told]
    });
    let table = output::table(&["commit", "report", "found"], &rows.collect::<Vec<_>>());
    format!("{table}\n{found} of {} commits that reports claim\n", claimed.len())
}

fn outcome(answer: &Value, commit: &str) -> KnownOutcome {
    let leads = |finding: &Value| elements(&finding["steps"]).iter().any(|step| step["commit"] == commit);
    let findings = elements(&answer["findings"]);
    let at = findings.iter().filter(|finding| finding["confirmed"] == true && leads(finding));
    let at = at.map(text::sentence).collect::<Vec<_>>();
    if let [first, others @ ..] = &at[..] {
        let more = if others.is_empty() { String::new() } else { format!("; {} more", others.len()) };
        return KnownOutcome::Found(format!("{first}{more}"));
    }
    let kernels = elements(&answer["kernels"]);
    let Some(position) = kernels.iter().position(|kernel| kernel["step"]["commit"] == commit) else {
        return KnownOutcome::Missed("it is not in the range, or goes with the next commit".to_string());
    };
    let differs = |case: &Value| position > 0 && case["line"][position] != case["line"][position - 1];
    let differing = elements(&answer["cases"]).iter().filter(|case| differs(case)).count();
    KnownOutcome::Missed(match differing {
        0 => "no case runs differently with it".to_string(),
        some => format!("{some} cases run differently with it, and none changes for sure"),
    })
}
