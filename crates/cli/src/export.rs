//! Files that an answer goes into besides: opened before the first run, so that a wrong path costs nothing.
//!
//! Must not know: what an answer says.

mod parts;
mod traced;

use std::io::Write;
use std::path::{Path, PathBuf};

use fairlab_event::{ShownPath, escaped};
use fairlab_lab::provenance::Provenance;
use fairlab_lab::{OutputFile, OutputFolder};
use serde_json::{Value, json};

use crate::args::{AnswerFormat, PageStyle};
use crate::error::CliError;
use crate::output;

pub use parts::{directions, of_sides};
pub use traced::{TraceParts, of_blame, of_waiting, with_text};

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
    /// A folder of pages: its name ends with a slash.
    Folder,
}

impl ExportKind {
    /// All of them, as a refusal lists them.
    pub const ALL: [ExportKind; 4] =
        [ExportKind::Json, ExportKind::Csv, ExportKind::Markdown, ExportKind::Html];

    /// Those that any answer goes into.
    pub const ANY: [ExportKind; 2] = [ExportKind::Json, ExportKind::Html];

    /// Those of an answer about runs that can be made once more.
    pub const WITH_FOLDER: [ExportKind; 3] = [ExportKind::Json, ExportKind::Html, ExportKind::Folder];

    const fn end(self) -> &'static str {
        match self {
            ExportKind::Json => "json",
            ExportKind::Csv => "csv",
            ExportKind::Markdown => "md",
            ExportKind::Html => "html",
            ExportKind::Folder => "/",
        }
    }

    /// As a refusal names it.
    fn shown(self) -> String {
        match self {
            ExportKind::Folder => "/ (a folder of pages)".to_string(),
            file => format!(".{}", file.end()),
        }
    }
}

/// Files that can be written to, and are, once.
#[derive(Debug, Default)]
pub struct ExportFiles {
    files: Vec<(PathBuf, ExportKind, OutputFile)>,
    folders: Vec<OutputFolder>,
}

impl ExportFiles {
    /// Opens every file, each of one of these kinds.
    pub fn create(paths: &[PathBuf], kinds: &[ExportKind]) -> Result<ExportFiles, CliError> {
        // Names first: where one is refused, no file has been begun.
        let found = paths.iter().map(|path| kind_of(path, kinds)).collect::<Result<Vec<_>, _>>()?;
        let mut opened = ExportFiles::default();
        for (path, kind) in paths.iter().zip(found) {
            if kind == ExportKind::Folder {
                opened.folders.push(new_folder(path)?);
            } else {
                let file = OutputFile::create(path).map_err(|error| failed(path, &error))?;
                opened.files.push((path.clone(), kind, file));
            }
        }
        Ok(opened)
    }

    /// The folders among them, which others fill.
    pub fn take_folders(&mut self) -> Vec<OutputFolder> {
        std::mem::take(&mut self.folders)
    }

    /// Writes into every file what `content` gives for its kind.
    pub fn write_each(self, content: impl Fn(ExportKind) -> String) -> Result<(), CliError> {
        for (path, kind, mut file) in self.files {
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
        let parts = || json!({ "text": text() });
        self.answer_with(title, (provenance, answer), (format, page), (&parts, printed))
    }

    /// The same, with all parts of the page.
    pub fn answer_with(
        self,
        title: &str,
        (provenance, answer): (&Provenance, &dyn Fn() -> Value),
        (format, page): (AnswerFormat, PageStyle),
        (parts, printed): (&dyn Fn() -> Value, &dyn Fn() -> String),
    ) -> Result<(), CliError> {
        let value = || output::with_provenance(provenance, answer());
        self.write_with(title, || (value(), parts()))?;
        match format {
            AnswerFormat::Json => output::print_json(&value()),
            AnswerFormat::Text => page.answer(provenance, &printed()),
        }
    }

    /// Whether one of them is a page, for which more is gathered.
    pub fn has_page(&self) -> bool {
        self.files.iter().any(|(_, kind, _)| *kind == ExportKind::Html) || !self.folders.is_empty()
    }

    /// Writes an answer and its page's parts.
    pub fn write_with(self, title: &str, answer: impl FnOnce() -> (Value, Value)) -> Result<(), CliError> {
        if self.files.is_empty() {
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
    let is_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/");
    let end = if is_folder { Some("/") } else { path.extension().and_then(|end| end.to_str()) };
    let known = kinds.iter().copied().find(|kind| Some(kind.end()) == end);
    known.ok_or_else(|| {
        let ends = kinds.iter().map(|kind| kind.shown()).collect::<Vec<_>>();
        let (last, others) =
            ends.split_last().map_or(("", &[][..]), |(last, others)| (last.as_str(), others));
        let problem = format!("{} is no name for an export", ShownPath(path));
        CliError::bad(problem, format!("end it in {} or {last}", others.join(", ")))
    })
}

/// A folder that will be there when all of its pages are.
fn new_folder(path: &Path) -> Result<OutputFolder, CliError> {
    // Without the slash at its end, which is of no use where it is renamed.
    let path = path.components().as_path();
    if std::fs::symlink_metadata(path).is_ok() {
        let problem = format!("{} exists already", ShownPath(path));
        return Err(CliError::bad(problem, "name another folder for --export, or remove it"));
    }
    Ok(OutputFolder::create(path)?)
}

fn failed(path: &Path, error: &std::io::Error) -> CliError {
    CliError::bad(format!("cannot write {}: {error}", ShownPath(path)), "check the place that --export names")
}
