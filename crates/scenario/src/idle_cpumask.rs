//! A mask of idle CPUs for wakeups to scan, and what it saves.
//!
//! Must not know: how CPUs are searched; counters and notes tell.

mod large_machine;
mod mask_log;
mod published;

use fairlab_analysis::statistics::rivals::{mmtests_change, mmtests_marks, mmtests_mean};
use fairlab_analysis::statistics::{Better, MARGIN, judge, paired};
use fairlab_event::Ns;
use fairlab_kernel::schedstat::SisCounters;

use super::claim::of;
use super::figures::{ByRun, Metric};
use super::render::number;
use super::runs::{Watched, mean_of};
use super::{Bar, Batch, Bench, Claim, Measured, Plan, Published, Report, Row, RunKey, Scenario, Small};
use fairlab_lab::{LabError, RunResult};
use mask_log::MaskLog;
use published::{HMEAN, SIS};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "idle-cpumask",
    about: "a mask of idle CPUs that only ticks clear saves scanning where CPUs never idle, and none under tbench",
    source: "Mel Gorman and Aubrey Li, \"Re: [RFC PATCH v7] sched/fair: select idle cpu from idle cpumask for task wakeup\", \
             9 and 10 December 2020",
    commit: "idle-cpumask-v7 (\"[RFC PATCH v7] sched/fair: select idle cpu from idle cpumask for task wakeup\"), never merged; \
             mainline merged the scan for idle cores into that for idle CPUs (9fe1f127b913, v5.12) and bounded the scan by \
             utilization instead (70fb5ccf2ebb, SIS_UTIL, v6.0)",
    pair: ["v5.10", "v5.10+idle-cpumask-v7"],
    machine: "xeon-2s80",
    small: Small {
        workload: "tbench -c 4 --run-ms 300",
        machine: "emulated:1x4x2",
        duration: Ns::from_secs(2),
    },
    measured: "Runs are measured from the program's start: the report's own runs last minutes, of which a start is little, and are \
               shortened here on both sides alike.",
    conduct,
    claims,
    booted: None,
    reported: None,
};

/// CPUs of the report's machine.
const CPUS: u32 = 80;

/// The kernels of the report: v5.10-rc6, and with the patch.
const BASE: &str = "v5.10";
const PATCHED: &str = "v5.10+idle-cpumask-v7";

/// The settings whose figures claims and sentences take; clients of tbench are from the report's table.
const ALL_CLIENTS: &str = "tbench with up to 320 clients";
const FEW_CLIENTS: &str = "tbench with fewer clients than CPUs";
const UPERF: &str = "uperf on 4 CPUs";
const BUSY: &str = "tbench that computes longer, 320 clients";
const BUSY_FEW: &str = "tbench that computes longer, 64 clients";

/// A kernel that keeps clients and servers apart.
const APART: &str = "v5.10+NO_WA_IDLE+NO_WA_WEIGHT";
const PATCHED_APART: &str = "v5.10+idle-cpumask-v7+NO_WA_IDLE+NO_WA_WEIGHT";

/// Mainline since it bounds the scan by utilization.
const SIS_UTIL: &str = "v6.0";

const LOOKED: &str = "CPUs looked at for each search of a domain";
const SCANNED: &str = "Domain Scanned";
const SEARCHED: &str = "SIS Domain Search";
const FOUND: &str = "searches that find an idle CPU, %";
const SPEED: &str = "throughput, MB/s";
const LARGEST: &str = "largest change of throughput, %";
const MARKED: &str = "CPUs that are marked when a mask is scanned";
const FULL: &str = "share of CPUs that are marked when a mask is scanned, %";

/// What wakeups counted, in all runs of a name.
const COUNTS: &[Metric<Counted>] = &[
    (LOOKED, Counted::looked_per_search),
    (SCANNED, |counted| Some(counted.sis.summary().domain_scanned as f64)),
    (SEARCHED, |counted| Some(counted.sis.domain_search as f64)),
    (FOUND, |counted| {
        let SisCounters { search, failed, .. } = counted.sis;
        (search > 0).then(|| (search - failed) as f64 * 100.0 / search as f64)
    }),
];

/// The metrics that wakeups count.
const COUNTERS: &[&str] = &["sis_search"];

