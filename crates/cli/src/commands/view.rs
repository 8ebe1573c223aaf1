//! `fairlab view`: a trace, or two beside each other, as a page for a browser.

use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};

use fairlab_event::{Cpu, Ns, ShownPath, System};
use fairlab_kernel::Topology;
use fairlab_kernel::domain::SchedDomains;
use fairlab_lab::provenance::Provenance;
use fairlab_lab::{OutputFile, read_trace};
use fairlab_page::timeline::{KeptDetail, PageCpu, TimelineDrawing, TimelineRecorder, TraceDescription};
use fairlab_recording::{generation_of, holds_trace, topology_of, trace_of};
use serde_json::{Value, json};

use super::trace;
use crate::args::{AnswerFormat, ViewArgs};
use crate::error::CliError;
use crate::progress::{ReadingLine, removed_on_interrupt};
use crate::{output, provenance, tell};

/// A page is no larger, but for names: so much of it may be the traces' numbers, before base64 makes them a third longer.
const BLOB_BYTES_MAX: usize = 17 << 20;

pub fn execute(args: &ViewArgs) -> Result<(), CliError> {
    let traces = args.traces.iter().map(|path| trace_below(path)).collect::<Result<Vec<_>, _>>()?;
    // A wrong path costs no time.
    let create = || OutputFile::create(&args.output).map_err(|error| failed(&args.output, &error));
    let mut file = removed_on_interrupt(create, OutputFile::building)?;
    let mut from = provenance::here();
    let mut drawn = Vec::new();
    for path in &traces {
        let (one, about) = read(args, path)?;
        from = from.of_trace(&about.system);
        drawn.push((one, about));
    }
    let aligned = alignment(args, &drawn)?;
    let title = drawn.iter().map(|(_, about)| about.label.as_str()).collect::<Vec<_>>().join(" and ");
    let bytes = BLOB_BYTES_MAX / drawn.len();
    let mut kept = Vec::new();
    let mut values = Vec::new();
    for ((one, mut about), path) in drawn.into_iter().zip(&traces) {
        about.provenance = from.to_json();
        let (value, what) = one.data(&about, bytes);
        if let Some(text) = what.text() {
            tell!("{}: {text}", ShownPath(path));
        }
        values.push(value);
        kept.push(what);
    }
    let counts =
        values.iter().map(|value| (value["events"].clone(), value["switches"].clone())).collect::<Vec<_>>();
    let data = json!({
        "traces": values,
        "align": aligned.iter().map(|time| time.0).collect::<Vec<_>>(),
        "aligned": args.align,
    });
    let page = fairlab_page::html(fairlab_page::PageKind::Timeline, &title, &data);
    drop(data);
    let written = file.write_all(page.as_bytes()).and_then(|()| file.finish());
    written.map_err(|error| failed(&args.output, &error))?;
    tell_written(args, &from, &traces, &counts, &kept, page.len())
}

fn tell_written(
    args: &ViewArgs,
    from: &Provenance,
    traces: &[PathBuf],
    counts: &[(Value, Value)],
    kept: &[KeptDetail],
    bytes: usize,
) -> Result<(), CliError> {
    if args.format == AnswerFormat::Json {
        let one = |((path, (events, switches)), kept): ((&PathBuf, &(Value, Value)), &KeptDetail)| {
            json!({
                "trace": ShownPath(path).to_string(),
                "events": events,
                "switches": switches,
                "unit_ns": kept.unit,
                "switches_kept": kept.switches.0,
                "virtual_times_kept": kept.facts,
                "left_out": kept.text(),
            })
        };
        let traces = traces.iter().zip(counts).zip(kept).map(one).collect::<Vec<_>>();
        let page = ShownPath(&args.output).to_string();
        let value = json!({ "schema": "fairlab/view/1", "page": page, "bytes": bytes, "traces": traces });
        return output::answer_json(from, value);
    }
    let events = counts.iter().filter_map(|(events, _)| events.as_u64()).sum::<u64>();
    let switches = counts.iter().filter_map(|(_, switches)| switches.as_u64()).sum::<u64>();
    let line = format!(
        "{}: {events} events with {switches} switches, {:.1} MB; open it in a browser\n",
        ShownPath(&args.output),
        bytes as f64 / 1e6
    );
    output::answer(from, &line)
}

/// So deep a run's folder has its traces.
const DEPTH_MAX: usize = 3;

/// How many traces an error lists.
const SHOWN_MAX: usize = 8;

