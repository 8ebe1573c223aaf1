//! What wakeups count for `/proc/schedstat`, and what searches for idle CPUs count beside it.
//!
//! Must not know: how counters are shown, and what is derived from them.

use crate::decision::Search;
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
    pub(super) fn count(&mut self, search: &Search) {
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
