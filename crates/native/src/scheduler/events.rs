//! The image's events in Fairlab's words, kept until their time has come.
//!
//! A call's events may be later than the next event of another CPU. The reader takes all events up to now, in order of time.

use fairlab_event::{
    Context, Cpu, Event, EventKind, Flags, Ns, Pid, Prio, Sink, StatDelay, Switch, TaskState, TextFields,
    Wakeup,
};
use fairlab_kernel::{CpuMask, TaskId};

use super::NativeScheduler;
use super::tasks::NativeTasks;
use crate::abi::{RawEvent, kind};

/// What is kept until its time.
#[derive(Debug, Default)]
pub(super) struct HeldEvents {
    events: Vec<(Event<'static>, Option<Box<UntypedText>>)>,
    /// Their times rise.
    in_order: bool,
    last: Ns,
    /// Where tasks may run from now on; `None`: everywhere.
    allowed: Vec<(Pid, Option<CpuMask>)>,
}

/// The name and the text of an event that has no type.
#[derive(Debug)]
struct UntypedText {
    name: String,
    text: String,
}

impl HeldEvents {
    fn push(&mut self, event: Event<'static>, text: Option<Box<UntypedText>>) {
        if self.events.is_empty() {
            (self.in_order, self.last) = (true, event.time);
        }
        self.in_order &= event.time >= self.last;
        self.last = self.last.max(event.time);
        self.events.push((event, text));
    }

    pub fn push_allowed(&mut self, pid: Pid, mask: Option<CpuMask>) {
        self.allowed.push((pid, mask));
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.allowed.is_empty()
    }

    /// Gives what is not after `now`.
    pub fn drain(&mut self, now: Ns, sink: &mut dyn Sink) {
        for (pid, mask) in self.allowed.drain(..) {
            let cpus = mask.map_or_else(Vec::new, |mask| mask.iter().collect::<Vec<_>>());
            sink.allowed(pid, &cpus);
        }
        if !self.in_order {
            self.events.sort_by_key(|(event, _)| event.time);
            self.in_order = true;
        }
        let due = match self.last <= now {
            true => self.events.len(),
            false => self.events.partition_point(|(event, _)| event.time <= now),
        };
        for (event, text) in &self.events[..due] {
            match text {
                None => sink.event(event),
                Some(text) => {
                    let kind = EventKind::Other { name: &text.name, fields: TextFields::new(&text.text) };
                    sink.event(&Event { kind, ..*event });
                }
            }
        }
        self.events.drain(..due);
    }
}

impl NativeScheduler {
    /// Takes the image's events.
    #[inline(never)]
    pub(super) fn keep_events(&mut self) {
        let (tasks, kept, uptime) = (&self.tasks, &mut self.kept, self.image.uptime());
        self.image.drain_events(|event, text| {
            let Some(kind) = kind_of(tasks, event) else { return };
            let (time, cpu) = (Ns(event.time.saturating_sub(uptime)), Cpu(event.cpu as u32));
            let context = context_of(tasks, TaskId(event.context as u32), &event.flags);
            let text = text.map(|(name, text)| Box::new(UntypedText { name, text }));
            kept.push(Event { time, cpu, context, kind }, text);
        });
    }

    /// Reports an event of the loader's own from where the last call was said to be.
    pub(super) fn report(&mut self, kind: EventKind<'static>) {
        self.report_with(kind, None);
    }

    /// The same with text.
    pub(super) fn report_text(&mut self, name: &str, text: String) {
        let text = Box::new(UntypedText { name: name.to_string(), text });
        self.report_with(PLACE_OF_TEXT, Some(text));
    }

