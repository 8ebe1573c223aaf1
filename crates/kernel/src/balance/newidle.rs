//! New-idle balancing: a CPU that runs out of work searches its domains, from the lowest, for as long as it expects to idle.
//!
//! The driver goes through it step by step, so that time can pass in between: [`Scheduler::newidle_begin`], for each level
//! [`Scheduler::newidle_next`], a decision, [`Scheduler::newidle_searched`], at last [`Scheduler::newidle_end`].
//!
//! Must not know: how long a step takes.

#[cfg(test)]
pub(super) mod tests;

use fairlab_event::{Cpu, Ns};

use crate::all_cpus::SharedLine;
use crate::balance::blocked::BlockedUpdate;
use crate::balance::decided::BalanceDecision;
use crate::balance::periodic::BalanceWork;
use crate::balance::rules::{
    CostBump, CostDecay, NewidleChance, NewidleClock, NewidleCost, NewidleGate, NewidleNext, NewidleStats,
    PendingWakeup,
};
use crate::domain::SdFlags;
use crate::generation::Feature;
use crate::schedstat::CpuIdleType;
use crate::scheduler::Scheduler;

/// How far a search has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewidleSearch {
    /// The level that is looked at next.
    level: usize,
    /// What the levels so far have cost, ns.
    curr_cost: u64,
    /// What the update of blocked load before the first level has cost, ns.
    update_cost: u64,
    /// Tick at which some level is due.
    next_balance: u64,
    /// Tasks that were pulled.
    pub pulled: u32,
    /// Whether levels are searched at all.
    pub searches: bool,
    /// A wakeup is on its way: nothing is done.
    pub is_woken: bool,
    /// What a success at this level counts.
    weight: u32,
}

impl PendingWakeup {
    /// Whether a wakeup on its way ends new-idle balancing before it begins.
    pub(crate) fn ends_before(self) -> bool {
        matches!(self, PendingWakeup::EndsBeforeAndBetween | PendingWakeup::EndsEverywhere)
    }
}

impl Scheduler {
    /// `cpu` has run out of work. Blocked load is aged if it searches.
    ///
    /// Kernel: `newidle_balance()` (v6.10: `sched_balance_newidle()`) up to its loop, kernel/sched/fair.c.
    pub fn newidle_begin(&mut self, cpu: Cpu) -> (NewidleSearch, BlockedUpdate) {
        let mut search = NewidleSearch {
            next_balance: self.shared.jiffies() + self.ticks_per_second(),
            ..NewidleSearch::default()
        };
        if self.shared.generation.balance.pending_wakeup.ends_before()
            && self.rqs[cpu.index()].ttwu_pending > 0
        {
            search.is_woken = true;
            return (search, BlockedUpdate::default());
        }
        self.note_idle_begins(cpu);
        self.shared.note_line(SharedLine::Overload, false);
        search.searches = self.newidle_searches(cpu);
        if search.searches {
            let update = match self.shared.generation.balance.newidle_clock {
                NewidleClock::SetAnew => self.update_blocked_averages(cpu),
                NewidleClock::AsItStands => self.age_blocked_averages(cpu),
            };
            return (search, update);
        }
        if self.nr_domains(cpu) > 0 {
            self.update_next_balance(cpu, 0, &mut search);
        }
        (search, BlockedUpdate::default())
    }

    /// Whether searching is worth the while. Pure.
    pub(super) fn newidle_searches(&self, cpu: Cpu) -> bool {
        let Some(lowest) = self.domains.domains_of(cpu).first().map(|sd| sd.balance) else { return false };
        let avg_idle = self.avg_idle(cpu);
        let enough = match self.shared.generation.balance.newidle_gate {
            NewidleGate::MigrationCost => avg_idle >= self.shared.sysctl.migration_cost,
            NewidleGate::MigrationAndDomainCost => {
                avg_idle >= self.shared.sysctl.migration_cost && avg_idle >= lowest.max_newidle_lb_cost
            }
            NewidleGate::DomainCost => avg_idle >= lowest.max_newidle_lb_cost,
        };
        enough && self.shared.overloaded
    }

    /// What the update of blocked load has cost.
    pub fn newidle_updated(&mut self, search: &mut NewidleSearch, cost: Ns) {
        if self.shared.generation.balance.newidle_cost == NewidleCost::SearchAndUpdate {
            search.update_cost = cost.0;
        }
    }

