//! Placing by lag lets kworkers wait for vhost threads that poll.
//!
//! Must not know: how entities are placed; it is only asked where they were.

mod excerpt;
mod published;
mod ubuntu;

use fairlab_analysis::statistics::mean;
use fairlab_event::Ns;

use super::booted::Source;
use super::kworkers::{Computed, Excerpt, Kind, KworkerWatch, ended_by_migration};
use super::render::number;
use super::{Bar, Bench, Measured, Plan, Published, Report, Scenario, Small};
use fairlab_lab::{LabError, RunResult};

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
    booted: Some(ubuntu::conduct),
};

/// One tick on machines with HZ 100.
const TICK: Ns = Ns::from_ms(10);

/// A wait that ends with the first tick at which the waiter may run is no longer, ms.
const ONE_TICK: f64 = 13.0;

/// eab03c23c2a1 came with v6.7-rc2.
const V6_7_RC1: &str = "v6.7-eab03c23c2a1";

/// The same without the change that brings some of the throughput back.
const V6_7_RC1_WITHOUT: &str = "v6.7-eab03c23c2a1-1528c661c24b";

/// Kernels, and what the report measured on them, Gb/s.
const KERNELS: [(&str, Option<f64>); 10] = [
    ("v6.5", Some(78.0)),
    ("e0c2ff903c32", None),
    ("86bfbb7ce4f6", Some(29.0)),
    ("147f3efaa241", None),
    ("v6.6", None),
    ("v6.6+scale-deadline-off-rq", None),
    (V6_7_RC1, Some(41.0)),
    (V6_7_RC1_WITHOUT, None),
    ("v6.12", None),
    ("v6.12+NO_DELAY_DEQUEUE", None),
];

/// A kernel that was recorded.
struct Real {
    release: &'static str,
    kernel: &'static str,
    /// The longest wait of a kworker in any of its runs, ms.
    longest_ms: f64,
    /// Whether it lasts many ticks.
    many_ticks: bool,
}

