//! Several workloads that run side by side, each in its place: a control group, a policy, a nice level, a slice, CPUs, a time.
//!
//! The main thread is a launcher, which starts each workload at its time, stops it, moves it, and writes to groups' files as an
//! administrator does at a shell. A workload's threads draw from streams of their own names, so that its course does not hang on
//! what runs beside it, but for what the scheduler makes of both.
//!
//! Must not know: what the workloads do, how files are had.

mod agenda;
mod changed_keys;
mod command;
mod containers;
mod file;
mod lines;
mod member;
pub mod place;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use fairlab_event::Ns;
use fairlab_kernel::{CpuMask, Policy};

use crate::workload::administration::Administration;
use crate::workload::cgroup::{GroupFile, GroupSpec};
use crate::workload::{Action, MemberProgress, ThreadId, ThreadSpec, View, Workload};
use agenda::{Agenda, LauncherAction};
use member::MixMember;

pub use command::{USAGE, beside, headline_command, parse};

/// No thread has this number.
const NOBODY: ThreadId = ThreadId(u32::MAX);

/// Workloads side by side, ready to run.
pub struct Mix {
    /// All groups: the mix's own, then those of workloads.
    groups: Vec<GroupSpec>,
    members: Vec<MixMember>,
    /// The workload that the mix is run for.
    first: usize,
    /// The mix ends with that workload; otherwise when all have ended.
    ends_with_first: bool,
    agenda: Agenda,
    /// Whose each thread is, by its number; the launcher's is nobody's.
    owners: Vec<Option<u16>>,
    /// Whose each word is that threads spin on, and which of its own.
    words: Vec<(usize, u32)>,
    /// Threads that have not ended, and which of their workload's they are.
    alive: BTreeMap<ThreadId, ThreadId>,
    launcher_ended: bool,
    over: bool,
}

impl Mix {
    /// What a file or a command line says.
    fn new(plan: file::MixPlan) -> Mix {
        let mut groups = plan.groups;
        let mut members = Vec::new();
        for entry in plan.entries {
            members.push(MixMember::new(entry, &mut groups));
        }
        let main = plan.main;
        Mix {
            agenda: Agenda::new(&members, plan.events),
            groups,
            members,
            first: main.unwrap_or(0),
            ends_with_first: main.is_some(),
            owners: vec![None],
            words: Vec::new(),
            alive: BTreeMap::new(),
            launcher_ended: false,
            over: false,
        }
    }

    /// Whose thread it is.
    fn owner(&self, thread: ThreadId) -> Option<usize> {
        self.owners.get(thread.index()).copied().flatten().map(usize::from)
    }

    /// The launcher does what is due, and sleeps until more is.
    fn launch(&mut self, now: Ns) -> Action {
        while !self.over {
            let deed = match self.agenda.next(now) {
                None => break,
                Some(Err(left)) => return Action::Sleep(left),
                Some(Ok(deed)) => deed,
            };
            if let Some(action) = self.carry_out(deed, now) {
                return action;
            }
        }
        self.launcher_ended = true;
        Action::Exit
    }

    /// One thing of the agenda; `None` where there is nobody to whom it is done.
    fn carry_out(&mut self, deed: LauncherAction, now: Ns) -> Option<Action> {
        match deed {
            LauncherAction::Start(member) => {
                self.members[member].started = Some(now);
                let spec = self.members[member].workload.main_thread();
                Some(self.create(member, spec))
            }
            LauncherAction::Stop(member) => {
                let threads = self.threads_of(member);
                self.members[member].stopped = true;
                (!threads.is_empty()).then(|| administer(Administration::Kill(threads)))
            }
            LauncherAction::Move { member, group } => {
                self.members[member].group = group;
                let threads = self.threads_of(member);
                (!threads.is_empty()).then(|| administer(Administration::Move { threads, group }))
            }
            LauncherAction::Write { group, file } => Some(administer(Administration::Write { group, file })),
        }
    }

    fn threads_of(&self, member: usize) -> Vec<ThreadId> {
        self.alive.keys().copied().filter(|&thread| self.owner(thread) == Some(member)).collect()
    }

