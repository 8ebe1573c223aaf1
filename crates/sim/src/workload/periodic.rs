//! Tasks that compute at the start of each period and sleep until the next: how late do they begin? The period is the same
//! for all, or longer from task to task, so that they go through all the ways in which they can meet.
//!
//! Must not know: CPUs, schedulers.

use fairlab_event::Ns;

use super::arguments::program;
use super::schbench::histogram::{Extremes, SchbenchHistogram};
use crate::workload::warm_up::WarmUp;
use crate::workload::{Action, ThreadId, ThreadSpec, View, Workload};

program! { PROGRAM: Periodic, None, "usage: periodic [OPTIONS]";
    "-n, --tasks N" "tasks (4)" |all, value| {
        all.tasks = vec![PeriodicTask::default(); value.number(1..=100_000)?];
        Ok(())
    };
    "-c, --run-us N" "how long each computes a period, us (1000)" |all, value| value.time(&mut all.run, 1..=10_000_000, Ns::from_us);
    "-p, --period-us N" "the period, us (10000)" |all, value| value.time(&mut all.period, 1..=10_000_000, Ns::from_us);
    "-d, --longer-us N" "by how much each task's period is longer than the one's before it, us (0)" |all, value| {
        value.time(&mut all.longer, 0..=1_000_000, Ns::from_us)
    };
    "-r, --runtime S" "seconds (10)" |all, value| value.time(&mut all.runtime, 1..=100_000, Ns::from_secs);
}

/// A task.
#[derive(Clone, Copy, Debug, Default)]
struct PeriodicTask {
    /// When its next period begins; none before its first.
    due: Option<Ns>,
    /// It sleeps, or slept, until then.
    sleeps: bool,
}

/// The tasks, ready to run.
#[derive(Debug)]
pub struct Periodic {
    run: Ns,
    period: Ns,
    longer: Ns,
    runtime: Ns,
    /// When the main thread began: periods count from there.
    began: Option<Ns>,
    tasks: Vec<PeriodicTask>,
    created: usize,
    slept: bool,
    over: bool,
    settling: WarmUp,
    periods: u64,
    /// Periods that had passed before their task was done with the one before.
    missed: u64,
    lateness: SchbenchHistogram,
    extremes: Extremes,
}

impl Periodic {
    /// The workload with these arguments (without its name).
    ///
    /// # Errors
    /// One line that says what is wrong; for `--help` the usage text.
    pub fn parse(args: &[String]) -> Result<Periodic, String> {
        let mut all = Periodic {
            run: Ns::from_ms(1),
            period: Ns::from_ms(10),
            longer: Ns::ZERO,
            runtime: Ns::from_secs(10),
            began: None,
            tasks: vec![PeriodicTask::default(); 4],
            created: 0,
            slept: false,
            over: false,
            settling: WarmUp::default(),
            periods: 0,
            missed: 0,
            lateness: SchbenchHistogram::default(),
            extremes: Extremes::default(),
        };
        PROGRAM.read(args, &mut all)?;
        Ok(all)
    }

    fn main(&mut self, now: Ns) -> Action {
        self.began.get_or_insert(now);
        if self.created < self.tasks.len() {
            self.created += 1;
            return Action::Spawn(ThreadSpec::new("periodic", format!("periodic {}", self.created)));
        }
        if !std::mem::replace(&mut self.slept, true) {
            let settled = self.settling.begin(now);
            return Action::Sleep(self.runtime + settled.since(now));
        }
        self.over = true;
        Action::Exit
    }

