//! One entity joins its queue or leaves it: the order of the steps decides what each of them sees.
//!
//! Must not know: the levels above and below.

use crate::entity::{CfsRqId, SeId};
use crate::fair::bandwidth::Throttling;
use crate::fair::bandwidth::rules::{ThrottledArrival, ThrottledListing};
use crate::fair::load_update::LoadUpdate;
use crate::fair::rules::Placement;
use crate::generation::Feature;
use crate::pelt::{DetachPoint, RunnableKind};
use crate::rq::{DequeueFlags, EnqueueFlags, LockedRq};

impl LockedRq<'_> {
    /// Kernel: `enqueue_entity()`, kernel/sched/fair.c. The order of its steps decides what the placement sees: an
    /// entity that is still `curr` is placed before it is charged and before its group weight is updated; any other one
    /// after.
    pub(crate) fn enqueue_entity(&mut self, cfs_rq: CfsRqId, se: SeId, flags: EnqueueFlags) {
        debug_assert!(!self.se(se).on_rq, "entity {} joins cfs_rq {} twice", se.0, cfs_rq.0);
        debug_assert_eq!(self.se(se).cfs_rq, cfs_rq, "entity {} joins a queue that is not its own", se.0);
        self.probe_queueing(se);
        let is_curr = self.cfs(cfs_rq).member == Some(se);
        let competes_here = !self.shared.competes_on_one_queue();
        let rule = self.shared.generation.fair.placement;
        let comes_relative = rule != Placement::Lag && (!flags.wakeup || flags.migrated);
        if is_curr && competes_here {
            self.join(cfs_rq, se, flags, comes_relative);
        }
        self.update_curr(cfs_rq);
        if !is_curr && comes_relative {
            self.shared.make_absolute(cfs_rq, se);
        }
        self.update_load_avg(se, LoadUpdate { attach: true, ..LoadUpdate::TELL });
        if self.se(se).my_q.is_some() {
            self.shared.se_update_runnable(se);
            self.update_cfs_group(se);
        }
        self.shared.enqueue_runnable_load_avg(se);
        if !is_curr && rule == Placement::Lag && competes_here {
            self.place_entity(cfs_rq, se, flags);
        }
        let (entity, queue) = self.entity_and_queue(se, cfs_rq);
        queue.load.add(entity.load);
        queue.nr_running += 1;
        if rule != Placement::Lag && flags.wakeup {
            self.place_entity(cfs_rq, se, flags);
        }
        if flags.migrated {
            self.se_mut(se).exec_start = 0;
        }
        if flags.wakeup {
            self.sleep_ends(se);
        }
        if !is_curr {
            self.wait_starts(se);
            if competes_here {
                self.shared.insert_waiting(cfs_rq, se);
            }
        }
        self.se_mut(se).on_rq = true;
        if self.cfs(cfs_rq).nr_running == 1 {
            self.first_is_queued(cfs_rq);
        } else if self.shared.bandwidth_used
            && self.shared.generation.bandwidth.throttled_arrival == ThrottledArrival::Joined
        {
            self.list_add_leaf_cfs_rq(cfs_rq);
        }
    }

    /// Something stands on a queue that was empty: is there runtime for it? Unless it is throttled it is aged from now on.
    fn first_is_queued(&mut self, cfs_rq: CfsRqId) {
        if self.shared.bandwidth_used {
            self.check_enqueue_throttle(cfs_rq);
        }
        let rules = &self.shared.generation.bandwidth;
        if rules.throttled_listing == ThrottledListing::Joins || !self.shared.throttled_hierarchy(cfs_rq) {
            self.list_add_leaf_cfs_rq(cfs_rq);
        }
        let throttling = self.shared.generation.bandwidth.throttling;
        if self.shared.bandwidth_used && throttling == Throttling::TasksAtUserReturn {
            self.start_pelt_clock(cfs_rq);
        }
    }

    /// Gives an entity that is still `curr` its place on the virtual time line that it joins again.
    pub(crate) fn join(&mut self, cfs_rq: CfsRqId, se: SeId, flags: EnqueueFlags, comes_relative: bool) {
        if self.shared.generation.fair.placement == Placement::Lag {
            self.place_entity(cfs_rq, se, flags);
        } else if comes_relative {
            self.shared.make_absolute(cfs_rq, se);
        }
    }

    /// Kernel: `dequeue_entity()`, kernel/sched/fair.c. Returns whether the entity is gone.
    pub(crate) fn dequeue_entity(&mut self, cfs_rq: CfsRqId, se: SeId, flags: DequeueFlags) -> bool {
        self.assert_stands_on(cfs_rq, se);
        self.probe_unqueueing(se, flags);
        self.update_curr(cfs_rq);
        let competes_here = !self.shared.competes_on_one_queue();
        if self.cfs(cfs_rq).has_buddies() && competes_here {
            self.shared.clear_buddies_upwards(se);
        }
        if competes_here && !flags.delayed && self.shared.delays_dequeue(cfs_rq, se, flags) {
            self.update_load_avg(se, LoadUpdate::AGE);
            if self.shared.generation.fair.delayed_lag.is_noted() {
                self.shared.update_entity_lag(cfs_rq, se);
            }
            self.set_delayed(se);
            return false;
        }
        let detach = flags.migrating && self.shared.generation.pelt.detach_point == DetachPoint::Dequeue;
        self.update_load_avg(se, LoadUpdate { detach, ..LoadUpdate::TELL });
        match self.shared.generation.pelt.runnable {
            RunnableKind::TaskCount => self.shared.se_update_runnable(se),
            RunnableKind::LoadWeighted => self.shared.dequeue_runnable_load_avg(se),
        }
        let is_curr = self.cfs(cfs_rq).member == Some(se);
        match (is_curr, flags.migrating) {
            (true, _) => {}
            (false, true) => self.wait_is_interrupted(se),
            // So of a sleeper that leaves late, and of a waiting task that is taken off for a change.
            (false, false) => self.wait_ends(se),
        }
        if flags.sleep {
            self.sleep_starts(se);
        }
        let keeps_lag = match self.shared.generation.fair.placement {
            Placement::MinVruntime | Placement::AverageWithCredit => false,
            Placement::LagOnWakeup => flags.sleep,
            Placement::Lag => competes_here,
        };
        if keeps_lag {
            self.shared.update_entity_lag(cfs_rq, se);
        }
        if competes_here && self.has(Feature::PlaceRelDeadline) && !flags.sleep {
            self.shared.keep_distance_to_deadline(se);
        }
        if !is_curr && competes_here {
            self.shared.remove_waiting(cfs_rq, se);
        }
        let (entity, queue) = self.entity_and_queue(se, cfs_rq);
        entity.on_rq = false;
        queue.load.subtract(entity.load);
        queue.nr_running -= 1;
        let (runs_empty, is_group) = (queue.nr_running == 0, entity.my_q.is_some());
        if !flags.sleep && self.shared.vruntime_is_relative_off_queue() {
            self.shared.make_relative(cfs_rq, se);
        }
        if self.shared.bandwidth_used {
            self.shared.return_cfs_rq_runtime(cfs_rq);
        }
        if is_group {
            self.update_cfs_group(se);
        }
        if !flags.save {
            self.shared.update_min_vruntime(cfs_rq);
        }
        if flags.delayed && competes_here {
            self.finish_delayed_dequeue(se);
        }
        if runs_empty {
            self.queue_runs_empty(cfs_rq);
        }
        true
    }

    fn assert_stands_on(&self, cfs_rq: CfsRqId, se: SeId) {
        let (entity, queue) = (self.se(se), self.cfs(cfs_rq));
        debug_assert!(entity.on_rq, "entity {} leaves cfs_rq {}, on which it does not stand", se.0, cfs_rq.0);
        debug_assert_eq!(entity.cfs_rq, cfs_rq, "entity {} leaves a queue that is not its own", se.0);
        let (of_queue, of_entity) = (queue.load.raw(), entity.load.raw());
        debug_assert!(
            of_queue >= of_entity,
            "{of_entity} leaves cfs_rq {}, which weighs {of_queue}",
            cfs_rq.0
        );
    }

    /// Notes the time throttled as others may read it; while throttled, time stands still for its averages from now on.
    pub(crate) fn queue_runs_empty(&mut self, cfs_rq: CfsRqId) {
        self.cfs_mut(cfs_rq).pelt_clock.enter_idle();
        let stops = self.shared.generation.bandwidth.throttling == Throttling::TasksAtUserReturn;
        if stops && self.shared.throttled_hierarchy(cfs_rq) {
            self.stop_pelt_clock(cfs_rq);
            self.list_del_leaf_cfs_rq(cfs_rq);
        }
    }
}
