//! New-idle balancing: what a CPU that runs out of work takes from others.

use fairlab_event::Cpu;

use crate::core::Scheduler;
use crate::decision::NewidleDecision;
use crate::task::TaskId;

impl Scheduler {
    /// What `cpu`, about to go idle, would pull: the task that waited longest on the longest queue that shares its
    /// last-level cache. Pure.
    ///
    /// Kernel: stands for `newidle_balance()`, kernel/sched/fair.c.
    /// Departs: a placeholder for scheduling domains and `load_balance()`. It has no domains, no imbalance, no cost
    /// limit, no cache-hot test, and there is no periodic or NOHZ balancing beside it.
    pub fn newidle_balance(&self, cpu: Cpu) -> NewidleDecision {
        let span = self.topology.llc_mask(cpu);
        let movable = |source: Cpu| {
            let rq = &self.rqs[source.index()];
            let movable = |&task: &TaskId| {
                task != rq.curr && self.may_run_on(task, cpu) && !self.throttled_for_balance(task, cpu)
            };
            rq.cfs_tasks.oldest_first(&self.tasks).find(movable)
        };
        let mut busiest: Option<(u32, TaskId)> = None;
        let mut scanned = 0;
        for source in span.iter_wrap(cpu).filter(|&source| source != cpu) {
            scanned += 1;
            let queued = self.cfs(self.rqs[source.index()].cfs).h_nr_running;
            if queued < 2 || busiest.is_some_and(|(most, _)| queued <= most) {
                continue;
            }
            if let Some(task) = movable(source) {
                busiest = Some((queued, task));
            }
        }
        NewidleDecision { task: busiest.map(|(_, task)| task), scanned }
    }

    fn may_run_on(&self, task: TaskId, cpu: Cpu) -> bool {
        let task = &self.tasks[task.index()];
        task.allowed.contains(cpu) && !task.per_cpu_kthread
    }
}

#[cfg(test)]
mod tests {
    use crate::cpumask::CpuMask;
    use crate::task::Policy;
    use crate::testbed::Bed;
    use fairlab_event::Cpu;

    #[test]
    fn the_longest_queue_gives_the_task_that_waits_longest_and_may_move() {
        let mut bed = Bed::new("v6.6", 4, 1);
        let pinned = bed.spawn_with(0, 1, Policy::Normal, CpuMask::single(Cpu(1)));
        let stuck = bed.spawn_with(0, 1, Policy::Normal, CpuMask::single(Cpu(1)));
        let free = bed.spawn(0, 1);
        bed.spawn(0, 2);
        bed.spawn(0, 2);
        let decision = bed.scheduler.newidle_balance(Cpu(0));
        assert_eq!(
            (decision.task, decision.scanned),
            (Some(free), 3),
            "{pinned:?} runs, {stuck:?} is pinned"
        );
        bed.scheduler.move_queued_task(free, Cpu(0));
        assert_eq!(bed.scheduler.task(free).cpu(), Cpu(0));
        assert_eq!(bed.schedule(0).task, free);
    }

    #[test]
    fn a_balanced_machine_gives_nothing() {
        let mut bed = Bed::new("v6.6", 4, 1);
        bed.spawn(0, 1);
        bed.spawn(0, 2);
        assert_eq!(bed.scheduler.newidle_balance(Cpu(0)).task, None);
        assert!(!bed.scheduler.is_overloaded());
    }
}
