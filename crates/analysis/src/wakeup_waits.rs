//! Each wait for a CPU as it ends: task, begin, end, reason and waker. Also how many tasks run or wait on each CPU.
//!
//! Must not know: what the waits are used for.

use std::collections::BTreeMap;

use fairlab_event::{Comm, Cpu, Event, EventKind, Ns, Pid};

use crate::depth::QueueDepth;
use crate::tracker::{Tracker, TrackerChange, WaitCause};

/// A wait for a CPU that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitOver {
    /// The task that waited.
    pub pid: Pid,
    /// Its name.
    pub comm: Comm,
    /// The CPU on which it runs now.
    pub cpu: Cpu,
    /// When the wait began.
    pub start: Ns,
    /// When it ended.
    pub end: Ns,
    /// Why it began.
    pub cause: WaitCause,
    /// The task that woke or created it, and when; none for an interrupt, or where nothing tells.
    pub waker: Option<(Pid, Ns)>,
}

/// Follows all waits.
#[derive(Clone, Debug, Default)]
pub struct WaitFollower {
    tracker: Tracker,
    /// The waker of a task that has not run since, and when.
    wakers: BTreeMap<Pid, (Pid, Ns)>,
    depth: QueueDepth,
}

impl WaitFollower {
    /// Takes the next event; gives the wait that it ends, unless events are missing within it.
    pub fn event(&mut self, event: &Event<'_>) -> Option<WaitOver> {
        match &event.kind {
            EventKind::SchedWaking(wakeup)
            | EventKind::SchedWakeup(wakeup)
            | EventKind::SchedWakeupNew(wakeup) => self.woken(wakeup.pid, event),
            EventKind::SchedProcessExit { pid, .. } => drop(self.wakers.remove(pid)),
            _ => {}
        }
        let change = self.tracker.event(event);
        let TrackerChange::Switched { cpu, entered: Some(entered), .. } = change else { return None };
        let task = self.tracker.task(entered.task);
        let (pid, comm) = (task.pid, task.comm);
        let waker = self.wakers.remove(&pid);
        let over = entered.wait.filter(|over| !over.crossed_loss)?;
        Some(WaitOver {
            pid,
            comm,
            cpu,
            start: over.wait.start,
            end: event.time,
            cause: over.wait.cause,
            waker: waker.filter(|_| !over.wait.cause.is_off_cpu_runnable()),
        })
    }

    /// The CPUs whose depth the latest event changed, and how many tasks run or wait there now.
    pub fn depths(&mut self) -> impl Iterator<Item = (Cpu, u32)> + use<'_> {
        self.depth.changed(&self.tracker)
    }

    /// `sched_waking` tells the waker; `sched_wakeup` may be reported by the CPU that the task goes to.
    fn woken(&mut self, wakee: Pid, event: &Event<'_>) {
        let context = &event.context;
        let by_task = !context.flags.in_hardirq() && !context.flags.in_softirq();
        if by_task && context.pid.0 > 0 && context.pid != wakee {
            self.wakers.entry(wakee).or_insert((context.pid, event.time));
        }
    }
}

#[cfg(test)]
mod tests {
    use fairlab_event::{Context, Flags, Prio, Switch, TaskState, Wakeup};

    use super::*;

    fn told(
        waits: &mut WaitFollower,
        time: u64,
        by: i32,
        flags: &[u8],
        kind: EventKind<'_>,
    ) -> Option<WaitOver> {
        let context = Context { comm: "w".into(), pid: Pid(by), tgid: Pid(by), flags: Flags::new(flags) };
        waits.event(&Event { time: Ns(time), cpu: Cpu(0), context, kind })
    }

    fn switch(prev: i32, prev_state: TaskState, next: i32) -> EventKind<'static> {
        EventKind::SchedSwitch(Switch {
            prev_comm: "t".into(),
            prev_pid: Pid(prev),
            prev_prio: Prio(120),
            prev_state,
            next_comm: "t".into(),
            next_pid: Pid(next),
            next_prio: Prio(120),
        })
    }

    #[test]
    fn a_wait_tells_who_woke_and_why_it_began() {
        let mut waits = WaitFollower::default();
        let wakeup = |pid| Wakeup { comm: "t".into(), pid: Pid(pid), prio: Prio(120), target_cpu: Cpu(0) };
        assert_eq!(told(&mut waits, 1, 0, b"d..2.", switch(0, TaskState::RUNNABLE, 7)), None);
        told(&mut waits, 2, 7, b"d..2.", EventKind::SchedWaking(wakeup(8)));
        told(&mut waits, 3, 7, b"d..2.", EventKind::SchedWakeup(wakeup(8)));
        told(&mut waits, 4, 7, b"d.h2.", EventKind::SchedWaking(wakeup(9)));
        told(&mut waits, 4, 7, b"d.h2.", EventKind::SchedWakeup(wakeup(9)));
        let over = told(&mut waits, 6, 7, b"d..2.", switch(7, TaskState::PREEMPTED, 8)).expect("a wait");
        assert_eq!((over.pid, over.start, over.end), (Pid(8), Ns(2), Ns(6)));
        assert_eq!((over.cause, over.waker), (WaitCause::Wakeup, Some((Pid(7), Ns(2)))));
        let by_interrupt = told(&mut waits, 7, 8, b"d..2.", switch(8, TaskState::INTERRUPTIBLE, 9));
        assert_eq!(by_interrupt.map(|over| (over.pid, over.waker)), Some((Pid(9), None)));
        let preempted =
            told(&mut waits, 9, 9, b"d..2.", switch(9, TaskState::INTERRUPTIBLE, 7)).expect("a wait");
        assert_eq!((preempted.start, preempted.cause), (Ns(6), WaitCause::PreemptedInKernel));
        assert_eq!(preempted.waker, None);
    }
}
