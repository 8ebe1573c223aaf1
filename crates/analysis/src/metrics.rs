//! The numbers of a run: wakeup latency, switches, migrations, idleness, work left undone beside idle CPUs.
//!
//! Definitions are those in which kernel people compare runs; each metric's name says its unit. Must not know: how tasks and CPUs
//! are followed.

use std::collections::BTreeSet;

use fairlab_event::{Cpu, Event, Ns, Pid, Sink, System};

use crate::by_name::{MachinePlaces, NamesWanted};
use crate::counts::{RunCounts, Throttles};
use crate::histogram::Histogram;
use crate::idleness::{Idleness, Scope};
use crate::named::NameCounter;
use crate::selector::TimeRange;
use crate::tracker::{
    CPUS_MAX, EndedWait, EnteredCpu, LeftCpu, TrackedTask, Tracker, TrackerChange, WaitCause,
};

/// Counts while events pass, in memory bounded by CPUs and tasks.
///
/// * *wakeup latency*: from `sched_waking` of a sleeping task to the switch that lets it run.
/// * *fork wait*: from `sched_wakeup_new` to that switch.
/// * *involuntary switch*: the task that leaves stays runnable.
/// * *migration*: `sched_migrate_task`.
/// * *unconserved*: a CPU idles while a task that may run there waits behind a running task elsewhere. Its group is not
///   throttled, and masks count as far as they are known.
///
/// Where events are missing, what a CPU did since its switch before counts as nothing, and so do the waits there.
#[derive(Clone, Debug)]
pub struct Metrics {
    start: Ns,
    nr_cpus: usize,
    tracker: Tracker,
    idleness: Idleness,
    wakeup_latency: Histogram,
    fork_wait: Histogram,
    throttled_wait: Histogram,
    preemption_wait: Histogram,
    switches: u64,
    involuntary: u64,
    migrations: u64,
    /// How often groups were throttled before counting began, and for how long.
    throttled_before: (u64, Ns),
    /// Whose latencies, switches and migrations count; everybody's without.
    only: Option<BTreeSet<Pid>>,
    /// Numbers by name, where they are wanted.
    named: Option<Box<NameCounter>>,
    /// What ends then counts, and whether it has begun.
    time: TimeRange,
    has_begun: bool,
}

impl Metrics {
    /// Counts from `start` on, on a machine with `nr_cpus` CPUs that are idle then. No event is missing, but where that is said.
    pub fn new(nr_cpus: usize, start: Ns) -> Metrics {
        let nr_cpus = nr_cpus.min(CPUS_MAX);
        let tracker = Tracker::at_rest(nr_cpus, start);
        let mut idleness = Idleness::new(vec![Scope::machine()]);
        (0..nr_cpus as u32).for_each(|cpu| idleness.change(Cpu(cpu), &tracker, start));
        Metrics {
            start,
            nr_cpus,
            tracker,
            idleness,
            wakeup_latency: Histogram::default(),
            fork_wait: Histogram::default(),
            throttled_wait: Histogram::default(),
            preemption_wait: Histogram::default(),
            switches: 0,
            involuntary: 0,
            migrations: 0,
            throttled_before: (0, Ns::ZERO),
            only: None,
            named: None,
            time: TimeRange::default(),
            has_begun: true,
        }
    }

    /// A recording: what a CPU does before its first event is unknown.
    #[must_use]
    pub fn recorded(self) -> Metrics {
        Metrics { tracker: Tracker::default(), idleness: Idleness::new(vec![Scope::machine()]), ..self }
    }

    /// Counts what ends in a stretch of time, also the whole of waits that began before it. Of time that passes, the part within
    /// the stretch counts.
    #[must_use]
    pub fn within(self, time: TimeRange) -> Metrics {
        Metrics { time, has_begun: time.from.is_none_or(|from| from <= self.start), ..self }
    }

    /// Counts by name besides. `places`: what CPUs share, by number, where that is known.
    #[must_use]
    pub fn by_name(mut self, wanted: NamesWanted, places: Option<MachinePlaces>) -> Metrics {
        if !wanted.is_empty() {
            self.named = Some(Box::new(NameCounter::new(wanted, places, &self.tracker, self.start)));
        }
        self
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
        Metrics { tracker: self.tracker.beside(background), ..self }
    }

