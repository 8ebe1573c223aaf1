//! What commands and functions share that answer from a recorded trace: reading with what lies beside it, the errors, what the
//! reader should know before trusting an answer.
//!
//! Must not know: which answer it is.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fairlab_analysis::MissingEvents;
use fairlab_analysis::blame::RuleWords;
use fairlab_analysis::selector::{NothingChosen, TraceSelector};
use fairlab_analysis::summary::{SummaryOptions, TraceSummary};
use fairlab_event::{Cpu, Event, Origin, Pid, ShownPath, Sink, System};
use fairlab_kernel::Topology;
use fairlab_kernel::topology::CpuPlace;
use fairlab_recording::{generation_of, holds_trace, read_recorded, topology_of};
use fairlab_sim::Machine;
use fairlab_trace::{ImportError, ImportStats, ReadOptions, Severity};

use crate::names::places_of;
use crate::{LabError, machines};

/// Hands events on, and keeps what they say of kernel and machine.
struct SystemKeeper<'s> {
    sink: &'s mut dyn Sink,
    system: &'s RefCell<System>,
}

impl Sink for SystemKeeper<'_> {
    fn event(&mut self, event: &Event<'_>) {
        self.sink.event(event);
    }

    fn system(&mut self, system: &System) {
        self.system.replace(system.clone());
        self.sink.system(system);
    }

    fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) {
        self.sink.allowed(pid, cpus);
    }
}

/// Feeds the trace in `file` to `sink`; what it tells of kernel and machine is in `system` before the first event.
///
/// # Errors
/// It cannot be read.
pub fn read(
    file: &Path,
    options: &ReadOptions,
    sink: &mut dyn Sink,
    system: &RefCell<System>,
) -> Result<ImportStats, LabError> {
    read_recorded(file, options, &mut SystemKeeper { sink, system }).map_err(|error| {
        let shown = ShownPath(file);
        match error {
            ImportError::NotATrace(_) if file.is_dir() => match a_run_in(file) {
                Some(run) => LabError::new(
                    format!("{shown}: this is a folder of runs, and the answer is about one trace"),
                    format!("give one of them, such as {}", ShownPath(&run)),
                ),
                None => LabError::new(
                    format!("{shown}: {error}"),
                    "give a trace, a recording's folder, or a copy of tracefs",
                ),
            },
            _ => LabError::new(format!("{shown}: {error}"), error.hint()),
        }
    })
}

/// The first of the runs that a folder holds, as `run --out` lays them out: `KERNEL/seed-N`.
fn a_run_in(folder: &Path) -> Option<PathBuf> {
    let below = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut folders = entries.filter(|path| path.is_dir()).collect::<Vec<_>>();
        folders.sort();
        folders
    };
    let inner = below(folder);
    let of_kernels = inner.iter().flat_map(|kernel| below(kernel));
    inner.iter().cloned().chain(of_kernels).find(|run| holds_trace(run))
}

/// The machine that a trace tells of: one by name, where Fairlab made the trace; else one of the recorded CPUs.
///
/// # Errors
/// It does not tell of its CPUs and ticks.
pub fn recorded_machine(path: &Path, system: &System) -> Result<Machine, LabError> {
    let (Some(topology), Some(hz)) = (topology_of(system), system.hz) else {
        return Err(LabError::new(
            format!(
                "{}: it does not say on what CPUs it was recorded, and how often they tick",
                ShownPath(path)
            ),
            "name the machine with --machine",
        ));
    };
    let origin = Origin::parse(&system.origin);
    let by_name = origin.filter(|origin| origin.has_seeds()).and_then(|_| machines::find(&system.node).ok());
    let is_it = |machine: &Machine| machine.topology.nr_cpus() == topology.nr_cpus() && machine.hz == hz;
    if let Some(machine) = by_name.filter(is_it) {
        return Ok(machine);
    }
    let kernel = generation_of(system).map_or_else(String::new, |rules| rules.name().to_string());
    Ok(machines::recorded(topology, hz, (origin == Some(Origin::Booted)).then_some(&*kernel)))
}

