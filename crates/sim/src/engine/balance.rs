//! Load balancing in virtual time: who balances when, how long that keeps its CPU busy, and the stopper that pushes.
//!
//! New-idle balancing goes level by level, so that a wakeup that comes meanwhile ends it; periodic and NOHZ balancing is
//! done at the instant of its softirq and then charged as a whole.

use fairlab_event::{Comm, Cpu, Ns, Pid, TaskState};
use fairlab_kernel::balance::{BalanceWork, BlockedUpdate, NewidleSearch};
use fairlab_kernel::core::{Mode, WakeFlags};
use fairlab_kernel::schedstat::CpuIdleType;
use fairlab_kernel::{CpuMask, Policy, TaskId, TaskSpec};

use super::Engine;
use super::cpu::Then;
use super::occurrence::Interrupt;

/// Thread ids given to stoppers count from here.
const FIRST_STOPPER_PID: i32 = 500_000;

/// A search for work by a CPU that has none.
#[derive(Clone, Debug, Default)]
pub(super) struct Newidle {
    search: NewidleSearch,
    /// The level that is looked at just now, and since when.
    level: usize,
    level_began: Ns,
    /// In what state the task that leaves did so.
    prev_state: TaskState,
    began: Ns,
}

impl Engine {
    /// Every CPU's stopper sleeps until there is something to push.
    pub(super) fn create_stoppers(&mut self) {
        for cpu in self.machine.topology.cpus().collect::<Vec<_>>() {
            let (comm, pid) = (format!("migration/{}", cpu.0), Pid(FIRST_STOPPER_PID + cpu.0 as i32));
            self.create_kthread(&comm, pid, Policy::Stop, CpuMask::single(cpu), cpu);
        }
    }

    /// A kernel thread that sleeps on `cpu`.
    pub(super) fn create_kthread(
        &mut self,
        comm: &str,
        pid: Pid,
        policy: Policy,
        allowed: CpuMask,
        cpu: Cpu,
    ) -> TaskId {
        let spec = TaskSpec {
            comm: Comm::from(comm),
            pid,
            tgid: pid,
            policy,
            nice: 0,
            allowed,
            per_cpu_kthread: allowed == CpuMask::single(cpu),
        };
        let task = self.kernel.new_task(&spec, cpu);
        self.kernel.lay_asleep(task, cpu);
        task
    }

    /// A CPU's stopper: they were created in order, after the idle tasks.
    fn stopper_of(&self, cpu: Cpu) -> TaskId {
        TaskId((self.cpus.len() + cpu.index()) as u32)
    }

    /// Whether `cpu` runs its stopper.
    pub(super) fn runs_stopper(&self, cpu: Cpu) -> bool {
        self.kernel.curr(cpu) == self.stopper_of(cpu)
    }

    /// The running task has left `cpu` in `prev_state` and nothing else is queued: looks for work elsewhere.
    pub(super) fn begin_newidle(&mut self, cpu: Cpu, prev_state: TaskState) {
        let (mut search, blocked) = self.kernel.newidle_begin(cpu);
        let update = self.cost_of_update(blocked);
        self.kernel.newidle_updated(&mut search, self.time_for(cpu, update));
        self.newidle[cpu.index()] = Newidle { search, prev_state, began: self.now, ..Newidle::default() };
        self.enter_kernel(cpu, self.machine.costs.newidle + update, Then::SearchLevel);
    }

    /// Goes on to the next level, or ends the search.
    pub(super) fn search_level(&mut self, cpu: Cpu) {
        self.kernel.set_here(cpu, Mode::Task, self.now);
        let newidle = &mut self.newidle[cpu.index()];
        let Some(level) = self.kernel.newidle_next(cpu, &mut newidle.search) else {
            return self.end_newidle(cpu);
        };
        newidle.level = level;
        newidle.level_began = self.now;
        let update = self.kernel.newidle_update_stats(cpu, level);
        let span = self.kernel.domains().domains_of(cpu)[level].span_weight;
        let cost = self.cost_of_update(update) + times(self.machine.costs.balance_cpu, span);
        self.enter_kernel(cpu, cost, Then::TakeFromLevel);
    }

    /// A level has been looked at: takes what is to be taken from it.
    pub(super) fn take_from_level(&mut self, cpu: Cpu) {
        self.kernel.set_here(cpu, Mode::Task, self.now);
        let level = self.newidle[cpu.index()].level;
        self.kernel.probe_balance(cpu, level, CpuIdleType::NewlyIdle);
        let decision = self.kernel.decide_balance(cpu, level, CpuIdleType::NewlyIdle);
        self.kernel.apply_balance(&decision);
        let mut work = BalanceWork::default();
        work.add(&decision);
        work.scanned = 0;
        self.begin_pushes(&work);
        let cost = self.cost_of_balance(&work);
        let took = self.now.since(self.newidle[cpu.index()].level_began);
        let spent = took + self.time_for(cpu, cost);
        self.kernel.newidle_searched(&decision, spent, &mut self.newidle[cpu.index()].search);
        self.interrupt_marked(Some(cpu));
        self.enter_kernel(cpu, cost, Then::SearchLevel);
    }

    fn end_newidle(&mut self, cpu: Cpu) {
        let (work, kick) = self.kernel.newidle_end(cpu, &self.newidle[cpu.index()].search);
        self.send_kick(kick);
        let cost = self.cost_of_balance(&work);
        if cost == Ns::ZERO {
            self.pick_after_newidle(cpu);
        } else {
            self.enter_kernel(cpu, cost, Then::PickAgain);
        }
    }

