//! Tests of the crate from outside, one binary for all: each file is a subject.

mod another_scheduler;
mod examples;
mod gathering;
mod idle;
mod real_time;
mod sharing;
mod speeds;
