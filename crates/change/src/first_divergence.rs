//! Two kernels of one kind, built from sources or modelled: the first event in which they differ, and their state before it.
//!
//! The kernels run apart, without chance, and kernel work takes no time. So both runs are equal up to the first decision that
//! differs. A run gives a digest per slice of its events. The first slice that differs is compared event by event. Then both
//! kernels run again to the instant before, and show their state.
//!
//! Must not know: how an answer is printed.

use std::sync::atomic::{AtomicBool, Ordering};

use fairlab_analysis::causes::{tells_decision, tells_work};
use fairlab_event::{Context, Cpu, DigestSink, Event, EventKind, Ns, Sink, sink_fn};
use fairlab_files::shell::{line_of, quoted};
use fairlab_kernel::struct_members::StructMembers;
use fairlab_kernel::{Generation, GroupId, TaskId};
use fairlab_sim::machine::KernelCosts;
use fairlab_sim::{Engine, Inspect, Machine};
use fairlab_trace::ftrace_text::FtraceTextWriter;
use fairlab_verify::oracle::{CheckCount, OracleCheck, OracleDifference, OracleFindings, without_costs};
use serde::{Deserialize, Serialize};

use fairlab_lab::oracle::{OracleRun, OracleRuns};
use fairlab_lab::{Kernel, LabError, Progress, RunSetting, workloads};

/// Virtual time between two digests.
const SLICE: Ns = Ns(1_000_000);

/// What is counted of a run.
const COUNTED: [OracleCheck; 3] = [OracleCheck::Pick, OracleCheck::WakeupCpu, OracleCheck::Balance];

/// Two kernels of one kind.
pub struct KernelPair<'t> {
    one: &'t Kernel,
    other: &'t Kernel,
    stop: &'t AtomicBool,
}

/// How far a run has come at the end of a slice.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct DigestSlice {
    digest: String,
    counts: [u64; 3],
}

/// An event.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct PairEvent {
    time_ns: u64,
    /// Where it happens, and the CPU that it is about.
    cpus: Vec<u32>,
    name: String,
    /// Name and fields.
    text: String,
    /// What was decided; none where something is only counted, or about to happen.
    decides: Option<OracleCheck>,
    /// It tells the reason of a decision, and is none.
    tells: bool,
}

/// What is asked of a run.
#[derive(Clone, Copy)]
enum PairQuestion<'a> {
    /// Its digests, slice by slice.
    Slices,
    /// The events of one slice.
    Events { from: Ns },
    /// What these CPUs hold at an instant.
    State { at: Ns, cpus: &'a [u32] },
}

/// What a run gives.
#[derive(Serialize, Deserialize)]
enum PairData {
    Slices(Vec<DigestSlice>),
    Events(Vec<PairEvent>),
    State(Vec<(String, String)>),
}

/// The first difference, and what both decided about it.
pub struct FirstDivergence {
    /// Where both part, and in which event.
    pub first: OracleDifference,
    /// What the first kernel emitted of its decisions then and there, with reasons; nothing where it tells none.
    pub decisions: Vec<String>,
    /// What the other emitted.
    pub decisions_there: Vec<String>,
}

/// A run's engine with what it was made of.
struct PairCase<'c> {
    machine: &'c Machine,
    setting: &'c RunSetting,
    seed: u64,
}

/// What was counted of both up to where they part, and how they do, if they do.
type PairComparison = ([u64; 3], Option<FirstDivergence>);

/// The slices of both runs.
type BothSlices = (Vec<DigestSlice>, Vec<DigestSlice>);

