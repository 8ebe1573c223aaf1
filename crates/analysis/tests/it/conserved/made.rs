//! Small traces of made-up tasks on three CPUs, and what may be missing of them.
//!
//! Must not know: what analyses make of them.

use fairlab_event::{
    Comm, Context, Cpu, Event, EventKind, Flags, Ns, Pid, Prio, Switch, TaskState, TextFields, Wakeup,
};

const CPUS: usize = 3;
const TASKS: usize = 7;

/// Of these, so many are there when the trace begins.
const OLD: usize = 4;

/// What is missing of a trace, by the places of its events.
#[derive(Clone, Copy, Debug)]
pub enum Cut {
    /// Everything in a range.
    Range(usize, usize),
    /// The same, and each CPU says so.
    Lost(usize, usize),
    /// The events of one CPU before a place.
    Head(u32, usize),
    /// The same, and the CPU says so before its first event.
    MarkedHead(u32, usize),
    /// The events of one CPU in a range.
    OnCpu(u32, usize, usize),
}

impl Cut {
    /// What is left.
    pub fn apply(self, whole: &[Event<'static>]) -> Vec<Event<'static>> {
        let numbered = whole.iter().copied().enumerate();
        let without = |is_missing: &dyn Fn(usize, &Event<'_>) -> bool| {
            let kept = numbered.clone().filter(|(place, event)| !is_missing(*place, event));
            kept.map(|(_, event)| event).collect::<Vec<_>>()
        };
        match self {
            Cut::Range(from, to) => without(&|place, _| (from..to).contains(&place)),
            Cut::Lost(from, to) => {
                let mut left = without(&|place, _| (from..to).contains(&place));
                let time = whole[to - 1].time;
                let lost = |cpu| Event::new(time, Cpu(cpu), EventKind::Lost { count: None });
                left.splice(from..from, (0..CPUS as u32).map(lost));
                left
            }
            Cut::Head(cpu, to) => without(&|place, event| place < to && event.cpu == Cpu(cpu)),
            Cut::MarkedHead(cpu, to) => {
                let mut left = without(&|place, event| place < to && event.cpu == Cpu(cpu));
                if let Some(first) = left.iter().position(|event| event.cpu == Cpu(cpu)) {
                    left.insert(
                        first,
                        Event::new(left[first].time, Cpu(cpu), EventKind::Lost { count: None }),
                    );
                }
                left
            }
            Cut::OnCpu(cpu, from, to) => {
                without(&|place, event| (from..to).contains(&place) && event.cpu == Cpu(cpu))
            }
        }
    }
}

/// A multiplicative generator: the same events for the same seed on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound as u64) as usize
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Unborn,
    Sleeping,
    Queued(usize),
    Running(usize),
}

/// Three CPUs.
struct Machine {
    now: Ns,
    /// The running task, and since when it was charged.
    running: [Option<usize>; CPUS],
    charged: [Ns; CPUS],
    tasks: [Doing; TASKS],
    events: Vec<Event<'static>>,
}

fn comm(task: usize) -> Comm {
    Comm::from(format!("t{task}").as_str())
}

fn pid(task: Option<usize>) -> Pid {
    Pid(task.map_or(0, |task| 100 + task as i32))
}

impl Machine {
    fn report(&mut self, cpu: usize, kind: EventKind<'static>) {
        let running = self.running[cpu];
        let comm = running.map_or_else(|| Comm::from("<idle>"), comm);
        let context = Context { comm, pid: pid(running), tgid: Pid::UNKNOWN, flags: Flags::new(b"d..2.") };
        self.events.push(Event { time: self.now, cpu: Cpu(cpu as u32), context, kind });
    }

    fn charge(&mut self, cpu: usize) {
        if let Some(task) = self.running[cpu] {
            let runtime = self.now.since(self.charged[cpu]);
            self.charged[cpu] = self.now;
            let (comm, pid) = (comm(task), pid(Some(task)));
            self.report(cpu, EventKind::SchedStatRuntime { comm, pid, runtime, vruntime: None });
        }
    }

    fn queued_on(&self, cpu: usize) -> Option<usize> {
        self.tasks.iter().position(|doing| *doing == Doing::Queued(cpu))
    }

