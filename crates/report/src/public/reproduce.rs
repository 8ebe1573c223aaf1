//! Runs what a report's file says: both kernels of each claim, and the search for its commit.
//!
//! Must not know: any report, how an answer is printed.

use std::sync::atomic::{AtomicBool, Ordering};

use fairlab_analysis::by_name::NamesWanted;
use fairlab_analysis::statistics::{LookLevels, LookPlan, MARGIN, MetricVerdict as Compared, mean};
use fairlab_change::bisect::{BisectQuestion, BisectSpec, bisect};
use fairlab_change::compare::end_of;
use fairlab_change::left_out::{left_out_between, mind_left_out};
use fairlab_change::side_words::experiment_of;
use fairlab_change::{SearchTrials, WayStep};
use fairlab_lab::names::{MetricName, ShownMetrics};
use fairlab_lab::shell::{line_of, quoted};
use fairlab_lab::{
    CompareOptions, ComparisonRow, ExperimentRuns, ExperimentSide, Kernel, LabError, LookEnd, Progress,
    RunResult, RunSetting, RunStore, SettingWords, compare,
};

use super::answer::{ClaimAnswer, CommitAnswer, PartialReport, PublishedAnswer, ReportAnswer};
use super::file::{PublicClaim, PublicReport, PublishedDifference, PublishedDirection};
use super::judge::{ClaimVerdict, ReproductionOutcome};
use crate::render::number;

/// How much is done.
pub struct ReproductionEffort<'e> {
    /// Fewer runs, and no search.
    pub quick: bool,
    /// How many runs go on at once.
    pub jobs: usize,
    /// Is told how far runs are.
    pub on_progress: &'e (dyn Fn(Progress) + Sync),
    /// Is told each claim as soon as it is judged.
    pub on_claim: &'e dyn Fn(&ClaimAnswer),
    /// Where runs are kept, if they are.
    pub store: Option<&'e RunStore>,
    /// Ends it early.
    pub stop: &'e AtomicBool,
}

/// Runs of each kernel in the quick form.
const QUICK_RUNS: u64 = 4;

/// How often a search's answer may be wrong.
const ERROR: f64 = 0.01;

/// The most runs of a kernel in a search.
const SEARCH_RUNS_MAX: usize = 40;

/// Makes a report's runs and judges its claims. Of one that was stopped, the claims that were judged by then.
///
/// # Errors
/// A name in it means nothing, or a run fails.
pub fn reproduce(report: &PublicReport, effort: &ReproductionEffort<'_>) -> Result<ReportAnswer, LabError> {
    let in_report =
        |error: LabError| LabError { problem: format!("report {}: {}", report.name, error.problem), ..error };
    let claims = match report.cannot {
        Some(_) => Vec::new(),
        None => of_claims(report, effort).map_err(in_report)?,
    };
    let is_partial = report.cannot.is_none() && claims.len() < report.claims.len();
    let outcome = match report.cannot {
        Some(_) => ReproductionOutcome::CannotBeSaid,
        None => ReportAnswer::outcome_of(&claims),
    };
    Ok(ReportAnswer {
        name: report.name.clone(),
        title: report.title.clone(),
        source: report.source.clone(),
        machine: report.machine.clone(),
        workload: line_of(&report.workload),
        departs: report.departs.clone(),
        notes: report.notes.clone(),
        cannot: report.cannot.clone(),
        outcome,
        partial: is_partial.then_some(PartialReport { judged: claims.len(), wanted: report.claims.len() }),
        claims,
    })
}

/// The runs of two sides, which all claims on them share.
struct PairRuns {
    names: [String; 2],
    sides: Vec<ExperimentSide>,
    setting: RunSetting,
    results: Vec<RunResult>,
    /// How sure claims must be at the look that ended the runs.
    levels: LookLevels,
}

