//! Why two kernels make tasks wait differently: all waits of both sides by cause, and the difference listed as causes.
//!
//! What is compared of each run is time spent waiting in a second of it, summed over tasks. All causes are one family: a cause is sure
//! only if its difference stands among so many.
//!
//! Must not know: how waits were followed, how the answer is printed.

mod headline;
mod parting;
mod tallies;
mod words;

pub use parting::parting;
pub use words::{per_second, rule};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

use fairlab_analysis::causes::{
    CauseDecision, CausePart, LengthCount, StretchEnd, WaitBehind, WaitCauses, WaitKind,
};
use fairlab_analysis::statistics::{
    FALSE_DISCOVERY_RATE, MeanDifference, adjusted, mean, paired_difference, unpaired_difference,
};

use fairlab_lab::answer::causes::{
    AmountAnswer, CauseAnswer, CauseNameAnswer, CausesAnswer, EndedAnswer, ScopeAnswer, WaitSelection,
};
use fairlab_lab::{Experiment, LabError, Pairing, RunRecord, RunSide};

/// Waits of this share, the longest ones, count as long: those above the baseline's p99.
const LONG: f64 = 0.01;

/// Causes of less than this share of what either side waits are not listed.
const TOLD_SHARE: f64 = 0.005;

/// What a cause is identified by.
type WaitCauseKey = (WaitBehind, CauseDecision, String);

/// Which parts of waits are added up together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CauseGroup {
    /// All behind one kind of task.
    Behind(WaitBehind),
    /// Those with one decision beside that.
    Cause(WaitCauseKey),
}

/// Why sides differ: the causes of their waits, and where runs of an experiment were made, for each kernel the first decision in which
/// it parts from the first one.
///
/// # Errors
/// Some run has no causes: it was made without.
pub fn causes_of(
    sides: &[RunSide],
    experiment: Option<&Experiment>,
    stop: &AtomicBool,
) -> Result<Vec<CausesAnswer>, LabError> {
    let mut answers = compare_causes(sides)?;
    let Some(experiment) = experiment else { return Ok(answers) };
    let Some((baseline, others)) = experiment.sides.split_first() else { return Ok(answers) };
    let setting = experiment.setting_of(baseline);
    // Where more than the kernel differs, decisions part from the start, and the first one tells nothing.
    let beside = answers.iter_mut().zip(others).filter(|(_, side)| side.is_in_setting_of(baseline));
    for (answer, side) in beside {
        match parting((&baseline.kernel, &side.kernel), &setting, stop) {
            Ok(found) => answer.difference = found,
            // What is known of the causes stands.
            Err(error) => answer.notices.push(format!("where both part was not found: {error}")),
        }
    }
    Ok(answers)
}

/// The causes of the difference between the first side and each of the others.
///
/// # Errors
/// Some run has no causes: it was made without.
pub fn compare_causes(sides: &[RunSide]) -> Result<Vec<CausesAnswer>, LabError> {
    let Some((baseline, others)) = sides.split_first() else { return Ok(Vec::new()) };
    others.iter().map(|other| causes_between(baseline, other)).collect()
}

/// The causes of the difference between two sides, of the runs that their metrics are compared of.
///
/// # Errors
/// Some run has no causes: it was made without.
pub fn causes_between(baseline: &RunSide, other: &RunSide) -> Result<CausesAnswer, LabError> {
    let (pairing, base, new) = baseline.beside(other);
    let study = CauseStudy {
        baseline: told(baseline, &base)?,
        other: told(other, &new)?,
        pairing,
        names: (baseline.name.clone(), other.name.clone()),
    };
    Ok(study.answer())
}

fn told(side: &RunSide, records: &[&RunRecord]) -> Result<Vec<WaitCauses>, LabError> {
    let lacking = |record: &RunRecord| {
        let run = record.seed.map_or("a run".to_string(), |seed| format!("run {seed}"));
        let problem = format!("{run} of {} was made without --explain", side.name);
        LabError::new(problem, "give another --out, or none")
    };
    records.iter().map(|record| record.causes.clone().ok_or_else(|| lacking(record))).collect()
}

