//! One run: kernel × machine × workload × seed → metrics, the program's own output, a digest, and if wanted the trace.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use fairlab_analysis::counts::Counts;
use fairlab_analysis::metrics::Metrics;
use fairlab_analysis::statistics::PER_WORK;
use fairlab_event::{Cpu, DigestSink, Event, EventKind, Filter, Ns, Sink, System};
use fairlab_kernel::Scheduler;
use fairlab_kernel::balance::BalanceNote;
use fairlab_kernel::select::IdleMaskNote;
use fairlab_sim::{Engine, Machine};
use serde::{Deserialize, Deserializer, Serialize};

use crate::beginning::Beginning;
use crate::kernel::origin_of;
use crate::provenance::Origin;
use crate::settling::{Pace, settling};
use crate::{Kernel, LabError, verify, workloads};
use fairlab_files::TraceFile;
use fairlab_trace::Losses;

/// What to run.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The kernel, of any kind.
    pub kernel: Kernel,
    /// The machine.
    pub machine: Machine,
    /// The workload's name and its own options.
    pub workload: Vec<String>,
    /// The root seed of all randomness.
    pub seed: u64,
    /// The CPU on which the workload's first thread starts; without, and where the machine has no such CPU, the one that the
    /// machine's chance gives. Modelled kernels know of it.
    pub first_cpu: Option<Cpu>,
    /// How long the workload settles from when all its threads are at work; without, as long as the machine takes
    /// ([`settling`]); zero: all is measured from the start.
    pub warmup: Option<Ns>,
    /// When to stop, in virtual time from when it has settled.
    pub duration: Ns,
    /// Where the trace goes, if it is wanted; the name's end tells the format.
    pub trace: Option<PathBuf>,
    /// Whether the trace holds what a kernel with the recorder's probes would print; the run itself stays the same.
    pub probes: bool,
}

impl RunSpec {
    /// A run from the machine's own beginning, without a trace.
    pub fn new(kernel: Kernel, machine: Machine, workload: Vec<String>, seed: u64, duration: Ns) -> RunSpec {
        RunSpec {
            kernel,
            machine,
            workload,
            seed,
            first_cpu: None,
            warmup: None,
            duration,
            trace: None,
            probes: false,
        }
    }
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The kernel's name.
    pub kernel: String,
    /// The machine's name.
    pub machine: String,
    /// The workload's command line.
    pub workload: String,
    /// The seed.
    pub seed: u64,
    /// Digest of every event: equal for equal runs on any machine.
    pub digest: String,
    /// When the workload started, on the trace's clock; nobody knows it of real kernels.
    pub begin_ns: Option<u64>,
    /// When it had settled, on the trace's clock: all that is told was measured from then on.
    pub settled_ns: Option<u64>,
    /// By what part of it the rate of work in the first fifth of that lies above the rate after it.
    pub early_excess: Option<f64>,
    /// Virtual time that was measured.
    pub simulated_ns: u64,
    /// Real time that it took.
    pub wall_ns: u64,
    /// Context switches.
    pub switches: u64,
    /// Every metric by name.
    #[serde(serialize_with = "as_map", deserialize_with = "of_map")]
    pub metrics: Vec<(String, f64)>,
    /// The same as counters and histograms, to be added to those of other runs.
    #[serde(skip)]
    pub counts: Counts,
    /// What the real program would have printed.
    #[serde(skip)]
    pub output: String,
    /// What the trace does not carry.
    #[serde(skip)]
    pub trace_losses: Losses,
    /// `/proc/schedstat` at the end.
    #[serde(skip)]
    pub schedstat: String,
    /// The same with the counters of searches for idle CPUs at the end of CPUs' lines.
    #[serde(skip)]
    pub schedstat_searches: String,
    /// The control groups and the tasks at the beginning, as the recorder lists them.
    #[serde(skip)]
    pub beginning: Beginning,
}

impl RunResult {
    /// Whether the model ran it, so that its seed decides everything; on a real kernel chance has its part.
    pub fn is_modelled(&self) -> bool {
        self.origin() == Origin::Modelled
    }

