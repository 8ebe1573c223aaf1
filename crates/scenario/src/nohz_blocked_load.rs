//! A CPU that goes idle ages the load of all idle CPUs, and is away for as long as that takes.
//!
//! Must not know: how averages age; it is only asked how often they did.

use fairlab_analysis::statistics::median;
use fairlab_event::{Comm, Cpu, Event, EventKind, Ns, Sink};
use fairlab_lab::{LabError, RunResult};

use super::claim::{greatest, least, of};
use super::figures::{ByRun, Metric};
use super::render::number;
use super::schbench_table::{SchbenchTable, side_by_side};
use super::{Bar, Bench, Claim, Measured, Plan, Published, Report, Row, RunKey, Scenario, Small};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "nohz-blocked-load",
    about: "with many control groups, CPUs that go idle spend hundreds of microseconds ageing other idle CPUs' load",
    source: "Joel Fernandes, \"[PATCH] sched/fair: Rate limit calls to update_blocked_averages() for NOHZ\", 22 January 2021",
    commit: "the patch (nohz-blocked-rate-limit, never merged); mainline moved the work out of new-idle balancing instead: \
             0826530de3cb (\"sched/fair: Remove update of blocked load from newidle_balance\", v5.13)",
    pair: ["v5.4", "v5.4+nohz-blocked-rate-limit"],
    machine: MACHINE,
    small: Small {
        workload: "daemons -g 40 -c 8 -p 100 -r 100 schbench -t 2 -m 2 -r 3",
        machine: "emulated:1x4x2",
        duration: Ns::from_secs(5),
    },
    measured: "Runs are measured as schbench measures, from its start, as in the report.",
    conduct,
    claims,
    booted: None,
    reported: None,
};

/// The report's command line.
const COMMAND: &str = "schbench -t 2 -m 2 -r 5";

/// The report's table without the patch.
const PUBLISHED_WITHOUT: SchbenchTable = SchbenchTable {
    runtime_s: 5,
    samples: 212,
    percentiles: [210, 619, 665, 703, 12656, 12784, 13424],
    counts: [106, 53, 32, 11, 8, 1, 1],
    max: 13424,
    min: Some(15),
};

/// The report's table with the patch.
const PUBLISHED_WITH: SchbenchTable = SchbenchTable {
    runtime_s: 5,
    samples: 214,
    percentiles: [188, 238, 623, 657, 717, 725, 725],
    counts: [108, 53, 32, 12, 7, 2, 0],
    max: 0,
    min: None,
};

/// A kernel, and what it runs on and beside.
#[derive(Clone, Copy, Debug)]
struct Variant {
    name: &'static str,
    kernel: &'static str,
    machine: &'static str,
    /// How long a group's task runs, us at full speed.
    group_us: u32,
}

const fn variant(name: &'static str, kernel: &'static str) -> Variant {
    Variant { name, kernel, machine: MACHINE, group_us: GROUP_US }
}

/// The report's two kernels, and those that cured it in another way.
const WITHOUT: Variant = variant("v5.4", "v5.4");
const WITH: Variant = variant("v5.4+nohz-blocked-rate-limit", "v5.4+nohz-blocked-rate-limit");
const V5_13: Variant = variant("v5.13", "v5.13");
const V5_16: Variant = variant("v5.16", "v5.16");

/// The first one without wakeups by energy.
const NOT_BY_ENERGY: Variant =
    variant("v5.4, not by energy", "v5.4-732cd75b8c92-eb92692b2544-4892f51ad54d-af24bde8df20-2802bf3cd936");

/// The first one where idle states are left as slowly as the device tree allows.
const SLOW: Variant = Variant { name: "v5.4, slow idle states", machine: "chromebook8-idle", ..WITHOUT };

/// The report's two where idle states are left as fast as its latencies ask for.
const FITTED: Variant = Variant { name: "v5.4, fitted idle states", machine: FITTED_MACHINE, ..WITHOUT };
const FITTED_WITH: Variant = Variant { name: "patched, fitted idle states", machine: FITTED_MACHINE, ..WITH };