    /// Counts from `time` on, and nothing of what was before: a wait that began before does not count, time is cut there.
    pub fn begin(&mut self, time: Ns) {
        self.count_from(time);
        self.tracker.begin();
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
        self.start = time;
        self.idleness.begin(time);
        (self.switches, self.involuntary, self.migrations) = (0, 0, 0);
        self.throttled_before = self.tracker.throttling().totals(time);
        for histogram in [
            &mut self.wakeup_latency,
            &mut self.fork_wait,
            &mut self.throttled_wait,
            &mut self.preemption_wait,
        ] {
            *histogram = Histogram::default();
        }
        if let Some(named) = &mut self.named {
            named.begin(time, &self.tracker);
        }
    }

    /// Every metric by name, counted up to `end`. Rates are per second of the trace's time, shares lie in 0…1.
    /// Metrics that nothing was measured for are left out.
    pub fn finish(self, end: Ns) -> Vec<(&'static str, f64)> {
        self.into_counts(end).metrics()
    }

    /// What was counted up to `end`, to be added to what others counted.
    pub fn into_counts(mut self, end: Ns) -> RunCounts {
        self.follows(end);
        let end = self.time.to.map_or(end, |to| to.min(end));
        let throttling = self.tracker.throttling();
        let throttles = throttling.is_known().then(|| {
            let (nr_throttled, time) = throttling.totals(end);
            let (nr_before, time_before) = self.throttled_before;
            Throttles {
                nr_throttled: nr_throttled.saturating_sub(nr_before),
                throttled_ns: time.since(time_before).0,
                throttled_wait: self.throttled_wait,
                preemption_wait: self.preemption_wait,
            }
        });
        let tells_cpus = !self.tracker.is_of_tasks();
        let idled = self.idleness.finish((self.start, end), self.nr_cpus, &self.tracker);
        let sum = |of: fn(u64, u64) -> u64| {
            idled.cpus.iter().fold(0_u64, |sum, cpu| sum.saturating_add(of(cpu.known, cpu.idle)))
        };
        RunCounts {
            runs: 1,
            observed_ns: end.since(self.start).0,
            cpu_ns: if tells_cpus { sum(|known, _| known) } else { 0 },
            idle_ns: sum(|_, idle| idle),
            unconserved_ns: idled.unconserved.first().map_or(0, |machine| machine.time.0),
            switches: self.switches,
            involuntary_switches: self.involuntary,
            migrations: self.migrations,
            wakeup_latency: self.wakeup_latency,
            fork_wait: self.fork_wait,
            throttles,
            by_name: self.named.map(|named| named.finish(end, &self.tracker)).unwrap_or_default(),
        }
    }

    /// The distribution of wakeup latencies, ns.
    pub fn wakeup_latency(&self) -> &Histogram {
        &self.wakeup_latency
    }

    fn counts(&self, task: u32) -> bool {
        counts(self.only.as_ref(), self.tracker.task(task))
    }

    fn switched(&mut self, left: Option<&LeftCpu>, entered: Option<&EnteredCpu>) {
        let tasks = [left.map(|left| left.task), entered.map(|entered| entered.task)];
        let is_background =
            |task: Option<u32>| task.is_some_and(|task| self.tracker.task(task).is_background);
        let counts = |task: Option<u32>| task.map_or(self.only.is_none(), |task| self.counts(task));
        let is_one = !tasks.iter().any(|&task| is_background(task)) && tasks.iter().any(|&task| counts(task));
        self.switches += u64::from(is_one);
        if let Some(left) = left {
            self.involuntary += u64::from(left.is_involuntary() && self.counts(left.task));
        }
        if let Some(entered) = entered
            && let Some(ended) = &entered.wait
            && self.counts(entered.task)
        {
            self.waited(ended);
        }
    }

