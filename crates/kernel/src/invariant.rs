//! What must hold of the scheduler's state between any two actions.
//!
//! Tests look after each action. Who drives the scheduler looks now and then ([`Looks`]): builds with debug assertions in every run, the
//! oracle in all builds.

use crate::cfs_rq::CfsRq;
use crate::entity::{CfsRqId, SeId};
use crate::fair::bandwidth::Throttling;
use crate::fair_server::rules::CountServer;
use crate::group::{GroupId, TaskGroup};
use crate::pelt::{SchedAvg, UTIL_SUM_MAX};
use crate::rq::Rq;
use crate::scheduler::Scheduler;
use crate::task::{OnRq, Task};

/// When a driver looks through the state: a look costs as much as there is to be seen, so there are fewer where there is more.
#[derive(Clone, Copy, Debug)]
pub struct Looks {
    /// How many occurrences are between two looks at least.
    least: u64,
    /// How many occurrences there are for each thing that a look sees.
    for_each: u64,
    left: u64,
    /// Whether a task may not even stand where it may no longer run until its stopper has come.
    is_strict: bool,
}

impl Looks {
    /// Looks after every `least`th occurrence, and no more often than once in `for_each` occurrences for each task, queue and entity.
    pub const fn new(least: u64, for_each: u64) -> Looks {
        Looks { least, for_each, left: least, is_strict: false }
    }

    /// For drivers in which affinity does not wait for a stopper.
    pub const fn strict(self) -> Looks {
        Looks { is_strict: true, ..self }
    }

    /// An occurrence is over.
    ///
    /// # Panics
    /// It was time for a look, and something is not as it must be.
    #[inline]
    pub fn occurred(&mut self, scheduler: &Scheduler) {
        self.left -= 1;
        if self.left == 0 {
            self.left = self.least.max(self.for_each * scheduler.extent());
            let state = if self.is_strict { scheduler.check_invariants() } else { scheduler.check_counts() };
            state.unwrap_or_else(|fault| panic!("the scheduler's state is broken: {fault}"));
        }
    }
}

impl Scheduler {
    /// How many things a look through the state sees.
    fn extent(&self) -> u64 {
        (self.shared.cfs_rqs.len() + self.shared.entities.len() + self.shared.tasks.len()) as u64
    }

