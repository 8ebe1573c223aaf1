//! A recording beside replays of it: how near a kernel comes to what was recorded, where the same tasks meet it again.
//!
//! Must not know: how an answer is printed.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use fairlab_analysis::by_name::NamesWanted;
use fairlab_analysis::counts::RunCounts;
use fairlab_analysis::histogram::Histogram;
use fairlab_analysis::task_selector::TaskSelector;
use fairlab_event::{Ns, Origin};
use fairlab_lab::read_trace::recorded_machine;
use fairlab_lab::{Kernel, LabError, Progress, RunSpec, TraceCounting, count_tasks, run_all};
use fairlab_sim::Machine;
use fairlab_sim::machine::Chance;

/// Times whose distributions are compared.
pub const TIMES: [&str; 3] = ["wakeup_latency_ns", "preemption_wait_ns", "run_stretch_ns"];

/// Numbers that are compared.
pub const RATES: [&str; 3] = ["switches_per_s", "migrations_per_s", "busy_share"];

/// Everything that is compared, by name.
pub fn measures() -> impl Iterator<Item = (Measure, &'static str)> {
    let times = TIMES.iter().enumerate().map(|(which, name)| (Measure::Times(which), *name));
    times.chain(RATES.iter().enumerate().map(|(which, name)| (Measure::Rate(which), *name)))
}

/// One thing that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The place among [`TIMES`].
    Times(usize),
    /// The place among [`RATES`].
    Rate(usize),
}

/// How many replays a kernel has where nothing else is said.
pub const REPLAYS: u64 = 5;

/// A replay begins to count with the recording's first event, and not with what sets it up.
const WARMUP: Ns = Ns(1);

/// What was measured of a recording, or of a replay.
#[derive(Clone, Debug, Default)]
pub struct CourseMeasures {
    /// By [`TIMES`].
    pub times: [Histogram; TIMES.len()],
    /// By [`RATES`]; `None`: not known.
    pub rates: [Option<f64>; RATES.len()],
}

/// All tasks under one name: what is measured by name is measured of them.
fn all_tasks() -> TaskSelector {
    TaskSelector::Group("/".to_string())
}

fn wanted() -> NamesWanted {
    NamesWanted { asked: vec![all_tasks()], stretches: true, ..NamesWanted::default() }
}

impl CourseMeasures {
    fn of(counts: &RunCounts) -> CourseMeasures {
        let tasks = counts.by_name.get(&all_tasks()).cloned().unwrap_or_default();
        let seconds = counts.observed_ns as f64 / 1e9;
        let per_s = |count: u64| (seconds > 0.0).then(|| count as f64 / seconds);
        let busy = (counts.cpu_ns > 0)
            .then(|| counts.cpu_ns.saturating_sub(counts.idle_ns) as f64 / counts.cpu_ns as f64);
        CourseMeasures {
            times: [tasks.wakeup_latency, tasks.preemption_wait, tasks.run_stretches],
            rates: [per_s(counts.switches), per_s(counts.migrations), busy],
        }
    }

    /// How far two lie apart, 0 to 1: times by [`Histogram::distance`], numbers by which part of the greater one they differ. `None`
    /// where one of them does not have that.
    fn apart(&self, other: &CourseMeasures, measure: Measure) -> Option<f64> {
        match measure {
            Measure::Times(which) => self.times[which].distance(&other.times[which]),
            Measure::Rate(which) => Some(part_of_greater(self.rates[which]?, other.rates[which]?)),
        }
    }
}

/// A recording that is replayed, and the machine for that.
#[derive(Clone, Debug)]
pub struct RecordedCourse {
    path: PathBuf,
    /// The recorded machine, or the one that was named, without what a recording has of it already.
    pub machine: Machine,
    /// How long it is.
    pub length: Ns,
    /// What was measured of it.
    pub measured: CourseMeasures,
}

impl RecordedCourse {
    /// Reads a recording. Without a machine, the one that it tells of is taken.
    ///
    /// # Errors
    /// It cannot be read twice, or does not tell of its machine.
    pub fn read(path: &Path, machine: Option<Machine>) -> Result<RecordedCourse, LabError> {
        if path == Path::new("-") {
            return Err(LabError::new(
                "what comes through a pipe is read once, and a replay reads it again",
                "give the recording as a file",
            ));
        }
        let counted = count_tasks(path, TraceCounting { by_name: wanted(), ..TraceCounting::default() })?;
        let machine = machine.map_or_else(|| recorded_machine(path, &counted.system), Ok)?;
        Ok(RecordedCourse {
            path: path.to_path_buf(),
            machine: without_recorded(machine),
            length: Ns(counted.counts.observed_ns),
            measured: CourseMeasures::of(&counted.counts),
        })
    }

