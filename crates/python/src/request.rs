//! What a call asks for, in words: they mean what they mean on the command line, and the program's code checks them.
//!
//! Must not know: which runs are made.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use fairlab_analysis::by_name::NamesWanted;
use fairlab_analysis::selector::{TimeRange, TraceSelector};
use fairlab_analysis::task_selector::{NameKind, TaskSelector};
use fairlab_event::Ns;
use fairlab_files::quantities::{parse_duration, parse_share, parse_warmup};
use fairlab_lab::names::{ShownMetrics, parse_group};
use fairlab_lab::provenance::{ProgramVersion, Provenance};
use fairlab_lab::{Kernel, LabError, SettingWords, workloads};
use fairlab_sim::Machine;
use pyo3::prelude::*;

const COMMIT: Option<&str> = match env!("FAIRLAB_COMMIT") {
    commit if commit.is_empty() => None,
    commit => Some(commit),
};

/// An answer to the command line of this request.
pub fn provenance(words: Vec<String>) -> Provenance {
    Provenance::new(ProgramVersion { version: env!("CARGO_PKG_VERSION"), commit: COMMIT }, words)
}

/// What is run, and where.
#[derive(Clone, Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub struct RunRequest {
    pub workload: Vec<String>,
    beside: Vec<String>,
    machine: String,
    warmup: Option<String>,
    duration: Option<String>,
    exact: bool,
    pub jobs: Option<usize>,
    pub seed: u64,
    pub kernels: Vec<String>,
    /// Sides that differ in anything, as `--side` takes them.
    pub sides: Vec<String>,
    /// Sides that differ in one key, as `--vary` takes it.
    pub vary: Option<String>,
    names: TraceSelection,
    /// A folder for everything.
    pub out: Option<PathBuf>,
    /// Goes on with that folder where it was stopped.
    pub resume: bool,
    /// The words of the command line of this request.
    pub words: Vec<String>,
}

/// What a request means.
#[derive(Clone, Debug)]
pub struct RunSetup {
    workload: Vec<String>,
    machine: String,
    warmup: Option<Ns>,
    duration: Option<Ns>,
    exact: bool,
    first_seed: u64,
    pub shown: ShownMetrics,
    pub time: TimeRange,
    pub jobs: usize,
}

impl RunRequest {
    /// Reads the words.
    ///
    /// # Errors
    /// One of them means nothing.
    pub fn setup(&self) -> Result<RunSetup, LabError> {
        if self.jobs == Some(0) {
            return Err(LabError::new("jobs=0: a whole number from 1 on", "leave it out for one a CPU"));
        }
        if self.resume && self.out.is_none() {
            return Err(LabError::new(
                "resume=True goes on with a folder, and none is named",
                "give out=, too",
            ));
        }
        Ok(RunSetup {
            workload: workloads::beside(&self.beside, &self.workload),
            machine: self.machine.clone(),
            warmup: read("warmup", self.warmup.as_deref(), parse_warmup)?,
            duration: read("duration", self.duration.as_deref(), parse_duration)?,
            exact: self.exact,
            first_seed: self.seed,
            shown: self.names.shown()?,
            time: self.names.stretch()?,
            jobs: self.jobs.unwrap_or_else(one_a_cpu),
        })
    }
}

/// The tasks and the time that are asked for.
#[derive(Clone, Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub struct TraceSelection {
    tasks: Vec<String>,
    groups: Vec<String>,
    by: Vec<String>,
    time: Option<String>,
}

impl TraceSelection {
    /// The tasks and groups that are chosen; empty: all.
    ///
    /// # Errors
    /// A group is no path.
    pub fn whose(&self) -> Result<Vec<TaskSelector>, LabError> {
        let bad = |group: &String, problem| LabError::new(format!("group='{group}': {problem}"), HELP);
        let group = |group: &String| parse_group(group).map_err(|problem| bad(group, problem));
        let groups = self.groups.iter().map(group).collect::<Result<Vec<_>, _>>()?;
        Ok(self.tasks.iter().chain(&groups).map(|name| TaskSelector::parse(name)).collect())
    }

    /// The time that is chosen; by default all.
    ///
    /// # Errors
    /// It is no stretch.
    pub fn stretch(&self) -> Result<TimeRange, LabError> {
        Ok(read("time", self.time.as_deref(), str::parse::<TimeRange>)?.unwrap_or_default())
    }

    /// Both.
    ///
    /// # Errors
    /// As of both.
    pub fn chosen(&self) -> Result<TraceSelector, LabError> {
        Ok(TraceSelector { whose: self.whose()?, time: self.stretch()? })
    }

    /// Whose numbers an answer of runs shows.
    ///
    /// # Errors
    /// A group is no path, a kind is none.
    pub fn shown(&self) -> Result<ShownMetrics, LabError> {
        let kinds = self.by.iter().map(|word| kind(word)).collect::<Result<_, _>>()?;
        Ok(ShownMetrics { whose: self.whose()?, kinds })
    }
}

fn kind(word: &str) -> Result<NameKind, LabError> {
    match word {
        "task" => Ok(NameKind::Task),
        "group" => Ok(NameKind::Group),
        "workload" => Ok(NameKind::Workload),
        _ => Err(LabError::new(format!("by='{word}': no kind of names"), "there are task, group, workload")),
    }
}

impl RunSetup {
    /// The request as the laboratory takes it.
    pub fn asked<'s>(&'s self, by_name: Option<&'s NamesWanted>) -> SettingWords<'s> {
        SettingWords {
            machine: &self.machine,
            workload: &self.workload,
            warmup: self.warmup,
            duration: self.duration,
            exact: self.exact,
            first_seed: self.first_seed,
            by_name,
            time: self.time,
        }
    }
}

/// How many runs go on at once by default.
pub fn one_a_cpu() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A share as people write it: `1%`, `0.01`.
///
/// # Errors
/// It is none.
pub fn share(name: &str, text: &str) -> Result<f64, LabError> {
    Ok(read(name, Some(text), parse_share)?.unwrap_or_default())
}

fn read<T>(
    name: &str,
    text: Option<&str>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, LabError> {
    let failed = |text: &str, problem: String| LabError::new(format!("{name}='{text}': {problem}"), HELP);
    text.map(|text| parse(text).map_err(|problem| failed(text, problem))).transpose()
}

const HELP: &str = "help(fairlab) lists what can be said";

/// Makes kernels ready for their machines, before anything runs: trees are built.
///
/// # Errors
/// A tree cannot be built.
pub fn prepare<'k>(
    runs: impl Iterator<Item = (&'k Kernel, &'k Machine)>,
    stop: &AtomicBool,
) -> Result<(), LabError> {
    for (kernel, machine) in runs {
        kernel.prepare(machine, &|_, _| {}, stop)?;
    }
    Ok(())
}
