//! What kernel work costs on this host, by benchmarks that a user can run.
//!
//! Each figure is the median of many samples, with the spread of the middle 80 %. A sample that something else disturbed
//! is long, so on a busy host medians of short work hold and those of long work do not: the spread tells.
//!
//! Must not know: machine files, who uses the figures.

mod gaps;
mod noise;
mod places;
mod sharing;
mod wakeups;

use std::sync::mpsc;
use std::thread;

use rustix::io::{read, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::clock::Clock;
use crate::system::{ThreadScheduling, set_scheduling};
pub use noise::Amount;
use noise::ProcCounters;
use sharing::KnownCosts;
pub use sharing::SharingFigure;
use wakeups::{WakeeLoad, Wakeups, ping_pong, sleeps, waits, wakeups};

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct HostMeasurement {
    /// The name of the cost in machine files; of what these do not hold, a name of its own.
    pub name: &'static str,
    /// Samples.
    pub samples: usize,
    /// The median, ns.
    pub median_ns: f64,
    /// A tenth of the samples are below, ns.
    pub low_ns: f64,
    /// A tenth of the samples are above, ns.
    pub high_ns: f64,
    /// How it was measured.
    pub how: &'static str,
}

/// All figures of a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calibration {
    /// What was measured.
    pub measured: Vec<HostMeasurement>,
    /// Amounts of chance.
    pub chance: Vec<Amount>,
    /// What sharing costs.
    pub sharing: Vec<SharingFigure>,
    /// What was not, and why: (name, reason).
    pub lacking: Vec<(&'static str, &'static str)>,
}

/// How to measure.
#[derive(Clone, Copy, Debug)]
pub struct CalibrationSettings {
    /// The CPU of wakers.
    pub here: usize,
    /// The CPU of those that are woken from another one; none on a machine with one CPU.
    pub there: Option<usize>,
    /// Samples of each figure.
    pub samples: usize,
    /// Ticks a second, by which ticks are told from other interrupts.
    pub hz: u64,
}

/// Measures everything that can be measured: some seconds. What sharing costs is measured on `cpus`, the first of them and those that
/// share something with it; `tell` hears what is measured just now.
///
/// # Errors
/// A CPU cannot be used, or a thread not created.
pub fn calibrate(
    settings: &CalibrationSettings,
    cpus: &[usize],
    tell: &dyn Fn(&str),
) -> Result<Calibration, String> {
    tell("kernel work");
    let mut all = Calibration::default();
    let (begin, before) = (Clock::start(), ProcCounters::read());
    let CalibrationSettings { here, samples, hz, .. } = *settings;
    let syscall =
        all.add("syscall_ns", "getppid(), a hundred in a row", on(here, || system_calls(samples))?, 0.0);
    let (sent, received) = messages(here, settings.there.unwrap_or(here), samples)?;
    let how = "write() of 100 bytes into a stream socket that another CPU reads, 250 in a row, without the system call";
    all.add("send_ns", how, sent, syscall);
    let how = "read() of 100 bytes that another CPU wrote into a stream socket, 250 in a row, without the system call";
    all.add("receive_ns", how, received, syscall);
    let (local_wakeups, turns) = ping_pong(here, samples)?;
    let waits = median(&on(here, || waits(samples))?);
    let how = "FUTEX_WAKE of a thread that sleeps on the caller's CPU, without the system call";
    all.add("local_wakeup_ns", how, local_wakeups.clone(), syscall);
    let how = "from FUTEX_WAKE's return until the other thread of that CPU runs, without a FUTEX_WAIT that does not sleep";
    all.add("context_switch_ns", how, turns, waits);
    let interrupt = match settings.there {
        Some(there) => all.remote(here, there, samples, syscall)?,
        None => {
            all.lack_remote();
            0.0
        }
    };
    if let Some(wakeup) = all.median_of("wakeup_ns") {
        let how =
            "local_wakeup_ns less wakeup_ns: what a waker does not do that leaves the wakeup to another CPU";
        all.add("activate_ns", how, local_wakeups, syscall + wakeup);
    } else {
        all.lack(&["activate_ns"], "it takes a wakeup of another CPU to compare with");
    }
    let watched = settings.there.unwrap_or(here);
    let ticks = on(watched, || gaps::ticks(samples, hz))?;
    all.add("tick_ns", "what interrupts a busy thread once a tick, less interrupt_ns", ticks, interrupt);
    let timers = on(watched, || gaps::timers(samples))??;
    all.add(
        "timer_ns",
        "what interrupts a busy thread when a timer expires that wakes no task, less interrupt_ns",
        timers,
        interrupt,
    );
    let (with, without) = sleeps(here, samples)?;
    let prompt = median(&without);
    all.add("timer_slack_ns", "lateness of nanosleep(), less that with a slack of 1 ns", with, prompt);
    all.add("fork_ns", "creating a thread, with its stack", on(here, || threads(samples))?, 0.0);
    let gaps = on(watched, || gaps::others(samples, hz))?;
    all.measure_chance(here, samples, &gaps)?;
    let (amounts, lacking) = ProcCounters::read().since(&before, begin.now().as_secs_f64());
    all.chance.extend(amounts);
    all.lacking.extend(lacking);
    all.lack(
        &["exit_ns", "scan_cpu_ns", "newidle_ns", "softirq_ns", "blocked_cpu_ns", "blocked_queue_ns"],
        INSIDE,
    );
    all.measure_sharing(settings, cpus, tell)?;
    all.lack(&["migrate_ns", "balance_cpu_ns", "governor_cpu_ns", "frequency_switch_ns"], INSIDE);
    Ok(all)
}

