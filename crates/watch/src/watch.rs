//! The whole of it: screen, judge, confirm.
//!
//! Must not know: how an answer is printed.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use fairlab_analysis::statistics::{
    BetterDirection, Estimate, FALSE_DISCOVERY_RATE, LookPlan, MetricVerdict, mean, mean_interval,
};
use fairlab_change::causes::parting;
use fairlab_files::shell::{line_of, quoted};
use fairlab_files::{LabError, Progress};
use fairlab_lab::RunStore;

use crate::answer::{
    ClassAnswer, FindingAnswer, FoundAnswer, MeanAnswer, WatchAnswer, WatchedCaseAnswer, WatchedKernelAnswer,
};
use crate::case::{Catalogue, WatchCase};
use crate::case_runs::{CaseRuns, Screening, SeedRange};
use crate::hypothesis::{Hypothesis, settle};
use crate::line::WatchedLine;
use crate::run_maker::{RunMaker, WatchCrew};

/// What is watched.
pub struct WatchSpec {
    /// The kernels.
    pub line: WatchedLine,
    /// The cases.
    pub catalogue: Catalogue,
    /// How kernels are found that run equally.
    pub screening: Screening,
    /// The most runs of a kernel in a case, beside those that confirm.
    pub runs_max: usize,
    /// The first seed.
    pub first_seed: u64,
}

/// How it is done.
pub struct WatchEffort<'e> {
    /// How many runs go on at once.
    pub jobs: usize,
    /// Who makes them instead of threads of this process.
    pub crew: Option<&'e WatchCrew>,
    /// Where runs are kept, if they are.
    pub store: Option<&'e RunStore>,
    /// Is told how far the runs of this step are.
    pub on_progress: &'e (dyn Fn(Progress) + Sync),
    /// Is told each step.
    pub tell: &'e dyn Fn(&str),
    /// Ends it early.
    pub stop: &'e AtomicBool,
}

/// How much there is to do, told before it begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WatchEstimate {
    /// Kernels of the range.
    pub kernels: usize,
    /// Cases.
    pub cases: usize,
    /// Runs that screen.
    pub runs: usize,
}

/// The fewest runs that confirm, and the most, if that is not more than found it.
const FRESH_MIN: usize = 6;
const FRESH_MAX: usize = 30;

impl WatchSpec {
    /// How much there is to do until it is known which kernels differ.
    pub fn estimate(&self) -> WatchEstimate {
        let (kernels, cases) = (self.line.count(), self.catalogue.cases.len());
        WatchEstimate { kernels, cases, runs: kernels * cases * self.screening.runs() }
    }
}

impl WatchEffort<'_> {
    fn maker(&self) -> RunMaker<'_> {
        let WatchEffort { jobs, crew, store, on_progress, stop, .. } = *self;
        RunMaker { jobs, crew, store, on_progress, stop }
    }
}

/// What was found by now.
struct Watch<'e> {
    spec: WatchSpec,
    effort: WatchEffort<'e>,
    /// The runs of each case that can be run.
    runs: Vec<CaseRuns>,
    family: Vec<Hypothesis>,
    /// Cases of which a run failed after they were screened.
    failed: BTreeSet<usize>,
    is_partial: bool,
}

/// What came of runs that were asked for.
enum Made {
    All,
    Stopped,
    Failed,
}

/// Runs every kernel in every case, and tells which steps change what. What it has is told when it is stopped.
///
/// # Errors
/// No case can be run.
pub fn watch(spec: WatchSpec, effort: WatchEffort<'_>) -> Result<WatchAnswer, LabError> {
    let mut watch = Watch {
        spec,
        effort,
        runs: Vec::new(),
        family: Vec::new(),
        failed: BTreeSet::new(),
        is_partial: false,
    };
    watch.screen()?;
    watch.judge()?;
    let mut findings = watch.findings();
    watch.confirm(&mut findings)?;
    Ok(watch.answer(findings))
}

