//! What a report's expressions and its story may say: figures of runs by name, and what is made of them.
//!
//! `side[SIDE][NAME].METRIC` is the list of a metric's values, one a seed. `FIGURE(SIDE, NAME)` is a figure of the report's own: an expression of
//! `run`, the runs of that name. `FIGURE(SIDE)` is one of all runs of a side, `of`.
//! What was not measured is an empty list, and no number.
//!
//! Must not know: any report, how runs are made.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlab_analysis::balancing::is_of_balancing;
use fairlab_analysis::statistics::rivals::{lkp_spread, mmtests_change, mmtests_marks, mmtests_mean};
use fairlab_analysis::statistics::{BetterDirection, judge, mean, median, paired};
use fairlab_lab::{LabError, RunResult};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Enumerator, Object, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, UndefinedBehavior, context};

use super::file::{Plan, Scenario, filled};
use super::render::number;
use fairlab_analysis::watched::Counted;

/// Runs of one name, with what was counted in each.
#[derive(Debug)]
pub(crate) struct Cell {
    pub plan: Plan,
    pub runs: Vec<RunResult>,
    pub counted: Vec<BTreeMap<String, Counted>>,
    /// How many decisions of a booted kernel were judged, and how many of those are the model's.
    pub verified: Option<(u64, u64)>,
    /// They are runs of several sides.
    pub pooled: bool,
}

/// Numbers of a list.
#[derive(Debug)]
struct Numbers(Vec<f64>);

impl Object for Numbers {
    fn repr(self: &Arc<Self>) -> minijinja::value::ObjectRepr {
        minijinja::value::ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.get(key.as_usize()?).map(|&number| Value::from(number))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.0.len())
    }
}

fn numbers(list: impl IntoIterator<Item = f64>) -> Value {
    Value::from_object(Numbers(list.into_iter().collect()))
}

fn listed(value: &Value) -> Result<Vec<f64>, Error> {
    if let Some(Numbers(list)) = value.downcast_object_ref() {
        return Ok(list.clone());
    }
    value.try_iter()?.map(|one| number_of(&one)).collect()
}

/// A number; no number of what was not measured.
fn number_of(value: &Value) -> Result<f64, Error> {
    match value.kind() {
        ValueKind::None | ValueKind::Undefined => Ok(f64::NAN),
        ValueKind::Bool => Ok(f64::from(u8::from(value.is_true()))),
        _ => f64::try_from(value.clone()),
    }
}

impl Cell {
    /// The values of a metric, one a seed; none if a run does not have it. In runs of several sides, and of what balancing did, those
    /// that have it.
    pub fn values(&self, metric: &str) -> Vec<f64> {
        let values = self.runs.iter().map(|run| run.metric(metric));
        if self.pooled || is_of_balancing(metric) {
            return values.flatten().collect();
        }
        values.collect::<Option<Vec<_>>>().unwrap_or_default()
    }

    /// A number of the program's output, one a seed: the `nth` one after the last place with this text.
    fn printed(&self, label: &str, nth: usize) -> Vec<f64> {
        let values = self.runs.iter().map(|run| printed_in(&run.output, label, nth));
        values.collect::<Option<Vec<_>>>().unwrap_or_default()
    }
}

/// The `nth` number after the last place with this text.
fn printed_in(output: &str, label: &str, nth: usize) -> Option<f64> {
    let (_, tail) = output.rsplit_once(label)?;
    let is_digit = |letter: char| letter.is_ascii_digit();
    let words = tail.split(|letter: char| !is_digit(letter) && letter != '.');
    words.filter(|word| word.starts_with(is_digit)).nth(nth.max(1) - 1)?.parse().ok()
}

impl Object for Cell {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let key = key.as_str()?;
        Some(match key {
            "name" => Value::from(&self.plan.name),
            "kernel" => Value::from(&self.plan.kernel),
            "machine" => Value::from(&self.plan.machine),
            "workload" => Value::from(&self.plan.workload),
            "runs" => Value::from(self.plan.runs),
            "ms" => Value::from(self.plan.duration().0 / 1_000_000),
            "first" => {
                Value::from_pairs(self.runs.iter().take(1).flat_map(|run| run.metrics.iter().cloned()))
            }
            "watch" => Value::from_object(OfWatched(Arc::clone(self))),
            "verified" => Value::from(self.verified.map(|(judged, agree)| vec![judged, agree])),
            "simulated_ns" => numbers(self.runs.iter().map(|run| run.simulated_ns as f64)),
            metric => numbers(self.values(metric)),
        })
    }
}

/// What was counted of some tasks in runs of one name: waits of all of them, ms, and the rest one a seed.
#[derive(Debug)]
struct OfWatched(Arc<Cell>);

