//! What an update of averages does beside ageing, and the clocks by which it goes.
//!
//! Must not know: what is updated.

use crate::pelt::CpuScale;

/// What an update does beside ageing (`UPDATE_TG`, `DO_ATTACH`, `DO_DETACH`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoadUpdate {
    /// The group is told if something changed.
    pub tell_group: bool,
    /// An entity that belongs to no queue joins this one.
    pub attach: bool,
    /// The entity leaves for another CPU's queue.
    pub detach: bool,
}

impl LoadUpdate {
    /// Ages, no more.
    pub const AGE: LoadUpdate = LoadUpdate { tell_group: false, attach: false, detach: false };
    /// Ages and tells the group.
    pub const TELL: LoadUpdate = LoadUpdate { tell_group: true, attach: false, detach: false };
}

/// A CPU's clocks at one instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RqClocks {
    /// `rq_clock()`, ns.
    pub clock: u64,
    /// `rq_clock_pelt()`, ns.
    pub pelt: u64,
    /// What contributions to load tracking are scaled by.
    pub scale: CpuScale,
}

/// How long the machine has been up when a run starts, ns: an average's age of 0 means that it belongs to no queue.
pub(crate) const UPTIME: u64 = 1 << 30;
