//! The probes of a recorded kernel as the model prints them: what entities, queues and CPUs hold at each decision.
//!
//! A recorder of real kernels puts kprobes at these functions and fetches these values. Both take their names from
//! [`fairlab_event::probes`], so one reader reads both. Addresses are made up. The model also prints the runqueue's clock,
//! and, for a selection, more of each CPU.
//!
//! Must not know: who reads them.

mod places;
mod selection;

use fairlab_event::Cpu;
use fairlab_event::probes::{ProbeField, ProbePoint, ProbeText};

use crate::all_cpus::Shared;
use crate::fair::rules::{Placement, ReweightProtection, SliceProtection};
use crate::ids::{CfsRqId, GroupId, SeId, TaskId};
use crate::rq::LockedRq;
use crate::scheduler::Scheduler;
use crate::trace::PrintedEvent;

impl GroupId {
    /// The inode by which probes name the group; 1 is the root's.
    pub const fn inode(self) -> u64 {
        self.0 as u64 + 1
    }
}

impl Shared {
    /// Prints a probe, if probes are wanted.
    #[inline]
    pub(crate) fn probe(&mut self, point: ProbePoint, text: impl FnOnce(&Shared) -> ProbeText) {
        if self.trace.probes {
            self.probe_call(point, text);
        }
    }

    #[cold]
    #[inline(never)]
    fn print_probe(&mut self, point: ProbePoint, text: ProbeText) {
        self.print(PrintedEvent { is_probe: true, name: point.name(), text: text.finish() });
    }

    /// Prints what a task asks for of its own or another's scheduling, with or without probes: no event of the scheduler tells
    /// it, and all that follows hangs on it.
    #[cold]
    #[inline(never)]
    pub(crate) fn probe_call(&mut self, point: ProbePoint, text: impl FnOnce(&Shared) -> ProbeText) {
        if self.trace.enabled {
            let text = text(self);
            self.print_probe(point, text);
        }
    }

    /// `resched_curr()` is called by a function.
    pub(crate) fn probe_resched(&mut self, point: ProbePoint, cpu: Cpu, by: &str) {
        self.probe(point, |shared| {
            let curr = shared.pid_number(shared.curr(cpu));
            let mut text = ProbeText::entry("resched_curr");
            text.put(ProbeField::Cpu, cpu).put(ProbeField::CurrentPid, curr);
            text.put(ProbeField::Caller, format_args!("{by}+0x0/0x0"));
            text
        });
    }

    fn pid_number(&self, task: TaskId) -> i32 {
        self.tasks[task.index()].pid.0
    }

    /// An entity, as the kernel's fields hold it.
    fn show_entity(&self, text: &mut ProbeText, se: SeId) {
        let entity = self.se(se);
        let relative = entity.relative_deadline;
        text.hex(ProbeField::Entity, address_of_entity(se))
            .put(ProbeField::Pid, entity.task.map_or(0, |task| self.pid_number(task)))
            .hex(ProbeField::MyQueue, entity.my_q.map_or(0, address_of_queue))
            .put(ProbeField::Vruntime, entity.vruntime.0 as i64)
            .put(ProbeField::Deadline, relative.unwrap_or(entity.deadline.0 as i64))
            .put(ProbeField::Lag, self.lag_field(se))
            .put(ProbeField::Protected, entity.protected_until.0 as i64)
            .put(ProbeField::Weight, entity.load.raw())
            .put(ProbeField::OnRq, u8::from(entity.on_rq))
            .put(ProbeField::Slice, entity.slice)
            .put(ProbeField::Delayed, u8::from(entity.sched_delayed))
            .put(ProbeField::RelativeDeadline, u8::from(relative.is_some()));
    }

