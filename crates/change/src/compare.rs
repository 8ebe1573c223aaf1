//! A comparison from its sides to its answer: verdicts, causes, and what the rules of a gate say.
//!
//! Must not know: of what kind the sides are, how the answer is printed.

use fairlab_analysis::selector::TimeRange;
use fairlab_analysis::statistics::{LookLevels, MetricVerdict, MoreRuns};
use fairlab_lab::answer::gate::GateVerdict;
use fairlab_lab::answer::{CompareAnswer, LooksAnswer, MetricAnswer};
use fairlab_lab::names::{ShownMetrics, metrics_of};
use fairlab_lab::provenance::Provenance;
use fairlab_lab::{
    Caller, CompareOptions, Comparison, ComparisonRow, LabError, LookEnd, LookedAt, RunSide, RunsLooker,
    Sets, Sides, Wanted, compare_sides,
};

use crate::causes::causes_of;
use crate::gate::{GateRule, Rules, leave_open};
use crate::left_out::mind_left_out;

/// What is asked of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompareSpec {
    /// What it looks at.
    pub options: CompareOptions,
    /// The rules of a gate.
    pub rules: Rules,
    /// What is wanted of the runs.
    pub wanted: Wanted,
}

impl CompareSpec {
    /// The spec that a user's words mean. Metrics and rules that name no task are about those that are shown. `explain`: why tasks wait
    /// differently is asked, too.
    ///
    /// # Errors
    /// One of the words is no metric's name.
    pub fn of(
        metrics: &[String],
        margin: f64,
        rules: &[GateRule],
        (shown, time): (ShownMetrics, TimeRange),
        explain: bool,
    ) -> Result<CompareSpec, LabError> {
        let mut metrics = metrics_of(&shown.whose, metrics)?;
        let rules = Rules::of(rules, &shown.whose);
        let names = metrics.iter().map(|metric| metric.name.clone()).collect();
        let options =
            CompareOptions { margin, metrics: names, shown: shown.clone(), levels: LookLevels::default() };
        metrics.extend(rules.metrics().cloned());
        Ok(CompareSpec { options, rules, wanted: Wanted { metrics, shown, time, causes: explain } })
    }

    /// What it looks at, at a look with these levels.
    fn at(&self, levels: &LookLevels) -> CompareOptions {
        CompareOptions { levels: levels.clone(), ..self.options.clone() }
    }
}

/// The runs of a comparison, looked at while they are made.
struct CompareLooker<'s> {
    spec: &'s CompareSpec,
    on_look: &'s dyn Fn(&str),
}

impl RunsLooker for CompareLooker<'_> {
    fn asks(&self) -> bool {
        !self.spec.wanted.metrics.is_empty()
    }

    fn accept(&self, first: &[RunSide]) -> Result<(), LabError> {
        compare_sides(first, &self.spec.options)?;
        self.spec.rules.accept(first)
    }

    /// Sure are the rules of a gate where there are some, or the metrics that were asked for, or the one that the workload is run for.
    fn look(&self, sides: &[RunSide], levels: &LookLevels, left: usize) -> Result<LookEnd, LabError> {
        let comparison = compare_sides(sides, &self.spec.at(levels))?;
        let rows = looked_for(&comparison, &self.spec.options.metrics);
        rows.iter().for_each(|row| (self.on_look)(&told(row)));
        Ok(match self.spec.rules.judge(sides, levels)? {
            Some(gate) if gate.outcome == GateVerdict::Undecided => LookEnd::Open,
            Some(_) if self.spec.options.metrics.is_empty() => LookEnd::Sure,
            _ => end_of(&rows, left),
        })
    }
}

/// The rows that decide how many runs are made: of the metrics that were asked for, or of the one that the workload is run for, or all.
fn looked_for<'c>(comparison: &'c Comparison, asked: &[String]) -> Vec<&'c ComparisonRow> {
    let headline = || comparison.rows.iter().filter(|row| row.name == comparison.headline);
    match asked.is_empty() && headline().next().is_some() {
        true => headline().collect(),
        false => comparison.rows.iter().collect(),
    }
}

/// A look that would need so many times the runs that are left ends them.
const TOO_FAR: usize = 10;

/// Fewer runs tell too little of how many more it would take.
const TOO_FAR_FROM: usize = 14;

/// Whether what would decide is far beyond the runs that are left.
pub fn is_too_far(more: Option<MoreRuns>, left: usize) -> bool {
    match more {
        Some(MoreRuns::TooMany) => true,
        Some(MoreRuns::About(more)) => more > TOO_FAR * left,
        None => false,
    }
}

/// Whether these rows are sure, or never will be with so many runs more.
pub fn end_of(rows: &[&ComparisonRow], left: usize) -> LookEnd {
    let open = rows.iter().filter(|row| row.verdict == MetricVerdict::Undecided).collect::<Vec<_>>();
    let known = rows.iter().all(|row| row.values.len() >= TOO_FAR_FROM);
    match open.is_empty() {
        true => LookEnd::Sure,
        false if known && open.iter().all(|row| is_too_far(row.more, left)) => LookEnd::TooFar,
        false => LookEnd::Open,
    }
}

/// `4 runs a side: throughput of v6.6 is 0.94 (0.91 to 0.98) times that of the baseline, worse`
fn told(row: &ComparisonRow) -> String {
    let end = |end: Option<f64>| end.map_or("?".to_string(), |end| format!("{end:.3}"));
    let (low, high) = (end(row.estimate.low), end(row.estimate.high));
    let ratio = end(row.estimate.ratio);
    let (runs, verdict) = (row.values.len(), row.verdict.words());
    format!(
        "{runs} runs a side: {} of {} is {ratio} times ({low} to {high}), {verdict}",
        row.name, row.kernel
    )
}

/// A comparison.
#[derive(Debug)]
pub struct Compared<'s> {
    /// The answer.
    pub answer: CompareAnswer,
    /// What was compared.
    pub sets: Sets<'s>,
}

/// Makes or reads the runs of all sides, and compares them with those of the first.
///
/// # Errors
/// Runs cannot be made or read, differ in more than their kernel, or lack what was asked for.
pub fn compare<'s>(
    sides: &'s Sides,
    spec: &CompareSpec,
    provenance: Provenance,
    caller: &Caller<'_>,
) -> Result<Compared<'s>, LabError> {
    let looker = CompareLooker { spec, on_look: caller.on_look };
    let sets = sides.sets(&spec.wanted, provenance, caller, &looker)?;
    let levels = sets.looked.as_ref().map(LookedAt::levels).unwrap_or_default();
    let mut comparison =
        Comparison { partial: sets.partial, ..compare_sides(&sets.sides, &spec.at(&levels))? };
    comparison.notices.extend(sets.notices.iter().cloned());
    if let Some(experiment) = sets.experiment {
        mind_left_out(&mut comparison, &experiment.sides);
    }
    let mut answer = CompareAnswer::from(comparison);
    if spec.wanted.causes {
        answer.causes = causes_of(&sets.sides, sets.experiment, caller.stop)?;
    }
    answer.looks = sets.looked.as_ref().map(LooksAnswer::from);
    answer.gate = spec.rules.judge(&sets.sides, &levels)?;
    if let Some(gate) = &mut answer.gate {
        let is_open = |row: &&MetricAnswer| row.verdict == MetricVerdict::NotModelled;
        let open = answer.metrics.iter().filter(is_open).map(|row| row.kernel.as_str()).collect::<Vec<_>>();
        leave_open(gate, &open);
    }
    Ok(Compared { answer, sets })
}
