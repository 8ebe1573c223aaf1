//! Whether one kernel is good or bad: as many runs as it takes, by themselves and beside those of the two ends.
//!
//! Must not know: the order of kernels.

use fairlab_analysis::statistics::sequential::{SideOfLine, SignTest, most_hold};
use fairlab_analysis::statistics::{is_one_course, mean};

use super::answer::{JudgedKernel, KernelState};
use super::question::{BisectQuestion, MetricClaim};
use crate::trials::{SearchHalt, SearchTrials};
use fairlab_lab::names::no_metric;
use fairlab_lab::{Kernel, LabError, RunResult};

/// Runs after which a kernel is looked at; beyond, at every doubling.
const LOOKS: [usize; 6] = [4, 6, 9, 13, 20, 30];

/// How kernels are judged good or bad.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum KernelCriterion {
    /// By the side of a dividing line.
    Line {
        /// The metric.
        metric: String,
        /// Whether values are compared by their logarithms, and the least that a value counts as.
        floor: Option<f64>,
        /// The line, on that scale.
        middle: f64,
        /// Whether bad kernels lie above it.
        bad_above: bool,
    },
    /// By a claim that holds on bad ones.
    Claim(MetricClaim),
}

impl KernelCriterion {
    /// From the runs of a good and of a bad kernel; `None` where a metric's line cannot be drawn, for they do not differ.
    pub(crate) fn between(question: &BisectQuestion, good: &[f64], bad: &[f64]) -> Option<KernelCriterion> {
        let metric = match question {
            BisectQuestion::Claim(claim) => return Some(KernelCriterion::Claim(claim.clone())),
            BisectQuestion::Metric(metric) => metric.clone(),
        };
        let least = good.iter().chain(bad).copied().fold(f64::INFINITY, f64::min);
        // A value that is much less than any of these counts as a thousandth of the least.
        let floor = (least > 0.0).then_some(least / 1000.0);
        let (good, bad) = (mean(&scaled(good, floor)), mean(&scaled(bad, floor)));
        let differ = good != bad && (good + bad).is_finite();
        let middle = f64::midpoint(good, bad);
        differ.then_some(KernelCriterion::Line { metric, floor, middle, bad_above: bad > good })
    }

    fn metric(&self) -> &str {
        match self {
            KernelCriterion::Line { metric, .. } => metric,
            KernelCriterion::Claim(claim) => &claim.metric,
        }
    }
}

/// The values on the scale on which they are compared: logarithms of no less than `floor`, or as they are.
pub(super) fn scaled(values: &[f64], floor: Option<f64>) -> Vec<f64> {
    values.iter().map(|&value| floor.map_or(value, |floor| value.max(floor).ln())).collect()
}

/// The metric's value in each of a kernel's runs.
///
/// # Errors
/// No run has it.
pub(crate) fn values(trials: &SearchTrials<'_>, kernel: &Kernel, metric: &str) -> Result<Vec<f64>, LabError> {
    values_in(trials.runs(kernel), kernel.name(), metric)
}

/// The metric's value in each of these runs, which are those of `whose`.
///
/// # Errors
/// A run lacks it.
pub(crate) fn values_in(runs: &[RunResult], whose: &str, metric: &str) -> Result<Vec<f64>, LabError> {
    let values = runs.iter().filter_map(|run| run.metric(metric)).collect::<Vec<_>>();
    if let (true, Some(run)) = (values.len() < runs.len(), runs.first()) {
        let known = run.metrics.iter().map(|(name, _)| name.as_str());
        return Err(no_metric(&format!("runs of {whose}"), metric, known));
    }
    Ok(values)
}

/// Judges a kernel beside the `ends` of the search, the good one first; wrong at most with a probability of `error`.
pub(super) fn judge(
    trials: &mut SearchTrials<'_>,
    kernel: &Kernel,
    (yardstick, ends): (&KernelCriterion, [&Kernel; 2]),
    (error, runs_max): (f64, usize),
) -> Result<JudgedKernel, SearchHalt> {
    let mut tests = LineTests::new(error);
    for runs in looks(runs_max) {
        let are_asked = if matches!(yardstick, KernelCriterion::Claim(_)) { 1 } else { 3 };
        let asked = [kernel, ends[0], ends[1]].map(Kernel::clone);
        if trials.ensure(&asked[..are_asked], runs)?.0 {
            return Err(SearchHalt::Stopped);
        }
        if trials.are_seedless(kernel) {
            return judged(trials, kernel, yardstick, KernelState::OneCourse).map_err(SearchHalt::Failed);
        }
        let values = values(trials, kernel, yardstick.metric())?;
        let state = match yardstick {
            KernelCriterion::Line { metric, .. } => {
                let ends = [self::values(trials, ends[0], metric)?, self::values(trials, ends[1], metric)?];
                tests.is_bad(yardstick, &values, &ends)
            }
            KernelCriterion::Claim(claim) => {
                most_hold(&values.iter().map(|&value| claim.holds(value)).collect::<Vec<_>>(), error)
            }
        };
        if let Some(is_bad) = state {
            let state = if is_bad { KernelState::Bad } else { KernelState::Good };
            return judged(trials, kernel, yardstick, state).map_err(SearchHalt::Failed);
        }
    }
    let never_differs = match yardstick {
        KernelCriterion::Line { metric, .. } => is_one_course(&values(trials, kernel, metric)?),
        KernelCriterion::Claim(_) => false,
    };
    let state = if never_differs { KernelState::OneCourse } else { KernelState::Undecided };
    judged(trials, kernel, yardstick, state).map_err(SearchHalt::Failed)
}

