//! The wakeup by energy, compared with a plain account of it.
//!
//! The account says what each release's function does on one machine, with costs worked out by hand. Random loads on that
//! machine are compared.
//!
//! Must not know: how the policy is made up of rules.

use fairlab_event::Cpu;

use crate::cpumask::CpuMask;
use crate::decision::SelectReason;
use crate::domain::fits_capacity;
use crate::task::Policy;
use crate::testbed::SchedulerTestbed;

/// [`SchedulerTestbed::with_energy_model`]: the later domain comes first in the kernel's list.
const DOMAINS: [std::ops::Range<usize>; 2] = [4..6, 0..4];
const CAPACITY: [u64; 6] = [446, 446, 446, 446, 1024, 1024];

/// What `find_energy_efficient_cpu()` was at a release.
#[derive(Clone, Copy)]
struct ReferenceEra {
    kernel: &'static str,
    /// Energies of the whole machine are compared.
    by_machine: bool,
    /// The previous CPU may be the roomiest of its domain.
    any_cpu: bool,
    /// Domains without a candidate are passed over, and a negative difference ends the search.
    counted: bool,
    /// The roomiest CPU must have more room than the previous one.
    roomier: bool,
    /// For time, the task's estimate is added to what its CPU is used without it.
    apart: bool,
    /// States that cost more than a faster one are passed over.
    skips: bool,
    /// A runnable real-time task asks for full speed.
    real_time: bool,
    saves: EnergyThreshold,
    cost: EnergyCostUnit,
}

#[derive(Clone, Copy, PartialEq)]
enum EnergyThreshold {
    SixteenthOfPrev,
    SixteenthOfAll,
    Anything,
}

#[derive(Clone, Copy, PartialEq)]
enum EnergyCostUnit {
    Milliwatts,
    Microwatts,
    PerPerformance,
}

const V5_0: ReferenceEra = ReferenceEra {
    kernel: "v5.0",
    by_machine: true,
    any_cpu: false,
    counted: false,
    roomier: false,
    apart: false,
    real_time: false,
    skips: false,
    saves: EnergyThreshold::SixteenthOfPrev,
    cost: EnergyCostUnit::Milliwatts,
};
const V5_4: ReferenceEra = ReferenceEra {
    kernel: "v5.4",
    by_machine: false,
    any_cpu: true,
    real_time: true,
    saves: EnergyThreshold::SixteenthOfAll,
    ..V5_0
};
const V5_15: ReferenceEra = ReferenceEra {
    kernel: "v5.15",
    any_cpu: false,
    counted: true,
    apart: true,
    cost: EnergyCostUnit::Microwatts,
    ..V5_4
};
const V6_2: ReferenceEra =
    ReferenceEra { kernel: "v6.2", roomier: true, skips: true, saves: EnergyThreshold::Anything, ..V5_15 };
const V6_12: ReferenceEra = ReferenceEra { kernel: "v6.12", cost: EnergyCostUnit::PerPerformance, ..V6_2 };

/// A machine: what each CPU is used to, what the task uses and is expected to, where it slept, where it may run.
#[derive(Clone, Copy, Debug)]
struct EnergySituation {
    used: [u64; 6],
    util: u64,
    estimate: u64,
    prev: usize,
    allowed: CpuMask,
    /// CPUs on which a real-time task runs.
    urgent: [bool; 6],
}

impl EnergySituation {
    /// What `cpu` would be used to with the task on `dest`.
    fn util(&self, cpu: usize, dest: Option<usize>) -> u64 {
        let (here, there) = (cpu == self.prev, dest == Some(cpu));
        let average = match (here, there) {
            (true, false) => self.used[cpu].saturating_sub(self.util),
            (false, true) => self.used[cpu] + self.util,
            _ => self.used[cpu],
        };
        // Nothing is queued, so only the task itself has an estimate.
        average.max(if there { self.estimate } else { 0 }).min(CAPACITY[cpu])
    }

