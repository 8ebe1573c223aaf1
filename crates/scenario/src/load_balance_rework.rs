//! The rework of load_balance() leaves tasks behind busy CPUs beside idle ones.
//!
//! Must not know: how balancing decides; it is only asked what it did.

mod beside_real;
mod real;
mod ubuntu;

use fairlab_analysis::statistics::{MARGIN, median};
use fairlab_change::Trials;
use fairlab_change::bisect::{BisectSpec, Question, bisect};
use fairlab_event::{Event, Ns, Sink};
use fairlab_lab::{LabError, RunResult, Setting};

use super::booted::Source;
use super::claim::{greatest, least, of};
use super::figures::{ByRun, Metric};
use super::passes::{PassTally, Witness};
use super::reported;
use super::runs::{Watched, mean_of};
use super::schbench_table::{SchbenchTable, side_by_side};
use super::waits::{Share, TaskWaits};
use super::{
    Bar, Bench, BesideReal, Claim, Measure, Measured, Plan, Published, Report, Reported, Row, RunKey,
    Scenario, Small,
};

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
    claims,
    booted: Some(BesideReal { conduct: ubuntu::conduct, claims: ubuntu::claims }),
    reported: Some(Reported {
        plan: |bench, kernel| plan(bench, kernel, PUBLISHED_BAD.runtime_s),
        seeds: |_| 1,
        modelled: &["v5.10", "v5.10-16b0a7a1a0af"],
        published: &[
            (
                GOOD,
                &[Some(155.0), Some(189.0), Some(216.0), Some(227.0), Some(256.0), Some(3286.0), None, None],
            ),
            (
                BAD,
                &[
                    Some(147.0),
                    Some(182.0),
                    Some(205.0),
                    Some(224.0),
                    Some(12240.0),
                    Some(13172.0),
                    None,
                    None,
                ],
            ),
        ],
        columns: &[
            ("p50, us", |runs| table_of(runs)?.figure(SchbenchTable::p50)),
            ("p75", |runs| table_of(runs)?.figure(SchbenchTable::p75)),
            ("p90", |runs| table_of(runs)?.figure(SchbenchTable::p90)),
            ("p95", |runs| table_of(runs)?.figure(SchbenchTable::p95)),
            ("p99", |runs| table_of(runs)?.figure(SchbenchTable::p99)),
            ("max", |runs| table_of(runs)?.figure(|table| table.max)),
            ("involuntary switches a second", |runs| reported::mean_of(runs, "involuntary_switches_per_s")),
            ("% of the time in which a CPU idles beside a waiting task", |runs| {
                reported::mean_of(runs, "unconserved_share").map(|share| share * 100.0)
            }),
        ],
    }),
};

/// schbench's table of the first run.
fn table_of(runs: &[RunResult]) -> Option<SchbenchTable> {
    SchbenchTable::last_of(&runs.first()?.output)
}

/// The report's run, `whole` seconds long.
fn plan(bench: &Bench<'_>, kernel: &'static str, whole: u64) -> Plan {
    Plan {
        run: RunKey::new(REPORTED, kernel),
        kernel,
        machine: "vm40",
        workload: COMMAND.to_string(),
        duration: Ns::from_secs(bench.choose(whole, 60) + 1),
        measured: Measured::FromStart,
    }
}

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
    (GOOD, false),
    (BEFORE, false),
    (BAD, true),
    ("v5.5", true),
    (NOT_YET, true),
    (MENDED, false),
    ("v5.10-16b0a7a1a0af", true),
    ("v5.10", false),
];

/// The kernels whose tables the report has.
const GOOD: &str = "v5.2";
const BAD: &str = "v5.4+0b0695f2b34a";

/// The last release without the rework; the last release without the rule for caches, and with the rule added.
const BEFORE: &str = "v5.4";
const NOT_YET: &str = "v5.9";
const MENDED: &str = "v5.9+16b0a7a1a0af";

/// The setting of the runs that the report has.
const REPORTED: &str = "the report's run";

/// The commit that the report names, and where it is looked for.
const GUILTY: &str = "0b0695f2b34a";
const SEARCHED: &str = "bisection";

