//! What a CPU's caches still hold of a thread that arrives, and how long the rest takes.
//!
//! A thread that ran elsewhere loses its working set from a core's own caches, up to their size, and from the last-level
//! cache if it comes to another one. In a cache where it was before, only the part is lost that other threads have replaced.
//! A thread that stays on its core pays nothing.
//!
//! Departs: a thread that does not move replaces its working set's size once per switch. Data that a thread wrote elsewhere
//! is as cold as the rest. Caches have a size and no other property.
//!
//! Must not know: why a thread moved.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::Topology;

use super::SharingDistance;
use crate::machine::Sharing;

/// How many caches of a kind a thread remembers.
const REMEMBERED: usize = 2;

/// A cache in which a thread left something.
#[derive(Clone, Copy, Debug)]
struct CacheFootprint {
    cache: u32,
    /// What had been brought into it by then, KB.
    filled: u64,
}

/// What a thread left where, the newest first.
#[derive(Clone, Copy, Debug, Default)]
struct CacheFootprints([Option<CacheFootprint>; REMEMBERED]);

impl CacheFootprints {
    /// How much of `kb` is gone from a cache into which `filled` KB have been brought so far.
    fn gone(&self, cache: u32, filled: u64, kb: u64) -> u64 {
        let left = self.0.iter().flatten().find(|left| left.cache == cache);
        left.map_or(kb, |left| kb.min(filled.saturating_sub(left.filled)))
    }

    fn remember(&mut self, cache: u32, filled: u64) {
        let place = self.0.iter().position(|left| left.is_some_and(|left| left.cache == cache));
        self.0[..=place.unwrap_or(REMEMBERED - 1)].rotate_right(1);
        self.0[0] = Some(CacheFootprint { cache, filled });
    }
}

/// Where a thread ran.
#[derive(Clone, Copy, Debug, Default)]
struct ThreadFootprints {
    ran: Option<Cpu>,
    cores: CacheFootprints,
    llcs: CacheFootprints,
}

/// All caches, and who left what in them.
#[derive(Debug)]
pub(super) struct Caches {
    sharing: Sharing,
    topology: Topology,
    /// What has been brought into each core's own caches so far, KB.
    cores: Vec<u64>,
    /// Into each last-level cache.
    llcs: Vec<u64>,
    /// Who ran last on each core.
    last: Vec<Option<usize>>,
    past: Vec<ThreadFootprints>,
}

impl Caches {
    pub fn new(sharing: Sharing, topology: &Topology) -> Caches {
        let cores = topology.cpus().map(|cpu| topology.place(cpu).core as usize + 1).max().unwrap_or(0);
        let llcs = topology.cpus().map(|cpu| topology.place(cpu).llc as usize + 1).max().unwrap_or(0);
        Caches {
            sharing,
            topology: topology.clone(),
            cores: vec![0; cores],
            llcs: vec![0; llcs],
            last: vec![None; cores],
            past: Vec::new(),
        }
    }

    /// A new thread has left nothing anywhere.
    pub fn forget(&mut self, thread: usize) {
        if self.past.len() <= thread {
            self.past.resize(thread + 1, ThreadFootprints::default());
        }
        self.past[thread] = ThreadFootprints::default();
    }

    /// A thread that works with `kb` has been switched to on `cpu`. Returns how long its caches take to fill.
    pub fn enter(&mut self, cpu: Cpu, thread: usize, kb: u64) -> Ns {
        let place = self.topology.place(cpu);
        let (core, llc) = (place.core as usize, place.llc as usize);
        let own = kb.min(self.sharing.core_kb);
        let shared = if self.sharing.llc_kb > 0 { kb.min(self.sharing.llc_kb) } else { kb };
        let past = self.past[thread];
        let distance = past.ran.map(|ran| SharingDistance::between(&self.topology, ran, cpu));
        let cold_core = match distance {
            None | Some(SharingDistance::Core) => 0,
            Some(_) => past.cores.gone(place.core, self.cores[core], own),
        };
        let cold_llc = match distance {
            None | Some(SharingDistance::Core | SharingDistance::Cluster | SharingDistance::Llc) => 0,
            Some(_) => past.llcs.gone(place.llc, self.llcs[llc], shared),
        };
        if self.last[core].replace(thread) != Some(thread) {
            self.cores[core] += own;
        }
        self.llcs[llc] += if distance.is_none() { shared } else { cold_llc };
        let past = &mut self.past[thread];
        past.ran = Some(cpu);
        past.cores.remember(place.core, self.cores[core]);
        past.llcs.remember(place.llc, self.llcs[llc]);
        let Sharing { refill_core_ns_per_kb, refill_llc_ns_per_kb, refill_node_ns_per_kb, .. } = self.sharing;
        let from = if distance == Some(SharingDistance::Remote) {
            refill_node_ns_per_kb
        } else {
            refill_llc_ns_per_kb
        };
        Ns(cold_core * refill_core_ns_per_kb + cold_llc * from)
    }
}

#[cfg(test)]
mod tests {
    use fairlab_kernel::topology::SmtNumbering;

    use super::*;

    /// Two nodes of two last-level caches of two cores of two threads.
    fn caches() -> Caches {
        let topology = Topology::regular(2, 2, 2, 2, SmtNumbering::Adjacent).expect("a machine");
        let sharing = Sharing {
            core_kb: 100,
            llc_kb: 1000,
            refill_core_ns_per_kb: 1,
            refill_llc_ns_per_kb: 10,
            refill_node_ns_per_kb: 100,
            ..Sharing::NONE
        };
        let mut caches = Caches::new(sharing, &topology);
        (0..3).for_each(|thread| caches.forget(thread));
        caches
    }

    #[test]
    fn a_move_costs_by_distance_and_by_what_the_caches_hold() {
        let mut caches = caches();
        let mut at = |cpu: u32, kb| caches.enter(Cpu(cpu), 0, kb).0;
        assert_eq!([at(0, 50), at(0, 50), at(1, 50)], [0, 0, 0], "no move, or within a core");
        assert_eq!(at(2, 50), 50, "another core");
        assert_eq!(at(4, 50), 50 + 500, "another last-level cache");
        assert_eq!(at(8, 50), 50 + 5000, "another node");
        assert_eq!(at(12, 5000), 100 + 10 * 1000, "no more than the caches hold");
    }

    #[test]
    fn what_nobody_evicted_is_still_there() {
        let mut caches = caches();
        let mut at = |cpu: u32, thread, kb| caches.enter(Cpu(cpu), thread, kb).0;
        at(0, 0, 50);
        assert_eq!([at(4, 0, 50), at(0, 0, 50)], [550, 0], "nobody was there");
        at(4, 0, 50);
        at(0, 1, 20);
        assert_eq!(at(0, 0, 50), 20 + 200, "as much as the other brought in");
        at(4, 0, 50);
        at(2, 2, 10_000);
        assert_eq!(at(0, 0, 50), 500, "its core is as it was, the cache that all share is not");
    }
}
