//! Workloads in control groups: shares through the hierarchy, quotas, and that nothing gets lost on the way.

use fairlab_event::{Event, EventKind, Ns, sink_fn};
use fairlab_kernel::CfsLimit;
use fairlab_kernel::Topology;
use fairlab_kernel::topology::SmtNumbering;

use super::{GENERATIONS, Script, hog, machine, picture_of, random_threads, spec};
use crate::Engine;
use crate::machine::{Chance, Machine};
use crate::rng::RandomStream;
use crate::workload::cgroup::GroupSpec;
use crate::workload::{Action, ThreadSpec};

fn limit(quota_ms: u64, period_ms: u64, burst_ms: u64) -> CfsLimit {
    let [quota, period, burst] = [quota_ms, period_ms, burst_ms].map(Ns::from_ms);
    CfsLimit::new(quota, period, burst).expect("within the kernel's limits")
}

fn group(parent: Option<usize>, weight: u64) -> GroupSpec {
    GroupSpec { parent, weight, ..GroupSpec::new(format!("group of {weight}")) }
}

fn in_group(group: usize, cpus: &str) -> ThreadSpec {
    ThreadSpec { group: Some(group), ..spec(0, cpus) }
}

/// A group of 25 ms each 50 ms, beside nothing; slices are 5 ms, and the tick finds out.
#[test]
fn a_quota_ends_what_a_group_may_run_each_period() {
    for kernel in ["v5.10", "v6.12", "v6.18", "v7.2"] {
        let groups = vec![GroupSpec { max: limit(25, 50, 0), ..group(None, 100) }];
        let script = Script::in_groups(groups, vec![(in_group(0, "0"), hog())]);
        let drawn = picture_of(kernel, machine(1), script, Ns::from_ms(5), 40);
        let idle = drawn.chars().filter(|&slot| slot == '.').count();
        // The first period may be a short one.
        assert!((15..=21).contains(&idle), "{kernel}: half of 200 ms, less one quota: {drawn}");
    }
}

/// Periods begin at multiples of 50 ms to v6.3, and at a random offset from v6.4 (41abdba93747).
#[test]
fn periods_of_groups_are_interleaved() {
    let starts = |kernel: &str, seed: u64| {
        let phases = Chance { phase_permille: 1000, ..Chance::NONE };
        let machine = Machine { chance: phases, ..machine(1) };
        let groups = vec![GroupSpec { max: limit(10, 50, 0), ..group(None, 100) }];
        let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine, seed);
        engine.set_tracing(true);
        engine.start(Script::in_groups(groups, vec![(in_group(0, "0"), hog())]));
        let mut starts = Vec::new();
        let mut sink = sink_fn(|event: &Event<'_>| {
            if let EventKind::SchedSwitch(switch) = event.kind
                && switch.prev_pid.is_idle()
            {
                starts.push(event.time.0 / 1_000_000);
            }
        });
        engine.run_until(Ns::from_ms(300), &mut sink);
        drop(sink);
        starts.split_off(2).iter().map(|start| start % 50).collect::<Vec<_>>()
    };
    assert_eq!(starts("v6.3", 1), [0, 0, 0, 0]);
    let (one, other) = (starts("v6.4", 1), starts("v6.4", 2));
    assert!(one.windows(2).all(|pair| pair[0].abs_diff(pair[1]) <= 1), "{one:?}");
    assert_ne!(one[0], other[0]);
}

/// Groups of 100 (in it one of 300 with two hogs and one of 100 with one) and of 200, and a task beside them.
#[test]
fn shares_follow_weights_through_the_hierarchy() {
    for kernel in GENERATIONS {
        let groups = vec![group(None, 100), group(Some(0), 300), group(Some(0), 100), group(None, 200)];
        let threads = vec![
            (in_group(1, "0"), hog()),
            (in_group(1, "0"), hog()),
            (in_group(2, "0"), hog()),
            (in_group(3, "0"), hog()),
            (spec(0, "0"), hog()),
        ];
        let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine(1), 1);
        engine.start(Script::in_groups(groups, threads));
        engine.run_until(Ns::from_secs(20), &mut ());
        let ran = engine.threads.iter().skip(1).map(|thread| engine.kernel().sum_exec_runtime(thread.task).0);
        let ran = ran.collect::<Vec<_>>();
        let total = ran.iter().sum::<u64>();
        for (ran, share) in ran.iter().zip([9.375, 9.375, 6.25, 50.0, 25.0]) {
            let percent = *ran as f64 * 100.0 / total as f64;
            assert!((percent - share).abs() < 1.0, "{kernel}: {percent:.2} % of {share} %");
        }
    }
}