const P50: &str = "p50, us";
const P75: &str = "p75, us";
const P90: &str = "p90, us";
const P95: &str = "p95, us";
const P99: &str = "p99, us";
const STACKED: &str = "workers' wakeups that wait longer than 2 ms, %";
const SLICE_US: &str = "median of the waits longer than 10 ms, us";
const INVOLUNTARY: &str = "involuntary switches a second";
const UNCONSERVED: &str = "time in which a CPU idles while a task waits elsewhere";
const NAMES_IT: &str = "whether the commit is found";

/// What tables and waits show.
const METRICS: &[Metric<Shown>] = &[
    (P50, |shown| shown.table.figure(SchbenchTable::p50)),
    (P75, |shown| shown.table.figure(SchbenchTable::p75)),
    (P90, |shown| shown.table.figure(SchbenchTable::p90)),
    (P95, |shown| shown.table.figure(SchbenchTable::p95)),
    (P99, |shown| shown.table.figure(SchbenchTable::p99)),
    (STACKED, |shown| shown.long.value().map(|share| share * 100.0)),
    (SLICE_US, |shown| shown.slice_us),
];

/// What every run counts.
const COUNTED: &[Metric<Vec<Watched<Watch>>>] = &[
    (INVOLUNTARY, |runs| mean_of(runs, "involuntary_switches_per_s")),
    (UNCONSERVED, |runs| mean_of(runs, "unconserved_share")),
];

/// Longer than any burst of wakeups takes, shorter than a slice.
const LONG_WAIT: Ns = Ns::from_ms(2);

/// A stacked worker that no CPU pulls waits longer.
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

impl Sink for Watch {
    fn event(&mut self, event: &Event<'_>) {
        self.waits.event(event);
        self.passes.event(event);
    }
}

/// What makes runs tell of their passes.
const TELLS_PASSES: &[&str] = &["lb_passes_idle_task"];

/// What runs of one kernel showed: schbench's table of the first; of all workers' waits those longer than [`LONG_WAIT`]; the
/// median of those longer than [`SLICE`], us.
#[derive(Clone, Copy, Debug)]
struct Shown {
    table: SchbenchTable,
    long: Share,
    slice_us: Option<f64>,
}

impl Shown {
    /// Of runs, one a seed, each with the waits that were seen in it.
    fn of<'a>(runs: impl IntoIterator<Item = (&'a RunResult, &'a TaskWaits)>) -> Shown {
        let (mut table, mut long, mut slices) = (None, Share::default(), Vec::new());
        for (run, waits) in runs {
            table = table.or_else(|| SchbenchTable::last_of(&run.output));
            long = long.and(waits.above(LONG_WAIT));
            slices.extend(waits.all().filter(|&wait| wait > SLICE).map(|wait| wait.0 as f64 / 1000.0));
        }
        let slice_us = (!slices.is_empty()).then(|| median(&slices));
        Shown { table: table.unwrap_or_default(), long, slice_us }
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
        plan(bench, kernel, whole)
    };
    let warm = Ns::from_secs(5);
    let Some(runs) = bench.watch(&KERNELS.map(plan), [1], || Watch::from(warm))? else { return Ok(None) };
    let shown = runs.map(|runs| Shown::of(runs.iter().map(|(run, watch)| (run, &watch.waits))));
    report.measure(&shown, METRICS);
    report.measure(&runs, COUNTED);

    report.heading("The report's run");
    report.text(format!("{COMMAND}, on vm40: 20 cores of 2 threads, HZ 1000."));
    for (kernel, published) in [(GOOD, &PUBLISHED_GOOD), (BAD, &PUBLISHED_BAD)] {
        let measured = &shown.of(&RunKey::new(REPORTED, kernel))?.table;
        report.verbatim(format!("{kernel}\n{}", side_by_side(published, measured)));
    }
    kernels_table(report, &shown)?;
    let published = |kernel: &str| match kernel {
        GOOD => Some(PUBLISHED_GOOD.p99() as f64),
        BAD => Some(PUBLISHED_BAD.p99() as f64),
        _ => None,
    };
    let row = |(run, shown): &(RunKey, Shown)| {
        Row::new(run.kernel.clone(), published(&run.kernel), Some(shown.table.p99() as f64))
    };
    report.picture("schbench's 99th percentile, us (logarithmic)", true, shown.iter().map(row).collect());
    report.text(
        "Latencies in us. \"> 2 ms\": share of workers' wakeups that waited longer. \"inv. sw./s\": involuntary switches. \
         \"unconserved\": share of time in which some CPU idled while a task waited elsewhere.",
    );
    report.keep(runs.into_runs());
    Ok(Some(()))
}

