//! Threads and processes as a process tree tells them: names and who belongs to whom, each written when it changes.
//!
//! Must not know: events of CPUs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::BuildHasherDefault;

use fairlab_event::{Comm, Context, EventKind, IdHasher, Pid};

use super::proto::ProtoMessage;
use crate::losses::{EventLosses, LossKind};

/// What is known of tasks, and what of it has not been written yet.
#[derive(Debug, Default)]
pub(super) struct KnownTasks {
    known: HashMap<Pid, ThreadInfo, BuildHasherDefault<IdHasher>>,
    /// Threads in the order of their ids, and the processes that they belong to.
    news: BTreeMap<Pid, ThreadInfo>,
    processes: BTreeSet<Pid>,
    /// Whom the latest event was reported by: the same as before, most of the time.
    latest: Option<(Pid, ThreadInfo)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ThreadInfo {
    comm: Comm,
    tgid: Option<Pid>,
}

impl KnownTasks {
    /// An event was reported by a task.
    pub(super) fn context(&mut self, context: &Context) {
        let tgid = Some(context.tgid).filter(|&tgid| tgid != Pid::UNKNOWN);
        let task = ThreadInfo { comm: context.comm, tgid };
        if self.latest != Some((context.pid, task)) {
            self.latest = Some((context.pid, task));
            self.learn(context.pid, task);
        }
    }

    /// The trace's own knowledge; tells what of it a process tree does not hold.
    pub(super) fn record(&mut self, kind: &EventKind<'_>) -> EventLosses {
        self.latest = None;
        let known = |tgid: Pid| Some(tgid).filter(|&tgid| tgid != Pid::UNKNOWN);
        match *kind {
            EventKind::TaskName { pid, tgid, comm } => {
                self.learn(pid, ThreadInfo { comm, tgid: known(tgid) });
                EventLosses::default()
            }
            EventKind::TaskStart { pid, tgid, parent_pid } => {
                let comm = self.known.get(&parent_pid).map(|parent| parent.comm).unwrap_or_default();
                self.learn(pid, ThreadInfo { comm, tgid: known(tgid) });
                EventLosses::only(LossKind::Fields)
            }
            _ => EventLosses::only(LossKind::LeftOut),
        }
    }

    /// The idle task has a place of its own in viewers.
    fn learn(&mut self, pid: Pid, task: ThreadInfo) {
        if pid.0 <= 0 || task == ThreadInfo::default() {
            return;
        }
        let known = self.known.entry(pid).or_default();
        let comm = if task.comm.is_empty() { known.comm } else { task.comm };
        let now = ThreadInfo { comm, tgid: task.tgid.or(known.tgid) };
        if *known != now {
            *known = now;
            self.news.insert(pid, now);
        }
    }

    /// `ProcessTree` of what has not been written yet.
    pub(super) fn take_tree(&mut self) -> Option<ProtoMessage> {
        if self.news.is_empty() {
            return None;
        }
        let news = std::mem::take(&mut self.news);
        let mut tree = ProtoMessage::new();
        let concerned: BTreeSet<Pid> = news.values().filter_map(|task| task.tgid).collect();
        for tgid in concerned {
            if self.processes.insert(tgid) || news.contains_key(&tgid) {
                let name = self.known.get(&tgid).map(|leader| leader.comm).unwrap_or_default();
                tree = tree.message(1, &process(tgid, name));
            }
        }
        for (pid, task) in news {
            let mut thread = ProtoMessage::new().int(1, pid.0.into()).text(2, &task.comm.to_str());
            if let Some(tgid) = task.tgid {
                thread = thread.int(3, tgid.0.into());
            }
            tree = tree.message(2, &thread);
        }
        Some(tree)
    }
}

/// A process is called as its first thread.
fn process(tgid: Pid, name: Comm) -> ProtoMessage {
    const CMDLINE_IS_COMM: u64 = 9;
    let process = ProtoMessage::new().int(1, tgid.0.into());
    if name.is_empty() {
        return process;
    }
    process.text(3, &name.to_str()).uint(CMDLINE_IS_COMM, 1)
}
