//! The workloads that can be named on the command line.

use std::fs;

use fairlab_sim::workload::Workload;
use fairlab_sim::workload::cgroup::{InGroups, USAGE as CGROUP_USAGE};
use fairlab_sim::workload::daemons::{Daemons, Options as DaemonOptions, USAGE as DAEMONS_USAGE};
use fairlab_sim::workload::hackbench::{Hackbench, USAGE as HACKBENCH_USAGE};
use fairlab_sim::workload::jobs::{Jobs, USAGE as JOBS_USAGE};
use fairlab_sim::workload::periodic::{Periodic, USAGE as PERIODIC_USAGE};
use fairlab_sim::workload::pipe::{Pipe, USAGE as PIPE_USAGE};
use fairlab_sim::workload::rtapp::{RtApp, USAGE as RT_APP_USAGE};
use fairlab_sim::workload::schbench::{Schbench, usage as schbench_usage};
use fairlab_sim::workload::spinners::{Spinners, USAGE as SPINNERS_USAGE};
use fairlab_sim::workload::tbench::{Tbench, USAGE as TBENCH_USAGE};
use fairlab_sim::workload::uperf::{USAGE as UPERF_USAGE, Uperf};
use fairlab_sim::workload::vhost::{USAGE as VHOST_USAGE, Vhost};

use crate::LabError;

/// A kind of workload.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadKind {
    /// Its name: the real program's.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// Its options, as text for people.
    pub usage: fn() -> &'static str,
    build: Build,
}

/// From a program's own arguments to the workload, or one line that says what is wrong with them.
type Build = fn(&[String]) -> Result<Box<dyn Workload>, String>;

/// Every workload.
pub const WORKLOADS: &[WorkloadKind] = &[
    WorkloadKind {
        name: "schbench",
        about: "message threads wake workers that think; measures wakeup latency (the program of October 2020)",
        usage: schbench_usage,
        build: |args| Ok(Box::new(Schbench::parse(args)?)),
    },
    WorkloadKind {
        name: "hackbench",
        about: "groups of senders and receivers that all talk to each other (perf bench sched messaging)",
        usage: || HACKBENCH_USAGE,
        build: |args| Ok(Box::new(Hackbench::parse(args)?)),
    },
    WorkloadKind {
        name: "pipe",
        about: "two tasks pass a byte to and fro (perf bench sched pipe)",
        usage: || PIPE_USAGE,
        build: |args| Ok(Box::new(Pipe::parse(args)?)),
    },
    WorkloadKind {
        name: "vhost",
        about: "vhost threads that poll in the kernel until kworkers have run, beside guests' CPUs, in nested groups",
        usage: || VHOST_USAGE,
        build: |args| Ok(Box::new(Vhost::parse(args)?)),
    },
    WorkloadKind {
        name: "tbench",
        about: "clients and servers that answer each other in turn over sockets (tbench, netperf's TCP_RR, context switches)",
        usage: || TBENCH_USAGE,
        build: |args| Ok(Box::new(Tbench::parse(args)?)),
    },
    WorkloadKind {
        name: "uperf",
        about: "chunks streamed between two guests through vhost threads that poll and kworkers (uperf str-readx30k)",
        usage: || UPERF_USAGE,
        build: |args| Ok(Box::new(Uperf::parse(args)?)),
    },
    WorkloadKind {
        name: "jobs",
        about: "jobs that compute, wait for devices, for each other or for their children",
        usage: || JOBS_USAGE,
        build: |args| Ok(Box::new(Jobs::parse(args)?)),
    },
    WorkloadKind {
        name: "periodic",
        about: "tasks that compute at the start of each period; measures how late they begin",
        usage: || PERIODIC_USAGE,
        build: |args| Ok(Box::new(Periodic::parse(args)?)),
    },
    WorkloadKind {
        name: "spinners",
        about: "tasks that only compute, at nice levels and in control groups of given weights; measures who gets how much",
        usage: || SPINNERS_USAGE,
        build: |args| Ok(Box::new(Spinners::parse(args)?)),
    },
    WorkloadKind {
        name: "rt-app",
        about: "threads that run, sleep and wait for each other as a JSON file says",
        usage: || RT_APP_USAGE,
        build: |args| Ok(Box::new(rt_app(args)?)),
    },
    WorkloadKind {
        name: "cgroup",
        about: "another workload in control groups with a weight, a quota, or idle",
        usage: || CGROUP_USAGE,
        build: in_groups,
    },
    WorkloadKind {
        name: "daemons",
        about: "another workload beside control groups whose tasks rarely run",
        usage: || DAEMONS_USAGE,
        build: beside_daemons,
    },
];

fn in_groups(args: &[String]) -> Result<Box<dyn Workload>, String> {
    let (groups, command) = InGroups::parse(args)?;
    let inner = build(command).map_err(|error| error.problem)?;
    Ok(Box::new(InGroups::new(groups, inner)))
}

fn beside_daemons(args: &[String]) -> Result<Box<dyn Workload>, String> {
    let (options, command) = DaemonOptions::parse(args)?;
    let inner = build(command).map_err(|error| error.problem)?;
    Ok(Box::new(Daemons::new(options, inner)))
}

fn rt_app(args: &[String]) -> Result<RtApp, String> {
    let [path] = args else { return Err(format!("one file is needed, and {} are given", args.len())) };
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    RtApp::parse(&text).map_err(|problem| format!("{path}: {problem}"))
}

/// Finds a workload by name.
///
/// # Errors
/// There is none of that name.
pub fn find(name: &str) -> Result<&'static WorkloadKind, LabError> {
    WORKLOADS.iter().find(|kind| kind.name == name).ok_or_else(|| {
        let names = WORKLOADS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ");
        LabError::new(format!("unknown workload '{name}'"), format!("known are {names}"))
    })
}

/// Builds the workload that a command line names: its name, then its own options.
///
/// # Errors
/// The name is unknown or an option is wrong.
pub fn build(command: &[String]) -> Result<Box<dyn Workload>, LabError> {
    let Some((name, args)) = command.split_first() else {
        return Err(LabError::new(
            "no workload is given",
            "name one, such as schbench, with its own options",
        ));
    };
    let kind = find(name)?;
    (kind.build)(args).map_err(|problem| {
        LabError::new(
            format!("{name}: {problem}"),
            format!("'fairlab workloads show {name}' lists its options"),
        )
    })
}
