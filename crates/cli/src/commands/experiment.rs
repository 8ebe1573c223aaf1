//! What `run` and `compare` share: from arguments to an experiment.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fairlab_boot::Mode;
use fairlab_event::Ns;
use fairlab_kernel::Generation;
use fairlab_lab::booted::{self, QemuKernel, QemuSpec};
use fairlab_lab::host::{self, HostSpec, Observation};
use fairlab_lab::{
    Experiment, LabError, Progress, RealKernel, RunFolder, RunResult, RunSpec, Setting, Stopped, machines,
    run_all, workloads,
};
use fairlab_sim::Machine;
use fairlab_sim::workload::Workload;

use crate::args::{DEFAULT_MACHINE, ExperimentArgs, SettingArgs};
use crate::error::CliError;
use crate::progress::{put_back_on_interrupt, stop_on_interrupt};
use crate::{output, tell};

/// How long a workload runs that does not end by itself, when the user does not say.
const DEFAULT_DURATION: Ns = Ns::from_secs(30);

/// Where kernels are booted, when the user does not say.
const BOOTED_MACHINE: &str = "emulated:1x4x1";

/// How long a command of this host may take, when the user does not say.
const COMMAND_DURATION: Ns = Ns::from_secs(600);

/// Time for a workload that ends by itself to do so.
const MARGIN: Ns = Ns::from_secs(60);

/// Builds and checks everything before anything runs.
pub fn from_args(args: &ExperimentArgs, seed: u64, seeds: u64) -> Result<Experiment, CliError> {
    if args.kernels.is_empty() {
        return Err(CliError::bad("no kernel is given", "name one with --kernel, such as --kernel v6.6"));
    }
    let (mut kernels, mut real_kernels) = (Vec::new(), Vec::new());
    for name in &args.kernels {
        match RealKernel::parse(name)? {
            Some(real) => real_kernels.push(real),
            None => kernels.push(kernel(name)?),
        }
    }
    if seeds == 0 {
        return Err(CliError::bad("an experiment needs at least one run", "give a greater number"));
    }
    let on_host = real_kernels.contains(&RealKernel::Host);
    let setting = match (on_host, real_kernels.is_empty()) {
        (true, _) => real_setting(&args.setting, seed, kernels.is_empty())?,
        (false, true) => setting(&args.setting, seed)?,
        (false, false) => booted_setting(&args.setting, seed, kernels.is_empty())?,
    };
    if on_host && real_kernels.iter().any(|kernel| *kernel != RealKernel::Host) {
        return Err(CliError::bad(
            "this host and booted kernels have different machines",
            "compare each with modelled kernels, or run them one by one",
        ));
    }
    let mut setting = as_told(&args.setting, setting);
    if !real_kernels.is_empty() {
        // Real kernels are measured from the start of a workload, and modelled ones beside them likewise.
        if setting.warmup.is_some_and(|warmup| warmup > Ns::ZERO) {
            return Err(CliError::bad(
                "--warmup is for modelled kernels: real ones are measured from the start",
                "leave it out, or name modelled kernels only",
            ));
        }
        setting.warmup = Some(Ns::ZERO);
    }
    let Setting { machine, workload, warmup, duration, first_seed, .. } = setting;
    let seeds = (0..seeds).map(|offset| first_seed.wrapping_add(offset)).collect();
    Ok(Experiment { kernels, real_kernels, machine, workload, seeds, warmup, duration })
}

