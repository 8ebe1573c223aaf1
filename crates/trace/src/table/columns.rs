//! The columns of a table of events: which there are, and which of them an event fills.
//!
//! Must not know: who takes the batches.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Int32Builder, Int64Builder, StringBuilder, TimestampNanosecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field as ArrowField, SchemaRef, TimeUnit};
use fairlab_event::{
    ColumnType, Comm, Context, Event, EventKind, FieldColumn, FieldSink, Flags, Ns, Pid, TaskState,
    TracepointField, TracepointValue,
};

use super::words::DictionaryColumn;
use crate::losses::{EventLosses, LossKind};

/// What a column is called and holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ColumnDescription {
    name: &'static str,
    holds: ColumnContent,
    required: bool,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnContent {
    Time,
    Bool,
    I32,
    I64,
    /// Texts that repeat.
    Word,
    /// Texts that do not.
    Text,
}

const fn always(name: &'static str, holds: ColumnContent) -> ColumnDescription {
    ColumnDescription { name, holds, required: true }
}

const fn at_times(name: &'static str, holds: ColumnContent) -> ColumnDescription {
    ColumnDescription { name, holds, required: false }
}

/// The columns that stand before the fields of tracepoints: of every event.
const BEFORE: [ColumnDescription; 8] = [
    always("time", ColumnContent::Time),
    always("cpu", ColumnContent::I64),
    always("event", ColumnContent::Word),
    at_times("kind", ColumnContent::Word),
    at_times("context_comm", ColumnContent::Word),
    at_times("context_pid", ColumnContent::I32),
    at_times("context_tgid", ColumnContent::I32),
    at_times("context_flags", ColumnContent::Word),
];

/// The columns behind them: of events that are of no tracepoint with a type.
const BEHIND: [ColumnDescription; 2] =
    [at_times("lost_events", ColumnContent::I64), at_times("text", ColumnContent::Text)];

/// What `kind` says of events that are of no tracepoint with a type.
pub(super) const PROBE: &str = "probe";
pub(super) const MARKER: &str = "marker";
pub(super) const LOST: &str = "lost";
pub(super) const OTHER: &str = "other";

/// All columns, in the table's order.
fn descriptions() -> impl Iterator<Item = ColumnDescription> {
    let fields = FieldColumn::ALL.iter().map(|&column| at_times(column.name(), ColumnContent::of(column)));
    BEFORE.into_iter().chain(fields).chain(BEHIND)
}

/// All columns, as Arrow describes them; times say their unit.
pub(crate) fn fields() -> Vec<ArrowField> {
    let field = |column: ColumnDescription| {
        let field = ArrowField::new(column.name, column.holds.data_type(), !column.required);
        match column.name {
            "time" => field.with_metadata(unit("ns on the trace's own clock since its zero (usually boot)")),
            name if name.ends_with("_ns") => field.with_metadata(unit("ns")),
            "vruntime" | "deadline" | "vlag" | "avg_vruntime" | "min_vruntime" => {
                field.with_metadata(unit("ns of virtual time"))
            }
            _ => field,
        }
    };
    descriptions().map(field).collect()
}

/// A column's unit, as its metadata.
pub(crate) fn unit(unit: &str) -> HashMap<String, String> {
    HashMap::from([(UNIT.to_string(), unit.to_string())])
}

/// The key under which a column's metadata has its unit: those with one are times.
pub(crate) const UNIT: &str = "unit";

impl ColumnContent {
    fn of(column: FieldColumn) -> ColumnContent {
        match column.holds() {
            ColumnType::Text if column == FieldColumn::Filename => ColumnContent::Text,
            ColumnType::Text => ColumnContent::Word,
            ColumnType::I32 => ColumnContent::I32,
            ColumnType::I64 => ColumnContent::I64,
            ColumnType::Bool => ColumnContent::Bool,
        }
    }

    fn data_type(self) -> DataType {
        match self {
            ColumnContent::Time => DataType::Timestamp(TimeUnit::Nanosecond, None),
            ColumnContent::Bool => DataType::Boolean,
            ColumnContent::I32 => DataType::Int32,
            ColumnContent::I64 => DataType::Int64,
            ColumnContent::Word => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            ColumnContent::Text => DataType::Utf8,
        }
    }
}

/// The values of one column; the rows behind the last that has one have none.
#[derive(Debug)]
enum ColumnBuilder {
    Time(TimestampNanosecondBuilder),
    Bool(BooleanBuilder),
    I32(Int32Builder),
    I64(Int64Builder),
    Word(Box<DictionaryColumn>),
    Text(StringBuilder),
}

