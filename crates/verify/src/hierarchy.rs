//! Task groups that no list beside the trace names, found from the trace itself.
//!
//! Kernels that trace each placement (`sched_place`) show with every enqueue how many levels of groups were queued with the
//! task. If one other task was queued there already, the two tasks share the levels that were not queued again.
//!
//! Must not know: weights, virtual time, and what the model decides.

use std::collections::{BTreeMap, BTreeSet};

use fairlab_event::{Cpu, Event, EventKind, Pid, Sink, UntypedTracepoint};
use fairlab_kernel::CfsLimit;
use fairlab_recording::{CgroupLine, Recording};

/// The groups of a recording's tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hierarchy {
    /// Every group's path, parents first; names are made up.
    pub paths: Vec<String>,
    /// The task and the group that it moved itself into, by the event that shows it placed there first.
    pub moves: BTreeMap<u64, (Pid, String)>,
}

impl Hierarchy {
    /// Hands a recording the groups that its trace has told.
    pub fn tell(self, recording: &mut Recording) {
        /// Inodes that no real cgroup has.
        const FIRST_INODE: u64 = 1 << 62;
        let line = |(path, inode): (String, u64)| CgroupLine {
            path,
            inode,
            weight: Some(100),
            max: CfsLimit::UNLIMITED,
            limited: false,
            periods: 0,
            idle: false,
            unused: true,
        };
        recording.traces_places = !self.paths.is_empty();
        recording.cgroups = self.paths.into_iter().zip(FIRST_INODE..).map(line).collect();
        recording.moves = self.moves;
    }
}

/// One enqueue.
#[derive(Clone, Debug)]
struct EnqueueChain {
    pid: Pid,
    cpu: Cpu,
    /// Its first event.
    event: u64,
    /// Groups' entities that were placed with the task.
    groups: usize,
    /// The running task itself came back to its queue.
    by_itself: bool,
}

/// What one CPU reports.
#[derive(Clone, Debug, Default)]
struct CpuReports {
    /// The enqueue under way.
    chain: Option<EnqueueChain>,
    /// Tasks that it has taken off queues and not queued yet.
    detached: Vec<Pid>,
    /// Its running task has just been accounted: an enqueue without another task's name is its own.
    accounted: bool,
    /// The first weight that was changed since the last enqueue.
    reweighted: Option<u64>,
}

/// Collects what a trace shows of groups.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    events: u64,
    reporters: BTreeMap<Cpu, CpuReports>,
    /// Where tasks of groups are queued.
    queued: BTreeMap<Pid, Cpu>,
    /// Of the tasks in groups: how often how many groups were placed with it where no other was queued.
    alone: BTreeMap<Pid, BTreeMap<usize, u64>>,
    /// How often how many groups were placed with the first where the second alone was queued.
    beside: BTreeMap<(Pid, Pid), BTreeMap<usize, u64>>,
    moves: Vec<EnqueueChain>,
}

impl Sink for Evidence {
    fn event(&mut self, event: &Event<'_>) {
        self.events += 1;
        match event.kind {
            EventKind::SchedPlace(place) if place.pid.is_idle() => self.place_group(event, place.cpu),
            EventKind::SchedPlace(place) => {
                self.finish(event.cpu);
                self.begin(event, place.pid, place.cpu);
            }
            EventKind::Other { name, .. } if name == UntypedTracepoint::SchedReweight.name() => {
                let number = self.events;
                self.reporter(event.cpu).reweighted.get_or_insert(number);
            }
            EventKind::SchedStatRuntime { pid, .. } => {
                self.reporter(event.cpu).accounted = pid == event.context.pid;
            }
            // What else one enqueue reports.
            EventKind::SchedStatSleep(_) | EventKind::SchedStatBlocked(_) | EventKind::SchedStatIowait(_) => {
            }
            EventKind::Other { name, .. } if name == UntypedTracepoint::SchedDeadlinePassed.name() => {}
            _ => {
                self.finish(event.cpu);
                self.follow(event);
            }
        }
    }
}

impl Evidence {
    fn reporter(&mut self, cpu: Cpu) -> &mut CpuReports {
        self.reporters.entry(cpu).or_default()
    }

