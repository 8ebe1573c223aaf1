//! True speeds hold for own code as for the model, and no longer make a difference where the kernel is told of them.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use fairlab_event::Ns;
use fairlab_lab::{Experiment, RunResult, RunSetting, machines, run_all};
use fairlab_sim::Machine;
use fairlab_sim::machine::TrueSpeeds;

fn throughput_of(run: &RunResult) -> f64 {
    run.metrics.iter().find(|(name, _)| name == "throughput").expect("throughput").1
}

/// Rounds a second of sixteen hogs on the hybrid laptop, by kernel.
fn throughput(speeds: impl Fn(&Machine) -> TrueSpeeds) -> BTreeMap<String, f64> {
    let laptop = machines::find("alder-lake16").expect("a machine").exact();
    let machine = Machine { speeds: speeds(&laptop), idle_states: Vec::new(), ..laptop };
    let words = "spinners -n 0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0 -r 1".split(' ').map(String::from).collect();
    let setting = RunSetting { warmup: Some(Ns::ZERO), ..RunSetting::new(machine, words, Ns::from_secs(1)) };
    let kernels = ["v6.1", "src:debian:6.1"].map(|name| name.parse().expect("a kernel")).to_vec();
    let experiment = Experiment::of_setting(kernels, &setting, vec![1]);
    let (runs, _) = run_all(&experiment.specs(), 2, &|_| {}, &AtomicBool::new(false)).expect("runs");
    runs.iter().map(|run| (run.kernel.clone(), throughput_of(run))).collect()
}

#[test]
fn efficient_cores_and_boosts_slow_own_code_as_they_slow_the_model() {
    let equal = throughput(|_| TrueSpeeds::default());
    let true_speeds = throughput(|laptop| laptop.speeds.clone());
    assert_eq!(equal.len(), 2, "{equal:?}");
    // 8 threads at 894 and 8 cores at 583 * 903 of 1024.
    let expected = (8.0 * 894.0 + 8.0 * 583.0 * 903.0 / 1024.0) / (16.0 * 1024.0);
    for (kernel, done) in &true_speeds {
        let ratio = done / equal[kernel];
        assert!((ratio / expected - 1.0).abs() < 0.02, "{kernel}: {ratio} where {expected} is expected");
    }
}
