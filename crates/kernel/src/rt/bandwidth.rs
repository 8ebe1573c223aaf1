//! The limit of real-time tasks: `sched_rt_runtime_us` of each `sched_rt_period_us`, 0.95 s of each second.
//!
//! What is left is for everybody else. The timer is the driver's, as those of groups with a quota are.

use fairlab_event::{Cpu, Ns};

use crate::fair::bandwidth::GroupTimerKind;
use crate::generation::Feature;
use crate::ids::GroupId;
use crate::rt::queue::RtPeriod;
use crate::rt::rules::RtLimit;
use crate::scheduler::Scheduler;

/// `sched_rt_period_us`, in ns.
const PERIOD: u64 = 1_000_000_000;

impl Scheduler {
    /// Charges a CPU's real-time tasks. Returns whether they must make way.
    ///
    /// Kernel: `update_curr_rt()`, `sched_rt_runtime_exceeded()`, kernel/sched/rt.c, to v6.11 (5f6bd380c7bd).
    pub(super) fn charge_rt_limit(&mut self, cpu: Cpu, run_time: u64) -> bool {
        if self.shared.generation.rt.rt_limit == RtLimit::None {
            return false;
        }
        let limit = &mut self.shared.cpus[cpu.index()].rt.limit;
        limit.time += run_time;
        if limit.throttled {
            return true;
        }
        if limit.time > limit.runtime && self.has(Feature::RtRuntimeShare) {
            self.borrow_rt_runtime(cpu);
        }
        let rt = &mut self.shared.cpus[cpu.index()].rt;
        if rt.limit.time <= rt.limit.runtime {
            return false;
        }
        let tasks = rt.queued() as i32;
        rt.limit.throttled = true;
        self.rq_lock(cpu).count_running(-tasks);
        true
    }

    /// Takes what other CPUs' real-time tasks have not used, a part of it from each.
    ///
    /// Kernel: `do_balance_runtime()`, kernel/sched/rt.c (`RT_RUNTIME_SHARE`, off from v5.10: 2586af1ac187).
    fn borrow_rt_runtime(&mut self, cpu: Cpu) {
        let cpus = self.rqs.len() as u64;
        for other in (0..self.rqs.len()).filter(|&other| other != cpu.index()) {
            let missing = PERIOD - self.shared.cpus[cpu.index()].rt.limit.runtime;
            if missing == 0 {
                return;
            }
            let lender = &mut self.shared.cpus[other].rt.limit;
            let lent = (lender.runtime.saturating_sub(lender.time) / cpus).min(missing);
            lender.runtime -= lent;
            self.shared.cpus[cpu.index()].rt.limit.runtime += lent;
        }
    }

    /// A real-time task is queued: the period's timer runs (`start_rt_bandwidth()`).
    pub(super) fn start_rt_bandwidth(&mut self) {
        if self.rt_period.active || self.shared.generation.rt.rt_limit == RtLimit::None {
            return;
        }
        self.rt_period = RtPeriod { active: true, expires: self.shared.trace.now.0 };
        self.shared.start_timer(GroupId::ROOT, GroupTimerKind::RealTime, self.shared.trace.now);
    }

    /// A period ends: what was run in it is forgiven, and throttled tasks run again.
    ///
    /// Kernel: `sched_rt_period_timer()`, `do_sched_rt_period_timer()`, kernel/sched/rt.c.
    pub(crate) fn rt_period_ends(&mut self) {
        let overrun = (self.shared.trace.now.0 - self.rt_period.expires) / PERIOD + 1;
        self.rt_period.expires += overrun * PERIOD;
        let mut idle = true;
        for cpu in self.shared.topology.cpus() {
            idle &= !self.forgive_rt_time(cpu, overrun);
        }
        if idle {
            self.rt_period.active = false;
        } else {
            self.shared.start_timer(GroupId::ROOT, GroupTimerKind::RealTime, Ns(self.rt_period.expires));
        }
    }

    /// Returns whether the CPU still needs the timer.
    fn forgive_rt_time(&mut self, cpu: Cpu, overrun: u64) -> bool {
        if self.shared.cpus[cpu.index()].rt.limit.throttled && self.has(Feature::RtRuntimeShare) {
            self.borrow_rt_runtime(cpu);
        }
        let rt = &mut self.shared.cpus[cpu.index()].rt;
        rt.limit.time = rt.limit.time.saturating_sub(overrun * rt.limit.runtime);
        let needed = rt.limit.time > 0 || rt.queued() > 0;
        if rt.limit.throttled && rt.limit.time < rt.limit.runtime {
            rt.limit.throttled = false;
            let tasks = rt.queued() as i32;
            self.rq_lock(cpu).update_rq_clock();
            self.rq_lock(cpu).count_running(tasks);
            let curr = self.curr(cpu);
            let first = self.shared.cpus[cpu.index()].rt.first();
            let idle = self.runs_idle_task(cpu);
            if idle {
                // What was woken while throttled has not run since its wakeup (`rq_clock_cancel_skipupdate()`).
                self.rqs[cpu.index()].skips_clock_update = false;
            }
            let urgent = |task| idle || self.shared.tasks[curr.index()].prio() > self.task(task).prio();
            if first.is_some_and(urgent) {
                self.shared.resched_curr(cpu, "sched_rt_rq_enqueue");
            }
        }
        needed
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::ablation::AblationSituation;
    use crate::cpumask::CpuMask;
    use crate::task::Policy;
    use crate::testbed::{MS, SchedulerTestbed};
    use fairlab_event::Cpu;

    /// How long a real-time hog and a fair one ran on CPU 0 in 3 s, in ms.
    pub(crate) fn shares(kernel: &str, cpus: u32) -> [u64; 2] {
        let mut bed = SchedulerTestbed::new(kernel, cpus, 1);
        let fair = bed.spawn(0, 0);
        let hog = bed.spawn_with(0, 0, Policy::Fifo(1), CpuMask::single(Cpu(0)));
        bed.schedule(0);
        bed.run(0, 3000);
        bed.scheduler.check_invariants().expect("a sound state");
        [hog, fair].map(|task| (bed.scheduler.sum_exec_runtime(task).0 + MS / 2) / MS)
    }

    /// It takes a second of a hog.
    pub(crate) const SHARE: (&str, AblationSituation) = ("no-rt-share", |kernel| shares(kernel, 2)[0]);

    #[test]
    fn five_percent_are_left_to_others() {
        let [hog, fair] = shares("v6.1", 2);
        assert!(hog.abs_diff(2850) <= 5 && fair.abs_diff(150) <= 5, "{hog} ms and {fair} ms");
    }

    /// To v5.9 idle CPUs lend their part (RT_RUNTIME_SHARE).
    #[test]
    fn other_cpus_lend_what_they_do_not_use() {
        let [hog, fair] = shares("v5.9", 2);
        assert!(hog >= 2995 && fair <= 5, "{hog} ms and {fair} ms");
        assert!(shares("v5.9", 1)[0].abs_diff(2850) <= 5, "there is none to lend");
        assert!(shares("v5.10", 2)[0].abs_diff(2850) <= 5);
    }

    /// From v6.12 there is a fair server instead, which can be turned off.
    #[test]
    fn the_limit_is_gone() {
        assert_eq!(shares("v6.12,fair_server_runtime=0", 2)[1], 0);
    }
}
