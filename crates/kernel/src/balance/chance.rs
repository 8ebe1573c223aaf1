//! The kernel's pseudo-random numbers, of which every CPU has a sequence of its own.
//!
//! Must not know: what is decided by them.

/// State of one sequence: a combined Tausworthe generator.
///
/// Kernel: `struct rnd_state`, include/linux/prandom.h.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RndState(pub [u32; 4]);

/// What each component needs at least to have the full period.
const LEAST: [u32; 4] = [2, 8, 16, 128];

impl RndState {
    /// A sequence by number. Departs: a kernel begins its sequences by chance.
    ///
    /// Kernel: `prandom_state_selftest_seed()`, `prandom_warmup()`, lib/random32.c.
    pub fn seeded(seed: u32) -> RndState {
        let mut part = seed;
        let mut state = RndState(LEAST.map(|least| {
            part = part.wrapping_mul(69069);
            part += if part < least { least } else { 0 };
            part
        }));
        (0..10).for_each(|_| {
            state.next_u32();
        });
        state
    }

    /// Its next number.
    ///
    /// Kernel: `prandom_u32_state()`, lib/random32.c.
    pub fn next_u32(&mut self) -> u32 {
        let step = |s: u32, a: u32, b: u32, mask: u32, d: u32| ((s & mask) << d) ^ (((s << a) ^ s) >> b);
        let [s1, s2, s3, s4] = self.0;
        self.0 = [
            step(s1, 6, 13, !1, 18),
            step(s2, 2, 27, !7, 2),
            step(s3, 13, 21, !15, 7),
            step(s4, 3, 12, !127, 13),
        ];
        self.0.into_iter().fold(0, |number, part| number ^ part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's own checks of its generator (`test1`, `test2` in lib/random32.c).
    #[test]
    fn numbers_are_the_kernels() {
        for (seed, first) in [(1, 3_484_351_685), (2, 2_623_130_059), (3, 3_125_133_893), (4, 984_847_254)] {
            assert_eq!(RndState::seeded(seed).next_u32(), first, "{seed}");
        }
        for (seed, count, last) in [(931_557_656, 959, 2_975_593_782), (1_339_693_295, 876, 3_887_776_532)] {
            let mut state = RndState::seeded(seed);
            (1..count).for_each(|_| {
                state.next_u32();
            });
            assert_eq!(state.next_u32(), last, "{seed}");
        }
    }
}
