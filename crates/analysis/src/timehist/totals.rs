//! Sums over the rows of each task and each CPU: the summary.
//!
//! Must not know: how it is printed.

use fairlab_event::{Cpu, Ns, Pid};

use super::history::{CpuStay, OffCpu, ReadyBy};
use super::{Label, UnmeasuredParts};

/// The sums of one task, or of one CPU's idle task.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StayTotals {
    pub(super) count: u64,
    /// Of these, those whose length is known.
    measured: u64,
    run: Ns,
    run_min: Option<Ns>,
    run_max: Ns,
    /// Mean and sum of squared deviations of run times, updated stay by stay (Welford).
    mean: f64,
    deviations: f64,
    off: OffCpu,
    delay: Ns,
    /// Stays that are not wholly known, since events were lost.
    pub(super) crossed: u64,
    pub(super) migrations: u64,
}

/// What one task did.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSummary {
    /// The task.
    pub label: Label,
    /// The thread that created it, where the trace tells.
    pub parent: Option<Pid>,
    /// How often it was switched out.
    pub count: u64,
    /// Time on CPUs.
    pub run: Ns,
    /// The shortest stay.
    pub run_min: Ns,
    /// The average stay.
    pub run_mean: Ns,
    /// The longest stay.
    pub run_max: Ns,
    /// Standard error of the average stay, as a percentage of it.
    pub run_deviation_percent: f64,
    /// Time off the CPU before its stays.
    pub off: OffCpu,
    /// Time between being ready to run and running.
    pub delay: Ns,
    /// Stays whose length, or the wait before, is not measured since events were lost meanwhile.
    pub crossed: u64,
    /// `sched_migrate_task` events.
    pub migrations: u64,
}

/// How long a CPU idled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuSummary {
    /// Which.
    pub cpu: Cpu,
    /// How often it switched tasks; 0: nothing is known of it.
    pub switches: u64,
    /// For how long it idled.
    pub idle: Ns,
}

/// The sums of all rows.
#[derive(Clone, Debug, PartialEq)]
pub struct TimehistSummary {
    /// Every task that was switched out, the one that ran longest first. A task that exited keeps its sums.
    pub tasks: Vec<TaskSummary>,
    /// Every CPU up to the highest that switched tasks, in order. Empty when a filter left tasks out: it leaves out the rows of
    /// idle tasks, too.
    pub cpus: Vec<CpuSummary>,
    /// Rows, those of the idle tasks among them.
    pub switches: u64,
    /// Time on CPUs, all tasks.
    pub run: Ns,
    /// From the first row to the last.
    pub span: Ns,
    /// CPUs that switched tasks.
    pub nr_cpus: usize,
    /// Stays of tasks that are not wholly measured, since events were lost meanwhile.
    pub crossed: u64,
    /// What is missing because the trace lacks it, one clause each.
    pub notices: Vec<String>,
}

impl StayTotals {
    /// Adds a stay; of what events were lost in, only that it was.
    pub(super) fn add(&mut self, stay: &CpuStay, crossed: UnmeasuredParts, by: ReadyBy) {
        let add = |sum: &mut Ns, part: Ns| *sum = sum.saturating_add(part);
        self.count += 1;
        self.crossed += u64::from(crossed != UnmeasuredParts::default());
        if !crossed.run {
            self.add_run(stay.run);
        }
        add(&mut self.off.sleep, stay.off.sleep);
        add(&mut self.off.iowait, stay.off.iowait);
        add(&mut self.off.preempt, stay.off.preempt);
        add(&mut self.delay, stay.delay(by).time);
    }

    fn add_run(&mut self, time: Ns) {
        self.measured += 1;
        self.run = self.run.saturating_add(time);
        self.run_min = Some(self.run_min.map_or(time, |least| least.min(time)));
        self.run_max = self.run_max.max(time);
        let run = time.0 as f64;
        let off_mean = run - self.mean;
        self.mean += off_mean / self.measured as f64;
        self.deviations += off_mean * (run - self.mean);
    }

    /// Time on CPUs.
    pub(super) const fn run(&self) -> Ns {
        self.run
    }

    pub(super) fn summary(&self, label: Label, parent: Option<Pid>) -> TaskSummary {
        let count = self.measured as f64;
        let standard_error =
            if self.measured < 2 { 0.0 } else { (self.deviations / (count - 1.0) / count).sqrt() };
        TaskSummary {
            label,
            parent,
            count: self.count,
            run: self.run,
            run_min: self.run_min.unwrap_or_default(),
            run_mean: Ns(self.mean as u64),
            run_max: self.run_max,
            run_deviation_percent: if self.mean > 0.0 { 100.0 * standard_error / self.mean } else { 0.0 },
            off: self.off,
            delay: self.delay,
            crossed: self.crossed,
            migrations: self.migrations,
        }
    }
}
