//! What a patch does: a tree as it is beside the tree with the patch, under a few workloads on a few machines.
//!
//! All that both runs' metrics say is one family, and so what is said to have changed has. Where runs are equal event by event the
//! patch changes nothing that the workload sees. Of the first case in which they are not, the first decision that differs is shown.
//!
//! Must not know: how an answer looks.

mod answer;
mod sides;

pub use answer::{AlikeAnswer, CaseAnswer, PatchMetricAnswer, PatchSideAnswer, TryAnswer};
pub use sides::{PatchSide, PatchSides};

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use crate::compare::end_of;
use crate::first_divergence::KernelPair;
use fairlab_analysis::statistics::{LookPlan, MetricVerdict, MoreRuns};
use fairlab_event::Ns;
use fairlab_files::shell::line_of;
use fairlab_lab::answer::DifferenceAnswer;
use fairlab_lab::names::no_metric;
use fairlab_lab::shell::quoted;
use fairlab_lab::{
    Caller, CompareOptions, ComparisonRow, Experiment, ExperimentResults, ExperimentRuns, Kernel, LabError,
    LookEnd, RunResult, RunSetting, SettingWords, compare, decide_family, machines, workloads,
};

/// Machines that are tried when the user names none: a laptop, a socket, two nodes. All tick alike, so that one build does for all.
pub const MACHINES: [&str; 3] = ["laptop8", "layout:1x1x20x2", "layout:2x1x48x2"];

/// Workloads that are tried when the user names none, each with what it is for.
pub const WORKLOADS: [(&str, &str); 5] = [
    ("hackbench -g 4 -l 40", "many short wakeups, and what moves their tasks"),
    ("schbench -m 2 -t 24 -c 5000 -s 1000", "wakeup latency of workers that compute"),
    ("sessions 12:4000 6:400:2000", "hogs in one group, sleepers in another"),
    ("pipe -l 1000", "two tasks that wake each other in turn"),
    ("cgroup 'cpu.max=30000 50000' jobs sleep -n 12", "a group that uses its quota up"),
];

/// How long each of these takes at most, in virtual time.
const ENOUGH: Ns = Ns::from_secs(1);

/// Metrics that are shown, beside the one that a workload is run for, when the user names none.
const METRICS: [&str; 4] =
    ["wakeup_latency_ns_p50", "wakeup_latency_ns_p99", "switches_per_s", "migrations_per_s"];

/// How many seeds of a case are followed to the first difference.
const FOLLOWED: u64 = 2;

/// Cases in which the first difference is looked for.
const CASES_FOLLOWED: usize = 3;

/// What is asked.
#[derive(Clone, Debug)]
pub struct TrySpec {
    /// The tree without the patch, and with it.
    pub sides: PatchSides,
    /// Workloads, each with its options.
    pub workloads: Vec<Vec<String>>,
    /// Machines by name.
    pub machines: Vec<String>,
    /// Metrics; without, those that a workload is run for and a few.
    pub metrics: Vec<String>,
    /// Runs of each side in each case; the most of them where cases end once they are sure.
    pub runs: u64,
    /// Whether a case ends once its workload's main metric is sure, or the metrics that are asked for.
    pub until_sure: bool,
    /// The first seed.
    pub first_seed: u64,
    /// When to stop each run; without, when the workload ends.
    pub duration: Option<Ns>,
    /// The share of the tree's value below which a difference is of no interest.
    pub margin: f64,
}

/// A machine and a workload, with the two kernels there.
struct PatchCase {
    machine: String,
    workload: Vec<String>,
    kernels: [Kernel; 2],
    setting: RunSetting,
}

impl PatchCase {
    fn told(&self) -> String {
        format!("{} on {}", line_of(&self.workload), self.machine)
    }
}

/// What came of a case.
struct PatchCaseResult {
    rows: Vec<ComparisonRow>,
    /// Whether runs of both are equal, event by event.
    alike: bool,
    /// Whether it was stopped: what its last look saw stands.
    stopped: bool,
    headline: &'static str,
}

