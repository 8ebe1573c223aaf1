//! The model beside another kernel in closed loop: do both decide alike, call by call, and where do they first differ?
//!
//! Must not know: how an answer is printed.

mod cases;
mod survey;

use std::sync::atomic::{AtomicBool, Ordering};

use fairlab_event::Ns;
use fairlab_files::shell::{line_of, quoted};
use fairlab_kernel::Generation;
use fairlab_sim::machine::KernelCosts;
use fairlab_sim::workload::Workload;
use fairlab_sim::{Engine, Inspect, Machine};
use fairlab_verify::oracle::{Oracle, OracleFindings, follower, without_costs};
use serde::{Deserialize, Serialize};

use crate::run::reported;
use crate::{Kernel, LabError, Progress, RunSetting, machines, workloads};

pub use cases::OracleCase;
pub(crate) use survey::OracleBatch;
pub use survey::{Survey, SurveyCell, setting};

/// Virtual time between two looks at whether to go on.
const SLICE: Ns = Ns(10_000_000);

/// How long a case may last: its workload ends by itself, unless real-time threads keep others from running.
const LONGEST_CASE: Ns = Ns::from_secs(2);

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct OracleRuns {
    /// The runs that were made.
    pub runs: Vec<OracleRun>,
    /// Whether it was stopped before all were made.
    pub stopped: bool,
}

/// One run of both.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OracleRun {
    /// Its seed.
    pub seed: u64,
    /// The command line that makes it again.
    pub command: String,
    /// What was found.
    pub findings: OracleFindings,
}

impl OracleRuns {
    /// The counts of all runs together.
    pub fn sum(&self) -> OracleFindings {
        let mut sum = OracleFindings::default();
        self.runs.iter().for_each(|run| sum.add(run.findings.clone()));
        sum
    }

    /// The first run in which the two differ.
    pub fn differs(&self) -> Option<&OracleRun> {
        self.runs.iter().find(|run| run.findings.first.is_some())
    }
}

/// The rules that follow, what they follow, and the onlooker.
pub struct OraclePair<'a> {
    /// The rules that follow.
    pub rules: &'a Generation,
    /// The kernel that leads.
    pub against: &'a Kernel,
    /// Is called with how far it is.
    pub progress: &'a dyn Fn(Progress),
    /// Ends it early.
    pub stop: &'a AtomicBool,
}

impl OraclePair<'_> {
    /// Follows through one workload, for each of so many seeds. Kernel work takes no time in either, so both decide at equal
    /// instants. The engine's other charges keep their length.
    ///
    /// # Errors
    /// The other kernel has no state that can be read, or cannot run the workload.
    pub fn follow(&self, setting: &RunSetting, seeds: u64) -> Result<OracleRuns, LabError> {
        let (name, workload, duration) = (&setting.machine_name, &setting.workload, setting.duration);
        self.each(seeds, |at| {
            let seed = setting.first_seed.wrapping_add(at);
            let findings = self.run(&setting.machine, workload, duration, seed)?;
            Ok(findings.map(|findings| OracleRun {
                seed,
                command: self.command(name, workload, seed),
                findings,
            }))
        })
    }

    /// Follows through cases by chance, from the one of number `first` on. It ends at the first that differs.
    ///
    /// # Errors
    /// The other kernel has no state that can be read.
    pub fn follow_cases(&self, first: u64, count: u64) -> Result<OracleRuns, LabError> {
        self.each(count, |at| {
            let OracleCase { machine: name, workload, seed } = OracleCase::of(first.wrapping_add(at));
            let machine = machines::find(&name)?;
            let findings = self.run(&machine, &workload, LONGEST_CASE, seed)?;
            Ok(findings.map(|findings| OracleRun {
                seed,
                command: self.command(&name, &workload, seed),
                findings,
            }))
        })
    }

    /// Makes runs one after the other, to the first that differs.
    fn each(
        &self,
        count: u64,
        make: impl Fn(u64) -> Result<Option<OracleRun>, LabError>,
    ) -> Result<OracleRuns, LabError> {
        let mut followed = OracleRuns::default();
        let total = usize::try_from(count).unwrap_or(usize::MAX);
        for at in 0..count {
            (self.progress)(Progress { done: followed.runs.len(), total });
            let Some(run) = make(at)? else {
                followed.stopped = true;
                break;
            };
            let differs = run.findings.first.is_some();
            followed.runs.push(run);
            if differs {
                break;
            }
        }
        Ok(followed)
    }

    fn command(&self, machine: &str, workload: &[String], seed: u64) -> String {
        let (kernel, against) = (quoted(self.rules.name()), quoted(self.against.name()));
        let (workload, machine) = (line_of(workload), quoted(machine));
        format!(
            "fairlab verify --kernel {kernel} --against {against} {workload} --machine {machine} --seed {seed}"
        )
    }

    /// One run; `None`: it was stopped.
    fn run(
        &self,
        machine: &Machine,
        workload: &[String],
        duration: Ns,
        seed: u64,
    ) -> Result<Option<OracleFindings>, LabError> {
        // CPUs that take turns on one thread would stand still in the middle of what both do, and kernel threads have a past.
        let machine = Machine { in_turn: false, ..machine.clone().exact() };
        // Its files are read here: the process of the run opens none.
        let built = workloads::build(workload)?;
        let again = || self.command(&machine.name, workload, seed);
        if let Kernel::Source(kernel) = self.against {
            let free = Machine { costs: KernelCosts::NONE, ..machine.clone() };
            return kernel.drive(&free, self.stop, |leader| {
                self.drive(leader, machine.clone(), (built, duration, seed), &again)
            });
        }
        let leads = self.against.rules("verify --against")?;
        let leader = without_costs(leads.clone(), &machine);
        self.drive(leader, machine.clone(), (built, duration, seed), &again)
    }

    fn drive(
        &self,
        leader: impl Inspect,
        machine: Machine,
        (workload, duration, seed): (Box<dyn Workload>, Ns, u64),
        again: &dyn Fn() -> String,
    ) -> Result<Option<OracleFindings>, LabError> {
        let model = follower(self.rules.clone(), &machine, &leader);
        let oracle = Oracle::new(leader, model, machine.topology.nr_cpus());
        let mut engine = Engine::with_core(oracle, machine, seed);
        reported(&mut engine, again, |engine| {
            if let Some((problem, hint)) = engine.refusal(&*workload) {
                return Err(LabError::new(problem, hint));
            }
            let number = engine.start(workload);
            let mut until = Ns::ZERO;
            while engine.now() == until && until < duration && engine.core().agrees() {
                if self.stop.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                until = (until + SLICE).min(duration);
                engine.run_until(until, &mut ());
                if let Some(problem) = engine.workload(number).problem() {
                    return Err(LabError::new(problem, "correct the workload"));
                }
            }
            Ok(Some(engine.core().findings().clone()))
        })
    }
}
