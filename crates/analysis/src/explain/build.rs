//! From what was noted to a story.
//!
//! Must not know: how stories are printed.

use std::collections::BTreeMap;

use fairlab_event::{Comm, Cpu, Ns, Pid};

use super::Explain;
use super::log::{CpuLogEntry, MovedEntry, RanEntry, TickEntry};
use super::open::{OpenWait, OpenWaitPart};
use super::story::{
    AskedBy, Departure, IdleCpu, NamedPid, OtherRun, OtherTask, PullAttempt, ReschedRequest, Story,
    ThrottledSpan, Tick, VirtualTime, WaitEnd, WaitPart, WaiterMove,
};
use crate::tracker::{Resched, ReschedBy, StayOnCpu};

/// How many runs are listed: as many of the first as of the last.
const RUNS_MAX: usize = 48;

/// How many of the tasks that ran longest are listed.
const RUNNERS_MAX: usize = 8;

/// How many ticks of one run are listed.
const TICKS_MAX: usize = 16;

/// How many attempts to pull are listed.
const PULLS_MAX: usize = 16;

impl Explain {
    /// The story of a wait that has just ended on `cpu`.
    pub(super) fn build(&self, task: u32, open: &OpenWait, cpu: Cpu, now: Ns) -> Story {
        let mut open = open.clone();
        let latest = self.virtual_states.get(task as usize).and_then(|state| state.placement.as_ref());
        open.note_placement(latest);
        let stays = self.stays(&open, cpu, now);
        let mut runs = Vec::new();
        let mut pulls: Vec<PullAttempt> = Vec::new();
        for stay in &stays {
            self.add_runs(task, stay, &mut runs);
            pulls.extend(self.pulls.from(stay.cpu, stay.from, stay.to));
        }
        let virtual_time = self.virtual_time(task, &open, &runs, now);
        let throttled = self.throttled(task, &stays);
        let free_stays = without(&stays, &throttled);
        let perhaps_throttled = throttled.is_empty() && self.idled_beside(&stays, &open, cpu);
        let unknown = self.unknown(&stays, &runs);
        let runners = runners(&runs);
        let runs_left_out = leave_out_the_middle(&mut runs);
        let pulls_left_out = pulls.len().saturating_sub(PULLS_MAX) as u64;
        pulls.truncate(PULLS_MAX);
        let state = self.tracker.task(task);
        Story {
            task: self.who(task),
            prio: state.prio,
            start: open.start,
            end: now,
            cause: open.cause,
            preempted_by: open
                .resched
                .filter(|_| open.cause.is_preemption())
                .map(|resched| self.asked_by(resched)),
            waker: open.waker,
            prev_cpu: open.prev_cpu,
            idle: self.idle_cpus(state.pinned_to(), &free_stays),
            pinned_to: state.pinned_to(),
            other_cpus: self.tracker.cpus().iter().filter(|cpu| cpu.known).count().saturating_sub(1),
            incomplete: stays.iter().any(|stay| self.is_incomplete(stay)),
            stays,
            stays_left_out: open.stays_left_out,
            runs,
            runs_left_out,
            runners,
            throttled,
            perhaps_throttled,
            unknown,
            pulls,
            pulls_left_out,
            end_cause: self.end_cause(cpu, now),
            ran_on: cpu,
            virtual_time,
        }
    }

    fn stays(&self, open: &OpenWait, cpu: Cpu, now: Ns) -> Vec<WaitPart> {
        let ends = open.stays.iter().skip(1).map(|stay| stay.from).chain([now]);
        let mut until = open.start;
        let mut stays: Vec<WaitPart> = open
            .stays
            .iter()
            .zip(ends)
            .map(|(stay, to)| {
                // One follows the other and all lie within the wait, in whatever order events came.
                let from = until;
                until = to.clamp(from, now.max(from));
                WaitPart {
                    cpu: stay.cpu,
                    from: if stay.from > from && stay.from < until { stay.from } else { from },
                    to: until,
                    brought_by: stay.brought_by,
                    ahead: stay.ahead,
                    runner: stay.runner.map(|runner| self.who(runner)),
                }
            })
            .collect();
        if stays.last().is_none_or(|stay| stay.cpu != cpu) {
            // It came here unseen.
            let from = if stays.is_empty() { open.start } else { now };
            stays.push(WaitPart { cpu, from, to: now, brought_by: None, ahead: 0, runner: None });
        }
        stays
    }

