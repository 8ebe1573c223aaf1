//! One level of one CPU's fair runqueue (`struct cfs_rq`) and its virtual time line.

pub(crate) mod tree;

use fairlab_event::Cpu;

use crate::entity::SeId;
use crate::fair::bandwidth::LocalRuntime;
use crate::fair::rules::{AverageRounding, TimelineKind, TimelineOrder};
use crate::group::GroupId;
use crate::pelt::{CfsRqClock, CfsRqLoad, DelayedTasks, PeltRules, QueueState};
use crate::vruntime::Vruntime;
use crate::weight::LoadWeight;

use tree::{NO_NODE, NodeId, RbTree, TreeEntity};

/// A waiting entity on the time line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimelineEntry {
    pub vruntime: Vruntime,
    pub deadline: Vruntime,
    /// Scaled down.
    pub weight: i64,
    pub se: SeId,
    /// Where it hangs in the tree, if one is kept.
    node: NodeId,
}

impl TimelineEntry {
    pub const fn new(se: SeId, vruntime: Vruntime, deadline: Vruntime, weight: i64) -> TimelineEntry {
        TimelineEntry { vruntime, deadline, weight, se, node: NO_NODE }
    }
}

/// Requests that an entity brings to a time line, ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EntityRequests {
    /// Its own.
    pub slice: u64,
    /// The largest that it knew of when it last hung in a tree.
    pub max_slice: u64,
}

/// The entities that wait, by vruntime or by deadline; among equals the one that came first is first.
///
/// Kernel: `cfs_rq::tasks_timeline`, a red-black tree. A queue holds few entities, and a sorted array is faster then. The tree is
/// kept beside it where something comes of its shape.
#[derive(Clone, Debug)]
pub(crate) struct TasksTimeline {
    order: TimelineOrder,
    entries: Vec<TimelineEntry>,
    tree: Option<Box<RbTree>>,
}

impl TasksTimeline {
    fn key(&self, entry: &TimelineEntry) -> Vruntime {
        match self.order {
            TimelineOrder::Vruntime => entry.vruntime,
            TimelineOrder::Deadline => entry.deadline,
        }
    }

    fn insert(&mut self, entry: TimelineEntry, requests: EntityRequests) {
        let key = self.key(&entry);
        let at = self.entries.partition_point(|other| !key.is_before(self.key(other)));
        let node = if self.tree.is_some() { self.hang(&entry, at, requests) } else { NO_NODE };
        self.entries.insert(at, TimelineEntry { node, ..entry });
    }

    #[inline(never)]
    fn hang(&mut self, entry: &TimelineEntry, at: usize, requests: EntityRequests) -> NodeId {
        let node_at = |at: usize| self.entries.get(at).map(|entry| entry.node);
        let (before, behind) = (at.checked_sub(1).and_then(node_at), node_at(at));
        let EntityRequests { slice, max_slice } = requests;
        let TimelineEntry { se, vruntime, deadline, .. } = *entry;
        let own = TreeEntity { se, vruntime, deadline, slice, max_slice };
        self.tree.as_mut().map_or(NO_NODE, |tree| tree.insert(own, before, behind))
    }

    /// Returns the largest request as well that the entity knew of in the tree, if that is kept.
    fn remove(&mut self, se: SeId) -> (TimelineEntry, Option<u64>) {
        let at = self.entries.iter().position(|entry| entry.se == se);
        let entry = self.entries.remove(at.expect("a waiting entity stands on its queue"));
        (entry, self.tree.as_mut().map(|tree| tree.erase(entry.node)))
    }

    /// The tree in which the entities hang, where it is kept.
    pub fn tree(&self) -> Option<&RbTree> {
        self.tree.as_deref()
    }

    /// One of those that wait has another weight and deadline. Returns what it weighed.
    fn renew(&mut self, renewed: TimelineEntry) -> i64 {
        let entry = self.entries.iter_mut().find(|entry| entry.se == renewed.se);
        let entry = entry.expect("a waiting entity stands on its queue");
        let TimelineEntry { weight, node, .. } = *entry;
        *entry = TimelineEntry { node, ..renewed };
        if let Some(tree) = &mut self.tree {
            tree.set_deadline(node, renewed.deadline);
        }
        weight
    }

