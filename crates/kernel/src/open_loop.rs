//! What only an open-loop driver needs: methods that set the state to that of a real kernel.
//!
//! A verifier walks a recording, asks for decisions (`&self`), and then applies what the kernel *did*. If the model decides
//! otherwise, these methods force it. A runqueue's time is then not the trace's clock but the sum of what the kernel charged:
//! [`Scheduler::charge`] takes a run time as the kernel printed it.
//!
//! Must not know: traces, and what counts as agreement.

mod averages;
mod bandwidth;
mod parameters;
mod places;
mod rest_state;
mod values;
mod views;
mod weights;

use fairlab_event::{Cpu, Ns};

use crate::core::KernelContext;
use crate::entity::{CfsRqId, SeId};
use crate::scheduler::Scheduler;
use crate::task::TaskId;
use crate::vruntime::Vruntime;

pub use crate::balance::RndState;
pub(crate) use averages::{bring_load, bring_usage};
pub use rest_state::{RestState, RestingCpu};
pub use views::{EntityView, LevelPick, QueueView};

/// An entity, a task's or a group's on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId(SeId);

impl EntityId {
    /// The number as an index.
    pub const fn index(self) -> usize {
        self.0.0 as usize
    }
}

/// A queue: one group's on one CPU, or the root's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(CfsRqId);

impl QueueId {
    /// The number as an index.
    pub const fn index(self) -> usize {
        self.0.0 as usize
    }
}

impl Scheduler {
    /// The time of a CPU's runqueue.
    pub fn rq_clock(&self, cpu: Cpu) -> Ns {
        self.rqs[cpu.index()].clock
    }

    /// Sets the time of a CPU's runqueue.
    pub fn set_rq_clock(&mut self, cpu: Cpu, clock: Ns) {
        let passed = clock.0.saturating_sub(self.rqs[cpu.index()].clock.0);
        self.rqs[cpu.index()].clock = clock;
        self.rq_lock(cpu).update_rq_clock_pelt(passed);
    }

    /// Stands on `cpu` at the time of its own runqueue, so that no step charges anything by itself.
    pub fn stand_on(&mut self, cpu: Cpu) {
        let clock = self.rq_clock(cpu);
        self.set_here(cpu, KernelContext::Task, clock);
    }

    /// Charges the running fair task of `cpu` with `runtime`, at its own level, as the kernel reported it. The queue's
    /// clock follows. Returns where that leads; `None` when no fair task runs.
    pub fn charge(&mut self, cpu: Cpu, runtime: Ns) -> Option<Vruntime> {
        let task = self.curr(cpu);
        if !self.task(task).policy.is_fair() {
            return None;
        }
        let entity = self.entity_of(task);
        let cfs_rq = entity.cfs_rq;
        self.set_rq_clock(cpu, Ns(entity.exec_start + runtime.0));
        self.queue_rq_lock(cfs_rq).update_curr(cfs_rq);
        Some(self.entity_of(task).vruntime)
    }

    /// Accounts the running task of `cpu` at every level up to `clock`. Where the runqueue's clock is ahead of that, it
    /// stays there: the accounting was some time ago.
    pub fn account_until(&mut self, cpu: Cpu, clock: Ns) {
        let ahead = Some(self.rq_clock(cpu)).filter(|&now| now > clock);
        match ahead {
            Some(_) => self.rqs[cpu.index()].clock = clock,
            None => self.set_rq_clock(cpu, clock),
        }
        self.stand_on(cpu);
        self.account(cpu);
        if let Some(now) = ahead {
            self.rqs[cpu.index()].clock = now;
        }
    }

    /// Charges the running entity of one queue up to the time of its runqueue.
    pub fn charge_queue(&mut self, queue: QueueId) {
        self.queue_rq_lock(queue.0).charge_line(queue.0);
    }

    /// Up to when the running fair task of `cpu` is charged, on the runqueue's clock.
    pub fn charged_until(&self, cpu: Cpu) -> Option<Ns> {
        let task = self.curr(cpu);
        self.task(task).policy.is_fair().then(|| Ns(self.entity_of(task).exec_start))
    }

    /// Virtual time that `task`'s weight makes of `runtime`.
    pub fn virtual_time(&self, task: TaskId, runtime: Ns) -> u64 {
        self.shared.virtual_time_of(self.task(task).se, runtime.0)
    }
}
