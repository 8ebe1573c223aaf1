//! What each step does, as actions.
//!
//! Must not know: how steps are written.

use fairlab_event::Ns;

use super::TasksWorkload;
use super::duration::part;
use super::plan::{LockKind, Op, RequestPath};
use super::resources::QueuedRequest;
use super::thread::StepStage;
use crate::workload::{Action, MESSAGE_BYTES, Offer, ThreadId, View};

impl TasksWorkload {
    /// The next action of `me` at `op`; `None`: it has gone on to another step.
    pub(super) fn act(&mut self, me: ThreadId, op: Op, view: &mut View<'_>) -> Option<Action> {
        match op {
            Op::Lock(lock) => self.take_lock(me, lock, view),
            Op::Unlock(lock) => self.give_lock_back(me, lock, view.now),
            Op::Take(queue) => self.take_request(me, queue, view),
            Op::Put(queue) => self.put_request(me, queue, false, view),
            Op::Call(queue) => self.put_request(me, queue, true, view),
            Op::Reply(queue) => self.reply(me, queue, view.now),
            Op::Fault(work) => {
                let work = self.drawn(me, || work.draw(view.random));
                let piece = Ns(work.0.div_ceil(2));
                self.change_map(
                    me,
                    false,
                    Action::OfferingSystemCall { work, piece, offer: Offer::MightSleep },
                )
            }
            Op::Map(work) => {
                let work = self.drawn(me, || work.draw(view.random));
                self.change_map(me, true, Action::SystemCall(work))
            }
            Op::Barrier(barrier) => self.come_to_barrier(me, barrier),
            Op::Wake(task, count) => self.wake_task(me, task, count),
            Op::Wait => self.wait(me),
            Op::Spawn(task) => {
                self.threads[me.index()].advance();
                self.threads[me.index()].children += 1;
                Some(self.create(task, None, Some(me)))
            }
            Op::Join => match self.threads[me.index()].children {
                0 => self.go_on(me),
                _ => Some(Action::Wait),
            },
            Op::Exit => Some(self.end(me)),
            Op::Begin { .. } | Op::Again { .. } | Op::Skip { .. } => self.jump(me, op, view),
            _ => self.act_alone(me, op, view),
        }
    }

    fn go_on(&mut self, me: ThreadId) -> Option<Action> {
        self.threads[me.index()].advance();
        None
    }

    /// What is drawn where a step begins; nothing later on.
    fn drawn(&self, me: ThreadId, draw: impl FnOnce() -> Ns) -> Ns {
        if self.threads[me.index()].stage == StepStage::Work { Ns::ZERO } else { draw() }
    }

    /// Steps that concern nobody else: one action.
    fn act_alone(&mut self, me: ThreadId, op: Op, view: &mut View<'_>) -> Option<Action> {
        let thread = &mut self.threads[me.index()];
        thread.advance();
        let action = match op {
            Op::Run(time) => Action::Run(time.draw(view.random)),
            Op::Sleep(time) => Action::Sleep(time.draw(view.random)),
            Op::Io(time) => Action::Io(time.draw(view.random)),
            Op::Await(time) => Action::Await(time.draw(view.random)),
            Op::Exec(work) => {
                thread.todo.push_back(Action::SystemCall(work.draw(view.random)));
                Action::Exec
            }
            Op::Syscall { work, offers: None } => Action::SystemCall(work.draw(view.random)),
            Op::Syscall { work, offers: Some((offer, piece)) } => {
                Action::OfferingSystemCall { work: work.draw(view.random), piece, offer }
            }
            Op::Timer(period) => {
                let due = thread.timer.unwrap_or(view.now) + period;
                let missed = if due > view.now { 0 } else { view.now.since(due).0 / period.0 + 1 };
                let due = due + Ns(period.0 * missed);
                thread.timer = Some(due);
                let left = due.since(view.now);
                // Real-time tasks' timers have no slack.
                match self.plan.tasks[thread.task].place.policy.is_some_and(fairlab_kernel::Policy::is_rt) {
                    true => Action::Await(left),
                    false => Action::Sleep(left),
                }
            }
            _ => Action::Yield,
        };
        Some(action)
    }

