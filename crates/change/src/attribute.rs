//! Which changes between two kernels make the difference: each in turn, as history has them; those that matter also alone,
//! and as the last one.
//!
//! Effects in turn multiply to the whole difference. Where a change does more or less alone than in turn, others have to do
//! with it: pairs are tried. Must not know: how an answer looks.

mod answer;

pub use answer::{AttributeAnswer, Attribution, Contribution, Interaction, MetricEffect};

use fairlab_analysis::statistics::{
    BetterDirection, Estimate, FALSE_DISCOVERY_RATE, MetricVerdict, adjusted, judge, paired,
};

use crate::bisect::values_of;
use crate::causes::causes_between;
use crate::commit_path::LogWay;
use crate::left_out::left_out;
use crate::trials::SearchTrials;
use fairlab_lab::answer::causes::CausesAnswer;
use fairlab_lab::{Kernel, LabError, RunRecord, RunResult, RunSetting, RunSide};

/// What is asked.
#[derive(Clone, Debug)]
pub struct AttributeSpec {
    /// The kernel from which the way begins.
    pub baseline: Kernel,
    /// The kernel at which it ends.
    pub other: Kernel,
    /// The metrics, each with an answer of its own.
    pub metrics: Vec<String>,
    /// Runs of each kernel.
    pub runs: usize,
    /// Effects below this share do not matter.
    pub margin: f64,
}

/// What it is called on the command line.
pub const NAME: &str = "--attribute";

/// How many changes are also tried alone and last, those with the greatest effects.
const TRIED_MAX: usize = 8;

/// How many of them are tried in pairs.
const PAIRED_MAX: usize = 4;

/// Says which changes make the difference, metric by metric; what was found by then when it was stopped.
///
/// # Errors
/// A run fails, or lacks a metric.
pub fn attribute(spec: &AttributeSpec, trials: &mut SearchTrials<'_>) -> Result<AttributeAnswer, LabError> {
    let way = LogWay::new(&spec.baseline, &spec.other, NAME)?;
    let mut study = AttributionStudy { spec, trials, way, stopped: false, unsearched: 0 };
    let mut metrics = study.answers()?;
    let (stopped, unsearched) = (study.stopped, study.unsearched);
    let RunSetting { machine, workload, .. } = trials.setting();
    let left_out = left_out(&spec.baseline, &spec.other, machine, workload);
    if left_out.is_all {
        metrics.iter_mut().for_each(|answer| answer.verdict = MetricVerdict::NotModelled);
    }
    let notices = left_out.line(spec.baseline.name(), spec.other.name()).into_iter().collect();
    Ok(AttributeAnswer { metrics, stopped, unsearched, runs: trials.made(), notices })
}

struct AttributionStudy<'t, 'e> {
    spec: &'t AttributeSpec,
    trials: &'t mut SearchTrials<'e>,
    way: LogWay,
    /// It was stopped: nothing more is run.
    stopped: bool,
    /// Changes in stretches that were not looked into before it was stopped.
    unsearched: usize,
}

/// What is left to know of a stretch.
enum LogStretch {
    /// Nothing in it makes a difference.
    Alike,
    /// One change that makes a difference, or several that cannot be told apart.
    Effective(Box<EffectiveChange>),
    /// Its two halves are to be looked into.
    Halves(usize),
    /// It was stopped before.
    Unknown,
}

/// A change that makes a difference: the kernel before it, the one after it, its position on the way.
type EffectiveChange = (Kernel, Kernel, usize);

impl AttributionStudy<'_, '_> {
    fn answers(&mut self) -> Result<Vec<Attribution>, LabError> {
        if !self.has(&[self.spec.baseline.clone(), self.spec.other.clone()])? {
            self.unsearched = self.way.end();
            return Ok(Vec::new());
        }
        let effective = self.effective()?;
        self.spec.metrics.iter().map(|metric| self.answer(metric, &effective)).collect()
    }

    /// Sees to it that there are enough runs of these kernels. Gives whether there are, or it was stopped.
    fn has(&mut self, kernels: &[Kernel]) -> Result<bool, LabError> {
        if !self.stopped {
            self.stopped = self.trials.ensure(kernels, self.spec.runs)?.0;
        }
        Ok(kernels.iter().all(|kernel| self.trials.runs(kernel).len() >= self.spec.runs))
    }

