//! What CPUs share, and for how long two of some tasks ran on one core, cache or node while another was empty.
//!
//! Each level has two clocks: one runs while a domain of it is empty, one while that is not known. Tasks of a name note the
//! clocks when two of them meet in a domain, and when they part: nothing is done for them in between.
//!
//! Must not know: whose tasks these are.

use std::collections::BTreeMap;

use fairlab_event::{Cpu, Ns};

use crate::counts::{NamePlacement, StackedTime};

/// Where a CPU is: its core, last-level cache and node, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuDomainNumbers {
    /// Its core.
    pub core: u32,
    /// Its last-level cache.
    pub llc: u32,
    /// Its node.
    pub node: u32,
    /// Its capacity, of 1024.
    pub capacity: u32,
}

impl CpuDomainNumbers {
    const fn levels(self) -> [u32; LEVELS] {
        [self.core, self.llc, self.node]
    }
}

/// Core, cache, node.
pub(super) const LEVELS: usize = 3;

/// The CPUs of a machine, in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachinePlaces {
    of_cpu: Vec<[u32; LEVELS]>,
    /// How many domains each level has.
    domains: [usize; LEVELS],
    /// Whether two tasks can run in one domain while another is empty: it has two domains, and one of them has two CPUs.
    tells: [bool; LEVELS],
    /// The kind of each CPU, where there are several: its capacity, or how many threads its core has.
    kinds: Vec<String>,
}

impl MachinePlaces {
    /// The machine whose CPUs are there, by number.
    pub fn new(cpus: impl IntoIterator<Item = CpuDomainNumbers>) -> MachinePlaces {
        let cpus = cpus.into_iter().collect::<Vec<_>>();
        let kinds = kinds_of(&cpus);
        let mut of_cpu = cpus.into_iter().map(CpuDomainNumbers::levels).collect::<Vec<_>>();
        let (mut domains, mut tells) = ([0; LEVELS], [false; LEVELS]);
        for level in 0..LEVELS {
            let mut numbers = of_cpu.iter().map(|place| place[level]).collect::<Vec<_>>();
            numbers.sort_unstable();
            numbers.dedup();
            for place in &mut of_cpu {
                place[level] = numbers.binary_search(&place[level]).unwrap_or(0) as u32;
            }
            domains[level] = numbers.len();
            tells[level] = numbers.len() > 1 && of_cpu.len() > numbers.len();
        }
        MachinePlaces { of_cpu, domains, tells, kinds }
    }

    /// What CPU time that was spent on each CPU, by number, comes to on each kind of CPU, cache and node of which there are several;
    /// nothing where none was counted.
    pub(super) fn sums(&self, of_cpu: &[u64]) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::<String, u64>::new();
        if of_cpu.is_empty() {
            return sums;
        }
        let mut add = |place: String, time: u64| {
            let sum = sums.entry(place).or_default();
            *sum = sum.saturating_add(time);
        };
        for (cpu, [_, llc, node]) in self.of_cpu.iter().enumerate() {
            let time = of_cpu.get(cpu).copied().unwrap_or(0);
            self.kinds.get(cpu).into_iter().for_each(|kind| add(kind.clone(), time));
            for (name, number, domains) in [("llc", llc, self.domains[1]), ("node", node, self.domains[2])] {
                if domains > 1 {
                    add(format!("{name}{number}"), time);
                }
            }
        }
        sums
    }

    /// How many CPUs there are.
    pub(crate) fn cpus(&self) -> usize {
        self.of_cpu.len()
    }

    /// How far a move is: 0 between threads of a core, 1 within a cache, 2 within a node, 3 beyond; `None` where a CPU is unknown.
    pub(super) fn distance(&self, from: Cpu, to: Cpu) -> Option<usize> {
        let (from, to) = (self.of_cpu.get(from.index())?, self.of_cpu.get(to.index())?);
        let shared = (0..LEVELS).find(|&level| from[level] == to[level]);
        Some(shared.unwrap_or(LEVELS))
    }

    /// Which distances of moves there are on this machine.
    pub(super) fn distances(&self) -> [bool; LEVELS + 1] {
        let [cores, llcs, nodes] = self.domains;
        [self.of_cpu.len() > cores, cores > llcs, llcs > nodes, nodes > 1]
    }
}

/// The kind of each CPU; nothing where all are alike.
fn kinds_of(cpus: &[CpuDomainNumbers]) -> Vec<String> {
    let threads = |of: &CpuDomainNumbers| cpus.iter().filter(|cpu| cpu.core == of.core).count();
    let by = |name: &str, value: &dyn Fn(&CpuDomainNumbers) -> usize| {
        let values = cpus.iter().map(value).collect::<Vec<_>>();
        let differ = values.windows(2).any(|two| two[0] != two[1]);
        let named = values.iter().map(|value| format!("{name}{value}"));
        differ.then(|| named.collect::<Vec<_>>())
    };
    by("capacity", &|cpu| cpu.capacity as usize).or_else(|| by("threads", &threads)).unwrap_or_default()
}

