//! Metrics by name: what a user's words mean, which of them an answer shows, and what is said of a name that is not there.
//!
//! Must not know: how anything is counted.

use fairlab_analysis::balancing::is_of_balancing;
use fairlab_analysis::by_name::{CpuDomainNumbers, MachinePlaces, NamesWanted};
use fairlab_analysis::counts::{BY_NAME, is_by_name, is_of_places};
use fairlab_analysis::task_selector::{NameKind, TaskSelector, split};
use fairlab_event::spelling::closest;
use fairlab_kernel::Topology;

use crate::LabError;
use crate::counters::{is_asked_for, is_counter, who_counts};

/// What CPUs of a machine share.
pub fn places_of(topology: &Topology) -> MachinePlaces {
    let place = |cpu| {
        let place = topology.place(cpu);
        let capacity = topology.capacity(cpu);
        CpuDomainNumbers { core: place.core, llc: place.llc, node: place.node, capacity }
    };
    MachinePlaces::new(topology.cpus().map(place))
}

/// A metric, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricName {
    /// Whose; `None`: the machine's, or the workload's own.
    pub who: Option<TaskSelector>,
    /// Its whole name, as answers have it.
    pub name: String,
    /// It was said shorter than it is called: it is a time whose unit was not said.
    pub is_short: bool,
}

/// A name that ends in `p99_9` with a dot in place of that underscore.
fn with_dot(text: &str) -> String {
    let dotted = text.rsplit_once('_').filter(|(percentile, digits)| {
        let whole = percentile.rsplit(['_', ' ']).next().and_then(|last| last.strip_prefix('p'));
        [whole.unwrap_or_default(), digits].iter().all(|part| part.parse::<u16>().is_ok())
    });
    dotted.map_or_else(|| text.to_string(), |(percentile, digits)| format!("{percentile}.{digits}"))
}

/// How the last word of a metric's name may be said alone: a percentile, or another number of a distribution.
fn is_statistic(word: &str) -> bool {
    let digits =
        word.strip_prefix('p').filter(|digits| digits.starts_with(|first: char| first.is_ascii_digit()));
    matches!(word, "max" | "mean") || digits.is_some_and(|digits| digits.parse::<f64>().is_ok())
}

/// What a distribution's name may be said without: its unit.
const DISTRIBUTIONS: [&str; 7] = [
    "wakeup_latency",
    "fork_wait",
    "preemption_wait",
    "throttled_wait",
    "request_latency",
    "reply_interval",
    "reply_jitter",
];

impl MetricName {
    /// Reads `wakeup_latency_ns_p99`, `wakeup_latency p99`, `p99`, each also behind the name of whose it is: `cyclictest p99`. A
    /// percentile alone is that of wakeup latencies. `p99_9` is `p99.9`, as columns of tables are called.
    ///
    /// # Errors
    /// It is empty, or its last word is no metric's.
    pub fn parse(text: &str) -> Result<MetricName, LabError> {
        let dotted = with_dot(text);
        let words = dotted.split_whitespace().collect::<Vec<_>>();
        let (metric, is_short, used) = match words[..] {
            [] => return Err(bad(text)),
            [.., distribution, last] if is_statistic(last) && is_distribution(distribution) => {
                let has_unit = distribution.ends_with("_ns") || distribution.ends_with("_us");
                let unit = if has_unit { "" } else { "_ns" };
                (format!("{distribution}{unit}_{last}"), !has_unit, 2)
            }
            [.., last] if is_statistic(last) => (format!("wakeup_latency_ns_{last}"), true, 1),
            [.., last] => (last.to_string(), false, 1),
        };
        let whose = &words[..words.len() - used];
        if whose.is_empty() {
            return Ok(MetricName { who: None, name: metric, is_short });
        }
        if !looks_like_a_metric(&metric) {
            return Err(bad(text));
        }
        let whose = whose.join(" ");
        Ok(MetricName { who: Some(TaskSelector::parse(&whose)), name: format!("{whose} {metric}"), is_short })
    }
}

impl MetricName {
    /// The metric of these tasks, where it names none.
    #[must_use]
    pub fn of(self, who: &TaskSelector) -> MetricName {
        match self.who {
            Some(_) => self,
            None => MetricName { name: format!("{who} {}", self.name), who: Some(who.clone()), ..self },
        }
    }
}