    /// What makes a difference between the two kernels. Stretches whose ends run alike, event by event
    /// with every seed, are not looked into.
    fn effective(&mut self) -> Result<Vec<EffectiveChange>, LabError> {
        let mut effective = Vec::new();
        let mut stretches = vec![(0, self.way.end())];
        while let Some((low, high)) = stretches.pop() {
            match self.stretch(low, high)? {
                LogStretch::Alike => {}
                LogStretch::Effective(change) => effective.push(*change),
                // Later stretches first: the earlier one is taken from the end.
                LogStretch::Halves(middle) => stretches.extend([(middle, high), (low, middle)]),
                LogStretch::Unknown => self.unsearched += high - low,
            }
        }
        Ok(effective)
    }

    fn stretch(&mut self, low: usize, high: usize) -> Result<LogStretch, LabError> {
        let (Some(before), Some(after)) = (self.way.kernel(low), self.way.kernel(high)) else {
            return Ok(LogStretch::Alike);
        };
        if low == high {
            return Ok(LogStretch::Alike);
        }
        if !self.has(&[before.clone(), after.clone()])? {
            return Ok(LogStretch::Unknown);
        }
        let digests = |kernel: &Kernel| {
            let digest = |run: &RunResult| run.digest.clone();
            self.trials.runs(kernel).iter().take(self.spec.runs).map(digest).collect::<Vec<_>>()
        };
        if digests(&before) == digests(&after) {
            return Ok(LogStretch::Alike);
        }
        let middle = if high - low == 1 { None } else { self.middle(low, high) };
        Ok(middle.map_or_else(|| LogStretch::Effective(Box::new((before, after, high))), LogStretch::Halves))
    }

    /// The kernel nearest to the middle whose rules do not contradict each other.
    fn middle(&self, low: usize, high: usize) -> Option<usize> {
        let middle = usize::midpoint(low, high);
        let mut between = (low + 1..high).collect::<Vec<_>>();
        between.sort_by_key(|&position| position.abs_diff(middle));
        between.into_iter().find(|&position| self.way.kernel(position).is_some())
    }

    fn answer(&mut self, metric: &str, effective: &[EffectiveChange]) -> Result<Attribution, LabError> {
        let ends = (self.spec.baseline.clone(), self.spec.other.clone());
        let whole = self.effect((&ends.0, &ends.1), metric)?;
        let mut rows = Vec::new();
        for (before, after, position) in effective {
            let in_turn = self.effect((before, after), metric)?;
            let Some(step) = self.way.step(*position) else { continue };
            rows.push((*position, Contribution::of(step, in_turn.into())));
        }
        self.weigh(&mut rows, &whole);
        for (position, row) in rows.iter_mut().filter(|(_, row)| row.matters) {
            let Some((before, after, _)) = effective.iter().find(|(.., at)| at == position) else { continue };
            row.causes = self.causes(before, after);
        }
        let mut tried =
            rows.iter().filter(|(_, row)| row.matters).map(|(position, _)| *position).collect::<Vec<_>>();
        let size = |position: &usize| {
            let row = rows.iter().find(|(known, _)| known == position);
            row.and_then(|(_, row)| row.in_turn.ratio).map_or(0.0, |ratio| ratio.ln().abs())
        };
        tried.sort_by(|one, other| size(other).total_cmp(&size(one)));
        tried.truncate(TRIED_MAX);
        for &position in &tried {
            let (with, without) = (self.way.with(&[position]), self.way.without(position));
            let needed = with.iter().chain(&without).cloned().collect::<Vec<_>>();
            if !self.has(&needed)? {
                break;
            }
            let alone = with.map(|with| self.effect((&ends.0, &with), metric)).transpose()?;
            let last = without.map(|without| self.effect((&without, &ends.1), metric)).transpose()?;
            if let Some((_, row)) = rows.iter_mut().find(|(known, _)| *known == position) {
                (row.alone, row.last) = (alone.map(MetricEffect::from), last.map(MetricEffect::from));
            }
        }
        tried.truncate(PAIRED_MAX);
        let interactions = self.interactions(&tried, metric)?;
        let is_real = whole.p.is_some_and(|p| p <= FALSE_DISCOVERY_RATE);
        Ok(Attribution {
            verdict: judge(&whole, BetterDirection::of_metric(metric), self.spec.margin, is_real),
            metric: metric.to_string(),
            baseline: ends.0.name().to_string(),
            other: ends.1.name().to_string(),
            whole: whole.into(),
            changes: self.way.end(),
            rest: rows.iter().filter(|(_, row)| !row.matters).map(|(_, row)| row.share).sum(),
            rows: rows.into_iter().map(|(_, row)| row).collect(),
            interactions,
            runs: self.trials.made(),
            seedless: self.trials.are_seedless(&self.spec.baseline),
        })
    }

