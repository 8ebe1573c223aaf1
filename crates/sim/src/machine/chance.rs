//! Where chance comes from: what differs from run to run on a real machine, and how much of it there is.
//!
//! Each source draws from streams of its own by name, so that a run is still a function of its seed. An amount of 0 switches
//! a source off and costs nothing.
//!
//! Must not know: who draws, and when.

use fairlab_event::Ns;

use crate::rng::RandomStream;

/// Declares every source once: its field, its name, its default, its limit, what it does, and where the default comes from.
macro_rules! sources {
    ($($field:ident, $default:literal, $limit:literal, $about:literal, $source:literal;)*) => {
        /// How much of each source of chance a machine has.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Chance { $(#[doc = $about] pub $field: u64,)* }

        impl Chance {
            /// No chance at all: every run of a workload that draws nothing itself is one course of events.
            pub const NONE: Chance = Chance { $($field: 0,)* };

            /// What a machine has where nothing else is said.
            pub const USUAL: Chance = Chance { $($field: $default,)* };

            /// Every source with its name, amount, what it does and the source of its default.
            pub fn table(&self) -> Vec<ChanceSource> {
                vec![$(ChanceSource {
                    name: stringify!($field), value: self.$field, default: $default, limit: $limit, about: $about, source: $source,
                },)*]
            }

            /// Sets the amount called `name`.
            ///
            /// # Errors
            /// There is no such source, or the amount is beyond its limit: one line that says so.
            pub fn set(&mut self, name: &str, value: u64) -> Result<(), String> {
                let (place, limit) = match name {
                    $(stringify!($field) => (&mut self.$field, $limit),)*
                    _ => return Err(format!("unknown source of chance '{name}'")),
                };
                if value > limit {
                    return Err(format!("{name} = {value} is more than {limit}"));
                }
                *place = value;
                Ok(())
            }
        }
    };
}

/// One line of the table of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChanceSource {
    /// Its name in machine files; the unit comes last.
    pub name: &'static str,
    /// How much of it this machine has.
    pub value: u64,
    /// How much a machine has where nothing else is said.
    pub default: u64,
    /// The most that a machine can have.
    pub limit: u64,
    /// What it does.
    pub about: &'static str,
    /// Where the default comes from.
    pub source: &'static str,
}

sources! {
    phase_permille, 1000, 1000,
        "The run begins up to this part of a tick after a tick; quotas' periods and emulators' turns begin as much apart",
        "nothing ties a program's start to the tick";
    first_cpu_permille, 1000, 1000,
        "In this part of all runs the first thread begins on any CPU, in the others on CPU 0",
        "a shell runs wherever it was last woken";
    start_ns, 20_000, 1_000_000_000,
        "A new thread computes up to this long before its program begins: page faults, its stack",
        "measured with 'fairlab calibrate' on a virtual machine with 2 CPUs: from a tenth to nine tenths of new threads";
    computation_permille, 10, 900,
        "Each computation takes up to this part less or more",
        "order of magnitude: measured with 'fairlab calibrate' on a virtual machine with 2 CPUs, and benchmarks on quiet servers \
         repeat to 0.5 to 2 %";
    kernel_permille, 100, 1000,
        "Each piece of kernel work takes up to this part less or more",
        "booted kernels: between events that follow each other in a recorded hackbench (6.1) most lie within a tenth";
    device_irqs_per_s, 10, 1_000_000,
        "Interrupts of devices on each CPU in a second",
        "/proc/interrupts of a virtual machine with 2 CPUs over 30 s: 17 a second, nearly all on one of them";
    device_irq_ns, 5_000, 100_000_000,
        "What an interrupt of a device does takes this long on average, up to twice as long",
        "order of magnitude: the handler of a disk or network card, and its softirq";
    kworker_period_ns, 200_000_000, 3_600_000_000_000,
        "How long the kworker of each CPU sleeps on average, from half as long to half as long again; 0: there are none",
        "/proc of a virtual machine with 2 CPUs over 30 s: each CPU's kworkers ran 4 to 7 times a second";
    kworker_ns, 20_000, 100_000_000,
        "How long it works then on average, up to twice as long",
        "the same: 21 us a time on one CPU, 57 on the other";
    steal_per_s, 0, 100_000,
        "So often in a second a host takes each busy CPU away from its guest, which is told nothing of it",
        "a machine of its own, or a guest whose CPUs nobody else uses";
    steal_ns, 0, 1_000_000_000,
        "For so long it does so on average, up to twice as long",
        "the same";
}

