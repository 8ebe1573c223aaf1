//! Scheduling domains (`kernel/sched/topology.c`): which CPUs exchange tasks with which, in what groups, how often and
//! how readily; and what balancing remembers there.
//!
//! [`SchedDomains::domains_of`] gives a CPU's domains bottom up; each has its groups in the order of the kernel's circular
//! list, the CPU's own group first. Groups that are one group in the kernel are one here; so are their capacities and
//! what CPUs under one cache share.
//!
//! Must not know: tasks and runqueues, and what balancing does with all this.

mod build;
mod capacity;
mod files;
mod flags;
mod level;
pub(crate) mod rules;
#[cfg(test)]
mod tests;

use fairlab_event::Cpu;

use crate::cpumask::CpuMask;
use crate::schedstat::DomainCounters;

pub(crate) use capacity::{GroupExtent, fits_capacity};
pub use flags::SdFlags;
pub use rules::{
    AsymDetection, AsymSpreading, AsymWakeup, Clusters, DomainEffect, DomainRules, FilesPlace, FilesShown,
    FlagsShown, GroupFlags, LoadBalanceFlag, NeedsGroups, NumaImbalance, NumaLevels, OverlapCapacity,
    OverlapGroups, PackageName, ReclaimDistance, SchedstatLayout, SmtCapacity, SmtLevel,
};

/// Names a [`SchedDomain`]; the parent of a domain that has one is the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainId(pub u32);

/// Names a [`SchedGroup`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SchedGroupId(pub u32);

/// Names a [`GroupCapacity`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CapacityId(pub u32);

/// Names a [`DomainShared`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharedId(pub u32);

/// One level from one CPU's point of view (`struct sched_domain`).
#[derive(Clone, Debug)]
pub struct SchedDomain {
    /// Whose it is.
    pub cpu: Cpu,
    /// Its level's name: `SMT`, `CLS`, `MC`, `DIE` or `PKG`, `NODE`, `NUMA`.
    pub name: &'static str,
    /// Its level's number, from 0, before levels without use were removed.
    pub level: u32,
    /// The CPUs in it.
    pub span: CpuMask,
    /// How many.
    pub span_weight: u32,
    /// What it is and what is done in it.
    pub flags: SdFlags,
    /// The next larger domain of this CPU.
    pub parent: Option<DomainId>,
    /// The next smaller domain of this CPU.
    pub child: Option<DomainId>,
    /// Shared by the CPUs under one cache, where this is a cache's domain.
    pub shared: Option<SharedId>,
    /// Least time between two balancings, ms.
    pub min_interval: u32,
    /// Up to this the time doubles, ms.
    pub max_interval: u32,
    /// Times longer if the CPU is busy.
    pub busy_factor: u32,
    /// 100 plus the percentage by which the busiest must exceed the local group.
    pub imbalance_pct: u32,
    /// How many tries may fail before cache-hot tasks are moved.
    pub cache_nice_tries: u32,
    /// How many tasks a node may run while another is idle.
    pub imb_numa_nr: u32,
    /// Which of `rq::cpu_load[]` balancing goes by, to v5.2.
    pub load_index: LoadIndexes,
    /// What balancing remembers here.
    pub balance: BalanceState,
    /// What is counted here.
    pub counters: DomainCounters,
    groups: GroupRing,
}

/// Where a domain's circular list of groups starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct GroupRing {
    /// Which of the lists.
    list: u32,
    /// The place of the CPU's own group in it.
    first: u32,
}

/// Which of `rq::cpu_load[]` balancing goes by (`busy_idx` and so on); the others are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadIndexes {
    /// A busy CPU.
    pub busy: u32,
    /// An idle CPU.
    pub idle: u32,
}

/// What balancing remembers of a domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BalanceState {
    /// When it was last balanced, jiffies.
    pub last_balance: u64,
    /// Time between two balancings, ms.
    pub balance_interval: u32,
    /// Tries in a row that found an imbalance and moved nothing.
    pub nr_balance_failed: u32,
    /// The dearest new-idle balancing of late, ns.
    pub max_newidle_lb_cost: u64,
    /// When that cost last decayed (`last_decay_max_lb_cost`; `next_decay_max_lb_cost` to v5.15), jiffies.
    pub decay_max_lb_cost: u64,
    /// New-idle balancings since the last estimate of their success.
    pub newidle_call: u32,
    /// Those that moved a task.
    pub newidle_success: u32,
    /// Estimated success, of 1024.
    pub newidle_ratio: u32,
    /// When it was last estimated, ns.
    pub newidle_stamp: u64,
}

