//! What sharing costs on this host: threads of a core, bandwidth, refills, far wakeups, cache lines.
//!
//! A figure is measured where the host has what it is about, and is said to lack where not: then the effect stays off. Each is the
//! median of samples in a time that is bounded.
//!
//! Must not know: machine files.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;

use fairlab_event::Ns;

use super::places::{CpuDistance, CpuNeighbours, CpuPlaces};
use super::wakeups::{WakeeLoad, wakeups};
use super::{INSIDE, gaps, median, on, pin};
use crate::arrays::Arrays;
use crate::clock::{Clock, ComputePace};

/// A figure of the machine's table `[sharing]`, or one that only tells.
#[derive(Clone, Debug, PartialEq)]
pub struct SharingFigure {
    /// Its name in machine files; its unit comes last.
    pub name: &'static str,
    /// The median.
    pub value: u64,
    /// A tenth of the samples are below.
    pub low: u64,
    /// A tenth of the samples are above.
    pub high: u64,
    /// Samples; one: the host tells it.
    pub samples: usize,
    /// How it was measured.
    pub how: String,
}

/// One figure may take this long.
const TIME_MAX: Ns = Ns::from_ms(400);

/// Samples that are taken however long they take.
const SAMPLES_MIN: usize = 3;

/// How long all draw at once for one sample.
const DRAW: Ns = Ns::from_ms(40);

/// Arrays hold as much as this many last-level caches, as STREAM asks for.
const CACHES: u64 = 4;

/// The most that all arrays hold together, KB.
const ARRAYS_MAX_KB: u64 = 1 << 20;

/// Where nobody says what a last-level cache holds, KB.
const LLC_KB: u64 = 32 << 10;

/// CPUs that draw at once are short of bandwidth below this part of what each draws alone.
const SHORT: f64 = 0.8;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct SharingMeasurement {
    pub figures: Vec<SharingFigure>,
    pub lacking: Vec<(&'static str, &'static str)>,
}

/// What is known before.
pub(super) struct KnownCosts {
    /// The median of a wakeup of another CPU without its system call, ns; which CPU that was.
    pub wakeup: Option<(f64, usize)>,
    /// What a system call takes, ns.
    pub syscall: f64,
    /// The median of an interrupt's way to another CPU, ns.
    pub ipi: Option<f64>,
}

/// Measures all that `cpus` allow, from the first one on.
pub(super) fn sharing(
    cpus: &[usize],
    samples: usize,
    known: &KnownCosts,
    tell: &dyn Fn(&str),
) -> Result<SharingMeasurement, String> {
    let places = CpuPlaces::read(Path::new("/"), cpus);
    let mut found = SharingMeasurement::default();
    let Some(here) = places.all.first() else { return Ok(found) };
    tell("threads of a core");
    found.threads(&places, here, samples)?;
    tell("bandwidth");
    found.bandwidth(&places, here)?;
    tell("refills");
    found.refills(&places, here, samples)?;
    tell("far wakeups");
    found.wakeups(&places, here, samples, known)?;
    tell("cache lines");
    found.lines(&places, here, samples)?;
    found.lack(&["rq_lock_ns"], INSIDE);
    found.lack(&["line_cluster_ns", "wakeup_cluster_ns"], "clusters are not told apart");
    found.lack(&["working_set_kb"], "each program has its own");
    Ok(found)
}

