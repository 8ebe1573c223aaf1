//! What is left for a fair task beside a real-time one that never sleeps: the timers that see to it are the engine's.

use fairlab_event::{Event, EventKind, Ns, sink_fn};
use fairlab_sim::workload::catalogue;
use fairlab_sim::{Engine, Machine};

const HOG_AND_FAIR: &str = r#"
[[task]]
name = "hog"
policy = "fifo:10"
cpus = "0"
steps = ["run 1ms"]
[[task]]
name = "fair"
cpus = "0"
steps = ["run 1ms"]
"#;

/// How long the fair task ran in four seconds and a half, in ms, and for how long at most it waited.
fn fair(kernel: &str) -> (u64, u64) {
    let files = |_: &str| Ok(HOG_AND_FAIR.to_string());
    let command = ["tasks", "file"].map(String::from);
    let workload = catalogue::build(&command, &files).unwrap_or_else(|error| panic!("{error}"));
    let machine = Machine::preset("laptop8").expect("a machine").exact();
    let mut engine = Engine::new(kernel.parse().expect(kernel), machine, 1);
    engine.set_tracing(true);
    engine.start(workload);
    let (mut since, mut left, mut ran, mut waited) = (None, Ns::ZERO, Ns::ZERO, Ns::ZERO);
    let mut see = |event: &Event<'_>| {
        let EventKind::SchedSwitch(switch) = &event.kind else { return };
        if switch.next_comm.to_string() == "fair" {
            since = Some(event.time);
            waited = waited.max(event.time.since(left));
        } else if let Some(since) = since.take() {
            ran += event.time.since(since);
            left = event.time;
        }
    };
    engine.run_until(Ns::from_ms(4_500), &mut sink_fn(&mut see));
    (ran.0 / 1_000_000, waited.0 / 1_000_000)
}

/// By throttling of real-time tasks to v6.11, by the fair server from v6.12 on.
#[test]
fn a_fair_task_has_fifty_milliseconds_of_each_second() {
    for kernel in ["v5.10", "v6.1", "v6.11", "v6.12", "v6.18", "v7.2", "debian-6.12"] {
        let (ran, waited) = fair(kernel);
        assert!(ran.abs_diff(200) <= 20, "{kernel}: {ran} ms");
        assert!(waited.abs_diff(950) <= 12, "{kernel}: it waits for {waited} ms");
    }
}

#[test]
fn without_a_server_it_has_nothing() {
    for kernel in ["v6.12,fair_server_runtime=0", "v7.2,fair_server_runtime=0"] {
        assert_eq!(fair(kernel).0, 0, "{kernel}");
    }
}
