//! What both hold of a CPU after an occurrence, member by member.
//!
//! Must not know: in which calls it came about.

use fairlab_event::{Cpu, Event, EventKind, Pid};
use fairlab_kernel::members::{Member, Members};
use fairlab_kernel::{GroupId, TaskId};
use fairlab_sim::Inspect;

use super::{Check, Difference, Oracle};

/// A task that was moved: who, from where, to where.
pub(super) type Move = (Pid, Cpu, Cpu);

/// Which CPUs an event touches, and what it moves.
pub(super) fn note(event: &Event<'_>, touched: &mut Vec<Cpu>, moved: &mut Vec<Move>) {
    let mut touch = |cpu: Cpu| {
        if !touched.contains(&cpu) {
            touched.push(cpu);
        }
    };
    touch(event.cpu);
    match event.kind {
        EventKind::SchedMigrateTask { pid, orig_cpu, dest_cpu, .. } => {
            touch(orig_cpu);
            touch(dest_cpu);
            moved.push((pid, orig_cpu, dest_cpu));
        }
        EventKind::SchedWakeup(wakeup) | EventKind::SchedWakeupNew(wakeup) => touch(wakeup.target_cpu),
        _ => {}
    }
}

/// What one side shows of a CPU: subjects with their members.
type Shown = Vec<(String, Members)>;

impl<L: Inspect, F: Inspect> Oracle<L, F> {
    /// Counts one comparison; where it fails, it is the first difference.
    pub(super) fn judge(
        &mut self,
        check: Check,
        cpu: Cpu,
        agree: bool,
        subject: &str,
        both: impl FnOnce() -> (String, String),
    ) {
        if !self.agrees() {
            return;
        }
        self.findings.count(check, agree);
        if agree {
            return;
        }
        let (leader, follower) = both();
        let state = self.state_of(cpu);
        let (time_ns, cpu, call) = (self.here.2.0, cpu.0, self.call.to_string());
        let subject = subject.to_string();
        self.findings.first =
            Some(Difference { time_ns, cpu, call, check, subject, leader, follower, state });
    }

    /// Which tasks were moved in this occurrence, and where to.
    pub(super) fn compare_moves(&mut self, ours: &[Move], theirs: &[Move]) {
        if ours.is_empty() && theirs.is_empty() {
            return;
        }
        let cpu = self.here.0;
        let shown = |moves: &[Move]| {
            let one = |(pid, from, to): &Move| format!("{} from CPU {} to {}", pid.0, from.0, to.0);
            if moves.is_empty() {
                "none".to_string()
            } else {
                moves.iter().map(one).collect::<Vec<_>>().join(", ")
            }
        };
        self.judge(Check::Balance, cpu, ours == theirs, "tasks moved", || (shown(ours), shown(theirs)));
    }

    /// The follower's requests are made; both must have interrupted the same CPUs.
    pub(super) fn settle(&mut self) {
        let (cpu, _, now) = self.here;
        if self.follower.has_deferred() {
            self.follower.end_of_work(cpu);
        }
        let mut requests = Vec::new();
        self.follower.take_requests(&mut requests);
        requests.into_iter().for_each(|request| self.messages.add(request));
        self.follower.take_marked(&mut Vec::new());
        let lone = self.messages.lone_interrupt();
        let both = |by_follower: bool| {
            let shown = |sends: bool| if sends { "sent" } else { "not sent" }.to_string();
            (shown(!by_follower), shown(by_follower))
        };
        let subject = lone.map_or(String::new(), |(to, _)| format!("interrupt of CPU {}", to.0));
        self.judge(Check::Interrupt, cpu, lone.is_none(), &subject, || both(lone.is_some_and(|(_, by)| by)));
        if let Some((on, expires)) = self.messages.overdue(now) {
            let subject = format!("timer on CPU {}", on.0);
            let both = || ("does not run".to_string(), format!("expires at {} ns", expires.0));
            self.judge(Check::Interrupt, cpu, false, &subject, both);
        }
    }

    /// Compares what both hold of every CPU that was touched.
    pub(super) fn compare_touched(&mut self) {
        for cpu in std::mem::take(&mut self.touched) {
            self.compare_cpu(cpu);
        }
    }

