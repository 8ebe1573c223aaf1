//! Balancing by decayed loads of the past (LB_BIAS) is switched off, and hardly anything changes.
//!
//! Must not know: how loads are biased; balancing is only asked what it moved.

mod catalogue;

use std::collections::BTreeMap;

use fairlab_analysis::statistics::{FALSE_DISCOVERY_RATE, MARGIN, Verdict, adjusted, judge, mean, rivals};
use fairlab_event::{Event, Ns};
use fairlab_kernel::Scheduler;
use fairlab_kernel::balance::BalanceNote;

use super::render::number;
use super::{Bench, Plan, Published, Report, Scenario};
use crate::{CompareOptions, Comparison, ComparisonRow, LabError, Onlooker, RunResult, compare};
use catalogue::{CATALOGUE, Test};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "lb-bias",
    about: "LKP's catalogue of 104 tests on four machines: hardly anything changes when LB_BIAS is switched off",
    source: "Dietmar Eggemann, \"sched/fair: Disable LB_BIAS by default\", 9 August 2018, with results of the 0-Day robot",
    commit: "fdf5f315d5cf (\"sched/fair: Disable LB_BIAS by default\", v4.20)",
    pair: ["v4.18", "v4.18+NO_LB_BIAS"],
    machine: "lkp-bdw-ep3",
    conduct,
};

/// Before and after.
const KERNELS: [&str; 2] = ["v4.18", "v4.18+NO_LB_BIAS"];

/// How many tasks balancing moved.
#[derive(Clone, Copy, Debug, Default)]
struct Moved(u64);

impl Onlooker for Moved {
    fn event(&mut self, _: &Event<'_>) {}

    fn wants_balancing(&self) -> bool {
        true
    }

    fn balanced(&mut self, note: &BalanceNote, _: &Scheduler) {
        self.0 += u64::from(note.decision.moved());
    }
}

/// What came of one test; of several tests that a scheduler cannot tell apart, of all of them.
#[derive(Clone, Debug)]
struct Outcome {
    row: ComparisonRow,
    /// Tasks moved in all runs, before and after.
    moved: [u64; 2],
}

fn conduct(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    let seeds = bench.choose(8, 3);
    let shorter = bench.choose(1, 2);
    let mut cells = BTreeMap::new();
    for test in CATALOGUE {
        let (workload, milliseconds) = test.seen.workload();
        cells.entry((test.machine, workload)).or_insert(milliseconds / shorter);
    }
    let plan = |kernel, machine, workload: &str, milliseconds, seed| Plan {
        kernel,
        machine,
        workload: workload.to_string(),
        duration: Ns::from_ms(milliseconds),
        seed,
    };
    let mut plans = Vec::new();
    for (&(machine, ref workload), &milliseconds) in &cells {
        for kernel in KERNELS {
            plans.extend((1..=seeds).map(|seed| plan(kernel, machine, workload, milliseconds, seed)));
        }
    }
    let Some(results) = bench.watch(&plans, |_| Moved::default())? else { return Ok(None) };
    let mut outcomes = BTreeMap::new();
    for (cell, runs) in cells.keys().zip(results.chunks(2 * seeds as usize)) {
        outcomes.insert(cell.clone(), outcome(runs, seeds as usize)?);
    }
    judge_as_a_family(&mut outcomes);
    tell(report, &outcomes, seeds);
    claims(report, &outcomes);
    Ok(Some(()))
}

fn outcome(runs: &[(RunResult, Moved)], seeds: usize) -> Result<Outcome, LabError> {
    let results = runs.iter().map(|(run, _)| run.clone()).collect::<Vec<_>>();
    let metric = ["throughput", "wakeup_latency_ns_p99"].into_iter();
    let metric = metric.filter(|name| results.iter().all(|run| run.metric(name).is_some())).take(1);
    let options = CompareOptions { metrics: metric.map(String::from).collect(), ..CompareOptions::default() };
    let Comparison { rows, .. } = compare(&KERNELS.map(String::from), &results, &options)?;
    let row = rows.into_iter().next().ok_or_else(|| {
        LabError::new(format!("'{}' measures nothing", results[0].workload), "let it run longer")
    })?;
    let moved = |runs: &[(RunResult, Moved)]| runs.iter().map(|(_, moved)| moved.0).sum();
    Ok(Outcome { row, moved: [moved(&runs[..seeds]), moved(&runs[seeds..])] })
}

/// All workloads are one family: each verdict takes account of how many there are.
fn judge_as_a_family(outcomes: &mut Outcomes) {
    let family = outcomes.values().map(|outcome| outcome.row.estimate.p).collect::<Vec<_>>();
    for (Outcome { row, .. }, q) in outcomes.values_mut().zip(adjusted(&family)) {
        let is_real = q.is_some_and(|q| q <= FALSE_DISCOVERY_RATE);
        row.verdict = judge(&row.estimate, row.better, MARGIN, is_real);
    }
}

type Outcomes = BTreeMap<(&'static str, String), Outcome>;

fn outcome_of<'a>(outcomes: &'a Outcomes, test: &Test) -> Option<&'a Outcome> {
    outcomes.get(&(test.machine, test.seen.workload().0))
}

