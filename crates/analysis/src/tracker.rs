//! Follows every task and every CPU through the events: which task runs or waits where, and since when.
//!
//! A wait begins when a sleeping task is woken, when a new task is queued, and when a task leaves its CPU runnable. The wakeup is
//! `sched_waking`, or `sched_wakeup` if the trace has no other. A wait ends when the task is switched in. Special cases:
//!
//! * a wakeup of a task that still runs or is queued already begins nothing, unless it came as the task left: then the wait begins at
//!   the switch. Where a trace has no `sched_wakeup`, which would tell, that is supposed of a task that sleeps then, until another
//!   `sched_waking` shows that it slept on;
//! * up to v5.17 a task that is woken while it goes to sleep leaves its CPU as `R`. It was woken, not preempted; its wait
//!   begins at the switch;
//! * where the switches of some tasks alone were recorded, the idle task stands for whatever else ran: what a CPU does then is
//!   unknown, and no event of those tasks is missing;
//! * time across a hole is unknown (`holes`). A wait across a hole is not measured. Of a stay across a hole, only the part that
//!   events show counts. So the stays on a CPU never add up to more than the time.
//!
//! Must not know: what is computed from waits.

mod bound;
mod change;
mod departure;
mod holes;
mod movement;
mod quota;
mod task;

use std::collections::{BTreeMap, BTreeSet};

use fairlab_event::{Comm, Cpu, Event, EventKind, Ns, Pid, Switch, SwitchScope, System, TaskState, Wakeup};

use crate::clock_skew::ClockSkew;
use crate::pid_map::PidIndex;
use crate::throttling::Throttling;
pub(crate) use bound::Bound;
pub(crate) use change::{EndedWait, EnteredCpu, LeftCpu, StayOnCpu, TrackerChange, UnfinishedStay};
pub use departure::Departure;
use departure::LastWords;
pub(crate) use departure::{Resched, ReschedBy};
use holes::HoleCounter;
pub use movement::MoveCause;
use task::Counted;
pub use task::WaitCause;
pub(crate) use task::{TrackedTask, TrackedTaskPhase, TrackedWait};

/// An interprocessor interrupt takes no longer.
const JUST_BEFORE: Ns = Ns(100_000);

/// Everything that is known at the time of the latest event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracker {
    /// Every life of every task, in order of first appearance.
    tasks: Vec<TrackedTask>,
    by_pid: PidIndex,
    cpus: Vec<TrackedCpu>,
    /// CPUs whose state the latest event changed.
    touched: TouchedCpus,
    holes: HoleCounter,
    throttling: Throttling,
    /// The latest event's time.
    now: Ns,
    /// Whether the trace has `sched_waking`, and `sched_wakeup`.
    has_waking: bool,
    has_wakeup: bool,
    /// Whether it accounts running tasks, as far as it has been read.
    has_runtime: bool,
    /// Only some tasks' switches were recorded: the idle task stands for whatever else ran.
    is_of_tasks: bool,
    /// No event is missing but where that is said: contexts tell nothing new, and it is not asked why tasks leave and move.
    is_whole: bool,
    /// Of a whole trace, the numbers of tasks that have exited, for others.
    free: Vec<u32>,
    /// Tasks that are beside what is looked at: they keep a CPU busy, and their waits are nobody's.
    background: BTreeSet<Pid>,
    /// The stays of tasks that the latest event lost sight of.
    vanished: Vec<UnfinishedStay>,
    /// The time of the first event and the latest.
    span: Option<(Ns, Ns)>,
    oddities: Oddities,
    /// Looks whether clocks of CPUs stand apart, once a task has come on a CPU out of its sleep that nobody had woken.
    clocks: Option<Box<ClockSkew>>,
    /// Tasks that may not run everywhere.
    bound: Bound,
    /// The sets of CPUs of those that have not been seen yet, by number.
    allowed: BTreeMap<Pid, Option<u32>>,
    /// A timer that ends slices has expired somewhere.
    has_hrtick: bool,
}

/// What does not fit together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Oddities {
    /// Events earlier than one before them.
    pub(crate) late_events: u64,
    /// Switches away from another task than the one that ran there: events are missing.
    pub(crate) switch_gaps: u64,
    /// Wakeups of tasks that were thought to wait since the wakeup before: they have run unseen.
    pub(crate) unseen_runs: u64,
}

/// At most the CPU of the event and two that a task moves between.
#[derive(Clone, Copy, Debug, Default)]
struct TouchedCpus {
    cpus: [Cpu; 4],
    count: usize,
}

