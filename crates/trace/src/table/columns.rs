//! The columns of a table of events: which there are, and which of them an event fills.
//!
//! Must not know: who takes the batches.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Int32Builder, Int64Builder, StringBuilder, TimestampNanosecondBuilder,
    UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field as ArrowField, SchemaRef, TimeUnit};
use fairlab_event::{
    Column as FieldColumn, ColumnType, Comm, Context, Event, EventKind, Field, FieldSink, Flags, Ns, Pid,
    TaskState, Value,
};

use super::words::Words;
use crate::losses::{EventLosses, Loss};

/// What a column is called and holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Description {
    name: &'static str,
    holds: Holds,
    required: bool,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Time,
    Bool,
    I32,
    U32,
    I64,
    U64,
    /// Texts that repeat.
    Word,
    /// Texts that do not.
    Text,
}

const fn always(name: &'static str, holds: Holds) -> Description {
    Description { name, holds, required: true }
}

const fn at_times(name: &'static str, holds: Holds) -> Description {
    Description { name, holds, required: false }
}

/// The columns that stand before the fields of tracepoints: of every event.
const BEFORE: [Description; 8] = [
    always("time", Holds::Time),
    always("cpu", Holds::U32),
    always("event", Holds::Word),
    at_times("kind", Holds::Word),
    at_times("context_comm", Holds::Word),
    at_times("context_pid", Holds::I32),
    at_times("context_tgid", Holds::I32),
    at_times("context_flags", Holds::Word),
];

/// The columns behind them: of events that are of no tracepoint with a type.
const BEHIND: [Description; 2] = [at_times("lost_events", Holds::U64), at_times("text", Holds::Text)];

/// What `kind` says of events that are of no tracepoint with a type.
pub(super) const PROBE: &str = "probe";
pub(super) const MARKER: &str = "marker";
pub(super) const LOST: &str = "lost";
pub(super) const OTHER: &str = "other";

/// All columns, in the table's order.
fn descriptions() -> impl Iterator<Item = Description> {
    let fields = FieldColumn::ALL.iter().map(|&column| at_times(column.name(), Holds::of(column)));
    BEFORE.into_iter().chain(fields).chain(BEHIND)
}

/// All columns, as Arrow describes them; times say their unit.
pub(crate) fn fields() -> Vec<ArrowField> {
    let field = |column: Description| {
        let field = ArrowField::new(column.name, column.holds.data_type(), !column.required);
        let note = match column.name {
            "time" => ("clock", "the trace's own, ns since its zero (usually boot)"),
            name if name.ends_with("_ns") => ("unit", "ns"),
            "vruntime" | "deadline" | "vlag" | "avg_vruntime" | "min_vruntime" => {
                ("unit", "ns of virtual time")
            }
            _ => return field,
        };
        field.with_metadata(HashMap::from([(note.0.to_string(), note.1.to_string())]))
    };
    descriptions().map(field).collect()
}

impl Holds {
    fn of(column: FieldColumn) -> Holds {
        match column.holds() {
            ColumnType::Text if column == FieldColumn::Filename => Holds::Text,
            ColumnType::Text => Holds::Word,
            ColumnType::I32 => Holds::I32,
            ColumnType::U32 => Holds::U32,
            ColumnType::I64 => Holds::I64,
            ColumnType::U64 => Holds::U64,
            ColumnType::Bool => Holds::Bool,
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Holds::Time => DataType::Timestamp(TimeUnit::Nanosecond, None),
            Holds::Bool => DataType::Boolean,
            Holds::I32 => DataType::Int32,
            Holds::U32 => DataType::UInt32,
            Holds::I64 => DataType::Int64,
            Holds::U64 => DataType::UInt64,
            Holds::Word => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            Holds::Text => DataType::Utf8,
        }
    }
}

/// The values of one column; the rows behind the last that has one have none.
#[derive(Debug)]
enum Builder {
    Time(TimestampNanosecondBuilder),
    Bool(BooleanBuilder),
    I32(Int32Builder),
    U32(UInt32Builder),
    I64(Int64Builder),
    U64(UInt64Builder),
    Word(Box<Words>),
    Text(StringBuilder),
}

