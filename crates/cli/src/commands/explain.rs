//! `fairlab explain`: the worst waits of a recorded trace, and why they were so long.

use fairlab_analysis::explain::answer::to_json;
use fairlab_analysis::explain::{Explain, ExplainOptions};
use fairlab_event::ShownPath;
use fairlab_lab::recorded::{no_such_task, task_filter};

use super::trace;
use crate::args::{ExplainArgs, Format};
use crate::error::CliError;
use crate::output;

pub fn execute(args: &ExplainArgs) -> Result<(), CliError> {
    let task = args.task.as_deref().map(task_filter);
    let exports = args.export.create()?;
    let mut explain = Explain::new(ExplainOptions { task, worst: args.worst });
    let (stats, provenance) = args.trace.read_whole("explain", &mut explain)?;
    let explanation = explain.finish().map_err(|missing| trace::lacking(&args.trace.file, &missing))?;
    if let Some(task) = args.task.as_ref().filter(|_| !explanation.matches) {
        return Err(no_such_task(&args.trace.file, task, &explanation.comms).into());
    }
    trace::warn(&args.trace.file, &stats, &explanation.notices);
    let answer = || to_json(&explanation, &trace::import_json(&stats, &explanation.notices));
    let title = format!("The worst waits of {}", ShownPath(&args.trace.file));
    exports.write(&title, || explanation.to_string(), || output::with_provenance(&provenance, answer()))?;
    match args.trace.format {
        Format::Text => output::answer(&provenance, &explanation.to_string()),
        Format::Json => output::answer_json(&provenance, answer()),
    }
}
