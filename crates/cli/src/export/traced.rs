//! What a page about a trace has beside its answer: how waits are distributed, and who ran instead. Gathered as the trace is read.
//!
//! Must not know: how a page draws it, which answer it is.

use fairlab_analysis::blame::answer::BlameSide;
use fairlab_analysis::blame::report::BlameReport;
use fairlab_analysis::blame::text::{headline, quota_words, who};
use fairlab_analysis::blame::{Blame, BlameOptions};
use fairlab_analysis::selector::TraceSelector;
use fairlab_analysis::summary::{
    SummaryOptions, SummaryReport, TaskWaitSummary, TraceSummary, ValueSpread, WaitSpreads,
};
use fairlab_change::causes::rule;
use fairlab_event::{Cpu, Event, Pid, Sink, System};
use serde_json::{Value, json};

use super::parts::drawn_side;

/// So many names have lines of their own.
const NAMES: usize = 5;

/// Takes a trace's events for the page about it.
pub struct TraceParts {
    summary: TraceSummary,
    blame: Blame,
}

impl TraceParts {
    /// Of the waits that are chosen.
    pub fn new(chosen: TraceSelector) -> TraceParts {
        let options = BlameOptions { chosen: chosen.clone(), by_thread: false, rule_words: rule };
        TraceParts {
            summary: TraceSummary::new(SummaryOptions::default()).of(chosen),
            blame: Blame::new(options),
        }
    }

    /// The page's parts; what the trace does not tell is left out.
    pub fn data(self, trace: &str) -> Value {
        let summary = self.summary.finish().ok();
        let blame = self.blame.finish().ok();
        json!({
            "distributions": summary.map_or_else(Vec::new, |summary| distributions(&summary)),
            "blame": blame.map_or_else(Vec::new, |waiting| vec![of_waiting(trace, &waiting)]),
        })
    }
}

impl Sink for TraceParts {
    fn event(&mut self, event: &Event<'_>) {
        self.summary.event(event);
        self.blame.event(event);
    }

    fn system(&mut self, system: &System) {
        self.summary.system(system);
        self.blame.system(system);
    }

    fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) {
        self.summary.allowed(pid, cpus);
        self.blame.allowed(pid, cpus);
    }
}

/// Parts of a page, with the answer's text beside them.
pub fn with_text(parts: &Value, text: &str) -> Value {
    let mut parts = parts.clone();
    parts["text"] = json!(text);
    parts
}

/// Sums of who makes tasks wait, with the words that the program has for them.
pub fn of_blame(sides: &[BlameSide]) -> Vec<Value> {
    sides.iter().map(|side| of_waiting(&side.trace, &side.waiting)).collect()
}

/// The sums of one trace.
pub fn of_waiting(trace: &str, waiting: &BlameReport) -> Value {
    let culprits = waiting.culprits.iter().map(who).collect::<Vec<_>>();
    let quota = quota_words(waiting);
    json!({ "trace": trace, "headline": headline(waiting), "who": culprits, "quota": quota, "waiting": waiting })
}

/// Waits by how they began, then wakeup latencies of the names that waited longest in all.
fn distributions(summary: &SummaryReport) -> Vec<Value> {
    let WaitSpreads { wakeups, forks, preemptions, throttled, .. } = &summary.all;
    let kinds = [
        ("after a wakeup", wakeups),
        ("after a preemption", preemptions),
        ("of new tasks", forks),
        ("for a quota", throttled),
    ];
    let mut names = summary.comms.iter().filter(|one| one.waits.wakeups.total() > 0).collect::<Vec<_>>();
    names.sort_by_key(|one| std::cmp::Reverse(one.waits.wakeups.sum()));
    let named = |one: &&TaskWaitSummary| side(&one.comm.to_str(), &one.waits.wakeups);
    let by_name = names.iter().take(NAMES).filter_map(named).collect::<Vec<_>>();
    let all = kinds.iter().filter_map(|(words, times)| side(words, times)).collect::<Vec<_>>();
    let mut drawn = Vec::new();
    if !all.is_empty() {
        drawn.push(json!({ "words": "Waits", "sides": all }));
    }
    if names.len() > 1 {
        drawn.push(json!({ "words": "Wakeup latency by name", "sides": by_name }));
    }
    drawn
}

fn side(name: &str, times: &ValueSpread) -> Option<Value> {
    drawn_side(name, (times.total(), times.min()?, times.max()?), times.sizes())
}
