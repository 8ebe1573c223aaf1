//! The numbers of a run: wakeup latency, switches, migrations, idleness, work left undone beside idle CPUs.
//!
//! Definitions are those in which kernel people compare runs; each metric's name says its unit.

use std::collections::{BTreeMap, BTreeSet};

use fairlab_event::{Cpu, Event, EventKind, Ns, Pid, Sink, Switch};

use crate::counts::Counts;
use crate::histogram::Histogram;

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
    Running,
}

#[derive(Clone, Copy, Debug, Default)]
struct TaskState {
    doing: Doing,
    /// When it was woken, if it has not run since.
    woken: Option<Ns>,
}

#[derive(Clone, Copy, Debug, Default)]
struct CpuState {
    busy: bool,
    waiting: u32,
}

/// Counts while events pass, in memory bounded by CPUs and tasks.
///
/// * *wakeup latency*: from `sched_waking` of a sleeping task to the switch that lets it run.
/// * *involuntary switch*: the task that leaves stays runnable.
/// * *migration*: `sched_migrate_task`.
/// * *unconserved*: a CPU idles while on another one a task waits behind a running one.
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
    /// Whose latencies, switches and migrations count; everybody's without.
    only: Option<BTreeSet<Pid>>,
    /// Tasks of the background, of which nothing counts but that they keep a CPU busy.
    background: BTreeSet<Pid>,
}

impl Metrics {
    /// Counts from `start` on, on a machine with `nr_cpus` CPUs that are idle then.
    pub fn new(nr_cpus: usize, start: Ns) -> Metrics {
        Metrics {
            start,
            now: start,
            cpus: vec![CpuState::default(); nr_cpus],
            tasks: BTreeMap::new(),
            latency: Histogram::default(),
            switches: 0,
            involuntary: 0,
            migrations: 0,
            idle_cpus: nr_cpus as u64,
            crowded_cpus: 0,
            idle_ns: 0,
            unconserved_ns: 0,
            only: None,
            background: BTreeSet::new(),
        }
    }

    /// Counts latencies, switches and migrations of these tasks only. CPUs are busy with whatever runs there.
    #[must_use]
    pub fn of_tasks(self, tasks: BTreeSet<Pid>) -> Metrics {
        Metrics { only: Some(tasks), ..self }
    }

    /// Takes these tasks for the background of what is measured: their latencies, waits and migrations do not count, nor
    /// switches between them and idle tasks. CPUs are busy while they run.
    #[must_use]
    pub fn beside(self, background: BTreeSet<Pid>) -> Metrics {
        Metrics { background, ..self }
    }

    fn counts(&self, pid: Pid) -> bool {
        self.only.as_ref().is_none_or(|tasks| tasks.contains(&pid)) && !self.background.contains(&pid)
    }

    /// Whether a task of the background takes turns with an idle one.
    fn is_background(&self, switch: &Switch) -> bool {
        let is_ours = |pid: Pid| self.background.contains(&pid);
        (is_ours(switch.prev_pid) || is_ours(switch.next_pid))
            && [switch.prev_pid, switch.next_pid].iter().all(|&pid| pid.is_idle() || is_ours(pid))
    }

    /// Every metric by name, counted up to `end`. Rates are per second of the trace's time, shares lie in 0…1.
    /// Metrics that nothing was measured for are left out.
    pub fn finish(self, end: Ns) -> Vec<(&'static str, f64)> {
        self.into_counts(end).metrics()
    }

    /// What was counted up to `end`, to be added to what others counted.
    pub fn into_counts(mut self, end: Ns) -> Counts {
        self.pass_time(end);
        let observed = end.since(self.start).0;
        Counts {
            runs: 1,
            observed_ns: observed,
            cpu_ns: observed.saturating_mul(self.cpus.len() as u64),
            idle_ns: u64::try_from(self.idle_ns).unwrap_or(u64::MAX),
            unconserved_ns: u64::try_from(self.unconserved_ns).unwrap_or(u64::MAX),
            switches: self.switches,
            involuntary_switches: self.involuntary,
            migrations: self.migrations,
            wakeup_latency: self.latency,
        }
    }

    /// The distribution of wakeup latencies, ns.
    pub fn wakeup_latency(&self) -> &Histogram {
        &self.latency
    }

