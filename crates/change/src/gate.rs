//! A gate: rules about how far metrics may change, for automatic checks.
//!
//! Each rule is judged by the comparison's interval, widened for the number of rules. It passes if a change past the bound is
//! excluded. It is a regression if such a change is sure. Otherwise it is undecided.
//!
//! Must not know: where runs come from, how the answer looks.

use fairlab_analysis::statistics::{
    BoundSide, BoundStanding, BoundedChange, ChangeBound, LookLevels, bounded,
};
use fairlab_analysis::task_selector::{TaskSelector, plain};
use fairlab_lab::answer::gate::{GateAnswer, GateVerdict, RuleAnswer};
use fairlab_lab::names::MetricName;
use fairlab_lab::{CompareOptions, Comparison, ComparisonRow, LabError, Pairing, RunSide, compare_sides};

use crate::bisect::{amount, misfit};

/// `p99>+5%`.
#[derive(Clone, Debug, PartialEq)]
pub struct GateRule {
    /// As it was written.
    pub text: String,
    /// The metric.
    pub metric: MetricName,
    /// Which way the bound is passed.
    pub limit: BoundSide,
    /// The bound.
    pub bound: ChangeBound,
}

impl GateRule {
    /// Reads a metric's name, also behind that of whose it is, `>` or `<`, and a change: `+5%` of the baseline, or an amount
    /// (`+200us`, `-10`, `+0.5pp` of a share).
    ///
    /// # Errors
    /// There is no name, or no change behind it that fits the metric.
    pub fn parse(text: &str) -> Result<GateRule, LabError> {
        let bad = |problem: String| {
            LabError::new(problem, "write what must not happen: 'p99>+5%', 'throughput<-2%', 'p99>+200us'")
        };
        let at = text.rfind(['<', '>']).ok_or_else(|| bad(format!("'{text}' has neither '>' nor '<'")))?;
        let (name, rest) = (text[..at].trim(), text[at + 1..].trim());
        let limit = if text[at..].starts_with('>') { BoundSide::Above } else { BoundSide::Below };
        if name.is_empty() {
            return Err(bad(format!("'{text}' names no metric")));
        }
        let metric = MetricName::parse(name)?;
        let (sign, size) = match (rest.strip_prefix('+'), rest.strip_prefix('-'), limit) {
            (Some(size), ..) => (1.0, size),
            (_, Some(size), _) => (-1.0, size),
            (.., BoundSide::Above) => (1.0, rest),
            (.., BoundSide::Below) => {
                return Err(bad(format!("'{text}' does not say whether {rest} is more (+) or less (-)")));
            }
        };
        let unknown = || bad(misfit(text, "change", &metric.name, size));
        let bound = read_bound(&metric, size.trim()).ok_or_else(unknown)?;
        let bound = match bound {
            ChangeBound::Share(share) => ChangeBound::Share(sign * share),
            ChangeBound::Amount(amount) => ChangeBound::Amount(sign * amount),
        };
        if matches!(bound, ChangeBound::Share(share) if share <= -1.0) {
            return Err(bad(format!("'{text}' can never happen: nothing falls by 100 % or more")));
        }
        Ok(GateRule { text: text.trim().to_string(), metric, limit, bound })
    }
}

/// A size without its sign. Per cent are of the baseline, percentage points of a share that is one itself.
fn read_bound(metric: &MetricName, text: &str) -> Option<ChangeBound> {
    if text.trim_start().starts_with(['+', '-']) {
        return None;
    }
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    if let Some(per_cent) = text.strip_suffix('%') {
        return Some(ChangeBound::Share(number(per_cent)? / 100.0));
    }
    if let Some(points) = text.strip_suffix("pp") {
        return Some(ChangeBound::Amount(number(points)? / 100.0))
            .filter(|_| plain(&metric.name).ends_with("_share"));
    }
    let is_unsaid = metric.is_short && number(text).is_some_and(|number| number != 0.0);
    amount(&metric.name, text).filter(|_| !is_unsaid).map(ChangeBound::Amount)
}

/// The rules of a gate; by default none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules(Vec<GateRule>);

impl Rules {
    /// These rules. Where only some of the tasks are compared, rules that name no task are about those.
    pub fn of(rules: &[GateRule], whose: &[TaskSelector]) -> Rules {
        let of = |rule: &GateRule| match rule.metric.who.is_some() || whose.is_empty() {
            true => vec![rule.clone()],
            false => whose
                .iter()
                .map(|who| GateRule { metric: rule.metric.clone().of(who), ..rule.clone() })
                .collect(),
        };
        Rules(rules.iter().flat_map(of).collect())
    }

