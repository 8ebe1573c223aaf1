//! Kernels patched to trace every placement and every change of weight (`sched_place`, `sched_reweight`): what an enqueue or
//! dequeue did at each level, in the kernel's order.
//!
//! An enqueue's events come before the core's step, since only the wakeup shows that it is one. A dequeue's events come after
//! it. Weights are traced without their last ten bits. A scaled distance agrees if some weight with this print gives it; then
//! the kernel's value is taken.

mod clock;
mod verdicts;

use fairlab_event::{Cpu, Pid};
use fairlab_kernel::open_loop::EntityId;
use fairlab_kernel::{GroupId, TaskId, Vruntime};

use super::super::probe::{At, Key, ProbeHit};
use super::super::record::{EventRecord, RecordKind};
use super::{ReturnedPlacement, Walker};

/// How far a group's entity may be off where it was accounted at moments that nothing shows: each truncates, virtual ns.
pub(super) const UNSEEN_ROUNDING: u64 = 2;

/// The weight of nice 0 as it is printed: no share of a group with the usual weight is larger, so that it is exact.
const WHOLE: u64 = 1024;

/// What is traced of one level of a step.
#[derive(Clone, Debug)]
struct TracedLevel {
    entity: EntityId,
    /// A change of weight before it is placed.
    before: Option<ProbeHit>,
    place: Option<(u64, ProbeHit)>,
    /// A change of weight after it is placed, or of one that is queued and stays so.
    after: Option<ProbeHit>,
}

/// A step that the core has done or is about to do, as it was traced.
#[derive(Clone, Debug)]
pub(super) struct TracedStep {
    levels: Vec<TracedLevel>,
}

impl Walker {
    /// Code on this CPU traces a step that the core has not done yet.
    pub(super) fn on_traced(&mut self, record: &EventRecord, probe: &ProbeHit) {
        if self.recording.shows_weights {
            // Probes show the same, and more.
            return;
        }
        let info = &mut self.cpus[record.cpu.index()];
        if !info.traced_done.remove(&record.number) {
            info.traced.push((record.number, probe.clone()));
        }
    }

    /// What code on `by` has traced of the enqueue of a task on `target`, which the core does next.
    pub(super) fn prepare_enqueue(&mut self, by: Cpu, task: TaskId, target: Cpu) {
        if self.cpus[by.index()].traced.is_empty() {
            return;
        }
        let pid = self.pid_of(task);
        let levels = self.sched.levels_on(task, target);
        let joins = levels.iter().skip(1).filter(|entity| !self.sched.entity_view(**entity).on_rq).count();
        let traced = &mut self.cpus[by.index()].traced;
        let own = |probe: &ProbeHit| probe.task() == Some(pid) && probe.cpu() == Some(target);
        // Kernels that place tasks only when they wake name none where a task is moved.
        let start = traced.iter().rposition(|(_, probe)| names_task(probe) && own(probe)).unwrap_or(0);
        let length = chain_length(&traced[start..], target, joins);
        let chain = traced.drain(start..start + length).collect::<Vec<_>>();
        self.prepare(target, &levels, &chain);
    }

    /// What code on `by` has traced of the dequeue of a waiting task from its CPU. Returns whether its lag is known with
    /// its queue: where the running entity is a group's, accounting may show nowhere.
    pub(super) fn prepare_detach(&mut self, by: Cpu, task: TaskId) -> bool {
        let orig = self.sched.task(task).cpu();
        let traced = std::mem::take(&mut self.cpus[by.index()].traced);
        let chain = traced.into_iter().filter(|(_, probe)| probe.cpu() == Some(orig)).collect::<Vec<_>>();
        let levels = self.sched.levels(task);
        self.prepare(orig, &levels, &chain);
        self.clock_told(self.queue_of(task))
    }

