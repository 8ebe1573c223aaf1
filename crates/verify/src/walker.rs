//! Walking a recording in open loop: ask the core for each decision, compare, then apply what the kernel did.
//!
//! The core's state follows the kernel's. Each value that the trace shows is forced at the decision that made it, not when it
//! is printed. What nothing shows is marked: tasks that ran before the trace began, groups' entities that are charged without a
//! word. No decision that depends on it is judged.
//!
//! Must not know: files, and how counts are shown.

mod accounting;
mod affinity;
mod bandwidth;
mod cut;
mod groups;
mod judging;
mod lifecycle;
mod moving;
mod parameters;
mod probes;
mod selections;
mod start;
mod state;
mod switching;
mod truth;
mod wakeups;

use std::collections::BTreeMap;

use fairlab_event::{Comm, Cpu, Ns, Pid, Prio};
use fairlab_kernel::generation::{Feature, Placement};
use fairlab_kernel::{CpuMask, Generation, Policy, Scheduler, TaskId, TaskSpec, Topology};
use fairlab_recording::Recording;

use super::probe::{At, ProbeHit};
use super::record::{EventRecord, Marker, RecordKind};
use super::tally::DecisionTally;
use super::window::RecordWindow;
use groups::RecordedGroups;
use judging::DecisionPlace;
use state::{CpuInfo, ReturnedPlacement, TaskInfo, WalkerKnowledge};

/// How many events are looked ahead at. A task that has been placed may wait this long before its place is printed.
pub(super) const LOOK_AHEAD: usize = 1 << 17;

/// Events at the beginning that are not judged where the recording has no snapshot inside the trace.
pub(super) const WARM_UP_EVENTS: u64 = 100;

/// The walk.
pub(super) struct Walker {
    sched: Scheduler,
    /// Whether every enqueue places by lag (EEVDF), so that vruntimes are never relative.
    by_lag: bool,
    /// Whether what goes to sleep may stay on its queue.
    may_delay: bool,
    /// Whether probes show queues, entities and the weights of groups' entities.
    probed: bool,
    /// Whether clocks follow the load, so that wakeups may go by energy.
    scales: bool,
    window: RecordWindow,
    tasks: BTreeMap<Pid, TaskInfo>,
    by_id: Vec<Pid>,
    cpus: Vec<CpuInfo>,
    knowledge: WalkerKnowledge,
    groups: RecordedGroups,
    recording: Recording,
    rules: TraceRules,
    /// The tick's period.
    tick: Ns,
    /// Whether decisions are judged yet.
    warm: bool,
    /// When the trace begins.
    began: Option<Ns>,
    /// Whether the trace says where the snapshot was taken.
    has_markers: bool,
    /// Whether tasks compete in groups that nothing tells of.
    groups_hidden: bool,
    seen: SeenEvents,
    /// Whether probes have shown how far searches go, and what they cost.
    reach_shown: bool,
    cost_shown: bool,
    /// Whether they show the clocks of runqueues, so that nothing is charged unseen.
    clocks_shown: bool,
    pub tally: DecisionTally,
}

/// What the recorded kernel's trace means, where kernels differ.
#[derive(Clone, Copy, Debug)]
struct TraceRules {
    /// Up to v5.17, `prev_state` is read when the switch is reported: a task that has blocked and is being woken shows `R`.
    prev_state_may_lie: bool,
    /// From v4.15 to v4.19, a task preempted inside the kernel and a kernel thread that idles are printed alike.
    idle_may_be_preempted: bool,
    /// From v6.13 a reschedule may be lazy, and its flag is always a small letter.
    lazy_flag: bool,
}

/// What the trace has had of events so far.
#[derive(Clone, Copy, Debug, Default)]
struct SeenEvents {
    events: u64,
    /// A probe at `resched_curr()`.
    resched_probe: bool,
    /// A probe at `task_tick_fair()`.
    tick_probe: bool,
    /// A probe at `set_cpus_allowed_common()`.
    mask_probe: bool,
    /// A probe at `dequeue_entities()`: delayed dequeues are shown.
    dequeue_probe: bool,
    /// Timers are named that expire.
    names_timers: bool,
    /// Events that are reported by CPUs that the machine does not have.
    on_absent_cpus: u64,
    /// A CPU is taken away or comes back: a `cpuhp/N` was woken.
    hotplug: bool,
    /// Places where the state had to be set right without a decision that explains it.
    lost: u64,
}

