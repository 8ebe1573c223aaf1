//! Tasks that may not run everywhere, as far as that is said beside the events.
//!
//! Must not know: which tasks these are.

use std::collections::BTreeMap;

use fairlab_event::Cpu;

/// Sets of CPUs that tasks are bound to, and how many wait where.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bound {
    masks: Vec<Vec<Cpu>>,
    numbers: BTreeMap<Vec<Cpu>, u32>,
    /// How many tasks wait on a CPU, by the number of their set. A task that may run nowhere else is left out.
    waiting: BTreeMap<(u32, Cpu), u32>,
    version: u64,
}

impl Bound {
    /// The number of a set of CPUs; `None` for the empty one, which stands for all.
    pub(crate) fn number(&mut self, cpus: &[Cpu]) -> Option<u32> {
        if cpus.is_empty() {
            return None;
        }
        let next = self.masks.len() as u32;
        let number = *self.numbers.entry(cpus.to_vec()).or_insert(next);
        if number == next {
            self.masks.push(cpus.to_vec());
        }
        Some(number)
    }

    /// The CPUs of a number.
    pub(crate) fn cpus(&self, number: u32) -> &[Cpu] {
        &self.masks[number as usize]
    }

    /// A task with this set begins or ends to wait on a CPU.
    pub(super) fn count(&mut self, mask: u32, cpu: Cpu, begins: bool) {
        let count = self.waiting.entry((mask, cpu)).or_default();
        *count = if begins { *count + 1 } else { count.saturating_sub(1) };
        if *count == 0 {
            self.waiting.remove(&(mask, cpu));
        }
        self.version += 1;
    }

    /// Where tasks wait that may run elsewhere, but not everywhere: the CPU, and those that they may run on.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (Cpu, &[Cpu])> {
        self.waiting.keys().map(|&(mask, cpu)| (cpu, self.cpus(mask)))
    }

    /// A number that changes with what [`waiting`](Self::waiting) gives.
    pub(crate) const fn version(&self) -> u64 {
        self.version
    }
}
