//! Two kernels that are built from sources, each in a run of its own: the first event in which they differ, and what both held before it.
//!
//! Nothing is left to chance, and kernel work takes no time. Runs of both are then equal up to the first decision that differs, so
//! neither has to follow the other. A run gives its events' digest slice by slice; the slice that differs is looked at
//! event by event; then both go once more to the instant before, and show what they hold.
//!
//! Must not know: how an answer is printed.

use std::sync::atomic::AtomicBool;

use fairlab_event::{Cpu, DigestSink, Event, EventKind, Ns, Sink, sink_fn};
use fairlab_files::shell::{line_of, quoted};
use fairlab_kernel::GroupId;
use fairlab_kernel::members::Members;
use fairlab_native::NativeScheduler;
use fairlab_sim::machine::Costs;
use fairlab_sim::{Engine, Inspect, Machine, SchedulerCore};
use fairlab_trace::ftrace_text::FtraceTextWriter;
use fairlab_verify::oracle::{Check, Difference, Findings, Judged};
use serde::{Deserialize, Serialize};

use crate::oracle::{Followed, Run};
use crate::source::SourceKernel;
use crate::{Kernel, LabError, Progress, Setting, workloads};

/// Virtual time between two digests.
const SLICE: Ns = Ns(1_000_000);

/// What is counted of a run.
const COUNTED: [Check; 3] = [Check::Pick, Check::WakeupCpu, Check::Balance];

/// Two kernels that are built from sources.
pub struct Twins<'t> {
    one: &'t SourceKernel,
    other: &'t SourceKernel,
    stop: &'t AtomicBool,
}

/// How far a run has come at the end of a slice.
#[derive(PartialEq, Serialize, Deserialize)]
struct Slice {
    digest: String,
    counts: [u64; 3],
}

/// An event.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Told {
    time_ns: u64,
    /// Where it happens, and the CPU that it is about.
    cpus: Vec<u32>,
    name: String,
    /// Name and fields.
    text: String,
    /// What was decided; none where something is only counted, or about to happen.
    decides: Option<Check>,
}

/// A run's engine with what it was made of.
struct Case<'c> {
    machine: &'c Machine,
    setting: &'c Setting,
    seed: u64,
}

