//! `fairlab timehist`: every switch of a recorded trace, as `perf sched timehist` lists them.

use std::cell::RefCell;
use std::io::{self, Write};

use fairlab_analysis::timehist::text::{TimehistColumns, TimehistLayout};
use fairlab_analysis::timehist::{
    Label, OffCpu, SwitchRow, Timehist, TimehistOptions, TimehistRow, TimehistSummary,
};
use fairlab_event::{Pid, ShownPath, System, escaped};
use fairlab_lab::provenance::Provenance;
use fairlab_trace::ImportStats;
use serde_json::{Value, json};

use super::trace;
use crate::args::{AnswerFormat, TimehistArgs};
use crate::error::CliError;
use crate::provenance;

pub fn execute(args: &TimehistArgs) -> Result<(), CliError> {
    let mut stdout = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    match args.trace.format {
        AnswerFormat::Text => print_text(args, &mut stdout)?,
        AnswerFormat::Json => print_json(args, &mut stdout)?,
    }
    Ok(stdout.flush()?)
}

fn options(args: &TimehistArgs) -> TimehistOptions {
    TimehistOptions {
        pids: args.pid.iter().copied().map(Pid).collect(),
        tids: args.tid.iter().copied().map(Pid).collect(),
        cpus: args.cpu.iter().flat_map(|list| list.0.iter().copied()).collect(),
        chosen: args.chosen.chosen(),
        wakeups: args.wakeups,
        migrations: args.migrations,
    }
}

/// Reads the trace; each row goes to `print`.
fn list(
    args: &TimehistArgs,
    system: &RefCell<System>,
    print: &mut dyn FnMut(&TimehistRow) -> io::Result<()>,
) -> Result<(TimehistSummary, ImportStats), CliError> {
    let (mut outcome, mut rows) = (Ok(()), 0_u64);
    let mut timehist = Timehist::new(options(args), |row: &TimehistRow| {
        rows += 1;
        if outcome.is_ok() {
            outcome = print(row);
            if matches!(&outcome, Err(error) if error.kind() == io::ErrorKind::BrokenPipe) {
                // The reader has gone: the rest of a long trace need not be read.
                std::process::exit(0);
            }
        }
    });
    let stats = args.trace.read(&mut timehist, system)?;
    timehist.check().map_err(|nothing| trace::nothing(&args.trace.file, &nothing))?;
    let summary = timehist.finish().map_err(|missing| trace::lacking(&args.trace.file, &missing))?;
    outcome?;
    if rows == 0 && !is_everything(args) {
        return Err(CliError::bad(
            format!(
                "{}: no switch matches all of --pid, --tid, --cpu, --task, --group and --time",
                ShownPath(&args.trace.file)
            ),
            "leave one of them out; 'fairlab latency -p' lists tasks, 'fairlab timehist' without options all switches",
        ));
    }
    trace::warn(&args.trace.file, &stats, &summary.notices);
    Ok((summary, stats))
}

/// Whether nothing is left out by request.
fn is_everything(args: &TimehistArgs) -> bool {
    args.pid.is_empty() && args.tid.is_empty() && args.cpu.is_none() && args.chosen.given().is_none()
}

fn print_text(args: &TimehistArgs, out: &mut dyn Write) -> Result<(), CliError> {
    let columns = TimehistColumns { state: args.state, next: args.next, wakeups: args.wakeups };
    let mut layout = TimehistLayout::new(columns);
    let mut text = String::new();
    // The head waits for the first row, so that a file that cannot be read leaves no output.
    layout.head(&mut text);
    let system = RefCell::<System>::default();
    let mut begun = false;
    let (summary, _) = list(args, &system, &mut |row| {
        if args.summary {
            return Ok(());
        }
        if !std::mem::replace(&mut begun, true) {
            out.write_all(came_about(&system).comment().as_bytes())?;
        }
        layout.row(row, &mut text);
        out.write_all(text.as_bytes())?;
        text.clear();
        Ok(())
    })?;
    if args.summary {
        text.clear();
    }
    if !begun {
        out.write_all(came_about(&system).comment().as_bytes())?;
    }
    if args.summary || args.with_summary {
        layout.summary(&summary, &mut text);
    }
    Ok(out.write_all(text.as_bytes())?)
}

