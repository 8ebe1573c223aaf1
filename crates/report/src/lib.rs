//! Scenarios: published reports on the fair scheduler, each reproduced by one command.
//!
//! A scenario runs a report's workload on the report's machine and kernels, and puts published and measured figures side by
//! side. It says of each claim whether it holds, and explains the effect by what happened in the runs. It also takes the
//! guilty rule out, to see the effect vanish (*ablation*).
//!
//! Each scenario is a file (`file`), with its story beside it:
//!
//! * sides, which are runs that have a name;
//! * figures of runs, which are expressions (`expressions`);
//! * claims, which are expressions with a bar;
//! * a story, a template whose numbers are figures of named runs.
//!
//! One judge decides all claims.
//!
//! Published figures are data, and decide nothing in a run. An unknown value that is fitted to one of them (a machine's costs,
//! the times of a workload) says so. So does a claim on that figure.
//!
//! Must not know: how a result reaches a user.

mod answer;
pub mod booted_table;
mod claim;
mod expressions;
mod family;
mod file;
mod meanwhile;
pub mod public;
mod render;
mod report;
mod reported_run;
mod runs;
mod search;
mod story;
mod told;
mod ubuntu_kernels;
mod user_replacement;
mod user_workload;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use fairlab_event::spelling::meant;
use fairlab_event::{Ns, ShownPath};
use fairlab_lab::{LabError, Progress, RunStore};
use minijinja::value::Value;

pub use answer::{
    AboutAnswer, RunOfScenario, ScenarioAnswer, ScenarioDescription, ScenariosAnswer, SmallAnswer,
    StoryAnswer, TableAnswer,
};
pub use claim::{ClaimValue, JudgedClaim, ReportClaim};
use expressions::{Cell, Language};
pub use file::{STORY_KEYS, Scenario, Small};
pub use report::{ReportPart, ScenarioReport};
pub use story::{Picture, Row};
pub use user_replacement::UserReplacement;

/// A report's name, its file and its story.
type Carried = (&'static str, &'static str, &'static str);

macro_rules! carried {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../reports/", $name, ".toml")), include_str!(concat!("../reports/", $name, ".md")))),*]
    };
}

/// The reports that the program carries, in the order in which they are listed.
const CARRIED: &[Carried] = carried![
    "load-balance-rework",
    "idle-cpumask",
    "lb-bias",
    "nohz-blocked-load",
    "eevdf-vhost",
    "wasted-cores"
];

/// Every scenario, in the order in which they are listed.
///
/// # Panics
/// A file that the program carries is no report; a test reads them all.
pub fn all() -> &'static [Scenario] {
    static ALL: OnceLock<Vec<Scenario>> = OnceLock::new();
    ALL.get_or_init(|| {
        let read = |&(name, text, story): &Carried| match Scenario::parse(name, text, story) {
            Ok(report) => report,
            Err(error) => panic!("{error}"),
        };
        CARRIED.iter().map(read).collect()
    })
}

/// Whether a file is a scenario, and no other report: it has sides.
pub fn is_scenario(path: &Path) -> bool {
    let text = std::fs::read_to_string(path).ok();
    let Some(table) = text.and_then(|text| text.parse::<toml::Table>().ok()) else { return false };
    // A report of claims may have sides, too: what it claims was published.
    let claims = table.get("claim").and_then(toml::Value::as_array);
    let is_public = claims.is_some_and(|claims| claims.iter().any(|claim| claim.get("published").is_some()));
    table.contains_key("side") && !is_public
}

/// The scenario of a file, its story beside it as Markdown.
///
/// # Errors
/// It cannot be read, or is none.
pub fn read(path: &Path) -> Result<Scenario, LabError> {
    let of = |path: &Path| {
        std::fs::read_to_string(path)
            .map_err(|error| LabError::new(format!("report {}: {error}", ShownPath(path)), "check the path"))
    };
    let name = path.file_stem().map_or(String::new(), |stem| stem.to_string_lossy().into_owned());
    Scenario::parse(&name, &of(path)?, &of(&path.with_extension("md"))?)
}

/// The scenario called `name`.
///
/// # Errors
/// There is none.
pub fn find(name: &str) -> Result<&'static Scenario, LabError> {
    all().iter().find(|scenario| scenario.name == name).ok_or_else(|| {
        let names = all().iter().map(|scenario| scenario.name.as_str()).collect::<Vec<_>>();
        let hint = match meant(name, names.iter().copied()) {
            Some(known) => format!("{known} may be meant; 'fairlab scenario list' lists all"),
            None => format!("known are {}, and all", names.join(", ")),
        };
        LabError::new(format!("unknown scenario '{name}'"), hint)
    })
}

