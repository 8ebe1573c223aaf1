//! Which columns there are, and which of them an event fills.
//!
//! Must not know: how columns are encoded.

use fairlab_event::{Comm, Context, Event, EventKind, Flags, Pid, StatDelay, Wakeup};

use super::column::{Column, Kind, Page};
use crate::losses::{EventLosses, Loss};

/// What a column is called and holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Description {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) required: bool,
}

/// Declares the columns once: a name to write by, and the name in the file.
macro_rules! columns {
    ($($column:ident $name:literal $kind:ident $required:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Name {
            $($column,)*
        }

        /// All columns, in the order of the file.
        pub(super) const COLUMNS: &[Description] =
            &[$(Description { name: $name, kind: Kind::$kind, required: $required },)*];
    };
}

columns! {
    Time "time_ns" U64 true,
    Cpu "cpu" U32 true,
    Event "event" Text true,
    ContextComm "context_comm" Text false,
    ContextPid "context_pid" I32 false,
    ContextTgid "context_tgid" I32 false,
    ContextFlags "context_flags" Text false,
    Comm "comm" Text false,
    Pid "pid" I32 false,
    Tgid "tgid" I32 false,
    Prio "prio" I32 false,
    TargetCpu "target_cpu" U32 false,
    OrigCpu "orig_cpu" U32 false,
    DestCpu "dest_cpu" U32 false,
    PrevComm "prev_comm" Text false,
    PrevPid "prev_pid" I32 false,
    PrevPrio "prev_prio" I32 false,
    PrevState "prev_state" Text false,
    NextComm "next_comm" Text false,
    NextPid "next_pid" I32 false,
    NextPrio "next_prio" I32 false,
    ParentPid "parent_pid" I32 false,
    ChildComm "child_comm" Text false,
    ChildPid "child_pid" I32 false,
    OldPid "old_pid" I32 false,
    Filename "filename" Text false,
    GroupDead "group_dead" Bool false,
    Delay "delay_ns" U64 false,
    Runtime "runtime_ns" U64 false,
    Vruntime "vruntime" U64 false,
    Deadline "deadline" U64 false,
    Vlag "vlag" I64 false,
    AvgVruntime "avg_vruntime" U64 false,
    MinVruntime "min_vruntime" U64 false,
    QueueCpu "queue_cpu" U32 false,
    NrRunning "nr_running" U32 false,
    Lost "lost_events" U64 false,
    Text "text" Text false,
}

/// Rows that are not in the file yet.
#[derive(Debug)]
pub(super) struct Table {
    columns: Vec<Column>,
    rows: usize,
}

impl Default for Table {
    fn default() -> Table {
        let columns = COLUMNS.iter().map(|column| Column::new(column.kind, column.required)).collect();
        Table { columns, rows: 0 }
    }
}

impl Table {
    /// How many rows there are.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The pages of each column; the table is empty then.
    pub(super) fn take(&mut self) -> Vec<(Option<Page>, Page)> {
        let rows = std::mem::take(&mut self.rows);
        self.columns.iter_mut().map(|column| column.take_pages(rows)).collect()
    }

    /// Adds an event as a row; tells what of it is not there as it was.
    pub(super) fn add(&mut self, event: &Event<'_>) -> EventLosses {
        let mut row = Row { table: self, losses: EventLosses::default() };
        row.number(Name::Time, event.time.0);
        row.number(Name::Cpu, event.cpu.0.into());
        row.text(Name::Event, event.kind.name());
        row.context(&event.context);
        row.fields(&event.kind);
        let losses = row.losses;
        self.rows += 1;
        losses
    }
}

/// The row in the making.
struct Row<'t> {
    table: &'t mut Table,
    losses: EventLosses,
}

