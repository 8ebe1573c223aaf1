//! The scheduler's own kernel threads, stoppers and governors, and what it puts off until its work is over.

use fairlab_event::{Comm, Cpu, Ns, Pid, TaskState};
use fairlab_kernel::balance::BalanceWork;
use fairlab_kernel::core::WakeFlags;
use fairlab_kernel::work_events::SchedulerWork;
use fairlab_kernel::{CpuMask, Policy, TaskId, TaskSpec};

use super::{Model, ModelMessage};
use crate::scheduler_core::{CoreRequest, ExecProgress, MessageEffect, ScheduleProgress, SchedulerCore};

/// Thread ids given to stoppers count from here.
const FIRST_STOPPER_PID: i32 = 500_000;

/// Thread ids given to governors' threads count from here.
const FIRST_GOVERNOR_PID: i32 = 600_000;

/// The thread of a policy whose CPUs do not switch by themselves (`sugov:N`).
pub(super) struct Governor {
    task: TaskId,
    policy: usize,
    /// It has been told of a frequency since it last asked for one.
    told: bool,
    /// What it sets, kHz.
    khz: u32,
}

/// A task that a stopper is to move.
#[derive(Clone, Copy, Debug)]
pub(super) struct StopperWork {
    task: TaskId,
    /// Where it goes with its new program; `None`: it may no longer run where it is.
    exec_to: Option<Cpu>,
}

/// What there is to know of a kernel thread.
pub(crate) fn kthread(comm: &str, pid: Pid, policy: Policy, allowed: CpuMask, cpu: Cpu) -> TaskSpec {
    TaskSpec {
        comm: Comm::from(comm),
        pid,
        tgid: pid,
        policy,
        nice: 0,
        allowed,
        kthread: true,
        per_cpu_kthread: allowed == CpuMask::single(cpu),
    }
}

/// A switch that took longer.
pub(super) fn later(progress: ScheduleProgress, by: Ns) -> ScheduleProgress {
    match progress {
        ScheduleProgress::Switched { changed, took, searched } => {
            ScheduleProgress::Switched { changed, took: took + by, searched }
        }
        busy => busy,
    }
}

impl Model {
    /// Every CPU's stopper sleeps until there is something to push.
    pub(super) fn create_stoppers(&mut self) {
        for cpu in (0..self.nr_cpus as u32).map(Cpu) {
            let (comm, pid) = (format!("migration/{}", cpu.0), Pid(FIRST_STOPPER_PID + cpu.0 as i32));
            self.new_kthread(&kthread(&comm, pid, Policy::Stop, CpuMask::single(cpu), cpu), cpu);
        }
        let stoppers = (0..self.nr_cpus as u32).map(|cpu| self.stopper_of(Cpu(cpu))).collect();
        self.scheduler.set_stoppers(stoppers);
    }

    /// A CPU's stopper: they were created in order, after the idle tasks.
    pub(crate) fn stopper_of(&self, cpu: Cpu) -> TaskId {
        TaskId((self.nr_cpus + cpu.index()) as u32)
    }

    /// Wakes the stoppers of CPUs whose running task is to be pushed, but for those that are awake already.
    pub(super) fn begin_pushes(&mut self, work: &BalanceWork) {
        for &source in &work.pushes {
            self.wake_stopper(source);
        }
    }

    fn wake_stopper(&mut self, cpu: Cpu) {
        self.scheduler.stop_one_cpu_nowait(cpu);
        let stopper = self.stopper_of(cpu);
        if self.scheduler.task(stopper).is_asleep() {
            self.scheduler.ttwu_begin(stopper, WakeFlags::default());
            self.scheduler.ttwu_stat(stopper);
            self.leave_to(cpu, stopper, false);
        }
    }

