//! Jobs of the few kinds that a scheduler can tell apart: what is left of many a benchmark when all that is no concern of
//! the scheduler is taken away.
//!
//! Must not know: which benchmark it stands for.

mod options;

use std::collections::BTreeMap;

use fairlab_event::Ns;

use crate::rng::RandomStream;
use crate::workload::warm_up::{CountAfterWarmUp, WarmUp};
use crate::workload::{Action, ThreadId, ThreadSpec, View, Workload};
pub(super) use options::PROGRAM;
pub use options::{JobKind, JobsOptions};

/// Whose program a thread follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JobRole {
    Main,
    /// A job, by its number.
    Job(usize),
    /// The server of a job of this number; its thread follows the job's.
    Server(usize),
    /// A child of a job of this number.
    Child(usize),
}

/// A thread, and how many steps of its operation it has taken.
#[derive(Clone, Copy, Debug)]
struct JobThread {
    role: JobRole,
    step: u32,
}

/// What a job shares with its server or its children.
#[derive(Clone, Copy, Debug, Default)]
struct JobExchange {
    /// The job's thread.
    thread: ThreadId,
    /// A question waits for the server.
    asked: bool,
    /// An answer waits for the client.
    answered: bool,
    /// Children that have not ended.
    children: u32,
}

/// The jobs, ready to run.
#[derive(Debug)]
pub struct Jobs {
    options: JobsOptions,
    /// The threads that have not ended.
    threads: BTreeMap<ThreadId, JobThread>,
    /// How many threads there have been.
    created: u32,
    shared: Vec<JobExchange>,
    settling: WarmUp,
    /// What is done now counts.
    counts: bool,
    operations: CountAfterWarmUp,
}

impl Jobs {
    /// The workload with these arguments (without its name).
    ///
    /// # Errors
    /// One line that says what is wrong; for `--help` the usage text.
    pub fn parse(args: &[String]) -> Result<Jobs, String> {
        Ok(Jobs::new(JobsOptions::parse(args)?))
    }

    /// The workload with these options.
    pub fn new(options: JobsOptions) -> Jobs {
        Jobs {
            threads: BTreeMap::from([(ThreadId::MAIN, JobThread { role: JobRole::Main, step: 0 })]),
            created: 1,
            shared: Vec::new(),
            settling: WarmUp::default(),
            counts: false,
            operations: CountAfterWarmUp::default(),
            options,
        }
    }

    fn spawn(&mut self, role: JobRole, name: &str) -> Action {
        let stream = format!("{name} {}", self.created);
        self.threads.insert(ThreadId(self.created), JobThread { role, step: 0 });
        self.created += 1;
        let memory = self.options.memory;
        Action::Spawn(ThreadSpec { memory, process: true, ..ThreadSpec::new(name, stream) })
    }

    /// Creates the jobs, each with its server if it has one, and sleeps for good.
    fn main(&mut self, now: Ns) -> Action {
        let lacks_server = self.options.kind == JobKind::Pairs
            && matches!(self.threads.last_key_value(), Some((_, JobThread { role: JobRole::Job(_), .. })));
        let number = self.shared.len();
        if lacks_server {
            return self.spawn(JobRole::Server(number - 1), "server");
        }
        if number == self.options.jobs as usize {
            self.settling.begin(now);
            return Action::Wait;
        }
        self.shared.push(JobExchange { thread: ThreadId(self.created), ..JobExchange::default() });
        self.spawn(JobRole::Job(number), "job")
    }

    /// An operation is done, and the next begins.
    fn finish(&mut self, thread: ThreadId) {
        self.operations.add(1, self.counts);
        self.set_step(thread, 0);
    }

    fn job(&mut self, thread: ThreadId, job: usize, random: &mut RandomStream) -> Action {
        let step = self.next_step(thread);
        match (self.options.kind, step) {
            (JobKind::Spawn, step) if step < self.options.children => {
                self.shared[job].children += 1;
                self.spawn(JobRole::Child(job), "child")
            }
            (JobKind::Spawn, _) if self.shared[job].children > 0 => Action::Wait,
            (JobKind::Spin | JobKind::Yield | JobKind::Sleep | JobKind::Io | JobKind::Pairs, 0) => {
                Action::Run(about(self.options.run, 4, random))
            }
            (JobKind::Yield, 1) => Action::Yield,
            (JobKind::Io, 1) => Action::Io(about(self.options.sleep, 2, random)),
            (JobKind::Sleep, 1) => Action::Sleep(about(self.options.sleep, 2, random)),
            (JobKind::Pairs, 1) => {
                self.shared[job].asked = true;
                Action::WakeSync(ThreadId(thread.0 + 1))
            }
            (JobKind::Pairs, _) if !std::mem::take(&mut self.shared[job].answered) => Action::Wait,
            _ => {
                self.finish(thread);
                self.job(thread, job, random)
            }
        }
    }