const REAL: [Real; 5] = [
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

/// The recorded job with two sets of burst lengths. What it asked for (30, 3, 90 and 60, 1, 60 us) took this long there,
/// as medians of the recording of 6.6.9 and in proportion, since its four CPUs share one clock of instructions.
const JOBS: [&str; 2] = [
    "vhost --gap-us 75 --work-us 17 --long-work-us 215 --long-every 20 --run-ms 4000",
    "vhost --gap-us 150 --work-us 8 --long-work-us 150 --long-every 50 --run-ms 4000",
];

fn conduct(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    let Some(()) = as_reported(bench, report)? else { return Ok(None) };
    let Some(()) = beside_real_kernels(bench, report)? else { return Ok(None) };
    ubuntu::conduct(bench, report, Source::Recorded)
}

/// A run of the report's; `assumed` are options of the workload where it is not as it is by itself.
fn plan(kernel: &'static str, assumed: &str, milliseconds: u64, seed: u64) -> Plan {
    Plan {
        kernel,
        machine: "s390-lpar24",
        workload: format!("uperf {assumed} --run-ms {milliseconds}"),
        duration: Ns::from_ms(milliseconds + 1000),
        seed,
        measured: Measured::FromStart,
    }
}

/// What else could be assumed: how many chunks are under way on a connection, how many us a vhost thread copies one, how
/// many us a guest reads one.
const ASSUMED: [(u32, u32, u32); 6] = [(1, 7, 24), (2, 7, 24), (4, 7, 24), (8, 7, 24), (2, 5, 24), (2, 8, 8)];

type Watched = (RunResult, KworkerWatch);

/// The runs of one kernel, one a seed.
struct OfKernel {
    runs: Vec<Watched>,
}

impl OfKernel {
    /// Gb/s.
    fn speed(&self) -> f64 {
        mean(&self.runs.iter().map(|(run, _)| speed(run)).collect::<Vec<_>>())
    }

    fn sum(&self, count: impl Fn(&KworkerWatch) -> u64) -> u64 {
        self.runs.iter().map(|(_, watch)| count(watch)).sum()
    }

    /// What threads of this kind computed in all of them.
    fn computed(&self, kind: Kind) -> Computed {
        let of_runs = self.runs.iter().map(|(_, watch)| watch.computed(kind)).collect::<Vec<_>>();
        Computed {
            ms: of_runs.iter().map(|computed| computed.ms).sum(),
            switches: of_runs.iter().map(|computed| computed.switches).sum(),
        }
    }

    /// How many wakeups of kworkers there are for each whose wait lasts half a tick.
    fn wakeups_a_late_one(&self) -> Option<f64> {
        let late = self.sum(|watch| watch.late);
        (late > 0).then(|| self.sum(|watch| watch.wakeups) as f64 / late as f64)
    }

    /// Of the waits of half a tick the share, in %, that begin at the first or second wakeup after one without lag.
    fn fresh_percent(&self) -> Option<f64> {
        let late = self.sum(|watch| watch.late);
        (late > 0).then(|| self.sum(|watch| watch.late_fresh) as f64 * 100.0 / late as f64)
    }

    /// The longest wait of a kworker in any of them, ms.
    fn longest_ms(&self) -> Option<f64> {
        self.runs.iter().filter_map(|(_, watch)| watch.longest_ms()).max_by(f64::total_cmp)
    }

    /// The run with that wait.
    fn worst(self) -> Option<Watched> {
        let length = |watched: &Watched| watched.1.longest.map(|wait| wait.length());
        self.runs.into_iter().max_by_key(length)
    }
}

fn speed(run: &RunResult) -> f64 {
    run.metric("gigabits_per_s").unwrap_or(0.0)
}

fn as_reported(bench: &Bench<'_>, report: &mut Report) -> Result<Option<()>, LabError> {
    let (milliseconds, seeds) = bench.choose((2000, 5), (400, 2));
    let of_kernel = |(kernel, _)| (1..=seeds).map(move |seed| plan(kernel, "", milliseconds, seed));
    let plans = KERNELS.into_iter().flat_map(of_kernel).collect::<Vec<_>>();
    let Some(watched) = bench.watch(&plans, |_| KworkerWatch::new(TICK))? else { return Ok(None) };
    let mut watched = watched.into_iter();
    let results = KERNELS.map(|_| OfKernel { runs: watched.by_ref().take(seeds as usize).collect() });
    report.heading("The report's run");
    report.text(format!(
        "uperf str-readx30k with 50 connections between two guests of 8 CPUs and 4 queues each, on s390-lpar24: 24 CPUs, \
         HZ 100; {milliseconds} ms, {seeds} seeds."
    ));
    who_computes(report, &results[of("v6.5")]);
    let base = results[0].speed();
    let rows = KERNELS.iter().zip(&results).map(|((kernel, published), of_kernel)| {
        vec![
            (*kernel).to_string(),
            published.map_or("-".to_string(), number),
            published.map_or("-".to_string(), |speed| number(speed / 78.0)),
            number(of_kernel.speed()),
            number(of_kernel.speed() / base.max(1e-9)),
            of_kernel.longest_ms().map_or("-".to_string(), number),
            of_kernel.sum(|watch| watch.long).to_string(),
            of_kernel.sum(|watch| watch.late).to_string(),
            of_kernel.wakeups_a_late_one().map_or("-".to_string(), number),
            of_kernel.sum(|watch| watch.far_placements).to_string(),
        ]
    });
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
    report.table(&header, rows.collect());
    let bars = KERNELS.iter().zip(&results).map(|((kernel, published), of_kernel)| {
        Bar::new(*kernel, published.map(|speed| speed / 78.0), Some(of_kernel.speed() / base.max(1e-9)))
    });
    report.picture("throughput, of v6.5", false, bars.collect());
    report.text("\"far deadlines\": placements of a group's entity with a deadline more than 20 ms of virtual time ahead.");
    report.text(recovery(&results));
    claims_of_report(report, &results);
    claims_of_waits(report, &results);
    let Some(()) = other_assumptions(bench, report, milliseconds)? else { return Ok(None) };
    tell(bench, report, results, milliseconds)
}

/// The workload beside the report's table of the good kernel.
fn who_computes(report: &mut Report, good: &OfKernel) {
    let of_guests = |computed: &dyn Fn(Kind) -> Computed| {
        number(computed(Kind::Vhost).ms / computed(Kind::GuestCpu).ms.max(1e-9))
    };
    let here = |kind| good.computed(kind);
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
        "How long guests and vhost threads compute the report does not say. How long a kworker works, and how long copying \
         and reading a chunk take, are fits to its table of the good kernel (above; the table itself is below) and to its 78 \
         Gb/s; the others are assumed. How long guests and vhost threads run at a stretch is not met; and the table's vhost \
         threads are busy for half of the time at most (its waits lie 7 s apart), the model's for three quarters.",
    );
}