    /// The next level that is to be searched; `None` when the search is over.
    pub fn newidle_next(&mut self, cpu: Cpu, search: &mut NewidleSearch) -> Option<usize> {
        let rules = self.shared.generation.balance;
        while search.searches && search.level < self.nr_domains(cpu) {
            let level = search.level;
            let cost = self.domain_state(cpu, level).max_newidle_lb_cost;
            let given_up = self.avg_idle(cpu) < search.curr_cost + cost;
            if rules.newidle_next == NewidleNext::Before || given_up {
                self.update_next_balance(cpu, level, search);
            }
            if given_up {
                search.searches = false;
                return None;
            }
            search.level += 1;
            if self.domain(cpu, level).flags.has(SdFlags::BALANCE_NEWIDLE) {
                if self.is_tried(cpu, level, search) {
                    return Some(level);
                }
                continue;
            }
            self.leave_level(cpu, level, true, search);
        }
        None
    }

    /// Whether a level is searched this time, by chance (33cf66d88306).
    fn is_tried(&mut self, cpu: Cpu, level: usize, search: &mut NewidleSearch) -> bool {
        search.weight = 1;
        let rule = self.shared.generation.balance.newidle_chance;
        let ratio = self.domain_state(cpu, level).newidle_ratio;
        let certain = rule == NewidleChance::BySuccessAndRate && ratio >= 1024;
        if rule == NewidleChance::Always || !self.has(Feature::NiRandom) || certain {
            return true;
        }
        let weight = 1 + ratio;
        if self.sched_rng(cpu) % 1024 > weight {
            self.update_newidle_stats(cpu, level, 0);
            return false;
        }
        search.weight = (1024 + weight / 2) / weight;
        true
    }

    /// A pseudo-random number.
    ///
    /// Kernel: `sched_rng()`, kernel/sched/sched.h.
    fn sched_rng(&mut self, cpu: Cpu) -> u32 {
        self.balance.cpus[cpu.index()].rnd_state.next_u32()
    }

    /// Ages the blocked load of the idle CPUs that a level's search is going to look at (to v5.12).
    ///
    /// Kernel: `update_sd_lb_stats()` with LBF_NOHZ_STATS, kernel/sched/fair.c.
    pub fn newidle_update_stats(&mut self, cpu: Cpu, level: usize) -> BlockedUpdate {
        let mut update = BlockedUpdate::default();
        let rules = &self.shared.generation.balance;
        if rules.newidle_stats == NewidleStats::LeftAsTheyAre || !self.balance.nohz.has_blocked {
            return update;
        }
        let span = self.domain(cpu, level).span;
        let mut again = false;
        for other in span.iter() {
            again |= self.update_nohz_stats(other, false, &mut update);
        }
        if again && span.contains_all(&self.balance.nohz.idle_cpus) {
            self.balance.nohz.next_blocked = self.shared.jiffies() + self.msecs_to_jiffies(32);
        }
        update
    }

    /// A level was searched, which took `cost`, and the decision was applied.
    pub fn newidle_searched(&mut self, decision: &BalanceDecision, cost: Ns, search: &mut NewidleSearch) {
        let (cpu, level) = (decision.cpu, decision.level);
        let moved = decision.moved();
        let spent = cost.0 + std::mem::take(&mut search.update_cost);
        search.curr_cost += spent;
        search.pulled += moved;
        let mut remembered = spent;
        let bumps = self.shared.generation.balance.cost_bump == CostBump::HalfMore;
        if bumps && moved == 0 {
            remembered = 3 * self.domain_state(cpu, level).max_newidle_lb_cost / 2;
        }
        if bumps {
            remembered = remembered.min(self.shared.sysctl.migration_cost + 200);
        }
        self.update_newidle_cost(cpu, level, remembered, if moved > 0 { search.weight } else { 0 });
        self.leave_level(cpu, level, decision.continues, search);
    }

    /// Whether the next level follows.
    fn leave_level(&mut self, cpu: Cpu, level: usize, continues: bool, search: &mut NewidleSearch) {
        let rules = self.shared.generation.balance;
        if rules.newidle_next == NewidleNext::WhenGivenUpOrDone {
            self.update_next_balance(cpu, level, search);
        }
        let rq = &self.rqs[cpu.index()];
        let pending = rules.pending_wakeup != PendingWakeup::NotSeen && rq.ttwu_pending > 0;
        if search.pulled > 0 || rq.nr_running > 0 || pending || !continues {
            search.searches = false;
        }
    }

