//! A scheduler that is not the model, driven by the same engine: first come, first served, on the CPU where a task began.
//!
//! What the engine promises must not rest on what the model happens to do: ids in a certain order, searches in steps,
//! messages between CPUs.

use std::collections::VecDeque;

use fairlab_event::{Comm, Context, Cpu, Event, EventKind, Ns, Pid, Prio, Sink, Switch, TaskState, sink_fn};
use fairlab_kernel::core::KernelContext;
use fairlab_kernel::{CfsLimit, CpuMask, GroupId, Policy, TaskId, TaskSpec};
use fairlab_sim::scheduler_core::{CoreRequest, MessageEffect, ScheduleProgress, WakeupProgress};
use fairlab_sim::workload::pipe::PipeBench;
use fairlab_sim::workload::spinners::Spinners;
use fairlab_sim::workload::{Offer, Workload};
use fairlab_sim::{Engine, Machine, SchedulerCore};

#[derive(Clone, Debug)]
struct Task {
    comm: Comm,
    pid: Pid,
    cpu: Cpu,
    is_queued: bool,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    curr: Option<TaskId>,
    waiting: VecDeque<TaskId>,
    need_resched: bool,
}

/// Each CPU serves its tasks in the order in which they came; a tick sends the running one to the end.
struct FirstCome {
    tasks: Vec<Task>,
    queues: Vec<Queue>,
    marked: Vec<Cpu>,
    requests: Vec<CoreRequest<TaskId>>,
    events: Vec<Event<'static>>,
    here: (Cpu, Ns),
}

impl FirstCome {
    fn new(machine: &Machine) -> FirstCome {
        let queues = vec![Queue::default(); machine.topology.nr_cpus()];
        let (marked, requests, events) = (Vec::new(), Vec::new(), Vec::new());
        FirstCome { tasks: Vec::new(), queues, marked, requests, events, here: (Cpu(0), Ns::ZERO) }
    }

    fn queue(&mut self, task: TaskId) {
        let cpu = self.tasks[task.index()].cpu;
        self.tasks[task.index()].is_queued = true;
        self.queues[cpu.index()].waiting.push_back(task);
        if self.queues[cpu.index()].curr.is_none() {
            self.queues[cpu.index()].need_resched = true;
            self.marked.push(cpu);
        }
    }

    fn switch(&mut self, cpu: Cpu, prev_state: TaskState) -> ScheduleProgress {
        let queue = &mut self.queues[cpu.index()];
        let next = queue.waiting.pop_front();
        let prev = std::mem::replace(&mut queue.curr, next);
        queue.need_resched = false;
        let name = |task: Option<TaskId>| {
            task.map_or((Comm::default(), Pid::IDLE), |task| {
                let Task { comm, pid, .. } = self.tasks[task.index()];
                (comm, pid)
            })
        };
        let ((prev_comm, prev_pid), (next_comm, next_pid)) = (name(prev), name(next));
        let (prev_prio, next_prio) = (Prio(120), Prio(120));
        let switch = Switch { prev_comm, prev_pid, prev_prio, prev_state, next_comm, next_pid, next_prio };
        let kind = EventKind::SchedSwitch(switch);
        let context = Context::default();
        self.events.push(Event { time: self.here.1, cpu, context, kind });
        ScheduleProgress::Switched { changed: prev != next, took: Ns::ZERO, searched: None }
    }
}

/// Ids begin where no thread's place would be found by counting.
const FIRST: u32 = 7;

impl SchedulerCore for FirstCome {
    type Message = TaskId;

    fn name(&self) -> String {
        "first come, first served".to_string()
    }

    fn knows_idle_groups(&self) -> bool {
        false
    }

    fn set_here(&mut self, cpu: Cpu, _: KernelContext, now: Ns) {
        self.here = (cpu, now);
    }

    fn set_tracing(&mut self, _: bool) {}

    fn set_probes(&mut self, _: bool) {}

    fn drain_events(&mut self, sink: &mut dyn Sink) {
        self.events.drain(..).for_each(|event| sink.event(&event));
    }

    fn boot_is_over(&mut self) {}

