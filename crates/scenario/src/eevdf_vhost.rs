//! Placing by lag lets kworkers wait for vhost threads that poll.
//!
//! Must not know: how entities are placed; it is only asked where they were.

mod excerpt;
mod published;
mod ubuntu;

use fairlab_event::Ns;

use super::booted::Source;
use super::claim::{Measure, of, percent};
use super::figures::{Metric, shown};
use super::kworkers::{Computed, Excerpt, Kind, KworkerWatch, ended_by_migration};
use super::render::number;
use super::reported;
use super::runs::{Watched, mean_of};
use super::{
    Bar, Batch, Bench, BesideReal, Claim, Measured, Plan, Published, Report, Reported, Row, RunKey, Scenario,
    Small,
};
use fairlab_lab::LabError;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "eevdf-vhost",
    about: "since entities are placed by their lag, kworkers wait many ticks for vhost threads that poll for them",
    source: "Tobias Huschle, \"EEVDF/vhost regression (bisected to 86bfbb7ce4f6 sched/fair: Add lag based placement)\", \
             16 November 2023",
    commit: "86bfbb7ce4f6 (\"sched/fair: Add lag based placement\", v6.6); many ticks pass because reweight_entity() leaves \
             the deadline of an entity that is off its queue; 152e11f6df29 (\"sched/fair: Implement delayed dequeue\", v6.12) \
             keeps groups' entities queued",
    pair: ["v6.5", "86bfbb7ce4f6"],
    machine: "s390-lpar24",
    small: Small {
        workload: "vhost --gap-us 30 --work-us 3 --long-work-us 90 --run-us 400 --run-ms 4000",
        machine: "emulated:4",
        duration: Ns::from_secs(6),
    },
    measured: "Runs are measured from the program's start: the report tells of all that its run of uperf saw.",
    conduct,
    claims,
    booted: Some(BesideReal { conduct: ubuntu::conduct, claims: ubuntu::claims }),
    reported: Some(Reported {
        // As many CPUs of a PC: no image has the books of the report's machine.
        plan: |bench, kernel| Plan {
            machine: "layout:1x1x24x1",
            ..plan(REPORTED, kernel, "", bench.choose(2000, 400))
        },
        seeds: |bench| bench.choose(5, 2),
        modelled: &[GOOD, GUILTY, BAD, CURED, CURED_WITHOUT],
        published: &[(GOOD, &[Some(78.0)]), (GUILTY, &[Some(29.0)]), ("v6.7-rc1", &[Some(41.0)])],
        columns: &[("Gb/s", |runs| reported::mean_of(runs, "gigabits_per_s"))],
    }),
};

/// One tick on machines with HZ 100.
const TICK: Ns = Ns::from_ms(10);

/// Two of them, ms.
const TWO_TICKS: f64 = 20.0;

/// A wait that ends with the first tick at which the waiter may run is no longer, ms.
const ONE_TICK: f64 = 13.0;

/// The last good kernel, and the commit before the guilty one.
const GOOD: &str = "v6.5";
const BEFORE: &str = "e0c2ff903c32";

/// The guilty commit, and the one since which the sign of the lag decides on preemption.
const GUILTY: &str = "86bfbb7ce4f6";
const BY_SIGN: &str = "147f3efaa241";

/// The release with both, and that with the deadline scaled off the queue, too.
const BAD: &str = "v6.6";
const SCALED: &str = "v6.6+scale-deadline-off-rq";

/// The release with delayed dequeue, and that without it.
const CURED: &str = "v6.12";
const CURED_WITHOUT: &str = "v6.12+NO_DELAY_DEQUEUE";

/// eab03c23c2a1 came with v6.7-rc2.
const V6_7_RC1: &str = "v6.7-eab03c23c2a1";

/// That release candidate without the change that brings some of the throughput back.
const V6_7_RC1_WITHOUT: &str = "v6.7-eab03c23c2a1-1528c661c24b";

