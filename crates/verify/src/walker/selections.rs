//! The CPU on which a woken or new task is queued: the model's choice compared with the kernel's.
//!
//! A selection goes by averages, counts and limits that no event shows. It is judged where a probe shows all of them that the model's
//! choice rests on; the model is asked with the state that the probe shows.
//!
//! Must not know: how tasks are queued.

use fairlab_event::{Cpu, Ns, Pid};
use fairlab_kernel::core::{KernelContext, WakeKind};
use fairlab_kernel::decision::{CpuDecision, SelectReason};
use fairlab_kernel::domain::LoadBalanceFlag;
use fairlab_kernel::generation::Feature;
use fairlab_kernel::select::{GivenCpu, GivenLoad};
use fairlab_kernel::{CpuMask, TaskId};

use super::super::probe::{At, CpuShown, Key, ProbeHit};
use super::super::record::{EventRecord, RecordKind};
use super::super::tally::DecisionKind;
use super::super::verdict::DecisionOutcome;
use super::{DecisionPlace, Walker};

/// How many events later a CPU may report what it has done by now.
const REPORTED_LATE: usize = 64;

/// What a probe shows of a selection, and what is known by it.
struct ShownSelection {
    task: TaskId,
    here: Cpu,
    kind: WakeKind,
    /// What each CPU is found to be; `None` where it changed while it was asked.
    cpus: Option<Vec<GivenCpu>>,
    /// Whether the probe shows how much each CPU is used, and what the task and its waker count of their CPUs' loads.
    usage: bool,
    loads: [bool; 2],
}

impl ShownSelection {
    fn finds_several_idle(&self) -> bool {
        let cpus = self.cpus.iter().flatten();
        cpus.filter(|cpu| cpu.idle != Some(false)).count() > 1
    }
}

impl Walker {
    /// A probe shows a selection beginning, and the state that it finds.
    pub(super) fn on_select(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let has_flag = self.sched.generation().domain.load_balance_flag == LoadBalanceFlag::Set;
        let Some(kind) = occasion_of(probe, has_flag) else { return };
        let Some(task) = probe.task().and_then(|pid| self.tasks.get(&pid)).map(|info| info.id) else {
            return;
        };
        self.sched.stand_in_context(record.cpu, context_of(record));
        self.take_shown(probe, task);
        if matches!(kind, WakeKind::Wakeup { .. }) {
            let waker = self.sched.curr(record.cpu);
            self.sched.record_wakee_at(record.time, waker, task);
        }
        let loads = self.shown_loads(probe, task);
        let tasks = [task, self.sched.curr(record.cpu)];
        let shown = ShownSelection {
            task,
            here: record.cpu,
            kind,
            cpus: self.cpus_found(record.cpu, probe),
            usage: self.all_show(probe, |cpu| cpu.util.is_some()),
            loads: tasks.map(|task| loads.iter().any(|(of, _)| *of == task)),
        };
        self.sched.give_loads(loads);
        self.sched.give_cpus(shown.cpus.as_deref().unwrap_or_default());
        let answer = self.sched.select_task_rq(task, record.cpu, kind);
        self.sched.give_cpus(&[]);
        self.sched.give_loads(Vec::new());
        let same = probe.get(Key::Previous) == Some(i64::from(self.sched.task(task).cpu().0));
        let why_not = self.why_not_selected(&shown, answer, same);
        self.judge_selection(record, &shown, answer, why_not);
        if !matches!(kind, WakeKind::Fork) {
            self.sched.note_selection(record.cpu, task, answer);
        }
        self.sched.stand_in_context(record.cpu, KernelContext::Task);
    }

