//! Holes in the record of what CPUs did.
//!
//! A hole is a stretch of a CPU's time in which events are missing. The recorder says so (`lost_events`, a buffer whose oldest
//! events were overwritten), or an event shows another task on the CPU than the last switch. Time in a hole is unknown:
//!
//! * where the recorder lost events, every wait that goes on crosses the hole;
//! * where a switch is missing, waits on that CPU cross the hole. So do waits of tasks that appear there or vanish.
//!
//! No hole is what the kernel does between `sched_switch` and the change of stacks: it still runs as the task that leaves
//! (`tlb_flush`, `x86_fpu_*`, functions, samples). Until an event is in another context, such an event tells nothing of who runs.
//!
//! Must not know: what is computed from waits and stays.

use fairlab_event::{Comm, Context, Cpu, Event, EventKind, Ns, Pid, Switch};

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

/// What switches there were, and whose events.
#[derive(Clone, Copy, Debug, Default)]
struct SeenSwitches {
    switches: u64,
    to_idle: u64,
    /// The name of the tasks that left; none: they have several.
    comm: Option<Comm>,
    /// Switches to tasks of another name than those that leave.
    to_others: u64,
    /// Whether an event was reported by the idle task.
    idle_reports: bool,
    process: SeenProcess,
}

/// Whose events were recorded, as far as the recorder tells processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SeenProcess {
    #[default]
    Untold,
    One(Pid),
    Several,
}

impl SeenProcess {
    fn hear(&mut self, tgid: Pid) {
        *self = match *self {
            known if tgid == Pid::UNKNOWN => known,
            SeenProcess::Untold => SeenProcess::One(tgid),
            SeenProcess::One(known) if known == tgid => return,
            SeenProcess::One(_) | SeenProcess::Several => SeenProcess::Several,
        }
    }
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
    fn hear_switch(&mut self, switch: &Switch, context: Pid) {
        let seen = &mut self.seen;
        seen.comm = (seen.switches == 0 || seen.comm == Some(switch.prev_comm)).then_some(switch.prev_comm);
        seen.switches += 1;
        seen.idle_reports |= switch.prev_pid.is_idle();
        match switch.next_pid.is_idle() {
            true => seen.to_idle += 1,
            false => seen.to_others += u64::from(switch.next_comm != switch.prev_comm),
        }
        if context != Pid::UNKNOWN {
            let fits = context == switch.prev_pid;
            self.contexts.fitting += u64::from(fits);
            self.contexts.odd += u64::from(!fits);
        }
    }

    /// Takes the task that reported an event.
    fn hear_reporter(&mut self, context: &Context) {
        if context.pid.is_idle() {
            self.seen.idle_reports = true;
        } else {
            self.seen.process.hear(context.tgid);
        }
    }

    /// Why switches do not fit, if that is since the events of some tasks only were recorded: the idle task reports none, though
    /// CPUs go idle, or what comes is mostly not what leaves next.
    pub(super) fn partial_recording(&self, gaps: u64) -> Option<String> {
        let SeenSwitches { switches, to_idle, comm, to_others, idle_reports, process } = self.seen;
        let never_idle = to_idle > 1 && gaps > 0;
        if switches < SWITCHES_MIN || idle_reports || !never_idle && gaps * 2 < switches {
            return None;
        }
        let name = comm.filter(|comm| !comm.is_empty());
        let whose = match (process, name) {
            (SeenProcess::One(_), Some(comm)) => {
                format!("only one process's events were recorded ('{comm}')")
            }
            (SeenProcess::One(_), None) => "only one process's events were recorded".to_string(),
            // What never reports though it comes was not recorded.
            (SeenProcess::Untold, Some(comm)) if to_idle + to_others > 0 => {
                format!("only events of tasks called '{comm}' were recorded")
            }
            _ if never_idle => "only some tasks' events were recorded, none of the idle task".to_string(),
            _ => return None,
        };
        Some(format!(
            "{gaps} switches do not fit the one before on their CPU, since {whose}: who ran before them is unknown; \
             record all CPUs: perf record -a (perf sched record does)"
        ))
    }

    /// Whether the context of an event tells which task runs on its CPU.
    pub(super) const fn contexts_fit(&self) -> bool {
        self.contexts.fitting > 0 && self.contexts.odd == 0
    }
}