    /// Replays it on each of these kernels with each seed. `None`: it was stopped.
    ///
    /// # Errors
    /// A run fails.
    pub fn replayed(
        self,
        kernels: &[Kernel],
        seeds: &[u64],
        jobs: usize,
        on_progress: &(dyn Fn(Progress) + Sync),
        stop: &AtomicBool,
    ) -> Result<Option<Replayed>, LabError> {
        let workload = ["replay".to_string(), self.path.display().to_string()];
        let spec = |kernel: &Kernel, seed: u64| RunSpec {
            by_name: wanted(),
            warmup: Some(WARMUP),
            ..RunSpec::new(kernel.clone(), self.machine.clone(), workload.to_vec(), seed, self.length)
        };
        let specs = kernels
            .iter()
            .flat_map(|kernel| seeds.iter().map(move |&seed| spec(kernel, seed)))
            .collect::<Vec<_>>();
        let (runs, stopped) = run_all(&specs, jobs, on_progress, stop)?;
        if stopped.0 {
            return Ok(None);
        }
        let sides = kernels.iter().zip(runs.chunks(seeds.len().max(1))).map(|(kernel, runs)| ReplayedSide {
            kernel: kernel.name().to_string(),
            origin: kernel.origin(),
            replays: runs.iter().map(|run| CourseMeasures::of(&run.counts)).collect(),
        });
        Ok(Some(Replayed { sides: sides.collect(), seeds: seeds.to_vec(), recording: self }))
    }
}

/// A machine without what a recording has already: devices and kernel threads at work, how long new threads take to begin, and the time
/// that an emulator's CPUs wait for their turn.
fn without_recorded(machine: Machine) -> Machine {
    let chance = Chance { start_ns: 0, device_irqs_per_s: 0, kworker_period_ns: 0, ..machine.chance };
    Machine { chance, in_turn: false, ..machine }
}

/// Replays of a recording.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// What was replayed, and where.
    pub recording: RecordedCourse,
    /// The replays' seeds.
    pub seeds: Vec<u64>,
    /// The kernels' replays.
    pub sides: Vec<ReplayedSide>,
}

/// The replays on one kernel.
#[derive(Clone, Debug)]
pub struct ReplayedSide {
    /// Its name.
    pub kernel: String,
    /// How its runs come about.
    pub origin: Origin,
    /// What was measured of each replay.
    pub replays: Vec<CourseMeasures>,
}

/// How far something lies from replays, and these from each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplayDistance {
    /// From there to a replay, on average.
    pub apart: f64,
    /// Of the replay that lies farthest from the others, from there to another, on average; `None`: there is one replay.
    pub replays: Option<f64>,
}

impl ReplayDistance {
    /// Of some and of replays; `None` where something cannot be measured in one of them.
    fn of<T>(some: &[T], replays: &[T], between: impl Fn(&T, &T) -> Option<f64>) -> Option<ReplayDistance> {
        let mean = |distances: &[f64]| {
            (!distances.is_empty()).then(|| distances.iter().sum::<f64>() / distances.len() as f64)
        };
        let to_all = some.iter().flat_map(|one| replays.iter().map(|replay| between(one, replay)));
        let apart = mean(&to_all.collect::<Option<Vec<_>>>()?)?;
        let mut farthest = None::<f64>;
        for (place, replay) in replays.iter().enumerate() {
            let others = replays.iter().enumerate().filter(|(other, _)| *other != place);
            let distances = others.map(|(_, other)| between(replay, other)).collect::<Option<Vec<_>>>()?;
            farthest = farthest.into_iter().chain(mean(&distances)).reduce(f64::max);
        }
        Some(ReplayDistance { apart, replays: farthest })
    }

    /// Whether it lies no farther from the replays than one of these lies from the others, as it may if it were one of them.
    pub fn is_reproduced(&self) -> Option<bool> {
        self.replays.map(|replays| self.apart <= replays)
    }
}

/// By which part of the greater one two numbers differ that are not negative.
fn part_of_greater(one: f64, other: f64) -> f64 {
    if one == other { 0.0 } else { (one - other).abs() / one.max(other) }
}

impl ReplayedSide {
    /// The times of all replays together.
    pub fn times(&self, which: usize) -> Histogram {
        let mut all = Histogram::default();
        self.replays.iter().for_each(|replay| all.merge(&replay.times[which]));
        all
    }

    /// A number's mean over the replays.
    pub fn rate(&self, which: usize) -> Option<f64> {
        let rates = self.replays.iter().map(|replay| replay.rates[which]).collect::<Option<Vec<_>>>()?;
        (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
    }

    /// How far its replays lie from the recording, or from the replays of another side.
    pub fn distance(&self, from: &[CourseMeasures], measure: Measure) -> Option<ReplayDistance> {
        ReplayDistance::of(from, &self.replays, |one, other| one.apart(other, measure))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_reproduced_where_it_might_be_one_of_the_replays() {
        let of = |recording: f64, replays: &[f64]| {
            ReplayDistance::of(&[recording], replays, |one: &f64, other: &f64| Some((one - other).abs()))
        };
        let among = of(2.0, &[1.0, 2.0, 4.0]).expect("a distance");
        assert_eq!(among, ReplayDistance { apart: 1.0, replays: Some(2.5) });
        assert_eq!(among.is_reproduced(), Some(true));
        assert_eq!(of(9.0, &[1.0, 2.0, 4.0]).and_then(|far| far.is_reproduced()), Some(false));
        let one = of(9.0, &[1.0]).expect("a distance");
        assert_eq!((one.apart, one.is_reproduced()), (8.0, None), "one replay tells no spread");
        assert_eq!(of(9.0, &[]), None);
        assert_eq!(ReplayDistance::of(&[1.0], &[1.0], |_, _| None), None);
    }

    #[test]
    fn numbers_differ_by_a_part_of_the_greater_one() {
        let parts = [(0.0, 0.0), (3.0, 3.0), (0.0, 1.0), (3.0, 4.0), (4.0, 3.0)];
        assert_eq!(parts.map(|(one, other)| part_of_greater(one, other)), [0.0, 0.0, 1.0, 0.25, 0.25]);
    }
}
