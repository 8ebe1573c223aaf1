//! What the recorder's probes show: announcements of what is to come, and the kernel's own values to compare with.

use fairlab_event::{Cpu, Pid};
use fairlab_kernel::{TaskId, Vruntime};

use super::super::probe::{At, Caller, Key, Probe};
use super::super::record::Record;
use super::super::tally::{Kind, Verdict};
use super::accounting::yes_no;
use super::{Judged, Placed, Walker};

impl Walker {
    pub(super) fn on_probe(&mut self, record: &Record, probe: &Probe) {
        match probe.at {
            At::Tick => {
                self.cpus[record.cpu.index()].in_tick = true;
                self.compare_entity(record, probe);
            }
            At::Resched | At::ReschedLazy => {
                self.seen.resched_probe = true;
                if probe.by == Some(Caller::Preemption) {
                    self.cpus[record.cpu.index()].asked_resched = probe.cpu();
                }
            }
            At::WakeupPreempt => self.cpus[record.cpu.index()].tested = probe.task(),
            At::Nice => self.announce(probe, |info| info.renice = nice_of(probe)),
            At::MoveGroup => self.announce(probe, |info| info.moving_group = true),
            At::Yield => {
                let caller = probe.get(Key::CurrentPid).and_then(|pid| i32::try_from(pid).ok());
                if let Some(info) = caller.and_then(|pid| self.tasks.get_mut(&Pid(pid))) {
                    info.yielding = true;
                }
            }
            At::EnqueueEntity => self.compare_queue(record, probe),
            At::DequeueEntity | At::SetNextEntity | At::SetNextTask | At::PutPrevEntity => {
                self.compare_queue(record, probe);
                self.compare_entity(record, probe);
            }
            At::Place => {
                self.compare_queue(record, probe);
                self.before_place(record, probe);
            }
            At::PlaceReturn => self.after_place(record, probe),
            At::AverageReturn if probe.in_place => self.compare_average(record, probe),
            At::DequeueEntities => self.on_dequeue_entities(record, probe),
            At::DequeueEntitiesReturn => self.compare_lag_at_dequeue(record, probe),
            At::RequeueDelayed => {
                self.compare_entity(record, probe);
                self.cpus[record.cpu.index()].requeued = probe.task();
                if let Some(task) = self.probed_task(probe) {
                    self.requeue(task);
                }
            }
            _ => {}
        }
    }

    fn probed_task(&self, probe: &Probe) -> Option<TaskId> {
        let info = probe.task().filter(|pid| !pid.is_idle()).and_then(|pid| self.tasks.get(&pid))?;
        Some(info.id).filter(|&task| self.is_fair(task))
    }

    /// A probe shows a queued task's place on the time line, which EEVDF kernels do not print: compares and takes it over.
    fn compare_entity(&mut self, record: &Record, probe: &Probe) {
        let Some(task) = self.probed_task(probe).filter(|&task| self.by_lag && self.sched.is_on_queue(task)) else {
            return;
        };
        let (Some(vruntime), Some(deadline)) = (probe.unsigned(Key::Vruntime), probe.unsigned(Key::Deadline)) else {
            return;
        };
        if probe.get(Key::OnRq) == Some(0) {
            // Taken off to be put back: the core has done both already.
            return;
        }
        let known = self.is_known(task);
        let view = self.sched.entity_view(task);
        let cpu = self.sched.task(task).cpu();
        let values = [("accounting", view.vruntime, Vruntime(vruntime)), ("deadline", view.deadline, Vruntime(deadline))];
        for (case, model, kernel) in values {
            let verdict = match (known, model == kernel) {
                (false, _) => Verdict::NotJudged("vruntime not known before"),
                (true, true) => Verdict::Hit,
                (true, false) => Verdict::Miss(case),
            };
            let judged = Judged { record, kind: Kind::Vruntime, case, cpu };
            self.judge(judged, verdict, |walker| {
                [
                    format!("{} at {}", walker.name_of(task), model.0),
                    format!("{} ({:+})", kernel.0, kernel.minus(model)),
                ]
            });
        }
        if view.deadline != Vruntime(deadline) {
            self.sched.force_deadline(task, Vruntime(deadline));
        }
        self.force_vruntime(task, Vruntime(vruntime));
        let protected = probe.unsigned(Key::Lag).filter(|_| !known && self.sched.curr(cpu) == task);
        if let Some(until) = protected {
            // While an entity runs, the kernel keeps there where its protection ends.
            self.sched.force_protection(task, Vruntime(until));
        }
    }

