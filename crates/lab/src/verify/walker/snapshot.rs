//! Queues of the snapshot, where a kernel prints no vruntimes later: what it shows of a queue that has not changed since, but
//! for what its running task was charged, is how that queue stands.
//!
//! Must not know: how a decision is judged.

use fairlab_event::{Cpu, Ns, Pid};
use fairlab_kernel::{TaskId, Vruntime};

use super::super::record::{Marker, Record, What};
use super::super::sched_debug::{CpuDump, TaskDump};
use super::Walker;

/// How much later than the clock that it is done by an event can be reported, ns.
const REPORTED_WITHIN: u64 = 2_000;

/// Something that changed a CPU's queues since the reading of the snapshot began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Since {
    time: Ns,
    change: SinceKind,
}

#[derive(Clone, Copy, Debug)]
enum SinceKind {
    Charged(Pid, Ns),
    /// Something joined or left a queue of that CPU.
    Moved(Cpu),
}

impl Walker {
    /// Notes what happens while the snapshot is read.
    pub(super) fn note_since_snapshot(&mut self, record: &Record) {
        if matches!(record.what, What::Marker(Marker::SnapshotBegins)) {
            self.since_snapshot.clear();
        }
        if !self.by_lag || self.warm {
            return;
        }
        let mut note = |change| self.since_snapshot.push(Since { time: record.time, change });
        match &record.what {
            What::Runtime { pid, runtime, .. } => note(SinceKind::Charged(*pid, *runtime)),
            What::Switch(_) => note(SinceKind::Moved(record.cpu)),
            What::Wakeup(wakeup) | What::WakeupNew(wakeup) => note(SinceKind::Moved(wakeup.target_cpu)),
            What::Migrate { orig, dest, .. } => {
                note(SinceKind::Moved(*orig));
                note(SinceKind::Moved(*dest));
            }
            _ => {}
        }
    }

    /// The snapshot has been read: takes over the queues that are as it shows them.
    pub(super) fn lay_queues_by_distance(&mut self) {
        let since = std::mem::take(&mut self.since_snapshot);
        let (Some(debug), Some(behind)) = (self.recording.debug.take(), self.behind) else { return };
        let nr_cpus = self.cpus.len();
        if self.by_lag && !self.points_shown {
            for dump in debug.cpus.iter().filter(|dump| dump.cpu.index() < nr_cpus && is_flat(dump)) {
                if let Some(clock) = dump.clock {
                    let shown = Ns(clock.wrapping_add(behind).wrapping_add(REPORTED_WITHIN));
                    self.lay_queue_by_distance(dump, &since, shown);
                }
            }
        }
        self.recording.debug = Some(debug);
    }

    fn lay_queue_by_distance(&mut self, dump: &CpuDump, since: &[Since], shown: Ns) {
        let cpu = dump.cpu;
        let later = || since.iter().filter(|since| since.time > shown);
        let moved = later().any(|since| matches!(since.change, SinceKind::Moved(moved) if moved == cpu));
        let runs = dump.curr == Some(self.pid_of(self.sched.curr(cpu)));
        let queued = dump.tasks.iter().filter(|line| line.runnable).collect::<Vec<_>>();
        let tasks = queued.iter().map(|line| self.tasks.get(&line.pid).map(|info| info.id));
        let Some(tasks) = tasks.collect::<Option<Vec<TaskId>>>().filter(|_| runs && !moved) else { return };
        for task in self.sched.fair_tasks(cpu) {
            if !tasks.contains(&task) {
                self.take_off(task);
            }
        }
        for (&task, line) in tasks.iter().zip(&queued) {
            self.lay_at(cpu, task, line);
        }
        let charged = later().filter_map(|since| match since.change {
            SinceKind::Charged(pid, runtime) if dump.curr == Some(pid) => Some(runtime),
            _ => None,
        });
        for runtime in charged.collect::<Vec<_>>() {
            self.sched.charge_again(cpu, runtime);
        }
        self.cpus[cpu.index()].queue_known = true;
        // Whether its slice is protected is told by when it was picked.
        self.cpus[cpu.index()].pick_seen = self.sched.curr(cpu) == self.sched.idle_task(cpu);
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