    /// What the trace shows from here on of a step of `cpu`'s own running task, up to the event that `ends` tells. `group` is
    /// where the task is moved to.
    pub(super) fn prepare_coming(
        &mut self,
        cpu: Cpu,
        group: Option<GroupId>,
        ends: impl Fn(&EventRecord) -> bool,
    ) {
        // What is placed after a dequeue is another step: the CPU pulls work before it switches.
        let is_other = |record: &EventRecord| {
            let places = matches!(&record.what, RecordKind::Probe(probe) if probe.at == At::PlaceTracepoint);
            matches!(record.what, RecordKind::Migrate { .. }) || (places && group.is_none())
        };
        let coming = self.window.on_cpu(cpu).take_while(|record| !ends(record) && !is_other(record));
        let chain = coming.filter_map(|record| match &record.what {
            RecordKind::Probe(probe) if matches!(probe.at, At::ReweightTracepoint | At::PlaceTracepoint) => {
                Some((record.number, probe.clone()))
            }
            _ => None,
        });
        let chain = chain.filter(|(_, probe)| probe.cpu() == Some(cpu)).collect::<Vec<_>>();
        if chain.is_empty() {
            return;
        }
        self.cpus[cpu.index()].traced_done.extend(chain.iter().map(|(event, _)| *event));
        let task = self.sched.curr(cpu);
        let levels = match group {
            Some(group) => self.sched.levels_in(task, group, cpu),
            None => self.sched.levels(task),
        };
        self.prepare(cpu, &levels, &chain);
    }

    /// The group that the running task moves itself into, where the trace's own account of groups has it do so next.
    pub(super) fn traced_move(&self, pid: Pid, cpu: Cpu) -> Option<GroupId> {
        let next =
            self.window.on_cpu(cpu).take_while(|record| !matches!(record.what, RecordKind::WaitEnds(..)));
        let moved = next.filter_map(|record| self.recording.moves.get(&record.number));
        let path = moved.filter(|(mover, _)| *mover == pid).map(|(_, path)| path).next()?;
        self.groups.named(path)
    }

    fn prepare(&mut self, cpu: Cpu, levels: &[EntityId], chain: &[(u64, ProbeHit)]) {
        let step = traced_levels(levels, chain);
        // A step of the CPU's own task has just been accounted, which was printed.
        let told = self
            .now
            .as_ref()
            .is_some_and(|now| now.cpu == cpu && matches!(now.what, RecordKind::Runtime { .. }));
        let passed = chain.iter().map(|(_, probe)| probe).filter(|probe| probe.at == At::DeadlineTracepoint);
        let passed = passed.collect::<Vec<_>>();
        let clock = if told { None } else { self.traced_clock(cpu, &step, &passed) };
        if told || clock.is_some() {
            self.cpus[cpu.index()].clock_shown = self.seen.events;
        }
        if let Some(clock) = clock.filter(|&clock| clock > self.sched.rq_clock(cpu)) {
            self.sched.set_rq_clock(cpu, clock);
        }
        for level in &step {
            self.prepare_level(cpu, level);
        }
        self.doubt_current(levels);
        self.steps.push(TracedStep { levels: step });
    }

    /// A step accounts an entity that has left and is still its queue's current one. Where the step does not show how far, that
    /// entity's vruntime is no longer known.
    fn doubt_current(&mut self, levels: &[EntityId]) {
        for &entity in levels {
            let queue = self.sched.queue_of(entity);
            let current =
                self.sched.current_of(queue).filter(|current| !current.on_rq && current.id != entity);
            if let Some(current) = current.filter(|_| !self.clock_told(queue)) {
                self.knowledge.entity_mut(current.id).known = false;
            }
        }
    }

    fn prepare_level(&mut self, cpu: Cpu, level: &TracedLevel) {
        let entity = level.entity;
        let joins = level.place.is_some() && !self.sched.entity_view(entity).on_rq;
        // One that is still current is charged at its old weight before it gets another.
        let beforehand = joins && !self.sched.is_current(entity);
        match &level.before {
            Some(probe) if beforehand => {
                let (weight, old) = (printed(probe, Key::NewWeight), printed(probe, Key::Weight));
                if !self.by_lag {
                    self.force_vruntime(entity, Vruntime(printed(probe, Key::OldVruntime)));
                }
                self.sched.reweigh_off_queue(entity, whole_weight(weight));
                self.note_lag_scaled(entity, old, weight);
            }
            Some(probe) => self.give_traced_weight(entity, probe),
            None => {}
        }
        if let (Some((event, probe)), true) = (&level.place, joins) {
            self.before_traced_place(cpu, entity, *event, probe);
        }
        if let Some(probe) = &level.after {
            self.give_traced_weight(entity, probe);
        }
    }

