//! From what was noted to a story.
//!
//! A story has two parts. What only the moment tells in which its wait ends is noted then: that takes little. What CPUs did
//! meanwhile stands in their logs. It is put together once it is certain that the story is one of the worst, or before a log
//! drops what it needs. So waits that are each longer than those before cost no more than others.
//!
//! Must not know: how stories are printed.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlab_event::{Comm, Cpu, Ns, Pid, Prio};

use super::log::{CpuLog, CpuLogEntry, MovedEntry, RanEntry, TickEntry};
use super::open::{OpenWait, OpenWaitPart};
use super::placement::ExplainedPlacement;
use super::story::{
    AskedBy, Departure, IdleCpu, NamedPid, OtherRun, OtherTask, PullAttempt, ReschedRequest, Story,
    ThrottledSpan, Tick, VirtualTime, WaitEnd, WaitPart, WaiterMove,
};
use super::{Explain, KeptStory};
use crate::tracker::{Resched, ReschedBy, StayOnCpu};

/// How many runs are listed: as many of the first as of the last.
const RUNS_MAX: usize = 48;

/// How many of the tasks that ran longest are listed.
const RUNNERS_MAX: usize = 8;

/// How many ticks of one run are listed.
const TICKS_MAX: usize = 16;

/// How many attempts to pull are listed.
const PULLS_MAX: usize = 16;

/// What the end of a wait showed, and what is yet to be told of it.
#[derive(Clone, Debug)]
pub(super) struct UntoldParts {
    task: u32,
    open: OpenWait,
    /// How many entries the log of each CPU had.
    counts: Vec<u64>,
    /// The CPUs that idled, and since when.
    idle: Vec<Option<Ns>>,
    /// For each part of the wait: what ran there, and which groups were throttled there since when.
    ran_still: Vec<Option<RanEntry>>,
    throttled: Vec<Vec<(u32, Ns)>>,
    /// The longest part behind a task that ran, where both are fair.
    behind: Option<BehindRunner>,
    deepest: Option<Arc<ExplainedPlacement>>,
}

/// A task that ran where another waited.
#[derive(Clone, Copy, Debug)]
struct BehindRunner {
    part: usize,
    who: NamedPid,
    prio: Prio,
}

impl Explain {
    /// The story of a wait that has just ended on `cpu`, as far as nothing but this moment tells it.
    pub(super) fn begin_story(&self, task: u32, open: &OpenWait, cpu: Cpu, now: Ns) -> KeptStory {
        let mut open = open.clone();
        let virtual_state = self.virtual_states.get(task as usize);
        open.note_placement(virtual_state.and_then(|state| state.placement.as_ref()));
        let stays = self.stays(&open, cpu, now);
        let pulls = stays.iter().flat_map(|stay| self.pulls.from(stay.cpu, stay.from, stay.to));
        let mut pulls: Vec<PullAttempt> = pulls.collect();
        let pulls_left_out = pulls.len().saturating_sub(PULLS_MAX) as u64;
        pulls.truncate(PULLS_MAX);
        let throttling = self.tracker.throttling();
        let throttled = |stay: &WaitPart| throttling.on_cpu(stay.cpu).collect::<Vec<_>>();
        let untold = UntoldParts {
            task,
            counts: self.logs.iter().map(CpuLog::count).collect(),
            idle: self.tracker.cpus().iter().map(|cpu| cpu.is_idle().then_some(cpu.seen_since)).collect(),
            ran_still: stays.iter().map(|stay| self.ran_still(task, stay)).collect(),
            throttled: stays.iter().filter(|_| throttling.tells()).map(throttled).collect(),
            behind: self.behind(task, &open, now),
            deepest: virtual_state.and_then(|state| state.deepest.clone()),
            open,
        };
        let state = self.tracker.task(task);
        let is_plain = stays.len() == 1 && state.prio.nice() == Some(0);
        let open = &untold.open;
        let story = Story {
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
            idle: Vec::new(),
            pinned_to: state.pinned_to(),
            other_cpus: self.tracker.cpus().iter().filter(|cpu| cpu.known).count().saturating_sub(1),
            incomplete: stays.iter().any(|stay| self.is_incomplete(stay)),
            stays,
            stays_left_out: open.stays_left_out,
            runs: Vec::new(),
            runs_left_out: (0, Ns::ZERO),
            runners: Vec::new(),
            throttled: Vec::new(),
            perhaps_throttled: false,
            unknown: Ns::ZERO,
            pulls,
            pulls_left_out,
            end_cause: self.end_cause(cpu, now),
            ran_on: cpu,
            virtual_time: None,
        };
        KeptStory { task, story, untold: Some(Box::new(untold)), awaits_vruntime: is_plain, vruntime: None }
    }

