//! The levels of the topology, bottom up (`sched_domain_topology`).

use std::collections::BTreeSet;

use fairlab_event::Cpu;

use super::flags::SdFlags;
use super::rules::{Clusters, DomainRules, NumaLevels, PackageName, PackingLevels, SmtLevel};
use crate::cpumask::CpuMask;
use crate::topology::{Platform, Topology};

/// One level (`sched_domain_topology_level`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    pub name: &'static str,
    pub kind: Kind,
    /// What its domains are (`sd_flags()`).
    pub flags: SdFlags,
}

/// Which CPUs a domain of a level spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Threads,
    Cluster,
    Cache,
    Node,
    /// All nodes up to this distance.
    Distance(u32),
}

impl Level {
    /// The CPUs that a domain of `cpu` spans at this level (`tl->mask()`).
    pub fn mask(&self, topology: &Topology, cpu: Cpu) -> CpuMask {
        match self.kind {
            Kind::Threads => *topology.smt_mask(cpu),
            Kind::Cluster => *topology.cluster_mask(cpu),
            Kind::Cache => *topology.llc_mask(cpu),
            Kind::Node => *topology.node_mask(cpu),
            Kind::Distance(distance) => {
                let node = topology.place(cpu).node;
                let near = |other: &Cpu| topology.distance(node, topology.place(*other).node) <= distance;
                topology.cpus().filter(near).collect()
            }
        }
    }

    /// Whether domains of this level may overlap.
    pub fn is_numa(&self) -> bool {
        matches!(self.kind, Kind::Distance(_))
    }
}

/// The levels of a machine, bottom up.
///
/// Kernel: `default_topology[]` and `sched_init_numa()`, kernel/sched/topology.c; `x86_topology[]`,
/// arch/x86/kernel/smpboot.c; `s390_topology[]`, arch/s390/kernel/topology.c. Variants: clusters from v5.16 (778c558f49a2);
/// no level for threads without threads from v6.17 (f79c9aa446d6).
/// Departs: preferred CPUs (`SD_ASYM_PACKING`) on x86 only, and only within a cache; books and drawers of s390 span the
/// node; Intel's regrouping of distances under sub-NUMA clustering (v6.18) is not followed.
pub(super) fn levels(topology: &Topology, rules: &DomainRules) -> Vec<Level> {
    let mut levels = Vec::new();
    let platform = topology.platform();
    let packs = platform == Platform::X86 && topology.has_preferred_cpus();
    let mut add = |name, kind, flags: SdFlags| {
        let packed = match kind {
            Kind::Threads => rules.packing_levels == PackingLevels::ThreadsAndCores,
            Kind::Cluster | Kind::Cache => true,
            Kind::Node | Kind::Distance(_) => false,
        };
        let flags = if packs && packed { flags | SdFlags::ASYM_PACKING } else { flags };
        levels.push(Level { name, kind, flags });
    };
    // Only x86 builds its list at run time; elsewhere the level goes away when domains are attached.
    let drops_smt = platform == Platform::X86 && rules.smt_level == SmtLevel::IfThreads;
    if topology.has_smt() || !drops_smt {
        add("SMT", Kind::Threads, SdFlags::SHARE_CPUCAPACITY | SdFlags::SHARE_LLC);
    }
    if platform != Platform::S390 {
        match rules.clusters {
            Clusters::None => {}
            Clusters::Level => add("CLS", Kind::Cluster, SdFlags::SHARE_LLC),
            Clusters::Flagged => add("CLS", Kind::Cluster, SdFlags::CLUSTER | SdFlags::SHARE_LLC),
        }
    }
    add("MC", Kind::Cache, SdFlags::SHARE_LLC);
    if platform == Platform::S390 {
        add("BOOK", Kind::Node, SdFlags::EMPTY);
        add("DRAWER", Kind::Node, SdFlags::EMPTY);
    }
    let package = match rules.package_name {
        PackageName::Die => "DIE",
        PackageName::Pkg => "PKG",
    };
    let numa_in_package =
        topology.cpus().any(|cpu| !topology.node_mask(cpu).contains_all(topology.package_mask(cpu)));
    if platform != Platform::X86 || !numa_in_package {
        add(package, Kind::Node, SdFlags::EMPTY);
    }
    add("NODE", Kind::Node, SdFlags::EMPTY);
    for distance in distances(topology, rules) {
        add("NUMA", Kind::Distance(distance), SdFlags::NUMA);
    }
    levels
}

/// The distances that make levels above the node, ascending.
fn distances(topology: &Topology, rules: &DomainRules) -> BTreeSet<u32> {
    let nodes = topology.cpus().map(|cpu| topology.place(cpu).node).collect::<BTreeSet<u32>>();
    let from = nodes.iter().filter(|&&node| match rules.numa_levels {
        NumaLevels::SeenByFirstNode => Some(&node) == nodes.first(),
        NumaLevels::All => true,
    });
    let pairs = from.flat_map(|&from| nodes.iter().map(move |&to| (from, to)));
    pairs.filter(|(from, to)| from != to).map(|(from, to)| topology.distance(from, to)).collect()
}