    /// A task runs: what it waited for is known.
    fn waited(&mut self, ended: &EndedWait) {
        if ended.crossed_loss || !ended.wait.is_measured {
            return;
        }
        match ended.wait.cause {
            WaitCause::Wakeup => self.wakeup_latency.record(ended.length.0),
            WaitCause::New => self.fork_wait.record(ended.length.0),
            _ => self.preemption_wait.record(ended.length.0),
        }
        if ended.throttled > Ns::ZERO {
            self.throttled_wait.record(ended.throttled.0);
        }
    }
}

/// Whether waits, switches and migrations of a task are asked for.
fn counts(only: Option<&BTreeSet<Pid>>, task: &TrackedTask) -> bool {
    !task.is_background && only.is_none_or(|only| only.contains(&task.pid))
}

impl Sink for Metrics {
    fn event(&mut self, event: &Event<'_>) {
        if !self.time.is_all() && !event.kind.is_task_record() && !self.follows(event.time) {
            return;
        }
        let change = self.tracker.event(event);
        if let Some(named) = &mut self.named {
            named.follow(event, &change, &self.tracker, |task| counts(self.only.as_ref(), task));
        }
        self.idleness.follow(&self.tracker, event.time);
        match &change {
            TrackerChange::Switched { left, entered, .. } => self.switched(left.as_ref(), entered.as_ref()),
            TrackerChange::Woken { task, seemed: Some((_, left)), .. } if *left >= self.start => {
                self.involuntary = self.involuntary.saturating_sub(u64::from(self.counts(*task)));
            }
            TrackerChange::Moved { task, from, to, .. } if from != to => {
                self.migrations += u64::from(self.counts(*task));
            }
            _ => {}
        }
    }

    fn system(&mut self, system: &System) {
        self.tracker.system(system);
        if let Some(named) = &mut self.named {
            named.system(system);
        }
    }

    fn member(&mut self, pid: Pid, name: &str) {
        if let Some(named) = &mut self.named {
            named.member(pid, name);
        }
    }

    fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) {
        let mask = self.tracker.allowed(pid, cpus);
        self.idleness.follow(&self.tracker, self.tracker.now());
        if let Some(named) = &mut self.named {
            named.allowed(pid, mask);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlab_event::{Comm, EventKind, Prio, Switch, TaskState as State, Wakeup};

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

    /// A new task was never woken.
    #[test]
    fn the_first_wait_of_a_new_task_is_no_wakeup_latency() {
        let mut metrics = Metrics::new(1, Ns::ZERO);
        for event in [
            switch(0, 0, 0, State::RUNNABLE, 7),
            wake(100, 8, 0, EventKind::SchedWakeupNew),
            switch(300, 0, 7, State::INTERRUPTIBLE, 8),
            wake(320, 7, 0, EventKind::SchedWaking),
            wake(320, 7, 0, EventKind::SchedWakeup),
            switch(370, 0, 8, State::DEAD, 7),
        ] {
            metrics.event(&event);
        }
        let metrics = metrics.finish(Ns::from_us(1_000));
        assert_eq!(metric(&metrics, "fork_wait_ns_max"), 200_000.0);
        assert_eq!(metric(&metrics, "wakeup_latency_ns_max"), 50_000.0);
        assert_eq!(metric(&metrics, "wakeup_latency_ns_p50"), 50_000.0);
    }

    /// A task that has exited leaves its place to the next one, which has nothing of its.
    #[test]
    fn memory_goes_by_how_many_tasks_there_are_at_a_time() {
        let mut metrics = Metrics::new(1, Ns::ZERO);
        for number in 0..1_000 {
            let (at, pid) = (100 * number, 1_000 + number as i32);
            metrics.event(&wake(at, pid, 0, EventKind::SchedWakeupNew));
            metrics.event(&switch(at + 10, 0, 0, State::RUNNABLE, pid));
            metrics.event(&switch(at + 50, 0, pid, State::DEAD, 0));
        }
        assert_eq!(metrics.tracker.task_count(), 1);
        let counts = metrics.into_counts(Ns::from_us(100_000));
        assert_eq!((counts.fork_wait.total(), counts.fork_wait.sum()), (1_000, 10_000_000));
        assert_eq!((counts.idle_ns, counts.switches), (60_000_000, 2_000));
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