    /// An entity is about to be placed: its lag, and the distance to its deadline, are the kernel's from now on.
    fn before_place(&mut self, record: &Record, probe: &Probe) {
        // One that the core has on its queue already is being taken off and put back.
        let put_back = self.probed_task(probe).is_some_and(|task| self.sched.is_on_queue(task) && !self.sched.is_delayed(task));
        self.cpus[record.cpu.index()].placing = probe.cpu().filter(|_| is_root(probe) && !put_back);
        let Some(task) = self.probed_task(probe).filter(|&task| self.by_lag && !self.sched.is_on_queue(task)) else {
            return;
        };
        let Some(lag) = probe.get(Key::Lag) else { return };
        self.compare_lag(record, task, "kept", lag);
        let relative = probe.get(Key::RelativeDeadline) == Some(1);
        let distance = probe.get(Key::Deadline).filter(|_| relative);
        self.sched.force_relative_deadline(task, distance);
    }

    fn compare_lag(&mut self, record: &Record, task: TaskId, case: &'static str, kernel: i64) {
        let model = self.sched.entity_view(task).vlag;
        let known = self.info(task).is_some_and(|info| info.lag_known);
        let verdict = match (known, model == kernel) {
            (false, _) => Verdict::NotJudged("state before not known"),
            (true, true) => Verdict::Hit,
            (true, false) => Verdict::Miss(case),
        };
        let judged = Judged { record, kind: Kind::Lag, case, cpu: self.sched.task(task).cpu() };
        self.judge(judged, verdict, |walker| {
            [format!("{} {model}", walker.name_of(task)), format!("{kernel} ({:+})", kernel.wrapping_sub(model))]
        });
        self.sched.force_vlag(task, kernel);
        if let Some(info) = self.info(task) {
            info.lag_known = true;
        }
    }

    fn after_place(&mut self, record: &Record, probe: &Probe) {
        let Some(vruntime) = probe.unsigned(Key::Vruntime).map(Vruntime) else { return };
        let deadline = probe.unsigned(Key::Deadline).map(Vruntime);
        let placed = Placed { event: record.number, vruntime, deadline };
        self.announce(probe, |info| info.placed = Some(placed));
    }

    /// `avg_vruntime()` returns to the placement on a root queue.
    fn compare_average(&mut self, record: &Record, probe: &Probe) {
        let Some(cpu) = self.cpus[record.cpu.index()].placing.filter(|cpu| cpu.index() < self.cpus.len()) else {
            return;
        };
        let Some(kernel) = probe.unsigned(Key::Average).map(Vruntime) else { return };
        let model = self.sched.root_average(cpu);
        let verdict = match (self.average_known(cpu), model == kernel) {
            (false, _) => Verdict::NotJudged("queue not known"),
            (true, true) => Verdict::Hit,
            (true, false) => Verdict::Miss("average"),
        };
        let judged = Judged { record, kind: Kind::QueueTime, case: "average", cpu };
        self.judge(judged, verdict, |_| {
            [model.0.to_string(), format!("{} ({:+})", kernel.0, kernel.minus(model))]
        });
        if let Some(zero) = probe.unsigned(Key::ZeroVruntime) {
            self.sched.force_min_vruntime(cpu, Vruntime(zero));
            self.cpus[cpu.index()].min_known = true;
        }
    }

    /// A task that slept on its queue and would be picked leaves it.
    fn on_dequeue_entities(&mut self, record: &Record, probe: &Probe) {
        self.seen.dequeue_probe = true;
        let Some(task) = self.probed_task(probe).filter(|_| probe.get(Key::Delayed) == Some(1)) else { return };
        self.compare_entity(record, probe);
        if self.sched.is_delayed(task) {
            let known = self.average_known(self.sched.task(task).cpu());
            self.sched.force_delayed_out(task);
            if let Some(info) = self.info(task) {
                info.lag_known = known && info.known;
            }
        }
    }