    fn energy(&self, era: ReferenceEra, domain: usize, dest: Option<usize>) -> u64 {
        let capacity = CAPACITY[DOMAINS[domain].start];
        let (mut most, mut sum) = (0, 0);
        for cpu in DOMAINS[domain].clone() {
            let urgent = era.real_time && self.urgent[cpu];
            most = most.max(if urgent { capacity } else { self.util(cpu, dest) });
            sum += match era.apart && dest == Some(cpu) {
                true => (self.util(cpu, None) + self.task_estimate()).min(capacity),
                false => self.util(cpu, dest),
            };
        }
        let wanted = match era.cost {
            // Half, three quarters and all of a gigahertz.
            EnergyCostUnit::Milliwatts => 1_250_000 * most / capacity,
            EnergyCostUnit::Microwatts => 1_000_000 * (most + most / 4) / capacity,
            EnergyCostUnit::PerPerformance => (most + most / 4).min(capacity),
        };
        let states = match (era.cost, domain) {
            (EnergyCostUnit::Milliwatts, 1) => [(500_000, 60), (750_000, 53), (1_000_000, 90)],
            (EnergyCostUnit::Milliwatts, _) => [(500_000, 240), (750_000, 213), (1_000_000, 360)],
            (EnergyCostUnit::Microwatts, 1) => [(500_000, 60_000), (750_000, 53_333), (1_000_000, 90_000)],
            (EnergyCostUnit::Microwatts, _) => [(500_000, 240_000), (750_000, 213_333), (1_000_000, 360_000)],
            (EnergyCostUnit::PerPerformance, 1) => [(223, 1345), (334, 1197), (446, 2017)],
            (EnergyCostUnit::PerPerformance, _) => [(512, 2343), (768, 2083), (1024, 3515)],
        };
        // The slowest costs more than the next.
        let states = &states[usize::from(era.skips)..];
        let cost = states.iter().find(|state| state.0 >= wanted).unwrap_or(&states[states.len() - 1]).1;
        if era.cost == EnergyCostUnit::PerPerformance { cost * sum } else { cost * sum / capacity }
    }

    fn task_estimate(&self) -> u64 {
        self.util.max(self.estimate)
    }

    /// The previous CPU's room in a domain, if it is there and the task fits, and the roomiest of the others.
    fn rooms(&self, era: ReferenceEra, domain: usize) -> (Option<u64>, Option<(u64, usize)>) {
        let (mut of_prev, mut roomiest) = (None, None);
        for cpu in DOMAINS[domain].clone().filter(|&cpu| self.allowed.contains(Cpu(cpu as u32))) {
            let util = self.util(cpu, Some(cpu));
            if util * 1280 >= CAPACITY[cpu] * 1024 {
                continue;
            }
            let room = CAPACITY[cpu] - util;
            if cpu == self.prev {
                of_prev = Some(room);
            }
            if (cpu != self.prev || era.any_cpu) && roomiest.is_none_or(|(most, _)| room > most) {
                roomiest = Some((room, cpu));
            }
        }
        (of_prev, roomiest)
    }

    fn cpu(&self, era: ReferenceEra) -> usize {
        let prev = self.prev;
        let (mut prev_energy, mut best_energy, mut best, mut base_energy) = (None, u64::MAX, prev, 0);
        for domain in 0..2 {
            let (of_prev, roomiest) = self.rooms(era, domain);
            if era.counted && of_prev.is_none() && roomiest.is_none() {
                continue;
            }
            let base = if era.by_machine { 0 } else { self.energy(era, domain, None) };
            base_energy += base;
            let with_task = |cpu| match era.by_machine {
                true => self.energy(era, 0, Some(cpu)) + self.energy(era, 1, Some(cpu)),
                false => self.energy(era, domain, Some(cpu)),
            };
            if of_prev.is_some() {
                let with_task = with_task(prev);
                if era.counted && with_task < base {
                    return prev;
                }
                prev_energy = Some(with_task.wrapping_sub(base));
                best_energy = best_energy.min(with_task.wrapping_sub(base));
            }
            let roomier = |room: u64| !era.roomier || of_prev.is_none_or(|of_prev| room > of_prev);
            if let Some((_, cpu)) = roomiest.filter(|&(room, cpu)| cpu != prev && roomier(room)) {
                let with_task = with_task(cpu);
                if era.counted && with_task < base {
                    return prev;
                }
                if with_task.wrapping_sub(base) < best_energy {
                    (best_energy, best) = (with_task.wrapping_sub(base), cpu);
                }
            }
        }
        let Some(prev_energy) = prev_energy else { return best };
        let least = match era.saves {
            EnergyThreshold::SixteenthOfPrev => prev_energy / 16,
            EnergyThreshold::SixteenthOfAll => prev_energy.wrapping_add(base_energy) / 16,
            EnergyThreshold::Anything => 0,
        };
        if prev_energy.wrapping_sub(best_energy) > least { best } else { prev }
    }

