//! `fairlab blame`: who makes tasks wait, in all; of two traces also what differs.

use std::path::Path;

use fairlab_analysis::blame::answer::{BlameAnswer, BlameSide};
use fairlab_analysis::blame::text::AnswerText;
use fairlab_analysis::blame::{Blame, BlameOptions};
use fairlab_change::causes::rule;
use fairlab_event::ShownPath;
use fairlab_lab::provenance::Provenance;
use serde_json::json;

use super::trace;
use crate::args::{BlameArgs, PageStyle};
use crate::error::CliError;
use crate::export::of_blame;
use crate::provenance;

pub fn execute(args: &BlameArgs) -> Result<(), CliError> {
    if args.traces.iter().filter(|file| *file == Path::new("-")).count() > 1 {
        return Err(CliError::bad("standard input is one trace", "give the other in a file"));
    }
    let exports = args.export.create()?;
    let mut provenance = provenance::here();
    let mut sides = Vec::new();
    for file in &args.traces {
        let (side, with_it) = side(args, file, provenance)?;
        provenance = with_it;
        sides.push(side);
    }
    let names = sides.iter().map(|side| side.trace.as_str()).collect::<Vec<_>>().join(" and ");
    let title = format!("Who makes tasks wait in {names}");
    let found = BlameAnswer::of(sides);
    let rows = if args.top == 0 { usize::MAX } else { args.top };
    let text = || AnswerText { answer: &found, rows }.to_string();
    let answer = || json!(found);
    let parts = || json!({ "text": text(), "blame": of_blame(&found.sides) });
    exports.answer_with(&title, (&provenance, &answer), (args.format, PageStyle::Fairlab), (&parts, &text))
}

/// Sums up one trace.
fn side(args: &BlameArgs, file: &Path, so_far: Provenance) -> Result<(BlameSide, Provenance), CliError> {
    let options = BlameOptions { chosen: args.chosen.chosen(), by_thread: args.each, rule_words: rule };
    let mut blame = Blame::new(options);
    let (stats, provenance) = trace::read_whole("blame", file, &args.reading, &mut blame, so_far)?;
    blame.check().map_err(|nothing| trace::nothing(file, &nothing))?;
    let no_wait = blame.no_wait();
    let waiting = blame.finish().map_err(|missing| trace::lacking(file, &missing))?;
    if waiting.is_empty() && args.chosen.given().is_some() {
        return Err(trace::nothing(file, &no_wait));
    }
    trace::warn(file, &stats, &waiting.notices);
    let import = trace::import_json(&stats, &waiting.notices);
    Ok((BlameSide { trace: ShownPath(file).to_string(), waiting, import }, provenance))
}
