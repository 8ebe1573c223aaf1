//! Claims as data: what is compared with what, and the bar that decides; and the one judge of all of them.
//!
//! Must not know: which scenario claims something, how a verdict is shown.

use std::borrow::Cow;
use std::ops::{Div, Sub};

use fairlab_lab::LabError;
use serde::Serialize;

use super::figures::{Figure, Figures, RunKey};

/// Something that a report says or implies.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// What is claimed, with the bar in words.
    pub text: Cow<'static, str>,
    /// What was published of it.
    pub published: Published,
    /// What of the runs is held against it.
    pub measured: Measure,
    /// The unit of both.
    pub unit: &'static str,
    /// What decides.
    pub bar: Bar,
}

/// A figure or a statement that stands beside the measured one.
#[derive(Clone, Debug, PartialEq)]
pub enum Published {
    /// A number in the report, in the claim's unit.
    Figure(f64),
    /// What the report says in words.
    Said(&'static str),
    /// What a real kernel showed, recorded or booted now.
    Real(Measure),
    /// Nothing: the claim is this scenario's own.
    Nothing,
}

/// What is made of figures.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// A figure as it is.
    Of(Figure),
    /// The first over the second; nothing if that is zero.
    Ratio(Box<Measure>, Box<Measure>),
    /// The first less the second.
    Difference(Box<Measure>, Box<Measure>),
    /// So many times something.
    Times(f64, Box<Measure>),
    /// Something, or the number if it is less: what is rarer cannot be told from it.
    Floor(f64, Box<Measure>),
    /// The least of several; nothing if one of them is missing.
    Least(Vec<Measure>),
    /// The greatest of several; nothing if one of them is missing.
    Greatest(Vec<Measure>),
}

/// What decides on a claim. What could not be measured meets no bar.
#[derive(Clone, Debug, PartialEq)]
pub enum Bar {
    /// So much or more.
    AtLeast(f64),
    /// More than so much.
    Above(f64),
    /// So much or less.
    AtMost(f64),
    /// Less than so much.
    Below(f64),
    /// From the one to the other, both included.
    Between(f64, f64),
    /// More than the one, and at most the other.
    AboveUpTo(f64, f64),
    /// At most so far, up or down, from the number.
    Near {
        /// The number.
        value: f64,
        /// How far.
        by: f64,
    },
    /// At most so far, up or down, from what was published.
    NearPublished(f64),
    /// At most such a part of what was published off it, up or down.
    LikePublished(f64),
    /// The published figure meets the bar, and the measured one does.
    Both(Box<Bar>),
}

/// A number, or what is said in its place.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Told {
    /// A number.
    Number(f64),
    /// Words.
    Words(&'static str),
}

/// What came of a claim.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// What is claimed, with the bar in words.
    #[serde(rename = "claim")]
    pub text: Cow<'static, str>,
    /// What was published.
    pub published: Option<Told>,
    /// What was measured; `None` if nothing could be.
    pub measured: Option<f64>,
    /// The unit of both.
    pub unit: &'static str,
    /// Whether it holds.
    pub holds: bool,
}

/// A metric of a run.
pub(crate) fn of(metric: &'static str, run: RunKey) -> Measure {
    Measure::Of(Figure { metric, run })
}

/// The least of several.
pub(crate) fn least(all: impl IntoIterator<Item = Measure>) -> Measure {
    Measure::Least(all.into_iter().collect())
}

/// The greatest of several.
pub(crate) fn greatest(all: impl IntoIterator<Item = Measure>) -> Measure {
    Measure::Greatest(all.into_iter().collect())
}

/// A share in percent.
pub(crate) fn percent(share: Measure) -> Measure {
    Measure::Times(100.0, Box::new(share))
}

impl Div for Measure {
    type Output = Measure;

    fn div(self, other: Measure) -> Measure {
        Measure::Ratio(Box::new(self), Box::new(other))
    }
}

impl Sub for Measure {
    type Output = Measure;

    fn sub(self, other: Measure) -> Measure {
        Measure::Difference(Box::new(self), Box::new(other))
    }
}