    /// One of those that wait asks for another request from now on.
    pub fn set_slice(&mut self, se: SeId, slice: u64) {
        let Some(tree) = &mut self.tree else { return };
        if let Some(entry) = self.entries.iter().find(|entry| entry.se == se) {
            tree.set_slice(entry.node, slice);
        }
    }

    /// The first in order (`__pick_first_entity()`).
    pub fn leftmost(&self) -> Option<&TimelineEntry> {
        self.entries.first()
    }

    /// The least vruntime, wherever it stands.
    #[inline(always)]
    fn least_vruntime(&self) -> Option<Vruntime> {
        match self.order {
            TimelineOrder::Vruntime => self.leftmost().map(|entry| entry.vruntime),
            TimelineOrder::Deadline => self.least_vruntime_of_all(),
        }
    }

    #[inline(never)]
    fn least_vruntime_of_all(&self) -> Option<Vruntime> {
        self.entries.iter().map(|entry| entry.vruntime).reduce(Vruntime::earliest)
    }

    /// The one after `se` (`__pick_next_entity()`).
    pub fn after(&self, se: SeId) -> Option<&TimelineEntry> {
        let at = self.entries.iter().position(|entry| entry.se == se)?;
        self.entries.get(at + 1)
    }

    /// In order.
    pub fn iter(&self) -> impl Iterator<Item = &TimelineEntry> + Clone {
        self.entries.iter()
    }

    /// Number of entities that wait.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
}

/// By how much a queue's counts of tasks on it and below it change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueCountChange {
    pub tasks: i32,
    /// Those of them that sleep and have not left yet.
    pub delayed: i32,
    /// Those of them that count as `SCHED_IDLE`.
    pub idle: i32,
}

/// A kind of buddy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Buddy {
    /// Preferred at the next pick.
    Next,
    /// Preferred after that: it was preempted.
    Last,
    /// Passed over at the next pick.
    Skip,
}

/// One CPU's queue of one group (or the root).
///
/// The running entity is `curr`; it is not on the time line but still counted in `nr_running` and `load`. Where all tasks of a CPU
/// compete on its root queue, that has the one time line, and the running task is its `curr`, of whatever group it is.
///
/// What is used together stands together, in lines of 64 bytes: a machine's CPUs and tasks take turns in the first cache.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct CfsRq {
    /// Its load tracking averages.
    pub tracked: CfsRqLoad,
    /// What throttling makes of their clock.
    pub pelt_clock: CfsRqClock,
    /// What it counts of its CPU's load, and in which jiffy that was computed (`h_load`, `last_h_load_update`).
    pub h_load: Option<(u64, u64)>,
    pub cpu: Cpu,
    /// The group that it is a queue of.
    pub group: GroupId,
    /// The entity that stands for it on the queue above; `None` at the root.
    pub entity: Option<SeId>,
    pub curr: Option<SeId>,
    /// Which of its own entities runs, or has one running below it (`h_curr`).
    pub member: Option<SeId>,
    /// Sum of the weights of all entities on it.
    pub load: LoadWeight,
    /// Entities on it.
    pub nr_running: u32,
    /// Tasks on it and below it.
    pub h_nr_running: u32,
    /// Those of them that sleep and have not left yet.
    pub h_nr_delayed: u32,
    /// Those of them that count as `SCHED_IDLE`: by their policy, or in an idle group below this queue.
    pub h_nr_idle: u32,
    /// Never goes back; the zero of `avg_vruntime`.
    pub min_vruntime: Vruntime,
    pub timeline: TasksTimeline,
    /// Σ (vruntime − `min_vruntime`) · weight over the time line. Wraps, as the kernel's does: where lag has no limit, keys
    /// can grow beyond what 64 bits hold once they are weighted.
    avg_vruntime: i64,
    /// Σ weight over the time line, scaled down.
    avg_load: i64,
    /// Buddies: preferred, preferred after it, and not preferred.
    pub next: Option<SeId>,
    pub last: Option<SeId>,
    pub skip: Option<SeId>,
    /// What it has of its group's quota.
    pub runtime: LocalRuntime,
    /// Its averages are aged while nothing runs on it (`on_list`).
    pub listed: bool,
}

/// The running entity as far as averages need it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CurrEntity {
    pub vruntime: Vruntime,
    /// Scaled down.
    pub weight: i64,
}

