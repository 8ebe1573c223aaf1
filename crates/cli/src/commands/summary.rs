//! `fairlab summary`: prints the summary of a recorded trace.

use std::path::Path;

use fairlab_analysis::by_name::{CpuDomainNumbers, MachinePlaces, NamesWanted};
use fairlab_analysis::summary::answer::SummaryAnswer;
use fairlab_analysis::summary::text::SummaryText;
use fairlab_analysis::summary::{SummaryOptions, SummaryReport};
use fairlab_change::causes::rule;
use fairlab_event::{Cpu, ShownPath};
use fairlab_lab::merge::MergedCounts;
use fairlab_lab::read_trace::{SummaryOfTrace, summary_options};
use fairlab_lab::{TraceCounting, count_tasks, machines};
use serde_json::{Value, json};

use super::trace;
use crate::args::{PageStyle, SummaryArgs};
use crate::error::CliError;
use crate::export::{TraceParts, with_text};
use crate::numbers::CpuSets;
use crate::tell;

pub fn execute(args: &SummaryArgs) -> Result<(), CliError> {
    let exports = args.export.create()?;
    let options = options(args)?;
    if let Some(path) = &args.counts {
        if args.trace.file == Path::new("-") {
            return Err(CliError::bad("--counts reads a trace more than once", "give a trace in a file"));
        }
        if let Some(option @ ("--task" | "--group")) = args.chosen.given() {
            return Err(CliError::bad(
                format!("--counts holds the numbers of a whole host, and {option} chooses some of its tasks"),
                "leave one of them out: 'compare --counts' takes --task and --group",
            ));
        }
        let counting = TraceCounting {
            time: args.chosen.stretch(),
            by_name: NamesWanted::all(),
            ..TraceCounting::default()
        };
        let mut counted = count_tasks(&args.trace.file, counting)?;
        counted.group.labels = args.labels.iter().cloned().collect();
        let mut merged = MergedCounts::default();
        merged.add(counted.group, &counted.counts, counted.seed);
        super::merge::write(&merged, path, "--counts")?;
    }
    let mut summary = SummaryOfTrace::new(options, rule).of(args.chosen.chosen());
    let mut besides = exports.has_page().then(|| TraceParts::new(args.chosen.chosen()));
    let (stats, provenance) = args.trace.read_whole("summary", &mut (&mut summary, &mut besides))?;
    let summary = summary.into_summary();
    summary.check().map_err(|nothing| trace::nothing(&args.trace.file, &nothing))?;
    let report = summary.finish().map_err(|missing| trace::lacking(&args.trace.file, &missing))?;
    trace::warn(&args.trace.file, &stats, &report.notices);
    warn_of_cpus(args, &report);
    let rows = if args.top == 0 { usize::MAX } else { args.top };
    let answer = || json!(trace::answer(SummaryAnswer::from(&report), &stats, &report.notices));
    let title = format!("Summary of {}", ShownPath(&args.trace.file));
    let text = || SummaryText { report: &report, rows }.to_string();
    let besides =
        besides.map_or(Value::Null, |besides| besides.data(&ShownPath(&args.trace.file).to_string()));
    let parts = || with_text(&besides, &text());
    let shape = (args.trace.format, PageStyle::Fairlab);
    exports.answer_with(&title, (&provenance, &answer), shape, (&parts, &text))
}

/// A layout that is not the recorded machine's makes caches and nodes of the answer wrong.
fn warn_of_cpus(args: &SummaryArgs, report: &SummaryReport) {
    let sets = |list: &Option<CpuSets>| list.as_ref().map(|sets| sets.0.iter().map(Vec::len).sum::<usize>());
    let machine = args.machine.as_deref().and_then(|name| machines::find(name).ok());
    let described =
        machine.map(|machine| machine.topology.nr_cpus()).or(sets(&args.llc)).or(sets(&args.node));
    let recorded = report.system.cpus.map_or(0, |cpus| cpus as usize);
    if let Some(described) = described.filter(|&described| recorded > 0 && described != recorded) {
        let file = ShownPath(&args.trace.file);
        tell!("{file}: the recorded machine has {recorded} CPUs, and the one that is described {described}");
    }
}

/// What the command line says of the machine.
fn options(args: &SummaryArgs) -> Result<Option<SummaryOptions>, CliError> {
    let named = args.machine.as_deref().map(machines::find).transpose()?;
    if let Some(machine) = named {
        return Ok(Some(summary_options(&machine.topology)));
    }
    let sets = |list: &Option<CpuSets>| list.as_ref().map(|sets| sets.0.clone()).unwrap_or_default();
    let is_told = args.llc.is_some() || args.node.is_some();
    Ok(is_told.then(|| {
        let (llcs, nodes) = (sets(&args.llc), sets(&args.node));
        SummaryOptions { places: Some(places_of_sets(&llcs, &nodes)), llcs, nodes }
    }))
}

/// What CPUs share by sets: of cores nothing is said, so each CPU is one.
fn places_of_sets(llcs: &[Vec<Cpu>], nodes: &[Vec<Cpu>]) -> MachinePlaces {
    let last = llcs.iter().chain(nodes).flatten().map(|cpu| cpu.0).max().unwrap_or(0);
    let number = |sets: &[Vec<Cpu>], cpu: u32| {
        sets.iter().position(|set| set.contains(&Cpu(cpu))).map_or(u32::MAX, |number| number as u32)
    };
    MachinePlaces::new((0..=last).map(|cpu| CpuDomainNumbers {
        core: cpu,
        llc: number(llcs, cpu),
        node: number(nodes, cpu),
        capacity: 1024,
    }))
}
