//! The plain quantities that events are made of: time, CPU, task id, priority, task name.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A point in time or a duration, in nanoseconds.
///
/// Points count from the trace's own origin (boot for recorded traces, 0 for a simulated run).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ns(pub u64);

impl Ns {
    /// Zero nanoseconds.
    pub const ZERO: Ns = Ns(0);
    /// The largest time that can be held; stands for "never".
    pub const MAX: Ns = Ns(u64::MAX);

    /// `us` microseconds.
    pub const fn from_us(us: u64) -> Ns {
        Ns(us * 1_000)
    }

    /// `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Ns {
        Ns(ms * 1_000_000)
    }

    /// `s` seconds.
    pub const fn from_secs(s: u64) -> Ns {
        Ns(s * 1_000_000_000)
    }

    /// The duration from `earlier` to `self`, or zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Ns) -> Ns {
        Ns(self.0.saturating_sub(earlier.0))
    }

    /// The sum, or [`Ns::MAX`] where it is larger.
    #[must_use]
    pub const fn saturating_add(self, other: Ns) -> Ns {
        Ns(self.0.saturating_add(other.0))
    }

    /// Seconds as a floating-point number; for display only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Milliseconds as a floating-point number; for display only.
    pub fn as_ms_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl Add for Ns {
    type Output = Ns;
    fn add(self, rhs: Ns) -> Ns {
        Ns(self.0 + rhs.0)
    }
}

impl AddAssign for Ns {
    fn add_assign(&mut self, rhs: Ns) {
        self.0 += rhs.0;
    }
}

impl Sub for Ns {
    type Output = Ns;
    fn sub(self, rhs: Ns) -> Ns {
        Ns(self.0 - rhs.0)
    }
}

impl fmt::Debug for Ns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Seconds with nine digits: `576.161450000`.
impl fmt::Display for Ns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

/// A logical CPU's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cpu(pub u32);

impl Cpu {
    /// The number as an index into per-CPU tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A task's id as the kernel's tracepoints print it: one number a thread; 0 is the idle task of any CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid(pub i32);

impl Pid {
    /// The idle task (`swapper/N`) of whichever CPU.
    pub const IDLE: Pid = Pid(0);
    /// "Not recorded": a trace without a TGID column, a sample taken at a task's exit.
    pub const UNKNOWN: Pid = Pid(-1);

    /// Whether this is the idle task.
    pub const fn is_idle(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A task's priority as tracepoints print it (`task_struct::prio`): 120 is nice 0, below 100 is real-time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prio(pub i32);

impl Prio {
    /// Nice 0, and also what the idle task prints.
    pub const DEFAULT: Prio = Prio(120);
    /// The priority of every `SCHED_DEADLINE` task.
    pub const DEADLINE: Prio = Prio(-1);

    /// The priority of nice level `nice` (−20…19).
    pub const fn from_nice(nice: i32) -> Prio {
        Prio(120 + nice)
    }

    /// The nice level, for a fair task (priority 100…139).
    pub const fn nice(self) -> Option<i32> {
        if self.0 >= 100 && self.0 < 140 { Some(self.0 - 120) } else { None }
    }
}

impl fmt::Display for Prio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A task's name: at most 15 bytes, as the kernel's `TASK_COMM_LEN` has it. Any bytes but NUL.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Comm([u8; Comm::LEN]);

impl Comm {
    /// `TASK_COMM_LEN`: 15 bytes and a NUL.
    pub const LEN: usize = 16;

    /// The first 15 bytes of `name`, up to its first NUL.
    #[inline]
    pub fn new(name: &[u8]) -> Comm {
        let name = &name[..name.len().min(Comm::LEN - 1)];
        // Readers of large traces build most names from bytes of any length: two reads that overlap spare a loop.
        let padded = match (name.first_chunk(), name.last_chunk()) {
            (Some(first), Some(last)) => {
                let behind = name.len() - size_of::<u64>();
                let [first, last] = [first, last].map(|half| u128::from(u64::from_le_bytes(*half)));
                first | last << (u8::BITS as usize * behind)
            }
            _ => name.iter().rev().fold(0, |padded, &byte| padded << u8::BITS | u128::from(byte)),
        };
        Comm::from_padded(padded.to_le_bytes())
    }

    /// The name in a buffer of the kernel's size: up to its first NUL, at most 15 bytes. Readers of large traces build
    /// most names this way, hence without a loop over the bytes.
    #[inline]
    pub const fn from_padded(bytes: [u8; Comm::LEN]) -> Comm {
        const LOW_BITS: u128 = u128::MAX / 0xff;
        let name = u128::from_le_bytes(bytes) & (u128::MAX >> 8);
        // The lowest bit set marks the first NUL byte; there is one, since the last byte is cleared.
        let nul_marks = name.wrapping_sub(LOW_BITS) & !name & (LOW_BITS << 7);
        let kept = (nul_marks & nul_marks.wrapping_neg()) - 1;
        Comm((name & (kept >> 7)).to_le_bytes())
    }

    /// The idle task's name in ftrace's output, whose table of names has no entry for pid 0.
    pub const IDLE: Comm = Comm::from_padded(*b"<idle>\0\0\0\0\0\0\0\0\0\0");

    /// The idle task's name on `cpu`: `swapper/N`.
    pub fn swapper(cpu: Cpu) -> Comm {
        Comm::from(format!("swapper/{cpu}").as_str())
    }

    /// The name without its padding.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        // Behind the name there are zeros alone.
        let padding = u128::from_le_bytes(self.0).leading_zeros() / u8::BITS;
        &self.0[..Comm::LEN - padding as usize]
    }

    /// The name as text, undecodable bytes replaced.
    pub fn to_str(&self) -> std::borrow::Cow<'_, str> {
        match std::str::from_utf8(self.as_bytes()) {
            Ok(name) => name.into(),
            Err(_) => String::from_utf8_lossy(self.as_bytes()),
        }
    }

