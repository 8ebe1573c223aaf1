//! The levels of the topology, bottom up (`sched_domain_topology`).

use std::collections::BTreeSet;

use fairlab_event::Cpu;

use super::flags::SdFlags;
use super::rules::{Clusters, DomainRules, NumaLevels, PackageName, PackingLevels, SmtLevel};
use crate::cpumask::CpuMask;
use crate::topology::{Platform, Topology};

/// One level (`sched_domain_topology_level`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TopologyLevel {
    pub name: &'static str,
    pub kind: DomainSpan,
    /// What its domains are (`sd_flags()`).
    pub flags: SdFlags,
}

/// Which CPUs a domain of a level spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DomainSpan {
    Threads,
    Cluster,
    Cache,
    Node,
    /// All nodes up to this distance.
    Distance(u32),
}

impl TopologyLevel {
    /// The CPUs that a domain of `cpu` spans at this level (`tl->mask()`).
    pub fn mask(&self, topology: &Topology, cpu: Cpu) -> CpuMask {
        match self.kind {
            DomainSpan::Threads => *topology.smt_mask(cpu),
            DomainSpan::Cluster => *topology.cluster_mask(cpu),
            DomainSpan::Cache => *topology.llc_mask(cpu),
            DomainSpan::Node => *topology.node_mask(cpu),
            DomainSpan::Distance(distance) => {
                let node = topology.place(cpu).node;
                let near = |other: &Cpu| topology.distance(node, topology.place(*other).node) <= distance;
                topology.cpus().filter(near).collect()
            }
        }
    }

    /// Whether domains of this level may overlap.
    pub fn is_numa(&self) -> bool {
        matches!(self.kind, DomainSpan::Distance(_))
    }
}

