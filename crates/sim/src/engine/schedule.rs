//! `__schedule()` in virtual time: leave, look for work, switch, go on.

use fairlab_event::{Cpu, Ns, TaskState};
use fairlab_kernel::TaskId;
use fairlab_kernel::core::Mode;
use fairlab_kernel::decision::PickReason;

use super::cpu::Then;
use super::{Engine, PREEMPTED_AT_USER_RETURN};

impl Engine {
    /// The running task of `cpu` sleeps or is passed over, as `prev_state` says.
    pub(super) fn schedule(&mut self, cpu: Cpu, prev_state: TaskState) {
        self.kernel.set_here(cpu, Mode::Task, self.now);
        self.kernel.begin_schedule(cpu, prev_state);
        self.pick_next(cpu, prev_state);
    }

    /// The running task of `cpu` has left its queue if it leaves; in which state, the switch will report.
    pub(super) fn pick_next(&mut self, cpu: Cpu, prev_state: TaskState) {
        self.kernel.before_pick(cpu);
        let pick = self.kernel.pick_next_task(cpu);
        let runs_out_of_work = pick.reason == PickReason::Nothing && !self.kernel.runs_idle_task(cpu);
        if runs_out_of_work {
            self.begin_newidle(cpu, prev_state);
        } else {
            self.switch_to(cpu, pick.task, prev_state);
        }
    }

    pub(super) fn switch_to(&mut self, cpu: Cpu, next: TaskId, prev_state: TaskState) {
        let changed = self.kernel.context_switch(cpu, next, prev_state);
        self.interrupt_marked(Some(cpu));
        let cost = if changed { self.machine.costs.context_switch } else { Ns::ZERO };
        self.counters.switches += u64::from(changed);
        if !self.kernel.runs_idle_task(cpu) {
            self.arm_tick(cpu);
        } else if changed {
            self.cpus[cpu.index()].begin_to_idle();
        }
        self.enter_kernel(cpu, cost, Then::EnterTask);
    }

    /// The switch is over.
    #[inline(always)]
    pub(super) fn enter_task(&mut self, cpu: Cpu) {
        if self.kernel.need_resched(cpu) {
            self.schedule(cpu, PREEMPTED_AT_USER_RETURN);
        } else if self.kernel.runs_idle_task(cpu) {
            self.enter_idle_loop(cpu);
        } else if self.runs_stopper(cpu) {
            self.enter_kernel(cpu, self.machine.costs.migrate, Then::Push);
        } else if let Some(number) = self.governor_on(cpu) {
            self.begin_setting_frequency(cpu, number);
        } else if self.runs_kworker(cpu) {
            self.begin_background_work(cpu);
        } else {
            self.return_to_user(cpu);
        }
    }
}
