//! How fast a CPU is, and what that does to a time.

use fairlab_event::Ns;

/// The speed of a biggest CPU at its highest frequency: capacity times frequency, each a part of 1024.
pub const FULL_SPEED: u64 = 1024 * 1024;

/// `time` × `by` / `of`, rounded up.
#[inline]
pub fn scale(time: Ns, by: u64, of: u64) -> Ns {
    if by == of { time } else { scale_up(time, by, of) }
}

#[cold]
fn scale_up(time: Ns, by: u64, of: u64) -> Ns {
    Ns((u128::from(time.0) * u128::from(by)).div_ceil(u128::from(of)) as u64)
}
