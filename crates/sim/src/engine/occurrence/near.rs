//! A short list of what comes soon, in order of time, and of arrangement where times are equal.

use fairlab_event::Ns;

/// A ring of times and places.
#[derive(Debug)]
pub(super) struct Near {
    /// As many as a power of two.
    ring: Vec<(Ns, u32)>,
    first: usize,
    len: usize,
}

impl Default for Near {
    fn default() -> Near {
        Near { ring: vec![(Ns::MAX, 0); 32], first: 0, len: 0 }
    }
}

impl Near {
    fn at(&self, index: usize) -> (Ns, u32) {
        self.ring[index & (self.ring.len() - 1)]
    }

    fn put(&mut self, index: usize, entry: (Ns, u32)) {
        let mask = self.ring.len() - 1;
        self.ring[index & mask] = entry;
    }

    /// Inserts a place. It passes over those that come later: few, as what is arranged last mostly comes last.
    #[inline]
    pub fn insert(&mut self, time: Ns, place: usize) {
        if self.len == self.ring.len() {
            self.grow();
        }
        let mut at = self.first + self.len;
        while at > self.first && self.at(at - 1).0 > time {
            self.put(at, self.at(at - 1));
            at -= 1;
        }
        self.put(at, (time, place as u32));
        self.len += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let (ring, size) = (self.ring.clone(), 2 * self.ring.len());
        self.ring.resize(size, (Ns::MAX, 0));
        for index in self.first..self.first + self.len {
            self.put(index, ring[index & (ring.len() - 1)]);
        }
    }

    /// When the first comes; never, if there is none.
    #[inline]
    pub fn first(&self) -> Ns {
        if self.len == 0 { Ns::MAX } else { self.at(self.first).0 }
    }

    /// Takes the first one out, and tells its place.
    #[inline]
    pub fn take(&mut self) -> usize {
        let (_, place) = self.at(self.first);
        self.first += 1;
        self.len -= 1;
        place as usize
    }

    /// Takes a place out.
    #[cold]
    pub fn remove(&mut self, place: usize) {
        let end = self.first + self.len;
        let mut indices = self.first..end;
        let found = indices.find(|&index| self.at(index).1 as usize == place);
        for index in found.expect("it is there") + 1..end {
            self.put(index - 1, self.at(index));
        }
        self.len -= 1;
    }

    /// All in order.
    pub fn iter(&self) -> impl Iterator<Item = (Ns, usize)> {
        (self.first..self.first + self.len)
            .map(|index| self.at(index))
            .map(|(time, place)| (time, place as usize))
    }
}
