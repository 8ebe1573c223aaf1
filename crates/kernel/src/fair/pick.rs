//! Picking the next entity.

use crate::all_cpus::Shared;
use crate::cfs_rq::tree::{NodeId, RbTree};
use crate::cfs_rq::{CfsRq, Eligibility, TimelineEntry};
use crate::decision::{PickDecision, PickReason};
use crate::entity::{CfsRqId, SeId};
use crate::fair::granularity::WakeupPreemptionTest;
use crate::fair::rules::Pick;
use crate::generation::Feature;
use crate::vruntime::Vruntime;

impl Shared {
    /// The fair task that should run next on the CPU of the root queue `root`; `None` when none is queued. Pure.
    ///
    /// The reason is that of the lowest level at which there was a choice. Kernel: `pick_task_fair()`.
    pub(crate) fn pick_task_fair(&self, root: CfsRqId) -> Option<PickDecision> {
        let mut reason = PickReason::OnlyCandidate;
        let mut queue = root;
        loop {
            let (se, why) = self.pick_next_entity(queue)?;
            if why != PickReason::OnlyCandidate {
                reason = why;
            }
            match (self.se(se).task, self.se(se).my_q) {
                (Some(task), _) => {
                    debug_assert!(self.se(se).on_rq, "entity {} is picked, and stands on no queue", se.0);
                    return Some(PickDecision { task, reason });
                }
                (None, Some(below)) => queue = below,
                (None, None) => unreachable!("an entity is a task's or a group's"),
            }
        }
    }

    /// The entity of a queue that should run next; the running one is a candidate as long as it is on the queue.
    ///
    /// Kernel: `pick_next_entity()`, kernel/sched/fair.c. Variants: `Leftmost` to v6.5, `EarliestEligibleDeadline`
    /// from v6.6.
    #[inline(always)]
    pub(crate) fn pick_next_entity(&self, cfs_rq: CfsRqId) -> Option<(SeId, PickReason)> {
        let queue = self.cfs(cfs_rq);
        let curr = self.running_entity(cfs_rq);
        match (queue.timeline.len(), curr) {
            (0, curr) => curr.map(|se| (se, PickReason::OnlyCandidate)),
            (1, None) => queue.timeline.leftmost().map(|entry| (entry.se, PickReason::OnlyCandidate)),
            _ => self.pick_among(cfs_rq, queue, curr),
        }
    }

    /// The same where there is a choice.
    #[inline(never)]
    fn pick_among(&self, cfs_rq: CfsRqId, queue: &CfsRq, curr: Option<SeId>) -> Option<(SeId, PickReason)> {
        match self.generation.fair.pick {
            Pick::Leftmost => self.pick_leftmost(queue, curr),
            Pick::EarliestEligibleDeadline | Pick::EarliestEligibleInDeadlineOrder => {
                match self.eligible_buddy(cfs_rq) {
                    Some(buddy) => Some((buddy, PickReason::NextBuddy)),
                    None => self.pick_eevdf(queue, curr),
                }
            }
        }
    }

    /// EEVDF: the preferred entity of a queue, if preferences count and it has no negative lag.
    ///
    /// Kernel: `pick_next_entity()` (v6.19: `__pick_eevdf()`), kernel/sched/fair.c. Which switch counts: `NEXT_BUDDY` to v6.13,
    /// `PICK_BUDDY` from v6.14 (2a77e4be12cb).
    #[inline]
    pub(crate) fn eligible_buddy(&self, cfs_rq: CfsRqId) -> Option<SeId> {
        self.eligible_if_preferred(cfs_rq, self.cfs(cfs_rq).next)
    }

    /// The same if `next` were preferred there.
    #[inline]
    pub(crate) fn eligible_if_preferred(&self, cfs_rq: CfsRqId, next: Option<SeId>) -> Option<SeId> {
        let counts = || match self.generation.features.has(Feature::PickBuddy) {
            true => self.has(Feature::PickBuddy),
            false => self.has(Feature::NextBuddy),
        };
        let eligible = |&se: &SeId| self.cfs(cfs_rq).is_eligible(self.se(se).vruntime, self.running(cfs_rq));
        next.filter(|_| counts()).filter(eligible)
    }

