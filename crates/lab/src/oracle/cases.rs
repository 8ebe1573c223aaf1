//! Random cases: machines and workloads in which one kernel follows another.
//!
//! A case is a function of its number, and is printed as a command line that repeats it.
//!
//! Must not know: how a kernel is followed.

use fairlab_sim::rng::RandomStream;

/// A machine, a workload and a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OracleCase {
    /// The machine's name.
    pub machine: String,
    /// The workload's name and options.
    pub workload: Vec<String>,
    /// The run's seed.
    pub seed: u64,
}

/// Layouts: nodes, last-level caches a node, cores a cache, threads a core; from 2 to 256 CPUs.
const LAYOUTS: [&str; 16] = [
    "1x1x2x1", "1x1x4x1", "1x1x3x2", "1x1x8x1", "1x2x4x1", "2x1x4x2", "1x1x10x2", "2x2x4x1", "1x4x6x2",
    "2x1x20x1", "1x1x40x1", "2x1x20x2", "4x1x10x2", "4x2x8x2", "4x1x24x2", "8x1x16x2",
];

/// Threads for each CPU, in halves.
const THREADS: [u64; 6] = [1, 2, 3, 4, 6, 10];

/// Options that a workload may have, each as often as not.
const OPTIONS: [&str; 6] = ["--nice", "--slices", "--policies", "--forks", "--groups", "--cpus"];

impl OracleCase {
    /// The case of this number.
    pub fn of(number: u64) -> OracleCase {
        let mut random = RandomStream::new(number, "oracle case");
        // Small machines come more often: more happens there in the same time.
        let most = 1 + random.below(LAYOUTS.len() as u64);
        let layout = LAYOUTS[random.below(most) as usize];
        let cpus: u64 = layout.split('x').filter_map(|number| number.parse::<u64>().ok()).product();
        let threads = (cpus * THREADS[random.below(THREADS.len() as u64) as usize] / 2).max(2);
        let runtime = (8000 / threads).clamp(40, 400);
        let mut workload = vec!["random".to_string()];
        let mut option = |name: &str, value: Option<u64>| {
            workload.push(name.to_string());
            workload.extend(value.map(|value| value.to_string()));
        };
        option("-t", Some(threads));
        option("-r", Some(runtime));
        option("--run-us", Some([100, 1000, 8000][random.below(3) as usize]));
        option("--sleep-us", Some([100, 1000, 8000][random.below(3) as usize]));
        for name in OPTIONS {
            if random.below(2) == 0 {
                continue;
            }
            match name {
                "--groups" => {
                    option(name, Some(1 + random.below(8)));
                    if random.below(2) == 0 {
                        option("--quotas", None);
                    }
                }
                "--cpus" => option(name, Some(cpus.min(64))),
                name => option(name, None),
            }
        }
        // By number and not by chance, so that the others are what they were before there was exec.
        if number % 5 == 1 {
            option("--execs", None);
        }
        OracleCase { machine: format!("layout:{layout}"), workload, seed: number }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{machines, workloads};

    #[test]
    fn cases_are_possible_and_differ() {
        let cases = (0..400).map(OracleCase::of).collect::<Vec<_>>();
        let layouts = cases.iter().map(|case| case.machine.as_str()).collect::<BTreeSet<_>>();
        assert_eq!(layouts.len(), LAYOUTS.len());
        for case in &cases {
            let machine = machines::find(&case.machine).expect("a machine");
            let workload = workloads::build(&case.workload).expect("a workload");
            assert!(
                workload.named_cpus().and(machine.topology.online()) == workload.named_cpus(),
                "{case:?}"
            );
        }
        for option in OPTIONS.iter().chain(&["--quotas", "--execs"]) {
            let with = cases.iter().filter(|case| case.workload.iter().any(|word| word == option)).count();
            assert!((60..340).contains(&with), "{option} {with}");
        }
        assert_eq!(OracleCase::of(7), OracleCase::of(7));
    }
}
