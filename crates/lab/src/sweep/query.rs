//! Questions to a sweep that is done or under way: which cells, grouped by what, which metrics.
//!
//! Must not know: how the answer looks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fairlab_analysis::statistics::{Modes, is_one_course, mean, median, standard_deviation, two_modes};
use serde_json::{Value, json};

use super::journal;
use crate::{LabError, Progress};

/// A question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Only cells whose column has this value.
    pub filters: Vec<(String, String)>,
    /// Columns whose values make a group.
    pub by: Vec<String>,
    /// Metrics to sum up.
    pub metrics: Vec<String>,
}

/// One group's metric.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerRow {
    /// The group: the values of the columns that were asked for.
    pub group: Vec<String>,
    /// The metric.
    pub metric: String,
    /// Its value in each cell, in no order.
    pub values: Vec<f64>,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The columns that make a group.
    pub by: Vec<String>,
    /// A row a group and metric.
    pub rows: Vec<AnswerRow>,
    /// Cells that were looked at.
    pub cells: usize,
    /// How far the sweep is; `None`: all its cells are done.
    pub partial: Option<Progress>,
    /// Their kernels.
    pub kernels: BTreeSet<String>,
    /// Their machines.
    pub machines: BTreeSet<String>,
    /// Their seeds.
    pub seeds: BTreeSet<u64>,
}

/// Columns of every cell; options stand under their own names.
const COLUMNS: [&str; 5] = ["kernel", "machine", "workload", "seed", "cell"];

/// So many values of a column an error lists.
const VALUES_SHOWN: usize = 12;

/// Asks a sweep's folder.
///
/// # Errors
/// It is none, or there is no such column or metric.
pub fn query(folder: &Path, query: &Query) -> Result<Answer, LabError> {
    let mut groups: BTreeMap<Vec<String>, BTreeMap<usize, Vec<f64>>> = BTreeMap::new();
    let mut cells = 0;
    let (mut kernels, mut machines, mut seeds) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut seen: Vec<String> = Vec::new();
    let mut met: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let progress = journal::read(folder, &mut |cell| {
        let column = |name: &str| {
            value(&cell, name).ok_or_else(|| {
                let options = cell["options"]
                    .as_object()
                    .into_iter()
                    .flat_map(|options| options.keys().map(String::as_str));
                let known = COLUMNS.into_iter().chain(options).collect::<Vec<_>>().join(", ");
                LabError::new(format!("the sweep has no column '{name}'"), format!("it has {known}"))
            })
        };
        for (name, wanted) in &query.filters {
            let is = column(name)?;
            if is != *wanted {
                met.entry(name.clone()).or_default().insert(is);
                return Ok(());
            }
        }
        let group = query.by.iter().map(|name| column(name)).collect::<Result<Vec<_>, _>>()?;
        let values = groups.entry(group).or_default();
        for (index, name) in query.metrics.iter().enumerate() {
            if let Some(value) = cell["metrics"].get(name).and_then(Value::as_f64) {
                values.entry(index).or_default().push(value);
            }
        }
        for name in cell["metrics"].as_object().into_iter().flat_map(|metrics| metrics.keys()) {
            if !seen.contains(name) {
                seen.push(name.clone());
            }
        }
        kernels.extend(cell["kernel"].as_str().map(str::to_string));
        machines.extend(cell["machine"].as_str().map(str::to_string));
        seeds.extend(cell["seed"].as_u64());
        cells += 1;
        Ok(())
    })?;
    if let Some((name, values)) = met.first_key_value().filter(|_| cells == 0) {
        let values = values.iter().take(VALUES_SHOWN).cloned().collect::<Vec<_>>().join(", ");
        let asked = query.filters.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
        return Err(LabError::new(
            format!("no cell has {}", asked.join(" and ")),
            format!("of {name} there are {values}"),
        ));
    }
    if let Some(name) = query.metrics.iter().find(|name| cells > 0 && !seen.contains(name)) {
        let known = seen.join(", ");
        return Err(LabError::new(
            format!("the cells have no metric '{name}'"),
            format!("they have {known}"),
        ));
    }
    let rows = groups.into_iter().flat_map(|(group, metrics)| {
        metrics.into_iter().map(move |(index, values)| (group.clone(), index, values))
    });
    let rows =
        rows.map(|(group, index, values)| AnswerRow { group, metric: query.metrics[index].clone(), values });
    let partial = (progress.done < progress.total).then_some(progress);
    Ok(Answer { by: query.by.clone(), rows: rows.collect(), cells, partial, kernels, machines, seeds })
}

