//! The numbers by which entities, queues, tasks and groups are looked up.
//!
//! Must not know: what stands there.

use std::hash::Hash;

use fairlab_event::Cpu;

/// Index of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SeId(pub u32);

/// Index of a `cfs_rq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CfsRqId(pub u32);

impl CfsRqId {
    /// That of a CPU's root queue.
    pub const fn root(cpu: Cpu) -> CfsRqId {
        CfsRqId(cpu.0)
    }
}

/// Index of a task in its [`Scheduler`](crate::Scheduler).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

impl TaskId {
    /// The number as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Index of a task group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

impl GroupId {
    /// The root group: every CPU's own `cfs_rq`.
    pub const ROOT: GroupId = GroupId(0);
}
