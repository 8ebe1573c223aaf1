//! Tests of the crate from outside, one binary for all: each file is a subject.

mod adding_a_commit;
mod folds;
mod generations_page;
