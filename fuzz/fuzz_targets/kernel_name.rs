//! Any text as the name of a kernel: one that is called so, or a refusal.

#![no_main]

use fairlab_kernel::Generation;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|name: &str| {
    if let Ok(kernel) = Generation::asked_for(name) {
        assert_eq!(kernel.name(), name);
    }
});
