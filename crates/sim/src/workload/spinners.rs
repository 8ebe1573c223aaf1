//! Tasks that compute, and may sleep in between, at nice levels and in control groups of given weights: how much CPU time
//! does each get?
//!
//! Each task enters its group, takes its nice level, and waits until the main thread lets all of them begin. On a real kernel
//! the first write into a group waits for tens of ms, and tasks that compute meanwhile settle on other CPUs.
//!
//! Must not know: CPUs, schedulers.

use fairlab_event::Ns;

use super::arguments::program;
use super::cgroup::GroupSpec;
use crate::workload::warm_up::WarmUp;
use crate::workload::{Action, ThreadId, ThreadSpec, View, Workload};

program! { PROGRAM: Options, None, "usage: spinners [OPTIONS]";
    "-n, --nice LIST" "nice levels between commas: a task of each in each group (0)" |all, value| value.list(&mut all.nice, -20..=19);
    "-g, --weights LIST" "cpu.weight of control groups, between commas (no groups)" |all, value| value.list(&mut all.weights, 1..=10_000);
    "-r, --runtime S" "seconds (10)" |all, value| value.time(&mut all.runtime, 1..=100_000, Ns::from_secs);
    "--run-us N" "how long a task computes before it counts that, us (500)" |all, value| value.time(&mut all.run, 1..=1_000_000, Ns::from_us);
    "-s, --sleep-us N" "how long it then sleeps, us (0: it only computes)" |all, value| value.time(&mut all.sleep, 0..=1_000_000, Ns::from_us);
}

/// What the command line asks for.
pub(super) struct Options {
    nice: Vec<i32>,
    weights: Vec<i32>,
    runtime: Ns,
    run: Ns,
    sleep: Ns,
}

/// How long the main thread sleeps before it lets the tasks begin.
const SETTLING: Ns = Ns(100_000_000);

/// How far a task has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpinnerStage {
    Created,
    InGroup,
    Ready,
}

/// A task.
#[derive(Clone, Copy, Debug)]
struct Spinner {
    group: Option<usize>,
    nice: i32,
    stage: SpinnerStage,
    /// It has been told to compute, and that is done when it is asked again.
    computes: bool,
    /// It has computed, and slept since then.
    slept: bool,
    loops: u64,
}

/// The tasks, ready to run.
#[derive(Debug)]
pub struct Spinners {
    weights: Vec<u64>,
    runtime: Ns,
    run: Ns,
    sleep: Ns,
    spinners: Vec<Spinner>,
    created: usize,
    /// The tasks are there, and the main thread sleeps.
    settles: bool,
    settling: WarmUp,
    /// How many tasks have been woken to begin; with the first, all may.
    woken: usize,
    slept: bool,
    over: bool,
}

impl Spinners {
    /// The workload with these arguments (without its name).
    ///
    /// # Errors
    /// One line that says what is wrong; for `--help` the usage text.
    pub fn parse(args: &[String]) -> Result<Spinners, String> {
        let mut options = Options {
            nice: vec![0],
            weights: Vec::new(),
            runtime: Ns::from_secs(10),
            run: Ns::from_us(500),
            sleep: Ns::ZERO,
        };
        PROGRAM.read(args, &mut options)?;
        let Options { nice, weights, runtime, run, sleep } = options;
        let groups = if weights.is_empty() { vec![None] } else { (0..weights.len()).map(Some).collect() };
        let of_group = |group: Option<usize>| {
            let stage = SpinnerStage::Created;
            nice.iter().map(move |&nice| Spinner {
                group,
                nice,
                stage,
                computes: false,
                slept: true,
                loops: 0,
            })
        };
        Ok(Spinners {
            spinners: groups.into_iter().flat_map(of_group).collect(),
            weights: weights.into_iter().map(|weight| weight as u64).collect(),
            runtime,
            run,
            sleep,
            created: 0,
            settles: false,
            settling: WarmUp::default(),
            woken: 0,
            slept: false,
            over: false,
        })
    }

