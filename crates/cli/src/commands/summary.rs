//! `fairlab summary`: what a recorded trace comes to.

use std::collections::BTreeMap;
use std::path::Path;

use fairlab_analysis::summary::text::Text;
use fairlab_analysis::summary::{
    Censored, Migrations, Spread, Summary, SummaryOptions, SummaryReport, SwitchPair, Switches, TaskWaits,
    Unconserved,
};
use fairlab_event::{Comm, Cpu, Event, Pid, ShownPath, Sink, System};
use fairlab_kernel::Topology;
use fairlab_kernel::topology::CpuPlace;
use fairlab_lab::merge::Merged;
use fairlab_lab::{count_trace, machines};
use fairlab_trace::ImportStats;
use fairlab_verify::topology_of;
use serde_json::{Map, Value, json};

use super::trace;
use crate::args::{Format, SummaryArgs};
use crate::error::CliError;
use crate::numbers::CpuSets;
use crate::{output, tell};

pub fn execute(args: &SummaryArgs) -> Result<(), CliError> {
    let options = options(args)?;
    if let Some(path) = &args.counts {
        if args.trace.file == Path::new("-") {
            return Err(CliError::bad("--counts reads a trace more than once", "give a trace in a file"));
        }
        let counted = count_trace(&args.trace.file)?;
        let mut merged = Merged::default();
        merged.add(counted.group, &counted.counts, counted.seed);
        super::merge::write(&merged, path, "--counts")?;
    }
    let mut summary = Described { options, summary: None };
    let (stats, provenance) = args.trace.read_whole("summary", &mut summary)?;
    let report =
        summary.into_summary().finish().map_err(|missing| trace::lacking(&args.trace.file, &missing))?;
    trace::warn(&args.trace.file, &stats, &report.notices);
    warn_of_cpus(args, &report);
    let rows = if args.top == 0 { usize::MAX } else { args.top };
    match args.trace.format {
        Format::Text => output::answer(&provenance, &Text { report: &report, rows }.to_string()),
        Format::Json => output::answer_json(&provenance, to_json(&report, &stats)),
    }
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

/// A summary that begins when it is known what the trace, or what lies beside it, tells of the machine.
struct Described {
    /// What the command line says of it.
    options: Option<SummaryOptions>,
    summary: Option<Summary>,
}

impl Described {
    fn summary(&mut self, system: &System) -> &mut Summary {
        let told = || topology_of(system).as_ref().map(options_of);
        let options = &self.options;
        let begin = || Summary::new(options.clone().or_else(told).unwrap_or_default());
        self.summary.get_or_insert_with(begin)
    }

    fn into_summary(mut self) -> Summary {
        self.summary(&System::default());
        self.summary.unwrap_or_else(|| Summary::new(SummaryOptions::default()))
    }
}

impl Sink for Described {
    fn event(&mut self, event: &Event<'_>) {
        self.summary(&System::default()).event(event);
    }

    fn system(&mut self, system: &System) {
        self.summary(system).system(system);
    }

    fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) {
        self.summary(&System::default()).allowed(pid, cpus);
    }
}

/// What the command line says of the machine.
fn options(args: &SummaryArgs) -> Result<Option<SummaryOptions>, CliError> {
    let named = args.machine.as_deref().map(machines::find).transpose()?;
    if let Some(machine) = named {
        return Ok(Some(options_of(&machine.topology)));
    }
    let sets = |list: &Option<CpuSets>| list.as_ref().map(|sets| sets.0.clone()).unwrap_or_default();
    let is_told = args.llc.is_some() || args.node.is_some();
    Ok(is_told.then(|| SummaryOptions { llcs: sets(&args.llc), nodes: sets(&args.node) }))
}

fn options_of(topology: &Topology) -> SummaryOptions {
    let sets = |number: fn(CpuPlace) -> u32| {
        let mut sets: BTreeMap<u32, Vec<Cpu>> = BTreeMap::new();
        for cpu in topology.cpus() {
            sets.entry(number(topology.place(cpu))).or_default().push(cpu);
        }
        sets.into_values().collect()
    };
    SummaryOptions { llcs: sets(|place| place.llc), nodes: sets(|place| place.node) }
}