    fn task(&mut self, index: usize, now: Ns) -> Action {
        let period = Ns(self.period.0 + self.longer.0 * index as u64);
        let began = self.began.unwrap_or(now);
        let counts = self.settling.is_over(now);
        let task = &mut self.tasks[index];
        let next_period = || began + Ns(now.since(began).0.next_multiple_of(period.0));
        let due = *task.due.get_or_insert_with(next_period);
        if !task.sleeps && due > now {
            task.sleeps = true;
            return Action::Sleep(due.since(now));
        }
        let slept = std::mem::take(&mut task.sleeps);
        if slept && counts {
            let late_us = (now.since(due).0 / 1_000) as u32;
            self.lateness.add(late_us);
            self.extremes.add(late_us);
        } else if counts {
            self.missed += u64::from(due < now);
        }
        task.due = Some(due + period);
        self.periods += u64::from(counts);
        Action::Run(self.run)
    }
}

impl Workload for Periodic {
    fn main_thread(&self) -> ThreadSpec {
        ThreadSpec::new("periodic", "periodic main")
    }

    fn next(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action {
        match thread.index().checked_sub(1) {
            None => self.main(view.now),
            Some(_) if self.over => Action::Exit,
            Some(index) => self.task(index, view.now),
        }
    }

    fn settle(&mut self, length: Ns) {
        self.settling.set(length);
    }

    fn settled(&self) -> Option<Ns> {
        self.settling.end()
    }

    fn output(&self, _: Ns) -> String {
        let us = |percent: f64| self.lateness.percentile(percent);
        format!(
            "{} periods, {} missed\nbegins late (usec): 50.0th {}, 99.0th {}, max {}\n",
            self.periods,
            self.missed,
            us(50.0),
            us(99.0),
            self.extremes.max
        )
    }

    fn progress(&self) -> Option<(&'static str, u64)> {
        Some(("periods", self.periods))
    }

    fn metrics(&self) -> Vec<(String, f64)> {
        let us = |percent: f64| f64::from(self.lateness.percentile(percent));
        [
            ("periodic_lateness_us_p50", us(50.0)),
            ("periodic_lateness_us_p99", us(99.0)),
            ("periodic_lateness_us_max", f64::from(self.extremes.max)),
            ("periodic_missed_share", self.missed as f64 / self.periods.max(1) as f64),
        ]
        .map(|(name, value)| (name.to_string(), value))
        .into()
    }

    fn runtime(&self) -> Option<Ns> {
        Some(self.runtime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, Machine};

    fn run(line: &str, machine: &str) -> Vec<(String, f64)> {
        let args = line.split(' ').map(str::to_string).collect::<Vec<_>>();
        let machine = Machine::preset(machine).expect("a machine").exact();
        let mut engine = Engine::new("v6.12".parse().expect("a kernel"), machine, 1);
        let number = engine.start(Box::new(Periodic::parse(&args).expect("options")));
        engine.run_until(Ns::from_secs(20), &mut ());
        let workload = engine.workload(number);
        let mut numbers = workload.metrics();
        numbers.extend(workload.progress().map(|(unit, count)| (unit.to_string(), count as f64)));
        numbers
    }

    #[test]
    fn periods_are_kept_where_there_is_room_and_missed_where_not() {
        let number = |numbers: &[(String, f64)], name: &str| {
            numbers.iter().find(|(known, _)| known == name).map(|&(_, value)| value).expect(name)
        };
        let idle = run("-n 4 -c 1000 -p 10000 -r 5", "vm4");
        assert!((number(&idle, "periods") - 2_000.0).abs() <= 8.0, "{idle:?}");
        assert_eq!(number(&idle, "periodic_missed_share"), 0.0);
        assert!((50.0..100.0).contains(&number(&idle, "periodic_lateness_us_p50")), "timer slack: {idle:?}");
        let crowded = run("-n 8 -c 8000 -p 10000 -r 5", "vm4");
        assert!(number(&crowded, "periodic_missed_share") > 0.5, "{crowded:?}");
        // 5 s of 10, 12, 14 and 16 ms.
        let unlike = run("-n 4 -c 1000 -p 10000 -d 2000 -r 5", "vm4");
        assert!((number(&unlike, "periods") - 1_586.0).abs() <= 8.0, "{unlike:?}");
    }
}
