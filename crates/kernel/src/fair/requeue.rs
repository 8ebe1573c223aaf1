//! A sleeper that stayed on its queue wakes up there.
//!
//! Must not know: who wakes it.

use crate::entity::{CfsRqId, SeId};
use crate::fair::load_update::LoadUpdate;
use crate::fair::rules::{DelayedLag, RequeueCharge};
use crate::generation::Feature;
use crate::rq::{EnqueueFlags, LockedRq};

impl LockedRq<'_> {
    /// A delayed entity wakes up where it is. If it is owed time it is placed again without that credit; from v7.1 it is
    /// placed again whenever its lag is not what its vruntime says (c5cd6fd75b6a; at 059258b0d424 by the opposite test).
    ///
    /// Kernel: `requeue_delayed_entity()`, kernel/sched/fair.c. To v7.1 it runs *without* charging the running entity
    /// (333238da9a19). From v7.3 the root queue is handed to it and aged, whatever group the task is in (85570f10a4c6).
    pub(crate) fn requeue_delayed_entity(&mut self, se: SeId) {
        self.shared.probe_requeue(se);
        let cfs_rq = self.shared.line_of(self.se(se).cfs_rq);
        let first = self.shared.generation.fair.requeue_charge == RequeueCharge::First;
        if first || self.shared.competes_on_one_queue() {
            self.charge_line(cfs_rq);
        }
        let anew = match self.shared.generation.fair.delayed_lag {
            DelayedLag::NeverWorse => {
                self.shared.update_entity_lag(cfs_rq, se);
                self.shared.average(cfs_rq).minus(self.se(se).vruntime) != self.se(se).vlag
            }
            DelayedLag::NeverWorseUnlessAwake => {
                let noted = self.se(se).vlag;
                self.shared.update_entity_lag(cfs_rq, se);
                self.se(se).vlag == noted
            }
            DelayedLag::OfThen if self.has(Feature::DelayZero) => {
                self.shared.update_entity_lag(cfs_rq, se);
                let owed = self.se(se).vlag > 0;
                if owed {
                    self.shared.note_lag(se, 0);
                }
                owed
            }
            DelayedLag::OfThen => false,
        };
        if anew {
            self.place_anew(cfs_rq, se);
        }
        match self.shared.competes_on_one_queue() {
            true => self.age_by_line(cfs_rq, se),
            false => self.update_load_avg(se, LoadUpdate::AGE),
        }
        self.clear_delayed(se);
        if let Some(task) = self.se(se).task {
            self.shared.util_est_enqueue(task);
        }
    }

    pub(crate) fn place_anew(&mut self, cfs_rq: CfsRqId, se: SeId) {
        let is_curr = self.cfs(cfs_rq).curr == Some(se);
        self.cfs_mut(cfs_rq).nr_running -= 1;
        if !is_curr {
            self.shared.remove_waiting(cfs_rq, se);
        }
        self.place_entity(cfs_rq, se, EnqueueFlags::default());
        if !is_curr {
            self.shared.insert_waiting(cfs_rq, se);
        }
        self.cfs_mut(cfs_rq).nr_running += 1;
    }
}

#[cfg(test)]
mod tests {
    use crate::core::{WakeFlags, WakeStart};
    use crate::testbed::{MS, SchedulerTestbed};

    /// How far one that ran ahead and slept on its queue stands from the average once it is awake, virtual us; meanwhile another
    /// has run for 20 ms without being charged.
    fn behind_once_awake(kernel: &str) -> i64 {
        let mut bed = SchedulerTestbed::new(kernel, 8, 1);
        let (sleeper, _) = (bed.spawn(0, 0), bed.spawn(0, 0));
        bed.pass(2 * MS);
        bed.sleep(0);
        assert!(bed.scheduler.task(sleeper).is_delayed(), "{kernel}: it has no lag left");
        bed.pass(20 * MS);
        bed.at(0);
        assert_eq!(bed.scheduler.ttwu_begin(sleeper, WakeFlags::default()), WakeStart::StillQueued);
        bed.scheduler.account(fairlab_event::Cpu(0));
        bed.average(0).minus(bed.entity(sleeper).vruntime) / 1000
    }

    /// Uncharged, who runs holds the average where it was, and the sleeper keeps its place: what it is owed by now is its credit.
    #[test]
    fn what_runs_is_charged_before_a_sleeper_wakes_on_its_queue_from_v7_2_on() {
        assert_eq!(
            ["v7.1", "v7.2", "v7.3"].map(|kernel| behind_once_awake(kernel) > 1000),
            [true, false, false]
        );
    }
}
