//! What is done to threads and groups from outside: moves, writes to groups' files, kills; and where tasks of groups may run.
//!
//! Must not know: who asks for it, and when.

use std::collections::BTreeMap;

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::{CpuMask, GroupId};

use super::cpu::CpuPhase;
use super::{ComputeSegment, Engine, SystemCall, ThreadSleep};
use crate::scheduler_core::SchedulerCore;
use crate::workload::administration::Administration;
use crate::workload::cgroup::{GroupFile, GroupSpec, allowed_in, effective_cpus};
use crate::workload::{ThreadId, ThreadSpec};

/// Where tasks of a program's groups may run (the cpuset controller).
///
/// Departs: what a task asked for is kept through every change, as from v6.2 (8f9ea86fdf99); before, a change of its cpuset
/// gave it all of that.
pub(super) struct CpusetState {
    /// By group (`cpuset.cpus.effective`).
    effective: Vec<CpuMask>,
    /// What threads ask for, by their places.
    wishes: BTreeMap<usize, CpuMask>,
}

impl CpusetState {
    /// Those of groups of which one at least says something of CPUs.
    pub fn of(specs: &[GroupSpec], online: &CpuMask) -> Option<CpusetState> {
        Some(CpusetState { effective: effective_cpus(specs, online)?, wishes: BTreeMap::new() })
    }
}

/// The scheduler is told where tasks of these groups may run.
pub(super) fn tell_groups_cpus<C: SchedulerCore>(core: &mut C, groups: &[GroupId], effective: &[CpuMask]) {
    for (&group, cpus) in groups.iter().zip(effective) {
        core.set_group_cpus(group, cpus);
    }
}

impl<C: SchedulerCore> Engine<C> {
    /// The thread at place `index`, which runs on `cpu`, does something to others.
    pub(super) fn administer(&mut self, cpu: Cpu, index: usize, order: Administration) {
        let program = self.threads[index].program;
        match order {
            Administration::Move { threads, group } => {
                let places = self.places_of(program, &threads);
                places.iter().for_each(|&place| self.move_to_group(place, group));
                self.allow_again(cpu, index, places);
            }
            Administration::Write { group, file } => {
                self.write_group_file(program, group, file);
                let below = match file {
                    GroupFile::Cpus(_) => self.places_below(program, group),
                    _ => Vec::new(),
                };
                self.allow_again(cpu, index, below);
            }
            Administration::Kill(threads) => {
                let places = self.places_of(program, &threads);
                let cost = places.into_iter().map(|place| self.kill(cpu, place).0).sum();
                self.interrupt_marked(Some(cpu));
                self.leave_system_call(cpu, Ns(cost));
            }
        }
    }

    /// Where threads of a program are that have not ended.
    fn places_of(&self, program: usize, threads: &[ThreadId]) -> Vec<usize> {
        threads.iter().filter_map(|&thread| self.programs[program].threads.get(thread)).collect()
    }

    /// Where the threads are that are in a group of a program, or below it.
    fn places_below(&self, program: usize, group: usize) -> Vec<usize> {
        let specs = &self.programs[program].specs;
        let mut below = vec![false; specs.len()];
        for (number, spec) in specs.iter().enumerate() {
            below[number] = number == group || spec.parent.is_some_and(|parent| below[parent]);
        }
        let is_below = |&place: &usize| self.group_number(program, place).is_some_and(|group| below[group]);
        let Some(cpusets) = &self.programs[program].cpusets else { return Vec::new() };
        cpusets.wishes.keys().copied().filter(is_below).collect()
    }

    /// The group of its program that a thread is in.
    fn group_number(&self, program: usize, place: usize) -> Option<usize> {
        let group = self.core.group_of(self.threads[place].task);
        self.programs[program].groups.iter().position(|&known| known == group)
    }

    /// Puts a thread into a group of its program; `None`: into the root group, where its session may have an autogroup. A thread that is
    /// there already is left alone (`cgroup_migrate_prepare_dst()`).
    pub(super) fn move_to_group(&mut self, place: usize, group: Option<usize>) {
        let (task, program) = (self.threads[place].task, self.threads[place].program);
        let target = match group {
            Some(group) => self.programs[program].groups.get(group).copied(),
            None => Some(self.autogroups.get(&place).copied().unwrap_or(GroupId::ROOT)),
        };
        let Some(target) = target else { return };
        if self.core.group_of(task) != target {
            self.core.move_task_to_group(task, target);
        }
        match group {
            Some(_) => self.report_group_of(program, task),
            None => self.core.report_attach(task, "/"),
        }
    }

