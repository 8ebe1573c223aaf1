//! What a change of the kernel does, booted and modelled: lines, tables and JSON.

use fairlab_analysis::statistics::IntervalMethod;
use fairlab_report::booted_table::{
    BOOTS, ChangePrediction, Contrast, DifferenceMeasure, KernelChange, PredictionScore, SEEDS, predicted,
};
use serde_json::{Value, json};

use super::beside::percent;
use crate::numbers::significant;

pub fn header() -> [String; 6] {
    let [booted, modelled] = [("booted", BOOTS), ("modelled", SEEDS)]
        .map(|(kind, runs)| format!("{kind}: ratio, 95 % interval of {runs} against {runs}"));
    ["from, to", "workload", "metric", &booted, &modelled, "model"].map(str::to_string)
}

/// The cells of one contrast.
pub fn cells(contrast: &Contrast) -> [String; 6] {
    let number = |kernel: &'static str| kernel.trim_start_matches("debian-");
    [
        format!("{} → {}", number(contrast.from), number(contrast.to)),
        contrast.workload.to_string(),
        contrast.metric.clone(),
        change(&contrast.booted),
        change(&contrast.modelled),
        seen(contrast),
    ]
}

fn change(change: &KernelChange) -> String {
    let estimate = &change.estimate;
    let ends = estimate.low.zip(estimate.high);
    let interval = ends
        .map_or_else(String::new, |(low, high)| format!(" ({} to {})", significant(low), significant(high)));
    let ratio = estimate.ratio.map_or_else(|| "-".to_string(), significant);
    format!("{ratio}{interval} {}", change.direction.name())
}

fn seen(contrast: &Contrast) -> String {
    let Some(seen) = contrast.seen() else { return "-".to_string() };
    match contrast.error() {
        Some(error) => format!("{}, off {}", seen.name(), percent(error)),
        None => seen.name().to_string(),
    }
}

/// A sentence for all contrasts and one for each measure; none where no two kernels were run.
pub fn closing(contrasts: &[Contrast]) -> Vec<String> {
    predicted(contrasts).iter().map(sentence).collect()
}

fn sentence(sum: &PredictionScore) -> String {
    let PredictionScore { all, moves, same, opposite, stays, invented, .. } = *sum;
    let missed = moves - same - opposite;
    let errors = match moves {
        0 => String::new(),
        _ => format!(
            "; its median error is {}, that of a forecast of no change {}",
            percent(sum.error),
            percent(sum.size)
        ),
    };
    format!(
        "changes of {}: booted kernels show {moves} of {all} for sure; the model shows {same} of these in that direction, {opposite} in \
         the other, {missed} not{errors}; {stays} stay within 1 %, of which the model changes {invented}",
        noun(sum.measure)
    )
}

const fn noun(measure: Option<DifferenceMeasure>) -> &'static str {
    match measure {
        None => "all kinds",
        Some(DifferenceMeasure::LongWait) => "waits of a millisecond or more",
        Some(DifferenceMeasure::Wait) => "shorter waits",
        Some(measure) => measure.name(),
    }
}

pub fn markdown(contrasts: &[Contrast]) -> String {
    let line = |cells: [String; 6]| format!("| {} |\n", cells.join(" | "));
    let rows = contrasts.iter().map(|contrast| line(cells(contrast)));
    format!("{}|---|---|---|---|---|---|\n{}", line(header()), rows.collect::<String>())
}

pub fn to_json(contrasts: &[Contrast]) -> Value {
    let change = |change: &KernelChange| {
        let estimate = &change.estimate;
        json!({
            "ratio": estimate.ratio,
            "low": estimate.low,
            "high": estimate.high,
            "p": estimate.p,
            "method": estimate.method.map(IntervalMethod::name),
            "direction": change.direction.name(),
        })
    };
    let contrast = |contrast: &Contrast| {
        json!({
            "from": contrast.from,
            "to": contrast.to,
            "workload": contrast.workload,
            "metric": contrast.metric,
            "booted": change(&contrast.booted),
            "modelled": change(&contrast.modelled),
            "seen": contrast.seen().map(ChangePrediction::name),
            "error": contrast.error(),
        })
    };
    contrasts.iter().map(contrast).collect()
}

/// How well changes are predicted.
pub fn summary_json(contrasts: &[Contrast]) -> Value {
    let sum = |sum: PredictionScore| {
        json!({
            "measure": noun(sum.measure),
            "contrasts": sum.all,
            "moves": sum.moves,
            "same": sum.same,
            "opposite": sum.opposite,
            "stays": sum.stays,
            "invented": sum.invented,
            "median_error": sum.error,
            "median_error_of_no_change": sum.size,
        })
    };
    predicted(contrasts).into_iter().map(sum).collect()
}
