//! The geometric series behind every average: yⁿ with y³² = 1/2, in the kernel's fixed point.
//!
//! Must not know: what is averaged.

/// Periods after which a contribution has halved.
pub const LOAD_AVG_PERIOD: u64 = 32;

/// The most that a sum reaches at 1024 per period: 1024 · Σ yⁿ, as the kernel's fixed point gives it (`LOAD_AVG_MAX`).
pub const LOAD_AVG_MAX: u32 = 47742;

/// The most that a sum of utilization reaches: 1024 · 1024 · Σ yⁿ, its ten bits more than others have keep what those lose
/// to whole numbers in each period. It goes beyond 1024 · [`LOAD_AVG_MAX`] where updates come at uneven parts of periods.
pub const UTIL_SUM_MAX: u32 = 47_789 << 10;

/// The most that a sum reaches just after a period began (`PELT_MIN_DIVIDER`).
pub const PELT_MIN_DIVIDER: u32 = LOAD_AVG_MAX - PERIOD;

/// Length of a period in units of 1024 ns.
pub(super) const PERIOD: u32 = 1024;

/// Bits by which 1024-based scales are shifted (`SCHED_CAPACITY_SHIFT`).
pub(super) const CAPACITY_SHIFT: u32 = 10;

/// yⁿ · 2³² for n = 0…31 (`runnable_avg_yN_inv[]`, kernel/sched/sched-pelt.h).
const Y_POWERS: [u32; LOAD_AVG_PERIOD as usize] = [
    0xffff_ffff,
    0xfa83_b2da,
    0xf525_7d14,
    0xefe4_b99a,
    0xeac0_c6e6,
    0xe5b9_06e6,
    0xe0cc_deeb,
    0xdbfb_b796,
    0xd744_fcc9,
    0xd2a8_1d91,
    0xce24_8c14,
    0xc9b9_bd85,
    0xc567_2a10,
    0xc12c_4cc9,
    0xbd08_a39e,
    0xb8fb_af46,
    0xb504_f333,
    0xb123_f581,
    0xad58_3ee9,
    0xa9a1_5ab4,
    0xa5fe_d6a9,
    0xa270_4302,
    0x9ef5_325f,
    0x9b8d_39b9,
    0x9837_f050,
    0x94f4_efa8,
    0x91c3_d373,
    0x8ea4_398a,
    0x8b95_c1e3,
    0x8898_0e80,
    0x85aa_c367,
    0x82cd_8698,
];

/// What a span of time does to a sum: alike for all sums that have reached the same point of a period.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeltSpan {
    /// How long it is, units of 1024 ns.
    pub units: u64,
    /// How many period boundaries it crosses.
    pub periods: u64,
    /// How far it reaches into the period that it ends in, units.
    pub rest: u32,
    /// What it contributes to the sum of somebody who wants one CPU.
    pub contrib: u32,
    halvings: u32,
    /// yⁿ · 2³² for the periods beside those that halve; 0 if nothing is left.
    power: u64,
}

impl PeltSpan {
    /// A span of so many units that begins `begun` units into a period.
    ///
    /// Kernel: `__accumulate_pelt_segments()`, kernel/sched/pelt.c.
    #[inline(always)]
    pub fn new(begun: u32, units: u64) -> PeltSpan {
        debug_assert!(begun < PERIOD, "{begun} units of a period of {PERIOD} have passed");
        let position = units + u64::from(begun);
        let (periods, rest) = (position / u64::from(PERIOD), (position % u64::from(PERIOD)) as u32);
        let power = match periods > LOAD_AVG_PERIOD * 63 {
            true => 0,
            false => u64::from(Y_POWERS[(periods % LOAD_AVG_PERIOD) as usize]),
        };
        let halvings = (periods / LOAD_AVG_PERIOD) as u32 % u64::BITS;
        let mut span = PeltSpan { units, periods, rest, contrib: units as u32, halvings, power };
        if periods > 0 {
            let begun = span.decay(u64::from(PERIOD - begun)) as u32;
            let whole = LOAD_AVG_MAX - span.decay(LOAD_AVG_MAX.into()) as u32 - PERIOD;
            span.contrib = begun + whole + rest;
        }
        span
    }

