//! Files that an answer goes into besides: opened before the first run, so that a wrong path costs nothing.
//!
//! Must not know: what an answer says.

mod parts;

use std::io::Write;
use std::path::{Path, PathBuf};

use fairlab_event::{ShownPath, escaped};
use fairlab_lab::OutputFile;
use fairlab_lab::provenance::Provenance;
use serde_json::{Value, json};

use crate::args::{AnswerFormat, PageStyle};
use crate::error::CliError;
use crate::output;

pub use parts::of_sides;

/// What a file holds, which its name's end tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportKind {
    /// The answer as programs read it.
    Json,
    /// A line a row.
    Csv,
    /// Tables of Markdown.
    Markdown,
    /// A page.
    Html,
}

impl ExportKind {
    /// All of them, as a refusal lists them.
    pub const ALL: [ExportKind; 4] =
        [ExportKind::Json, ExportKind::Csv, ExportKind::Markdown, ExportKind::Html];

    /// Those that any answer goes into.
    pub const ANY: [ExportKind; 2] = [ExportKind::Json, ExportKind::Html];

    const fn end(self) -> &'static str {
        match self {
            ExportKind::Json => "json",
            ExportKind::Csv => "csv",
            ExportKind::Markdown => "md",
            ExportKind::Html => "html",
        }
    }
}

/// Files that can be written to, and are, once.
#[derive(Debug, Default)]
pub struct ExportFiles(Vec<(PathBuf, ExportKind, OutputFile)>);

impl ExportFiles {
    /// Opens every file, each of one of these kinds.
    pub fn create(paths: &[PathBuf], kinds: &[ExportKind]) -> Result<ExportFiles, CliError> {
        // Names first: where one is refused, no file has been begun.
        let found = paths.iter().map(|path| kind_of(path, kinds)).collect::<Result<Vec<_>, _>>()?;
        let open = |(path, kind): (&PathBuf, ExportKind)| {
            let file = OutputFile::create(path).map_err(|error| failed(path, &error))?;
            Ok((path.clone(), kind, file))
        };
        paths.iter().zip(found).map(open).collect::<Result<_, _>>().map(ExportFiles)
    }

    /// Writes into every file what `content` gives for its kind.
    pub fn write_each(self, content: impl Fn(ExportKind) -> String) -> Result<(), CliError> {
        for (path, kind, mut file) in self.0 {
            let written = file.write_all(content(kind).as_bytes()).and_then(|()| file.finish());
            written.map_err(|error| failed(&path, &error))?;
        }
        Ok(())
    }

    /// Writes an answer into every file, as JSON or as a page of this title, and prints it. Texts: on the page, and on the screen.
    pub fn answer(
        self,
        title: &str,
        (provenance, answer): (&Provenance, &dyn Fn() -> Value),
        (format, page): (AnswerFormat, PageStyle),
        [text, printed]: [&dyn Fn() -> String; 2],
    ) -> Result<(), CliError> {
        let value = || output::with_provenance(provenance, answer());
        self.write_with(title, || (value(), json!({ "text": text() })))?;
        match format {
            AnswerFormat::Json => output::print_json(&value()),
            AnswerFormat::Text => page.answer(provenance, &printed()),
        }
    }

    /// Writes an answer and its page's parts.
    pub fn write_with(self, title: &str, answer: impl FnOnce() -> (Value, Value)) -> Result<(), CliError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let (value, parts) = answer();
        self.write_each(|kind| match kind {
            ExportKind::Html => page(title, &value, &parts),
            _ => as_json(&value),
        })
    }
}

/// An answer as a page.
pub fn page(title: &str, answer: &Value, parts: &Value) -> String {
    let mut data = answer.clone();
    if let (Value::Object(fields), false) = (&mut data, parts.is_null()) {
        fields.insert("page".to_string(), parts.clone());
    }
    fairlab_page::html(fairlab_page::PageKind::Answer, title, &data)
}

/// An answer as a file of JSON.
pub fn as_json(answer: &Value) -> String {
    escaped::json(&format!("{answer:#}\n")).into_owned()
}

fn kind_of(path: &Path, kinds: &[ExportKind]) -> Result<ExportKind, CliError> {
    let end = path.extension().and_then(|end| end.to_str());
    let known = kinds.iter().copied().find(|kind| Some(kind.end()) == end);
    known.ok_or_else(|| {
        let ends = kinds.iter().map(|kind| format!(".{}", kind.end())).collect::<Vec<_>>();
        let (last, others) =
            ends.split_last().map_or(("", &[][..]), |(last, others)| (last.as_str(), others));
        let problem = format!("{} is no name for an export", ShownPath(path));
        CliError::bad(problem, format!("end it in {} or {last}", others.join(", ")))
    })
}

fn failed(path: &Path, error: &std::io::Error) -> CliError {
    CliError::bad(format!("cannot write {}: {error}", ShownPath(path)), "check the place that --export names")
}
