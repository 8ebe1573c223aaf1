//! Questions to a sweep that is done or under way: which cells, grouped by what, which metrics.
//!
//! Must not know: how the answer looks.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fairlab_analysis::statistics::{is_one_course, mean, median, standard_deviation, two_modes};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::templates::Templates;
use super::{KIND, SweepPlan};
use crate::cells;
use crate::names::no_metric;
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

/// `fairlab/query/1`: what was asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "schema", rename = "fairlab/query/1")]
pub struct QueryAnswer {
    /// How far the sweep is; `None`: all its cells are done.
    pub partial: Option<PartialSweep>,
    /// Cells that were looked at.
    pub cells: usize,
    /// A row a group and metric.
    pub rows: Vec<QueryRow>,
    /// The columns that make a group.
    #[serde(skip)]
    pub by: Vec<String>,
    /// The cells' kernels.
    #[serde(skip)]
    pub kernels: BTreeSet<String>,
    /// Their machines.
    #[serde(skip)]
    pub machines: BTreeSet<String>,
    /// Their seeds.
    #[serde(skip)]
    pub seeds: BTreeSet<u64>,
}

/// How far a sweep is that is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PartialSweep {
    /// Cells that are done.
    pub cells: usize,
    /// Cells that it has.
    pub wanted: usize,
}

/// One group's metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueryRow {
    /// The group: the columns that were asked for, each with its value.
    #[serde(serialize_with = "as_map")]
    pub group: Vec<(String, String)>,
    /// The metric.
    pub metric: String,
    /// How many cells have it.
    pub cells: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation; `None` where it tells nothing.
    pub deviation: Option<f64>,
    /// Whether the cells never differ: one course of events, whose spread tells nothing.
    pub one_course: bool,
    /// Their median.
    pub median: f64,
    /// The least of them.
    pub min: Option<f64>,
    /// The greatest.
    pub max: Option<f64>,
    /// Whether the cells fall into two modes.
    pub two_modes: bool,
}

fn as_map<S: Serializer>(group: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(group.iter().map(|(name, value)| (name, value)))
}

/// Columns of every cell; options stand under their own names.
const COLUMNS: [&str; 5] = ["kernel", "machine", "workload", "seed", "cell"];

/// What the column of an option begins with in `cells.parquet`.
pub(super) const OPTION_COLUMN: &str = "option_";

/// How many values of a column an error lists.
const VALUES_SHOWN: usize = 12;

/// Asks a sweep's folder.
///
/// # Errors
/// It is none, or there is no such column or metric.
pub fn query(folder: &Path, query: &Query) -> Result<QueryAnswer, LabError> {
    query_as(folder, query, None)
}

/// Asks a sweep's folder by the settings of its file: kernels, machines and command lines as the file has them, the options that
/// have more than one value, and the columns of `wanted`.
///
/// # Errors
/// As of [`query`].
pub fn query_settings(folder: &Path, wanted: &Query) -> Result<QueryAnswer, LabError> {
    let templates = Templates::read(folder)?;
    let options = templates.iter().flat_map(|templates| templates.options.clone());
    let by = ["kernel", "machine", "workload"].map(String::from).into_iter().chain(options);
    let by = by.chain(wanted.by.clone()).collect();
    query_as(folder, &Query { by, ..wanted.clone() }, templates.as_ref())
}

/// The settings of a sweep's file, each with the number of its first cell and its columns as [`query_settings`] has them.
pub fn settings_of(plan: &SweepPlan) -> Vec<(usize, Vec<(String, String)>)> {
    let templates = Templates::of(&plan.to_json());
    let all = plan.option_names().map(String::from).collect::<Vec<_>>();
    let setting = |group: usize| {
        let number = group * plan.seeds();
        let cell = plan.cell(number);
        let known = json!({ "cell": number });
        let written = |name: &str, own: String| {
            templates.as_ref().and_then(|templates| templates.column(name, &known)).unwrap_or(own)
        };
        let mut columns = vec![
            ("kernel".to_string(), written("kernel", cell.spec.kernel.name().to_string())),
            ("machine".to_string(), cell.spec.machine.name.clone()),
            ("workload".to_string(), written("workload", cell.spec.workload.join(" "))),
        ];
        let options = all.iter().cloned().zip(cell.options);
        let varies =
            |name: &String| templates.as_ref().is_some_and(|templates| templates.options.contains(name));
        columns.extend(options.filter(|(name, _)| varies(name)));
        (number, columns)
    };
    (0..plan.groups()).map(setting).collect()
}

