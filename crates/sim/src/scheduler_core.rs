//! What the engine drives: a scheduler, as hardware and the rest of the kernel see it.
//!
//! Calls come in at the grain of the kernel's own entry points: a wakeup, a tick, `schedule()`, an interrupt, a fork, a
//! change of nice, affinity, policy, group or quota. Out come events, CPUs to reschedule and [`CoreRequest`]s. What a call's kernel
//! work takes is its result, as CPU time at full speed; whatever waits is carried on by a later call.
//!
//! [`Model`](crate::Model) is the modelled scheduler. A kernel's own code, which does in one call what the model does in
//! steps, fits the same calls: nothing here asks how a decision comes about.
//!
//! Must not know: programs, threads, interrupts of devices, how virtual time is ordered.

use std::fmt::Debug;

use fairlab_event::{Cpu, Ns, Sink, TaskState};
use fairlab_kernel::core::KernelContext;
use fairlab_kernel::work_events::SchedulerWork;
use fairlab_kernel::{CfsLimit, CpuMask, GroupId, Policy, TaskId, TaskSpec};
pub use fairlab_kernel::{LineUse, SharedLine};

use crate::engine::Engine;
use crate::machine::speed::WHOLE;
use crate::workload::Offer;

/// A scheduler that an engine can drive.
///
/// The engine says where and when a call happens by [`set_here`](Self::set_here), one call before it or more. After a call
/// it takes the marked CPUs and the requests, in the order in which they were made.
pub trait SchedulerCore {
    /// What the scheduler sends to a CPU, or leaves for later, and gets back there.
    type Message: Copy + Debug + PartialEq;

    /// Runs an engine's loop ([`Engine::run_loop`]). Who says so itself has the loop compiled in its own crate, once and as that is
    /// optimised; else each crate that runs one compiles it again.
    fn drive(engine: &mut Engine<Self>, end: Ns, sink: &mut dyn Sink, goes_on: &dyn Fn() -> bool)
    where
        Self: Sized,
    {
        engine.run_loop(end, sink, goes_on);
    }

    /// The kernel's name, as messages tell it.
    fn name(&self) -> String;

    /// Whether control groups have `cpu.idle`.
    fn knows_idle_groups(&self) -> bool;

    /// Whether control groups have `cpu.max.burst`.
    fn knows_bursts(&self) -> bool {
        true
    }

    /// Where, in which context and when the calls that follow happen.
    fn set_here(&mut self, cpu: Cpu, mode: KernelContext, now: Ns);

    /// Whether events are kept for [`drain_events`](Self::drain_events).
    fn set_tracing(&mut self, enabled: bool);

    /// Whether probes tell what decisions rest on, beside the events.
    fn set_probes(&mut self, enabled: bool);

    /// Whether decisions are emitted with their reasons, beside the kernel's events. Who does not know its reasons emits none.
    fn set_decisions(&mut self, enabled: bool) {
        let _ = enabled;
    }

    /// Whether the tries of balancing alone are told so, and what becomes of masks of idle CPUs.
    fn set_balancing_told(&mut self, enabled: bool) {
        let _ = enabled;
    }

    /// What `/proc/schedstat` shows at `now`, in the layout of the kernel's version; `None` where there is none.
    fn schedstat(&mut self, now: Ns) -> Option<String> {
        let _ = now;
        None
    }

    /// What it has counted so far that no file of its kernel shows, by name.
    fn own_counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// The driver charges for work of the scheduler: it is emitted among the events where decisions are.
    fn tell_work(&mut self, work: SchedulerWork, units: u64, took: Ns) {
        let _ = (work, units, took);
    }

    /// Hands over the events since the last call, in order of time.
    fn drain_events(&mut self, sink: &mut dyn Sink);

    /// The kernel has booted: a task that ends from now on may leave its id to a new one.
    fn boot_is_over(&mut self);

    /// The task that `cpu` runs.
    fn curr(&self, cpu: Cpu) -> TaskId;

    /// Whether `cpu` runs its idle task.
    fn runs_idle_task(&self, cpu: Cpu) -> bool;

    /// Whether `cpu` is to reschedule before it goes back to user mode.
    fn need_resched(&self, cpu: Cpu) -> bool;

    /// Whether kernel work of `cpu` is left at the end of an interrupt or of a locked section, so that another task runs
    /// (`preempt_schedule()`). Kernels that are preempted at return to user mode alone never do that.
    fn preempts_kernel(&self, cpu: Cpu) -> bool;

    /// Whether the running task of `cpu`, which offers its CPU in the middle of kernel work, has to make way there.
    fn takes_offer(&self, cpu: Cpu, offer: Offer) -> bool;

    /// Whether CPUs were marked for rescheduling since [`take_marked`](Self::take_marked).
    fn has_marked(&self) -> bool;

    /// CPUs marked for rescheduling since the last call, in order of marking.
    fn take_marked(&mut self, into: &mut Vec<Cpu>);

    /// Whether [`take_requests`](Self::take_requests) has something to give.
    fn has_requests(&self) -> bool;

    /// What was asked of the hardware since the last call, in order.
    fn take_requests(&mut self, into: &mut Vec<CoreRequest<Self::Message>>);

