//! What both sides decided and did in a second: wakeups by what they chose, tries of balancing, the scheduler's own work.
//!
//! All tallies are one family: one is sure only if its difference stands among so many.
//!
//! Must not know: waits.

use std::collections::{BTreeMap, BTreeSet};

use fairlab_analysis::causes::{PlacementTally, WaitCauses, WorkDone};
use fairlab_analysis::statistics::{MeanDifference, adjusted};
use fairlab_kernel::work_events::SchedulerWork;

use super::{CauseStudy, is_sure, mean_of, seconds, words};
use fairlab_lab::answer::causes::{AmountAnswer, TallyAnswer, WorkAnswer};

/// All tallies; those of a kind that differ most first.
pub(super) struct CauseTallies {
    pub(super) placements: Vec<TallyAnswer>,
    pub(super) balancing: Vec<TallyAnswer>,
    pub(super) work: Vec<WorkAnswer>,
    /// Of balancing's tallies, the words of those in which a CPU without work took none.
    pub(super) refused: BTreeSet<String>,
}

/// Counts a second by word, in each run of both sides.
struct TallyRates {
    baseline: Vec<f64>,
    other: Vec<f64>,
}

impl CauseStudy {
    pub(super) fn tallies(&self) -> CauseTallies {
        let known = self.decisions_known();
        let placements = self.rates(|run| {
            let reason = |placed: &PlacementTally| if known { placed.reason.clone() } else { String::new() };
            let placed = run.placements.iter();
            placed.map(|placed| (words::placed(placed.placed, &reason(placed)), placed.count)).collect()
        });
        let tries = |run: &WaitCauses| {
            let tries = run.balancing.iter().filter(|_| known);
            tries.map(|tries| (words::tries(tries), tries.count)).collect()
        };
        // What only one side tells is no difference, nor is what one tells in less detail.
        let compared = self.tell_alike();
        let work = |of: fn(&WorkDone) -> u64| {
            self.rates(|run| {
                let work = run.work.iter().filter(|_| compared);
                work.map(|work| (work.work.clone(), of(work))).collect()
            })
        };
        let (balancing, times, units) =
            (self.rates(tries), work(|work| work.time_ns), work(|work| work.units));
        // Where work costs nothing, what is left is how much it was.
        let of_work = |(work, times): (&String, &TallyRates)| match (times.is_zero(), units.get(work)) {
            (true, Some(units)) => self.difference_of(&units.baseline, &units.other),
            _ => self.difference_of(&times.baseline, &times.other),
        };
        let of = |(_, rates): (&String, &TallyRates)| self.difference_of(&rates.baseline, &rates.other);
        let differences = placements.iter().map(of).chain(balancing.iter().map(of));
        let differences = differences.chain(times.iter().map(of_work)).collect::<Vec<_>>();
        let q = adjusted(&differences.iter().map(|difference| difference.p).collect::<Vec<_>>());
        let mut judged = differences.into_iter().zip(q);
        let placements = tallied(placements, &mut judged);
        let balancing = tallied(balancing, &mut judged);
        let work = worked(times, &units, &mut judged);
        let refused = self.both().flat_map(|run| &run.balancing).filter(|tries| words::leaves_idle(tries));
        CauseTallies { placements, balancing, work, refused: refused.map(words::tries).collect() }
    }

    /// Whether both sides' kernels are of one kind, as far as what they tell goes.
    fn tell_alike(&self) -> bool {
        let tell = |runs: &[WaitCauses]| {
            let decisions = runs.iter().flat_map(|run| &run.parts).any(|part| !part.reason.is_empty());
            (decisions, runs.iter().any(|run| !run.work.is_empty()))
        };
        tell(&self.baseline) == tell(&self.other)
    }

    fn rates(&self, of: impl Fn(&WaitCauses) -> Vec<(String, u64)>) -> BTreeMap<String, TallyRates> {
        let by_run = |runs: &[WaitCauses]| -> Vec<BTreeMap<String, f64>> {
            let rates = |run: &WaitCauses| {
                let mut rates = BTreeMap::<String, f64>::new();
                for (words, count) in of(run) {
                    *rates.entry(words).or_default() += count as f64 / seconds(run);
                }
                rates
            };
            runs.iter().map(rates).collect()
        };
        let (base, new) = (by_run(&self.baseline), by_run(&self.other));
        let names = base.iter().chain(&new).flat_map(|rates| rates.keys().cloned()).collect::<BTreeSet<_>>();
        let of_name = |runs: &[BTreeMap<String, f64>], name: &String| {
            runs.iter().map(|rates| rates.get(name).copied().unwrap_or(0.0)).collect::<Vec<_>>()
        };
        let both = |name: String| {
            let rates = TallyRates { baseline: of_name(&base, &name), other: of_name(&new, &name) };
            (name, rates)
        };
        names.into_iter().map(both).collect()
    }
}

impl TallyRates {
    fn is_zero(&self) -> bool {
        self.baseline.iter().chain(&self.other).all(|rate| *rate == 0.0)
    }
}

type JudgedDifference = (MeanDifference, Option<f64>);

fn tallied(
    rates: BTreeMap<String, TallyRates>,
    judged: &mut impl Iterator<Item = JudgedDifference>,
) -> Vec<TallyAnswer> {
    let tally = |((words, rates), (difference, q)): ((String, TallyRates), JudgedDifference)| TallyAnswer {
        words,
        baseline_per_s: mean_of(&rates.baseline),
        per_s: mean_of(&rates.other),
        q,
        sure: is_sure(&difference, q),
    };
    let mut tallies = rates.into_iter().zip(judged).map(tally).collect::<Vec<_>>();
    let size = |tally: &TallyAnswer| (tally.per_s - tally.baseline_per_s).abs();
    tallies.sort_by(|one, other| size(other).total_cmp(&size(one)).then(one.words.cmp(&other.words)));
    tallies
}

fn worked(
    times: BTreeMap<String, TallyRates>,
    units: &BTreeMap<String, TallyRates>,
    judged: &mut impl Iterator<Item = JudgedDifference>,
) -> Vec<WorkAnswer> {
    let clause = |clauses: &[(&'static str, &'static str)], work: &str| {
        let found = clauses.iter().find(|(name, _)| *name == work);
        found.map_or_else(|| work.to_string(), |(_, clause)| (*clause).to_string())
    };
    let answer = |((work, times), (difference, q)): ((String, TallyRates), JudgedDifference)| WorkAnswer {
        words: clause(SchedulerWork::CLAUSES, &work),
        unit: clause(SchedulerWork::UNITS, &work),
        baseline_units_per_s: units.get(&work).map_or(0.0, |units| mean_of(&units.baseline)),
        units_per_s: units.get(&work).map_or(0.0, |units| mean_of(&units.other)),
        baseline_ns_per_s: mean_of(&times.baseline),
        ns_per_s: mean_of(&times.other),
        added: AmountAnswer::of(&difference),
        q,
        sure: is_sure(&difference, q),
        work,
    };
    let mut work = times.into_iter().zip(judged).map(answer).collect::<Vec<_>>();
    let size = |work: &WorkAnswer| work.added.mean.abs();
    work.sort_by(|one, other| size(other).total_cmp(&size(one)).then(one.work.cmp(&other.work)));
    work
}