/// What a scenario works with.
pub struct ScenarioContext<'a> {
    /// Shorter and fewer runs.
    pub quick: bool,
    /// Nothing is left to chance.
    pub exact: bool,
    /// How long each run settles; without, a report's own runs as its protocol says, and another workload's as long as the
    /// machine takes.
    pub warmup: Option<Ns>,
    /// How many runs go on at once; results do not depend on it.
    pub jobs: usize,
    /// Where runs are kept, if they are.
    pub store: Option<&'a RunStore>,
    /// Called after each run of a batch, from any thread.
    pub on_progress: &'a (dyn Fn(Progress) + Sync),
    /// Set by the caller for an early end.
    pub stop: &'a AtomicBool,
    /// No run is longer, whatever the report asks for. It serves tests of whether all goes through.
    pub longest: Option<Ns>,
}

impl<'a> ScenarioContext<'a> {
    /// The quick form, on two threads, as tests want it.
    pub fn quick(stop: &'a AtomicBool) -> ScenarioContext<'a> {
        ScenarioContext {
            quick: true,
            exact: false,
            warmup: None,
            jobs: 2,
            store: None,
            on_progress: &|_| {},
            stop,
            longest: None,
        }
    }
}

impl Scenario {
    /// Does all runs and judges the claims. Gives `None` when it was stopped before its end.
    ///
    /// # Errors
    /// A run fails.
    pub fn run(&self, bench: &ScenarioContext<'_>) -> Result<Option<ScenarioReport>, LabError> {
        let Some(cells) = bench.make(self.plans(bench.quick)?, &self.watch)? else { return Ok(None) };
        self.conclude(bench, &cells, false)
    }

    /// Boots the real kernels of this report and does only what puts the modelled ones beside them. Gives `None` when it was
    /// stopped before its end.
    ///
    /// # Errors
    /// It has none, one cannot be booted, or a run fails.
    pub fn run_booted(&self, bench: &ScenarioContext<'_>) -> Result<Option<ScenarioReport>, LabError> {
        let plans = self.plans(bench.quick)?.into_iter().filter(|plan| plan.booted);
        let (real, modelled) = plans.partition::<Vec<_>, _>(|plan| plan.recorded().is_some());
        if real.is_empty() {
            let with = all().iter().filter(|scenario| scenario.claims.iter().any(|claim| claim.booted));
            let names = with.map(|scenario| scenario.name.as_str()).collect::<Vec<_>>().join(" and ");
            return Err(LabError::new(
                format!("no real kernels stand beside those of '{}'", self.name),
                format!("name one of {names}, or boot one beside its two with --kernel qemu:ubuntu:RELEASE"),
            ));
        }
        let Some(mut cells) = self.boot(bench, &real)? else { return Ok(None) };
        let Some(modelled) = bench.make(modelled, &self.watch)? else { return Ok(None) };
        cells.extend(modelled);
        self.conclude(bench, &cells, true)
    }

    /// Judges the claims and tells the story.
    fn conclude(
        &self,
        bench: &ScenarioContext<'_>,
        cells: &[Arc<Cell>],
        booted: bool,
    ) -> Result<Option<ScenarioReport>, LabError> {
        let mut told = Vec::new();
        for (name, tell) in self.told.iter().filter(|_| !booted) {
            let Some(value) = tell.of(bench, cells)? else { return Ok(None) };
            told.push((name.clone(), value));
        }
        let Some(found) = self.found(bench, booted)? else { return Ok(None) };
        let family = match &self.family {
            Some(family) if !booted => family.compared(cells)?,
            _ => Vec::new(),
        };
        let more = vec![
            ("told", Value::from_pairs(told)),
            ("compared", Value::from_pairs(family)),
            ("found", found),
            ("booted", Value::from(booted)),
            ("quick", Value::from(bench.quick)),
        ];
        let language = Language::new(self, cells, more);
        let mut report = ScenarioReport::new(self, bench);
        report.parts = story::parts_of(&self.name, &language.rendered(&self.story)?)?;
        for claim in self.claims.iter().filter(|claim| claim.booted || !booted) {
            report.claims.push(claim.judge(|expression| language.value(expression))?);
        }
        report.keep(cells.iter().filter(|cell| !cell.pooled).flat_map(|cell| cell.runs.iter().cloned()));
        Ok(Some(report))
    }

    /// The commit that a search names; none where nothing is searched. Gives `None` when it was stopped.
    fn found(&self, bench: &ScenarioContext<'_>, booted: bool) -> Result<Option<Value>, LabError> {
        // A search needs runs that are long enough for an answer.
        match self.search(bench.quick)?.filter(|_| !booted && bench.longest.is_none()) {
            Some(search) => search.found(bench),
            None => Ok(Some(file::Search::nothing())),
        }
    }
}

#[cfg(test)]
mod tests;
