//! Balancing as `/proc/schedstat` counts it, beside what real kernels counted under the same load on the same machine:
//! 16 CPUs in 8 cores, HZ 1000, `schbench -m 2 -t 8 -c 200000 -s 1000`.
//!
//! The counters are sums over all CPUs, for about 5 s. What the tick drives is compared for each jiffy, what tasks drive
//! for each second: on the recorded virtual machines two jiffies passed in a millisecond from v5.7 on.

use std::sync::atomic::AtomicBool;

use fairlab_event::Ns;
use fairlab_kernel::Topology;
use fairlab_kernel::topology::SmtNumbering;
use fairlab_lab::{RunSpec, run};
use fairlab_sim::Machine;

/// What a real kernel counted: calls of `load_balance()` by domain (SMT, MC) for idle, busy and newly idle CPUs, and
/// active balancing at the upper one.
struct Recorded {
    kernel: &'static str,
    jiffies: u64,
    ms: u64,
    calls: [[u64; 3]; 2],
    pushes: u64,
}

const SECONDS: u64 = 5;

const RECORDED: [Recorded; 4] = [
    Recorded {
        kernel: "v5.2",
        jiffies: 5123,
        ms: 5110,
        calls: [[2523, 410, 361], [390, 12, 358]],
        pushes: 0,
    },
    Recorded {
        kernel: "v5.7",
        jiffies: 10180,
        ms: 5090,
        calls: [[5536, 1039, 365], [895, 0, 365]],
        pushes: 38,
    },
    Recorded {
        kernel: "debian-5.10-16b0a7a1a0af",
        jiffies: 10072,
        ms: 5040,
        calls: [[5696, 2076, 356], [929, 2, 356]],
        pushes: 38,
    },
    Recorded {
        kernel: "debian-5.10",
        jiffies: 10080,
        ms: 5030,
        calls: [[4977, 2123, 316], [666, 10, 241]],
        pushes: 0,
    },
];

/// Sums over CPUs of a domain's columns.
fn sums(schedstat: &str, domain: &str) -> Vec<u64> {
    let mut sums = Vec::new();
    for line in schedstat.lines().filter(|line| line.starts_with(domain)) {
        let columns = line.split(' ').skip(2).map(|column| column.parse::<u64>().expect("a number"));
        let columns = columns.collect::<Vec<_>>();
        sums.resize(columns.len().max(sums.len()), 0);
        sums.iter_mut().zip(columns).for_each(|(sum, column)| *sum += column);
    }
    sums
}

fn counted(kernel: &str) -> String {
    let topology = Topology::regular(1, 1, 8, 2, SmtNumbering::Adjacent).expect("a machine");
    let workload = ["schbench", "-m", "2", "-t", "8", "-c", "200000", "-s", "1000", "-r", "5"];
    let spec = RunSpec::new(
        kernel.parse().expect("a kernel"),
        Machine { topology, hz: 1000, ..Machine::preset("laptop8").expect("a preset").exact() },
        workload.iter().map(ToString::to_string).collect(),
        1,
        Ns::from_secs(SECONDS),
    );
    run(&spec, &AtomicBool::new(false)).expect("a run").expect("not stopped").schedstat
}

/// Whether the model's count is within 30 % of what a real kernel counted in the same time, or within `few`.
fn is_near(model: u64, real: f64, few: f64) -> bool {
    (model as f64 - real).abs() <= (0.3 * real).max(few)
}

#[test]
fn balancing_is_as_frequent_as_by_real_kernels() {
    for recorded in &RECORDED {
        let schedstat = counted(recorded.kernel);
        let by_jiffy = |count: u64| count as f64 * (1000 * SECONDS) as f64 / recorded.jiffies as f64;
        let by_time = |count: u64| count as f64 * (1000 * SECONDS) as f64 / recorded.ms as f64;
        for (level, calls) in recorded.calls.iter().enumerate() {
            let sums = sums(&schedstat, &format!("domain{level} "));
            let real = [by_jiffy(calls[0]), by_jiffy(calls[1]), by_time(calls[2])];
            for (kind, name) in ["idle", "busy", "newly idle"].into_iter().enumerate() {
                assert!(
                    is_near(sums[8 * kind], real[kind], 25.0),
                    "{}: domain{level}, {name}: {} calls, real {:.0}",
                    recorded.kernel,
                    sums[8 * kind],
                    real[kind]
                );
            }
        }
        let pushes = sums(&schedstat, "domain1 ")[26];
        let real = by_jiffy(recorded.pushes);
        assert!(is_near(pushes, real, 6.0), "{}: {pushes} tasks pushed, real {real:.0}", recorded.kernel);
    }
}
