//! The energy model: what CPUs draw at each of their performance states, and what running so much would take.
//!
//! CPUs that share a clock form a *performance domain*. The busiest of them sets the state of all; each draws that state's
//! power for the part of the time in which it runs.
//!
//! Must not know: tasks, queues, who asks.

mod model;

use fairlab_event::Cpu;

use crate::domain::fits_capacity;
use crate::scheduler::Scheduler;
use crate::select::rules::InefficientStates;

pub(crate) use model::{CostedDomain, EnergyModel};
pub use model::{PerfDomain, PerfState};

impl Scheduler {
    /// Tells what the CPUs draw, after their clocks ([`Scheduler::set_frequency_domains`]). Returns whether tasks can be
    /// placed by it: CPUs differ in capacity, have no threads, and each has a state and a governor.
    ///
    /// Kernel: `build_perf_domains()`, kernel/sched/topology.c; `em_cpufreq_update_efficiencies()`, kernel/power/energy_model.c. Variants:
    /// `Used` to v5.15, `Skipped` from v5.16 (8354eb9eb3dd).
    /// Departs: without a limit to the number of domains and states (2048 to v6.7).
    pub fn set_energy_model(&mut self, domains: &[PerfDomain]) -> bool {
        self.energy = None;
        let online = *self.shared.topology.online();
        let (rule, inefficient) =
            (self.shared.generation.select.energy_cost, self.shared.generation.select.inefficient_states);
        let costed = |domain: &PerfDomain| {
            let cpus = domain.cpus.and(&online);
            let capacity = cpus.lowest().map(|cpu| self.shared.arch_scale_cpu_capacity(cpu).max(1))?;
            let domain = PerfDomain { cpus, states: domain.states.clone() };
            Some(CostedDomain::new(&domain, capacity, rule, inefficient))
        };
        let mut costed = domains.iter().filter_map(costed).collect::<Vec<_>>();
        if inefficient == InefficientStates::Skipped {
            for domain in costed.iter().filter(|domain| !domain.states.is_empty()) {
                let is_left = |khz: u32| domain.states.iter().any(|state| state.khz == u64::from(khz));
                self.leave_frequencies(&domain.cpus, is_left);
            }
        }
        let known = |cpu: Cpu| {
            let has_states =
                costed.iter().any(|domain| domain.cpus.contains(cpu) && !domain.states.is_empty());
            has_states && self.has_governor(cpu)
        };
        let first = online.lowest().and_then(|cpu| self.domains.of_cpu(cpu).sd_asym_cpucapacity);
        if first.is_none() || self.shared.topology.has_smt() || !online.iter().all(known) {
            return false;
        }
        costed.sort_by_key(|domain| std::cmp::Reverse(domain.cpus.lowest()));
        self.energy = Some(Box::new(EnergyModel { domains: costed }));
        true
    }

    /// Whether fair tasks use more of a CPU than leaves it a fifth of its capacity; never without an energy model.
    ///
    /// Kernel: `cpu_overutilized()`, kernel/sched/fair.c.
    pub(crate) fn cpu_overutilized(&self, cpu: Cpu) -> bool {
        self.energy.is_some() && !fits_capacity(self.cpu_util(cpu, false), self.capacity_of(cpu))
    }

