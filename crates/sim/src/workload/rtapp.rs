//! rt-app: threads that run, sleep, and wait for each other and for timers, as a JSON file describes them.
//!
//! Facts from scheduler-tools/rt-app at 55cb0c0 (2026): doc/tutorial.txt, src/rt-app.c. The main thread creates all others,
//! which start together. Each sets its own scheduling policy, nice level and CPUs, and again at the start of each phase that
//! has them. `run` is work, which takes longer on a slow CPU; `runtime` is time by the clock. A timer sleeps until one period
//! after it was last due, however long the steps before took. A relative timer that was missed starts again from now. At the
//! end of the duration the main thread tells all to stop: sleeping threads end at once, computing ones at the end of their
//! event.
//!
//! Departs: a thread that sleeps on a timer at the end ends when the timer expires. Between two system calls only events take
//! time. See [`RtApp::left_out`] for what a file may say and the model leaves out.
//!
//! Must not know: CPUs, schedulers, files.

mod file;
mod json;
mod plan;
mod resources;
mod thread;

use std::collections::VecDeque;

use fairlab_event::Ns;
use fairlab_kernel::CpuMask;

use self::json::RepeatedNames;
use self::plan::{RtAppPlan, RtAppStep, ThreadAttributes};
use self::resources::RtAppResources;
use self::thread::{Loop, RtAppStage, RtAppThread};
use crate::workload::arguments::program;
use crate::workload::catalogue::WorkloadFiles;
use crate::workload::cgroup::GroupSpec;
use crate::workload::warm_up::WarmUp;
use crate::workload::{Action, ThreadId, ThreadSpec, View, Workload};

program! {
    PROGRAM: RepeatedNames, Some, "usage: rt-app [--workgen] FILE.json
  FILE.json   tasks, their phases and events, as rt-app reads them (comments and single quotes are allowed; of
              a name that comes again the last value holds)
events: run runtime sleep timer lock unlock wait signal broad sync suspend resume barrier sem_post sem_wait yield fork,
        and as plain computation mem memrun iorun";
    "--workgen" "of events, phases and tasks of one name all count, as if its script workgen had numbered them"
        |told, _| { *told = RepeatedNames::Each; Ok(()) };
}

/// The main thread's name.
const COMM: &str = "rt-app";

/// An rt-app file, ready to run.
#[derive(Debug)]
pub struct RtApp {
    plan: RtAppPlan,
    resources: RtAppResources,
    /// Timers that threads share: when each is due next.
    timers: Vec<Option<Ns>>,
    /// The threads that exist, the main thread not among them.
    threads: Vec<RtAppThread>,
    /// Tasks and instances that the main thread has still to create, the next one last.
    to_create: Vec<(usize, u32)>,
    /// Per task: how often it has been forked.
    forked: Vec<u32>,
    /// When the threads start together: their common time zero.
    start: Option<Ns>,
    settling: WarmUp,
    /// Per thread, the main thread first: whom it has still to wake, the next one last.
    to_wake: Vec<VecDeque<ThreadId>>,
    ended: usize,
    /// The duration has slept away, and all are told to stop.
    stopped: bool,
    /// Why it cannot go on.
    problem: Option<String>,
}

/// So many steps without time at one instant are a loop that never ends.
const FREE_STEPS_MAX: u32 = 1_000_000;

impl RtApp {
    /// The program of a command line's arguments (without its name).
    ///
    /// # Errors
    /// One line that says what is wrong and where; for `--help` the usage text.
    pub fn from_args(args: &[String], files: &dyn WorkloadFiles) -> Result<RtApp, String> {
        let mut names = RepeatedNames::default();
        let operands = PROGRAM.read(args, &mut names)?;
        let [path] = operands.as_slice() else {
            return Err(format!("one file is needed, and {} are given", operands.len()));
        };
        RtApp::parse_as(&files.text(path)?, names).map_err(|problem| format!("{path}: {problem}"))
    }

    /// An rt-app file's text.
    ///
    /// # Errors
    /// One line that says what is wrong and where.
    pub fn parse(text: &str) -> Result<RtApp, String> {
        RtApp::parse_as(text, RepeatedNames::Last)
    }

    fn parse_as(text: &str, names: RepeatedNames) -> Result<RtApp, String> {
        let plan = file::parse(text, names)?;
        let instances =
            |(number, task): (usize, &plan::RtAppTask)| (0..task.instances).map(move |one| (number, one));
        let mut to_create = plan.tasks.iter().enumerate().flat_map(instances).collect::<Vec<_>>();
        to_create.reverse();
        Ok(RtApp {
            resources: RtAppResources::new(&plan),
            timers: vec![None; plan.timers],
            threads: Vec::new(),
            to_create,
            forked: vec![0; plan.tasks.len()],
            start: None,
            settling: WarmUp::default(),
            to_wake: vec![VecDeque::new()],
            ended: 0,
            stopped: false,
            problem: None,
            plan,
        })
    }

    /// What the file asks for and the model leaves out, one line each.
    pub fn left_out(&self) -> &[String] {
        &self.plan.left_out
    }

    /// Tasks that end by a `loop` without `phases`, and by nothing else: rt-app 1.0 never ends these.
    pub fn looped_without_phases(&self) -> &[String] {
        if self.plan.duration.is_some() { &[] } else { &self.plan.looped_without_phases }
    }

