//! The engine's calls, each as the image's entries for it.

use fairlab_event::{Cpu, EventKind, Ns, Sink, TaskState, UntypedTracepoint};
use fairlab_kernel::core::KernelContext;
use fairlab_kernel::struct_members::{StructMember, StructMembers};
use fairlab_kernel::work_events::SchedulerWork as OwnWork;
use fairlab_kernel::{CfsLimit, CpuMask, GroupId, Policy, TaskId, TaskSpec};
use fairlab_sim::scheduler_core::{
    CoreRequest, ExecProgress, MessageEffect, ScheduleProgress, WakeupProgress, depth_of,
};
use fairlab_sim::workload::Offer;
use fairlab_sim::{Engine, Inspect, SchedulerCore};

use super::tasks::NativeTask;
use super::time::{CallWork, CpuLook};
use super::{ImageMessage, NativeScheduler};
use crate::abi::{GroupPtr, KEEP, NEVER, TaskWords};
use crate::host::ImageRequest;
use crate::image::LoadedImage;

/// `enum fl_state`.
const RUNNABLE: i32 = 0;
const INTERRUPTIBLE: i32 = 1;
const UNINTERRUPTIBLE: i32 = 2;
const SLEEP_IDLE: i32 = 3;
const PREEMPTED: i32 = 4;

fn state_word(state: TaskState) -> i32 {
    match () {
        () if state.contains(TaskState::IDLE) => SLEEP_IDLE,
        () if state.contains(TaskState::INTERRUPTIBLE) => INTERRUPTIBLE,
        () if state.is_preempted() => PREEMPTED,
        () if state.is_runnable() => RUNNABLE,
        () => UNINTERRUPTIBLE,
    }
}

/// `enum fl_policy`, and the priority of real-time tasks.
fn policy_words(policy: Policy) -> (i32, i32) {
    match policy {
        Policy::Normal => (0, 0),
        Policy::Fifo(priority) => (1, priority.into()),
        Policy::RoundRobin(priority) => (2, priority.into()),
        Policy::Batch => (3, 0),
        Policy::Idle => (5, 0),
        Policy::Deadline | Policy::Stop | Policy::Swapper => {
            panic!("an image makes its own tasks of {policy:?}")
        }
    }
}

fn mask_words(mask: &CpuMask, nr_cpus: usize) -> Vec<u64> {
    let mut words = vec![0; nr_cpus.div_ceil(64)];
    for cpu in mask.iter().filter(|cpu| cpu.index() < nr_cpus) {
        words[cpu.index() / 64] |= 1 << (cpu.index() % 64);
    }
    words
}

/// What the kernel refuses of what a machine or a workload was checked for is a fault of ours.
fn must(result: i32, call: &str) {
    assert!(result >= 0, "the kernel has refused {call}: error {result}");
}

impl NativeScheduler {
    fn is_idle_task(&self, task: TaskId) -> bool {
        task.index() < self.nr_cpus
    }

    fn is_stopper(&self, task: TaskId) -> bool {
        (self.nr_cpus..2 * self.nr_cpus).contains(&task.index())
    }

    fn group(&self, group: GroupId) -> GroupPtr {
        self.groups[group.0 as usize]
    }

    /// `cpu` may change its task: tells how that came out.
    fn switch(&mut self, cpu: Cpu, act: impl FnOnce(&LoadedImage)) -> ScheduleProgress {
        let prev = self.curr(cpu);
        let ((), CallWork { took, looked }) = self.work(cpu, CpuLook::Balance, act);
        let next = self.curr(cpu);
        let changed = prev != next;
        if changed {
            self.tasks.get_mut(prev).left = (self.busy_until[cpu.index()], cpu);
        }
        let (was_idle, idles) = (self.is_idle_task(prev), self.is_idle_task(next));
        if was_idle && !idles && std::mem::take(&mut self.tick_stopped[cpu.index()]) {
            self.at_once(cpu, LoadedImage::tick_restarted);
        }
        if was_idle || !(idles || looked > 0) {
            return ScheduleProgress::Switched { changed, took, searched: None };
        }
        let took = took + self.costs.newidle;
        self.tell_work(OwnWork::Newidle, looked, took);
        ScheduleProgress::Switched { changed, took, searched: Some(took) }
    }

