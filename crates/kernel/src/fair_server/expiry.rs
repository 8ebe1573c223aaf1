//! What happens when a fair server's timer expires, and which timers a CPU has.

use fairlab_event::{Cpu, Ns};

use crate::fair_server::rules::IdleCharge;
use crate::fair_server::state::before;
use crate::rq::LockedRq;
use crate::scheduler::Scheduler;

/// The timer is not moved by less than this, ns (`dl_server_min_res`).
const LEAST_MOVE: u64 = 1_000_000;

impl LockedRq<'_> {
    /// Charges the running task, whatever its class (`sched_class::update_curr()`).
    fn charge_whoever_runs(&mut self) {
        if self.shared.runs_idle_task(self.rq.cpu) {
            self.update_curr_idle();
        } else {
            self.update_curr_of();
        }
    }

    /// The timer has expired, at this time by the driver's clock.
    ///
    /// Kernel: `dl_server_timer()`.
    fn server_timer_expires(&mut self, expired: u64) {
        if !self.rq.fair_server.throttled || self.shared.fair_servers.runtime == 0 {
            return;
        }
        self.update_rq_clock();
        if self.shared.generation.server.idle_time == IdleCharge::AsRun {
            self.charge_whoever_runs();
        }
        let server = self.rq.fair_server;
        if server.idles {
            return self.dl_server_stop();
        }
        if server.armed {
            let (now, latest) = (self.rq.clock.0, server.deadline.wrapping_sub(server.runtime as u64));
            if before(now, latest.wrapping_sub(LEAST_MOVE)) {
                if self.shared.fair_servers.timers[self.rq.cpu.index()].is_none() {
                    let here = self.shared.trace.here;
                    self.set_server_timer(Some((here, expired + (latest - now))));
                }
                return;
            }
            self.rq.fair_server.running = true;
        }
        self.replenish_server();
        self.resched_for_server("dl_server_timer");
    }
}

impl Scheduler {
    /// When the next of the timers expires that this CPU has started itself: the end of its running slice, or a fair server's.
    pub fn clock_event_expires(&self, cpu: Cpu) -> Option<Ns> {
        let servers = self.shared.fair_servers.timers.iter().flatten();
        let servers = servers.filter(|(on, _)| *on == cpu).map(|&(_, expires)| Ns(expires));
        servers.chain(self.hrtick_expires(cpu)).min()
    }

    /// Whether an idle CPU has something to do when the next of them expires: it has no slice, so that is a server's.
    pub fn clock_event_wakes(&self, cpu: Cpu) -> bool {
        self.shared.fair_servers.timers.iter().flatten().any(|&(on, _)| on == cpu)
    }

    /// Those that are due expire.
    ///
    /// Kernel: `hrtimer_interrupt()`.
    pub fn clock_event(&mut self, cpu: Cpu) {
        let now = self.shared.trace.now;
        if self.hrtick_expires(cpu).is_some_and(|expires| expires <= now) {
            self.hrtick(cpu);
        }
        self.server_timers_expire(cpu);
        if self.clock_event_expires(cpu).is_some() {
            self.shared.hrticks_moved.push(cpu);
        }
    }

    pub(crate) fn server_timers_expire(&mut self, cpu: Cpu) {
        let now = self.shared.trace.now.0;
        for of in 0..self.shared.fair_servers.timers.len() {
            let timer = self.shared.fair_servers.timers[of];
            if let Some((_, expires)) = timer.filter(|&(on, expires)| on == cpu && expires <= now) {
                self.shared.fair_servers.timers[of] = None;
                self.rq_lock(Cpu(of as u32)).server_timer_expires(expires);
            }
        }
    }
}
