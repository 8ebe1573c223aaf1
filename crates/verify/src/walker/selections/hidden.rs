//! The states that a wakeup's selection can find besides the core's: state that matters and that no event shows.
//!
//! * how often waker and wakee have woken others;
//! * whether the cache may have a wholly idle core;
//! * which CPU the wakee used before the last one;
//! * loads, which are rounded when they are computed, and which depend on the time before the trace.
//!
//! Any of them may differ at once: every combination is a state, up to a limit.
//!
//! Must not know: what the kernel chose.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::decision::{CpuDecision, SelectReason};
use fairlab_kernel::{CpuMask, TaskId};

use super::super::Walker;
use super::super::balancing::FORGOTTEN;
use super::{BEYOND_ANY_LOAD, Selection, SelectionOccasion};

/// How far a queue's load may be from the model's by what the kernel cuts: for what runs on it, and for what has left it.
const CUT: u64 = 2;

/// How many states are asked for at most; a wakeup that can find more is not judged.
const STATES_MAX: usize = 128;

/// What a wakeup's selection may find otherwise than the core has it; nothing where it does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HiddenState {
    /// How often waker and wakee have woken others.
    flips: Option<[u32; 2]>,
    /// Whether the cache that this CPU is in may have a wholly idle core.
    idle_cores: Option<(Cpu, bool)>,
    /// The loads of the waker's CPU and the previous one.
    loads: Option<[u64; 2]>,
    /// The CPU that the wakee used before the last one.
    recent: Option<Cpu>,
}

/// What the core had before something was assumed.
struct StateBefore {
    flips: [u32; 2],
    idle_cores: Option<(Cpu, bool)>,
    averages: [[u64; 3]; 2],
    recent: Cpu,
}

/// One unknown: what else it may be in a state, given what is chosen in that.
type UnknownChoice = fn(&mut Walker, &Selection, HiddenState, &CpuDecision) -> Vec<HiddenState>;

/// Where no probe shows the selection; in this order, since each decides if the next is asked for.
const UNKNOWNS: [UnknownChoice; 4] =
    [Walker::other_flips, Walker::other_idle_cores, Walker::other_loads, Walker::other_recent];

/// Where one does, which shows the rest.
const UNKNOWN_IF_SHOWN: [UnknownChoice; 1] = [Walker::other_idle_cores];

impl Walker {
    /// What is chosen in all states but the core's own that a wakeup on its way can find.
    pub(super) fn ask_hidden(&mut self, open: &mut Selection, sync: bool, own: CpuDecision) {
        if open.kind != SelectionOccasion::Wakeup {
            return;
        }
        let Some(states) = self.hidden_states(open, sync, own) else {
            open.beyond = true;
            return;
        };
        let by_usage = self.goes_by_usage(&own);
        if by_usage && !open.usage_shown && !self.usage_known(open) {
            open.why_not = Some("averages of before the trace");
        }
        for hidden in states.into_iter().skip(usize::from(!by_usage)) {
            let before = self.assume(open, hidden);
            let mut then = open.clone();
            let mut decisions = self.ask_within_bounds(&mut then, sync);
            if by_usage && !open.usage_shown {
                self.ask_nearby(&mut then, &mut decisions);
            }
            self.restore(open, &before);
            for decision in decisions {
                open.by_hidden.set(decision.cpu);
                open.leaves.note(&self.sched, &decision);
            }
        }
    }

    /// Every combination of what may be otherwise, the core's own first; `None` if there are too many.
    fn hidden_states(&mut self, open: &Selection, sync: bool, own: CpuDecision) -> Option<Vec<HiddenState>> {
        let unknowns: &[UnknownChoice] = if open.shown { &UNKNOWN_IF_SHOWN } else { &UNKNOWNS };
        let mut states = vec![HiddenState::default()];
        for other in unknowns {
            for index in 0..states.len() {
                let state = states[index];
                let before = self.assume(open, state);
                let decision = match state == HiddenState::default() {
                    true => own,
                    false => self.sched.select_task_rq(open.task, open.here, open.kind.wake_kind(sync)),
                };
                let others = other(self, open, state, &decision);
                self.restore(open, &before);
                states.extend(others);
                if states.len() > STATES_MAX {
                    return None;
                }
            }
        }
        Some(states)
    }