/// The kernels' own names, in the order in which the command line has them; the first is the baseline.
pub fn names(args: &ExperimentArgs) -> Result<Vec<String>, CliError> {
    let name = |given: &String| match RealKernel::parse(given)? {
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
    let (machine_name, mut machine) = (name.to_string(), machines::find(name)?);
    machine.name = host::NAME.to_string();
    if only_real && workloads::find(&args.workload[0]).is_err() {
        return Ok(setting_of_command(args, (machine_name, machine), first_seed));
    }
    let duration = time_for(args.duration, &*workloads::build(&args.workload)?);
    Ok(Setting { machine, machine_name, workload: args.workload.clone(), warmup: None, duration, first_seed })
}

/// What runs of a command have in common that is none of Fairlab's workloads, on a machine and by its name as it was given.
fn setting_of_command(
    args: &SettingArgs,
    (machine_name, machine): (String, Machine),
    first_seed: u64,
) -> Setting {
    let duration = args.duration.unwrap_or(COMMAND_DURATION);
    Setting { machine, machine_name, workload: args.workload.clone(), warmup: None, duration, first_seed }
}

/// What runs of booted kernels have in common, and runs of the model beside them.
fn booted_setting(args: &SettingArgs, first_seed: u64, only_real: bool) -> Result<Setting, CliError> {
    let name = if args.machine == DEFAULT_MACHINE { BOOTED_MACHINE } else { &args.machine };
    if machines::emulated_hardware(name).transpose()?.is_none() {
        return Err(CliError::bad(
            format!("kernels are booted on emulated machines, not on {name}"),
            format!("give --machine {BOOTED_MACHINE}, or another layout of CPUs"),
        ));
    }
    if only_real && args.workload.first().is_some_and(|name| workloads::find(name).is_err()) {
        let (machine_name, machine) = (name.to_string(), machines::find(name)?);
        return Ok(setting_of_command(args, (machine_name, machine), first_seed));
    }
    setting_of(name, &args.workload, args.duration, first_seed)
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
    Ok(as_told(args, setting_of(&args.machine, &args.workload, args.duration, first_seed)?))
}

/// The setting, with nothing left to chance if that is wanted, and with the time to settle that is.
fn as_told(args: &SettingArgs, setting: Setting) -> Setting {
    let setting = Setting { warmup: args.warmup, ..setting };
    if args.exact { Setting { machine: setting.machine.exact(), ..setting } } else { setting }
}

/// The same from its pieces.
pub fn setting_of(
    machine: &str,
    words: &[String],
    duration: Option<Ns>,
    first_seed: u64,
) -> Result<Setting, CliError> {
    let (machine_name, machine) = (machine.to_string(), machines::find(machine)?);
    let workload = workloads::build(words)?;
    let duration = time_for(duration, &*workload);
    Ok(Setting { machine, machine_name, workload: words.to_vec(), warmup: None, duration, first_seed })
}

/// What stops an experiment early: on this host everything is put back before the program ends.
pub fn stop_for(experiment: &Experiment) -> Result<Arc<AtomicBool>, CliError> {
    if experiment.real_kernels.is_empty() { stop_on_interrupt() } else { put_back_on_interrupt() }
}

/// The folder of an experiment, if one is wanted, and the runs that are in it already.
pub fn folder(
    args: &ExperimentArgs,
    experiment: &Experiment,
) -> Result<(Option<RunFolder>, Vec<RunResult>), CliError> {
    match &args.out {
        None => Ok((None, Vec::new())),
        Some(path) if args.resume => {
            let (folder, kept) = RunFolder::resume(path, experiment)?;
            Ok((Some(folder), kept))
        }
        Some(path) => Ok((Some(RunFolder::create(path)?), Vec::new())),
    }
}

/// The runs that were there and those that were made now, in the order in which `kernels` names their kernels, by seed.
pub fn with_kept(kept: Vec<RunResult>, made: Vec<RunResult>, kernels: &[String]) -> Vec<RunResult> {
    if kept.is_empty() {
        return made;
    }
    let mut all = [kept, made].concat();
    all.sort_by_key(|run| (kernels.iter().position(|name| *name == run.kernel), run.seed));
    all
}

/// How far an experiment was when it was stopped.
pub fn partial(experiment: &Experiment, results: &[RunResult], stopped: Stopped) -> Option<Progress> {
    let kernels = experiment.kernels.len() + experiment.real_kernels.len();
    let total = kernels * experiment.seeds.len();
    stopped.0.then_some(Progress { done: results.len(), total })
}

/// How many runs go on at once.
pub fn jobs(args: &SettingArgs) -> usize {
    args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// The runs of an experiment: those of the model, those on this host, and those of booted kernels.
#[derive(Debug)]
pub struct Runs {
    pub modelled: Vec<RunSpec>,
    pub on_host: Vec<HostSpec>,
    pub booted: Vec<QemuSpec>,
}

impl Runs {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.modelled.len() + self.on_host.len() + self.booted.len()
    }

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
        let mut runs = Runs { modelled: experiment.specs(), on_host: Vec::new(), booted: Vec::new() };
        for kernel in &experiment.real_kernels {
            match kernel {
                RealKernel::Host => runs.on_host.extend(experiment.seeds.iter().map(on_host)),
                RealKernel::Booted(kernel) => runs.booted.extend(booted(experiment, kernel)?),
            }
        }
        Ok(runs)
    }

    /// The first run of each kernel, and the others.
    fn split(&self) -> (Runs, Runs) {
        let first = self.seeds().next();
        (self.with_seeds(|seed| Some(seed) == first), self.with_seeds(|seed| Some(seed) != first))
    }

    /// Leaves out what has been done.
    pub fn leave_out(&mut self, done: &[RunResult]) {
        let is_left =
            |kernel: &str, seed: u64| !done.iter().any(|run| run.kernel == kernel && run.seed == seed);
        self.modelled.retain(|spec| is_left(spec.kernel.name(), spec.seed));
        self.on_host.retain(|spec| is_left(host::NAME, spec.seed));
        self.booted.retain(|spec| is_left(spec.kernel.name(), spec.seed));
    }

    /// What is done at once: runs of the model all together. Where others are among them, one seed after the other, so that
    /// kernels take turns.
    fn rounds(&self) -> Vec<Runs> {
        if self.on_host.is_empty() && self.booted.is_empty() {
            return vec![self.with_seeds(|_| true)];
        }
        let mut seeds = self.seeds().collect::<Vec<_>>();
        seeds.sort_unstable();
        seeds.dedup();
        seeds.into_iter().map(|wanted| self.with_seeds(|seed| seed == wanted)).collect()
    }

    fn seeds(&self) -> impl Iterator<Item = u64> {
        let seeds = self.modelled.iter().map(|spec| spec.seed);
        let seeds = seeds.chain(self.on_host.iter().map(|spec| spec.seed));
        seeds.chain(self.booted.iter().map(|spec| spec.seed))
    }

    fn with_seeds(&self, is_wanted: impl Fn(u64) -> bool) -> Runs {
        Runs {
            modelled: self.modelled.iter().filter(|spec| is_wanted(spec.seed)).cloned().collect(),
            on_host: self.on_host.iter().filter(|spec| is_wanted(spec.seed)).cloned().collect(),
            booted: self.booted.iter().filter(|spec| is_wanted(spec.seed)).cloned().collect(),
        }
    }

    /// The same as `run()`, but what came of the first run of each kernel is shown to `accept`, which may refuse to go on.
    pub fn run_if(
        &self,
        kernels: &[String],
        jobs: usize,
        on_progress: &(dyn Fn(Progress) + Sync),
        stop: &AtomicBool,
        accept: impl FnOnce(&[RunResult]) -> Result<(), CliError>,
    ) -> Result<(Vec<RunResult>, Stopped), CliError> {
        let (first, others) = self.split();
        let total = self.count();
        let after =
            |before: usize| move |now: Progress| on_progress(Progress { done: before + now.done, total });
        let (mut results, stopped) = first.run(kernels, jobs, &after(0), stop)?;
        if stopped.0 {
            return Ok((results, stopped));
        }
        accept(&results)?;
        let (more, stopped) = others.run(kernels, jobs, &after(first.count()), stop)?;
        results.extend(more);
        let place = |run: &RunResult| kernels.iter().position(|name| *name == run.kernel);
        results.sort_by_key(place);
        Ok((results, stopped))
    }

    /// Where the traces go, with the kernel and the seed of each.
    pub fn traces(&mut self) -> Vec<(String, u64, &mut Option<PathBuf>)> {
        let modelled = self.modelled.iter_mut();
        let modelled = modelled.map(|spec| (spec.kernel.name().to_string(), spec.seed, &mut spec.trace));
        let on_host =
            self.on_host.iter_mut().map(|spec| (host::NAME.to_string(), spec.seed, &mut spec.trace));
        let booted = self.booted.iter_mut();
        let booted = booted.map(|spec| (spec.kernel.name().to_string(), spec.seed, &mut spec.trace));
        modelled.chain(on_host).chain(booted).collect()
    }

    /// Does all of them, those on this host one by one, while nothing else runs; kernels take turns. Results come in the
    /// order in which `kernels` names their kernels.
    pub fn run(
        &self,
        kernels: &[String],
        jobs: usize,
        on_progress: &(dyn Fn(Progress) + Sync),
        stop: &AtomicBool,
    ) -> Result<(Vec<RunResult>, Stopped), CliError> {
        let total = self.count();
        let observation = (!self.on_host.is_empty()).then(Observation::of_this_host);
        if let Some(lacks) = observation.as_ref().and_then(Observation::lacks) {
            tell!("host: {lacks}");
        }
        let mut results = Vec::new();
        for round in self.rounds() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let before = results.len();
            let show = |done: usize| on_progress(Progress { done, total });
            let after = |progress: Progress| show(before + progress.done);
            results.extend(run_all(&round.modelled, jobs, &after, stop)?.0);
            for (spec, observation) in round.on_host.iter().zip(observation.iter().cycle()) {
                show(results.len());
                results.extend(host::run(spec, observation, stop)?);
            }
            for spec in &round.booted {
                show(results.len());
                results.extend(booted::run(spec, stop)?);
            }
        }
        let stopped = Stopped(results.len() < total);
        let place = |run: &RunResult| kernels.iter().position(|name| *name == run.kernel);
        results.sort_by_key(place);
        Ok((results, stopped))
    }
}