    /// Whether there are any.
    pub const fn are_given(&self) -> bool {
        !self.0.is_empty()
    }

    /// The metrics that they are about.
    pub fn metrics(&self) -> impl Iterator<Item = &MetricName> {
        self.0.iter().map(|rule| &rule.metric)
    }

    fn options(&self) -> CompareOptions {
        CompareOptions {
            metrics: self.metrics().map(|metric| metric.name.clone()).collect(),
            ..CompareOptions::default()
        }
    }

    /// Sees to it that the first runs have what rules are about.
    ///
    /// # Errors
    /// They do not.
    pub fn accept(&self, first: &[RunSide]) -> Result<(), LabError> {
        if self.are_given() { compare_sides(first, &self.options()).map(drop) } else { Ok(()) }
    }

    /// What they say of each side but the first, at a look with these levels; `None` where there are no rules.
    ///
    /// # Errors
    /// The runs do not have what a rule is about.
    pub fn judge(&self, sides: &[RunSide], levels: &LookLevels) -> Result<Option<GateAnswer>, LabError> {
        if !self.are_given() {
            return Ok(None);
        }
        let comparison = compare_sides(sides, &self.options())?;
        let names = sides.iter().skip(1).map(|side| side.name.clone()).collect::<Vec<_>>();
        Ok(Some(judge(&self.0, &names, &comparison, levels)))
    }
}

/// Judges every rule on every kernel. `comparison` compares the rules' metrics, at least; `kernels` are those beside the baseline.
fn judge(rules: &[GateRule], kernels: &[String], comparison: &Comparison, levels: &LookLevels) -> GateAnswer {
    let count = rules.len() * kernels.len();
    let one = |rule: &GateRule, kernel: &String| {
        let is_it = |row: &&ComparisonRow| row.kernel == *kernel && row.name == rule.metric.name;
        answer(rule, kernel, comparison.rows.iter().find(is_it), (count, levels))
    };
    let rules =
        kernels.iter().flat_map(|kernel| rules.iter().map(move |rule| one(rule, kernel))).collect::<Vec<_>>();
    let outcome = rules.iter().map(|rule| rule.outcome).max().unwrap_or(GateVerdict::Undecided);
    GateAnswer { outcome, rules }
}

/// Rules say nothing of kernels that differ from the baseline only in what is not modelled.
pub(crate) fn leave_open(gate: &mut GateAnswer, kernels: &[&str]) {
    for rule in gate.rules.iter_mut().filter(|rule| kernels.contains(&rule.kernel.as_str())) {
        rule.outcome = GateVerdict::Undecided;
        rule.more_runs = None;
        rule.why = Some("the two kernels differ only in what is not modelled");
    }
    gate.outcome = gate.rules.iter().map(|rule| rule.outcome).max().unwrap_or(GateVerdict::Undecided);
}

fn answer(
    rule: &GateRule,
    kernel: &str,
    row: Option<&ComparisonRow>,
    level: (usize, &LookLevels),
) -> RuleAnswer {
    let (is_share, bound) = match rule.bound {
        ChangeBound::Share(bound) => (true, bound),
        ChangeBound::Amount(bound) => (false, bound),
    };
    let judged = row.map(|row| {
        let are_paired = row.pairing == Pairing::Paired;
        bounded((&row.baseline, &row.values), are_paired, (rule.limit, rule.bound), level)
    });
    let nothing = BoundedChange { change: None, low: None, high: None, standing: BoundStanding::Open(None) };
    let BoundedChange { change, low, high, standing } = judged.unwrap_or(nothing);
    let (outcome, more) = match standing {
        BoundStanding::Within => (GateVerdict::Passed, None),
        BoundStanding::Past => (GateVerdict::Regression, None),
        BoundStanding::Open(more) => (GateVerdict::Undecided, more),
        BoundStanding::OneCourse => (GateVerdict::Undecided, None),
    };
    let why = match standing {
        BoundStanding::OneCourse => Some("one course of events: the runs never differ"),
        BoundStanding::Open(None) if row.is_none() => Some("not every run has it"),
        BoundStanding::Open(_) if change.is_none() => {
            Some("the baseline is 0: give an amount instead of a share")
        }
        BoundStanding::Open(None) => Some("too few runs"),
        _ => None,
    };
    RuleAnswer {
        rule: rule.text.clone(),
        metric: rule.metric.name.clone(),
        kernel: kernel.to_string(),
        outcome,
        change,
        low,
        high,
        bound,
        is_share,
        runs: row.map_or([0, 0], |row| [row.baseline.len(), row.values.len()]),
        more_runs: more.map(Into::into),
        why,
    }
}

#[cfg(test)]
mod tests {
    use fairlab_lab::RunRecord;