/// What wakeups counted, of all CPUs.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    ttwu_count: u64,
    ttwu_local: u64,
    sis: SisCounters,
}

impl Counted {
    fn of(run: &RunResult) -> Counted {
        let count = |name| run.metric(name).unwrap_or(0.0) as u64;
        let sis = SisCounters {
            search: count("sis_search"),
            domain_search: count("sis_domain_search"),
            scanned: count("sis_scanned"),
            failed: count("sis_failed"),
            recent_hit: count("sis_recent_hit"),
            recent_miss: count("sis_recent_miss"),
            core_search: count("sis_core_search"),
            core_miss: count("sis_core_miss"),
        };
        Counted { ttwu_count: count("ttwu_count"), ttwu_local: count("ttwu_local"), sis }
    }

    fn add(&mut self, other: &Counted) {
        self.ttwu_count += other.ttwu_count;
        self.ttwu_local += other.ttwu_local;
        add_sis(&mut self.sis, &other.sis);
    }

    /// CPUs looked at for each search of a domain.
    fn looked_per_search(&self) -> Option<f64> {
        let scanned = self.sis.summary().domain_scanned.saturating_sub(self.sis.domain_search);
        (self.sis.domain_search > 0).then(|| scanned as f64 / self.sis.domain_search as f64)
    }
}

fn add_sis(sum: &mut SisCounters, other: &SisCounters) {
    sum.search += other.search;
    sum.domain_search += other.domain_search;
    sum.scanned += other.scanned;
    sum.failed += other.failed;
    sum.recent_hit += other.recent_hit;
    sum.recent_miss += other.recent_miss;
    sum.core_search += other.core_search;
    sum.core_miss += other.core_miss;
}

/// What all runs of a name counted together.
fn together(runs: &[Watched<()>]) -> Counted {
    let mut sum = Counted::default();
    runs.iter().for_each(|(run, ())| sum.add(&Counted::of(run)));
    sum
}

/// The metrics that tell how full masks are when they are scanned.
const FULLNESS: &[&str] = &["idle_mask_scans", "idle_mask_marked_mean"];

fn conduct(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    let Some(()) = tbench(bench, report)? else { return Ok(None) };
    let Some(()) = overcommit(bench, report)? else { return Ok(None) };
    let Some(()) = large_machine::conduct(bench, report)? else { return Ok(None) };
    mainline(bench, report)
}

fn plan(setting: &str, kernel: &'static str, workload: &str, milliseconds: u64) -> Plan {
    Plan {
        run: RunKey::new(setting.to_string(), kernel),
        kernel,
        machine: "xeon-2s80",
        workload: workload.to_string(),
        duration: Ns::from_ms(milliseconds),
        measured: Measured::FromStart,
    }
}

fn with_clients(clients: u32) -> String {
    format!("tbench with {clients} clients")
}

/// Hmean with a number of clients, ours beside the published one.
#[derive(Clone, Debug)]
struct Hmean {
    cells: Vec<String>,
    change: f64,
}

impl Hmean {
    fn of(published: &published::Hmean, base: &[f64], other: &[f64]) -> Hmean {
        let (clients, published_base, published_other, published) = *published;
        let better = Better::Higher;
        let (mean_base, mean_other) = (mmtests_mean(base, better), mmtests_mean(other, better));
        let change = mmtests_change(mean_base, mean_other, better);
        let marks = if mmtests_marks(base, other, better) { ("*", "*") } else { ("(", ")") };
        let estimate = paired(base, other);
        let real = estimate.p.is_some_and(|p| p < 0.05);
        let cells = vec![
            format!("Hmean {clients}"),
            format!("{published_base:.2} (0.00%)"),
            format!("{published_other:.2} *{published:.2}%*"),
            format!("{mean_base:.2} (0.00%)"),
            format!("{mean_other:.2} {}{change:.2}%{}", marks.0, marks.1),
            judge(&estimate, better, MARGIN, real).words().to_string(),
        ];
        Hmean { cells, change }
    }
}

