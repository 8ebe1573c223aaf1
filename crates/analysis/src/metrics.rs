//! The numbers of a run: wakeup latency, switches, migrations, idleness, work left undone beside idle CPUs.
//!
//! Definitions are those in which kernel people compare runs; each metric's name says its unit.

use std::collections::{BTreeMap, BTreeSet};

use fairlab_event::{Cpu, Event, EventKind, Ns, Pid, Sink, Switch, System};

use crate::by_name::{ByName, Does, NamesWanted, Places, Waited};
use crate::chosen::Stretch;
use crate::counts::{Counts, Throttles};
use crate::histogram::Histogram;
use crate::throttling::Throttling;

/// What a task is doing, as far as the events tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Doing {
    /// Asleep, or not seen yet.
    #[default]
    Sleeping,
    /// Woken, not queued yet.
    Waking,
    /// Waits on a CPU.
    Waiting(Cpu),
    Running(Cpu),
}

impl From<Doing> for Does {
    fn from(doing: Doing) -> Does {
        match doing {
            Doing::Sleeping => Does::Nothing,
            Doing::Waking | Doing::Waiting(_) => Does::Waits,
            Doing::Running(cpu) => Does::Runs(cpu),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct TaskState {
    doing: Doing,
    /// When it was woken, if it has not run since.
    woken: Option<Ns>,
    /// When it left a CPU runnable, if it has not run since.
    left_runnable: Option<Ns>,
    /// Its group is throttled where it waits; for how long that was so in this wait, and up to when it was counted.
    is_held: bool,
    held: Ns,
    held_before: Ns,
    /// Where it may run, by number among the masks; `None`: everywhere.
    mask: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct CpuState {
    /// The task that runs there; none: unknown.
    current: Option<Pid>,
    /// Since when.
    since: Ns,
    waiting: u32,
    /// That is a task of the background: waits behind it do not count.
    runs_background: bool,
}

impl CpuState {
    fn is_idle(&self) -> bool {
        self.current == Some(Pid::IDLE)
    }

    /// Whether a task that waits there waits behind another one.
    fn keeps_waiting(&self) -> bool {
        !self.is_idle() && self.current.is_some() && !self.runs_background
    }

    fn is_crowded(&self) -> bool {
        self.keeps_waiting() && self.waiting > 0
    }
}

/// Tasks that may not run everywhere.
#[derive(Clone, Debug, Default)]
struct Bound {
    /// Sets of CPUs that some task is bound to.
    masks: Vec<Vec<Cpu>>,
    numbers: BTreeMap<Vec<Cpu>, u32>,
    /// How many tasks wait where, by the number of their mask. A task that may run nowhere else is left out.
    waiting: BTreeMap<(u32, Cpu), u32>,
}

impl Bound {
    fn number(&mut self, cpus: &[Cpu]) -> u32 {
        if let Some(&number) = self.numbers.get(cpus) {
            return number;
        }
        let number = u32::try_from(self.masks.len()).unwrap_or(u32::MAX);
        self.masks.push(cpus.to_vec());
        self.numbers.insert(cpus.to_vec(), number);
        number
    }

    fn count(&mut self, mask: u32, cpu: Cpu, begins: bool) {
        if self.masks.get(mask as usize).is_some_and(|cpus| cpus == &[cpu]) {
            return;
        }
        let count = self.waiting.entry((mask, cpu)).or_default();
        *count = if begins { *count + 1 } else { count.saturating_sub(1) };
        if *count == 0 {
            self.waiting.remove(&(mask, cpu));
        }
    }
}

/// Counts while events pass, in memory bounded by CPUs and tasks.
///
/// * *wakeup latency*: from `sched_waking` of a sleeping task to the switch that lets it run.
/// * *involuntary switch*: the task that leaves stays runnable.
/// * *migration*: `sched_migrate_task`.
/// * *unconserved*: a CPU idles while a task that may run there waits behind a running task elsewhere. Its group is not
///   throttled, and masks count as far as they are known.
///
/// Where events are missing, what a CPU did since its switch before counts as nothing, and so do the waits there.
#[derive(Clone, Debug)]
pub struct Metrics {
    start: Ns,
    now: Ns,
    cpus: Vec<CpuState>,
    tasks: BTreeMap<Pid, TaskState>,
    latency: Histogram,
    switches: u64,
    involuntary: u64,
    migrations: u64,
    idle_cpus: u64,
    crowded_cpus: u64,
    idle_ns: u128,
    unconserved_ns: u128,
    /// CPU time that is unknown.
    unknown_ns: u128,
    unknown_cpus: u64,
    /// In a recording: how many switches were reported by the task that left, and by another. Where all are by it, the context of
    /// an event tells the running task.
    contexts: Option<(u64, u64)>,
    /// Whether it has `sched_wakeup`, which tells where a task is queued.
    has_wakeup: bool,
    throttling: Throttling,
    /// How often groups were throttled before counting began, and for how long.
    throttled_before: (u64, Ns),
    /// For how long each group was by then, by its path.
    throttled_paths_before: BTreeMap<String, Ns>,
    throttled_wait: Histogram,
    preemption_wait: Histogram,
    /// Whose latencies, switches and migrations count; everybody's without.
    only: Option<BTreeSet<Pid>>,
    /// Tasks of the background: they count only as keeping a CPU busy.
    background: BTreeSet<Pid>,
    bound: Bound,
    /// Numbers by name, where they are wanted.
    by_name: Option<Box<ByName>>,
    /// What ends then counts, and whether it has begun.
    time: Stretch,
    has_begun: bool,
}

impl Metrics {
    /// Counts from `start` on, on a machine with `nr_cpus` CPUs that are idle then.
    pub fn new(nr_cpus: usize, start: Ns) -> Metrics {
        Metrics {
            start,
            now: start,
            cpus: vec![
                CpuState { current: Some(Pid::IDLE), since: start, waiting: 0, runs_background: false };
                nr_cpus
            ],
            tasks: BTreeMap::new(),
            latency: Histogram::default(),
            switches: 0,
            involuntary: 0,
            migrations: 0,
            idle_cpus: nr_cpus as u64,
            crowded_cpus: 0,
            idle_ns: 0,
            unconserved_ns: 0,
            unknown_ns: 0,
            unknown_cpus: 0,
            contexts: None,
            has_wakeup: false,
            throttling: Throttling::default(),
            throttled_before: (0, Ns::ZERO),
            throttled_paths_before: BTreeMap::new(),
            throttled_wait: Histogram::default(),
            preemption_wait: Histogram::default(),
            only: None,
            background: BTreeSet::new(),
            bound: Bound::default(),
            by_name: None,
            time: Stretch::default(),
            has_begun: true,
        }
    }

    /// Counts what ends in a stretch of time, also the whole of waits that began before it. Of time that passes, the part within
    /// the stretch counts.
    #[must_use]
    pub fn within(self, time: Stretch) -> Metrics {
        Metrics { time, has_begun: time.from.is_none_or(|from| from <= self.start), ..self }
    }

    /// Counts by name besides. `places`: what CPUs share, by number, where that is known.
    #[must_use]
    pub fn by_name(mut self, wanted: NamesWanted, places: Option<Places>) -> Metrics {
        if wanted.is_empty() {
            return self;
        }
        let mut names = ByName::new(wanted, places, self.start);
        for (cpu, state) in (0..).map(Cpu).zip(&self.cpus) {
            names.cpu_runs(cpu, state.current);
        }
        self.by_name = Some(Box::new(names));
        self
    }

    /// A recording: what a CPU does before its first event is unknown.
    #[must_use]
    pub fn recorded(mut self) -> Metrics {
        for cpu in 0..self.cpus.len() {
            self.change_cpu(Cpu(cpu as u32), |state| state.current = None);
        }
        self.contexts = Some((0, 0));
        self
    }

    /// In a recording an event shows the task that runs on its CPU. If that is another one than thought, switches are missing.
    fn learn_from_context(&mut self, event: &Event<'_>) {
        let (Some((fitting, odd)), pid) = (&mut self.contexts, event.context.pid) else { return };
        if pid == Pid::UNKNOWN || event.kind.is_task_record() || matches!(event.kind, EventKind::Lost { .. })
        {
            return;
        }
        if let EventKind::SchedSwitch(switch) = &event.kind {
            *(if switch.prev_pid == pid { fitting } else { odd }) += 1;
            return;
        }
        let is_clear = *fitting > 0 && *odd == 0;
        let current = self.cpus.get(event.cpu.index()).and_then(|state| state.current);
        if !is_clear || current.is_none_or(|current| current == pid) {
            return;
        }
        self.lose_sight(event.cpu);
        let now = event.time;
        self.change_cpu(event.cpu, |state| (state.current, state.since) = (Some(pid), now));
        if !pid.is_idle() {
            self.becomes(pid, Doing::Running(event.cpu));
            let task = self.task(pid);
            (task.woken, task.left_runnable) = (None, None);
        }
    }

    /// Counts latencies, switches and migrations of these tasks only. CPUs are busy with whatever runs there.
    #[must_use]
    pub fn of_tasks(self, tasks: BTreeSet<Pid>) -> Metrics {
        Metrics { only: Some(tasks), ..self }
    }

    /// Takes these tasks for the background of what is measured: their latencies, waits and migrations do not count, nor do
    /// switches to and from them and waits behind them. CPUs are busy while they run.
    #[must_use]
    pub fn beside(self, background: BTreeSet<Pid>) -> Metrics {
        Metrics { background, ..self }
    }

    /// Counts from `time` on, and nothing of what was before: a wait that began before does not count, time is cut there.
    pub fn begin(&mut self, time: Ns) {
        self.count_from(time);
        for task in self.tasks.values_mut() {
            (task.woken, task.left_runnable, task.held) = (None, None, Ns::ZERO);
        }
        self.has_begun = self.time.from.is_none_or(|from| from <= time);
    }

    /// Whether an event is to be followed: one that comes before the stretch is over. The first in it begins it.
    fn follows(&mut self, now: Ns) -> bool {
        if let Some(from) = self.time.from.filter(|from| !self.has_begun && now >= *from) {
            self.has_begun = true;
            self.count_from(from);
        }
        self.time.to.is_none_or(|to| now <= to)
    }

    /// Counts from `time` on; waits that go on then count when they end.
    fn count_from(&mut self, time: Ns) {
        self.pass_time(time);
        (self.start, self.now) = (time, time);
        (self.switches, self.involuntary, self.migrations) = (0, 0, 0);
        (self.idle_ns, self.unconserved_ns, self.unknown_ns) = (0, 0, 0);
        self.throttled_before = self.throttling.totals(time);
        for histogram in [&mut self.latency, &mut self.throttled_wait, &mut self.preemption_wait] {
            *histogram = Histogram::default();
        }
        self.throttled_paths_before = self.throttling.paths_until(time);
        if let Some(names) = &mut self.by_name {
            names.begin(time);
        }
    }

    fn counts(&self, pid: Pid) -> bool {
        self.only.as_ref().is_none_or(|tasks| tasks.contains(&pid)) && !self.background.contains(&pid)
    }

    /// Whether a task of the background comes or goes.
    fn is_background(&self, switch: &Switch) -> bool {
        [switch.prev_pid, switch.next_pid].iter().any(|pid| self.background.contains(pid))
    }

    /// Every metric by name, counted up to `end`. Rates are per second of the trace's time, shares lie in 0…1.
    /// Metrics that nothing was measured for are left out.
    pub fn finish(self, end: Ns) -> Vec<(&'static str, f64)> {
        self.into_counts(end).metrics()
    }

    /// What was counted up to `end`, to be added to what others counted.
    pub fn into_counts(mut self, end: Ns) -> Counts {
        self.follows(end);
        let end = self.time.to.map_or(end, |to| to.min(end));
        self.pass_time(end);
        let observed = end.since(self.start).0;
        let throttles = self.throttling.is_known().then(|| {
            let (nr_throttled, time) = self.throttling.totals(end);
            let (nr_before, time_before) = self.throttled_before;
            Throttles {
                nr_throttled: nr_throttled.saturating_sub(nr_before),
                throttled_ns: time.since(time_before).0,
                throttled_wait: self.throttled_wait,
                preemption_wait: self.preemption_wait,
            }
        });
        let by_name = self.by_name.take().map(|names| {
            let (now, before) = (self.throttling.paths_until(end), &self.throttled_paths_before);
            let is_known = self.throttling.is_known();
            let time = |path: &str| {
                let time = now.get(path).copied().unwrap_or_default();
                is_known.then(|| time.since(before.get(path).copied().unwrap_or_default()))
            };
            names.into_counts(end, &time)
        });
        Counts {
            runs: 1,
            observed_ns: observed,
            cpu_ns: observed
                .saturating_mul(self.cpus.len() as u64)
                .saturating_sub(u64::try_from(self.unknown_ns).unwrap_or(u64::MAX)),
            idle_ns: u64::try_from(self.idle_ns).unwrap_or(u64::MAX),
            unconserved_ns: u64::try_from(self.unconserved_ns).unwrap_or(u64::MAX),
            switches: self.switches,
            involuntary_switches: self.involuntary,
            migrations: self.migrations,
            wakeup_latency: self.latency,
            throttles,
            by_name: by_name.unwrap_or_default(),
        }
    }

    /// The distribution of wakeup latencies, ns.
    pub fn wakeup_latency(&self) -> &Histogram {
        &self.latency
    }

    fn pass_time(&mut self, to: Ns) {
        let passed = u128::from(to.since(self.now).0);
        self.idle_ns += passed * u128::from(self.idle_cpus);
        self.unknown_ns += passed * u128::from(self.unknown_cpus);
        if passed > 0 && self.idle_cpus > 0 && (self.crowded_cpus > 0 || self.could_move()) {
            self.unconserved_ns += passed;
        }
        self.now = self.now.max(to);
    }

    /// Whether one that waits, and may not run everywhere, may run on a CPU that idles.
    fn could_move(&self) -> bool {
        let is_behind = |cpu: Cpu| self.cpus.get(cpu.index()).is_some_and(CpuState::keeps_waiting);
        let is_idle = |cpu: &Cpu| self.cpus.get(cpu.index()).is_some_and(CpuState::is_idle);
        self.bound.waiting.keys().any(|&(mask, cpu)| {
            is_behind(cpu) && self.bound.masks.get(mask as usize).is_some_and(|mask| mask.iter().any(is_idle))
        })
    }

    /// A task begins or ends to wait on a CPU.
    fn count_waiting(&mut self, pid: Pid, cpu: Cpu, begins: bool) {
        let task = self.tasks.get(&pid).copied().unwrap_or_default();
        if task.is_held {
            return;
        }
        match task.mask {
            Some(mask) => self.bound.count(mask, cpu, begins),
            None => self.change_cpu(cpu, |state| {
                state.waiting = if begins { state.waiting + 1 } else { state.waiting.saturating_sub(1) };
            }),
        }
    }

    fn task(&mut self, pid: Pid) -> &mut TaskState {
        self.tasks.entry(pid).or_default()
    }

    /// Changes a CPU's state and keeps count of idle and crowded ones.
    fn change_cpu(&mut self, cpu: Cpu, change: impl FnOnce(&mut CpuState)) {
        let Some(state) = self.cpus.get_mut(cpu.index()) else { return };
        self.idle_cpus -= u64::from(state.is_idle());
        self.unknown_cpus -= u64::from(state.current.is_none());
        self.crowded_cpus -= u64::from(state.is_crowded());
        change(state);
        self.idle_cpus += u64::from(state.is_idle());
        self.unknown_cpus += u64::from(state.current.is_none());
        self.crowded_cpus += u64::from(state.is_crowded());
        let current = state.current;
        if let Some(names) = &mut self.by_name {
            names.cpu_runs(cpu, current);
        }
    }

    /// What a CPU did since its switch before turns out to be unknown.
    fn lose_sight(&mut self, cpu: Cpu) {
        let Some(CpuState { current, since, .. }) = self.cpus.get(cpu.index()).copied() else { return };
        let unknown = u128::from(self.now.since(since.max(self.start)).0);
        self.unknown_ns += if current.is_some() { unknown } else { 0 };
        let idled = if current == Some(Pid::IDLE) { unknown } else { 0 };
        self.idle_ns = self.idle_ns.saturating_sub(idled);
        for (pid, task) in self.tasks.iter_mut().filter(|(_, task)| task.doing == Doing::Waiting(cpu)) {
            (task.woken, task.left_runnable) = (None, None);
            if let Some(names) = &mut self.by_name {
                names.lose(*pid);
            }
        }
        if let Some(current) = current.filter(|current| !current.is_idle()) {
            if let Some(names) = &mut self.by_name {
                names.lose(current);
            }
            self.becomes(current, Doing::Sleeping);
        }
        self.change_cpu(cpu, |state| state.current = None);
    }

    /// Events were lost: no wait that goes on is measured.
    fn lost(&mut self, cpu: Cpu) {
        self.lose_sight(cpu);
        self.tasks.values_mut().for_each(|task| (task.woken, task.left_runnable) = (None, None));
        if let Some(names) = &mut self.by_name {
            names.lose_waits();
        }
    }

    fn becomes(&mut self, pid: Pid, doing: Doing) {
        if self.background.contains(&pid) {
            return;
        }
        let task = *self.task(pid);
        if let Doing::Waiting(cpu) = task.doing {
            self.count_waiting(pid, cpu, false);
            let held = self.throttling.time_of(pid, cpu, self.now).since(task.held_before);
            self.task(pid).held = task.held.saturating_add(held);
        }
        self.does(pid, doing);
        if let Doing::Waiting(cpu) = doing {
            let is_held = self.throttling.holds(pid, cpu);
            let held_before = self.throttling.time_of(pid, cpu, self.now);
            let task = self.task(pid);
            (task.is_held, task.held_before) = (is_held, held_before);
            self.count_waiting(pid, cpu, true);
        }
    }

    fn does(&mut self, pid: Pid, doing: Doing) {
        self.task(pid).doing = doing;
        let counts = self.by_name.is_some() && self.counts(pid);
        if let Some(names) = self.by_name.as_mut().filter(|_| counts) {
            names.becomes(pid, doing.into());
        }
    }

    /// Groups are throttled, or are back, on a CPU: the tasks that wait there wait for something else now.
    fn throttling_changed(&mut self, cpu: Cpu) {
        let waits = |(pid, task): (&Pid, &TaskState)| (task.doing == Doing::Waiting(cpu)).then_some(*pid);
        for pid in self.tasks.iter().filter_map(waits).collect::<Vec<_>>() {
            self.becomes(pid, Doing::Waiting(cpu));
        }
    }

    /// A task runs: what it waited for is known.
    fn wait_is_over(&mut self, pid: Pid, time: Ns) {
        let counts = self.counts(pid);
        let task = self.task(pid);
        let (woken, left) = (task.woken.take(), task.left_runnable.take());
        let held = std::mem::take(&mut task.held);
        if !counts {
            return;
        }
        if let Some(names) = &mut self.by_name {
            let since = |start: Option<Ns>| start.map(|start| time.since(start));
            let is_measured = woken.is_some() || left.is_some();
            let held = if is_measured { held } else { Ns::ZERO };
            names.waited(pid, Waited { wakeup: since(woken), preemption: since(left), held });
        }
        if let Some(woken) = woken {
            self.latency.record(time.since(woken).0);
        }
        if let Some(left) = left.filter(|_| self.throttling.is_known()) {
            self.preemption_wait.record(time.since(left).0);
        }
        if held > Ns::ZERO && (woken.is_some() || left.is_some()) {
            self.throttled_wait.record(held.0);
        }
    }

    fn waking(&mut self, pid: Pid, target: Cpu, time: Ns) {
        // As far as a recording without sched_wakeup tells, it is queued where it slept until it is moved.
        let is_queued = self.contexts.is_some() && !self.has_wakeup && target.index() < self.cpus.len();
        let task = self.task(pid);
        match task.doing {
            Doing::Sleeping => {
                task.woken = Some(time);
                self.does(pid, Doing::Waking);
                if is_queued {
                    self.becomes(pid, Doing::Waiting(target));
                }
            }
            // The kernel wakes no task that waits since a wakeup: it has run unseen.
            Doing::Waking | Doing::Waiting(_) if task.woken.is_some() => {
                task.woken = Some(time);
                if let Some(names) = &mut self.by_name {
                    names.lose(pid);
                }
            }
            Doing::Waking | Doing::Waiting(_) | Doing::Running(_) => {}
        }
    }

    fn queued(&mut self, pid: Pid, cpu: Cpu) {
        // In a recording a wakeup tells where a task is queued, whatever was known before.
        let guessed = self.contexts.is_some();
        let doing = self.task(pid).doing;
        let is_news =
            matches!(doing, Doing::Sleeping | Doing::Waking) || guessed && matches!(doing, Doing::Waiting(_));
        if is_news && cpu.index() < self.cpus.len() {
            self.becomes(pid, Doing::Waiting(cpu));
        }
    }

    fn migrated(&mut self, pid: Pid, orig: Cpu, dest: Cpu) {
        let counts = self.counts(pid);
        self.migrations += u64::from(counts);
        if let Some(names) = self.by_name.as_mut().filter(|_| counts) {
            names.moved(pid, orig, dest);
        }
        if matches!(self.task(pid).doing, Doing::Waiting(_)) && dest.index() < self.cpus.len() {
            self.becomes(pid, Doing::Waiting(dest));
        }
    }

    fn switched(&mut self, switch: &Switch, cpu: Cpu, time: Ns) {
        let current = self.cpus.get(cpu.index()).and_then(|state| state.current);
        if current.is_some_and(|current| current != switch.prev_pid) {
            self.lose_sight(cpu);
        }
        let counts = self.counts(switch.prev_pid) || self.counts(switch.next_pid);
        self.switches += u64::from(counts && !self.is_background(switch));
        if !switch.prev_pid.is_idle() {
            // What waits cannot leave a CPU: when that wait was over is not in the trace.
            let task = self.task(switch.prev_pid);
            (task.woken, task.left_runnable) = (None, None);
            let stays = switch.prev_state.is_runnable();
            let to_background = self.background.contains(&switch.next_pid);
            let is_involuntary = stays && !to_background && self.counts(switch.prev_pid);
            self.involuntary += u64::from(is_involuntary);
            if let Some(names) = self.by_name.as_mut().filter(|_| is_involuntary) {
                names.left_runnable(switch.prev_pid);
            }
            self.becomes(switch.prev_pid, if stays { Doing::Waiting(cpu) } else { Doing::Sleeping });
            self.task(switch.prev_pid).left_runnable = (stays && !to_background).then_some(time);
            if switch.prev_state == fairlab_event::TaskState::DEAD {
                // What is not known sleeps: one that is called so again begins as any other.
                self.tasks.remove(&switch.prev_pid);
                if let Some(names) = &mut self.by_name {
                    names.ended(switch.prev_pid);
                }
            }
        }
        let busy = !switch.next_pid.is_idle();
        let runs_background = self.background.contains(&switch.next_pid);
        self.change_cpu(cpu, |state| {
            (state.current, state.since) = (Some(switch.next_pid), time);
            state.runs_background = runs_background;
        });
        if busy {
            if let Doing::Running(elsewhere) = self.task(switch.next_pid).doing
                && elsewhere != cpu
            {
                // It has left there unseen.
                self.lose_sight(elsewhere);
            }
            self.becomes(switch.next_pid, Doing::Running(cpu));
            self.wait_is_over(switch.next_pid, time);
        }
    }
}

impl Sink for Metrics {
    fn event(&mut self, event: &Event<'_>) {
        if !self.time.is_all() && !event.kind.is_task_record() && !self.follows(event.time) {
            return;
        }
        self.pass_time(event.time);
        if let Some(names) = &mut self.by_name {
            names.hear(event);
        }
        self.learn_from_context(event);
        self.throttling.event(event);
        for place in 0..self.throttling.changes().len() {
            if let Some(cpu) = self.throttling.changes()[place].cpu() {
                self.throttling_changed(cpu);
            }
        }
        match &event.kind {
            EventKind::SchedSwitch(switch) if event.cpu.index() < self.cpus.len() => {
                self.switched(switch, event.cpu, event.time);
            }
            EventKind::SchedWaking(wakeup) => self.waking(wakeup.pid, wakeup.target_cpu, event.time),
            EventKind::SchedWakeup(wakeup) | EventKind::SchedWakeupNew(wakeup) => {
                self.queued(wakeup.pid, wakeup.target_cpu);
                self.has_wakeup |= matches!(event.kind, EventKind::SchedWakeup(_));
            }
            EventKind::SchedMigrateTask { pid, orig_cpu, dest_cpu, .. } => {
                self.migrated(*pid, *orig_cpu, *dest_cpu);
            }
            EventKind::Lost { .. } => self.lost(event.cpu),
            _ => {}
        }
    }

    fn system(&mut self, system: &System) {
        self.throttling.system(system);
        if let Some(names) = &mut self.by_name {
            names.system(system);
        }
    }

    fn member(&mut self, pid: Pid, name: &str) {
        if let Some(names) = &mut self.by_name {
            names.member(pid, name);
        }
    }

    fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) {
        let mask = (!cpus.is_empty()).then(|| self.bound.number(cpus));
        let waits = match self.task(pid).doing {
            Doing::Waiting(cpu) => Some(cpu),
            _ => None,
        };
        waits.into_iter().for_each(|cpu| self.count_waiting(pid, cpu, false));
        self.task(pid).mask = mask;
        if let Some(names) = &mut self.by_name {
            names.allowed(pid, mask);
        }
        waits.into_iter().for_each(|cpu| self.count_waiting(pid, cpu, true));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlab_event::{Comm, Prio, TaskState as State, Wakeup};

    fn switch(us: u64, cpu: u32, prev: i32, prev_state: State, next: i32) -> Event<'static> {
        let switch = Switch {
            prev_comm: Comm::default(),
            prev_pid: Pid(prev),
            prev_prio: Prio::DEFAULT,
            prev_state,
            next_comm: Comm::default(),
            next_pid: Pid(next),
            next_prio: Prio::DEFAULT,
        };
        Event::new(Ns::from_us(us), Cpu(cpu), EventKind::SchedSwitch(switch))
    }

    fn wake(us: u64, pid: i32, target: u32, kind: fn(Wakeup) -> EventKind<'static>) -> Event<'static> {
        let wakeup =
            Wakeup { comm: Comm::default(), pid: Pid(pid), prio: Prio::DEFAULT, target_cpu: Cpu(target) };
        Event::new(Ns::from_us(us), Cpu(0), kind(wakeup))
    }

    fn metric(metrics: &[(&'static str, f64)], name: &str) -> f64 {
        metrics.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no {name}")).1
    }

    /// A task beside idle CPUs that it may not use waits for its own: nothing is left undone there.
    #[test]
    fn a_wait_of_a_bound_task_is_unconserved_only_beside_a_cpu_that_it_may_use() {
        let share = |masks: &[&[u32]]| {
            let mut metrics = Metrics::new(3, Ns::ZERO);
            for cpus in masks {
                metrics.allowed(Pid(8), &cpus.iter().copied().map(Cpu).collect::<Vec<_>>());
            }
            metrics.event(&switch(100, 0, 0, State::RUNNABLE, 7));
            metrics.event(&wake(200, 8, 0, EventKind::SchedWaking));
            metrics.event(&wake(200, 8, 0, EventKind::SchedWakeup));
            metrics.event(&switch(600, 0, 7, State::INTERRUPTIBLE, 8));
            metric(&metrics.finish(Ns::from_us(1_000)), "unconserved_share")
        };
        let near = |value: f64, expected: f64| assert!((value - expected).abs() < 1e-9, "{value} {expected}");
        near(share(&[]), 0.4);
        near(share(&[&[0]]), 0.0);
        near(share(&[&[0, 2]]), 0.4);
        near(share(&[&[0], &[]]), 0.4);
    }

    #[test]
    fn a_wait_beside_an_idle_cpu_is_unconserved_time() {
        let mut metrics = Metrics::new(2, Ns::ZERO);
        for event in [
            switch(0, 0, 0, State::RUNNABLE, 7),
            wake(100, 8, 0, EventKind::SchedWaking),
            wake(101, 8, 0, EventKind::SchedWakeup),
            switch(301, 0, 7, State::RUNNABLE, 8),
            switch(501, 0, 8, State::INTERRUPTIBLE, 7),
        ] {
            metrics.event(&event);
        }
        let metrics = metrics.finish(Ns::from_us(1_000));
        assert_eq!(metric(&metrics, "wakeup_latency_ns_max"), 201_000.0);
        assert_eq!(metric(&metrics, "involuntary_switches_per_s"), 1_000.0);
        assert_eq!(metric(&metrics, "switches_per_s"), 3_000.0);
        assert_eq!(metric(&metrics, "idle_share"), 0.5);
        assert!((metric(&metrics, "unconserved_share") - 0.4).abs() < 1e-9, "101 to 501 us of 1000");
    }

    #[test]
    fn what_was_before_the_beginning_does_not_count() {
        let mut metrics = Metrics::new(2, Ns::ZERO);
        let events = [
            switch(0, 0, 0, State::RUNNABLE, 7),
            // It waits from 100 to 500 us.
            wake(100, 8, 0, EventKind::SchedWaking),
            wake(100, 8, 0, EventKind::SchedWakeup),
            switch(500, 0, 7, State::RUNNABLE, 8),
            switch(600, 0, 8, State::INTERRUPTIBLE, 7),
            wake(700, 8, 0, EventKind::SchedWaking),
            wake(700, 8, 0, EventKind::SchedWakeup),
            switch(750, 0, 7, State::RUNNABLE, 8),
        ];
        events[..3].iter().for_each(|event| metrics.event(event));
        metrics.begin(Ns::from_us(400));
        events[3..].iter().for_each(|event| metrics.event(event));
        let counts = metrics.into_counts(Ns::from_us(1_000));
        assert_eq!(counts.wakeup_latency.total(), 1, "the wait that began before is none");
        assert_eq!((counts.observed_ns, counts.switches, counts.involuntary_switches), (600_000, 3, 2));
        // CPU 1 idles; a task waits from 400 to 600 and from 700 us on.
        assert_eq!((counts.idle_ns, counts.unconserved_ns), (600_000, 500_000));
    }

    #[test]
    fn the_background_keeps_cpus_busy_and_counts_for_nothing_else() {
        let mut metrics = Metrics::new(2, Ns::ZERO).beside([Pid(9)].into());
        for event in [
            switch(0, 0, 0, State::RUNNABLE, 7),
            // It waits behind 7 beside an idle CPU, runs, and gives way.
            wake(100, 9, 0, EventKind::SchedWaking),
            wake(100, 9, 0, EventKind::SchedWakeup),
            switch(200, 0, 7, State::RUNNABLE, 9),
            switch(250, 0, 9, State::IDLE, 7),
            switch(300, 1, 0, State::RUNNABLE, 9),
            switch(400, 1, 9, State::IDLE, 0),
        ] {
            metrics.event(&event);
        }
        assert_eq!(metrics.wakeup_latency().total(), 0);
        let counts = metrics.into_counts(Ns::from_us(1_000));
        assert_eq!((counts.switches, counts.involuntary_switches, counts.migrations), (1, 0, 0));
        assert_eq!((counts.idle_ns, counts.unconserved_ns), (900_000, 0));
    }

    #[test]
    fn waking_a_task_that_still_runs_starts_no_wait() {
        let mut metrics = Metrics::new(1, Ns::ZERO);
        for event in [
            switch(0, 0, 0, State::RUNNABLE, 7),
            wake(10, 7, 0, EventKind::SchedWaking),
            wake(11, 7, 0, EventKind::SchedWakeup),
            switch(500, 0, 7, State::INTERRUPTIBLE, 0),
            switch(900, 0, 0, State::RUNNABLE, 7),
        ] {
            metrics.event(&event);
        }
        assert_eq!(metrics.wakeup_latency().total(), 0);
    }

    #[test]
    fn a_moved_task_waits_where_it_was_moved_to() {
        let mut metrics = Metrics::new(2, Ns::ZERO);
        let moved = EventKind::SchedMigrateTask {
            comm: Comm::default(),
            pid: Pid(8),
            prio: Prio::DEFAULT,
            orig_cpu: Cpu(0),
            dest_cpu: Cpu(1),
        };
        for event in [
            switch(0, 0, 0, State::RUNNABLE, 7),
            wake(100, 8, 0, EventKind::SchedWaking),
            wake(100, 8, 0, EventKind::SchedWakeup),
            Event::new(Ns::from_us(200), Cpu(1), moved),
            switch(250, 1, 0, State::RUNNABLE, 8),
        ] {
            metrics.event(&event);
        }
        let metrics = metrics.finish(Ns::from_us(1_000));
        assert!((metric(&metrics, "unconserved_share") - 0.1).abs() < 1e-9);
        assert_eq!(metric(&metrics, "migrations_per_s"), 1_000.0);
    }
}
