//! Random numbers: one root seed, and a stream of its own for each name, so that adding a task does not reshuffle
//! what the others draw.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// One stream of random numbers; the same on every machine.
#[derive(Clone, Debug)]
pub struct RandomStream(Xoshiro256PlusPlus);

impl RandomStream {
    /// The stream called `name` under the root seed `seed`.
    pub fn new(seed: u64, name: &str) -> RandomStream {
        RandomStream(Xoshiro256PlusPlus::seed_from_u64(xxh3_64_with_seed(name.as_bytes(), seed)))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `limit`; 0 when `limit` is 0. Every number is equally likely (within 2⁻⁶⁴).
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_depend_on_seed_and_name_only() {
        let draw = |seed, name| {
            (0..4)
                .map(|_| 0)
                .scan(RandomStream::new(seed, name), |s, _: i32| Some(s.bits()))
                .collect::<Vec<_>>()
        };
        assert_eq!(draw(1, "worker-0"), draw(1, "worker-0"));
        assert_ne!(draw(1, "worker-0"), draw(1, "worker-1"));
        assert_ne!(draw(1, "worker-0"), draw(2, "worker-0"));
    }

    #[test]
    fn numbers_stay_below_their_limit_and_reach_all_of_it() {
        let mut stream = RandomStream::new(7, "test");
        let mut seen = [0_u32; 5];
        for _ in 0..5_000 {
            seen[stream.below(5) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| (850..1_150).contains(&count)), "{seen:?}");
        assert_eq!(stream.below(0), 0);
    }
}
