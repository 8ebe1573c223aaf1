//! `sd_init()`: one domain before it has groups.

use fairlab_event::Cpu;

use super::DomainBuilder;
use crate::cpumask::CpuMask;
use crate::domain::level::DomainSpan;
use crate::domain::rules::{
    AsymDetection, AsymSpreading, AsymWakeup, LoadBalanceFlag, OverlapFlag, ReclaimDistance,
};
use crate::domain::{
    BalanceState, DomainId, DomainShared, GroupRing, LoadIndexes, SchedDomain, SdFlags, SharedId,
};
use crate::schedstat::DomainCounters;

/// `RECLAIM_DISTANCE`: to v5.3 no platform could change it.
const RECLAIM_DISTANCE: u32 = 30;

impl DomainBuilder<'_> {
    /// `cpu`'s domain at `level`, without groups.
    ///
    /// Kernel: `sd_init()`, kernel/sched/topology.c. Variants: `busy_factor` 32 to v5.9 (6e7499135db7); `imbalance_pct` 125
    /// above the cache to v5.9 (2208cdaa56c9); load indexes to v5.2.
    pub(super) fn sd_init(&mut self, level: usize, cpu: Cpu, asymmetric: Option<usize>) -> SchedDomain {
        let rules = self.made.rules;
        let tl = self.levels[level];
        let span = tl.mask(self.topology, cpu);
        let weight = span.weight() as u32;
        let mut flags = SdFlags::BALANCE_NEWIDLE
            | SdFlags::BALANCE_EXEC
            | SdFlags::BALANCE_FORK
            | SdFlags::WAKE_AFFINE
            | SdFlags::PREFER_SIBLING
            | tl.flags
            | self.asymmetry(level, &span, asymmetric);
        if rules.load_balance_flag == LoadBalanceFlag::Set {
            flags |= SdFlags::LOAD_BALANCE;
        }
        if rules.overlap_flag == OverlapFlag::Set && tl.is_numa() {
            flags |= SdFlags::OVERLAP;
        }
        let (imbalance_pct, cache_nice_tries, load_index) = if flags.has(SdFlags::SHARE_CPUCAPACITY) {
            (110, 0, LoadIndexes { busy: 0, idle: 0 })
        } else if flags.has(SdFlags::SHARE_LLC) {
            (117, 1, LoadIndexes { busy: 2, idle: 0 })
        } else if flags.has(SdFlags::NUMA) {
            (rules.imbalance_pct.value(), 2, LoadIndexes { busy: 3, idle: 2 })
        } else {
            (rules.imbalance_pct.value(), 1, LoadIndexes { busy: 2, idle: 1 })
        };
        if let DomainSpan::Distance(distance) = tl.kind {
            flags = (flags & !SdFlags::PREFER_SIBLING) | SdFlags::SERIALIZE;
            let local = match rules.reclaim_distance {
                ReclaimDistance::Fixed => RECLAIM_DISTANCE,
                ReclaimDistance::ByPlatform => self.topology.reclaim_distance(),
            };
            if distance > local {
                flags = flags & !(SdFlags::BALANCE_EXEC | SdFlags::BALANCE_FORK | SdFlags::WAKE_AFFINE);
            }
        }
        SchedDomain {
            cpu,
            name: tl.name,
            level: level as u32,
            span,
            span_weight: weight,
            flags,
            parent: None,
            child: None,
            shared: flags.has(SdFlags::SHARE_LLC).then(|| self.share(level, &span)),
            min_interval: weight,
            max_interval: 2 * weight,
            busy_factor: rules.busy_factor.value(),
            imbalance_pct,
            cache_nice_tries,
            imb_numa_nr: 0,
            load_index,
            balance: BalanceState {
                balance_interval: weight,
                // Half of them are taken to succeed.
                newidle_call: 512,
                newidle_success: 256,
                newidle_ratio: 512,
                ..BalanceState::default()
            },
            counters: DomainCounters::default(),
            groups: GroupRing::default(),
        }
    }

    /// What the CPUs of `span` share at `level`.
    fn share(&mut self, level: usize, span: &CpuMask) -> SharedId {
        let first = span.lowest().expect("a domain has its CPU");
        let shared = &mut self.made.shared;
        *self.shared_ids.entry((level, first)).or_insert_with(|| {
            shared.push(DomainShared { nr_busy_cpus: span.weight() as u32, ..DomainShared::default() });
            SharedId(shared.len() as u32 - 1)
        })
    }

    /// Which flags a domain has for CPUs of different capacity.
    ///
    /// Kernel: `asym_cpu_capacity_level()` to v5.13, `asym_cpu_capacity_classify()` from v5.14 (c744dc4ab58d).
    fn asymmetry(&self, level: usize, span: &CpuMask, lowest: Option<usize>) -> SdFlags {
        let marked = match (self.made.rules.asym_detection, lowest) {
            (AsymDetection::EachDomain, _) => return self.classify(span),
            (AsymDetection::ByPlatform, _) | (_, None) => false,
            (AsymDetection::LowestLevel, Some(lowest)) => level == lowest,
            (AsymDetection::FromLowestLevel, Some(lowest)) => level >= lowest,
        };
        if marked { SdFlags::ASYM_CPUCAPACITY } else { SdFlags::EMPTY }
    }

    fn classify(&self, span: &CpuMask) -> SdFlags {
        let capacities_of = |cpus: &CpuMask| {
            let mut capacities = cpus.iter().map(|cpu| self.topology.capacity(cpu)).collect::<Vec<_>>();
            capacities.sort_unstable();
            capacities.dedup();
            capacities.len()
        };
        if !self.topology.has_asymmetric_capacity() {
            return SdFlags::EMPTY;
        }
        match capacities_of(span) {
            0 | 1 => SdFlags::EMPTY,
            some if some < capacities_of(self.topology.online()) => SdFlags::ASYM_CPUCAPACITY,
            _ => SdFlags::ASYM_CPUCAPACITY | SdFlags::ASYM_CPUCAPACITY_FULL,
        }
    }

    /// The lowest level at which every CPU sees one of the greatest capacity, if capacities differ.
    pub(super) fn asym_cpu_capacity_level(&self) -> Option<usize> {
        if !self.topology.has_asymmetric_capacity() {
            return None;
        }
        let mut lowest = None;
        for cpu in self.topology.cpus() {
            let mut greatest = self.topology.capacity(cpu);
            for level in lowest.unwrap_or(0)..self.levels.len() {
                let span = self.levels[level].mask(self.topology, cpu);
                let seen = span.iter().map(|other| self.topology.capacity(other)).max().unwrap_or(greatest);
                if seen > greatest {
                    greatest = seen;
                    lowest = Some(level);
                }
            }
        }
        lowest
    }

    /// Below a domain with CPUs of different capacity tasks are not spread; there and in it wakeups search, to v5.6.
    pub(super) fn spare_other_capacities(&mut self) {
        let rules = self.made.rules;
        for at in 0..self.made.domains.len() {
            if !self.made.domains[at].flags.has(SdFlags::ASYM_CPUCAPACITY) {
                continue;
            }
            let child = self.made.domains[at].child;
            if let Some(child) = child.filter(|_| rules.asym_spreading == AsymSpreading::NotBelow) {
                let child = self.made.domain_mut(child);
                child.flags = child.flags & !SdFlags::PREFER_SIBLING;
            }
            // The kernel's for_each_lower_domain() begins with the domain itself.
            let mut level = Some(DomainId(at as u32));
            while let Some(lower) = level.filter(|_| rules.asym_wakeup == AsymWakeup::Searches) {
                let lower = self.made.domain_mut(lower);
                lower.flags |= SdFlags::BALANCE_WAKE;
                level = lower.child;
            }
        }
    }
}
