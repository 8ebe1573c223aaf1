//! A comparison as data for other programs: JSON and CSV.
//!
//! Must not know: what people read.

use fairlab_analysis::statistics::{Method, Modes, MoreRuns, mean, standard_deviation};
use fairlab_event::Shown;
use serde_json::{Value, json};

use super::{Comparison, ComparisonRow};
use crate::Progress;

impl Comparison {
    /// The machine-readable answer, schema `fairlab/compare/1`.
    pub fn to_json(&self) -> Value {
        json!({
            "schema": "fairlab/compare/1",
            "baseline": self.baseline,
            "margin": self.margin,
            "headline": self.headline,
            "partial": self.partial.map(Progress::to_json),
            "metrics": self.rows.iter().map(row_json).collect::<Vec<_>>(),
            "notices": self.notices,
        })
    }

    /// One line a kernel and metric, under a line of names.
    pub fn to_csv(&self) -> String {
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let mut text =
            "metric,baseline,kernel,baseline_mean,mean,runs,ratio,low,high,p,q,verdict,more_runs,partial\n"
                .to_string();
        for row in &self.rows {
            let more = match row.more {
                Some(MoreRuns::About(more)) => more.to_string(),
                Some(MoreRuns::TooMany) | None => String::new(),
            };
            let cells = [
                quoted(&row.name),
                quoted(&self.baseline),
                quoted(&row.kernel),
                mean(&row.baseline).to_string(),
                mean(&row.values).to_string(),
                row.values.len().to_string(),
                number(row.estimate.ratio),
                number(row.estimate.low),
                number(row.estimate.high),
                number(row.estimate.p),
                number(row.q),
                row.verdict.name().to_string(),
                more,
                self.partial.is_some().to_string(),
            ];
            text += &format!("{}\n", cells.join(","));
        }
        text
    }
}

/// Names of kernels have commas in them where they set tunables.
fn quoted(text: &str) -> String {
    let text = Shown(text).to_string();
    // A spreadsheet would take it for a formula.
    let text = if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text };
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

fn row_json(row: &ComparisonRow) -> Value {
    let modes = |modes: &Option<Modes>| {
        modes.map(|modes| {
            json!([
                { "runs": modes.low.runs, "mean": modes.low.mean },
                { "runs": modes.high.runs, "mean": modes.high.mean },
            ])
        })
    };
    let more = match row.more {
        Some(MoreRuns::About(more)) => json!(more),
        Some(MoreRuns::TooMany) => json!("more than 10000"),
        None => Value::Null,
    };
    json!({
        "name": row.name,
        "kernel": row.kernel,
        "ratio": row.estimate.ratio,
        "low": row.estimate.low,
        "high": row.estimate.high,
        "verdict": row.verdict.name(),
        "more_runs": more,
        "p": row.estimate.p,
        "q": row.q,
        "method": row.estimate.method.map(Method::name),
        "pairing": row.pairing.name(),
        "pairs": row.values.len(),
        "baseline_mean": mean(&row.baseline),
        "mean": mean(&row.values),
        "baseline_deviation": standard_deviation(&row.baseline),
        "deviation": standard_deviation(&row.values),
        "baseline_values": row.baseline,
        "values": row.values,
        "baseline_modes": modes(&row.baseline_modes),
        "modes": modes(&row.modes),
    })
}