    /// Why a choice cannot be held against the kernel's; `same`: both take the same CPU for the previous one.
    fn why_not_selected(
        &self,
        shown: &ShownSelection,
        answer: CpuDecision,
        same: bool,
    ) -> Option<&'static str> {
        let features = self.sched.generation().features;
        let search = answer.search;
        let by_usage =
            !matches!(shown.kind, WakeKind::Wakeup { .. }) || self.sched.topology().has_asymmetric_capacity();
        let [by_reach, by_cost] =
            [Feature::SisUtil, Feature::SisProp].map(|bound| search.domain && features.enabled(bound));
        // It goes by how many tasks the waker's CPU has, which is read without a lock.
        let by_waker = answer.cpu == shown.here && shown.kind == WakeKind::Wakeup { sync: true };
        let hints_known = |cpu: Cpu| self.cpus[cpu.index()].idle_cores_known;
        let reasons = [
            (!same, "the kernel takes another CPU for the previous one"),
            (self.seen.hotplug, "CPUs come and go"),
            (answer.reason == SelectReason::OnlyAllowed, "it may run on one CPU only"),
            (
                shown.cpus.is_none() || by_waker && self.is_queued_on_soon(shown.here),
                "a CPU changed while it was looked at",
            ),
            (self.scales, "what energy wakeups go by is not shown"),
            (by_usage && !shown.usage, "how much CPUs are used is not shown"),
            (
                answer.reason == SelectReason::IdlestInGroup && shown.finds_several_idle(),
                "how deeply idle CPUs sleep is not shown",
            ),
            (search.weighed.is_some() && !shown.loads[0], "loads of tasks are not shown"),
            (search.weighed == Some(true) && !shown.loads[1], "loads of tasks are not shown"),
            (by_reach && !self.reach_shown, "how far a search goes is not shown"),
            (by_cost && !by_reach && !self.cost_shown, "how far a search goes is not shown"),
            (
                search.domain && self.sched.topology().has_smt() && !hints_known(answer.cpu),
                "whether there may be an idle core is not shown",
            ),
        ];
        reasons.into_iter().find(|(is_so, _)| *is_so).map(|(_, why)| why)
    }

    /// The return of the selection, or the wakeup, says what was chosen.
    fn judge_selection(
        &mut self,
        record: &EventRecord,
        shown: &ShownSelection,
        answer: CpuDecision,
        why_not: Option<&'static str>,
    ) {
        let (pid, prev) = (self.pid_of(shown.task), self.sched.task(shown.task).cpu());
        let case = case_of(shown, answer, prev);
        let returned = self.window.on_cpu(record.cpu).find_map(|record| match &record.what {
            RecordKind::Probe(probe) if probe.at == At::SelectTaskRqReturn => probe.get(Key::Returned),
            RecordKind::Wakeup(wakeup) | RecordKind::WakeupNew(wakeup) if wakeup.pid == pid => {
                Some(i64::from(wakeup.target_cpu.0))
            }
            _ => None,
        });
        let Some(kernel) = returned.and_then(|cpu| u32::try_from(cpu).ok()).map(Cpu) else {
            let outcome = DecisionOutcome::NotJudged("what was chosen is not shown");
            self.count(DecisionKind::WakeupCpu, case, outcome);
            return;
        };
        // A return shows what the class chose, which the task may not use.
        let kernel = if answer.search.refused == Some(kernel) { answer.cpu } else { kernel };
        let outcome = DecisionOutcome::of(answer.cpu, kernel, case).unless(why_not);
        let queue = self.root_queue(prev);
        let judged = DecisionPlace { record, kind: DecisionKind::WakeupCpu, case, queue };
        let outcome = self.judge(judged, outcome, |_| {
            let why = answer.reason.describe();
            [format!("{} for {pid} of {prev}, by {}: {why}", answer.cpu, shown.here), kernel.to_string()]
        });
        if outcome.is_judged() {
            let rule = "it stays on the CPU it last ran on";
            self.tally.count_baseline(DecisionKind::WakeupCpu, rule, kernel == prev);
        }
    }

    /// Whether another CPU is about to report that it has queued a task on `cpu`.
    fn is_queued_on_soon(&self, cpu: Cpu) -> bool {
        self.window.all().take(REPORTED_LATE).filter(|record| record.cpu != cpu).any(|record| {
            match &record.what {
                RecordKind::Wakeup(wakeup) | RecordKind::WakeupNew(wakeup) => wakeup.target_cpu == cpu,
                _ => false,
            }
        })
    }

    pub(super) fn cpu_numbered(&self, number: i64) -> Option<Cpu> {
        let cpu = u32::try_from(number).ok().map(Cpu)?;
        (cpu.index() < self.cpus.len()).then_some(cpu)
    }

    fn all_show(&self, probe: &ProbeHit, shows: impl Fn(&CpuShown) -> bool) -> bool {
        (0..self.cpus.len()).all(|cpu| probe.cpus.get(cpu).is_some_and(&shows))
    }

    /// Takes over what a selection's probe shows.
    fn take_shown(&mut self, probe: &ProbeHit, task: TaskId) {
        let number = |key: Key| probe.unsigned(key);
        if let (Some(load), Some(runnable), Some(util)) =
            (number(Key::TaskLoad), number(Key::TaskRunnable), number(Key::TaskUtil))
        {
            self.sched.force_task_load(task, GivenLoad { load, runnable, util });
        }
        if let Some(flips) = number(Key::WakeeFlips).and_then(|flips| u32::try_from(flips).ok()) {
            self.sched.force_wakee_flips(task, flips);
        }
        if let Some(recent) = probe.get(Key::RecentUsed).and_then(|cpu| self.cpu_numbered(cpu)) {
            self.sched.force_recent_used_cpu(task, recent);
        }
        for (number, shown) in probe.cpus.iter().enumerate().take(self.cpus.len()) {
            self.take_shown_cpu(Cpu(number as u32), shown);
        }
    }

    fn take_shown_cpu(&mut self, cpu: Cpu, shown: &CpuShown) {
        let curr = self.sched.curr(cpu);
        let of_curr = shown.curr == Some(self.pid_of(curr));
        if let Some(load) = shown.load {
            self.sched.force_cpu_load(cpu, load);
        }
        if let Some(avg_idle) = shown.avg_idle {
            self.sched.force_avg_idle(cpu, avg_idle);
        }
        if let Some(flips) = shown.flips.filter(|_| of_curr) {
            self.sched.force_wakee_flips(curr, flips);
        }
        if let (Some(runnable), Some(util), Some(estimate)) = (shown.runnable, shown.util, shown.estimate) {
            self.sched.force_cpu_util(cpu, runnable, util);
            self.sched.force_cpu_estimate(cpu, estimate);
        }
        if let Some(load) = shown.curr_load.filter(|_| of_curr) {
            self.sched.force_own_load(curr, load);
        }
        if let Some(since) = shown.idle_since {
            self.sched.force_idle_stamp(cpu, since.checked_sub(1).map(Ns));
        }
        if let (Some(cost), Some(left)) = (shown.scan_cost, shown.wake_idle) {
            self.sched.force_scan_costs(cpu, cost, left);
            self.cost_shown = true;
        }
        self.take_shared(cpu, shown.nr_idle_scan, shown.idle_cores);
    }

    /// What bounds searches under the cache of `cpu`, and whether that may have an idle core.
    fn take_shared(&mut self, cpu: Cpu, nr_idle_scan: Option<u32>, idle_cores: Option<bool>) {
        if let Some(scan) = nr_idle_scan {
            self.sched.force_nr_idle_scan(cpu, scan);
            self.reach_shown = true;
        }
        if let Some(cores) = idle_cores {
            self.sched.force_idle_cores(cpu, cores);
            self.know_idle_cores(cpu);
        }
    }

    /// What the probe shows that tasks count of their CPUs' load.
    fn shown_loads(&self, probe: &ProbeHit, task: TaskId) -> Vec<(TaskId, u64)> {
        let own = probe.unsigned(Key::TaskHierarchyLoad).map(|load| (task, load));
        let cpus = (0..self.cpus.len()).zip(&probe.cpus);
        let running = cpus.filter_map(|(number, shown)| {
            let curr = self.sched.curr(Cpu(number as u32));
            let load = shown.curr_h_load.filter(|_| shown.curr == Some(self.pid_of(curr)))?;
            Some((curr, load))
        });
        own.into_iter().chain(running).collect()
    }

    /// How the kernel found the CPUs: as the probe shows them, or, where probes show each question whether one is idle, as that was
    /// answered. `None` where one was answered in two ways.
    fn cpus_found(&self, here: Cpu, probe: &ProbeHit) -> Option<Vec<GivenCpu>> {
        let shown = (0..self.cpus.len()).map(|number| {
            let shown = probe.cpus.get(number).copied().unwrap_or_default();
            let idle = shown.curr.zip(shown.nr_running).map(|(curr, queued)| {
                curr == Pid::IDLE && queued == 0 && self.cpus[number].wakeups_coming == 0
            });
            GivenCpu { idle: shown.idle.or(idle), nr_running: shown.nr_running }
        });
        let mut found = shown.collect::<Vec<_>>();
        if self.all_show(probe, |cpu| cpu.idle.is_some()) {
            return Some(found);
        }
        let (mut asked, mut question) = (CpuMask::EMPTY, None);
        for record in self.window.on_cpu(here) {
            let RecordKind::Probe(probe) = &record.what else { continue };
            match probe.at {
                At::SelectTaskRqReturn | At::SelectTaskRq => break,
                At::AvailableIdle => {
                    question = probe.get(Key::OtherCpu).and_then(|cpu| self.cpu_numbered(cpu));
                }
                At::AvailableIdleReturn => {}
                _ => continue,
            }
            let answer = probe.get(Key::Returned).map(|returned| returned & 0xff != 0);
            let Some((cpu, answer)) = question.zip(answer) else { continue };
            if asked.contains(cpu) && found[cpu.index()].idle != Some(answer) {
                return None;
            }
            asked.set(cpu);
            found[cpu.index()].idle = Some(answer);
        }
        Some(found)
    }

    /// A probe of balancing shows what bounds searches, at the level of the last-level cache: what others share bounds none.
    pub(super) fn on_balance_probe(&mut self, probe: &ProbeHit) {
        let cpu = probe.get(Key::OtherCpu).and_then(|cpu| self.cpu_numbered(cpu));
        if let Some(cpu) = cpu.filter(|&cpu| self.is_at_llc(cpu, probe)) {
            let scan = probe.get(Key::NrIdleScan).and_then(|scan| u32::try_from(scan).ok());
            self.take_shared(cpu, scan, probe.get(Key::HasIdleCores).map(|cores| cores != 0));
        }
    }

    fn is_at_llc(&self, cpu: Cpu, probe: &ProbeHit) -> bool {
        let Some(level) = probe.get(Key::Level) else { return true };
        let domains = self.sched.domains();
        let shared = domains.of_cpu(cpu).sd_llc_shared;
        domains.domains_of(cpu).iter().any(|sd| i64::from(sd.level) == level && sd.shared == shared)
    }

    /// A CPU that goes idle with its whole core says so.
    pub(super) fn know_idle_core(&mut self, cpu: Cpu) {
        let idles = |sibling: Cpu| self.sched.curr(sibling) == self.sched.idle_task(sibling);
        if self.sched.topology().smt_mask(cpu).iter().all(idles) {
            self.know_idle_cores(cpu);
        }
    }

    fn know_idle_cores(&mut self, cpu: Cpu) {
        for (other, info) in (0..).map(Cpu).zip(&mut self.cpus) {
            info.idle_cores_known |= self.sched.domains().cpus_share_cache(cpu, other);
        }
    }

    /// A probe shows code that may leave a wakeup to its CPU.
    pub(super) fn on_wake_list(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let target = probe.get(Key::OtherCpu).and_then(|cpu| self.cpu_numbered(cpu));
        let returned = self.window.on_cpu(record.cpu).find_map(|record| match &record.what {
            RecordKind::Probe(probe) if probe.at == At::QueueWakelistReturn => probe.get(Key::Returned),
            _ => None,
        });
        let left = returned.is_some_and(|returned| returned & 0xff != 0);
        self.cpus[record.cpu.index()].leaves_wakeup = probe.task().zip(target).filter(|_| left);
    }

    /// It has left it. By then, the wakeup may have arrived.
    pub(super) fn leave_wakeup(&mut self, cpu: Cpu) {
        let Some((pid, target)) = self.cpus[cpu.index()].leaves_wakeup.take() else { return };
        if let Some(info) = self.tasks.get_mut(&pid).filter(|info| info.waking && info.coming_to.is_none()) {
            info.coming_to = Some(target);
            self.cpus[target.index()].wakeups_coming += 1;
        }
    }

    /// A wakeup has arrived where it was left to the target CPU.
    pub(super) fn wakeup_arrives(&mut self, pid: Pid) {
        if let Some(cpu) = self.tasks.get_mut(&pid).and_then(|info| info.coming_to.take()) {
            self.cpus[cpu.index()].wakeups_coming -= 1;
        }
    }
}