/// One CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrackedCpu {
    /// Whether it is known what runs there.
    pub(crate) known: bool,
    /// What runs there; none is the idle task.
    pub(crate) running: Option<u32>,
    /// That is a task of the background: who waits behind it does not count.
    pub(crate) runs_background: bool,
    /// When it was switched in; none when that was before the trace.
    pub(crate) since: Option<Ns>,
    /// From when on it is known to run: it may have been switched in earlier.
    pub(crate) seen_since: Ns,
    /// Up to when it is known what ran here before: time does not run back on one CPU, whatever the trace says.
    seen_until: Ns,
    /// The time of the latest event that shows it to run that.
    confirmed: Ns,
    /// The task that the latest switch took off, until an event is in another context: the kernel may still run as that task.
    leaving: Option<Pid>,
    /// Up to when it was known what ran here when that was lost sight of last.
    pub(crate) broke_at: Ns,
    /// Whether the events before this one are missing: what runs was not switched in where anybody saw it.
    after_hole: bool,
    /// How many stays have ended here, and how many turned out not to have been what was thought.
    pub(crate) stays: u32,
    pub(crate) broken_stays: u32,
    /// How many tasks wait there.
    pub(crate) waiting: u32,
    /// Of these, how many might run elsewhere.
    pub(crate) movable: u32,
    /// How many more are queued there whose group is throttled: they wait for their quota, not for the CPU.
    pub(crate) throttled: u32,
    /// That the running task is to leave, and why.
    pub(crate) resched: Option<Resched>,
    /// The task that it is waking.
    waking: Option<u32>,
    /// The task that woke this CPU's stopper, unless an interrupt did.
    stopper_asked_by: Option<Pid>,
    words: LastWords,
}

impl TrackedCpu {
    /// Whether it is known to run the idle task.
    pub(crate) const fn is_idle(&self) -> bool {
        self.known && self.running.is_none()
    }

    /// Whether a task that waits there waits behind another one.
    pub(crate) const fn keeps_waiting(&self) -> bool {
        self.known && self.running.is_some() && !self.runs_background
    }

    /// Whether its latest event, but for accounting and migrations, was the sched_waking of a task.
    pub(crate) const fn is_waking(&self) -> bool {
        self.words.is_waking()
    }

    /// The number of the present stay, those that turned out to be something else among them.
    pub(crate) const fn number(&self) -> u32 {
        self.stays.wrapping_add(self.broken_stays)
    }

    /// How long what runs there has run at `now`, if no event is missing; none where nothing is known to run.
    pub(crate) fn known_stay(&self, now: Ns) -> Option<Ns> {
        self.known.then(|| now.since(self.seen_since))
    }

    /// How long events show that it has run: so much stays true whatever turns out to be missing.
    const fn shown_stay(&self) -> Ns {
        self.confirmed.since(self.seen_since)
    }

    /// What runs here is unknown from now on, and since its latest event. Returns for how long a task was seen to run.
    fn break_stay(&mut self, cpu: Cpu) -> Option<UnfinishedStay> {
        let ran = self.shown_stay();
        // What follows did not run before that.
        self.seen_until = self.seen_until.max(self.confirmed);
        self.broke_at = self.seen_until;
        let vanished = self.running.filter(|_| self.known).map(|task| UnfinishedStay {
            task,
            cpu,
            number: self.number(),
            since: self.seen_since,
            ran,
        });
        (self.known, self.since, self.resched, self.after_hole) = (false, None, None, true);
        self.leaving = None;
        self.broken_stays += 1;
        self.words = LastWords::default();
        vanished
    }

    /// The stay of what runs there, as if it never ended.
    pub(crate) const fn stay_so_far(&self) -> StayOnCpu {
        let TrackedCpu { since, seen_since, after_hole, .. } = *self;
        StayOnCpu { since, seen_since, to: Ns::MAX, after_hole }
    }

    /// How many tasks run or wait there.
    pub(crate) const fn depth(&self) -> u32 {
        self.waiting + self.running.is_some() as u32
    }
}

/// Higher CPU numbers are garbage; no kernel has more.
pub(crate) const CPUS_MAX: usize = 1 << 13;

