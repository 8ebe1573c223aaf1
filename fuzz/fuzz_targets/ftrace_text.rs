//! Any bytes as ftrace text: an answer, never a panic, and the account says how many events were handed on.

#![no_main]

use fairlab_event::Counter;
use fairlab_trace::{ReadOptions, ftrace_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut counter = Counter::default();
    if let Ok(stats) = ftrace_text::read(bytes, &ReadOptions::default(), &mut counter) {
        assert_eq!(stats.events, counter.events);
    }
});