impl Measure {
    /// What it comes to; `None` if the runs do not show it.
    ///
    /// # Errors
    /// It names a figure that is not measured.
    pub(crate) fn value(&self, figures: &Figures) -> Result<Option<f64>, LabError> {
        let both = |one: &Measure, other: &Measure| -> Result<Option<(f64, f64)>, LabError> {
            Ok(one.value(figures)?.zip(other.value(figures)?))
        };
        let every = |all: &[Measure]| -> Result<Option<Vec<f64>>, LabError> {
            all.iter().map(|one| one.value(figures)).collect()
        };
        let value = match self {
            Measure::Of(figure) => figures.get(figure)?,
            Measure::Ratio(one, other) => both(one, other)?.map(|(one, other)| one / other),
            Measure::Difference(one, other) => both(one, other)?.map(|(one, other)| one - other),
            Measure::Times(times, of) => of.value(figures)?.map(|value| value * times),
            Measure::Floor(floor, of) => of.value(figures)?.map(|value| value.max(*floor)),
            Measure::Least(all) => every(all)?.and_then(|all| all.into_iter().reduce(f64::min)),
            Measure::Greatest(all) => every(all)?.and_then(|all| all.into_iter().reduce(f64::max)),
        };
        Ok(value.filter(|value| value.is_finite()))
    }
}

impl Bar {
    /// Whether it is met; a bar beside what was published is not if there is no number.
    fn is_met(&self, measured: f64, published: Option<f64>) -> bool {
        let near = |value: f64, by: f64| (measured - value).abs() <= by;
        match self {
            Bar::AtLeast(bar) => measured >= *bar,
            Bar::Above(bar) => measured > *bar,
            Bar::AtMost(bar) => measured <= *bar,
            Bar::Below(bar) => measured < *bar,
            Bar::Between(least, most) => (*least..=*most).contains(&measured),
            Bar::AboveUpTo(above, most) => measured > *above && measured <= *most,
            Bar::Near { value, by } => near(*value, *by),
            Bar::NearPublished(by) => published.is_some_and(|published| near(published, *by)),
            Bar::LikePublished(part) => {
                published.is_some_and(|published| near(published, published.abs() * part))
            }
            Bar::Both(bar) => {
                bar.is_met(measured, published) && published.is_some_and(|value| bar.is_met(value, published))
            }
        }
    }
}

impl Claim {
    /// A claim of its parts.
    pub(crate) fn new(
        text: impl Into<Cow<'static, str>>,
        published: Published,
        measured: Measure,
        unit: &'static str,
        bar: Bar,
    ) -> Claim {
        Claim { text: text.into(), published, measured, unit, bar }
    }