    fn server(&mut self, thread: ThreadId, job: usize, random: &mut RandomStream) -> Action {
        if self.next_step(thread) > 0 {
            self.set_step(thread, 0);
            self.shared[job].answered = true;
            return Action::WakeSync(self.shared[job].thread);
        }
        if !std::mem::take(&mut self.shared[job].asked) {
            self.set_step(thread, 0);
            return Action::Wait;
        }
        Action::Run(about(self.options.answer.unwrap_or(self.options.run), 4, random))
    }

    /// Computes, and the last child of all wakes the job.
    fn child(&mut self, thread: ThreadId, job: usize, random: &mut RandomStream) -> Action {
        match self.next_step(thread) {
            0 => Action::Run(about(self.options.run, 4, random)),
            1 => {
                self.shared[job].children -= 1;
                match self.shared[job].children {
                    0 => Action::Wake(self.shared[job].thread),
                    _ => self.end(thread),
                }
            }
            _ => self.end(thread),
        }
    }

    fn end(&mut self, thread: ThreadId) -> Action {
        self.threads.remove(&thread);
        Action::Exit
    }

    /// The step that a thread is to take; it goes on from there.
    fn next_step(&mut self, thread: ThreadId) -> u32 {
        let Some(thread) = self.threads.get_mut(&thread) else { return 0 };
        thread.step += 1;
        thread.step - 1
    }

    fn set_step(&mut self, thread: ThreadId, step: u32) {
        if let Some(thread) = self.threads.get_mut(&thread) {
            thread.step = step;
        }
    }

    /// A thread that has ended is asked nothing more.
    fn role(&self, thread: ThreadId) -> Option<JobRole> {
        self.threads.get(&thread).map(|thread| thread.role)
    }
}

/// `time`, give or take a part of it.
pub(super) fn about(time: Ns, part: u64, random: &mut RandomStream) -> Ns {
    Ns(time.0 - time.0 / part + random.below(2 * time.0 / part + 1))
}

impl Workload for Jobs {
    fn main_thread(&self) -> ThreadSpec {
        ThreadSpec::new("jobs", "jobs")
    }

    fn next(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action {
        self.counts = self.settling.is_over(view.now);
        match self.role(thread) {
            Some(JobRole::Main) => self.main(view.now),
            Some(JobRole::Job(job)) => self.job(thread, job, view.random),
            Some(JobRole::Server(job)) => self.server(thread, job, view.random),
            Some(JobRole::Child(job)) => self.child(thread, job, view.random),
            None => Action::Exit,
        }
    }

    fn must_wait(&self, thread: ThreadId) -> bool {
        match self.role(thread) {
            Some(JobRole::Main) => true,
            Some(JobRole::Job(job)) if self.options.kind == JobKind::Spawn => self.shared[job].children > 0,
            Some(JobRole::Job(job)) => !self.shared[job].answered,
            Some(JobRole::Server(job)) => !self.shared[job].asked,
            Some(JobRole::Child(_)) | None => false,
        }
    }

    fn settle(&mut self, length: Ns) {
        self.settling.set(length);
    }

    fn settled(&self) -> Option<Ns> {
        self.settling.end()
    }

    fn output(&self, _: Ns) -> String {
        format!("{} operations\n", self.operations.count())
    }

    fn progress(&self) -> Option<(&'static str, u64)> {
        Some(("operations", self.operations.count()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, Machine};

    /// Operations in 100 ms on four CPUs.
    fn operations(line: &str) -> u64 {
        let args = line.split(' ').map(String::from).collect::<Vec<_>>();
        let jobs = Jobs::parse(&args).expect(line);
        let mut engine = Engine::new(
            "v4.18".parse().expect("a kernel"),
            Machine::preset("vm4").expect("a machine").exact(),
            1,
        );
        let number = engine.start(Box::new(jobs));
        engine.run_until(Ns::from_ms(100), &mut ());
        engine.workload(number).progress().expect("operations").1
    }

    fn about_as_many(line: &str, expected: u64) {
        let done = operations(line);
        assert!((expected * 9 / 10..=expected * 11 / 10).contains(&done), "{line}: {done}, not {expected}");
    }

    #[test]
    fn operations_take_the_time_that_they_compute_and_wait() {
        about_as_many("spin -n 4 -r 1000", 400);
        about_as_many("yield -n 8 -r 1000", 400);
        about_as_many("sleep -n 1 -r 500 -s 1500", 50);
        about_as_many("sleep -n 40 -r 500 -s 1000", 800);
        about_as_many("pairs -n 2 -r 300 -a 700", 200);
        about_as_many("spawn -n 2 -r 4000 -k 2", 48);
    }

    #[test]
    fn mistakes_are_told_in_one_line() {
        for (line, problem) in [
            ("dance", "'dance' is none of spin, yield, sleep, io, pairs or spawn"),
            ("spin -n 0", "-n '0' is not a whole number from 1 to 100000"),
            ("spin --fast", "unknown option '--fast'"),
        ] {
            let args = line.split(' ').map(String::from).collect::<Vec<_>>();
            assert_eq!(Jobs::parse(&args).expect_err(line), problem);
        }
    }
}