/// What metrics' words mean. Where only some of the tasks are asked for, a metric that names no task is one of theirs.
///
/// # Errors
/// One is no metric's name.
pub fn metrics_of(whose: &[TaskSelector], words: &[String]) -> Result<Vec<MetricName>, LabError> {
    let names = words.iter().map(|word| MetricName::parse(word)).collect::<Result<Vec<_>, _>>()?;
    let of = |name: MetricName| match name.who.is_some() || whose.is_empty() {
        true => vec![name],
        false => whose.iter().map(|who| name.clone().of(who)).collect(),
    };
    Ok(names.into_iter().flat_map(of).collect())
}

/// Reads a control group's path.
///
/// # Errors
/// It does not begin with `/`.
pub fn parse_group(text: &str) -> Result<String, String> {
    let path = if text.len() > 1 { text.trim_end_matches('/') } else { text };
    match path.starts_with('/') {
        true => Ok(path.to_string()),
        false => Err(format!("a group's path begins with '/': /{text}")),
    }
}

fn is_distribution(word: &str) -> bool {
    let plain = word.trim_end_matches("_ns").trim_end_matches("_us");
    DISTRIBUTIONS.contains(&plain) || plain.ends_with("_latency") || plain.ends_with("_wait")
}

/// Whether a word behind a name can be a metric's.
fn looks_like_a_metric(word: &str) -> bool {
    is_by_name(word) || word == "throughput" || word.contains('_')
}

fn bad(text: &str) -> LabError {
    let what = format!("'{text}' is no metric");
    let meant = text.rsplit_once(' ').and_then(|(who, word)| {
        let begin = |name: &&&str| !word.is_empty() && name.starts_with(word) && !name.ends_with('_');
        BY_NAME.iter().find(begin).map(|name| format!("'{who} {name}' may be meant"))
    });
    let how =
        "write a metric, or a claim such as 'p99 > 2ms', also of a name: 'cyclictest wakeup_latency p99'";
    LabError::new(what, meant.unwrap_or_else(|| how.to_string()))
}

/// What is to be counted by name so that runs have a metric.
///
/// # Errors
/// It is no metric's name.
pub fn wanted_for(metric: &str) -> Result<NamesWanted, LabError> {
    Ok(ShownMetrics::default().wanted(&[MetricName::parse(metric)?]))
}

/// Which metrics by name an answer shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownMetrics {
    /// Those of these.
    pub whose: Vec<TaskSelector>,
    /// All of these kinds.
    pub kinds: Vec<NameKind>,
}

impl ShownMetrics {
    /// What must be counted to show these, and the metrics that were asked for.
    pub fn wanted(&self, metrics: &[MetricName]) -> NamesWanted {
        let mut whose = self.whose.clone();
        whose.extend(metrics.iter().filter_map(|metric| metric.who.clone()));
        whose.dedup();
        let names = match self.kinds.is_empty() && whose.is_empty() {
            true => NamesWanted::default(),
            false => NamesWanted { asked: whose, ..NamesWanted::all() },
        };
        let any = |is: fn(&str) -> bool| metrics.iter().any(|metric| is(&metric.name));
        let places = any(|name| split(name).is_some_and(|(_, plain)| is_of_places(plain)));
        NamesWanted { counters: any(is_counter), balancing: any(is_of_balancing), places, ..names }
    }

    /// Whether only some are asked for: nothing of the machine is shown then.
    pub const fn is_of_some(&self) -> bool {
        !self.whose.is_empty() && self.kinds.is_empty()
    }

    /// The tasks whose numbers alone are shown; none where the machine's are.
    pub fn of_some(&self) -> &[TaskSelector] {
        if self.is_of_some() { &self.whose } else { &[] }
    }

    /// Whether a metric is shown that was not asked for by its name. `workloads`: names of workloads of a mix.
    pub fn shows(&self, metric: &str, workloads: &[String]) -> bool {
        if is_asked_for(metric) {
            return false;
        }
        let is_of_some = self.is_of_some();
        let Some((who, plain)) = split(metric) else { return !is_of_some };
        if is_of_places(plain) {
            return false;
        }
        if !is_by_name(plain) && !is_of_some || self.whose.iter().any(|one| one.to_string() == who) {
            return true;
        }
        self.kinds.contains(&kind_of(who, workloads))
    }

    /// Sees to it that all that were asked for are there. `known`: metrics that were measured.
    ///
    /// # Errors
    /// One is not, with those that look most like it.
    pub fn check<'k>(&self, known: impl Iterator<Item = &'k str> + Clone) -> Result<(), LabError> {
        let names = known.filter_map(|name| Some(split(name)?.0));
        for who in &self.whose {
            let asked = who.to_string();
            if !names.clone().any(|name| name == asked) {
                let near = closest(&asked, names, NEAR);
                let hint = match near.is_empty() {
                    true => "the runs have no numbers by name".to_string(),
                    false => format!("closest are {}", near.join(", ")),
                };
                return Err(LabError::new(format!("no task, group or workload is called '{asked}'"), hint));
            }
        }
        Ok(())
    }
}