/// CPUs that are balanced as one (`struct sched_group`).
#[derive(Clone, Debug)]
pub struct SchedGroup {
    /// The CPUs in it.
    pub span: CpuMask,
    /// How many (`group_weight`).
    pub weight: u32,
    /// How many cores.
    pub cores: u32,
    /// The flags of the domain one level down that it is made of; none for a single CPU, and none to v5.15.
    pub flags: SdFlags,
    /// Its capacity.
    pub capacity: CapacityId,
}

/// What all points of view on the same group share (`struct sched_group_capacity`).
#[derive(Clone, Debug)]
pub struct GroupCapacity {
    /// The CPUs that balance for it at this level (`group_balance_mask()`).
    pub balance_mask: CpuMask,
    /// The first of them (`group_balance_cpu()`).
    pub balance_cpu: Cpu,
    /// Sum of its CPUs' capacities.
    pub capacity: u64,
    /// The least of them.
    pub min_capacity: u64,
    /// The greatest of them.
    pub max_capacity: u64,
    /// When it is computed again, jiffies.
    pub next_update: u64,
    /// Balancing a level below was kept from moving tasks by their allowed CPUs (`sg_imbalanced()`).
    pub imbalance: bool,
}

/// What CPUs under one cache share (`struct sched_domain_shared`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DomainShared {
    /// CPUs that are not idle with their tick stopped.
    pub nr_busy_cpus: u32,
    /// There may be a wholly idle core.
    pub has_idle_cores: bool,
    /// How many CPUs a search for an idle one looks at.
    pub nr_idle_scan: u32,
    /// Σ utilization, as balancing between caches last saw it (`util_avg`).
    pub util_avg: u64,
    /// Σ capacity left for fair tasks, likewise.
    pub capacity: u64,
}

/// What a CPU looks up often (`sd_llc` and so on).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuDomains {
    /// The smallest domain (`rq::sd`); `None` on a CPU that is alone.
    pub base: Option<DomainId>,
    /// How many domains there are.
    pub count: u32,
    /// The largest domain whose CPUs share a cache (`sd_llc`).
    pub sd_llc: Option<DomainId>,
    /// Its CPUs (`sd_llc_size`); 1 without.
    pub sd_llc_size: u32,
    /// Alike on CPUs that share a cache (`sd_llc_id`): the first of them.
    pub sd_llc_id: u32,
    /// Alike on CPUs that share a cluster, or else a cache (`sd_share_id`); from v6.7.
    pub sd_share_id: u32,
    /// What they share (`sd_llc_shared`).
    pub sd_llc_shared: Option<SharedId>,
    /// The smallest domain of several nodes (`sd_numa`).
    pub sd_numa: Option<DomainId>,
    /// The largest domain with preferred CPUs (`sd_asym_packing`).
    pub sd_asym_packing: Option<DomainId>,
    /// The smallest domain with CPUs of different capacity (`sd_asym_cpucapacity`); from v5.14 with all there are.
    pub sd_asym_cpucapacity: Option<DomainId>,
}

/// What all CPUs share (`struct root_domain`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RootDomain {
    /// Some CPU has more to do than it can (`overutilized`).
    pub overutilized: bool,
    /// The greatest capacity (`max_cpu_capacity`).
    pub max_cpu_capacity: u64,
}

/// The domains of a machine under one kernel.
#[derive(Clone, Debug)]
pub struct SchedDomains {
    rules: DomainRules,
    /// Those of CPU 0 bottom up, those of CPU 1, and so on.
    domains: Vec<SchedDomain>,
    groups: Vec<SchedGroup>,
    lists: Vec<Vec<SchedGroupId>>,
    capacities: Vec<GroupCapacity>,
    shared: Vec<DomainShared>,
    cpus: Vec<CpuDomains>,
    cpu_capacity_orig: Vec<u64>,
    cpu_capacity: Vec<u64>,
    /// CPUs that have less left for fair tasks than they can do.
    pressed: CpuMask,
    root: RootDomain,
}

impl SchedDomains {
    /// By which rules they were built.
    pub fn rules(&self) -> &DomainRules {
        &self.rules
    }

