//! Which queue of the busiest group tasks are taken from.
//!
//! Must not know: which tasks.

use fairlab_event::Cpu;

use crate::balance::decided::LbEnv;
use crate::balance::imbalance::{Imbalance, MigrationType};
use crate::balance::rules::{Comparison, EmptyQueue, UtilSource};
use crate::domain::SchedGroupId;
use crate::scheduler::Scheduler;

/// The busiest queue so far.
#[derive(Clone, Copy, Debug)]
struct BusiestQueue {
    cpu: Option<Cpu>,
    load: u64,
    capacity: u64,
    util: u64,
    tasks: u32,
}

impl Scheduler {
    /// The queue of a group that has the most of what is to be moved; `None` if none fits.
    ///
    /// Kernel: `find_busiest_queue()`, kernel/sched/fair.c. Variants: by load to v5.4, then by what is to be moved.
    /// Departs: no NUMA placement of tasks.
    pub(super) fn find_busiest_queue(
        &self,
        attempt: &LbEnv,
        group: SchedGroupId,
        imbalance: Imbalance,
    ) -> Option<Cpu> {
        let span = self.domains.group(group).span;
        let mut best = BusiestQueue { cpu: None, load: 0, capacity: 1, util: 0, tasks: 0 };
        for cpu in span.iter().filter(|&cpu| attempt.cpus.contains(cpu)) {
            if self.beats(attempt, imbalance, cpu, &mut best) {
                best.cpu = Some(cpu);
            }
        }
        best.cpu
    }

    fn beats(&self, attempt: &LbEnv, imbalance: Imbalance, cpu: Cpu, best: &mut BusiestQueue) -> bool {
        let rules = &self.shared.generation.balance;
        let by_types = rules.comparison == Comparison::GroupTypes;
        let tasks = self.waiting_tasks(cpu);
        if rules.empty_queue == EmptyQueue::PassedOver && tasks == 0 {
            return false;
        }
        if attempt.takes_misfit {
            let load = self.misfit_task_load(cpu);
            return replace_if_more(&mut best.load, load);
        }
        // Before 0b0695f2b34a tasks of all classes were counted.
        let alone = if by_types { tasks == 1 } else { self.nr_running(cpu) == 1 };
        if alone && (self.spares_bigger_cpu(attempt, cpu) || self.spares_preferred_cpu(attempt, cpu)) {
            return false;
        }
        match imbalance.migration {
            MigrationType::Load => {
                let (load, capacity) = (self.balanced_load(cpu), self.capacity_in(attempt, cpu));
                let stays = load as i64 > imbalance.amount
                    && !self.has_reduced_capacity(cpu, self.domain(attempt.cpu, attempt.level));
                if alone && stays {
                    return false;
                }
                let more = load * best.capacity > best.load * capacity;
                if more {
                    (best.load, best.capacity) = (load, capacity);
                }
                more
            }
            MigrationType::Util => {
                let nothing_waits = rules.util_source == UtilSource::QueueWithWaiting && tasks <= 1;
                !nothing_waits && replace_if_more(&mut best.util, self.cpu_util(cpu, true))
            }
            MigrationType::Task => {
                let more = tasks > best.tasks;
                best.tasks = best.tasks.max(tasks);
                more
            }
            MigrationType::Misfit => replace_if_more(&mut best.load, self.misfit_task_load(cpu)),
            MigrationType::LlcTask => {
                let prefer = self.tasks_that_prefer(attempt.dest, cpu);
                let more = prefer > best.tasks;
                best.tasks = best.tasks.max(prefer);
                more
            }
        }
    }
}

fn replace_if_more(most: &mut u64, value: u64) -> bool {
    let more = value > *most;
    *most = (*most).max(value);
    more
}