    /// By what way it came about.
    pub fn origin(&self) -> Origin {
        origin_of(&self.kernel)
    }

    /// The metric called `name`, if it was measured.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.iter().find(|(known, _)| known == name).map(|&(_, value)| value)
    }
}

pub(crate) fn as_map<S: serde::Serializer>(
    metrics: &[(String, f64)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(metrics.iter().map(|(name, value)| (name, value)))
}

/// Metrics in the order in which they stand; one without a number was not measured.
fn of_map<'d, D: Deserializer<'d>>(deserializer: D) -> Result<Vec<(String, f64)>, D::Error> {
    let map = serde_json::Map::deserialize(deserializer)?;
    Ok(map.into_iter().filter_map(|(name, value)| Some((name, value.as_f64()?))).collect())
}

/// What the trace of a run says of its kernel and machine, and of the groups that it begins with.
fn system_of(spec: &RunSpec, beginning: &Beginning) -> System {
    let name = spec.kernel.name();
    System {
        release: name.strip_prefix('v').unwrap_or(name).to_string(),
        node: spec.machine.name.clone(),
        architecture: String::new(),
        cpus: u32::try_from(spec.machine.topology.nr_cpus()).ok(),
        origin: Origin::Modelled.name().to_string(),
        kernel: name.to_string(),
        seed: Some(spec.seed),
        hz: Some(spec.machine.hz),
        topology: verify::lines_of(&spec.machine.topology),
        groups: verify::lines_of_groups(&beginning.cgroups),
        members: verify::members_of_groups(&beginning.tasks),
        recorded: Vec::new(),
    }
}

/// What looks on while a run goes on, beside what every run measures.
pub trait Onlooker {
    /// Takes the next event.
    fn event(&mut self, event: &Event<'_>);

    /// Whether the tries of balancing are to be noted, too.
    fn wants_balancing(&self) -> bool {
        false
    }

    /// Takes the next try of balancing. They come in order of time, but up to [`SLICE`] after the events of that time.
    fn balanced(&mut self, note: &BalanceNote, kernel: &Scheduler) {
        let _ = (note, kernel);
    }

    /// Whether updates and scans of the masks of idle CPUs are to be noted, too (the RFC `idle-cpumask-v7`).
    fn wants_idle_masks(&self) -> bool {
        false
    }

    /// Takes the next of those. They come in order of time, as tries of balancing do.
    fn idle_mask(&mut self, note: &IdleMaskNote) {
        let _ = note;
    }

    /// Looks at the engine at the end.
    fn ended(&mut self, engine: &Engine) {
        let _ = engine;
    }
}

/// Nobody looks on.
impl Onlooker for () {
    fn event(&mut self, _: &Event<'_>) {}
}

/// Virtual time between two looks at whether to stop early.
const SLICE: Ns = Ns(50_000_000);

/// Runs a spec while somebody looks on. Gives `None`, and leaves no trace, when `stop` was set before the end.
///
/// # Errors
/// The kernel is not modelled, the workload's options are wrong, or the trace cannot be written.
pub fn run_watched(
    spec: &RunSpec,
    stop: &AtomicBool,
    onlooker: &mut dyn Onlooker,
) -> Result<Option<RunResult>, LabError> {
    let started = Instant::now();
    let mut workload = workloads::build(&spec.workload)?;
    let rules = spec.kernel.rules("an onlooker")?.clone();
    let mut engine = Engine::new(rules, spec.machine.clone(), spec.seed);
    engine.set_tracing(true);
    engine.set_probes(spec.probes);
    if let Some((problem, hint)) = engine.refusal(&*workload) {
        return Err(LabError::new(problem, hint));
    }
    let begin = begin_of(spec);
    let warmup = spec.warmup.unwrap_or_else(|| settling(engine.kernel()));
    workload.settle(warmup);
    while engine.now() < begin {
        engine.run_until(begin, &mut ());
    }
    let number = engine.start_on(workload, first_cpu_of(spec));
    let beginning = Beginning::of(&engine, number, spec.probes);
    let trace = spec.trace.as_deref().map(|path| TraceFile::create(path, None)).transpose()?;
    engine.set_balance_notes(onlooker.wants_balancing());
    engine.set_idle_mask_notes(onlooker.wants_idle_masks());
    let measures = (
        Filter { sink: DigestSink::default(), keep: is_typed as fn(&Event<'_>) -> bool },
        Metrics::new(spec.machine.topology.nr_cpus(), begin).beside(engine.background().collect()),
    );
    let mut sinks = (measures, trace);
    sinks.system(&system_of(spec, &beginning));
    let mut course = Course::new(begin, warmup, spec.duration);
    let mut until = begin;
    while engine.now() == until {
        course.look(&engine, number, &mut sinks.0.1);
        if course.is_over(until) {
            break;
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        until = course.next_look(until);
        let mut looked_on = fairlab_event::sink_fn(|event: &Event<'_>| onlooker.event(event));
        engine.run_while(until, &mut (&mut sinks, &mut looked_on), &|| !stop.load(Ordering::Relaxed));
        drop(looked_on);
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if let Some(problem) = engine.workload(number).problem() {
            return Err(LabError::new(problem, "correct the workload"));
        }
        for note in engine.take_balance_notes() {
            onlooker.balanced(&note, engine.kernel());
        }
        for note in engine.take_idle_mask_notes() {
            onlooker.idle_mask(&note);
        }
    }
    onlooker.ended(&engine);
    let measured = course.measured(&engine, number)?;
    Ok(Some(RunResult { beginning, ..finish(spec, &engine, (number, &measured), sinks, started)? }))
}

/// The time between two looks at a workload whose threads are not all at work: at least so long.
const SHORTEST: Ns = Ns(10_000);

/// A workload whose threads are not all at work by then never is, in virtual time.
const PATIENCE: Ns = Ns::from_secs(600);

/// How far a run is: the workload begins, settles, and is measured.
struct Course {
    begin: Ns,
    warmup: Ns,
    duration: Ns,
    /// When it will have settled.
    settled: Option<Ns>,
    measured: Option<Measured>,
}

/// What is measured of a run, beside what events tell.
struct Measured {
    begin: Ns,
    settled: Ns,
    pace: Pace,
    /// Context switches before.
    switches: u64,
}

impl Course {
    fn new(begin: Ns, warmup: Ns, duration: Ns) -> Course {
        let settled = (warmup == Ns::ZERO).then_some(begin);
        Course { begin, warmup, duration, settled, measured: None }
    }

    /// When to look again: at the instant from which on it is measured, and whenever its pace is to be noted.
    fn next_look(&self, now: Ns) -> Ns {
        match (&self.measured, self.settled) {
            (Some(measured), _) => {
                (now + SLICE).min(measured.pace.next()).min(measured.settled + self.duration)
            }
            (None, Some(settled)) => (now + SLICE).min(settled),
            // Soon at first, for a workload may be short: the delay is an eighth of what has passed.
            (None, None) => {
                now + Ns(now.since(self.begin).0 / 8).clamp(SHORTEST, self.warmup.min(SLICE).max(SHORTEST))
            }
        }
    }

    fn is_over(&self, now: Ns) -> bool {
        match &self.measured {
            Some(measured) => now >= measured.settled + self.duration,
            None => now.since(self.begin) > PATIENCE + self.duration,
        }
    }

    /// Looks at the workload: measuring begins as soon as it has settled.
    fn look(&mut self, engine: &Engine, number: usize, metrics: &mut Metrics) {
        let (now, workload) = (engine.now(), engine.workload(number));
        if self.settled.is_none() {
            self.settled = workload.settled().map(|settled| settled.max(now));
        }
        match &mut self.measured {
            None if self.settled.is_some_and(|settled| now >= settled) => {
                metrics.begin(now);
                let switches = engine.counters().switches;
                self.measured =
                    Some(Measured { begin: self.begin, settled: now, pace: Pace::new(now), switches });
            }
            Some(measured) if now >= measured.pace.next() => {
                let switches = engine.counters().switches - measured.switches;
                measured.pace.mark(now, workload.progress().map_or(switches, |(_, work)| work));
            }
            _ => {}
        }
    }

    /// What was measured until the end.
    fn measured(self, engine: &Engine, number: usize) -> Result<Measured, LabError> {
        let lasted = engine.now().since(self.begin).as_secs_f64();
        let Some(mut measured) = self.measured else {
            return Err(LabError::new(
                format!("the workload has not settled within {lasted} s, so nothing of it was measured"),
                "--warmup 0 measures from its start; a shorter --warmup may do",
            ));
        };
        let switches = engine.counters().switches - measured.switches;
        let work = engine.workload(number).progress().map_or(switches, |(_, work)| work);
        measured.pace.mark(engine.now(), work);
        Ok(measured)
    }
}

/// When the workload starts. A real one starts at some instant between two ticks, which is chance: here it is the seed's.
fn begin_of(spec: &RunSpec) -> Ns {
    spec.machine.chance.phase(spec.seed, "begin", spec.machine.tick())
}

fn first_cpu_of(spec: &RunSpec) -> Cpu {
    let topology = &spec.machine.topology;
    let named = spec.first_cpu.filter(|first| topology.cpus().any(|cpu| cpu == *first));
    named.unwrap_or_else(|| Cpu(spec.machine.chance.first_cpu(spec.seed, topology.nr_cpus()) as u32))
}

type Sinks = ((Filter<DigestSink, fn(&Event<'_>) -> bool>, Metrics), Option<TraceFile>);

/// Whether an event is there without probes as well.
fn is_typed(event: &Event<'_>) -> bool {
    !matches!(event.kind, EventKind::Kprobe { .. } | EventKind::Other { .. })
}

/// Adds how much work was done a second, and what each piece of it cost of the events whose rates are known: fewer switches
/// a second may be less work.
pub(crate) fn add_work(metrics: &mut Vec<(String, f64)>, counts: &Counts, work: u64, seconds: f64) {
    if seconds <= 0.0 {
        return;
    }
    let costs = [
        ("involuntary_switches", counts.involuntary_switches),
        ("switches", counts.switches),
        ("migrations", counts.migrations),
    ];
    let is_known = |event: &str| metrics.iter().any(|(name, _)| *name == format!("{event}_per_s"));
    let costs = costs.into_iter().filter(|(event, _)| work > 0 && is_known(event));
    let costs = costs.map(|(event, count)| (format!("{event}{PER_WORK}"), count as f64 / work as f64));
    let costs = costs.collect::<Vec<_>>();
    metrics.push(("throughput".to_string(), work as f64 / seconds));
    metrics.extend(costs);
}

fn finish(
    spec: &RunSpec,
    engine: &Engine,
    (number, measured): (usize, &Measured),
    sinks: Sinks,
    started: Instant,
) -> Result<RunResult, LabError> {
    let ((digest, metrics), trace) = sinks;
    let trace_losses = trace.map(TraceFile::finish).transpose()?.unwrap_or_default();
    let workload = engine.workload(number);
    let simulated = engine.now().since(measured.settled);
    let seconds = simulated.as_secs_f64();
    let counts = metrics.into_counts(engine.now());
    let mut metrics: Vec<(String, f64)> =
        counts.metrics().into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    if let Some((_, count)) = workload.progress() {
        add_work(&mut metrics, &counts, count, seconds);
    }
    metrics.extend(workload.metrics());
    Ok(RunResult {
        kernel: spec.kernel.name().to_string(),
        machine: spec.machine.name.clone(),
        workload: spec.workload.join(" "),
        seed: spec.seed,
        digest: digest.sink.digest().to_string(),
        begin_ns: Some(measured.begin.0),
        settled_ns: Some(measured.settled.0),
        early_excess: measured.pace.excess(),
        simulated_ns: simulated.0,
        wall_ns: started.elapsed().as_nanos() as u64,
        switches: engine.counters().switches - measured.switches,
        metrics,
        counts,
        output: workload.output(engine.now()),
        trace_losses,
        schedstat: engine.kernel().schedstat(engine.now(), false),
        schedstat_searches: engine.kernel().schedstat(engine.now(), true),
        beginning: Beginning::default(),
    })
}