    /// Why tasks wait differently with a change, where the runs tell.
    fn causes(&self, before: &Kernel, after: &Kernel) -> Option<CausesAnswer> {
        let of = |kernel: &Kernel| {
            let runs = self.trials.runs(kernel).iter().take(self.spec.runs);
            let records = runs.map(RunRecord::of_run).collect::<Vec<_>>();
            RunSide { name: kernel.name().to_string(), records, ..RunSide::default() }
        };
        let (base, new) = (of(before), of(after));
        let is_told = |side: &RunSide| side.records.iter().any(|record| record.causes.is_some());
        (is_told(&base) && is_told(&new)).then(|| causes_between(&base, &new).ok()).flatten()
    }

    /// Which effects matter: real among all that were looked at, and beyond the margin.
    fn weigh(&self, rows: &mut [(usize, Contribution)], whole: &Estimate) {
        let family = rows.iter().map(|(_, row)| row.in_turn.p).collect::<Vec<_>>();
        let all = whole.ratio.filter(|_| whole.p.is_some_and(|p| p <= FALSE_DISCOVERY_RATE)).map(f64::ln);
        for ((_, row), q) in rows.iter_mut().zip(adjusted(&family)) {
            let real = q.is_some_and(|q| q <= FALSE_DISCOVERY_RATE);
            row.matters = real && row.in_turn.ratio.is_some_and(|ratio| ratio.ln().abs() >= self.spec.margin);
            row.share = row
                .in_turn
                .ratio
                .zip(all)
                .map(|(ratio, all)| ratio.ln() / all)
                .filter(|share| share.is_finite());
        }
    }

    fn effect(&self, (before, after): (&Kernel, &Kernel), metric: &str) -> Result<Estimate, LabError> {
        let (base, new) = (self.values(before, metric)?, self.values(after, metric)?);
        Ok(paired(&base, &new))
    }

    fn values(&self, kernel: &Kernel, metric: &str) -> Result<Vec<f64>, LabError> {
        let mut values = values_of(self.trials, kernel, metric)?;
        values.truncate(self.spec.runs);
        Ok(values)
    }