    /// When groups of the waiting task were throttled where it waited.
    fn throttled(&self, task: u32, stays: &[WaitPart]) -> Vec<ThrottledSpan> {
        let (known, pid) = (self.tracker.throttling(), self.tracker.task(task).pid);
        let mut spans = Vec::new();
        for stay in stays.iter().filter(|_| known.tells()) {
            let mut add = |group: u32, from: Ns, to: Ns| {
                let (from, to) = (from.max(stay.from), to.min(stay.to));
                if from < to && known.is_of(group, pid) {
                    spans.push(ThrottledSpan {
                        group: known.name(group),
                        cpu: stay.cpu,
                        from,
                        to,
                        is_concluded: known.is_concluded(),
                    });
                }
            };
            if let Some(log) = self.logs.get(stay.cpu.index()) {
                for entry in log.since(stay.from) {
                    if let CpuLogEntry::Throttled { group, from, to } = entry {
                        add(*group, *from, *to);
                    }
                }
            }
            known.on_cpu(stay.cpu).for_each(|(group, since)| add(group, since, stay.to));
        }
        spans.sort_by_key(|span| (span.from, span.to));
        spans
    }

    /// Whether the CPU on which it ran in the end idled while it waited there, for longer than it takes to wake up and switch.
    fn idled_beside(&self, stays: &[WaitPart], open: &OpenWait, ran_on: Cpu) -> bool {
        // A move that is not in the trace explains it as well.
        let came_unseen = open.stays.last().is_none_or(|stay| stay.cpu != ran_on);
        let here = stays.iter().filter(|stay| !came_unseen && stay.cpu == ran_on);
        let longest = here.map(|stay| {
            let mut idle = IdleCpu::new(stay.cpu);
            self.add_idle(&mut idle, stay);
            idle.longest
        });
        longest.max().is_some_and(|longest| longest >= IDLE_BESIDE)
    }

    /// For how long neither a run nor the idle task is seen where the task waited.
    fn unknown(&self, stays: &[WaitPart], runs: &[OtherRun]) -> Ns {
        let waited = stays.iter().fold(Ns::ZERO, |sum, stay| sum.saturating_add(stay.to.since(stay.from)));
        let ran = runs.iter().fold(Ns::ZERO, |sum, run| sum.saturating_add(run.length()));
        let idled = stays.iter().fold(Ns::ZERO, |sum, stay| {
            let mut idle = IdleCpu::new(stay.cpu);
            self.add_idle(&mut idle, stay);
            sum.saturating_add(idle.time)
        });
        waited.since(ran.saturating_add(idled))
    }

    fn is_incomplete(&self, stay: &WaitPart) -> bool {
        self.logs.get(stay.cpu.index()).is_some_and(|log| log.has_gap_since(stay.from))
    }

    fn add_runs(&self, waiter: u32, stay: &WaitPart, runs: &mut Vec<OtherRun>) {
        let Some(log) = self.logs.get(stay.cpu.index()) else { return };
        let first = runs.len();
        let mut ticks: Vec<TickEntry> = Vec::new();
        for entry in log.since(stay.from) {
            match entry {
                CpuLogEntry::Tick(tick) => ticks.push(*tick),
                CpuLogEntry::Moved(moved) if moved.time <= stay.to => {
                    self.note_move(moved, stay.cpu, &mut runs[first..]);
                }
                CpuLogEntry::Ran(ran) => {
                    let StayOnCpu { seen_since, to, .. } = ran.stay;
                    if ran.task != waiter && seen_since < stay.to && to > stay.from {
                        runs.push(self.run(ran, &ticks, stay));
                    }
                    ticks.clear();
                }
                CpuLogEntry::Moved(_) | CpuLogEntry::Idled { .. } | CpuLogEntry::Throttled { .. } => {}
            }
        }
        // What runs there still, when the task was moved away.
        let Some(state) = self.tracker.cpu(stay.cpu) else { return };
        if let Some(task) = state.running.filter(|&task| task != waiter)
            && state.seen_since < stay.to
        {
            let still = RanEntry { task, stay: state.stay_so_far(), how: Departure::Runnable, resched: None };
            runs.push(self.run(&still, &ticks, stay));
        }
    }