    /// Looks through the whole state, in time that grows with tasks, queues and entities.
    ///
    /// # Errors
    /// The first thing that is not as it must be.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.check_counts()?;
        let astray = |task: &&Task| self.is_queued(task) && !task.allowed.contains(task.cpu);
        self.shared.tasks.iter().find(astray).map_or(Ok(()), |Task { pid, cpu, .. }| {
            Err(format!("task {pid}: it is queued on CPU {cpu}, which it may not use"))
        })
    }

    fn is_queued(&self, task: &Task) -> bool {
        matches!(task.on_rq, OnRq::Queued | OnRq::Delayed(_))
    }

    /// What holds while a change of affinity waits for its stopper, too: a task may then be queued where it may no longer be.
    fn check_counts(&self) -> Result<(), String> {
        let members = self.members();
        let mut places = vec![0; self.shared.entities.len()];
        for (index, members) in members.iter().enumerate() {
            let id = CfsRqId(index as u32);
            self.competing(id).iter().for_each(|se| places[se.0 as usize] += 1);
            self.check_queue(id, members).map_err(|fault| format!("cfs_rq {index}: {fault}"))?;
        }
        let mut on_queues = vec![0; self.rqs.len()];
        for (index, task) in self.shared.tasks.iter().enumerate() {
            self.check_task(index, &places).map_err(|fault| format!("task {}: {fault}", task.pid))?;
            on_queues[task.cpu.index()] += usize::from(task.policy.is_fair() && self.se(task.se).on_rq);
        }
        for (cpu, rq) in self.rqs.iter().enumerate() {
            let fair = self.cfs(rq.cfs).h_nr_running as usize;
            let listed = rq.cfs_tasks.oldest_first(&self.shared.tasks).count();
            let on_queues = on_queues[cpu];
            let curr = &self.shared.tasks[self.curr(rq.cpu).index()];
            equal("CPU of the running task", curr.cpu, rq.cpu)?;
            let server = rq.fair_server.queued && self.shared.generation.server.count == CountServer::AsTask;
            let counted = rq.nr_running as usize - usize::from(server);
            if on_queues != listed
                || fair > listed
                || fair + rq.stop.len() + rq.dl.len() + self.shared.cpus[cpu].rt.len() != counted
            {
                return Err(format!(
                    "CPU {cpu}: {fair} fair tasks below the root, {on_queues} on queues, {listed} listed, {counted} counted"
                ));
            }
        }
        let in_doubt = |rq: &&Rq| self.shared.idle_cpus.contains(rq.cpu) != self.shared.has_nothing_to_do(rq);
        if let Some(Rq { cpu, .. }) = self.rqs.iter().find(in_doubt) {
            return Err(format!("CPU {cpu}: idle in the set of idle CPUs or by its queue, not both"));
        }
        let mut asleep = vec![0; self.rqs.len()];
        for entity in
            self.shared.entities.iter().filter(|entity| entity.sched_delayed && entity.task.is_none())
        {
            asleep[self.cfs(entity.cfs_rq).cpu.index()] += 1;
        }
        for (rq, asleep) in self.rqs.iter().zip(asleep) {
            equal("groups asleep on a CPU's queues", asleep, rq.nr_delayed_groups)?;
        }
        for (index, group) in self.shared.groups.iter().enumerate() {
            self.check_bandwidth(GroupId(index as u32), group)
                .map_err(|fault| format!("group {index}: {fault}"))?;
        }
        Ok(())
    }

    /// Entities that are members of each queue.
    fn members(&self) -> Vec<Vec<SeId>> {
        let queues = 0..self.shared.cfs_rqs.len() as u32;
        if !self.shared.competes_on_one_queue() {
            return queues.map(|index| self.competing(CfsRqId(index))).collect();
        }
        let mut members = vec![Vec::new(); queues.len()];
        for (entity, index) in self.shared.entities.iter().zip(0..) {
            if entity.on_rq {
                members[entity.cfs_rq.0 as usize].push(SeId(index));
            }
        }
        members
    }

    /// Entities that compete on a queue: those that wait, and the running one.
    fn competing(&self, id: CfsRqId) -> Vec<SeId> {
        let waiting = self.cfs(id).timeline.iter().map(|entry| entry.se);
        waiting.chain(self.shared.running_entity(id)).collect()
    }

    fn check_queue(&self, id: CfsRqId, members: &[SeId]) -> Result<(), String> {
        let queue = self.cfs(id);
        equal("entities", members.len() as u32, queue.nr_running)?;
        let weight = members.iter().map(|&se| self.se(se).load.raw()).sum::<u64>();
        equal("weight", weight, queue.load.raw())?;
        let below = |se: SeId| self.se(se).my_q.map_or(1, |below| self.cfs(below).h_nr_running);
        let delayed = |se: SeId| match self.se(se).my_q {
            Some(below) => self.cfs(below).h_nr_delayed,
            None => u32::from(self.se(se).sched_delayed),
        };
        equal("sleepers below", members.iter().map(|&se| delayed(se)).sum::<u32>(), queue.h_nr_delayed)?;
        let idle = |se: SeId| match self.se(se).my_q {
            Some(_) if self.shared.is_idle_policy(se) => below(se),
            Some(below) => self.cfs(below).h_nr_idle,
            None => u32::from(self.shared.is_idle_policy(se)),
        };
        equal("idle tasks below", members.iter().map(|&se| idle(se)).sum::<u32>(), queue.h_nr_idle)?;
        equal("tasks below", members.iter().map(|&se| below(se)).sum::<u32>(), queue.h_nr_running)?;
        let competing = self.competing(id);
        if self.shared.competes_on_one_queue() {
            let here = self.shared.line_of(id) == id;
            equal("competitors", competing.len() as u32, if here { queue.h_nr_running } else { 0 })?;
        }
        for &se in &competing {
            let entity = self.se(se);
            if !entity.on_rq || self.shared.line_of(entity.cfs_rq) != id {
                return Err(format!("entity {} is listed but not on it", se.0));
            }
        }
        for entry in queue.timeline.iter() {
            let entity = self.se(entry.se);
            if (entry.vruntime, entry.deadline) != (entity.vruntime, entity.deadline) {
                return Err(format!("entity {} stands where it was, not where it is", entry.se.0));
            }
            equal(
                "weight of an entry",
                entry.weight,
                self.shared.weight_in_averages(self.shared.competing_load(entry.se)),
            )?;
        }
        self.check_averages(id, queue, &competing)
    }

    /// The sums that averages are made of, and that lag sums to zero within rounding.
    fn check_averages(&self, id: CfsRqId, queue: &CfsRq, members: &[SeId]) -> Result<(), String> {
        let key = |se: SeId| i128::from(queue.key(self.se(se).vruntime));
        let weight = |se: SeId| i128::from(self.shared.weight_in_averages(self.shared.competing_load(se)));
        let waiting = queue.timeline.iter().map(|entry| entry.se);
        equal("waiting weight", waiting.clone().map(weight).sum::<i128>(), i128::from(queue.waiting_load()))?;
        let keys = waiting.map(|se| key(se) * weight(se)).sum::<i128>();
        equal("weighted keys", keys as i64, queue.waiting_keys())?;
        let all_keys = members.iter().map(|&se| key(se) * weight(se)).sum::<i128>();
        if i64::try_from(keys).is_err() || i64::try_from(all_keys).is_err() {
            // The sums have wrapped, as the kernel's would have: its average means nothing now.
            return Ok(());
        }
        let average = i128::from(queue.key(self.shared.average(id)));
        let lag = members.iter().map(|&se| (average - key(se)) * weight(se)).sum::<i128>();
        let total = members.iter().map(|&se| weight(se)).sum::<i128>();
        if lag.abs() > total {
            return Err(format!("weighted lag sums to {lag}, beyond the rounding of {total}"));
        }
        Ok(())
    }

    /// Throttled queues wait for their group's runtime, each once, and all below them know.
    fn check_bandwidth(&self, id: GroupId, group: &TaskGroup) -> Result<(), String> {
        let whole = self.shared.generation.bandwidth.throttling == Throttling::WholeQueue;
        for &cfs_rq in &group.cfs_rqs {
            let queue = self.cfs(cfs_rq);
            let waits = group.pool.throttled.iter().filter(|&&waiting| waiting == cfs_rq).count();
            equal("waits for runtime", waits, usize::from(queue.runtime.throttled))?;
            let above = queue.entity.map_or(0, |se| self.cfs(self.se(se).cfs_rq).runtime.throttle_count);
            let count = above + u32::from(queue.runtime.throttled);
            equal("throttled groups up to the root", queue.runtime.throttle_count, count)?;
            let on_rq = queue.entity.is_some_and(|se| self.se(se).on_rq);
            if whole && queue.runtime.throttled && on_rq {
                return Err(format!("throttled on {:?}, but still queued", queue.cpu));
            }
            for &task in &queue.runtime.limbo {
                let known = &self.shared.tasks[task.index()];
                equal("group of a throttled task", known.group, id)?;
                equal("throttled", known.throttled, true)?;
            }
        }
        Ok(())
    }

    /// A task's utilization is not beyond that of one that has always run. Its load may be: it is kept while the weight
    /// changes in another class.
    fn check_tracking(&self, avg: &SchedAvg) -> Result<(), String> {
        if avg.util_sum > UTIL_SUM_MAX || avg.util_avg > 1024 {
            return Err(format!("utilization of {}, its sum {}", avg.util_avg, avg.util_sum));
        }
        Ok(())
    }

    /// `places`: how often each entity is found on a line.
    fn check_task(&self, index: usize, places: &[usize]) -> Result<(), String> {
        let task = &self.shared.tasks[index];
        if !task.policy.is_fair() {
            return Ok(());
        }
        let entity = self.se(task.se);
        let queued = self.is_queued(task);
        let limbo = &self.cfs(entity.cfs_rq).runtime.limbo;
        let waits = limbo.iter().filter(|waiting| waiting.index() == index).count();
        equal("waits for its group", waits, usize::from(queued && task.throttled))?;
        equal("on its queue", queued && !task.throttled, entity.on_rq)?;
        equal("asleep on its queue", matches!(task.on_rq, OnRq::Delayed(_)), entity.sched_delayed)?;
        equal("places on a queue", places[task.se.0 as usize], usize::from(entity.on_rq))?;
        self.check_tracking(&entity.avg)?;
        equal("its queue's CPU", task.cpu, self.cfs(entity.cfs_rq).cpu)?;
        Ok(())
    }
}

fn equal<T: Copy + PartialEq + std::fmt::Debug>(what: &str, is: T, should_be: T) -> Result<(), String> {
    if is == should_be { Ok(()) } else { Err(format!("{what}: {is:?}, but {should_be:?} is noted")) }
}
