//! Forms of before the tracepoints printed `name=value` (2.6.35), and the two entries that the wakeup tracers still print.
//!
//! ```text
//! sched_switch: task bash:1234 [120] (S) ==> swapper:0 [140]            from 2.6.30
//! sched_wakeup: task bash:1234 [120] success=1 [001]                    from 2.6.31
//! sched_migrate_task: task bash:1234 [120] from: 0  to: 1
//! sched_process_fork: parent bash:1  child bash:2
//! sched_process_exit: task bash:1234 [120]
//! sched_stat_wait: task: bash:1234 wait: 10 [ns]                        sleep, iowait likewise
//! sched_stat_runtime: task: bash:1234 runtime: 10 [ns], vruntime: 20 [ns]
//!       0:120:R ==> [003]  2847:  0:R sleep                             a switch; no name before it
//!       0:120:R   + [003]  2847:  0:R sleep                             a wakeup
//! ```
//!
//! Must not know: any later form.

use fairlab_event::{Comm, Cpu, EventKind, Ns, Pid, Prio, StatDelay, Switch, TaskState, Tracepoint, Wakeup};

use super::cursor::LineCursor;
use super::plugin::{PluginTask, task};

/// Reads the fields of `tracepoint`, which the task called `reporter` reported.
pub(super) fn event(
    tracepoint: Tracepoint,
    cursor: LineCursor<'_>,
    reporter: Comm,
) -> Option<EventKind<'static>> {
    let text = std::str::from_utf8(cursor.rest().trim_ascii()).ok()?;
    Some(match tracepoint {
        Tracepoint::SchedSwitch => EventKind::SchedSwitch(switch(text, reporter)?),
        Tracepoint::SchedWakeup => EventKind::SchedWakeup(wakeup(text)?),
        Tracepoint::SchedWakeupNew => EventKind::SchedWakeupNew(wakeup(text)?),
        Tracepoint::SchedMigrateTask => {
            let (front, dest) = text.strip_prefix("task ")?.rsplit_once("  to: ")?;
            let (front, orig) = front.rsplit_once(" from: ")?;
            let PluginTask { comm, pid, prio } = task(front.as_bytes())?;
            let (orig_cpu, dest_cpu) = (Cpu(orig.parse().ok()?), Cpu(dest.parse().ok()?));
            EventKind::SchedMigrateTask { comm, pid, prio, orig_cpu, dest_cpu }
        }
        Tracepoint::SchedProcessFork => {
            let text = text.strip_prefix("parent ")?;
            let places = text.match_indices("  child ");
            let (parent, child) = places
                .filter_map(|(at, landmark)| {
                    Some((named(&text[..at])?, named(&text[at + landmark.len()..])?))
                })
                .next()?;
            EventKind::SchedProcessFork {
                comm: parent.0,
                pid: parent.1,
                child_comm: child.0,
                child_pid: child.1,
            }
        }
        Tracepoint::SchedProcessExit => {
            let PluginTask { comm, pid, prio } = task(text.strip_prefix("task ")?.as_bytes())?;
            EventKind::SchedProcessExit { comm, pid, prio, group_dead: None }
        }
        Tracepoint::SchedStatWait => EventKind::SchedStatWait(delay(text, " wait: ")?),
        Tracepoint::SchedStatSleep => EventKind::SchedStatSleep(delay(text, " sleep: ")?),
        Tracepoint::SchedStatIowait => EventKind::SchedStatIowait(delay(text, " iowait: ")?),
        Tracepoint::SchedStatRuntime => {
            let (front, vruntime) = text.rsplit_once(" [ns], vruntime: ")?;
            let StatDelay { comm, pid, delay } = delay(&format!("{front} [ns]"), " runtime: ")?;
            let vruntime = Some(vruntime.strip_suffix(" [ns]")?.parse().ok()?);
            EventKind::SchedStatRuntime { comm, pid, runtime: delay, vruntime }
        }
        _ => return None,
    })
}

