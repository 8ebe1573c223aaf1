//! Answers for mails: lines of at most 75 columns in plain ASCII. Nothing is left out, and no row of a table is broken. Tables of other
//! answers are made here, too, and have at most 120 columns.
//!
//! * A wide table continues in a second table, which repeats the names of its rows.
//! * A long cell becomes a mark, `[1]`, with the text below the table.
//! * A sentence continues on the next line, a command behind a backslash, as a shell takes it.
//!
//! Must not know: what an answer says.

mod command;

use fairlab_event::EscapedText;
use fairlab_lab::provenance::Provenance;

use crate::args::PageStyle;
use crate::error::CliError;
use crate::output;

/// Columns of a line.
const COLUMNS: usize = 75;

/// Columns of a line of a table on a screen.
const SCREEN: usize = 120;

/// A cell that is wider is printed below the table.
const CELL_MAX: usize = 30;

/// The columns that name a row are together no wider.
const NAMES_MAX: usize = 42;

/// A name that is no wider stands in the table at any rate.
const NAME_KEPT: usize = 8;

/// Between two columns.
const GAP: usize = 2;

impl PageStyle {
    /// Prints an answer for people: how it came about stands first.
    pub fn answer(self, provenance: &Provenance, text: &str) -> Result<(), CliError> {
        match self {
            PageStyle::Fairlab => output::answer(provenance, text),
            PageStyle::Mail => output::print(&letter(&output::headed(provenance, text))),
        }
    }

    /// Rows under a header. The first `names` columns name a row.
    pub fn table(self, header: &[&str], names: usize, rows: &[Vec<String>]) -> String {
        match self {
            PageStyle::Fairlab => output::table(header, rows),
            PageStyle::Mail => table(header, names, rows),
        }
    }

    /// Sentences, a line each, in lines that fit on a screen; a mail breaks its lines itself.
    pub fn prose(self, text: &str) -> String {
        match self {
            PageStyle::Fairlab => text.lines().map(prose).collect(),
            PageStyle::Mail => text.to_string(),
        }
    }

    /// Rows under a header in lines that fit on a screen. The first `names` columns name a row.
    pub fn fitted(self, header: &[&str], names: usize, rows: &[Vec<String>]) -> String {
        match self {
            PageStyle::Fairlab => fitted(header, names, rows),
            PageStyle::Mail => table(header, names, rows),
        }
    }
}

/// A table that fits on a screen: a wide one has marks in place of long names of columns, its first column on several lines, and
/// continues in a second table.
fn fitted(header: &[&str], names: usize, rows: &[Vec<String>]) -> String {
    let whole = output::table(header, rows);
    if whole.lines().all(|line| line.chars().count() <= SCREEN) {
        return whole;
    }
    let mut head = header.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut marks = TableFootnotes::default();
    let long = head.iter_mut().skip(names).filter(|cell| cell.chars().count() > CELL_MAX);
    long.for_each(|cell| marks.shorten(cell));
    let widest = |rows: &[Vec<String>], column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).chain(head.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let others = (1..head.len()).map(|column| widest(rows, column) + GAP).sum::<usize>();
    let room = SCREEN.saturating_sub(others).max(NAMES_MAX);
    let rows = rows.iter().flat_map(|row| on_lines(row, room)).collect::<Vec<_>>();
    let widths = (0..head.len()).map(|column| widest(&rows, column)).collect::<Vec<_>>();
    let tables = blocks(&widths, names, SCREEN).into_iter().map(|columns| {
        let of = |row: &Vec<String>| {
            columns.iter().map(|&column| row.get(column).cloned().unwrap_or_default()).collect::<Vec<_>>()
        };
        let head = of(&head);
        let head = head.iter().map(String::as_str).collect::<Vec<_>>();
        output::table(&head, &rows.iter().map(of).collect::<Vec<_>>())
    });
    let text = tables.collect::<Vec<_>>().join("\n");
    let legend = (1..).zip(&marks.0).map(|(mark, name)| format!("[{mark}] {}\n", EscapedText(name)));
    text + &legend.collect::<String>()
}

