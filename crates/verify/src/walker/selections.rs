//! The CPU on which a woken or new task is queued: the model's choice compared with the kernel's.
//!
//! If a probe shows the selection, the model is asked with the state that the probe shows. Otherwise the selection happened at
//! some instant between `sched_waking` and the move or the wakeup, and the model is asked at each instant. The trace may also
//! hide whether the waker is about to sleep, or how far a search may go. Then the model is asked for each possibility. The walk
//! continues with the most likely answer; for the verdict all count equally.
//!
//! Must not know: how tasks are queued.

mod hidden;
mod nearby;
mod past;
mod shown;

use fairlab_event::{Comm, Cpu, Ns, Pid, TaskState};
use fairlab_kernel::core::{KernelContext, WakeKind};
use fairlab_kernel::decision::{CpuDecision, SelectReason};
use fairlab_kernel::domain::LoadBalanceFlag;
use fairlab_kernel::generation::Feature;
use fairlab_kernel::select::GivenCpu;
use fairlab_kernel::{CpuMask, TaskId};

use super::super::probe::{At, Key, ProbeHit};
use super::super::record::{EventRecord, RecordKind};
use super::super::tally::DecisionKind;
use super::super::verdict::{DecisionVerdict, ModelAnswers};
use super::{AFFINITY_HIDDEN, CPUS_CHANGE, DecisionPlace, GROUPS_HIDDEN, Walker};
use nearby::OtherChoice;
pub(super) use nearby::{BEYOND_ANY_LOAD, UtilDoubt};
use past::SearchTraces;
pub(super) use past::TaskPasts;

/// A selection that is under way.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    task: TaskId,
    pid: Pid,
    here: Cpu,
    began: Ns,
    /// The event with which it began, and whether it is over by now.
    event: u64,
    over: bool,
    kind: SelectionOccasion,
    /// Whether it is made in a hardware interrupt.
    in_hardirq: bool,
    /// Whether the waker is about to sleep; `None` where the trace does not tell.
    sync: Option<bool>,
    /// The model's answer, and whether a probe showed the state that it rests on.
    answer: Option<CpuDecision>,
    shown: bool,
    /// Whether the probe also showed how much each CPU is used.
    usage_shown: bool,
    /// All answers, by possibility of `sync`.
    answers: [CpuMask; 2],
    /// What the core chooses as it stands, at each instant.
    by_own: CpuMask,
    /// What is chosen by how many CPUs a search may look at, of the cache that this one is in.
    by_scan: Vec<(Cpu, u32, Cpu)>,
    /// CPUs that the shortest search chooses, and CPUs that a search of the whole cache chooses.
    by_reach: [CpuMask; 2],
    /// CPUs that are chosen if what no event shows is otherwise than the core has it.
    by_hidden: CpuMask,
    /// What the search leaves behind, over all states.
    leaves: SearchTraces,
    /// There are more states than are asked for.
    beyond: bool,
    /// Whether both CPUs' loads are weighed, by possibility of `sync`.
    weighs: [bool; 2],
    /// All CPUs that may be chosen by when they went idle, which nothing tells of some.
    by_idle_time: CpuMask,
    /// All CPUs that may be chosen by loads, which hang on groups that the trace does not tell.
    by_load: CpuMask,
    /// What came of each instant so far, so that no state is asked twice.
    instants: u32,
    /// What is chosen for a new task in other worlds.
    elsewhere: Vec<OtherChoice>,
    why_not: Option<&'static str>,
}

/// On what occasion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SelectionOccasion {
    Wakeup,
    Fork,
    Exec,
}

impl SelectionOccasion {
    fn wake_kind(self, sync: bool) -> WakeKind {
        match self {
            SelectionOccasion::Wakeup => WakeKind::Wakeup { sync },
            SelectionOccasion::Fork => WakeKind::Fork,
            SelectionOccasion::Exec => WakeKind::Exec,
        }
    }
}

/// Instants at which one selection is asked for at most.
const INSTANTS_MAX: u32 = 64;

/// How alike two wakeups are, most alike first: then one tells whether the other's waker is about to sleep. A reader of a pipe is
/// woken by a waker that will sleep, a waiter for a lock is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WakeupLikeness {
    Pair(Pid, Pid),
    Wakee(Pid),
    Waker(Pid),
    Name(Comm),
}

/// More CPUs than any cache has.
const SCANS_ALL: u32 = u32::MAX >> 1;

/// How often wakeups looked like those of one that is about to sleep, and how often not.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SyncVotes {
    sync: u32,
    other: u32,
}