/// tbench with 1 to 320 clients, the table of mmtests and that of the counters.
fn tbench(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    const SEEDS: u64 = 3;
    let run_ms = bench.choose(1000, 40);
    let chosen = HMEAN.iter().filter(|row| !bench.quick || matches!(row.0, 1 | 8 | 32 | 64 | 128 | 320));
    let chosen = chosen.collect::<Vec<_>>();
    let of_clients = |&&(clients, ..): &&published::Hmean| {
        let workload = format!("tbench -c {clients} --run-ms {run_ms}");
        [BASE, PATCHED].map(|kernel| plan(&with_clients(clients), kernel, &workload, run_ms + 500))
    };
    let plans = chosen.iter().flat_map(of_clients).collect::<Vec<_>>();
    let Some(runs) = bench.measure(&plans, 1..=SEEDS, COUNTERS, || ())? else { return Ok(None) };
    let (mut rows, mut bars, mut largest) = (Vec::new(), Vec::new(), 0.0_f64);
    for &published in &chosen {
        let speeds = |kernel: &'static str| -> Result<Vec<f64>, LabError> {
            let runs = runs.of(&RunKey::new(with_clients(published.0), kernel))?;
            Ok(runs.iter().map(|(run, ())| run.metric("megabytes_per_s").unwrap_or(0.0)).collect())
        };
        let Hmean { cells, change } = Hmean::of(published, &speeds(BASE)?, &speeds(PATCHED)?);
        largest = largest.max(change.abs());
        rows.push(cells);
        bars.push(Row::new(format!("{} clients", published.0), Some(published.3), Some(change)));
    }
    report.figures.set(LARGEST, RunKey::new(ALL_CLIENTS, PATCHED), largest);
    let sums = sums(&runs, &chosen)?;
    report.measure(&sums, COUNTS);
    report.heading("tbench4");
    report.text(format!(
        "On xeon-2s80 (80 CPUs), {run_ms} ms and {SEEDS} seeds for each number of clients; MB/s. The modelled operation counts \
         an assumed number of bytes: only the changes compare. Pairs are created on one socket, and balancing takes about half \
         a second to spread them over both: the report's runs last minutes, and a quick run ends before that. Last column: our \
         verdict, by the same seeds in pairs, with a margin of 1 %."
    ));
    let header = ["", "published v1r1", "idlemask-v7r1", BASE, "idle-cpumask-v7", "verdict"];
    report.table(&header, rows);
    report.picture("change of Hmean by the mask, %", false, bars);
    sis_table(report, &sums)?;
    report.keep(runs.into_runs());
    fullness(bench, report)
}

/// What was counted with all numbers of clients, and with those of fewer clients than CPUs.
fn sums(runs: &Batch<()>, chosen: &[&published::Hmean]) -> Result<ByRun<Counted>, LabError> {
    let mut sums = Vec::new();
    for (setting, most) in [(ALL_CLIENTS, u32::MAX), (FEW_CLIENTS, CPUS - 1)] {
        for kernel in [BASE, PATCHED] {
            let mut sum = Counted::default();
            for &&(clients, ..) in chosen.iter().filter(|row| row.0 <= most) {
                sum.add(&together(runs.of(&RunKey::new(with_clients(clients), kernel))?));
            }
            sums.push((RunKey::new(setting, kernel), sum));
        }
    }
    Ok(sums.into_iter().collect())
}

fn sis_table(report: &mut Report, sums: &ByRun<Counted>) -> Result<(), LabError> {
    report.text(
        "The counters of searches, summed up over all numbers of clients: published (of the whole run of mmtests), and here.",
    );
    let [base, other] = sums.all([BASE, PATCHED].map(|kernel| RunKey::new(ALL_CLIENTS, kernel)))?;
    let measured = |counted: &Counted| published::rows(counted.ttwu_count, counted.ttwu_local, &counted.sis);
    let rows = SIS.iter().zip(measured(base).into_iter().zip(measured(other)));
    let rows = rows.map(|((name, published_base, published_other), (base, other))| {
        let published = [published_base, published_other].map(|cell| (*cell).to_string());
        [vec![format!("Ops {name}")], published.to_vec(), vec![base, other]].concat()
    });
    report.table(&["", "schedstat-v1r1", "idlemask-v7r1", BASE, "idle-cpumask-v7"], rows.collect());
    Ok(())
}