    /// What is left of a sum once the periods have ended: sum · yⁿ, rounded down; 0 after 2016 periods.
    ///
    /// Kernel: `decay_load()`, kernel/sched/pelt.c.
    #[inline(always)]
    pub fn decay(&self, sum: u64) -> u64 {
        ((u128::from(sum >> self.halvings) * u128::from(self.power)) >> 32) as u64
    }
}

/// `value · scale / 1024` (`cap_scale()`).
pub(super) const fn cap_scale(value: u64, scale: u64) -> u64 {
    value.wrapping_mul(scale) >> CAPACITY_SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decay_load(load: u64, periods: u64) -> u64 {
        PeltSpan::new(0, periods * u64::from(PERIOD)).decay(load)
    }

    /// What a span contributes that crosses `periods` boundaries from `first` units before one to `last` behind another.
    fn contribution(periods: u64, first: u32, last: u32) -> u32 {
        let units = (periods - 1) * u64::from(PERIOD) + u64::from(first + last);
        let span = PeltSpan::new(PERIOD - first, units);
        assert_eq!((span.periods, span.rest), (periods, last));
        span.contrib
    }

    #[test]
    fn the_table_holds_the_powers_of_y() {
        for (n, pair) in Y_POWERS.windows(2).enumerate() {
            let exact = (u64::from(pair[0]) * u64::from(Y_POWERS[1])) >> 32;
            assert!(exact.abs_diff(u64::from(pair[1])) <= 3, "y^{}", n + 1);
        }
        let last = (u64::from(Y_POWERS[31]) * u64::from(Y_POWERS[1])) >> 32;
        assert!(last.abs_diff(1 << 31) <= 2, "y^32 is a half");
    }

    #[test]
    fn thirty_two_periods_halve() {
        for load in [1_u64 << 32, 47_742, 1_024 << 20, u64::from(u32::MAX) << 20] {
            // The table's y^0 is one bit short of 1, so a unit may be lost.
            assert!((load >> 1).abs_diff(decay_load(load, 32)) <= 1 + (load >> 33));
            assert!((load >> 2).abs_diff(decay_load(load, 64)) <= 1 + (load >> 34));
        }
        assert_eq!(decay_load(1_000_000, 16), 707_106, "y^16 is the root of a half");
        assert_eq!(decay_load(LOAD_AVG_MAX.into(), 1), u64::from(PELT_MIN_DIVIDER));
    }

    #[test]
    fn nothing_is_left_in_the_end() {
        assert_eq!(decay_load(u64::MAX, 2017), 0);
        assert_eq!(decay_load(u64::MAX, 2016), 0, "63 halvings leave one bit, y^0 takes it");
        assert_eq!(decay_load(u64::MAX, 32 * 62), 2);
        assert_eq!(decay_load(u64::MAX, u64::MAX / 2048), 0);
    }

    #[test]
    fn whole_periods_add_up_to_the_maximum() {
        assert_eq!(contribution(1, 1024, 0), 1002, "a full period, one period ago");
        assert_eq!(contribution(1, 24, 100), 123);
        assert_eq!(contribution(10_000, 1024, 0), PELT_MIN_DIVIDER);
        assert_eq!(contribution(10_000, 1024, 1023), LOAD_AVG_MAX - 1);
    }

    /// The kernel's own way to `LOAD_AVG_MAX` (Documentation/scheduler/sched-pelt.c): the series in integers, until it
    /// stands still.
    #[test]
    fn the_maximum_is_where_the_series_stands_still() {
        let mut sum = 0_u64;
        for _ in 0..345 {
            sum = decay_load(sum, 1) + 1024;
        }
        assert!(sum < u64::from(LOAD_AVG_MAX));
        for _ in 345..400 {
            sum = decay_load(sum, 1) + 1024;
        }
        assert_eq!(sum, u64::from(LOAD_AVG_MAX));
    }
}