impl Walker {
    /// A wakeup begins.
    pub(super) fn begin_selection(&mut self, record: &EventRecord, task: TaskId) {
        let pid = self.pid_of(task);
        self.selections.retain(|open| open.pid != pid);
        if !self.is_fair(task) {
            self.send_other_class(record.cpu, pid);
            return;
        }
        if self.sched.is_on_queue(task) && !self.sched.is_delayed(task) {
            return;
        }
        if self.sched.is_delayed(task) && self.woken_on_queue(record.cpu).is_some() {
            return;
        }
        let in_task = !record.flags.in_hardirq() && !record.flags.in_softirq();
        // Only system calls and kthreads promise to sleep, and only to whom signals wake as well.
        let state = self.sched.task(task).sleeps_in();
        let deaf = state.is_some_and(|state| !state.contains(TaskState::INTERRUPTIBLE));
        let sync = if in_task && !deaf { None } else { Some(false) };
        let mut selection = Selection::new(record, task, pid, SelectionOccasion::Wakeup, sync);
        selection.in_hardirq = record.flags.in_hardirq();
        self.stand_as(record);
        let prev = self.sched.task(task).cpu();
        let leaves = self.sched.curr(prev) == task;
        if let Some(decision) = leaves.then(|| self.sched.queue_where_leaving(task)).flatten() {
            selection.answer = Some(decision);
            selection.note(&[decision.cpu], None);
        }
        self.selections.push(selection);
        if !leaves {
            self.ask_again(pid);
        }
    }

    /// A task of another class is being woken by `here`. Until it arrives where its wakeup was left to, that CPU does not look
    /// idle.
    fn send_other_class(&mut self, here: Cpu, pid: Pid) {
        let wakeup = self.window.of_task(pid).find_map(|record| match record.what {
            RecordKind::Wakeup(wakeup) => Some((record.cpu, wakeup.target_cpu)),
            _ => None,
        });
        if let Some((_, target)) = wakeup.filter(|&(by, target)| by == target && by != here)
            && !self.shows_wake_list(here, pid)
        {
            self.comes_to(pid, target);
        }
    }