fn kernels_table(report: &mut Report, all: &ByRun<Shown>) -> Result<(), LabError> {
    let row = |(run, of_run): &(RunKey, Shown)| {
        let mut row = vec![run.kernel.to_string()];
        row.extend(of_run.table.percentiles.map(|us| us.to_string()));
        row.extend([
            of_run.table.max.to_string(),
            percent(of_run.long.value()),
            report.shown(INVOLUNTARY, run)?,
            percent(of(UNCONSERVED, run.clone()).value(&report.figures)?),
        ]);
        Ok(row)
    };
    let rows = all.iter().map(row).collect::<Result<Vec<_>, LabError>>()?;
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
    report.table(&header, rows);
    Ok(())
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_string(), |share| format!("{:.2} %", share * 100.0))
}

fn claims() -> Vec<Claim> {
    let mut claims = claims_of_report();
    claims.extend(beside_real::claims());
    claims.extend(ubuntu::claims());
    claims.push(Claim::new(
        "bisection names 0b0695f2b34a",
        Published::Said(GUILTY),
        of(NAMES_IT, RunKey::new(SEARCHED, GUILTY)),
        "",
        Bar::Above(0.0),
    ));
    claims
}

fn claims_of_report() -> Vec<Claim> {
    let reported = |metric, kernel: &'static str| of(metric, RunKey::new(REPORTED, kernel));
    let all = |metric| KERNELS.map(|(kernel, _)| reported(metric, kernel));
    let sides = |is_bad: bool| {
        let side = KERNELS.into_iter().filter(move |(_, bad)| *bad == is_bad);
        side.map(|(kernel, _)| reported(P99, kernel)).collect::<Vec<Measure>>()
    };
    let rises = |metric| reported(metric, BAD) / reported(metric, BEFORE);
    vec![
        Claim::new(
            "p50 to p95 are alike on all kernels: greatest ratio below 1.25",
            Published::Figure(1.056),
            greatest([P50, P75, P90, P95].map(|metric| greatest(all(metric)) / least(all(metric)))),
            "times",
            Bar::Below(1.25),
        ),
        Claim::new(
            "p99 is at least 10 times higher on every bad kernel than on any good one",
            Published::Figure(12240.0 / 256.0),
            least(sides(true)) / greatest(sides(false)),
            "times",
            Bar::AtLeast(10.0),
        ),
        Claim::new(
            "p99 of the bad kernel is one slice of 12 ms and at most a tick",
            Published::Figure(12240.0),
            reported(P99, BAD),
            "us",
            Bar::Between(12_000.0, 13_500.0),
        ),
        Claim::new(
            "involuntary switches: about twice as many in the report's fleet, at least 1.5 times as many here",
            Published::Figure(2.0),
            rises(INVOLUNTARY),
            "times",
            Bar::AtLeast(1.5),
        ),
        Claim::new(
            "a CPU is left idle more of the time beside waiting tasks: the share of such time rises",
            Published::Said("a higher percentage of the time"),
            rises(UNCONSERVED),
            "times",
            Bar::Above(2.0),
        ),
        Claim::new(
            "ablation: with the rule for caches of 16b0a7a1a0af on top of v5.9 the effect vanishes, p99 at most a tenth",
            Published::Nothing,
            reported(P99, MENDED) / reported(P99, NOT_YET),
            "times",
            Bar::AtMost(0.1),
        ),
    ]
}

