//! Threads that do whatever a thread can do, by chance: to find where a scheduler differs from another, or breaks.
//!
//! What they may do is given, so that what is found can be narrowed. Everything is drawn from the threads' own streams; groups
//! are laid out by number.
//!
//! Must not know: schedulers, the machine.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::{CfsLimit, CpuMask, Policy};

use super::arguments::program;
use super::cgroup::GroupSpec;
use crate::rng::RandomStream;
use crate::workload::warm_up::{CountAfterWarmUp, WarmUp};
use crate::workload::{Action, ThreadId, ThreadSpec, View, Workload};

program! { PROGRAM: RandomWorkload, None, "usage: random [OPTIONS]";
    "-t, --threads N" "threads at a time (16)" |all, value| value.set(&mut all.threads, 1..=10_000);
    "-r, --runtime-ms N" "milliseconds (1000)" |all, value| value.time(&mut all.runtime, 1..=1_000_000, Ns::from_ms);
    "--run-us N" "how long a computation lasts at most, us (2000)" |all, value| value.time(&mut all.longest_run, 1..=1_000_000, Ns::from_us);
    "--sleep-us N" "how long a sleep lasts at most, us (4000)" |all, value| value.time(&mut all.longest_sleep, 1..=1_000_000, Ns::from_us);
    "--cpus N" "threads confine themselves to some of the first N CPUs (0: they do not)" |all, value| value.set(&mut all.allowed.cpus, 0..=8192);
    "--groups N" "control groups, with weights, each second one below another (0)" |all, value| value.set(&mut all.allowed.groups, 0..=1000);
    "--quotas" "each third group has a quota" |all, value| value.switch(&mut all.quotas, true);
    "--nice" "threads change their nice levels" |all, value| value.switch(&mut all.allowed.nice, true);
    "--slices" "threads ask for slices of their own" |all, value| value.switch(&mut all.allowed.slices, true);
    "--policies" "threads become SCHED_BATCH and SCHED_IDLE, and go back" |all, value| value.switch(&mut all.allowed.policies, true);
    "--realtime" "threads become SCHED_FIFO and SCHED_RR for a while" |all, value| value.switch(&mut all.allowed.realtime, true);
    "--forks" "threads end, and are replaced" |all, value| value.switch(&mut all.allowed.forks, true);
    "--execs" "threads replace their programs, which may move them (sched_exec())" |all, value| value.switch(&mut all.allowed.execs, true);
}

/// Weights of groups, by number.
const WEIGHTS: [u64; 6] = [100, 300, 20, 1000, 100, 5];

/// Quotas of groups, ms of run time in a period of so many.
const QUOTAS: [(u64, u64); 4] = [(20, 100), (4, 10), (30, 50), (2, 20)];

/// What threads may do beside computing, sleeping and waking each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RandomActions {
    cpus: u32,
    groups: usize,
    nice: bool,
    slices: bool,
    policies: bool,
    realtime: bool,
    forks: bool,
    execs: bool,
}

/// The threads, ready to run.
#[derive(Debug)]
pub struct RandomWorkload {
    threads: u32,
    runtime: Ns,
    longest_run: Ns,
    longest_sleep: Ns,
    quotas: bool,
    allowed: RandomActions,
    settling: WarmUp,
    /// Threads created so far, the main one among them.
    created: u32,
    /// Threads that live, beside the main one.
    alive: u32,
    /// Threads that wait for another to wake them.
    waiting: u32,
    /// Per thread, whether it is one of those.
    waits: Vec<bool>,
    /// The next thread that the main one wakes, when time is up.
    woken: u32,
    begun: Option<Ns>,
    over: bool,
    actions: CountAfterWarmUp,
}

impl RandomWorkload {
    /// The workload with these arguments (without its name).
    ///
    /// # Errors
    /// One line that says what is wrong; for `--help` the usage text.
    pub fn parse(args: &[String]) -> Result<RandomWorkload, String> {
        let mut all = RandomWorkload {
            threads: 16,
            runtime: Ns::from_secs(1),
            longest_run: Ns::from_ms(2),
            longest_sleep: Ns::from_ms(4),
            quotas: false,
            allowed: RandomActions::default(),
            settling: WarmUp::default(),
            created: 1,
            alive: 0,
            waiting: 0,
            waits: vec![false],
            woken: 0,
            begun: None,
            over: false,
            actions: CountAfterWarmUp::default(),
        };
        PROGRAM.read(args, &mut all)?;
        if all.quotas && all.allowed.groups == 0 {
            return Err("--quotas needs groups: give --groups".to_string());
        }
        Ok(all)
    }