    fn write_group_file(&mut self, program: usize, number: usize, file: GroupFile) {
        let Some(&group) = self.programs[program].groups.get(number) else { return };
        let spec = &mut self.programs[program].specs[number];
        match file {
            // The kernel takes none while the group is idle.
            GroupFile::Weight(_) if spec.idle => {}
            GroupFile::Weight(weight) => {
                spec.weight = weight;
                self.core.set_group_weight(group, weight);
            }
            GroupFile::Idle(idle) => {
                spec.idle = idle;
                self.core.set_group_idle(group, idle);
            }
            GroupFile::Max(max) => {
                spec.max = max;
                let stream = format!("{program}/cgroup {}", spec.name);
                let offset = self.machine.chance.phase(self.seed, &stream, max.period());
                self.core.set_group_bandwidth(group, max, offset);
            }
            GroupFile::Cpus(cpus) => {
                spec.cpus = cpus;
                let program = &mut self.programs[program];
                let effective = effective_cpus(&program.specs, self.machine.topology.online());
                let all = || vec![*self.machine.topology.online(); program.specs.len()];
                if let Some(cpusets) = &mut program.cpusets {
                    cpusets.effective = effective.unwrap_or_else(all);
                    tell_groups_cpus(&mut self.core, &program.groups, &cpusets.effective);
                }
            }
        }
    }

    /// The threads at these places may run where their groups let them; who must leave its CPU does so before the next one's
    /// turn. Then the system call of the thread at `index` is over.
    pub(super) fn allow_again(&mut self, cpu: Cpu, index: usize, mut places: Vec<usize>) {
        while let Some(place) = places.pop() {
            let Some(allowed) = self.allowed_now(place) else { continue };
            let task = self.threads[place].task;
            if let Some(progress) = self.core.set_cpus_allowed(cpu, task, allowed) {
                let thread = &mut self.threads[index];
                (thread.pending, thread.segment) =
                    (Some(SystemCall::AllowAgain(places)), ComputeSegment::Kernel(Ns(1)));
                return self.goes_on(cpu, progress);
            }
        }
        self.make_requests();
        self.interrupt_marked(Some(cpu));
        self.leave_system_call(cpu, Ns::ZERO);
    }

    /// Where a thread may run, by its wish and its group; `None`: no group says anything.
    fn allowed_now(&self, place: usize) -> Option<CpuMask> {
        let program = self.threads[place].program;
        let cpusets = self.programs[program].cpusets.as_ref()?;
        let wish = cpusets.wishes.get(&place)?;
        Some(self.allowed_by(program, self.group_number(program, place), wish))
    }

    fn allowed_by(&self, program: usize, group: Option<usize>, wish: &CpuMask) -> CpuMask {
        let online = self.machine.topology.online();
        let cpusets = self.programs[program].cpusets.as_ref();
        let effective = cpusets.zip(group).and_then(|(cpusets, group)| cpusets.effective.get(group));
        allowed_in(wish, effective.unwrap_or(online))
    }

    /// Where a thread may run that asks for these CPUs; empty if the machine has none of them.
    pub(super) fn wishes_for(&mut self, place: usize, wish: &CpuMask) -> CpuMask {
        let wish = wish.and(self.machine.topology.online());
        let program = self.threads[place].program;
        let Some(cpusets) = self.programs[program].cpusets.as_mut().filter(|_| !wish.is_empty()) else {
            return wish;
        };
        cpusets.wishes.insert(place, wish);
        self.allowed_by(program, self.group_number(program, place), &wish)
    }

    /// Where a new thread may run.
    pub(super) fn allowed_of_new(
        &self,
        program: usize,
        spec: &ThreadSpec,
        creator: Option<usize>,
    ) -> CpuMask {
        let wish = spec.allowed.and(self.machine.topology.online());
        if self.programs[program].cpusets.is_none() {
            return wish;
        }
        let of_creator = || self.group_number(program, creator?);
        self.allowed_by(program, spec.group.or_else(of_creator), &wish)
    }

