//! What a part of a wait is due to: which task had the CPU, which rule decided so, what ended it.
//!
//! Must not know: how waits are followed, how a cause reaches a user.

use fairlab_event::{Comm, Prio};
use serde::{Deserialize, Serialize};

use crate::task_selector::stem;
use crate::tracker::{Departure, MoveCause};

/// Declares an enum whose variants have a word in JSON and a clause for people.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
            #[serde(rename_all = "snake_case")]
            pub enum $name { $(#[doc = $text] $variant,)* }

            impl $name {
                /// In words.
                pub const fn words(self) -> &'static str {
                    match self { $($name::$variant => $text,)* }
                }
            }
        )*
    };
}

words! {
    /// Why a wait began.
    WaitKind {
        Wakeup = "woken",
        New = "new",
        PreemptedAtTick = "preempted at a tick",
        PreemptedByWakeup = "preempted by a wakeup",
        Preempted = "preempted",
        Yielded = "yielded",
    }

    /// What had the CPU while a task waited there, as the waiting task is related to it.
    WaitBehind {
        KernelThread = "behind a kernel thread",
        RealTime = "behind a real-time task",
        OtherGroup = "behind a task of another group",
        OwnName = "behind a task of its own name",
        OtherName = "behind a task of another name",
        Interrupts = "for interrupts and soft interrupts on its CPU",
        Throttled = "for its group's quota",
        Idle = "at an idle CPU, until that came out of idle",
        Waking = "on the way from its wakeup to a queue",
        Unknown = "behind something that the trace does not show",
    }

    /// The kind of decision that left a task waiting.
    CauseDecision {
        Unknown = "no decision of this kernel is known",
        Pick = "picked",
        Preempt = "not preempted by the wakeup",
        Tick = "let run by a tick",
        Pending = "a reschedule was pending, and kernel work went on",
    }

    /// What ended a stretch of waiting.
    StretchEnd {
        Slept = "the other went to sleep",
        Exited = "the other exited",
        Yielded = "the other gave way by itself",
        AtTick = "the other was preempted at a tick",
        AtSliceTimer = "the timer of its slice (hrtick) preempted the other",
        ByWaiter = "its own wakeup preempted the other",
        ByOther = "the wakeup of a third task preempted the other",
        Preempted = "the other was preempted",
        PulledByNewIdle = "a CPU that was about to idle pulled it",
        PulledByBalancing = "periodic or NOHZ balancing pulled it",
        PushedByStopper = "the stopper moved it: active balance, or a change of affinity",
        Moved = "it was moved otherwise",
        Unthrottled = "its group got quota",
        Began = "it got the CPU",
        Queued = "it was queued",
        StillWaiting = "the run did",
        NotShown = "what the trace does not show",
    }

    /// Where a wakeup put a task.
    WakeupPlacement {
        Idle = "on an idle CPU",
        BusyBesideIdle = "on a busy CPU while another was idle",
        Busy = "on a busy CPU, as none was idle",
    }
}

/// A decision and its reason, by the reason's place among those that were heard of; 0: unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DecisionReason {
    pub(crate) decision: CauseDecision,
    pub(crate) reason: u16,
}

impl DecisionReason {
    pub(crate) const UNKNOWN: DecisionReason = DecisionReason { decision: CauseDecision::Unknown, reason: 0 };
    pub(crate) const PENDING: DecisionReason = DecisionReason { decision: CauseDecision::Pending, reason: 0 };
}

/// Why a part of a wait lasted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cause {
    pub(crate) behind: WaitBehind,
    /// The name of the task that had the CPU, by its place among names; 0: no task.
    pub(crate) runner: u16,
    pub(crate) rule: DecisionReason,
    pub(crate) ended: StretchEnd,
}

/// How names of kernel threads begin. Traces do not mark kernel threads.
const KERNEL_THREADS: [&[u8]; 15] = [
    b"kworker/",
    b"ksoftirqd/",
    b"migration/",
    b"rcu_",
    b"rcub/",
    b"rcuc/",
    b"rcuo",
    b"kthreadd",
    b"kswapd",
    b"kcompactd",
    b"khugepaged",
    b"irq/",
    b"cpuhp/",
    b"jbd2/",
    b"sugov:",
];

/// Whether a name is that of a kernel thread.
pub(super) fn is_kernel_thread(comm: Comm) -> bool {
    KERNEL_THREADS.iter().any(|head| comm.as_bytes().starts_with(head))
}

/// Whether a priority is real-time or deadline.
pub(super) const fn is_real_time(prio: Prio) -> bool {
    prio.0 < 100
}

/// A name without what tells threads of one kind apart: a number at its end, and a kernel thread's CPU.
pub(super) fn family(comm: Comm) -> Comm {
    let name = comm.as_bytes();
    if is_kernel_thread(comm)
        && let Some(slash) = name.iter().position(|&byte| byte == b'/')
    {
        return Comm::new(&name[..slash]);
    }
    std::str::from_utf8(name).map_or(comm, |name| Comm::from(stem(name)))
}

impl StretchEnd {
    pub(super) const fn by_move(cause: MoveCause) -> StretchEnd {
        match cause {
            MoveCause::NewIdle => StretchEnd::PulledByNewIdle,
            MoveCause::Softirq => StretchEnd::PulledByBalancing,
            MoveCause::Stopper => StretchEnd::PushedByStopper,
            MoveCause::Wakeup | MoveCause::Asked | MoveCause::Other => StretchEnd::Moved,
        }
    }

    /// By a departure for which no wakeup and no tick asked.
    pub(super) const fn by_departure(how: Departure) -> StretchEnd {
        match how {
            Departure::Slept(_) => StretchEnd::Slept,
            Departure::Exited => StretchEnd::Exited,
            Departure::Yielded => StretchEnd::Yielded,
            Departure::Preempted | Departure::PreemptedInKernel | Departure::Runnable => {
                StretchEnd::Preempted
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_one_kind_have_one_name() {
        for (name, expected) in [
            ("cyclictest-13", "cyclictest"),
            ("cyclictest", "cyclictest"),
            ("kworker/3:1", "kworker"),
            ("kworker/u8:0-ev", "kworker"),
            ("migration/14", "migration"),
            ("sshd-session", "sshd-session"),
            ("CPU 3/KVM", "CPU 3/KVM"),
            ("-7", "-7"),
            ("7", "7"),
            ("", ""),
        ] {
            assert_eq!(family(name.into()), name_of(expected), "{name}");
        }
        assert!(is_kernel_thread("ksoftirqd/3".into()) && !is_kernel_thread("schbench".into()));
        assert!(is_real_time(Prio(-1)) && is_real_time(Prio(99)) && !is_real_time(Prio::DEFAULT));
    }

    fn name_of(name: &str) -> Comm {
        name.into()
    }
}
