//! Each call goes to both; where the answer is a decision, the two are compared at once.
//!
//! Must not know: what state is compared when an occurrence is over.

use fairlab_event::{Cpu, Event, Ns, Sink, TaskState};
use fairlab_kernel::core::KernelContext;
use fairlab_kernel::struct_members::{StructMember, StructMembers};
use fairlab_kernel::{CfsLimit, CpuMask, GroupId, Policy, TaskId, TaskSpec};
use fairlab_sim::scheduler_core::{
    CoreRequest, ExecProgress, LineUse, MessageEffect, ScheduleProgress, WakeupProgress,
};
use fairlab_sim::workload::Offer;
use fairlab_sim::{Inspect, SchedulerCore};

use super::compare::DifferenceInWords;
use super::{Oracle, OracleCheck};

impl<L: Inspect, F: Inspect> Oracle<L, F> {
    /// Lets the follower do something, as long as both agree.
    fn follow<R>(&mut self, call: &'static str, act: impl FnOnce(&mut F) -> R) -> Option<R> {
        self.call = call;
        self.touch(self.here.0);
        self.agrees().then(|| act(&mut self.follower))
    }

    /// Lets the follower do something with a task of the leader's that it has, too.
    fn follow_task<R>(
        &mut self,
        call: &'static str,
        task: TaskId,
        act: impl FnOnce(&mut F, TaskId) -> R,
    ) -> Option<R> {
        let theirs = self.follower_of(task)?;
        self.follow(call, |follower| act(follower, theirs))
    }

    /// Both go on until they have switched, at one instant.
    fn schedule_both(
        &mut self,
        call: &'static str,
        cpu: Cpu,
        leads: impl FnOnce(&mut L) -> ScheduleProgress,
        follows: impl FnOnce(&mut F) -> ScheduleProgress,
    ) -> ScheduleProgress {
        let progress = leads(&mut self.leader);
        let progress = until_switched(&mut self.leader, cpu, progress);
        if let Some(begun) = self.follow(call, follows) {
            until_switched(&mut self.follower, cpu, begun);
            self.compare_pick(cpu);
        }
        progress
    }

    fn compare_pick(&mut self, cpu: Cpu) {
        let (leaders, followers) = (self.leader.curr(cpu), self.follower.curr(cpu));
        let agree = self.follower_of(leaders) == Some(followers);
        self.judge(OracleCheck::Pick, cpu, agree, |oracle| {
            DifferenceInWords::new("curr", &oracle.name_of(leaders), &oracle.follower_name(followers))
        });
    }

    fn compare_resched(&mut self, check: OracleCheck, cpu: Cpu) {
        if self.agrees() {
            let (ours, theirs) = (self.leader.need_resched(cpu), self.follower.need_resched(cpu));
            self.judge(check, cpu, ours == theirs, |_| {
                DifferenceInWords::new("need_resched", &ours, &theirs)
            });
        }
    }

    /// A task was woken: on which CPU is it queued, and does it take that?
    fn compare_wakeup(&mut self, task: TaskId) {
        let Some(theirs) = self.follower_of(task).filter(|_| self.agrees()) else { return };
        let (ours, theirs) = (cpu_of(&self.leader, task), cpu_of(&self.follower, theirs));
        let here = self.here.0;
        self.judge(OracleCheck::WakeupCpu, here, ours == theirs, |_| {
            DifferenceInWords::new("cpu", &shown(ours), &shown(theirs))
        });
        if let Some(cpu) = ours {
            self.touch(cpu);
            self.compare_resched(OracleCheck::WakeupPreempt, cpu);
        }
    }

    /// What the follower has on its way to `cpu` arrives: all of it, or the next.
    fn deliver(&mut self, cpu: Cpu, all: bool) {
        while let Some(message) = self.messages.take_interrupt(cpu) {
            let received = self.follow("receive", |follower| follower.receive(cpu, message));
            if let Some(task) = received.and_then(|received| received.wakes) {
                self.follower.try_to_wake_up(cpu, task, false);
            }
            if !all {
                return;
            }
        }
    }