    /// Whether a probe will show when code on `here` leaves this wakeup to another CPU, or does not.
    fn shows_wake_list(&self, here: Cpu, pid: Pid) -> bool {
        let first = self.window.of_task(pid).find(|record| match &record.what {
            RecordKind::Wakeup(_) => true,
            RecordKind::Probe(probe) => record.cpu == here && probe.at == At::QueueWakelist,
            _ => false,
        });
        first.is_some_and(|record| matches!(record.what, RecordKind::Probe(_)))
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

    /// It has left it: the interrupt is sent, or the function is done. By then, the wakeup may have arrived.
    pub(super) fn leave_wakeup(&mut self, cpu: Cpu) {
        if let Some((pid, target)) = self.cpus[cpu.index()].leaves_wakeup.take()
            && self.tasks.get(&pid).is_some_and(|info| info.waking)
        {
            self.comes_to(pid, target);
        }
    }

    /// A wakeup has been left to `cpu`.
    fn comes_to(&mut self, pid: Pid, cpu: Cpu) {
        let Some(info) = self.tasks.get_mut(&pid).filter(|info| info.coming_to.is_none()) else { return };
        info.coming_to = Some(cpu);
        self.sched.ttwu_pending(cpu);
        self.cpus[cpu.index()].wakeups_coming += 1;
    }

    /// Stands where the event happened, in its context.
    fn stand_as(&mut self, record: &EventRecord) {
        let mode = match (record.flags.in_hardirq(), record.flags.in_softirq()) {
            (true, _) => KernelContext::Hardirq,
            (false, true) => KernelContext::Softirq,
            (false, false) => KernelContext::Task,
        };
        self.sched.stand_in_context(record.cpu, mode);
    }

    /// The state may have changed: selections that are under way may come to something else now.
    ///
    /// Interrupts are off from `sched_waking` until the task is queued, so that what the waker's CPU reports next, it
    /// reports after the selection.
    pub(super) fn reconsider_selections(&mut self, record: &EventRecord) {
        if !matches!(record.what, RecordKind::Probe(_) | RecordKind::OtherProbe) {
            for open in &mut self.selections {
                let wakes = open.here == record.cpu && open.kind == SelectionOccasion::Wakeup;
                open.over |= wakes && open.event < record.number;
            }
        }
        let changes = matches!(
            record.what,
            RecordKind::Switch(_)
                | RecordKind::Wakeup(_)
                | RecordKind::WakeupNew(_)
                | RecordKind::Migrate { .. }
                | RecordKind::SleepEnds(_)
                | RecordKind::IoWaitEnds(_)
        ) || (self.rules.pending_until_called
            && matches!(record.what, RecordKind::CallInterrupt));
        let pids =
            self.selections.iter().filter(|open| !open.shown && !open.over && open.instants < INSTANTS_MAX);
        let pids = pids.map(|open| open.pid).collect::<Vec<_>>();
        if changes {
            pids.into_iter().for_each(|pid| self.ask_again(pid));
        }
    }

    /// Asks once more for what is under way for `pid`, in the state as it is now.
    fn ask_again(&mut self, pid: Pid) {
        let Some(index) = self.selections.iter().position(|open| open.pid == pid) else { return };
        let mut open = self.selections.swap_remove(index);
        let prev = self.sched.task(open.task).cpu();
        if self.sched.curr(prev) != open.task {
            let selects = open.kind == SelectionOccasion::Wakeup && !open.is_leaving();
            if open.instants == 0 && selects && !self.selection_shown {
                let waker = self.sched.curr(open.here);
                self.note_wakee(waker, open.task);
            }
            self.ask(&mut open);
        }
        self.selections.push(open);
    }

    /// Asks for all possibilities. Tasks that other wakers have chosen CPUs for may have arrived by now, and so may tasks that
    /// other CPUs are about to queue.
    fn ask(&mut self, open: &mut Selection) {
        open.instants += 1;
        self.ask_either_way(open);
        if open.shown {
            return;
        }
        let answer = open.answer;
        let others = self.selections.iter().filter(|other| other.pid != open.pid && !other.shown);
        let coming = others.filter_map(|other| self.arrives_at(other)).collect::<Vec<_>>();
        for on_their_way in each_and_all(&coming) {
            on_their_way.iter().for_each(|&cpu| self.sched.ttwu_pending(cpu));
            self.ask_either_way(open);
            on_their_way.iter().for_each(|&cpu| self.sched.ttwu_arrived(cpu));
        }
        open.answer = answer;
        for queued in each_and_all(&self.cpus_that_queue(open.here)) {
            let mut then = open.clone();
            self.sched.give_cpus(&self.with_one_more(queued));
            self.ask_either_way(&mut then);
            self.sched.give_cpus(&[]);
            open.answers = then.answers;
        }
    }

    /// CPUs but `here` that have told that a sleep is over, and not yet that the task is queued.
    fn cpus_that_queue(&self, here: Cpu) -> Vec<Cpu> {
        let cpus = (0..).map(Cpu).zip(&self.cpus);
        let queueing = cpus.filter(|(cpu, info)| *cpu != here && info.sleep_ended.is_some());
        queueing.map(|(cpu, _)| cpu).collect()
    }

    /// Every CPU as the core has it, but these with a task more.
    fn with_one_more(&self, queued: &[Cpu]) -> Vec<GivenCpu> {
        let given = |cpu| match queued.contains(&cpu) {
            true => GivenCpu { idle: Some(false), nr_running: Some(self.sched.nr_running(cpu) + 1) },
            false => GivenCpu::default(),
        };
        (0..self.cpus.len()).map(|cpu| given(Cpu(cpu as u32))).collect()
    }

    fn ask_either_way(&mut self, open: &mut Selection) {
        let likely = self.likely_sync(open);
        for sync in [likely, !likely] {
            if open.sync.is_some_and(|known| known != sync) {
                continue;
            }
            let decisions = self.ask_within_bounds(open, sync);
            self.ask_hidden(open, sync, decisions[0]);
            decisions.iter().for_each(|decision| open.leaves.note(&self.sched, decision));
            open.weighs[usize::from(sync)] = decisions[0].search.weighed.is_some();
            if open.weighs[usize::from(sync)] && !open.shown {
                self.ask_with_loads_asked(open, sync);
            }
            if self.groups_hidden && !open.shown {
                open.by_load = open.by_load.or(&self.ask_other_loads(open, sync));
            }
            if open.kind != SelectionOccasion::Wakeup {
                open.by_idle_time = open.by_idle_time.or(&self.ask_idle_times(open));
            }
            let cpus = decisions.iter().map(|decision| decision.cpu).collect::<Vec<_>>();
            open.note(&cpus, Some(sync));
            // The last instant is the nearest to the move, but a new task's CPU is selected as soon as it is there.
            let may_be_later = open.kind == SelectionOccasion::Wakeup && !open.is_leaving();
            if sync == likely && (open.answer.is_none() || may_be_later) {
                open.answer = decisions.first().copied();
            }
        }
    }

    /// The model's decision, and what it would be with other bounds for its search where the bound is not known.
    fn ask_within_bounds(&mut self, open: &mut Selection, sync: bool) -> Vec<CpuDecision> {
        let kind = open.kind.wake_kind(sync);
        let mut decisions = vec![self.sched.select_task_rq(open.task, open.here, kind)];
        open.by_own.set(decisions[0].cpu);
        if open.kind != SelectionOccasion::Wakeup && !open.usage_shown {
            self.ask_nearby(open, &mut decisions);
        }
        if let Some(node) =
            self.sched.preferred_node(open.task).filter(|_| open.kind == SelectionOccasion::Fork)
        {
            self.sched.force_preferred_node(open.task, None);
            decisions.push(self.sched.select_task_rq(open.task, open.here, kind));
            self.sched.force_preferred_node(open.task, Some(node));
        }
        if open.kind == SelectionOccasion::Wakeup && !self.overutilized_known {
            let told = self.sched.overutilized();
            self.sched.force_overutilized(!told);
            decisions.push(self.sched.select_task_rq(open.task, open.here, kind));
            self.sched.force_overutilized(told);
        }
        if open.kind != SelectionOccasion::Wakeup || !decisions[0].search.domain {
            return decisions;
        }
        let features = self.sched.generation().features;
        if features.enabled(Feature::SisUtil) && !self.bound_shown {
            let likely = sync == self.likely_sync(open);
            // That of the cache that is searched, which need not be the waker's.
            let searched = decisions[0].cpu;
            let known = self.sched.nr_idle_scan(searched);
            for scan in [0, 1, 2, 3, SCANS_ALL] {
                self.sched.force_nr_idle_scan(searched, scan);
                let decision = self.sched.select_task_rq(open.task, open.here, kind);
                decisions.push(decision);
                open.by_scan.extend(likely.then_some((searched, scan, decision.cpu)));
            }
            if let Some(known) = known {
                self.sched.force_nr_idle_scan(searched, known);
            }
        } else if features.enabled(Feature::SisProp) && !self.cost_shown {
            let reaches = self.ask_reaches(open, kind);
            if sync == self.likely_sync(open) {
                reaches.iter().zip(&mut open.by_reach).for_each(|(decision, cpus)| cpus.set(decision.cpu));
            }
            decisions = match self.cpus[open.here.index()].searches_go_far {
                Some(far) => vec![reaches[usize::from(far)], decisions[0], reaches[usize::from(!far)]],
                None => [decisions, reaches.to_vec()].concat(),
            };
        }
        decisions
    }

    /// The choice of a search that has cost much lately, and of one that has cost nothing.
    fn ask_reaches(&mut self, open: &Selection, kind: WakeKind) -> [CpuDecision; 2] {
        let (cost, idle) = (self.sched.avg_scan_cost(open.here), self.sched.avg_idle(open.here));
        let reaches = [(u64::MAX >> 16, idle), (0, u64::MAX >> 16)].map(|(cost, idle)| {
            self.sched.force_scan_limits(open.here, cost, idle);
            self.sched.select_task_rq(open.task, open.here, kind)
        });
        self.sched.force_scan_limits(open.here, cost, idle);
        reaches
    }

    /// How far a CPU's searches go hangs on what its last ones have cost, which only probes show: as far as the last one that tells.
    /// By utilization they go as far as balancing has last found, when nothing shows it: what is nearest to the core's and explains
    /// the kernel's choice.
    fn learn_reach(&mut self, open: &Selection, kernel: Cpu) {
        if !open.by_own.contains(kernel) {
            let explain = open.by_scan.iter().filter(|(.., cpu)| *cpu == kernel);
            let nearest = explain.min_by_key(|(searched, scan, _)| {
                self.sched.nr_idle_scan(*searched).map(|own| own.min(SCANS_ALL).abs_diff(*scan))
            });
            if let Some(&(searched, scan, _)) = nearest {
                self.sched.force_nr_idle_scan(searched, scan);
            }
        }
        let [near, far] = open.by_reach.map(|cpus| cpus.contains(kernel));
        if near != far {
            self.cpus[open.here.index()].searches_go_far = Some(far);
        }
    }

    /// Whether the waker is likely to promise that it sleeps: what its earlier wakeups looked like.
    fn likely_sync(&self, open: &Selection) -> bool {
        if let Some(sync) = open.sync {
            return sync;
        }
        let votes = self.alike(open).into_iter().find_map(|alike| self.sync_votes.get(&alike));
        votes.is_none_or(|votes| votes.sync >= votes.other)
    }

    fn alike(&self, open: &Selection) -> [WakeupLikeness; 4] {
        let waker = self.sched.curr(open.here);
        let (by, name) = (self.pid_of(waker), self.sched.task(waker).comm());
        [
            WakeupLikeness::Pair(by, open.pid),
            WakeupLikeness::Wakee(open.pid),
            WakeupLikeness::Waker(by),
            WakeupLikeness::Name(name),
        ]
    }

    /// A probe shows a selection beginning, and the state that it finds.
    pub(super) fn on_select(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let has_flag = self.sched.generation().domain.load_balance_flag == LoadBalanceFlag::Set;
        let Some(occasion) = occasion_of(probe, has_flag) else { return };
        let Some(task) = probe.task().and_then(|pid| self.tasks.get(&pid)).map(|info| info.id) else {
            return;
        };
        let pid = self.pid_of(task);
        self.stand_as(record);
        let (kind, sync) = occasion;
        let known = self.selections.iter().position(|open| open.pid == pid);
        let mut open = match known {
            Some(index) => self.selections.swap_remove(index),
            None => Selection::new(record, task, pid, kind, None),
        };
        open = Selection { here: record.cpu, kind, sync: Some(sync), answers: [CpuMask::EMPTY; 2], ..open };
        (open.by_hidden, open.leaves) = (CpuMask::EMPTY, SearchTraces::default());
        open.shown = true;
        open.usage_shown =
            (0..self.cpus.len()).all(|cpu| probe.cpus.get(cpu).is_some_and(|cpu| cpu.util.is_some()));
        if probe.get(Key::Previous).and_then(|cpu| u32::try_from(cpu).ok())
            != Some(self.sched.task(task).cpu().0)
        {
            open.why_not = Some("the kernel takes another CPU for the previous one");
        }
        self.show_selection_state(record, probe, task);
        if kind == SelectionOccasion::Wakeup {
            let waker = self.sched.curr(record.cpu);
            self.note_wakee(waker, task);
        }
        open.answer = None;
        self.sched.give_loads(self.shown_loads(probe, task));
        for given in self.cpus_found(record.cpu, probe) {
            self.sched.give_cpus(&given);
            let first = open.answer;
            self.ask(&mut open);
            // The first is the likeliest.
            open.answer = first.or(open.answer);
        }
        self.sched.give_cpus(&[]);
        self.sched.give_loads(Vec::new());
        self.judge_shown(record, open);
    }

    /// New tasks and tasks that exec are judged at once: the return of the selection, or the wakeup, says what was chosen.
    fn judge_shown(&mut self, record: &EventRecord, open: Selection) {
        let returned = self.window.on_cpu(record.cpu).find_map(|record| match &record.what {
            RecordKind::Probe(probe) if probe.at == At::SelectTaskRqReturn => probe.get(Key::Returned),
            RecordKind::Wakeup(wakeup) | RecordKind::WakeupNew(wakeup) if wakeup.pid == open.pid => {
                Some(i64::from(wakeup.target_cpu.0))
            }
            _ => None,
        });
        let Some(kernel) = returned.and_then(|cpu| u32::try_from(cpu).ok()).map(Cpu) else {
            self.count(
                DecisionKind::WakeupCpu,
                open.case(Cpu(0)),
                DecisionVerdict::not_judged("what was chosen is not shown"),
            );
            return;
        };
        // A return shows what the class chose, which the task may not use.
        let refused = open.answer.filter(|answer| answer.search.refused == Some(kernel));
        let kernel = refused.map_or(kernel, |answer| answer.cpu);
        self.judge_selection(record, open, kernel);
    }

    /// The waker has gone on to something else: what it has left to the CPU that it chose is on its way there, and shows at
    /// its arrival which CPU that is.
    pub(super) fn settle_selections(&mut self, record: &EventRecord) {
        match record.what {
            RecordKind::Waking(_)
            | RecordKind::WakeupNew(_)
            | RecordKind::Fork { .. }
            | RecordKind::Exit(_)
            | RecordKind::Switch(_) => {}
            _ => return,
        }
        let in_hardirq = record.flags.in_hardirq();
        let left = self.selections.iter().filter(|open| {
            open.here == record.cpu && open.kind == SelectionOccasion::Wakeup && open.in_hardirq == in_hardirq
        });
        let left = left.filter_map(|open| Some((open.pid, self.arrives_at(open)?))).collect::<Vec<_>>();
        for (pid, target) in left {
            self.end_selection(record, pid, target);
        }
    }

    /// The CPU that reports the wakeup itself, if the waker has left it to that.
    fn arrives_at(&self, open: &Selection) -> Option<Cpu> {
        let wakeup = self.window.of_task(open.pid).find_map(|record| match record.what {
            RecordKind::Wakeup(wakeup) => Some((record.cpu, wakeup.target_cpu)),
            _ => None,
        });
        wakeup.filter(|&(by, target)| by == target && by != open.here).map(|(_, target)| target)
    }

    /// The kernel's choice is known.
    pub(super) fn end_selection(&mut self, record: &EventRecord, pid: Pid, kernel: Cpu) {
        let Some(index) = self.selections.iter().position(|open| open.pid == pid) else { return };
        let open = self.selections.swap_remove(index);
        self.judge_selection(record, open, kernel);
    }

    /// A new task is there: its CPU is selected next, if no probe shows where.
    pub(super) fn begin_fork(&mut self, record: &EventRecord, task: TaskId) {
        let pid = self.pid_of(task);
        self.selections.retain(|open| open.pid != pid);
        if self.selection_shown || !self.is_fair(task) || self.sched.is_on_queue(task) {
            return;
        }
        self.stand_as(record);
        let mut open = Selection::new(record, task, pid, SelectionOccasion::Fork, Some(false));
        self.ask(&mut open);
        self.selections.push(open);
    }

    /// A new task's first wakeup.
    pub(super) fn judge_fork(&mut self, record: &EventRecord, task: TaskId, kernel: Cpu) {
        self.end_selection(record, self.pid_of(task), kernel);
    }

    fn judge_selection(&mut self, record: &EventRecord, mut open: Selection, kernel: Cpu) {
        let prev = self.sched.task(open.task).cpu();
        if open.answer.is_none() && open.kind == SelectionOccasion::Wakeup && !open.shown {
            // It left its CPU only now.
            self.stand_as(record);
            self.ask(&mut open);
        }
        let Some(answer) = open.answer else { return };
        let case = open.case(prev);
        let doubts_affinity = self.doubts_affinity(open.task, answer.cpu, kernel);
        let allowed = open.allowed(answer);
        let why_not = match (open.why_not, answer.reason) {
            (Some(why), _) => Some(why),
            _ if self.seen.hotplug => Some(CPUS_CHANGE),
            (None, SelectReason::OnlyAllowed) => Some("it may run on one CPU only"),
            _ if doubts_affinity => Some(AFFINITY_HIDDEN),
            _ if open.kind == SelectionOccasion::Fork
                && !open.shown
                && self.admits_all(open.task, &allowed) =>
            {
                Some("any CPU may be chosen, as far as the trace tells")
            }
            _ if open.by_load.weight() > 1 => Some(GROUPS_HIDDEN),
            _ if open.beyond => Some("more hidden states than are asked for"),
            _ => None,
        };
        let verdict = DecisionVerdict::of(ModelAnswers::of(allowed.iter()), kernel, case).unless(why_not);
        self.vote_on_sync(&open, kernel);
        self.learn_reach(&open, kernel);
        self.learn_world(record.time, &open, kernel);
        let judged =
            DecisionPlace { record, kind: DecisionKind::WakeupCpu, case, queue: self.root_queue(prev) };
        if verdict.is_judged() && self.warm {
            self.tally.count_baseline(
                DecisionKind::WakeupCpu,
                "it stays on the CPU it last ran on",
                kernel == prev,
            );
        }
        let (here, pid) = (open.here, open.pid);
        self.judge(judged, verdict, |_| {
            [
                format!("{} for {pid} of {prev}, by {here}: {}", answer.cpu, answer.reason.describe()),
                kernel.to_string(),
            ]
        });
        match open.kind {
            SelectionOccasion::Wakeup => self.after_selection(&open, answer, kernel),
            SelectionOccasion::Exec => self.sched.note_selection(open.here, open.task, answer),
            SelectionOccasion::Fork => {}
        }
    }

    /// What a selection leaves behind, as the kernel made it.
    fn after_selection(&mut self, open: &Selection, answer: CpuDecision, kernel: Cpu) {
        let leaving = open.is_leaving();
        if !leaving {
            self.guess_loads_asked(open);
            self.know_search(open);
            self.sched.note_selection(open.here, open.task, answer);
            self.pass_load_on(open, kernel);
        }
        self.sched.stand_in_context(open.here, KernelContext::Task);
        let called = self.cpus[kernel.index()].called_at.is_some_and(|called| called >= open.began);
        if !called
            && !self.shows_wake_list(open.here, open.pid)
            && self.sched.ttwu_queue_cond(open.task, kernel, leaving)
        {
            self.comes_to(open.pid, kernel);
        }
    }

    /// A CPU begins to queue what was left to it. To v6.0 nothing tells others of that any more, until it is queued.
    pub(super) fn begin_queueing_woken(&mut self, now: Ns, cpu: Cpu) {
        if !self.rules.pending_until_called {
            return;
        }
        self.cpus[cpu.index()].called_at = Some(now);
        let comes = self.tasks.iter().filter(|(_, info)| info.coming_to == Some(cpu)).map(|(&pid, _)| pid);
        comes.collect::<Vec<_>>().into_iter().for_each(|pid| self.wakeup_arrives(pid));
    }

    /// Whether a waker promises to sleep decides whether its own load is asked for, and whether loads are weighed at all.
    fn guess_loads_asked(&mut self, open: &Selection) {
        if open.shown || open.sync.is_some() {
            return;
        }
        let [other, promised] = open.weighs;
        if promised {
            self.sched.guess_load_asked(self.sched.curr(open.here));
        }
        if promised != other {
            self.sched.guess_load_asked(open.task);
        }
    }

    /// A wakeup has arrived where it was left to the target CPU.
    pub(super) fn wakeup_arrives(&mut self, pid: Pid) {
        let Some(cpu) = self.tasks.get_mut(&pid).and_then(|info| info.coming_to.take()) else { return };
        self.sched.ttwu_arrived(cpu);
        self.cpus[cpu.index()].wakeups_coming -= 1;
    }

    fn vote_on_sync(&mut self, open: &Selection, kernel: Cpu) {
        if open.kind != SelectionOccasion::Wakeup || (open.sync.is_some() && !open.shown) {
            return;
        }
        let sync = match (open.sync, open.answers.map(|cpus| cpus.contains(kernel))) {
            (Some(known), _) => known,
            (None, [false, true]) => true,
            (None, [true, false]) => false,
            (None, _) => return,
        };
        for alike in self.alike(open) {
            let votes = self.sync_votes.entry(alike).or_default();
            *(if sync { &mut votes.sync } else { &mut votes.other }) += 1;
        }
    }
}

impl Selection {
    fn new(
        record: &EventRecord,
        task: TaskId,
        pid: Pid,
        kind: SelectionOccasion,
        sync: Option<bool>,
    ) -> Selection {
        Selection {
            task,
            pid,
            here: record.cpu,
            began: record.time,
            event: record.number,
            over: false,
            kind,
            in_hardirq: false,
            sync,
            answer: None,
            shown: false,
            usage_shown: false,
            answers: [CpuMask::EMPTY; 2],
            by_own: CpuMask::EMPTY,
            by_scan: Vec::new(),
            by_reach: [CpuMask::EMPTY; 2],
            by_hidden: CpuMask::EMPTY,
            leaves: SearchTraces::default(),
            beyond: false,
            weighs: [false; 2],
            by_idle_time: CpuMask::EMPTY,
            by_load: CpuMask::EMPTY,
            instants: 0,
            elsewhere: Vec::new(),
            why_not: None,
        }
    }

