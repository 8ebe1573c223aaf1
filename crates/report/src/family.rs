//! Comparisons of many sides on two kernels, which take account of how many there are.
//!
//! Must not know: what sides stand for.

use std::sync::Arc;

use fairlab_analysis::statistics::{FALSE_DISCOVERY_RATE, MARGIN, adjusted, judge};
use fairlab_lab::{CompareOptions, ComparisonRow, LabError, compare};
use minijinja::context;
use minijinja::value::Value;

use super::expressions::Cell;
use super::file::Family;

impl Family {
    /// Every side with both kernels, compared: its values before and after, the change in percent, and the verdict.
    ///
    /// # Errors
    /// A side measures none of the metrics.
    pub(crate) fn compared(&self, cells: &[Arc<Cell>]) -> Result<Vec<(String, Value)>, LabError> {
        let [before, after] = &self.kernels;
        let mut rows = Vec::new();
        for one in cells.iter().filter(|cell| !cell.pooled && cell.plan.name == *before) {
            let is_other = |cell: &&Arc<Cell>| cell.plan.name == *after && cell.plan.side == one.plan.side;
            let Some(other) = cells.iter().find(is_other) else { continue };
            rows.push((one.plan.side.clone(), self.row(one, other)?));
        }
        let family = rows.iter().map(|(_, row)| row.estimate.p).collect::<Vec<_>>();
        for ((_, row), q) in rows.iter_mut().zip(adjusted(&family)) {
            let is_real = q.is_some_and(|q| q <= FALSE_DISCOVERY_RATE);
            row.verdict = judge(&row.estimate, row.better, MARGIN, is_real);
        }
        Ok(rows.into_iter().map(|(side, row)| (side, value_of(row))).collect())
    }

    fn row(&self, one: &Cell, other: &Cell) -> Result<ComparisonRow, LabError> {
        let results = one.runs.iter().chain(&other.runs).cloned().collect::<Vec<_>>();
        let has = |name: &&String| results.iter().all(|run| run.metric(name).is_some());
        let metrics = self.metrics.iter().filter(has).take(1).cloned().collect();
        let options = CompareOptions { metrics, ..CompareOptions::default() };
        let rows = compare(&self.kernels, &results, &options)?.rows;
        rows.into_iter().next().ok_or_else(|| {
            LabError::new(format!("'{}' measures nothing", one.plan.workload), "let it run longer")
        })
    }
}

fn value_of(row: ComparisonRow) -> Value {
    context! {
        differs => row.verdict.is_difference(),
        verdict => row.verdict.words(),
        change => row.estimate.ratio.map(|ratio| (ratio - 1.0) * 100.0),
        before => row.baseline,
        after => row.values,
    }
}
