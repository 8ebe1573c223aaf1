//! How one kernel's metric relates to the baseline's, and what that comes to.
//!
//! Must not know: by which method the interval was found.

/// Which way a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Latencies, switches, idleness.
    Lower,
    /// Throughput.
    Higher,
}

impl Better {
    /// The direction of the metric called `name`.
    pub fn of_metric(name: &str) -> Better {
        if name == "throughput" { Better::Higher } else { Better::Lower }
    }
}

/// What a comparison comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval lies on the better side.
    Better,
    /// The whole interval lies on the worse side.
    Worse,
    /// The whole interval lies within the margin.
    Equivalent,
    /// The interval allows more than one of these.
    Undecided,
}

impl Verdict {
    /// The word in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Equivalent => "equivalent",
            Verdict::Undecided => "undecided",
        }
    }
}

/// Where an interval comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Every pair has twice the same value: nothing to estimate.
    Identical,
    /// Student's t of the differences within pairs.
    PairedT,
    /// Student's t of two samples that spread alike.
    StudentT,
    /// Welch's t of two samples that do not.
    WelchT,
    /// The exact rank-sum test of Wilcoxon, Mann and Whitney with the shift of Hodges and Lehmann: runs fall into two
    /// modes, so that means say little.
    RankSum,
}

impl Method {
    /// The words in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Method::Identical => "identical",
            Method::PairedT => "paired t",
            Method::StudentT => "Student's t",
            Method::WelchT => "Welch's t",
            Method::RankSum => "rank sum",
        }
    }
}

/// How one kernel's metric relates to the baseline's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The kernel's value over the baseline's: of geometric means where all values are positive, otherwise of means.
    /// `None` when the baseline is zero.
    pub ratio: Option<f64>,
    /// Lower end of its 95 % interval; `None` when there are too few runs to tell.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// How often chance alone gives a difference as large as this; `None` when there are too few runs to tell.
    pub p: Option<f64>,
    /// Where the interval comes from; `None` when there is none.
    pub method: Option<Method>,
    /// What planning needs to know.
    pub(super) noise: Option<Noise>,
}

/// How far runs scatter, on the scale on which they are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Noise {
    /// The difference that was found.
    pub(super) shift: f64,
    /// Standard deviation of a difference between one run and another.
    pub(super) deviation: f64,
    /// Degrees of freedom that each further run on both sides brings: 1 in pairs, 2 otherwise.
    pub(super) freedom_per_run: usize,
    /// Runs on the side that has fewer.
    pub(super) runs: usize,
}

impl Estimate {
    /// Nothing can be said beyond the ratio.
    pub(super) fn only(ratio: Option<f64>) -> Estimate {
        Estimate { ratio, low: None, high: None, p: None, method: None, noise: None }
    }
}

/// What an estimate comes to. `is_real` is what correction for the number of metrics leaves of a difference
/// ([`adjusted`](super::adjusted)); `margin` is the share of the baseline below which differences are of no interest.
pub fn judge(estimate: &Estimate, better: Better, margin: f64, is_real: bool) -> Verdict {
    let (Some(low), Some(high)) = (estimate.low, estimate.high) else { return Verdict::Undecided };
    let (falls, rises) = match better {
        Better::Lower => (Verdict::Better, Verdict::Worse),
        Better::Higher => (Verdict::Worse, Verdict::Better),
    };
    if low >= 1.0 - margin && high <= 1.0 + margin {
        Verdict::Equivalent
    } else if high < 1.0 && is_real {
        falls
    } else if low > 1.0 && is_real {
        rises
    } else {
        Verdict::Undecided
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MARGIN, paired};
    use super::*;

    #[test]
    fn verdicts_follow_the_interval() {
        let base = [100.0, 102.0, 98.0, 101.0];
        let scaled = |factor: f64| base.map(|value| value * factor + value / 1e4);
        let verdict = |other: &[f64], better: Better| judge(&paired(&base, other), better, MARGIN, true);
        assert_eq!(verdict(&scaled(0.5), Better::Lower), Verdict::Better);
        assert_eq!(verdict(&scaled(0.5), Better::Higher), Verdict::Worse);
        assert_eq!(verdict(&scaled(2.0), Better::Lower), Verdict::Worse);
        assert_eq!(verdict(&scaled(1.002), Better::Lower), Verdict::Equivalent);
        assert_eq!(verdict(&[80.0, 140.0, 90.0, 101.0], Better::Lower), Verdict::Undecided);
        assert_eq!(verdict(&base, Better::Lower), Verdict::Equivalent);
        let wide = |margin| judge(&paired(&base, &scaled(1.08)), Better::Lower, margin, true);
        assert_eq!((wide(0.01), wide(0.1)), (Verdict::Worse, Verdict::Equivalent));
        assert_eq!(judge(&paired(&base, &scaled(2.0)), Better::Lower, MARGIN, false), Verdict::Undecided);
    }
}
