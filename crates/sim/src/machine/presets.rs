//! Machines that come with Fairlab: those of the reports that it answers, and a small one.

mod sharing;
mod table;

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::Topology;
use fairlab_kernel::cpufreq::FrequencyDomain;
use fairlab_kernel::energy::{PerfDomain, PerfState};
use fairlab_kernel::topology::{CpuPlace, Platform, SmtNumbering};

pub use table::PRESETS;

use super::{Boost, Chance, IdleState, KernelCosts, Machine, Sharing, TrueSpeeds};

/// The last CPU, whichever it is.
const LAST: u32 = u32::MAX;

/// The kernel's own `RECLAIM_DISTANCE`.
const RECLAIM_DISTANCE: u32 = 30;

/// From how many busy cores on CPUs are how fast.
type BoostSteps = &'static [(u32, u32)];

/// A machine as data.
#[derive(Debug)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub description: &'static str,
    platform: Platform,
    nodes: u32,
    llcs_a_node: u32,
    cores_an_llc: u32,
    threads_a_core: u32,
    numbering: SmtNumbering,
    /// Cores of one thread behind the others, under the last cache, in clusters of four.
    small_cores: u32,
    /// First CPU, last CPU and priority, where some CPUs are preferred to others.
    priorities: &'static [(u32, u32, u32)],
    /// The distance between any two nodes.
    distance: u32,
    /// Up to which the kernel takes another node for near (`node_reclaim_distance`).
    reclaim_distance: u32,
    /// CPUs that are slower than the fastest, or whose clock schedutil sets.
    speeds: &'static [CpuSpeed],
    /// First CPU, last CPU ([`LAST`]: of all), what leaving it takes, us, how long it must last, us, and whether all of them must
    /// be in it.
    idle_states: &'static [(u32, u32, u64, u64, bool)],
    /// How much of leaving each of these is for entering it, us; empty where nothing is known.
    idle_entries: &'static [u64],
    /// First CPU, last CPU and what they truly do, of 1024, where that is not what their kernel is told.
    true_speeds: &'static [(u32, u32, u32)],
    /// First CPU, last CPU, and from how many busy cores on they are how fast.
    boosts: &'static [(u32, u32, BoostSteps)],
    hz: u64,
    high_res_timers: bool,
    nohz_idle: bool,
    /// Costs that differ from the defaults, with the reason.
    costs: &'static [(&'static str, u64, &'static str)],
    /// What sharing costs, each figure with its source; empty where nothing is known.
    sharing: &'static [(&'static str, u64, &'static str)],
    /// What differs from run to run there.
    chance: Chance,
    /// Where the figures come from: what, and its source.
    sources: &'static [(&'static str, &'static str)],
}

/// CPUs of one speed.
#[derive(Debug)]
struct CpuSpeed {
    first: u32,
    last: u32,
    /// Of the fastest 1024.
    capacity: u32,
    /// Frequencies of the clock that they share, kHz, rising.
    khz: &'static [u32],
    rate_limit_us: u64,
    fast_switch: bool,
    /// What a CPU draws at each of the frequencies, mW; empty if that is not known.
    milliwatts: &'static [u32],
}

