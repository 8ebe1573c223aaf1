//! The threads of a program by the numbers that it knows them by, in memory that goes by how many there are at a time.
//!
//! Must not know: what a thread is.

use crate::workload::ThreadId;

/// Numbers that are kept and dropped together.
const PAGE: usize = 256;

/// Stands for a number without a thread.
const NONE: u32 = u32::MAX;

/// A page of numbers.
struct NumberPage {
    places: [u32; PAGE],
    /// Numbers given away whose threads have not ended.
    used: usize,
}

/// Where each thread is found, by its number; numbers are given away in order and never again.
#[derive(Default)]
pub(super) struct ThreadNumbers {
    pages: Vec<Option<Box<NumberPage>>>,
    given: u32,
}

impl ThreadNumbers {
    /// Gives away the next number; its thread does not exist yet.
    pub fn reserve(&mut self) -> ThreadId {
        let id = ThreadId(self.given);
        self.given += 1;
        if id.index().is_multiple_of(PAGE) {
            self.pages.push(Some(Box::new(NumberPage { places: [NONE; PAGE], used: 0 })));
        }
        if let Some(page) = self.page(id) {
            page.used += 1;
        }
        id
    }

    /// Where its thread is; `None` before it exists and after its end.
    #[inline]
    pub fn get(&self, id: ThreadId) -> Option<usize> {
        let page = self.pages.get(id.index() / PAGE)?.as_ref()?;
        Some(page.places[id.index() % PAGE]).filter(|&place| place != NONE).map(|place| place as usize)
    }

    /// The thread exists from now on, at this place.
    pub fn set(&mut self, id: ThreadId, place: usize) {
        if let Some(page) = self.page(id) {
            page.places[id.index() % PAGE] = place as u32;
        }
    }

    /// The thread has ended.
    pub fn remove(&mut self, id: ThreadId) {
        let is_full = self.given as usize / PAGE > id.index() / PAGE;
        let Some(page) = self.page(id) else { return };
        page.places[id.index() % PAGE] = NONE;
        page.used -= 1;
        if page.used == 0 && is_full {
            self.pages[id.index() / PAGE] = None;
        }
    }

    /// How many pages are kept.
    #[cfg(test)]
    pub fn pages(&self) -> usize {
        self.pages.iter().flatten().count()
    }

    fn page(&mut self, id: ThreadId) -> Option<&mut NumberPage> {
        self.pages.get_mut(id.index() / PAGE)?.as_deref_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_found_from_their_beginning_to_their_end() {
        let mut numbers = ThreadNumbers::default();
        let (one, other) = (numbers.reserve(), numbers.reserve());
        assert_eq!((one, other, numbers.get(one)), (ThreadId(0), ThreadId(1), None));
        numbers.set(other, 7);
        assert_eq!(
            [numbers.get(one), numbers.get(other), numbers.get(ThreadId(9_999))],
            [None, Some(7), None]
        );
        numbers.remove(other);
        assert_eq!(numbers.get(other), None);
    }

    #[test]
    fn pages_go_with_their_last_thread() {
        let mut numbers = ThreadNumbers::default();
        let first = numbers.reserve();
        numbers.set(first, 0);
        for _ in 0..100 * PAGE {
            let id = numbers.reserve();
            numbers.set(id, 1);
            numbers.remove(id);
        }
        assert_eq!(numbers.get(first), Some(0));
        assert!(numbers.pages() <= 2, "that of the first thread, and the newest");
    }
}
