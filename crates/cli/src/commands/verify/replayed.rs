//! The part "Replayed" of `fairlab verify`: a recording beside replays of it, on its model and on another kernel.

use std::fmt::Write;
use std::path::Path;

use fairlab_analysis::histogram::Histogram;
use fairlab_change::replayed::{
    Measure, RATES, REPLAYS, RecordedCourse, ReplayDistance, Replayed, ReplayedSide, TIMES, measures,
};
use fairlab_lab::kernel::KernelNeed;
use fairlab_lab::{Kernel, Progress, machines};
use fairlab_verify::Agreement;
use serde_json::{Value, json};

use crate::args::VerifyArgs;
use crate::commands::experiment;
use crate::error::CliError;
use crate::numbers::{duration, metric, significant};
use crate::output;
use crate::progress::{ProgressLine, stop_on_interrupt};

/// Quantiles that are shown, in thousandths; the greatest value stands behind them.
const QUANTILES: [(&str, u64); 4] = [("p50", 500), ("p95", 950), ("p99", 990), ("p99.9", 999)];

/// What an option asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayWish {
    /// Nothing is said: recordings without probes are replayed, if they can be.
    WhereUseful,
    /// It is replayed.
    Always,
    /// It is not.
    Never,
}

impl ReplayWish {
    pub fn of(args: &VerifyArgs) -> ReplayWish {
        match (args.replay || args.against.is_some(), args.no_replay) {
            (true, _) => ReplayWish::Always,
            (false, true) => ReplayWish::Never,
            (false, false) => ReplayWish::WhereUseful,
        }
    }
}

/// The kernel of `--against`, which replays the recording besides.
pub fn other_kernel(args: &VerifyArgs) -> Result<Option<Kernel>, CliError> {
    let parse = |name: &String| Kernel::parse_for(name, KernelNeed::Seeds, "verify --against");
    Ok(args.against.as_ref().map(parse).transpose()?)
}

/// Replays the recording on the rules that were followed, and on another kernel.
pub fn replay(
    args: &VerifyArgs,
    recording: &Path,
    agreement: &Agreement,
    other: Option<Kernel>,
) -> Result<Replayed, CliError> {
    let machine = args.machine.as_deref().map(machines::find).transpose()?;
    let course = RecordedCourse::read(recording, machine)?;
    let kernels = std::iter::once(Kernel::from(agreement.followed.clone())).chain(other).collect::<Vec<_>>();
    experiment::prepare(kernels.iter().map(|kernel| (kernel, &course.machine)))?;
    let seeds =
        (0..args.seeds.unwrap_or(REPLAYS)).map(|more| args.seed.wrapping_add(more)).collect::<Vec<_>>();
    let stop = stop_on_interrupt()?;
    let line = ProgressLine::of("verify", "replays");
    line.show(Progress { done: 0, total: kernels.len() * seeds.len() });
    let made = course.replayed(&kernels, &seeds, experiment::jobs(None), &|done| line.show(done), &stop)?;
    made.ok_or(CliError::Interrupted)
}

/// The part, for people.
pub fn text(replayed: &Replayed) -> String {
    let Replayed { recording, seeds, sides } = replayed;
    let names = sides.iter().map(|side| side.kernel.as_str()).collect::<Vec<_>>().join(" and on ");
    let replays = if seeds.len() == 1 { "1 replay".to_string() } else { format!("{} replays", seeds.len()) };
    let mut text = format!(
        "Replayed: {} s of the recording's tasks on {names}; {replays} a kernel\nmachine: {}\n\n",
        recording.length.as_secs_f64(),
        recording.machine.description
    );
    text += &times_table(replayed);
    text += "\n";
    text += &rates_table(replayed);
    text += "\napart: the greatest difference between the shares of times up to any length (Kolmogorov-Smirnov), 0 to 1;\n  \
             of numbers, by which part of the greater one they differ\n\
             replays: how far the replay that is farthest from the others lies from these\n";
    for side in sides {
        let _ = write!(text, "\n{}", verdict(recording, side));
    }
    if let [model, other] = sides.as_slice() {
        let _ = write!(text, "\n{}", between(model, other));
    }
    text
}

