//! The recorder's kprobes, read by name: what the kernel's own fields held at one of its functions.
//!
//! Fields have the recorder's names, some of them kernels' fields under another name in each era. Values at a function's
//! entry are those before it acts.
//!
//! Must not know: what a function should do.

use fairlab_event::probes::CpuField;
use fairlab_event::{Cpu, GenericValue, Pid, TextFields};

/// The function that a probe stands at.
pub(super) use fairlab_event::probes::ProbePoint as At;

/// What a probe fetched.
pub(super) use fairlab_event::probes::ProbeField as Key;

/// Probes that are recorded for people: no step of verification looks at them.
const UNREAD: [At; 5] =
    [At::SelectIdleCore, At::SelectIdleCoreReturn, At::CanMigrateReturn, At::DetachTask, At::AttachTask];

/// Functions in which a group's manager gives it another weight.
const SHARES_SET_IN: [&str; 4] = [
    "(__sched_group_set_shares+",
    "(__sched_group_set_shares.",
    "(sched_group_set_shares+",
    "(sched_group_set_shares.",
];

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
    /// Whether it returns into `requeue_delayed_entity()`.
    pub in_requeue: bool,
    /// Whether it returns to where a group's manager gives it another weight.
    pub in_set_shares: bool,
    values: Box<[Option<i64>]>,
    /// At a selection: what it finds on each CPU.
    pub cpus: Vec<CpuShown>,
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

    fn with_fields(at: At, fields: TextFields<'_>) -> ProbeHit {
        let mut probe = ProbeHit {
            at,
            by: None,
            in_place: fields.text().starts_with("(place_entity+"),
            in_requeue: fields.text().starts_with("(requeue_delayed_entity+"),
            in_set_shares: SHARES_SET_IN.iter().any(|function| fields.text().starts_with(function)),
            values: vec![None; Key::ALL.len()].into(),
            cpus: Vec::new(),
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
            } else if at == At::SelectTaskRq {
                probe.note_cpu(name, value);
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
        let chosen = (self.at == At::SelectTaskRqReturn).then_some(Key::Returned);
        let mut numbers = one_cpu.into_iter().chain(chosen).filter_map(|key| self.get(key));
        numbers.any(|cpu| usize::try_from(cpu).is_ok_and(from)) || self.cpus.len() > nr_cpus
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