/// The table, machine by machine, in LKP's layout with ours beside it.
fn tell(report: &mut Report, outcomes: &Outcomes, seeds: u64) {
    report.heading("The catalogue");
    report.text(format!(
        "v4.18 against v4.18+NO_LB_BIAS, {seeds} runs of each, paired by seed. In LKP's manner: mean and spread before, \
         change, mean and spread after (operations a second; where a program has none, the 99th percentile of wakeup \
         latencies, ns). Then tasks moved by balancing in all runs, before and after, our verdict, and what the commit's \
         text prints. Tests that a scheduler cannot tell apart are run once and have equal rows: a loop of system calls is a \
         hog to it, whatever the calls do. {} tests, {} workloads.",
        CATALOGUE.len(),
        outcomes.len(),
    ));
    let mut machines = CATALOGUE.iter().map(|test| test.machine).collect::<Vec<_>>();
    machines.dedup();
    for machine in machines {
        report.text(format!("{machine}:"));
        let tests = CATALOGUE.iter().filter(|test| test.machine == machine);
        let rows = tests.filter_map(|test| outcome_of(outcomes, test).map(|outcome| row(test, outcome)));
        let header =
            ["test", "before", "change", "after", "moved", "after", "verdict", "published", "seen as"];
        report.table(&header, rows.collect());
    }
}

fn row(test: &Test, Outcome { row, moved }: &Outcome) -> Vec<String> {
    let value = |values: &[f64]| {
        let spread = rivals::lkp_spread(values);
        let mark = if spread >= 2.0 { format!(" ± {spread:.0}%") } else { String::new() };
        number(mean(values)) + &mark
    };
    let published =
        test.published.iter().map(|(_, before, after)| format!("{:+.0}%", (after / before - 1.0) * 100.0));
    vec![
        test.name.trim_end_matches("-performance").to_string(),
        value(&row.baseline),
        row.estimate.ratio.map_or("-".to_string(), |ratio| format!("{:+.1}%", (ratio - 1.0) * 100.0)),
        value(&row.values),
        moved[0].to_string(),
        moved[1].to_string(),
        row.verdict.name().to_string(),
        published.collect::<Vec<_>>().join(" "),
        test.seen.abstraction().split([':', ';', ',']).next().unwrap_or_default().to_string(),
    ]
}

fn claims(report: &mut Report, outcomes: &Outcomes) {
    let changed = |test: &&Test| {
        let verdict = outcome_of(outcomes, test).map(|outcome| outcome.row.verdict);
        matches!(verdict, Some(Verdict::Better | Verdict::Worse))
    };
    report.claim(
        "almost no test changes significantly: at most 5 of 104",
        Published::Figure(2.0),
        Some(CATALOGUE.iter().filter(changed).count() as f64),
        "tests",
        |tests| tests <= 5.0,
    );
    let change = |name: &str| {
        let test = CATALOGUE.iter().find(|test| test.name == name)?;
        Some((outcome_of(outcomes, test)?.row.estimate.ratio? - 1.0) * 100.0)
    };
    report.claim(
        "fsmark on btrfs over NFS without sync: +7 %, which its own spread of 6 % puts in doubt; within 2 % here",
        Published::Figure(7.0),
        change("fsmark/1x-1t-1HDD-btrfs-nfsv4-4M-60G-NoSync-performance"),
        "%",
        |percent| percent.abs() <= 2.0,
    );
    report.claim(
        "unixbench syscall with a copy a CPU: -11 %; one hog a CPU leaves balancing nothing to do, within 2 % here",
        Published::Figure(-11.0),
        change("unixbench/300s-100%-syscall-performance"),
        "%",
        |percent| percent.abs() <= 2.0,
    );
    let moved = outcomes
        .values()
        .fold([0, 0], |sum: [u64; 2], outcome| [sum[0] + outcome.moved[0], sum[1] + outcome.moved[1]]);
    let other = outcomes.values().filter(|outcome| outcome.moved[0] != outcome.moved[1]).count();
    report.text(format!(
        "Balancing moved {} tasks with the bias and {} without; the numbers differ in {other} of {} workloads.",
        moved[0],
        moved[1],
        outcomes.len()
    ));
    report.claim(
        "the bias makes balancing conservative: without it more tasks are moved",
        Published::Said("allows the adjustment on how conservative load should be balanced"),
        (moved[0] > 0).then(|| moved[1] as f64 / moved[0] as f64),
        "times",
        |ratio| ratio > 1.0,
    );
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// Runs of some hogs and sleepers on each side of a change.
    fn moved(kernels: [&'static str; 2]) -> Vec<(String, u64)> {
        let stop = AtomicBool::new(false);
        let bench = Bench { quick: true, jobs: 2, on_progress: &|_| {}, stop: &stop };
        let plan = |kernel| Plan {
            kernel,
            machine: "lkp-bdw-ep3",
            workload: "jobs sleep -n 200 -r 3000 -s 2000".to_string(),
            duration: Ns::from_secs(2),
            seed: 1,
        };
        let results =
            bench.watch(&kernels.map(plan), |_| Moved::default()).expect("runs").expect("not stopped");
        results.into_iter().map(|(run, moved)| (run.digest, moved.0)).collect()
    }

    #[test]
    fn the_bias_changes_what_is_moved_and_nothing_does_where_it_has_no_effect() {
        let with_effect = moved(["v4.18", "v4.18+NO_LB_BIAS"]);
        assert!(with_effect.iter().all(|(_, moved)| *moved > 100), "{with_effect:?}");
        assert_ne!(with_effect[0], with_effect[1]);
        let same = moved(["v4.18+NO_LB_BIAS", "v4.18+fdf5f315d5cf"]);
        assert_eq!(same[0], same[1], "switching it off is all that the commit does");
    }

    #[test]
    fn the_catalogue_is_that_of_the_commit() {
        assert_eq!(CATALOGUE.len(), 104);
        assert_eq!(CATALOGUE.iter().filter(|test| !test.published.is_empty()).count(), 19);
        for test in CATALOGUE {
            let (workload, _) = test.seen.workload();
            let words = workload.split_whitespace().map(String::from).collect::<Vec<_>>();
            assert!(crate::workloads::build(&words).is_ok(), "{}: {workload}", test.name);
            assert!(crate::machines::find(test.machine).is_ok(), "{}", test.machine);
        }
    }
}
