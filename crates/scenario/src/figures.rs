//! Runs by name, and figures by metric and run: nothing that came of a run is found by its place in a list.
//!
//! Must not know: how runs are made, what is claimed of them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use fairlab_lab::LabError;

use super::render::number;

/// The name, within a report, of runs that differ in nothing but their seeds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunKey {
    /// The machine, the workload and whatever else is assumed, in a few words.
    pub setting: Cow<'static, str>,
    /// The kernel, or the word for it in tables.
    pub kernel: Cow<'static, str>,
}

impl RunKey {
    /// Runs of a kernel in a setting.
    pub fn new(setting: impl Into<Cow<'static, str>>, kernel: impl Into<Cow<'static, str>>) -> RunKey {
        RunKey { setting: setting.into(), kernel: kernel.into() }
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.kernel, self.setting)
    }
}

/// What there is of each run, by its name, in the order of the runs.
#[derive(Clone, Debug)]
pub(crate) struct ByRun<T>(Vec<(RunKey, T)>);

impl<T> FromIterator<(RunKey, T)> for ByRun<T> {
    fn from_iter<I: IntoIterator<Item = (RunKey, T)>>(all: I) -> ByRun<T> {
        ByRun(all.into_iter().collect())
    }
}

impl<T> IntoIterator for ByRun<T> {
    type Item = (RunKey, T);
    type IntoIter = std::vec::IntoIter<(RunKey, T)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<T> ByRun<T> {
    /// What there is of a run.
    ///
    /// # Errors
    /// There is no such run.
    pub fn of(&self, run: &RunKey) -> Result<&T, LabError> {
        let found = self.0.iter().find(|(name, _)| name == run);
        found.map(|(_, value)| value).ok_or_else(|| unknown(&format!("no run is called {run}")))
    }

    /// What there is of several runs, in the order in which they are asked for.
    ///
    /// # Errors
    /// One is missing.
    pub fn all<const N: usize>(&self, runs: [RunKey; N]) -> Result<[&T; N], LabError> {
        let found = runs.into_iter().map(|run| self.of(&run)).collect::<Result<Vec<_>, _>>()?;
        found.try_into().map_err(|_| unknown("a run is missing"))
    }

    /// Each run with what there is of it.
    pub fn iter(&self) -> impl Iterator<Item = &(RunKey, T)> {
        self.0.iter()
    }

    /// What there is of each run.
    pub fn into_values(self) -> impl Iterator<Item = T> {
        self.0.into_iter().map(|(_, value)| value)
    }

    /// Something else of each run.
    pub fn map<U>(&self, of: impl Fn(&T) -> U) -> ByRun<U> {
        self.iter().map(|(run, value)| (run.clone(), of(value))).collect()
    }
}

/// A metric of runs: its name with its unit, and what it is of the runs of one name; `None` if they do not show it.
pub(crate) type Metric<T> = (&'static str, fn(&T) -> Option<f64>);

/// A metric of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Figure {
    /// The metric's name, with its unit.
    pub metric: &'static str,
    /// The run.
    pub run: RunKey,
}

/// Every figure of a report.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures(BTreeMap<Figure, Option<f64>>);

impl Figures {
    /// Notes a figure; `None`, or no number, if the run does not show it.
    pub fn set(&mut self, metric: &'static str, run: RunKey, value: impl Into<Option<f64>>) {
        let value = value.into().filter(|value: &f64| value.is_finite());
        self.0.insert(Figure { metric, run }, value);
    }

    /// Notes metrics of every run.
    pub fn measure<T>(&mut self, runs: &ByRun<T>, metrics: &[Metric<T>]) {
        for (run, value) in runs.iter() {
            for (metric, of) in metrics {
                self.set(metric, run.clone(), of(value));
            }
        }
    }

    /// A figure; `None` if the run does not show it.
    ///
    /// # Errors
    /// It is not measured.
    pub fn get(&self, figure: &Figure) -> Result<Option<f64>, LabError> {
        let Figure { metric, run } = figure;
        self.0
            .get(figure)
            .copied()
            .ok_or_else(|| unknown(&format!("no figure is called '{metric}' of {run}")))
    }

    /// A figure as a number in a sentence or a table; a dash if the run does not show it.
    ///
    /// # Errors
    /// It is not measured.
    pub fn shown(&self, metric: &'static str, run: &RunKey) -> Result<String, LabError> {
        Ok(shown(self.get(&Figure { metric, run: run.clone() })?))
    }

    /// A figure that counts something, as a cell of a table.
    ///
    /// # Errors
    /// It is not measured.
    pub fn count(&self, metric: &'static str, run: &RunKey) -> Result<String, LabError> {
        let value = self.get(&Figure { metric, run: run.clone() })?;
        Ok(value.map_or("-".to_string(), |value| format!("{value:.0}")))
    }

    /// Several metrics of a run, as cells of a table.
    ///
    /// # Errors
    /// One of them is not measured.
    pub fn cells<const N: usize>(
        &self,
        metrics: [&'static str; N],
        run: &RunKey,
    ) -> Result<Vec<String>, LabError> {
        metrics.iter().map(|metric| self.shown(metric, run)).collect()
    }
}

/// A number with the digits that say something, or a dash.
pub(crate) fn shown(value: Option<f64>) -> String {
    value.map_or("-".to_string(), number)
}

fn unknown(problem: &str) -> LabError {
    LabError::new(format!("this scenario asks for what it does not measure: {problem}"), "report this")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_run_has_is_an_error_that_says_which() {
        let known = RunKey::new("vm40", "v5.4");
        let runs: ByRun<f64> = [(known.clone(), 3.0)].into_iter().collect();
        assert_eq!(runs.of(&known), Ok(&3.0));
        let error = runs.of(&RunKey::new("vm40", "v5.5")).expect_err("there is none");
        assert!(error.problem.ends_with("no run is called v5.5 (vm40)"), "{error}");
        let mut figures = Figures::default();
        figures.measure(&runs, &[("p99, us", |value| Some(*value))]);
        assert_eq!(figures.shown("p99, us", &known), Ok("3.00".to_string()));
        let error = figures.shown("p50, us", &known).expect_err("nobody measures it");
        assert!(error.problem.ends_with("'p50, us' of v5.4 (vm40)"), "{error}");
    }

    #[test]
    fn what_is_no_number_is_not_shown() {
        let run = RunKey::new("vm40", "v5.4");
        let mut figures = Figures::default();
        figures.set("ratio", run.clone(), f64::INFINITY);
        assert_eq!(figures.shown("ratio", &run), Ok("-".to_string()));
    }
}
