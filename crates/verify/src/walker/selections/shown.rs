//! What probes show of the state at a selection: the core takes it over, or uses it for this selection only.
//!
//! Must not know: how a selection is judged.

use fairlab_event::{Cpu, Ns, Pid};
use fairlab_kernel::select::{GivenCpu, GivenLoad};
use fairlab_kernel::weight::NICE_0_WEIGHT;
use fairlab_kernel::{CpuMask, TaskId};

use super::super::super::probe::{At, CpuShown, Key, ProbeHit};
use super::super::super::record::{EventRecord, RecordKind};
use super::super::Walker;
use super::super::state::AveragesShown;

impl Walker {
    /// A probe shows a root queue's averages, as they are before what it stands at.
    pub(in super::super) fn note_averages(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let Some((cpu, shown)) = averages_of(record, probe) else { return };
        let Some(info) = self.cpus.get_mut(cpu.index()) else { return };
        if let Some(last) = info.averages.filter(|last| last.computed != shown.computed) {
            // They were recomputed soon after they were shown last.
            let behind = last.time.0.wrapping_sub(shown.computed) as i64;
            info.averages_behind = info.averages_behind.max(Some(behind));
        }
        info.averages = Some(shown);
        if self.sched.attaches_before_first_enqueue() && self.is_first_enqueue(probe) {
            // The new task is in them, and joins them once more where the core enqueues it.
            return;
        }
        self.sched.force_cpu_load(cpu, shown.load);
        self.sched.force_cpu_util(cpu, shown.runnable, shown.util);
    }

    /// Whether a probe shows a task that is enqueued for the first time.
    fn is_first_enqueue(&self, probe: &ProbeHit) -> bool {
        let enqueues = matches!(probe.at, At::EnqueueEntity | At::EnqueueTask);
        let begins = |pid| {
            let mut coming = self.window.of_task(pid);
            coming.any(|record| matches!(record.what, RecordKind::WakeupNew(_)))
        };
        enqueues && probe.task().is_some_and(begins)
    }

    /// A root queue's averages now: as they were shown last, or as they will be shown next if they will not have been
    /// recomputed by then.
    fn averages_now(&self, record: &EventRecord, cpu: Cpu) -> Option<AveragesShown> {
        const EVENTS_AHEAD: usize = 4096;
        let info = &self.cpus[cpu.index()];
        let ahead = self.window.all().take(EVENTS_AHEAD).find_map(|record| match &record.what {
            RecordKind::Probe(probe) => averages_of(record, probe).filter(|(shown_cpu, _)| *shown_cpu == cpu),
            _ => None,
        });
        let ahead = ahead.map(|(_, shown)| shown);
        let is_old =
            |shown: &AveragesShown, behind: i64| shown.computed.wrapping_add_signed(behind) <= record.time.0;
        ahead.filter(|shown| info.averages_behind.is_some_and(|behind| is_old(shown, behind)))
    }

    /// Takes over what a selection's probe shows.
    pub(super) fn show_selection_state(&mut self, record: &EventRecord, probe: &ProbeHit, task: TaskId) {
        let number = |key: Key| probe.unsigned(key);
        if let (Some(load), Some(runnable), Some(util)) =
            (number(Key::TaskLoad), number(Key::TaskRunnable), number(Key::TaskUtil))
        {
            self.sched.force_task_load(task, GivenLoad { load, runnable, util });
        }
        if let Some(flips) = number(Key::WakeeFlips).and_then(|flips| u32::try_from(flips).ok()) {
            self.show_flips(task, flips);
        }
        let recent = number(Key::RecentUsed).and_then(|cpu| u32::try_from(cpu).ok()).map(Cpu);
        if let Some(recent) = recent.filter(|recent| recent.index() < self.cpus.len()) {
            self.sched.force_recent_used_cpu(task, recent);
            self.pasts.of(task).recent_known = true;
        }
        for (number, shown) in probe.cpus.iter().enumerate().take(self.cpus.len()) {
            let cpu = Cpu(number as u32);
            if let Some(load) = shown.load {
                self.sched.force_cpu_load(cpu, load);
            }
            if let Some(avg_idle) = shown.avg_idle {
                self.sched.force_avg_idle(cpu, avg_idle);
            }
            let same = |averages: &AveragesShown| shown.load.is_none_or(|load| averages.fit(load));
            if let Some(averages) = self.averages_now(record, cpu).filter(same) {
                self.sched.force_cpu_util(cpu, averages.runnable, averages.util);
            }
            self.show_more_of_cpu(cpu, shown);
            let curr = self.sched.curr(cpu);
            if let Some(flips) = shown.flips.filter(|_| shown.curr == Some(self.pid_of(curr))) {
                self.show_flips(curr, flips);
            }
        }
    }

    /// What the probe shows that tasks count of their CPUs' load.
    pub(super) fn shown_loads(&self, probe: &ProbeHit, task: TaskId) -> Vec<(TaskId, u64)> {
        let own = probe.unsigned(Key::TaskHierarchyLoad).map(|load| (task, load));
        let cpus = (0..self.cpus.len()).zip(&probe.cpus);
        let running = cpus.filter_map(|(number, shown)| {
            let curr = self.sched.curr(Cpu(number as u32));
            let load = shown.curr_h_load.filter(|_| shown.curr == Some(self.pid_of(curr)))?;
            Some((curr, load))
        });
        own.into_iter().chain(running).collect()
    }

