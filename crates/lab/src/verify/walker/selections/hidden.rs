//! The states that a wakeup's selection can find besides the core's: what decides it, and no event shows.
//!
//! How often the waker and the wakee have woken others, which each halves once a second; whether the cache may have a wholly
//! idle core; and loads, which are cut to whole numbers where they are computed, and before that hang on what was before the
//! trace. All of them may be otherwise at the same time.
//!
//! Must not know: what the kernel chose.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::CpuMask;
use fairlab_kernel::decision::CpuDecision;

use super::super::Walker;
use super::super::balancing::FORGOTTEN;
use super::{Asked, BEYOND_ANY_LOAD, Selection};

/// How far a queue's load may be from the model's by what the kernel cuts: for what runs on it, and for what has left it.
const CUT: u64 = 2;

/// What a wakeup's selection may find otherwise than the core has it; nothing where it does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Hidden {
    /// How often waker and wakee have woken others.
    flips: Option<[u32; 2]>,
    /// Whether the cache that this CPU is in may have a wholly idle core.
    idle_cores: Option<(Cpu, bool)>,
    /// The loads of the waker's CPU and the previous one.
    loads: Option<[u64; 2]>,
}

/// What the core had before something was assumed.
struct Before {
    flips: [u32; 2],
    idle_cores: Option<(Cpu, bool)>,
    averages: [[u64; 3]; 2],
}

impl Walker {
    /// What is chosen in all states but the core's own that a wakeup on its way can find.
    pub(super) fn ask_hidden(&mut self, open: &mut Selection, sync: bool, own: CpuDecision) {
        if open.kind != Asked::Wakeup || open.shown {
            return;
        }
        for hidden in self.hidden_states(open, sync, own) {
            let before = self.assume(open, hidden);
            let mut then = open.clone();
            let decisions = self.ask_within_bounds(&mut then, sync);
            self.restore(open, &before);
            for decision in decisions {
                open.by_hidden.set(decision.cpu);
                open.note_core(&decision);
            }
        }
    }

    /// Every combination of what may be otherwise.
    fn hidden_states(&mut self, open: &Selection, sync: bool, own: CpuDecision) -> Vec<Hidden> {
        let flips = self.other_flips(open);
        let cores = self.other_idle_cores(open, own);
        let mut states = Vec::new();
        for flips in [None, flips].into_iter().take(1 + usize::from(flips.is_some())) {
            for idle_cores in std::iter::once(None).chain(cores.iter().copied().map(Some)) {
                let state = Hidden { flips, idle_cores, loads: None };
                let before = self.assume(open, state);
                let decision = self.sched.select_task_rq(open.task, open.here, open.kind.wake_kind(sync));
                let loads = self.other_loads(open, &decision);
                self.restore(open, &before);
                states.push(state);
                states.extend(loads.into_iter().map(|loads| Hidden { loads: Some(loads), ..state }));
            }
        }
        // The first is the core's own.
        states.split_off(1)
    }

    /// Lets the core have what is hidden so, until it is restored.
    fn assume(&mut self, open: &Selection, hidden: Hidden) -> Before {
        let tasks = [self.sched.curr(open.here), open.task];
        let cpus = [open.here, self.sched.task(open.task).cpu()];
        let cache = hidden.idle_cores.map(|(cpu, _)| cpu);
        let before = Before {
            flips: tasks.map(|task| self.sched.wakee_flips(task)),
            idle_cores: cache.and_then(|cpu| Some((cpu, self.sched.has_idle_cores(cpu)?))),
            averages: cpus.map(|cpu| self.sched.root_averages(cpu)),
        };
        for (task, flips) in tasks.into_iter().zip(hidden.flips.into_iter().flatten()) {
            self.sched.force_wakee_flips(task, flips);
        }
        if let Some((cpu, idle_cores)) = hidden.idle_cores {
            self.sched.force_idle_cores(cpu, idle_cores);
        }
        for (cpu, load) in cpus.into_iter().zip(hidden.loads.into_iter().flatten()) {
            self.sched.pretend_cpu_load(cpu, load);
        }
        before
    }