    /// Where the scheduler places it.
    fn placed(&self, kernel: &str) -> (usize, SelectReason) {
        let mut bed = SchedulerTestbed::with_energy_model(kernel);
        let sleeper = bed.spawn(0, self.prev as u32);
        bed.sleep(self.prev as u32);
        bed.scheduler.shared.tasks[sleeper.index()].allowed = self.allowed;
        bed.use_task(sleeper, self.estimate);
        let se = bed.scheduler.shared.tasks[sleeper.index()].se;
        let avg = &mut bed.scheduler.se_mut(se).avg;
        (avg.util_avg, avg.runnable_avg) = (self.util, self.util);
        for cpu in 0..6u32 {
            bed.use_cpu(cpu, self.used[cpu as usize]);
            if self.urgent[cpu as usize] {
                bed.spawn_with(0, cpu, Policy::Fifo(1), CpuMask::ALL);
            }
        }
        bed.scheduler.domains.root_mut().overutilized = false;
        let decision = bed.select(sleeper, 5, false);
        (decision.cpu.index(), decision.reason)
    }
}

/// A situation by chance; only some of them are tight.
fn situation(below: &mut impl FnMut(u64) -> u64) -> EnergySituation {
    let prev = below(6) as usize;
    let (util, tight) = (1 + below(300), below(2) == 0);
    // To v5.12 the lowest bit of an estimate is a flag that is always set.
    let estimate = if below(2) == 0 { util } else { 1 + below(400) } | 1;
    let mut used = [0; 6].map(|_: u64| below(if tight { 440 } else { 60 }));
    used[prev] = (used[prev] + util).min(CAPACITY[prev]);
    let mut allowed = CpuMask::ALL;
    if below(4) == 0 {
        allowed = (0..6).filter(|_| below(3) > 0).map(Cpu).collect();
        allowed.set(Cpu(prev as u32));
        allowed.set(Cpu((prev as u32 + 3) % 6));
    }
    let urgent = [0; 6].map(|_: u32| below(10) == 0);
    EnergySituation { used, util, estimate, prev, allowed, urgent }
}

#[test]
fn wakeups_by_energy_go_where_a_plain_account_says() {
    for era in [V5_0, V5_4, V5_15, V6_2, V6_12] {
        let mut random = 7u64;
        let mut below = |limit: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % limit
        };
        let (mut away, mut stayed) = (0, 0);
        for number in 0..1500 {
            let asked = situation(&mut below);
            let expected = asked.cpu(era);
            let reason =
                if expected == asked.prev { SelectReason::PrevEnergy } else { SelectReason::LeastEnergy };
            let what = format!("{}, situation {number}: {asked:?}", era.kernel);
            assert_eq!(asked.placed(era.kernel), (expected, reason), "{what}");
            *(if expected == asked.prev { &mut stayed } else { &mut away }) += 1;
        }
        assert!(away > 200 && stayed > 200, "{}: {away} away, {stayed} stayed", era.kernel);
    }
}

#[test]
fn a_fifth_of_a_cpu_must_stay_free() {
    assert!(fits_capacity(819, 1024) && !fits_capacity(820, 1024));
}