/// Why most of what the kernel does while it decides is not measured.
const INSIDE: &str = "no program outside the kernel sees it";

impl Calibration {
    /// Adds a figure, each of its samples less what is known of its parts. Returns its median.
    fn add(&mut self, name: &'static str, how: &'static str, mut samples: Vec<f64>, parts: f64) -> f64 {
        if samples.is_empty() {
            self.lacking.push((name, "nothing of the kind was seen"));
            return 0.0;
        }
        samples.iter_mut().for_each(|sample| *sample = (*sample - parts).max(0.0));
        samples.sort_by(f64::total_cmp);
        if samples[samples.len() / 2] == 0.0 {
            self.lacking.push((name, "it is lost in how much its parts vary"));
            return 0.0;
        }
        let at = |share: f64| samples[((samples.len() - 1) as f64 * share) as usize];
        let (low_ns, median_ns, high_ns) = (at(0.1), at(0.5), at(0.9));
        self.measured.push(HostMeasurement { name, samples: samples.len(), median_ns, low_ns, high_ns, how });
        median_ns
    }

    /// What varies from time to time; `gaps`: what interrupted a busy thread and was no tick, ns each.
    fn measure_chance(&mut self, here: usize, samples: usize, gaps: &[f64]) -> Result<(), String> {
        let computations = on(here, || noise::computations(samples))?;
        let how = "80 % of the CPU times of one computation of 1 ms";
        self.add_amount("computation_permille", noise::spread(&computations).map(noise::permille), how);
        let starts = on(here, || noise::starts(samples))?;
        let spread = noise::spread(&starts).map(|(low, _, high)| high - low);
        self.add_amount("start_ns", spread, "from a tenth to nine tenths of threads' beginnings");
        let of_cost =
            |figure: &HostMeasurement| noise::permille((figure.low_ns, figure.median_ns, figure.high_ns));
        let costs = ["syscall_ns", "wakeup_ns", "context_switch_ns", "send_ns", "receive_ns", "fork_ns"];
        let costs = self.measured.iter().filter(|figure| costs.contains(&figure.name));
        let spreads = costs.map(of_cost).collect::<Vec<_>>();
        let middle = (!spreads.is_empty()).then(|| median(&spreads).min(1000.0));
        self.add_amount("kernel_permille", middle, "the middle of how costs above are spread");
        let length = (!gaps.is_empty()).then(|| gaps.iter().sum::<f64>() / gaps.len() as f64);
        self.add_amount(
            "device_irq_ns",
            length,
            "the mean of what interrupted a busy thread and was no tick",
        );
        let inside = "nothing to measure: any phase, any CPU";
        self.lack(&["phase_permille", "first_cpu_permille"], inside);
        self.lack(&["steal_per_s", "steal_ns"], "a guest is told nothing of it");
        Ok(())
    }

