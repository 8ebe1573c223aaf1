//! Any bytes as what commands write and read again: counts, `/proc/schedstat`, a journal of a sweep; the first byte says which.

#![no_main]

#[path = "../lab.rs"]
#[allow(dead_code, reason = "each target uses a part of it")]
mod lab;

use fairlab_lab::merge::MergedCounts;
use fairlab_lab::schedstat::read_schedstat;
use fairlab_lab::sweep::{Query, query};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let problem = match kind % 3 {
        0 => MergedCounts::default().add_path(&lab::file("counts.json", bytes)).err(),
        1 => read_schedstat(&lab::file("schedstat", bytes)).err(),
        _ => {
            let journal = lab::file("cells.jsonl", bytes);
            let asked = Query { metrics: vec!["throughput".to_string()], ..Query::default() };
            query(journal.parent().expect("a folder"), &asked).err()
        }
    };
    problem.iter().for_each(lab::one_line);
});