    fn give_traced_weight(&mut self, entity: EntityId, probe: &ProbeHit) {
        let weight = printed(probe, Key::NewWeight);
        if self.sched.entity_view(entity).weight >> 10 != weight {
            self.sched.give_weight(entity, whole_weight(weight));
        }
    }

    /// An entity that is about to join its queue: where the kernel placed it, and from what.
    fn before_traced_place(&mut self, cpu: Cpu, entity: EntityId, event: u64, probe: &ProbeHit) {
        let queue = self.sched.queue_of(entity);
        let is_empty = self.sched.queue_view(queue).entities().next().is_none();
        if self.by_lag {
            // A running task that comes back to its queue has not left it in the core yet.
            let record = self.now.as_ref();
            let comes_back = record.is_some_and(|record| record.number < event && record.cpu == cpu);
            if !comes_back {
                self.compare_traced_average(cpu, entity, probe);
            }
            if let Some(lag) = probe.get(Key::Lag) {
                self.compare_traced_lag(entity, lag);
            }
        }
        if let Some(minimum) = probe.unsigned(Key::MinVruntime).filter(|_| is_empty) {
            self.sched.force_min_vruntime(queue, Vruntime(minimum));
            self.knowledge.queue_mut(queue).min_known = true;
            self.note_minimum(queue);
        }
        let Some(vruntime) = probe.unsigned(Key::Vruntime).map(Vruntime) else { return };
        let placed =
            ReturnedPlacement { event, vruntime, deadline: probe.unsigned(Key::Deadline).map(Vruntime) };
        if self.by_lag && self.sched.is_current(entity) {
            self.judge_place_of_current(entity, placed);
        } else {
            self.knowledge.entity_mut(entity).placed = Some(placed);
        }
    }
}

fn names_task(probe: &ProbeHit) -> bool {
    probe.at == At::PlaceTracepoint && probe.task().is_some()
}

/// How many of the events belong to one enqueue on `cpu`, of a task and so many groups: it goes from level to level up.
fn chain_length(traced: &[(u64, ProbeHit)], cpu: Cpu, groups: usize) -> usize {
    let (mut placed, mut lowest) = (0, i64::MAX);
    let mut belongs = |index: usize, probe: &ProbeHit| {
        if probe.cpu() != Some(cpu) || (names_task(probe) && index > 0) {
            return false;
        }
        if probe.at == At::PlaceTracepoint && !names_task(probe) {
            placed += 1;
        }
        let depth = probe.get(Key::Depth).filter(|_| probe.at == At::ReweightTracepoint);
        let goes_up = depth.is_none_or(|depth| depth <= lowest);
        lowest = depth.unwrap_or(lowest);
        goes_up && placed <= groups
    };
    traced.iter().enumerate().take_while(|(index, (_, probe))| belongs(*index, probe)).count()
}

/// Sorts a step's events to the levels that they are about.
fn traced_levels(levels: &[EntityId], chain: &[(u64, ProbeHit)]) -> Vec<TracedLevel> {
    let empty = |&entity: &EntityId| TracedLevel { entity, before: None, place: None, after: None };
    let mut step = levels.iter().map(empty).collect::<Vec<_>>();
    let mut at = 0;
    for (event, probe) in chain {
        if probe.at == At::DeadlineTracepoint {
            continue;
        }
        if probe.at == At::PlaceTracepoint {
            at = if probe.task().is_some() { 0 } else { at + 1 };
            if let Some(level) = step.get_mut(at) {
                level.place = Some((*event, probe.clone()));
            }
            continue;
        }
        let depth = probe.get(Key::Depth).and_then(|depth| usize::try_from(depth).ok());
        let index = depth.and_then(|depth| (levels.len() - 1).checked_sub(depth));
        if let Some(level) = index.and_then(|index| step.get_mut(index)) {
            let change = if level.place.is_some() { &mut level.after } else { &mut level.before };
            *change = Some(probe.clone());
        }
    }
    step
}

fn printed(probe: &ProbeHit, key: Key) -> u64 {
    probe.unsigned(key).unwrap_or(0)
}

/// A weight, scaled up, that is printed so: the middle of those that are.
fn whole_weight(printed: u64) -> u64 {
    if printed == WHOLE { WHOLE << 10 } else { (printed << 10) + 512 }
}