impl Tracker {
    /// Begins a trace of which no event is missing but where that is said, on CPUs that idle at `now`. Memory goes by how many
    /// tasks there are at a time: of one that has exited, the number becomes another's.
    pub(crate) fn at_rest(nr_cpus: usize, now: Ns) -> Tracker {
        let idle = TrackedCpu {
            known: true,
            since: Some(now),
            seen_since: now,
            seen_until: now,
            ..TrackedCpu::default()
        };
        Tracker {
            cpus: vec![idle; nr_cpus],
            has_waking: true,
            has_wakeup: true,
            is_whole: true,
            now,
            ..Tracker::default()
        }
    }

    /// Takes these tasks for the background, before any event.
    #[must_use]
    pub(crate) fn beside(self, background: BTreeSet<Pid>) -> Tracker {
        Tracker { background, ..self }
    }

    /// Waits that go on are not measured.
    pub(crate) fn begin(&mut self) {
        for wait in self.tasks.iter_mut().filter_map(|task| task.wait.as_mut()) {
            wait.is_measured = false;
        }
    }

    /// The latest event's time.
    pub(crate) const fn now(&self) -> Ns {
        self.now
    }

    /// How many tasks were heard of; their numbers are those below.
    pub(crate) fn task_count(&self) -> u32 {
        u32::try_from(self.tasks.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn task(&self, task: u32) -> &TrackedTask {
        &self.tasks[task as usize]
    }

    /// A reschedule without a visible cause: another CPU's wakeup of the next task asked for it, if that was just before.
    pub(crate) fn asked_by_entering(&self, resched: Resched, entered: Option<&EnteredCpu>) -> Resched {
        let wakeup = entered.and_then(|entered| Some((entered.task, entered.wait.as_ref()?.wait)));
        match wakeup {
            Some((task, wait))
                if resched.by == ReschedBy::Other
                    && !wait.cause.is_off_cpu_runnable()
                    && wait.start <= resched.time
                    && resched.time.since(wait.start) < JUST_BEFORE =>
            {
                Resched { by: ReschedBy::Wakeup(self.task(task).pid), ..resched }
            }
            _ => resched,
        }
    }

    /// The task called `pid` now, if it was heard of.
    pub(crate) fn index(&self, pid: Pid) -> Option<u32> {
        self.by_pid.get(pid)
    }

    /// The task called `pid` now.
    pub(crate) fn index_or_new(&mut self, pid: Pid, comm: Comm) -> u32 {
        self.find(pid, comm)
    }

    /// Every CPU up to the highest that was heard of.
    pub(crate) fn cpus(&self) -> &[TrackedCpu] {
        &self.cpus
    }

    /// What is known of a CPU.
    pub(crate) fn cpu(&self, cpu: Cpu) -> Option<&TrackedCpu> {
        self.cpus.get(cpu.index())
    }

    /// CPUs whose state the latest event changed.
    pub(crate) fn touched(&self) -> impl Iterator<Item = Cpu> + use<> {
        let TouchedCpus { cpus, count } = self.touched;
        cpus.into_iter().take(count)
    }

    /// The stays of tasks that the latest event lost sight of: they have left their CPU at an unknown time.
    pub(crate) fn vanished(&self) -> &[UnfinishedStay] {
        &self.vanished
    }

    /// The stay of a task that runs, as far as events show it by now.
    pub(crate) fn shown_stay(&self, task: u32) -> Option<UnfinishedStay> {
        let TrackedTaskPhase::Running(cpu) = self.tasks[task as usize].doing else { return None };
        let state = &self.cpus[cpu.index()];
        Some(UnfinishedStay {
            task,
            cpu,
            number: state.number(),
            since: state.seen_since,
            ran: state.shown_stay(),
        })
    }

    /// The stays of the tasks that run when the trace ends: they last until then.
    pub(crate) fn last_stays(&self) -> impl Iterator<Item = UnfinishedStay> {
        let (_, end) = self.span.unwrap_or_default();
        let stay = move |(cpu, state): (u32, &TrackedCpu)| {
            let (task, ran) = (state.running?, state.known_stay(end)?);
            Some(UnfinishedStay { task, cpu: Cpu(cpu), number: state.number(), since: state.seen_since, ran })
        };
        (0..).zip(&self.cpus).filter_map(stay)
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

    /// Whether it accounts running tasks, as far as it has been read.
    pub(crate) const fn has_runtime(&self) -> bool {
        self.has_runtime
    }

    /// Tasks that may not run everywhere.
    pub(crate) const fn bound(&self) -> &Bound {
        &self.bound
    }

    /// How many places there were at which events were lost.
    pub(crate) const fn losses(&self) -> u32 {
        self.holes.losses
    }

    /// How many holes a task has crossed so far: what lies between two times at which this differs is no measurement.
    pub(crate) fn holes_of(&self, task: u32) -> u32 {
        let task = &self.tasks[task as usize];
        let on_queue = task.waits_on().map_or(0, |cpu| self.holes.of(cpu) - task.holes_when_queued);
        self.holes.losses + task.holes + on_queue
    }

    /// The holes of the idle task of a CPU.
    pub(crate) fn holes_of_cpu(&self, cpu: Cpu) -> u32 {
        self.holes.losses + self.holes.of(cpu)
    }

    /// The waits that are not over, with whether they cross a hole, in order of the tasks' appearance.
    pub(crate) fn open_waits(&self) -> impl Iterator<Item = (u32, TrackedWait, bool)> {
        let open = |(index, task): (u32, &TrackedTask)| {
            task.wait.map(|wait| (index, wait, wait.holes != self.holes_of(index)))
        };
        (0..).zip(&self.tasks).filter_map(open)
    }

    /// What of the trace does not fit together, one clause each; `events`: how many there are.
    pub(crate) fn notices(&self, events: u64) -> Vec<String> {
        let Oddities { late_events, switch_gaps, unseen_runs } = self.oddities;
        let mut clauses = Vec::new();
        if late_events > 0 {
            clauses.push(format!(
                "{late_events} of {events} events are not in order of time: waits near them are missing or wrong"
            ));
        }
        let apart = self.clocks.as_ref().map(|clocks| clocks.apart()).unwrap_or_default();
        if let Some(worst) = apart.first() {
            clauses.push(worst.sentence());
            if apart.len() > 1 {
                clauses.push(format!("the clocks of {} more pairs of CPUs stand apart", apart.len() - 1));
            }
            // Where order is lost, what does not fit tells of nothing else.
            return clauses;
        }
        match self.holes.partial_recording(switch_gaps) {
            Some(clause) => clauses.push(clause),
            None if switch_gaps > 0 => clauses.push(format!(
                "{switch_gaps} switches do not fit the one before on their CPU: events are missing, and what happened there \
                 is unknown"
            )),
            None => {}
        }
        if unseen_runs > 0 {
            clauses.push(format!(
                "{unseen_runs} tasks were woken while they seemed to wait: they have run where events are missing"
            ));
        }
        clauses
    }

    /// Takes the next event.
    pub(crate) fn event(&mut self, event: &Event<'_>) -> TrackerChange {
        self.touched.count = 0;
        self.vanished.clear();
        if event.kind.is_task_record() {
            return self.task_record(&event.kind);
        }
        self.pass_time(event);
        if let Some(clocks) = &mut self.clocks {
            clocks.event(event);
        }
        self.now = event.time;
        self.follow_throttling(event);
        let is_leaving = !self.is_whole && self.learn_from_context(event);
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
            EventKind::SchedStatRuntime { pid, runtime, .. } => {
                self.has_runtime = true;
                if event.context.pid == *pid && !self.is_whole {
                    self.charge(*pid, *runtime, event);
                }
                TrackerChange::None
            }
            EventKind::Lost { .. } => self.lose(event.cpu),
            _ => TrackerChange::None,
        };
        // Its flags are of the task that leaves: they tell nothing of how the next one will.
        if !self.is_whole && !is_leaving {
            self.hear(event);
        }
        change
    }

    fn pass_time(&mut self, event: &Event<'_>) {
        let now = event.time;
        if self.span.is_none() && !begins_a_trace(event) {
            return;
        }
        let (_, latest) = self.span.get_or_insert((now, now));
        self.oddities.late_events += u64::from(now < *latest);
        *latest = now.max(*latest);
    }

    /// The time that is looked at ends, after the latest event.
    pub(crate) fn end_at(&mut self, end: Ns) {
        if let Some((_, latest)) = &mut self.span {
            *latest = end.max(*latest);
        }
        self.now = end.max(self.now);
    }

    /// Takes what is known of the kernel.
    pub(crate) fn system(&mut self, system: &System) {
        self.is_of_tasks |= system.scope != SwitchScope::Cpus;
        self.throttling.system(system);
    }

    /// Whether only some tasks' switches were recorded: what CPUs do besides is unknown.
    pub(crate) const fn is_of_tasks(&self) -> bool {
        self.is_of_tasks
    }

    /// Takes where a task may run, which no event tells; gives the number of these CPUs, `None` for all.
    pub(crate) fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) -> Option<u32> {
        self.touched.count = 0;
        let mask = self.bound.number(cpus);
        match self.by_pid.get(pid) {
            Some(task) => {
                self.tasks[task as usize].may_run_on(mask, &self.bound);
                if let doing @ TrackedTaskPhase::Waiting(_) = self.tasks[task as usize].doing {
                    self.becomes(task, doing);
                }
            }
            // It has no part in the story yet.
            None => drop(self.allowed.insert(pid, mask)),
        }
        mask
    }

    /// Which groups are throttled.
    pub(crate) const fn throttling(&self) -> &Throttling {
        &self.throttling
    }

    /// Whether a timer that ends slices has been seen to expire.
    pub(crate) const fn has_hrtick(&self) -> bool {
        self.has_hrtick
    }

    /// Remembers what a CPU said last: it tells a yield from a preemption at the next switch.
    fn hear(&mut self, event: &Event<'_>) {
        let Some(cpu) = self.cpus.get_mut(event.cpu.index()) else { return };
        let resched = cpu.words.hear(event);
        // The scheduler was called and kept the task where the mark is gone without a switch.
        let is_kept = cpu.words.shows_no_resched() && !matches!(event.kind, EventKind::SchedSwitch(_));
        if cpu.resched.is_none() || is_kept {
            cpu.resched = resched;
        }
        self.has_hrtick |= cpu.words.is_in_hrtick();
        if matches!(event.kind, EventKind::SchedSwitch(_) | EventKind::SchedWakeup(_)) {
            cpu.waking = None;
        }
    }

    fn cpu_mut(&mut self, cpu: Cpu) -> &mut TrackedCpu {
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize(cpu.index() + 1, TrackedCpu::default());
        }
        &mut self.cpus[cpu.index()]
    }

