//! Tests of the crate from outside, one binary for all: each file is a subject.

mod circles;
mod denied;
mod documents;
mod fidelity_page;
mod first_rule;
mod good_guesses;
mod layout;
mod licences;
mod sentences;
mod spelled;
mod style;
mod testdata;
mod words;