    /// The main thread creates the others, starts them together, and waits for their end.
    fn main(&mut self, now: Ns) -> Action {
        if let Some((task, instance)) = self.to_create.pop() {
            let name = format!("{}-{}", self.plan.tasks[task].name, self.threads.len());
            return self.create(task, name, &format!("{task}/{instance}"));
        }
        if self.start.is_none() {
            self.start = Some(now);
            self.settling.begin(now);
            self.to_wake[0] = self.everybody().rev().collect();
        }
        if let Some(next) = self.to_wake[0].pop_back() {
            return Action::Wake(next);
        }
        if let Some(left) = self.time_left(now).filter(|_| !self.stopped) {
            if left > Ns::ZERO {
                return Action::Sleep(left);
            }
            self.stopped = true;
            self.to_wake[0] =
                self.everybody().rev().filter(|id| self.threads[id.index() - 1].waits).collect();
            return self.main(now);
        }
        if self.ended == self.threads.len() { Action::Exit } else { Action::Wait }
    }

    /// Time until the end of the duration, if there is one.
    fn time_left(&self, now: Ns) -> Option<Ns> {
        Some((self.start? + self.settling.length() + self.plan.duration?).since(now))
    }

    fn everybody(&self) -> impl DoubleEndedIterator<Item = ThreadId> + use<> {
        (1..=self.threads.len() as u32).map(ThreadId)
    }

    fn create(&mut self, task: usize, name: String, stream: &str) -> Action {
        let spec = ThreadSpec::new(&name, format!("rt-app {stream}"));
        self.threads.push(RtAppThread::new(task, name, self.plan.timers));
        self.to_wake.push(VecDeque::new());
        Action::Spawn(spec)
    }

    /// What a thread does next. Steps that take no time are done one after the other.
    fn thread(&mut self, id: ThreadId, now: Ns) -> Action {
        let index = id.index() - 1;
        let Some(start) = self.start else { return Action::Wait };
        let counts = self.settling.is_over(now);
        // Those that have been taken off a list are woken even at the end: nobody else will.
        if let Some(next) = self.to_wake[id.index()].pop_back() {
            return Action::Wake(next);
        }
        if self.stopped || self.problem.is_some() {
            return self.end(index);
        }
        for _ in 0..FREE_STEPS_MAX {
            if let Some(next) = self.to_wake[id.index()].pop_back() {
                return Action::Wake(next);
            }
            let thread = &mut self.threads[index];
            let task = &self.plan.tasks[thread.task];
            match thread.stage {
                RtAppStage::Ended => return Action::Exit,
                RtAppStage::Begin => {
                    thread.stage = RtAppStage::Task;
                    let left = (start + task.delay).since(now);
                    if left > Ns::ZERO && task.delay > Ns::ZERO {
                        return Action::Sleep(left);
                    }
                }
                RtAppStage::Task => {
                    thread.stage = RtAppStage::TaskGroup;
                    if let Some(action) = ask(task.attributes) {
                        return action;
                    }
                }
                RtAppStage::TaskGroup => {
                    thread.stage = RtAppStage::Phase;
                    if let Some(action) = thread.enter(task.attributes.group) {
                        return action;
                    }
                }
                RtAppStage::Phase => {
                    thread.stage = RtAppStage::PhaseGroup;
                    thread.current = Loop { start: now, ..Loop::default() };
                    if let Some(action) = ask(thread.phase(task).attributes) {
                        return action;
                    }
                }
                RtAppStage::PhaseGroup => {
                    thread.stage = RtAppStage::Steps;
                    if let Some(action) = thread.enter(thread.phase(task).attributes.group) {
                        return action;
                    }
                }
                RtAppStage::Steps => {
                    let Some(step) = thread.phase(task).steps.get(thread.step).cloned() else {
                        if thread.end_loop(task, now, counts) {
                            continue;
                        }
                        return self.end(index);
                    };
                    if let Some(action) = self.step(id, &step, now) {
                        return action;
                    }
                }
            }
        }
        let name = &self.threads[index].name;
        self.problem = Some(format!(
            "rt-app: {name} took {FREE_STEPS_MAX} steps at one instant: its loop costs no time; let it run, sleep or wait"
        ));
        self.end(index)
    }

    /// Who sleeps from now on until somebody wakes it, and who no longer does.
    fn note(&mut self, id: ThreadId, action: &Action) {
        let mut says = |id: ThreadId, sleeps| {
            let thread = id.index().checked_sub(1).and_then(|index| self.threads.get_mut(index));
            if let Some(thread) = thread {
                thread.sleeps = sleeps;
            }
        };
        says(id, matches!(action, Action::Wait));
        if let Action::Wake(whom) = *action {
            says(whom, false);
        }
    }

    /// A thread that sleeps though all were told to stop, and that nobody is about to wake.
    fn left_behind(&self) -> Option<&RtAppThread> {
        let is_told = self.stopped && self.to_wake[0].is_empty();
        let is_left = |(index, thread): &(usize, &RtAppThread)| {
            let id = ThreadId(*index as u32 + 1);
            let mut others = self.threads.iter().zip(&self.to_wake[1..]);
            thread.sleeps
                && !others.any(|(other, to_wake)| other.stage != RtAppStage::Ended && to_wake.contains(&id))
        };
        let mut threads = self.threads.iter().enumerate().filter(|_| is_told);
        threads.find(is_left).map(|(_, thread)| thread)
    }