/// What a CPU does, as far as emptiness goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CpuOccupancy {
    #[default]
    Idle,
    Busy,
    /// Nothing is known of it.
    Unknown,
}

/// Which domains are empty, and for how long one was.
#[derive(Clone, Debug, Default)]
pub(super) struct Emptiness {
    places: MachinePlaces,
    cpus: Vec<CpuOccupancy>,
    levels: [DomainEmptiness; LEVELS],
    now: Ns,
}

#[derive(Clone, Debug, Default)]
struct DomainEmptiness {
    /// CPUs of each domain that are busy, and CPUs whose state is unknown.
    counts: Vec<(u32, u32)>,
    empty: u32,
    perhaps_empty: u32,
    clocks: EmptinessClocks,
}

/// For how long a domain was empty, and for how long it is not known whether one was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct EmptinessClocks {
    empty: u64,
    unknown: u64,
}

impl DomainEmptiness {
    fn count(&mut self, domain: usize, adds: bool) {
        let (empty, perhaps) = match self.counts[domain] {
            (0, 0) => (1, 0),
            (0, _) => (0, 1),
            _ => (0, 0),
        };
        match adds {
            true => (self.empty, self.perhaps_empty) = (self.empty + empty, self.perhaps_empty + perhaps),
            false => (self.empty, self.perhaps_empty) = (self.empty - empty, self.perhaps_empty - perhaps),
        }
    }
}

impl Emptiness {
    pub(super) fn new(places: MachinePlaces, now: Ns) -> Emptiness {
        let domains = |count: usize| DomainEmptiness {
            counts: vec![(0, 0); count],
            empty: count as u32,
            ..DomainEmptiness::default()
        };
        Emptiness {
            cpus: vec![CpuOccupancy::Idle; places.of_cpu.len()],
            levels: places.domains.map(domains),
            places,
            now,
        }
    }

    pub(super) const fn places(&self) -> &MachinePlaces {
        &self.places
    }

    pub(super) fn pass_time(&mut self, to: Ns) {
        let passed = to.since(self.now).0;
        if passed == 0 {
            return;
        }
        for level in &mut self.levels {
            if level.empty > 0 {
                level.clocks.empty = level.clocks.empty.saturating_add(passed);
            } else if level.perhaps_empty > 0 {
                level.clocks.unknown = level.clocks.unknown.saturating_add(passed);
            }
        }
        self.now = to;
    }

    /// What a CPU does from now on.
    pub(super) fn sees(&mut self, cpu: Cpu, seen: CpuOccupancy) {
        let Some(before) = self.cpus.get_mut(cpu.index()) else { return };
        let before = std::mem::replace(before, seen);
        if before == seen {
            return;
        }
        let place = self.places.of_cpu[cpu.index()];
        for (level, domain) in self.levels.iter_mut().zip(place) {
            let domain = domain as usize;
            level.count(domain, false);
            let counts = &mut level.counts[domain];
            match before {
                CpuOccupancy::Idle => {}
                CpuOccupancy::Busy => counts.0 -= 1,
                CpuOccupancy::Unknown => counts.1 -= 1,
            }
            match seen {
                CpuOccupancy::Idle => {}
                CpuOccupancy::Busy => counts.0 += 1,
                CpuOccupancy::Unknown => counts.1 += 1,
            }
            level.count(domain, true);
        }
    }
}

/// Where the tasks of a name run.
#[derive(Clone, Debug, Default)]
pub(super) struct Colocation {
    running: u32,
    /// Since when two of them run.
    since: Ns,
    several: u64,
    levels: [ColocatedLevel; LEVELS],
}

#[derive(Clone, Debug, Default)]
struct ColocatedLevel {
    /// How many run in each domain.
    running: Vec<u16>,
    /// Domains in which two run.
    doubled: u32,
    since: EmptinessClocks,
    sum: EmptinessClocks,
}

impl Colocation {
    pub(super) fn enters(&mut self, cpu: Cpu, machine: &Emptiness) {
        let Some(place) = machine.places.of_cpu.get(cpu.index()) else { return };
        self.running += 1;
        if self.running == 2 {
            self.since = machine.now;
        }
        for (level, shared) in self.levels.iter_mut().enumerate() {
            let domain = place[level] as usize;
            if shared.running.len() <= domain {
                shared.running.resize(domain + 1, 0);
            }
            shared.running[domain] += 1;
            if shared.running[domain] == 2 {
                if shared.doubled == 0 {
                    shared.since = machine.levels[level].clocks;
                }
                shared.doubled += 1;
            }
        }
    }

    pub(super) fn leaves(&mut self, cpu: Cpu, machine: &Emptiness) {
        let Some(place) = machine.places.of_cpu.get(cpu.index()) else { return };
        if self.running == 2 {
            self.several = self.several.saturating_add(machine.now.since(self.since).0);
        }
        self.running = self.running.saturating_sub(1);
        for (level, shared) in self.levels.iter_mut().enumerate() {
            let domain = place[level] as usize;
            let running = shared.running.get(domain).copied().unwrap_or(0);
            if running == 2 {
                shared.doubled -= 1;
                if shared.doubled == 0 {
                    shared.add(machine.levels[level].clocks);
                }
            }
            if running > 0 {
                shared.running[domain] = running - 1;
            }
        }
    }