impl Row<'_> {
    fn number(&mut self, name: Name, value: u64) -> &mut Self {
        self.table.columns[name as usize].put_number(self.table.rows, value);
        self
    }

    fn signed(&mut self, name: Name, value: i32) -> &mut Self {
        self.number(name, value as u64)
    }

    fn text(&mut self, name: Name, text: &str) -> &mut Self {
        self.table.columns[name as usize].put_text(self.table.rows, text);
        self
    }

    fn comm(&mut self, name: Name, comm: &Comm) -> &mut Self {
        let text = comm.to_str();
        self.losses.unless(text.as_bytes() == comm.as_bytes(), Loss::Text);
        self.text(name, &text)
    }

    fn task(&mut self, comm: &Comm, pid: Pid) -> &mut Self {
        self.comm(Name::Comm, comm).signed(Name::Pid, pid.0)
    }

    /// What is not known is null.
    fn context(&mut self, context: &Context) {
        let Context { comm, pid, tgid, flags } = context;
        if !comm.is_empty() {
            self.comm(Name::ContextComm, comm);
        }
        for (name, id) in [(Name::ContextPid, pid), (Name::ContextTgid, tgid)] {
            if *id != Pid::UNKNOWN {
                self.signed(name, id.0);
            }
        }
        if *flags != Flags::NONE {
            let text = String::from_utf8_lossy(flags.as_bytes());
            self.losses.unless(text.as_bytes() == flags.as_bytes(), Loss::Flags);
            self.text(Name::ContextFlags, &text);
        }
    }

    fn wakeup(&mut self, wakeup: &Wakeup) {
        let Wakeup { comm, pid, prio, target_cpu } = wakeup;
        self.task(comm, *pid).signed(Name::Prio, prio.0).number(Name::TargetCpu, target_cpu.0.into());
    }

    fn delay(&mut self, delay: &StatDelay) {
        self.task(&delay.comm, delay.pid).number(Name::Delay, delay.delay.0);
    }

    fn fields(&mut self, kind: &EventKind<'_>) {
        match kind {
            EventKind::SchedSwitch(switch) => {
                self.comm(Name::PrevComm, &switch.prev_comm).signed(Name::PrevPid, switch.prev_pid.0);
                self.signed(Name::PrevPrio, switch.prev_prio.0);
                self.text(Name::PrevState, &switch.prev_state.to_string());
                self.comm(Name::NextComm, &switch.next_comm).signed(Name::NextPid, switch.next_pid.0);
                self.signed(Name::NextPrio, switch.next_prio.0);
            }
            EventKind::SchedWaking(wakeup)
            | EventKind::SchedWakeup(wakeup)
            | EventKind::SchedWakeupNew(wakeup) => self.wakeup(wakeup),
            EventKind::SchedStatWait(delay)
            | EventKind::SchedStatSleep(delay)
            | EventKind::SchedStatBlocked(delay)
            | EventKind::SchedStatIowait(delay) => self.delay(delay),
            EventKind::SchedStatRuntime { comm, pid, runtime, vruntime } => {
                self.task(comm, *pid).number(Name::Runtime, runtime.0);
                if let Some(vruntime) = vruntime {
                    self.number(Name::Vruntime, *vruntime);
                }
            }
            EventKind::SchedMigrateTask { comm, pid, prio, orig_cpu, dest_cpu } => {
                self.task(comm, *pid).signed(Name::Prio, prio.0);
                self.number(Name::OrigCpu, orig_cpu.0.into()).number(Name::DestCpu, dest_cpu.0.into());
            }
            EventKind::SchedPlace(place) => {
                self.task(&place.comm, place.pid).number(Name::Vruntime, place.sev);
                self.number(Name::Deadline, place.sed).number(Name::Vlag, place.sel as u64);
                self.number(Name::AvgVruntime, place.avg).number(Name::MinVruntime, place.min);
                self.number(Name::QueueCpu, place.cpu.0.into()).number(Name::NrRunning, place.nr.into());
            }
            EventKind::Lost { count } => {
                if let Some(count) = count {
                    self.number(Name::Lost, *count);
                }
            }
            EventKind::Marker { text } => {
                self.text(Name::Text, text);
            }
            EventKind::Kprobe { fields, .. } | EventKind::Other { fields, .. } => {
                self.text(Name::Text, fields.text());
            }
            _ => self.life(kind),
        }
    }

    /// Tasks that begin, change and end.
    fn life(&mut self, kind: &EventKind<'_>) {
        match kind {
            EventKind::SchedProcessFork { comm, pid, child_comm, child_pid } => {
                self.task(comm, *pid).comm(Name::ChildComm, child_comm).signed(Name::ChildPid, child_pid.0);
            }
            EventKind::SchedProcessExec { filename, pid, old_pid } => {
                self.text(Name::Filename, filename).signed(Name::Pid, pid.0).signed(Name::OldPid, old_pid.0);
            }
            EventKind::SchedProcessExit { comm, pid, prio, group_dead } => {
                self.task(comm, *pid).signed(Name::Prio, prio.0);
                if let Some(dead) = group_dead {
                    self.number(Name::GroupDead, (*dead).into());
                }
            }
            EventKind::TaskName { pid, tgid, comm } => {
                self.task(comm, *pid).signed(Name::Tgid, tgid.0);
            }
            EventKind::TaskStart { pid, tgid, parent_pid } => {
                self.signed(Name::Pid, pid.0)
                    .signed(Name::Tgid, tgid.0)
                    .signed(Name::ParentPid, parent_pid.0);
            }
            EventKind::TaskExit { pid, tgid } => {
                self.signed(Name::Pid, pid.0).signed(Name::Tgid, tgid.0);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlab_event::{Cpu, Ns};

    #[test]
    fn columns_are_named_once() {
        let mut names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), COLUMNS.len());
        assert_eq!(COLUMNS[Name::Text as usize].name, "text");
    }

    #[test]
    fn names_that_are_no_text_are_told() {
        let mut table = Table::default();
        let comm = Comm::new(b"a\xff");
        let kind = EventKind::TaskName { pid: Pid(1), tgid: Pid(1), comm };
        let losses = table.add(&Event::new(Ns(1), Cpu(0), kind));
        assert_eq!((losses, table.rows()), (EventLosses::only(Loss::Text), 1));
        let pages = table.take();
        assert_eq!((pages.len(), table.rows()), (COLUMNS.len(), 0));
        assert!(pages.iter().all(|(_, page)| page.values == 1));
    }
}
