//! What another watch says of each change that a watch found: one of own code of the model's, most of all.
//!
//! Must not know: how anything was found.

use serde_json::Value;

use super::text::{self, commit_of, elements};
use crate::output;

/// What the other watch says of a change.
#[derive(Debug, PartialEq, Eq)]
enum Beside {
    /// A confirmed change stands there, too: its size.
    Confirmed(String),
    /// A confirmed change goes the other way.
    OtherWay(String),
    /// It has runs before and behind the commit, and no such change.
    NotSeen,
    /// The commit was not built.
    NotBuilt,
    /// The commit or the case is not in it.
    NotAsked,
}

impl Beside {
    fn words(&self) -> String {
        match self {
            Beside::Confirmed(ratio) => format!("confirmed there: {ratio}"),
            Beside::OtherWay(ratio) => format!("the other way there: {ratio}"),
            Beside::NotSeen => "not seen there".to_string(),
            Beside::NotBuilt => "cannot be built there".to_string(),
            Beside::NotAsked => "not asked there".to_string(),
        }
    }
}

/// Each confirmed change of `answer` with what `other` says of it, and how many are confirmed there.
pub fn to_text(answer: &Value, other: &Value) -> String {
    let found = text::confirmed(answer);
    let outcomes = found.iter().map(|finding| beside(finding, other)).collect::<Vec<_>>();
    let rows = found.iter().zip(&outcomes).map(|(finding, outcome)| {
        let [case, metric] =
            ["case", "metric"].map(|key| finding[key].as_str().unwrap_or_default().to_string());
        vec![commit_of(finding).to_string(), case, metric, text::ratio(finding), outcome.words()]
    });
    let table = output::table(&["commit", "case", "metric", "ratio", "beside"], &rows.collect::<Vec<_>>());
    let asked = outcomes.iter().filter(|outcome| **outcome != Beside::NotAsked).count();
    let sure = outcomes.iter().filter(|outcome| matches!(outcome, Beside::Confirmed(_))).count();
    format!(
        "{table}\n{sure} of {asked} changes that were asked for there are confirmed there, of {} in all\n",
        found.len()
    )
}

/// Whether two steps are one commit: by their ids, of which one may be shorter, or by their subjects, which a commit keeps where it is
/// taken back.
fn is_same(one: &Value, other: &Value) -> bool {
    let both = |key: &str| {
        let [one, other] = [one, other].map(|step| step[key].as_str().unwrap_or_default());
        (!one.is_empty() && !other.is_empty()).then_some((one, other))
    };
    both("commit").is_some_and(|(one, other)| one.starts_with(other) || other.starts_with(one))
        || both("subject").is_some_and(|(one, other)| one == other)
}

fn beside(finding: &Value, other: &Value) -> Beside {
    let last = elements(&finding["steps"]).last().unwrap_or(&Value::Null);
    let leads = |step: &Value| is_same(step, last);
    let Some(kernel) = elements(&other["kernels"]).iter().find(|kernel| leads(&kernel["step"])) else {
        return Beside::NotAsked;
    };
    let has_case = elements(&other["cases"]).iter().any(|case| case["name"] == finding["case"]);
    if !has_case {
        return Beside::NotAsked;
    }
    if kernel["name"].is_null() {
        return Beside::NotBuilt;
    }
    let is_its = |one: &&Value| {
        (&one["case"], &one["metric"]) == (&finding["case"], &finding["metric"])
            && one["confirmed"] == true
            && elements(&one["steps"]).iter().any(leads)
    };
    let Some(there) = elements(&other["findings"]).iter().find(is_its) else { return Beside::NotSeen };
    match there["verdict"] == finding["verdict"] {
        true => Beside::Confirmed(text::ratio(there)),
        false => Beside::OtherWay(text::ratio(there)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn finding(commit: &str, case: &str, verdict: &str) -> Value {
        json!({ "case": case, "metric": "throughput", "verdict": verdict, "confirmed": true,
                "steps": [{ "commit": commit }], "fresh": { "ratio": 0.5, "low": 0.4, "high": 0.6 } })
    }

    #[test]
    fn each_change_is_looked_up_in_the_other_watch() {
        let commits = ["aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc", "dddddddddddd", "eeeeeeeeeeee"];
        let mut answer = json!({ "findings": commits.map(|commit| finding(commit, "pipe", "worse")) });
        answer["findings"][3]["steps"][0] =
            json!({ "commit": "0123456789ab", "subject": "sched/fair: Taken back" });
        let kernel = |name: Option<&str>, commit: &str| json!({ "name": name, "step": { "commit": commit } });
        let mut other = json!({
            "kernels": [kernel(Some("a"), "aaaaaaaaaaaa1234"), kernel(None, "bbbbbbbbbbbb"), kernel(Some("c"), "cccccccccccc"),
                        { "name": "d", "step": { "commit": "dddddddddddd", "subject": "sched/fair: Taken back" } }],
            "cases": [{ "name": "pipe" }],
            "findings": [finding("aaaaaaaaaaaa1234", "pipe", "worse"), finding("dddddddddddd", "pipe", "better")],
        });
        other["findings"][1]["steps"][0]["subject"] = json!("sched/fair: Taken back");
        let ratio = "0.500 (0.400 to 0.600)".to_string();
        let found =
            text::confirmed(&answer).into_iter().map(|finding| beside(finding, &other)).collect::<Vec<_>>();
        assert_eq!(
            found,
            [
                Beside::Confirmed(ratio.clone()),
                Beside::NotBuilt,
                Beside::NotSeen,
                Beside::OtherWay(ratio),
                Beside::NotAsked
            ]
        );
        assert!(
            to_text(&answer, &other)
                .ends_with("1 of 4 changes that were asked for there are confirmed there, of 5 in all\n")
        );
    }
}
