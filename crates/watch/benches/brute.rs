//! What a watch finds beside what measuring every kernel finds: ten cases of the catalogue, quick, over the kernels of a range.
//!
//! `cargo bench -p fairlab-watch --bench brute -- [RANGE]`, by default v6.6..v6.12. Kernels are measured with 20 runs each; the watch
//! makes runs of kernels that differ until it is sure. It prints the runs of both, and each change that only one of them finds.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use fairlab_watch::answer::WatchAnswer;
use fairlab_watch::{Catalogue, Screening, WatchCase, WatchEffort, WatchSpec, WatchedLine, watch};

const CASES: [&str; 10] = [
    "buddy-and-short-slice",
    "exit-move-spawn",
    "group-weights",
    "idle-policy-slice",
    "nice-levels",
    "pipe-pair",
    "quota-burst",
    "schbench-light",
    "short-slices",
    "yielders",
];

const RUNS: usize = 20;

fn catalogue() -> Catalogue {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/catalogue"));
    std::env::set_current_dir(&folder).expect("a clone");
    let files = CASES.map(|name| PathBuf::from(format!("{name}.toml")));
    let Catalogue { cases, skipped } = Catalogue::read(&files).expect("cases");
    Catalogue { cases: cases.into_iter().map(WatchCase::quickly).collect(), skipped }
}

fn found(range: &str, screening: Screening) -> WatchAnswer {
    let stop = AtomicBool::new(false);
    let line = WatchedLine::parse(range, &stop).expect("a range");
    let spec = WatchSpec { line, catalogue: catalogue(), screening, runs_max: RUNS, first_seed: 1 };
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let effort =
        WatchEffort { jobs, crew: None, store: None, on_progress: &|_| (), tell: &|_| (), stop: &stop };
    watch(spec, effort).expect("an answer")
}

fn main() {
    let range =
        std::env::args().skip(1).find(|word| word.contains("..")).unwrap_or("v6.6..v6.12".to_string());
    let mut all = Vec::new();
    for (name, screening) in [
        ("every kernel", Screening::None),
        ("watch", Screening::Thorough),
        ("watch --quick", Screening::OneSeed),
    ] {
        let started = Instant::now();
        let answer = found(&range, screening);
        println!(
            "{name}: {} kernels, {} cases, {} runs, {:.0} s: {} changes, {} confirmed",
            answer.kernels.len(),
            answer.cases.len(),
            answer.runs,
            started.elapsed().as_secs_f64(),
            answer.findings.len(),
            answer.confirmed().count()
        );
        let keys = answer.confirmed().map(|finding| {
            let (commit, case, metric) = finding.key();
            format!("{commit} {case} {metric} {}", finding.verdict.name())
        });
        all.push((name, keys.collect::<BTreeSet<_>>()));
    }
    let (_, every) = &all[0];
    for (name, keys) in &all[1..] {
        every.difference(keys).for_each(|key| println!("not by {name}: {key}"));
        keys.difference(every).for_each(|key| println!("only by {name}: {key}"));
    }
}