    /// While an entity runs, some kernels keep there at which deadline it was picked, or where its protection ends.
    fn lag_field(&self, se: SeId) -> i64 {
        let entity = self.se(se);
        let runs = entity.on_rq && self.cfs(entity.cfs_rq).member == Some(se);
        let rules = &self.generation.fair;
        let shared =
            rules.placement == Placement::Lag && rules.reweight_protection == ReweightProtection::Lost;
        let picked = match rules.slice_protection {
            SliceProtection::UntilNewDeadline => entity.deadline_at_pick,
            SliceProtection::UntilShortestRequest => Some(entity.protected_until),
        };
        picked.filter(|_| runs && shared).map_or(entity.vlag, |until| until.0 as i64)
    }

    /// A queue's averages.
    fn show_averages(&self, text: &mut ProbeText, cfs_rq: CfsRqId) {
        let avg = &self.cfs(cfs_rq).tracked.avg;
        text.put(ProbeField::LoadAvg, avg.load_avg)
            .put(ProbeField::RunnableAvg, avg.runnable_avg)
            .put(ProbeField::UtilAvg, avg.util_avg)
            .put(ProbeField::LastUpdate, avg.last_update_time);
    }
}

impl LockedRq<'_> {
    /// Prints a probe, if probes are wanted.
    #[inline]
    pub(crate) fn probe(&mut self, point: ProbePoint, text: impl FnOnce(&LockedRq<'_>) -> ProbeText) {
        if self.shared.trace.probes {
            self.print_wanted(point, text);
        }
    }

    /// Apart from the functions that are probed: they are short then where nothing is printed.
    #[cold]
    #[inline(never)]
    fn print_wanted(&mut self, point: ProbePoint, text: impl FnOnce(&LockedRq<'_>) -> ProbeText) {
        if self.shared.trace.enabled {
            let text = text(self);
            self.shared.print_probe(point, text);
        }
    }

    /// A queue: its address, CPU, group, entities, weight, the zero of its time line, and the clock.
    fn show_queue(&self, text: &mut ProbeText, cfs_rq: CfsRqId) {
        let queue = self.cfs(cfs_rq);
        let zero = match self.shared.generation.fair.virtual_zero.follows_average() {
            true => ProbeField::ZeroVruntime,
            false => ProbeField::MinVruntime,
        };
        text.hex(ProbeField::CfsRq, address_of_queue(cfs_rq))
            .put(ProbeField::Cpu, queue.cpu)
            .put(ProbeField::Cgroup, queue.group.inode())
            .put(ProbeField::NrRunning, queue.nr_running)
            .put(ProbeField::QueueWeight, queue.load.raw())
            .put(zero, queue.min_vruntime.0 as i64)
            .put(ProbeField::Clock, self.rq.clock.0);
    }
}

impl Scheduler {
    /// Prints a probe, if probes are wanted.
    #[inline]
    pub(crate) fn probe(&mut self, point: ProbePoint, text: impl FnOnce(&Scheduler) -> ProbeText) {
        if self.shared.trace.probes {
            self.print_wanted(point, text);
        }
    }

    /// Apart from the functions that are probed: they are short then where nothing is printed.
    #[cold]
    #[inline(never)]
    fn print_wanted(&mut self, point: ProbePoint, text: impl FnOnce(&Scheduler) -> ProbeText) {
        if self.shared.trace.enabled {
            let text = text(self);
            self.shared.print_probe(point, text);
        }
    }

    /// Whether probes print what decisions rest on, beside the events; a run without them is faster.
    pub fn set_probes(&mut self, enabled: bool) {
        self.shared.trace.probes = enabled;
    }
}

const fn address_of_queue(cfs_rq: CfsRqId) -> u64 {
    (1 << 40) | ((cfs_rq.0 as u64) << 8)
}

const fn address_of_entity(se: SeId) -> u64 {
    (2 << 40) | ((se.0 as u64) << 8)
}

/// Occasions and promises, as `wake_flags` has them from v5.11.
const WF_EXEC: u32 = 0x2;
const WF_FORK: u32 = 0x4;
const WF_TTWU: u32 = 0x8;
const WF_SYNC: u32 = 0x10;
