//! A recording as a workload, for another kernel or another machine.
//!
//! Each task of the recording becomes a thread with its actions. It computes as long between two sleeps, wakes the recorded
//! tasks at the recorded points of its work, and creates the recorded children. There are three kinds of sleep:
//!
//! * A sleep that another task ended ends when that task wakes it again, however long this takes.
//! * A sleep of the task's own length (a timer) has this length again.
//! * A sleep that any other interrupt ended, ends at its recorded time.
//!
//! So load from outside comes at its recorded times, and everything else follows its causes.
//!
//! Threads are created first, on the CPUs on which the recording saw them first. Then the recording's time begins, at an
//! instant between two ticks that the seed chooses. Tasks that ran at that time are woken; tasks that slept continue their
//! sleep.
//!
//! Departs: affinities, groups and policies come from lists beside the recording. Without lists, only kernel threads named
//! after their CPU are pinned, and no task has a group. All wakeups are synchronous, or none. Kernel work for a task counts
//! as its computation, and the machine's costs come on top. A task that yielded continues to compute.
//!
//! Must not know: CPUs, schedulers, files, traces.

mod script;

use std::sync::Arc;

use fairlab_event::{Cpu, Ns, Prio};
use fairlab_kernel::{CpuMask, Policy};

pub use self::script::{Script, ScriptStep, ScriptTask, TaskOrigin};
use super::arguments::program;
use super::catalogue::WorkloadFiles;
use super::cgroup::GroupSpec;
use crate::workload::warm_up::CountAfterWarmUp;
use crate::workload::{Action, ThreadId, ThreadSpec, View, Workload};

program! { PROGRAM: ReplayOptions, Some, "\
usage: replay [OPTIONS] FILE
  FILE  a recording: perf.data, trace.dat or ftrace text, also compressed, or a folder of one with lists of its tasks and groups";
    "-c, --cpus N" "for a machine of fewer CPUs than the recorded: what was on CPU N is on CPU 0, and so on" |all, value| {
        all.cpus = Some(value.number(1..=1 << 13)?);
        Ok(())
    };
    "-s, --sync" "wakeups by tasks are synchronous, as those of pipes and sockets are, and those of futexes are not"
        |all, value| value.switch(&mut all.sync, true);
    "-b, --by-clock" "every sleep that an interrupt ended ends at the time of day at which it did, and none after as long as\n\
        then; told apart are those of tasks whose sleeps are more alike than the times between their ends"
        |all, value| value.switch(&mut all.by_clock, true);
}

/// The main thread's name.
const COMM: &str = "replay";

/// How long it takes until the recording's time begins: at least, and for each thread to create.
const SETTLE: Ns = Ns::from_ms(1);
const SETTLE_EACH: Ns = Ns::from_us(100);

/// The longest tick that a kernel has: the recording's time begins at any point of it.
const TICK_MAX: Ns = Ns::from_ms(10);

/// A recording of fewer times what a machine takes to settle counts as a whole.
const SHORTEST: u64 = 5;

/// How far a thread is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ReplayStage {
    /// It has not asked for its scheduling yet.
    #[default]
    New,
    /// The recording's time may not have begun.
    Ready,
    /// At its next deed.
    Working,
    Ended,
}

/// One task in the course of the replay.
#[derive(Clone, Debug, Default)]
struct ReplayTask {
    thread: Option<ThreadId>,
    stage: ReplayStage,
    /// The place of its next deed.
    next: usize,
    /// Wakeups by tasks that it has not slept for yet.
    posts: u32,
}

/// How a recording is replayed.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplayOptions {
    /// CPU numbers are taken modulo this.
    pub cpus: Option<u32>,
    /// Wakeups by tasks come with the hint that the waker is about to sleep (`WF_SYNC`).
    pub sync: bool,
    /// Every sleep that an interrupt ended ends when it did.
    pub by_clock: bool,
}

/// A recording, ready to run.
#[derive(Debug)]
pub struct Replay {
    script: Arc<Script>,
    options: ReplayOptions,
    courses: Vec<ReplayTask>,
    /// Whose thread is which task; the main thread is not there.
    tasks: Vec<usize>,
    /// The next task that the main thread may have to create.
    to_create: usize,
    /// The recording's time zero.
    start: Option<Ns>,
    /// From the recording's time zero to when what is replayed counts.
    settles: Ns,
    /// What is done now counts.
    counts: bool,
    /// Sleeps that are over.
    slept: CountAfterWarmUp,
    ended: usize,
    /// When the last thread ended.
    end: Ns,
}

impl Replay {
    /// The workload with these arguments (without its name).
    ///
    /// # Errors
    /// One line that says what is wrong; for `--help` the usage text.
    pub fn parse(args: &[String], files: &dyn WorkloadFiles) -> Result<Replay, String> {
        let mut options = ReplayOptions::default();
        let paths = PROGRAM.read(args, &mut options)?;
        let path = match paths.as_slice() {
            [path] => path,
            [] => return Err("a recording is needed: perf.data, trace.dat or ftrace text".to_string()),
            _ => return Err("more than one file is given".to_string()),
        };
        Ok(Replay::new(files.script(path)?, options))
    }