/// A sentence on as many lines as it takes.
fn prose(line: &str) -> String {
    let lines = on_lines(&[line.to_string()], SCREEN).concat();
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A row whose first cell is no wider than `room`: words that have no room there stand in rows above.
fn on_lines(row: &[String], room: usize) -> Vec<Vec<String>> {
    let Some((first, others)) = row.split_first() else { return vec![Vec::new()] };
    let mut lines = vec![String::new()];
    for word in first.split(' ') {
        let last = lines.last().map_or(0, |line| line.chars().count());
        match lines.last_mut() {
            Some(line) if last == 0 || last + 1 + word.chars().count() <= room => {
                *line += if last == 0 { "" } else { " " };
                *line += word;
            }
            _ => lines.push(format!("  {word}")),
        }
    }
    let last = lines.pop().unwrap_or_default();
    let mut rows = lines.into_iter().map(|line| vec![line]).collect::<Vec<_>>();
    rows.push(std::iter::once(last).chain(others.iter().cloned()).collect());
    rows
}

/// Rows under a header. The first `names` columns name a row.
fn table(header: &[&str], names: usize, rows: &[Vec<String>]) -> String {
    let mut cells = vec![header.iter().map(|cell| ascii(cell)).collect::<Vec<_>>()];
    cells.extend(rows.iter().map(|row| row.iter().map(|cell| ascii(cell)).collect::<Vec<_>>()));
    let mut marks = TableFootnotes::default();
    for row in &mut cells {
        row.iter_mut().filter(|cell| cell.len() > CELL_MAX).for_each(|cell| marks.shorten(cell));
    }
    let mut widths = (0..header.len()).map(|column| width(&cells, column)).collect::<Vec<_>>();
    // The widest of the names first: there the least of them stand below.
    while widths[..names].iter().sum::<usize>() > NAMES_MAX {
        let Some(widest) = (0..names).max_by_key(|&column| widths[column]) else { break };
        let before = widths[widest];
        let long = cells.iter_mut().map(|row| &mut row[widest]).filter(|cell| cell.len() > NAME_KEPT);
        long.for_each(|cell| marks.shorten(cell));
        widths[widest] = width(&cells, widest);
        if widths[widest] >= before {
            break;
        }
    }
    let tables = blocks(&widths, names, COLUMNS).into_iter().map(|columns| {
        let of = |row: &Vec<String>| columns.iter().map(|&column| row[column].clone()).collect::<Vec<_>>();
        let head = of(&cells[0]);
        let head = head.iter().map(String::as_str).collect::<Vec<_>>();
        output::table(&head, &cells[1..].iter().map(of).collect::<Vec<_>>())
    });
    tables.collect::<Vec<_>>().join("\n") + &marks.list()
}

fn width(cells: &[Vec<String>], column: usize) -> usize {
    cells.iter().map(|row| row[column].len()).max().unwrap_or(0)
}

/// The columns of each table of at most `room` letters: those that name rows, and as many others as fit.
fn blocks(widths: &[usize], names: usize, room: usize) -> Vec<Vec<usize>> {
    let start = (0..names).collect::<Vec<_>>();
    let total = |columns: &[usize]| columns.iter().map(|&column| widths[column] + GAP).sum::<usize>();
    let mut blocks = Vec::new();
    let mut last = start.clone();
    for (column, width) in widths.iter().enumerate().skip(names) {
        if last.len() > names && total(&last) + width > room {
            blocks.push(std::mem::replace(&mut last, start.clone()));
        }
        last.push(column);
    }
    blocks.push(last);
    blocks
}

/// Cells that are printed below a table.
#[derive(Default)]
struct TableFootnotes(Vec<String>);

impl TableFootnotes {
    fn shorten(&mut self, cell: &mut String) {
        let place = self.0.iter().position(|known| known == cell).unwrap_or_else(|| {
            self.0.push(cell.clone());
            self.0.len() - 1
        });
        *cell = format!("[{}]", place + 1);
    }

    fn list(&self) -> String {
        let line = |(index, text): (usize, &String)| wrapped(&format!("[{}] {text}", index + 1), "    ");
        let lines = self.0.iter().enumerate().map(line).collect::<String>();
        if lines.is_empty() { lines } else { format!("\n{lines}") }
    }
}

/// A whole answer: each line as it is, or on several.
fn letter(text: &str) -> String {
    text.lines().map(line).collect()
}

fn line(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    if line.trim_start().starts_with("fairlab ") {
        return command::broken(line, indent, COLUMNS);
    }
    if line.starts_with("# ") {
        return comment(line);
    }
    wrapped(&ascii(line), &" ".repeat(indent.min(20) + 2))
}

/// A comment, which may end in a command: behind `#` and three blanks, its lines are those that a shell takes.
fn comment(line: &str) -> String {
    const MARGIN: &str = "#   ";
    let whole = wrapped(&ascii(line), MARGIN);
    let Some((head, command)) = line.split_once(": fairlab ").filter(|_| whole.lines().count() > 1) else {
        return whole;
    };
    let command = command::broken(&format!("fairlab {command}"), 0, COLUMNS - MARGIN.len());
    let lines = command.lines().map(|line| format!("{MARGIN}{line}\n"));
    wrapped(&ascii(&format!("{head}:")), MARGIN) + &lines.collect::<String>()
}

/// A line on as many as it takes, all but the first behind a margin. A word that is wider than a line is cut behind a backslash.
fn wrapped(text: &str, margin: &str) -> String {
    if text.len() <= COLUMNS {
        return format!("{text}\n");
    }
    let (mut lines, mut current) = (String::new(), String::new());
    for (index, word) in text.split(' ').enumerate() {
        if index > 0 && current.len() + 1 + word.len() > COLUMNS && current.trim() != margin.trim() {
            lines += &format!("{}\n", current.trim_end());
            current = format!("{margin}{word}");
        } else {
            current += if index > 0 { " " } else { "" };
            current += word;
        }
        while current.len() > COLUMNS {
            // Everything is ASCII here: a byte is a character.
            let rest = current.split_off(COLUMNS - 1);
            lines += &format!("{current}\\\n");
            current = format!("{margin}{rest}");
        }
    }
    lines + current.trim_end() + "\n"
}

/// Text in ASCII: what has a usual form there in that, the rest as Rust writes it.
fn ascii(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '…' => plain += "...",
            '±' => plain += "+-",
            'µ' | 'μ' => plain.push('u'),
            '→' => plain += "->",
            '≤' => plain += "<=",
            '≥' => plain += ">=",
            '×' => plain.push('x'),
            '–' | '—' | '−' => plain.push('-'),
            '\t' => plain += "        ",
            ascii if ascii.is_ascii() => plain.push(ascii),
            other => plain.extend(other.escape_unicode()),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(text: &str) -> bool {
        text.is_ascii() && text.lines().all(|line| line.len() <= COLUMNS)
    }

    #[test]
    fn a_wide_table_goes_on_below_and_loses_no_cell() {
        let header = ["kernel", "workload", "metric", "mean", "deviation", "median", "min", "max", ""];
        let long = format!("jobs {}", "spread:run=2ms,sleep=8ms ".repeat(6));
        let row = |kernel: &str, seed: usize| {
            let values = (0..5).map(|place| format!("{seed}{place}.25 us"));
            let names = [kernel, &long, "wakeup_latency_ns_p99.5"].map(str::to_string).into_iter();
            names.chain(values).chain(["one course of events".to_string()]).collect::<Vec<_>>()
        };
        let name = "v6.6-86bfbb7ce4f6-2f7b98d1e55c+NO_RUN_TO_PARITY,base_slice_ns=3000000,and=much,more=besides,still=more";
        let rows = [row("v6.5", 1), row(name, 2)];
        let text = table(&header, 3, &rows);
        assert!(fits(&text), "{text}");
        let joined = text.replace("\\\n    ", "");
        let joined = joined.split_whitespace().collect::<Vec<_>>().join(" ");
        for cell in rows.iter().flatten().chain(&header.map(str::to_string)) {
            assert!(joined.contains(cell.trim()), "{cell} is not in\n{text}");
        }
        assert_eq!(text.matches("one course of events").count(), 2, "{text}");
        assert!(text.matches("wakeup_latency_ns_p99.5").count() >= 4, "each table names its rows: {text}");
    }

    #[test]
    fn a_wide_table_fits_on_a_screen() {
        let cause = "behind a task of its own name, which was picked, since it has the earliest deadline of the eligible ones";
        let kernel = "v6.12-86bfbb7ce4f6+NO_RUN_TO_PARITY,base_slice_ns=2000000";
        let row = vec![cause.to_string(), "0".to_string(), "631 ms/s".to_string(), "621 .. 641".to_string()];
        let text = fitted(&["waiting", "v6.5", kernel, "95 % interval"], 1, &[row]);
        assert!(text.lines().all(|line| line.chars().count() <= SCREEN), "{text}");
        assert!(text.contains(&format!("\n[1] {kernel}\n")), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&format!("{cause} 0 631 ms/s 621 .. 641")), "{text}");
        let many = (0..20).map(|column| format!("column {column}")).collect::<Vec<_>>();
        let header = many.iter().map(String::as_str).collect::<Vec<_>>();
        let text = fitted(&header, 1, std::slice::from_ref(&many));
        assert!(text.lines().all(|line| line.chars().count() <= SCREEN), "{text}");
        assert!(many.iter().all(|cell| text.matches(cell.as_str()).count() >= 2), "{text}");
        let hostile = format!("{kernel}\n[9] another");
        let text = fitted(
            &["waiting", "v6.5", &hostile],
            1,
            &[vec![cause.to_string(), "0".to_string(), "1".to_string()]],
        );
        assert!(text.lines().all(|line| !line.starts_with("[9]")), "{text}");
        let text = prose(&format!("631 ms/s more is {cause}: 631 ms/s instead of 0"));
        assert!(text.lines().count() == 2 && text.lines().all(|line| line.len() <= SCREEN), "{text}");
        assert_eq!(prose("short") + &prose(""), "short\n\n");
        let narrow = [vec!["p99".to_string(), "1".to_string()]];
        assert_eq!(fitted(&["metric", "v6.5"], 1, &narrow), output::table(&["metric", "v6.5"], &narrow));
    }

    #[test]
    fn a_table_that_fits_is_as_it_was() {
        let rows = [vec!["p99".to_string(), "12.2 ms".to_string()]];
        assert_eq!(table(&["metric", "v6.5"], 1, &rows), output::table(&["metric", "v6.5"], &rows));
    }

    #[test]
    fn sentences_go_on_in_the_next_line_and_words_stay() {
        let comment = format!("# modelled by fairlab: {}", "compare hackbench -g 4 ".repeat(6));
        let long = "x".repeat(200);
        let text = format!("{comment}\n\nnote: … ±2 % is the ä of {long} and more\n  short\n");
        let letter = letter(&text);
        assert!(fits(&letter), "{letter}");
        assert!(letter.lines().nth(1).is_some_and(|line| line.starts_with("#   ")), "{letter}");
        assert!(letter.contains("note: ... +-2 % is the \\u{e4} of"), "{letter}");
        assert!(letter.replace("\\\n  ", "").contains(&long), "{letter}");
        assert!(letter.ends_with("  short\n"), "{letter}");
        let came_about =
            format!("# modelled by fairlab 0.1.0 (unknown): fairlab compare '{}'\n", "a b ".repeat(40));
        let letter = super::letter(&came_about);
        assert!(fits(&letter), "{letter}");
        let command = letter.lines().skip(1).map(|line| line.strip_prefix("#   ").expect("a comment"));
        let command = command.collect::<Vec<_>>().join("\n").replace("'\\\n'", "").replace(" \\\n  ", " ");
        assert_eq!(command, format!("fairlab compare '{}'", "a b ".repeat(40)), "{letter}");
    }
}
