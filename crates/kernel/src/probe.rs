//! The probes of a recorded kernel as the model prints them: what entities, queues and CPUs hold where decisions fall.
//!
//! A recorder of real kernels puts kprobes at these functions and fetches these values; names and fields are the same, so
//! that whoever reads the one reads the other. Addresses are made up. Beside the recorder's, `ck` is the clock of the
//! runqueue, and a selection shows more of each CPU, as a try of balancing does.
//!
//! Must not know: who reads them.

mod balancing;
mod places;
mod selection;

use fairlab_event::{Cpu, EventKind, Fields};

use crate::core::Scheduler;
use crate::entity::{CfsRqId, SeId};
use crate::fair::rules::{Placement, ReweightProtection, SliceProtection};
use crate::group::GroupId;
use crate::task::TaskId;

/// What one probe, or one event without a type, has printed.
#[derive(Clone, Debug)]
pub(crate) struct Printed {
    /// Whether a kprobe did; otherwise it is a tracepoint.
    pub is_probe: bool,
    pub name: &'static str,
    pub text: String,
}

impl Printed {
    /// The same as an event.
    pub fn kind(&self) -> EventKind<'_> {
        let fields = Fields::new(&self.text);
        match self.is_probe {
            true => EventKind::Kprobe { name: self.name, fields },
            false => EventKind::Other { name: self.name, fields },
        }
    }
}

impl GroupId {
    /// The inode by which probes name the group; 1 is the root's.
    pub const fn inode(self) -> u64 {
        self.0 as u64 + 1
    }
}

impl Scheduler {
    /// Whether probes print what decisions rest on, beside the events; a run without them is faster.
    pub fn set_probes(&mut self, enabled: bool) {
        self.trace.probes = enabled;
    }

    /// Prints a probe, if probes are wanted.
    #[inline]
    pub(crate) fn probe(&mut self, name: &'static str, text: impl FnOnce(&Scheduler) -> String) {
        if self.trace.probes {
            self.print_probe(name, text);
        }
    }

    /// Apart from the functions that are probed: they are short then where nothing is printed.
    #[cold]
    #[inline(never)]
    fn print_probe(&mut self, name: &'static str, text: impl FnOnce(&Scheduler) -> String) {
        if self.trace.enabled {
            let text = text(self);
            self.print(Printed { is_probe: true, name, text });
        }
    }

    /// Prints an event that has no type, if probes are wanted.
    pub(crate) fn probe_event(&mut self, name: &'static str, text: impl FnOnce(&Scheduler) -> String) {
        if self.trace.probes && self.trace.enabled {
            let text = text(self);
            self.print(Printed { is_probe: false, name, text });
        }
    }

    /// `resched_curr()` is called by a function.
    pub(crate) fn probe_resched(&mut self, name: &'static str, cpu: Cpu, by: &str) {
        self.probe(name, |scheduler| {
            let curr = scheduler.pid_number(scheduler.curr(cpu));
            format!("(resched_curr+0x0/0x0) cpu={cpu} cpid={curr} by={by}+0x0/0x0")
        });
    }

    fn pid_number(&self, task: TaskId) -> i32 {
        self.tasks[task.index()].pid.0
    }

    /// `cf= cpu= cg= nr= cw=` and the zero of its time line.
    fn queue_fields(&self, cfs_rq: CfsRqId) -> String {
        let queue = self.cfs(cfs_rq);
        let zero = if self.generation.fair.virtual_zero.follows_average() { "zv" } else { "minv" };
        format!(
            "cf={:#x} cpu={} cg={} nr={} cw={} {zero}={} ck={}",
            address_of_queue(cfs_rq),
            queue.cpu,
            queue.group.inode(),
            queue.nr_running,
            queue.load.raw(),
            queue.min_vruntime.0 as i64,
            self.rqs[queue.cpu.index()].clock.0,
        )
    }

    /// `se= pid= my= vr= dl= vlag= w= on= sl= sd= rd=`, as the kernel's fields hold them.
    fn entity_fields(&self, se: SeId) -> String {
        let entity = self.se(se);
        let pid = entity.task.map_or(0, |task| self.pid_number(task));
        let relative = entity.relative_deadline;
        format!(
            "se={:#x} pid={pid} my={:#x} vr={} dl={} vlag={} vprot={} w={} on={} sl={} sd={} rd={}",
            address_of_entity(se),
            entity.my_q.map_or(0, address_of_queue),
            entity.vruntime.0 as i64,
            relative.unwrap_or(entity.deadline.0 as i64),
            self.lag_field(se),
            entity.protected_until.0 as i64,
            entity.load.raw(),
            u8::from(entity.on_rq),
            entity.slice,
            u8::from(entity.sched_delayed),
            u8::from(relative.is_some()),
        )
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

    /// `la= ra= ua= lut=` of a queue.
    fn average_fields(&self, cfs_rq: CfsRqId) -> String {
        let avg = &self.cfs(cfs_rq).tracked.avg;
        format!(
            "la={} ra={} ua={} lut={}",
            avg.load_avg, avg.runnable_avg, avg.util_avg, avg.last_update_time
        )
    }
}

const fn address_of_queue(cfs_rq: CfsRqId) -> u64 {
    (1 << 40) | ((cfs_rq.0 as u64) << 8)
}

const fn address_of_entity(se: SeId) -> u64 {
    (2 << 40) | ((se.0 as u64) << 8)
}