    /// What two changes do together beyond what each does alone, on the baseline.
    fn interactions(&mut self, tried: &[usize], metric: &str) -> Result<Vec<Interaction>, LabError> {
        let mut found = Vec::new();
        for (index, &one) in tried.iter().enumerate() {
            for &other in &tried[index + 1..] {
                let kernels = [self.way.with(&[one]), self.way.with(&[other]), self.way.with(&[one, other])];
                let [Some(first), Some(second), Some(both)] = kernels else { continue };
                if !self.has(&[first.clone(), second.clone(), both.clone()])? {
                    continue;
                }
                let base = self.values(&self.spec.baseline, metric)?;
                let (first, second) = (self.values(&first, metric)?, self.values(&second, metric)?);
                let both = self.values(&both, metric)?;
                let expected =
                    first.iter().zip(&second).zip(&base).map(|((first, second), base)| first * second / base);
                let beyond = paired(&expected.collect::<Vec<_>>(), &both);
                let steps = self.way.step(one).zip(self.way.step(other));
                let commits = steps.map(|(one, other)| [one.id(), other.id()]);
                let beyond = MetricEffect::from(beyond);
                found.extend(commits.map(|commits| Interaction { commits, is_real: false, beyond }));
            }
        }
        let family = found.iter().map(|pair| pair.beyond.p).collect::<Vec<_>>();
        for (pair, q) in found.iter_mut().zip(adjusted(&family)) {
            let large = pair.beyond.ratio.is_some_and(|ratio| ratio.ln().abs() >= self.spec.margin);
            pair.is_real = large && q.is_some_and(|q| q <= FALSE_DISCOVERY_RATE);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use fairlab_event::Ns;
    use serde_json::json;

    use super::*;
    use fairlab_lab::RunSetting;
    use fairlab_lab::{Progress, machines};

    fn study(baseline: &str, other: &str, metric: &str) -> Attribution {
        let report = "schbench -m 2 -t 4 -c 200000 -s 1000 -i 30 -z 120";
        let setting = RunSetting::new(
            machines::find("laptop8").expect("a machine"),
            report.split(' ').map(String::from).collect(),
            Ns::from_secs(4),
        );
        let spec = AttributeSpec {
            baseline: baseline.parse().expect("a kernel"),
            other: other.parse().expect("a kernel"),
            metrics: vec![metric.to_string()],
            runs: 4,
            margin: 0.05,
        };
        let stop = AtomicBool::new(false);
        let mut trials = SearchTrials::new(&setting, 2, &|_| {}, &stop);
        attribute(&spec, &mut trials).expect("an answer").metrics.remove(0)
    }

    /// Stopped anywhere, it says what it found by then, and of how many changes it does not know.
    #[test]
    fn what_is_stopped_gives_what_is_known() {
        let setting = RunSetting {
            warmup: Some(Ns::ZERO),
            ..RunSetting::new(
                machines::find("vm4").expect("a machine"),
                ["hackbench", "-g", "1", "-l", "5"].map(String::from).to_vec(),
                Ns::from_ms(30),
            )
        };
        let spec = AttributeSpec {
            baseline: "v5.4".parse().expect("a kernel"),
            other: "v6.6".parse().expect("a kernel"),
            metrics: vec!["switches_per_s".to_string()],
            runs: 3,
            margin: 0.01,
        };
        let stopped_after = |batches: usize| {
            let (stop, seen) = (AtomicBool::new(false), AtomicUsize::new(0));
            let on_progress = |progress: Progress| {
                let ended = progress.done == progress.total && progress.total > 0;
                if ended && seen.fetch_add(1, Ordering::Relaxed) + 1 >= batches {
                    stop.store(true, Ordering::Relaxed);
                }
            };
            let mut trials = SearchTrials::new(&setting, 1, &on_progress, &stop);
            attribute(&spec, &mut trials).expect("an answer")
        };
        let whole = stopped_after(usize::MAX);
        assert!(!whole.stopped && whole.unsearched == 0);
        let mut seen = BTreeSet::new();
        for batches in [1, 3, 9, 14] {
            let part = stopped_after(batches);
            assert!(part.stopped && json!(part)["partial"] == true, "{batches}");
            assert!(part.unsearched <= whole.metrics[0].changes && part.runs <= whole.runs);
            // What is there is what the whole answer has.
            for row in part.metrics.iter().flat_map(|metric| &metric.rows) {
                let same = whole.metrics[0].rows.iter().find(|other| other.commit == row.commit);
                assert_eq!(same.map(|other| &other.in_turn), Some(&row.in_turn));
            }
            seen.insert(part.unsearched);
        }
        assert!(seen.len() > 1, "the later it is stopped, the more is known: {seen:?}");
    }

    fn row<'a>(answer: &'a Attribution, commit: &str) -> &'a Contribution {
        answer
            .rows
            .iter()
            .find(|row| row.commit == commit)
            .unwrap_or_else(|| panic!("no {commit}: {answer:?}"))
    }

    /// The report on the balancer of v5.5: one change breaks it, another one cures it, and both leave no difference.
    #[test]
    fn the_change_that_broke_it_and_the_cure_stand_out() {
        let answer = study("v5.4", "v5.10", "wakeup_latency_ns_p99");
        let ratio = |effect: &MetricEffect| effect.ratio.expect("a ratio");
        let (rework, cure) = (row(&answer, "0b0695f2b34a"), row(&answer, "16b0a7a1a0af"));
        assert!(rework.matters && ratio(&rework.in_turn) > 100.0, "{rework:?}");
        assert!(cure.matters && ratio(&cure.in_turn) < 0.01, "{cure:?}");
        assert!(cure.last.is_some_and(|last| ratio(&last) < 0.01), "{cure:?}");
        // In turn, effects make up the whole.
        let product = answer.rows.iter().map(|row| ratio(&row.in_turn)).product::<f64>();
        assert!((product / ratio(&answer.whole) - 1.0).abs() < 1e-6, "{product}");
        let logs = json!(answer);
        assert_eq!(
            (logs["metric"].as_str(), logs["changes"].as_u64()),
            (Some("wakeup_latency_ns_p99"), Some(answer.changes as u64))
        );
    }

    #[test]
    fn equal_kernels_have_nothing_between_them() {
        let answer = study("v5.10", "v5.10", "throughput");
        assert_eq!((answer.changes, answer.rows.len(), answer.whole.ratio), (0, 0, Some(1.0)));
    }
}
