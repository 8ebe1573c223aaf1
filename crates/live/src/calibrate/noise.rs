//! What differs from time to time on this host: how long the same computation takes, when threads begin, what interrupts,
//! and what the kernel does in the background.
//!
//! Counters of `/proc` are read before and after everything else that is measured.
//!
//! Must not know: what is made of the figures.

use std::fs;
use std::hint::black_box;
use std::thread;

use rustix::time::{ClockId, clock_gettime};

use crate::clock::Clock;

/// One amount of chance, or a figure that tells how disturbed the host was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amount {
    /// Its name in machine files; of what these do not hold, a name of its own.
    pub name: &'static str,
    /// The amount, in the unit that its name says.
    pub value: u64,
    /// How it was measured.
    pub how: String,
}

/// What `/proc` counts, at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProcCounters {
    cpus: u64,
    /// Interrupts of devices, of all CPUs.
    devices: u64,
    /// Softirqs that devices raise.
    softirqs: u64,
    /// Time slices of the CPUs' own kworkers, and how long they ran, ns.
    kworkers: (u64, u64),
    /// Time that a hypervisor gave to others, and all time, in its unit.
    steal: (u64, u64),
}

impl ProcCounters {
    /// What is counted so far; what cannot be read counts as nothing.
    pub fn read() -> ProcCounters {
        let file = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let (interrupts, softirqs) = (file("/proc/interrupts"), file("/proc/softirqs"));
        ProcCounters {
            cpus: interrupts.lines().next().map_or(0, |head| head.split_whitespace().count() as u64),
            devices: rows(&interrupts).filter(|(name, _)| is_device(name)).map(|(_, count)| count).sum(),
            softirqs: rows(&softirqs).filter(|(name, _)| is_of_device(name)).map(|(_, count)| count).sum(),
            kworkers: kworkers(),
            steal: steal(&file("/proc/stat")),
        }
    }

    /// What came since `before`, `seconds` ago, as amounts, and what cannot be said, with the reason.
    pub fn since(
        &self,
        before: &ProcCounters,
        seconds: f64,
    ) -> (Vec<Amount>, Vec<(&'static str, &'static str)>) {
        let (mut amounts, mut lacking) = (Vec::new(), Vec::new());
        let mut add = |name, value: f64, how: String| amounts.push(Amount { name, value: value as u64, how });
        let cpus = self.cpus as f64;
        if self.cpus == 0 || seconds <= 0.0 {
            lacking.push(("device_irqs_per_s", "/proc/interrupts cannot be read"));
        } else {
            let [devices, softirqs] = [(self.devices, before.devices), (self.softirqs, before.softirqs)]
                .map(|(now, then)| now.saturating_sub(then));
            let how = format!(
                "/proc/interrupts: {devices} of devices on {cpus} CPUs in {seconds:.1} s, and {softirqs} softirqs of disks and networks"
            );
            add("device_irqs_per_s", (devices as f64 / seconds / cpus).ceil().max(1.0), how);
        }
        let [slices, ran] = [
            self.kworkers.0.saturating_sub(before.kworkers.0),
            self.kworkers.1.saturating_sub(before.kworkers.1),
        ];
        if slices == 0 || self.cpus == 0 {
            lacking.push(("kworker_period_ns", "no kworker of a CPU ran meanwhile"));
            lacking.push(("kworker_ns", "no kworker of a CPU ran meanwhile"));
        } else {
            let how = format!("/proc/PID/schedstat: {slices} times in {seconds:.1} s on {cpus} CPUs");
            add("kworker_period_ns", seconds * 1e9 * cpus / slices as f64, how.clone());
            add("kworker_ns", ran as f64 / slices as f64, how);
        }
        let [stolen, all] = [(self.steal.0, before.steal.0), (self.steal.1, before.steal.1)]
            .map(|(now, then)| now.saturating_sub(then));
        let permille = stolen as f64 * 1000.0 / all.max(1) as f64;
        add("steal_permille", permille, "/proc/stat: time that the hypervisor gave to others".to_string());
        (amounts, lacking)
    }
}

/// Rows of a table with a column for each CPU: the name, and the sum of the columns.
fn rows(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().skip(1).filter_map(|line| {
        let (name, counts) = line.split_once(':')?;
        let counts = counts.split_whitespace().map_while(|count| count.parse::<u64>().ok());
        Some((name.trim(), counts.fold(0, u64::saturating_add)))
    })
}

