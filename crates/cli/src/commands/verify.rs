//! `fairlab verify`: how well a modelled kernel agrees with the recording of a real one, or with a kernel that runs beside it.

mod floor;
mod oracle;
mod replayed;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use fairlab_change::replayed::Replayed;
use fairlab_event::ShownPath;
use fairlab_kernel::Generation;
use fairlab_lab::provenance::{Origin, Provenance};
use fairlab_lab::{Kernel, LabError, machines, workloads};
use fairlab_recording::{KnownKernel, trace_of};
use fairlab_trace::{BytesRead, Severity};
use fairlab_verify::{
    Agreement, JudgedShare, KindTally, MissedDecision, VerifyOptions, recorded_kernel, verify,
};
use serde_json::{Value, json};

use crate::args::{PageStyle, VerifyArgs};
use crate::error::CliError;
use crate::progress::ReadingLine;
use crate::provenance;
use crate::{output, tell};
use floor::Floor;
use replayed::ReplayWish;

pub fn execute(args: &VerifyArgs) -> Result<(), CliError> {
    if let Some(option) = args.chosen.given() {
        return Err(CliError::bad(
            format!(
                "{option} does not go with verify: a decision is judged by all that came before it, on all tasks"
            ),
            "leave it out; summary, latency, explain and timehist take it",
        ));
    }
    if let Some(against) = args.against.as_ref().filter(|_| !is_of_recording(args)) {
        return oracle::execute(args, against);
    }
    let [trace] = args.words.as_slice() else {
        return Err(CliError::bad(
            "verify takes one recording",
            "give its folder or its trace; a workload wants --against KERNEL",
        ));
    };
    if args.duration.is_some() {
        return Err(CliError::bad("a replay is as long as its recording", "leave --duration out"));
    }
    let recording = Path::new(trace);
    let other = replayed::other_kernel(args)?;
    let exports = args.export.create()?;
    let machine = args.machine.as_deref().map(machines::find).transpose()?;
    let options = VerifyOptions {
        machine,
        misses: args.misses,
        clock_hz: args.clock_hz,
        allow_unreadable: args.allow_unreadable,
        ..VerifyOptions::default()
    };
    let kernel = match &args.kernel {
        Some(name) => KnownKernel { generation: asked_for(name)?, left_out: Vec::new() },
        None => watched("verify: looking for the kernel", recording, &options, |options| {
            recorded_kernel(recording, options)
        })?,
    };
    let agreement =
        watched("verify", recording, &options, |options| verify(recording, &kernel.generation, options))?;
    tell_notes(&agreement, &kernel);
    let replayed = replay(args, recording, &agreement, other)?;
    let provenance = provenance_of(&agreement, replayed.as_ref());
    let floor = args.fail_under.map(|wanted| Floor::of(wanted, &agreement));
    let told = || {
        let replayed = replayed.as_ref().map(replayed::text);
        let parts = [replayed, floor.as_ref().map(Floor::text)].into_iter().flatten();
        parts.fold(text(&agreement), |text, part| format!("{text}\n{part}"))
    };
    let answer = || {
        let mut value = to_json(&agreement);
        value["replay"] = json!(replayed.as_ref().map(replayed::to_json));
        if let Some(floor) = &floor {
            value["floor"] = floor.json();
        }
        value
    };
    let title = format!("{} and the recording {}", agreement.kernel, ShownPath(&agreement.trace));
    exports.answer(&title, (&provenance, &answer), (args.format, PageStyle::Fairlab), [&told; 2])?;
    floor.map_or(Ok(()), |floor| floor.outcome())
}

/// Tells what is amiss with a recording, a line each.
fn tell_notes(agreement: &Agreement, kernel: &KnownKernel) {
    let shown = ShownPath(&agreement.trace);
    let troubles = agreement.import.troubles();
    for count in troubles.iter().filter(|count| count.trouble.severity() > Severity::Warning) {
        tell!("{shown}: {count}");
    }
    for unreadable in agreement.import.unreadable() {
        tell!("{shown}: {unreadable}");
    }
    for note in agreement.notes.iter().chain(&kernel.left_out) {
        tell!("{shown}: {note}");
    }
}

/// How the answer came about.
fn provenance_of(agreement: &Agreement, replayed: Option<&Replayed>) -> Provenance {
    let provenance =
        provenance::here().reading(agreement.origin).by(Origin::Modelled).kernel(&agreement.kernel);
    let provenance = agreement.release.iter().fold(provenance, Provenance::kernel);
    replayed.iter().fold(provenance, |provenance, replayed| {
        let provenance = provenance.seeds(replayed.seeds.iter().copied());
        let sides = replayed.sides.iter();
        sides.fold(provenance, |provenance, side| provenance.by(side.origin).kernel(&side.kernel))
    })
}

/// Whether the words name a recording: one that is there, and is no workload.
fn is_of_recording(args: &VerifyArgs) -> bool {
    let [word] = args.words.as_slice() else { return false };
    workloads::find(word).is_err() && (word == "-" || Path::new(word).exists())
}

