//! How one kernel's metric relates to the baseline's: ratio, interval and verdict.
//!
//! Must not know: by which method the interval was found.

use crate::task_selector::plain;

/// Which way a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BetterDirection {
    /// Waits, latencies, costs of a piece of work.
    Lower,
    /// Work done.
    Higher,
    /// Neither is better by itself: fewer switches a second may be less work done.
    Neither,
}

/// Parts of the names of metrics where less is better.
const LOWER: [&str; 13] = [
    "latency",
    "interval",
    "jitter",
    "lateness",
    "wait",
    "waits",
    "missed",
    "throttled",
    "unconserved",
    "delay",
    "slowdown",
    "unfairness",
    "stacked",
];

/// Metrics of work done.
const HIGHER: [&str; 3] = ["throughput", "megabytes_per_s", "gigabits_per_s"];

/// The time that a program took as a whole.
const TIME_NS: &str = "time_ns";

/// How the names of costs of a piece of work end.
pub const PER_WORK: &str = "_per_work";

impl BetterDirection {
    /// The direction of the metric called `name`, whosever it is.
    pub fn of_metric(name: &str) -> BetterDirection {
        let name = plain(name);
        let is_cost = name == TIME_NS || name.ends_with(PER_WORK);
        if HIGHER.contains(&name) {
            BetterDirection::Higher
        } else if is_cost || name.split('_').any(|part| LOWER.contains(&part)) {
            BetterDirection::Lower
        } else {
            BetterDirection::Neither
        }
    }
}

/// What a comparison comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricVerdict {
    /// The whole interval lies on the better side.
    Better,
    /// The whole interval lies on the worse side.
    Worse,
    /// The whole interval lies on one side, and neither side is better.
    Changed,
    /// The whole interval lies within the margin.
    Equivalent,
    /// The interval allows more than one of these.
    Undecided,
    /// A side's runs all have one value: one course of events, which decides nothing.
    OneCourse,
    /// The two kernels differ only in what the model does not follow: their runs say nothing of it.
    NotModelled,
}

impl MetricVerdict {
    /// The word in JSON and CSV.
    pub const fn name(self) -> &'static str {
        match self {
            MetricVerdict::Better => "better",
            MetricVerdict::Worse => "worse",
            MetricVerdict::Equivalent => "equivalent",
            MetricVerdict::Changed => "changed",
            MetricVerdict::Undecided => "undecided",
            MetricVerdict::OneCourse => "one_course",
            MetricVerdict::NotModelled => "not_modelled",
        }
    }

    /// The words for people.
    pub const fn words(self) -> &'static str {
        match self {
            MetricVerdict::OneCourse => "one course of events",
            MetricVerdict::NotModelled => "not modelled",
            other => other.name(),
        }
    }

    /// Whether it says that there is a difference.
    pub const fn is_difference(self) -> bool {
        matches!(self, MetricVerdict::Better | MetricVerdict::Worse | MetricVerdict::Changed)
    }
}

/// Where an interval comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalMethod {
    /// Every pair has one value twice: nothing to estimate.
    Identical,
    /// All pairs differ by one factor: how often chance gives them all the same sign.
    Signs,
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

impl IntervalMethod {
    /// The words in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            IntervalMethod::Identical => "identical",
            IntervalMethod::Signs => "signs",
            IntervalMethod::PairedT => "paired t",
            IntervalMethod::StudentT => "Student's t",
            IntervalMethod::WelchT => "Welch's t",
            IntervalMethod::RankSum => "rank sum",
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
    pub method: Option<IntervalMethod>,
    /// A side's runs are one course of events: there is no more than the ratio, and there will be no verdict.
    pub one_course: bool,
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
    /// The scale is that of logarithms; otherwise that of shares of the baseline.
    pub(super) is_log: bool,
}

impl Estimate {
    /// Nothing can be said beyond the ratio.
    pub(super) fn only(ratio: Option<f64>) -> Estimate {
        Estimate { ratio, low: None, high: None, p: None, method: None, one_course: false, noise: None }
    }
}

