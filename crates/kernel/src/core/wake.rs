//! What there is to know of a wakeup.
//!
//! Must not know: what it leads to.

/// Why a CPU is selected for a task (`WF_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeKind {
    /// A wakeup; `sync` says that the waker is about to sleep (`WF_SYNC`).
    Wakeup {
        /// Whether the waker is about to sleep.
        sync: bool,
    },
    /// A new task.
    Fork,
    /// A task that replaces its program.
    Exec,
}

/// What there is to know of a wakeup where its task is queued (`WF_*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeFlags {
    /// The waker is about to sleep, and queues the task itself: who is left to its own CPU's list is told nothing (`WF_SYNC`).
    pub sync: bool,
    /// It slept on another CPU (`WF_MIGRATED`).
    pub migrated: bool,
}

/// What a wakeup finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeStart {
    /// The task slept; a CPU is to be selected for it.
    Slept,
    /// The task had not left its queue yet; it stays where it is and will not sleep.
    StillQueued,
}
