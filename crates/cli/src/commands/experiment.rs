//! What `run` and `compare` share: from arguments to an experiment.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use fairlab_event::Ns;
use fairlab_kernel::Generation;
use fairlab_lab::host::{self, HostSpec, Observation};
use fairlab_lab::{
    Experiment, LabError, Progress, RealKernel, RunResult, RunSpec, Setting, Stopped, machines, run_all,
    workloads,
};
use fairlab_sim::workload::Workload;

use crate::args::{DEFAULT_MACHINE, ExperimentArgs, SettingArgs};
use crate::error::CliError;

/// How long a workload runs that does not end by itself, when the user does not say.
const DEFAULT_DURATION: Ns = Ns::from_secs(30);

/// How long a command of this host may take, when the user does not say.
const COMMAND_DURATION: Ns = Ns::from_secs(600);

/// Time for a workload that ends by itself to do so.
const MARGIN: Ns = Ns::from_secs(60);

/// Builds and checks everything before anything runs.
pub fn from_args(args: &ExperimentArgs, seed: u64, seeds: u64) -> Result<Experiment, CliError> {
    if args.kernels.is_empty() {
        return Err(CliError::bad("no kernel is given", "name one with --kernel, such as --kernel v6.6"));
    }
    let is_real = |name: &&String| RealKernel::parse(name).is_some();
    let modelled = args.kernels.iter().filter(|name| !is_real(name));
    let kernels = modelled.map(|name| kernel(name)).collect::<Result<Vec<_>, CliError>>()?;
    let real_kernels = args.kernels.iter().filter_map(|name| RealKernel::parse(name)).collect::<Vec<_>>();
    if seeds == 0 {
        return Err(CliError::bad("an experiment needs at least one run", "give a greater number"));
    }
    let setting = match (real_kernels.is_empty(), kernels.is_empty()) {
        (true, _) => setting(&args.setting, seed)?,
        (false, only_real) => real_setting(&args.setting, seed, only_real)?,
    };
    let Setting { machine, workload, duration, first_seed } = setting;
    let seeds = (0..seeds).map(|offset| first_seed.wrapping_add(offset)).collect();
    Ok(Experiment { kernels, real_kernels, machine, workload, seeds, duration })
}

/// The kernels' own names, in the order in which the command line has them; the first is the baseline.
pub fn names(args: &ExperimentArgs) -> Result<Vec<String>, CliError> {
    let name = |given: &String| match RealKernel::parse(given) {
        Some(real) => Ok(real.name().to_string()),
        None => Ok(kernel(given)?.name().to_string()),
    };
    args.kernels.iter().map(name).collect()
}

/// What runs on this host have in common, and runs of the model beside them: the machine is this one.
fn real_setting(args: &SettingArgs, first_seed: u64, only_real: bool) -> Result<Setting, CliError> {
    if ![DEFAULT_MACHINE, host::NAME].contains(&args.machine.as_str()) && !args.machine.ends_with(".toml") {
        return Err(CliError::bad(
            format!("--kernel host runs on this host, not on {}", args.machine),
            "give --machine host, or a file that describes it",
        ));
    }
    host::check(&args.workload)?;
    let name = if args.machine == DEFAULT_MACHINE { host::NAME } else { &args.machine };
    let mut machine = machines::find(name)?;
    machine.name = host::NAME.to_string();
    if only_real && workloads::find(&args.workload[0]).is_err() {
        let duration = args.duration.unwrap_or(COMMAND_DURATION);
        return Ok(Setting { machine, workload: args.workload.clone(), duration, first_seed });
    }
    let duration = time_for(args.duration, &*workloads::build(&args.workload)?);
    Ok(Setting { machine, workload: args.workload.clone(), duration, first_seed })
}

/// How long each run lasts at most.
fn time_for(given: Option<Ns>, workload: &dyn Workload) -> Ns {
    let by_itself = || workload.runtime().map(|runtime| runtime + MARGIN);
    given.or_else(by_itself).unwrap_or(DEFAULT_DURATION)
}

/// The kernel of that name.
pub fn kernel(name: &str) -> Result<Generation, CliError> {
    Ok(Generation::asked_for(name).map_err(LabError::from)?)
}

