//! `sched_switch`: who runs next.

use fairlab_event::{Cpu, Ns, Pid, Switch, TaskState};
use fairlab_kernel::decision::PickDecision;
use fairlab_kernel::{Policy, TaskId};

use super::super::record::Record;
use super::super::tally::{Kind, Verdict};
use super::{Judged, Walker};

impl Walker {
    pub(super) fn on_switch(&mut self, record: &Record, switch: Switch) {
        let cpu = record.cpu;
        let prev = self.task(switch.prev_pid, Some(switch.prev_prio), switch.prev_comm, cpu);
        let prev = if switch.prev_pid == Pid::IDLE { self.sched.idle_task(cpu) } else { prev };
        let next = match switch.next_pid {
            Pid::IDLE => self.sched.idle_task(cpu),
            pid => self.task(pid, Some(switch.next_prio), switch.next_comm, cpu),
        };
        self.attach_task(record, next);
        if self.blocks(&switch) {
            if !self.cpus[cpu.index()].blocked && self.sched.curr(cpu) == prev {
                self.block(cpu, switch.prev_state);
            }
        } else {
            self.apply_unseen_yield(record, &switch, prev);
        }
        if self.by_lag && !self.seen.dequeue_probe {
            self.sched.finish_delayed_dequeues(cpu);
        }
        self.judge_pick(record, next);
        self.switch_to(record, next, switch.prev_state);
        if let Some(info) = self.info(prev) {
            info.yielding = false;
            info.yielded = false;
            if info.exiting && !switch.prev_state.is_runnable() {
                info.known = false;
            }
        }
    }

    /// The running task of `cpu` leaves its queue.
    pub(super) fn block(&mut self, cpu: Cpu, state: TaskState) {
        // A kernel up to v5.17 may have shown the state of a task that is being woken.
        let state = if state.is_runnable() { TaskState::INTERRUPTIBLE } else { state };
        let task = self.sched.curr(cpu);
        if self.sched.policy(task) == Policy::Swapper || !self.sched.is_on_queue(task) {
            return;
        }
        let clock = self.sched.rq_clock(cpu);
        self.sched.set_here(cpu, fairlab_kernel::Mode::Task, clock);
        let lag_known = self.average_known(cpu);
        self.sched.deactivate_task(cpu, state);
        self.cpus[cpu.index()].blocked = true;
        if let Some(info) = self.info(task) {
            info.lag_known = lag_known;
        }
        self.note_minimum(cpu);
    }

    /// A task that leaves runnable without a pending reschedule has yielded.
    fn apply_unseen_yield(&mut self, record: &Record, switch: &Switch, prev: TaskId) {
        let cpu = record.cpu;
        let unasked = !switch.prev_state.is_preempted()
            && !self.cpus[cpu.index()].need_resched
            && !record.flags.as_bytes().is_empty();
        let yielded = self.info(prev).is_some_and(|info| std::mem::take(&mut info.yielded));
        if self.takes_yield(prev) || (unasked && !yielded && self.is_fair(prev) && self.sched.curr(cpu) == prev) {
            self.apply_yield(prev, cpu);
        }
    }

    /// Whether a task has called `sched_yield()` and that has not been applied yet.
    pub(super) fn takes_yield(&mut self, task: TaskId) -> bool {
        self.info(task).is_some_and(|info| std::mem::take(&mut info.yielding))
    }

    /// The running task of `cpu` yields; it has been accounted.
    pub(super) fn apply_yield(&mut self, task: TaskId, cpu: Cpu) {
        if self.is_fair(task) && self.sched.curr(cpu) == task {
            let clock = self.sched.rq_clock(cpu);
            self.sched.set_here(cpu, fairlab_kernel::Mode::Task, clock);
            self.sched.yield_task(cpu);
        }
        if let Some(info) = self.info(task) {
            info.yielded = true;
        }
    }

    fn judge_pick(&mut self, record: &Record, next: TaskId) {
        let cpu = record.cpu;
        let queue = self.sched.queue_view(cpu);
        let candidates = queue.waiting.len() + usize::from(queue.curr.is_some());
        if candidates < 2 || !self.is_fair(next) {
            return;
        }
        let mut views = queue.curr.iter().chain(&queue.waiting);
        let all_known = views.all(|view| view.task.is_some_and(|task| self.is_known(task)));
        let decision = self.sched.pick_next_task(cpu);
        let queued = self.sched.is_on_queue(next) && self.sched.task(next).cpu() == cpu;
        let verdict = if !queued || !self.cpus[cpu.index()].queue_known {
            Verdict::NotJudged("queue not known")
        } else if !all_known {
            Verdict::NotJudged("vruntime not known")
        } else if decision.task == next {
            Verdict::Hit
        } else {
            Verdict::Miss(decision.reason.describe())
        };
        let judged = Judged { record, kind: Kind::Pick, case: decision.reason.describe(), cpu };
        self.judge(judged, verdict, |walker| walker.describe_pick(decision, next));
        if self.warm && !matches!(verdict, Verdict::NotJudged(_)) {
            let leftmost = queue
                .curr
                .iter()
                .chain(&queue.waiting)
                .reduce(|least, view| if view.vruntime.is_before(least.vruntime) { view } else { least });
            let agrees = leftmost.is_some_and(|view| view.task == Some(next));
            self.tally.count_baseline(Kind::Pick, "least vruntime", agrees);
        }
    }

    fn describe_pick(&self, decision: PickDecision, next: TaskId) -> [String; 2] {
        [format!("{}: {}", self.name_of(decision.task), decision.reason.describe()), self.name_of(next)]
    }

    fn switch_to(&mut self, record: &Record, next: TaskId, prev_state: TaskState) {
        let cpu = record.cpu;
        if self.sched.is_on_queue(next) && self.sched.task(next).cpu() != cpu {
            self.seen.lost += 1;
            self.take_off(next);
        }
        let is_idle = self.sched.idle_task(cpu) == next;
        if !self.sched.is_on_queue(next) && !is_idle {
            // It was queued before the trace began, or by an event that was lost.
            self.sched.lay_on_queue(next, cpu);
            self.mark_unknown(next);
        }
        if is_idle {
            self.forget_queued(cpu);
        }
        let prev = self.sched.curr(cpu);
        if !self.is_fair(prev) {
            let clock = self.sched.rq_clock(cpu);
            self.sched.set_rq_clock(cpu, Ns(clock.0.max(record.time.0)));
        }
        let clock = self.sched.rq_clock(cpu);
        self.sched.set_here(cpu, fairlab_kernel::Mode::Task, clock);
        self.sched.context_switch(cpu, next, prev_state);
        self.cpus[cpu.index()].blocked = false;
        self.cpus[cpu.index()].need_resched = false;
        self.note_minimum(cpu);
    }

    /// A CPU that goes idle has nothing queued: what the core has there is wrong, and from now on all is known.
    fn forget_queued(&mut self, cpu: Cpu) {
        let waiting = self.sched.queue_view(cpu).waiting;
        for task in waiting.into_iter().filter_map(|view| view.task) {
            if !self.sched.is_delayed(task) {
                self.seen.lost += 1;
            }
            self.take_off(task);
        }
        self.cpus[cpu.index()].queue_known = true;
    }

    /// A pending reschedule was acted upon, and the running task was picked again.
    pub(super) fn kept_running(&mut self, record: &Record, curr: TaskId) {
        let cpu = record.cpu;
        let clock = self.sched.rq_clock(cpu);
        self.sched.set_here(cpu, fairlab_kernel::Mode::Task, clock);
        self.sched.context_switch(cpu, curr, TaskState::RUNNABLE);
    }
}
