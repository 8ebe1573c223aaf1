//! How unequally CPU time is shared among tasks that should get equal shares.
//!
//! Equals have one weight (priority), one group and one set of allowed CPUs, and wanted to run all the time. The measure is
//! (max − min) / mean of their run times, as schedulers' mailing lists use it. 0 is fair. 1 means that the largest and the
//! smallest share differ by the mean share.
//!
//! Must not know: what else is counted of tasks.

use std::collections::BTreeMap;

use fairlab_event::Ns;

use crate::counts::Unfairness;

/// A task as far as it may be the equal of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ComparableTask {
    /// Its group, priority and affinity.
    pub(super) class: (Option<u32>, i32, Option<u32>),
    /// For how long it ran, ns.
    pub(super) ran: u64,
    /// For how long it ran or was runnable, ns.
    pub(super) wanted: u64,
}

/// It always wanted to run that was runnable for so many thousandths of the time.
const ALWAYS: u128 = 990;

/// The unfairness of each name that has equals: where these are of several classes, that of the most unfair one.
pub(super) fn unfairness<'t>(
    tasks: impl Iterator<Item = (&'t [u32], ComparableTask)>,
    observed: Ns,
) -> BTreeMap<u32, Unfairness> {
    let mut classes: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for (names, ComparableTask { class, ran, wanted }) in tasks {
        if observed > Ns::ZERO && u128::from(wanted) * 1000 >= u128::from(observed.0) * ALWAYS {
            names.iter().for_each(|&name| classes.entry((name, class)).or_default().push(ran));
        }
    }
    let mut found: BTreeMap<u32, Unfairness> = BTreeMap::new();
    for ((name, _), times) in classes {
        if let Some(sum_ppm) = spread(&times) {
            let worst = found.entry(name).or_insert(Unfairness { sum_ppm: 0, runs: 1 });
            worst.sum_ppm = worst.sum_ppm.max(sum_ppm);
        }
    }
    found
}

/// (max − min) / mean in millionths; none for a single task, and for tasks that never ran.
fn spread(times: &[u64]) -> Option<u64> {
    let (least, most) = (times.iter().min()?, times.iter().max()?);
    let sum = times.iter().map(|&time| u128::from(time)).sum::<u128>();
    let scaled = u128::from(most - least) * 1_000_000 * times.len() as u128;
    (times.len() > 1 && sum > 0).then(|| u64::try_from(scaled / sum).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_are_compared_by_their_spread() {
        let task = |class, ran, wanted| ComparableTask { class: (None, class, None), ran, wanted };
        let tasks = [
            (&[1_u32, 2][..], task(120, 90, 100)),
            (&[1], task(120, 60, 100)),
            // It slept: no equal of theirs.
            (&[1], task(120, 10, 60)),
            // Another weight, with an equal of its own.
            (&[1], task(110, 50, 100)),
            (&[1], task(110, 50, 100)),
        ];
        let found = unfairness(tasks.into_iter(), Ns(100));
        assert_eq!(found, BTreeMap::from([(1, Unfairness { sum_ppm: 400_000, runs: 1 })]));
        assert_eq!(spread(&[0, 0]), None);
    }
}
