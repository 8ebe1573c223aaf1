//! What some tasks did, counted from events: waits after wakeups, run time, switches, placements. Any kernel's events will do.
//!
//! Must not know: who wants it.

use std::collections::{BTreeMap, BTreeSet};

use fairlab_event::{Cpu, Event, EventKind, Ns, Pid, Sink};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::balancing::Balancing;

/// Which tasks are counted, and which of their waits.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Watched {
    /// Their name; a star stands for any letters.
    #[serde(default = "any")]
    pub task: String,
    /// Waits after wakeups by tasks of this name alone.
    pub by: Option<String>,
    /// A task that an interrupt wakes once, as a timer does, is left out.
    #[serde(default)]
    pub by_tasks_alone: bool,
    /// Waits of tasks that were placed with more lag than this, ns of virtual time.
    pub lag_above: Option<i64>,
    /// Whether each wait is kept.
    #[serde(default = "yes")]
    pub waits: bool,
    /// Run time on this CPU and on those of higher numbers alone.
    pub from_cpu: Option<u32>,
    /// Waits at one of so many wakeups after one without lag.
    pub after_no_lag: Option<u32>,
    /// Placements of groups' entities with a deadline further ahead than this are counted, ms of virtual time.
    pub group_deadline_ms: Option<i64>,
}

fn yes() -> bool {
    true
}

fn any() -> String {
    "*".to_string()
}

/// Whether a name is one that the pattern means.
pub fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else { return pattern == name };
    let Some(rest) = name.strip_prefix(head) else { return false };
    tail.is_empty() || (0..=rest.len()).any(|at| rest.get(at..).is_some_and(|rest| matches(tail, rest)))
}

/// A wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wait {
    /// Who waited.
    pub pid: Pid,
    /// Where it ran then.
    pub cpu: Cpu,
    /// When it was woken.
    pub start: Ns,
    /// When it ran.
    pub end: Ns,
    /// The lag with which it was placed, ns of virtual time.
    pub lag: Option<i64>,
    /// When a group's entity was last placed on this CPU with a deadline far ahead, if ever.
    pub far_placement: Option<Ns>,
    /// How far ahead that was, ns of virtual time; the furthest of the placements of that moment.
    pub far_ahead: i64,
}

impl Wait {
    /// How long it was.
    pub fn length(&self) -> Ns {
        self.end.since(self.start)
    }
}

/// What was counted of some tasks in a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counted {
    /// Each wait, in the order in which they ended.
    pub waits: Vec<(Pid, Ns)>,
    /// The longest.
    pub longest: Option<Wait>,
    /// Their run time.
    pub ran: Ns,
    /// Switches to them.
    pub switches: u64,
    /// Placements of groups' entities with a deadline far ahead.
    pub placements: u64,
    waiting: BTreeMap<Pid, (Ns, Option<i64>)>,
    woken_by_interrupt: BTreeSet<Pid>,
    since_no_lag: BTreeMap<Pid, u32>,
}

/// Counts all that is wanted.
#[derive(Clone, Debug)]
pub struct Counting<'w> {
    watched: &'w BTreeMap<String, Watched>,
    counted: Vec<Counted>,
    /// The last placement of a group's entity with a deadline far ahead, a CPU each.
    far: BTreeMap<Cpu, (Ns, i64)>,
    far_ahead: i64,
    /// Waits that begin then or later count.
    from: Ns,
    /// What balancing told from then on.
    pub balancing: Balancing,
}

impl<'w> Counting<'w> {
    /// Counts waits that begin at `from` or later, and what balancing tells from then on.
    pub fn new(watched: &'w BTreeMap<String, Watched>, from: Ns) -> Counting<'w> {
        let far = watched.values().filter_map(|watched| watched.group_deadline_ms).min();
        Counting {
            watched,
            counted: vec![Counted::default(); watched.len()],
            far: BTreeMap::new(),
            far_ahead: far.map_or(i64::MAX, |ms| ms * 1_000_000),
            from,
            balancing: Balancing::default(),
        }
    }

    /// What was counted, by name.
    pub fn finish(self) -> BTreeMap<String, Counted> {
        let finished = |mut counted: Counted| {
            let Counted { waits, woken_by_interrupt, .. } = &mut counted;
            waits.retain(|(task, _)| !woken_by_interrupt.contains(task));
            let Counted { waits, longest, ran, switches, placements, .. } = counted;
            Counted { waits, longest, ran, switches, placements, ..Counted::default() }
        };
        self.watched.keys().cloned().zip(self.counted.into_iter().map(finished)).collect()
    }

    fn each(&mut self, mut of: impl FnMut(&Watched, &mut Counted)) {
        for (watched, counted) in self.watched.values().zip(&mut self.counted) {
            of(watched, counted);
        }
    }
}

impl Counted {
    /// What was counted, once it is finished.
    pub fn to_json(&self) -> Value {
        let waits = self.waits.iter().map(|(pid, length)| (pid.0, length.0)).collect::<Vec<_>>();
        let longest = self.longest.map(|wait| {
            let Wait { pid, cpu, start, end, lag, far_placement, far_ahead } = wait;
            json!([pid.0, cpu.0, start.0, end.0, lag, far_placement.map(|at| at.0), far_ahead])
        });
        json!([waits, longest, self.ran.0, self.switches, self.placements])
    }

