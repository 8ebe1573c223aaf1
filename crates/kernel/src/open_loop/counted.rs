//! What tasks contribute to their CPU's load, if a trace does not show when that was computed.
//!
//! A queue's part of its CPU's load is computed at the first request in a jiffy and kept for that jiffy. Balancing that moves
//! nothing requests it, too, without a trace. So the part may have the value of any moment in the jiffy.
//!
//! Must not know: who may have asked.

use fairlab_event::Cpu;

use crate::ids::{CfsRqId, TaskId};
use crate::scheduler::Scheduler;
use crate::task::Policy;

impl Scheduler {
    /// A real kernel has asked what `task` counts of its CPU's load: its queue's part stays for this jiffy.
    pub fn note_load_asked(&mut self, task: TaskId) {
        self.shared.update_cfs_rq_h_load(self.entity_of(task).cfs_rq);
    }

    /// A real kernel is about to ask what `task` counts of its CPU's load, or not: which of them, nothing shows.
    pub fn guess_load_asked(&mut self, task: TaskId) {
        let own = &self.shared.tasks[task.index()];
        let queue = match own.policy {
            Policy::Swapper => self.rqs[own.cpu.index()].cfs,
            _ => self.entity_of(task).cfs_rq,
        };
        self.unseen_asks.begin(self.shared.jiffies());
        if !self.shared.h_load_known(queue) {
            self.unseen_asks.guessed.push(queue);
        }
        if self.unseen_asks.guessed.contains(&queue) {
            let load = self.shared.h_load_anew(queue);
            self.unseen_asks.note(queue, load);
        }
    }

    /// Somebody may ask now, unseen, what tasks that wait on `cpu` count of its load.
    pub fn doubt_loads(&mut self, cpu: Cpu) {
        self.unseen_asks.begin(self.shared.jiffies());
        let (rq, curr) = (&self.rqs[cpu.index()], self.curr(cpu));
        let waiting = rq.cfs_tasks.oldest_first(&self.shared.tasks).filter(|&task| task != curr);
        let queues = waiting.map(|task| self.entity_of(task).cfs_rq);
        let guessed = |queue: &CfsRqId| self.unseen_asks.guessed.contains(queue);
        let asked = queues.filter(|queue| guessed(queue) || !self.shared.h_load_known(*queue));
        for (queue, load) in asked.map(|queue| (queue, self.shared.h_load_anew(queue))).collect::<Vec<_>>() {
            self.unseen_asks.note(queue, load);
        }
    }

    /// What `task` counts of its CPU's load at least and at most, whoever has asked for it in this jiffy.
    pub fn loads_counted(&self, task: TaskId) -> [u64; 2] {
        let own = self.shared.task_h_load(task);
        let se = self.entity_of(task);
        let asks = &self.unseen_asks;
        let doubted =
            asks.queues.iter().find(|(queue, _)| *queue == se.cfs_rq && asks.jiffy == self.shared.jiffies());
        let Some((_, counted)) =
            doubted.filter(|_| self.shared.tasks[task.index()].policy != Policy::Swapper)
        else {
            return [own, own];
        };
        let [least, most] = counted.map(|load| self.shared.part_of(task, load, None));
        [own.min(least), own.max(most)]
    }
}

#[cfg(test)]
mod tests {
    use fairlab_event::{Cpu, Ns};

    use crate::testbed::{MS, SchedulerTestbed};

    #[test]
    fn what_may_have_been_asked_unseen_holds_for_the_jiffy_until_somebody_surely_asks() {
        let mut bed = SchedulerTestbed::new("v6.5", 2, 1);
        let waits = bed.spawn(0, 0);
        bed.spawn(0, 0);
        let runs = bed.scheduler.curr(Cpu(0));
        let waits = if runs == waits { bed.spawn(0, 0) } else { waits };
        let root = bed.scheduler.rqs[0].cfs;
        let own = bed.scheduler.shared.task_h_load(waits);
        bed.scheduler.doubt_loads(Cpu(0));
        bed.scheduler.cfs_mut(root).tracked.avg.load_avg *= 2;
        let [least, most] = bed.scheduler.loads_counted(waits);
        assert!(least < own && most == bed.scheduler.shared.task_h_load(waits), "{least} {own} {most}");
        bed.scheduler.note_load_asked(waits);
        bed.scheduler.cfs_mut(root).tracked.avg.load_avg *= 2;
        let known = bed.scheduler.loads_counted(waits);
        bed.scheduler.doubt_loads(Cpu(0));
        assert_eq!(bed.scheduler.loads_counted(waits), known, "who asks later gets the same");
        bed.pass(20 * MS);
        bed.scheduler.set_here(
            Cpu(0),
            crate::core::KernelContext::Task,
            Ns(bed.scheduler.shared.trace.now.0 + 20 * MS),
        );
        let [least, most] = bed.scheduler.loads_counted(waits);
        assert_eq!(least, most, "another jiffy");
    }

    #[test]
    fn a_guess_leaves_open_what_later_asks_find() {
        let mut bed = SchedulerTestbed::new("v6.5", 2, 1);
        let task = bed.spawn(0, 0);
        let root = bed.scheduler.rqs[0].cfs;
        bed.scheduler.guess_load_asked(task);
        bed.scheduler.note_load_asked(task);
        let alone = bed.scheduler.loads_counted(task);
        assert_eq!(alone[0], alone[1]);
        let load = bed.scheduler.cfs(root).tracked.avg.load_avg;
        bed.scheduler.cfs_mut(root).tracked.avg.load_avg = 3 * load;
        bed.scheduler.guess_load_asked(task);
        let [least, most] = bed.scheduler.loads_counted(task);
        assert!(most > 2 * least, "{least} {most}");
    }
}
