//! The recorder's kprobes, read by name: what the kernel's own fields held at one of its functions.
//!
//! Fields have the recorder's names, some of them kernels' fields under another name in each era. Values at a function's
//! entry are those before it acts.
//!
//! Must not know: what a function should do.

use fairlab_event::probes::CpuField;
use fairlab_event::{Cpu, GenericValue, Pid, Place, TextFields};

/// The function that a probe stands at.
pub(super) use fairlab_event::probes::ProbePoint as At;

/// What a probe fetched.
pub(super) use fairlab_event::probes::ProbeField as Key;

/// Probes that are recorded for people: no step of verification looks at them.
const UNREAD: [At; 5] =
    [At::SelectIdleCore, At::SelectIdleCoreReturn, At::CanMigrateReturn, At::DetachTask, At::AttachTask];

/// Functions in which a deadline that has passed is found after a charge.
const CHARGED_IN: [&str; 2] = ["(update_deadline+", "(update_curr+"];

/// Functions in which a group's manager gives it another weight.
const SHARES_SET_IN: [&str; 4] = [
    "(__sched_group_set_shares+",
    "(__sched_group_set_shares.",
    "(sched_group_set_shares+",
    "(sched_group_set_shares.",
];

/// Functions in which a lag is computed.
const LAG_IN: [&str; 3] = ["(update_entity_lag+", "(dequeue_entity+", "(dequeue_entities+"];

/// The function that asked for a reschedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReschedCaller {
    /// The test that follows a wakeup, a fork or a move.
    Preemption,
    /// The tick, or accounting (which the tick does, too).
    Accounting,
    /// The tick before it accounts: a lazy request becomes one at once.
    TickBegins,
    /// Something else: a change of group, nice level or policy.
    Other,
}

/// One probe hit.
#[derive(Clone, Debug)]
pub(super) struct ProbeHit {
    pub at: At,
    pub by: Option<ReschedCaller>,
    /// For a probe at a return: whether it returns into `place_entity()`.
    pub in_place: bool,
    /// Whether it returns into `reweight_entity()`.
    pub in_reweight: bool,
    /// Whether it returns into `requeue_delayed_entity()`.
    pub in_requeue: bool,
    /// Whether it returns to where a group's manager gives it another weight.
    pub in_set_shares: bool,
    /// Whether it returns into the computation of a lag, which may be part of a dequeue.
    pub in_lag: bool,
    /// Whether it returns into accounting, which has just charged the queue's running entity.
    pub in_charge: bool,
    values: Box<[Option<i64>]>,
    /// At a selection, and at a try of balancing: what it finds on each CPU.
    pub cpus: Vec<CpuShown>,
    /// At a try: tasks and queues of groups, by CPU.
    pub listed: Vec<ListedCpu>,
}

/// What a probe lists of a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ListedCpu {
    /// Its fair tasks, in the order in which balancing passes over them: pid, load, utilization, what is expected of that
    /// last and on average, and the clock up to which it was charged.
    Tasks(Cpu, Vec<[u64; 6]>),
    /// Its queues of groups: inode, load, load of the entity that stands for it.
    Groups(Cpu, Vec<[u64; 3]>),
}

/// What a probe at a selection shows of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuShown {
    /// Load of its root queue.
    pub load: Option<u64>,
    /// Tasks queued there.
    pub nr_running: Option<u32>,
    /// `rq::avg_idle`, ns.
    pub avg_idle: Option<u64>,
    /// The task that it runs, and how often that wakes another than last time.
    pub curr: Option<Pid>,
    pub flips: Option<u32>,
    /// Runnability, utilization and what is expected of the latter, of its root queue; the load of the task that it runs.
    pub runnable: Option<u64>,
    pub util: Option<u64>,
    pub estimate: Option<u32>,
    pub curr_load: Option<u64>,
    /// What that is of the CPU's, its groups' weights considered.
    pub curr_h_load: Option<u64>,
    /// Whether it is idle, and one more than since when, on a clock that all CPUs share; 0 where it is not.
    pub idle: Option<bool>,
    pub idle_since: Option<u64>,
    /// What its searches take on average, and the rest of the idle time that they may use, ns.
    pub scan_cost: Option<u64>,
    pub wake_idle: Option<u64>,
    /// How far searches under its cache go, and whether that may have an idle core.
    pub nr_idle_scan: Option<u32>,
    pub idle_cores: Option<bool>,
}

