//! For how long a CPU was busy with interrupts and soft interrupts, as their entries and exits tell.
//!
//! Must not know: who waits meanwhile.

use fairlab_event::{Event, Ns};

use super::{Causes, Occupant};

/// A clock that goes while a CPU handles an interrupt.
#[derive(Clone, Debug, Default)]
pub(super) struct InterruptClock {
    /// How many lie on top of each other.
    depth: u32,
    time: Ns,
    since: Ns,
}

/// The thread that handles what soft interrupts leave over.
const SOFTIRQ_THREAD: &[u8] = b"ksoftirqd/";

/// Interrupts that a kernel tells, by the names of their tracepoints without `_entry` and `_exit`. Those of `irq_vectors` are x86's.
const HANDLERS: [&str; 12] = [
    "irq_handler",
    "softirq",
    "local_timer",
    "reschedule",
    "call_function",
    "call_function_single",
    "irq_work",
    "x86_platform_ipi",
    "error_apic",
    "spurious_apic",
    "thermal_apic",
    "ipi",
];

/// The place of soft interrupts there.
const SOFTIRQ: usize = 1;

/// The place of the handler that a tracepoint tells to begin, or to end; none: it is of no interrupt.
fn begins(name: &str) -> Option<(usize, bool)> {
    let (handler, begins) = match name.strip_suffix("_entry") {
        Some(handler) => (handler, true),
        None => (name.strip_suffix("_exit")?, false),
    };
    HANDLERS.iter().position(|known| *known == handler).map(|place| (place, begins))
}

/// Handlers whose ends the trace is known to tell. How long another takes is unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EndsTold([bool; HANDLERS.len()]);

impl EndsTold {
    /// Whether the begin or the end of a handler counts: an end does of which the begin did.
    fn counts(&mut self, handler: usize, begins: bool) -> bool {
        if begins { self.0[handler] } else { std::mem::replace(&mut self.0[handler], true) }
    }
}

impl InterruptClock {
    pub(super) fn time(&self, now: Ns) -> Ns {
        let ongoing = if self.depth > 0 { now.since(self.since) } else { Ns::ZERO };
        self.time.saturating_add(ongoing)
    }

    fn changes(&mut self, begins: bool, now: Ns) {
        (self.time, self.since) = (self.time(now), now);
        self.depth = if begins { self.depth.saturating_add(1) } else { self.depth.saturating_sub(1) };
    }

    /// What switches tasks handles no interrupt: an exit is missing.
    pub(super) fn none(&mut self, now: Ns) {
        (self.time, self.since, self.depth) = (self.time(now), now, 0);
    }
}

impl Causes {
    /// Takes the begin or the end of an interrupt, where interrupts are asked for.
    pub(super) fn interrupted(&mut self, name: &str, event: &Event<'_>) {
        let Some(each) = &mut self.each else { return };
        let Some((handler, begins)) = begins(name) else { return };
        if event.cpu.index() >= super::CPUS_MAX || !each.ends_told.counts(handler, begins) {
            return;
        }
        self.now = event.time.max(self.now);
        let now = self.now;
        // The thread of soft interrupts is told by its name.
        let is_of_thread = match self.cpu_mut(event.cpu).occupant {
            Occupant::Task(task) => self.tracker.task(task).comm.as_bytes().starts_with(SOFTIRQ_THREAD),
            Occupant::Unknown | Occupant::Idle => false,
        };
        if !(handler == SOFTIRQ && is_of_thread) {
            self.cpu_mut(event.cpu).interrupts.changes(begins, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_on_top_of_each_other_count_once() {
        let mut clock = InterruptClock::default();
        for (begins, now) in [(true, 10), (true, 20), (false, 30), (false, 50), (false, 60)] {
            clock.changes(begins, Ns(now));
        }
        assert_eq!(clock.time(Ns(100)), Ns(40));
        clock.changes(true, Ns(100));
        clock.none(Ns(110));
        let mut told = EndsTold::default();
        assert_eq!(
            [true, false, true, false].map(|begins| told.counts(SOFTIRQ, begins)),
            [false, false, true, true]
        );
        assert_eq!(clock.time(Ns(200)), Ns(50));
        assert_eq!(begins("softirq_entry"), Some((SOFTIRQ, true)));
        assert_eq!(begins("irq_handler_exit"), Some((0, false)));
        assert_eq!([begins("hrtimer_expire_entry"), begins("softirq_raise")], [None, None]);
    }
}