impl Twins<'_> {
    /// Two kernels as twins; `None` where one is not built from sources.
    pub fn of<'t>(one: &'t Kernel, other: &'t Kernel, stop: &'t AtomicBool) -> Option<Twins<'t>> {
        let (Kernel::Source(one), Kernel::Source(other)) = (one, other) else { return None };
        Some(Twins { one, other, stop })
    }

    /// Runs both with one seed after the other, to the first with which they differ.
    ///
    /// # Errors
    /// One of the two cannot run the workload there.
    pub fn follow(
        &self,
        setting: &Setting,
        seeds: u64,
        progress: &dyn Fn(Progress),
    ) -> Result<Followed, LabError> {
        let mut followed = Followed::default();
        let total = usize::try_from(seeds).unwrap_or(usize::MAX);
        for at in 0..seeds {
            progress(Progress { done: followed.runs.len(), total });
            let seed = setting.first_seed.wrapping_add(at);
            let Some(findings) = self.findings(setting, seed)? else {
                followed.stopped = true;
                break;
            };
            let differs = findings.first.is_some();
            followed.runs.push(Run { seed, command: self.command(setting, seed), findings });
            if differs {
                break;
            }
        }
        Ok(followed)
    }

    fn command(&self, setting: &Setting, seed: u64) -> String {
        format!(
            "fairlab verify --kernel {} --against {} {} --machine {} --seed {seed}",
            quoted(self.other.name()),
            quoted(self.one.name()),
            line_of(&setting.workload),
            quoted(&setting.machine_name)
        )
    }

    /// What one run of both comes to; `None`: it was stopped.
    fn findings(&self, setting: &Setting, seed: u64) -> Result<Option<Findings>, LabError> {
        // CPUs that take turns on one thread would stand still in the middle of what both do.
        let machine = Machine { in_turn: false, ..setting.machine.clone().exact() };
        let case = Case { machine: &machine, setting, seed };
        let both = (self.slices(self.one, &case)?, self.slices(self.other, &case)?);
        let (Some(ours), Some(theirs)) = both else { return Ok(None) };
        let differs = (0..ours.len().max(theirs.len())).find(|&at| ours.get(at) != theirs.get(at));
        let alike = differs.map_or(ours.last(), |at| ours[..at.min(ours.len())].last());
        let mut findings = Findings::default();
        for (check, all) in COUNTED.into_iter().zip(alike.map_or([0; 3], |slice| slice.counts)) {
            findings.checks.insert(check, Judged { all, agree: all });
        }
        let Some(slice) = differs else { return Ok(Some(findings)) };
        let from = Ns(SLICE.0 * slice as u64);
        let both = (self.events(self.one, &case, from)?, self.events(self.other, &case, from)?);
        let (Some(ours), Some(theirs)) = both else { return Ok(None) };
        let Some(first) = self.first(&case, &ours, &theirs)? else { return Ok(None) };
        let judged = findings.checks.entry(first.check).or_default();
        judged.all += 1;
        findings.first = Some(first);
        Ok(Some(findings))
    }

    /// The first event that differs, and what both held just before.
    fn first(&self, case: &Case<'_>, ours: &[Told], theirs: &[Told]) -> Result<Option<Difference>, LabError> {
        // What is only counted or about to happen tells less than what is decided.
        let decided =
            |told: &[Told]| told.iter().filter(|told| told.decides.is_some()).cloned().collect::<Vec<_>>();
        let (decided, decided_there) = (decided(ours), decided(theirs));
        let (ours, theirs) =
            if decided == decided_there { (ours, theirs) } else { (&decided[..], &decided_there[..]) };
        let at = ours.iter().zip(theirs).take_while(|(one, other)| one == other).count();
        let (one, other) = (ours.get(at), theirs.get(at));
        let both = [one, other].into_iter().flatten();
        let Some(earliest) = both.clone().min_by_key(|told| told.time_ns) else { return Ok(None) };
        let before = Ns(earliest.time_ns.saturating_sub(1));
        let mut cpus = both.flat_map(|told| told.cpus.clone()).collect::<Vec<_>>();
        cpus.sort_unstable();
        cpus.dedup();
        let (Some(held), Some(held_there)) =
            (self.state(self.one, case, before, &cpus)?, self.state(self.other, case, before, &cpus)?)
        else {
            return Ok(None);
        };
        let words = |told: Option<&Told>| match told {
            Some(told) if told.time_ns > earliest.time_ns => format!("nothing before {} s", Ns(told.time_ns)),
            Some(told) => told.text.clone(),
            None => "nothing then".to_string(),
        };
        let there = |member: &str| {
            held_there
                .iter()
                .find(|(other, _)| other == member)
                .map_or("-".to_string(), |(_, value)| value.clone())
        };
        Ok(Some(Difference {
            time_ns: earliest.time_ns,
            cpu: earliest.cpus.first().copied().unwrap_or(0),
            call: earliest.name.clone(),
            check: earliest.decides.unwrap_or(Check::Entity),
            subject: "what happens".to_string(),
            leader: words(one),
            follower: words(other),
            state: held.into_iter().map(|(member, value)| (member.clone(), value, there(&member))).collect(),
        }))
    }

    fn slices(&self, kernel: &SourceKernel, case: &Case<'_>) -> Result<Option<Vec<Slice>>, LabError> {
        self.drive(kernel, case, |engine, number| {
            let (mut slices, mut counts) = (Vec::new(), [0; 3]);
            let mut digest = DigestSink::default();
            let mut until = Ns::ZERO;
            while engine.now() == until && until < case.setting.duration {
                until = (until + SLICE).min(case.setting.duration);
                let mut sink = sink_fn(|event: &Event<'_>| {
                    digest.event(event);
                    count(event, &mut counts);
                });
                engine.run_until(until, &mut sink);
                drop(sink);
                slices.push(Slice { digest: digest.digest().to_string(), counts });
                if let Some(problem) = engine.workload(number).problem() {
                    return Err(LabError::new(problem, "correct the workload"));
                }
            }
            Ok(slices)
        })
    }

    /// The events of one slice.
    fn events(
        &self,
        kernel: &SourceKernel,
        case: &Case<'_>,
        from: Ns,
    ) -> Result<Option<Vec<Told>>, LabError> {
        self.drive(kernel, case, |engine, _| {
            let mut events = Vec::new();
            engine.run_until(from, &mut ());
            engine.run_until(from + SLICE, &mut sink_fn(|event: &Event<'_>| events.push(told(event))));
            Ok(events)
        })
    }

    /// What these CPUs hold at an instant.
    fn state(
        &self,
        kernel: &SourceKernel,
        case: &Case<'_>,
        at: Ns,
        cpus: &[u32],
    ) -> Result<Option<Vec<(String, String)>>, LabError> {
        self.drive(kernel, case, |engine, number| {
            engine.run_until(at, &mut ());
            let groups = engine.groups(number).to_vec();
            Ok(cpus.iter().flat_map(|&cpu| held(engine.core(), Cpu(cpu), &groups)).collect())
        })
    }

    /// Lets `act` go on with an engine at rest that has the workload.
    fn drive<T: Serialize + for<'d> Deserialize<'d>>(
        &self,
        kernel: &SourceKernel,
        case: &Case<'_>,
        act: impl FnOnce(&mut Engine<NativeScheduler>, usize) -> Result<T, LabError>,
    ) -> Result<Option<T>, LabError> {
        let free = Machine { costs: Costs::NONE, ..case.machine.clone() };
        kernel.drive(&free, self.stop, |core| {
            let mut engine = Engine::with_core(core, case.machine.clone(), case.seed);
            let workload = workloads::build(&case.setting.workload)?;
            if let Some((problem, hint)) = engine.refusal(&*workload) {
                return Err(LabError::new(problem, hint));
            }
            engine.set_tracing(true);
            let number = engine.start(workload);
            act(&mut engine, number).map(Some)
        })
    }
}

fn count(event: &Event<'_>, counts: &mut [u64; 3]) {
    if let Some(at) = decides(event).and_then(|check| COUNTED.iter().position(|counted| *counted == check)) {
        counts[at] += 1;
    }
}

fn decides(event: &Event<'_>) -> Option<Check> {
    match event.kind {
        EventKind::SchedSwitch(_) => Some(Check::Pick),
        EventKind::SchedWakeup(_) | EventKind::SchedWakeupNew(_) => Some(Check::WakeupCpu),
        EventKind::SchedMigrateTask { .. } => Some(Check::Balance),
        _ => None,
    }
}

fn told(event: &Event<'_>) -> Told {
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
    Told { time_ns: event.time.0, cpus, name, text: body.trim().to_string(), decides: decides(event) }
}

/// What a CPU holds: its runqueue, the queues of groups on it, who runs, who waits.
fn held(core: &NativeScheduler, cpu: Cpu, groups: &[GroupId]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut show = |subject: String, fill: &dyn Fn(&mut Members)| {
        let mut members = Members::new();
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
        show(format!("running task {}", running.0), &|members| core.members_of_task(running, members));
    }
    for task in tasks {
        show(format!("task {}", task.0), &|members| core.members_of_task(task, members));
    }
    all
}
