//! Whether a task that goes to sleep stays on its queue (delayed dequeue), if no probe shows it. The next report of the task
//! tells.
//!
//! * A sleeper that left its queue prints its sleep when it is woken.
//! * A sleeper that leaves late prints that its wait ends, without getting the CPU.
//! * A sleeper that is woken on its queue prints neither.
//! * A CPU that idles has no task left on its queue.
//!
//! Must not know: by what rule a dequeue is put off.

use fairlab_event::{Cpu, Pid, TaskState};
use fairlab_kernel::TaskId;

use super::super::probe::{At, Key};
use super::super::record::{EventRecord, RecordKind};
use super::super::tally::DecisionKind;
use super::super::verdict::{DecisionVerdict, ModelAnswers};
use super::judging::yes_no;
use super::{DecisionPlace, Walker};

/// How far ahead a CPU's next time of idleness is looked for, events of it.
const IDLES_WITHIN: usize = 4096;

impl Walker {
    /// The running task has just left its queue, or has not, as the model has it: compares that with what shows later, and
    /// does as the kernel did. `known`: so was what the decision rests on.
    pub(super) fn follow_delay(&mut self, record: &EventRecord, task: TaskId, state: TaskState, known: bool) {
        let cpu = self.sched.task(task).cpu();
        let pid = self.pid_of(task);
        let kernel = self.stays_queued(cpu, pid).filter(|_| self.stays_shown() && reports_sleep(state));
        if let Some(info) = self.info(task) {
            (info.stay_shown, info.stay_known) = (kernel.is_some(), known);
        }
        let Some(kernel) = kernel.filter(|_| self.is_fair(task)) else { return };
        let model = self.sched.is_delayed(task);
        if model && !kernel {
            // It may leave as the first that would be picked, before the switch and without a word.
            self.cpus[cpu.index()].leaves_by_switch = Some((task, known));
            if let Some(info) = self.info(task) {
                info.stay_shown = false;
            }
            return;
        }
        self.judge_stay(record, task, kernel, known);
        if kernel && !model {
            self.sched.lay_delayed(task, cpu);
        }
    }

    /// Another task is about to be looked for on `cpu`: sleepers that would be picked leave their queues, as far as the trace
    /// does not show when they do.
    pub(super) fn finish_delayed_dequeues(&mut self, record: &EventRecord, cpu: Cpu) {
        if !self.by_lag || self.seen.dequeue_probe {
            return;
        }
        let (tasks, by_id) = (&self.tasks, &self.by_id);
        let pid = |task: TaskId| by_id.get(task.index()).copied().unwrap_or(Pid::IDLE);
        let shown = |task| tasks.get(&pid(task)).is_some_and(|info| info.stay_shown);
        self.sched.finish_delayed_dequeues_but(cpu, shown);
        if let Some((task, known)) = self.cpus[cpu.index()].leaves_by_switch.take() {
            let known = known && self.average_known(self.queue_of(task));
            self.judge_stay(record, task, false, known);
            self.sched.force_delayed_out(task);
            self.knowledge.entity_mut(self.sched.task_entity(task)).lag_known = known;
        }
    }

    /// After an event: a sleeper that leaves before the switch has left, unless another is reported to leave before it.
    pub(super) fn settle_sleeper(&mut self, record: &EventRecord) {
        let cpu = record.cpu;
        let waits = || {
            matches!(self.window.on_cpu(cpu).next().map(|next| &next.what), Some(RecordKind::WaitEnds(..)))
        };
        if self.cpus[cpu.index()].leaves_by_switch.is_some() && !waits() {
            self.finish_delayed_dequeues(record, cpu);
        }
    }

    /// Compares whether a task that goes to sleep stays on its queue. `known`: the state that this rests on is.
    pub(super) fn judge_stay(&mut self, record: &EventRecord, task: TaskId, kernel: bool, known: bool) {
        let model = self.sched.is_delayed(task);
        let verdict = DecisionVerdict::of(ModelAnswers::one(model), kernel, "eligibility")
            .unless((!known).then_some("state before not known"));
        let case = yes_no(kernel);
        let judged =
            DecisionPlace { record, kind: DecisionKind::DelayedDequeue, case, queue: self.queue_of(task) };
        self.judge(judged, verdict, |walker| {
            [format!("{} for {}", yes_no(model), walker.name_of(task)), case.to_string()]
        });
    }

    /// Whether the trace shows of tasks that go to sleep whether they stay: where no probe does, what is printed later.
    fn stays_shown(&self) -> bool {
        self.by_lag && self.sched.may_delay_dequeues() && self.seen.sleeps_end && !self.seen.dequeue_probe
    }

    /// Whether `pid`, which has just blocked on `cpu`, stays on its queue; `None` if nothing tells.
    fn stays_queued(&self, cpu: Cpu, pid: Pid) -> Option<bool> {
        let mut waking = self.tasks.get(&pid).is_some_and(|info| info.waking);
        let next = self.window.of_task(pid).find_map(|record| match &record.what {
            RecordKind::SleepEnds(_) | RecordKind::IoWaitEnds(_) => Some(Some(false)),
            RecordKind::WaitEnds(..) | RecordKind::Wakeup(_) => Some(Some(true)),
            RecordKind::Migrate { .. } => Some(Some(!waking)),
            RecordKind::Waking(_) => {
                waking = true;
                None
            }
            RecordKind::Switch(switch) if switch.next_pid == pid => Some(None),
            // v7.3 takes it off its queue here, at once or later.
            RecordKind::Probe(probe) if probe.at == At::DequeueEntity => {
                probe.get(Key::Delayed).map(|delayed| Some(delayed == 1))
            }
            _ => None,
        });
        match next {
            Some(shown) => shown,
            None => self.idles_soon(cpu).then_some(false),
        }
    }

    fn idles_soon(&self, cpu: Cpu) -> bool {
        let idles = |record: &EventRecord| matches!(record.what, RecordKind::Switch(switch) if switch.next_pid == Pid::IDLE);
        self.window.on_cpu(cpu).take(IDLES_WITHIN).any(idles)
    }
}

/// Whether a wakeup from that state prints how long the task slept.
fn reports_sleep(state: TaskState) -> bool {
    [TaskState::INTERRUPTIBLE, TaskState::UNINTERRUPTIBLE, TaskState::IDLE]
        .iter()
        .any(|&sleep| state.contains(sleep))
}
