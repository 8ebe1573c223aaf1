//! `fairlab/summary/1`: the sums of a trace as programs read it.
//!
//! Must not know: how sums come about.

use std::collections::BTreeMap;

use fairlab_event::{Comm, Pid, System};
use serde::{Serialize, Serializer};

use super::{
    Censored, CpuTime, Migrations, QueueDepths, SummaryReport, SwitchCounts, SwitchPair, TaskWaitSummary,
    Unconserved, ValueSpread,
};
use crate::blame::report::BlameReport;
use crate::counts::NameCounts;
use crate::task_selector::TaskSelector;
use crate::tracker::WaitCause;

/// The sums.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "schema", rename = "fairlab/summary/1")]
pub struct SummaryAnswer {
    /// The first event.
    pub start_ns: u64,
    /// The latest event.
    pub end_ns: u64,
    /// How many events there are.
    pub events: u64,
    /// The kernel and the machine; null where nothing is known.
    pub system: SystemAnswer,
    /// Wakeup latencies of all tasks.
    pub wakeup_latency: SpreadAnswer,
    /// First waits of new tasks.
    pub fork_wait: SpreadAnswer,
    /// Preemption waits.
    pub preemption_wait: SpreadAnswer,
    /// Waits for the quota of a group.
    pub throttled_wait: SpreadAnswer,
    /// How groups were throttled; null: the trace does not show it.
    pub throttling: Option<ThrottlingAnswer>,
    /// Waits across holes, which are not measured.
    pub waits_across_losses: u64,
    /// At how many places events were lost.
    pub losses: u32,
    /// By name, the longest wait first.
    pub comms: Vec<TaskAnswer>,
    /// By task, the longest wait first.
    pub tasks: Vec<TaskAnswer>,
    /// Whom the names that waited most waited behind, each as in `fairlab/blame/1`, the longest first.
    pub waiting: Vec<BlameReport>,
    /// By name, names that differ only in a number at their end as one, and by control group: every metric of docs/metrics.md.
    pub by_name: Vec<NameSummaryAnswer>,
    /// How tasks left their CPUs.
    pub switches: SwitchesAnswer,
    /// How tasks were moved.
    pub migrations: MigrationsAnswer,
    /// The share of the CPUs' known time that they idled.
    pub idle_share: Option<f64>,
    /// The idle share of all CPUs, with bounds for unknown time.
    pub idle_share_of_all_cpus: Option<BoundsAnswer>,
    /// Every CPU.
    pub cpus: Vec<CpuAnswer>,
    /// Runqueue depths of all CPUs; null where only some of the tasks are chosen.
    pub runqueue_depth: Option<DepthAnswer>,
    /// Work left undone, the machine first.
    pub unconserved: Vec<UnconservedAnswer>,
    /// Which tasks follow which.
    pub switch_pairs: Vec<PairAnswer>,
    /// How much too low these counts may be.
    pub switch_pairs_too_low_by_up_to: u64,
    /// Waits that go on when the trace ends.
    pub still_waiting: Vec<WaitingAnswer>,
    /// Events earlier than one before them.
    pub late_events: u64,
    /// Switches away from another task than the one that ran.
    pub switch_gaps: u64,
}

/// What is known of the kernel and the machine; null where nothing is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SystemAnswer {
    /// How the trace came about.
    pub origin: Option<String>,
    /// The kernel's name.
    pub kernel: Option<String>,
    /// The seed of a run.
    pub seed: Option<u64>,
    /// Ticks a second.
    pub hz: Option<u64>,
    /// The kernel's release.
    pub release: Option<String>,
    /// The host's name.
    pub node: Option<String>,
    /// The architecture.
    pub architecture: Option<String>,
    /// How many CPUs there are.
    pub cpus: Option<u32>,
    /// What CPUs share, a line each.
    pub topology: Vec<String>,
    /// Control groups, a line each.
    pub groups: Vec<String>,
}

/// A distribution of times.
#[derive(Clone, Debug, PartialEq)]
pub struct SpreadAnswer(ValueSpread);

/// How groups were throttled that had used up their quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ThrottlingAnswer {
    /// How often.
    pub nr_throttled: u64,
    /// For how long in all.
    pub throttled_ns: u64,
    /// No probe tells of it: it is concluded.
    pub concluded: bool,
}

