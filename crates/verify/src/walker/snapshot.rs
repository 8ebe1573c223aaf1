//! Queues of the snapshot, for kernels that print no vruntimes later. The snapshot's values of a queue belong to the moment
//! of reading, which the runqueue's clock shows.
//!
//! Must not know: how a decision is judged.

use std::collections::BTreeMap;

use fairlab_event::{Cpu, Ns, Pid};
use fairlab_kernel::{TaskId, Vruntime};

use super::super::record::{Marker, RecordKind};
use super::Walker;
use fairlab_recording::{CpuDump, TaskDump};

/// How much later than the clock that it is done by an event can be reported, ns.
pub(super) const REPORTED_WITHIN: u64 = 2_000;

/// How long after the last charge that a dump has in it the CPU may have switched to what the dump has running.
const SWITCHED_WITHIN: Ns = Ns(1_000_000);

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
    }

    /// What each task is charged with, and when.
    fn charges(&self) -> BTreeMap<Pid, Vec<(Ns, u64)>> {
        let mut charges = BTreeMap::<Pid, Vec<(Ns, u64)>>::new();
        for record in self.window.all() {
            match &record.what {
                RecordKind::Marker(Marker::SnapshotEnds) => break,
                RecordKind::Runtime { pid, runtime, .. } => {
                    charges.entry(*pid).or_default().push((record.time, runtime.0));
                }
                _ => {}
            }
        }
        charges
    }

    /// When the tasks queued on a CPU in a dump were charged last. A task's file was read later, and says how long it had run by
    /// then. What it was charged with in between is not in the dump.
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
            let between = file.run_time?.checked_sub(line.run_time?)?;
            let in_file = charges.iter().take_while(|(time, _)| *time <= read).count();
            // The last one may have been reported late.
            let in_dump = [in_file, in_file + 1]
                .into_iter()
                .find_map(|count| count_before(charges.get(..count)?, between))?;
            last = last.max(in_dump.checked_sub(1).map(|index| charges[index].0));
        }
        last
    }

    /// Lays the queues that were read before `time`, once the CPU runs what it ran when it was read.
    pub(super) fn lay_dumps_until(&mut self, time: Ns) {
        if self.to_lay.iter().all(|(read, _)| *read >= time) {
            return;
        }
        let Some(debug) = self.recording.debug.take() else { return };
        let mut left = std::mem::take(&mut self.to_lay);
        left.retain(|(read, cpu)| {
            let dump = debug.cpus.iter().find(|dump| dump.cpu == *cpu);
            let over = *read < time && dump.is_none_or(|dump| self.lay_queue_by_distance(dump));
            !over && time.since(*read) < SWITCHED_WITHIN
        });
        self.to_lay = left;
        self.recording.debug = Some(debug);
    }

    /// Returns whether it is done.
    fn lay_queue_by_distance(&mut self, dump: &CpuDump) -> bool {
        let cpu = dump.cpu;
        let queued = dump.tasks.iter().filter(|line| line.runnable).collect::<Vec<_>>();
        let tasks = queued.iter().map(|line| self.tasks.get(&line.pid).map(|info| info.id));
        let Some(tasks) = tasks.collect::<Option<Vec<TaskId>>>() else { return true };
        let unseen = !self.cpus[cpu.index()].seen;
        let curr = tasks.iter().zip(&queued).find(|(_, line)| line.runs).map(|(&task, _)| task);
        let running = curr.unwrap_or_else(|| self.sched.idle_task(cpu));
        match curr {
            Some(curr) if unseen => self.sched.force_curr(cpu, curr),
            _ if running != self.sched.curr(cpu) => return false,
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
        true
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

/// How many charges there were when `between` ns of them were still to come.
fn count_before(charges: &[(Ns, u64)], mut between: u64) -> Option<usize> {
    let mut count = charges.len();
    while between > 0 {
        count = count.checked_sub(1)?;
        between = between.checked_sub(charges[count].1)?;
    }
    Some(count)
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
