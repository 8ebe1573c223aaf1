//! A mask of idle CPUs for wakeups to scan, and what it saves.
//!
//! Must not know: how CPUs are searched; counters and notes tell.

mod large_machine;
mod mask_log;
mod published;

use fairlab_analysis::statistics::rivals::{mmtests_change, mmtests_marks, mmtests_mean};
use fairlab_analysis::statistics::{Better, MARGIN, judge, paired};
use fairlab_event::{Event, Ns};
use fairlab_kernel::schedstat::SisCounters;
use fairlab_kernel::select::{IdleMaskEvent, IdleMaskNote};
use fairlab_sim::Engine;

use super::render::number;
use super::{Bar, Bench, Measured, Plan, Published, Report, Scenario, Small};
use fairlab_lab::{LabError, Onlooker, RunResult};
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
    booted: None,
};

/// CPUs of the report's machine.
const CPUS: u32 = 80;

/// The kernels of the report: v5.10-rc6, and with the patch.
const BASE: &str = "v5.10";
const PATCHED: &str = "v5.10+idle-cpumask-v7";

/// What wakeups counted, of all CPUs.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    ttwu_count: u64,
    ttwu_local: u64,
    sis: SisCounters,
}

impl Counted {
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

impl Onlooker for Counted {
    fn event(&mut self, _: &Event<'_>) {}

    fn ended(&mut self, engine: &Engine) {
        for cpu in engine.kernel().topology().cpus() {
            let counters = engine.kernel().counters(cpu);
            self.ttwu_count += counters.ttwu_count;
            self.ttwu_local += counters.ttwu_local;
            add_sis(&mut self.sis, &counters.sis);
        }
    }
}

/// How full masks are when they are scanned.
#[derive(Clone, Copy, Debug, Default)]
struct Fullness {
    scans: u64,
    marked: u64,
}

impl Onlooker for Fullness {
    fn event(&mut self, _: &Event<'_>) {}

    fn wants_idle_masks(&self) -> bool {
        true
    }

    fn idle_mask(&mut self, note: &IdleMaskNote) {
        if note.event == IdleMaskEvent::Scanned {
            self.scans += 1;
            self.marked += note.mask.weight() as u64;
        }
    }
}

fn conduct(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    let Some(()) = tbench(bench, report)? else { return Ok(None) };
    let Some(()) = overcommit(bench, report)? else { return Ok(None) };
    let Some(()) = large_machine::conduct(bench, report)? else { return Ok(None) };
    mainline(bench, report)
}

fn plan(kernel: &'static str, machine: &'static str, workload: String, milliseconds: u64, seed: u64) -> Plan {
    Plan {
        kernel,
        machine,
        workload,
        duration: Ns::from_ms(milliseconds),
        seed,
        measured: Measured::FromStart,
    }
}

/// tbench with 1 to 320 clients, the table of mmtests and that of the counters.
fn tbench(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    let run_ms = bench.choose(1000, 40);
    let chosen = HMEAN.iter().filter(|row| !bench.quick || matches!(row.0, 1 | 8 | 32 | 64 | 128 | 320));
    let chosen = chosen.collect::<Vec<_>>();
    const SEEDS: u64 = 3;
    let of_clients = |clients: u32| {
        let plans =
            [BASE, PATCHED].into_iter().flat_map(move |kernel| (1..=SEEDS).map(move |seed| (kernel, seed)));
        plans.map(move |(kernel, seed)| {
            plan(kernel, "xeon-2s80", format!("tbench -c {clients} --run-ms {run_ms}"), run_ms + 500, seed)
        })
    };
    let plans = chosen.iter().flat_map(|row| of_clients(row.0)).collect::<Vec<_>>();
    let Some(results) = bench.watch(&plans, |_| Counted::default())? else { return Ok(None) };
    let speed = |run: &RunResult| run.metric("megabytes_per_s").unwrap_or(0.0);
    // Of all runs, and of those with fewer clients than CPUs.
    let (mut sums, mut not_full) = ([Counted::default(); 2], [Counted::default(); 2]);
    let (mut rows, mut bars, mut largest) = (Vec::new(), Vec::new(), 0.0_f64);
    for ((clients, published_base, published_other, published), results) in
        chosen.iter().map(|row| **row).zip(results.chunks(2 * SEEDS as usize))
    {
        let (base, other) = results.split_at(SEEDS as usize);
        for (side, results) in [base, other].into_iter().enumerate() {
            for (_, counted) in results {
                sums[side].add(counted);
                if clients < CPUS {
                    not_full[side].add(counted);
                }
            }
        }
        let values =
            |side: &[(RunResult, Counted)]| side.iter().map(|(run, _)| speed(run)).collect::<Vec<_>>();
        let (base, other) = (values(base), values(other));
        let (means, better) =
            ([&base, &other].map(|side| mmtests_mean(side, Better::Higher)), Better::Higher);
        let change = mmtests_change(means[0], means[1], better);
        largest = largest.max(change.abs());
        bars.push(Bar::new(format!("{clients} clients"), Some(published), Some(change)));
        let [open, close] = if mmtests_marks(&base, &other, better) { ["*", "*"] } else { ["(", ")"] };
        let estimate = paired(&base, &other);
        let real = estimate.p.is_some_and(|p| p < 0.05);
        rows.push(vec![
            format!("Hmean {clients}"),
            format!("{published_base:.2} (0.00%)"),
            format!("{published_other:.2} *{published:.2}%*"),
            format!("{:.2} (0.00%)", means[0]),
            format!("{:.2} {open}{change:.2}%{close}", means[1]),
            judge(&estimate, better, MARGIN, real).words().to_string(),
        ]);
    }
    report.heading("tbench4");
    report.text(format!(
        "On xeon-2s80 (80 CPUs), {run_ms} ms and {SEEDS} seeds for each number of clients; MB/s. The modelled operation counts \
         an assumed number of bytes: only the changes compare. Pairs are created on one socket, and balancing takes about half \
         a second to spread them over both: the report's runs last minutes, and a quick run ends before that. Last column: our \
         verdict, by the same seeds in pairs, with a margin of 1 %."
    ));
    let header = ["", "published v1r1", "idlemask-v7r1", BASE, "idle-cpumask-v7", "verdict"];
    report.table(&header, rows);
    report.picture("change of Hmean by the mask, % (length: its size)", false, bars);
    sis_table(report, &sums);
    claims_of_tbench(report, &sums, &not_full, largest);
    report.keep(results.into_iter().map(|(run, _)| run));
    fullness(bench, report)
}

fn sis_table(report: &mut Report, sums: &[Counted; 2]) {
    report.text(
        "The counters of searches, summed up over all numbers of clients: published (of the whole run of mmtests), and here.",
    );
    let measured = sums.map(|counted| published::rows(counted.ttwu_count, counted.ttwu_local, &counted.sis));
    let rows = SIS.iter().enumerate().map(|(index, (name, base, other))| {
        vec![
            format!("Ops {name}"),
            (*base).to_string(),
            (*other).to_string(),
            measured[0][index].clone(),
            measured[1][index].clone(),
        ]
    });
    report.table(&["", "schedstat-v1r1", "idlemask-v7r1", BASE, "idle-cpumask-v7"], rows.collect());
}

fn claims_of_tbench(report: &mut Report, sums: &[Counted; 2], not_full: &[Counted; 2], largest: f64) {
    let looked = |side: usize| not_full[side].looked_per_search();
    report.claim(
        "tbench with up to 64 clients: CPUs looked at for each search of a domain do not fall",
        Published::Said("it's worse for the client thread counts"),
        looked(1).zip(looked(0)).map(|(other, base)| other / base.max(1e-9)),
        "times",
        |ratio| ratio >= 0.95,
    );
    let scanned = sums.map(|counted| counted.sis.summary().domain_scanned as f64);
    let searches = sums.map(|counted| counted.sis.domain_search as f64);
    report.claim(
        "tbench with up to 320 clients: Domain Scanned does not fall with the mask (at least 95 % of it remain)",
        Published::Figure(14_211_606_282.0 / 13_580_736_097.0),
        Some(scanned[1] / scanned[0].max(1.0)),
        "times",
        |ratio| ratio >= 0.95,
    );
    report.claim(
        "tbench with up to 320 clients: Domain Scanned for each search of a domain does not fall",
        Published::Figure(4.401 / 4.155),
        Some(scanned[1] / searches[1].max(1.0) / (scanned[0] / searches[0].max(1.0)).max(1e-9)),
        "times",
        |ratio| ratio >= 0.98,
    );
    report.claim(
        "tbench: throughput changes by less than 10 % with any number of clients",
        Published::Figure(9.49),
        Some(largest),
        "%",
        |change| change < 10.0,
    );
}

/// Why it saves nothing: how full the masks are.
fn fullness(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    let plans = ["tbench -c 64 --run-ms 20", "tbench -c 128 --run-ms 100"]
        .map(|workload| plan(PATCHED, "xeon-2s80", workload.to_string(), 300, 1));
    let Some(results) = bench.watch(&plans, |_| Fullness::default())? else { return Ok(None) };
    let marked = |index: usize| {
        let (_, full) = &results[index];
        (full.scans > 0).then(|| full.marked as f64 / full.scans as f64)
    };
    let share = marked(0).map(|marked| marked * 100.0 / 40.0);
    report.text(format!(
        "Up to 64 clients: tbench's tasks sleep and wake every few us, so each CPU enters idleness many times between two \
         ticks, and is marked; only a tick that finds it busy clears it. With 64 clients masks are {} % full when they are \
         scanned: a scan looks at as many CPUs as without the mask, most of them busy.",
        share.map_or("-".to_string(), number)
    ));
    report.text(format!(
        "With more clients than CPUs a client and its server soon share a CPU, since a waker that is about to sleep offers its \
         own; from then on one of the two always runs, no CPU idles, ticks empty the masks, and scanning falls as with uperf: \
         with 128 clients {} of 40 CPUs are marked when a mask is scanned. The report's counter does not fall; but the scan that \
         the mask shortens is hardly in it. A search that fails has looked at the target's two SMT siblings and at four CPUs \
         in select_idle_cpu(): the 2.94 G of them in the report would count 17.7 G. All its searches together count 10.3 G \
         (Domain Scanned less one for each search), 1.6 G of them at least for the 77.7 M core searches that looked at all 20 \
         cores in vain. So most of its failing searches did not scan, or were not counted where they did, with the mask or \
         without; the report does not say why. What the mask adds to its counter, 0.63 G, is as much as its 48.9 M additional core \
         searches look at, at 13 CPUs for each.",
        marked(1).map_or("-".to_string(), number)
    ));
    report.claim(
        "tbench: masks stay nearly full, since only ticks clear them (at least 80 % at scans)",
        Published::Said("only marked busy from the tick context which is a very wide window"),
        share,
        "%",
        |share| share >= 80.0,
    );
    apart(bench, report)
}

/// What a real kernel does with more pairs than CPUs, from one recording.
const REAL: &str = "Debian's 5.10, booted with 8 CPUs (fairlab boot debian:bullseye --topology 1x4x2 -- tbench -c 13 --client-us 10 \
                    --server-us 10 --run-ms 200), enters idleness on no CPU but once from 20 ms after the beginning until the \
                    clients end, and 84 % of its wakeups stay on the waker's CPU";

/// What the mask saves where a client and its server do not settle on one CPU.
fn apart(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    const KERNELS: [&str; 2] =
        ["v5.10+NO_WA_IDLE+NO_WA_WEIGHT", "v5.10+idle-cpumask-v7+NO_WA_IDLE+NO_WA_WEIGHT"];
    let run_ms = bench.choose(800, 40);
    let of = |clients: u32| {
        let workload = format!("tbench -c {clients} --run-ms {run_ms}");
        KERNELS.map(|kernel| plan(kernel, "xeon-2s80", workload.clone(), run_ms + 500, 1))
    };
    let Some(results) = bench.watch(&[of(128), of(320)].concat(), |_| Counted::default())? else {
        return Ok(None);
    };
    let looked = |index: usize| results[index].1.looked_per_search().unwrap_or(0.0);
    let found = |index: usize| {
        let sis = &results[index].1.sis;
        (sis.search - sis.failed) as f64 * 100.0 / sis.search.max(1) as f64
    };
    let beyond = published::share_beyond_cpus(CPUS);
    report.text(format!(
        "The report's other counters tell that its CPUs did idle with 128 clients and more. {} % of its throughput was there, and \
         {} % of all its searches failed; so at least {} % of those there found an idle CPU. In the discussion its author adds \
         that with 320 clients mpstat reports 0 % idle time, and Domain Scanned is almost the same with the patch and without \
         it. So pairs did not settle on one CPU as they do here (TTWU Local is a smaller share of TTWU Count there); what kept \
         them apart is not known. A real kernel does as the model does: {REAL}. Where it is wake_affine() that keeps them apart, \
         because it is switched off (NO_WA_IDLE, \
         NO_WA_WEIGHT), {} and {} % of searches find one with 128 and 320 clients, CPUs enter idleness between ticks again, and \
         the CPUs looked at for each search are {} without the mask and {} with it, {} and {} with 320 clients.",
        number(beyond * 100.0),
        number(published::FAILED * 100.0),
        number((1.0 - published::FAILED / beyond) * 100.0),
        number(found(0)),
        number(found(2)),
        number(looked(0)),
        number(looked(1)),
        number(looked(2)),
        number(looked(3)),
    ));
    report.claim(
        "ablation: where clients and servers stay apart, the mask saves no looking with 128 clients (at least 95 % of it remain)",
        Published::Said("domain scanned with or without the patch is almost identical"),
        Some(looked(1) / looked(0).max(1e-9)),
        "times",
        |ratio| ratio >= 0.95,
    );
    report.keep(results.into_iter().map(|(run, _)| run));
    Ok(Some(()))
}

/// The run on 4 CPUs: the log of the mask, and scanning that ends.
fn overcommit(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    let workload = "daemons -g 1 -c 4 -p 100 -r 5000 tbench -c 8 --client-us 60 --server-us 60 --start-ms 200 --connect-us 300 \
                    --run-ms 200 --rest-ms 200";
    let plans = [plan(PATCHED, "vm4", workload.to_string(), 800, 1)];
    let Some(logs) = bench.watch(&plans, |_| MaskLog::default())? else { return Ok(None) };
    report.heading("uperf with 8 threads on 4 CPUs: the log of the mask");
    report.text(
        "Eight pairs that answer each other stand for uperf's eight threads: its connections compute longer than tbench's, and \
         no CPU idles. A background task on each CPU, 5 ms ten times a second, stands for what else runs in the report's \
         guest (sshd, tmux, kworkers): ticks find it, before and after the benchmark, too.",
    );
    for (_, log) in logs {
        report.verbatim(log.text());
        log.claims(report);
    }
    let plans = [BASE, PATCHED].map(|kernel| plan(kernel, "vm4", workload.to_string(), 800, 1));
    let Some(counted) = bench.watch(&plans, |_| Counted::default())? else { return Ok(None) };
    let looked =
        counted.iter().map(|(_, counted)| counted.looked_per_search().unwrap_or(0.0)).collect::<Vec<_>>();
    report.keep(counted.into_iter().map(|(run, _)| run));
    report.text(format!(
        "CPUs looked at for each search of the domain: {} without the mask, {} with it.",
        number(looked[0]),
        number(looked[1])
    ));
    report.claim(
        "uperf: with the mask hardly any CPU is looked at (at most a tenth); ablation: without it they are",
        Published::Said("SIS Scanned should be decreased"),
        Some(looked[1] / looked[0].max(1e-9)),
        "times",
        |ratio| ratio <= 0.1,
    );
    Ok(Some(()))
}

/// What mainline did instead.
fn mainline(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    const KERNELS: [&str; 5] = [BASE, PATCHED, "v5.11", "v5.12", "v6.0"];
    let run_ms = bench.choose(3000, 1500);
    let of = |clients: u32| {
        let workload = format!("tbench -c {clients} --client-us 80 --server-us 80 --run-ms {run_ms}");
        KERNELS.map(|kernel| plan(kernel, "xeon-2s80", workload.clone(), run_ms + 200, 1))
    };
    let plans = [of(64), of(320)].concat();
    let Some(results) = bench.watch(&plans, |_| Counted::default())? else { return Ok(None) };
    report.heading("What mainline did instead");
    report.text(format!(
        "tbench with longer computing times, 80 us, for {run_ms} ms: SIS_UTIL goes by utilization, which takes some 100 ms to \
         build up, and which busy CPUs note only when they balance, every 640 ms."
    ));
    let (few, many) = results.split_at(KERNELS.len());
    let cell = |result: &(RunResult, Counted)| result.1.looked_per_search().map_or("-".to_string(), number);
    let rows = KERNELS.iter().zip(few).zip(many).map(|((kernel, few), many)| {
        let speed = |result: &(RunResult, Counted)| number(result.0.metric("megabytes_per_s").unwrap_or(0.0));
        vec![(*kernel).to_string(), cell(few), speed(few), cell(many), speed(many)]
    });
    let header = [
        "kernel",
        "64 clients: CPUs looked at a search",
        "MB/s",
        "320 clients: CPUs looked at a search",
        "MB/s",
    ];
    report.table(&header, rows.collect());
    let (base, util) = (many[0].1.looked_per_search(), many[4].1.looked_per_search());
    report.claim(
        "mainline: SIS_UTIL (v6.0) scans less than v5.10 where all CPUs are busy (320 clients)",
        Published::Nothing,
        base.zip(util).map(|(base, util)| util / base.max(1e-9)),
        "times",
        |ratio| ratio < 0.9,
    );
    report.keep(results.into_iter().map(|(run, _)| run));
    Ok(Some(()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn a_mask_saves_scans_where_no_cpu_idles_and_none_where_all_idle_for_a_moment() {
        let stop = AtomicBool::new(false);
        let bench =
            Bench { quick: true, exact: false, warmup: None, jobs: 2, on_progress: &|_| {}, stop: &stop };
        let looked = |machine: &'static str, workload: &str| {
            let plans = [BASE, PATCHED].map(|kernel| plan(kernel, machine, workload.to_string(), 300, 1));
            let results = bench.watch(&plans, |_| Counted::default()).expect("runs").expect("not stopped");
            results[1].1.looked_per_search().expect("searches")
                / results[0].1.looked_per_search().expect("searches")
        };
        let busy = looked("vm4", "tbench -c 8 --client-us 60 --server-us 60 --run-ms 100");
        let fleeting = looked("xeon-2s80", "tbench -c 64 --run-ms 8");
        assert!(busy < 0.1 && fleeting > 0.8, "{busy} {fleeting}");
    }
}
