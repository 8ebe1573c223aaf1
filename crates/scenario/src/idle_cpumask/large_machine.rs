//! The large machine on which the mask's author found no regression.
//!
//! Must not know: what the mask does.

use fairlab_analysis::statistics::rivals::mmtests_mean;
use fairlab_analysis::statistics::{Better, judge, paired};

use super::{BASE, PATCHED, plan};
use crate::claim::of;
use crate::render::number;
use crate::{Bar, Bench, Claim, Plan, Published, Report, RunKey};
use fairlab_lab::{LabError, RunResult};

/// All five together.
const ALL: &str = "192 CPUs";
const WORST: &str = "what the benchmark that loses most keeps of its speed";

/// A benchmark on the large machine.
struct Large {
    name: &'static str,
    /// What stands for it.
    workload: &'static str,
    /// For how long, where it does not end by itself.
    milliseconds: u64,
    figure: fn(&RunResult) -> f64,
    unit: &'static str,
    better: Better,
}

fn metric(run: &RunResult, name: &str) -> f64 {
    run.metric(name).unwrap_or(0.0)
}

const LARGE: [Large; 5] = [
    Large {
        name: "hackbench",
        workload: "hackbench -g 10 -l 60",
        milliseconds: 2500,
        figure: |run| run.simulated_ns as f64 / 1e6,
        unit: "ms",
        better: Better::Lower,
    },
    Large {
        name: "schbench",
        workload: "schbench -m 2 -t 32 -c 3000 -s 1000 -r 1 -w 0",
        milliseconds: 2500,
        figure: |run| metric(run, "schbench_latency_us_p99"),
        unit: "us at p99",
        better: Better::Lower,
    },
    Large {
        name: "uperf",
        workload: "tbench -c 128 --client-us 10 --server-us 10 --run-ms 30",
        milliseconds: 2500,
        figure: |run| metric(run, "megabytes_per_s"),
        unit: "MB/s",
        better: Better::Higher,
    },
    Large {
        name: "sysbench mysql",
        workload: "jobs pairs -n 128 -r 20 -a 100",
        milliseconds: 40,
        figure: |run| metric(run, "throughput"),
        unit: "statements/s",
        better: Better::Higher,
    },
    Large {
        name: "kbuild",
        workload: "jobs spawn -n 192 -r 3000 -k 2",
        milliseconds: 200,
        figure: |run| metric(run, "throughput"),
        unit: "rounds/s",
        better: Better::Higher,
    },
];

/// "No regression found" on 4 sockets.
pub(super) fn conduct(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    const SEEDS: u64 = 3;
    let setting = |large: &Large| format!("{ALL}: {}", large.name);
    let plan = |large: &Large, kernel| Plan {
        machine: "xeon-4s192",
        ..plan(&setting(large), kernel, large.workload, large.milliseconds)
    };
    let plans = LARGE.iter().flat_map(|large| [BASE, PATCHED].map(|kernel| plan(large, kernel)));
    let Some(runs) = bench.watch(&plans.collect::<Vec<_>>(), 1..=SEEDS, || ())? else { return Ok(None) };
    report.heading("4 sockets, 192 CPUs");
    report.text(
        "The five benchmarks with which the patch's author found no regression. Two of them are hardly more than their wake \
         graphs here. sysbench mysql: 128 clients that compute 20 us, wake their server thread and wait while it computes 100 \
         us for the statement; neither locks nor disks. kbuild: 192 parents that each start two children of 3 ms \
         and wait for both, as make and its shells do with compilers. No programs are loaded and no files read, \
         and real compilers run longer.",
    );
    let mut rows = Vec::new();
    let mut worst = 1.0_f64;
    for large in &LARGE {
        let figures = |kernel: &'static str| -> Result<Vec<f64>, LabError> {
            let runs = runs.of(&RunKey::new(setting(large), kernel))?;
            Ok(runs.iter().map(|(run, ())| (large.figure)(run)).collect())
        };
        let (base, other) = (figures(BASE)?, figures(PATCHED)?);
        let [mean_base, mean_other] = [&base, &other].map(|side| mmtests_mean(side, large.better));
        let gain =
            if large.better == Better::Higher { mean_other / mean_base } else { mean_base / mean_other };
        worst = worst.min(gain);
        let estimate = paired(&base, &other);
        let real = estimate.p.is_some_and(|p| p < 0.05);
        let verdict = judge(&estimate, large.better, 0.05, real).words();
        rows.push(vec![
            format!("{} ({})", large.name, large.workload),
            format!("{} {}", number(mean_base), large.unit),
            format!("{} {}", number(mean_other), large.unit),
            verdict.to_string(),
        ]);
    }
    report.figures.set(WORST, RunKey::new(ALL, PATCHED), worst);
    report.keep(runs.into_runs());
    report.table(&["benchmark", BASE, "idle-cpumask-v7", "verdict, margin 5 %"], rows);
    Ok(Some(()))
}

pub(super) fn claim() -> Claim {
    Claim::new(
        "192 CPUs: no regression (nothing loses more than 5 %)",
        Published::Said("no regression found"),
        of(WORST, RunKey::new(ALL, PATCHED)),
        "times",
        Bar::AtLeast(0.95),
    )
}
