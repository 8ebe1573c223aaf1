//! One question of many: does this metric of this case change at this step?
//!
//! Must not know: how runs are made.

use fairlab_analysis::statistics::{
    BetterDirection, Estimate, FALSE_DISCOVERY_RATE, LookLevels, MetricVerdict, adjusted, chance_to_show,
    judge, paired_at_look, paired_seeds_at_look,
};

use crate::case_runs::{CaseRuns, LineStep, SeedRange};

/// A question whose chance to be answered by a change is smaller gets no more runs: so ends what is only chance, most of it at the first
/// look.
const HOPELESS: f64 = 0.2;

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
        self.estimate = Some(self.compared(runs, (&before, &after), levels));
    }

    fn compared(&self, runs: &CaseRuns, (before, after): (&[f64], &[f64]), levels: &LookLevels) -> Estimate {
        match self.classes.iter().all(|&class| runs.seeds_alter(class)) {
            true => paired_seeds_at_look(before, after, levels),
            false => paired_at_look(before, after, levels),
        }
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

    /// Closes it where it is answered, or hardly would be by `most` runs at `level`.
    fn close(&mut self, most: usize, level: f64) {
        let chance = self.estimate.and_then(|estimate| chance_to_show(&estimate, most, level));
        self.is_closed =
            self.verdict() != MetricVerdict::Undecided || chance.is_some_and(|chance| chance < HOPELESS);
    }

    /// How the two relate in runs that took no part in finding it, and whether that confirms it.
    pub fn confirmed(&self, runs: &CaseRuns, levels: &LookLevels) -> (Estimate, bool) {
        let [before, after] = self.classes.map(|class| runs.values(class, self.metric, SeedRange::Fresh));
        let count = before.len().min(after.len());
        let fresh = self.compared(runs, (&before[..count], &after[..count]), levels);
        let rises = |estimate: &Estimate| estimate.ratio.map(|ratio| ratio > 1.0);
        let same_way = self.estimate.is_some_and(|found| rises(&found) == rises(&fresh));
        (fresh, same_way && fresh.p.is_some_and(|p| p <= FALSE_DISCOVERY_RATE))
    }
}

/// All that is asked as one family: what each look's probabilities come to, and which questions need no more runs, of `most` that there
/// may be.
pub(crate) fn settle(family: &mut [Hypothesis], most: usize) {
    let each = family.iter().map(|one| one.estimate.and_then(|estimate| estimate.p)).collect::<Vec<_>>();
    let all = adjusted(&each);
    let is_real = |(_, q): &(&Option<f64>, &Option<f64>)| q.is_some_and(|q| q <= FALSE_DISCOVERY_RATE);
    let last = each.iter().zip(&all).filter(is_real).filter_map(|(p, _)| *p).max_by(f64::total_cmp);
    // Where a change begins to count, among so many questions with so many changes.
    let level = last.unwrap_or(FALSE_DISCOVERY_RATE / family.len() as f64);
    for (one, q) in family.iter_mut().zip(all) {
        one.q = q;
        // A change that stood among fewer questions may be open again.
        one.close(most, level);
    }
}
