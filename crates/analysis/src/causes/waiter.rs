//! One wait that goes on, and its parts so far.
//!
//! Must not know: whose wait it is, what else happens.

use fairlab_event::{Cpu, Ns};

use super::cause::{Cause, DecisionReason, StretchEnd, WaitBehind, WaitKind, WakeupPlacement};

/// Counts and times of one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CauseTotal {
    /// How many parts of stretches.
    pub(crate) count: u64,
    /// Of these, how many began their stretch.
    pub(crate) stretches: u64,
    pub(crate) time: Ns,
    pub(crate) beside_idle: Ns,
}

impl CauseTotal {
    pub(crate) fn add(&mut self, other: CauseTotal) {
        self.count += other.count;
        self.stretches += other.stretches;
        self.time = self.time.saturating_add(other.time);
        self.beside_idle = self.beside_idle.saturating_add(other.beside_idle);
    }
}

/// Adds a total to that of its key, of which a wait has few.
pub(crate) fn add_to<K: PartialEq>(totals: &mut Vec<(K, CauseTotal)>, key: K, total: CauseTotal) {
    match totals.iter_mut().find(|(known, _)| *known == key) {
        Some((_, known)) => known.add(total),
        None => totals.push((key, total)),
    }
}

/// What clocks show that count only at some times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConditionalClocks {
    pub(super) now: Ns,
    /// For how long any CPU was idle.
    pub(super) idle: Ns,
    /// For how long the task's groups were throttled on its CPU.
    pub(super) throttled: Ns,
    /// For how long its CPU was busy with interrupts, where that is asked for.
    pub(super) interrupts: Ns,
}

/// A part of the stretch behind the task that has the CPU now: its end is not known yet.
#[derive(Clone, Copy, Debug)]
struct OpenCause {
    rule: DecisionReason,
    cell: CauseTotal,
}

/// A wait that goes on.
#[derive(Clone, Debug)]
pub(super) struct Waiter {
    pub(super) kind: WaitKind,
    pub(super) start: Ns,
    /// Where it is queued; none while its wakeup is under way.
    pub(super) on: Option<Cpu>,
    /// What its latest decision was.
    pub(super) rule: DecisionReason,
    /// Where its wakeup put it, and why by the reason's place.
    pub(super) placed: Option<(WakeupPlacement, u16)>,
    since: ConditionalClocks,
    open: Vec<OpenCause>,
    throttled: Ns,
    interrupts: CauseTotal,
    closed: Vec<(Cause, CauseTotal)>,
}

impl Waiter {
    pub(super) fn new(
        kind: WaitKind,
        start: Ns,
        on: Option<Cpu>,
        rule: DecisionReason,
        clocks: ConditionalClocks,
    ) -> Waiter {
        Waiter {
            kind,
            start,
            on,
            rule,
            placed: None,
            since: clocks,
            open: Vec::new(),
            throttled: Ns::ZERO,
            interrupts: CauseTotal::default(),
            closed: Vec::new(),
        }
    }

    /// Another decision holds from now on.
    pub(super) fn decided(&mut self, rule: DecisionReason, clocks: ConditionalClocks) {
        if rule != self.rule {
            self.cut(self.rule, clocks);
            self.rule = rule;
        }
    }

    /// What clocks showed at a time between the last cut and now. What they do not tell is taken to be before it, as far as that
    /// has room: a reschedule is seldom pending for long. The rest is after it, so that nothing is lost.
    fn clocks_at(&self, at: Ns, clocks: ConditionalClocks) -> ConditionalClocks {
        let ConditionalClocks { now, idle, throttled, interrupts } = self.since;
        let whole = at.since(now);
        let in_quota = clocks.throttled.since(throttled).min(whole);
        let in_interrupts = clocks.interrupts.since(interrupts).min(whole.since(in_quota));
        ConditionalClocks {
            now: at,
            idle: clocks.idle.since(clocks.now.since(at)).max(idle),
            throttled: throttled.saturating_add(in_quota),
            interrupts: interrupts.saturating_add(in_interrupts),
        }
    }