/// One task, or all tasks of one name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskAnswer {
    /// Its name.
    pub comm: String,
    /// Its id; null for several tasks.
    pub pid: Option<i32>,
    /// How many tasks there are.
    pub tasks: u64,
    /// Its wakeup latencies.
    pub wakeup_latency: SpreadAnswer,
    /// Its first wait.
    pub fork_wait: SpreadAnswer,
    /// Its preemption waits.
    pub preemption_wait: SpreadAnswer,
    /// Its waits for the quota of a group.
    pub throttled_wait: SpreadAnswer,
    /// Its waits across holes.
    pub waits_across_losses: u64,
    /// How long it ran.
    pub run_ns: u64,
    /// Of that, in stays that the trace does not show whole.
    pub run_cut_ns: u64,
    /// How it left its CPU.
    pub switches: SwitchesAnswer,
    /// How often it was moved.
    pub migrations: u64,
}

/// The tasks of one name, or of a control group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NameSummaryAnswer {
    /// `task`, `pid`, `group` or `workload`.
    pub kind: &'static str,
    /// What they are called.
    pub name: String,
    /// How many tasks there are.
    pub tasks: u64,
    /// For how long they ran.
    pub run_ns: u64,
    /// For how long they were runnable and did not run.
    pub wait_ns: u64,
    /// Every metric by name.
    pub metrics: BTreeMap<String, f64>,
}

impl NameSummaryAnswer {
    fn of(who: &TaskSelector, counts: &NameCounts, observed_ns: u64) -> NameSummaryAnswer {
        let kind = match who {
            TaskSelector::Task(_) => "task",
            TaskSelector::Pid(_) => "pid",
            TaskSelector::Group(_) => "group",
            TaskSelector::Workload(_) => "workload",
        };
        let NameCounts { tasks, run_ns, wait_ns, .. } = *counts;
        let metrics = counts.metrics(observed_ns).into_iter().collect();
        NameSummaryAnswer { kind, name: who.to_string(), tasks, run_ns, wait_ns, metrics }
    }
}

/// How often tasks left their CPU, by how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SwitchesAnswer {
    /// All of them.
    pub total: u64,
    /// The task blocked or exited.
    pub voluntary: u64,
    /// It stayed runnable.
    pub involuntary: u64,
    /// It blocked.
    pub slept: u64,
    /// It exited.
    pub exited: u64,
    /// Preempted inside the kernel.
    pub preempted_in_kernel: u64,
    /// Preempted on the way to user mode.
    pub preempted_to_user: u64,
    /// It yielded.
    pub yielded: u64,
    /// It stayed runnable; the trace does not tell why it left.
    pub left_runnable: u64,
}

/// How often tasks were moved to another CPU, by what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MigrationsAnswer {
    /// All of them.
    pub total: u64,
    /// Its wakeup chose another CPU.
    pub wakeup: u64,
    /// A new task began on another CPU than its creator's: that is no migration.
    pub fork: u64,
    /// The task asked for it.
    pub asked: u64,
    /// Balancing moved it.
    pub balance: u64,
    /// Which balancing.
    pub balance_by: BalanceAnswer,
}

/// How often balancing moved tasks, by its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BalanceAnswer {
    /// The periodic or the NOHZ balancer.
    pub softirq: u64,
    /// The balancer of a CPU about to idle.
    pub new_idle: u64,
    /// The stopper.
    pub stopper: u64,
    /// Something else, or the trace does not tell.
    pub other: u64,
}

/// Between what a share lies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BoundsAnswer {
    /// At least this.
    pub least: f64,
    /// At most this.
    pub most: f64,
}

/// The time of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CpuAnswer {
    /// Which.
    pub cpu: u32,
    /// For how long it is known what it did.
    pub observed_ns: u64,
    /// For how long it idled.
    pub idle_ns: u64,
    /// The share of that.
    pub idle_share: Option<f64>,
    /// Switches on it.
    pub switches: u64,
    /// The mean depth of its runqueue.
    pub runqueue_depth_mean: f64,
    /// The greatest.
    pub runqueue_depth_max: u32,
}

/// Runqueue depths of all CPUs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DepthAnswer {
    /// For how long depths are known.
    pub observed_ns: u64,
    /// The mean depth.
    pub mean: f64,
    /// The greatest.
    pub max: u32,
    /// For how long queues had each depth.
    pub time_at_depth_ns: Vec<u64>,
}

