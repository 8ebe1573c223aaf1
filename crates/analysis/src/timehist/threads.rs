//! A task's name and process, as perf shows them and as they are.
//!
//! perf keys a sample by the thread id of its header, which is −1 for a reaped task. perf also forgets a thread at its EXIT
//! record, before its last switches. Such rows name `:TID` and begin without a past. Both views are kept, so that rows can be
//! perf's and sums can be right.
//!
//! Must not know: rows, time windows.

use std::fmt;

use fairlab_event::{Comm, Context, Pid};

use super::history::History;
use super::totals::StayTotals;
use crate::pid_map::{PidIndex, PidMap};

/// A task as perf names it: `comm[tid]`, or `comm[tid/pid]` for a thread that is not its process's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its name; `:TID` when the trace tells none.
    pub comm: Comm,
    /// Its thread id.
    pub tid: Pid,
    /// Its process id; 0 for the idle task, and for a task whose first record in perf is its wakeup.
    pub tgid: Pid,
}

impl Label {
    /// The idle task of any CPU.
    pub fn idle() -> Label {
        Label { comm: Comm::IDLE, tid: Pid::IDLE, tgid: Pid::IDLE }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Label { comm, tid, tgid } = self;
        if tgid.is_idle() {
            write!(f, "{comm}")
        } else if tid == tgid {
            write!(f, "{comm}[{tid}]")
        } else {
            write!(f, "{comm}[{tid}/{tgid}]")
        }
    }
}

/// A thread as perf knows it.
#[derive(Clone, Debug)]
pub(super) struct PerfThread {
    name: Option<Comm>,
    tgid: Pid,
    pub(super) history: History,
}

/// One life of one task, with its sums.
#[derive(Clone, Debug)]
pub(super) struct TimehistTask {
    pub(super) pid: Pid,
    tgid: Pid,
    /// By the trace's own knowledge of tasks.
    name: Option<Comm>,
    /// In the latest event that told one.
    seen_as: Comm,
    /// The thread that created it, where the trace tells.
    pub(super) parent: Option<Pid>,
    pub(super) history: History,
    pub(super) totals: StayTotals,
}

/// All tasks, in both views.
#[derive(Clone, Debug, Default)]
pub(super) struct PerfThreads {
    /// perf's view: the threads that have not exited.
    shown: PidMap<PerfThread>,
    /// Every life of every task.
    pub(super) tasks: Vec<TimehistTask>,
    by_pid: PidIndex,
    /// Whether the trace's own knowledge tells of tasks' begins and ends: it comes from perf.
    recorded: bool,
}

impl PerfThreads {
    /// The thread by whose id perf files an event about `pid` that was reported in `context`.
    pub(super) fn sample_tid(&self, pid: Pid, context: &Context) -> Pid {
        if self.recorded { context.pid } else { pid }
    }

    /// The process of `pid`, if `context` tells it.
    fn context_tgid(&self, pid: Pid, context: &Context) -> Pid {
        match context.pid == pid {
            true => context.tgid,
            false => Pid::UNKNOWN,
        }
    }

    /// perf's thread, found or made for a sample of process `tgid`; the process's first thread is made with it.
    pub(super) fn shown(&mut self, tid: Pid, tgid: Pid) -> &mut PerfThread {
        let blank = |tgid| PerfThread { name: None, tgid, history: History::default() };
        if tgid != tid && tgid.0 > 0 && self.shown.get(&tid).is_none_or(|thread| thread.tgid == Pid::UNKNOWN)
        {
            self.shown.entry(tgid).or_insert_with(|| blank(tgid));
        }
        let thread = self.shown.entry(tid).or_insert_with(|| blank(tgid));
        if thread.tgid == Pid::UNKNOWN {
            thread.tgid = tgid;
        }
        thread
    }

    /// perf's thread of the task that an event was reported by, and what to call it.
    pub(super) fn sampled(&mut self, context: &Context) -> Label {
        let tid = context.pid;
        self.shown(tid, context.tgid);
        if !self.recorded && !tid.is_idle() {
            self.see(tid, context.comm, context);
        }
        self.label_shown(tid)
    }

    /// perf's thread of a task that an event is about, made without a process if need be.
    pub(super) fn shown_object(&mut self, pid: Pid) -> &mut PerfThread {
        let tgid = if self.recorded { Pid::IDLE } else { Pid::UNKNOWN };
        self.shown.entry(pid).or_insert(PerfThread { name: None, tgid, history: History::default() })
    }