fn claims() -> Vec<Claim> {
    let mut claims = claims_of_tbench();
    claims.extend(claims_of_masks());
    claims.extend(mask_log::claims());
    claims.push(Claim::new(
        "uperf: with the mask hardly any CPU is looked at (at most a tenth); ablation: without it they are",
        Published::Said("SIS Scanned should be decreased"),
        of(LOOKED, RunKey::new(UPERF, PATCHED)) / of(LOOKED, RunKey::new(UPERF, BASE)),
        "times",
        Bar::AtMost(0.1),
    ));
    claims.push(large_machine::claim());
    claims.push(Claim::new(
        "mainline: SIS_UTIL (v6.0) scans less than v5.10 where all CPUs are busy (320 clients)",
        Published::Nothing,
        of(LOOKED, RunKey::new(BUSY, SIS_UTIL)) / of(LOOKED, RunKey::new(BUSY, BASE)),
        "times",
        Bar::Below(0.9),
    ));
    claims
}

fn claims_of_tbench() -> Vec<Claim> {
    let with = |metric, setting| of(metric, RunKey::new(setting, PATCHED));
    let without = |metric, setting| of(metric, RunKey::new(setting, BASE));
    vec![
        Claim::new(
            "tbench with up to 64 clients: CPUs looked at for each search of a domain do not fall",
            Published::Said("it's worse for the client thread counts"),
            with(LOOKED, FEW_CLIENTS) / without(LOOKED, FEW_CLIENTS),
            "times",
            Bar::AtLeast(0.95),
        ),
        Claim::new(
            "tbench with up to 320 clients: Domain Scanned does not fall with the mask (at least 95 % of it remain)",
            Published::Figure(14_211_606_282.0 / 13_580_736_097.0),
            with(SCANNED, ALL_CLIENTS) / without(SCANNED, ALL_CLIENTS),
            "times",
            Bar::AtLeast(0.95),
        ),
        Claim::new(
            "tbench with up to 320 clients: Domain Scanned for each search of a domain does not fall",
            Published::Figure(4.401 / 4.155),
            (with(SCANNED, ALL_CLIENTS) / with(SEARCHED, ALL_CLIENTS))
                / (without(SCANNED, ALL_CLIENTS) / without(SEARCHED, ALL_CLIENTS)),
            "times",
            Bar::AtLeast(0.98),
        ),
        Claim::new(
            "tbench: throughput changes by less than 10 % with any number of clients",
            Published::Figure(9.49),
            with(LARGEST, ALL_CLIENTS),
            "%",
            Bar::Below(10.0),
        ),
    ]
}

/// CPUs of a last-level cache there: as many as a mask can hold.
const CPUS_OF_A_CACHE: f64 = 40.0;

fn claims_of_masks() -> [Claim; 2] {
    let looked = |kernel: &'static str| of(LOOKED, RunKey::new(with_clients(128), kernel));
    [
        Claim::new(
            "tbench: masks stay nearly full, since only ticks clear them (at least 80 % at scans)",
            Published::Said("only marked busy from the tick context which is a very wide window"),
            of(FULL, RunKey::new(with_clients(64), PATCHED)),
            "%",
            Bar::AtLeast(80.0),
        ),
        Claim::new(
            "ablation: where clients and servers stay apart, the mask saves no looking with 128 clients (at least 95 % of it \
             remain)",
            Published::Said("domain scanned with or without the patch is almost identical"),
            looked(PATCHED_APART) / looked(APART),
            "times",
            Bar::AtLeast(0.95),
        ),
    ]
}