impl KernelPair<'_> {
    /// Two kernels as twins; `None` where one is not built from sources.
    pub fn of<'t>(one: &'t Kernel, other: &'t Kernel, stop: &'t AtomicBool) -> Option<KernelPair<'t>> {
        let built = |kernel: &Kernel| matches!(kernel, Kernel::Source(_));
        (built(one) && built(other)).then_some(KernelPair { one, other, stop })
    }

    /// Two kernels as twins; `None` where they are neither both built from sources nor both modelled.
    pub fn alike<'t>(one: &'t Kernel, other: &'t Kernel, stop: &'t AtomicBool) -> Option<KernelPair<'t>> {
        let modelled = |kernel: &Kernel| matches!(kernel, Kernel::Modelled(_));
        let both_modelled = modelled(one) && modelled(other);
        if both_modelled { Some(KernelPair { one, other, stop }) } else { KernelPair::of(one, other, stop) }
    }

    /// Where the runs of one seed part; `None`: they do not, or it was stopped.
    ///
    /// # Errors
    /// One of the two cannot run the workload there.
    pub fn parting(&self, setting: &RunSetting, seed: u64) -> Result<Option<FirstDivergence>, LabError> {
        let machine = exact(setting);
        let case = PairCase { machine: &machine, setting, seed };
        let Some(found) = self.found(&case)? else { return Ok(None) };
        Ok(found.1)
    }

    /// Runs both with one seed after the other, to the first with which they differ.
    ///
    /// # Errors
    /// One of the two cannot run the workload there.
    pub fn follow(
        &self,
        setting: &RunSetting,
        seeds: u64,
        progress: &dyn Fn(Progress),
    ) -> Result<OracleRuns, LabError> {
        let mut followed = OracleRuns::default();
        let total = usize::try_from(seeds).unwrap_or(usize::MAX);
        for at in 0..seeds {
            progress(Progress { done: followed.runs.len(), total });
            let seed = setting.first_seed.wrapping_add(at);
            let Some(findings) = self.findings(setting, seed)? else {
                followed.stopped = true;
                break;
            };
            let differs = findings.first.is_some();
            followed.runs.push(OracleRun { seed, command: self.command(setting, seed), findings });
            if differs {
                break;
            }
        }
        Ok(followed)
    }

    fn command(&self, setting: &RunSetting, seed: u64) -> String {
        format!(
            "fairlab verify --kernel {} --against {} {} --machine {} --seed {seed}",
            quoted(self.other.name()),
            quoted(self.one.name()),
            line_of(&setting.workload),
            quoted(&setting.machine_name)
        )
    }

    /// What one run of both comes to; `None`: it was stopped.
    fn findings(&self, setting: &RunSetting, seed: u64) -> Result<Option<OracleFindings>, LabError> {
        let machine = exact(setting);
        let found = self.found(&PairCase { machine: &machine, setting, seed })?;
        Ok(found.map(|(counts, parting)| {
            let mut findings = OracleFindings::default();
            for (check, all) in COUNTED.into_iter().zip(counts) {
                findings.checks.insert(check, CheckCount { all, agree: all });
            }
            if let Some(FirstDivergence { first, .. }) = parting {
                findings.checks.entry(first.check).or_default().all += 1;
                findings.first = Some(first);
            }
            findings
        }))
    }

    /// What is alike, and where they part; `None`: it was stopped.
    fn found(&self, case: &PairCase<'_>) -> Result<Option<PairComparison>, LabError> {
        let Some((ours, theirs)) = self.both_slices(case)? else { return Ok(None) };
        let differs = (0..ours.len().max(theirs.len())).find(|&at| ours.get(at) != theirs.get(at));
        let alike = differs.map_or(ours.last(), |at| ours[..at.min(ours.len())].last());
        let counts = alike.map_or([0; 3], |slice| slice.counts);
        let Some(slice) = differs else { return Ok(Some((counts, None))) };
        let from = Ns(SLICE.0 * slice as u64);
        let both = (self.events(self.one, case, from)?, self.events(self.other, case, from)?);
        let (Some(ours), Some(theirs)) = both else { return Ok(None) };
        let Some(parting) = self.first(case, &ours, &theirs)? else { return Ok(None) };
        Ok(Some((counts, Some(parting))))
    }

    /// The digests of both; of modelled kernels no further than to the slice in which they part.
    fn both_slices(&self, case: &PairCase<'_>) -> Result<Option<BothSlices>, LabError> {
        if let (Kernel::Modelled(one), Kernel::Modelled(other)) = (self.one, self.other) {
            let mut engines = [ResumableRun::of(one, case)?, ResumableRun::of(other, case)?];
            let mut slices = [Vec::new(), Vec::new()];
            loop {
                if self.stop.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                let mut goes_on = false;
                for (ahead, slices) in engines.iter_mut().zip(&mut slices) {
                    if let Some(slice) = ahead.slice(case)? {
                        slices.push(slice);
                        goes_on = true;
                    }
                }
                if !goes_on || slices[0].last() != slices[1].last() || slices[0].len() != slices[1].len() {
                    let [ours, theirs] = slices;
                    return Ok(Some((ours, theirs)));
                }
            }
        }
        let both = (self.slices(self.one, case)?, self.slices(self.other, case)?);
        Ok(both.0.zip(both.1))
    }

    /// The first event that differs, and what both held just before.
    fn first(
        &self,
        case: &PairCase<'_>,
        ours: &[PairEvent],
        theirs: &[PairEvent],
    ) -> Result<Option<FirstDivergence>, LabError> {
        let told = |all: &[PairEvent]| all.iter().filter(|told| told.tells).cloned().collect::<Vec<_>>();
        let (reasons, reasons_there) = (told(ours), told(theirs));
        let events = |all: &[PairEvent]| all.iter().filter(|told| !told.tells).cloned().collect::<Vec<_>>();
        let (ours, theirs) = (&events(ours)[..], &events(theirs)[..]);
        // What is only counted or about to happen tells less than what is decided.
        let decided = |told: &[PairEvent]| {
            told.iter().filter(|told| told.decides.is_some()).cloned().collect::<Vec<_>>()
        };
        let (decided, decided_there) = (decided(ours), decided(theirs));
        let (ours, theirs) =
            if decided == decided_there { (ours, theirs) } else { (&decided[..], &decided_there[..]) };
        let at = ours.iter().zip(theirs).take_while(|(one, other)| one == other).count();
        let (one, other) = (ours.get(at), theirs.get(at));
        let both = [one, other].into_iter().flatten();
        let Some(earliest) = both.clone().min_by_key(|told| told.time_ns) else { return Ok(None) };
        // What comes later elsewhere follows from it.
        let at_once = both.filter(|told| told.time_ns == earliest.time_ns);
        let mut cpus = at_once.flat_map(|told| told.cpus.clone()).collect::<Vec<_>>();
        cpus.sort_unstable();
        cpus.dedup();
        let before = Ns(earliest.time_ns.saturating_sub(1));
        let (Some(held), Some(held_there)) =
            (self.state(self.one, case, before, &cpus)?, self.state(self.other, case, before, &cpus)?)
        else {
            return Ok(None);
        };
        let words = |told: Option<&PairEvent>| match told {
            Some(told) if told.time_ns > earliest.time_ns => format!("nothing before {} s", Ns(told.time_ns)),
            Some(told) => told.text.clone(),
            None => "nothing then".to_string(),
        };
        let first = OracleDifference {
            time_ns: earliest.time_ns,
            cpu: earliest.cpus.first().copied().unwrap_or(0),
            call: earliest.name.clone(),
            check: earliest.decides.unwrap_or(OracleCheck::Entity),
            subject: "what happens".to_string(),
            leader: words(one),
            follower: words(other),
            state: beside(held, &held_there),
        };
        let of = |reasons: &[PairEvent]| latest_reasons(reasons, earliest.time_ns, &cpus);
        Ok(Some(FirstDivergence { first, decisions: of(&reasons), decisions_there: of(&reasons_there) }))
    }

    fn slices(&self, kernel: &Kernel, case: &PairCase<'_>) -> Result<Option<Vec<DigestSlice>>, LabError> {
        Ok(self.drive(kernel, case, PairQuestion::Slices)?.and_then(|given| match given {
            PairData::Slices(slices) => Some(slices),
            PairData::Events(_) | PairData::State(_) => None,
        }))
    }

    /// The events of one slice.
    fn events(
        &self,
        kernel: &Kernel,
        case: &PairCase<'_>,
        from: Ns,
    ) -> Result<Option<Vec<PairEvent>>, LabError> {
        Ok(self.drive(kernel, case, PairQuestion::Events { from })?.and_then(|given| match given {
            PairData::Events(events) => Some(events),
            PairData::Slices(_) | PairData::State(_) => None,
        }))
    }

    /// What these CPUs hold at an instant.
    fn state(
        &self,
        kernel: &Kernel,
        case: &PairCase<'_>,
        at: Ns,
        cpus: &[u32],
    ) -> Result<Option<Vec<(String, String)>>, LabError> {
        Ok(self.drive(kernel, case, PairQuestion::State { at, cpus })?.and_then(|given| match given {
            PairData::State(state) => Some(state),
            PairData::Slices(_) | PairData::Events(_) => None,
        }))
    }

    /// Asks a run on an engine at rest that has the workload.
    fn drive(
        &self,
        kernel: &Kernel,
        case: &PairCase<'_>,
        ask: PairQuestion<'_>,
    ) -> Result<Option<PairData>, LabError> {
        match kernel {
            Kernel::Source(kernel) => {
                let free = Machine { costs: KernelCosts::NONE, ..case.machine.clone() };
                kernel.drive(&free, self.stop, |core| {
                    let mut engine = Engine::with_core(core, case.machine.clone(), case.seed);
                    let number = begun(&mut engine, case)?;
                    give(&mut engine, number, case, ask).map(Some)
                })
            }
            modelled => {
                let mut ahead = ResumableRun::of(modelled.rules("a run beside another")?, case)?;
                give(&mut ahead.engine, ahead.number, case, ask).map(Some)
            }
        }
    }
}

