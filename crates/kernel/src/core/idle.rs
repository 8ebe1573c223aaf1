//! Which CPUs have nothing to do.

use fairlab_event::{Cpu, Ns, UntypedTracepoint};

use crate::all_cpus::Shared;
use crate::balance::rules::{IdlePolicyBusy, NewidlePlace};
use crate::cpumask::CpuMask;
use crate::rq::{LockedRq, Rq};
use crate::scheduler::Scheduler;
use crate::task::Policy;

impl Shared {
    /// Whether all that is queued is `SCHED_IDLE` (`sched_idle_rq()`).
    #[inline]
    fn sched_idle_rq(&self, rq: &Rq) -> bool {
        self.idle_policy_used && rq.nr_running > 0 && rq.nr_running == self.cfs(rq.cfs).h_nr_idle
    }
}

impl LockedRq<'_> {
    /// Whether all that is queued here is `SCHED_IDLE`.
    #[inline]
    pub(crate) fn sched_idle_rq(&self) -> bool {
        self.shared.sched_idle_rq(self.rq)
    }

    /// Lets a task or group leave, and notes whether that leaves nothing but `SCHED_IDLE`: then the next balance is due.
    pub(crate) fn note_sched_idle(&mut self, leave: impl FnOnce(&mut Self)) {
        let was_sched_idle = self.sched_idle_rq();
        leave(self);
        self.rq.balances_early |= !was_sched_idle && self.sched_idle_rq();
    }
}

impl Scheduler {
    /// Whether `cpu` has nothing to do and nothing on the way (`idle_cpu()`).
    ///
    /// A CPU that is about to go idle but still balances (new-idle) does not count: its last task is still `curr`.
    #[inline]
    pub(crate) fn idle_cpu(&self, cpu: Cpu) -> bool {
        self.shared.idle_cpus.contains(cpu)
    }

    /// Whether a search for work is over before the fair class is asked for a task: the running one is of a class above it.
    ///
    /// Kernel: `prev_balance()`, `balance_fair()`, kernel/sched. Variants: `BeforePick` to v6.18, `InPick` from v6.19
    /// (50653216e4ff).
    pub fn searches_before_pick(&self, cpu: Cpu) -> bool {
        let running = self.shared.tasks[self.curr(cpu).index()].policy;
        self.shared.generation.balance.newidle_place == NewidlePlace::BeforePick
            && !running.is_fair()
            && running != Policy::Swapper
    }

    /// Whether there is no such search, because something fair is queued: be it asleep. To be asked before sleepers leave.
    pub(crate) fn skips_newidle(&self, cpu: Cpu) -> bool {
        self.searches_before_pick(cpu) && self.shared.cfs(self.rqs[cpu.index()].cfs).nr_running > 0
    }

    /// Whether the pick that is under way follows no search for work, as [`before_pick`](Self::before_pick) has found.
    #[inline]
    pub fn newidle_is_skipped(&self, cpu: Cpu) -> bool {
        self.rqs[cpu.index()].newidle_skipped
    }

    /// The pick that follows a search for work finds nothing of what that has pulled, and no other search follows: so nothing says
    /// since when `cpu` idles.
    ///
    /// Kernel: `put_prev_task_balance()`, kernel/sched/core.c, where [`searches_before_pick`](Self::searches_before_pick).
    pub fn newidle_was_in_vain(&mut self, cpu: Cpu) {
        self.rqs[cpu.index()].newidle_skipped = true;
    }

    /// Whether all that `cpu` runs is `SCHED_IDLE` (`sched_idle_cpu()`).
    pub(crate) fn sched_idle_cpu(&self, cpu: Cpu) -> bool {
        self.shared.sched_idle_rq(&self.rqs[cpu.index()])
    }

    /// Lets tasks leave queues of `cpu`. If nothing but `SCHED_IDLE` is left it balances as soon as it may, to pull what is more
    /// urgent.
    ///
    /// Kernel: the end of `dequeue_task_fair()` (v6.12: `dequeue_entities()`), kernel/sched/fair.c, from v5.6 (323af6deaf70).
    pub(crate) fn balancing_early<R>(&mut self, cpu: Cpu, leave: impl FnOnce(&mut Self) -> R) -> R {
        let was_sched_idle = self.sched_idle_cpu(cpu);
        let left = leave(self);
        self.rqs[cpu.index()].balances_early |= !was_sched_idle && self.sched_idle_cpu(cpu);
        self.balance_early(cpu);
        left
    }

    /// Tasks have left `cpu`: if that left a moment with nothing but `SCHED_IDLE`, its next balance is due.
    #[inline]
    pub(crate) fn balance_early(&mut self, cpu: Cpu) {
        let due = std::mem::take(&mut self.rqs[cpu.index()].balances_early);
        if due && self.shared.generation.balance.idle_policy_busy != IdlePolicyBusy::Busy {
            self.balance.cpus[cpu.index()].next_balance = self.shared.jiffies();
        }
    }

    /// `cpu` has gone into an idle state that takes so long to leave; `None`: it is in none, or nothing is known.
    ///
    /// Kernel: `idle_set_state()`, kernel/sched/sched.h.
    pub fn idle_set_state(&mut self, cpu: Cpu, exit_latency: Option<Ns>) {
        self.rqs[cpu.index()].exit_latency = exit_latency.map(|latency| latency.0);
    }

    /// Reports that `cpu`, which is the one that the scheduler is on, goes into its idle state of that number, or out of it.
    ///
    /// Kernel: `trace_cpu_idle()` in `cpuidle_enter_state()`, drivers/cpuidle/cpuidle.c; out is `PWR_EVENT_EXIT`.
    pub fn report_idle_state(&mut self, cpu: Cpu, state: Option<u32>) {
        self.shared.report_text(UntypedTracepoint::CpuIdle.name(), || {
            format!("state={} cpu_id={}", state.unwrap_or(u32::MAX), cpu.0)
        });
    }

    /// The idle CPUs as a set, where a search cannot meet anything else that it would take.
    pub(crate) fn idle_cpus_only(&self) -> Option<&CpuMask> {
        (!self.shared.idle_policy_used).then_some(&self.shared.idle_cpus)
    }
}

#[cfg(test)]
mod tests {
    use fairlab_event::Cpu;

    use crate::cpumask::CpuMask;
    use crate::task::Policy;
    use crate::testbed::SchedulerTestbed;

    /// From v5.6 on a CPU that is left with `SCHED_IDLE` tasks balances at its next tick, whenever that was due.
    #[test]
    fn a_cpu_left_with_idle_tasks_balances_at_once() {
        for (kernel, at_once) in [("v5.5", false), ("v5.6", true), ("v6.1", true)] {
            let mut bed = SchedulerTestbed::new(kernel, 2, 1);
            bed.spawn_with(0, 0, Policy::Idle, CpuMask::ALL);
            let task = bed.spawn(0, 0);
            while bed.scheduler.curr(Cpu(0)) != task {
                bed.run(0, 1);
            }
            bed.scheduler.balance.cpus[0].next_balance = 1_000_000;
            bed.sleep(0);
            let next = bed.scheduler.balance.cpus[0].next_balance;
            assert_eq!(next == bed.scheduler.shared.jiffies(), at_once, "{kernel}: {next}");
            assert_eq!(next == 1_000_000, !at_once, "{kernel}");
        }
    }
}