    fn restore(&mut self, open: &Selection, before: &Before) {
        let tasks = [self.sched.curr(open.here), open.task];
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
    }

    /// How often waker and wakee may have woken others so that it makes a difference: the kernel has halved a count once more
    /// by now, or once less, since when it did so last before the trace is not shown.
    fn other_flips(&mut self, open: &Selection) -> Option<[u32; 2]> {
        if self.begins_with_machine {
            return None;
        }
        let tasks = [self.sched.curr(open.here), open.task];
        let counted = tasks.map(|task| self.sched.wakee_flips(task));
        let may_be = counted.map(|flips| [flips, flips / 2, flips.saturating_mul(2)]);
        let is_wide = self.sched.wakes_wide(tasks[0], tasks[1], open.here);
        let mut pairs = may_be[0].into_iter().flat_map(|one| may_be[1].map(|other| [one, other]));
        let mut makes_a_difference = |flips: &[u32; 2]| {
            self.sched.force_wakee_flips(tasks[0], flips[0]);
            self.sched.force_wakee_flips(tasks[1], flips[1]);
            self.sched.wakes_wide(tasks[0], tasks[1], open.here) != is_wide
        };
        let other = pairs.find(&mut makes_a_difference);
        for (task, flips) in tasks.into_iter().zip(counted) {
            self.sched.force_wakee_flips(task, flips);
        }
        other
    }

    /// The hint of the cache that is searched, where nothing has shown it.
    fn other_idle_cores(&self, open: &Selection, own: CpuDecision) -> Vec<(Cpu, bool)> {
        let prev = self.sched.task(open.task).cpu();
        let mut caches = Vec::<Cpu>::new();
        for cpu in [own.cpu, open.here, prev] {
            if !caches.iter().any(|&known| self.sched.domains().cpus_share_cache(known, cpu)) {
                caches.push(cpu);
            }
        }
        let unknown = caches.into_iter().filter(|cpu| !self.cpus[cpu.index()].idle_cores_known);
        let unknown = unknown.filter(|_| self.sched.topology().has_smt());
        unknown.filter_map(|cpu| self.sched.has_idle_cores(cpu).map(|hint| (cpu, !hint))).collect()
    }

    /// The loads that favour the waker's CPU most, and the previous one, where both are weighed.
    fn other_loads(&self, open: &Selection, decision: &CpuDecision) -> Vec<[u64; 2]> {
        let prev = self.sched.task(open.task).cpu();
        if decision.search.weighed.is_none() || open.here == prev {
            return Vec::new();
        }
        let [here, there] = [open.here, prev].map(|cpu| self.load_interval(cpu, open.began));
        vec![[here[0], there[1]], [here[1], there[0]]]
    }

    /// Between what a CPU's load lies.
    fn load_interval(&self, cpu: Cpu, now: Ns) -> [u64; 2] {
        let load = self.sched.load_of_cpu(cpu);
        let seen = now.0.saturating_sub(self.began.unwrap_or(now).0);
        let known = self.averages_laid || self.begins_with_machine || seen >= FORGOTTEN.0;
        if known { [load.saturating_sub(CUT), load + CUT] } else { [0, BEYOND_ANY_LOAD] }
    }

    /// A CPU has gone idle: if its whole core has, its cache is known to have one.
    pub(in super::super) fn know_idle_core(&mut self, cpu: Cpu) {
        let idles = |sibling: Cpu| self.sched.curr(sibling) == self.sched.idle_task(sibling);
        if self.sched.topology().smt_mask(cpu).iter().all(idles) {
            self.set_idle_cores_known(cpu, true);
        }
    }

    /// A selection is over: whether its cache may still have a wholly idle core is known where all states agree on that.
    pub(super) fn know_search(&mut self, open: &Selection) {
        let [leaves, clears] = open.no_core;
        if clears {
            let prev = self.sched.task(open.task).cpu();
            [open.here, prev].into_iter().for_each(|cpu| self.set_idle_cores_known(cpu, !leaves));
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
