//! How many CPUs a search for an idle one may look at.
//!
//! Must not know: in which order.

use fairlab_event::Cpu;

use super::rules::{ScanCost, ScanIdleTime};
use crate::generation::Feature;
use crate::scheduler::Scheduler;

/// How far a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScanBound {
    /// Nothing is looked at.
    Nothing,
    /// One less than this is looked at: the kernel counts down before it looks.
    Before(u64),
    /// Everything.
    None,
}

impl ScanBound {
    /// Counts a CPU; whether it may not be looked at any more.
    pub fn reached(&mut self) -> bool {
        match self {
            ScanBound::Before(left) => {
                *left = left.saturating_sub(1);
                *left == 0
            }
            ScanBound::Nothing => true,
            ScanBound::None => false,
        }
    }

    /// How many more CPUs may be looked at.
    pub fn left(self) -> usize {
        match self {
            ScanBound::Before(left) => usize::try_from(left.saturating_sub(1)).unwrap_or(usize::MAX),
            ScanBound::Nothing => 0,
            ScanBound::None => usize::MAX,
        }
    }

    /// Counts several CPUs at once, of which all may be looked at.
    pub fn count(&mut self, cpus: usize) {
        if let ScanBound::Before(left) = self {
            *left -= cpus as u64;
        }
    }
}

impl Scheduler {
    /// How many CPUs of the target's cache are worth looking at.
    ///
    /// Kernel: `select_idle_cpu()`, kernel/sched/fair.c. Variants: by idle time and cost of a search (`SIS_AVG_CPU` to
    /// v5.11, `SIS_PROP` to v6.6), by utilization (`SIS_UTIL` from v6.0, 70fb5ccf2ebb).
    pub(super) fn scan_bound(&self, here: Cpu, target: Cpu) -> ScanBound {
        let idle_time = &self.rqs[here.index()].idle_time;
        let cost = idle_time.avg_scan_cost + 1;
        let average = match self.shared.generation.select.scan_idle_time {
            ScanIdleTime::PerMille => idle_time.avg_idle / 512,
            ScanIdleTime::SinceWakeup => idle_time.wake_avg_idle_at(self.shared.jiffies()),
        };
        let needs_own_domain = self.shared.generation.select.scan_cost == ScanCost::EveryScan;
        let has_own_domain = self.domains.of_cpu(here).sd_llc.is_some();
        if !has_own_domain && (needs_own_domain || self.has(Feature::SisProp)) {
            return ScanBound::Nothing;
        }
        if self.has(Feature::SisAvgCpu) && average < cost {
            return ScanBound::Nothing;
        }
        let by_utilization = self.scan_bound_by_utilization(target);
        if by_utilization != ScanBound::None || !self.has(Feature::SisProp) {
            return by_utilization;
        }
        let span = u64::from(self.domains.of_cpu(target).sd_llc_size) * average;
        ScanBound::Before(if span > 4 * cost { span / cost } else { 4 })
    }

