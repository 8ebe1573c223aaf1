//! `fairlab latency`: how long the tasks of a recorded trace waited.

use fairlab_analysis::latency::{Latency, LatencyAnswer, LatencyLayout, LatencyOptions};
use fairlab_event::ShownPath;
use fairlab_trace::Trouble;
use serde_json::{Value, json};

use super::trace;
use crate::args::{LatencyArgs, PageStyle, PerfLayout};
use crate::error::CliError;
use crate::export::{TraceParts, with_text};

pub fn execute(args: &LatencyArgs) -> Result<(), CliError> {
    let exports = args.export.create()?;
    let options = LatencyOptions {
        by_pid: args.by_pid,
        sort: args.sort.0.clone(),
        woken_while_running: args.woken_while_running,
    };
    let mut latency = Latency::new(options).of(args.chosen.chosen());
    let mut besides = exports.has_page().then(|| TraceParts::new(args.chosen.chosen()));
    let (stats, provenance) = args.trace.read_whole("latency", &mut (&mut latency, &mut besides))?;
    let nothing = |nothing| trace::nothing(&args.trace.file, &nothing);
    latency.check().map_err(nothing)?;
    let no_wait = latency.no_wait();
    let mut table = latency.finish().map_err(|missing| trace::lacking(&args.trace.file, &missing))?;
    if table.rows.is_empty() && args.chosen.given().is_some() {
        return Err(nothing(no_wait));
    }
    // Losses are given as a share of all records.
    table.records = stats.events + stats.count(Trouble::SkippedRecord);
    trace::warn(&args.trace.file, &stats, &table.notices);
    let answer = || json!(trace::answer(LatencyAnswer::from(&table), &stats, &table.notices));
    let title = format!("Waits of {}", ShownPath(&args.trace.file));
    let layout = match args.layout {
        PerfLayout::Perf6 => LatencyLayout::Perf6,
        PerfLayout::Perf7 => LatencyLayout::Perf7,
    };
    let text = || table.laid_out(layout).to_string();
    let besides =
        besides.map_or(Value::Null, |besides| besides.data(&ShownPath(&args.trace.file).to_string()));
    let parts = || with_text(&besides, &text());
    let shape = (args.trace.format, PageStyle::Fairlab);
    exports.answer_with(&title, (&provenance, &answer), shape, (&parts, &text))
}