/// How many names that look alike are suggested.
const NEAR: usize = 3;

/// The kind of a name that stands before a metric.
fn kind_of(who: &str, workloads: &[String]) -> NameKind {
    match TaskSelector::parse(who) {
        TaskSelector::Group(_) => NameKind::Group,
        TaskSelector::Workload(_) => NameKind::Workload,
        _ if workloads.iter().any(|name| name == who) => NameKind::Workload,
        _ => NameKind::Task,
    }
}

/// The error for a metric that was not measured, with those that look like it; without a name, among the machine's.
pub fn no_metric<'k>(
    who_lacks: &str,
    metric: &str,
    known: impl Iterator<Item = &'k str> + Clone,
) -> LabError {
    let own = known.clone().filter(|name| split(name).is_none_or(|(_, metric)| !is_by_name(metric)));
    let of_names = known.clone().filter(|name| split(name).is_some_and(|(_, of_name)| of_name == metric));
    let near = match split(metric) {
        Some(_) => closest(metric, known, NEAR),
        None if is_by_name(metric) && of_names.clone().next().is_some() => closest(metric, of_names, NEAR),
        None => closest(metric, own, NEAR),
    };
    if let Some(who) = who_counts(metric) {
        return LabError::new(format!("{who_lacks} have no metric '{metric}'"), who);
    }
    let hint = match near.is_empty() {
        true => "they have none".to_string(),
        false => format!("closest are {}; 'fairlab run' with this workload prints all", near.join(", ")),
    };
    LabError::new(format!("{who_lacks} have no metric '{metric}'"), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_be_said_short() {
        let of = |text: &str| {
            let MetricName { who, name, is_short } = MetricName::parse(text).expect(text);
            (who.map(|who| who.to_string()), name, is_short)
        };
        let whose = |name: &str| Some(name.to_string());
        let p99 = "wakeup_latency_ns_p99".to_string();
        assert_eq!(of("p99"), (None, p99.clone(), true));
        assert_eq!(of("wakeup_latency p99"), (None, p99.clone(), true));
        assert_eq!(of(" wakeup_latency_ns_p99 "), (None, p99.clone(), false));
        assert_eq!(of("throughput"), (None, "throughput".to_string(), false));
        for text in ["cyclictest wakeup_latency p99", "cyclictest p99", "cyclictest wakeup_latency_ns p99"] {
            assert_eq!(
                (of(text).0, of(text).1),
                (whose("cyclictest"), format!("cyclictest {p99}")),
                "{text}"
            );
        }
        assert_eq!(of("fork_wait p99"), (None, "fork_wait_ns_p99".to_string(), true));
        assert_eq!(of("/db preemption_wait max").1, "/db preemption_wait_ns_max");
        assert_eq!(of("CPU 3/KVM slowdown").0, whose("CPU 3/KVM"));
        assert_eq!(of("web request_latency p99.9").1, "web request_latency_ns_p99.9");
        assert_eq!(of("schbench_latency_us p99").1, "schbench_latency_us_p99");
        // As columns of tables are called.
        assert_eq!(of("p99_9").1, "wakeup_latency_ns_p99.9");
        assert_eq!(of("web request_latency_ns_p99_5").1, "web request_latency_ns_p99.5");
        for text in ["", " ", "two words"] {
            assert!(MetricName::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn by_name_only_what_was_asked_for_is_shown() {
        let shown = ShownMetrics { whose: vec![TaskSelector::parse("web")], kinds: vec![NameKind::Group] };
        let names = ["web".to_string(), "db".to_string()];
        for (metric, expected) in [
            ("throughput", true),
            ("db throughput", true),
            ("web slowdown", true),
            ("db slowdown", false),
            ("/db slowdown", true),
            ("kworker/3 slowdown", false),
        ] {
            assert_eq!(shown.shows(metric, &names), expected, "{metric}");
        }
        let known = ["web slowdown", "/db slowdown", "idle_share"];
        assert!(shown.check(known.into_iter()).is_ok());
        let other = ShownMetrics { whose: vec![TaskSelector::parse("wed")], ..ShownMetrics::default() };
        let error = other.check(known.into_iter()).expect_err("none").to_string();
        assert_eq!(error, "no task, group or workload is called 'wed'; closest are web, /db");
    }
}
