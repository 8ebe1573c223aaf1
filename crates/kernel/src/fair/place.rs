//! Placement: where an entity joins its queue's virtual time line.

use fairlab_event::probes::ProbePoint;
use fairlab_event::{Comm, EventKind, Pid, Place};

use crate::all_cpus::Shared;
use crate::entity::{CfsRqId, SeId};
use crate::fair::rules::{HeavyArrival, LagInflation, LongSleepers, Placement, VirtualZero};
use crate::generation::Feature;
use crate::group::IdleCredit;
use crate::rq::{EnqueueFlags, LockedRq};
use crate::vruntime::Vruntime;

/// A minute (829c1651e9c4).
const LONG_SLEEP_NS: u64 = 60_000_000_000;

/// Where an entity would be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntityPlacement {
    pub vruntime: Vruntime,
    /// `None` where the generation has no deadlines.
    pub deadline: Option<Vruntime>,
}

impl Shared {
    /// Where an entity would join its queue. Pure.
    ///
    /// Kernel: `place_entity()`, kernel/sched/fair.c. Variants: `MinVruntime` to v6.5, `AverageWithCredit` at
    /// e0c2ff903c32, `LagOnWakeup` at 86bfbb7ce4f6, `Lag` from v6.6 (e8f331bcc270).
    /// Units: vruntime and deadline in virtual ns.
    /// Departs: sleepers of more than 104 days are placed as others (a53ce18cacb4).
    pub(crate) fn placement(&self, cfs_rq: CfsRqId, se: SeId, flags: EnqueueFlags) -> EntityPlacement {
        match self.generation.fair.placement {
            Placement::MinVruntime => {
                let vruntime = self.place_with_credit(self.cfs(cfs_rq).min_vruntime, cfs_rq, se, flags);
                EntityPlacement { vruntime, deadline: None }
            }
            Placement::AverageWithCredit => {
                let vruntime = self.place_with_credit(self.average(cfs_rq), cfs_rq, se, flags);
                EntityPlacement { vruntime, deadline: None }
            }
            Placement::LagOnWakeup => {
                let vruntime = self.place_by_lag_on_wakeup(cfs_rq, se, flags);
                EntityPlacement {
                    vruntime,
                    deadline: self.has(Feature::Eevdf).then(|| self.new_deadline(se, vruntime, flags)),
                }
            }
            Placement::Lag => {
                let curr = self.running(cfs_rq);
                let queue = self.cfs(cfs_rq);
                let lag = if self.has(Feature::PlaceLag) && self.has_company(cfs_rq, se) {
                    inflate_lag(
                        self.se(se).vlag,
                        queue.average_load(curr),
                        self.weight_in_averages(self.competing_load(se)),
                    )
                } else {
                    0
                };
                let vruntime = self.average(cfs_rq).plus(-lag);
                let kept = self.se(se).relative_deadline.filter(|_| self.has(Feature::PlaceRelDeadline));
                let deadline =
                    kept.map_or_else(|| self.new_deadline(se, vruntime, flags), |left| vruntime.plus(left));
                EntityPlacement { vruntime, deadline: Some(deadline) }
            }
        }
    }

    /// At `base`: a new task one slice later, a sleeper up to a latency earlier; nobody is moved back.
    fn place_with_credit(&self, base: Vruntime, cfs_rq: CfsRqId, se: SeId, flags: EnqueueFlags) -> Vruntime {
        let mut vruntime = base;
        if flags.initial && self.has(Feature::StartDebit) {
            vruntime =
                vruntime.plus(self.calc_delta_fair(self.se(se).load, self.sched_slice(cfs_rq, se)) as i64);
        }
        if !flags.initial {
            vruntime = vruntime.plus(-(self.sleeper_credit(se) as i64));
        }
        if self.is_long_sleeper(se, flags) { vruntime } else { self.se(se).vruntime.latest(vruntime) }
    }

    /// Whether an entity's own vruntime is not compared with its queue's.
    ///
    /// Kernel: `place_entity()`, kernel/sched/fair.c, from 829c1651e9c4 to a53ce18cacb4: who has an `exec_start` of 0 has slept since
    /// the machine came up, which is longer ago.
    fn is_long_sleeper(&self, se: SeId, flags: EnqueueFlags) -> bool {
        if self.generation.fair.long_sleepers == LongSleepers::Nobody {
            return false;
        }
        let ran = self.se(se).exec_start;
        flags.migrated || ran == 0 || self.trace.now.0.saturating_sub(ran) > LONG_SLEEP_NS
    }

    /// How far before the queue's minimum a sleeper may be placed, virtual ns.
    fn sleeper_credit(&self, se: SeId) -> u64 {
        let less =
            self.generation.groups.idle_credit == IdleCredit::MinGranularity && self.is_idle_policy(se);
        let credit = if less { self.sysctl.min_granularity } else { self.sysctl.latency };
        if self.has(Feature::GentleFairSleepers) { credit >> 1 } else { credit }
    }

