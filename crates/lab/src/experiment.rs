//! Many runs: every kernel with every seed, on all cores.

use std::sync::atomic::AtomicBool;

use fairlab_event::Ns;
use fairlab_kernel::Generation;
use fairlab_sim::Machine;

use crate::booted::QemuKernel;
use crate::{LabError, Progress, RunResult, RunSpec, host, run, workers};

/// A kernel that is not modelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RealKernel {
    /// The one that runs here.
    Host,
    /// One that is booted.
    Booted(QemuKernel),
}

impl RealKernel {
    /// The kernel that a name means, unless it is that of a modelled one.
    ///
    /// # Errors
    /// It is to be booted, and there is no such image.
    pub fn parse(name: &str) -> Result<Option<RealKernel>, LabError> {
        if name == host::NAME {
            return Ok(Some(RealKernel::Host));
        }
        QemuKernel::parse(name).transpose().map(|kernel| kernel.map(RealKernel::Booted))
    }

    /// What to tell somebody who names such a kernel where only modelled ones will do; `None` for other names.
    pub fn refused(name: &str, what: &str) -> Option<LabError> {
        let is_real = name == host::NAME || QemuKernel::is_name(name);
        is_real.then(|| {
            LabError::new(
                format!("{what} takes modelled kernels, and {name} is a kernel as it is"),
                "name the modelled one of its generation; run, compare and scenario take both",
            )
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            RealKernel::Host => host::NAME,
            RealKernel::Booted(kernel) => kernel.name(),
        }
    }
}

/// Kernels × seeds on one machine under one workload.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The modelled kernels.
    pub kernels: Vec<Generation>,
    /// The others.
    pub real_kernels: Vec<RealKernel>,
    /// The machine.
    pub machine: Machine,
    /// The workload's name and its own options.
    pub workload: Vec<String>,
    /// The seeds; each kernel runs with each.
    pub seeds: Vec<u64>,
    /// How long each run of a modelled kernel settles; without, as long as the machine takes.
    pub warmup: Option<Ns>,
    /// When to stop each run, in virtual time from when it has settled.
    pub duration: Ns,
}

/// The experiment was stopped before its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stopped(pub bool);

impl Experiment {
    /// The runs of modelled kernels: with each seed in turn every kernel, so that all kernels have as many runs whenever
    /// it is stopped.
    pub fn specs(&self) -> Vec<RunSpec> {
        let spec = |kernel: &Generation, seed: u64| RunSpec {
            warmup: self.warmup,
            ..RunSpec::new(kernel.clone(), self.machine.clone(), self.workload.clone(), seed, self.duration)
        };
        self.seeds
            .iter()
            .flat_map(|&seed| self.kernels.iter().map(move |kernel| spec(kernel, seed)))
            .collect()
    }
}

/// Does every run on `jobs` threads. `on_progress` is called from any of them after each run. When `stop` is set, what is
/// finished by then is given. Results come in the order of `specs`, whatever `jobs` is.
///
/// # Errors
/// A run fails; the others are given up.
pub fn run_all(
    specs: &[RunSpec],
    jobs: usize,
    on_progress: &(dyn Fn(Progress) + Sync),
    stop: &AtomicBool,
) -> Result<(Vec<RunResult>, Stopped), LabError> {
    let results = workers::for_each(specs, jobs, on_progress, stop, |spec| run(spec, stop))?;
    let finished = results.into_iter().flatten().collect::<Vec<_>>();
    let stopped = Stopped(finished.len() < specs.len());
    Ok((finished, stopped))
}
