//! How long one turn of a runqueue takes: a task sleeps, the next one is picked, the sleeper wakes again.
//!
//! `cargo bench -p fairlab-kernel --bench queue`. Eight runnable tasks on one CPU, three groups deep. What a switch and a
//! test for preemption take is measured alone, too, and taken off the turn: dequeue, enqueue, pick and the clock are left.

use std::fs;

use fairlab_event::{Comm, Cpu, Ns, Pid, TaskState};
use fairlab_kernel::core::{KernelContext, WakeFlags, WakeStart};
use fairlab_kernel::topology::SmtNumbering;
use fairlab_kernel::{CpuMask, GroupId, Policy, Scheduler, TaskId, TaskSpec, Topology};

const CPU: Cpu = Cpu(0);
const TURNS: u64 = 400_000;

fn scheduler(kernel: &str, depth: u32) -> (Scheduler, Vec<TaskId>) {
    let topology = Topology::regular(1, 1, 8, 1, SmtNumbering::Adjacent).expect("a machine");
    let mut scheduler = Scheduler::new(kernel.parse().expect("a kernel"), topology, Ns::from_ms(1));
    let group = (0..depth).fold(GroupId::ROOT, |parent, _| scheduler.new_group(parent, 100));
    scheduler.set_here(CPU, KernelContext::Task, Ns(1));
    let mut tasks = Vec::new();
    for pid in 1..=8 {
        let (comm, policy, allowed) = (Comm::from("bench"), Policy::Normal, CpuMask::single(CPU));
        let spec = TaskSpec {
            comm,
            pid: Pid(pid),
            tgid: Pid(pid),
            policy,
            nice: 0,
            allowed,
            kthread: false,
            per_cpu_kthread: false,
        };
        let task = scheduler.new_task(&spec, CPU);
        scheduler.set_task_group(task, group);
        scheduler.fork(task);
        scheduler.wake_up_new_task(task, CPU);
        tasks.push(task);
    }
    (scheduler, tasks)
}

/// The running task sleeps, the next one is picked, and the one that slept a turn ago is woken.
#[inline(never)]
fn turn(scheduler: &mut Scheduler, now: Ns, asleep: &mut Option<TaskId>, marked: &mut Vec<Cpu>) {
    scheduler.set_here(CPU, KernelContext::Task, now);
    if !scheduler.runs_idle_task(CPU) {
        let sleeper = scheduler.curr(CPU);
        scheduler.begin_schedule(CPU, TaskState::INTERRUPTIBLE);
        if let Some(task) = asleep.replace(sleeper) {
            wake(scheduler, task);
        }
    }
    scheduler.before_pick(CPU);
    let next = scheduler.pick_next_task(CPU).task;
    scheduler.context_switch(CPU, next, TaskState::INTERRUPTIBLE);
    scheduler.take_marked(marked);
    marked.clear();
}

fn wake(scheduler: &mut Scheduler, task: TaskId) {
    if scheduler.ttwu_begin(task, WakeFlags::default()) == WakeStart::Slept {
        scheduler.ttwu_do_activate(task, WakeFlags::default());
    }
}

/// The CPU turns to another task and back, while time stands still. The tasks must all be awake.
fn switch_there_and_back(scheduler: &mut Scheduler, other: TaskId) {
    let curr = scheduler.curr(CPU);
    for next in [other, curr] {
        scheduler.context_switch(CPU, next, TaskState::RUNNABLE);
    }
}

/// CPU time of `what` in ns, the mean of `turns` times.
fn mean(turns: u64, mut what: impl FnMut(u64)) -> f64 {
    let start = time_on_cpu();
    (0..turns).for_each(&mut what);
    (time_on_cpu() - start) as f64 / turns as f64
}

/// CPU time of this thread so far, ns: what others do on the machine does not count.
fn time_on_cpu() -> u64 {
    let schedstat = fs::read_to_string("/proc/thread-self/schedstat").expect("a Linux host");
    let first = schedstat.split(' ').next().and_then(|field| field.parse().ok());
    first.expect("the first field is run time in ns")
}

fn main() {
    let mut marked = Vec::new();
    // A kernel named on the command line runs alone, three groups deep, for a profiler; a number of turns may follow.
    let alone = std::env::args().nth(1).filter(|name| !name.starts_with("--"));
    let turns = std::env::args().nth(2).and_then(|turns| turns.parse().ok()).unwrap_or(TURNS);
    let kernels = alone
        .as_deref()
        .map_or(vec!["v4.18", "v5.5", "v5.10", "v6.6", "v6.12", "v7.2"], |kernel| vec![kernel]);
    for kernel in kernels {
        for depth in if alone.is_some() { vec![3] } else { vec![0, 3] } {
            let (mut scheduler, tasks) = scheduler(kernel, depth);
            let mut asleep = None;
            let each = mean(turns, |number| {
                turn(&mut scheduler, Ns(1_000_000 + number * 50_000), &mut asleep, &mut marked);
            });
            asleep.into_iter().for_each(|task| wake(&mut scheduler, task));
            let curr = scheduler.curr(CPU);
            let other = tasks.into_iter().find(|&task| task != curr).expect("eight tasks");
            let switch = mean(turns, |_| switch_there_and_back(&mut scheduler, other)) / 2.0;
            let test = mean(turns, |_| {
                std::hint::black_box(scheduler.wakeup_preempt(std::hint::black_box(other)));
            });
            println!(
                "{kernel:<6} 8 tasks, depth {depth}: {each:>5.0} ns a turn, of which switch {switch:>4.0}, test {test:>4.0}, \
                 dequeue, enqueue and pick {:>4.0}",
                each - switch - test
            );
        }
    }
}