    fn jump(&mut self, me: ThreadId, op: Op, view: &mut View<'_>) -> Option<Action> {
        let thread = &mut self.threads[me.index()];
        thread.at = match op {
            Op::Begin { counter, times } => {
                thread.counters[counter] = times;
                thread.at + 1
            }
            Op::Again { counter, first } => {
                thread.counters[counter] -= 1;
                if thread.counters[counter] > 0 { first } else { thread.at + 1 }
            }
            Op::Skip { chance, to } if view.random.below(1_000_000) >= chance => to,
            _ => thread.at + 1,
        };
        None
    }

    fn take_lock(&mut self, me: ThreadId, number: usize, view: &mut View<'_>) -> Option<Action> {
        let counts = self.settling.is_over(view.now);
        let (lock, thread) = (&mut self.locks[number], &mut self.threads[me.index()]);
        let waited = thread.stage != StepStage::Begin;
        if thread.stage == StepStage::Work {
            lock.spinners -= 1;
        }
        if lock.try_take(me) {
            lock.sleepers.retain(|&sleeper| sleeper != me);
            lock.begin(view.now);
            if waited {
                thread.backoff.finish();
                if counts {
                    lock.waits.add(view.now.since(thread.waits_since));
                }
            }
            thread.advance();
            return None;
        }
        if !waited {
            thread.waits_since = view.now;
            thread.backoff.begin();
        }
        let word = number as u32;
        match lock.spec.kind {
            LockKind::Mutex => {
                if !lock.sleepers.contains(&me) {
                    lock.sleepers.push_back(me);
                }
                thread.stage = StepStage::Wait;
                Some(Action::Wait)
            }
            // It has spun in vain.
            LockKind::Adaptive { .. } if thread.stage == StepStage::Work => {
                thread.stage = StepStage::Wait;
                Some(Action::Sleep(thread.backoff.sleep(part(view.random))))
            }
            LockKind::Spin | LockKind::Adaptive { .. } => {
                lock.spinners += 1;
                thread.stage = StepStage::Work;
                let most = match lock.spec.kind {
                    LockKind::Adaptive { spin } => thread.backoff.spin(spin),
                    _ => Ns::MAX,
                };
                Some(Action::SpinOn { word, most })
            }
        }
    }

    fn give_lock_back(&mut self, me: ThreadId, number: usize, now: Ns) -> Option<Action> {
        let counts = self.settling.is_over(now);
        self.threads[me.index()].advance();
        let lock = &mut self.locks[number];
        if !lock.is_held_by(me) {
            return None;
        }
        lock.give_back(me, now, counts);
        match lock.spec.kind {
            LockKind::Mutex => lock.sleepers.pop_front().map(Action::Wake),
            // A store that nobody looks at costs nothing.
            _ => (lock.spinners > 0).then_some(Action::Release { word: number as u32, most: 1 }),
        }
    }

    fn take_request(&mut self, me: ThreadId, number: usize, view: &View<'_>) -> Option<Action> {
        let (now, counts) = (view.now, self.settling.is_over(view.now));
        let (queue, thread) = (&mut self.queues[number], &mut self.threads[me.index()]);
        if thread.stage == StepStage::Done {
            thread.advance();
            return None;
        }
        let cpu = queue.bound_to(view.cpu);
        let Some(request) = queue.take(me, cpu, now, counts) else {
            thread.stage = StepStage::Wait;
            return Some(queue.sleep(me, cpu, now));
        };
        thread.request = Some(request);
        let putter = queue.putters.pop_front().map(Action::Wake);
        match queue.spec.via {
            RequestPath::Futex | RequestPath::Kworker => {
                thread.advance();
                putter
            }
            RequestPath::Socket => {
                thread.stage = StepStage::Done;
                thread.todo.extend(putter);
                Some(Action::Receive(MESSAGE_BYTES))
            }
        }
    }