/// What is known of the recovery from one kernel to the next.
fn recovery(results: &[OfKernel]) -> String {
    let a_late_one = |kernel: &str| results[of(kernel)].wakeups_a_late_one().map_or("-".to_string(), number);
    let fresh = results[of(V6_7_RC1)].fresh_percent().map_or("-".to_string(), |share| number(share) + " %");
    format!(
        "86bfbb7ce4f6 still picks as CFS did: a woken task preempts only if it is wakeup_gran() of virtual time behind, which \
         nobody is without the credit for sleep that went before it. Since 147f3efaa241 the sign of its lag decides. So a \
         kworker waits for half a tick at one of {} wakeups on the one and at one of {} on the other. v6.6 has waits of many \
         ticks besides (below). By v6.7-rc1 1528c661c24b (\"sched/fair: Ratelimit update to tg->load_avg\") lets a group's \
         shares follow its load no more than once a millisecond, and it is one of {} wakeups instead of {} without. Of what is \
         left {fresh} begin at the first or second wakeup after one without lag: a vhost thread comes to a CPU whose kworker \
         was alone when it went to sleep, and one round of work makes its lag negative.",
        a_late_one("86bfbb7ce4f6"),
        a_late_one("147f3efaa241"),
        a_late_one(V6_7_RC1),
        a_late_one(V6_7_RC1_WITHOUT),
    )
}

/// How the ratio hangs on what is assumed.
fn other_assumptions(
    bench: &Bench<'_>,
    report: &mut Report,
    milliseconds: u64,
) -> Result<Option<()>, LabError> {
    const COMPARED: [&str; 3] = ["v6.5", "86bfbb7ce4f6", V6_7_RC1];
    let seeds = bench.choose(3, 1);
    let plans = ASSUMED.iter().flat_map(|(window, copy, receive)| {
        let options = format!("--window {window} --copy-us {copy} --receive-us {receive}");
        COMPARED.into_iter().flat_map(move |kernel| {
            let options = options.clone();
            (1..=seeds).map(move |seed| plan(kernel, &options, milliseconds / 2, seed))
        })
    });
    let Some(runs) =
        bench.each(&plans.collect::<Vec<_>>(), |plan| fairlab_lab::run(&bench.spec(plan)?, bench.stop))?
    else {
        return Ok(None);
    };
    let speeds = runs.chunks(seeds as usize).map(|runs| mean(&runs.iter().map(speed).collect::<Vec<_>>()));
    let speeds = speeds.collect::<Vec<_>>();
    report.keep(runs);
    report.text(format!(
        "The same with other assumptions, {seeds} runs of {} ms each; published: 0.37 and 0.53. Where guests limit the \
         good kernel, v6.7-rc1 is the faster one of the two; where vhost threads do (last line), it is the slower one.",
        milliseconds / 2
    ));
    let rows = ASSUMED.iter().zip(speeds.chunks(COMPARED.len())).map(|((window, copy, receive), speeds)| {
        let ratio = |index: usize| number(speeds[index] / speeds[0].max(1e-9));
        let assumed = [window, copy, receive].map(u32::to_string);
        assumed.into_iter().chain([number(speeds[0]), ratio(1), ratio(2)]).collect()
    });
    let header = [
        "chunks under way",
        "us to copy one",
        "us to read one",
        "v6.5 Gb/s",
        "86bfbb7ce4f6 of v6.5",
        "v6.7-rc1 of v6.5",
    ];
    report.table(&header, rows.collect());
    Ok(Some(()))
}

fn of(kernel: &str) -> usize {
    KERNELS.iter().position(|(name, _)| *name == kernel).unwrap_or(0)
}

