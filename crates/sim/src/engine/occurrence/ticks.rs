//! The instants at which CPUs tick.

use fairlab_event::{Cpu, Ns};

/// The instants at which CPUs tick, which are the same for all: those that tick at the next one, and those at the one
/// after it.
#[derive(Debug)]
pub(super) struct Ticks {
    /// Never, as long as no CPU ticks.
    instant: Ns,
    due: Vec<u64>,
    /// The first word with a CPU that is due.
    from: usize,
    later_instant: Ns,
    later: Vec<u64>,
}

impl Ticks {
    pub fn new(nr_cpus: usize) -> Ticks {
        let words = vec![0; nr_cpus.div_ceil(64)];
        Ticks { instant: Ns::MAX, due: words.clone(), from: 0, later_instant: Ns::ZERO, later: words }
    }

    /// When CPUs tick next; never, if none does.
    pub fn instant(&self) -> Ns {
        self.instant
    }

    pub fn arrange(&mut self, cpu: Cpu, time: Ns) {
        let (word, bit) = (cpu.index() / 64, 1 << (cpu.index() % 64));
        if self.instant == Ns::MAX {
            (self.from, self.instant) = (word, time);
        }
        if self.instant == time {
            self.due[word] |= bit;
            self.from = self.from.min(word);
        } else {
            self.later_instant = time;
            self.later[word] |= bit;
        }
    }

    /// Takes the CPU that ticks first at the instant.
    pub fn take(&mut self) -> Cpu {
        let word = &mut self.due[self.from];
        let cpu = Cpu(self.from as u32 * 64 + word.trailing_zeros());
        *word &= *word - 1;
        if *word == 0 {
            self.find_next();
        }
        cpu
    }

    /// Those of a word have all ticked: goes on to the next, or to the next instant.
    fn find_next(&mut self) {
        let found = |words: &[u64]| words.iter().position(|&word| word != 0);
        if let Some(ahead) = found(&self.due[self.from..]) {
            self.from += ahead;
            return;
        }
        std::mem::swap(&mut self.due, &mut self.later);
        (self.from, self.instant) = match found(&self.due) {
            Some(from) => (from, self.later_instant),
            None => (0, Ns::MAX),
        };
    }
}
