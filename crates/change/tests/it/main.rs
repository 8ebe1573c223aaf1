//! Tests of the crate from outside, one binary for all: each file is a subject.

mod agreement;
mod causes;
mod ends;
mod explained_reports;
mod tables;
