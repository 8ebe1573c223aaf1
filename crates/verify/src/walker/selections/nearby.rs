//! What is chosen for a new task if averages differ slightly from the model's, and nothing shows them.
//!
//! The utilization of a new task is guessed from its queue's: a share by weight, or half of the CPU's rest if the queue has
//! none. If the queue has next to none, one unit of rounding makes hundreds. So there are two possible states, and no trace
//! shows which is the kernel's. Their difference halves every 32 ms and leaves with the task.
//!
//! Of idle CPUs the one that went idle last is chosen. If that was before the trace, it may be any of them.
//!
//! Must not know: what the kernel chose.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::core::WakeKind;
use fairlab_kernel::decision::CpuDecision;
use fairlab_kernel::{CpuMask, Scheduler, TaskId};

use super::super::Walker;
use super::super::state::TaskInfo;
use super::{Selection, SelectionOccasion};

/// What a queue's averages may be more than the model's. The kernel cuts them to whole numbers for what runs on a queue, has left
/// it, or joins it. In a walk without probes, five in six of those that probes show are within this. Each is a world of its own:
/// on a queue of next to no load they make a new task's utilization 512, 340 or 30.
const WORLDS: [i64; 4] = [-1, 1, -2, 2];

/// The model's own world.
const OWN: [i64; WORLDS.len()] = [0; WORLDS.len()];

/// On larger machines only so many CPUs' are varied.
const VARIED_MAX: usize = 32;

/// More load than any CPU's.
pub(in super::super) const BEYOND_ANY_LOAD: u64 = 1 << 24;

/// The utilization of a CPU that never idles.
const WHOLE_CPU: u64 = 1024;

/// In so long what averages count halves, ns.
const HALF_LIFE: u64 = 32 << 20;

/// What a task's utilization would be more than the model's in each world, and when that was so.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct UtilDoubt {
    offsets: [i64; WORLDS.len()],
    since: Ns,
}

impl UtilDoubt {
    /// The rest of it at `now`: halved for each half-life, and evenly in between.
    fn at(self, now: Ns) -> [i64; WORLDS.len()] {
        let passed = now.0.saturating_sub(self.since.0);
        self.offsets.map(|offset| {
            let halved = offset.checked_shr((passed / HALF_LIFE) as u32).unwrap_or(0);
            halved - (halved * (passed % HALF_LIFE) as i64) / (2 * HALF_LIFE) as i64
        })
    }
}

/// What is chosen for a new task if one CPU's utilization is that of another world.
#[derive(Clone, Copy, Debug)]
pub(super) struct OtherChoice {
    on: Cpu,
    world: usize,
    more: i64,
    chosen: Cpu,
}

impl Walker {
    /// A new task is about to join its queue on `cpu`: notes what the guess of its utilization is in each world.
    pub(in super::super) fn doubt_initial_util(&mut self, now: Ns, task: TaskId, cpu: Cpu) {
        let known = self.sched.initial_util(task, cpu, 0) as i64;
        let mut offsets = self.doubts(now)[cpu.index()];
        for (offset, rounding) in offsets.iter_mut().zip(WORLDS) {
            *offset = self.sched.initial_util(task, cpu, *offset + rounding) as i64 - known;
        }
        if let Some(info) = self.info(task) {
            info.util_doubt = UtilDoubt { offsets, since: now };
        }
    }

    /// Whether a task counts on its CPU and may count more or less than the model has it.
    fn is_doubted(&self, info: &TaskInfo) -> bool {
        info.util_doubt.offsets != OWN && (!info.exiting || self.sched.is_on_queue(info.id))
    }

    /// What runnability and utilization of each CPU would be more than the model's in each world, by what its tasks had begun
    /// with.
    fn doubts(&self, now: Ns) -> Vec<[i64; WORLDS.len()]> {
        let mut doubts = vec![OWN; self.cpus.len()];
        for info in self.tasks.values().filter(|info| self.is_doubted(info)) {
            let sums = &mut doubts[self.sched.task(info.id).cpu().index()];
            sums.iter_mut().zip(info.util_doubt.at(now)).for_each(|(sum, more)| *sum += more);
        }
        doubts
    }

