//! Files to events and back.
//!
//! One room a format; each reads a byte stream, hands events to a [`Sink`](fairlab_event::Sink) in the order in which
//! they happened, and returns [`ImportStats`]: trouble in the input is counted, not thrown. Reading streams: memory
//! does not grow with the trace.
//!
//! Must not know: how a scheduler decides, what an analysis computes.

pub mod answer;
mod chrome_json;
mod clock;
mod comm_word;
mod ctf;
mod described;
mod endian;
mod error;
pub mod ftrace_text;
mod input;
mod losses;
mod moved;
mod notes;
mod output;
pub mod parquet;
mod perf_trace;
pub mod perfdata;
pub mod perfetto;
mod relay;
pub mod ringbuffer;
mod shifted_states;
mod stats;
mod store;
pub mod table;
pub mod tracedat;
mod tracepoint;
mod unreadable;

pub use error::ImportError;
pub use input::{BytesRead, InputFormat, ReadOptions, is_trace_folder, read, read_path};
pub use losses::{LossKind, WriterLosses};
pub use output::{COMPRESSED, OutputFormat, TraceWriter};
pub use stats::{ImportStats, Severity, Trouble, TroubleCount};
pub use store::place_of_large_files;
pub use unreadable::UnreadableTally;
