//! What a page has beside an answer: how times are distributed on each side, and which runs they come from.
//!
//! Must not know: how a page draws it.

use std::path::PathBuf;

use fairlab_analysis::counts::Counts;
use fairlab_analysis::histogram::Histogram;
use fairlab_lab::RunResult;
use fairlab_lab::merge::Merged;
use fairlab_page::packed::packed;
use serde_json::{Value, json};

/// One kind of times among a run's counts.
type Times = fn(&Counts) -> Option<&Histogram>;

/// Times that runs count, each with its words.
const TIMES: [(&str, Times); 3] = [
    ("Wakeup latency", |counts| Some(&counts.wakeup_latency)),
    ("Waits of throttled groups", |counts| Some(&counts.throttles.as_ref()?.throttled_wait)),
    ("Waits after preemption", |counts| Some(&counts.throttles.as_ref()?.preemption_wait)),
];

/// The parts of runs of some kernels, the baseline's name first.
pub fn of_runs(workload: &str, kernels: &[String], runs: &[RunResult]) -> Value {
    let sides = kernels.iter().map(|kernel| {
        let mut all = Counts::default();
        runs.iter().filter(|run| run.kernel == *kernel).for_each(|run| all.merge(&run.counts));
        (kernel.clone(), all)
    });
    let row = |run: &RunResult| {
        json!({
            "kernel": run.kernel,
            "machine": run.machine,
            "seed": run.has_seed().then_some(run.seed),
            "digest": run.digest,
        })
    };
    json!({
        "workload": workload,
        "distributions": distributions(&sides.collect::<Vec<_>>()),
        "runs": runs.iter().map(row).collect::<Vec<_>>(),
    })
}

/// The parts of folders of runs, one a side; nothing where a folder has no counts of its runs.
pub fn of_folders(folders: &[PathBuf], sides: &[String]) -> Value {
    let read = folders.iter().zip(sides).map(|(folder, side)| {
        let mut merged = Merged::default();
        merged.add_path(folder).ok()?;
        Some((side.clone(), merged.all()))
    });
    match read.collect::<Option<Vec<_>>>() {
        Some(read) if read.len() == sides.len() => json!({ "distributions": distributions(&read) }),
        _ => Value::Null,
    }
}

/// Each kind of times that some side has.
fn distributions(sides: &[(String, Counts)]) -> Vec<Value> {
    let of = |(words, times): &(&str, fn(&Counts) -> Option<&Histogram>)| {
        let sides = sides.iter().filter_map(|(name, counts)| side(name, times(counts)?)).collect::<Vec<_>>();
        (!sides.is_empty()).then(|| json!({ "words": words, "sides": sides }))
    };
    TIMES.iter().filter_map(of).collect()
}

fn side(name: &str, times: &Histogram) -> Option<Value> {
    let (at, counts): (Vec<f64>, Vec<f64>) =
        times.sizes().map(|(size, count)| (size as f64, count as f64)).unzip();
    Some(json!({
        "name": name,
        "total": times.total(),
        "min": times.min()?,
        "max": times.max()?,
        "at": packed(&at),
        "counts": packed(&counts),
    }))
}