impl ProbeHit {
    /// Reads a kprobe event; `None` for probes that verification does not use.
    pub fn read(name: &str, fields: TextFields<'_>) -> Option<ProbeHit> {
        let at = At::by_name(name).filter(|at| !UNREAD.contains(at))?;
        Some(ProbeHit::with_fields(at, fields))
    }

    /// Reads `sched_reweight`: `depth=0 weight=2->353 sev=1->2 sed=3->4 cpu=0 nr=0 on_rq=0 curr=1`.
    pub fn read_reweight(fields: TextFields<'_>) -> Option<ProbeHit> {
        let mut probe = ProbeHit::empty(At::ReweightTracepoint);
        for (name, before, after) in [
            ("weight", Key::Weight, Key::NewWeight),
            ("sev", Key::OldVruntime, Key::Vruntime),
            ("sed", Key::OldDeadline, Key::Deadline),
        ] {
            let GenericValue::Text(change) = fields.get(name)? else { return None };
            let (one, other) = change.split_once("->")?;
            let values = [one.parse::<u64>().ok()?, other.parse::<u64>().ok()?];
            probe.set(before, values[0] as i64);
            probe.set(after, values[1] as i64);
        }
        for (name, key) in
            [("depth", Key::Depth), ("cpu", Key::Cpu), ("on_rq", Key::OnRq), ("curr", Key::Curr)]
        {
            probe.set(key, fields.signed(name)?);
        }
        Some(probe)
    }

    /// Reads `sched_deadline_passed`: `pid=0 depth=1 sev=1 sed=2 cpu=0 nr=2 weight=440 resched=1`.
    pub fn read_deadline(fields: TextFields<'_>) -> Option<ProbeHit> {
        let mut probe = ProbeHit::empty(At::DeadlineTracepoint);
        for (name, key) in [
            ("depth", Key::Depth),
            ("sev", Key::Vruntime),
            ("sed", Key::Deadline),
            ("cpu", Key::Cpu),
            (Key::Asks.name(), Key::Asks),
        ] {
            probe.set(key, fields.unsigned(name)? as i64);
        }
        Some(probe)
    }

    /// `sched_place` as a probe. A group's entity has no pid.
    pub fn of_place(place: &Place) -> ProbeHit {
        let mut probe = ProbeHit::empty(At::PlaceTracepoint);
        let pid = (!place.pid.is_idle()).then_some((Key::Pid, i64::from(place.pid.0)));
        let values = [
            (Key::Vruntime, place.sev as i64),
            (Key::Deadline, place.sed as i64),
            (Key::Lag, place.sel),
            (Key::Average, place.avg as i64),
            (Key::MinVruntime, place.min as i64),
            (Key::Cpu, i64::from(place.cpu.0)),
        ];
        for (key, value) in values.into_iter().chain(pid) {
            probe.set(key, value);
        }
        probe
    }

    /// Notes whose entity it is about, where it does not say so itself.
    pub fn name_task(&mut self, task: Pid) {
        self.set(Key::Pid, i64::from(task.0));
    }

    fn empty(at: At) -> ProbeHit {
        ProbeHit {
            at,
            by: None,
            in_place: false,
            in_reweight: false,
            in_requeue: false,
            in_set_shares: false,
            in_lag: false,
            in_charge: false,
            values: vec![None; Key::ALL.len()].into(),
            cpus: Vec::new(),
            listed: Vec::new(),
        }
    }

    fn set(&mut self, key: Key, value: i64) {
        self.values[key as usize] = Some(value);
    }