    /// Puts a request into a queue, and waits for the reply if it `calls`.
    fn put_request(&mut self, me: ThreadId, number: usize, calls: bool, view: &View<'_>) -> Option<Action> {
        let (queue, thread) = (&mut self.queues[number], &mut self.threads[me.index()]);
        match thread.stage {
            StepStage::Begin | StepStage::Wait if queue.is_full() => {
                if !queue.putters.contains(&me) {
                    queue.putters.push_back(me);
                }
                thread.stage = StepStage::Wait;
                return Some(Action::Wait);
            }
            StepStage::Begin | StepStage::Wait => {
                queue.putters.retain(|&putter| putter != me);
                let passed_on = if calls { None } else { thread.request.take() };
                let caller = calls.then_some(me);
                let (born, cpu) = (view.now, queue.bound_to(view.cpu));
                let request = passed_on.unwrap_or(QueuedRequest { born, caller, cpu });
                thread.outgoing = Some(QueuedRequest { cpu, ..request });
                (thread.stage, thread.replied, thread.sent) = (StepStage::Work, false, false);
                if queue.spec.via == RequestPath::Socket {
                    return Some(Action::Send(MESSAGE_BYTES));
                }
            }
            StepStage::Work => {}
            StepStage::Reply if thread.replied => {
                thread.stage = StepStage::Done;
                if queue.spec.via == RequestPath::Socket {
                    return Some(Action::Receive(MESSAGE_BYTES));
                }
            }
            StepStage::Reply => return Some(Action::Wait),
            StepStage::Done => return self.go_on(me),
        }
        if self.threads[me.index()].stage == StepStage::Done {
            return self.go_on(me);
        }
        // Where nobody has done it at the end of the system call.
        if !self.threads[me.index()].sent {
            let first = self.deliver(me, number).map(Action::Wake);
            let thread = &mut self.threads[me.index()];
            if let Some(first) = first {
                thread.todo.push_front(first);
            }
        }
        match calls {
            true => self.threads[me.index()].stage = StepStage::Reply,
            false => self.threads[me.index()].advance(),
        }
        None
    }

    /// The request of `me` is in the queue now. Returns who is woken first; others are left to be woken one by one.
    fn deliver(&mut self, me: ThreadId, number: usize) -> Option<ThreadId> {
        let (queue, thread) = (&mut self.queues[number], &mut self.threads[me.index()]);
        thread.sent = true;
        let request = thread.outgoing.take()?;
        queue.push(request);
        let first = queue.next_taker(request.cpu);
        if queue.spec.wakes_all {
            thread.todo.extend(queue.takers.drain(..).map(|taker| Action::Wake(taker.thread)));
        }
        first
    }

    fn reply(&mut self, me: ThreadId, number: Option<usize>, now: Ns) -> Option<Action> {
        let counts = self.settling.is_over(now);
        let thread = &mut self.threads[me.index()];
        let Some(number) = number else {
            thread.advance();
            let latency = now.since(thread.began);
            self.replies.add_at(now, counts);
            let task = &mut self.tasks[thread.task];
            task.rhythm.reply(&mut thread.last_reply, now, counts);
            if counts {
                task.latencies.add(latency);
            }
            return None;
        };
        let queue = &mut self.queues[number];
        if thread.stage == StepStage::Begin {
            thread.stage = StepStage::Work;
            if queue.spec.via == RequestPath::Socket {
                return Some(Action::Send(MESSAGE_BYTES));
            }
        }
        let born = thread.request.map_or(thread.began, |request| request.born);
        // What one task answers to another is a part of something.
        match thread.request.and_then(|request| request.caller) {
            None => self.replies.add_at(now, counts),
            Some(_) => self.answers.add_at(now, counts),
        }
        queue.rhythm.reply(&mut queue.last_reply, now, counts);
        if counts {
            queue.latencies.add(now.since(born));
        }
        let caller = if thread.sent { None } else { self.answer(me) };
        let thread = &mut self.threads[me.index()];
        thread.request = None;
        thread.advance();
        caller.map(Action::Wake)
    }

    /// Whoever called has its reply now. Returns who is to be woken for that.
    fn answer(&mut self, me: ThreadId) -> Option<ThreadId> {
        let thread = &mut self.threads[me.index()];
        thread.sent = true;
        let caller = thread.request.and_then(|request| request.caller)?;
        self.threads[caller.index()].replied = true;
        Some(caller)
    }

    /// The message that a system call of `thread` writes is written. Returns who is woken before the call returns.
    pub(super) fn message_is_sent(&mut self, thread: ThreadId) -> Option<ThreadId> {
        let known = &self.threads[thread.index()];
        if known.stage != StepStage::Work || known.sent {
            return None;
        }
        match self.op_of(thread)? {
            Op::Put(queue) | Op::Call(queue) => self.deliver(thread, queue),
            Op::Reply(Some(_)) => self.answer(thread),
            _ => None,
        }
    }