    fn main(&mut self, now: Ns) -> Action {
        if self.created < self.spinners.len() {
            self.created += 1;
            return Action::Spawn(ThreadSpec::new("spinner", format!("spinner {}", self.created)));
        }
        if !std::mem::replace(&mut self.settles, true) {
            return Action::Sleep(SETTLING);
        }
        if self.woken < self.spinners.len() {
            self.woken += 1;
            return Action::Wake(ThreadId(self.woken as u32));
        }
        if !std::mem::replace(&mut self.slept, true) {
            let settled = self.settling.begin(now);
            return Action::Sleep(self.runtime + settled.since(now));
        }
        self.over = true;
        Action::Exit
    }

    /// The part of all computation that these tasks did; 0 before any was done.
    fn share(&self, of: impl Fn(&Spinner) -> bool) -> f64 {
        let loops = |which: &dyn Fn(&Spinner) -> bool| -> u64 {
            self.spinners.iter().filter(|spinner| which(spinner)).map(|spinner| spinner.loops).sum()
        };
        loops(&of) as f64 / loops(&|_| true).max(1) as f64
    }
}

impl Workload for Spinners {
    fn sets_scheduling(&self) -> bool {
        self.spinners.iter().any(|spinner| spinner.nice != 0)
    }

    fn groups(&self) -> Vec<GroupSpec> {
        let group = |(number, &weight): (usize, &u64)| GroupSpec {
            weight,
            ..GroupSpec::new(format!("spin{number}"))
        };
        self.weights.iter().enumerate().map(group).collect()
    }

    fn main_thread(&self) -> ThreadSpec {
        ThreadSpec::new("spinners", "spinners main")
    }

    fn next(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action {
        let Some(index) = thread.index().checked_sub(1) else { return self.main(view.now) };
        let (over, run, sleep, counts) = (self.over, self.run, self.sleep, self.settling.is_over(view.now));
        let Some(spinner) = self.spinners.get_mut(index).filter(|_| !over) else { return Action::Exit };
        if spinner.stage == SpinnerStage::Created {
            spinner.stage = SpinnerStage::InGroup;
            if let Some(group) = spinner.group {
                return Action::EnterGroup(group);
            }
        }
        if spinner.stage == SpinnerStage::InGroup {
            spinner.stage = SpinnerStage::Ready;
            if spinner.nice != 0 {
                let nice = Some(spinner.nice);
                return Action::SetScheduler { policy: None, nice, request: None, allowed: None };
            }
        }
        if self.woken == 0 {
            return Action::Wait;
        }
        spinner.loops += u64::from(std::mem::take(&mut spinner.computes) && counts);
        spinner.slept = !spinner.slept && sleep > Ns::ZERO;
        if spinner.slept {
            return Action::Sleep(sleep);
        }
        spinner.computes = true;
        Action::Run(run)
    }

    fn must_wait(&self, _: ThreadId) -> bool {
        self.woken == 0
    }

    fn settle(&mut self, length: Ns) {
        self.settling.set(length);
    }

    fn settled(&self) -> Option<Ns> {
        self.settling.end()
    }

    fn output(&self, _: Ns) -> String {
        let mut text =
            format!("{:<8} {:>8} {:>6} {:>12} {:>8}\n", "group", "weight", "nice", "computed ms", "share %");
        for spinner in &self.spinners {
            let group = spinner.group.map_or("-".to_string(), |group| format!("spin{group}"));
            let weight = spinner.group.map_or("-".to_string(), |group| self.weights[group].to_string());
            let computed = Ns(spinner.loops * self.run.0).as_ms_f64();
            let share = spinner.loops as f64 * 100.0
                / self.spinners.iter().map(|one| one.loops).sum::<u64>().max(1) as f64;
            text += &format!("{group:<8} {weight:>8} {:>6} {computed:>12.1} {share:>8.2}\n", spinner.nice);
        }
        text
    }

    fn progress(&self) -> Option<(&'static str, u64)> {
        Some(("loops", self.spinners.iter().map(|spinner| spinner.loops).sum()))
    }

    fn metrics(&self) -> Vec<(String, f64)> {
        let of_group = (0..self.weights.len())
            .map(|group| (format!("group{group}_share"), self.share(|spinner| spinner.group == Some(group))));
        let mut levels = self.spinners.iter().map(|spinner| spinner.nice).collect::<Vec<_>>();
        levels.sort_unstable();
        levels.dedup();
        let of_level = levels
            .into_iter()
            .map(|nice| (format!("nice{nice}_share"), self.share(|spinner| spinner.nice == nice)));
        of_group.chain(of_level).collect()
    }

    fn runtime(&self) -> Option<Ns> {
        Some(self.runtime)
    }
}

#[cfg(test)]
mod tests {
    use fairlab_event::{Event, EventKind, sink_fn};