/// Runs an expression on whichever builder it is.
macro_rules! each_builder {
    ($builder:expr, $inner:ident => $body:expr) => {
        match $builder {
            Builder::Time($inner) => $body,
            Builder::Bool($inner) => $body,
            Builder::I32($inner) => $body,
            Builder::U32($inner) => $body,
            Builder::I64($inner) => $body,
            Builder::U64($inner) => $body,
            Builder::Word($inner) => $body,
            Builder::Text($inner) => $body,
        }
    };
}

impl Builder {
    fn new(holds: Holds) -> Builder {
        match holds {
            Holds::Time => Builder::Time(TimestampNanosecondBuilder::new()),
            Holds::Bool => Builder::Bool(BooleanBuilder::new()),
            Holds::I32 => Builder::I32(Int32Builder::new()),
            Holds::U32 => Builder::U32(UInt32Builder::new()),
            Holds::I64 => Builder::I64(Int64Builder::new()),
            Holds::U64 => Builder::U64(UInt64Builder::new()),
            Holds::Word => Builder::Word(Box::default()),
            Holds::Text => Builder::Text(StringBuilder::new()),
        }
    }

    /// Fills up with nothing to `rows` rows.
    #[inline]
    fn pad(&mut self, rows: usize) {
        each_builder!(self, builder => {
            let missing = rows.saturating_sub(builder.len());
            if missing > 0 {
                builder.append_nulls(missing);
            }
        });
    }

    #[inline]
    fn put_number(&mut self, row: usize, value: u64) {
        self.pad(row);
        match self {
            Builder::Time(builder) => builder.append_value(value.cast_signed()),
            Builder::Bool(builder) => builder.append_value(value != 0),
            Builder::I32(builder) => builder.append_value(value as i32),
            Builder::U32(builder) => builder.append_value(value as u32),
            Builder::I64(builder) => builder.append_value(value.cast_signed()),
            Builder::U64(builder) => builder.append_value(value),
            Builder::Word(_) | Builder::Text(_) => debug_assert!(false, "a number for a column of texts"),
        }
    }

    #[inline]
    fn put_text(&mut self, row: usize, text: &str) {
        self.pad(row);
        match self {
            Builder::Word(builder) => builder.append_value(text),
            Builder::Text(builder) => builder.append_value(text),
            _ => debug_assert!(false, "a text for a column of numbers"),
        }
    }

    fn take(&mut self, rows: usize) -> ArrayRef {
        self.pad(rows);
        each_builder!(self, builder => Arc::new(builder.finish()))
    }
}

/// A column to write into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Time,
    Cpu,
    Event,
    Kind,
    ContextComm,
    ContextPid,
    ContextTgid,
    ContextFlags,
    Of(FieldColumn),
    Lost,
    Text,
}

impl Name {
    /// Its place in the table.
    const fn place(self) -> usize {
        match self {
            Name::Time => 0,
            Name::Cpu => 1,
            Name::Event => 2,
            Name::Kind => 3,
            Name::ContextComm => 4,
            Name::ContextPid => 5,
            Name::ContextTgid => 6,
            Name::ContextFlags => 7,
            Name::Of(column) => BEFORE.len() + column as usize,
            Name::Lost => BEFORE.len() + FieldColumn::ALL.len(),
            Name::Text => BEFORE.len() + FieldColumn::ALL.len() + 1,
        }
    }
}

/// More text than this ends a batch, whatever the number of its rows.
const TEXT_BYTES_MAX: usize = 1 << 26;

/// Rows that are no batch yet.
#[derive(Debug)]
pub(crate) struct Columns {
    builders: Vec<Builder>,
    rows: usize,
    text_bytes: usize,
    /// The latest state as text.
    state: String,
}

impl Default for Columns {
    fn default() -> Columns {
        let builders = descriptions().map(|column| Builder::new(column.holds)).collect();
        Columns { builders, rows: 0, text_bytes: 0, state: String::new() }
    }
}

