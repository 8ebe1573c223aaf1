//! Which last-level cache the threads of a process prefer: found by looking at all CPUs once in an epoch, and counted on
//! runqueues for balancing.

use fairlab_event::Cpu;

use super::{ProcessId, ProcessScan};
use crate::cpumask::CpuMask;
use crate::rq::LockedRq;
use crate::scheduler::Scheduler;
use crate::task::{Task, TaskId};

impl LockedRq<'_> {
    /// A fair task has run for `delta` ns: that counts for its process, whose preference it takes over.
    ///
    /// Kernel: `account_mm_sched()`, kernel/sched/fair.c.
    #[inline]
    pub(crate) fn account_process(&mut self, task: TaskId, delta: u64) {
        if self.shared.processes.active() {
            self.account_gathered(task, delta);
        }
    }

    #[inline(never)]
    fn account_gathered(&mut self, task: TaskId, delta: u64) {
        let Some(process) = self.shared.tasks[task.index()].process else { return };
        let jiffies = self.shared.jiffies();
        self.shared.processes.account(process, self.rq.cpu, &mut self.rq.cache_epoch, (delta, jiffies));
        let preferred = self.shared.processes.preferred_llc(process);
        let stands_here = self.entity_of(task).on_rq;
        if stands_here && self.shared.tasks[task.index()].preferred_llc != preferred {
            self.account_llc_dequeue(task);
            self.shared.tasks[task.index()].preferred_llc = preferred;
            self.account_llc_enqueue(task);
        }
    }

    /// A task joins the queue: it counts for the cache that it prefers.
    ///
    /// Kernel: `account_llc_enqueue()`, kernel/sched/fair.c.
    pub(crate) fn account_llc_enqueue(&mut self, task: TaskId) {
        let cpu = self.rq.cpu;
        let Some(preferred) = self.shared.tasks[task.index()].preferred_llc else { return };
        self.shared.tasks[task.index()].pref_llc_queued = preferred == self.shared.processes.llc_id(cpu);
        self.count_at_preferred(task, 1);
        self.count_preference(preferred, 1);
    }

    /// A task leaves the queue.
    ///
    /// Kernel: `account_llc_dequeue()`, kernel/sched/fair.c.
    pub(crate) fn account_llc_dequeue(&mut self, task: TaskId) {
        let Some(preferred) = self.shared.tasks[task.index()].preferred_llc else { return };
        self.count_at_preferred(task, -1);
        self.shared.tasks[task.index()].pref_llc_queued = false;
        self.count_preference(preferred, -1);
    }

    /// A task that stands where it prefers to be becomes runnable there, or stops to be.
    ///
    /// Kernel: `pref_llc_running_inc()`, `pref_llc_running_dec()`, kernel/sched/fair.c.
    pub(crate) fn count_at_preferred(&mut self, task: TaskId, change: i32) {
        let Task { pref_llc_queued, se, .. } = self.shared.tasks[task.index()];
        if pref_llc_queued && !self.se(se).sched_delayed {
            self.rq.nr_pref_llc_running = self.rq.nr_pref_llc_running.wrapping_add_signed(change);
        }
    }

    fn count_preference(&mut self, llc: u32, change: i32) {
        if self.shared.processes.counts(self.rq.cpu) {
            let count = &mut self.rq.llc_counts[llc as usize];
            *count = count.wrapping_add_signed(change);
        }
    }

    /// A tick of a running fair task: the first in an epoch asks that it looks at all CPUs when it goes back to user mode.
    ///
    /// Kernel: `task_tick_cache()`, kernel/sched/fair.c.
    pub(crate) fn task_tick_cache(&mut self, task: TaskId) {
        if !self.shared.processes.active() {
            return;
        }
        let Some(process) = self.shared.tasks[task.index()].process else { return };
        let epoch = self.rq.cache_epoch;
        if !self.shared.tasks[task.index()].cache_work && self.shared.processes.asks_for_look(process, epoch)
        {
            self.shared.tasks[task.index()].cache_work = true;
        }
    }
}

impl Scheduler {
    /// Whether the running task of `cpu` is to look at all CPUs before it returns to user mode.
    #[inline]
    pub(crate) fn has_cache_work(&self, cpu: Cpu) -> bool {
        self.shared.processes.active() && self.shared.tasks[self.curr(cpu).index()].cache_work
    }

    /// The running task of `cpu` goes back to user mode: its process looks for the cache under which most of it ran of late.
    ///
    /// Kernel: `task_cache_work()`, kernel/sched/fair.c.
    pub(crate) fn task_cache_work(&mut self, cpu: Cpu) {
        let task = &mut self.shared.tasks[self.shared.cpus[cpu.index()].curr.index()];
        task.cache_work = false;
        let Some(process) = task.process else { return };
        let jiffies = self.shared.jiffies();
        if self.shared.processes.begins_look(process, cpu, jiffies) {
            let found = self.look_for_process(process, jiffies);
            self.shared.processes.end_look(process, cpu, found);
        }
    }

    fn look_for_process(&mut self, process: ProcessId, jiffies: u64) -> ProcessScan {
        let preferred = self.shared.processes.preferred_llc(process);
        let mut look = ProcessScan::default();
        let mut left = *self.shared.topology.online();
        while let Some(first) = left.lowest() {
            let Some(sd_llc) = self.domains.of_cpu(first).sd_llc else {
                left.clear(first);
                continue;
            };
            let span = self.domains.domain(sd_llc).span;
            let (sum, at) = self.shares_under(process, &span, jiffies, &mut look.nr_running);
            if sum > look.most {
                (look.most, look.most_at) = (sum, at);
            }
            if preferred == Some(self.shared.processes.llc_id(first)) {
                look.at_preferred = sum;
            }
            left = left.and_not(&span);
        }
        look
    }

    /// The sum of a process's shares of CPUs under a cache, and the CPU with the greatest.
    fn shares_under(
        &mut self,
        process: ProcessId,
        span: &CpuMask,
        jiffies: u64,
        nr_running: &mut u64,
    ) -> (u64, Option<Cpu>) {
        let (mut sum, mut most) = (0, (0, None));
        for cpu in span.iter() {
            let epoch = &mut self.rqs[cpu.index()].cache_epoch;
            let share = self.shared.processes.fraction(process, cpu, epoch, jiffies);
            sum += share;
            if share > most.0 {
                most = (share, Some(cpu));
            }
            let running = &self.shared.tasks[self.curr(cpu).index()];
            *nr_running += u64::from(running.process == Some(process));
        }
        (sum, most.1)
    }
}
