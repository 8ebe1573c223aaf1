//! What the kernel did, as far as the events to come show it.

use fairlab_event::{Comm, Cpu, Ns, Pid, Prio, Switch, TaskState};
use fairlab_kernel::{TaskId, Vruntime};

use super::super::probe::{At, Key, ReschedCaller};
use super::super::record::{EventRecord, RecordKind};
use super::Walker;

impl Walker {
    /// The vruntime that a task on a queue has from now until it runs: read back from its next accounting, or shown by a
    /// probe when it is picked. `None` when it is moved before, or nothing shows it.
    pub(super) fn vruntime_shown_later(&self, task: TaskId) -> Option<Vruntime> {
        let pid = self.pid_of(task);
        let mut nice = self.sched.task(task).nice();
        let mut runs = self.sched.curr(self.sched.task(task).cpu()) == task;
        for record in self.window.of_task(pid) {
            match &record.what {
                RecordKind::Switch(switch) if switch.next_pid == pid => {
                    (nice, runs) = (self.own_nice(task, switch.next_prio)?, true);
                }
                RecordKind::Switch(_) => runs = false,
                RecordKind::Runtime { runtime, vruntime: Some(vruntime), .. } => {
                    let gained = self.sched.virtual_time_at(task, nice, *runtime) as i64;
                    return Some(Vruntime(*vruntime).plus(-gained));
                }
                RecordKind::Probe(probe)
                    if matches!(probe.at, At::SetNextEntity | At::SetNextTask | At::PlaceReturn) =>
                {
                    if let Some(vruntime) = probe.unsigned(Key::Vruntime) {
                        return Some(Vruntime(vruntime));
                    }
                }
                // The core has taken it off already, and put it back.
                RecordKind::Probe(probe)
                    if probe.at == At::DequeueEntity
                        && record.number < self.cpus[record.cpu.index()].ahead_until => {}
                // It is being taken off, and stood there until now.
                RecordKind::Probe(probe) if probe.at == At::DequeueEntity => {
                    return probe.unsigned(Key::Vruntime).map(Vruntime);
                }
                RecordKind::Migrate { .. } | RecordKind::Runtime { .. } => return None,
                // It may have left since: a sleeper goes without a word when it is picked, and comes back elsewhere.
                RecordKind::Waking(_) if self.sched.is_delayed(task) => return None,
                // It goes on in another group, on another time line, or is put back as another's policy has it.
                RecordKind::Probe(probe) if matches!(probe.at, At::MoveGroup | At::SetScheduler) && !runs => {
                    return None;
                }
                _ => {}
            }
        }
        None
    }

    /// The nice level of a fair task that shows a priority. The priority may be lent to it. `None` if it is not of the fair
    /// class.
    fn own_nice(&self, task: TaskId, shown: Prio) -> Option<i32> {
        let lent = self.tasks.get(&self.pid_of(task)).and_then(|info| info.lent);
        let nice = shown.nice()?;
        Some(if lent.is_some_and(|lent| lent.prio == shown) { self.sched.task(task).nice() } else { nice })
    }

    /// The clock of a CPU's runqueue at its running task's next accounting, where that is part of the pick that `cpu` has begun.
    pub(super) fn clock_of_charge_at_pick(&self, cpu: Cpu) -> Option<Ns> {
        let running = self.pid_of(self.sched.curr(cpu));
        let is_part = |record: &&EventRecord| match &record.what {
            RecordKind::OtherProbe => true,
            RecordKind::Probe(probe) => {
                matches!(probe.at, At::PickReturn | At::PutPrevEntity | At::SetNextEntity)
            }
            _ => false,
        };
        let next = self.window.on_cpu(cpu).find(|record| !is_part(record))?;
        match next.what {
            RecordKind::Runtime { pid, runtime, .. } if pid == running && !in_interrupt(next) => {
                Some(Ns(self.sched.charged_until(cpu)?.0 + runtime.0))
            }
            _ => None,
        }
    }