    /// Notes answers, for one possibility of `sync` or for both.
    fn note(&mut self, cpus: &[Cpu], sync: Option<bool>) {
        for (index, answers) in self.answers.iter_mut().enumerate() {
            if sync.is_none_or(|sync| usize::from(sync) == index) {
                cpus.iter().for_each(|&cpu| answers.set(cpu));
            }
        }
    }

    /// The CPUs that are chosen in the states that the unknowns allow.
    fn allowed(&self, answer: CpuDecision) -> CpuMask {
        let sets = [&self.by_hidden, &self.by_idle_time, &self.answers[0], &self.answers[1]];
        sets.into_iter().fold(CpuMask::single(answer.cpu), |all, cpus| all.or(cpus))
    }

    fn is_leaving(&self) -> bool {
        self.answer.is_some_and(|answer| answer.reason == SelectReason::LeavingItsCpu)
    }

    /// Under what the decision is counted.
    fn case(&self, prev: Cpu) -> &'static str {
        match self.kind {
            SelectionOccasion::Fork => return "fork",
            SelectionOccasion::Exec => return "exec",
            SelectionOccasion::Wakeup => {}
        }
        let Some(answer) = self.answer else { return "not asked" };
        match answer.reason {
            SelectReason::TargetIdle | SelectReason::PrevIdle if answer.cpu == prev => "prev idle",
            SelectReason::TargetIdle => "waker idle",
            SelectReason::RecentUsedIdle => "recent idle",
            SelectReason::IdleCore => "idle core",
            SelectReason::IdleSibling => "SMT",
            SelectReason::IdleInLlc | SelectReason::IdleInOtherCluster => "LLC scan",
            SelectReason::PerCpuKthread => "kthread",
            SelectReason::LeavingItsCpu => "leaving",
            SelectReason::LeastEnergy | SelectReason::PrevEnergy => "by energy",
            SelectReason::NoIdle if answer.cpu == self.here && self.sync == Some(true) => "sync",
            _ => "all busy",
        }
    }
}

