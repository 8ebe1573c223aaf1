//! The files of `examples/workloads` in the language of tasks: each runs, does what its comment says, and shows what it is for.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fairlab_event::{Event, EventKind, Ns, sink_fn};
use fairlab_kernel::Topology;
use fairlab_kernel::topology::SmtNumbering;
use fairlab_sim::workload::catalogue;
use fairlab_sim::{Engine, Machine};

fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/workloads").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a run came to.
struct Run {
    numbers: BTreeMap<String, f64>,
    per_s: f64,
    /// By task name: how many wakeups, and the time from each to the switch.
    wakeups: BTreeMap<String, (u64, Vec<Ns>)>,
}

impl Run {
    fn number(&self, name: &str) -> f64 {
        *self.numbers.get(name).unwrap_or_else(|| panic!("{name}: {:?}", self.numbers))
    }

    fn woken(&self, name: &str) -> u64 {
        self.wakeups.get(name).map_or(0, |(count, _)| *count)
    }

    /// The 99th percentile of waits after wakeups.
    fn wait_p99(&self, name: &str) -> Ns {
        let mut waits = self.wakeups.get(name).map_or(Vec::new(), |(_, waits)| waits.clone());
        waits.sort_unstable();
        waits.get(waits.len() * 99 / 100).copied().unwrap_or_default()
    }
}

