//! Fixed pieces of work, one a run, whose instructions `scripts/instructions` counts.
//!
//! `fairlab-speed WORK` does one of them in the repository's root; without a name it lists them. What it prints is a digest of the
//! outcome, so that nothing of the work can be left out.
//!
//! Must not know: clocks. How long a piece takes is not asked.

#[path = "../../sim/benches/load/mix.rs"]
mod load;

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use fairlab_analysis::explain::{Explain, ExplainOptions};
use fairlab_analysis::latency::{Latency, LatencyOptions};
use fairlab_analysis::metrics::Metrics;
use fairlab_analysis::summary::text::SummaryText;
use fairlab_analysis::summary::{SummaryOptions, TraceSummary};
use fairlab_analysis::timehist::text::{TimehistColumns, TimehistLayout};
use fairlab_analysis::timehist::{Timehist, TimehistOptions, TimehistRow};
use fairlab_event::{DigestSink, Ns, Sink};
use fairlab_native::build::{BuildOptions, Source, build};
use fairlab_native::worker::{Outbox, in_worker};
use fairlab_native::{ImageFile, LoadedImage, NativeScheduler};
use fairlab_page::timeline::{TimelineRecorder, TraceDescription};
use fairlab_page::{PageKind, html};
use fairlab_sim::machine::Chance;
use fairlab_sim::{Engine, Machine, SchedulerCore};
use fairlab_trace::{OutputFormat, ReadOptions, TraceWriter, read_path};
use load::{Mix, machine};
use serde_json::json;

const PERFDATA: &str = "testdata/perf-hackbench.data";
const TRACEDAT: &str = "testdata/trace-cmd-3.1-hackbench.dat";
const PERF_SCRIPT: &str = "testdata/perf-6.1-hackbench.txt.zst";
const FTRACE: &str = "testdata/ftrace-6.18-hackbench.txt.zst";

/// Context switches, about, that a piece of work of the engine makes.
const SWITCHES: u64 = 16_000;

