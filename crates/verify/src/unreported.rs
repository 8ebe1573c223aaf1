//! Wakeups in traces without `sched_wakeup`, as from `perf sched record`: each is found from `sched_waking`,
//! `sched_migrate_task` and later events, and inserted at its place among the events.
//!
//! A kernel reports the event when the task has been queued. The waking code has interrupts off until then. So the next report of
//! its CPU belongs to that step or follows it. The step may be a move to another CPU, a charge of the running task, or the end of
//! the sleep. If the chosen CPU queues the task, that CPU's reports show it.
//!
//! Must not know: what the model decides.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fairlab_event::{Cpu, Pid, Wakeup};

use super::record::{EventRecord, RecordKind};

/// With so many tasks being woken and no wakeup reported, none is recorded.
const WAKINGS_TO_TELL: u64 = 64;

/// How many events are held at most for what is still to be concluded.
const HELD_MAX: usize = 1 << 14;

/// Passes events on, with the wakeups that are missing put between them.
#[derive(Debug, Default)]
pub(super) struct WakeupRestorer {
    /// Whether a task that blocks while being woken leaves its CPU in the state `R`, and its sleep is not counted (up to v5.17).
    prev_state_may_lie: bool,
    /// Whether wakeups are recorded; `None` as long as nothing tells.
    recorded: Option<bool>,
    wakings: u64,
    held: VecDeque<HeldRecord>,
    /// Position in the trace of the first event that is held.
    start: u64,
    open: Vec<OpenWakeup>,
    running: BTreeMap<Cpu, Pid>,
    /// Tasks that had to leave a CPU, and so are still queued.
    waiting: BTreeSet<Pid>,
    /// Whether the trace says when sleeps end (`kernel.sched_schedstats`).
    sleeps_end: bool,
    ready: VecDeque<EventRecord>,
}

/// An event that is held, and the wakeups that come before and after it.
#[derive(Debug)]
struct HeldRecord {
    record: EventRecord,
    before: Vec<EventRecord>,
    after: Vec<EventRecord>,
}

/// A wakeup that has begun.
#[derive(Debug)]
struct OpenWakeup {
    waking: EventRecord,
    wakeup: Wakeup,
    began: u64,
    /// The last event of the waker's step.
    last: u64,
    /// Whether the task that runs at the target has been accounted in it.
    charged: bool,
    /// Whether the waker's CPU has gone on to something else.
    is_over: bool,
    /// What the task does when it is woken.
    found: WokenState,
    /// Whether it has blocked since, and its sleep is not counted.
    blocked: bool,
    /// The first event of another CPU that was chosen.
    at_target: Option<u64>,
    /// What queues the task there accounts the running task.
    charged_there: Option<u64>,
}

/// What a task does that is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WokenState {
    Asleep,
    /// It waits for a CPU or runs on: it is on its queue, and its waker leaves it there.
    Queued,
    /// It still runs, or is about to leave its CPU.
    Running,
    /// It has left its CPU since it began to be woken.
    Left,
}

/// Where a wakeup belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WakeupPosition {
    Before(u64),
    After(u64),
}

impl WakeupRestorer {
    pub fn new(prev_state_may_lie: bool) -> WakeupRestorer {
        WakeupRestorer { prev_state_may_lie, ..WakeupRestorer::default() }
    }

    /// Takes the next event.
    pub fn push(&mut self, record: EventRecord) {
        match (&record.what, self.recorded) {
            (RecordKind::Wakeup(_), None) => {
                self.recorded = Some(true);
                self.ready.extend(self.held.drain(..).map(|held| held.record));
            }
            (RecordKind::Waking(_), None) => self.wakings += 1,
            _ => {}
        }
        if self.recorded == Some(true) {
            self.ready.push_back(record);
            return;
        }
        self.held.push_back(HeldRecord { record, before: Vec::new(), after: Vec::new() });
        self.follow_last();
        if self.wakings == WAKINGS_TO_TELL || self.held.len() > HELD_MAX {
            self.recorded = Some(false);
        }
        if self.held.len() > HELD_MAX {
            self.settle_first();
        }
        self.release();
    }

    /// The trace is at its end.
    pub fn close(&mut self) {
        self.recorded.get_or_insert(self.wakings == 0);
        while !self.open.is_empty() {
            self.settle_first();
        }
        self.release();
    }

