//! The scenario under Ubuntu's kernels, release after release, beside the modelled ones.
//!
//! Must not know: what the report says.

use fairlab_event::Ns;

use super::beside_real::Pool;
use super::percent;
use crate::booted::{Situation, Source, UbuntuKernel, boot_all, run_modelled};
use crate::schbench_table::SchbenchTable;
use crate::waits::{Share, TaskWaits};
use crate::{Bar, Bench, Published, Report};
use fairlab_lab::{LabError, RunResult};

/// The report's workload in the size that was recorded.
const SITUATION: Situation = Situation {
    machine: "emulated:1x4x2",
    workload: "schbench -m 2 -t 4 -c 200000 -s 1000 -r 16 -w 2",
    around: "",
    duration: Ns::from_secs(20),
};

/// schbench's warm-up there.
const WARM_UP: Ns = Ns::from_secs(2);

/// What is expected of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Good,
    /// The last worker of each burst is stacked.
    Bad,
    /// A few are.
    Some,
}

/// What one boot showed: schbench's table; of workers' waits those longer than 2 ms; the median of those longer than 10 ms, us.
#[derive(Clone, Copy, Debug)]
struct Shown {
    table: SchbenchTable,
    long: Share,
    slice_us: Option<f64>,
}

struct Row {
    kernel: UbuntuKernel,
    expected: Expected,
    /// One boot each, in November 2026.
    recorded: Shown,
}

const fn row(
    (release, kernel): (&'static str, &'static str),
    expected: Expected,
    (samples, percentiles, max): (u64, [u64; 7], u64),
    (some, all): (u64, u64),
    slice_us: Option<f64>,
) -> Row {
    let table = SchbenchTable { runtime_s: 16, samples, percentiles, counts: [0; 7], max, min: None };
    let recorded = Shown { table, long: Share { some, all }, slice_us };
    Row { kernel: UbuntuKernel { release, kernel, hz: 250 }, expected, recorded }
}

const ROWS: [Row; 8] = [
    row(("5.3", "v5.3"), Expected::Good, (494, [37, 49, 69, 77, 85, 89, 108], 108), (0, 488), None),
    row(("5.4", "v5.4"), Expected::Good, (491, [35, 47, 65, 74, 106, 106, 138], 138), (0, 488), None),
    row(
        ("5.6", "v5.6"),
        Expected::Bad,
        (494, [37, 50, 94, 13_648, 15_664, 15_952, 16_016], 16_004),
        (48, 488),
        Some(13_754.0),
    ),
    row(
        ("5.8", "v5.8"),
        Expected::Bad,
        (493, [37, 48, 119, 13_328, 15_728, 15_824, 18_208], 18_227),
        (47, 488),
        Some(13_473.0),
    ),
    row(("5.10", "v5.10"), Expected::Good, (493, [36, 47, 66, 71, 78, 85, 843], 843), (0, 488), None),
    row(("5.11", "v5.11"), Expected::Good, (491, [34, 47, 65, 70, 89, 725, 763], 763), (0, 488), None),
    row(("5.13", "v5.13"), Expected::Good, (492, [34, 44, 61, 66, 71, 71, 72], 72), (0, 488), None),
    row(
        ("5.15", "ubuntu-5.15"),
        Expected::Some,
        (493, [47, 53, 67, 73, 2660, 14_640, 15_568], 15_553),
        (5, 488),
        Some(14_779.0),
    ),
];

/// Real kernels beside modelled ones.
pub(super) fn conduct(
    bench: &Bench<'_>,
    report: &mut Report,
    source: Source,
) -> Result<Option<()>, LabError> {
    let Some(real) = real(bench, report, source)? else { return Ok(None) };
    let seeds = bench.choose(5, 2);
    let watched = run_modelled(bench, &ROWS.map(|row| row.kernel), SITUATION, seeds, watch)?;
    let Some(watched) = watched else { return Ok(None) };
    let modelled = watched.chunks(seeds as usize).map(shown).collect::<Vec<_>>();
    tell(report, source, seeds, &real, &modelled);
    claims(report, &real, &modelled);
    report.keep(watched.into_iter().map(|(run, _)| run));
    Ok(Some(()))
}

/// What the kernels show: written down, or booted now.
fn real(bench: &Bench<'_>, report: &mut Report, source: Source) -> Result<Option<Vec<Shown>>, LabError> {
    if source == Source::Recorded {
        return Ok(Some(ROWS.iter().map(|row| row.recorded).collect()));
    }
    let found = boot_all(bench, &ROWS.map(|row| row.kernel), SITUATION, report, watch)?;
    let Some(found) = found else { return Ok(None) };
    let all = found.chunks(1).map(shown).collect();
    report.keep(found.into_iter().map(|(run, _)| run));
    Ok(Some(all))
}

fn watch() -> TaskWaits {
    TaskWaits::new("schbench", WARM_UP)
}

