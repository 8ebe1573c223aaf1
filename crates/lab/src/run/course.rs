//! How a run goes: a workload begins, settles, and is measured, on an engine that drives any scheduler.
//!
//! Must not know: which scheduler that is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use fairlab_analysis::balancing::Balancing;
use fairlab_analysis::causes::{Causes, tells_decision};
use fairlab_analysis::counts::RunCounts;
use fairlab_analysis::metrics::Metrics;
use fairlab_analysis::selector::TimeRange;
use fairlab_analysis::statistics::PER_WORK;
use fairlab_event::{Cpu, DigestSink, Event, EventKind, Filter, Ns, Pid, Sink, System};
use fairlab_files::caught;
use fairlab_files::shell::{line_of, quoted};
use fairlab_recording::TraceFile;
use fairlab_sim::workload::{MemberProgress, Workload, per_second};
use fairlab_sim::{Engine, SchedulerCore};

use super::{RunResult, RunSpec};
use crate::LabError;
use crate::counters::Reading;
use crate::initial_lists::InitialLists;
use crate::names::places_of;
use crate::setting::{MARGIN, duration};
use crate::warm_up::WorkPace;

/// Virtual time between two looks at whether to stop early.
const SLICE: Ns = Ns(50_000_000);

/// Does something on an engine. What breaks there ends as one report: what, when, and the line `again` that repeats it.
///
/// # Errors
/// It refuses, or an assertion did not hold.
pub(crate) fn reported<C: SchedulerCore, T>(
    engine: &mut Engine<C>,
    again: &dyn Fn() -> String,
    act: impl FnOnce(&mut Engine<C>) -> Result<T, LabError>,
) -> Result<T, LabError> {
    caught(|| act(engine)).unwrap_or_else(|broken| {
        let (name, now) = (engine.core().name(), engine.now());
        Err(LabError::fault(format!("{name}, {now} s after the start of virtual time: {broken}"), &again()))
    })
}

/// The line that makes a run again.
fn again(spec: &RunSpec) -> String {
    let (workload, kernel, machine) =
        (line_of(&spec.workload), quoted(spec.kernel.name()), quoted(&spec.machine.name));
    let warmup = spec.warmup.map_or_else(String::new, |warmup| format!(" --warmup {}", duration(warmup)));
    let exact = if spec.machine.chance.is_none() { " --exact" } else { "" };
    format!(
        "fairlab run {workload} --kernel {kernel} --machine {machine} --seed {} --duration {}{warmup}{exact}",
        spec.seed,
        duration(spec.duration)
    )
}

/// Runs a spec on an engine that is at rest. `list` lists what the run begins with; `onlooker` gets the events, too. Gives `None`, and leaves
/// no trace, when `stop` was set before the end.
///
/// # Errors
/// The workload's options are wrong, it cannot run there, or the trace cannot be written.
pub(crate) fn carry_out<C: SchedulerCore>(
    spec: &RunSpec,
    workload: Box<dyn Workload>,
    engine: &mut Engine<C>,
    warmup: Ns,
    list: &dyn Fn(&Engine<C>, usize, bool) -> InitialLists,
    onlooker: &mut dyn Sink,
    stop: &AtomicBool,
) -> Result<Option<RunResult>, LabError> {
    reported(engine, &|| again(spec), |engine| go(spec, workload, engine, warmup, list, onlooker, stop))
}

