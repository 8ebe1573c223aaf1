//! Any bytes as a folder of CTF: an answer, never a panic, and the account says how many events were handed on. The first two bytes say
//! how many of the others are the description; what is left is a stream.

#![no_main]

#[path = "../lab.rs"]
#[allow(dead_code, reason = "each target uses a part of it")]
mod lab;

use fairlab_event::Counter;
use fairlab_trace::{ReadOptions, read_path};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else { return };
    let (description, stream) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
    let path = lab::file("metadata", description);
    lab::file("stream", stream);
    let mut counter = Counter::default();
    let folder = path.parent().expect("a folder");
    if let Ok(stats) = read_path(folder, &ReadOptions::default(), &mut counter) {
        assert_eq!(stats.events, counter.events);
    }
});