    /// Asks for the choice for a task that is new or execs, with less or more utilization where it is doubted: on each CPU alone,
    /// and on all others the other way round; and if a CPU's load were.
    pub(super) fn ask_nearby(&mut self, open: &mut Selection, decisions: &mut Vec<CpuDecision>) {
        let kind = open.kind.wake_kind(false);
        let doubts = self.doubts(open.began);
        let known = (0..).map(Cpu).zip(doubts).take(VARIED_MAX).map(|(cpu, doubt)| {
            // An idle CPU of no load has no utilization, either; of any other rounding decides the last units.
            let averages = self.sched.root_averages(cpu);
            let rounding = if averages == [0; 3] { OWN } else { WORLDS };
            (cpu, averages, std::array::from_fn(|world| doubt[world] + rounding[world]))
        });
        let doubted = known.filter(|&(.., offsets)| offsets != OWN).collect::<Vec<_>>();
        for &(on, _, offsets) in &doubted {
            for (world, more) in (0..).zip(offsets).filter(|&(_, more)| more != 0) {
                let [alone, against] = [false, true].map(|others| {
                    for &(cpu, averages, offsets) in &doubted {
                        let opposite = match others {
                            _ if cpu == on => more,
                            false => 0,
                            true if more < 0 => offsets.into_iter().max().unwrap_or(0).max(0),
                            true => offsets.into_iter().min().unwrap_or(0).min(0),
                        };
                        self.vary_util(cpu, averages, opposite);
                    }
                    self.sched.select_task_rq(open.task, open.here, kind)
                });
                open.elsewhere.push(OtherChoice { on, world, more, chosen: alone.cpu });
                decisions.extend([alone, against]);
            }
        }
        for (cpu, averages, _) in doubted {
            self.vary_util(cpu, averages, 0);
            if !open.shown {
                decisions.extend(self.ask_near_loads(open, cpu, averages));
            }
        }
    }

    /// Asks what would be chosen if a CPU's load had been cut otherwise.
    fn ask_near_loads(
        &mut self,
        open: &Selection,
        cpu: Cpu,
        averages: [u64; 3],
    ) -> [CpuDecision; WORLDS.len()] {
        let decisions = WORLDS.map(|more| {
            self.sched.pretend_cpu_load(cpu, averages[0].saturating_add_signed(more));
            self.sched.select_task_rq(open.task, open.here, open.kind.wake_kind(false))
        });
        self.sched.pretend_cpu_load(cpu, averages[0]);
        self.vary_util(cpu, averages, 0);
        decisions
    }

    /// The kernel's choice for a new task tells in which world it is, where that is not the model's: of those in which one CPU's
    /// utilization explains it, that in which it differs least.
    pub(super) fn learn_world(&mut self, now: Ns, open: &Selection, kernel: Cpu) {
        if open.by_own.contains(kernel) {
            return;
        }
        let explain = open.elsewhere.iter().filter(|elsewhere| elsewhere.chosen == kernel);
        let Some(&OtherChoice { on, world, .. }) = explain.min_by_key(|elsewhere| elsewhere.more.abs())
        else {
            return;
        };
        let carry = self.tasks.values().filter(|info| self.is_doubted(info));
        let carry = carry.filter(|info| self.sched.task(info.id).cpu() == on).map(|info| info.id);
        for task in carry.collect::<Vec<_>>() {
            let Some(info) = self.info(task) else { continue };
            let offsets = info.util_doubt.at(now);
            let more = offsets[world];
            info.util_doubt = UtilDoubt { offsets: offsets.map(|offset| offset - more), since: now };
            self.sched.add_task_util(task, more);
        }
    }