impl Object for OfWatched {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let name = key.as_str()?;
        let counted = || self.0.counted.iter().filter_map(|counted| counted.get(name));
        let of = |figure: fn(&Counted) -> f64| numbers(counted().map(figure));
        let waits = counted().flat_map(|counted| &counted.waits).map(|(_, wait)| wait.0 as f64 / 1e6);
        Some(context! {
            waits => numbers(waits),
            ran_ms => of(|counted| counted.ran.as_ms_f64()),
            switches => of(|counted| counted.switches as f64),
            placements => of(|counted| counted.placements as f64),
        })
    }
}

/// Things by name, in order.
#[derive(Debug)]
struct Named(Vec<(String, Value)>);

impl Object for Named {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let key = key.to_string();
        self.0.iter().find(|(name, _)| *name == key).map(|(_, value)| value.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.iter().map(|(name, _)| Value::from(name)).collect())
    }
}

/// What a file's data is to expressions.
fn value_of(data: &toml::Value) -> Value {
    match data {
        toml::Value::String(text) => Value::from(text),
        toml::Value::Integer(number) => Value::from(*number),
        toml::Value::Float(number) => Value::from(*number),
        toml::Value::Boolean(truth) => Value::from(*truth),
        toml::Value::Datetime(time) => Value::from(time.to_string()),
        toml::Value::Array(list) => list.iter().map(value_of).collect(),
        toml::Value::Table(table) => {
            Value::from_pairs(table.iter().map(|(key, value)| (key.clone(), value_of(value))))
        }
    }
}

/// A report's language, over its runs.
pub(crate) struct Language<'r> {
    environment: Environment<'r>,
    name: &'r str,
}

impl<'r> Language<'r> {
    /// Over these runs; `more` are other things that have a name.
    pub fn new(report: &'r Scenario, cells: &[Arc<Cell>], more: Vec<(&'static str, Value)>) -> Language<'r> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_syntax(
            SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().unwrap_or_default(),
        );
        environment.set_formatter(|out, state, value| {
            let shown = Value::from(shown(value));
            minijinja::escape_formatter(out, state, &shown)
        });
        add_words(&mut environment);
        let mut sides = Vec::<(String, Vec<(String, Value)>)>::new();
        for cell in cells {
            let value = (cell.plan.name.clone(), Value::from_dyn_object(Arc::clone(cell)));
            match sides.iter_mut().find(|(side, _)| *side == cell.plan.side) {
                Some((_, of_side)) => of_side.push(value),
                None => sides.push((cell.plan.side.clone(), vec![value])),
            }
        }
        let sides = sides.into_iter().map(|(name, of_side)| (name, Value::from_object(Named(of_side))));
        environment.add_global("side", Value::from_object(Named(sides.collect())));
        environment.add_global("data", value_of(&toml::Value::Table(report.data.clone())));
        for (name, value) in more {
            environment.add_global(name, value);
        }
        add_rows(&mut environment, report, cells);
        let cells = Arc::new(cells.to_vec());
        for (name, expression) in &report.figure {
            let (known, figure, expression) = (Arc::clone(&cells), name.clone(), expression.clone());
            environment.add_function(name.clone(), move |state: &State, of: String, name: Option<String>| {
                let Some(name) = name else { return evaluated(state.env(), &expression, context! { of }) };
                let cell = find(&known, &of, &name)?;
                if let Some(recorded) = cell.plan.recorded().filter(|_| cell.runs.is_empty()) {
                    return Ok(recorded.get(&figure).copied().unwrap_or(f64::NAN));
                }
                let run = Value::from_dyn_object(Arc::clone(cell));
                evaluated(state.env(), &expression, context! { run, of })
            });
        }
        Language { environment, name: &report.name }
    }

    /// What an expression comes to; `None` if the runs do not show it.
    ///
    /// # Errors
    /// It means nothing.
    pub fn value(&self, expression: &str) -> Result<Option<f64>, LabError> {
        let value = evaluated(&self.environment, expression, context! {});
        let value = value.map_err(|error| self.refused(expression, &error))?;
        Ok(Some(value).filter(|value| value.is_finite()))
    }

    /// A template with its numbers filled in.
    ///
    /// # Errors
    /// It is none, or an expression in it means nothing.
    pub fn rendered(&self, story: &str) -> Result<String, LabError> {
        let rendered = self.environment.render_str(story, context! {});
        rendered.map_err(|error| {
            let line = error.line().map_or("story".to_string(), |line| format!("line {line} of its story"));
            self.refused(&line, &error)
        })
    }

    /// What an expression of some runs comes to.
    ///
    /// # Errors
    /// It means nothing.
    pub fn of_runs(&self, expression: &str, cell: Arc<Cell>) -> Result<Option<f64>, LabError> {
        let run = Value::from_dyn_object(cell);
        let value = evaluated(&self.environment, expression, context! { run });
        let value = value.map_err(|error| self.refused(expression, &error))?;
        Ok(Some(value).filter(|value| value.is_finite()))
    }

    fn refused(&self, place: &str, error: &Error) -> LabError {
        let mut causes = vec![error.to_string()];
        let mut next = std::error::Error::source(error);
        while let Some(cause) = next {
            causes.push(cause.to_string());
            next = cause.source();
        }
        let problem = format!("report {}: {place}: {}", self.name, causes.join(": "));
        LabError::new(problem, "docs/guide.md says what a report may ask of its runs")
    }
}