fn claims_of_report(report: &mut Report, results: &[OfKernel]) {
    let between = |kernel: &str, base: &str| {
        let base = results[of(base)].speed();
        (base > 0.0).then(|| results[of(kernel)].speed() / base)
    };
    let ratio = |kernel: &str| between(kernel, "v6.5");
    report.claim(
        "throughput falls by half or more with 86bfbb7ce4f6",
        Published::Figure(29.0 / 78.0),
        ratio("86bfbb7ce4f6"),
        "of v6.5",
        |ratio| ratio <= 0.5,
    );
    report.claim(
        "it is still low on v6.7-rc1",
        Published::Figure(41.0 / 78.0),
        ratio(V6_7_RC1),
        "of v6.5",
        |ratio| ratio <= 0.7,
    );
    report.claim(
        "it recovers partly from 86bfbb7ce4f6 to v6.7-rc1",
        Published::Figure(41.0 / 29.0),
        between(V6_7_RC1, "86bfbb7ce4f6"),
        "times",
        |ratio| ratio >= 1.1,
    );
    report.claim(
        "it recovers partly from v6.6 to v6.7-rc1",
        Published::Nothing,
        between(V6_7_RC1, "v6.6"),
        "times",
        |ratio| ratio > 1.0,
    );
    report.claim(
        "ablation: without 1528c661c24b v6.7-rc1 is as slow as v6.6, within 2 %",
        Published::Nothing,
        between(V6_7_RC1_WITHOUT, "v6.6"),
        "times",
        |ratio| (ratio - 1.0).abs() <= 0.02,
    );
    report.claim(
        "ablation: the commit before 86bfbb7ce4f6 is as fast as v6.5",
        Published::Said("78 Gb/s before it"),
        ratio("e0c2ff903c32"),
        "of v6.5",
        |ratio| ratio >= 0.8,
    );
    let back = ratio("v6.12").zip(ratio("86bfbb7ce4f6")).map(|(now, low)| (now - low) * 100.0 / (1.0 - low));
    report.claim(
        "v6.12 brings more than half of what was lost back",
        Published::Nothing,
        back,
        "%",
        |share| share > 50.0,
    );
    let all = ratio("v6.12").zip(ratio("v6.12+NO_DELAY_DEQUEUE")).zip(ratio("86bfbb7ce4f6"));
    report.claim(
        "ablation: without delayed dequeue more than half of that is lost again",
        Published::Nothing,
        all.map(|((with, without), low)| (with - without) * 100.0 / (with - low)),
        "%",
        |share| share > 50.0,
    );
}

fn claims_of_waits(report: &mut Report, results: &[OfKernel]) {
    let longest = |kernel: &str| results[of(kernel)].longest_ms();
    report.claim(
        "on the good kernel no kworker waits longer than a tick",
        Published::Figure(1.88),
        longest("v6.5"),
        "ms",
        |ms| ms <= ONE_TICK,
    );
    report.claim(
        "on v6.6 kworkers wait for tens to hundreds of ms",
        Published::Figure(366.314),
        longest("v6.6"),
        "ms",
        |ms| (30.0..2000.0).contains(&ms),
    );
    let bad = &results[of("v6.6")];
    let (long, with_lag) = (bad.sum(|watch| watch.long), bad.sum(|watch| watch.long_with_lag));
    report.claim(
        "the waiter had no positive lag when it was placed, in all waits of two ticks and more",
        Published::Said("the problem occurs only if lag <= 0"),
        (long > 0).then(|| (long - with_lag) as f64 * 100.0 / long as f64),
        "%",
        |share| share >= 100.0,
    );
    report.claim(
        "groups' entities are placed with a deadline far ahead, at a tiny weight",
        Published::Said("+614.4 ms at the root"),
        Some(bad.sum(|watch| watch.far_placements) as f64),
        "times",
        |times| times > 0.0,
    );
    report.claim(
        "ablation: with the deadline scaled off the queue, too, no kworker waits for two ticks",
        Published::Nothing,
        longest("v6.6+scale-deadline-off-rq"),
        "ms",
        |ms| ms < 2.0 * TICK.as_ms_f64(),
    );
}

