//! The modelled scheduler as the engine drives it: the pure core with the steps, the costs and the kernel threads that a
//! driver owes it.
//!
//! The core decides and applies at an instant. Here are the sequences that take time: a wakeup from `ttwu_begin()` to the
//! queue, a new-idle search from level to level, a softirq with the stoppers that it wakes.
//!
//! Must not know: programs, threads, how virtual time is ordered.

mod balance;
mod kthreads;
mod newidle;
mod wakeup;

pub(crate) use kthreads::kthread;

use fairlab_event::{Cpu, Ns, Sink, TaskState, UntypedTracepoint};
use fairlab_kernel::core::{KernelContext, Scheduler};
use fairlab_kernel::cpufreq::FrequencyRequest;
use fairlab_kernel::decision::PickReason;
use fairlab_kernel::generation::PreemptionModel;
use fairlab_kernel::invariant::Looks;
use fairlab_kernel::work_events::SchedulerWork;
use fairlab_kernel::{CfsLimit, CpuMask, Generation, GroupId, GroupTimer, Policy, TaskId, TaskSpec};

use crate::engine::Engine;
use crate::machine::speed::{FULL_SPEED, WHOLE, scale};
use crate::machine::{KernelCosts, Machine, Sharing};
use crate::scheduler_core::{
    CoreRequest, ExecProgress, LineUse, MessageEffect, ScheduleProgress, SchedulerCore, WakeupProgress,
    depth_of,
};
use crate::workload::Offer;
use kthreads::{Governor, StopperWork, later};
use newidle::Newidle;

/// How often builds with debug assertions look through the scheduler's state.
const DEBUG_LOOKS: Looks = Looks::new(64, 16);

/// The modelled scheduler of one machine.
pub struct Model {
    scheduler: Scheduler,
    costs: KernelCosts,
    /// What reading lines of other cores takes; nothing where CPUs take turns.
    sharing: Sharing,
    nr_cpus: usize,
    /// Per CPU what it does at its highest frequency, of 1024.
    top_speeds: Vec<u64>,
    now: Ns,
    /// Its kernel is preempted in kernel work.
    preempts: bool,
    /// All CPUs are as fast as the one thread that carries them out.
    in_turn: bool,
    newidle: Vec<Newidle>,
    /// Per CPU the tasks that its stopper is to move.
    banned: Vec<Vec<StopperWork>>,
    /// Tasks that have asked for their own move, until it is done, and whether they sleep until then.
    movers: Vec<(TaskId, bool)>,
    /// Per CPU the wakeups that were left to it, and whether each task slept on another CPU.
    wake_lists: Vec<Vec<(TaskId, bool)>>,
    /// The threads that set clocks.
    governors: Vec<Governor>,
    requests: Vec<CoreRequest<ModelMessage>>,
    frequency_requests: Vec<FrequencyRequest>,
    group_timers: Vec<GroupTimer>,
    /// When the scheduler's state is looked through.
    looks: Option<Looks>,
    /// Lent to the scheduler, which fills it.
    cpus: Vec<Cpu>,
    /// Busy CPUs' kicks never arrive: a broken rule, for tests of what rules promise.
    #[cfg(test)]
    pub(crate) loses_kicks: bool,
}

/// What the modelled scheduler sends to a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelMessage {
    /// A busy CPU asks this idle one to balance for idle ones.
    NohzKick,
    /// Wakeups were left to this CPU (`ttwu_queue_wakelist()`).
    WakeList,
    /// A timer of a control group with a quota expires here.
    GroupTimer(GroupTimer),
    /// Groups that were throttled come back to this CPU.
    Unthrottle,
    /// This CPU is to start the timer that ends the running slice (`__hrtick_start()`).
    Hrtick,
    /// A governor asked here for a frequency that its thread has to set (`sugov_irq_work()`).
    Governor {
        /// Which of them.
        number: usize,
    },
}