    /// Work in which the kernel may balance. Returns what it took.
    fn balance<R>(&mut self, cpu: Cpu, act: impl FnOnce(&LoadedImage) -> R) -> Ns {
        let (_, CallWork { took, looked }) = self.work(cpu, CpuLook::Balance, act);
        self.tell_work(OwnWork::Balance, looked, took);
        took
    }

    /// Interrupts asked for since the request of that number that let another CPU carry on with a wakeup.
    fn note_left(&mut self, since: usize) -> bool {
        let asked = self.host.asked.borrow();
        let mut left = false;
        for ask in &asked[since..] {
            if let ImageRequest::Interrupt { cpu, .. } = ask {
                self.left_to[cpu.index()] += 1;
                left = true;
            }
        }
        left
    }

    fn report_allowed(&mut self, task: TaskId, allowed: &CpuMask) {
        if self.tracing {
            let everywhere = allowed.weight() == self.nr_cpus;
            self.kept.push_allowed(self.tasks.get(task).pid, (!everywhere).then_some(*allowed));
        }
    }

    fn create(&mut self, spec: &TaskSpec, group: Option<GroupId>, cpu: Cpu, kthread: bool) -> TaskId {
        let id = self.tasks.next();
        let (policy, rt_priority) = policy_words(spec.policy);
        let words = TaskWords {
            comm: *spec.comm.padded(),
            id: id.0 as i32,
            pid: spec.pid.0,
            tgid: spec.tgid.0,
            policy,
            rt_priority,
            nice: spec.nice,
            kthread: spec.kthread.into(),
            per_cpu: spec.per_cpu_kthread.into(),
            allowed: std::ptr::null(),
            group: group.map_or(GroupPtr::ROOT, |group| self.group(group)),
            own_group: group.is_some().into(),
        };
        let allowed = mask_words(&spec.allowed, self.nr_cpus);
        let parent = self.tasks.get(self.curr(cpu)).group;
        let address = self.at_once(cpu, |image| image.new_task(&words, &allowed, kthread.then_some(cpu)));
        assert!(!address.is_null(), "the kernel has made no task {}", spec.pid);
        let group = group.unwrap_or(if kthread { GroupId::ROOT } else { parent });
        let (comm, pid, tgid) = (spec.comm, spec.pid, spec.tgid);
        let left = (Ns::ZERO, cpu);
        let task = self.tasks.add(NativeTask {
            comm,
            pid,
            tgid,
            address: Some(address),
            group,
            left,
            asleep: kthread,
        });
        if spec.allowed.weight() < self.nr_cpus {
            self.report_allowed(task, &spec.allowed);
        }
        task
    }
}

impl SchedulerCore for NativeScheduler {
    type Message = ImageMessage;

