//! The workloads that can be named, each with its options.
//!
//! Must not know: files; the caller reads those that a workload names.

use std::fmt;
use std::sync::Arc;

use super::arguments::CommandLine;
use super::cgroup::{InGroups, USAGE as CGROUP_USAGE};
use super::daemons::{Daemons, DaemonsOptions as DaemonOptions};
use super::hackbench::Hackbench;
use super::jobs::Jobs;
use super::mix::{self, USAGE as MIX_USAGE};
use super::periodic::Periodic;
use super::pipe::PipeBench;
use super::random::RandomWorkload;
use super::replay::{Replay, Script};
use super::rtapp::RtApp;
use super::schbench::Schbench;
use super::schbench2::{Schbench2, Schbench2Options};
use super::sessions::{Sessions, USAGE as SESSIONS_USAGE};
use super::spinners::Spinners;
use super::stream::StreamBench;
use super::tasks::{TasksWorkload, USAGE as TASKS_USAGE};
use super::tbench::Tbench;
use super::uperf::Uperf;
use super::vhost::Vhost;
use super::{
    Workload, daemons, hackbench, jobs, periodic, pipe, random, replay, rtapp, schbench, schbench2, spinners,
    stream, tbench, uperf, vhost,
};

/// Gives what is in the files that a workload names, or one line that says why it cannot be had.
pub trait WorkloadFiles {
    /// A file's text.
    ///
    /// # Errors
    /// It cannot be read.
    fn text(&self, path: &str) -> Result<String, String>;

    /// What the tasks of a recording did: where recordings cannot be read, their script as text.
    ///
    /// # Errors
    /// It cannot be read, or is none.
    fn script(&self, path: &str) -> Result<Arc<Script>, String> {
        let script = Script::parse(&self.text(path)?);
        script.map(Arc::new).map_err(|problem| format!("{path}: {problem}"))
    }

    /// In how many files, one in the other, the name stands that is asked for.
    fn depth(&self) -> usize {
        0
    }
}

impl<F: Fn(&str) -> Result<String, String>> WorkloadFiles for F {
    fn text(&self, path: &str) -> Result<String, String> {
        self(path)
    }
}

/// A kind of workload.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadKind {
    /// Its name: the real program's.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// Its options.
    pub line: &'static dyn CommandLine,
    /// The metric that it is run for; `None`: that of the workload inside.
    pub headline: Option<&'static str>,
    build: BuildByArguments,
}

/// From a program's own arguments to the workload, or one line that says what is wrong with them.
type BuildByArguments = fn(&[String], &dyn WorkloadFiles) -> Result<Box<dyn Workload>, String>;

/// How long who was woken waits.
const WAKEUPS: &str = "wakeup_latency_ns_p99";

/// How much work is done.
const WORK: &str = "throughput";

