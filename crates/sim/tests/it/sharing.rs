//! What sharing does to benchmarks: each moves by it, and not when it is off.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::topology::SmtNumbering;
use fairlab_kernel::{CpuMask, Topology};
use fairlab_sim::machine::Sharing;
use fairlab_sim::workload::pipe::PipeBench;
use fairlab_sim::workload::spinners::Spinners;
use fairlab_sim::workload::stream::StreamBench;
use fairlab_sim::workload::{Action, ThreadId, ThreadSpec, View, Workload};
use fairlab_sim::{Engine, Machine};

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_string).collect()
}

fn preset(name: &str) -> Machine {
    Machine::preset(name).expect("a machine").exact()
}

fn without(machine: Machine) -> Machine {
    Machine { sharing: Sharing::NONE, ..machine }
}

/// The workload's own metric, or what it counts, at its end.
fn measured(kernel: &str, machine: Machine, workload: Box<dyn Workload>, metric: Option<&str>) -> f64 {
    let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine, 1);
    let number = engine.start(workload);
    engine.run_until(Ns::from_secs(60), &mut ());
    assert!(engine.now() < Ns::from_secs(60), "it has ended");
    let workload = engine.workload(number);
    match metric {
        Some(wanted) => workload.metrics().into_iter().find(|(name, _)| name == wanted).expect(wanted).1,
        None => workload.progress().expect("it counts").1 as f64,
    }
}

/// Threads that fit into the imbalance that is allowed between nodes stay on one, and have half of the memory's bandwidth.
#[test]
fn stream_on_two_sockets_gains_by_the_allowed_imbalance_of_many_caches() {
    let gain = |machine: &dyn Fn() -> Machine| {
        let [before, after] = ["v5.18-numa-imbalance", "v5.18"].map(|kernel| {
            let stream = StreamBench::parse(&words("-n 16 -s 270000000")).expect("options");
            measured(kernel, machine(), Box::new(stream), Some("megabytes_per_s"))
        });
        after / before
    };
    let with = gain(&|| preset("zen3-2s"));
    let off = gain(&|| without(preset("zen3-2s")));
    assert!(with > 1.7, "{with}");
    assert!((0.97..1.03).contains(&off), "{off}");
}

/// 8 cores of 2 threads, whose second ones add a quarter.
fn eight_cores(sharing: Sharing) -> Machine {
    let topology = Topology::regular(1, 1, 8, 2, SmtNumbering::Spread).expect("a machine");
    Machine { topology, idle_states: Vec::new(), sharing, ..preset("laptop8") }
}

#[test]
fn sixteen_threads_on_eight_cores_do_less_than_twice_as_much_as_eight() {
    let gain = |sharing: Sharing| {
        let [eight, sixteen] = [8, 16].map(|threads| {
            let nice = vec!["0"; threads].join(",");
            let spinners = Spinners::parse(&words(&format!("-n {nice} -r 2"))).expect("options");
            measured("v6.12", eight_cores(sharing), Box::new(spinners), None)
        });
        sixteen / eight
    };
    let with = gain(Sharing { smt_speed_2: 640, ..Sharing::NONE });
    assert!((1.2..1.3).contains(&with), "{with}");
    let off = gain(Sharing::NONE);
    assert!((1.95..2.05).contains(&off), "{off}");
}

/// `perf bench sched pipe`, whose tasks may run on one CPU each.
struct Pinned(PipeBench, [Cpu; 2]);

impl Workload for Pinned {
    fn main_thread(&self) -> ThreadSpec {
        self.0.main_thread()
    }

    fn next(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action {
        match self.0.next(thread, view) {
            Action::Spawn(spec) => {
                let place = usize::from(spec.stream.ends_with('2'));
                Action::Spawn(ThreadSpec { allowed: CpuMask::single(self.1[place]), ..spec })
            }
            other => other,
        }
    }

    fn must_wait(&self, thread: ThreadId) -> bool {
        self.0.must_wait(thread)
    }

    fn system_call_done(&mut self, thread: ThreadId) -> Option<ThreadId> {
        self.0.system_call_done(thread)
    }

    fn output(&self, now: Ns) -> String {
        self.0.output(now)
    }

    fn progress(&self) -> Option<(&'static str, u64)> {
        self.0.progress()
    }
}

#[test]
fn a_pipe_is_slower_the_farther_its_ends_are() {
    let took = |machine: Machine, other: u32| {
        let mut engine = Engine::new("v6.12".parse().expect("a kernel"), machine, 1);
        let pipe = PipeBench::parse(&words("-l 2000")).expect("options");
        engine.start(Box::new(Pinned(pipe, [Cpu(0), Cpu(other)])));
        engine.run_until(Ns::from_secs(10), &mut ());
        let number = engine.workload(0).progress().expect("it counts").1;
        assert_eq!(number, 2000);
        let text = engine.workload(0).output(engine.now());
        let us = text.lines().find(|line| line.ends_with("usecs/op")).expect("what an operation takes");
        us.trim().split(' ').next().and_then(|us| us.parse::<f64>().ok()).expect("a number")
    };
    // The costs of a large machine on a small one, where a search for work is short.
    let small = || {
        let topology = Topology::regular(2, 2, 2, 1, SmtNumbering::Adjacent).expect("a machine");
        Machine { topology, ..preset("zen3-2s") }
    };
    // Another core of the cache, another cache of the node, another node.
    let [core, llc, node] = [1, 2, 4].map(|other| took(small(), other));
    assert!(core * 1.05 < llc && llc * 1.05 < node, "{core} {llc} {node} us");
    let [core, llc, node] = [1, 2, 4].map(|other| took(without(small()), other));
    assert!((llc / core - 1.0).abs() < 0.01 && (node / core - 1.0).abs() < 0.01, "{core} {llc} {node} us");
}
