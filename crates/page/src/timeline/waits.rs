//! The worst waits, with their stories.
//!
//! Must not know: how stories come about.

use fairlab_analysis::explain::Explanation;
use fairlab_analysis::explain::story::{CpuMode, NamedPid, Story};
use fairlab_analysis::lanes::LanesReport;
use fairlab_event::{Ns, Pid};
use serde_json::{Value, json};

/// How many runs of others are marked in the picture.
const RUNS: usize = 200;

/// The number of the task that has this id at that time: an id may be several tasks', one after another.
fn number(report: &LanesReport, pid: Pid, time: Ns) -> Option<usize> {
    let lives = report.tasks.iter().enumerate().filter(|(_, task)| task.pid == pid);
    let begun = |(_, task): &(usize, &fairlab_analysis::lanes::LaneTask)| {
        task.course.entries.first().is_some_and(|entry| entry.from <= time)
    };
    lives.clone().rfind(begun).or_else(|| lives.clone().next()).map(|(number, _)| number)
}

fn who(report: &LanesReport, who: NamedPid, time: Ns) -> Value {
    json!({ "comm": who.comm.to_str(), "pid": who.pid.0, "task": number(report, who.pid, time) })
}

pub(super) fn stories(explanation: &Explanation, report: &LanesReport) -> Vec<Value> {
    explanation.stories.iter().map(|story| told(story, report)).collect()
}

fn told(story: &Story, report: &LanesReport) -> Value {
    let start = report.span.0;
    let at = |time: Ns| time.since(start).0;
    let waker = story.waker.as_ref().map(|waker| {
        let mode = match waker.mode {
            CpuMode::Task => "task",
            CpuMode::SoftInterrupt => "softirq",
            CpuMode::HardInterrupt => "hardirq",
        };
        json!({ "who": who(report, waker.who, story.start), "cpu": waker.cpu.0, "mode": mode })
    });
    let runs = story
        .runs
        .iter()
        .take(RUNS)
        .map(|run| json!([number(report, run.who.pid, run.from), run.cpu.0, at(run.from), at(run.to)]));
    let throttled = story.throttled.iter().map(|span| json!([span.cpu.0, at(span.from), at(span.to)]));
    json!({
        "who": who(report, story.task, story.start),
        "from": at(story.start),
        "to": at(story.end),
        "cpu": story.ran_on.0,
        "waker": waker,
        "runs": runs.collect::<Vec<_>>(),
        "throttled": throttled.collect::<Vec<_>>(),
        "stays": story.stays.iter().map(|stay| json!([stay.cpu.0, at(stay.from), at(stay.to)])).collect::<Vec<_>>(),
        "story": story.to_string(),
    })
}

/// Tasks that still wait when the trace ends.
pub(super) fn still(explanation: &Explanation, report: &LanesReport) -> Vec<Value> {
    let start = report.span.0;
    let told = |waiting: &fairlab_analysis::explain::StillWaiting| {
        json!({
            "who": who(report, waiting.task, waiting.since),
            "from": waiting.since.since(start).0,
            "so_far": waiting.so_far.0,
            "cpu": waiting.cpu.map(|cpu| cpu.0),
            "text": waiting.to_string(),
        })
    };
    explanation.still_waiting.iter().map(told).collect()
}