    fn touch(&mut self, cpu: Cpu) {
        let TouchedCpus { cpus, count } = &mut self.touched;
        if !cpus[..*count].contains(&cpu) && *count < cpus.len() {
            cpus[*count] = cpu;
            *count += 1;
        }
    }

    #[inline]
    fn find(&mut self, pid: Pid, comm: Comm) -> u32 {
        let index = match self.by_pid.get(pid) {
            Some(index) => index,
            None => self.begin_life(pid),
        };
        if !comm.is_empty() {
            self.tasks[index as usize].is_called(comm);
        }
        index
    }

    #[cold]
    fn begin_life(&mut self, pid: Pid) -> u32 {
        let mut task = TrackedTask::new(pid);
        task.is_background = self.background.contains(&pid);
        if let Some(mask) = self.allowed.remove(&pid) {
            task.may_run_on(mask, &self.bound);
        }
        let index = self.free.pop().unwrap_or(self.tasks.len() as u32);
        match self.tasks.get_mut(index as usize) {
            Some(place) => *place = task,
            None => self.tasks.push(task),
        }
        self.by_pid.insert(pid, index);
        index
    }

    /// A life is over. In a whole trace nothing more is told of it.
    fn end_life(&mut self, task: u32) {
        self.becomes(task, TrackedTaskPhase::Gone);
        self.tasks[task as usize].wait = None;
        if self.is_whole {
            self.by_pid.remove(self.tasks[task as usize].pid);
            self.free.push(task);
        }
    }

