//! `kernel/sched/core.c`: runqueues and tasks, wakeups, the switch, the tick — what the classes have in common.
//!
//! Methods come in the order in which a driver calls them: say where and when ([`Scheduler::set_here`]), ask for a
//! decision (`&self`), apply one (`&mut self`). An applied action reports the kernel's tracepoints and may mark CPUs
//! for rescheduling; the driver collects both.

mod clock;
mod count;
mod driver;
mod hrtick;
mod idle;
mod lifecycle;
mod resched;
pub(crate) mod rules;
mod sched_info;
mod start;
mod switch;
mod user_mode;
mod wake;
mod wakeup;

pub use crate::rq::EnqueueFlags;
pub use crate::scheduler::Scheduler;
pub use crate::trace::KernelContext;
#[cfg(test)]
pub(crate) use lifecycle::tests::SITUATIONS;
#[cfg(test)]
pub(crate) use switch::tests::SITUATIONS as OF_SWITCHES;
pub use wake::{WakeFlags, WakeKind, WakeStart};
