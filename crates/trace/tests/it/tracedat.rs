//! trace.dat against real recordings, the real trace-cmd, its own writer, and damage.

mod damage;
mod kernelshark;
mod made;
mod real_tools;
mod recordings;
mod round_trip;
