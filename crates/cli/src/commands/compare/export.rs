//! Files that a comparison goes into: opened before the first run, so that a wrong path costs nothing.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use fairlab_lab::Comparison;
use fairlab_lab::provenance::Provenance;

use super::table;
use crate::error::CliError;
use crate::output;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Json,
    Csv,
    Markdown,
}

/// Files that can be written to.
#[derive(Debug)]
pub struct Exports(Vec<(PathBuf, Kind)>);

impl Exports {
    /// Opens every file; the end of its name says what goes into it.
    pub fn create(paths: &[PathBuf]) -> Result<Exports, CliError> {
        let open = |path: &PathBuf| {
            let kind = match path.extension().and_then(|end| end.to_str()) {
                Some("json") => Kind::Json,
                Some("csv") => Kind::Csv,
                Some("md") => Kind::Markdown,
                _ => {
                    let problem = format!("{} is no name for an export", path.display());
                    return Err(CliError::bad(problem, "end it in .json, .csv or .md"));
                }
            };
            let file = OpenOptions::new().create(true).append(true).open(path);
            file.map_err(|error| failed(path, &error))?;
            Ok((path.clone(), kind))
        };
        paths.iter().map(open).collect::<Result<_, _>>().map(Exports)
    }

    /// Writes the comparison into every file.
    pub fn write(&self, comparison: &Comparison, provenance: &Provenance) -> Result<(), CliError> {
        for (path, kind) in &self.0 {
            let content = match kind {
                Kind::Json => {
                    format!("{:#}\n", output::with_provenance(provenance, comparison.to_json()))
                }
                Kind::Csv => provenance.comment() + &comparison.to_csv(),
                Kind::Markdown => output::markdown_line(provenance) + &table::to_markdown(comparison),
            };
            fs::write(path, content).map_err(|error| failed(path, &error))?;
        }
        Ok(())
    }
}

fn failed(path: &Path, error: &std::io::Error) -> CliError {
    CliError::bad(format!("cannot write {}: {error}", path.display()), "check the place that --export names")
}