    /// Changes what a task does and keeps count of those that wait on each CPU.
    fn becomes(&mut self, task: u32, doing: TrackedTaskPhase) {
        let state = &mut self.tasks[task as usize];
        let (pid, counted) = (state.pid, state.counted);
        let before = std::mem::replace(&mut state.doing, doing);
        if let TrackedTaskPhase::Waiting(cpu) = before {
            self.count_waiting(cpu, counted, false);
            let throttled = self.throttling.time_of(pid, cpu, self.now);
            let crossed = self.holes.of(cpu);
            let state = &mut self.tasks[task as usize];
            state.throttled = state.throttled.saturating_add(throttled.since(state.throttled_when_queued));
            state.holes += crossed - state.holes_when_queued;
        }
        if let TrackedTaskPhase::Waiting(cpu) = doing {
            let is_held = self.throttling.holds(pid, cpu);
            let throttled = self.throttling.time_of(pid, cpu, self.now);
            let state = &mut self.tasks[task as usize];
            state.is_seen_on(cpu, self.is_whole);
            state.holes_when_queued = self.holes.of(cpu);
            state.throttled_when_queued = throttled;
            state.counted = state.counts_as(is_held);
            let counted = state.counted;
            self.count_waiting(cpu, counted, true);
        }
    }

    /// A task begins or ends to wait on a CPU.
    fn count_waiting(&mut self, cpu: Cpu, counted: Counted, begins: bool) {
        let step = |count: &mut u32| *count = if begins { *count + 1 } else { *count - 1 };
        let queue = self.cpu_mut(cpu);
        match counted {
            Counted::Not => return,
            Counted::Throttled => step(&mut queue.throttled),
            Counted::Movable | Counted::Bound(_) | Counted::Pinned => step(&mut queue.waiting),
        }
        match counted {
            Counted::Movable => step(&mut queue.movable),
            Counted::Bound(mask) => self.bound.count(mask, cpu, begins),
            _ => {}
        }
        self.touch(cpu);
    }

