//! Sessions of several users, each in a control group of its own, as autogroups or a login manager make them: a few programs
//! that compute alone beside one with a thread per CPU.
//!
//! Each session has a number of tasks, which compute and, if configured, wait in between. All groups have one weight, so a
//! task alone in its group has the load of all tasks of another group together.
//!
//! Must not know: CPUs, schedulers.

use fairlab_event::Ns;

use super::cgroup::GroupSpec;
use super::jobs::about;
use crate::rng::RandomStream;
use crate::workload::warm_up::{CountAfterWarmUp, WarmUp};
use crate::workload::{Action, ThreadId, ThreadSpec, View, Workload};

/// What a command line gives.
pub const USAGE: &str = "\
usage: sessions TASKS[:RUN_US[:SLEEP_US]]...
  one control group for each word, with so many tasks that
  RUN_US    compute for so long, give or take a quarter, again and again (10000)
  SLEEP_US  and wait in between, give or take a half (0)
";

/// The most tasks of all sessions.
const TASKS_MAX: u32 = 100_000;

/// What is asked of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Session {
    tasks: u32,
    run: Ns,
    sleep: Ns,
}

/// The sessions, ready to run.
#[derive(Debug)]
pub struct Sessions {
    sessions: Vec<Session>,
    /// Of each thread but the first: its session, and whether it has computed and is to wait.
    threads: Vec<(usize, bool)>,
    settling: WarmUp,
    operations: CountAfterWarmUp,
}

impl Sessions {
    /// The workload with these arguments (without its name).
    ///
    /// # Errors
    /// One line that says what is wrong; for `--help` the usage text.
    pub fn parse(args: &[String]) -> Result<Sessions, String> {
        if args.iter().any(|word| word == "-h" || word == "--help") {
            return Err(USAGE.to_string());
        }
        let sessions = args.iter().map(|word| session(word)).collect::<Result<Vec<_>, _>>()?;
        if sessions.is_empty() {
            return Err("no session is given".to_string());
        }
        if sessions.iter().map(|session| u64::from(session.tasks)).sum::<u64>() > u64::from(TASKS_MAX) {
            return Err(format!("these are more than {TASKS_MAX} tasks"));
        }
        Ok(Sessions {
            sessions,
            threads: Vec::new(),
            settling: WarmUp::default(),
            operations: CountAfterWarmUp::default(),
        })
    }

    /// The next task, session by session.
    fn create(&mut self) -> Option<ThreadSpec> {
        let mut number = u32::try_from(self.threads.len()).ok()?;
        let session = self.sessions.iter().position(|session| {
            let here = number < session.tasks;
            number -= if here { 0 } else { session.tasks };
            here
        })?;
        self.threads.push((session, true));
        let spec = ThreadSpec::new(&format!("session{session}"), format!("session {session} task {number}"));
        Some(ThreadSpec { group: Some(session), process: true, ..spec })
    }

    fn task(&mut self, thread: ThreadId, now: Ns, random: &mut RandomStream) -> Action {
        let counts = self.settling.is_over(now);
        let (session, computed) = &mut self.threads[thread.index() - 1];
        let Session { run, sleep, .. } = self.sessions[*session];
        *computed = !*computed && sleep > Ns::ZERO;
        if *computed {
            return Action::Sleep(about(sleep, 2, random));
        }
        self.operations.add(1, counts);
        Action::Run(about(run, 4, random))
    }
}

fn session(word: &str) -> Result<Session, String> {
    let number = |text: &str, least: u32| {
        let value = text.parse::<u32>().ok().filter(|value| (least..=100_000_000).contains(value));
        value.ok_or_else(|| format!("'{word}' is not TASKS[:RUN_US[:SLEEP_US]]"))
    };
    let mut parts = word.split(':');
    let tasks = number(parts.next().unwrap_or_default(), 1)?;
    let run = parts.next().map_or(Ok(10_000), |text| number(text, 1))?;
    let sleep = parts.next().map_or(Ok(0), |text| number(text, 0))?;
    if parts.next().is_some() {
        return Err(format!("'{word}' is not TASKS[:RUN_US[:SLEEP_US]]"));
    }
    Ok(Session { tasks, run: Ns::from_us(run.into()), sleep: Ns::from_us(sleep.into()) })
}

impl Workload for Sessions {
    fn groups(&self) -> Vec<GroupSpec> {
        (0..self.sessions.len()).map(|number| GroupSpec::new(format!("session{number}"))).collect()
    }

    fn main_thread(&self) -> ThreadSpec {
        ThreadSpec::new("sessions", "sessions")
    }

    fn next(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action {
        if thread == ThreadId::MAIN {
            if let Some(spec) = self.create() {
                return Action::Spawn(spec);
            }
            self.settling.begin(view.now);
            return Action::Wait;
        }
        self.task(thread, view.now, view.random)
    }

    fn must_wait(&self, _: ThreadId) -> bool {
        true
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

    fn parse(line: &str) -> Result<Sessions, String> {
        Sessions::parse(&line.split(' ').map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn operations_take_the_time_that_they_compute_and_wait() {
        for (line, expected) in [("1:1000 1:1000", 1000), ("2:1000 4:1000", 2000), ("2:1000:1000", 500)] {
            let machine = Machine::preset("vm4").expect("a machine").exact();
            let mut engine = Engine::new("v5.10".parse().expect("a kernel"), machine, 1);
            let number = engine.start(Box::new(parse(line).expect(line)));
            engine.run_until(Ns::from_ms(500), &mut ());
            let done = engine.workload(number).progress().expect("operations").1;
            assert!((expected * 9 / 10..=expected * 11 / 10).contains(&done), "{line}: {done}");
        }
    }

    #[test]
    fn mistakes_are_told_in_one_line() {
        for (line, problem) in [
            ("0", "'0' is not TASKS[:RUN_US[:SLEEP_US]]"),
            ("1:2:3:4", "'1:2:3:4' is not TASKS[:RUN_US[:SLEEP_US]]"),
            ("99999 2", "these are more than 100000 tasks"),
        ] {
            assert_eq!(parse(line).expect_err(line), problem);
        }
    }
}
