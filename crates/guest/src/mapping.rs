//! Memory of devices, mapped.
//!
//! The one room here with `unsafe` code: a mapping is a promise about addresses that only its owner can keep. What lies
//! behind it is a device's memory, so nothing is ever borrowed from it: bytes are copied in and registers read and
//! written whole, each within bounds.
//!
//! Must not know: which device.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ptr::{self, NonNull};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A part of a file, mapped and shared until it is dropped.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

impl Mapping {
    /// Maps `length` bytes of `file` from `offset` on, which is a multiple of a page.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn new(file: &File, offset: u64, length: usize) -> io::Result<Mapping> {
        let flags = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses an address that nothing else uses, and it stays ours until drop() gives it back.
        let start = unsafe { mmap(ptr::null_mut(), length, flags, MapFlags::SHARED, file, offset)? };
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Mapping { start, length })
    }

    /// Bytes mapped.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Copies bytes to `at`.
    ///
    /// # Panics
    /// They do not fit.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        assert!(
            at.checked_add(bytes.len()).is_some_and(|end| end <= self.length),
            "a write beyond the mapping"
        );
        // SAFETY: the range was just checked to lie in the mapping; a slice of ours cannot overlap it.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr().add(at), bytes.len()) }
    }

    /// Writes a register.
    ///
    /// # Panics
    /// It lies beyond the mapping, or not at a multiple of four.
    pub fn store(&mut self, at: usize, value: u32) {
        let register = self.register(at);
        // SAFETY: register() gives an aligned address in the mapping.
        unsafe { register.write_volatile(value) }
    }

    /// Reads a register.
    ///
    /// # Panics
    /// As [`store`](Self::store).
    pub fn load(&self, at: usize) -> u32 {
        let register = self.register(at);
        // SAFETY: register() gives an aligned address in the mapping.
        unsafe { register.read_volatile() }
    }

    fn register(&self, at: usize) -> NonNull<u32> {
        let lies_within = at.checked_add(size_of::<u32>()).is_some_and(|end| end <= self.length);
        assert!(at.is_multiple_of(align_of::<u32>()) && lies_within, "no register at {at}");
        // SAFETY: the offset was just checked to lie in the mapping, which begins at a page.
        unsafe { self.start.add(at).cast() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: these are the bytes that new() mapped, and nothing was borrowed from them.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;

    #[test]
    fn nothing_beyond_the_mapping_is_touched() {
        let file = File::from(memfd_create("mapping", MemfdFlags::CLOEXEC).expect("memory"));
        file.set_len(4096).expect("a page");
        let mut mapping = Mapping::new(&file, 0, 4096).expect("mapped");
        mapping.store(4092, 7);
        assert_eq!(mapping.load(4092), 7);
        for at in [4093, 4096, 4098, usize::MAX - 3, usize::MAX - 1, usize::MAX] {
            assert!(catch_unwind(|| mapping.load(at)).is_err(), "{at}");
            assert!(catch_unwind(AssertUnwindSafe(|| mapping.store(at, 0))).is_err(), "{at}");
            assert!(catch_unwind(AssertUnwindSafe(|| mapping.write(at, &[0; 8]))).is_err(), "{at}");
        }
    }
}