impl Chance {
    /// What a machine has whose devices and kernel threads are not there: the phases, and how long kernel work takes.
    pub const fn emulated(kernel_permille: u64) -> Chance {
        Chance { phase_permille: Chance::USUAL.phase_permille, kernel_permille, ..Chance::NONE }
    }

    /// Whether nothing is left to chance.
    pub fn is_none(&self) -> bool {
        *self == Chance::NONE
    }

    /// By how much of `period` something begins later than its start, drawn from the stream of that name.
    pub fn phase(&self, seed: u64, stream: &str, period: Ns) -> Ns {
        let most = part_of(period, self.phase_permille);
        if most == 0 { Ns::ZERO } else { Ns(RandomStream::new(seed, stream).below(most)) }
    }

    /// The CPU, of so many, on which the first thread begins.
    pub fn first_cpu(&self, seed: u64, nr_cpus: usize) -> usize {
        if self.first_cpu_permille == 0 {
            return 0;
        }
        let mut stream = RandomStream::new(seed, "first cpu");
        let anywhere = stream.below(1000) < self.first_cpu_permille;
        if anywhere { stream.below(nr_cpus as u64) as usize } else { 0 }
    }
}

/// So many thousandths of a time, ns.
fn part_of(time: Ns, permille: u64) -> u64 {
    (u128::from(time.0) * u128::from(permille) / 1000) as u64
}

/// A time that is up to so many thousandths less or more.
#[inline]
pub fn vary(time: Ns, permille: u64, stream: &mut RandomStream) -> Ns {
    let most = part_of(time, permille);
    Ns(time.0.saturating_sub(most).saturating_add(stream.below(most.saturating_mul(2).saturating_add(1))))
}

/// A time from nothing to twice `mean`.
pub fn around(mean: Ns, stream: &mut RandomStream) -> Ns {
    vary(mean, 1000, stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_can_be_set_by_its_name_up_to_its_limit() {
        for source in Chance::USUAL.table() {
            let mut chance = Chance::NONE;
            assert_eq!(chance.set(source.name, source.limit), Ok(()), "{}", source.name);
            let changed = chance.table().into_iter().filter(|line| line.value != 0);
            assert_eq!(changed.map(|line| line.name).collect::<Vec<_>>(), [source.name]);
            assert!(chance.set(source.name, source.limit + 1).is_err(), "{}", source.name);
            // A host that takes nothing away is the usual one.
            let is_off = source.name.starts_with("steal_");
            assert!(source.default <= source.limit && (source.default > 0) != is_off, "{}", source.name);
            assert!(!source.about.is_empty() && !source.source.is_empty(), "{}", source.name);
        }
        let mut none = Chance::NONE;
        assert!(none.set("nonsense", 1).is_err_and(|problem| problem.contains("'nonsense'")));
    }

    #[test]
    fn times_vary_by_so_much_and_evenly() {
        let mut stream = RandomStream::new(1, "test");
        let times = (0..5000).map(|_| vary(Ns(1000), 100, &mut stream).0).collect::<Vec<_>>();
        assert_eq!((times.iter().min(), times.iter().max()), (Some(&900), Some(&1100)));
        let mean = times.iter().sum::<u64>() / times.len() as u64;
        assert!((996..=1004).contains(&mean), "{mean}");
        assert_eq!(vary(Ns(777), 0, &mut stream), Ns(777));
        let longest = vary(Ns(u64::MAX), 1000, &mut stream);
        assert!(longest <= Ns(u64::MAX));
    }

    #[test]
    fn phases_and_first_cpus_are_the_seeds_and_reach_everywhere() {
        let tick = Ns::from_ms(4);
        let phases = (0..200).map(|seed| Chance::USUAL.phase(seed, "begin", tick)).collect::<Vec<_>>();
        assert!(phases.iter().all(|&phase| phase < tick));
        assert!(phases.iter().any(|&phase| phase < Ns::from_ms(1)));
        assert!(phases.iter().any(|&phase| phase > Ns::from_ms(3)));
        assert_eq!(Chance::NONE.phase(7, "begin", tick), Ns::ZERO);
        let mut cpus = (0..200).map(|seed| Chance::USUAL.first_cpu(seed, 8)).collect::<Vec<_>>();
        cpus.sort_unstable();
        cpus.dedup();
        assert_eq!(cpus, (0..8).collect::<Vec<_>>());
        assert_eq!(Chance::NONE.first_cpu(7, 8), 0);
    }
}
