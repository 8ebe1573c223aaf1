//! Many runs: every kernel with every seed, on all cores.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use fairlab_event::Ns;
use fairlab_kernel::Generation;
use fairlab_sim::Machine;

use crate::boot::QemuKernel;
use crate::{LabError, RunResult, RunSpec, host, run};

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
    /// When to stop each run, in virtual time.
    pub duration: Ns,
}

/// How far an experiment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Runs done.
    pub done: usize,
    /// Runs in all.
    pub total: usize,
}

/// The experiment was stopped before its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stopped(pub bool);

impl Experiment {
    /// The runs of modelled kernels, kernel by kernel, each with every seed in turn.
    pub fn specs(&self) -> Vec<RunSpec> {
        let spec = |kernel: &Generation, seed: u64| RunSpec {
            kernel: kernel.clone(),
            machine: self.machine.clone(),
            workload: self.workload.clone(),
            seed,
            duration: self.duration,
            trace: None,
            probes: false,
        };
        self.kernels
            .iter()
            .flat_map(|kernel| self.seeds.iter().map(move |&seed| spec(kernel, seed)))
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
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results = Mutex::new(vec![None; specs.len()]);
    on_progress(Progress { done: 0, total: specs.len() });
    let work = || {
        while let Some((index, spec)) = take(&next, specs) {
            let outcome = run(spec, stop);
            stop.fetch_or(outcome.is_err(), Ordering::Relaxed);
            let Some(result) = outcome? else { break };
            results.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(result);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            on_progress(Progress { done, total: specs.len() });
        }
        Ok::<(), LabError>(())
    };
    thread::scope(|scope| {
        let threads = (0..jobs.clamp(1, specs.len().max(1))).map(|_| scope.spawn(work)).collect::<Vec<_>>();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    let finished = results.into_iter().flatten().collect::<Vec<_>>();
    let stopped = Stopped(finished.len() < specs.len());
    Ok((finished, stopped))
}

fn take<'s>(next: &AtomicUsize, specs: &'s [RunSpec]) -> Option<(usize, &'s RunSpec)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    specs.get(index).map(|spec| (index, spec))
}
