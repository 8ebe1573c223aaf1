//! What each task did by itself: how long it computed between two sleeps, which tasks it woke and created, what ended its sleeps.
//!
//! A wakeup belongs to the running task if it was reported outside of interrupts. In a softirq it belongs to the running task
//! only if the woken task has woken that task before. The reason: the sender's softirq delivers a message over the loopback
//! device, any task's softirq a packet from the network. Only a sender gets an answer. Every other wakeup belongs to an
//! interrupt.
//!
//! An interrupt ends two kinds of sleep. Either the task asked for a certain length (a timer), or something came from outside
//! at a certain time. No event says which. But the run time between two sleeps varies: so the lengths of timer sleeps vary
//! less than the times between their ends, and those of other sleeps vary more. A disk has a duration of its own.
//!
//! Must not know: what is made of it.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use fairlab_event::{
    Comm, Cpu, Event, EventKind, Ns, Pid, Prio, Sink, System, TaskState, Tracepoint, Wakeup,
};

use crate::statistics::standard_deviation;
use crate::tracker::{Departure, EnteredCpu, LeftCpu, StayOnCpu, Tracker, TrackerChange, UnfinishedStay};
use crate::{Census, MissingEvents, Needs};

static NEEDS: Needs = Needs {
    analysis: "replay",
    required: &[Tracepoint::SchedSwitch],
    one_of: (&[Tracepoint::SchedWaking, Tracepoint::SchedWakeup], "nothing is known of what ended sleeps"),
    useful: &[
        (Tracepoint::SchedWaking, "wakeups that were left to another CPU count as an interrupt's"),
        (Tracepoint::SchedWakeupNew, "tasks that were created meanwhile are there from the beginning"),
    ],
};

/// What a task did next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BehaviourStep {
    /// It computed: so much CPU time.
    Run(Ns),
    /// It woke a task, given by its place.
    Wake(u32),
    /// It slept until a task woke it.
    Block,
    /// It slept until an interrupt woke it, at this time since the first event.
    SleepUntil {
        /// When that was.
        time: Ns,
        /// Whether its sleep was uninterruptible.
        uninterruptible: bool,
    },
    /// As `SleepUntil`, of a sleep whose length does not depend on when it begins.
    SleepFor {
        /// How long it was.
        length: Ns,
        /// When it ended.
        time: Ns,
        /// Whether it was uninterruptible.
        uninterruptible: bool,
    },
    /// It created a task, given by its place.
    Fork(u32),
    /// Its priority is another from here on.
    Prio(Prio),
}

/// A task and what it did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Behaviour {
    /// Its thread id.
    pub pid: Pid,
    /// Its name.
    pub comm: Comm,
    /// Its priority at first.
    pub prio: Prio,
    /// The CPU where it was seen first.
    pub cpu: Option<Cpu>,
    /// The only CPU that it may use, by its name.
    pub pinned: Option<Cpu>,
    /// Whether a task created it.
    pub forked: bool,
    /// What it did, one thing after the other.
    pub deeds: Vec<BehaviourStep>,
}

/// What is known of a task while events come in.
#[derive(Clone, Debug, Default)]
struct BehaviourBuilder {
    behaviour: Behaviour,
    /// CPU time that is not among the deeds yet.
    work: Ns,
    /// All of its CPU time, by switches, and as the kernel charged it.
    ran: Ns,
    charged: Ns,
    /// How much of its present stay on a CPU is in `work`, and which stay that is: the CPU, and the how manieth there.
    counted: Ns,
    stay: Option<(Cpu, u32)>,
    /// Its latest priority.
    prio: Option<Prio>,
    /// Its latest sleep was uninterruptible.
    in_disk_sleep: bool,
    /// Since when it sleeps.
    slept_since: Option<Ns>,
    /// Sleeps that interrupts ended: the deed's place, and how long it was.
    timed: Vec<(usize, Ns)>,
}

/// Fewer sleeps do not tell how alike they are.
const SLEEPS_TO_COMPARE: usize = 4;

impl BehaviourBuilder {
    /// It has run for so long in this stay, as far as events show by now.
    fn ran(&mut self, stay: (Cpu, u32), so_far: Ns) {
        if self.stay.replace(stay) != Some(stay) {
            self.counted = Ns::ZERO;
        }
        let more = so_far.since(self.counted);
        self.counted = self.counted.max(so_far);
        self.work += more;
        self.ran += more;
    }

    /// Where a task begins that another creates, is for the kernel to choose.
    fn is_on(&mut self, cpu: Cpu) {
        if !self.behaviour.forked {
            self.behaviour.cpu.get_or_insert(cpu);
        }
    }

