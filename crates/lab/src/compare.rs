//! Comparing kernels, metric by metric: the effect, its interval, and the verdict.
//!
//! Must not know: how the answer looks, how runs were made.

mod live;
mod records;

pub(crate) use live::live_sides;
pub(crate) use records::read_sides;
pub use records::{RunRecord, RunSide, TraceCounting, TraceCounts, count_tasks, count_trace};

use fairlab_analysis::statistics::{
    BetterDirection, Estimate, FALSE_DISCOVERY_RATE, LookLevels, MARGIN, MetricVerdict, MoreRuns, RunModes,
    adjusted, judge, more_runs, paired_at_look, two_modes, unpaired_at_look,
};

use fairlab_analysis::task_selector;

use crate::names::ShownMetrics;
use crate::{LabError, Progress, RunResult, names, sides_of, warm_up, workloads};

/// How runs of two sides belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// One seed on both sides: what chance does, it does to both.
    Paired,
    /// Runs of their own.
    Unpaired,
}

impl Pairing {
    /// The word in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Pairing::Paired => "paired",
            Pairing::Unpaired => "unpaired",
        }
    }
}

/// What a comparison looks at.
#[derive(Clone, Debug, PartialEq)]
pub struct CompareOptions {
    /// The share of the baseline below which a difference is of no interest.
    pub margin: f64,
    /// Only these metrics; all where there are none.
    pub metrics: Vec<String>,
    /// Which metrics of names are compared by default.
    pub shown: ShownMetrics,
    /// How sure it must be: more so where it is one of several looks at the runs.
    pub levels: LookLevels,
}

impl Default for CompareOptions {
    fn default() -> CompareOptions {
        CompareOptions {
            margin: MARGIN,
            metrics: Vec::new(),
            shown: ShownMetrics::default(),
            levels: LookLevels::default(),
        }
    }
}

/// One metric of one kernel against the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonRow {
    /// The metric.
    pub name: String,
    /// The kernel that is compared.
    pub kernel: String,
    /// The baseline's value in each run; of pairs, in the order of `values`.
    pub baseline: Vec<f64>,
    /// The kernel's value in each run.
    pub values: Vec<f64>,
    /// How the runs belong together.
    pub pairing: Pairing,
    /// Which way is better.
    pub better: BetterDirection,
    /// How they relate.
    pub estimate: Estimate,
    /// Its probability, adjusted for the number of metrics.
    pub q: Option<f64>,
    /// What it comes to.
    pub verdict: MetricVerdict,
    /// Where it is undecided: the runs on each side that would probably decide, beyond those there are.
    pub more: Option<MoreRuns>,
    /// The baseline's runs fall into two modes.
    pub baseline_modes: Option<RunModes>,
    /// The kernel's runs do.
    pub modes: Option<RunModes>,
}

impl ComparisonRow {
    /// Whether it is a metric of some of the tasks.
    fn is_by_name(&self) -> bool {
        task_selector::split(&self.name).is_some()
    }
}

/// Every metric of every kernel against the first.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The baseline's name.
    pub baseline: String,
    /// The margin that *equivalent* refers to.
    pub margin: f64,
    /// The metric that the workload is run for.
    pub headline: String,
    /// One row a kernel and metric, kernel by kernel.
    pub rows: Vec<ComparisonRow>,
    /// How far the runs were when they were stopped; `None`: all were made.
    pub partial: Option<Progress>,
    /// What the reader should know: metrics that some runs lack, runs without a partner.
    pub notices: Vec<String>,
}

/// Compares the runs of `kernels[1..]` with those of `kernels[0]`; they pair by seed.
///
/// # Errors
/// A metric that was asked for was not measured.
pub fn compare(
    kernels: &[String],
    results: &[RunResult],
    options: &CompareOptions,
) -> Result<Comparison, LabError> {
    let mut comparison = compare_sides(&sides_of(kernels, results), options)?;
    comparison.notices.extend(warm_up::notices(results));
    Ok(comparison)
}

/// Compares each side with the first. Runs pair by seed where all have one; otherwise nothing pairs.
///
/// # Errors
/// The sides ran on different machines or under different workloads, or a metric that was asked for was not measured.
pub fn compare_sides(sides: &[RunSide], options: &CompareOptions) -> Result<Comparison, LabError> {
    let Some((baseline, others)) = sides.split_first() else {
        return Err(LabError::new("nothing to compare", "name two kernels or two folders of runs"));
    };
    records::check_alike(sides)?;
    let first = sides.iter().flat_map(|side| &side.records).next();
    let headline = workloads::headline(first.map_or("", |record| &record.workload));
    check_metrics(sides, &options.metrics)?;
    let known = sides.iter().flat_map(RunSide::metric_names).collect::<Vec<_>>();
    if !known.is_empty() {
        options.shown.check(known.iter().map(String::as_str))?;
    }
    let mut comparison = Comparison {
        baseline: baseline.name.clone(),
        margin: options.margin,
        headline: headline.to_string(),
        rows: Vec::new(),
        partial: None,
        notices: Vec::new(),
    };
    comparison.notices.extend(sides.iter().filter_map(seedless));
    for other in others {
        let (rows, notices) = against(baseline, other, options);
        comparison.rows.extend(rows);
        comparison.notices.extend(notices);
    }
    Ok(comparison)
}

