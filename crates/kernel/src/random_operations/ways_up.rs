//! The two ways up a hierarchy (`fair/follow.rs`) lead to one state: the fast one, and the plain one of the kernel's own functions.
//!
//! Where probes are wanted, each level goes the plain way.

use super::driver::RandomOperations;
use super::mixed;
use crate::Generation;
use crate::generation::LOG;

/// Numbers from a seed.
struct SeededNumbers(u64);

impl SeededNumbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = mixed(self.0, self.0 >> 29);
        (self.0 >> 33) as usize % limit
    }
}

/// Some state of the log with up to three commits more or less, as far as their rules go together.
fn mixture(draws: &mut SeededNumbers) -> Generation {
    let merged = LOG.iter().filter(|change| change.release.is_some()).count();
    let length = draws.below(merged + 1);
    let mut mixture = Generation::prefix(length);
    for _ in 0..3 {
        let index = draws.below(merged);
        let sign = if index < length { '-' } else { '+' };
        let longer = format!("{}{sign}{}", mixture.name(), LOG[index].id());
        mixture = longer.parse().unwrap_or(mixture);
    }
    mixture
}

/// All that a way up may alter.
fn state(driver: &RandomOperations) -> String {
    let scheduler = &driver.scheduler;
    format!("{:?} {:?} {:?}", scheduler.shared.entities, scheduler.shared.cfs_rqs, scheduler.shared.groups)
}

#[test]
fn both_ways_up_lead_to_one_state() {
    for seed in 0..600 {
        let generation = mixture(&mut SeededNumbers(mixed(seed, 0x1234_5678_9abc_def1)));
        let name = generation.name().to_string();
        let [mut fast, mut plain] = [false, true].map(|probes| {
            let mut driver = RandomOperations::in_hierarchy(generation.clone(), seed);
            driver.scheduler.set_probes(probes);
            (0..12).for_each(|_| driver.spawn());
            driver
        });
        for step in 0..400 {
            fast.step();
            plain.step();
            assert!(fast.checksum == plain.checksum, "{name}, seed {seed}, step {step}: averages differ");
        }
        assert!(state(&fast) == state(&plain), "{name}, seed {seed}");
    }
}