    fn compare_cpu(&mut self, cpu: Cpu) {
        let (ours, theirs) = self.lists_of(cpu);
        let mapped = ours.iter().map(|&task| self.follower_of(task)).collect::<Vec<_>>();
        let agree = mapped.iter().copied().eq(theirs.iter().map(|&task| Some(task)));
        let names = || {
            let ours = ours.iter().map(|&task| self.name_of(task)).collect::<Vec<_>>().join(" ");
            let theirs = theirs.iter().map(|&task| self.follower_name(task)).collect::<Vec<_>>().join(" ");
            (ours, theirs)
        };
        let shown = if agree { (String::new(), String::new()) } else { names() };
        self.judge(Check::Balance, cpu, agree, "cfs_tasks", || shown);
        for ((subject, ours), (_, theirs)) in self.leader_shows(cpu).into_iter().zip(self.follower_shows(cpu))
        {
            self.compare_members(cpu, &subject, &ours, &theirs);
        }
    }

    /// Compares the members that both show.
    fn compare_members(&mut self, cpu: Cpu, subject: &str, ours: &Members, theirs: &Members) {
        for &(member, ours) in ours {
            let Some(&(_, theirs)) = theirs.iter().find(|(other, _)| *other == member) else { continue };
            if !self.agrees() {
                return;
            }
            if ours == theirs {
                self.findings.count(Check::of(member), true);
            } else {
                let subject = format!("{subject} {}", member.name());
                self.judge(Check::of(member), cpu, false, &subject, || {
                    (ours.to_string(), theirs.to_string())
                });
            }
        }
    }

    fn lists_of(&self, cpu: Cpu) -> (Vec<TaskId>, Vec<TaskId>) {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        self.leader.fair_tasks(cpu, &mut ours);
        self.follower.fair_tasks(cpu, &mut theirs);
        (ours, theirs)
    }

    fn leader_shows(&self, cpu: Cpu) -> Shown {
        let groups = (0..self.groups.len() as u32).map(GroupId);
        let (tasks, _) = self.lists_of(cpu);
        shown_by(&self.leader, cpu, groups, tasks.into_iter())
    }

    /// The same subjects of the follower's.
    fn follower_shows(&self, cpu: Cpu) -> Shown {
        let (tasks, _) = self.lists_of(cpu);
        let tasks = tasks.into_iter().filter_map(|task| self.follower_of(task)).collect::<Vec<_>>();
        shown_by(&self.follower, cpu, self.groups.iter().copied(), tasks.into_iter())
    }

    /// All that both hold of a CPU, for a message.
    fn state_of(&self, cpu: Cpu) -> Vec<(String, String, String)> {
        let mut state = Vec::new();
        for ((subject, ours), (_, theirs)) in self.leader_shows(cpu).into_iter().zip(self.follower_shows(cpu))
        {
            for member in Member::ALL {
                let of = |members: &Members| {
                    let found = members.iter().find(|(other, _)| other == member);
                    found.map(|(_, value)| value.to_string())
                };
                if let (Some(ours), Some(theirs)) = (of(&ours), of(&theirs)) {
                    state.push((format!("{subject} {}", member.name()), ours, theirs));
                }
            }
        }
        state
    }

    pub(super) fn name_of(&self, task: TaskId) -> String {
        format!("task {}", task.0)
    }

    /// A task of the follower's by the leader's name.
    pub(super) fn follower_name(&self, task: TaskId) -> String {
        let at = self.tasks.iter().position(|&theirs| theirs == Some(task));
        at.map_or("a task that the leader does not have".to_string(), |at| self.name_of(TaskId(at as u32)))
    }
}

fn shown_by(
    scheduler: &impl Inspect,
    cpu: Cpu,
    groups: impl Iterator<Item = GroupId>,
    tasks: impl Iterator<Item = TaskId>,
) -> Shown {
    let show = |subject: String, fill: &dyn Fn(&mut Members)| {
        let mut members = Members::new();
        fill(&mut members);
        (subject, members)
    };
    let mut shown = vec![show(format!("CPU {}", cpu.0), &|into| scheduler.members_of_rq(cpu, into))];
    for (number, group) in groups.enumerate() {
        let subject = if number == 0 { "root group".to_string() } else { format!("group {number}") };
        shown.push(show(subject, &|into| scheduler.members_of_queue(cpu, group, into)));
    }
    for (number, task) in tasks.enumerate() {
        shown.push(show(format!("task {} of the queue", number + 1), &|into| {
            scheduler.members_of_task(task, into);
        }));
    }
    shown
}
