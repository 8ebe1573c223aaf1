//! Messages of a fixed length through pipes and sockets.
//!
//! Must not know: what they say.

use rustix::fd::OwnedFd;
use rustix::io::{Errno, read, write};

/// Takes a whole message; `false` where the other end is closed.
pub(crate) fn receive(from: &OwnedFd, message: &mut [u8]) -> Result<bool, Errno> {
    let mut done = 0;
    while done < message.len() {
        match read(from, &mut message[done..]) {
            Ok(0) => return Ok(false),
            Ok(some) => done += some,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Hands on a whole message.
pub(crate) fn send(to: &OwnedFd, message: &[u8]) -> Result<(), Errno> {
    let mut done = 0;
    while done < message.len() {
        match write(to, &message[done..]) {
            Ok(some) => done += some,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