    /// Takes over what only some probes show.
    pub(in super::super) fn show_more_of_cpu(&mut self, cpu: Cpu, shown: &CpuShown) {
        if let (Some(runnable), Some(util), Some(estimate)) = (shown.runnable, shown.util, shown.estimate) {
            self.sched.force_cpu_util(cpu, runnable, util);
            self.sched.force_cpu_estimate(cpu, estimate);
        }
        if let Some(load) = shown.curr_load.filter(|_| shown.curr == Some(self.pid_of(self.sched.curr(cpu))))
        {
            self.sched.force_own_load(self.sched.curr(cpu), load);
        }
        if let Some(since) = shown.idle_since {
            self.sched.force_idle_stamp(cpu, since.checked_sub(1).map(Ns));
            self.cpus[cpu.index()].idle_time_known = true;
        }
        if let (Some(cost), Some(left)) = (shown.scan_cost, shown.wake_idle) {
            self.sched.force_scan_costs(cpu, cost, left);
            self.cost_shown = true;
        }
        if let Some(scan) = shown.nr_idle_scan {
            self.sched.force_nr_idle_scan(cpu, scan);
            self.bound_shown = true;
        }
        if let Some(cores) = shown.idle_cores {
            self.sched.force_idle_cores(cpu, cores);
            self.set_idle_cores_known(cpu, true);
        }
    }

    /// How the kernel found the CPUs: as the probe shows them, and each question whether one is idle with its answer where
    /// these are shown. The likeliest first.
    pub(super) fn cpus_found(&self, here: Cpu, probe: &ProbeHit) -> Vec<Vec<GivenCpu>> {
        let shown = (0..self.cpus.len()).map(|number| {
            let shown = probe.cpus.get(number).copied().unwrap_or_default();
            let idle = shown.curr.zip(shown.nr_running).map(|(curr, queued)| {
                curr == Pid::IDLE && queued == 0 && self.cpus[number].wakeups_coming == 0
            });
            GivenCpu { idle: shown.idle.or(idle), nr_running: shown.nr_running }
        });
        let shown = shown.collect::<Vec<_>>();
        if probe.cpus.iter().all(|cpu| cpu.idle.is_some()) {
            return vec![shown];
        }
        let (mut first, mut last) = (shown.clone(), shown.clone());
        let mut asked = CpuMask::EMPTY;
        let mut question = None;
        for record in self.window.on_cpu(here) {
            let RecordKind::Probe(probe) = &record.what else { continue };
            match probe.at {
                At::SelectTaskRqReturn | At::SelectTaskRq => break,
                At::AvailableIdle => {
                    question = probe.get(Key::OtherCpu).and_then(|cpu| usize::try_from(cpu).ok());
                }
                At::AvailableIdleReturn => {}
                _ => continue,
            }
            let answer = probe.get(Key::Returned).map(|returned| returned & 0xff != 0);
            if let (Some(cpu), Some(answer)) = (question.filter(|&cpu| cpu < last.len()), answer) {
                last[cpu].idle = Some(answer);
                if !asked.contains(Cpu(cpu as u32)) {
                    asked.set(Cpu(cpu as u32));
                    first[cpu].idle = Some(answer);
                }
            }
        }
        // While the selection goes on, another CPU may queue a task here, or this one's state be older than shown.
        let queued_meanwhile = last.iter().enumerate().map(|(number, given)| {
            let nr_running = given.nr_running.map(|queued| queued + u32::from(number == here.index()));
            GivenCpu { nr_running, ..*given }
        });
        let queued_meanwhile = queued_meanwhile.collect();
        let mut all = vec![last, first, shown, queued_meanwhile];
        all.dedup();
        all
    }

    /// A probe shows what bounds searches, where balancing is at the level of the last-level cache: what others share bounds none.
    pub(in super::super) fn on_balance_probe(&mut self, probe: &ProbeHit) {
        let cpu = probe.get(Key::OtherCpu).and_then(|cpu| self.cpu_numbered(cpu));
        let Some(cpu) = cpu.filter(|&cpu| self.is_at_llc(cpu, probe)) else { return };
        if let Some(scan) = probe.get(Key::NrIdleScan).and_then(|scan| u32::try_from(scan).ok()) {
            self.sched.force_nr_idle_scan(cpu, scan);
            self.bound_shown = true;
        }
        if let Some(cores) = probe.get(Key::HasIdleCores) {
            self.sched.force_idle_cores(cpu, cores != 0);
            self.set_idle_cores_known(cpu, true);
        }
    }

    fn is_at_llc(&self, cpu: Cpu, probe: &ProbeHit) -> bool {
        let Some(level) = probe.get(Key::Level) else { return true };
        let domains = self.sched.domains();
        let shared = domains.of_cpu(cpu).sd_llc_shared;
        domains.domains_of(cpu).iter().any(|sd| i64::from(sd.level) == level && sd.shared == shared)
    }
}

impl AveragesShown {
    /// Whether no task has come or gone since, as far as the queue's load tells: it differs by less than half a task's.
    fn fit(&self, load: u64) -> bool {
        self.load.abs_diff(load) < NICE_0_WEIGHT / 2
    }
}

/// The CPU and the averages of its root queue that a probe shows.
fn averages_of(record: &EventRecord, probe: &ProbeHit) -> Option<(Cpu, AveragesShown)> {
    const ROOT: u64 = 1;
    let root = match probe.at {
        At::Tick | At::EnqueueTask => true,
        At::EnqueueEntity | At::DequeueEntity => probe.unsigned(Key::Cgroup) == Some(ROOT),
        _ => false,
    };
    let shown = AveragesShown {
        time: record.time,
        computed: probe.unsigned(Key::LastUpdate)?,
        load: probe.unsigned(Key::LoadAvg)?,
        runnable: probe.unsigned(Key::RunnableAvg)?,
        util: probe.unsigned(Key::UtilAvg)?,
    };
    Some((probe.cpu().filter(|_| root)?, shown))
}
