//! Balancing by decayed loads of the past (LB_BIAS) is switched off, and hardly anything changes.
//!
//! Must not know: how loads are biased; balancing is only asked what it moved.

mod catalogue;

use std::collections::BTreeMap;

use fairlab_analysis::statistics::{FALSE_DISCOVERY_RATE, MARGIN, adjusted, judge, mean, rivals};
use fairlab_event::Ns;

use super::claim::of;
use super::render::number;
use super::{Bar, Bench, Claim, Measured, Plan, Published, Report, Row, RunKey, Scenario, Small};
use catalogue::{CATALOGUE, Printed, Test};
use fairlab_lab::{CompareOptions, Comparison, ComparisonRow, LabError, RunResult, compare};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "lb-bias",
    about: "LKP's catalogue of 104 tests on four machines: hardly anything changes when LB_BIAS is switched off",
    source: "Dietmar Eggemann, \"sched/fair: Disable LB_BIAS by default\", 9 August 2018, with results of the 0-Day robot",
    commit: "fdf5f315d5cf (\"sched/fair: Disable LB_BIAS by default\", v4.20)",
    pair: ["v4.18", "v4.18+NO_LB_BIAS"],
    machine: "lkp-bdw-ep3",
    small: Small {
        workload: "jobs sleep -n 12 -r 3000 -s 2000",
        machine: "emulated:1x4x1",
        duration: Ns::from_secs(2),
    },
    measured: "Runs are measured from the program's start, as the report's tests measure.",
    conduct,
    claims,
    booted: None,
    reported: None,
};

/// Before and after.
const BEFORE: &str = "v4.18";
const AFTER: &str = "v4.18+NO_LB_BIAS";

/// All workloads together.
const CATALOGUED: &str = "the catalogue";

const CHANGED: &str = "tests that change";
const CHANGE: &str = "change, %";
const LEFT: &str = "of the pulls that the bias changes those that it suppresses, %";
const BIASED: &str = "tries in which the bias has a part, and pulls that it suppresses";

/// The tests whose change the commit's text prints with percents.
const FSMARK: &str = "fsmark/1x-1t-1HDD-btrfs-nfsv4-4M-60G-NoSync-performance";
const SYSCALL: &str = "unixbench/300s-100%-syscall-performance";

/// What balancing did, and what the bias made of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Balanced {
    /// Tasks that were moved.
    moved: u64,
    /// Tries in which the bias has a part, and those of them that it changed in anything.
    biased: u64,
    changed: u64,
    /// Tasks that stayed because of it, and tasks that moved only because of it.
    suppressed: u64,
    brought: u64,
}

impl Balanced {
    fn and(self, other: Balanced) -> Balanced {
        Balanced {
            moved: self.moved + other.moved,
            biased: self.biased + other.biased,
            changed: self.changed + other.changed,
            suppressed: self.suppressed + other.suppressed,
            brought: self.brought + other.brought,
        }
    }
}

impl Balanced {
    const METRICS: &[&str] =
        &["lb_moved", "lb_bias_tries", "lb_bias_changed", "lb_bias_kept", "lb_bias_brought"];

    fn of(run: &RunResult) -> Balanced {
        let count = |name| run.metric(name).unwrap_or(0.0) as u64;
        let [moved, biased, changed, suppressed, brought] =
            [0, 1, 2, 3, 4].map(|number: usize| count(Balanced::METRICS[number]));
        Balanced { moved, biased, changed, suppressed, brought }
    }
}

/// What came of one test; of several tests that a scheduler cannot tell apart, of all of them.
#[derive(Clone, Debug)]
struct Outcome {
    row: ComparisonRow,
    /// What balancing did in all runs, before and after.
    before: Balanced,
    after: Balanced,
}