    fn with_fields(at: At, fields: TextFields<'_>) -> ProbeHit {
        let mut probe = ProbeHit {
            at,
            by: None,
            in_place: fields.text().starts_with("(place_entity+"),
            in_reweight: fields.text().starts_with("(reweight_entity+"),
            in_requeue: fields.text().starts_with("(requeue_delayed_entity+"),
            in_set_shares: SHARES_SET_IN.iter().any(|function| fields.text().starts_with(function)),
            in_charge: CHARGED_IN.iter().any(|function| fields.text().starts_with(function)),
            in_lag: LAG_IN.iter().any(|function| fields.text().starts_with(function)),
            values: vec![None; Key::ALL.len()].into(),
            cpus: Vec::new(),
            listed: Vec::new(),
        };
        for (name, value) in fields.iter() {
            let key = Key::by_name(name);
            if let (Some(Key::Caller), GenericValue::Text(symbol)) = (key, value) {
                probe.by = Some(ReschedCaller::of(symbol));
            } else if let Some(key) = key {
                probe.values[key as usize] = match value {
                    // To v5.4 the number's upper half says how often the inode has been given away (743210386c03).
                    GenericValue::Unsigned(value) if key == Key::Cgroup => Some((value & 0xffff_ffff) as i64),
                    GenericValue::Unsigned(value) => Some(value as i64),
                    GenericValue::Signed(value) => Some(value),
                    GenericValue::Text(_) => None,
                };
            } else if matches!(at, At::SelectTaskRq | At::LoadBalance | At::ActiveBalance) {
                probe.note_cpu(name, value);
                probe.note_list(name, value);
            }
        }
        // A CPU idles for some time on average: where none does, the probe has not reached what CPUs keep.
        if probe.cpus.iter().all(|cpu| (cpu.avg_idle, cpu.load, cpu.curr) == (Some(0), Some(0), Some(Pid(0))))
        {
            probe.cpus.clear();
        }
        probe
    }

    /// A field of a selection's probe that is about one CPU: a name of two letters and its number.
    fn note_cpu(&mut self, name: &str, value: GenericValue<'_>) {
        const CPUS_MAX: usize = 1024;
        let Some((what, number)) = name.split_at_checked(2) else { return };
        let Some(cpu) = number.parse::<usize>().ok().filter(|&cpu| cpu < CPUS_MAX) else { return };
        let value = match value {
            GenericValue::Unsigned(value) => value,
            GenericValue::Signed(value) => value as u64,
            GenericValue::Text(_) => return,
        };
        self.cpus.resize(self.cpus.len().max(cpu + 1), CpuShown::default());
        let shown = &mut self.cpus[cpu];
        match CpuField::by_name(what) {
            Some(CpuField::LoadAvg) => shown.load = Some(value),
            Some(CpuField::NrRunning) => shown.nr_running = u32::try_from(value).ok(),
            Some(CpuField::AvgIdle) => shown.avg_idle = Some(value),
            Some(CpuField::CurrentPid) => shown.curr = i32::try_from(value as i64).ok().map(Pid),
            Some(CpuField::WakeeFlips) => shown.flips = u32::try_from(value).ok(),
            Some(CpuField::RunnableAvg) => shown.runnable = Some(value),
            Some(CpuField::UtilAvg) => shown.util = Some(value),
            Some(CpuField::UtilEstimate) => shown.estimate = u32::try_from(value).ok(),
            Some(CpuField::CurrentLoad) => shown.curr_load = Some(value),
            Some(CpuField::CurrentHierarchyLoad) => shown.curr_h_load = Some(value),
            Some(CpuField::Idle) => shown.idle = Some(value != 0),
            Some(CpuField::IdleSince) => shown.idle_since = Some(value),
            Some(CpuField::ScanCost) => shown.scan_cost = Some(value),
            Some(CpuField::WakeIdle) => shown.wake_idle = Some(value),
            Some(CpuField::NrIdleScan) => shown.nr_idle_scan = u32::try_from(value).ok(),
            Some(CpuField::HasIdleCores) => shown.idle_cores = Some(value != 0),
            Some(CpuField::Tasks | CpuField::Groups) | None => {}
        }
    }

