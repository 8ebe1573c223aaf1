//! How long a sweep of 1,000 cells takes: one second of schbench on 8 CPUs, five kernels, four sizes, fifty seeds.
//!
//! `cargo bench -p fairlab-lab --bench sweep`; the bar is 60 s on two cores.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use fairlab_lab::cells::CellWorkers;
use fairlab_lab::sweep::{SweepPlan, sweep};

const SWEEP: &str = r#"
kernels = ["v5.4", "v5.10", "v6.1", "v6.6", "v6.12"]
machines = ["laptop8"]
workloads = ["schbench -m 2 -t {threads} -c 5000 -s 2000"]
seeds = 50
duration_ms = 1000
options = { threads = [2, 4, 8, 16] }
"#;

fn main() {
    let plan = SweepPlan::parse(SWEEP).expect("a plan");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for jobs in [1, 2, cores] {
        let folder = std::env::temp_dir().join(format!("fairlab-bench-sweep-{}-{jobs}", std::process::id()));
        let started = Instant::now();
        let outcome =
            sweep(&plan, None, &folder, CellWorkers::Threads(jobs), &|_| {}, &AtomicBool::new(false))
                .expect("a sweep");
        let seconds = started.elapsed().as_secs_f64();
        println!("{} cells of 1 s on {jobs} threads: {seconds:.2} s", outcome.done);
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
