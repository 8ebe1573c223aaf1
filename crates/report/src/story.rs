//! A story, once its numbers are filled in: Markdown to the pieces of a report.
//!
//! Headings are lines that begin with `##`, tables lines that begin with a bar. A fence of `text` keeps its layout. A fence of `picture`
//! has its title in the first line, then `name | published | measured`, a row a line. All else is paragraphs.
//!
//! `web/src/base/bars.ts` draws pictures, on pages and for documents.
//!
//! Must not know: expressions, what any report says.

use fairlab_lab::LabError;
use serde::Serialize;

use super::report::ReportPart;

/// Bars of values, one row a name; the published value above the measured one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Picture {
    /// What is shown, with its unit.
    pub title: String,
    /// Each tenfold is as long as the next, for values that differ by orders of magnitude.
    pub logarithmic: bool,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// What was published, if anything.
    pub published: Option<f64>,
    /// What was measured, if anything.
    pub measured: Option<f64>,
}

/// The pieces of a story.
///
/// # Errors
/// A table or a picture is none.
pub(crate) fn parts_of(report: &str, story: &str) -> Result<Vec<ReportPart>, LabError> {
    let refused = |problem: String| {
        LabError::new(format!("report {report}: its story: {problem}"), "correct the story")
    };
    let mut parts = Vec::new();
    let mut lines = story.lines().peekable();
    while let Some(line) = lines.next() {
        let first = line.trim_end();
        if first.is_empty() {
            continue;
        }
        let mut block = vec![first];
        if let Some(kind) = first.strip_prefix("```") {
            let fenced = lines.by_ref().take_while(|line| line.trim_end() != "```");
            let fenced = fenced.collect::<Vec<_>>();
            parts.push(match kind {
                "picture" => ReportPart::Picture(picture_of(&fenced).map_err(refused)?),
                _ => ReportPart::Verbatim(fenced.join("\n")),
            });
            continue;
        }
        if let Some(heading) = first.strip_prefix("## ") {
            parts.push(ReportPart::Heading(heading.to_string()));
            continue;
        }
        let is_table = first.starts_with('|');
        let goes_on = |line: &&str| {
            let line = line.trim_end();
            !line.is_empty() && !line.starts_with("```") && line.starts_with('|') == is_table
        };
        while let Some(line) = lines.next_if(goes_on) {
            block.push(line.trim_end());
        }
        parts.push(match is_table {
            true => table_of(&block).map_err(refused)?,
            false => ReportPart::Text(block.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")),
        });
    }
    Ok(parts)
}

fn cells_of(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|');
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    inner.split('|').map(|cell| cell.trim().to_string()).collect()
}

fn table_of(lines: &[&str]) -> Result<ReportPart, String> {
    let mut rows = lines.iter().filter(|line| !line.starts_with("|--")).map(|line| cells_of(line));
    let header = rows.next().unwrap_or_default();
    let rows = rows.collect::<Vec<_>>();
    match rows.iter().find(|row| row.len() != header.len()) {
        Some(row) => {
            Err(format!("a row has {} cells under {}: {}", row.len(), header.len(), row.join(" | ")))
        }
        None => Ok(ReportPart::Table { header, rows }),
    }
}

/// The end of a title whose picture is logarithmic.
const LOGARITHMIC: &str = "(logarithmic)";

fn picture_of(lines: &[&str]) -> Result<Picture, String> {
    let (title, rows) = lines.split_first().ok_or("a picture without a title")?;
    let row = |line: &&str| {
        let cells = cells_of(line);
        let [name, published, measured] = &cells[..] else {
            return Err(format!("a picture's row is 'name | published | measured', not '{line}'"));
        };
        let figure = |cell: &String| match cell.as_str() {
            "" | "-" => Ok(None),
            cell => cell.parse::<f64>().map(Some).map_err(|_| format!("'{cell}' is no number")),
        };
        Ok(Row { name: name.clone(), published: figure(published)?, measured: figure(measured)? })
    };
    let rows = rows.iter().filter(|line| !line.trim().is_empty()).map(row).collect::<Result<_, _>>()?;
    Ok(Picture { title: title.to_string(), logarithmic: title.ends_with(LOGARITHMIC), rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_has_its_pieces_in_order() {
        let story = "## A heading\n\nOne\nline.\n| a | b |\n|---|---|\n| 1 |  |\n\n```text\n as it\nis\n```\n```picture\np99 (logarithmic)\nv6.6 | 2 | -\n```\n";
        let parts = parts_of("a", story).expect("a story");
        let cells = |row: [&str; 2]| row.map(String::from).to_vec();
        let row = Row { name: "v6.6".to_string(), published: Some(2.0), measured: None };
        assert_eq!(
            parts,
            [
                ReportPart::Heading("A heading".to_string()),
                ReportPart::Text("One line.".to_string()),
                ReportPart::Table { header: cells(["a", "b"]), rows: vec![cells(["1", ""])] },
                ReportPart::Verbatim(" as it\nis".to_string()),
                ReportPart::Picture(Picture {
                    title: "p99 (logarithmic)".to_string(),
                    logarithmic: true,
                    rows: vec![row]
                }),
            ]
        );
        for (wrong, said) in [
            ("| a | b |\n| 1 |\n", "1 cells under 2"),
            ("```picture\nt\nv6.6 | 2\n```\n", "a picture's row"),
            ("```picture\nt\nv6.6 | x | 2\n```\n", "'x' is no number"),
        ] {
            assert!(parts_of("a", wrong).is_err_and(|error| error.problem.contains(said)), "{wrong}");
        }
    }
}
