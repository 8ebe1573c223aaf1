//! Holes in the record of what CPUs did.
//!
//! A hole is a stretch of a CPU's time in which events are missing. The recorder says so (`lost_events`, a buffer whose oldest
//! events were overwritten), or an event shows another task on the CPU than the last switch. Time in a hole is unknown:
//!
//! * where the recorder lost events, every wait that goes on crosses the hole;
//! * where a switch is missing, waits on that CPU cross the hole. So do waits of tasks that appear there or vanish.
//!
//! Must not know: what is computed from waits and stays.

use fairlab_event::{Comm, Cpu, Event, EventKind, Ns, Pid, Switch};

use super::{CPUS_MAX, TrackedTask, TrackedTaskPhase, Tracker, TrackerChange, WaitCause};

/// Counts holes: a wait that begins and ends at the same count crossed none.
#[derive(Clone, Debug, Default)]
pub(super) struct HoleCounter {
    /// Losses of events that a recorder told of.
    pub(super) losses: u32,
    /// For each CPU: switches that are missing.
    of_cpu: Vec<u32>,
    contexts: SwitchContexts,
    seen: SeenSwitches,
}

/// How the tasks in whose context switches were reported fit the tasks that left.
#[derive(Clone, Copy, Debug, Default)]
struct SwitchContexts {
    fitting: u64,
    odd: u64,
}

/// What switches there were.
#[derive(Clone, Copy, Debug, Default)]
struct SeenSwitches {
    switches: u64,
    /// Of these, away from the idle task, and to it.
    from_idle: u64,
    to_idle: u64,
    /// The name of the tasks that left; none: they have several.
    comm: Option<Comm>,
}

/// So few switches do not tell whose were recorded.
const SWITCHES_MIN: u64 = 3;

impl HoleCounter {
    /// How many switches of a CPU are missing so far.
    pub(super) fn of(&self, cpu: Cpu) -> u32 {
        self.of_cpu.get(cpu.index()).copied().unwrap_or(0)
    }

    /// A switch of `cpu` is missing.
    pub(super) fn on(&mut self, cpu: Cpu) {
        if self.of_cpu.len() <= cpu.index() {
            self.of_cpu.resize(cpu.index() + 1, 0);
        }
        self.of_cpu[cpu.index()] += 1;
    }

    /// Takes a switch and the task that reported it. That is the task that leaves, unless a recorder has its own task numbers.
    pub(super) fn hear_switch(&mut self, switch: &Switch, context: Pid) {
        let seen = &mut self.seen;
        seen.comm = (seen.switches == 0 || seen.comm == Some(switch.prev_comm)).then_some(switch.prev_comm);
        seen.switches += 1;
        seen.from_idle += u64::from(switch.prev_pid.is_idle());
        seen.to_idle += u64::from(switch.next_pid.is_idle());
        if context != Pid::UNKNOWN {
            let fits = context == switch.prev_pid;
            self.contexts.fitting += u64::from(fits);
            self.contexts.odd += u64::from(!fits);
        }
    }

    /// One line, if only one process's events were recorded: no CPU ever leaves the idle task, or what comes is never what
    /// leaves next.
    pub(super) fn one_process(&self, gaps: u64) -> Option<String> {
        let SeenSwitches { switches, from_idle, to_idle, comm } = self.seen;
        let never_idle = from_idle == 0 && to_idle > 1 && gaps > 0;
        if switches < SWITCHES_MIN || !never_idle && gaps * 2 < switches {
            return None;
        }
        let whose = comm.filter(|comm| !comm.is_empty()).map_or(String::new(), |comm| format!(" ('{comm}')"));
        Some(format!(
            "only one process's events were recorded{whose}: who ran before each of its switches is unknown; \
             record all CPUs: perf record -a (perf sched record does)"
        ))
    }

    /// Whether the context of an event tells which task runs on its CPU.
    pub(super) const fn contexts_fit(&self) -> bool {
        self.contexts.fitting > 0 && self.contexts.odd == 0
    }
}

