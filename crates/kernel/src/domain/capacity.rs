//! `update_group_capacity()`: how much a group of CPUs can do.

use fairlab_event::Cpu;

use super::rules::OverlapCapacity;
use super::{DomainId, Domains, SchedGroupId, SdFlags};

/// Sum, least and greatest of capacities.
#[derive(Clone, Copy, Debug)]
struct Extent {
    sum: u64,
    min: u64,
    max: u64,
}

impl Domains {
    /// Computes anew what the CPU's own group in `domain` can do; `capacity_of` says what a CPU has left for fair tasks.
    ///
    /// A CPU's own capacity enters at its smallest domain. The driver sets [`super::GroupCapacity::next_update`].
    ///
    /// Kernel: `update_group_capacity()`, kernel/sched/fair.c. Variants: running sums in groups of nodes to v5.5
    /// (4c58f57fa6e9).
    pub fn update_group_capacity(&mut self, domain: DomainId, capacity_of: &impl Fn(Cpu) -> u64) {
        let local = self.local_group(domain);
        let extent = match self.domain(domain).child {
            None => {
                let capacity = capacity_of(self.domain(domain).cpu);
                Extent { sum: capacity, min: capacity, max: capacity }
            }
            Some(child) if self.domain(child).flags.has(SdFlags::NUMA) => {
                self.extent_of_cpus(local, capacity_of)
            }
            Some(child) => self.extent_of_groups(child),
        };
        let capacity = self.capacity_of_group_mut(local);
        capacity.capacity = extent.sum;
        capacity.min_capacity = extent.min;
        capacity.max_capacity = extent.max;
    }

    /// Groups of nodes overlap: a child's groups may reach beyond the group.
    fn extent_of_cpus(&self, group: SchedGroupId, capacity_of: &impl Fn(Cpu) -> u64) -> Extent {
        let mut extent = Extent { sum: 0, min: u64::MAX, max: 0 };
        for cpu in self.group(group).span.iter() {
            let capacity = capacity_of(cpu);
            extent.sum += capacity;
            let seen = match self.rules.overlap_capacity {
                OverlapCapacity::RunningSums => extent.sum,
                OverlapCapacity::EachCpu => capacity,
            };
            extent.min = extent.min.min(seen);
            extent.max = extent.max.max(seen);
        }
        extent
    }

    fn extent_of_groups(&self, child: DomainId) -> Extent {
        let groups = self.groups(child).map(|group| self.capacity_of_group(group));
        groups.fold(Extent { sum: 0, min: u64::MAX, max: 0 }, |extent, group| Extent {
            sum: extent.sum + group.capacity,
            min: extent.min.min(group.min_capacity),
            max: extent.max.max(group.max_capacity),
        })
    }
}
