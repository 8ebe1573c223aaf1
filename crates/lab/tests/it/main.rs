//! Tests of the crate from outside, one binary for all: each file is a subject.

mod batches;
mod blame;
mod chance;
mod counters;
mod hostile;
mod made;
mod mixes;
mod own_abilities;
mod own_domains;
mod own_kernel;
mod replay;
mod runs;
mod same_kernel;
mod schedstat;
mod schedstat_events;
mod settling;
mod speeds;
mod throttled;
