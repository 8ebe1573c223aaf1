//! Which groups are throttled on which CPU because their quota (`cpu.max`) is used up, and which tasks are theirs.
//!
//! Sources: `throttle_cfs_rq` and `unthrottle_cfs_rq`, from the model or from probes of a real kernel; `cgroup_mkdir`,
//! `cgroup_attach_task` and forks. Probes of queues show which entity is on which queue. If a trace has none of these probes but
//! the quotas are known, `concluded` infers throttling.
//!
//! Must not know: waits, queues, running tasks.

mod budget;
mod concluded;

use std::collections::BTreeMap;

use fairlab_event::{
    ControlGroup, Cpu, Event, EventKind, GenericValue, GroupLimit, Ns, Origin, Pid, System, TextFields,
    UntypedTracepoint,
};

use crate::pid_map::PidMap;

/// Follows groups and their throttling.
#[derive(Clone, Debug, Default)]
pub(crate) struct Throttling {
    groups: Vec<ThrottlingGroup>,
    by_id: BTreeMap<u64, u32>,
    /// Whose queue is at an address.
    by_queue: BTreeMap<u64, u32>,
    of_task: PidMap<u32>,
    /// Tasks leave one by one (from v6.18): a task that gets the CPU says nothing of its group.
    leaves_by_task: bool,
    /// How often a group was throttled on a CPU, and for how long in all, as far as that is over.
    count: u64,
    time: Ns,
    is_shown: bool,
    /// A model's trace with quotas: each throttling has its event.
    shows_all: bool,
    conclusions: concluded::QuotaConclusions,
    /// What the latest event meant.
    changes: Vec<ThrottleChange>,
}

/// A group of tasks, as far as the trace tells.
#[derive(Clone, Debug, Default)]
struct ThrottlingGroup {
    id: u64,
    path: Option<String>,
    parent: Option<u32>,
    limit: Option<GroupLimit>,
    cpus: Vec<ThrottlingCpu>,
    /// On how many CPUs it, or a group above it, is throttled, since when on one, and for how long it was before.
    throttled_cpus: u32,
    some_since: Ns,
    some_time: Ns,
}

impl ThrottlingGroup {
    /// It is throttled on one CPU more.
    fn enters(&mut self, now: Ns) {
        self.throttled_cpus += 1;
        if self.throttled_cpus == 1 {
            self.some_since = now;
        }
    }

    /// It is throttled on one CPU less.
    fn leaves(&mut self, now: Ns, counts: bool) {
        self.throttled_cpus = self.throttled_cpus.saturating_sub(1);
        if self.throttled_cpus == 0 && counts {
            self.some_time = self.some_time.saturating_add(now.since(self.some_since));
        }
    }
}

/// For how long a group, or one above it, was throttled.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThrottledTime {
    /// Each CPU by itself.
    pub each_cpu: Ns,
    /// On any CPU.
    pub some_cpu: Ns,
    /// The group's own quota.
    pub limit: Option<GroupLimit>,
}

impl ThrottledTime {
    /// The run time that the group's own quota allows in some time, however its periods lie.
    pub(crate) fn quota_in(&self, time: Ns) -> Option<Ns> {
        let GroupLimit { quota, period, .. } = self.limit?;
        let allowed = u128::from(time.0) * u128::from(quota.0) / u128::from(period.0.max(1));
        Some(Ns(u64::try_from(allowed).unwrap_or(u64::MAX)))
    }
}

/// A group on a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct ThrottlingCpu {
    /// Since when the group itself is throttled.
    since: Option<Ns>,
    /// Since when it was, had not a task of it got the CPU.
    doubted: Option<Ns>,
    /// How many are throttled of it and the groups above it, since when one is, and how long one was before.
    throttled: u32,
    any_since: Ns,
    any_time: Ns,
}

/// What an event meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ThrottleChange {
    /// Nothing that changes what is throttled.
    #[default]
    No,
    /// Groups on this CPU are throttled, or are back: the tasks that wait there are looked at.
    Changed(Cpu),
    /// As `Changed`, and this group was throttled there from `since` to `to`.
    Back { group: u32, cpu: Cpu, since: Ns, to: Ns },
}