impl SharingMeasurement {
    fn lack(&mut self, names: &[&'static str], why: &'static str) {
        self.lacking.extend(names.iter().map(|&name| (name, why)));
    }

    fn add(&mut self, name: &'static str, mut samples: Vec<f64>, how: String) {
        samples.retain(|sample| sample.is_finite());
        samples.sort_by(f64::total_cmp);
        let at = |share: f64| samples.get((samples.len().saturating_sub(1) as f64 * share) as usize);
        let round = |value: Option<&f64>| value.map_or(0, |value| value.max(0.0).round() as u64);
        let (low, value, high) = (round(at(0.1)), round(at(0.5)), round(at(0.9)));
        if value == 0 {
            return self.lack(&[name], "it is lost in how much its parts vary");
        }
        self.figures.push(SharingFigure { name, value, low, high, samples: samples.len(), how });
    }

    /// What the host itself tells.
    fn told(&mut self, name: &'static str, value: u64) {
        match value {
            0 => self.lack(&[name], "the host does not tell"),
            _ => {
                let how = "sysfs".to_string();
                self.figures.push(SharingFigure { name, value, low: value, high: value, samples: 1, how });
            }
        }
    }

    fn threads(&mut self, places: &CpuPlaces, here: &CpuNeighbours, samples: usize) -> Result<(), String> {
        self.lack(&["smt_speed_4", "smt_speed_8"], "only two threads of a core are compared");
        let Some(sibling) = places.at(here, CpuDistance::Core) else {
            self.lack(&["smt_speed_2"], "no two threads of one core are here");
            return Ok(());
        };
        let (alone, together) = computations(here.cpu, sibling.cpu, samples)?;
        let alone = median(&alone);
        let speeds = together.into_iter().map(|time| (1024.0 * alone / time).min(1024.0)).collect();
        let how =
            format!("a computation beside another one on CPU {}, the other thread of its core", sibling.cpu);
        self.add("smt_speed_2", speeds, how);
        Ok(())
    }

    fn bandwidth(&mut self, places: &CpuPlaces, here: &CpuNeighbours) -> Result<(), String> {
        let llc_kb = if places.llc_kb > 0 { places.llc_kb } else { LLC_KB };
        let kb = (CACHES * llc_kb).min(memory_kb() / 4).min(ARRAYS_MAX_KB);
        self.told("llc_kb", places.llc_kb);
        let one = triad(&[here.cpu], kb, here.cpu)?;
        let alone = median(&one);
        self.add(
            "core_megabytes_per_s",
            one,
            format!("STREAM's triad of one thread, {} MB in arrays", kb >> 10),
        );
        let of_llc = places.within(here, CpuDistance::Llc);
        let of_node = places.within(here, CpuDistance::Node);
        if of_llc.len() == of_node.len() {
            self.lack(
                &["llc_megabytes_per_s"],
                "the node has one last-level cache: the node's figure says it",
            );
        } else {
            self.limit("llc_megabytes_per_s", &of_llc, kb, alone)?;
        }
        self.limit("node_megabytes_per_s", &of_node, kb, alone)?;
        match places.at(here, CpuDistance::Remote) {
            Some(far) => {
                let rates = triad(&[here.cpu], kb, far.cpu)?;
                let how = format!("a triad in memory that CPU {} touched first", far.cpu);
                self.add(
                    "remote_permille",
                    rates.into_iter().map(|rate| (1000.0 * rate / alone).min(1000.0)).collect(),
                    how,
                );
            }
            None => self.lack(&["remote_permille"], "no CPU of another node is here"),
        }
        let fitting = places.llc_kb / 4;
        if fitting == 0 || fitting <= 2 * places.core_kb {
            self.lack(
                &["cached_megabytes_per_s"],
                "no size lies between a core's own caches and the last one",
            );
            return Ok(());
        }
        let rates = triad(&[here.cpu], fitting, here.cpu)?;
        if median(&rates) > alone * 1.2 {
            self.add(
                "cached_megabytes_per_s",
                rates,
                format!("triads as for core_megabytes_per_s, with {fitting} KB in arrays"),
            );
        } else {
            self.lack(
                &["cached_megabytes_per_s"],
                "a quarter of the last-level cache is no faster than memory",
            );
        }
        Ok(())
    }

    /// What CPUs draw at once, if that is less than each draws alone.
    fn limit(&mut self, name: &'static str, cpus: &[usize], kb: u64, alone: f64) -> Result<(), String> {
        if cpus.len() < 2 {
            self.lack(&[name], "it takes a second CPU");
            return Ok(());
        }
        let each = (kb / cpus.len() as u64).max(1);
        let all = triad(cpus, each, cpus[0])?;
        if median(&all) < SHORT * alone * cpus.len() as f64 {
            self.add(name, all, format!("triads of {} CPUs at once", cpus.len()));
        } else {
            self.lack(&[name], "all CPUs at once draw as much as each alone: it is more than that");
        }
        Ok(())
    }

    fn refills(&mut self, places: &CpuPlaces, here: &CpuNeighbours, samples: usize) -> Result<(), String> {
        self.told("core_kb", places.core_kb);
        let of_core = if places.core_kb > 0 { places.core_kb / 2 } else { 128 };
        let of_llc = if places.llc_kb > 0 { places.llc_kb / 8 } else { 4 << 10 };
        let all = [
            (
                "refill_core_ns_per_kb",
                CpuDistance::Llc,
                of_core,
                "no other core of this last-level cache is here",
            ),
            (
                "refill_llc_ns_per_kb",
                CpuDistance::Node,
                of_llc,
                "no other last-level cache of this node is here",
            ),
            ("refill_node_ns_per_kb", CpuDistance::Remote, of_llc, "no CPU of another node is here"),
        ];
        for (name, distance, kb, lacks) in all {
            let Some(there) = places.at(here, distance) else {
                self.lack(&[name], lacks);
                continue;
            };
            let times = on(here.cpu, || moves([here.cpu, there.cpu], kb, samples))??;
            let how = format!(
                "a walk through {kb} KB after a move from CPU {} to {}, less the next walk",
                here.cpu, there.cpu
            );
            self.add(name, times, how);
        }
        Ok(())
    }

    fn wakeups(
        &mut self,
        places: &CpuPlaces,
        here: &CpuNeighbours,
        samples: usize,
        known: &KnownCosts,
    ) -> Result<(), String> {
        let near = known.wakeup.and_then(|(_, cpu)| places.all.iter().find(|place| place.cpu == cpu));
        let near = near.map(|place| here.distance(place));
        for (name, distance) in [
            ("wakeup_llc_ns", CpuDistance::Llc),
            ("wakeup_node_ns", CpuDistance::Node),
            ("wakeup_remote_ns", CpuDistance::Remote),
        ] {
            let (Some(there), Some((usual, _))) = (places.at(here, distance), known.wakeup) else {
                self.lack(&[name], "no CPU is so far away here");
                continue;
            };
            if near.is_some_and(|near| distance <= near) {
                self.lack(&[name], "it is part of wakeup_ns, which is of a CPU as far away");
                continue;
            }
            let far = wakeups(here.cpu, there.cpu, WakeeLoad::Idle, samples.min(400))?.in_waker;
            let beyond = far.into_iter().map(|time| time - known.syscall - usual).collect();
            self.add(name, beyond, format!("FUTEX_WAKE of a thread on CPU {}, less wakeup_ns", there.cpu));
        }
        match (places.at(here, CpuDistance::Remote), known.ipi) {
            (Some(far), Some(usual)) if near < Some(CpuDistance::Remote) => {
                let (arrivals, _) = gaps::interrupts(here.cpu, far.cpu, samples)?;
                let beyond = arrivals.into_iter().map(|time| time - known.syscall - usual).collect();
                self.add(
                    "ipi_remote_ns",
                    beyond,
                    format!("membarrier() until CPU {} stands still, less ipi_ns", far.cpu),
                );
            }
            _ => self.lack(&["ipi_remote_ns"], "no CPU of another node is here to compare with a near one"),
        }
        Ok(())
    }

    fn lines(&mut self, places: &CpuPlaces, here: &CpuNeighbours, samples: usize) -> Result<(), String> {
        for (name, distance) in [
            ("line_core_ns", CpuDistance::Core),
            ("line_llc_ns", CpuDistance::Llc),
            ("line_node_ns", CpuDistance::Node),
            ("line_remote_ns", CpuDistance::Remote),
        ] {
            match places.at(here, distance) {
                Some(there) => {
                    let times = hand_over(here.cpu, there.cpu, samples)?;
                    self.add(
                        name,
                        times,
                        format!("a word handed to CPU {} and back, half of that", there.cpu),
                    );
                }
                None => self.lack(&[name], "no CPU is so far away here"),
            }
        }
        let cpus = places.all.iter().map(|place| place.cpu).collect::<Vec<_>>();
        if cpus.len() > 1 {
            let times = contended_adds(&cpus)?;
            self.add(
                "contended_add_ns",
                times,
                format!("an atomic add while {} CPUs add to one word", cpus.len()),
            );
        }
        Ok(())
    }
}

/// Samples until there are enough or the time is over.
fn sampled(count: usize, mut one: impl FnMut() -> f64) -> Vec<f64> {
    let clock = Clock::start();
    let mut all = Vec::with_capacity(count);
    while all.len() < count && (all.len() < SAMPLES_MIN || clock.now() < TIME_MAX) {
        all.push(one());
    }
    all
}

/// What memory is left, KB.
fn memory_kb() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(256 << 10)
}