fn value(cell: &Value, name: &str) -> Option<String> {
    let own = COLUMNS.contains(&name).then(|| cell.get(name)).flatten();
    match own.or_else(|| cell["options"].get(name))? {
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

impl AnswerRow {
    /// The two modes that the cells fall into, if they do.
    pub fn modes(&self) -> Option<Modes> {
        two_modes(&self.values)
    }

    /// Whether the cells never differ: one course of events, whose spread tells nothing.
    pub fn is_one_course(&self) -> bool {
        is_one_course(&self.values)
    }
}

impl Answer {
    /// The machine-readable answer, schema `fairlab/query/1`.
    pub fn to_json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let group = self.by.iter().zip(&row.group).map(|(name, value)| (name.clone(), json!(value)));
            let ends = |fold: fn(f64, f64) -> f64| row.values.iter().copied().reduce(fold);
            json!({
                "group": group.collect::<serde_json::Map<_, _>>(),
                "metric": row.metric,
                "cells": row.values.len(),
                "mean": mean(&row.values),
                "deviation": standard_deviation(&row.values).filter(|_| !row.is_one_course()),
                "one_course": row.is_one_course(),
                "median": median(&row.values),
                "min": ends(f64::min),
                "max": ends(f64::max),
                "two_modes": row.modes().is_some(),
            })
        });
        json!({
            "schema": "fairlab/query/1",
            "partial": self.partial.map(|Progress { done, total }| json!({ "cells": done, "wanted": total })),
            "cells": self.cells,
            "rows": rows.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::super::{Plan, sweep};
    use super::*;

    const SWEEP: &str = r#"
kernels = ["v6.5", "v6.6,base_slice_ns={slice}"]
machines = ["vm4"]
workloads = ["schbench -m 1 -t {threads} -c 500 -s 300"]
seeds = 4
duration_ms = 60
options = { threads = [2, 6], slice = [1000000, 3000000] }
"#;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("fairlab-sweep-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    fn answer(folder: &Path) -> Answer {
        let by = ["kernel", "threads"].map(String::from).to_vec();
        let metrics = vec!["switches_per_s".to_string()];
        query(folder, &Query { by, metrics, ..Query::default() }).expect("an answer")
    }

    /// A sweep that is stopped again and again, its journal torn, ends as one that is not.
    #[test]
    fn an_interrupted_sweep_goes_on() {
        let plan = Plan::parse(SWEEP).expect("a plan");
        let (whole, torn) = (folder("whole"), folder("torn"));
        let never = AtomicBool::new(false);
        let outcome = sweep(&plan, &whole, 2, &|_| {}, &never).expect("a sweep");
        assert_eq!((outcome.cells, outcome.before, outcome.done), (32, 0, 32));
        let mut rounds = 0;
        loop {
            let (stop, seen) = (AtomicBool::new(false), AtomicUsize::new(0));
            let show = |_| stop.store(seen.fetch_add(1, Ordering::Relaxed) >= 7, Ordering::Relaxed);
            let outcome = sweep(&plan, &torn, 3, &show, &stop).expect("a part");
            rounds += 1;
            if outcome.is_complete() {
                break;
            }
            assert!(!torn.join("cells.parquet").exists() && outcome.done > outcome.before);
            let journal = torn.join("cells.jsonl");
            let text = fs::read_to_string(&journal).expect("a journal");
            fs::write(&journal, &text[..text.len() - 40]).expect("torn");
        }
        assert!(rounds > 3, "{rounds}");
        let counts = |folder: &Path| fs::read_to_string(folder.join("counts.json")).expect("counts");
        assert_eq!(counts(&whole), counts(&torn));
        let again = sweep(&plan, &whole, 2, &|_| {}, &never).expect("nothing to do");
        assert_eq!((again.before, again.done), (32, 32));
        let other = Plan::parse(&SWEEP.replace("seeds = 4", "seeds = 5")).expect("a plan");
        assert!(
            sweep(&other, &whole, 2, &|_| {}, &never).expect_err("refused").problem.contains("another sweep")
        );
        for folder in [whole, torn] {
            fs::remove_dir_all(folder).expect("removed");
        }
    }

    #[test]
    fn cells_are_summed_up_by_group() {
        let plan = Plan::parse(SWEEP).expect("a plan");
        let folder = folder("query");
        sweep(&plan, &folder, 2, &|_| {}, &AtomicBool::new(false)).expect("a sweep");
        let found = answer(&folder);
        assert_eq!((found.cells, found.rows.len()), (32, 6));
        assert_eq!(found.rows[0].group, ["v6.5", "2"]);
        assert_eq!(found.rows.iter().map(|row| row.values.len()).collect::<Vec<_>>(), [8, 8, 4, 4, 4, 4]);
        let ask = |filter: (&str, &str), metric: &str| {
            let filters = vec![(filter.0.to_string(), filter.1.to_string())];
            query(&folder, &Query { filters, metrics: vec![metric.to_string()], by: Vec::new() })
        };
        assert_eq!(ask(("seed", "3"), "throughput").expect("an answer").cells, 8);
        let error = ask(("kernel", "v9"), "throughput").expect_err("no cell").to_string();
        assert!(error.starts_with("no cell has kernel=v9; of kernel there are v6.5, v6.6,"), "{error}");
        assert!(
            ask(("colour", "red"), "throughput")
                .expect_err("no column")
                .to_string()
                .contains("it has kernel, machine")
        );
        assert!(
            ask(("seed", "3"), "frames").expect_err("no metric").to_string().contains("no metric 'frames'")
        );
        assert!(fs::read(folder.join("cells.parquet")).expect("a table").starts_with(b"PAR1"));
        fs::remove_dir_all(folder).expect("removed");
    }
}