/// How long some CPUs left work undone.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnconservedAnswer {
    /// What they are called.
    pub within: String,
    /// Which they are.
    pub cpus: Vec<u32>,
    /// For how long one idled while a task waited on another.
    pub unconserved_ns: u64,
    /// The share of the whole time.
    pub unconserved_share: Option<f64>,
    /// CPU time lost.
    pub cpu_time_lost_ns: u64,
}

/// A task in few words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WhoAnswer {
    /// Its name.
    pub comm: String,
    /// Its id.
    pub pid: i32,
}

/// How often a task followed another on a CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PairAnswer {
    /// The task that left.
    pub prev: WhoAnswer,
    /// The task that came.
    pub next: WhoAnswer,
    /// How often.
    pub count: u64,
}

/// A task that still waits when the trace ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WaitingAnswer {
    /// Its name.
    pub comm: String,
    /// Its id.
    pub pid: i32,
    /// The CPU on which it is queued, if it is.
    pub cpu: Option<u32>,
    /// Since when.
    pub since_ns: u64,
    /// For how long up to the trace's end.
    pub so_far_ns: u64,
    /// `wakeup`, `fork`, or `preemption`.
    pub kind: &'static str,
    /// Events were lost meanwhile.
    pub events_lost_meanwhile: bool,
}

impl Serialize for SpreadAnswer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("count", &self.0.total())?;
        map.serialize_entry("sum_ns", &self.0.sum())?;
        map.serialize_entry("mean_ns", &self.0.mean())?;
        map.serialize_entry("min_ns", &self.0.min())?;
        for percentile in self.0.percentiles() {
            let (whole, tenth) = (percentile.per_mille / 10, percentile.per_mille % 10);
            let name = if tenth == 0 { format!("p{whole}_ns") } else { format!("p{whole}.{tenth}_ns") };
            map.serialize_entry(&name, &percentile.value)?;
        }
        map.serialize_entry("max_ns", &self.0.max())?;
        map.end()
    }
}

impl From<&SummaryReport> for SummaryAnswer {
    fn from(report: &SummaryReport) -> SummaryAnswer {
        let spread = |spread: &ValueSpread| SpreadAnswer(spread.clone());
        let throttling = report.throttling.map(|sums| ThrottlingAnswer {
            nr_throttled: sums.count,
            throttled_ns: sums.time.0,
            concluded: sums.is_concluded,
        });
        SummaryAnswer {
            start_ns: report.start.0,
            end_ns: report.end.0,
            events: report.events,
            system: SystemAnswer::from(&report.system),
            wakeup_latency: spread(&report.all.wakeups),
            fork_wait: spread(&report.all.forks),
            preemption_wait: spread(&report.all.preemptions),
            throttled_wait: spread(&report.all.throttled),
            throttling,
            waits_across_losses: report.all.crossed,
            losses: report.losses,
            comms: report.comms.iter().map(TaskAnswer::from).collect(),
            waiting: report.waiting.clone(),
            tasks: report.tasks.iter().map(TaskAnswer::from).collect(),
            by_name: report
                .by_name
                .iter()
                .map(|(who, counts)| NameSummaryAnswer::of(who, counts, report.span().0))
                .collect(),
            switches: report.switches.into(),
            migrations: report.migrations.into(),
            idle_share: report.idle_share(),
            idle_share_of_all_cpus: report
                .tells_cpus
                .then(|| report.idle_bounds())
                .flatten()
                .map(|(least, most)| BoundsAnswer { least, most }),
            cpus: report.cpus.iter().map(CpuAnswer::from).collect(),
            runqueue_depth: report.tells_cpus.then(|| DepthAnswer::from(&report.depths)),
            unconserved: report.unconserved.iter().map(|part| UnconservedAnswer::of(part, report)).collect(),
            switch_pairs: report.pairs.iter().map(PairAnswer::from).collect(),
            switch_pairs_too_low_by_up_to: report.pairs_floor,
            still_waiting: report.censored.iter().map(WaitingAnswer::from).collect(),
            late_events: report.late_events,
            switch_gaps: report.switch_gaps,
        }
    }
}

impl From<&System> for SystemAnswer {
    fn from(system: &System) -> SystemAnswer {
        let known = |text: &String| (!text.is_empty()).then(|| text.clone());
        SystemAnswer {
            origin: known(&system.origin),
            kernel: known(&system.kernel),
            seed: system.seed,
            hz: system.hz,
            release: known(&system.release),
            node: known(&system.node),
            architecture: known(&system.architecture),
            cpus: system.cpus,
            topology: system.topology.clone(),
            groups: system.groups.clone(),
        }
    }
}