    /// The search is over: something was pulled or woken meanwhile, or the CPU goes idle.
    pub(super) fn pick_after_newidle(&mut self, cpu: Cpu) {
        let took = self.now.since(self.newidle[cpu.index()].began);
        self.counters.newidle += 1;
        self.counters.newidle_time += took;
        self.counters.newidle_longest = self.counters.newidle_longest.max(took);
        self.kernel.set_here(cpu, Mode::Task, self.now);
        self.kernel.account(cpu);
        self.kernel.before_pick(cpu);
        let pick = self.kernel.pick_next_task(cpu);
        self.switch_to(cpu, pick.task, self.newidle[cpu.index()].prev_state);
        self.enable_interrupts(cpu);
    }

    /// The end of the tick: kicks an idle CPU, balances here if something is due. Returns what that costs.
    pub(super) fn balance_at_tick(&mut self, cpu: Cpu) -> Ns {
        let due = self.kernel.trigger_load_balance(cpu);
        self.send_kick(due.kick);
        if due.softirq { self.sched_softirq(cpu) } else { Ns::ZERO }
    }

    fn send_kick(&mut self, kick: Option<Cpu>) {
        #[cfg(test)]
        let kick = kick.filter(|_| !self.loses_kicks);
        if let Some(cpu) = kick {
            self.send(cpu, Interrupt::NohzKick);
        }
    }

    /// A busy CPU asks this idle one to balance for idle ones. Returns what that costs.
    pub(super) fn nohz_kicked(&mut self, cpu: Cpu) -> Ns {
        if self.kernel.nohz_kicked(cpu) { self.sched_softirq(cpu) } else { Ns::ZERO }
    }

    fn sched_softirq(&mut self, cpu: Cpu) -> Ns {
        self.kernel.set_here(cpu, Mode::Softirq, self.now);
        let work = self.kernel.run_rebalance_domains(cpu);
        self.begin_pushes(&work);
        self.machine.costs.softirq + self.cost_of_balance(&work)
    }

    /// The idle loop begins: blocked load of idle CPUs is aged if that was left to it, then the tick stops.
    pub(super) fn enter_idle_loop(&mut self, cpu: Cpu) {
        self.kernel.set_here(cpu, Mode::Task, self.now);
        let work = self.kernel.nohz_run_idle_balance(cpu);
        let cost = self.cost_of_balance(&work);
        if cost > Ns::ZERO {
            return self.enter_kernel(cpu, cost, Then::IdleLoop);
        }
        let expected = self.expected_idle_time(cpu);
        self.stop_or_keep_tick(cpu, expected);
        self.enter_idle(cpu);
        self.enter_idle_state(cpu, expected);
    }

    /// An idle CPU's tick stops, and it is balanced for by others; or it goes on ticking. Where idle states are known, it stops
    /// unless less than a tick's idleness is `expected`, us.
    pub(super) fn stop_or_keep_tick(&mut self, cpu: Cpu, expected: Option<u64>) {
        let state = &self.cpus[cpu.index()];
        let may_stop = || match expected {
            Some(expected) => expected >= self.tick_period.0 / 1000,
            None => self.kernel.idle_call_stops_tick(state.got_idle_tick),
        };
        if self.machine.nohz_idle && (state.tick_stopped || may_stop()) {
            self.cpus[cpu.index()].tick_stopped = true;
            self.kernel.nohz_balance_enter_idle(cpu);
        } else {
            self.arm_tick(cpu);
        }
    }

    /// Wakes the stoppers of CPUs whose running task is to be pushed.
    fn begin_pushes(&mut self, work: &BalanceWork) {
        for &source in &work.pushes {
            self.wake_stopper(source);
        }
    }

    fn wake_stopper(&mut self, cpu: Cpu) {
        let stopper = self.stopper_of(cpu);
        if !self.kernel.task(stopper).is_queued() {
            self.kernel.ttwu_begin(stopper, WakeFlags::default());
            self.kernel.ttwu_do_activate(stopper, WakeFlags::default());
        }
    }

    /// The running task of `cpu` may no longer run there: the stopper takes over and moves it (`stop_one_cpu()`).
    pub(super) fn stop_to_move(&mut self, cpu: Cpu, task: TaskId) {
        self.cpus[cpu.index()].banned = Some(task);
        self.wake_stopper(cpu);
    }

    /// The stopper has worked for as long as a move takes: the task changes its CPU, the stopper goes back to sleep.
    pub(super) fn push(&mut self, cpu: Cpu) {
        self.kernel.set_here(cpu, Mode::Task, self.now);
        if let Some(task) = self.cpus[cpu.index()].banned.take() {
            self.kernel.migration_cpu_stop(task);
        }
        self.kernel.apply_push(cpu);
        self.interrupt_marked(Some(cpu));
        self.schedule(cpu, TaskState::INTERRUPTIBLE);
    }

    fn cost_of_update(&self, update: BlockedUpdate) -> Ns {
        let costs = &self.machine.costs;
        times(costs.blocked_cpu, update.cpus) + times(costs.blocked_queue, update.queues)
    }

    fn cost_of_balance(&self, work: &BalanceWork) -> Ns {
        let costs = &self.machine.costs;
        self.cost_of_update(work.blocked)
            + times(costs.balance_cpu, work.scanned + work.looked)
            + times(costs.migrate, work.moved)
    }
}

fn times(cost: Ns, count: u32) -> Ns {
    Ns(cost.0 * u64::from(count))
}
