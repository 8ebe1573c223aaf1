//! What a driver is told of the state, and what the scheduler asks of it.

use fairlab_event::{Cpu, Ns};

use crate::all_cpus::LineUse;
use crate::cpumask::CpuMask;
use crate::domain::SchedDomains;
use crate::generation::Generation;
use crate::schedstat::RqCounters;
use crate::scheduler::Scheduler;
use crate::task::{Task, TaskId};
use crate::topology::Topology;

impl Scheduler {
    /// The rules in force.
    #[inline]
    pub fn generation(&self) -> &Generation {
        &self.shared.generation
    }

    /// The machine.
    pub fn topology(&self) -> &Topology {
        &self.shared.topology
    }

    /// Its scheduling domains.
    pub fn domains(&self) -> &SchedDomains {
        &self.domains
    }

    /// What `cpu` counted for `/proc/schedstat`.
    pub fn counters(&self, cpu: Cpu) -> &RqCounters {
        &self.rqs[cpu.index()].counters
    }

    /// Every task, in order of creation; those that have ended, too, unless their numbers are given away again.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.shared.tasks.iter()
    }

    /// Queued tasks of all classes on `cpu`, the running one included.
    #[inline]
    pub fn nr_running(&self, cpu: Cpu) -> u32 {
        self.rqs[cpu.index()].nr_running
    }

    /// All run time accounted to `task` so far, ns.
    pub fn sum_exec_runtime(&self, task: TaskId) -> Ns {
        Ns(self.entity_of(task).sum_exec_runtime)
    }

    /// The slice that a task asked for, if it did (`custom_slice`).
    pub fn own_request(&self, task: TaskId) -> Option<Ns> {
        let entity = self.entity_of(task);
        entity.custom_slice.then_some(Ns(entity.slice))
    }

    /// Whether CPUs were marked for rescheduling since the driver last asked.
    #[inline]
    pub fn has_marked(&self) -> bool {
        !self.shared.marked.is_empty()
    }

    /// Whether timers, calls of other CPUs or frequencies wait for the driver: what `take_started_timers()`,
    /// `take_unthrottle_calls()`, `take_moved_hrticks()`, `take_hrtick_calls()` and `take_frequency_requests()` give.
    #[inline]
    pub fn asks_driver(&self) -> bool {
        self.shared.bandwidth_used
            || !self.shared.started_timers.is_empty()
            || !self.shared.hrticks_moved.is_empty()
            || !self.shared.hrtick_calls.is_empty()
            || self.shared.cpufreq.asks_driver()
    }

    /// Whether uses of lines that CPUs share are kept for [`take_line_uses`](Self::take_line_uses).
    pub fn set_line_uses(&mut self, wanted: bool) {
        self.shared.line_uses.wanted = wanted;
    }

    /// Whether there have been any since the driver last asked.
    #[inline]
    pub fn has_line_uses(&self) -> bool {
        !self.shared.line_uses.uses.is_empty()
    }

    /// Reads and writes of such lines since the last call, in order.
    pub fn take_line_uses(&mut self, into: &mut Vec<LineUse>) {
        into.append(&mut self.shared.line_uses.uses);
    }

    /// CPUs marked for rescheduling since the last call, in order of marking.
    pub fn take_marked(&mut self, into: &mut Vec<Cpu>) {
        into.append(&mut self.shared.marked);
    }

    /// Reports an event that has no type from the current place.
    #[cold]
    pub fn report_text(&mut self, name: &'static str, text: impl FnOnce() -> String) {
        self.shared.report_text(name, text);
    }

    /// The CPUs of a policy.
    pub fn cpus_of_policy(&self, policy: usize) -> CpuMask {
        self.shared.cpus_of_policy(policy)
    }

    /// Takes delayed entities that would be picked off their queues, until one would be picked that is awake, or none.
    #[inline]
    pub fn finish_delayed_dequeues(&mut self, cpu: Cpu) {
        self.rq_lock(cpu).finish_delayed_dequeues();
    }

    /// The same, until it would be the turn of a task that `stays`: for a driver that knows when the kernel did it.
    pub fn finish_delayed_dequeues_but(&mut self, cpu: Cpu, stays: impl Fn(TaskId) -> bool) {
        self.rq_lock(cpu).finish_delayed_dequeues_but(stays);
    }
}
