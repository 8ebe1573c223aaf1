//! A runqueue's clock.

use crate::rq::LockedRq;

impl LockedRq<'_> {
    /// Sets the queue's clock to now, unless it stands (`update_rq_clock()`).
    pub(crate) fn update_rq_clock(&mut self) {
        if self.rq.clock_stands {
            return;
        }
        let now = self.shared.trace.now;
        let delta = now.since(self.rq.clock).0;
        self.rq.clock = now;
        self.update_rq_clock_pelt(delta);
    }

    /// The queue's clock has just been set and a switch is to come, which needs no other one.
    ///
    /// Kernel: `rq_clock_skip_update()`, kernel/sched/sched.h.
    pub(crate) fn rq_clock_skip_update(&mut self) {
        self.rq.skips_clock_update = true;
    }
}