/// Asks; with templates, kernels and command lines are as the sweep's file has them.
fn query_as(folder: &Path, query: &Query, templates: Option<&Templates>) -> Result<QueryAnswer, LabError> {
    let mut groups: BTreeMap<Vec<ColumnValue>, BTreeMap<usize, Vec<f64>>> = BTreeMap::new();
    let mut cells = 0;
    let (mut kernels, mut machines, mut seeds) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut seen: Vec<String> = Vec::new();
    let mut met: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let progress = cells::read(folder, &KIND, &mut |cell| {
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
        let written = |name: &str| templates.and_then(|templates| templates.column(name, &cell));
        let group =
            query.by.iter().map(|name| written(name).map_or_else(|| column(name), Ok).map(ColumnValue));
        let group = group.collect::<Result<Vec<_>, _>>()?;
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
        return Err(no_metric("the cells", name, seen.iter().map(String::as_str)));
    }
    let rows = groups.iter().flat_map(|(group, metrics)| {
        metrics.iter().map(|(&index, values)| QueryRow::of(query, group, index, values))
    });
    let Progress { done, total } = progress;
    let partial = (done < total).then_some(PartialSweep { cells: done, wanted: total });
    Ok(QueryAnswer { partial, cells, rows: rows.collect(), by: query.by.clone(), kernels, machines, seeds })
}

/// A cell's value in a column, an option by its own name or by that of its column in `cells.parquet`.
fn value(cell: &Value, name: &str) -> Option<String> {
    let own = COLUMNS.contains(&name).then(|| cell.get(name)).flatten();
    let option = |name: &str| cell["options"].get(name);
    match own.or_else(|| option(name)).or_else(|| option(name.strip_prefix(OPTION_COLUMN)?))? {
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// A value of a column, which sorts as people do: numbers in it by their size, so that 4 comes before 16 and v6.6 before v6.12.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ColumnValue(String);

impl Ord for ColumnValue {
    fn cmp(&self, other: &ColumnValue) -> Ordering {
        by_parts(&self.0, &other.0).then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for ColumnValue {
    fn partial_cmp(&self, other: &ColumnValue) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares part by part: whole numbers, and what stands between them.
fn by_parts(one: &str, other: &str) -> Ordering {
    let (mut one, mut other) = (parts(one), parts(other));
    loop {
        let (one, other) = match (one.next(), other.next()) {
            (None, None) => return Ordering::Equal,
            (one, other) => (one.unwrap_or_default(), other.unwrap_or_default()),
        };
        let order = match (one.parse::<u128>(), other.parse::<u128>()) {
            (Ok(one), Ok(other)) => one.cmp(&other),
            _ => one.cmp(other),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Runs of digits, and of other characters.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let is_digit = rest.chars().next()?.is_ascii_digit();
        let end = rest.find(|char: char| char.is_ascii_digit() != is_digit).unwrap_or(rest.len());
        let (part, behind) = rest.split_at(end);
        rest = behind;
        Some(part)
    })
}

impl QueryRow {
    fn of(query: &Query, group: &[ColumnValue], metric: usize, values: &[f64]) -> QueryRow {
        let one_course = is_one_course(values);
        let ends = |fold: fn(f64, f64) -> f64| values.iter().copied().reduce(fold);
        QueryRow {
            group: query.by.iter().cloned().zip(group.iter().map(|value| value.0.clone())).collect(),
            metric: query.metrics[metric].clone(),
            cells: values.len(),
            mean: mean(values),
            deviation: standard_deviation(values).filter(|_| !one_course),
            one_course,
            median: median(values),
            min: ends(f64::min),
            max: ends(f64::max),
            two_modes: two_modes(values).is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cells::CellWorkers;
    use std::fs;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::super::sweep;
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

    fn answer(folder: &Path) -> QueryAnswer {
        let by = ["kernel", "threads"].map(String::from).to_vec();
        let metrics = vec!["switches_per_s".to_string()];
        query(folder, &Query { by, metrics, ..Query::default() }).expect("an answer")
    }

    /// A sweep that is stopped again and again, its journal torn, ends as one that is not.
    #[test]
    fn an_interrupted_sweep_goes_on() {
        let plan = SweepPlan::parse(SWEEP).expect("a plan");
        let (whole, torn) = (folder("whole"), folder("torn"));
        let never = AtomicBool::new(false);
        let outcome = sweep(&plan, None, &whole, CellWorkers::Threads(2), &|_| {}, &never).expect("a sweep");
        assert_eq!((outcome.cells, outcome.before, outcome.done), (32, 0, 32));
        let mut rounds = 0;
        loop {
            let (stop, seen) = (AtomicBool::new(false), AtomicUsize::new(0));
            let show = |_| stop.store(seen.fetch_add(1, Ordering::Relaxed) >= 7, Ordering::Relaxed);
            let outcome = sweep(&plan, None, &torn, CellWorkers::Threads(3), &show, &stop).expect("a part");
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
        let again =
            sweep(&plan, None, &whole, CellWorkers::Threads(2), &|_| {}, &never).expect("nothing to do");
        assert_eq!((again.before, again.done), (32, 32));
        let other = SweepPlan::parse(&SWEEP.replace("seeds = 4", "seeds = 5")).expect("a plan");
        assert!(
            sweep(&other, None, &whole, CellWorkers::Threads(2), &|_| {}, &never)
                .expect_err("refused")
                .problem
                .contains("another sweep")
        );
        for folder in [whole, torn] {
            fs::remove_dir_all(folder).expect("removed");
        }
    }

    #[test]
    fn numbers_sort_by_their_size() {
        let mut values =
            ["16", "v6.12", "4", "8", "v6.6", "v6.6,base_slice_ns=3000", "", "10ms", "9ms", "0.5"]
                .map(|value| ColumnValue(value.to_string()));
        values.sort();
        let sorted = values.each_ref().map(|value| value.0.as_str());
        assert_eq!(
            sorted,
            ["", "0.5", "4", "8", "9ms", "10ms", "16", "v6.6", "v6.6,base_slice_ns=3000", "v6.12"]
        );
    }

    #[test]
    fn cells_are_summed_up_by_group() {
        let plan = SweepPlan::parse(SWEEP).expect("a plan");
        let folder = folder("query");
        sweep(&plan, None, &folder, CellWorkers::Threads(2), &|_| {}, &AtomicBool::new(false))
            .expect("a sweep");
        let found = answer(&folder);
        assert_eq!((found.cells, found.rows.len()), (32, 6));
        let [kernel, threads] = &found.rows[0].group[..] else { panic!("{found:?}") };
        assert_eq!((kernel.1.as_str(), threads.1.as_str()), ("v6.5", "2"));
        assert_eq!(found.rows.iter().map(|row| row.cells).collect::<Vec<_>>(), [8, 8, 4, 4, 4, 4]);
        let ask = |filter: (&str, &str), metric: &str| {
            let filters = vec![(filter.0.to_string(), filter.1.to_string())];
            query(&folder, &Query { filters, metrics: vec![metric.to_string()], by: Vec::new() })
        };
        assert_eq!(ask(("seed", "3"), "throughput").expect("an answer").cells, 8);
        let named_as_a_column = ask(("option_threads", "2"), "throughput").expect("an answer");
        assert_eq!(named_as_a_column, ask(("threads", "2"), "throughput").expect("an answer"));
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
