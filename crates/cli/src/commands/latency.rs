//! `fairlab latency`: how long the tasks of a recorded trace waited.

use fairlab_analysis::latency::{Latency, LatencyOptions, LatencyTable};
use fairlab_trace::{ImportStats, Trouble};
use serde_json::{Value, json};

use super::trace;
use crate::args::{Format, LatencyArgs};
use crate::error::CliError;
use crate::output;

pub fn execute(args: &LatencyArgs) -> Result<(), CliError> {
    let mut latency = Latency::new(LatencyOptions { by_pid: args.by_pid, sort: args.sort.0.clone() });
    let (stats, provenance) = args.trace.read_whole("latency", &mut latency)?;
    let mut table = latency.finish().map_err(|missing| trace::lacking(&args.trace.file, &missing))?;
    // Losses are given as a share of all records.
    table.records = stats.events + stats.count(Trouble::SkippedRecord);
    trace::warn(&args.trace.file, &stats, &table.notices);
    match args.trace.format {
        Format::Text => output::answer(&provenance, &table.to_string()),
        Format::Json => output::answer_json(&provenance, to_json(&table, &stats)),
    }
}

fn to_json(table: &LatencyTable, stats: &ImportStats) -> Value {
    let tasks = table.rows.iter().map(|row| {
        json!({
            "comm": row.comm.to_str(),
            "pid": row.pid.0,
            "merged_threads": row.merged_threads,
            "runtime_ns": row.runtime.0,
            "count": row.count,
            "avg_delay_ns": row.avg_delay().0,
            "max_delay_ns": row.max_delay.0,
            "max_start_ns": row.max_start.0,
            "max_end_ns": row.max_end.0,
            "crossed_loss": row.crossed,
        })
    });
    json!({
        "schema": "fairlab/latency/1",
        "tasks": tasks.collect::<Vec<_>>(),
        "crossed_loss": table.crossed,
        "import": trace::import_json(stats, &table.notices),
    })
}
