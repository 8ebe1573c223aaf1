//! How long CPUs idle, what a search for an idle one costs, and what the caches know of idle CPUs: what bounds a search.
//!
//! Must not know: how CPUs are searched.

use fairlab_event::{Cpu, Ns};

use super::rules::{IdleAverage, IdleEnds, IdleMask, ScanIdleTime};
use crate::cpumask::CpuMask;
use crate::generation::Feature;
use crate::scheduler::Scheduler;
use crate::select::idle_average::follow;

/// Balancing tells what bounds searches.
impl Scheduler {
    /// The average utilization under `cpu`'s last-level cache bounds searches there from now on. `sum_util` is the sum of
    /// the CPUs' utilization, `imbalance_pct` that of the cache's domain.
    ///
    /// For periodic balancing, not for new-idle balancing, on the domain that spans the cache.
    ///
    /// Kernel: `update_idle_cpu_scan()`, kernel/sched/fair.c, from v6.0 (70fb5ccf2ebb).
    /// Units: utilization 0…1024 a CPU.
    pub fn update_idle_cpu_scan(&mut self, cpu: Cpu, sum_util: u64, imbalance_pct: u64) {
        if !self.has(Feature::SisUtil) {
            return;
        }
        let llc = *self.domains.of_cpu(cpu);
        if let Some(shared) = llc.sd_llc_shared {
            let scan = nr_idle_scan(sum_util, u64::from(llc.sd_llc_size), imbalance_pct);
            self.domains.shared_mut(shared).nr_idle_scan = scan;
        }
    }

    /// `cpu` has run out of work and looks for some: what follows counts as idle time, unless it finds some.
    ///
    /// Kernel: `newidle_balance()`, kernel/sched/fair.c, at its beginning.
    pub fn note_idle_begins(&mut self, cpu: Cpu) {
        let rq = &mut self.rqs[cpu.index()];
        rq.idle_time.idle_stamp = Some(rq.clock);
    }

    /// `cpu` has found work before it went idle.
    ///
    /// Kernel: `newidle_balance()`, kernel/sched/fair.c, at its end.
    pub fn note_idle_prevented(&mut self, cpu: Cpu) {
        self.rqs[cpu.index()].idle_time.idle_stamp = None;
    }

    /// How long `cpu` idles on average, ns (`rq::avg_idle`).
    pub fn avg_idle(&self, cpu: Cpu) -> u64 {
        self.rqs[cpu.index()].idle_time.avg_idle
    }

    /// What new-idle balancing of `cpu` may take at most, ns (`rq::max_idle_balance_cost`).
    pub fn max_idle_balance_cost(&self, cpu: Cpu) -> u64 {
        self.rqs[cpu.index()].idle_time.max_idle_balance_cost
    }

    /// Sets it: new-idle balancing raises it, periodic balancing lets it fall to the migration cost.
    pub fn set_max_idle_balance_cost(&mut self, cpu: Cpu, cost: u64) {
        self.rqs[cpu.index()].idle_time.max_idle_balance_cost = cost;
    }
}

/// How many of `weight` CPUs are worth looking at when their utilization sums up to `sum_util`: all of them when idle,
/// none from about 85 % on, the fewer the faster it grows.
fn nr_idle_scan(sum_util: u64, weight: u64, imbalance_pct: u64) -> u32 {
    const SCALE: u64 = 1024;
    let average = sum_util / weight;
    let taken = (average * average * imbalance_pct * imbalance_pct / (10_000 * SCALE)).min(SCALE);
    ((SCALE - taken) * weight / SCALE) as u32
}

/// Idle times begin and end, searches take their time.
impl Scheduler {
    /// The machine has been up and idle for a while: its caches know that they have idle cores and CPUs.
    pub(crate) fn init_llc_shared(&mut self) {
        for cpu in self.shared.topology.cpus() {
            let Some(id) = self.domains.of_cpu(cpu).sd_llc_shared else { continue };
            let (span, has_smt) = (*self.llc_span(cpu), self.shared.topology.has_smt());
            let shared = self.domains.shared_mut(id);
            shared.has_idle_cores = has_smt;
            shared.nr_idle_scan = span.weight() as u32;
            let index = id.0 as usize;
            self.idle_masks.resize(self.idle_masks.len().max(index + 1), CpuMask::EMPTY);
            self.idle_masks[index] = span;
        }
    }