/// The report's two where that is so, and where groups run for longer, too.
const LONG: Variant = Variant { name: "v5.4, fitted, long groups", group_us: LONG_GROUP_US, ..FITTED };
const LONG_WITH: Variant =
    Variant { name: "patched, fitted, long groups", group_us: LONG_GROUP_US, ..FITTED_WITH };

/// Every one, in the order of the table.
const VARIANTS: [Variant; 10] =
    [WITHOUT, WITH, V5_13, V5_16, NOT_BY_ENERGY, SLOW, FITTED, FITTED_WITH, LONG, LONG_WITH];

/// Those whose dependence on the number of groups is shown.
const SLOPE_OF: [Variant; 3] = [WITHOUT, WITH, V5_13];

/// The report's machine.
const MACHINE: &str = "chromebook8";

/// That machine with idle states whose exits are fitted to the report's latencies.
const FITTED_MACHINE: &str = "chromebook8-fit";

/// The first of its big CPUs.
const FIRST_BIG: Cpu = Cpu(6);

/// A spinning worker's slice beside another one: half of the latency of 24 ms that eight CPUs have, us.
const SLICE: u64 = 12_000;

/// Groups of a browser's kind of background, with a task on each CPU. The report's author counted 35 to 40 queues with load
/// in one new-idle balance of eight CPUs: the root's and four groups' on each.
const GROUPS: u32 = 4;

/// How long each of their tasks sleeps, on average, ms: as the report's rate of updates without the patch asks for (200 a
/// second; a fit).
const GROUP_PERIOD_MS: u32 = 17;

/// How long it runs then, us at full speed: a moment, since the groups are inactive.
const GROUP_US: u32 = 20;

/// A fit to the 90th percentile of the report's tables.
const LONG_GROUP_US: u32 = 140;

/// Such a wakeup met a new-idle balance or something as long, us.
const LONG_MIDDLE: u64 = 300;

/// Numbers of groups for the slope.
const SLOPE: [u32; 5] = [0, 2, 4, 8, 16];

/// The metrics that are counted in a run, beside those of every run.
const COUNTED: &[&str] = &["nohz_stats_updates", "newidle_ns_mean", "newidle_ns_max"];

/// CPUs of the report's machine.
const CPUS: f64 = 8.0;

/// What is counted in a run.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    /// How often a second other CPUs aged an idle CPU's load without being kicked.
    updates: f64,
    /// The longest new-idle balance, us.
    longest: f64,
    /// The mean, us.
    mean: f64,
}

impl Counted {
    fn of(run: &RunResult) -> Counted {
        let [updates, mean, longest] = [0, 1, 2].map(|number: usize| run.metric(COUNTED[number]).unwrap_or(0.0));
        let seconds = run.simulated_ns as f64 / 1e9;
        Counted { updates: updates / seconds / CPUS, longest: longest / 1000.0, mean: mean / 1000.0 }
    }
}

/// How long schbench ran, and how much of it on big CPUs.
#[derive(Clone, Copy, Debug, Default)]
struct OnBig {
    ran: Ns,
    ran_on_big: Ns,
}

impl OnBig {
    /// The share of schbench's running time that was on big CPUs, percent.
    fn percent(&self) -> f64 {
        self.ran_on_big.0 as f64 * 100.0 / self.ran.0.max(1) as f64
    }
}

impl Sink for OnBig {
    fn event(&mut self, event: &Event<'_>) {
        if let EventKind::SchedStatRuntime { comm, runtime, .. } = &event.kind
            && *comm == Comm::from("schbench")
        {
            self.ran += *runtime;
            if event.cpu >= FIRST_BIG {
                self.ran_on_big += *runtime;
            }
        }
    }
}