    /// Counts from now on.
    pub(super) fn begin(&mut self, machine: &Emptiness) {
        (self.several, self.since) = (0, machine.now);
        for (shared, level) in self.levels.iter_mut().zip(&machine.levels) {
            (shared.since, shared.sum) = (level.clocks, EmptinessClocks::default());
        }
    }

    /// What it comes to by now.
    pub(super) fn placement(&self, machine: &Emptiness) -> NamePlacement {
        let ongoing = if self.running >= 2 { machine.now.since(self.since).0 } else { 0 };
        let level = |level: usize| {
            machine.places.tells[level].then(|| {
                let mut shared = self.levels[level].clone();
                if shared.doubled > 0 {
                    shared.add(machine.levels[level].clocks);
                }
                StackedTime { stacked_ns: shared.sum.empty, unknown_ns: shared.sum.unknown }
            })
        };
        NamePlacement { several_ns: self.several + ongoing, core: level(0), llc: level(1), node: level(2) }
    }
}

impl ColocatedLevel {
    fn add(&mut self, now: EmptinessClocks) {
        self.sum.empty = self.sum.empty.saturating_add(now.empty - self.since.empty);
        self.sum.unknown = self.sum.unknown.saturating_add(now.unknown - self.since.unknown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sockets of two cores with two threads each: CPUs 0 to 3, 4 to 7.
    fn machine() -> Emptiness {
        let place =
            |cpu: u32| CpuDomainNumbers { core: cpu / 2, llc: 10 * (cpu / 4), node: cpu / 4, capacity: 1024 };
        Emptiness::new(MachinePlaces::new((0..8).map(place)), Ns::ZERO)
    }

    #[test]
    fn distances_of_moves() {
        let machine = machine();
        let of = |from, to| machine.places.distance(Cpu(from), Cpu(to));
        assert_eq!([of(0, 1), of(0, 3), of(0, 4), of(0, 99)], [Some(0), Some(1), Some(3), None]);
        assert_eq!(machine.places.distances(), [true, true, false, true]);
    }

    /// Two kinds of cores on one node: CPUs 0 and 1 are threads of one core.
    #[test]
    fn time_is_summed_up_by_kind_cache_and_node() {
        let place =
            |cpu: u32, capacity: u32| CpuDomainNumbers { core: cpu.max(1), llc: cpu / 2, node: 0, capacity };
        let times = [1, 2, 4, 8];
        let sums = |capacities: [u32; 4]| {
            let cpus = (0..4).zip(capacities).map(|(cpu, capacity)| place(cpu, capacity));
            let sums = MachinePlaces::new(cpus).sums(&times);
            sums.into_iter().map(|(place, time)| format!("{place}={time}")).collect::<Vec<_>>()
        };
        assert_eq!(sums([1024; 4]), ["llc0=3", "llc1=12", "threads1=12", "threads2=3"]);
        assert_eq!(sums([1024, 1024, 1024, 425]), ["capacity1024=7", "capacity425=8", "llc0=3", "llc1=12"]);
        assert!(MachinePlaces::new([place(1, 1024)]).sums(&[5]).is_empty());
    }

    /// Two tasks run on one core for 10 ns, then on one cache for 20 ns. The other socket is empty, then unknown, then busy.
    #[test]
    fn time_together_counts_while_another_domain_is_empty() {
        let (mut machine, mut tasks) = (machine(), Colocation::default());
        let run = |machine: &mut Emptiness, tasks: &mut Colocation, cpu| {
            machine.sees(Cpu(cpu), CpuOccupancy::Busy);
            tasks.enters(Cpu(cpu), machine);
        };
        run(&mut machine, &mut tasks, 0);
        machine.pass_time(Ns(5));
        run(&mut machine, &mut tasks, 1);
        machine.pass_time(Ns(15));
        tasks.leaves(Cpu(1), &machine);
        machine.sees(Cpu(1), CpuOccupancy::Idle);
        run(&mut machine, &mut tasks, 2);
        machine.pass_time(Ns(25));
        machine.sees(Cpu(7), CpuOccupancy::Unknown);
        machine.pass_time(Ns(30));
        machine.sees(Cpu(5), CpuOccupancy::Busy);
        machine.pass_time(Ns(35));
        let placement = tasks.placement(&machine);
        let stacked = |stacked_ns, unknown_ns| Some(StackedTime { stacked_ns, unknown_ns });
        assert_eq!(placement.several_ns, 30);
        assert_eq!((placement.core, placement.llc), (stacked(10, 0), stacked(20, 5)));
        assert_eq!(placement.node, placement.llc);
        tasks.begin(&machine);
        machine.pass_time(Ns(40));
        let after = tasks.placement(&machine);
        assert_eq!((after.several_ns, after.core, after.llc), (5, stacked(0, 0), stacked(0, 0)));
    }
}