/// A row of times: what it is of, quantiles as `show` has them, the greatest value.
fn quantiles(name: &str, of: impl Fn(&dyn Fn(&Histogram) -> Option<u64>) -> Option<String>) -> Vec<String> {
    let each = QUANTILES.map(|(_, per_mille)| of(&|times: &Histogram| times.percentile(per_mille)));
    let greatest = of(&|times: &Histogram| times.max());
    let cells = each.into_iter().chain([greatest]).map(|cell| cell.unwrap_or_else(|| "-".to_string()));
    std::iter::once(name.to_string()).chain(cells).collect()
}

fn times_table(replayed: &Replayed) -> String {
    let Replayed { recording, sides, .. } = replayed;
    let header =
        [""].into_iter().chain(QUANTILES.map(|(name, _)| name)).chain(["max", "times", "apart", "replays"]);
    let mut rows = Vec::new();
    for (which, name) in TIMES.iter().enumerate() {
        let recorded = &recording.measured.times[which];
        rows.push(vec![(*name).to_string()]);
        let told = |times: &Histogram, name: &str| {
            let mut row = quantiles(name, |of| of(times).map(|value| duration(value as f64)));
            row.push(times.total().to_string());
            row
        };
        rows.push(told(recorded, "  recording"));
        for side in sides {
            let times = side.times(which);
            let mut row = told(&times, &format!("  {}", side.kernel));
            row.extend(distance_cells(to_recording(side, recording, Measure::Times(which))));
            rows.push(row);
            rows.push(quantiles("    / recording", |of| ratio(of(&times)?, of(recorded)?).map(significant)));
        }
    }
    output::table(&header.collect::<Vec<_>>(), &rows)
}

fn to_recording(side: &ReplayedSide, recording: &RecordedCourse, measure: Measure) -> Option<ReplayDistance> {
    side.distance(std::slice::from_ref(&recording.measured), measure)
}

fn distance_cells(distance: Option<ReplayDistance>) -> [String; 2] {
    let shown = |value: Option<f64>| value.map_or_else(|| "-".to_string(), significant);
    [shown(distance.map(|distance| distance.apart)), shown(distance.and_then(|distance| distance.replays))]
}

fn ratio(one: u64, other: u64) -> Option<f64> {
    (other > 0).then(|| one as f64 / other as f64)
}

fn rates_table(replayed: &Replayed) -> String {
    let Replayed { recording, sides, .. } = replayed;
    let of_sides = sides.iter().flat_map(|side| [side.kernel.as_str(), "apart", "replays"]);
    let header = ["", "recording"].into_iter().chain(of_sides).collect::<Vec<_>>();
    let rows = RATES.iter().enumerate().map(|(which, name)| {
        let shown = |value: Option<f64>| value.map_or_else(|| "-".to_string(), |value| metric(name, value));
        let cells = sides.iter().flat_map(|side| {
            let [apart, replays] = distance_cells(to_recording(side, recording, Measure::Rate(which)));
            [shown(side.rate(which)), apart, replays]
        });
        [(*name).to_string(), shown(recording.measured.rates[which])].into_iter().chain(cells).collect()
    });
    output::table(&header, &rows.collect::<Vec<_>>())
}

/// Names, by whether they are reproduced; those that are not with how far off they are, the nearest first.
#[derive(Default)]
struct Sorted {
    alike: Vec<&'static str>,
    unlike: Vec<String>,
    unknown: Vec<&'static str>,
}

impl Sorted {
    fn of(distance: impl Fn(Measure) -> Option<ReplayDistance>) -> Sorted {
        let (mut sorted, mut unlike) = (Sorted::default(), Vec::new());
        for (measure, name) in measures() {
            match distance(measure).and_then(|distance| Some((distance, distance.is_reproduced()?))) {
                None => sorted.unknown.push(name),
                Some((_, true)) => sorted.alike.push(name),
                Some((distance, false)) => unlike.push((distance, name)),
            }
        }
        unlike.sort_by(|(one, _), (other, _)| one.apart.total_cmp(&other.apart));
        let how_far = |(distance, name): (ReplayDistance, &str)| {
            let [apart, replays] = distance_cells(Some(distance));
            format!("{name} ({apart} apart, replays {replays})")
        };
        sorted.unlike = unlike.into_iter().map(how_far).collect();
        sorted
    }
}