impl Watch<'_> {
    /// Runs each kernel of each case. A case that cannot be run is left out.
    fn screen(&mut self) -> Result<(), LabError> {
        let cases = std::mem::take(&mut self.spec.catalogue.cases);
        let count = cases.len();
        for (number, case) in cases.into_iter().enumerate() {
            (self.effort.tell)(&format!(
                "case {} of {count}, {}: which kernels differ",
                number + 1,
                case.name
            ));
            match self.screened(&case) {
                Ok(Some(runs)) => {
                    let told = format!(
                        "{}: {} kinds of runs, {} changes",
                        case.name,
                        runs.class_count(),
                        runs.steps().len()
                    );
                    (self.effort.tell)(&told);
                    self.runs.push(runs);
                    self.spec.catalogue.cases.push(case);
                }
                Ok(None) => {
                    self.is_partial = true;
                    break;
                }
                Err(error) if self.effort.maker().is_lost() => return Err(error),
                Err(error) => self.spec.catalogue.skip(case.name, &error),
            }
        }
        match (self.runs.is_empty() && !self.is_partial, self.spec.catalogue.skipped.last()) {
            (true, Some(last)) => Err(LabError::new(
                format!("no case can be run; {}: {}", last.case, last.why),
                "see 'fairlab watch list'",
            )),
            _ => Ok(()),
        }
    }

    fn screened(&mut self, case: &WatchCase) -> Result<Option<CaseRuns>, LabError> {
        let setting = case.setting(self.spec.first_seed)?;
        let failed = self.spec.line.prepare(&setting, self.effort.tell, self.effort.stop);
        if self.effort.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        for (kernel, error) in failed {
            self.spec.catalogue.skip(kernel, &error);
        }
        let mut runs = CaseRuns::of(setting, case.metrics.clone());
        let stopped = runs.screen(&self.spec.line, self.spec.screening, self.effort.maker())?;
        for (kernel, error) in &runs.failed {
            self.spec.catalogue.skip(format!("{kernel} in {}", case.name), error);
        }
        Ok((!stopped.0).then_some(runs))
    }

    /// Compares neighbours until each question is answered, or there are no more runs.
    fn judge(&mut self) -> Result<(), LabError> {
        self.ask();
        let plan = match self.spec.screening {
            Screening::None => LookPlan::at_end(self.spec.runs_max),
            Screening::OneSeed | Screening::Thorough => LookPlan::up_to(self.spec.runs_max),
        };
        for &runs in plan.runs() {
            let is_open = |one: &&Hypothesis| !one.is_closed && !self.failed.contains(&one.case);
            let open = self.family.iter().filter(is_open).count();
            if open == 0 || self.is_partial {
                break;
            }
            (self.effort.tell)(&format!(
                "{open} of {} questions are open: {runs} runs a kernel",
                self.family.len()
            ));
            let levels = plan.levels(runs);
            for case in 0..self.runs.len() {
                if self.failed.contains(&case) {
                    continue;
                }
                let is_its = |one: &&Hypothesis| one.case == case && !one.is_closed;
                let mut classes =
                    self.family.iter().filter(is_its).flat_map(|one| one.classes).collect::<Vec<_>>();
                classes.sort_unstable();
                classes.dedup();
                match self.ensure(case, &classes, (runs, SeedRange::Found))? {
                    Made::All => {}
                    Made::Stopped => return Ok(()),
                    Made::Failed => continue,
                }
                let its = self.family.iter_mut().filter(|one| one.case == case && !one.is_closed);
                its.for_each(|one| one.look(&self.runs[case], runs, &levels));
            }
            settle(&mut self.family, self.spec.runs_max);
        }
        Ok(())
    }

    /// Makes runs of a case. What its runs told before one failed stands, and no more is asked of it.
    ///
    /// # Errors
    /// The crew is lost.
    fn ensure(
        &mut self,
        case: usize,
        classes: &[usize],
        wanted: (usize, SeedRange),
    ) -> Result<Made, LabError> {
        match self.runs[case].ensure(classes, wanted, self.effort.maker()) {
            Ok(stopped) => {
                self.is_partial |= stopped.0;
                Ok(if stopped.0 { Made::Stopped } else { Made::All })
            }
            Err(error) if self.effort.maker().is_lost() => Err(error),
            Err(error) => {
                if self.failed.insert(case) {
                    let name = format!("{}, further runs", self.spec.catalogue.cases[case].name);
                    self.spec.catalogue.skip(name, &error);
                }
                Ok(Made::Failed)
            }
        }
    }

    /// A question for each metric of each case at each step.
    fn ask(&mut self) {
        for (case, runs) in self.runs.iter().enumerate() {
            let WatchCase { metrics, margin, .. } = &self.spec.catalogue.cases[case];
            for step in runs.steps() {
                let classes = [step.before, step.after].map(|at| runs.class_of()[at].unwrap_or_default());
                self.family.extend(metrics.iter().enumerate().map(|(metric, name)| Hypothesis {
                    case,
                    metric,
                    better: BetterDirection::of_metric(name),
                    margin: *margin,
                    step,
                    classes,
                    estimate: None,
                    runs: 0,
                    q: None,
                    is_closed: false,
                }));
            }
        }
    }

    /// The changes that are sure, in the order of history.
    fn findings(&self) -> Vec<(usize, FindingAnswer)> {
        let found = self.family.iter().enumerate().filter(|(_, one)| one.is_found());
        let mut found = found.map(|(number, one)| (number, self.finding(one))).collect::<Vec<_>>();
        found.sort_by_key(|(number, finding)| (finding.positions[1], *number));
        found
    }

    fn finding(&self, one: &Hypothesis) -> FindingAnswer {
        let (case, runs) = (&self.spec.catalogue.cases[one.case], &self.runs[one.case]);
        let name = |at: usize| self.spec.line.name_of(at).unwrap_or_default();
        let kernels = [name(one.step.before), name(one.step.after)];
        let metric = &case.metrics[one.metric];
        let command = runs.setting.compare_command(&kernels[0], &kernels[1], one.runs);
        FindingAnswer {
            case: case.name.clone(),
            metric: metric.clone(),
            positions: [one.step.before, one.step.after],
            steps: self.spec.line.steps_between(one.step.before, one.step.after),
            kernels,
            verdict: one.verdict(),
            found: self.compared(one, SeedRange::Found, one.estimate.as_ref(), one.q),
            fresh: None,
            confirmed: false,
            taken_back_by: None,
            parting: None,
            command: format!("{command} --metric {}", quoted(metric)),
        }
    }

    fn compared(
        &self,
        one: &Hypothesis,
        seeds: SeedRange,
        estimate: Option<&Estimate>,
        q: Option<f64>,
    ) -> FoundAnswer {
        let values = one.classes.map(|class| self.runs[one.case].values(class, one.metric, seeds));
        let runs = values[0].len().min(values[1].len());
        FoundAnswer {
            runs,
            means: [mean(&values[0][..runs]), mean(&values[1][..runs])],
            ratio: estimate.and_then(|estimate| estimate.ratio),
            low: estimate.and_then(|estimate| estimate.low),
            high: estimate.and_then(|estimate| estimate.high),
            p: estimate.and_then(|estimate| estimate.p),
            q,
        }
    }

    /// Measures each finding anew, and looks for the first decision behind it.
    fn confirm(&mut self, findings: &mut [(usize, FindingAnswer)]) -> Result<(), LabError> {
        let count = findings.len();
        for (place, (number, finding)) in findings.iter_mut().enumerate() {
            if self.is_partial {
                break;
            }
            (self.effort.tell)(&format!("finding {} of {count}: confirmed by fresh runs?", place + 1));
            let Some((fresh, confirmed)) = self.looked_at_afresh(*number)? else { continue };
            let one = &self.family[*number];
            finding.fresh = Some(self.compared(one, SeedRange::Fresh, Some(&fresh), fresh.p));
            finding.confirmed = confirmed;
            let Hypothesis { case, classes, .. } = *one;
            if confirmed {
                let runs = &self.runs[case];
                let [before, after] = classes.map(|class| runs.kernel(class));
                // What is known stands without it.
                finding.parting =
                    parting((before, after), &runs.setting, self.effort.stop).unwrap_or_default();
            }
        }
        Ok(())
    }

    /// What runs say that took no part in finding a change, and whether that confirms it: more and more of them, until it does.
    /// `None`: it was stopped, or they fail.
    fn looked_at_afresh(&mut self, number: usize) -> Result<Option<(Estimate, bool)>, LabError> {
        let Hypothesis { case, classes, runs, .. } = self.family[number];
        let plan = LookPlan::up_to(FRESH_MAX.max(runs));
        let mut said = None;
        for &runs in plan.runs().iter().filter(|&&look| look >= runs.max(FRESH_MIN)) {
            match self.ensure(case, &classes, (runs, SeedRange::Fresh))? {
                Made::All => {}
                Made::Stopped => return Ok(None),
                Made::Failed => break,
            }
            let (fresh, confirmed) = self.family[number].confirmed(&self.runs[case], &plan.levels(runs));
            said = Some((fresh, confirmed));
            if confirmed {
                break;
            }
        }
        Ok(said)
    }

    fn answer(self, findings: Vec<(usize, FindingAnswer)>) -> WatchAnswer {
        let mut findings = findings.into_iter().map(|(_, finding)| finding).collect::<Vec<_>>();
        let taken_back = (0..findings.len()).map(|at| taken_back_by(&findings, at)).collect::<Vec<_>>();
        for (finding, by) in findings.iter_mut().zip(taken_back) {
            finding.taken_back_by = by;
        }
        let line = &self.spec.line;
        let kernel = |at: usize| WatchedKernelAnswer { name: line.name_of(at), step: line.step(at).cloned() };
        let cases = self.spec.catalogue.cases.iter().zip(&self.runs);
        WatchAnswer {
            range: line.name.clone(),
            kernels: (0..line.count()).map(kernel).collect(),
            runs: self.runs.iter().map(|runs| runs.made).sum(),
            questions: self.family.len(),
            undecided: self.family.iter().filter(|one| one.verdict() == MetricVerdict::Undecided).count(),
            false_discovery_rate: FALSE_DISCOVERY_RATE,
            cases: cases.map(|(case, runs)| case_answer(case, runs)).collect(),
            findings,
            skipped: self.spec.catalogue.skipped,
            partial: self.is_partial,
        }
    }
}