    pub(super) fn scan_bound_by_utilization(&self, target: Cpu) -> ScanBound {
        if !self.has(Feature::SisUtil) {
            return ScanBound::None;
        }
        let shared = self.domains.of_cpu(target).sd_llc_shared;
        match shared.map(|shared| self.domains.shared(shared).nr_idle_scan) {
            None => ScanBound::None,
            Some(0) => ScanBound::Nothing,
            Some(some) => ScanBound::Before(u64::from(some) + 1),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::ScanBound;
    use crate::testbed::{MS, SchedulerTestbed};
    use crate::topology::{CpuPlace, Topology};
    use fairlab_event::{Cpu, Ns};

    /// How many CPUs of forty a search may look at that has taken 2 us lately, on a CPU that idles for 20 us.
    pub(crate) fn reach_of_costly_search(kernel: &str) -> u64 {
        let mut bed = SchedulerTestbed::new(kernel, 40, 1);
        bed.scheduler.rqs[0].idle_time.avg_scan_cost = 1_999;
        bed.scheduler.rqs[0].idle_time.avg_idle = 20_000;
        bound(&bed).left() as u64
    }

    #[test]
    fn switches_bound_what_costs_much() {
        assert_eq!(reach_of_costly_search("v5.11+SIS_AVG_CPU"), 0, "39 ns are less than 2 us");
        assert_eq!(reach_of_costly_search("v5.11"), 3);
        assert_eq!(reach_of_costly_search("v6.5+SIS_PROP+NO_SIS_UTIL"), 40 * 1_000_000 / 2_000 - 1);
        assert_eq!(reach_of_costly_search("v6.7+NO_SIS_UTIL"), usize::MAX as u64);
    }

    /// Whether a CPU that shares its cache with nobody searches another's, where idle time does not bound searches.
    pub(crate) fn searches_from_alone(kernel: &str) -> bool {
        let places = [(0, 0), (1, 1), (2, 1)].map(|(core, llc)| CpuPlace { core, llc, node: 0 });
        let topology = Topology::new(places.to_vec()).expect("a machine");
        let bed = SchedulerTestbed::on(&format!("{kernel}+NO_SIS_PROP"), topology);
        bed.scheduler.scan_bound(Cpu(0), Cpu(1)) != ScanBound::Nothing
    }

    #[test]
    fn whose_cost_is_not_asked_may_search_elsewhere() {
        assert_eq!(["v5.11", "v5.12"].map(searches_from_alone), [false, true]);
    }

    fn bound(bed: &SchedulerTestbed) -> ScanBound {
        bed.scheduler.scan_bound(Cpu(0), Cpu(0))
    }

    #[test]
    fn sis_prop_weighs_idle_time_against_the_cost_of_a_scan() {
        let mut bed = SchedulerTestbed::new("v5.10", 40, 1);
        assert_eq!(bound(&bed), ScanBound::Before(40 * (1_000_000 / 512)), "a scan that cost nothing so far");
        bed.scheduler.rqs[0].idle_time.avg_scan_cost = 1_999;
        assert_eq!(bound(&bed), ScanBound::Before(39), "40 CPUs, 1953 ns, 2 us");
        bed.scheduler.rqs[0].idle_time.avg_idle = 20_000;
        assert_eq!(bound(&bed), ScanBound::Before(4), "the least is four, of which three are looked at");
        bed.scheduler.shared.generation = "v5.10+NO_SIS_PROP".parse().expect("a kernel");
        assert_eq!(bound(&bed), ScanBound::None);
        bed.scheduler.shared.generation = "v5.10+SIS_AVG_CPU".parse().expect("a kernel");
        assert_eq!(bound(&bed), ScanBound::Nothing, "39 ns are less than 2 us");
    }

    #[test]
    fn idle_time_ages_from_v5_14_on() {
        let mut bed = SchedulerTestbed::new("v5.14", 40, 1);
        bed.scheduler.rqs[0].idle_time.avg_scan_cost = 999;
        assert_eq!(bound(&bed), ScanBound::Before(40 * 1_000_000 / 1_000));
        bed.scheduler.set_here(Cpu(0), crate::core::KernelContext::Task, Ns(3 * MS));
        assert_eq!(bound(&bed), ScanBound::Before(40 * 125_000 / 1_000), "halved at each of three ticks");
        bed.scheduler.account_scan(Cpu(0), Ns(25_000));
        assert_eq!(bed.scheduler.rqs[0].idle_time.wake_avg_idle, 100_000);
        assert_eq!(bed.scheduler.rqs[0].idle_time.avg_scan_cost, 999 + 24_001 / 8);
    }

    #[test]
    fn sis_util_goes_by_what_balancing_has_seen() {
        let mut bed = SchedulerTestbed::new("v6.6", 40, 1);
        assert_eq!(bound(&bed), ScanBound::Before(41), "an idle machine");
        for (average, expected) in
            [(512, ScanBound::Before(27)), (860, ScanBound::Before(2)), (875, ScanBound::Nothing)]
        {
            bed.scheduler.update_idle_cpu_scan(Cpu(0), 40 * average, 117);
            assert_eq!(bound(&bed), expected, "{average} of 1024");
        }
    }
}
