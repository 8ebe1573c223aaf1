//! What groups that stay queued do when an entity below them comes or goes. At each level up to the root their averages are
//! aged, their weight is computed again, and the change is counted.
//!
//! Mostly only sums grow and no average changes. Then each entity, queue and group is looked up once. Every other case goes
//! to the functions that model the kernel's.

use crate::cfs_rq::QueueCountChange;
use crate::entity::{CfsRqId, SeId};
use crate::fair::accounting::move_on;
use crate::fair::contributions::{grow_sums, keep_group_weight};
use crate::fair::load_update::{LoadUpdate, RqClocks};
use crate::fair::rules::{Request, Reweight};
use crate::pelt::{CpuScale, RunnableKind};
use crate::rq::LockedRq;

/// What is the same at each level of the way up.
#[derive(Clone, Copy)]
struct UpwardWalk {
    kind: RunnableKind,
    now: RqClocks,
    /// Weights are computed, and nothing is traced.
    computes_weights: bool,
    /// A weight that stays is set again all the same: its entity is charged, and its averages rounded (to v6.5).
    sets_anew: bool,
    /// Charging does nothing but move an entity on its time line.
    charges_plainly: bool,
    /// A group may cut off what is below it, or make it count as idle.
    looks_up: bool,
    /// Groups ask for the least request below them.
    asks_for_least: bool,
}

impl LockedRq<'_> {
    /// Walks from `first`, a group's entity that stays queued, up to the root. Returns whether that is reached.
    #[inline]
    pub(crate) fn follow_change(
        &mut self,
        first: Option<SeId>,
        request: Option<u64>,
        change: QueueCountChange,
    ) -> bool {
        first.is_none_or(|first| self.follow_change_from(first, request, change))
    }

    fn follow_change_from(&mut self, first: SeId, request: Option<u64>, change: QueueCountChange) -> bool {
        let now = self.now_of();
        // Mostly kind and scale are known when this is compiled.
        let at_full_speed = RqClocks { scale: CpuScale::FULL, ..now };
        match self.shared.generation.pelt.runnable {
            kind if self.shared.scales_contributions(first) => {
                self.follow_levels(kind, now, first, request, change)
            }
            RunnableKind::TaskCount => {
                self.follow_levels(RunnableKind::TaskCount, at_full_speed, first, request, change)
            }
            RunnableKind::LoadWeighted => {
                self.follow_levels(RunnableKind::LoadWeighted, at_full_speed, first, request, change)
            }
        }
    }

    #[inline(always)]
    fn follow_levels(
        &mut self,
        kind: RunnableKind,
        now: RqClocks,
        first: SeId,
        mut request: Option<u64>,
        mut change: QueueCountChange,
    ) -> bool {
        let way = UpwardWalk {
            kind,
            now,
            computes_weights: !self.shared.hooks.answers_weights()
                && !self.shared.trace.probes
                && !self.shared.line_uses.wanted,
            sets_anew: self.shared.generation.fair.reweight == Reweight::KeepVruntime,
            charges_plainly: self.shared.charging_is_plain(),
            looks_up: self.shared.bandwidth_used || self.shared.idle_policy_used,
            asks_for_least: self.shared.generation.fair.request == Request::OwnAndLeastBelow,
        };
        let mut level = Some(first);
        while let Some(se) = level {
            let followed =
                if way.computes_weights { self.follow_within_period(&way, se, change) } else { None };
            let (cfs_rq, parent) = followed.unwrap_or_else(|| self.follow_whatever_changes(se, change));
            if way.asks_for_least {
                self.shared.take_request_from_below(se, request);
                request = self.shared.least_of_requests(cfs_rq);
            }
            if way.looks_up && !self.shared.change_goes_on(cfs_rq, &mut change) {
                return false;
            }
            level = parent;
        }
        true
    }

    /// One level where no average changes but sums grow. Returns the entity's queue and the group above; `None` where it is
    /// not so, and the rest is left to [`follow_whatever_changes`](Self::follow_whatever_changes).
    #[inline(always)]
    fn follow_within_period(
        &mut self,
        way: &UpwardWalk,
        se: SeId,
        change: QueueCountChange,
    ) -> Option<(CfsRqId, Option<SeId>)> {
        let entity = self.se(se);
        let below = self.cfs(entity.my_q?);
        if below.tracked.propagate {
            return None;
        }
        let load = self.shared.group_load(below);
        let stands_for = match way.kind {
            RunnableKind::TaskCount => below.runnable_tasks(&self.shared.generation.pelt),
            RunnableKind::LoadWeighted => self.shared.group_runnable_of(below, load, entity.load.raw()),
        };
        let weight_stays = self.shared.shares_of(below, load) == Some(entity.load.raw());
        let (rules, entity) = (&self.shared.generation.pelt, &mut self.shared.entities[se.0 as usize]);
        let queue = &mut self.shared.cfs_rqs[entity.cfs_rq.0 as usize];
        let now = queue.pelt_clock.now(way.now.pelt);
        if !grow_sums(rules, way.kind, se, entity, queue, (now, way.now.scale)) {
            return None;
        }
        if way.kind == RunnableKind::TaskCount {
            entity.runnable_weight = stands_for;
        }
        // Counted before the weight is set, which does not depend on it.
        queue.count(change);
        let above = (entity.cfs_rq, entity.parent);
        if !weight_stays {
            self.update_cfs_group(se);
        } else if way.sets_anew {
            let (clock, runs) = (way.now.clock, entity.on_rq && queue.member == Some(se));
            if runs && clock > entity.exec_start {
                if !way.charges_plainly {
                    self.charge_curr(above.0, se, clock);
                    self.shared.keep_entity_weight(se);
                    return Some(above);
                }
                move_on(&self.shared.generation.fair, queue, entity, clock);
            }
            let queue = &mut queue.tracked;
            match way.kind {
                RunnableKind::TaskCount => {
                    rules.rejoin(queue, &mut entity.avg, entity.load.scaled_down());
                }
                RunnableKind::LoadWeighted => keep_group_weight(rules, queue, entity, stands_for),
            }
        }
        Some(above)
    }

    /// One level, whatever changes there.
    #[inline(never)]
    fn follow_whatever_changes(&mut self, se: SeId, change: QueueCountChange) -> (CfsRqId, Option<SeId>) {
        self.update_load_avg(se, LoadUpdate::TELL);
        self.shared.se_update_runnable(se);
        self.update_cfs_group(se);
        let (cfs_rq, parent) = (self.se(se).cfs_rq, self.se(se).parent);
        self.cfs_mut(cfs_rq).count(change);
        (cfs_rq, parent)
    }
}