    /// Whether the next charge of a running task is one of the weight that it has now.
    pub(super) fn next_charge_fits(&self, task: TaskId) -> bool {
        let before = self.sched.entity_view(self.sched.task_entity(task)).vruntime;
        let charge = self.window.of_task(self.pid_of(task)).find_map(|record| match &record.what {
            RecordKind::Runtime { runtime, vruntime, .. } => Some((*runtime, *vruntime)),
            _ => None,
        });
        let Some((runtime, Some(vruntime))) = charge else { return true };
        before.plus(self.sched.virtual_time(task, runtime) as i64) == Vruntime(vruntime)
    }

    /// The next priority that an event shows of a task.
    pub(super) fn prio_shown_later(&self, pid: Pid) -> Option<Prio> {
        self.window.of_task(pid).find_map(|record| match &record.what {
            RecordKind::Switch(switch) if switch.prev_pid == pid => Some(switch.prev_prio),
            RecordKind::Switch(switch) if switch.next_pid == pid => Some(switch.next_prio),
            RecordKind::Waking(wakeup) | RecordKind::Wakeup(wakeup) | RecordKind::WakeupNew(wakeup) => {
                Some(wakeup.prio)
            }
            RecordKind::Migrate { prio, .. } => Some(*prio),
            _ => None,
        })
    }

    /// Whether code of the event's own CPU has set the flag that the event shows; `None` where another CPU may have.
    pub(super) fn flag_set_here(&self, record: &EventRecord) -> Option<bool> {
        match record.flags.as_bytes().get(1)? {
            // Set by another CPU and not folded yet.
            b'n' if !self.rules.lazy_flag => None,
            _ => Some(record.flags.need_resched()),
        }
    }

    /// Whether code of `cpu` sets the flag in its current work, as its next event shows it.
    pub(super) fn flag_set_next(&self, cpu: Cpu) -> Option<bool> {
        let next = self.window.on_cpu(cpu).next()?;
        // The flag is taken back before a switch is reported.
        let shown = !matches!(next.what, RecordKind::Switch(_));
        shown.then(|| self.flag_set_here(next)).flatten()
    }

    /// Whether the tick that has just been accounted takes the CPU: a probe, or the flag of the CPU's next event if no
    /// other CPU can have set it.
    pub(super) fn tick_asks(&self, cpu: Cpu) -> Option<bool> {
        if self.seen.resched_probe {
            // The tick asks right after it has accounted.
            let mut in_tick = self.window.on_cpu(cpu).map_while(|record| match &record.what {
                RecordKind::Probe(probe) if probe.by == Some(ReschedCaller::TickBegins) => None,
                RecordKind::Probe(probe) if record.flags.in_hardirq() && probe.at != At::Tick => Some(probe),
                _ => None,
            });
            return Some(in_tick.any(|probe| {
                matches!(probe.at, At::Resched | At::ReschedLazy)
                    && probe.by == Some(ReschedCaller::Accounting)
                    && probe.cpu() == Some(cpu)
            }));
        }
        let next = self.window.on_cpu(cpu).next()?;
        let asks = match next.what {
            // The flag was taken back before: a task that could run on was asked to leave.
            RecordKind::Switch(switch) => (!self.blocks(&switch)).then_some(true),
            _ => self.flag_set_here(next),
        };
        asks.filter(|asks| !asks || !self.is_queued_on_from_elsewhere(cpu, next.number))
    }

    /// Whether another CPU reports, before or shortly after event `until`, that it has queued a task on `cpu`, or moved the
    /// running task to another group. It may have asked for a reschedule.
    fn is_queued_on_from_elsewhere(&self, cpu: Cpu, until: u64) -> bool {
        const REPORTED_LATE: u64 = 16;
        let near = self.window.all().take_while(|record| record.number <= until + REPORTED_LATE);
        let running = self.pid_of(self.sched.curr(cpu));
        near.filter(|record| record.cpu != cpu).any(|record| match &record.what {
            RecordKind::Wakeup(wakeup) | RecordKind::WakeupNew(wakeup) => wakeup.target_cpu == cpu,
            RecordKind::CgroupAttach { pid, .. } => *pid == running,
            RecordKind::Probe(probe) => probe.at == At::MoveGroup && probe.task() == Some(running),
            _ => false,
        })
    }