    fn vary_util(&mut self, cpu: Cpu, [_, runnable, util]: [u64; 3], by: i64) {
        self.sched.pretend_cpu_util(cpu, runnable.saturating_add_signed(by), util.saturating_add_signed(by));
    }

    /// Asks with other loads that waker and wakee count on their CPUs: balancing may have had them computed at any time in this
    /// jiffy. The two cases favour the waker's CPU most, and the previous one.
    pub(super) fn ask_with_loads_asked(&mut self, open: &mut Selection, sync: bool) {
        let (waker, wakee) = (self.sched.curr(open.here), open.task);
        let counted = [waker, wakee].map(|task| self.sched.loads_counted(task));
        if counted.iter().all(|[least, most]| least == most) {
            return;
        }
        let [waker_counts, wakee_counts] = counted;
        let kind = open.kind.wake_kind(sync);
        let known = self.sched.select_task_rq(wakee, open.here, kind).search.pulled_in;
        let extremes = [[waker_counts[1], wakee_counts[0]], [waker_counts[0], wakee_counts[1]]];
        for [of_waker, of_wakee] in extremes {
            self.sched.give_loads(vec![(waker, of_waker), (wakee, of_wakee)]);
            if self.sched.select_task_rq(wakee, open.here, kind).search.pulled_in != known {
                let mut then = open.clone();
                let decisions = self.ask_within_bounds(&mut then, sync);
                open.note(&decisions.iter().map(|decision| decision.cpu).collect::<Vec<_>>(), Some(sync));
            }
        }
        self.sched.give_loads(Vec::new());
    }

    /// The choice if a CPU had the smallest or the largest possible load, where unknown groups decide its load. So do they what a
    /// new task's utilization begins with, and which CPU is used least, as others see.
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
                if open.kind != SelectionOccasion::Wakeup {
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

    /// The machine is started with the trace: no CPU has idled before, and no task has been woken.
    pub(in super::super) fn know_beginning(&mut self) {
        self.begins_with_machine = true;
        self.pasts.begin_with_machine();
        self.cpus.iter_mut().for_each(|cpu| (cpu.idle_time_known, cpu.idle_cores_known) = (true, true));
    }

    /// What is chosen for a task that is new or execs, for each CPU that may have gone idle last of those idle since before the
    /// trace.
    pub(super) fn ask_idle_times(&mut self, open: &Selection) -> CpuMask {
        let cpus = (0..self.cpus.len()).map(|cpu| Cpu(cpu as u32));
        let unknown = cpus.filter(|&cpu| {
            !self.cpus[cpu.index()].idle_time_known && self.sched.curr(cpu) == self.sched.idle_task(cpu)
        });
        let unknown = unknown.take(VARIED_MAX).collect::<Vec<_>>();
        let kind = if open.kind == SelectionOccasion::Exec { WakeKind::Exec } else { WakeKind::Fork };
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
    pub(super) fn admits_all(&self, task: TaskId, answers: &CpuMask) -> bool {
        let allowed = self.sched.task(task).allowed();
        let mut cpus = (0..self.cpus.len()).map(|cpu| Cpu(cpu as u32)).filter(|&cpu| allowed.contains(cpu));
        cpus.all(|cpu| answers.contains(cpu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubt_halves_every_half_life() {
        let doubt = UtilDoubt { offsets: [-400, 8, 0, 0], since: Ns(1_000) };
        let after = |halves: u64| doubt.at(Ns(1_000 + halves * HALF_LIFE / 2));
        let halved = [[-400, 8], [-300, 6], [-200, 4], [-150, 3], [-100, 2]];
        assert_eq!([0, 1, 2, 3, 4].map(after), halved.map(|[less, more]| [less, more, 0, 0]));
        assert_eq!(doubt.at(Ns(0)), [-400, 8, 0, 0]);
        assert!(doubt.at(Ns(u64::MAX)).iter().all(|offset| (-1..=0).contains(offset)));
    }
}