    /// The next event that goes on.
    pub fn pop(&mut self) -> Option<EventRecord> {
        self.ready.pop_front()
    }

    /// Whether wakeups are not recorded, and concluded.
    pub fn concludes(&self) -> bool {
        self.recorded == Some(false)
    }

    /// Puts the wakeups in their places that the last event shows.
    fn follow_last(&mut self) {
        let position = self.start + self.held.len() as u64 - 1;
        let Some(record) = self.held.back().map(|held| held.record.clone()) else { return };
        self.sleeps_end |= matches!(record.what, RecordKind::SleepEnds(_));
        let mut settled = Vec::new();
        for (index, open) in self.open.iter_mut().enumerate() {
            let ran = self.running.get(&open.wakeup.target_cpu).copied();
            settled.extend(open.follow(&record, position, ran, self.sleeps_end).map(|place| (index, place)));
        }
        for (removed, (index, place)) in settled.into_iter().enumerate() {
            let open = self.open.remove(index - removed);
            self.put(&open, place);
        }
        if let RecordKind::Waking(wakeup) = record.what {
            let runs = self.running.get(&wakeup.target_cpu) == Some(&wakeup.pid);
            let found = match self.waiting.contains(&wakeup.pid) {
                true => WokenState::Queued,
                false if runs => WokenState::Running,
                false => WokenState::Asleep,
            };
            self.open.push(OpenWakeup::new(&record, wakeup, position, found));
        }
        self.follow_switch(&record);
    }

    fn follow_switch(&mut self, record: &EventRecord) {
        let RecordKind::Switch(switch) = record.what else {
            self.running.insert(record.cpu, record.context);
            return;
        };
        self.running.insert(record.cpu, switch.next_pid);
        self.waiting.remove(&switch.next_pid);
        self.waiting.remove(&switch.prev_pid);
        let may_lie = self.prev_state_may_lie && !switch.prev_state.is_preempted();
        if switch.prev_state.is_runnable() && !may_lie {
            self.waiting.insert(switch.prev_pid);
        }
        let left = self.open.iter_mut().filter(|open| may_lie && open.wakeup.pid == switch.prev_pid);
        left.for_each(|open| open.blocked = true);
    }

    /// Puts the oldest one where it belongs as far as the events show by now.
    fn settle_first(&mut self) {
        if !self.open.is_empty() {
            let open = self.open.remove(0);
            self.put(&open, open.place(self.sleeps_end));
        }
    }

    fn put(&mut self, open: &OpenWakeup, place: WakeupPosition) {
        let (WakeupPosition::Before(position) | WakeupPosition::After(position)) = place;
        let Some(held) = self.held.get_mut((position - self.start) as usize) else { return };
        let what = RecordKind::Wakeup(open.wakeup);
        match place {
            // What it led to shows in the flags already.
            WakeupPosition::Before(_) => {
                let flags = held.record.flags.without_need_resched();
                held.before.push(EventRecord { what, flags, ..held.record.clone() });
            }
            WakeupPosition::After(_) => held.after.push(EventRecord { what, ..held.record.clone() }),
        }
    }

    /// Hands on what nothing can be put between any more.
    fn release(&mut self) {
        let certain = match (self.recorded, self.wakings) {
            (None, 1..) => return,
            _ => self.open.iter().map(|open| open.began).min().unwrap_or(u64::MAX),
        };
        while self.start < certain {
            let Some(held) = self.held.pop_front() else { break };
            self.start += 1;
            self.ready.extend(held.before.into_iter().chain([held.record]).chain(held.after));
        }
    }
}

impl OpenWakeup {
    fn new(waking: &EventRecord, wakeup: Wakeup, position: u64, found: WokenState) -> OpenWakeup {
        OpenWakeup {
            waking: waking.clone(),
            wakeup,
            began: position,
            last: position,
            charged: false,
            is_over: false,
            found,
            blocked: false,
            at_target: None,
            charged_there: None,
        }
    }