    /// Tells the rest of a story.
    pub(super) fn tell(&self, story: &mut Story, untold: &UntoldParts) {
        let mut runs = Vec::new();
        for (place, stay) in story.stays.iter().enumerate() {
            self.add_runs(untold, stay, untold.ran_still.get(place).and_then(Option::as_ref), &mut runs);
        }
        story.virtual_time = self.virtual_time(untold, &runs);
        story.throttled = self.throttled(untold, &story.stays);
        let free_stays = without(&story.stays, &story.throttled);
        story.perhaps_throttled =
            story.throttled.is_empty() && self.idled_beside(untold, &story.stays, story.ran_on);
        story.unknown = self.unknown(untold, &story.stays, &runs);
        story.runners = runners(&runs);
        story.runs_left_out = leave_out_the_middle(&mut runs);
        story.runs = runs;
        story.idle = self.idle_cpus(untold, story.pinned_to, &free_stays);
    }

    /// What happened on a CPU from `from` on, until the wait ended.
    fn logged<'e>(
        &'e self,
        untold: &UntoldParts,
        cpu: Cpu,
        from: Ns,
    ) -> impl Iterator<Item = &'e CpuLogEntry> + use<'e> {
        let count = untold.counts.get(cpu.index()).copied().unwrap_or(0);
        self.logs.get(cpu.index()).into_iter().flat_map(move |log| log.between(from, count))
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
    fn throttled(&self, untold: &UntoldParts, stays: &[WaitPart]) -> Vec<ThrottledSpan> {
        let (known, pid) = (self.tracker.throttling(), self.tracker.task(untold.task).pid);
        let mut spans = Vec::new();
        for (stay, throttled_still) in stays.iter().zip(&untold.throttled) {
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
            for entry in self.logged(untold, stay.cpu, stay.from) {
                if let CpuLogEntry::Throttled { group, from, to } = entry {
                    add(*group, *from, *to);
                }
            }
            throttled_still.iter().for_each(|&(group, since)| add(group, since, stay.to));
        }
        spans.sort_by_key(|span| (span.from, span.to));
        spans
    }

    /// Whether the CPU on which it ran in the end idled while it waited there, for longer than it takes to wake up and switch.
    fn idled_beside(&self, untold: &UntoldParts, stays: &[WaitPart], ran_on: Cpu) -> bool {
        // A move that is not in the trace explains it as well.
        let came_unseen = untold.open.stays.last().is_none_or(|stay| stay.cpu != ran_on);
        let here = stays.iter().filter(|stay| !came_unseen && stay.cpu == ran_on);
        let longest = here.map(|stay| {
            let mut idle = IdleCpu::new(stay.cpu);
            self.add_idle(untold, &mut idle, stay);
            idle.longest
        });
        longest.max().is_some_and(|longest| longest >= IDLE_BESIDE)
    }

    /// For how long neither a run nor the idle task is seen where the task waited.
    fn unknown(&self, untold: &UntoldParts, stays: &[WaitPart], runs: &[OtherRun]) -> Ns {
        let waited = stays.iter().fold(Ns::ZERO, |sum, stay| sum.saturating_add(stay.to.since(stay.from)));
        let ran = runs.iter().fold(Ns::ZERO, |sum, run| sum.saturating_add(run.length()));
        let idled = stays.iter().fold(Ns::ZERO, |sum, stay| {
            let mut idle = IdleCpu::new(stay.cpu);
            self.add_idle(untold, &mut idle, stay);
            sum.saturating_add(idle.time)
        });
        waited.since(ran.saturating_add(idled))
    }

    fn is_incomplete(&self, stay: &WaitPart) -> bool {
        self.logs.get(stay.cpu.index()).is_some_and(|log| log.has_gap_since(stay.from))
    }

    /// What ran on a CPU instead; `still`: what did when the wait ended.
    fn add_runs(
        &self,
        untold: &UntoldParts,
        stay: &WaitPart,
        still: Option<&RanEntry>,
        runs: &mut Vec<OtherRun>,
    ) {
        let first = runs.len();
        let mut ticks: Vec<TickEntry> = Vec::new();
        for entry in self.logged(untold, stay.cpu, stay.from) {
            match entry {
                CpuLogEntry::Tick(tick) => ticks.push(*tick),
                CpuLogEntry::Moved(moved) if moved.time <= stay.to => {
                    self.note_move(moved, stay.cpu, &mut runs[first..]);
                }
                CpuLogEntry::Ran(ran) => {
                    let StayOnCpu { seen_since, to, .. } = ran.stay;
                    if ran.task != untold.task && seen_since < stay.to && to > stay.from {
                        runs.push(self.run(ran, &ticks, stay));
                    }
                    ticks.clear();
                }
                CpuLogEntry::Moved(_) | CpuLogEntry::Idled { .. } | CpuLogEntry::Throttled { .. } => {}
            }
        }
        runs.extend(still.map(|still| self.run(still, &ticks, stay)));
    }

    /// What runs still where a task waited that was moved away from there.
    fn ran_still(&self, waiter: u32, stay: &WaitPart) -> Option<RanEntry> {
        self.logs.get(stay.cpu.index())?;
        let state = self.tracker.cpu(stay.cpu).filter(|state| state.seen_since < stay.to)?;
        let task = state.running.filter(|&task| task != waiter)?;
        Some(RanEntry { task, stay: state.stay_so_far(), how: Departure::Runnable, resched: None })
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
            slice_timer: self.tracker.has_hrtick(),
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
            ReschedBy::Hrtick => AskedBy::Hrtick,
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
    fn idle_cpus(&self, untold: &UntoldParts, pinned_to: Option<Cpu>, stays: &[WaitPart]) -> Vec<IdleCpu> {
        let allowed = |cpu: &Cpu| pinned_to.is_none_or(|pinned| pinned == *cpu);
        let mut idle: Vec<IdleCpu> = (0..untold.idle.len() as u32)
            .map(Cpu)
            .filter(allowed)
            .filter_map(|cpu| {
                let mut sum = IdleCpu::new(cpu);
                for stay in stays.iter().filter(|stay| stay.cpu != cpu) {
                    self.add_idle(untold, &mut sum, stay);
                }
                (sum.time > Ns::ZERO).then_some(sum)
            })
            .collect();
        idle.sort_by(|one, other| other.time.cmp(&one.time).then(one.cpu.cmp(&other.cpu)));
        idle
    }

    fn add_idle(&self, untold: &UntoldParts, sum: &mut IdleCpu, stay: &WaitPart) {
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
        for entry in self.logged(untold, sum.cpu, stay.from) {
            if let CpuLogEntry::Idled { from, to } = entry {
                add(*from, *to);
            }
        }
        if let Some(since) = untold.idle.get(sum.cpu.index()).copied().flatten() {
            add(since, stay.to);
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

    /// The longest part of a wait behind a task that ran, where both are fair.
    fn behind(&self, task: u32, open: &OpenWait, now: Ns) -> Option<BehindRunner> {
        let ends = open.stays.iter().skip(1).map(|stay| stay.from).chain([now]);
        let behind = open.stays.iter().zip(ends).enumerate();
        let behind =
            behind.filter_map(|(part, (stay, end))| Some((part, end.since(stay.from), stay.runner?)));
        let (part, _, runner) = behind.max_by_key(|&(_, length, _)| length)?;
        let prio = self.tracker.task(runner).prio;
        let are_fair = prio.nice().and(self.tracker.task(task).prio.nice()).is_some();
        are_fair.then(|| BehindRunner { part, who: self.who(runner), prio })
    }

    /// The view from virtual time on that part.
    fn virtual_time(&self, untold: &UntoldParts, runs: &[OtherRun]) -> Option<VirtualTime> {
        let BehindRunner { part, who, prio } = untold.behind?;
        let OpenWaitPart { placement, runner_vruntime, runner_placement, cpu, .. } =
            untold.open.stays.get(part)?;
        let of_runner = runs.iter().filter(|run| run.who == who && run.cpu == *cpu);
        let stood = |tick: Option<&Tick>| tick.and_then(|tick| Some((tick.time, tick.vruntime?)));
        let runner_vruntime = runner_vruntime.or(of_runner.clone().find_map(|run| stood(run.ticks.first())));
        if placement.is_none() && runner_vruntime.is_none() {
            return None;
        }
        let last = of_runner.rev().find_map(|run| stood(run.last_tick.as_ref()));
        Some(VirtualTime {
            waiter: placement.clone(),
            waiter_vruntime: None,
            runner: who,
            runner_prio: prio,
            runner_vruntime,
            runner_vruntime_at_end: last.filter(|last| Some(*last) != runner_vruntime),
            runner_placement: runner_placement.clone(),
            waiter_groups: untold.deepest.as_ref().map(|placement| placement.groups()),
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