/// Medians over runs with different seeds.
#[derive(Clone, Copy, Debug, Default)]
struct Medians {
    table: SchbenchTable,
    counted: Counted,
    /// In how many runs the longest wait is a slice or more.
    stacked: usize,
    /// In how many runs the 99th percentile is a slice or more, and in how many it is below 1 ms.
    p99_of_a_slice: usize,
    p99_short: usize,
    /// In how many runs the 75th percentile is [`LONG_MIDDLE`] or more.
    p75_long: usize,
    /// The share of schbench's running time on big CPUs, percent.
    on_big: Spread,
    /// How many runs there were.
    runs: usize,
}

/// The least, the middle and the largest of runs.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    least: f64,
    middle: f64,
    most: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Spread {
        Spread {
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            middle: median(values),
            most: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

impl Medians {
    fn of(runs: &[(RunResult, OnBig)]) -> Medians {
        let tables = runs.iter().filter_map(|(run, _)| SchbenchTable::last_of(&run.output));
        let tables = tables.collect::<Vec<_>>();
        let of_tables = |figure: &dyn Fn(&SchbenchTable) -> u64| {
            median(&tables.iter().map(|table| figure(table) as f64).collect::<Vec<_>>()) as u64
        };
        let of_runs = |figure: fn(&Counted) -> f64| {
            median(&runs.iter().map(|(run, _)| figure(&Counted::of(run))).collect::<Vec<_>>())
        };
        Medians {
            on_big: Spread::of(&runs.iter().map(|(_, on_big)| on_big.percent()).collect::<Vec<_>>()),
            runs: runs.len(),
            p75_long: tables.iter().filter(|table| table.p75() >= LONG_MIDDLE).count(),
            stacked: tables.iter().filter(|table| table.max >= SLICE).count(),
            p99_of_a_slice: tables.iter().filter(|table| table.p99() >= SLICE).count(),
            p99_short: tables.iter().filter(|table| table.p99() < 1000).count(),
            table: SchbenchTable {
                runtime_s: of_tables(&|table| table.runtime_s),
                samples: of_tables(&|table| table.samples),
                percentiles: std::array::from_fn(|index| of_tables(&|table| table.percentiles[index])),
                counts: std::array::from_fn(|index| of_tables(&|table| table.counts[index])),
                max: of_tables(&|table| table.max),
                min: Some(of_tables(&|table| table.min.unwrap_or(0))),
            },
            counted: Counted {
                updates: of_runs(|counted| counted.updates),
                longest: of_runs(|counted| counted.longest),
                mean: of_runs(|counted| counted.mean),
            },
        }
    }
}

/// The setting of the runs that the report has.
const REPORTED: &str = "the report's run";

const UPDATES: &str = "others age an idle CPU's load, times a second";
const MEAN: &str = "mean new-idle balance, us";
const LONGEST: &str = "longest new-idle balance of a run, us";
const P75: &str = "p75, us";
const P99: &str = "p99, us";
const STACKED: &str = "runs whose longest wait is a slice, %";

const METRICS: &[Metric<Medians>] = &[
    (UPDATES, |medians| Some(medians.counted.updates)),
    (MEAN, |medians| Some(medians.counted.mean)),
    (LONGEST, |medians| Some(medians.counted.longest)),
    (P75, |medians| medians.table.figure(SchbenchTable::p75)),
    (P99, |medians| medians.table.figure(SchbenchTable::p99)),
    (STACKED, |medians| Some(medians.stacked as f64 * 100.0 / medians.runs as f64)),
];

impl Variant {
    /// Its runs among the report's.
    fn reported(self) -> RunKey {
        RunKey::new(REPORTED, self.name)
    }

    /// Its runs beside some number of groups.
    fn beside(self, groups: u32) -> RunKey {
        RunKey::new(format!("{groups} groups"), self.name)
    }

    fn plan(self, run: RunKey, groups: u32) -> Plan {
        let Variant { kernel, machine, group_us, .. } = self;
        Plan {
            run,
            kernel,
            machine,
            workload: format!("daemons -g {groups} -c 8 -p {GROUP_PERIOD_MS} -r {group_us} {COMMAND}"),
            duration: Ns::from_secs(7),
            measured: Measured::FromStart,
        }
    }
}

fn conduct(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    let seeds = bench.choose(40, 10);
    let Some(()) = as_reported(bench, report, seeds)? else { return Ok(None) };
    slope(bench, report, seeds / 2)
}

fn as_reported(bench: &Bench<'_>, report: &mut Report, seeds: u64) -> Result<Option<()>, LabError> {
    let plans = VARIANTS.map(|variant| variant.plan(variant.reported(), GROUPS));
    let Some(runs) = bench.measure(&plans, 1..=seeds, COUNTED, OnBig::default)? else { return Ok(None) };
    let medians = runs.map(|runs| Medians::of(runs));
    report.measure(&medians, METRICS);

    report.heading("The report's run");
    report.text(format!(
        "{COMMAND} on chromebook8 (6 little and 2 big CPUs, one clock for each kind, schedutil, HZ 1000), beside {GROUPS} \
         groups whose tasks run for {GROUP_US} us every {GROUP_PERIOD_MS} ms on each CPU. That period is a fit \
         to the report's 200 updates a second. \
         Medians of {seeds} runs.",
    ));
    let [without, with] = medians.all([WITHOUT.reported(), WITH.reported()])?;
    report.verbatim(format!("{}\n{}", WITHOUT.name, side_by_side(&PUBLISHED_WITHOUT, &without.table)));
    report.verbatim(format!("{}\n{}", WITH.name, side_by_side(&PUBLISHED_WITH, &with.table)));
    kernels_table(report, &medians);
    by_chance(report, without, with);
    long_middle(report, &without.table, &with.table);
    two_modes(report, &medians)?;
    pictures(report, &without.table, &with.table);
    report.keep(runs.into_runs());
    Ok(Some(()))
}

fn kernels_table(report: &mut Report, medians: &ByRun<Medians>) {
    let rows =
        medians.iter().map(|(run, Medians { table, counted, stacked, p75_long, on_big, runs, .. })| {
            let mut row = vec![run.kernel.to_string()];
            row.extend(table.percentiles.map(|us| us.to_string()));
            row.extend([
                table.max.to_string(),
                number(counted.updates),
                number(counted.mean),
                number(counted.longest),
                format!("{stacked} of {runs}"),
                format!("{p75_long} of {runs}"),
                [on_big.least, on_big.middle, on_big.most].map(number).join(", "),
            ]);
            row
        });
    let header = [
        "kernel",
        "p50",
        "p75",
        "p90",
        "p95",
        "p99",
        "p99.5",
        "p99.9",
        "max",
        "updates/s",
        "mean",
        "longest",
        "stacked",
        "p75 long",
        "big CPUs, %",
    ];
    report.table(&header, rows.collect());
    report.text(
        "Latencies in us. \"updates/s\": how often a second others age an idle CPU's load without being kicked. \"mean\", \
         \"longest\": new-idle balances, us; while one lasts, its CPU does not look idle and takes no interrupt. \"stacked\": \
         runs whose longest wait is a slice of 12 ms or more. \"p75 long\": runs whose 75th percentile is 300 us or more. \"big \
         CPUs\": the share of schbench's running time there, in the run with the least, the middle one and the one with the \
         most. \"not by energy\": without 732cd75b8c92 and what follows it.",
    );
    report.text(
        "Two numbers come from the discussion of the patch: a newidle balance meets 35 to 40 queues in all, and ageing \
         one CPU's queues has its cost. A function graph there has a newidle balance of 501 us, tracing included. It \
         belongs to the thread sugov:0, which sets the little CPUs' clock: when this thread goes to sleep, its CPU \
         looks for work, too. So it does here.",
    );
    report.text(
        "The machine has an energy model, so a wakeup goes where the task takes the least energy, idle or not. A \
         worker may be put beside a spinning one and wait for its slice. That happens with and without the patch; how \
         often a single run of 5 s shows it is chance.",
    );
}

/// In how many of a hundred pairs of runs, one of each kernel, something is seen in `of` the one and `other` the other.
fn pairs(of: usize, other: usize, runs: usize) -> String {
    number((of * other) as f64 * 100.0 / (runs * runs) as f64)
}

/// What one run of each, as the report has it, shows of the tail.
fn by_chance(report: &mut Report, without: &Medians, with: &Medians) {
    let runs = without.runs;
    report.text(format!(
        "p99 is a slice of 12 ms or more in {} of {runs} runs without the patch and in {} with it, and below 1 ms in {} and \
         {}. So one run of each shows the report's contrast in {} % of cases, and its opposite in {} %.",
        without.p99_of_a_slice,
        with.p99_of_a_slice,
        without.p99_short,
        with.p99_short,
        pairs(without.p99_of_a_slice, with.p99_short, runs),
        pairs(with.p99_of_a_slice, without.p99_short, runs),
    ));
}

/// How much of the tables is beyond what new-idle balancing alone would add.
fn long_middle(report: &mut Report, without: &SchbenchTable, with: &SchbenchTable) {
    const LEVELS: [f64; 7] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9];
    let share = |table: &SchbenchTable| {
        let of = |long: bool| {
            let levels = table.percentiles.iter().zip(LEVELS);
            levels.filter(move |&(&us, _)| (us >= LONG_MIDDLE) == long).map(|(_, level)| level)
        };
        let (most, least) = (100.0 - of(false).fold(0.0, f64::max), 100.0 - of(true).fold(100.0, f64::min));
        format!("{} to {} %", number(least), number(most))
    };
    report.text(format!(
        "Of the report's wakeups {} take {LONG_MIDDLE} us or more without the patch, and {} with it; here {} and {}. A worker is woken \
         after 64 ms of sleep. It waits for a newidle balance only if its CPU goes idle at that moment, which is \
         chance here. The report does not say what makes them long.",
        share(&PUBLISHED_WITHOUT),
        share(&PUBLISHED_WITH),
        share(without),
        share(with),
    ));
}

/// Why the published waits may lie where they do, and what then decides on the 75th percentile.
fn two_modes(report: &mut Report, medians: &ByRun<Medians>) -> Result<(), LabError> {
    let variants = [SLOW, FITTED, FITTED_WITH, LONG, LONG_WITH];
    let [slow, fitted, fitted_with, long, long_with] = medians.all(variants.map(Variant::reported))?;
    let runs = long.runs;
    report.text(format!(
        "The published waits lie near 200 us or near 640 us on both kernels, and the 75th percentile goes from these to those. Such \
         times are what CPUs take to leave idle states. In the first rows a CPU does so in idle_exit_ns, 2 us. \
         The device tree tells only the worst case (\"slow idle states\"): there the median is {} us. By that tree big CPUs are \
         slower at it than little ones. \"fitted idle states\" gives little CPUs 170 us and big ones 610 us, \
         which is a fit. Then the model's waits have these two modes, too, with the patch and without it: those \
         of big CPUs and those of little ones. That the device had these two is a guess that fits its table.",
        slow.table.p50(),
    ));
    report.text(format!(
        "So p75 is long in a run if more than a quarter of its wakeups are on big CPUs, and a quarter is one of the four workers. \
         Their number depends on what else runs: a wakeup goes where it saves energy, and stays if it saves too \
         little. Beside groups that run for {GROUP_US} us it is {} and {} % of schbench's time in the middle run; where they run for \
         {LONG_GROUP_US} us (\"long groups\", a fit to the published p90: {} and {} us here) {} and {} %, from {} to {} % by the run. \
         p75 is long in {} of {runs} such runs without the patch and in {} with it. One run of each shows the report's \
         contrast in {} % of cases, and its opposite in {} %: in the model the patch does not decide it. Trees' own \
         code cannot answer this: it runs here without a governor, and the effect depends on clocks.",
        number(fitted.on_big.middle),
        number(fitted_with.on_big.middle),
        long.table.p90(),
        long_with.table.p90(),
        number(long.on_big.middle),
        number(long_with.on_big.middle),
        number(long.on_big.least.min(long_with.on_big.least)),
        number(long.on_big.most.max(long_with.on_big.most)),
        long.p75_long,
        long_with.p75_long,
        pairs(long.p75_long, runs - long_with.p75_long, runs),
        pairs(long_with.p75_long, runs - long.p75_long, runs),
    ));
    Ok(())
}

fn pictures(report: &mut Report, without: &SchbenchTable, with: &SchbenchTable) {
    const PERCENTILES: [&str; 7] = ["p50", "p75", "p90", "p95", "p99", "p99.5", "p99.9"];
    for (title, published, measured) in [
        ("schbench on v5.4, us (logarithmic)", &PUBLISHED_WITHOUT, without),
        ("schbench on v5.4+nohz-blocked-rate-limit, us (logarithmic)", &PUBLISHED_WITH, with),
    ] {
        let figures = published.percentiles.iter().zip(&measured.percentiles);
        let rows = PERCENTILES.iter().zip(figures).map(|(&name, (&published, &measured))| {
            Row::new(name, Some(published as f64), Some(measured as f64))
        });
        report.picture(title, true, rows.collect());
    }
}

fn claims() -> Vec<Claim> {
    let reported = |metric, variant: Variant| of(metric, variant.reported());
    let mut claims = vec![
        Claim::new(
            "without the patch others age an idle CPU's load about 200 times a second, to which the groups' period is a fit: at least 100",
            Published::Figure(200.0),
            reported(UPDATES, WITHOUT),
            "a second",
            Bar::AtLeast(100.0),
        ),
        Claim::new(
            "with it at most 20 times",
            Published::Figure(20.0),
            reported(UPDATES, WITH),
            "a second",
            Bar::AtMost(20.0),
        ),
        Claim::new(
            "without the patch new-idle balancing takes up to 500 us: a run's longest takes at least half of that",
            Published::Figure(500.0),
            reported(LONGEST, WITHOUT),
            "us",
            Bar::AtLeast(250.0),
        ),
        Claim::new(
            "the patch takes at least half of new-idle balancing's time away",
            Published::Said("this causes the schedule loop to slow down"),
            reported(MEAN, WITH) / reported(MEAN, WITHOUT),
            "times",
            Bar::AtMost(0.5),
        ),
        Claim::new(
            "p75 falls by more than half",
            Published::Figure(PUBLISHED_WITH.p75() as f64 / PUBLISHED_WITHOUT.p75() as f64),
            reported(P75, WITH) / reported(P75, WITHOUT),
            "times",
            Bar::Below(0.5),
        ),
    ];
    claims.extend(claims_of_long_waits());
    claims.push(Claim::new(
        "v5.13 and v5.16, which age load elsewhere, take at least a quarter of that time away, too",
        Published::Nothing,
        greatest([V5_13, V5_16].map(|variant| reported(MEAN, variant))) / reported(MEAN, WITHOUT),
        "times",
        Bar::AtMost(0.75),
    ));
    claims.extend(claims_of_slope());
    claims
}

fn claims_of_long_waits() -> [Claim; 4] {
    let reported = |metric, variant: Variant| of(metric, variant.reported());
    [
        Claim::new(
            "p99 without the patch is a slice of 12 ms and at most a tick",
            Published::Figure(PUBLISHED_WITHOUT.p99() as f64),
            reported(P99, WITHOUT),
            "us",
            Bar::Between(12_000.0, 13_500.0),
        ),
        Claim::new(
            "p99 with it is below 1 ms",
            Published::Figure(PUBLISHED_WITH.p99() as f64),
            reported(P99, WITH),
            "us",
            Bar::Below(1000.0),
        ),
        Claim::new(
            "without the patch the longest wait of a run may be for a spinning worker's slice of 12 ms: of 5 % of runs and more, \
             as that of the report's single run was",
            Published::Said("max=13424"),
            reported(STACKED, WITHOUT),
            "%",
            Bar::AtLeast(5.0),
        ),
        Claim::new(
            "ablation: where wakeups do not go by energy, it never is",
            Published::Nothing,
            reported(STACKED, NOT_BY_ENERGY),
            "%",
            Bar::AtMost(0.0),
        ),
    ]
}

/// What depends on the number of groups.
fn slope(bench: &Bench<'_>, report: &mut Report, seeds: u64) -> Result<Option<()>, LabError> {
    let plans = SLOPE.iter().flat_map(|&groups| SLOPE_OF.map(|one| one.plan(one.beside(groups), groups)));
    let Some(runs) = bench.measure(&plans.collect::<Vec<_>>(), 1..=seeds, COUNTED, OnBig::default)? else {
        return Ok(None);
    };
    let medians = runs.map(|runs| Medians::of(runs));
    report.measure(&medians, METRICS);
    report.heading("How it depends on the number of groups");
    report.text(format!("New-idle balances, mean and longest in us, and p99. Medians of {seeds} runs."));
    let row = |groups: u32| {
        let mut cells = vec![groups.to_string()];
        for variant in SLOPE_OF {
            let Medians { table, counted, .. } = medians.of(&variant.beside(groups))?;
            cells.extend([number(counted.mean), number(counted.longest), table.p99().to_string()]);
        }
        Ok(cells)
    };
    let rows = SLOPE.into_iter().map(row).collect::<Result<Vec<_>, LabError>>()?;
    let header = [
        "groups",
        "v5.4 mean",
        "longest",
        "p99",
        "patched mean",
        "longest",
        "p99",
        "v5.13 mean",
        "longest",
        "p99",
    ];
    report.table(&header, rows);
    Ok(Some(()))
}

fn claims_of_slope() -> [Claim; 2] {
    let mean = |groups| of(MEAN, WITHOUT.beside(groups));
    let steps = SLOPE.iter().zip(&SLOPE[1..]).map(|(&fewer, &more)| mean(more) / mean(fewer));
    [
        Claim::new(
            "v5.4: the mean grows with the number of groups, at every step",
            Published::Said("if the system has a lot of inactive CGroups this can take a long time"),
            least(steps),
            "times, the least step",
            Bar::Above(1.0),
        ),
        Claim::new(
            "ablation: without groups new-idle balancing takes less than a third of what it takes with 8",
            Published::Nothing,
            mean(0) / mean(8),
            "times",
            Bar::Below(1.0 / 3.0),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// The cost comes with groups, and goes with the patch, with mainline's cure, and without groups.
    #[test]
    fn going_idle_is_dear_only_where_others_load_is_aged_on_the_way() {
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
        let cells = [(WITHOUT, GROUPS), (WITH, GROUPS), (V5_13, GROUPS), (WITHOUT, 0)];
        let plans = cells.map(|(variant, groups)| variant.plan(variant.beside(groups), groups));
        let runs = bench.measure(&plans, 1..=2, COUNTED, OnBig::default).expect("runs").expect("not stopped");
        let [dear, patched, mended, without_groups] =
            plans.map(|plan| Medians::of(runs.of(&plan.run).expect("runs")).counted);
        assert!(dear.updates > 100.0 && dear.longest > 250.0, "{dear:?}");
        for (other, most) in [(patched, 0.5), (mended, 0.75), (without_groups, 0.5)] {
            assert!(other.mean < dear.mean * most, "{dear:?} {other:?}");
        }
        assert!(patched.updates <= 20.0, "{patched:?}");
    }
}