impl Model {
    /// A machine at rest under `generation`.
    pub fn new(generation: Generation, machine: &Machine) -> Model {
        let preempts = generation.core.preemption_model.preempts_kernel();
        let mut scheduler = Scheduler::new(generation, machine.topology.clone(), machine.tick());
        scheduler.set_frequency_domains(machine.frequency_domains.clone());
        scheduler.set_energy_model(&machine.energy_model);
        let nr_cpus = machine.topology.nr_cpus();
        let mut model = Model {
            scheduler,
            costs: machine.costs,
            sharing: if machine.in_turn { Sharing::NONE } else { machine.sharing },
            nr_cpus,
            top_speeds: vec![WHOLE; nr_cpus],
            now: Ns::ZERO,
            preempts,
            in_turn: machine.in_turn,
            newidle: vec![Newidle::default(); nr_cpus],
            banned: vec![Vec::new(); nr_cpus],
            movers: Vec::new(),
            wake_lists: vec![Vec::new(); nr_cpus],
            governors: Vec::new(),
            requests: Vec::new(),
            frequency_requests: Vec::new(),
            group_timers: Vec::new(),
            looks: cfg!(debug_assertions).then_some(DEBUG_LOOKS),
            cpus: Vec::new(),
            #[cfg(test)]
            loses_kicks: false,
        };
        model.create_stoppers();
        model.create_governors();
        model
    }

    /// The core's state.
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// The core's state, to switch on what it notes.
    pub fn scheduler_mut(&mut self) -> &mut Scheduler {
        &mut self.scheduler
    }

    /// From now on the scheduler's state is looked through so often, in every build.
    pub fn look_through(&mut self, looks: Looks) {
        self.looks = Some(looks);
    }

    /// How long `cpu` takes, as fast as it is now, for what takes `work` at full speed.
    fn time_for(&self, cpu: Cpu, work: Ns) -> Ns {
        let speed = self.top_speeds[cpu.index()] * self.scheduler.frequency(cpu);
        scale(work, FULL_SPEED, if self.in_turn { FULL_SPEED } else { speed.max(1) })
    }

    fn interrupt(&mut self, cpu: Cpu, message: ModelMessage) {
        self.requests.push(CoreRequest::Interrupt { cpu, message });
    }

    /// The running task of `cpu` has left its queue if it leaves; in which state, the switch will report.
    fn pick_next(&mut self, cpu: Cpu, prev_state: TaskState) -> ScheduleProgress {
        if self.scheduler.stays_idle(cpu) {
            let changed = self.scheduler.context_switch(cpu, self.scheduler.idle_task(cpu), prev_state);
            return ScheduleProgress::Switched { changed, took: Ns::ZERO, searched: None };
        }
        self.scheduler.before_pick(cpu);
        let pick = self.scheduler.pick_next_task(cpu);
        if pick.reason == PickReason::Nothing && !self.scheduler.newidle_is_skipped(cpu) {
            // Also where the idle task was to make way, and what it was to make way for is not there.
            return self.begin_newidle(cpu, prev_state);
        }
        let changed = self.scheduler.context_switch(cpu, pick.task, prev_state);
        ScheduleProgress::Switched { changed, took: Ns::ZERO, searched: None }
    }
}

impl SchedulerCore for Model {
    type Message = ModelMessage;

    fn drive(engine: &mut Engine<Model>, end: Ns, sink: &mut dyn Sink, goes_on: &dyn Fn() -> bool) {
        engine.run_loop(end, sink, goes_on);
    }

    fn name(&self) -> String {
        self.scheduler.generation().name().to_string()
    }

    fn knows_idle_groups(&self) -> bool {
        self.scheduler.knows_idle_groups()
    }

    #[inline]
    fn set_here(&mut self, cpu: Cpu, mode: KernelContext, now: Ns) {
        self.now = now;
        self.scheduler.set_here(cpu, mode, now);
    }

    fn set_tracing(&mut self, enabled: bool) {
        self.scheduler.set_tracing(enabled);
    }

    fn set_probes(&mut self, enabled: bool) {
        self.scheduler.set_probes(enabled);
    }

    fn set_decisions(&mut self, enabled: bool) {
        self.scheduler.set_decisions(enabled);
    }

