//! What the thread that finds events hands to the one that knows tasks: events as far as they tell themselves what they are.
//!
//! Must not know: who runs where, what tasks are called.

use fairlab_event::{Comm, Context, Cpu, Event, EventKind, Flags, Ns, Pid, Prio, Switch, TaskState, Wakeup};

use super::compact::{CompactSwitch, CompactWaking};
use super::cpu::{CpuEvents, CpuItem};
use super::decode::{self, TraceCodes};
use crate::tracepoint::flags;

/// What happened next on any CPU.
#[derive(Debug)]
pub(super) struct PendingEvent {
    pub(super) event: Event<'static>,
    /// Where it stands in its store.
    pub(super) position: u64,
    pub(super) lacks: MissingPart,
}

/// What of an event must be found out yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissingPart {
    /// No task reports it.
    Nothing,
    /// Name and process of the task that reports it.
    Name,
    /// All of it: it is to be read from the bytes that go with it.
    Everything,
    /// Who leaves a CPU, in which state.
    Leaver { prev_state: u64 },
    /// The task that reports it, which is the one that runs.
    Runner,
}

impl PendingEvent {
    /// The next of a CPU, and the bytes that go with it.
    #[inline]
    pub(super) fn next<'c>(
        cpu: &'c mut CpuEvents,
        codes: TraceCodes<'_>,
    ) -> Option<(PendingEvent, &'c [u8])> {
        let (time, number, position) = (Ns(cpu.time), cpu.cpu, cpu.position());
        let (next, bytes) = cpu.take()?;
        let found = |context, kind, lacks| {
            let event = Event { time, cpu: number, context, kind };
            Some((
                PendingEvent { event, position, lacks },
                if lacks == MissingPart::Everything { bytes } else { &[] },
            ))
        };
        let lost = EventKind::Lost { count: None };
        match next {
            CpuItem::Event => match plain(bytes, number, codes) {
                Some((context, kind, lacks)) => found(context, kind, lacks),
                None => found(Context::default(), lost, MissingPart::Everything),
            },
            CpuItem::Switch(switch) => {
                let lacks = MissingPart::Leaver { prev_state: switch.prev_state };
                found(Context::default(), arrival(&switch), lacks)
            }
            CpuItem::Waking(CompactWaking { pid, prio, comm, target_cpu, flags, .. }) => {
                let flags = flags.map_or(Flags::NONE, |bits| flags::columns(bits, 0));
                let kind = EventKind::SchedWaking(Wakeup { comm, pid, prio, target_cpu });
                found(Context { flags, ..Context::default() }, kind, MissingPart::Runner)
            }
            CpuItem::Lost => found(Context::default(), lost, MissingPart::Nothing),
        }
    }
}

/// An event that carries no text but names of tasks.
#[inline]
fn plain(
    bytes: &[u8],
    cpu: Cpu,
    codes: TraceCodes<'_>,
) -> Option<(Context, EventKind<'static>, MissingPart)> {
    let around = decode::around(bytes)?;
    let (field, own) = around.own?;
    let kind = idle_named(decode::plain(field, own, codes)?, cpu);
    let context =
        Context { pid: around.pid.unwrap_or(Pid::UNKNOWN), flags: around.flags, ..Context::default() };
    Some((context, kind, if around.pid.is_some() { MissingPart::Name } else { MissingPart::Nothing }))
}

/// Who comes, as a switch in columns tells it.
#[inline]
fn arrival(switch: &CompactSwitch) -> EventKind<'static> {
    EventKind::SchedSwitch(Switch {
        prev_comm: Comm::default(),
        prev_pid: Pid::UNKNOWN,
        prev_prio: Prio::default(),
        prev_state: TaskState::RUNNABLE,
        next_comm: switch.next_comm,
        next_pid: switch.next_pid,
        next_prio: switch.next_prio,
    })
}

/// Some recorders leave out the name of the idle task.
#[inline]
pub(super) fn idle_named(mut kind: EventKind<'_>, cpu: Cpu) -> EventKind<'_> {
    if let EventKind::SchedSwitch(switch) = &mut kind {
        let tasks = [(switch.prev_pid, &mut switch.prev_comm), (switch.next_pid, &mut switch.next_comm)];
        for (pid, comm) in tasks {
            if pid.is_idle() && comm.is_empty() {
                *comm = Comm::swapper(cpu);
            }
        }
    }
    kind
}