/// Builds both sides, runs all cases, and says what the patch does.
///
/// # Errors
/// A side cannot be built, or a case cannot be run.
pub fn try_patch(spec: &TrySpec, caller: &Caller<'_>) -> Result<TryAnswer, LabError> {
    let mut answer = TryAnswer::of(spec);
    let cases = match spec.cases(&mut answer, caller) {
        // Nothing is known yet, and that is told, too.
        Err(_) if caller.stop.load(Ordering::Relaxed) => {
            answer.partial = true;
            return Ok(answer);
        }
        cases => cases?,
    };
    let (mut effective, mut known) = (Vec::new(), BTreeSet::new());
    for (number, case) in cases.iter().enumerate() {
        (caller.tell)(&format!("case {} of {}, {}", number + 1, cases.len(), case.told()));
        let seen = spec.seen(case, 0, caller)?;
        answer.partial = seen.as_ref().is_none_or(|seen| seen.stopped);
        let Some(seen) = seen else { break };
        known.extend(seen.rows.iter().map(|row| row.name.clone()));
        if seen.alike {
            answer.alike.push(AlikeAnswer::of(&case.machine, &case.workload));
            continue;
        }
        effective.push((case, seen));
        if answer.partial {
            break;
        }
    }
    if !answer.partial {
        spec.check_metrics(&known)?;
        answer.partial = spec.look_again(&mut effective, caller)?;
    }
    answer.rows = spec.judged(&effective);
    if !answer.partial {
        let effective = effective.iter().map(|(case, _)| *case).collect::<Vec<_>>();
        answer.difference = first_difference(&effective, caller)?;
    }
    Ok(answer)
}

impl TrySpec {
    /// All cases, with both sides built for each machine.
    fn cases(&self, answer: &mut TryAnswer, caller: &Caller<'_>) -> Result<Vec<PatchCase>, LabError> {
        let mut cases = Vec::new();
        for machine in &self.machines {
            let hz = machines::find(machine)?.hz;
            let built = self.sides.built(hz, caller)?;
            answer.set_sides(&self.sides, &built);
            let kernels = built.map(|(_, kernel)| kernel);
            for workload in &self.workloads {
                cases.push(self.case(machine, workload, &kernels)?);
            }
        }
        Ok(cases)
    }

    fn case(&self, machine: &str, workload: &[String], kernels: &[Kernel; 2]) -> Result<PatchCase, LabError> {
        let asked = self.asked(machine, workload);
        let setting = RunSetting::of_kernels(kernels, &asked)?;
        let (machine, workload) = (machine.to_string(), workload.to_vec());
        Ok(PatchCase { machine, workload, kernels: kernels.clone(), setting })
    }

    fn asked<'a>(&self, machine: &'a str, workload: &'a [String]) -> SettingWords<'a> {
        let line = line_of(workload);
        let own = WORKLOADS.iter().find(|(words, _)| *words == line).map(|_| ENOUGH);
        let duration = self.duration.or(own);
        SettingWords {
            machine,
            workload,
            warmup: None,
            duration,
            exact: false,
            first_seed: self.first_seed,
            by_name: None,
            time: Default::default(),
        }
    }

    /// A case that was sure by itself may be open among all of them: then it gets the runs that would probably decide, as far as
    /// there are any left. Whether it was stopped meanwhile: what was seen before stands.
    fn look_again(
        &self,
        seen: &mut [(&PatchCase, PatchCaseResult)],
        caller: &Caller<'_>,
    ) -> Result<bool, LabError> {
        if !self.until_sure {
            return Ok(false);
        }
        loop {
            let rows = self.decided(seen);
            let open = (0..seen.len()).filter_map(|at| {
                let own =
                    rows.iter().filter(|(of, row)| *of == at && self.is_main(seen[at].1.headline, &row.name));
                own.filter_map(|(_, row)| self.runs_to_decide(row)).max().map(|runs| (at, runs))
            });
            let open = open.collect::<Vec<_>>();
            if open.is_empty() {
                return Ok(false);
            }
            for (at, runs) in open {
                let case = seen[at].0;
                (caller.tell)(&format!("more runs of {}", case.told()));
                match self.seen(case, runs, caller)? {
                    Some(again) if !again.stopped => seen[at].1 = again,
                    _ => return Ok(true),
                }
            }
        }
    }

    /// How many runs a side would probably decide on a row that is open, if that many may be made.
    fn runs_to_decide(&self, row: &ComparisonRow) -> Option<usize> {
        let made = row.baseline.len().min(row.values.len());
        match row.more {
            Some(MoreRuns::About(more)) if row.verdict == MetricVerdict::Undecided => Some(made + more),
            _ => None,
        }
        .filter(|runs| *runs <= self.runs as usize)
    }

    /// Whether a case with this main metric is run for that one.
    fn is_main(&self, headline: &str, name: &str) -> bool {
        match self.metrics.as_slice() {
            [] => name == headline,
            named => named.iter().any(|wanted| wanted == name),
        }
    }

    /// Whether this metric of a case is told.
    fn is_told(&self, seen: &PatchCaseResult, name: &str) -> bool {
        self.is_main(seen.headline, name) || self.metrics.is_empty() && METRICS.contains(&name)
    }

