//! Which CPUs share a core, a cluster, a last-level cache, a NUMA node; how far nodes are, how fast CPUs: built once, asked
//! often.
//!
//! Must not know: scheduling domains and kernels.

mod parts;

use fairlab_event::Cpu;

pub use parts::Platform;
use parts::TopologyParts;

use crate::cpumask::{CpuMask, MAX_CPUS};

/// How logical CPUs are numbered over the threads of cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SmtNumbering {
    /// Threads of a core are neighbours: core 0 has CPUs 0 and 1 (virtual machines, s390).
    #[default]
    Adjacent,
    /// First threads of all cores come first: of 20 cores, core 0 has CPUs 0 and 20 (most x86 machines).
    Spread,
}

/// Where one CPU stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuPlace {
    /// Its core, numbered over the machine.
    pub core: u32,
    /// Its last-level cache, numbered over the machine.
    pub llc: u32,
    /// Its NUMA node.
    pub node: u32,
}

/// A machine's CPUs and what they share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    places: Vec<CpuPlace>,
    smt: Vec<CpuMask>,
    llc: Vec<CpuMask>,
    node: Vec<CpuMask>,
    online: CpuMask,
    has_smt: bool,
    parts: TopologyParts,
}

impl Topology {
    /// A regular machine: `nodes` × `llcs` a node × `cores` an LLC × `threads` a core.
    ///
    /// # Errors
    /// A sentence that says which number is impossible.
    pub fn regular(
        nodes: u32,
        llcs: u32,
        cores: u32,
        threads: u32,
        numbering: SmtNumbering,
    ) -> Result<Topology, String> {
        for (what, number) in [
            ("NUMA nodes", nodes),
            ("LLCs a node", llcs),
            ("cores an LLC", cores),
            ("threads a core", threads),
        ] {
            if number == 0 {
                return Err(format!(
                    "a machine needs at least one of everything, but the number of {what} is 0"
                ));
            }
        }
        let total = [llcs, cores, threads].iter().try_fold(nodes, |total, &number| total.checked_mul(number));
        let Some(total) = total.filter(|&total| total as usize <= MAX_CPUS) else {
            return Err(format!("{nodes} × {llcs} × {cores} × {threads} CPUs are more than {MAX_CPUS}"));
        };
        let all_cores = total / threads;
        let place = |cpu: u32| {
            let core = match numbering {
                SmtNumbering::Adjacent => cpu / threads,
                SmtNumbering::Spread => cpu % all_cores,
            };
            CpuPlace { core, llc: core / cores, node: core / cores / llcs }
        };
        Topology::new((0..total).map(place).collect())
    }

    /// A machine from every CPU's place, in the order of CPU numbers.
    ///
    /// # Errors
    /// A sentence that says what is impossible: no CPU, too many, a core in two caches, a cache on two nodes.
    pub fn new(places: Vec<CpuPlace>) -> Result<Topology, String> {
        if places.is_empty() {
            return Err("a machine needs at least one CPU".to_string());
        }
        if places.len() > MAX_CPUS {
            return Err(format!("{} CPUs are more than {MAX_CPUS}", places.len()));
        }
        for (cpu, place) in places.iter().enumerate() {
            for (other_cpu, other) in places.iter().enumerate().take(cpu) {
                if place.core == other.core && place.llc != other.llc {
                    return Err(format!(
                        "CPUs {other_cpu} and {cpu} share core {} but no last-level cache",
                        place.core
                    ));
                }
                if place.llc == other.llc && place.node != other.node {
                    return Err(format!(
                        "CPUs {other_cpu} and {cpu} share cache {} but no NUMA node",
                        place.llc
                    ));
                }
            }
        }
        let sharing = |key: fn(&CpuPlace) -> u32| -> Vec<CpuMask> {
            let mask_of = |place: &CpuPlace| {
                let same = |(_, other): &(usize, &CpuPlace)| key(other) == key(place);
                places.iter().enumerate().filter(same).map(|(cpu, _)| Cpu(cpu as u32)).collect()
            };
            places.iter().map(mask_of).collect()
        };
        let (smt, llc, node) =
            (sharing(|place| place.core), sharing(|place| place.llc), sharing(|place| place.node));
        let online = CpuMask::first(places.len());
        let parts = TopologyParts::plain(&smt, &node, &places)?;
        let has_smt = smt.iter().any(|mask| mask.weight() > 1);
        Ok(Topology { places, smt, llc, node, online, has_smt, parts })
    }