    /// The main thread keeps the number of threads; when time is up it wakes all that wait, so that they end.
    fn main(&mut self, now: Ns) -> Action {
        if now >= self.ends(now) {
            self.over = true;
            self.woken += 1;
            return if self.woken < self.created { Action::Wake(ThreadId(self.woken)) } else { Action::Exit };
        }
        if self.alive == self.threads {
            self.settling.begin(now);
            return Action::Sleep(Ns::from_ms(1));
        }
        self.alive += 1;
        let number = self.created;
        self.created += 1;
        self.waits.push(false);
        Action::Spawn(ThreadSpec::new("random", format!("random {number}")))
    }

    fn ends(&mut self, now: Ns) -> Ns {
        *self.begun.get_or_insert(now) + self.settling.length() + self.runtime
    }

    /// What a thread does, of what all may do always.
    fn act(&mut self, thread: ThreadId, random: &mut RandomStream) -> Action {
        match random.below(100) {
            0..42 => Action::Run(up_to(random, self.longest_run)),
            42..60 => Action::Sleep(up_to(random, self.longest_sleep)),
            60..68 => Action::Wake(self.another(random)),
            68..74 => Action::WakeSync(self.another(random)),
            74..82 => self.wait(thread),
            82..85 => Action::Io(up_to(random, self.longest_sleep)),
            85..87 => Action::Yield,
            87..91 => Action::SystemCall(up_to(random, Ns::from_us(200))),
            _ => self.change(random),
        }
    }

    fn another(&self, random: &mut RandomStream) -> ThreadId {
        ThreadId(1 + random.below(u64::from(self.created.max(2) - 1)) as u32)
    }

    /// Waits for another thread, unless it would be the last that does anything.
    fn wait(&mut self, thread: ThreadId) -> Action {
        if self.waiting + 1 >= self.alive {
            return Action::Yield;
        }
        self.waiting += 1;
        self.waits[thread.index()] = true;
        Action::Wait
    }

    /// Changes something about itself, where that is allowed; otherwise computes a little.
    fn change(&mut self, random: &mut RandomStream) -> Action {
        let RandomActions { cpus, groups, nice, slices, policies, realtime, forks, execs } = self.allowed;
        let set = |policy, nice, request, allowed| Action::SetScheduler { policy, nice, request, allowed };
        match random.below(if execs { 10 } else { 7 }) {
            0 if nice => set(None, Some(random.below(40) as i32 - 20), None, None),
            1 if slices => set(None, None, Some(Ns(100_000 + random.below(20_000_000))), None),
            2 if policies => {
                let policy = [Policy::Normal, Policy::Batch, Policy::Idle][random.below(3) as usize];
                set(Some(policy), None, None, None)
            }
            3 if realtime => {
                let priority = 1 + random.below(99) as u8;
                let policy = [Policy::Normal, Policy::Fifo(priority), Policy::RoundRobin(priority)];
                set(Some(policy[random.below(3) as usize]), None, None, None)
            }
            4 if cpus > 0 => {
                let (first, length) = (random.below(cpus.into()), 1 + random.below(cpus.into()));
                let some = (first..first + length).map(|cpu| Cpu((cpu % u64::from(cpus)) as u32));
                set(None, None, None, Some(some.collect()))
            }
            5 if groups > 0 => Action::EnterGroup(random.below(groups as u64) as usize),
            6 if forks && random.below(4) == 0 => {
                self.alive -= 1;
                Action::Exit
            }
            7.. => Action::Exec,
            _ => Action::Run(Ns(1 + random.below(20_000))),
        }
    }
}

/// A time of up to `most`; short ones come more often.
fn up_to(random: &mut RandomStream, most: Ns) -> Ns {
    let limit = random.below(most.0);
    Ns(1 + random.below(1 + limit))
}

