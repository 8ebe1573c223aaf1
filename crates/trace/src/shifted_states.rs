//! Corrects states of `sched_switch` that a kernel prints one bit too far.
//!
//! From v4.15 (3f5fe9fef5b2) to v4.19 the event shifts 1 by the number of a state that counts from one, not from zero
//! (3054426dc68e fixes it). So a task that stays runnable is printed as `S`, a sleeping one as `D`, and a zombie as `P`. An
//! idle kernel thread comes out as the bit for preemption inside the kernel, `R+`. The idle task shows the error: it never
//! sleeps, and leaves its CPU as `S` only under such a kernel. The release is not asked, so a corrected trace that is written
//! again stays as it is.
//!
//! Must not know: formats.

use fairlab_event::{Event, EventKind, Sink, Switch, System, TaskState};

use crate::{ImportError, ImportStats, Trouble};

/// Kernel threads that sleep idle (`TASK_IDLE`), by how their names begin: those of workqueues, and RCU's.
const IDLING: [&[u8]; 2] = [b"kworker/", b"rcu_"];

/// Reads a trace by `read` into `sink`, its states put right where the kernel printed them one bit too far.
pub(crate) fn mended<S: Sink>(
    sink: &mut S,
    read: impl FnOnce(&mut dyn Sink) -> Result<ImportStats, ImportError>,
) -> Result<ImportStats, ImportError> {
    let mut mend = ShiftedStateFix { sink, events: 0, shifted: 0, first: 0 };
    let mut stats = read(&mut mend)?;
    if mend.shifted > 0 {
        stats.add(Trouble::ShiftedState, mend.shifted, mend.first);
    }
    Ok(stats)
}

struct ShiftedStateFix<'s, S> {
    sink: &'s mut S,
    events: u64,
    /// How many switches were put right.
    shifted: u64,
    /// The number of the event that first showed it, from 1.
    first: u64,
}

impl<S: Sink> Sink for ShiftedStateFix<'_, S> {
    fn event(&mut self, event: &Event<'_>) {
        self.events += 1;
        let EventKind::SchedSwitch(switch) = &event.kind else { return self.sink.event(event) };
        if self.first == 0 && switch.prev_pid.is_idle() && switch.prev_state == TaskState::INTERRUPTIBLE {
            self.first = self.events;
        }
        if self.first == 0 {
            return self.sink.event(event);
        }
        self.shifted += 1;
        let kind = EventKind::SchedSwitch(Switch { prev_state: meant(switch), ..*switch });
        self.sink.event(&Event { kind, ..*event });
    }

    fn system(&mut self, system: &System) {
        self.sink.system(system);
    }
}

/// The state that is meant. Whether a thread that may idle was preempted instead, the event does not tell: that is rare,
/// since such threads are preempted only where they offer it.
fn meant(switch: &Switch) -> TaskState {
    let name = switch.prev_comm;
    if !switch.prev_state.is_preempted() {
        return switch.prev_state.one_bit_nearer();
    }
    match IDLING.iter().any(|start| name.as_bytes().starts_with(start)) {
        true => TaskState::IDLE,
        false => switch.prev_state,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReadOptions, read};
    use fairlab_event::sink_fn;

    /// The states that come of lines with these names, numbers and states.
    fn states(switches: &[(&str, u32, &str)]) -> (Vec<String>, ImportStats) {
        let line = |(at, (comm, pid, state)): (usize, &(&str, u32, &str))| {
            format!(
                "x-1 [000] d... 1.{at:06}: sched_switch: prev_comm={comm} prev_pid={pid} prev_prio=120 \
                 prev_state={state} ==> next_comm=x next_pid=1 next_prio=120\n"
            )
        };
        let text = switches.iter().enumerate().map(line).collect::<String>();
        let text = format!("# tracer: nop\n{text}");
        let mut states = Vec::new();
        let mut keep = sink_fn(|event: &Event<'_>| {
            if let EventKind::SchedSwitch(switch) = event.kind {
                states.push(switch.prev_state.to_string());
            }
        });
        let stats = read(Box::new(text.as_bytes()), &ReadOptions::default(), &mut keep).expect("a trace");
        drop(keep);
        (states, stats)
    }

    #[test]
    fn states_are_put_right_once_the_idle_task_seems_to_sleep() {
        let (states, stats) = states(&[
            ("a", 7, "S"),
            ("swapper/0", 0, "S"),
            ("a", 7, "S"),
            ("a", 7, "D"),
            ("a", 7, "T"),
            ("a", 7, "Z"),
            ("a", 7, "P"),
            ("kworker/0:1", 9, "R+"),
            ("rcu_sched", 10, "R+"),
            ("khugepaged", 11, "R+"),
        ]);
        assert_eq!(states, ["S", "R", "R", "S", "D", "X", "Z", "I", "I", "R+"]);
        assert_eq!(stats.count(Trouble::ShiftedState), 9);
        assert_eq!(stats.troubles()[0].first_at, 2);
    }

    #[test]
    fn what_other_kernels_print_stays() {
        let switches = [("swapper/0", 0, "R"), ("a", 7, "S"), ("kworker/0:1", 9, "R+"), ("a", 7, "X")];
        let (states, stats) = states(&switches);
        assert_eq!(states, ["R", "S", "R+", "X"]);
        assert_eq!(stats.count(Trouble::ShiftedState), 0);
    }
}
