//! `kernel/sched/stats.h`: how long tasks wait and run, as `/proc/schedstat` and `/proc/PID/schedstat` count it.

use crate::ids::TaskId;
use crate::rq::LockedRq;

impl LockedRq<'_> {
    /// A task is queued: it waits, unless it runs.
    ///
    /// Kernel: `sched_info_enqueue()`.
    pub(super) fn sched_info_enqueue(&mut self, task: TaskId) {
        if self.shared.curr(self.shared.tasks[task.index()].cpu) != task {
            self.sched_info_wait(task);
        }
    }

    /// A task that slept on its queue is woken there: from now on it waits, unless it did so already.
    ///
    /// Kernel: `sched_info_enqueue()`, from `ttwu_runnable()`.
    pub(super) fn sched_info_wait(&mut self, task: TaskId) {
        let task = &mut self.shared.tasks[task.index()];
        task.info.last_queued.get_or_insert(self.rq.clock);
    }

    /// A task leaves its queue without having got the CPU: so long it waited here.
    ///
    /// Kernel: `sched_info_dequeue()`.
    pub(crate) fn sched_info_dequeue(&mut self, task: TaskId) {
        let rq = &mut *self.rq;
        if let Some(queued) = self.shared.tasks[task.index()].info.last_queued.take() {
            rq.counters.run_delay += rq.clock.since(queued).0;
        }
    }

    /// `prev` gives the CPU to `next`; either may be the idle task. `prev` waits if it is still runnable.
    ///
    /// Kernel: `sched_info_switch()`.
    pub(super) fn sched_info_switch(&mut self, prev: TaskId, next: TaskId) {
        let rq = &mut *self.rq;
        let idle = self.shared.cpus[rq.cpu.index()].idle;
        if prev != idle {
            let leaves = &mut self.shared.tasks[prev.index()];
            rq.counters.rq_cpu_time += rq.clock.since(leaves.info.last_arrival).0;
            if leaves.is_queued() && !leaves.is_delayed() && leaves.cpu == rq.cpu {
                leaves.info.last_queued.get_or_insert(rq.clock);
            }
        }
        if next != idle {
            let starts = &mut self.shared.tasks[next.index()].info;
            if let Some(queued) = starts.last_queued.take() {
                rq.counters.run_delay += rq.clock.since(queued).0;
                rq.counters.pcount += 1;
            }
            starts.last_arrival = rq.clock;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::core::{WakeFlags, WakeStart};
    use crate::testbed::{MS, SchedulerTestbed};
    use fairlab_event::Cpu;

    #[test]
    fn waiting_and_running_are_counted_where_they_happen() {
        let mut bed = SchedulerTestbed::new("v6.6", 2, 1);
        bed.spawn(0, 1);
        let waiting = bed.spawn(0, 1);
        bed.run(1, 30);
        let here = *bed.scheduler.counters(Cpu(1));
        let total = here.rq_cpu_time + here.run_delay;
        // The one that runs has not come to the end of its turn, and the other one's wait has not ended.
        assert!((27 * MS..=30 * MS + 1).contains(&here.rq_cpu_time), "{here:?}");
        assert!((24 * MS..=30 * MS).contains(&here.run_delay), "{here:?}, {total} in all");
        assert!(here.pcount >= 8 && here.sched_count >= here.pcount, "{here:?}");
        bed.scheduler.move_queued_task(waiting, Cpu(0));
        bed.schedule(0);
        bed.pass(5 * MS);
        bed.sleep(0);
        let there = *bed.scheduler.counters(Cpu(0));
        assert_eq!((there.rq_cpu_time, there.run_delay, there.pcount), (5 * MS, 0, 1));
        assert_eq!(there.sched_goidle, 1);
    }

    /// What slept on its queue before it was woken there is no wait.
    #[test]
    fn a_task_waits_on_its_queue_from_its_wakeup_on() {
        let mut bed = SchedulerTestbed::new("v6.12", 1, 1);
        let sleeper = bed.spawn(0, 0);
        bed.spawn(0, 0);
        while bed.scheduler.curr(Cpu(0)) != sleeper {
            bed.run(0, 1);
        }
        bed.pass(2 * MS);
        bed.sleep(0);
        assert!(bed.scheduler.task(sleeper).is_delayed(), "it owes time");
        let before = bed.scheduler.counters(Cpu(0)).run_delay;
        bed.pass(MS / 4);
        bed.select(sleeper, 0, false);
        assert_eq!(bed.scheduler.ttwu_begin(sleeper, WakeFlags::default()), WakeStart::StillQueued);
        bed.pass(MS);
        bed.sleep(0);
        assert_eq!(bed.scheduler.curr(Cpu(0)), sleeper);
        assert_eq!(bed.scheduler.counters(Cpu(0)).run_delay - before, MS);
    }

    #[test]
    fn yields_are_counted() {
        let mut bed = SchedulerTestbed::new("v5.4", 1, 1);
        bed.spawn(0, 0);
        bed.scheduler.yield_task(Cpu(0));
        assert_eq!(bed.scheduler.counters(Cpu(0)).yld_count, 1);
    }
}