    /// Whether [`end_of_work`](Self::end_of_work) has something to do.
    fn has_deferred(&self) -> bool;

    /// What happened on `cpu` is over: requests that were put off until then are made. Returns what that took.
    fn end_of_work(&mut self, cpu: Cpu) -> Ns;

    /// The CPU on whose runqueue `task` is or last was, or to which its wakeup was left; `None`: this scheduler does not tell.
    fn task_cpu(&self, task: TaskId) -> Option<Cpu> {
        let _ = task;
        None
    }

    /// Whether [`take_line_uses`](Self::take_line_uses) is to have something to give. A scheduler that does not tell has none ever.
    fn set_line_uses(&mut self, enabled: bool) {
        let _ = enabled;
    }

    /// Whether lines that CPUs share were used since [`take_line_uses`](Self::take_line_uses).
    fn has_line_uses(&self) -> bool {
        false
    }

    /// Uses of such lines since the last call, in order.
    fn take_line_uses(&mut self, into: &mut Vec<LineUse>) {
        let _ = into;
    }

    /// The frequency of `cpu` in force, of 1024 of its highest; full where nobody sets its clock.
    fn frequency(&self, cpu: Cpu) -> u64 {
        let _ = cpu;
        WHOLE
    }

    /// From now on `cpu` does so much at its highest frequency, of 1024 of the fastest: work that this core charges takes longer.
    fn set_top_speed(&mut self, cpu: Cpu, top: u64) {
        let _ = (cpu, top);
    }

    /// A kernel thread that sleeps on `cpu`.
    fn new_kthread(&mut self, spec: &TaskSpec, cpu: Cpu) -> TaskId;

    /// A thread that is not queued yet, created on `cpu`; in the group of whoever runs there unless told otherwise.
    fn new_task(&mut self, spec: &TaskSpec, group: Option<GroupId>, cpu: Cpu) -> TaskId;

    /// The running task has created `task`: tells it (`sched_process_fork`).
    fn report_fork(&mut self, task: TaskId);

    /// Selects a CPU for a new task, and queues it there (`wake_up_new_task()`).
    fn wake_up_new_task(&mut self, cpu: Cpu, task: TaskId);

    /// The running task of `cpu` replaces its program: it may go on on another CPU (`sched_exec()`). A scheduler without that
    /// has it stay.
    fn sched_exec(&mut self, cpu: Cpu) -> ExecProgress {
        let _ = cpu;
        ExecProgress::Stays(Ns::ZERO)
    }

    /// The running task of `cpu` ends, and the CPU looks for another (`do_task_dead()`).
    fn exit(&mut self, cpu: Cpu) -> ScheduleProgress;

    /// Wakes `task` from `cpu`; `sync`: the waker is about to sleep (`WF_SYNC`).
    fn try_to_wake_up(&mut self, cpu: Cpu, task: TaskId, sync: bool) -> WakeupProgress;

    /// Goes on with a wakeup that was [`WakeupProgress::OnCpu`].
    fn try_to_wake_up_again(&mut self, cpu: Cpu, task: TaskId, sync: bool) -> WakeupProgress;

    /// The running task of `cpu` sleeps or is passed over, as `prev_state` says (`__schedule()`).
    fn schedule(&mut self, cpu: Cpu, prev_state: TaskState) -> ScheduleProgress;

    /// Goes on with what was [`ScheduleProgress::Busy`] on `cpu`.
    fn schedule_again(&mut self, cpu: Cpu) -> ScheduleProgress;

    /// The running task gives way to others of its class (`sched_yield()`); [`schedule`](Self::schedule) follows.
    fn yield_task(&mut self, cpu: Cpu);

    /// The tick, with the balancing that follows it (`sched_tick()`, the SCHED softirq).
    fn tick(&mut self, cpu: Cpu) -> Ns;

    /// A timer that [`CoreRequest::ClockEvent`] armed expires on `cpu`.
    fn clock_event(&mut self, cpu: Cpu);

    /// Whether that timer has something to do on a CPU that idles, and wakes it.
    fn clock_event_wakes(&self, cpu: Cpu) -> bool;

    /// A message has come to `cpu`.
    fn receive(&mut self, cpu: Cpu, message: Self::Message) -> MessageEffect;

    /// Whether the running task of `cpu` has work to do before it goes back to user mode, or must not go back.
    fn has_user_mode_work(&self, cpu: Cpu) -> bool;

    /// Does that work (`resume_user_mode_work()`). Returns whether the task must leave its CPU.
    fn user_mode_work(&mut self, cpu: Cpu) -> bool;

    /// The idle loop begins on `cpu`: what others left to it is done. Zero: there was nothing.
    fn idle_work(&mut self, cpu: Cpu) -> Ns;

    /// Whether an idle CPU whose idle states no driver knows stops its tick; `got_tick`: a tick has just found it idle.
    fn idle_call_stops_tick(&self, got_tick: bool) -> bool;

    /// The tick of `cpu` has stopped (`nohz_balance_enter_idle()`).
    fn tick_is_stopped(&mut self, cpu: Cpu);