    use super::*;

    fn rule(text: &str) -> GateRule {
        GateRule::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn rules_are_read_with_signs_and_units() {
        let of = |text: &str| {
            let GateRule { metric, limit, bound, .. } = rule(text);
            (metric.name, limit, bound)
        };
        let p99 = "wakeup_latency_ns_p99".to_string();
        assert_eq!(of("p99>+5%"), (p99.clone(), BoundSide::Above, ChangeBound::Share(0.05)));
        assert_eq!(of("p99 > 5 %"), of("p99>+5%"));
        assert_eq!(
            of("throughput<-2%"),
            ("throughput".to_string(), BoundSide::Below, ChangeBound::Share(-0.02))
        );
        assert_eq!(of("p99>+200us"), (p99.clone(), BoundSide::Above, ChangeBound::Amount(200_000.0)));
        assert_eq!(of("schbench_latency_us_p99>+1ms").2, ChangeBound::Amount(1_000.0));
        assert_eq!(of("cyclictest wakeup_latency p99>+1ms").0, format!("cyclictest {p99}"));
        assert_eq!(of("/db slowdown > +0.25").2, ChangeBound::Amount(0.25));
        assert_eq!(of("idle_share<-0.5pp").2, ChangeBound::Amount(-0.005));
        assert_eq!(of("switches_per_s>+10/s").2, ChangeBound::Amount(10.0));
    }

    #[test]
    fn what_rules_nothing_is_refused_in_one_line() {
        for text in [
            "",
            "p99",
            ">5%",
            "p99>",
            "p99>+5",
            "p99>fast",
            "throughput<2%",
            "throughput>+2ms",
            "p99>+nan%",
            "p99<-100%",
            "p99>+5pp",
            "two words>+5%",
            "p99>+-5%",
        ] {
            let problem = GateRule::parse(text).expect_err(text).to_string();
            assert!(!problem.contains('\n'), "{problem}");
        }
    }

    fn side(name: &str, values: &[f64]) -> RunSide {
        let record = |(seed, &value): (usize, &f64)| RunRecord {
            machine: "m".to_string(),
            workload: "w".to_string(),
            kernel: name.to_string(),
            seed: Some(seed as u64),
            metrics: vec![
                ("wakeup_latency_ns_p99".to_string(), value),
                ("throughput".to_string(), 1e6 / value),
            ],
            ..RunRecord::default()
        };
        RunSide {
            name: name.to_string(),
            records: values.iter().enumerate().map(record).collect(),
            ..RunSide::default()
        }
    }

    fn gate(rules: &[&str], base: &[f64], other: &[f64]) -> GateAnswer {
        let sides = [side("a", base), side("b", other)];
        let comparison = compare_sides(&sides, &CompareOptions::default()).expect("a comparison");
        let rules = rules.iter().map(|text| rule(text)).collect::<Vec<_>>();
        judge(&rules, &["b".to_string()], &comparison, &LookLevels::default())
    }

    #[test]
    fn a_gate_is_as_its_worst_rule() {
        let base = [100.0, 103.0, 98.0, 101.0, 99.0];
        let slow = base.map(|value| value * 1.2 + (value - 100.0) * 0.01);
        let found = gate(&["p99>+5%", "throughput<-50%"], &base, &slow);
        assert_eq!(found.outcome, GateVerdict::Regression);
        assert_eq!(
            found.rules.iter().map(|rule| rule.outcome).collect::<Vec<_>>(),
            [GateVerdict::Regression, GateVerdict::Passed]
        );
        assert_eq!(gate(&["p99>+50%", "throughput<-50%"], &base, &slow).outcome, GateVerdict::Passed);
        let wild = [90.0, 125.0, 97.0, 111.0, 94.0];
        let found = gate(&["p99>+5%"], &base, &wild);
        assert_eq!(found.outcome, GateVerdict::Undecided);
        assert!(found.rules[0].more_runs.is_some(), "{found:?}");
        let found = gate(&["p99>+5%"], &[5.0; 4], &[5.0; 4]);
        assert_eq!((found.outcome, found.rules[0].more_runs), (GateVerdict::Undecided, None));
        assert!(found.rules[0].why.is_some_and(|why| why.contains("one course")));
        assert_eq!(
            judge(
                &[rule("p99>+5%")],
                &["c".to_string()],
                &Comparison {
                    baseline: "a".to_string(),
                    margin: 0.01,
                    headline: String::new(),
                    rows: Vec::new(),
                    partial: None,
                    notices: Vec::new(),
                },
                &LookLevels::default(),
            )
            .rules[0]
                .why,
            Some("not every run has it")
        );
    }
}