fn print_json(args: &TimehistArgs, out: &mut dyn Write) -> Result<(), CliError> {
    let system = RefCell::<System>::default();
    let head = || {
        let provenance = escaped::json(&came_about(&system).to_json().to_string()).into_owned();
        format!("{{\"schema\":\"fairlab/timehist/1\",\"provenance\":{provenance},\"events\":[\n")
    };
    let mut rows = 0_u64;
    let (summary, stats) = list(args, &system, &mut |row| {
        if args.summary {
            return Ok(());
        }
        let before = if rows == 0 { head() } else { ",\n".to_string() };
        rows += 1;
        write!(out, "{before}{}", escaped::json(&row_json(row).to_string()))
    })?;
    // Without rows the list has not been opened.
    let opened = if rows == 0 { head() } else { "\n".to_string() };
    let summary = escaped::json(&summary_json(&summary).to_string()).into_owned();
    let import = escaped::json(&trace::import_json(&stats, &[]).to_string()).into_owned();
    Ok(writeln!(out, "{opened}],\"summary\":{summary},\"import\":{import}}}")?)
}

fn came_about(system: &RefCell<System>) -> Provenance {
    provenance::here().of_trace(&system.borrow())
}

fn row_json(row: &TimehistRow) -> Value {
    match row {
        TimehistRow::Switch(row) => switch_json(row),
        TimehistRow::Wakeup { time, cpu, waker, wakee } => json!({
            "kind": "wakeup", "time_ns": time.0, "cpu": cpu.0, "waker": label_json(waker), "wakee": label_json(wakee),
        }),
        TimehistRow::Migration { time, cpu, by, task, orig_cpu, dest_cpu } => json!({
            "kind": "migration", "time_ns": time.0, "cpu": cpu.0, "by": label_json(by), "task": label_json(task),
            "orig_cpu": orig_cpu.0, "dest_cpu": dest_cpu.0,
        }),
        TimehistRow::Lost { time, cpu, count } => {
            json!({ "kind": "lost", "time_ns": time.0, "cpu": cpu.0, "count": count })
        }
    }
}

fn switch_json(row: &SwitchRow) -> Value {
    let mut value = json!({
        "kind": "switch",
        "time_ns": row.time.0,
        "cpu": row.cpu.0,
        "task": label_json(&row.task),
        "run_ns": row.run.0,
        "delay_ns": row.delay.0,
        "state": row.state.to_string(),
        "next": { "comm": row.next_comm.to_str(), "pid": row.next_pid.0 },
    });
    add_off_cpu(&mut value, &row.off);
    // What events were lost in has no length.
    let crossed = row.crossed;
    let names: [(bool, &[&str]); 3] = [
        (crossed.run, &["run_ns"]),
        (crossed.delay, &["delay_ns"]),
        (crossed.off, &["sleep_ns", "iowait_ns", "preempt_ns"]),
    ];
    for name in names.iter().filter(|(crossed, _)| *crossed).flat_map(|(_, names)| *names) {
        value[*name] = Value::Null;
    }
    value
}

fn add_off_cpu(value: &mut Value, off: &OffCpu) {
    value["sleep_ns"] = json!(off.sleep.0);
    value["iowait_ns"] = json!(off.iowait.0);
    value["preempt_ns"] = json!(off.preempt.0);
}

fn label_json(label: &Label) -> Value {
    json!({ "comm": label.comm.to_str(), "pid": label.tid.0, "tgid": label.tgid.0 })
}

fn summary_json(summary: &TimehistSummary) -> Value {
    let tasks = summary.tasks.iter().map(|task| {
        let mut value = label_json(&task.label);
        value["parent_pid"] = json!(task.parent.map(|parent| parent.0));
        value["count"] = json!(task.count);
        value["run_ns"] = json!(task.run.0);
        value["run_min_ns"] = json!(task.run_min.0);
        value["run_mean_ns"] = json!(task.run_mean.0);
        value["run_max_ns"] = json!(task.run_max.0);
        add_off_cpu(&mut value, &task.off);
        value["delay_ns"] = json!(task.delay.0);
        value["crossed_loss"] = json!(task.crossed);
        value["migrations"] = json!(task.migrations);
        value
    });
    let cpus = summary
        .cpus
        .iter()
        .map(|cpu| json!({ "cpu": cpu.cpu.0, "switches": cpu.switches, "idle_ns": cpu.idle.0 }));
    json!({
        "tasks": tasks.collect::<Vec<_>>(),
        "cpus": cpus.collect::<Vec<_>>(),
        "switches": summary.switches,
        "run_ns": summary.run.0,
        "span_ns": summary.span.0,
        "crossed_loss": summary.crossed,
    })
}