    /// What perf calls a thread.
    pub(super) fn label_shown(&self, tid: Pid) -> Label {
        if tid.is_idle() {
            return Label { comm: Comm::from("swapper"), tid, tgid: Pid::IDLE };
        }
        let number = || Comm::from(format!(":{tid}").as_str());
        if self.recorded {
            let thread = self.shown.get(&tid);
            let name = thread.and_then(|thread| thread.name);
            let tgid = thread.map(|thread| thread.tgid).filter(|&tgid| tgid != Pid::UNKNOWN);
            return Label { comm: name.unwrap_or_else(number), tid, tgid: tgid.unwrap_or(tid) };
        }
        self.by_pid
            .get(tid)
            .map_or_else(|| Label { comm: number(), tid, tgid: tid }, |index| self.label(index))
    }

    /// What a task is really called.
    pub(super) fn label(&self, index: u32) -> Label {
        let Some(task) = self.tasks.get(index as usize) else { return Label::idle() };
        let seen_as = Some(task.seen_as).filter(|seen_as| !seen_as.is_empty());
        let comm = task.name.or(seen_as).unwrap_or_else(|| Comm::from(format!(":{}", task.pid).as_str()));
        let tgid = if task.tgid == Pid::UNKNOWN { task.pid } else { task.tgid };
        Label { comm, tid: task.pid, tgid }
    }

    /// The task called `pid` now; remembers what `context` tells of it.
    pub(super) fn see(&mut self, pid: Pid, comm: Comm, context: &Context) -> u32 {
        let tgid = self.context_tgid(pid, context);
        let index = self.index(pid);
        let task = &mut self.tasks[index as usize];
        if !comm.is_empty() {
            task.seen_as = comm;
        }
        if tgid != Pid::UNKNOWN {
            task.tgid = tgid;
        }
        index
    }

    pub(super) fn task(&mut self, index: u32) -> &mut TimehistTask {
        &mut self.tasks[index as usize]
    }

    fn index(&mut self, pid: Pid) -> u32 {
        if let Some(index) = self.by_pid.get(pid) {
            return index;
        }
        let index = self.tasks.len() as u32;
        self.tasks.push(TimehistTask {
            pid,
            tgid: Pid::UNKNOWN,
            name: None,
            seen_as: Comm::default(),
            parent: None,
            history: History::default(),
            totals: StayTotals::default(),
        });
        self.by_pid.insert(pid, index);
        index
    }

    /// The trace knows a task's name.
    pub(super) fn name(&mut self, pid: Pid, tgid: Pid, comm: Comm) {
        self.shown(pid, tgid).name = Some(comm);
        let index = self.index(pid);
        let task = self.task(index);
        task.name = Some(comm);
        if tgid != Pid::UNKNOWN {
            task.tgid = tgid;
        }
    }

    /// The trace knows that a task began: a task that had its id before is another one.
    pub(super) fn start(&mut self, pid: Pid, tgid: Pid, parent: Pid) {
        self.recorded = true;
        let name = self.shown.get(&parent).and_then(|thread| thread.name);
        self.shown.insert(pid, PerfThread { name, tgid, history: History::default() });
        self.begin_life(pid, parent);
        let index = self.index(pid);
        let task = self.task(index);
        (task.name, task.tgid) = (name, tgid);
    }

    /// `sched_process_fork`: a new task, in traces that know of tasks by events alone.
    pub(super) fn fork(&mut self, child: Pid, comm: Comm, parent: Pid) {
        if self.recorded {
            return;
        }
        self.shown.remove(&child);
        self.begin_life(child, parent);
        let index = self.index(child);
        self.task(index).seen_as = comm;
    }

    fn begin_life(&mut self, pid: Pid, parent: Pid) {
        if let Some(index) = self.by_pid.get(pid)
            && self.task(index).totals.count > 0
        {
            self.by_pid.remove(pid);
        }
        let index = self.index(pid);
        self.task(index).parent = Some(parent);
        self.task(index).history = History::default();
    }

    /// perf forgets a thread at its EXIT record.
    pub(super) fn exit(&mut self, pid: Pid) {
        self.recorded = true;
        self.shown.remove(&pid);
    }
}