/// Kernels, and what the report measured on them, Gb/s.
const KERNELS: [(&str, Option<f64>); 10] = [
    (GOOD, Some(78.0)),
    (BEFORE, None),
    (GUILTY, Some(29.0)),
    (BY_SIGN, None),
    (BAD, None),
    (SCALED, None),
    (V6_7_RC1, Some(41.0)),
    (V6_7_RC1_WITHOUT, None),
    (CURED, None),
    (CURED_WITHOUT, None),
];

/// The setting of the runs that the report has.
const REPORTED: &str = "the report's run";

/// The setting in which real kernels were recorded.
const RECORDED: &str = "the recorded job";

const SPEED: &str = "throughput, Gb/s";
const LONGEST: &str = "longest wait of a kworker, ms";
const LONG: &str = "kworkers' waits of two ticks";
const LATE: &str = "kworkers' waits of half a tick";
const A_LATE_ONE: &str = "wakeups of kworkers for each wait of half a tick";
const FRESH: &str = "of the waits of half a tick those soon after a wakeup without lag, %";
const FAR: &str = "placements with a deadline far ahead";
const NO_LAG: &str = "of the waits of two ticks those without positive lag, %";
const BY_MIGRATION: &str = "of the longest waits those that end by migration, %";

/// What all runs of a kernel show.
const METRICS: &[Metric<Vec<Watched<KworkerWatch>>>] = &[
    (SPEED, |runs| mean_of(runs, "gigabits_per_s")),
    (LONGEST, |runs| runs.iter().filter_map(|(_, watch)| watch.longest_ms()).max_by(f64::total_cmp)),
    (LONG, |runs| Some(sum(runs, |watch| watch.long) as f64)),
    (LATE, |runs| Some(sum(runs, |watch| watch.late) as f64)),
    (A_LATE_ONE, |runs| ratio(sum(runs, |watch| watch.wakeups), sum(runs, |watch| watch.late))),
    (FRESH, |runs| Some(ratio(sum(runs, |watch| watch.late_fresh), sum(runs, |watch| watch.late))? * 100.0)),
    (FAR, |runs| Some(sum(runs, |watch| watch.far_placements) as f64)),
    (NO_LAG, |runs| {
        Some(
            ratio(sum(runs, |watch| watch.long - watch.long_with_lag), sum(runs, |watch| watch.long))?
                * 100.0,
        )
    }),
];

fn sum(runs: &[Watched<KworkerWatch>], count: impl Fn(&KworkerWatch) -> u64) -> u64 {
    runs.iter().map(|(_, watch)| count(watch)).sum()
}

fn ratio(of: u64, to: u64) -> Option<f64> {
    (to > 0).then(|| of as f64 / to as f64)
}

/// A kernel that was recorded.
struct Real {
    release: &'static str,
    kernel: &'static str,
    /// The longest wait of a kworker in any of its runs, ms.
    longest_ms: f64,
    /// Whether it lasts many ticks.
    many_ticks: bool,
}

const REAL_KERNELS: [Real; 5] = [
    Real { release: "6.5.0", kernel: "v6.5", longest_ms: 12.7, many_ticks: false },
    Real { release: "6.6.0's rule", kernel: "v6.6", longest_ms: 278.1, many_ticks: true },
    Real { release: "6.6.9", kernel: "v6.6.9", longest_ms: 157.1, many_ticks: true },
    Real {
        release: "6.6.0's rule, deadline scaled",
        kernel: "v6.6+scale-deadline-off-rq",
        longest_ms: 11.8,
        many_ticks: false,
    },
    Real { release: "6.12.107", kernel: "v6.12", longest_ms: 10.0, many_ticks: false },
];

/// The recorded job with two sets of burst lengths. It asked for 30, 3, 90 and 60, 1, 60 us. On its four CPUs, which share one
/// clock of instructions, these took so long: medians of the recording of 6.6.9, and in proportion to them.
const JOBS: [&str; 2] = [
    "vhost --gap-us 75 --work-us 17 --long-work-us 215 --long-every 20 --run-ms 4000",
    "vhost --gap-us 150 --work-us 8 --long-work-us 150 --long-every 50 --run-ms 4000",
];

