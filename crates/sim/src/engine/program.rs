//! Threads of workloads: asking for the next action, and carrying out system calls.

use fairlab_event::{Cpu, Ns, TaskState};
use fairlab_kernel::core::KernelContext;
use fairlab_kernel::{CpuMask, GroupId, TaskId, TaskSpec};

use super::cpu::{AfterKernelWork, CpuPhase};
use super::occurrence::Interrupt;
use super::{
    ComputeSegment, Engine, EngineThread, NO_THREAD, PREEMPTED_AT_USER_RETURN, SystemCall, TIMER_SLACK,
    ThreadSleep, pid_of_thread,
};
use crate::machine::chance::vary;
use crate::rng::RandomStream;
use crate::scheduler_core::{ExecProgress, SchedulerCore};
use crate::workload::{Action, MESSAGE_BYTES, ThreadId, ThreadSpec, View};

/// The least time that an action of user mode takes: reading the clock once. It keeps a program that polls a time
/// already past from standing still in virtual time.
pub(super) const CLOCK_READ: Ns = Ns(25);

/// The longest that one action's traffic takes at full speed: beyond the longest run.
const TRAFFIC_MAX: Ns = Ns::from_secs(1_000_000);

impl<C: SchedulerCore> Engine<C> {
    /// Goes on in user mode, unless a reschedule is pending.
    pub(super) fn return_to_user(&mut self, cpu: Cpu) {
        if self.core.need_resched(cpu) {
            return self.schedule(cpu, PREEMPTED_AT_USER_RETURN);
        }
        self.core.set_here(cpu, KernelContext::Task, self.now);
        if self.core.user_mode_work(cpu) {
            return self.schedule(cpu, PREEMPTED_AT_USER_RETURN);
        }
        let thread = self.thread_on(cpu).expect("only threads of workloads run in user mode");
        match self.threads[thread].segment {
            ComputeSegment::Done => self.next_action(cpu, thread),
            ComputeSegment::Work(left) => {
                self.begin_traffic(cpu, thread);
                self.enter_phase(cpu, CpuPhase::User, self.now + self.time_for(cpu, left));
            }
            ComputeSegment::Until(time) => {
                self.begin_traffic(cpu, thread);
                self.enter_phase(cpu, CpuPhase::User, time.max(self.now + CLOCK_READ));
            }
            ComputeSegment::Spin { word, left } => self.spin(cpu, thread, word, left),
            ComputeSegment::Kernel(left) => self.resume_kernel_work(cpu, thread, left),
        }
    }

    fn next_action(&mut self, cpu: Cpu, index: usize) {
        let thread = &mut self.threads[index];
        let mut view = View { now: self.now, cpu, random: &mut thread.random };
        let action = self.programs[thread.program].workload.next(thread.id, &mut view);
        match action {
            Action::Run(work) => {
                let permille = self.machine.chance.computation_permille;
                let work = if permille == 0 { work } else { vary(work, permille, &mut thread.chance) };
                thread.segment = ComputeSegment::Work(work.max(CLOCK_READ));
                self.note_moves(index, false);
                self.return_to_user(cpu);
            }
            Action::Traffic(bytes) => {
                let work = Ns(self.machine.sharing.traffic_ns(bytes)).min(TRAFFIC_MAX);
                thread.segment = ComputeSegment::Work(work.max(CLOCK_READ));
                self.note_moves(index, true);
                self.return_to_user(cpu);
            }
            Action::SpinUntil(time) => {
                thread.segment = ComputeSegment::Until(time);
                self.return_to_user(cpu);
            }
            Action::SpinOn { word, most } => {
                thread.segment = ComputeSegment::Spin { word, left: most.max(CLOCK_READ) };
                self.return_to_user(cpu);
            }
            Action::Release { word, most } => {
                thread.segment = ComputeSegment::Work(CLOCK_READ);
                let program = thread.program;
                self.release(program, word, most);
                self.return_to_user(cpu);
            }
            Action::Wait => {
                thread.wait = ThreadSleep::GoingToSleep;
                self.enter_system_call(cpu, index, SystemCall::FutexWait);
            }
            Action::Wake(target) => {
                self.enter_system_call(cpu, index, SystemCall::Wake { target, sync: false });
            }
            Action::WakeSync(target) => {
                self.enter_system_call(cpu, index, SystemCall::Wake { target, sync: true });
            }
            Action::SystemCall(work) => self.work_in_kernel(cpu, index, work),
            Action::OfferingSystemCall { work, piece, offer } => {
                self.begin_offering_work(cpu, index, work, piece, offer);
            }
            Action::Send(bytes) => self.work_in_kernel(cpu, index, self.sending(bytes)),
            Action::Receive(bytes) => self.work_in_kernel(cpu, index, self.receiving(bytes)),
            Action::Sleep(least) => self.enter_system_call(cpu, index, SystemCall::Nanosleep(least)),
            Action::Io(time) => self.enter_system_call(cpu, index, SystemCall::Io(time)),
            Action::Await(time) => self.enter_system_call(cpu, index, SystemCall::Await(time, cpu)),
            Action::AwaitOn(time, on) => self.enter_system_call(cpu, index, SystemCall::Await(time, on)),
            Action::Spawn(spec) => {
                let id = self.programs[thread.program].threads.reserve();
                self.enter_system_call(cpu, index, SystemCall::Clone(Box::new(spec), id));
            }
            Action::Yield => self.enter_system_call(cpu, index, SystemCall::SchedYield),
            Action::Exec => self.enter_system_call(cpu, index, SystemCall::Exec),
            Action::SetScheduler { policy, nice, request, allowed } => {
                let call = SystemCall::SetScheduler { policy, nice, request, allowed: allowed.map(Box::new) };
                self.enter_system_call(cpu, index, call);
            }
            Action::EnterGroup(group) => {
                self.enter_system_call(cpu, index, SystemCall::EnterGroup(Some(group)));
            }
            Action::LeaveGroup => self.enter_system_call(cpu, index, SystemCall::EnterGroup(None)),
            Action::Administer(order) => {
                self.enter_system_call(cpu, index, SystemCall::Administer(order));
            }
            Action::Exit => self.enter_system_call(cpu, index, SystemCall::Exit),
        }
    }

