//! A workload that a file says by its tasks: threads with steps, and the locks, queues and barriers between them.
//!
//! [`USAGE`] is the language whole. `tasks/parse.rs` and `step.rs` read it, `plan.rs` is what was read, `resources.rs` what threads share,
//! `act.rs` what a step does.
//!
//! Must not know: CPUs beyond their numbers, schedulers, files.

mod act;
mod duration;
mod histogram;
mod parse;
mod plan;
mod report;
mod resources;
mod rhythm;
mod step;
#[cfg(test)]
mod tests;
mod thread;

use std::collections::VecDeque;

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::{CpuMask, Policy};
use toml::Table;

use super::cgroup::GroupSpec;
use crate::rng::RandomStream;
use crate::workload::warm_up::{CountAfterWarmUp, WarmUp};
use crate::workload::{Action, ThreadId, ThreadSpec, View, Workload};
use histogram::TimeHistogram;
use plan::{Op, TaskPlan, TasksPlan};
use resources::{Lock, MemoryMap, RequestQueue, TaskBarrier};
use rhythm::ReplyRhythm;
use thread::TaskThread;

/// The language, whole.
pub const USAGE: &str = include_str!("tasks/usage.txt");

/// After so many steps that take no time, a moment passes.
const STEPS_AT_ONCE: u32 = 1_000;

/// That moment.
const MOMENT: Ns = Ns(100);

/// What all threads of a task share, and what is counted of it.
#[derive(Debug, Default)]
struct SharedTaskState {
    /// How many threads there have been.
    created: usize,
    /// Wakeups that nobody has waited for yet.
    tokens: u64,
    /// Who waits for a wakeup.
    sleepers: VecDeque<ThreadId>,
    /// From the beginning of a round to its reply.
    latencies: TimeHistogram,
    rounds: CountAfterWarmUp,
    rhythm: ReplyRhythm,
}

/// The workload, ready to run.
#[derive(Debug)]
pub struct TasksWorkload {
    plan: TasksPlan,
    /// The paths of the groups that tasks are in, and of those above them.
    groups: Vec<String>,
    /// How many CPUs the machine has.
    nr_cpus: usize,
    /// Threads that the main thread has yet to create: their tasks, and the CPUs that they are bound to.
    to_create: VecDeque<(usize, Option<Cpu>)>,
    threads: Vec<TaskThread>,
    tasks: Vec<SharedTaskState>,
    locks: Vec<Lock>,
    queues: Vec<RequestQueue>,
    barriers: Vec<TaskBarrier>,
    maps: Vec<MemoryMap>,
    settling: WarmUp,
    replies: CountAfterWarmUp,
    /// Replies to threads of the workload's own.
    answers: CountAfterWarmUp,
    /// The last time at which a thread was asked.
    now: Ns,
    /// Requests come from outside.
    is_open: bool,
    /// All threads end.
    over: bool,
}

impl TasksWorkload {
    /// The workload that a table says: `lock`, `queue`, `barrier`, `task`, `duration`.
    ///
    /// # Errors
    /// One line that says at which task and step what is wrong, and what is allowed.
    pub fn parse(table: &Table) -> Result<TasksWorkload, String> {
        let plan = parse::plan(table)?;
        let tasks = plan.tasks.iter().map(|_| SharedTaskState::default()).collect();
        let locks = plan.locks.iter().cloned().map(Lock::new).collect();
        let queues = plan.queues.iter().cloned().map(RequestQueue::new).collect();
        let barrier = |spec: &plan::BarrierSpec| TaskBarrier {
            spins: spec.spins,
            threads: spec.threads,
            ..TaskBarrier::default()
        };
        let barriers = plan.barriers.iter().map(barrier).collect();
        Ok(TasksWorkload {
            groups: group_paths(&plan.tasks),
            nr_cpus: 1,
            to_create: VecDeque::new(),
            threads: vec![TaskThread::default()],
            tasks,
            locks,
            queues,
            barriers,
            maps: vec![MemoryMap::default()],
            settling: WarmUp::default(),
            replies: CountAfterWarmUp::default(),
            answers: CountAfterWarmUp::default(),
            now: Ns::ZERO,
            is_open: false,
            over: false,
            plan,
        })
    }