fn conduct(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    let Some(()) = as_reported(bench, report)? else { return Ok(None) };
    let Some(()) = beside_real_kernels(bench, report)? else { return Ok(None) };
    ubuntu::conduct(bench, report, Source::Recorded)
}

/// Runs of the report's; `assumed` are options of the workload where it is not as it is by itself.
fn plan(setting: &str, kernel: &'static str, assumed: &str, milliseconds: u64) -> Plan {
    Plan {
        run: RunKey::new(setting.to_string(), kernel),
        kernel,
        machine: "s390-lpar24",
        workload: format!("uperf {assumed} --run-ms {milliseconds}"),
        duration: Ns::from_ms(milliseconds + 1000),
        measured: Measured::FromStart,
    }
}

/// What else could be assumed: how many chunks are under way on a connection, how many us a vhost thread copies one, how
/// many us a guest reads one.
const ASSUMED: [(u32, u32, u32); 6] = [(1, 7, 24), (2, 7, 24), (4, 7, 24), (8, 7, 24), (2, 5, 24), (2, 8, 8)];

fn as_reported(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    let (milliseconds, seeds) = bench.choose((2000, 5), (400, 2));
    let plans = KERNELS.map(|(kernel, _)| plan(REPORTED, kernel, "", milliseconds));
    let Some(runs) = bench.watch(&plans, 1..=seeds, || KworkerWatch::new(TICK))? else { return Ok(None) };
    report.measure(&runs, METRICS);
    report.heading("The report's run");
    report.text(format!(
        "uperf str-readx30k with 50 connections between two guests of 8 CPUs and 4 queues each, on s390-lpar24: 24 CPUs, \
         HZ 100; {milliseconds} ms, {seeds} seeds."
    ));
    who_computes(report, runs.of(&RunKey::new(REPORTED, GOOD))?);
    let (mut rows, mut bars) = (Vec::new(), Vec::new());
    for (kernel, published) in KERNELS {
        let run = RunKey::new(REPORTED, kernel);
        let share = (reported(SPEED, kernel) / reported(SPEED, GOOD)).value(&report.figures)?;
        let published_share = published.map(|speed| speed / 78.0);
        let mut row = vec![kernel.to_string(), shown(published), shown(published_share)];
        row.extend([report.shown(SPEED, &run)?, shown(share), report.shown(LONGEST, &run)?]);
        let count = |metric| report.figures.count(metric, &run);
        row.extend([count(LONG)?, count(LATE)?, report.shown(A_LATE_ONE, &run)?, count(FAR)?]);
        rows.push(row);
        bars.push(Row::new(kernel, published_share, share));
    }
    let header = [
        "kernel",
        "published Gb/s",
        "of v6.5",
        "Gb/s",
        "of v6.5",
        "kworkers' longest wait ms",
        "waits of 2 ticks",
        "of half a tick",
        "wakeups for each",
        "far deadlines",
    ];
    report.table(&header, rows);
    report.picture("throughput, of v6.5", false, bars);
    report.text("\"far deadlines\": placements of a group's entity with a deadline more than 20 ms of virtual time ahead.");
    report.text(recovery(report)?);
    let Some(()) = other_assumptions(bench, report, milliseconds)? else { return Ok(None) };
    tell(bench, report, runs, milliseconds)
}

/// A metric of the runs that the report has.
fn reported(metric: &'static str, kernel: &'static str) -> Measure {
    of(metric, RunKey::new(REPORTED, kernel))
}

