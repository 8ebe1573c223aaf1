//! Tasks that have waited since before the trace began, if no snapshot shows them. A task that gets a CPU, or moves between
//! queues, without a wakeup in the trace had been queued there all the time.

use std::collections::BTreeSet;

use fairlab_event::{Comm, Cpu, Pid, Prio};

use super::super::record::RecordKind;
use super::Walker;

impl Walker {
    /// Queues them at the beginning of the walk.
    pub(super) fn lay_waiting(&mut self) {
        let mut seen = BTreeSet::from([Pid::IDLE]);
        let mut waiting = Vec::new();
        for record in self.window.all() {
            let mut note = |pid: Pid, prio: Prio, comm: Comm, cpu: Cpu| {
                if seen.insert(pid) {
                    waiting.push((pid, prio, comm, cpu));
                }
            };
            match &record.what {
                RecordKind::Switch(switch) => {
                    note(switch.next_pid, switch.next_prio, switch.next_comm, record.cpu);
                    seen.insert(switch.prev_pid);
                }
                RecordKind::Migrate { pid, prio, orig, .. } => note(*pid, *prio, Comm::default(), *orig),
                // The wait of the task that gets the CPU is reported before the switch.
                RecordKind::WaitEnds(..) => {}
                RecordKind::Fork { parent, child, .. } => {
                    seen.extend([*parent, *child]);
                }
                what => seen.extend(what.task()),
            }
            seen.insert(record.context);
        }
        for (pid, prio, comm, cpu) in waiting {
            self.lay_waiting_task(pid, prio, comm, cpu);
        }
    }

    fn lay_waiting_task(&mut self, pid: Pid, prio: Prio, comm: Comm, cpu: Cpu) {
        if prio.nice().is_none() || cpu.index() >= self.cpus.len() {
            return;
        }
        let task = self.task(pid, Some(prio), comm, cpu);
        self.sched.lay_on_queue(task, cpu);
        self.set_known(task, false);
        if let Some(vruntime) = self.vruntime_shown_later(task) {
            self.force_vruntime(self.sched.task_entity(task), vruntime);
        }
    }
}