/// The first later finding in the same metric that goes the other way by at least half as much.
fn taken_back_by(findings: &[FindingAnswer], at: usize) -> Option<usize> {
    let one = &findings[at];
    let takes_back = |other: &FindingAnswer| {
        let is_same = (&other.case, &other.metric) == (&one.case, &one.metric) && other.confirmed;
        is_same && other.positions[1] > one.positions[1] && -other.log_ratio() / one.log_ratio() >= 0.5
    };
    one.confirmed.then(|| findings.iter().position(takes_back)).flatten()
}

fn case_answer(case: &WatchCase, runs: &CaseRuns) -> WatchedCaseAnswer {
    let class = |class: usize| {
        let of = |metric: usize| {
            let values = runs.values(class, metric, SeedRange::Found);
            let half = mean_interval(&values, 0.95).map(|(_, half)| half);
            MeanAnswer { mean: mean(&values), half }
        };
        ClassAnswer {
            kernel: runs.kernel(class).name().to_string(),
            runs: runs.values(class, 0, SeedRange::Found).len(),
            metrics: (0..case.metrics.len()).map(of).collect(),
        }
    };
    WatchedCaseAnswer {
        name: case.name.clone(),
        title: case.title.clone(),
        source: case.source.clone(),
        machine: case.machine.clone(),
        workload: line_of(&case.workload),
        margin: case.margin,
        metrics: case.metrics.clone(),
        line: runs.class_of().to_vec(),
        classes: (0..runs.class_count()).map(class).collect(),
    }
}
