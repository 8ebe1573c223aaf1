//! Files that a comparison goes into: opened before the first run, so that a wrong path costs nothing.

use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};

use fairlab_event::{ShownPath, shown};
use fairlab_lab::OutputFile;
use fairlab_lab::answer::CompareAnswer;
use fairlab_lab::provenance::Provenance;
use serde_json::json;

use super::table;
use crate::error::CliError;
use crate::output;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Json,
    Csv,
    Markdown,
    Html,
}

/// Files that can be written to, and are, once.
#[derive(Debug)]
pub struct Exports(RefCell<Vec<(PathBuf, Kind, OutputFile)>>);

impl Exports {
    /// Opens every file; the end of its name says what goes into it.
    pub fn create(paths: &[PathBuf]) -> Result<Exports, CliError> {
        // Names first: where one is refused, no file has been begun.
        let kinds = paths.iter().map(|path| kind_of(path)).collect::<Result<Vec<_>, _>>()?;
        let open = |(path, kind): (&PathBuf, Kind)| {
            let file = OutputFile::create(path).map_err(|error| failed(path, &error))?;
            Ok((path.clone(), kind, file))
        };
        let files = paths.iter().zip(kinds).map(open).collect::<Result<_, _>>();
        files.map(|files| Exports(RefCell::new(files)))
    }

    /// Writes the comparison into every file.
    pub fn write(self, answer: &CompareAnswer, provenance: &Provenance) -> Result<(), CliError> {
        for (path, kind, mut file) in self.0.take() {
            let content = match kind {
                Kind::Json => {
                    let value = output::with_provenance(provenance, json!(answer));
                    shown::json(&format!("{value:#}\n")).into_owned()
                }
                Kind::Html => {
                    let value = output::with_provenance(provenance, json!(answer));
                    fairlab_page::html(fairlab_page::Kind::Answer, &title(answer), &value)
                }
                Kind::Csv => provenance.comment() + &answer.to_csv(),
                Kind::Markdown => {
                    output::markdown_line(provenance)
                        + &table::to_markdown(answer)
                        + &super::causes::to_markdown(&answer.causes)
                }
            };
            let written = file.write_all(content.as_bytes()).and_then(|()| file.finish());
            written.map_err(|error| failed(&path, &error))?;
        }
        Ok(())
    }
}

/// What the page of a comparison is called.
fn title(answer: &CompareAnswer) -> String {
    let kernels = answer.by_kernel().map(|rows| rows[0].kernel.as_str()).collect::<Vec<_>>();
    format!("{} against {}", kernels.join(", "), answer.baseline)
}

fn kind_of(path: &Path) -> Result<Kind, CliError> {
    match path.extension().and_then(|end| end.to_str()) {
        Some("json") => Ok(Kind::Json),
        Some("csv") => Ok(Kind::Csv),
        Some("md") => Ok(Kind::Markdown),
        Some("html") => Ok(Kind::Html),
        _ => {
            let problem = format!("{} is no name for an export", ShownPath(path));
            Err(CliError::bad(problem, "end it in .json, .csv, .md or .html"))
        }
    }
}

fn failed(path: &Path, error: &std::io::Error) -> CliError {
    CliError::bad(format!("cannot write {}: {error}", ShownPath(path)), "check the place that --export names")
}
