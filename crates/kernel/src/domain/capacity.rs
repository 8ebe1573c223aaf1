//! `update_group_capacity()`: how much a group of CPUs can do.

use fairlab_event::Cpu;

use super::rules::OverlapCapacity;
use super::{DomainId, SchedDomains, SchedGroupId, SdFlags};

/// What the CPUs of a group have left for fair tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupExtent {
    /// All of them together.
    pub capacity: u64,
    /// The one with the least.
    pub min: u64,
    /// The one with the most.
    pub max: u64,
}

/// Whether `util` leaves a fifth of `capacity` free (`fits_capacity()`).
pub(crate) const fn fits_capacity(util: u64, capacity: u64) -> bool {
    util * 1280 < capacity * 1024
}

impl SchedDomains {
    /// What the CPU's own group in `domain` can do, if that CPU has `own` left for fair tasks.
    ///
    /// `own` enters at a CPU's smallest domain only; above, CPUs have what they had when their smallest was last computed.
    ///
    /// Kernel: `update_group_capacity()`, kernel/sched/fair.c. Variants: running sums in groups of nodes to v5.5
    /// (4c58f57fa6e9).
    pub(crate) fn extent_of_group(&self, domain: DomainId, own: u64) -> GroupExtent {
        match self.domain(domain).child {
            None => GroupExtent { capacity: own, min: own, max: own },
            Some(child) if self.domain(child).flags.has(SdFlags::NUMA) => {
                self.extent_of_cpus(self.local_group(domain))
            }
            Some(child) => self.extent_of_groups(child),
        }
    }

    /// The CPU's own group in `domain` has this from now on.
    pub(crate) fn set_extent(&mut self, domain: DomainId, extent: GroupExtent) {
        let (cpu, is_smallest) = (self.domain(domain).cpu, self.domain(domain).child.is_none());
        if is_smallest {
            self.cpu_capacity[cpu.index()] = extent.capacity;
            match extent.capacity < self.cpu_capacity_orig[cpu.index()] {
                true => self.pressed.set(cpu),
                false => self.pressed.clear(cpu),
            }
        }
        let capacity = self.capacity_of_group_mut(self.local_group(domain));
        (capacity.capacity, capacity.min_capacity, capacity.max_capacity) =
            (extent.capacity, extent.min, extent.max);
    }

    /// Groups of nodes overlap: a child's groups may reach beyond the group.
    fn extent_of_cpus(&self, group: SchedGroupId) -> GroupExtent {
        let mut extent = GroupExtent { capacity: 0, min: u64::MAX, max: 0 };
        for cpu in self.group(group).span.iter() {
            let capacity = self.cpu_capacity(cpu);
            extent.capacity += capacity;
            let seen = match self.rules.overlap_capacity {
                OverlapCapacity::RunningSums => extent.capacity,
                OverlapCapacity::EachCpu => capacity,
            };
            extent.min = extent.min.min(seen);
            extent.max = extent.max.max(seen);
        }
        extent
    }

    fn extent_of_groups(&self, child: DomainId) -> GroupExtent {
        let groups = self.groups(child).map(|group| self.capacity_of_group(group));
        groups.fold(GroupExtent { capacity: 0, min: u64::MAX, max: 0 }, |extent, group| GroupExtent {
            capacity: extent.capacity + group.capacity,
            min: extent.min.min(group.min_capacity),
            max: extent.max.max(group.max_capacity),
        })
    }

    /// What a CPU has left for fair tasks, as it was last computed (`rq::cpu_capacity`).
    pub(crate) fn cpu_capacity(&self, cpu: Cpu) -> u64 {
        self.cpu_capacity[cpu.index()]
    }
}
