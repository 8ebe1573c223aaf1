//! What a bisection asks of each kernel: where a metric stands, or whether a claim holds.
//!
//! Must not know: kernels.

use fairlab_analysis::task_selector::{TaskSelector, plain, split};
use fairlab_lab::LabError;
use fairlab_lab::names::MetricName;

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum BisectQuestion {
    /// On whose side of the middle between good and bad a metric stands.
    Metric(String),
    /// Whether a claim holds in most runs, as it does on bad kernels.
    Claim(MetricClaim),
}

/// `p99 > 2ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricClaim {
    /// The metric.
    pub metric: String,
    /// Whether it must be above the bound, or below.
    pub above: bool,
    /// Whether it may be equal to it.
    pub or_equal: bool,
    /// The bound, in the metric's own unit.
    pub bound: f64,
}

impl BisectQuestion {
    /// Reads a metric's name, or a name, a comparison and a bound. `p50` to `p99.9` and `max` are wakeup latencies; a metric of some
    /// of the tasks stands behind their name (`cyclictest p99`). Bounds of times have a unit, or that which the metric's name says.
    ///
    /// # Errors
    /// There is no name, or no bound behind the comparison.
    pub fn parse(text: &str) -> Result<BisectQuestion, LabError> {
        let bad = |problem: String| LabError::new(problem, "write a metric, or a claim such as 'p99 > 2ms'");
        let Some(at) = text.rfind(['<', '>']) else {
            return Ok(BisectQuestion::Metric(MetricName::parse(text)?.name));
        };
        let (name, rest) = text.split_at(at);
        let above = rest.starts_with('>');
        let rest = &rest[1..];
        let (or_equal, bound) = rest.strip_prefix('=').map_or((false, rest), |bound| (true, bound));
        if name.trim().is_empty() {
            return Err(bad(format!("'{text}' names no metric")));
        }
        let MetricName { name: metric, is_short, .. } = MetricName::parse(name)?;
        if is_short && bound.trim().parse::<f64>().is_ok_and(|number| number > 0.0) {
            return Err(bad(format!("'{text}' does not say in what unit: ns, us, ms or s")));
        }
        let bound =
            amount(&metric, bound.trim()).ok_or_else(|| bad(misfit(text, "bound", &metric, bound)))?;
        Ok(BisectQuestion::Claim(MetricClaim { metric, above, or_equal, bound }))
    }

    /// The question where some of the tasks may be chosen: one name at most, and by default their wakeup latency. `None`: nothing
    /// is asked.
    ///
    /// # Errors
    /// The words mean nothing, or several names are chosen.
    pub fn of_some(text: Option<&str>, whose: &[TaskSelector]) -> Result<Option<BisectQuestion>, LabError> {
        let question = text.map(BisectQuestion::parse).transpose()?;
        match whose {
            [] => Ok(question),
            [who] => Ok(Some(question.map_or_else(|| BisectQuestion::parse("p99"), Ok)?.of(who))),
            _ => Err(LabError::new("bisect searches by one metric", "give one --task or one --group")),
        }
    }

    /// The question about these tasks, where it names none.
    #[must_use]
    pub fn of(self, who: &TaskSelector) -> BisectQuestion {
        let of = |metric: String| if split(&metric).is_some() { metric } else { format!("{who} {metric}") };
        match self {
            BisectQuestion::Metric(metric) => BisectQuestion::Metric(of(metric)),
            BisectQuestion::Claim(MetricClaim { metric, above, or_equal, bound }) => {
                BisectQuestion::Claim(MetricClaim { metric: of(metric), above, or_equal, bound })
            }
        }
    }

    /// The metric that is looked at.
    pub fn metric(&self) -> &str {
        match self {
            BisectQuestion::Metric(metric) => metric,
            BisectQuestion::Claim(claim) => &claim.metric,
        }
    }
}

impl MetricClaim {
    /// Whether the claim holds of a value.
    pub fn holds(&self, value: f64) -> bool {
        let beyond = if self.above { value > self.bound } else { value < self.bound };
        beyond || (self.or_equal && value == self.bound)
    }
}