impl From<&TaskWaitSummary> for TaskAnswer {
    fn from(row: &TaskWaitSummary) -> TaskAnswer {
        TaskAnswer {
            comm: row.comm.to_str().into_owned(),
            pid: row.pid.map(|pid| pid.0),
            tasks: row.tasks,
            wakeup_latency: SpreadAnswer(row.waits.wakeups.clone()),
            fork_wait: SpreadAnswer(row.waits.forks.clone()),
            preemption_wait: SpreadAnswer(row.waits.preemptions.clone()),
            throttled_wait: SpreadAnswer(row.waits.throttled.clone()),
            waits_across_losses: row.waits.crossed,
            run_ns: row.run.0,
            run_cut_ns: row.run_cut.0,
            switches: row.switches.into(),
            migrations: row.migrations,
        }
    }
}

impl From<SwitchCounts> for SwitchesAnswer {
    fn from(switches: SwitchCounts) -> SwitchesAnswer {
        SwitchesAnswer {
            total: switches.total(),
            voluntary: switches.voluntary(),
            involuntary: switches.involuntary(),
            slept: switches.slept,
            exited: switches.exited,
            preempted_in_kernel: switches.preempted_in_kernel,
            preempted_to_user: switches.preempted,
            yielded: switches.yielded,
            left_runnable: switches.left_runnable,
        }
    }
}

impl From<Migrations> for MigrationsAnswer {
    fn from(migrations: Migrations) -> MigrationsAnswer {
        let Migrations { softirq, new_idle, stopper, other, .. } = migrations;
        MigrationsAnswer {
            total: migrations.total(),
            wakeup: migrations.wakeup,
            fork: migrations.fork,
            asked: migrations.asked,
            balance: migrations.balance(),
            balance_by: BalanceAnswer { softirq, new_idle, stopper, other },
        }
    }
}

impl From<&CpuTime> for CpuAnswer {
    fn from(cpu: &CpuTime) -> CpuAnswer {
        CpuAnswer {
            cpu: cpu.cpu.0,
            observed_ns: cpu.observed.0,
            idle_ns: cpu.idle.0,
            idle_share: (cpu.observed.0 > 0).then(|| cpu.idle.0 as f64 / cpu.observed.0 as f64),
            switches: cpu.switches,
            runqueue_depth_mean: cpu.depth_mean,
            runqueue_depth_max: cpu.depth_max,
        }
    }
}

impl From<&QueueDepths> for DepthAnswer {
    fn from(depths: &QueueDepths) -> DepthAnswer {
        DepthAnswer {
            observed_ns: depths.observed.0,
            mean: depths.mean,
            max: depths.max,
            time_at_depth_ns: depths.at.iter().map(|time| time.0).collect(),
        }
    }
}

impl UnconservedAnswer {
    fn of(part: &Unconserved, report: &SummaryReport) -> UnconservedAnswer {
        let span = report.span().0;
        UnconservedAnswer {
            within: part.scope.name.clone(),
            cpus: part.scope.cpus.iter().map(|cpu| cpu.0).collect(),
            unconserved_ns: part.time.0,
            unconserved_share: (span > 0).then(|| part.time.0 as f64 / span as f64),
            cpu_time_lost_ns: part.cpu_time.0,
        }
    }
}

impl From<&SwitchPair> for PairAnswer {
    fn from(pair: &SwitchPair) -> PairAnswer {
        let who = |(comm, pid): (Comm, Pid)| WhoAnswer { comm: comm.to_str().into_owned(), pid: pid.0 };
        PairAnswer { prev: who(pair.prev), next: who(pair.next), count: pair.count }
    }
}

impl From<&Censored> for WaitingAnswer {
    fn from(wait: &Censored) -> WaitingAnswer {
        WaitingAnswer {
            comm: wait.comm.to_str().into_owned(),
            pid: wait.pid.0,
            cpu: wait.cpu.map(|cpu| cpu.0),
            since_ns: wait.since.0,
            so_far_ns: wait.so_far.0,
            kind: match wait.cause {
                WaitCause::Wakeup => "wakeup",
                WaitCause::New => "fork",
                _ => "preemption",
            },
            events_lost_meanwhile: wait.crossed_loss,
        }
    }
}