    /// A list that is about one CPU: a letter and its number.
    fn note_list(&mut self, name: &str, value: GenericValue<'_>) {
        let GenericValue::Text(list) = value else { return };
        let Some((what, number)) = name.split_at_checked(1) else { return };
        let Ok(cpu) = number.parse::<u32>().map(Cpu) else { return };
        match CpuField::by_name(what) {
            Some(CpuField::Tasks) => self.listed.push(ListedCpu::Tasks(cpu, entries(list))),
            Some(CpuField::Groups) => self.listed.push(ListedCpu::Groups(cpu, entries(list))),
            _ => {}
        }
    }

    /// A fetched value, as signed 64 bits.
    pub fn get(&self, key: Key) -> Option<i64> {
        self.values[key as usize]
    }

    /// A value without sign: pointers, vruntimes that wrap.
    pub fn unsigned(&self, key: Key) -> Option<u64> {
        self.get(key).map(|value| value as u64)
    }

    /// The CPU that it names.
    pub fn cpu(&self) -> Option<Cpu> {
        self.get(Key::Cpu).and_then(|cpu| u32::try_from(cpu).ok()).map(Cpu)
    }

    /// Whether it names a CPU of this number or one above.
    pub fn names_cpu_from(&self, nr_cpus: usize) -> bool {
        let one_cpu = [Key::Cpu, Key::OtherCpu, Key::SourceCpu, Key::DestCpu, Key::PushCpu];
        let from = |cpu: usize| cpu >= nr_cpus;
        let listed = |listed: &ListedCpu| match listed {
            ListedCpu::Tasks(cpu, _) | ListedCpu::Groups(cpu, _) => from(cpu.index()),
        };
        let chosen = (self.at == At::SelectTaskRqReturn).then_some(Key::Returned);
        let mut numbers = one_cpu.into_iter().chain(chosen).filter_map(|key| self.get(key));
        numbers.any(|cpu| usize::try_from(cpu).is_ok_and(from))
            || self.cpus.len() > nr_cpus
            || self.listed.iter().any(listed)
    }

    /// At a dequeue's return: whether the task stays on its queue, asleep.
    pub fn stays_queued(&self) -> bool {
        self.get(Key::Returned) == Some(-1)
    }

    /// The address of the group's entity that it is about; `None` for a task's.
    pub fn group_entity(&self) -> Option<u64> {
        self.get(Key::MyQueue).filter(|&queue| queue != 0)?;
        self.unsigned(Key::Entity)
    }

    /// The task that it is about; `None` for a group's entity.
    pub fn task(&self) -> Option<Pid> {
        if self.get(Key::MyQueue).is_some_and(|queue| queue != 0) {
            return None;
        }
        self.get(Key::Pid).and_then(|pid| i32::try_from(pid).ok()).map(Pid)
    }
}

/// The entries of a list, `1:2:3,4:5:6`; those that are not of so many numbers are left out.
fn entries<const N: usize>(list: &str) -> Vec<[u64; N]> {
    let numbers =
        |entry: &str| entry.split(':').map(|number| number.parse().ok()).collect::<Option<Vec<u64>>>();
    list.split(',').filter_map(|entry| numbers(entry)?.try_into().ok()).collect()
}

