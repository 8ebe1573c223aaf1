//! What is chosen for a new task if averages are not exactly the model's, where nothing shows them.
//!
//! A new task's utilization is guessed from its queue's: a share of that by weight, or half of what is left of the CPU
//! where the queue has none. On a queue that has next to none, one unit more or less, which rounding decides, makes
//! hundreds: two worlds, and no trace tells in which the kernel is. What they differ by halves every 32 ms and leaves with
//! the task.
//!
//! Of CPUs that idle, the one that went idle last is chosen: where that was before the trace, any of them may be it.
//!
//! Must not know: what the kernel chose.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::core::WakeKind;
use fairlab_kernel::decision::CpuDecision;
use fairlab_kernel::{CpuMask, Scheduler, TaskId};

use super::super::Walker;
use super::{Asked, Selection};

/// How far an average may be from the kernel's, which cuts those of what runs on a queue, of what has left it and of what
/// joins it to whole numbers: five in six of those that probes show are within this in a walk without these probes.
const ROUNDING: i64 = 2;

/// On larger machines only so many CPUs' are varied.
const VARIED_MAX: usize = 32;

/// More load than any CPU's.
pub(in super::super) const BEYOND_ANY_LOAD: u64 = 1 << 24;

/// The utilization of a CPU that never idles.
const WHOLE_CPU: u64 = 1024;

/// In so long what averages count halves, ns.
const HALF_LIFE: u64 = 32 << 20;

/// What a task's utilization would be more than the model's, where rounding had gone down and where it had gone up, and when
/// that was so.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Doubt {
    offsets: [i64; 2],
    since: Ns,
}

impl Doubt {
    /// What is left of it at `now`: halved for each half-life, and evenly in between.
    fn at(self, now: Ns) -> [i64; 2] {
        let passed = now.0.saturating_sub(self.since.0);
        self.offsets.map(|offset| {
            let halved = offset.checked_shr((passed / HALF_LIFE) as u32).unwrap_or(0);
            halved - (halved * (passed % HALF_LIFE) as i64) / (2 * HALF_LIFE) as i64
        })
    }
}

impl Walker {
    /// A new task is about to join its queue on `cpu`: notes how far the guess of its utilization may be off.
    pub(in super::super) fn doubt_initial_util(&mut self, now: Ns, task: TaskId, cpu: Cpu) {
        let [down, up] = self.doubts(now)[cpu.index()];
        let known = self.sched.initial_util(task, cpu, 0) as i64;
        let worlds = [down - ROUNDING, up + ROUNDING];
        let offsets = worlds.map(|more| self.sched.initial_util(task, cpu, more) as i64 - known);
        if let Some(info) = self.info(task) {
            info.util_doubt = Doubt { offsets, since: now };
        }
    }

    /// What runnability and utilization of each CPU would be more than the model's, by what its tasks had begun with.
    fn doubts(&self, now: Ns) -> Vec<[i64; 2]> {
        let mut doubts = vec![[0; 2]; self.cpus.len()];
        for info in self.tasks.values().filter(|info| info.util_doubt.offsets != [0; 2]) {
            let gone = info.exiting && !self.sched.is_on_queue(info.id);
            if !gone {
                let [less, more] = info.util_doubt.at(now);
                let [down, up] = &mut doubts[self.sched.task(info.id).cpu().index()];
                *down += less;
                *up += more;
            }
        }
        doubts
    }

    /// Asks what would be chosen for a new task if utilization were less or more where it is doubted: on each CPU alone, and
    /// on all others the other way round.
    pub(super) fn ask_nearby(&mut self, open: &Selection, decisions: &mut Vec<CpuDecision>) {
        let doubts = self.doubts(open.began);
        let known = (0..).map(Cpu).zip(doubts).take(VARIED_MAX).map(|(cpu, [down, up])| {
            // An idle CPU of no load has no utilization, either; of any other rounding decides the last units.
            let averages = self.sched.root_averages(cpu);
            let rounding = if averages == [0; 3] { 0 } else { ROUNDING };
            (cpu, averages, [0, down.min(up).min(-rounding), down.max(up).max(rounding)])
        });
        let doubted = known.filter(|&(.., offsets)| offsets != [0; 3]).collect::<Vec<_>>();
        for one in 0..doubted.len() {
            for (own, others) in [(1, 0), (2, 0), (1, 2), (2, 1)] {
                for (index, &(cpu, averages, offsets)) in doubted.iter().enumerate() {
                    self.vary_util(cpu, averages, offsets[if index == one { own } else { others }]);
                }
                decisions.push(self.sched.select_task_rq(open.task, open.here, WakeKind::Fork));
            }
        }
        for (cpu, averages, _) in doubted {
            self.vary_util(cpu, averages, 0);
        }
    }

