//! Comparing kernels: the same seeds on both sides, differences paired.

use fairlab_analysis::statistics::{Better, Ratio, compare_paired, mean, standard_deviation};
use serde_json::{Value, json};

use crate::RunResult;

/// One metric of one kernel against the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonRow {
    /// The metric.
    pub name: String,
    /// The kernel that is compared.
    pub kernel: String,
    /// The baseline's mean over its runs.
    pub baseline_mean: f64,
    /// The kernel's mean over its runs.
    pub mean: f64,
    /// The kernel's standard deviation between runs; `None` below two.
    pub deviation: Option<f64>,
    /// Runs on each side.
    pub pairs: usize,
    /// How they relate.
    pub ratio: Ratio,
}

/// Every metric of every kernel against the first.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The baseline's name.
    pub baseline: String,
    /// One row a kernel and metric, kernel by kernel.
    pub rows: Vec<ComparisonRow>,
}

/// Compares the runs of `kernels[1..]` with those of `kernels[0]`, by metric. Runs pair by seed; a seed that one side
/// lacks is left out, and so is a metric that some run did not measure.
pub fn compare(kernels: &[String], results: &[RunResult]) -> Comparison {
    let Some((baseline, others)) = kernels.split_first() else {
        return Comparison { baseline: String::new(), rows: Vec::new() };
    };
    let runs_of = |name: &str| results.iter().filter(|run| run.kernel == name).collect::<Vec<_>>();
    let base_runs = runs_of(baseline);
    let mut rows = Vec::new();
    for kernel in others {
        let partner = |run: &&RunResult| runs_of(kernel).into_iter().find(|other| other.seed == run.seed);
        let pairs = base_runs.iter().filter_map(|run| Some((*run, partner(run)?))).collect::<Vec<_>>();
        let names = pairs.first().map_or(&[][..], |(run, _)| &run.metrics[..]);
        for (name, _) in names {
            let values = |run: &RunResult| run.metric(name);
            let both = pairs.iter().map(|(base, other)| Some((values(base)?, values(other)?)));
            let Some(both) = both.collect::<Option<Vec<_>>>() else { continue };
            rows.push(row(name, kernel, &both));
        }
    }
    Comparison { baseline: baseline.clone(), rows }
}

fn row(name: &str, kernel: &str, pairs: &[(f64, f64)]) -> ComparisonRow {
    let (base, other): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    ComparisonRow {
        name: name.to_string(),
        kernel: kernel.to_string(),
        baseline_mean: mean(&base),
        mean: mean(&other),
        deviation: standard_deviation(&other),
        pairs: pairs.len(),
        ratio: compare_paired(&base, &other, Better::of_metric(name)),
    }
}

impl Comparison {
    /// The machine-readable answer, schema `fairlab/compare/1`.
    pub fn to_json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            json!({
                "name": row.name,
                "kernel": row.kernel,
                "ratio": row.ratio.ratio,
                "low": row.ratio.low,
                "high": row.ratio.high,
                "verdict": row.ratio.verdict.name(),
                "baseline_mean": row.baseline_mean,
                "mean": row.mean,
                "pairs": row.pairs,
            })
        });
        json!({ "schema": "fairlab/compare/1", "baseline": self.baseline, "metrics": rows.collect::<Vec<_>>() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlab_analysis::statistics::Verdict;
    use fairlab_trace::Losses;

    fn result(kernel: &str, seed: u64, value: f64) -> RunResult {
        RunResult {
            kernel: kernel.to_string(),
            machine: "m".to_string(),
            workload: "w".to_string(),
            seed,
            digest: String::new(),
            simulated_ns: 1,
            wall_ns: 1,
            switches: 0,
            metrics: vec![("wakeup_latency_ns_p99".to_string(), value)],
            output: String::new(),
            trace_losses: Losses::default(),
            schedstat: String::new(),
            schedstat_searches: String::new(),
        }
    }

    #[test]
    fn runs_pair_by_seed_whatever_their_order() {
        let runs = [
            result("a", 1, 100.0),
            result("a", 2, 200.0),
            result("b", 2, 101.0),
            result("b", 1, 50.0),
            result("b", 3, 1.0),
        ];
        let comparison = compare(&["a".to_string(), "b".to_string()], &runs);
        let [row] = &comparison.rows[..] else { panic!("{comparison:?}") };
        assert_eq!((row.pairs, row.ratio.verdict), (2, Verdict::Better));
        assert!((row.ratio.ratio.expect("a ratio") - 0.5).abs() < 0.01);
    }

    #[test]
    fn the_json_has_the_shape_that_scripts_rely_on() {
        let comparison =
            compare(&["a".to_string(), "b".to_string()], &[result("a", 1, 2.0), result("b", 1, 1.0)]);
        let json = comparison.to_json();
        assert_eq!(json["schema"], "fairlab/compare/1");
        assert_eq!(json["baseline"], "a");
        let row = &json["metrics"][0];
        assert_eq!((row["kernel"].as_str(), row["verdict"].as_str()), (Some("b"), Some("undecided")));
        assert!(row["low"].is_null() && row["ratio"].is_number());
    }
}
