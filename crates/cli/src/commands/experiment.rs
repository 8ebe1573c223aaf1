//! What `run` and `compare` share: from arguments to an experiment.

use fairlab_event::Ns;
use fairlab_kernel::Generation;
use fairlab_lab::{Experiment, LabError, Setting, machines, workloads};

use crate::args::{ExperimentArgs, SettingArgs};
use crate::error::CliError;

/// How long a workload runs that does not end by itself, when the user does not say.
const DEFAULT_DURATION: Ns = Ns::from_secs(30);

/// Time for a workload that ends by itself to do so.
const MARGIN: Ns = Ns::from_secs(60);

/// Builds and checks everything before anything runs.
pub fn from_args(args: &ExperimentArgs, seed: u64, seeds: u64) -> Result<Experiment, CliError> {
    if args.kernels.is_empty() {
        return Err(CliError::bad("no kernel is given", "name one with --kernel, such as --kernel v6.6"));
    }
    let kernels = args.kernels.iter().map(|name| kernel(name)).collect::<Result<Vec<_>, CliError>>()?;
    if seeds == 0 {
        return Err(CliError::bad("an experiment needs at least one run", "give a greater number"));
    }
    let Setting { machine, workload, duration, first_seed } = setting(&args.setting, seed)?;
    let seeds = (0..seeds).map(|offset| first_seed.wrapping_add(offset)).collect();
    Ok(Experiment { kernels, machine, workload, seeds, duration })
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
    let duration = duration.or_else(|| workload.runtime().map(|runtime| runtime + MARGIN));
    Ok(Setting {
        machine,
        workload: words.to_vec(),
        duration: duration.unwrap_or(DEFAULT_DURATION),
        first_seed,
    })
}

/// How many runs go on at once.
pub fn jobs(args: &SettingArgs) -> usize {
    args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// The experiment in a line, for the head of an answer.
pub fn describe(experiment: &Experiment) -> String {
    let seeds = experiment.seeds.len();
    let plural = if seeds == 1 { "" } else { "s" };
    format!(
        "{} on {}: {seeds} run{plural} a kernel of up to {} s virtual time\n",
        experiment.workload.join(" "),
        experiment.machine.name,
        experiment.duration.as_secs_f64()
    )
}
