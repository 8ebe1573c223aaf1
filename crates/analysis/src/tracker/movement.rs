//! Why a task was moved to another CPU.
//!
//! `sched_migrate_task` does not say. The context in which it is reported does:
//!
//! * between waking and wakeup of the task: the wakeup's own choice;
//! * from `migration/N`: the stopper, by the task's own request if the task woke the stopper;
//! * from a softirq: the periodic or the NOHZ balancer;
//! * from a task that is about to sleep, on the CPU that gets the task: the newidle balancer.
//!
//! Must not know: what is made of it.

use fairlab_event::{Cpu, Event, Wakeup};

use super::{TrackedTaskPhase, Tracker, TrackerChange};

/// What moved a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MoveCause {
    /// Its wakeup chose another CPU.
    Wakeup,
    /// It asked for it: exec, or a change of its own affinity.
    Asked,
    /// The periodic balancer or the NOHZ balancer, in softirq context.
    Softirq,
    /// The balancer of a CPU that is about to idle.
    NewIdle,
    /// The stopper of its CPU: active balance, NUMA balance, or somebody's change of affinity.
    Stopper,
    /// Something else, or the trace does not tell.
    Other,
}

impl MoveCause {
    /// What moved it, when it is not being woken.
    fn of_context(event: &Event<'_>, orig: Cpu, dest: Cpu) -> MoveCause {
        let context = &event.context;
        let name = context.comm.as_bytes();
        let (flags, has_flags) = (context.flags, !context.flags.as_bytes().is_empty());
        // A stopper pushes away from its own CPU; when it is done its CPU may idle and pull.
        if name.starts_with(STOPPER) && event.cpu == orig {
            MoveCause::Stopper
        } else if flags.in_softirq() || name.starts_with(b"ksoftirqd/") {
            MoveCause::Softirq
        } else if has_flags && !flags.in_hardirq() && !context.pid.is_idle() && event.cpu == dest {
            MoveCause::NewIdle
        } else {
            MoveCause::Other
        }
    }
}

/// How the names of the stoppers begin.
const STOPPER: &[u8] = b"migration/";

impl Tracker {
    /// Remembers which task woke a CPU's stopper for itself.
    pub(super) fn note_stopper(&mut self, wakeup: &Wakeup, event: &Event<'_>) {
        if !wakeup.comm.as_bytes().starts_with(STOPPER) {
            return;
        }
        let (context, flags) = (event.context.pid, event.context.flags);
        let by_itself = !flags.in_hardirq() && !flags.in_softirq();
        let cpu = Tracker::plausible(wakeup.target_cpu, event);
        self.cpu_mut(cpu).stopper_asked_by = by_itself.then_some(context);
    }

    pub(super) fn migrate(&mut self, task: u32, from: Cpu, to: Cpu, event: &Event<'_>) -> TrackerChange {
        let (from, to) = (Tracker::plausible(from, event), Tracker::plausible(to, event));
        let by_context = MoveCause::of_context(event, from, to);
        // The waker keeps interrupts off from sched_waking on: whatever its CPU says of the task is the wakeup's doing.
        let by_waker = self.cpu(event.cpu).is_some_and(|cpu| cpu.waking == Some(task));
        let state = &self.tasks[task as usize];
        let asked_by = self.cpu(event.cpu).and_then(|cpu| cpu.stopper_asked_by);
        let by_request = by_context == MoveCause::Stopper
            && (asked_by == Some(state.pid) || state.doing == TrackedTaskPhase::Sleeping);
        let cause = match state.doing {
            TrackedTaskPhase::Waking => MoveCause::Wakeup,
            TrackedTaskPhase::Waiting(_) | TrackedTaskPhase::Sleeping if by_waker => MoveCause::Wakeup,
            TrackedTaskPhase::Sleeping | TrackedTaskPhase::Unknown if !self.has_waking => MoveCause::Wakeup,
            _ if by_request => MoveCause::Asked,
            _ => by_context,
        };
        if let TrackedTaskPhase::Waiting(_) = state.doing {
            self.becomes(task, TrackedTaskPhase::Waiting(to));
        }
        TrackerChange::Moved { task, from, to, cause }
    }
}
