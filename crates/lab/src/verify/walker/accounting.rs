//! `sched_stat_runtime`: accounting, and what the kernel does right after it without an event of its own.

use fairlab_event::{Cpu, Ns, Pid, TaskState};
use fairlab_kernel::decision::TickDecision;
use fairlab_kernel::{TaskId, Vruntime};

use super::super::record::Record;
use super::super::tally::{Kind, Verdict};
use super::truth::in_interrupt;
use super::{Judged, Walker};

impl Walker {
    pub(super) fn on_runtime(&mut self, record: &Record, pid: Pid, runtime: Ns, vruntime: Option<u64>) {
        let known_cpu = self.tasks.get(&pid).map(|info| self.sched.task(info.id).cpu());
        let cpu = known_cpu.unwrap_or(record.cpu);
        let task = self.task(pid, None, record.comm, cpu);
        if !self.is_fair(task) {
            return;
        }
        if self.sched.curr(cpu) != task {
            // It runs where it was not known to run.
            self.seen.lost += 1;
            if let Some(vruntime) = vruntime {
                self.force_vruntime(task, Vruntime(vruntime));
            }
            return;
        }
        if let Some(woken) = self.woken_on_queue(record.cpu).filter(|_| !self.seen.dequeue_probe) {
            self.requeue(woken);
        }
        let leaf_request_pending = self.sched.need_resched(cpu);
        self.cpus[cpu.index()].pending_before_charge = (leaf_request_pending, record.number);
        self.charge(record, task, cpu, runtime, vruntime);
        self.note_minimum(cpu);
        let joins_here = self.detached_dest(record.cpu) == Some(cpu);
        if joins_here {
            // This was the accounting of the queue that they join.
            self.attach_detached(record, record.cpu);
        } else if record.cpu == cpu {
            self.after_accounting(record, task, pid, cpu, leaf_request_pending);
        }
    }

    /// Charges the running task and compares where that leads.
    fn charge(&mut self, record: &Record, task: TaskId, cpu: Cpu, runtime: Ns, printed: Option<u64>) {
        let before = self.sched.entity_view(task);
        let Some(model) = self.sched.charge(cpu, runtime) else { return };
        let Some(kernel) = printed.map(Vruntime) else { return };
        let judged = Judged { record, kind: Kind::Vruntime, case: "accounting", cpu };
        let verdict = match (self.is_known(task), model == kernel) {
            (false, _) => Verdict::NotJudged("vruntime not known before"),
            (true, true) => Verdict::Hit,
            (true, false) if self.unseen_renice(task, before.vruntime, runtime, kernel) => {
                Verdict::NotJudged("nice level changed unseen")
            }
            (true, false) => Verdict::Miss("vruntime"),
        };
        self.judge(judged, verdict, |_| {
            [
                format!("{} after {} ns at weight {}", model.0, runtime.0, before.weight),
                format!("{} ({:+})", kernel.0, kernel.minus(model)),
            ]
        });
        self.force_vruntime(task, kernel);
        if let Some(info) = self.info(task) {
            info.printed = true;
        }
    }

    /// Whether a charge is that of the nice level that the task shows next: the change was not in the trace.
    fn unseen_renice(&mut self, task: TaskId, before: Vruntime, runtime: Ns, kernel: Vruntime) -> bool {
        let pid = self.pid_of(task);
        let old = self.sched.task(task).prio();
        let Some(prio) = self.prio_shown_later(pid).filter(|&prio| prio != old) else { return false };
        self.follow_prio(task, Some(prio));
        before.plus(self.sched.virtual_time(task, runtime) as i64) == kernel
    }

    /// Sets a task's vruntime to the kernel's; from now on it is known.
    pub(super) fn force_vruntime(&mut self, task: TaskId, vruntime: Vruntime) {
        if self.sched.entity_view(task).vruntime != vruntime {
            self.sched.force_vruntime(task, vruntime);
        }
        if let Some(info) = self.info(task) {
            info.known = true;
        }
    }

    /// What code of the running task's own CPU does next.
    fn after_accounting(&mut self, record: &Record, task: TaskId, pid: Pid, cpu: Cpu, was_pending: bool) {
        let in_tick = std::mem::take(&mut self.cpus[cpu.index()].in_tick);
        let is_tick = record.flags.in_hardirq() && !self.queues_woken_next(cpu);
        if is_tick || in_tick {
            self.judge_tick(record, task, cpu, was_pending);
        } else if !in_interrupt(record) && self.takes_yield(task) {
            self.apply_yield(task, cpu);
        } else if self.is_requeued_next(pid) {
            self.requeue_running(task, cpu);
        } else if let Some((child, comm)) = self.forks_next(pid, cpu).filter(|_| !in_interrupt(record)) {
            self.place_child(task, child, comm, cpu);
        } else if self.is_dequeue(record, pid, cpu) {
            let state = self.next_switch(cpu).map_or(TaskState::INTERRUPTIBLE, |switch| switch.prev_state);
            self.block(cpu, state);
        }
    }

    fn judge_tick(&mut self, record: &Record, task: TaskId, cpu: Cpu, was_pending: bool) {
        let truth = self.tick_asks(cpu);
        let Some(decision) = self.sched.tick_test(cpu) else {
            self.judge_tick_by_accounting(record, cpu, was_pending, truth);
            return;
        };
        let queue = self.sched.queue_view(cpu);
        let all_known = self.is_known(task)
            && queue.waiting.iter().all(|view| view.task.is_some_and(|task| self.is_known(task)));
        let verdict = match truth {
            _ if was_pending => Verdict::NotJudged("a reschedule is already pending"),
            None => Verdict::NotJudged("the trace does not show it"),
            Some(_) if !self.cpus[cpu.index()].queue_known || !all_known => {
                Verdict::NotJudged("queue not known")
            }
            Some(truth) if truth == decision.resched => Verdict::Hit,
            Some(_) => Verdict::Miss(decision.reason.describe()),
        };
        let case = yes_no(truth.unwrap_or(decision.resched));
        let judged = Judged { record, kind: Kind::TickPreempt, case, cpu };
        self.judge(judged, verdict, |_| {
            [format!("{}: {}", yes_no(decision.resched), decision.reason.describe()), case.to_string()]
        });
        let resched = truth.unwrap_or(decision.resched);
        self.sched.apply_tick_decision(cpu, TickDecision { resched, ..decision });
    }

    /// EEVDF: accounting itself asks for the reschedule.
    fn judge_tick_by_accounting(
        &mut self,
        record: &Record,
        cpu: Cpu,
        was_pending: bool,
        truth: Option<bool>,
    ) {
        let model = self.sched.need_resched(cpu);
        let queue = self.sched.queue_view(cpu);
        let known = queue.curr.is_some() && self.average_known(cpu);
        let verdict = match truth {
            _ if was_pending => Verdict::NotJudged("a reschedule is already pending"),
            None => Verdict::NotJudged("the trace does not show it"),
            Some(_) if !self.cpus[cpu.index()].queue_known || !known => Verdict::NotJudged("queue not known"),
            Some(truth) if truth == model => Verdict::Hit,
            Some(_) => Verdict::Miss("deadline"),
        };
        let case = yes_no(truth.unwrap_or(model));
        let judged = Judged { record, kind: Kind::TickPreempt, case, cpu };
        self.judge(judged, verdict, |_| [yes_no(model).to_string(), case.to_string()]);
        self.sched.force_need_resched(cpu, truth.unwrap_or(model));
    }
}

pub(super) fn yes_no(answer: bool) -> &'static str {
    if answer { "yes" } else { "no" }
}
