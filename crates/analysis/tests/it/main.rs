//! Tests of the crate from outside, one binary for all: each file is a subject.

mod blame;
mod calibration;
mod clocks;
mod conserved;
mod explain;
mod holes;
mod own_switches;
mod perf_table;
mod perf_timehist;
#[path = "../../src/statistics/random.rs"]
mod random;
mod random_events;
mod until_sure;
