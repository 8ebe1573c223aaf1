//! `sched_yield()`.

use crate::fair::rules::Yield;
use crate::rq::LockedRq;
use crate::task::{Policy, TaskId};

impl LockedRq<'_> {
    /// Applies a yield of the running task.
    ///
    /// Kernel: `yield_task_fair()`, kernel/sched/fair.c. Variants: `SkipBuddy` to v6.5, `PushDeadline` from v6.6.
    pub(crate) fn yield_task_fair(&mut self, task: TaskId) {
        self.shared.probe_yield(self.shared.tasks[task.index()].cpu);
        let se = self.shared.tasks[task.index()].se;
        if self.rq.nr_running == 1 {
            return;
        }
        self.shared.clear_buddies(se);
        match self.shared.generation.fair.yielding {
            Yield::SkipBuddy => {
                if self.shared.tasks[task.index()].policy != Policy::Batch {
                    self.update_curr(self.se(se).cfs_rq);
                    self.rq_clock_skip_update();
                }
                self.shared.set_skip_buddy(se);
            }
            Yield::PushDeadline => {
                self.update_curr(self.se(se).cfs_rq);
                self.rq_clock_skip_update();
                let request = self.shared.calc_delta_fair(self.se(se).load, self.se(se).slice) as i64;
                let entity = self.se_mut(se);
                entity.deadline = entity.deadline.plus(request);
            }
            Yield::ForfeitRequest => {
                let cfs_rq = self.se(se).cfs_rq;
                self.update_curr(cfs_rq);
                self.rq_clock_skip_update();
                let line = self.shared.line_of(cfs_rq);
                if self.cfs(line).is_eligible(self.se(se).vruntime, self.shared.running(line)) {
                    let entity = self.se_mut(se);
                    entity.vruntime = entity.deadline;
                    self.shared.update_deadline(line, se);
                    self.shared.update_min_vruntime(cfs_rq);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testbed::{MS, SchedulerTestbed};
    use fairlab_event::{Cpu, Ns};

    #[test]
    fn a_yield_lets_the_other_run() {
        for kernel in ["v6.5+NO_START_DEBIT", "v6.6+NO_RUN_TO_PARITY"] {
            let mut bed = SchedulerTestbed::new(kernel, 8, 1);
            let (yielder, other) = (bed.spawn(0, 0), bed.spawn(0, 0));
            bed.pass(MS / 2);
            bed.scheduler.set_here(Cpu(0), crate::core::KernelContext::Task, Ns(MS / 2));
            bed.scheduler.yield_task(Cpu(0));
            assert_eq!(bed.schedule(0).task, other, "{kernel}: {yielder:?} yielded");
        }
    }

    #[test]
    fn eevdf_pays_for_a_yield_with_its_deadline() {
        let mut bed = SchedulerTestbed::new("v6.6", 8, 1);
        let (yielder, _) = (bed.spawn(0, 0), bed.spawn(0, 0));
        let before = bed.entity(yielder).deadline;
        bed.pass(MS);
        bed.scheduler.set_here(Cpu(0), crate::core::KernelContext::Task, Ns(MS));
        bed.scheduler.yield_task(Cpu(0));
        assert_eq!(bed.entity(yielder).deadline.minus(before), 3 * MS as i64);
        let charged = bed.entity(yielder).vruntime.minus(before);
        assert!((charged + 2 * MS as i64).abs() <= 2, "vruntime is only charged: {charged}");
    }
}
