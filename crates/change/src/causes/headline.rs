//! The first sentence of an explanation: what differs most between two kernels, and why.
//!
//! Candidates are waits by cause and the scheduler's own work. An effect counts by the end of its interval that is nearer to
//! no effect. Decisions of balancing and wakeups are named only if nothing else differs.
//!
//! Must not know: how causes are found and tallies are judged.

use super::tallies::CauseTallies;
use super::words;
use fairlab_lab::answer::causes::{AmountAnswer, ScopeAnswer, TallyAnswer, WaitSelection, WorkAnswer};

/// Work whose difference is a lesser share of all work of the scheduler is not named first.
const WORK_TOLD: f64 = 0.02;

/// Decisions that are a lesser share of all of their kind are not named first.
const DECISIONS_TOLD: f64 = 0.001;

/// An effect that could come first.
struct HeadlineCandidate {
    of_waits: bool,
    /// The logarithm of by how many times it is more or less, at least.
    size: f64,
    sentence: String,
    /// What balancing has to do with it.
    idled: Option<String>,
}

/// What differs most, and what else does.
pub(super) fn headline(
    names: &(String, String),
    scopes: &[ScopeAnswer],
    tallies: &CauseTallies,
) -> Vec<String> {
    let mut found = scopes.iter().filter_map(|scope| of_waits(names, scope, tallies)).collect::<Vec<_>>();
    found.extend(of_work(names, &tallies.work));
    found.sort_by(|one, other| other.size.total_cmp(&one.size));
    let Some(first) = found.first() else { return of_decisions(names, tallies) };
    let other = found.iter().find(|candidate| candidate.of_waits != first.of_waits);
    let mut told = vec![first.sentence.clone()];
    told.extend(found.iter().find(|found| found.of_waits).and_then(|waits| waits.idled.clone()));
    match other {
        Some(other) => told.push(other.sentence.clone()),
        None if first.of_waits => {}
        None => told.push("how long tasks wait does not differ beyond chance".to_string()),
    }
    told
}

/// Where tasks wait while a CPU idles: what keeps that from taking them on the side that waits more.
fn idled(scope: &ScopeAnswer, tallies: &CauseTallies) -> Option<String> {
    let longer = scope.added.mean > 0.0;
    let group = scope.behind.iter().find(|group| (group.added.mean > 0.0) == longer)?;
    words::idle_share(group)?;
    let more_often = |tally: &&TallyAnswer| (tally.per_s > tally.baseline_per_s) == longer;
    let refused = |tally: &&TallyAnswer| tally.sure && tallies.refused.contains(&tally.words);
    let tally = tallies.balancing.iter().filter(refused).find(more_often)?;
    Some(format!(
        "what keeps CPUs without work from taking them differs most in this: {}",
        words::tally(tally)
    ))
}

fn is_told(sure: bool, added: &AmountAnswer) -> bool {
    added.mean != 0.0 && (sure || added.p.is_none())
}

/// By how many times an amount is more or less at least, as a logarithm.
fn size_of(baseline: f64, added: &AmountAnswer) -> f64 {
    let nearer = match (added.low, added.high) {
        (Some(low), Some(high)) if low <= 0.0 && high >= 0.0 => return 0.0,
        (Some(low), Some(high)) if low.abs() < high.abs() => low,
        (Some(_), Some(high)) => high,
        _ => added.mean,
    };
    let now = (baseline + nearer).max(0.0);
    if baseline == 0.0 || now == 0.0 { f64::INFINITY } else { (now / baseline).ln().abs() }
}

fn of_waits(
    names: &(String, String),
    scope: &ScopeAnswer,
    tallies: &CauseTallies,
) -> Option<HeadlineCandidate> {
    // The longest waits are few: what they say is said of whom it concerns.
    let may_lead = scope.waits != WaitSelection::LongWoken && is_told(scope.sure, &scope.added);
    may_lead.then(|| HeadlineCandidate {
        of_waits: true,
        size: size_of(scope.baseline_ns_per_s, &scope.added),
        sentence: words::lead(names, scope),
        idled: idled(scope, tallies),
    })
}

/// The work whose time differs most.
fn of_work(names: &(String, String), all: &[WorkAnswer]) -> Option<HeadlineCandidate> {
    let amounts = |work: &WorkAnswer| match work.baseline_ns_per_s + work.ns_per_s > 0.0 {
        true => (work.baseline_ns_per_s, work.ns_per_s),
        false => (work.baseline_units_per_s, work.units_per_s),
    };
    let sum = |side: fn((f64, f64)) -> f64| all.iter().map(|work| side(amounts(work))).sum::<f64>();
    let most = sum(|(baseline, _)| baseline).max(sum(|(_, other)| other));
    let matters =
        |work: &&WorkAnswer| is_told(work.sure, &work.added) && work.added.mean.abs() >= WORK_TOLD * most;
    let work = all.iter().find(matters)?;
    let size = size_of(amounts(work).0, &work.added);
    Some(HeadlineCandidate { of_waits: false, size, sentence: words::work(names, work), idled: None })
}

/// What is decided otherwise, where neither waits nor work differ.
fn of_decisions(names: &(String, String), tallies: &CauseTallies) -> Vec<String> {
    let told = |tallies: &[TallyAnswer]| {
        let most = tallies.iter().map(|tally| tally.per_s.max(tally.baseline_per_s)).sum::<f64>();
        let matters = |tally: &&TallyAnswer| {
            tally.sure && (tally.per_s - tally.baseline_per_s).abs() >= DECISIONS_TOLD * most
        };
        tallies.iter().find(matters).map(words::tally)
    };
    let decided = [
        told(&tallies.balancing).map(|told| format!("what balancing decides does: {told}")),
        told(&tallies.placements).map(|told| format!("what wakeups choose does: {told}")),
    ];
    let decided = decided.into_iter().flatten().collect::<Vec<_>>();
    let (baseline, kernel) = names;
    match decided.is_empty() {
        true => vec![format!(
            "nothing differs beyond chance between {kernel} and {baseline}: no waits, no work of the scheduler, no decisions"
        )],
        false => vec![format!(
            "added up, waits and the scheduler's work take as long with {kernel} as with {baseline}, within chance; {}",
            decided.join("; ")
        )],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_counts_by_the_end_of_its_interval_that_is_nearer_to_none() {
        let added = |low, mean, high| AmountAnswer { mean, low: Some(low), high: Some(high), p: Some(0.01) };
        assert_eq!(size_of(10.0, &added(10.0, 30.0, 50.0)), 2.0_f64.ln());
        assert_eq!(size_of(10.0, &added(-9.0, -7.0, -5.0)), 2.0_f64.ln());
        assert_eq!(size_of(10.0, &added(-1.0, 7.0, 15.0)), 0.0);
        assert_eq!(size_of(0.0, &added(1.0, 2.0, 3.0)), f64::INFINITY);
        let only = AmountAnswer { mean: 10.0, low: None, high: None, p: None };
        assert_eq!(size_of(10.0, &only), 2.0_f64.ln());
    }
}