    /// Number of CPUs.
    pub fn nr_cpus(&self) -> usize {
        self.places.len()
    }

    /// Every CPU.
    pub fn online(&self) -> &CpuMask {
        &self.online
    }

    /// CPUs in ascending order.
    pub fn cpus(&self) -> impl Iterator<Item = Cpu> + use<> {
        (0..self.places.len() as u32).map(Cpu)
    }

    /// Where `cpu` stands.
    pub fn place(&self, cpu: Cpu) -> CpuPlace {
        self.places[cpu.index()]
    }

    /// The threads of `cpu`'s core, itself included (`cpu_smt_mask()`).
    pub fn smt_mask(&self, cpu: Cpu) -> &CpuMask {
        &self.smt[cpu.index()]
    }

    /// The CPUs that share `cpu`'s last-level cache, itself included (span of `sd_llc`).
    pub fn llc_mask(&self, cpu: Cpu) -> &CpuMask {
        &self.llc[cpu.index()]
    }

    /// The CPUs of `cpu`'s NUMA node.
    pub fn node_mask(&self, cpu: Cpu) -> &CpuMask {
        &self.node[cpu.index()]
    }

    /// Whether the two share a last-level cache (`cpus_share_cache()`).
    pub fn share_cache(&self, one: Cpu, other: Cpu) -> bool {
        self.places[one.index()].llc == self.places[other.index()].llc
    }

    /// Whether any core has more than one thread (`sched_smt_active()`).
    pub fn has_smt(&self) -> bool {
        self.has_smt
    }

    /// Number of CPUs under `cpu`'s last-level cache (`sd_llc_size`).
    pub fn llc_size(&self, cpu: Cpu) -> usize {
        self.llc[cpu.index()].weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbering_decides_who_is_whose_sibling() {
        let adjacent = Topology::regular(1, 1, 20, 2, SmtNumbering::Adjacent).expect("a machine");
        assert_eq!(adjacent.smt_mask(Cpu(7)).to_string(), "6-7");
        let spread = Topology::regular(1, 1, 20, 2, SmtNumbering::Spread).expect("a machine");
        assert_eq!(spread.smt_mask(Cpu(7)).to_string(), "7,27");
        assert_eq!(spread.llc_mask(Cpu(7)).to_string(), "0-39");
        assert!(spread.has_smt() && spread.llc_size(Cpu(0)) == 40);
    }

    #[test]
    fn caches_and_nodes_nest() {
        let machine = Topology::regular(2, 2, 2, 1, SmtNumbering::Adjacent).expect("a machine");
        assert_eq!(machine.llc_mask(Cpu(5)).to_string(), "4-5");
        assert_eq!(machine.node_mask(Cpu(5)).to_string(), "4-7");
        assert!(!machine.share_cache(Cpu(1), Cpu(2)) && !machine.has_smt());
    }

    #[test]
    fn impossible_machines_are_refused_with_a_reason() {
        let reason = |places: &[(u32, u32, u32)]| {
            let place = |&(core, llc, node)| CpuPlace { core, llc, node };
            Topology::new(places.iter().map(place).collect()).expect_err("impossible")
        };
        assert_eq!(reason(&[]), "a machine needs at least one CPU");
        assert_eq!(reason(&[(0, 0, 0), (0, 1, 0)]), "CPUs 0 and 1 share core 0 but no last-level cache");
        assert_eq!(reason(&[(0, 0, 0), (1, 0, 1)]), "CPUs 0 and 1 share cache 0 but no NUMA node");
        let refused = |nodes, cores| {
            Topology::regular(nodes, 1, cores, 1, SmtNumbering::Adjacent).expect_err("impossible")
        };
        assert!(refused(0, 1).contains("NUMA nodes is 0"));
        assert!(refused(2, 600).contains("more than 1024"));
        assert!(refused(u32::MAX, u32::MAX).contains("more than 1024"));
    }
}
