//! ftrace text against real recordings, against its own writer, and against damage.

mod dialects;
mod fuzz;
mod recordings;
mod round_trip;