/// The workload beside the report's table of the good kernel.
fn who_computes(report: &mut Report, good: &[Watched<KworkerWatch>]) {
    let of_guests = |computed: &dyn Fn(Kind) -> Computed| {
        number(computed(Kind::Vhost).ms / computed(Kind::GuestCpu).ms.max(1e-9))
    };
    let here = |kind| {
        let of_runs = good.iter().map(|(_, watch)| watch.computed(kind));
        of_runs.fold(Computed::default(), |sum, run| Computed {
            ms: sum.ms + run.ms,
            switches: sum.switches + run.switches,
        })
    };
    let mut rows = vec![vec![
        "vhost threads' CPU time, of the guests'".to_string(),
        of_guests(&published::computed),
        of_guests(&here),
    ]];
    let kinds = [("vhost thread", Kind::Vhost), ("guest's CPU", Kind::GuestCpu), ("kworker", Kind::Kworker)];
    rows.extend(kinds.map(|(name, kind)| {
        let us = |computed: Computed| number(computed.us_a_switch());
        vec![format!("us a switch of a {name}"), us(published::computed(kind)), us(here(kind))]
    }));
    report.table(&["on the good kernel", "published", "v6.5"], rows);
    report.text(
        "The report does not say how long guests and vhost threads compute. Three times are fits to its table of the \
         good kernel and to its 78 Gb/s: a kworker's work, copying a chunk, and reading a chunk. The others are \
         assumed. The stretches of guests and vhost threads do not match the report. Its vhost threads are busy for \
         at most half of the time (its waits lie 7 s apart), the model's for three quarters.",
    );
}

/// What is known of the recovery from one kernel to the next.
fn recovery(report: &Report) -> Result<String, LabError> {
    let told = |metric, kernel: &'static str| report.shown(metric, &RunKey::new(REPORTED, kernel));
    Ok(format!(
        "86bfbb7ce4f6 still picks as CFS did: a woken task preempts only if it is wakeup_gran() of virtual time \
         behind. Without the earlier credit for sleep no task is that far behind. Since 147f3efaa241 the sign of its lag decides. So a \
         kworker waits for half a tick at one of {} wakeups on the first kernel and at one of {} on the second. v6.6 \
         also has waits of many ticks (below). By v6.7-rc1 1528c661c24b (\"sched/fair: Ratelimit update to tg->load_avg\") lets a group's \
         shares follow its load no more than once a millisecond, and it is one of {} wakeups instead of {} without. Of what is \
         left {} % begin at the first or second wakeup after one without lag. A vhost thread comes to a CPU whose \
         kworker was alone when it went to sleep. One round of work then makes the kworker's lag negative.",
        told(A_LATE_ONE, GUILTY)?,
        told(A_LATE_ONE, BY_SIGN)?,
        told(A_LATE_ONE, V6_7_RC1)?,
        told(A_LATE_ONE, V6_7_RC1_WITHOUT)?,
        told(FRESH, V6_7_RC1)?,
    ))
}

