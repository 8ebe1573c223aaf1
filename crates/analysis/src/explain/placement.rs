//! Where entities stood on the line of virtual time, by `sched_place` and the vruntime of `sched_stat_runtime`.
//!
//! A task in nested groups is placed level by level, its own entity first, then its group's, up to the root. Numbers of
//! different levels, or of different groups, belong to different queues and cannot be compared.
//!
//! Must not know: how stories are told.

use std::sync::Arc;

use fairlab_event::{Cpu, Event, EventKind, GenericValue, Ns, Place, TextFields};

/// One placement, level by level: the task's own entity first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedPlacement {
    /// When the task's own entity was placed.
    pub time: Ns,
    /// Its CPU.
    pub cpu: Cpu,
    /// The task's own entity, then those of the groups above it that were placed with it. A group that has another task
    /// queued on that CPU is queued already and is not placed again.
    pub levels: Vec<Place>,
    /// How groups were reweighted between the placements of its levels and after them, where a patched kernel tells.
    pub reweights: Vec<Reweight>,
}

/// `sched_reweight`: a group entity's weight changes. Not a mainline tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reweight {
    /// When.
    pub time: Ns,
    /// How deep below the root, which is 0.
    pub depth: u32,
    /// The weight before and after.
    pub weight: (u64, u64),
    /// The deadline before and after.
    pub deadline: (u64, u64),
}

impl Reweight {
    /// Reads the event's fields: `depth=0 weight=2->353 sed=1881511385->1881511385`.
    pub(super) fn parse(fields: TextFields<'_>, time: Ns) -> Option<Reweight> {
        let pair = |name: &str| match fields.get(name)? {
            GenericValue::Text(text) => {
                let (before, after) = text.split_once("->")?;
                Some((before.parse().ok()?, after.parse().ok()?))
            }
            GenericValue::Unsigned(_) | GenericValue::Signed(_) => None,
        };
        let depth = fields.unsigned("depth").and_then(|depth| u32::try_from(depth).ok())?;
        Some(Reweight { time, depth, weight: pair("weight")?, deadline: pair("sed")? })
    }
}

impl ExplainedPlacement {
    /// The task's own entity.
    pub fn own(&self) -> Option<&Place> {
        self.levels.first()
    }

    /// How many group entities were placed with it.
    pub fn groups(&self) -> usize {
        self.levels.len().saturating_sub(1)
    }
}

/// How far an entity's vruntime lies behind another number of its time line: negative when it lies before it.
pub const fn virtual_distance(from: u64, to: u64) -> i64 {
    to.wrapping_sub(from) as i64
}

/// How far ahead its deadline lies when it is placed; none where the kernel has no deadlines.
pub const fn deadline_ahead(place: &Place) -> Option<u64> {
    let ahead = virtual_distance(place.sev, place.sed);
    if ahead > 0 { Some(ahead as u64) } else { None }
}

/// The weight of a group entity, from its slice in virtual time and that of a task of nice 0 (weight 1024) placed with it.
pub fn group_weight(group: &Place, task_of_nice_0: &Place) -> Option<u64> {
    let slice = u128::from(deadline_ahead(task_of_nice_0)?);
    let stretched = u128::from(deadline_ahead(group)?);
    u64::try_from((slice * 1024 + stretched / 2) / stretched).ok()
}

/// What is known of one task's place in virtual time.
#[derive(Clone, Debug, Default)]
pub(super) struct VirtualState {
    /// Its latest placement.
    pub(super) placement: Option<Arc<ExplainedPlacement>>,
    /// The placement with the most levels so far: how deep it sits.
    pub(super) deepest: Option<Arc<ExplainedPlacement>>,
    /// Its vruntime and when it was accounted; a task that moves to another queue is given another one.
    pub(super) vruntime: Option<(Ns, u64)>,
}

/// How many levels are kept; deeper hierarchies are garbage.
const LEVELS_MAX: usize = 32;

impl VirtualState {
    /// The task's own entity is placed.
    pub(super) fn place(&mut self, place: Place, time: Ns) {
        self.placement = Some(Arc::new(ExplainedPlacement {
            time,
            cpu: place.cpu,
            levels: vec![place],
            reweights: Vec::new(),
        }));
        self.vruntime = Some((time, place.sev));
    }

    /// A group above it is placed with it.
    pub(super) fn place_group(&mut self, place: Place) {
        let Some(placement) = &mut self.placement else { return };
        let placement = Arc::make_mut(placement);
        if placement.levels.len() < LEVELS_MAX && placement.cpu == place.cpu {
            placement.levels.push(place);
        }
    }

    /// A group is reweighted meanwhile.
    pub(super) fn reweight(&mut self, reweight: Reweight) {
        let Some(placement) = &mut self.placement else { return };
        let placement = Arc::make_mut(placement);
        if placement.reweights.len() < LEVELS_MAX {
            placement.reweights.push(reweight);
        }
    }

    /// All levels are placed.
    pub(super) fn placed(&mut self) {
        let Some(placement) = &self.placement else { return };
        let depth = |placement: &Arc<ExplainedPlacement>| placement.levels.len();
        if self.deepest.as_ref().is_none_or(|deepest| depth(deepest) <= depth(placement)) {
            self.deepest = Some(Arc::clone(placement));
        }
    }
}

/// Whether an event may stand between the levels of one placement.
pub(super) const fn goes_on_placing(event: &Event<'_>) -> bool {
    matches!(event.kind, EventKind::SchedPlace(_) | EventKind::Other { .. } | EventKind::Kprobe { .. })
}
