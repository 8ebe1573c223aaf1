//! Arrays that a loop walks through, for traffic between a core and memory.
//!
//! Must not know: who wants it, and what it costs.

/// What a thread's arrays hold together where nobody says it, KB: more than a core's share of a cache.
const DEFAULT_KB: u64 = 64 << 10;

/// The most that they hold together, KB.
const MOST_KB: u64 = 4 << 20;

/// Elements between two looks at whether to stop.
const BLOCK: usize = 1 << 14;

/// Bytes that one element of a triad moves: two are read, one is written, as STREAM counts.
const BYTES_AN_ELEMENT: u64 = 24;

/// Three arrays, as STREAM has them.
#[derive(Debug)]
pub(crate) struct Arrays {
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
    /// Where the next triad goes on.
    next: usize,
}

impl Arrays {
    /// Arrays that hold so much together. Their pages lie where the caller runs: it touches them first.
    pub fn new(kb: Option<u64>) -> Arrays {
        let bytes = kb.unwrap_or(DEFAULT_KB).clamp(1, MOST_KB) << 10;
        let len = (bytes / BYTES_AN_ELEMENT) as usize;
        let filled = |value: f64| vec![value; len.max(1)];
        Arrays { a: filled(1.0), b: filled(2.0), c: filled(0.5), next: 0 }
    }

    /// `a[i] = b[i] + s * c[i]`, round and round, until so many bytes have moved or `stops` says so.
    pub fn triad(&mut self, bytes: u64, stops: impl Fn() -> bool) {
        let mut left = bytes.div_ceil(BYTES_AN_ELEMENT);
        while left > 0 && !stops() {
            let end = self.a.len().min(self.next + BLOCK);
            let end = self.next + (end - self.next).min(usize::try_from(left).unwrap_or(usize::MAX));
            let range = self.next..end;
            let sources = self.b[range.clone()].iter().zip(&self.c[range.clone()]);
            for (a, (b, c)) in self.a[range].iter_mut().zip(sources) {
                *a = b + 3.0 * c;
            }
            left -= (end - self.next) as u64;
            self.next = if end == self.a.len() { 0 } else { end };
            std::hint::black_box(&mut self.a);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_triad_goes_round_until_all_has_moved_or_it_is_to_stop() {
        let mut arrays = Arrays::new(Some(24));
        assert_eq!(arrays.a.len(), 1024);
        arrays.triad(24 * 1000, || false);
        assert_eq!((arrays.next, arrays.a[999], arrays.a[1000]), (1000, 3.5, 1.0));
        arrays.triad(24 * 100, || false);
        assert_eq!((arrays.next, arrays.a[1023]), (76, 3.5));
        arrays.triad(u64::MAX, || true);
        assert_eq!(arrays.next, 76);
    }
}