    /// The workload that a file's text says.
    ///
    /// # Errors
    /// The text is no TOML, or [`TasksWorkload::parse`] refuses what it says.
    pub fn from_text(text: &str) -> Result<TasksWorkload, String> {
        let table = text.parse::<Table>().map_err(|error| {
            let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count() + 1);
            format!("line {line}: {}", error.message())
        })?;
        if table.contains_key("workload") {
            return Err("it says several workloads ([[workload]]): run it as a mix".to_string());
        }
        TasksWorkload::parse(&table)
    }

    /// Creates all threads, and ends the program when its time is up.
    fn main(&mut self, view: &mut View<'_>) -> Action {
        if !self.is_open {
            self.is_open = true;
            let seed = view.random.bits();
            for queue in &mut self.queues {
                let random = RandomStream::new(seed, &format!("arrivals {}", queue.spec.name));
                queue.open(view.now, random);
            }
        }
        if let Some((task, cpu)) = self.to_create.pop_front() {
            return self.create(task, cpu, None);
        }
        let counts_from = self.settling.begin(view.now);
        let Some(duration) = self.plan.duration else { return Action::Exit };
        let ends = counts_from + duration;
        if view.now < ends {
            return Action::Sleep(ends.since(view.now));
        }
        if !self.over {
            self.over = true;
            let words = (self.locks.len() + self.barriers.len()) as u32;
            let released = (0..words).map(|word| Action::Release { word, most: u32::MAX });
            let woken = (1..self.threads.len() as u32).map(|thread| Action::Wake(ThreadId(thread)));
            self.threads[0].todo = released.chain(woken).collect();
        }
        self.threads[0].todo.pop_front().unwrap_or(Action::Exit)
    }

    /// Creates a thread of a task.
    fn create(&mut self, task: usize, cpu: Option<Cpu>, parent: Option<ThreadId>) -> Action {
        let plan = &self.plan.tasks[task];
        let number = self.tasks[task].created;
        self.tasks[task].created += 1;
        let map = if plan.process { self.maps.len() } else { 0 };
        if plan.process {
            self.maps.push(MemoryMap::default());
        }
        let counters = vec![0; plan.counters];
        self.threads.push(TaskThread { task, counters, parent, map, ..TaskThread::default() });
        let allowed = match (cpu, &plan.place.cpus) {
            (Some(cpu), _) => CpuMask::single(cpu),
            (None, Some(cpus)) => *cpus,
            (None, None) => CpuMask::ALL,
        };
        let group = plan.place.group.as_ref();
        // A child begins with its parent's policy, by which its first CPU is chosen.
        let parents =
            parent.and_then(|parent| self.plan.tasks[self.threads[parent.index()].task].place.policy);
        let inherited = parents.filter(|_| plan.place.policy == parents);
        Action::Spawn(ThreadSpec {
            policy: inherited.unwrap_or(Policy::Normal),
            nice: plan.place.nice.unwrap_or(0),
            allowed,
            group: group.and_then(|path| self.groups.iter().position(|known| known == path)),
            kthread: plan.kthread,
            process: plan.process,
            ..ThreadSpec::new(&plan.name, format!("{} {number}", plan.name))
        })
    }

    /// What a thread does before its first step: the words of its place that a new thread has not, and its late start.
    fn prepare(&mut self, me: ThreadId, now: Ns) -> Option<Action> {
        let thread = &mut self.threads[me.index()];
        let plan = &self.plan.tasks[thread.task];
        let (policy, request) = (plan.place.policy, plan.place.slice);
        if thread.is_set == 0 {
            thread.is_set = 1;
            if policy.is_some() || request.is_some() {
                return Some(Action::SetScheduler { policy, nice: None, request, allowed: None });
            }
        }
        if thread.is_set == 1 {
            thread.is_set = 2;
            if plan.start > now {
                return Some(Action::Sleep(plan.start.since(now)));
            }
        }
        if thread.is_set == 2 {
            (thread.is_set, thread.began) = (3, now);
        }
        None
    }

    /// Which replies its progress is; `None`: it is rounds.
    fn counted_replies(&self) -> Option<&CountAfterWarmUp> {
        let steps = || self.plan.tasks.iter().flat_map(|task| &task.steps);
        let is_open = self.plan.queues.iter().any(|queue| queue.arrivals.is_some());
        let counts_itself = steps().any(|op| matches!(op, Op::Reply(None) | Op::Put(_)));
        let replies = if is_open || counts_itself { &self.replies } else { &self.answers };
        steps().any(|op| matches!(op, Op::Reply(_))).then_some(replies)
    }

    /// The thread ends: who waits for its end is woken first.
    fn end(&mut self, me: ThreadId) -> Action {
        let thread = &mut self.threads[me.index()];
        if !std::mem::replace(&mut thread.ended, true)
            && let Some(parent) = thread.parent
        {
            let parent_thread = &mut self.threads[parent.index()];
            parent_thread.children = parent_thread.children.saturating_sub(1);
            if parent_thread.children == 0 && !parent_thread.ended {
                return Action::Wake(parent);
            }
        }
        self.threads[me.index()].counters = Vec::new();
        Action::Exit
    }

    /// All steps have been done once more. Returns whether the thread goes on.
    fn round_is_over(&mut self, me: ThreadId, now: Ns) -> bool {
        let counts = self.settling.is_over(now);
        let thread = &mut self.threads[me.index()];
        thread.rounds += 1;
        (thread.at, thread.began) = (0, now);
        self.tasks[thread.task].rounds.add_at(now, counts);
        self.plan.tasks[thread.task].repeat.is_none_or(|repeat| thread.rounds < repeat)
    }

    fn next_of(&mut self, me: ThreadId, view: &mut View<'_>) -> Action {
        for _ in 0..STEPS_AT_ONCE {
            if self.over {
                return self.end(me);
            }
            if let Some(action) = self.threads[me.index()].todo.pop_front() {
                return action;
            }
            if self.threads[me.index()].ended {
                return Action::Exit;
            }
            if self.threads[me.index()].is_set < 3
                && let Some(action) = self.prepare(me, view.now)
            {
                return action;
            }
            let TaskThread { task, at, .. } = self.threads[me.index()];
            let Some(&op) = self.plan.tasks[task].steps.get(at) else {
                if self.round_is_over(me, view.now) {
                    continue;
                }
                return self.end(me);
            };
            if let Some(action) = self.act(me, op, view) {
                return action;
            }
        }
        Action::Run(MOMENT)
    }

    /// The step at which a thread is.
    fn op_of(&self, thread: ThreadId) -> Option<Op> {
        let thread = self.threads.get(thread.index())?;
        self.plan.tasks.get(thread.task)?.steps.get(thread.at).copied()
    }
}