    fn sending(&self, bytes: u32) -> Ns {
        self.machine.costs.send + self.copying(bytes)
    }

    fn receiving(&self, bytes: u32) -> Ns {
        self.machine.costs.receive + self.copying(bytes)
    }

    /// What copying a message costs more than one of [`MESSAGE_BYTES`] does: 12 bytes a ns where the machine tells no bandwidth.
    /// Measured on one x86 server under 6.18: 9 to 14 bytes a ns, from 100 to 48,000 bytes, in sockets and pipes.
    fn copying(&self, bytes: u32) -> Ns {
        Ns(self.machine.sharing.traffic_ns(bytes.saturating_sub(MESSAGE_BYTES).into()))
    }

    /// A system call that takes `work` beside its entry and exit.
    fn work_in_kernel(&mut self, cpu: Cpu, index: usize, work: Ns) {
        self.threads[index].pending = Some(SystemCall::Work);
        self.enter_kernel(cpu, self.machine.costs.syscall + work, AfterKernelWork::CarryOut);
    }

    #[inline]
    fn enter_system_call(&mut self, cpu: Cpu, index: usize, call: SystemCall) {
        let costs = &self.machine.costs;
        let cost = match call {
            SystemCall::FutexWait
            | SystemCall::Nanosleep(_)
            | SystemCall::Io(_)
            | SystemCall::Await(..)
            | SystemCall::SchedYield
            | SystemCall::Exec
            | SystemCall::EnterGroup(_)
            | SystemCall::Administer(_)
            | SystemCall::AllowAgain(_)
            | SystemCall::SetScheduler { .. } => costs.syscall,
            SystemCall::Wake { sync: false, .. } => costs.syscall + costs.wakeup,
            // Part of the system call that writes.
            SystemCall::Wake { sync: true, .. } => costs.wakeup,
            SystemCall::Work | SystemCall::OfferingWork { .. } => unreachable!("it brings its own cost"),
            SystemCall::Clone(..) => costs.fork,
            SystemCall::Exit => costs.exit,
        };
        self.threads[index].pending = Some(call);
        self.enter_kernel(cpu, cost, AfterKernelWork::CarryOut);
    }

