//! What a snapshot of averages does not show of their sums: sums grow until a period ends, and only then is the average
//! computed.
//!
//! A walk that begins before the snapshot notes the sums of that time, and how much they have gained since.
//!
//! Must not know: traces.

use fairlab_event::{Cpu, Ns};

use super::QueueId;
use super::averages::PERIOD;
use crate::pelt::SchedAvg;
use crate::scheduler::Scheduler;

/// The averages of each queue, and of the entity above it, as they were when the snapshot was read.
#[derive(Clone, Debug, Default)]
pub struct SnapshotAverages {
    queues: Vec<[NotedAverages; 2]>,
}

/// One set of averages when it was last recomputed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NotedAverages {
    /// Up to when its sums had come when it was noted, ns of load tracking; 0: it was not.
    pub until: u64,
    made: SchedAvg,
}

impl NotedAverages {
    /// Takes the next state of the averages.
    fn follow(&mut self, avg: &SchedAvg) {
        let averages = |avg: &SchedAvg| [avg.load_avg, avg.runnable_avg, avg.util_avg];
        if avg.last_update_time / PERIOD != self.until / PERIOD || averages(avg) != averages(&self.made) {
            self.made = *avg;
        }
        self.until = avg.last_update_time;
    }

    /// Load, runnability and utilization, each with what its sum was then.
    pub fn averages_and_sums(&self) -> [(u64, u64); 3] {
        let made = &self.made;
        [
            (made.load_avg, made.load_sum),
            (made.runnable_avg, made.runnable_sum),
            (made.util_avg, made.util_sum.into()),
        ]
    }

    /// What divided the sums.
    pub fn divider(&self) -> u64 {
        self.made.divider().into()
    }
}

impl SnapshotAverages {
    /// The averages of a queue, and of the entity above it.
    pub(super) fn of(&self, queue: QueueId) -> [NotedAverages; 2] {
        self.queues.get(queue.index()).copied().unwrap_or_default()
    }
}

impl Scheduler {
    /// Notes the averages of a CPU's queues, of those that were last brought up to date at `until` of its runqueue's clock or
    /// before that. To be called after each step.
    pub fn note_averages(&self, noted: &mut SnapshotAverages, cpu: Cpu, until: Ns) {
        let until = self.shared.pelt_epoch.wrapping_add(until.0);
        noted.queues.resize(self.shared.cfs_rqs.len(), [NotedAverages::default(); 2]);
        for (queue, [below, above]) in self.shared.cfs_rqs.iter().zip(&mut noted.queues) {
            if queue.cpu != cpu || queue.tracked.avg.last_update_time > until {
                continue;
            }
            below.follow(&queue.tracked.avg);
            if let Some(entity) = queue.entity {
                above.follow(&self.se(entity).avg);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open_loop::RecordedAverages;
    use crate::testbed::{MS, SchedulerTestbed};

    /// A task has run for some ms and sleeps; it runs for a part of a period, when the snapshot is taken, and later again.
    /// `step`: what is done after each step until then.
    fn walk(before: u64, mut step: impl FnMut(&SchedulerTestbed)) -> SchedulerTestbed {
        let mut bed = SchedulerTestbed::new("v6.12", 1, 1);
        let task = bed.spawn(0, 0);
        bed.run(0, before);
        bed.sleep(0);
        bed.schedule(0);
        bed.pass((50 - before) * MS);
        // On to the beginning of a period.
        bed.pass(PERIOD - (bed.scheduler.shared.pelt_epoch + bed.now.0) % PERIOD);
        for is_snapshot in [true, false] {
            bed.wake(task, 0);
            bed.schedule(0);
            if is_snapshot {
                step(&bed);
            }
            bed.pass(600_000);
            bed.sleep(0);
            bed.schedule(0);
            if is_snapshot {
                step(&bed);
            }
            bed.pass(4 * MS);
            bed.scheduler.update_blocked_averages(Cpu(0));
        }
        bed
    }

    /// Two walks do the same, but one began with other averages: once it is told what a snapshot of the other shows, it goes on
    /// as that does, with what the sums had gained by then and with what has been since.
    #[test]
    fn averages_go_on_from_what_a_snapshot_does_not_show() {
        let mut shown = RecordedAverages::default();
        let mut hidden = 0;
        let kernel = walk(12, |bed| {
            let avg = bed.scheduler.cfs(bed.scheduler.rqs[0].cfs).tracked.avg;
            hidden = avg.load_sum / u64::from(avg.divider()) - avg.load_avg;
            (shown.load, shown.runnable, shown.util) = (avg.load_avg, avg.runnable_avg, avg.util_avg);
        });
        assert!(hidden >= 5, "{hidden}");
        let mut noted = SnapshotAverages::default();
        let mut model = walk(2, |bed| {
            let clock = bed.scheduler.rq_clock(Cpu(0));
            bed.scheduler.note_averages(&mut noted, Cpu(0), clock);
        });
        let queue = QueueId(model.scheduler.rqs[0].cfs);
        let [was, is] = [&model, &kernel].map(|bed| bed.scheduler.root_averages(Cpu(0)));
        assert!(is[0] > was[0] + 20 && is[2] > was[2] + 20, "{was:?} {is:?}");
        let clock = model.scheduler.rq_clock(Cpu(0));
        model.scheduler.lay_queue_averages(queue, shown, clock, &noted);
        let brought = model.scheduler.root_averages(Cpu(0));
        assert!(brought.iter().zip(is).all(|(one, other)| one.abs_diff(other) <= 1), "{brought:?} {is:?}");
    }
}