    fn deliver_timers(&mut self, cpu: Cpu) {
        let now = self.here.2;
        while let Some(message) = self.messages.take_timer(cpu, now) {
            self.follow("clock_event", |follower| follower.receive(cpu, message));
        }
        if self.messages.take_clock_event(cpu, now) {
            self.follow("clock_event", |follower| follower.clock_event(cpu));
        }
    }
}

/// Lets a search for work go on until it is over. What its steps take is given as one sum.
fn until_switched(
    scheduler: &mut impl SchedulerCore,
    cpu: Cpu,
    mut progress: ScheduleProgress,
) -> ScheduleProgress {
    let mut busy = Ns::ZERO;
    loop {
        match progress {
            ScheduleProgress::Busy(took) => {
                busy += took;
                progress = scheduler.schedule_again(cpu);
            }
            ScheduleProgress::Switched { changed, took, searched } => {
                return ScheduleProgress::Switched { changed, took: took + busy, searched };
            }
        }
    }
}

fn cpu_of(scheduler: &impl Inspect, task: TaskId) -> Option<Cpu> {
    member_of(scheduler, task, StructMember::TaskCpu).map(|cpu| Cpu(cpu as u32))
}

fn queued(scheduler: &impl Inspect, task: TaskId) -> bool {
    member_of(scheduler, task, StructMember::TaskOnRq) == Some(1)
}

fn member_of(scheduler: &impl Inspect, task: TaskId, wanted: StructMember) -> Option<i64> {
    let mut members = StructMembers::new();
    scheduler.members_of_task(task, &mut members);
    members.iter().find(|(member, _)| *member == wanted).map(|(_, value)| *value)
}

fn shown(cpu: Option<Cpu>) -> String {
    cpu.map_or("none".to_string(), |cpu| cpu.0.to_string())
}

impl<L: Inspect, F: Inspect> SchedulerCore for Oracle<L, F> {
    type Message = L::Message;

    fn name(&self) -> String {
        self.leader.name()
    }

    fn knows_idle_groups(&self) -> bool {
        self.leader.knows_idle_groups()
    }

    fn knows_bursts(&self) -> bool {
        self.leader.knows_bursts()
    }

    fn set_here(&mut self, cpu: Cpu, mode: KernelContext, now: Ns) {
        self.here = (cpu, mode, now);
        self.leader.set_here(cpu, mode, now);
        self.follower.set_here(cpu, mode, now);
    }

    fn set_tracing(&mut self, enabled: bool) {
        self.tracing = enabled;
    }

    fn set_probes(&mut self, enabled: bool) {
        self.leader.set_probes(enabled);
    }

    /// An occurrence is over: its events tell what has changed, and that is compared.
    fn drain_events(&mut self, sink: &mut dyn Sink) {
        let (mut moved, tracing) = (Vec::new(), self.tracing);
        let mut touched = std::mem::take(&mut self.touched);
        self.leader.drain_events(&mut TouchedCpusTee {
            sink: tracing.then_some(sink),
            touched: &mut touched,
            moved: &mut moved,
        });
        let mut followed = Vec::new();
        self.follower.drain_events(&mut TouchedCpusTee {
            sink: None,
            touched: &mut touched,
            moved: &mut followed,
        });
        self.touched = touched;
        if self.agrees() {
            self.compare_moves(&moved, &followed);
            self.settle();
            self.compare_touched();
        }
        self.touched.clear();
    }

    fn boot_is_over(&mut self) {
        self.leader.boot_is_over();
        self.follower.boot_is_over();
    }

    fn curr(&self, cpu: Cpu) -> TaskId {
        self.leader.curr(cpu)
    }

    fn runs_idle_task(&self, cpu: Cpu) -> bool {
        self.leader.runs_idle_task(cpu)
    }

    fn need_resched(&self, cpu: Cpu) -> bool {
        self.leader.need_resched(cpu)
    }

    fn preempts_kernel(&self, cpu: Cpu) -> bool {
        self.leader.preempts_kernel(cpu)
    }

    fn takes_offer(&self, cpu: Cpu, offer: Offer) -> bool {
        self.leader.takes_offer(cpu, offer)
    }

