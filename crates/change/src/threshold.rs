//! From which value of an ordered parameter on a metric changes: sides that differ in one key are judged by halves.
//!
//! Both ends are compared first, with as many runs as it takes; without a difference there is nothing to find. Then the value in the
//! middle is judged good or bad beside both ends, and the search goes on in one half. A metric that goes back and forth has more places
//! than the one that is named.
//!
//! Must not know: how an answer looks.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use fairlab_analysis::statistics::{Estimate, MetricVerdict, mean, paired};
use fairlab_lab::answer::{JsonWord, by_name};
use fairlab_lab::shell::quoted;
use fairlab_lab::{
    ExperimentSide, LabError, Progress, RunResult, RunSetting, RunSpec, RunStore, SettingWords, run_missing,
};
use serde::Serialize;

use crate::bisect::{
    BisectQuestion, KernelCriterion, KernelState, LineTests, is_sure, looks, looks_at_ends, mean_ends,
    values_in, verdict_of,
};
use crate::side_words::SideWords;
use crate::trials::SearchHalt;

/// Values between two numbers are at most so many.
const VALUES_MAX: u64 = 1_000_000;

/// The values of one key, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderedKey {
    /// The key.
    pub key: String,
    values: OrderedValues,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum OrderedValues {
    Numbers { first: u64, last: u64 },
    Words(Vec<String>),
}

impl OrderedKey {
    /// `KEY=1..64`, or `KEY=1,2,4,8`.
    ///
    /// # Errors
    /// There is no key, or there are not two values.
    pub fn parse(text: &str) -> Result<OrderedKey, LabError> {
        let wrong = |problem: &str| {
            LabError::new(
                format!("--vary '{text}': {problem}"),
                "such as threads=1..64, or cpu.weight=10,39,100",
            )
        };
        let (key, values) = text
            .split_once('=')
            .filter(|(key, _)| !key.is_empty())
            .ok_or_else(|| wrong("it is no KEY=VALUES"))?;
        let numbers =
            values.split_once("..").and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
        let values = match numbers {
            Some((first, last)) if first < last && last - first < VALUES_MAX => {
                OrderedValues::Numbers { first, last }
            }
            Some(_) => return Err(wrong("the range does not rise, or has more than a million values")),
            None if values.contains("..") => return Err(wrong("a range is of whole numbers")),
            None => OrderedValues::Words(values.split(',').map(String::from).collect()),
        };
        let key = OrderedKey { key: key.to_string(), values };
        if key.count() < 2 { Err(wrong("one value is given")) } else { Ok(key) }
    }

    /// How many values there are.
    pub fn count(&self) -> usize {
        match &self.values {
            OrderedValues::Numbers { first, last } => (last - first + 1) as usize,
            OrderedValues::Words(words) => words.len(),
        }
    }

    /// The value at a place.
    pub fn value(&self, place: usize) -> String {
        match &self.values {
            OrderedValues::Numbers { first, .. } => (first + place as u64).to_string(),
            OrderedValues::Words(words) => words[place].clone(),
        }
    }

    /// The side of the first value.
    pub fn first(&self) -> SideWords {
        self.side(0)
    }

    fn side(&self, place: usize) -> SideWords {
        let value = self.value(place);
        SideWords { name: format!("{}={value}", self.key), changes: vec![(self.key.clone(), value)] }
    }
}

/// What is looked for.
pub struct ThresholdSpec<'a> {
    /// The parameter and its values.
    pub key: OrderedKey,
    /// The kernel that all have in common.
    pub kernel: String,
    /// Everything else that they have in common.
    pub asked: SettingWords<'a>,
    /// The metric.
    pub metric: String,
    /// The share of the first value's metric below which a difference is of no interest.
    pub margin: f64,
    /// How often the answer may be wrong.
    pub error: f64,
    /// The most runs of a value.
    pub runs_max: usize,
}

/// What the search comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThresholdFinding {
    /// The place was found.
    Found,
    /// The ends are alike.
    Nothing,
    /// Runs do not say.
    Undecided,
    /// Runs never differ.
    OneCourse,
}

impl JsonWord for ThresholdFinding {
    fn word(&self) -> &'static str {
        match self {
            ThresholdFinding::Found => "found",
            ThresholdFinding::Nothing => "nothing",
            ThresholdFinding::Undecided => "undecided",
            ThresholdFinding::OneCourse => "one_course",
        }
    }
}