fn of_claims(report: &PublicReport, effort: &ReproductionEffort<'_>) -> Result<Vec<ClaimAnswer>, LabError> {
    let metrics = report.claims.iter().map(|claim| MetricName::parse(&claim.metric));
    let metrics = metrics.collect::<Result<Vec<_>, _>>()?;
    let by_name = ShownMetrics::default().wanted(&metrics);
    let mut pairs: Vec<PairRuns> = Vec::new();
    let mut answers = Vec::new();
    for (claim, metric) in report.claims.iter().zip(&metrics) {
        let known = pairs.iter().position(|pair| pair.names == claim.kernels);
        let place = match known {
            Some(place) => place,
            None => {
                let beside =
                    report.claims.iter().zip(&metrics).filter(|(one, _)| one.kernels == claim.kernels);
                let asked = beside.map(|(_, metric)| metric.name.clone()).collect::<Vec<_>>();
                let Some(pair) = runs_of(report, claim, (&by_name, &asked), effort)? else {
                    return Ok(answers);
                };
                pairs.push(pair);
                pairs.len() - 1
            }
        };
        match of_claim(report, claim, &metric.name, &pairs[place], effort)? {
            Some(answer) => {
                (effort.on_claim)(&answer);
                answers.push(answer);
            }
            None => return Ok(answers),
        }
    }
    Ok(answers)
}

/// Makes the runs of a claim's two sides, until all claims on them are sure.
fn runs_of(
    report: &PublicReport,
    claim: &PublicClaim,
    (by_name, metrics): (&NamesWanted, &[String]),
    effort: &ReproductionEffort<'_>,
) -> Result<Option<PairRuns>, LabError> {
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
    let side = |name: &String| report.sides.iter().find(|side| side.name == *name).cloned();
    let sides = claim.kernels.iter().filter_map(side).collect::<Vec<_>>();
    let kernels = if sides.is_empty() { &claim.kernels[..] } else { report.kernel.as_slice() };
    let experiment = experiment_of(&sides, kernels, &asked, runs)?;
    let plan = LookPlan::up_to(runs as usize);
    let mut levels = LookLevels::default();
    let looked = |results: &[RunResult], count: usize| {
        levels = plan.levels(count);
        let comparison = compare(&claim.kernels, results, &options_of(metrics, &levels))?;
        let rows = comparison.rows.iter().collect::<Vec<_>>();
        Ok(end_of(&rows, runs as usize - count) != LookEnd::Open)
    };
    let made = ExperimentRuns::of(&experiment, Vec::new()).with_store(effort.store).make_until(
        plan.runs(),
        effort.jobs,
        effort.on_progress,
        effort.stop,
        looked,
    )?;
    let setting = experiment.setting_of(&experiment.sides[0]);
    let (names, sides) = (claim.kernels.clone(), experiment.sides);
    let pair = PairRuns { names, setting, sides, results: made.results, levels };
    Ok(made.partial.is_none().then_some(pair))
}

fn options_of(metrics: &[String], levels: &LookLevels) -> CompareOptions {
    CompareOptions { metrics: metrics.to_vec(), levels: levels.clone(), ..CompareOptions::default() }
}

/// The command that repeats a claim's comparison.
fn command_of(report: &PublicReport, claim: &PublicClaim, pair: &PairRuns, runs: usize) -> String {
    let metric = format!(" --metric {}", quoted(&claim.metric));
    let sides = report.sides.iter().filter(|side| claim.kernels.contains(&side.name)).collect::<Vec<_>>();
    if sides.is_empty() {
        let [before, after] = &pair.names;
        return pair.setting.compare_command(before, after, runs) + &metric;
    }
    // In the claim's order.
    let named = claim.kernels.iter().filter_map(|name| sides.iter().find(|side| side.name == *name));
    let sides = named.map(|side| format!(" --side {}", quoted(&side.to_string()))).collect::<String>();
    let kernel =
        report.kernel.as_ref().map_or(String::new(), |kernel| format!(" --kernel {}", quoted(kernel)));
    let warmup = report.warmup.map_or(String::new(), |warmup| format!(" --warmup {}ns", warmup.0));
    format!(
        "fairlab compare{sides}{kernel} --machine {} --runs {runs} --duration {}ms{warmup}{metric} {}",
        quoted(&report.machine),
        report.duration.0 / 1_000_000,
        line_of(&report.workload)
    )
}

