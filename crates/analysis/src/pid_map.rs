//! A hash table by task id, the same in every process.
//!
//! Must not know: what is kept for each task.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use fairlab_event::Pid;

/// Something for each task, by its id. Its order of iteration means nothing.
pub(crate) type PidMap<V> = HashMap<Pid, V, BuildHasherDefault<PidHasher>>;

/// Spreads task ids over a hash table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PidHasher(u64);

impl Hasher for PidHasher {
    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_i32(i32::from(byte));
        }
    }

    #[inline]
    fn write_i32(&mut self, value: i32) {
        self.0 = (self.0.rotate_left(5) ^ u64::from(value as u32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
