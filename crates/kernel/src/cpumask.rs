//! A set of CPUs (`struct cpumask`).

use std::fmt;
use std::hash::{Hash, Hasher};

use fairlab_event::Cpu;

/// The largest number of CPUs that a machine may have.
pub const MAX_CPUS: usize = 1024;

const WORDS: usize = MAX_CPUS / 64;

/// A set of CPUs, iterated in ascending order or, like `for_each_cpu_wrap`, from a start and around.
#[derive(Clone, Copy)]
pub struct CpuMask {
    words: [u64; WORDS],
    /// From this word on there is no CPU: machines are much smaller than the largest, and nothing looks there.
    end: usize,
}

impl Default for CpuMask {
    fn default() -> CpuMask {
        CpuMask::EMPTY
    }
}

impl CpuMask {
    /// No CPU.
    pub const EMPTY: CpuMask = CpuMask { words: [0; WORDS], end: 0 };
    /// Every CPU that any machine may have.
    pub const ALL: CpuMask = CpuMask { words: [u64::MAX; WORDS], end: WORDS };

    /// The words that may hold a CPU.
    fn used(&self) -> &[u64] {
        &self.words[..self.end]
    }

    /// CPUs `0..count`.
    pub fn first(count: usize) -> CpuMask {
        (0..count as u32).map(Cpu).collect()
    }

    /// Just `cpu`.
    pub fn single(cpu: Cpu) -> CpuMask {
        let mut mask = CpuMask::EMPTY;
        mask.set(cpu);
        mask
    }

    /// Adds `cpu`.
    pub fn set(&mut self, cpu: Cpu) {
        self.words[cpu.index() / 64] |= 1 << (cpu.index() % 64);
        self.end = self.end.max(cpu.index() / 64 + 1);
    }

    /// Takes `cpu` out.
    pub fn clear(&mut self, cpu: Cpu) {
        self.words[cpu.index() / 64] &= !(1 << (cpu.index() % 64));
    }

    /// Whether `cpu` is in the set (`cpumask_test_cpu`).
    pub const fn contains(&self, cpu: Cpu) -> bool {
        self.words[cpu.index() / 64] & (1 << (cpu.index() % 64)) != 0
    }

    /// CPUs in both sets (`cpumask_and`).
    #[must_use]
    pub fn and(&self, other: &CpuMask) -> CpuMask {
        let words = std::array::from_fn(|word| self.words[word] & other.words[word]);
        CpuMask { words, end: self.end.min(other.end) }
    }

    /// CPUs of this set that are not in `other` (`cpumask_andnot`).
    #[must_use]
    pub fn and_not(&self, other: &CpuMask) -> CpuMask {
        let words = std::array::from_fn(|word| self.words[word] & !other.words[word]);
        CpuMask { words, end: self.end }
    }

    /// CPUs in either set (`cpumask_or`).
    #[must_use]
    pub fn or(&self, other: &CpuMask) -> CpuMask {
        let words = std::array::from_fn(|word| self.words[word] | other.words[word]);
        CpuMask { words, end: self.end.max(other.end) }
    }

    /// Number of CPUs (`cpumask_weight`).
    pub fn weight(&self) -> usize {
        self.used().iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there is no CPU in the set.
    pub fn is_empty(&self) -> bool {
        self.used().iter().all(|&word| word == 0)
    }

    /// The only CPU of the set; `None` if there are none or several.
    pub fn only(&self) -> Option<Cpu> {
        let lowest = self.lowest()?;
        self.next_from(lowest.index() + 1).is_none().then_some(lowest)
    }

    /// Whether exactly one CPU is in both sets.
    pub fn only_one_in_both(&self, other: &CpuMask) -> bool {
        let mut both = self.used().iter().zip(other.used()).map(|(one, other)| one & other);
        let first = both.find(|&word| word != 0);
        first.is_some_and(u64::is_power_of_two) && both.all(|word| word == 0)
    }

    /// How many CPUs [`iter_wrap`](Self::iter_wrap) from `start` gives before it comes to `cpu`.
    pub fn before_wrap(&self, start: Cpu, cpu: Cpu) -> usize {
        if cpu >= start {
            self.below(cpu) - self.below(start)
        } else {
            self.weight() - self.below(start) + self.below(cpu)
        }
    }

    /// How many CPUs of the set are lower than `cpu`, which may be one past the last.
    fn below(&self, cpu: Cpu) -> usize {
        let (word, bit) = (cpu.index() / 64, cpu.index() % 64);
        let whole = self.used().iter().take(word).map(|word| word.count_ones()).sum::<u32>();
        let part = self.used().get(word).map_or(0, |word| (word & !(u64::MAX << bit)).count_ones());
        (whole + part) as usize
    }

    /// Whether every CPU of `other` is in this set.
    pub fn contains_all(&self, other: &CpuMask) -> bool {
        other.used().iter().zip(&self.words).all(|(other, word)| other & !word == 0)
    }

    /// The lowest CPU (`cpumask_first`).
    pub fn lowest(&self) -> Option<Cpu> {
        self.next_from(0)
    }

    /// CPUs in ascending order (`for_each_cpu`).
    pub fn iter(&self) -> impl Iterator<Item = Cpu> + '_ {
        each(self.used().iter().copied())
    }

    /// CPUs in both sets, in ascending order (`for_each_cpu_and`).
    pub fn iter_both<'m>(&'m self, other: &'m CpuMask) -> impl Iterator<Item = Cpu> + 'm {
        each(self.used().iter().zip(other.used()).map(|(one, other)| one & other))
    }