    /// What has passed since the last cut goes to `rule`.
    fn cut(&mut self, rule: DecisionReason, clocks: ConditionalClocks) {
        let since = std::mem::replace(&mut self.since, clocks);
        let whole = clocks.now.since(since.now);
        let throttled = clocks.throttled.since(since.throttled).min(whole);
        self.throttled = self.throttled.saturating_add(throttled);
        let interrupts = clocks.interrupts.since(since.interrupts).min(whole.since(throttled));
        let time = whole.since(throttled).since(interrupts);
        let idle = clocks.idle.since(since.idle);
        // Which of the time that was, clocks do not tell.
        let beside_idle = idle.since(idle.min(time)).min(interrupts);
        self.interrupts.add(CauseTotal { count: 0, stretches: 0, time: interrupts, beside_idle });
        if time == Ns::ZERO {
            return;
        }
        let cell = CauseTotal { count: 1, stretches: 0, time, beside_idle: idle.min(time) };
        match self.open.iter_mut().find(|open| open.rule == rule) {
            // One stretch has a cause once.
            Some(open) => open.cell.add(CauseTotal { count: 0, ..cell }),
            None => self.open.push(OpenCause { rule, cell }),
        }
    }

    /// The stretch behind `behind` is over; a reschedule was `pending` since then.
    pub(super) fn close(
        &mut self,
        (behind, runner): (WaitBehind, u16),
        ended: StretchEnd,
        pending: Option<Ns>,
        clocks: ConditionalClocks,
    ) {
        if let Some(pending) = pending.filter(|&pending| pending < clocks.now) {
            let at = pending.max(self.since.now);
            self.cut(self.rule, self.clocks_at(at, clocks));
            self.cut(DecisionReason::PENDING, clocks);
        } else {
            self.cut(self.rule, clocks);
        }
        let throttled = std::mem::take(&mut self.throttled);
        if throttled > Ns::ZERO {
            let cause = Cause {
                behind: WaitBehind::Throttled,
                runner: 0,
                rule: DecisionReason::UNKNOWN,
                ended: StretchEnd::Unthrottled,
            };
            let cell = CauseTotal { count: 1, stretches: 1, time: throttled, beside_idle: Ns::ZERO };
            self.closed_by(cause, cell);
        }
        self.close_interrupts(ended);
        for (place, OpenCause { rule, mut cell }) in std::mem::take(&mut self.open).into_iter().enumerate() {
            cell.stretches = u64::from(place == 0);
            let is_behind = !matches!(behind, WaitBehind::Idle | WaitBehind::Waking);
            if !is_behind {
                cell.beside_idle = Ns::ZERO;
            }
            let rule =
                if is_behind || rule == DecisionReason::PENDING { rule } else { DecisionReason::UNKNOWN };
            self.closed_by(Cause { behind, runner, rule, ended }, cell);
        }
    }

    fn close_interrupts(&mut self, ended: StretchEnd) {
        let interrupts = std::mem::take(&mut self.interrupts);
        if interrupts.time > Ns::ZERO {
            let cause =
                Cause { behind: WaitBehind::Interrupts, runner: 0, rule: DecisionReason::UNKNOWN, ended };
            self.closed_by(cause, CauseTotal { count: 1, stretches: 1, ..interrupts });
        }
    }

    fn closed_by(&mut self, cause: Cause, cell: CauseTotal) {
        add_to(&mut self.closed, cause, cell);
    }

    /// The clocks of another CPU count from now on.
    pub(super) fn counts_from(&mut self, clocks: ConditionalClocks) {
        self.since = clocks;
    }

    /// All parts of the wait, which is over.
    pub(super) fn parts(self) -> Vec<(Cause, CauseTotal)> {
        self.closed
    }
}