    /// A script as a workload.
    pub fn new(script: Arc<Script>, options: ReplayOptions) -> Replay {
        Replay {
            courses: vec![ReplayTask::default(); script.tasks.len()],
            options,
            tasks: Vec::new(),
            to_create: 0,
            start: None,
            settles: Ns::ZERO,
            counts: false,
            slept: CountAfterWarmUp::default(),
            ended: 0,
            end: Ns::ZERO,
            script,
        }
    }

    /// `cpus` on a machine of fewer; all of them if none are given.
    fn folded(&self, cpus: Option<CpuMask>) -> CpuMask {
        match (cpus, self.options.cpus) {
            (None, _) => CpuMask::ALL,
            (Some(cpus), None) => cpus,
            (Some(cpus), Some(count)) => cpus.iter().fold(CpuMask::EMPTY, |mut folded, cpu| {
                folded.set(Cpu(cpu.0 % count));
                folded
            }),
        }
    }

    /// How long it takes until the recording's time begins, but for the part of a tick that is chance.
    fn settling(&self) -> Ns {
        let threads = self.script.tasks.iter().filter(|task| task.origin != TaskOrigin::Forked).count();
        SETTLE + Ns(SETTLE_EACH.0 * threads as u64)
    }

    /// The main thread creates every task that no other creates.
    fn main(&mut self, view: &mut View<'_>) -> Action {
        if self.start.is_none() {
            self.start = Some(view.now + self.settling() + Ns(view.random.below(TICK_MAX.0)));
        }
        while let Some(task) = self.script.tasks.get(self.to_create) {
            self.to_create += 1;
            if task.origin != TaskOrigin::Forked {
                return self.create(self.to_create - 1);
            }
        }
        Action::Exit
    }

    fn create(&mut self, task: usize) -> Action {
        self.tasks.push(task);
        self.courses[task].thread = Some(ThreadId(self.tasks.len() as u32));
        let ScriptTask { comm, prio, cpu, allowed, origin, group, .. } = self.script.tasks[task];
        let begins_on = match origin {
            TaskOrigin::Forked => allowed,
            TaskOrigin::User | TaskOrigin::Kernel => cpu.map(CpuMask::single).or(allowed),
        };
        Action::Spawn(ThreadSpec {
            comm,
            nice: prio.nice().unwrap_or(0),
            allowed: self.folded(begins_on),
            group,
            kthread: origin == TaskOrigin::Kernel,
            ..ThreadSpec::new("", format!("replay {task}"))
        })
    }

    /// What the task does next. Deeds that take no time are done one after the other.
    fn task(&mut self, task: usize, now: Ns) -> Action {
        let course = &mut self.courses[task];
        match course.stage {
            ReplayStage::New => {
                course.stage = ReplayStage::Ready;
                let ScriptTask { policy, prio, allowed, origin, .. } = self.script.tasks[task];
                if origin == TaskOrigin::Forked && policy == Policy::Normal && prio.nice().is_some() {
                    return self.task(task, now);
                }
                return schedule_as(policy, prio, Some(self.folded(allowed)));
            }
            ReplayStage::Ready => {
                course.stage = ReplayStage::Working;
                let left = self.start.map_or(Ns::ZERO, |start| start.since(now));
                let sleeps = matches!(
                    self.script.tasks[task].deeds.first(),
                    Some(ScriptStep::Block | ScriptStep::SleepUntil { .. } | ScriptStep::SleepFor { .. })
                );
                if !sleeps && left > Ns::ZERO {
                    return Action::Await(left);
                }
            }
            ReplayStage::Working => {}
            ReplayStage::Ended => return Action::Exit,
        }
        loop {
            let Some(&deed) = self.script.tasks[task].deeds.get(self.courses[task].next) else {
                return self.end(task, now);
            };
            if let Some(action) = self.deed(task, deed, now) {
                return action;
            }
        }
    }

    /// Does one deed; `None` if there is nothing to do, or no more.
    fn deed(&mut self, task: usize, deed: ScriptStep, now: Ns) -> Option<Action> {
        let start = self.start.unwrap_or(now);
        let course = &mut self.courses[task];
        if deed == ScriptStep::Block {
            if course.posts == 0 {
                return Some(Action::Wait);
            }
            course.posts -= 1;
            self.slept.add(1, self.counts);
        }
        course.next += 1;
        match deed {
            ScriptStep::Block => None,
            ScriptStep::Run(work) => Some(Action::Run(work)),
            ScriptStep::Wake(whom) => {
                self.courses[whom].posts += 1;
                let wake = if self.options.sync { Action::WakeSync } else { Action::Wake };
                self.courses[whom].thread.map(wake)
            }
            ScriptStep::SleepFor { length, uninterruptible, .. } if !self.options.by_clock => {
                self.sleep(length, uninterruptible)
            }
            ScriptStep::SleepUntil { time, uninterruptible }
            | ScriptStep::SleepFor { time, uninterruptible, .. } => {
                self.sleep((start + time).since(now), uninterruptible)
            }
            ScriptStep::Fork(child) => self.courses[child].thread.is_none().then(|| self.create(child)),
            ScriptStep::Prio(prio) => Some(schedule_as(self.script.tasks[task].policy, prio, None)),
        }
    }