    /// `cpu`, unless the number is garbage: then the event's own.
    fn plausible(cpu: Cpu, event: &Event<'_>) -> Cpu {
        let is_plausible = |cpu: &Cpu| cpu.index() < CPUS_MAX;
        [cpu, event.cpu].into_iter().find(is_plausible).unwrap_or_default()
    }

    fn begin_wait(&mut self, task: u32, start: Ns, cause: WaitCause) {
        let (holes, throttled) = (self.holes_of(task), self.throttled_so_far(task));
        let state = &mut self.tasks[task as usize];
        let is_measured = !state.is_background;
        state.wait =
            Some(TrackedWait { start, cause, holes, throttled, woken_while_running: false, is_measured });
        state.holes += u32::from(std::mem::take(&mut state.misses_waking));
    }

    fn waking(&mut self, wakeup: &Wakeup, event: &Event<'_>) -> TrackerChange {
        if !std::mem::replace(&mut self.has_waking, true) {
            self.miss_wakings();
        }
        let task = self.find(wakeup.pid, wakeup.comm);
        let target = Tracker::plausible(wakeup.target_cpu, event);
        if let Some(cpu) = self.cpus.get_mut(event.cpu.index()) {
            cpu.waking = Some(task);
        }
        self.note_stopper(wakeup, event);
        let state = &mut self.tasks[task as usize];
        state.prio = wakeup.prio;
        let (mut lost_wait, mut retracted) = (false, false);
        match state.doing {
            TrackedTaskPhase::Unknown | TrackedTaskPhase::Sleeping | TrackedTaskPhase::Gone => {}
            TrackedTaskPhase::Running(cpu) => {
                state.waking_while_running = true;
                let confirmed = &mut self.cpus[cpu.index()].confirmed;
                *confirmed = event.time.max(*confirmed);
                return TrackerChange::None;
            }
            // Up to v5.17 a task may leave as R and have blocked: the kernel wakes none that is only queued.
            TrackedTaskPhase::Waiting(_) if state.left_as.is_some() && state.wait.is_some() => {}
            // The waking that came as it ran was of that time: it has slept since.
            TrackedTaskPhase::Waking
                if !self.has_wakeup && state.wait.is_some_and(|wait| wait.woken_while_running) =>
            {
                retracted = true;
            }
            // It has run since it was woken, and slept: events are missing.
            TrackedTaskPhase::Waiting(_) | TrackedTaskPhase::Waking if state.was_woken() => lost_wait = true,
            TrackedTaskPhase::Waiting(_) | TrackedTaskPhase::Waking => return TrackerChange::None,
        }
        let left = state.wait.filter(|wait| wait.is_measured);
        let seemed = state.left_as.take().zip(left).map(|(how, wait)| (how, wait.start));
        if lost_wait {
            state.holes += 1;
            self.oddities.unseen_runs += 1;
        }
        // Where it is queued is told by sched_wakeup, or else by a migration that may follow.
        let doing =
            if self.has_wakeup { TrackedTaskPhase::Waking } else { TrackedTaskPhase::Waiting(target) };
        self.becomes(task, doing);
        self.begin_wait(task, event.time, WaitCause::Wakeup);
        TrackerChange::Woken { task, seemed, lost_wait, retracted }
    }