/// A run without chance. CPUs that take turns on one thread would stand still in the middle of what both do.
fn exact(setting: &RunSetting) -> Machine {
    Machine { in_turn: false, ..setting.machine.clone().exact() }
}

/// Both sides' members beside each other.
fn beside(held: Vec<(String, String)>, there: &[(String, String)]) -> Vec<(String, String, String)> {
    let of = |member: &str| {
        there.iter().find(|(other, _)| other == member).map_or("-".to_string(), |(_, value)| value.clone())
    };
    let both = held.into_iter().map(|(member, value)| (member.clone(), value, of(&member)));
    let mut all = both.collect::<Vec<_>>();
    let only_there = there.iter().filter(|(member, _)| all.iter().all(|(known, ..)| known != member));
    let only_there = only_there
        .map(|(member, value)| (member.clone(), "-".to_string(), value.clone()))
        .collect::<Vec<_>>();
    all.extend(only_there);
    all
}

/// How many reasons are listed of a first divergence.
const REASONS_MAX: usize = 4;

/// The latest decisions about these CPUs up to an instant: those of the instant itself, or else the last one before.
fn latest_reasons(reasons: &[PairEvent], time_ns: u64, cpus: &[u32]) -> Vec<String> {
    let near = reasons
        .iter()
        .filter(|told| told.time_ns <= time_ns && told.cpus.iter().any(|cpu| cpus.contains(cpu)));
    let Some(latest) = near.clone().map(|told| told.time_ns).max() else { return Vec::new() };
    let texts = near.filter(|told| told.time_ns == latest).map(|told| told.text.clone());
    let texts = texts.collect::<Vec<_>>();
    texts[texts.len().saturating_sub(REASONS_MAX)..].to_vec()
}