    /// Ends; the last one wakes the main thread first.
    fn end(&mut self, index: usize) -> Action {
        if std::mem::replace(&mut self.threads[index].stage, RtAppStage::Ended) == RtAppStage::Ended {
            return Action::Exit;
        }
        self.ended += 1;
        if self.ended == self.threads.len() { Action::Wake(ThreadId::MAIN) } else { Action::Exit }
    }

    /// Does one step; `None` if it takes no time. A step that has to wait is done again when the thread is woken.
    fn step(&mut self, id: ThreadId, step: &RtAppStep, now: Ns) -> Option<Action> {
        let thread = &mut self.threads[id.index() - 1];
        let done = match *step {
            RtAppStep::Lock(mutex) => thread.waits || self.resources.lock(mutex, id),
            RtAppStep::SemWait(semaphore) => thread.waits || self.resources.sem_wait(semaphore, id),
            _ => true,
        };
        if thread.waits || !done {
            thread.waits = true;
            return Some(Action::Wait);
        }
        if let RtAppStep::Timer { timer, period, relative, unique } = *step {
            return self.timer(id, timer, period, relative, unique, now);
        }
        thread.step += 1;
        match *step {
            RtAppStep::Run(work) => return Some(Action::Run(work)),
            RtAppStep::RunFor(time) => return Some(Action::SpinUntil(now + time)),
            RtAppStep::Sleep(time) => return Some(Action::Sleep(time)),
            RtAppStep::Yield => return Some(Action::Yield),
            RtAppStep::Fork(task) => return Some(self.fork(task)),
            RtAppStep::BeginWait(condition, mutex) => {
                thread.waits = true;
                self.resources.wait(condition, id);
                let next = self.resources.unlock(mutex);
                self.wake_later(id, next);
            }
            RtAppStep::Unlock(mutex) => {
                let next = self.resources.unlock(mutex);
                self.wake_later(id, next);
            }
            RtAppStep::Signal(condition) => {
                let next = self.resources.signal(condition);
                self.wake_later(id, next);
            }
            RtAppStep::Broadcast(condition) => self.wake_all(id, condition),
            RtAppStep::SemPost(semaphore) => {
                let next = self.resources.sem_post(semaphore);
                self.wake_later(id, next);
            }
            RtAppStep::Arrive(barrier) => self.arrive(id, barrier),
            RtAppStep::Depart(barrier) => self.resources.depart(barrier),
            RtAppStep::Block | RtAppStep::Lock(_) | RtAppStep::SemWait(_) | RtAppStep::Timer { .. } => {}
        }
        None
    }

    fn timer(
        &mut self,
        id: ThreadId,
        timer: usize,
        period: Ns,
        relative: bool,
        unique: bool,
        now: Ns,
    ) -> Option<Action> {
        let thread = &mut self.threads[id.index() - 1];
        let first = self.start? + self.plan.tasks[thread.task].delay;
        if let Some(due) = thread.timer_due.take() {
            thread.current.wakeup_latency += now.since(due);
            thread.step += 1;
            return None;
        }
        let next = if unique { &mut thread.timers[timer] } else { &mut self.timers[timer] };
        let due = next.unwrap_or(first) + period;
        *next = Some(due);
        let slack = due.0 as i64 - now.0 as i64;
        let before = thread.current.slack.filter(|_| self.plan.cumulative_slack).unwrap_or(0);
        thread.current.slack = Some(before.saturating_add(slack));
        if due > now {
            thread.timer_due = Some(due);
            return Some(Action::Sleep(due.since(now)));
        }
        if relative {
            *next = Some(now);
        }
        thread.step += 1;
        None
    }

    fn arrive(&mut self, id: ThreadId, barrier: usize) {
        let known = self.plan.barriers[barrier];
        if self.resources.arrive(barrier) {
            // Over the steps of those who wait: block, lock, depart.
            self.threads[id.index() - 1].step += 3;
            self.wake_all(id, known.condition);
        } else {
            self.threads[id.index() - 1].waits = true;
            self.resources.wait(known.condition, id);
            let next = self.resources.unlock(known.mutex);
            self.wake_later(id, next);
        }
    }

    fn fork(&mut self, task: usize) -> Action {
        if self.threads.len() >= file::THREADS_MAX {
            self.problem = Some(format!("rt-app: forks have made more than {} threads", file::THREADS_MAX));
            return Action::Exit;
        }
        let fork = self.forked[task];
        self.forked[task] += 1;
        let name = format!("{}-{}-{fork}", self.plan.tasks[task].name, self.threads.len());
        self.create(task, name, &format!("{task}/fork {fork}"))
    }

    fn wake_later(&mut self, id: ThreadId, whom: Option<ThreadId>) {
        if let Some(whom) = whom {
            self.threads[whom.index() - 1].waits = false;
            self.to_wake[id.index()].push_front(whom);
        }
    }

    fn wake_all(&mut self, id: ThreadId, condition: usize) {
        for whom in self.resources.broadcast(condition) {
            self.threads[whom.index() - 1].waits = false;
            self.to_wake[id.index()].push_front(whom);
        }
    }
}

