//! What holds of any run of random operations: nothing is lost, and names and the time of day do not matter.

use fairlab_event::{Cpu, Digest, DigestSink, Event, EventKind, Ns, Pid, Sink};

use super::driver::RandomOperations;
use super::mixed;
use crate::Generation;
use crate::generation::{Feature, FeatureSupport, LOG};

/// When a run begins, and what its tasks are called.
#[derive(Clone, Copy, Debug)]
pub struct RunFrame {
    pub start: Ns,
    pub first_pid: i32,
    pub comm: &'static str,
}

impl RunFrame {
    pub const USUAL: RunFrame = RunFrame { start: Ns(1_000_000), first_pid: 100, comm: "task" };
}

/// Takes events: a digest of all, and a checksum of what happened relative to a frame.
pub struct RelativeDigest {
    digest: DigestSink,
    pub shape: u64,
    frame: RunFrame,
}

impl RelativeDigest {
    pub fn new(frame: RunFrame) -> RelativeDigest {
        RelativeDigest { digest: DigestSink::default(), shape: 0, frame }
    }

    pub fn digest(&self) -> Digest {
        self.digest.digest()
    }

    fn number(&self, pid: Pid) -> u64 {
        let number = pid.0 - if pid.0 < self.frame.first_pid { 0 } else { self.frame.first_pid - 1 };
        number as u64
    }
}

impl Sink for RelativeDigest {
    fn event(&mut self, event: &Event<'_>) {
        self.digest.event(event);
        let what = match event.kind {
            EventKind::SchedSwitch(switch) => {
                [1, self.number(switch.prev_pid), self.number(switch.next_pid), 0]
            }
            EventKind::SchedMigrateTask { pid, orig_cpu, dest_cpu, .. } => {
                [2, self.number(pid), orig_cpu.0.into(), dest_cpu.0.into()]
            }
            EventKind::SchedStatRuntime { pid, runtime, vruntime, .. } => {
                [3, self.number(pid), runtime.0, vruntime.unwrap_or(0)]
            }
            EventKind::SchedPlace(place) => [4, place.sev, place.sed, place.sel as u64],
            _ => [0; 4],
        };
        let Cpu(cpu) = event.cpu;
        let when = event.time.since(self.frame.start).0;
        self.shape = [when, cpu.into()].into_iter().chain(what).fold(self.shape, mixed);
    }
}

const KERNELS: [&str; 10] =
    ["v4.18", "v5.4", "v5.10", "v6.1", "v6.6", "v6.9", "v6.12", "v6.18", "v7.2", "v7.3"];

fn drive(generation: Generation, seed: u64, steps: u32, frame: RunFrame) -> RandomOperations {
    let name = generation.name().to_string();
    let mut driver = RandomOperations::in_frame(generation, seed, frame);
    for _ in 0..8 {
        driver.spawn();
    }
    for step in 0..steps {
        driver.step();
        let sound = driver.scheduler.check_invariants();
        sound.unwrap_or_else(|fault| panic!("{name}, seed {seed}, step {step}: {fault}"));
    }
    driver
}

fn parse(name: &str) -> Generation {
    name.parse().unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What tasks are charged is what they ran, to the nanosecond: through sleeps, moves, throttling, changes of class.
#[test]
fn run_time_is_conserved() {
    for kernel in KERNELS {
        for seed in 0..12 {
            let mut driver = drive(parse(kernel), seed, 600, RunFrame::USUAL);
            let ran = driver.time_on_cpus();
            let tasks = (0..driver.scheduler.shared.tasks.len() as u32).map(crate::TaskId);
            let charged = tasks.map(|task| driver.scheduler.sum_exec_runtime(task).0).sum::<u64>();
            assert_eq!(charged, ran, "{kernel}, seed {seed}");
            assert!(ran > 0, "{kernel}, seed {seed}: nothing ran");
        }
    }
}

/// Whole ticks and whole periods of load tracking, in ns: the least time by which a run can be shifted unchanged.
const WHOLE: u64 = 15_625 << 20;

#[test]
fn names_and_the_time_of_day_do_not_matter() {
    for kernel in KERNELS {
        // Without quotas: their periods begin at multiples of their length.
        for seed in [0, 1, 4, 5] {
            let run = |frame: RunFrame| {
                let driver = drive(parse(kernel), seed, 600, frame);
                (driver.observed.shape, driver.checksum, driver.observed.digest())
            };
            let usual = run(RunFrame { start: Ns(WHOLE), ..RunFrame::USUAL });
            let renamed = run(RunFrame { start: Ns(WHOLE), first_pid: 7_000, comm: "another" });
            let later = run(RunFrame { start: Ns(3 * WHOLE), ..RunFrame::USUAL });
            assert_eq!((usual.0, usual.1), (renamed.0, renamed.1), "{kernel}, seed {seed}: names");
            assert_eq!((usual.0, usual.1), (later.0, later.1), "{kernel}, seed {seed}: time");
            assert!(
                usual.2 != renamed.2 && usual.2 != later.2,
                "{kernel}, seed {seed}: the traces do differ"
            );
        }
    }
}

/// Any release with any of its features the other way round.
#[test]
fn the_state_stays_sound_whatever_is_switched() {
    let releases = Generation::releases();
    for seed in 0..80 {
        let mut random = mixed(seed, 0x1234_5678_9abc_def1);
        let mut next = |limit: u64| {
            random = mixed(random, random >> 29);
            (random >> 33) % limit
        };
        let mut name = releases[next(releases.len() as u64) as usize].to_string();
        let plain = parse(&name);
        for feature in Feature::ALL.iter().filter(|&&feature| plain.features.has(feature)) {
            let turned = feature.support() == FeatureSupport::Modelled && next(4) == 0;
            let on = plain.features.enabled(*feature);
            let refused = *feature == Feature::Hrtick && !on;
            if turned && !refused {
                name += &format!("+{}{feature}", if on { "NO_" } else { "" });
            }
        }
        drive(parse(&name), seed, 400, RunFrame::USUAL);
    }
}

/// Every change more and every change less than a release: either the mixture is refused, in one line, or it runs.
#[test]
fn any_change_is_added_and_taken_away() {
    let mut refused = 0;
    for release in ["v4.18", "v5.10", "v6.5", "v6.6", "v6.12", "v7.2"] {
        let plain = parse(release);
        for (index, change) in LOG.iter().enumerate() {
            let sign = if plain.changes().any(|held| held.id() == change.id()) { '-' } else { '+' };
            match format!("{release}{sign}{}", change.id()).parse::<Generation>() {
                Ok(mixture) => drop(drive(mixture, index as u64, 120, RunFrame::USUAL)),
                Err(error) => {
                    refused += 1;
                    let line = error.to_string();
                    assert!(!line.contains('\n') && line.starts_with("kernel '"), "{line}");
                }
            }
        }
    }
    assert!(refused > 0, "some changes need others");
}