fn find<'c>(cells: &'c [Arc<Cell>], side: &str, name: &str) -> Result<&'c Arc<Cell>, Error> {
    let found = cells.iter().find(|cell| cell.plan.side == side && cell.plan.name == name);
    found.ok_or_else(|| {
        Error::new(ErrorKind::UndefinedError, format!("no run of side '{side}' is called '{name}'"))
    })
}

/// What an expression comes to; no number where it divides by nothing.
fn evaluated(environment: &Environment<'_>, expression: &str, of: Value) -> Result<f64, Error> {
    match environment.compile_expression(expression)?.eval(of) {
        Ok(value) => number_of(&value),
        Err(error) if divides_by_nothing(&error) => Ok(f64::NAN),
        Err(error) => Err(error),
    }
}

fn divides_by_nothing(error: &Error) -> bool {
    error.kind() == ErrorKind::InvalidOperation
        && error.detail().is_some_and(|detail| detail.starts_with("unable to calculate"))
}

/// A value as a reader sees it.
fn shown(value: &Value) -> String {
    let figure = f64::try_from(value.clone()).ok().filter(|_| value.is_number() && !value.is_integer());
    match figure {
        Some(figure) if figure.is_finite() => number(figure),
        Some(_) => "-".to_string(),
        None if value.is_none() => "-".to_string(),
        None => value.to_string(),
    }
}

/// What an expression comes to with the keys of each row of the data (`rows(NAME, EXPRESSION)`), with each side as `{side}`
/// (`sides(EXPRESSION)`), or with each of a side's runs as `{name}` (`each(SIDE, EXPRESSION)`).
fn add_rows(environment: &mut Environment<'_>, report: &Scenario, cells: &[Arc<Cell>]) {
    let data = report.data.clone();
    environment.add_function("rows", move |state: &State, name: String, expression: String| {
        let none = || Error::new(ErrorKind::UndefinedError, format!("no rows are called '{name}'"));
        let rows = data.get(&name).and_then(toml::Value::as_array).ok_or_else(none)?;
        let rows = rows.iter().filter_map(toml::Value::as_table);
        let values = rows.map(|row| evaluated(state.env(), &filled(&expression, row), context! {}));
        values.collect::<Result<Vec<_>, _>>().map(numbers)
    });
    let names = cells.iter().map(|cell| (cell.plan.side.clone(), cell.plan.name.clone())).collect::<Vec<_>>();
    environment.add_function("each", move |state: &State, side: String, expression: String| {
        let names = names.iter().filter(|(of, _)| *of == side);
        let of = |name: &str| evaluated(state.env(), &expression.replace("{name}", name), context! {});
        names.map(|(_, name)| of(name)).collect::<Result<Vec<_>, _>>().map(numbers)
    });
    let sides = cells.iter().filter(|cell| !cell.pooled);
    let mut sides = sides.map(|cell| cell.plan.side.clone()).collect::<Vec<_>>();
    sides.dedup();
    environment.add_function("sides", move |state: &State, expression: String| {
        let of = |side: &String| evaluated(state.env(), &expression.replace("{side}", side), context! {});
        sides.iter().map(of).collect::<Result<Vec<_>, _>>().map(numbers)
    });
}

/// A number for a list of them.
type OfList = fn(&[f64]) -> f64;

