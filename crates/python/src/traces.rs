//! Answers from recorded traces.
//!
//! Must not know: how answers look.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use fairlab_analysis::blame::answer::{BlameAnswer, BlameSide};
use fairlab_analysis::blame::text::AnswerText;
use fairlab_analysis::blame::{Blame, BlameOptions};
use fairlab_analysis::explain::answer::to_json;
use fairlab_analysis::explain::{Explain, ExplainOptions};
use fairlab_analysis::latency::{Latency, LatencyAnswer, LatencyOptions, SortKey};
use fairlab_analysis::summary::answer::SummaryAnswer;
use fairlab_change::causes::rule;
use fairlab_event::{ShownPath, Sink};
use fairlab_lab::provenance::Provenance;
use fairlab_lab::read_trace::{self, SummaryOfTrace, lacking, nothing_of, summary_options, warnings};
use fairlab_lab::{LabError, machines};
use fairlab_trace::answer::{ImportAnswer, TraceAnswer};
use fairlab_trace::{ImportStats, ReadOptions, Trouble};
use pyo3::prelude::*;
use serde_json::json;

use crate::failed::CallError;
use crate::interruptible::abandonable;
use crate::request::{TraceSelection, provenance};

/// Which trace, and how it is read.
#[derive(Clone, Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub struct TraceSource {
    pub file: PathBuf,
    clock_hz: Option<u64>,
    instance: Option<String>,
    allow_unreadable: bool,
    pub names: TraceSelection,
    /// The words of the command line of this request.
    words: Vec<String>,
}

/// What a call gives: the answer as JSON, and notes for the user.
type TraceCall = (String, Vec<String>);

impl TraceSource {
    /// Feeds the trace to `sink`; how the answer came about.
    pub fn read(&self, sink: &mut dyn Sink) -> Result<(ImportStats, Provenance), LabError> {
        self.read_file(&self.file, sink, provenance(self.words.clone()))
    }

    /// The same of any file, for an answer that came about as `so_far` already.
    fn read_file(
        &self,
        file: &Path,
        sink: &mut dyn Sink,
        so_far: Provenance,
    ) -> Result<(ImportStats, Provenance), LabError> {
        let options = ReadOptions {
            clock_hz: self.clock_hz,
            instance: self.instance.clone(),
            allow_unreadable: self.allow_unreadable,
            ..ReadOptions::default()
        };
        let system = RefCell::default();
        let stats = read_trace::read(file, &options, sink, &system)?;
        let provenance = so_far.of_trace(&system.take()).cut_off(stats.is_cut_off());
        Ok((stats, provenance))
    }
}

/// What a trace comes to.
#[pyfunction]
pub fn summary(py: Python<'_>, source: TraceSource, machine: Option<String>) -> Result<TraceCall, CallError> {
    abandonable(py, move || {
        let machine = machine.as_deref().map(machines::find).transpose()?;
        let mut summary =
            SummaryOfTrace::new(machine.map(|machine| summary_options(&machine.topology)), rule);
        summary = summary.of(source.names.chosen()?);
        let (stats, provenance) = source.read(&mut summary)?;
        let summary = summary.into_summary();
        summary.check().map_err(|nothing| nothing_of(&source.file, &nothing))?;
        let report = summary.finish().map_err(|missing| lacking(&source.file, &missing))?;
        let import = ImportAnswer::of(&stats, &report.notices);
        let answer = json!(TraceAnswer { answer: SummaryAnswer::from(&report), import });
        Ok((provenance.within(answer).to_string(), warnings(&source.file, &stats, &report.notices)))
    })
}

