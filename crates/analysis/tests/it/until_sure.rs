//! Runs that end as soon as the answer is sure: how often that is wrong, how often it sees what is there, and how many runs it takes. The
//! table is part of docs/statistics.md.
//!
//! Must not know: real runs; noise is drawn here.

use std::fmt::Write;

use crate::random::Random;
use fairlab_analysis::statistics::{
    BetterDirection, LookLevels, LookPlan, MARGIN, MetricVerdict, judge, paired, paired_at_look,
};

/// The most runs a side.
const RUNS_MAX: usize = 30;

/// What came of experiments that ended by themselves, as shares, and the mean of their runs a side.
#[derive(Default)]
struct Ended {
    different: f64,
    equal: f64,
    runs: f64,
    /// Differences that all runs show in one look.
    at_end: f64,
}

fn judged(base: &[f64], new: &[f64], levels: &LookLevels) -> MetricVerdict {
    let estimate = paired_at_look(base, new, levels);
    let is_real = estimate.p.is_some_and(|p| p <= 0.05);
    judge(&estimate, BetterDirection::Lower, MARGIN, is_real)
}

/// Pairs with independent noise of this coefficient of variation, and `factor` between them.
fn ended(noise: f64, factor: f64, experiments: usize) -> Ended {
    let plan = LookPlan::up_to(RUNS_MAX);
    let looks = plan.runs().iter().map(|&runs| (runs, plan.levels(runs))).collect::<Vec<_>>();
    let mut random = Random::new(41 + (noise * 1e4) as u64 + factor.to_bits() % 977);
    let mut sums = Ended::default();
    for _ in 0..experiments {
        let mut draw = |factor: f64| {
            (0..RUNS_MAX).map(|_| factor * 100.0 * (noise * random.normal()).exp()).collect::<Vec<_>>()
        };
        let (base, new) = (draw(1.0), draw(factor));
        let verdict =
            |(runs, levels): &(usize, LookLevels)| (*runs, judged(&base[..*runs], &new[..*runs], levels));
        let sure = looks.iter().map(verdict).find(|(_, verdict)| *verdict != MetricVerdict::Undecided);
        let (runs, verdict) = sure.unwrap_or((RUNS_MAX, MetricVerdict::Undecided));
        sums.runs += runs as f64;
        sums.different += f64::from(verdict.is_difference());
        sums.equal += f64::from(verdict == MetricVerdict::Equivalent);
        sums.at_end += f64::from(paired(&base, &new).p.is_some_and(|p| p <= 0.05));
    }
    let share = |sum: f64| sum / experiments as f64;
    Ended {
        different: share(sums.different),
        equal: share(sums.equal),
        runs: share(sums.runs),
        at_end: share(sums.at_end),
    }
}

#[test]
fn a_difference_that_is_none_is_seen_in_five_of_a_hundred() {
    for noise in [0.03, 0.09, 0.3] {
        let Ended { different, .. } = ended(noise, 1.0, 4_000);
        assert!((0.04..=0.06).contains(&different), "{noise}: {different}");
    }
}

#[test]
fn a_difference_of_the_margin_is_seldom_called_equal() {
    for noise in [0.003, 0.01, 0.03] {
        let Ended { equal, .. } = ended(noise, 1.0 + MARGIN, 4_000);
        assert!(equal <= 0.05, "{noise}: {equal}");
    }
}

#[test]
fn a_large_difference_takes_few_runs_and_a_small_one_loses_little() {
    let large = ended(0.03, 1.2, 1_000);
    assert!(large.different > 0.999 && large.runs < 5.0, "{} {}", large.different, large.runs);
    let small = ended(0.03, 1.03, 1_000);
    assert!(small.different > small.at_end - 0.12, "{} {}", small.different, small.at_end);
}

/// The rows of the page.
pub fn table(page: &mut String) {
    page.push_str(
        "| noise | true difference | seen | in one look at all 30 | equal within 1 % | undecided | runs a side, mean |\n\
         |---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for noise in [0.003, 0.01, 0.03, 0.09] {
        for factor in [1.0, 1.01, 1.03, 1.1, 1.5] {
            let Ended { different, equal, runs, at_end } = ended(noise, factor, 4_000);
            let percent = |share: f64| format!("{:.1} %", share * 100.0);
            let cells = [
                format!("{} %", noise * 100.0),
                format!("{:+.0} %", (factor - 1.0) * 100.0).replace("+0 %", "none"),
                percent(different),
                percent(at_end),
                percent(equal),
                percent(1.0 - different - equal),
                format!("{runs:.1}"),
            ];
            let _ = writeln!(page, "| {} |", cells.join(" | "));
        }
    }
    page.push('\n');
}