    /// Does the work of the system call that the running thread is in.
    #[inline(always)]
    pub(super) fn carry_out(&mut self, cpu: Cpu) {
        self.core.set_here(cpu, KernelContext::Task, self.now);
        let index = self.thread_on(cpu).expect("only threads of workloads make system calls");
        let call = self.threads[index].pending.take().expect("a system call has work to do");
        match call {
            SystemCall::FutexWait => self.futex_wait(cpu, index),
            SystemCall::Nanosleep(least) => {
                self.sleep_until(cpu, index, self.sleep_expires(least), ThreadSleep::Timer);
            }
            SystemCall::Io(time) => {
                self.core.set_in_iowait(self.threads[index].task);
                self.sleep_until(cpu, index, self.now + time, ThreadSleep::Device);
            }
            SystemCall::Await(time, on) => {
                let state = self.arrange_wakeup(on, index, self.now + time, ThreadSleep::Timer);
                self.sleep(cpu, index, ThreadSleep::Timer, state);
            }
            SystemCall::Work => self.work_is_done(cpu, index),
            SystemCall::OfferingWork { left, piece, offer } => {
                self.offer_cpu(cpu, index, left, piece, offer);
            }
            SystemCall::Wake { target, sync } => {
                let threads = &self.programs[self.threads[index].program].threads;
                // A thread that is not created yet waits on nothing.
                let target = threads.get(target);
                let cost = target.map_or(Ns::ZERO, |target| self.wake(cpu, target, sync));
                if self.machine.costs.activate > Ns::ZERO {
                    self.hold_marked(cpu);
                } else {
                    self.interrupt_marked(Some(cpu));
                }
                self.leave_system_call(cpu, cost);
            }
            SystemCall::Clone(spec, id) => self.clone_thread(cpu, index, &spec, id),
            SystemCall::SchedYield => {
                self.core.yield_task(cpu);
                self.schedule(cpu, TaskState::RUNNABLE);
            }
            SystemCall::Exec => match self.core.sched_exec(cpu) {
                ExecProgress::Stays(took) => {
                    self.interrupt_marked(Some(cpu));
                    self.leave_system_call(cpu, took);
                }
                ExecProgress::Leaves(progress) => self.goes_on(cpu, progress),
            },
            SystemCall::SetScheduler { policy, nice, request, allowed } => {
                self.core.set_scheduler(self.threads[index].task, policy, nice, request);
                self.set_affinity(cpu, index, allowed.as_deref());
            }
            SystemCall::EnterGroup(group) => {
                self.move_to_group(index, group);
                self.allow_again(cpu, index, vec![index]);
            }
            SystemCall::Administer(order) => self.administer(cpu, index, *order),
            SystemCall::AllowAgain(places) => self.allow_again(cpu, index, places),
            SystemCall::Exit => {
                self.threads[index].wait = ThreadSleep::Dead;
                let (program, id) = (self.threads[index].program, self.threads[index].id);
                self.programs[program].threads.remove(id);
                self.forget_place(program, index);
                self.alive -= 1;
                let progress = self.core.exit(cpu);
                self.goes_on(cpu, progress);
            }
        }
    }

    /// The running thread creates another one.
    fn clone_thread(&mut self, cpu: Cpu, index: usize, spec: &ThreadSpec, id: ThreadId) {
        let program = self.threads[index].program;
        let task = self.create_thread(program, id, spec, cpu, Some(index));
        self.core.report_fork(task);
        if self.core.group_of(task) != self.core.group_of(self.threads[index].task) {
            self.report_group_of(program, task);
        }
        self.core.wake_up_new_task(cpu, task);
        self.make_requests();
        self.interrupt_marked(Some(cpu));
        let lines = self.used_lines(cpu);
        self.leave_system_call(cpu, lines);
    }

    /// The work of a system call is done; waking somebody may be part of that call.
    pub(super) fn work_is_done(&mut self, cpu: Cpu, index: usize) {
        let thread = &self.threads[index];
        match self.programs[thread.program].workload.system_call_done(thread.id) {
            Some(target) => self.enter_system_call(cpu, index, SystemCall::Wake { target, sync: true }),
            None => self.return_to_user(cpu),
        }
    }

    /// When a sleep of at least `least` ends: with the slack that timers have, or at a tick.
    fn sleep_expires(&self, least: Ns) -> Ns {
        let due = self.now + least;
        if self.machine.high_res_timers {
            return due + TIMER_SLACK;
        }
        Ns(due.0.next_multiple_of(self.machine.tick().0))
    }

    /// The running thread may use other CPUs from now on; where it may not stay, the stopper moves it.
    fn set_affinity(&mut self, cpu: Cpu, index: usize, allowed: Option<&CpuMask>) {
        let allowed = allowed.map(|allowed| self.wishes_for(index, allowed));
        let task = self.threads[index].task;
        if let Some(allowed) = allowed.filter(|allowed| !allowed.is_empty()) {
            let left = self.core.set_cpus_allowed(cpu, task, allowed);
            if let Some(progress) = left {
                return self.goes_on(cpu, progress);
            }
        }
        self.interrupt_marked(Some(cpu));
        self.leave_system_call(cpu, Ns::ZERO);
    }