    /// The autogroup of a new thread's session, where the kernel has any.
    ///
    /// Kernel: `sched_autogroup_create_attach()`, `sched_autogroup_fork()`, kernel/sched/autogroup.c. Threads of the kernel
    /// have none.
    pub(super) fn autogroup_of_new(&mut self, spec: &ThreadSpec, creator: Option<usize>) -> Option<GroupId> {
        let inherited = creator.and_then(|creator| self.autogroups.get(&creator).copied());
        match (spec.session, creator) {
            _ if spec.kthread => None,
            (Some(nice), _) => self.core.new_autogroup(nice),
            (None, None) => self.core.new_autogroup(0),
            (None, Some(_)) => inherited,
        }
    }

    /// The group that a new thread is created in, which stands for the root where its session has one; `None`: its creator's.
    pub(super) fn group_with_autogroup(
        &self,
        group: Option<GroupId>,
        autogroup: Option<GroupId>,
        creator: Option<usize>,
    ) -> Option<GroupId> {
        if autogroup.is_none() && self.autogroups.is_empty() {
            return group;
        }
        let in_root = autogroup.unwrap_or(GroupId::ROOT);
        let of_creator = creator.map_or(GroupId::ROOT, |creator| {
            let (known, own) =
                (self.core.group_of(self.threads[creator].task), self.autogroups.get(&creator));
            if own == Some(&known) { GroupId::ROOT } else { known }
        });
        let wanted = group.unwrap_or(of_creator);
        Some(if wanted == GroupId::ROOT { in_root } else { wanted })
    }

    /// Notes what is known of a new thread by its place.
    pub(super) fn note_place(
        &mut self,
        program: usize,
        place: usize,
        spec: &ThreadSpec,
        autogroup: Option<GroupId>,
    ) {
        if let Some(cpusets) = &mut self.programs[program].cpusets {
            cpusets.wishes.insert(place, spec.allowed.and(self.machine.topology.online()));
        }
        if let Some(autogroup) = autogroup {
            self.autogroups.insert(place, autogroup);
        }
    }

    /// The thread there has ended.
    pub(super) fn forget_place(&mut self, program: usize, place: usize) {
        if let Some(cpusets) = &mut self.programs[program].cpusets {
            cpusets.wishes.remove(&place);
        }
        if !self.autogroups.is_empty() {
            self.autogroups.remove(&place);
        }
    }

    /// A thread on `cpu` kills the one at `place`. Returns what that costs.
    fn kill(&mut self, cpu: Cpu, place: usize) -> Ns {
        match self.threads[place].wait {
            ThreadSleep::Futex | ThreadSleep::Timer => self.wake_thread(cpu, place, false),
            ThreadSleep::GoingToSleep => self.wake(cpu, place, false),
            ThreadSleep::No | ThreadSleep::WokenEarly => {
                self.end_segment(place);
                Ns::ZERO
            }
            ThreadSleep::Device | ThreadSleep::Dead => Ns::ZERO,
        }
    }

    /// What a thread computes is over: at once, or when the signal's interrupt comes to the CPU that it runs on
    /// (`signal_wake_up()`).
    fn end_segment(&mut self, place: usize) {
        if matches!(self.threads[place].segment, ComputeSegment::Done | ComputeSegment::Kernel(_)) {
            return;
        }
        let task = self.threads[place].task;
        let mut cpus = self.machine.topology.cpus();
        let Some(on) = cpus.find(|&cpu| self.core.curr(cpu) == task && self.computes(cpu)) else {
            self.threads[place].segment = ComputeSegment::Done;
            return;
        };
        if let ComputeSegment::Spin { word, .. } = self.threads[place].segment {
            self.looks_away(on, place, word);
            self.threads[place].segment = ComputeSegment::Work(Ns(1));
        }
        let (ipi, interrupt) = (self.machine.costs.ipi, self.machine.costs.interrupt);
        let least = self.time_for(on, interrupt);
        if self.is_shortened(on, least) {
            return;
        }
        let until = self.cpus[on.index()].until.min(self.now + ipi + least);
        self.cpus[on.index()].until = until;
        self.queue.arrange_phase_end(on, until);
    }

    fn computes(&self, cpu: Cpu) -> bool {
        self.cpus[cpu.index()].phase == CpuPhase::User
    }
}