    /// Whether code on `cpu` asks for a reschedule of `target` in its test of `pid` that comes next; `None` where no probe
    /// shows the test.
    pub(super) fn asks_resched_next(&self, cpu: Cpu, pid: Pid, target: Cpu) -> Option<bool> {
        let mut tested = false;
        for record in self.window.on_cpu(cpu).take(PROBES_BETWEEN) {
            match &record.what {
                RecordKind::Probe(probe) if probe.at == At::WakeupPreempt => {
                    tested |= probe.task() == Some(pid);
                }
                RecordKind::Probe(probe) if matches!(probe.at, At::Resched | At::ReschedLazy) => {
                    if probe.cpu() == Some(target) && probe.by == Some(ReschedCaller::Preemption) {
                        return Some(true);
                    }
                }
                RecordKind::Probe(_) | RecordKind::OtherProbe | RecordKind::Other => {}
                RecordKind::Runtime { .. } if tested => {}
                _ => break,
            }
        }
        tested.then_some(false)
    }

    /// Whether code on `cpu` takes a task off its queue to move it to another.
    pub(super) fn moves_next(&self, cpu: Cpu, pid: Pid) -> bool {
        let is_part = |record: &&EventRecord| {
            matches!(record.what, RecordKind::Probe(_) | RecordKind::OtherProbe | RecordKind::Runtime { .. })
        };
        let after = self.window.on_cpu(cpu).find(|record| !is_part(record));
        after.is_some_and(
            |record| matches!(record.what, RecordKind::Migrate { pid: moved, .. } if moved == pid),
        )
    }

    /// The next switch of a CPU.
    pub(super) fn next_switch(&self, cpu: Cpu) -> Option<Switch> {
        self.window.on_cpu(cpu).find_map(|record| match &record.what {
            RecordKind::Switch(switch) => Some(*switch),
            _ => None,
        })
    }

