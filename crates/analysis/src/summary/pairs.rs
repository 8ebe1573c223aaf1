//! Which tasks follow one another on CPUs most often.
//!
//! Must not know: why.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use fairlab_event::IdHasher;

/// Counts pairs of tasks in bounded memory.
///
/// When there are too many, the rarest are forgotten (lossy counting, Manku and Motwani 2002). A forgotten pair that comes back
/// begins again. So a count may be too low by at most [`floor`](Pairs::floor).
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs {
    counts: HashMap<(u32, u32), LossyCount, BuildHasherDefault<IdHasher>>,
    floor: u64,
}

#[derive(Clone, Copy, Debug)]
struct LossyCount {
    counted: u64,
    /// How often it may have occurred before it was counted.
    missed: u64,
}

/// How many pairs are counted at once.
const PAIRS_MAX: usize = 1 << 16;

impl Pairs {
    pub(super) fn count(&mut self, pair: (u32, u32)) {
        self.counts.entry(pair).or_insert(LossyCount { counted: 0, missed: self.floor }).counted += 1;
        while self.counts.len() > PAIRS_MAX {
            self.floor += 1;
            let floor = self.floor;
            self.counts.retain(|_, count| count.counted + count.missed > floor);
        }
    }

    /// How much too low a count may be.
    pub(super) const fn floor(&self) -> u64 {
        self.floor
    }

    /// The most frequent pairs, at most `limit`; of equals the first.
    pub(super) fn top(&self, limit: usize) -> Vec<((u32, u32), u64)> {
        let mut pairs: Vec<_> = self.counts.iter().map(|(&pair, count)| (pair, count.counted)).collect();
        pairs.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(&other.0)));
        pairs.truncate(limit);
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_pairs_survive_any_number_of_rare_ones() {
        let mut pairs = Pairs::default();
        for round in 0..200_000 {
            pairs.count((round, 7));
            if round % 2 == 0 {
                pairs.count((1, 2));
            }
        }
        assert!(pairs.counts.len() <= PAIRS_MAX);
        let [(pair, count)] = pairs.top(1)[..] else { panic!("a pair") };
        assert_eq!(pair, (1, 2));
        assert!(count <= 100_000 && count + pairs.floor() >= 100_000, "{count} {}", pairs.floor());
    }
}
