//! Fork, exit, and changes of nice level, affinity and group.

use fairlab_event::{Comm, Cpu, Pid, Wakeup};
use fairlab_kernel::decision::PreemptDecision;
use fairlab_kernel::{TaskId, Vruntime};

use super::super::record::Record;
use super::super::tally::{Kind, Verdict};
use super::{Judged, Walker};

impl Walker {
    /// A task is created by the running one of `cpu`: it is placed beside it now, and reported later.
    pub(super) fn place_child(&mut self, parent: TaskId, child: Pid, comm: Comm, cpu: Cpu) {
        let prio = self.prio_shown_later(child).unwrap_or_else(|| self.sched.task(parent).prio());
        let id = self.new_task(child, prio, comm, cpu);
        let known = self.is_known(parent);
        if self.sched.curr(cpu) == parent {
            self.sched.place_forked(id, cpu);
        }
        if let Some(info) = self.info(id) {
            info.known = known;
        }
    }

    pub(super) fn on_fork(&mut self, record: &Record, parent: Pid, child: Pid, comm: Comm) {
        let fresh = self.tasks.get(&child).is_some_and(|info| !info.exiting && !info.printed);
        if !fresh {
            let cpu = record.cpu;
            let parent = self.task(parent, None, record.comm, cpu);
            self.place_child(parent, child, comm, cpu);
        }
    }

    /// A new task is queued for the first time; its test for preemption follows.
    pub(super) fn on_wakeup_new(&mut self, record: &Record, wakeup: Wakeup) {
        let target = wakeup.target_cpu;
        if target.index() >= self.cpus.len() {
            return;
        }
        let task = self.task(wakeup.pid, Some(wakeup.prio), wakeup.comm, target);
        if self.sched.is_on_queue(task) {
            self.seen.lost += 1;
            return;
        }
        let orig = self.sched.task(task).cpu();
        let known = match self.by_lag {
            true => self.average_known(target),
            false => self.is_known(task) && self.min_known(orig) && self.min_known(target),
        };
        self.sched.activate_new(task, target);
        self.judge_placement(record, task, "fork", known, &[], 0);
        let pending = self.sched.need_resched(target);
        let truth = match self.asks_resched_next(record.cpu, wakeup.pid, target) {
            Some(asks) => Some(asks),
            None if target == record.cpu => {
                self.window.on_cpu(target).next().and_then(|next| self.flag_set_here(next))
            }
            None => self.resched_shown_by(target),
        };
        self.judge_preempt(record, task, pending, truth);
    }

    pub(super) fn on_exit(&mut self, pid: Pid) {
        if let Some(info) = self.tasks.get_mut(&pid) {
            info.exiting = true;
        }
    }

    pub(super) fn on_yield_call(&mut self, record: &Record) {
        if let Some(info) = self.tasks.get_mut(&record.context) {
            info.yielding = true;
        }
    }

    /// The running task leaves its queue and comes back at once: why is told by what was announced before.
    pub(super) fn requeue_running(&mut self, task: TaskId, cpu: Cpu) {
        let pid = self.pid_of(task);
        let shown = self.prio_shown_later(pid);
        let Some(info) = self.tasks.get_mut(&pid) else { return };
        let moved = std::mem::take(&mut info.moving_group) || info.exiting;
        let announced = info.renice.take();
        let unannounced = shown.and_then(|prio| prio.nice()).filter(|_| !self.next_charge_fits(task));
        let renice =
            announced.or(unannounced).filter(|&nice| Some(nice) != self.sched.task(task).prio().nice());
        match renice {
            Some(nice) if !moved => {
                let policy = self.sched.policy(task);
                self.sched.force_nice(task, nice, policy);
            }
            _ => self.sched.requeue_running(cpu, moved),
        }
        if moved {
            // The group may be throttled: sched_move_task() has the task picked again.
            self.cpus[cpu.index()].resched_due = true;
        }
        self.note_minimum(cpu);
        if moved && !self.min_known(cpu) {
            self.mark_unknown(task);
        }
        self.force_if_shown(task);
    }

    /// Forces a task's vruntime where it is shown later; otherwise it stays as the model has it.
    fn force_if_shown(&mut self, task: TaskId) {
        if let Some(shown) = self.vruntime_shown_later(task) {
            self.force_vruntime(task, shown);
        }
    }

    pub(super) fn min_known(&self, cpu: Cpu) -> bool {
        self.cpus.get(cpu.index()).is_some_and(|info| info.min_known)
    }

