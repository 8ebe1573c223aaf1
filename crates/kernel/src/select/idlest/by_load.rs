//! The idlest group by load and spare capacity, to v5.4.

use fairlab_event::Cpu;

use super::Seeker;
use crate::core::Scheduler;
use crate::domain::{DomainId, SchedGroupId, SdFlags};

/// What a group bears.
#[derive(Clone, Copy, Debug)]
struct Bears {
    /// Runnable load per capacity.
    runnable: u64,
    /// Load, blocked tasks' included, per capacity.
    average: u64,
    /// What the CPU with most to spare has to spare.
    spare: u64,
}

/// The load of one task of nice 0.
const NICE_0_LOAD: u64 = 1024;

impl Scheduler {
    /// Kernel: `find_idlest_group()`, kernel/sched/fair.c, to v5.4.
    /// Departs: `forkexec_idx` is 0 in every domain, so that no history of loads is looked at.
    pub(super) fn idlest_group_by_load(
        &self,
        domain: DomainId,
        seeker: Seeker,
        this_cpu: Cpu,
    ) -> Option<SchedGroupId> {
        let sd = self.domains.domain(domain);
        let pct = u64::from(sd.imbalance_pct);
        let scale = 100 + (pct - 100) / 2;
        let imbalance = NICE_0_LOAD * (pct - 100) / 100;
        let mut this = Bears { runnable: u64::MAX, average: u64::MAX, spare: 0 };
        let mut least = this;
        let (mut idlest, mut most_spare) = (None, (0, None));
        for group in self.domains.groups(domain) {
            let span = self.domains.group(group).span;
            if span.and(&self.tasks[seeker.wakee.task.index()].allowed).is_empty() {
                continue;
            }
            let bears = self.bears(group, seeker);
            if span.contains(this_cpu) {
                this = bears;
                continue;
            }
            if least.runnable > bears.runnable + imbalance {
                (least, idlest) = (bears, Some(group));
            } else if bears.runnable < least.runnable.saturating_add(imbalance)
                && 100 * u128::from(least.average) > u128::from(scale * bears.average)
            {
                least.average = bears.average;
                idlest = Some(group);
            }
            if most_spare.0 < bears.spare {
                most_spare = (bears.spare, Some(group));
            }
        }
        if !seeker.is_new {
            let needed = seeker.avg.util_avg / 2;
            if this.spare > needed && scale * this.spare > 100 * most_spare.0 {
                return None;
            }
            if most_spare.0 > needed {
                return most_spare.1;
            }
        }
        let idlest = idlest?;
        let numa_stays =
            sd.flags.has(SdFlags::NUMA) && least.runnable.saturating_add(imbalance) >= this.runnable;
        let more_there = least.runnable > this.runnable.saturating_add(imbalance);
        let about_equal = this.runnable < least.runnable.saturating_add(imbalance)
            && 100 * u128::from(this.average) < u128::from(scale) * u128::from(least.average);
        (!numa_stays && !more_there && !about_equal).then_some(idlest)
    }

    fn bears(&self, group: SchedGroupId, seeker: Seeker) -> Bears {
        let capacity = self.domains.capacity_of_group(group).capacity;
        let (mut runnable, mut average, mut spare) = (0, 0, 0);
        for cpu in self.domains.group(group).span.iter() {
            runnable += self.cpu_load(cpu);
            average += self.avg_of(cpu).load_avg;
            let left = self.capacity_of(cpu).saturating_sub(self.cpu_util_without(cpu, seeker));
            spare = spare.max(left);
        }
        Bears { runnable: runnable * 1024 / capacity, average: average * 1024 / capacity, spare }
    }
}