impl Walker {
    /// A walk of `recording` by the rules of `generation`.
    pub fn new(
        generation: Generation,
        topology: Topology,
        tick: Ns,
        recording: Recording,
        misses: usize,
    ) -> Walker {
        let cpus = vec![CpuInfo::default(); topology.nr_cpus()];
        let rules = TraceRules::of(recording.release.as_deref());
        let mut walker = Walker {
            by_lag: generation.fair.placement == Placement::Lag,
            may_delay: generation.features.enabled(Feature::DelayDequeue),
            probed: recording.shows_weights,
            scales: !recording.power.clocks.is_empty(),
            sched: scheduler(generation, topology, tick),
            window: RecordWindow::default(),
            tasks: BTreeMap::new(),
            by_id: Vec::new(),
            cpus,
            knowledge: WalkerKnowledge::default(),
            groups: RecordedGroups::default(),
            groups_hidden: recording.hides_groups(),
            recording,
            rules,
            tick,
            warm: false,
            began: None,
            has_markers: false,
            seen: SeenEvents::default(),
            reach_shown: false,
            cost_shown: false,
            clocks_shown: false,
            tally: DecisionTally::new(misses),
        };
        walker.sched.set_preemption(walker.recording.preemptible);
        walker.create_groups();
        walker.lay_initial_state();
        walker
    }

    /// Takes the next event of the trace.
    pub fn push(&mut self, mut record: EventRecord) {
        if record.cpu.index() >= self.cpus.len() {
            self.seen.on_absent_cpus += 1;
            return;
        }
        if record.what.is_impossible(self.cpus.len()) {
            self.seen.lost += 1;
            record.what = RecordKind::Other;
        }
        self.learn_group(&record);
        self.learn_addresses(&record);
        self.window.push(record);
        if self.window.len() > LOOK_AHEAD {
            self.step();
        }
    }

    /// Walks what is left.
    pub fn finish(&mut self) {
        while self.window.len() > 0 {
            self.step();
        }
    }

    /// Events walked.
    pub fn events(&self) -> u64 {
        self.seen.events
    }

    /// Events that are reported by CPUs that the machine does not have; they are not walked.
    pub fn on_absent_cpus(&self) -> u64 {
        self.seen.on_absent_cpus
    }

    /// Places where the state had to be set right without a decision that explains it.
    pub fn lost(&self) -> u64 {
        self.seen.lost
    }

    /// Whether judging began at the recording's own snapshot.
    pub fn has_markers(&self) -> bool {
        self.has_markers
    }

    fn step(&mut self) {
        if self.seen.events == 0 {
            self.look_for_markers();
        }
        let Some(record) = self.window.pop() else { return };
        self.seen.events += 1;
        if self.began.is_none() {
            self.begin(record.time);
        }
        if !self.has_markers && self.seen.events == WARM_UP_EVENTS + 1 {
            self.warm = true;
        }
        self.know_again(record.cpu);
        self.follow_context(&record);
        let was_pending = self.sched.need_resched(record.cpu);
        self.attach_before(&record);
        self.settle_returned(&record);
        if !precedes_requeue(&record.what) {
            self.requeue_after_charge(record.cpu);
        }
        self.walk(&record);
        self.follow_steps(&record);
        self.follow_flags(&record, was_pending);
        self.after(&record);
    }

    /// The first event. Of a machine that was started with the trace all is known. Else a CPU that goes idle shows that nothing has waited
    /// there since before.
    fn begin(&mut self, time: Ns) {
        self.began = Some(time);
        if time == Ns::ZERO && self.recording.debug.is_none() {
            let all = self.cpus.iter_mut();
            all.for_each(|cpu| (cpu.queue_known, cpu.idle_cores_known) = (true, true));
        } else {
            self.groups_hidden |= self.recording.tells_no_groups();
        }
    }