/// A trace as it is, or the one that a run's folder holds.
fn trace_below(path: &Path) -> Result<PathBuf, CliError> {
    if !path.is_dir() || holds_trace(path) || fairlab_trace::is_trace_folder(path) {
        return Ok(path.to_path_buf());
    }
    let mut found = Vec::new();
    below(path, DEPTH_MAX, &mut found);
    match &found[..] {
        [] => Ok(path.to_path_buf()),
        [one] => Ok(one.clone()),
        several => {
            let shown = several.iter().take(SHOWN_MAX).map(|path| ShownPath(path).to_string());
            let shown = shown.collect::<Vec<_>>().join(", ");
            let more = several.len().saturating_sub(SHOWN_MAX);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            Err(CliError::bad(
                format!("{} holds {} traces", ShownPath(path), several.len()),
                format!("name one or two of them: {shown}{more}"),
            ))
        }
    }
}

fn below(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut folders =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect::<Vec<_>>();
    folders.sort();
    for folder in folders {
        if holds_trace(&folder) {
            found.push(folder);
        } else if depth > 1 {
            below(&folder, depth - 1, found);
        }
    }
}

fn read(args: &ViewArgs, path: &Path) -> Result<(TimelineDrawing, TraceDescription), CliError> {
    let options = args.reading.options();
    let system = RefCell::<System>::default();
    let mut recorder = TimelineRecorder::default().of(args.chosen.chosen());
    let line = ReadingLine::new("view", &trace_of(path), &options.read);
    let stats = trace::read(path, &options, &mut recorder, &system)?;
    drop(line);
    recorder.check().map_err(|nothing| trace::nothing(path, &nothing))?;
    let drawn = recorder.finish().map_err(|missing| trace::lacking(path, &missing))?;
    trace::warn(path, &stats, drawn.notices());
    let about = about(label(path), system.take(), read_trace::warnings(path, &stats, &[]));
    Ok((drawn, TraceDescription { whose: args.chosen.whose(), ..about }))
}

/// What the page says of a trace beside its events.
pub fn about(label: String, system: System, trouble: Vec<String>) -> TraceDescription {
    let topology = topology_of(&system);
    let generation = generation_of(&system);
    let places = topology.iter().flat_map(|topology| {
        topology.cpus().map(|cpu| {
            let place = topology.place(cpu);
            PageCpu { cpu, core: place.core, llc: place.llc, node: place.node }
        })
    });
    let domains = topology.as_ref().zip(generation.as_ref());
    let domains =
        domains.map(|(topology, kernel)| spans(topology, &SchedDomains::new(topology, &kernel.domain)));
    TraceDescription {
        label,
        provenance: Value::Null,
        places: places.collect(),
        domains: domains.unwrap_or_default(),
        domains_of: generation.map(|kernel| kernel.name().to_string()).unwrap_or_default(),
        trouble,
        whose: Vec::new(),
        system,
    }
}

/// The file's name; a folder of a run is told by the folders that it lies in.
fn label(path: &Path) -> String {
    let shown = ShownPath(path).to_string();
    let parts = shown.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>();
    let count = if path.is_dir() { 2 } else { 1 };
    parts[parts.len().saturating_sub(count)..].join("/")
}

/// Each domain once, the smallest levels first.
fn spans(topology: &Topology, domains: &SchedDomains) -> Vec<(String, Vec<Cpu>)> {
    let mut spans: Vec<(u32, String, Vec<Cpu>)> = Vec::new();
    for cpu in topology.cpus() {
        for id in domains.ids_of(cpu) {
            let domain = domains.domain(id);
            let cpus = domain.span.iter().collect::<Vec<_>>();
            let one = (domain.level, domain.name.to_string(), cpus);
            if !spans.contains(&one) {
                spans.push(one);
            }
        }
    }
    spans.sort();
    spans.into_iter().map(|(_, name, cpus)| (name, cpus)).collect()
}

/// What is subtracted from each trace's times.
fn alignment(args: &ViewArgs, drawn: &[(TimelineDrawing, TraceDescription)]) -> Result<Vec<Ns>, CliError> {
    let Some(what) = &args.align else { return Ok(vec![Ns::ZERO; drawn.len()]) };
    let first = |(drawn, path): (&(TimelineDrawing, TraceDescription), &PathBuf)| {
        drawn.0.first_of(what).ok_or_else(|| {
            CliError::bad(
                format!(
                    "{}: no task is called '{what}' or has that id, and nothing is marked so",
                    ShownPath(path)
                ),
                format!("'fairlab latency {}' lists its tasks", ShownPath(path)),
            )
        })
    };
    drawn.iter().zip(&args.traces).map(first).collect()
}

fn failed(path: &Path, error: &std::io::Error) -> CliError {
    CliError::bad(format!("cannot write {}: {error}", ShownPath(path)), "check the place that --output names")
}