/// Threads that move between groups with quotas, idle ones and others, on machines of any size.
#[test]
fn any_groups_on_any_kernel_keep_the_invariants() {
    for round in 0..4 {
        for kernel in GENERATIONS.iter().chain(&["v6.17", "v6.18", "v7.1"]) {
            let name = format!("{kernel} groups {round}");
            let mut random = RandomStream::new(round, &name);
            let (cpus, threads) = (1 + random.below(4), 1 + random.below(2) as u32);
            let mut machine = machine(cpus as u32);
            machine.topology =
                Topology::regular(1, 1, cpus as u32, threads, SmtNumbering::Spread).expect("a machine");
            let script = random_script(&mut random, cpus * u64::from(threads));
            let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine, round);
            engine.set_tracing(true);
            engine.start(script);
            for step in 1..=80 {
                engine.run_until(Ns(step * 2_300_000), &mut ());
                let sound = engine.kernel().check_invariants();
                sound.unwrap_or_else(|fault| panic!("{name} at {}: {fault}", engine.now));
            }
        }
    }
}

fn random_script(random: &mut RandomStream, cpus: u64) -> Box<Script> {
    let count = 1 + random.below(5) as usize;
    let groups = (0..count).map(|index| {
        let (quota, period) = (1 + random.below(8), 5 + random.below(20));
        let max = if random.below(3) == 0 {
            CfsLimit::UNLIMITED
        } else {
            limit(quota, period, random.below(quota))
        };
        let parent = (index > 0 && random.below(2) == 0).then(|| random.below(index as u64) as usize);
        GroupSpec { max, idle: random.below(4) == 0, ..group(parent, 1 + random.below(1000)) }
    });
    let groups = groups.collect();
    let mut threads = random_threads(random, cpus);
    for (spec, actions) in &mut threads {
        spec.group = (random.below(4) > 0).then(|| random.below(count as u64) as usize);
        if random.below(2) == 0 {
            actions.push(Action::EnterGroup(random.below(count as u64) as usize));
        }
    }
    Script::in_groups(groups, threads)
}

#[test]
fn a_thread_that_enters_a_group_has_its_share_and_that_of_an_idle_group_is_small() {
    let ran = |idle: bool| {
        let group = GroupSpec { weight: 300, idle, ..GroupSpec::new("late") };
        let enters = vec![Action::EnterGroup(0), Action::Run(Ns::from_secs(100))];
        let threads = vec![(spec(0, "0"), enters), (spec(0, "0"), hog())];
        let mut engine = Engine::new("v6.6".parse().expect("a kernel"), machine(1), 1);
        engine.start(Script::in_groups(vec![group], threads));
        engine.run_until(Ns::from_secs(4), &mut ());
        let ran = engine.threads.iter().skip(1).map(|thread| engine.kernel().sum_exec_runtime(thread.task).0);
        ran.map(|ns| ns / 10_000_000).collect::<Vec<_>>()
    };
    let shares = ran(false);
    assert!((296..=304).contains(&shares[0]) && (96..=104).contains(&shares[1]), "{shares:?}");
    let shares = ran(true);
    assert!(shares[0] <= 3 && shares[1] >= 396, "{shares:?}");
}

#[test]
fn a_workload_is_refused_for_cpus_that_are_absent_and_for_files_that_a_kernel_lacks() {
    let refused = |kernel: &str, cpus: &str, idle: bool| {
        let group = GroupSpec { idle, ..GroupSpec::new("lowly") };
        let script = Script::in_groups(vec![group], vec![(spec(0, cpus), hog())]);
        let engine = Engine::new(kernel.parse().expect("a kernel"), machine(2), 1);
        engine.refusal(&*script).map(|(problem, _)| problem)
    };
    assert_eq!(refused("v5.15", "0-1", true), None);
    assert_eq!(refused("v5.14", "0-1", false), None);
    let lacks = refused("v5.14", "0-1", true).expect("no such file");
    assert!(lacks.contains("cpu.idle") && lacks.contains("lowly"), "{lacks}");
    let absent = refused("v5.15", "1-2", false).expect("no such CPU");
    assert!(absent.contains("CPU 2") && absent.contains("0-1"), "{absent}");
}

/// Two CPUs use up a group's quota together: one of them runs out later in each period, both go on in the next.
#[test]
fn every_cpu_goes_on_in_the_next_period() {
    for kernel in ["v5.10", "v6.6", "v6.12", "v7.2"] {
        let group = GroupSpec { max: limit(40, 100, 0), ..GroupSpec::new("limited") };
        let in_group = |cpus| ThreadSpec { group: Some(0), ..spec(0, cpus) };
        let threads = vec![(in_group("0"), hog()), (in_group("1"), hog())];
        let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine(2), 1);
        engine.start(Script::in_groups(vec![group], threads));
        engine.run_until(Ns::from_secs(2), &mut ());
        let ran = engine.threads.iter().skip(1).map(|thread| engine.kernel().sum_exec_runtime(thread.task).0);
        let ran = ran.map(|ns| ns / 1_000_000).collect::<Vec<_>>();
        // 800 ms in all, and a slice a CPU and period that was lent.
        assert!(ran.iter().all(|&ms| (340..=500).contains(&ms)), "{kernel}: {ran:?}");
    }
}