    fn has_prio(&mut self, prio: Prio) {
        match self.prio.replace(prio) {
            None => self.behaviour.prio = prio,
            Some(before) if before != prio => self.does(BehaviourStep::Prio(prio)),
            Some(_) => {}
        }
    }

    fn has_computed(&mut self) {
        if self.work > Ns::ZERO {
            self.behaviour.deeds.push(BehaviourStep::Run(std::mem::take(&mut self.work)));
        }
    }

    fn does(&mut self, deed: BehaviourStep) {
        self.has_computed();
        self.behaviour.deeds.push(deed);
    }

    /// An interrupt has ended its sleep, at `time` since the first event.
    fn is_woken_by_interrupt(&mut self, time: Ns, now: Ns) {
        let uninterruptible = self.in_disk_sleep;
        self.does(BehaviourStep::SleepUntil { time, uninterruptible });
        if let Some(since) = self.slept_since {
            self.timed.push((self.behaviour.deeds.len() - 1, now.since(since)));
        }
    }

    /// Tells apart sleeps that last so long whenever they begin.
    fn tell_sleeps(&mut self) {
        let sets_timers = self.sets_timers();
        for (place, length) in std::mem::take(&mut self.timed) {
            if let BehaviourStep::SleepUntil { time, uninterruptible } = self.behaviour.deeds[place]
                && (uninterruptible || sets_timers)
            {
                self.behaviour.deeds[place] = BehaviourStep::SleepFor { length, time, uninterruptible };
            }
        }
    }

    /// Whether its sleeps are more alike than the times between their ends, by an eighth of the variance.
    fn sets_timers(&self) -> bool {
        let interruptible = |&(place, length): &(usize, Ns)| match self.behaviour.deeds[place] {
            BehaviourStep::SleepUntil { time, uninterruptible: false } => Some((time, length)),
            _ => None,
        };
        let sleeps = self.timed.iter().filter_map(interruptible).collect::<Vec<_>>();
        if sleeps.len() < SLEEPS_TO_COMPARE {
            return false;
        }
        let ns = |time: Ns| time.0 as f64;
        let between = sleeps.windows(2).map(|pair| ns(pair[1].0.since(pair[0].0))).collect::<Vec<_>>();
        let lengths = sleeps[1..].iter().map(|&(_, length)| ns(length)).collect::<Vec<_>>();
        let spreads = standard_deviation(&lengths).zip(standard_deviation(&between));
        spreads.is_some_and(|(lengths, between)| lengths.powi(2) * 1.125 < between.powi(2))
    }
}

/// What the tasks of a recording did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedBehaviours {
    /// What every task did, in order of first appearance.
    pub tasks: Vec<Behaviour>,
    /// How long the recording is.
    pub length: Ns,
    /// The CPU time of these tasks: of each as much as its switches show, or the kernel's charges where that is more.
    pub cpu_time: Ns,
    /// CPU time in holes. Without charges, so much running time may be missing.
    pub hidden: Ns,
    /// What the trace lacks, one clause each.
    pub notices: Vec<String>,
}

impl RecordedBehaviours {
    /// The CPU time that a replay of these tasks computes.
    pub fn replayed(&self) -> Ns {
        let deeds = self.tasks.iter().flat_map(|task| &task.deeds);
        let runs = deeds.map(|deed| if let BehaviourStep::Run(work) = deed { *work } else { Ns::ZERO });
        runs.fold(Ns::ZERO, Ns::saturating_add)
    }

    /// Both times in one line.
    ///
    /// # Errors
    /// They differ by more than 5 %, or may.
    pub fn balance(&self) -> Result<String, String> {
        let (replayed, least) = (self.replayed(), self.cpu_time);
        let most = least.saturating_add(self.hidden);
        let seconds = |time: Ns| format!("{:.4} s", time.as_secs_f64());
        let differs = |one: Ns, other: Ns| {
            one.0.abs_diff(other.0) / TOLERATED_PART > 0
                && u128::from(one.0.abs_diff(other.0)) * u128::from(TOLERATED_PART) > u128::from(other.0)
        };
        if differs(replayed, least) || differs(replayed, most) {
            let recorded = match self.hidden {
                Ns::ZERO => seconds(least),
                _ => format!("{} to {}", seconds(least), seconds(most)),
            };
            return Err(format!(
                "{recorded} of CPU time were recorded and {} would be replayed, more than 5 % apart: events are missing; \
                 record all CPUs (perf record -a) and with larger buffers",
                seconds(replayed)
            ));
        }
        Ok(format!("{} of CPU time recorded, {} of it replayed", seconds(least), seconds(replayed)))
    }
}