    /// What the figures say of it.
    ///
    /// # Errors
    /// It names a figure that is not measured.
    pub(crate) fn judge(self, figures: &Figures) -> Result<Judged, LabError> {
        let published = match self.published {
            Published::Figure(value) => Some(Told::Number(value)),
            Published::Said(words) => Some(Told::Words(words)),
            Published::Real(measure) => measure.value(figures)?.map(Told::Number),
            Published::Nothing => None,
        };
        let beside = match published {
            Some(Told::Number(value)) => Some(value),
            Some(Told::Words(_)) | None => None,
        };
        let measured = self.measured.value(figures)?;
        let holds = measured.is_some_and(|measured| self.bar.is_met(measured, beside));
        Ok(Judged { text: self.text, published, measured, unit: self.unit, holds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P99: &str = "p99, us";
    const NEVER: &str = "not shown";

    fn run(kernel: &'static str) -> RunKey {
        RunKey::new("vm40", kernel)
    }

    /// A good kernel with 100, two bad ones with 1200 and 1500, and one without work.
    fn figures() -> Figures {
        let mut figures = Figures::default();
        for (kernel, value) in [("good", 100.0), ("bad", 1200.0), ("worse", 1500.0), ("idle", 0.0)] {
            figures.set(P99, run(kernel), value);
        }
        figures.set(NEVER, run("good"), None);
        figures
    }

    fn judged(published: Published, measured: Measure, bar: Bar) -> Judged {
        let claim = Claim { text: "a claim".into(), published, measured, unit: "us", bar };
        claim.judge(&figures()).expect("known figures")
    }

    fn holds(measured: Measure, bar: Bar) -> bool {
        judged(Published::Nothing, measured, bar).holds
    }

    #[test]
    fn each_bar_has_two_sides() {
        let good = || of(P99, run("good"));
        for (met, missed) in [
            (Bar::AtLeast(100.0), Bar::AtLeast(100.1)),
            (Bar::Above(99.9), Bar::Above(100.0)),
            (Bar::AtMost(100.0), Bar::AtMost(99.9)),
            (Bar::Below(100.1), Bar::Below(100.0)),
            (Bar::Between(100.0, 200.0), Bar::Between(100.1, 200.0)),
            (Bar::Between(0.0, 100.0), Bar::Between(0.0, 99.9)),
            (Bar::AboveUpTo(99.9, 100.0), Bar::AboveUpTo(100.0, 200.0)),
            (Bar::Near { value: 103.0, by: 3.0 }, Bar::Near { value: 103.1, by: 3.0 }),
            (Bar::Near { value: 97.0, by: 3.0 }, Bar::Near { value: 96.9, by: 3.0 }),
        ] {
            assert!(holds(good(), met.clone()), "{met:?}");
            assert!(!holds(good(), missed.clone()), "{missed:?}");
        }
    }

    #[test]
    fn bars_beside_what_was_published_need_a_number() {
        let beside = |published: Published, bar: Bar| judged(published, of(P99, run("good")), bar).holds;
        let real = |kernel| Published::Real(of(P99, run(kernel)));
        for (met, missed) in [
            (Bar::NearPublished(10.0), Bar::NearPublished(9.9)),
            (Bar::LikePublished(0.1), Bar::LikePublished(0.09)),
        ] {
            assert!(beside(Published::Figure(110.0), met.clone()), "{met:?}");
            assert!(!beside(Published::Figure(110.0), missed.clone()), "{missed:?}");
            assert!(!beside(Published::Said("about 100"), met.clone()), "{met:?}");
            assert!(!beside(Published::Nothing, met.clone()), "{met:?}");
            assert!(beside(real("good"), met.clone()) && !beside(real("bad"), met.clone()), "{met:?}");
        }
        let both = |published| {
            judged(published, of(P99, run("bad")), Bar::Both(Box::new(Bar::AtLeast(1000.0)))).holds
        };
        assert!(both(real("worse")) && !both(real("good")), "the real kernel has to meet it, too");
        assert!(!both(Published::Said("much")));
    }

    #[test]
    fn measures_are_made_of_figures() {
        let of_kernel = |kernel| of(P99, run(kernel));
        let bad = || ["bad", "worse"].map(|kernel| of(P99, run(kernel)));
        for (measure, value) in [
            (of_kernel("bad") / of_kernel("good"), 12.0),
            (of_kernel("bad") - of_kernel("good"), 1100.0),
            (percent(of_kernel("good") / of_kernel("bad")), 100.0 / 12.0),
            (least(bad()) / of_kernel("good"), 12.0),
            (greatest(bad()) / of_kernel("good"), 15.0),
            (of_kernel("bad") / Measure::Floor(10.0, Box::new(of_kernel("idle"))), 120.0),
        ] {
            let measured = judged(Published::Nothing, measure.clone(), Bar::Above(0.0)).measured;
            assert!(
                measured.is_some_and(|measured| (measured - value).abs() < 1e-9),
                "{measure:?} {measured:?}"
            );
        }
    }

    #[test]
    fn what_could_not_be_measured_does_not_hold() {
        let good = || of(P99, run("good"));
        for nothing in [
            of(NEVER, run("good")),
            good() / of(P99, run("idle")),
            least([good(), of(NEVER, run("good"))]),
            greatest([]),
        ] {
            let judged = judged(Published::Nothing, nothing.clone(), Bar::AtLeast(f64::MIN));
            assert!(judged.measured.is_none() && !judged.holds, "{nothing:?}");
            assert!(!holds(nothing.clone(), Bar::AtMost(f64::MAX)), "{nothing:?}");
        }
        let real = judged(Published::Real(of(NEVER, run("good"))), good(), Bar::NearPublished(f64::MAX));
        assert!(real.published.is_none() && !real.holds);
    }

    #[test]
    fn a_claim_on_a_run_that_nobody_makes_is_an_error() {
        let measured = of(P99, run("good")) / of(P99, run("v9.9"));
        let claim = Claim {
            text: "a claim".into(),
            published: Published::Nothing,
            measured,
            unit: "us",
            bar: Bar::Above(0.0),
        };
        let error = claim.judge(&figures()).expect_err("there is no such run");
        assert!(error.problem.contains("v9.9 (vm40)"), "{error}");
    }
}