/// How long each task waited.
#[pyfunction]
pub fn latency(
    py: Python<'_>,
    source: TraceSource,
    by_pid: bool,
    sort: &str,
) -> Result<TraceCall, CallError> {
    let sort = sort_keys(sort)?;
    abandonable(py, move || {
        let chosen = source.names.chosen()?;
        let is_all = chosen.is_all();
        let mut latency =
            Latency::new(LatencyOptions { by_pid, sort, ..LatencyOptions::default() }).of(chosen);
        let (stats, provenance) = source.read(&mut latency)?;
        let nothing = |nothing| nothing_of(&source.file, &nothing);
        latency.check().map_err(nothing)?;
        let no_wait = latency.no_wait();
        let mut table = latency.finish().map_err(|missing| lacking(&source.file, &missing))?;
        if table.rows.is_empty() && !is_all {
            return Err(nothing(no_wait));
        }
        table.records = stats.events + stats.count(Trouble::SkippedRecord);
        let import = ImportAnswer::of(&stats, &table.notices);
        let answer = json!(TraceAnswer { answer: LatencyAnswer::from(&table), import });
        Ok((provenance.within(answer).to_string(), warnings(&source.file, &stats, &table.notices)))
    })
}

fn sort_keys(words: &str) -> Result<Vec<SortKey>, LabError> {
    SortKey::parse_list(words).map_err(|error| {
        LabError::new(format!("sort='{words}': {error}"), "help(fairlab.latency) lists what can be said")
    })
}

/// The worst waits, each with its story.
#[pyfunction]
pub fn explain(
    py: Python<'_>,
    source: TraceSource,
    worst: usize,
) -> Result<(String, Vec<String>, Vec<String>), CallError> {
    abandonable(py, move || {
        let chosen = source.names.chosen()?;
        let is_all = chosen.is_all();
        let mut explain = Explain::new(ExplainOptions { chosen, worst }).with_sums(rule);
        let (stats, provenance) = source.read(&mut explain)?;
        let nothing = |nothing| nothing_of(&source.file, &nothing);
        explain.check().map_err(nothing)?;
        let no_wait = explain.no_wait();
        let found = explain.finish().map_err(|missing| lacking(&source.file, &missing))?;
        if found.measured + found.crossed + found.still_waiting_count == 0 && !is_all {
            return Err(nothing(no_wait));
        }
        let import = json!(ImportAnswer::of(&stats, &found.notices));
        let stories = found.stories.iter().map(ToString::to_string).collect();
        let answer = provenance.within(to_json(&found, &import)).to_string();
        Ok((answer, stories, warnings(&source.file, &stats, &found.notices)))
    })
}

/// Who makes tasks wait, in all; of two traces also what differs.
#[pyfunction]
pub fn blame(
    py: Python<'_>,
    source: TraceSource,
    after: Option<PathBuf>,
    each: bool,
) -> Result<(String, String, Vec<String>), CallError> {
    abandonable(py, move || {
        let mut provenance = provenance(source.words.clone());
        let (mut sides, mut told) = (Vec::new(), Vec::new());
        for file in [Some(&source.file), after.as_ref()].into_iter().flatten() {
            let (side, with_it) = blame_one(&source, file, each, provenance, &mut told)?;
            provenance = with_it;
            sides.push(side);
        }
        let answer = BlameAnswer::of(sides);
        let text = AnswerText { answer: &answer, rows: usize::MAX }.to_string();
        Ok((provenance.within(json!(answer)).to_string(), text, told))
    })
}

fn blame_one(
    source: &TraceSource,
    file: &Path,
    each: bool,
    so_far: Provenance,
    told: &mut Vec<String>,
) -> Result<(BlameSide, Provenance), LabError> {
    let chosen = source.names.chosen()?;
    let is_all = chosen.is_all();
    let mut blame = Blame::new(BlameOptions { chosen, by_thread: each, rule_words: rule });
    let (stats, provenance) = source.read_file(file, &mut blame, so_far)?;
    blame.check().map_err(|nothing| nothing_of(file, &nothing))?;
    let no_wait = blame.no_wait();
    let waiting = blame.finish().map_err(|missing| lacking(file, &missing))?;
    if waiting.is_empty() && !is_all {
        return Err(nothing_of(file, &no_wait));
    }
    told.extend(warnings(file, &stats, &waiting.notices));
    let import = json!(ImportAnswer::of(&stats, &waiting.notices));
    Ok((BlameSide { trace: ShownPath(file).to_string(), waiting, import }, provenance))
}