    /// The search is over. Returns what was done for idle CPUs, and one that is to be kicked.
    pub fn newidle_end(&mut self, cpu: Cpu, search: &NewidleSearch) -> (BalanceWork, Option<Cpu>) {
        let mut work = BalanceWork::default();
        if search.is_woken {
            return (work, None);
        }
        let cost = self.max_idle_balance_cost(cpu).max(search.curr_cost);
        self.set_max_idle_balance_cost(cpu, cost);
        let state = &mut self.balance.cpus[cpu.index()];
        state.next_balance = state.next_balance.min(search.next_balance);
        let stays_busy = search.pulled > 0 || self.nr_running(cpu) > 0;
        if stays_busy {
            self.note_idle_prevented(cpu);
        }
        let asks = match self.shared.generation.balance.newidle_update {
            super::rules::NewidleUpdate::WhileLeaving => search.level == 0 && search.curr_cost == 0,
            _ => !stays_busy,
        };
        let kick = if asks { self.nohz_newidle_balance(cpu, &mut work) } else { None };
        (work, kick)
    }

    /// Pulls the time of the next balance forward to when a level is due (`update_next_balance()`).
    fn update_next_balance(&self, cpu: Cpu, level: usize, search: &mut NewidleSearch) {
        let interval = self.get_sd_balance_interval(cpu, level, false);
        let due = self.domain_state(cpu, level).last_balance + interval;
        search.next_balance = search.next_balance.min(due);
    }

    /// Remembers what a search has cost, and lets a maximum of long ago decay. Returns whether it decayed.
    ///
    /// Kernel: `update_newidle_cost()`, kernel/sched/fair.c.
    fn update_newidle_cost(&mut self, cpu: Cpu, level: usize, cost: u64, success: u32) -> bool {
        if cost > 0 && self.shared.generation.balance.newidle_chance != NewidleChance::Always {
            self.update_newidle_stats(cpu, level, success);
        }
        let (jiffies, second) = (self.shared.jiffies(), self.ticks_per_second());
        let waits = self.shared.generation.balance.cost_decay == CostDecay::AfterQuietSecond;
        let state = self.domain_state_mut(cpu, level);
        if cost > state.max_newidle_lb_cost {
            state.max_newidle_lb_cost = cost;
            if waits {
                state.decay_max_lb_cost = jiffies;
            }
        } else if waits && jiffies > state.decay_max_lb_cost + second {
            state.max_newidle_lb_cost = state.max_newidle_lb_cost * 253 / 256;
            state.decay_max_lb_cost = jiffies;
            return true;
        }
        false
    }

    /// The decay of that cost in periodic balancing. Returns whether the CPU's own bound is to follow.
    pub(super) fn decay_newidle_cost(&mut self, cpu: Cpu, level: usize, decayed: bool) -> bool {
        if self.shared.generation.balance.cost_decay == CostDecay::AfterQuietSecond {
            return self.update_newidle_cost(cpu, level, 0, 0);
        }
        let (jiffies, second) = (self.shared.jiffies(), self.ticks_per_second());
        let state = self.domain_state_mut(cpu, level);
        if jiffies <= state.decay_max_lb_cost {
            return decayed;
        }
        state.max_newidle_lb_cost = state.max_newidle_lb_cost * 253 / 256;
        state.decay_max_lb_cost = jiffies + second;
        true
    }

    /// Counts a call, and every 1024 calls estimates again how often they succeed.
    ///
    /// Kernel: `update_newidle_stats()`, kernel/sched/fair.c (33cf66d88306, 9fe89f022c05).
    fn update_newidle_stats(&mut self, cpu: Cpu, level: usize, success: u32) {
        let by_rate = self.shared.generation.balance.newidle_chance == NewidleChance::BySuccessAndRate;
        let (now, rate) = (self.shared.trace.now.0, self.has(Feature::NiRate));
        let state = self.domain_state_mut(cpu, level);
        state.newidle_call += 1;
        state.newidle_success += success;
        if state.newidle_call < 1024 {
            return;
        }
        let mut ratio = state.newidle_success;
        if by_rate {
            let passed = now.wrapping_sub(std::mem::replace(&mut state.newidle_stamp, now)) as i64;
            let rare = if rate { (passed.max(0) >> 22).min(1024) as u32 } else { 0 };
            ratio = (ratio + rare).min(1024);
        }
        state.newidle_ratio = ratio;
        state.newidle_call /= 2;
        state.newidle_success /= 2;
    }

    /// To v5.12 a balance for an idle CPU pulls the time of the next kick forward.
    pub(super) fn pull_next_kick_forward(&mut self, idle: CpuIdleType, next_balance: u64) {
        let to_v5_12 = self.shared.generation.balance.ilb_order == super::rules::IlbOrder::FromFirst;
        if to_v5_12 && idle == CpuIdleType::Idle {
            let nohz = &mut self.balance.nohz;
            nohz.next_balance = nohz.next_balance.min(next_balance);
        }
    }
}
