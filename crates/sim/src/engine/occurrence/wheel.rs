//! Places in order of time, and of arrangement where times are equal.

use fairlab_event::Ns;

/// Places that each hold a time, in lists: one in order of what comes in the slots of time up to some position, and one for each
/// later slot, in which places stand as they were put. Slots are as long as the lists are many: at the lowest level of
/// [`SLOT_BITS`], at each higher one [`LISTS`] times as long. Where the position comes to a slot of a higher level, its list goes
/// to the lower ones, in its order: so of one time, what was put first stays first.
///
/// A list is a ring of links with one of its own, and a place is in one list or linked with itself.
#[derive(Debug)]
pub(super) struct Wheel {
    links: Vec<WheelLink>,
    /// Of each level, the lists that may hold something.
    occupied: [u64; LEVELS],
    /// What comes before this slot is in the list in order. Counted in slots of the lowest level.
    position: u64,
}

#[derive(Clone, Copy, Debug)]
struct WheelLink {
    time: Ns,
    before: u32,
    after: u32,
}

/// A slot of the lowest level is 2^13 ns: longer than most kernel work, so that its end is put in order at once, and
/// little else comes in it.
const SLOT_BITS: u32 = 13;

/// The number of lists of a level is that of the bits of a word.
const LISTS: usize = 64;
const LIST_BITS: u32 = LISTS.trailing_zeros();

/// So many that any time has a slot.
const LEVELS: usize = (u64::BITS - SLOT_BITS).div_ceil(LIST_BITS) as usize;

/// The link of the list in order; those of the other lists follow, and then the places'.
const NEAR: usize = 0;
const FIRST_PLACE: usize = 1 + LEVELS * LISTS;

impl Wheel {
    /// A wheel at time 0, its places without a time.
    pub fn new(places: usize) -> Wheel {
        let mut wheel = Wheel { links: Vec::new(), occupied: [0; LEVELS], position: 0 };
        (0..FIRST_PLACE + places).for_each(|_| wheel.add_link());
        wheel
    }

    /// Adds a place, whose number is that of the places before.
    pub fn add_place(&mut self) {
        self.add_link();
    }

    fn add_link(&mut self) {
        let link = u32::try_from(self.links.len()).expect("fewer than 2^32 places");
        self.links.push(WheelLink { time: Ns::ZERO, before: link, after: link });
    }

    /// When what stands at `place` comes, if something does.
    pub fn time_at(&self, place: usize) -> Option<Ns> {
        let link = FIRST_PLACE + place;
        let WheelLink { time, after, .. } = self.links[link];
        (after as usize != link).then_some(time)
    }

    /// Puts `time` at `place`, instead of what stands there.
    #[inline]
    pub fn put(&mut self, place: usize, time: Ns) {
        self.remove(place);
        self.links[FIRST_PLACE + place].time = time;
        self.sort_in(FIRST_PLACE + place);
    }

    /// Leaves `place` without a time.
    #[inline]
    pub fn remove(&mut self, place: usize) {
        let link = FIRST_PLACE + place;
        let WheelLink { before, after, .. } = self.links[link];
        if after as usize != link {
            self.links[before as usize].after = after;
            self.links[after as usize].before = before;
            (self.links[link].before, self.links[link].after) = (link as u32, link as u32);
        }
    }

    /// When the first place comes, and which; never, if none does in a slot that begins until `limit`.
    #[inline]
    pub fn first_until(&mut self, limit: Ns) -> (Ns, usize) {
        let link = self.links[NEAR].after as usize;
        if link == NEAR { self.advance(limit) } else { self.at(link) }
    }

    #[inline]
    fn at(&self, link: usize) -> (Ns, usize) {
        (self.links[link].time, link - FIRST_PLACE)
    }

    /// Puts the next list in order, if it begins until `limit`. No other is in order any more.
    #[inline(never)]
    fn advance(&mut self, limit: Ns) -> (Ns, usize) {
        let last = limit.0 >> SLOT_BITS;
        while self.links[NEAR].after as usize == NEAR {
            match self.next_list() {
                Some((level, slot)) if slot <= last => self.go_on_to(level, slot),
                _ => {
                    self.position = self.position.max(last);
                    return (Ns::MAX, 0);
                }
            }
        }
        self.at(self.links[NEAR].after as usize)
    }

    /// Moves the position to a slot that nothing comes before, and behind it where it is of the lowest level. What waits in
    /// lists of the levels that begin there goes to lower ones.
    #[inline]
    fn go_on_to(&mut self, level: usize, slot: u64) {
        self.position = if level == 0 { slot + 1 } else { slot };
        self.sort_in_list(level, slot);
        if level == 0 && (slot + 1).is_multiple_of(LISTS as u64) {
            (1..LEVELS).rev().for_each(|level| self.sort_in_list(level, slot + 1));
        }
    }

    /// The level of the first list that may hold something, and its first slot of the lowest level.
    #[inline]
    fn next_list(&self) -> Option<(usize, u64)> {
        let level = self.occupied.iter().position(|&lists| lists != 0)?;
        let shift = LIST_BITS * level as u32;
        let first = u64::from(self.occupied[level].trailing_zeros());
        let higher = self.position >> shift >> LIST_BITS << LIST_BITS;
        Some((level, (higher | first) << shift))
    }

