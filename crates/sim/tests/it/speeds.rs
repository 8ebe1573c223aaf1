//! How fast CPUs truly are, apart from what their kernel is told: each effect shows in what is done, and not when both agree.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::cpufreq::FrequencyDomain;
use fairlab_kernel::topology::SmtNumbering;
use fairlab_kernel::{CpuMask, Topology};
use fairlab_sim::machine::{Boost, SpeedLimit, TrueSpeeds};
use fairlab_sim::workload::spinners::Spinners;
use fairlab_sim::{Engine, Machine};

/// So many cores of one thread, nothing left to chance.
fn cores(count: u32, speeds: TrueSpeeds) -> Machine {
    let topology = Topology::regular(1, 1, count, 1, SmtNumbering::Adjacent).expect("a machine");
    let usual = Machine::preset("vm4").expect("a machine").exact();
    Machine { topology, idle_states: Vec::new(), speeds, ..usual }
}

/// How many rounds of a millisecond so many hogs do in a second.
fn rounds(kernel: &str, machine: Machine, hogs: usize) -> u64 {
    let words = ["-n".to_string(), vec!["0"; hogs].join(","), "-r".to_string(), "2".to_string()];
    let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine, 1);
    let number = engine.start(Box::new(Spinners::parse(&words).expect("options")));
    engine.run_until(Ns::from_secs(1), &mut ());
    engine.workload(number).progress().expect("it counts").1
}

fn percent(part: u64, whole: u64) -> u64 {
    (200 * part + whole) / (2 * whole)
}

#[test]
fn a_slow_cpu_does_less_though_its_kernel_takes_it_for_a_full_one() {
    let told = rounds("v6.12", cores(2, TrueSpeeds::default()), 2);
    let half = TrueSpeeds { cpus: vec![1024, 512], ..TrueSpeeds::default() };
    let machine = cores(2, half.clone());
    assert_eq!(machine.topology.capacity(Cpu(1)), 1024);
    assert_eq!(percent(rounds("v6.12", machine, 2), told), 75);
    // A kernel that is told all of it: capacity and speed agree, and it makes no difference which of them says it.
    let topology = cores(2, half.clone()).topology.with_capacities(&[1024, 512]).expect("capacities");
    let agreed = Machine { topology, ..cores(2, half) };
    let by_capacity = Machine { speeds: TrueSpeeds::default(), ..agreed.clone() };
    assert_eq!(rounds("v6.12", agreed, 2), rounds("v6.12", by_capacity, 2));
}

#[test]
fn cores_slow_each_other_down_by_their_number() {
    let boost = Boost { cpus: CpuMask::first(4), steps: vec![(2, 768), (4, 512)] };
    let speeds = TrueSpeeds { boosts: vec![boost], ..TrueSpeeds::default() };
    for (hogs, expected) in [(1, 100), (2, 75), (3, 75), (4, 50)] {
        let without = rounds("v6.12", cores(4, TrueSpeeds::default()), hogs);
        let with = rounds("v6.12", cores(4, speeds.clone()), hogs);
        assert!(percent(with, without).abs_diff(expected) <= 1, "{hogs} hogs: {with} of {without}");
    }
}

#[test]
fn heat_slows_cpus_while_it_lasts() {
    let limit = SpeedLimit {
        cpus: CpuMask::first(2),
        speed: 256,
        from: Ns::from_ms(100),
        lasts: Some(Ns::from_ms(50)),
        every: Some(Ns::from_ms(100)),
    };
    let speeds = TrueSpeeds { limits: vec![limit], ..TrueSpeeds::default() };
    let (with, without) =
        (rounds("v6.12", cores(2, speeds), 2), rounds("v6.12", cores(2, TrueSpeeds::default()), 2));
    // From the 100th millisecond on, when they begin, half of the time at a quarter of the speed.
    assert!(percent(with, without).abs_diff(63) <= 1, "{with} of {without}");
}

/// 9c0b4bb7f630 halved the speed of builds where acpi-cpufreq sets clocks that the scheduler is not told of; e37617c8e53a mended it.
#[test]
fn a_clock_that_the_scheduler_is_not_told_of_stays_low_between_two_commits() {
    let done = |kernel: &str, invariant: bool| {
        let clock = |cpu: u32| FrequencyDomain {
            cpus: CpuMask::single(Cpu(cpu)),
            frequencies: vec![1_400_000, 1_700_000, 2_800_000],
            rate_limit: Ns::from_ms(1),
            fast_switch: true,
            invariant,
        };
        let machine =
            Machine { frequency_domains: (0..2).map(clock).collect(), ..cores(2, TrueSpeeds::default()) };
        rounds(kernel, machine, 2)
    };
    let before = done("50181c0cff31", false);
    assert!(percent(done("9c0b4bb7f630", false), before).abs_diff(51) <= 1);
    assert!(percent(done("e37617c8e53a", false), before).abs_diff(102) <= 2);
    let told = done("50181c0cff31", true);
    assert!(percent(done("9c0b4bb7f630", true), told).abs_diff(100) <= 1, "one that it is told of does not");
}