impl Preset {
    pub(super) fn build(&self) -> Machine {
        let mut costs = KernelCosts::default();
        for (name, value, _) in self.costs {
            assert!(
                costs.set(name, Ns(*value)),
                "preset {} sets a cost that does not exist: {name}",
                self.name
            );
        }
        let mut sharing = Sharing::NONE;
        for (name, value, _) in self.sharing {
            let set = sharing.set(name, *value);
            assert!(set.is_ok(), "preset {}: {set:?}", self.name);
        }
        let domain = |speed: &CpuSpeed| FrequencyDomain {
            cpus: (speed.first..=speed.last).map(Cpu).collect(),
            frequencies: speed.khz.to_vec(),
            rate_limit: Ns::from_us(speed.rate_limit_us),
            fast_switch: speed.fast_switch,
            invariant: true,
        };
        let power = |speed: &CpuSpeed| {
            let states = speed.khz.iter().zip(speed.milliwatts);
            PerfDomain {
                cpus: (speed.first..=speed.last).map(Cpu).collect(),
                states: states.map(|(&khz, &milliwatts)| PerfState::of_milliwatts(khz, milliwatts)).collect(),
            }
        };
        let topology = self.topology().expect("presets are possible machines");
        let last_cpu = topology.nr_cpus() as u32 - 1;
        let entries = self.idle_entries.iter().copied().chain(std::iter::repeat(0));
        let idle_state =
            |(&(first, last, exit, residency, together), entry): (&(u32, u32, u64, u64, bool), u64)| {
                IdleState {
                    cpus: (first..=last.min(last_cpu)).map(Cpu).collect(),
                    exit: Ns::from_us(exit),
                    entry: Ns::from_us(entry),
                    residency: Ns::from_us(residency),
                    together,
                }
            };
        let idle_states = self.idle_states.iter().zip(entries).map(idle_state).collect();
        let has_powers = self.speeds.iter().all(|speed| speed.milliwatts.len() == speed.khz.len());
        let speeds_with_power = if has_powers { self.speeds } else { &[] };
        let speeds = self.true_speeds(topology.nr_cpus());
        Machine {
            name: self.name.to_string(),
            description: self.description.to_string(),
            topology,
            hz: self.hz,
            high_res_timers: self.high_res_timers,
            nohz_idle: self.nohz_idle,
            costs,
            sharing,
            speeds,
            chance: self.chance,
            in_turn: false,
            frequency_domains: self.speeds.iter().map(domain).collect(),
            energy_model: speeds_with_power.iter().map(power).collect(),
            idle_states,
        }
    }

    fn true_speeds(&self, nr_cpus: usize) -> TrueSpeeds {
        let mut cpus = vec![1024; if self.true_speeds.is_empty() { 0 } else { nr_cpus }];
        for &(first, last, speed) in self.true_speeds {
            (first..=last).for_each(|cpu| cpus[cpu as usize] = speed);
        }
        let boost = |&(first, last, steps): &(u32, u32, BoostSteps)| Boost {
            cpus: (first..=last).map(Cpu).collect(),
            steps: steps.to_vec(),
        };
        TrueSpeeds { cpus, boosts: self.boosts.iter().map(boost).collect(), limits: Vec::new() }
    }

    fn topology(&self) -> Result<Topology, String> {
        let (nodes, llcs, cores, threads) =
            (self.nodes, self.llcs_a_node, self.cores_an_llc, self.threads_a_core);
        let regular = Topology::regular(nodes, llcs, cores, threads, self.numbering)?;
        let regular = if self.small_cores == 0 { regular } else { self.with_small_cores(&regular)? };
        let distance = |from, to| if from == to { 10 } else { self.distance };
        let distances = (0..nodes).map(|from| (0..nodes).map(|to| distance(from, to)).collect());
        let mut capacities = vec![1024; regular.nr_cpus()];
        for speed in self.speeds {
            (speed.first..=speed.last).for_each(|cpu| capacities[cpu as usize] = speed.capacity);
        }
        let mut topology = regular
            .with_distances(distances.collect())?
            .with_reclaim_distance(self.reclaim_distance)
            .with_capacities(&capacities)?;
        if !self.priorities.is_empty() {
            let of_cpu = |cpu: u32| {
                let found = self.priorities.iter().find(|(first, last, _)| (*first..=*last).contains(&cpu));
                found.map_or(0, |(.., priority)| *priority)
            };
            let priorities = (0..topology.nr_cpus() as u32).map(of_cpu).collect::<Vec<_>>();
            topology = topology.with_priorities(&priorities)?;
        }
        Ok(topology.of_platform(self.platform))
    }

    /// The regular machine and its small cores, every big core a cluster of its own.
    fn with_small_cores(&self, regular: &Topology) -> Result<Topology, String> {
        const CLUSTER: u32 = 4;
        let mut places = regular.cpus().map(|cpu| regular.place(cpu)).collect::<Vec<_>>();
        let last = *places.last().ok_or("a machine needs CPUs")?;
        let cores = 1 + places.iter().map(|place| place.core).max().unwrap_or(0);
        let mut clusters = places.iter().map(|place| place.core).collect::<Vec<_>>();
        for small in 0..self.small_cores {
            places.push(CpuPlace { core: cores + small, ..last });
            clusters.push(cores + small / CLUSTER);
        }
        Topology::new(places)?.with_clusters(&clusters)
    }