/// A replay may leave out, or add, one part in so many of the CPU time.
const TOLERATED_PART: u64 = 20;

/// Takes events and gives what every task did.
#[derive(Clone, Debug, Default)]
pub struct Behaviours {
    tracker: Tracker,
    census: Census,
    /// By the tracker's numbers.
    courses: Vec<BehaviourBuilder>,
    /// When each CPU switched last.
    switched_at: Vec<Ns>,
    /// CPU time in holes.
    hidden: Ns,
    /// Wakers and the tasks that they woke.
    pairs: BTreeSet<(u32, u32)>,
}

impl Behaviours {
    /// What every task did. Left out are those that did nothing, and stopper threads, which do the kernel's own work.
    ///
    /// # Errors
    /// The trace lacks what this is found out from.
    pub fn finish(mut self) -> Result<RecordedBehaviours, MissingEvents> {
        let mut notices = NEEDS.check(&self.census)?;
        notices.extend(self.tracker.notices(self.census.total()));
        let (start, end) = self.tracker.span().unwrap_or_default();
        for stay in self.tracker.last_stays().collect::<Vec<_>>() {
            self.count(stay);
        }
        for task in 0..self.courses.len() as u32 {
            let course = &mut self.courses[task as usize];
            course.has_computed();
            course.tell_sleeps();
            let known = self.tracker.task(task);
            course.behaviour.pid = known.pid;
            course.behaviour.comm = known.comm;
            course.behaviour.pinned = known.pinned_to();
            course.has_prio(known.prio);
        }
        let kept = self.courses.iter().filter(|course| !is_stopper(course.behaviour.comm));
        let cpu_time = kept.fold(Ns::ZERO, |sum, course| sum.saturating_add(course.ran.max(course.charged)));
        let is_charged = self.census.has(Tracepoint::SchedStatRuntime);
        let hidden = if is_charged { Ns::ZERO } else { self.hidden };
        let tasks = self.numbered_anew();
        Ok(RecordedBehaviours { tasks, length: end.since(start), cpu_time, hidden, notices })
    }

    /// Tasks that did something, numbered in their order.
    fn numbered_anew(self) -> Vec<Behaviour> {
        let counts = |course: &BehaviourBuilder| {
            !course.behaviour.deeds.is_empty() && !is_stopper(course.behaviour.comm)
        };
        let mut places = Vec::with_capacity(self.courses.len());
        let mut kept = 0;
        for course in &self.courses {
            places.push(counts(course).then_some(kept));
            kept += u32::from(counts(course));
        }
        let renumbered = |deed: BehaviourStep| match deed {
            BehaviourStep::Wake(whom) => places[whom as usize].map(BehaviourStep::Wake),
            BehaviourStep::Fork(whom) => places[whom as usize].map(BehaviourStep::Fork),
            other => Some(other),
        };
        let behaviours = self.courses.into_iter().filter(counts).map(|course| course.behaviour);
        behaviours
            .map(|one| Behaviour { deeds: one.deeds.into_iter().filter_map(renumbered).collect(), ..one })
            .collect()
    }

    fn course(&mut self, task: u32) -> &mut BehaviourBuilder {
        let index = task as usize;
        if self.courses.len() <= index {
            self.courses.resize_with(index + 1, BehaviourBuilder::default);
        }
        &mut self.courses[index]
    }

    /// The first event's time, which is `now` if there was none before.
    fn start(&self, now: Ns) -> Ns {
        self.tracker.span().map_or(now, |(start, _)| start)
    }

    fn count(&mut self, stay: UnfinishedStay) {
        let UnfinishedStay { task, cpu, number, ran, .. } = stay;
        self.course(task).ran((cpu, number), ran);
    }

    /// Counts the CPU time of a task that runs, as far as events show it by now.
    fn count_shown(&mut self, task: u32) {
        if let Some(stay) = self.tracker.shown_stay(task) {
            self.count(stay);
        }
    }

    /// The task that does what the event reports, unless an interrupt does.
    fn doer(&mut self, event: &Event<'_>, wakee: u32) -> Option<u32> {
        let context = event.context;
        if context.pid.is_idle() || context.flags.in_hardirq() {
            return None;
        }
        let doer = match context.pid {
            Pid::UNKNOWN => self.tracker.cpu(event.cpu).and_then(|cpu| cpu.running)?,
            pid => self.tracker.index_or_new(pid, context.comm),
        };
        let is_own = !context.flags.in_softirq() || self.pairs.contains(&(wakee, doer));
        let is_task = doer != wakee && !is_stopper(self.tracker.task(doer).comm);
        if is_task {
            self.pairs.insert((doer, wakee));
        }
        (is_own && is_task).then_some(doer)
    }

