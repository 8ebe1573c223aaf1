//! How much of its quota a group has left, as the kernel hands it out (Documentation/scheduler/sched-bwc.rst).
//!
//! The pool is refilled each period. A CPU that has used up its slice takes another from the pool. When the group has no task
//! left there, the CPU gives back all but 1 ms.
//!
//! Must not know: tasks, groups above and below, what is throttled.

use std::collections::{BTreeSet, VecDeque};

use fairlab_event::{Cpu, GroupLimit, Ns};

/// What a CPU takes at once: `sched_cfs_bandwidth_slice_us`, which recordings do not tell, by default.
const SLICE: i64 = 5_000_000;
/// What a CPU keeps when no task of the group is there: `min_cfs_rq_runtime`.
const KEPT: i64 = 1_000_000;
/// After so long what was given back goes to CPUs that lack it, unless a refill is due by then and 2 ms more.
const SLACK_PERIOD: Ns = Ns::from_ms(5);
const NEAR_REFILL: Ns = Ns::from_ms(2);
/// A refill shows so much later at most.
const EARLIER: Ns = Ns::from_ms(1);

/// One group's quota.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    limit: GroupLimit,
    /// When it is refilled next; none while that is not known.
    refill: Option<Ns>,
    /// When what was given back is handed out.
    slack: Option<Ns>,
    pool: i64,
    /// What each CPU has left; below 0 what it owes.
    local: Vec<i64>,
    /// The charges of the period that ends now, and on which CPUs.
    recent: VecDeque<(Ns, Cpu, u64)>,
}

/// That a budget is filled, wholly or by what was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BudgetRefill {
    Refill(Ns),
    Slack(Ns),
}

impl BudgetRefill {
    pub(super) const fn at(self) -> Ns {
        match self {
            BudgetRefill::Refill(at) | BudgetRefill::Slack(at) => at,
        }
    }
}

impl Budget {
    pub(super) fn new(limit: GroupLimit) -> Budget {
        Budget { limit, refill: None, slack: None, pool: 0, local: Vec::new(), recent: VecDeque::new() }
    }

    fn local_mut(&mut self, cpu: Cpu) -> &mut i64 {
        if self.local.len() <= cpu.index() {
            self.local.resize(cpu.index() + 1, 0);
        }
        &mut self.local[cpu.index()]
    }

    /// Whether it is known how much is left.
    pub(super) const fn is_known(&self) -> bool {
        self.refill.is_some()
    }

    /// A task has run for so long; `is_throttled`: its CPU gets nothing more before the budget is filled.
    pub(super) fn charge(&mut self, cpu: Cpu, run: u64, now: Ns, is_throttled: bool) {
        self.recent.push_back((now, cpu, run));
        self.forget(now);
        let local = self.local_mut(cpu);
        *local = local.saturating_sub(i64::try_from(run).unwrap_or(i64::MAX));
        if !is_throttled {
            self.take(cpu);
        }
    }

    /// A CPU that has used up its slice takes another.
    pub(super) fn take(&mut self, cpu: Cpu) {
        let pool = self.pool;
        let local = self.local_mut(cpu);
        if *local <= 0 {
            let given = pool.min(SLICE.saturating_sub(*local));
            *local += given;
            self.pool -= given;
        }
    }

    /// Whether it is known that a CPU has nothing left and gets nothing.
    pub(super) fn is_used_up(&self, cpu: Cpu) -> bool {
        self.is_known() && self.pool <= 0 && self.local.get(cpu.index()).is_none_or(|&local| local <= 0)
    }

    /// No task of the group is on a CPU any more; `waits`: others wait for what it has left.
    pub(super) fn give_back(&mut self, cpu: Cpu, now: Ns, waits: bool) {
        let local = self.local_mut(cpu);
        let given = (*local - KEPT).max(0);
        *local -= given;
        self.pool += given;
        let Some(refill) = self.refill else { return };
        let at = now.saturating_add(SLACK_PERIOD);
        if given > 0 && waits && self.pool > SLICE && at.saturating_add(NEAR_REFILL) < refill {
            self.slack.get_or_insert(at);
        }
    }

    /// What fills it next.
    pub(super) fn next(&self) -> Option<BudgetRefill> {
        let refill = self.refill?;
        Some(match self.slack {
            Some(slack) if slack < refill => BudgetRefill::Slack(slack),
            _ => BudgetRefill::Refill(refill),
        })
    }

    /// Fills it, and pays what throttled CPUs owe, one after the other. Returns those that may run again.
    /// `expires`: what CPUs have of an earlier period is void.
    pub(super) fn fill(&mut self, by: BudgetRefill, throttled: &[Cpu], expires: bool) -> Vec<Cpu> {
        self.slack = None;
        if matches!(by, BudgetRefill::Slack(_)) && self.pool <= SLICE {
            return Vec::new();
        }
        if let BudgetRefill::Refill(at) = by {
            self.refill = Some(at.saturating_add(self.limit.period));
            let most = signed(self.limit.quota).saturating_add(signed(self.limit.burst));
            self.pool = self.pool.saturating_add(signed(self.limit.quota)).min(most);
            if expires {
                self.local.iter_mut().for_each(|local| *local = (*local).min(0));
            }
        }
        let mut back = Vec::new();
        for &cpu in throttled {
            let pool = self.pool;
            let local = self.local_mut(cpu);
            let given = pool.min(1_i64.saturating_sub(*local)).max(0);
            *local += given;
            if *local > 0 {
                back.push(cpu);
            }
            self.pool -= given;
        }
        back
    }

    /// It was filled at `at`, as what ran then shows: periods begin there.
    pub(super) fn is_filled_at(&mut self, at: Ns) {
        self.refill = Some(at.saturating_add(self.limit.period));
        self.slack = None;
        let debt = signed(Ns(self.used())).saturating_sub(signed(self.limit.quota)).max(0);
        self.local.iter_mut().for_each(|local| *local = 0);
        self.pool = signed(self.limit.quota).saturating_sub(debt).max(0);
    }

    /// The beginning of periods as it shows now is a bit off from what was known.
    pub(super) fn was_refilled_at(&mut self, at: Ns) {
        self.refill = Some(at.saturating_add(self.limit.period));
    }

    /// It is not known any more how much is left.
    pub(super) fn doubt(&mut self) {
        (self.refill, self.slack) = (None, None);
    }

    /// What ran lately is not known either.
    pub(super) fn forget_all(&mut self) {
        self.doubt();
        self.recent.clear();
    }

    /// How long tasks ran within the latest period's length.
    fn used(&self) -> u64 {
        self.recent.iter().fold(0, |sum, (_, _, run)| sum.saturating_add(*run))
    }

    /// Whether the last period's use is so large that nothing can be left, except what other CPUs hold.
    pub(super) fn has_reached(&mut self, now: Ns) -> bool {
        self.forget(now);
        let cpus: BTreeSet<Cpu> = self.recent.iter().map(|(_, cpu, _)| *cpu).collect();
        let held = (cpus.len() as u64).saturating_sub(1).saturating_mul(SLICE as u64);
        let least = self.limit.quota.0.saturating_sub(held.min(self.limit.quota.0 / 2));
        self.used() >= least.max(1)
    }

    fn forget(&mut self, now: Ns) {
        while let Some((at, ..)) = self.recent.front()
            && now.since(*at) > self.limit.period.saturating_add(EARLIER)
        {
            self.recent.pop_front();
        }
    }
}

fn signed(time: Ns) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}