    fn set_balancing_told(&mut self, enabled: bool) {
        self.scheduler.set_balancing_told(enabled);
    }

    fn schedstat(&mut self, now: Ns) -> Option<String> {
        Some(self.scheduler.schedstat(now, true))
    }

    fn own_counters(&self) -> Vec<(&'static str, u64)> {
        let updates = self.scheduler.topology().cpus().map(|cpu| self.scheduler.remote_updates(cpu));
        vec![("nohz_stats_updates", updates.sum())]
    }

    #[inline]
    fn tell_work(&mut self, work: SchedulerWork, units: u64, took: Ns) {
        self.scheduler.tell_work(work, units, took);
    }

    #[inline]
    fn drain_events(&mut self, sink: &mut dyn Sink) {
        self.scheduler.drain_events(sink);
        if let Some(looks) = &mut self.looks {
            looks.occurred(&self.scheduler);
        }
    }

    fn boot_is_over(&mut self) {
        self.scheduler.reuse_tasks();
    }

    #[inline]
    fn curr(&self, cpu: Cpu) -> TaskId {
        self.scheduler.curr(cpu)
    }

    #[inline]
    fn runs_idle_task(&self, cpu: Cpu) -> bool {
        self.scheduler.runs_idle_task(cpu)
    }

    #[inline]
    fn need_resched(&self, cpu: Cpu) -> bool {
        self.scheduler.need_resched(cpu)
    }

    #[inline]
    fn preempts_kernel(&self, cpu: Cpu) -> bool {
        self.preempts && self.scheduler.need_resched_at_once(cpu)
    }

    fn takes_offer(&self, cpu: Cpu, offer: Offer) -> bool {
        let takes = match self.scheduler.generation().core.preemption_model {
            PreemptionModel::None => offer == Offer::CondResched,
            PreemptionModel::Voluntary => true,
            PreemptionModel::Full | PreemptionModel::Lazy => false,
        };
        takes && self.scheduler.need_resched_at_once(cpu)
    }

    #[inline]
    fn has_marked(&self) -> bool {
        self.scheduler.has_marked()
    }

    fn take_marked(&mut self, into: &mut Vec<Cpu>) {
        self.scheduler.take_marked(into);
    }

    #[inline]
    fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    fn take_requests(&mut self, into: &mut Vec<CoreRequest<ModelMessage>>) {
        into.append(&mut self.requests);
    }

    #[inline]
    fn has_deferred(&self) -> bool {
        self.scheduler.asks_driver()
    }

    fn end_of_work(&mut self, cpu: Cpu) -> Ns {
        let took = self.serve_governors(cpu);
        self.serve_groups();
        self.serve_hrticks();
        took
    }

    fn task_cpu(&self, task: TaskId) -> Option<Cpu> {
        Some(self.scheduler.task(task).cpu())
    }

    fn set_line_uses(&mut self, enabled: bool) {
        self.scheduler.set_line_uses(enabled);
    }

    #[inline]
    fn has_line_uses(&self) -> bool {
        self.scheduler.has_line_uses()
    }

    fn take_line_uses(&mut self, into: &mut Vec<LineUse>) {
        self.scheduler.take_line_uses(into);
    }

    fn frequency(&self, cpu: Cpu) -> u64 {
        self.scheduler.frequency(cpu)
    }

    fn set_top_speed(&mut self, cpu: Cpu, top: u64) {
        self.top_speeds[cpu.index()] = top;
    }

    fn new_kthread(&mut self, spec: &TaskSpec, cpu: Cpu) -> TaskId {
        let task = self.scheduler.new_task(spec, cpu);
        self.scheduler.lay_asleep(task, cpu);
        task
    }

    fn new_task(&mut self, spec: &TaskSpec, group: Option<GroupId>, cpu: Cpu) -> TaskId {
        let task = self.scheduler.new_task(spec, cpu);
        let group = group.unwrap_or_else(|| self.group_of(self.scheduler.curr(cpu)));
        self.scheduler.set_task_group(task, group);
        task
    }

