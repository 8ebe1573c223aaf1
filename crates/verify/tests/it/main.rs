//! Tests of the crate from outside, one binary for all: each file is a subject.

mod affinity;
mod bare;
mod damaged;
mod fidelity;
mod oracle;
mod texts;
mod verdicts;