/// A number in a metric's own unit, from a text with a unit where the metric has one. `None` where the text does not fit the
/// metric.
pub fn amount(metric: &str, text: &str) -> Option<f64> {
    let end = text.find(|at: char| !(at.is_ascii_digit() || at == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number = number.parse::<f64>().ok()?;
    let metric = plain(metric);
    let own_ns = if metric.contains("_us") { 1e3 } else { 1.0 };
    let is_time = metric.contains("_ns") || metric.contains("_us");
    let in_ns = |scale: f64| is_time.then_some(number * scale / own_ns);
    match unit.trim() {
        "" => Some(number),
        "ns" => in_ns(1.0),
        "us" => in_ns(1e3),
        "ms" => in_ns(1e6),
        "s" => in_ns(1e9),
        "%" if metric.ends_with("_share") => Some(number / 100.0),
        "/s" if metric.ends_with("_per_s") => Some(number),
        _ => None,
    }
}

/// What is wrong with an amount that does not fit a metric: the unit that it has none of, or that it is no number. `what` is what the
/// amount is called.
pub fn misfit(text: &str, what: &str, metric: &str, amount: &str) -> String {
    let amount = amount.trim();
    let end = amount.find(|at: char| !(at.is_ascii_digit() || at == '.')).unwrap_or(amount.len());
    let (number, unit) = (&amount[..end], amount[end..].trim());
    let plain = plain(metric);
    let units = match plain {
        _ if plain.contains("_ns") || plain.contains("_us") => "ns, us, ms or s",
        _ if plain.ends_with("_share") => "%",
        _ if plain.ends_with("_per_s") => "/s",
        _ => "none",
    };
    match number.parse::<f64>().is_ok() && !unit.is_empty() {
        true => format!("'{text}': {metric} has no unit '{unit}', it has {units}"),
        false => format!("'{text}' has no {what} that fits {metric}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(text: &str) -> MetricClaim {
        match BisectQuestion::parse(text) {
            Ok(BisectQuestion::Claim(claim)) => claim,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn claims_are_read_with_their_units() {
        let known = claim("p99 > 2ms");
        assert_eq!((known.metric.as_str(), known.bound), ("wakeup_latency_ns_p99", 2e6));
        assert!(known.holds(2_000_001.0) && !known.holds(2e6));
        assert!(claim("max>=1s").holds(1e9) && !claim("max>=1s").holds(1e9 - 1.0));
        assert_eq!(claim("schbench_latency_us_p99 > 2ms").bound, 2000.0);
        assert_eq!(claim("wakeup_latency_ns_p99 > 2000").bound, 2000.0);
        assert_eq!(claim("p99 > 0").bound, 0.0);
        assert_eq!(claim("idle_share < 20%").bound, 0.2);
        assert!(claim("throughput < 470.5").holds(470.0));
        assert_eq!(claim("migrations_per_s>9/s").bound, 9.0);
        assert_eq!(BisectQuestion::parse("p99.9").expect("a metric").metric(), "wakeup_latency_ns_p99.9");
        let one = claim("cyclictest wakeup_latency p99 > 2ms");
        assert_eq!((one.metric.as_str(), one.bound), ("cyclictest wakeup_latency_ns_p99", 2e6));
        assert_eq!(claim("a_us slowdown > 1.5").bound, 1.5);
        assert_eq!(BisectQuestion::parse("/db p99").expect("a metric").metric(), "/db wakeup_latency_ns_p99");
        assert_eq!(BisectQuestion::parse(" throughput ").expect("a metric").metric(), "throughput");
    }

    #[test]
    fn what_asks_nothing_is_refused() {
        for text in [
            "",
            "  ",
            "p99 > ",
            "> 2ms",
            "p99 > fast",
            "p99 > 2",
            "throughput > 2ms",
            "p99 > 2 parsec",
            "two words",
            "p99 > -1",
        ] {
            let problem = BisectQuestion::parse(text).expect_err(text).to_string();
            assert!(problem.contains("'p99 > 2ms'"), "{problem}");
        }
    }
}
