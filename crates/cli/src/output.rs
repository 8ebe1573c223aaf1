//! Standard output: whole answers, JSON, tables.

use std::io::{self, Write};

use fairlab_lab::provenance::Provenance;
use serde_json::Value;

use crate::error::CliError;

/// Prints an answer for people: how it came about stands first.
pub fn answer(provenance: &Provenance, text: &str) -> Result<(), CliError> {
    print(&(provenance.comment() + text))
}

/// Prints an answer for programs, which says how it came about.
pub fn answer_json(provenance: &Provenance, value: Value) -> Result<(), CliError> {
    print(&format!("{:#}\n", with_provenance(provenance, value)))
}

/// An answer for programs with how it came about, behind the name of its schema.
pub fn with_provenance(provenance: &Provenance, value: Value) -> Value {
    let Value::Object(mut fields) = value else { return value };
    let place = usize::from(fields.contains_key("schema")).min(fields.len());
    fields.shift_insert(place, "provenance".to_string(), provenance.to_json());
    Value::Object(fields)
}

/// How an answer came about, as the first paragraph of a page of Markdown.
pub fn markdown_line(provenance: &Provenance) -> String {
    let mut text = String::new();
    for character in provenance.line().chars() {
        if "\\`*_{}[]<>#|".contains(character) {
            text.push('\\');
        }
        text.push(character);
    }
    text + "\n\n"
}

/// Prints text as it is: help, and what a program prints that runs here.
pub fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Rows under a header, columns as wide as their widest cell; the first column is aligned to the left, the others to
/// the right.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
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
    let mut text = line(&mut header.iter().copied());
    for row in rows {
        text += &line(&mut row.iter().map(String::as_str));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

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