    fn begin(&mut self, event: &Event<'_>, pid: Pid, cpu: Cpu) {
        let number = self.events;
        let by_itself = pid == event.context.pid;
        let reporter = self.reporter(event.cpu);
        let first = reporter.reweighted.take().filter(|_| by_itself).unwrap_or(number);
        reporter.detached.retain(|detached| *detached != pid);
        reporter.chain = Some(EnqueueChain { pid, cpu, event: first, groups: 0, by_itself });
    }

    fn place_group(&mut self, event: &Event<'_>, cpu: Cpu) {
        let reporter = self.reporter(event.cpu);
        if reporter.chain.as_ref().is_none_or(|chain| chain.cpu != cpu) {
            // Kernels that place tasks only when they wake name no task here.
            let own = reporter.accounted.then_some(event.context.pid);
            let Some(pid) = reporter.detached.pop().or(own) else { return };
            self.finish(event.cpu);
            self.begin(event, pid, cpu);
        }
        if let Some(chain) = &mut self.reporter(event.cpu).chain {
            chain.groups += 1;
        }
    }

    fn follow(&mut self, event: &Event<'_>) {
        let reporter = self.reporter(event.cpu);
        (reporter.accounted, reporter.reweighted) = (false, None);
        match event.kind {
            EventKind::SchedSwitch(switch) => {
                reporter.detached.clear();
                if !switch.prev_state.is_runnable() {
                    self.queued.remove(&switch.prev_pid);
                }
            }
            EventKind::SchedMigrateTask { pid, .. } => {
                reporter.detached.push(pid);
                self.queued.remove(&pid);
            }
            EventKind::SchedProcessFork { pid, child_pid, .. } => {
                if let Some(counts) = self.alone.get(&pid).cloned() {
                    self.alone.insert(child_pid, counts);
                    self.beside.entry((child_pid, pid)).or_default().insert(0, 1);
                }
            }
            _ => {}
        }
    }

    /// The enqueue that a CPU has reported is over.
    fn finish(&mut self, by: Cpu) {
        let Some(chain) = self.reporter(by).chain.take() else { return };
        let moved = chain.by_itself && chain.groups > 0 && !self.alone.contains_key(&chain.pid);
        if moved {
            self.moves.push(chain.clone());
        } else if !self.alone.contains_key(&chain.pid) {
            // In the root group.
            return;
        }
        let mut others = self.queued.iter().filter(|(pid, cpu)| **cpu == chain.cpu && **pid != chain.pid);
        if let (Some((&other, _)), None) = (others.next(), others.next()) {
            let counts = self.beside.entry((chain.pid, other)).or_default();
            *counts.entry(chain.groups).or_default() += 1;
        }
        let is_alone = !self.queued.iter().any(|(pid, cpu)| *cpu == chain.cpu && *pid != chain.pid);
        let counts = self.alone.entry(chain.pid).or_default();
        *counts.entry(chain.groups).or_default() += u64::from(is_alone);
        self.queued.insert(chain.pid, chain.cpu);
    }

    /// How many groups a task is in, one inside the other. Reports of several enqueues may look like one, so the usual
    /// count stands.
    fn depth(&self, pid: Pid) -> usize {
        let counts = self.alone.get(&pid).into_iter().flatten();
        counts.max_by_key(|(_, times)| **times).map_or(0, |(&groups, _)| groups)
    }

    /// What the whole trace tells.
    pub fn conclude(self) -> Hierarchy {
        let mut shared: BTreeMap<(Pid, Pid), usize> = BTreeMap::new();
        for (&(one, other), counts) in &self.beside {
            let fewest = counts.keys().next().copied().unwrap_or(0);
            let levels = self.depth(one).saturating_sub(fewest);
            let known = shared.entry((one.min(other), one.max(other))).or_default();
            *known = (*known).max(levels);
        }
        let mut paths = BTreeSet::new();
        let mut moves = BTreeMap::new();
        for chain in &self.moves {
            let depth = self.depth(chain.pid);
            let mut path = String::new();
            for level in 1..=depth {
                let first = first_sharing(chain.pid, level, &shared);
                path = format!("{path}/{level}-of-{}", first.0);
                paths.insert((level, path.clone()));
            }
            moves.insert(chain.event, (chain.pid, path));
        }
        Hierarchy { paths: paths.into_iter().map(|(_, path)| path).collect(), moves }
    }
}