    /// CFS: the least vruntime; a buddy instead if it is not behind by more than the wakeup granularity.
    ///
    /// The order of buddies is that of v5.10 and later: next, else last.
    #[inline(never)]
    fn pick_leftmost(&self, queue: &CfsRq, curr: Option<SeId>) -> Option<(SeId, PickReason)> {
        let vruntime_of = |se: SeId| self.se(se).vruntime;
        let earlier = |waiting: Option<SeId>| match (waiting, curr) {
            (Some(waiting), Some(curr)) if vruntime_of(curr).is_before(vruntime_of(waiting)) => Some(curr),
            (Some(waiting), _) => Some(waiting),
            (None, curr) => curr,
        };
        let leftmost = earlier(queue.timeline.leftmost().map(|entry| entry.se))?;
        let deserves = |se: &SeId| self.wakeup_preempt_entity(*se, leftmost) != WakeupPreemptionTest::Behind;
        let mut picked = (leftmost, PickReason::Leftmost);
        if queue.skip == Some(leftmost) {
            let second = match curr == Some(leftmost) {
                true => queue.timeline.leftmost().map(|entry| entry.se),
                false => earlier(queue.timeline.after(leftmost).map(|entry| entry.se)),
            };
            if let Some(second) = second.filter(deserves) {
                picked = (second, PickReason::YielderSkipped);
            }
        }
        if let Some(next) = queue.next.filter(deserves) {
            picked = (next, PickReason::NextBuddy);
        } else if let Some(last) = queue.last.filter(deserves) {
            picked = (last, PickReason::LastBuddy);
        }
        Some(picked)
    }

    /// EEVDF: of the entities without negative lag the one with the earliest deadline. The running one is kept while
    /// it is eligible and its request is not used up.
    ///
    /// Kernel: `pick_eevdf()`, kernel/sched/fair.c (147f3efaa241; `RUN_TO_PARITY` 63304558ba5d). Equal deadlines: to v6.7 the
    /// tree's shape decides, from v6.8 the one that came first, and the running one last.
    fn pick_eevdf(&self, queue: &CfsRq, curr: Option<SeId>) -> Option<(SeId, PickReason)> {
        let eligibility = queue.eligibility(curr.map(|curr| self.as_running(curr)));
        let curr = curr.filter(|&curr| eligibility.admits(self.se(curr).vruntime));
        match curr.filter(|&curr| self.protects_slice(curr)) {
            Some(curr) => Some((curr, PickReason::RunToParity)),
            None => self.earliest_deadline(queue, eligibility, curr),
        }
    }

    /// The pick among the entities of a queue, buddies aside (`pick_eevdf()` proper).
    pub(crate) fn pick_eevdf_of(&self, cfs_rq: CfsRqId) -> Option<SeId> {
        self.pick_eevdf(self.cfs(cfs_rq), self.running_entity(cfs_rq)).map(|(se, _)| se)
    }

    /// The same without the running entity's protection.
    pub(crate) fn pick_eevdf_unprotected(&self, cfs_rq: CfsRqId) -> Option<SeId> {
        let (queue, curr) = (self.cfs(cfs_rq), self.running_entity(cfs_rq));
        let eligibility = queue.eligibility(curr.map(|curr| self.as_running(curr)));
        let curr = curr.filter(|&curr| eligibility.admits(self.se(curr).vruntime));
        self.earliest_deadline(queue, eligibility, curr).map(|(se, _)| se)
    }

    /// Of the entities that are eligible; `curr` is the running one if it is.
    fn earliest_deadline(
        &self,
        queue: &CfsRq,
        eligibility: Eligibility,
        curr: Option<SeId>,
    ) -> Option<(SeId, PickReason)> {
        let best = match self.generation.fair.pick {
            Pick::EarliestEligibleInDeadlineOrder => {
                let mut waiting = queue.timeline.iter();
                let best = waiting.find(|entry| eligibility.admits(entry.vruntime));
                let curr_is_earlier = |entry: &&TimelineEntry| {
                    curr.is_some_and(|curr| self.se(curr).deadline.is_before(entry.deadline))
                };
                best.filter(|entry| !curr_is_earlier(entry)).map(|entry| entry.se).or(curr)
            }
            _ => {
                let tree = queue.timeline.tree().expect("a tree is kept that is searched by its shape");
                search_by_shape(tree, eligibility, curr.map(|curr| (self.se(curr).deadline, curr)))
            }
        };
        let best = best.or_else(|| queue.timeline.leftmost().map(|entry| entry.se));
        best.map(|se| (se, PickReason::EarliestDeadline))
    }
}

