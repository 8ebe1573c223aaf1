//! What a group's entity weighs on one CPU, and what each of its queues tells the group.
//!
//! Must not know: who adds up the group's load.

use super::average::load_avg_is_decayed;
use super::queue::CfsRqLoad;
use super::rules::{PeltRules, QueueDecay, TgContribution, TgTold};

/// The least weight of a group's entity, not scaled up (`MIN_SHARES`).
pub const MIN_SHARES: i64 = 2;

/// What an entity's weight is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupLoad {
    /// The group's weight, scaled up: 1048576 for cgroup weight 100 (`tg->shares`).
    pub tg_shares: i64,
    /// What the group's queues have contributed, together (`tg->load_avg`).
    pub tg_load_avg: i64,
    /// What this queue has contributed (`tg_load_avg_contrib`).
    pub tg_load_avg_contrib: i64,
    /// Σ weight on this queue, scaled down (`scale_load_down(cfs_rq->load.weight)`).
    pub weight: i64,
    /// This queue's `load_avg`.
    pub load_avg: i64,
}

/// `clamp_t()`, for which the bounds may lie the wrong way round.
const fn clamp(value: i64, low: i64, high: i64) -> i64 {
    let raised = if value < low { low } else { value };
    if raised > high { high } else { raised }
}

/// The weight of a group's entity, scaled up: the group's, in proportion to this queue's part of the group's load.
///
/// The caller (`update_cfs_group()`) leaves the entity alone while the group is throttled (to v6.17, fcd394866e3d), if the
/// weight is the same (from v6.6), and if the queue has no weight (from v6.13, 66951e4860d3).
///
/// Kernel: `calc_group_shares()`, kernel/sched/fair.c.
pub const fn calc_group_shares(group: GroupLoad) -> i64 {
    let others = group.tg_load_avg.wrapping_sub(group.tg_load_avg_contrib);
    if others == 0 && group.weight > 0 {
        // All of it, without a division: no load is so large that the product below wraps.
        return group.tg_shares;
    }
    let load = if group.weight > group.load_avg { group.weight } else { group.load_avg };
    let tg_weight = others.wrapping_add(load);
    let product = group.tg_shares.wrapping_mul(load);
    let shares = match tg_weight {
        0 => product,
        1.. => product / tg_weight,
        _ => product.wrapping_div(tg_weight),
    };
    clamp(shares, MIN_SHARES, group.tg_shares)
}

/// The runnable weight of a group's entity, scaled up; only while runnability is load-weighted.
///
/// `shares` is from [`calc_group_shares`]; `runnable_load_avg` and `runnable_weight` (scaled down) are this queue's.
///
/// Kernel: `calc_group_runnable()`, kernel/sched/fair.c, to v5.6.
pub const fn calc_group_runnable(
    group: GroupLoad,
    runnable_load_avg: i64,
    runnable_weight: i64,
    shares: i64,
) -> i64 {
    let load_avg = if group.weight > group.load_avg { group.weight } else { group.load_avg };
    let runnable = if runnable_weight > runnable_load_avg { runnable_weight } else { runnable_load_avg };
    let product = runnable.wrapping_mul(shares);
    let share = match load_avg {
        0 => product,
        1.. => product / load_avg,
        _ => product.wrapping_div(load_avg),
    };
    clamp(share, MIN_SHARES, shares)
}

impl PeltRules {
    /// What a queue adds to its group's load now; the caller adds it to `tg->load_avg`. Not for the root group.
    ///
    /// Changes up to 1/64 of what was contributed are kept back. `now` is only used for the limit of once per ms.
    ///
    /// Kernel: `update_tg_load_avg()`, kernel/sched/fair.c. Variants: `EveryUpdate` to v6.6, `OncePerMillisecond` from v6.7
    /// (1528c661c24b). Units: `now` in ns of `sched_clock_cpu()`, from v7.2 of the runqueue's clock.
    pub const fn update_tg_load_avg(&self, now: u64, cfs_rq: &mut CfsRqLoad) -> i64 {
        const NSEC_PER_MSEC: u64 = 1_000_000;
        let limited = matches!(self.tg_contribution, TgContribution::OncePerMillisecond);
        if limited && now.wrapping_sub(cfs_rq.last_update_tg_load_avg) < NSEC_PER_MSEC {
            return 0;
        }
        let delta = cfs_rq.avg.load_avg.wrapping_sub(cfs_rq.tg_load_avg_contrib) as i64;
        let of_runnable = cfs_rq.avg.runnable_avg.wrapping_sub(cfs_rq.tg_runnable_avg_contrib) as i64;
        let both = matches!(self.tg_told, TgTold::LoadAndRunnable);
        let runnable_changed = of_runnable.unsigned_abs() > cfs_rq.tg_runnable_avg_contrib / 64;
        if delta.unsigned_abs() <= cfs_rq.tg_load_avg_contrib / 64 && !(both && runnable_changed) {
            return 0;
        }
        cfs_rq.tg_load_avg_contrib = cfs_rq.avg.load_avg;
        if both {
            cfs_rq.tg_runnable_avg_contrib = cfs_rq.avg.runnable_avg;
        }
        if limited {
            cfs_rq.last_update_tg_load_avg = now;
        }
        delta
    }

    /// The CPU goes away: what the queue contributed is taken back; the caller adds the result to `tg->load_avg`.
    ///
    /// Kernel: `clear_tg_load_avg()`, kernel/sched/fair.c (f60a631ab9ed).
    pub const fn clear_tg_load_avg(&self, now: u64, cfs_rq: &mut CfsRqLoad) -> i64 {
        let delta = (cfs_rq.tg_load_avg_contrib as i64).wrapping_neg();
        cfs_rq.tg_load_avg_contrib = 0;
        cfs_rq.last_update_tg_load_avg = now;
        delta
    }