impl Workload for RandomWorkload {
    fn groups(&self) -> Vec<GroupSpec> {
        let group = |number: usize| {
            let weight = WEIGHTS[number % WEIGHTS.len()];
            let parent = (number % 2 == 1).then_some(number / 2);
            let (quota, period) = QUOTAS[number / 3 % QUOTAS.len()];
            let limit = CfsLimit::new(Ns::from_ms(quota), Ns::from_ms(period), Ns::ZERO);
            let limited = self.quotas && number % 3 == 2;
            let max = limit.ok().filter(|_| limited).unwrap_or(CfsLimit::UNLIMITED);
            GroupSpec { weight, parent, max, ..GroupSpec::new(format!("random{number}")) }
        };
        (0..self.allowed.groups).map(group).collect()
    }

    fn named_cpus(&self) -> CpuMask {
        (0..self.allowed.cpus).map(Cpu).collect()
    }

    fn main_thread(&self) -> ThreadSpec {
        ThreadSpec::new("random", "random main")
    }

    fn next(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action {
        if thread == ThreadId::MAIN {
            return self.main(view.now);
        }
        if std::mem::take(&mut self.waits[thread.index()]) {
            self.waiting -= 1;
        }
        if self.over {
            return Action::Exit;
        }
        self.actions.add(1, self.settling.is_over(view.now));
        self.act(thread, view.random)
    }

    fn must_wait(&self, _: ThreadId) -> bool {
        !self.over
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

    fn output(&self, _: Ns) -> String {
        format!("{} threads did {} things\n", self.created - 1, self.actions.count())
    }

    fn progress(&self) -> Option<(&'static str, u64)> {
        Some(("actions", self.actions.count()))
    }

    fn runtime(&self) -> Option<Ns> {
        Some(self.runtime)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fairlab_event::{Event, EventKind, sink_fn};

    use super::*;
    use crate::{Engine, Machine};

    const EVERYTHING: &str =
        "-t 12 -r 400 --cpus 4 --groups 5 --quotas --nice --slices --policies --realtime --forks --execs";

    fn run(line: &str, seed: u64, mut see: impl FnMut(&Event<'_>)) -> (u64, String) {
        let args = line.split(' ').map(str::to_string).collect::<Vec<_>>();
        let machine = Machine::preset("vm4").expect("a machine").exact();
        let mut engine = Engine::new("v6.12".parse().expect("a kernel"), machine, seed);
        engine.set_tracing(true);
        let number = engine.start(Box::new(RandomWorkload::parse(&args).expect("options")));
        engine.run_until(Ns::from_secs(2), &mut sink_fn(|event: &Event<'_>| see(event)));
        assert!(engine.now() < Ns::from_secs(2), "every thread ends");
        let workload = engine.workload(number);
        (workload.progress().map_or(0, |(_, count)| count), workload.output(engine.now()))
    }

    #[test]
    fn all_that_is_allowed_happens() {
        let (mut seen, mut groups) = (BTreeSet::new(), 0);
        let (actions, _) = run(EVERYTHING, 1, |event| match event.kind {
            EventKind::SchedSwitch(switch) => {
                let prio = switch.next_prio.0;
                seen.insert(if prio < 100 {
                    "realtime"
                } else if prio == 120 {
                    "normal"
                } else {
                    "nice"
                });
            }
            EventKind::SchedProcessExit { .. } => drop(seen.insert("exit")),
            EventKind::SchedMigrateTask { .. } => drop(seen.insert("migration")),
            EventKind::Other { name: "cgroup_attach_task", .. } => groups += 1,
            _ => {}
        });
        assert!(actions > 1000, "{actions}");
        assert_eq!(seen, BTreeSet::from(["realtime", "normal", "nice", "exit", "migration"]));
        assert!(groups > 5, "{groups}");
    }

    #[test]
    fn what_is_not_allowed_does_not_happen() {
        let (mut prios, mut exits) = (BTreeSet::new(), 0);
        run("-t 8 -r 200", 1, |event| match event.kind {
            EventKind::SchedSwitch(switch) if switch.next_comm.as_bytes() == b"random" => {
                prios.insert(switch.next_prio.0);
            }
            EventKind::SchedProcessExit { .. } if event.time < Ns::from_ms(200) => exits += 1,
            _ => {}
        });
        assert_eq!((prios, exits), (BTreeSet::from([120]), 0));
    }

    #[test]
    fn a_seed_says_what_happens() {
        let of = |seed| run(EVERYTHING, seed, |_| {});
        assert_eq!(of(3), of(3));
        assert_ne!(of(3), of(4));
    }
}