    fn pass_time(&mut self, to: Ns) {
        let passed = u128::from(to.since(self.now).0);
        self.idle_ns += passed * u128::from(self.idle_cpus);
        if self.idle_cpus > 0 && self.crowded_cpus > 0 {
            self.unconserved_ns += passed;
        }
        self.now = self.now.max(to);
    }

    fn task(&mut self, pid: Pid) -> &mut TaskState {
        self.tasks.entry(pid).or_default()
    }

    /// Changes a CPU's state and keeps count of idle and crowded ones.
    fn change_cpu(&mut self, cpu: Cpu, change: impl FnOnce(&mut CpuState)) {
        let Some(state) = self.cpus.get_mut(cpu.index()) else { return };
        let is_crowded = |state: &CpuState| u64::from(state.busy && state.waiting > 0);
        self.idle_cpus -= u64::from(!state.busy);
        self.crowded_cpus -= is_crowded(state);
        change(state);
        self.idle_cpus += u64::from(!state.busy);
        self.crowded_cpus += is_crowded(state);
    }

    fn becomes(&mut self, pid: Pid, doing: Doing) {
        if self.background.contains(&pid) {
            return;
        }
        let before = std::mem::replace(&mut self.task(pid).doing, doing);
        if let Doing::Waiting(cpu) = before {
            self.change_cpu(cpu, |state| state.waiting -= 1);
        }
        if let Doing::Waiting(cpu) = doing {
            self.change_cpu(cpu, |state| state.waiting += 1);
        }
    }

    fn waking(&mut self, pid: Pid, time: Ns) {
        let task = self.task(pid);
        if task.doing == Doing::Sleeping {
            task.doing = Doing::Waking;
            task.woken = Some(time);
        }
    }

    fn queued(&mut self, pid: Pid, cpu: Cpu) {
        if matches!(self.task(pid).doing, Doing::Sleeping | Doing::Waking) && cpu.index() < self.cpus.len() {
            self.becomes(pid, Doing::Waiting(cpu));
        }
    }

    fn migrated(&mut self, pid: Pid, dest: Cpu) {
        self.migrations += u64::from(self.counts(pid));
        if matches!(self.task(pid).doing, Doing::Waiting(_)) && dest.index() < self.cpus.len() {
            self.becomes(pid, Doing::Waiting(dest));
        }
    }

    fn switched(&mut self, switch: &Switch, cpu: Cpu, time: Ns) {
        let counts = self.counts(switch.prev_pid) || self.counts(switch.next_pid);
        self.switches += u64::from(counts && !self.is_background(switch));
        if !switch.prev_pid.is_idle() {
            let stays = switch.prev_state.is_runnable();
            self.involuntary += u64::from(stays && self.counts(switch.prev_pid));
            self.becomes(switch.prev_pid, if stays { Doing::Waiting(cpu) } else { Doing::Sleeping });
        }
        let busy = !switch.next_pid.is_idle();
        self.change_cpu(cpu, |state| state.busy = busy);
        if busy {
            self.becomes(switch.next_pid, Doing::Running);
            let woken = self.task(switch.next_pid).woken.take().filter(|_| self.counts(switch.next_pid));
            if let Some(woken) = woken {
                self.latency.record(time.since(woken).0);
            }
        }
    }
}

impl Sink for Metrics {
    fn event(&mut self, event: &Event<'_>) {
        self.pass_time(event.time);
        match &event.kind {
            EventKind::SchedSwitch(switch) if event.cpu.index() < self.cpus.len() => {
                self.switched(switch, event.cpu, event.time);
            }
            EventKind::SchedWaking(wakeup) => self.waking(wakeup.pid, event.time),
            EventKind::SchedWakeup(wakeup) | EventKind::SchedWakeupNew(wakeup) => {
                self.queued(wakeup.pid, wakeup.target_cpu);
            }
            EventKind::SchedMigrateTask { pid, dest_cpu, .. } => self.migrated(*pid, *dest_cpu),
            _ => {}
        }
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
        assert_eq!((counts.switches, counts.involuntary_switches, counts.migrations), (3, 1, 0));
        // 7 waits from 200 to 250 us.
        assert_eq!((counts.idle_ns, counts.unconserved_ns), (900_000, 50_000));
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
