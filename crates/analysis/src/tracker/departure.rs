//! Why a task left its CPU: the last words of a CPU before a switch.
//!
//! `prev_state` alone does not tell a yield from a preemption on the way to user mode: both are `R`. The flags of the
//! accounting that the same call of the scheduler prints just before do: a pending reschedule (`N`) is a preemption.
//! At the switch itself the flag is cleared already.
//!
//! Must not know: tasks and queues.

use fairlab_event::{Event, EventKind, Flags, GenericValue, Ns, Pid, Switch, TaskState, UntypedTracepoint};

/// How a task left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// Preempted inside the kernel.
    PreemptedInKernel,
    /// Preempted on the way to user mode.
    Preempted,
    /// It called the scheduler itself and stayed runnable: a yield, or it was woken while it went to sleep.
    Yielded,
    /// It stayed runnable; the trace does not tell why it left.
    Runnable,
    /// It blocked. The state is `R` when a waker came before it had left, up to v5.17.
    Slept(TaskState),
    /// It exited.
    Exited,
}

/// A reschedule that is pending: since when it shows, and what asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resched {
    pub(crate) time: Ns,
    pub(crate) by: ReschedBy,
}

/// What asked for a reschedule, as far as the order of events tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReschedBy {
    /// The scheduler's tick.
    Tick,
    /// The timer that ends slices (`HRTICK`).
    Hrtick,
    /// The wakeup of a task.
    Wakeup(Pid),
    /// Something else.
    Other,
}

/// What a CPU said last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastWords {
    flags: Flags,
    /// The latest event was the accounting of this task, and when.
    accounted: Option<(Pid, Ns)>,
    /// The latest event but for accounting began the wakeup of this task.
    waking: Option<Pid>,
    /// When the interrupt that the latest event came from accounted, and by which timer: what a reschedule is due to that shows next.
    ticked: Option<Resched>,
    /// The latest timer that expired in that interrupt is the one that ends slices.
    hrtick: bool,
}

/// Within this time an interrupt is over and the scheduler called. In a kernel that is not preemptible the mark shows later, and
/// counts as that of another cause.
const JUST_AFTER: Ns = Ns(100_000);

impl LastWords {
    /// Takes an event of the CPU; tells when a reschedule is pending.
    pub(super) fn hear(&mut self, event: &Event<'_>) -> Option<Resched> {
        let flags = event.context.flags;
        let ticked = self.ticked;
        self.hrtick = flags.in_hardirq() && expires_hrtick(&event.kind).unwrap_or(self.hrtick);
        let accounts = matches!(event.kind, EventKind::SchedStatRuntime { .. });
        let by = if self.hrtick { ReschedBy::Hrtick } else { ReschedBy::Tick };
        self.ticked = match flags.in_hardirq() {
            true if accounts => Some(Resched { time: event.time, by }),
            true => ticked,
            false => None,
        };
        self.flags = flags;
        self.accounted = match &event.kind {
            EventKind::SchedStatRuntime { pid, .. } => Some((*pid, event.time)),
            // What the next task has waited is told between the accounting and the switch.
            EventKind::SchedStatWait(_) | EventKind::Kprobe { .. } | EventKind::Other { .. } => {
                self.accounted
            }
            _ => None,
        };
        match &event.kind {
            EventKind::SchedWaking(wakeup) => self.waking = Some(wakeup.pid),
            EventKind::SchedStatRuntime { .. }
            | EventKind::SchedMigrateTask { .. }
            | EventKind::Kprobe { .. }
            | EventKind::Other { .. } => {}
            _ => self.waking = None,
        }
        if !flags.need_resched() || matches!(event.kind, EventKind::SchedSwitch(_)) {
            return None;
        }
        let now = |by| Resched { time: event.time, by };
        Some(match &event.kind {
            EventKind::SchedWakeup(wakeup) | EventKind::SchedWakeupNew(wakeup) => {
                now(ReschedBy::Wakeup(wakeup.pid))
            }
            // The tick accounts first and decides then: the mark shows at a later event of the interrupt, or just after.
            _ => ticked
                .filter(|tick| flags.in_hardirq() || event.time.since(tick.time) < JUST_AFTER)
                .or(self.ticked.filter(|_| accounts))
                .unwrap_or_else(|| now(ReschedBy::Other)),
        })
    }

    /// Whether the latest event has flags, and that of a pending reschedule is not among them.
    pub(super) fn shows_no_resched(&self) -> bool {
        !self.flags.as_bytes().is_empty() && !self.flags.need_resched()
    }

    /// Whether the latest event is of an interrupt in which a timer that ends slices expired.
    pub(super) const fn is_in_hrtick(&self) -> bool {
        self.hrtick
    }

    /// Whether the latest event, but for accounting and migrations, began a wakeup.
    pub(super) const fn is_waking(&self) -> bool {
        self.waking.is_some()
    }

    /// How the task that a switch takes off the CPU leaves it.
    pub(super) fn departure(&self, switch: &Switch, event: &Event<'_>, resched_pending: bool) -> Departure {
        let state = switch.prev_state;
        if !state.is_runnable() {
            let is_dead = state.contains(TaskState::DEAD) || state.contains(TaskState::ZOMBIE);
            return if is_dead { Departure::Exited } else { Departure::Slept(state) };
        }
        if state.is_preempted() {
            return Departure::PreemptedInKernel;
        }
        if resched_pending || self.flags.need_resched() || event.context.flags.need_resched() {
            return Departure::Preempted;
        }
        // A wakeup accounts before it decides, and a recorder may leave out the sched_wakeup that shows the mark.
        if let Some(woken) = self.waking {
            let makes_way = woken == switch.next_pid;
            return if makes_way { Departure::Preempted } else { Departure::Runnable };
        }
        // Any other accounting outside of interrupts without the mark is the yield's own.
        let accounted = self.accounted.is_some_and(|(pid, _)| pid == switch.prev_pid);
        let outside = !self.flags.in_hardirq() && !self.flags.in_softirq();
        let has_flags = !self.flags.as_bytes().is_empty();
        if accounted && outside && has_flags { Departure::Yielded } else { Departure::Runnable }
    }
}

/// Whether a timer that expires is the one that ends slices; `None`: no timer does.
fn expires_hrtick(kind: &EventKind<'_>) -> Option<bool> {
    match kind {
        EventKind::Other { name, fields } if *name == UntypedTracepoint::HrtimerExpire.name() => {
            Some(fields.get("function") == Some(GenericValue::Text("hrtick")))
        }
        _ => None,
    }
}
