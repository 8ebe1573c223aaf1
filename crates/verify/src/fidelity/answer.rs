//! A collection's answer for programs (`fairlab/fidelity/1`).
//!
//! Must not know: how recordings are walked.

use fairlab_files::LabError;
use serde_json::{Value, json};

use super::{DecisionCounts, Fidelity, FidelityFigures};

impl Fidelity {
    /// The answer: counts by recording, their sums by kernel, and the recordings that were not judged.
    pub fn to_json(&self) -> Value {
        let figures = self.figures();
        let row = |counts: DecisionCounts| {
            json!({
                "judged": counts.judged,
                "agree": counts.agree,
                "missed": counts.missed(),
                "not_judged": counts.not_judged,
            })
        };
        let rows = |figures: &FidelityFigures, named: bool| {
            let all = figures.rows.iter().map(|figure| {
                let mut value = row(figure.counts);
                value["kernel"] = json!(figure.kernel);
                value["probed"] = json!(figure.probed);
                value["kind"] = json!(figure.kind.name());
                value["case"] = if figure.case.is_empty() { Value::Null } else { json!(figure.case) };
                if named {
                    value["recording"] = json!(figure.recording);
                }
                value
            });
            Value::Array(all.collect())
        };
        let problems = |all: &mut dyn Iterator<Item = (&str, &LabError)>| {
            Value::Array(
                all.map(|(name, error)| json!({ "recording": name, "problem": error.to_string() })).collect(),
            )
        };
        let notes = self.notes().map(|(name, note)| json!({ "recording": name, "note": note }));
        json!({
            "schema": "fairlab/fidelity/1",
            "figures": rows(&figures, true),
            "sums": rows(&figures.sums(), false),
            "unknown_kernels": problems(&mut self.unknown()),
            "unreadable": problems(&mut self.unreadable()),
            "without_recording": self.without_recording().collect::<Vec<_>>(),
            "notes": notes.collect::<Vec<_>>(),
        })
    }
}