/// The table of the good and the bad kernel beside the report's, the worst wait as lines of the trace, and its story.
fn tell(
    bench: &Bench<'_>,
    report: &mut Report,
    results: [OfKernel; KERNELS.len()],
    milliseconds: u64,
) -> Result<Option<()>, LabError> {
    let mut stories = Vec::new();
    let (mut longest, mut seed) = (None, 1);
    for ((kernel, _), of_kernel) in KERNELS.iter().zip(results) {
        report.keep(of_kernel.runs.iter().map(|(run, _)| run.clone()));
        let Some((run, watch)) = of_kernel.worst() else { continue };
        let wait = watch.longest;
        let printed = match *kernel {
            "v6.5" => Some(("last good commit", published::GOOD)),
            "v6.6" => Some(("6.6 rc7", published::BAD)),
            _ => None,
        };
        let (table, told) = watch.tell(printed.map_or(0, |(_, rows)| rows.len()));
        if let Some((name, rows)) = printed {
            report.heading(format!("{name} --> perf sched latency -s max, and {kernel} here"));
            report.verbatim(published::table(rows));
            report.verbatim(table);
        }
        if *kernel == "v6.6" {
            (stories, longest, seed) = (told, wait, run.seed);
        }
    }
    let by_migration = stories.iter().filter(|story| ended_by_migration(story)).count();
    report.claim(
        "the long waits of kworkers on v6.6 end by migration of what polls: most of them",
        Published::Said("has to wait for the migration"),
        (!stories.is_empty()).then(|| by_migration as f64 * 100.0 / stories.len() as f64),
        "%",
        |share| share > 50.0,
    );
    report.heading("How it comes about");
    report.text(
        "A CPU of a guest goes to sleep, and its host CPU, about to idle, pulls a vhost thread of the same guest. The groups \
         above both are still the running entities there, and their share on this CPU has just collapsed: they are placed at \
         that tiny weight, with a deadline far ahead. Then they are given their new weight; off their queue only the lag is \
         scaled, the deadline stays. The vhost thread queues work for the kworker in the root group. Where that one's lag is \
         not positive it does not preempt. The vhost thread polls; ticks find the deadlines below alone on their queues, and \
         the one at the root far ahead. It ends when balancing takes the vhost thread away, or at that deadline.",
    );
    if let Some(wait) = longest {
        excerpt::table(report, &wait, stories.first());
        let plans = [plan("v6.6", "", milliseconds, seed)];
        let Some(excerpts) = bench.watch(&plans, |_| Excerpt::new(wait))? else { return Ok(None) };
        report.text(
            "The longest wait of a kworker on v6.6, on its CPU, from the placement with the far deadline on:",
        );
        for (_, excerpt) in excerpts {
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
    let plan = |real: &Real, job: &str, seed: u64| Plan {
        kernel: real.kernel,
        machine: "qemu4",
        workload: job.to_string(),
        duration: Ns::from_secs(6),
        seed,
        measured: Measured::FromStart,
    };
    let each = |real: &'static Real| {
        JOBS.iter().flat_map(move |job| (1..=seeds).map(move |seed| plan(real, job, seed)))
    };
    let plans = REAL.iter().flat_map(each).collect::<Vec<_>>();
    let Some(runs) = bench.each(&plans, |plan| fairlab_lab::run(&bench.spec(plan)?, bench.stop))? else {
        return Ok(None);
    };
    let longest = runs.iter().map(|run| run.metric("kworker_wait_ns_max").unwrap_or(0.0) / 1e6);
    let longest = longest.collect::<Vec<_>>();
    report.keep(runs);
    report.heading("Beside real kernels");
    report.text(format!(
        "Two guests with a vhost thread and three CPUs each on 4 CPUs, HZ 100, without high-resolution timers; two sets of \
         burst lengths, {seeds} seeds each, 4 s. Real: the longest wait of a kworker in any recorded run of that kernel."
    ));
    let a_kernel = JOBS.len() * seeds as usize;
    let mut rows = Vec::new();
    for (real, waits) in REAL.iter().zip(longest.chunks(a_kernel)) {
        let worst = waits.iter().fold(0.0_f64, |worst, &wait| worst.max(wait));
        let many = waits.iter().filter(|&&wait| wait > 2.0 * TICK.as_ms_f64()).count();
        rows.push(vec![
            format!("{} ({})", real.release, real.kernel),
            number(real.longest_ms),
            number(worst),
            format!("{many} of {a_kernel}"),
        ]);
        let claim = match real.many_ticks {
            true => format!("{}: waits of many ticks", real.release),
            false => format!("{}: no wait of two ticks", real.release),
        };
        report.claim(claim, Published::Figure(real.longest_ms), Some(worst), "ms", |ms| {
            (ms > 2.0 * TICK.as_ms_f64()) == real.many_ticks
        });
    }
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
        let bench =
            Bench { quick: true, exact: false, warmup: None, jobs: 2, on_progress: &|_| {}, stop: &stop };
        let plans = ["v6.5", "v6.6", "v6.6+scale-deadline-off-rq"].map(|kernel| plan(kernel, "", 500, 1));
        let results = bench.watch(&plans, |_| KworkerWatch::new(TICK)).expect("runs").expect("not stopped");
        let waits = results.iter().map(|(_, watch)| watch.longest_ms().expect("waits")).collect::<Vec<_>>();
        assert!(waits[0] <= ONE_TICK && waits[2] <= ONE_TICK && waits[1] > 20.0, "{waits:?}");
        assert!(results[1].1.far_placements > 0 && results[1].1.long_with_lag == 0);
    }
}