    /// A task may no longer run on its CPU. One that runs, or is about to be queued there, is moved by the stopper, which takes
    /// over (`stop_one_cpu()`); one that waits is moved at once, and one that sleeps when it wakes up.
    ///
    /// Kernel: `affine_move_task()`, kernel/sched/core.c.
    /// Departs: one that sleeps on its queue (delayed dequeue) leaves it, instead of sleeping on another.
    pub(super) fn move_away(&mut self, task: TaskId) {
        let cpu = self.scheduler.task(task).cpu();
        if self.scheduler.curr(cpu) == task || self.scheduler.task(task).is_waking() {
            self.banned[cpu.index()].push(StopperWork { task, exec_to: None });
            self.wake_stopper(cpu);
        } else if self.scheduler.task(task).is_delayed() {
            self.scheduler.end_delayed_sleep(task);
        } else {
            self.scheduler.migration_cpu_stop(task);
        }
    }

    /// The running task of `cpu` replaces its program, and goes on where the scheduler says. Its CPU's stopper moves it, and takes the
    /// CPU at once unless its own wakeup is still on its way.
    ///
    /// Kernel: `sched_exec()`, kernel/sched/core.c; `stop_one_cpu()`, kernel/stop_machine.c.
    pub(super) fn choose_for_exec(&mut self, cpu: Cpu) -> ExecProgress {
        let task = self.scheduler.curr(cpu);
        let decision = self.scheduler.sched_exec(task);
        let took = Ns(u64::from(decision.scanned) * self.costs.scan_cpu.0);
        self.scheduler.tell_work(SchedulerWork::Search, u64::from(decision.scanned), took);
        if decision.cpu == cpu {
            return ExecProgress::Stays(took);
        }
        self.banned[cpu.index()].push(StopperWork { task, exec_to: Some(decision.cpu) });
        self.movers.push((task, false));
        self.wake_stopper(cpu);
        if !self.scheduler.need_resched(cpu) {
            return ExecProgress::Stays(took);
        }
        let progress = self.schedule(cpu, TaskState::PREEMPTED);
        ExecProgress::Leaves(later(progress, took))
    }

    /// The stopper has worked for as long as a move takes: the task changes its CPU. Wakeups that are on their way to this one are done
    /// first.
    ///
    /// Kernel: `migration_cpu_stop()`, kernel/sched/core.c.
    pub(super) fn push(&mut self, cpu: Cpu) {
        let banned = std::mem::take(&mut self.banned[cpu.index()]);
        if !banned.is_empty() {
            self.sched_ttwu_pending(cpu);
        }
        for StopperWork { task, exec_to } in banned {
            match exec_to {
                Some(dest) => self.scheduler.exec_cpu_stop(task, cpu, dest),
                None => self.scheduler.migration_cpu_stop(task),
            };
            let mover = self.movers.iter().position(|&(mover, _)| mover == task);
            if let Some((_, true)) = mover.map(|at| self.movers.swap_remove(at)) {
                self.begin_wakeup(cpu, task, false);
            }
        }
        self.scheduler.apply_push(cpu);
    }

    /// Another CPU has taken a task from its queue before the stopper there could move it: it runs to where it waits for that, and
    /// sleeps.
    ///
    /// Kernel: `wait_for_completion()` in `affine_move_task()`, kernel/sched/core.c.
    pub(super) fn wait_for_stopper(&mut self, cpu: Cpu, progress: ScheduleProgress) -> ScheduleProgress {
        let ScheduleProgress::Switched { took, .. } = progress else { return progress };
        let task = self.scheduler.curr(cpu);
        let is_here = self.banned[cpu.index()].iter().any(|work| work.task == task);
        let Some(mover) = self.movers.iter_mut().find(|(mover, _)| *mover == task && !is_here) else {
            return progress;
        };
        mover.1 = true;
        self.scheduler.begin_schedule(cpu, TaskState::UNINTERRUPTIBLE);
        let next = self.pick_next(cpu, TaskState::UNINTERRUPTIBLE);
        self.wait_for_stopper(cpu, later(next, took))
    }

    /// Governors' threads sleep on the first CPU of their policy until there is something to set.
    ///
    /// Kernel: `sugov_kthread_create()`, kernel/sched/cpufreq_schedutil.c.
    pub(super) fn create_governors(&mut self) {
        for policy in self.scheduler.policies_with_threads() {
            let allowed = self.scheduler.cpus_of_policy(policy);
            let Some(first) = allowed.lowest() else { continue };
            let (comm, pid) = (format!("sugov:{}", first.0), Pid(FIRST_GOVERNOR_PID + policy as i32));
            let task = self.new_kthread(&kthread(&comm, pid, Policy::Deadline, allowed, first), first);
            self.governors.push(Governor { task, policy, told: false, khz: 0 });
        }
    }