/// The paths of all groups that tasks name, each behind the one that it is below.
fn group_paths(tasks: &[TaskPlan]) -> Vec<String> {
    let mut paths = Vec::new();
    for path in tasks.iter().filter_map(|task| task.place.group.as_ref()).filter(|path| *path != "/") {
        let ends = path.match_indices('/').map(|(place, _)| place).skip(1).chain([path.len()]);
        for above in ends.map(|end| path[..end].to_string()) {
            if !paths.contains(&above) {
                paths.push(above);
            }
        }
    }
    paths
}

impl Workload for TasksWorkload {
    fn begin_on(&mut self, cpus: &CpuMask) {
        self.nr_cpus = cpus.weight();
        for (number, task) in self.plan.tasks.iter().enumerate() {
            if task.per_cpu {
                let own = task.place.cpus.map_or(*cpus, |own| own.and(cpus));
                self.to_create.extend(own.iter().map(|cpu| (number, Some(cpu))));
            } else {
                self.to_create.extend((0..task.count).map(|_| (number, None)));
            }
        }
    }

    fn groups(&self) -> Vec<GroupSpec> {
        let spec = |path: &String| {
            let above = path.rfind('/').map_or("", |end| &path[..end]);
            let parent = self.groups.iter().position(|known| known == above);
            GroupSpec { parent, ..GroupSpec::new(path.clone()) }
        };
        self.groups.iter().map(spec).collect()
    }

    fn named_cpus(&self) -> CpuMask {
        let places = self.plan.tasks.iter().filter_map(|task| task.place.cpus.as_ref());
        let named = places.chain(self.plan.queues.iter().filter_map(|queue| queue.irq.as_ref()));
        named.fold(CpuMask::EMPTY, |all, cpus| all.or(cpus))
    }

    fn main_thread(&self) -> ThreadSpec {
        ThreadSpec::new("tasks", "tasks main")
    }

    fn next(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action {
        self.now = view.now;
        if thread == ThreadId::MAIN { self.main(view) } else { self.next_of(thread, view) }
    }

    fn must_wait(&self, thread: ThreadId) -> bool {
        !self.over && self.waits(thread)
    }

    fn system_call_done(&mut self, thread: ThreadId) -> Option<ThreadId> {
        self.message_is_sent(thread)
    }

    fn sees(&mut self, thread: ThreadId, word: u32) -> bool {
        self.over || self.looks_at(thread, word as usize)
    }

    fn spun(&mut self, word: u32, time: Ns) {
        let counts = self.settling.is_over(self.now);
        if let Some(lock) = self.locks.get_mut(word as usize).filter(|_| counts) {
            lock.spun += time;
        }
    }

    fn sets_scheduling(&self) -> bool {
        true
    }

    fn needs_kernel_threads(&self) -> bool {
        false
    }

    fn settle(&mut self, length: Ns) {
        self.settling.set(length);
    }

    fn settled(&self) -> Option<Ns> {
        self.settling.end()
    }

    fn output(&self, now: Ns) -> String {
        self.report(now)
    }

    fn progress(&self) -> Option<(&'static str, u64)> {
        match self.counted_replies() {
            Some(replies) => Some(("replies", replies.count())),
            None => Some(("rounds", self.tasks.iter().map(|task| task.rounds.count()).sum())),
        }
    }

    fn counted_at(&self) -> Option<Ns> {
        match self.counted_replies() {
            Some(replies) => replies.last(),
            None => self.tasks.iter().filter_map(|task| task.rounds.last()).max(),
        }
    }

    fn metrics(&self) -> Vec<(String, f64)> {
        self.numbers()
    }

    fn runtime(&self) -> Option<Ns> {
        self.plan.duration
    }
}