    /// A CPU's domains, the smallest first (`for_each_domain()`).
    pub fn domains_of(&self, cpu: Cpu) -> &[SchedDomain] {
        let cpu = &self.cpus[cpu.index()];
        let base = cpu.base.map_or(0, |base| base.0 as usize);
        &self.domains[base..base + cpu.count as usize]
    }

    /// The names of a CPU's domains, the smallest first.
    pub fn ids_of(&self, cpu: Cpu) -> impl DoubleEndedIterator<Item = DomainId> + use<> {
        let cpu = &self.cpus[cpu.index()];
        let base = cpu.base.map_or(0, |base| base.0);
        (base..base + cpu.count).map(DomainId)
    }

    /// A domain.
    pub fn domain(&self, id: DomainId) -> &SchedDomain {
        &self.domains[id.0 as usize]
    }

    /// A domain, to change what balancing remembers and counts.
    pub fn domain_mut(&mut self, id: DomainId) -> &mut SchedDomain {
        &mut self.domains[id.0 as usize]
    }

    /// A domain's groups in the order of its list: the group of its own CPU, then around (`sd->groups`, `sg->next`).
    pub fn groups(&self, domain: DomainId) -> impl Iterator<Item = SchedGroupId> + '_ {
        self.ring(self.domain(domain).groups)
    }

    /// How many groups a domain has.
    pub fn nr_groups(&self, domain: DomainId) -> usize {
        self.lists[self.domain(domain).groups.list as usize].len()
    }

    /// The group that a domain's own CPU is in (`sd->groups`).
    pub fn local_group(&self, domain: DomainId) -> SchedGroupId {
        let ring = self.domain(domain).groups;
        self.lists[ring.list as usize][ring.first as usize]
    }

    fn ring(&self, ring: GroupRing) -> impl Iterator<Item = SchedGroupId> + '_ {
        let list = &self.lists[ring.list as usize];
        let (before, from) = list.split_at(ring.first as usize);
        from.iter().chain(before).copied()
    }

    /// A group.
    pub fn group(&self, id: SchedGroupId) -> &SchedGroup {
        &self.groups[id.0 as usize]
    }

    /// All groups of all domains, by their numbers.
    pub(crate) fn all_groups(&self) -> &[SchedGroup] {
        &self.groups
    }

    /// What all points of view on a group share.
    pub fn capacity_of_group(&self, id: SchedGroupId) -> &GroupCapacity {
        &self.capacities[self.group(id).capacity.0 as usize]
    }

    /// The same, to change.
    pub fn capacity_of_group_mut(&mut self, id: SchedGroupId) -> &mut GroupCapacity {
        let capacity = self.group(id).capacity;
        &mut self.capacities[capacity.0 as usize]
    }

    /// What CPUs under a cache share.
    pub fn shared(&self, id: SharedId) -> &DomainShared {
        &self.shared[id.0 as usize]
    }

    /// The same, to change.
    pub fn shared_mut(&mut self, id: SharedId) -> &mut DomainShared {
        &mut self.shared[id.0 as usize]
    }

    /// What a CPU looks up often.
    pub fn of_cpu(&self, cpu: Cpu) -> &CpuDomains {
        &self.cpus[cpu.index()]
    }

    /// Whether the two share a last-level cache (`cpus_share_cache()`).
    pub fn cpus_share_cache(&self, one: Cpu, other: Cpu) -> bool {
        self.cpus[one.index()].sd_llc_id == self.cpus[other.index()].sd_llc_id
    }

    /// Whether the two share a cluster, or a last-level cache where there are none (`cpus_share_resources()`).
    pub fn cpus_share_resources(&self, one: Cpu, other: Cpu) -> bool {
        self.cpus[one.index()].sd_share_id == self.cpus[other.index()].sd_share_id
    }

    /// What all CPUs share.
    pub fn root(&self) -> &RootDomain {
        &self.root
    }

    /// The same, to change.
    pub fn root_mut(&mut self) -> &mut RootDomain {
        &mut self.root
    }

    /// Whether all CPUs of a group have all of their capacity left for fair tasks.
    pub(crate) fn is_unpressed(&self, group: &SchedGroup) -> bool {
        self.pressed.iter_both(&group.span).next().is_none()
    }

    /// A CPU's capacity when nothing but fair tasks uses it (`rq::cpu_capacity_orig`).
    pub fn cpu_capacity_orig(&self, cpu: Cpu) -> u64 {
        self.cpu_capacity_orig[cpu.index()]
    }
}
