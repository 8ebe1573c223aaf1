//! The user's own workload on the two kernels of a report.
//!
//! Must not know: what the report's workload does.

use fairlab_analysis::statistics::mean;
use fairlab_event::EscapedText;

use super::render::number;
use super::told::longest_wait;
use super::{Scenario, ScenarioContext, ScenarioReport};
use fairlab_lab::{CompareOptions, ComparisonRow, LabError, RunSetting, RunSpec, compare};

impl Scenario {
    /// Runs the workload of `setting` on both kernels of the report: every metric before and after, and the longest wait
    /// on the second kernel as a story. There are no claims. Gives `None` when it was stopped before its end.
    ///
    /// # Errors
    /// A run fails.
    pub fn run_own(
        &self,
        bench: &ScenarioContext<'_>,
        setting: &RunSetting,
    ) -> Result<Option<ScenarioReport>, LabError> {
        let seeds = bench.choose(15_u64, 5);
        let [before, after] = self.pair.each_ref().map(String::as_str);
        let spec = |kernel: &str, seed: u64| -> Result<RunSpec, LabError> {
            let RunSetting { machine, workload, first_seed, .. } = setting.clone();
            let spec = RunSpec::new(kernel.parse()?, machine, workload, first_seed + seed, setting.duration);
            Ok(bench.as_told(RunSpec { warmup: setting.warmup, ..spec }))
        };
        let each =
            [before, after].into_iter().flat_map(|kernel| (0..seeds).map(move |seed| spec(kernel, seed)));
        let specs = each.collect::<Result<Vec<_>, LabError>>()?;
        let Some(runs) = bench.runs(&specs)? else { return Ok(None) };
        let comparison = compare(&self.pair, &runs, &CompareOptions::default())?;
        let mut report = ScenarioReport::new(self, bench);
        report.heading(format!("{} on {}", EscapedText(&setting.workload.join(" ")), setting.machine.name));
        report.text(format!(
            "Another workload than the report's: {seeds} runs on each of the report's kernels, paired by seed. Means, change \
             with its interval, and whether it is real and beyond {:.0} %.",
            CompareOptions::default().margin * 100.0
        ));
        let header = ["metric", before, after, "change", "interval", "verdict"];
        report.table(&header, comparison.rows.iter().map(cells).collect());
        for notice in comparison.notices {
            report.text(notice);
        }
        let Some(story) = longest_wait(bench, spec(after, 0)?)? else { return Ok(None) };
        report.heading(format!("The longest wait on {after}"));
        report.verbatim(story);
        report.runs.extend(runs.into_iter().map(|run| (format!("own/{}/{}", run.kernel, run.seed), run)));
        Ok(Some(report))
    }
}

/// A metric on both kernels, and how it changes.
fn cells(row: &ComparisonRow) -> Vec<String> {
    let percent = |ratio: Option<f64>| {
        ratio.map_or("-".to_string(), |ratio| format!("{:+.1} %", (ratio - 1.0) * 100.0))
    };
    let estimate = &row.estimate;
    vec![
        row.name.clone(),
        number(mean(&row.baseline)),
        number(mean(&row.values)),
        percent(estimate.ratio),
        match (estimate.low, estimate.high) {
            (Some(low), Some(high)) => format!("{} to {}", percent(Some(low)), percent(Some(high))),
            _ => "-".to_string(),
        },
        row.verdict.words().to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use fairlab_event::Ns;

    use super::*;
    use crate::{ReportPart, find};

    /// schbench of another size meets the report's effect; a single hog cannot.
    #[test]
    fn another_workload_meets_the_effect_or_does_not() {
        let stop = AtomicBool::new(false);
        let bench = ScenarioContext::quick(&stop);
        let verdict = |workload: &str, metric: &str| {
            let setting = RunSetting::new(
                fairlab_lab::machines::find("qemu16").expect("a machine"),
                workload.split_whitespace().map(String::from).collect(),
                Ns::from_secs(5),
            );
            let scenario = find("load-balance-rework").expect("a scenario");
            let report = scenario.run_own(&bench, &setting).expect("runs").expect("not stopped");
            assert!(report.claims.is_empty() && !report.to_text().contains("Claims"));
            let rows = report.parts.iter().find_map(|part| match part {
                ReportPart::Table { rows, .. } => Some(rows),
                _ => None,
            });
            let row = rows.expect("a table").iter().find(|row| row[0] == metric).cloned();
            row.expect("the metric")[5].clone()
        };
        let p99 = "wakeup_latency_ns_p99";
        assert_eq!(verdict("schbench -m 2 -t 8 -c 150000 -s 1000 -r 5 -w 0", p99), "worse");
        assert_eq!(verdict("pipe -l 100", "throughput"), "equivalent");
    }
}