/// The table is that of the first run, the others are of all.
fn shown(runs: &[(RunResult, TaskWaits)]) -> Shown {
    let mut pool = Pool::default();
    runs.iter().for_each(|(_, waits)| pool.add(waits));
    let table = runs.first().and_then(|(run, _)| SchbenchTable::last_of(&run.output));
    Shown { table: table.unwrap_or_default(), long: pool.long, slice_us: pool.slice_us() }
}

fn tell(report: &mut Report, source: Source, seeds: u64, real: &[Shown], modelled: &[Shown]) {
    report.heading("Under Ubuntu's kernels");
    let command = UbuntuKernel { release: "RELEASE", ..ROWS[0].kernel }.command(SITUATION);
    report.text(format!(
        "{}, and what the model does on the same emulated machine: 8 CPUs (cores of 2 threads) in turn, HZ 250, high-resolution \
         timers, `{command}`. \"> 2 ms\": of workers' wakeups; \"middle\": the median of the waits longer than 10 ms, us; \
         modelled: of {seeds} seeds, the table of the first. Ticks of 4 ms let a stacked worker wait for 8 to 16 ms, evenly spread: \
         a slice of 12 ms ends at the next tick after it, and began before the wakeup. What is below a tick is the emulated work of the kernel, \
         which the scheduler does not decide. Of 5.15 the model said before it was booted that waits of a slice come back, for fewer workers. How far \
         one boot tells: others, by a program of a few instructions more or less, had 11.5 % on 5.6, 11.1 % on 5.8 and 2.5 % on 5.15, and 1.8 % there with \
         SIS_UTIL switched off (`--set NO_SIS_UTIL`).",
        source.when("load-balance-rework")
    ));
    let mut rows = Vec::new();
    for ((row, real), modelled) in ROWS.iter().zip(real).zip(modelled) {
        for (who, shown) in [("real", real), ("modelled", modelled)] {
            let mut cells = vec![format!("{} {who}", row.kernel.release), shown.table.samples.to_string()];
            cells.extend(shown.table.percentiles.map(|us| us.to_string()));
            let middle = shown.slice_us.map_or("-".to_string(), |us| format!("{us:.0}"));
            cells.extend([shown.table.max.to_string(), percent(shown.long.value()), middle]);
            rows.push(cells);
        }
    }
    let header =
        ["kernel", "samples", "p50", "p75", "p90", "p95", "p99", "p99.5", "p99.9", "max", "> 2 ms", "middle"];
    report.table(&header, rows);
    let bars = ROWS.iter().zip(real).zip(modelled).map(|((row, real), modelled)| {
        Bar::new(row.kernel.release, Some(real.table.p99() as f64), Some(modelled.table.p99() as f64))
    });
    report.picture(
        "99th percentile, us: Ubuntu's kernels (\"published\") beside the model (logarithmic)",
        true,
        bars.collect(),
    );
}

fn claims(report: &mut Report, real: &[Shown], modelled: &[Shown]) {
    let order = |shown: &[Shown]| {
        let p99 = |expected: Expected| {
            let of = ROWS.iter().zip(shown).filter(move |(row, _)| row.expected == expected);
            of.map(|(_, shown)| shown.table.p99() as f64)
        };
        p99(Expected::Bad).fold(f64::INFINITY, f64::min) / p99(Expected::Good).fold(1.0, f64::max)
    };
    report.claim(
        "Ubuntu's kernels: bad ones at least 10 times above good ones at p99, the same ones",
        Published::Figure(order(real)),
        Some(order(modelled)),
        "times",
        |ratio| ratio >= 10.0 && order(real) >= 10.0,
    );
    let share = |shown: &Shown| shown.long.value().map(|share| share * 100.0);
    let stacking = ROWS.iter().zip(real).zip(modelled).filter(|((row, _), _)| row.expected != Expected::Good);
    for ((row, real), modelled) in stacking {
        let release = row.kernel.release;
        if row.expected == Expected::Bad {
            let stacked = share(real).unwrap_or(0.0);
            report.claim(
                format!("Ubuntu's {release}: the share of stacked workers is the real one within 3 points"),
                Published::Figure(stacked),
                share(modelled),
                "%",
                |share| (share - stacked).abs() <= 3.0,
            );
        }
        let middle = real.slice_us.unwrap_or(0.0);
        report.claim(
            format!("Ubuntu's {release}: those that nobody helps wait as long as there within 5 % (median)"),
            Published::Figure(middle),
            modelled.slice_us,
            "us",
            |us| (us - middle).abs() <= middle * 0.05,
        );
    }
    let beside_bad = |shown: &[Shown]| {
        let of = |expected: Expected| {
            let row = ROWS.iter().position(|row| row.expected == expected)?;
            share(&shown[row])
        };
        Some(of(Expected::Some)? / of(Expected::Bad)?)
    };
    let few = |ratio: f64| ratio > 0.0 && ratio <= 1.0 / 3.0;
    let there = beside_bad(real).unwrap_or(0.0);
    report.claim(
        "Ubuntu's 5.15: some workers are stacked again, at most a third as many as under 5.6, there and here",
        Published::Figure(there),
        beside_bad(modelled),
        "times",
        |ratio| few(ratio) && few(there),
    );
}