    /// Lets the core have what is hidden so, until it is restored.
    fn assume(&mut self, open: &Selection, hidden: HiddenState) -> StateBefore {
        let [waker, wakee] = self.waker_and_wakee(open);
        let cpus = [open.here, self.sched.task(open.task).cpu()];
        let cache = hidden.idle_cores.map(|(cpu, _)| cpu);
        let before = StateBefore {
            flips: [waker, wakee].map(|task| self.sched.wakee_flips(task)),
            idle_cores: cache.and_then(|cpu| Some((cpu, self.sched.has_idle_cores(cpu)?))),
            averages: cpus.map(|cpu| self.sched.root_averages(cpu)),
            recent: self.sched.recent_used_cpu(wakee),
        };
        for (task, flips) in [waker, wakee].into_iter().zip(hidden.flips.into_iter().flatten()) {
            self.sched.force_wakee_flips(task, flips);
        }
        if let Some((cpu, idle_cores)) = hidden.idle_cores {
            self.sched.force_idle_cores(cpu, idle_cores);
        }
        for (cpu, load) in cpus.into_iter().zip(hidden.loads.into_iter().flatten()) {
            self.sched.pretend_cpu_load(cpu, load);
        }
        if let Some(recent) = hidden.recent {
            self.sched.force_recent_used_cpu(wakee, recent);
        }
        before
    }

    fn restore(&mut self, open: &Selection, before: &StateBefore) {
        let tasks = self.waker_and_wakee(open);
        let cpus = [open.here, self.sched.task(open.task).cpu()];
        for (task, flips) in tasks.into_iter().zip(before.flips) {
            self.sched.force_wakee_flips(task, flips);
        }
        if let Some((cpu, idle_cores)) = before.idle_cores {
            self.sched.force_idle_cores(cpu, idle_cores);
        }
        for (cpu, [load, runnable, util]) in cpus.into_iter().zip(before.averages) {
            self.sched.pretend_cpu_load(cpu, load);
            self.sched.pretend_cpu_util(cpu, runnable, util);
        }
        self.sched.force_recent_used_cpu(open.task, before.recent);
    }

    fn waker_and_wakee(&self, open: &Selection) -> [TaskId; 2] {
        [self.sched.curr(open.here), open.task]
    }

    /// Counts of wakings with which both are kept apart if they are not with the core's, and the other way round.
    fn other_flips(&mut self, open: &Selection, state: HiddenState, _: &CpuDecision) -> Vec<HiddenState> {
        let tasks = self.waker_and_wakee(open);
        let factor = self.sched.domains().of_cpu(open.here).sd_llc_size;
        let counted = tasks.map(|task| self.sched.wakee_flips(task));
        let is_wide = self.sched.wakes_wide(tasks[0], tasks[1], open.here);
        let may_be = tasks.map(|task| {
            let [least, most] = self.flips_interval(task);
            [least, most, factor.clamp(least, most), factor.saturating_mul(factor).clamp(least, most)]
        });
        let pairs = may_be[0].into_iter().flat_map(|one| may_be[1].map(|other| [one, other]));
        let other = pairs.into_iter().find(|flips| {
            self.sched.force_wakee_flips(tasks[0], flips[0]);
            self.sched.force_wakee_flips(tasks[1], flips[1]);
            self.sched.wakes_wide(tasks[0], tasks[1], open.here) != is_wide
        });
        for (task, flips) in tasks.into_iter().zip(counted) {
            self.sched.force_wakee_flips(task, flips);
        }
        other.map(|flips| HiddenState { flips: Some(flips), ..state }).into_iter().collect()
    }

    /// The hint of the cache that is searched, where nothing has shown it.
    fn other_idle_cores(
        &mut self,
        open: &Selection,
        state: HiddenState,
        decision: &CpuDecision,
    ) -> Vec<HiddenState> {
        let prev = self.sched.task(open.task).cpu();
        let mut caches = Vec::<Cpu>::new();
        for cpu in [decision.cpu, open.here, prev] {
            if !caches.iter().any(|&known| self.sched.domains().cpus_share_cache(known, cpu)) {
                caches.push(cpu);
            }
        }
        let unknown = caches.into_iter().filter(|cpu| !self.cpus[cpu.index()].idle_cores_known);
        let unknown = unknown.filter(|_| self.sched.topology().has_smt());
        let hints = unknown.filter_map(|cpu| self.sched.has_idle_cores(cpu).map(|hint| (cpu, !hint)));
        hints.map(|hint| HiddenState { idle_cores: Some(hint), ..state }).collect()
    }

