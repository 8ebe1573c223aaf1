//! Any bytes as a Parquet file: an answer, never a panic, and the account says how many events were handed on.

#![no_main]

use fairlab_event::Counter;
use fairlab_trace::{ReadOptions, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut counter = Counter::default();
    let file = [b"PAR1", bytes.strip_prefix(b"PAR1").unwrap_or(bytes)].concat();
    if let Ok(stats) = read(Box::new(&file[..]), &ReadOptions::default(), &mut counter) {
        assert_eq!(stats.events, counter.events);
    }
});
