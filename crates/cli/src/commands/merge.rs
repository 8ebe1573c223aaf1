//! `fairlab merge`: counts of many runs or hosts as one.

use std::path::Path;

use fairlab_analysis::counts::Counts;
use fairlab_event::ShownPath;
use fairlab_lab::merge::{Group, Merged};
use fairlab_lab::provenance::{Origin, Provenance};
use serde_json::{Map, Value, json};

use crate::args::{Format, MergeArgs};
use crate::error::CliError;
use crate::numbers::metric;
use crate::output;
use crate::provenance;

pub fn execute(args: &MergeArgs) -> Result<(), CliError> {
    let mut merged = Merged::default();
    for path in &args.paths {
        merged.add_path(path)?;
    }
    if args.all {
        merged = as_one(&merged);
    }
    if let Some(path) = &args.out {
        write(&merged, path, "--out")?;
    }
    let provenance = provenance_of(&merged);
    match args.format {
        Format::Json => output::answer_json(&provenance, to_json(&merged)),
        Format::Text => args.layout.answer(&provenance, &to_text(&merged)),
    }
}

/// Counts are read; those of a run tell whose they are, and how it came about.
fn provenance_of(merged: &Merged) -> Provenance {
    let all = merged.groups.keys().fold(provenance::here(), |all, group| {
        all.reading(group.origin).kernel(&group.kernel).machine(&group.machine)
    });
    all.seeds(merged.seeds.values().flatten().copied())
}

/// Writes counts into the file that `option` names.
pub fn write(merged: &Merged, path: &Path, option: &str) -> Result<(), CliError> {
    fairlab_lab::write_whole(path, format!("{}\n", merged.to_json())).map_err(|error| {
        let problem = format!("cannot write {}: {error}", ShownPath(path));
        CliError::bad(problem, format!("check the place that {option} names"))
    })
}

/// Everything in one group, which keeps what all groups have in common.
fn as_one(merged: &Merged) -> Merged {
    let common = |of: fn(&Group) -> &String| {
        let mut names = merged.groups.keys().map(of).collect::<Vec<_>>();
        names.dedup();
        if let [name] = names[..] { name.clone() } else { "any".to_string() }
    };
    let mut origins = merged.groups.keys().map(|group| group.origin).collect::<Vec<_>>();
    origins.dedup();
    let group = Group {
        origin: if let [origin] = origins[..] { origin } else { None },
        kernel: common(|group| &group.kernel),
        machine: common(|group| &group.machine),
        workload: common(|group| &group.workload),
    };
    let mut one = merged.clone();
    let seeds = merged.seeds.values().flatten().copied();
    one.groups.clear();
    one.seeds.clear();
    one.add(group, &merged.all(), seeds);
    one
}

fn to_json(merged: &Merged) -> Value {
    let groups = merged.groups.iter().map(|(group, counts)| {
        let metrics = counts.metrics().into_iter().map(|(name, value)| (name.to_string(), json!(value)));
        json!({
            "origin": group.origin.map(Origin::name),
            "seeds": merged.seeds.get(group),
            "kernel": group.kernel,
            "machine": group.machine,
            "workload": group.workload,
            "runs": counts.runs,
            "observed_ns": counts.observed_ns,
            "latencies": counts.wakeup_latency.total(),
            "metrics": metrics.collect::<Map<_, _>>(),
        })
    });
    json!({ "schema": "fairlab/merge/1", "files": merged.files, "groups": groups.collect::<Vec<_>>() })
}

fn to_text(merged: &Merged) -> String {
    let files = if merged.files == 1 { "1 file".to_string() } else { format!("{} files", merged.files) };
    let mut text = format!("{files}; percentiles are at most 0.8 % above the exact ones\n");
    for (group, counts) in &merged.groups {
        let origin = group.origin.map_or(String::new(), |origin| format!("{}, ", origin.name()));
        let Group { workload, machine, kernel, .. } = group;
        text += &format!("\n{workload} on {machine}, {kernel}: {origin}{}\n", amount(counts));
        for (name, value) in counts.metrics() {
            text += &format!("  {name:<28} {}\n", metric(name, value));
        }
    }
    text
}

fn amount(counts: &Counts) -> String {
    let seconds = counts.observed_ns as f64 / 1e9;
    format!("{} runs of {seconds:.1} s together, {} latencies", counts.runs, counts.wakeup_latency.total())
}
