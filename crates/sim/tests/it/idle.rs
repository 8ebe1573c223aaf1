//! Idle states under small loads.

use fairlab_event::Ns;
use fairlab_sim::workload::pipe::PipeBench;
use fairlab_sim::{Engine, Machine};

/// Round trips a second of a pipe between two threads.
fn round_trips(machine: &str, kernel: &str, seed: u64) -> u64 {
    let machine = Machine::preset(machine).expect("a machine");
    let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine, seed);
    let words = ["-T", "-l", "2000"].map(String::from);
    engine.start(Box::new(PipeBench::parse(&words).expect("options")));
    engine.run_until(Ns::from_secs(60), &mut ());
    2_000 * 1_000_000_000 / engine.now().0
}

/// Both ends would wait for each other in deep states for ever if far timers were believed: 4,600 and 315 round trips a second.
#[test]
fn a_ping_pong_does_not_stay_in_deep_states() {
    for kernel in ["v5.10", "v6.6", "v7.2"] {
        for seed in 1..=6 {
            let laptop = round_trips("laptop8", kernel, seed);
            assert!(laptop > 50_000, "{kernel}, seed {seed}: {laptop} a second");
            let board = round_trips("hikey8", kernel, seed);
            assert!(board > 2_000, "{kernel}, seed {seed}: {board} a second");
        }
    }
}
