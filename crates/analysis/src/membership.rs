//! Which control group each task is in, as far as a trace tells.
//!
//! Must not know: what groups are for.

use std::collections::BTreeMap;

use fairlab_event::{Event, EventKind, GenericValue, Pid, System, TextFields, UntypedTracepoint};

use crate::pid_map::PidMap;

/// The groups of tasks, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Membership {
    group_of: PidMap<u32>,
    paths: Vec<String>,
    by_id: BTreeMap<u64, u32>,
}

impl Membership {
    /// Takes the groups that there were, and which tasks were in them.
    pub(crate) fn system(&mut self, system: &System) {
        for group in system.control_groups() {
            let path = self.number(group.path);
            self.by_id.insert(group.id, path);
        }
        for (pid, path) in &system.members {
            let path = self.number(path);
            self.group_of.insert(*pid, path);
        }
    }

    /// Takes what an event tells of groups; gives the task that it puts into another.
    pub(crate) fn hear(&mut self, event: &Event<'_>) -> Option<Pid> {
        let EventKind::Other { name, fields } = &event.kind else { return None };
        match UntypedTracepoint::by_name(name) {
            Some(UntypedTracepoint::CgroupAttachTask) => self.attached(fields),
            Some(UntypedTracepoint::CgroupMkdir) => {
                if let (Some(id), Some(GenericValue::Text(path))) =
                    (fields.unsigned("id"), fields.get("path"))
                {
                    let path = self.number(path);
                    self.by_id.insert(id, path);
                }
                None
            }
            _ => None,
        }
    }

    /// A new task begins in its parent's group.
    pub(crate) fn forked(&mut self, parent: Pid, child: Pid) {
        match self.group_of.get(&parent).copied() {
            Some(group) => drop(self.group_of.insert(child, group)),
            None => self.ended(child),
        }
    }

    /// A task is gone.
    pub(crate) fn ended(&mut self, pid: Pid) {
        self.group_of.remove(&pid);
    }

    /// The number of a task's group.
    pub(crate) fn of(&self, pid: Pid) -> Option<u32> {
        self.group_of.get(&pid).copied()
    }

    /// The path of a group by its number; empty: unknown.
    pub(crate) fn path(&self, group: Option<u32>) -> &str {
        group.and_then(|group| self.paths.get(group as usize)).map_or("", String::as_str)
    }

    /// The paths of all groups that were heard of.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    fn attached(&mut self, fields: &TextFields<'_>) -> Option<Pid> {
        let pid = fields.signed("pid").and_then(|pid| i32::try_from(pid).ok()).map(Pid)?;
        let group = match fields.get("dst_path") {
            Some(GenericValue::Text(path)) => Some(self.number(path)),
            _ => fields.unsigned("dst_id").and_then(|id| self.by_id.get(&id).copied()),
        }?;
        self.group_of.insert(pid, group);
        Some(pid)
    }

    fn number(&mut self, path: &str) -> u32 {
        let place = self.paths.iter().position(|known| known == path);
        place.unwrap_or_else(|| {
            self.paths.push(path.to_string());
            self.paths.len() - 1
        }) as u32
    }
}

/// The path of a group and of each above it but the root, the highest first.
pub(crate) fn and_above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at]).chain([path]).filter(|path| path.len() > 1)
}