/// The recording's replays, where they are wanted. One that nobody asked for is left out, with a line that says why, where it cannot be made.
fn replay(
    args: &VerifyArgs,
    recording: &Path,
    agreement: &Agreement,
    other: Option<Kernel>,
) -> Result<Option<Replayed>, CliError> {
    let wish = ReplayWish::of(args);
    if wish == ReplayWish::Never || wish == ReplayWish::WhereUseful && agreement.probed {
        return Ok(None);
    }
    match replayed::replay(args, recording, agreement, other) {
        Err(CliError::Bad { problem, .. }) if wish == ReplayWish::WhereUseful => {
            tell!("not replayed: {problem}");
            Ok(None)
        }
        made => made.map(Some),
    }
}

/// Does what reads the trace once, while a terminal shows how far it is.
fn watched<T>(
    what: &'static str,
    recording: &Path,
    options: &VerifyOptions,
    reads: impl FnOnce(&VerifyOptions) -> Result<T, LabError>,
) -> Result<T, LabError> {
    let options = VerifyOptions { read: BytesRead::default(), ..options.clone() };
    let _line = ReadingLine::new(what, &trace_of(recording), &options.read);
    reads(&options)
}

fn asked_for(name: &str) -> Result<Generation, CliError> {
    Generation::asked_for(name).map_err(|error| CliError::bad(error.problem, error.hint))
}

fn text(agreement: &Agreement) -> String {
    let mut text = format!("{} by the rules of {}", ShownPath(&agreement.trace), agreement.kernel);
    if let Some(release) = &agreement.release {
        let _ = write!(text, " (recorded: {release})");
    }
    let _ = writeln!(text, "\n{}; {} events\n", agreement.warm_up, agreement.events);
    let mut rows = Vec::new();
    for (kind, tally) in &agreement.kinds {
        rows.push(row(kind.name().to_string(), tally.all, Some(tally)));
        for (case, share) in &tally.cases {
            rows.push(row(format!("  {case}"), *share, None));
        }
    }
    let header = ["decision", "judged", "agree", "share", "missed", "not judged"];
    text += &output::table(&header, &rows);
    for (kind, tally) in &agreement.kinds {
        reasons(&mut text, kind.name(), tally);
    }
    if agreement.state_set_right > 0 {
        let _ = writeln!(
            text,
            "state set right without a decision that explains it: {}",
            agreement.state_set_right
        );
    }
    for miss in &agreement.misses {
        text += "\n";
        text += &miss_text(miss);
    }
    text
}

fn row(name: String, share: JudgedShare, tally: Option<&KindTally>) -> Vec<String> {
    let percent = match share.judged {
        0 => "-".to_string(),
        judged => format!("{:.2} %", share.agree as f64 * 100.0 / judged as f64),
    };
    let [judged, agree, missed] = [share.judged, share.agree, share.missed()].map(|count| count.to_string());
    let mut cells = vec![name, judged, agree, percent, missed];
    cells.extend(tally.map(|tally| tally.not_judged_total().to_string()));
    cells
}

fn reasons(text: &mut String, kind: &str, tally: &KindTally) {
    let mut list = |what: &str, reasons: &BTreeMap<&'static str, u64>| {
        for (reason, count) in reasons {
            let _ = writeln!(text, "{kind} {what}: {count} {reason}");
        }
    };
    list("missed", &tally.misses);
    list("not judged", &tally.not_judged);
    if let Some(baseline) = tally.baseline {
        let _ = writeln!(text, "{kind}: {} alone would agree in {}", baseline.rule, baseline.agree);
    }
}

fn miss_text(miss: &MissedDecision) -> String {
    let mut text = format!(
        "event {} at {} ns, CPU {}: {} ({})\n  model:  {}\n  kernel: {}\n",
        miss.event,
        miss.time.0,
        miss.cpu,
        miss.kind.name(),
        miss.reason,
        miss.model,
        miss.kernel
    );
    for line in &miss.state {
        let _ = writeln!(text, "  {line}");
    }
    text
}

fn to_json(agreement: &Agreement) -> Value {
    let decisions = agreement.kinds.iter().map(|(kind, tally)| {
        let cases = tally.cases.iter().map(|(case, share)| {
            let counts = json!({
                "judged": share.judged,
                "agree": share.agree,
                "missed": share.missed(),
            });
            ((*case).to_string(), counts)
        });
        json!({
            "kind": kind.name(),
            "judged": tally.all.judged,
            "agree": tally.all.agree,
            "missed": tally.all.missed(),
            "not_judged": tally.not_judged_total(),
            "misses": tally.misses,
            "not_judged_reasons": tally.not_judged,
            "cases": cases.collect::<serde_json::Map<_, _>>(),
            "baseline": tally.baseline.map(|baseline| json!({ "rule": baseline.rule, "agree": baseline.agree })),
        })
    });
    let misses = agreement.misses.iter().map(|miss| {
        json!({
            "kind": miss.kind.name(),
            "case": miss.case,
            "reason": miss.reason,
            "event": miss.event,
            "time_ns": miss.time.0,
            "cpu": miss.cpu.0,
            "model": miss.model,
            "kernel": miss.kernel,
            "state": miss.state,
        })
    });
    json!({
        "schema": "fairlab/verify/1",
        "kernel": agreement.kernel,
        "trace": ShownPath(&agreement.trace).to_string(),
        "release": agreement.release,
        "warm_up": agreement.warm_up,
        "events": agreement.events,
        "state_set_right": agreement.state_set_right,
        "decisions": decisions.collect::<Vec<_>>(),
        "misses": misses.collect::<Vec<_>>(),
    })
}
