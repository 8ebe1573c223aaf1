//! Workloads carried out for real, on the kernel that runs: threads, futexes, pipes, sockets, control groups.
//!
//! The programs whose system calls matter are their own: schbench, hackbench, `perf bench sched pipe`, tbench. Every other workload
//! is the model's, step by step, with each of its actions carried out by a thread of its own ([`executor`]). Options and
//! what is printed are the model's own code, so that both worlds are asked and answer in the same words.
//!
//! Must not know: the engine, traces, how a result reaches a user. It is linked into the program that runs as the first
//! process of a booted kernel, so it depends on little.

mod arrays;
pub mod calibrate;
mod cgroup;
mod clock;
pub mod executor;
mod forked;
mod futex;
mod gate;
mod hackbench;
mod messages;
mod pipe;
mod processes;
pub mod rtapp;
mod schbench;
mod system;
mod tbench;
#[cfg(test)]
mod testbed;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use fairlab_event::Ns;
use fairlab_sim::workload::Workload;
use fairlab_sim::workload::cgroup::InGroups;
use rustix::thread::CpuSet;
use serde_json::{Value, json};

pub use clock::{Clock, ComputePace};
pub use forked::{ProcessGroupGuard, die_with_this_thread};
pub use system::switches_of_children;

/// The variable in which a recorder names the file that takes remarks ([`LiveConditions::marker`]) to a command that it records.
pub const MARKER_VARIABLE: &str = "FAIRLAB_TRACE_MARKER";

/// How a workload is carried out.
#[derive(Clone, Copy, Debug)]
pub struct LiveConditions<'a> {
    /// The root seed of the workload's own randomness.
    pub seed: u64,
    /// When to stop a workload that has not ended by itself.
    pub duration: Option<Ns>,
    /// Set by somebody else to stop it early. A signal makes the calling thread look at it at once.
    pub stop: &'a AtomicBool,
    /// Where a recording takes remarks (tracefs' `trace_marker`): told of each control group that is made.
    pub marker: Option<&'a Path>,
}

/// What came of a workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveReport {
    /// What the real program prints, all of it.
    pub output: String,
    /// What the workload counts: (name of the unit, how many).
    pub progress: Option<(String, u64)>,
    /// Numbers of the program's own: (name with its unit last, value).
    pub metrics: Vec<(String, f64)>,
    /// How long it took.
    pub elapsed: Ns,
}

impl LiveReport {
    /// The report for programs; [`LiveReport::from_json`] reads it back.
    pub fn to_json(&self) -> Value {
        let metrics = self
            .metrics
            .iter()
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect::<serde_json::Map<_, _>>();
        json!({
            "schema": "fairlab/live/1",
            "output": self.output,
            "unit": self.progress.as_ref().map(|(unit, _)| unit),
            "count": self.progress.as_ref().map(|(_, count)| count),
            "metrics": metrics,
            "elapsed_ns": self.elapsed.0,
        })
    }

    /// What [`LiveReport::to_json`] gave; `None` for anything else.
    pub fn from_json(value: &Value) -> Option<LiveReport> {
        let metric = |(name, value): (&String, &Value)| Some((name.clone(), value.as_f64()?));
        Some(LiveReport {
            output: value.get("output")?.as_str()?.to_string(),
            progress: value["unit"].as_str().map(str::to_string).zip(value["count"].as_u64()),
            metrics: value.get("metrics")?.as_object()?.iter().map(metric).collect::<Option<_>>()?,
            elapsed: Ns(value.get("elapsed_ns")?.as_u64()?),
        })
    }
}

/// The CPUs that the calling thread may use, in their order.
pub fn allowed_cpus() -> Vec<usize> {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect()
}

/// The model's workload of a name with its arguments: whoever calls knows them all.
pub type BuildWorkload<'b> = &'b dyn Fn(&[String]) -> Result<Box<dyn Workload>, String>;

/// Carries a workload out: its name, then its own options. Calls `print` with what the real program prints, when it does.
/// What has no program of its own here is built by `build` and carried out action by action.
///
/// # Errors
/// One line that says what is wrong: an option, or what this kernel or this user cannot do.
pub fn carry_out(
    command: &[String],
    conditions: &LiveConditions<'_>,
    build: BuildWorkload<'_>,
    print: &mut dyn FnMut(&str),
) -> Result<LiveReport, String> {
    let (name, args) = command.split_first().ok_or("no workload is given")?;
    let called = |problem: String| format!("{name}: {problem}");
    match name.as_str() {
        "schbench" => schbench::run(args, conditions, print).map_err(called),
        "hackbench" => hackbench::run(args, conditions, print).map_err(called),
        "pipe" => pipe::run(args, conditions, print).map_err(called),
        "tbench" => tbench::run(args, conditions, print).map_err(called),
        "cgroup" => {
            let (groups, inner) = InGroups::parse(args).map_err(called)?;
            let made = cgroup::CgroupFolders::create(&groups, conditions.marker).map_err(called)?;
            made.enter(groups.len() - 1).map_err(called)?;
            carry_out(inner, conditions, build, print)
        }
        "uperf" => Err(called("it models kernel threads, which cannot be started".to_string())),
        _ => {
            let report = executor::carry_out(build(command)?, conditions).map_err(called)?;
            print(&report.output);
            Ok(report)
        }
    }
}
