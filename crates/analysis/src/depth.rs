//! How many tasks run or wait on each CPU, reported when it changes.
//!
//! Must not know: what the depth is used for.

use fairlab_event::Cpu;

use crate::tracker::Tracker;

/// Follows the depth of every runqueue.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueDepth {
    /// What was reported of each CPU.
    told: Vec<Option<u32>>,
}

impl QueueDepth {
    /// The CPUs whose depth the tracker's latest event changed, and how many tasks run or wait there now.
    pub(crate) fn changed<'t>(
        &'t mut self,
        tracker: &'t Tracker,
    ) -> impl Iterator<Item = (Cpu, u32)> + use<'t> {
        tracker.touched().filter_map(|cpu| {
            let state = tracker.cpu(cpu).filter(|state| state.known)?;
            if self.told.len() <= cpu.index() {
                self.told.resize(cpu.index() + 1, None);
            }
            let depth = state.depth();
            let told = &mut self.told[cpu.index()];
            (*told != Some(depth)).then(|| {
                *told = Some(depth);
                (cpu, depth)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlab_event::{Comm, Context, Event, EventKind, Flags, Ns, Pid, Prio, Switch, TaskState, Wakeup};

    /// On CPU 0, in the idle task's context.
    fn told((tracker, depth): &mut (Tracker, QueueDepth), kind: EventKind<'_>) -> Vec<(u32, u32)> {
        let context = Context { comm: Comm::default(), pid: Pid(0), tgid: Pid(0), flags: Flags::NONE };
        let event = Event { time: Ns(1), cpu: Cpu(0), context, kind };
        tracker.event(&event);
        depth.changed(tracker).map(|(cpu, depth)| (cpu.0, depth)).collect()
    }

    #[test]
    fn queued_and_running_tasks_count_and_nothing_is_told_twice() {
        let mut depth = <(Tracker, QueueDepth)>::default();
        let wakeup = |pid| Wakeup { comm: "t".into(), pid: Pid(pid), prio: Prio(120), target_cpu: Cpu(0) };
        let switch = |prev: i32, prev_state, next: i32| {
            EventKind::SchedSwitch(Switch {
                prev_comm: "t".into(),
                prev_pid: Pid(prev),
                prev_prio: Prio(120),
                prev_state,
                next_comm: "t".into(),
                next_pid: Pid(next),
                next_prio: Prio(120),
            })
        };
        assert_eq!(told(&mut depth, EventKind::SchedWakeup(wakeup(7))), [(0, 1)]);
        assert_eq!(told(&mut depth, EventKind::SchedWakeup(wakeup(8))), [(0, 2)]);
        assert_eq!(told(&mut depth, switch(0, TaskState::RUNNABLE, 7)), []);
        assert_eq!(told(&mut depth, switch(7, TaskState::RUNNABLE, 8)), []);
        assert_eq!(told(&mut depth, switch(8, TaskState::INTERRUPTIBLE, 7)), [(0, 1)]);
        assert_eq!(told(&mut depth, switch(7, TaskState::INTERRUPTIBLE, 0)), [(0, 0)]);
    }
}