/// The eligible entity with the earliest deadline; `best` is the running one if it is eligible. Which of those with one deadline
/// that is hangs on the tree's shape: on the way down whoever comes first, the running one before all; of a branch at the left of
/// the way who stands topmost, and before all on the way.
///
/// Kernel: `__pick_eevdf()` of v6.6 and v6.7, kernel/sched/fair.c (b01db23d5923).
fn search_by_shape(
    tree: &RbTree,
    eligibility: Eligibility,
    mut best: Option<(Vruntime, SeId)>,
) -> Option<SeId> {
    let (mut node, mut best_left) = (tree.root(), None::<(Vruntime, NodeId)>);
    while let Some((own, below)) = tree.at(node) {
        if !eligibility.admits(own.vruntime) {
            node = tree.left(node);
            continue;
        }
        if best.is_none_or(|(deadline, _)| own.deadline.is_before(deadline)) {
            best = Some((own.deadline, own.se));
        }
        // All at the left of one that is eligible are eligible.
        let left = tree.left(node);
        let left_earliest = tree.at(left).map(|(_, known)| known.earliest);
        if let Some(earliest) = left_earliest
            && best_left.is_none_or(|(deadline, _)| earliest.is_before(deadline))
        {
            best_left = Some((earliest, left));
        }
        if left_earliest == Some(below.earliest) || own.deadline == below.earliest {
            break;
        }
        node = tree.right(node);
    }
    match (best, best_left) {
        (Some((deadline, se)), Some((earliest, _))) if deadline.is_before(earliest) => Some(se),
        (_, Some((_, branch))) => earliest_of_branch(tree, branch),
        (best, None) => best.map(|(_, se)| se),
    }
}

/// The topmost entity of a branch with its earliest deadline, at the left before the right.
fn earliest_of_branch(tree: &RbTree, mut node: NodeId) -> Option<SeId> {
    while let Some((own, below)) = tree.at(node) {
        if own.deadline == below.earliest {
            return Some(own.se);
        }
        let left = tree.left(node);
        let is_left = tree.at(left).is_some_and(|(_, known)| known.earliest == below.earliest);
        node = if is_left { left } else { tree.right(node) };
    }
    None
}

