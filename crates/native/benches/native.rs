//! How fast a kernel's own code goes: context switches a second of CPU time, on machines of several sizes, with the loads of
//! `crates/sim/benches/engine.rs`, costs on.
//!
//! `cargo bench -p fairlab-native --bench native`, and behind `--` a source (`debian:6.12`, a folder) if not Debian's 6.1, and words
//! that choose lines: those that contain them all (`-- debian:7.2 ' 40 CPUs' 'no trace'`).

#[path = "../../sim/benches/load/mix.rs"]
mod load;
#[path = "../../sim/benches/load/timed.rs"]
mod timing;

use std::sync::atomic::AtomicBool;

use fairlab_event::{DigestSink, Ns, Sink};
use fairlab_native::build::{BuildOptions, Source, build};
use fairlab_native::worker::in_worker;
use fairlab_native::{ImageFile, LoadedImage, NativeScheduler};
use fairlab_sim::{Engine, SchedulerCore};
use load::{Mix, machine};
use timing::{time_on_cpu, timed};

fn measure<C: SchedulerCore>(engine: Engine<C>, mix: Box<Mix>, simulated: Ns, traced: bool) -> String {
    let mut digest = DigestSink::default();
    timed(engine, mix, simulated, traced.then_some(&mut digest as &mut dyn Sink)).to_string()
}

fn main() {
    let words = std::env::args().skip(1).filter(|word| !word.starts_with("--"));
    let (sources, words): (Vec<String>, Vec<String>) = words.partition(|word| word.contains([':', '/']));
    let source = sources.first().cloned().unwrap_or("debian:6.1".to_string());
    let chosen = |label: &str| words.iter().all(|word| label.contains(word.as_str()));
    let options = BuildOptions::default();
    let stop = AtomicBool::new(false);
    let parsed = Source::parse(&source).expect("a source");
    let built = build(&parsed, &options, &|step, _| println!("{step}"), &stop).expect("a kernel");
    let image = ImageFile::open(&built.image()).expect("an image");
    for cpus in [4, 40, 192] {
        for (sleep, share, load) in [(100_000, 1, "sleeps of 0.1 ms"), (4_000_000, 5, "sleeps of 4 ms")] {
            for traced in [false, true] {
                let machine = machine(cpus, options.hz.into());
                let simulated = Ns(40_000_000_000 / u64::from(cpus) * share);
                let work = |image: LoadedImage, _: &mut fairlab_native::worker::Outbox| {
                    let start = time_on_cpu();
                    let core = NativeScheduler::boot(image, &machine)?;
                    let boot = Ns(time_on_cpu() - start).as_ms_f64();
                    let engine = Engine::with_core(core, machine.clone(), 1);
                    let speed = measure(engine, Mix::new(2 * cpus, cpus / 2, Ns(sleep)), simulated, traced);
                    Ok(format!("{speed}, boot {boot:.1} ms").into_bytes())
                };
                let how = if traced { "digest" } else { "no trace" };
                let label = |kernel: &str| format!("{kernel:<10} {cpus:>4} CPUs, {load:<17} {how:<9}");
                if chosen(&label(&source)) {
                    let result = in_worker(&image, &stop, work, &mut |_| ()).expect("a run");
                    println!("{} {}", label(&source), String::from_utf8_lossy(&result.unwrap_or_default()));
                }
                if !chosen(&label("v6.1")) {
                    continue;
                }
                let engine = Engine::new("v6.1".parse().expect("a kernel"), machine.clone(), 1);
                let speed = measure(engine, Mix::new(2 * cpus, cpus / 2, Ns(sleep)), simulated, traced);
                println!("{} {speed}", label("v6.1"));
            }
        }
    }
}