/// Which waits are looked at: of what kind, from which length on, of which tasks.
#[derive(Clone, Copy)]
struct WaitScope<'n> {
    waits: WaitSelection,
    /// The logarithm of it, ns.
    least: u8,
    waiter: Option<&'n str>,
}

impl WaitScope<'_> {
    fn takes(self, waiter: &str, wait: WaitKind, log2: u8) -> bool {
        let of_any_kind = matches!(self.waits, WaitSelection::All | WaitSelection::Named);
        log2 >= self.least
            && (of_any_kind || wait == WaitKind::Wakeup)
            && self.waiter.is_none_or(|name| name == waiter)
    }

    fn counts(self, length: &LengthCount) -> bool {
        self.takes(&length.waiter, length.wait, length.log2)
    }

    fn has(self, part: &CausePart) -> bool {
        self.takes(&part.waiter, part.wait, part.length_log2)
    }
}

/// Two sides' runs.
struct CauseStudy {
    baseline: Vec<WaitCauses>,
    other: Vec<WaitCauses>,
    pairing: Pairing,
    names: (String, String),
}

impl CauseStudy {
    fn answer(&self) -> CausesAnswer {
        let crossed = self.both().map(|run| run.crossed).sum::<u64>();
        let mut notices = Vec::new();
        if !self.decisions_known() {
            notices.push(
                "only modelled kernels tell what they decided: causes say which task had the CPU, and what ended the wait"
                    .to_string(),
            );
        }
        if crossed > 0 {
            notices.push(format!(
                "{crossed} waits lie across holes in what was recorded: they are not measured"
            ));
        }
        let (scopes, tallies) = (self.scopes(), self.tallies());
        CausesAnswer {
            headline: headline::headline(&self.names, &scopes, &tallies),
            baseline: self.names.0.clone(),
            kernel: self.names.1.clone(),
            pairing: self.pairing,
            baseline_runs: self.baseline.len(),
            runs: self.other.len(),
            scopes,
            placements: tallies.placements,
            balancing: tallies.balancing,
            work: tallies.work,
            difference: None,
            notices,
        }
    }