/// The workload begins on an engine at rest.
fn begun<C: Inspect>(engine: &mut Engine<C>, case: &PairCase<'_>) -> Result<usize, LabError> {
    let workload = workloads::build(&case.setting.workload)?;
    if let Some((problem, hint)) = engine.refusal(&*workload) {
        return Err(LabError::new(problem, hint));
    }
    engine.set_tracing(true);
    Ok(engine.start(workload))
}

fn give<C: Inspect>(
    engine: &mut Engine<C>,
    number: usize,
    case: &PairCase<'_>,
    ask: PairQuestion<'_>,
) -> Result<PairData, LabError> {
    match ask {
        PairQuestion::Slices => {
            let (mut slices, mut at) = (Vec::new(), RunProgress::default());
            while let Some(slice) = at.slice(engine, number, case)? {
                slices.push(slice);
            }
            Ok(PairData::Slices(slices))
        }
        PairQuestion::Events { from } => {
            let mut events = Vec::new();
            engine.run_until(from, &mut ());
            engine.set_decisions(true);
            let mut sink = sink_fn(|event: &Event<'_>| {
                if !tells_work(event) {
                    events.push(told(event));
                }
            });
            engine.run_until(from + SLICE, &mut sink);
            drop(sink);
            Ok(PairData::Events(events))
        }
        PairQuestion::State { at, cpus } => {
            engine.run_until(at, &mut ());
            let groups = engine.groups(number).to_vec();
            Ok(PairData::State(cpus.iter().flat_map(|&cpu| held(engine.core(), Cpu(cpu), &groups)).collect()))
        }
    }
}

/// How far a run is, and what it was so far.
#[derive(Default)]
struct RunProgress {
    until: Ns,
    digest: DigestSink,
    counts: [u64; 3],
}

impl RunProgress {
    /// Runs one slice further; `None` at its end.
    fn slice<C: Inspect>(
        &mut self,
        engine: &mut Engine<C>,
        number: usize,
        case: &PairCase<'_>,
    ) -> Result<Option<DigestSlice>, LabError> {
        if engine.now() != self.until || self.until >= case.setting.duration {
            return Ok(None);
        }
        self.until = (self.until + SLICE).min(case.setting.duration);
        let RunProgress { until, digest, counts } = self;
        let mut sink = sink_fn(|event: &Event<'_>| {
            if !tells_work(event) {
                digest.event(&without_context(event));
            }
            count(event, counts);
        });
        engine.run_until(*until, &mut sink);
        drop(sink);
        if let Some(problem) = engine.workload(number).problem() {
            return Err(LabError::new(problem, "correct the workload"));
        }
        Ok(Some(DigestSlice { digest: self.digest.digest().to_string(), counts: self.counts }))
    }
}

/// A modelled kernel's run, which goes on slice by slice.
struct ResumableRun {
    engine: Engine,
    number: usize,
    at: RunProgress,
}

