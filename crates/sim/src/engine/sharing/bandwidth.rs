//! Who draws how much from memory, and how much slower that makes those who share a link or a node's memory.
//!
//! A thread waits for memory for a part of its computing, at full speed and alone. That part grows as it gets less than one core draws:
//! a last-level cache's link and a node's memory give to each in proportion to what it would draw. A thread's memory lies on the
//! node on which it first computed (first touch). Where the machine says what a last-level cache holds and gives, working sets that
//! fit into it together come from there, and of larger ones the part that fits.
//!
//! Departs: a thread that is slow draws as often as a fast one; nothing migrates memory; who draws keeps its share of the cache
//! only while it computes.
//!
//! Must not know: when threads run.

use fairlab_event::Cpu;
use fairlab_kernel::{CpuMask, Topology};

use crate::machine::Sharing;
use crate::machine::speed::WHOLE;

/// Factors are parts of this.
const ONE: u64 = 1 << 20;

/// What the thread that a CPU runs in user mode draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MemoryDraw {
    /// Which part of its computing waits for memory, in thousandths.
    permille: u64,
    /// What it works with, KB.
    kb: u64,
    /// The node on which its memory lies.
    home: u32,
}

/// All that draw.
#[derive(Debug)]
pub(super) struct MemoryBandwidth {
    sharing: Sharing,
    topology: Topology,
    draws: Vec<Option<MemoryDraw>>,
    /// CPUs that draw.
    drawing: CpuMask,
    /// How fast each CPU's user mode is, of [`WHOLE`].
    speeds: Vec<u64>,
    /// Where the memory of each thread lies, by its place among threads.
    homes: Vec<Option<u32>>,
    llcs: usize,
}

/// What is drawn from one last-level cache.
#[derive(Clone, Copy, Debug, Default)]
struct OfLlc {
    /// Working sets, KB.
    kb: u64,
    /// What would be drawn from memory, MB/s.
    mbps: u64,
}

impl MemoryBandwidth {
    pub fn new(sharing: Sharing, topology: &Topology) -> MemoryBandwidth {
        let nr_cpus = topology.nr_cpus();
        MemoryBandwidth {
            sharing,
            topology: topology.clone(),
            draws: vec![None; nr_cpus],
            drawing: CpuMask::EMPTY,
            speeds: vec![WHOLE; nr_cpus],
            homes: Vec::new(),
            llcs: topology.cpus().map(|cpu| topology.place(cpu).llc as usize + 1).max().unwrap_or(0),
        }
    }

    /// A new thread has touched no memory.
    pub fn forget(&mut self, thread: usize) {
        if self.homes.len() <= thread {
            self.homes.resize(thread + 1, None);
        }
        self.homes[thread] = None;
    }

    /// A thread computes on `cpu`. Returns whether what is drawn has changed.
    #[inline]
    pub fn begin(&mut self, cpu: Cpu, thread: usize, permille: u64, kb: u64) -> bool {
        if permille == 0 || self.sharing.core_megabytes_per_s == 0 {
            return self.end(cpu);
        }
        let here = self.topology.place(cpu).node;
        let home = *self.homes[thread].get_or_insert(here);
        let draw = Some(MemoryDraw { permille, kb, home });
        self.drawing.set(cpu);
        std::mem::replace(&mut self.draws[cpu.index()], draw) != draw
    }

    /// Nobody computes on `cpu`. Returns whether what is drawn has changed.
    #[inline]
    pub fn end(&mut self, cpu: Cpu) -> bool {
        if self.draws[cpu.index()].take().is_none() {
            return false;
        }
        self.drawing.clear(cpu);
        self.speeds[cpu.index()] = WHOLE;
        true
    }

    /// How fast user mode of `cpu` is, of [`WHOLE`]; more where it draws from its cache.
    #[inline]
    pub fn speed(&self, cpu: Cpu) -> u64 {
        self.speeds[cpu.index()]
    }

