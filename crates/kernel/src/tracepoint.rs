//! What the core reports: the kernel's tracepoints, buffered until the driver takes them.

use fairlab_event::{Comm, Context, Cpu, Event, EventKind, Flags, Ns, Pid, Sink, StatDelay, Wakeup};

use crate::all_cpus::Shared;
use crate::cpumask::CpuMask;
use crate::ids::TaskId;
use crate::scheduler::Scheduler;
use crate::trace::{KernelContext, PrintedEvent, ReportedAt};

impl Shared {
    pub(crate) fn count_jiffies(&mut self, now: Ns) {
        self.trace.jiffies = self.jiffies_at(now);
        self.trace.ticked = self.jiffy_began(self.trace.jiffies);
    }

    /// Reports what a probe has printed from the current place.
    pub(crate) fn print(&mut self, printed: PrintedEvent) {
        let place = self.place();
        self.trace.printed.push((self.trace.events.len(), place, printed));
    }

    /// Reports an event that has no type from the current place.
    #[cold]
    pub(crate) fn report_text(&mut self, name: &'static str, text: impl FnOnce() -> String) {
        if self.trace.enabled {
            self.print(PrintedEvent { is_probe: false, name, text: text() });
        }
    }

    /// Reports `kind` from the current place.
    #[inline]
    pub(crate) fn report(&mut self, kind: EventKind<'static>) {
        if self.trace.enabled {
            self.push_event(kind);
        }
    }

    /// The same for what has to be asked for first: it is not where nothing is reported.
    #[inline]
    pub(crate) fn report_that(&mut self, kind: impl FnOnce(&Shared) -> EventKind<'static>) {
        if self.trace.enabled {
            self.push_event(kind(self));
        }
    }

    #[inline(never)]
    fn push_event(&mut self, kind: EventKind<'static>) {
        let ReportedAt { time, cpu, context } = self.place();
        self.trace.events.push(Event { time, cpu, context, kind });
    }

    fn place(&self) -> ReportedAt {
        let cpu = &self.cpus[self.trace.here.index()];
        let task = &self.tasks[cpu.curr.index()];
        let pending = match (cpu.need_resched, cpu.need_resched_lazy) {
            (true, false) => b'N',
            (true, true) => b'B',
            (false, true) => b'l',
            (false, false) => b'.',
        };
        let (interrupt, depth) = match self.trace.mode {
            KernelContext::Task => (b'.', b'2'),
            KernelContext::Hardirq => (b'h', b'2'),
            KernelContext::Softirq => (b's', b'4'),
        };
        let flags = Flags::new(&[b'd', pending, interrupt, depth, b'.']);
        // The trace's own table of names has no entry for pid 0.
        let comm = if task.pid.is_idle() { Comm::IDLE } else { task.comm };
        let context = Context { comm, pid: task.pid, tgid: task.tgid, flags };
        ReportedAt { time: self.trace.now, cpu: self.trace.here, context }
    }

    pub(crate) fn wakeup_of(&self, task: TaskId) -> Wakeup {
        let task = &self.tasks[task.index()];
        Wakeup { comm: task.comm, pid: task.pid, prio: task.prio(), target_cpu: task.cpu }
    }

    pub(crate) fn delay_of(&self, task: TaskId, delay: Ns) -> StatDelay {
        let task = &self.tasks[task.index()];
        StatDelay { comm: task.comm, pid: task.pid, delay }
    }
}

impl Scheduler {
    /// Tells the core where and when the code that it stands for runs; holds until the next call.
    ///
    /// Every event is reported by `here`, whichever runqueue it is about.
    pub fn set_here(&mut self, here: Cpu, mode: KernelContext, now: Ns) {
        self.shared.trace.here = here;
        self.shared.trace.mode = mode;
        self.shared.trace.now = now;
        if now.0.wrapping_sub(self.shared.trace.ticked.0) >= self.shared.sysctl.jiffy {
            self.shared.count_jiffies(now);
        }
    }

    /// Whether events are reported at all; a run without an observer is faster.
    pub fn set_tracing(&mut self, enabled: bool) {
        self.shared.trace.enabled = enabled;
    }

    /// Hands over the events reported since the last call, in order.
    #[inline]
    pub fn drain_events(&mut self, sink: &mut dyn Sink) {
        if !self.shared.trace.allowed.is_empty() {
            self.drain_allowed(sink);
        }
        if !self.shared.trace.printed.is_empty() {
            return self.drain_printed(sink);
        }
        if self.shared.trace.events.is_empty() {
            return;
        }
        for event in self.shared.trace.events.drain(..) {
            sink.event(&event);
        }
    }

    /// Tells before the events of an instant where tasks may run from then on.
    #[cold]
    fn drain_allowed(&mut self, sink: &mut dyn Sink) {
        for (pid, mask) in self.shared.trace.allowed.drain(..) {
            let cpus = mask.map_or_else(Vec::new, |mask| mask.iter().collect::<Vec<_>>());
            sink.allowed(pid, &cpus);
        }
    }

    /// Reports where a task may run from now on.
    pub(crate) fn report_allowed(&mut self, pid: Pid, allowed: &CpuMask) {
        if self.shared.trace.enabled {
            let online = self.shared.topology.online();
            let mask = allowed.and(online);
            self.shared.trace.allowed.push((pid, (mask != *online).then_some(mask)));
        }
    }

    fn drain_printed(&mut self, sink: &mut dyn Sink) {
        let mut events = self.shared.trace.events.drain(..).enumerate().peekable();
        for (before, ReportedAt { time, cpu, context }, printed) in self.shared.trace.printed.drain(..) {
            while let Some((_, event)) = events.next_if(|(number, _)| *number < before) {
                sink.event(&event);
            }
            sink.event(&Event { time, cpu, context, kind: printed.kind() });
        }
        events.for_each(|(_, event)| sink.event(&event));
    }
}

impl Shared {
    /// Ticks since the machine started.
    pub(crate) fn jiffies(&self) -> u64 {
        self.trace.jiffies
    }

    pub(crate) fn jiffies_at(&self, now: Ns) -> u64 {
        let (jiffy, ahead) = self.jiffy_at_start();
        // One that is under way at the beginning of the clock counts.
        self.sysctl.first_jiffy + (now.0 + ahead) / jiffy
    }

    /// When a jiffy begins, which may be before the clock does.
    pub(crate) fn jiffy_began(&self, jiffies: u64) -> Ns {
        let (jiffy, ahead) = self.jiffy_at_start();
        Ns(jiffies.wrapping_sub(self.sysctl.first_jiffy).wrapping_mul(jiffy).wrapping_sub(ahead))
    }

    /// How long a jiffy is, and how much of one is over when the clock begins, ns.
    pub(crate) fn jiffy_at_start(&self) -> (u64, u64) {
        let jiffy = self.sysctl.jiffy.max(1);
        (jiffy, (jiffy - self.sysctl.jiffy_phase % jiffy) % jiffy)
    }
}