    /// An interrupt comes after `left`; none if that is over.
    fn sleep(&mut self, left: Ns, uninterruptible: bool) -> Option<Action> {
        self.slept.add(1, self.counts);
        let sleep = if uninterruptible { Action::Io } else { Action::Await };
        (left > Ns::ZERO).then(|| sleep(left))
    }

    fn end(&mut self, task: usize, now: Ns) -> Action {
        self.courses[task].stage = ReplayStage::Ended;
        self.ended += 1;
        self.end = now;
        Action::Exit
    }
}

/// The system call by which a task gets a policy and a priority. One of real time that is not known to be so by its policy,
/// has it from a lock, or from the time before its policy was listed.
fn schedule_as(policy: Policy, prio: Prio, allowed: Option<CpuMask>) -> Action {
    let rt_priority = u8::try_from((99 - prio.0).clamp(1, 99)).unwrap_or(1);
    let policy = match (prio.nice(), policy) {
        (Some(_), policy) if policy.is_fair() => policy,
        (Some(_), _) => Policy::Normal,
        (None, Policy::RoundRobin(_)) => Policy::RoundRobin(rt_priority),
        (None, _) => Policy::Fifo(rt_priority),
    };
    Action::SetScheduler { policy: Some(policy), nice: prio.nice(), request: None, allowed }
}

impl Workload for Replay {
    fn groups(&self) -> Vec<GroupSpec> {
        self.script.groups.clone()
    }

    fn named_cpus(&self) -> CpuMask {
        let masks = self.script.tasks.iter().flat_map(|task| [task.cpu.map(CpuMask::single), task.allowed]);
        masks.flatten().fold(CpuMask::EMPTY, |named, cpus| named.or(&self.folded(Some(cpus))))
    }

    fn main_thread(&self) -> ThreadSpec {
        ThreadSpec::new(COMM, "replay main")
    }

    fn next(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action {
        self.counts = self.settles == Ns::ZERO || self.settled().is_some_and(|settled| view.now >= settled);
        match thread.index().checked_sub(1).and_then(|index| self.tasks.get(index).copied()) {
            None => self.main(view),
            Some(task) => self.task(task, view.now),
        }
    }

    fn must_wait(&self, thread: ThreadId) -> bool {
        let task = thread.index().checked_sub(1).and_then(|index| self.tasks.get(index));
        task.is_none_or(|&task| self.courses[task].posts == 0)
    }

    fn sets_scheduling(&self) -> bool {
        true
    }

    fn needs_kernel_threads(&self) -> bool {
        false
    }

    /// What is recorded is as long as it is: of a short recording all counts, from its time zero.
    fn settle(&mut self, length: Ns) {
        self.settles = if self.script.length.0 / SHORTEST >= length.0 { length } else { Ns::ZERO };
    }

    fn settled(&self) -> Option<Ns> {
        self.start.map(|start| start + self.settles)
    }

    fn output(&self, now: Ns) -> String {
        let Script { tasks, length, .. } = &*self.script;
        let (by_tasks, by_interrupts, after_a_time) = self.script.sleeps();
        let start = self.start.unwrap_or(now);
        let end = if self.ended == tasks.len() {
            let took = self.end.since(start);
            let late = took.0 as i64 - length.0 as i64;
            format!("all ended after {:.6} s, {:+.3} ms", took.as_secs_f64(), late as f64 / 1e6)
        } else {
            format!("{} of them ended within {:.6} s", self.ended, now.since(start).as_secs_f64())
        };
        let notices = self.script.notices.iter().map(|notice| format!("{notice}\n")).collect::<String>();
        format!(
            "{notices}{} tasks, {:.6} s recorded, {:.6} s of it computing; {by_tasks} sleeps ended by tasks, {after_a_time} after a time \
             of their own, {by_interrupts} by other interrupts\n\
             {} sleeps are over; {end}\n",
            tasks.len(),
            length.as_secs_f64(),
            self.script.work().as_secs_f64(),
            self.slept.all(),
        )
    }

    fn progress(&self) -> Option<(&'static str, u64)> {
        Some(("sleeps", self.slept.count()))
    }

    /// As long as was recorded, with what comes before, and half as much again for a kernel that is slower.
    fn runtime(&self) -> Option<Ns> {
        let length = self.script.length;
        let beside = self.settling() + TICK_MAX;
        Some(beside.saturating_add(length).saturating_add(Ns(length.0 / 2)))
    }
}

#[cfg(test)]
mod tests;
