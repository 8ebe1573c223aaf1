//! How long a machine settles before anything is measured, and whether it has settled then.
//!
//! An idle machine has load averages of zero, balancing intervals at their least, and long search limits. So a workload runs
//! for a while before it counts ([`settling`]). Its pace shows whether that was enough: the rate of work in the first fifth
//! of the measured time, compared with the three fifths after it ([`notices`]). The last fifth is left out, because tasks of
//! some workloads end in it.
//!
//! Must not know: what the workload does.

use fairlab_analysis::statistics::mean_interval;
use fairlab_event::{Cpu, Ns};
use fairlab_kernel::Scheduler;
use fairlab_kernel::generation::Feature;

use crate::RunResult;

/// A load average has forgotten what was so many periods ago (`LOAD_AVG_MAX_N`).
const LOAD_AVG_MAX_N: u64 = 345;

/// The period of load averages: 1024 us of 1024 ns.
const PERIOD: Ns = Ns(1024 * 1024);

/// By how much a balance may come late: its softirq runs at a tick, of which there are a hundred a second at least, and each CPU
/// has its own phase.
const LATE: Ns = Ns::from_ms(20);

/// How long a workload settles if nothing else is said: until load averages have forgotten the idle machine, and at least the
/// longest interval to which balancing of an idle CPU backs off: `max_interval` of the largest domain, twice its CPUs in ms
/// (`sd_init()`). Where use bounds the search for an idle CPU (SIS_UTIL), busy CPUs have also balanced once under each cache:
/// only that sets the bound (`update_idle_cpu_scan()`).
pub fn settling(kernel: &Scheduler) -> Ns {
    let domains = kernel.domains();
    let cpus = || (0..kernel.topology().nr_cpus() as u32).map(Cpu);
    let idle = longest(cpus().flat_map(|cpu| domains.domains_of(cpu)).map(|sd| sd.max_interval));
    let averages = Ns(LOAD_AVG_MAX_N * PERIOD.0);
    if !kernel.generation().features.enabled(Feature::SisUtil) {
        return idle.max(averages);
    }
    let caches = cpus().filter_map(|cpu| domains.of_cpu(cpu).sd_llc).map(|id| domains.domain(id));
    let busy = longest(caches.map(|sd| sd.min_interval * sd.busy_factor));
    idle.max(averages).max(busy + LATE)
}

/// The longest of intervals of so many ms.
fn longest(intervals: impl Iterator<Item = u32>) -> Ns {
    Ns::from_ms(intervals.max().unwrap_or(0).into())
}

/// How much had been done at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mark {
    time: Ns,
    work: u64,
}

/// What was done at what time of a run: marks at equal distances, never more than [`MARKS_MAX`].
#[derive(Clone, Debug)]
pub(crate) struct WorkPace {
    marks: Vec<Mark>,
    step: Ns,
}

const MARKS_MAX: usize = 128;

impl WorkPace {
    /// Nothing is done at `time`.
    pub fn new(time: Ns) -> WorkPace {
        WorkPace { marks: vec![Mark { time, work: 0 }], step: Ns::from_ms(1) }
    }

    /// When the next mark is due.
    pub fn next(&self) -> Ns {
        self.marks.last().map_or(Ns::ZERO, |last| last.time + self.step)
    }

    /// The work done at `time`.
    pub fn mark(&mut self, time: Ns, work: u64) {
        self.marks.push(Mark { time, work });
        if self.marks.len() > MARKS_MAX {
            let mut number = 0;
            self.marks.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.step = Ns(self.step.0 * 2);
        }
    }

    /// How far the rate of the first fifth lies above that of the three after it, as a share of that; `None` if there are too few
    /// marks.
    pub fn excess(&self) -> Option<f64> {
        let (first, last) = (self.marks.first()?, self.marks.last()?);
        let fifth = last.time.since(first.time).0 / 5;
        if self.marks.len() < 20 || fifth == 0 {
            return None;
        }
        let at = |number: u64| self.work_at(Ns(first.time.0 + fifth * number));
        let (start, middle) = (at(1)? - first.work as f64, (at(4)? - at(1)?) / 3.0);
        (middle > 0.0).then(|| start / middle - 1.0)
    }

    /// What was done by then, between two marks in proportion.
    fn work_at(&self, time: Ns) -> Option<f64> {
        let after = self.marks.iter().position(|mark| mark.time >= time)?;
        let (from, to) = (self.marks[after.saturating_sub(1)], self.marks[after]);
        let whole = to.time.since(from.time).0.max(1) as f64;
        let part = (time.since(from.time).0 as f64 / whole).min(1.0);
        Some(from.work as f64 + (to.work as f64 - from.work as f64) * part)
    }
}

/// How sure it must be that a pace differs: one false alarm in a thousand kernels that have settled.
const CONFIDENCE: f64 = 0.999;

/// Differences below this share are of no interest.
const MARGIN: f64 = 0.01;

/// From fewer runs nothing is concluded.
const RUNS_MIN: usize = 5;

/// What is to be said of each kernel whose runs go on differently than they begin. Runs are independent of each other, which
/// parts of one run are not, so one run alone tells nothing.
pub fn notices(runs: &[RunResult]) -> Vec<String> {
    let mut kernels = runs.iter().map(RunResult::side).collect::<Vec<_>>();
    kernels.dedup();
    let of_kernel = |kernel: &str| {
        let excesses = runs.iter().filter(|run| run.side() == kernel).filter_map(|run| run.early_excess);
        let excesses = excesses.collect::<Vec<_>>();
        let (mean, half) = mean_interval(&excesses, CONFIDENCE).filter(|_| excesses.len() >= RUNS_MIN)?;
        let is_sure = mean.abs() - half > MARGIN;
        is_sure.then(|| {
            format!(
                "{kernel}: in the first fifth of what was measured the rate of work differs by {:+.1} % from that after it: it \
                 had not settled, or its load changes; --warmup sets how long it settles",
                mean * 100.0
            )
        })
    };
    kernels.into_iter().filter_map(of_kernel).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pace of a run of `length` ms that does `rate(ms)` a ms.
    fn pace(length: u64, rate: impl Fn(u64) -> u64) -> WorkPace {
        let mut pace = WorkPace::new(Ns::from_ms(7));
        let mut work = 0;
        for ms in 0..length {
            work += rate(ms);
            let time = Ns::from_ms(7 + ms + 1);
            if time >= pace.next() {
                pace.mark(time, work);
            }
        }
        pace
    }

    #[test]
    fn the_first_fifth_is_held_beside_what_follows() {
        // To the half of a per cent: marks lie at some distance.
        let excess = |pace: WorkPace| (pace.excess().expect("enough marks") * 100.0).round();
        assert_eq!(excess(pace(100, |_| 50)), 0.0);
        assert_eq!(excess(pace(1000, |ms| if ms < 200 { 60 } else { 50 })), 20.0);
        assert_eq!(excess(pace(5000, |ms| if ms < 1000 { 40 } else { 50 })), -20.0);
        // The end does not matter.
        assert_eq!(excess(pace(1000, |ms| if ms < 800 { 50 } else { 1 })), 0.0);
        assert_eq!(pace(10, |_| 50).excess(), None);
        assert!(pace(100_000, |_| 1).marks.len() <= MARKS_MAX);
    }
}
