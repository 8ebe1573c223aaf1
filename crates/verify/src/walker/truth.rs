//! What the kernel did, as far as the events to come show it.

use fairlab_event::{Cpu, Ns, Pid, Prio, Switch, TaskState};
use fairlab_kernel::{TaskId, Vruntime};

use super::super::probe::{At, Key, ProbeHit, ReschedCaller};
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
                    match self.own_nice(task, switch.next_prio) {
                        Some(shown) => (nice, runs) = (shown, true),
                        None => return None,
                    }
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

    /// The clock of a CPU's runqueue at the next accounting of its running task.
    pub(super) fn clock_of_next_charge(&self, cpu: Cpu) -> Option<Ns> {
        let pid = self.pid_of(self.sched.curr(cpu));
        let runtime = self.window.of_task(pid).find_map(|record| match &record.what {
            RecordKind::Runtime { runtime, .. } => Some(*runtime),
            _ => None,
        })?;
        Some(Ns(self.sched.charged_until(cpu)?.0 + runtime.0))
    }

    /// The clock of that accounting where it is part of the pick that `cpu` has begun.
    pub(super) fn clock_of_charge_at_pick(&self, cpu: Cpu) -> Option<Ns> {
        let pid = self.pid_of(self.sched.curr(cpu));
        let is_part = |record: &&EventRecord| match &record.what {
            RecordKind::OtherProbe => true,
            RecordKind::Probe(probe) => {
                matches!(probe.at, At::PickReturn | At::PutPrevEntity | At::SetNextEntity)
            }
            _ => false,
        };
        let next = self.window.on_cpu(cpu).find(|record| !is_part(record))?;
        let charges = matches!(next.what, RecordKind::Runtime { pid: charged, .. } if charged == pid);
        (charges && !in_interrupt(next)).then(|| self.clock_of_next_charge(cpu))?
    }

    /// The clock of that accounting where something is throttled first: beside probes, the trace tells that charge next.
    pub(super) fn clock_of_charge_at_throttle(&self, record: &EventRecord, cpu: Cpu) -> Option<Ns> {
        let pid = self.pid_of(self.sched.curr(cpu));
        let own = record.cpu == cpu && !in_interrupt(record) && !self.cpus[cpu.index()].blocked;
        // A CPU that finds nothing looks elsewhere first, and time goes on.
        let is_part = |record: &&EventRecord| match &record.what {
            RecordKind::OtherProbe => true,
            RecordKind::Probe(probe) => !matches!(probe.at, At::NewidleBalance | At::LoadBalance),
            _ => false,
        };
        let next = self.window.on_cpu(cpu).find(|record| !is_part(record)).filter(|_| own)?;
        let charges = matches!(next.what, RecordKind::Runtime { pid: charged, .. } if charged == pid);
        (charges && !in_interrupt(next)).then(|| self.clock_of_next_charge(cpu))?
    }

    /// The clock of a CPU's runqueue when `pid` was queued there, and began to wait. When it gets the CPU, and how long it has
    /// waited by then, tell it to the ns, if all charges until then are printed.
    pub(super) fn clock_of_enqueue(&self, pid: Pid, cpu: Cpu) -> Option<Ns> {
        let of_task = self.window.of_task(pid).find(|record| {
            matches!(
                record.what,
                RecordKind::WaitEnds(..) | RecordKind::Migrate { .. } | RecordKind::Switch(_)
            )
        })?;
        let RecordKind::WaitEnds(_, waited) = &of_task.what else { return None };
        let mut running = self.pid_of(self.sched.curr(cpu));
        let mut clock = self.sched.charged_until(cpu)?.0;
        let mut charged_last = false;
        for record in self.window.all().take_while(|record| record.number < of_task.number) {
            match &record.what {
                RecordKind::Runtime { pid, runtime, .. } if *pid == running => {
                    clock += runtime.0;
                    charged_last = record.cpu == cpu && !in_interrupt(record);
                }
                RecordKind::Switch(switch) if record.cpu == cpu => {
                    let next = self.tasks.get(&switch.next_pid).filter(|next| self.is_fair(next.id))?;
                    running = self.pid_of(next.id);
                    charged_last = false;
                }
                _ => {}
            }
        }
        let gets_it =
            self.window.on_cpu(cpu).find(|record| record.number > of_task.number && !is_probe(record));
        let gets_it = gets_it.is_some_and(
            |record| matches!(record.what, RecordKind::Switch(switch) if switch.next_pid == pid),
        );
        (charged_last && gets_it && of_task.cpu == cpu).then(|| clock.checked_sub(waited.0).map(Ns))?
    }

    /// When a task that gets the CPU begins to run: so much before its first accounting as that charges.
    pub(super) fn time_of_start(&self, task: TaskId) -> Option<Ns> {
        let pid = self.pid_of(task);
        for record in self.window.of_task(pid) {
            match &record.what {
                RecordKind::Runtime { runtime, .. } => return record.time.0.checked_sub(runtime.0).map(Ns),
                RecordKind::Switch(_) => return None,
                _ => {}
            }
        }
        None
    }

    /// When a task begins to run on a CPU that has run none. A charge is reported a little after the clock was read. So each
    /// charge up to the CPU's next rest leads back to a start, and the earliest is the nearest.
    pub(super) fn start_by_charges(&self, task: Pid) -> Option<Ns> {
        let (mut pid, mut switched, mut charged) = (task, 0, 0);
        let mut earliest = None::<u64>;
        for _ in 0..RUNS_AFTER_START {
            let mut next = None;
            for record in self.window.of_task(pid).filter(|record| record.number > switched) {
                match &record.what {
                    RecordKind::Runtime { pid: of, runtime, .. } if *of == pid => {
                        charged += runtime.0;
                        let start = record.time.0.saturating_sub(charged);
                        earliest = Some(earliest.map_or(start, |earliest| earliest.min(start)));
                    }
                    RecordKind::Switch(switch) if switch.prev_pid == pid => {
                        let fair = switch.next_prio.nice().is_some() && !switch.next_pid.is_idle();
                        next = fair.then_some((switch.next_pid, record.number));
                        break;
                    }
                    _ => {}
                }
            }
            let Some((follower, number)) = next else { break };
            (pid, switched) = (follower, number);
        }
        earliest.map(Ns)
    }

    /// Whether the next charge of a running task is one of the weight that it has now.
    pub(super) fn next_charge_fits(&self, task: TaskId) -> bool {
        let before = self.sched.entity_view(self.sched.task_entity(task)).vruntime;
        let pid = self.pid_of(task);
        let charge = self.window.of_task(pid).find_map(|record| match &record.what {
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
        match &next.what {
            RecordKind::Switch(switch) => self.asked_before(switch),
            _ => self.flag_set_here(next),
        }
    }

    /// Whether code of `cpu` has just set the flag, as its next event shows it; `None` where something else may have.
    pub(super) fn flag_shown_next(&self, cpu: Cpu) -> Option<bool> {
        let next = self.window.on_cpu(cpu).next()?;
        if matches!(next.what, RecordKind::Wakeup(_)) {
            return None;
        }
        let shown = self.flag_set_next(cpu);
        shown.filter(|&set| !set || !self.queues_another_on(cpu, next.number))
    }

    /// Whether a reschedule that another CPU has just asked for is pending on `cpu`: its next event's flag.
    ///
    /// An event may have taken its flags before, so the one after it counts as well. Once the tick has come, or the CPU has
    /// switched, nothing can be told. A concluded wakeup stands early, so a flag that the third event shows may be its own or
    /// not.
    pub(super) fn resched_shown_by(&self, cpu: Cpu) -> Option<bool> {
        let mut shown = None;
        let mut slice_ended = false;
        let asked_by_other = self.deadline_passes_on(cpu);
        let mut coming = self.window.on_cpu(cpu);
        while let Some(record) = coming.next() {
            if asked_by_other.is_some_and(|event| event < record.number) {
                return Some(false);
            }
            if record.flags.as_bytes().is_empty() || self.is_charged_from_elsewhere(cpu, record.number) {
                return None;
            }
            if record.flags.need_resched() {
                // Another task that is queued there before that may have asked for it, or the end of the slice.
                let another = wakes_here(record) || self.queues_another_on(cpu, record.number);
                return (!another && !slice_ended).then_some(true);
            }
            let accounts = match &record.what {
                RecordKind::Runtime { .. } => true,
                RecordKind::Probe(probe) => probe.at == At::DeadlineTracepoint,
                _ => false,
            };
            let is_tick = accounts && record.flags.in_hardirq();
            if let RecordKind::Switch(switch) = &record.what {
                let asked = self.asked_before(switch)?;
                let by_another = asked && self.queues_another_on(cpu, record.number);
                return (!by_another).then_some(asked);
            }
            if is_tick {
                return Some(false);
            }
            if shown.is_some() {
                let third = coming.next().filter(|_| self.seen.concluded_wakeups);
                return (!third.is_some_and(|third| third.flags.need_resched())).then_some(false);
            }
            shown = Some(false);
            slice_ended = self.charge_ends_slice(cpu, record);
        }
        shown
    }

    /// Whether `record` is a charge that ends the request or the protection of `cpu`'s running task: such a one asks for a
    /// reschedule, and is reported before it does (`update_curr()`).
    fn charge_ends_slice(&self, cpu: Cpu, record: &EventRecord) -> bool {
        let running = self.sched.curr(cpu);
        match record.what {
            RecordKind::Runtime { pid, runtime, .. } if self.by_lag && pid == self.pid_of(running) => {
                self.sched.makes_way_after(running, runtime)
            }
            _ => false,
        }
    }

    /// Whether a reschedule was asked for before a switch that is the next that its CPU reports; `None` if nothing tells.
    ///
    /// The flag is taken back before a switch is reported. The wait that ends is reported while it is set, but only where
    /// `kernel.sched_schedstats` is on. Elsewhere a task that is switched out while it could run on has been asked to leave.
    fn asked_before(&self, switch: &Switch) -> Option<bool> {
        match (self.seen.waits_end, self.blocks(switch)) {
            (true, _) => Some(false),
            (false, true) => None,
            (false, false) => Some(true),
        }
    }

    /// Whether another CPU takes a waiting task off `cpu` before the next event there. If a reschedule was pending for it, the
    /// pick went without it and kept the task that runs. A pick after a wakeup goes by the wakeup's clock
    /// (`rq_clock_skip_update()`). So it charges nothing, and nothing shows.
    pub(super) fn is_taken_unseen(&self, pid: Pid, cpu: Cpu) -> bool {
        let next = self.window.on_cpu(cpu).next().map_or(u64::MAX, |record| record.number);
        let before = self.window.of_task(pid).take_while(|record| record.number < next);
        before
            .filter(|record| record.cpu != cpu)
            .any(|record| matches!(record.what, RecordKind::Migrate { pid: moved, .. } if moved == pid))
    }

    /// Whether each test for preemption that asks another CPU for a reschedule shows: it sends an interrupt, unless it asks
    /// lazily. A wakeup that is only concluded stands before it.
    pub(super) fn interrupts_tell(&self) -> bool {
        let shown = self.seen.preempting_interrupts && !self.seen.concluded_wakeups;
        shown && !self.sched.reschedules_lazily()
    }

    /// Whether the next that code on `cpu` does is to interrupt `target`, in a test for preemption.
    pub(super) fn interrupts_next(&self, cpu: Cpu, target: Cpu) -> bool {
        let next = self
            .window
            .on_cpu(cpu)
            .find(|record| !matches!(record.what, RecordKind::Probe(_) | RecordKind::OtherProbe));
        next.is_some_and(
            |record| matches!(record.what, RecordKind::Interrupts { cpu, preempts: true } if cpu == target),
        )
    }

    /// Whether code on another CPU reports before event `until` that it queues a task on `cpu`. It may also be about to: the
    /// running task is charged for it, and the wakeup is reported later.
    fn queues_another_on(&self, cpu: Cpu, until: u64) -> bool {
        let running = self.pid_of(self.sched.curr(cpu));
        let before = self.window.all().take_while(|record| record.number < until);
        before.filter(|record| record.cpu != cpu).any(|record| match &record.what {
            RecordKind::Wakeup(wakeup) | RecordKind::WakeupNew(wakeup) => wakeup.target_cpu == cpu,
            RecordKind::Runtime { pid, .. } if *pid == running => self.wakes_next_on(record, cpu),
            _ => false,
        })
    }

    /// Whether the wakeup that `charge` is part of, if any, queues a task on `cpu`.
    fn wakes_next_on(&self, charge: &EventRecord, cpu: Cpu) -> bool {
        let mut coming = self.window.on_cpu(charge.cpu).filter(|record| record.number > charge.number);
        coming.find_map(|record| match &record.what {
            RecordKind::Wakeup(wakeup) | RecordKind::WakeupNew(wakeup) => Some(wakeup.target_cpu == cpu),
            RecordKind::Waking(_) | RecordKind::Switch(_) => Some(false),
            _ => None,
        }) == Some(true)
    }

    /// Whether another CPU is reported to charge `cpu`'s running task before event `until`, say to take something off its
    /// queue: from EEVDF on such a charge may ask for a reschedule as well.
    fn is_charged_from_elsewhere(&self, cpu: Cpu, until: u64) -> bool {
        let running = self.pid_of(self.sched.curr(cpu));
        let mut before = self.window.of_task(running).take_while(|record| record.number < until);
        self.by_lag
            && before.any(|record| {
                record.cpu != cpu
                    && matches!(&record.what, RecordKind::Runtime { pid, .. } if *pid == running)
            })
    }

    /// The next event with which another CPU accounts `cpu`'s running task and asks for a reschedule, as far as traced.
    fn deadline_passes_on(&self, cpu: Cpu) -> Option<u64> {
        if !self.recording.traces_places {
            return None;
        }
        let asks = |probe: &ProbeHit| {
            probe.at == At::DeadlineTracepoint && probe.cpu() == Some(cpu) && probe.get(Key::Asks) == Some(1)
        };
        self.window.all().take(DEADLINE_WITHIN).find_map(|record| match &record.what {
            RecordKind::Probe(probe) if asks(probe) => Some(record.number),
            _ => None,
        })
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
        // What the tick itself traces may come before it asks.
        let in_tick = |record: &&EventRecord| {
            record.flags.in_hardirq() && matches!(record.what, RecordKind::Probe(_) | RecordKind::OtherProbe)
        };
        let next = self.window.on_cpu(cpu).find(|record| !in_tick(record))?;
        let pending = match &next.what {
            RecordKind::Switch(switch) => self.asked_before(switch)?,
            _ => next.flags.need_resched(),
        };
        match next.flags.as_bytes().get(1)? {
            b'n' if !self.rules.lazy_flag => Some(false),
            _ if pending && self.is_queued_on_from_elsewhere(cpu, next.number) => None,
            _ if pending && self.is_charged_from_elsewhere(cpu, next.number) => None,
            _ => Some(pending),
        }
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
                RecordKind::Probe(_)
                | RecordKind::OtherProbe
                | RecordKind::TimerInterrupt
                | RecordKind::CallInterrupt
                | RecordKind::Other => {}
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
        if !switch.prev_state.is_runnable() {
            return true;
        }
        if self.uses_up_runtime(switch) {
            return true;
        }
        if switch.prev_state.is_preempted() || !self.rules.prev_state_may_lie {
            return false;
        }
        // A waker has already begun to wake it, or does so next: it had blocked.
        let waking = self.tasks.get(&pid).is_some_and(|info| info.waking);
        waking || self.wakes_before_running(pid)
    }

    /// Whether a deadline task makes way for one of a lower class: it has used its runtime up, and is off its queue until a timer
    /// puts it back, without a wakeup.
    fn uses_up_runtime(&self, switch: &Switch) -> bool {
        switch.prev_prio == Prio::DEADLINE && (switch.next_pid.is_idle() || switch.next_prio.0 >= 0)
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
        let Some(switch) = self.next_switch(cpu).filter(|switch| switch.prev_pid == pid) else {
            return false;
        };
        if !self.blocks(&switch) {
            return false;
        }
        if info.dequeuing == Some(pid) || info.falling_asleep == Some(pid) {
            return true;
        }
        !self.is_charged_again(cpu, &switch, None)
    }

    /// Whether the task that leaves `cpu` with this switch is charged before it, for another reason than tasks that are pulled there:
    /// queueing what a pass takes charges it once, and so does each of them that sleeps and leaves when it would be picked. `pulled` is on
    /// its way now.
    pub(super) fn is_charged_again(&self, cpu: Cpu, switch: &Switch, pulled: Option<Pid>) -> bool {
        let mut arriving = pulled.is_some();
        let mut pulled = Vec::from_iter(pulled);
        let mut charges = 0;
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
                RecordKind::WaitEnds(pid, _) if pulled.contains(&pid) && pid != switch.next_pid => {
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
        next.is_some_and(|record| {
            matches!(
                record.what,
                RecordKind::SleepEnds(_) | RecordKind::IoWaitEnds(_) | RecordKind::Wakeup(_)
            )
        })
    }

    /// The child that the running task is about to create, if the accounting just reported is the fork's.
    pub(super) fn forks_next(&self, pid: Pid, cpu: Cpu) -> Option<(Pid, fairlab_event::Comm)> {
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

    /// Whether an ending task is taken off its queue and put back (`sched_autogroup_exit_task()`), where no end of a wait shows
    /// it, since `kernel.sched_schedstats` is off. That is the first accounting by its own code, without those for tasks that it
    /// wakes. Kernels that place by lag put it back where it was.
    pub(super) fn is_requeued_to_end(&self, record: &EventRecord, pid: Pid, cpu: Cpu) -> bool {
        let Some(info) = self.tasks.get(&pid).filter(|info| info.exiting && !info.requeued_to_end) else {
            return false;
        };
        let leaves_session = info.session.is_some() && self.recording.autogroups_enabled;
        let dies =
            |state: TaskState| [TaskState::ZOMBIE, TaskState::DEAD].iter().any(|&end| state.contains(end));
        let next = self.next_switch(cpu).filter(|switch| switch.prev_pid == pid);
        !self.by_lag
            && !self.seen.waits_end
            && (self.sched.exits_move() || leaves_session)
            && next.is_some_and(|switch| dies(switch.prev_state))
            && record.cpu == cpu
            && !in_interrupt(record)
            && !self.queues_woken_next(cpu)
    }
}

/// How far ahead another CPU's accounting is looked for, events.
const DEADLINE_WITHIN: usize = 256;

/// How many tasks in turn are looked at to find when the first of them began.
const RUNS_AFTER_START: usize = 16;

/// Probes of one function that may stand between a decision and the event that shows it.
const PROBES_BETWEEN: usize = 12;

/// Whether code on a CPU wakes a task there: its own test may have set the flag that it reports with.
fn wakes_here(record: &EventRecord) -> bool {
    match &record.what {
        RecordKind::Wakeup(wakeup) | RecordKind::WakeupNew(wakeup) => wakeup.target_cpu == record.cpu,
        _ => false,
    }
}

/// Whether code that an interrupt brought reported an event.
pub(super) fn in_interrupt(record: &EventRecord) -> bool {
    record.flags.in_hardirq() || record.flags.in_softirq()
}

fn is_probe(record: &EventRecord) -> bool {
    matches!(record.what, RecordKind::Probe(_) | RecordKind::OtherProbe)
}