    /// The loads that favour the waker's CPU most, and the previous one, where both are weighed.
    fn other_loads(
        &mut self,
        open: &Selection,
        state: HiddenState,
        decision: &CpuDecision,
    ) -> Vec<HiddenState> {
        let prev = self.sched.task(open.task).cpu();
        if decision.search.weighed.is_none() || open.here == prev {
            return Vec::new();
        }
        let tasks_known = self.waker_and_wakee(open).into_iter().all(|task| {
            let is_idle = task == self.sched.idle_task(open.here);
            is_idle || self.pasts.load_known(task, open.began)
        });
        let [here, there] = [open.here, prev].map(|cpu| match tasks_known {
            true => self.load_interval(cpu, open.began),
            false => [0, BEYOND_ANY_LOAD],
        });
        let loads = [[here[0], there[1]], [here[1], there[0]]];
        loads.into_iter().map(|loads| HiddenState { loads: Some(loads), ..state }).collect()
    }

    /// Between what a CPU's load lies.
    fn load_interval(&self, cpu: Cpu, now: Ns) -> [u64; 2] {
        let load = self.sched.load_of_cpu(cpu);
        let doubted = self.cpus[cpu.index()].load_doubted.is_some_and(|since| now.since(since) < FORGOTTEN);
        let known = !doubted && (self.averages_laid || self.begins_with_machine || self.has_forgotten(now));
        if known { [load.saturating_sub(CUT), load + CUT] } else { [0, BEYOND_ANY_LOAD] }
    }

    /// Whether averages hold nothing any more of what was before the trace.
    fn has_forgotten(&self, now: Ns) -> bool {
        now.since(self.began.unwrap_or(now)) >= FORGOTTEN
    }

    /// Idle CPUs that the wakee may have used before the last one, or none, where that counts and is not known.
    fn other_recent(
        &mut self,
        open: &Selection,
        state: HiddenState,
        decision: &CpuDecision,
    ) -> Vec<HiddenState> {
        if !decision.search.reached_recent || self.pasts.of(open.task).recent_known {
            return Vec::new();
        }
        let prev = self.sched.task(open.task).cpu();
        let cpus = (0..self.cpus.len()).map(|index| Cpu(index as u32)).filter(|&cpu| {
            let near =
                [open.here, prev].iter().any(|&other| self.sched.domains().cpus_share_cache(cpu, other));
            near && (cpu == prev || self.sched.is_idle_cpu(cpu))
        });
        cpus.map(|cpu| HiddenState { recent: Some(cpu), ..state }).collect()
    }

    /// Whether a decision rests on how much CPUs are used.
    fn goes_by_usage(&self, decision: &CpuDecision) -> bool {
        matches!(decision.reason, SelectReason::LeastEnergy | SelectReason::PrevEnergy)
            || self.sched.topology().has_asymmetric_capacity()
    }

    /// Whether how much CPUs are used, and the task uses, is of this trace.
    fn usage_known(&mut self, open: &Selection) -> bool {
        let laid = self.averages_laid || self.begins_with_machine || self.has_forgotten(open.began);
        laid && self.pasts.load_known(open.task, open.began)
    }

    /// A CPU has gone idle: if its whole core has, its cache is known to have one.
    pub(in super::super) fn know_idle_core(&mut self, cpu: Cpu) {
        let idles = |sibling: Cpu| self.sched.curr(sibling) == self.sched.idle_task(sibling);
        if self.sched.topology().smt_mask(cpu).iter().all(idles) {
            self.set_idle_cores_known(cpu, true);
        }
    }

    pub(super) fn set_idle_cores_known(&mut self, cpu: Cpu, known: bool) {
        let cpus = (0..self.cpus.len()).map(|index| Cpu(index as u32));
        let cache =
            cpus.filter(|&other| self.sched.domains().cpus_share_cache(cpu, other)).collect::<CpuMask>();
        for other in cache.iter() {
            self.cpus[other.index()].idle_cores_known = known;
        }
    }
}
