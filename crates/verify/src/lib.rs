//! How well the model agrees with a real kernel: a recording is walked in open loop, decision by decision.
//!
//! For each decision in the trace, the core is asked what it would do in the kernel's state. The answer is compared, and then
//! what the kernel did is applied. A decision that the trace does not show counts as not judged, never as agreement.
//!
//! Must not know: how the answer is shown.

mod event_presence;
pub mod fidelity;
pub mod oracle;
mod probe;
mod record;
pub mod schedstat;
mod tally;
mod verdict;
mod walker;
mod window;

use std::path::{Path, PathBuf};

use fairlab_event::{Event, Ns, Sink, System};
use fairlab_kernel::{Generation, Topology};
use fairlab_recording::{KnownKernel, Recording, kernel_of, told_beside};
use fairlab_sim::Machine;
use fairlab_trace::{BytesRead, ImportError, ImportStats, ReadOptions, read_path};

use event_presence::EventPresence;
use fairlab_event::Origin;
use fairlab_files::{Assertion, LabError, caught};
use record::EventRecord;
use walker::Walker;

pub use tally::{DecisionKind, JudgedShare, KindTally, MissedDecision, TrivialRule};

/// What to verify, and how.
#[derive(Clone, Debug, Default)]
pub struct VerifyOptions {
    /// The machine, where the recording does not describe it or describes it wrongly.
    pub machine: Option<Machine>,
    /// How many misses are kept with their circumstances.
    pub misses: usize,
    /// Ticks per second of the trace clock, for traces with integer time stamps.
    pub clock_hz: Option<u64>,
    /// Walk on where too many of the scheduler's events cannot be read.
    pub allow_unreadable: bool,
    /// Counts how much of the trace has been read.
    pub read: BytesRead,
}

impl VerifyOptions {
    fn for_reader(&self, trace: &Path) -> ReadOptions {
        let beside = || told_beside(trace)?.clock_hz;
        ReadOptions {
            clock_hz: self.clock_hz.or_else(beside),
            allow_unreadable: self.allow_unreadable,
            read: self.read.clone(),
            ..ReadOptions::default()
        }
    }
}

/// How well a generation agrees with a recording.
#[derive(Clone, Debug)]
pub struct Agreement {
    /// The generation's name.
    pub kernel: String,
    /// Its rules, set as the recorded kernel was.
    pub followed: Generation,
    /// The trace.
    pub trace: PathBuf,
    /// How the recording came about, where anything tells.
    pub origin: Option<Origin>,
    /// The recorded kernel's release, where the recording says it.
    pub release: Option<String>,
    /// Whether probes show the kernel's own values.
    pub probed: bool,
    /// What is amiss with the recording, though it could be walked: a sentence each.
    pub notes: Vec<String>,
    /// Counts of each kind of decision.
    pub kinds: Vec<(DecisionKind, KindTally)>,
    /// The first misses.
    pub misses: Vec<MissedDecision>,
    /// What is not judged at the beginning.
    pub warm_up: String,
    /// Events walked.
    pub events: u64,
    /// Places where the state had to be set right without a decision that explains it.
    pub state_set_right: u64,
    /// The import's account.
    pub import: ImportStats,
}

impl Agreement {
    /// The counts of one kind.
    pub fn kind(&self, kind: DecisionKind) -> Option<&KindTally> {
        self.kinds.iter().find(|(known, _)| *known == kind).map(|(_, tally)| tally)
    }
}

/// The kernel that the recording at `path` (its folder, or the trace in it) says it is of.
///
/// # Errors
/// There is no readable trace; nothing names a kernel, or the one that is named is not modelled.
pub fn recorded_kernel(path: &Path, options: &VerifyOptions) -> Result<KnownKernel, LabError> {
    told_kernel(&mut Recording::open(path)?, path, options)
}

/// The kernel that an opened recording tells.
fn told_kernel(
    recording: &mut Recording,
    path: &Path,
    options: &VerifyOptions,
) -> Result<KnownKernel, LabError> {
    complete(recording, path, options)?;
    // A trace that stands alone lies in a folder of any name.
    kernel_of(recording, path)
}

