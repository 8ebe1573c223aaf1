//! trace.dat against real recordings, the real trace-cmd, its own writer, and damage.

mod damage;
#[allow(dead_code)]
mod kernelshark;
mod made;
#[allow(dead_code)]
mod real_tools;
mod recordings;
mod round_trip;