    /// CPUs in ascending order from `start`, then from 0 up to `start` (`for_each_cpu_wrap`).
    pub fn iter_wrap(&self, start: Cpu) -> impl Iterator<Item = Cpu> + '_ {
        let mut from = start.index();
        let mut wrapped = false;
        std::iter::from_fn(move || {
            let mut next = self.next_from(from);
            if next.is_none() && !wrapped {
                wrapped = true;
                next = self.next_from(0);
            }
            let cpu = next.filter(|&cpu| !wrapped || cpu < start)?;
            from = cpu.index() + 1;
            Some(cpu)
        })
    }

    /// The lowest CPU that is `from` or higher.
    fn next_from(&self, from: usize) -> Option<Cpu> {
        let words = self.used();
        let mut word = from / 64;
        let mut bits = *words.get(word)? & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            bits = *words.get(word)?;
        }
        Some(Cpu((word * 64) as u32 + bits.trailing_zeros()))
    }

    /// Reads the kernel's list form: `0-3,8,10-11`.
    ///
    /// # Errors
    /// A clause that names what could not be read.
    pub fn parse_list(text: &str) -> Result<CpuMask, String> {
        let mut mask = CpuMask::EMPTY;
        for part in text.trim().split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |digits: &str| {
                let cpu = digits.trim().parse::<u32>().ok().filter(|&cpu| (cpu as usize) < MAX_CPUS);
                cpu.ok_or_else(|| format!("'{part}' is no CPU or range of CPUs below {MAX_CPUS}"))
            };
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(format!("'{part}' is a range that runs backwards"));
            }
            (first..=last).for_each(|cpu| mask.set(Cpu(cpu)));
        }
        Ok(mask)
    }
}

impl PartialEq for CpuMask {
    fn eq(&self, other: &CpuMask) -> bool {
        self.words == other.words
    }
}

impl Eq for CpuMask {}

impl Hash for CpuMask {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.words.hash(state);
    }
}

impl FromIterator<Cpu> for CpuMask {
    fn from_iter<I: IntoIterator<Item = Cpu>>(cpus: I) -> CpuMask {
        let mut mask = CpuMask::EMPTY;
        cpus.into_iter().for_each(|cpu| mask.set(cpu));
        mask
    }
}

/// The CPUs of a set's words, in ascending order.
fn each(mut words: impl Iterator<Item = u64>) -> impl Iterator<Item = Cpu> {
    let (mut base, mut bits) = (0, words.next().unwrap_or(0));
    std::iter::from_fn(move || {
        while bits == 0 {
            bits = words.next()?;
            base += 64;
        }
        let cpu = Cpu(base + bits.trailing_zeros());
        bits &= bits - 1;
        Some(cpu)
    })
}

/// The kernel's list form: `0-3,8`.
impl fmt::Display for CpuMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if(|next| next.0 == last.0 + 1) {
                last = next;
            }
            match last == first {
                true => write!(f, "{separator}{first}")?,
                false => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for CpuMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_printed_in_the_kernels_form() {
        for text in ["", "0", "0-3", "0-3,8,10-11", "63-64", "1023"] {
            assert_eq!(CpuMask::parse_list(text).expect(text).to_string(), text);
        }
        for text in ["a", "3-1", "1024", "-1", "0--2"] {
            assert!(CpuMask::parse_list(text).is_err(), "{text}");
        }
    }

    #[test]
    fn wrapping_visits_every_cpu_once_from_the_start() {
        let mask = CpuMask::parse_list("0,2,5,64-65").expect("a list");
        let order = |start| mask.iter_wrap(Cpu(start)).map(|cpu| cpu.0).collect::<Vec<_>>();
        assert_eq!(order(0), [0, 2, 5, 64, 65]);
        assert_eq!(order(3), [5, 64, 65, 0, 2]);
        assert_eq!(order(65), [65, 0, 2, 5, 64]);
        assert_eq!(order(66), [0, 2, 5, 64, 65]);
        assert_eq!(mask.weight(), 5);
        for start in (0..130).chain([MAX_CPUS as u32]) {
            for (place, cpu) in mask.iter_wrap(Cpu(start)).enumerate() {
                assert_eq!(mask.before_wrap(Cpu(start), cpu), place, "{cpu} from {start}");
            }
        }
    }

    #[test]
    fn sets_are_equal_by_their_cpus_however_they_came_about() {
        let mut mask = CpuMask::single(Cpu(3));
        mask.set(Cpu(900));
        assert_eq!((mask.weight(), mask.lowest()), (2, Some(Cpu(3))));
        mask.clear(Cpu(900));
        assert_eq!(mask, CpuMask::single(Cpu(3)));
        assert!(mask.and_not(&CpuMask::ALL).is_empty() && CpuMask::ALL.contains_all(&mask));
        assert_eq!(mask.or(&CpuMask::single(Cpu(700))).to_string(), "3,700");
        assert_eq!(CpuMask::ALL.and_not(&mask).weight(), MAX_CPUS - 1);
    }

    #[test]
    fn the_only_cpu_of_a_set() {
        let only = |text| CpuMask::parse_list(text).expect("a list").only();
        assert_eq!([only(""), only("70"), only("0,70")], [None, Some(Cpu(70)), None]);
        let both = |one, other| {
            let mask = |text| CpuMask::parse_list(text).expect("a list");
            (mask(one).only_one_in_both(&mask(other)), mask(one).and(&mask(other)).only().is_some())
        };
        for (one, other, expected) in [
            ("70", "0,70-1023", true),
            ("0,70", "0,70-1023", false),
            ("0-63", "64-127", false),
            ("2,70,900", "0-71", false),
            ("2,900", "0-71", true),
            ("2-3", "0-7", false),
        ] {
            assert_eq!(both(one, other), (expected, expected), "{one} and {other}");
        }
    }
}