    /// `cpu` turns to its idle task. Where it did not begin to search for work, since a wakeup is on its way (from v5.14) or only
    /// sleepers were queued, nothing says since when it idles.
    pub(crate) fn idle_begins(&mut self, cpu: Cpu) {
        let rq = &self.rqs[cpu.index()];
        let is_woken = rq.ttwu_pending > 0 && self.shared.generation.balance.pending_wakeup.ends_before();
        if rq.idle_time.idle_stamp.is_none() && !is_woken && !rq.newidle_skipped {
            self.note_idle_begins(cpu);
        }
        self.mark_idle(cpu, true);
    }

    /// A task has been woken on `cpu`.
    pub(crate) fn idle_ends_by_wakeup(&mut self, cpu: Cpu) {
        let is_stamped = || self.rqs[cpu.index()].idle_time.idle_stamp.is_some();
        if self.shared.generation.select.idle_ends == IdleEnds::AtWakeup && is_stamped() {
            self.sample_idle_time(cpu);
        }
    }

    /// `cpu` turns from its idle task to another.
    pub(crate) fn idle_ends_by_switch(&mut self, cpu: Cpu) {
        match self.shared.generation.select.idle_ends {
            IdleEnds::AtWakeup => {}
            IdleEnds::AtSwitchStampedOrNot | IdleEnds::AtSwitch => self.sample_idle_time(cpu),
        }
    }

    fn sample_idle_time(&mut self, cpu: Cpu) {
        self.sample_idle_time_at(cpu, self.rqs[cpu.index()].clock);
    }

    pub(super) fn sample_idle_time_at(&mut self, cpu: Cpu, clock: Ns) {
        let (rules, jiffy) = (self.shared.generation.select, self.shared.jiffies());
        self.rqs[cpu.index()].idle_time.sample(&rules, clock, jiffy);
    }

    /// A bounded search by `here` has taken `time`.
    ///
    /// Kernel: `select_idle_cpu()`, kernel/sched/fair.c, at its end.
    pub(super) fn account_scan(&mut self, here: Cpu, time: Ns) {
        let (rounding, jiffy) = (IdleAverage::TowardsZero, self.shared.jiffies());
        let ages = self.shared.generation.select.scan_idle_time == ScanIdleTime::SinceWakeup;
        let idle_time = &mut self.rqs[here.index()].idle_time;
        idle_time.avg_scan_cost = follow(idle_time.avg_scan_cost, time.0, rounding);
        if ages {
            idle_time.wake_avg_idle = idle_time.wake_avg_idle_at(jiffy).saturating_sub(time.0);
            idle_time.wake_stamp = idle_time.wake_stamp.max(jiffy);
        }
    }

    /// The tick of `cpu` tells its cache whether it still idles.
    ///
    /// Kernel: `scheduler_tick()` of the RFC `idle-cpumask-v7`.
    pub(crate) fn mark_idle_at_tick(&mut self, cpu: Cpu) {
        self.mark_idle(cpu, self.idle_cpu(cpu));
    }

