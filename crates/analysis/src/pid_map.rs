//! Tables by task id: [`PidIndex`] for what is looked up at every event, [`PidMap`] for all else. Both are equal in every process.
//!
//! Must not know: what is kept for each task.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use fairlab_event::{IdHasher, Pid};

/// Something for each task, by its id. Its order of iteration means nothing.
pub(crate) type PidMap<V> = HashMap<Pid, V, BuildHasherDefault<IdHasher>>;

/// A number for each task id. Ids that a kernel gives out are looked up by place, all others by hash.
#[derive(Clone, Debug, Default)]
pub(crate) struct PidIndex {
    pages: Vec<Option<Box<PidPage>>>,
    others: PidMap<u32>,
}

type PidPage = [u32; PAGE_IDS];

/// Ids of a page: machines give out neighbours, so few pages are in use.
const PAGE_IDS: usize = 256;

/// `PID_MAX_LIMIT`: no kernel gives out higher ids.
const IDS_MAX: usize = 1 << 22;

/// Stands where there is no number.
const NONE: u32 = u32::MAX;

impl PidIndex {
    /// The number of a task.
    #[inline]
    pub(crate) fn get(&self, pid: Pid) -> Option<u32> {
        let Some(id) = small(pid) else { return self.others.get(&pid).copied() };
        let page = self.pages.get(id / PAGE_IDS)?.as_ref()?;
        Some(page[id % PAGE_IDS]).filter(|&number| number != NONE)
    }

    /// A task has this number from now on, which is below `u32::MAX`.
    pub(crate) fn insert(&mut self, pid: Pid, number: u32) {
        let Some(id) = small(pid) else {
            self.others.insert(pid, number);
            return;
        };
        if self.pages.len() <= id / PAGE_IDS {
            self.pages.resize_with(id / PAGE_IDS + 1, || None);
        }
        let page = self.pages[id / PAGE_IDS].get_or_insert_with(|| Box::new([NONE; PAGE_IDS]));
        page[id % PAGE_IDS] = number;
    }

    /// A task has no number any more.
    pub(crate) fn remove(&mut self, pid: Pid) {
        let Some(id) = small(pid) else {
            self.others.remove(&pid);
            return;
        };
        if let Some(Some(page)) = self.pages.get_mut(id / PAGE_IDS) {
            page[id % PAGE_IDS] = NONE;
        }
    }
}

/// An id that has a place.
fn small(pid: Pid) -> Option<usize> {
    usize::try_from(pid.0).ok().filter(|&id| id < IDS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_has_a_number_of_its_own() {
        let ids = [0, 1, 255, 256, 70_000, (1 << 22) - 1, 1 << 22, i32::MAX, -1, i32::MIN].map(Pid);
        let mut index = PidIndex::default();
        for (number, pid) in (0..).zip(ids) {
            assert_eq!(index.get(pid), None, "{pid:?}");
            index.insert(pid, number);
        }
        for (number, pid) in (0..).zip(ids) {
            assert_eq!(index.get(pid), Some(number), "{pid:?}");
        }
        index.insert(Pid(256), 77);
        for pid in [Pid(255), Pid(-1), Pid(9)] {
            index.remove(pid);
            assert_eq!(index.get(pid), None, "{pid:?}");
        }
        assert_eq!((index.get(Pid(256)), index.get(Pid(1))), (Some(77), Some(1)));
    }
}
