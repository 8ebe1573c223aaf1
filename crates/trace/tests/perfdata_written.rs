//! Our perf.data against our reader, the real perf, and recordings in other formats.

#[allow(dead_code)]
#[path = "ftrace_text/kept.rs"]
mod kept;
#[allow(dead_code)]
#[path = "ftrace_text/random.rs"]
mod random;
#[path = "perfdata_written/round_trip.rs"]
mod round_trip;
