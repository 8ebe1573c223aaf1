//! One task as far as the events tell of it.
//!
//! Must not know: CPUs' queues, order of events.

use fairlab_event::{Comm, Cpu, Ns, Pid, Prio};

use super::{Bound, Departure};

/// What a task does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TrackedTaskPhase {
    /// Not heard of, or lost sight of.
    #[default]
    Unknown,
    Sleeping,
    /// Woken, not queued yet.
    Waking,
    /// Queued, not running.
    Waiting(Cpu),
    Running(Cpu),
    /// It has exited.
    Gone,
}

/// Why a wait began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitCause {
    /// It slept and was woken.
    Wakeup,
    /// It is new.
    New,
    /// It was preempted inside the kernel (`R+`).
    PreemptedInKernel,
    /// It was preempted on the way to user mode.
    Preempted,
    /// It yielded.
    Yielded,
    /// It left runnable; the trace does not tell whether it was preempted or yielded.
    LeftRunnable,
}

impl WaitCause {
    /// Whether the task was preempted.
    pub const fn is_preemption(self) -> bool {
        matches!(self, WaitCause::PreemptedInKernel | WaitCause::Preempted)
    }

    /// Whether the task was runnable without interruption since it ran last.
    pub const fn is_off_cpu_runnable(self) -> bool {
        !matches!(self, WaitCause::Wakeup | WaitCause::New)
    }
}

/// A wait that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrackedWait {
    pub(crate) start: Ns,
    pub(crate) cause: WaitCause,
    /// How many holes its task had crossed when it began.
    pub(crate) holes: u32,
    /// For how long its task had waited for quotas when it began.
    pub(super) throttled: Ns,
    /// Its task was woken while it still ran on its way to sleep: it began as the task left.
    pub(crate) woken_while_running: bool,
    /// Whether its length is asked for: its task is not of the background nor waits behind it, and it did not begin before
    /// counting did.
    pub(crate) is_measured: bool,
}

/// Among which tasks the CPU counts one that waits there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    /// Those that may run anywhere.
    Movable,
    /// Those that may run on these CPUs, by number.
    Bound(u32),
    /// Those that may run nowhere else.
    Pinned,
    /// Those that wait for the quota of their group.
    Throttled,
    /// It is of the background.
    Not,
}

/// One life of one task.
#[derive(Clone, Debug)]
pub(crate) struct TrackedTask {
    pub(crate) pid: Pid,
    /// Its latest name; empty when none was told.
    pub(crate) comm: Comm,
    pub(crate) prio: Prio,
    pub(crate) doing: TrackedTaskPhase,
    /// The wait that goes on.
    pub(crate) wait: Option<TrackedWait>,
    /// The CPU where it ran last.
    pub(crate) ran_on: Option<Cpu>,
    /// `sched_waking` came while it ran, `sched_wakeup` did not yet, if the trace has it.
    pub(super) waking_while_running: bool,
    /// How it left, when it waits since it left as `R`, without the mark of a preemption.
    pub(super) left_as: Option<Departure>,
    /// How many holes it has crossed that were no loss of events, those of the queue on which it waits left out.
    pub(super) holes: u32,
    /// How many holes that CPU had when it was queued there.
    pub(super) holes_when_queued: u32,
    /// The wait that is about to begin has no `sched_waking`, as others in the trace have.
    pub(super) misses_waking: bool,
    /// For how long it has waited for its group's quota, without the queue on which it waits. Then for how long its groups had
    /// been throttled on that CPU when it was queued there.
    pub(super) throttled: Ns,
    pub(super) throttled_when_queued: Ns,
    /// How the CPU counts it on which it waits.
    pub(super) counted: Counted,
    /// It is of the background.
    pub(crate) is_background: bool,
    /// The CPU that its name tells.
    named_for: Option<Cpu>,
    /// It was seen on another CPU than that.
    strayed: bool,
    /// The only CPU that it may run on, where that is said; else the number of the CPUs that it may run on.
    bound_to: Option<Cpu>,
    mask: Option<u32>,
}

impl TrackedTask {
    pub(super) fn new(pid: Pid) -> TrackedTask {
        TrackedTask {
            pid,
            comm: Comm::default(),
            prio: Prio::DEFAULT,
            doing: TrackedTaskPhase::Unknown,
            wait: None,
            ran_on: None,
            waking_while_running: false,
            left_as: None,
            holes: 0,
            holes_when_queued: 0,
            misses_waking: false,
            throttled: Ns::ZERO,
            throttled_when_queued: Ns::ZERO,
            counted: Counted::Not,
            is_background: false,
            named_for: None,
            strayed: false,
            bound_to: None,
            mask: None,
        }
    }

