//! A report's own run, at its own size, on kernels of the user's choice: built from sources, or modelled.
//!
//! Must not know: what a report's run shows.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlab_lab::kernel::KernelNeed;
use fairlab_lab::{Kernel, LabError, RunSpec};
use serde::Deserialize;

use super::expressions::{Cell, Language};
use super::render::shown;
use super::{Scenario, ScenarioContext, ScenarioReport};

/// The run that a report tells of.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReportedRun {
    /// The side; its first run is made.
    side: String,
    /// Another machine than the side's.
    machine: Option<String>,
    /// Modelled kernels that stand beside.
    kernels: Vec<String>,
    /// What is shown of a kernel's runs: a column's head, and an expression.
    columns: Vec<[String; 2]>,
    /// What was published: the kernel, and a figure a column.
    published: Vec<(String, Vec<f64>)>,
}

impl Scenario {
    /// Makes the report's own run on these kernels, and on the modelled ones that stand beside. There are no claims. Gives `None` when
    /// it was stopped before its end.
    ///
    /// # Errors
    /// A kernel cannot run it, or the report has no single run.
    pub fn run_reported(
        &self,
        bench: &ScenarioContext<'_>,
        kernels: &[String],
    ) -> Result<Option<ScenarioReport>, LabError> {
        let none = || {
            let hint = "leave --reported out: --kernel alone stands beside the report's two, in a small size";
            LabError::new(format!("'{}' tells of no single run", self.name), hint)
        };
        let reported = self.reported.as_ref().ok_or_else(none)?;
        let plans = self.plans(bench.quick)?;
        let mut plan = plans.into_iter().find(|plan| plan.side == reported.side).ok_or_else(none)?;
        plan.machine = reported.machine.clone().unwrap_or(plan.machine);
        let named = reported.kernels.iter().chain(kernels);
        let kernels = named.map(|name| Kernel::parse_for(name, KernelNeed::Seeds, "a report's own run"));
        let kernels = kernels.collect::<Result<Vec<_>, _>>()?;
        let first = bench.spec(&plan, 1)?;
        let mut specs = Vec::new();
        for kernel in &kernels {
            kernel.prepare(&first.machine, &|_, _| (), bench.stop)?;
            specs.extend((1..=plan.runs).map(|seed| RunSpec {
                kernel: kernel.clone(),
                seed,
                ..first.clone()
            }));
        }
        let Some(runs) = bench.runs(&specs)? else { return Ok(None) };
        let mut report = ScenarioReport::new(self, bench);
        report.page = format!("{}-own-code", self.name);
        report.heading(format!("The report's run on {}", plan.machine));
        report.text(format!(
            "{}: seeds 1 to {} of each kernel, {} s at most. Modelled kernels beside kernels that are built from sources (`src:`), on one \
             machine with one table of costs; figures that were published stand first.",
            plan.workload,
            plan.runs,
            shown(Some(plan.duration().as_secs_f64()))
        ));
        let language = Language::new(self, &[], Vec::new());
        let mut rows = Vec::new();
        for (name, figures) in &reported.published {
            let cells = figures.iter().map(|figure| shown(Some(*figure).filter(|figure| figure.is_finite())));
            rows.push([format!("{name}, published")].into_iter().chain(cells).collect());
        }
        for (kernel, runs) in kernels.iter().zip(runs.chunks(plan.runs as usize)) {
            let counted = vec![BTreeMap::new(); runs.len()];
            let cell = Arc::new(Cell {
                plan: plan.clone(),
                runs: runs.to_vec(),
                counted,
                verified: None,
                pooled: false,
            });
            let mut row = vec![kernel.name().to_string()];
            for [_, expression] in &reported.columns {
                row.push(shown(language.of_runs(expression, Arc::clone(&cell))?));
            }
            rows.push(row);
        }
        let heads = reported.columns.iter().map(|[head, _]| head.as_str());
        report.table(&["kernel"].into_iter().chain(heads).collect::<Vec<_>>(), rows);
        report.keep(runs);
        Ok(Some(report))
    }
}
