//! The scenario under Ubuntu's kernels, release after release, beside the modelled ones.
//!
//! Must not know: what the report says.

use std::collections::BTreeMap;

use fairlab_event::{Event, EventKind, Ns, Pid, Sink};

use crate::booted::{MODELLED, REAL, Situation, Source, UbuntuKernel, boot_all, run_modelled};
use crate::claim::of;
use crate::figures::{ByRun, Metric};
use crate::kworkers::Kind;
use crate::render::number;
use crate::runs::Watched;
use crate::{Bar, Bench, Claim, Measure, Published, Report, RunKey};
use fairlab_lab::LabError;

const OFTEN: &str = "waits longer than 1 ms, of 10000";
const LONGEST: &str = "longest wait, ms";

const METRICS: &[Metric<Waits>] =
    &[(OFTEN, |waits| Some(waits.late_of_10000())), (LONGEST, |waits| Some(waits.longest_ms))];

/// What is rarer cannot be told from none, of 10000.
const RAREST: f64 = 0.01;

/// The recorded job again. Threads pinned to their CPUs, outside of the guests' groups, stand for the kworkers, which no program
/// can start.
const SITUATION: Situation = Situation {
    machine: "emulated:4",
    workload: "vhost --gap-us 30 --work-us 3 --long-work-us 90 --long-every 20 --run-us 400 --run-ms 4000",
    around: "cgroup cpu.weight=100 /",
    duration: Ns::from_secs(6),
};

/// A wait that is no longer is one for the vhost thread's next way out of the kernel, or for a piece of work.
const LATE: Ns = Ns::from_ms(1);

/// How kworkers waited that vhost threads had woken.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    wakeups: u64,
    /// Those longer than [`LATE`].
    late: u64,
    /// The 99.9th percentile, ms.
    tail_ms: f64,
    longest_ms: f64,
}

impl Waits {
    fn of(mut waits: Vec<Ns>) -> Waits {
        waits.sort_unstable();
        let ms = |index: usize| waits.get(index).map_or(0.0, |wait| wait.as_ms_f64());
        Waits {
            wakeups: waits.len() as u64,
            late: waits.iter().filter(|&&wait| wait > LATE).count() as u64,
            tail_ms: ms(waits.len() * 999 / 1000),
            longest_ms: ms(waits.len().saturating_sub(1)),
        }
    }

    /// Late ones of ten thousand.
    fn late_of_10000(&self) -> f64 {
        self.late as f64 * 10_000.0 / self.wakeups.max(1) as f64
    }
}

/// Collects them.
#[derive(Default)]
struct Watch {
    woken: BTreeMap<Pid, Ns>,
    waits: Vec<Ns>,
}

impl Sink for Watch {
    fn event(&mut self, event: &Event<'_>) {
        match event.kind {
            EventKind::SchedWaking(wakeup)
                if Kind::of(&wakeup.comm.to_str()) == Some(Kind::Kworker)
                    && Kind::of(&event.context.comm.to_str()) == Some(Kind::Vhost) =>
            {
                self.woken.insert(wakeup.pid, event.time);
            }
            EventKind::SchedSwitch(switch) => {
                let woken = self.woken.remove(&switch.next_pid);
                self.waits.extend(woken.map(|woken| event.time.since(woken)));
            }
            _ => {}
        }
    }
}

struct Release {
    kernel: UbuntuKernel,
    /// One boot each, in November 2026.
    recorded: Waits,
}

const fn release(
    name: &'static str,
    kernel: &'static str,
    hz: u64,
    (wakeups, late, tail_ms, longest_ms): (u64, u64, f64, f64),
) -> Release {
    let recorded = Waits { wakeups, late, tail_ms, longest_ms };
    Release { kernel: UbuntuKernel { release: name, kernel, hz }, recorded }
}

const RELEASES: [Release; 6] = [
    release("6.5", "ubuntu-6.5", 250, (22_352, 0, 0.10, 0.27)),
    release("6.8", "ubuntu-6.8", 1000, (19_209, 174, 2.52, 3.12)),
    release("6.11", "ubuntu-6.11", 1000, (19_710, 171, 2.64, 3.33)),
    release("6.14", "ubuntu-6.14", 1000, (22_575, 7, 0.74, 1.76)),
    release("6.17", "ubuntu-6.17", 1000, (21_337, 8, 0.80, 2.64)),
    release("7.0", "ubuntu-7.0", 1000, (22_591, 4, 0.15, 2.43)),
];

