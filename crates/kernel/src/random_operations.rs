//! Any sequence of operations, on any kernel: the state stays sound, and every rule of the change log is felt.

mod driver;
mod properties;

use fairlab_event::Digest;

use crate::Generation;
use crate::generation::{Change, Effect, Feature, LOG};
use driver::Driver;

fn mixed(checksum: u64, part: u64) -> u64 {
    checksum.rotate_left(5).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ part
}

/// Runs `steps` operations and returns the digest of all that was reported, and the checksum.
fn run(generation: Generation, seed: u64, steps: u32) -> (Digest, u64) {
    let name = generation.name().to_string();
    let mut driver = Driver::new(generation, seed);
    for _ in 0..8 {
        driver.spawn();
    }
    for step in 0..steps {
        driver.step();
        if step % 32 == 0 && driver.tasks.len() < 60 {
            driver.spawn();
        }
        driver
            .scheduler
            .check_invariants()
            .unwrap_or_else(|fault| panic!("{name}, seed {seed}, step {step}: {fault}"));
    }
    (driver.observed.digest(), driver.checksum)
}

#[test]
fn the_state_stays_sound_on_every_prefix_of_the_log() {
    for length in 0..=LOG.len() {
        run(Generation::prefix(length), length as u64, 600);
    }
}

/// Why some changes are not felt here, and which.
pub(crate) const UNFELT: &[(&str, &[&str])] = &[
    ("no balancing is driven here: see the random machines there", &["no-lb-bias", "no-cpu-load"]),
    (
        "a new task goes anywhere",
        &[
            "exec-estimate",
            "idlest-without-self",
            "idlest-allowed",
            "fork-numa-quarter",
            "fork-numa-node",
            "numa-imbalance",
            "fork-numa-affinity",
        ],
    ),
    (
        "no CPU is bigger than others, and there are no clusters",
        &[
            "asymmetric-scan",
            "asymmetric-prev-first",
            "asymmetric-cores",
            "cluster-scan",
            "cluster-candidates",
        ],
    ),
    ("the machines are too small, and tasks may use every CPU or one", &["scan-allowed", "queue-allowed"]),
    ("wakeups come after the switch", &["leaving-wakee", "idle-stamp-valid"]),
    ("the feature is off by default", &["no-sis-avg-cpu", "scan-cost-sis-prop", "no-sis-prop"]),
    (
        "it removes what was off, replaced or only called otherwise",
        &["commit-to-lag", "commit-to-eevdf", "base-slice"],
    ),
    (
        "blocked load is not aged here: see the random machines of balancing",
        &["leaf-list-children", "stalled-contribution"],
    ),
    ("above the highest frequency there is nothing to ask for", &["governor-effective"]),
    ("few CPUs are less than full, where waiting would count", &["no-util-est-boost", "boost-with-task"]),
    ("every CPU is the biggest", &["util-est-capacity", "util-est-any-capacity"]),
    ("only what another CPU reads meanwhile differs", &["util-est-flag-masked", "util-est-in-update"]),
    ("the feature is on by default before", &["util-est-rise"]),
    ("it takes a second of a real-time hog", &["no-rt-share"]),
    (
        "it takes a timer of another CPU at the right time: see the tests of bandwidth",
        &["slack-timer-stays", "refresh-signed"],
    ),
    ("it takes more than 90 runnable tasks on a CPU", &["group-runnable-wide"]),
];

/// Taking a change away alters what happens: no rule is dead, none is wired to nothing.
///
/// What changes only how domains are built, or balancing, is felt on machines of other shapes than this one: see the tests
/// there.
#[test]
fn every_modelled_change_is_felt() {
    let mut wrong = Vec::new();
    let elsewhere = |effect: &Effect| {
        matches!(
            effect,
            Effect::Domain(_)
                | Effect::Balance(_)
                | Effect::AddFeature(Feature::NiRandom | Feature::NiRate, _)
        )
    };
    let is_felt_elsewhere =
        |change: &Change| change.tracking.is_empty() && change.effects.iter().all(elsewhere);
    let modelled = |change: &Change| change.is_modelled() && !is_felt_elsewhere(change);
    for (index, change) in LOG.iter().enumerate().filter(|(_, change)| modelled(change)) {
        let after = |length, seed| run(Generation::prefix(length), seed, 2_000);
        let excused = UNFELT.iter().any(|(_, names)| names.contains(&change.name));
        let seeds = if excused { 6 } else { 100 };
        let felt = (0..seeds).any(|seed| after(index, seed) != after(index + 1, seed));
        if felt == excused {
            wrong.push(format!("{} ({}): felt {felt}, excused {excused}", change.id(), change.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
