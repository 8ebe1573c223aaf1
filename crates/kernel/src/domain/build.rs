//! `build_sched_domains()`: from a topology to domains and groups.
//!
//! Domains of all levels are made first, then their groups, then allowances and capacities; at last levels without use
//! are removed and each CPU looks up what it asks for often.

mod attach;
mod groups;
mod init;

use std::collections::BTreeMap;

use fairlab_event::Cpu;

use super::level::{TopologyLevel, levels};
use super::rules::{DomainRules, NumaImbalance, SmtCapacity};
use super::{CapacityId, DomainId, GroupRing, RootDomain, SchedDomain, SchedDomains, SdFlags, SharedId};
use crate::cpumask::CpuMask;
use crate::topology::Topology;

/// Domains under construction: of each CPU all levels, bottom up.
struct DomainBuilder<'t> {
    topology: &'t Topology,
    levels: Vec<TopologyLevel>,
    /// Where each CPU's domains start; one more than CPUs.
    starts: Vec<usize>,
    made: SchedDomains,
    /// The capacity of the group at a level that a CPU stands for.
    capacity_ids: BTreeMap<(usize, Cpu), CapacityId>,
    /// What the domains at a level whose first CPU is this share.
    shared_ids: BTreeMap<(usize, Cpu), SharedId>,
}

impl SchedDomains {
    /// The domains of a machine under a kernel's rules.
    ///
    /// Kernel: `build_sched_domains()`, kernel/sched/topology.c. Variants: see `DomainRules`.
    /// Departs: all CPUs are online and in one root domain; `relax_domain_level` is not set.
    pub fn new(topology: &Topology, rules: &DomainRules) -> SchedDomains {
        let mut builder = DomainBuilder::new(topology, *rules);
        builder.build_domains();
        builder.build_groups();
        builder.allow_numa_imbalance();
        builder.init_capacities();
        builder.attach();
        builder.made
    }
}

impl<'t> DomainBuilder<'t> {
    fn new(topology: &'t Topology, rules: DomainRules) -> DomainBuilder<'t> {
        let made = SchedDomains {
            rules,
            domains: Vec::new(),
            groups: Vec::new(),
            lists: Vec::new(),
            capacities: Vec::new(),
            shared: Vec::new(),
            cpus: Vec::with_capacity(topology.nr_cpus()),
            cpu_capacity_orig: Vec::with_capacity(topology.nr_cpus()),
            cpu_capacity: Vec::new(),
            pressed: CpuMask::EMPTY,
            root: RootDomain::default(),
        };
        DomainBuilder {
            topology,
            levels: levels(topology, &rules),
            starts: vec![0],
            made,
            capacity_ids: BTreeMap::new(),
            shared_ids: BTreeMap::new(),
        }
    }

    /// `cpu`'s domain at `level`, if its levels reach so high.
    fn at(&self, level: usize, cpu: Cpu) -> Option<&SchedDomain> {
        let (start, end) = (self.starts[cpu.index()], self.starts[cpu.index() + 1]);
        self.made.domains[start..end].get(level)
    }

    /// All levels of every CPU, up to the first that spans the machine.
    fn build_domains(&mut self) {
        let asymmetric = self.asym_cpu_capacity_level();
        for cpu in self.topology.cpus() {
            for level in 0..self.levels.len() {
                let domain = self.sd_init(level, cpu, asymmetric);
                assert!(domain.span.contains(cpu), "CPU {cpu}: its domain {level} spans {}", domain.span);
                let spans_all = domain.span == *self.topology.online();
                self.made.domains.push(domain);
                if spans_all {
                    break;
                }
            }
            self.link(cpu);
            self.starts.push(self.made.domains.len());
        }
        self.spare_other_capacities();
    }

    /// Says each of `cpu`'s domains, the last that were made, which is below it.
    fn link(&mut self, cpu: Cpu) {
        let start = self.starts[cpu.index()];
        let end = self.made.domains.len();
        for at in start..end {
            self.made.domains[at].child = (at > start).then(|| DomainId(at as u32 - 1));
        }
    }

    /// How many tasks one node may run while another is idle, at every level.
    ///
    /// Kernel: `build_sched_domains()`; `adjust_numa_imbalance()` of v7.2.
    fn allow_numa_imbalance(&mut self) {
        let rule = self.made.rules.numa_imbalance;
        if rule == NumaImbalance::NotByDomain {
            return;
        }
        for cpu in self.topology.cpus() {
            let (start, end) = (self.starts[cpu.index()], self.starts[cpu.index() + 1]);
            let domains = &mut self.made.domains[start..end];
            let (mut allowed, mut allowed_span) = (0, 1);
            for at in 0..domains.len() {
                let weight = domains[at].span_weight;
                let child = at.checked_sub(1).map(|child| &domains[child]);
                let above_cache = child.filter(|child| child.flags.has(SdFlags::SHARE_LLC));
                domains[at].imb_numa_nr = match above_cache {
                    Some(cache) if !domains[at].flags.has(SdFlags::SHARE_LLC) => {
                        allowed = match (weight / cache.span_weight, rule) {
                            (1, NumaImbalance::QuarterOrLlcs) => weight >> 2,
                            (1, _) => (weight >> 3).max(1),
                            (caches, _) => caches,
                        };
                        let numa = domains[at + 1..].iter().find(|above| above.flags.has(SdFlags::NUMA));
                        allowed_span = numa.map_or(weight, |numa| numa.span_weight);
                        allowed
                    }
                    _ => allowed * (weight / allowed_span).max(1),
                };
            }
        }
    }

    /// Every CPU's capacity, and from them every group's.
    fn init_capacities(&mut self) {
        for cpu in self.topology.cpus() {
            let threads = self.topology.smt_mask(cpu).weight() as u64;
            let capacity = match self.made.rules.smt_capacity {
                // smt_gain, 15 % more than a single CPU has.
                SmtCapacity::SharedGain if threads > 1 => 1178 / threads,
                _ => u64::from(self.topology.capacity(cpu)),
            };
            self.made.cpu_capacity_orig.push(capacity);
            let greatest = &mut self.made.root.max_cpu_capacity;
            *greatest = (*greatest).max(capacity);
        }
        self.made.cpu_capacity = self.made.cpu_capacity_orig.clone();
        // Downwards: a group's other CPUs come before the one that adds them up.
        for cpu in self.topology.cpus().collect::<Vec<_>>().into_iter().rev() {
            for at in self.starts[cpu.index()]..self.starts[cpu.index() + 1] {
                let domain = DomainId(at as u32);
                let local = self.made.local_group(domain);
                if self.made.capacity_of_group(local).balance_cpu == cpu {
                    let extent = self.made.extent_of_group(domain, self.made.cpu_capacity(cpu));
                    self.made.set_extent(domain, extent);
                }
            }
        }
    }

    /// Appends a list of groups and says where `first` is in it.
    fn add_list(&mut self, list: Vec<super::SchedGroupId>) -> u32 {
        self.made.lists.push(list);
        self.made.lists.len() as u32 - 1
    }

    fn set_groups(&mut self, level: usize, cpu: Cpu, ring: GroupRing) {
        let at = self.starts[cpu.index()] + level;
        self.made.domains[at].groups = ring;
    }
}
