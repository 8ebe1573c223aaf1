//! Bisections of tables: what a kernel's runs give is written down, so what the search has to say is known.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;

use fairlab_change::SearchTrials;
use fairlab_change::bisect::{BisectQuestion, BisectSpec, Bisection, SearchFinding, bisect};
use fairlab_event::Ns;
use fairlab_lab::cells::Crew;
use fairlab_lab::{Kernel, LabError, RunSetting, machines};
use serde_json::{Value, json};

/// What a run gives: by the commits that its kernel holds, and its seed.
type Table = fn(&dyn Fn(&str) -> bool, u64) -> f64;

/// Gives what a table says instead of runs.
struct TableCrew {
    table: Table,
    out: VecDeque<Value>,
}

impl Crew for TableCrew {
    fn cpus(&self) -> usize {
        1
    }

    fn send(&mut self, batch: String) -> Result<(), LabError> {
        self.out.push_back(serde_json::from_str(&batch).expect("a batch"));
        Ok(())
    }

    fn records(&mut self, _: &AtomicBool) -> Result<Option<Vec<Value>>, LabError> {
        let batch = self.out.pop_front().expect("a batch is out");
        let cells = batch["work"]["trials"]["cells"].as_array().expect("cells").clone();
        Ok(Some(cells.iter().map(|cell| self.record(cell)).collect()))
    }

    fn cancel(&mut self) {
        self.out.clear();
    }
}

impl TableCrew {
    fn record(&self, cell: &Value) -> Value {
        let (name, seed) =
            (cell["kernel"].as_str().expect("a kernel"), cell["seed"].as_u64().expect("a seed"));
        let kernel = Kernel::parse(name).expect("a kernel");
        let rules = kernel.rules("a table").expect("modelled");
        let value = (self.table)(&|id| rules.changes().any(|change| change.id() == id), seed);
        let waits = json!({ "min": null, "max": null, "sum": "0", "buckets": [] });
        json!({
            "cell": cell["cell"],
            "output": "", "trace_losses": "", "schedstat": "", "schedstat_searches": "", "cgroups": "", "tasks": "", "probes": "",
            "counts": {
                "runs": 1, "observed_ns": 1, "cpu_ns": 1, "idle_ns": 0, "unconserved_ns": 0, "switches": 0,
                "involuntary_switches": 0, "migrations": 0, "wakeup_latency_ns": waits
            },
            "run": {
                "kernel": name, "machine": "laptop8", "workload": "pipe", "seed": seed, "digest": format!("{name} {seed}"),
                "begin_ns": null, "settled_ns": null, "early_excess": null, "simulated_ns": 1, "wall_ns": 1, "switches": 0,
                "metrics": { "throughput": value }
            }
        })
    }
}

fn search(table: Table) -> Bisection {
    let setting = RunSetting {
        machine: machines::find("laptop8").expect("a machine"),
        machine_name: "laptop8".to_string(),
        workload: vec!["pipe".to_string()],
        warmup: Some(Ns::ZERO),
        duration: Ns::from_ms(1),
        first_seed: 1,
        by_name: Default::default(),
        time: Default::default(),
    };
    let spec = BisectSpec {
        good: "v6.5".parse().expect("a kernel"),
        bad: "v6.6".parse().expect("a kernel"),
        question: BisectQuestion::parse("throughput").expect("a metric"),
        setting: setting.clone(),
        margin: 0.005,
        error: 0.01,
        runs_max: 40,
    };
    let stop = AtomicBool::new(false);
    let mut crew = TableCrew { table, out: VecDeque::new() };
    bisect(&spec, &mut SearchTrials::new(&setting, 1, &|_| {}, &stop).by(&mut crew)).expect("an answer")
}

/// Evenly spread between -1 and 1, without a pattern over seeds.
fn chance(seed: u64, stream: u64) -> f64 {
    let mixed =
        (seed ^ (stream << 32)).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 29)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

const CURB: &str = "63304558ba5d";
const EEVDF: &str = "147f3efaa241";

fn step(holds: &dyn Fn(&str) -> bool, by: f64) -> f64 {
    if holds(CURB) { 249.0 - by } else { 249.0 }
}

/// A step between two neighbours is named whatever kind of chance lies over it, as long as it is sure.
#[test]
fn a_sure_step_between_neighbours_names_its_commit() {
    let tables: [(&str, Table); 6] = [
        ("little chance", |holds, seed| step(holds, 12.0) + chance(seed, u64::from(holds(CURB)))),
        ("chance of the seed that all kernels share", |holds, seed| {
            step(holds, 12.0) + 100.0 * chance(seed, 7) + 0.5 * chance(seed, u64::from(holds(CURB)))
        }),
        ("alike but for the step", |holds, seed| step(holds, 12.0) * (1.0 + 0.3 * chance(seed, 3))),
        ("no chance before the step", |holds, seed| {
            step(holds, 12.0) + if holds(CURB) { chance(seed, 5) } else { 0.0 }
        }),
        ("no chance behind it", |holds, seed| {
            step(holds, 12.0) + if holds(CURB) { 0.0 } else { chance(seed, 5) }
        }),
        ("another small step before", |holds, seed| {
            step(holds, 12.0) - if holds(EEVDF) { 1.0 } else { 0.0 }
                + 0.5 * chance(seed, u64::from(holds(CURB)))
        }),
    ];
    for (what, table) in tables {
        let found = search(table);
        let steps = found.crossings.iter().flat_map(|crossing| &crossing.steps);
        let named = steps.map(fairlab_change::WayStep::id).collect::<Vec<_>>();
        assert_eq!(
            (found.finding, named),
            (SearchFinding::Found, vec![CURB.to_string()]),
            "{what}: {found:#?}"
        );
    }
}

/// Several commits are what is sure of them; where that is not sure it is told what is open.
#[test]
fn what_is_not_sure_is_open() {
    let steps: Table = |holds, seed| {
        let parts = [EEVDF, "e0c2ff903c32", "86bfbb7ce4f6", CURB].iter().filter(|id| holds(id)).count();
        249.0 - 3.0 * parts as f64 + 0.2 * chance(seed, parts as u64)
    };
    assert_eq!(search(steps).finding, SearchFinding::Several);
    let noisy: Table = |holds, seed| {
        let parts =
            u64::from(holds(CURB)) + 2 * u64::from(holds(EEVDF)) + 4 * u64::from(holds("86bfbb7ce4f6"));
        step(holds, 12.0) + 16.0 * chance(seed, 11 + parts)
    };
    let found = search(noisy);
    let is_open = found.notices.iter().any(|notice| notice.starts_with("open: "));
    assert_eq!(found.finding == SearchFinding::Undecided, is_open, "{found:#?}");
    assert_ne!(found.finding, SearchFinding::Several, "{found:#?}");
    if found.finding == SearchFinding::Found {
        assert_eq!(found.crossings[0].steps.last().map(fairlab_change::WayStep::id).as_deref(), Some(CURB));
    }
    let alike: Table = |_, seed| 249.0 + 0.1 * chance(seed, 2);
    assert_eq!(search(alike).finding, SearchFinding::Nothing);
}