fn to_json(report: &SummaryReport, stats: &ImportStats) -> Value {
    let rows = |rows: &[TaskWaits]| rows.iter().map(row_json).collect::<Vec<_>>();
    json!({
        "schema": "fairlab/summary/1",
        "start_ns": report.start.0,
        "end_ns": report.end.0,
        "events": report.events,
        "system": trace::system_json(&report.system),
        "wakeup_latency": spread_json(&report.all.wakeups),
        "preemption_wait": spread_json(&report.all.preemptions),
        "throttled_wait": spread_json(&report.all.throttled),
        "throttling": report.throttling.map(|sums| {
            json!({ "nr_throttled": sums.count, "throttled_ns": sums.time.0, "concluded": sums.is_concluded })
        }),
        "waits_across_losses": report.all.crossed,
        "losses": report.losses,
        "comms": rows(&report.comms),
        "tasks": rows(&report.tasks),
        "switches": switches_json(&report.switches),
        "migrations": migrations_json(&report.migrations),
        "idle_share": report.idle_share(),
        "idle_share_of_all_cpus": report.idle_bounds().map(|(least, most)| json!({ "least": least, "most": most })),
        "cpus": cpus_json(report),
        "runqueue_depth": {
            "observed_ns": report.depths.observed.0,
            "mean": report.depths.mean,
            "max": report.depths.max,
            "time_at_depth_ns": report.depths.at.iter().map(|time| time.0).collect::<Vec<_>>(),
        },
        "unconserved": report.unconserved.iter().map(|part| unconserved_json(part, report)).collect::<Vec<_>>(),
        "switch_pairs": report.pairs.iter().map(pair_json).collect::<Vec<_>>(),
        "switch_pairs_too_low_by_up_to": report.pairs_floor,
        "still_waiting": report.censored.iter().map(censored_json).collect::<Vec<_>>(),
        "late_events": report.late_events,
        "switch_gaps": report.switch_gaps,
        "import": trace::import_json(stats, &report.notices),
    })
}

fn spread_json(spread: &Spread) -> Value {
    let percentiles = spread.percentiles().into_iter().map(|percentile| {
        let (whole, tenth) = (percentile.per_mille / 10, percentile.per_mille % 10);
        let name = if tenth == 0 { format!("p{whole}_ns") } else { format!("p{whole}.{tenth}_ns") };
        (name, json!(percentile.value))
    });
    let mut fields = Map::new();
    fields.insert("count".to_string(), json!(spread.total()));
    fields.insert("sum_ns".to_string(), json!(spread.sum()));
    fields.insert("mean_ns".to_string(), json!(spread.mean()));
    fields.insert("min_ns".to_string(), json!(spread.min()));
    fields.extend(percentiles);
    fields.insert("max_ns".to_string(), json!(spread.max()));
    Value::Object(fields)
}

fn row_json(row: &TaskWaits) -> Value {
    json!({
        "comm": row.comm.to_str(),
        "pid": row.pid.map(|pid| pid.0),
        "tasks": row.tasks,
        "wakeup_latency": spread_json(&row.waits.wakeups),
        "preemption_wait": spread_json(&row.waits.preemptions),
        "throttled_wait": spread_json(&row.waits.throttled),
        "waits_across_losses": row.waits.crossed,
        "run_ns": row.run.0,
        "run_cut_ns": row.run_cut.0,
        "switches": switches_json(&row.switches),
        "migrations": row.migrations,
    })
}

fn switches_json(switches: &Switches) -> Value {
    json!({
        "total": switches.total(),
        "voluntary": switches.voluntary(),
        "involuntary": switches.involuntary(),
        "slept": switches.slept,
        "exited": switches.exited,
        "preempted_in_kernel": switches.preempted_in_kernel,
        "preempted_to_user": switches.preempted,
        "yielded": switches.yielded,
        "left_runnable": switches.left_runnable,
    })
}

fn migrations_json(migrations: &Migrations) -> Value {
    json!({
        "total": migrations.total(),
        "wakeup": migrations.wakeup,
        "fork": migrations.fork,
        "asked": migrations.asked,
        "balance": migrations.balance(),
        "balance_by": {
            "softirq": migrations.softirq,
            "new_idle": migrations.new_idle,
            "stopper": migrations.stopper,
            "other": migrations.other,
        },
    })
}

fn cpus_json(report: &SummaryReport) -> Vec<Value> {
    let cpus = report.cpus.iter().map(|cpu| {
        let share = (cpu.observed.0 > 0).then(|| cpu.idle.0 as f64 / cpu.observed.0 as f64);
        json!({
            "cpu": cpu.cpu.0,
            "observed_ns": cpu.observed.0,
            "idle_ns": cpu.idle.0,
            "idle_share": share,
            "switches": cpu.switches,
            "runqueue_depth_mean": cpu.depth_mean,
            "runqueue_depth_max": cpu.depth_max,
        })
    });
    cpus.collect()
}

fn unconserved_json(part: &Unconserved, report: &SummaryReport) -> Value {
    let span = report.span().0;
    json!({
        "within": part.scope.name,
        "cpus": part.scope.cpus.iter().map(|cpu| cpu.0).collect::<Vec<_>>(),
        "unconserved_ns": part.time.0,
        "unconserved_share": (span > 0).then(|| part.time.0 as f64 / span as f64),
        "cpu_time_lost_ns": part.cpu_time.0,
    })
}

fn pair_json(pair: &SwitchPair) -> Value {
    let task = |(comm, pid): (Comm, Pid)| json!({ "comm": comm.to_str(), "pid": pid.0 });
    json!({ "prev": task(pair.prev), "next": task(pair.next), "count": pair.count })
}

fn censored_json(wait: &Censored) -> Value {
    json!({
        "comm": wait.comm.to_str(),
        "pid": wait.pid.0,
        "cpu": wait.cpu.map(|cpu| cpu.0),
        "since_ns": wait.since.0,
        "so_far_ns": wait.so_far.0,
        "kind": if wait.of_wakeup { "wakeup" } else { "preemption" },
        "events_lost_meanwhile": wait.crossed_loss,
    })
}
