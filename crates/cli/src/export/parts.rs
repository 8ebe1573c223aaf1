//! What a page has beside an answer: how times are distributed on each side, and which runs they come from.
//!
//! Must not know: how a page draws it.

use std::path::PathBuf;

use fairlab_analysis::counts::{Counts, NameCounts};
use fairlab_analysis::histogram::Histogram;
use fairlab_analysis::who::Who;
use fairlab_lab::merge::Merged;
use fairlab_lab::{RunResult, Side};
use fairlab_page::packed::packed;
use serde_json::{Value, json};

/// One kind of times among what was counted.
type Times<C> = fn(&C) -> Option<&Histogram>;

/// Times of the machine, each with its words.
const TIMES: [(&str, Times<Counts>); 4] = [
    ("Wakeup latency", |counts| Some(&counts.wakeup_latency)),
    ("First waits of new tasks", |counts| Some(&counts.fork_wait)),
    ("Waits of throttled groups", |counts| Some(&counts.throttles.as_ref()?.throttled_wait)),
    ("Waits after preemption", |counts| Some(&counts.throttles.as_ref()?.preemption_wait)),
];

/// Times of tasks by name.
const TIMES_BY_NAME: [(&str, Times<NameCounts>); 4] = [
    ("Wakeup latency", |counts| Some(&counts.wakeup_latency)),
    ("First waits of new tasks", |counts| Some(&counts.fork_wait)),
    ("Waits after preemption", |counts| Some(&counts.preemption_wait)),
    ("Waits for a quota", |counts| Some(&counts.throttled_wait)),
];

/// The parts of runs of some kernels, the baseline's name first. Times are of these tasks; without any, of the machine.
pub fn of_runs(workload: &str, kernels: &[String], runs: &[RunResult], whose: &[Who]) -> Value {
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
        "distributions": distributions(&sides.collect::<Vec<_>>(), whose),
        "runs": runs.iter().map(row).collect::<Vec<_>>(),
    })
}

/// The parts of existing sides, with each side's counts; nothing where a side does not know its times.
pub fn of_sides(sides: &[Side], whose: &[Who]) -> Value {
    let counted = sides.iter().map(|side| Some((side.name.clone(), side.counts.clone()?)));
    counted.collect::<Option<Vec<_>>>().map_or(Value::Null, |counted| parts(&counted, whose))
}

/// The parts of folders of runs, one a side; nothing where a folder has no counts of its runs.
pub fn of_folders(folders: &[PathBuf], sides: &[Side], whose: &[Who]) -> Value {
    let read = folders.iter().zip(sides).map(|(folder, side)| {
        let mut merged = Merged::default();
        merged.add_path(folder).ok()?;
        Some((side.name.clone(), merged.all()))
    });
    match read.collect::<Option<Vec<_>>>() {
        Some(read) if read.len() == sides.len() && folders.len() == sides.len() => parts(&read, whose),
        _ => Value::Null,
    }
}

fn parts(sides: &[(String, Counts)], whose: &[Who]) -> Value {
    json!({ "distributions": distributions(sides, whose) })
}

/// Each kind of times that some side has.
fn distributions(sides: &[(String, Counts)], whose: &[Who]) -> Vec<Value> {
    let drawn = |words: String, times: &dyn Fn(&Counts) -> Option<Histogram>| {
        let sides = sides.iter().filter_map(|(name, counts)| side(name, &times(counts)?)).collect::<Vec<_>>();
        (!sides.is_empty()).then(|| json!({ "words": words, "sides": sides }))
    };
    if whose.is_empty() {
        let of = |(words, times): &(&str, Times<Counts>)| {
            drawn((*words).to_string(), &|counts| times(counts).cloned())
        };
        return TIMES.iter().filter_map(of).collect();
    }
    let named = |who: &Who, counts: &Counts| {
        let asked = who.to_string();
        counts.by_name.iter().find(|(name, _)| name.to_string() == asked).map(|(_, counts)| counts.clone())
    };
    let of = |who: &Who| {
        TIMES_BY_NAME.map(|(words, times)| {
            drawn(format!("{words} of {who}"), &|counts| times(&named(who, counts)?).cloned())
        })
    };
    whose.iter().flat_map(of).flatten().collect()
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
