//! Our perf.data against our reader, the real perf, and recordings in other formats.

mod real_perf;
mod round_trip;