    /// Gives everybody who draws its share. Returns whose speed has changed.
    pub fn share_out(&mut self) -> CpuMask {
        let all = self.drawing;
        let mut llcs = vec![OfLlc::default(); self.llcs];
        let mut nodes = vec![0; self.topology.nr_nodes()];
        for (cpu, draw) in self.drawn(&all) {
            llcs[self.llc(cpu)].kb += draw.kb;
        }
        for (cpu, draw) in self.drawn(&all) {
            let llc = llcs[self.llc(cpu)];
            llcs[self.llc(cpu)].mbps += self.wanted(cpu, draw, llc);
        }
        for (cpu, draw) in self.drawn(&all) {
            let llc = llcs[self.llc(cpu)];
            let through = granted(self.sharing.llc_megabytes_per_s, llc.mbps);
            nodes[draw.home as usize] += self.wanted(cpu, draw, llc) * through / ONE;
        }
        let mut changed = CpuMask::EMPTY;
        for cpu in all.iter() {
            let Some(draw) = self.draws[cpu.index()] else { continue };
            let llc = llcs[self.llc(cpu)];
            let through = granted(self.sharing.llc_megabytes_per_s, llc.mbps);
            let given = granted(self.sharing.node_megabytes_per_s, nodes[draw.home as usize]);
            let speed = self.speed_of(cpu, draw, llc, through * given / ONE);
            if std::mem::replace(&mut self.speeds[cpu.index()], speed) != speed {
                changed.set(cpu);
            }
        }
        changed
    }

    fn drawn<'d>(&'d self, all: &'d CpuMask) -> impl Iterator<Item = (Cpu, MemoryDraw)> + 'd {
        all.iter().filter_map(|cpu| Some((cpu, self.draws[cpu.index()]?)))
    }

    fn llc(&self, cpu: Cpu) -> usize {
        self.topology.place(cpu).llc as usize
    }

    /// Which part of a working set a last-level cache misses, of [`ONE`].
    fn missed(&self, llc: OfLlc) -> u64 {
        let Sharing { llc_kb, cached_megabytes_per_s, .. } = self.sharing;
        if llc_kb == 0 || cached_megabytes_per_s == 0 || llc.kb == 0 {
            return ONE;
        }
        ONE - (ONE * llc_kb / llc.kb).min(ONE)
    }

    /// What one core draws alone from where this thread's memory lies, MB/s.
    fn alone(&self, cpu: Cpu, draw: MemoryDraw) -> u64 {
        let Sharing { core_megabytes_per_s, remote_permille, .. } = self.sharing;
        let is_far = self.topology.place(cpu).node != draw.home && remote_permille > 0;
        if is_far { (core_megabytes_per_s * remote_permille / 1000).max(1) } else { core_megabytes_per_s }
    }

    /// What it would draw from memory, MB/s.
    fn wanted(&self, cpu: Cpu, draw: MemoryDraw, llc: OfLlc) -> u64 {
        self.alone(cpu, draw) * draw.permille / 1000 * self.missed(llc) / ONE
    }

    /// How fast a thread computes that gets this part of what it draws alone, of [`WHOLE`].
    fn speed_of(&self, cpu: Cpu, draw: MemoryDraw, llc: OfLlc, given: u64) -> u64 {
        let Sharing { core_megabytes_per_s, cached_megabytes_per_s, .. } = self.sharing;
        let missed = self.missed(llc);
        let from_memory = (self.alone(cpu, draw) * given / ONE).max(1);
        // Time for what takes ONE at full speed and alone.
        let cached =
            if missed < ONE { (ONE - missed) * core_megabytes_per_s / cached_megabytes_per_s } else { 0 };
        let waits = cached + missed * core_megabytes_per_s / from_memory;
        let time = (ONE * (1000 - draw.permille) + waits * draw.permille) / 1000;
        (WHOLE * ONE / time.max(1)).max(1)
    }
}

/// Which part everybody gets of what all together would draw, of [`ONE`]; zero gives without limit.
fn granted(gives: u64, wanted: u64) -> u64 {
    if gives == 0 || wanted <= gives { ONE } else { (ONE * gives / wanted).max(1) }
}

#[cfg(test)]
mod tests {
    use fairlab_kernel::topology::SmtNumbering;

    use super::*;

