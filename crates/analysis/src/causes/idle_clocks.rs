//! For how long any CPU was idle, of all and of each set that tasks are bound to.
//!
//! Must not know: who waits meanwhile.

use std::collections::BTreeMap;

use fairlab_event::{Cpu, Ns};

/// The clock of one set of CPUs, which goes while one of them idles.
#[derive(Clone, Debug, Default)]
struct IdleClock {
    /// How many are known to idle.
    idle: u32,
    /// For how long any did, up to the latest change.
    time: Ns,
    since: Ns,
}

/// All clocks.
#[derive(Clone, Debug, Default)]
pub(super) struct IdleClocks {
    any: IdleClock,
    /// By the number of the set, with its CPUs.
    sets: BTreeMap<u32, (Vec<Cpu>, IdleClock)>,
}

impl IdleClock {
    fn at(&self, now: Ns) -> Ns {
        let ongoing = if self.idle > 0 { now.since(self.since) } else { Ns::ZERO };
        self.time.saturating_add(ongoing)
    }

    fn changes(&mut self, idles: bool, now: Ns) {
        (self.time, self.since) = (self.at(now), now);
        self.idle = if idles { self.idle + 1 } else { self.idle.saturating_sub(1) };
    }

    fn none(&mut self, now: Ns) {
        (self.time, self.since, self.idle) = (self.at(now), now, 0);
    }
}

impl IdleClocks {
    /// Whether any CPU is known to idle.
    pub(super) const fn any(&self) -> bool {
        self.any.idle > 0
    }

    /// For how long any CPU idled.
    pub(super) fn of_any(&self, now: Ns) -> Ns {
        self.any.at(now)
    }

    /// For how long any of `cpus` idled, the set of this number, since it was asked for first; `idles`: whether a CPU does now.
    pub(super) fn of(&mut self, set: u32, cpus: &[Cpu], idles: impl Fn(&Cpu) -> bool, now: Ns) -> Ns {
        let begin = || {
            let idle = cpus.iter().filter(|&cpu| idles(cpu)).count() as u32;
            (cpus.to_vec(), IdleClock { idle, time: Ns::ZERO, since: now })
        };
        self.sets.entry(set).or_insert_with(begin).1.at(now)
    }

    /// A CPU begins to idle, or idles no more.
    pub(super) fn changes(&mut self, cpu: Cpu, idles: bool, now: Ns) {
        self.any.changes(idles, now);
        for (cpus, clock) in self.sets.values_mut() {
            if cpus.contains(&cpu) {
                clock.changes(idles, now);
            }
        }
    }

    /// Of no CPU it is known any more whether it idles.
    pub(super) fn none(&mut self, now: Ns) {
        self.any.none(now);
        self.sets.values_mut().for_each(|(_, clock)| clock.none(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_goes_while_one_of_its_cpus_idles() {
        let mut clocks = IdleClocks::default();
        clocks.changes(Cpu(1), true, Ns(10));
        let set = [Cpu(0), Cpu(1)];
        assert_eq!(clocks.of(7, &set, |cpu| *cpu == Cpu(1), Ns(20)), Ns::ZERO);
        clocks.changes(Cpu(2), true, Ns(30));
        clocks.changes(Cpu(1), false, Ns(50));
        assert_eq!((clocks.of_any(Ns(90)), clocks.of(7, &set, |_| false, Ns(90))), (Ns(80), Ns(30)));
        clocks.none(Ns(100));
        assert_eq!((clocks.of_any(Ns(500)), clocks.any()), (Ns(90), false));
    }
}