/// Interrupts that have a number are devices'; the architecture's own have letters.
fn is_device(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_of_device(name: &str) -> bool {
    ["NET_RX", "NET_TX", "BLOCK"].contains(&name)
}

/// The first line of `/proc/stat`: the eighth number is what was stolen.
fn steal(stat: &str) -> (u64, u64) {
    let numbers = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
    let numbers = numbers.take(8).map(|number| number.parse().unwrap_or(0)).collect::<Vec<u64>>();
    (numbers.get(7).copied().unwrap_or(0), numbers.iter().fold(0, |sum, &number| sum.saturating_add(number)))
}

/// Time slices and run time of the kworkers that belong to one CPU (`kworker/3:1`).
fn kworkers() -> (u64, u64) {
    let Ok(processes) = fs::read_dir("/proc") else { return (0, 0) };
    let of_process = |folder: fs::DirEntry| {
        let comm = fs::read_to_string(folder.path().join("comm")).ok()?;
        let number = comm.strip_prefix("kworker/")?.split(':').next()?;
        number.parse::<u32>().ok()?;
        let stat = fs::read_to_string(folder.path().join("schedstat")).ok()?;
        let mut numbers = stat.split_whitespace().map_while(|number| number.parse::<u64>().ok());
        let (ran, _, slices) = (numbers.next()?, numbers.next()?, numbers.next()?);
        Some((slices, ran))
    };
    let all = processes.flatten().filter_map(of_process);
    all.fold((0, 0), |sum: (u64, u64), one| (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1)))
}

/// How much CPU time the same computation of about a millisecond takes, ns each: what others have of the CPU does not count.
pub(super) fn computations(samples: usize) -> Vec<f64> {
    let compute = |rounds: u64| {
        let begin = cpu_time();
        black_box((0..rounds).fold(1_u64, |sum, round| {
            sum.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(black_box(round))
        }));
        cpu_time() - begin
    };
    const TRY: u64 = 100_000;
    let once = (0..5).map(|_| compute(TRY)).fold(f64::MAX, f64::min).max(1.0);
    let rounds = (TRY as f64 * 1e6 / once) as u64;
    (0..samples).map(|_| compute(rounds)).collect()
}

fn cpu_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// From before a thread is created until it runs, ns each.
pub(super) fn starts(samples: usize) -> Vec<f64> {
    let clock = Clock::start();
    let one = |_| {
        let begin = clock.now();
        let thread = thread::Builder::new().stack_size(64 << 10).spawn(move || clock.now());
        Some(thread.ok()?.join().ok()?.since(begin).0 as f64)
    };
    (0..samples).filter_map(one).collect()
}

/// The tenth and the nine tenths of sorted samples, and their middle; `None` of fewer than ten.
pub(super) fn spread(samples: &[f64]) -> Option<(f64, f64, f64)> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize];
    (sorted.len() >= 10).then(|| (at(0.1), at(0.5), at(0.9)))
}

/// Up to how many thousandths less or more something takes that is spread evenly, of which 80 % lie in `low..high`.
pub(super) fn permille((low, middle, high): (f64, f64, f64)) -> f64 {
    if middle > 0.0 { (high - low) / 1.6 / middle * 1000.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_devices_and_kworkers_did_is_told_apart_from_the_rest() {
        let text = "           CPU0       CPU1\n 24:  5  7  IO-APIC  5-edge  disk\n 25:  1  0  PCI-MSIX 3 net\n\
                    LOC:  100  200   Local timer interrupts\nERR:  3\n";
        assert_eq!(rows(text).filter(|(name, _)| is_device(name)).map(|(_, count)| count).sum::<u64>(), 13);
        assert_eq!(steal("cpu  10 0 20 70 0 0 0 25 0 0\ncpu0 1"), (25, 125));
        assert_eq!(steal(""), (0, 0));
        let before = ProcCounters { cpus: 2, devices: 10, softirqs: 0, kworkers: (5, 1_000), steal: (0, 0) };
        let after =
            ProcCounters { cpus: 2, devices: 50, softirqs: 9, kworkers: (25, 401_000), steal: (10, 1000) };
        let (amounts, lacking) = after.since(&before, 2.0);
        let values = amounts.iter().map(|amount| (amount.name, amount.value)).collect::<Vec<_>>();
        let expected = [
            ("device_irqs_per_s", 10),
            ("kworker_period_ns", 200_000_000),
            ("kworker_ns", 20_000),
            ("steal_permille", 10),
        ];
        assert_eq!(values, expected);
        assert!(lacking.is_empty());
        let (_, lacking) = ProcCounters::default().since(&ProcCounters::default(), 2.0);
        assert_eq!(lacking.len(), 3);
    }

    #[test]
    fn an_even_spread_gives_its_amount_back() {
        let samples = (0..=1000).map(|number| 900.0 + f64::from(number) * 0.2).collect::<Vec<_>>();
        let amount = permille(spread(&samples).expect("many"));
        assert!((99.0..101.0).contains(&amount), "{amount}");
        assert_eq!(spread(&[1.0; 9]), None);
    }
}
