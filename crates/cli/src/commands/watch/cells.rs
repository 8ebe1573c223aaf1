//! All that a watch measured as tables, from its answer as JSON: a row for each kernel, case and metric, and each case as a series over
//! history.
//!
//! Must not know: what is concluded.

use std::fs;
use std::io::{self, BufWriter};
use std::path::Path;

use fairlab_event::escaped;
use fairlab_lab::{OutputFile, write_whole};
use fairlab_trace::parquet::TableWriter;
use fairlab_trace::table::{ColumnKind, TableCell};
use serde_json::Value;

use super::text::elements;

/// What the table is called in its folder, and the folder of series there.
const TABLE: &str = "cells.parquet";
const SERIES: &str = "series";

/// Tools that look for changes in a series want times: seconds of the epoch, a day a step, which order and say no more.
const FIRST_S: usize = 1_500_000_000;
const STEP_S: usize = 86_400;

const COLUMNS: [(&str, ColumnKind); 11] = [
    ("position", ColumnKind::Count),
    ("kernel", ColumnKind::Text),
    ("commit", ColumnKind::Text),
    ("release", ColumnKind::Text),
    ("date", ColumnKind::Text),
    ("case", ColumnKind::Text),
    ("metric", ColumnKind::Text),
    ("class", ColumnKind::Count),
    ("runs", ColumnKind::Count),
    ("mean", ColumnKind::Number),
    ("half", ColumnKind::Number),
];

/// A kernel that a case has measured.
struct MeasuredKernel<'a> {
    position: usize,
    kernel: &'a Value,
    number: u64,
    class: &'a Value,
}

/// Writes `cells.parquet`, and `series/CASE.csv` for each case, into a folder.
pub fn write(answer: &Value, folder: &Path) -> io::Result<()> {
    let columns = COLUMNS.map(|(name, kind)| (name.to_string(), kind));
    let output = BufWriter::new(OutputFile::create(&folder.join(TABLE))?);
    let mut table = TableWriter::new(output, "cells", &columns)?;
    for case in elements(&answer["cases"]) {
        for measured in measured(answer, case) {
            for metric in 0..elements(&case["metrics"]).len() {
                table.add(&row(case, &measured, metric))?;
            }
        }
    }
    table.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?;
    let series = folder.join(SERIES);
    fs::create_dir_all(&series)?;
    for case in elements(&answer["cases"]) {
        write_whole(&series.join(format!("{}.csv", words(&case["name"]))), series_of(answer, case))?;
    }
    Ok(())
}

fn words(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn measured<'a>(answer: &'a Value, case: &'a Value) -> impl Iterator<Item = MeasuredKernel<'a>> {
    let kernels = elements(&answer["kernels"]).iter().zip(elements(&case["line"])).enumerate();
    kernels.filter_map(|(position, (kernel, class))| {
        let number = class.as_u64()?;
        Some(MeasuredKernel { position, kernel, number, class: &case["classes"][number as usize] })
    })
}

fn row<'a>(case: &'a Value, measured: &MeasuredKernel<'a>, metric: usize) -> [TableCell<'a>; COLUMNS.len()] {
    let text = |value: &'a Value| value.as_str().map_or(TableCell::Empty, TableCell::Text);
    let number = |value: &'a Value| value.as_f64().map_or(TableCell::Empty, TableCell::Number);
    let (step, found) = (&measured.kernel["step"], &measured.class["metrics"][metric]);
    [
        TableCell::Count(measured.position as u64),
        text(&measured.kernel["name"]),
        text(&step["commit"]),
        text(&step["release"]),
        text(&step["date"]),
        text(&case["name"]),
        text(&case["metrics"][metric]),
        TableCell::Count(measured.number),
        measured.class["runs"].as_u64().map_or(TableCell::Empty, TableCell::Count),
        number(&found["mean"]),
        number(&found["half"]),
    ]
}

/// One line a kernel: a time that orders, commit, kernel, and each metric's mean.
fn series_of(answer: &Value, case: &Value) -> String {
    let metrics = elements(&case["metrics"]).iter().map(|name| escaped::csv(words(name)));
    let mut text = format!("time,commit,kernel,{}\n", metrics.collect::<Vec<_>>().join(","));
    for MeasuredKernel { position, kernel, class, .. } in measured(answer, case) {
        let time = FIRST_S + STEP_S * position;
        text +=
            &format!("{time},{},{}", words(&kernel["step"]["commit"]), escaped::csv(words(&kernel["name"])));
        elements(&class["metrics"]).iter().for_each(|metric| text += &format!(",{}", metric["mean"]));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_that_was_measured_is_written() {
        let answer = json!({
            "kernels": [{ "name": "v6.5" }, { "name": null, "step": { "commit": "0123456789ab" } },
                        { "name": "a,b", "step": { "commit": "ba9876543210", "release": "v6.6" } }],
            "cases": [{ "name": "pipe", "metrics": ["throughput"], "line": [0, null, 1],
                        "classes": [{ "runs": 4, "metrics": [{ "mean": 2.5, "half": 0.5 }] },
                                    { "runs": 9, "metrics": [{ "mean": 3.0, "half": null }] }] }],
        });
        let folder = std::env::temp_dir().join(format!("fairlab-watch-cells-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        write(&answer, &folder).expect("written");
        let series = fs::read_to_string(folder.join("series/pipe.csv")).expect("a series");
        let table = fs::read(folder.join(TABLE)).expect("a table");
        fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(
            series,
            "time,commit,kernel,throughput\n1500000000,,v6.5,2.5\n1500172800,ba9876543210,\"a,b\",3.0\n"
        );
        assert!(table.starts_with(b"PAR1") && table.ends_with(b"PAR1"), "{} bytes", table.len());
    }
}