    /// The costs that differ from the defaults: name, ns, reason.
    pub fn own_costs(&self) -> &'static [(&'static str, u64, &'static str)] {
        self.costs
    }

    /// What sharing costs: name, value, source.
    pub fn own_sharing(&self) -> &'static [(&'static str, u64, &'static str)] {
        self.sharing
    }

    /// Where the other figures come from: what, and its source.
    pub fn sources(&self) -> &'static [(&'static str, &'static str)] {
        self.sources
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_can_be_built_and_names_its_sources() {
        for preset in PRESETS {
            let machine = Machine::preset(preset.name).expect(preset.name);
            assert_eq!(machine.name, preset.name);
            assert_eq!(1_000_000_000 % machine.hz, 0, "{}: a tick is a whole number of ns", preset.name);
            let cpus = machine.topology.nr_cpus();
            assert!(machine.description.contains(&cpus.to_string()), "{} has {cpus} CPUs", preset.name);
            for wanted in ["topology", "hz"] {
                assert!(preset.sources.iter().any(|(what, _)| *what == wanted), "{}: {wanted}", preset.name);
            }
            let figures = preset.sharing.iter().all(|(_, value, source)| *value > 0 && !source.is_empty());
            assert!(figures, "{}: a figure that is not known is left out", preset.name);
            for domain in &machine.frequency_domains {
                assert!(machine.topology.online().contains_all(&domain.cpus), "{}", preset.name);
                assert!(domain.frequencies.is_sorted() && !domain.frequencies.is_empty(), "{}", preset.name);
            }
            for (clock, power) in machine.frequency_domains.iter().zip(&machine.energy_model) {
                assert_eq!(clock.frequencies.len(), power.states.len(), "{}", preset.name);
                assert!(power.states.is_sorted_by_key(|state| state.microwatts), "{}", preset.name);
            }
        }
        assert_eq!(Machine::preset("nonsense"), None);
    }

    #[test]
    fn machines_of_the_reports_have_the_shape_that_they_name() {
        let shape = |name: &str| {
            let topology = Machine::preset(name).expect(name).topology;
            let cpu = Cpu(0);
            (topology.nr_cpus(), topology.nr_nodes(), topology.llc_size(cpu), topology.smt_mask(cpu).weight())
        };
        assert_eq!(shape("vm40"), (40, 1, 40, 2));
        assert_eq!(shape("vm4"), (4, 1, 4, 1));
        assert_eq!(shape("xeon-2s80"), (80, 2, 40, 2));
        assert_eq!(shape("xeon-4s192"), (192, 4, 48, 2));
        assert_eq!(shape("lkp-bdw-ep3"), (88, 2, 44, 2));
        assert_eq!(shape("lkp-bdw-ep6"), (88, 2, 44, 2));
        assert_eq!(shape("lkp-skl-4sp1"), (192, 4, 48, 2));
        assert_eq!(shape("lkp-avoton3"), (8, 1, 2, 1));
        assert_eq!(shape("chromebook8"), (8, 1, 8, 1));
        assert_eq!(shape("zen3-2s"), (256, 2, 16, 2));
        assert_eq!(shape("xeon64"), (64, 2, 32, 2));
        assert_eq!(shape("graviton96"), (96, 1, 96, 1));
        assert_eq!(shape("hikey8"), (8, 1, 4, 1));
        assert_eq!(shape("arm4"), (4, 1, 4, 1));
        assert_eq!(shape("s390-lpar24"), (24, 1, 24, 2));
        assert_eq!(shape("alder-lake24"), (24, 1, 24, 2));
        let hybrid = Machine::preset("alder-lake24").expect("a machine").topology;
        assert_eq!(hybrid.smt_mask(Cpu(20)).to_string(), "20");
        assert_eq!(hybrid.cluster_mask(Cpu(20)).to_string(), "20-23");
        assert!(hybrid.has_preferred_cpus() && hybrid.core_priority(Cpu(8)) > hybrid.core_priority(Cpu(0)));
        let chromebook = Machine::preset("chromebook8").expect("a machine");
        assert_eq!(chromebook.topology.capacity(Cpu(5)), 425);
        assert_eq!(chromebook.frequency_domains[1].cpus.to_string(), "6-7");
    }
}