/// How the ratio hangs on what is assumed.
fn other_assumptions(
    bench: &Bench<'_>,
    report: &mut Report,
    milliseconds: u64,
) -> Result<Option<()>, LabError> {
    let seeds = bench.choose(3, 1);
    let assumed = |(window, copy, receive): (u32, u32, u32)| {
        format!("--window {window} --copy-us {copy} --receive-us {receive}")
    };
    let plans = ASSUMED.iter().flat_map(|&options| {
        let options = assumed(options);
        [GOOD, GUILTY, V6_7_RC1].map(|kernel| plan(&options, kernel, &options, milliseconds / 2))
    });
    let Some(runs) = bench.watch(&plans.collect::<Vec<_>>(), 1..=seeds, || ())? else { return Ok(None) };
    report.measure(&runs, &[(SPEED, |runs| mean_of(runs, "gigabits_per_s"))]);
    let mut faster = 0;
    for options in ASSUMED {
        let speed = |kernel: &'static str| of(SPEED, RunKey::new(assumed(options), kernel));
        let recovered = (speed(V6_7_RC1) - speed(GUILTY)).value(&report.figures)?;
        faster += usize::from(recovered.is_some_and(|gained| gained > 0.0));
    }
    report.text(format!(
        "Other assumptions, {seeds} runs of {} ms each; published: 0.37 and 0.53. v6.7-rc1 is the faster one of the two in \
         {faster} of {} lines. Guests limit the good kernel in all of them but the last, where vhost threads do.",
        milliseconds / 2,
        ASSUMED.len()
    ));
    let row = |options: (u32, u32, u32)| {
        let speed = |kernel: &'static str| of(SPEED, RunKey::new(assumed(options), kernel));
        let (window, copy, receive) = options;
        let mut row = [window, copy, receive].map(|option| option.to_string()).to_vec();
        let ratio = |kernel| speed(kernel) / speed(GOOD);
        for measure in [speed(GOOD), ratio(GUILTY), ratio(V6_7_RC1)] {
            row.push(shown(measure.value(&report.figures)?));
        }
        Ok(row)
    };
    let rows = ASSUMED.into_iter().map(row).collect::<Result<Vec<_>, LabError>>()?;
    let header = [
        "chunks under way",
        "us to copy one",
        "us to read one",
        "v6.5 Gb/s",
        "86bfbb7ce4f6 of v6.5",
        "v6.7-rc1 of v6.5",
    ];
    report.table(&header, rows);
    report.keep(runs.into_runs());
    Ok(Some(()))
}

fn claims() -> Vec<Claim> {
    let mut claims = claims_of_speed();
    claims.extend(claims_of_waits());
    claims.extend(REAL_KERNELS.iter().map(Real::claim));
    claims.extend(ubuntu::claims());
    claims
}

fn claims_of_speed() -> Vec<Claim> {
    let between = |kernel, base| reported(SPEED, kernel) / reported(SPEED, base);
    let gained = |kernel, base| reported(SPEED, kernel) - reported(SPEED, base);
    vec![
        Claim::new(
            "throughput falls by half or more with 86bfbb7ce4f6",
            Published::Figure(29.0 / 78.0),
            between(GUILTY, GOOD),
            "of v6.5",
            Bar::AtMost(0.5),
        ),
        Claim::new(
            "it is still low on v6.7-rc1",
            Published::Figure(41.0 / 78.0),
            between(V6_7_RC1, GOOD),
            "of v6.5",
            Bar::AtMost(0.7),
        ),
        Claim::new(
            "it recovers partly from 86bfbb7ce4f6 to v6.7-rc1",
            Published::Figure(41.0 / 29.0),
            between(V6_7_RC1, GUILTY),
            "times",
            Bar::AtLeast(1.1),
        ),
        Claim::new(
            "it recovers partly from v6.6 to v6.7-rc1",
            Published::Nothing,
            between(V6_7_RC1, BAD),
            "times",
            Bar::Above(1.0),
        ),
        Claim::new(
            "ablation: without 1528c661c24b v6.7-rc1 is as slow as v6.6, within 2 %",
            Published::Nothing,
            between(V6_7_RC1_WITHOUT, BAD),
            "times",
            Bar::Near { value: 1.0, by: 0.02 },
        ),
        Claim::new(
            "ablation: the commit before 86bfbb7ce4f6 is as fast as v6.5",
            Published::Said("78 Gb/s before it"),
            between(BEFORE, GOOD),
            "of v6.5",
            Bar::AtLeast(0.8),
        ),
        Claim::new(
            "v6.12 brings more than half of what was lost back",
            Published::Nothing,
            percent(gained(CURED, GUILTY) / gained(GOOD, GUILTY)),
            "%",
            Bar::Above(50.0),
        ),
        Claim::new(
            "ablation: without delayed dequeue more than half of that is lost again",
            Published::Nothing,
            percent(gained(CURED, CURED_WITHOUT) / gained(CURED, GUILTY)),
            "%",
            Bar::Above(50.0),
        ),
    ]
}