    fn scopes(&self) -> Vec<ScopeAnswer> {
        let names = self.names_that_wait();
        let scope = |waits, least| WaitScope { waits, least, waiter: None };
        let named =
            names.iter().map(|name| WaitScope { waiter: Some(name), ..scope(WaitSelection::Named, 0) });
        let long = self.long_from().map(|least| scope(WaitSelection::LongWoken, least));
        let others = std::iter::once(scope(WaitSelection::Woken, 0)).chain(long).chain(named);
        let has_waits = |scope: &WaitScope<'_>| {
            self.both().flat_map(|run| &run.lengths).any(|length| scope.counts(length))
        };
        std::iter::once(scope(WaitSelection::All, 0))
            .chain(others.filter(has_waits))
            .map(|scope| self.scope(scope))
            .collect()
    }

    /// The names with a notable share of either side's waits, where there are several.
    fn names_that_wait(&self) -> Vec<String> {
        let all = WaitScope { waits: WaitSelection::All, least: 0, waiter: None };
        let parts = WaitParts { study: self, scope: all, with_decisions: false };
        let everything = parts.amounts(&|_| true);
        let names = self.both().flat_map(|run| &run.parts).map(|part| part.waiter.clone());
        let names = names.collect::<BTreeSet<_>>();
        let matters = |name: &String| parts.amounts(&|part| part.waiter == *name).matter(&everything);
        let names = names.into_iter().filter(matters).collect::<Vec<_>>();
        if names.len() > 1 { names } else { Vec::new() }
    }

    fn both(&self) -> impl Iterator<Item = &WaitCauses> {
        self.baseline.iter().chain(&self.other)
    }

    /// Whether decisions can be compared: both sides tell them.
    fn decisions_known(&self) -> bool {
        let tells =
            |run: &WaitCauses| run.parts.is_empty() || run.parts.iter().any(|part| !part.reason.is_empty());
        self.both().all(tells)
    }

    /// The length from which on waits are long; none where the baseline has too few waits to tell.
    fn long_from(&self) -> Option<u8> {
        let mut lengths = BTreeMap::<u8, u64>::new();
        let woken = WaitScope { waits: WaitSelection::Woken, least: 0, waiter: None };
        let lengths_of = self.baseline.iter().flat_map(|run| &run.lengths);
        for length in lengths_of.filter(|length| woken.counts(length)) {
            *lengths.entry(length.log2).or_default() += length.waits;
        }
        let all = lengths.values().sum::<u64>();
        let most = (all as f64 * LONG) as u64;
        let mut longer = 0;
        let mut from = None;
        for (&log2, &waits) in lengths.iter().rev() {
            if longer + waits > most {
                break;
            }
            longer += waits;
            from = Some(log2);
        }
        // Where all longest waits of the baseline are of one length, what is longer than those counts.
        let longest = lengths.keys().next_back().map(|&log2| log2.saturating_add(1));
        from.or(longest).filter(|_| all > 0)
    }

    fn scope(&self, scope: WaitScope<'_>) -> ScopeAnswer {
        let counts = |runs: &[WaitCauses]| -> Vec<f64> {
            let count = |run: &WaitCauses| {
                run.lengths
                    .iter()
                    .filter(|length| scope.counts(length))
                    .map(|length| length.waits as f64)
                    .sum::<f64>()
                    / seconds(run)
            };
            runs.iter().map(count).collect()
        };
        let parts = WaitParts { study: self, scope, with_decisions: self.decisions_known() };
        let everything = parts.amounts(&|_| true);
        let total = self.difference(&everything);
        let (causes, groups) = (parts.causes(), parts.groups());
        let family = causes.iter().chain(&groups).map(|(_, amounts)| self.difference(amounts).p);
        let family = family.chain([total.p]).collect::<Vec<_>>();
        let q = adjusted(&family);
        let told = |found: &[(CauseGroup, WaitAmounts)], q: &[Option<f64>]| {
            let told = found.iter().zip(q);
            let mut told = told
                .filter(|((_, amounts), _)| amounts.matter(&everything))
                .map(|((which, amounts), &q)| parts.cause(which, amounts, q, &total))
                .collect::<Vec<_>>();
            told.sort_by(|one, other| {
                other.added.mean.abs().total_cmp(&one.added.mean.abs()).then(one.words.cmp(&other.words))
            });
            told
        };
        let (of_causes, of_groups) = q.split_at(causes.len());
        let (causes, groups) = (told(&causes, of_causes), told(&groups, of_groups));
        let total_q = q.last().copied().flatten();
        let (base_counts, counts) = (counts(&self.baseline), counts(&self.other));
        let mut answer = ScopeAnswer {
            waits: scope.waits,
            waiter: scope.waiter.map(String::from),
            least_ns: match scope.least {
                0 => 0,
                least => 1_u64.checked_shl(u32::from(least)).unwrap_or(u64::MAX),
            },
            baseline_waits_per_s: mean_of(&base_counts),
            waits_per_s: mean_of(&counts),
            baseline_ns_per_s: mean_of(&everything.baseline),
            ns_per_s: mean_of(&everything.other),
            added: AmountAnswer::of(&total),
            q: total_q,
            sure: is_sure(&total, total_q),
            behind: groups,
            causes,
            sentences: Vec::new(),
        };
        answer.sentences = words::sentences(&self.names, &answer);
        answer
    }

    fn difference(&self, amounts: &WaitAmounts) -> MeanDifference {
        self.difference_of(&amounts.baseline, &amounts.other)
    }

    fn difference_of(&self, baseline: &[f64], other: &[f64]) -> MeanDifference {
        match self.pairing {
            Pairing::Paired => paired_difference(baseline, other),
            Pairing::Unpaired => unpaired_difference(baseline, other),
        }
    }
}

fn seconds(run: &WaitCauses) -> f64 {
    (run.observed_ns as f64 / 1e9).max(f64::MIN_POSITIVE)
}

fn mean_of(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { mean(values) }
}

