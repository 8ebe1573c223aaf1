//! Load weights and the fixed-point division by them.

/// Scaled-down weight of a nice-0 task (`NICE_0_LOAD >> SCHED_FIXEDPOINT_SHIFT`).
pub const NICE_0_WEIGHT: u64 = 1024;

/// Scaled-down weight of a `SCHED_IDLE` task (`WEIGHT_IDLEPRIO`).
pub const IDLE_POLICY_WEIGHT: u64 = 3;

/// Bits by which weights are scaled up on 64-bit kernels (`SCHED_FIXEDPOINT_SHIFT`).
const FIXEDPOINT_SHIFT: u32 = 10;

/// Scaled-up weight of a nice-0 task (`NICE_0_LOAD`).
pub(crate) const UNIT: u64 = NICE_0_WEIGHT << FIXEDPOINT_SHIFT;

/// Bits of the inverse weight's fixed point.
const WMULT_SHIFT: u32 = 32;

const WMULT_CONST: u64 = 0xffff_ffff;

/// Weights of nice −20…19 (kernel: `sched_prio_to_weight[]`): each step is about 1.25.
pub const NICE_WEIGHTS: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121,
    2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29,
    23, 18, 15,
];

/// 2^32 / weight of nice −20…19, rounded as the kernel's table is (kernel: `sched_prio_to_wmult[]`).
const NICE_INVERSE_WEIGHTS: [u32; 40] = [
    48388,
    59856,
    76040,
    92818,
    118_348,
    147_320,
    184_698,
    229_616,
    287_308,
    360_437,
    449_829,
    563_644,
    704_093,
    875_809,
    1_099_582,
    1_376_151,
    1_717_300,
    2_157_191,
    2_708_050,
    3_363_326,
    4_194_304,
    5_237_765,
    6_557_202,
    8_165_337,
    10_153_587,
    12_820_798,
    15_790_321,
    19_976_592,
    24_970_740,
    31_350_126,
    39_045_157,
    49_367_440,
    61_356_676,
    76_695_844,
    95_443_717,
    119_304_647,
    148_102_320,
    186_737_708,
    238_609_294,
    286_331_153,
];

const IDLE_POLICY_INVERSE_WEIGHT: u32 = 1_431_655_765;

/// A weight with its inverse (`struct load_weight`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadWeight {
    /// Scaled up by 1024, as in `load.weight` of a 64-bit kernel.
    weight: u64,
    /// Without those bits: it is asked for more often than it changes.
    scaled_down: u64,
    /// From the kernel's table for tasks; 0 means "divide when it is needed", as for queues and groups.
    inverse: u32,
}

impl LoadWeight {
    /// No weight: an empty queue.
    pub const ZERO: LoadWeight = LoadWeight::new(0, 0);

    const fn new(weight: u64, inverse: u32) -> LoadWeight {
        let scaled_down = weight >> FIXEDPOINT_SHIFT;
        let scaled_down = if weight != 0 && scaled_down < 2 { 2 } else { scaled_down };
        LoadWeight { weight, scaled_down, inverse }
    }

    /// The weight of a fair task of nice level `nice` (−20…19).
    pub const fn of_nice(nice: i32) -> LoadWeight {
        assert!(nice >= -20 && nice <= 19, "nice level out of range");
        let index = (nice + 20) as usize;
        LoadWeight::new((NICE_WEIGHTS[index] as u64) << FIXEDPOINT_SHIFT, NICE_INVERSE_WEIGHTS[index])
    }

    /// The weight of a `SCHED_IDLE` task.
    pub const fn of_idle_policy() -> LoadWeight {
        LoadWeight::new(IDLE_POLICY_WEIGHT << FIXEDPOINT_SHIFT, IDLE_POLICY_INVERSE_WEIGHT)
    }

    /// The weight without the kernel's 10 extra bits; never below 2 unless there is none (`scale_load_down()`).
    pub const fn scaled_down(self) -> u64 {
        self.scaled_down
    }

    /// A weight in the kernel's scaled-up units, its inverse to be taken when needed (`update_load_set()`).
    pub const fn from_raw(weight: u64) -> LoadWeight {
        LoadWeight::new(weight, 0)
    }

    /// A weight in scaled-down units (nice 0 is 1024).
    pub const fn from_scaled_down(weight: u64) -> LoadWeight {
        LoadWeight::from_raw(weight << FIXEDPOINT_SHIFT)
    }

    /// The weight in the kernel's scaled-up units (`load.weight`).
    pub const fn raw(self) -> u64 {
        self.weight
    }

    /// Adds another's weight (`update_load_add()`); the inverse is then taken again.
    pub const fn add(&mut self, other: LoadWeight) {
        *self = LoadWeight::from_raw(self.weight + other.weight);
    }