    fn report_with(&mut self, kind: EventKind<'static>, text: Option<Box<UntypedText>>) {
        if !self.tracing {
            return;
        }
        let curr = self.curr[self.here.index()];
        let time = self.now.max(self.busy_until[self.here.index()]);
        let context = context_of(&self.tasks, curr, b"d..2.\0\0\0");
        self.kept.push(Event { time, cpu: self.here, context, kind }, text);
    }
}

/// Stands where a text will.
const PLACE_OF_TEXT: EventKind<'static> = EventKind::Other { name: "", fields: TextFields::new("") };

fn context_of(tasks: &NativeTasks, task: TaskId, flags: &[u8; 8]) -> Context {
    let known = tasks.get(task);
    // The trace's own table of names has no entry for pid 0.
    let comm = if known.pid.is_idle() { fairlab_event::Comm::IDLE } else { known.comm };
    let end = flags.iter().position(|&byte| byte == 0).unwrap_or(flags.len());
    Context { comm, pid: known.pid, tgid: known.tgid, flags: Flags::new(&flags[..end]) }
}

/// `None`: the image has a kind that this loader does not know, though it said that it has none.
fn kind_of(tasks: &NativeTasks, event: &RawEvent) -> Option<EventKind<'static>> {
    let task = tasks.get(TaskId(event.task as u32));
    let (comm, pid, prio) = (task.comm, task.pid, Prio(event.prio));
    let wakeup = || Wakeup { comm, pid, prio, target_cpu: Cpu(event.other as u32) };
    let delay = || StatDelay { comm, pid, delay: Ns(event.value) };
    Some(match event.kind {
        kind::SWITCH => {
            let next = tasks.get(TaskId(event.other as u32));
            EventKind::SchedSwitch(Switch {
                prev_comm: comm,
                prev_pid: pid,
                prev_prio: prio,
                prev_state: state_of(event.state),
                next_comm: next.comm,
                next_pid: next.pid,
                next_prio: Prio(event.other_prio),
            })
        }
        kind::WAKING => EventKind::SchedWaking(wakeup()),
        kind::WAKEUP => EventKind::SchedWakeup(wakeup()),
        kind::WAKEUP_NEW => EventKind::SchedWakeupNew(wakeup()),
        kind::MIGRATE => EventKind::SchedMigrateTask {
            comm,
            pid,
            prio,
            orig_cpu: Cpu(event.other as u32),
            dest_cpu: Cpu(event.other_prio as u32),
        },
        kind::EXIT => {
            let group_dead = (event.other >= 0).then_some(event.other == 1);
            EventKind::SchedProcessExit { comm, pid, prio, group_dead }
        }
        kind::STAT_WAIT => EventKind::SchedStatWait(delay()),
        kind::STAT_SLEEP => EventKind::SchedStatSleep(delay()),
        kind::STAT_BLOCKED => EventKind::SchedStatBlocked(delay()),
        kind::STAT_IOWAIT => EventKind::SchedStatIowait(delay()),
        kind::STAT_RUNTIME => {
            let vruntime = (event.other == 1).then_some(event.value2);
            EventKind::SchedStatRuntime { comm, pid, runtime: Ns(event.value), vruntime }
        }
        kind::TEXT => PLACE_OF_TEXT,
        _ => return None,
    })
}

/// The letters of the header's bits.
const LETTERS: [u8; 8] = *b"SDTtXZPI";

fn state_of(bits: i32) -> TaskState {
    let letters = LETTERS.iter().enumerate().filter(|(bit, _)| bits & (1 << bit) != 0);
    let states = letters.filter_map(|(_, &letter)| TaskState::from_letter(letter));
    let mark = if bits & (1 << 15) != 0 { TaskState::PREEMPTED } else { TaskState::RUNNABLE };
    states.fold(mark, TaskState::union)
}

#[cfg(test)]
mod tests {
    use fairlab_event::sink_fn;

    use super::*;

    fn times(kept: &mut HeldEvents, now: u64) -> Vec<u64> {
        let mut times = Vec::new();
        kept.drain(Ns(now), &mut sink_fn(|event: &Event<'_>| times.push(event.time.0)));
        times
    }

    #[test]
    fn events_wait_for_their_time_and_come_in_order() {
        let mut kept = HeldEvents::default();
        let event = |time| Event::new(Ns(time), Cpu(0), EventKind::Marker { text: "" });
        for time in [5, 9, 18, 7] {
            kept.push(event(time), None);
        }
        assert_eq!(times(&mut kept, 8), [5, 7]);
        kept.push(event(8), None);
        assert_eq!(times(&mut kept, 8), [8]);
        assert_eq!(times(&mut kept, 20), [9, 18]);
        assert!(kept.is_empty());
    }

    #[test]
    fn states_are_the_letters_of_their_bits() {
        for (bits, text) in [(0, "R"), (1, "S"), (2, "D"), (1 << 4, "X"), (1 << 7, "I"), (1 << 15, "R+")] {
            assert_eq!(state_of(bits).to_string(), text);
        }
    }
}