/// Which entities of a queue have no negative lag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Eligibility {
    zero: Vruntime,
    /// Σ (vruntime − `zero`) · weight, `curr` included.
    keys: i64,
    /// Σ weight, `curr` included.
    load: i64,
}

impl Eligibility {
    /// Whether one at `vruntime` has none.
    #[inline(always)]
    pub fn admits(&self, vruntime: Vruntime) -> bool {
        self.keys >= vruntime.minus(self.zero).wrapping_mul(self.load)
    }

    /// The same without one that waits.
    pub fn without(self, vruntime: Vruntime, weight: i64) -> Eligibility {
        let key = vruntime.minus(self.zero).wrapping_mul(weight);
        Eligibility { keys: self.keys.wrapping_sub(key), load: self.load - weight, ..self }
    }
}

impl CfsRq {
    pub fn new(cpu: Cpu, kind: TimelineKind) -> CfsRq {
        CfsRq {
            cpu,
            group: GroupId::ROOT,
            entity: None,
            load: LoadWeight::ZERO,
            nr_running: 0,
            h_nr_running: 0,
            h_nr_delayed: 0,
            h_nr_idle: 0,
            runtime: LocalRuntime::default(),
            tracked: CfsRqLoad::default(),
            listed: false,
            pelt_clock: CfsRqClock::new(),
            h_load: None,
            min_vruntime: Vruntime::QUEUE_START,
            timeline: TasksTimeline {
                order: kind.order,
                entries: Vec::new(),
                tree: kind.tree.map(|fields| Box::new(RbTree::new(fields))),
            },
            curr: None,
            member: None,
            next: None,
            last: None,
            skip: None,
            avg_vruntime: 0,
            avg_load: 0,
        }
    }

    /// A group's queue on `cpu`, for which `entity` stands on the queue above.
    pub fn of_group(cpu: Cpu, kind: TimelineKind, group: GroupId, entity: SeId) -> CfsRq {
        CfsRq { group, entity: Some(entity), ..CfsRq::new(cpu, kind) }
    }

    /// What its averages are aged by.
    #[inline(always)]
    pub fn tracked_state(&self, rules: &PeltRules) -> QueueState {
        QueueState {
            weight: self.load.scaled_down(),
            runnable_weight: LoadWeight::from_raw(self.tracked.runnable_weight).scaled_down(),
            runnable_tasks: self.runnable_tasks(rules),
            running: self.member.is_some(),
        }
    }

    /// Tasks on it and below it that count as runnable for load tracking.
    #[inline(always)]
    pub fn runnable_tasks(&self, rules: &PeltRules) -> u64 {
        u64::from(match rules.delayed_tasks {
            DelayedTasks::Runnable => self.h_nr_running,
            // Wraps, as the kernel's does, while a sleeper of one queue for all is being taken off.
            DelayedTasks::NotRunnable => self.h_nr_running.wrapping_sub(self.h_nr_delayed),
        })
    }

    /// Tasks came or went, on it or below it.
    pub fn count(&mut self, change: QueueCountChange) {
        self.h_nr_running = self.h_nr_running.wrapping_add_signed(change.tasks);
        self.h_nr_delayed = self.h_nr_delayed.wrapping_add_signed(change.delayed);
        self.h_nr_idle = self.h_nr_idle.wrapping_add_signed(change.idle);
        debug_assert!(self.h_nr_running.max(self.h_nr_delayed).max(self.h_nr_idle) <= i32::MAX as u32);
    }

    /// Whether an entity is preferred or passed over.
    pub fn has_buddies(&self) -> bool {
        self.next.is_some() || self.last.is_some() || self.skip.is_some()
    }

    /// An entity is no longer preferred or passed over. Returns whether it was.
    #[inline]
    pub fn forget_buddy(&mut self, se: SeId) -> bool {
        let mut was_buddy = false;
        for buddy in [&mut self.next, &mut self.last, &mut self.skip] {
            if *buddy == Some(se) {
                *buddy = None;
                was_buddy = true;
            }
        }
        was_buddy
    }

    /// The same for one kind of buddy.
    #[inline]
    pub fn forget(&mut self, kind: Buddy, se: SeId) -> bool {
        let buddy = match kind {
            Buddy::Next => &mut self.next,
            Buddy::Last => &mut self.last,
            Buddy::Skip => &mut self.skip,
        };
        let was_buddy = *buddy == Some(se);
        if was_buddy {
            *buddy = None;
        }
        was_buddy
    }