/// Every workload.
pub const WORKLOADS: &[WorkloadKind] = &[
    WorkloadKind {
        name: "schbench",
        about: "message threads wake workers that think; measures wakeup latency (the program of October 2020)",
        line: &schbench::PROGRAM,
        headline: Some(WAKEUPS),
        build: either_schbench,
    },
    WorkloadKind {
        name: "schbench2",
        about: "schbench since 2023: requests of sleep and matrix arithmetic under a lock of the CPU; measures requests per second",
        line: &schbench2::PROGRAM,
        headline: Some("schbench_average_rps"),
        build: |args, _| Ok(Box::new(Schbench2::parse(args)?)),
    },
    WorkloadKind {
        name: "hackbench",
        about: "groups of senders and receivers that all talk to each other (perf bench sched messaging)",
        line: &hackbench::PROGRAM,
        headline: Some(WORK),
        build: |args, _| Ok(Box::new(Hackbench::parse(args)?)),
    },
    WorkloadKind {
        name: "pipe",
        about: "two tasks pass a byte to and fro (perf bench sched pipe)",
        line: &pipe::PROGRAM,
        headline: Some(WORK),
        build: |args, _| Ok(Box::new(PipeBench::parse(args)?)),
    },
    WorkloadKind {
        name: "vhost",
        about: "vhost threads that poll in the kernel until kworkers have run, beside guests' CPUs, in nested groups",
        line: &vhost::PROGRAM,
        headline: Some(WORK),
        build: |args, _| Ok(Box::new(Vhost::parse(args)?)),
    },
    WorkloadKind {
        name: "tbench",
        about: "clients and servers that answer each other in turn over sockets (tbench, netperf's TCP_RR, context switches)",
        line: &tbench::PROGRAM,
        headline: Some(WORK),
        build: |args, _| Ok(Box::new(Tbench::parse(args)?)),
    },
    WorkloadKind {
        name: "stream",
        about: "threads that walk through large arrays, loop by loop (STREAM with OpenMP); measures bandwidth, on machines that say theirs",
        line: &stream::PROGRAM,
        headline: Some("megabytes_per_s"),
        build: |args, _| Ok(Box::new(StreamBench::parse(args)?)),
    },
    WorkloadKind {
        name: "uperf",
        about: "chunks streamed between two guests through vhost threads that poll and kworkers (uperf str-readx30k)",
        line: &uperf::PROGRAM,
        headline: Some(WORK),
        build: |args, _| Ok(Box::new(Uperf::parse(args)?)),
    },
    WorkloadKind {
        name: "jobs",
        about: "jobs that compute, wait for devices, for each other or for their children",
        line: &jobs::PROGRAM,
        headline: Some(WORK),
        build: |args, _| Ok(Box::new(Jobs::parse(args)?)),
    },
    WorkloadKind {
        name: "sessions",
        about: "users' programs in control groups of their own, with few tasks or many",
        line: &SESSIONS_USAGE,
        headline: Some(WORK),
        build: |args, _| Ok(Box::new(Sessions::parse(args)?)),
    },
    WorkloadKind {
        name: "rt-app",
        about: "threads that run, sleep and wait for each other as a JSON file says",
        line: &rtapp::PROGRAM,
        headline: Some(WAKEUPS),
        build: |args, files| Ok(Box::new(RtApp::from_args(args, files)?)),
    },
    WorkloadKind {
        name: "tasks",
        about: "tasks that a TOML file says by their steps: locks, queues, faults, pipelines, pools; measures replies and their latency",
        line: &TASKS_USAGE,
        headline: Some(WORK),
        build: |args, files| Ok(Box::new(tasks(args, files)?)),
    },
    WorkloadKind {
        name: "replay",
        about: "what the tasks of a recording did, each again: computing, sleeping, waking others",
        line: &replay::PROGRAM,
        headline: Some(WAKEUPS),
        build: |args, files| Ok(Box::new(Replay::parse(args, files)?)),
    },
    WorkloadKind {
        name: "periodic",
        about: "tasks that compute at the start of each period; measures how late they begin",
        line: &periodic::PROGRAM,
        headline: Some("periodic_lateness_us_p99"),
        build: |args, _| Ok(Box::new(Periodic::parse(args)?)),
    },
    WorkloadKind {
        name: "spinners",
        about: "tasks that compute, and may sleep, at nice levels and in control groups of given weights; measures each group's share",
        line: &spinners::PROGRAM,
        headline: Some(WORK),
        build: |args, _| Ok(Box::new(Spinners::parse(args)?)),
    },
    WorkloadKind {
        name: "random",
        about: "threads that do whatever a thread can do, by chance: to find where schedulers differ",
        line: &random::PROGRAM,
        headline: Some(WORK),
        build: |args, _| Ok(Box::new(RandomWorkload::parse(args)?)),
    },
    WorkloadKind {
        name: "cgroup",
        about: "another workload in control groups with a weight, a quota, or idle",
        line: &CGROUP_USAGE,
        headline: None,
        build: in_groups,
    },
    WorkloadKind {
        name: "mix",
        about: "several workloads side by side, each in its control group, policy, nice level and CPUs, as a TOML file says",
        line: &MIX_USAGE,
        headline: None,
        build: mix::parse,
    },
    WorkloadKind {
        name: "daemons",
        about: "another workload beside control groups whose tasks rarely run",
        line: &daemons::PROGRAM,
        headline: None,
        build: beside_daemons,
    },
];

/// The program of 2020, unless an option says that the later one is meant.
fn either_schbench(args: &[String], _: &dyn WorkloadFiles) -> Result<Box<dyn Workload>, String> {
    match Schbench2Options::says_so(args) {
        true => Ok(Box::new(Schbench2::parse(args)?)),
        false => Ok(Box::new(Schbench::parse(args)?)),
    }
}

fn in_groups(args: &[String], files: &dyn WorkloadFiles) -> Result<Box<dyn Workload>, String> {
    let (groups, command) = InGroups::parse(args)?;
    let inner = build(command, files).map_err(|error| error.to_string())?;
    Ok(Box::new(InGroups::new(groups, inner)))
}

