//! Recordings of one program's switches (`perf record --switch-events` without `-a`), of which perf's own listing was added up:
//! how often a thread came back that had left runnable, how long that took at most and in all, and how long threads ran. A
//! tracepoint counts before the record that follows it. A thread runs until its EXIT, behind which no switch of it comes.

use std::path::{Path, PathBuf};

use fairlab_analysis::latency::{Latency, LatencyOptions};
use fairlab_analysis::metrics::Metrics;
use fairlab_analysis::summary::{SummaryOptions, TraceSummary};
use fairlab_event::{Event, EventKind, Ns, Sink, System, sink_fn};
use fairlab_trace::{ReadOptions, Trouble, read_path};

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

/// What perf's listing comes to.
struct OwnSwitches {
    file: &'static str,
    trouble: (Trouble, u64),
    /// Waits after preemptions: how many, the longest, and all together.
    waits: (u64, u64, u64),
    /// Of the three threads that compute, the first one's id and how long it ran.
    ran: (i32, u64),
}

const RECORDED: [OwnSwitches; 3] = [
    OwnSwitches {
        file: "perf-own-switches-tracepoint.data.zst",
        trouble: (Trouble::OwnSwitches, 116),
        waits: (123, 79_961_749, 4_173_043_863),
        ran: (11054, 180_222_452),
    },
    OwnSwitches {
        file: "perf-own-switches-no-cpu.data.zst",
        trouble: (Trouble::SwitchesWithoutCpu, 273),
        waits: (128, 68_284_238, 4_158_951_438),
        ran: (11101, 145_183_386),
    },
    OwnSwitches {
        file: "perf-own-switches.data.zst",
        trouble: (Trouble::OwnSwitches, 349),
        waits: (166, 60_074_571, 3_647_420_324),
        ran: (11173, 146_151_664),
    },
];

#[test]
fn waits_after_preemptions_are_as_perf_lists_them() {
    for OwnSwitches { file, trouble: (trouble, count), waits: (waits, longest, all), ran: (tid, time) } in
        RECORDED
    {
        let mut summary = TraceSummary::new(SummaryOptions::default());
        let stats = read_path(&testdata(file), &ReadOptions::default(), &mut summary).expect(file);
        assert_eq!(stats.count(trouble), count, "{file}");
        let report = summary.finish().expect("switches");
        let preempted = &report.all.preemptions;
        assert_eq!((preempted.total(), preempted.max()), (waits, Some(longest)), "{file}");
        assert_eq!(report.all.crossed, 0, "{file}: nothing of these threads is missing");
        assert!(!report.tells_cpus && report.cpus.is_empty() && report.unconserved.is_empty(), "{file}");
        assert_eq!(report.idle_share(), None, "{file}");
        let task = report.tasks.iter().find(|task| task.pid.is_some_and(|pid| pid.0 == tid)).expect("it ran");
        assert_eq!(task.run, Ns(time), "{file}");

        let mut latency = Latency::new(LatencyOptions { by_pid: true, ..LatencyOptions::default() });
        read_path(&testdata(file), &ReadOptions::default(), &mut latency).expect(file);
        let table = latency.finish().expect("switches");
        assert_eq!(table.crossed, 0, "{file}");
        let told: u64 = table.rows.iter().map(|row| row.total_delay.0).sum();
        assert_eq!(told, all, "{file}");
    }
}

/// Where CPUs are not told, or what they do besides, no number is about them.
#[test]
fn nothing_is_measured_of_cpus() {
    for OwnSwitches { file, waits: (waits, ..), .. } in RECORDED {
        let mut metrics = Metrics::new(0, Ns::ZERO);
        let mut end = Ns::ZERO;
        let clock = sink_fn(|event: &Event<'_>| end = event.time);
        read_path(&testdata(file), &ReadOptions::default(), &mut (&mut metrics, clock)).expect(file);
        let counts = metrics.into_counts(end);
        assert_eq!(counts.cpu_ns, 0, "{file}");
        let of_cpus = |name: &str| ["idle_share", "unconserved_share"].contains(&name);
        assert!(!counts.metrics().iter().any(|(name, _)| of_cpus(name)), "{file}");
        assert!(counts.involuntary_switches >= waits, "{file}");
    }
}

/// Each thread stands on one CPU of its own, and the machine has none.
#[test]
fn threads_without_cpus_do_not_move() {
    #[derive(Default)]
    struct Places(std::collections::BTreeMap<i32, std::collections::BTreeSet<u32>>, System);
    impl Sink for Places {
        fn event(&mut self, event: &Event<'_>) {
            if let EventKind::SchedSwitch(switch) = &event.kind {
                let tid = switch.prev_pid.0.max(switch.next_pid.0);
                self.0.entry(tid).or_default().insert(event.cpu.0);
            }
        }

        fn system(&mut self, system: &System) {
            self.1.clone_from(system);
        }
    }
    let mut places = Places::default();
    let file = testdata("perf-own-switches-no-cpu.data.zst");
    read_path(&file, &ReadOptions::default(), &mut places).expect("a recording");
    assert!(places.0.len() > 5 && places.0.values().all(|cpus| cpus.len() == 1), "{:?}", places.0);
    assert_eq!(
        (places.1.cpus, places.1.topology.len(), places.1.scope.name()),
        (None, 0, Some("tasks without CPUs"))
    );
}