    /// Puts an entity on the time line (`__enqueue_entity()`).
    pub fn insert_waiting(&mut self, entry: TimelineEntry, requests: EntityRequests) {
        self.avg_vruntime =
            self.avg_vruntime.wrapping_add(self.key(entry.vruntime).wrapping_mul(entry.weight));
        self.avg_load += entry.weight;
        self.timeline.insert(entry, requests);
    }

    /// An entity on the time line has another weight and deadline, and stays where it is.
    pub fn renew_waiting(&mut self, entry: TimelineEntry) {
        let more = entry.weight - self.timeline.renew(entry);
        self.avg_vruntime = self.avg_vruntime.wrapping_add(self.key(entry.vruntime).wrapping_mul(more));
        self.avg_load += more;
    }

    /// Takes an entity off the time line (`__dequeue_entity()`). Returns the largest request that it knew of in the tree, if one
    /// is kept.
    pub fn remove_waiting(&mut self, se: SeId) -> Option<u64> {
        let (entry, max_slice) = self.timeline.remove(se);
        self.avg_vruntime =
            self.avg_vruntime.wrapping_sub(self.key(entry.vruntime).wrapping_mul(entry.weight));
        self.avg_load -= entry.weight;
        max_slice
    }

    /// Distance from `min_vruntime`, virtual ns (`entity_key()`).
    pub fn key(&self, vruntime: Vruntime) -> i64 {
        vruntime.minus(self.min_vruntime)
    }

    /// Σ weight over the time line and `curr`, scaled down.
    pub fn average_load(&self, curr: Option<CurrEntity>) -> i64 {
        self.avg_load + curr.map_or(0, |curr| curr.weight)
    }

    fn weighted_keys(&self, curr: Option<CurrEntity>) -> i64 {
        let of_curr = curr.map_or(0, |curr| self.key(curr.vruntime).wrapping_mul(curr.weight));
        self.avg_vruntime.wrapping_add(of_curr)
    }

    /// The weighted average of the vruntimes on this queue, where lag is zero.
    ///
    /// Kernel: `avg_vruntime()`, kernel/sched/fair.c (af4cf40470c2; rounded down from 650cad561cce).
    pub fn average_vruntime(&self, curr: Option<CurrEntity>, rounding: AverageRounding) -> Vruntime {
        let (load, keys) = (self.average_load(curr), self.weighted_keys(curr));
        let offset = match (load, rounding) {
            (0, _) => 0,
            (_, AverageRounding::Down) => keys.div_euclid(load),
            (_, AverageRounding::TowardsZero) => keys / load,
        };
        self.min_vruntime.plus(offset)
    }

    /// Σ (vruntime − `min_vruntime`) · weight over the time line alone.
    pub fn waiting_keys(&self) -> i64 {
        self.avg_vruntime
    }

    /// Σ weight over the time line alone, scaled down.
    pub fn waiting_load(&self) -> i64 {
        self.avg_load
    }

    /// Whether an entity at `vruntime` has no negative lag: it is not past the average. Exact, without division.
    ///
    /// Kernel: `entity_eligible()`, kernel/sched/fair.c (147f3efaa241).
    pub fn is_eligible(&self, vruntime: Vruntime, curr: Option<CurrEntity>) -> bool {
        self.eligibility(curr).admits(vruntime)
    }

    /// The same for many that are asked for one after the other.
    #[inline(always)]
    pub fn eligibility(&self, curr: Option<CurrEntity>) -> Eligibility {
        let (keys, load) = (self.weighted_keys(curr), self.average_load(curr));
        Eligibility { zero: self.min_vruntime, keys, load }
    }

    /// Moves `min_vruntime` up to the least vruntime on the queue; never back.
    ///
    /// `curr` is the running entity's vruntime if it is still on the queue. Kernel: `update_min_vruntime()`,
    /// `avg_vruntime_update()`, kernel/sched/fair.c.
    #[inline]
    pub fn update_min_vruntime(&mut self, curr: Option<Vruntime>) {
        let minimum = self.minimum_with(curr);
        if minimum != self.min_vruntime {
            self.move_zero_to(minimum);
        }
    }

