//! The state at the beginning of the trace: what the recorder's snapshot tells.
//!
//! A snapshot is read while the kernel runs. Where the trace has marks around the reading, the walk begins before them, and
//! whatever did not change between the beginning and the reading is known from the first event on. Where the snapshot is
//! older than the trace, its values are a guess until the trace shows them.

use fairlab_event::{Comm, Cpu, Prio};
use fairlab_kernel::{Policy, Vruntime};

use super::super::record::{Marker, What};
use super::super::sched_debug::{CpuDump, TaskDump};
use super::Walker;

impl Walker {
    /// Puts the snapshot's tasks where it has them.
    pub(super) fn lay_initial_state(&mut self) {
        let Some(debug) = self.recording.debug.take() else { return };
        for dump in &debug.cpus {
            if dump.cpu.index() >= self.cpus.len() {
                continue;
            }
            if let Some(zero) = dump.root_queue().and_then(|queue| queue.zero()) {
                self.sched.force_min_vruntime(dump.cpu, Vruntime(zero));
            }
            for task in &dump.tasks {
                self.lay_task(dump, task);
            }
        }
        self.recording.debug = Some(debug);
    }

    fn lay_task(&mut self, dump: &CpuDump, line: &TaskDump) {
        let prio = Prio(line.prio);
        let comm = Comm::from(line.comm.as_str());
        let id = self.new_task(line.pid, prio, comm, dump.cpu);
        let policy = self.recording.tasks.iter().find(|task| task.tid == line.pid).map(|task| task.policy);
        const SCHED_BATCH: u32 = 3;
        const SCHED_IDLE: u32 = 5;
        match policy {
            Some(SCHED_BATCH) => self.sched.force_nice(id, prio.nice().unwrap_or(0), Policy::Batch),
            Some(SCHED_IDLE) => self.sched.force_nice(id, prio.nice().unwrap_or(0), Policy::Idle),
            _ => {}
        }
        self.sched.lay_asleep(id, dump.cpu);
        self.sched.force_vruntime(id, Vruntime(line.vruntime));
        if let Some(deadline) = line.deadline {
            self.sched.force_deadline(id, Vruntime(deadline));
        }
        // What runs while the snapshot is read moves; the others stand still until the trace shows them.
        let known = dump.curr != Some(line.pid) && !line.runnable;
        if let Some(info) = self.info(id) {
            info.known = known;
        }
    }

    /// Whether the trace holds the snapshot, and which tasks it shows before that: their values are later ones.
    pub(super) fn look_for_markers(&mut self) {
        let read =
            self.window.all().position(|record| matches!(record.what, What::Marker(Marker::DebugRead)));
        let Some(read) = read else { return };
        self.has_markers = true;
        let mut moving = Vec::new();
        for record in self.window.all().take(read) {
            match &record.what {
                What::Switch(switch) => moving.extend([switch.prev_pid, switch.next_pid]),
                what => moving.extend(what.task()),
            }
        }
        for pid in moving {
            if let Some(info) = self.tasks.get_mut(&pid) {
                info.known = false;
            }
        }
    }

    pub(super) fn on_marker(&mut self, marker: Marker) {
        match marker {
            Marker::SnapshotBegins => self.note_minima_at_snapshot(),
            Marker::DebugRead => self.compare_with_snapshot(),
            Marker::SnapshotEnds | Marker::Other => {}
        }
    }

    /// The reading of the snapshot begins: a queue whose minimum it has and that does not move meanwhile is known.
    fn note_minima_at_snapshot(&mut self) {
        for index in 0..self.cpus.len() {
            self.note_minimum(Cpu(index as u32));
            self.cpus[index].minima_at_snapshot = self.cpus[index].minima_seen;
        }
    }

    /// The snapshot has been read: queues whose minimum agrees with it are known, and what it has queued is queued.
    fn compare_with_snapshot(&mut self) {
        self.warm = true;
        let Some(debug) = self.recording.debug.take() else { return };
        let nr_cpus = self.cpus.len();
        for dump in debug.cpus.iter().filter(|dump| dump.cpu.index() < nr_cpus) {
            let zero = dump.root_queue().and_then(|queue| queue.zero()).map(Vruntime);
            self.note_minimum(dump.cpu);
            let info = &mut self.cpus[dump.cpu.index()];
            let stood_still = info.minima_seen == info.minima_at_snapshot;
            info.min_known |= stood_still && info.minima.last().map(|(last, _)| *last) == zero;
            self.lay_queued(dump);
        }
        self.recording.debug = Some(debug);
    }

    /// Tasks that the snapshot shows waiting and that the trace has not shown yet.
    fn lay_queued(&mut self, dump: &CpuDump) {
        let cpu: Cpu = dump.cpu;
        for line in dump.tasks.iter().filter(|line| line.runnable && dump.curr != Some(line.pid)) {
            let Some(info) = self.tasks.get(&line.pid) else { continue };
            let (id, printed) = (info.id, info.printed);
            if !printed && !self.sched.is_on_queue(id) {
                self.sched.lay_on_queue(id, cpu);
                self.sched.force_vruntime(id, Vruntime(line.vruntime));
                if let Some(info) = self.info(id) {
                    info.known = true;
                }
            }
        }
        self.cpus[cpu.index()].queue_known = true;
    }
}
