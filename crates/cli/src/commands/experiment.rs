//! What `run` and `compare` share: from arguments to an experiment.

use fairlab_event::Ns;
use fairlab_kernel::Generation;
use fairlab_lab::{Experiment, LabError, machines, workloads};

use crate::args::ExperimentArgs;
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
    let kernels = args.kernels.iter().map(|name| Ok(name.parse::<Generation>().map_err(LabError::from)?));
    let kernels = kernels.collect::<Result<Vec<_>, CliError>>()?;
    let machine = machines::find(&args.machine)?;
    let workload = workloads::build(&args.workload)?;
    let duration = args.duration.or_else(|| workload.runtime().map(|runtime| runtime + MARGIN));
    if seeds == 0 {
        return Err(CliError::bad("an experiment needs at least one run", "give a greater number"));
    }
    let seeds = (0..seeds).map(|offset| seed.wrapping_add(offset)).collect();
    let duration = duration.unwrap_or(DEFAULT_DURATION);
    Ok(Experiment { kernels, machine, workload: args.workload.clone(), seeds, duration })
}

/// How many runs go on at once.
pub fn jobs(args: &ExperimentArgs) -> usize {
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