/// Why it saves nothing: how full the masks are.
fn fullness(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    let few = plan(&with_clients(64), PATCHED, "tbench -c 64 --run-ms 20", 300);
    let many = plan(&with_clients(128), PATCHED, "tbench -c 128 --run-ms 100", 300);
    let (few, many, plans) = (few.run.clone(), many.run.clone(), [few, many]);
    let Some(masks) = bench.measure(&plans, [1], FULLNESS, || ())? else { return Ok(None) };
    report.measure(
        &masks,
        &[
            (MARKED, |runs| marked(runs)),
            (FULL, |runs| marked(runs).map(|marked| marked * 100.0 / CPUS_OF_A_CACHE)),
        ],
    );
    report.text(format!(
        "Up to 64 clients: tbench's tasks sleep and wake every few us. So each CPU enters idleness many times between \
         two ticks, and is marked. Only a tick that finds it busy clears the mark. With 64 clients masks are {} % full when they are \
         scanned: a scan looks at as many CPUs as without the mask, most of them busy.",
        report.shown(FULL, &few)?
    ));
    report.text(format!(
        "With more clients than CPUs a client and its server soon share a CPU, since a waker that is about to sleep \
         offers its own. From then on one of the two always runs and no CPU idles. Ticks empty the masks, and \
         scanning falls as with uperf: with 128 clients {} of 40 CPUs are marked when a mask is scanned. The report's counter \
         does not fall, but it hardly contains the scan that the mask shortens. A failing search looks at the \
         target's two SMT siblings and at four CPUs in select_idle_cpu(): the report's 2.94 G failing searches would \
         count 17.7 G. All its searches together count 10.3 G (Domain Scanned less one for each search). At least 1.6 \
         G of that are the 77.7 M core searches that looked at all 20 cores and failed. So most of its failing \
         searches did not scan, or their scans were not counted, with the mask and without. The report does not say \
         why. The mask adds 0.63 G to its counter, which its 48.9 M additional core searches explain, at 13 CPUs \
         each.",
        report.shown(MARKED, &many)?
    ));
    apart(bench, report)
}

/// How many CPUs a scan finds marked.
fn marked(runs: &[Watched<()>]) -> Option<f64> {
    mean_of(runs, "idle_mask_marked_mean")
}

/// What a real kernel does with more pairs than CPUs, from one recording.
const REAL: &str = "Debian's 5.10, booted with 8 CPUs (fairlab boot debian:bullseye --topology 1x4x2 -- tbench -c 13 --client-us 10 \
                    --server-us 10 --run-ms 200), enters idleness only once from 20 ms on until its clients end. \
         There 84 % of its wakeups stay on the waker's CPU. Its own code on this machine, with the \
         costs of sharing (--kernel src:debian:5.10 tbench -c 128 --run-ms 60), leaves no CPU idle in one run, too: \
         what kept the report's pairs apart does not show here";

/// What the mask saves where a client and its server do not settle on one CPU.
fn apart(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    let run_ms = bench.choose(800, 40);
    let of_clients = |clients: u32| {
        let workload = format!("tbench -c {clients} --run-ms {run_ms}");
        [APART, PATCHED_APART].map(|kernel| plan(&with_clients(clients), kernel, &workload, run_ms + 500))
    };
    let plans = [of_clients(128), of_clients(320)].concat();
    let Some(runs) = bench.measure(&plans, [1], COUNTERS, || ())? else { return Ok(None) };
    report.measure(&runs.map(|runs| together(runs)), COUNTS);
    let told = |metric, clients: u32, kernel: &'static str| {
        report.shown(metric, &RunKey::new(with_clients(clients), kernel))
    };
    let beyond = published::share_beyond_cpus(CPUS);
    let told = format!(
        "The report's other counters show that its CPUs did idle with 128 clients and more. These runs had {} % of its throughput, and \
         {} % of all its searches failed; so at least {} % of their searches found an idle CPU. In the discussion its author adds \
         two facts about 320 clients: mpstat reports 0 % idle time, and Domain Scanned hardly differs with the patch. So the report's \
         pairs did not settle on one CPU as they do here (its TTWU Local is a smaller share of TTWU Count). What kept them apart is \
         not known. A real kernel does as the model does: {REAL}. If wake_affine() is switched off to keep them apart \
         (NO_WA_IDLE, NO_WA_WEIGHT), {} and {} % of searches find an idle CPU with 128 and 320 clients. CPUs then enter idleness between \
         ticks again. A search looks at {} CPUs without the mask and {} with it; with 320 clients at {} and {}.",
        number(beyond * 100.0),
        number(published::FAILED * 100.0),
        number((1.0 - published::FAILED / beyond) * 100.0),
        told(FOUND, 128, APART)?,
        told(FOUND, 320, APART)?,
        told(LOOKED, 128, APART)?,
        told(LOOKED, 128, PATCHED_APART)?,
        told(LOOKED, 320, APART)?,
        told(LOOKED, 320, PATCHED_APART)?,
    );
    report.text(told);
    report.keep(runs.into_runs());
    Ok(Some(()))
}

