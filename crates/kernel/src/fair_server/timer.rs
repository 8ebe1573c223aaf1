//! The timer of a fair server: it will expire on the CPU that starts it.
//!
//! Must not know: what happens then.

use fairlab_event::Cpu;

use crate::rq::LockedRq;

impl LockedRq<'_> {
    /// Starts it, unless it runs already. Returns whether its time is still to come.
    ///
    /// Kernel: `start_dl_timer()`.
    pub(super) fn start_server_timer(&mut self) -> bool {
        let (now, clock, server) = (self.shared.trace.now.0, self.rq.clock.0, self.rq.fair_server);
        let due = match server.armed {
            true => server.deadline.wrapping_sub(server.runtime as u64),
            false => server.deadline,
        };
        let expires = due.wrapping_add(now - clock);
        // In whole us: what is due by less is still to come.
        if (expires.wrapping_sub(now) as i64) / 1000 < 0 {
            return false;
        }
        let of = self.rq.cpu.index();
        if self.shared.fair_servers.timers[of].is_none() {
            let here = self.shared.trace.here;
            self.set_server_timer(Some((here, expires.max(now))));
        }
        true
    }

    pub(super) fn cancel_server_timer(&mut self) {
        self.set_server_timer(None);
    }

    pub(super) fn set_server_timer(&mut self, timer: Option<(Cpu, u64)>) {
        let of = self.rq.cpu.index();
        let before = std::mem::replace(&mut self.shared.fair_servers.timers[of], timer);
        let moved = before.iter().chain(&timer).map(|&(cpu, _)| cpu);
        self.shared.hrticks_moved.extend(moved);
    }
}
