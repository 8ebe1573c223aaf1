//! What the kernel did, as far as the events to come show it.

use fairlab_event::{Cpu, Pid, Prio, Switch};
use fairlab_kernel::{TaskId, Vruntime};

use super::super::probe::{At, Caller, Key};
use super::super::record::{Record, What};
use super::Walker;

impl Walker {
    /// The vruntime that a task on a queue has from now until it runs: read back from its next accounting, or shown by a
    /// probe when it is picked. `None` when it is moved before, or nothing shows it.
    pub(super) fn vruntime_shown_later(&self, task: TaskId) -> Option<Vruntime> {
        let pid = self.pid_of(task);
        for record in self.window.of_task(pid) {
            match &record.what {
                What::Runtime { runtime, vruntime: Some(vruntime), .. } => {
                    let gained = self.sched.virtual_time(task, *runtime) as i64;
                    return Some(Vruntime(*vruntime).plus(-gained));
                }
                What::Probe(probe) if matches!(probe.at, At::SetNextEntity | At::SetNextTask | At::PlaceReturn) => {
                    if let Some(vruntime) = probe.unsigned(Key::Vruntime) {
                        return Some(Vruntime(vruntime));
                    }
                }
                What::Migrate { .. } | What::Runtime { .. } => return None,
                _ => {}
            }
        }
        None
    }

    /// The next priority that an event shows of a task.
    pub(super) fn prio_shown_later(&self, pid: Pid) -> Option<Prio> {
        self.window.of_task(pid).find_map(|record| match &record.what {
            What::Switch(switch) if switch.prev_pid == pid => Some(switch.prev_prio),
            What::Switch(switch) if switch.next_pid == pid => Some(switch.next_prio),
            What::Waking(wakeup) | What::Wakeup(wakeup) | What::WakeupNew(wakeup) => Some(wakeup.prio),
            What::Migrate { prio, .. } => Some(*prio),
            _ => None,
        })
    }

    /// Whether a reschedule is pending on `cpu` from now on: its next event's flag, or a probe.
    ///
    /// A flag that another CPU sets may come too late for the next event of a CPU whose flags were already taken, so
    /// with `remote` the one after it counts as well.
    pub(super) fn resched_shown_later(&self, cpu: Cpu, remote: bool) -> Option<bool> {
        let mut shown = None;
        for record in self.window.on_cpu(cpu).take(if remote { 2 } else { 1 } + PROBES_BETWEEN) {
            if let What::Probe(probe) = &record.what
                && matches!(probe.at, At::Resched | At::ReschedLazy | At::ReschedFlag)
            {
                if probe.cpu() == Some(cpu) {
                    return Some(true);
                }
                continue;
            }
            if record.flags.as_bytes().is_empty() {
                return None;
            }
            if record.flags.need_resched() || !remote {
                return Some(record.flags.need_resched());
            }
            if shown.is_some() || matches!(record.what, What::Switch(_)) {
                return Some(false);
            }
            shown = Some(false);
        }
        shown
    }

    /// Whether code on `cpu` asks for a reschedule of `target` next, as a probe shows it.
    pub(super) fn asks_resched_next(&self, cpu: Cpu, target: Cpu) -> bool {
        let next = self.window.on_cpu(cpu).take(PROBES_BETWEEN);
        let probes = next.map_while(|record| match &record.what {
            What::Probe(probe) => Some(probe),
            _ => None,
        });
        let mut probes = probes.take_while(|probe| {
            matches!(probe.at, At::Resched | At::ReschedLazy | At::ReschedFlag | At::WakeupPreempt | At::PickReturn | At::AverageReturn)
        });
        probes.any(|probe| {
            probe.at == At::Resched && probe.cpu() == Some(target) && probe.by == Some(Caller::Preemption)
        })
    }

    /// The next switch of a CPU.
    pub(super) fn next_switch(&self, cpu: Cpu) -> Option<Switch> {
        self.window.on_cpu(cpu).find_map(|record| match &record.what {
            What::Switch(switch) => Some(*switch),
            _ => None,
        })
    }

    /// Whether the task that leaves a CPU with this switch has blocked.
    pub(super) fn blocks(&self, switch: &Switch) -> bool {
        let pid = switch.prev_pid;
        if pid.is_idle() {
            return false;
        }
        if !switch.prev_state.is_runnable() {
            return true;
        }
        if switch.prev_state.is_preempted() || !self.rules.prev_state_may_lie {
            return false;
        }
        // A waker has already begun to wake it, or does so next: it had blocked.
        let waking = self.tasks.get(&pid).is_some_and(|info| info.waking);
        waking || self.wakes_before_running(pid)
    }

    /// Whether the next thing that happens to a task after it has left its CPU is a wakeup.
    fn wakes_before_running(&self, pid: Pid) -> bool {
        let mut left = false;
        for record in self.window.of_task(pid) {
            match &record.what {
                What::Switch(switch) if switch.next_pid == pid => return false,
                What::Switch(_) => left = true,
                What::Waking(_) => return true,
                What::Wakeup(_) if left => return true,
                What::Migrate { .. } => return false,
                _ => {}
            }
        }
        false
    }

    /// Whether the accounting of `pid` that is being looked at (reported by its own CPU) is the one of its dequeue: the
    /// last before a switch with which it has blocked, those aside that a task pulled onto this queue causes.
    pub(super) fn is_dequeue(&self, record: &Record, pid: Pid, cpu: Cpu) -> bool {
        if record.cpu != cpu || self.cpus[cpu.index()].blocked {
            return false;
        }
        let Some(switch) = self.next_switch(cpu).filter(|switch| switch.prev_pid == pid) else { return false };
        if !self.blocks(&switch) {
            return false;
        }
        let mut pulled = false;
        for later in self.window.on_cpu(cpu) {
            match &later.what {
                What::Switch(_) => return true,
                What::Migrate { dest, .. } if *dest == cpu => pulled = true,
                What::Runtime { pid: accounted, .. } if *accounted == pid => {
                    // The first one after a pull is that of queueing what was pulled.
                    if !std::mem::take(&mut pulled) {
                        return false;
                    }
                }
                _ => {}
            }
        }
        true
    }

    /// The child that the running task is about to create, if the accounting just reported is the fork's.
    pub(super) fn forks_next(&self, pid: Pid) -> Option<(Pid, fairlab_event::Comm)> {
        for record in self.window.of_task(pid) {
            match &record.what {
                What::Fork { parent, child, comm } if *parent == pid => return Some((*child, *comm)),
                What::Runtime { .. } | What::Switch(_) => return None,
                _ => {}
            }
        }
        None
    }

    /// Whether the running task is taken off its queue and put back: it begins to run without a switch.
    pub(super) fn is_requeued_next(&self, pid: Pid) -> bool {
        for record in self.window.of_task(pid) {
            match &record.what {
                What::WaitEnds(_) => return true,
                What::Runtime { .. } | What::Switch(_) => return false,
                _ => {}
            }
        }
        false
    }
}

/// Probes of one function that may stand between a decision and the event that shows it.
const PROBES_BETWEEN: usize = 12;
