//! Whether one kernel is good or bad: as many runs as it takes.
//!
//! Must not know: the order of kernels.

use fairlab_analysis::statistics::sequential::{SideOfLine, SignTest, most_hold};
use fairlab_analysis::statistics::{is_one_course, mean};

use super::answer::{JudgedKernel, KernelState};
use super::question::{BisectQuestion, MetricClaim};
use crate::trials::{SearchHalt, SearchTrials};
use fairlab_lab::names::no_metric;
use fairlab_lab::{Kernel, LabError};

/// Runs after which a kernel is looked at; beyond, at every doubling.
const LOOKS: [usize; 6] = [4, 6, 9, 13, 20, 30];

/// How kernels are judged good or bad.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum KernelCriterion {
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
    pub(super) fn between(question: &BisectQuestion, good: &[f64], bad: &[f64]) -> Option<KernelCriterion> {
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
    let runs = trials.runs(kernel);
    let values = runs.iter().filter_map(|run| run.metric(metric)).collect::<Vec<_>>();
    if let (true, Some(run)) = (values.len() < runs.len(), runs.first()) {
        let known = run.metrics.iter().map(|(name, _)| name.as_str());
        return Err(no_metric(&format!("runs of {}", kernel.name()), metric, known));
    }
    Ok(values)
}

/// Judges a kernel; wrong at most with a probability of `error`.
pub(super) fn judge(
    trials: &mut SearchTrials<'_>,
    kernel: &Kernel,
    yardstick: &KernelCriterion,
    (error, runs_max): (f64, usize),
) -> Result<JudgedKernel, SearchHalt> {
    let mut test = SignTest::new(error);
    let mut looks = looks(runs_max).into_iter();
    loop {
        let Some(runs) = looks.next() else {
            return judged(trials, kernel, yardstick, KernelState::Undecided).map_err(SearchHalt::Failed);
        };
        if trials.ensure(std::slice::from_ref(kernel), runs)?.0 {
            return Err(SearchHalt::Stopped);
        }
        let values = values(trials, kernel, yardstick.metric())?;
        // A claim is counted: there it is enough that events differ. Otherwise values have to, and may do so yet.
        let alike = match yardstick {
            KernelCriterion::Claim(_) => trials.are_seedless(kernel),
            KernelCriterion::Line { .. } => is_one_course(&values),
        };
        if alike {
            if !trials.are_seedless(kernel) && runs < runs_max {
                continue;
            }
            return judged(trials, kernel, yardstick, KernelState::OneCourse).map_err(SearchHalt::Failed);
        }
        let state = match yardstick {
            KernelCriterion::Line { floor, middle, bad_above, .. } => {
                let distances =
                    scaled(&values, *floor).iter().map(|value| value - middle).collect::<Vec<_>>();
                test.look(&distances).map(|side| (side == SideOfLine::Above) == *bad_above)
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
}

fn judged(
    trials: &SearchTrials<'_>,
    kernel: &Kernel,
    yardstick: &KernelCriterion,
    state: KernelState,
) -> Result<JudgedKernel, LabError> {
    let values = values(trials, kernel, yardstick.metric())?;
    Ok(JudgedKernel { kernel: kernel.name().to_string(), state, runs: values.len(), mean: mean(&values) })
}

/// Numbers of runs after which is looked.
pub(super) fn looks(runs_max: usize) -> Vec<usize> {
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
