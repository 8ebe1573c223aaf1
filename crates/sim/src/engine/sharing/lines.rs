//! Cache lines that several CPUs use: each use waits until the line has come from those who have it.
//!
//! A reader fetches it from the nearest copy. A writer waits for the farthest, since all copies end. It goes to one CPU after the
//! other, so a use costs more, the more CPUs contend and the farther they are from each other. Who holds a line alone pays nothing.
//!
//! Departs: who waits is served in turn; real machines serve neighbours of the present owner first. A copy is there from when it is asked
//! for, and never evicted.
//!
//! Must not know: what is in a line.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::{CpuMask, Topology};

use super::SharingDistance;
use crate::machine::Sharing;
use crate::scheduler_core::{LineUse, SharedLine};

/// One line.
#[derive(Clone, Copy, Debug, Default)]
struct CacheLine {
    /// Who has a copy: one CPU that has written, or all that have read since.
    holders: CpuMask,
    /// When the last of those who have asked has it.
    free: Ns,
}

/// All lines.
#[derive(Debug)]
pub(super) struct CacheLines {
    sharing: Sharing,
    groups: Vec<CacheLine>,
    queues: Vec<CacheLine>,
    wake_lists: Vec<CacheLine>,
    caches: Vec<CacheLine>,
    overload: CacheLine,
    idle_count: CacheLine,
    idle_mask: CacheLine,
}

impl CacheLine {
    /// Whether `cpu` needs nobody else for this use.
    fn is_at_hand(&self, cpu: Cpu, writes: bool) -> bool {
        self.holders.contains(cpu) && (!writes || self.holders.and_not(&CpuMask::single(cpu)).is_empty())
    }

    /// What it takes to bring it to `cpu` for such a use, if nobody else asks, ns.
    fn far(&self, sharing: &Sharing, topology: &Topology, cpu: Cpu, writes: bool) -> Ns {
        if self.holders.is_empty() {
            return Ns::ZERO;
        }
        let distance = match writes {
            true => SharingDistance::to_farthest(topology, cpu, &self.holders),
            false => SharingDistance::to_nearest(topology, cpu, &self.holders),
        };
        Ns(distance.of(sharing.lines()))
    }

    /// `cpu` uses it at `now`. Returns for how long it waits.
    fn use_by(&mut self, sharing: &Sharing, topology: &Topology, cpu: Cpu, writes: bool, now: Ns) -> Ns {
        if self.is_at_hand(cpu, writes) {
            return Ns::ZERO;
        }
        let far = self.far(sharing, topology, cpu, writes);
        if writes {
            self.holders = CpuMask::single(cpu);
        } else {
            self.holders.set(cpu);
        }
        if far > Ns::ZERO {
            self.free = self.free.max(now) + far;
        }
        self.free.since(now)
    }
}

impl CacheLines {
    pub fn new(sharing: Sharing, nr_cpus: usize) -> CacheLines {
        let of_each = vec![CacheLine::default(); nr_cpus];
        CacheLines {
            sharing,
            groups: Vec::new(),
            queues: of_each.clone(),
            wake_lists: of_each,
            caches: Vec::new(),
            overload: CacheLine::default(),
            idle_count: CacheLine::default(),
            idle_mask: CacheLine::default(),
        }
    }

    /// A CPU reads or writes a line. Returns how long it waits for that.
    pub fn used(&mut self, topology: &Topology, used: LineUse, now: Ns) -> Ns {
        let line = match used.line {
            SharedLine::QueueLock(of) => return self.lock_queue(topology, used.cpu, of, now),
            SharedLine::GroupLoad(group) => at(&mut self.groups, group.0 as usize),
            SharedLine::CacheState(cache) => at(&mut self.caches, cache as usize),
            SharedLine::WakeList(of) => &mut self.wake_lists[of.index()],
            SharedLine::Overload => &mut self.overload,
            SharedLine::IdleCount => &mut self.idle_count,
            SharedLine::IdleMask => &mut self.idle_mask,
        };
        line.use_by(&self.sharing, topology, used.cpu, used.writes, now)
    }

    /// `cpu` takes the lock of a CPU's runqueue, which was last at home. Returns for how long it waits for that; to hold it is part
    /// of what it does there. The next one waits for that, too.
    pub fn lock_queue(&mut self, topology: &Topology, cpu: Cpu, of: Cpu, now: Ns) -> Ns {
        let line = &mut self.queues[of.index()];
        if line.holders.is_empty() {
            line.holders.set(of);
        }
        let is_mine = line.is_at_hand(cpu, true);
        let far = if is_mine { Ns::ZERO } else { line.far(&self.sharing, topology, cpu, true) };
        // Who had it last, or is within the core, does not wait for itself.
        let held = if is_mine { now } else { line.free.max(now) };
        line.holders = CpuMask::single(cpu);
        line.free = held + far + Ns(self.sharing.rq_lock_ns);
        (held + far).since(now)
    }
}