    /// Refuses a metric that no case has: `known` are those of all cases.
    fn check_metrics(&self, known: &BTreeSet<String>) -> Result<(), LabError> {
        match self.metrics.iter().find(|name| !known.is_empty() && !known.contains(*name)) {
            Some(name) => Err(no_metric("the runs", name, known.iter().map(String::as_str))),
            None => Ok(()),
        }
    }

    /// The runs of a case compared, at least so many a side if they are allowed; `None`: it was stopped before the first look.
    fn seen(
        &self,
        case: &PatchCase,
        least: usize,
        caller: &Caller<'_>,
    ) -> Result<Option<PatchCaseResult>, LabError> {
        let headline = workloads::headline_of(&case.workload);
        let names = case.kernels.each_ref().map(|kernel| kernel.name().to_string());
        if names[0] == names[1] {
            return Ok(Some(PatchCaseResult { rows: Vec::new(), alike: true, stopped: false, headline }));
        }
        let experiment = Experiment::of(&names, &self.asked(&case.machine, &case.workload), self.runs)?;
        // They are built. A kernel that knows it keeps its runs from the first on.
        for side in &experiment.sides {
            side.kernel.prepare(&side.machine, &|_, _| (), caller.stop)?;
        }
        let experiment = if self.until_sure { experiment.until_sure() } else { experiment };
        let plan = experiment.looks.clone().unwrap_or_else(|| LookPlan::at_end(self.runs as usize));
        let compared = |results: &[RunResult], runs: usize| {
            let levels = plan.levels(runs);
            let options = CompareOptions { margin: self.margin, levels, ..CompareOptions::default() };
            compare(&names, results, &options)
        };
        let mut rows = Vec::new();
        let looked = |results: &[RunResult], runs: usize| {
            rows = compared(results, runs)?.rows;
            let wanted = rows.iter().filter(|row| self.is_main(headline, &row.name));
            let left = self.runs as usize - runs;
            Ok(runs >= least && end_of(&wanted.collect::<Vec<_>>(), left) != LookEnd::Open)
        };
        let runs = ExperimentRuns::of(&experiment, Vec::new()).with_store(caller.store);
        let ExperimentResults { results, partial } =
            runs.make_until(plan.runs(), caller.jobs, caller.on_progress, caller.stop, looked)?;
        let stopped = partial.is_some();
        if stopped && rows.is_empty() {
            return Ok(None);
        }
        let digests =
            |name: &String| results.iter().filter(|run| run.kernel == *name).map(digest).collect::<Vec<_>>();
        let alike = !stopped && digests(&names[0]) == digests(&names[1]);
        Ok(Some(PatchCaseResult { rows, alike, stopped, headline }))
    }

    /// Rows of all cases that are told, decided as one family, each with the number of its case.
    fn decided(&self, seen: &[(&PatchCase, PatchCaseResult)]) -> Vec<(usize, ComparisonRow)> {
        let told = seen.iter().enumerate().flat_map(|(at, (_, seen))| {
            seen.rows.iter().filter(|row| self.is_told(seen, &row.name)).map(move |row| (at, row.clone()))
        });
        let (cases, mut rows): (Vec<_>, Vec<_>) = told.unzip();
        decide_family(&mut rows, self.margin);
        cases.into_iter().zip(rows).collect()
    }

    fn judged(&self, seen: &[(&PatchCase, PatchCaseResult)]) -> Vec<PatchMetricAnswer> {
        let judged = self.decided(seen).into_iter().map(|(at, row)| {
            let case = seen[at].0;
            let names = case.kernels.each_ref().map(Kernel::name);
            let margin = CompareOptions::default().margin;
            let command = case.setting.compare_command(names[0], names[1], row.values.len());
            let command = format!("{command} --metric {}", quoted(&row.name));
            let command =
                if self.margin == margin { command } else { format!("{command} --margin {}", self.margin) };
            PatchMetricAnswer::of(&case.machine, &case.workload, &row, command)
        });
        judged.collect()
    }
}

fn digest(run: &RunResult) -> (u64, String) {
    (run.seed, run.digest.clone())
}

/// The first decision that differs, in the first of these cases in which one does.
fn first_difference(
    effective: &[&PatchCase],
    caller: &Caller<'_>,
) -> Result<Option<DifferenceAnswer>, LabError> {
    for case in effective.iter().take(CASES_FOLLOWED) {
        let Some(twins) = KernelPair::of(&case.kernels[0], &case.kernels[1], caller.stop) else { continue };
        let followed = twins.follow(&case.setting, FOLLOWED, &|_| ())?;
        if let Some(difference) = followed.differs().and_then(DifferenceAnswer::of) {
            return Ok(Some(difference));
        }
    }
    Ok(None)
}