    fn curr(&self, cpu: Cpu) -> TaskId {
        self.queues[cpu.index()].curr.unwrap_or(TaskId(FIRST - 1))
    }

    fn runs_idle_task(&self, cpu: Cpu) -> bool {
        self.queues[cpu.index()].curr.is_none()
    }

    fn need_resched(&self, cpu: Cpu) -> bool {
        self.queues[cpu.index()].need_resched
    }

    fn preempts_kernel(&self, _: Cpu) -> bool {
        false
    }

    fn takes_offer(&self, _: Cpu, _: Offer) -> bool {
        false
    }

    fn has_marked(&self) -> bool {
        !self.marked.is_empty()
    }

    fn take_marked(&mut self, into: &mut Vec<Cpu>) {
        into.append(&mut self.marked);
    }

    fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    fn take_requests(&mut self, into: &mut Vec<CoreRequest<TaskId>>) {
        into.append(&mut self.requests);
    }

    fn has_deferred(&self) -> bool {
        false
    }

    fn end_of_work(&mut self, _: Cpu) -> Ns {
        Ns::ZERO
    }

    fn new_kthread(&mut self, spec: &TaskSpec, cpu: Cpu) -> TaskId {
        self.new_task(spec, None, cpu)
    }

    fn new_task(&mut self, spec: &TaskSpec, _: Option<GroupId>, cpu: Cpu) -> TaskId {
        while self.tasks.len() < FIRST as usize {
            self.tasks.push(Task { comm: Comm::default(), pid: Pid::IDLE, cpu, is_queued: false });
        }
        self.tasks.push(Task { comm: spec.comm, pid: spec.pid, cpu, is_queued: false });
        TaskId(self.tasks.len() as u32 - 1)
    }

    fn report_fork(&mut self, _: TaskId) {}

    fn wake_up_new_task(&mut self, _: Cpu, task: TaskId) {
        self.queue(task);
    }

    fn exit(&mut self, cpu: Cpu) -> ScheduleProgress {
        self.schedule(cpu, TaskState::DEAD)
    }

    /// A wakeup from another CPU is left to the task's own.
    fn try_to_wake_up(&mut self, cpu: Cpu, task: TaskId, _: bool) -> WakeupProgress {
        let Task { cpu: target, is_queued, .. } = self.tasks[task.index()];
        match (is_queued, target == cpu) {
            (true, _) => {}
            (false, true) => self.queue(task),
            (false, false) => self.requests.push(CoreRequest::Interrupt { cpu: target, message: task }),
        }
        WakeupProgress::Done(Ns::ZERO)
    }

    fn try_to_wake_up_again(&mut self, cpu: Cpu, task: TaskId, sync: bool) -> WakeupProgress {
        self.try_to_wake_up(cpu, task, sync)
    }

    fn schedule(&mut self, cpu: Cpu, prev_state: TaskState) -> ScheduleProgress {
        let curr = self.queues[cpu.index()].curr;
        if let Some(task) = curr {
            match prev_state.is_runnable() {
                true => self.queues[cpu.index()].waiting.push_back(task),
                false => self.tasks[task.index()].is_queued = false,
            }
        }
        self.switch(cpu, prev_state)
    }

    fn schedule_again(&mut self, cpu: Cpu) -> ScheduleProgress {
        unreachable!("schedule() never takes time on CPU {cpu}")
    }

    fn yield_task(&mut self, _: Cpu) {}

    fn tick(&mut self, cpu: Cpu) -> Ns {
        let queue = &mut self.queues[cpu.index()];
        queue.need_resched |= queue.curr.is_some() && !queue.waiting.is_empty();
        Ns::ZERO
    }

    fn clock_event(&mut self, cpu: Cpu) {
        unreachable!("no timer is armed on CPU {cpu}")
    }

    fn clock_event_wakes(&self, _: Cpu) -> bool {
        false
    }

    fn receive(&mut self, _: Cpu, task: TaskId) -> MessageEffect {
        self.queue(task);
        MessageEffect { took: Ns::ZERO, wakes: None }
    }

    fn has_user_mode_work(&self, _: Cpu) -> bool {
        false
    }

