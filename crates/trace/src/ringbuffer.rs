//! Pages of the kernel's ring buffer: what `trace_pipe_raw` gives, and what a `trace.dat` holds for each CPU.
//!
//! Layout facts: include/linux/ring_buffer.h, kernel/trace/ring_buffer.c, and `events/header_page`.
//!
//! Must not know: in which file the pages lie, what their records mean.

pub(crate) mod deliver;
pub(crate) mod fill;
mod folder;
pub(crate) mod merge;
pub(crate) mod page;
pub(crate) mod shift;
pub(crate) mod stored;
pub(crate) mod stream;
pub(crate) mod tasks;

pub(crate) use folder::is_raw_folder;
pub use folder::read_raw_folder;
