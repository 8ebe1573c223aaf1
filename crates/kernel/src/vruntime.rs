//! Virtual time: a 64-bit clock that wraps.

use std::fmt;

/// A point on a queue's virtual time line, in ns of a nice-0 task's run time.
///
/// It wraps around, so two points are compared by the sign of their difference and there is no `Ord`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Vruntime(pub u64);

impl Vruntime {
    /// Where a queue's virtual time starts: shortly before the wrap, so that wrapping is exercised early
    /// (kernel: `init_cfs_rq()`).
    pub const QUEUE_START: Vruntime = Vruntime((1_u64 << 20).wrapping_neg());

    /// Whether `self` lies before `other`.
    pub const fn is_before(self, other: Vruntime) -> bool {
        self.minus(other) < 0
    }

    /// The signed distance from `other` to `self`.
    pub const fn minus(self, other: Vruntime) -> i64 {
        self.0.wrapping_sub(other.0) as i64
    }

    /// The point `distance` later (earlier when negative).
    #[must_use]
    pub const fn plus(self, distance: i64) -> Vruntime {
        Vruntime(self.0.wrapping_add(distance as u64))
    }

    /// The later of two points (kernel: `max_vruntime()`).
    #[must_use]
    pub const fn latest(self, other: Vruntime) -> Vruntime {
        if self.is_before(other) { other } else { self }
    }

    /// The earlier of two points (kernel: `min_vruntime()`).
    #[must_use]
    pub const fn earliest(self, other: Vruntime) -> Vruntime {
        if other.is_before(self) { other } else { self }
    }
}

impl fmt::Debug for Vruntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparison_survives_the_wrap() {
        let late = Vruntime(u64::MAX - 5);
        let wrapped = late.plus(10);
        assert_eq!(wrapped, Vruntime(4));
        assert!(late.is_before(wrapped) && !wrapped.is_before(late));
        assert_eq!(wrapped.minus(late), 10);
        assert_eq!(late.latest(wrapped), wrapped);
        assert_eq!(late.earliest(wrapped), late);
        assert_eq!(Vruntime::QUEUE_START.plus(1 << 20), Vruntime(0));
    }
}
