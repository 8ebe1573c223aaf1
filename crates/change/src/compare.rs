//! A comparison from its sides to its answer: verdicts, causes, and what the rules of a gate say.
//!
//! Must not know: of what kind the sides are, how the answer is printed.

use fairlab_analysis::selector::TimeRange;
use fairlab_analysis::statistics::MetricVerdict;
use fairlab_lab::answer::{CompareAnswer, MetricAnswer};
use fairlab_lab::names::{ShownMetrics, metrics_of};
use fairlab_lab::provenance::Provenance;
use fairlab_lab::{
    Caller, CompareOptions, Comparison, LabError, RunSide, Sets, Sides, Wanted, compare_sides,
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
        let options = CompareOptions { margin, metrics: names, shown: shown.clone() };
        metrics.extend(rules.metrics().cloned());
        Ok(CompareSpec { options, rules, wanted: Wanted { metrics, shown, time, causes: explain } })
    }

    /// Sees to it that the first runs have what is asked for.
    fn accept(&self, first: &[RunSide]) -> Result<(), LabError> {
        compare_sides(first, &self.options)?;
        self.rules.accept(first)
    }
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
    let accept = |first: &[RunSide]| spec.accept(first);
    let asks = !spec.wanted.metrics.is_empty();
    let sets = sides.sets(&spec.wanted, provenance, caller, asks.then_some(&accept))?;
    let mut comparison = Comparison { partial: sets.partial, ..compare_sides(&sets.sides, &spec.options)? };
    comparison.notices.extend(sets.notices.iter().cloned());
    if let Some(experiment) = sets.experiment {
        mind_left_out(&mut comparison, &experiment.sides);
    }
    let mut answer = CompareAnswer::from(comparison);
    if spec.wanted.causes {
        answer.causes = causes_of(&sets.sides, sets.experiment, caller.stop)?;
    }
    answer.gate = spec.rules.judge(&sets.sides)?;
    if let Some(gate) = &mut answer.gate {
        let is_open = |row: &&MetricAnswer| row.verdict == MetricVerdict::NotModelled;
        let open = answer.metrics.iter().filter(is_open).map(|row| row.kernel.as_str()).collect::<Vec<_>>();
        leave_open(gate, &open);
    }
    Ok(Compared { answer, sets })
}
