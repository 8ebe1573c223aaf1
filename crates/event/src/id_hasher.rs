//! A hash for tables by small numbers: ids of tasks and of events. It is equal in every process.
//!
//! Must not know: what the numbers mean.

use std::hash::Hasher;

/// Spreads small integers over a hash table. It is no defence against chosen keys; there are only as many keys as tasks.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    #[inline]
    fn write_i32(&mut self, value: i32) {
        self.write_u32(value.cast_unsigned());
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