    fn futex_wait(&mut self, cpu: Cpu, index: usize) {
        let thread = &self.threads[index];
        let must_wait = self.programs[thread.program].workload.must_wait(thread.id);
        if thread.wait == ThreadSleep::WokenEarly || !must_wait {
            self.threads[index].wait = ThreadSleep::No;
            return self.return_to_user(cpu);
        }
        self.sleep(cpu, index, ThreadSleep::Futex, TaskState::INTERRUPTIBLE);
    }

    /// Sleeps until an interrupt of this CPU at `time`.
    fn sleep_until(&mut self, cpu: Cpu, index: usize, time: Ns, how: ThreadSleep) {
        let state = self.arrange_wakeup(cpu, index, time, how);
        self.sleep(cpu, index, how, state);
    }

    /// An interrupt of `on` at `time` is to wake a thread. Returns the state in which it sleeps until then.
    fn arrange_wakeup(&mut self, on: Cpu, index: usize, time: Ns, how: ThreadSleep) -> TaskState {
        let thread = &mut self.threads[index];
        thread.sleeps = thread.sleeps.wrapping_add(1);
        let timer = Interrupt::Timer { thread: index as u32, sleep: thread.sleeps };
        self.queue.arrange_interrupt(on, time, timer);
        if how == ThreadSleep::Device { TaskState::UNINTERRUPTIBLE } else { TaskState::INTERRUPTIBLE }
    }

    fn sleep(&mut self, cpu: Cpu, index: usize, how: ThreadSleep, state: TaskState) {
        self.threads[index].wait = how;
        self.schedule(cpu, state);
    }

    /// The place of a new task's thread: that of an ended one whose id it has, or a new one.
    fn place_of(&mut self, task: TaskId) -> usize {
        if self.thread_of.len() <= task.index() {
            self.thread_of.resize(task.index() + 1, NO_THREAD);
        }
        let place = &mut self.thread_of[task.index()];
        if *place == NO_THREAD {
            *place = self.threads.len() as u32;
        }
        *place as usize
    }

    /// Creates the thread that has number `id` in its workload, on `cpu`; it is not queued yet.
    pub(super) fn create_thread(
        &mut self,
        program: usize,
        id: ThreadId,
        spec: &ThreadSpec,
        cpu: Cpu,
        creator: Option<usize>,
    ) -> TaskId {
        let pid = pid_of_thread(self.created);
        self.created += 1;
        self.alive += 1;
        let process = *self.programs[program].process.get_or_insert(pid);
        let process = creator.map_or(process, |creator| self.threads[creator].process);
        let process = if spec.process { pid } else { process };
        let group = spec.group.and_then(|group| self.programs[program].groups.get(group).copied());
        // The first thread comes from the shell that starts the program.
        let group = group.or((id == ThreadId::MAIN).then_some(GroupId::ROOT));
        let autogroup = self.autogroup_of_new(spec, creator);
        let group = self.group_with_autogroup(group, autogroup, creator);
        let spec_of_task = TaskSpec {
            comm: spec.comm,
            pid,
            tgid: process,
            policy: spec.policy,
            nice: spec.nice,
            allowed: self.allowed_of_new(program, spec, creator),
            kthread: spec.kthread,
            per_cpu_kthread: spec.kthread && spec.allowed.weight() == 1,
        };
        let task = self.core.new_task(&spec_of_task, group, cpu);
        if let Some(name) = self.programs[program].workload.member(id) {
            self.members.push((pid, name.to_string()));
        }
        let random = RandomStream::new(self.seed, &format!("{program}/{}", spec.stream));
        let mut chance = RandomStream::new(self.seed, &format!("chance/{program}/{}", spec.stream));
        let segment = match self.machine.chance.start_ns {
            0 => ComputeSegment::Done,
            most => ComputeSegment::Work(Ns(chance.below(most))),
        };
        let wait = ThreadSleep::No;
        let index = self.place_of(task);
        let sleeps = self.threads.get(index).map_or(0, |ended| ended.sleeps.wrapping_add(1));
        let pending = None;
        let thread =
            EngineThread { task, program, id, random, chance, segment, pending, wait, sleeps, process };
        self.programs[program].threads.set(id, index);
        self.note_memory(index, spec.memory);
        self.note_place(program, index, spec, autogroup);
        match self.threads.get_mut(index) {
            Some(ended) => *ended = thread,
            None => self.threads.push(thread),
        }
        task
    }
}
