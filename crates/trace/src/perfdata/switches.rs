//! Switches from records of their own (`perf record --switch-events`).
//!
//! System-wide, the record of the task that leaves names the next task. For a program's tasks alone, one record says that a
//! task leaves, and another that it comes back. In between the CPU's work is unknown and shown as the idle task.
//!
//! Layout facts: include/uapi/linux/perf_event.h. Must not know: names, other records.

use std::collections::HashSet;

use fairlab_event::TaskState;

use super::deliver::kind;
use super::sample::{SampleTask, TID_MAX};
use super::window::RECORD_HEADER;
use crate::endian::Endian;

/// `PERF_RECORD_MISC_SWITCH_OUT`: the task leaves; else it comes.
const OUT: u16 = 1 << 13;
/// `PERF_RECORD_MISC_SWITCH_OUT_PREEMPT`: it leaves runnable; told from v4.17 on.
const OUT_PREEMPT: u16 = 1 << 14;

/// Who leaves a CPU, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SwitchOut {
    pub(super) tid: i32,
    pub(super) state: TaskState,
}

/// What is known of tasks that are about to leave.
#[derive(Debug, Default)]
pub(super) struct LeavingTasks {
    exiting: HashSet<i32>,
}

impl LeavingTasks {
    /// A task is about to end.
    pub(super) fn exits(&mut self, tid: i32) {
        if (1..=TID_MAX).contains(&tid) {
            self.exiting.insert(tid);
        }
    }

    /// Who leaves and who comes, by a record of `kind`; `Some(None)` where another record tells it, `None` where it is cut.
    pub(super) fn take(
        &mut self,
        kind: u32,
        record: &[u8],
        origin: SampleTask,
        endian: Endian,
    ) -> Option<Option<(SwitchOut, i32)>> {
        const IDLE: i32 = 0;
        let misc = endian.u16(record, 4)?;
        let (leaves, is_wide) = (misc & OUT != 0, kind == kind::SWITCH_CPU_WIDE);
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
            (false, true) => return Some(None),
            (true, true) => endian.u32(record, RECORD_HEADER + 4)? as i32,
            (true, false) => IDLE,
            (false, false) => origin.tid,
        };
        Some(Some((SwitchOut { tid: leaver, state }, comes)))
    }
}