    /// The governor's thread that `cpu` runs.
    pub(super) fn governor_on(&self, cpu: Cpu) -> Option<usize> {
        let task = self.scheduler.curr(cpu);
        self.governors.iter().position(|governor| governor.task == task)
    }

    /// A governor asked here for a frequency: its thread is told of it.
    ///
    /// Kernel: `sugov_irq_work()`.
    pub(super) fn tell_governor(&mut self, number: usize) -> MessageEffect {
        let governor = &mut self.governors[number];
        governor.told = true;
        if self.scheduler.task(governor.task).is_queued() {
            return MessageEffect { took: Ns::ZERO, wakes: None };
        }
        MessageEffect { took: self.costs.wakeup, wakes: Some(governor.task) }
    }

    /// A governor's thread goes to work. Returns for how long.
    pub(super) fn begin_setting_frequency(&mut self, number: usize) -> Ns {
        let khz = self.scheduler.sugov_work(self.governors[number].policy);
        let governor = &mut self.governors[number];
        governor.told = false;
        governor.khz = khz;
        self.costs.frequency_switch
    }

    /// A governor's thread has set its frequency: it sets another one that it has been told of meanwhile, or sleeps.
    pub(super) fn frequency_is_set(&mut self, number: usize) -> Option<Ns> {
        let Governor { policy, khz, told, .. } = self.governors[number];
        self.set_frequency(policy, khz);
        told.then(|| self.begin_setting_frequency(number))
    }

    /// The clock of a policy runs at another frequency from now on.
    fn set_frequency(&mut self, policy: usize, khz: u32) {
        self.scheduler.set_frequency(policy, khz);
        let cpus = self.scheduler.cpus_of_policy(policy);
        self.requests.extend(cpus.iter().map(|cpu| CoreRequest::Frequency { cpu }));
    }

    /// Carries out what governors have asked for in what `cpu` just did. Returns what choosing the frequencies took.
    pub(super) fn serve_governors(&mut self, cpu: Cpu) -> Ns {
        let mut requests = std::mem::take(&mut self.frequency_requests);
        let looked_at = self.scheduler.take_frequency_requests(&mut requests);
        for request in requests.drain(..) {
            match self.governors.iter().position(|governor| governor.policy == request.policy) {
                Some(number) => self.interrupt(cpu, ModelMessage::Governor { number }),
                None => self.set_frequency(request.policy, request.khz),
            }
        }
        self.frequency_requests = requests;
        Ns(self.costs.governor_cpu.0 * u64::from(looked_at))
    }

    /// Arranges what groups' quotas ask for: timers, and interrupts of CPUs that are to unthrottle groups.
    pub(super) fn serve_groups(&mut self) {
        self.scheduler.take_started_timers(&mut self.group_timers);
        for timer in self.group_timers.drain(..) {
            let (cpu, expires) = (timer.cpu, timer.expires);
            self.requests.push(CoreRequest::Timer { cpu, expires, message: ModelMessage::GroupTimer(timer) });
        }
        self.scheduler.take_unthrottle_calls(&mut self.cpus);
        for cpu in self.cpus.drain(..) {
            self.requests.push(CoreRequest::Interrupt { cpu, message: ModelMessage::Unthrottle });
        }
    }

    /// Arranges the ends of slices that have changed, or that other CPUs are to change.
    pub(super) fn serve_hrticks(&mut self) {
        self.scheduler.take_hrtick_calls(&mut self.cpus);
        for cpu in self.cpus.drain(..) {
            self.requests.push(CoreRequest::Interrupt { cpu, message: ModelMessage::Hrtick });
        }
        self.scheduler.take_moved_hrticks(&mut self.cpus);
        for cpu in self.cpus.drain(..) {
            self.requests
                .push(CoreRequest::ClockEvent { cpu, expires: self.scheduler.clock_event_expires(cpu) });
        }
    }
}