#[cfg(test)]
mod tests {
    use crate::core::{WakeFlags, WakeStart};
    use crate::group::GroupId;
    use crate::testbed::SchedulerTestbed;
    use crate::topology::{SmtNumbering, Topology};

    /// What a kernel's entities and queues hold after tasks have slept and woken, three groups deep, on a CPU of so much
    /// capacity.
    fn state(kernel: &str, capacity: u32, probes: bool) -> String {
        let topology = Topology::regular(1, 1, 2, 1, SmtNumbering::Adjacent).expect("a machine");
        let mut bed =
            SchedulerTestbed::on(kernel, topology.with_capacities(&[capacity, 1024]).expect("capacities"));
        bed.scheduler.set_tracing(false);
        bed.scheduler.set_probes(probes);
        let mut deeper = |parent, weight| bed.scheduler.new_group(parent, weight);
        let outer = deeper(GroupId::ROOT, 70);
        let (inner, sibling) = (deeper(outer, 300), deeper(outer, 100));
        let innermost = deeper(inner, 100);
        for (group, cpu) in
            [innermost, innermost, sibling].map(|group| (group, 0)).into_iter().chain([(inner, 1)])
        {
            bed.spawn_in(group, cpu);
        }
        for step in 1..200 {
            bed.pass(step * 7_919 % 400_000);
            let sleeper = bed.sleep(0);
            bed.pass(step * 104_729 % 90_000);
            bed.at(0);
            if bed.scheduler.ttwu_begin(sleeper, WakeFlags::default()) == WakeStart::Slept {
                bed.scheduler.ttwu_do_activate(sleeper, WakeFlags::default());
            }
            bed.schedule(0);
        }
        format!("{:?} {:?}", bed.scheduler.shared.entities, bed.scheduler.shared.cfs_rqs)
    }

    /// Where probes are wanted, each level goes the long way.
    #[test]
    fn the_short_way_leads_where_the_long_one_does() {
        for kernel in ["v4.18", "v5.0", "v5.5", "v5.10", "v6.5", "v6.6", "v6.12", "v7.2"] {
            for capacity in [1024, 446] {
                let [short, long] = [false, true].map(|probes| state(kernel, capacity, probes));
                assert!(short == long, "{kernel}, a CPU of {capacity}");
            }
        }
    }
}
