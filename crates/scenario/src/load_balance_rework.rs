//! The rework of load_balance() leaves tasks behind busy CPUs beside idle ones.
//!
//! Must not know: how balancing decides; it is only asked what it did.

mod beside_real;
mod real;
mod ubuntu;

use fairlab_event::{Event, Ns};
use fairlab_kernel::Scheduler;
use fairlab_kernel::balance::BalanceNote;

use super::booted::Source;
use super::passes::{PassTally, Witness};
use super::render::number;
use super::schbench_table::{SchbenchTable, side_by_side};
use super::waits::TaskWaits;
use super::{Bar, Bench, Measured, Plan, Published, Report, Scenario, Small};
use fairlab_analysis::statistics::MARGIN;

use fairlab_lab::bisect::{BisectSpec, Question, bisect};
use fairlab_lab::{LabError, Onlooker, RunResult, Setting, Trials};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "load-balance-rework",
    about: "after the rework of load_balance(), schbench workers wait a whole slice behind others while a CPU idles",
    source: "Chris Mason, \"[PATCH] fix scheduler regression from 'sched/fair: Rework load_balance()'\", 23 October 2020",
    commit: "0b0695f2b34a (\"sched/fair: Rework load_balance()\", v5.5) brought it, \
             16b0a7a1a0af (\"sched/fair: Ensure tasks spreading in LLC during LB\", v5.10) ended it",
    pair: ["v5.4", "v5.4+0b0695f2b34a"],
    machine: "vm40",
    small: Small {
        workload: "schbench -m 2 -t 4 -c 200000 -s 1000 -r 4",
        machine: "emulated:1x4x2",
        duration: Ns::from_secs(6),
    },
    measured: "Runs are measured as schbench measures: it zeroes its histograms when its own warm-up is over (-z), as in the report.",
    conduct,
    booted: Some(ubuntu::conduct),
};

/// The report's command line.
const COMMAND: &str = "schbench -t 20 -r 0 -c 1000000 -s 1000 -i 30 -z 120";

/// The report's table of a good kernel, v5.2.
const PUBLISHED_GOOD: SchbenchTable = SchbenchTable {
    runtime_s: 1290,
    samples: 3280,
    percentiles: [155, 189, 216, 227, 256, 1510, 3132],
    counts: [1653, 808, 501, 163, 123, 16, 13],
    max: 3286,
    min: Some(21),
};

/// The report's table with 0b0695f2b34a.
const PUBLISHED_BAD: SchbenchTable = SchbenchTable {
    runtime_s: 1440,
    samples: 4480,
    percentiles: [147, 182, 205, 224, 12240, 12752, 13104],
    counts: [2261, 1116, 671, 215, 173, 22, 18],
    max: 13172,
    min: Some(21),
};

/// The kernels, and whether the report's effect is expected of them.
const KERNELS: [(&str, bool); 8] = [
    ("v5.2", false),
    ("v5.4", false),
    ("v5.4+0b0695f2b34a", true),
    ("v5.5", true),
    ("v5.9", true),
    ("v5.9+16b0a7a1a0af", false),
    ("v5.10-16b0a7a1a0af", true),
    ("v5.10", false),
];

/// Longer than any burst of wakeups takes, shorter than a slice.
const LONG_WAIT: Ns = Ns::from_ms(2);

/// A stacked worker that nobody helps waits longer.
const SLICE: Ns = Ns::from_ms(10);

/// What is watched in a run: waits and passes, from the end of the warm-up on.
struct Watch {
    waits: TaskWaits,
    passes: PassTally,
}

impl Watch {
    fn from(from: Ns) -> Watch {
        Watch { waits: TaskWaits::new("schbench", from), passes: PassTally::new(from) }
    }
}

impl Onlooker for Watch {
    fn event(&mut self, event: &Event<'_>) {
        self.waits.event(event);
    }

    fn wants_balancing(&self) -> bool {
        true
    }

    fn balanced(&mut self, note: &BalanceNote, _: &Scheduler) {
        self.passes.note(note);
    }
}

fn conduct(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    let Some(()) = as_reported(bench, report)? else { return Ok(None) };
    let Some(()) = beside_real::conduct(bench, report)? else { return Ok(None) };
    let Some(()) = ubuntu::conduct(bench, report, Source::Recorded)? else { return Ok(None) };
    tell(bench, report)
}

