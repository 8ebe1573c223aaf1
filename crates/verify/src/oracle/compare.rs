//! What both hold of a CPU after an occurrence, member by member.
//!
//! Must not know: in which calls it came about.

use fairlab_event::{Cpu, Event, EventKind, Pid};
use fairlab_kernel::struct_members::{StructMember, StructMembers};
use fairlab_kernel::{GroupId, TaskId};
use fairlab_sim::Inspect;

use super::{Oracle, OracleCheck, OracleDifference};

/// A task that was moved: its id, from where, to where.
pub(super) type MovedTask = (Pid, Cpu, Cpu);

/// Which CPUs an event touches, and what it moves.
pub(super) fn note(event: &Event<'_>, touched: &mut Vec<Cpu>, moved: &mut Vec<MovedTask>) {
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
type CpuMembers = Vec<(String, StructMembers)>;

/// What differs, in words: of what, and what the two hold or do.
pub(super) struct DifferenceInWords {
    subject: String,
    leader: String,
    follower: String,
}

impl DifferenceInWords {
    pub fn new(
        subject: impl Into<String>,
        leader: &impl ToString,
        follower: &impl ToString,
    ) -> DifferenceInWords {
        DifferenceInWords {
            subject: subject.into(),
            leader: leader.to_string(),
            follower: follower.to_string(),
        }
    }
}

impl<L: Inspect, F: Inspect> Oracle<L, F> {
    /// Counts one comparison; where it fails, it is the first difference, and only then is it put in words.
    pub(super) fn judge(
        &mut self,
        check: OracleCheck,
        cpu: Cpu,
        agree: bool,
        told: impl FnOnce(&Self) -> DifferenceInWords,
    ) {
        if !self.agrees() {
            return;
        }
        self.findings.count(check, agree);
        if agree {
            return;
        }
        let DifferenceInWords { subject, leader, follower } = told(self);
        let state = self.state_of(cpu);
        let (time_ns, cpu, call) = (self.here.2.0, cpu.0, self.call.to_string());
        self.findings.first =
            Some(OracleDifference { time_ns, cpu, call, check, subject, leader, follower, state });
    }

    /// Which tasks were moved in this occurrence, and where to.
    pub(super) fn compare_moves(&mut self, ours: &[MovedTask], theirs: &[MovedTask]) {
        if ours.is_empty() && theirs.is_empty() {
            return;
        }
        let cpu = self.here.0;
        let shown = |moves: &[MovedTask]| {
            let one = |(pid, from, to): &MovedTask| format!("{} from CPU {} to {}", pid.0, from.0, to.0);
            if moves.is_empty() {
                "none".to_string()
            } else {
                moves.iter().map(one).collect::<Vec<_>>().join(", ")
            }
        };
        self.judge(OracleCheck::Balance, cpu, ours == theirs, |_| {
            DifferenceInWords::new("tasks moved", &shown(ours), &shown(theirs))
        });
    }

    /// The follower's requests are made; both must have interrupted equal CPUs.
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
        self.judge(OracleCheck::Interrupt, cpu, lone.is_none(), |_| {
            let (to, by_follower) = lone.unwrap_or((cpu, false));
            let sent = |sends: bool| if sends { "sent" } else { "not sent" };
            DifferenceInWords::new(
                format!("interrupt of CPU {}", to.0),
                &sent(!by_follower),
                &sent(by_follower),
            )
        });
        if let Some((on, expires)) = self.messages.overdue(now) {
            let expires = format!("expires at {} ns", expires.0);
            self.judge(OracleCheck::Interrupt, cpu, false, |_| {
                DifferenceInWords::new(format!("timer on CPU {}", on.0), &"does not run", &expires)
            });
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
        let agree = ours.iter().map(|&task| self.follower_of(task)).eq(theirs.iter().map(|&task| Some(task)));
        self.judge(OracleCheck::Balance, cpu, agree, |oracle| {
            let ours = ours.iter().map(|&task| oracle.name_of(task)).collect::<Vec<_>>().join(" ");
            let theirs = theirs.iter().map(|&task| oracle.follower_name(task)).collect::<Vec<_>>().join(" ");
            DifferenceInWords::new("cfs_tasks", &ours, &theirs)
        });
        for (subject, ours, theirs) in self.both_show(cpu, &ours) {
            self.compare_members(cpu, &subject, &ours, &theirs);
        }
    }

    /// Compares the members that both show.
    fn compare_members(&mut self, cpu: Cpu, subject: &str, ours: &StructMembers, theirs: &StructMembers) {
        for &(member, ours) in ours {
            let Some(&(_, theirs)) = theirs.iter().find(|(other, _)| *other == member) else { continue };
            if !self.agrees() {
                return;
            }
            if ours == theirs {
                self.findings.count(OracleCheck::of(member), true);
            } else {
                self.judge(OracleCheck::of(member), cpu, false, |_| {
                    DifferenceInWords::new(format!("{subject} {}", member.name()), &ours, &theirs)
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

    /// What both hold of a CPU, subject by subject; `tasks`: the leader's on its fair queue.
    fn both_show(&self, cpu: Cpu, tasks: &[TaskId]) -> Vec<(String, StructMembers, StructMembers)> {
        let groups = (0..self.groups.len() as u32).map(GroupId);
        let ours = shown_by(&self.leader, cpu, groups, tasks.iter().copied());
        let followers = tasks.iter().filter_map(|&task| self.follower_of(task));
        let theirs = shown_by(&self.follower, cpu, self.groups.iter().copied(), followers);
        ours.into_iter().zip(theirs).map(|((subject, ours), (_, theirs))| (subject, ours, theirs)).collect()
    }

    /// All that both hold of a CPU, for a message.
    fn state_of(&self, cpu: Cpu) -> Vec<(String, String, String)> {
        let mut state = Vec::new();
        let (tasks, _) = self.lists_of(cpu);
        for (subject, ours, theirs) in self.both_show(cpu, &tasks) {
            for member in StructMember::ALL {
                let of = |members: &StructMembers| {
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
) -> CpuMembers {
    let show = |subject: String, fill: &dyn Fn(&mut StructMembers)| {
        let mut members = StructMembers::new();
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