    fn has_marked(&self) -> bool {
        self.leader.has_marked()
    }

    fn take_marked(&mut self, into: &mut Vec<Cpu>) {
        let before = into.len();
        self.leader.take_marked(into);
        for &cpu in &into[before..] {
            self.touch(cpu);
        }
    }

    fn has_requests(&self) -> bool {
        self.leader.has_requests()
    }

    fn take_requests(&mut self, into: &mut Vec<CoreRequest<L::Message>>) {
        let before = into.len();
        self.leader.take_requests(into);
        for request in &into[before..] {
            if let CoreRequest::Interrupt { cpu, .. } = request {
                self.messages.leader_interrupts(*cpu);
            }
        }
    }

    fn has_deferred(&self) -> bool {
        self.leader.has_deferred()
    }

    fn end_of_work(&mut self, cpu: Cpu) -> Ns {
        self.leader.end_of_work(cpu)
    }

    fn task_cpu(&self, task: TaskId) -> Option<Cpu> {
        self.leader.task_cpu(task)
    }

    fn set_line_uses(&mut self, enabled: bool) {
        self.leader.set_line_uses(enabled);
    }

    fn has_line_uses(&self) -> bool {
        self.leader.has_line_uses()
    }

    fn take_line_uses(&mut self, into: &mut Vec<LineUse>) {
        self.leader.take_line_uses(into);
    }

    fn set_top_speed(&mut self, cpu: Cpu, top: u64) {
        self.leader.set_top_speed(cpu, top);
        self.follower.set_top_speed(cpu, top);
    }

    fn new_kthread(&mut self, spec: &TaskSpec, cpu: Cpu) -> TaskId {
        let ours = self.leader.new_kthread(spec, cpu);
        if let Some(theirs) = self.follow("new_kthread", |follower| follower.new_kthread(spec, cpu)) {
            self.pair(ours, theirs);
        }
        ours
    }

    fn new_task(&mut self, spec: &TaskSpec, group: Option<GroupId>, cpu: Cpu) -> TaskId {
        let ours = self.leader.new_task(spec, group, cpu);
        let group = group.map(|group| self.groups[group.0 as usize]);
        if let Some(theirs) = self.follow("fork", |follower| follower.new_task(spec, group, cpu)) {
            self.pair(ours, theirs);
        }
        ours
    }

    fn report_fork(&mut self, task: TaskId) {
        self.leader.report_fork(task);
        self.forked = Some(task);
        self.follow_task("fork", task, F::report_fork);
    }

    fn wake_up_new_task(&mut self, cpu: Cpu, task: TaskId) {
        self.leader.wake_up_new_task(cpu, task);
        // In a kernel every task is forked, a workload's first one too.
        if self.forked.take() != Some(task) && self.leader.rest().is_some() {
            self.follow_task("fork", task, F::report_fork);
        }
        self.follow_task("wake_up_new_task", task, |follower, task| follower.wake_up_new_task(cpu, task));
        self.compare_wakeup(task);
    }

    /// Who leaves for another CPU makes way for the stopper in both.
    fn sched_exec(&mut self, cpu: Cpu) -> ExecProgress {
        let progress = self.leader.sched_exec(cpu);
        let followed = self.follow("sched_exec", |follower| match follower.sched_exec(cpu) {
            ExecProgress::Leaves(begun) => {
                until_switched(follower, cpu, begun);
            }
            ExecProgress::Stays(_) => {}
        });
        if followed.is_some() {
            self.compare_pick(cpu);
        }
        progress
    }

    fn exit(&mut self, cpu: Cpu) -> ScheduleProgress {
        self.schedule_both("exit", cpu, |leader| leader.exit(cpu), |follower| follower.exit(cpu))
    }

    fn try_to_wake_up(&mut self, cpu: Cpu, task: TaskId, sync: bool) -> WakeupProgress {
        let wakeup = self.leader.try_to_wake_up(cpu, task, sync);
        self.follow_task("try_to_wake_up", task, |follower, task| follower.try_to_wake_up(cpu, task, sync));
        self.compare_wakeup(task);
        wakeup
    }

