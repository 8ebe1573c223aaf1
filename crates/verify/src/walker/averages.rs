//! Load tracking along the walk: in step with the kernel's periods, from the averages of the snapshot.
//!
//! Must not know: which decisions use averages.

use fairlab_event::{Cpu, Ns, Pid, Prio};
use fairlab_kernel::open_loop::RecordedAverages;
use fairlab_kernel::weight::NICE_WEIGHTS;

use super::super::record::{EventRecord, Marker, RecordKind};
use super::Walker;
use super::snapshot::REPORTED_WITHIN;
use fairlab_recording::{CpuDump, QueueDump, TaskAverages, TaskDump};

impl Walker {
    /// Finds how far the scheduler's clock is behind the trace's: tasks that were charged before the snapshot and not since
    /// have the former in the snapshot and the latter in the trace.
    pub(super) fn align_clocks(&mut self) {
        let mut charged = std::collections::BTreeMap::new();
        let mut begun = false;
        for record in self.window.all() {
            match &record.what {
                RecordKind::Marker(Marker::SnapshotBegins) => begun = true,
                RecordKind::Marker(Marker::SnapshotEnds) => break,
                RecordKind::Runtime { pid, .. } if begun => drop(charged.remove(pid)),
                RecordKind::Runtime { pid, .. } => drop(charged.insert(*pid, record.time.0)),
                _ => {}
            }
        }
        if self.has_markers {
            let line = |line: &TaskAverages| Some(charged.get(&line.tid)?.wrapping_sub(line.charged?));
            let mut behind = self.recording.averages.iter().filter_map(line).collect::<Vec<_>>();
            behind.sort_unstable();
            self.behind = behind.get(behind.len() / 2).copied();
        }
        if self.behind.is_none() {
            self.behind = self.clock_of_dump();
        }
        self.sched.align_periods(self.behind.unwrap_or(0));
        let first = self.window.all().next().map_or(Ns(0), |record| record.time);
        for cpu in (0..self.cpus.len()).map(|cpu| Cpu(cpu as u32)) {
            let first_run = self.first_run_on(cpu).filter(|_| self.prints_every_charge());
            let began = first_run.and_then(|pid| self.start_by_charges(pid));
            self.sched.set_rq_clock(cpu, began.map_or(first, |began| began.min(first)));
        }
    }

    /// The task that runs on a CPU when the trace begins, as far as the CPU's own events tell.
    fn first_run_on(&self, cpu: Cpu) -> Option<Pid> {
        self.window.on_cpu(cpu).find_map(|record| match &record.what {
            RecordKind::Switch(switch) => Some(switch.prev_pid),
            RecordKind::Runtime { pid, .. } if *pid == record.context => Some(*pid),
            _ => None,
        })
    }

    /// That clock from the one at the head of the dump of the runqueues, which is less exact.
    fn clock_of_dump(&self) -> Option<u64> {
        let clock = self.recording.debug.as_ref()?.clock?;
        let begins =
            |record: &&EventRecord| matches!(record.what, RecordKind::Marker(Marker::SnapshotBegins));
        let marker = self.window.all().find(begins)?;
        Some(marker.time.0.wrapping_sub(clock))
    }

    /// The averages of every queue are those of the snapshot.
    pub(super) fn lay_queue_averages(&mut self) {
        let Some(debug) = self.recording.debug.take() else { return };
        let nr_cpus = self.cpus.len();
        for dump in debug.cpus.iter().filter(|dump| dump.cpu.index() < nr_cpus) {
            // What has been since the CPU was read is counted once more, as it is now.
            let clock = self.sched.rq_clock(dump.cpu);
            let clock = self.read_at(dump).map_or(clock, |read| read.min(clock));
            let reader = dump.tasks.iter().find(|task| self.has_gone(dump, task));
            for queue in &dump.queues {
                let weight = reader.filter(|reader| reader.group == queue.path).and_then(weight_of);
                self.lay_averages_of(dump.cpu, queue, clock, weight);
            }
            self.share_queue_averages(dump, clock);
        }
        self.recording.debug = Some(debug);
    }

    /// The clock of a CPU's runqueue when the snapshot was read of it.
    fn read_at(&self, dump: &CpuDump) -> Option<Ns> {
        dump.clock.zip(self.behind).map(|(clock, behind)| Ns(clock.wrapping_add(behind)))
    }

