//! `include/linux/sched/sd_flags.h`: what a level of domains is, and what is done there.
//!
//! Must not know: which level has which flags.

use std::ops::{BitAnd, BitOr, BitOrAssign, Not};

/// Flags of a domain (`sched_domain::flags`), or of the level that a group stands for (`sched_group::flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SdFlags(u32);

/// Declares the flags once, in the kernel's order.
macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident = $bit:literal, $text:literal;)*) => {
        impl SdFlags {
            $($(#[$doc])* pub const $name: SdFlags = SdFlags(1 << $bit);)*

            /// Every flag with its name as the kernel prints it, in the kernel's order.
            const NAMES: &'static [(SdFlags, &'static str)] = &[$((SdFlags::$name, $text),)*];
        }
    };
}

flags! {
    /// Domains are balanced at all; to v5.7.
    LOAD_BALANCE = 0, "SD_LOAD_BALANCE";
    /// Balanced by a CPU that is about to go idle.
    BALANCE_NEWIDLE = 1, "SD_BALANCE_NEWIDLE";
    /// Searched at exec.
    BALANCE_EXEC = 2, "SD_BALANCE_EXEC";
    /// Searched at fork.
    BALANCE_FORK = 3, "SD_BALANCE_FORK";
    /// Searched at wakeup.
    BALANCE_WAKE = 4, "SD_BALANCE_WAKE";
    /// A wakeup may move a task to its waker.
    WAKE_AFFINE = 5, "SD_WAKE_AFFINE";
    /// CPUs of different capacity.
    ASYM_CPUCAPACITY = 6, "SD_ASYM_CPUCAPACITY";
    /// CPUs of every capacity that there is; from v5.14.
    ASYM_CPUCAPACITY_FULL = 7, "SD_ASYM_CPUCAPACITY_FULL";
    /// Threads of a core.
    SHARE_CPUCAPACITY = 8, "SD_SHARE_CPUCAPACITY";
    /// CPUs of a cluster; from v6.7.
    CLUSTER = 9, "SD_CLUSTER";
    /// CPUs that share a cache (`SD_SHARE_PKG_RESOURCES` to v6.8).
    SHARE_LLC = 10, "SD_SHARE_LLC";
    /// One balancing at a time in the whole system.
    SERIALIZE = 11, "SD_SERIALIZE";
    /// Some CPUs are preferred.
    ASYM_PACKING = 12, "SD_ASYM_PACKING";
    /// Tasks are spread over the domains of this level.
    PREFER_SIBLING = 13, "SD_PREFER_SIBLING";
    /// Groups may overlap; to v6.16, then the same as `NUMA`.
    OVERLAP = 14, "SD_OVERLAP";
    /// Several nodes.
    NUMA = 15, "SD_NUMA";
}

impl SdFlags {
    /// No flag.
    pub const EMPTY: SdFlags = SdFlags(0);

    /// Whether any flag of `other` is set.
    pub const fn has(self, other: SdFlags) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether no flag is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those that are set, in the kernel's order, with the names of v6.9 and later.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        SdFlags::NAMES.iter().filter(move |(flag, _)| self.has(*flag)).map(|(_, name)| *name)
    }

    /// As a number of `include/linux/sched/topology.h` to v5.9: with a bit for `SD_LOAD_BALANCE` or, in v5.8 and v5.9,
    /// without.
    pub fn number(self, with_load_balance: bool) -> u32 {
        // Flags of those releases in the order of their bits; SD_SHARE_POWERDOMAIN, never set here, had one as well.
        const BITS: [Option<SdFlags>; 15] = [
            Some(SdFlags::LOAD_BALANCE),
            Some(SdFlags::BALANCE_NEWIDLE),
            Some(SdFlags::BALANCE_EXEC),
            Some(SdFlags::BALANCE_FORK),
            Some(SdFlags::BALANCE_WAKE),
            Some(SdFlags::WAKE_AFFINE),
            Some(SdFlags::ASYM_CPUCAPACITY),
            Some(SdFlags::SHARE_CPUCAPACITY),
            None,
            Some(SdFlags::SHARE_LLC),
            Some(SdFlags::SERIALIZE),
            Some(SdFlags::ASYM_PACKING),
            Some(SdFlags::PREFER_SIBLING),
            Some(SdFlags::OVERLAP),
            Some(SdFlags::NUMA),
        ];
        let skipped = if with_load_balance { 0 } else { 1 };
        let set = |flag: &Option<SdFlags>| flag.is_some_and(|flag| self.has(flag));
        BITS.iter().skip(skipped).enumerate().filter(|(_, flag)| set(flag)).map(|(bit, _)| 1 << bit).sum()
    }
}

impl BitOr for SdFlags {
    type Output = SdFlags;

    fn bitor(self, other: SdFlags) -> SdFlags {
        SdFlags(self.0 | other.0)
    }
}

impl BitOrAssign for SdFlags {
    fn bitor_assign(&mut self, other: SdFlags) {
        self.0 |= other.0;
    }
}

impl BitAnd for SdFlags {
    type Output = SdFlags;

    fn bitand(self, other: SdFlags) -> SdFlags {
        SdFlags(self.0 & other.0)
    }
}

impl Not for SdFlags {
    type Output = SdFlags;

    fn not(self) -> SdFlags {
        SdFlags(!self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_the_kernel_prints() {
        let smt = SdFlags::LOAD_BALANCE
            | SdFlags::BALANCE_NEWIDLE
            | SdFlags::BALANCE_EXEC
            | SdFlags::BALANCE_FORK
            | SdFlags::WAKE_AFFINE
            | SdFlags::SHARE_CPUCAPACITY
            | SdFlags::SHARE_LLC
            | SdFlags::PREFER_SIBLING;
        assert_eq!(smt.number(true), 4783, "v5.2.1's SMT domain");
        assert_eq!((smt & !SdFlags::SHARE_CPUCAPACITY).number(true), 4655, "v5.7.14's MC domain");
        assert_eq!(SdFlags::NUMA.number(false), 0x2000, "include/linux/sched/topology.h at v5.8");
    }
}
