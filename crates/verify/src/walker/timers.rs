//! Which interrupts of a CPU's timer are ticks, if the trace names no timers: a tick comes at a fixed point of its period.
//!
//! Must not know: what a tick decides.

use std::collections::BTreeMap;

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::CpuMask;

use super::super::record::{EventRecord, RecordKind};
use super::Walker;

/// How exactly the tick keeps its point, ns.
const KEPT_WITHIN: u64 = 100_000;

/// A CPU whose running task is charged so often in interrupts ticks, whether that is traced or not.
const TICKS_SEEN: usize = 8;

impl Walker {
    /// Finds when in its period each CPU's tick comes: where most interrupts of its timer do.
    pub(super) fn find_tick_phases(&mut self) {
        let names_timers =
            |record: &EventRecord| matches!(record.what, RecordKind::Timer { .. } | RecordKind::Hrtick);
        if !self.sched.has_slice_timer() || self.window.all().any(names_timers) {
            return;
        }
        let mut times = BTreeMap::<Cpu, Vec<u64>>::new();
        for record in self.window.all().filter(|record| matches!(record.what, RecordKind::TimerInterrupt)) {
            times.entry(record.cpu).or_default().push(record.time.0);
        }
        let period = self.tick;
        for (cpu, times) in times {
            if let Some(info) = self.cpus.get_mut(cpu.index()) {
                info.tick_phase = phase(&times, period);
            }
        }
    }

    /// Finds when jiffies begin on the clock of the trace: when the first ticks come, of those at the point where most do. Those
    /// of a model begin with the clock, whenever its ticks come.
    pub(super) fn find_jiffies(&mut self) {
        if self.recording.modelled.is_some() {
            return;
        }
        let interrupts = self.window.all().filter(|record| matches!(record.what, RecordKind::TimerInterrupt));
        let times = interrupts.map(|record| record.time.0).collect::<Vec<_>>();
        if times.len() >= TICKS_SEEN
            && let Some(begin) = beginning(&times, self.tick)
        {
            self.sched.count_jiffies_from(Ns(begin));
        }
    }

    /// Finds CPUs whose timer interrupts the trace leaves out while it has those of others: a clock of the machine ticks for
    /// all, which it tells the others. Those CPUs tick when the others do, and each time is a jiffy, however many come in a
    /// period.
    pub(super) fn find_silent_ticks(&mut self) {
        let (mut times, mut charged) = (BTreeMap::<Cpu, Vec<u64>>::new(), BTreeMap::<Cpu, usize>::new());
        for record in self.window.all().filter(|record| record.cpu.index() < self.cpus.len()) {
            match &record.what {
                RecordKind::TimerInterrupt => times.entry(record.cpu).or_default().push(record.time.0),
                RecordKind::Runtime { pid, .. } if *pid == record.context && record.flags.in_hardirq() => {
                    *charged.entry(record.cpu).or_default() += 1;
                }
                _ => {}
            }
        }
        let ticks_unseen =
            |(cpu, charges): &(&Cpu, &usize)| !times.contains_key(cpu) && **charges >= TICKS_SEEN;
        let silent = charged.iter().filter(ticks_unseen).map(|(&cpu, _)| cpu).collect::<CpuMask>();
        let Some(most) = times.into_values().max_by_key(Vec::len).filter(|_| !silent.is_empty()) else {
            return;
        };
        let Some((point, jiffy)) = phase(&most, self.tick).zip(interval(&most, self.tick)) else { return };
        self.sched.count_jiffies_by(jiffy);
        self.silent_ticks = Some((point, silent));
    }

    /// A CPU ticks: so do those whose ticks are not traced.
    fn tick_silent_cpus(&mut self, record: &EventRecord) {
        let Some((point, silent)) = self.silent_ticks else { return };
        if distance(record.time.0 % self.tick.0, point, self.tick) > KEPT_WITHIN {
            return;
        }
        for cpu in silent.iter() {
            let ticked = self.cpus[cpu.index()].ticked_at;
            if ticked.is_none_or(|ticked| record.time.since(ticked).0 > self.tick.0 / 2) {
                self.begin_tick(record, cpu);
            }
        }
    }

    /// A CPU's timer has expired: another one than the tick's is that which ends slices, as far as what is accounted in it
    /// goes.
    pub(super) fn on_timer_interrupt(&mut self, record: &EventRecord) {
        let period = self.tick;
        let Some(info) = self.cpus.get_mut(record.cpu.index()) else { return };
        if let Some(phase) = info.tick_phase {
            info.in_hrtick = distance(record.time.0 % period.0, phase, period) > KEPT_WITHIN;
        }
        if !self.cpus[record.cpu.index()].in_hrtick {
            self.begin_tick(record, record.cpu);
            self.tick_silent_cpus(record);
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

/// When periods begin at whose beginning most of these moments lie, but for a tenth of them: other timers, and what clocks
/// differ by.
fn beginning(times: &[u64], period: Ns) -> Option<u64> {
    let point = phase(times, period)?;
    let start = point + period.0 - KEPT_WITHIN;
    let after = times.iter().map(|time| (time % period.0 + 2 * period.0 - start) % period.0);
    let mut after = after.filter(|after| *after <= 2 * KEPT_WITHIN).collect::<Vec<_>>();
    after.sort_unstable();
    after.get(after.len() / 10).map(|after| (start + after) % period.0)
}

/// The time from one of these moments to the next; a whole number of them makes a period.
fn interval(times: &[u64], period: Ns) -> Option<Ns> {
    let lasted = times.last()?.checked_sub(*times.first()?).filter(|&lasted| lasted > 0)?;
    let in_period = (times.len() as u64 * period.0 + lasted / 2) / lasted;
    Some(Ns(period.0 / in_period.max(1)))
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
        assert_eq!(beginning(&times, period), Some(3_990_000));
        assert_eq!(beginning(&[], period), None);
    }

    #[test]
    fn a_clock_that_ticks_twice_in_a_period_counts_two_jiffies() {
        let period = Ns(10_000_000);
        let at = |each: u64, late: u64| {
            (0..50 * each).map(|tick| tick / each * period.0 + tick % each * late).collect::<Vec<_>>()
        };
        assert_eq!(interval(&at(1, 0), period), Some(period));
        assert_eq!(interval(&at(2, 140_000), period), Some(Ns(5_000_000)));
        assert_eq!((interval(&[], period), interval(&[5], period)), (None, None));
    }
}