/// A name, and the work that it stands for; the work gives a text that depends on all of it.
type Work = (&'static str, fn() -> String);

const WORKS: [Work; 20] = [
    ("latency-perfdata", || latency(PERFDATA)),
    ("latency-tracedat", || latency(TRACEDAT)),
    ("latency-perf-script", || latency(PERF_SCRIPT)),
    ("latency-ftrace", || latency(FTRACE)),
    ("timehist-perfdata", || timehist(PERFDATA)),
    ("summary-perfdata", || summary(PERFDATA)),
    ("explain-perfdata", || explain(PERFDATA)),
    ("page-perfdata", || page(PERFDATA)),
    ("parquet-written", || convert(PERFDATA, OutputFormat::Parquet)),
    ("perfetto-written", || convert(PERFDATA, OutputFormat::Perfetto)),
    ("engine-4", || model(4, None)),
    ("engine-40", || model(40, None)),
    ("engine-192", || model(192, None)),
    ("digest-40", || digest(40)),
    ("run-4", || run(4)),
    ("run-40", || run(40)),
    ("run-192", || run(192)),
    ("usual-40", || usual(40)),
    ("usual-192", || usual(192)),
    ("native-40", || native(40)),
];

fn read(path: &str, sink: &mut dyn Sink) {
    read_path(Path::new(path), &ReadOptions::default(), sink).expect("a trace");
}

fn latency(path: &str) -> String {
    let mut latency = Latency::new(LatencyOptions::default());
    read(path, &mut latency);
    latency.finish().expect("scheduler events").to_string()
}

fn summary(path: &str) -> String {
    let mut summary = TraceSummary::new(SummaryOptions::default());
    read(path, &mut summary);
    SummaryText { report: &summary.finish().expect("scheduler events"), rows: usize::MAX }.to_string()
}

fn explain(path: &str) -> String {
    let mut explain = Explain::new(ExplainOptions::default());
    read(path, &mut explain);
    explain.finish().expect("scheduler events").to_string()
}

fn timehist(path: &str) -> String {
    let mut layout = TimehistLayout::new(TimehistColumns::default());
    let mut text = String::new();
    let mut timehist =
        Timehist::new(TimehistOptions::default(), |row: &TimehistRow| layout.row(row, &mut text));
    read(path, &mut timehist);
    drop(timehist);
    text
}

fn page(path: &str) -> String {
    let mut recorder = TimelineRecorder::default();
    read(path, &mut recorder);
    let (trace, _) =
        recorder.finish().expect("scheduler events").data(&TraceDescription::default(), 17 << 20);
    html(PageKind::Timeline, "A trace", &json!({ "traces": [trace], "align": [0], "aligned": null }))
}

fn convert(path: &str, format: OutputFormat) -> String {
    let mut writer = TraceWriter::new(format, Vec::new());
    read(path, &mut writer);
    writer.finish().expect("a buffer").len().to_string()
}

/// Creates the threads, and then goes on for some [`SWITCHES`]; with a sink all of it is traced.
fn simulate<C: SchedulerCore>(mut engine: Engine<C>, cpus: u32, sink: Option<&mut dyn Sink>) -> u64 {
    engine.set_tracing(sink.is_some());
    let mut nowhere = ();
    let sink = sink.unwrap_or(&mut nowhere);
    let workload = engine.start(Mix::new(2 * cpus, cpus / 2, Ns(4_000_000)));
    while engine.workload(workload).progress().is_some() {
        engine.run_until(engine.now() + Ns(20_000_000), sink);
    }
    // A CPU switches about 950 times a second.
    let end = engine.now() + Ns(SWITCHES * 1_000_000_000 / (950 * u64::from(cpus)));
    engine.run_until(end, sink);
    engine.counters().switches
}

fn model(cpus: u32, sink: Option<&mut dyn Sink>) -> String {
    let engine = Engine::new("v6.6".parse().expect("a kernel"), machine(cpus, 1000), 1);
    format!("{} switches", simulate(engine, cpus, sink))
}

fn digest(cpus: u32) -> String {
    let mut digest = DigestSink::default();
    format!("{}, digest {}", model(cpus, Some(&mut digest)), digest.digest())
}

/// What `fairlab run` has of each run: the digest, and the metrics.
fn run(cpus: u32) -> String {
    digest_and_metrics(cpus, |sinks| model(cpus, Some(sinks)))
}

/// The same with the chance that machines have where nothing else is said, and their tick.
fn usual(cpus: u32) -> String {
    let machine = Machine { chance: Chance::USUAL, ..machine(cpus, 250) };
    let engine = Engine::new("v6.6".parse().expect("a kernel"), machine, 1);
    digest_and_metrics(cpus, |sinks| format!("{} switches", simulate(engine, cpus, Some(sinks))))
}

fn digest_and_metrics(cpus: u32, run: impl FnOnce(&mut dyn Sink) -> String) -> String {
    let mut sinks = (DigestSink::default(), Metrics::new(cpus as usize, Ns::ZERO));
    let switches = run(&mut sinks);
    let metrics = sinks.1.finish(Ns::from_secs(1));
    format!("{switches}, digest {}, {} metrics", sinks.0.digest(), metrics.len())
}

/// The code of Debian's 6.1.
fn native(cpus: u32) -> String {
    let stop = AtomicBool::new(false);
    let options = BuildOptions::default();
    let machine = machine(cpus, options.hz.into());
    let source = Source::parse("debian:6.1").expect("a source");
    let built = build(&source, &options, &|_, _| (), &stop).expect("a kernel");
    let image = ImageFile::open(&built.image()).expect("an image");
    let work = |image: LoadedImage, _: &mut Outbox| {
        let engine = Engine::with_core(NativeScheduler::boot(image, &machine)?, machine.clone(), 1);
        Ok(format!("{} switches", simulate(engine, cpus, None)).into_bytes())
    };
    let outcome = in_worker(&image, &stop, work, &mut |_| ()).expect("a run").expect("nothing stops it");
    String::from_utf8_lossy(&outcome).into_owned()
}

fn main() -> ExitCode {
    let Some(name) = std::env::args().nth(1) else {
        WORKS.iter().for_each(|(name, _)| println!("{name}"));
        return ExitCode::SUCCESS;
    };
    let Some((_, work)) = WORKS.iter().find(|(known, _)| *known == name) else {
        eprintln!("fairlab-speed: no work is called '{name}'; without a name it lists all");
        return ExitCode::from(2);
    };
    let outcome = work();
    println!("{name}: {} bytes", outcome.len());
    ExitCode::SUCCESS
}
