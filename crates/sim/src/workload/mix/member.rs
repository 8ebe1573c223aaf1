//! One of the workloads of a mix: its threads and groups by the numbers that they have in the mix, and how far it is.
//!
//! Must not know: the other workloads.

use std::collections::BTreeMap;

use fairlab_event::Ns;
use fairlab_kernel::{CpuMask, Policy};

use super::NOBODY;
use super::place::MemberPlace;
use crate::workload::cgroup::GroupSpec;
use crate::workload::{Action, MemberProgress, ThreadId, ThreadSpec, Workload};

/// A workload as a file or a command line says it.
pub(super) struct MixEntry {
    pub name: String,
    /// Its command line, or what it is.
    pub says: String,
    pub place: MemberPlace,
    /// The group of its place; `None`: the root.
    pub group: Option<usize>,
    /// It begins a session whose autogroup has this nice level.
    pub session: Option<i32>,
    pub start: Ns,
    pub stop: Option<Ns>,
    pub workload: Box<dyn Workload>,
}

/// A workload of a mix.
pub(super) struct MixMember {
    pub name: String,
    says: String,
    place: MemberPlace,
    /// The group that it starts in; `None`: the root.
    pub group: Option<usize>,
    session: Option<i32>,
    pub start: Ns,
    pub stop: Option<Ns>,
    pub workload: Box<dyn Workload>,
    /// Its own groups' numbers in the mix.
    groups: Vec<usize>,
    /// Its threads that have not ended: their numbers in the mix, and whether each has said first what it asks for.
    threads: BTreeMap<ThreadId, (ThreadId, bool)>,
    /// Words that its threads spin on, as the mix numbers them.
    pub words: BTreeMap<u32, u32>,
    /// How many threads there have been.
    created: u32,
    pub started: Option<Ns>,
    pub ended: Option<Ns>,
    /// It has been told to stop.
    pub stopped: bool,
}

impl MixMember {
    /// The workload among `groups`, to which its own are added: a name that begins with `/` is a path, as in a file; others lie
    /// in its place.
    pub fn new(entry: MixEntry, groups: &mut Vec<GroupSpec>) -> MixMember {
        let MixEntry { name, says, place, group, session, start, stop, workload } = entry;
        let own = workload.groups();
        let mut numbers: Vec<usize> = Vec::new();
        for spec in &own {
            let parent = spec.parent.and_then(|parent| numbers.get(parent).copied());
            numbers.push(add_group(groups, spec, &own, parent, group, &name));
        }
        MixMember {
            name,
            says,
            place,
            group,
            session,
            start,
            stop,
            workload,
            groups: numbers,
            threads: BTreeMap::new(),
            words: BTreeMap::new(),
            created: 0,
            started: None,
            ended: None,
            stopped: false,
        }
    }

    /// Its next thread is `outer` in the mix. Returns its own number for it, and what it is like there.
    pub fn create(&mut self, outer: ThreadId, mut spec: ThreadSpec) -> (ThreadId, ThreadSpec) {
        let inner = ThreadId(self.created);
        self.created += 1;
        self.threads.insert(inner, (outer, spec.kthread));
        let is_main = inner == ThreadId::MAIN;
        let group = match spec.group {
            Some(group) => self.group_of(group),
            None if is_main => self.group,
            None => None,
        };
        let stream = format!("{}/{}", self.name, spec.stream);
        let session = self.session.filter(|_| is_main);
        spec = ThreadSpec { group, stream, session, process: is_main, ..spec };
        (inner, if spec.kthread { spec } else { self.placed(spec) })
    }

    /// What a thread asks for itself goes before what its workload's place gives it.
    fn placed(&self, spec: ThreadSpec) -> ThreadSpec {
        ThreadSpec {
            nice: if spec.nice == 0 { self.place.nice.unwrap_or(0) } else { spec.nice },
            policy: if spec.policy == Policy::Normal {
                self.place.policy.unwrap_or_default()
            } else {
                spec.policy
            },
            allowed: match self.place.cpus {
                Some(cpus) if spec.allowed == CpuMask::ALL => cpus,
                _ => spec.allowed,
            },
            ..spec
        }
    }