    fn try_to_wake_up_again(&mut self, cpu: Cpu, task: TaskId, sync: bool) -> WakeupProgress {
        let wakeup = self.leader.try_to_wake_up_again(cpu, task, sync);
        self.follow_task("try_to_wake_up", task, |follower, task| {
            follower.try_to_wake_up_again(cpu, task, sync)
        });
        wakeup
    }

    fn schedule(&mut self, cpu: Cpu, prev_state: TaskState) -> ScheduleProgress {
        let leads = |leader: &mut L| leader.schedule(cpu, prev_state);
        self.schedule_both("schedule", cpu, leads, |follower| follower.schedule(cpu, prev_state))
    }

    fn schedule_again(&mut self, cpu: Cpu) -> ScheduleProgress {
        unreachable!("schedule() on CPU {} has switched", cpu.0)
    }

    fn yield_task(&mut self, cpu: Cpu) {
        self.leader.yield_task(cpu);
        self.follow("sched_yield", |follower| follower.yield_task(cpu));
    }

    fn tick(&mut self, cpu: Cpu) -> Ns {
        let took = self.leader.tick(cpu);
        self.follow("scheduler_tick", |follower| follower.tick(cpu));
        self.compare_resched(OracleCheck::TickPreempt, cpu);
        took
    }

    fn clock_event(&mut self, cpu: Cpu) {
        self.leader.clock_event(cpu);
        self.deliver_timers(cpu);
    }

    fn receive(&mut self, cpu: Cpu, message: L::Message) -> MessageEffect {
        let is_last = self.messages.leader_receives(cpu);
        let received = self.leader.receive(cpu, message);
        self.deliver(cpu, is_last);
        self.deliver_timers(cpu);
        received
    }

    fn clock_event_wakes(&self, cpu: Cpu) -> bool {
        self.leader.clock_event_wakes(cpu)
    }

    fn has_user_mode_work(&self, cpu: Cpu) -> bool {
        self.leader.has_user_mode_work(cpu)
    }

    fn user_mode_work(&mut self, cpu: Cpu) -> bool {
        let ours = self.leader.user_mode_work(cpu);
        let theirs = self.follow("resume_user_mode_work", |follower| follower.user_mode_work(cpu));
        if let Some(theirs) = theirs {
            self.judge(OracleCheck::Bandwidth, cpu, ours == theirs, |_| {
                DifferenceInWords::new("leaves the CPU", &ours, &theirs)
            });
        }
        ours
    }

    fn idle_work(&mut self, cpu: Cpu) -> Ns {
        let took = self.leader.idle_work(cpu);
        self.follow("do_idle", |follower| follower.idle_work(cpu));
        took
    }

    fn idle_call_stops_tick(&self, got_tick: bool) -> bool {
        self.leader.idle_call_stops_tick(got_tick)
    }

    fn tick_is_stopped(&mut self, cpu: Cpu) {
        self.leader.tick_is_stopped(cpu);
        self.follow("nohz_balance_enter_idle", |follower| follower.tick_is_stopped(cpu));
    }

    fn idle_set_state(&mut self, cpu: Cpu, exit_latency: Option<Ns>) {
        self.leader.idle_set_state(cpu, exit_latency);
        self.follow("idle_set_state", |follower| follower.idle_set_state(cpu, exit_latency));
    }

    fn report_idle_state(&mut self, cpu: Cpu, state: Option<u32>) {
        self.leader.report_idle_state(cpu, state);
    }

    fn begin_kthread_work(&mut self, cpu: Cpu) -> Ns {
        let took = self.leader.begin_kthread_work(cpu);
        self.follow("cpu_stopper_thread", |follower| follower.begin_kthread_work(cpu));
        took
    }

    fn finish_kthread_work(&mut self, cpu: Cpu) -> Option<Ns> {
        let more = self.leader.finish_kthread_work(cpu);
        self.follow("cpu_stopper_thread", |follower| follower.finish_kthread_work(cpu));
        more
    }

    fn set_in_iowait(&mut self, task: TaskId) {
        self.leader.set_in_iowait(task);
        self.follow_task("io_schedule", task, F::set_in_iowait);
    }

