//! How the kernels of a sweep compare, setting by setting: each with the first one of the sweep's file.
//!
//! Cells with equal seeds are pairs. All comparisons of a sweep are one family, so that many settings do not make a difference sure
//! by chance.
//!
//! Must not know: how it is told.

use std::collections::BTreeMap;

use fairlab_analysis::statistics::{
    BetterDirection, Estimate, FALSE_DISCOVERY_RATE, MARGIN, adjusted, judge, mean, paired,
};
use fairlab_lab::sweep::QueryRow;
use serde_json::{Value, json};

/// One kernel's metric beside the first kernel's, in one setting.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelChange {
    /// The setting: machine, command line and options as the sweep's file has them.
    pub setting: SweepSetting,
    /// The metric.
    pub metric: String,
    /// The first kernel of the file.
    pub baseline: String,
    /// The other kernel.
    pub kernel: String,
    /// The mean of the baseline's cells.
    pub baseline_mean: f64,
    /// The mean of the other kernel's cells.
    pub mean: f64,
    /// The geometric mean of the pairs' ratios; `None`: the baseline is zero.
    pub ratio: Option<f64>,
    /// Lower end of the 95 % interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// What it comes to, as in every comparison.
    pub verdict: &'static str,
}

impl KernelChange {
    /// As the page of a sweep has it.
    pub fn to_json(&self) -> Value {
        let KernelChange {
            setting,
            metric,
            baseline,
            kernel,
            baseline_mean,
            mean,
            ratio,
            low,
            high,
            verdict,
        } = self;
        json!({
            "setting": setting,
            "metric": metric,
            "baseline": baseline,
            "kernel": kernel,
            "baseline_mean": baseline_mean,
            "mean": mean,
            "ratio": ratio,
            "low": low,
            "high": high,
            "verdict": verdict,
        })
    }
}

/// Columns of a sweep with their values.
type SweepSetting = BTreeMap<String, String>;

/// Values by seed.
type OfSeeds = BTreeMap<String, f64>;

/// The values of two kernels in one setting, by the seeds that both have.
struct SettingPairs<'p> {
    setting: &'p SweepSetting,
    metric: &'p str,
    kernel: &'p str,
    base: Vec<f64>,
    other: Vec<f64>,
}

/// Compares each kernel with `baseline`, in every setting that both have. Rows are single cells: of settings with their seeds. Empty:
/// the sweep has one kernel.
pub fn kernel_changes(rows: &[QueryRow], baseline: &str) -> Vec<KernelChange> {
    let mut found: BTreeMap<(SweepSetting, &str), BTreeMap<String, OfSeeds>> = BTreeMap::new();
    for row in rows {
        let mut setting = row.group.iter().cloned().collect::<SweepSetting>();
        let [kernel, seed] = ["kernel", "seed"].map(|name| setting.remove(name).unwrap_or_default());
        let kernels = found.entry((setting, row.metric.as_str())).or_default();
        kernels.entry(kernel).or_default().insert(seed, row.mean);
    }
    let compared = found.iter().flat_map(|((setting, metric), kernels)| {
        let base = kernels.get(baseline);
        let others = kernels.iter().filter(|(kernel, _)| *kernel != baseline);
        others.filter_map(move |(kernel, other)| {
            let (base, other) = pairs(base?, other);
            let pairs = SettingPairs { setting, metric, kernel, base, other };
            (!pairs.base.is_empty()).then_some(pairs)
        })
    });
    let compared = compared.collect::<Vec<_>>();
    let estimates = compared.iter().map(|pairs| paired(&pairs.base, &pairs.other)).collect::<Vec<_>>();
    let adjusted = adjusted(&estimates.iter().map(|estimate| estimate.p).collect::<Vec<_>>());
    let rows = compared.iter().zip(&estimates).zip(adjusted);
    rows.map(|((pairs, estimate), q)| change(pairs, baseline, estimate, q)).collect()
}

/// The values of the seeds that both have.
fn pairs(base: &OfSeeds, other: &OfSeeds) -> (Vec<f64>, Vec<f64>) {
    base.iter().filter_map(|(seed, value)| Some((*value, *other.get(seed)?))).unzip()
}

fn change(pairs: &SettingPairs<'_>, baseline: &str, estimate: &Estimate, q: Option<f64>) -> KernelChange {
    let SettingPairs { setting, metric, kernel, base, other } = pairs;
    let is_real = q.is_some_and(|q| q <= FALSE_DISCOVERY_RATE);
    let verdict = judge(estimate, BetterDirection::of_metric(metric), MARGIN, is_real);
    KernelChange {
        setting: (*setting).clone(),
        metric: (*metric).to_string(),
        baseline: baseline.to_string(),
        kernel: (*kernel).to_string(),
        baseline_mean: mean(base),
        mean: mean(other),
        ratio: estimate.ratio,
        low: estimate.low,
        high: estimate.high,
        verdict: verdict.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(kernel: &str, threads: &str, values: &[f64]) -> Vec<QueryRow> {
        let one = |(seed, &mean): (usize, &f64)| QueryRow {
            group: [("kernel", kernel), ("threads", threads), ("seed", &seed.to_string())]
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .to_vec(),
            metric: "wakeup_latency_ns_p99".to_string(),
            cells: 1,
            mean,
            deviation: None,
            one_course: true,
            median: mean,
            min: None,
            max: None,
            two_modes: false,
        };
        values.iter().enumerate().map(one).collect()
    }

    /// Better with few threads, worse with many, and only a guess in between: each setting has its own verdict.
    #[test]
    fn a_kernel_may_be_better_here_and_worse_there() {
        let base = [100.0, 104.0, 97.0, 101.0, 99.0];
        let noise = [1.01, 0.99, 1.02, 0.98, 1.0];
        let scaled = |factor: f64| std::array::from_fn::<_, 5, _>(|at| base[at] * noise[at] * factor);
        let others = [("04", scaled(0.5)), ("08", [90.0, 130.0, 85.0, 99.0, 104.0]), ("16", scaled(3.0))];
        let all = others.iter().flat_map(|(threads, other)| {
            [rows("v6.12", threads, other), rows("v6.5", threads, &base)].concat()
        });
        let all = all.collect::<Vec<_>>();
        let changes = kernel_changes(&all, "v6.5");
        let told =
            changes.iter().map(|row| (row.setting["threads"].as_str(), row.kernel.as_str(), row.verdict));
        let expected = [("04", "v6.12", "better"), ("08", "v6.12", "undecided"), ("16", "v6.12", "worse")];
        assert_eq!(told.collect::<Vec<_>>(), expected);
        assert!(changes[2].ratio.is_some_and(|ratio| (ratio - 3.0).abs() < 0.1), "{changes:?}");
        assert!(changes.iter().all(|row| row.baseline == "v6.5" && (row.baseline_mean - 100.2).abs() < 1e-9));
        assert!(kernel_changes(&rows("v6.5", "04", &base), "v6.5").is_empty());
    }
}