    fn run(&self, ran: &RanEntry, ticks: &[TickEntry], stay: &WaitPart) -> OtherRun {
        let StayOnCpu { since, seen_since: from, to, .. } = ran.stay;
        let resched_at = ran.resched.map_or(Ns::MAX, |resched| resched.time);
        // The tick that asks for a reschedule grants nothing.
        let passed = ticks.iter().filter(|tick| {
            tick.task == ran.task && tick.time > stay.from && tick.time <= stay.to && tick.time < resched_at
        });
        let tick =
            |tick: &TickEntry| Tick { time: tick.time, runtime: tick.runtime, vruntime: tick.vruntime };
        let goes_on = to > stay.to;
        OtherRun {
            who: self.who(ran.task),
            cpu: stay.cpu,
            from: from.max(stay.from),
            to: to.min(stay.to),
            began_before: from < stay.from,
            beginning_unknown: since.is_none() && from > stay.from,
            left: (!goes_on).then_some(ran.how),
            asked: self.asked(ran).filter(|_| !goes_on),
            moved: None,
            ticks: passed.clone().take(TICKS_MAX).map(tick).collect(),
            last_tick: passed.clone().next_back().map(tick),
            tick_count: passed.count() as u64,
        }
    }

    /// What preempted a task, if anything did.
    fn asked(&self, ran: &RanEntry) -> Option<ReschedRequest> {
        let was_preempted = matches!(ran.how, Departure::PreemptedInKernel | Departure::Preempted);
        ran.resched.filter(|_| was_preempted).map(|resched| self.asked_by(resched))
    }

    fn asked_by(&self, resched: Resched) -> ReschedRequest {
        let by = match resched.by {
            ReschedBy::Tick => AskedBy::Tick,
            ReschedBy::Wakeup(pid) => {
                let named = self.tracker.index(pid).map(|task| self.who(task));
                AskedBy::Wakeup(named.unwrap_or(NamedPid { pid, ..NamedPid::default() }))
            }
            ReschedBy::Other => AskedBy::Other,
        };
        ReschedRequest { time: resched.time, by }
    }

    /// The task that ran last before was moved away.
    fn note_move(&self, moved: &MovedEntry, from: Cpu, runs: &mut [OtherRun]) {
        let who = self.who(moved.task);
        if let Some(run) = runs.iter_mut().rev().find(|run| run.who == who) {
            let MovedEntry { time, to, cause, by, .. } = *moved;
            run.moved = Some(WaiterMove { time, from, to, cause, by });
        }
    }

    /// CPUs that idled while the task waited on another one.
    fn idle_cpus(&self, pinned_to: Option<Cpu>, stays: &[WaitPart]) -> Vec<IdleCpu> {
        let allowed = |cpu: &Cpu| pinned_to.is_none_or(|pinned| pinned == *cpu);
        let mut idle: Vec<IdleCpu> = (0..self.tracker.cpus().len() as u32)
            .map(Cpu)
            .filter(allowed)
            .filter_map(|cpu| {
                let mut sum = IdleCpu::new(cpu);
                for stay in stays.iter().filter(|stay| stay.cpu != cpu) {
                    self.add_idle(&mut sum, stay);
                }
                (sum.time > Ns::ZERO).then_some(sum)
            })
            .collect();
        idle.sort_by(|one, other| other.time.cmp(&one.time).then(one.cpu.cmp(&other.cpu)));
        idle
    }

    fn add_idle(&self, sum: &mut IdleCpu, stay: &WaitPart) {
        let mut add = |from: Ns, to: Ns| {
            let (from, to) = (from.max(stay.from), to.min(stay.to));
            let time = to.since(from);
            if time > Ns::ZERO {
                sum.time = sum.time.saturating_add(time);
                sum.spells += 1;
                if time > sum.longest {
                    (sum.longest, sum.longest_from) = (time, from);
                }
            }
        };
        if let Some(log) = self.logs.get(sum.cpu.index()) {
            for entry in log.since(stay.from) {
                if let CpuLogEntry::Idled { from, to } = entry {
                    add(*from, *to);
                }
            }
        }
        if let Some(state) = self.tracker.cpu(sum.cpu)
            && state.is_idle()
        {
            add(state.seen_since, stay.to);
        }
    }

    /// What ended on `cpu` just now.
    fn end_cause(&self, cpu: Cpu, now: Ns) -> WaitEnd {
        let Some(log) = self.logs.get(cpu.index()) else { return WaitEnd::Unknown };
        let ended = log.since(now).find_map(|entry| match entry {
            CpuLogEntry::Ran(ran) => Some(Some(ran)),
            CpuLogEntry::Idled { .. } => Some(None),
            _ => None,
        });
        let Some(ended) = ended else { return WaitEnd::Unknown };
        let Some(ran) = ended else { return WaitEnd::CpuWasIdle };
        let who = self.who(ran.task);
        if who.comm.as_bytes().starts_with(b"migration/") {
            let since = ran.stay.seen_since;
            let moved = log.since(since).find_map(|entry| match entry {
                CpuLogEntry::Moved(moved) if moved.by.pid == who.pid => Some(*moved),
                _ => None,
            });
            let told = |moved: MovedEntry| {
                let MovedEntry { time, task, to, cause, by } = moved;
                (self.who(task), WaiterMove { time, from: cpu, to, cause, by })
            };
            return WaitEnd::Stopper { stopper: who, moved: moved.map(told) };
        }
        match ran.how {
            Departure::Slept(_) | Departure::Exited => WaitEnd::Blocked(who, ran.how),
            Departure::PreemptedInKernel | Departure::Preempted => WaitEnd::Preempted(who, self.asked(ran)),
            Departure::Yielded => WaitEnd::Yielded(who),
            Departure::Runnable => WaitEnd::LeftRunnable(who),
        }
    }

