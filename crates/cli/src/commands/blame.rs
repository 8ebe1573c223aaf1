//! `fairlab blame`: who makes tasks wait, in all; of two traces also what differs.

use std::path::Path;

use fairlab_analysis::blame::answer::{BlameAnswer, BlameSide};
use fairlab_analysis::blame::text::{AnswerText, is_of_quota, largest_cause};
use fairlab_analysis::blame::{Blame, BlameOptions};
use fairlab_change::causes::rule;
use fairlab_event::ShownPath;
use fairlab_files::shell::line_of;
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
    let next = next_step(args, &found, provenance.is_modelled());
    let text = || format!("{}{next}", AnswerText { answer: &found, rows });
    let answer = || json!(found);
    let parts = || json!({ "text": text(), "blame": of_blame(&found.sides) });
    exports.answer_with(&title, (&provenance, &answer), (args.format, PageStyle::Fairlab), (&parts, &text))
}

/// The largest cause, and how to go on from it; two traces have their own last line.
fn next_step(args: &BlameArgs, found: &BlameAnswer, is_modelled: bool) -> String {
    let ([side], [file]) = (&found.sides[..], &args.traces[..]) else { return String::new() };
    let Some(cause) = largest_cause(&side.waiting) else { return String::new() };
    let go_on = if is_of_quota(&side.waiting) {
        format!(
            "More quota, or fewer threads: docs/limits.md tries both. The worst waits: {}",
            explaining(args, file)
        )
    } else {
        go_on(args, (side, file), is_modelled)
    };
    format!("\n{cause}.\n{go_on}\n")
}

/// How to go on from causes that are no quota's.
fn go_on(args: &BlameArgs, (side, file): (&BlameSide, &Path), is_modelled: bool) -> String {
    match (side.waiting.lacks_rules(), is_modelled) {
        (true, true) => "The rules: fairlab run … --decisions --trace FILE".to_string(),
        (true, false) => "What to record for the rules: docs/traces.md, 'Rules'".to_string(),
        (false, _) => format!("The worst waits: {}", explaining(args, file)),
    }
}

/// The command that tells the worst of the same waits.
fn explaining(args: &BlameArgs, file: &Path) -> String {
    let mut words = vec!["fairlab".to_string(), "explain".to_string(), file.to_string_lossy().into_owned()];
    words.extend(args.chosen.words());
    words.extend(["--worst".to_string(), "3".to_string()]);
    line_of(&words)
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