    /// Takes the list of a slot apart: all that is in it goes to where it belongs now.
    fn sort_in_list(&mut self, level: usize, slot: u64) {
        let lists = slot_at(level, slot);
        if self.occupied[level] & 1 << lists == 0 {
            return;
        }
        self.occupied[level] &= !(1 << lists);
        let list = 1 + level * LISTS + lists;
        let mut link = std::mem::replace(&mut self.links[list].after, list as u32) as usize;
        self.links[list].before = list as u32;
        while link != list {
            let after = self.links[link].after as usize;
            self.sort_in(link);
            link = after;
        }
    }

    /// Puts a place into the list of its time.
    #[inline]
    fn sort_in(&mut self, link: usize) {
        let time = self.links[link].time;
        if time.0 >> SLOT_BITS >= self.position {
            return self.append(link);
        }
        // Behind all that comes no later: mostly that is one of the last or of the first. The list's own link has time 0.
        let WheelLink { mut before, mut after, .. } = self.links[NEAR];
        loop {
            let (last, first) = (self.links[before as usize], self.links[after as usize]);
            if last.time <= time {
                return self.insert(link, before as usize, last.after as usize);
            }
            if first.time > time {
                return self.insert(link, first.before as usize, after as usize);
            }
            (before, after) = (last.before, first.after);
        }
    }

    /// Puts a place into the list of its slot.
    #[inline(never)]
    fn append(&mut self, link: usize) {
        let slot = self.links[link].time.0 >> SLOT_BITS;
        let level = (((slot ^ self.position) | (LISTS as u64 - 1)).ilog2() / LIST_BITS) as usize;
        let lists = slot_at(level, slot);
        self.occupied[level] |= 1 << lists;
        let list = 1 + level * LISTS + lists;
        self.insert(link, self.links[list].before as usize, list);
    }

    #[inline]
    fn insert(&mut self, link: usize, before: usize, after: usize) {
        self.links[before].after = link as u32;
        self.links[after].before = link as u32;
        (self.links[link].before, self.links[link].after) = (before as u32, after as u32);
    }
}

/// Which slot of its level that is.
fn slot_at(level: usize, slot: u64) -> usize {
    (slot >> (LIST_BITS * level as u32)) as usize % LISTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::RandomStream;

    /// The position may come to lie within the slot of a list that is not sorted yet, or at its begin.
    #[test]
    fn what_was_put_from_afar_comes_before_what_was_put_from_near() {
        let slots = |slots: u64| Ns(slots << SLOT_BITS);
        for (passed, time) in
            [(64, 100), (80, 100), (100, 100), (4_096, 5_000), (4_999, 5_000), (4_000, 5_000)]
        {
            let mut wheel = Wheel::new(3);
            wheel.put(2, slots(time));
            assert_eq!(wheel.first_until(slots(passed) - Ns(1)), (Ns::MAX, 0), "{passed}");
            wheel.put(0, slots(time));
            assert_eq!(wheel.first_until(slots(time) - Ns(1)), (Ns::MAX, 0));
            wheel.put(1, slots(time));
            for place in [2, 0, 1] {
                assert_eq!(wheel.first_until(slots(time)), (slots(time), place), "{passed}");
                wheel.remove(place);
            }
        }
    }

    /// What lies ahead in slots of every level, and at their edges, comes as sorting orders it, and at once if it is put late.
    #[test]
    fn places_come_as_sorting_orders_them() {
        let mut stream = RandomStream::new(3, "wheel");
        let mut wheel = Wheel::new(0);
        let mut pending: Vec<(Ns, usize, usize)> = Vec::new();
        let (mut now, mut taken) = (Ns::ZERO, 0);
        for number in 0..40_000 {
            let scale = 1 << stream.below(44);
            let ahead = [stream.below(scale), scale - 1, scale, 7][stream.below(4) as usize];
            if stream.below(9) < 4 {
                // Many at one time, some of which are put from afar and some from near.
                let time = Ns((now.0 + ahead).next_multiple_of(1 << stream.below(24)));
                wheel.add_place();
                wheel.put(number - taken, time);
                pending.push((time, number, number - taken));
                assert_eq!(wheel.time_at(number - taken), Some(time));
                continue;
            }
            taken += 1;
            if let Some(index) = (!pending.is_empty()).then(|| stream.below(pending.len() as u64) as usize)
                && stream.below(3) == 0
            {
                wheel.remove(pending.swap_remove(index).2);
                continue;
            }
            let limit = now + Ns(ahead);
            let (time, place) = wheel.first_until(limit);
            if time == Ns::MAX {
                assert!(
                    pending.iter().all(|&(time, ..)| time > limit),
                    "{number}: something comes before {limit:?}"
                );
                now = limit;
                continue;
            }
            let first = (0..pending.len()).min_by_key(|&index| (pending[index].0, pending[index].1));
            let expected = pending.swap_remove(first.expect("something is pending"));
            assert_eq!((time, place), (expected.0, expected.2), "{number}");
            wheel.remove(place);
            assert_eq!(wheel.time_at(place), None);
            now = now.max(time);
        }
        assert!(now > Ns(1 << 36), "{now:?}");
    }
}