fn claims_of_waits() -> Vec<Claim> {
    vec![
        Claim::new(
            "on the good kernel no kworker waits longer than a tick",
            Published::Figure(1.88),
            reported(LONGEST, GOOD),
            "ms",
            Bar::AtMost(ONE_TICK),
        ),
        Claim::new(
            "on v6.6 kworkers wait for tens to hundreds of ms",
            Published::Figure(366.314),
            reported(LONGEST, BAD),
            "ms",
            Bar::Between(30.0, 2000.0),
        ),
        Claim::new(
            "the waiter had no positive lag when it was placed, in all waits of two ticks and more",
            Published::Said("the problem occurs only if lag <= 0"),
            reported(NO_LAG, BAD),
            "%",
            Bar::AtLeast(100.0),
        ),
        Claim::new(
            "groups' entities are placed with a deadline far ahead, at a tiny weight",
            Published::Said("+614.4 ms at the root"),
            reported(FAR, BAD),
            "times",
            Bar::Above(0.0),
        ),
        Claim::new(
            "ablation: with the deadline scaled off the queue, too, no kworker waits for two ticks",
            Published::Nothing,
            reported(LONGEST, SCALED),
            "ms",
            Bar::Below(TWO_TICKS),
        ),
        Claim::new(
            "the long waits of kworkers on v6.6 end by migration of what polls: most of them",
            Published::Said("has to wait for the migration"),
            reported(BY_MIGRATION, BAD),
            "%",
            Bar::Above(50.0),
        ),
    ]
}

impl Real {
    /// Its modelled runs, with both jobs.
    fn run(&self) -> RunKey {
        RunKey::new(RECORDED, self.release)
    }

    /// The longest wait lasts as many ticks as there.
    fn claim(&self) -> Claim {
        let (text, bar) = match self.many_ticks {
            true => ("waits of many ticks", Bar::Above(TWO_TICKS)),
            false => ("no wait of two ticks", Bar::AtMost(TWO_TICKS)),
        };
        Claim::new(
            format!("{}: {text}", self.release),
            Published::Figure(self.longest_ms),
            of(LONGEST, self.run()),
            "ms",
            bar,
        )
    }
}

/// The table of the good and the bad kernel beside the report's, the worst wait as lines of the trace, and its story.
fn tell(
    bench: &Bench<'_>,
    report: &mut Report,
    runs: Batch<KworkerWatch>,
    milliseconds: u64,
) -> Result<Option<()>, LabError> {
    let mut worst_of_bad = None;
    for (name, of_kernel) in runs {
        report.keep(of_kernel.iter().map(|(run, _)| run.clone()));
        let length = |(_, watch): &Watched<KworkerWatch>| watch.longest.map(|wait| wait.length());
        let Some((run, watch)) = of_kernel.into_iter().max_by_key(length) else { continue };
        let wait = watch.longest;
        let printed = match &*name.kernel {
            GOOD => Some(("last good commit", published::GOOD)),
            BAD => Some(("6.6 rc7", published::BAD)),
            _ => None,
        };
        let Some((title, rows)) = printed else { continue };
        let (table, told) = watch.tell(rows.len());
        report.heading(format!("{title} --> perf sched latency -s max, and {} here", name.kernel));
        report.verbatim(published::table(rows));
        report.verbatim(table);
        if name.kernel == BAD {
            worst_of_bad = Some((told, wait, run.seed));
        }
    }
    let (stories, longest, seed) = worst_of_bad.unwrap_or_default();
    let by_migration = stories.iter().filter(|story| ended_by_migration(story)).count();
    let by_migration = ratio(by_migration as u64, stories.len() as u64).map(|share| share * 100.0);
    report.figures.set(BY_MIGRATION, RunKey::new(REPORTED, BAD), by_migration);
    report.heading("How it comes about");
    report.text(
        "A CPU of a guest goes to sleep, and its host CPU, about to idle, pulls a vhost thread of the same guest. The groups above \
         both are still the running entities there, and their share on this CPU has just collapsed. So they are \
         placed at that tiny weight, with a deadline far ahead. Then they get their new weight. Off the queue this \
         scales only the lag; the deadline stays. The vhost thread queues work for the kworker in the root group. If the kworker's lag \
         is not positive, it does not preempt. The vhost thread polls. Ticks find that the deadlines below are alone \
         on their queues, and that the deadline at the root is far ahead. The wait ends when balancing takes the \
         vhost thread away, or at that deadline.",
    );
    if let Some(wait) = longest {
        excerpt::table(report, &wait, stories.first());
        let plans = [plan("the longest wait", BAD, "", milliseconds)];
        let Some(excerpts) = bench.watch(&plans, [seed], || Excerpt::new(wait))? else { return Ok(None) };
        report.text(
            "The longest wait of a kworker on v6.6, on its CPU, from the placement with the far deadline on:",
        );
        for (_, excerpt) in excerpts.into_values().flatten() {
            report.verbatim(excerpt.text());
        }
    }
    if let Some(story) = stories.first() {
        report.verbatim(story.to_string());
    }
    Ok(Some(()))
}

