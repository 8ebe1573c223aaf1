//! `build_sched_groups()` and `build_overlap_sched_groups()`: the circular lists of groups.

use std::collections::BTreeMap;

use fairlab_event::Cpu;

use super::DomainBuilder;
use crate::cpumask::CpuMask;
use crate::domain::rules::{GroupFlags, OverlapGroups};
use crate::domain::{CapacityId, GroupCapacity, GroupRing, SchedGroup, SchedGroupId, SdFlags};

/// The capacity of a CPU that nothing is known of (`SCHED_CAPACITY_SCALE`).
const CAPACITY_SCALE: u64 = 1024;

impl DomainBuilder<'_> {
    /// The groups of every domain.
    pub(super) fn build_groups(&mut self) {
        for level in 0..self.levels.len() {
            match self.levels[level].is_numa() {
                true => self.build_overlap_sched_groups(level),
                false => self.build_sched_groups(level),
            }
        }
    }

    /// Groups of a level whose domains do not overlap: all CPUs of a domain share them and their list.
    ///
    /// Kernel: `build_sched_groups()`, `get_group()`, kernel/sched/topology.c. Every CPU links the list again in the order of
    /// its own walk; the last CPU's links stay.
    fn build_sched_groups(&mut self, level: usize) {
        let mut groups = BTreeMap::new();
        let mut lists = BTreeMap::new();
        for cpu in self.topology.cpus() {
            let Some(domain) = self.at(level, cpu) else { continue };
            let (span, first_cpu) = (domain.span, domain.span.lowest().expect("a domain has its CPU"));
            let last_cpu = span.iter().last().expect("a domain has its CPU");
            let list = match lists.get(&first_cpu) {
                Some(&list) => list,
                None => {
                    let list = self.link_groups(level, &span, last_cpu, &mut groups);
                    lists.insert(first_cpu, list);
                    list
                }
            };
            let own = groups[&self.group_cpu(level, cpu)];
            let place = self.made.lists[list as usize].iter().position(|&group| group == own);
            let first = place.expect("a CPU's group is on its list") as u32;
            self.set_groups(level, cpu, GroupRing { list, first });
        }
    }

    /// The CPU that stands for `cpu`'s group: the first of its child domain, itself at the bottom.
    fn group_cpu(&self, level: usize, cpu: Cpu) -> Cpu {
        let child = level.checked_sub(1).and_then(|below| self.at(below, cpu));
        child.and_then(|child| child.span.lowest()).unwrap_or(cpu)
    }

    /// The list of a domain's groups as the walk from `from` links it.
    fn link_groups(
        &mut self,
        level: usize,
        span: &CpuMask,
        from: Cpu,
        groups: &mut BTreeMap<Cpu, SchedGroupId>,
    ) -> u32 {
        let mut covered = CpuMask::EMPTY;
        let mut list = Vec::new();
        for cpu in span.iter_wrap(from) {
            if covered.contains(cpu) {
                continue;
            }
            let key = self.group_cpu(level, cpu);
            let group = *groups.entry(key).or_insert_with(|| self.get_group(level, cpu, key));
            covered = covered.or(&self.made.group(group).span);
            list.push(group);
        }
        self.add_list(list)
    }

    /// A group that no other overlaps: all its CPUs may balance for it.
    fn get_group(&mut self, level: usize, cpu: Cpu, first: Cpu) -> SchedGroupId {
        let child = level.checked_sub(1).and_then(|below| self.at(below, cpu));
        let (span, flags) =
            child.map_or((CpuMask::single(cpu), SdFlags::EMPTY), |child| (child.span, child.flags));
        let capacity = self.capacity(level, first, &span, span);
        self.add_group(span, flags, capacity)
    }

    /// Groups of a level whose domains may overlap: every domain has its own; their capacity is shared.
    ///
    /// Kernel: `build_overlap_sched_groups()`, kernel/sched/topology.c. Variants: groups stay within the domain from v5.13
    /// (585b6d2723dc).
    fn build_overlap_sched_groups(&mut self, level: usize) {
        for cpu in self.topology.cpus() {
            let Some(domain) = self.at(level, cpu) else { continue };
            let span = domain.span;
            let mut covered = CpuMask::EMPTY;
            let mut list = Vec::new();
            for other in span.iter_wrap(cpu) {
                // A CPU whose domains end lower has none here; others' groups cover it.
                if covered.contains(other) || self.at(level, other).is_none() {
                    continue;
                }
                let below = self.group_level(level, other, &span);
                let group = self.overlap_group(below, other);
                covered = covered.or(&self.made.group(group).span);
                list.push(group);
            }
            let list = self.add_list(list);
            self.set_groups(level, cpu, GroupRing { list, first: 0 });
        }
    }

    /// The level of `cpu`'s domain whose child is the group in a domain of `span`.
    ///
    /// Kernel: `find_descended_sibling()`.
    fn group_level(&self, level: usize, cpu: Cpu, span: &CpuMask) -> usize {
        let child_span = |level: usize| {
            let below = level.checked_sub(1)?;
            self.at(below, cpu).map(|child| child.span)
        };
        let reaches_out = |level: usize| child_span(level).is_some_and(|child| !span.contains_all(&child));
        let mut found = level;
        if self.made.rules.overlap_groups == OverlapGroups::ChildOfSibling || !reaches_out(found) {
            return found;
        }
        while reaches_out(found) {
            found -= 1;
        }
        // Domains that will go away have no capacity that stays.
        while child_span(found).is_some_and(|child| self.at(found, cpu).is_some_and(|own| own.span == child))
        {
            found -= 1;
        }
        found
    }

    /// The group that is the child of `cpu`'s domain at `level`.
    fn overlap_group(&mut self, level: usize, cpu: Cpu) -> SchedGroupId {
        let below = level.checked_sub(1).and_then(|below| self.at(below, cpu));
        let own = self.at(level, cpu).expect("asked for where it is");
        let (span, flags) = below.map_or((own.span, SdFlags::EMPTY), |child| (child.span, child.flags));
        let mask = self.build_balance_mask(level, &span);
        let stands_for = mask.lowest().or(span.lowest()).expect("a group has a CPU");
        let capacity = self.capacity(level, stands_for, &span, mask);
        self.add_group(span, flags, capacity)
    }

    /// The CPUs of a group that come to it from below, and may go on to balance for it.
    ///
    /// Kernel: `build_balance_mask()`, kernel/sched/topology.c.
    fn build_balance_mask(&self, level: usize, span: &CpuMask) -> CpuMask {
        let comes_here = |cpu: &Cpu| {
            let child = self.at(level, *cpu).and_then(|_| self.at(level.checked_sub(1)?, *cpu));
            child.is_some_and(|child| child.span == *span)
        };
        span.iter().filter(comes_here).collect()
    }

    /// The capacity at `level` that `cpu` stands for; all points of view on a group find the same.
    fn capacity(&mut self, level: usize, cpu: Cpu, span: &CpuMask, balance_mask: CpuMask) -> CapacityId {
        let capacities = &mut self.made.capacities;
        *self.capacity_ids.entry((level, cpu)).or_insert_with(|| {
            capacities.push(GroupCapacity {
                balance_mask,
                balance_cpu: cpu,
                capacity: CAPACITY_SCALE * span.weight() as u64,
                min_capacity: CAPACITY_SCALE,
                max_capacity: CAPACITY_SCALE,
                next_update: 0,
                imbalance: false,
            });
            CapacityId(capacities.len() as u32 - 1)
        })
    }

    fn add_group(&mut self, span: CpuMask, flags: SdFlags, capacity: CapacityId) -> SchedGroupId {
        let first_of_core = |cpu: &Cpu| {
            let threads = self.topology.smt_mask(*cpu).and(&span);
            threads.lowest() == Some(*cpu)
        };
        let cores = span.iter().filter(first_of_core).count() as u32;
        let known = self.made.rules.group_flags != GroupFlags::None;
        let flags = if known { flags } else { SdFlags::EMPTY };
        self.made.groups.push(SchedGroup { span, weight: span.weight() as u32, cores, flags, capacity });
        SchedGroupId(self.made.groups.len() as u32 - 1)
    }
}
