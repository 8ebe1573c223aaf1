//! A bench for tests of single rules: one scheduler, time moved by hand, nothing costs anything.

use fairlab_event::{Comm, Cpu, Event, EventKind, Ns, Pid, TaskState, sink_fn};

use crate::core::{Mode, Scheduler, WakeKind, WakeStart};
use crate::cpumask::CpuMask;
use crate::decision::{CpuDecision, PickDecision, TickDecision};
use crate::entity::SchedEntity;
use crate::task::{Policy, TaskId, TaskSpec};
use crate::topology::{SmtNumbering, Topology};
use crate::vruntime::Vruntime;

/// One millisecond.
pub const MS: u64 = 1_000_000;

/// The scheduler and the hand that moves time.
pub struct Bed {
    pub scheduler: Scheduler,
    now: Ns,
    next_pid: i32,
}

impl Bed {
    /// `cores` cores of `threads` threads under one cache, HZ 1000.
    pub fn new(kernel: &str, cores: u32, threads: u32) -> Bed {
        let topology = Topology::regular(1, 1, cores, threads, SmtNumbering::Adjacent).expect("a machine");
        let kernel = kernel.parse().expect("a kernel");
        let mut scheduler = Scheduler::new(kernel, topology, Ns::from_ms(1));
        scheduler.set_tracing(true);
        Bed { scheduler, now: Ns::ZERO, next_pid: 100 }
    }

    fn here(&mut self, cpu: u32) -> Cpu {
        self.scheduler.set_here(Cpu(cpu), Mode::Task, self.now);
        Cpu(cpu)
    }

    /// Creates a task and queues it on `cpu`; it runs at once if the CPU was idle.
    pub fn spawn(&mut self, nice: i32, cpu: u32) -> TaskId {
        self.spawn_with(nice, cpu, Policy::Normal, CpuMask::ALL)
    }

    pub fn spawn_with(&mut self, nice: i32, cpu: u32, policy: Policy, allowed: CpuMask) -> TaskId {
        // The queue's minimum moves only when time passes.
        self.pass(1);
        let here = self.here(cpu);
        let pid = Pid(self.next_pid);
        self.next_pid += 1;
        let comm = Comm::from("task");
        let spec = TaskSpec { comm, pid, tgid: pid, policy, nice, allowed, per_cpu_kthread: false };
        let task = self.scheduler.new_task(&spec, here);
        self.scheduler.fork(task);
        self.scheduler.wake_up_new_task(task, here);
        if self.scheduler.runs_idle_task(here) {
            self.schedule(cpu);
        }
        task
    }

    /// Lets `ns` pass; whoever runs, runs.
    pub fn pass(&mut self, ns: u64) {
        self.now += Ns(ns);
    }

    /// Picks and switches on `cpu`.
    pub fn schedule(&mut self, cpu: u32) -> PickDecision {
        let here = self.here(cpu);
        self.scheduler.account(here);
        let pick = self.scheduler.pick_next_task(here);
        self.scheduler.context_switch(here, pick.task, TaskState::RUNNABLE);
        pick
    }

    /// The running task of `cpu` goes to sleep and the next one runs.
    pub fn sleep(&mut self, cpu: u32) -> TaskId {
        let here = self.here(cpu);
        let task = self.scheduler.curr(here);
        self.scheduler.deactivate_task(here, TaskState::INTERRUPTIBLE);
        self.schedule(cpu);
        task
    }

    /// Wakes `task` where it slept, from `cpu`. Returns whether a reschedule is pending there then.
    pub fn wake(&mut self, task: TaskId, cpu: u32) -> bool {
        self.here(cpu);
        assert_eq!(self.scheduler.ttwu_begin(task), WakeStart::Slept);
        self.scheduler.ttwu_do_activate(task, false);
        self.scheduler.need_resched(self.scheduler.task(task).cpu())
    }

    /// Where `task` would be woken by `cpu`'s running task.
    pub fn select(&mut self, task: TaskId, cpu: u32, sync: bool) -> CpuDecision {
        let here = self.here(cpu);
        self.scheduler.select_task_rq(task, here, WakeKind::Wakeup { sync })
    }

    pub fn tick(&mut self, cpu: u32) -> TickDecision {
        let here = self.here(cpu);
        self.scheduler.scheduler_tick(here)
    }

    /// Ticks every millisecond, reschedules when asked to, and names who ran each millisecond.
    pub fn run(&mut self, cpu: u32, milliseconds: u64) -> Vec<TaskId> {
        let mut ran = Vec::new();
        for _ in 0..milliseconds {
            ran.push(self.scheduler.curr(Cpu(cpu)));
            self.pass(MS);
            self.tick(cpu);
            if self.scheduler.need_resched(Cpu(cpu)) {
                self.schedule(cpu);
            }
        }
        ran
    }

    pub fn entity(&self, task: TaskId) -> &SchedEntity {
        self.scheduler.entity_of(task)
    }

    /// The queue's `min_vruntime` on `cpu`.
    pub fn min_vruntime(&self, cpu: u32) -> Vruntime {
        self.scheduler.cfs(self.scheduler.rqs[cpu as usize].cfs).min_vruntime
    }

    /// The queue's average vruntime on `cpu`.
    pub fn average(&self, cpu: u32) -> Vruntime {
        let root = self.scheduler.rqs[cpu as usize].cfs;
        self.scheduler.average(root)
    }

    /// Names of the events since the last call, and those of the last one's kinds.
    pub fn events(&mut self) -> Vec<EventKind<'static>> {
        let mut events = Vec::new();
        self.scheduler.drain_events(&mut sink_fn(|event: &Event<'_>| {
            // Simulated events carry no text, but their type may.
            if let EventKind::SchedPlace(place) = event.kind {
                events.push(EventKind::SchedPlace(place));
            } else if let EventKind::SchedStatWait(delay) = event.kind {
                events.push(EventKind::SchedStatWait(delay));
            }
        }));
        events
    }
}