/// Where a metric changes (`fairlab/threshold/1`).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "schema", rename = "fairlab/threshold/1")]
pub struct ThresholdAnswer {
    /// The parameter.
    pub key: String,
    /// How many values it has.
    pub values: usize,
    /// The metric.
    pub metric: String,
    /// What the search comes to.
    #[serde(rename = "verdict", serialize_with = "by_name")]
    pub finding: ThresholdFinding,
    /// Whether the user stopped it.
    #[serde(rename = "partial")]
    pub stopped: bool,
    /// The last value that is as the first one.
    pub last_as_before: Option<String>,
    /// The first value that is as the last one.
    pub first_as_after: Option<String>,
    /// The metric there over the metric at the value before it.
    pub ratio: Option<f64>,
    /// The lower end of its interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// The last value's metric over the first one's.
    pub ratio_of_ends: Option<f64>,
    /// The command that compares the two values.
    pub command: Option<String>,
    /// How often such an answer is wrong, at most.
    pub error: Option<f64>,
    /// All runs.
    pub runs: usize,
    /// How many seeds they have, from the first on.
    #[serde(skip)]
    pub seeds: usize,
    /// Values that were judged, in the order of judgements.
    pub steps: Vec<ThresholdStep>,
}

/// A value that was judged.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThresholdStep {
    /// The value.
    pub value: String,
    /// What it is: good is as the first value.
    #[serde(serialize_with = "by_name")]
    pub state: KernelState,
    /// Its runs.
    pub runs: usize,
    /// The metric's mean over them.
    pub mean: f64,
    /// The lower end of the mean's 95 % interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

/// Who makes runs, and when to stop.
pub struct ThresholdRuns<'e> {
    /// Runs at once.
    pub jobs: usize,
    /// Is told of progress.
    pub on_progress: &'e (dyn Fn(Progress) + Sync),
    /// Where runs are kept, if they are.
    pub store: Option<&'e RunStore>,
    /// Ends the search.
    pub stop: &'e AtomicBool,
}

struct Search<'s, 'e> {
    spec: &'s ThresholdSpec<'s>,
    runs: &'s ThresholdRuns<'e>,
    /// By place: the side and its runs in the order of seeds.
    known: BTreeMap<usize, (ExperimentSide, Vec<RunResult>)>,
    answer: ThresholdAnswer,
}

/// Finds from which value on the metric is as at the last one.
///
/// # Errors
/// A value cannot run, a run fails, or the metric is none.
pub fn threshold(spec: &ThresholdSpec<'_>, runs: &ThresholdRuns<'_>) -> Result<ThresholdAnswer, LabError> {
    let answer = ThresholdAnswer {
        key: spec.key.key.clone(),
        values: spec.key.count(),
        metric: spec.metric.clone(),
        finding: ThresholdFinding::Undecided,
        stopped: false,
        last_as_before: None,
        first_as_after: None,
        ratio: None,
        low: None,
        high: None,
        ratio_of_ends: None,
        command: None,
        error: None,
        runs: 0,
        seeds: 0,
        steps: Vec::new(),
    };
    let mut search = Search { spec, runs, known: BTreeMap::new(), answer };
    match search.go() {
        Ok(()) => {}
        Err(SearchHalt::Stopped) => search.answer.stopped = true,
        Err(SearchHalt::Failed(error)) => return Err(error),
    }
    let runs = || search.known.values().map(|(_, runs)| runs.len());
    (search.answer.runs, search.answer.seeds) = (runs().sum(), runs().max().unwrap_or(0));
    Ok(search.answer)
}

