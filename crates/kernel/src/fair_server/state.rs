//! What there is of fair servers, and when their periods begin.
//!
//! Must not know: runqueues, the scheduler, timers.

use fairlab_event::Cpu;

use crate::fair_server::rules::ServerStart;

/// Its period (`dl_period`, and `dl_deadline`).
pub(super) const PERIOD: u64 = 1_000_000_000;

/// The unit in which bandwidths are compared (`DL_SCALE`).
const DL_SCALE: u32 = 10;

/// The unit in which a density is held (`BW_SHIFT`).
const BW_SHIFT: u32 = 20;

/// The server of one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FairServer {
    /// It has something to watch over (`dl_server_active`).
    pub active: bool,
    /// It is queued, and goes before real-time tasks (`on_dl_rq()`).
    pub queued: bool,
    /// It may not be queued yet (`dl_throttled`).
    pub(super) throttled: bool,
    /// Its timer runs to the latest time at which it can still get its runtime (`dl_defer_armed`).
    pub(super) armed: bool,
    /// That time came: tasks starve (`dl_defer_running`).
    pub(super) running: bool,
    /// The CPU has idled through its runtime (`dl_defer_idle`).
    pub(super) idles: bool,
    /// What is left of this period's, ns.
    pub(super) runtime: i64,
    pub(super) deadline: u64,
}

/// What all servers share.
#[derive(Clone, Debug, Default)]
pub(crate) struct FairServers {
    /// What each has in a period, ns (`dl_runtime`); 0: there is none.
    pub(super) runtime: u64,
    /// A real-time task has been queued somewhere.
    pub(super) watch: bool,
    /// Of each CPU's server where its timer runs and when it expires, by the driver's clock.
    pub(super) timers: Vec<Option<(Cpu, u64)>>,
}

impl FairServers {
    /// Servers of so many CPUs with this runtime, ns.
    pub fn new(nr_cpus: usize, runtime: u64) -> FairServers {
        FairServers { runtime, watch: false, timers: vec![None; nr_cpus] }
    }

    /// Whether anything is kept of them.
    #[inline]
    pub fn watch(&self) -> bool {
        self.watch
    }
}

/// Whether a time is before another (`dl_time_before()`).
pub(super) const fn before(time: u64, other: u64) -> bool {
    (time.wrapping_sub(other) as i64) < 0
}

impl FairServer {
    /// Kernel: `replenish_dl_new_period()`.
    pub(super) fn begin_period(&mut self, now: u64, runtime: u64) {
        self.deadline = now + PERIOD;
        self.runtime = runtime as i64;
        if !self.running {
            (self.throttled, self.armed) = (true, true);
        }
    }

    /// Whether what is left is more than its share of the time to the deadline.
    ///
    /// Kernel: `dl_entity_overflow()`.
    pub(super) fn overflows(&self, now: u64, runtime: u64) -> bool {
        let left = (PERIOD >> DL_SCALE).wrapping_mul((self.runtime >> DL_SCALE) as u64);
        let right = (self.deadline.wrapping_sub(now) >> DL_SCALE).wrapping_mul(runtime >> DL_SCALE);
        before(right, left)
    }

    /// It is activated: goes on with its period or begins another.
    ///
    /// Kernel: `update_dl_entity()`. Variants: `AsItRan` to v6.18, `Deferred` from v6.19 (115135422562).
    pub(super) fn wake(&mut self, now: u64, runtime: u64, rule: ServerStart) {
        let late = before(self.deadline, now);
        if late || self.overflows(now, runtime) {
            if rule == ServerStart::AsItRan {
                return self.begin_period(now, runtime);
            }
            if self.running && !late {
                let density = (runtime << BW_SHIFT) / PERIOD;
                self.runtime = ((density * (self.deadline - now)) >> BW_SHIFT) as i64;
                return;
            }
            self.running = false;
            self.begin_period(now, runtime);
        } else if !self.running {
            (self.throttled, self.armed) = (true, true);
        }
    }
}