    /// A task is woken, whether it sleeps already or is about to.
    fn woken(&mut self, wakee: u32, wakeup: &Wakeup, event: &Event<'_>) {
        let doer = self.doer(event, wakee);
        self.count_shown(wakee);
        let time = event.time.since(self.start(event.time));
        let course = self.course(wakee);
        course.is_on(wakeup.target_cpu);
        if doer.is_some() {
            course.does(BehaviourStep::Block);
        } else {
            course.is_woken_by_interrupt(time, event.time);
        }
        course.slept_since = None;
        if let Some(doer) = doer {
            self.count_shown(doer);
            self.course(doer).does(BehaviourStep::Wake(wakee));
        }
        self.course(wakee).has_prio(wakeup.prio);
    }

    /// A task that was created begins; its creator is the one that reports it.
    fn begins(&mut self, wakeup: &Wakeup, event: &Event<'_>) {
        let Some(child) = self.tracker.index(wakeup.pid) else { return };
        let parent = self.doer(event, child);
        let course = self.course(child);
        course.has_prio(wakeup.prio);
        if let Some(parent) = parent.filter(|_| !course.behaviour.forked) {
            course.behaviour.forked = true;
            course.behaviour.cpu = None;
            self.count_shown(parent);
            self.course(parent).does(BehaviourStep::Fork(child));
        }
    }

    /// A CPU changes tasks.
    fn switched(
        &mut self,
        cpu: Cpu,
        stay: StayOnCpu,
        left: Option<LeftCpu>,
        entered: Option<EnteredCpu>,
        now: Ns,
    ) {
        let place = cpu.index();
        if self.switched_at.len() <= place {
            self.switched_at.resize(place + 1, stay.seen_since);
        }
        let before = std::mem::replace(&mut self.switched_at[place], stay.to);
        if stay.after_hole {
            self.hidden = self.hidden.saturating_add(stay.seen_since.since(before));
        }
        if let Some(left) = left {
            let number = self.tracker.cpu(cpu).map_or(0, |cpu| cpu.number().wrapping_sub(1));
            self.course(left.task).ran((cpu, number), stay.known());
            self.is_seen(left.task, cpu);
            let course = self.course(left.task);
            course.in_disk_sleep = left.how == Departure::Slept(TaskState::UNINTERRUPTIBLE);
            course.slept_since = matches!(left.how, Departure::Slept(_)).then_some(now);
        }
        if let Some(entered) = entered {
            self.is_seen(entered.task, cpu);
        }
    }

    fn is_seen(&mut self, task: u32, cpu: Cpu) {
        let prio = self.tracker.task(task).prio;
        let course = self.course(task);
        course.has_prio(prio);
        course.is_on(cpu);
    }
}

impl Sink for Behaviours {
    fn event(&mut self, event: &Event<'_>) {
        self.census.event(event);
        let mut woken = None;
        match &event.kind {
            EventKind::SchedWaking(wakeup) => woken = Some(wakeup),
            EventKind::SchedWakeup(wakeup) if !self.tracker.has_waking() => woken = Some(wakeup),
            EventKind::SchedStatRuntime { pid, comm, runtime, .. } => {
                // What was charged may begin before the trace.
                let runtime = (*runtime).min(event.time.since(self.start(event.time)));
                let task = self.tracker.index_or_new(*pid, *comm);
                let charged = &mut self.course(task).charged;
                *charged = charged.saturating_add(runtime);
            }
            _ => {}
        }
        // The woken task is heard of first, the one that wakes it after it.
        let woken = woken.map(|wakeup| (self.tracker.index_or_new(wakeup.pid, wakeup.comm), wakeup));
        let change = self.tracker.event(event);
        for place in 0..self.tracker.vanished().len() {
            self.count(self.tracker.vanished()[place]);
        }
        if let Some((wakee, wakeup)) = woken {
            self.woken(wakee, wakeup, event);
        }
        if let TrackerChange::Switched { cpu, stay, left, entered } = change {
            self.switched(cpu, stay, left, entered, event.time);
        }
        if let EventKind::SchedWakeupNew(wakeup) = &event.kind {
            self.begins(wakeup, event);
        }
    }

    fn system(&mut self, system: &System) {
        self.census.system(system);
        self.tracker.system(system);
    }
}

/// Whether it is a thread of the stop class: another kernel has its own reasons to start them.
fn is_stopper(comm: Comm) -> bool {
    comm.as_bytes().starts_with(b"migration/")
}
