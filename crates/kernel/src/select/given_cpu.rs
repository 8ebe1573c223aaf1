//! What a selection is to find, where a driver knows better than the state.
//!
//! Must not know: how it comes into the state.

/// A task's load, runnability and utilization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenLoad {
    /// `load_avg`.
    pub load: u64,
    /// `runnable_avg`.
    pub runnable: u64,
    /// `util_avg`.
    pub util: u64,
}

/// What is known of a CPU at a selection; `None` where the core's state tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GivenCpu {
    /// Whether it is idle.
    pub idle: Option<bool>,
    /// Tasks queued there.
    pub nr_running: Option<u32>,
}
