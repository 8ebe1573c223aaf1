//! What a trace knows of tasks apart from its records: names and thread groups by thread id.
//!
//! A record says only which thread reported it. Must not know: records.

use std::collections::HashMap;

use fairlab_event::{Comm, Pid};

/// Name and thread group of a thread, as far as they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadEntry {
    /// Empty when not known.
    pub(crate) comm: Comm,
    /// [`Pid::UNKNOWN`] when not known.
    pub(crate) tgid: Pid,
}

impl ThreadEntry {
    const UNKNOWN: ThreadEntry = ThreadEntry { comm: Comm::from_padded([0; Comm::LEN]), tgid: Pid::UNKNOWN };

    /// A task that the trace says nothing of. The idle task of each CPU is called as ftrace calls it.
    pub(crate) fn unnamed(pid: Pid) -> ThreadEntry {
        if pid.is_idle() {
            ThreadEntry { comm: Comm::IDLE, ..ThreadEntry::UNKNOWN }
        } else {
            ThreadEntry::UNKNOWN
        }
    }
}

/// All threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadTable {
    by_pid: HashMap<i32, ThreadEntry>,
}

/// `PID_MAX_LIMIT`: no kernel gives higher ids, so garbage cannot fill memory with names.
const PID_MAX: i32 = 1 << 22;

impl ThreadTable {
    /// Takes the lines of `saved_cmdlines`: id, blank, name. Returns the tasks in the order of the lines.
    pub(crate) fn add_cmdlines(&mut self, text: &[u8]) -> Vec<(Pid, Comm)> {
        let mut found = Vec::new();
        for (pid, comm) in text.split(|&byte| byte == b'\n').filter_map(id_and_rest) {
            let comm = Comm::new(comm);
            self.set_comm(pid, comm);
            found.push((pid, comm));
        }
        found
    }

    /// Takes the lines of `saved_tgids`: thread, blank, thread group.
    pub(crate) fn add_tgids(&mut self, text: &[u8]) {
        for (pid, tgid) in text.split(|&byte| byte == b'\n').filter_map(id_and_rest) {
            if let Some((tgid, _)) = id_and_rest(tgid) {
                self.set_tgid(pid, tgid);
            }
        }
    }

    /// From now on `pid` is called `comm`; not at all when that is empty.
    pub(crate) fn set_comm(&mut self, pid: Pid, comm: Comm) {
        if let Some(task) = self.task_mut(pid) {
            task.comm = comm;
        }
    }

    /// From now on `pid` belongs to `tgid`.
    pub(crate) fn set_tgid(&mut self, pid: Pid, tgid: Pid) {
        if let Some(task) = self.task_mut(pid) {
            task.tgid = tgid;
        }
    }

    fn task_mut(&mut self, pid: Pid) -> Option<&mut ThreadEntry> {
        ThreadTable::holds(pid).then(|| self.by_pid.entry(pid.0).or_insert(ThreadEntry::unnamed(pid)))
    }

    /// Whether something can be known of `pid`.
    pub(crate) fn holds(pid: Pid) -> bool {
        (0..=PID_MAX).contains(&pid.0)
    }

    /// What is known of `pid`.
    pub(crate) fn get(&self, pid: Pid) -> ThreadEntry {
        self.by_pid.get(&pid.0).copied().unwrap_or_else(|| ThreadEntry::unnamed(pid))
    }
}

/// A number, and what follows behind one blank.
fn id_and_rest(line: &[u8]) -> Option<(Pid, &[u8])> {
    let line = line.trim_ascii_start();
    let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = line.split_at(digits);
    let number = std::str::from_utf8(number).ok()?.parse().ok()?;
    Some((Pid(number), rest.strip_prefix(b" ").unwrap_or(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_tables_are_read() {
        let mut tasks = ThreadTable::default();
        let found =
            tasks.add_cmdlines(b"15487 bash\n16 opt cgu.14\n\nx y\n99999999999 z\n9999999 much\n7  a\n8");
        assert_eq!(found.len(), 5);
        tasks.add_tgids(b"16 15\n  7 6\n8\nx");
        let task = |pid| {
            let task = tasks.get(Pid(pid));
            (task.comm.to_str().into_owned(), task.tgid.0)
        };
        assert_eq!(task(15487), ("bash".to_string(), -1));
        assert_eq!(task(16), ("opt cgu.14".to_string(), 15));
        assert_eq!(task(7), (" a".to_string(), 6));
        assert_eq!(task(8), (String::new(), -1));
        assert_eq!(task(9_999_999), (String::new(), -1));
        assert_eq!(task(-1), (String::new(), -1));
        assert_eq!(task(0), ("<idle>".to_string(), -1));
    }

    #[test]
    fn the_idle_task_may_have_another_name() {
        let mut tasks = ThreadTable::default();
        tasks.set_comm(Pid(0), Comm::from("swapper"));
        assert_eq!(tasks.get(Pid(0)).comm, Comm::from("swapper"));
    }
}
