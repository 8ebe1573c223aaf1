//! Workloads side by side: the example of the guide on modelled kernels, and what each kind of kernel makes of a file.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use fairlab_event::Ns;
use fairlab_lab::{Kernel, RunResult, RunSpec, machines, run};

fn example(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name).display().to_string()
}

fn result(kernel: &str, words: &[&str], machine: &str, duration: Ns) -> RunResult {
    let words = words.iter().map(ToString::to_string).collect();
    let kernel = Kernel::parse(kernel).expect(kernel);
    let machine = machines::find(machine).expect(machine);
    let spec = RunSpec { warmup: Some(Ns::ZERO), ..RunSpec::new(kernel, machine, words, 1, duration) };
    run(&spec, &AtomicBool::new(false)).expect("a run").expect("it was not stopped")
}

#[test]
fn the_example_of_the_guide_does_what_it_says() {
    for kernel in ["v5.10", "v6.6", "v6.12"] {
        let result = result(kernel, &[&example("mix.toml")], "laptop8", Ns::from_secs(60));
        let metric = |name: &str| result.metric(name).unwrap_or_else(|| panic!("{kernel}: {name}"));
        assert_eq!(result.simulated_ns / 100_000_000, 30, "{kernel}: it ends with the database");
        // 4000 requests a second of 400 us each are less than two CPUs.
        assert!((3500.0..4500.0).contains(&metric("database throughput")), "{kernel}");
        assert!((metric("database throughput") - metric("throughput")).abs() < 200.0, "{kernel}");
        assert!(metric("backup throughput") > 100.0, "{kernel}");
        assert!(result.output.contains("── backup: jobs spin -n 12"), "{}", result.output);
    }
}

#[test]
fn a_neighbour_slows_a_workload_and_leaves_it_its_headline() {
    let words = ["mix", "--beside", "jobs spin -n 40", "tbench", "-c", "8", "--run-ms", "300"];
    let beside = result("v6.6", &words, "laptop8", Ns::from_secs(9));
    let alone = result("v6.6", &words[3..], "laptop8", Ns::from_secs(9));
    let rate = |result: &RunResult| result.metric("throughput").expect("a rate");
    assert!(rate(&beside) < 0.8 * rate(&alone), "{} beside, {} alone", rate(&beside), rate(&alone));
    assert_eq!(beside.workload, "mix --beside 'jobs spin -n 40' tbench -c 8 --run-ms 300");
    let headline = fairlab_lab::workloads::headline(&beside.workload);
    assert_eq!(headline, "throughput");
}

/// To v5.5 each wakeup by the kworker of its own CPU sends the client to another, idle one; without the rule v5.6 does that, too.
#[test]
fn who_is_woken_by_the_kworker_of_its_cpu_stays_there() {
    let moves = |kernel: &str| {
        let file = example("workloads/xfs-log.toml");
        let result = result(kernel, &[&file], "layout:1x1x8x1", Ns::from_ms(200));
        result.metric("migrations_per_s").expect("a rate")
    };
    for (kernel, stays) in [("v5.6", true), ("v5.5", false), ("v5.6-kthread-stacking", false)] {
        let moves = moves(kernel);
        assert!(if stays { moves < 100.0 } else { moves > 1_000.0 }, "{kernel}: {moves} a second");
    }
}

/// Weights, a quota, cpusets and a move come out as they are on paper, by the model and by kernels' own code.
#[test]
fn places_do_on_own_code_what_they_do_in_the_model() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/mixes/places.toml");
    let file = file.display().to_string();
    let rates = |kernel: &str| {
        let result = result(kernel, &[&file], "vm4", Ns::from_secs(9));
        ["heavy", "light", "limited", "moved"].map(|name| {
            result.metric(&format!("{name} throughput")).unwrap_or_else(|| panic!("{kernel}: {name}"))
        })
    };
    for kernel in ["v6.1", "src:debian:6.1"] {
        let [heavy, light, limited, moved] = rates(kernel);
        assert!((2.8..3.2).contains(&(heavy / light)), "{kernel}: weights of 300 and 100: {heavy} {light}");
        assert!((950.0..1010.0).contains(&(heavy + light)), "{kernel}: both on one CPU: {heavy} {light}");
        // Half of 5 % of the first 300 ms; then a hundredth of the CPU, by weights of 100 and 10000: 7.5 and 6.9 operations.
        assert!((10.0..18.0).contains(&limited), "{kernel}: {limited}");
        // The other half, and the rest of that CPU from then on, 7.5 and 693, of the second less the settling, a fifth at most.
        assert!((670.0..880.0).contains(&moved), "{kernel}: {moved}");
    }
}

/// What a kernel of its own code has no words for is refused by name.
#[test]
fn autogroups_of_own_code_are_refused_by_name() {
    let refused = Kernel::parse("src:debian:6.1+AUTOGROUP").map(|kernel| {
        let words = ["mix", "--beside", "jobs spin -n 2", "pipe", "-l", "9"].map(String::from).to_vec();
        let machine = machines::find("vm4").expect("a machine");
        let spec = RunSpec::new(kernel, machine, words, 1, Ns::from_ms(100));
        run(&spec, &AtomicBool::new(false)).err()
    });
    let said = match refused {
        Ok(error) => error.expect("it has none").to_string(),
        Err(error) => error.to_string(),
    };
    assert!(said.contains("src:debian:6.1+AUTOGROUP has no feature 'AUTOGROUP'"), "{said}");
}