    fn report_fork(&mut self, task: TaskId) {
        self.scheduler.fork(task);
    }

    fn wake_up_new_task(&mut self, cpu: Cpu, task: TaskId) {
        self.queue_new_task(cpu, task);
    }

    fn sched_exec(&mut self, cpu: Cpu) -> ExecProgress {
        self.choose_for_exec(cpu)
    }

    fn exit(&mut self, cpu: Cpu) -> ScheduleProgress {
        self.scheduler.exit(cpu);
        self.pick_next(cpu, TaskState::DEAD)
    }

    #[inline]
    fn try_to_wake_up(&mut self, cpu: Cpu, task: TaskId, sync: bool) -> WakeupProgress {
        self.begin_wakeup(cpu, task, sync)
    }

    fn try_to_wake_up_again(&mut self, cpu: Cpu, task: TaskId, sync: bool) -> WakeupProgress {
        let sleeps_on = self.scheduler.task(task).cpu();
        if self.scheduler.curr(sleeps_on) == task {
            return WakeupProgress::OnCpu(sleeps_on);
        }
        WakeupProgress::Done(self.select_and_queue(cpu, task, sync))
    }

    #[inline]
    fn schedule(&mut self, cpu: Cpu, prev_state: TaskState) -> ScheduleProgress {
        // do_idle() does what is on its way first (`flush_smp_call_function_queue()`).
        let idles = self.scheduler.runs_idle_task(cpu);
        let flushed = if idles { self.sched_ttwu_pending(cpu) } else { Ns::ZERO };
        self.scheduler.begin_schedule(cpu, prev_state);
        let progress = self.pick_next(cpu, prev_state);
        self.wait_for_stopper(cpu, later(progress, flushed))
    }

    #[inline]
    fn schedule_again(&mut self, cpu: Cpu) -> ScheduleProgress {
        let progress = self.go_on_with_newidle(cpu);
        self.wait_for_stopper(cpu, progress)
    }

    fn yield_task(&mut self, cpu: Cpu) {
        self.scheduler.yield_task(cpu);
    }

    #[inline]
    fn tick(&mut self, cpu: Cpu) -> Ns {
        self.scheduler.scheduler_tick(cpu);
        self.balance_at_tick(cpu)
    }

    /// The timer that ends the running slice, and those of fair servers.
    fn clock_event(&mut self, cpu: Cpu) {
        self.scheduler.clock_event(cpu);
    }

    /// An idle CPU has no slice.
    fn clock_event_wakes(&self, cpu: Cpu) -> bool {
        self.scheduler.clock_event_wakes(cpu)
    }

    #[inline]
    fn receive(&mut self, cpu: Cpu, message: ModelMessage) -> MessageEffect {
        let took = match message {
            ModelMessage::NohzKick => self.nohz_kicked(cpu),
            ModelMessage::WakeList => self.sched_ttwu_pending(cpu),
            ModelMessage::GroupTimer(timer) => {
                self.scheduler.group_timer_expires(timer);
                Ns::ZERO
            }
            ModelMessage::Unthrottle => {
                self.scheduler.unthrottle_queued(cpu);
                Ns::ZERO
            }
            ModelMessage::Hrtick => {
                self.scheduler.hrtick_called(cpu);
                Ns::ZERO
            }
            ModelMessage::Governor { number } => return self.tell_governor(number),
        };
        MessageEffect { took, wakes: None }
    }

    #[inline]
    fn has_user_mode_work(&self, cpu: Cpu) -> bool {
        self.scheduler.has_user_mode_work(cpu)
    }

    #[inline]
    fn user_mode_work(&mut self, cpu: Cpu) -> bool {
        self.scheduler.user_mode_work(cpu)
    }

    fn idle_work(&mut self, cpu: Cpu) -> Ns {
        let work = self.scheduler.nohz_run_idle_balance(cpu);
        self.tell_balance(&work);
        self.cost_of_balance(&work)
    }

