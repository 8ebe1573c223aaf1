//! Rows of text in columns.
//!
//! Must not know: what the cells say.

use std::fmt;

/// Prints rows under a header. Columns are as wide as their widest cell, the first `left` columns aligned to the left, the others
/// to the right.
pub(crate) fn print(
    f: &mut fmt::Formatter<'_>,
    left: usize,
    header: &[&str],
    rows: &[Vec<String>],
) -> fmt::Result {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([header[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut line = String::new();
        for (column, (cell, &width)) in cells.zip(&widths).enumerate() {
            let separator = if column == 0 { "" } else { "  " };
            line += &match column < left {
                true => format!("{separator}{cell:<width$}"),
                false => format!("{separator}{cell:>width$}"),
            };
        }
        writeln!(f, "{}", line.trim_end())
    };
    line(&mut header.iter().copied())?;
    for row in rows {
        line(&mut row.iter().map(String::as_str))?;
    }
    Ok(())
}

/// A duration as microseconds with one digit behind the point.
pub(crate) fn us(nanoseconds: u64) -> String {
    format!("{}.{}", nanoseconds / 1_000, nanoseconds % 1_000 / 100)
}

/// A duration as milliseconds with three digits behind the point.
pub(crate) fn ms(nanoseconds: u64) -> String {
    format!("{}.{:03}", nanoseconds / 1_000_000, nanoseconds % 1_000_000 / 1_000)
}