/// How long a computation takes on `here` alone, and beside one on `sibling`, ns.
fn computations(here: usize, sibling: usize, samples: usize) -> Result<(Vec<f64>, Vec<f64>), String> {
    let pace = on(here, ComputePace::measure)?;
    let over = AtomicBool::new(false);
    let timed = || {
        let clock = Clock::start();
        pace.work(Ns::from_ms(1), || false);
        clock.now().0 as f64
    };
    let alone = on(here, || sampled(samples, timed))?;
    let together = thread::scope(|scope| {
        let beside = scope.spawn(|| {
            pin(sibling).map(|()| {
                while !over.load(Ordering::Relaxed) {
                    pace.work(Ns::from_us(100), || false);
                }
            })
        });
        let together = on(here, || sampled(samples, timed));
        over.store(true, Ordering::Relaxed);
        beside.join().unwrap_or_else(|_| Err("a thread of the benchmark failed".to_string()))?;
        together
    })?;
    Ok((alone, together))
}

/// What all of `cpus` draw at once from arrays of so many KB each, MB/s; with one CPU, from memory that `home` touched first.
fn triad(cpus: &[usize], kb: u64, home: usize) -> Result<Vec<f64>, String> {
    const REPEATS: usize = 7;
    const PIECE: u64 = 1 << 20;
    let (barrier, sums) = (Barrier::new(cpus.len()), Mutex::new(vec![0.0; REPEATS]));
    let draw = |cpu: usize| {
        // Where one CPU cannot be had, the others must not wait for it.
        let pinned = pin(cpu);
        let near = (cpus.len() > 1 || home == cpu).then(|| Arrays::new(Some(kb)));
        let arrays = near.map_or_else(|| on(home, || Arrays::new(Some(kb))), Ok);
        let mut arrays = match arrays {
            Ok(arrays) => arrays,
            Err(_) => Arrays::new(Some(1)),
        };
        for repeat in 0..REPEATS {
            barrier.wait();
            let (clock, mut bytes) = (Clock::start(), 0);
            while clock.now() < DRAW {
                arrays.triad(PIECE, || false);
                bytes += PIECE;
            }
            let rate = bytes as f64 * 1000.0 / clock.now().0 as f64;
            sums.lock().unwrap_or_else(PoisonError::into_inner)[repeat] += rate;
        }
        pinned
    };
    thread::scope(|scope| {
        let threads = cpus.iter().map(|&cpu| scope.spawn(move || draw(cpu)));
        let threads = threads.collect::<Vec<_>>();
        let failed = |_| Err("a thread of the benchmark failed".to_string());
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(failed))
    })?;
    Ok(sums.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Words of a line.
const LINE: usize = 8;

/// Writes a word of each line of a working set of so many KB on one CPU, then on the other: what the first walk there takes beyond the
/// next one, ns a KB.
fn moves([from, to]: [usize; 2], kb: u64, samples: usize) -> Result<Vec<f64>, String> {
    let mut set = vec![0_u64; (kb as usize * 1024) / 8];
    let mut walk = || {
        let clock = Clock::start();
        set.iter_mut().step_by(LINE).for_each(|word| *word += 1);
        std::hint::black_box(&mut set);
        clock.now().0 as f64
    };
    let mut problem = None;
    let times = sampled(samples, || {
        let place = |cpu: usize| pin(cpu).err();
        problem = problem.take().or_else(|| place(from));
        walk();
        walk();
        problem = problem.take().or_else(|| place(to));
        let cold = walk();
        (cold - walk()) / kb as f64
    });
    problem.map_or(Ok(times), Err)
}

/// A word goes from one CPU to the other and back: half of that, ns.
fn hand_over(here: usize, there: usize, samples: usize) -> Result<Vec<f64>, String> {
    const IN_A_ROW: u64 = 200;
    let (word, over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            pin(there).map(|()| {
                while !over.load(Ordering::Relaxed) {
                    let seen = word.load(Ordering::Acquire);
                    if seen % 2 == 1 {
                        word.store(seen + 1, Ordering::Release);
                    }
                }
            })
        });
        let one = || {
            let clock = Clock::start();
            for _ in 0..IN_A_ROW {
                let mine = word.load(Ordering::Acquire) + 1;
                word.store(mine, Ordering::Release);
                // Whoever cannot run answers never.
                while word.load(Ordering::Acquire) == mine && !other.is_finished() {
                    std::hint::spin_loop();
                }
            }
            clock.now().0 as f64 / (2 * IN_A_ROW) as f64
        };
        let times = on(here, || sampled(samples, one));
        over.store(true, Ordering::Relaxed);
        other.join().unwrap_or_else(|_| Err("a thread of the benchmark failed".to_string()))?;
        times
    })
}