fn of_claim(
    report: &PublicReport,
    claim: &PublicClaim,
    metric: &str,
    pair: &PairRuns,
    effort: &ReproductionEffort<'_>,
) -> Result<Option<ClaimAnswer>, LabError> {
    let options = options_of(&[metric.to_string()], &pair.levels);
    let mut comparison = compare(&pair.names, &pair.results, &options)?;
    mind_left_out(&mut comparison, &pair.sides);
    let [from, to] = [0, 1].map(|place| &pair.sides[place]);
    let not_modelled = left_out_between(from, to).line(from.kernel.name(), to.kernel.name());
    let row = comparison.rows.into_iter().next().ok_or_else(|| {
        LabError::new(format!("the runs have no metric '{metric}'"), "name one that 'fairlab run' prints")
    })?;
    let command = command_of(report, claim, pair, row.values.len());
    let commit = match &claim.commit {
        Some(commit) => Some(search(&pair.setting, claim, commit, metric, &row, effort)?),
        None => None,
    };
    let stopped = effort.stop.load(Ordering::Relaxed);
    Ok((!stopped).then(|| answer(claim, &row, (commit, not_modelled), command)))
}

/// What is said of sides whose runs are of two kinds.
fn kinds(claim: &PublicClaim, row: &ComparisonRow) -> Vec<String> {
    let sides = claim.kernels.iter().zip([row.baseline_modes, row.modes]);
    sides.filter_map(|(kernel, modes)| Some(modes?.told(kernel, number))).collect()
}

/// The second side's metric over the first's. What appears from nothing has no ratio, only a least one.
fn ratio_of(row: &ComparisonRow) -> Option<f64> {
    row.estimate.ratio.or(row.estimate.low.map(|_| f64::INFINITY))
}

fn answer(
    claim: &PublicClaim,
    row: &ComparisonRow,
    (commit, not_modelled): (Option<CommitAnswer>, Option<String>),
    command: String,
) -> ClaimAnswer {
    let figures = match claim.published {
        PublishedDifference::Figures(figures) => Some(figures),
        PublishedDifference::AtLeast { .. } | PublishedDifference::Direction(_) => None,
    };
    let ratio = figures.map(|[from, to]| to / from);
    let direction = match claim.published {
        PublishedDifference::Direction(PublishedDirection::Same) => "stays the same",
        PublishedDifference::Direction(PublishedDirection::Rises) => "rises",
        PublishedDifference::Direction(PublishedDirection::Falls) => "falls",
        PublishedDifference::AtLeast { at_least: ratio } if ratio > 1.0 => "rises",
        PublishedDifference::Figures([from, to]) if to > from => "rises",
        PublishedDifference::AtLeast { .. } | PublishedDifference::Figures(_) => "falls",
    };
    let least = match claim.published {
        PublishedDifference::AtLeast { at_least } => Some(at_least),
        _ => None,
    };
    // A search among a single commit tells nothing.
    let searched = commit.as_ref().filter(|commit| commit.finding.is_some() && commit.candidates > 1);
    let named = searched.map(|commit| commit.found.as_deref() == Some(commit.published.as_str()));
    let verdict = ClaimVerdict::of(claim.published, ratio_of(row), row.verdict, named);
    ClaimAnswer {
        claim: claim.text.clone(),
        metric: claim.metric.clone(),
        kernels: claim.kernels.clone(),
        published: PublishedAnswer {
            figures,
            unit: claim.unit.clone(),
            ratio,
            direction,
            least,
            remembered: claim.remembered,
        },
        means: [mean(&row.baseline), mean(&row.values)],
        ratio: row.estimate.ratio,
        low: row.estimate.low,
        high: row.estimate.high,
        compared: row.verdict,
        kinds: kinds(claim, row),
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
    let mut trials =
        SearchTrials::new(setting, effort.jobs, effort.on_progress, effort.stop).with_store(effort.store);
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
