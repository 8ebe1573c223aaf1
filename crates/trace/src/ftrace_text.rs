//! Text of ftrace and its tools: tracefs (`trace`, `trace_pipe`), `trace-cmd report`, `perf script`, and mails that quote
//! them; reading and writing.
//!
//! [`read`] takes lines of any of these forms in any mixture: each line is recognised by itself. What the text does
//! not hold is not invented: `trace-cmd report` of before 3.3 and `perf script` print no flags, tracefs prints thread
//! groups only with `options/record-tgid`. Events are handed on in the order of the lines.
//!
//! [`FtraceTextWriter`] writes the form of tracefs, with nanosecond stamps.
//!
//! Must not know: other formats, how the text was compressed, what an analysis needs.

mod body;
mod cursor;
mod early;
mod layout;
mod lines;
mod machine;
mod name;
mod plugin;
mod prefix;
mod printed;
mod raw_fields;
mod reader;
mod record;
mod rt_flags;
mod sources;
mod stamp;
mod swar;
mod wrapping;
mod writer;

pub use reader::read;
pub use writer::{FtraceTextWriter, TextWriteOptions};
