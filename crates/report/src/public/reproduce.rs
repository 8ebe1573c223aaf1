//! Runs what a report's file says: both kernels of each claim, and the search for its commit.
//!
//! Must not know: any report, how an answer is printed.

use std::sync::atomic::{AtomicBool, Ordering};

use fairlab_analysis::by_name::NamesWanted;
use fairlab_analysis::statistics::{MARGIN, MetricVerdict as Compared, mean};
use fairlab_change::bisect::{BisectQuestion, BisectSpec, bisect};
use fairlab_change::left_out::{left_out, mind_left_out};
use fairlab_change::{SearchTrials, WayStep};
use fairlab_lab::names::{MetricName, ShownMetrics};
use fairlab_lab::shell::{line_of, quoted};
use fairlab_lab::{
    CompareOptions, ComparisonRow, Experiment, ExperimentRuns, Kernel, LabError, Progress, RunResult,
    RunSetting, SettingWords, compare,
};

use super::answer::{ClaimAnswer, CommitAnswer, PublishedAnswer, ReportAnswer};
use super::file::{PublicClaim, PublicReport, PublishedDifference, PublishedDirection};
use super::judge::{ClaimVerdict, ReproductionOutcome};

/// How much is done.
pub struct ReproductionEffort<'e> {
    /// Fewer runs, and no search.
    pub quick: bool,
    /// How many runs go on at once.
    pub jobs: usize,
    /// Is told how far runs are.
    pub on_progress: &'e (dyn Fn(Progress) + Sync),
    /// Ends it early.
    pub stop: &'e AtomicBool,
}

/// Runs of each kernel in the quick form.
const QUICK_RUNS: u64 = 4;

/// How often a search's answer may be wrong.
const ERROR: f64 = 0.01;

/// The most runs of a kernel in a search.
const SEARCH_RUNS_MAX: usize = 40;

/// Makes a report's runs and judges its claims; `None` when it was stopped.
///
/// # Errors
/// A name in it means nothing, or a run fails.
pub fn reproduce(
    report: &PublicReport,
    effort: &ReproductionEffort<'_>,
) -> Result<Option<ReportAnswer>, LabError> {
    let in_report =
        |error: LabError| LabError { problem: format!("report {}: {}", report.name, error.problem), ..error };
    let claims = match report.cannot {
        Some(_) => Vec::new(),
        None => match of_claims(report, effort).map_err(in_report)? {
            Some(claims) => claims,
            None => return Ok(None),
        },
    };
    let outcome = match report.cannot {
        Some(_) => ReproductionOutcome::CannotBeSaid,
        None => ReportAnswer::outcome_of(&claims),
    };
    Ok(Some(ReportAnswer {
        name: report.name.clone(),
        title: report.title.clone(),
        source: report.source.clone(),
        machine: report.machine.clone(),
        workload: line_of(&report.workload),
        departs: report.departs.clone(),
        notes: report.notes.clone(),
        cannot: report.cannot.clone(),
        outcome,
        claims,
    }))
}

/// The runs of two kernels, which all claims on them share.
struct KernelPairRuns {
    kernels: [String; 2],
    setting: RunSetting,
    parsed: Vec<Kernel>,
    results: Vec<RunResult>,
}

fn of_claims(
    report: &PublicReport,
    effort: &ReproductionEffort<'_>,
) -> Result<Option<Vec<ClaimAnswer>>, LabError> {
    let metrics = report.claims.iter().map(|claim| MetricName::parse(&claim.metric));
    let metrics = metrics.collect::<Result<Vec<_>, _>>()?;
    let by_name = ShownMetrics::default().wanted(&metrics);
    let mut pairs: Vec<KernelPairRuns> = Vec::new();
    let mut answers = Vec::new();
    for (claim, metric) in report.claims.iter().zip(metrics) {
        let known = pairs.iter().position(|pair| pair.kernels == claim.kernels);
        let place = match known {
            Some(place) => place,
            None => {
                let Some(pair) = runs_of(report, claim, &by_name, effort)? else { return Ok(None) };
                pairs.push(pair);
                pairs.len() - 1
            }
        };
        match of_claim(claim, &metric.name, &pairs[place], effort)? {
            Some(answer) => answers.push(answer),
            None => return Ok(None),
        }
    }
    Ok(Some(answers))
}

/// Makes the runs of a claim's two kernels.
fn runs_of(
    report: &PublicReport,
    claim: &PublicClaim,
    by_name: &NamesWanted,
    effort: &ReproductionEffort<'_>,
) -> Result<Option<KernelPairRuns>, LabError> {
    let asked = SettingWords {
        machine: &report.machine,
        workload: &report.workload,
        warmup: report.warmup,
        duration: Some(report.duration),
        exact: false,
        first_seed: 1,
        by_name: Some(by_name),
        time: Default::default(),
    };
    let runs = if effort.quick { QUICK_RUNS } else { report.runs };
    let experiment = Experiment::of(&claim.kernels, &asked, runs)?;
    let setting = RunSetting::of_kernels(&experiment.kernels, &asked)?;
    let made =
        ExperimentRuns::of(&experiment, Vec::new()).make(effort.jobs, effort.on_progress, effort.stop)?;
    let kernels = claim.kernels.clone();
    let pair = KernelPairRuns { kernels, setting, parsed: experiment.kernels, results: made.results };
    Ok(made.partial.is_none().then_some(pair))
}