fn beside_real_kernels(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    let seeds = bench.choose(5, 2);
    let plan = |real: &Real, job: &str| Plan {
        run: real.run(),
        kernel: real.kernel,
        machine: "qemu4",
        workload: job.to_string(),
        duration: Ns::from_secs(6),
        measured: Measured::FromStart,
    };
    let plans = REAL_KERNELS.iter().flat_map(|real| JOBS.map(|job| plan(real, job))).collect::<Vec<_>>();
    let Some(runs) = bench.watch(&plans, 1..=seeds, || ())? else { return Ok(None) };
    let waits = runs.map(|runs| {
        runs.iter()
            .filter_map(|(run, ())| Some(run.metric("kworker_wait_ns_max")? / 1e6))
            .collect::<Vec<f64>>()
    });
    report.measure(&waits, &[(LONGEST, |waits| waits.iter().copied().reduce(f64::max))]);
    report.keep(runs.into_runs());
    report.heading("Beside real kernels");
    report.text(format!(
        "Two guests with a vhost thread and three CPUs each on 4 CPUs, HZ 100, without high-resolution timers; two sets of \
         burst lengths, {seeds} seeds each, 4 s. Real: the longest wait of a kworker in any recorded run of that kernel."
    ));
    let row = |real: &Real| {
        let waits = waits.of(&real.run())?;
        let many = waits.iter().filter(|&&wait| wait > TWO_TICKS).count();
        Ok(vec![
            format!("{} ({})", real.release, real.kernel),
            number(real.longest_ms),
            report.shown(LONGEST, &real.run())?,
            format!("{many} of {}", waits.len()),
        ])
    };
    let rows = REAL_KERNELS.iter().map(row).collect::<Result<Vec<_>, LabError>>()?;
    report.table(&["kernel", "real longest wait ms", "modelled", "runs with a wait of 2 ticks"], rows);
    Ok(Some(()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn only_a_deadline_left_behind_makes_kworkers_wait_many_ticks() {
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
        let plans = [GOOD, BAD, SCALED].map(|kernel| plan(REPORTED, kernel, "", 500));
        let runs = bench.watch(&plans, [1], || KworkerWatch::new(TICK)).expect("runs").expect("not stopped");
        let watch = |kernel: &'static str| &runs.of(&RunKey::new(REPORTED, kernel)).expect("runs")[0].1;
        let longest = |kernel| watch(kernel).longest_ms().expect("waits");
        assert!(
            longest(GOOD) <= ONE_TICK && longest(SCALED) <= ONE_TICK,
            "{} {}",
            longest(GOOD),
            longest(SCALED)
        );
        assert!(longest(BAD) > TWO_TICKS, "{}", longest(BAD));
        assert!(watch(BAD).far_placements > 0 && watch(BAD).long_with_lag == 0);
    }
}