/// The words that expressions have beside those of every template.
fn add_words(environment: &mut Environment<'_>) {
    let of_lists: [(&str, OfList); 4] =
        [("mean", mean), ("median", median), ("least", least), ("greatest", greatest)];
    for (name, of) in of_lists {
        environment.add_filter(name, move |list: &Value| {
            let list = listed(list)?;
            Ok::<_, Error>(if list.is_empty() { f64::NAN } else { of(&list) })
        });
    }
    environment.add_filter("total", |list: &Value| Ok::<_, Error>(listed(list)?.iter().sum::<f64>()));
    environment.add_filter("spread", |list: &Value| Ok::<_, Error>(lkp_spread(&listed(list)?)));
    environment.add_filter("over", |list: &Value, other: &Value| {
        let (list, other) = (listed(list)?, listed(other)?);
        Ok::<_, Error>(numbers(list.into_iter().zip(other).map(|(one, other)| one / other)))
    });
    environment.add_filter("percentile", |list: &Value, percent: f64| {
        let mut list = listed(list)?;
        list.sort_by(f64::total_cmp);
        let place = list.len() * (percent * 10.0).round() as usize / 1000;
        Ok::<_, Error>(list.get(place).copied().unwrap_or(f64::NAN))
    });
    environment.add_filter("above", |list: &Value, bar: f64| {
        Ok::<_, Error>(numbers(listed(list)?.into_iter().filter(|value| *value > bar)))
    });
    environment.add_filter("from", |list: &Value, bar: f64| {
        Ok::<_, Error>(numbers(listed(list)?.into_iter().filter(|value| *value >= bar)))
    });
    environment.add_filter("share_above", |list: &Value, bar: f64| {
        let list = listed(list)?;
        let above = list.iter().filter(|value| **value > bar).count();
        Ok::<_, Error>(above as f64 / list.len() as f64)
    });
    environment.add_filter("whole", |value: &Value| with_digits(value, 0));
    environment.add_filter("exact", |value: &Value| {
        let value = number_of(value)?;
        Ok::<_, Error>(if value.is_finite() { value.to_string() } else { "-".to_string() })
    });
    environment.add_filter("fixed", |value: &Value, digits: usize| with_digits(value, digits));
    environment.add_filter("left", |value: &Value, width: usize| format!("{:<width$}", shown(value)));
    environment.add_filter("right", |value: &Value, width: usize| format!("{:>width$}", shown(value)));
    environment.add_filter("signed", |value: &Value, digits: usize| {
        Ok::<_, Error>(format!("{:+.digits$}", number_of(value)?))
    });
    environment.add_function("ratio", |one: f64, other: f64| one / other);
    environment.add_function("paired", paired_values);
    environment.add_function("printed", |run: &Value, label: String, nth: Option<usize>| {
        let none = || Error::new(ErrorKind::InvalidOperation, "printed() wants runs and a text");
        let cell = run.downcast_object_ref::<Cell>().ok_or_else(none)?;
        Ok::<_, Error>(numbers(cell.printed(&label, nth.unwrap_or(1))))
    });
}

/// Values before and after, as pairs of equal seeds: mmtests' means and change, whether it marks the change, and our verdict. `lower` if
/// less is better.
fn paired_values(before: &Value, after: &Value, margin: f64, lower: Option<bool>) -> Result<Value, Error> {
    let (before, after) = (listed(before)?, listed(after)?);
    let better = if lower.unwrap_or(false) { BetterDirection::Lower } else { BetterDirection::Higher };
    let [mean_before, mean_after] = [&before, &after].map(|side| mmtests_mean(side, better));
    let estimate = paired(&before, &after);
    let real = estimate.p.is_some_and(|p| p < 0.05);
    Ok(context! {
        before => mean_before,
        after => mean_after,
        change => mmtests_change(mean_before, mean_after, better),
        marked => mmtests_marks(&before, &after, better),
        verdict => judge(&estimate, better, margin, real).words(),
    })
}

/// With so many digits behind the point; a dash of what is no number.
fn with_digits(value: &Value, digits: usize) -> Result<String, Error> {
    let value = number_of(value)?;
    Ok(if value.is_finite() { format!("{value:.digits$}") } else { "-".to_string() })
}

/// The least; no number if one of them is none.
fn least(list: &[f64]) -> f64 {
    -list.iter().map(|value| -value).fold(f64::NEG_INFINITY, further)
}

/// The greatest; no number if one of them is none.
fn greatest(list: &[f64]) -> f64 {
    list.iter().copied().fold(f64::NEG_INFINITY, further)
}

fn further(one: f64, other: f64) -> f64 {
    if one > other || one.is_nan() { one } else { other }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_table_of_an_output_is_read() {
        let output = "Latency percentiles (usec) runtime 30 (s) (40 total samples)\n\t50.0th: 1 (2 samples)\n\
                      Latency percentiles (usec) runtime 1290 (s) (3280 total samples)\n\t50.0th: 155 (1653 samples)\n\
                      \t*99.0th: 256 (123 samples)\n\tmin=21, max=3286\n";
        let figure = |label, nth| printed_in(output, label, nth);
        assert_eq!((figure("runtime", 1), figure("runtime", 2)), (Some(1290.0), Some(3280.0)));
        assert_eq!((figure("*99.0th:", 1), figure("*99.0th:", 2)), (Some(256.0), Some(123.0)));
        assert_eq!((figure("min=", 1), figure("max=", 1)), (Some(21.0), Some(3286.0)));
        assert_eq!(figure("rps:", 1), None);
    }
}