/// The context in which an event happened.
fn context_of(record: &EventRecord) -> KernelContext {
    match (record.flags.in_hardirq(), record.flags.in_softirq()) {
        (true, _) => KernelContext::Hardirq,
        (false, true) => KernelContext::Softirq,
        (false, false) => KernelContext::Task,
    }
}

/// Under what the decision is counted.
fn case_of(shown: &ShownSelection, answer: CpuDecision, prev: Cpu) -> &'static str {
    let sync = match shown.kind {
        WakeKind::Fork => return "fork",
        WakeKind::Exec => return "exec",
        WakeKind::Wakeup { sync } => sync,
    };
    match answer.reason {
        SelectReason::TargetIdle | SelectReason::PrevIdle if answer.cpu == prev => "prev idle",
        SelectReason::TargetIdle => "waker idle",
        SelectReason::RecentUsedIdle => "recent idle",
        SelectReason::IdleCore => "idle core",
        SelectReason::IdleSibling => "SMT",
        SelectReason::IdleInLlc | SelectReason::IdleInOtherCluster => "LLC scan",
        SelectReason::PerCpuKthread => "kthread",
        SelectReason::NoIdle if answer.cpu == shown.here && sync => "sync",
        _ => "all busy",
    }
}

/// Whether wake flags, from v5.11, say that the waker is about to sleep.
pub(super) fn promises_sleep(probe: &ProbeHit) -> Option<bool> {
    probe.get(Key::WakeFlags).map(|flags| flags & 0x10 != 0)
}

