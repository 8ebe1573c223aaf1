//! A recording: a trace as a file, and the folder in which kernel, machine, tasks and groups are listed beside it.
//!
//! What lies beside a trace is read here ([`Recording`], [`told_beside`]), of which generation its kernel is ([`kernel_of`]), and
//! traces are written in any format ([`TraceFile`]).
//!
//! Must not know: what the model decides, where a recording comes from.

mod beside;
mod kernel;
mod power;
mod recording;
mod sched_debug;
mod sched_info;
mod trace_file;
mod tracks;

pub use beside::{read_recorded, system_beside};
pub use kernel::{KnownKernel, generation_of, kernel_of};
pub use power::PowerLists;
pub use recording::{
    CgroupLine, Recording, RecordingFacts, TaskLine, events_on, holds_trace, lines_of_groups,
    lines_of_machine, members_of_groups, told_beside, told_in, topology_of, trace_of,
};
pub use sched_debug::{CpuDump, QueueDump, SchedDebug, TaskDump};
pub use sched_info::{lines_of, list};
pub use trace_file::TraceFile;
