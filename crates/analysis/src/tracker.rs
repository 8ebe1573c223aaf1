//! Follows every task and every CPU through the events: who runs where, who waits where and since when.
//!
//! A wait begins when a sleeping task is woken (`sched_waking`, or `sched_wakeup` where the trace has no other), when a
//! new task is queued, and when a task leaves its CPU runnable; it ends when the task is switched in. The definitions
//! are those that kernel people compare runs by:
//!
//! * a wakeup of a task that still runs or is queued already begins nothing;
//! * a task that was being woken while it went to sleep, and therefore left its CPU as `R` up to v5.17, was woken, not
//!   preempted; its wait begins when it has left;
//! * a wait during which events were lost is known to be no measurement.
//!
//! Must not know: what is computed from waits.

mod change;
mod departure;
mod movement;
mod task;

use fairlab_event::{Comm, Cpu, Event, EventKind, Ns, Pid, Switch, TaskState, Wakeup};

use crate::pid_map::PidMap;
pub(crate) use change::{Change, EndedWait, Entered, Left};
pub use departure::Departure;
use departure::LastWords;
pub(crate) use departure::{Resched, ReschedBy};
pub use movement::MoveCause;
pub use task::WaitCause;
pub(crate) use task::{Doing, Task, Wait};

/// Everything that is known at the time of the latest event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracker {
    /// Every life of every task, in order of first appearance.
    tasks: Vec<Task>,
    by_pid: PidMap<u32>,
    cpus: Vec<CpuState>,
    /// CPUs whose state the latest event changed.
    touched: Touched,
    /// How many places there were at which events were lost.
    losses: u32,
    /// Whether the trace has `sched_waking`, and `sched_wakeup`.
    has_waking: bool,
    has_wakeup: bool,
    /// The time of the first event and the latest.
    span: Option<(Ns, Ns)>,
    oddities: Oddities,
}

/// What does not fit together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Oddities {
    /// Events earlier than one before them.
    pub(crate) late_events: u64,
    /// Switches away from another task than the one that ran there: events are missing.
    pub(crate) switch_gaps: u64,
}

/// At most the CPU of the event and two that a task moves between.
#[derive(Clone, Copy, Debug, Default)]
struct Touched {
    cpus: [Cpu; 4],
    count: usize,
}

/// One CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuState {
    /// Whether it is known what runs there.
    pub(crate) known: bool,
    /// What runs there; none is the idle task.
    pub(crate) running: Option<u32>,
    /// When it was switched in; none when that was before the trace.
    pub(crate) since: Option<Ns>,
    /// From when on it is known to run: it may have been switched in earlier.
    pub(crate) seen_since: Ns,
    /// How many tasks wait there.
    pub(crate) waiting: u32,
    /// Of these, how many might run elsewhere.
    pub(crate) movable: u32,
    /// That the running task is to leave, and why.
    pub(crate) resched: Option<Resched>,
    /// The task that it is waking.
    waking: Option<u32>,
    /// The task that woke this CPU's stopper, unless an interrupt did.
    stopper_asked_by: Option<Pid>,
    words: LastWords,
}

impl CpuState {
    /// Whether it is known to run the idle task.
    pub(crate) const fn is_idle(&self) -> bool {
        self.known && self.running.is_none()
    }

    /// Whether its latest event, but for accounting and migrations, was the sched_waking of a task.
    pub(crate) const fn is_waking(&self) -> bool {
        self.words.is_waking()
    }

    /// How many tasks run or wait there.
    pub(crate) const fn depth(&self) -> u32 {
        self.waiting + self.running.is_some() as u32
    }
}

/// Higher CPU numbers are garbage; no kernel has more.
pub(crate) const CPUS_MAX: usize = 1 << 13;

