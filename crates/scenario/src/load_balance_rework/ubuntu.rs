//! The scenario under Ubuntu's kernels, release after release, beside the modelled ones.
//!
//! Must not know: what the report says.

use fairlab_event::Ns;
use fairlab_lab::LabError;

use super::{METRICS, P99, SLICE_US, STACKED, Shown, percent};
use crate::booted::{MODELLED, REAL, Situation, Source, UbuntuKernel, boot_all, run_modelled};
use crate::claim::{greatest, least, of};
use crate::figures::ByRun;
use crate::runs::Watched;
use crate::schbench_table::SchbenchTable;
use crate::waits::{Share, TaskWaits};
use crate::{Bar, Bench, Claim, Measure, Published, Report, Row, RunKey};

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

struct Release {
    kernel: UbuntuKernel,
    expected: Expected,
    /// One boot each, in November 2026.
    recorded: Shown,
}

const fn release(
    (name, kernel): (&'static str, &'static str),
    expected: Expected,
    (samples, percentiles, max): (u64, [u64; 7], u64),
    (some, all): (u64, u64),
    slice_us: Option<f64>,
) -> Release {
    let table = SchbenchTable { runtime_s: 16, samples, percentiles, counts: [0; 7], max, min: None };
    let recorded = Shown { table, long: Share { some, all }, slice_us };
    Release { kernel: UbuntuKernel { release: name, kernel, hz: 250 }, expected, recorded }
}

