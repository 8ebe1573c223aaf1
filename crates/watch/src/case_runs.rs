//! The runs of one case: the digest of each kernel's, and the metrics of those that differ.
//!
//! Kernels whose runs are equal, event by event, share a *class*: its further runs are made on one of them.
//!
//! Must not know: what is concluded.

use std::collections::{BTreeMap, BTreeSet};

use fairlab_files::LabError;
use fairlab_lab::{ExperimentSide, ExperimentStopped, Kernel, RunResult, RunSetting, RunSpec};

use crate::line::WatchedLine;
use crate::run_maker::RunMaker;

/// Runs of a kernel that tell whether it differs, where none is spared.
const SCREENS: usize = 3;

/// By what kernels are taken to run equally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screening {
    /// One run of each, with chance.
    OneSeed,
    /// Two runs with chance, and one without.
    Thorough,
    /// By nothing: every kernel is measured, with as many runs as there may be. What the others find is held against this.
    None,
}

impl Screening {
    /// Runs of each kernel.
    pub(crate) const fn runs(self) -> usize {
        match self {
            Screening::OneSeed | Screening::None => 1,
            Screening::Thorough => SCREENS,
        }
    }
}

/// The runs of a case.
pub(crate) struct CaseRuns {
    pub setting: RunSetting,
    metrics: Vec<String>,
    /// Kernels that run differently.
    classes: Vec<RunClass>,
    /// The class of each kernel on the line; `None` where there is none.
    class_of: Vec<Option<usize>>,
    /// How many runs were made.
    pub made: usize,
    /// Kernels that are left out, since their runs fail where others' do not.
    pub failed: Vec<(String, LabError)>,
}

/// The runs of a kernel that tell whether it differs, or why they fail.
type Screened = Result<Vec<RunResult>, LabError>;

/// A kernel that stands for all that run as it does.
struct RunClass {
    kernel: Kernel,
    shift: u64,
    /// The metrics of each run, in the order of seeds.
    found: Vec<Vec<f64>>,
    /// Those of runs that take no part in finding anything.
    fresh: Vec<Vec<f64>>,
    /// What its runs with chance come to, event by event: where there is more than one, seeds alter events.
    digests: BTreeSet<String>,
}

/// Which seeds runs have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeedRange {
    /// Those by which differences are found.
    Found,
    /// Those by which they are confirmed.
    Fresh,
}

/// Seeds that confirm lie so far behind those that find.
pub const FRESH_SEEDS: u64 = 100_000;

/// Two classes that follow each other on the line: the positions of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineStep {
    pub before: usize,
    pub after: usize,
}

impl CaseRuns {
    pub fn of(setting: RunSetting, metrics: Vec<String>) -> CaseRuns {
        CaseRuns { setting, metrics, classes: Vec::new(), class_of: Vec::new(), made: 0, failed: Vec::new() }
    }

    /// Runs each kernel of the line, and finds which run equally. Gives whether it was stopped.
    ///
    /// # Errors
    /// A run fails, or lacks a metric.
    pub fn screen(
        &mut self,
        line: &WatchedLine,
        screening: Screening,
        maker: RunMaker<'_>,
    ) -> Result<ExperimentStopped, LabError> {
        let (alike, distinct) = distinct(line);
        let screens = screening.runs();
        let mut class_of_digests = BTreeMap::new();
        let mut class_of_distinct = Vec::new();
        for chunk in distinct.chunks(maker.at_once().div_ceil(screens)) {
            let Some(screened) = self.screened(chunk, screens, maker)? else {
                return Ok(ExperimentStopped(true));
            };
            for ((kernel, shift), runs) in chunk.iter().zip(screened) {
                let runs = match runs {
                    Ok(runs) => runs,
                    Err(error) => {
                        self.failed.push((kernel.name().to_string(), error));
                        class_of_distinct.push(None);
                        continue;
                    }
                };
                self.made += runs.len();
                let digests = runs.iter().map(|run| run.digest.clone()).collect::<Vec<_>>();
                let with_chance = digests.iter().take(SCREENS - 1).cloned().collect();
                let next = self.classes.len();
                let alone = (screening == Screening::None).then_some(next);
                let class = *class_of_digests.entry((alone, digests)).or_insert(next);
                if class == next {
                    // What leaves nothing to chance comes last, and is no sample.
                    let sampled = runs.iter().take(SCREENS - 1).map(|run| self.metrics_of(run));
                    let found = sampled.collect::<Result<Vec<_>, _>>()?;
                    let (kernel, shift) = (kernel.clone(), *shift);
                    let fresh = Vec::new();
                    self.classes.push(RunClass { kernel, shift, found, fresh, digests: with_chance });
                }
                class_of_distinct.push(Some(class));
            }
        }
        if self.classes.is_empty()
            && let Some((_, error)) = self.failed.pop()
        {
            return Err(error);
        }
        self.class_of =
            alike.into_iter().map(|number| number.and_then(|number| class_of_distinct[number])).collect();
        Ok(ExperimentStopped(false))
    }

    /// Runs each of these kernels; `None`: it was stopped. Where one's runs fail, each is run by itself.
    ///
    /// # Errors
    /// The crew is lost.
    fn screened(
        &self,
        chunk: &[(Kernel, u64)],
        screens: usize,
        maker: RunMaker<'_>,
    ) -> Result<Option<Vec<Screened>>, LabError> {
        let specs = |(kernel, shift): &(Kernel, u64)| self.screens(kernel, *shift, screens);
        match maker.make(&chunk.iter().flat_map(specs).collect::<Vec<_>>()) {
            Ok((_, ExperimentStopped(true))) => return Ok(None),
            Ok((results, _)) => {
                let mut results = results.into_iter();
                return Ok(Some(
                    chunk.iter().map(|_| Ok(results.by_ref().take(screens).collect())).collect(),
                ));
            }
            Err(error) if maker.is_lost() => return Err(error),
            Err(_) => {}
        }
        let mut screened = Vec::new();
        for one in chunk {
            match maker.make(&specs(one)) {
                Ok((_, ExperimentStopped(true))) => return Ok(None),
                Err(error) if maker.is_lost() => return Err(error),
                made => screened.push(made.map(|(results, _)| results)),
            }
        }
        Ok(Some(screened))
    }

