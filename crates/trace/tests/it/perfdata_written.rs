//! Our perf.data against our reader, the real perf, and recordings in other formats.

#[allow(dead_code)]
#[allow(dead_code)]
mod real_perf;
mod round_trip;
