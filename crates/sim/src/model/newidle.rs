//! New-idle balancing in virtual time: level by level, so that a wakeup that comes meanwhile ends it.

use fairlab_event::{Cpu, Ns, TaskState};
use fairlab_kernel::CpuMask;
use fairlab_kernel::balance::{BalanceWork, NewidleSearch};
use fairlab_kernel::decision::PickReason;
use fairlab_kernel::schedstat::CpuIdleType;
use fairlab_kernel::work_events::SchedulerWork;

use super::balance::times;
use super::{Model, ModelMessage};
use crate::scheduler_core::ScheduleProgress;

/// A search for work by a CPU that has none.
#[derive(Clone, Debug, Default)]
pub(super) struct Newidle {
    search: NewidleSearch,
    next: NewidleStep,
    /// The level that is looked at just now, and since when.
    level: usize,
    level_began: Ns,
    /// In what state the task that leaves did so.
    prev_state: TaskState,
    began: Ns,
}

/// What follows when the CPU has been busy for as long as it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum NewidleStep {
    /// The next level of domains is searched.
    #[default]
    Search,
    /// A level has been looked at: something may be taken from it.
    Take,
    /// The search for work is over: the pick follows.
    Pick,
}

impl Model {
    /// The running task has left `cpu` in `prev_state` and nothing else is queued: looks for work elsewhere.
    pub(super) fn begin_newidle(&mut self, cpu: Cpu, prev_state: TaskState) -> ScheduleProgress {
        let (mut search, blocked) = self.scheduler.newidle_begin(cpu);
        let update = self.cost_of_update(blocked);
        self.scheduler.newidle_updated(&mut search, self.time_for(cpu, update));
        self.newidle[cpu.index()] = Newidle { search, prev_state, began: self.now, ..Newidle::default() };
        self.tell_ageing(SchedulerWork::NewidleAgeing, blocked);
        self.scheduler.tell_work(SchedulerWork::Newidle, 0, self.costs.newidle);
        self.busy_until(cpu, self.costs.newidle + update, NewidleStep::Search)
    }

    pub(super) fn go_on_with_newidle(&mut self, cpu: Cpu) -> ScheduleProgress {
        match self.newidle[cpu.index()].next {
            NewidleStep::Search => self.search_level(cpu),
            NewidleStep::Take => self.take_from_level(cpu),
            NewidleStep::Pick => self.pick_after_newidle(cpu),
        }
    }

    fn busy_until(&mut self, cpu: Cpu, took: Ns, next: NewidleStep) -> ScheduleProgress {
        self.newidle[cpu.index()].next = next;
        ScheduleProgress::Busy(took)
    }

    /// Goes on to the next level, or ends the search.
    fn search_level(&mut self, cpu: Cpu) -> ScheduleProgress {
        let newidle = &mut self.newidle[cpu.index()];
        let Some(level) = self.scheduler.newidle_next(cpu, &mut newidle.search) else {
            return self.end_newidle(cpu);
        };
        newidle.level = level;
        newidle.level_began = self.now;
        let update = self.scheduler.newidle_update_stats(cpu, level);
        let span = self.scheduler.domains().domains_of(cpu)[level].span_weight;
        let looks = times(self.costs.balance_cpu, span) + self.far_looks(cpu, level);
        self.tell_ageing(SchedulerWork::NewidleAgeing, update);
        self.scheduler.tell_work(SchedulerWork::Newidle, u64::from(span), looks);
        self.busy_until(cpu, self.cost_of_update(update) + looks, NewidleStep::Take)
    }

    /// What looking at a level's runqueues takes because other cores have written them: a line each, where the machine says what
    /// that takes.
    ///
    /// Departs: kernels from sources are charged alike for every CPU that they look at.
    fn far_looks(&self, cpu: Cpu, level: usize) -> Ns {
        if !self.sharing.has_lines() {
            return Ns::ZERO;
        }
        let topology = self.scheduler.topology();
        let span = &self.scheduler.domains().domains_of(cpu)[level].span;
        let reach = [
            CpuMask::single(cpu),
            *topology.smt_mask(cpu),
            *topology.cluster_mask(cpu),
            *topology.llc_mask(cpu),
            *topology.node_mask(cpu),
            *span,
        ];
        let within = reach.map(|mask| span.and(&mask).weight() as u64);
        let farther = within.windows(2).map(|pair| pair[1] - pair[0]);
        Ns(farther.zip(self.sharing.lines()).map(|(cpus, line)| cpus * line).sum())
    }

    /// A level has been looked at: takes what is to be taken from it.
    fn take_from_level(&mut self, cpu: Cpu) -> ScheduleProgress {
        let level = self.newidle[cpu.index()].level;
        let decision = self.scheduler.decide_balance(cpu, level, CpuIdleType::NewlyIdle);
        self.scheduler.apply_balance(&decision);
        let mut work = BalanceWork::default();
        work.add(&decision);
        work.scanned = 0;
        self.begin_pushes(&work);
        self.tell_looks(SchedulerWork::Newidle, &work);
        let cost = self.cost_of_balance(&work);
        let took = self.now.since(self.newidle[cpu.index()].level_began);
        let spent = took + self.time_for(cpu, cost);
        self.scheduler.newidle_searched(&decision, spent, &mut self.newidle[cpu.index()].search);
        self.busy_until(cpu, cost, NewidleStep::Search)
    }

    fn end_newidle(&mut self, cpu: Cpu) -> ScheduleProgress {
        let (work, kick) = self.scheduler.newidle_end(cpu, &self.newidle[cpu.index()].search);
        self.kick(kick);
        self.tell_ageing(SchedulerWork::NewidleAgeing, work.blocked);
        self.tell_looks(SchedulerWork::Newidle, &work);
        let took = self.cost_of_balance(&work);
        if took == Ns::ZERO {
            self.pick_after_newidle(cpu)
        } else {
            self.busy_until(cpu, took, NewidleStep::Pick)
        }
    }

    /// The search is over: something was pulled or woken meanwhile, or the CPU goes idle.
    fn pick_after_newidle(&mut self, cpu: Cpu) -> ScheduleProgress {
        self.scheduler.account(cpu);
        self.scheduler.before_pick(cpu);
        let pick = self.scheduler.pick_next_task(cpu);
        let Newidle { prev_state, began, search, .. } = self.newidle[cpu.index()];
        // What was pulled slept on its queue (delayed dequeue), or is throttled, and is gone.
        let in_vain = pick.reason == PickReason::Nothing && search.pulled > 0;
        if in_vain && !self.scheduler.searches_before_pick(cpu) {
            let progress = self.begin_newidle(cpu, prev_state);
            self.newidle[cpu.index()].began = began;
            return progress;
        }
        if in_vain {
            self.scheduler.newidle_was_in_vain(cpu);
        }
        let changed = self.scheduler.context_switch(cpu, pick.task, prev_state);
        ScheduleProgress::Switched { changed, took: Ns::ZERO, searched: Some(self.now.since(began)) }
    }

    pub(super) fn kick(&mut self, kick: Option<Cpu>) {
        #[cfg(test)]
        let kick = kick.filter(|_| !self.loses_kicks);
        if let Some(cpu) = kick {
            self.interrupt(cpu, ModelMessage::NohzKick);
        }
    }
}
