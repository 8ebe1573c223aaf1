//! What is reported and not yet handed over: events, printed probes, and where "here" is.
//!
//! Must not know: who reports, and what.

use fairlab_event::{Context, Cpu, Event, EventKind, Ns, Pid, TextFields};

use crate::cpumask::CpuMask;

/// In what context kernel code runs on a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KernelContext {
    /// For the running task: a system call, the end of an interrupt, the idle loop.
    #[default]
    Task,
    /// A hardware interrupt.
    Hardirq,
    /// A soft interrupt.
    Softirq,
}

/// The events reported since the driver last took them, and where "here" is.
#[derive(Clone, Debug, Default)]
pub(crate) struct TraceBuffer {
    pub enabled: bool,
    /// Whether probes are printed as well.
    pub probes: bool,
    /// Whether decisions are emitted as events, with their reasons.
    pub(crate) decisions: bool,
    /// Whether those of balancing are, and what becomes of masks of idle CPUs.
    pub(crate) balancing: bool,
    pub here: Cpu,
    pub mode: KernelContext,
    pub now: Ns,
    /// Ticks until now, and when the last of them was.
    pub jiffies: u64,
    pub(crate) ticked: Ns,
    pub(crate) events: Vec<Event<'static>>,
    /// What probes have printed, each with the number of events that were reported before it.
    pub(crate) printed: Vec<(usize, ReportedAt, PrintedEvent)>,
    /// Which tasks may run where from now on; `None`: everywhere.
    pub(crate) allowed: Vec<(Pid, Option<CpuMask>)>,
}

/// Where and when something was reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportedAt {
    pub(crate) time: Ns,
    pub(crate) cpu: Cpu,
    pub(crate) context: Context,
}

/// What one probe, or one event without a type, has printed.
#[derive(Clone, Debug)]
pub(crate) struct PrintedEvent {
    /// Whether a kprobe did; otherwise it is a tracepoint.
    pub is_probe: bool,
    pub name: &'static str,
    pub text: String,
}

impl PrintedEvent {
    /// The same as an event.
    pub fn kind(&self) -> EventKind<'_> {
        let fields = TextFields::new(&self.text);
        match self.is_probe {
            true => EventKind::Kprobe { name: self.name, fields },
            false => EventKind::Other { name: self.name, fields },
        }
    }
}