/// On which side of the line a kernel lies: by its own runs, and seed by seed beside the runs of both ends, where chance that all
/// three have in common falls out.
pub(crate) struct LineTests {
    alone: SignTest,
    beside: SignTest,
}

impl LineTests {
    pub(crate) fn new(error: f64) -> LineTests {
        let test = SignTest::new(error / 2.0);
        LineTests { alone: test, beside: test }
    }

    /// Whether what has these `values` is bad, beside those of both ends; `None`: it is not sure yet, or the criterion is no line.
    pub(crate) fn is_bad(
        &mut self,
        criterion: &KernelCriterion,
        values: &[f64],
        ends: &[Vec<f64>; 2],
    ) -> Option<bool> {
        let KernelCriterion::Line { floor, middle, bad_above, .. } = criterion else { return None };
        let ends = [scaled(&ends[0], *floor), scaled(&ends[1], *floor)];
        let side = self.look(&scaled(values, *floor), *middle, &ends)?;
        Some((side == SideOfLine::Above) == *bad_above)
    }

    fn look(&mut self, values: &[f64], middle: f64, ends: &[Vec<f64>; 2]) -> Option<SideOfLine> {
        let alone = values.iter().map(|value| value - middle).collect::<Vec<_>>();
        let middles = ends[0].iter().zip(&ends[1]).map(|(&good, &bad)| f64::midpoint(good, bad));
        let beside = values.iter().zip(middles).map(|(value, middle)| value - middle).collect::<Vec<_>>();
        let alone = self.alone.look(&alone);
        let beside = match is_one_course(values) {
            true => self.beside.look(&beside),
            false => self.beside.look_at_pairs(&beside),
        };
        alone.or(beside)
    }
}

fn judged(
    trials: &SearchTrials<'_>,
    kernel: &Kernel,
    yardstick: &KernelCriterion,
    state: KernelState,
) -> Result<JudgedKernel, LabError> {
    let values = values(trials, kernel, yardstick.metric())?;
    Ok(JudgedKernel::of(kernel.name(), state, &values))
}

/// Numbers of runs after which is looked.
pub(crate) fn looks(runs_max: usize) -> Vec<usize> {
    let doubled = std::iter::successors(Some(60_usize), |runs| runs.checked_mul(2));
    let mut looks = LOOKS.into_iter().chain(doubled).take_while(|&runs| runs < runs_max).collect::<Vec<_>>();
    looks.push(runs_max);
    looks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_end_at_the_limit() {
        assert_eq!(looks(40), [4, 6, 9, 13, 20, 30, 40]);
        assert_eq!((looks(4), looks(3)), (vec![4], vec![3]));
    }

    /// Chance that is the same on all three kernels hides a side from the values alone, not from pairs.
    #[test]
    fn pairs_tell_what_values_alone_do_not() {
        let chance = [30.0, -20.0, 45.0, -40.0, 10.0, -25.0];
        let small = [0.1, -0.2, 0.0, 0.3, -0.1, 0.2];
        let of =
            |mean: f64| chance.iter().zip(small).map(|(big, small)| mean + big + small).collect::<Vec<_>>();
        let ends = [of(249.0).iter().map(|value| value - 0.05).collect(), of(237.0)];
        let side = |values: &[f64]| LineTests::new(0.01).look(values, 243.0, &ends);
        let exact = |mean: f64| chance.map(|big| mean + big);
        assert_eq!(
            (side(&exact(249.0)), side(&exact(237.0))),
            (Some(SideOfLine::Above), Some(SideOfLine::Below))
        );
        assert_eq!(SignTest::new(0.005).look(&exact(249.0).map(|value| value - 243.0)), None);
        assert_eq!(side(&[249.0; 6]), None, "pairs of what has nothing in common say no more");
    }

    #[test]
    fn the_line_lies_between() {
        let question = BisectQuestion::Metric("m".to_string());
        let line = KernelCriterion::between(&question, &[10.0, 10.0], &[1000.0, 1000.0]).expect("a line");
        let KernelCriterion::Line { middle, bad_above, .. } = line else { panic!("{line:?}") };
        assert!((middle.exp() - 100.0).abs() < 1e-9 && bad_above);
        let zeros = KernelCriterion::between(&question, &[4.0, 6.0], &[0.0, 2.0]).expect("a line");
        assert!(
            matches!(zeros, KernelCriterion::Line { floor: None, middle: 3.0, bad_above: false, .. }),
            "{zeros:?}"
        );
        assert_eq!(KernelCriterion::between(&question, &[5.0], &[5.0]), None);
    }
}
