//! A throttled group comes back to a CPU.
//!
//! Must not know: who distributes runtime.

use fairlab_event::Cpu;

use crate::entity::CfsRqId;
use crate::fair::bandwidth::rules::{ThrottledListing, UndecayedBranch, UpperLevels};
use crate::fair::bandwidth::{ThrottlePoint, Throttling};
use crate::fair::load_update::LoadUpdate;
use crate::group::GroupId;
use crate::rq::{DequeueFlags, EnqueueFlags, LockedRq};

impl LockedRq<'_> {
    /// The reverse, children first.
    ///
    /// Kernel: `tg_unthrottle_up()`, kernel/sched/fair.c.
    pub(crate) fn unthrottle_up(&mut self, group: GroupId, cpu: Cpu) {
        for index in (0..self.shared.groups[group.0 as usize].children.len()).rev() {
            self.unthrottle_up(self.shared.groups[group.0 as usize].children[index], cpu);
        }
        let cfs_rq = self.shared.groups[group.0 as usize].cfs_rqs[cpu.index()];
        if self.shared.generation.bandwidth.throttle_point == ThrottlePoint::Accounting {
            self.update_curr(cfs_rq);
        }
        let queue = self.cfs_mut(cfs_rq);
        queue.runtime.throttle_count -= 1;
        if queue.runtime.throttle_count == 0 {
            self.start_pelt_clock(cfs_rq);
            self.leave_limbo(cfs_rq);
            self.list_again(cfs_rq);
        }
    }

    /// Lets a throttled queue run again, if it has runtime.
    ///
    /// Kernel: `unthrottle_cfs_rq()`, kernel/sched/fair.c.
    pub(crate) fn unthrottle_cfs_rq(&mut self, cfs_rq: CfsRqId) {
        let rules = self.shared.generation.bandwidth;
        let (group, cpu) = (self.cfs(cfs_rq).group, self.cfs(cfs_rq).cpu);
        if rules.throttle_point == ThrottlePoint::Accounting {
            self.update_curr(cfs_rq);
        }
        let local = &self.cfs(cfs_rq).runtime;
        let whole = rules.throttling == Throttling::WholeQueue;
        if !whole && local.enabled && local.remaining <= 0 {
            return;
        }
        self.shared.report_throttling("unthrottle_cfs_rq", cfs_rq);
        self.cfs_mut(cfs_rq).runtime.throttled = false;
        self.update_rq_clock();
        self.shared.pool_mut(group).throttled.retain(|&waiting| waiting != cfs_rq);
        self.unthrottle_up(group, cpu);
        if self.cfs(cfs_rq).load.raw() == 0 {
            if rules.undecayed_branch == UndecayedBranch::WithAncestors && self.cfs(cfs_rq).listed {
                // Nothing to run, but something to age.
                self.list_branch(cfs_rq);
            }
            return;
        }
        if whole {
            self.put_back_on_queue(cfs_rq);
            if rules.upper_levels == UpperLevels::Told && rules.throttled_listing == ThrottledListing::Joins {
                self.list_branch(cfs_rq);
            }
        }
        if self.shared.runs_idle_task(cpu) && self.cfs(self.rq.cfs).nr_running > 0 {
            self.shared.resched_curr(cpu, "unthrottle_cfs_rq");
        }
    }

    /// A group's entity joins its queue as if it woke, and so do its groups as far as they are not queued; all above
    /// count it, up to the next that is throttled.
    pub(crate) fn put_back_on_queue(&mut self, cfs_rq: CfsRqId) {
        let had_tasks = self.has_fair_tasks();
        let mut counts = self.shared.counts(cfs_rq);
        let (mut level, mut joining) = (self.cfs(cfs_rq).entity, true);
        let wakeup = EnqueueFlags { wakeup: true, ..EnqueueFlags::default() };
        let told = match self.shared.generation.bandwidth.upper_levels {
            UpperLevels::Told => LoadUpdate::TELL,
            UpperLevels::Aged | UpperLevels::CountsOnly => LoadUpdate::AGE,
        };
        while let Some(se) = level {
            let queue = self.se(se).cfs_rq;
            if joining && self.se(se).sched_delayed {
                let flags = DequeueFlags { sleep: true, delayed: true, ..DequeueFlags::default() };
                self.dequeue_entity(queue, se, flags);
            }
            joining &= !self.se(se).on_rq;
            if joining {
                self.enqueue_entity(queue, se, wakeup);
            } else {
                self.age_level(se, told);
            }
            counts = self.shared.counts_above(se, counts);
            let above = self.cfs_mut(queue);
            above.h_nr_running += counts.tasks;
            above.h_nr_delayed += counts.delayed;
            above.h_nr_idle += counts.idle;
            if above.runtime.throttled {
                return;
            }
            level = self.se(se).parent;
        }
        if self.shared.fair_servers.watch() && !had_tasks && self.has_fair_tasks() {
            self.dl_server_start();
        }
        self.count_running(counts.tasks as i32);
    }
}
