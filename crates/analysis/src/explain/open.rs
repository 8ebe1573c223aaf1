//! Waits that go on: what is noted of them as they go.
//!
//! Must not know: how the story is told in the end.

use std::sync::Arc;

use fairlab_event::{Cpu, Event, EventKind, Ns};

use super::placement::ExplainedPlacement;
use super::story::{CpuMode, NamedPid, WaitCause, WaiterMove, Waker};
use super::{Explain, MoveCause};
use crate::tracker::Resched;

/// A wait that goes on.
#[derive(Clone, Debug)]
pub(super) struct OpenWait {
    pub(super) start: Ns,
    pub(super) cause: WaitCause,
    pub(super) resched: Option<Resched>,
    pub(super) waker: Option<Waker>,
    pub(super) prev_cpu: Option<Cpu>,
    pub(super) stays: Vec<OpenWaitPart>,
    pub(super) stays_left_out: u64,
}

/// Where it waits.
#[derive(Clone, Debug)]
pub(super) struct OpenWaitPart {
    pub(super) cpu: Cpu,
    pub(super) from: Ns,
    pub(super) brought_by: Option<WaiterMove>,
    pub(super) ahead: u32,
    pub(super) runner: Option<u32>,
    /// The runner's vruntime when the task came, and its place in the hierarchy.
    pub(super) runner_vruntime: Option<(Ns, u64)>,
    pub(super) runner_placement: Option<Arc<ExplainedPlacement>>,
    /// The waiting task's own placement.
    pub(super) placement: Option<Arc<ExplainedPlacement>>,
}

/// How many stays are noted.
const STAYS_MAX: usize = 16;

/// The waker of a task: the context that reported the event.
fn waker(event: &Event<'_>) -> Waker {
    let (context, flags) = (&event.context, event.context.flags);
    let mode = match () {
        () if flags.in_hardirq() => CpuMode::HardInterrupt,
        () if flags.in_softirq() => CpuMode::SoftInterrupt,
        () => CpuMode::Task,
    };
    Waker { who: NamedPid { comm: context.comm, pid: context.pid }, cpu: event.cpu, mode }
}

impl Explain {
    /// A sleeping task is woken.
    pub(super) fn woken(&mut self, task: u32, event: &Event<'_>) {
        self.begin(task, Some(waker(event)), None, event);
        if let EventKind::SchedWaking(wakeup) = &event.kind
            && let Some(open) = self.open_wait(task)
        {
            open.prev_cpu = Some(wakeup.target_cpu);
        }
        // Without sched_wakeup it is queued at once, as far as can be known.
        if let Some(cpu) = self.tracker.task(task).waits_on() {
            self.begin_stay(task, cpu, None, event.time);
        }
    }

    /// A woken task or a new one is queued.
    pub(super) fn queued(&mut self, task: u32, cpu: Cpu, begins: bool, event: &Event<'_>) {
        if begins {
            self.begin(task, Some(waker(event)), None, event);
        }
        let Some(open) = self.open_wait(task) else { return };
        match open.stays.last() {
            Some(stay) if stay.cpu == cpu => {}
            // What was known before was not where it went.
            Some(_) if open.stays.len() == 1 => {
                open.stays.clear();
                self.begin_stay(task, cpu, None, event.time);
            }
            Some(_) => {}
            None => self.begin_stay(task, cpu, None, event.time),
        }
    }

    pub(super) fn begin(
        &mut self,
        task: u32,
        waker: Option<Waker>,
        resched: Option<Resched>,
        event: &Event<'_>,
    ) {
        let wait = self.tracker.task(task).wait;
        drop(self.close(task));
        let Some(wait) = wait else { return };
        let index = task as usize;
        if self.open.len() <= index {
            self.open.resize_with(index + 1, || None);
        }
        debug_assert!(wait.start <= event.time);
        self.open[index] = Some(Box::new(OpenWait {
            start: wait.start,
            cause: wait.cause,
            resched,
            waker,
            prev_cpu: None,
            stays: Vec::new(),
            stays_left_out: 0,
        }));
        self.beginnings.insert((wait.start, task));
    }

    fn open_wait(&mut self, task: u32) -> Option<&mut OpenWait> {
        self.open.get_mut(task as usize)?.as_deref_mut()
    }

    pub(super) fn close(&mut self, task: u32) -> Option<Box<OpenWait>> {
        let open = self.open.get_mut(task as usize)?.take()?;
        self.beginnings.remove(&(open.start, task));
        Some(open)
    }

    pub(super) fn begin_stay(&mut self, task: u32, cpu: Cpu, brought_by: Option<WaiterMove>, now: Ns) {
        let state = self.tracker.cpu(cpu);
        let runner = state.and_then(|state| state.running).filter(|&runner| runner != task);
        let ahead = state.map_or(0, |state| state.waiting.saturating_sub(1));
        let known = runner.and_then(|runner| self.virtual_states.get(runner as usize));
        let placement = self.virtual_states.get(task as usize).and_then(|state| state.placement.clone());
        let stay = OpenWaitPart {
            cpu,
            from: now,
            brought_by,
            ahead,
            runner,
            runner_vruntime: known.and_then(|state| state.vruntime),
            runner_placement: known.and_then(|state| state.deepest.clone()),
            placement: None,
        };
        let Some(open) = self.open_wait(task) else { return };
        open.stays.push(stay);
        if open.stays.len() > STAYS_MAX {
            open.stays.remove(STAYS_MAX / 2);
            open.stays_left_out += 1;
        }
        open.note_placement(placement.as_ref());
    }

    /// A task that waits is moved.
    pub(super) fn move_open(&mut self, task: u32, told: WaiterMove) {
        let placement = self.virtual_states.get(task as usize).and_then(|state| state.placement.clone());
        let Some(open) = self.open_wait(task) else { return };
        if open.stays.is_empty() {
            // It is not queued yet: the wakeup is choosing its CPU.
            return;
        }
        open.note_placement(placement.as_ref());
        let mut brought_by = Some(told);
        if told.cause == MoveCause::Wakeup {
            open.stays.clear();
            brought_by = None;
        }
        self.begin_stay(task, told.to, brought_by, told.time);
    }
}

impl OpenWait {
    /// Keeps a placement that was made for the present stay.
    pub(super) fn note_placement(&mut self, placement: Option<&Arc<ExplainedPlacement>>) {
        let start = self.start;
        if let Some(stay) = self.stays.last_mut()
            && stay.placement.is_none()
        {
            let fits =
                |placement: &&Arc<ExplainedPlacement>| placement.time >= start && placement.cpu == stay.cpu;
            stay.placement = placement.filter(fits).cloned();
        }
    }
}