/// The levels of a machine, bottom up.
///
/// Kernel: `default_topology[]` and `sched_init_numa()`, kernel/sched/topology.c; `x86_topology[]`,
/// arch/x86/kernel/smpboot.c; `s390_topology[]`, arch/s390/kernel/topology.c. Variants: clusters from v5.16 (778c558f49a2);
/// no level for threads without threads from v6.17 (f79c9aa446d6).
/// Departs: preferred CPUs (`SD_ASYM_PACKING`) on x86 only, and only within a cache; books and drawers of s390 span the
/// node; Intel's regrouping of distances under sub-NUMA clustering (v6.18) is not followed.
pub(super) fn levels(topology: &Topology, rules: &DomainRules) -> Vec<TopologyLevel> {
    let mut levels = Vec::new();
    let platform = topology.platform();
    let packs = platform == Platform::X86 && topology.has_preferred_cpus();
    let mut add = |name, kind, flags: SdFlags| {
        let packed = match kind {
            DomainSpan::Threads => rules.packing_levels == PackingLevels::ThreadsAndCores,
            DomainSpan::Cluster | DomainSpan::Cache => true,
            DomainSpan::Node | DomainSpan::Distance(_) => false,
        };
        let flags = if packs && packed { flags | SdFlags::ASYM_PACKING } else { flags };
        levels.push(TopologyLevel { name, kind, flags });
    };
    // Only x86 builds its list at run time; elsewhere the level goes away when domains are attached.
    let drops_smt = platform == Platform::X86 && rules.smt_level == SmtLevel::IfThreads;
    if topology.has_smt() || !drops_smt {
        add("SMT", DomainSpan::Threads, SdFlags::SHARE_CPUCAPACITY | SdFlags::SHARE_LLC);
    }
    if platform != Platform::S390 {
        match rules.clusters {
            Clusters::None => {}
            Clusters::Level => add("CLS", DomainSpan::Cluster, SdFlags::SHARE_LLC),
            Clusters::Flagged => add("CLS", DomainSpan::Cluster, SdFlags::CLUSTER | SdFlags::SHARE_LLC),
        }
    }
    add("MC", DomainSpan::Cache, SdFlags::SHARE_LLC);
    if platform == Platform::S390 {
        add("BOOK", DomainSpan::Node, SdFlags::EMPTY);
        add("DRAWER", DomainSpan::Node, SdFlags::EMPTY);
    }
    let package = match rules.package_name {
        PackageName::Die => "DIE",
        PackageName::Pkg => "PKG",
    };
    let numa_in_package =
        topology.cpus().any(|cpu| !topology.node_mask(cpu).contains_all(topology.package_mask(cpu)));
    if platform != Platform::X86 || !numa_in_package {
        add(package, DomainSpan::Node, SdFlags::EMPTY);
    }
    add("NODE", DomainSpan::Node, SdFlags::EMPTY);
    for distance in distances(topology, rules) {
        add("NUMA", DomainSpan::Distance(distance), SdFlags::NUMA);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Generation;
    use crate::topology::SmtNumbering;

    /// Names of levels with their flags.
    fn names(kernel: &str, topology: &Topology) -> String {
        let generation = kernel.parse::<Generation>().expect("a kernel");
        let level = |level: &TopologyLevel| {
            let flags = level.flags.names().map(|flag| flag.trim_start_matches("SD_")).collect::<Vec<_>>();
            format!("{} {}", level.name, flags.join("+")).trim_end().to_string()
        };
        levels(topology, &generation.domain).iter().map(level).collect::<Vec<_>>().join(", ")
    }

    fn machine(nodes: u32, cores: u32, threads: u32, platform: Platform) -> Topology {
        let plain = Topology::regular(nodes, 1, cores, threads, SmtNumbering::Adjacent).expect("a machine");
        plain.of_platform(platform)
    }

    /// Levels of a machine of four CPUs a node, or of four cores with threads.
    fn of(kernel: &str, nodes: u32, threads: u32, platform: Platform) -> String {
        names(kernel, &machine(nodes, 4, threads, platform))
    }

    const SMT: &str = "SMT SHARE_CPUCAPACITY+SHARE_LLC";

    #[test]
    fn clusters_are_a_level_from_v5_16_on_and_have_a_flag_from_v6_7_on() {
        assert_eq!(of("v5.15", 1, 2, Platform::X86), format!("{SMT}, MC SHARE_LLC, DIE, NODE"));
        assert_eq!(
            of("v5.16", 1, 2, Platform::X86),
            format!("{SMT}, CLS SHARE_LLC, MC SHARE_LLC, DIE, NODE")
        );
        let flagged = format!("{SMT}, CLS CLUSTER+SHARE_LLC, MC SHARE_LLC, PKG, NODE");
        assert_eq!(of("v6.7", 1, 2, Platform::X86), flagged);
    }

    #[test]
    fn x86_without_threads_has_no_level_for_them_from_v6_17_on() {
        let rest = "CLS CLUSTER+SHARE_LLC, MC SHARE_LLC, PKG, NODE";
        assert_eq!(of("v6.16", 1, 1, Platform::X86), format!("{SMT}, {rest}"));
        assert_eq!(of("v6.17", 1, 1, Platform::X86), rest);
        assert_eq!(of("v6.17", 1, 2, Platform::X86), format!("{SMT}, {rest}"));
        assert_eq!(of("v6.17", 1, 1, Platform::Arm64), format!("{SMT}, {rest}"));
    }

    #[test]
    fn s390_has_books_and_drawers_and_no_clusters() {
        let levels = format!("{SMT}, MC SHARE_LLC, BOOK, DRAWER, DIE, NODE, NUMA NUMA");
        assert_eq!(of("v6.6", 2, 2, Platform::S390), levels);
    }

    #[test]
    fn a_package_of_several_nodes_is_no_level_on_x86() {
        let levels = |platform| {
            let in_one = machine(2, 4, 2, platform).with_packages(&[0; 16]).expect("packages");
            names("v5.10", &in_one)
        };
        assert_eq!(levels(Platform::X86), format!("{SMT}, MC SHARE_LLC, NODE, NUMA NUMA"));
        assert_eq!(levels(Platform::Arm64), format!("{SMT}, MC SHARE_LLC, DIE, NODE, NUMA NUMA"));
    }

    #[test]
    fn tasks_are_packed_within_caches_of_x86_and_to_v6_4_on_threads() {
        let levels = |kernel, platform| {
            let hybrid = machine(1, 2, 2, platform).with_priorities(&[2, 2, 1, 1]).expect("priorities");
            names(kernel, &hybrid)
        };
        let packed = "MC SHARE_LLC+ASYM_PACKING, DIE, NODE";
        assert_eq!(levels("v5.10", Platform::X86), format!("{SMT}+ASYM_PACKING, {packed}"));
        assert_eq!(
            levels("v6.4", Platform::X86),
            format!("{SMT}+ASYM_PACKING, CLS SHARE_LLC+ASYM_PACKING, {packed}")
        );
        assert_eq!(levels("v6.5", Platform::X86), format!("{SMT}, CLS SHARE_LLC+ASYM_PACKING, {packed}"));
        assert_eq!(levels("v5.10", Platform::Arm64), format!("{SMT}, MC SHARE_LLC, DIE, NODE"));
    }

    /// Node 0 is in the middle and does not see the greatest distance.
    #[test]
    fn distances_that_the_first_node_does_not_see_are_levels_from_v5_12_on() {
        let star = [[10, 20, 30, 20], [20, 10, 40, 30], [30, 40, 10, 30], [20, 30, 30, 10]];
        let star = star.iter().map(|row| row.to_vec()).collect();
        let machine = machine(4, 4, 1, Platform::X86).with_distances(star).expect("distances");
        let seen = |kernel: &str| {
            let generation = kernel.parse::<Generation>().expect("a kernel");
            distances(&machine, &generation.domain).into_iter().collect::<Vec<_>>()
        };
        assert_eq!((seen("v5.11"), seen("v5.12")), (vec![20, 30], vec![20, 30, 40]));
    }
}
