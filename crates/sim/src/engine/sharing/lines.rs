//! Cache lines that several CPUs write: each use waits until the line has come from its last writer.
//!
//! A line is a server with a queue: one CPU at a time has it, and other requests wait. So a use costs more, the more CPUs
//! contend, without a figure of its own.
//!
//! Departs: a CPU that runs on a queue pays nothing to get the queue's lock back.
//!
//! Must not know: what is in a line.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::{CpuMask, Topology};

use super::SharingDistance;
use crate::machine::Sharing;
use crate::scheduler_core::LineUse;

/// One line.
#[derive(Clone, Copy, Debug, Default)]
struct CacheLine {
    /// Who wrote it last.
    owner: Option<Cpu>,
    /// Who has a copy since.
    readers: CpuMask,
    /// Until when it is on its way to those who have asked.
    free: Ns,
}

/// All lines.
#[derive(Debug)]
pub(super) struct CacheLines {
    sharing: Sharing,
    /// `tg->load_avg`, by group.
    groups: Vec<CacheLine>,
    /// The lock of each CPU's runqueue.
    queues: Vec<CacheLine>,
}

impl CacheLine {
    /// `cpu` wants it, and keeps others from it for `hold` once it has come. Returns for how long it waits and holds.
    fn take(&mut self, far: u64, hold: Ns, now: Ns) -> Ns {
        let free = self.free.max(now) + Ns(far) + hold;
        if far + hold.0 > 0 {
            self.free = free;
        }
        free.since(now)
    }
}

impl CacheLines {
    pub fn new(sharing: Sharing, nr_cpus: usize) -> CacheLines {
        CacheLines { sharing, groups: Vec::new(), queues: vec![CacheLine::default(); nr_cpus] }
    }

    /// What it takes to bring a line from one CPU to another, ns.
    fn far(&self, topology: &Topology, from: Option<Cpu>, to: Cpu) -> u64 {
        let Sharing { line_llc_ns, line_node_ns, line_remote_ns, .. } = self.sharing;
        let distance =
            from.map_or(SharingDistance::Core, |from| SharingDistance::between(topology, from, to));
        distance.of(line_llc_ns, line_node_ns, line_remote_ns)
    }

    /// `cpu` reads or writes what a group's queues of all CPUs share. Returns how long it waits for that.
    pub fn shared(&mut self, topology: &Topology, cpu: Cpu, used: LineUse, now: Ns) -> Ns {
        let group = used.group.0 as usize;
        if self.groups.len() <= group {
            self.groups.resize(group + 1, CacheLine::default());
        }
        let CacheLine { owner, readers, .. } = self.groups[group];
        let has_copy = readers.contains(cpu);
        let is_alone = owner == Some(cpu) && readers.and_not(&CpuMask::single(cpu)).is_empty();
        if is_alone || (has_copy && !used.writes) {
            return Ns::ZERO;
        }
        let far = self.far(topology, owner, cpu);
        let line = &mut self.groups[group];
        let waits = line.take(far, Ns::ZERO, now);
        if used.writes {
            (line.owner, line.readers) = (Some(cpu), CpuMask::single(cpu));
        } else {
            line.readers.set(cpu);
        }
        waits
    }

    /// A waker on `cpu` takes the lock of another CPU's queue. Returns for how long it waits for that; holding it is part of a wakeup.
    pub fn lock_queue(&mut self, topology: &Topology, cpu: Cpu, target: Cpu, now: Ns) -> Ns {
        let owner = self.queues[target.index()].owner;
        let far = self.far(topology, owner.or(Some(target)), cpu);
        let hold = Ns(self.sharing.rq_lock_ns);
        let line = &mut self.queues[target.index()];
        line.owner = Some(cpu);
        line.take(far, hold, now).since(hold)
    }
}

#[cfg(test)]
mod tests {
    use fairlab_kernel::GroupId;
    use fairlab_kernel::topology::SmtNumbering;

    use super::*;

    const SHARING: Sharing =
        Sharing { line_llc_ns: 30, line_node_ns: 100, line_remote_ns: 200, rq_lock_ns: 400, ..Sharing::NONE };

    fn topology() -> Topology {
        Topology::regular(2, 2, 2, 2, SmtNumbering::Adjacent).expect("a machine")
    }

    #[test]
    fn a_line_takes_as_long_as_it_is_far_and_a_copy_is_kept_until_it_is_written() {
        let (topology, mut lines) = (topology(), CacheLines::new(SHARING, 16));
        let mut at = |cpu: u32, writes: bool, now: u64| {
            let used = LineUse { group: GroupId(3), writes };
            lines.shared(&topology, Cpu(cpu), used, Ns(now)).0
        };
        assert_eq!(at(0, true, 1000), 0, "the first one");
        assert_eq!([at(0, true, 2000), at(1, true, 3000)], [0, 0], "its core has it");
        assert_eq!([at(2, true, 4000), at(4, true, 5000), at(8, true, 6000)], [30, 100, 200]);
        assert_eq!([at(0, false, 7000), at(0, false, 8000)], [200, 0]);
        assert_eq!([at(8, true, 9000), at(0, false, 10_000)], [0, 200], "the copy is void");
    }

    #[test]
    fn who_comes_while_others_wait_waits_for_them() {
        let (topology, mut lines) = (topology(), CacheLines::new(SHARING, 16));
        let mut at = |cpu: u32| {
            let used = LineUse { group: GroupId(1), writes: true };
            lines.shared(&topology, Cpu(cpu), used, Ns(1000)).0
        };
        let waits = [0, 2, 4, 8, 0].map(&mut at);
        assert_eq!(waits, [0, 30, 130, 330, 530]);
    }

    #[test]
    fn a_lock_is_waited_for_while_another_waker_holds_it() {
        let (topology, mut lines) = (topology(), CacheLines::new(SHARING, 16));
        let mut at =
            |cpu: u32, target: u32, now: u64| lines.lock_queue(&topology, Cpu(cpu), Cpu(target), Ns(now)).0;
        assert_eq!(at(0, 8, 1000), 200, "from the queue's own CPU");
        assert_eq!(at(4, 8, 1000), 700, "held for 400 more");
        assert_eq!(at(4, 8, 100_000), 0, "it was here last");
        assert_eq!(at(0, 9, 1000), 200, "another lock");
    }
}
