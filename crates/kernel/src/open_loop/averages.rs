//! Averages that are known, as a probe shows them: their sums go on from there.
//!
//! Must not know: traces.

use crate::entity::SeId;
use crate::pelt::{RunnableKind, SchedAvg};
use crate::scheduler::Scheduler;

/// The most that an average can be, whatever is printed: weights of many tasks.
const AVERAGE_MAX: u64 = 1 << 31;

impl Scheduler {
    /// An entity's load is known, and with it how it goes on.
    pub(crate) fn bring_entity_load(&mut self, se: SeId, load: u64) {
        let [weight, _] = self.weights_in_sums(se);
        bring_load(&mut self.se_mut(se).avg, load, weight);
    }

    /// By what an entity's load and runnable averages are more than its sums tell.
    pub(crate) fn weights_in_sums(&self, se: SeId) -> [u64; 2] {
        let weight = self.se(se).load.scaled_down().max(1);
        match self.shared.generation.pelt.runnable {
            RunnableKind::LoadWeighted => [weight; 2],
            RunnableKind::TaskCount => [weight, 1],
        }
    }
}

/// A load, of which a sum tells what `weight` is for it, is known.
pub(crate) fn bring_load(avg: &mut SchedAvg, load: u64, weight: u64) {
    let divider = u64::from(avg.divider());
    bring(&mut avg.load_avg, &mut avg.load_sum, load, divider, weight);
}

/// The same for what waits, and what is used.
pub(crate) fn bring_usage(avg: &mut SchedAvg, runnable: u64, util: u64, weight: u64) {
    let divider = u64::from(avg.divider());
    bring(&mut avg.runnable_avg, &mut avg.runnable_sum, runnable, divider, weight);
    let mut sum = u64::from(avg.util_sum);
    bring(&mut avg.util_avg, &mut sum, util, divider, 1);
    avg.util_sum = u32::try_from(sum).unwrap_or(u32::MAX);
}

/// An average is `known`: of all sums that come to it, its own becomes the one nearest to what it was.
fn bring(avg: &mut u64, sum: &mut u64, known: u64, divider: u64, weight: u64) {
    let known = known.min(AVERAGE_MAX);
    if *avg != known {
        let least = (known * divider).div_ceil(weight);
        let most = ((known + 1) * divider - 1) / weight;
        *sum = (*sum).max(least).min(most.max(least));
        *avg = known;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_average_leaves_its_sum_as_near_as_can_be() {
        let brought = |avg: u64, sum: u64, known: u64| {
            let (mut avg, mut sum) = (avg, sum);
            bring(&mut avg, &mut sum, known, 47_000, 2);
            assert_eq!((avg, sum * 2 / 47_000), (known, known));
            sum
        };
        assert_eq!(brought(3, 71_234, 3), 71_234, "what it is stays exact");
        assert_eq!(brought(3, 71_234, 2), 70_499, "the most that comes to 2");
        assert_eq!(brought(3, 71_234, 5), 117_500, "the least that comes to 5");
    }
}