/// On what occasion a selection is made, and whether the waker is about to sleep.
fn occasion_of(probe: &ProbeHit, has_load_balance_flag: bool) -> Option<WakeKind> {
    let flags = probe.get(Key::WakeFlags)?;
    // Up to v5.10 the occasion is the flag of the domains to search, whose numbers begin with SD_LOAD_BALANCE where there is
    // one, and a waker about to sleep the lowest wake flag.
    let (occasion, sync) = match probe.get(Key::SdFlag) {
        Some(domain) => (domain >> u32::from(has_load_balance_flag), flags & 0x1 != 0),
        None => (flags, promises_sleep(probe)?),
    };
    match (occasion & 0x2 != 0, occasion & 0x4 != 0, occasion & 0x8 != 0) {
        (_, _, true) => Some(WakeKind::Wakeup { sync }),
        (_, true, _) => Some(WakeKind::Fork),
        (true, _, _) => Some(WakeKind::Exec),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlab_event::TextFields;

    fn probe(fields: &str) -> ProbeHit {
        ProbeHit::read("sel", TextFields::new(&format!("(f+0x0/0x1) pid=1 prev=0 {fields}")))
            .expect("a probe")
    }

    #[test]
    fn flags_tell_the_occasion_in_both_numberings() {
        let wakes = |sync| Some(WakeKind::Wakeup { sync });
        for (fields, has_flag, occasion) in [
            ("sdfl=0x8 wf=0x1", false, wakes(true)),
            ("sdfl=0x4 wf=0x0", false, Some(WakeKind::Fork)),
            ("wf=0x18", false, wakes(true)),
            ("wf=0x8", false, wakes(false)),
            ("wf=0x4", false, Some(WakeKind::Fork)),
            ("wf=0x2", false, Some(WakeKind::Exec)),
            ("", false, None),
            ("sdfl=0x4 wf=0x0", true, Some(WakeKind::Exec)),
            ("sdfl=0x8 wf=0x0", true, Some(WakeKind::Fork)),
            ("sdfl=0x10 wf=0x0", true, wakes(false)),
        ] {
            assert_eq!(occasion_of(&probe(fields), has_flag), occasion, "{fields}");
        }
    }

    #[test]
    fn a_selection_shows_every_cpu() {
        let probe = probe("wf=0x8 la0=30 nr0=1 ai0=977647 cp0=1 cf0=31 la11=7 nr11=0 cp11=0");
        assert_eq!(probe.cpus.len(), 12);
        let first = probe.cpus[0];
        assert_eq!((first.load, first.curr, first.flips), (Some(30), Some(Pid(1)), Some(31)));
        assert_eq!((probe.cpus[11].nr_running, probe.cpus[11].avg_idle), (Some(0), None));
        assert_eq!(probe.cpus[5].load, None);
    }
}