    /// Two nodes of two last-level caches of four cores.
    fn bandwidth(sharing: Sharing) -> MemoryBandwidth {
        let topology = Topology::regular(2, 2, 4, 1, SmtNumbering::Adjacent).expect("a machine");
        let mut bandwidth = MemoryBandwidth::new(sharing, &topology);
        (0..16).for_each(|thread| bandwidth.forget(thread));
        bandwidth
    }

    const PLAIN: Sharing = Sharing {
        core_megabytes_per_s: 10_000,
        llc_megabytes_per_s: 20_000,
        node_megabytes_per_s: 30_000,
        remote_permille: 500,
        ..Sharing::NONE
    };

    /// Threads of their CPUs' numbers that draw all the time. Gives the speed of the first one.
    fn speed(sharing: Sharing, cpus: &[u32], permille: u64, kb: u64) -> u64 {
        let mut bandwidth = bandwidth(sharing);
        for &cpu in cpus {
            assert!(bandwidth.begin(Cpu(cpu), cpu as usize, permille, kb));
        }
        bandwidth.share_out();
        bandwidth.speed(Cpu(cpus[0]))
    }

    #[test]
    fn a_link_and_a_nodes_memory_are_shared_in_proportion() {
        assert_eq!(speed(PLAIN, &[0], 1000, 0), 1024);
        assert_eq!(speed(PLAIN, &[0, 1], 1000, 0), 1024);
        assert_eq!(speed(PLAIN, &[0, 1, 2, 3], 1000, 0), 512, "the link gives half");
        assert_eq!(speed(PLAIN, &[0, 1, 4, 5], 1000, 0), 768, "the node gives three quarters");
        assert_eq!(speed(PLAIN, &[0, 1, 8, 9], 1000, 0), 1024, "another node gives its own");
        assert_eq!(speed(PLAIN, &[0, 1, 2, 3], 500, 0), 1024, "half of the time: as much as the link gives");
    }

    #[test]
    fn only_the_part_that_waits_for_memory_grows() {
        let narrow = Sharing { llc_megabytes_per_s: 5_000, ..PLAIN };
        assert_eq!(speed(narrow, &[0], 1000, 0), 512);
        assert_eq!(
            speed(Sharing { llc_megabytes_per_s: 2_500, ..PLAIN }, &[0], 500, 0),
            682,
            "half of it takes twice as long"
        );
    }

    #[test]
    fn memory_stays_where_it_was_first_touched() {
        let mut bandwidth = bandwidth(PLAIN);
        bandwidth.begin(Cpu(0), 7, 1000, 0);
        bandwidth.share_out();
        assert!(bandwidth.end(Cpu(0)) && !bandwidth.end(Cpu(0)));
        bandwidth.begin(Cpu(8), 7, 1000, 0);
        bandwidth.share_out();
        assert_eq!(bandwidth.speed(Cpu(8)), 512, "from the other node");
        bandwidth.forget(7);
        bandwidth.end(Cpu(8));
        bandwidth.begin(Cpu(8), 7, 1000, 0);
        bandwidth.share_out();
        assert_eq!(bandwidth.speed(Cpu(8)), 1024);
        assert_eq!(bandwidth.speed(Cpu(0)), 1024, "who has left draws nothing");
    }

    #[test]
    fn what_fits_into_a_cache_comes_from_there() {
        let cached = Sharing { llc_kb: 1000, cached_megabytes_per_s: 40_000, ..PLAIN };
        assert_eq!(speed(cached, &[0], 1000, 1000), 4096);
        assert_eq!(speed(cached, &[0, 1], 1000, 500), 4096);
        // Half of it from the cache in a quarter of the time: 1 / (1/8 + 1/2).
        assert_eq!(speed(cached, &[0, 1], 1000, 1000), 1638);
        assert_eq!(speed(cached, &[0], 1000, 0), 1024, "a working set that nobody knows does not fit");
    }

    #[test]
    fn without_a_figure_nothing_is_drawn() {
        let mut bandwidth = bandwidth(Sharing { smt_speed_2: 600, ..Sharing::NONE });
        assert!(!bandwidth.begin(Cpu(0), 0, 1000, 10));
        assert_eq!(bandwidth.speed(Cpu(0)), 1024);
    }
}
