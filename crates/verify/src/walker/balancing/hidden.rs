//! What balancing would do under other values of what a trace without a snapshot does not show: CPUs' loads, which depend on
//! tasks' groups, and where tasks may run.
//!
//! Must not know: what the kernel did.

use fairlab_kernel::balance::{BalanceDecision, MigrationType};
use fairlab_kernel::{CpuMask, Scheduler};

use super::super::selections::BEYOND_ANY_LOAD;
use super::super::{AFFINITY_HIDDEN, GROUPS_HIDDEN, Walker};
use super::looking::first_try;

impl Walker {
    /// Why the queue that `decision` takes from cannot be judged; `level` is `None` where it is not known.
    pub(super) fn hides_source(
        &self,
        finds: &Scheduler,
        decision: &BalanceDecision,
        level: Option<usize>,
    ) -> Option<&'static str> {
        if self.groups_hidden && hangs_on_loads(finds, decision, level) {
            return Some(GROUPS_HIDDEN);
        }
        let mut taken = decision.pulls.iter().flat_map(|pull| pull.moved().map(|task| (task, pull.dest)));
        taken.next().is_some_and(|(task, dest)| self.doubts_move(task, dest)).then_some(AFFINITY_HIDDEN)
    }

    /// Why the task that is taken in this measure cannot be judged.
    pub(super) fn hides_task(&self, measure: MigrationType) -> Option<&'static str> {
        (self.groups_hidden && measure == MigrationType::Load).then_some(GROUPS_HIDDEN)
    }
}

/// Whether another queue, or none, is found if one CPU had the smallest or the largest possible load.
fn hangs_on_loads(finds: &Scheduler, decision: &BalanceDecision, level: Option<usize>) -> bool {
    let (cpu, idle) = (decision.cpu, decision.idle);
    let mut finds = finds.clone();
    let span = finds.domains().domains_of(cpu).last().map(|sd| sd.span);
    span.iter().flat_map(CpuMask::iter).any(|other| {
        let [load, runnable, util] = finds.root_averages(other);
        let hangs = [0, BEYOND_ANY_LOAD].into_iter().any(|pretended| {
            finds.pretend_cpu_load(other, pretended);
            let decide = |level| finds.decide_balance(cpu, level, idle);
            let found = level.map_or_else(|| first_try(&finds, cpu, decide), |level| Some(decide(level)));
            found.is_some_and(|found| found.source != decision.source)
        });
        finds.pretend_cpu_load(other, load);
        finds.pretend_cpu_util(other, runnable, util);
        hangs
    })
}