/// What an atomic add takes while all of `cpus` add to one word, ns.
fn contended_adds(cpus: &[usize]) -> Result<Vec<f64>, String> {
    const REPEATS: usize = 9;
    const ADDS: u64 = 1000;
    let (word, barrier) = (AtomicU64::new(0), Barrier::new(cpus.len()));
    let first = Mutex::new(Vec::new());
    let add = |cpu: usize| {
        let pinned = pin(cpu);
        for _ in 0..REPEATS {
            barrier.wait();
            let (clock, mut adds) = (Clock::start(), 0);
            while clock.now() < Ns::from_ms(10) {
                (0..ADDS).for_each(|_| {
                    word.fetch_add(1, Ordering::Relaxed);
                });
                adds += ADDS;
            }
            if cpu == cpus[0] {
                let each = clock.now().0 as f64 / adds as f64;
                first.lock().unwrap_or_else(PoisonError::into_inner).push(each);
            }
        }
        pinned
    };
    thread::scope(|scope| {
        let threads = cpus.iter().map(|&cpu| scope.spawn(move || add(cpu))).collect::<Vec<_>>();
        let failed = |_| Err("a thread of the benchmark failed".to_string());
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(failed))
    })?;
    Ok(first.into_inner().unwrap_or_else(PoisonError::into_inner))
}
