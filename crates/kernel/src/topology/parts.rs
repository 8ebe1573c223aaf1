//! What a machine may have beside cores, caches and nodes: clusters, packages, distances, capacities.

use fairlab_event::Cpu;

use super::{CpuPlace, Topology};
use crate::cpumask::{CpuMask, MAX_CPUS};

/// Distance of a node to itself (`LOCAL_DISTANCE`).
pub(super) const LOCAL_DISTANCE: u32 = 10;
/// Distance between nodes where the firmware says nothing (`REMOTE_DISTANCE`).
const REMOTE_DISTANCE: u32 = 20;
/// Distances are less than this (`NR_DISTANCE_VALUES`).
const DISTANCE_VALUES: u32 = 256;
/// Distance beyond which reclaim stays local where the platform says nothing (`RECLAIM_DISTANCE`).
const RECLAIM_DISTANCE: u32 = 30;
/// The greatest capacity of a CPU (`SCHED_CAPACITY_SCALE`).
const CAPACITY_SCALE: u32 = 1024;

/// Whose architecture code sets up the levels of scheduling domains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Platform {
    /// x86: threads, clusters, cores under a cache, package.
    #[default]
    X86,
    /// arm64: the same, and frequency tables.
    Arm64,
    /// s390: threads, cores, books, drawers.
    S390,
}