/// Runs that are all equal tell no more than one run.
fn seedless(side: &RunSide) -> Option<String> {
    let (first, others) = side.records.split_first()?;
    let alike = !others.is_empty() && others.iter().all(|other| other.metrics == first.metrics);
    alike.then(|| {
        format!(
            "all {} runs of {} are one course of events: chance plays no part in them, and they decide no more than one",
            side.records.len(),
            side.name
        )
    })
}

fn check_metrics(sides: &[RunSide], wanted: &[String]) -> Result<(), LabError> {
    for name in wanted {
        for side in sides {
            if !side.records.is_empty() && side.records.iter().all(|record| record.metric(name).is_none()) {
                let known = side.metric_names();
                let who = format!("the runs of {}", side.name);
                return Err(names::no_metric(&who, name, known.iter().map(String::as_str)));
            }
        }
    }
    Ok(())
}

fn against(
    baseline: &RunSide,
    other: &RunSide,
    options: &CompareOptions,
) -> (Vec<ComparisonRow>, Vec<String>) {
    let mut notices = Vec::new();
    if let Some(empty) = [baseline, other].into_iter().find(|side| side.records.is_empty()) {
        notices.push(format!("there is no run of {}: nothing can be compared with it", empty.name));
        return (Vec::new(), notices);
    }
    let (pairing, base, new) = baseline.beside(other);
    let alone = baseline.records.len() + other.records.len() - base.len() - new.len();
    if alone > 0 {
        notices.push(format!(
            "{alone} runs of {} and {} have no partner of the same seed",
            baseline.name, other.name
        ));
    }
    let mut rows = Vec::new();
    for name in baseline.metric_names() {
        let is_wanted = match options.metrics.is_empty() {
            true => options.shown.shows(&name, &baseline.workloads),
            false => options.metrics.contains(&name),
        };
        if !is_wanted {
            continue;
        }
        let values = |records: &[&RunRecord]| {
            records.iter().filter_map(|record| record.metric(&name)).collect::<Vec<_>>()
        };
        let (baseline_values, new_values) = (values(&base), values(&new));
        let lacking = base.len() + new.len() - baseline_values.len() - new_values.len();
        if lacking > 0 {
            let runs = base.len() + new.len();
            notices.push(format!(
                "{name}: {lacking} of {runs} runs of {} and {} do not have it",
                baseline.name, other.name
            ));
            continue;
        }
        rows.push(row(&name, &other.name, (pairing, &options.levels), (baseline_values, new_values)));
    }
    decide(&mut rows, options.margin);
    (rows, notices)
}

fn row(
    name: &str,
    kernel: &str,
    (pairing, levels): (Pairing, &LookLevels),
    (baseline, values): (Vec<f64>, Vec<f64>),
) -> ComparisonRow {
    let estimate = match pairing {
        Pairing::Paired => paired_at_look(&baseline, &values, levels),
        Pairing::Unpaired => unpaired_at_look(&baseline, &values, levels),
    };
    ComparisonRow {
        name: name.to_string(),
        kernel: kernel.to_string(),
        pairing,
        better: BetterDirection::of_metric(name),
        estimate,
        q: None,
        verdict: MetricVerdict::Undecided,
        more: None,
        baseline_modes: two_modes(&baseline),
        modes: two_modes(&values),
        baseline,
        values,
    }
}

/// The metrics of one kernel are a family: each verdict takes account of how many there are. Those by name are one of their own, so
/// that what is asked of a task alters no verdict on the machine.
fn decide(rows: &mut [ComparisonRow], margin: f64) {
    rows.sort_by_key(ComparisonRow::is_by_name);
    let machine = rows.iter().take_while(|row| !row.is_by_name()).count();
    let (machine, by_name) = rows.split_at_mut(machine);
    decide_family(machine, margin);
    decide_family(by_name, margin);
}