    fn set_scheduler(
        &mut self,
        task: TaskId,
        policy: Option<Policy>,
        nice: Option<i32>,
        request: Option<Ns>,
    ) {
        self.leader.set_scheduler(task, policy, nice, request);
        self.follow_task("sched_setattr", task, |follower, task| {
            follower.set_scheduler(task, policy, nice, request);
        });
    }

    /// A leader that has switched already to the stopper is followed by one that has it only marked. The task then waits for
    /// the stopper asleep, or stays queued where it was preempted before it could fall asleep.
    fn set_cpus_allowed(&mut self, cpu: Cpu, task: TaskId, allowed: CpuMask) -> Option<ScheduleProgress> {
        let asks = self.leader.curr(cpu);
        let switched = self.leader.set_cpus_allowed(cpu, task, allowed);
        let state = if queued(&self.leader, asks) { TaskState::RUNNABLE } else { TaskState::UNINTERRUPTIBLE };
        self.follow_task("sched_setaffinity", task, |follower, task| {
            let progress = follower.set_cpus_allowed(cpu, task, allowed);
            if switched.is_some() && progress.is_none() {
                let begun = follower.schedule(cpu, state);
                until_switched(follower, cpu, begun);
            }
        });
        if switched.is_some() {
            self.compare_pick(cpu);
        }
        switched
    }

    fn new_group(&mut self, parent: GroupId, weight: u64) -> GroupId {
        let ours = self.leader.new_group(parent, weight);
        let parent = self.groups[parent.0 as usize];
        if let Some(theirs) =
            self.follow("cpu_cgroup_css_alloc", |follower| follower.new_group(parent, weight))
        {
            let place = ours.0 as usize;
            self.groups.resize(self.groups.len().max(place + 1), GroupId::ROOT);
            self.groups[place] = theirs;
        }
        ours
    }

    fn set_group_weight(&mut self, group: GroupId, weight: u64) {
        self.leader.set_group_weight(group, weight);
        let group = self.groups[group.0 as usize];
        self.follow("cpu.weight", |follower| follower.set_group_weight(group, weight));
    }

    fn set_group_idle(&mut self, group: GroupId, idle: bool) {
        self.leader.set_group_idle(group, idle);
        let group = self.groups[group.0 as usize];
        self.follow("cpu.idle", |follower| follower.set_group_idle(group, idle));
    }

    fn set_group_bandwidth(&mut self, group: GroupId, limit: CfsLimit, offset: Ns) {
        self.leader.set_group_bandwidth(group, limit, offset);
        let group = self.groups[group.0 as usize];
        self.follow("cpu.max", |follower| follower.set_group_bandwidth(group, limit, offset));
    }

    fn set_group_cpus(&mut self, group: GroupId, effective: &CpuMask) {
        self.leader.set_group_cpus(group, effective);
        let group = self.groups[group.0 as usize];
        self.follow("cpuset.cpus", |follower| follower.set_group_cpus(group, effective));
    }

    fn group_of(&self, task: TaskId) -> GroupId {
        self.leader.group_of(task)
    }

    fn move_task_to_group(&mut self, task: TaskId, group: GroupId) {
        self.leader.move_task_to_group(task, group);
        let group = self.groups[group.0 as usize];
        self.follow_task("sched_move_task", task, |follower, task| follower.move_task_to_group(task, group));
    }

    fn report_group(&mut self, group: GroupId, path: &str) {
        self.leader.report_group(group, path);
    }

    fn report_attach(&mut self, task: TaskId, path: &str) {
        self.leader.report_attach(task, path);
    }
}

/// Passes events on, and notes which CPUs they touch and what moves.
struct TouchedCpusTee<'a> {
    sink: Option<&'a mut dyn Sink>,
    touched: &'a mut Vec<Cpu>,
    moved: &'a mut Vec<super::compare::MovedTask>,
}

impl Sink for TouchedCpusTee<'_> {
    fn event(&mut self, event: &Event<'_>) {
        super::compare::note(event, self.touched, self.moved);
        if let Some(sink) = &mut self.sink {
            sink.event(event);
        }
    }
}