/// All but the bisection.
#[cfg(test)]
pub(super) fn without_bisection(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    as_reported(bench, report)?;
    beside_real::conduct(bench, report)?;
    ubuntu::conduct(bench, report, Source::Recorded)?;
    report.figures.set(NAMES_IT, RunKey::new(SEARCHED, GUILTY), None);
    Ok(Some(()))
}

/// How it comes about, and which commit it is.
fn tell(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    let plan = Plan {
        run: RunKey::new("a short run", "v5.5"),
        kernel: "v5.5",
        machine: "vm40",
        workload: COMMAND.to_string(),
        duration: Ns::from_secs(8),
        measured: Measured::FromStart,
    };
    let Some(watched) = bench.measure(std::slice::from_ref(&plan), [1], TELLS_PASSES, Witness::new)? else { return Ok(None) };
    report.heading("How it comes about");
    report.text(
        "A message thread wakes its workers one after the other. The last of a burst finds no idle CPU, since the waker sits \
         on the only one left, and is queued behind a worker that will compute for a second. Its vruntime is about the \
         other's: it does not preempt. The message thread goes to sleep, and its CPU idles: it sees an \
         overloaded group and wants to move as much utilization as it has to spare. The waiting task's estimated \
         utilization is that of a CPU hog, and is more. So each pass leaves it, until the tick ends the running \
         task's slice. Since 16b0a7a1a0af \
         CPUs that share a cache count tasks instead. The longest wait of 8 s under v5.5:",
    );
    for (_, witness) in watched.into_values().flatten() {
        report.verbatim(witness.tell().unwrap_or_else(|| "No task waited.".to_string()));
    }
    let Some((id, subject)) = bisected(bench, &Plan { duration: Ns::from_secs(40), ..plan })? else {
        return Ok(None);
    };
    report.text(format!("Bisection from v5.4 to v5.5 by schbench's p99 names {id} (\"{subject}\")."));
    let names_it = f64::from(u8::from(id == GUILTY));
    report.figures.set(NAMES_IT, RunKey::new(SEARCHED, GUILTY), names_it);
    Ok(Some(()))
}

/// The commit between v5.4 and v5.5 from which on schbench's p99 is that of a slice, and its subject.
fn bisected(bench: &Bench<'_>, plan: &Plan) -> Result<Option<(String, String)>, LabError> {
    let spec = bench.spec(plan, 1)?;
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
            by_name: spec.by_name,
            time: Default::default(),
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
        let bench = Bench {
            quick: true,
            exact: false,
            warmup: None,
            jobs: 2,
            on_progress: &|_| {},
            stop: &stop,
            longest: None,
        };
        let plan = |kernel: &'static str| Plan {
            run: RunKey::new("qemu16", kernel),
            kernel,
            machine: "qemu16",
            workload: "schbench -m 2 -t 8 -c 200000 -s 1000 -r 6 -w 2".to_string(),
            duration: Ns::from_secs(6),
            measured: Measured::FromStart,
        };
        let plans = [BEFORE, BAD, NOT_YET, MENDED].map(plan);
        let watch = || Watch::from(Ns::from_secs(2));
        let runs = bench.watch(&plans, [1], watch).expect("runs").expect("not stopped");
        let shown = runs.map(|runs| Shown::of(runs.iter().map(|(run, watch)| (run, &watch.waits))));
        let stacked = |kernel: &'static str| {
            let shown = shown.of(&RunKey::new("qemu16", kernel)).expect("runs");
            shown.long.value().expect("waits")
        };
        // A worker in hundreds is stacked under the mended kernel, too, where no CPU goes idle after it.
        assert!(stacked(BEFORE) < 0.01 && stacked(MENDED) < 0.01, "{shown:?}");
        assert!(stacked(BAD) > 0.05 && stacked(NOT_YET) > 0.05, "{shown:?}");
        let bad = shown.of(&RunKey::new("qemu16", NOT_YET)).expect("runs");
        let middle = bad.slice_us.expect("some wait for a slice");
        assert!((12_000.0..13_500.0).contains(&middle), "{middle:?}");
    }
}