fn go<C: SchedulerCore>(
    spec: &RunSpec,
    mut workload: Box<dyn Workload>,
    engine: &mut Engine<C>,
    warmup: Ns,
    list: &dyn Fn(&Engine<C>, usize, bool) -> InitialLists,
    onlooker: &mut dyn Sink,
    stop: &AtomicBool,
) -> Result<Option<RunResult>, LabError> {
    let started = Instant::now();
    engine.set_tracing(true);
    engine.set_probes(spec.probes);
    engine.set_decisions(spec.causes || spec.decisions);
    if spec.by_name.balancing {
        engine.set_balancing_told(true);
    }
    if let Some((problem, hint)) = engine.refusal(&*workload) {
        return Err(LabError::new(problem, hint));
    }
    let begin = begin_of(spec);
    workload.settle(warmup);
    while engine.now() < begin {
        engine.run_until(begin, &mut ());
    }
    let number = engine.start_on(workload, first_cpu_of(spec));
    let beginning = list(engine, number, spec.probes);
    let trace = spec.trace.as_deref().map(|path| TraceFile::create(path, None)).transpose()?;
    let measures = (
        Filter { sink: DigestSink::default(), keep: is_typed as fn(&Event<'_>) -> bool },
        Metrics::new(spec.machine.topology.nr_cpus(), begin)
            .beside(engine.background().collect())
            .by_name(spec.by_name.clone(), Some(places_of(&spec.machine.topology)))
            .within(spec.time),
    );
    let mut sinks = RunSinks {
        measured: (measures, trace),
        told: Told {
            causes: spec.causes.then(Causes::new),
            balancing: spec.by_name.balancing.then(Balancing::default),
            until: spec.time.to,
        },
        tells: spec.causes || spec.decisions || spec.by_name.balancing,
        traces_decisions: spec.decisions,
    };
    sinks.system(&system_of(spec, &beginning));
    let mut course = RunCourse {
        time: spec.time,
        counts: spec.by_name.counters,
        ..RunCourse::new(begin, warmup, spec.duration)
    };
    let mut until = begin;
    while engine.now() == until {
        course.look(engine, number, &mut sinks);
        if course.is_over(until) {
            course.check_end(engine.now(), engine.workload(number).runtime(), spec)?;
            break;
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        until = course.next_look(until);
        engine.run_while(until, &mut (&mut sinks, &mut *onlooker), &|| !stop.load(Ordering::Relaxed));
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if let Some(problem) = engine.workload(number).problem() {
            return Err(LabError::new(problem, "correct the workload"));
        }
    }
    let measured = course.measured(engine, number, spec)?;
    Ok(Some(RunResult { beginning, ..finish(spec, engine, (number, &measured), sinks, started)? }))
}

/// What the trace of a run says of its kernel and machine, and of the groups that it begins with.
fn system_of(spec: &RunSpec, beginning: &InitialLists) -> System {
    let name = spec.kernel.name();
    System {
        release: spec.kernel.told_release(),
        node: spec.machine.name.clone(),
        architecture: String::new(),
        cpus: u32::try_from(spec.machine.topology.nr_cpus()).ok(),
        origin: spec.kernel.origin().name().to_string(),
        kernel: name.to_string(),
        seed: Some(spec.seed),
        hz: Some(spec.machine.hz),
        topology: fairlab_recording::lines_of(&spec.machine.topology),
        groups: fairlab_recording::lines_of_groups(&beginning.cgroups),
        members: fairlab_recording::members_of_groups(&beginning.tasks),
        ..System::default()
    }
}

/// The time between two looks at a workload whose threads are not all at work: at least so long.
const SHORTEST: Ns = Ns(10_000);

/// A workload whose threads are not all at work by then never is, in virtual time.
const PATIENCE: Ns = Ns::from_secs(600);

/// How far a run is: the workload begins, settles, and is measured.
struct RunCourse {
    begin: Ns,
    warmup: Ns,
    duration: Ns,
    /// When it will have settled.
    settled: Option<Ns>,
    measured: Option<RunMeasures>,
    /// What ends then is measured.
    time: TimeRange,
    /// Whether the scheduler's own counters are read.
    counts: bool,
}

/// What was done by some time of a run.
#[derive(Default)]
struct WorkDoneAt {
    at: Ns,
    work: Option<u64>,
    /// When the last of it was done, where that is noted.
    worked_at: Option<Ns>,
    switches: u64,
    /// What each of several workloads counts.
    members: Vec<u64>,
    /// What the scheduler has counted itself, where that is wanted.
    counted: Option<Reading>,
}

impl WorkDoneAt {
    fn by_now<C: SchedulerCore>(engine: &mut Engine<C>, number: usize, counts: bool) -> WorkDoneAt {
        let counted = counts.then(|| Reading::of(engine));
        let workload = engine.workload(number);
        WorkDoneAt {
            at: engine.now(),
            work: workload.progress().map(|(_, work)| work),
            worked_at: workload.counted_at(),
            switches: engine.counters().switches,
            members: workload.members().iter().map(|member| member.count).collect(),
            counted,
        }
    }
}

/// What is measured of a run, beside what events tell.
struct RunMeasures {
    begin: Ns,
    settled: Ns,
    pace: WorkPace,
    /// Context switches before.
    switches: u64,
    /// What the scheduler had counted before, where that is wanted.
    counted: Option<Reading>,
    /// What was done when the stretch that is measured began, and when it ended, if it is only a stretch.
    from: Option<WorkDoneAt>,
    to: Option<WorkDoneAt>,
}

impl RunMeasures {
    /// What was done when it had settled, which what is measured leaves out.
    fn begun(&self) -> WorkDoneAt {
        let (at, switches, counted) = (self.settled, self.switches, self.counted.clone());
        WorkDoneAt { at, switches, counted, ..WorkDoneAt::default() }
    }
}

impl RunCourse {
    fn new(begin: Ns, warmup: Ns, duration: Ns) -> RunCourse {
        let settled = (warmup == Ns::ZERO).then_some(begin);
        RunCourse {
            begin,
            warmup,
            duration,
            settled,
            measured: None,
            time: TimeRange::default(),
            counts: false,
        }
    }

    /// When to look again: at the instant from which on it is measured, and whenever its pace is to be noted.
    fn next_look(&self, now: Ns) -> Ns {
        match (&self.measured, self.settled) {
            (Some(measured), _) => {
                let ends = [self.time.from, self.time.to].into_iter().flatten().filter(|end| *end > now);
                let next = ends.fold(now + SLICE, Ns::min);
                next.min(measured.pace.next()).min(measured.settled + self.duration)
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

    /// Refuses a workload that still runs long after its own end: what it did a second would count time without work.
    fn check_end(&self, now: Ns, runtime: Option<Ns>, spec: &RunSpec) -> Result<(), LabError> {
        let Some((measured, runtime)) = self.measured.as_ref().zip(runtime) else { return Ok(()) };
        let beyond = now.since(measured.settled + runtime);
        if beyond == Ns::ZERO || beyond < runtime.min(MARGIN) {
            return Ok(());
        }
        let (kernel, seed) = (spec.kernel.name(), spec.seed);
        let [runtime, beyond] = [runtime, beyond].map(Ns::as_secs_f64);
        Err(LabError::new(
            format!(
                "the workload has not ended on {kernel} with seed {seed}: it runs for {runtime} s, and still ran {beyond} s later"
            ),
            "correct the workload; a --duration that is no longer than it runs measures a part",
        ))
    }

    /// Looks at the workload: measuring begins as soon as it has settled.
    fn look<C: SchedulerCore>(&mut self, engine: &mut Engine<C>, number: usize, sinks: &mut RunSinks) {
        let (now, counts) = (engine.now(), self.counts);
        if self.settled.is_none() {
            self.settled = engine.workload(number).settled().map(|settled| settled.max(now));
        }
        match &mut self.measured {
            None if self.settled.is_some_and(|settled| now >= settled) => {
                sinks.begin(now);
                let counted = self.counts.then(|| Reading::of(engine));
                let switches = engine.counters().switches;
                engine.forget_longest_search();
                self.measured = Some(RunMeasures {
                    begin: self.begin,
                    settled: now,
                    pace: WorkPace::new(now),
                    switches,
                    counted,
                    from: None,
                    to: None,
                });
            }
            Some(measured) if now >= measured.pace.next() => {
                let switches = engine.counters().switches - measured.switches;
                let progress = engine.workload(number).progress();
                measured.pace.mark(now, progress.map_or(switches, |(_, work)| work));
            }
            _ => {}
        }
        let Some(measured) = self.measured.as_mut().filter(|_| !self.time.is_all()) else { return };
        if measured.from.is_none() && self.time.from.is_none_or(|from| now >= from) {
            measured.from = Some(WorkDoneAt::by_now(engine, number, counts));
            engine.forget_longest_search();
            // Waits that go on count when they end.
            sinks.told.begin(now);
        }
        if measured.to.is_none() && self.time.to.is_some_and(|to| now >= to) {
            measured.to = Some(WorkDoneAt::by_now(engine, number, counts));
        }
    }

    /// What was measured until the end.
    fn measured<C: SchedulerCore>(
        self,
        engine: &mut Engine<C>,
        number: usize,
        spec: &RunSpec,
    ) -> Result<RunMeasures, LabError> {
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
        if !self.time.is_all() {
            let to = measured.to.get_or_insert_with(|| WorkDoneAt::by_now(engine, number, self.counts)).at;
            if measured.from.as_ref().is_none_or(|from| from.at >= to) {
                return Err(nothing_measured(spec, measured.settled, engine.now()));
            }
        }
        Ok(measured)
    }
}

fn nothing_measured(spec: &RunSpec, settled: Ns, end: Ns) -> LabError {
    let (kernel, seed, time) = (spec.kernel.name(), spec.seed, spec.time);
    let [settled, end] = [settled, end].map(Ns::as_secs_f64);
    LabError::new(
        format!(
            "nothing of the run of {kernel} with seed {seed} lies in {time}: it is measured from {settled} s to {end} s"
        ),
        "give a --time within; --warmup 0 measures from the beginning, --duration says how long",
    )
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

type DigestedMetrics = (Filter<DigestSink, fn(&Event<'_>) -> bool>, Metrics);

/// Where events go.
struct RunSinks {
    measured: (DigestedMetrics, Option<TraceFile>),
    told: Told,
    /// Whether any event goes to those, or may be a decision.
    tells: bool,
    /// Whether the trace holds decisions.
    traces_decisions: bool,
}

/// Where decisions go, and with them all events.
struct Told {
    causes: Option<Causes>,
    balancing: Option<Balancing>,
    /// What comes after is no part of what is measured.
    until: Option<Ns>,
}

impl Told {
    fn begin(&mut self, now: Ns) {
        if let Some(causes) = &mut self.causes {
            causes.begin(now);
        }
        if let Some(balancing) = &mut self.balancing {
            balancing.begin();
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        if self.until.is_none_or(|until| event.time <= until) {
            self.causes.event(event);
            self.balancing.event(event);
        }
    }
}

impl RunSinks {
    /// All is measured from now on.
    fn begin(&mut self, now: Ns) {
        self.measured.0.1.begin(now);
        self.told.begin(now);
    }
}

/// Decisions go only to the sinks of what is told, and into the trace if that is asked for: all else is as without them.
impl Sink for RunSinks {
    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        if self.tells {
            self.told.event(event);
            if tells_decision(event) {
                if self.traces_decisions {
                    self.measured.1.event(event);
                }
                return;
            }
        }
        self.measured.event(event);
    }

    fn system(&mut self, system: &System) {
        self.measured.system(system);
        self.told.causes.system(system);
    }

    fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) {
        self.measured.allowed(pid, cpus);
        self.told.causes.allowed(pid, cpus);
    }
}

/// Whether an event is there without probes as well.
fn is_typed(event: &Event<'_>) -> bool {
    !matches!(event.kind, EventKind::Kprobe { .. } | EventKind::Other { .. })
}

/// Adds how much work was done, `throughput` a second, and what each piece of it cost of the events whose rates are known: fewer switches
/// a second may be less work.
pub(crate) fn add_work(metrics: &mut Vec<(String, f64)>, counts: &RunCounts, work: u64, throughput: f64) {
    let costs = [
        ("involuntary_switches", counts.involuntary_switches),
        ("switches", counts.switches),
        ("migrations", counts.migrations),
    ];
    let is_known = |event: &str| metrics.iter().any(|(name, _)| *name == format!("{event}_per_s"));
    let costs = costs.into_iter().filter(|(event, _)| work > 0 && is_known(event));
    let costs = costs.map(|(event, count)| (format!("{event}{PER_WORK}"), count as f64 / work as f64));
    let costs = costs.collect::<Vec<_>>();
    metrics.push(("throughput".to_string(), throughput));
    metrics.extend(costs);
}

fn finish<C: SchedulerCore>(
    spec: &RunSpec,
    engine: &mut Engine<C>,
    (number, measured): (usize, &RunMeasures),
    sinks: RunSinks,
    started: Instant,
) -> Result<RunResult, LabError> {
    let RunSinks { measured: ((digest, metrics), trace), told, .. } = sinks;
    let trace_losses =
        trace.map(TraceFile::finish).transpose()?.map_or_else(String::new, |losses| losses.to_string());
    let whole = (measured.begun(), WorkDoneAt::by_now(engine, number, spec.by_name.counters));
    let workload = engine.workload(number);
    let (from, to) = match (&measured.from, &measured.to) {
        (Some(from), Some(to)) => (from, to),
        _ => (&whole.0, &whole.1),
    };
    let simulated = to.at.since(from.at);
    let counts = metrics.into_counts(engine.now());
    let mut metrics: Vec<(String, f64)> =
        counts.metrics().into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    if let Some(count) = to.work {
        let done = count - from.work.unwrap_or(0);
        if simulated > Ns::ZERO {
            add_work(&mut metrics, &counts, done, per_second(done, to.worked_at, from.at, to.at));
        }
    }
    metrics.extend(workload.members().iter().enumerate().filter_map(|(place, member)| {
        let count_at = |done: &WorkDoneAt| done.members.get(place).copied().unwrap_or(0);
        let part = MemberProgress {
            count: count_at(to) - count_at(from),
            until: Some(member.until.map_or(to.at, |until| until.min(to.at))),
            ..*member
        };
        Some((format!("{} throughput", member.name), part.per_second(from.at, to.at)?))
    }));
    if spec.time.is_all() {
        // The program counts all of its course.
        metrics.extend(workload.metrics());
    }
    if let (Some(before), Some(after)) = (&from.counted, &to.counted) {
        metrics.extend(after.since(before)?);
    }
    metrics.extend(told.balancing.iter().flat_map(Balancing::metrics));
    metrics.extend(counts.metrics_by_name());
    Ok(RunResult {
        side: None,
        kernel: spec.kernel.name().to_string(),
        machine: spec.machine.name.clone(),
        workload: line_of(&spec.workload),
        seed: spec.seed,
        digest: digest.sink.digest().to_string(),
        begin_ns: Some(measured.begin.0),
        settled_ns: Some(measured.settled.0),
        early_excess: measured.pace.excess(),
        simulated_ns: simulated.0,
        wall_ns: started.elapsed().as_nanos() as u64,
        switches: to.switches - from.switches,
        metrics,
        causes: told.causes.map(|causes| causes.finish(to.at)),
        counts,
        output: workload.output(engine.now()),
        trace_losses,
        schedstat: String::new(),
        schedstat_searches: String::new(),
        beginning: InitialLists::default(),
    })
}

#[cfg(test)]
mod tests {
    use fairlab_kernel::core::KernelContext;
    use fairlab_kernel::invariant::Looks;
    use fairlab_kernel::{CpuMask, Policy, TaskSpec};
    use fairlab_sim::Model;

    use super::*;
    use crate::{Kernel, machines};

    #[test]
    fn a_broken_invariant_is_one_report_with_the_line_that_repeats_it() {
        let kernel = Kernel::parse("v6.12").expect("a kernel");
        let machine = machines::find("vm4").expect("a machine").exact();
        let mut model = Model::new(kernel.rules("a test").expect("its rules").clone(), &machine);
        let scheduler = model.scheduler_mut();
        scheduler.set_here(Cpu(0), KernelContext::Task, Ns::ZERO);
        let spec = TaskSpec {
            comm: "lost".into(),
            pid: Pid(77),
            tgid: Pid(77),
            policy: Policy::Normal,
            nice: 0,
            allowed: CpuMask::single(Cpu(1)),
            kthread: false,
            per_cpu_kthread: false,
        };
        let lost = scheduler.new_task(&spec, Cpu(0));
        scheduler.wake_up_new_task(lost, Cpu(0));
        model.look_through(Looks::new(1, 0).strict());
        let mut engine = Engine::with_core(model, machine.clone(), 7);
        let workload = ["pipe", "-l", "10"].map(String::from).to_vec();
        let spec = RunSpec {
            warmup: Some(Ns::ZERO),
            ..RunSpec::new(kernel, machine, workload, 7, Ns::from_secs(1))
        };
        let never = AtomicBool::new(false);
        let pipe = crate::workloads::build(&spec.workload).expect("pipe");
        let list = &InitialLists::of_groups;
        let outcome = carry_out(&spec, pipe, &mut engine, Ns::ZERO, list, &mut (), &never);
        let fault = outcome.expect_err("its state is broken");
        assert!(fault.is_fault(), "{fault}");
        let report = fault.to_string();
        let broken = "v6.12, 0.000000000 s after the start of virtual time: the scheduler's state is broken: \
                      task 77: it is queued on CPU 0, which it may not use (";
        assert!(report.starts_with(broken), "{report}");
        let again = ": fairlab run pipe -l 10 --kernel v6.12 --machine vm4 --seed 7 --duration 1s --warmup 0s --exact";
        assert!(report.ends_with(again) && !report.contains('\n'), "{report}");
    }
}
