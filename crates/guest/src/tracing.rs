//! The kernel's tracing: which events and probes are on, and when.
//!
//! Must not know: what the workload is.

use std::collections::HashSet;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use fairlab_event::UntypedTracepoint;
use fairlab_event::probes::{GROUP, RARE_GROUP};

use crate::btf::Types;
use crate::files;
use crate::job::Job;
use crate::probes;
use crate::symbols::KernelSymbols;

/// Where tracefs is.
pub const TRACING: &str = "/sys/kernel/tracing";

/// Timers that act on the scheduler: of the tick under the names that it has had, of slices, of quotas.
const TIMERS: [&str; 6] = [
    "tick_sched_timer",
    "tick_nohz_handler",
    "tick_nohz_highres_handler",
    "hrtick",
    "sched_cfs_period_timer",
    "sched_cfs_slack_timer",
];

/// `SCHED_SOFTIRQ`: balancing.
const SCHED_SOFTIRQ: &str = "vec == 7";

/// Events beside those of `sched`, each with a filter.
const EVENTS: [(UntypedTracepoint, &str); 18] = [
    (UntypedTracepoint::LocalTimer, ""),
    (UntypedTracepoint::Reschedule, ""),
    (UntypedTracepoint::CallFunctionSingle, ""),
    (UntypedTracepoint::CallFunction, ""),
    (UntypedTracepoint::SoftirqEntry, SCHED_SOFTIRQ),
    (UntypedTracepoint::SoftirqExit, SCHED_SOFTIRQ),
    (UntypedTracepoint::CpuIdle, ""),
    (UntypedTracepoint::CpuFrequency, ""),
    (UntypedTracepoint::IpiRaise, ""),
    (UntypedTracepoint::IpiSendCpu, ""),
    (UntypedTracepoint::IpiSendCpumask, ""),
    (UntypedTracepoint::SchedYield, ""),
    (UntypedTracepoint::SchedSetaffinity, ""),
    (UntypedTracepoint::SchedSetscheduler, ""),
    (UntypedTracepoint::SchedSetattr, ""),
    (UntypedTracepoint::Setpriority, ""),
    (UntypedTracepoint::CgroupAttachTask, ""),
    (UntypedTracepoint::CgroupMkdir, ""),
];

/// What became of the preparations: two lists for readers of the recording.
#[derive(Clone, Debug, Default)]
pub struct PreparedTracing {
    /// A line for each event: on, or why not.
    pub events: String,
    /// A line for each probe: taken as it stands, or not.
    pub probes: String,
}

/// Buffers, clock, events and probes; nothing is recorded yet.
///
/// # Errors
/// The kernel has no tracing.
pub fn prepare(job: &Job, cpus: usize) -> io::Result<PreparedTracing> {
    set("tracing_on", "0")?;
    set("buffer_size_kb", &job.buffer_kb.to_string())?;
    set("trace_clock", &job.trace_clock)?;
    let _ = set("saved_cmdlines_size", "4096");
    let _ = set("options/record-tgid", "1");
    let listed = files::text("/proc/kallsyms");
    let wanted: HashSet<&str> = TIMERS.into_iter().chain(probes::symbols()).collect();
    let symbols = KernelSymbols::parse(&listed, &wanted);
    drop(listed);
    let mut prepared = PreparedTracing::default();
    set("events/sched/enable", "1")?;
    prepared.events.push_str("event sched/* on\n");
    for (event, filter) in EVENTS {
        let _ = writeln!(prepared.events, "{}", switch_on(event.path(), filter));
    }
    let timers: Vec<String> = TIMERS
        .iter()
        .filter_map(|name| symbols.get(name))
        .map(|address| format!("function == {address:#x}"))
        .collect();
    let _ = writeln!(
        prepared.events,
        "{}",
        switch_on(UntypedTracepoint::HrtimerExpire.path(), &timers.join(" || "))
    );
    prepared.probes = probe(job, &symbols, cpus);
    Ok(prepared)
}

fn set(file: &str, value: &str) -> io::Result<()> {
    files::write(Path::new(TRACING).join(file), value)
        .map_err(|error| io::Error::new(error.kind(), format!("{TRACING}/{file}: {error}")))
}

/// Switches an event on, and says what came of it.
fn switch_on(event: &str, filter: &str) -> String {
    let folder = format!("events/{event}");
    if !Path::new(TRACING).join(&folder).is_dir() {
        return format!("event {event} absent");
    }
    if !filter.is_empty()
        && let Err(error) = set(&format!("{folder}/filter"), filter)
    {
        return format!("event {event} filter refused: {filter}: {error}");
    }
    match set(&format!("{folder}/enable"), "1") {
        Ok(()) if filter.is_empty() => format!("event {event} on"),
        Ok(()) => format!("event {event} on if {filter}"),
        Err(error) => format!("event {event} refused: {error}"),
    }
}

/// Defines the probes and switches them on.
fn probe(job: &Job, symbols: &KernelSymbols, cpus: usize) -> String {
    let described = files::bytes("/sys/kernel/btf/vmlinux").unwrap_or_default();
    let Some(types) = Types::parse(&described) else {
        return "none: this kernel does not describe its types\n".to_string();
    };
    let mut list = String::new();
    let place = Path::new(TRACING).join("kprobe_events");
    for definition in probes::definitions(&types, symbols, cpus, job.probes) {
        let taken = definition.lines.iter().position(|line| files::append(&place, line).is_ok());
        let _ = match taken {
            // Readers of recordings know a probe by this line.
            Some(0) => writeln!(list, "ok {}", definition.lines[0]),
            Some(index) => writeln!(list, "fallback {}", definition.lines[index]),
            None => writeln!(list, "refused {}", definition.lines[0]),
        };
    }
    for group in [RARE_GROUP, GROUP] {
        let _ = set(&format!("events/{group}/enable"), "1");
    }
    list
}

/// Begins to record, into empty buffers.
///
/// # Errors
/// The kernel refuses.
pub fn begin() -> io::Result<()> {
    // Opening it to be cut short empties the buffers.
    fs::File::create(Path::new(TRACING).join("trace"))?;
    set("tracing_on", "1")
}

/// Ends recording.
///
/// # Errors
/// The kernel refuses.
pub fn end() -> io::Result<()> {
    set("tracing_on", "0")
}

/// Leaves a mark in the trace.
pub fn mark(text: &str) {
    let _ = set("trace_marker", text);
}

/// What each CPU's buffer kept and lost.
pub fn statistics() -> String {
    let mut list = String::new();
    let folder = Path::new(TRACING).join("per_cpu");
    for cpu in files::names(&folder) {
        let text = files::text(folder.join(&cpu).join("stats"));
        let told = text.lines().filter(|line| {
            ["entries", "overrun", "commit overrun", "dropped events"]
                .iter()
                .any(|name| line.starts_with(name))
        });
        let _ = writeln!(list, "{cpu} {}", told.collect::<Vec<_>>().join(" "));
    }
    list
}
