//! Standard output and standard error: whole answers, JSON, tables, remarks.
//!
//! Everything that is printed passes here, and nothing in it that a terminal would obey gets through: names of tasks and files,
//! and what guests print, are the text of others.

use std::env;
use std::io::{self, IsTerminal, Write};

use clap::builder::StyledStr;
use fairlab_event::{EscapedText, ShownLines, escaped};
use fairlab_lab::provenance::Provenance;
use serde_json::Value;

use crate::error::CliError;

/// Prints an answer for people.
pub fn answer(provenance: &Provenance, text: &str) -> Result<(), CliError> {
    print(&headed(provenance, text))
}

/// An answer behind how it came about. If it begins with a line that it is partial, that stands before all.
pub fn headed(provenance: &Provenance, text: &str) -> String {
    let end = if text.starts_with("partial: ") { text.find('\n').map_or(text.len(), |at| at + 1) } else { 0 };
    let (partial, rest) = text.split_at(end);
    format!("{partial}{}{rest}", provenance.comment())
}

/// Prints an answer for programs, which says how it came about.
pub fn answer_json(provenance: &Provenance, value: Value) -> Result<(), CliError> {
    print_json(&with_provenance(provenance, value))
}

/// Prints what is for programs.
pub fn print_json(value: &Value) -> Result<(), CliError> {
    write(&escaped::json(&format!("{value:#}\n")))
}

/// An answer for programs with how it came about, behind the name of its schema.
pub fn with_provenance(provenance: &Provenance, value: Value) -> Value {
    provenance.within(value)
}

/// How an answer came about, as the first paragraph of a page of Markdown.
pub fn markdown_line(provenance: &Provenance) -> String {
    let mut text = String::new();
    for character in EscapedText(&provenance.line()).to_string().chars() {
        if "\\`*_{}[]<>#|".contains(character) {
            text.push('\\');
        }
        text.push(character);
    }
    text + "\n\n"
}

/// Prints text: help, and what a program prints that runs here.
pub fn print(text: &str) -> Result<(), CliError> {
    write(&ShownLines(text).to_string())
}

/// Prints help: in bold and underlined where a terminal shows it, and nothing says that it should not.
pub fn print_styled(help: &StyledStr) -> Result<(), CliError> {
    let is_unwanted = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_plain = is_unwanted("NO_COLOR") || env::var_os("TERM").is_none_or(|name| name == "dumb");
    match io::stdout().is_terminal() && !is_plain {
        // The styles are ours, and so is the text.
        true => write(&help.ansi().to_string()),
        false => print(&help.to_string()),
    }
}

/// Tells the user a line beside the answer.
pub fn tell(line: &str) {
    eprintln!("fairlab: {}", EscapedText(line));
}

/// Prints a line beside the answer as it stands.
pub fn remark(line: &str) {
    eprintln!("{}", EscapedText(line));
}

/// Tells the user a line beside the answer, written as for `format!`.
#[macro_export]
macro_rules! tell {
    ($($words:tt)*) => { $crate::output::tell(&format!($($words)*)) };
}

fn write(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// The words of a command or a workload on one line.
pub fn words(words: &[String]) -> String {
    EscapedText(&words.join(" ")).to_string()
}

/// Rows under a header, columns as wide as their widest cell; the first column is aligned to the left, the others to
/// the right.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let header = header.iter().map(|cell| EscapedText(cell).to_string()).collect::<Vec<_>>();
    let shown = |row: &Vec<String>| row.iter().map(|cell| EscapedText(cell).to_string()).collect::<Vec<_>>();
    let rows = rows.iter().map(shown).collect::<Vec<_>>();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([header[column].chars().count()]).max().unwrap_or(0)
    };
    let widths = (0..header.len()).map(width).collect::<Vec<_>>();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut line = String::new();
        for (column, (cell, &width)) in cells.zip(&widths).enumerate() {
            let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
            line += &if column == 0 { format!("{cell}{padding}") } else { format!("  {padding}{cell}") };
        }
        format!("{}\n", line.trim_end())
    };
    let mut text = line(&mut header.iter().map(String::as_str));
    for row in &rows {
        text += &line(&mut row.iter().map(String::as_str));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_an_answer_is_partial_stands_before_all_and_what_a_program_prints_stays() {
        let provenance = crate::provenance::here();
        let comment = provenance.comment();
        assert_eq!(
            headed(&provenance, "partial: 1 of 2\nrest\n"),
            format!("partial: 1 of 2\n{comment}rest\n")
        );
        for whole in ["run\npartial: said by a program\n", "", "partially\n"] {
            assert_eq!(headed(&provenance, whole), format!("{comment}{whole}"));
        }
    }

    #[test]
    fn cells_are_as_wide_as_what_is_shown() {
        let rows =
            vec![vec!["a\nb".to_string(), "\u{202e}".to_string()], vec!["c".to_string(), "1".to_string()]];
        assert_eq!(table(&["name", "n"], &rows), "name         n\na\\nb  \\u{202e}\nc            1\n");
    }

    #[test]
    fn columns_fit_their_cells() {
        let rows = vec![
            vec!["p99".to_string(), "12.2 ms".to_string()],
            vec!["switches".to_string(), "3".to_string()],
        ];
        assert_eq!(
            table(&["metric", "v6.5"], &rows),
            "metric       v6.5\np99       12.2 ms\nswitches        3\n"
        );
    }
}
