//! A host that takes CPUs away from its guest for a while, which is told nothing of it (steal).
//!
//! A CPU that is away stands still. What becomes due there is seen when it comes back. Its clock has gone on: the kernel takes the
//! time for the running task's, as `update_rq_clock_task()` does without `CONFIG_PARAVIRT_TIME_ACCOUNTING`.
//!
//! Departs: no CPU is taken away while it idles, and one that is woken is there at once.

use fairlab_event::{Cpu, Ns};

use super::Engine;
use super::cpu::CpuPhase;
use super::occurrence::Occurrence;
use super::vcpu_turns::StandingCpu;
use crate::machine::Chance;
use crate::machine::chance::around;
use crate::rng::RandomStream;
use crate::scheduler_core::SchedulerCore;

/// The CPUs that a host takes away.
pub(super) struct StolenCpus<M> {
    cpus: Vec<StolenCpu<M>>,
    /// From one beginning to the next, on average.
    period: Ns,
    /// For how long, on average.
    lasts: Ns,
}

struct StolenCpu<M> {
    /// What its host draws.
    host: RandomStream,
    /// What waits while it is away.
    away: Option<StandingCpu<M>>,
}

impl<M> StolenCpus<M> {
    /// What the machine's chance asks for; `None`: nothing.
    pub fn of(chance: &Chance, nr_cpus: usize, seed: u64) -> Option<Box<StolenCpus<M>>> {
        let period = Ns(1_000_000_000_u64.checked_div(chance.steal_per_s)?);
        let host = |cpu| RandomStream::new(seed, &format!("host/{cpu}"));
        let cpus = (0..nr_cpus).map(|cpu| StolenCpu { host: host(cpu), away: None }).collect();
        Some(Box::new(StolenCpus { cpus, period, lasts: Ns(chance.steal_ns) }))
    }

    /// What waits for `cpu` while it is away.
    pub fn standing(&mut self, cpu: Cpu) -> Option<&mut StandingCpu<M>> {
        self.cpus[cpu.index()].away.as_mut()
    }

    /// Whether `cpu` is away.
    pub fn has(&self, cpu: Cpu) -> bool {
        self.cpus[cpu.index()].away.is_some()
    }
}

impl<C: SchedulerCore> Engine<C> {
    /// Arranges when each CPU is taken away first.
    pub(super) fn begin_to_steal(&mut self) {
        (0..self.cpus.len() as u32).map(Cpu).for_each(|cpu| self.arrange_theft(cpu));
    }

    fn arrange_theft(&mut self, cpu: Cpu) {
        let Some(stolen) = &mut self.stolen else { return };
        let gap = around(stolen.period, &mut stolen.cpus[cpu.index()].host);
        self.queue.arrange_host(cpu, self.now + gap.max(Ns(1)));
    }

    /// Whether `occurrence` must wait for its CPU, or was the host's.
    pub(super) fn waits_for_host(&mut self, occurrence: Occurrence<C::Message>) -> bool {
        let cpu = occurrence.cpu();
        let Some(stolen) = &mut self.stolen else { return false };
        if let Occurrence::HostTurns { .. } = occurrence {
            match stolen.cpus[cpu.index()].away.take() {
                Some(standing) => self.come_back(cpu, standing),
                None => self.take_away(cpu),
            }
            return true;
        }
        let standing =
            stolen.standing(cpu).filter(|_| !matches!(occurrence, Occurrence::LimitChanges { .. }));
        standing.map(|standing| standing.missed.push(occurrence)).is_some()
    }

    fn take_away(&mut self, cpu: Cpu) {
        let state = &self.cpus[cpu.index()];
        if state.phase == CpuPhase::Idle {
            return self.arrange_theft(cpu);
        }
        let left = state.until.since(self.now);
        self.queue.cancel_phase_end(cpu);
        let Some(stolen) = &mut self.stolen else { return };
        let StolenCpu { host, away } = &mut stolen.cpus[cpu.index()];
        *away = Some(StandingCpu { left, missed: Vec::new() });
        let time = around(stolen.lasts, host);
        self.queue.arrange_host(cpu, self.now + time.max(Ns(1)));
    }

    fn come_back(&mut self, cpu: Cpu, standing: StandingCpu<C::Message>) {
        self.go_on_after(cpu, standing);
        self.arrange_theft(cpu);
    }
}

#[cfg(test)]
mod tests {
    use fairlab_event::{Event, EventKind, sink_fn};

    use super::*;
    use crate::engine::tests::machine;
    use crate::machine::Machine;
    use crate::workload::spinners::Spinners;

    /// Two hogs on two CPUs for two seconds under a host: how much they compute, ms; and the longest time between two ticks of a CPU
    /// that has accounted for what it ran, us.
    fn run(chance: Chance) -> (u64, u64) {
        let machine = Machine { chance, ..machine(2) };
        let mut engine = Engine::new("v6.12".parse().expect("a kernel"), machine, 7);
        engine.set_tracing(true);
        let args = ["-n", "0,0", "-r", "4"].map(str::to_string);
        engine.start(Box::new(Spinners::parse(&args).expect("a workload")));
        let (mut last, mut longest) = ([Ns::ZERO; 2], 0);
        engine.run_until(
            Ns::from_secs(2),
            &mut sink_fn(|event: &Event<'_>| {
                if matches!(event.kind, EventKind::SchedStatRuntime { .. }) {
                    let before = std::mem::replace(&mut last[event.cpu.index()], event.time);
                    // The hogs begin after 100 ms.
                    if before > Ns::from_ms(150) {
                        longest = longest.max(event.time.since(before).0 / 1000);
                    }
                }
            }),
        );
        let rounds = engine.workload(0).progress().map_or(0, |(_, rounds)| rounds);
        (rounds, longest)
    }

    #[test]
    fn stolen_cpus_compute_less_and_tick_late() {
        let without = run(Chance::NONE);
        let fifth = Chance { steal_per_s: 50, steal_ns: 5_000_000, ..Chance::NONE };
        let with = run(fifth);
        assert!(without.1 < 1_100, "a tick each millisecond: {without:?}");
        assert!(with.1 > 5_000, "no tick for as long as a CPU is away: {with:?}");
        let percent = 100 * with.0 / without.0;
        assert!((72..90).contains(&percent), "5 ms of 25 are stolen: {percent} % of {without:?}");
        let nothing = Chance { steal_ns: 0, ..fifth };
        assert_eq!(run(nothing).0, without.0);
        assert_eq!(run(fifth), with, "a run is its seed's");
    }
}