    /// Work under the lock of the memory map.
    fn change_map(&mut self, me: ThreadId, writes: bool, work: Action) -> Option<Action> {
        let thread = &mut self.threads[me.index()];
        let map = &mut self.maps[thread.map];
        if thread.stage == StepStage::Work {
            thread.advance();
            return map.give_back(writes).map(Action::Wake);
        }
        if !map.try_take(me, writes) {
            if !map.sleepers.iter().any(|&(sleeper, _)| sleeper == me) {
                map.sleepers.push_back((me, writes));
            }
            thread.stage = StepStage::Wait;
            return Some(Action::Wait);
        }
        thread.stage = StepStage::Work;
        // Readers come in together.
        match map.next() {
            Some(next) => {
                thread.todo.push_back(work);
                Some(Action::Wake(next))
            }
            None => Some(work),
        }
    }

    fn come_to_barrier(&mut self, me: ThreadId, number: usize) -> Option<Action> {
        let word = (self.locks.len() + number) as u32;
        let (barrier, thread) = (&mut self.barriers[number], &mut self.threads[me.index()]);
        if thread.stage == StepStage::Begin {
            barrier.arrived += 1;
            if barrier.arrived == barrier.threads {
                barrier.arrived = 0;
                barrier.rounds += 1;
                thread.advance();
                if barrier.spins {
                    return Some(Action::Release { word, most: u32::MAX });
                }
                thread.todo.extend(barrier.sleepers.drain(..).map(Action::Wake));
                return None;
            }
            (thread.stage, thread.round) = (StepStage::Wait, barrier.rounds);
            if !barrier.spins {
                barrier.sleepers.push_back(me);
            }
        } else if barrier.rounds > thread.round {
            thread.advance();
            return None;
        }
        Some(if barrier.spins { Action::SpinOn { word, most: Ns::MAX } } else { Action::Wait })
    }

    fn wake_task(&mut self, me: ThreadId, task: usize, count: Option<u32>) -> Option<Action> {
        let state = &mut self.tasks[task];
        let all = state.sleepers.len();
        let wanted = count.map_or(all, |count| count as usize);
        let woken = state.sleepers.drain(..wanted.min(all)).collect::<Vec<_>>();
        state.tokens += (wanted - woken.len()) as u64;
        for &sleeper in &woken {
            self.threads[sleeper.index()].sleeps = false;
        }
        let thread = &mut self.threads[me.index()];
        thread.advance();
        thread.todo.extend(woken.into_iter().map(Action::Wake));
        None
    }

    fn wait(&mut self, me: ThreadId) -> Option<Action> {
        let thread = &mut self.threads[me.index()];
        let state = &mut self.tasks[thread.task];
        if thread.stage == StepStage::Wait {
            if !thread.sleeps {
                thread.advance();
                return None;
            }
        } else if state.tokens > 0 {
            state.tokens -= 1;
            thread.advance();
            return None;
        } else {
            state.sleepers.push_back(me);
            (thread.stage, thread.sleeps) = (StepStage::Wait, true);
        }
        Some(Action::Wait)
    }

    /// Whether `thread`, which is about to sleep at its step, still has to.
    pub(super) fn waits(&self, me: ThreadId) -> bool {
        let thread = &self.threads[me.index()];
        match self.op_of(me) {
            Some(Op::Lock(lock)) => self.locks[lock].sleepers.contains(&me),
            Some(Op::Take(queue)) => self.queues[queue].has_taker(me),
            Some(Op::Put(_) | Op::Call(_)) if thread.stage == StepStage::Reply => !thread.replied,
            Some(Op::Put(queue) | Op::Call(queue)) => self.queues[queue].putters.contains(&me),
            Some(Op::Fault(_) | Op::Map(_)) => self.maps[thread.map].keeps(me),
            Some(Op::Barrier(barrier)) => self.barriers[barrier].rounds == thread.round,
            Some(Op::Wait) => thread.sleeps,
            Some(Op::Join) => thread.children > 0,
            _ => false,
        }
    }

    /// What a thread that spins sees: a lock that it has now, or a barrier to which all have come.
    pub(super) fn looks_at(&mut self, me: ThreadId, word: usize) -> bool {
        match self.locks.get_mut(word) {
            Some(lock) => lock.try_take(me),
            None => {
                let round = self.threads[me.index()].round;
                self.barriers.get(word - self.locks.len()).is_none_or(|barrier| barrier.rounds > round)
            }
        }
    }
}