/// A workload on a machine: both names.
type Cell = (&'static str, String);

/// What came of each.
type Outcomes = BTreeMap<Cell, Outcome>;

fn plan(&(machine, ref workload): &Cell, kernel: &'static str, milliseconds: u64) -> Plan {
    Plan {
        run: RunKey::new(format!("{machine}: {workload}"), kernel),
        kernel,
        machine,
        workload: workload.clone(),
        duration: Ns::from_ms(milliseconds),
        measured: Measured::FromStart,
    }
}

fn conduct(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    let seeds = bench.choose(8, 3);
    let shorter = bench.choose(1, 2);
    let mut cells = BTreeMap::<Cell, [Plan; 2]>::new();
    for test in CATALOGUE {
        let (workload, milliseconds) = test.seen.workload();
        let cell = (test.machine, workload);
        let plans = [BEFORE, AFTER].map(|kernel| plan(&cell, kernel, milliseconds / shorter));
        cells.entry(cell).or_insert(plans);
    }
    let plans = cells.values().flatten().cloned().collect::<Vec<_>>();
    let Some(runs) = bench.measure(&plans, 1..=seeds, Balanced::METRICS, || ())? else { return Ok(None) };
    let mut outcomes = Outcomes::new();
    for (cell, [before, after]) in cells {
        outcomes.insert(cell, outcome(runs.of(&before.run)?, runs.of(&after.run)?)?);
    }
    report.keep(runs.into_runs());
    judge_as_a_family(&mut outcomes);
    tell(report, &outcomes, seeds);
    pulls(report, &outcomes);
    measure(report, &outcomes);
    Ok(Some(()))
}

type Runs = [(RunResult, ())];

fn outcome(before: &Runs, after: &Runs) -> Result<Outcome, LabError> {
    let results = before.iter().chain(after).map(|(run, _)| run.clone()).collect::<Vec<_>>();
    let metric = ["throughput", "wakeup_latency_ns_p99"].into_iter();
    let metric = metric.filter(|name| results.iter().all(|run| run.metric(name).is_some())).take(1);
    let options = CompareOptions { metrics: metric.map(String::from).collect(), ..CompareOptions::default() };
    let Comparison { rows, .. } = compare(&[BEFORE, AFTER].map(String::from), &results, &options)?;
    let row = rows.into_iter().next().ok_or_else(|| {
        let workload = results.first().map_or("no run", |run| &run.workload);
        LabError::new(format!("'{workload}' measures nothing"), "let it run longer")
    })?;
    let sum = |runs: &Runs| runs.iter().fold(Balanced::default(), |sum, (run, ())| sum.and(Balanced::of(run)));
    Ok(Outcome { row, before: sum(before), after: sum(after) })
}

/// All workloads are one family: each verdict takes account of how many there are.
fn judge_as_a_family(outcomes: &mut Outcomes) {
    let family = outcomes.values().map(|outcome| outcome.row.estimate.p).collect::<Vec<_>>();
    for (Outcome { row, .. }, q) in outcomes.values_mut().zip(adjusted(&family)) {
        let is_real = q.is_some_and(|q| q <= FALSE_DISCOVERY_RATE);
        row.verdict = judge(&row.estimate, row.better, MARGIN, is_real);
    }
}

/// The table, machine by machine, in LKP's layout with ours beside it.
fn tell(report: &mut Report, outcomes: &Outcomes, seeds: u64) {
    report.heading("The catalogue");
    report.text(format!(
        "v4.18 against v4.18+NO_LB_BIAS, {seeds} runs of each, paired by seed. In LKP's manner: mean and spread before, \
         change, mean and spread after (operations a second; where a program has none, the 99th percentile of wakeup \
         latencies, ns). Then tasks moved by balancing in all runs, before and after. Then pulls that the bias \
         suppressed: tasks that stayed and that a try by present loads alone would have moved (each try of the \
         biased kernel is decided in both ways). Then our verdict, and what the commit's text prints; its star \
         marks tests with a change in a metric. Tests that a scheduler cannot tell apart are run once and have equal rows: a loop of system calls is a \
         hog to it, whatever the calls do. {} tests, {} workloads.",
        CATALOGUE.len(),
        outcomes.len(),
    ));
    let mut machines = CATALOGUE.iter().map(|test| test.machine).collect::<Vec<_>>();
    machines.dedup();
    for machine in machines {
        report.text(format!("{machine}:"));
        let tests = CATALOGUE.iter().filter(|test| test.machine == machine);
        let rows = tests.filter_map(|test| outcomes.get(&test.cell()).map(|outcome| row(test, outcome)));
        let header = [
            "test",
            "before",
            "change",
            "after",
            "moved",
            "after",
            "suppressed",
            "verdict",
            "published",
            "seen as",
        ];
        report.table(&header, rows.collect());
    }
}

fn row(test: &Test, Outcome { row, before, after }: &Outcome) -> Vec<String> {
    let value = |values: &[f64]| {
        let spread = rivals::lkp_spread(values);
        let mark = if spread >= 2.0 { format!(" ± {spread:.0}%") } else { String::new() };
        number(mean(values)) + &mark
    };
    let published = test.published.iter().map(printed);
    let star = if test.published.is_empty() { "" } else { "* " };
    vec![
        format!("{star}{}", test.name.trim_end_matches("-performance")),
        value(&row.baseline),
        row.estimate.ratio.map_or("-".to_string(), |ratio| format!("{:+.1}%", (ratio - 1.0) * 100.0)),
        value(&row.values),
        before.moved.to_string(),
        after.moved.to_string(),
        before.suppressed.to_string(),
        row.verdict.words().to_string(),
        published.collect::<Vec<_>>().join("; "),
        test.seen.abstraction().split([':', ';', ',']).next().unwrap_or_default().to_string(),
    ]
}

/// The commit's text prints changes of 7 % and 11 %, and only the values where they differ by less than 3 %.
const LEAST_PRINTED: f64 = 5.0;

/// What the commit's text prints, in its own layout.
fn printed((metric, before, after): &Printed) -> String {
    let value = |(mean, spread): (f64, u32)| {
        let mark = if spread > 0 { format!(" ± {spread}%") } else { String::new() };
        if mean < 100.0 { format!("{mean:.2}{mark}") } else { format!("{mean:.0}{mark}") }
    };
    let change = (after.0 / before.0 - 1.0) * 100.0;
    let change = if change.abs() < LEAST_PRINTED { String::new() } else { format!("{change:.0}% ") };
    format!("{} {change}{} {metric}", value(*before), value(*after))
}

/// The figures of the tests, and the picture of those whose change the commit prints.
fn measure(report: &mut Report, outcomes: &Outcomes) {
    let outcome = |test: &Test| outcomes.get(&test.cell());
    let is_changed = |test: &&Test| outcome(test).is_some_and(|outcome| outcome.row.verdict.is_difference());
    let changed = CATALOGUE.iter().filter(is_changed).count();
    report.figures.set(CHANGED, RunKey::new(CATALOGUED, AFTER), changed as f64);
    let mut rows = Vec::new();
    for test in CATALOGUE {
        let Some((_, before, after)) = test.published.first() else { continue };
        let Some(outcome) = outcome(test) else { continue };
        let change = outcome.row.estimate.ratio.map(|ratio| (ratio - 1.0) * 100.0);
        report.figures.set(CHANGE, RunKey::new(test.name, AFTER), change);
        let name = test.name.trim_end_matches("-performance");
        rows.push(Row::new(name, Some((after.0 / before.0 - 1.0) * 100.0), change));
    }
    report.picture("tests whose change the commit prints, %", false, rows);
}

/// The sums over all workloads.
fn pulls(report: &mut Report, outcomes: &Outcomes) {
    let sum =
        |side: fn(&Outcome) -> Balanced| outcomes.values().map(side).fold(Balanced::default(), Balanced::and);
    let (with, without) = (sum(|outcome| outcome.before), sum(|outcome| outcome.after));
    let touched = outcomes.values().filter(|outcome| outcome.before.suppressed > 0).count();
    report.text(format!(
        "Balancing moved {} tasks with the bias and {} without. It has a part in {} tries (busy and idle CPUs above the \
         threads of a core) and changed {} of them in queue, amount or tasks. It suppressed {} pulls of tasks, in {touched} of \
         {} workloads, and brought about {}. A task that is left is mostly pulled a try later: this is why the numbers of \
         moved tasks hardly differ.",
        with.moved,
        without.moved,
        with.biased,
        with.changed,
        with.suppressed,
        outcomes.len(),
        with.brought,
    ));
    let pulls = with.suppressed + with.brought;
    let left = (pulls > 0).then(|| with.suppressed as f64 * 100.0 / pulls as f64);
    report.figures.set(LEFT, RunKey::new(CATALOGUED, BEFORE), left);
    let without = (without.biased + without.suppressed) as f64;
    report.figures.set(BIASED, RunKey::new(CATALOGUED, AFTER), without);
}

fn claims() -> Vec<Claim> {
    vec![
        Claim::new(
            "almost no test changes significantly: at most 5 of 104",
            Published::Figure(2.0),
            of(CHANGED, RunKey::new(CATALOGUED, AFTER)),
            "tests",
            Bar::AtMost(5.0),
        ),
        Claim::new(
            "fsmark on btrfs over NFS without sync: +7 %, which its own spread of 6 % puts in doubt; within 2 % here",
            Published::Figure(7.0),
            of(CHANGE, RunKey::new(FSMARK, AFTER)),
            "%",
            Bar::Near { value: 0.0, by: 2.0 },
        ),
        Claim::new(
            "unixbench syscall with a copy a CPU: -11 %; one hog a CPU leaves balancing nothing to do, within 2 % here",
            Published::Figure(-11.0),
            of(CHANGE, RunKey::new(SYSCALL, AFTER)),
            "%",
            Bar::Near { value: 0.0, by: 2.0 },
        ),
        Claim::new(
            "the bias makes balancing conservative: where it changes what is moved, it leaves tasks (at least 80 % of pulls)",
            Published::Said("allows the adjustment on how conservative load should be balanced"),
            of(LEFT, RunKey::new(CATALOGUED, BEFORE)),
            "%",
            Bar::AtLeast(80.0),
        ),
        Claim::new(
            "ablation: without the feature nothing is suppressed",
            Published::Nothing,
            of(BIASED, RunKey::new(CATALOGUED, AFTER)),
            "pulls",
            Bar::AtMost(0.0),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// Runs of sleepers on each side of a change.
    fn balanced(kernels: [&'static str; 2]) -> [(String, Balanced); 2] {
        let stop = AtomicBool::new(false);
        let bench = Bench {
            quick: true,
            exact: false,
            warmup: None,
            jobs: 2,
            on_progress: &|_| {},
            stop: &stop,
            longest: None,
        };
        let sleepers = ("lkp-bdw-ep3", "jobs sleep -n 200 -r 3000 -s 2000".to_string());
        let plans = kernels.map(|kernel| plan(&sleepers, kernel, 2000));
        let runs = bench.measure(&plans, [1], Balanced::METRICS, || ()).expect("runs").expect("not stopped");
        plans.map(|plan| {
            let [(run, ())] = &runs.of(&plan.run).expect("runs")[..] else { panic!("one run each") };
            (run.digest.clone(), Balanced::of(run))
        })
    }

    #[test]
    fn the_bias_changes_what_is_moved_and_nothing_does_where_it_has_no_effect() {
        let [(digest, with), (other_digest, without)] = balanced([BEFORE, AFTER]);
        assert!(with.moved > 100 && without.moved > 100, "{with:?} {without:?}");
        assert_ne!(digest, other_digest);
        assert!(with.suppressed > 10 * with.brought.max(1) && with.changed <= with.biased, "{with:?}");
        assert_eq!((without.biased, without.suppressed), (0, 0));
        let [switched, committed] = balanced([AFTER, "v4.18+fdf5f315d5cf"]);
        assert_eq!(switched, committed, "switching it off is all that the commit does");
    }

    #[test]
    fn each_claim_on_a_test_is_on_one_whose_change_is_printed() {
        for name in [FSMARK, SYSCALL] {
            let test = CATALOGUE.iter().find(|test| test.name == name).expect(name);
            assert!(!test.published.is_empty(), "{name}");
        }
    }

    #[test]
    fn published_lines_are_as_the_commit_prints_them() {
        let of = |name: &str| {
            let test = CATALOGUE.iter().find(|test| test.name.starts_with(name)).expect(name);
            test.published.iter().map(printed).collect::<Vec<_>>()
        };
        assert_eq!(
            of("fsmark/1x-1t-1HDD-btrfs-nfsv4-4M-60G-NoSync"),
            ["7.50 7% 8.00 ± 6% fsmark.files_per_sec"]
        );
        assert_eq!(of("unixbench/300s-100%-syscall"), ["3571 ± 3% -11% 3183 ± 4% unixbench.score"]);
        assert_eq!(of("unixbench/300s-1-context1"), ["312 315 unixbench.score"]);
        assert_eq!(of("will-it-scale/malloc1").len(), 2);
    }

    #[test]
    fn the_catalogue_is_that_of_the_commit() {
        assert_eq!(CATALOGUE.len(), 104);
        assert_eq!(CATALOGUE.iter().filter(|test| !test.published.is_empty()).count(), 19);
        for test in CATALOGUE {
            let (workload, _) = test.seen.workload();
            let words = workload.split_whitespace().map(String::from).collect::<Vec<_>>();
            assert!(fairlab_lab::workloads::build(&words).is_ok(), "{}: {workload}", test.name);
            assert!(fairlab_lab::machines::find(test.machine).is_ok(), "{}", test.machine);
        }
    }
}