    /// Where the wakeup belongs if `record` shows it; `running` is the task that ran at the target until then.
    fn follow(
        &mut self,
        record: &EventRecord,
        position: u64,
        running: Option<Pid>,
        sleeps_end: bool,
    ) -> Option<WakeupPosition> {
        let woken = self.wakeup.pid;
        if matches!(record.what, RecordKind::SleepEnds(pid) if pid == woken) {
            return Some(WakeupPosition::After(position));
        }
        let charged = match record.what {
            RecordKind::Runtime { pid, .. } if self.is_fair() => Some(pid).filter(|_| Some(pid) == running),
            _ => None,
        };
        if self.is_part(record, charged.is_some()) {
            self.last = position;
            return None;
        }
        let left = self.found == WokenState::Running
            && matches!(record.what, RecordKind::Switch(switch) if switch.prev_pid == woken);
        let idles = record.cpu == self.wakeup.target_cpu
            && matches!(record.what, RecordKind::Switch(switch) if switch.next_pid.is_idle());
        if left {
            self.found = WokenState::Left;
        }
        if left || idles {
            // It is not queued there yet.
            (self.at_target, self.charged_there) = (None, None);
        } else if record.cpu == self.wakeup.target_cpu && !self.stays() {
            self.at_target.get_or_insert(position);
            if charged.is_some() && record.flags.in_hardirq() {
                self.charged_there.get_or_insert(position);
            }
        }
        // A task that runs on until a tick, or is woken again without having left, had not been asleep.
        let woken_again = matches!(record.what, RecordKind::Waking(wakeup) if wakeup.pid == woken);
        let in_tick = charged == Some(woken) && record.flags.in_hardirq();
        let runs_on = self.is_over && self.found == WokenState::Running && in_tick;
        if runs_on || woken_again && self.found != WokenState::Asleep {
            self.found = WokenState::Queued;
        }
        let shown = woken_again || self.is_shown_by(record) || self.is_over && self.is_certain(sleeps_end);
        shown.then(|| self.place(sleeps_end))
    }

    /// Whether an event is part of the waker's step; else it may be what that CPU goes on with.
    fn is_part(&mut self, record: &EventRecord, charges: bool) -> bool {
        if record.cpu != self.waking.cpu || self.is_over {
            return false;
        }
        match record.what {
            RecordKind::Migrate { pid, dest, .. } if pid == self.wakeup.pid => {
                self.wakeup.target_cpu = dest;
                (self.at_target, self.charged_there) = (None, None);
                true
            }
            RecordKind::Runtime { .. } if charges && !self.charged && self.is_alike(record) => {
                self.charged = true;
                true
            }
            RecordKind::IoWaitEnds(pid) if pid == self.wakeup.pid => true,
            RecordKind::Probe(_) | RecordKind::OtherProbe | RecordKind::Interrupts { .. } => false,
            _ => {
                self.is_over = true;
                false
            }
        }
    }

    /// Whether the task is queued where it is woken, so that the waker does it.
    fn stays(&self) -> bool {
        self.wakeup.target_cpu == self.waking.cpu
    }

    fn is_fair(&self) -> bool {
        self.wakeup.prio.nice().is_some()
    }

    /// Whether an event comes from the context that the waker was in.
    fn is_alike(&self, record: &EventRecord) -> bool {
        let context = |record: &EventRecord| (record.flags.in_hardirq(), record.flags.in_softirq());
        context(record) == context(&self.waking)
    }

    /// Whether an event shows that the task has been queued before.
    fn is_shown_by(&self, record: &EventRecord) -> bool {
        match record.what {
            RecordKind::Switch(switch) => switch.next_pid == self.wakeup.pid,
            RecordKind::Migrate { pid, .. } => pid == self.wakeup.pid,
            _ => false,
        }
    }

    /// Whether the waker queues the task itself, or has found it queued.
    fn is_queued_by_waker(&self) -> bool {
        self.charged || self.stays() || self.found == WokenState::Queued
    }

    /// Whether nothing that comes can tell another place, now that the waker has gone on.
    fn is_certain(&self, sleeps_end: bool) -> bool {
        let arrives = !(sleeps_end && self.is_fair()) && self.charged_there.is_some();
        self.is_queued_by_waker() || arrives && self.found == WokenState::Asleep
    }

