//! The two kernels between which is searched, compared as `compare` compares them, and whether that gives reason to search.
//!
//! Must not know: what lies between them.

use fairlab_analysis::statistics::{
    BetterDirection, Estimate, FALSE_DISCOVERY_RATE, MetricVerdict, adjusted, judge, paired,
};

use super::answer::SearchFinding;
use super::judge::values;
use crate::trials::{SearchHalt, SearchTrials};
use fairlab_lab::{ComparisonRow, Kernel, LabError, Pairing};

/// Runs after which the ends are looked at: as many as a comparison makes unless it is told otherwise; beyond, at every
/// doubling.
const FIRST_LOOK: usize = 10;

/// What a comparison of the two ends comes to.
pub(super) enum EndsVerdict {
    /// They differ, the bad one is the worse one: there is something to find.
    Differ,
    /// The search is over before it began.
    Over(SearchFinding),
}

/// Compares `bad` with `good`, with more and more runs until it is sure whether there is something to find. A wrong yes has
/// a probability of at most `error`. The comparison goes into `row`.
pub(super) fn compare_ends(
    trials: &mut SearchTrials<'_>,
    (good, bad): (&Kernel, &Kernel),
    (metric, margin): (&str, f64),
    (error, runs_max): (f64, usize),
    row: &mut Option<ComparisonRow>,
) -> Result<EndsVerdict, SearchHalt> {
    let looks = looks(runs_max);
    let last = looks.len() - 1;
    for (look, runs) in looks.into_iter().enumerate() {
        if trials.ensure(&[good.clone(), bad.clone()], runs)?.0 {
            let some = [good, bad].iter().all(|kernel| !trials.runs(kernel).is_empty());
            *row = if some { Some(compared(trials, (good, bad), metric, margin)?) } else { None };
            return Err(SearchHalt::Stopped);
        }
        let compared = row.insert(compared(trials, (good, bad), metric, margin)?);
        let sure = is_sure(&compared.estimate, look, error);
        match compared.verdict {
            MetricVerdict::OneCourse
                if look == last || trials.are_seedless(good) || trials.are_seedless(bad) =>
            {
                return Ok(EndsVerdict::Over(SearchFinding::OneCourse));
            }
            MetricVerdict::Equivalent => return Ok(EndsVerdict::Over(SearchFinding::Nothing)),
            MetricVerdict::Better if sure => return Ok(EndsVerdict::Over(SearchFinding::Nothing)),
            MetricVerdict::Worse | MetricVerdict::Changed if sure => return Ok(EndsVerdict::Differ),
            _ => {}
        }
    }
    Ok(EndsVerdict::Over(SearchFinding::Undecided))
}

/// Whether a difference is sure at this look, of all of which one is wrong with a probability of at most `error`.
pub(crate) fn is_sure(estimate: &Estimate, look: usize, error: f64) -> bool {
    let spent = error / ((look + 1) * (look + 2)) as f64;
    estimate.p.is_some_and(|p| p <= spent)
}

/// What a comparison in this metric alone comes to, and its p value as that of a family of one.
pub(crate) fn verdict_of(metric: &str, margin: f64, estimate: &Estimate) -> (MetricVerdict, Option<f64>) {
    let q = adjusted(&[estimate.p])[0];
    let is_real = q.is_some_and(|q| q <= FALSE_DISCOVERY_RATE);
    (judge(estimate, BetterDirection::of_metric(metric), margin, is_real), q)
}

/// Numbers of runs of both ends after which is looked.
pub(crate) fn looks(runs_max: usize) -> Vec<usize> {
    let doubled = std::iter::successors(Some(FIRST_LOOK), |runs| runs.checked_mul(2));
    let mut looks = doubled.take_while(|&runs| runs < runs_max).collect::<Vec<_>>();
    looks.push(runs_max);
    looks
}

/// `other` beside `base` in one metric, by all runs that both have: what a comparison of this metric alone says.
///
/// # Errors
/// A run lacks the metric.
pub(super) fn compared(
    trials: &SearchTrials<'_>,
    (base, other): (&Kernel, &Kernel),
    metric: &str,
    margin: f64,
) -> Result<ComparisonRow, LabError> {
    let (mut baseline, mut new) = (values(trials, base, metric)?, values(trials, other, metric)?);
    let shared = baseline.len().min(new.len());
    baseline.truncate(shared);
    new.truncate(shared);
    let estimate = paired(&baseline, &new);
    let (verdict, q) = verdict_of(metric, margin, &estimate);
    Ok(ComparisonRow {
        name: metric.to_string(),
        kernel: other.name().to_string(),
        verdict,
        estimate,
        baseline,
        values: new,
        pairing: Pairing::Paired,
        better: BetterDirection::of_metric(metric),
        q,
        more: None,
        baseline_modes: None,
        modes: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_look_is_a_comparison() {
        assert_eq!(looks(40), [10, 20, 40]);
        assert_eq!((looks(10), looks(4)), (vec![10], vec![4]));
    }
}
