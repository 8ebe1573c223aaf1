//! How long a CPU idles, and what searches cost it: averages by which searches are bounded (in `struct rq`).
//!
//! Must not know: who searches.

use fairlab_event::Ns;

use crate::fair::load_update::UPTIME;
use crate::select::rules::{IdleAverage, IdleEnds, ScanIdleTime, SelectRules};

/// A CPU's idle times and what its searches cost, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IdleTime {
    /// How long the CPU idles on average, at most twice what the dearest balancing took (`rq::avg_idle`).
    pub avg_idle: u64,
    /// What new-idle balancing took at most, slowly forgotten (`rq::max_idle_balance_cost`).
    pub max_idle_balance_cost: u64,
    /// Since when the CPU idles, or looks for work instead, on its clock (`rq::idle_stamp`); it may be before that began, and wraps.
    pub idle_stamp: Option<Ns>,
    /// What is left of the idle time that searches may use (`rq::wake_avg_idle`, v5.14 to v6.6).
    pub wake_avg_idle: u64,
    /// The jiffy up to which that is aged (`rq::wake_stamp`).
    pub wake_stamp: u64,
    /// What a search of the CPU's own cache domain takes on average (`sd->avg_scan_cost`).
    pub avg_scan_cost: u64,
    /// Whether the CPU is marked in its cache's mask of idle CPUs (`rq::last_idle_state`).
    pub marked_idle: bool,
}

impl IdleTime {
    /// As a CPU starts: the averages stand at their limit.
    pub fn new(migration_cost: u64) -> IdleTime {
        IdleTime {
            avg_idle: 2 * migration_cost,
            max_idle_balance_cost: migration_cost,
            wake_avg_idle: 2 * migration_cost,
            marked_idle: true,
            ..IdleTime::default()
        }
    }

    /// Takes the idle time that has ended at `clock` as a sample. Returns whether there was one.
    ///
    /// Kernel: `ttwu_do_wakeup()`, `update_rq_avg_idle()`, kernel/sched/core.c.
    pub(crate) fn sample(&mut self, rules: &SelectRules, clock: Ns, jiffy: u64) -> bool {
        let idle = match (self.idle_stamp.take(), rules.idle_ends) {
            (Some(stamp), _) => clock.0.wrapping_sub(stamp.0),
            (None, IdleEnds::AtSwitchStampedOrNot) => UPTIME + clock.0,
            (None, IdleEnds::AtWakeup | IdleEnds::AtSwitch) => return false,
        };
        self.avg_idle = follow(self.avg_idle, idle, rules.idle_average).min(2 * self.max_idle_balance_cost);
        if rules.scan_idle_time == ScanIdleTime::SinceWakeup {
            (self.wake_stamp, self.wake_avg_idle) = (jiffy, self.avg_idle / 2);
        }
        true
    }

    /// What is left at `jiffy` of the idle time that searches may use.
    pub fn wake_avg_idle_at(&self, jiffy: u64) -> u64 {
        let halvings = jiffy.saturating_sub(self.wake_stamp);
        self.wake_avg_idle.checked_shr(u32::try_from(halvings).unwrap_or(u32::MAX)).unwrap_or(0)
    }
}

/// An average of eight, after another sample (`update_avg()`).
pub(crate) fn follow(average: u64, sample: u64, rounding: IdleAverage) -> u64 {
    let difference = sample.wrapping_sub(average) as i64;
    let eighth = match rounding {
        IdleAverage::RoundedDown => difference >> 3,
        IdleAverage::TowardsZero => difference / 8,
    };
    average.wrapping_add_signed(eighth)
}
