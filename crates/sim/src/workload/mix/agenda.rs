//! What is done to workloads and groups, and when.
//!
//! Must not know: how it is done.

use fairlab_event::Ns;
use fairlab_kernel::CpuMask;

use super::member::MixMember;
use crate::workload::cgroup::GroupFile;

/// Something that the launcher does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LauncherAction {
    /// Writes to a file of a group.
    Write { group: usize, file: GroupFile },
    /// Starts a workload.
    Start(usize),
    /// Puts a workload's threads into a group; `None`: the root.
    Move { member: usize, group: Option<usize> },
    /// Ends a workload's threads.
    Stop(usize),
}

/// What is still to do, by time from the beginning.
#[derive(Debug)]
pub(super) struct Agenda {
    begin: Option<Ns>,
    /// The next one last.
    left: Vec<(Ns, LauncherAction)>,
}

impl Agenda {
    /// Starts and stops of `members`, and other events. What comes at one time comes in this order: writes and moves as the file
    /// has them, starts, stops.
    pub fn new(members: &[MixMember], events: Vec<(Ns, LauncherAction)>) -> Agenda {
        let mut left = events;
        left.extend(
            members.iter().enumerate().map(|(number, member)| (member.start, LauncherAction::Start(number))),
        );
        let stops = members
            .iter()
            .enumerate()
            .filter_map(|(number, member)| member.stop.map(|stop| (stop, LauncherAction::Stop(number))));
        left.extend(stops);
        left.sort_by_key(|&(time, _)| time);
        left.reverse();
        Agenda { begin: None, left }
    }

    /// What is due, or for how long nothing is; `None`: nothing is left. The beginning is when it is first asked.
    pub fn next(&mut self, now: Ns) -> Option<Result<LauncherAction, Ns>> {
        let begin = *self.begin.get_or_insert(now);
        let &(time, deed) = self.left.last()?;
        let left = (begin + time).since(now);
        if left > Ns::ZERO {
            return Some(Err(left));
        }
        self.left.pop();
        Some(Ok(deed))
    }

    /// Whether groups are changed on the way.
    pub fn changes_groups(&self) -> bool {
        self.left
            .iter()
            .any(|(_, deed)| matches!(deed, LauncherAction::Write { .. } | LauncherAction::Move { .. }))
    }

    /// What is written to groups' files.
    pub fn group_writes(&self) -> impl Iterator<Item = (usize, GroupFile)> {
        self.left.iter().filter_map(|(_, deed)| match deed {
            LauncherAction::Write { group, file } => Some((*group, *file)),
            _ => None,
        })
    }

    /// CPUs that are written to groups' files.
    pub fn named_cpus(&self) -> CpuMask {
        let cpus = self.group_writes().filter_map(|(_, file)| match file {
            GroupFile::Cpus(cpus) => cpus,
            _ => None,
        });
        cpus.fold(CpuMask::EMPTY, |all, cpus| all.or(&cpus))
    }
}
