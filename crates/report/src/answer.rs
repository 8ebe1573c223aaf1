//! `fairlab/scenario/1`, `scenarios/1` and `scenario-about/1`: reports, and what there is of them, as programs read it.
//!
//! Must not know: how an answer is printed, what people read in its place.

use fairlab_lab::RunResult;
use serde::Serialize;
use serde_json::{Value, json};

use super::claim::JudgedClaim;
use super::report::{ReportPart, ScenarioReport};
use super::{Scenario, Small, all};

/// Every scenario, without its runs.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "schema", rename = "fairlab/scenarios/1")]
pub struct ScenariosAnswer<'s> {
    /// In the order in which they are listed.
    pub scenarios: Vec<ScenarioDescription<'s>>,
}

/// One scenario, without its runs.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "schema", rename = "fairlab/scenario-about/1")]
pub struct AboutAnswer<'s> {
    /// What it is.
    #[serde(flatten)]
    pub about: ScenarioDescription<'s>,
}

/// What a scenario is.
#[derive(Clone, Debug, Serialize)]
pub struct ScenarioDescription<'s> {
    /// Its name.
    pub name: &'s str,
    /// What it is about.
    pub about: &'s str,
    /// Where it was published.
    pub source: &'s str,
    /// The commit.
    pub commit: &'s str,
    /// The two kernels that differ by it.
    pub pair: [&'s str; 2],
    /// The report's machine.
    pub machine: &'s str,
    /// The workload that other kernels can carry.
    pub small: SmallAnswer<'s>,
}

/// A report's workload on a few CPUs.
#[derive(Clone, Debug, Serialize)]
pub struct SmallAnswer<'s> {
    /// Its command line.
    pub workload: &'s str,
    /// The machine.
    pub machine: &'s str,
}

impl Scenario {
    /// What it is, for programs.
    pub fn about(&self) -> ScenarioDescription<'_> {
        let Small { workload, machine, .. } = &self.small;
        ScenarioDescription {
            name: &self.name,
            about: &self.title,
            source: &self.source,
            commit: &self.commit,
            pair: self.pair.each_ref().map(String::as_str),
            machine: &self.machine,
            small: SmallAnswer { workload, machine },
        }
    }
}

impl ScenariosAnswer<'static> {
    /// All that there are.
    pub fn all() -> ScenariosAnswer<'static> {
        ScenariosAnswer { scenarios: all().iter().map(Scenario::about).collect() }
    }
}

/// What came of a scenario.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "schema", rename = "fairlab/scenario/1")]
pub struct ScenarioAnswer<'a> {
    /// The scenario's name.
    pub name: &'a str,
    /// What it is about.
    pub about: &'a str,
    /// Where it was published.
    pub source: &'a str,
    /// The commit.
    pub commit: &'a str,
    /// Whether the runs were shortened.
    pub quick: bool,
    /// Whether nothing was left to chance.
    pub exact: bool,
    /// What was left to chance, a sentence.
    pub chance: &'static str,
    /// From when on runs were measured, a sentence.
    pub measured: &'a str,
    /// Whether every claim holds.
    pub holds: bool,
    /// What came of the claims.
    pub claims: &'a [JudgedClaim],
    /// The tables.
    pub tables: Vec<TableAnswer<'a>>,
    /// What the text says, in order.
    pub story: Vec<StoryAnswer<'a>>,
    /// The runs.
    pub runs: Vec<RunOfScenario<'a>>,
}

/// Rows under a header.
#[derive(Clone, Debug, Serialize)]
pub struct TableAnswer<'a> {
    /// The header's cells.
    pub header: &'a [String],
    /// As many cells each.
    pub rows: &'a [Vec<String>],
}

/// A piece of the story; a picture is none.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StoryAnswer<'a> {
    /// A heading.
    Heading(&'a str),
    /// A paragraph.
    Text(&'a str),
    /// Lines that keep their layout.
    Verbatim(&'a str),
    /// A table, by its place among the tables.
    Table(usize),
}

/// A run with the name of its folder.
#[derive(Clone, Debug, Serialize)]
pub struct RunOfScenario<'a> {
    /// The folder's name.
    pub label: &'a str,
    /// What came of it.
    pub run: &'a RunResult,
}

impl ScenarioReport {
    /// The answer for programs.
    pub fn answer(&self) -> ScenarioAnswer<'_> {
        let tables = self.parts.iter().filter_map(|part| match part {
            ReportPart::Table { header, rows } => Some(TableAnswer { header, rows }),
            _ => None,
        });
        let mut places = 0..;
        let story = self.parts.iter().filter_map(|part| match part {
            ReportPart::Heading(text) => Some(StoryAnswer::Heading(text)),
            ReportPart::Text(text) => Some(StoryAnswer::Text(text)),
            ReportPart::Verbatim(text) => Some(StoryAnswer::Verbatim(text)),
            ReportPart::Table { .. } => places.next().map(StoryAnswer::Table),
            ReportPart::Picture(_) => None,
        });
        ScenarioAnswer {
            name: &self.name,
            about: &self.about,
            source: &self.source,
            commit: &self.commit,
            quick: self.quick,
            exact: self.exact,
            chance: self.chance(),
            measured: &self.measured,
            holds: self.holds(),
            claims: &self.claims,
            tables: tables.collect(),
            story: story.collect(),
            runs: self.runs.iter().map(|(label, run)| RunOfScenario { label, run }).collect(),
        }
    }

    /// The answer for programs, schema `fairlab/scenario/1`.
    pub fn to_json(&self) -> Value {
        json!(self.answer())
    }
}
