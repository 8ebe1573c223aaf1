//! Control groups whose tasks rarely run, beside another workload: what fills a desktop's or a container host's queues
//! with load that fades away.
//!
//! Each group has one thread a CPU, bound to it. A thread sleeps for half to one and a half periods, runs for a moment and
//! sleeps again. While it sleeps its group's queue on that CPU has blocked load, which each update of the CPU's averages
//! has to age until it is gone.
//!
//! Must not know: what the workload beside them does.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::CpuMask;

use super::arguments::program;
use super::cgroup::GroupSpec;
use crate::workload::{Action, MemberProgress, ThreadId, ThreadSpec, View, Workload};

program! { PROGRAM: DaemonsOptions, Command, "usage: daemons [-g GROUPS] [-c CPUS] [-p PERIOD_MS] [-r RUN_US] WORKLOAD [ITS OPTIONS]";
    "-g N" "control groups, each with a thread on each CPU (40)" |all, value| value.set(&mut all.groups, 0..=10_000);
    "-c N" "CPUs, from 0 (8)" |all, value| value.set(&mut all.cpus, 1..=1024);
    "-p N" "how long a thread sleeps on average, ms (500)" |all, value| value.time(&mut all.period, 1..=100_000, Ns::from_ms);
    "-r N" "how long it runs then, us (20)" |all, value| value.time(&mut all.run, 1..=1_000_000, Ns::from_us);
}

/// What the command line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DaemonsOptions {
    /// Control groups.
    pub groups: u32,
    /// Threads a group: one a CPU.
    pub cpus: u32,
    /// How long a thread sleeps on average.
    pub period: Ns,
    /// How long it runs then, as work at full speed.
    pub run: Ns,
}

impl DaemonsOptions {
    /// The options, and the rest of the command line: the workload beside the daemons.
    ///
    /// # Errors
    /// One line that says what is wrong; for `--help` the usage text.
    pub fn parse(args: &[String]) -> Result<(DaemonsOptions, &[String]), String> {
        let mut options =
            DaemonsOptions { groups: 40, cpus: 8, period: Ns::from_ms(500), run: Ns::from_us(20) };
        let command = PROGRAM.read(args, &mut options)?;
        if command.is_empty() {
            return Err("the workload is missing".to_string());
        }
        Ok((options, &args[args.len() - command.len()..]))
    }

    fn threads(&self) -> u32 {
        self.groups * self.cpus
    }
}

/// Daemons beside a workload.
pub struct Daemons {
    options: DaemonsOptions,
    inner: Box<dyn Workload>,
    /// The groups that the workload beside them needs stand before theirs.
    inner_groups: Vec<GroupSpec>,
    spawned: u32,
    /// Of each daemon, whether it has slept and is to run.
    has_slept: Vec<bool>,
    /// The workload's main thread has ended, and they end, too.
    over: bool,
}

impl Daemons {
    /// Daemons with these options beside `inner`.
    pub fn new(options: DaemonsOptions, inner: Box<dyn Workload>) -> Daemons {
        let has_slept = vec![false; options.threads() as usize];
        Daemons { options, inner_groups: inner.groups(), inner, spawned: 0, has_slept, over: false }
    }

    /// The next daemon, as long as there is one: created before anything that the workload creates.
    fn create(&mut self) -> Option<ThreadSpec> {
        let number = self.spawned;
        if number == self.options.threads() {
            return None;
        }
        self.spawned += 1;
        let (group, cpu) = (number / self.options.cpus, number % self.options.cpus);
        Some(ThreadSpec {
            allowed: CpuMask::single(Cpu(cpu)),
            group: Some(self.inner_groups.len() + group as usize),
            ..ThreadSpec::new("daemon", format!("daemon {group} on CPU {cpu}"))
        })
    }

    /// The number of the workload's own thread; `None` for a daemon.
    fn inner_thread(&self, thread: ThreadId) -> Option<ThreadId> {
        match thread {
            ThreadId::MAIN => Some(thread),
            ThreadId(number) => number.checked_sub(self.options.threads()).filter(|&n| n > 0).map(ThreadId),
        }
    }

    /// The number by which the engine knows one of the workload's threads.
    fn outer_thread(&self, thread: ThreadId) -> ThreadId {
        if thread == ThreadId::MAIN { thread } else { ThreadId(thread.0 + self.options.threads()) }
    }

    fn daemon(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action {
        if self.over {
            return Action::Exit;
        }
        let has_slept = &mut self.has_slept[thread.index() - 1];
        *has_slept = !*has_slept;
        if !*has_slept {
            return Action::Run(self.options.run);
        }
        let period = self.options.period.0;
        Action::Sleep(Ns(period / 2 + view.random.below(period)))
    }
}

impl Workload for Daemons {
    fn begin_on(&mut self, cpus: &CpuMask) {
        self.inner.begin_on(cpus);
    }