    /// What a thread asks for before anything else: the slice of its place.
    pub fn asks_first(&mut self, inner: ThreadId) -> Option<Action> {
        let request = Some(self.place.slice?);
        let (_, has_asked) = self.threads.get_mut(&inner)?;
        if std::mem::replace(has_asked, true) {
            return None;
        }
        Some(Action::SetScheduler { policy: None, nice: None, request, allowed: None })
    }

    /// A thread has ended. Returns whether it was the last one.
    pub fn end(&mut self, inner: ThreadId, now: Ns) -> bool {
        self.threads.remove(&inner);
        if self.threads.is_empty() {
            self.ended = Some(now);
        }
        self.threads.is_empty()
    }

    /// One of its threads as the mix numbers them.
    pub fn outer(&self, inner: ThreadId) -> ThreadId {
        self.threads.get(&inner).map_or(NOBODY, |&(outer, _)| outer)
    }

    /// One of its groups as the mix numbers them.
    pub fn group_of(&self, group: usize) -> Option<usize> {
        self.groups.get(group).copied()
    }

    /// Whether its place has a real-time policy.
    pub fn is_real_time(&self) -> bool {
        self.place.policy.is_some_and(Policy::is_rt)
    }

    /// Whether a thread of it may get a policy, a nice level or a slice of its own.
    pub fn sets_scheduling(&self) -> bool {
        let MemberPlace { policy, nice, slice, .. } = &self.place;
        policy.is_some() || nice.is_some() || slice.is_some() || self.workload.sets_scheduling()
    }

    /// Every CPU that it names.
    pub fn named_cpus(&self) -> CpuMask {
        self.workload.named_cpus().or(&self.place.cpus.unwrap_or(CpuMask::EMPTY))
    }

    /// How far it is; `None` before its start, and where it counts nothing.
    pub fn progress(&self) -> Option<MemberProgress<'_>> {
        let (_, count) = self.workload.progress()?;
        let started = self.started?;
        let since = self.workload.settled().map_or(started, |settled| settled.max(started));
        let last = self.workload.counted_at();
        Some(MemberProgress { name: &self.name, count, since, until: self.ended, last })
    }

    /// When it ends by itself or is stopped, from the mix's beginning on.
    pub fn runtime(&self) -> Option<Ns> {
        let by_itself = self.workload.runtime().map(|runtime| self.start + runtime);
        match (by_itself, self.stop) {
            (Some(end), Some(stop)) => Some(end.min(stop)),
            (end, stop) => end.or(stop),
        }
    }

    /// What it would have printed, under its name.
    pub fn output(&self, now: Ns) -> String {
        let heading = format!("── {}: {}\n", self.name, self.says);
        if self.started.is_none() {
            return format!("{heading}it has not begun\n");
        }
        let mut text = heading + &self.workload.output(self.ended.unwrap_or(now));
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text
    }
}

/// Finds or makes the group that one of a workload's own is in the mix.
fn add_group(
    groups: &mut Vec<GroupSpec>,
    spec: &GroupSpec,
    own: &[GroupSpec],
    parent: Option<usize>,
    place: Option<usize>,
    member: &str,
) -> usize {
    let is_path = spec.name.starts_with('/') && parent.is_none();
    let above = if is_path { None } else { parent.or(place) };
    let folder = if is_path { spec.name.clone() } else { format!("/{}", spec.folder(own)) };
    let path_of = |folder: &str| above.map_or(String::new(), |above| groups[above].name.clone()) + folder;
    let find = |path: &str| groups.iter().position(|known| known.name == path);
    let mut path = path_of(&folder);
    // A path is one group for all who name it; another name is the workload's own.
    let shared = own.iter().any(|top| top.name.starts_with('/') && spec.name.starts_with(&top.name));
    match find(&path) {
        Some(known) if shared => return known,
        Some(_) => path = path_of(&format!("/{member}-{}", spec.folder(own))),
        None => {}
    }
    let parent = above;
    groups.push(GroupSpec { name: path, parent, ..spec.clone() });
    groups.len() - 1
}
