//! Where a thread stands in its task's phases, and what it has measured.
//!
//! Must not know: who else there is.

use fairlab_event::Ns;

use super::plan::{RtAppPhase, RtAppTask, TaskGroupPath};
use crate::workload::Action;

/// Sums of one run through a phase (`log_data_t`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loop {
    pub start: Ns,
    /// Time from wake times to waking (`wu_lat`).
    pub wakeup_latency: Ns,
    /// Time left before the timer, negative when it came too late, ns; the last timer's or, accumulated, all of them.
    pub slack: Option<i64>,
}

/// All loops of a thread.
#[derive(Clone, Debug, Default)]
pub(super) struct LoopSums {
    pub loops: u64,
    pub period_sum: Ns,
    pub period_max: Ns,
    pub timed: u64,
    pub wakeup_latency_sum: Ns,
    pub wakeup_latency_max: Ns,
    pub slack_sum: i128,
    pub slack_min: i64,
    pub missed: u64,
}

/// One thread.
#[derive(Clone, Debug)]
pub(super) struct RtAppThread {
    /// Its task's number.
    pub task: usize,
    pub name: String,
    /// How far it has come before its first phase.
    pub stage: RtAppStage,
    /// The task group that it has entered last.
    pub group: TaskGroupPath,
    phase: usize,
    phase_loops: i64,
    task_loops: i64,
    pub step: usize,
    /// It stands on the list of something and must sleep until it is taken off.
    pub waits: bool,
    /// It sleeps without a timer, and nobody has woken it since.
    pub sleeps: bool,
    /// When it was to be woken by the timer that it sleeps on.
    pub timer_due: Option<Ns>,
    /// Timers of its own, by number: when each is due next.
    pub timers: Vec<Option<Ns>>,
    pub current: Loop,
    pub measured: LoopSums,
}

/// Before and between phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RtAppStage {
    /// Sleeps for its delay first.
    Begin,
    /// Asks for its task's scheduling.
    Task,
    /// Enters its task's group.
    TaskGroup,
    /// Asks for its phase's scheduling.
    Phase,
    /// Enters its phase's group.
    PhaseGroup,
    /// Does its steps.
    Steps,
    /// Has ended, but for saying so.
    Ended,
}

impl RtAppThread {
    pub fn new(task: usize, name: String, timers: usize) -> RtAppThread {
        RtAppThread {
            task,
            name,
            stage: RtAppStage::Begin,
            group: TaskGroupPath::Root,
            phase: 0,
            phase_loops: 0,
            task_loops: 0,
            step: 0,
            waits: false,
            sleeps: false,
            timer_due: None,
            timers: vec![None; timers],
            current: Loop::default(),
            measured: LoopSums { slack_min: i64::MAX, ..LoopSums::default() },
        }
    }

    /// Enters a task group, unless it is in there or none is named. All begin in the root.
    pub fn enter(&mut self, group: Option<TaskGroupPath>) -> Option<Action> {
        let group = group.filter(|&group| self.group != group)?;
        self.group = group;
        Some(match group {
            TaskGroupPath::Root => Action::LeaveGroup,
            TaskGroupPath::Below(number) => Action::EnterGroup(number),
        })
    }

    /// The phase that it is in.
    pub fn phase<'t>(&self, task: &'t RtAppTask) -> &'t RtAppPhase {
        &task.phases[self.phase]
    }

    /// The phase's steps are done. Returns whether there is anything left to do.
    pub fn end_loop(&mut self, task: &RtAppTask, now: Ns, counts: bool) -> bool {
        if counts {
            self.measure(now);
        }
        self.step = 0;
        self.stage = RtAppStage::Phase;
        self.phase_loops = self.phase_loops.wrapping_add(1);
        if self.phase_loops == task.phases[self.phase].repeat {
            self.phase_loops = 0;
            self.phase += 1;
            if self.phase == task.phases.len() {
                self.phase = 0;
                self.task_loops = self.task_loops.wrapping_add(1).max(0);
            }
        }
        self.task_loops != task.repeat
    }

    fn measure(&mut self, now: Ns) {
        let measured = &mut self.measured;
        let period = now.since(self.current.start);
        measured.loops += 1;
        measured.period_sum += period;
        measured.period_max = measured.period_max.max(period);
        if let Some(slack) = self.current.slack {
            measured.timed += 1;
            measured.slack_sum += i128::from(slack);
            measured.slack_min = measured.slack_min.min(slack);
            measured.missed += u64::from(slack < 0);
            measured.wakeup_latency_sum += self.current.wakeup_latency;
            measured.wakeup_latency_max = measured.wakeup_latency_max.max(self.current.wakeup_latency);
        }
    }
}
