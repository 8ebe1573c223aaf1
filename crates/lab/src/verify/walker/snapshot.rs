//! Queues of the snapshot, where a kernel prints no vruntimes later: what it shows of a queue is laid at the moment at which
//! it was read, which the clock of its runqueue tells.
//!
//! Must not know: how a decision is judged.

use std::collections::BTreeMap;

use fairlab_event::{Cpu, Ns, Pid};
use fairlab_kernel::{TaskId, Vruntime};

use super::super::record::{Marker, What};
use super::super::sched_debug::{CpuDump, TaskDump};
use super::Walker;

/// How much later than the clock that it is done by an event can be reported, ns.
const REPORTED_WITHIN: u64 = 2_000;

impl Walker {
    /// Finds when each CPU's queues were read.
    pub(super) fn find_dumps(&mut self) {
        let (Some(debug), Some(behind)) = (&self.recording.debug, self.behind) else { return };
        if !self.by_lag || self.points_shown || !self.has_markers {
            return;
        }
        let charges = self.charges();
        let flat = debug.cpus.iter().filter(|dump| dump.cpu.index() < self.cpus.len() && is_flat(dump));
        let read = flat.filter_map(|dump| {
            let clock = dump.clock?.wrapping_add(behind).wrapping_add(REPORTED_WITHIN);
            Some((self.last_charge_in(dump, &charges, behind).unwrap_or(Ns(clock)), dump.cpu))
        });
        self.to_lay = read.collect();
        self.to_lay.sort_unstable_by(|one, other| other.cmp(one));
    }

    /// What each task is charged with, and when.
    fn charges(&self) -> BTreeMap<Pid, Vec<(Ns, u64)>> {
        let mut charges = BTreeMap::<Pid, Vec<(Ns, u64)>>::new();
        for record in self.window.all() {
            match &record.what {
                What::Marker(Marker::SnapshotEnds) => break,
                What::Runtime { pid, runtime, .. } => {
                    charges.entry(*pid).or_default().push((record.time, runtime.0));
                }
                _ => {}
            }
        }
        charges
    }

    /// When what a dump shows of a CPU's queued tasks was charged last. A task's file, which was read later, says how long it
    /// had run by then; what it was charged with in between is not in the dump.
    fn last_charge_in(
        &self,
        dump: &CpuDump,
        charges: &BTreeMap<Pid, Vec<(Ns, u64)>>,
        behind: u64,
    ) -> Option<Ns> {
        let mut last = None;
        for line in dump.tasks.iter().filter(|line| line.runnable) {
            let Some(charges) = charges.get(&line.pid) else { continue };
            let file = self.recording.averages.iter().find(|file| file.tid == line.pid)?;
            let read = Ns(file.charged?.wrapping_add(behind).wrapping_add(REPORTED_WITHIN));
            let mut between = file.run_time?.checked_sub(line.run_time?)?;
            let mut known = charges.iter().rev().skip_while(|(time, _)| *time > read);
            while between > 0 {
                between = between.checked_sub(known.next()?.1)?;
            }
            last = last.max(known.next().map(|(time, _)| *time));
        }
        last
    }

    /// Lays the queues that were read before `time`.
    pub(super) fn lay_dumps_until(&mut self, time: Ns) {
        while let Some((_, cpu)) = self.to_lay.pop_if(|(read, _)| *read < time) {
            let Some(debug) = self.recording.debug.take() else { return };
            if let Some(dump) = debug.cpus.iter().find(|dump| dump.cpu == cpu) {
                self.lay_queue_by_distance(dump);
            }
            self.recording.debug = Some(debug);
        }
    }

    fn lay_queue_by_distance(&mut self, dump: &CpuDump) {
        let cpu = dump.cpu;
        let queued = dump.tasks.iter().filter(|line| line.runnable).collect::<Vec<_>>();
        let tasks = queued.iter().map(|line| self.tasks.get(&line.pid).map(|info| info.id));
        let Some(tasks) = tasks.collect::<Option<Vec<TaskId>>>() else { return };
        let unseen = !self.cpus[cpu.index()].seen;
        let curr = dump.curr.filter(|pid| !pid.is_idle()).and_then(|pid| self.tasks.get(&pid));
        let curr = curr.map(|info| info.id);
        match curr {
            Some(curr) if unseen => self.sched.force_curr(cpu, curr),
            _ if dump.curr != Some(self.pid_of(self.sched.curr(cpu))) => return,
            _ => {}
        }
        for task in self.sched.fair_tasks(cpu) {
            if !tasks.contains(&task) {
                self.take_off(task);
            }
        }
        for (&task, line) in tasks.iter().zip(&queued) {
            self.lay_at(cpu, task, line);
        }
        self.cpus[cpu.index()].queue_known = true;
        // Whether its slice is protected is told by when it was picked.
        self.cpus[cpu.index()].pick_seen = curr.is_none();
    }

    fn lay_at(&mut self, cpu: Cpu, task: TaskId, line: &TaskDump) {
        if !self.is_fair(task) {
            return;
        }
        if self.sched.is_on_queue(task) && self.sched.task(task).cpu() != cpu {
            self.take_off(task);
        }
        if !self.sched.is_on_queue(task) {
            self.sched.lay_on_queue(task, cpu);
        }
        let entity = self.sched.task_entity(task);
        self.force_vruntime(entity, Vruntime(line.vruntime));
        if let Some(deadline) = line.deadline {
            self.sched.force_deadline(entity, Vruntime(deadline));
        }
        self.knowledge.entity_mut(entity).lag_known = false;
    }
}

/// Whether nothing is queued but tasks of the root group that are awake: of others, not all is printed.
fn is_flat(dump: &CpuDump) -> bool {
    let count = |name: &str, path: &str| {
        let queue = dump.queues.iter().find(|queue| queue.path == path);
        queue.and_then(|queue| queue.number(name))
    };
    let groups_idle = dump.queues.iter().filter(|queue| queue.path != "/").all(|queue| {
        let queued = queue.number("h_nr_queued").or_else(|| queue.number("h_nr_running"));
        queued.unwrap_or(0) == 0
    });
    groups_idle && count("h_nr_queued", "/") == count("h_nr_runnable", "/")
}
