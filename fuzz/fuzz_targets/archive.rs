//! Any bytes as a guest's archive: files that lie in it, or none.

#![no_main]

use fairlab_guest::archive::members;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(members) = members(bytes) {
        let held = members.iter().map(|member| member.name.len() + member.content.len()).sum::<usize>();
        assert!(held <= bytes.len());
    }
});