    fn measure_sharing(
        &mut self,
        settings: &CalibrationSettings,
        cpus: &[usize],
        tell: &dyn Fn(&str),
    ) -> Result<(), String> {
        let known = KnownCosts {
            wakeup: self.median_of("wakeup_ns").zip(settings.there),
            syscall: self.median_of("syscall_ns").unwrap_or(0.0),
            ipi: self.median_of("ipi_ns"),
        };
        let found = sharing::sharing(cpus, settings.samples, &known, tell)?;
        self.sharing = found.figures;
        self.lacking.extend(found.lacking);
        Ok(())
    }

    fn add_amount(&mut self, name: &'static str, value: Option<f64>, how: &str) {
        match value {
            Some(value) => {
                self.chance.push(Amount { name, value: value.round() as u64, how: how.to_string() });
            }
            None => self.lack(&[name], "nothing of the kind was seen"),
        }
    }

    /// The median of a figure that was measured.
    fn median_of(&self, name: &str) -> Option<f64> {
        self.measured.iter().find(|figure| figure.name == name).map(|figure| figure.median_ns)
    }

    fn lack(&mut self, names: &[&'static str], why: &'static str) {
        self.lacking.extend(names.iter().map(|&name| (name, why)));
    }

    fn lack_remote(&mut self) {
        let names = ["wakeup_ns", "interrupt_ns", "ipi_ns", "idle_exit_ns"];
        self.lack(&names, "it takes a second CPU");
    }

    /// What goes between two CPUs. Returns what an interrupt costs.
    fn remote(&mut self, here: usize, there: usize, samples: usize, syscall: f64) -> Result<f64, String> {
        let Wakeups { in_waker, to_wakee } = wakeups(here, there, WakeeLoad::Idle, samples)?;
        self.add(
            "wakeup_ns",
            "FUTEX_WAKE of a thread that sleeps on another CPU, without the system call",
            in_waker,
            syscall,
        );
        let busy = wakeups(here, there, WakeeLoad::Busy, samples)?.to_wakee;
        let of_busy = median(&busy);
        let how =
            "from before FUTEX_WAKE until the wakee runs on another CPU that computed in the idle class";
        self.add("wakeup_to_run_ns", how, busy, 0.0);
        let (arrivals, lengths) = gaps::interrupts(here, there, samples)?;
        let how = "gap in a busy thread's clock when membarrier() interrupts it";
        let interrupt = self.add("interrupt_ns", how, lengths, 0.0);
        let how = "from before membarrier() until the busy thread on another CPU stands still, without the system call";
        self.add("ipi_ns", how, arrivals, syscall);
        let how = "as wakeup_to_run_ns, of a CPU that slept, less that of one that was busy";
        self.add("idle_exit_ns", how, to_wakee, of_busy);
        Ok(interrupt)
    }
}

/// Does something on a CPU, by a thread of its own.
fn on<T: Send>(cpu: usize, work: impl FnOnce() -> T + Send) -> Result<T, String> {
    thread::scope(|scope| {
        let thread = scope.spawn(|| pin(cpu).map(|()| work()));
        thread.join().unwrap_or_else(|_| Err("a thread of the benchmark failed".to_string()))
    })
}

/// Keeps the calling thread on a CPU, and at the lowest nice level that it gets, for others disturb it less there.
fn pin(cpu: usize) -> Result<(), String> {
    let mut set = CpuSet::new();
    if cpu < CpuSet::MAX_CPU {
        set.set(cpu);
    }
    let _ = set_scheduling(ThreadScheduling { nice: -20, ..ThreadScheduling::default() });
    sched_setaffinity(None, &set).map_err(|error| format!("cannot run on CPU {cpu}: {error}"))
}

/// The middle one; 0 of none.
fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// System calls that do next to nothing, ns each.
fn system_calls(samples: usize) -> Vec<f64> {
    const IN_A_ROW: u32 = 100;
    let clock = Clock::start();
    let one = |_| {
        let begin = clock.now();
        for _ in 0..IN_A_ROW {
            let _ = rustix::process::getppid();
        }
        clock.now().since(begin).0 as f64 / f64::from(IN_A_ROW)
    };
    (0..samples).map(one).collect()
}

/// Messages into a socket by a thread on `here`, and out of it by one on `there`, in turn, so that nobody waits for a
/// message; ns each. What one CPU gets memory for and another one gives back takes longer than within one. None where there
/// are no sockets.
///
/// # Errors
/// A thread cannot be placed.
fn messages(here: usize, there: usize, samples: usize) -> Result<(Vec<f64>, Vec<f64>), String> {
    let pair = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::empty(), None);
    let Ok((from, to)) = pair else { return Ok((Vec::new(), Vec::new())) };
    let ((full, is_full), (empty, is_empty)) = (mpsc::channel(), mpsc::channel());
    thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let turn = |()| {
                let read = timed(|message| read(&from, message).is_ok());
                empty.send(()).ok().and(read)
            };
            pin(there).map(|()| is_full.iter().map_while(turn).collect())
        });
        let sent = on(here, move || {
            let turn = |_| {
                let written = timed(|message| write(&to, message).is_ok());
                full.send(()).and(is_empty.recv().map_err(|_| mpsc::SendError(()))).ok().and(written)
            };
            (0..samples).map_while(turn).collect()
        });
        let received = reader.join().unwrap_or_else(|_| Err("a thread of the benchmark failed".to_string()));
        Ok((sent?, received?))
    })
}

