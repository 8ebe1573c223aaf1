//! `kernel/sched/fair.c`: the fair class, CFS and EEVDF.
//!
//! Each file holds one decision or one piece of accounting, with every generation's rule for it side by side; which
//! one is followed is the generation's [`FairRules`](rules::FairRules).

pub(crate) mod accounting;
pub(crate) mod bandwidth;
mod buddies;
mod contributions;
mod delay;
mod delayed_leave;
#[cfg(test)]
mod edges;
mod entity_queue;
mod follow;
mod fork;
mod granularity;
mod h_load;
mod hrtick;
mod idle_policy;
mod lag;
mod levels;
pub(crate) mod load;
pub(crate) mod load_update;
mod one_line;
mod one_queue;
mod pick;
mod place;
pub(crate) mod preempt;
pub(crate) mod preemption_rules;
mod protection;
pub(crate) mod queue;
pub(crate) mod requests;
mod requeue;
mod reweight;
pub(crate) mod rules;
mod scaling;
mod shorter;
pub(crate) mod slice;
mod statistics;
mod tick;
mod timeline;
mod virtual_time;
mod woken_buddy;
mod yielding;

pub use preemption_rules::{
    FailedTest, ForcedPreemption, PendingTest, PreemptionEffect, PreemptionRules, ShortBuddy, ShortPreference,
};