/// The report's own machine.
fn as_reported(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    let plan = |(kernel, bad): (&'static str, bool)| {
        let whole = if bad { PUBLISHED_BAD.runtime_s } else { PUBLISHED_GOOD.runtime_s };
        let seconds = bench.choose(whole, 60);
        Plan {
            kernel,
            machine: "vm40",
            workload: COMMAND.to_string(),
            duration: Ns::from_secs(seconds + 1),
            seed: 1,
            measured: Measured::FromStart,
        }
    };
    let plans = KERNELS.map(plan);
    let warm = Ns::from_secs(5);
    let Some(results) = bench.watch(&plans, |_| Watch::from(warm))? else { return Ok(None) };
    let table = |run: &RunResult| SchbenchTable::last_of(&run.output).unwrap_or_default();
    let tables = results.iter().map(|(run, _)| table(run)).collect::<Vec<_>>();
    let of = |kernel: &str| KERNELS.iter().position(|(name, _)| *name == kernel).unwrap_or(0);

    report.heading("The report's run");
    report.text(format!("{COMMAND}, on vm40: 20 cores of 2 threads, HZ 1000."));
    report.verbatim(format!("v5.2\n{}", side_by_side(&PUBLISHED_GOOD, &tables[of("v5.2")])));
    report.verbatim(format!(
        "v5.4+0b0695f2b34a\n{}",
        side_by_side(&PUBLISHED_BAD, &tables[of("v5.4+0b0695f2b34a")])
    ));
    let rows = results.iter().zip(&tables).map(|((run, watch), table)| {
        let metric = |name: &str| run.metric(name).map_or("-".to_string(), number);
        let mut row = vec![run.kernel.clone()];
        row.extend(table.percentiles.map(|us| us.to_string()));
        row.extend([
            table.max.to_string(),
            percent(watch.waits.above(LONG_WAIT).value()),
            metric("involuntary_switches_per_s"),
            percent(run.metric("unconserved_share")),
        ]);
        row
    });
    let header = [
        "kernel",
        "p50",
        "p75",
        "p90",
        "p95",
        "p99",
        "p99.5",
        "p99.9",
        "max",
        "> 2 ms",
        "inv. sw./s",
        "unconserved",
    ];
    report.table(&header, rows.collect());
    let published = |kernel: &str| match kernel {
        "v5.2" => Some(PUBLISHED_GOOD.p99() as f64),
        "v5.4+0b0695f2b34a" => Some(PUBLISHED_BAD.p99() as f64),
        _ => None,
    };
    let bars = KERNELS.iter().zip(&tables);
    let bars =
        bars.map(|((kernel, _), table)| Bar::new(*kernel, published(kernel), Some(table.p99() as f64)));
    report.picture("schbench's 99th percentile, us (logarithmic)", true, bars.collect());
    report.text(
        "Latencies in us. \"> 2 ms\": share of workers' wakeups that waited longer. \"inv. sw./s\": involuntary switches. \
         \"unconserved\": share of time in which some CPU idled while a task waited elsewhere.",
    );
    claims_of_report(report, &results, &tables, of);
    report.keep(results.into_iter().map(|(run, _)| run));
    Ok(Some(()))
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_string(), |share| format!("{:.2} %", share * 100.0))
}

fn claims_of_report(
    report: &mut Report,
    results: &[(RunResult, Watch)],
    tables: &[SchbenchTable],
    of: impl Fn(&str) -> usize,
) {
    let sides = |bad: bool| {
        KERNELS.iter().zip(tables).filter(move |((_, is_bad), _)| *is_bad == bad).map(|(_, table)| table)
    };
    let alike = (0..4).map(|index| {
        let all = tables.iter().map(|table| table.percentiles[index] as f64);
        let (least, most) =
            all.fold((f64::MAX, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)));
        most / least
    });
    let alike = alike.fold(1.0, f64::max);
    report.claim(
        "p50 to p95 are alike on all kernels: greatest ratio below 1.25",
        Published::Figure(1.056),
        Some(alike),
        "times",
        |ratio| ratio < 1.25,
    );
    let worst_good = sides(false).map(SchbenchTable::p99).max().unwrap_or(0);
    let best_bad = sides(true).map(SchbenchTable::p99).min().unwrap_or(0);
    let ratio = (worst_good > 0).then(|| best_bad as f64 / worst_good as f64);
    report.claim(
        "p99 is at least 10 times higher on every bad kernel than on any good one",
        Published::Figure(12240.0 / 256.0),
        ratio,
        "times",
        |ratio| ratio >= 10.0,
    );
    let bad = &tables[of("v5.4+0b0695f2b34a")];
    let one_slice = |us: f64| (12_000.0..=13_500.0).contains(&us);
    report.claim(
        "p99 of the bad kernel is one slice of 12 ms and at most a tick",
        Published::Figure(12240.0),
        Some(bad.p99() as f64),
        "us",
        one_slice,
    );
    let metric = |kernel: &str, name: &str| results[of(kernel)].0.metric(name);
    let ratio_of = |name: &str| Some(metric("v5.4+0b0695f2b34a", name)? / metric("v5.4", name)?.max(1e-12));
    report.claim(
        "involuntary switches: about twice as many in the report's fleet, at least 1.5 times as many here",
        Published::Figure(2.0),
        ratio_of("involuntary_switches_per_s"),
        "times",
        |ratio| ratio >= 1.5,
    );
    report.claim(
        "a CPU is left idle more of the time beside waiting tasks: the share of such time rises",
        Published::Said("a higher percentage of the time"),
        ratio_of("unconserved_share"),
        "times",
        |ratio| ratio > 2.0,
    );
    let vanishes = tables[of("v5.9+16b0a7a1a0af")].p99() as f64 / tables[of("v5.9")].p99() as f64;
    report.claim(
        "ablation: with the rule for caches of 16b0a7a1a0af on top of v5.9 the effect vanishes, p99 at most a tenth",
        Published::Nothing,
        Some(vanishes),
        "times",
        |ratio| ratio <= 0.1,
    );
}

