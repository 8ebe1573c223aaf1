//! What wakeups count for `/proc/schedstat`, and what searches for idle CPUs count beside it.
//!
//! Must not know: how counters are shown, and what is derived from them.

use std::fmt;

use crate::decision::IdleCpuSearch;
use crate::schedstat::{RqCounters, SisCounters};

impl RqCounters {
    /// Counts a wakeup that ends on this CPU or on another.
    ///
    /// Kernel: `ttwu_stat()`, kernel/sched/core.c.
    pub(crate) fn count_wakeup(&mut self, local: bool) {
        self.ttwu_count += 1;
        self.ttwu_local += u64::from(local);
    }
}

impl SisCounters {
    /// Counts a selection, if it searched.
    ///
    /// Kernel: Mel Gorman's schedstat patches, where those increment. Looking at target, previous and recent CPU counts as
    /// one CPU.
    pub(super) fn count(&mut self, search: &IdleCpuSearch) {
        if !search.entered {
            return;
        }
        self.search += 1;
        self.scanned += 1 + u64::from(search.looked_at);
        self.domain_search += u64::from(search.domain);
        self.failed += u64::from(search.failed);
        self.core_search += u64::from(search.core.is_some());
        self.core_miss += u64::from(search.core == Some(false));
        self.recent_hit += u64::from(search.recent == Some(true));
        self.recent_miss += u64::from(search.recent == Some(false));
    }
}

/// A percentage in hundredths: 3518 is 35.18 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(pub u64);

impl Percent {
    /// `part` of `whole`, rounded to the nearest hundredth; `None` of nothing.
    pub fn of(part: u64, whole: u64) -> Option<Percent> {
        let (part, whole) = (u128::from(part), u128::from(whole));
        (whole != 0).then(|| Percent(((part * 20_000 + whole) / (2 * whole)) as u64))
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{:02}", self.0 / 100, self.0 % 100))
    }
}

/// What mmtests derives from the counters of searches; `None` where nothing was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SisSummary {
    /// CPUs looked at in cache domains (`SIS Domain Scanned`).
    pub domain_scanned: u64,
    /// Cores found (`SIS Core Hit`).
    pub core_hit: u64,
    /// Times that the recently used CPU was looked at (`SIS Recent Attempts`).
    pub recent_attempts: u64,
    /// Searches per CPU looked at (`SIS IdleCpuSearch Efficiency`).
    pub search_efficiency: Option<Percent>,
    /// The same within cache domains (`SIS Domain IdleCpuSearch Eff`).
    pub domain_efficiency: Option<Percent>,
    /// Searches that needed no search of a domain (`SIS Fast Success Rate`).
    pub fast_success: Option<Percent>,
    /// Searches that found an idle CPU (`SIS Success Rate`).
    pub success: Option<Percent>,
    /// How often the recently used CPU was taken when looked at (`SIS Recent Success Rate`).
    pub recent_success: Option<Percent>,
}

impl SisCounters {
    /// What is derived from the counters.
    ///
    /// Source: mmtests, `MonitorMmtestsschedstat.pm`.
    pub fn summary(&self) -> SisSummary {
        let fast = self.search.saturating_sub(self.domain_search);
        let domain_scanned = self.scanned.saturating_sub(fast);
        let attempts = self.recent_hit + self.recent_miss;
        SisSummary {
            domain_scanned,
            core_hit: self.core_search.saturating_sub(self.core_miss),
            recent_attempts: attempts,
            search_efficiency: Percent::of(self.search, self.scanned),
            domain_efficiency: Percent::of(self.domain_search, domain_scanned),
            fast_success: Percent::of(fast, self.search),
            success: Percent::of(self.search.saturating_sub(self.failed), self.search),
            recent_success: Percent::of(self.recent_hit, attempts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of a mail to linux-kernel: "Re: [RFC PATCH v7] sched/fair: select idle cpu from idle cpumask for task
    /// wakeup", Mel Gorman, 9 December 2020; tbench on an 80-CPU machine, without and with the patch.
    const COUNTED: [SisCounters; 2] = [
        SisCounters {
            search: 5_596_677_950,
            domain_search: 3_268_344_934,
            scanned: 15_909_069_113,
            failed: 2_944_874_939,
            recent_hit: 124_265_515,
            recent_miss: 338_142_547,
            core_search: 262_853_975,
            core_miss: 77_664_319,
        },
        SisCounters {
            search: 5_586_381_168,
            domain_search: 3_229_088_045,
            scanned: 16_568_899_405,
            failed: 2_843_113_421,
            recent_hit: 146_021_086,
            recent_miss: 403_547_579,
            core_search: 311_781_774,
            core_miss: 95_684_672,
        },
    ];

    #[test]
    fn a_published_table_comes_out_to_every_digit() {
        let derived = COUNTED.map(|counted| {
            let summary = counted.summary();
            let printed = [
                summary.search_efficiency,
                summary.domain_efficiency,
                summary.fast_success,
                summary.success,
                summary.recent_success,
            ];
            let printed = printed.map(|percent| percent.map_or(String::new(), |percent| percent.to_string()));
            (summary.domain_scanned, summary.core_hit, summary.recent_attempts, printed)
        });
        let text = |percents: [&str; 5]| percents.map(str::to_string);
        let expected = [
            (13_580_736_097, 185_189_656, 462_408_062, text(["35.18", "24.07", "41.60", "47.38", "26.87"])),
            (14_211_606_282, 216_097_102, 549_568_665, text(["33.72", "22.72", "42.20", "49.11", "26.57"])),
        ];
        assert_eq!(derived, expected);
    }

    #[test]
    fn nothing_counted_gives_no_percentage() {
        assert_eq!(SisCounters::default().summary().success, None);
        assert_eq!((Percent(5).to_string(), Percent::of(1, 3)), ("0.05".to_string(), Some(Percent(3333))));
    }

    #[test]
    fn a_search_counts_once_and_each_cpu_it_looks_at() {
        let mut counters = SisCounters::default();
        counters.count(&IdleCpuSearch::default());
        assert_eq!(counters, SisCounters::default(), "forks do not search");
        let search = IdleCpuSearch {
            entered: true,
            domain: true,
            looked_at: 4,
            failed: true,
            ..IdleCpuSearch::default()
        };
        counters.count(&search);
        counters.count(&IdleCpuSearch { entered: true, recent: Some(true), ..IdleCpuSearch::default() });
        assert_eq!((counters.search, counters.scanned, counters.failed, counters.recent_hit), (2, 6, 1, 1));
        assert_eq!(counters.summary().domain_scanned, 5, "four, and the look at target and previous CPU");
    }
}
