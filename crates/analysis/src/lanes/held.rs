//! When each task was throttled: the parts of its waits in which its group had used up its quota.
//!
//! Must not know: which groups there are, how their throttling is found out.

use fairlab_event::Ns;

/// Spans of all tasks up to now.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldSpans {
    tasks: Vec<HeldTask>,
    /// What came before does not count.
    start: Ns,
}

/// Spans of one task.
#[derive(Clone, Debug, Default)]
struct HeldTask {
    /// How much of its throttled time is in its spans, or came before the start.
    told: Ns,
    spans: Vec<(Ns, Ns)>,
}

impl HeldSpans {
    /// Everything counts from now on.
    pub(super) fn begin_at(&mut self, now: Ns) {
        self.start = now;
        self.tasks.iter_mut().for_each(|task| task.spans.clear());
    }

    /// A task is throttled no longer, or waits elsewhere. It was for `so_far` in all waits; what is new of that ended at `to`.
    pub(super) fn up_to(&mut self, task: u32, so_far: Ns, to: Ns) {
        let place = task as usize;
        if self.tasks.len() <= place {
            if so_far == Ns::ZERO {
                return;
            }
            self.tasks.resize(place + 1, HeldTask::default());
        }
        let start = self.start;
        let task = &mut self.tasks[place];
        let new = so_far.since(std::mem::replace(&mut task.told, so_far));
        let from = Ns(to.0.saturating_sub(new.0)).max(start);
        match task.spans.last_mut() {
            Some((_, end)) if *end >= from => *end = to.max(*end),
            _ if from < to => task.spans.push((from, to)),
            _ => {}
        }
    }

    /// The spans of a task, in order.
    pub(super) fn take(&mut self, task: u32) -> Vec<(Ns, Ns)> {
        self.tasks.get_mut(task as usize).map(|task| std::mem::take(&mut task.spans)).unwrap_or_default()
    }
}
