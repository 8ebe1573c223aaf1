//! The model beside another kernel in closed loop: do both decide alike, call by call, and where do they first differ?
//!
//! Must not know: how an answer is printed.

use std::sync::atomic::{AtomicBool, Ordering};

use fairlab_event::Ns;
use fairlab_kernel::Generation;
use fairlab_sim::{Engine, Inspect};
use fairlab_verify::oracle::{Findings, Oracle, follower};

use crate::{Kernel, LabError, Setting, workloads};

/// Virtual time between two looks at whether to go on.
const SLICE: Ns = Ns(10_000_000);

/// What came of it.
#[derive(Clone, Debug)]
pub struct Followed {
    /// The seed of each run that was made, with what was found.
    pub runs: Vec<(u64, Findings)>,
    /// Whether it was stopped before all were made.
    pub stopped: bool,
}

impl Followed {
    /// The counts of all runs together; the first difference is that of the first run that has one.
    pub fn sum(&self) -> Findings {
        let mut sum = Findings::default();
        self.runs.iter().for_each(|(_, findings)| sum.add(findings.clone()));
        sum
    }

    /// The seed of the first run in which the two differ.
    pub fn differs_under(&self) -> Option<u64> {
        self.runs.iter().find(|(_, findings)| findings.first.is_some()).map(|(seed, _)| *seed)
    }
}

/// Lets `rules` follow `against` through the workload, for each of so many seeds. Kernel work takes no time in either, so that both
/// decide at the same instants; what user programs do takes what it takes.
///
/// # Errors
/// The other kernel has no state that can be read, or cannot run the workload.
pub fn follow(
    rules: &Generation,
    against: &Kernel,
    setting: &Setting,
    seeds: u64,
    stop: &AtomicBool,
) -> Result<Followed, LabError> {
    let leads = against.rules("verify --against")?;
    let mut followed = Followed { runs: Vec::new(), stopped: false };
    for seed in (setting.first_seed..).take(usize::try_from(seeds).unwrap_or(usize::MAX)) {
        let leader = follower(leads.clone(), &setting.machine);
        let Some(findings) = run(leader, rules, setting, seed, stop)? else {
            followed.stopped = true;
            break;
        };
        followed.runs.push((seed, findings));
    }
    Ok(followed)
}

/// One run; `None`: it was stopped.
fn run(
    leader: impl Inspect,
    rules: &Generation,
    setting: &Setting,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Option<Findings>, LabError> {
    let model = follower(rules.clone(), &setting.machine);
    let oracle = Oracle::new(leader, model, setting.machine.topology.nr_cpus());
    let mut engine = Engine::with_core(oracle, setting.machine.clone(), seed);
    let workload = workloads::build(&setting.workload)?;
    if let Some((problem, hint)) = engine.refusal(&*workload) {
        return Err(LabError::new(problem, hint));
    }
    let number = engine.start(workload);
    let mut until = Ns::ZERO;
    while engine.now() == until && until < setting.duration && engine.core().agrees() {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        until = (until + SLICE).min(setting.duration);
        engine.run_until(until, &mut ());
        if let Some(problem) = engine.workload(number).problem() {
            return Err(LabError::new(problem, "correct the workload"));
        }
    }
    Ok(Some(engine.core().findings().clone()))
}
