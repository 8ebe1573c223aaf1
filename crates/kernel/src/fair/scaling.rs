//! What another weight makes of an entity's place, lag, deadline and protection.
//!
//! Must not know: why the weight changes, and who is charged for it.

use crate::all_cpus::Shared;
use crate::entity::{CfsRqId, SeId};
use crate::fair::rules::{Reweight, ReweightProtection, SliceProtection};
use crate::group::ReweightLag;
use crate::vruntime::Vruntime;
use crate::weight::LoadWeight;

/// Old weight over new weight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WeightRatio {
    pub(crate) old: LoadWeight,
    pub(crate) new: LoadWeight,
}

impl WeightRatio {
    /// `distance · old / new`, truncated towards zero, as `div_s64()` of the scaled-up weights.
    pub(crate) fn scale(self, distance: i64) -> i64 {
        let (old, new) = (self.old.raw() as i64, self.new.raw().max(1) as i64);
        match distance.checked_mul(old) {
            Some(product) => product / new,
            None => (i128::from(distance) * i128::from(old) / i128::from(new)) as i64,
        }
    }
}

impl Shared {
    /// Where nothing competes by it: only loads change.
    pub(crate) fn change_load_alone(&mut self, cfs_rq: CfsRqId, se: SeId, load: LoadWeight) {
        let (queued, old) = (self.se(se).on_rq, self.se(se).load);
        if old.raw() == load.raw() {
            return;
        }
        if queued {
            self.cfs_mut(cfs_rq).load.subtract(old);
        }
        self.set_entity_weight(se, load);
        if queued {
            self.cfs_mut(cfs_rq).load.add(load);
        }
    }

    /// Gives a task another weight on the one time line of its CPU, or off it.
    ///
    /// Kernel: `reweight_eevdf()`, kernel/sched/fair.c (85570f10a4c6).
    pub(crate) fn reweigh_on_line(&mut self, se: SeId, load: LoadWeight, queued: bool) {
        let ratio = WeightRatio { old: self.se(se).line_load, new: load };
        let is_scaled = std::mem::take(&mut self.se_mut(se).scaled_before);
        if ratio.old.raw() == load.raw() {
            return;
        }
        if !queued {
            if !is_scaled {
                self.scale_off_queue(se, ratio);
            }
            self.se_mut(se).line_load = load;
            return;
        }
        let line = self.line_of(self.se(se).cfs_rq);
        let is_curr = self.cfs(line).curr == Some(se);
        let average = self.average_vruntime(line);
        let protected = self.protection_left(se, is_curr, average);
        let limit = self.lag_limit_of_reweight(se);
        if !is_curr {
            self.remove_waiting(line, se);
        }
        self.scale_on_queue(se, ratio, (average, average), limit);
        self.se_mut(se).line_load = load;
        self.protect_after_reweight(se, ratio, protected);
        if !is_curr {
            self.insert_waiting(line, se);
        }
    }

    /// The lag of a task that is given another weight on its CPU's one time line before it is placed there.
    pub(crate) fn lag_reweighed_on_line(&self, se: SeId, load: LoadWeight) -> i64 {
        let entity = self.se(se);
        match entity.line_load.raw() == load.raw() {
            true => entity.vlag,
            false => WeightRatio { old: entity.line_load, new: load }.scale(entity.vlag),
        }
    }

    /// `PlaceAnew`: lag and relative deadline are noted as if the entity left.
    pub(crate) fn leave_for_reweight(&mut self, se: SeId) {
        let cfs_rq = self.se(se).cfs_rq;
        self.update_entity_lag(cfs_rq, se);
        let entity = self.se_mut(se);
        entity.relative_deadline = Some(entity.deadline.minus(entity.vruntime));
        self.cfs_mut(cfs_rq).nr_running -= 1;
    }

    /// How far from where a running entity's protection ends: from the average, around which it scales, or from the entity itself
    /// that is placed again. `None` where there is none to scale.
    pub(crate) fn protection_left(
        &self,
        se: SeId,
        is_curr: bool,
        average: Vruntime,
    ) -> Option<(Option<Vruntime>, i64)> {
        let rules = &self.generation.fair;
        let ends_at_place = rules.slice_protection == SliceProtection::UntilShortestRequest;
        let scales = rules.reweight_protection == ReweightProtection::Scales;
        if !(ends_at_place && scales && is_curr && self.protects_slice(se)) {
            return None;
        }
        let pivot = (rules.reweight != Reweight::PlaceAnew).then_some(average);
        let entity = self.se(se);
        Some((pivot, entity.protected_until.minus(pivot.unwrap_or(entity.vruntime))))
    }

    pub(crate) fn protect_after_reweight(
        &mut self,
        se: SeId,
        ratio: WeightRatio,
        left: Option<(Option<Vruntime>, i64)>,
    ) {
        let entity = self.se_mut(se);
        if let Some((pivot, left)) = left {
            entity.protected_until = pivot.unwrap_or(entity.vruntime).plus(ratio.scale(left));
        }
    }

    /// How much lag an entity keeps through a change of its weight, virtual ns; asked for while it stands on its queue.
    pub(crate) fn lag_limit_of_reweight(&self, se: SeId) -> i64 {
        match self.generation.groups.reweight_lag {
            ReweightLag::All => i64::MAX,
            ReweightLag::Limited => self.lag_limit(self.line_of(self.se(se).cfs_rq), se),
        }
    }

    pub(crate) fn scale_on_queue(
        &mut self,
        se: SeId,
        ratio: WeightRatio,
        (average, others): (Vruntime, Vruntime),
        limit: i64,
    ) {
        let rule = self.generation.fair.reweight;
        let entity = self.se_mut(se);
        match rule {
            Reweight::KeepVruntime | Reweight::ScaleLagOffQueue => {}
            Reweight::ScaleDeadline | Reweight::ScaleDeadlineAlways => {
                let left = entity.deadline.minus(entity.vruntime);
                entity.deadline = entity.vruntime.plus(ratio.scale(left));
            }
            Reweight::ScaleAroundOthers => {
                let left = entity.deadline.minus(others);
                if others != entity.vruntime {
                    entity.vruntime = others.plus(-ratio.scale(others.minus(entity.vruntime)));
                }
                entity.deadline = others.plus(ratio.scale(left));
            }
            Reweight::ScaleAroundAverage | Reweight::ScaleAllAroundAverage => {
                let left = entity.deadline.minus(average);
                if average != entity.vruntime {
                    let lag = average.minus(entity.vruntime).clamp(-limit, limit);
                    entity.vruntime = average.plus(-ratio.scale(lag));
                }
                entity.deadline = average.plus(ratio.scale(left));
            }
            Reweight::PlaceAnew => {
                entity.relative_deadline = entity.relative_deadline.map(|left| ratio.scale(left));
                self.note_lag(se, ratio.scale(self.se(se).vlag));
            }
        }
    }

    pub(crate) fn scale_off_queue(&mut self, se: SeId, ratio: WeightRatio) {
        let rule = self.generation.fair.reweight;
        if rule == Reweight::KeepVruntime {
            return;
        }
        self.note_lag(se, ratio.scale(self.se(se).vlag));
        let entity = self.se_mut(se);
        if matches!(rule, Reweight::PlaceAnew | Reweight::ScaleAllAroundAverage) {
            entity.relative_deadline = entity.relative_deadline.map(|left| ratio.scale(left));
        }
        if rule == Reweight::ScaleDeadlineAlways {
            let left = entity.deadline.minus(entity.vruntime);
            entity.deadline = entity.vruntime.plus(ratio.scale(left));
        }
    }
}
