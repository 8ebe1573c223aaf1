//! The change log: upstream commits in git's order, a file per release, and the base release from which the log starts.
//!
//! Git's history has branches, and the log is a line. A release holds first what was made for it, then its urgent fixes, in
//! the order in which they came into the tip tree. Commits of other trees (power management) are placed by date. Ids, dates
//! and places of most rows come from public commit mails and push logs; a test compares them with `testdata/history.tsv`.
//!
//! Must not know: what policy code does with the rules.

use std::sync::LazyLock;

use super::change::{LoggedCommit, MainlineRelease};
use super::date::Date;
use super::feature::{Feature, FeatureSet};
use super::tunable::{Tunable, Tunables};

/// Declares the releases, each with a file of commits.
macro_rules! releases {
    ($($file:ident($major:literal, $minor:literal),)*) => {
        $(mod $file;)*

        /// The releases with the commits that they are the first to hold, oldest first. Of the first one only some are listed: the
        /// log starts from that release without them.
        pub(super) const RELEASES: &[(MainlineRelease, &[LoggedCommit])] =
            &[$((MainlineRelease($major, $minor), $file::COMMITS),)*];
    };
}

releases! {
    v4_18(4, 18), v4_19(4, 19), v4_20(4, 20),
    v5_0(5, 0), v5_1(5, 1), v5_2(5, 2), v5_3(5, 3), v5_4(5, 4), v5_5(5, 5), v5_6(5, 6), v5_7(5, 7),
    v5_8(5, 8), v5_9(5, 9), v5_10(5, 10), v5_11(5, 11), v5_12(5, 12), v5_13(5, 13), v5_14(5, 14),
    v5_15(5, 15), v5_16(5, 16), v5_17(5, 17), v5_18(5, 18), v5_19(5, 19),
    v6_0(6, 0), v6_1(6, 1), v6_2(6, 2), v6_3(6, 3), v6_4(6, 4), v6_5(6, 5), v6_6(6, 6), v6_7(6, 7),
    v6_8(6, 8), v6_9(6, 9), v6_10(6, 10), v6_11(6, 11), v6_12(6, 12), v6_13(6, 13), v6_14(6, 14),
    v6_15(6, 15), v6_16(6, 16), v6_17(6, 17), v6_18(6, 18), v6_19(6, 19),
    v7_0(7, 0), v7_1(7, 1), v7_2(7, 2), v7_3(7, 3),
}

mod never_merged;
mod row;

/// Every known change, in git's order; patches that were never merged stand behind all that were.
pub static LOG: LazyLock<Vec<LoggedCommit>> = LazyLock::new(|| {
    let of_release = |&(release, commits): &(MainlineRelease, &'static [LoggedCommit])| {
        commits.iter().map(move |&change| LoggedCommit { release: Some(release), ..change })
    };
    RELEASES.iter().flat_map(of_release).chain(never_merged::COMMITS.iter().copied()).collect()
});

/// Features of the base release (kernel/sched/features.h at v4.18).
pub(super) fn base_features() -> FeatureSet {
    const ON: &[Feature] = &[
        Feature::GentleFairSleepers,
        Feature::StartDebit,
        Feature::LastBuddy,
        Feature::CacheHotBuddy,
        Feature::WakeupPreemption,
        Feature::TtwuQueue,
        Feature::SisProp,
        Feature::WaIdle,
        Feature::WaWeight,
        Feature::WaBias,
        Feature::UtilEst,
        Feature::LbBias,
        Feature::RtRuntimeShare,
        Feature::NontaskCapacity,
        Feature::RtPushIpi,
        Feature::AttachAgeLoad,
    ];
    const OFF: &[Feature] = &[
        Feature::NextBuddy,
        Feature::Hrtick,
        Feature::SisAvgCpu,
        Feature::DoubleTick,
        Feature::WarnDoubleClock,
        Feature::LbMin,
    ];
    let features = ON.iter().fold(FeatureSet::default(), |features, &feature| features.with(feature, true));
    OFF.iter().fold(features, |features, &feature| features.with(feature, false))
}

/// Tunables of the base release, normalised (kernel/sched/fair.c at v4.18).
pub(super) fn base_tunables() -> Tunables {
    let mut tunables = Tunables::default();
    for (tunable, normalised_ns) in [
        (Tunable::Latency, 6_000_000),
        (Tunable::MinGranularity, 750_000),
        (Tunable::WakeupGranularity, 1_000_000),
        (Tunable::BandwidthSlice, 5_000_000),
        (Tunable::MigrationCost, 500_000),
    ] {
        tunables.define(tunable, normalised_ns);
    }
    tunables
}