    /// What the event itself says.
    fn walk(&mut self, record: &EventRecord) {
        match &record.what {
            RecordKind::Switch(switch) => self.on_switch(record, *switch),
            RecordKind::Waking(wakeup) => self.on_waking(record, *wakeup),
            RecordKind::Wakeup(wakeup) => self.on_wakeup(record, *wakeup),
            RecordKind::WakeupNew(wakeup) => self.on_wakeup_new(record, *wakeup),
            RecordKind::Migrate { pid, prio, orig, dest, .. } => {
                self.on_migrate(record, *pid, *prio, *orig, *dest);
            }
            RecordKind::Fork { parent, child, comm } => self.on_fork(record, *parent, *child, *comm),
            RecordKind::Exit(pid) => self.on_exit(*pid),
            RecordKind::Runtime { pid, runtime, vruntime, .. } => {
                self.on_runtime(record, *pid, *runtime, *vruntime);
            }
            RecordKind::Marker(Marker::DebugRead) => self.on_debug_read(),
            RecordKind::Group(line) => self.follow_group(line),
            RecordKind::YieldCall => self.on_yield_call(record),
            RecordKind::Lend { pid, old, new } => self.on_lend(record, *pid, *old, *new),
            RecordKind::Probe(probe) => self.on_probe(record, probe),
            RecordKind::Timer { of_group } => {
                self.seen.names_timers = true;
                self.cpus[record.cpu.index()].in_group_timer = *of_group;
            }
            RecordKind::Hrtick => {
                self.seen.names_timers = true;
                self.cpus[record.cpu.index()].in_hrtick = true;
            }
            RecordKind::WaitEnds(pid) => self.renice_waiting(record, *pid),
            RecordKind::Marker(_)
            | RecordKind::CgroupAttach { .. }
            | RecordKind::SleepEnds(_)
            | RecordKind::OtherProbe
            | RecordKind::Other => {}
        }
    }

    /// What holds from an event on until the CPU's next one.
    fn after(&mut self, record: &EventRecord) {
        let cpu = &mut self.cpus[record.cpu.index()];
        cpu.reported = record.time;
        // A tick that charges nothing says nothing after its probe.
        cpu.in_tick &= record.flags.in_hardirq();
        let ends_asking = matches!(
            record.what,
            RecordKind::Waking(_)
                | RecordKind::Wakeup(_)
                | RecordKind::WakeupNew(_)
                | RecordKind::Switch(_)
                | RecordKind::Runtime { .. }
        );
        if ends_asking {
            cpu.asked_resched = None;
        }
        let put_back =
            matches!(record.what, RecordKind::WaitEnds(..)) && std::mem::take(&mut cpu.resched_due);
        // A probe of it comes before the flag.
        if put_back && !self.seen.resched_probe {
            cpu.need_resched = true;
            self.sched.force_need_resched(record.cpu, true, false);
        }
    }

    /// The event was reported by the task that its CPU runs: sets the core right if it has another there.
    fn follow_context(&mut self, record: &EventRecord) {
        let cpu = record.cpu;
        let first = !std::mem::replace(&mut self.cpus[cpu.index()].seen, true);
        let curr = self.sched.curr(cpu);
        if self.pid_of(curr) == record.context || record.context.0 < 0 {
            return;
        }
        if !first {
            self.seen.lost += 1;
        }
        if self.was_cut_off(record) {
            self.forget_cpu(cpu);
        }
        let next = match record.context {
            Pid::IDLE => self.sched.idle_task(cpu),
            pid => self.task(pid, None, record.comm, cpu),
        };
        if self.sched.is_on_queue(next) && self.sched.task(next).cpu() != cpu {
            // It runs here, so it is not queued there.
            self.take_off(next);
        }
        self.set_known(next, false);
        self.sched.force_curr(cpu, next);
        self.cpus[cpu.index()].blocked = false;
    }