/// The task of the least number that shares its group at `level` with `pid`, directly or through others.
fn first_sharing(pid: Pid, level: usize, shared: &BTreeMap<(Pid, Pid), usize>) -> Pid {
    let mut reached = BTreeSet::from([pid]);
    loop {
        let before = reached.len();
        for (&(one, other), &levels) in shared {
            if levels >= level && (reached.contains(&one) || reached.contains(&other)) {
                reached.extend([one, other]);
            }
        }
        if reached.len() == before {
            return reached.first().copied().unwrap_or(pid);
        }
    }
}

#[cfg(test)]
mod tests {
    use fairlab_trace::{ReadOptions, read};

    use super::*;

    /// Reads the body of a trace, a line an event: `task-pid cpu event`.
    fn conclude(lines: &str) -> Hierarchy {
        let mut text =
            String::from("# tracer: nop\n#\n#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n");
        for (number, line) in (1..).zip(lines.lines().map(str::trim).filter(|line| !line.is_empty())) {
            let (context, rest) = line.split_once(' ').expect("a task");
            let (cpu, event) = rest.split_once(' ').expect("a CPU");
            text += &format!("{context:>16}     [00{cpu}] d....     1.{number:06}: {event}\n");
        }
        let mut evidence = Evidence::default();
        let source = Box::new(text.as_bytes());
        read(source, &ReadOptions::default(), &mut evidence).expect("a trace");
        evidence.conclude()
    }

    fn place(pid: i32, cpu: u32) -> String {
        let comm = if pid == 0 { "" } else { "x" };
        format!("sched_place: comm={comm} pid={pid} sev=1 sed=1 sel=0 avg=1 min=1 cpu={cpu} nr=1 weight=1024")
    }

    /// An enqueue of `pid` on `cpu` with so many groups, reported by `context` there.
    fn enqueue(context: &str, pid: i32, cpu: u32, groups: usize) -> String {
        let mut lines = format!("{context} {cpu} {}\n", place(pid, cpu));
        for _ in 0..groups {
            lines += &format!("{context} {cpu} {}\n", place(0, cpu));
        }
        lines
    }

    fn wakes(pid: i32, cpu: u32, groups: usize) -> String {
        let woken = format!("<idle>-0 {cpu} sched_wakeup: comm=x pid={pid} prio=120 target_cpu=00{cpu}\n");
        enqueue("<idle>-0", pid, cpu, groups) + &woken
    }

    fn sleeps(pid: i32, cpu: u32) -> String {
        format!(
            "x-{pid} {cpu} sched_switch: prev_comm=x prev_pid={pid} prev_prio=120 prev_state=S ==> \
             next_comm=swapper/{cpu} next_pid=0 next_prio=120\n"
        )
    }

    /// A task moves itself into its group, which is that deep.
    fn moves(pid: i32, cpu: u32, groups: usize) -> String {
        let wait = format!("x-{pid} {cpu} sched_stat_wait: comm=x pid={pid} delay=0 [ns]\n");
        enqueue(&format!("x-{pid}"), pid, cpu, groups) + &wait
    }

    #[test]
    fn levels_that_are_queued_already_are_shared() {
        // 7 and 8 share the outer of two groups; 9 has one of its own beside it.
        let lines = [
            moves(7, 0, 2),
            sleeps(7, 0),
            moves(8, 0, 2),
            sleeps(8, 0),
            moves(9, 1, 1),
            sleeps(9, 1),
            wakes(7, 0, 2),
            wakes(8, 0, 1),
            sleeps(7, 0),
            wakes(9, 0, 1),
            sleeps(8, 0),
            sleeps(9, 0),
            wakes(12, 0, 0),
        ];
        let hierarchy = conclude(&lines.concat());
        assert_eq!(hierarchy.paths, ["/1-of-7", "/1-of-9", "/1-of-7/2-of-7", "/1-of-7/2-of-8"]);
        let moved = hierarchy.moves.values().map(|(pid, path)| (pid.0, path.as_str())).collect::<Vec<_>>();
        assert_eq!(moved, [(7, "/1-of-7/2-of-7"), (8, "/1-of-7/2-of-8"), (9, "/1-of-9")]);
        assert_eq!(hierarchy.moves.keys().next(), Some(&1));
    }

    #[test]
    fn without_groups_there_is_no_hierarchy() {
        let lines = [wakes(7, 0, 0), sleeps(7, 0), wakes(8, 0, 0)];
        assert_eq!(conclude(&lines.concat()), Hierarchy::default());
    }
}