    /// Where `min_vruntime` would move.
    #[inline(always)]
    pub fn minimum_with(&self, curr: Option<Vruntime>) -> Vruntime {
        let waiting = self.timeline.least_vruntime();
        match (curr, waiting) {
            (Some(curr), Some(waiting)) => curr.earliest(waiting).latest(self.min_vruntime),
            (Some(one), None) | (None, Some(one)) => one.latest(self.min_vruntime),
            (None, None) => self.min_vruntime,
        }
    }

    /// Moves the zero of `avg_vruntime`; the averages stay where they are.
    pub fn move_zero_to(&mut self, zero: Vruntime) {
        self.avg_vruntime = self.avg_vruntime.wrapping_sub(self.avg_load.wrapping_mul(self.key(zero)));
        self.min_vruntime = zero;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BY_VRUNTIME: TimelineKind = TimelineKind { order: TimelineOrder::Vruntime, tree: None };

    fn waiting(se: u32, vruntime: i64, weight: i64) -> TimelineEntry {
        let vruntime = Vruntime::QUEUE_START.plus(vruntime);
        TimelineEntry::new(SeId(se), vruntime, vruntime.plus(3_000_000), weight)
    }

    #[test]
    fn equals_keep_their_order() {
        let mut queue = CfsRq::new(Cpu(0), BY_VRUNTIME);
        for (se, vruntime) in [(1, 5), (2, 3), (3, 5), (4, -2), (5, 3)] {
            queue.insert_waiting(waiting(se, vruntime, 1024), EntityRequests::default());
        }
        let order = queue.timeline.iter().map(|entry| entry.se.0).collect::<Vec<_>>();
        assert_eq!(order, [4, 2, 5, 1, 3]);
        queue.remove_waiting(SeId(5));
        assert_eq!(queue.timeline.after(SeId(2)).map(|entry| entry.se), Some(SeId(1)));
    }

    #[test]
    fn the_average_is_weighted_and_rounded_down() {
        let mut queue = CfsRq::new(Cpu(0), BY_VRUNTIME);
        let average = |queue: &CfsRq, curr| {
            queue.average_vruntime(curr, AverageRounding::Down).minus(Vruntime::QUEUE_START)
        };
        assert_eq!(average(&queue, None), 0);
        queue.insert_waiting(waiting(1, 0, 1024), EntityRequests::default());
        queue.insert_waiting(waiting(2, -1, 2048), EntityRequests::default());
        assert_eq!(average(&queue, None), -1, "-2/3 is rounded down");
        assert_eq!(queue.average_vruntime(None, AverageRounding::TowardsZero), Vruntime::QUEUE_START);
        let curr = CurrEntity { vruntime: Vruntime::QUEUE_START.plus(1000), weight: 1024 };
        assert_eq!(average(&queue, Some(curr)), 249, "(1000 - 2) / 4 = 249.5");
    }

    #[test]
    fn moving_the_minimum_leaves_the_average_where_it_is() {
        let mut queue = CfsRq::new(Cpu(0), BY_VRUNTIME);
        queue.insert_waiting(waiting(1, 700, 1024), EntityRequests::default());
        queue.insert_waiting(waiting(2, 900, 335), EntityRequests::default());
        let before = queue.average_vruntime(None, AverageRounding::Down);
        queue.update_min_vruntime(None);
        assert_eq!(queue.min_vruntime, Vruntime::QUEUE_START.plus(700));
        assert_eq!(queue.average_vruntime(None, AverageRounding::Down), before);
        let behind = Vruntime::QUEUE_START.plus(100);
        queue.update_min_vruntime(Some(behind));
        assert_eq!(queue.min_vruntime, Vruntime::QUEUE_START.plus(700), "never back");
    }

    #[test]
    fn eligible_means_not_past_the_average() {
        let mut queue = CfsRq::new(Cpu(0), BY_VRUNTIME);
        queue.insert_waiting(waiting(1, 0, 1024), EntityRequests::default());
        queue.insert_waiting(waiting(2, 10, 1024), EntityRequests::default());
        let at = |offset| Vruntime::QUEUE_START.plus(offset);
        assert!(queue.is_eligible(at(5), None) && queue.is_eligible(at(-1), None));
        assert!(!queue.is_eligible(at(6), None));
    }
}
