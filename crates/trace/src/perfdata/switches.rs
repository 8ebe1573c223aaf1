//! Switches from records of their own (`perf record --switch-events`).
//!
//! System-wide, the record of the task that leaves names the next task. For a program's tasks alone, one record says that a
//! task leaves, and another that it comes back; what its CPU does in between is unknown, and the idle task stands for it.
//! Tracepoints of such tasks say as whom and how they leave, and not when they come back: that is taken from the records. Of a
//! task that ends no switch is told: its events are detached before its EXIT is written (`perf_event_exit_task()`,
//! kernel/events/core.c), which stands for it.
//!
//! Layout facts: include/uapi/linux/perf_event.h. Must not know: names, other records.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::io;

use fairlab_event::{IdHasher, SwitchScope, TaskState, Tracepoint};

use super::deliver::kind;
use super::fairlab_notes::CPUS_MAX;
use super::header::Header;
use super::records::bytes_behind;
use super::sample::{SampleTask, TID_MAX};
use super::window::{FileWindow, NextRecord, RECORD_HEADER};
use crate::Trouble;
use crate::endian::Endian;
use crate::store::Store;

/// `PERF_RECORD_MISC_SWITCH_OUT`: the task leaves; else it comes.
const OUT: u16 = 1 << 13;
/// `PERF_RECORD_MISC_SWITCH_OUT_PREEMPT`: it leaves runnable; told from v4.17 on.
const OUT_PREEMPT: u16 = 1 << 14;

const IDLE: i32 = 0;

/// What records of switches are read for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SwitchRecords {
    /// For nothing: there are none, or tracepoints tell the same.
    #[default]
    Unused,
    /// For every switch: no tracepoint tells any.
    Every,
    /// For what tracepoints of some tasks' switches do not tell.
    Untold,
}

impl SwitchRecords {
    /// What those of a file are read for, by the first of them, and whose they are.
    pub(super) fn of(store: &Store, header: &Header) -> io::Result<(SwitchRecords, SwitchScope)> {
        if !header.has_switches {
            return Ok((SwitchRecords::Unused, SwitchScope::Cpus));
        }
        let is_told = header.tracepoints.has(Tracepoint::SchedSwitch.name());
        let by_itself = if is_told { SwitchRecords::Untold } else { SwitchRecords::Every };
        Ok(match first_kind(store, header)? {
            Some(kind::SWITCH) if header.layouts.tells_cpus() => (by_itself, SwitchScope::Tasks),
            Some(kind::SWITCH) if header.tracepoints.len() == 0 => {
                (SwitchRecords::Every, SwitchScope::TasksWithoutCpus)
            }
            // Where other events ran is told, where these switched is not.
            Some(kind::SWITCH) => (SwitchRecords::Unused, SwitchScope::Cpus),
            _ if is_told => (SwitchRecords::Unused, SwitchScope::Cpus),
            _ => (SwitchRecords::Every, SwitchScope::Cpus),
        })
    }

    /// Whether records of this kind are read.
    #[inline]
    pub(super) fn read(self, kind: u32) -> bool {
        match self {
            SwitchRecords::Unused => false,
            SwitchRecords::Every => matches!(kind, kind::SWITCH | kind::SWITCH_CPU_WIDE),
            SwitchRecords::Untold => kind == kind::SWITCH,
        }
    }
}

/// The kind of the first record of a switch. It comes early: behind what is said of the tasks that there were.
fn first_kind(store: &Store, header: &Header) -> io::Result<Option<u32>> {
    const LOOKED_AT: usize = 1 << 18;
    let mut left = LOOKED_AT;
    for stretch in &header.stretches {
        let mut window = FileWindow::new(stretch.start, stretch.end, 1 << 16);
        while left > 0
            && let NextRecord::Record(size) = window.look(store, header.endian)?
        {
            let record = window.bytes(size);
            if let Some(kind @ (kind::SWITCH | kind::SWITCH_CPU_WIDE)) = header.endian.u32(record, 0) {
                return Ok(Some(kind));
            }
            let behind = bytes_behind(record, header.endian);
            window.advance((size as u64).saturating_add(behind));
            left -= 1;
        }
    }
    Ok(None)
}

/// A switch, as a record tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordedSwitch {
    pub(super) cpu: u32,
    pub(super) leaves: i32,
    pub(super) state: TaskState,
    pub(super) comes: i32,
}

/// What is known of tasks and CPUs between records of switches.
#[derive(Debug)]
pub(super) struct SwitchFollower {
    records: SwitchRecords,
    scope: SwitchScope,
    exiting: HashSet<i32>,
    /// Of each CPU the task that the latest switch brought.
    running: HashMap<u32, i32, BuildHasherDefault<IdHasher>>,
    /// Where threads stand whose CPUs are not told.
    places: Option<ThreadPlaces>,
}