impl ReschedCaller {
    fn of(symbol: &str) -> ReschedCaller {
        let function = symbol.split('+').next().unwrap_or(symbol);
        match function {
            "check_preempt_curr"
            | "check_preempt_wakeup"
            | "check_preempt_wakeup_fair"
            | "wakeup_preempt"
            | "wakeup_preempt_fair" => ReschedCaller::Preemption,
            "task_tick_fair" | "update_curr" | "update_deadline" | "entity_tick" | "check_preempt_tick" => {
                ReschedCaller::Accounting
            }
            "sched_tick" | "scheduler_tick" => ReschedCaller::TickBegins,
            _ => ReschedCaller::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_keeps_what_it_fetched() {
        let text = "(place_entity+0x0/0xf0) cf=0xffff9c319db334c0 cpu=1 cg=1 nr=1 minv=-5 se=0x10 pid=196 my=0x0 vr=7 fl=0x1";
        let probe = ProbeHit::read("place", TextFields::new(text)).expect("a probe");
        assert_eq!((probe.at, probe.cpu(), probe.task()), (At::Place, Some(Cpu(1)), Some(Pid(196))));
        assert_eq!(probe.unsigned(Key::CfsRq), Some(0xffff_9c31_9db3_34c0));
        assert_eq!((probe.get(Key::MinVruntime), probe.get(Key::Deadline)), (Some(-5), None));
        assert!(ProbeHit::read("unknown", TextFields::new("a=1")).is_none());
        let cgroup = |number: u64| {
            let text = format!("(place_entity+0x0/0xf0) cg={number}");
            ProbeHit::read("place", TextFields::new(&text)).and_then(|probe| probe.unsigned(Key::Cgroup))
        };
        let given_away_once = (1 << 32) + 37;
        assert_eq!([37, given_away_once].map(cgroup), [Some(37); 2], "the inode, in v5.4's number, too");
    }

    #[test]
    fn a_traced_reweight_keeps_both_sides() {
        let text = "depth=2 weight=85->545 sev=7->18446744073708503040 sed=9->9 cpu=2 nr=0 on_rq=0 curr=1";
        let probe = ProbeHit::read_reweight(TextFields::new(text)).expect("a reweight");
        assert_eq!((probe.get(Key::Weight), probe.get(Key::NewWeight)), (Some(85), Some(545)));
        assert_eq!((probe.get(Key::OldVruntime), probe.get(Key::Vruntime)), (Some(7), Some(-1_048_576)));
        assert_eq!((probe.get(Key::Depth), probe.cpu(), probe.task()), (Some(2), Some(Cpu(2)), None));
        for broken in ["depth=2", "depth=2 weight=1 sev=7->8 sed=9->9 cpu=2 on_rq=0 curr=1"] {
            assert!(ProbeHit::read_reweight(TextFields::new(broken)).is_none(), "{broken}");
        }
    }

    #[test]
    fn what_a_probe_has_not_reached_is_not_shown() {
        let shown = |idle: u64| {
            let text =
                format!("(f+0x0/0x1) pid=5 la0=0 nr0=0 ai0=0 cp0=0 cf0=0 la1=0 nr1=0 ai1={idle} cp1=0 cf1=0");
            ProbeHit::read("sel", TextFields::new(&text)).expect("a probe").cpus.len()
        };
        assert_eq!((shown(0), shown(1)), (0, 2));
    }

    #[test]
    fn a_group_is_no_task() {
        let probe =
            ProbeHit::read("setn", TextFields::new("(f+0x0/0x1) se=0x1 pid=5 my=0x9 vr=1")).expect("a probe");
        assert_eq!(probe.task(), None);
    }

    #[test]
    fn who_asked_for_a_reschedule_is_told_by_the_return_address() {
        let by = |symbol: &str| {
            let text = format!("(resched_curr+0x0/0xb0) cpu=1 cpid=1 by={symbol}");
            ProbeHit::read("resched", TextFields::new(&text)).and_then(|probe| probe.by)
        };
        assert_eq!(by("check_preempt_curr+0x2d/0x70"), Some(ReschedCaller::Preemption));
        assert_eq!(by("task_tick_fair+0x1/0x2"), Some(ReschedCaller::Accounting));
        // What a compiler inlines elsewhere is a function of its own in Ubuntu's 6.8.
        assert_eq!(by("update_deadline+0x66/0xb0"), Some(ReschedCaller::Accounting));
        assert_eq!(by("sched_move_task+0x1/0x2"), Some(ReschedCaller::Other));
    }
}
