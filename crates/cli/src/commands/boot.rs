//! `fairlab boot`: a real kernel in QEMU under a workload.

use std::time::Duration;

use fairlab_boot::{Board, BootOptions, Booted, EmulationMode, Hardware, KernelImage, TURNS_CPUS_MAX, boot};
use fairlab_event::ShownPath;
use fairlab_lab::provenance::Origin;
use fairlab_lab::workloads::spelled_out;
use fairlab_lab::{OutputFolder, guest_files, machines};
use serde_json::json;

use super::{trace, workloads};
use crate::args::{AnswerFormat, BootArgs};
use crate::error::CliError;
use crate::progress::{ProgressLine, stop_on_interrupt};
use crate::provenance;
use crate::{output, tell};

pub fn execute(args: &BootArgs) -> Result<(), CliError> {
    if workloads::helped(&args.workload)? {
        return Ok(());
    }
    let hardware = match &args.machine {
        None => Hardware::Pc(args.topology.with_nodes(args.numa)?),
        Some(name) => Hardware::Board(Box::new(Board::new(machines::find(name)?)?)),
    };
    let carried = guest_files::files(&args.workload, hardware.architecture())?;
    let in_turn = args.deterministic || !args.threads && hardware.cpus() <= TURNS_CPUS_MAX;
    let options = BootOptions {
        image: KernelImage::parse(&args.image)?,
        refresh: args.refresh,
        hardware,
        mode: if in_turn { EmulationMode::Deterministic } else { EmulationMode::Threads },
        probes: args.probes,
        settings: args.settings.clone(),
        session: args.session,
        parameters: args.append.iter().flat_map(|words| words.0.clone()).collect(),
        workload: spelled_out(&args.workload),
        carried,
        seed: args.seed,
        duration: args.duration,
        limit: Duration::from_secs(args.timeout),
    };
    let folder = args.out.as_deref().map(OutputFolder::create).transpose()?;
    let stop = stop_on_interrupt()?;
    let progress = ProgressLine::new("boot");
    let outcome = boot(&options, &|stage| progress.tell(stage), &stop);
    drop(progress);
    let booted = match outcome {
        Ok(Some(booted)) => booted,
        Ok(None) => return Err(CliError::Interrupted),
        // What was stopped on the way to the machine says so in its own words.
        Err(_) if stop.load(std::sync::atomic::Ordering::Relaxed) => return Err(CliError::Interrupted),
        Err(error) => return Err(error.into()),
    };
    if let Some(folder) = folder {
        booted.write(&folder)?;
        folder.finish()?;
    }
    let shown = args.out.clone().unwrap_or_else(|| "the trace".into());
    trace::warn(&shown, &booted.import, &[]);
    if !booted.has_schedstats() {
        tell!(
            "{}: this kernel was built without schedstats: no event says how long a task waited or slept",
            ShownPath(&shown)
        );
    }
    if booted.dropped > 0 {
        tell!("{} events were dropped for want of room; let the workload run for less", booted.dropped);
    }
    answer(args, &options, &booted)
}

fn answer(args: &BootArgs, options: &BootOptions, booted: &Booted) -> Result<(), CliError> {
    let provenance = provenance::here()
        .by(Origin::Booted)
        .kernel(&booted.release)
        .machine(options.hardware.to_string())
        .seeds([options.seed]);
    match args.format {
        AnswerFormat::Text => output::answer(&provenance, &text(args, options, booted)),
        AnswerFormat::Json => output::answer_json(
            &provenance,
            json!({
                "schema": "fairlab/boot/1",
                "out": args.out,
                "release": booted.release,
                "mode": booted.mode.name(),
                "digest": booted.digest.to_string(),
                "events": booted.import.events,
                "dropped": booted.dropped,
                "status": booted.status,
                "output": booted.output,
                "errors": booted.errors,
                "wall_ns": u64::try_from(booted.wall.as_nanos()).unwrap_or(u64::MAX),
                "meta": booted.meta,
            }),
        ),
    }
}

fn text(args: &BootArgs, options: &BootOptions, booted: &Booted) -> String {
    let mut text = format!(
        "{} ({}) on {}, QEMU {}, {}: {}\n",
        booted.release,
        options.image,
        options.hardware,
        booted.qemu.split(' ').next().unwrap_or_default(),
        booted.mode.name(),
        booted.mode.meaning()
    );
    let set: Vec<String> = options.settings.iter().map(ToString::to_string).collect();
    for (what, words) in [("set", &set), ("appended", &options.parameters)] {
        if !words.is_empty() {
            text += &format!("{what}: {}\n", words.join(" "));
        }
    }
    text += "\n";
    text += &booted.output;
    text += &booted.errors;
    let (events, seconds) = (booted.import.events, booted.wall.as_secs_f64());
    text += &format!("\n{} ended with status {}", args.workload[0], booted.status);
    text += &format!("; {events} events, digest {}; {seconds:.1} s of the host\n", booted.digest);
    if let Some(out) = &args.out {
        text += &format!("{}: the recording; 'fairlab verify' takes it\n", ShownPath(out));
    }
    text
}