/// What an estimate comes to. `is_real` says whether a difference stands after correction for the number of metrics
/// ([`adjusted`](super::adjusted)). `margin` is the share of the baseline below which differences are of no interest.
pub fn judge(estimate: &Estimate, better: BetterDirection, margin: f64, is_real: bool) -> MetricVerdict {
    if estimate.one_course {
        return MetricVerdict::OneCourse;
    }
    let Some(low) = estimate.low else { return MetricVerdict::Undecided };
    // Beside nothing there is no upper end.
    let high = estimate.high.unwrap_or(f64::INFINITY);
    let (falls, rises) = match better {
        BetterDirection::Lower => (MetricVerdict::Better, MetricVerdict::Worse),
        BetterDirection::Higher => (MetricVerdict::Worse, MetricVerdict::Better),
        BetterDirection::Neither => (MetricVerdict::Changed, MetricVerdict::Changed),
    };
    if low >= 1.0 - margin && high <= 1.0 + margin {
        MetricVerdict::Equivalent
    } else if high < 1.0 && is_real {
        falls
    } else if low > 1.0 && is_real {
        rises
    } else {
        MetricVerdict::Undecided
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MARGIN, paired, unpaired};
    use super::*;

    #[test]
    fn verdicts_follow_the_interval() {
        let base = [100.0, 102.0, 98.0, 101.0];
        let noise = [1.0001, 0.9999, 1.0002, 1.0];
        let scaled = |factor: f64| std::array::from_fn::<_, 4, _>(|at| base[at] * factor * noise[at]);
        let verdict =
            |other: &[f64], better: BetterDirection| judge(&paired(&base, other), better, MARGIN, true);
        assert_eq!(verdict(&scaled(0.5), BetterDirection::Lower), MetricVerdict::Better);
        assert_eq!(verdict(&scaled(0.5), BetterDirection::Higher), MetricVerdict::Worse);
        assert_eq!(verdict(&scaled(2.0), BetterDirection::Lower), MetricVerdict::Worse);
        assert_eq!(verdict(&scaled(2.0), BetterDirection::Neither), MetricVerdict::Changed);
        assert_eq!(verdict(&scaled(1.002), BetterDirection::Lower), MetricVerdict::Equivalent);
        assert_eq!(verdict(&[80.0, 140.0, 90.0, 101.0], BetterDirection::Lower), MetricVerdict::Undecided);
        assert_eq!(verdict(&base, BetterDirection::Lower), MetricVerdict::Equivalent);
        let wide = |margin| judge(&paired(&base, &scaled(1.08)), BetterDirection::Lower, margin, true);
        assert_eq!((wide(0.01), wide(0.1)), (MetricVerdict::Worse, MetricVerdict::Equivalent));
        assert_eq!(
            judge(&paired(&base, &scaled(2.0)), BetterDirection::Lower, MARGIN, false),
            MetricVerdict::Undecided
        );
    }

    #[test]
    fn which_way_is_better_goes_by_the_name() {
        let of = BetterDirection::of_metric;
        for name in ["wakeup_latency_ns_p99", "schbench_latency_us_p50", "time_ns", "switches_per_work"] {
            assert_eq!(of(name), BetterDirection::Lower, "{name}");
        }
        for name in ["kworker_wait_ns_p99.9", "periodic_missed_share", "unconserved_share"] {
            assert_eq!(of(name), BetterDirection::Lower, "{name}");
        }
        for name in ["throughput", "gigabits_per_s"] {
            assert_eq!(of(name), BetterDirection::Higher, "{name}");
        }
        for name in ["switches_per_s", "migrations_per_s", "idle_share", "nice0_share", "frames"] {
            assert_eq!(of(name), BetterDirection::Neither, "{name}");
        }
    }

    /// One run of a side, or runs that never differ on either: no verdict, whatever the values are.
    #[test]
    fn one_course_of_events_has_no_verdict() {
        for (base, other) in [
            (&[5.0, 5.0, 5.0][..], &[9.0, 9.0, 9.0][..]),
            (&[5.0, 5.0, 5.0], &[5.0, 5.0, 5.0]),
            (&[0.0, 0.0, 0.0], &[0.0, 0.0, 0.0]),
            (&[1.0], &[2.0]),
        ] {
            for estimate in [paired(base, other), unpaired(base, other)] {
                assert!(estimate.one_course, "{base:?} {other:?}");
                assert_eq!((estimate.low, estimate.high, estimate.p), (None, None, None));
                assert_eq!(judge(&estimate, BetterDirection::Lower, MARGIN, true), MetricVerdict::OneCourse);
            }
        }
    }

    /// Runs of one side that never differ are compared with those of the other, which show how far chance goes.
    #[test]
    fn a_side_without_scatter_has_a_verdict() {
        let varied = [2.0, 2.0, 2.0, 2.0, 2.0, 3.0, 3.0, 2.0, 2.0, 2.0];
        let verdict = |base: &[f64], other: &[f64]| {
            let estimates = [paired(base, other), unpaired(base, other)];
            let verdicts = estimates.map(|estimate| judge(&estimate, BetterDirection::Lower, MARGIN, true));
            assert_eq!(verdicts[0], verdicts[1], "{base:?} {other:?}");
            verdicts[0]
        };
        assert_eq!(verdict(&varied, &[0.0; 10]), MetricVerdict::Better);
        assert_eq!(
            verdict(&[0.0; 10], &varied),
            MetricVerdict::Worse,
            "nothing has no ratio, and still there is more"
        );
        assert_eq!(verdict(&[9.0; 10], &varied), MetricVerdict::Better);
        let about = [1.9, 2.5, 2.1, 2.3, 2.0, 2.4, 2.2, 2.6, 1.8, 2.2];
        assert_eq!(verdict(&[2.2; 10], &about), MetricVerdict::Undecided);
        let rare = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0];
        assert_eq!([verdict(&[0.0; 10], &rare), verdict(&rare, &[0.0; 10])], [MetricVerdict::Undecided; 2]);
    }
}