    /// Whether the task that leaves a CPU with this switch has blocked.
    pub(super) fn blocks(&self, switch: &Switch) -> bool {
        let pid = switch.prev_pid;
        if pid.is_idle() {
            return false;
        }
        if self.rules.idle_may_be_preempted && switch.prev_state.contains(TaskState::IDLE) {
            return !self.runs_before_woken(pid);
        }
        if !switch.prev_state.is_runnable() || uses_up_runtime(switch) {
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
                RecordKind::Switch(switch) if switch.next_pid == pid => return false,
                RecordKind::Switch(_) => left = true,
                RecordKind::Waking(_) => return true,
                RecordKind::Wakeup(_) if left => return true,
                RecordKind::Migrate { .. } => return false,
                _ => {}
            }
        }
        false
    }

    /// Whether a task that leaves its CPU, or has left it, runs again before anybody wakes it.
    fn runs_before_woken(&self, pid: Pid) -> bool {
        let first = self.window.of_task(pid).find_map(|record| match &record.what {
            RecordKind::Switch(switch) if switch.next_pid == pid => Some(true),
            RecordKind::Waking(_) | RecordKind::Wakeup(_) => Some(false),
            _ => None,
        });
        first == Some(true)
    }

    /// Whether the accounting of `pid` that is being looked at (reported by its own CPU) is the one of its dequeue: the
    /// last before a switch with which it has blocked, those aside that a task pulled onto this queue causes.
    pub(super) fn is_dequeue(&self, record: &EventRecord, pid: Pid, cpu: Cpu) -> bool {
        let info = &self.cpus[cpu.index()];
        if record.cpu != cpu || info.blocked || self.queues_woken_next(cpu) {
            return false;
        }
        let switch = self.next_switch(cpu).filter(|switch| switch.prev_pid == pid);
        let Some(switch) = switch.filter(|switch| self.blocks(switch)) else { return false };
        info.dequeuing == Some(pid)
            || info.falling_asleep == Some(pid)
            || !self.is_charged_again(cpu, &switch)
    }

    /// Whether the task that leaves `cpu` with this switch is charged before it, for another reason than tasks that are pulled
    /// there: queueing what a pass takes charges it once, and so does each of them that sleeps and leaves when it would be picked.
    fn is_charged_again(&self, cpu: Cpu, switch: &Switch) -> bool {
        let (mut arriving, mut pulled, mut charges) = (false, Vec::new(), 0_usize);
        for later in self.window.on_cpu(cpu) {
            match later.what {
                RecordKind::Switch(_) => break,
                RecordKind::Migrate { pid, dest, .. } if dest == cpu => {
                    arriving = true;
                    pulled.push(pid);
                }
                RecordKind::Runtime { pid, .. } if pid == switch.prev_pid => {
                    charges += usize::from(!std::mem::take(&mut arriving));
                }
                RecordKind::WaitEnds(pid) if pulled.contains(&pid) && pid != switch.next_pid => {
                    charges = charges.saturating_sub(1);
                }
                _ => {}
            }
            if charges > pulled.len() {
                return true;
            }
        }
        charges > 0
    }

    /// Whether code on `cpu` queues a woken task next, of a wakeup that began here or elsewhere (the wake list).
    pub(super) fn queues_woken_next(&self, cpu: Cpu) -> bool {
        let next = self
            .window
            .on_cpu(cpu)
            .find(|record| !matches!(record.what, RecordKind::Probe(_) | RecordKind::OtherProbe));
        next.is_some_and(|record| matches!(record.what, RecordKind::SleepEnds(_) | RecordKind::Wakeup(_)))
    }

    /// The child that the running task is about to create, if the accounting just reported is the fork's.
    pub(super) fn forks_next(&self, pid: Pid, cpu: Cpu) -> Option<(Pid, Comm)> {
        for record in self.window.of_task(pid) {
            match &record.what {
                RecordKind::Fork { parent, child, comm } if *parent == pid => return Some((*child, *comm)),
                // Interrupts and other CPUs may account between the fork and its report.
                RecordKind::Runtime { .. } if record.cpu != cpu || in_interrupt(record) => {}
                RecordKind::Runtime { .. } | RecordKind::Switch(_) => return None,
                _ => {}
            }
        }
        None
    }

    /// Whether the running task of `cpu` is switched out before it runs on: it is not accounted by itself before.
    pub(super) fn leaves_next(&self, pid: Pid, cpu: Cpu) -> bool {
        let own = self.window.on_cpu(cpu).find(|record| match &record.what {
            RecordKind::Switch(_) => true,
            RecordKind::Runtime { pid: charged, .. } => *charged == pid && !in_interrupt(record),
            _ => false,
        });
        own.is_some_and(|record| matches!(record.what, RecordKind::Switch(_)))
    }

    /// Whether the running task is taken off its queue and put back: it begins to run without a switch.
    pub(super) fn is_requeued_next(&self, pid: Pid) -> bool {
        for record in self.window.of_task(pid) {
            match &record.what {
                RecordKind::WaitEnds(..) => return true,
                RecordKind::Runtime { .. } | RecordKind::Switch(_) => return false,
                _ => {}
            }
        }
        false
    }
}

/// Probes of one function that may stand between a decision and the event that shows it.
const PROBES_BETWEEN: usize = 12;

/// Whether a deadline task makes way for one of a lower class: it has used its runtime up, and is off its queue until a timer
/// puts it back, without a wakeup.
fn uses_up_runtime(switch: &Switch) -> bool {
    switch.prev_prio == Prio::DEADLINE && (switch.next_pid.is_idle() || switch.next_prio.0 >= 0)
}

/// Whether code that an interrupt brought reported an event.
pub(super) fn in_interrupt(record: &EventRecord) -> bool {
    record.flags.in_hardirq() || record.flags.in_softirq()
}
