//! Names of tasks as the file's two readers will know them, kept so that each is told of a name before it matters.
//!
//! Fairlab's reader takes the name of an event's context from COMM and FORK records. perf does that too, and has nothing
//! else to call the tasks by that tracepoints are about. So a trace without COMM records gets some, marked, and
//! Fairlab's reader passes over the marked ones.
//!
//! Must not know: files.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use fairlab_event::{Comm, IdHasher, Pid};

use crate::perfdata::sample::TID_MAX;

/// What is known of all tasks.
#[derive(Debug, Default)]
pub(super) struct WrittenNames {
    by_tid: HashMap<i32, NamedThread, BuildHasherDefault<IdHasher>>,
    /// Whether the trace has knowledge of its own about names: perf shows no others then.
    named: bool,
}

/// What is known of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NamedThread {
    /// Its name as the context of an event, as Fairlab's reader has it; empty when not known.
    pub(super) comm: Comm,
    /// Its name as perf has it; empty when not known.
    shown: Comm,
    /// Whether perf has heard of it.
    pub(super) met: bool,
    /// Its process and its parent, where some event named them.
    pub(super) tgid: Option<Pid>,
    pub(super) parent: Option<Pid>,
}

impl WrittenNames {
    /// Whether the reader keeps a name for `pid`.
    pub(super) fn holds(pid: Pid) -> bool {
        (0..=TID_MAX).contains(&pid.0)
    }

    pub(super) fn get(&self, pid: Pid) -> NamedThread {
        self.by_tid.get(&pid.0).copied().unwrap_or_default()
    }

    fn task(&mut self, pid: Pid) -> Option<&mut NamedThread> {
        WrittenNames::holds(pid).then(|| self.by_tid.entry(pid.0).or_default())
    }

    /// From now on both readers call `pid` by this name.
    pub(super) fn rename(&mut self, pid: Pid, comm: Comm) {
        if let Some(task) = self.task(pid) {
            (task.comm, task.shown, task.met) = (comm, comm, true);
        }
    }

    /// A COMM record of the trace's own.
    pub(super) fn named(&mut self, pid: Pid, tgid: Pid, comm: Comm) {
        self.named = true;
        self.rename(pid, comm);
        self.belongs(pid, tgid);
    }

    /// A FORK record.
    pub(super) fn started(&mut self, pid: Pid, tgid: Pid, parent: Pid) {
        self.named = true;
        let NamedThread { comm, shown, .. } = self.get(parent);
        if let Some(task) = self.task(pid) {
            *task = NamedThread { comm, shown, met: true, tgid: None, parent: Some(parent) };
        }
        self.belongs(pid, tgid);
    }

    /// perf hears of `pid`; false when it had before.
    pub(super) fn meets(&mut self, pid: Pid) -> bool {
        self.task(pid).is_none_or(|task| !std::mem::replace(&mut task.met, true))
    }

    /// The process of `pid` as perf shall have it: what is not known is taken for the thread's own.
    pub(super) fn process(&self, pid: Pid) -> Pid {
        self.get(pid).tgid.unwrap_or(pid)
    }

    /// An event tells the process of `pid`.
    pub(super) fn belongs(&mut self, pid: Pid, tgid: Pid) {
        if tgid != Pid::UNKNOWN
            && let Some(task) = self.task(pid)
        {
            task.tgid = Some(tgid);
        }
    }

    /// Whether perf has to be told that `pid` is called `comm`, which a tracepoint says; from now on it knows. It has a
    /// name of its own for the idle task.
    pub(super) fn is_news(&mut self, pid: Pid, comm: Comm) -> bool {
        if self.named || comm.is_empty() || pid.is_idle() {
            return false;
        }
        match self.task(pid) {
            Some(task) if task.shown != comm => {
                (task.shown, task.met) = (comm, true);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_tracepoints_tell_are_news_once_and_only_without_others() {
        let mut names = WrittenNames::default();
        let (one, other) = (Comm::from("one"), Comm::from("other"));
        assert!(names.is_news(Pid(7), one) && !names.is_news(Pid(7), one) && names.is_news(Pid(7), other));
        assert!(
            !names.is_news(Pid(0), one)
                && !names.is_news(Pid(-1), one)
                && !names.is_news(Pid(8), Comm::default())
        );
        assert!(names.get(Pid(7)).comm.is_empty());
        names.named(Pid(7), Pid(6), one);
        assert_eq!((names.get(Pid(7)).comm, names.get(Pid(7)).tgid), (one, Some(Pid(6))));
        assert!(!names.is_news(Pid(8), one));
    }

    #[test]
    fn a_child_is_called_as_its_parent() {
        let mut names = WrittenNames::default();
        names.named(Pid(7), Pid(7), Comm::from("sh"));
        names.started(Pid(8), Pid(8), Pid(7));
        assert_eq!((names.get(Pid(8)).comm, names.get(Pid(8)).parent), (Comm::from("sh"), Some(Pid(7))));
        names.started(Pid(8), Pid(8), Pid(99));
        assert!(names.get(Pid(8)).comm.is_empty());
    }
}
