//! What comes of a scenario: figures beside figures, claims, the story.
//!
//! Must not know: how it is laid out for a reader.

use fairlab_files::{LabError, OutputFolder};
use fairlab_lab::RunResult;
use serde_json::{Value, json};

use super::claim::JudgedClaim;
use super::{Picture, Scenario, ScenarioContext};

/// A piece of a report, in the order in which it is read.
#[derive(Clone, Debug, PartialEq)]
pub enum ReportPart {
    /// A heading.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// Rows under a header.
    Table {
        /// The header's cells.
        header: Vec<String>,
        /// As many cells each.
        rows: Vec<Vec<String>>,
    },
    /// Lines that keep their layout.
    Verbatim(String),
    /// A picture, on pages only.
    Picture(Picture),
}

/// What came of a scenario.
#[derive(Clone, Debug)]
pub struct ScenarioReport {
    /// The scenario's name.
    pub name: String,
    /// The name of its page.
    pub page: String,
    /// What it is about.
    pub about: String,
    /// Where it was published.
    pub source: String,
    /// The commit.
    pub commit: String,
    /// Whether the runs were shortened.
    pub quick: bool,
    /// Whether nothing was left to chance, so that runs of one kernel are one course of events.
    pub exact: bool,
    /// From when on runs were measured, a sentence.
    pub measured: String,
    /// Figures and story.
    pub parts: Vec<ReportPart>,
    /// What came of the claims.
    pub claims: Vec<JudgedClaim>,
    /// The runs, each with the name of its folder.
    pub runs: Vec<(String, RunResult)>,
}

impl ScenarioReport {
    /// Writes it, `answer` being the same for programs, and what each of its runs printed and counted, into a folder of its name.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, folder: &OutputFolder, answer: &Value) -> Result<(), LabError> {
        let name = &self.name;
        folder.file(&format!("{name}/report.txt"), &self.to_text())?;
        folder.file(&format!("{name}/report.json"), &format!("{answer:#}\n"))?;
        for (file, picture) in self.pictures() {
            folder.file(&format!("{name}/{file}.json"), &format!("{:#}\n", json!(picture)))?;
        }
        for (label, run) in &self.runs {
            let place = format!("{name}/{label}");
            folder.file(&format!("{place}/output.txt"), &run.output)?;
            folder.file(&format!("{place}/schedstat.txt"), &run.schedstat)?;
            folder.file(&format!("{place}/schedstat-sis.txt"), &run.schedstat_searches)?;
        }
        Ok(())
    }

    pub(super) fn new(scenario: &Scenario, bench: &ScenarioContext<'_>) -> ScenarioReport {
        let measured = match bench.warmup {
            Some(warmup) => format!("Runs settle for {warmup} s before they are measured (--warmup)."),
            None => scenario.measured.clone(),
        };
        ScenarioReport {
            name: scenario.name.clone(),
            page: scenario.name.clone(),
            about: scenario.title.clone(),
            source: scenario.source.clone(),
            commit: scenario.commit.clone(),
            quick: bench.quick,
            exact: bench.exact,
            measured,
            parts: Vec::new(),
            claims: Vec::new(),
            runs: Vec::new(),
        }
    }

    pub(super) fn heading(&mut self, text: impl Into<String>) {
        self.parts.push(ReportPart::Heading(text.into()));
    }

    pub(super) fn text(&mut self, text: impl Into<String>) {
        self.parts.push(ReportPart::Text(text.into()));
    }

    pub(super) fn verbatim(&mut self, text: impl Into<String>) {
        self.parts.push(ReportPart::Verbatim(text.into()));
    }

    /// Keeps what came of runs, each under machine, workload, kernel and seed.
    pub(super) fn keep(&mut self, runs: impl IntoIterator<Item = RunResult>) {
        let label = |run: &RunResult| {
            let workload = run.workload.replace([' ', '/'], "_");
            format!("{}/{workload}/{}/seed-{}", run.machine, run.kernel, run.seed)
        };
        for run in runs {
            let label = label(&run);
            if !self.runs.iter().any(|(known, _)| *known == label) {
                self.runs.push((label, run));
            }
        }
    }

    /// The pictures, each with the name of its file, without an end.
    pub fn pictures(&self) -> Vec<(String, &Picture)> {
        let pictures = self.parts.iter().filter_map(|part| match part {
            ReportPart::Picture(picture) => Some(picture),
            _ => None,
        });
        let named = |(index, picture)| (format!("{}-{}", self.name, index + 1), picture);
        pictures.enumerate().map(named).collect()
    }

    pub(super) fn table(&mut self, header: &[&str], rows: Vec<Vec<String>>) {
        let header = header.iter().map(|&cell| cell.to_string()).collect::<Vec<_>>();
        assert!(rows.iter().all(|row| row.len() == header.len()), "a table's rows are as long as its header");
        self.parts.push(ReportPart::Table { header, rows });
    }

    /// What is left to chance, a sentence.
    pub fn chance(&self) -> &'static str {
        match self.exact {
            true => {
                "Nothing is left to chance: each kernel's runs are one course of events, but for what the workload itself draws, \
                 so no figure says what other courses would give."
            }
            false => "Runs differ from seed to seed by what chance the machine has.",
        }
    }

    /// Whether every claim holds.
    pub fn holds(&self) -> bool {
        self.claims.iter().all(|claim| claim.holds)
    }
}

#[cfg(test)]
mod tests {
    use fairlab_event::Ns;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_story_is_told_in_order_and_finds_its_tables() {
        let stop = std::sync::atomic::AtomicBool::new(false);
        let bench = |exact, warmup| ScenarioContext {
            quick: true,
            exact,
            warmup,
            jobs: 1,
            store: None,
            on_progress: &|_| {},
            stop: &stop,
            longest: None,
        };
        let mut report =
            ScenarioReport::new(super::super::find("wasted-cores").expect("a report"), &bench(false, None));
        assert!(!report.chance().contains("one course") && !report.measured.contains("--warmup"));
        let exact = ScenarioReport::new(
            super::super::find("wasted-cores").expect("a report"),
            &bench(true, Some(Ns::from_ms(5))),
        );
        for told in [exact.to_text(), exact.to_markdown("this"), exact.to_json().to_string()] {
            let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(told.contains("one course of events") && told.contains("--warmup"), "{told}");
        }
        let row = |cell: &str| vec![vec![cell.to_string()]];
        report.heading("tables");
        report.table(&["first"], row("1"));
        report.parts.push(ReportPart::Picture(Picture {
            title: String::new(),
            logarithmic: false,
            rows: Vec::new(),
        }));
        report.text("between them");
        report.table(&["second"], row("2"));
        report.verbatim("as it is");
        let json = report.to_json();
        let story = json!([
            { "heading": "tables" }, { "table": 0 }, { "text": "between them" }, { "table": 1 }, { "verbatim": "as it is" },
        ]);
        assert_eq!(json["story"], story);
        assert_eq!(json["tables"][1], json!({ "header": ["second"], "rows": [["2"]] }));
    }
}
