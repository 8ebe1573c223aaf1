//! The search for a report's commit.
//!
//! Must not know: which commit is published.

use fairlab_analysis::statistics::MARGIN;
use fairlab_change::SearchTrials;
use fairlab_change::bisect::{BisectQuestion, BisectSpec, bisect};
use fairlab_lab::{LabError, RunSetting};
use minijinja::context;
use minijinja::value::Value;

use super::ScenarioContext;
use super::file::Search;

impl Search {
    /// What is said where nothing is searched.
    pub fn nothing() -> Value {
        context! { commit => "none", subject => "none" }
    }

    /// The commit that the search names, and its subject. Gives `None` when it was stopped.
    pub fn found(&self, bench: &ScenarioContext<'_>) -> Result<Option<Value>, LabError> {
        let spec = bench.spec(&self.plan, 1)?;
        let spec = BisectSpec {
            good: self.good.parse()?,
            bad: self.bad.parse()?,
            question: BisectQuestion::parse(&self.question)?,
            setting: RunSetting {
                warmup: spec.warmup,
                first_seed: spec.seed,
                by_name: spec.by_name,
                ..RunSetting::new(spec.machine, spec.workload, spec.duration)
            },
            margin: MARGIN,
            error: 0.01,
            runs_max: 40,
        };
        let mut trials = SearchTrials::new(&spec.setting, bench.jobs, bench.on_progress, bench.stop)
            .with_store(bench.store);
        let found = bisect(&spec, &mut trials)?;
        if found.stopped {
            return Ok(None);
        }
        let step = found.first_bad().and_then(|crossing| crossing.steps.last());
        let said =
            |step: &fairlab_change::WayStep| context! { commit => step.id(), subject => step.subject() };
        Ok(Some(step.map_or_else(Search::nothing, said)))
    }
}
