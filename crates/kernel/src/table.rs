//! What is looked up by number, most often of all: entities, queues, tasks, groups, CPUs.
//!
//! Must not know: what it holds.

use std::ops::{Deref, DerefMut, Index, IndexMut};

/// A vector whose check of a number costs one instruction less: nothing is kept at hand for a message that tells the number.
#[derive(Clone, Debug)]
pub(crate) struct IdTable<T>(Vec<T>);

impl<T> IdTable<T> {
    /// An empty one.
    pub const fn new() -> IdTable<T> {
        IdTable(Vec::new())
    }

    /// An empty one with room for so many.
    pub fn with_capacity(capacity: usize) -> IdTable<T> {
        IdTable(Vec::with_capacity(capacity))
    }

    /// Adds an element, whose number is the length before.
    pub fn push(&mut self, element: T) {
        self.0.push(element);
    }
}

impl<T> FromIterator<T> for IdTable<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> IdTable<T> {
        IdTable(elements.into_iter().collect())
    }
}

impl<T> Deref for IdTable<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for IdTable<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T> Index<usize> for IdTable<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, number: usize) -> &T {
        match self.0.get(number) {
            Some(element) => element,
            None => unknown(),
        }
    }
}

impl<T> IndexMut<usize> for IdTable<T> {
    #[inline(always)]
    fn index_mut(&mut self, number: usize) -> &mut T {
        match self.0.get_mut(number) {
            Some(element) => element,
            None => unknown(),
        }
    }
}

#[cold]
#[inline(never)]
fn unknown() -> ! {
    panic!("a number of this scheduler's own")
}
