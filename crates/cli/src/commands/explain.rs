//! `fairlab explain`: the worst waits of a recorded trace, and why they were so long.

use fairlab_analysis::explain::answer::to_json;
use fairlab_analysis::explain::{Explain, ExplainOptions, Explanation};
use fairlab_change::causes::rule;
use fairlab_event::ShownPath;
use fairlab_page::excerpt::StoriesRecorder;
use serde_json::{Value, json};

use super::trace;
use crate::args::{ExplainArgs, PageStyle};
use crate::error::CliError;
use crate::export::of_waiting;

pub fn execute(args: &ExplainArgs) -> Result<(), CliError> {
    let exports = args.export.create()?;
    let options = ExplainOptions { chosen: args.chosen.chosen(), worst: args.worst };
    let mut explain = Explain::new(options).with_sums(rule);
    let (stats, provenance) = args.trace.read_whole("explain", &mut explain)?;
    let nothing = |nothing| trace::nothing(&args.trace.file, &nothing);
    explain.check().map_err(nothing)?;
    let no_wait = explain.no_wait();
    let explanation = explain.finish().map_err(|missing| trace::lacking(&args.trace.file, &missing))?;
    let Explanation { measured, crossed, still_waiting_count, .. } = explanation;
    if measured + crossed + still_waiting_count == 0 && args.chosen.given().is_some() {
        return Err(nothing(no_wait));
    }
    trace::warn(&args.trace.file, &stats, &explanation.notices);
    let answer = || to_json(&explanation, &trace::import_json(&stats, &explanation.notices));
    let title = format!("The worst waits of {}", ShownPath(&args.trace.file));
    let text = || explanation.to_string();
    let drawn = if exports.has_page() { drawn(args, &explanation)? } else { Vec::new() };
    let trace = ShownPath(&args.trace.file).to_string();
    let blame = explanation.waiting.iter().map(|waiting| of_waiting(&trace, waiting)).collect::<Vec<_>>();
    let parts = || json!({ "text": text(), "excerpts": drawn, "blame": blame });
    let shape = (args.trace.format, PageStyle::Fairlab);
    exports.answer_with(&title, (&provenance, &answer), shape, (&parts, &text))
}

/// The stretch of each story, for the page. The trace is read once more for that: which stretches they are is known at its end.
fn drawn(args: &ExplainArgs, explanation: &Explanation) -> Result<Vec<Value>, CliError> {
    // A pipe gives its bytes once.
    let is_there = args.trace.file.metadata().is_ok_and(|about| about.is_file() || about.is_dir());
    if !is_there || explanation.stories.is_empty() {
        return Ok(Vec::new());
    }
    let mut stories = StoriesRecorder::new(&explanation.stories);
    args.trace.read_whole("explain, drawing", &mut stories)?;
    Ok(stories.data())
}