/// The run on 4 CPUs: the log of the mask, and scanning that ends.
fn overcommit(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    let workload = "daemons -g 1 -c 4 -p 100 -r 5000 tbench -c 8 --client-us 60 --server-us 60 --start-ms 200 --connect-us 300 \
                    --run-ms 200 --rest-ms 200";
    let on_4_cpus = |kernel| Plan { machine: "vm4", ..plan(UPERF, kernel, workload, 800) };
    let Some(logs) = bench.measure(&[on_4_cpus(PATCHED)], [1], FULLNESS, MaskLog::default)? else { return Ok(None) };
    report.measure(&logs, mask_log::METRICS);
    report.heading("uperf with 8 threads on 4 CPUs: the log of the mask");
    report.text(
        "Eight pairs that answer each other stand for uperf's eight threads: its connections compute longer than tbench's, and \
         no CPU idles. A background task on each CPU, 5 ms ten times a second, stands for what else runs in the report's \
         guest (sshd, tmux, kworkers): ticks find it, before and after the benchmark, too.",
    );
    for (_, log) in logs.into_values().flatten() {
        report.verbatim(log.text());
    }
    let plans = [BASE, PATCHED].map(on_4_cpus);
    let Some(runs) = bench.measure(&plans, [1], COUNTERS, || ())? else { return Ok(None) };
    report.measure(&runs.map(|runs| together(runs)), COUNTS);
    report.text(format!(
        "CPUs looked at for each search of the domain: {} without the mask, {} with it.",
        report.shown(LOOKED, &RunKey::new(UPERF, BASE))?,
        report.shown(LOOKED, &RunKey::new(UPERF, PATCHED))?
    ));
    report.keep(runs.into_runs());
    Ok(Some(()))
}

/// What mainline did instead.
fn mainline(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    let kernels = [BASE, PATCHED, "v5.11", "v5.12", SIS_UTIL];
    let run_ms = bench.choose(3000, 1500);
    let of_clients = |setting, clients: u32| {
        let workload = format!("tbench -c {clients} --client-us 80 --server-us 80 --run-ms {run_ms}");
        kernels.map(|kernel| plan(setting, kernel, &workload, run_ms + 200))
    };
    let plans = [of_clients(BUSY_FEW, 64), of_clients(BUSY, 320)].concat();
    let Some(runs) = bench.measure(&plans, [1], COUNTERS, || ())? else { return Ok(None) };
    report.measure(&runs.map(|runs| together(runs)), COUNTS);
    report.measure(&runs, &[(SPEED, |runs| mean_of(runs, "megabytes_per_s"))]);
    report.heading("What mainline did instead");
    report.text(format!(
        "tbench with longer computing times, 80 us, for {run_ms} ms: SIS_UTIL goes by utilization, which takes some 100 ms to \
         build up, and which busy CPUs note only when they balance, every 640 ms."
    ));
    let row = |kernel: &'static str| {
        let mut row = vec![kernel.to_string()];
        for setting in [BUSY_FEW, BUSY] {
            row.extend(report.figures.cells([LOOKED, SPEED], &RunKey::new(setting, kernel))?);
        }
        Ok(row)
    };
    let rows = kernels.into_iter().map(row).collect::<Result<Vec<_>, LabError>>()?;
    let header = [
        "kernel",
        "64 clients: CPUs looked at a search",
        "MB/s",
        "320 clients: CPUs looked at a search",
        "MB/s",
    ];
    report.table(&header, rows);
    report.keep(runs.into_runs());
    Ok(Some(()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn a_mask_saves_scans_where_no_cpu_idles_and_none_where_all_idle_for_a_moment() {
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
        let looked = |machine: &'static str, workload: &str| {
            let plans =
                [BASE, PATCHED].map(|kernel| Plan { machine, ..plan(machine, kernel, workload, 300) });
            let runs = bench.measure(&plans, [1], COUNTERS, || ()).expect("runs").expect("not stopped");
            let [base, other] = plans.map(|plan| {
                together(runs.of(&plan.run).expect("runs")).looked_per_search().expect("searches")
            });
            other / base
        };
        let busy = looked("vm4", "tbench -c 8 --client-us 60 --server-us 60 --run-ms 100");
        let fleeting = looked("xeon-2s80", "tbench -c 64 --run-ms 8");
        assert!(busy < 0.1 && fleeting > 0.8, "{busy} {fleeting}");
    }
}
