//! A comparison as a file: JSON, CSV, Markdown or a page.

use fairlab_lab::answer::CompareAnswer;
use fairlab_lab::provenance::Provenance;
use serde_json::{Value, json};

use super::{causes, gate, table};
use crate::error::CliError;
use crate::export::{self, ExportFiles, ExportKind};
use crate::output;

/// Writes the comparison into every file; pages have these parts besides.
pub fn write(
    exports: ExportFiles,
    answer: &CompareAnswer,
    provenance: &Provenance,
    parts: impl Fn() -> Value,
) -> Result<(), CliError> {
    let value = || output::with_provenance(provenance, json!(answer));
    exports.write_each(|kind| match kind {
        ExportKind::Json => export::as_json(&value()),
        // A comparison goes into no folder: there each page would be this one.
        ExportKind::Html | ExportKind::Folder => {
            let mut parts = parts();
            parts["directions"] = export::directions(answer.metrics.iter().map(|row| row.name.as_str()));
            export::page(&title(answer), &value(), &parts)
        }
        ExportKind::Csv => provenance.comment() + &answer.to_csv(),
        ExportKind::Markdown => {
            output::markdown_line(provenance)
                + &answer.gate.as_ref().map(gate::to_markdown).unwrap_or_default()
                + &table::to_markdown(answer)
                + &causes::to_markdown(&answer.causes)
        }
    })
}

/// What the page of a comparison is called.
fn title(answer: &CompareAnswer) -> String {
    let kernels = answer.by_kernel().map(|rows| rows[0].kernel.as_str()).collect::<Vec<_>>();
    format!("{} against {}", kernels.join(", "), answer.baseline)
}
