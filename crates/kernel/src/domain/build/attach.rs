//! `cpu_attach_domain()`: levels without use go away, and each CPU looks up what it asks for often.

use fairlab_event::Cpu;

use super::DomainBuilder;
use crate::domain::rules::{AsymDetection, DomainRules, GroupFlags, NeedsGroups};
use crate::domain::{CpuDomains, DomainId, SchedDomain, SdFlags};

impl DomainRules {
    /// Flags that mean nothing in a domain of one group.
    ///
    /// Kernel: the lists in `sd_degenerate()` and `sd_parent_degenerate()` to v5.9, `SDF_NEEDS_GROUPS` from v5.10
    /// (4ee4ea443a5d, 6f349818621d and those between).
    fn needing_groups(&self) -> SdFlags {
        let listed = SdFlags::LOAD_BALANCE
            | SdFlags::BALANCE_NEWIDLE
            | SdFlags::BALANCE_FORK
            | SdFlags::BALANCE_EXEC
            | SdFlags::ASYM_CPUCAPACITY
            | SdFlags::SHARE_CPUCAPACITY
            | SdFlags::SHARE_LLC;
        match self.needs_groups {
            NeedsGroups::Listed => listed,
            NeedsGroups::AllButWakeAffine => !SdFlags::WAKE_AFFINE,
        }
    }

    /// Those that mean nothing in a parent of one group.
    fn needing_groups_above(&self) -> SdFlags {
        match self.needs_groups {
            NeedsGroups::Listed => self.needing_groups() | SdFlags::PREFER_SIBLING,
            NeedsGroups::AllButWakeAffine => self.needing_groups(),
        }
    }
}

impl DomainBuilder<'_> {
    /// Keeps of each CPU's domains those that contribute to scheduling.
    ///
    /// Kernel: `cpu_attach_domain()`, kernel/sched/topology.c. Variants: flags of groups whose child goes away are cleared
    /// from v5.16 (16d364ba6ef2), and follow the child that is left from v6.6 (4efcc8bc7e08).
    pub(super) fn attach(&mut self) {
        let mut kept = Vec::new();
        for cpu in self.topology.cpus() {
            let domains = self.contributing(cpu);
            let base = kept.len();
            let count = domains.len();
            for (at, id) in domains.into_iter().enumerate() {
                let mut domain = self.made.domain(id).clone();
                domain.child = (at > 0).then(|| DomainId((base + at) as u32 - 1));
                domain.parent = (at + 1 < count).then(|| DomainId((base + at) as u32 + 1));
                kept.push(domain);
            }
            let looked_up = self.update_top_cache_domain(cpu, &kept[base..], base);
            self.made.cpus.push(looked_up);
        }
        self.made.domains = kept;
    }

    /// `cpu`'s domains without those that add nothing, bottom up.
    fn contributing(&mut self, cpu: Cpu) -> Vec<DomainId> {
        let mut left = (self.starts[cpu.index()]..self.starts[cpu.index() + 1])
            .map(|at| DomainId(at as u32))
            .collect::<Vec<_>>();
        let mut at = 0;
        while at + 1 < left.len() {
            let (lower, parent) = (left[at], left[at + 1]);
            if !self.parent_degenerate(lower, parent) {
                at += 1;
                continue;
            }
            left.remove(at + 1);
            let flags = self.made.domain(lower).flags;
            if let Some(&above) = left.get(at + 1) {
                self.update_group_flags(above, flags);
            }
            // The spans are the same, so what holds for the one holds for the other.
            let spreads = self.made.domain(parent).flags & SdFlags::PREFER_SIBLING;
            self.made.domain_mut(lower).flags |= spreads;
        }
        if left.first().is_some_and(|&lowest| self.degenerate(lowest)) {
            left.remove(0);
            if let Some(&lowest) = left.first() {
                let group = self.made.local_group(lowest);
                self.made.groups[group.0 as usize].flags = SdFlags::EMPTY;
            }
        }
        left
    }

    /// Tells the local group of `above` which child is left below it.
    fn update_group_flags(&mut self, above: DomainId, flags: SdFlags) {
        let group = self.made.local_group(above);
        let group = &mut self.made.groups[group.0 as usize];
        match self.made.rules.group_flags {
            GroupFlags::None | GroupFlags::OfBuiltChild => {}
            GroupFlags::SmtKept => group.flags |= flags & SdFlags::SHARE_CPUCAPACITY,
            GroupFlags::OfPresentChild => group.flags = flags,
        }
    }

    /// Whether a domain adds nothing by itself (`sd_degenerate()`).
    fn degenerate(&self, id: DomainId) -> bool {
        let domain = self.made.domain(id);
        let of_use = (domain.flags.has(self.made.rules.needing_groups()) && self.made.nr_groups(id) > 1)
            || domain.flags.has(SdFlags::WAKE_AFFINE);
        domain.span_weight == 1 || !of_use
    }

    /// Whether `parent` adds nothing to `lower` (`sd_parent_degenerate()`).
    fn parent_degenerate(&self, lower: DomainId, parent: DomainId) -> bool {
        if self.degenerate(parent) {
            return true;
        }
        let (child, above) = (self.made.domain(lower), self.made.domain(parent));
        let one_group = self.made.nr_groups(parent) == 1;
        let meaningless = if one_group { self.made.rules.needing_groups_above() } else { SdFlags::EMPTY };
        child.span == above.span && (above.flags & !meaningless & !child.flags).is_empty()
    }

    /// What `cpu` asks for often; its domains are at `base`.
    ///
    /// Kernel: `update_top_cache_domain()`, kernel/sched/topology.c; `highest_flag_domain()`, kernel/sched/sched.h.
    fn update_top_cache_domain(&self, cpu: Cpu, domains: &[SchedDomain], base: usize) -> CpuDomains {
        let id = |at: usize| DomainId((base + at) as u32);
        let lowest = |flag: SdFlags| domains.iter().position(|domain| domain.flags.has(flag));
        // A cache's flag is that of all domains below. So was that of packing as long as threads had it (to v6.4); after
        // that the search goes on past them.
        let highest = |flag: SdFlags| domains.iter().rposition(|domain| domain.flags.has(flag));
        let llc = highest(SdFlags::SHARE_LLC);
        let first_of = |at: usize| domains[at].span.lowest().map_or(cpu.0, |first| first.0);
        let asymmetric = match self.made.rules.asym_detection {
            AsymDetection::EachDomain => SdFlags::ASYM_CPUCAPACITY_FULL,
            _ => SdFlags::ASYM_CPUCAPACITY,
        };
        let sd_llc_id = llc.map_or(cpu.0, first_of);
        CpuDomains {
            base: (!domains.is_empty()).then(|| id(0)),
            count: domains.len() as u32,
            sd_llc: llc.map(id),
            sd_llc_size: llc.map_or(1, |at| domains[at].span_weight),
            sd_llc_id,
            sd_share_id: lowest(SdFlags::CLUSTER).map_or(sd_llc_id, first_of),
            sd_llc_shared: llc.and_then(|at| domains[at].shared),
            sd_numa: lowest(SdFlags::NUMA).map(id),
            sd_asym_packing: highest(SdFlags::ASYM_PACKING).map(id),
            sd_asym_cpucapacity: lowest(asymmetric).map(id),
        }
    }
}
