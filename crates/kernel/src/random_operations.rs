//! Any sequence of operations, on any kernel: the state stays sound, and every change of the log makes a difference (`ablation.rs`).

mod driver;
mod properties;
mod ways_up;

use fairlab_event::Digest;

use crate::Generation;
use crate::ablation::{ShownBy, before, place};
use crate::generation::{LOG, LoggedCommit};
use crate::scheduler::Scheduler;
use driver::RandomOperations;

fn mixed(checksum: u64, part: u64) -> u64 {
    checksum.rotate_left(5).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ part
}

/// Runs `steps` operations and returns the digest of all that was reported, and the checksum.
fn run(generation: Generation, seed: u64, steps: u32) -> (Digest, u64) {
    run_and_look(generation, seed, steps, |_, _| {})
}

/// As [`run`]; the state is sound after each step.
fn run_soundly(generation: Generation, seed: u64, steps: u32) -> (Digest, u64) {
    let name = generation.name().to_string();
    run_and_look(generation, seed, steps, |scheduler, step| {
        scheduler
            .check_invariants()
            .unwrap_or_else(|fault| panic!("{name}, seed {seed}, step {step}: {fault}"));
    })
}

fn run_and_look(
    generation: Generation,
    seed: u64,
    steps: u32,
    look: impl Fn(&Scheduler, u32),
) -> (Digest, u64) {
    let mut driver = RandomOperations::new(generation, seed);
    for _ in 0..8 {
        driver.spawn();
    }
    for step in 0..steps {
        driver.step();
        if step % 32 == 0 && driver.tasks.len() < 60 {
            driver.spawn();
        }
        look(&driver.scheduler, step);
    }
    (driver.observed.digest(), driver.checksum)
}

#[test]
fn the_state_stays_sound_on_every_prefix_of_the_log() {
    for length in 0..=LOG.len() {
        run_soundly(Generation::prefix(length), length as u64, 600);
    }
}

#[test]
fn every_change_of_this_place_shows() {
    let here = |change: &LoggedCommit| place(change) == Some(ShownBy::Operations);
    let without_effect = LOG.iter().enumerate().filter(|(_, change)| here(change)).filter(|(index, _)| {
        let after = Generation::prefix(index + 1);
        let differs = |before: &Generation| {
            (0..400).any(|seed| run(before.clone(), seed, 2_000) != run(after.clone(), seed, 2_000))
        };
        !before(*index).iter().any(differs)
    });
    assert_eq!(without_effect.map(|(_, change)| change.name).collect::<Vec<_>>(), Vec::<&str>::new());
}