    /// What runs on `cpu` leaves in a state; the first that is queued there comes.
    fn switch(&mut self, cpu: usize, state: TaskState) {
        self.charge(cpu);
        let (prev, next) = (self.running[cpu], self.queued_on(cpu));
        if prev == next {
            return;
        }
        let name = |task: Option<usize>| task.map_or_else(|| Comm::swapper(Cpu(cpu as u32)), comm);
        let switch = Switch {
            prev_comm: name(prev),
            prev_pid: pid(prev),
            prev_prio: Prio::DEFAULT,
            prev_state: if prev.is_none() { TaskState::RUNNABLE } else { state },
            next_comm: name(next),
            next_pid: pid(next),
            next_prio: Prio::DEFAULT,
        };
        self.report(cpu, EventKind::SchedSwitch(switch));
        let switched = self.now;
        self.go_on_leaving(cpu);
        if let Some(prev) = prev {
            self.tasks[prev] = if state.is_runnable() { Doing::Queued(cpu) } else { Doing::Sleeping };
        }
        if let Some(next) = next {
            self.tasks[next] = Doing::Running(cpu);
        }
        (self.running[cpu], self.charged[cpu]) = (next, switched);
    }

    /// Until stacks change the kernel runs as the task that leaves: behind some switches are events of its.
    fn go_on_leaving(&mut self, cpu: usize) {
        let names: &[&str] = match self.events.len() % 5 {
            0 => &["tlb_flush"],
            1 => &["tlb_flush", "x86_fpu_regs_deactivated"],
            _ => &[],
        };
        for name in names {
            self.now += Ns(300);
            self.report(
                cpu,
                EventKind::Other {
                    name,
                    fields: TextFields::new("pages:-1 reason:flush on task switch (0)"),
                },
            );
        }
    }

    fn fork(&mut self, by: usize, task: usize, target: usize) {
        let (comm, pid, target_cpu) = (comm(task), pid(Some(task)), Cpu(target as u32));
        let new = Wakeup { comm, pid, prio: Prio::DEFAULT, target_cpu };
        self.report(by, EventKind::SchedWakeupNew(new));
        self.tasks[task] = Doing::Queued(target);
    }

    fn wake(&mut self, by: usize, task: usize, target: usize) {
        let slept_on = Cpu((task % CPUS) as u32);
        let wakeup =
            Wakeup { comm: comm(task), pid: pid(Some(task)), prio: Prio::DEFAULT, target_cpu: slept_on };
        self.report(by, EventKind::SchedWaking(wakeup));
        self.now += Ns(700);
        let to = Cpu(target as u32);
        if to != slept_on {
            let (comm, pid, prio) = (wakeup.comm, wakeup.pid, wakeup.prio);
            let moved = EventKind::SchedMigrateTask { comm, pid, prio, orig_cpu: slept_on, dest_cpu: to };
            self.report(by, moved);
        }
        self.report(by, EventKind::SchedWakeup(Wakeup { target_cpu: to, ..wakeup }));
        self.tasks[task] = Doing::Queued(target);
    }
}

/// A trace of so many steps.
pub fn made(seed: u64, steps: usize) -> Vec<Event<'static>> {
    let mut random = Random(seed);
    let mut machine = Machine {
        now: Ns::from_ms(5),
        running: [None; CPUS],
        charged: [Ns::ZERO; CPUS],
        tasks: std::array::from_fn(|task| if task < OLD { Doing::Sleeping } else { Doing::Unborn }),
        events: Vec::new(),
    };
    for _ in 0..steps {
        machine.now += Ns(1_000 + random.below(200_000) as u64);
        let cpu = random.below(CPUS);
        match (machine.running[cpu], random.below(4)) {
            (Some(_), 0) => machine.switch(cpu, TaskState::INTERRUPTIBLE),
            (Some(_), 1) if machine.queued_on(cpu).is_some() => machine.switch(cpu, TaskState::PREEMPTED),
            (None, _) if machine.queued_on(cpu).is_some() => machine.switch(cpu, TaskState::RUNNABLE),
            (Some(_), 2) => machine.charge(cpu),
            _ => {
                let (task, target) = (random.below(TASKS), random.below(CPUS));
                match machine.tasks[task] {
                    Doing::Sleeping => machine.wake(cpu, task, target),
                    Doing::Unborn => machine.fork(cpu, task, target),
                    Doing::Queued(_) | Doing::Running(_) => {}
                }
            }
        }
    }
    machine.events
}
