//! Names and thread groups of tasks, kept so that what the reader will make of them is known as they come.
//!
//! The reader begins with one name for each task and changes it where the trace says so. The file's own table has the
//! latest names, since that is what trace-cmd's users expect; names in the beginning that differ are noted apart.
//!
//! Must not know: records, files.

use std::collections::HashMap;

use fairlab_event::{Comm, Pid};

use crate::ringbuffer::tasks::{ThreadEntry, ThreadTable};

/// What the file will say of each task.
#[derive(Debug, Default)]
pub(super) struct WrittenTasks {
    by_pid: HashMap<i32, WrittenTask>,
    /// What was reported last, if it was as the reader will have it.
    latest: Option<(Pid, Comm, Pid)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WrittenTask {
    /// What the reader begins with.
    initial: Comm,
    /// What the reader knows now.
    current: Comm,
    /// The latest name that is one.
    latest: Comm,
    /// The first thread group that an event named.
    tgid: Option<Pid>,
}

impl WrittenTask {
    fn new(comm: Comm) -> WrittenTask {
        WrittenTask { initial: comm, current: comm, latest: comm, tgid: None }
    }
}

impl WrittenTasks {
    /// Takes a name from before the first event.
    pub(super) fn known_before(&mut self, pid: Pid, comm: Comm) {
        if ThreadTable::holds(pid) {
            self.by_pid.insert(pid.0, WrittenTask::new(comm));
        }
    }

    /// A thread that began before the first event, and is called as its parent is.
    pub(super) fn started_before(&mut self, pid: Pid, parent: Pid) {
        if let Some(parent) = self.by_pid.get(&parent.0) {
            self.known_before(pid, parent.current);
        }
    }

    /// From now on `pid` is called `comm`.
    pub(super) fn renamed(&mut self, pid: Pid, comm: Comm) {
        self.latest = None;
        if let Some(task) = self.task(pid, ThreadEntry::unnamed(pid).comm) {
            task.current = comm;
            if !comm.is_empty() {
                task.latest = comm;
            }
        }
    }

    /// What the reader will take for the name of `pid` now.
    pub(super) fn comm(&mut self, pid: Pid) -> Comm {
        let unnamed = ThreadEntry::unnamed(pid).comm;
        self.task(pid, unnamed).map_or(unnamed, |task| task.current)
    }

    /// An event says that it was reported by `pid`, called `comm`, of `tgid`; false when the reader will know others.
    pub(super) fn reported(&mut self, pid: Pid, comm: Comm, tgid: Pid) -> bool {
        if self.latest == Some((pid, comm, tgid)) {
            return true;
        }
        let Some(task) = self.task(pid, comm) else {
            return comm.is_empty() && tgid == Pid::UNKNOWN;
        };
        let known = *task.tgid.get_or_insert(tgid);
        let exact = task.current == comm && known == tgid;
        self.latest = exact.then_some((pid, comm, tgid));
        exact
    }

    /// The task `pid`, which is called `comm` from the beginning if it was not known.
    fn task(&mut self, pid: Pid, comm: Comm) -> Option<&mut WrittenTask> {
        ThreadTable::holds(pid).then(|| self.by_pid.entry(pid.0).or_insert(WrittenTask::new(comm)))
    }

    fn sorted(&self) -> Vec<(Pid, WrittenTask)> {
        let mut tasks: Vec<(Pid, WrittenTask)> =
            self.by_pid.iter().map(|(&pid, &task)| (Pid(pid), task)).collect();
        tasks.sort_unstable_by_key(|&(pid, _)| pid);
        tasks
    }

    /// The text of `saved_cmdlines`, and the names in the beginning that differ from it.
    pub(super) fn names(&self) -> (Vec<u8>, Vec<(Pid, Comm)>) {
        let (mut text, mut initial) = (Vec::new(), Vec::new());
        for (pid, task) in self.sorted() {
            let mut saved = ThreadEntry::unnamed(pid).comm;
            if !task.latest.is_empty() && !pid.is_idle() {
                let line_feeds =
                    task.latest.as_bytes().iter().map(|&byte| if byte == b'\n' { b'?' } else { byte });
                let name: Vec<u8> = line_feeds.collect();
                text.extend_from_slice(format!("{pid} ").as_bytes());
                text.extend_from_slice(&name);
                text.push(b'\n');
                saved = Comm::new(&name);
            }
            if task.initial != saved {
                initial.push((pid, task.initial));
            }
        }
        (text, initial)
    }

    /// The thread groups that are known.
    pub(super) fn tgids(&self) -> Vec<(Pid, Pid)> {
        let told = |(pid, task): (Pid, WrittenTask)| {
            task.tgid.filter(|&tgid| tgid != Pid::UNKNOWN).map(|tgid| (pid, tgid))
        };
        self.sorted().into_iter().filter_map(told).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Pid = Pid::UNKNOWN;

    fn comm(name: &str) -> Comm {
        Comm::from(name)
    }

    #[test]
    fn the_first_name_holds_until_the_trace_says_otherwise() {
        let mut tasks = WrittenTasks::default();
        assert!(tasks.reported(Pid(7), comm("sh"), Pid(7)));
        assert!(tasks.reported(Pid(7), comm("sh"), Pid(7)));
        assert!(!tasks.reported(Pid(7), comm("ls"), Pid(7)));
        assert!(!tasks.reported(Pid(7), comm("sh"), Pid(8)));
        tasks.renamed(Pid(7), comm("ls"));
        assert!(!tasks.reported(Pid(7), comm("sh"), Pid(7)));
        assert!(tasks.reported(Pid(7), comm("ls"), Pid(7)));
        assert_eq!(tasks.comm(Pid(7)), comm("ls"));
        assert_eq!(tasks.names(), (b"7 ls\n".to_vec(), vec![(Pid(7), comm("sh"))]));
        assert_eq!(tasks.tgids(), [(Pid(7), Pid(7))]);
    }

    #[test]
    fn what_cannot_be_saved_is_noted() {
        let mut tasks = WrittenTasks::default();
        assert!(tasks.reported(Pid(0), comm("<idle>"), NONE));
        assert!(tasks.reported(Pid(3), comm("a\nb"), NONE));
        assert!(tasks.reported(Pid(2), comm(""), NONE));
        assert_eq!(tasks.comm(Pid(4)), comm(""));
        tasks.renamed(Pid(5), comm("late"));
        assert!(tasks.reported(NONE, comm(""), NONE));
        assert!(!tasks.reported(NONE, comm("x"), NONE));
        let (text, initial) = tasks.names();
        assert_eq!(text, b"3 a?b\n5 late\n");
        assert_eq!(initial, [(Pid(3), comm("a\nb")), (Pid(5), comm(""))]);
        assert!(tasks.tgids().is_empty());
    }

    #[test]
    fn the_idle_task_is_called_as_it_was() {
        let mut tasks = WrittenTasks::default();
        tasks.known_before(Pid(0), comm("swapper"));
        tasks.known_before(Pid(1), comm("first"));
        tasks.known_before(Pid(1), comm("init"));
        assert!(tasks.reported(Pid(0), comm("swapper"), Pid(0)));
        assert!(tasks.reported(Pid(1), comm("init"), Pid(1)));
        assert_eq!(tasks.names(), (b"1 init\n".to_vec(), vec![(Pid(0), comm("swapper"))]));
    }
}
