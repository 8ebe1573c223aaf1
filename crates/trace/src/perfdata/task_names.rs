//! What tasks are called at the time of the record at hand.
//!
//! Must not know: records.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use fairlab_event::{Comm, IdHasher};

use super::sample::TID_MAX;

/// Names by thread id.
#[derive(Debug)]
pub(super) struct TaskNames {
    names: HashMap<i32, Comm, BuildHasherDefault<IdHasher>>,
    /// Names of threads that were asked for, each in the place that its id's low bits give: the same few threads report
    /// most of what happens at a time.
    recent: Vec<(i32, Comm)>,
}

const RECENT: usize = 256;

impl TaskNames {
    pub(super) fn new() -> TaskNames {
        // No task has this id, and this is what it is called.
        TaskNames { names: HashMap::default(), recent: vec![(-1, Comm::default()); RECENT] }
    }

    /// The name of a thread; empty when it is not known.
    #[inline]
    pub(super) fn get(&mut self, tid: i32) -> Comm {
        let place = tid as usize % RECENT;
        match self.recent.get(place) {
            Some(&(known, comm)) if known == tid => comm,
            _ => self.look_up(tid, place),
        }
    }

    #[cold]
    fn look_up(&mut self, tid: i32, place: usize) -> Comm {
        let comm = self.names.get(&tid).copied().unwrap_or_default();
        self.recent[place] = (tid, comm);
        comm
    }

    /// From now on a thread is called `comm`; empty: its name is not known.
    pub(super) fn set(&mut self, tid: i32, comm: Comm) {
        if !(0..=TID_MAX).contains(&tid) {
            return;
        }
        if comm.is_empty() {
            self.names.remove(&tid);
        } else {
            self.names.insert(tid, comm);
        }
        self.recent[tid as usize % RECENT] = (tid, comm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_set_last_whoever_was_asked_for_between() {
        let mut names = TaskNames::new();
        let far = RECENT as i32;
        assert_eq!(names.get(5), Comm::default());
        names.set(5, Comm::from("a"));
        names.set(5 + far, Comm::from("b"));
        names.set(-3, Comm::from("no task"));
        names.set(TID_MAX + 1, Comm::from("no task"));
        for _ in 0..2 {
            let all = [5, 5 + far, 5 + 2 * far, -1, -3, TID_MAX + 1, i32::MIN].map(|tid| names.get(tid));
            assert_eq!(all[..2], [Comm::from("a"), Comm::from("b")]);
            assert!(all[2..].iter().all(Comm::is_empty));
        }
        names.set(5, Comm::default());
        assert_eq!((names.get(5), names.get(5 + far)), (Comm::default(), Comm::from("b")));
    }
}
