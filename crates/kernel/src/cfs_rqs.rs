//! All `cfs_rq`s by number, those of CPUs first; and which CPUs bear something else than when balancing last asked.
//!
//! Must not know: what a queue holds, and what is summed up of it.

use std::cell::Cell;
use std::ops::{Deref, Index, IndexMut};

use fairlab_event::Cpu;

use crate::cfs_rq::CfsRq;
use crate::cpumask::MAX_CPUS;
use crate::table::IdTable;

const WORDS: usize = MAX_CPUS / 64;

/// The queues, root queues by CPU first, then those of groups.
#[derive(Clone, Debug)]
pub(crate) struct CfsRqs {
    queues: IdTable<CfsRq>,
    roots: usize,
    /// CPUs whose root queue somebody may have changed.
    changed: [Cell<u64>; WORDS],
}

impl CfsRqs {
    /// Those of CPUs.
    pub fn of_cpus(roots: impl Iterator<Item = CfsRq>) -> CfsRqs {
        let queues: IdTable<CfsRq> = roots.collect();
        let mut all = CfsRqs { roots: queues.len(), queues, changed: [const { Cell::new(0) }; WORDS] };
        (0..all.roots).for_each(|cpu| all.touch(cpu));
        all
    }

    /// Adds a group's on a CPU.
    pub fn push(&mut self, queue: CfsRq) {
        self.queues.push(queue);
    }

    /// What a CPU bears may be something else from now on.
    #[inline(always)]
    pub fn touch(&mut self, cpu: usize) {
        *self.changed[cpu / 64 % WORDS].get_mut() |= 1 << (cpu % 64);
    }

    /// Goes over the CPUs of which this was said since the last time.
    #[inline]
    pub fn take_changed(&self, mut each: impl FnMut(Cpu)) {
        for (word, changed) in self.changed.iter().take(self.roots.div_ceil(64)).enumerate() {
            let mut bits = changed.take();
            while bits != 0 {
                each(Cpu((64 * word) as u32 + bits.trailing_zeros()));
                bits &= bits - 1;
            }
        }
    }
}

impl Deref for CfsRqs {
    type Target = [CfsRq];

    fn deref(&self) -> &[CfsRq] {
        &self.queues
    }
}

impl Index<usize> for CfsRqs {
    type Output = CfsRq;

    #[inline(always)]
    fn index(&self, number: usize) -> &CfsRq {
        &self.queues[number]
    }
}

impl IndexMut<usize> for CfsRqs {
    #[inline(always)]
    fn index_mut(&mut self, number: usize) -> &mut CfsRq {
        if number < self.roots {
            self.touch(number);
        }
        &mut self.queues[number]
    }
}