    /// `cpu` enters an idle state that takes so long to leave, or leaves it.
    fn idle_set_state(&mut self, cpu: Cpu, exit_latency: Option<Ns>);

    /// Tells the number of the idle state that `cpu` enters, or that it leaves it (`cpu_idle`).
    fn report_idle_state(&mut self, cpu: Cpu, state: Option<u32>);

    /// A kernel thread of the scheduler's own begins to work on `cpu`.
    fn begin_kthread_work(&mut self, cpu: Cpu) -> Ns;

    /// It has worked for so long. `None`: it sleeps until there is more; otherwise it goes on for a time.
    fn finish_kthread_work(&mut self, cpu: Cpu) -> Option<Ns>;

    /// The running task waits for I/O when it next sleeps.
    fn set_in_iowait(&mut self, task: TaskId);

    /// Changes what is given of a task, which need not run, `sched_setattr()`; `request`: its slice.
    fn set_scheduler(&mut self, task: TaskId, policy: Option<Policy>, nice: Option<i32>, request: Option<Ns>);

    /// A task may use these CPUs of the machine from now on, one at least; the running task of `cpu` asks for it, of itself or
    /// of another. `Some`: the task has to leave its CPU, and who asks already waits for that, with another running here.
    fn set_cpus_allowed(&mut self, cpu: Cpu, task: TaskId, allowed: CpuMask) -> Option<ScheduleProgress>;

    /// A control group below `parent`.
    fn new_group(&mut self, parent: GroupId, weight: u64) -> GroupId;

    /// The group of a new session whose nice level is this; `None` where autogroups are off.
    fn new_autogroup(&mut self, nice: i32) -> Option<GroupId> {
        let _ = nice;
        None
    }

    /// Writes its `cpu.weight`; the group is not idle.
    fn set_group_weight(&mut self, group: GroupId, weight: u64);

    /// Writes its `cpu.idle`.
    fn set_group_idle(&mut self, group: GroupId, idle: bool);

    /// Writes its `cpu.max`; the period begins `offset` after a whole number of periods.
    fn set_group_bandwidth(&mut self, group: GroupId, limit: CfsLimit, offset: Ns);

    /// Tells where tasks of a group may run (`cpuset.cpus.effective`); [`set_cpus_allowed`](Self::set_cpus_allowed) tells it of each.
    /// Who does not know cpusets goes by the machine's CPUs.
    fn set_group_cpus(&mut self, group: GroupId, effective: &CpuMask) {
        let _ = (group, effective);
    }

    /// The group of a task.
    fn group_of(&self, task: TaskId) -> GroupId;

    /// Moves a task to another group.
    fn move_task_to_group(&mut self, task: TaskId, group: GroupId);

    /// Tells that `group` is at `path` (`cgroup_mkdir`).
    fn report_group(&mut self, group: GroupId, path: &str);

    /// Tells that `task` has come to its group at `path` (`cgroup_attach_task`).
    fn report_attach(&mut self, task: TaskId, path: &str);
}

/// What a scheduler asks of the hardware.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CoreRequest<M> {
    /// An interrupt of `cpu`, which hands it the message.
    Interrupt {
        /// The CPU that is interrupted.
        cpu: Cpu,
        /// What it is told.
        message: M,
    },
    /// A timer: the message comes to `cpu` at a time.
    Timer {
        /// The CPU on which it expires.
        cpu: Cpu,
        /// When it does.
        expires: Ns,
        /// What it is for.
        message: M,
    },
    /// The one timer of `cpu` that can be moved expires at this time, or never.
    ClockEvent {
        /// The CPU on which it expires.
        cpu: Cpu,
        /// When it does.
        expires: Option<Ns>,
    },
    /// The [`frequency`](SchedulerCore::frequency) of `cpu` has changed.
    Frequency {
        /// The CPU whose it is.
        cpu: Cpu,
    },
}

/// How far `schedule()` has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleProgress {
    /// Its CPU is busy for so long, with interrupts off; then it goes on.
    Busy(Ns),
    /// It is over.
    Switched {
        /// Whether another task runs than before.
        changed: bool,
        /// What it took beside the switch itself, since it was last told.
        took: Ns,
        /// How long its search for work took in all, if it ran out of work (new-idle balancing).
        searched: Option<Ns>,
    },
}

/// How a task fares that replaces its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecProgress {
    /// It goes on; choosing took so long.
    Stays(Ns),
    /// Its CPU's stopper, which runs now or next, is to move it.
    Leaves(ScheduleProgress),
}

/// How far a wakeup has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeupProgress {
    /// It is over, or left to another CPU; it took so long here.
    Done(Ns),
    /// The task has blocked, and this CPU has not switched to another yet: the waker spins until then (`p->on_cpu`).
    OnCpu(Cpu),
}

/// What a message led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageEffect {
    /// What it took beside the interrupt itself.
    pub took: Ns,
    /// A kernel thread of the scheduler's own that is to be woken.
    pub wakes: Option<TaskId>,
}

/// How far below the root a control group is, by its path.
pub fn depth_of(path: &str) -> usize {
    path.split('/').filter(|part| !part.is_empty()).count()
}