    fn idle_call_stops_tick(&self, got_tick: bool) -> bool {
        self.scheduler.idle_call_stops_tick(got_tick)
    }

    fn tick_is_stopped(&mut self, cpu: Cpu) {
        self.scheduler.nohz_balance_enter_idle(cpu);
    }

    fn idle_set_state(&mut self, cpu: Cpu, exit_latency: Option<Ns>) {
        self.scheduler.idle_set_state(cpu, exit_latency);
    }

    fn report_idle_state(&mut self, cpu: Cpu, state: Option<u32>) {
        self.scheduler.report_idle_state(cpu, state);
    }

    fn begin_kthread_work(&mut self, cpu: Cpu) -> Ns {
        match self.governor_on(cpu) {
            Some(number) => self.begin_setting_frequency(number),
            None => self.costs.migrate,
        }
    }

    fn finish_kthread_work(&mut self, cpu: Cpu) -> Option<Ns> {
        match self.governor_on(cpu) {
            Some(number) => self.frequency_is_set(number),
            None => {
                self.push(cpu);
                None
            }
        }
    }

    fn set_in_iowait(&mut self, task: TaskId) {
        self.scheduler.set_in_iowait(task);
    }

    fn set_scheduler(
        &mut self,
        task: TaskId,
        policy: Option<Policy>,
        nice: Option<i32>,
        request: Option<Ns>,
    ) {
        let known = self.scheduler.task(task);
        let (policy, nice) = (policy.unwrap_or(known.policy()), nice.unwrap_or(known.nice()));
        let request = request.or(self.scheduler.own_request(task));
        self.scheduler.set_scheduler(task, policy, nice, request);
    }

    /// Where the task may not stay and runs, the stopper of its CPU moves it; one that waits is moved at once.
    fn set_cpus_allowed(&mut self, here: Cpu, task: TaskId, allowed: CpuMask) -> Option<ScheduleProgress> {
        if self.scheduler.set_cpus_allowed(task, allowed) {
            if self.scheduler.curr(here) == task {
                self.movers.push((task, false));
            }
            self.move_away(task);
        }
        None
    }

    fn new_group(&mut self, parent: GroupId, weight: u64) -> GroupId {
        self.scheduler.new_group(parent, weight)
    }

    fn new_autogroup(&mut self, nice: i32) -> Option<GroupId> {
        self.scheduler.new_autogroup(nice)
    }

    fn set_group_weight(&mut self, group: GroupId, weight: u64) {
        self.scheduler.set_group_weight(group, weight);
    }

    fn set_group_idle(&mut self, group: GroupId, idle: bool) {
        self.scheduler.set_group_idle(group, idle);
    }

    fn set_group_bandwidth(&mut self, group: GroupId, limit: CfsLimit, offset: Ns) {
        self.scheduler.set_group_bandwidth(group, limit, offset);
    }

    fn set_group_cpus(&mut self, group: GroupId, effective: &CpuMask) {
        self.scheduler.set_group_cpus(group, effective);
    }

    fn group_of(&self, task: TaskId) -> GroupId {
        self.scheduler.task(task).group()
    }

    fn move_task_to_group(&mut self, task: TaskId, group: GroupId) {
        self.scheduler.move_task_to_group(task, group);
    }

    fn report_group(&mut self, group: GroupId, path: &str) {
        let level = path.matches('/').count();
        let text = || format!("root=0 id={} level={level} path={path}", group.inode());
        self.scheduler.report_text(UntypedTracepoint::CgroupMkdir.name(), text);
    }

    fn report_attach(&mut self, task: TaskId, path: &str) {
        let known = self.scheduler.task(task);
        let (pid, comm, level) = (known.pid(), known.comm(), depth_of(path));
        // An autogroup is the root group to cgroups.
        let inode = if level == 0 { GroupId::ROOT.inode() } else { known.group().inode() };
        let text =
            format!("dst_root=0 dst_id={inode} dst_level={level} dst_path={path} pid={pid} comm={comm}");
        self.scheduler.report_text(UntypedTracepoint::CgroupAttachTask.name(), || text);
    }
}