impl Tracker {
    /// An event tells which task runs on its CPU: if nothing is known of that yet, and if something else was thought.
    pub(super) fn learn_from_context(&mut self, event: &Event<'_>) {
        let (cpu, pid) = (event.cpu, event.context.pid);
        if cpu.index() >= CPUS_MAX || matches!(event.kind, EventKind::Lost { .. }) {
            return;
        }
        self.cpu_mut(cpu);
        if let EventKind::SchedSwitch(switch) = &event.kind {
            return self.holes.hear_switch(switch, pid);
        }
        if pid == Pid::UNKNOWN {
            return self.learn_from_wakeup(event);
        }
        let running = (!pid.is_idle()).then(|| self.find(pid, event.context.comm));
        let known = self.cpus[cpu.index()].known;
        let state = &mut self.cpus[cpu.index()];
        if known && state.running == running {
            state.confirmed = state.confirmed.max(event.time);
            return;
        }
        if known && !self.holes.contexts_fit() {
            return;
        }
        if known {
            self.hole_on(cpu, running);
        }
        if let Some(task) = running {
            self.shows_up(task, cpu);
        }
        let state = &mut self.cpus[cpu.index()];
        let now = event.time.max(state.seen_until);
        (state.known, state.running, state.since, state.seen_since) = (true, running, None, now);
        state.confirmed = now;
        if let Some(task) = running {
            self.becomes(task, TrackedTaskPhase::Running(cpu));
            self.tasks[task as usize].wait = None;
        }
        self.touch(cpu);
    }

    /// Where contexts are not told, the task thought to run counts as the waker in its CPU's reports.
    fn learn_from_wakeup(&mut self, event: &Event<'_>) {
        let is_wakeup = matches!(
            event.kind,
            EventKind::SchedWaking(_) | EventKind::SchedWakeup(_) | EventKind::SchedWakeupNew(_)
        );
        let state = self.cpu_mut(event.cpu);
        if is_wakeup && state.known {
            state.confirmed = state.confirmed.max(event.time);
        }
    }

    /// A task is on `cpu`: if it was thought to run on another, it has left that unseen. No task has two stays at a time.
    pub(super) fn shows_up(&mut self, task: u32, cpu: Cpu) {
        if let TrackedTaskPhase::Running(elsewhere) = self.tasks[task as usize].doing
            && elsewhere != cpu
        {
            self.hole_on(elsewhere, None);
        }
    }

    /// A task that came on its CPU unseen has run there for as long as it is charged. It did not run before the last known
    /// switch, nor before the trace.
    pub(super) fn charge(&mut self, pid: Pid, runtime: Ns, event: &Event<'_>) {
        let (start, _) = self.span.unwrap_or_default();
        let Some(task) = self.index(pid) else { return };
        let Some(state) = self.cpus.get_mut(event.cpu.index()) else { return };
        if state.known && state.since.is_none() && state.running == Some(task) {
            let since = Ns(event.time.0.saturating_sub(runtime.0)).max(state.seen_until).max(start);
            state.seen_since = state.seen_since.min(since);
        }
    }

    /// Events of a CPU are missing up to now: it turns out to run another task than was thought.
    pub(super) fn hole_on(&mut self, cpu: Cpu, runs: Option<u32>) {
        self.oddities.switch_gaps += 1;
        self.holes.on(cpu);
        let state = self.cpu_mut(cpu);
        let vanished = state.break_stay(cpu);
        let thought = state.running.take();
        self.vanished.extend(vanished);
        if let Some(thought) = thought
            && self.tasks[thought as usize].doing == TrackedTaskPhase::Running(cpu)
        {
            self.becomes(thought, TrackedTaskPhase::Unknown);
            self.tasks[thought as usize].holes += 1;
        }
        // How it came here is not in the trace.
        if let Some(task) = runs {
            self.tasks[task as usize].holes += 1;
        }
        self.touch(cpu);
    }

    /// Events are missing if the task that leaves was not thought to run here, or was thought to run elsewhere.
    pub(super) fn check_gap(&mut self, cpu: Cpu, prev: Option<u32>) {
        let state = self.cpu_mut(cpu);
        if state.known && state.running != prev {
            self.hole_on(cpu, prev);
        }
        if let Some(task) = prev {
            self.shows_up(task, cpu);
        }
    }

    /// The trace has `sched_waking` after all: waits that began without one began before the trace.
    pub(super) fn miss_wakings(&mut self) {
        let woken = |task: &&mut TrackedTask| {
            task.was_woken() && task.wait.is_some_and(|wait| wait.cause == WaitCause::Wakeup)
        };
        self.tasks.iter_mut().filter(woken).for_each(|task| task.holes += 1);
    }

    /// Events of a CPU were lost: what it runs is unknown, and so is what came between for every wait.
    pub(super) fn lose(&mut self, cpu: Cpu) -> TrackerChange {
        self.holes.losses += 1;
        if cpu.index() >= CPUS_MAX {
            return TrackerChange::Lost;
        }
        let state = self.cpu_mut(cpu);
        let vanished = state.break_stay(cpu);
        let running = state.running.take();
        self.vanished.extend(vanished);
        if let Some(task) = running {
            self.becomes(task, TrackedTaskPhase::Unknown);
        }
        self.touch(cpu);
        TrackerChange::Lost
    }
}
