//! Claims as data: what is compared with what, and the bars that decide; and the one judge of all of them.
//!
//! Must not know: which report claims something, how a verdict is shown.

use fairlab_lab::LabError;
use serde::{Deserialize, Serialize};

/// Something that a report says or implies. What could not be measured meets no bar.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReportClaim {
    /// What is claimed, with the bar in words.
    pub text: String,
    /// A figure in the report, in the claim's unit, or what it says in words; none of a claim of our own.
    pub published: Option<ClaimValue>,
    /// What a real kernel showed, recorded or booted now: an expression.
    pub real: Option<String>,
    /// What of the runs is held against it: an expression.
    pub measured: String,
    /// The unit of both.
    pub unit: String,
    /// So much or more.
    pub at_least: Option<f64>,
    /// More than so much.
    pub above: Option<f64>,
    /// So much or less.
    pub at_most: Option<f64>,
    /// Less than so much.
    pub below: Option<f64>,
    /// At most so far, up or down, from what was published.
    pub near_published: Option<f64>,
    /// At most such a part of what was published off it, up or down.
    pub like_published: Option<f64>,
    /// The published figure meets the bars, too.
    pub both: bool,
    /// It is on real kernels that can be booted.
    pub booted: bool,
}

/// A number, or what is said in its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ClaimValue {
    /// A number.
    Number(f64),
    /// Words.
    Words(String),
}

/// What came of a claim.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgedClaim {
    /// What is claimed, with the bar in words.
    #[serde(rename = "claim")]
    pub text: String,
    /// What was published.
    pub published: Option<ClaimValue>,
    /// What was measured; `None` if nothing could be.
    pub measured: Option<f64>,
    /// The unit of both.
    pub unit: String,
    /// Whether it holds.
    pub holds: bool,
}

impl ReportClaim {
    /// Whether a figure meets every bar; one beside what was published is not met if there is no number.
    fn is_met(&self, measured: f64, published: Option<f64>) -> bool {
        let near = |by: f64| published.is_some_and(|published| (measured - published).abs() <= by);
        let like = |part: f64| near(published.unwrap_or(f64::NAN).abs() * part);
        self.at_least.is_none_or(|bar| measured >= bar)
            && self.above.is_none_or(|bar| measured > bar)
            && self.at_most.is_none_or(|bar| measured <= bar)
            && self.below.is_none_or(|bar| measured < bar)
            && self.near_published.is_none_or(near)
            && self.like_published.is_none_or(like)
    }

    /// What it lacks, if so.
    pub(crate) fn lacks(&self) -> Option<&'static str> {
        let bars = [self.at_least, self.above, self.at_most, self.below];
        let has_bar =
            bars.into_iter().chain([self.near_published, self.like_published]).any(|bar| bar.is_some());
        match (self.text.is_empty(), self.measured.is_empty()) {
            (true, _) => Some("text"),
            (_, true) => Some("measured"),
            _ => (!has_bar)
                .then_some("a bar: at_least, above, at_most, below, near_published or like_published"),
        }
    }

    /// What the runs say of it; `value` is what an expression comes to.
    ///
    /// # Errors
    /// An expression means nothing.
    pub(crate) fn judge(
        &self,
        value: impl Fn(&str) -> Result<Option<f64>, LabError>,
    ) -> Result<JudgedClaim, LabError> {
        let real = self.real.as_deref().map(&value).transpose()?.flatten();
        let published = self.published.clone().or(real.map(ClaimValue::Number));
        let beside = match published {
            Some(ClaimValue::Number(value)) => Some(value),
            Some(ClaimValue::Words(_)) | None => None,
        };
        let measured = value(&self.measured)?;
        let meets = |value| self.is_met(value, beside);
        let holds = measured.is_some_and(meets) && (!self.both || beside.is_some_and(meets));
        Ok(JudgedClaim { text: self.text.clone(), published, measured, unit: self.unit.clone(), holds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(claim: &ReportClaim, measured: Option<f64>) -> JudgedClaim {
        let value = |expression: &str| Ok(if expression == "real" { Some(110.0) } else { measured });
        claim.judge(value).expect("known figures")
    }

    fn claim(bar: &str) -> ReportClaim {
        toml::from_str(&format!("text = 'a claim'\nmeasured = 'p99'\n{bar}")).expect(bar)
    }

    #[test]
    fn each_bar_has_two_sides() {
        for (met, missed) in [
            ("at_least = 100", "at_least = 100.1"),
            ("above = 99.9", "above = 100"),
            ("at_most = 100", "at_most = 99.9"),
            ("below = 100.1", "below = 100"),
            ("at_least = 100\nat_most = 200", "at_least = 100.1\nat_most = 200"),
            ("at_least = 0\nat_most = 100", "at_least = 0\nat_most = 99.9"),
            ("above = 99.9\nat_most = 100", "above = 100\nat_most = 200"),
        ] {
            assert!(judged(&claim(met), Some(100.0)).holds, "{met}");
            assert!(!judged(&claim(missed), Some(100.0)).holds, "{missed}");
        }
    }

    #[test]
    fn bars_beside_what_was_published_need_a_number() {
        for (met, missed) in [
            ("near_published = 10", "near_published = 9.9"),
            ("like_published = 0.1", "like_published = 0.09"),
        ] {
            for published in ["published = 110", "real = 'real'"] {
                assert!(judged(&claim(&format!("{published}\n{met}")), Some(100.0)).holds, "{met}");
                assert!(!judged(&claim(&format!("{published}\n{missed}")), Some(100.0)).holds, "{missed}");
            }
            assert!(!judged(&claim(&format!("published = 'about 100'\n{met}")), Some(100.0)).holds, "{met}");
            assert!(!judged(&claim(met), Some(100.0)).holds, "{met}");
        }
        let both =
            |bar: &str| judged(&claim(&format!("real = 'real'\nboth = true\n{bar}")), Some(200.0)).holds;
        assert!(both("at_least = 100") && !both("at_least = 150"), "the real kernel has to meet it, too");
        assert!(!judged(&claim("published = 'much'\nboth = true\nat_least = 1"), Some(2.0)).holds);
    }

    #[test]
    fn what_could_not_be_measured_does_not_hold() {
        for bar in ["at_least = -inf", "at_most = inf"] {
            let judged = judged(&claim(bar), None);
            assert!(judged.measured.is_none() && !judged.holds, "{bar}");
        }
        assert!(claim("").lacks().is_some_and(|lacks| lacks.contains("bar")));
        assert_eq!((claim("below = 1").lacks(), ReportClaim::default().lacks()), (None, Some("text")));
    }
}
