//! Places that each hold a key, and the least key of all.

use super::Key;

/// A tree of groups of four, each of which puts its least into the group above.
///
/// A place that is to hold a later key than the tree has there keeps that beside it: the tree follows when the earlier one
/// has become the least. So one way up the tree is saved for each key that is taken or put off.
#[derive(Debug)]
pub(super) struct Tournament {
    /// The root comes first; the groups below slot `s` of group `g` are `4g + s + 1`. Those of the last level are the places.
    groups: Vec<[Key; 4]>,
    /// Where the places begin.
    begin: usize,
    /// What each place is to hold: no less than what the tree has there.
    keys: Vec<Key>,
    /// The least key that the tree has.
    least: Key,
}

impl Tournament {
    pub fn new(places: usize) -> Tournament {
        let (mut begin, mut level) = (0, 1);
        while 4 * level < places {
            (begin, level) = (begin + level, 4 * level);
        }
        let (groups, keys) = (vec![[Key::NEVER; 4]; begin + level], vec![Key::NEVER; places]);
        Tournament { groups, begin, keys, least: Key::NEVER }
    }

    /// Puts `key` at its place, instead of what is there.
    #[inline]
    pub fn set(&mut self, key: Key) {
        let place = key.place();
        self.keys[place] = key;
        if key < self.groups[self.begin + place / 4][place % 4] {
            self.put(place, key);
        }
    }

    /// Nothing is at `place` any more.
    #[inline]
    pub fn cancel(&mut self, place: usize) {
        self.keys[place] = Key::NEVER;
    }

    /// Takes the least key out, which [`first`](Self::first) has told, and tells its place.
    pub fn take(&mut self) -> usize {
        let place = self.least.place();
        self.cancel(place);
        place
    }

    /// The least key.
    #[inline]
    pub fn first(&mut self) -> Key {
        if self.least != Key::NEVER && self.keys[self.least.place()] != self.least {
            self.follow();
        }
        self.least
    }

    /// The least key of the tree is taken or put off: the tree follows.
    #[inline(never)]
    fn follow(&mut self) {
        loop {
            let place = self.least.place();
            self.put(place, self.keys[place]);
            if self.least == Key::NEVER || self.keys[self.least.place()] == self.least {
                return;
            }
        }
    }

    fn put(&mut self, place: usize, key: Key) {
        let (mut group, mut slot, mut least) = (self.begin + place / 4, place % 4, key);
        loop {
            let keys = &mut self.groups[group];
            // Where the least is the same as before, nothing changes further up.
            if std::mem::replace(&mut keys[slot], least) == least {
                return;
            }
            least = keys[0].min(keys[1]).min(keys[2].min(keys[3]));
            if group == 0 {
                self.least = least;
                return;
            }
            (group, slot) = ((group - 1) / 4, (group - 1) % 4);
        }
    }
}