    /// A thread of a workload comes to be.
    fn create(&mut self, member: usize, spec: ThreadSpec) -> Action {
        let outer = ThreadId(self.owners.len() as u32);
        self.owners.push(Some(member as u16));
        let known = &mut self.members[member];
        let (inner, spec) = known.create(outer, spec);
        self.alive.insert(outer, inner);
        Action::Spawn(spec)
    }

    /// A thread of a workload ends. The last one of all, or of the workload with which the mix ends, ends the others first.
    fn end(&mut self, thread: ThreadId, member: usize, now: Ns) -> Action {
        let Some(inner) = self.alive.remove(&thread) else { return Action::Exit };
        if !self.members[member].end(inner, now) {
            return Action::Exit;
        }
        let all = self.members.iter().all(|member| member.ended.is_some());
        let ends_all = self.ends_with_first && member == self.first;
        if !(all || ends_all) {
            return Action::Exit;
        }
        self.over = true;
        let launcher = (!self.launcher_ended).then_some(ThreadId::MAIN);
        let others = launcher.into_iter().chain(self.alive.keys().copied()).collect::<Vec<_>>();
        if others.is_empty() { Action::Exit } else { administer(Administration::Kill(others)) }
    }

    /// What a workload's thread does, with the numbers that threads and groups have here.
    fn outside(&mut self, member: usize, thread: ThreadId, action: Action, now: Ns) -> Action {
        let known = &self.members[member];
        match action {
            Action::Spawn(spec) => self.create(member, spec),
            Action::Exit => self.end(thread, member, now),
            Action::Wake(whom) => Action::Wake(known.outer(whom)),
            Action::WakeSync(whom) => Action::WakeSync(known.outer(whom)),
            Action::SpinOn { word, most } => Action::SpinOn { word: self.word(member, word), most },
            Action::Release { word, most } => Action::Release { word: self.word(member, word), most },
            Action::EnterGroup(group) => known.group_of(group).map_or(Action::LeaveGroup, Action::EnterGroup),
            Action::Administer(order) => {
                let group = |group: usize| known.group_of(group).unwrap_or(usize::MAX);
                administer(order.outside(|thread| known.outer(thread), group, None))
            }
            action => action,
        }
    }

    /// A word of a workload's as the mix numbers them.
    fn word(&mut self, member: usize, inner: u32) -> u32 {
        let next = self.words.len() as u32;
        let outer = *self.members[member].words.entry(inner).or_insert(next);
        if outer == next {
            self.words.push((member, inner));
        }
        outer
    }

    /// Workloads from the start on: these settle.
    fn started_at_once(&self) -> impl Iterator<Item = &MixMember> {
        self.members.iter().filter(|member| member.start == Ns::ZERO)
    }
}

fn administer(order: Administration) -> Action {
    Action::Administer(Box::new(order))
}

impl Workload for Mix {
    fn begin_on(&mut self, cpus: &CpuMask) {
        self.members.iter_mut().for_each(|member| member.workload.begin_on(cpus));
    }

    fn groups(&self) -> Vec<GroupSpec> {
        self.groups.clone()
    }

    fn group_writes(&self) -> Vec<(usize, GroupFile)> {
        let of_member = |member: &MixMember| {
            let writes = member.workload.group_writes().into_iter();
            writes.filter_map(|(group, file)| Some((member.group_of(group)?, file))).collect::<Vec<_>>()
        };
        self.agenda.group_writes().chain(self.members.iter().flat_map(of_member)).collect()
    }

    fn named_cpus(&self) -> CpuMask {
        let of_members = self.members.iter().map(MixMember::named_cpus);
        let of_groups =
            self.groups.iter().filter_map(|group| group.cpus).filter(|cpus| *cpus != CpuMask::ALL);
        let written = self.agenda.named_cpus();
        of_members.chain(of_groups).fold(written, |all, cpus| all.or(&cpus))
    }

    fn main_thread(&self) -> ThreadSpec {
        // Whoever is to keep his times beside real-time tasks is one himself.
        let real_time = self.members.iter().any(MixMember::is_real_time);
        let policy = if real_time { Policy::Fifo(99) } else { Policy::Normal };
        ThreadSpec { policy, ..ThreadSpec::new("mix", "mix") }
    }