impl Shared {
    /// The delayed entity, of whichever level, that would be picked next.
    pub(crate) fn delayed_candidate(&self, root: CfsRqId) -> Option<SeId> {
        let mut queue = root;
        loop {
            let (se, _) = self.pick_next_entity(queue)?;
            if self.se(se).sched_delayed {
                return Some(se);
            }
            queue = self.se(se).my_q?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cfs_rq::EntityRequests;
    use crate::testbed::{MS, SchedulerTestbed};
    use fairlab_event::Cpu;

    /// Whom v6.6 picks of entities that wait with these vruntimes and deadlines, by number from 1 in order of arrival; the one that
    /// runs, with this deadline, is 0. The last on the time line weighs so much that all before it are eligible.
    fn picked_by_shape(waiting: &[(i64, i64)], runs_until: Option<i64>) -> Option<u32> {
        let kernel = "v6.6".parse::<crate::Generation>().expect("a kernel");
        let mut queue = CfsRq::new(Cpu(0), kernel.fair.timeline_kind());
        let at = |offset: i64| Vruntime::QUEUE_START.plus(offset);
        for (number, &(vruntime, deadline)) in (1..).zip(waiting) {
            let is_last = waiting.iter().all(|&(other, _)| other <= vruntime);
            let weight = if is_last { 1 << 30 } else { 1 };
            let entry = TimelineEntry::new(SeId(number), at(vruntime), at(deadline), weight);
            queue.insert_waiting(entry, EntityRequests::default());
        }
        let tree = queue.timeline.tree().expect("v6.6 keeps one");
        let curr = runs_until.map(|deadline| (at(deadline), SeId(0)));
        search_by_shape(tree, queue.eligibility(None), curr).map(|se| se.0)
    }

    #[test]
    fn the_trees_shape_decides_between_equal_deadlines_in_v6_6() {
        assert_eq!(
            picked_by_shape(&[(5, 10)], Some(10)),
            Some(0),
            "the running one comes before the way down"
        );
        assert_eq!(picked_by_shape(&[(5, 9)], Some(10)), Some(1));
        let three = [(5, 10), (6, 10), (7, 10)];
        assert_eq!(picked_by_shape(&three, None), Some(1), "a branch at the left comes before its root");
        assert_eq!(picked_by_shape(&three, Some(10)), Some(1), "and before the running one");
        assert_eq!(picked_by_shape(&[(5, 11), (6, 10), (7, 10)], None), Some(2), "unless it ends later");
        let four = [(5, 10), (6, 10), (7, 10), (4, 10)];
        assert_eq!(picked_by_shape(&four, None), Some(1), "of the branch the topmost, and not the first");
        assert_eq!(picked_by_shape(&[], Some(10)), Some(0));
        assert_eq!(picked_by_shape(&[], None), None);
    }

    #[test]
    fn cfs_picks_the_least_vruntime() {
        let mut bed = SchedulerTestbed::new("v6.5", 8, 1);
        let (one, other) = (bed.spawn(0, 0), bed.spawn(0, 0));
        bed.pass(30 * MS);
        let pick = bed.schedule(0);
        assert_eq!((pick.task, pick.reason), (other, PickReason::Leftmost));
        bed.pass(MS);
        assert_eq!(bed.schedule(0).task, other, "still behind");
        bed.pass(40 * MS);
        assert_eq!(bed.schedule(0).task, one);
    }

    #[test]
    fn cfs_prefers_the_woken_buddy_that_preempted() {
        let mut bed = SchedulerTestbed::new("v6.5", 8, 1);
        let (sleeper, _) = (bed.spawn(0, 0), bed.spawn(0, 0));
        bed.sleep(0);
        bed.pass(100 * MS);
        assert!(bed.wake(sleeper, 0), "12 ms behind preempts");
        let pick = bed.schedule(0);
        assert_eq!((pick.task, pick.reason), (sleeper, PickReason::NextBuddy));
    }

    /// With the skip buddy set on the leftmost, the second runs only if it is not behind by more than 4 ms.
    #[test]
    fn cfs_skips_the_yielder_for_one_about_as_deserving() {
        let mut bed = SchedulerTestbed::new("v6.5", 8, 1);
        let (one, other) = (bed.spawn(0, 0), bed.spawn(0, 0));
        bed.pass(10 * MS);
        let cpu = Cpu(0);
        bed.scheduler.set_here(cpu, crate::core::KernelContext::Task, fairlab_event::Ns(10 * MS));
        bed.scheduler.yield_task(cpu);
        let pick = bed.schedule(0);
        assert_eq!(
            (pick.task, pick.reason),
            (other, PickReason::YielderSkipped),
            "2 ms apart, {one:?} yields"
        );
    }

    #[test]
    fn eevdf_picks_the_earliest_deadline_of_the_eligible() {
        // A heavy task's deadline comes sooner: its request is worth less virtual time.
        let mut bed = SchedulerTestbed::new("v6.6", 8, 1);
        let (_, light, heavy) = (bed.spawn(0, 0), bed.spawn(5, 0), bed.spawn(-5, 0));
        bed.pass(4 * MS);
        bed.tick(0);
        let pick = bed.schedule(0);
        assert_eq!((pick.task, pick.reason), (heavy, PickReason::EarliestDeadline));
        assert_ne!(pick.task, light);
    }

    #[test]
    fn eevdf_keeps_the_running_one_until_its_request_is_used_unless_parity_is_off() {
        let again = |kernel: &str| {
            let mut bed = SchedulerTestbed::new(kernel, 8, 1);
            let first = bed.spawn(0, 0);
            let other = bed.spawn(-5, 0);
            bed.schedule(0);
            (bed.scheduler.curr(Cpu(0)) == first, bed.scheduler.curr(Cpu(0)) == other)
        };
        assert_eq!(again("v6.6"), (true, false));
        assert_eq!(again("v6.6+NO_RUN_TO_PARITY"), (false, true));
        assert_eq!(again("v6.6-63304558ba5d"), (false, true));
    }
}