/// `task a:1 [120] (S) ==> b:2 [140]`, or without the parentheses. A later kernel's task may be called `task a`: the one
/// that leaves is the one that reports.
fn switch(text: &str, reporter: Comm) -> Option<Switch> {
    let text = text.strip_prefix("task ")?;
    text.match_indices(" ==> ").find_map(|(arrow, landmark)| {
        let (front, state) = text[..arrow].rsplit_once(' ')?;
        let inside = state.strip_prefix('(').and_then(|state| state.strip_suffix(')'));
        let prev = task(front.as_bytes())?;
        let is_later = reporter.as_bytes() == [b"task ", prev.comm.as_bytes()].concat();
        if inside.is_none() && is_later {
            return None;
        }
        let next = task(&text.as_bytes()[arrow + landmark.len()..])?;
        Some(Switch {
            prev_comm: prev.comm,
            prev_pid: prev.pid,
            prev_prio: prev.prio,
            prev_state: TaskState::parse(inside.unwrap_or(state).as_bytes())?,
            next_comm: next.comm,
            next_pid: next.pid,
            next_prio: next.prio,
        })
    })
}

/// `task a:1 [120] success=1 [001]`; what did not wake anybody is no wakeup.
fn wakeup(text: &str) -> Option<Wakeup> {
    let (front, cpu) = text.strip_prefix("task ")?.strip_suffix(']')?.rsplit_once(" [")?;
    let (front, success) = front.rsplit_once(" success=")?;
    let PluginTask { comm, pid, prio } = task(front.as_bytes())?;
    let woke = success.parse::<i32>().ok()? != 0;
    woke.then_some(Wakeup { comm, pid, prio, target_cpu: Cpu(cpu.parse().ok()?) })
}

/// `task: a:1 wait: 10 [ns]`.
fn delay(text: &str, landmark: &str) -> Option<StatDelay> {
    let (front, delay) = text.strip_prefix("task: ")?.rsplit_once(landmark)?;
    let (comm, pid) = named(front)?;
    Some(StatDelay { comm, pid, delay: Ns(delay.strip_suffix(" [ns]")?.parse().ok()?) })
}

/// `a:1`.
fn named(text: &str) -> Option<(Comm, Pid)> {
    let (comm, pid) = text.rsplit_once(':')?;
    (comm.len() < Comm::LEN).then_some((Comm::from(comm), Pid(pid.parse().ok()?)))
}