    /// What [`to_json`](Counted::to_json) gave; `None` of anything else.
    pub fn of_json(value: &Value) -> Option<Counted> {
        type Longest = (i32, u32, u64, u64, Option<i64>, Option<u64>, i64);
        type Fields = (Vec<(i32, u64)>, Option<Longest>, u64, u64, u64);
        let (waits, longest, ran, switches, placements) = Fields::deserialize(value).ok()?;
        let longest = longest.map(|(pid, cpu, start, end, lag, far_placement, far_ahead)| Wait {
            pid: Pid(pid),
            cpu: Cpu(cpu),
            start: Ns(start),
            end: Ns(end),
            lag,
            far_placement: far_placement.map(Ns),
            far_ahead,
        });
        let waits = waits.into_iter().map(|(pid, length)| (Pid(pid), Ns(length))).collect();
        Some(Counted { waits, longest, ran: Ns(ran), switches, placements, ..Counted::default() })
    }

    fn ended(&mut self, watched: &Watched, wait: Wait) {
        let Wait { pid, lag, .. } = wait;
        let since = self.since_no_lag.entry(pid).or_insert(u32::MAX);
        *since = if lag == Some(0) { 0 } else { since.saturating_add(1) };
        let late = watched.after_no_lag.is_none_or(|wakeups| *since <= wakeups);
        let has_lag = watched.lag_above.is_none_or(|least| lag.is_some_and(|lag| lag > least));
        if !late || !has_lag {
            return;
        }
        if watched.waits {
            self.waits.push((pid, wait.length()));
        }
        if self.longest.is_none_or(|longest| longest.length() < wait.length()) {
            self.longest = Some(wait);
        }
    }
}

impl Sink for Counting<'_> {
    fn event(&mut self, event: &Event<'_>) {
        if event.time >= self.from {
            self.balancing.event(event);
        }
        match event.kind {
            EventKind::SchedStatRuntime { comm, runtime, .. } => self.each(|watched, counted| {
                let there = watched.from_cpu.is_none_or(|first| event.cpu >= Cpu(first));
                if there && matches(&watched.task, &comm.to_str()) {
                    counted.ran += runtime;
                }
            }),
            EventKind::SchedWaking(wakeup) => self.each(|watched, counted| {
                let by = || watched.by.as_ref().is_none_or(|by| matches(by, &event.context.comm.to_str()));
                if !matches(&watched.task, &wakeup.comm.to_str()) || !by() {
                    return;
                }
                if watched.by_tasks_alone && event.context.flags.in_hardirq() {
                    counted.woken_by_interrupt.insert(wakeup.pid);
                }
                counted.waiting.insert(wakeup.pid, (event.time, None));
            }),
            EventKind::SchedPlace(place) if place.pid == Pid::IDLE => {
                let ahead = place.sed.wrapping_sub(place.sev) as i64;
                if ahead > self.far_ahead {
                    let far = self.far.entry(place.cpu).or_insert((event.time, 0));
                    // The moments of a path from a leaf to the root are one; earlier ones no longer count.
                    let before = if far.0 == event.time { far.1 } else { 0 };
                    *far = (event.time, before.max(ahead));
                    self.each(|_, counted| counted.placements += 1);
                }
            }
            EventKind::SchedPlace(place) => self.each(|_, counted| {
                if let Some(waiting) = counted.waiting.get_mut(&place.pid) {
                    waiting.1 = Some(place.sel);
                }
            }),
            EventKind::SchedSwitch(switch) => {
                let (pid, cpu, end) = (switch.next_pid, event.cpu, event.time);
                let from = self.from;
                let (far_placement, far_ahead) = self.far.get(&cpu).copied().unzip();
                self.each(|watched, counted| {
                    if matches(&watched.task, &switch.next_comm.to_str()) {
                        counted.switches += 1;
                    }
                    let Some((start, lag)) = counted.waiting.remove(&pid) else { return };
                    let far_ahead = far_ahead.unwrap_or_default();
                    if start >= from {
                        counted.ended(watched, Wait { pid, cpu, start, end, lag, far_placement, far_ahead });
                    }
                });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_comes_back() {
        let wait = Wait {
            pid: Pid(7),
            cpu: Cpu(3),
            start: Ns(5),
            end: Ns(u64::MAX),
            lag: Some(-9),
            far_placement: None,
            far_ahead: i64::MIN,
        };
        let counted = Counted {
            waits: vec![(Pid(7), Ns(1)), (Pid(8), Ns(2))],
            longest: Some(wait),
            ran: Ns(3),
            switches: 4,
            placements: 5,
            ..Counted::default()
        };
        for counted in [Counted::default(), counted] {
            assert_eq!(Counted::of_json(&counted.to_json()), Some(counted));
        }
        assert_eq!(Counted::of_json(&json!([[], null, 1])), None);
    }

    #[test]
    fn a_star_stands_for_any_letters() {
        for (pattern, name, is) in [
            ("schbench", "schbench", true),
            ("schbench", "schbench2", false),
            ("kworker/*", "kworker/3:1", true),
            ("*/KVM*", "CPU 0/KVM:(2)", true),
            ("*/KVM", "CPU 0/KVM:(2)", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, name), is, "{pattern} {name}");
        }
    }
}