/// Judges rows that are reported together, as one family: their verdicts, and how many more runs would decide.
pub fn decide_family(rows: &mut [ComparisonRow], margin: f64) {
    let family = rows.iter().map(|row| row.estimate.p).collect::<Vec<_>>();
    for (row, q) in rows.iter_mut().zip(adjusted(&family)) {
        let is_real = q.is_some_and(|q| q <= FALSE_DISCOVERY_RATE);
        row.q = q;
        row.verdict = judge(&row.estimate, row.better, margin, is_real);
        // What this metric alone must fall below, so that its family lets it stand.
        let level = match (row.estimate.p, q) {
            (Some(p), Some(q)) if q > 0.0 => FALSE_DISCOVERY_RATE * p / q,
            _ => FALSE_DISCOVERY_RATE,
        };
        let undecided = row.verdict == MetricVerdict::Undecided;
        row.more = if undecided { more_runs(&row.estimate, margin, level) } else { None };
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use fairlab_analysis::task_selector::{NameKind, TaskSelector};

    use super::*;
    use crate::answer::CompareAnswer;

    fn side(name: &str, machine: &str, seeds: Option<&[u64]>, values: &[f64]) -> RunSide {
        let record = |(index, &value): (usize, &f64)| RunRecord {
            machine: machine.to_string(),
            workload: "w".to_string(),
            kernel: name.to_string(),
            seed: seeds.map(|seeds| seeds[index]),
            metrics: vec![("wakeup_latency_ns_p99".to_string(), value)],
            ..RunRecord::default()
        };
        let records = values.iter().enumerate().map(record).collect();
        RunSide { name: name.to_string(), records, ..RunSide::default() }
    }

    fn compared(base: &RunSide, other: &RunSide) -> Comparison {
        compare_sides(&[base.clone(), other.clone()], &CompareOptions::default()).expect("a comparison")
    }

    #[test]
    fn runs_pair_by_seed_whatever_their_order() {
        let comparison = compared(
            &side("a", "m", Some(&[1, 2]), &[100.0, 200.0]),
            &side("b", "m", Some(&[2, 1, 3]), &[101.0, 50.0, 1.0]),
        );
        let [row] = &comparison.rows[..] else { panic!("{comparison:?}") };
        assert_eq!((row.pairing, row.values.len(), row.verdict), (Pairing::Paired, 2, MetricVerdict::Better));
        assert!((row.estimate.ratio.expect("a ratio") - 0.5).abs() < 0.01);
        assert_eq!(comparison.notices, ["1 runs of a and b have no partner of the same seed"]);
    }

    #[test]
    fn recorded_runs_do_not_pair() {
        let base = [100.0, 103.0, 98.0, 101.0];
        let comparison =
            compared(&side("a", "m", None, &base), &side("b", "m", None, &base.map(|value| value * 1.5)));
        let row = &comparison.rows[0];
        assert_eq!((row.pairing, row.verdict), (Pairing::Unpaired, MetricVerdict::Worse));
        let few = compared(&side("a", "m", None, &base[..2]), &side("b", "m", None, &[104.0, 99.0]));
        assert_eq!(few.rows[0].verdict, MetricVerdict::Undecided);
        assert!(matches!(few.rows[0].more, Some(MoreRuns::About(_))), "{few:?}");
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        let (one, other) = (side("a", "vm40", None, &[1.0]), side("b", "laptop8", None, &[1.0]));
        let refusal = |sides: &[RunSide], metrics: &[&str]| {
            let metrics = metrics.iter().map(ToString::to_string).collect();
            let options = CompareOptions { metrics, ..CompareOptions::default() };
            compare_sides(sides, &options).expect_err("refused").to_string()
        };
        assert!(refusal(&[one.clone(), other], &[]).contains("a ran on vm40, b on laptop8"));
        assert!(refusal(&[one.clone(), one], &["frames"]).contains("have no metric 'frames'; closest are "));
        assert!(refusal(&[], &[]).contains("nothing to compare"));
    }

    #[test]
    fn runs_without_chance_are_named() {
        let same = side("a", "m", Some(&[1, 2, 3]), &[5.0, 5.0, 5.0]);
        let comparison = compared(&same, &side("b", "m", Some(&[1, 2, 3]), &[5.0, 6.0, 5.0]));
        assert_eq!(comparison.notices.len(), 1);
        assert!(
            comparison.notices[0].starts_with("all 3 runs of a are one course of events"),
            "{:?}",
            comparison.notices
        );
    }

    /// Whatever a metric's values are, where no side's runs ever differ there is no verdict, no interval, no probability.
    #[test]
    fn one_course_of_events_gets_no_verdict() {
        for (base, other) in [([5.0; 3], [9.0; 3]), ([5.0; 3], [5.0; 3]), ([0.0; 3], [0.0; 3])] {
            for seeds in [Some(&[1, 2, 3][..]), None] {
                let comparison = compared(&side("a", "m", seeds, &base), &side("b", "m", seeds, &other));
                let row = &json!(CompareAnswer::from(&comparison))["metrics"][0];
                assert_eq!(row["verdict"], "one_course", "{row}");
                for part in ["low", "high", "p", "q", "more_runs", "method"] {
                    assert!(row[part].is_null(), "{part}: {row}");
                }
            }
        }
    }

    /// Twenty metrics without a difference: one of them looks like one alone, and does not stand among the others.
    #[test]
    fn many_metrics_are_many_chances() {
        let metric = |index: usize, value: f64| (format!("metric{index}"), value);
        let record = |shift: f64| RunRecord {
            machine: "m".to_string(),
            workload: "w".to_string(),
            metrics: (0..20)
                .map(|index| metric(index, 100.0 + shift * if index == 0 { 1.0 } else { 0.1 }))
                .collect(),
            ..RunRecord::default()
        };
        let side = |name: &str, shifts: [f64; 4], by: f64| {
            let mut records = shifts.map(record).to_vec();
            records.iter_mut().for_each(|record| record.metrics[0].1 += by);
            RunSide { name: name.to_string(), records, ..RunSide::default() }
        };
        let shifts = [-1.0, 1.0, 0.5, -0.5];
        let comparison = compared(&side("a", shifts, 0.0), &side("b", shifts, 2.0));
        let row = &comparison.rows[0];
        assert!(row.estimate.p.is_some_and(|p| p < 0.05) && row.estimate.low.is_some_and(|low| low > 1.0));
        assert_eq!(row.verdict, MetricVerdict::Undecided, "{row:?}");
        assert!(matches!(row.more, Some(MoreRuns::About(1..))));
    }

    /// Metrics by name are a family of their own, and only those that were asked for are compared.
    #[test]
    fn names_alter_no_verdict_on_the_machine() {
        let with = |side: RunSide, names: usize| {
            let more = |record: RunRecord| {
                let more = (0..names).map(|name| (format!("task{name} slowdown"), record.metrics[0].1));
                RunRecord { metrics: record.metrics.iter().cloned().chain(more).collect(), ..record }
            };
            RunSide { records: side.records.into_iter().map(more).collect(), ..side }
        };
        let sides = |names| {
            let values = [100.0, 103.0, 98.0, 101.0];
            let base = with(side("a", "m", None, &values), names);
            [base, with(side("b", "m", None, &values.map(|value| value * 1.02 + 1.0)), names)]
        };
        let q = |names: usize, shown: ShownMetrics| {
            let options = CompareOptions { shown, ..CompareOptions::default() };
            let comparison = compare_sides(&sides(names), &options).expect("a comparison");
            (comparison.rows[0].q.expect("a probability"), comparison.rows.len())
        };
        let all = ShownMetrics { kinds: vec![NameKind::Task], ..ShownMetrics::default() };
        let one = ShownMetrics { whose: vec![TaskSelector::parse("task3")], ..ShownMetrics::default() };
        let (alone, rows) = q(0, ShownMetrics::default());
        assert_eq!((q(9, ShownMetrics::default()), rows), ((alone, 1), 1));
        assert_eq!((q(9, all), q(9, one)), ((alone, 10), (alone, 1)));
        let unknown = ShownMetrics { whose: vec![TaskSelector::parse("tusk3")], ..ShownMetrics::default() };
        let options = CompareOptions { shown: unknown, ..CompareOptions::default() };
        let error = compare_sides(&sides(9), &options).expect_err("no such task").to_string();
        assert!(error.contains("closest are task"), "{error}");
    }

    /// What never happens on one side and always on the other is listed, though it has no ratio.
    #[test]
    fn what_appears_from_nothing_has_a_verdict() {
        for seeds in [Some(&[1, 2, 3][..]), None] {
            let other = side("b", "m", seeds, &[5.0, 6.0, 5.5]);
            let comparison = compared(&side("a", "m", seeds, &[0.0; 3]), &other);
            let row = &json!(CompareAnswer::from(&comparison))["metrics"][0];
            assert_eq!(row["verdict"], "worse", "{row}");
            assert!(row["ratio"].is_null() && row["high"].is_null() && row["low"].is_number(), "{row}");
        }
    }

    #[test]
    fn the_json_has_the_shape_that_scripts_rely_on() {
        let comparison = compared(&side("a", "m", Some(&[1]), &[2.0]), &side("b", "m", Some(&[1]), &[1.0]));
        let json = json!(CompareAnswer::from(&comparison));
        assert_eq!(
            (json["schema"].as_str(), json["baseline"].as_str()),
            (Some("fairlab/compare/1"), Some("a"))
        );
        let row = &json["metrics"][0];
        assert_eq!((row["kernel"].as_str(), row["verdict"].as_str()), (Some("b"), Some("one_course")));
        assert!(row["low"].is_null() && row["ratio"].is_number());
        assert_eq!(json["headline"], "wakeup_latency_ns_p99");
    }
}