    /// After an event, the need-resched flag that it shows is the CPU's.
    fn follow_flags(&mut self, record: &EventRecord, was_set: bool) {
        if record.flags.as_bytes().is_empty() {
            return;
        }
        let charge_asks = self.cpus[record.cpu.index()].charge_asks;
        if charge_asks && asks_next(&record.what) && !record.flags.need_resched() {
            return;
        }
        // What the event led to comes after its flags were taken.
        let set_now = !was_set && self.sched.need_resched(record.cpu);
        let pending = record.flags.need_resched() || set_now;
        let cpu = &mut self.cpus[record.cpu.index()];
        cpu.charge_asks = set_now && matches!(record.what, RecordKind::Runtime { .. });
        let was_pending = std::mem::replace(&mut cpu.need_resched, pending);
        let was_shown = std::mem::replace(&mut cpu.resched_shown, record.flags.need_resched());
        if was_pending
            && was_shown
            && !pending
            && !matches!(record.what, RecordKind::Switch(_))
            && !cpu.blocked
        {
            // It was acted upon, and the same task runs on.
            let curr = self.sched.curr(record.cpu);
            self.kept_running(curr);
        }
        // One that was pending lazily is now so at once.
        let asks_here = |probe: &ProbeHit| probe.at == At::Resched && probe.cpu() == Some(record.cpu);
        if !set_now && !matches!(&record.what, RecordKind::Probe(probe) if asks_here(probe)) {
            let (at_once, lazy) = self.rules.pending(record);
            self.sched.force_need_resched(record.cpu, at_once, lazy);
        }
    }

    /// The pid of a core's task; 0 for idle tasks.
    fn pid_of(&self, task: TaskId) -> Pid {
        self.by_id.get(task.index()).copied().unwrap_or(Pid::IDLE)
    }

    /// The core's task for `pid`, created asleep on `cpu` and of unknown vruntime if it was not known.
    fn task(&mut self, pid: Pid, prio: Option<Prio>, comm: Comm, cpu: Cpu) -> TaskId {
        if pid.is_idle() {
            return self.sched.idle_task(cpu);
        }
        if let Some(info) = self.tasks.get_mut(&pid) {
            info.seen = true;
            let id = info.id;
            self.follow_prio(id, prio);
            return id;
        }
        let prio = prio.unwrap_or(Prio::DEFAULT);
        let id = self.new_task(pid, prio, comm, cpu);
        self.take_listed(id, pid, prio);
        self.sched.lay_asleep(id, cpu);
        id
    }

    /// Creates the core's task for `pid`, which may have belonged to another before.
    fn new_task(&mut self, pid: Pid, prio: Prio, comm: Comm, cpu: Cpu) -> TaskId {
        let policy = policy_of(prio, comm);
        let bound = bound_to(comm).filter(|cpu| cpu.index() < self.cpus.len());
        let spec = TaskSpec {
            comm,
            pid,
            tgid: pid,
            policy,
            nice: prio.nice().unwrap_or(0),
            allowed: bound.map_or(CpuMask::ALL, CpuMask::single),
            kthread: bound.is_some(),
            per_cpu_kthread: bound.is_some(),
        };
        let id = self.sched.new_task(&spec, cpu);
        self.by_id.resize(id.index() + 1, Pid::IDLE);
        self.by_id[id.index()] = pid;
        let info = TaskInfo::new(id);
        self.tasks.insert(pid, info);
        id
    }

    /// Takes over a priority that an event shows, if it is not the core's.
    fn follow_prio(&mut self, task: TaskId, prio: Option<Prio>) {
        let lent = self.info(task).and_then(|info| info.lent).map(|lent| lent.prio);
        let shown = prio.filter(|&prio| Some(prio) != lent);
        let Some(prio) = shown.filter(|&prio| prio != self.sched.task(task).prio()) else { return };
        let old = self.sched.policy(task);
        // Since when it has had another weight nothing has told.
        if self.by_lag && self.sched.is_on_queue(task) {
            self.set_known(task, false);
        }
        match prio.nice() {
            Some(nice) if old.is_fair() => self.sched.force_nice(task, nice, old),
            Some(nice) => self.sched.force_nice(task, nice, Policy::Normal),
            None => {
                let comm = self.sched.task(task).comm();
                self.sched.force_nice(task, 0, policy_of(prio, comm));
            }
        }
    }

    fn is_fair(&self, task: TaskId) -> bool {
        self.sched.policy(task).is_fair()
    }