/// Whether a difference is not chance, as far as its runs can tell.
fn is_sure(difference: &MeanDifference, q: Option<f64>) -> bool {
    difference.mean != 0.0 && q.is_some_and(|q| q <= FALSE_DISCOVERY_RATE)
}

/// Time spent waiting, ns a second, in each run.
struct WaitAmounts {
    baseline: Vec<f64>,
    other: Vec<f64>,
    baseline_counts: f64,
    counts: f64,
}

impl WaitAmounts {
    /// Whether it is more than a crumb of what both sides wait.
    fn matter(&self, everything: &WaitAmounts) -> bool {
        let share = |own: &[f64], all: &[f64]| mean_of(own) > TOLD_SHARE * mean_of(all);
        share(&self.baseline, &everything.baseline) || share(&self.other, &everything.other)
    }
}

/// The parts of waits that a scope looks at.
struct WaitParts<'s> {
    study: &'s CauseStudy,
    scope: WaitScope<'s>,
    with_decisions: bool,
}

impl WaitParts<'_> {
    fn key(&self, part: &CausePart) -> WaitCauseKey {
        match self.with_decisions || part.decision == CauseDecision::Pending {
            true => (part.behind, part.decision, part.reason.clone()),
            false => (part.behind, CauseDecision::Unknown, String::new()),
        }
    }

    fn amounts(&self, is_of: &dyn Fn(&CausePart) -> bool) -> WaitAmounts {
        let parts = |run: &WaitCauses| {
            let parts = run.parts.iter().filter(|part| self.scope.has(part) && is_of(part));
            let sums = parts.fold((0.0, 0.0), |(time, count), part| {
                (time + part.time_ns as f64, count + part.count as f64)
            });
            (sums.0 / seconds(run), sums.1 / seconds(run))
        };
        let (baseline, baseline_counts): (Vec<_>, Vec<_>) = self.study.baseline.iter().map(parts).unzip();
        let (other, counts): (Vec<_>, Vec<_>) = self.study.other.iter().map(parts).unzip();
        WaitAmounts { baseline, other, baseline_counts: mean_of(&baseline_counts), counts: mean_of(&counts) }
    }

    fn of_scope(&self) -> impl Iterator<Item = &CausePart> {
        self.study.both().flat_map(|run| &run.parts).filter(|part| self.scope.has(part))
    }

    /// Every cause with its amounts.
    fn causes(&self) -> Vec<(CauseGroup, WaitAmounts)> {
        let keys = self.of_scope().map(|part| self.key(part)).collect::<BTreeSet<_>>();
        keys.into_iter().map(|key| self.with_amounts(CauseGroup::Cause(key))).collect()
    }

    /// Amounts by what had the CPU alone.
    fn groups(&self) -> Vec<(CauseGroup, WaitAmounts)> {
        let kinds = self.of_scope().map(|part| part.behind).collect::<BTreeSet<_>>();
        kinds.into_iter().map(|behind| self.with_amounts(CauseGroup::Behind(behind))).collect()
    }

    fn with_amounts(&self, which: CauseGroup) -> (CauseGroup, WaitAmounts) {
        let amounts = self.amounts(&|part| self.is_of(&which, part));
        (which, amounts)
    }

    fn is_of(&self, which: &CauseGroup, part: &CausePart) -> bool {
        match which {
            CauseGroup::Behind(behind) => part.behind == *behind,
            CauseGroup::Cause(key) => part.behind == key.0 && self.key(part) == *key,
        }
    }

    fn cause(
        &self,
        which: &CauseGroup,
        amounts: &WaitAmounts,
        q: Option<f64>,
        total: &MeanDifference,
    ) -> CauseAnswer {
        let difference = self.study.difference(amounts);
        let share = difference.mean / total.mean;
        let (behind, decision, reason) = match which {
            CauseGroup::Behind(behind) => (*behind, CauseDecision::Unknown, ""),
            CauseGroup::Cause((behind, decision, reason)) => (*behind, *decision, reason.as_str()),
        };
        CauseAnswer {
            behind,
            decision,
            reason: reason.to_string(),
            words: words::cause(behind, decision, reason),
            baseline_ns_per_s: mean_of(&amounts.baseline),
            ns_per_s: mean_of(&amounts.other),
            baseline_count_per_s: amounts.baseline_counts,
            count_per_s: amounts.counts,
            added: AmountAnswer::of(&difference),
            share: Some(share).filter(|share| share.is_finite()),
            q,
            sure: is_sure(&difference, q),
            waiters: self.names(which, &|part| part.waiter.clone()),
            runners: self.names(which, &|part| part.runner.clone()),
            ended: self.ended(which),
            baseline_beside_idle: self.beside_idle(which, &self.study.baseline),
            beside_idle: self.beside_idle(which, &self.study.other),
        }
    }

    /// The tasks that take part, by the difference of their time.
    fn names(&self, which: &CauseGroup, name: &dyn Fn(&CausePart) -> String) -> Vec<CauseNameAnswer> {
        let sums = |runs: &[WaitCauses]| self.sums(runs, which, name);
        let (base, new) = (sums(&self.study.baseline), sums(&self.study.other));
        let names = base.keys().chain(new.keys()).filter(|name| !name.is_empty()).collect::<BTreeSet<_>>();
        let amount = |sums: &BTreeMap<String, f64>, name: &str| sums.get(name).copied().unwrap_or(0.0);
        let answer = |name: &String| CauseNameAnswer {
            name: name.clone(),
            baseline_ns_per_s: amount(&base, name),
            ns_per_s: amount(&new, name),
        };
        let mut answers = names.into_iter().map(answer).collect::<Vec<_>>();
        let size = |answer: &CauseNameAnswer| (answer.ns_per_s - answer.baseline_ns_per_s).abs();
        answers.sort_by(|one, other| size(other).total_cmp(&size(one)).then(one.name.cmp(&other.name)));
        answers.truncate(NAMES_MAX);
        answers
    }

    fn ended(&self, which: &CauseGroup) -> Vec<EndedAnswer> {
        let ways = self.of_scope().filter(|part| self.is_of(which, part)).map(|part| part.ended);
        let ways = ways.collect::<BTreeSet<StretchEnd>>();
        let rate = |runs: &[WaitCauses], ended: StretchEnd| {
            let of = |part: &CausePart| if part.ended == ended { "it".to_string() } else { String::new() };
            self.sums(runs, which, &of).get("it").copied().unwrap_or(0.0)
        };
        let answer = |ended: StretchEnd| EndedAnswer {
            ended,
            words: ended.words(),
            baseline_ns_per_s: rate(&self.study.baseline, ended),
            ns_per_s: rate(&self.study.other, ended),
        };
        let mut answers = ways.into_iter().map(answer).collect::<Vec<_>>();
        let size = |answer: &EndedAnswer| (answer.ns_per_s - answer.baseline_ns_per_s).abs();
        answers.sort_by(|one, other| size(other).total_cmp(&size(one)).then(one.words.cmp(other.words)));
        answers
    }

    /// Time by a word of each part, ns a second, mean of the runs.
    fn sums(
        &self,
        runs: &[WaitCauses],
        which: &CauseGroup,
        word: &dyn Fn(&CausePart) -> String,
    ) -> BTreeMap<String, f64> {
        let mut sums = BTreeMap::new();
        for run in runs {
            let parts = run.parts.iter().filter(|part| self.scope.has(part) && self.is_of(which, part));
            for part in parts {
                *sums.entry(word(part)).or_default() +=
                    part.time_ns as f64 / seconds(run) / runs.len() as f64;
            }
        }
        sums
    }

    /// Of the time of a cause, the share in which another CPU was idle.
    fn beside_idle(&self, which: &CauseGroup, runs: &[WaitCauses]) -> Option<f64> {
        let parts = runs.iter().flat_map(|run| &run.parts);
        let parts = parts.filter(|part| self.scope.has(part) && self.is_of(which, part));
        let (idle, all) =
            parts.fold((0, 0), |(idle, all), part| (idle + part.beside_idle_ns, all + part.time_ns));
        (all > 0).then(|| idle as f64 / all as f64)
    }
}

/// How many names are listed of a cause.
const NAMES_MAX: usize = 5;
