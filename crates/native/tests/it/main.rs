//! Tests of the crate from outside, one binary for all: each file is a subject.

mod build;
mod cache_aware;
mod preemption;
mod runs;
