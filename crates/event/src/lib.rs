//! What happened.
//!
//! The waist of Fairlab: every kernel (modelled, booted or live) is observed as a stream of [`Event`]s, and every answer is
//! computed from such a stream. Names and fields are those of the kernel's own tracepoints (`include/trace/events/sched.h`),
//! so a reader of `ftrace` output knows them already.
//!
//! Must not know: files and their formats, how a scheduler decides, what an analysis computes.
//!
//! An [`Event`] is small and `Copy`. The few events that carry text borrow it from their emitter ([`Event<'t>`](Event)), so
//! no event costs an allocation. A sink that keeps such an event copies the text.

mod digest;
pub mod escaped;
mod event;
mod fields;
mod id_hasher;
mod origin;
pub mod probes;
mod sink;
pub mod spelling;
mod state;
mod system;
mod tracepoints;
mod units;

pub use digest::{Digest, DigestSink};
pub use escaped::{EscapedText, ShownLines, ShownPath};
pub use event::{Context, Event, EventKind, Flags, Place, StatDelay, Switch, Wakeup};
pub use fields::{GenericValue, TextFields};
pub use id_hasher::IdHasher;
pub use origin::Origin;
pub use sink::{Counter, Filter, Sink, sink_fn};
pub use state::TaskState;
pub use system::{ControlGroup, GroupLimit, SwitchScope, System};
pub use tracepoints::{
    ColumnType, FieldColumn, FieldForm, FieldSink, FieldSource, Tracepoint, TracepointField, TracepointValue,
    UntypedTracepoint,
};
pub use units::{Comm, Cpu, Ns, Pid, Prio};
