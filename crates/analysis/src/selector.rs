//! What of a trace an answer is about: some of the tasks, a stretch of time.
//!
//! All events up to the stretch's end are followed, whatever is chosen: a wait that began before it is known. What ends in the
//! stretch counts, whole: a wait, a switch, a migration. Of what has a length, the part within the stretch counts: running,
//! idling.
//!
//! Must not know: what is counted.

mod selected_sink;
#[cfg(test)]
mod tests;
mod time_range;

use std::collections::BTreeSet;

use fairlab_event::spelling::closest;
use fairlab_event::{Comm, Event, EventKind, Ns, Pid, Switch, System};

use crate::membership::{Membership, and_above};
use crate::pid_map::PidMap;
use crate::task_selector::{TaskSelector, stem};
pub use selected_sink::SelectedSink;
use time_range::ExactSeconds;
pub use time_range::TimeRange;

/// What an answer is about; by default everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceSelector {
    /// These tasks, all of them together; empty: all tasks.
    pub whose: Vec<TaskSelector>,
    /// This time.
    pub time: TimeRange,
}

impl TraceSelector {
    /// Whether nothing is left out.
    pub const fn is_all(&self) -> bool {
        self.whose.is_empty() && self.time.is_all()
    }
}

/// Nothing of a trace was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NothingChosen {
    /// What is not there.
    pub problem: String,
    /// What is.
    pub hint: String,
}

/// What an event means to an answer about chosen tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SelectedEvent {
    /// The stretch begins, then; said once.
    pub(crate) begins: Option<Ns>,
    /// The stretch has ended, then; said once.
    pub(crate) ends: Option<Ns>,
    /// The event is to be followed: the stretch has not ended before it.
    pub(crate) is_followed: bool,
}

impl SelectedEvent {
    const FOLLOWED: SelectedEvent = SelectedEvent { begins: None, ends: None, is_followed: true };
}

/// Finds out for each event and task whether it is chosen.
#[derive(Clone, Debug)]
pub(crate) struct SelectorState {
    chosen: TraceSelector,
    has_begun: bool,
    has_ended: bool,
    membership: Membership,
    tasks: PidMap<SelectedTask>,
    workload_of: PidMap<String>,
    /// Whether each of those asked for was there.
    was_there: Vec<bool>,
    /// What tasks are called.
    names: BTreeSet<String>,
    /// The first event and the latest.
    span: Option<(Ns, Ns)>,
    /// How many events were about what is chosen.
    hits: u64,
}

/// A task by its latest name.
#[derive(Clone, Copy, Debug, Default)]
struct SelectedTask {
    comm: Comm,
    is_meant: bool,
}

/// How many of the names that are there are listed.
const NEAR: usize = 3;

impl Default for SelectorState {
    fn default() -> SelectorState {
        SelectorState::new(TraceSelector::default())
    }
}

impl SelectorState {
    pub(crate) fn new(chosen: TraceSelector) -> SelectorState {
        let chosen =
            TraceSelector { whose: chosen.whose.into_iter().map(TaskSelector::as_kept).collect(), ..chosen };
        SelectorState {
            has_begun: chosen.time.from.is_none(),
            has_ended: false,
            was_there: vec![false; chosen.whose.len()],
            chosen,
            membership: Membership::default(),
            tasks: PidMap::default(),
            workload_of: PidMap::default(),
            names: BTreeSet::new(),
            span: None,
            hits: 0,
        }
    }

    pub(crate) const fn chosen(&self) -> &TraceSelector {
        &self.chosen
    }

    /// Whether nothing is left out.
    pub(crate) fn is_all(&self) -> bool {
        self.chosen.is_all()
    }

    /// Whether all tasks are chosen.
    pub(crate) fn is_everybody(&self) -> bool {
        self.chosen.whose.is_empty()
    }

    /// The tasks that are chosen; empty: all.
    pub(crate) fn whose(&self) -> &[TaskSelector] {
        &self.chosen.whose
    }

    pub(crate) const fn time(&self) -> TimeRange {
        self.chosen.time
    }

    /// How many events were about what is chosen.
    pub(crate) const fn hits(&self) -> u64 {
        self.hits
    }