/// The runs of one booted kernel.
fn booted(experiment: &Experiment, kernel: &QemuKernel) -> Result<Vec<QemuSpec>, CliError> {
    let name = &experiment.machine.name;
    let hardware = machines::emulated_hardware(name).transpose()?.ok_or_else(|| {
        CliError::bad(format!("kernels are not booted on {name}"), "give --machine emulated:1x4x1")
    })?;
    let spec = |&seed: &u64| QemuSpec {
        kernel: kernel.clone(),
        machine: name.clone(),
        hardware: hardware.clone(),
        workload: experiment.workload.clone(),
        seed,
        duration: experiment.duration,
        trace: None,
    };
    Ok(experiment.seeds.iter().map(spec).collect())
}

/// The experiment in a line, for the head of an answer.
pub fn describe(experiment: &Experiment) -> String {
    let seeds = experiment.seeds.len();
    let plural = if seeds == 1 { "" } else { "s" };
    let on_host = experiment.real_kernels.contains(&RealKernel::Host);
    let time = match (experiment.kernels.is_empty(), !on_host) {
        (_, true) => "virtual time",
        (true, false) => "real time",
        (false, false) => "virtual time, on this host real time",
    };
    let mut text = format!(
        "{} on {}: {seeds} run{plural} a kernel of up to {} s {time}\n",
        output::words(&experiment.workload),
        experiment.machine.name,
        experiment.duration.as_secs_f64()
    );
    if experiment.machine.chance.is_none() && !experiment.kernels.is_empty() {
        text += "exact: nothing is left to chance; seeds matter only to what the workload draws\n";
    }
    if !on_host && !experiment.real_kernels.is_empty() {
        text += &format!("booted kernels: {}\n", Mode::Deterministic.meaning());
    }
    if on_host {
        text += "host: latencies, switches and migrations are those of the workload's own tasks; a CPU is busy with whatever runs there\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_run_of_each_kernel_is_shown_before_the_others_are_done() {
        let experiment = Experiment {
            real_kernels: Vec::new(),
            kernels: ["v6.5", "v6.6"].map(|name| name.parse().expect("a kernel")).to_vec(),
            machine: machines::find("vm4").expect("a preset"),
            workload: ["hackbench", "-g", "1", "-l", "2"].map(str::to_string).to_vec(),
            seeds: vec![3, 4, 5],
            warmup: None,
            duration: Ns::from_ms(20),
        };
        let names = ["v6.5", "v6.6"].map(str::to_string);
        let of = |results: &[RunResult]| {
            results.iter().map(|run| (run.kernel.clone(), run.seed)).collect::<Vec<_>>()
        };
        let runs = Runs::of(&experiment).expect("runs");
        let run = |accepted: bool, shown: &mut Vec<_>| {
            runs.run_if(&names, 1, &|_| (), &AtomicBool::new(false), |results| {
                *shown = of(results);
                accepted.then_some(()).ok_or_else(|| CliError::bad("no", "no"))
            })
        };
        let mut shown = Vec::new();
        let (results, _) = run(true, &mut shown).expect("results");
        assert_eq!(shown, [("v6.5".to_string(), 3), ("v6.6".to_string(), 3)]);
        let (whole, _) = runs.run(&names, 1, &|_| (), &AtomicBool::new(false)).expect("results");
        assert_eq!(of(&results), of(&whole), "in the same order");
        assert!(run(false, &mut shown).is_err());
    }
}