impl Columns {
    /// How many rows there are.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Whether there are `rows_max` rows, or very long texts.
    pub(crate) fn is_full(&self, rows_max: usize) -> bool {
        self.rows >= rows_max || self.text_bytes >= TEXT_BYTES_MAX
    }

    /// The rows as a batch; none are left then.
    pub(crate) fn take(&mut self, schema: &SchemaRef) -> RecordBatch {
        let rows = std::mem::take(&mut self.rows);
        self.text_bytes = 0;
        let arrays = self.builders.iter_mut().map(|builder| builder.take(rows)).collect();
        RecordBatch::try_new(schema.clone(), arrays).expect("columns are made by the schema's own list")
    }

    /// Adds an event as a row; tells what of it is not there as it was.
    pub(crate) fn add(&mut self, event: &Event<'_>) -> EventLosses {
        let mut row = Row { columns: self, losses: EventLosses::default() };
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
    columns: &'t mut Columns,
    losses: EventLosses,
}

impl Row<'_> {
    #[inline]
    fn number(&mut self, name: Name, value: u64) -> &mut Self {
        self.columns.builders[name.place()].put_number(self.columns.rows, value);
        self
    }

    #[inline]
    fn signed(&mut self, name: Name, value: i32) -> &mut Self {
        self.number(name, value as u64)
    }

    #[inline]
    fn text(&mut self, name: Name, text: &str) -> &mut Self {
        self.columns.builders[name.place()].put_text(self.columns.rows, text);
        self
    }

    fn state(&mut self, name: Name, state: TaskState) -> &mut Self {
        let mut text = std::mem::take(&mut self.columns.state);
        text.clear();
        // Text takes everything.
        let _ = write!(text, "{state}");
        self.text(name, &text);
        self.columns.state = text;
        self
    }

    fn long_text(&mut self, name: Name, text: &str) -> &mut Self {
        self.columns.text_bytes += text.len();
        self.text(name, text)
    }

    #[inline]
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
                self.text(Name::Kind, LOST);
                if let Some(count) = count {
                    self.number(Name::Lost, *count);
                }
            }
            EventKind::Marker { text } => {
                self.text(Name::Kind, MARKER).long_text(Name::Text, text);
            }
            EventKind::Kprobe { fields, .. } => {
                self.text(Name::Kind, PROBE).long_text(Name::Text, fields.text());
            }
            EventKind::Other { fields, .. } => {
                self.text(Name::Kind, OTHER).long_text(Name::Text, fields.text());
            }
            _ => kind.give_fields(self),
        }
    }
}

impl<'t> FieldSink<'t> for Row<'_> {
    #[inline]
    fn field(&mut self, field: &'static Field, value: Value<'t>) {
        let name = Name::Of(field.column);
        match value {
            Value::Comm(comm) => self.comm(name, &comm),
            Value::Text(text) => self.long_text(name, text),
            Value::State(state) => self.state(name, state),
            Value::Pid(pid) => self.signed(name, pid.0),
            Value::Prio(prio) => self.signed(name, prio.0),
            Value::Cpu(cpu) => self.number(name, cpu.0.into()),
            Value::Count(count) => self.number(name, count.into()),
            Value::Signed(value) => self.number(name, value.cast_unsigned()),
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
        let described = descriptions().collect::<Vec<_>>();
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
        let mut columns = Columns::default();
        let comm = Comm::new(b"a\xff");
        let kind = EventKind::TaskName { pid: Pid(1), tgid: Pid(1), comm };
        let losses = columns.add(&Event::new(Ns(1), Cpu(0), kind));
        assert_eq!((losses, columns.rows()), (EventLosses::only(Loss::Text), 1));
        let batch = columns.take(&Arc::new(arrow_schema::Schema::new(fields())));
        assert_eq!((batch.num_columns(), batch.num_rows()), (descriptions().count(), 1));
        assert_eq!(columns.rows(), 0);
    }
}
