//! `fairlab latency`: how long the tasks of a recorded trace waited.

use fairlab_analysis::latency::{Latency, LatencyOptions, LatencyTable};
use fairlab_trace::{ImportError, ImportStats, ReadOptions, Severity, Trouble, read_path};
use serde_json::{Value, json};

use crate::args::{Format, LatencyArgs};
use crate::error::CliError;
use crate::output;

pub fn execute(args: &LatencyArgs) -> Result<(), CliError> {
    let shown = args.file.display();
    let mut latency = Latency::new(LatencyOptions { by_pid: args.by_pid, sort: args.sort.0.clone() });
    let options = ReadOptions { clock_hz: args.clock_hz };
    let stats = read_path(&args.file, &options, &mut latency).map_err(|error| {
        let hint = match error {
            ImportError::Io(_) => "check the path",
            _ => "give a trace: perf.data or ftrace text",
        };
        CliError::bad(format!("{shown}: {error}"), hint)
    })?;
    let mut table = latency.finish().map_err(|missing| {
        CliError::bad(format!("{shown}: {missing}"), "record the sched events, as 'perf sched record' does")
    })?;
    // Losses are given as a share of all records.
    table.records = stats.events + stats.count(Trouble::SkippedRecord);
    warn(&shown.to_string(), &stats, &table);
    match args.format {
        Format::Text => output::print(&table.to_string()),
        Format::Json => output::print_json(&to_json(&table, &stats)),
    }
}

/// What the reader should know before trusting the table, on standard error.
fn warn(file: &str, stats: &ImportStats, table: &LatencyTable) {
    for count in stats.troubles().iter().filter(|count| count.trouble.severity() > Severity::Info) {
        eprintln!("fairlab: {file}: {count}");
    }
    for notice in &table.notices {
        eprintln!("fairlab: {file}: {notice}");
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
        })
    });
    let troubles = stats.troubles().iter().map(|count| {
        (count.trouble.name().to_string(), json!({ "count": count.count, "first_at": count.first_at }))
    });
    json!({
        "schema": "fairlab/latency/1",
        "tasks": tasks.collect::<Vec<_>>(),
        "import": {
            "events": stats.events,
            "troubles": troubles.collect::<serde_json::Map<_, _>>(),
            "notices": table.notices,
        },
    })
}