/// Whether the kernel may report an event between the `sched_switch` of a task and the change of stacks. Interrupts are off
/// there and the queue is locked: the task itself wakes, moves, creates and charges nobody. What is charged is the task that comes.
fn may_follow_its_switch(event: &Event<'_>) -> bool {
    let flags = event.context.flags;
    if flags.in_hardirq() || flags.in_softirq() {
        return !matches!(event.kind, EventKind::SchedStatRuntime { .. });
    }
    let irqs_on = matches!(flags.as_bytes().first(), Some(b'.' | b'b'));
    let is_scheduler =
        !matches!(event.kind, EventKind::Kprobe { .. } | EventKind::Marker { .. } | EventKind::Other { .. });
    !irqs_on && !is_scheduler
}

impl Tracker {
    /// An event tells which task runs on its CPU: if nothing is known of that yet, and if something else was thought. Returns
    /// whether it is of the task that leaves, between its switch and the change of stacks.
    pub(super) fn learn_from_context(&mut self, event: &Event<'_>) -> bool {
        let (cpu, pid) = (event.cpu, event.context.pid);
        if cpu.index() >= CPUS_MAX || matches!(event.kind, EventKind::Lost { .. }) {
            return false;
        }
        self.cpu_mut(cpu);
        if pid != Pid::UNKNOWN {
            self.holes.hear_reporter(&event.context);
        }
        if let EventKind::SchedSwitch(switch) = &event.kind {
            self.holes.hear_switch(switch, pid);
            return false;
        }
        if pid == Pid::UNKNOWN {
            self.learn_from_wakeup(event);
            return false;
        }
        let running = (!pid.is_idle()).then(|| self.find(pid, event.context.comm));
        let state = &mut self.cpus[cpu.index()];
        let known = state.known;
        if known && state.running == running {
            state.confirmed = state.confirmed.max(event.time);
            state.leaving = None;
            return false;
        }
        if known && state.leaving == Some(pid) && may_follow_its_switch(event) {
            return true;
        }
        state.leaving = None;
        if known && !self.holes.contexts_fit() {
            return false;
        }
        if known {
            self.hole_on(cpu, running);
        }
        self.runs_unseen(cpu, running, event);
        false
    }

    /// An event shows what runs on `cpu`; that it came there nothing has shown.
    fn runs_unseen(&mut self, cpu: Cpu, running: Option<u32>, event: &Event<'_>) {
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
        let Some(state) = self.cpus.get_mut(event.cpu.index()) else { return };
        let came_unseen = state.known && state.since.is_none() && state.running.is_some();
        if came_unseen && state.running == self.by_pid.get(pid) {
            let since = Ns(event.time.0.saturating_sub(runtime.0)).max(state.seen_until).max(start);
            state.seen_since = state.seen_since.min(since);
        }
    }

    /// Events of a CPU are missing up to now: it turns out to run another task than was thought.
    pub(super) fn hole_on(&mut self, cpu: Cpu, runs: Option<u32>) {
        self.oddities.switch_gaps += 1;
        self.holes.on(cpu);
        if let Some(thought) = self.loses_sight_of_running(cpu) {
            self.tasks[thought as usize].holes += 1;
        }
        // How it came here is not in the trace.
        if let Some(task) = runs {
            self.tasks[task as usize].holes += 1;
        }
        self.touch(cpu);
    }

    /// A task whose switches are recorded comes on a CPU: what had come there before is none of these, and has left unseen.
    pub(super) fn loses_sight_of_others(&mut self, cpu: Cpu) {
        let state = self.cpu_mut(cpu);
        if state.known && state.running.is_some() {
            self.loses_sight_of_running(cpu);
        }
    }

    /// What was thought to run on a CPU has left it unseen: its stay is broken off. Returns the task, if it was thought to run there.
    fn loses_sight_of_running(&mut self, cpu: Cpu) -> Option<u32> {
        let state = self.cpu_mut(cpu);
        let vanished = state.break_stay(cpu);
        let thought = state.running.take();
        self.vanished.extend(vanished);
        let thought =
            thought.filter(|&task| self.tasks[task as usize].doing == TrackedTaskPhase::Running(cpu))?;
        self.becomes(thought, TrackedTaskPhase::Unknown);
        Some(thought)
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