/// Real kernels beside modelled ones.
pub(super) fn conduct(
    bench: &Bench<'_>,
    report: &mut Report,
    source: Source,
) -> Result<Option<()>, LabError> {
    let Some(real) = real(bench, report, source)? else { return Ok(None) };
    let seeds = bench.choose(5, 2);
    let kernels = RELEASES.map(|release| release.kernel);
    let Some(runs) = run_modelled(bench, &kernels, SITUATION, seeds, Watch::default)? else {
        return Ok(None);
    };
    let modelled = runs.map(|runs| waits(runs));
    report.measure(&real, METRICS);
    report.measure(&modelled, METRICS);
    tell(report, source, seeds, &real, &modelled)?;
    report.keep(runs.into_runs());
    Ok(Some(()))
}

/// What the kernels show: written down, or booted now.
fn real(bench: &Bench<'_>, report: &mut Report, source: Source) -> Result<Option<ByRun<Waits>>, LabError> {
    if source == Source::Recorded {
        let recorded = |release: &Release| (release.kernel.real(), release.recorded);
        return Ok(Some(RELEASES.iter().map(recorded).collect()));
    }
    let kernels = RELEASES.map(|release| release.kernel);
    let Some(found) = boot_all(bench, &kernels, SITUATION, report, Watch::default)? else { return Ok(None) };
    let all = found.map(|runs| waits(runs));
    report.keep(found.into_runs());
    Ok(Some(all))
}

/// The waits of all runs.
fn waits(runs: &[Watched<Watch>]) -> Waits {
    Waits::of(runs.iter().flat_map(|(_, watch)| watch.waits.iter().copied()).collect())
}

fn tell(
    report: &mut Report,
    source: Source,
    seeds: u64,
    real: &ByRun<Waits>,
    modelled: &ByRun<Waits>,
) -> Result<(), LabError> {
    report.heading("Under Ubuntu's kernels");
    let command = SITUATION.command("RELEASE");
    report.text(format!(
        "{}, and what the model does on the same emulated machine: 4 CPUs in turn, high-resolution timers, HZ 250 (6.5) or 1000, \
         `{command}`, in a group around all (a booted kernel runs workloads with groups in one). Threads pinned to \
         their CPUs replace kworkers. \
         Waits of those that a vhost thread woke, from sched_waking to the switch, in ms; modelled: of {seeds} seeds. 6.8 has \
         eab03c23c2a1, and leaves deadlines of entities off their queue as 6.6.9 does. With ticks of 1 ms and in this \
         size no kworker waits for many slices. But a kworker without lag waits for the rest of the vhost thread's \
         slice of 3 ms, and for a tick. Since delayed dequeue (6.12) that is rare. One boot is not exact: another one, \
         with a slightly different program, had 96, 88, 4.1, 5.8 and 1.6 of 10000 from 6.8 to 7.0.",
        source.when("eevdf-vhost")
    ));
    let mut rows = Vec::new();
    for Release { kernel, .. } in &RELEASES {
        let (there, here) = (real.of(&kernel.real())?, modelled.of(&kernel.modelled())?);
        for (who, waits) in [("real", there), ("modelled", here)] {
            rows.push(vec![
                format!("{} {who}", kernel.release),
                waits.wakeups.to_string(),
                number(waits.late_of_10000()),
                number(waits.tail_ms),
                number(waits.longest_ms),
            ]);
        }
    }
    report.table(&["kernel", "wakeups", "> 1 ms, of 10000", "p99.9 ms", "longest ms"], rows);
    Ok(())
}

pub(super) fn claims() -> Vec<Claim> {
    let real = |metric, release| of(metric, RunKey::new(REAL, release));
    let modelled = |metric, release| of(metric, RunKey::new(MODELLED, release));
    let fall = |setting| {
        let often = |release| of(OFTEN, RunKey::new(setting, release));
        often("6.8") / Measure::Floor(RAREST, Box::new(often("6.14")))
    };
    vec![
        Claim::new(
            "Ubuntu's 6.5: no kworker waits longer than 1 ms, as there",
            Published::Real(real(OFTEN, "6.5")),
            modelled(OFTEN, "6.5"),
            "of 10000",
            Bar::Below(1.0),
        ),
        Claim::new(
            "Ubuntu's 6.8: kworkers wait longer than 1 ms as often as there, within a half",
            Published::Real(real(OFTEN, "6.8")),
            modelled(OFTEN, "6.8"),
            "of 10000",
            Bar::LikePublished(0.5),
        ),
        Claim::new(
            "Ubuntu's 6.8: the longest such wait is that of there within a tick",
            Published::Real(real(LONGEST, "6.8")),
            modelled(LONGEST, "6.8"),
            "ms",
            Bar::NearPublished(1.0),
        ),
        Claim::new(
            "from Ubuntu's 6.8 to 6.14 such waits become at least ten times as rare, there and here",
            Published::Real(fall(REAL)),
            fall(MODELLED),
            "times",
            Bar::Both(Box::new(Bar::AtLeast(10.0))),
        ),
    ]
}