    fn compare_lag_at_dequeue(&mut self, record: &Record, probe: &Probe) {
        const DELAYED: i64 = -1;
        let Some(task) = self.probed_task(probe) else { return };
        let delayed = probe.get(Key::Returned) == Some(DELAYED);
        let cpu = self.sched.task(task).cpu();
        if self.cpus[cpu.index()].blocked && self.sched.curr(cpu) == task {
            self.judge_delay(record, task, delayed);
        }
        if let Some(lag) = probe.get(Key::Lag).filter(|_| !self.sched.is_on_queue(task) && !delayed) {
            self.compare_lag(record, task, "at dequeue", lag);
        }
    }

    /// Compares whether the task that goes to sleep stays on its queue, and applies what the kernel did.
    fn judge_delay(&mut self, record: &Record, task: TaskId, kernel: bool) {
        let cpu = self.sched.task(task).cpu();
        let model = self.sched.is_delayed(task);
        let known = self.info(task).is_some_and(|info| info.lag_known);
        let verdict = match (known, model == kernel) {
            (false, _) => Verdict::NotJudged("state before not known"),
            (true, true) => Verdict::Hit,
            (true, false) => Verdict::Miss("eligibility"),
        };
        let case = yes_no(kernel);
        let judged = Judged { record, kind: Kind::DelayedDequeue, case, cpu };
        self.judge(judged, verdict, |walker| {
            [format!("{} for {}", yes_no(model), walker.name_of(task)), case.to_string()]
        });
        match (model, kernel) {
            (true, false) => self.sched.force_delayed_out(task),
            (false, true) => self.sched.lay_delayed(task, cpu),
            _ => {}
        }
    }

    /// Whether the average of a CPU's root queue is known: all that is on it is, or its zero if nothing is.
    pub(super) fn average_known(&self, cpu: Cpu) -> bool {
        let queue = self.sched.queue_view(cpu);
        let info = &self.cpus[cpu.index()];
        if queue.curr.is_none() && queue.waiting.is_empty() {
            return info.min_known;
        }
        let mut views = queue.curr.iter().chain(&queue.waiting);
        info.queue_known && views.all(|view| view.task.is_some_and(|task| self.is_known(task)))
    }

    fn announce(&mut self, probe: &Probe, note: impl FnOnce(&mut super::TaskInfo)) {
        if let Some(info) = probe.task().and_then(|pid| self.tasks.get_mut(&pid)) {
            note(info);
        }
    }

    /// A probe shows the minimum of a root queue: compares and takes it over.
    fn compare_queue(&mut self, record: &Record, probe: &Probe) {
        let (Some(cpu), Some(minimum)) = (probe.cpu(), probe.unsigned(Key::MinVruntime)) else { return };
        if !is_root(probe) || cpu.index() >= self.cpus.len() {
            return;
        }
        let (model, kernel) = (self.sched.min_vruntime(cpu), Vruntime(minimum));
        let verdict = match (self.min_known(cpu), model == kernel) {
            (false, _) => Verdict::NotJudged("not known before"),
            (true, true) => Verdict::Hit,
            (true, false) => Verdict::Miss("min_vruntime"),
        };
        let judged = Judged { record, kind: Kind::QueueTime, case: "min_vruntime", cpu };
        self.judge(judged, verdict, |_| {
            [model.0.to_string(), format!("{} ({:+})", kernel.0, kernel.minus(model))]
        });
        self.sched.force_min_vruntime(cpu, kernel);
        self.cpus[cpu.index()].min_known = true;
        self.note_minimum(cpu);
    }
}

fn nice_of(probe: &Probe) -> Option<i32> {
    probe.get(Key::Nice).and_then(|nice| i32::try_from(nice).ok()).filter(|nice| (-20..=19).contains(nice))
}

/// Whether a probe shows a queue of the root group.
fn is_root(probe: &Probe) -> bool {
    const ROOT_CGROUP: i64 = 1;
    probe.get(Key::Cgroup) == Some(ROOT_CGROUP)
}
