//! Which interrupts of a CPU's timer are ticks, where the trace names no timers: the tick comes at the same point of its
//! period each time.
//!
//! Must not know: what a tick decides.

use std::collections::BTreeMap;

use fairlab_event::{Cpu, Ns};

use super::super::record::{Record, What};
use super::Walker;

/// How exactly the tick keeps its point, ns.
const KEPT_WITHIN: u64 = 100_000;

impl Walker {
    /// Finds when in its period each CPU's tick comes: where most interrupts of its timer do.
    pub(super) fn find_tick_phases(&mut self) {
        let names_timers = |record: &Record| matches!(record.what, What::Timer { .. } | What::Hrtick);
        if !self.sched.has_slice_timer() || self.window.all().any(names_timers) {
            return;
        }
        let mut times = BTreeMap::<Cpu, Vec<u64>>::new();
        for record in self.window.all().filter(|record| matches!(record.what, What::TimerInterrupt)) {
            times.entry(record.cpu).or_default().push(record.time.0);
        }
        let period = self.tick;
        for (cpu, times) in times {
            if let Some(info) = self.cpus.get_mut(cpu.index()) {
                info.tick_phase = phase(&times, period);
            }
        }
    }

    /// A CPU's timer has expired: another one than the tick's is that which ends slices, as far as what is accounted in it
    /// goes.
    pub(super) fn on_timer_interrupt(&mut self, record: &Record) {
        let period = self.tick;
        let Some(info) = self.cpus.get_mut(record.cpu.index()) else { return };
        if let Some(phase) = info.tick_phase {
            info.in_hrtick = distance(record.time.0 % period.0, phase, period) > KEPT_WITHIN;
        }
        if !self.cpus[record.cpu.index()].in_hrtick {
            self.balance_at_tick(record);
        }
    }
}

/// The point of the period at which most of these moments lie.
fn phase(times: &[u64], period: Ns) -> Option<u64> {
    let near = |point: u64| {
        times.iter().filter(|&&time| distance(time % period.0, point, period) <= KEPT_WITHIN).count()
    };
    let points = times.iter().map(|time| time % period.0 / KEPT_WITHIN * KEPT_WITHIN);
    let points = points.collect::<std::collections::BTreeSet<_>>();
    points.into_iter().max_by_key(|&point| near(point))
}

fn distance(one: u64, other: u64, period: Ns) -> u64 {
    let apart = one.abs_diff(other);
    apart.min(period.0.saturating_sub(apart))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tick_is_at_one_point_of_its_period_and_other_timers_are_anywhere() {
        let period = Ns(4_000_000);
        let ticks = (0..50).map(|tick| 3_990_000 + tick * period.0 + tick % 3 * 9_000);
        let others = (0..40).map(|timer| timer * 1_700_000);
        let times = ticks.chain(others).collect::<Vec<_>>();
        let phase = phase(&times, period).expect("a phase");
        assert!(distance(phase, 3_999_000, period) <= KEPT_WITHIN, "{phase}");
        assert_eq!(super::phase(&[], period), None);
    }
}
