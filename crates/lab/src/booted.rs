//! Booted kernels among the others: `qemu:bookworm` runs what a modelled kernel runs, and answers in its numbers.
//!
//! Must not know: how a machine is emulated.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fairlab_analysis::by_name::NamesWanted;
use fairlab_analysis::causes::Causes;
use fairlab_analysis::counts::RunCounts;
use fairlab_analysis::metrics::Metrics;
use fairlab_event::{Cpu, Event, EventKind, Ns, Pid, Sink, sink_fn};

use fairlab_boot::{BootOptions, Booted, EmulationMode, Hardware, KernelImage, SUITES, TURNS_CPUS_MAX, boot};
use fairlab_files::shell::line_of;
use fairlab_recording::TraceFile;
use fairlab_sim::workload::catalogue::spelled_out;
use fairlab_verify::schedstat::metrics::between;

use crate::initial_lists::InitialLists;
use crate::names::places_of;
use crate::run::add_work;
use crate::{LabError, OutputFolder, RunResult, guest_files, machines};

/// What names of booted kernels begin with.
const PREFIX: &str = "qemu:";

/// Time of the host that a run may take.
const LIMIT: Duration = Duration::from_secs(900);

/// A kernel that is booted for each run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QemuKernel {
    name: String,
    image: KernelImage,
}

