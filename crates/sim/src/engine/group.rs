//! Workloads' control groups.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::{GroupId, TaskId};

use super::Engine;
use super::administration::tell_groups_cpus;
use crate::scheduler_core::SchedulerCore;
use crate::workload::Workload;
use crate::workload::cgroup::{GroupFile, GroupSpec, effective_cpus};

impl<C: SchedulerCore> Engine<C> {
    /// Why `workload` cannot run here, if it cannot, and what to do about it: the machine lacks a CPU that it names, or the
    /// kernel a file that its groups need.
    pub fn refusal(&self, workload: &dyn Workload) -> Option<(String, &'static str)> {
        let online = self.machine.topology.online();
        if let Some(absent) = workload.named_cpus().and_not(online).lowest() {
            let problem = format!(
                "the workload names CPU {absent}, but machine {} has CPUs {online}",
                self.machine.name
            );
            return Some((problem, "take another machine, or name CPUs that it has"));
        }
        let (mut groups, name) = (workload.groups(), self.core.name());
        for (group, file) in workload.group_writes() {
            match (groups.get_mut(group), file) {
                (Some(group), GroupFile::Idle(true)) => group.idle = true,
                (Some(group), GroupFile::Max(limit)) if limit.burst() > Ns::ZERO => group.max = limit,
                _ => {}
            }
        }
        let lacks = |file: &str, group: &GroupSpec| {
            let problem = format!("kernel {name} has no {file}, which group '{}' needs", group.name);
            (problem, "leave the file out, or take a kernel that has it")
        };
        let idle = groups.iter().find(|group| group.idle && !self.core.knows_idle_groups());
        let burst = groups.iter().find(|group| group.max.burst() > Ns::ZERO && !self.core.knows_bursts());
        idle.map(|group| lacks("cpu.idle", group))
            .or_else(|| burst.map(|group| lacks("cpu.max.burst", group)))
    }

    /// Makes a workload's groups on `boot_cpu`. Returns them, and their paths.
    pub(super) fn create_groups(
        &mut self,
        program: usize,
        workload: &dyn Workload,
        boot_cpu: Cpu,
    ) -> (Vec<GroupId>, Vec<String>) {
        let mut groups: Vec<GroupId> = Vec::new();
        let specs = workload.groups();
        let paths = paths(&specs);
        let effective = effective_cpus(&specs, self.machine.topology.online());
        let limited = specs.iter().any(|spec| spec.max.quota().is_some());
        for spec in specs {
            let parent = spec.parent.and_then(|parent| groups.get(parent).copied());
            let group = self.core.new_group(parent.unwrap_or(GroupId::ROOT), spec.weight);
            self.core.set_group_idle(group, spec.idle);
            let stream = format!("{program}/cgroup {}", spec.name);
            let offset = self.machine.chance.phase(self.seed, &stream, spec.max.period());
            self.core.set_group_bandwidth(group, spec.max, offset);
            groups.push(group);
        }
        if let Some(effective) = effective {
            tell_groups_cpus(&mut self.core, &groups, &effective);
        }
        for (group, path) in groups.iter().zip(&paths) {
            self.core.report_group(*group, path);
        }
        if limited {
            self.end_work(boot_cpu);
        }
        (groups, paths)
    }

    /// Reports in which group of its program a task is, as the kernel's `cgroup_attach_task` does.
    pub(super) fn report_group_of(&mut self, program: usize, task: TaskId) {
        let program = &self.programs[program];
        let group = self.core.group_of(task);
        let place = program.groups.iter().position(|&one| one == group);
        let Some(path) = place.and_then(|place| program.paths.get(place)) else { return };
        self.core.report_attach(task, path);
    }

    /// Whether the thread on `cpu` cannot go on in user mode: another is to run, or its group is throttled.
    pub(super) fn must_leave_user_mode(&self, cpu: Cpu) -> bool {
        self.core.need_resched(cpu) || self.core.has_user_mode_work(cpu)
    }
}

/// Where groups lie below the root.
fn paths(specs: &[GroupSpec]) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for spec in specs {
        let parent = spec.parent.and_then(|parent| paths.get(parent)).map_or("", String::as_str);
        paths.push(match spec.name.starts_with('/') {
            true => spec.name.clone(),
            false => format!("{parent}/{}", spec.name),
        });
    }
    paths
}
