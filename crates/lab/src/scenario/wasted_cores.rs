//! Idle cores beside waiting tasks: of the four bugs of 2016 the one that the kernels that are modelled have and lose.
//!
//! Must not know: how balancing decides; it only counts what came of it.

use fairlab_analysis::statistics::mean;
use fairlab_event::Ns;

use super::render::number;
use super::{Bar, Bench, Plan, Published, Report, Scenario, Small};
use crate::{LabError, RunResult};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "wasted-cores",
    about: "cores idle beside waiting tasks, hidden from balancing by a lone task that has the load of a whole group",
    source: "Jean-Pierre Lozi and others, \"The Linux Scheduler: a Decade of Wasted Cores\", EuroSys 2016",
    commit: "0b0695f2b34a (\"sched/fair: Rework load_balance()\", v5.5) ends it: idle CPUs are counted, not loads",
    pair: ["v4.18", "v5.5"],
    machine: "xeon-2s80",
    small: Small { workload: "sessions 1 7:5000:300", machine: "emulated:2x4x1", duration: Ns::from_secs(2) },
    conduct,
    booted: None,
};

/// One user's lone program, and another's with a task for each other CPU.
const TWO_USERS: &str = "sessions 1 79:5000:300";

/// As many tasks, all of one user.
const ONE_USER: &str = "sessions 80:5000:300";

/// Kernels, and whether balancing by load is expected to waste cores on them; v5.4 is between.
const KERNELS: [(&str, Option<bool>); 6] = [
    ("v4.18", Some(true)),
    ("v5.4", None),
    ("v5.4+0b0695f2b34a", Some(false)),
    ("v5.5", Some(false)),
    ("v6.6", Some(false)),
    ("v6.12", Some(false)),
];

const SEEDS: u64 = 3;

fn conduct(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    report.text(
        "Two of the four bugs lie in how domains are built: groups beyond the first hop from the wrong node's view, and domains \
         lost when a CPU is switched off and on. Domains are built here as v4.18 and later do, without the first, and no CPU is \
         switched off, so neither can be shown. The rule behind the third, overload on wakeup, is in every kernel that is \
         modelled: a wakeup looks for an idle CPU under one last-level cache only; the database that suffered from it is not \
         modelled. The fourth is here.",
    );
    group_imbalance(bench, report)
}

fn plans(machine: &'static str, workload: &'static str, seconds: u64) -> impl Iterator<Item = Plan> {
    let all = KERNELS.iter().flat_map(|&(kernel, _)| (1..=SEEDS).map(move |seed| (kernel, seed)));
    all.map(move |(kernel, seed)| Plan {
        kernel,
        machine,
        workload: workload.to_string(),
        duration: Ns::from_secs(seconds),
        seed,
    })
}

/// The mean share of time in which a CPU idles beside a waiting task, %.
fn unconserved(runs: &[(RunResult, ())]) -> f64 {
    let shares = runs.iter().map(|(run, ())| run.metric("unconserved_share").unwrap_or(0.0) * 100.0);
    mean(&shares.collect::<Vec<_>>())
}

/// One user's lone task weighs as much as all tasks of another together.
fn group_imbalance(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    // Some runs take seconds until a socket is left waiting.
    let seconds = 10;
    let all = [TWO_USERS, ONE_USER].iter().flat_map(|workload| plans("xeon-2s80", workload, seconds));
    let Some(results) = bench.watch(&all.collect::<Vec<_>>(), |_| ())? else { return Ok(None) };
    let shares = results.chunks(SEEDS as usize).map(unconserved).collect::<Vec<_>>();
    let (two, one) = shares.split_at(KERNELS.len());
    report.heading("Group imbalance");
    report.text(format!(
        "80 tasks on 80 CPUs, {seconds} s, {SEEDS} seeds. With two users one has a single task that only computes, and the \
         other 79 that compute for 5 ms and wait for 0.3 ms; each user has a group. The single task has the load of the 79 \
         together, so its socket counts as the busier one, and what waits on the other is left there beside idle CPUs."
    ));
    let rows = KERNELS.iter().zip(two.iter().zip(one)).map(|((kernel, _), (two, one))| {
        vec![(*kernel).to_string(), format!("{} %", number(*two)), format!("{} %", number(*one))]
    });
    let header = ["kernel", "a CPU idles beside a waiting task: two users", "one user"];
    report.table(&header, rows.collect());
    let bars = KERNELS.iter().zip(two).map(|((kernel, _), share)| Bar::new(*kernel, None, Some(*share)));
    report.picture(
        "two users: share of time in which a CPU idles beside a waiting task, %",
        false,
        bars.collect(),
    );
    report.keep(results.into_iter().map(|(run, ())| run));
    let of = |wastes: bool| {
        KERNELS
            .iter()
            .zip(two)
            .filter(move |((_, expected), _)| *expected == Some(wastes))
            .map(|(_, share)| *share)
    };
    report.claim(
        "v4.18: beside a lone task with a group's whole load a CPU idles beside a waiting task five times as long as without, and more",
        Published::Said("some nodes are idle or underused"),
        two.first().zip(one.first()).map(|(two, one)| two / one.max(0.1)),
        "times",
        |ratio| ratio >= 5.0,
    );
    report.claim(
        "ablation: with one user, and so one group, that is less than 10 % of the time on v4.18",
        Published::Nothing,
        one.first().copied(),
        "% of the time",
        |share| share < 10.0,
    );
    let before = of(true).reduce(f64::min).filter(|share| *share > 0.0);
    report.claim(
        "since 0b0695f2b34a, which counts idle CPUs instead, it is a fifth of that time at most, with two users, too",
        Published::Nothing,
        before.zip(of(false).reduce(f64::max)).map(|(before, after)| after / before),
        "times",
        |ratio| ratio <= 0.2,
    );
    Ok(Some(()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// A lone task of another user wastes cores where balancing goes by load, and only there.
    #[test]
    fn cores_are_wasted_by_two_users_on_kernels_that_balance_by_load() {
        let stop = AtomicBool::new(false);
        let bench =
            Bench { quick: true, exact: true, warmup: None, jobs: 2, on_progress: &|_| {}, stop: &stop };
        let plan = |(kernel, workload): (&'static str, &str)| Plan {
            kernel,
            machine: "xeon-2s80",
            workload: workload.to_string(),
            duration: Ns::from_secs(10),
            seed: 1,
        };
        let cells = [("v4.18", TWO_USERS), ("v4.18", ONE_USER), ("v5.5", TWO_USERS)].map(plan);
        let results = bench.watch(&cells, |_| ()).expect("runs").expect("not stopped");
        let shares = results.iter().map(|run| unconserved(std::slice::from_ref(run))).collect::<Vec<_>>();
        assert!(shares[0] > 30.0 && shares[1] < 15.0 && shares[2] < 15.0, "{shares:?}");
    }
}