    /// Compares where a task that has just been queued stands, and puts it where the kernel had it.
    ///
    /// `others` are values that the kernel could have come to as well; a probe counts if it comes after event `since`.
    pub(super) fn judge_placement(
        &mut self,
        record: &Record,
        task: TaskId,
        case: &'static str,
        known: bool,
        others: &[Vruntime],
        since: u64,
    ) {
        if !self.is_fair(task) {
            return;
        }
        let cpu = self.sched.task(task).cpu();
        let view = self.sched.entity_view(task);
        let model = view.vruntime;
        let placed = self.info(task).and_then(|info| info.placed.take()).filter(|placed| placed.event > since);
        let shown = placed.map(|placed| placed.vruntime).or_else(|| self.vruntime_shown_later(task));
        let deadline = placed.and_then(|placed| placed.deadline).filter(|_| self.by_lag);
        let verdict = match shown {
            None => Verdict::NotJudged("vruntime not shown"),
            Some(_) if !known => Verdict::NotJudged("state before not known"),
            Some(kernel) if kernel == model => match deadline {
                Some(deadline) if deadline != view.deadline => Verdict::Miss("deadline"),
                _ => Verdict::Hit,
            },
            Some(kernel) if others.contains(&kernel) => Verdict::Admissible,
            Some(_) => Verdict::Miss(case),
        };
        let judged = Judged { record, kind: Kind::Placement, case, cpu };
        self.judge(judged, verdict, |walker| {
            let kernel = shown.unwrap_or(model);
            let wanted = deadline.map_or(String::new(), |deadline| format!(", deadline {:+}", deadline.minus(kernel)));
            [
                format!(
                    "{} at {}, deadline {:+}, lag {}",
                    walker.name_of(task),
                    model.0,
                    view.deadline.minus(model),
                    view.vlag
                ),
                format!("{} ({:+}){wanted}", kernel.0, kernel.minus(model)),
            ]
        });
        if let Some(deadline) = deadline {
            self.sched.force_deadline(task, deadline);
        }
        match shown {
            Some(kernel) => {
                self.learn_minimum(task, cpu, case, model, kernel);
                self.force_vruntime(task, kernel);
            }
            None => {
                if let Some(info) = self.info(task) {
                    info.known = known;
                }
            }
        }
    }

    /// A queue's minimum that was not known is shown by where a task was placed relative to it.
    fn learn_minimum(
        &mut self,
        task: TaskId,
        cpu: Cpu,
        case: &'static str,
        model: Vruntime,
        kernel: Vruntime,
    ) {
        let depends_on_minimum = matches!(case, "fork" | "moved");
        if self.by_lag || self.min_known(cpu) || !depends_on_minimum || !self.is_known(task) {
            return;
        }
        let minimum = self.sched.min_vruntime(cpu).plus(kernel.minus(model));
        self.sched.force_min_vruntime(cpu, minimum);
        self.cpus[cpu.index()].min_known = true;
        self.note_minimum(cpu);
    }

    /// Compares whether a task that has just been queued takes the CPU, and applies what the kernel did.
    pub(super) fn judge_preempt(
        &mut self,
        record: &Record,
        task: TaskId,
        pending: bool,
        truth: Option<bool>,
    ) {
        let cpu = self.sched.task(task).cpu();
        let decision = self.sched.wakeup_preempt(task);
        let curr = self.sched.curr(cpu);
        let known = self.is_known(task) && self.is_known(curr);
        let curr_queued = self.sched.is_on_queue(curr) && !self.cpus[cpu.index()].blocked;
        let verdict = match truth {
            _ if !self.is_fair(task) || !self.is_fair(curr) => {
                Verdict::NotJudged("another class is concerned")
            }
            _ if !curr_queued => Verdict::NotJudged("the running task has left its queue"),
            _ if pending => Verdict::NotJudged("a reschedule is already pending"),
            None => Verdict::NotJudged("the trace does not show it"),
            Some(_) if !known => Verdict::NotJudged("vruntime not known"),
            Some(truth) if truth == decision.preempt => Verdict::Hit,
            Some(_) => Verdict::Miss(decision.reason.describe()),
        };
        let preempts = truth.unwrap_or(decision.preempt);
        let case = super::accounting::yes_no(preempts);
        let judged = Judged { record, kind: Kind::WakeupPreempt, case, cpu };
        self.judge(judged, verdict, |walker| {
            let said = super::accounting::yes_no(decision.preempt);
            [format!("{said} for {}: {}", walker.name_of(task), decision.reason.describe()), case.to_string()]
        });
        let forced = match judged_otherwise(verdict) {
            true => PreemptDecision { preempt: preempts, ..super::wakeups::decision_for(preempts) },
            false => decision,
        };
        self.sched.apply_preempt(task, forced);
    }
}

/// Whether the kernel's answer has to be forced.
fn judged_otherwise(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Miss(_))
}