impl LoggedCommit {
    /// Commits of earlier releases that were made later: its own tree lacks them, and the line of the log has them before it.
    ///
    /// A fix goes into a release while the next one is already under way on another branch.
    pub fn absent_fixes(&self) -> impl Iterator<Item = &'static LoggedCommit> {
        let (release, date) = (self.release, self.date);
        LOG.iter().filter(move |other| {
            let is_later = |date: Date| other.date.is_some_and(|later| date.is_before(later));
            other.release.is_some() && other.release < release && date.is_some_and(is_later)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generation::date::DatedBy;

    /// What public commit mails, push logs and pages say: testdata/README.md.
    const TABLE: &str = include_str!("../../../../testdata/history.tsv");

    /// The table's rows: release, id, date, who says so, subject.
    fn rows() -> Vec<[&'static str; 5]> {
        let row =
            |line: &'static str| <[&str; 5]>::try_from(line.split('\t').collect::<Vec<_>>()).expect(line);
        TABLE.lines().skip(1).map(row).collect()
    }

    /// The merged commits with their dates.
    fn dates() -> impl Iterator<Item = (&'static str, Date)> {
        LOG.iter().filter_map(|change| Some((change.id(), change.date?)))
    }

    #[test]
    fn a_date_is_a_year_a_month_or_a_day() {
        for (id, date) in dates() {
            let text = date.text.trim_start_matches("<=");
            let parts = text.split('-').map(str::len).collect::<Vec<_>>();
            assert!([&[4][..], &[4, 2], &[4, 2, 2]].contains(&parts.as_slice()), "{id}");
            assert!(text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'), "{id}");
        }
    }

    #[test]
    fn the_log_is_what_the_table_says_in_its_order() {
        let mut log = LOG.iter();
        for [release, id, date, by, subject] in rows() {
            // The log has commits between that the table lacks, but none of the table's in another order.
            let change = log.find(|change| change.id() == id);
            let change = change.unwrap_or_else(|| panic!("{id} stands elsewhere in the log"));
            assert_eq!(change.release.map(|first| first.to_string()).as_deref(), Some(release), "{id}");
            let dated = change.date.map(|known| (known.text, known.by.name()));
            assert_eq!(dated, Some((date, by)), "{id}");
            assert_eq!(change.subject, subject, "{id}");
        }
        assert!(rows().len() > 350);
    }

    #[test]
    fn what_the_table_does_not_know_is_from_memory_or_from_a_push_log() {
        let known = rows().into_iter().map(|[_, id, ..]| id).collect::<Vec<_>>();
        for (id, date) in dates().filter(|(id, _)| !known.contains(id)) {
            let is_bound = date.text.starts_with("<=");
            assert_eq!(date.by, if is_bound { DatedBy::Git } else { DatedBy::Memory }, "{id}");
        }
    }

    /// Pairs of the table that git has in the other order: a commit with an earlier day than one of a release before. By days
    /// alone there are 144 of 76 commits. Who counts only what one tree shows, commits of the tip tree's sched/core by its mails,
    /// and fixes of its sched/urgent, finds 128 pairs of 60 commits; three more pairs have their day from a page. Of the 13 others,
    /// seven are of logs of pushes, of sched/hrtick and of a page that names a parent; six are of before v5.5 and from memory.
    #[test]
    fn pairs_that_a_line_cannot_have_in_gits_order_are_counted() {
        let release =
            |id: &str| LOG.iter().find(|change| change.id() == id).and_then(|change| change.release);
        let of_days = rows().into_iter().filter(|[_, _, date, ..]| date.len() == 10);
        let days = of_days.map(|[_, id, date, by, _]| (release(id), date, by)).collect::<Vec<_>>();
        let count = |sure: bool| {
            let counted = || days.iter().filter(move |(.., by)| !sure || *by == "git");
            let lacking = |(release, date, _): &(_, &str, _)| {
                counted().filter(|other| other.0 < *release && other.1 > *date).count()
            };
            let all = counted().map(lacking);
            all.fold((0, 0), |(pairs, commits), lacks| (pairs + lacks, commits + usize::from(lacks > 0)))
        };
        assert_eq!((count(false), count(true)), ((144, 76), (134, 66)));
    }

    #[test]
    fn a_commit_lacks_fixes_that_were_made_later_for_the_release_before() {
        let find = |id: &str| LOG.iter().find(|change| change.id() == id).expect("in the log");
        let absent = |id| find(id).absent_fixes().map(LoggedCommit::id).collect::<Vec<_>>();
        assert_eq!(absent("11b0bfa5d463"), ["11b1b8bc2b98", "afae8002b4fd", "1560d1f6eb6b"]);
        assert_eq!(absent("0b0695f2b34a"), [""; 0]);
        let pairs = LOG.iter().map(|change| (change, change.absent_fixes().count()));
        assert!(pairs.clone().filter(|(_, absent)| *absent > 0).count() > 36);
        for (change, absent) in pairs {
            assert!(
                absent == 0 || change.absent_fixes().all(|fix| fix.release < change.release),
                "{}",
                change.id()
            );
        }
    }
}