/// A line by its number, new where it was not used before.
fn at(lines: &mut Vec<CacheLine>, number: usize) -> &mut CacheLine {
    if lines.len() <= number {
        lines.resize(number + 1, CacheLine::default());
    }
    &mut lines[number]
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

    /// Uses of a group's line: by whom, whether it is written, and when.
    fn waits<const N: usize>(sharing: Sharing, uses: [(u32, bool, u64); N]) -> [u64; N] {
        let (topology, mut lines) = (topology(), CacheLines::new(sharing, 16));
        uses.map(|(cpu, writes, now)| {
            let used = LineUse { line: SharedLine::GroupLoad(GroupId(3)), cpu: Cpu(cpu), writes };
            lines.used(&topology, used, Ns(now)).0
        })
    }

    #[test]
    fn a_line_takes_as_long_as_it_is_far_and_a_copy_is_kept_until_it_is_written() {
        assert_eq!(
            waits(SHARING, [(0, true, 1000), (0, true, 2000), (0, false, 3000)]),
            [0, 0, 0],
            "one CPU alone"
        );
        let near = Sharing { line_core_ns: 8, ..SHARING };
        assert_eq!(waits(near, [(0, true, 1000), (1, true, 2000), (2, true, 3000)]), [0, 8, 30]);
        assert_eq!(waits(SHARING, [(0, true, 1000), (4, true, 2000), (8, true, 3000)]), [0, 100, 200]);
        let uses = [(8, true, 1000), (0, false, 2000), (0, false, 3000), (8, true, 4000), (0, false, 5000)];
        assert_eq!(waits(SHARING, uses), [0, 200, 0, 200, 200], "the copy is void");
        assert_eq!(waits(Sharing::NONE, [(0, true, 1000), (8, true, 1000), (4, true, 1000)]), [0, 0, 0]);
    }

    #[test]
    fn a_reader_goes_to_the_nearest_copy_and_a_writer_waits_for_the_farthest() {
        let uses = [(0, true, 1000), (8, false, 2000), (10, false, 3000), (2, true, 4000)];
        assert_eq!(waits(SHARING, uses), [0, 200, 30, 200]);
    }

    #[test]
    fn cpus_of_a_cluster_are_nearer_where_the_machine_says_how_far() {
        let machine = Topology::regular(1, 1, 8, 1, SmtNumbering::Adjacent).expect("a machine");
        let machine = machine.with_clusters(&[0, 0, 0, 0, 1, 1, 1, 1]).expect("clusters");
        let waits = |line_cluster_ns| {
            let mut lines = CacheLines::new(Sharing { line_cluster_ns, ..SHARING }, 8);
            [(0, 1000), (1, 2000), (4, 3000)].map(|(cpu, now)| {
                let used = LineUse { line: SharedLine::Overload, cpu: Cpu(cpu), writes: true };
                lines.used(&machine, used, Ns(now)).0
            })
        };
        assert_eq!([waits(12), waits(0)], [[0, 12, 30], [0, 30, 30]]);
    }

    #[test]
    fn who_comes_while_others_wait_waits_for_them() {
        let all = [0, 2, 4, 8, 0].map(|cpu| (cpu, true, 1000));
        assert_eq!(waits(SHARING, all), [0, 30, 130, 330, 530]);
    }

    #[test]
    fn lines_of_different_kinds_are_different_lines() {
        let (topology, mut lines) = (topology(), CacheLines::new(SHARING, 16));
        let kinds = [
            SharedLine::GroupLoad(GroupId(1)),
            SharedLine::WakeList(Cpu(1)),
            SharedLine::WakeList(Cpu(2)),
            SharedLine::Overload,
            SharedLine::IdleCount,
            SharedLine::IdleMask,
            SharedLine::CacheState(1),
        ];
        for line in kinds {
            let mut at =
                |cpu, now| lines.used(&topology, LineUse { line, cpu: Cpu(cpu), writes: true }, Ns(now)).0;
            assert_eq!([at(0, 1000), at(8, 2000)], [0, 200], "{line:?}");
        }
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
        assert_eq!([at(8, 8, 200_000), at(8, 8, 300_000)], [200, 0], "it comes home");
    }
}