    /// At the queue's average less the lag, if others are on the queue; the entity itself is already counted there.
    fn place_by_lag_on_wakeup(&self, cfs_rq: CfsRqId, se: SeId, flags: EnqueueFlags) -> Vruntime {
        let curr = self.running(cfs_rq);
        let queue = self.cfs(cfs_rq);
        let mut vruntime = self.average(cfs_rq);
        if self.has(Feature::PlaceLag) && queue.nr_running > 1 {
            let weight = self.se(se).load;
            let (load, weight) = match self.generation.fair.lag_inflation {
                LagInflation::OneUnit => (queue.average_load(curr), weight.scaled_down()),
                LagInflation::MixedUnits => {
                    let running = self.running_entity(cfs_rq).map_or(0, |curr| self.se(curr).load.raw());
                    (queue.waiting_load() + running as i64, weight.raw())
                }
            };
            vruntime = vruntime.plus(-inflate_lag(self.se(se).vlag, load, weight as i64));
        }
        if self.has(Feature::FairSleepers) && !flags.initial {
            let with_credit = vruntime.plus(-(self.sleeper_credit(se) as i64));
            vruntime = self.se(se).vruntime.latest(with_credit);
        }
        vruntime
    }

    fn new_deadline(&self, se: SeId, vruntime: Vruntime, flags: EnqueueFlags) -> Vruntime {
        let request = self.virtual_time_of(se, self.request(se));
        // Competition is only joined with half a request, so that a new task is not late by a whole one.
        let halve = flags.initial && self.has(Feature::PlaceDeadlineInitial);
        vruntime.plus(if halve { request / 2 } else { request } as i64)
    }

    /// The average of a queue, where the virtual zero follows it or where it is reported; what it is does not matter
    /// otherwise.
    fn average_for_placement(&mut self, cfs_rq: CfsRqId) -> Vruntime {
        match self.generation.fair.virtual_zero {
            VirtualZero::LeastVruntime if !self.trace.enabled => self.cfs(cfs_rq).min_vruntime,
            _ => self.average_vruntime(cfs_rq),
        }
    }

    fn report_place(&mut self, cfs_rq: CfsRqId, se: SeId, average: Vruntime) {
        let (entity, queue) = (self.se(se), self.cfs(cfs_rq));
        let (comm, pid) = entity.task.map_or((Comm::default(), Pid(0)), |task| {
            let task = &self.tasks[task.index()];
            (task.comm, task.pid)
        });
        let place = Place {
            comm,
            pid,
            sev: entity.vruntime.0,
            sed: entity.deadline.0,
            sel: entity.vlag,
            avg: average.0,
            min: queue.min_vruntime.0,
            cpu: queue.cpu,
            nr: queue.nr_running,
        };
        self.report(EventKind::SchedPlace(place));
    }
}

impl LockedRq<'_> {
    /// Places an entity and reports it.
    pub(crate) fn place_entity(&mut self, cfs_rq: CfsRqId, se: SeId, flags: EnqueueFlags) {
        self.probe_entity(ProbePoint::Place, "place_entity", cfs_rq, se);
        let average = self.shared.average_for_placement(cfs_rq);
        if self.shared.generation.fair.placement == Placement::Lag {
            self.probe_average("place_entity", cfs_rq, average);
        }
        let placed = self.shared.placement(cfs_rq, se, flags);
        // An entity heavier than its queue takes the zero along, so that distances from it stay small.
        let is_heavier = || {
            let queue = self.cfs(cfs_rq).average_load(self.shared.running(cfs_rq));
            self.shared.weight_in_averages(self.shared.competing_load(se)) > queue
        };
        if self.shared.generation.fair.heavy_arrival == HeavyArrival::GoesAlong && is_heavier() {
            self.cfs_mut(cfs_rq).move_zero_to(placed.vruntime);
        }
        let base_slice = self.shared.sysctl.base_slice;
        let entity = self.se_mut(se);
        entity.vruntime = placed.vruntime;
        if let Some(deadline) = placed.deadline {
            entity.deadline = deadline;
            entity.slice = entity.request(base_slice);
        }
        entity.relative_deadline = None;
        if !flags.initial || self.shared.generation.fair.placement == Placement::Lag {
            // Where a new task is placed on its parent's queue is not where it will be.
            self.shared.probe_return(ProbePoint::PlaceReturn, "place_entity", se);
        }
        if self.shared.trace.enabled {
            self.shared.report_place(cfs_rq, se, average);
        }
    }
}