    fn drive(engine: &mut Engine<NativeScheduler>, end: Ns, sink: &mut dyn Sink, goes_on: &dyn Fn() -> bool) {
        engine.run_loop(end, sink, goes_on);
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn knows_idle_groups(&self) -> bool {
        self.has_idle_groups
    }

    fn knows_bursts(&self) -> bool {
        self.has_bursts
    }

    #[inline]
    fn set_here(&mut self, cpu: Cpu, mode: KernelContext, now: Ns) {
        (self.here, self.mode, self.now) = (cpu, mode, now);
    }

    /// The work that its code counts is emitted, and no decision.
    fn set_decisions(&mut self, enabled: bool) {
        self.tells_work = enabled;
    }

    fn schedstat(&mut self, now: Ns) -> Option<String> {
        const SCHEDSTAT: i32 = 1;
        self.set_here(Cpu(0), KernelContext::Task, now);
        let before = self.take_printed();
        let known = self.at_once(Cpu(0), |image| image.snapshot(SCHEDSTAT)) == 0;
        let text = self.take_printed();
        self.host.printed.borrow_mut().extend(before.into_bytes());
        known.then_some(text)
    }

    fn tell_work(&mut self, work: OwnWork, units: u64, took: Ns) {
        if self.tells_work && (units, took) != (0, Ns::ZERO) {
            self.report_text(
                UntypedTracepoint::DoneWork.name(),
                format!("work={work:?} units={units} ns={}", took.0),
            );
        }
    }

    fn set_tracing(&mut self, enabled: bool) {
        self.tracing = enabled;
        self.at_once(self.here, |image| image.trace(enabled.into()));
    }

    /// An image prints no probes: its state can be read.
    fn set_probes(&mut self, _: bool) {}

    #[inline]
    fn drain_events(&mut self, sink: &mut dyn Sink) {
        if !self.kept.is_empty() {
            self.kept.drain(self.now, sink);
        }
    }

    fn boot_is_over(&mut self) {}

    #[inline]
    fn curr(&self, cpu: Cpu) -> TaskId {
        self.curr[cpu.index()]
    }

    #[inline]
    fn runs_idle_task(&self, cpu: Cpu) -> bool {
        self.is_idle_task(self.curr(cpu))
    }

    #[inline]
    fn need_resched(&self, cpu: Cpu) -> bool {
        self.image.need_resched(cpu.0 as i32) != 0
    }

    /// `need_resched()` tells apart what waits for user mode and what does not.
    #[inline]
    fn preempts_kernel(&self, cpu: Cpu) -> bool {
        self.is_preemptible && self.image.need_resched(cpu.0 as i32) == 2
    }

    /// `cond_resched()` does nothing in a kernel that is preempted everywhere, `might_resched()` where nothing is voluntary.
    fn takes_offer(&self, cpu: Cpu, offer: Offer) -> bool {
        let takes = !self.is_preemptible && (offer == Offer::CondResched || self.is_voluntary);
        takes && self.image.need_resched(cpu.0 as i32) == 2
    }

    #[inline]
    fn has_marked(&self) -> bool {
        !self.host.marked.borrow().is_empty()
    }

    fn take_marked(&mut self, into: &mut Vec<Cpu>) {
        into.append(&mut self.host.marked.borrow_mut());
    }

    #[inline]
    fn has_requests(&self) -> bool {
        !self.host.asked.borrow().is_empty()
    }

    fn take_requests(&mut self, into: &mut Vec<CoreRequest<ImageMessage>>) {
        let now = self.now;
        into.extend(self.host.asked.borrow_mut().drain(..).map(|ask| match ask {
            ImageRequest::Interrupt { cpu, ipi } => {
                CoreRequest::Interrupt { cpu, message: ImageMessage::Interrupt { ipi } }
            }
            ImageRequest::Timer { cpu, expires } => {
                CoreRequest::ClockEvent { cpu, expires: expires.map(|expires| expires.max(now)) }
            }
            ImageRequest::Speed { cpu } => CoreRequest::Frequency { cpu },
        }));
    }

    #[inline]
    fn has_deferred(&self) -> bool {
        self.image.has_work()
    }

    /// Work queues.
    fn end_of_work(&mut self, cpu: Cpu) -> Ns {
        self.at_once(cpu, LoadedImage::workqueues);
        Ns::ZERO
    }

    fn task_cpu(&self, task: TaskId) -> Option<Cpu> {
        let mut members = StructMembers::new();
        self.members_of_task(task, &mut members);
        let cpu = members.iter().find(|(member, _)| *member == StructMember::TaskCpu);
        cpu.and_then(|(_, cpu)| u32::try_from(*cpu).ok()).map(Cpu)
    }

    fn set_top_speed(&mut self, cpu: Cpu, top: u64) {
        self.top_speeds[cpu.index()] = top;
    }

    fn new_kthread(&mut self, spec: &TaskSpec, cpu: Cpu) -> TaskId {
        self.create(spec, None, cpu, true)
    }

    fn new_task(&mut self, spec: &TaskSpec, group: Option<GroupId>, cpu: Cpu) -> TaskId {
        self.create(spec, group, cpu, false)
    }

    fn report_fork(&mut self, task: TaskId) {
        let (parent, child) = (self.tasks.get(self.curr(self.here)), self.tasks.get(task));
        let (comm, pid) = (parent.comm, parent.pid);
        let (child_comm, child_pid) = (child.comm, child.pid);
        self.report(EventKind::SchedProcessFork { comm, pid, child_comm, child_pid });
    }

    /// A CPU that is to run it itself is told so by nobody: it sees its own flag, unless it idles.
    fn wake_up_new_task(&mut self, cpu: Cpu, task: TaskId) {
        let address = self.tasks.address(task);
        self.at_once(cpu, |image| image.start(address));
        if self.runs_idle_task(cpu) && self.need_resched(cpu) {
            self.host.marked.borrow_mut().push(cpu);
        }
    }

    fn sched_exec(&mut self, cpu: Cpu) -> ExecProgress {
        let asks = self.curr(cpu);
        let ((), work) = self.work(cpu, CpuLook::Select, LoadedImage::exec);
        self.tell_work(OwnWork::Search, work.looked, work.took);
        if self.curr(cpu) == asks {
            return ExecProgress::Stays(work.took);
        }
        self.tasks.get_mut(asks).left = (self.busy_until[cpu.index()], cpu);
        ExecProgress::Leaves(ScheduleProgress::Switched { changed: true, took: work.took, searched: None })
    }

    fn exit(&mut self, cpu: Cpu) -> ScheduleProgress {
        let task = self.curr(cpu);
        let progress = self.switch(cpu, LoadedImage::exit);
        let address = self.tasks.address(task);
        self.at_once(cpu, |image| image.release(address));
        self.tasks.remove(task);
        progress
    }

    fn try_to_wake_up(&mut self, cpu: Cpu, task: TaskId, sync: bool) -> WakeupProgress {
        let known = self.tasks.get(task);
        let (left, on) = known.left;
        if known.asleep && left > self.now.max(self.busy_until[cpu.index()]) {
            return WakeupProgress::OnCpu(on);
        }
        self.wake(cpu, task, sync)
    }

    /// The CPU that it slept on has been waited for.
    fn try_to_wake_up_again(&mut self, cpu: Cpu, task: TaskId, sync: bool) -> WakeupProgress {
        self.wake(cpu, task, sync)
    }

    fn schedule(&mut self, cpu: Cpu, prev_state: TaskState) -> ScheduleProgress {
        let (task, state) = (self.curr(cpu), state_word(prev_state));
        self.tasks.get_mut(task).asleep = ![RUNNABLE, PREEMPTED].contains(&state);
        self.switch(cpu, |image| image.schedule(state))
    }

    fn schedule_again(&mut self, cpu: Cpu) -> ScheduleProgress {
        unreachable!("schedule() is over when it returns on CPU {cpu}")
    }

    fn yield_task(&mut self, cpu: Cpu) {
        self.at_once(cpu, LoadedImage::yield_task);
    }

    fn tick(&mut self, cpu: Cpu) -> Ns {
        self.balance(cpu, LoadedImage::tick)
    }

    /// Its timers: of slices, of groups' quotas, of real-time tasks' limit.
    fn clock_event(&mut self, cpu: Cpu) {
        self.at_once(cpu, LoadedImage::clock_event);
    }

    fn clock_event_wakes(&self, _: Cpu) -> bool {
        true
    }

    fn receive(&mut self, cpu: Cpu, message: ImageMessage) -> MessageEffect {
        let ImageMessage::Interrupt { ipi } = message;
        let took = self.balance(cpu, |image| image.receive(ipi));
        let activated = u64::from(std::mem::take(&mut self.left_to[cpu.index()]));
        MessageEffect { took: took + Ns(activated * self.costs.activate.0), wakes: None }
    }

    #[inline]
    fn has_user_mode_work(&self, cpu: Cpu) -> bool {
        self.image.user_work(cpu.0 as i32) != 0
    }

    #[inline]
    fn user_mode_work(&mut self, cpu: Cpu) -> bool {
        if !self.has_user_mode_work(cpu) {
            return false;
        }
        self.at_once(cpu, LoadedImage::run_user_work);
        self.need_resched(cpu)
    }

    fn idle_work(&mut self, cpu: Cpu) -> Ns {
        self.balance(cpu, LoadedImage::idle_begin)
    }

    fn idle_call_stops_tick(&self, got_tick: bool) -> bool {
        self.image.idle_keeps_tick(got_tick.into()) == 0
    }

    fn tick_is_stopped(&mut self, cpu: Cpu) {
        self.tick_stopped[cpu.index()] = true;
        self.at_once(cpu, LoadedImage::tick_stopped);
    }

    fn idle_set_state(&mut self, cpu: Cpu, exit_latency: Option<Ns>) {
        self.at_once(cpu, |image| image.idle_state(exit_latency.map_or(NEVER, |latency| latency.0)));
    }

    fn report_idle_state(&mut self, cpu: Cpu, state: Option<u32>) {
        let text = format!("state={} cpu_id={}", state.unwrap_or(u32::MAX), cpu.0);
        self.report_text(UntypedTracepoint::CpuIdle.name(), text);
    }

    fn begin_kthread_work(&mut self, cpu: Cpu) -> Ns {
        let works = self.is_stopper(self.curr(cpu)) && self.at_once(cpu, LoadedImage::stopper_work) != 0;
        if works { self.costs.migrate } else { Ns::ZERO }
    }

    fn finish_kthread_work(&mut self, cpu: Cpu) -> Option<Ns> {
        if self.is_stopper(self.curr(cpu)) {
            while self.at_once(cpu, LoadedImage::run_stopper) != 0 {}
        }
        None
    }

    fn set_in_iowait(&mut self, task: TaskId) {
        let address = self.tasks.address(task);
        self.at_once(self.here, |image| image.set_iowait(address));
    }

    fn set_scheduler(
        &mut self,
        task: TaskId,
        policy: Option<Policy>,
        nice: Option<i32>,
        request: Option<Ns>,
    ) {
        let address = self.tasks.address(task);
        let (policy, rt_priority) = policy.map_or((-1, 0), policy_words);
        let (nice, slice) = (nice.unwrap_or(KEEP), request.map_or(0, |request| request.0));
        let result =
            self.at_once(self.here, |image| image.set_scheduler(address, policy, rt_priority, nice, slice));
        must(result, "sched_setattr()");
    }

    fn set_cpus_allowed(&mut self, cpu: Cpu, task: TaskId, allowed: CpuMask) -> Option<ScheduleProgress> {
        let (address, asks) = (self.tasks.address(task), self.curr(cpu));
        self.report_allowed(task, &allowed);
        let words = mask_words(&allowed, self.nr_cpus);
        let result = self.at_once(cpu, |image| image.set_allowed(address, &words));
        must(result, "sched_setaffinity()");
        let waits = self.curr(cpu) != asks;
        waits.then_some(ScheduleProgress::Switched { changed: true, took: Ns::ZERO, searched: None })
    }

    fn new_group(&mut self, parent: GroupId, weight: u64) -> GroupId {
        let (id, parent) = (GroupId(self.groups.len() as u32), self.group(parent));
        let group = self.at_once(self.here, |image| image.new_group(parent, &format!("group{}", id.0)));
        assert!(group != GroupPtr::ROOT, "the kernel has made no group");
        self.groups.push(group);
        self.write_group(id, "weight", &weight.to_string());
        id
    }

    fn set_group_weight(&mut self, group: GroupId, weight: u64) {
        self.write_group(group, "weight", &weight.to_string());
    }

    fn set_group_idle(&mut self, group: GroupId, idle: bool) {
        let changes = if idle { self.idle_groups.insert(group.0) } else { self.idle_groups.remove(&group.0) };
        if changes {
            self.write_group(group, "idle", if idle { "1" } else { "0" });
        }
    }

    fn set_group_bandwidth(&mut self, group: GroupId, limit: CfsLimit, offset: Ns) {
        let before = self.limits.insert(group.0, limit).unwrap_or(CfsLimit::UNLIMITED);
        if before == limit {
            return;
        }
        let address = self.group(group);
        self.at_once(self.here, |image| image.group_phase(address, offset.0));
        if before.burst() > Ns::ZERO {
            // A burst above the quota is refused, whichever of the two is written first.
            self.write_group(group, "max.burst", "0");
        }
        let quota = limit.quota().map_or("max".to_string(), |quota| (quota.0 / 1000).to_string());
        self.write_group(group, "max", &format!("{quota} {}", limit.period().0 / 1000));
        if limit.burst() > Ns::ZERO {
            self.write_group(group, "max.burst", &(limit.burst().0 / 1000).to_string());
        }
    }

    fn set_group_cpus(&mut self, group: GroupId, effective: &CpuMask) {
        let (address, nr_cpus) = (self.group(group), effective.weight() as i32);
        self.at_once(self.here, |image| image.group_cpus(address, nr_cpus));
    }

    fn group_of(&self, task: TaskId) -> GroupId {
        self.tasks.get(task).group
    }

    fn move_task_to_group(&mut self, task: TaskId, group: GroupId) {
        let (address, to) = (self.tasks.address(task), self.group(group));
        let result = self.at_once(self.here, |image| image.r#move(address, to));
        must(result, "a move to another group");
        self.tasks.get_mut(task).group = group;
    }

    fn report_group(&mut self, group: GroupId, path: &str) {
        let level = path.matches('/').count();
        let text = format!("root=0 id={} level={level} path={path}", group.inode());
        self.report_text(UntypedTracepoint::CgroupMkdir.name(), text);
    }

    fn report_attach(&mut self, task: TaskId, path: &str) {
        let NativeTask { comm, pid, group, .. } = *self.tasks.get(task);
        let level = depth_of(path);
        let inode = if level == 0 { GroupId::ROOT.inode() } else { group.inode() };
        let text =
            format!("dst_root=0 dst_id={inode} dst_level={level} dst_path={path} pid={pid} comm={comm}");
        self.report_text(UntypedTracepoint::CgroupAttachTask.name(), text);
    }
}

impl NativeScheduler {
    /// Writes a file of a group.
    fn write_group(&mut self, group: GroupId, file: &str, value: &str) {
        let address = self.group(group);
        let result = self.at_once(self.here, |image| image.group_write(address, file, value));
        must(result, &format!("'{value}' in cpu.{file}"));
    }

    fn wake(&mut self, cpu: Cpu, task: TaskId, sync: bool) -> WakeupProgress {
        let (address, asleep) = (self.tasks.address(task), self.tasks.get(task).asleep);
        self.tasks.get_mut(task).asleep = false;
        let since = self.host.asked.borrow().len();
        let (_, work) = self.work(cpu, CpuLook::Select, |image| {
            if !asleep {
                // On its way to sleep it has said so, and looks once more whether it must.
                image.set_state(address, INTERRUPTIBLE);
            }
            image.wake(address, sync.into())
        });
        self.tell_work(OwnWork::Search, work.looked, work.took);
        let left = self.note_left(since);
        WakeupProgress::Done(if left { work.took } else { work.took + self.costs.activate })
    }
}
