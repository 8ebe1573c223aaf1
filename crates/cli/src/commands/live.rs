//! `fairlab live` and `fairlab schbench`: workloads carried out for real, on this host.

use std::env;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use fairlab_event::{Ns, ShownPath};
use fairlab_lab::provenance::{Origin, Provenance};
use fairlab_lab::{LabError, workloads};
use fairlab_live::{LiveConditions, LiveReport, MARKER_VARIABLE, carry_out};

use crate::args::{AnswerFormat, LiveArgs, SchbenchArgs};
use crate::error::CliError;
use crate::output;
use crate::progress::stop_on_interrupt;
use crate::provenance::{self, this_release};

pub fn schbench(args: &SchbenchArgs) -> Result<(), CliError> {
    if args.options.iter().any(|option| ["-h", "--help"].contains(&option.as_str())) {
        return output::print(&workloads::find("schbench")?.line.usage());
    }
    let mut command = vec!["schbench".to_string()];
    command.extend(args.options.iter().cloned());
    workloads::build(&command)?;
    let stop = stop_on_interrupt()?;
    let provenance = came_about(1);
    carry_out_here(&command, (1, None), &stop, true, Some(&provenance))?;
    if stop.load(Ordering::Relaxed) { Err(CliError::Interrupted) } else { Ok(()) }
}

pub fn execute(args: &LiveArgs) -> Result<(), CliError> {
    if super::workloads::helped(&args.workload)? {
        return Ok(());
    }
    let stop = stop_on_interrupt()?;
    // Options are checked before anything begins, in the words that all commands have for them.
    workloads::build(&args.workload)?;
    let prints = args.format == AnswerFormat::Text;
    let provenance = came_about(args.seed);
    // A report says it itself.
    let untold = args.report.is_none().then_some(&provenance);
    let limits = (args.seed, args.duration);
    let report = carry_out_here(&args.workload, limits, &stop, prints, untold)?;
    let answer = output::with_provenance(&provenance, report.to_json());
    if let Some(path) = &args.report {
        fairlab_lab::write_whole(path, answer.to_string()).map_err(|error| {
            CliError::bad(
                format!("cannot write {}: {error}", ShownPath(path)),
                "check the place and its free space",
            )
        })?;
    }
    if !prints {
        output::print_json(&answer)?;
    }
    if stop.load(Ordering::Relaxed) { Err(CliError::Interrupted) } else { Ok(()) }
}

fn came_about(seed: u64) -> Provenance {
    provenance::here().by(Origin::RunHere).kernel(this_release()).machine("host").seeds([seed])
}

/// Carries a workload out, and prints what its program prints when it does: that is the program's own, to the letter, so that how
/// it came about goes to standard error.
fn carry_out_here(
    command: &[String],
    (seed, duration): (u64, Option<Ns>),
    stop: &AtomicBool,
    prints: bool,
    untold: Option<&Provenance>,
) -> Result<LiveReport, CliError> {
    let (mut printed, mut untold) = (Ok(()), untold);
    let mut print = |text: &str| {
        if prints && printed.is_ok() {
            if let Some(provenance) = untold.take() {
                eprint!("{}", provenance.comment());
            }
            printed = output::print(text);
            // Its reader has gone, or there is no room for it: the run is of no use any more.
            stop.fetch_or(printed.is_err(), Ordering::Relaxed);
        }
    };
    let build = |command: &[String]| workloads::build(command).map_err(|error: LabError| error.problem);
    let marker = env::var_os(MARKER_VARIABLE).map(PathBuf::from);
    let conditions = LiveConditions { seed, duration, stop, marker: marker.as_deref() };
    let report = carry_out(command, &conditions, &build, &mut print);
    printed?;
    report
        .map_err(|problem| CliError::bad(problem, "'fairlab workloads show NAME' lists a workload's options"))
}
