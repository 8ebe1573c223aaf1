//! The pages of a CPU's buffer, from `trace_pipe_raw` into a file, while it is written.
//!
//! Must not know: what is in a page.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// `O_NONBLOCK`, the same on every architecture that matters here.
const O_NONBLOCK: i32 = 0o4000;

/// How long to wait where no buffer has anything.
const PAUSE: Duration = Duration::from_millis(5);

/// One CPU's buffer, and its copy.
pub(super) struct BufferCopy {
    from: File,
    to: File,
    page: Vec<u8>,
}

impl BufferCopy {
    /// Begins to copy.
    pub fn open(from: &Path, to: &Path, page_bytes: usize) -> io::Result<BufferCopy> {
        let from = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(from)?;
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder)?;
        }
        Ok(BufferCopy { from, to: File::create(to)?, page: vec![0; page_bytes] })
    }

    /// Copies what is there now. Returns whether there was anything.
    fn copy(&mut self) -> io::Result<bool> {
        let mut some = false;
        loop {
            let length = match self.from.read(&mut self.page) {
                Ok(0) => return Ok(some),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(some),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            // A page that is not full yet comes short: what follows it is the next one.
            self.page[length..].fill(0);
            self.to.write_all(&self.page)?;
            some = true;
        }
    }
}

/// Copies buffers until `ended`, and then what is left in them.
pub(super) fn copy_until(buffers: &mut [BufferCopy], ended: &AtomicBool) -> io::Result<()> {
    loop {
        let is_last = ended.load(Ordering::Acquire);
        let mut some = false;
        for pages in &mut *buffers {
            some |= pages.copy()?;
        }
        if is_last {
            return Ok(());
        }
        if !some {
            thread::sleep(PAUSE);
        }
    }
}