    /// Whether a task is chosen, by what it is called now.
    pub(crate) fn means(&self, pid: Pid) -> bool {
        self.is_everybody() || self.tasks.get(&pid).is_some_and(|task| task.is_meant)
    }

    /// Whether what happens to a task now counts.
    pub(crate) fn counts(&self, pid: Pid, now: Ns) -> bool {
        self.is_all() || self.chosen.time.has(now) && self.means(pid)
    }

    /// Takes the groups that there were, and which tasks were in them.
    pub(crate) fn system(&mut self, system: &System) {
        if !self.is_everybody() {
            self.membership.system(system);
            for (pid, _) in &system.members {
                self.judge(*pid);
            }
        }
    }

    /// Takes which workload of a mix a task belongs to.
    pub(crate) fn member(&mut self, pid: Pid, name: &str) {
        if !self.is_everybody() {
            self.workload_of.insert(pid, name.to_string());
            self.judge(pid);
        }
    }

    /// Takes the next event, before it is followed.
    #[inline]
    pub(crate) fn hear(&mut self, event: &Event<'_>) -> SelectedEvent {
        if self.is_all() { SelectedEvent::FOLLOWED } else { self.hear_chosen(event) }
    }

    fn hear_chosen(&mut self, event: &Event<'_>) -> SelectedEvent {
        if !self.is_everybody() {
            self.learn(event);
        }
        if event.kind.is_task_record() {
            return SelectedEvent::FOLLOWED;
        }
        let now = event.time;
        let (first, latest) = self.span.unwrap_or((now, now));
        self.span = Some((first, latest.max(now)));
        if self.chosen.time.has(now) && self.is_about(event) {
            self.hits += 1;
        }
        let is_over = self.chosen.time.to.is_some_and(|to| now > to);
        let begins = self.chosen.time.from.filter(|from| !self.has_begun && now >= *from);
        let ends = self.chosen.time.to.filter(|_| is_over && !self.has_ended);
        self.has_begun |= begins.is_some();
        self.has_ended |= is_over;
        SelectedEvent { begins, ends, is_followed: !is_over }
    }

    /// Refuses what a reader would take for zeros.
    ///
    /// # Errors
    /// Some of those asked for are not in the trace, or nothing of it is chosen.
    pub(crate) fn check(&self) -> Result<(), NothingChosen> {
        let Some((first, last)) = self.span else { return Ok(()) };
        if let Some(who) =
            self.chosen.whose.iter().zip(&self.was_there).find_map(|(who, was)| (!was).then_some(who))
        {
            return Err(self.no_such(who));
        }
        if self.hits > 0 {
            return Ok(());
        }
        let span = format!("the trace goes from {} to {}", ExactSeconds(first), ExactSeconds(last));
        let time = self.chosen.time;
        let problem = match self.is_everybody() {
            true => format!("no event lies in {time}"),
            false => format!("nothing happens to {} in {time}", self.list()),
        };
        Err(NothingChosen { problem, hint: span })
    }

    /// The error of an answer that counts only some of the events, where there are none of these.
    pub(crate) fn none_of(&self, what: &str) -> NothingChosen {
        let of = if self.is_everybody() { String::new() } else { format!(" of {}", self.list()) };
        let time = self.chosen.time;
        let within = if time.is_all() { String::new() } else { format!(" in {time}") };
        let (first, last) = self.span.unwrap_or_default();
        NothingChosen {
            problem: format!("no {what}{of}{within}"),
            hint: format!(
                "the trace goes from {} to {}; choose more of it",
                ExactSeconds(first),
                ExactSeconds(last)
            ),
        }
    }