    /// Notes that some CPU has more to do than it can, if this one has.
    ///
    /// Kernel: `update_overutilized_status()`, from v6.10 `check_update_overutilized_status()`, kernel/sched/fair.c.
    pub(crate) fn update_overutilized_status(&mut self, cpu: Cpu) {
        if self.energy.is_some() && !self.domains.root().overutilized && self.cpu_overutilized(cpu) {
            self.domains.root_mut().overutilized = true;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use fairlab_event::Ns;

    use super::*;
    use crate::cpufreq::FrequencyDomain;
    use crate::cpufreq::rules::Headroom;
    use crate::cpumask::CpuMask;
    use crate::select::rules::EnergyCost;
    use crate::testbed::SchedulerTestbed;
    use crate::topology::{SmtNumbering, Topology};

    /// A domain like a phone's small CPUs: twice the speed at thrice the power.
    fn domain(rule: EnergyCost) -> CostedDomain {
        let states = vec![PerfState::of_milliwatts(500_000, 50), PerfState::of_milliwatts(1_000_000, 150)];
        CostedDomain::new(
            &PerfDomain { cpus: CpuMask::first(4), states },
            400,
            rule,
            InefficientStates::Skipped,
        )
    }

    #[test]
    fn the_busiest_cpu_sets_the_state_of_all() {
        let energy = |max, sum| {
            domain(EnergyCost::Milliwatts).energy(EnergyCost::Milliwatts, Headroom::OnFrequency, max, sum)
        };
        // Half speed is enough for 160 of 400 with a quarter on top: 100 mW for each full second of full speed.
        assert_eq!(energy(160, 400), 100);
        assert_eq!(energy(161, 400), 150);
        assert_eq!(energy(400, 400), 150, "no state is fast enough for the headroom");
        assert_eq!(energy(160, 0), 0);
    }

    #[test]
    fn later_kernels_lose_less_to_rounding() {
        let energy = |rule: EnergyCost, sum| domain(rule).energy(rule, Headroom::OnUtilization, 10, sum);
        let steps =
            |rule| (1..20).map(|sum| energy(rule, sum)).collect::<std::collections::BTreeSet<_>>().len();
        assert_eq!(steps(EnergyCost::Milliwatts), 5);
        assert_eq!(steps(EnergyCost::Microwatts), 19);
        assert_eq!(energy(EnergyCost::PerPerformance, 1), 2500, "50 mW for 200 units");
    }

    /// What Debian's kernels printed of one model (`cost` in debugfs), built of a device tree for 445 of 1024.
    #[test]
    fn costs_are_those_that_kernels_print() {
        let states = [(400_000, 17_280), (700_000, 35_490), (1_000_000, 67_500), (1_300_000, 112_710)];
        let states = states.map(|(khz, microwatts)| PerfState { khz, microwatts }).to_vec();
        let model = PerfDomain { cpus: CpuMask::first(4), states };
        let costs = |rule| {
            let costed = CostedDomain::new(&model, 445, rule, InefficientStates::Skipped);
            costed.states.into_iter().map(|state| state.cost).collect::<Vec<_>>()
        };
        assert_eq!(costs(EnergyCost::Microwatts), [56_160, 65_910, 87_750, 112_710], "6.1");
        assert_eq!(costs(EnergyCost::PerPerformance), [1270, 1484, 1973, 2532], "6.12");
    }

    /// What Debian's 6.1 printed of a big CPU with states that cost more than faster ones (1024 of 1024), and the frequencies that its
    /// governor was seen to set.
    #[test]
    fn states_that_cost_more_than_a_faster_one_are_skipped() {
        let states = [
            (300_000, 53_003),
            (652_800, 116_009),
            (825_600, 136_014),
            (979_200, 163_016),
            (1_113_600, 183_009),
            (1_267_200, 221_029),
        ];
        let states = states.map(|(khz, microwatts)| PerfState { khz, microwatts }).to_vec();
        let model = PerfDomain { cpus: CpuMask::first(2), states };
        let left = |inefficient| {
            let costed = CostedDomain::new(&model, 1024, EnergyCost::Microwatts, inefficient);
            costed.states.into_iter().map(|state| state.khz).collect::<Vec<_>>()
        };
        assert_eq!(left(InefficientStates::Skipped), [1_113_600, 1_267_200]);
        assert_eq!(left(InefficientStates::Used).len(), 6);
    }

    /// What a little work costs where the slowest state is the dearest for each unit of it, and the frequency that is set for that.
    pub(crate) fn a_little_work(kernel: &str) -> u64 {
        let mut bed = SchedulerTestbed::with_energy_model(kernel);
        let clock = |cpus: &str| FrequencyDomain {
            cpus: CpuMask::parse_list(cpus).expect("a list"),
            frequencies: vec![250_000, 1_000_000],
            rate_limit: Ns(1 << 50),
            fast_switch: true,
            invariant: true,
        };
        bed.scheduler.set_frequency_domains(vec![clock("0-3"), clock("4-5")]);
        let states = [(250_000, 100), (1_000_000, 200)]
            .map(|(khz, milliwatts)| PerfState::of_milliwatts(khz, milliwatts));
        let domain = |cpus: &str| PerfDomain {
            cpus: CpuMask::parse_list(cpus).expect("a list"),
            states: states.to_vec(),
        };
        assert!(bed.scheduler.set_energy_model(&[domain("0-3"), domain("4-5")]));
        let least = bed.scheduler.lowest_frequency(Cpu(0));
        let (energy, generation) = (&bed.scheduler.energy, bed.scheduler.generation());
        let domain = &energy.as_deref().expect("a model").domains[0];
        domain.energy(generation.select.energy_cost, Headroom::OnUtilization, 10, 10) << 32 | u64::from(least)
    }

    #[test]
    fn what_is_skipped_is_not_set_either() {
        let [before, after] = ["v5.15", "v5.16"].map(a_little_work);
        assert_eq!((before as u32, after as u32), (250_000, 1_000_000));
        assert!(before >> 32 > after >> 32, "{before:x} {after:x}");
    }

    #[test]
    fn a_state_is_chosen_by_performance_from_v6_9_on() {
        let energy = |max, sum| {
            let rule = EnergyCost::PerPerformance;
            domain(rule).energy(rule, Headroom::OnUtilization, max, sum)
        };
        // 200 of 400 are enough for 160 with a quarter on top; 50 mW for 200 units, 150 mW for 400.
        assert_eq!((energy(160, 1), energy(161, 1), energy(400, 2)), (2500, 3750, 7500));
    }

    /// A domain of these CPUs with so many states.
    fn of(cpus: &str, states: usize) -> PerfDomain {
        let state = PerfState::of_milliwatts(1_000_000, 100);
        PerfDomain { cpus: CpuMask::parse_list(cpus).expect("a list"), states: vec![state; states] }
    }

    #[test]
    fn a_model_needs_states_and_governors_of_all_cpus_and_capacities_that_differ() {
        let whole = [of("0-3", 1), of("4-5", 1)];
        let mut bed = SchedulerTestbed::with_energy_model("v6.6");
        for lacking in [&whole[..1], &[of("0-3", 1), of("4", 1)], &[of("0-3", 1), of("4-5", 0)], &[]] {
            assert!(!bed.scheduler.set_energy_model(lacking), "{lacking:?}");
            assert!(bed.scheduler.energy.is_none(), "the model of before is gone");
        }
        assert!(bed.scheduler.set_energy_model(&whole));
        bed.scheduler.set_frequency_domains(Vec::new());
        assert!(!bed.scheduler.set_energy_model(&whole), "no CPU has a governor");
        let alike = |threads: u32, capacities: &[u32]| {
            let plain = Topology::regular(1, 1, 2, threads, SmtNumbering::Adjacent).expect("a machine");
            let mut bed =
                SchedulerTestbed::on("v6.6", plain.with_capacities(capacities).expect("capacities"));
            let clock = FrequencyDomain {
                cpus: CpuMask::ALL,
                frequencies: vec![1_000_000],
                rate_limit: Ns(1 << 50),
                fast_switch: true,
                invariant: true,
            };
            bed.scheduler.set_frequency_domains(vec![clock]);
            bed.scheduler.set_energy_model(&[of("0-7", 1)])
        };
        assert!(alike(1, &[512, 1024]));
        assert!(!alike(1, &[1024, 1024]), "all CPUs are as big");
        assert!(!alike(2, &[512, 512, 1024, 1024]), "cores have threads");
    }

    #[test]
    fn domains_are_kept_last_first_and_without_absent_cpus() {
        let mut bed = SchedulerTestbed::with_energy_model("v6.6");
        assert!(bed.scheduler.set_energy_model(&[of("0-1", 1), of("4-9", 1), of("2-3", 1), of("10", 1)]));
        let model = bed.scheduler.energy.as_deref().expect("a model");
        let cpus = model.domains.iter().map(|domain| (domain.cpus.to_string(), domain.capacity));
        let expected =
            [("4-5", 1024), ("2-3", 446), ("0-1", 446)].map(|(cpus, of_each)| (cpus.to_string(), of_each));
        assert_eq!(cpus.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_cpu_is_overutilized_beyond_four_fifths_and_only_with_a_model() {
        let mut bed = SchedulerTestbed::with_energy_model("v6.6");
        let notes = |bed: &mut SchedulerTestbed, util: u64| {
            bed.use_cpu(4, util);
            bed.scheduler.domains.root_mut().overutilized = false;
            bed.scheduler.update_overutilized_status(Cpu(4));
            (bed.scheduler.cpu_overutilized(Cpu(4)), bed.scheduler.domains.root().overutilized)
        };
        assert_eq!((notes(&mut bed, 819), notes(&mut bed, 820)), ((false, false), (true, true)));
        bed.scheduler.energy = None;
        assert_eq!(notes(&mut bed, 1000), (false, false));
        let queue = bed.scheduler.rqs[4].cfs;
        let mut bed = SchedulerTestbed::with_energy_model("v6.6");
        // Waiting asks for a higher frequency, but is no use of a CPU.
        bed.scheduler.cfs_mut(queue).tracked.avg.runnable_avg = 1000;
        assert!(!bed.scheduler.cpu_overutilized(Cpu(4)));
    }
}