impl SwitchFollower {
    pub(super) fn new(records: SwitchRecords, scope: SwitchScope) -> SwitchFollower {
        SwitchFollower {
            records,
            scope,
            exiting: HashSet::new(),
            running: HashMap::default(),
            places: (scope == SwitchScope::TasksWithoutCpus).then(ThreadPlaces::default),
        }
    }

    /// A task is about to end. Where only tasks' own switches are told, this is its last.
    pub(super) fn exits(&mut self, tid: i32, origin: SampleTask) -> Option<RecordedSwitch> {
        if !(1..=TID_MAX).contains(&tid) {
            return None;
        }
        self.exiting.insert(tid);
        if self.records == SwitchRecords::Unused || self.scope == SwitchScope::Cpus {
            return None;
        }
        let cpu = match &mut self.places {
            Some(places) => places.of(tid, true)?,
            None => origin.cpu,
        };
        if self.records == SwitchRecords::Untold && self.running.remove(&cpu) != Some(tid) {
            return None;
        }
        Some(RecordedSwitch { cpu, leaves: tid, state: TaskState::DEAD, comes: IDLE })
    }

    /// A tracepoint says which task comes on a CPU.
    #[inline]
    pub(super) fn comes(&mut self, cpu: u32, tid: i32) {
        if self.records == SwitchRecords::Untold && cpu < CPUS_MAX {
            self.running.insert(cpu, tid);
        }
    }

    /// The switch that a record of `kind` tells; none where another record or event does.
    pub(super) fn take(
        &mut self,
        kind: u32,
        record: &[u8],
        origin: SampleTask,
        endian: Endian,
    ) -> Result<Option<RecordedSwitch>, Trouble> {
        let misc = endian.u16(record, 4).ok_or(Trouble::CorruptRecord)?;
        let (leaves, is_wide) = (misc & OUT != 0, kind == kind::SWITCH_CPU_WIDE);
        if self.scope != SwitchScope::Cpus && self.exiting.remove(&origin.tid) && leaves {
            return Ok(None);
        }
        let leaver = if leaves { origin.tid } else { IDLE };
        let state = if !leaves || misc & OUT_PREEMPT != 0 || leaver == IDLE {
            TaskState::RUNNABLE
        } else if self.exiting.remove(&leaver) {
            TaskState::DEAD
        } else {
            TaskState::INTERRUPTIBLE
        };
        let comes = match (leaves, is_wide) {
            // Who leaves told it.
            (false, true) => return Ok(None),
            (true, true) => endian.u32(record, RECORD_HEADER + 4).ok_or(Trouble::CorruptRecord)? as i32,
            (true, false) => IDLE,
            (false, false) => origin.tid,
        };
        let cpu = match &mut self.places {
            Some(places) => places.of(origin.tid, state == TaskState::DEAD).ok_or(Trouble::CpuUnknown)?,
            None => origin.cpu,
        };
        if self.records == SwitchRecords::Untold {
            // It does not run any more, or it does already.
            let is_told = leaves != (self.running.get(&cpu) == Some(&origin.tid));
            if is_told {
                return Ok(None);
            }
            self.comes(cpu, comes);
        }
        Ok(Some(RecordedSwitch { cpu, leaves: leaver, state, comes }))
    }
}

/// A CPU for each thread that lives, where none is told.
#[derive(Debug, Default)]
struct ThreadPlaces {
    of_thread: HashMap<i32, u32, BuildHasherDefault<IdHasher>>,
    /// Places of threads that have ended.
    free: Vec<u32>,
}

impl ThreadPlaces {
    /// The place of a thread, which it gives up if it `ends`; none where there are more threads than any kernel has CPUs.
    fn of(&mut self, tid: i32, ends: bool) -> Option<u32> {
        let known = self.of_thread.get(&tid).copied();
        let next = || self.free.last().copied().or(u32::try_from(self.of_thread.len()).ok());
        let place = known.or_else(next).filter(|&place| place < CPUS_MAX)?;
        if known.is_none() {
            self.free.pop();
            self.of_thread.insert(tid, place);
        }
        if ends {
            self.of_thread.remove(&tid);
            self.free.push(place);
        }
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_a_place_and_leaves_it_at_its_end() {
        let mut places = ThreadPlaces::default();
        let found = [(7, false), (8, false), (7, true), (8, false), (9, false), (10, false)];
        let found = found.map(|(tid, ends)| places.of(tid, ends));
        assert_eq!(found, [0, 1, 0, 1, 0, 2].map(Some));
        for tid in 100..100 + CPUS_MAX as i32 - 3 {
            assert!(places.of(tid, false).is_some(), "{tid}");
        }
        assert_eq!((places.of(3, false), places.of(9, true), places.of(3, false)), (None, Some(0), Some(0)));
    }
}
