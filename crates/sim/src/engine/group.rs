//! Workloads' control groups, and the timers of those with a quota.

use fairlab_event::Cpu;
use fairlab_kernel::GroupId;

use super::Engine;
use super::occurrence::Interrupt;
use crate::workload::Workload;

impl Engine {
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
        let idle = workload.groups().into_iter().find(|group| group.idle)?;
        let name = self.kernel.generation().name();
        let problem = || format!("kernel {name} has no cpu.idle, which group '{}' needs", idle.name);
        let hint = "leave the file out, or take a kernel that has it";
        (!self.kernel.knows_idle_groups()).then(|| (problem(), hint))
    }

    /// Makes a workload's groups.
    pub(super) fn create_groups(&mut self, program: usize, workload: &dyn Workload) -> Vec<GroupId> {
        let mut groups: Vec<GroupId> = Vec::new();
        for spec in workload.groups() {
            let parent = spec.parent.and_then(|parent| groups.get(parent).copied());
            let group = self.kernel.new_group(parent.unwrap_or(GroupId::ROOT), spec.weight);
            self.kernel.set_group_idle(group, spec.idle);
            let stream = format!("{program}/cgroup {}", spec.name);
            let offset = self.machine.chance.phase(self.seed, &stream, spec.max.period());
            self.kernel.set_group_bandwidth(group, spec.max, offset);
            groups.push(group);
        }
        self.serve_groups();
        groups
    }

    /// Arranges what groups' quotas ask for: timers, and interrupts of CPUs that are to unthrottle groups.
    pub(super) fn serve_groups(&mut self) {
        self.kernel.take_started_timers(&mut self.group_timers);
        for timer in self.group_timers.drain(..) {
            self.queue.arrange_interrupt(timer.cpu, timer.expires, Interrupt::GroupTimer(timer));
        }
        let mut calls = std::mem::take(&mut self.unthrottle_calls);
        self.kernel.take_unthrottle_calls(&mut calls);
        for cpu in calls.drain(..) {
            self.send(cpu, Interrupt::Unthrottle);
        }
        self.unthrottle_calls = calls;
    }

    /// Whether the thread on `cpu` cannot go on in user mode: another is to run, or its group is throttled.
    pub(super) fn must_leave_user_mode(&self, cpu: Cpu) -> bool {
        self.kernel.need_resched(cpu) || self.kernel.has_throttle_work(cpu)
    }
}