/// An entry of the wakeup tracers, which stands without a name behind the stamp; `reporter` reported it.
pub(super) fn entry(cursor: LineCursor<'_>, reporter: (Comm, Pid)) -> Option<EventKind<'static>> {
    let text = std::str::from_utf8(cursor.rest().trim_ascii()).ok()?;
    let (front, behind) = text.split_once(" [")?;
    let (cpu, next) = behind.split_once("] ")?;
    let target_cpu = Cpu(cpu.parse().ok()?);
    let (prev, mark) = front.trim_end().rsplit_once(' ')?;
    let (prev_pid, prev_prio, prev_state) = numbers(prev.trim())?;
    let (next_pid, rest) = next.trim_start().split_once(':')?;
    let (next_prio, rest) = rest.trim_start().split_once(':')?;
    let next = format!("{next_pid}:{next_prio}:{}", rest.get(..1)?);
    let (next_pid, next_prio, _) = numbers(&next)?;
    let next_comm = rest.get(1..).map(str::trim).filter(|comm| comm.len() < Comm::LEN).map(Comm::from)?;
    match mark {
        "==>" => Some(EventKind::SchedSwitch(Switch {
            prev_comm: if reporter.1 == prev_pid { reporter.0 } else { Comm::default() },
            prev_pid,
            prev_prio,
            prev_state,
            next_comm,
            next_pid,
            next_prio,
        })),
        "+" => Some(EventKind::SchedWakeup(Wakeup {
            comm: next_comm,
            pid: next_pid,
            prio: next_prio,
            target_cpu,
        })),
        _ => None,
    }
}

/// `2847:  0:R`.
fn numbers(text: &str) -> Option<(Pid, Prio, TaskState)> {
    let mut parts = text.split(':').map(str::trim);
    let (pid, prio, state) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    Some((Pid(pid.parse().ok()?), Prio(prio.parse().ok()?), TaskState::parse(state.as_bytes())?))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn read(tracepoint: Tracepoint, text: &str) -> Option<String> {
        let long_names = Cell::new(0);
        let cursor = LineCursor::new(text.as_bytes(), &long_names);
        event(tracepoint, cursor, Comm::from("bash")).map(|kind| format!("{kind:?}"))
    }

    #[test]
    fn switches_and_wakeups_of_2_6_are_read() {
        for text in ["task bash:7 [120] (S) ==> swapper:0 [140]", "task bash:7 [120] S ==> swapper:0 [140]"] {
            let read = read(Tracepoint::SchedSwitch, text).expect("a switch");
            assert!(
                read.contains("\"bash\"") && read.contains("prev_state: S") && read.contains("Prio(140)")
            );
        }
        assert!(
            read(Tracepoint::SchedWakeup, "task a b:7 [120] success=1 [003]")
                .expect("one")
                .contains("\"a b\"")
        );
        assert_eq!(read(Tracepoint::SchedWakeup, "task a:7 [120] success=0 [003]"), None);
        let long_names = Cell::new(0);
        let later = LineCursor::new(b"task bash:7 [120] S ==> swapper:0 [140]", &long_names);
        assert_eq!(event(Tracepoint::SchedSwitch, later, Comm::from("task bash")), None);
    }

    #[test]
    fn the_others_of_2_6_are_read_and_what_is_cut_is_not() {
        for (tracepoint, text) in [
            (Tracepoint::SchedMigrateTask, "task a:7 [120] from: 0  to: 1"),
            (Tracepoint::SchedProcessFork, "parent a:1  child b:2"),
            (Tracepoint::SchedProcessExit, "task a:7 [120]"),
            (Tracepoint::SchedStatWait, "task: a:7 wait: 5 [ns]"),
            (Tracepoint::SchedStatSleep, "task: a:7 sleep: 5 [ns]"),
            (Tracepoint::SchedStatIowait, "task: a:7 iowait: 5 [ns]"),
            (Tracepoint::SchedStatRuntime, "task: a:7 runtime: 5 [ns], vruntime: 9 [ns]"),
        ] {
            assert!(read(tracepoint, text).is_some(), "{text}");
            for cut in 0..text.len() - 1 {
                assert_eq!(read(tracepoint, &text[..cut]), None, "{}", &text[..cut]);
            }
        }
    }

    #[test]
    fn entries_without_a_name_are_switches_and_wakeups() {
        let long_names = Cell::new(0);
        let read = |text: &'static str| {
            let cursor = LineCursor::new(text.as_bytes(), &long_names);
            entry(cursor, (Comm::from("<idle>"), Pid(0))).map(|kind| format!("{kind:?}"))
        };
        let switch = read("       0:120:R ==> [003]  2847:  0:R sleep").expect("a switch");
        assert!(
            switch.starts_with("SchedSwitch")
                && switch.contains("Pid(2847)")
                && switch.contains("\"<idle>\"")
        );
        let wakeup = read("       0:120:R   + [003]  2847:  0:R two words").expect("a wakeup");
        assert!(
            wakeup.starts_with("SchedWakeup") && wakeup.contains("Cpu(3)") && wakeup.contains("two words")
        );
        for text in
            ["0:120:R - [003] 1:0:R a", "0:120 + [003] 1:0:R a", "0:120:R + [x] 1:0:R a", "a + [1] ", ""]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