/// Each of several CPUs alone, and all together.
fn each_and_all(cpus: &[Cpu]) -> impl Iterator<Item = &[Cpu]> {
    let alone = cpus.iter().map(std::slice::from_ref).filter(|_| cpus.len() > 1);
    alone.chain(Some(cpus).filter(|cpus| !cpus.is_empty()))
}

/// Whether wake flags, from v5.11, say that the waker is about to sleep.
pub(super) fn promises_sleep(probe: &ProbeHit) -> Option<bool> {
    probe.get(Key::WakeFlags).map(|flags| flags & 0x10 != 0)
}

/// On what occasion a selection is made, and whether the waker is about to sleep.
fn occasion_of(probe: &ProbeHit, has_load_balance_flag: bool) -> Option<(SelectionOccasion, bool)> {
    let flags = probe.get(Key::WakeFlags)?;
    // Up to v5.10 the occasion is the flag of the domains to search, whose numbers begin with SD_LOAD_BALANCE where there is
    // one, and a waker about to sleep the lowest wake flag.
    let (occasion, sync) = match probe.get(Key::SdFlag) {
        Some(domain) => (domain >> u32::from(has_load_balance_flag), flags & 0x1 != 0),
        None => (flags, promises_sleep(probe)?),
    };
    match (occasion & 0x2 != 0, occasion & 0x4 != 0, occasion & 0x8 != 0) {
        (_, _, true) => Some((SelectionOccasion::Wakeup, sync)),
        (_, true, _) => Some((SelectionOccasion::Fork, false)),
        (true, _, _) => Some((SelectionOccasion::Exec, false)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlab_event::TextFields;

    fn occasion(fields: &str) -> Option<(SelectionOccasion, bool)> {
        occasion_of(&ProbeHit::read("sel", TextFields::new(fields)).expect("a probe"), false)
    }

    #[test]
    fn flags_tell_the_occasion_in_both_numberings() {
        assert_eq!(
            occasion("(f+0x0/0x1) pid=1 prev=0 sdfl=0x8 wf=0x1"),
            Some((SelectionOccasion::Wakeup, true))
        );
        assert_eq!(
            occasion("(f+0x0/0x1) pid=1 prev=0 sdfl=0x4 wf=0x0"),
            Some((SelectionOccasion::Fork, false))
        );
        assert_eq!(occasion("(f+0x0/0x1) pid=1 prev=0 wf=0x18"), Some((SelectionOccasion::Wakeup, true)));
        assert_eq!(occasion("(f+0x0/0x1) pid=1 prev=0 wf=0x8"), Some((SelectionOccasion::Wakeup, false)));
        assert_eq!(occasion("(f+0x0/0x1) pid=1 prev=0 wf=0x4"), Some((SelectionOccasion::Fork, false)));
        assert_eq!(occasion("(f+0x0/0x1) pid=1 prev=0 wf=0x2"), Some((SelectionOccasion::Exec, false)));
        assert_eq!(occasion("(f+0x0/0x1) pid=1 prev=0"), None);
        let to_v5_7 = |flag: u32| {
            let fields = format!("(f+0x0/0x1) pid=1 prev=0 sdfl={flag:#x} wf=0x0");
            occasion_of(&ProbeHit::read("sel", TextFields::new(&fields)).expect("a probe"), true)
        };
        let occasions = [SelectionOccasion::Exec, SelectionOccasion::Fork, SelectionOccasion::Wakeup]
            .map(|asked| Some((asked, false)));
        assert_eq!([0x4, 0x8, 0x10].map(to_v5_7), occasions);
    }

    #[test]
    fn a_selection_shows_every_cpu() {
        let text =
            "(f+0x0/0x1) pid=9 prev=1 wf=0x8 la0=30 nr0=1 ai0=977647 cp0=1 cf0=31 la11=7 nr11=0 cp11=0";
        let probe = ProbeHit::read("sel", TextFields::new(text)).expect("a probe");
        assert_eq!(probe.cpus.len(), 12);
        assert_eq!(
            (probe.cpus[0].load, probe.cpus[0].curr, probe.cpus[0].flips),
            (Some(30), Some(Pid(1)), Some(31))
        );
        assert_eq!((probe.cpus[11].nr_running, probe.cpus[11].avg_idle), (Some(0), None));
        assert_eq!(probe.cpus[5].load, None);
    }
}