fn run(text: &str, machine: Machine, kernel: &str, length: Ns) -> Run {
    let files = |_: &str| Ok(text.to_string());
    let command = ["tasks", "file"].map(String::from);
    let mut workload = catalogue::build(&command, &files).unwrap_or_else(|error| panic!("{error}"));
    let settling = Ns::from_ms(200);
    workload.settle(settling);
    let mut engine = Engine::new(kernel.parse().expect(kernel), machine, 1);
    engine.set_tracing(true);
    engine.start(workload);
    let (mut woken, mut wakeups) = (BTreeMap::new(), BTreeMap::<String, (u64, Vec<Ns>)>::new());
    let mut see = |event: &Event<'_>| match &event.kind {
        EventKind::SchedWakeup(wakeup) => {
            woken.insert(wakeup.pid, event.time);
            wakeups.entry(wakeup.comm.to_string()).or_default().0 += 1;
        }
        EventKind::SchedSwitch(switch) => {
            if let Some(since) = woken.remove(&switch.next_pid) {
                let waits = &mut wakeups.entry(switch.next_comm.to_string()).or_default().1;
                waits.push(event.time.since(since));
            }
        }
        _ => {}
    };
    engine.run_until(settling + length, &mut sink_fn(|event: &Event<'_>| see(event)));
    let workload = engine.workload(0);
    let count = workload.progress().map_or(0.0, |(_, count)| count as f64);
    Run { numbers: workload.metrics().into_iter().collect(), per_s: count / length.as_secs_f64(), wakeups }
}

fn on_laptop(name: &str, kernel: &str, length_ms: u64) -> Run {
    run(&text(name), Machine::preset("laptop8").expect("a machine"), kernel, Ns::from_ms(length_ms))
}

#[test]
fn a_web_server_answers_what_comes_and_latency_counts_from_arrival() {
    let served = on_laptop("web-server.toml", "v6.12", 2_000);
    assert!((5_700.0..6_300.0).contains(&served.per_s), "{}", served.per_s);
    let (p50, p99) =
        (served.number("requests request_latency_ns_p50"), served.number("requests request_latency_ns_p99"));
    assert!((200e3..600e3).contains(&p50), "{p50}");
    assert!(p99 > 5e6, "a tenth waits for 5 ms and more: {p99}");
    assert_eq!(served.number("requests dropped"), 0.0);
    // Ten times as much comes: more than eight CPUs can do.
    let crowded = text("web-server.toml").replace("poisson 6000/s", "poisson 60000/s");
    let crowded = run(&crowded, Machine::preset("laptop8").expect("a machine"), "v6.12", Ns::from_ms(1_000));
    assert!(crowded.number("requests dropped") > 1_000.0 && crowded.per_s < 40_000.0, "{}", crowded.per_s);
    assert!(crowded.number("requests request_latency_ns_p50") > 20.0 * p50);
}

#[test]
fn a_pipeline_passes_on_what_comes() {
    let passed = on_laptop("pipeline.toml", "v6.12", 2_000);
    assert!((3_800.0..4_200.0).contains(&passed.per_s), "{}", passed.per_s);
    let p50 = passed.number("filtered request_latency_ns_p50");
    assert!((500e3..2e6).contains(&p50), "all three stages: {p50}");
}

#[test]
fn a_herd_is_woken_for_each_request_where_all_are() {
    let herd = on_laptop("epoll-herd.toml", "v6.12", 1_000);
    let one = text("epoll-herd.toml").replace("wake = \"all\"", "wake = \"one\"");
    let one = run(&one, Machine::preset("laptop8").expect("a machine"), "v6.12", Ns::from_ms(1_000));
    for served in [&herd, &one] {
        assert!((2_850.0..3_150.0).contains(&served.per_s), "{}", served.per_s);
    }
    assert!(one.woken("epoll") < 4_500, "{:?}", one.woken("epoll"));
    assert!(herd.woken("epoll") > 40_000, "{:?}", herd.woken("epoll"));
}

#[test]
fn sysbench_waits_for_each_answer() {
    let few = text("sysbench-oltp.toml").replace("count = 24", "count = 1");
    let few = run(&few, Machine::preset("laptop8").expect("a machine"), "v6.12", Ns::from_ms(1_000));
    let many = on_laptop("sysbench-oltp.toml", "v6.12", 1_000);
    assert!(
        few.per_s > 100.0
            && many.number("sysbench replies_per_s") > 5.0 * few.number("sysbench replies_per_s")
    );
    let latency = "sysbench request_latency_ns_p99";
    assert!(many.number(latency) > few.number(latency));
    assert!(many.number("rows lock_wait_ns_p99") > 0.0 && few.number("rows lock_wait_ns_p99") == 0.0);
}

/// 79104becf42b (v6.19): who yields forfeits the rest of its request, so the other task gets nearly all of the CPU.
#[test]
fn a_poller_that_yields_leaves_the_cpu_since_v6_19() {
    let per_s = |kernel: &str| on_laptop("yield.toml", kernel, 1_000).per_s;
    let (before, after) = (per_s("v6.18"), per_s("v6.19"));
    assert!((480.0..520.0).contains(&before) && after > 900.0, "{before} {after}");
}

/// 85e511df3cec (v6.12): whoever has a shorter slice preempts.
#[test]
fn a_short_slice_shortens_waits_since_v6_12() {
    let p99 = |kernel: &str| on_laptop("desktop.toml", kernel, 3_000).wait_p99("cyclictest");
    let (before, after) = (p99("v6.11"), p99("v6.12"));
    assert!(after.0 * 5 < before.0 * 4, "{before} {after}");
    let without = text("desktop.toml").replace("slice = \"0.5ms\"\n", "");
    let laptop = Machine::preset("laptop8").expect("a machine");
    let without = run(&without, laptop, "v6.12", Ns::from_ms(3_000)).wait_p99("cyclictest");
    assert!(after.0 * 5 < without.0 * 4, "{after} {without}");
}

/// A database on 96 CPUs: without faults under its spinning lock, the lock is hardly waited for, whatever the preemption model.
#[test]
fn faults_under_a_spinning_lock_are_what_it_is_waited_for() {
    let topology = Topology::regular(1, 1, 96, 1, SmtNumbering::Adjacent).expect("96 CPUs");
    let usual = Machine::preset("laptop8").expect("a machine");
    let machine = Machine { topology, frequency_domains: Vec::new(), idle_states: Vec::new(), ..usual };
    let on = |name: &str, kernel: &str| run(&text(name), machine.clone(), kernel, Ns::from_ms(150));
    for kernel in ["v6.19+PREEMPT_NONE", "v7.0"] {
        let (small, huge) = (on("postgres-spinlock.toml", kernel), on("postgres-huge-pages.toml", kernel));
        assert!(small.per_s > 50_000.0 && huge.per_s > 50_000.0, "{kernel}: {} {}", small.per_s, huge.per_s);
        let (with, without) =
            (small.number("strategy lock_spin_share"), huge.number("strategy lock_spin_share"));
        assert!(with > 3.0 * without, "{kernel}: {with} {without}");
        let (with, without) =
            (small.number("strategy lock_hold_ns_p99"), huge.number("strategy lock_hold_ns_p99"));
        assert!(with > 3.0 * without && with > 900.0, "{kernel}: {with} {without}");
    }
}
