//! `fairlab merge`: counts of many runs or hosts as one.

use std::path::Path;

use fairlab_event::ShownPath;
use fairlab_lab::answer::{MergeAnswer, MergedGroup};
use fairlab_lab::merge::MergedCounts;
use serde_json::json;

use crate::args::MergeArgs;
use crate::error::CliError;
use crate::numbers::metric;
use crate::provenance;

pub fn execute(args: &MergeArgs) -> Result<(), CliError> {
    let exports = args.export.create()?;
    let mut merged = MergedCounts::default();
    for path in &args.paths {
        merged.add_path(path)?;
    }
    if args.all {
        merged = merged.as_one();
    }
    if let Some(label) = &args.by {
        merged = merged.by_label(label);
    }
    if let Some(path) = &args.out {
        write(&merged, path, "--out")?;
    }
    let (provenance, answer) = (provenance::here().of_counts(&merged), MergeAnswer::from(&merged));
    let text = || to_text(&answer);
    let shape = (args.format, args.layout);
    exports.answer("Counts, added up", (&provenance, &|| json!(answer)), shape, [&text; 2])
}

/// Writes counts into the file that `option` names.
pub fn write(merged: &MergedCounts, path: &Path, option: &str) -> Result<(), CliError> {
    fairlab_lab::write_whole(path, format!("{}\n", merged.to_json())).map_err(|error| {
        let problem = format!("cannot write {}: {error}", ShownPath(path));
        CliError::bad(problem, format!("check the place that {option} names"))
    })
}

fn to_text(answer: &MergeAnswer) -> String {
    let files = if answer.files == 1 { "1 file".to_string() } else { format!("{} files", answer.files) };
    let mut text = format!("{files}; percentiles are at most 0.8 % above the exact ones\n");
    for group in &answer.groups {
        let origin = group.origin.map_or(String::new(), |origin| format!("{origin}, "));
        let MergedGroup { workload, machine, kernel, .. } = group;
        let labels = group.labels.iter().map(|(name, value)| format!("{name}={value} ")).collect::<String>();
        text += &format!("\n{labels}{workload} on {machine}, {kernel}: {origin}{}\n", amount(group));
        for (name, value) in &group.metrics {
            text += &format!("  {name:<28} {}\n", metric(name, *value));
        }
    }
    text
}

fn amount(group: &MergedGroup) -> String {
    let seconds = group.observed_ns as f64 / 1e9;
    format!("{} runs of {seconds:.1} s together, {} latencies", group.runs, group.latencies)
}
