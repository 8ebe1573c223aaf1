//! Tests of the crate from outside, one binary for all: each file is a subject.

mod bare;
mod damaged;
mod fidelity;
mod oracle;