    /// The view from virtual time on the longest stay behind a task that ran.
    fn virtual_time(&self, task: u32, open: &OpenWait, runs: &[OtherRun], now: Ns) -> Option<VirtualTime> {
        let ends = open.stays.iter().skip(1).map(|stay| stay.from).chain([now]);
        let behind = open.stays.iter().zip(ends).filter(|(stay, _)| stay.runner.is_some());
        let (stay, _) = behind.max_by_key(|(stay, end)| end.since(stay.from))?;
        let OpenWaitPart { runner, placement, runner_vruntime, runner_placement, cpu, .. } = stay;
        let runner = (*runner)?;
        let is_fair = |task: u32| self.tracker.task(task).prio.nice().is_some();
        if !is_fair(runner) || !is_fair(task) {
            return None;
        }
        let who = self.who(runner);
        let of_runner = runs.iter().filter(|run| run.who == who && run.cpu == *cpu);
        let stood = |tick: Option<&Tick>| tick.and_then(|tick| Some((tick.time, tick.vruntime?)));
        let runner_vruntime = runner_vruntime.or(of_runner.clone().find_map(|run| stood(run.ticks.first())));
        if placement.is_none() && runner_vruntime.is_none() {
            return None;
        }
        let deepest = self.virtual_states.get(task as usize).and_then(|state| state.deepest.as_ref());
        let last = of_runner.rev().find_map(|run| stood(run.last_tick.as_ref()));
        Some(VirtualTime {
            waiter: placement.clone(),
            waiter_vruntime: None,
            runner: who,
            runner_prio: self.tracker.task(runner).prio,
            runner_vruntime,
            runner_vruntime_at_end: last.filter(|last| Some(*last) != runner_vruntime),
            runner_placement: runner_placement.clone(),
            waiter_groups: deepest.map(|placement| placement.groups()),
        })
    }
}

/// The parts of stays in which no group was throttled.
fn without(stays: &[WaitPart], throttled: &[ThrottledSpan]) -> Vec<WaitPart> {
    let mut parts = Vec::new();
    for stay in stays {
        let mut from = stay.from;
        for span in throttled.iter().filter(|span| span.cpu == stay.cpu) {
            if span.to <= from {
                continue;
            }
            if span.from >= stay.to {
                break;
            }
            parts.push(WaitPart { from, to: span.from.max(from), ..*stay });
            from = span.to.min(stay.to);
        }
        parts.push(WaitPart { from, ..*stay });
    }
    parts.retain(|part| part.from < part.to);
    parts
}

/// A CPU with a task queued does not idle for so long, unless the task's group is throttled.
const IDLE_BESIDE: Ns = Ns::from_ms(1);

/// The tasks that ran longest, of all runs.
fn runners(runs: &[OtherRun]) -> Vec<OtherTask> {
    let mut sums: BTreeMap<(Pid, Comm), (u64, Ns)> = BTreeMap::new();
    for run in runs {
        let (count, time) = sums.entry((run.who.pid, run.who.comm)).or_default();
        *count += 1;
        *time = time.saturating_add(run.length());
    }
    let runner = |((pid, comm), (runs, time))| OtherTask { who: NamedPid { comm, pid }, runs, time };
    let mut runners: Vec<OtherTask> = sums.into_iter().map(runner).collect();
    runners.sort_by_key(|runner| std::cmp::Reverse(runner.time));
    runners.truncate(RUNNERS_MAX);
    runners
}

/// Keeps the first runs and the last; tells how many are gone, and how long they were.
fn leave_out_the_middle(runs: &mut Vec<OtherRun>) -> (u64, Ns) {
    if runs.len() <= RUNS_MAX {
        return (0, Ns::ZERO);
    }
    let middle = RUNS_MAX / 2..runs.len() - RUNS_MAX / 2;
    let left_out: Vec<OtherRun> = runs.drain(middle).collect();
    let time = left_out.iter().fold(Ns::ZERO, |sum, run| sum.saturating_add(run.length()));
    (left_out.len() as u64, time)
}