impl Tracker {
    /// How many tasks were heard of; their numbers are those below.
    pub(crate) fn task_count(&self) -> u32 {
        u32::try_from(self.tasks.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn task(&self, task: u32) -> &Task {
        &self.tasks[task as usize]
    }

    /// The task called `pid` now, if it was heard of.
    pub(crate) fn index(&self, pid: Pid) -> Option<u32> {
        self.by_pid.get(&pid).copied()
    }

    /// The task called `pid` now.
    pub(crate) fn index_or_new(&mut self, pid: Pid, comm: Comm) -> u32 {
        self.find(pid, comm)
    }

    /// Every CPU up to the highest that was heard of.
    pub(crate) fn cpus(&self) -> &[CpuState] {
        &self.cpus
    }

    /// What is known of a CPU.
    pub(crate) fn cpu(&self, cpu: Cpu) -> Option<&CpuState> {
        self.cpus.get(cpu.index())
    }

    /// CPUs whose state the latest event changed.
    pub(crate) fn touched(&self) -> impl Iterator<Item = Cpu> + use<> {
        let Touched { cpus, count } = self.touched;
        cpus.into_iter().take(count)
    }

    pub(crate) fn oddities(&self) -> Oddities {
        self.oddities
    }

    /// The times of the first event and the latest.
    pub(crate) fn span(&self) -> Option<(Ns, Ns)> {
        self.span
    }

    /// Whether the trace has `sched_waking`, as far as it has been read.
    pub(crate) const fn has_waking(&self) -> bool {
        self.has_waking
    }

    /// Whether the trace has `sched_wakeup`, as far as it has been read.
    pub(crate) const fn has_wakeup(&self) -> bool {
        self.has_wakeup
    }

    /// How many places there were at which events were lost.
    pub(crate) const fn losses(&self) -> u32 {
        self.losses
    }

    /// The waits that are not over, with whether events were lost meanwhile, in order of the tasks' appearance.
    pub(crate) fn open_waits(&self) -> impl Iterator<Item = (u32, Wait, bool)> {
        let open =
            |(index, task): (u32, &Task)| task.wait.map(|wait| (index, wait, wait.losses != self.losses));
        (0..).zip(&self.tasks).filter_map(open)
    }

    /// Takes the next event.
    pub(crate) fn event(&mut self, event: &Event<'_>) -> Change {
        self.touched.count = 0;
        if event.kind.is_task_record() {
            return self.task_record(&event.kind);
        }
        self.pass_time(event.time);
        self.learn_from_context(event);
        let change = match &event.kind {
            EventKind::SchedSwitch(switch) => self.switch(switch, event),
            EventKind::SchedWaking(wakeup) => self.waking(wakeup, event),
            EventKind::SchedWakeup(wakeup) => self.wakeup(wakeup, event),
            EventKind::SchedWakeupNew(wakeup) => self.wakeup_new(wakeup, event),
            EventKind::SchedMigrateTask { comm, pid, prio, orig_cpu, dest_cpu } => {
                let task = self.find(*pid, *comm);
                self.tasks[task as usize].prio = *prio;
                self.migrate(task, *orig_cpu, *dest_cpu, event)
            }
            EventKind::SchedProcessFork { child_pid, child_comm, .. } => self.fork(*child_pid, *child_comm),
            EventKind::Lost { .. } => self.lose(event.cpu),
            _ => Change::None,
        };
        self.hear(event);
        change
    }

    fn pass_time(&mut self, now: Ns) {
        let (_, latest) = self.span.get_or_insert((now, now));
        self.oddities.late_events += u64::from(now < *latest);
        *latest = now.max(*latest);
    }

    /// Remembers what a CPU said last: it tells a yield from a preemption at the next switch.
    fn hear(&mut self, event: &Event<'_>) {
        let Some(cpu) = self.cpus.get_mut(event.cpu.index()) else { return };
        let resched = cpu.words.hear(event);
        if cpu.resched.is_none() {
            cpu.resched = resched;
        }
        if matches!(event.kind, EventKind::SchedSwitch(_) | EventKind::SchedWakeup(_)) {
            cpu.waking = None;
        }
    }

    /// An event tells which task ran on its CPU, if nothing is known of it yet.
    fn learn_from_context(&mut self, event: &Event<'_>) {
        let (cpu, pid) = (event.cpu, event.context.pid);
        if cpu.index() >= CPUS_MAX || pid == Pid::UNKNOWN || matches!(event.kind, EventKind::Lost { .. }) {
            return;
        }
        self.cpu_mut(cpu);
        if self.cpus[cpu.index()].known || matches!(event.kind, EventKind::SchedSwitch(_)) {
            return;
        }
        let running = (!pid.is_idle()).then(|| self.find(pid, event.context.comm));
        let state = &mut self.cpus[cpu.index()];
        (state.known, state.running, state.since, state.seen_since) = (true, running, None, event.time);
        if let Some(task) = running {
            self.becomes(task, Doing::Running(cpu));
            self.tasks[task as usize].wait = None;
        }
        self.touch(cpu);
    }

    fn cpu_mut(&mut self, cpu: Cpu) -> &mut CpuState {
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize(cpu.index() + 1, CpuState::default());
        }
        &mut self.cpus[cpu.index()]
    }

    fn touch(&mut self, cpu: Cpu) {
        let Touched { cpus, count } = &mut self.touched;
        if !cpus[..*count].contains(&cpu) && *count < cpus.len() {
            cpus[*count] = cpu;
            *count += 1;
        }
    }

    fn find(&mut self, pid: Pid, comm: Comm) -> u32 {
        let index = match self.by_pid.get(&pid) {
            Some(&index) => index,
            None => self.begin_life(pid),
        };
        if !comm.is_empty() {
            self.tasks[index as usize].is_called(comm);
        }
        index
    }

    fn begin_life(&mut self, pid: Pid) -> u32 {
        let index = self.tasks.len() as u32;
        self.tasks.push(Task::new(pid));
        self.by_pid.insert(pid, index);
        index
    }

    /// Changes what a task does and keeps count of those that wait on each CPU.
    fn becomes(&mut self, task: u32, doing: Doing) {
        let state = &mut self.tasks[task as usize];
        let before = std::mem::replace(&mut state.doing, doing);
        if let Doing::Waiting(cpu) = before {
            let movable = u32::from(state.counted_movable);
            let queue = &mut self.cpus[cpu.index()];
            queue.waiting -= 1;
            queue.movable -= movable;
            self.touch(cpu);
        }
        if let Doing::Waiting(cpu) = doing {
            let state = &mut self.tasks[task as usize];
            state.is_seen_on(cpu);
            state.counted_movable = state.pinned_to().is_none();
            let movable = u32::from(state.counted_movable);
            let queue = self.cpu_mut(cpu);
            queue.waiting += 1;
            queue.movable += movable;
            self.touch(cpu);
        }
    }

    /// `cpu`, unless the number is garbage: then the event's own.
    fn plausible(cpu: Cpu, event: &Event<'_>) -> Cpu {
        let is_plausible = |cpu: &Cpu| cpu.index() < CPUS_MAX;
        [cpu, event.cpu].into_iter().find(is_plausible).unwrap_or_default()
    }

    fn begin_wait(&mut self, task: u32, start: Ns, cause: WaitCause) {
        self.tasks[task as usize].wait = Some(Wait { start, cause, losses: self.losses });
    }

    fn waking(&mut self, wakeup: &Wakeup, event: &Event<'_>) -> Change {
        self.has_waking = true;
        let task = self.find(wakeup.pid, wakeup.comm);
        let target = Tracker::plausible(wakeup.target_cpu, event);
        if let Some(cpu) = self.cpus.get_mut(event.cpu.index()) {
            cpu.waking = Some(task);
        }
        self.note_stopper(wakeup, event);
        let state = &mut self.tasks[task as usize];
        state.prio = wakeup.prio;
        match state.doing {
            Doing::Unknown | Doing::Sleeping | Doing::Gone => {}
            Doing::Running(_) => {
                state.waking_while_running = self.has_wakeup;
                return Change::None;
            }
            // Up to v5.17 a task may leave as R and have blocked: the kernel wakes none that is only queued.
            Doing::Waiting(_) if state.left_as.is_some() && state.wait.is_some() => {}
            Doing::Waiting(_) | Doing::Waking => return Change::None,
        }
        let seemed = state.left_as.take();
        // Where it is queued is told by sched_wakeup, or else by a migration that may follow.
        let doing = if self.has_wakeup { Doing::Waking } else { Doing::Waiting(target) };
        self.becomes(task, doing);
        self.begin_wait(task, event.time, WaitCause::Wakeup);
        Change::Woken { task, seemed }
    }

    fn wakeup(&mut self, wakeup: &Wakeup, event: &Event<'_>) -> Change {
        self.has_wakeup = true;
        let task = self.find(wakeup.pid, wakeup.comm);
        if self.tasks[task as usize].doing != Doing::Waking {
            self.note_stopper(wakeup, event);
        }
        let cpu = Tracker::plausible(wakeup.target_cpu, event);
        let state = &mut self.tasks[task as usize];
        state.prio = wakeup.prio;
        let begins = match state.doing {
            Doing::Waking => false,
            Doing::Unknown | Doing::Sleeping | Doing::Gone => true,
            Doing::Running(_) => {
                state.waking_while_running = false;
                return Change::None;
            }
            // It was queued by what could be known before.
            Doing::Waiting(queued) if queued != cpu => false,
            Doing::Waiting(_) => return Change::Queued { task, cpu, begins: false },
        };
        self.becomes(task, Doing::Waiting(cpu));
        if begins {
            self.begin_wait(task, event.time, WaitCause::Wakeup);
        }
        Change::Queued { task, cpu, begins }
    }

    fn wakeup_new(&mut self, wakeup: &Wakeup, event: &Event<'_>) -> Change {
        let mut task = self.find(wakeup.pid, wakeup.comm);
        if matches!(self.tasks[task as usize].doing, Doing::Gone | Doing::Sleeping) {
            task = self.begin_life(wakeup.pid);
            self.tasks[task as usize].is_called(wakeup.comm);
        }
        if let Doing::Running(_) = self.tasks[task as usize].doing {
            return Change::None;
        }
        self.tasks[task as usize].prio = wakeup.prio;
        let cpu = Tracker::plausible(wakeup.target_cpu, event);
        self.becomes(task, Doing::Waiting(cpu));
        self.begin_wait(task, event.time, WaitCause::New);
        Change::Queued { task, cpu, begins: true }
    }

    fn fork(&mut self, child: Pid, comm: Comm) -> Change {
        if let Some(&index) = self.by_pid.get(&child)
            && self.tasks[index as usize].doing != Doing::Unknown
        {
            self.forget(index);
            self.begin_life(child);
        }
        self.find(child, comm);
        Change::None
    }

    /// A task's id is another task's from now on.
    fn forget(&mut self, task: u32) {
        self.becomes(task, Doing::Gone);
        self.tasks[task as usize].wait = None;
    }

    fn switch(&mut self, switch: &Switch, event: &Event<'_>) -> Change {
        let cpu = event.cpu;
        if cpu.index() >= CPUS_MAX {
            return Change::None;
        }
        self.touch(cpu);
        let prev = (!switch.prev_pid.is_idle()).then(|| self.find(switch.prev_pid, switch.prev_comm));
        let next = (!switch.next_pid.is_idle()).then(|| self.find(switch.next_pid, switch.next_comm));
        self.check_gap(cpu, prev);
        let state = self.cpu_mut(cpu);
        let ran_since = state.since.replace(event.time);
        state.seen_since = event.time;
        let resched = state.resched.take();
        let how = state.words.departure(switch, event, resched.is_some());
        (state.known, state.running) = (true, next);
        let left = prev.map(|task| {
            self.tasks[task as usize].prio = switch.prev_prio;
            let how = self.leaves(task, cpu, how, switch.prev_state, event.time);
            Left { task, ran_since, how, resched }
        });
        let entered = next.map(|task| {
            self.tasks[task as usize].prio = switch.next_prio;
            let wait = self.enters(task, cpu, event.time);
            // A task that makes way for itself waits for nothing.
            Entered { task, wait: wait.filter(|_| prev != next) }
        });
        Change::Switched { cpu, left, entered }
    }

    /// The task that was thought to run here may not be the one that leaves: then events are missing.
    fn check_gap(&mut self, cpu: Cpu, prev: Option<u32>) {
        let state = self.cpu_mut(cpu);
        if !state.known || state.running == prev {
            return;
        }
        let thought = state.running;
        state.since = None;
        self.oddities.switch_gaps += 1;
        if let Some(thought) = thought
            && self.tasks[thought as usize].doing == Doing::Running(cpu)
        {
            self.becomes(thought, Doing::Unknown);
        }
    }

    /// A task leaves its CPU; returns how, by what is known of it besides.
    fn leaves(&mut self, task: u32, cpu: Cpu, how: Departure, as_state: TaskState, now: Ns) -> Departure {
        let state = &mut self.tasks[task as usize];
        state.is_seen_on(cpu);
        state.ran_on = Some(cpu);
        let woken_meanwhile = std::mem::take(&mut state.waking_while_running);
        state.left_as = None;
        state.wait = None;
        let cause = match how {
            Departure::Exited => {
                self.becomes(task, Doing::Gone);
                return how;
            }
            // Its waker came before it had left; up to v5.17 its state is then R.
            _ if woken_meanwhile && !as_state.is_preempted() => {
                self.becomes(task, Doing::Waking);
                self.begin_wait(task, now, WaitCause::Wakeup);
                return Departure::Slept(as_state);
            }
            Departure::Slept(_) => {
                self.becomes(task, Doing::Sleeping);
                return how;
            }
            Departure::PreemptedInKernel => WaitCause::PreemptedInKernel,
            Departure::Preempted => WaitCause::Preempted,
            Departure::Yielded => WaitCause::Yielded,
            Departure::Runnable => WaitCause::LeftRunnable,
        };
        state.left_as = (!as_state.is_preempted()).then_some(how);
        self.becomes(task, Doing::Waiting(cpu));
        self.begin_wait(task, now, cause);
        how
    }

    fn enters(&mut self, task: u32, cpu: Cpu, now: Ns) -> Option<EndedWait> {
        let state = &mut self.tasks[task as usize];
        state.is_seen_on(cpu);
        state.left_as = None;
        let wait = state.wait.take();
        if let Doing::Running(elsewhere) = state.doing
            && elsewhere != cpu
        {
            // It was switched out there unseen.
            self.cpus[elsewhere.index()].known = false;
            self.cpus[elsewhere.index()].running = None;
            self.oddities.switch_gaps += 1;
            self.touch(elsewhere);
        }
        self.becomes(task, Doing::Running(cpu));
        let wait = wait?;
        (now >= wait.start).then(|| EndedWait {
            wait,
            length: now.since(wait.start),
            crossed_loss: wait.losses != self.losses,
        })
    }

    fn task_record(&mut self, kind: &EventKind<'_>) -> Change {
        match *kind {
            EventKind::TaskName { pid, comm, .. } if !pid.is_idle() => {
                self.find(pid, comm);
            }
            EventKind::TaskStart { pid, parent_pid, .. } => {
                let comm = self.by_pid.get(&parent_pid).map(|&parent| self.tasks[parent as usize].comm);
                self.fork(pid, comm.unwrap_or_default());
            }
            _ => {}
        }
        Change::None
    }

    /// Events of a CPU were lost: what it runs is unknown, and so is what came between for every wait.
    fn lose(&mut self, cpu: Cpu) -> Change {
        self.losses += 1;
        if let Some(state) = self.cpus.get_mut(cpu.index()) {
            (state.known, state.since, state.resched) = (false, None, None);
            state.words = LastWords::default();
            let running = state.running.take();
            if let Some(task) = running {
                self.becomes(task, Doing::Unknown);
            }
            self.touch(cpu);
        }
        Change::Lost
    }
}

#[cfg(test)]
mod tests;
