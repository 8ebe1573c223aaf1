//! How fast the engine goes: context switches a second of CPU time of its one thread, on machines of several sizes.
//!
//! `cargo bench -p fairlab-sim --bench engine`. The load is that of the simulators it is compared with in
//! docs/performance.md: two sleepers and half a hog a CPU, with sleeps as short as the work and with longer ones, and CPU
//! hogs alone. The time in which the threads are created, and a little more, is not measured. Words behind `--` choose
//! lines that contain them all: `cargo bench -p fairlab-sim --bench engine -- v6.6 ' 40 CPUs'`.

#[path = "load/mix.rs"]
mod load;
#[path = "load/timed.rs"]
mod timing;

use fairlab_event::{DigestSink, Ns, Sink};
use fairlab_sim::Engine;
use load::{Mix, machine};
use timing::timed;

fn measure(
    kernel: &str,
    cpus: u32,
    hz: u64,
    load: &str,
    workload: Box<Mix>,
    simulated: Ns,
    sink: Option<&mut dyn Sink>,
) {
    let label = format!(
        "{kernel} {cpus:>4} CPUs, {load:<20} {:<9}",
        if sink.is_some() { "digest" } else { "no trace" }
    );
    if !std::env::args().skip(1).filter(|word| !word.starts_with("--")).all(|word| label.contains(&word)) {
        return;
    }
    let engine = Engine::new(kernel.parse().expect("a kernel"), machine(cpus, hz), 1);
    let speed = timed(engine, workload, simulated, sink);
    println!("{label} {speed} {:>7.1} x real time", simulated.as_secs_f64() / speed.spent);
}

fn main() {
    for kernel in ["v6.5", "v6.6"] {
        for cpus in [4, 40, 192, 1024] {
            let simulated = Ns(40_000_000_000 / u64::from(cpus));
            let mix = |sleep| Mix::new(2 * cpus, cpus / 2, Ns(sleep));
            measure(kernel, cpus, 1000, "2 sleepers, 1/2 hog", mix(100_000), simulated, None);
            measure(
                kernel,
                cpus,
                1000,
                "2 sleepers, 1/2 hog",
                mix(100_000),
                simulated,
                Some(&mut DigestSink::default()),
            );
            let longer = Ns(simulated.0 * 5);
            measure(kernel, cpus, 1000, "the same, 4 ms", mix(4_000_000), longer, None);
            measure(kernel, cpus, 250, "4 ms, HZ 250", mix(4_000_000), longer, None);
            let hogs = Mix::new(0, 3 * cpus, Ns::ZERO);
            measure(kernel, cpus, 1000, "3 hogs", hogs, Ns(simulated.0 * 10), None);
        }
    }
}