impl QemuKernel {
    /// Reads `qemu:bookworm` or `qemu:PATH`; `None` if a name is of another kind of kernel.
    pub fn parse(name: &str) -> Option<Result<QemuKernel, LabError>> {
        let which = name.strip_prefix(PREFIX)?;
        let image = match SUITES.into_iter().find(|suite| *suite == which) {
            Some(suite) => Ok(KernelImage::Debian(suite)),
            None => KernelImage::parse(which),
        };
        Some(image.map(|image| QemuKernel { name: name.to_string(), image }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether a name is of such a kernel.
    pub fn is_name(name: &str) -> bool {
        name.starts_with(PREFIX)
    }
}

/// What to run on a booted kernel.
#[derive(Clone, Debug)]
pub struct QemuSpec {
    /// The kernel.
    pub kernel: QemuKernel,
    /// The machine's name in the answer.
    pub machine: String,
    /// The machine.
    pub hardware: Hardware,
    /// The workload's name and its own options.
    pub workload: Vec<String>,
    /// The root seed of the workload's own randomness.
    pub seed: u64,
    /// When to stop, in time of the guest.
    pub duration: Ns,
    /// Where the trace goes, if it is wanted.
    pub trace: Option<PathBuf>,
    /// Which numbers by name it measures.
    pub by_name: NamesWanted,
}

/// Boots and runs. Gives `None` when `stop` was set before the end.
///
/// # Errors
/// The machine does not get to its end, the workload fails, or the trace cannot be written.
pub fn run(spec: &QemuSpec, stop: &AtomicBool) -> Result<Option<RunResult>, LabError> {
    Ok(run_kept(spec, None, &mut (), stop)?.map(|kept| kept.result))
}

/// `run()` with all waits during the workload added up by cause.
pub(crate) fn run_by_cause(spec: &QemuSpec, stop: &AtomicBool) -> Result<Option<RunResult>, LabError> {
    let mut causes = Causes::new();
    let Some(KeptBoot { result, .. }) = run_kept(spec, None, &mut causes, stop)? else { return Ok(None) };
    Ok(Some(RunResult { causes: Some(causes.finish(Ns::ZERO)), ..result }))
}

/// A run whose recording was kept.
pub struct KeptBoot {
    /// What came of it.
    pub result: RunResult,
    /// The kernel's release.
    pub release: String,
    /// Where the thread began that creates the workload's others.
    pub first_cpu: Cpu,
}

/// `run()` that puts the recording into a folder. `onlooker` sees what happened while the workload ran, counted from its beginning.
pub fn run_and_keep(
    spec: &QemuSpec,
    folder: &OutputFolder,
    onlooker: &mut dyn Sink,
    stop: &AtomicBool,
) -> Result<Option<KeptBoot>, LabError> {
    run_kept(spec, Some(folder), onlooker, stop)
}

fn run_kept(
    spec: &QemuSpec,
    folder: Option<&OutputFolder>,
    onlooker: &mut dyn Sink,
    stop: &AtomicBool,
) -> Result<Option<KeptBoot>, LabError> {
    let options = BootOptions {
        image: spec.kernel.image.clone(),
        refresh: false,
        hardware: spec.hardware.clone(),
        mode: if spec.hardware.cpus() <= TURNS_CPUS_MAX {
            EmulationMode::Deterministic
        } else {
            EmulationMode::Threads
        },
        probes: false,
        settings: Vec::new(),
        parameters: Vec::new(),
        session: false,
        workload: spelled_out(&spec.workload),
        carried: guest_files::files(&spec.workload, spec.hardware.architecture())?,
        seed: spec.seed,
        duration: Some(spec.duration),
        limit: LIMIT,
    };
    let Some(booted) = boot(&options, &|_| {}, stop)? else { return Ok(None) };
    let trace_losses = match &spec.trace {
        None => fairlab_trace::WriterLosses::default(),
        Some(path) => {
            let mut trace = TraceFile::create(path, None)?;
            booted.read(&mut trace)?;
            trace.finish()?
        }
    };
    if let Some(folder) = folder {
        booted.write(folder)?;
    }
    let (counts, first_cpu) = counted(&booted, spec, onlooker)?;
    let release = booted.release.clone();
    Ok(Some(KeptBoot { result: result(spec, &booted, counts, &trace_losses)?, release, first_cpu }))
}

fn result(
    spec: &QemuSpec,
    booted: &Booted,
    counts: RunCounts,
    trace_losses: &fairlab_trace::WriterLosses,
) -> Result<RunResult, LabError> {
    if booted.status != 0 {
        let said = booted.errors.lines().last().unwrap_or("it does not say why");
        return Err(LabError::new(
            format!("'{}' ended with status {} in the guest: {said}", spec.workload.join(" "), booted.status),
            "run something that succeeds within its --duration",
        ));
    }
    if booted.dropped > 0 {
        return Err(LabError::new(
            format!("{} events were dropped for want of room", booted.dropped),
            "run something shorter or less busy",
        ));
    }
    let mut metrics: Vec<(String, f64)> =
        counts.metrics().into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    let by_name = counts.metrics_by_name();
    if let Some(report) = &booted.report {
        let seconds = report.elapsed.as_secs_f64();
        if let Some((_, count)) = report.progress.as_ref().filter(|_| seconds > 0.0) {
            add_work(&mut metrics, &counts, *count, *count as f64 / seconds);
        }
        metrics.extend(report.metrics.iter().cloned());
    }
    if let (true, Some(before), Some(after)) =
        (spec.by_name.counters, booted.file("schedstat-before"), booted.file("schedstat-after"))
        && !before.is_empty()
    {
        metrics.extend(between(&before, &after)?);
    }
    metrics.extend(by_name);
    Ok(RunResult {
        side: None,
        kernel: spec.kernel.name.clone(),
        machine: spec.machine.clone(),
        workload: line_of(&spec.workload),
        seed: spec.seed,
        digest: booted.digest.to_string(),
        begin_ns: None,
        settled_ns: None,
        early_excess: None,
        simulated_ns: counts.observed_ns,
        wall_ns: u64::try_from(booted.wall.as_nanos()).unwrap_or(u64::MAX),
        switches: counts.switches,
        metrics,
        causes: None,
        counts,
        output: booted.output.clone(),
        trace_losses: trace_losses.to_string(),
        schedstat: booted.file("schedstat-after").unwrap_or_default(),
        schedstat_searches: String::new(),
        beginning: InitialLists::default(),
    })
}

/// What happened between the marks around the workload: of latencies, switches and migrations those of its own tasks. And the CPU
/// on which it began. `onlooker` sees the same events, counted from the first mark.
fn counted(booted: &Booted, spec: &QemuSpec, onlooker: &mut dyn Sink) -> Result<(RunCounts, Cpu), LabError> {
    let mut family = BTreeSet::from([booted.pid]);
    let (mut begin, mut end) = (None, Ns::ZERO);
    // Of each that creates others: how many, and where it was when it created the first.
    let mut creators = BTreeMap::<Pid, (u32, Cpu)>::new();
    let mut extent = sink_fn(|event: &Event<'_>| match event.kind {
        EventKind::Marker { text } if text.starts_with("WORKLOAD-BEGIN") => begin = Some(event.time),
        EventKind::Marker { text } if text.starts_with("WORKLOAD-END") => end = event.time,
        EventKind::SchedProcessFork { pid, child_pid, .. } if family.contains(&pid) => {
            family.insert(child_pid);
            creators.entry(pid).or_insert((0, event.cpu)).0 += 1;
        }
        _ => {}
    });
    booted.read(&mut extent)?;
    drop(extent);
    let begin = begin.filter(|&begin| begin < end).ok_or_else(|| {
        LabError::new(
            "the guest's trace has no marks around the workload",
            "run something shorter or less busy",
        )
    })?;
    let cpus = booted.meta["vcpus"].as_u64().unwrap_or(0);
    let places = machines::find(&spec.machine).ok().map(|machine| places_of(&machine.topology));
    let mut metrics = Metrics::new(usize::try_from(cpus).unwrap_or(0), begin)
        .of_tasks(family)
        .by_name(spec.by_name.clone(), places);
    let mut within = sink_fn(|event: &Event<'_>| {
        if event.time < end {
            metrics.event(event);
        }
        if (begin..end).contains(&event.time) {
            onlooker.event(&Event { time: event.time.since(begin), ..*event });
        }
    });
    booted.read(&mut within)?;
    drop(within);
    // A program may leave it to a thread of its own to create the others: that is whom the model begins with.
    let first_cpu = creators.values().max_by_key(|(created, _)| *created).map_or(Cpu(0), |(_, cpu)| *cpu);
    Ok((metrics.into_counts(end), first_cpu))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_booted_kernels() {
        let of = |name: &str| QemuKernel::parse(name).map(|kernel| kernel.map(|kernel| kernel.image));
        assert_eq!(of("qemu:trixie"), Some(Ok(KernelImage::Debian("trixie"))));
        assert_eq!(of("qemu:debian:sid"), Some(Ok(KernelImage::Debian("sid"))));
        assert!(of("qemu:/no/such/image").is_some_and(|image| image.is_err()));
        assert_eq!(of("v6.6"), None);
    }
}
