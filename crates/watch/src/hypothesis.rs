//! One question of many: does this metric of this case change at this step?
//!
//! Must not know: how runs are made.

use fairlab_analysis::statistics::{
    BetterDirection, Estimate, FALSE_DISCOVERY_RATE, LookLevels, MetricVerdict, adjusted, judge, more_runs,
    paired_at_look,
};
use fairlab_change::compare::is_too_far;

use crate::case_runs::{CaseRuns, LineStep, SeedRange};

/// Fewer runs tell too little of how many more it would take.
const TOO_FAR_FROM: usize = 9;

/// Whether a metric changes at a step.
pub(crate) struct Hypothesis {
    /// The case, by its number.
    pub case: usize,
    /// The metric, by its number in the case.
    pub metric: usize,
    pub better: BetterDirection,
    pub margin: f64,
    pub step: LineStep,
    /// The classes before and after it.
    pub classes: [usize; 2],
    /// What the last look says.
    pub estimate: Option<Estimate>,
    /// Runs a side at the last look.
    pub runs: usize,
    /// The probability of it, adjusted for all that is asked.
    pub q: Option<f64>,
    pub is_closed: bool,
}

impl Hypothesis {
    /// Looks at the runs that there are.
    pub fn look(&mut self, runs: &CaseRuns, count: usize, levels: &LookLevels) {
        let of = |class: usize| {
            let mut values = runs.values(class, self.metric, SeedRange::Found);
            values.truncate(count);
            values
        };
        let [before, after] = self.classes.map(of);
        self.runs = before.len();
        self.estimate = Some(paired_at_look(&before, &after, levels));
    }

    /// What it comes to, of all that is asked.
    pub fn verdict(&self) -> MetricVerdict {
        let Some(estimate) = &self.estimate else { return MetricVerdict::Undecided };
        let is_real = self.q.is_some_and(|q| q <= FALSE_DISCOVERY_RATE);
        judge(estimate, self.better, self.margin, is_real)
    }

    /// Whether it is a change for sure, and of interest.
    pub fn is_found(&self) -> bool {
        let beyond = self
            .estimate
            .and_then(|estimate| estimate.ratio)
            .is_none_or(|ratio| ratio > 1.0 + self.margin || ratio < 1.0 - self.margin);
        self.verdict().is_difference() && beyond
    }

    /// Closes it where more runs would alter nothing, or far too many would be needed.
    fn close(&mut self, left: usize) {
        let more = self.estimate.and_then(|estimate| more_runs(&estimate, self.margin, FALSE_DISCOVERY_RATE));
        let is_small =
            self.estimate.and_then(|estimate| estimate.p).is_some_and(|p| p > FALSE_DISCOVERY_RATE);
        self.is_closed = self.verdict() != MetricVerdict::Undecided
            || self.runs >= TOO_FAR_FROM && is_too_far(more, left) && is_small;
    }

    /// How the two relate in runs that took no part in finding it, and whether that confirms it.
    pub fn confirmed(&self, runs: &CaseRuns, levels: &LookLevels) -> (Estimate, bool) {
        let [before, after] = self.classes.map(|class| runs.values(class, self.metric, SeedRange::Fresh));
        let count = before.len().min(after.len());
        let fresh = paired_at_look(&before[..count], &after[..count], levels);
        let rises = |estimate: &Estimate| estimate.ratio.map(|ratio| ratio > 1.0);
        let same_way = self.estimate.is_some_and(|found| rises(&found) == rises(&fresh));
        (fresh, same_way && fresh.p.is_some_and(|p| p <= FALSE_DISCOVERY_RATE))
    }
}

/// All that is asked as one family: what each look's probabilities come to, and which questions need no more runs.
pub(crate) fn settle(family: &mut [Hypothesis], left: usize) {
    let all =
        adjusted(&family.iter().map(|one| one.estimate.and_then(|estimate| estimate.p)).collect::<Vec<_>>());
    for (one, q) in family.iter_mut().zip(all) {
        one.q = q;
        // A change that stood among fewer questions may be open again.
        one.close(left);
    }
}