    fn wakeup(&mut self, wakeup: &Wakeup, event: &Event<'_>) -> TrackerChange {
        self.has_wakeup = true;
        let has_waking = self.has_waking;
        let task = self.find(wakeup.pid, wakeup.comm);
        if self.tasks[task as usize].doing != TrackedTaskPhase::Waking {
            self.note_stopper(wakeup, event);
        }
        let cpu = Tracker::plausible(wakeup.target_cpu, event);
        let state = &mut self.tasks[task as usize];
        state.prio = wakeup.prio;
        let begins = match state.doing {
            TrackedTaskPhase::Waking => false,
            TrackedTaskPhase::Unknown | TrackedTaskPhase::Sleeping | TrackedTaskPhase::Gone => {
                // Where wakeups begin with sched_waking, this one has none: since when the task waits is unknown.
                state.misses_waking = has_waking;
                true
            }
            TrackedTaskPhase::Running(cpu) => {
                state.waking_while_running = false;
                if !has_waking {
                    let confirmed = &mut self.cpus[cpu.index()].confirmed;
                    *confirmed = event.time.max(*confirmed);
                }
                return TrackerChange::None;
            }
            // It was queued by what could be known before.
            TrackedTaskPhase::Waiting(queued) if queued != cpu => false,
            TrackedTaskPhase::Waiting(_) => return TrackerChange::Queued { task, cpu, begins: false },
        };
        self.becomes(task, TrackedTaskPhase::Waiting(cpu));
        if begins {
            self.begin_wait(task, event.time, WaitCause::Wakeup);
        }
        TrackerChange::Queued { task, cpu, begins }
    }

    fn wakeup_new(&mut self, wakeup: &Wakeup, event: &Event<'_>) -> TrackerChange {
        let mut task = self.find(wakeup.pid, wakeup.comm);
        if matches!(self.tasks[task as usize].doing, TrackedTaskPhase::Gone | TrackedTaskPhase::Sleeping) {
            self.end_life(task);
            task = self.begin_life(wakeup.pid);
            self.tasks[task as usize].is_called(wakeup.comm);
        }
        if let TrackedTaskPhase::Running(_) = self.tasks[task as usize].doing {
            return TrackerChange::None;
        }
        self.tasks[task as usize].prio = wakeup.prio;
        let cpu = Tracker::plausible(wakeup.target_cpu, event);
        self.becomes(task, TrackedTaskPhase::Waiting(cpu));
        self.begin_wait(task, event.time, WaitCause::New);
        TrackerChange::Queued { task, cpu, begins: true }
    }

    fn fork(&mut self, child: Pid, comm: Comm) -> TrackerChange {
        if let Some(index) = self.by_pid.get(child)
            && self.tasks[index as usize].doing != TrackedTaskPhase::Unknown
        {
            self.forget(index);
            self.begin_life(child);
        }
        self.find(child, comm);
        TrackerChange::None
    }

    /// A task's id is another task's from now on.
    fn forget(&mut self, task: u32) {
        if let TrackedTaskPhase::Running(cpu) = self.tasks[task as usize].doing {
            // It has exited unseen.
            self.hole_on(cpu, None);
        }
        self.end_life(task);
    }

    fn switch(&mut self, switch: &Switch, event: &Event<'_>) -> TrackerChange {
        let cpu = event.cpu;
        if cpu.index() >= CPUS_MAX {
            return TrackerChange::None;
        }
        self.touch(cpu);
        let prev = (!switch.prev_pid.is_idle()).then(|| self.find(switch.prev_pid, switch.prev_comm));
        let next = (!switch.next_pid.is_idle()).then(|| self.find(switch.next_pid, switch.next_comm));
        match self.is_of_tasks && prev.is_none() {
            true => self.loses_sight_of_others(cpu),
            false => self.check_gap(cpu, prev),
        }
        let is_known = next.is_some() || !self.is_of_tasks;
        let state = self.cpu_mut(cpu);
        let now = event.time.max(state.seen_until);
        state.seen_until = now;
        let stay = StayOnCpu {
            since: state.since.replace(now),
            seen_since: if state.known { state.seen_since } else { now },
            to: now,
            after_hole: std::mem::take(&mut state.after_hole),
        };
        (state.seen_since, state.confirmed) = (now, now);
        state.stays += 1;
        let resched = state.resched.take();
        let how = state.words.departure(switch, event, resched.is_some());
        (state.known, state.running, state.leaving) = (is_known, next, Some(switch.prev_pid));
        let to_background = next.is_some_and(|task| self.tasks[task as usize].is_background);
        self.cpus[cpu.index()].runs_background = to_background;
        let left = prev.map(|task| {
            self.tasks[task as usize].prio = switch.prev_prio;
            let (how, lost_wait) = self.leaves(task, cpu, how, switch.prev_state, event.time);
            if let Some(wait) = self.tasks[task as usize].wait.as_mut().filter(|_| to_background) {
                wait.is_measured &= !wait.cause.is_off_cpu_runnable();
            }
            LeftCpu { task, how, resched, lost_wait, to_background }
        });
        let entered = next.map(|task| {
            self.tasks[task as usize].prio = switch.next_prio;
            let wait = self.enters(task, cpu, event.time);
            // A task that makes way for itself waits for nothing.
            EnteredCpu { task, wait: wait.filter(|_| prev != next) }
        });
        TrackerChange::Switched { cpu, stay, left, entered }
    }