    /// It may run on the CPUs of this number only; none: on all.
    pub(super) fn may_run_on(&mut self, mask: Option<u32>, bound: &Bound) {
        self.bound_to = match mask.map(|mask| bound.cpus(mask)) {
            Some(&[cpu]) => Some(cpu),
            _ => None,
        };
        self.mask = mask.filter(|_| self.bound_to.is_none());
    }

    /// How a CPU is to count it that it waits on; `is_held`: its group is throttled there.
    pub(super) fn counts_as(&self, is_held: bool) -> Counted {
        match self.mask {
            _ if self.is_background => Counted::Not,
            _ if is_held => Counted::Throttled,
            _ if self.pinned_to().is_some() => Counted::Pinned,
            Some(mask) => Counted::Bound(mask),
            None => Counted::Movable,
        }
    }

    /// Whether it waits since it was woken or begun, and not since it left a CPU.
    pub(super) fn was_woken(&self) -> bool {
        self.wait.is_some_and(|wait| !wait.cause.is_off_cpu_runnable())
    }

    /// The CPU on which it is queued, if it is.
    pub(crate) fn waits_on(&self) -> Option<Cpu> {
        match self.doing {
            TrackedTaskPhase::Waiting(cpu) => Some(cpu),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn is_called(&mut self, comm: Comm) {
        if comm != self.comm {
            self.is_renamed(comm);
        }
    }

    #[cold]
    fn is_renamed(&mut self, comm: Comm) {
        self.comm = comm;
        self.named_for = cpu_of_name(comm);
    }

    /// `is_told_at_once`: where it may run is told whenever that changes. A task may then be seen elsewhere for an instant, before it moves.
    /// What lies beside a recording, though, is of its start, and no longer true.
    pub(super) fn is_seen_on(&mut self, cpu: Cpu, is_told_at_once: bool) {
        self.strayed |= self.named_for.is_some_and(|named| named != cpu);
        self.bound_to = self.bound_to.filter(|&bound| bound == cpu || is_told_at_once);
    }

    /// The number of the CPUs that it may run on, where these are told and are several.
    pub(crate) const fn mask(&self) -> Option<u32> {
        self.mask
    }

    /// The only CPU that it may run on, by what lies beside the trace, or by its name: a kernel thread called after a CPU and
    /// never seen elsewhere. Any other task counts as allowed everywhere, since traces do not tell affinities.
    pub(crate) fn pinned_to(&self) -> Option<Cpu> {
        self.bound_to.or(self.named_for.filter(|_| !self.strayed))
    }
}

/// The CPU of a per-CPU kernel thread's name: `migration/14`, `kworker/14:0`, `kworker/2:1H-kblockd`; not `kworker/u8:0`,
/// `CPU 3/KVM`, `irq/24-nvme0q1`.
fn cpu_of_name(comm: Comm) -> Option<Cpu> {
    let name = comm.as_bytes();
    let slash = name.iter().position(|&byte| byte == b'/')?;
    let (head, tail) = (&name[..slash], &name[slash + 1..]);
    let digits = tail.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_kernels = head.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'_') && !head.is_empty();
    let ends_well = matches!(tail.get(digits), None | Some(b':'));
    if !is_kernels || head == b"irq" || digits == 0 || !ends_well {
        return None;
    }
    std::str::from_utf8(&tail[..digits]).ok()?.parse().ok().map(Cpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_called_after_a_cpu_are_pinned_until_seen_elsewhere() {
        for (name, expected) in [
            ("migration/14", Some(14)),
            ("ksoftirqd/0", Some(0)),
            ("kworker/14:0", Some(14)),
            ("kworker/2:1H-kbl", Some(2)),
            ("kworker/u8:0-ev", None),
            ("kworker/R-rcu_g", None),
            ("CPU 3/KVM", None),
            ("irq/24-nvme0q1", None),
            ("irq/9", None),
            ("/3", None),
            ("a/99999999999", None),
            ("", None),
        ] {
            assert_eq!(cpu_of_name(name.into()), expected.map(Cpu), "{name}");
        }
        let mut task = TrackedTask::new(Pid(7));
        task.is_called("migration/14".into());
        task.is_seen_on(Cpu(14), false);
        assert_eq!(task.pinned_to(), Some(Cpu(14)));
        task.is_seen_on(Cpu(3), false);
        assert_eq!(task.pinned_to(), None);
        let mut bound = Bound::default();
        let [one, two] = [&[Cpu(3)][..], &[Cpu(3), Cpu(4)]].map(|cpus| bound.number(cpus));
        task.may_run_on(one, &bound);
        assert_eq!(task.pinned_to(), Some(Cpu(3)));
        task.may_run_on(two, &bound);
        assert_eq!(task.pinned_to(), None);
        task.may_run_on(one, &bound);
        task.is_seen_on(Cpu(4), false);
        assert_eq!(task.pinned_to(), None, "who is seen elsewhere may run there");
    }
}
