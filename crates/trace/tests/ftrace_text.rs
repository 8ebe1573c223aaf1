//! ftrace text against real recordings, against its own writer, and against damage.

#[path = "ftrace_text/dialects.rs"]
mod dialects;
#[path = "ftrace_text/fuzz.rs"]
mod fuzz;
#[path = "ftrace_text/kept.rs"]
mod kept;
#[path = "ftrace_text/random.rs"]
mod random;
#[path = "ftrace_text/recordings.rs"]
mod recordings;
#[path = "ftrace_text/round_trip.rs"]
mod round_trip;