/// What all runs have in common.
pub fn setting(args: &SettingArgs, first_seed: u64) -> Result<Setting, CliError> {
    setting_of(&args.machine, &args.workload, args.duration, first_seed)
}

/// The same from its pieces.
pub fn setting_of(
    machine: &str,
    words: &[String],
    duration: Option<Ns>,
    first_seed: u64,
) -> Result<Setting, CliError> {
    let machine = machines::find(machine)?;
    let workload = workloads::build(words)?;
    let duration = time_for(duration, &*workload);
    Ok(Setting { machine, workload: words.to_vec(), duration, first_seed })
}

/// How many runs go on at once.
pub fn jobs(args: &SettingArgs) -> usize {
    args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// The runs of an experiment: those of the model, and those on this host.
#[derive(Debug)]
pub struct Runs {
    pub modelled: Vec<RunSpec>,
    pub on_host: Vec<HostSpec>,
}

impl Runs {
    /// All runs of an experiment.
    pub fn of(experiment: &Experiment) -> Result<Runs, CliError> {
        let program = std::env::current_exe().map_err(|error| {
            CliError::bad(format!("cannot find this program: {error}"), "call it by its path")
        })?;
        let on_host = |&seed: &u64| HostSpec {
            program: program.clone(),
            workload: experiment.workload.clone(),
            seed,
            duration: experiment.duration,
            trace: None,
        };
        let on_host = experiment.real_kernels.iter().flat_map(|_| experiment.seeds.iter().map(on_host));
        Ok(Runs { modelled: experiment.specs(), on_host: on_host.collect() })
    }

    /// Where the traces go, with the kernel and the seed of each.
    pub fn traces(&mut self) -> Vec<(String, u64, &mut Option<PathBuf>)> {
        let modelled = self.modelled.iter_mut();
        let modelled = modelled.map(|spec| (spec.kernel.name().to_string(), spec.seed, &mut spec.trace));
        let on_host =
            self.on_host.iter_mut().map(|spec| (host::NAME.to_string(), spec.seed, &mut spec.trace));
        modelled.chain(on_host).collect()
    }

    /// Does all of them, those on this host one by one, while nothing else runs; in the order in which `kernels` names
    /// their kernels.
    pub fn run(
        &self,
        kernels: &[String],
        jobs: usize,
        on_progress: &(dyn Fn(Progress) + Sync),
        stop: &AtomicBool,
    ) -> Result<(Vec<RunResult>, Stopped), CliError> {
        let total = self.modelled.len() + self.on_host.len();
        let show = |done: usize| on_progress(Progress { done, total });
        let (mut results, mut stopped) =
            run_all(&self.modelled, jobs, &|progress: Progress| show(progress.done), stop)?;
        if !self.on_host.is_empty() {
            let observation = Observation::of_this_host();
            if let Some(lacks) = observation.lacks() {
                eprintln!("fairlab: host: {lacks}");
            }
            for (done, spec) in self.on_host.iter().enumerate() {
                show(self.modelled.len() + done);
                results.extend(host::run(spec, &observation, stop)?);
            }
            stopped = Stopped(results.len() < total);
        }
        let place = |run: &RunResult| kernels.iter().position(|name| *name == run.kernel);
        results.sort_by_key(place);
        Ok((results, stopped))
    }
}

/// The experiment in a line, for the head of an answer.
pub fn describe(experiment: &Experiment) -> String {
    let seeds = experiment.seeds.len();
    let plural = if seeds == 1 { "" } else { "s" };
    let time = match (experiment.kernels.is_empty(), experiment.real_kernels.is_empty()) {
        (_, true) => "virtual time",
        (true, false) => "real time",
        (false, false) => "virtual time, on this host real time",
    };
    let mut text = format!(
        "{} on {}: {seeds} run{plural} a kernel of up to {} s {time}\n",
        experiment.workload.join(" "),
        experiment.machine.name,
        experiment.duration.as_secs_f64()
    );
    if !experiment.real_kernels.is_empty() {
        text += "host: latencies, switches and migrations are those of the workload's own tasks; a CPU is busy with whatever runs there\n";
    }
    text
}
