//! Debian's 6.1, from its package to an image. Fetches the package once, and fails where it cannot.

use std::process::Command;
use std::sync::atomic::AtomicBool;

use fairlab_native::build::{BuildOptions, CachedKernel, Source, build};

fn built(options: &BuildOptions) -> CachedKernel {
    let source = Source::parse("debian:6.1").expect("a source");
    build(&source, options, &|_, _| {}, &AtomicBool::new(false)).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn debians_sources_become_an_image() {
    let kernel = built(&BuildOptions::default());
    let manifest = &kernel.manifest;
    assert!(manifest.release.starts_with("6.1."), "{}", manifest.release);
    assert_eq!((manifest.hz, manifest.preemption.as_str()), (250, "dynamic"));
    for (names, name) in [
        (&manifest.features, "GENTLE_FAIR_SLEEPERS"),
        (&manifest.tunables, "min_granularity_ns"),
        (&manifest.probes, "SCAN_COST"),
        (&manifest.missing, "cpuidle_enter"),
        (&manifest.config, "CONFIG_HZ=250"),
    ] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    assert!(!manifest.probes.iter().any(|probe| probe == "SE_DEADLINE"), "6.1 has no EEVDF");
    // What may return 0 and what stops are two things.
    assert!(manifest.stubs.iter().all(|stub| !manifest.missing.contains(&stub.symbol)));
    let image = std::fs::read(kernel.image()).expect("an image");
    assert_eq!(image[..6], *b"\x7fELF\x02\x01");
    let symbols = Command::new("nm").arg(kernel.image()).output().expect("nm");
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    for name in [" fl_image", " pick_next_task_fair", " select_task_rq_fair", " __switch_to_asm"] {
        assert!(symbols.lines().any(|line| line.ends_with(name)), "{name}");
    }
    // Nothing is compiled twice.
    assert_eq!(built(&BuildOptions::default()), kernel);
}