/// Runs an expression on whichever builder it is.
macro_rules! each_builder {
    ($builder:expr, $inner:ident => $body:expr) => {
        match $builder {
            ColumnBuilder::Time($inner) => $body,
            ColumnBuilder::Bool($inner) => $body,
            ColumnBuilder::I32($inner) => $body,
            ColumnBuilder::I64($inner) => $body,
            ColumnBuilder::Word($inner) => $body,
            ColumnBuilder::Text($inner) => $body,
        }
    };
}

impl ColumnBuilder {
    fn new(holds: ColumnContent) -> ColumnBuilder {
        match holds {
            ColumnContent::Time => ColumnBuilder::Time(TimestampNanosecondBuilder::new()),
            ColumnContent::Bool => ColumnBuilder::Bool(BooleanBuilder::new()),
            ColumnContent::I32 => ColumnBuilder::I32(Int32Builder::new()),
            ColumnContent::I64 => ColumnBuilder::I64(Int64Builder::new()),
            ColumnContent::Word => ColumnBuilder::Word(Box::default()),
            ColumnContent::Text => ColumnBuilder::Text(StringBuilder::new()),
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
            ColumnBuilder::Time(builder) => builder.append_value(value.cast_signed()),
            ColumnBuilder::Bool(builder) => builder.append_value(value != 0),
            ColumnBuilder::I32(builder) => builder.append_value(value as i32),
            ColumnBuilder::I64(builder) => builder.append_value(value.cast_signed()),
            ColumnBuilder::Word(_) | ColumnBuilder::Text(_) => {
                debug_assert!(false, "a number for a column of texts");
            }
        }
    }

