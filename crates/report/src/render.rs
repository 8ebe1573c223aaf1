//! A report as text for a terminal and as a page of Markdown.
//!
//! Must not know: what any scenario measures.

use fairlab_event::{EscapedText, ShownLines};

use super::claim::{ClaimValue, JudgedClaim};
use super::report::{ReportPart, ScenarioReport};

/// The greatest width of a paragraph.
const WIDTH: usize = 120;

impl ScenarioReport {
    /// For people at a terminal.
    pub fn to_text(&self) -> String {
        let mut text =
            format!("{}: {}\n{}\n", self.name, self.about, wrap(&format!("Report: {}", self.source)));
        if self.quick {
            text += "Quick form: fewer and shorter runs.\n";
        }
        text += &format!("{}\n", wrap(&self.conditions()));
        for part in &self.parts {
            if matches!(part, ReportPart::Picture(_)) {
                continue;
            }
            text.push('\n');
            match part {
                ReportPart::Picture(_) => {}
                ReportPart::Heading(heading) => text += &format!("== {heading} ==\n"),
                ReportPart::Text(paragraph) => text += &format!("{}\n", wrap(paragraph)),
                ReportPart::Table { header, rows } => text += &aligned(header, rows),
                ReportPart::Verbatim(lines) => text += &format!("{}\n", lines.trim_end()),
            }
        }
        if !self.claims.is_empty() {
            text += "\n== Claims ==\n\n";
        }
        for claim in &self.claims {
            text += &format!("{} {}\n", verdict(claim), claim.text);
            text += &format!("{:17}published: {}; measured: {}\n", "", published(claim), measured(claim));
        }
        let holds = self.claims.iter().filter(|claim| claim.holds).count();
        if !self.claims.is_empty() {
            text += &format!("\n{holds} of {} claims hold.", self.claims.len());
        }
        text += &format!("\nCommit: {}\n", self.commit);
        text
    }

    /// What the runs were made under.
    fn conditions(&self) -> String {
        format!("{} {}", self.measured, self.chance())
    }

    /// For a page among the documents; `command` is what makes it.
    pub fn to_markdown(&self, command: &str) -> String {
        let mut text = format!(
            "# {}\n\n{}.\n\nReport: {}.\n\nThis page is written by `{command}`. {}\n",
            self.name,
            self.about,
            self.source,
            self.conditions()
        );
        let mut pictures = self.pictures().into_iter();
        for part in &self.parts {
            text.push('\n');
            match part {
                ReportPart::Picture(picture) => {
                    let file = pictures.next().map_or(String::new(), |(file, _)| file);
                    text += &format!("![{}]({file}.svg)\n", picture.title);
                }
                ReportPart::Heading(heading) => text += &format!("## {}\n", EscapedText(heading)),
                ReportPart::Text(paragraph) => text += &format!("{}\n", ShownLines(paragraph)),
                ReportPart::Table { header, rows } => text += &pipes(header, rows),
                ReportPart::Verbatim(lines) => text += &fenced(lines.trim_end()),
            }
        }
        if !self.claims.is_empty() {
            text += "\n## Claims\n\n| claim | published | measured | |\n|---|---:|---:|---|\n";
        }
        for claim in &self.claims {
            let (published, measured) = (published(claim), measured(claim));
            text +=
                &format!("| {} | {published} | {measured} | {} |\n", claim.text, verdict(claim).trim_end());
        }
        text + &format!("\nCommit: {}.\n", self.commit)
    }
}

/// Lines as they are, in a fence that none of them can end.
fn fenced(lines: &str) -> String {
    let runs = lines.split(|char| char != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(3.max(runs + 1));
    format!("{fence}text\n{}\n{fence}\n", ShownLines(lines))
}

const fn verdict(claim: &JudgedClaim) -> &'static str {
    if claim.holds { "holds          " } else { "does not hold  " }
}

fn published(claim: &JudgedClaim) -> String {
    match &claim.published {
        Some(ClaimValue::Number(value)) => with_unit(*value, &claim.unit),
        Some(ClaimValue::Words(words)) => words.clone(),
        None => "-".to_string(),
    }
}

fn measured(claim: &JudgedClaim) -> String {
    claim.measured.map_or("nothing".to_string(), |value| with_unit(value, &claim.unit))
}

fn with_unit(value: f64, unit: &str) -> String {
    let number = number(value);
    if unit.is_empty() { number } else { format!("{number} {unit}") }
}

/// A number with as many digits as say something.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        size if size == 0.0 || size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// A number with the digits that say something, or a dash.
pub(crate) fn shown(value: Option<f64>) -> String {
    value.map_or("-".to_string(), number)
}

pub(super) fn wrap(paragraph: &str) -> String {
    let mut lines = vec![String::new()];
    for word in paragraph.split_whitespace() {
        let width = lines.last().map_or(0, |line| line.chars().count());
        if width > 0 && width + 1 + word.chars().count() > WIDTH {
            lines.push(String::new());
        }
        let Some(line) = lines.last_mut() else { continue };
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.join("\n")
}

/// The first column to the left, the others to the right.
pub(super) fn aligned(header: &[String], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let all = rows.iter().chain([&header.to_vec()]).map(|row| row[column].chars().count()).max();
        all.unwrap_or(0)
    };
    let widths = (0..header.len()).map(width).collect::<Vec<_>>();
    let line = |row: &[String]| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            let padding = " ".repeat(width - cell.chars().count());
            if column == 0 { format!("{cell}{padding}") } else { format!("  {padding}{cell}") }
        });
        format!("{}\n", cells.collect::<String>().trim_end())
    };
    rows.iter().fold(line(header), |text, row| text + &line(row))
}

pub(super) fn pipes(header: &[String], rows: &[Vec<String>]) -> String {
    // A star is a mark of the tables that are copied, never emphasis.
    let cell = |cell: &String| {
        let shown = EscapedText(&cell.replace('\n', " ")).to_string();
        shown.replace('*', "\\*").replace('|', "\\|").replace('<', "&lt;")
    };
    let line = |row: &[String]| format!("| {} |\n", row.iter().map(cell).collect::<Vec<_>>().join(" | "));
    let rule = format!("|---|{}\n", "---:|".repeat(header.len().saturating_sub(1)));
    rows.iter().fold(line(header) + &rule, |text, row| text + &line(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_say_something() {
        let all = [0.0, 0.012_34, 0.5, 3.146, 12.34, 12_976.4].map(number);
        assert_eq!(all, ["0", "0.0123", "0.50", "3.15", "12.3", "12976"]);
    }

    #[test]
    fn tables_line_up_and_paragraphs_wrap() {
        let cells = |line: &str| line.split(' ').map(String::from).collect::<Vec<_>>();
        assert_eq!(
            aligned(&cells("kernel p99"), &[cells("v5.2 9"), cells("v5.10 12976")]),
            "kernel    p99\nv5.2        9\nv5.10   12976\n"
        );
        let pipes = pipes(&cells("a b"), &[cells("c *1%*")]);
        assert_eq!(pipes, "| a | b |\n|---|---:|\n| c | \\*1%\\* |\n");
        let wrapped = wrap(&"word ".repeat(60));
        assert!(wrapped.lines().count() == 3 && wrapped.lines().all(|line| line.len() <= WIDTH));
    }
}
