//! What an administrator does while workloads run: moves of threads, writes to groups' files, signals.
//!
//! Must not know: why it is done.

use super::ThreadId;
use super::cgroup::GroupFile;

/// Something done to threads and control groups of one workload.
#[derive(Clone, Debug, PartialEq)]
pub enum Administration {
    /// Puts threads into a control group, by its index among the workload's (`cgroup.procs`); `None`: into the root group.
    Move {
        /// Who is moved.
        threads: Vec<ThreadId>,
        /// Whereto.
        group: Option<usize>,
    },
    /// Writes to a file of a control group.
    Write {
        /// Whose, by its index among the workload's.
        group: usize,
        /// What is written.
        file: GroupFile,
    },
    /// Ends threads (`SIGKILL`): who computes or sleeps does so no more, who waits for a device ends when that is done. The
    /// workload gives [`Action::Exit`](super::Action::Exit) when it is asked what they do next.
    Kill(Vec<ThreadId>),
}

impl Administration {
    /// With the numbers that threads and groups have in a workload around this one; the root group is `root` there.
    pub fn outside(
        self,
        thread: impl Fn(ThreadId) -> ThreadId,
        group: impl Fn(usize) -> usize,
        root: Option<usize>,
    ) -> Administration {
        let renamed = |threads: Vec<ThreadId>| threads.into_iter().map(&thread).collect();
        match self {
            Administration::Move { threads, group: to } => Administration::Move {
                threads: renamed(threads),
                group: to.map_or(root, |to| Some(group(to))),
            },
            Administration::Write { group: of, file } => Administration::Write { group: group(of), file },
            Administration::Kill(threads) => Administration::Kill(renamed(threads)),
        }
    }
}