    /// Kernel: `update_idle_cpumask()` of the RFC `idle-cpumask-v7`.
    #[inline]
    fn mark_idle(&mut self, cpu: Cpu, idle: bool) {
        let known = std::mem::replace(&mut self.rqs[cpu.index()].idle_time.marked_idle, idle);
        if self.shared.generation.select.idle_mask == IdleMask::None || known == idle {
            return;
        }
        let Some(shared) = self.domains.of_cpu(cpu).sd_llc_shared else { return };
        let mask = &mut self.idle_masks[shared.0 as usize];
        match idle {
            true => mask.set(cpu),
            false => mask.clear(cpu),
        }
        if self.shared.trace.balancing {
            self.tell_idle_mask(cpu, Some(idle));
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use crate::cpumask::CpuMask;
    use crate::task::Policy;
    use crate::testbed::SchedulerTestbed;
    use fairlab_event::{Cpu, TaskState};

    /// `avg_idle` of CPU 0 after it has idled 8000 ns less than its average and a task is woken or forked there.
    fn after_idling(kernel: &str, by_fork: bool) -> u64 {
        let mut bed = SchedulerTestbed::new(kernel, 2, 1);
        let sleeper = bed.spawn(0, 0);
        bed.pass(1_000);
        bed.sleep(0);
        bed.pass(992_000 - 3);
        if by_fork {
            bed.spawn(0, 0);
        } else {
            bed.wake(sleeper, 0);
            bed.schedule(0);
        }
        bed.scheduler.avg_idle(Cpu(0))
    }

    #[test]
    fn averages_follow_by_an_eighth_and_round_differently() {
        assert_eq!(after_idling("v5.6", false), 998_999, "8003 less, rounded down");
        assert_eq!(after_idling("v5.7", false), 999_000);
    }

    #[test]
    fn a_fork_ends_idle_time_only_from_v7_0_on() {
        assert_eq!(after_idling("v6.19", true), 1_000_000);
        assert_eq!(after_idling("v7.0", true), 999_000);
    }

    #[test]
    fn nobody_notes_that_a_cpu_idles_to_which_a_wakeup_is_on_its_way_from_v5_14_on() {
        let stamped = |kernel| {
            let mut bed = SchedulerTestbed::new(kernel, 2, 1);
            bed.spawn(0, 0);
            bed.scheduler.ttwu_pending(Cpu(0));
            bed.sleep(0);
            bed.scheduler.rqs[0].idle_time.idle_stamp.is_some()
        };
        assert_eq!(["v5.13", "v5.14", "v7.2"].map(stamped), [true, false, false]);
    }

    /// What a CPU pulls when its last real-time task leaves may be throttled as it comes.
    #[test]
    fn nobody_notes_that_a_cpu_idles_which_has_pulled_something_in_vain() {
        let stamped = |in_vain| {
            let (mut bed, cpu) = (SchedulerTestbed::new("v6.1", 1, 1), Cpu(0));
            bed.spawn_with(0, 0, Policy::Fifo(1), CpuMask::ALL);
            bed.pass(1_000);
            bed.leave(0);
            assert!(bed.scheduler.searches_before_pick(cpu));
            bed.scheduler.note_idle_prevented(cpu);
            bed.scheduler.before_pick(cpu);
            if in_vain {
                bed.scheduler.newidle_was_in_vain(cpu);
            }
            let idle = bed.scheduler.idle_task(cpu);
            bed.scheduler.context_switch(cpu, idle, TaskState::INTERRUPTIBLE);
            bed.scheduler.rqs[0].idle_time.idle_stamp.is_some()
        };
        assert_eq!([false, true].map(stamped), [true, false]);
    }

    /// `avg_idle`, 900 us before, after an idle time whose beginning nobody noted.
    pub(crate) fn after_idling_unnoted(kernel: &str) -> u64 {
        let mut bed = SchedulerTestbed::new(kernel, 2, 1);
        bed.spawn(0, 0);
        bed.sleep(0);
        bed.scheduler.rqs[0].idle_time.avg_idle = 900_000;
        bed.scheduler.note_idle_prevented(Cpu(0));
        bed.pass(1_000_000_000);
        bed.at(0);
        bed.scheduler.rq_lock(Cpu(0)).update_rq_clock();
        bed.scheduler.idle_ends_by_switch(Cpu(0));
        bed.scheduler.avg_idle(Cpu(0))
    }

    #[test]
    fn an_unknown_beginning_counted_as_endless_from_v7_0_to_v7_2() {
        let averages = ["v6.19", "v7.0", "v7.2", "debian-7.2", "v7.3"].map(after_idling_unnoted);
        assert_eq!(averages, [900_000, 1_000_000, 1_000_000, 900_000, 900_000]);
    }
}
