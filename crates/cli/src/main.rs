//! The `fairlab` program: reads the command line, asks the laboratory, prints the answer.
//!
//! Must not know: how anything is computed. It is the only room that prints.

mod args;
mod commands;
mod error;
mod export;
mod mail;
mod numbers;
mod output;
mod progress;
mod provenance;
mod ray;

use std::process::ExitCode;

use clap::FromArgMatches;
use clap::error::ErrorKind;

use args::{Cli, Command};
use error::CliError;

fn main() -> ExitCode {
    fairlab_boot::carry_guests(fairlab_boot::Guests {
        amd64: include_bytes!(concat!(env!("OUT_DIR"), "/fairlab-guest")),
        arm64: include_bytes!(concat!(env!("OUT_DIR"), "/fairlab-guest-arm64")),
    });
    let program = args::program();
    let arguments = args::split_workload_options(&program, std::env::args_os().collect());
    let misspelt = args::misspelt_options(&program, &arguments);
    let parsed = program.try_get_matches_from(&arguments);
    let outcome = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => dispatch(cli.command).map_err(|error| error.with_misspelt(&misspelt)),
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            output::print_styled(&error.render())
        }
        Err(error) => Err(CliError::from_usage(&error, &args::program(), &arguments)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}

fn dispatch(mut command: Command) -> Result<(), CliError> {
    command.join_beside();
    match command {
        Command::Run(args) => commands::run::execute(&args),
        Command::Bisect(args) => commands::bisect::execute(&args),
        Command::Try(args) => commands::try_patch::execute(&args),
        Command::Sweep(args) => commands::sweep::execute(&args),
        Command::Query(args) => commands::sweep::ask(&args),
        Command::Merge(args) => commands::merge::execute(&args),
        Command::Compare(args) => commands::compare::execute(&args),
        Command::Convert(args) => commands::convert::execute(&args),
        Command::Record(args) => commands::record::execute(&args),
        Command::Live(args) => commands::live::execute(&args),
        Command::Calibrate(args) => commands::calibrate::execute(&args),
        Command::Schbench(args) => commands::live::schbench(&args),
        Command::Boot(args) => commands::boot::execute(&args),
        Command::Latency(args) => commands::latency::execute(&args),
        Command::Explain(args) => commands::explain::execute(&args),
        Command::Blame(args) => commands::blame::execute(&args),
        Command::Summary(args) => commands::summary::execute(&args),
        Command::Timehist(args) => commands::timehist::execute(&args),
        Command::View(args) => commands::view::execute(&args),
        Command::Verify(args) => commands::verify::execute(&args),
        Command::Fidelity(args) => commands::fidelity::execute(&args),
        Command::Watch(args) => commands::watch::execute(&args),
        Command::Scenario(args) => commands::scenario::execute(args.command),
        Command::Kernels(args) => commands::kernels::execute(args.command),
        Command::Machines(args) => commands::machines::execute(args.command),
        Command::Workloads(args) => commands::workloads::execute(args.command),
        Command::Completions(args) => commands::documentation::complete(&args),
        Command::Man(args) => commands::documentation::man(&args),
    }
}