/// The system call that asks for what a task or phase says of its scheduling.
fn ask(attributes: ThreadAttributes) -> Option<Action> {
    let ThreadAttributes { policy, nice, request, cpus, group: _ } = attributes;
    let says = policy.is_some() || nice.is_some() || request.is_some() || cpus.is_some();
    says.then_some(Action::SetScheduler { policy, nice, request, allowed: cpus })
}

impl Workload for RtApp {
    fn sets_scheduling(&self) -> bool {
        true
    }

    fn named_cpus(&self) -> CpuMask {
        let of_task = self.plan.tasks.iter().map(|task| task.attributes);
        let of_phase = self.plan.tasks.iter().flat_map(|task| &task.phases).map(|phase| phase.attributes);
        let named = of_task.chain(of_phase).filter_map(|attributes| attributes.cpus);
        named.fold(CpuMask::EMPTY, |named, cpus| named.or(&cpus))
    }

    fn groups(&self) -> Vec<GroupSpec> {
        self.plan.groups.clone()
    }

    fn main_thread(&self) -> ThreadSpec {
        ThreadSpec::new(COMM, "rt-app main")
    }

    fn next(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action {
        let action =
            if thread == ThreadId::MAIN { self.main(view.now) } else { self.thread(thread, view.now) };
        self.note(thread, &action);
        action
    }

    fn must_wait(&self, thread: ThreadId) -> bool {
        match thread.index().checked_sub(1) {
            None => self.ended < self.threads.len(),
            Some(index) => self.start.is_none() || (self.threads[index].waits && !self.stopped),
        }
    }

    fn problem(&self) -> Option<String> {
        let left = |thread: &RtAppThread| {
            format!("rt-app: {} sleeps on at the end of the duration, and nobody wakes it", thread.name)
        };
        self.problem.clone().or_else(|| self.left_behind().map(left))
    }

    /// A program all of whose threads end by themselves counts from their start: nobody knows how long it lasts.
    fn settle(&mut self, length: Ns) {
        let endless =
            |task: &plan::RtAppTask| task.repeat < 0 || task.phases.iter().any(|phase| phase.repeat < 0);
        let is_endless = self.plan.tasks.iter().any(endless);
        self.settling.set(if is_endless { length } else { Ns::ZERO });
    }

    fn settled(&self) -> Option<Ns> {
        self.settling.end()
    }

    fn output(&self, _: Ns) -> String {
        let mut text = format!(
            "{:<16} {:>8} {:>12} {:>12} {:>10} {:>10} {:>10} {:>10} {:>7}\n",
            "thread", "loops", "period mean", "max us", "slack mean", "min us", "wu_lat", "max us", "missed"
        );
        for thread in &self.threads {
            let measured = &thread.measured;
            let us = |ns: f64| format!("{:.1}", ns / 1_000.0);
            let mean =
                |sum: f64, count: u64| if count == 0 { "-".to_string() } else { us(sum / count as f64) };
            let least = if measured.timed == 0 { "-".to_string() } else { us(measured.slack_min as f64) };
            text += &format!(
                "{:<16} {:>8} {:>12} {:>12} {:>10} {least:>10} {:>10} {:>10} {:>7}\n",
                thread.name,
                measured.loops,
                mean(measured.period_sum.0 as f64, measured.loops),
                us(measured.period_max.0 as f64),
                mean(measured.slack_sum as f64, measured.timed),
                mean(measured.wakeup_latency_sum.0 as f64, measured.timed),
                us(measured.wakeup_latency_max.0 as f64),
                measured.missed,
            );
        }
        for what in self.left_out() {
            text += &format!("not modelled: {what}\n");
        }
        text
    }

    fn progress(&self) -> Option<(&'static str, u64)> {
        Some(("loops", self.threads.iter().map(|thread| thread.measured.loops).sum()))
    }

    fn runtime(&self) -> Option<Ns> {
        self.plan.duration
    }
}

#[cfg(test)]
mod tests {
    use fairlab_analysis::timeline::CpuTimeline;
    use fairlab_kernel::Topology;
    use fairlab_kernel::topology::SmtNumbering;

    use super::*;
    use crate::Engine;
    use crate::machine::{KernelCosts, Machine};

    /// Who runs where, a millisecond a letter, on CPUs without SMT where kernel work costs nearly nothing.
    fn picture(text: &str, cpus: u32, milliseconds: usize) -> String {
        picture_of(RtApp::parse(text).expect("a file"), cpus, milliseconds)
    }

    fn picture_of(app: RtApp, cpus: u32, milliseconds: usize) -> String {
        let mut costs = KernelCosts::default();
        for cost in KernelCosts::default().table() {
            costs.set(cost.name, Ns(1));
        }
        let machine = Machine {
            name: "test".to_string(),
            description: String::new(),
            topology: Topology::regular(1, 1, cpus, 1, SmtNumbering::Adjacent).expect("a machine"),
            hz: 1000,
            high_res_timers: true,
            nohz_idle: true,
            chance: crate::machine::Chance::NONE,
            in_turn: false,
            costs,
            frequency_domains: Vec::new(),
            energy_model: Vec::new(),
            speeds: crate::machine::TrueSpeeds::default(),
            sharing: crate::machine::Sharing::NONE,
            idle_states: Vec::new(),
        };
        let mut engine = Engine::new("v6.6".parse().expect("a kernel"), machine, 1);
        engine.set_tracing(true);
        engine.start(Box::new(app));
        let end = Ns::from_ms(milliseconds as u64);
        let mut timeline = CpuTimeline::new(Ns::ZERO, Ns::from_ms(1), milliseconds);
        engine.run_until(end, &mut timeline);
        timeline.draw(end)
    }