/// How it comes about, and which commit it is.
fn tell(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    let plan = Plan {
        kernel: "v5.5",
        machine: "vm40",
        workload: COMMAND.to_string(),
        duration: Ns::from_secs(8),
        seed: 1,
        measured: Measured::FromStart,
    };
    let Some(watched) = bench.watch(std::slice::from_ref(&plan), |_| Witness::new())? else {
        return Ok(None);
    };
    report.heading("How it comes about");
    report.text(
        "A message thread wakes its workers one after the other. The last of a burst finds no idle CPU, since the waker sits \
         on the only one left, and is queued behind a worker that will compute for a second. Its vruntime is about the \
         other's: it does not preempt. The message thread goes to sleep, and its CPU idles: it sees an overloaded group and \
         wants to move utilization, as much as it has to spare; the waiting task's estimated utilization is that of a CPU \
         hog and more than that, so each pass leaves it, until the tick ends the running one's slice. Since 16b0a7a1a0af \
         CPUs that share a cache count tasks instead. The longest wait of 8 s under v5.5:",
    );
    for (_, witness) in watched {
        report.verbatim(witness.tell().unwrap_or_else(|| "No task waited.".to_string()));
    }
    let Some((id, subject)) = bisected(bench, &Plan { duration: Ns::from_secs(40), ..plan })? else {
        return Ok(None);
    };
    report.text(format!("Bisection from v5.4 to v5.5 by schbench's p99 names {id} (\"{subject}\")."));
    report.claim(
        "bisection names 0b0695f2b34a",
        Published::Said("0b0695f2b34a"),
        Some(f64::from(u8::from(id == "0b0695f2b34a"))),
        "",
        |found| found > 0.0,
    );
    Ok(Some(()))
}

/// The commit between v5.4 and v5.5 from which on schbench's p99 is that of a slice, and its subject.
fn bisected(bench: &Bench<'_>, plan: &Plan) -> Result<Option<(String, String)>, LabError> {
    let spec = bench.spec(plan)?;
    let spec = BisectSpec {
        good: "v5.4".parse()?,
        bad: "v5.5".parse()?,
        question: Question::parse("schbench_latency_us_p99 > 5ms")?,
        setting: Setting {
            machine_name: spec.machine.name.clone(),
            machine: spec.machine,
            workload: spec.workload,
            warmup: spec.warmup,
            duration: spec.duration,
            first_seed: spec.seed,
        },
        margin: MARGIN,
        error: 0.01,
        runs_max: 40,
    };
    let mut trials = Trials::new(&spec.setting, bench.jobs, bench.on_progress, bench.stop);
    let found = bisect(&spec, &mut trials)?;
    if found.stopped {
        return Ok(None);
    }
    let step = found.first_bad().and_then(|crossing| crossing.steps.last());
    let none = || ("none".to_string(), "none".to_string());
    Ok(Some(step.map_or_else(none, |step| (step.id(), step.subject()))))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// The effect comes with the rule and goes with it, on the size of the recordings.
    #[test]
    fn workers_wait_for_a_slice_only_where_utilization_is_balanced_within_a_cache() {
        let stop = AtomicBool::new(false);
        let bench =
            Bench { quick: true, exact: false, warmup: None, jobs: 2, on_progress: &|_| {}, stop: &stop };
        let plan = |kernel: &'static str| Plan {
            kernel,
            machine: "qemu16",
            workload: "schbench -m 2 -t 8 -c 200000 -s 1000 -r 6 -w 2".to_string(),
            duration: Ns::from_secs(6),
            seed: 1,
            measured: Measured::FromStart,
        };
        let plans = ["v5.4", "v5.4+0b0695f2b34a", "v5.9", "v5.9+16b0a7a1a0af"].map(plan);
        let results =
            bench.watch(&plans, |_| Watch::from(Ns::from_secs(2))).expect("runs").expect("not stopped");
        let shares = results.iter().map(|(_, watch)| watch.waits.above(LONG_WAIT).value().expect("waits"));
        let shares = shares.collect::<Vec<_>>();
        // A worker in hundreds is stacked under the mended kernel, too, where no CPU goes idle after it.
        assert!(shares[0] < 0.01 && shares[3] < 0.01, "{shares:?}");
        assert!(shares[1] > 0.05 && shares[2] > 0.05, "{shares:?}");
        let mut pool = beside_real::Pool::default();
        pool.add(&results[2].1.waits);
        let mode = pool.slice_us().expect("some wait for a slice");
        assert!((12_000.0..13_500.0).contains(&mode), "{mode:?}");
    }
}