impl Search<'_, '_> {
    fn go(&mut self) -> Result<(), SearchHalt> {
        let last = self.spec.key.count() - 1;
        let judgements = 1 + (self.spec.key.count().ilog2() as usize + 1);
        let error_each = self.spec.error / judgements as f64;
        if let Some(finding) = self.compare_ends(last, error_each)? {
            self.answer.finding = finding;
            return Ok(());
        }
        let (first_values, last_values) = (self.values(0)?, self.values(last)?);
        let Some(line) = KernelCriterion::between(
            &BisectQuestion::Metric(self.spec.metric.clone()),
            &first_values,
            &last_values,
        ) else {
            return Ok(());
        };
        for (place, state) in [(0, KernelState::Good), (last, KernelState::Bad)] {
            self.tell(place, state)?;
        }
        let (mut low, mut high) = (0, last);
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            match self.judge(middle, last, &line, error_each)? {
                KernelState::Good => low = middle,
                KernelState::Bad => high = middle,
                _ => return Ok(()),
            }
        }
        self.answer.finding = ThresholdFinding::Found;
        self.answer.error = Some(error_each * (self.answer.steps.len() - 1) as f64);
        self.conclude(low, high)
    }

    /// Whether the two ends differ by more than the margin; `Some`: the search is over.
    fn compare_ends(&mut self, last: usize, error: f64) -> Result<Option<ThresholdFinding>, SearchHalt> {
        for (look, runs) in looks_at_ends(self.spec.runs_max).into_iter().enumerate() {
            self.ensure(&[0, last], runs)?;
            let estimate = self.estimate(0, last)?;
            self.answer.ratio_of_ends = estimate.ratio;
            match verdict_of(&self.spec.metric, self.spec.margin, &estimate).0 {
                MetricVerdict::Equivalent => return Ok(Some(ThresholdFinding::Nothing)),
                MetricVerdict::OneCourse if runs >= self.spec.runs_max => {
                    return Ok(Some(ThresholdFinding::OneCourse));
                }
                verdict if verdict.is_difference() && is_sure(&estimate, look, error) => {
                    return Ok(None);
                }
                _ => {}
            }
        }
        Ok(Some(ThresholdFinding::Undecided))
    }

    fn judge(
        &mut self,
        place: usize,
        last: usize,
        line: &KernelCriterion,
        error: f64,
    ) -> Result<KernelState, SearchHalt> {
        let mut tests = LineTests::new(error);
        for runs in looks(self.spec.runs_max) {
            self.ensure(&[place, 0, last], runs)?;
            let [values, first, last] = [self.values(place)?, self.values(0)?, self.values(last)?];
            if let Some(is_bad) = tests.is_bad(line, &values, &[first, last]) {
                let state = if is_bad { KernelState::Bad } else { KernelState::Good };
                self.tell(place, state)?;
                return Ok(state);
            }
        }
        self.tell(place, KernelState::Undecided)?;
        Ok(KernelState::Undecided)
    }

    fn conclude(&mut self, low: usize, high: usize) -> Result<(), SearchHalt> {
        let runs = self.known[&low].1.len().max(self.known[&high].1.len());
        self.ensure(&[low, high], runs)?;
        let estimate = self.estimate(low, high)?;
        let (before, after) = (self.spec.key.value(low), self.spec.key.value(high));
        let key = &self.spec.key.key;
        let (side, asked) = (&self.known[&low].0, &self.spec.asked);
        let setting = RunSetting {
            // As they were asked for, with braces.
            machine_name: asked.machine.to_string(),
            warmup: side.warmup,
            first_seed: asked.first_seed,
            time: asked.time,
            ..RunSetting::new(side.machine.clone(), asked.workload.to_vec(), side.duration)
        };
        let kernel = quoted(&self.spec.kernel);
        let sides = format!("--kernel {kernel} --vary {}", quoted(&format!("{key}={before},{after}")));
        let command = setting.compare_command_of(&sides, runs);
        self.answer.command = Some(format!("{command} --metric {}", quoted(&self.spec.metric)));
        (self.answer.last_as_before, self.answer.first_as_after) = (Some(before), Some(after));
        (self.answer.ratio, self.answer.low, self.answer.high) =
            (estimate.ratio, estimate.low, estimate.high);
        Ok(())
    }

    fn estimate(&self, one: usize, other: usize) -> Result<Estimate, LabError> {
        let (mut base, mut new) = (self.values(one)?, self.values(other)?);
        let shared = base.len().min(new.len());
        base.truncate(shared);
        new.truncate(shared);
        Ok(paired(&base, &new))
    }

    fn tell(&mut self, place: usize, state: KernelState) -> Result<(), LabError> {
        let values = self.values(place)?;
        let (value, runs, mean) = (self.spec.key.value(place), values.len(), mean(&values));
        let (low, high) = mean_ends(&values).unzip();
        self.answer.steps.push(ThresholdStep { value, state, runs, mean, low, high });
        Ok(())
    }

    /// The metric in each run of a place.
    fn values(&self, place: usize) -> Result<Vec<f64>, LabError> {
        let (side, runs) = &self.known[&place];
        values_in(runs, &side.name, &self.spec.metric)
    }

    /// Sees to it that each place has so many runs.
    fn ensure(&mut self, places: &[usize], wanted: usize) -> Result<(), SearchHalt> {
        let mut specs = Vec::new();
        for &place in places {
            if !self.known.contains_key(&place) {
                let side = self.spec.key.side(place).side(&self.spec.kernel, &self.spec.asked)?;
                self.known.insert(place, (side, Vec::new()));
            }
            let (side, runs) = &self.known[&place];
            let seeds =
                (runs.len()..wanted).map(|number| self.spec.asked.first_seed.wrapping_add(number as u64));
            let by_name = self.spec.asked.by_name.cloned().unwrap_or_default();
            let time = self.spec.asked.time;
            specs.extend(seeds.map(|seed| RunSpec { by_name: by_name.clone(), time, ..side.spec(seed) }));
        }
        if specs.is_empty() {
            return Ok(());
        }
        let (results, stopped) = {
            let ThresholdRuns { jobs, on_progress, store, stop } = *self.runs;
            run_missing(&specs, store, jobs, on_progress, stop)?
        };
        for result in results {
            let known = self.known.values_mut().find(|(side, _)| Some(&side.name) == result.side.as_ref());
            if let Some((_, runs)) = known {
                runs.push(result);
            }
        }
        if stopped.0 { Err(SearchHalt::Stopped) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_a_range_or_a_list() {
        let range = OrderedKey::parse("threads=1..64").expect("a range");
        assert_eq!((range.count(), range.value(0), range.value(63)), (64, "1".to_string(), "64".to_string()));
        let list = OrderedKey::parse("group./pod.cpu.weight=10,39").expect("a list");
        assert_eq!((list.count(), list.value(1)), (2, "39".to_string()));
        for wrong in
            ["threads", "=1,2", "threads=4", "threads=4..4", "threads=9..1", "threads=1..9000000", "t=a..b"]
        {
            assert!(OrderedKey::parse(wrong).is_err(), "{wrong}");
        }
    }

    fn found(vary: &str, workload: &str, metric: &str) -> ThresholdAnswer {
        let workload = workload.split(' ').map(String::from).collect::<Vec<_>>();
        let by_name = fairlab_lab::names::wanted_for(metric).expect("a metric");
        let spec = ThresholdSpec {
            key: OrderedKey::parse(vary).expect("values"),
            kernel: "v6.12".to_string(),
            asked: SettingWords {
                machine: "vm4",
                workload: &workload,
                warmup: Some(fairlab_event::Ns::ZERO),
                duration: Some(fairlab_event::Ns::from_ms(200)),
                by_name: Some(&by_name),
                ..SettingWords::default()
            },
            metric: metric.to_string(),
            margin: 0.01,
            error: 0.05,
            runs_max: 20,
        };
        let stop = AtomicBool::new(false);
        threshold(&spec, &ThresholdRuns { jobs: 2, on_progress: &|_| {}, store: None, stop: &stop })
            .expect("an answer")
    }

    /// Four CPUs: from the fifth job on some wait.
    #[test]
    fn the_first_value_that_is_as_the_last_is_found() {
        let answer = found("n=1..33", "jobs spin -n {n} -r 1000", "idle_share");
        assert_eq!(answer.finding, ThresholdFinding::Found, "{answer:?}");
        let first =
            answer.first_as_after.as_deref().and_then(|value| value.parse::<u32>().ok()).expect("a value");
        assert!((2..=4).contains(&first), "{answer:?}");
        assert!(answer.steps.len() <= 8 && answer.error.is_some_and(|error| error <= 0.05), "{answer:?}");
    }

    #[test]
    fn where_ends_are_alike_there_is_nothing_to_find() {
        let answer = found("n=5,6,7", "jobs spin -n {n} -r 1000", "throughput");
        assert!(
            matches!(answer.finding, ThresholdFinding::Nothing | ThresholdFinding::Undecided),
            "{answer:?}"
        );
        assert!(answer.seeds >= 10 && answer.runs == 2 * answer.seeds, "both ends ran: {answer:?}");
        assert_eq!((answer.first_as_after, answer.error), (None, None));
    }
}