    /// Whether a queue needs no more updates until something is queued: it has no weight and nothing left to decay.
    ///
    /// `weight` is Σ weight on it; `child_listed` says that a queue of a child group on this CPU still needs updates.
    ///
    /// Kernel: `cfs_rq_is_decayed()`, kernel/sched/fair.c. Variants: `Sums` in v4.18 to v4.20 and v5.1 (039ae8bcf7a5) to
    /// v5.12, `Never` in v5.0 (c40f7d74c741), `NoChild` from v5.13 (fdaba61ef8a2), `NoContribution` from v6.19
    /// (ca125231dd29).
    pub const fn cfs_rq_is_decayed(&self, cfs_rq: &CfsRqLoad, weight: u64, child_listed: bool) -> bool {
        let done = weight == 0 && load_avg_is_decayed(&cfs_rq.avg);
        match self.queue_decay {
            QueueDecay::Never => false,
            QueueDecay::Sums => done,
            QueueDecay::NoChild => done && !child_listed,
            QueueDecay::NoContribution => done && !child_listed && cfs_rq.tg_load_avg_contrib == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(load: (i64, i64), told: (i64, i64)) -> GroupLoad {
        let (weight, load_avg) = load;
        let (tg_load_avg, tg_load_avg_contrib) = told;
        GroupLoad { tg_shares: 1 << 20, tg_load_avg, tg_load_avg_contrib, weight, load_avg }
    }

    #[test]
    fn shares_follow_load() {
        assert_eq!(calc_group_shares(group((1024, 1024), (1024, 1024))), 1 << 20, "alone: all");
        assert_eq!(calc_group_shares(group((1024, 1024), (2048, 1024))), 1 << 19, "one of two: half");
        assert_eq!(calc_group_shares(group((1024, 0), (1024, 0))), 1 << 19, "just queued: its weight counts");
        assert_eq!(calc_group_shares(group((0, 0), (1024, 0))), MIN_SHARES, "nothing here");
        assert_eq!(calc_group_shares(group((0, 0), (0, 0))), MIN_SHARES);
        let nothing = GroupLoad { tg_shares: 0, ..group((0, 0), (0, 0)) };
        assert_eq!(calc_group_shares(nothing), 0, "a bound below the lower one wins");
    }

    #[test]
    fn runnable_shares_are_the_runnable_part() {
        let queue = group((1024, 1536), (1536, 1536));
        let shares = calc_group_shares(queue);
        assert_eq!(calc_group_runnable(queue, 768, 512, shares), shares / 2);
        assert_eq!(calc_group_runnable(queue, 1536, 1024, shares), shares);
        assert_eq!(calc_group_runnable(queue, 0, 0, shares), MIN_SHARES);
    }

    #[test]
    fn small_changes_are_kept_back() {
        let rules = PeltRules::BASE;
        let mut queue = CfsRqLoad::default();
        queue.avg.load_avg = 640;
        assert_eq!(rules.update_tg_load_avg(0, &mut queue), 640);
        queue.avg.load_avg = 650;
        assert_eq!(rules.update_tg_load_avg(0, &mut queue), 0, "10 is 640 / 64");
        queue.avg.load_avg = 629;
        assert_eq!(rules.update_tg_load_avg(0, &mut queue), -11);
        assert_eq!(queue.tg_load_avg_contrib, 629);
        queue.avg.load_avg = 0;
        assert_eq!(rules.update_tg_load_avg(0, &mut queue), -629);
    }

    #[test]
    fn a_queue_speaks_once_per_millisecond() {
        let rules = PeltRules { tg_contribution: TgContribution::OncePerMillisecond, ..PeltRules::BASE };
        let mut queue = CfsRqLoad::default();
        queue.avg.load_avg = 640;
        assert_eq!(rules.update_tg_load_avg(5_000_000, &mut queue), 640);
        queue.avg.load_avg = 100;
        assert_eq!(rules.update_tg_load_avg(5_999_999, &mut queue), 0);
        assert_eq!(rules.update_tg_load_avg(6_000_000, &mut queue), -540);
        assert_eq!(rules.clear_tg_load_avg(6_000_001, &mut queue), -100);
        assert_eq!(rules.update_tg_load_avg(7_000_000, &mut queue), 0, "clearing counts as speaking");
    }

    #[test]
    fn what_counts_as_decayed() {
        let told = CfsRqLoad { tg_load_avg_contrib: 3, ..CfsRqLoad::default() };
        let decayed = |queue_decay, child_listed| {
            PeltRules { queue_decay, ..PeltRules::BASE }.cfs_rq_is_decayed(&told, 0, child_listed)
        };
        assert!(!decayed(QueueDecay::Never, false));
        assert!(decayed(QueueDecay::Sums, true));
        assert!(decayed(QueueDecay::NoChild, false) && !decayed(QueueDecay::NoChild, true));
        assert!(!decayed(QueueDecay::NoContribution, false));
        let mut queue = CfsRqLoad::default();
        assert!(PeltRules::BASE.cfs_rq_is_decayed(&queue, 0, false));
        assert!(!PeltRules::BASE.cfs_rq_is_decayed(&queue, 15, false));
        queue.avg.runnable_sum = 1;
        assert!(!PeltRules::BASE.cfs_rq_is_decayed(&queue, 0, false));
    }
}