/// Takes from the trace itself what nothing beside it tells. What comes through a pipe can be read once, and is not looked into.
fn complete(recording: &mut Recording, path: &Path, options: &VerifyOptions) -> Result<(), LabError> {
    if recording.lacks_system() && path != Path::new("-") {
        let mut told = ToldByTrace::default();
        let trace = &recording.trace;
        match read_path(trace, &options.for_reader(trace), &mut told) {
            // What a trace tells of itself stands before its events: it is not asked when these were.
            Ok(_) | Err(ImportError::UntoldClock(_)) => recording.take_system(&told.0),
            Err(error) => return Err(unreadable(trace, &error)),
        }
    }
    Ok(())
}

/// What a trace itself tells of its kernel, machine and groups.
#[derive(Debug, Default)]
struct ToldByTrace(System);

impl Sink for ToldByTrace {
    fn event(&mut self, _: &Event<'_>) {}

    fn system(&mut self, system: &System) {
        self.0.clone_from(system);
    }
}

/// Walks the recording at `path` (its folder, or the trace in it) by the rules of `generation`.
///
/// # Errors
/// There is no readable trace, or it lacks what verification needs.
pub fn verify(path: &Path, generation: &Generation, options: &VerifyOptions) -> Result<Agreement, LabError> {
    let mut recording = Recording::open(path)?;
    complete(&mut recording, path, options)?;
    let (topology, tick) = machine(&recording, options)?;
    let (trace, origin) = (recording.trace.clone(), recording.origin);
    let (release, probed) = (recording.release.clone(), recording.shows_weights);
    let nr_cpus = topology.nr_cpus();
    let mut notes: Vec<String> = recording.notes().into_iter().chain(unlike(&recording, nr_cpus)).collect();
    let as_set = set_as_recorded(generation, &recording, (path, nr_cpus), &mut notes);
    let events_listed = std::mem::take(&mut recording.events);
    let start = || Walker::new(as_set.clone(), topology, tick, recording, options.misses);
    let walker = caught(start)
        .map_err(|assertion| contradicts(&trace, "the snapshot contradicts itself", &assertion))?;
    let mut feed = WalkerFeed::new(walker);
    let read_options = options.for_reader(&trace);
    let walk = || {
        let import = read_path(&trace, &read_options, &mut feed);
        feed.finish();
        import
    };
    let import = match caught(walk) {
        Ok(import) => import.map_err(|error| unreadable(&trace, &error))?,
        Err(assertion) => {
            feed.check_cpus(&trace, nr_cpus)?;
            let at = format!("event {} contradicts what came before it", feed.walker.events());
            return Err(contradicts(&trace, &at, &assertion));
        }
    };
    feed.present.check(&trace, feed.stopped_at)?;
    feed.check_cpus(&trace, nr_cpus)?;
    let mut walker = feed.walker;
    for missing in feed.present.missing(walker.has_groups()) {
        notes.push(missing.sentence(missing.is_listed(&events_listed)));
        walker.tally.withdraw(missing.kinds, missing.reason);
    }
    notes.extend((!probed).then(|| NOT_PROBED.to_string()));
    notes.extend(walker.note_on_groups());
    let warm_up = warm_up(walker.has_markers());
    let (events, state_set_right) = (walker.events(), walker.lost());
    let (kinds, misses) = walker.tally.into_kinds();
    let kernel = generation.name().to_string();
    Ok(Agreement {
        kernel,
        followed: as_set,
        trace,
        origin,
        release,
        probed,
        notes,
        kinds,
        misses,
        warm_up,
        events,
        state_set_right,
        import,
    })
}

/// What is said of a recording without probes.
const NOT_PROBED: &str = "no probes show what decisions rest on: little is judged; \
                          a replay of the recording's tasks shows how near the model's numbers come";

/// From when on decisions are judged.
fn warm_up(has_markers: bool) -> String {
    match has_markers {
        true => "nothing is judged before the end of the snapshot that the trace marks; \
                 after it, only what rests on state that the snapshot or the trace has shown"
            .to_string(),
        false => format!(
            "the first {} events are not judged; after them, only what rests on state that the trace has shown",
            walker::WARM_UP_EVENTS
        ),
    }
}

/// The generation as the recorded kernel of `nr_cpus` CPUs was set, and what is to be said of that.
fn set_as_recorded(
    generation: &Generation,
    recording: &Recording,
    (path, nr_cpus): (&Path, usize),
    notes: &mut Vec<String>,
) -> Generation {
    // What the kernel came with is its generation's matter, what was set is not.
    let own = kernel_of(recording, path).map_or_else(|_| generation.clone(), |known| known.generation);
    let settings = recording.settings.other_than(&own, nr_cpus);
    let (as_set, changed) = generation.clone().set_as(&settings, nr_cpus);
    if !changed.is_empty() {
        notes.push(format!("the recorded kernel was set otherwise, and is followed: {}", changed.join(", ")));
    }
    let left = as_set.leaves(&settings);
    if !left.is_empty() {
        notes.push(format!(
            "the recorded kernel was set otherwise, and is not followed: {}; what hangs on it may be missed",
            left.join(", ")
        ));
    }
    as_set
}

/// More ticks a second than any kernel is built with.
const HZ_MAX: u64 = 10_000;

/// The notice where the recording describes another machine than the one in use.
fn unlike(recording: &Recording, nr_cpus: usize) -> Option<String> {
    let described = recording.topology.as_ref()?.nr_cpus();
    let text =
        format!("the recording describes {described} CPUs, and the machine that was named has {nr_cpus}");
    (described != nr_cpus).then_some(text)
}

fn machine(recording: &Recording, options: &VerifyOptions) -> Result<(Topology, Ns), LabError> {
    if let Some(machine) = &options.machine {
        return Ok((machine.topology.clone(), machine.tick()));
    }
    let shown = recording.trace.display();
    let hint = "name the machine with --machine, or give a recording's folder";
    let Some(topology) = recording.topology.clone() else {
        return Err(LabError::new(
            format!("{shown}: nothing beside the trace describes the CPUs (sched_info.txt)"),
            hint,
        ));
    };
    if let Some(hz) = recording.hz.filter(|&hz| recording.tick().is_none_or(|_| hz > HZ_MAX)) {
        return Err(LabError::new(
            format!("{}: HZ of {hz} is no tick rate", recording.trace.with_file_name("meta.json").display()),
            "mend it: kernels are built with a CONFIG_HZ of 100, 250, 300 or 1000",
        ));
    }
    let Some(tick) = recording.tick() else {
        return Err(LabError::new(
            format!("{shown}: nothing beside the trace says the tick rate (meta.json)"),
            hint,
        ));
    };
    Ok((topology, tick))
}

fn unreadable(trace: &Path, error: &ImportError) -> LabError {
    LabError::new(format!("{}: {error}", trace.display()), error.hint())
}

fn contradicts(trace: &Path, contradiction: &str, assertion: &Assertion) -> LabError {
    LabError::new(
        format!("{}: {contradiction}: {}", trace.display(), assertion.said),
        "the recording is damaged, or lacks lines; verify one that is whole",
    )
}

/// Hands the trace's events to the walk.
struct WalkerFeed {
    walker: Walker,
    events: u64,
    present: EventPresence,
    /// After how many events it was clear that no walk can be made: the rest is not looked at.
    stopped_at: Option<u64>,
}

impl Sink for WalkerFeed {
    fn event(&mut self, event: &Event<'_>) {
        self.events += 1;
        // What a file itself knows of tasks is of no time of the trace's.
        if event.kind.is_task_record() {
            return;
        }
        if self.stopped_at.is_some() {
            return;
        }
        let record = EventRecord::new(self.events, event);
        self.present.note(&record);
        // No event has been walked by now: so many are looked ahead at.
        if self.events >= walker::LOOK_AHEAD as u64 && !self.present.suffices() {
            self.stopped_at = Some(self.events);
            return;
        }
        self.walker.push(record);
    }
}

impl WalkerFeed {
    fn new(walker: Walker) -> WalkerFeed {
        WalkerFeed { walker, events: 0, present: EventPresence::default(), stopped_at: None }
    }

    /// Walks what is left, unless that leads to nothing.
    fn finish(&mut self) {
        if self.present.suffices() {
            self.walker.finish();
        }
    }

    /// More than a stray event of a CPU that the machine does not have, and it is another machine's trace.
    fn check_cpus(&self, trace: &Path, nr_cpus: usize) -> Result<(), LabError> {
        let absent = self.walker.on_absent_cpus();
        if absent * 100 <= self.events {
            return Ok(());
        }
        Err(LabError::new(
            format!(
                "{}: {absent} of {} events are of CPUs beyond the {nr_cpus} of the machine that it is held against",
                trace.display(),
                self.events
            ),
            "name the machine that it was recorded on with --machine, or mend sched_info.txt beside the trace",
        ))
    }
}