/// The error for a trace without the events that are needed.
pub fn lacking(file: &Path, missing: &MissingEvents) -> LabError {
    let hint = match missing.recorded {
        true => "give the whole trace",
        false => "record the sched events, as 'perf sched record' does",
    };
    LabError::new(format!("{}: {missing}", ShownPath(file)), hint)
}

/// What the reader should know before trusting an answer, a line each, the file's name first.
pub fn warnings(file: &Path, stats: &ImportStats, notices: &[String]) -> Vec<String> {
    let file = ShownPath(file);
    let mut lines = Vec::new();
    if stats.instances.len() > 1 {
        let names = stats.instances.join(", ");
        lines.push(format!("{file}: its trace instances are merged: {names}; choose one with --instance"));
    }
    let troubles = stats.troubles().iter().filter(|count| count.trouble.severity() > Severity::Info);
    lines.extend(troubles.map(|count| format!("{file}: {count}")));
    lines.extend(stats.unreadable().iter().map(|unreadable| format!("{file}: {unreadable}")));
    lines.extend(stats.shift_notes().map(|note| format!("{file}: {note}")));
    lines.extend(notices.iter().map(|notice| format!("{file}: {notice}")));
    lines
}

/// The error for a trace in which nothing was chosen.
pub fn nothing_of(file: &Path, nothing: &NothingChosen) -> LabError {
    LabError::new(format!("{}: {}", ShownPath(file), nothing.problem), nothing.hint.clone())
}

/// A summary that begins when the trace, or files beside it, have described the machine.
#[derive(Debug)]
pub struct SummaryOfTrace {
    /// What the user says of it.
    options: Option<SummaryOptions>,
    chosen: TraceSelector,
    rule_words: RuleWords,
    summary: Option<TraceSummary>,
}

impl SummaryOfTrace {
    /// A summary that calls rules of the scheduler so; without options it takes what is known of the machine.
    pub fn new(options: Option<SummaryOptions>, rule_words: RuleWords) -> SummaryOfTrace {
        SummaryOfTrace { options, chosen: TraceSelector::default(), rule_words, summary: None }
    }

    /// A summary of some of the tasks, or of a stretch of time.
    #[must_use]
    pub fn of(self, chosen: TraceSelector) -> SummaryOfTrace {
        SummaryOfTrace { chosen, ..self }
    }

    fn summary(&mut self, system: &System) -> &mut TraceSummary {
        let told = || topology_of(system).as_ref().map(summary_options);
        let (options, chosen, rule_words) = (&self.options, &self.chosen, self.rule_words);
        let begin = || {
            let summary = TraceSummary::new(options.clone().or_else(told).unwrap_or_default());
            summary.of(chosen.clone()).with_culprits(rule_words)
        };
        self.summary.get_or_insert_with(begin)
    }

    /// The summary of all that came.
    pub fn into_summary(mut self) -> TraceSummary {
        self.summary(&System::default());
        self.summary.unwrap_or_else(|| TraceSummary::new(SummaryOptions::default()))
    }
}

impl Sink for SummaryOfTrace {
    fn event(&mut self, event: &Event<'_>) {
        self.summary(&System::default()).event(event);
    }

    fn system(&mut self, system: &System) {
        self.summary(system).system(system);
    }

    fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) {
        self.summary(&System::default()).allowed(pid, cpus);
    }
}

/// Which CPUs share what, as summaries take it.
pub fn summary_options(topology: &Topology) -> SummaryOptions {
    let sets = |number: fn(CpuPlace) -> u32| {
        let mut sets: BTreeMap<u32, Vec<Cpu>> = BTreeMap::new();
        for cpu in topology.cpus() {
            sets.entry(number(topology.place(cpu))).or_default().push(cpu);
        }
        sets.into_values().collect()
    };
    SummaryOptions {
        llcs: sets(|place| place.llc),
        nodes: sets(|place| place.node),
        places: Some(places_of(topology)),
    }
}