    /// Where it belongs by what has been seen: with the waker, or at the CPU that it was left to.
    fn place(&self, sleeps_end: bool) -> WakeupPosition {
        // A sleeper of which no end of sleep is reported had stayed on its queue, and is woken there at once; or it blocked
        // while it was being woken, and its sleep was not counted.
        let had_stayed = sleeps_end && self.is_fair() && !self.blocked;
        match (self.charged_there, self.at_target) {
            _ if self.is_queued_by_waker() || had_stayed || self.found == WokenState::Running => {
                WakeupPosition::After(self.last)
            }
            (Some(position), _) => WakeupPosition::After(position),
            (None, Some(position)) => WakeupPosition::Before(position),
            (None, None) => WakeupPosition::After(self.last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlab_event::{Comm, Flags, Ns, Prio, Switch, TaskState};

    const NORMAL: Prio = Prio(120);
    const WOKEN: Pid = Pid(7);

    fn at(cpu: u32, context: i32, flags: &str, what: RecordKind) -> EventRecord {
        EventRecord {
            number: 0,
            time: Ns(0),
            cpu: Cpu(cpu),
            context: Pid(context),
            comm: Comm::default(),
            flags: Flags::new(flags.as_bytes()),
            what,
        }
    }

    fn waking(cpu: u32, context: i32, target: u32) -> EventRecord {
        let wakeup = Wakeup { comm: Comm::default(), pid: WOKEN, prio: NORMAL, target_cpu: Cpu(target) };
        at(cpu, context, "d...", RecordKind::Waking(wakeup))
    }

    fn migrate(cpu: u32, context: i32, dest: u32) -> EventRecord {
        let what = RecordKind::Migrate { pid: WOKEN, prio: NORMAL, orig: Cpu(0), dest: Cpu(dest) };
        at(cpu, context, "d...", what)
    }

    fn runtime(cpu: u32, context: i32, flags: &str, pid: i32) -> EventRecord {
        at(cpu, context, flags, RecordKind::Runtime { pid: Pid(pid), runtime: Ns(1), vruntime: None })
    }

    fn switch(cpu: u32, prev: i32, prev_state: TaskState, next: i32) -> EventRecord {
        let what = RecordKind::Switch(Switch {
            prev_comm: Comm::default(),
            prev_pid: Pid(prev),
            prev_prio: NORMAL,
            prev_state,
            next_comm: Comm::default(),
            next_pid: Pid(next),
            next_prio: NORMAL,
        });
        at(cpu, prev, "d...", what)
    }

    fn sleep_ends(cpu: u32, context: i32) -> EventRecord {
        at(cpu, context, "d.h.", RecordKind::SleepEnds(WOKEN))
    }

    /// A letter an event, with the CPU: `w`aking, `m`igrate, `r`untime, `e`nd of sleep, `i`: of a wait for a disk, `s`witch; and `W`akeup, which is
    /// concluded, with the CPU that it is on and its target.
    fn concluded(records: Vec<EventRecord>) -> String {
        concluded_by(WakeupRestorer::new(false), records)
    }

    fn concluded_by(mut unreported: WakeupRestorer, records: Vec<EventRecord>) -> String {
        records.into_iter().for_each(|record| unreported.push(record));
        unreported.close();
        let letter = |record: &EventRecord| match record.what {
            RecordKind::Waking(_) => format!("w{}", record.cpu.0),
            RecordKind::Migrate { .. } => format!("m{}", record.cpu.0),
            RecordKind::Runtime { .. } => format!("r{}", record.cpu.0),
            RecordKind::SleepEnds(_) => format!("e{}", record.cpu.0),
            RecordKind::IoWaitEnds(_) => format!("i{}", record.cpu.0),
            RecordKind::Switch(_) => format!("s{}", record.cpu.0),
            RecordKind::Wakeup(wakeup) => format!("W{}>{}", record.cpu.0, wakeup.target_cpu.0),
            _ => "?".to_string(),
        };
        std::iter::from_fn(|| unreported.pop()).map(|record| letter(&record)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_waker_queues_after_what_it_accounts_for_that() {
        let own = vec![waking(0, 1, 0), runtime(0, 1, "d...", 1), runtime(0, 1, "dN..", 1)];
        assert_eq!(concluded(own), "w0 r0 W0>0 r0");
        let elsewhere = vec![
            switch(1, 0, TaskState::RUNNABLE, 2),
            waking(0, 1, 0),
            migrate(0, 1, 1),
            runtime(0, 1, "d...", 2),
            runtime(0, 1, "d...", 1),
        ];
        assert_eq!(concluded(elsewhere), "s1 w0 m0 r0 W0>1 r0");
    }

    #[test]
    fn the_end_of_sleep_tells_who_queues() {
        let list =
            vec![waking(0, 1, 1), runtime(0, 1, "d...", 1), sleep_ends(1, 2), runtime(1, 2, "dN..", 2)];
        assert_eq!(concluded(list), "w0 r0 e1 W1>1 r1");
        // Where others' sleeps are reported to end, and this one's is not, it had stayed on its queue.
        let mut stayed = vec![sleep_ends(1, 2), waking(0, 1, 1), runtime(0, 1, "d...", 1)];
        stayed.extend([runtime(1, 2, "d.h.", 2), switch(1, 2, TaskState::INTERRUPTIBLE, WOKEN.0)]);
        assert_eq!(concluded(stayed), "e1 w0 W0>1 r0 r1 s1");
    }

    /// `sched_stat_iowait` comes before `sched_stat_blocked`, and is part of the same step.
    #[test]
    fn a_wait_for_a_disk_ends_with_its_sleep() {
        let disk = at(0, 1, "d.h.", RecordKind::IoWaitEnds(WOKEN));
        let woken = vec![waking(0, 1, 0), runtime(0, 1, "d...", 1), disk, sleep_ends(0, 1)];
        assert_eq!(concluded([woken, vec![runtime(0, 1, "dN..", 1)]].concat()), "w0 r0 i0 e0 W0>0 r0");
    }

    #[test]
    fn without_ends_of_sleep_the_target_shows_it() {
        let idle =
            vec![waking(0, 1, 1), switch(1, 0, TaskState::RUNNABLE, WOKEN.0), runtime(0, 1, "d...", 1)];
        assert_eq!(concluded(idle), "w0 W1>1 s1 r0");
        let busy = vec![
            switch(1, 0, TaskState::RUNNABLE, 2),
            waking(0, 1, 1),
            runtime(0, 1, "d.h.", 1),
            runtime(1, 2, "d.h.", 2),
            runtime(1, 2, "dN..", 2),
        ];
        assert_eq!(concluded(busy), "s1 w0 r0 r1 W1>1 r1");
    }

    #[test]
    fn who_waits_or_runs_on_is_left_where_it_is() {
        let waits = vec![
            switch(1, WOKEN.0, TaskState::RUNNABLE, 2),
            waking(0, 1, 1),
            runtime(0, 1, "d.h.", 1),
            runtime(1, 2, "d.h.", 2),
        ];
        assert_eq!(concluded(waits), "s1 w0 W0>1 r0 r1");
        let runs = vec![
            switch(1, 2, TaskState::RUNNABLE, WOKEN.0),
            waking(0, 1, 1),
            runtime(0, 1, "d.h.", 1),
            runtime(1, WOKEN.0, "d.h.", WOKEN.0),
        ];
        assert_eq!(concluded(runs), "s1 w0 W0>1 r0 r1");
        // It was about to leave, which shows as `R` in old kernels, and is queued by what comes for it.
        let leaves = vec![
            switch(1, 2, TaskState::RUNNABLE, WOKEN.0),
            sleep_ends(2, 3),
            waking(0, 1, 1),
            runtime(1, WOKEN.0, "d...", WOKEN.0),
            switch(1, WOKEN.0, TaskState::RUNNABLE, 2),
            runtime(1, 2, "d.h.", 2),
            switch(1, 2, TaskState::RUNNABLE, WOKEN.0),
        ];
        assert_eq!(concluded_by(WakeupRestorer::new(true), leaves), "s1 e2 w0 r1 s1 r1 W1>1 s1");
    }

    #[test]
    fn traces_that_have_wakeups_pass_as_they_are() {
        let mut unreported = WakeupRestorer::new(false);
        let RecordKind::Waking(wakeup) = waking(0, 1, 0).what else { panic!("a waking") };
        for record in [waking(0, 1, 0), at(0, 1, "dN..", RecordKind::Wakeup(wakeup)), waking(0, 1, 0)] {
            unreported.push(record);
        }
        assert_eq!(std::iter::from_fn(|| unreported.pop()).count(), 3);
        unreported.close();
        assert!(!unreported.concludes() && unreported.pop().is_none());
    }
}