impl ResumableRun {
    fn of(rules: &Generation, case: &PairCase<'_>) -> Result<ResumableRun, LabError> {
        let core = without_costs(rules.clone(), case.machine);
        let mut engine = Engine::with_core(core, case.machine.clone(), case.seed);
        let number = begun(&mut engine, case)?;
        Ok(ResumableRun { engine, number, at: RunProgress::default() })
    }

    fn slice(&mut self, case: &PairCase<'_>) -> Result<Option<DigestSlice>, LabError> {
        self.at.slice(&mut self.engine, self.number, case)
    }
}

/// An event as [`told`] tells it: in what mode its CPU was may differ long before anything is decided otherwise.
fn without_context<'t>(event: &Event<'t>) -> Event<'t> {
    Event { context: Context::default(), ..*event }
}

fn count(event: &Event<'_>, counts: &mut [u64; 3]) {
    if let Some(at) = decides(event).and_then(|check| COUNTED.iter().position(|counted| *counted == check)) {
        counts[at] += 1;
    }
}

fn decides(event: &Event<'_>) -> Option<OracleCheck> {
    match event.kind {
        EventKind::SchedSwitch(_) => Some(OracleCheck::Pick),
        EventKind::SchedWakeup(_) | EventKind::SchedWakeupNew(_) => Some(OracleCheck::WakeupCpu),
        EventKind::SchedMigrateTask { .. } => Some(OracleCheck::Balance),
        _ => None,
    }
}

fn told(event: &Event<'_>) -> PairEvent {
    let mut writer = FtraceTextWriter::new(Vec::new());
    writer.event(event);
    let bytes = writer.finish().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let line = text.lines().rfind(|line| !line.starts_with('#')).unwrap_or_default();
    // Behind task, CPU and time.
    let body =
        line.split_once(']').and_then(|(_, rest)| rest.split_once(": ")).map_or(line, |(_, body)| body);
    let name = body.split(':').next().unwrap_or_default().to_string();
    let mut cpus = vec![event.cpu.0];
    match event.kind {
        EventKind::SchedWakeup(wakeup) | EventKind::SchedWakeupNew(wakeup) => cpus.push(wakeup.target_cpu.0),
        EventKind::SchedMigrateTask { orig_cpu, dest_cpu, .. } => cpus.extend([orig_cpu.0, dest_cpu.0]),
        _ => {}
    }
    let tells = tells_decision(event);
    if let (true, EventKind::Other { fields, .. }) = (tells, &event.kind) {
        let cpu = fields.unsigned("cpu").and_then(|cpu| u32::try_from(cpu).ok());
        cpus = cpu.map_or(cpus, |cpu| vec![cpu]);
    }
    PairEvent {
        time_ns: event.time.0,
        cpus,
        name,
        text: body.trim().to_string(),
        decides: decides(event),
        tells,
    }
}

/// What a CPU holds: its runqueue, the queues of groups on it, the running task, the waiting tasks.
fn held(core: &impl Inspect, cpu: Cpu, groups: &[GroupId]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut show = |subject: String, fill: &dyn Fn(&mut StructMembers)| {
        let mut members = StructMembers::new();
        fill(&mut members);
        all.extend(
            members
                .into_iter()
                .map(|(member, value)| (format!("{subject} {}", member.name()), value.to_string())),
        );
    };
    let number = cpu.0;
    show(format!("CPU {number}"), &|members| core.members_of_rq(cpu, members));
    let queues = std::iter::once(GroupId::ROOT).chain(groups.iter().copied());
    for (at, group) in queues.enumerate() {
        let name = if at == 0 { "root queue".to_string() } else { format!("queue of group {at}") };
        show(format!("CPU {number} {name}"), &|members| core.members_of_queue(cpu, group, members));
    }
    let running = core.curr(cpu);
    let mut tasks = Vec::new();
    core.fair_tasks(cpu, &mut tasks);
    tasks.retain(|&task| task != running);
    if !core.runs_idle_task(cpu) {
        show(format!("running {}", core.label_of(running)), &|members| {
            core.members_of_task(running, members);
        });
    }
    for &task in &tasks {
        show(core.label_of(task), &|members| core.members_of_task(task, members));
    }
    let standing = |task: TaskId, subject: String| {
        let told = core.standing_of(task);
        told.into_iter().map(move |(member, value)| (format!("{subject} {member}"), value.to_string()))
    };
    if !core.runs_idle_task(cpu) {
        all.extend(standing(running, format!("running {}", core.label_of(running))));
    }
    all.extend(tasks.into_iter().flat_map(|task| standing(task, core.label_of(task))));
    all
}