fn of_claim(
    claim: &PublicClaim,
    metric: &str,
    pair: &KernelPairRuns,
    effort: &ReproductionEffort<'_>,
) -> Result<Option<ClaimAnswer>, LabError> {
    let options = CompareOptions { metrics: vec![metric.to_string()], ..CompareOptions::default() };
    let mut comparison = compare(&pair.kernels, &pair.results, &options)?;
    let KernelPairRuns { parsed, setting, .. } = pair;
    mind_left_out(&mut comparison, parsed, &setting.machine, &setting.workload);
    let [from, to] = [0, 1].map(|place| &parsed[place]);
    let not_modelled = left_out(from, to, &setting.machine, &setting.workload).line(from.name(), to.name());
    let row = comparison.rows.into_iter().next().ok_or_else(|| {
        LabError::new(format!("the runs have no metric '{metric}'"), "name one that 'fairlab run' prints")
    })?;
    let [before, after] = &pair.kernels;
    let command = pair.setting.compare_command(before, after, row.values.len())
        + &format!(" --metric {}", quoted(&claim.metric));
    let commit = match &claim.commit {
        Some(commit) => Some(search(&pair.setting, claim, commit, metric, &row, effort)?),
        None => None,
    };
    let stopped = effort.stop.load(Ordering::Relaxed);
    Ok((!stopped).then(|| answer(claim, &row, (commit, not_modelled), command)))
}

fn answer(
    claim: &PublicClaim,
    row: &ComparisonRow,
    (commit, not_modelled): (Option<CommitAnswer>, Option<String>),
    command: String,
) -> ClaimAnswer {
    let figures = match claim.published {
        PublishedDifference::Figures(figures) => Some(figures),
        PublishedDifference::Direction(_) => None,
    };
    let ratio = figures.map(|[from, to]| to / from);
    let rises = claim.published == PublishedDifference::Direction(PublishedDirection::Rises)
        || ratio.is_some_and(|ratio| ratio > 1.0);
    // A search among a single commit tells nothing.
    let searched = commit.as_ref().filter(|commit| commit.finding.is_some() && commit.candidates > 1);
    let named = searched.map(|commit| commit.found.as_deref() == Some(commit.published.as_str()));
    // What appears from nothing has no ratio, only a least one.
    let measured = row.estimate.ratio.or(row.estimate.low.map(|_| f64::INFINITY));
    let verdict = ClaimVerdict::of(claim.published, measured, row.verdict.is_difference(), named);
    ClaimAnswer {
        claim: claim.text.clone(),
        metric: claim.metric.clone(),
        kernels: claim.kernels.clone(),
        published: PublishedAnswer {
            figures,
            unit: claim.unit.clone(),
            ratio,
            direction: if rises { "rises" } else { "falls" },
            remembered: claim.remembered,
        },
        means: [mean(&row.baseline), mean(&row.values)],
        ratio: row.estimate.ratio,
        low: row.estimate.low,
        high: row.estimate.high,
        compared: row.verdict,
        runs: row.values.len(),
        commit,
        not_modelled,
        verdict,
        outcome: match row.verdict {
            Compared::NotModelled => ReproductionOutcome::CannotBeSaid,
            _ => verdict.outcome(),
        },
        command,
    }
}

/// Searches for the commit where there is something to find.
fn search(
    setting: &RunSetting,
    claim: &PublicClaim,
    commit: &str,
    metric: &str,
    row: &ComparisonRow,
    effort: &ReproductionEffort<'_>,
) -> Result<CommitAnswer, LabError> {
    let [before, after] = &claim.kernels;
    // A search goes from the better kernel to the worse one.
    let (good, bad) = if row.verdict == Compared::Better { (after, before) } else { (before, after) };
    let command = format!(
        "fairlab bisect {} --machine {} --good {} --bad {} --metric {} --duration {}s",
        line_of(&setting.workload),
        quoted(&setting.machine_name),
        quoted(good),
        quoted(bad),
        quoted(&claim.metric),
        setting.duration.as_secs_f64()
    ) + &setting.warmup_words();
    let mut answer =
        CommitAnswer { published: commit.to_string(), found: None, finding: None, candidates: 0, command };
    if effort.quick || !row.verdict.is_difference() {
        return Ok(answer);
    }
    let spec = BisectSpec {
        good: Kernel::parse(good)?,
        bad: Kernel::parse(bad)?,
        question: BisectQuestion::Metric(metric.to_string()),
        setting: setting.clone(),
        margin: MARGIN,
        error: ERROR,
        runs_max: SEARCH_RUNS_MAX,
    };
    let mut trials = SearchTrials::new(setting, effort.jobs, effort.on_progress, effort.stop);
    let found = bisect(&spec, &mut trials)?;
    if found.stopped {
        return Ok(answer);
    }
    answer.finding = Some(found.finding.name());
    answer.candidates = found.changes;
    let crossing = found.first_bad().or(found.first_good());
    answer.found = crossing.and_then(|crossing| commit_of(crossing.steps.as_slice(), commit));
    Ok(answer)
}

/// The commit of a crossing: the published one if it is among those that could not be told apart, otherwise the last.
fn commit_of(steps: &[WayStep], published: &str) -> Option<String> {
    let commits = || steps.iter().map(WayStep::id);
    commits().find(|commit| commit == published).or_else(|| commits().next_back())
}