    /// The runs that tell whether a kernel differs: with two seeds, and without chance.
    fn screens(&self, kernel: &Kernel, shift: u64, screens: usize) -> Vec<RunSpec> {
        let mut specs =
            (0..screens as u64).map(|number| self.spec(kernel, shift, number)).collect::<Vec<_>>();
        if let Some(last) = specs.get_mut(SCREENS - 1) {
            *last = RunSpec { machine: self.setting.machine.clone().exact(), ..self.spec(kernel, shift, 0) };
        }
        specs
    }

    fn spec(&self, kernel: &Kernel, shift: u64, number: u64) -> RunSpec {
        let side = ExperimentSide::of(kernel.name().to_string(), kernel.clone(), self.setting.clone());
        let seed = self.setting.first_seed.wrapping_add(shift).wrapping_add(number);
        RunSpec { by_name: self.setting.by_name.clone(), ..side.spec(seed) }
    }

    fn metrics_of(&self, run: &RunResult) -> Result<Vec<f64>, LabError> {
        let of = |name: &String| {
            run.metric(name).ok_or_else(|| {
                let known = run.metrics.iter().map(|(name, _)| name.as_str());
                fairlab_lab::names::no_metric("its runs", name, known)
            })
        };
        self.metrics.iter().map(of).collect()
    }

    /// How many kernels run differently.
    pub fn class_count(&self) -> usize {
        self.classes.len()
    }

    /// The class of each kernel on the line.
    pub fn class_of(&self) -> &[Option<usize>] {
        &self.class_of
    }

    /// The kernel that stands for a class.
    pub fn kernel(&self, class: usize) -> &Kernel {
        &self.classes[class].kernel
    }

    /// The steps of the line at which runs change.
    pub fn steps(&self) -> Vec<LineStep> {
        let there = self.class_of.iter().enumerate().filter_map(|(at, class)| Some((at, (*class)?)));
        let there = there.collect::<Vec<_>>();
        let changes = there.windows(2).filter(|pair| pair[0].1 != pair[1].1);
        changes.map(|pair| LineStep { before: pair[0].0, after: pair[1].0 }).collect()
    }

    /// Whether seeds alter the events of a class's runs.
    pub fn seeds_alter(&self, class: usize) -> bool {
        self.classes[class].digests.len() > 1
    }

    /// A metric of a class in all its runs.
    pub fn values(&self, class: usize, metric: usize, seeds: SeedRange) -> Vec<f64> {
        self.classes[class].runs(seeds).iter().map(|run| run[metric]).collect()
    }

    /// Sees to it that each of these classes has so many runs. Gives whether it was stopped.
    ///
    /// # Errors
    /// A run fails.
    pub fn ensure(
        &mut self,
        classes: &[usize],
        (runs, seeds): (usize, SeedRange),
        maker: RunMaker<'_>,
    ) -> Result<ExperimentStopped, LabError> {
        let missing = classes.iter().flat_map(|&class| {
            (self.classes[class].runs(seeds).len()..runs).map(move |number| (class, number))
        });
        let missing = missing.collect::<Vec<_>>();
        let offset = if seeds == SeedRange::Fresh { FRESH_SEEDS } else { 0 };
        for chunk in missing.chunks(maker.at_once()) {
            let specs = chunk.iter().map(|&(class, number)| {
                let RunClass { kernel, shift, .. } = &self.classes[class];
                self.spec(kernel, *shift, offset + number as u64)
            });
            let (results, stopped) = maker.make(&specs.collect::<Vec<_>>())?;
            if stopped.0 {
                return Ok(stopped);
            }
            self.made += results.len();
            for ((class, _), run) in chunk.iter().zip(&results) {
                let metrics = self.metrics_of(run)?;
                self.classes[*class].runs_mut(seeds).push(metrics);
                self.classes[*class].digests.insert(run.digest.clone());
            }
        }
        Ok(ExperimentStopped(false))
    }
}

/// For each kernel of the line its number among those of different rules, and these, each with what is added to its seeds. Kernels of equal
/// rules need no run to be equal.
fn distinct(line: &WatchedLine) -> (Vec<Option<usize>>, Vec<(Kernel, u64)>) {
    let mut distinct: Vec<(Kernel, u64)> = Vec::new();
    let number_of = |position: usize| {
        let (kernel, shift) = line.kernel(position)?;
        let known = distinct.iter().rposition(|(one, at)| *at == shift && one.same_rules(kernel));
        Some(known.unwrap_or_else(|| {
            distinct.push((kernel.clone(), shift));
            distinct.len() - 1
        }))
    };
    ((0..line.count()).map(number_of).collect(), distinct)
}

impl RunClass {
    fn runs(&self, seeds: SeedRange) -> &Vec<Vec<f64>> {
        match seeds {
            SeedRange::Found => &self.found,
            SeedRange::Fresh => &self.fresh,
        }
    }

    fn runs_mut(&mut self, seeds: SeedRange) -> &mut Vec<Vec<f64>> {
        match seeds {
            SeedRange::Found => &mut self.found,
            SeedRange::Fresh => &mut self.fresh,
        }
    }
}