    fn groups(&self) -> Vec<GroupSpec> {
        let daemons = (0..self.options.groups).map(|number| GroupSpec::new(format!("daemon{number}")));
        self.inner_groups.iter().cloned().chain(daemons).collect()
    }

    fn named_cpus(&self) -> CpuMask {
        self.inner.named_cpus().or(&CpuMask::first(self.options.cpus as usize))
    }

    fn main_thread(&self) -> ThreadSpec {
        self.inner.main_thread()
    }

    fn next(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action {
        let Some(inner) = self.inner_thread(thread) else { return self.daemon(thread, view) };
        if thread == ThreadId::MAIN
            && let Some(daemon) = self.create()
        {
            return Action::Spawn(daemon);
        }
        let action = self.inner.next(inner, view);
        self.over |= inner == ThreadId::MAIN && matches!(action, Action::Exit);
        match action {
            Action::Wake(target) => Action::Wake(self.outer_thread(target)),
            Action::WakeSync(target) => Action::WakeSync(self.outer_thread(target)),
            Action::Administer(order) => {
                let order = order.outside(|thread| self.outer_thread(thread), |group| group, None);
                Action::Administer(Box::new(order))
            }
            action => action,
        }
    }

    fn system_call_done(&mut self, thread: ThreadId) -> Option<ThreadId> {
        let inner = self.inner_thread(thread)?;
        self.inner.system_call_done(inner).map(|target| self.outer_thread(target))
    }

    fn sees(&mut self, thread: ThreadId, word: u32) -> bool {
        self.inner_thread(thread).is_none_or(|inner| self.inner.sees(inner, word))
    }

    fn spun(&mut self, word: u32, time: Ns) {
        self.inner.spun(word, time);
    }

    fn must_wait(&self, thread: ThreadId) -> bool {
        self.inner_thread(thread).is_none_or(|inner| self.inner.must_wait(inner))
    }

    fn member(&self, thread: ThreadId) -> Option<&str> {
        self.inner.member(self.inner_thread(thread)?)
    }

    fn sets_scheduling(&self) -> bool {
        self.inner.sets_scheduling()
    }

    fn needs_kernel_threads(&self) -> bool {
        self.inner.needs_kernel_threads()
    }

    fn settle(&mut self, length: Ns) {
        self.inner.settle(length);
    }

    fn settled(&self) -> Option<Ns> {
        self.inner.settled()
    }

    fn output(&self, now: Ns) -> String {
        self.inner.output(now)
    }

    fn members(&self) -> Vec<MemberProgress<'_>> {
        self.inner.members()
    }

    fn progress(&self) -> Option<(&'static str, u64)> {
        self.inner.progress()
    }

    fn metrics(&self) -> Vec<(String, f64)> {
        self.inner.metrics()
    }

    fn runtime(&self) -> Option<Ns> {
        self.inner.runtime()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::pipe::PipeBench;
    use crate::{Engine, Machine};

    fn parse(line: &str) -> Result<(DaemonsOptions, usize), String> {
        let args = line.split(' ').map(String::from).collect::<Vec<_>>();
        DaemonsOptions::parse(&args).map(|(options, rest)| (options, rest.len()))
    }

    #[test]
    fn options_come_before_the_workload() {
        let (options, rest) = parse("-g 3 -c 2 -p 100 -r 50 pipe -l 10").expect("options");
        let expected = DaemonsOptions { groups: 3, cpus: 2, period: Ns::from_ms(100), run: Ns::from_us(50) };
        assert_eq!((options, rest), (expected, 3));
        for (line, problem) in [
            ("-g 3", "the workload is missing"),
            ("-g many pipe", "-g 'many' is not a whole number from 0 to 10000"),
            ("-c 0 pipe", "-c '0' is not a whole number from 1 to 1024"),
            ("-x pipe", "unknown option '-x'"),
            ("-p", "-p needs a value"),
        ] {
            assert_eq!(parse(line).expect_err(line), problem);
        }
    }

    /// The workload does the same as without daemons, in the same order, and daemons end after it.
    #[test]
    fn the_workload_beside_them_runs_to_its_end() {
        let args = ["-l", "200"].map(String::from);
        let options = DaemonsOptions { groups: 3, cpus: 4, period: Ns::from_ms(5), run: Ns::from_us(20) };
        let inner = Box::new(PipeBench::parse(&args).expect("options"));
        let kernel = "v5.4".parse().expect("a kernel");
        let mut engine = Engine::new(kernel, Machine::preset("vm4").expect("a machine").exact(), 1);
        let number = engine.start(Box::new(Daemons::new(options, inner)));
        engine.run_until(Ns::from_secs(1), &mut ());
        assert_eq!(engine.workload(number).progress().map(|(_, count)| count), Some(200));
        assert!(engine.now() < Ns::from_ms(100), "{}", engine.now());
    }
}