impl Platform {
    /// Every platform with its name.
    pub const NAMES: [(Platform, &'static str); 3] =
        [(Platform::X86, "x86"), (Platform::Arm64, "arm64"), (Platform::S390, "s390")];

    /// Its name.
    pub fn name(self) -> &'static str {
        Platform::NAMES.iter().find(|(platform, _)| *platform == self).map_or("", |(_, name)| name)
    }
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TopologyParts {
    platform: Platform,
    cluster: Vec<CpuMask>,
    package: Vec<CpuMask>,
    /// Rows by node number.
    distances: Vec<Vec<u32>>,
    reclaim_distance: u32,
    capacity: Vec<u32>,
    /// Of each CPU's core; empty where none is preferred.
    priority: Vec<u32>,
}

impl TopologyParts {
    /// Each core a cluster, each node a package, nodes equally far, CPUs equally fast.
    pub(super) fn plain(
        smt: &[CpuMask],
        node: &[CpuMask],
        places: &[CpuPlace],
    ) -> Result<TopologyParts, String> {
        let last = places.iter().map(|place| place.node).max().unwrap_or(0);
        if last as usize >= MAX_CPUS {
            return Err(format!("node {last} is no node: their numbers are below {MAX_CPUS}"));
        }
        let distance = |from, to| if from == to { LOCAL_DISTANCE } else { REMOTE_DISTANCE };
        let row = |from| (0..=last).map(|to| distance(from, to)).collect();
        Ok(TopologyParts {
            platform: Platform::default(),
            cluster: smt.to_vec(),
            package: node.to_vec(),
            distances: (0..=last).map(row).collect(),
            reclaim_distance: RECLAIM_DISTANCE,
            capacity: vec![CAPACITY_SCALE; places.len()],
            priority: Vec::new(),
        })
    }
}

/// One mask a CPU from one number a CPU: the CPUs with the same number.
fn sharing(numbers: &[u32]) -> Vec<CpuMask> {
    let same = |number: u32| {
        let cpus = numbers.iter().enumerate().filter(move |(_, other)| **other == number);
        cpus.map(|(cpu, _)| Cpu(cpu as u32)).collect()
    };
    numbers.iter().map(|&number| same(number)).collect()
}

/// The first CPU of which `inner` reaches beyond `outer`.
fn first_outside(inner: &[CpuMask], outer: &[CpuMask]) -> Option<usize> {
    inner.iter().zip(outer).position(|(inner, outer)| !outer.contains_all(inner))
}

impl Topology {
    fn one_number_a_cpu(&self, what: &str, numbers: &[u32]) -> Result<(), String> {
        match numbers.len() == self.nr_cpus() {
            true => Ok(()),
            false => Err(format!("{} {what} are given for {} CPUs", numbers.len(), self.nr_cpus())),
        }
    }

    /// The same machine of another platform.
    #[must_use]
    pub fn of_platform(mut self, platform: Platform) -> Topology {
        self.parts.platform = platform;
        self
    }

    /// The same machine with clusters (CPUs that share a second-level cache): one number a CPU, alike in one cluster.
    ///
    /// # Errors
    /// A sentence that says what is impossible: a core in two clusters, a cluster under two last-level caches.
    pub fn with_clusters(mut self, clusters: &[u32]) -> Result<Topology, String> {
        self.one_number_a_cpu("clusters", clusters)?;
        let masks = sharing(clusters);
        if let Some(cpu) = first_outside(&self.smt, &masks) {
            return Err(format!("the core of CPU {cpu} is in two clusters"));
        }
        if let Some(cpu) = first_outside(&masks, &self.llc) {
            return Err(format!("cluster {} is under two last-level caches", clusters[cpu]));
        }
        self.parts.cluster = masks;
        Ok(self)
    }

    /// The same machine with packages: one number a CPU, alike in one package.
    ///
    /// # Errors
    /// A sentence that says what is impossible: a last-level cache in two packages.
    pub fn with_packages(mut self, packages: &[u32]) -> Result<Topology, String> {
        self.one_number_a_cpu("packages", packages)?;
        let masks = sharing(packages);
        if let Some(cpu) = first_outside(&self.llc, &masks) {
            return Err(format!("the last-level cache of CPU {cpu} is in two packages"));
        }
        self.parts.package = masks;
        Ok(self)
    }

    /// The same machine with distances between nodes as the firmware gives them (SLIT): a row a node, 10 to itself.
    ///
    /// # Errors
    /// A sentence that says what is impossible: too few rows or columns, a distance out of range.
    pub fn with_distances(mut self, distances: Vec<Vec<u32>>) -> Result<Topology, String> {
        let nodes = self.parts.distances.len();
        if distances.len() != nodes || distances.iter().any(|row| row.len() != nodes) {
            let columns = distances.first().map_or(0, Vec::len);
            return Err(format!(
                "{} rows of {columns} distances are given for {nodes} nodes",
                distances.len()
            ));
        }
        for (from, row) in distances.iter().enumerate() {
            for (to, &distance) in row.iter().enumerate() {
                let least = if from == to { LOCAL_DISTANCE } else { LOCAL_DISTANCE + 1 };
                let most = if from == to { LOCAL_DISTANCE } else { DISTANCE_VALUES - 1 };
                if !(least..=most).contains(&distance) {
                    return Err(format!(
                        "node {to} cannot be {distance} from node {from}: a node is {LOCAL_DISTANCE} from itself and \
                         {} to {} from others",
                        LOCAL_DISTANCE + 1,
                        DISTANCE_VALUES - 1
                    ));
                }
            }
        }
        self.parts.distances = distances;
        Ok(self)
    }

    /// The same machine, whose platform sets the distance beyond which nodes do not exchange new and woken tasks.
    #[must_use]
    pub fn with_reclaim_distance(mut self, distance: u32) -> Topology {
        self.parts.reclaim_distance = distance;
        self
    }

    /// The same machine with CPUs of different speed: one capacity a CPU, of the fastest 1024.
    ///
    /// # Errors
    /// A sentence that says what is impossible: a capacity of 0 or beyond 1024, threads of a core that differ.
    pub fn with_capacities(mut self, capacities: &[u32]) -> Result<Topology, String> {
        self.one_number_a_cpu("capacities", capacities)?;
        for (cpu, &capacity) in capacities.iter().enumerate() {
            if !(1..=CAPACITY_SCALE).contains(&capacity) {
                return Err(format!(
                    "CPU {cpu} cannot have capacity {capacity}: it is 1 to {CAPACITY_SCALE}"
                ));
            }
            let sibling = self.smt[cpu].iter().find(|sibling| capacities[sibling.index()] != capacity);
            if let Some(sibling) = sibling {
                return Err(format!("CPUs {cpu} and {sibling} share a core but differ in capacity"));
            }
        }
        self.parts.capacity = capacities.to_vec();
        Ok(self)
    }

    /// The same machine with some CPUs preferred to others: one priority a CPU, the higher the better, threads of a core
    /// alike (x86's ITMT; `sched_set_itmt_core_prio()`).
    ///
    /// # Errors
    /// A sentence that says what is impossible: too few numbers, a priority beyond 10,000, threads of a core that differ.
    pub fn with_priorities(mut self, priorities: &[u32]) -> Result<Topology, String> {
        const MOST: u32 = 10_000;
        self.one_number_a_cpu("priorities", priorities)?;
        for (cpu, &priority) in priorities.iter().enumerate() {
            if priority > MOST {
                return Err(format!("CPU {cpu} cannot have priority {priority}: the highest is {MOST}"));
            }
            let sibling = self.smt[cpu].iter().find(|sibling| priorities[sibling.index()] != priority);
            if let Some(sibling) = sibling {
                return Err(format!("CPUs {cpu} and {sibling} share a core but differ in priority"));
            }
        }
        let differ = priorities.windows(2).any(|pair| pair[0] != pair[1]);
        self.parts.priority = if differ { priorities.to_vec() } else { Vec::new() };
        Ok(self)
    }

    /// Whose architecture code sets it up.
    pub fn platform(&self) -> Platform {
        self.parts.platform
    }

    /// The CPUs of `cpu`'s cluster, itself included (`cpu_clustergroup_mask()`); its core where there are no clusters.
    pub fn cluster_mask(&self, cpu: Cpu) -> &CpuMask {
        &self.parts.cluster[cpu.index()]
    }

    /// The CPUs of `cpu`'s package, itself included; its node where packages are not known.
    pub fn package_mask(&self, cpu: Cpu) -> &CpuMask {
        &self.parts.package[cpu.index()]
    }

    /// How many node numbers there are; a node may be without CPUs.
    pub fn nr_nodes(&self) -> usize {
        self.parts.distances.len()
    }

    /// The distance between two nodes (`node_distance()`).
    pub fn distance(&self, from: u32, to: u32) -> u32 {
        self.parts.distances[from as usize][to as usize]
    }

    /// The distance beyond which nodes do not exchange new and woken tasks (`node_reclaim_distance`).
    pub fn reclaim_distance(&self) -> u32 {
        self.parts.reclaim_distance
    }

    /// `cpu`'s capacity at its highest frequency, 1 to 1024 (`arch_scale_cpu_capacity()`).
    pub fn capacity(&self, cpu: Cpu) -> u32 {
        self.parts.capacity[cpu.index()]
    }

    /// The priority of `cpu`'s core, where tasks are packed on preferred CPUs.
    pub fn core_priority(&self, cpu: Cpu) -> u32 {
        self.parts.priority.get(cpu.index()).copied().unwrap_or(0)
    }

    /// Whether some CPUs are preferred to others.
    pub fn has_preferred_cpus(&self) -> bool {
        !self.parts.priority.is_empty()
    }

    /// Whether CPUs differ in capacity.
    pub fn has_asymmetric_capacity(&self) -> bool {
        self.parts.capacity.windows(2).any(|pair| pair[0] != pair[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::SmtNumbering;

    fn machine() -> Topology {
        Topology::regular(2, 1, 4, 1, SmtNumbering::Adjacent).expect("a machine")
    }

    #[test]
    fn a_plain_machine_has_no_clusters_and_equal_nodes_and_cpus() {
        let machine = machine();
        assert_eq!(machine.cluster_mask(Cpu(5)).to_string(), "5");
        assert_eq!(machine.package_mask(Cpu(5)).to_string(), "4-7");
        assert_eq!((machine.distance(0, 0), machine.distance(0, 1), machine.nr_nodes()), (10, 20, 2));
        assert!(!machine.has_asymmetric_capacity() && machine.capacity(Cpu(7)) == 1024);
    }

    #[test]
    fn parts_are_told_by_number() {
        let machine = machine().with_clusters(&[0, 0, 1, 1, 2, 2, 3, 3]).expect("clusters");
        assert_eq!(machine.cluster_mask(Cpu(5)).to_string(), "4-5");
        let machine =
            machine.with_capacities(&[400, 400, 400, 400, 1024, 1024, 1024, 1024]).expect("fast ones");
        assert!(machine.has_asymmetric_capacity() && machine.capacity(Cpu(3)) == 400);
        let machine = machine.with_distances(vec![vec![10, 31], vec![31, 10]]).expect("distances");
        assert_eq!(machine.distance(1, 0), 31);
    }

    #[test]
    fn what_cannot_be_is_said_in_one_line() {
        let refused = |made: Result<Topology, String>, reason: &str| {
            let said = made.expect_err(reason);
            assert!(said.contains(reason) && !said.contains('\n'), "{said}");
        };
        refused(machine().with_clusters(&[0, 0, 1]), "3 clusters are given for 8 CPUs");
        refused(
            machine().with_clusters(&[0, 1, 2, 3, 3, 4, 5, 6]),
            "cluster 3 is under two last-level caches",
        );
        refused(machine().with_packages(&[0, 0, 0, 1, 2, 2, 2, 2]), "CPU 0 is in two packages");
        refused(machine().with_distances(vec![vec![10, 20]]), "1 rows of 2 distances are given for 2 nodes");
        refused(
            machine().with_distances(vec![vec![10, 10], vec![10, 10]]),
            "node 1 cannot be 10 from node 0",
        );
        refused(machine().with_distances(vec![vec![10, 300], vec![20, 10]]), "cannot be 300");
        refused(machine().with_capacities(&[0; 8]), "CPU 0 cannot have capacity 0");
        let threads = Topology::regular(1, 1, 2, 2, SmtNumbering::Adjacent).expect("a machine");
        refused(threads.clone().with_clusters(&[0, 1, 2, 2]), "the core of CPU 0 is in two clusters");
        refused(threads.clone().with_capacities(&[1024, 512, 512, 512]), "CPUs 0 and 1 share a core");
        refused(threads.clone().with_priorities(&[2, 1, 1, 1]), "CPUs 0 and 1 share a core");
        refused(threads.with_priorities(&[1, 1, 20_000, 20_000]), "CPU 2 cannot have priority 20000");
        let far = CpuPlace { core: 0, llc: 0, node: 5000 };
        refused(Topology::new(vec![far]), "node 5000 is no node");
    }
}