    fn vary_util(&mut self, cpu: Cpu, [_, runnable, util]: [u64; 3], by: i64) {
        self.sched.pretend_cpu_util(cpu, runnable.saturating_add_signed(by), util.saturating_add_signed(by));
    }

    /// Asks what would be chosen if the kernel had halved once more by now, or once less, how often the waker or the wakee has
    /// woken others: it does so each second, and when it did so last before the trace is not shown.
    pub(super) fn ask_other_flips(&mut self, open: &mut Selection, sync: bool) {
        let (waker, wakee) = (self.sched.curr(open.here), open.task);
        let is_wide = self.sched.wakes_wide(waker, wakee, open.here);
        for (task, other) in [(waker, wakee), (wakee, waker)] {
            let flips = self.sched.wakee_flips(task);
            for changed in [flips / 2, 2 * flips] {
                self.sched.force_wakee_flips(task, changed);
                if self.sched.wakes_wide(task, other, open.here) != is_wide {
                    let decision = self.sched.select_task_rq(wakee, open.here, WakeKind::Wakeup { sync });
                    open.by_flips.set(decision.cpu);
                }
            }
            self.sched.force_wakee_flips(task, flips);
        }
    }

    /// What is chosen if a CPU's load were as small or as large as none is, where groups that nothing tells of decide that. So
    /// do they what a new task's utilization begins with, and which CPU is used least, as others see.
    pub(super) fn ask_other_loads(&mut self, open: &Selection, sync: bool) -> CpuMask {
        let kind = open.kind.wake_kind(sync);
        let mut chosen = CpuMask::EMPTY;
        let mut ask =
            |sched: &mut Scheduler| chosen.set(sched.select_task_rq(open.task, open.here, kind).cpu);
        ask(&mut self.sched);
        for cpu in (0..self.cpus.len()).map(|cpu| Cpu(cpu as u32)) {
            let [load, runnable, util] = self.sched.root_averages(cpu);
            for other in [0, BEYOND_ANY_LOAD] {
                self.sched.pretend_cpu_load(cpu, other);
                ask(&mut self.sched);
                if open.kind != Asked::Wakeup {
                    let used = other.min(WHOLE_CPU);
                    self.sched.pretend_cpu_util(cpu, used, used);
                    ask(&mut self.sched);
                    self.sched.pretend_cpu_util(cpu, runnable, util);
                }
            }
            self.sched.pretend_cpu_load(cpu, load);
            self.sched.pretend_cpu_util(cpu, runnable, util);
        }
        chosen
    }

    /// The machine is started with the trace: no CPU has idled before, and nobody has been woken.
    pub(in super::super) fn know_beginning(&mut self) {
        self.begins_with_machine = true;
        self.cpus.iter_mut().for_each(|cpu| cpu.idle_time_known = true);
    }

    /// What is chosen for a new task, or one that execs, if this or that CPU went idle last of those that have idled since
    /// before the trace.
    pub(super) fn ask_idle_times(&mut self, open: &Selection) -> CpuMask {
        let cpus = (0..self.cpus.len()).map(|cpu| Cpu(cpu as u32));
        let unknown = cpus.filter(|&cpu| {
            !self.cpus[cpu.index()].idle_time_known && self.sched.curr(cpu) == self.sched.idle_task(cpu)
        });
        let unknown = unknown.take(VARIED_MAX).collect::<Vec<_>>();
        let kind = if open.kind == Asked::Exec { WakeKind::Exec } else { WakeKind::Fork };
        let mut chosen = CpuMask::EMPTY;
        for &last in &unknown {
            for &cpu in &unknown {
                self.sched.force_idle_stamp(cpu, Some(Ns(u64::from(cpu == last))));
            }
            chosen.set(self.sched.select_task_rq(open.task, open.here, kind).cpu);
        }
        unknown.iter().for_each(|&cpu| self.sched.force_idle_stamp(cpu, None));
        chosen
    }

    /// Whether no CPU that a task may use is ruled out.
    pub(super) fn admits_all(&self, task: TaskId, answers: &[CpuMask]) -> bool {
        let allowed = self.sched.task(task).allowed();
        let mut cpus = (0..self.cpus.len()).map(|cpu| Cpu(cpu as u32)).filter(|&cpu| allowed.contains(cpu));
        cpus.all(|cpu| answers.iter().any(|answers| answers.contains(cpu)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubt_halves_every_half_life() {
        let doubt = Doubt { offsets: [-400, 8], since: Ns(1_000) };
        let after = |halves: u64| doubt.at(Ns(1_000 + halves * HALF_LIFE / 2));
        assert_eq!([0, 1, 2, 3, 4].map(after), [[-400, 8], [-300, 6], [-200, 4], [-150, 3], [-100, 2]]);
        assert_eq!(doubt.at(Ns(0)), [-400, 8]);
        assert!(doubt.at(Ns(u64::MAX)).iter().all(|offset| (-1..=0).contains(offset)));
    }
}
