//! Which CPUs share a cache or a cluster, and which of them are marked idle.
//!
//! Must not know: who searches them.

use fairlab_event::Cpu;

use crate::cpumask::CpuMask;
use crate::domain::{DomainId, SchedDomain, SdFlags};
use crate::scheduler::Scheduler;
use crate::select::rules::{Cluster, IdleMask};

impl Scheduler {
    /// The largest domain of `cpu` whose CPUs share a cache (`sd_llc`).
    pub(crate) fn sd_llc(&self, cpu: Cpu) -> Option<(DomainId, &SchedDomain)> {
        let id = self.domains.of_cpu(cpu).sd_llc?;
        Some((id, self.domains.domain(id)))
    }

    /// The CPUs that share a cache with `cpu`.
    pub(crate) fn llc_span(&self, cpu: Cpu) -> &CpuMask {
        self.sd_llc(cpu).map_or_else(|| self.shared.topology.llc_mask(cpu), |(_, domain)| &domain.span)
    }

    /// The target's cluster, where it is to be searched first.
    pub(crate) fn cluster_to_scan(&self, target: Cpu) -> Option<&CpuMask> {
        if self.shared.generation.select.cluster == Cluster::Ignored {
            return None;
        }
        let (llc, _) = self.sd_llc(target)?;
        let group = self.domains.group(self.domains.local_group(llc));
        group.flags.has(SdFlags::CLUSTER).then_some(&group.span)
    }

    /// The CPUs under the target's cache that are marked idle, where they are marked.
    pub(crate) fn marked_idle_near(&self, target: Cpu) -> Option<&CpuMask> {
        let shared = self.domains.of_cpu(target).sd_llc_shared?;
        let marks = self.shared.generation.select.idle_mask == IdleMask::SetOnIdle;
        self.idle_masks.get(shared.0 as usize).filter(|_| marks)
    }
}