/// What a replay on a kernel reproduces, and what it does not: sentences.
fn verdict(recording: &RecordedCourse, side: &ReplayedSide) -> String {
    let Sorted { alike, unlike, unknown } = Sorted::of(|measure| to_recording(side, recording, measure));
    let (kernel, mut text) = (&side.kernel, String::new());
    if !alike.is_empty() {
        let _ = writeln!(
            text,
            "{kernel} reproduces {}: the recording is no farther from the replays than one of them is from the others.",
            alike.join(", ")
        );
    }
    if !unlike.is_empty() {
        let _ = writeln!(text, "{kernel} does not reproduce, the nearest first, {}.", unlike.join(", "));
    }
    if !unknown.is_empty() {
        let _ = writeln!(text, "Nothing tells whether {kernel} reproduces {}.", unknown.join(", "));
    }
    text
}

/// How near the model comes to another kernel: what both miss alike is no fault of the model's.
fn between(model: &ReplayedSide, other: &ReplayedSide) -> String {
    let Sorted { alike, unlike, .. } = Sorted::of(|measure| other.distance(&model.replays, measure));
    let (model, other, mut text) = (&model.kernel, &other.kernel, String::new());
    if !alike.is_empty() {
        let _ = writeln!(
            text,
            "{model} is as {other} in {}: it is no farther from the replays on {other} than one of them is from the others.",
            alike.join(", ")
        );
    }
    if !unlike.is_empty() {
        let _ = writeln!(text, "{model} is not as {other}, the nearest first, in {}.", unlike.join(", "));
    }
    text
}

/// The part, for programs.
pub fn to_json(replayed: &Replayed) -> Value {
    let Replayed { recording, seeds, sides } = replayed;
    let times = TIMES.iter().enumerate().map(|(which, name)| {
        let recorded = &recording.measured.times[which];
        let of_kernels = sides.iter().map(|side| {
            let times = side.times(which);
            let mut value = times_json(&times);
            value["kernel"] = json!(side.kernel);
            value["ratios"] = QUANTILES
                .iter()
                .map(|(name, per_mille)| {
                    let both = times.percentile(*per_mille).zip(recorded.percentile(*per_mille));
                    ((*name).to_string(), json!(both.and_then(|(one, other)| ratio(one, other))))
                })
                .collect();
            with_distance(value, to_recording(side, recording, Measure::Times(which)))
        });
        json!({ "metric": name, "recording": times_json(recorded), "kernels": of_kernels.collect::<Vec<_>>() })
    });
    let rates = RATES.iter().enumerate().map(|(which, name)| {
        let of_kernels = sides.iter().map(|side| {
            let values = side.replays.iter().map(|replay| replay.rates[which]).collect::<Vec<_>>();
            let value = json!({ "kernel": side.kernel, "mean": side.rate(which), "replays": values });
            with_distance(value, to_recording(side, recording, Measure::Rate(which)))
        });
        let recorded = recording.measured.rates[which];
        json!({ "metric": name, "recording": recorded, "kernels": of_kernels.collect::<Vec<_>>() })
    });
    let between = match sides.as_slice() {
        [model, other] => {
            let row = |(measure, name)| {
                with_distance(json!({ "metric": name }), other.distance(&model.replays, measure))
            };
            measures().map(row).collect::<Vec<_>>()
        }
        _ => Vec::new(),
    };
    json!({
        "machine": recording.machine.description,
        "length_ns": recording.length.0,
        "seeds": seeds,
        "times": times.collect::<Vec<_>>(),
        "rates": rates.collect::<Vec<_>>(),
        "between_kernels": between,
    })
}

fn times_json(times: &Histogram) -> Value {
    let quantiles =
        QUANTILES.map(|(name, per_mille)| (format!("{name}_ns"), json!(times.percentile(per_mille))));
    let all = [("count".to_string(), json!(times.total())), ("max_ns".to_string(), json!(times.max()))];
    quantiles.into_iter().chain(all).collect()
}

fn with_distance(mut value: Value, distance: Option<ReplayDistance>) -> Value {
    value["distance"] = json!(distance.map(|distance| distance.apart));
    value["distance_of_replays"] = json!(distance.and_then(|distance| distance.replays));
    value["reproduced"] = json!(distance.and_then(|distance| distance.is_reproduced()));
    value
}