fn beside_daemons(args: &[String], files: &dyn WorkloadFiles) -> Result<Box<dyn Workload>, String> {
    let (options, command) = DaemonOptions::parse(args)?;
    let inner = build(command, files).map_err(|error| error.to_string())?;
    Ok(Box::new(Daemons::new(options, inner)))
}

fn one_file<'a>(args: &'a [String], usage: &str) -> Result<&'a str, String> {
    match args {
        [word] if ["-h", "--help"].contains(&word.as_str()) => Err(usage.to_string()),
        [path] => Ok(path),
        _ => Err(format!("one file is needed, and {} are given", args.len())),
    }
}

fn tasks(args: &[String], files: &dyn WorkloadFiles) -> Result<TasksWorkload, String> {
    let path = one_file(args, TASKS_USAGE)?;
    TasksWorkload::from_text(&files.text(path)?).map_err(|problem| format!("{path}: {problem}"))
}

/// Why a workload cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// Nothing is named.
    Nothing,
    /// There is none of this name.
    Unknown(String),
    /// A workload's option is wrong.
    Wrong {
        /// The workload.
        name: String,
        /// What is wrong.
        problem: String,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Nothing => f.write_str("no workload is given"),
            BuildError::Unknown(name) => write!(f, "unknown workload '{name}'"),
            BuildError::Wrong { name, problem } => write!(f, "{name}: {problem}"),
        }
    }
}

/// Finds a workload by name. The name of a TOML file is that of the mix which it says.
pub fn find(name: &str) -> Option<&'static WorkloadKind> {
    let name = if is_file(name) { "mix" } else { name };
    WORKLOADS.iter().find(|kind| kind.name == name)
}

/// Whether the first word of a command line is a mix's file.
fn is_file(name: &str) -> bool {
    name.ends_with(".toml")
}

/// A command line whose first word is the workload's own name.
pub fn spelled_out(command: &[String]) -> Vec<String> {
    let mix = command.first().filter(|name| is_file(name)).map(|_| "mix".to_string());
    mix.into_iter().chain(command.iter().cloned()).collect()
}

/// The kind of workload of a command line, and its arguments.
fn kind_of(command: &[String]) -> Result<(&'static WorkloadKind, &[String]), BuildError> {
    let (name, args) = command.split_first().ok_or(BuildError::Nothing)?;
    let kind = find(name).ok_or_else(|| BuildError::Unknown(name.clone()))?;
    Ok((kind, if is_file(name) { command } else { args }))
}

/// The metric that the workload of a command line is run for; `None` where there is no such workload.
pub fn headline(command: &[String], files: &dyn WorkloadFiles) -> Option<&'static str> {
    let (kind, args) = kind_of(command).ok()?;
    kind.headline.or_else(|| match kind.name {
        "cgroup" => headline(InGroups::parse(args).ok()?.1, files),
        "daemons" => headline(DaemonOptions::parse(args).ok()?.1, files),
        _ if args.is_empty() => None,
        _ => mix::headline_command(args, files).map_or(Some(WORK), |command| headline(&command, files)),
    })
}

/// Builds the workload that a command line names: its name, then its own options.
///
/// # Errors
/// The name is unknown or an option is wrong.
pub fn build(command: &[String], files: &dyn WorkloadFiles) -> Result<Box<dyn Workload>, BuildError> {
    let (kind, args) = kind_of(command)?;
    (kind.build)(args, files).map_err(|problem| BuildError::Wrong { name: kind.name.to_string(), problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_workload_is_run_for_something() {
        let files = |path: &str| match path {
            "a/b.toml" => {
                Ok("[[workload]]\nrun = 'pipe'\n[[workload]]\nrun = 'periodic'\nmain = true".to_string())
            }
            _ => Err(format!("{path}: there is none")),
        };
        let of = |line: &str| headline(&line.split(' ').map(String::from).collect::<Vec<_>>(), &files);
        for kind in WORKLOADS {
            let inside = ["cgroup", "daemons", "mix"].contains(&kind.name);
            assert_eq!(of(kind.name).is_none(), inside, "{}", kind.name);
        }
        assert_eq!(of("schbench -t 4"), Some("wakeup_latency_ns_p99"));
        assert_eq!(of("pipe"), Some("throughput"));
        assert_eq!(of("mix --beside pipe schbench -t 4"), Some("wakeup_latency_ns_p99"));
        assert_eq!([of("a/b.toml"), of("mix a/b.toml")], [Some("periodic_lateness_us_p99"); 2]);
        assert_eq!((of("frames"), of("")), (None, None));
    }
}