    fn list(&self) -> String {
        self.chosen.whose.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    fn no_such(&self, who: &TaskSelector) -> NothingChosen {
        let near = |known: &mut dyn Iterator<Item = &str>| closest(&who.to_string(), known, NEAR).join(", ");
        let told = |near: String, nothing: &str| match near.is_empty() {
            true => nothing.to_string(),
            false => format!("closest are {near}"),
        };
        let names = || near(&mut self.names.iter().map(String::as_str));
        let (problem, hint) = match who {
            TaskSelector::Group(path) => (
                format!("no task is in a group {path}"),
                told(near(&mut self.membership.paths()), "the trace tells no groups"),
            ),
            TaskSelector::Pid(pid) => {
                (format!("no task has the id {pid}"), told(names(), "the trace tells no tasks"))
            }
            TaskSelector::Task(name) => {
                (format!("no task is called '{name}'"), told(names(), "the trace tells no tasks"))
            }
            TaskSelector::Workload(name) => (
                format!("no workload is called '{name}'"),
                "a trace does not tell workloads: choose by --task or --group".to_string(),
            ),
        };
        NothingChosen { problem, hint }
    }

    fn is_about(&self, event: &Event<'_>) -> bool {
        self.is_everybody() || tasks_of(&event.kind).into_iter().flatten().any(|(pid, _)| self.means(pid))
    }

    fn learn(&mut self, event: &Event<'_>) {
        for (pid, comm) in tasks_of(&event.kind).into_iter().flatten() {
            self.is_called(pid, comm);
        }
        match event.kind {
            EventKind::TaskName { pid, comm, .. } => self.is_called(pid, comm),
            EventKind::SchedProcessFork { pid, child_pid, child_comm, .. } => {
                self.membership.forked(pid, child_pid);
                if let Some(workload) = self.workload_of.get(&pid).cloned() {
                    self.workload_of.entry(child_pid).or_insert(workload);
                }
                self.tasks.remove(&child_pid);
                self.is_called(child_pid, child_comm);
                self.judge(child_pid);
            }
            _ => {
                if let Some(pid) = self.membership.hear(event) {
                    self.judge(pid);
                }
            }
        }
    }

    fn is_called(&mut self, pid: Pid, comm: Comm) {
        let is_known = self.tasks.get(&pid).is_some_and(|task| task.comm == comm || comm.is_empty());
        if pid.is_idle() || is_known {
            return;
        }
        self.tasks.entry(pid).or_default().comm = comm;
        if !comm.is_empty() {
            self.names.insert(stem(&comm.to_str()).to_string());
        }
        self.judge(pid);
    }

    /// Finds out whether a task is among those that are meant.
    fn judge(&mut self, pid: Pid) {
        let comm = self.tasks.entry(pid).or_default().comm;
        let (comm, path) = (comm.to_str(), self.membership.path(self.membership.of(pid)));
        let workload = self.workload_of.get(&pid);
        let mut is_meant = false;
        for (who, was_there) in self.chosen.whose.iter().zip(&mut self.was_there) {
            let is_its = match who {
                TaskSelector::Group(asked) => asked == "/" || and_above(path).any(|path| path == asked),
                TaskSelector::Workload(name) => workload == Some(name),
                TaskSelector::Task(_) | TaskSelector::Pid(_) => who.means_task(pid, &comm),
            };
            is_meant |= is_its;
            *was_there |= is_its;
        }
        self.tasks.entry(pid).or_default().is_meant = is_meant;
    }
}

/// The tasks that an event is about, with the names that it has for them.
pub(crate) fn tasks_of(kind: &EventKind<'_>) -> [Option<(Pid, Comm)>; 2] {
    match *kind {
        EventKind::SchedSwitch(Switch { prev_pid, prev_comm, next_pid, next_comm, .. }) => {
            [Some((prev_pid, prev_comm)), Some((next_pid, next_comm))]
        }
        EventKind::SchedWaking(wakeup)
        | EventKind::SchedWakeup(wakeup)
        | EventKind::SchedWakeupNew(wakeup) => [Some((wakeup.pid, wakeup.comm)), None],
        EventKind::SchedMigrateTask { pid, comm, .. }
        | EventKind::SchedStatRuntime { pid, comm, .. }
        | EventKind::SchedProcessExit { pid, comm, .. }
        | EventKind::SchedProcessFork { pid, comm, .. } => [Some((pid, comm)), None],
        EventKind::SchedStatWait(stat)
        | EventKind::SchedStatSleep(stat)
        | EventKind::SchedStatBlocked(stat)
        | EventKind::SchedStatIowait(stat) => [Some((stat.pid, stat.comm)), None],
        EventKind::SchedProcessExec { pid, .. } => [Some((pid, Comm::default())), None],
        _ => [None, None],
    }
}