    /// After an event before the snapshot's end: what is known of the averages that it shows.
    pub(super) fn note_averages_of_snapshot(&mut self) {
        if !self.has_markers || self.warm {
            return;
        }
        let Some(debug) = &self.recording.debug else { return };
        for dump in &debug.cpus {
            if let Some(read) = self.read_at(dump) {
                self.sched.note_averages(&mut self.noted, dump.cpu, Ns(read.0 + REPORTED_WITHIN));
            }
        }
    }

    fn lay_averages_of(&mut self, cpu: Cpu, dump: &QueueDump, clock: Ns, reader: Option<u64>) {
        let Some(queue) = self.dumped_queue(cpu, &dump.path) else { return };
        let Some(mut averages) = averages_of(dump, "") else { return };
        if let Some(weight) = reader {
            averages.take_off_running(weight);
        }
        self.sched.lay_queue_averages(queue, averages, clock, &self.noted);
        let group = self.groups.named(&dump.path);
        let told = [whole(dump, "tg_load_avg_contrib"), whole(dump, "tg_load_avg")];
        if let (Some(group), [Some(told), Some(all)]) = (group, told) {
            self.sched.lay_group_load(group, queue, told, all);
        }
        let above = self.sched.entity_above(queue).zip(averages_of(dump, "se->avg."));
        if let Some((entity, averages)) = above {
            self.sched.lay_entity_averages(entity, averages, clock, &self.noted);
        }
    }

    /// What a CPU bears is of the tasks that were queued there.
    fn share_queue_averages(&mut self, dump: &CpuDump, clock: Ns) {
        let queued = |task: &&TaskDump| task.runnable || dump.curr == Some(task.pid);
        let stays = |task: &&TaskDump| !self.has_gone(dump, task);
        let lines = dump.tasks.iter().filter(queued).filter(stays);
        let ids = lines.filter_map(|task| self.tasks.get(&task.pid)).map(|info| info.id);
        let tasks = ids.filter(|&task| self.is_fair(task)).collect::<Vec<_>>();
        self.sched.share_queue_averages(dump.cpu, &tasks, clock);
        self.sched.sum_estimates(dump.cpu);
    }

    /// Whether a task ran when the snapshot was read and is not in the trace that begins after that: mostly the reader of the
    /// snapshot.
    fn has_gone(&self, dump: &CpuDump, task: &TaskDump) -> bool {
        let is_next = self.first_run_on(dump.cpu) == Some(task.pid);
        let ran = !self.has_markers && dump.curr == Some(task.pid);
        ran && !is_next && self.window.of_task(task.pid).next().is_none()
    }

    /// The averages of every task that has not run since are those of the snapshot. Of tasks that it shows at a later time than
    /// `until`, they stand for those at that time, but for `reader`: it has changed most by reading.
    pub(super) fn lay_task_averages(&mut self, until: Ns, reader: Pid) {
        let Some(behind) = self.behind else { return };
        for line in self.recording.averages.iter().filter(|line| line.tid != reader) {
            let task = self.tasks.get(&line.tid).map(|info| info.id);
            if let Some(task) = task.filter(|&task| line.computed != 0 && self.is_fair(task)) {
                let computed = Ns(line.computed.wrapping_add(behind)).min(until);
                self.sched.lay_task_averages(task, line.averages, computed);
            }
        }
        for cpu in (0..self.cpus.len()).map(|cpu| Cpu(cpu as u32)) {
            self.sched.sum_estimates(cpu);
        }
    }
}

/// What a running task adds to the load of its queue.
fn weight_of(task: &TaskDump) -> Option<u64> {
    let nice = Prio(task.prio).nice()?;
    NICE_WEIGHTS.get(usize::try_from(nice + 20).ok()?).map(|&weight| u64::from(weight))
}

fn whole(dump: &QueueDump, name: &str) -> Option<u64> {
    dump.number(name).and_then(|value| u64::try_from(value).ok())
}

/// What a dump has of averages under names that begin so.
fn averages_of(dump: &QueueDump, prefix: &str) -> Option<RecordedAverages> {
    let number = |names: &[&str]| names.iter().find_map(|name| whole(dump, &format!("{prefix}{name}")));
    let estimate = number(&["util_est_enqueued", "util_est"]).and_then(|value| u32::try_from(value).ok());
    let removed = ["removed.load_avg", "removed.runnable_avg", "removed.util_avg"];
    Some(RecordedAverages {
        load: number(&["load_avg"])?,
        runnable: number(&["runnable_avg", "runnable_load_avg"])?,
        util: number(&["util_avg"])?,
        sums: None,
        estimates: [estimate.unwrap_or(0), 0],
        removed: removed.map(|name| number(&[name]).unwrap_or(0)),
    })
}
