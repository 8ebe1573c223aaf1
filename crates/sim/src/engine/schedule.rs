//! `__schedule()` in virtual time: leave, look for work, switch, go on.

use fairlab_event::{Cpu, Ns, TaskState};
use fairlab_kernel::TaskId;
use fairlab_kernel::core::Mode;
use fairlab_kernel::decision::PickReason;

use super::cpu::{Phase, Then};
use super::{Engine, PREEMPTED_AT_USER_RETURN};

impl Engine {
    /// The running task of `cpu` leaves or is passed over; in which state, the switch will report.
    pub(super) fn schedule(&mut self, cpu: Cpu, prev_state: TaskState) {
        self.kernel.set_here(cpu, Mode::Task, self.now);
        self.kernel.account(cpu);
        self.kernel.before_pick(cpu);
        let pick = self.kernel.pick_next_task(cpu);
        let runs_out_of_work = pick.reason == PickReason::Nothing && !self.kernel.runs_idle_task(cpu);
        if runs_out_of_work {
            let search = if self.kernel.is_overloaded() { self.search_cost(cpu) } else { Ns::ZERO };
            self.enter_kernel(cpu, self.machine.costs.newidle + search, Then::PullOrIdle(prev_state));
        } else {
            self.switch_to(cpu, pick.task, prev_state);
        }
    }

    fn search_cost(&self, cpu: Cpu) -> Ns {
        let others = self.machine.topology.llc_size(cpu) as u64 - 1;
        Ns(others * self.machine.costs.balance_cpu.0)
    }

    /// New-idle balancing has looked around: it pulls a task if nothing was woken here meanwhile, and the pick follows.
    pub(super) fn pull_or_idle(&mut self, cpu: Cpu, prev_state: TaskState) {
        self.kernel.set_here(cpu, Mode::Task, self.now);
        let may_pull = self.kernel.nr_running(cpu) == 0 && self.kernel.is_overloaded();
        if let Some(task) = may_pull.then(|| self.kernel.newidle_balance(cpu).task).flatten() {
            self.kernel.move_queued_task(task, cpu);
        }
        self.kernel.before_pick(cpu);
        let pick = self.kernel.pick_next_task(cpu);
        self.switch_to(cpu, pick.task, prev_state);
        self.enable_interrupts(cpu);
    }

    fn switch_to(&mut self, cpu: Cpu, next: TaskId, prev_state: TaskState) {
        let changed = self.kernel.context_switch(cpu, next, prev_state);
        self.interrupt_marked(Some(cpu));
        let cost = if changed { self.machine.costs.context_switch } else { Ns::ZERO };
        self.counters.switches += u64::from(changed);
        if !self.kernel.runs_idle_task(cpu) {
            self.arm_tick(cpu);
        }
        self.enter_kernel(cpu, cost, Then::EnterTask);
    }

    /// The switch is over.
    pub(super) fn enter_task(&mut self, cpu: Cpu) {
        if self.kernel.need_resched(cpu) {
            self.schedule(cpu, PREEMPTED_AT_USER_RETURN);
        } else if self.kernel.runs_idle_task(cpu) {
            self.enter_phase(cpu, Phase::Idle, Ns::MAX);
        } else {
            self.return_to_user(cpu);
        }
    }
}