    fn user_mode_work(&mut self, _: Cpu) -> bool {
        false
    }

    fn idle_work(&mut self, _: Cpu) -> Ns {
        Ns::ZERO
    }

    fn idle_call_stops_tick(&self, _: bool) -> bool {
        true
    }

    fn tick_is_stopped(&mut self, _: Cpu) {}

    fn idle_set_state(&mut self, _: Cpu, _: Option<Ns>) {}

    fn report_idle_state(&mut self, _: Cpu, _: Option<u32>) {}

    fn begin_kthread_work(&mut self, cpu: Cpu) -> Ns {
        unreachable!("there is no kernel thread on CPU {cpu}")
    }

    fn finish_kthread_work(&mut self, cpu: Cpu) -> Option<Ns> {
        unreachable!("there is no kernel thread on CPU {cpu}")
    }

    fn set_in_iowait(&mut self, _: TaskId) {}

    fn set_scheduler(&mut self, _: TaskId, _: Option<Policy>, nice: Option<i32>, _: Option<Ns>) {
        assert_eq!(nice.unwrap_or(0), 0, "all come first at times");
    }

    fn set_cpus_allowed(&mut self, _: Cpu, task: TaskId, _: CpuMask) -> Option<ScheduleProgress> {
        unreachable!("task {task:?} stays where it is")
    }

    fn new_group(&mut self, parent: GroupId, _: u64) -> GroupId {
        parent
    }

    fn set_group_weight(&mut self, _: GroupId, _: u64) {}

    fn set_group_idle(&mut self, _: GroupId, _: bool) {}

    fn set_group_bandwidth(&mut self, _: GroupId, _: CfsLimit, _: Ns) {}

    fn group_of(&self, _: TaskId) -> GroupId {
        GroupId::ROOT
    }

    fn move_task_to_group(&mut self, _: TaskId, _: GroupId) {}

    fn report_group(&mut self, _: GroupId, _: &str) {}

    fn report_attach(&mut self, _: TaskId, _: &str) {}
}

/// Runs it on one CPU without chance; gives the workload as it is then, and the switches that were told.
fn run(workload: Box<dyn Workload>, until: Ns) -> (Engine<FirstCome>, u64) {
    let machine = Machine::preset("laptop8").expect("a preset").exact();
    let mut engine = Engine::with_core(FirstCome::new(&machine), machine, 1);
    engine.start(workload);
    let mut switches = 0;
    engine.run_until(
        until,
        &mut sink_fn(|event: &Event<'_>| {
            switches += u64::from(matches!(event.kind, EventKind::SchedSwitch(_)));
        }),
    );
    (engine, switches)
}

fn args(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_string).collect()
}

#[test]
fn tasks_that_compute_take_turns_at_each_tick() {
    let spinners = Spinners::parse(&args("-n 0,0,0 -r 2")).expect("a workload");
    let (engine, switches) = run(Box::new(spinners), Ns::from_secs(3));
    let output = engine.workload(0).output(engine.now());
    let hz = Machine::preset("laptop8").expect("a preset").hz;
    assert!((2 * hz..2 * hz + 40).contains(&switches), "one a tick: {switches}\n{output}");
    assert_eq!(engine.counters().switches, switches, "those that are told are those that are counted");
    assert_eq!(engine.counters().newidle, 0, "it never looks for work");
}

#[test]
fn tasks_that_wake_each_other_get_through() {
    let pipe = PipeBench::parse(&args("-l 1000")).expect("a workload");
    let (engine, switches) = run(Box::new(pipe), Ns::from_secs(10));
    let (_, done) = engine.workload(0).progress().expect("it counts");
    assert_eq!(done, 1000, "{}", engine.workload(0).output(engine.now()));
    assert!(switches >= 2000, "both run once a round: {switches}");
}

#[test]
fn a_run_is_a_function_of_its_inputs_here_too() {
    let run = || {
        let pipe = PipeBench::parse(&args("-l 200")).expect("a workload");
        let (engine, switches) = run(Box::new(pipe), Ns::from_secs(10));
        (switches, engine.counters(), engine.now())
    };
    assert_eq!(run(), run());
}
