//! trace.dat against real recordings, the real trace-cmd, its own writer, and damage.

#[path = "tracedat/damage.rs"]
mod damage;
#[allow(dead_code)]
#[path = "ftrace_text/kept.rs"]
mod kept;
#[path = "tracedat/kernelshark.rs"]
mod kernelshark;
#[path = "tracedat/made.rs"]
mod made;
#[path = "peers/programs.rs"]
mod peers;
#[allow(dead_code)]
#[path = "ftrace_text/random.rs"]
mod random;
#[path = "tracedat/real_tools.rs"]
mod real_tools;
#[path = "tracedat/recordings.rs"]
mod recordings;
#[path = "tracedat/round_trip.rs"]
mod round_trip;