    #[inline]
    fn put_text(&mut self, row: usize, text: &str) {
        self.pad(row);
        match self {
            ColumnBuilder::Word(builder) => builder.append_value(text),
            ColumnBuilder::Text(builder) => builder.append_value(text),
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
enum ColumnName {
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

impl ColumnName {
    /// Its place in the table.
    const fn place(self) -> usize {
        match self {
            ColumnName::Time => 0,
            ColumnName::Cpu => 1,
            ColumnName::Event => 2,
            ColumnName::Kind => 3,
            ColumnName::ContextComm => 4,
            ColumnName::ContextPid => 5,
            ColumnName::ContextTgid => 6,
            ColumnName::ContextFlags => 7,
            ColumnName::Of(column) => BEFORE.len() + column as usize,
            ColumnName::Lost => BEFORE.len() + FieldColumn::ALL.len(),
            ColumnName::Text => BEFORE.len() + FieldColumn::ALL.len() + 1,
        }
    }
}

/// More text than this ends a batch, whatever the number of its rows.
const TEXT_BYTES_MAX: usize = 1 << 26;

/// Rows that are no batch yet.
#[derive(Debug)]
pub(crate) struct EventColumns {
    builders: Vec<ColumnBuilder>,
    rows: usize,
    text_bytes: usize,
    /// The latest state as text.
    state: String,
}

impl Default for EventColumns {
    fn default() -> EventColumns {
        let builders = descriptions().map(|column| ColumnBuilder::new(column.holds)).collect();
        EventColumns { builders, rows: 0, text_bytes: 0, state: String::new() }
    }
}

impl EventColumns {
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
        let mut row = EventRow { columns: self, losses: EventLosses::default() };
        row.number(ColumnName::Time, event.time.0);
        row.number(ColumnName::Cpu, event.cpu.0.into());
        row.text(ColumnName::Event, event.kind.name());
        row.context(&event.context);
        row.fields(&event.kind);
        let losses = row.losses;
        self.rows += 1;
        losses
    }
}

/// The row in the making.
struct EventRow<'t> {
    columns: &'t mut EventColumns,
    losses: EventLosses,
}

impl EventRow<'_> {
    #[inline]
    fn number(&mut self, name: ColumnName, value: u64) -> &mut Self {
        self.columns.builders[name.place()].put_number(self.columns.rows, value);
        self
    }

    #[inline]
    fn signed(&mut self, name: ColumnName, value: i32) -> &mut Self {
        self.number(name, value as u64)
    }

    #[inline]
    fn text(&mut self, name: ColumnName, text: &str) -> &mut Self {
        self.columns.builders[name.place()].put_text(self.columns.rows, text);
        self
    }

    fn state(&mut self, name: ColumnName, state: TaskState) -> &mut Self {
        let mut text = std::mem::take(&mut self.columns.state);
        text.clear();
        // Text takes everything.
        let _ = write!(text, "{state}");
        self.text(name, &text);
        self.columns.state = text;
        self
    }

    fn long_text(&mut self, name: ColumnName, text: &str) -> &mut Self {
        self.columns.text_bytes += text.len();
        self.text(name, text)
    }

    #[inline]
    fn comm(&mut self, name: ColumnName, comm: &Comm) -> &mut Self {
        let text = comm.to_str();
        self.losses.unless(text.as_bytes() == comm.as_bytes(), LossKind::Text);
        self.text(name, &text)
    }

    /// What is not known is null.
    fn context(&mut self, context: &Context) {
        let Context { comm, pid, tgid, flags } = context;
        if !comm.is_empty() {
            self.comm(ColumnName::ContextComm, comm);
        }
        for (name, id) in [(ColumnName::ContextPid, pid), (ColumnName::ContextTgid, tgid)] {
            if *id != Pid::UNKNOWN {
                self.signed(name, id.0);
            }
        }
        if *flags != Flags::NONE {
            let text = String::from_utf8_lossy(flags.as_bytes());
            self.losses.unless(text.as_bytes() == flags.as_bytes(), LossKind::Flags);
            self.text(ColumnName::ContextFlags, &text);
        }
    }

    fn fields(&mut self, kind: &EventKind<'_>) {
        match kind {
            EventKind::Lost { count } => {
                self.text(ColumnName::Kind, LOST);
                if let Some(count) = count {
                    self.number(ColumnName::Lost, *count);
                }
            }
            EventKind::Marker { text } => {
                self.text(ColumnName::Kind, MARKER).long_text(ColumnName::Text, text);
            }
            EventKind::Kprobe { fields, .. } => {
                self.text(ColumnName::Kind, PROBE).long_text(ColumnName::Text, fields.text());
            }
            EventKind::Other { fields, .. } => {
                self.text(ColumnName::Kind, OTHER).long_text(ColumnName::Text, fields.text());
            }
            _ => kind.give_fields(self),
        }
    }
}

impl<'t> FieldSink<'t> for EventRow<'_> {
    #[inline]
    fn field(&mut self, field: &'static TracepointField, value: TracepointValue<'t>) {
        let name = ColumnName::Of(field.column);
        match value {
            TracepointValue::Comm(comm) => self.comm(name, &comm),
            TracepointValue::Text(text) => self.long_text(name, text),
            TracepointValue::State(state) => self.state(name, state),
            TracepointValue::Pid(pid) => self.signed(name, pid.0),
            TracepointValue::Prio(prio) => self.signed(name, prio.0),
            TracepointValue::Cpu(cpu) => self.number(name, cpu.0.into()),
            TracepointValue::Count(count) => self.number(name, count.into()),
            TracepointValue::Signed(value) => self.number(name, value.cast_unsigned()),
            TracepointValue::Unsigned(value) | TracepointValue::Nanoseconds(Ns(value)) => {
                self.number(name, value)
            }
            TracepointValue::NanosecondsUntil(Some(value)) => self.number(name, value),
            TracepointValue::Flag(Some(flag)) => self.number(name, flag.into()),
            TracepointValue::Flag(None) | TracepointValue::NanosecondsUntil(None) => self,
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
        let placed = [ColumnName::Text, ColumnName::Lost, ColumnName::ContextFlags]
            .map(|name| described[name.place()].name);
        assert_eq!(placed, ["text", "lost_events", "context_flags"]);
        for &column in FieldColumn::ALL {
            assert_eq!(described[ColumnName::Of(column).place()].name, column.name());
        }
    }

    #[test]
    fn names_that_are_no_text_are_told() {
        let mut columns = EventColumns::default();
        let comm = Comm::new(b"a\xff");
        let kind = EventKind::TaskName { pid: Pid(1), tgid: Pid(1), comm };
        let losses = columns.add(&Event::new(Ns(1), Cpu(0), kind));
        assert_eq!((losses, columns.rows()), (EventLosses::only(LossKind::Text), 1));
        let batch = columns.take(&Arc::new(arrow_schema::Schema::new(fields())));
        assert_eq!((batch.num_columns(), batch.num_rows()), (descriptions().count(), 1));
        assert_eq!(columns.rows(), 0);
    }
}
