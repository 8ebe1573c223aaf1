//! Standard output: whole answers, JSON, tables.

use std::io::{self, Write};

use serde_json::Value;

use crate::error::CliError;

/// Prints an answer.
pub fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Prints an answer for programs.
pub fn print_json(value: &Value) -> Result<(), CliError> {
    print(&format!("{value:#}\n"))
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
