//! What a probe shows of the state at a try: it is taken over, and what the model does in it is asked for.
//!
//! Must not know: what the kernel did.

use fairlab_event::{Cpu, Pid};
use fairlab_kernel::CpuMask;
use fairlab_kernel::balance::FoundTask;
use fairlab_kernel::select::GivenCpu;

use super::super::super::probe::{Key, ListedCpu, ProbeHit};
use super::super::super::record::EventRecord;
use super::super::Walker;
use super::looking::{PossibleDecisions, mode_of};

impl Walker {
    /// A try begins: if its probe shows every CPU, what the kernel found is known as it was.
    pub(super) fn show_try_state(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let all_shown =
            probe.cpus.len() >= self.cpus.len() && probe.cpus.iter().all(|cpu| cpu.idle.is_some());
        let Some(shown) = &self.cpus[record.cpu.index()].balancing.shown else { return };
        let (cpu, level, idle) = (shown.cpu, shown.level, shown.idle);
        if !all_shown {
            return;
        }
        for (number, shown) in probe.cpus.iter().enumerate().take(self.cpus.len()) {
            let cpu = Cpu(number as u32);
            if let Some(load) = shown.load {
                self.sched.force_cpu_load(cpu, load);
            }
            self.show_more_of_cpu(cpu, shown);
        }
        self.show_lists(probe);
        if let Some(marked) = probe.unsigned(Key::Marked) {
            let marked = (0..64).filter(|bit| marked >> bit & 1 == 1).map(Cpu).collect::<CpuMask>();
            self.sched.force_group_marks(cpu, level, &marked);
        }
        let mut exact = self.sched.clone();
        exact.set_here(cpu, mode_of(record), record.time);
        let given = probe.cpus.iter().map(|shown| GivenCpu { idle: shown.idle, nr_running: None });
        exact.give_cpus(&given.collect::<Vec<_>>());
        if let Some(coming) = probe.get(Key::Coming).and_then(|coming| u32::try_from(coming).ok()) {
            exact.force_ttwu_pending(cpu, coming);
        }
        let found = PossibleDecisions::only(record.time, exact.decide_balance(cpu, level, idle));
        if let Some(shown) = &mut self.cpus[record.cpu.index()].balancing.shown {
            (shown.found, shown.exact) = (found, Some(Box::new(exact)));
        }
    }

    /// A stopper begins to push its CPU's task.
    pub(super) fn show_push_state(&mut self, probe: &ProbeHit) {
        self.show_lists(probe);
        let numbers = probe.get(Key::PushCpu).zip(probe.get(Key::Level)).zip(probe.get(Key::Failures));
        let Some(((dest, number), failed)) = numbers else { return };
        let Some(dest) = self.cpu_numbered(dest) else { return };
        let level = self.sched.domains().domains_of(dest).iter().position(|sd| i64::from(sd.level) == number);
        if let Some((level, failed)) = level.zip(u32::try_from(failed).ok()) {
            self.sched.force_balance_failures(dest, level, failed);
        }
    }

    fn show_lists(&mut self, probe: &ProbeHit) {
        for list in &probe.listed {
            match list {
                ListedCpu::Tasks(cpu, tasks) => {
                    let found = tasks.iter().filter_map(|entry| self.found_task(entry)).collect::<Vec<_>>();
                    self.sched.force_found_tasks(*cpu, &found);
                }
                ListedCpu::Groups(cpu, queues) => {
                    for &[inode, load, of_entity] in queues {
                        let group = self.groups.with_inode(inode);
                        if let Some(queue) = group.and_then(|group| self.sched.group_queue(group, *cpu)) {
                            self.sched.force_group_load(queue, load, of_entity);
                        }
                    }
                }
            }
        }
    }

    fn found_task(&self, entry: &[u64; 6]) -> Option<FoundTask> {
        let &[pid, load, util, last, average, exec_start] = entry;
        let task = self.tasks.get(&Pid(i32::try_from(pid).ok()?))?.id;
        let estimates = [u32::try_from(last).ok()?, u32::try_from(average).ok()?];
        Some(FoundTask { task, load, util, estimates, exec_start })
    }
}
