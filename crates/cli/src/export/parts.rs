//! What a page has beside an answer: how times are distributed on each side, and which runs they come from.
//!
//! Must not know: how a page draws it.

use fairlab_analysis::counts::{NameCounts, RunCounts};
use fairlab_analysis::histogram::Histogram;
use fairlab_analysis::statistics::BetterDirection;
use fairlab_analysis::task_selector::TaskSelector;
use fairlab_lab::{RunRecord, RunSide};
use fairlab_page::packed::packed;
use serde_json::{Value, json};

/// One kind of times among what was counted.
type TimesOf<C> = fn(&C) -> Option<&Histogram>;

/// Times of the machine, each with its words.
const TIMES: [(&str, TimesOf<RunCounts>); 4] = [
    ("Wakeup latency", |counts| Some(&counts.wakeup_latency)),
    ("First waits of new tasks", |counts| Some(&counts.fork_wait)),
    ("Waits of throttled groups", |counts| Some(&counts.throttles.as_ref()?.throttled_wait)),
    ("Waits after preemption", |counts| Some(&counts.throttles.as_ref()?.preemption_wait)),
];

/// Times of tasks by name.
const TIMES_BY_NAME: [(&str, TimesOf<NameCounts>); 4] = [
    ("Wakeup latency", |counts| Some(&counts.wakeup_latency)),
    ("First waits of new tasks", |counts| Some(&counts.fork_wait)),
    ("Waits after preemption", |counts| Some(&counts.preemption_wait)),
    ("Waits for a quota", |counts| Some(&counts.throttled_wait)),
];

/// The parts of sides, the baseline's first; nothing where a side does not know its times. Times are of these tasks; without any, of
/// the machine. `workload`: of runs that were made for this answer.
pub fn of_sides(workload: Option<&str>, sides: &[RunSide], whose: &[TaskSelector]) -> Value {
    let counted = sides.iter().map(|side| Some((side.name.as_str(), side.counts.as_ref()?)));
    let Some(counted) = counted.collect::<Option<Vec<_>>>() else { return Value::Null };
    let distributions = distributions(&counted, whose);
    let Some(workload) = workload else { return json!({ "distributions": distributions }) };
    let row = |run: &RunRecord| json!({ "kernel": run.kernel, "machine": run.machine, "seed": run.seed, "digest": run.digest });
    let runs = sides.iter().flat_map(|side| &side.records).map(row).collect::<Vec<_>>();
    json!({ "workload": workload, "distributions": distributions, "runs": runs })
}

/// Each kind of times that some side has.
fn distributions(sides: &[(&str, &RunCounts)], whose: &[TaskSelector]) -> Vec<Value> {
    let drawn = |words: String, times: &dyn Fn(&RunCounts) -> Option<Histogram>| {
        let sides = sides.iter().filter_map(|(name, counts)| side(name, &times(counts)?)).collect::<Vec<_>>();
        (!sides.is_empty()).then(|| json!({ "words": words, "sides": sides }))
    };
    if whose.is_empty() {
        let of = |(words, times): &(&str, TimesOf<RunCounts>)| {
            drawn((*words).to_string(), &|counts| times(counts).cloned())
        };
        return TIMES.iter().filter_map(of).collect();
    }
    let named = |who: &TaskSelector, counts: &RunCounts| {
        let asked = who.to_string();
        counts.by_name.iter().find(|(name, _)| name.to_string() == asked).map(|(_, counts)| counts.clone())
    };
    let of = |who: &TaskSelector| {
        TIMES_BY_NAME.map(|(words, times)| {
            drawn(format!("{words} of {who}"), &|counts| times(&named(who, counts)?).cloned())
        })
    };
    whose.iter().flat_map(of).flatten().collect()
}

fn side(name: &str, times: &Histogram) -> Option<Value> {
    drawn_side(name, (times.total(), times.min()?, times.max()?), times.sizes())
}

/// Times of a side: how many, the least and the greatest, and counts by size.
pub(super) fn drawn_side(
    name: &str,
    (total, min, max): (u64, u64, u64),
    sizes: impl Iterator<Item = (u64, u64)>,
) -> Option<Value> {
    let (at, counts): (Vec<f64>, Vec<f64>) = sizes.map(|(size, count)| (size as f64, count as f64)).unzip();
    let side = json!({ "name": name, "total": total, "min": min, "max": max, "at": packed(&at), "counts": packed(&counts) });
    (total > 0).then_some(side)
}

/// Which way metrics are better, of those that have one.
pub fn directions<'n>(names: impl Iterator<Item = &'n str>) -> Value {
    let way = |name: &'n str| {
        let way = match BetterDirection::of_metric(name) {
            BetterDirection::Lower => "lower",
            BetterDirection::Higher => "higher",
            BetterDirection::Neither => return None,
        };
        Some((name.to_string(), json!(way)))
    };
    Value::Object(names.filter_map(way).collect())
}