/// Copies of a message in a row, nearly as many as a socket takes, ns each; `None` if one fails.
fn timed(copy: impl Fn(&mut [u8]) -> bool) -> Option<f64> {
    const IN_A_ROW: u32 = 250;
    let (clock, mut message) = (Clock::start(), [b'-'; 100]);
    let begin = clock.now();
    let all = (0..IN_A_ROW).all(|_| copy(&mut message));
    all.then(|| clock.now().since(begin).0 as f64 / f64::from(IN_A_ROW))
}

/// Creations of threads, ns each.
fn threads(samples: usize) -> Vec<f64> {
    let clock = Clock::start();
    let one = |_| {
        let begin = clock.now();
        let thread = thread::Builder::new().stack_size(64 << 10).spawn(|| ());
        let took = clock.now().since(begin);
        thread.ok()?.join().ok().map(|()| took.0 as f64)
    };
    (0..samples).filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_medians_less_their_parts() {
        let mut all = Calibration::default();
        let samples = (1..=11).map(|sample| f64::from(sample) * 100.0).collect::<Vec<_>>();
        assert_eq!(all.add("ipi_ns", "", samples, 150.0), 450.0);
        let figure = &all.measured[0];
        assert_eq!((figure.samples, figure.low_ns, figure.high_ns), (11, 50.0, 850.0));
        assert_eq!(all.add("tick_ns", "", Vec::new(), 0.0), 0.0);
        assert_eq!(all.lacking, [("tick_ns", "nothing of the kind was seen")]);
    }

    #[test]
    fn every_figure_is_measured_or_said_to_lack() {
        let allowed = rustix::thread::sched_getaffinity(None).expect("this thread's CPUs");
        let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
        let here = cpus.next().expect("a CPU");
        let settings = CalibrationSettings { here, there: cpus.next(), samples: 20, hz: 250 };
        let cpus = [Some(here), settings.there].into_iter().flatten().collect::<Vec<_>>();
        let all = calibrate(&settings, &cpus, &|_| ()).expect("figures");
        let mut names = all.measured.iter().map(|figure| figure.name).collect::<Vec<_>>();
        names.extend(all.lacking.iter().map(|(name, _)| *name));
        for cost in fairlab_sim::machine::KernelCosts::default().table() {
            assert_eq!(names.iter().filter(|name| **name == cost.name).count(), 1, "{}: {all:?}", cost.name);
        }
        names.extend(all.chance.iter().map(|amount| amount.name));
        for source in fairlab_sim::machine::Chance::USUAL.table() {
            assert_eq!(names.iter().filter(|name| **name == source.name).count(), 1, "{}", source.name);
        }
        names.extend(all.sharing.iter().map(|figure| figure.name));
        for figure in fairlab_sim::machine::Sharing::NONE.table() {
            assert_eq!(
                names.iter().filter(|name| **name == figure.name).count(),
                1,
                "{}: {all:?}",
                figure.name
            );
        }
        let in_order = |figure: &SharingFigure| figure.low <= figure.value && figure.value <= figure.high;
        assert!(all.sharing.iter().all(in_order), "{all:?}");
        assert!(
            all.measured
                .iter()
                .all(|figure| figure.low_ns <= figure.median_ns && figure.median_ns <= figure.high_ns)
        );
    }
}