    use super::*;
    use crate::{Engine, Machine};

    fn metrics(line: &str, machine: &str) -> Vec<(String, f64)> {
        let args = line.split(' ').map(str::to_string).collect::<Vec<_>>();
        let machine = Machine::preset(machine).expect("a machine").exact();
        let mut engine = Engine::new("v6.12".parse().expect("a kernel"), machine, 1);
        let number = engine.start(Box::new(Spinners::parse(&args).expect("options")));
        engine.run_until(Ns::from_secs(20), &mut ());
        engine.workload(number).metrics()
    }

    #[test]
    fn shares_follow_weights() {
        // Each CPU of four has one task of each level; 1024 against 335 is the kernel's weight of nice 0 against 5.
        let shares = metrics("-n 0,0,0,0,5,5,5,5 -r 8", "vm4");
        let expected = 1024.0 / (1024.0 + 335.0);
        assert_eq!(shares[0].0, "nice0_share");
        assert!((shares[0].1 - expected).abs() < 0.02, "{shares:?}");
        let shares = metrics("-n 0,0,0,0 -g 100,300 -r 8", "vm4");
        assert_eq!(shares[1].0, "group1_share");
        assert!((shares[1].1 - 0.75).abs() < 0.02, "{shares:?}");
    }

    #[test]
    fn a_task_that_sleeps_leaves_the_rest_to_the_others() {
        // Alone on its CPU each would compute a third of the time; there is room for all of them.
        let shares = metrics("-n 0,19 --run-us 1000 -s 2000 -r 4", "vm4");
        assert!(shares.iter().all(|(_, share)| (share - 0.5).abs() < 0.01), "{shares:?}");
    }

    /// All have entered their groups, have their nice levels, and wait; then all begin.
    #[test]
    fn tasks_begin_together_when_all_are_ready() {
        let mut computed = Vec::new();
        let mut sink = sink_fn(|event: &Event<'_>| {
            if let EventKind::SchedStatRuntime { pid, runtime, .. } = event.kind
                && runtime > Ns(500_000)
            {
                computed.push((event.time, pid));
            }
        });
        let args = ["-n", "0,5", "-g", "100,300", "-r", "1"].map(str::to_string);
        let machine = Machine::preset("vm4").expect("a machine").exact();
        let mut engine = Engine::new("v6.12".parse().expect("a kernel"), machine, 1);
        engine.set_tracing(true);
        engine.start(Box::new(Spinners::parse(&args).expect("options")));
        engine.run_until(SETTLING + Ns::from_ms(20), &mut sink);
        drop(sink);
        let begun = computed.first().map(|&(time, _)| time).expect("they compute");
        assert!(begun > SETTLING && begun < SETTLING + Ns::from_ms(5), "{begun:?}");
        let mut tasks = computed.iter().map(|&(_, pid)| pid).collect::<Vec<_>>();
        tasks.sort_unstable();
        tasks.dedup();
        assert_eq!(tasks.len(), 4, "{computed:?}");
    }

    #[test]
    fn bad_options_are_said_in_one_line() {
        for (line, problem) in [
            ("-n 20", "-n '20' is not a whole number from -20 to 19"),
            ("-g 0,1", "-g '0' is not a whole number from 1 to 10000"),
            ("-n", "-n needs a value"),
            ("5", "'5' is one word too many"),
        ] {
            let args = line.split(' ').map(str::to_string).collect::<Vec<_>>();
            assert_eq!(Spinners::parse(&args).expect_err(line), problem);
        }
    }
}
