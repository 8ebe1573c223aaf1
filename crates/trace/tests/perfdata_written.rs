//! Our perf.data against our reader, the real perf, and recordings in other formats.

#[allow(dead_code)]
#[path = "ftrace_text/kept.rs"]
mod kept;
#[path = "peers/programs.rs"]
mod peers;
#[allow(dead_code)]
#[path = "ftrace_text/random.rs"]
mod random;
#[path = "perfdata_written/real_perf.rs"]
mod real_perf;
#[path = "perfdata_written/round_trip.rs"]
mod round_trip;