    /// A task leaves its CPU; returns how, by what is known of it besides, and whether it was thought to wait still.
    fn leaves(
        &mut self,
        task: u32,
        cpu: Cpu,
        how: Departure,
        as_state: TaskState,
        now: Ns,
    ) -> (Departure, bool) {
        let lost_wait = self.tasks[task as usize].wait.is_some();
        (self.leaves_as(task, cpu, how, as_state, now), lost_wait)
    }

    fn leaves_as(&mut self, task: u32, cpu: Cpu, how: Departure, as_state: TaskState, now: Ns) -> Departure {
        let state = &mut self.tasks[task as usize];
        state.is_seen_on(cpu, self.is_whole);
        state.ran_on = Some(cpu);
        let woken_meanwhile = std::mem::take(&mut state.waking_while_running);
        state.left_as = None;
        state.wait = None;
        let cause = match how {
            Departure::Exited => {
                self.end_life(task);
                return how;
            }
            // Its waker came before it had left; up to v5.17 its state is then R. Without sched_wakeup, R tells nothing of that.
            _ if woken_meanwhile
                && !as_state.is_preempted()
                && (self.has_wakeup || !as_state.is_runnable()) =>
            {
                self.becomes(task, TrackedTaskPhase::Waking);
                self.begin_wait(task, now, WaitCause::Wakeup);
                if let Some(wait) = &mut self.tasks[task as usize].wait {
                    wait.woken_while_running = !as_state.is_runnable();
                }
                return Departure::Slept(as_state);
            }
            Departure::Slept(_) => {
                self.becomes(task, TrackedTaskPhase::Sleeping);
                return how;
            }
            Departure::PreemptedInKernel => WaitCause::PreemptedInKernel,
            Departure::Preempted => WaitCause::Preempted,
            Departure::Yielded => WaitCause::Yielded,
            Departure::Runnable => WaitCause::LeftRunnable,
        };
        state.left_as = (!as_state.is_preempted()).then_some(how);
        self.becomes(task, TrackedTaskPhase::Waiting(cpu));
        self.begin_wait(task, now, cause);
        how
    }

    fn enters(&mut self, task: u32, cpu: Cpu, now: Ns) -> Option<EndedWait> {
        self.shows_up(task, cpu);
        let unwoken = self.tasks[task as usize].doing == TrackedTaskPhase::Sleeping;
        if unwoken && !self.is_whole && (self.has_waking || self.has_wakeup) {
            self.clocks.get_or_insert_default();
        }
        let (holes, throttled) = (self.holes_of(task), self.throttled_so_far(task));
        let state = &mut self.tasks[task as usize];
        state.is_seen_on(cpu, self.is_whole);
        state.left_as = None;
        let wait = state.wait.take();
        self.becomes(task, TrackedTaskPhase::Running(cpu));
        let wait = wait?;
        (now >= wait.start).then(|| EndedWait {
            wait,
            length: now.since(wait.start),
            throttled: throttled.since(wait.throttled).min(now.since(wait.start)),
            crossed_loss: wait.holes != holes,
        })
    }

    fn task_record(&mut self, kind: &EventKind<'_>) -> TrackerChange {
        match *kind {
            EventKind::TaskName { pid, comm, .. } if !pid.is_idle() => {
                self.find(pid, comm);
            }
            EventKind::TaskStart { pid, parent_pid, .. } => {
                let comm = self.by_pid.get(parent_pid).map(|parent| self.tasks[parent as usize].comm);
                self.fork(pid, comm.unwrap_or_default());
            }
            _ => {}
        }
        TrackerChange::None
    }
}

/// Whether a trace's time begins with an event: not with a loss, nor with what a recorder noted without a time.
pub fn begins_a_trace(event: &Event<'_>) -> bool {
    match event.kind {
        EventKind::Lost { .. } => false,
        EventKind::Kprobe { .. } | EventKind::Marker { .. } | EventKind::Other { .. } => {
            event.time > Ns::ZERO
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests;