/// The lag to place with, so that the entity's lag *after* joining is `lag`: joining moves the average.
///
/// `lag · (W + w) / W`, truncated towards zero. The product wraps as the kernel's does: where lag has no limit and weights
/// are scaled up (86bfbb7ce4f6), it can.
fn inflate_lag(lag: i64, queue_load: i64, weight: i64) -> i64 {
    lag.wrapping_mul(queue_load + weight) / queue_load.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lag_after_joining_is_the_lag_before() {
        // As recorded on a real kernel: weight 459 on the queue, lag -1150, a nice-0 entity joins.
        assert_eq!(inflate_lag(-1150, 459, 1024), -3715);
        assert_eq!(inflate_lag(1000, 1024, 1024), 2000);
        assert_eq!(inflate_lag(1, 3, 1), 1);
    }

    use crate::testbed::{MS, SchedulerTestbed};
    use fairlab_event::Cpu;

    /// On 8 CPUs the latency is 24 ms; gentle sleepers get half of it.
    #[test]
    fn cfs_places_a_long_sleeper_half_a_latency_early_and_leaves_a_short_one_alone() {
        let mut bed = SchedulerTestbed::new("v6.5", 8, 1);
        let (sleeper, hog) = (bed.spawn(0, 0), bed.spawn(0, 0));
        bed.run(0, 24);
        while bed.scheduler.curr(Cpu(0)) != sleeper {
            bed.run(0, 1);
        }
        bed.run(0, 8);
        assert_eq!(bed.sleep(0), sleeper);
        let before = bed.entity(sleeper).vruntime;
        bed.pass(MS);
        bed.wake(sleeper, 0);
        assert_eq!(bed.entity(sleeper).vruntime, before, "a short sleep changes nothing");
        bed.run(0, 1);
        while bed.scheduler.curr(Cpu(0)) != sleeper {
            bed.run(0, 1);
        }
        bed.sleep(0);
        bed.pass(100 * MS);
        bed.wake(sleeper, 0);
        let min = bed.min_vruntime(0);
        assert_eq!(min.minus(bed.entity(sleeper).vruntime), 12 * MS as i64);
        assert_eq!(bed.entity(hog).vruntime, min, "the running one is the queue's minimum");
    }

    #[test]
    fn cfs_starts_a_new_task_one_slice_late_unless_that_is_switched_off() {
        for (kernel, debit) in
            [("v6.5", 12 * MS as i64), ("v6.5+NO_START_DEBIT", 0), ("v6.5+remove-start-debit", 0)]
        {
            let mut bed = SchedulerTestbed::new(kernel, 8, 1);
            bed.spawn(0, 0);
            let child = bed.spawn(0, 0);
            let late = bed.entity(child).vruntime.minus(bed.min_vruntime(0));
            assert!((late - debit).abs() <= 10, "{kernel}: {late}");
        }
    }

    #[test]
    fn eevdf_gives_back_the_lag_that_a_sleeper_left_with() {
        let mut bed = SchedulerTestbed::new("v6.6", 8, 1);
        let (sleeper, _, _) = (bed.spawn(0, 0), bed.spawn(0, 0), bed.spawn(5, 0));
        bed.pass(2 * MS);
        assert_eq!(bed.sleep(0), sleeper);
        let lag = bed.entity(sleeper).vlag;
        assert!(lag < 0, "it ran ahead of the average: {lag}");
        bed.pass(50 * MS);
        bed.wake(sleeper, 0);
        let after = bed.average(0).minus(bed.entity(sleeper).vruntime);
        assert!((after - lag).abs() <= 2, "lag {lag} before, {after} after");
    }

    #[test]
    fn eevdf_without_lag_places_at_the_average() {
        let mut bed = SchedulerTestbed::new("v6.6+NO_PLACE_LAG", 8, 1);
        let sleeper = bed.spawn(0, 0);
        bed.spawn(0, 0);
        bed.pass(2 * MS);
        bed.sleep(0);
        bed.pass(50 * MS);
        bed.events();
        bed.wake(sleeper, 0);
        let events = bed.events();
        let Some(EventKind::SchedPlace(place)) = events.first() else { panic!("{events:?}") };
        assert_eq!(place.sev, place.avg);
        assert_eq!(place.sed.wrapping_sub(place.sev), 3 * MS);
    }

    /// As v6.6.9 was recorded: half a request on the parent's queue, a whole one where the child is queued.
    #[test]
    fn eevdf_places_a_child_with_half_a_request_and_again_with_a_whole_one() {
        let mut bed = SchedulerTestbed::new("v6.6", 8, 1);
        bed.spawn(0, 0);
        bed.events();
        bed.spawn(0, 0);
        let events = bed.events();
        let requests = events.iter().filter_map(|event| match event {
            EventKind::SchedPlace(place) => Some(place.sed.wrapping_sub(place.sev)),
            _ => None,
        });
        assert_eq!(requests.collect::<Vec<_>>(), [3 * MS / 2, 3 * MS]);
    }

    /// Seed of a regression in virtual machines: at 86bfbb7ce4f6 a sleeper comes back at the average, not before it.
    #[test]
    fn lag_placement_under_cfs_takes_the_sleepers_credit_away() {
        let distance = |kernel: &str| {
            let mut bed = SchedulerTestbed::new(kernel, 8, 1);
            let sleeper = bed.spawn(0, 0);
            bed.spawn(0, 0);
            bed.pass(MS);
            bed.sleep(0);
            bed.pass(100 * MS);
            bed.wake(sleeper, 0);
            bed.min_vruntime(0).minus(bed.entity(sleeper).vruntime)
        };
        assert_eq!(distance("e0c2ff903c32"), 12 * MS as i64);
        assert!(distance("86bfbb7ce4f6").abs() < 4 * MS as i64);
    }
}