const RELEASES: [Release; 8] = [
    release(("5.3", "v5.3"), Expected::Good, (494, [37, 49, 69, 77, 85, 89, 108], 108), (0, 488), None),
    release(("5.4", "v5.4"), Expected::Good, (491, [35, 47, 65, 74, 106, 106, 138], 138), (0, 488), None),
    release(
        ("5.6", "v5.6"),
        Expected::Bad,
        (494, [37, 50, 94, 13_648, 15_664, 15_952, 16_016], 16_004),
        (48, 488),
        Some(13_754.0),
    ),
    release(
        ("5.8", "v5.8"),
        Expected::Bad,
        (493, [37, 48, 119, 13_328, 15_728, 15_824, 18_208], 18_227),
        (47, 488),
        Some(13_473.0),
    ),
    release(("5.10", "v5.10"), Expected::Good, (493, [36, 47, 66, 71, 78, 85, 843], 843), (0, 488), None),
    release(("5.11", "v5.11"), Expected::Good, (491, [34, 47, 65, 70, 89, 725, 763], 763), (0, 488), None),
    release(("5.13", "v5.13"), Expected::Good, (492, [34, 44, 61, 66, 71, 71, 72], 72), (0, 488), None),
    release(
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
    let runs = run_modelled(bench, &RELEASES.map(|release| release.kernel), SITUATION, seeds, watch)?;
    let Some(runs) = runs else { return Ok(None) };
    let modelled = runs.map(|runs| shown(runs));
    report.measure(&real, METRICS);
    report.measure(&modelled, METRICS);
    tell(report, source, seeds, &real, &modelled)?;
    report.keep(runs.into_runs());
    Ok(Some(()))
}

/// What the kernels show: written down, or booted now.
fn real(bench: &Bench<'_>, report: &mut Report, source: Source) -> Result<Option<ByRun<Shown>>, LabError> {
    if source == Source::Recorded {
        let recorded = |release: &Release| (release.kernel.real(), release.recorded);
        return Ok(Some(RELEASES.iter().map(recorded).collect()));
    }
    let found = boot_all(bench, &RELEASES.map(|release| release.kernel), SITUATION, report, watch)?;
    let Some(found) = found else { return Ok(None) };
    let all = found.map(|runs| shown(runs));
    report.keep(found.into_runs());
    Ok(Some(all))
}

fn watch() -> TaskWaits {
    TaskWaits::new("schbench", WARM_UP)
}

fn shown(runs: &[Watched<TaskWaits>]) -> Shown {
    Shown::of(runs.iter().map(|(run, waits)| (run, waits)))
}

fn tell(
    report: &mut Report,
    source: Source,
    seeds: u64,
    real: &ByRun<Shown>,
    modelled: &ByRun<Shown>,
) -> Result<(), LabError> {
    report.heading("Under Ubuntu's kernels");
    let command = SITUATION.command("RELEASE");
    report.text(format!(
        "{}, and what the model does on the same emulated machine: 8 CPUs (cores of 2 threads) in turn, HZ 250, high-resolution \
         timers, `{command}`. \"> 2 ms\": of workers' wakeups; \"middle\": the median of the waits longer than 10 ms, us; \
         modelled: of {seeds} seeds, the table of the first. With ticks of 4 ms a stacked worker waits for 8 to 16 ms, \
         evenly spread: a slice of 12 ms begins before the wakeup, and ends at the tick after it. Waits below a tick \
         are the emulated work of the kernel, which the scheduler does not decide. For 5.15 the model predicted, \
         before that kernel was booted, that waits of a slice return for fewer workers. One boot is not exact: \
         others, with a slightly different program, had 11.5 % on 5.6, 11.1 % on 5.8 and 2.5 % on 5.15, and 1.8 % with \
         SIS_UTIL switched off (`--set NO_SIS_UTIL`).",
        source.when("load-balance-rework")
    ));
    let (mut rows, mut bars) = (Vec::new(), Vec::new());
    for Release { kernel, .. } in &RELEASES {
        let (there, here) = (real.of(&kernel.real())?, modelled.of(&kernel.modelled())?);
        for (who, shown) in [("real", there), ("modelled", here)] {
            let mut cells = vec![format!("{} {who}", kernel.release), shown.table.samples.to_string()];
            cells.extend(shown.table.percentiles.map(|us| us.to_string()));
            let middle = shown.slice_us.map_or("-".to_string(), |us| format!("{us:.0}"));
            cells.extend([shown.table.max.to_string(), percent(shown.long.value()), middle]);
            rows.push(cells);
        }
        let p99 = |shown: &Shown| Some(shown.table.p99() as f64);
        bars.push(Row::new(kernel.release, p99(there), p99(here)));
    }
    let header =
        ["kernel", "samples", "p50", "p75", "p90", "p95", "p99", "p99.5", "p99.9", "max", "> 2 ms", "middle"];
    report.table(&header, rows);
    report.picture(
        "99th percentile, us: Ubuntu's kernels (\"published\") beside the model (logarithmic)",
        true,
        bars,
    );
    Ok(())
}

pub(super) fn claims() -> Vec<Claim> {
    let releases = |expected: Expected| {
        RELEASES
            .iter()
            .filter(move |release| release.expected == expected)
            .map(|release| release.kernel.release)
    };
    let order = |setting| -> Measure {
        let p99 = |release| of(P99, RunKey::new(setting, release));
        least(releases(Expected::Bad).map(p99)) / greatest(releases(Expected::Good).map(p99))
    };
    let mut claims = vec![Claim::new(
        "Ubuntu's kernels: bad ones at least 10 times above good ones at p99, in the model these, too",
        Published::Real(order(REAL)),
        order(MODELLED),
        "times",
        Bar::Both(Box::new(Bar::AtLeast(10.0))),
    )];
    for Release { kernel, expected, .. } in &RELEASES {
        let release = kernel.release;
        if *expected == Expected::Bad {
            claims.push(Claim::new(
                format!("Ubuntu's {release}: the share of stacked workers is the real one within 3 points"),
                Published::Real(of(STACKED, kernel.real())),
                of(STACKED, kernel.modelled()),
                "%",
                Bar::NearPublished(3.0),
            ));
        }
        if *expected != Expected::Good {
            claims.push(Claim::new(
                format!(
                    "Ubuntu's {release}: those that no CPU pulls wait as long as there within 5 % (median)"
                ),
                Published::Real(of(SLICE_US, kernel.real())),
                of(SLICE_US, kernel.modelled()),
                "us",
                Bar::LikePublished(0.05),
            ));
        }
    }
    let few = |setting| {
        let stacked = |release| of(STACKED, RunKey::new(setting, release));
        stacked("5.15") / stacked("5.6")
    };
    claims.push(Claim::new(
        "Ubuntu's 5.15: some workers are stacked again, at most a third as many as under 5.6, there and here",
        Published::Real(few(REAL)),
        few(MODELLED),
        "times",
        Bar::Both(Box::new(Bar::AboveUpTo(0.0, 1.0 / 3.0))),
    ));
    claims
}