impl ThrottleChange {
    /// The CPU that it is about.
    pub(crate) const fn cpu(self) -> Option<Cpu> {
        match self {
            ThrottleChange::No => None,
            ThrottleChange::Changed(cpu) | ThrottleChange::Back { cpu, .. } => Some(cpu),
        }
    }
}

impl Throttling {
    /// Takes what is known of the kernel.
    pub(crate) fn system(&mut self, system: &System) {
        let mut numbers = system.release.split(|char: char| !char.is_ascii_digit()).map(str::parse::<u32>);
        if let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) {
            self.leaves_by_task = (major, minor) >= (6, 18);
            self.conclusions.slices_expire = (major, minor) < (5, 4);
        }
        for group in system.control_groups() {
            self.shows_all |= group.limit.is_some() && system.origin == Origin::Modelled.name();
            self.told(group);
        }
        for (pid, path) in &system.members {
            if let Some(group) = self.groups.iter().position(|group| group.path.as_ref() == Some(path)) {
                self.of_task.insert(*pid, group as u32);
            }
        }
    }

    /// A group that was there before the events, and its quota.
    fn told(&mut self, told: ControlGroup<'_>) {
        let index = self.group(told.id);
        self.is_at(index, told.path);
        self.groups[index as usize].limit = told.limit.filter(|limit| limit.period > Ns::ZERO);
        if let Some(limit) = told.limit {
            self.conclusions.limit(index, limit);
        }
    }

    /// Takes an event.
    #[inline]
    pub(crate) fn event(&mut self, event: &Event<'_>) -> &[ThrottleChange] {
        self.changes.clear();
        let is_told = matches!(
            event.kind,
            EventKind::Other { .. } | EventKind::Kprobe { .. } | EventKind::SchedProcessFork { .. }
        );
        // Most runs have no quota, and this stands in the path of all their events.
        if is_told || self.tells() || !self.conclusions.is_empty() {
            self.follow(event);
        }
        &self.changes
    }

    fn follow(&mut self, event: &Event<'_>) {
        if !self.is_shown && !self.conclusions.is_empty() {
            self.conclude(event);
        }
        let change = self.told_by(event);
        if change != ThrottleChange::No {
            self.changes.push(change);
        }
    }

    /// What the latest event meant.
    pub(crate) fn changes(&self) -> &[ThrottleChange] {
        &self.changes
    }

    fn told_by(&mut self, event: &Event<'_>) -> ThrottleChange {
        match event.kind {
            EventKind::Other { name, fields } => self.text(name, fields, event),
            EventKind::Kprobe { fields, .. } => {
                let text = fields.text();
                let place = text.strip_prefix('(').and_then(|text| text.split(['+', ')']).next());
                self.text(place.unwrap_or(""), fields, event)
            }
            EventKind::SchedProcessFork { pid, child_pid, .. } => {
                match self.of_task.get(&pid).copied() {
                    Some(group) => drop(self.of_task.insert(child_pid, group)),
                    None => drop(self.of_task.remove(&child_pid)),
                }
                ThrottleChange::No
            }
            EventKind::SchedSwitch(switch) if self.tells() => {
                self.runs_after_all(switch.next_pid, event.cpu, event.time)
            }
            _ => ThrottleChange::No,
        }
    }

    fn text(&mut self, name: &str, fields: TextFields<'_>, event: &Event<'_>) -> ThrottleChange {
        if let Some(told @ (UntypedTracepoint::CgroupMkdir | UntypedTracepoint::CgroupAttachTask)) =
            UntypedTracepoint::by_name(name)
        {
            self.listed(told, fields);
            return ThrottleChange::No;
        }
        match name {
            "throttle_cfs_rq" => self.throttle(fields, event),
            "unthrottle_cfs_rq" => self.unthrottle(fields, event),
            "enqueue_entity" | "place_entity" | "set_next_entity" => {
                self.queued(fields);
                ThrottleChange::No
            }
            _ => ThrottleChange::No,
        }
    }

    fn group(&mut self, id: u64) -> u32 {
        let next = self.groups.len() as u32;
        let index = *self.by_id.entry(id).or_insert(next);
        if index == next {
            self.groups.push(ThrottlingGroup { id, ..ThrottlingGroup::default() });
        }
        index
    }

    fn listed(&mut self, event: UntypedTracepoint, fields: TextFields<'_>) {
        let of_task = event == UntypedTracepoint::CgroupAttachTask;
        let (id, path) = if of_task { ("dst_id", "dst_path") } else { ("id", "path") };
        let Some(id) = fields.unsigned(id) else { return };
        let index = self.group(id);
        if let Some(GenericValue::Text(path)) = fields.get(path) {
            self.is_at(index, path);
        }
        if let Some(pid) = fields.signed("pid").filter(|_| of_task) {
            self.of_task.insert(Pid(i32::try_from(pid).unwrap_or(-1)), index);
        }
    }

    fn is_at(&mut self, index: u32, path: &str) {
        let above = path.rsplit_once('/').map(|(above, _)| above).filter(|above| !above.is_empty());
        let parent = above.and_then(|above| {
            let place = self.groups.iter().position(|group| group.path.as_deref() == Some(above));
            place.map(|place| place as u32)
        });
        self.groups[index as usize].path = Some(path.to_string());
        self.groups[index as usize].parent = parent;
    }

    /// A probe of a queue (`cf`, of group `cg`) and an entity: a task's (`pid`), or that of a group whose queue is `my`.
    fn queued(&mut self, fields: TextFields<'_>) {
        let (mut queue, mut group, mut pid, mut own) = (None, None, None, None);
        for (name, value) in fields.iter() {
            match (name.rsplit(' ').next().unwrap_or(name), value) {
                ("cf", GenericValue::Unsigned(value)) => queue = Some(value),
                ("cg", GenericValue::Unsigned(value)) => group = Some(value),
                ("pid", GenericValue::Unsigned(value)) => pid = Some(value),
                ("my", GenericValue::Unsigned(value)) => own = Some(value).filter(|&own| own > 0),
                _ => {}
            }
        }
        let (Some(queue), Some(id)) = (queue, group) else { return };
        let group = self.group(id);
        self.by_queue.insert(queue, group);
        match (own.and_then(|own| self.by_queue.get(&own).copied()), pid) {
            (Some(child), _) if child != group => self.groups[child as usize].parent = Some(group),
            (None, Some(pid @ 1..)) if own.is_none() => {
                self.of_task.insert(Pid(i32::try_from(pid).unwrap_or(-1)), group);
            }
            _ => {}
        }
    }

    fn of_queue(&mut self, fields: TextFields<'_>, event: &Event<'_>) -> Option<(u32, Cpu)> {
        let named = fields.unsigned("cpu").and_then(|cpu| u32::try_from(cpu).ok()).map(Cpu);
        let cpu = named.unwrap_or(event.cpu);
        let known = fields.unsigned("cf").and_then(|queue| self.by_queue.get(&queue).copied());
        let group = match fields.unsigned("cg") {
            Some(id) => self.group(id),
            None => known.or_else(|| self.of_task.get(&event.context.pid).copied())?,
        };
        (cpu.index() < crate::tracker::CPUS_MAX).then_some((group, cpu))
    }

    fn throttle(&mut self, fields: TextFields<'_>, event: &Event<'_>) -> ThrottleChange {
        self.is_shown = true;
        let Some((group, cpu)) = self.of_queue(fields, event) else { return ThrottleChange::No };
        self.begin(group, cpu, event.time);
        ThrottleChange::Changed(cpu)
    }

    /// A group is throttled.
    fn begin(&mut self, group: u32, cpu: Cpu, now: Ns) {
        if self.on(group, cpu).since.is_some() {
            // A probe shows tries, too: the one before has come to nothing.
            self.end(group, cpu, now, false);
        }
        self.count += 1;
        let state = self.on_mut(group, cpu);
        (state.since, state.doubted) = (Some(now), None);
        for below in self.subtree(group) {
            let state = self.on_mut(below, cpu);
            state.throttled += 1;
            if state.throttled == 1 {
                state.any_since = now;
                self.groups[below as usize].enters(now);
            }
        }
    }

    fn unthrottle(&mut self, fields: TextFields<'_>, event: &Event<'_>) -> ThrottleChange {
        self.is_shown = true;
        let Some((group, cpu)) = self.of_queue(fields, event) else { return ThrottleChange::No };
        self.is_back(group, cpu, event.time)
    }

    fn is_back(&mut self, group: u32, cpu: Cpu, to: Ns) -> ThrottleChange {
        let doubted = self.on_mut(group, cpu).doubted.take();
        match self.end(group, cpu, to, true) {
            Some(since) => ThrottleChange::Back { group, cpu, since, to },
            None => match doubted {
                Some(since) => {
                    // It was throttled though a task of it ran: in this kernel tasks leave one by one.
                    self.leaves_by_task = true;
                    self.count += 1;
                    self.time = self.time.saturating_add(to.since(since));
                    ThrottleChange::Back { group, cpu, since, to }
                }
                None => ThrottleChange::No,
            },
        }
    }

    /// A group is not throttled any more; `counts`: it was. Returns since when.
    fn end(&mut self, group: u32, cpu: Cpu, now: Ns, counts: bool) -> Option<Ns> {
        let since = self.on_mut(group, cpu).since.take()?;
        match counts {
            true => self.time = self.time.saturating_add(now.since(since)),
            false => self.count -= 1,
        }
        for below in self.subtree(group) {
            let state = self.on_mut(below, cpu);
            let is_back = state.throttled == 1;
            state.throttled = state.throttled.saturating_sub(1);
            if is_back && counts {
                state.any_time = state.any_time.saturating_add(now.since(state.any_since));
            }
            if is_back {
                self.groups[below as usize].leaves(now, counts);
            }
        }
        Some(since)
    }

    /// A task that gets the CPU is in no throttled group: the pool had runtime after all.
    fn runs_after_all(&mut self, pid: Pid, cpu: Cpu, now: Ns) -> ThrottleChange {
        let Some(group) = self.of_task.get(&pid).copied() else { return ThrottleChange::No };
        if self.on(group, cpu).throttled == 0 {
            return ThrottleChange::No;
        }
        let mut above = Some(group);
        for _ in 0..self.groups.len() {
            let Some(group) = above else { break };
            let since = match self.leaves_by_task {
                // It may be on its way back to user mode, where it leaves.
                true => self.on(group, cpu).since,
                false => self.end(group, cpu, now, false),
            };
            self.on_mut(group, cpu).doubted = since;
            above = self.groups[group as usize].parent;
        }
        if self.leaves_by_task { ThrottleChange::No } else { ThrottleChange::Changed(cpu) }
    }

    /// A group and all below it.
    fn subtree(&self, top: u32) -> Vec<u32> {
        (0..self.groups.len() as u32).filter(|&group| self.lies_below(group, top)).collect()
    }

    fn lies_below(&self, group: u32, top: u32) -> bool {
        let mut above = Some(group);
        // A trace may tell of groups that are each other's parents.
        for _ in 0..self.groups.len() {
            match above {
                Some(group) if group == top => return true,
                Some(group) => above = self.groups[group as usize].parent,
                None => return false,
            }
        }
        false
    }

    fn on(&self, group: u32, cpu: Cpu) -> ThrottlingCpu {
        self.groups[group as usize].cpus.get(cpu.index()).copied().unwrap_or_default()
    }

    fn on_mut(&mut self, group: u32, cpu: Cpu) -> &mut ThrottlingCpu {
        let cpus = &mut self.groups[group as usize].cpus;
        if cpus.len() <= cpu.index() {
            cpus.resize(cpu.index() + 1, ThrottlingCpu::default());
        }
        &mut cpus[cpu.index()]
    }

    /// Whether the trace tells which groups are throttled: by events, by quotas and run time, or as a model's with quotas, which
    /// has an event for each.
    pub(crate) const fn is_known(&self) -> bool {
        self.is_shown || self.shows_all || self.is_concluded()
    }

    /// Whether throttling was concluded from quotas and run time, since the trace does not show it.
    pub(crate) const fn is_concluded(&self) -> bool {
        !self.is_shown && self.conclusions.has_any
    }

    /// Whether throttling is known in one of these ways.
    pub(crate) const fn tells(&self) -> bool {
        self.is_shown || self.conclusions.has_any
    }

    /// Whether a task that waits on `cpu` waits for its group's quota.
    #[inline]
    pub(crate) fn holds(&self, pid: Pid, cpu: Cpu) -> bool {
        self.tells() && self.of_task.get(&pid).is_some_and(|&group| self.on(group, cpu).throttled > 0)
    }

    /// For how long a task's groups have been throttled on `cpu` up to now: what this grows by while it waits there, it
    /// waits for its quota.
    #[inline]
    pub(crate) fn time_of(&self, pid: Pid, cpu: Cpu, now: Ns) -> Ns {
        if self.tells() { self.told_time_of(pid, cpu, now) } else { Ns::ZERO }
    }

    fn told_time_of(&self, pid: Pid, cpu: Cpu, now: Ns) -> Ns {
        let Some(&group) = self.of_task.get(&pid) else { return Ns::ZERO };
        let state = self.on(group, cpu);
        let ongoing = if state.throttled > 0 { now.since(state.any_since) } else { Ns::ZERO };
        state.any_time.saturating_add(ongoing)
    }

    /// Whether `group` is a task's, or lies above it.
    pub(crate) fn is_of(&self, group: u32, pid: Pid) -> bool {
        self.of_task.get(&pid).is_some_and(|&own| self.lies_below(own, group))
    }

    /// The group that a task is in, as far as the trace tells; none: the root, or unknown.
    pub(crate) fn group_of(&self, pid: Pid) -> Option<u32> {
        self.of_task.get(&pid).copied()
    }

    /// How many groups below the root two tasks are both in, directly or not: on the queue of the lowest of them, or on the root's,
    /// they compete.
    pub(crate) fn levels_in_common(&self, one: Pid, other: Pid) -> usize {
        let above = |pid: Pid| {
            let mut path = Vec::new();
            let mut group = self.group_of(pid);
            while let Some(at) = group.filter(|_| path.len() <= self.groups.len()) {
                path.push(at);
                group = self.groups[at as usize].parent;
            }
            path.into_iter().rev().collect::<Vec<_>>()
        };
        above(one).iter().zip(&above(other)).take_while(|(one, other)| one == other).count()
    }

    /// Groups that are throttled on `cpu` now, each with since when.
    pub(crate) fn on_cpu(&self, cpu: Cpu) -> impl Iterator<Item = (u32, Ns)> {
        (0..self.groups.len() as u32).filter_map(move |group| Some((group, self.on(group, cpu).since?)))
    }

    /// What a group is called: its path, or its number.
    pub(crate) fn name(&self, group: u32) -> String {
        let ThrottlingGroup { id, path, .. } = &self.groups[group as usize];
        path.clone().unwrap_or_else(|| format!("cgroup {id}"))
    }

    /// For how long each group, or one above it, was throttled up to `end`; by its path.
    pub(crate) fn paths_until(&self, end: Ns) -> BTreeMap<String, ThrottledTime> {
        let with_ongoing = |time: Ns, throttled: u32, since: Ns| {
            let ongoing = if throttled > 0 { end.since(since) } else { Ns::ZERO };
            time.saturating_add(ongoing)
        };
        let on = |cpu: &ThrottlingCpu| with_ongoing(cpu.any_time, cpu.throttled, cpu.any_since);
        let of = |group: &ThrottlingGroup| ThrottledTime {
            each_cpu: group.cpus.iter().map(on).fold(Ns::ZERO, Ns::saturating_add),
            some_cpu: with_ongoing(group.some_time, group.throttled_cpus, group.some_since),
            limit: group.limit,
        };
        self.groups.iter().filter_map(|group| Some((group.path.clone()?, of(group)))).collect()
    }

    /// How often groups were throttled on a CPU, and for how long, up to `end`. What goes on then counts if no task of it has
    /// run since.
    pub(crate) fn totals(&self, end: Ns) -> (u64, Ns) {
        let states = self.groups.iter().flat_map(|group| &group.cpus);
        let (mut count, mut time) = (self.count, self.time);
        for ThrottlingCpu { since, doubted, .. } in states {
            match (since, doubted) {
                (Some(_), Some(_)) => count -= 1,
                (Some(since), None) => time = time.saturating_add(end.since(*since)),
                (None, _) => {}
            }
        }
        (count, time)
    }
}