    #[test]
    fn a_sleep_begins_when_the_work_is_done_and_a_timer_does_not() {
        let tasks = |how: &str| {
            format!(
                r#"{{ "tasks": {{
                    "hog": {{ "cpus": [0], "policy": "SCHED_FIFO", "delay": 1000, "loop": 1, "run": 9000 }},
                    "work": {{ "cpus": [0], "run": 5000, {how} }} }} }}"#
            )
        };
        // The work begins 9 ms late; with a sleep everything after it is late, with a timer the next is in time.
        let slept = picture(&tasks(r#""sleep": 14000"#), 1, 60);
        let timed = picture(&tasks(r#""timer": { "ref": "tick", "period": 19000 }"#), 1, 60);
        assert_eq!(slept, "  0 CCBBBBBBBBBCCC..............CCCCC..............CCCCC........\n");
        assert_eq!(timed, "  0 CCBBBBBBBBBCCC.....CCCCC..............CCCCC..............CCC\n");
    }

    #[test]
    fn a_relative_timer_forgets_a_miss_and_an_absolute_one_catches_up() {
        let tasks = |mode: &str| {
            format!(
                r#"{{ "tasks": {{ "work": {{ "phases": {{
                    "late": {{ "run": 25000, "timer": {{ "ref": "unique", "period": 10000, "mode": "{mode}" }} }},
                    "rest": {{ "loop": 9, "run": 2000, "timer": {{ "ref": "unique", "period": 10000, "mode": "{mode}" }} }}
                }} }} }} }}"#
            )
        };
        let relative = picture(&tasks("relative"), 1, 50);
        let absolute = picture(&tasks("absolute"), 1, 50);
        assert_eq!(relative, "  0 BBBBBBBBBBBBBBBBBBBBBBBBBBB........BB........BB...\n");
        assert_eq!(absolute, "  0 BBBBBBBBBBBBBBBBBBBBBBBBBBBBB.BB........BB........\n");
    }

    #[test]
    fn threads_take_turns_by_suspend_and_resume() {
        let text = r#"{ "tasks": {
            "a": { "cpus": [0], "run": 3000, "resume": "b", "suspend": "" },
            "b": { "cpus": [1], "suspend": "", "run": 5000, "resume": "a" } } }"#;
        assert_eq!(picture(text, 2, 20), "  0 BBB.....BBB.....BBB.\n  1 ...DDDDD...DDDDD...D\n");
    }

    #[test]
    fn a_barrier_holds_until_all_instances_have_come() {
        let text = r#"{ "tasks": {
            "quick": { "instance": 2, "run": 1000, "barrier": "all" },
            "slow": { "run": 4000, "barrier": "all" } } }"#;
        let picture = picture(text, 3, 12);
        for row in picture.lines() {
            let busy = row[4..].matches(|letter| letter != '.').count();
            assert!(busy == 3 || busy == 12, "quick ones run 1 ms of 4, the slow one always:\n{picture}");
        }
    }

    #[test]
    fn posts_are_remembered_and_signals_are_not() {
        let posts = r#"{ "tasks": {
            "producer": { "cpus": [0], "loop": 1, "phases": { "p": { "loop": 4, "run": 1000, "sem_post": "s" } } },
            "consumer": { "cpus": [1], "sem_wait": "s", "run": 3000 } } }"#;
        assert_eq!(picture(posts, 2, 16), "  0 BBBB............\n  1 .DDDDDDDDDDDD...\n");
        let signals = posts.replace("sem_post", "resume").replace(r#""s" } }"#, r#""consumer" } }"#);
        let signals = signals.replace(r#""sem_wait": "s""#, r#""suspend": """#);
        assert_eq!(picture(&signals, 2, 16), "  0 BBBB............\n  1 .DDD............\n");
    }

    #[test]
    fn a_mutex_keeps_others_out_while_its_holder_sleeps() {
        let text = r#"{ "tasks": { "t": { "instance": 2, "loop": 1,
            "lock": "m", "run": 2000, "sleep": 2000, "unlock": "m" } } }"#;
        let picture = picture(text, 2, 10);
        let busy = |column: usize| picture.lines().filter(|row| row.as_bytes()[4 + column] != b'.').count();
        assert_eq!((0..8).map(busy).collect::<Vec<_>>(), [1, 1, 0, 0, 1, 1, 0, 0], "{picture}");
    }

    #[test]
    fn phases_change_where_and_how_a_thread_runs() {
        let text = r#"{ "tasks": { "t": { "loop": 1, "phases": {
            "one": { "cpus": [0], "run": 2000 },
            "two": { "cpus": [2], "run": 3000, "priority": 5 },
            "end": { "run": 1000 } } } } }"#;
        assert_eq!(picture(text, 3, 6), "  0 BB....\n  1 ......\n  2   BBBB\n");
    }

    #[test]
    fn a_forked_thread_begins_when_it_is_forked() {
        let text = r#"{ "tasks": {
            "parent": { "cpus": [0], "loop": 1, "run": 3000, "fork": "child", "run2": 2000 },
            "child": { "instance": 0, "cpus": [1], "loop": 1, "run": 2000 } } }"#;
        assert_eq!(picture(text, 2, 5), "  0 BBBBB\n  1 ...DD\n");
    }

    #[test]
    fn the_duration_ends_threads_that_compute_sleep_and_wait() {
        let text = r#"{ "global": { "duration": 1 }, "tasks": {
            "hog": { "cpus": [0], "run": 300000 }, "sleeper": { "cpus": [1], "run": 1000, "sleep": 1000 },
            "waiter": { "cpus": [2], "suspend": "", "run": 1 } } }"#;
        let machine = Machine::preset("laptop8").expect("a machine").exact();
        let mut engine = Engine::new("v6.6".parse().expect("a kernel"), machine, 1);
        let app = engine.start(Box::new(RtApp::parse(text).expect("a file")));
        engine.run_until(Ns::from_secs(60), &mut ());
        assert!((1_200_000_000..1_250_000_000).contains(&engine.now().0), "{:?}", engine.now());
        let output = engine.workload(app).output(engine.now());
        assert!(
            output.contains("hog-0                   3 ") || output.contains("hog-0                   4 "),
            "{output}"
        );
    }

    /// A second of threads that meet at a barrier, some of them on their way when it is over.
    fn met_for_a_second(seed: u64) -> (Ns, u64, Option<String>) {
        let text = r#"{"tasks":{"lu":{"instance":8,"run":50,"barrier":"b"}},"global":{"duration":1}}"#;
        let machine = Machine::preset("laptop8").expect("a machine");
        let mut engine = Engine::new("v6.12".parse().expect("a kernel"), machine, seed);
        let app = engine.start(Box::new(RtApp::parse(text).expect("a file")));
        engine.run_until(Ns::from_secs(60), &mut ());
        let workload = engine.workload(app);
        (engine.now(), workload.progress().map_or(0, |(_, loops)| loops), workload.problem())
    }

    #[test]
    fn the_last_one_at_a_barrier_wakes_the_others_though_the_duration_is_over() {
        for seed in 1..=5 {
            let (end, loops, problem) = met_for_a_second(seed);
            assert_eq!(problem, None, "seed {seed}");
            assert!(end < Ns::from_ms(1100), "seed {seed} ends at {end}");
            assert!(loops > 50_000, "seed {seed}: {loops} loops");
        }
    }

    #[test]
    fn a_thread_that_sleeps_on_at_the_end_is_a_problem() {
        let text = r#"{"global":{"duration":1},"tasks":{"a":{"suspend":"","run":1},"b":{"run":1}}}"#;
        let mut app = RtApp::parse(text).expect("a file");
        app.create(0, "a-0".to_string(), "0/0");
        app.create(1, "b-1".to_string(), "1/0");
        app.note(ThreadId(1), &Action::Wait);
        assert_eq!(app.problem(), None, "the duration is not over");
        app.stopped = true;
        let problem = app.problem().expect("nobody wakes it");
        assert_eq!(problem, "rt-app: a-0 sleeps on at the end of the duration, and nobody wakes it");
        app.to_wake[2].push_back(ThreadId(1));
        assert_eq!(app.problem(), None, "b will wake it");
        app.threads[1].stage = RtAppStage::Ended;
        assert!(app.problem().is_some(), "b has gone");
        app.note(ThreadId(2), &Action::Wake(ThreadId(1)));
        assert_eq!(app.problem(), None, "b has woken it");
    }

    #[test]
    fn of_what_comes_again_the_last_holds_and_it_is_said() {
        let twice = r#"{"tasks":{"t":{"cpus":[0],"loop":2,"runtime":1000,"sleep":2000,"runtime":4000},
            "u":{"cpus":[0],"run":9000},"u":{"cpus":[1],"loop":1,"run":3000}}}"#;
        assert_eq!(picture(twice, 2, 12), "  0 BBBB..BBBB..\n  1 DDD.........\n");
        let app = RtApp::parse(twice).expect("a file");
        let [first, second] = app.left_out() else { panic!("{:?}", app.left_out()) };
        assert!(first.contains("'tasks/u'") && second.contains("'tasks/t/runtime'"), "{first}\n{second}");
    }

    #[test]
    fn by_an_option_all_count_that_come_again() {
        let twice = r#"{"tasks":{"t":{"cpus":[0],"loop":1,"run":1000,"sleep":2000,"run":3000},
            "t":{"cpus":[1],"loop":1,"run":2000}}}"#;
        let all = RtApp::parse_as(twice, RepeatedNames::Each).expect("a file");
        assert_eq!(all.left_out(), [""; 0]);
        assert_eq!(picture_of(all, 2, 6), "  0 B..BBB\n  1 DD....\n");
        assert_eq!(picture(twice, 2, 2), "  0 ..\n  1 BB\n");
    }

    #[test]
    fn loops_that_an_old_rt_app_never_ends_are_named() {
        for (text, names) in [
            (r#"{"tasks":{"a":{"loop":5,"run":1},"b":{"run":1},"c":{"loop":-1,"run":1}}}"#, &["a"][..]),
            (r#"{"tasks":{"a":{"loop":5,"phases":{"p":{"loop":2,"run":1}}}}}"#, &[]),
            (r#"{"tasks":{"a":{"loop":5,"run":1}},"global":{"duration":1}}"#, &[]),
        ] {
            assert_eq!(RtApp::parse(text).expect("a file").looped_without_phases(), names, "{text}");
        }
    }

    #[test]
    fn what_rt_app_passes_over_and_single_quotes_are_read() {
        let text = "{'global': {'logstats': true, 'duration': 1}, 'tasks': {'t': {'run': 5}}}";
        let app = RtApp::parse(text).expect("a file");
        assert_eq!(app.left_out(), ["'logstats' of 'global'"]);
        assert_eq!(app.runtime(), Some(Ns::from_secs(1)));
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line_with_its_place() {
        for (text, problem) in [
            ("{}", "there is no object 'tasks'"),
            (r#"{"tasks":{}}"#, "nothing to run"),
            (r#"{"tasks":{"a":{"loop":1}}}"#, "a: there are no events"),
            (r#"{"tasks":{"a":{"run":"x"}}}"#, "a/run: a number of microseconds is needed, not a string"),
            (r#"{"tasks":{"a":{"run":-5}}}"#, "-5 is no number of microseconds"),
            (r#"{"tasks":{"a":{"walk":5}}}"#, "a: 'walk' is no event and no property"),
            (r#"{"tasks":{"a":{"policy":"SCHED_DEADLINE","run":5}}}"#, "SCHED_DEADLINE is not modelled"),
            (r#"{"tasks":{"a":{"policy":"SCHED_FIFO","priority":100,"run":5}}}"#, "100 is not from 1 to 99"),
            (r#"{"tasks":{"a":{"priority":20,"run":5}}}"#, "20 is no nice level"),
            (r#"{"tasks":{"a":{"fork":"b","run":5}}}"#, "a/fork: there is no task 'b'"),
            (r#"{"tasks":{"a":{"cpus":[99999],"run":5}}}"#, "a: 99999 is no CPU"),
            (r#"{"tasks":{"a":{"instance":0,"barrier":"b"}}}"#, "no task comes to barrier 'b'"),
            (r#"{"tasks":{"a":{"instance":4294967295,"run":1}}}"#, "a: 'instance' must be from 0 to 100000"),
            (
                r#"{"tasks":{"a":{"instance":90000,"run":1},"b":{"instance":90000,"run":1}}}"#,
                "180000 threads",
            ),
            (r#"{"tasks":{"a":{"run":9223372036854775807}}}"#, "a/run: it: 9223372036854775807 is no number"),
            (r#"{"tasks":{"a":{"run":1,"delay":1000000000001}}}"#, "a: 1000000000001 is no number of micro"),
            (r#"{"tasks":{"a":{"mem":9223372036854775807}}}"#, "take longer than 1000000000000 us"),
            (r#"{"global":{"duration":9223372036854775807},"tasks":{"a":{"run":1}}}"#, "global/duration"),
            (
                r#"{"tasks":{"a":{"timer":{"ref":"t","period":9223372036854775807}}}}"#,
                "'period': 9223372036854775807",
            ),
            ("{\n\"tasks\" 5", "line 2 column 9"),
        ] {
            let error = RtApp::parse(text).expect_err(problem);
            assert!(error.contains(problem) && !error.contains('\n'), "{error}");
        }
    }

    /// What a run of so many milliseconds ends with.
    fn problem_of(text: &str, milliseconds: u64) -> Option<String> {
        let machine = Machine::preset("vm4").expect("a machine");
        let mut engine = Engine::new("v6.6".parse().expect("a kernel"), machine, 1);
        let app = engine.start(Box::new(RtApp::parse(text).expect("a file")));
        engine.run_until(Ns::from_ms(milliseconds), &mut ());
        engine.workload(app).problem()
    }

    #[test]
    fn a_loop_that_costs_no_time_ends_with_a_problem() {
        for events in [
            r#""lock":"m","unlock":"m""#,
            r#""unlock":"m""#,
            r#""timer":{"ref":"u","period":0}"#,
            r#""timer":{"ref":"unique","period":0,"mode":"absolute"}"#,
            r#""sem_post":"s","sem_wait":"s""#,
            r#""signal":"c""#,
            r#""broad":"c""#,
            r#""resume":"nobody""#,
            r#""barrier":"alone""#,
        ] {
            for repeat in [-1, 2_000_000_000] {
                let text = format!(r#"{{"tasks":{{"t":{{{events},"loop":{repeat}}}}}}}"#);
                let problem = problem_of(&text, 5).unwrap_or_else(|| panic!("{text}"));
                assert!(problem.contains("t-0 took 1000000 steps at one instant"), "{problem}");
                assert!(!problem.contains('\n'));
            }
        }
        let phases = r#"{"tasks":{"t":{"phases":{"one":{"signal":"c"},"two":{"loop":3,"broad":"c"}}}}}"#;
        assert!(problem_of(phases, 5).is_some(), "over several phases");
        let pair = r#"{"tasks":{"a":{"sem_post":"x","sem_wait":"y"},"b":{"sem_wait":"x","sem_post":"y"}}}"#;
        assert_eq!(problem_of(pair, 5), None, "waiting and waking take time");
        let slow = r#"{"tasks":{"a":{"lock":"m","unlock":"m","run":0}}}"#;
        assert_eq!(problem_of(slow, 5), None, "even the shortest run takes time");
    }

    #[test]
    fn forks_without_end_end_with_a_problem() {
        let text = r#"{"tasks":{"a":{"fork":"b"},"b":{"instance":0,"loop":1,"run":1}}}"#;
        let problem = problem_of(text, 60_000).expect("too many");
        assert_eq!(problem, "rt-app: forks have made more than 100000 threads");
    }

    #[test]
    fn what_is_left_out_is_said() {
        let text = r#"{"tasks":{"a":{"util_min":100,"dl-period":9,"run":3,"phases":{"p":{"util_max":5,"run":1}}}},"global":{"logdir":"."}}"#;
        let app = RtApp::parse(text).expect("a file");
        let left_out = app.left_out().join("\n");
        for what in ["util_min", "'dl-period'", "event 'run' of task 'a'", "'logdir' of 'global'"] {
            assert!(left_out.contains(what), "{what}: {left_out}");
        }
        assert_eq!(app.left_out().len(), 4, "{left_out}");
    }

    #[test]
    fn tasks_of_groups_share_by_group_whatever_their_nice_levels() {
        let of = |first: &str, second: &str| {
            format!(
                r#"{{"tasks":{{"ant":{{{first}"priority":19,"cpus":[0],"run":900}},
                    "bee":{{{second}"priority":0,"cpus":[0],"run":900}}}}}}"#
            )
        };
        // How much the two get, the one that gets less first.
        let share = |text: &str| {
            let drawn = picture(text, 1, 400);
            let of = |letter: char| drawn.chars().filter(|&other| other == letter).count() as f64;
            let mut counts = ('A'..='Z').map(of).collect::<Vec<_>>();
            counts.sort_by(f64::total_cmp);
            (counts[24], counts[25])
        };
        let (less, more) = share(&of(r#""taskgroup":"/one","#, r#""taskgroup":"/two/below","#));
        assert!(less > 0.9 * more, "{less} : {more}");
        // In one group, and in none, nice levels decide.
        for group in [r#""taskgroup":"/one","#, ""] {
            let (less, more) = share(&of(group, group));
            assert!(more > 20.0 * less, "{less} : {more}");
        }
    }

    /// While both are in the root, nice levels decide; in groups they share by halves; a real-time task runs before all.
    #[test]
    fn a_phase_goes_back_to_the_root_and_real_time_tasks_have_groups_too() {
        let task = |name: &str, nice: u8| {
            format!(
                r#""{name}":{{"cpus":[0],"priority":{nice},"loop":1,"phases":{{"in":{{"taskgroup":"/{name}","loop":200,"run":1000}},
                    "out":{{"taskgroup":"/","loop":-1,"run":1000}}}}}}"#
            )
        };
        let text = format!(r#"{{"tasks":{{{},{}}}}}"#, task("ant", 19), task("bee", 0));
        let drawn = picture(&text, 1, 900);
        let row = drawn.trim_start_matches("  0 ").trim_end();
        let share = |from: usize, to: usize| {
            let of = |letter: char| row[from..to].chars().filter(|&one| one == letter).count();
            let mut counts = ('B'..='Z').map(of).collect::<Vec<_>>();
            counts.sort_unstable();
            (counts[23], counts[24])
        };
        let ((less, more), (few, many)) = (share(50, 350), share(500, 900));
        assert!(less * 10 > more * 8, "in groups: {less} : {more}");
        assert!(many > few * 20, "in the root: {few} : {many}");
        let text = r#"{"tasks":{"rt":{"taskgroup":"/x","policy":"SCHED_FIFO","cpus":[0],"loop":1,"run":50000},
            "fair":{"cpus":[0],"run":1000}}}"#;
        let drawn = picture(text, 1, 60);
        assert!(drawn.contains(&"B".repeat(49)) || drawn.contains(&"C".repeat(49)), "{drawn}");
    }

    #[test]
    fn task_groups_that_cannot_be_are_refused() {
        let refused =
            |task: &str| RtApp::parse(&format!(r#"{{"tasks":{{"a":{{{task}}}}}}}"#)).expect_err("refused");
        assert!(refused(r#""taskgroup":"x","run":1"#).contains("begin with '/'"));
        assert!(refused(r#""taskgroup":"/../x","run":1"#).contains("'..' is no name"));
        let groups =
            RtApp::parse(r#"{"tasks":{"a":{"taskgroup":"/x/y","run":1},"b":{"taskgroup":"/x","run":1}}}"#);
        let groups = groups.expect("a file").groups();
        let names = groups.iter().map(|group| (group.name.as_str(), group.parent, group.folder(&groups)));
        let expected = [("/x", None, "x".to_string()), ("/x/y", Some(0), "y".to_string())];
        assert_eq!(names.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_nobody_knows_is_refused() {
        for (text, problem) in [
            (r#"{"tasks":{"a":{"run":1}},"globl":{}}"#, "'globl' is nothing"),
            (r#"{"tasks":{"a":{"run":1}},"global":{"durations":1}}"#, "'durations' is no property"),
            (r#"{"tasks":{"a":{"run":1}},"global":{"pi_enabled":1}}"#, "must be true or false"),
            (r#"{"tasks":{"a":{"dance":1,"phases":{"p":{"run":1}}}}}"#, "'dance' is no event"),
            (r#"{"tasks":{"a":{"timer":{"ref":"t","period":5,"slack":1}}}}"#, "'slack' is none of"),
        ] {
            let error = RtApp::parse(text).expect_err(problem);
            assert!(error.contains(problem), "{error}");
        }
    }
}