    /// Takes another's weight away (`update_load_sub()`).
    pub const fn subtract(&mut self, other: LoadWeight) {
        *self = LoadWeight::from_raw(self.weight - other.weight);
    }

    /// 2^32 / weight as the kernel rounds it (`__update_inv_weight()`).
    const fn inverse(self) -> u64 {
        if self.inverse != 0 {
            return self.inverse as u64;
        }
        match self.scaled_down() {
            0 => WMULT_CONST,
            weight if weight >= WMULT_CONST => 1,
            weight => WMULT_CONST / weight,
        }
    }

    /// Whether virtual time is run time.
    pub const fn is_nice_0(self) -> bool {
        self.weight == UNIT
    }

    /// Virtual time of `delta` ns of run time by the whole weight: `delta · 2^20 / load.weight`, truncated once.
    ///
    /// Kernel: `calc_delta_fair()` from v7.1 (db4551e2ba34).
    pub const fn virtual_time_exact(self, delta: u64) -> u64 {
        match delta.checked_mul(UNIT) {
            _ if self.is_nice_0() => delta,
            Some(product) => product / self.weight,
            None => (delta as u128 * UNIT as u128 / self.weight as u128) as u64,
        }
    }

    /// Virtual time of `delta` ns of run time: `delta · 1024 / weight`; exact for nice 0.
    ///
    /// Kernel: `calc_delta_fair()`, kernel/sched/fair.c.
    pub const fn virtual_time(self, delta: u64) -> u64 {
        if self.is_nice_0() {
            return delta;
        }
        calc_delta(delta, NICE_0_WEIGHT, self)
    }
}

/// `delta · weight / load` in the kernel's fixed point, which *truncates*: the result lies slightly below the quotient.
///
/// `weight` is scaled down.
///
/// Kernel: `__calc_delta()`, kernel/sched/fair.c. The factor is kept within 32 bits, each bit shifted out of it is
/// taken off the final shift.
pub const fn calc_delta(delta: u64, weight: u64, load: LoadWeight) -> u64 {
    let mut shift = WMULT_SHIFT;
    let mut factor = weight;
    let excess = 32 - ((factor >> 32) as u32).leading_zeros();
    shift -= excess;
    factor = (factor >> excess) * load.inverse();
    let excess = 32 - ((factor >> 32) as u32).leading_zeros();
    shift -= excess;
    factor >>= excess;
    ((delta as u128 * factor as u128) >> shift) as u64
}

impl LoadWeight {
    /// The share of `delta` that falls to `self` on a queue of total weight `queue` (`__calc_delta(delta, se, cfs_rq)`).
    pub const fn share_of(self, delta: u64, queue: LoadWeight) -> u64 {
        calc_delta(delta, self.scaled_down(), queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverse_weights_are_two_to_the_32_over_weight() {
        for (weight, inverse) in NICE_WEIGHTS.iter().zip(NICE_INVERSE_WEIGHTS) {
            let exact = (1_u64 << 32) / u64::from(*weight);
            assert!(exact.abs_diff(u64::from(inverse)) <= 1, "weight {weight}: {inverse} against {exact}");
        }
    }

    #[test]
    fn nice_zero_is_the_identity() {
        for delta in [0, 1, 999, 4_000_000, u64::from(u32::MAX) * 7] {
            assert_eq!(LoadWeight::of_nice(0).virtual_time(delta), delta);
        }
    }

    /// Values of `sched_stat_runtime` printed by Linux 5.10 for niced spinners: vruntime grows by the truncated product.
    #[test]
    fn the_product_is_truncated_as_the_kernel_truncates_it() {
        let product = |nice, delta| LoadWeight::of_nice(nice).virtual_time(delta);
        assert_eq!(product(10, 4_000_000), 37_236_363);
        assert_eq!(product(19, 1_000_000), 68_266_666);
        assert_eq!(product(-20, 3_000_000), 34_609);
        assert!(product(5, 3_000_000) <= 3_000_000 * 1024 / 335);
    }

    #[test]
    fn a_queue_shares_a_period_by_weight() {
        let mut queue = LoadWeight::of_nice(0);
        queue.add(LoadWeight::of_nice(0));
        assert_eq!(LoadWeight::of_nice(0).share_of(24_000_000, queue), 11_999_994);
        queue.subtract(LoadWeight::of_nice(0));
        assert_eq!(queue.scaled_down(), 1024);
        assert_eq!(LoadWeight::ZERO.scaled_down(), 0);
    }

    #[test]
    fn large_products_do_not_overflow() {
        let heavy = LoadWeight::of_nice(-20);
        let year = 365 * 24 * 3600 * 1_000_000_000_u64;
        assert!(LoadWeight::of_idle_policy().virtual_time(year) > year * 340);
        assert!(heavy.virtual_time(year) < year / 86);
    }
}