    /// Takes a task off its queue without a reason that the trace shows.
    fn take_off(&mut self, task: TaskId) {
        let cpu = self.sched.task(task).cpu();
        if self.sched.is_delayed(task) {
            self.sched.force_delayed_out(task);
            self.set_known(task, false);
            return;
        }
        if self.sched.curr(cpu) == task {
            let idle = self.sched.idle_task(cpu);
            self.sched.force_curr(cpu, idle);
        }
        self.sched.detach(task, cpu);
        self.sched.lay_asleep(task, cpu);
        self.set_known(task, false);
    }
}

/// Whether this may come between the probe at `requeue_delayed_entity()` and what that does after its charge.
fn precedes_requeue(what: &RecordKind) -> bool {
    match what {
        RecordKind::Runtime { .. } | RecordKind::OtherProbe => true,
        RecordKind::Probe(probe) => {
            matches!(probe.at, At::Resched | At::ReschedLazy | At::ReschedFlag | At::AverageReturn)
                && !probe.in_requeue
        }
        _ => false,
    }
}

/// Whether a probe stands where accounting is about to ask for a reschedule, as the core has already.
fn asks_next(what: &RecordKind) -> bool {
    let asks = |at| matches!(at, At::AverageReturn | At::Resched | At::ReschedLazy | At::ReschedFlag);
    matches!(what, RecordKind::Probe(probe) if asks(probe.at))
}

/// The policy that a priority and a name tell.
fn policy_of(prio: Prio, comm: Comm) -> Policy {
    match prio.nice() {
        Some(_) => Policy::Normal,
        None if prio == Prio::DEADLINE => Policy::Deadline,
        None if comm.as_bytes().starts_with(b"migration/") => Policy::Stop,
        None => Policy::Fifo((99 - prio.0).clamp(1, 99) as u8),
    }
}

/// The CPU that a kthread belongs to, by its name: `ksoftirqd/3`, `kworker/3:1-events`. Workers of no CPU have letters
/// there.
fn bound_to(comm: Comm) -> Option<Cpu> {
    const BOUND: [&str; 6] = ["migration", "ksoftirqd", "kworker", "cpuhp", "idle_inject", "rcuc"];
    let name = std::str::from_utf8(comm.as_bytes()).ok()?;
    let (kind, rest) = name.split_once('/').filter(|(kind, _)| BOUND.contains(kind))?;
    let number = if kind == "kworker" { rest.split(':').next()? } else { rest };
    number.parse().ok().map(Cpu)
}

impl TraceRules {
    /// The rules of a release (`uname -r`); an unknown one is taken for a late one.
    fn of(release: Option<&str>) -> TraceRules {
        let mut numbers = release.unwrap_or("").split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
        let release = numbers.next().zip(numbers.next());
        let before = |major, minor| release.is_some_and(|release| release < (major, minor));
        // fa2c3254d7cf: the state is passed on as it was when the switch was decided.
        TraceRules {
            prev_state_may_lie: before(5, 18),
            // 3054426dc68e: the bit of a thread that idles is no longer the mark of a preemption.
            idle_may_be_preempted: before(4, 20),
            lazy_flag: !before(6, 13),
        }
    }

    /// What an event's flags show to be pending: a reschedule at once, and a lazy one.
    fn pending(self, record: &EventRecord) -> (bool, bool) {
        match record.flags.as_bytes().get(1) {
            Some(b'l' | b'L') => (false, true),
            Some(b'b' | b'B') => (true, true),
            _ => (record.flags.need_resched(), false),
        }
    }
}

/// The model's state. Fair servers are left out: what a kernel did by them is in the recording.
fn scheduler(generation: Generation, topology: Topology, tick: Ns) -> Scheduler {
    let mut scheduler = Scheduler::new(generation, topology, tick);
    scheduler.leave_out_fair_servers();
    scheduler
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_releases_report_states_late_and_have_no_lazy_flag() {
        let lies = |release| TraceRules::of(release).prev_state_may_lie;
        assert!(lies(Some("5.10.0-32-cloud-amd64")) && lies(Some("4.19.1")));
        assert!(
            !lies(Some("6.1.0-56-cloud-amd64")) && !lies(Some("5.18")) && !lies(None) && !lies(Some("x"))
        );
        assert!(
            TraceRules::of(Some("7.2.13+deb14")).lazy_flag
                && !TraceRules::of(Some("6.12.107+deb13")).lazy_flag
        );
    }
}