    fn next(&mut self, thread: ThreadId, view: &mut View<'_>) -> Action {
        if thread == ThreadId::MAIN {
            return self.launch(view.now);
        }
        let (Some(member), Some(&inner)) = (self.owner(thread), self.alive.get(&thread)) else {
            return Action::Exit;
        };
        if self.over || self.members[member].stopped {
            return self.end(thread, member, view.now);
        }
        if let Some(asks) = self.members[member].asks_first(inner) {
            return asks;
        }
        let action = self.members[member].workload.next(inner, view);
        self.outside(member, thread, action, view.now)
    }

    fn must_wait(&self, thread: ThreadId) -> bool {
        let (Some(member), Some(&inner)) = (self.owner(thread), self.alive.get(&thread)) else {
            return false;
        };
        let member = &self.members[member];
        !self.over && !member.stopped && member.workload.must_wait(inner)
    }

    fn system_call_done(&mut self, thread: ThreadId) -> Option<ThreadId> {
        let (member, inner) = (self.owner(thread)?, *self.alive.get(&thread)?);
        let known = &mut self.members[member];
        if self.over || known.stopped {
            return None;
        }
        known.workload.system_call_done(inner).map(|whom| known.outer(whom))
    }

    fn spun(&mut self, word: u32, time: Ns) {
        if let Some(&(member, inner)) = self.words.get(word as usize) {
            self.members[member].workload.spun(inner, time);
        }
    }

    /// One that is to end sees whatever it spins for.
    fn sees(&mut self, thread: ThreadId, word: u32) -> bool {
        let (Some(&(member, word)), Some(&inner)) = (self.words.get(word as usize), self.alive.get(&thread))
        else {
            return true;
        };
        let known = &mut self.members[member];
        self.over || known.stopped || known.workload.sees(inner, word)
    }

    fn member(&self, thread: ThreadId) -> Option<&str> {
        let member = &self.members[self.owner(thread)?];
        let nested = self.alive.get(&thread).and_then(|&inner| member.workload.member(inner));
        Some(nested.unwrap_or(&member.name))
    }

    fn sets_scheduling(&self) -> bool {
        self.agenda.changes_groups() || self.members.iter().any(MixMember::sets_scheduling)
    }

    fn needs_kernel_threads(&self) -> bool {
        self.members.iter().any(|member| member.workload.needs_kernel_threads())
    }

    fn problem(&self) -> Option<String> {
        self.members
            .iter()
            .find_map(|member| member.workload.problem().map(|problem| format!("{}: {problem}", member.name)))
    }

    fn settle(&mut self, length: Ns) {
        let early = self.members.iter_mut().filter(|member| member.start == Ns::ZERO);
        early.for_each(|member| member.workload.settle(length));
    }

    /// When all have settled that begin at the start; of one that has ended nothing more is to come.
    fn settled(&self) -> Option<Ns> {
        let at_work = self.started_at_once().filter(|member| member.ended.is_none());
        at_work
            .map(|member| member.workload.settled())
            .try_fold(Ns::ZERO, |last, settled| Some(last.max(settled?)))
    }

    fn output(&self, now: Ns) -> String {
        self.members.iter().map(|member| member.output(now)).collect()
    }

    fn members(&self) -> Vec<MemberProgress<'_>> {
        if self.members.len() == 1 {
            return Vec::new();
        }
        self.members.iter().filter_map(MixMember::progress).collect()
    }

    /// That of the workload that the mix is run for.
    fn progress(&self) -> Option<(&'static str, u64)> {
        self.members.get(self.first)?.workload.progress()
    }

    fn counted_at(&self) -> Option<Ns> {
        self.members.get(self.first)?.workload.counted_at()
    }

    /// Those of the first workload as they are, and of each with its name before them; a mix of one is that workload.
    fn metrics(&self) -> Vec<(String, f64)> {
        let own: Vec<_> =
            self.members.get(self.first).map(|member| member.workload.metrics()).unwrap_or_default();
        if self.members.len() == 1 {
            return own;
        }
        let named = self.members.iter().flat_map(|member| {
            let metrics = member.workload.metrics().into_iter();
            metrics.map(|(name, value)| (format!("{} {name}", member.name), value))
        });
        own.into_iter().chain(named).collect()
    }

    fn runtime(&self) -> Option<Ns> {
        if self.ends_with_first {
            return self.members.get(self.first)?.runtime();
        }
        self.members.iter().map(MixMember::runtime).try_fold(Ns::ZERO, |last, end| Some(last.max(end?)))
    }
}