    /// All 16 bytes, NUL-padded.
    pub const fn padded(&self) -> &[u8; Comm::LEN] {
        &self.0
    }

    /// Whether there is no name at all (group entities in `sched_place` print none).
    pub const fn is_empty(&self) -> bool {
        self.0[0] == 0
    }
}

impl From<&str> for Comm {
    fn from(name: &str) -> Comm {
        Comm::new(name.as_bytes())
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_str())
    }
}

/// As a person may see it: what a terminal would obey is escaped ([`shown`](crate::escaped)). [`to_str`](Comm::to_str) gives it as
/// it is.
impl fmt::Display for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.as_bytes();
        match std::str::from_utf8(name) {
            Ok(name) if name.bytes().all(|byte| matches!(byte, b' '..=b'~')) => f.pad(name),
            _ => f.pad(&crate::escaped::bytes(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comm_keeps_fifteen_bytes_and_stops_at_nul() {
        assert_eq!(Comm::from("kworker/u8:0-events_unbound").to_str(), "kworker/u8:0-ev");
        assert_eq!(Comm::new(b"sh\0garbage"), Comm::from("sh"));
        assert_eq!(Comm::new(b"").as_bytes(), b"");
        assert_eq!(Comm::from_padded(*b"0123456789abcdef").to_str(), "0123456789abcde");
        assert_eq!(Comm::from_padded(*b"a\x01\0\x01\0bcdefghijkl").as_bytes(), b"a\x01");
        assert_eq!(Comm::from_padded([0xff; 16]).as_bytes(), [0xff; 15]);
        for length in 0..15 {
            let mut bytes = *b"abcdefghijklmnop";
            bytes[length] = 0;
            assert_eq!(Comm::from_padded(bytes).as_bytes(), &bytes[..length]);
            assert_eq!(Comm::from_padded(bytes), Comm::new(&bytes[..length]));
        }
        assert_eq!(Comm::swapper(Cpu(191)).to_str(), "swapper/191");
    }

    #[test]
    fn names_are_escaped_where_they_are_shown() {
        let name = Comm::new(b"a\n\x1b[1m\xff\xc2\x9b");
        assert_eq!(name.to_string(), "a\\n\\x1b[1m\\xff\\u{9b}");
        assert_eq!(format!("[{:>6}]", Comm::from("b c")), "[   b c]");
    }

    #[test]
    fn time_prints_nine_digits() {
        assert_eq!(Ns(576_161_450_000).to_string(), "576.161450000");
        assert_eq!(Ns::from_ms(3).since(Ns::from_ms(5)), Ns::ZERO);
    }

    #[test]
    fn nice_levels_are_fair_priorities_only() {
        assert_eq!(Prio::from_nice(-20).nice(), Some(-20));
        assert_eq!(Prio(99).nice(), None);
        assert_eq!(Prio(140).nice(), None);
    }
}
