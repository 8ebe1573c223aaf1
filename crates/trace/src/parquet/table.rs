//! Which columns there are, and which of them an event fills.
//!
//! Must not know: how columns are encoded.

use fairlab_event::{
    Column as FieldColumn, ColumnType, Comm, Context, Event, EventKind, Field, FieldSink, Flags, Ns, Pid,
    Value,
};

use super::column::{Column, Kind, Page};
use crate::losses::{EventLosses, Loss};

/// What a column is called and holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Description {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) required: bool,
}

const fn always(name: &'static str, kind: Kind) -> Description {
    Description { name, kind, required: true }
}

const fn at_times(name: &'static str, kind: Kind) -> Description {
    Description { name, kind, required: false }
}

/// The columns that stand before the fields of tracepoints: of every event.
const BEFORE: [Description; 7] = [
    always("time_ns", Kind::U64),
    always("cpu", Kind::U32),
    always("event", Kind::Text),
    at_times("context_comm", Kind::Text),
    at_times("context_pid", Kind::I32),
    at_times("context_tgid", Kind::I32),
    at_times("context_flags", Kind::Text),
];

/// The columns behind them: of events that are of no tracepoint with a type.
const BEHIND: [Description; 2] = [at_times("lost_events", Kind::U64), at_times("text", Kind::Text)];

/// All columns, in the order of the file.
pub(super) fn columns() -> impl Iterator<Item = Description> {
    let fields = FieldColumn::ALL.iter().map(|&column| at_times(column.name(), Kind::of(column)));
    BEFORE.into_iter().chain(fields).chain(BEHIND)
}

impl Kind {
    fn of(column: FieldColumn) -> Kind {
        match column.holds() {
            ColumnType::Text => Kind::Text,
            ColumnType::I32 => Kind::I32,
            ColumnType::U32 => Kind::U32,
            ColumnType::I64 => Kind::I64,
            ColumnType::U64 => Kind::U64,
            ColumnType::Bool => Kind::Bool,
        }
    }
}

/// A column to write into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Time,
    Cpu,
    Event,
    ContextComm,
    ContextPid,
    ContextTgid,
    ContextFlags,
    Of(FieldColumn),
    Lost,
    Text,
}

impl Name {
    /// Its place in the file.
    const fn place(self) -> usize {
        match self {
            Name::Time => 0,
            Name::Cpu => 1,
            Name::Event => 2,
            Name::ContextComm => 3,
            Name::ContextPid => 4,
            Name::ContextTgid => 5,
            Name::ContextFlags => 6,
            Name::Of(column) => BEFORE.len() + column as usize,
            Name::Lost => BEFORE.len() + FieldColumn::ALL.len(),
            Name::Text => BEFORE.len() + FieldColumn::ALL.len() + 1,
        }
    }
}

/// Rows that are not in the file yet.
#[derive(Debug)]
pub(super) struct Table {
    columns: Vec<Column>,
    rows: usize,
}

impl Default for Table {
    fn default() -> Table {
        let columns = columns().map(|column| Column::new(column.kind, column.required)).collect();
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
        self.table.columns[name.place()].put_number(self.table.rows, value);
        self
    }

    fn signed(&mut self, name: Name, value: i32) -> &mut Self {
        self.number(name, value as u64)
    }

    fn text(&mut self, name: Name, text: &str) -> &mut Self {
        self.table.columns[name.place()].put_text(self.table.rows, text);
        self
    }

    fn comm(&mut self, name: Name, comm: &Comm) -> &mut Self {
        let text = comm.to_str();
        self.losses.unless(text.as_bytes() == comm.as_bytes(), Loss::Text);
        self.text(name, &text)
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

    fn fields(&mut self, kind: &EventKind<'_>) {
        match kind {
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
            _ => kind.give_fields(self),
        }
    }
}

impl<'t> FieldSink<'t> for Row<'_> {
    fn field(&mut self, field: &'static Field, value: Value<'t>) {
        let name = Name::Of(field.column);
        match value {
            Value::Comm(comm) => self.comm(name, &comm),
            Value::Text(text) => self.text(name, text),
            Value::State(state) => self.text(name, &state.to_string()),
            Value::Pid(pid) => self.signed(name, pid.0),
            Value::Prio(prio) => self.signed(name, prio.0),
            Value::Cpu(cpu) => self.number(name, cpu.0.into()),
            Value::Count(count) => self.number(name, count.into()),
            Value::Signed(value) => self.number(name, value as u64),
            Value::Unsigned(value) | Value::Nanoseconds(Ns(value)) => self.number(name, value),
            Value::NanosecondsUntil(Some(value)) => self.number(name, value),
            Value::Flag(Some(flag)) => self.number(name, flag.into()),
            Value::Flag(None) | Value::NanosecondsUntil(None) => self,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlab_event::Cpu;

    #[test]
    fn columns_are_named_once() {
        let described = columns().collect::<Vec<_>>();
        let mut names: Vec<&str> = described.iter().map(|column| column.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), described.len());
        let placed = [Name::Text, Name::Lost, Name::ContextFlags].map(|name| described[name.place()].name);
        assert_eq!(placed, ["text", "lost_events", "context_flags"]);
        for &column in FieldColumn::ALL {
            assert_eq!(described[Name::Of(column).place()].name, column.name());
        }
    }

    #[test]
    fn names_that_are_no_text_are_told() {
        let mut table = Table::default();
        let comm = Comm::new(b"a\xff");
        let kind = EventKind::TaskName { pid: Pid(1), tgid: Pid(1), comm };
        let losses = table.add(&Event::new(Ns(1), Cpu(0), kind));
        assert_eq!((losses, table.rows()), (EventLosses::only(Loss::Text), 1));
        let pages = table.take();
        assert_eq!((pages.len(), table.rows()), (columns().count(), 0));
        assert!(pages.iter().all(|(_, page)| page.values == 1));
    }
}
