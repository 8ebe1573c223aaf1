//! Rows of a table back to events.
//!
//! Must not know: where the batches come from.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, BooleanArray, DictionaryArray, PrimitiveArray, RecordBatch, StringArray};
use arrow_schema::{DataType, TimeUnit};
use fairlab_event::{
    Comm, Context, Cpu, Event, EventKind, FieldColumn, FieldSource, Flags, Ns, Pid, Prio, TaskState,
    TextFields, Tracepoint, TracepointField,
};

use super::columns::{LOST, MARKER, OTHER, PROBE};

/// One column's values.
#[derive(Debug)]
enum ColumnCells<'b> {
    Absent,
    Bool(&'b BooleanArray),
    I32(&'b PrimitiveArray<Int32Type>),
    U32(&'b PrimitiveArray<UInt32Type>),
    I64(&'b PrimitiveArray<Int64Type>),
    U64(&'b PrimitiveArray<UInt64Type>),
    Time(&'b [i64], u64),
    Text(&'b StringArray),
    Word(&'b DictionaryArray<Int32Type>, &'b StringArray),
}

/// What columns were called in the first version of the schema, where they are called otherwise today.
pub(crate) const FORMER_NAMES: [(&str, &str); 1] = [("exec_filename", "filename")];

/// Why a batch is no table of events: a clause, to stand behind "this table".
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotEvents(pub(crate) String);

impl<'b> ColumnCells<'b> {
    /// The values of `array`, or `None` for a type that no column has.
    fn of(array: &'b ArrayRef) -> Option<ColumnCells<'b>> {
        Some(match array.data_type() {
            DataType::Boolean => ColumnCells::Bool(array.as_boolean()),
            DataType::Int32 => ColumnCells::I32(array.as_primitive()),
            DataType::UInt32 => ColumnCells::U32(array.as_primitive()),
            DataType::Int64 => ColumnCells::I64(array.as_primitive()),
            DataType::UInt64 => ColumnCells::U64(array.as_primitive()),
            DataType::Timestamp(unit, _) if array.null_count() == 0 => match unit {
                TimeUnit::Second => {
                    ColumnCells::Time(array.as_primitive::<TimestampSecondType>().values(), 1_000_000_000)
                }
                TimeUnit::Millisecond => {
                    ColumnCells::Time(array.as_primitive::<TimestampMillisecondType>().values(), 1_000_000)
                }
                TimeUnit::Microsecond => {
                    ColumnCells::Time(array.as_primitive::<TimestampMicrosecondType>().values(), 1_000)
                }
                TimeUnit::Nanosecond => {
                    ColumnCells::Time(array.as_primitive::<TimestampNanosecondType>().values(), 1)
                }
            },
            DataType::Utf8 => ColumnCells::Text(array.as_string()),
            DataType::Dictionary(..) => {
                let words = array.as_dictionary_opt::<Int32Type>()?;
                ColumnCells::Word(words, words.values().as_string_opt()?)
            }
            _ => return None,
        })
    }

    /// The number in `row`, its 64 bits.
    #[inline]
    fn number(&self, row: usize) -> Option<u64> {
        match self {
            ColumnCells::I32(array) => {
                array.is_valid(row).then(|| i64::from(array.value(row)).cast_unsigned())
            }
            ColumnCells::U32(array) => array.is_valid(row).then(|| array.value(row).into()),
            ColumnCells::I64(array) => array.is_valid(row).then(|| array.value(row).cast_unsigned()),
            ColumnCells::U64(array) => array.is_valid(row).then(|| array.value(row)),
            ColumnCells::Bool(array) => array.is_valid(row).then(|| array.value(row).into()),
            ColumnCells::Time(values, 1) => Some(values.get(row)?.cast_unsigned()),
            ColumnCells::Time(values, unit) => values.get(row)?.cast_unsigned().checked_mul(*unit),
            ColumnCells::Absent | ColumnCells::Text(_) | ColumnCells::Word(..) => None,
        }
    }

    #[inline]
    fn text(&self, row: usize) -> Option<&'b str> {
        match self {
            ColumnCells::Text(array) => array.is_valid(row).then(|| array.value(row)),
            ColumnCells::Word(words, values) => {
                let place = words.key(row)?;
                (place < values.len()).then(|| values.value(place))
            }
            _ => None,
        }
    }
}

/// The rows of one batch.
#[derive(Debug)]
pub(crate) struct EventRows<'b> {
    time: ColumnCells<'b>,
    cpu: ColumnCells<'b>,
    event: ColumnCells<'b>,
    kind: ColumnCells<'b>,
    context: [ColumnCells<'b>; 4],
    lost: ColumnCells<'b>,
    text: ColumnCells<'b>,
    fields: Vec<ColumnCells<'b>>,
    rows: usize,
}

impl<'b> EventRows<'b> {
    /// The rows of `batch`, whose columns are those of [`schema`](super::schema) or some of them; times may also stand in a
    /// column `time_ns` of plain numbers, which goes before `time`.
    pub(crate) fn new(batch: &'b RecordBatch) -> Result<EventRows<'b>, NotEvents> {
        let column = |name: &str| {
            let former = FORMER_NAMES.iter().find(|(now, _)| *now == name).map(|(_, former)| *former);
            batch.column_by_name(name).or_else(|| batch.column_by_name(former?))
        };
        let cells = |name: &str| match column(name) {
            None => Ok(ColumnCells::Absent),
            Some(array) => ColumnCells::of(array)
                .ok_or_else(|| NotEvents(format!("has {} in its column {name}", array.data_type()))),
        };
        let needed = |name: &str| match cells(name)? {
            ColumnCells::Absent => Err(NotEvents(format!("has no column {name}"))),
            cells => Ok(cells),
        };
        let time = match cells("time_ns")? {
            ColumnCells::Absent => needed("time")?,
            time => time,
        };
        let context = ["context_comm", "context_pid", "context_tgid", "context_flags"];
        let [comm, pid, tgid, flags] = context.map(cells);
        let fields = FieldColumn::ALL.iter().map(|column| cells(column.name()));
        Ok(EventRows {
            time,
            cpu: needed("cpu")?,
            event: needed("event")?,
            kind: cells("kind")?,
            context: [comm?, pid?, tgid?, flags?],
            lost: cells("lost_events")?,
            text: cells("text")?,
            fields: fields.collect::<Result<_, _>>()?,
            rows: batch.num_rows(),
        })
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// The name of the event in `row`, if it has one.
    pub(crate) fn name(&self, row: usize) -> Option<&'b str> {
        self.event.text(row)
    }

    /// Hands the event in `row` to `take`; `None` where a column that it needs has nothing or something else there.
    #[inline]
    pub(crate) fn event<T>(&self, row: usize, take: impl FnOnce(&Event<'_>) -> T) -> Option<T> {
        let time = Ns(self.time.number(row)?);
        let cpu = Cpu(u32::try_from(self.cpu.number(row)?).ok()?);
        let context = self.context(row)?;
        let name = self.name(row)?;
        let whole = |kind| take(&Event { time, cpu, context, kind });
        let kind = self.kind.text(row);
        let text = self.text.text(row);
        if let (None, None, Some(tracepoint)) = (kind, text, Tracepoint::by_name(name.as_bytes())) {
            return tracepoint.read(BatchRow { rows: self, row }, whole);
        }
        self.untyped(row, name, kind, text).map(whole)
    }

    /// What is of no tracepoint with a type.
    fn untyped(
        &self,
        row: usize,
        name: &'b str,
        kind: Option<&str>,
        text: Option<&'b str>,
    ) -> Option<EventKind<'b>> {
        let lost = || EventKind::Lost { count: self.lost.number(row) };
        Some(match (kind, text) {
            // Tables without a column that says which kind it is.
            (None, None) if name == EventKind::LOST => lost(),
            (None, Some(text)) if name == EventKind::MARKER => EventKind::Marker { text },
            (None, Some(text)) => named(name, text, text.starts_with('(')),
            (Some(LOST), _) => lost(),
            (Some(MARKER), Some(text)) => EventKind::Marker { text },
            (Some(PROBE), Some(text)) => named(name, text, true),
            (Some(OTHER), Some(text)) => named(name, text, false),
            (None, None) | (Some(_), _) => return None,
        })
    }

    fn context(&self, row: usize) -> Option<Context> {
        let [comm, pid, tgid, flags] = &self.context;
        let id = |cells: &ColumnCells<'_>| match cells.number(row) {
            Some(id) => i32::try_from(id.cast_signed()).ok().map(Pid),
            None => Some(Pid::UNKNOWN),
        };
        Some(Context {
            comm: comm.text(row).map(|comm| Comm::new(comm.as_bytes())).unwrap_or_default(),
            pid: id(pid)?,
            tgid: id(tgid)?,
            flags: flags.text(row).map_or(Flags::NONE, |flags| Flags::new(flags.as_bytes())),
        })
    }
}

fn named<'t>(name: &'t str, text: &'t str, is_probe: bool) -> EventKind<'t> {
    let fields = TextFields::new(text);
    if is_probe { EventKind::Kprobe { name, fields } } else { EventKind::Other { name, fields } }
}

/// One row, whose fields are read one by one.
#[derive(Clone, Copy)]
struct BatchRow<'r, 'b> {
    rows: &'r EventRows<'b>,
    row: usize,
}

impl<'b> BatchRow<'_, 'b> {
    #[inline]
    fn number(self, field: &'static TracepointField) -> Option<u64> {
        self.rows.fields[field.column as usize].number(self.row)
    }

    #[inline]
    fn word(self, field: &'static TracepointField) -> Option<&'b str> {
        self.rows.fields[field.column as usize].text(self.row)
    }

    #[inline]
    fn i32(self, field: &'static TracepointField) -> Option<i32> {
        i32::try_from(self.number(field)?.cast_signed()).ok()
    }

    #[inline]
    fn u32(self, field: &'static TracepointField) -> Option<u32> {
        u32::try_from(self.number(field)?).ok()
    }
}

impl<'b> FieldSource<'b> for BatchRow<'_, 'b> {
    #[inline]
    fn comm<T>(
        self,
        field: &'static TracepointField,
        _: &'static TracepointField,
        rest: impl Fn(Self) -> Option<T>,
    ) -> Option<(Comm, T)> {
        Some((Comm::new(self.word(field)?.as_bytes()), rest(self)?))
    }

    #[inline]
    fn pid(&mut self, field: &'static TracepointField) -> Option<Pid> {
        self.i32(field).map(Pid)
    }

    #[inline]
    fn prio(&mut self, field: &'static TracepointField) -> Option<Prio> {
        self.i32(field).map(Prio)
    }

    #[inline]
    fn cpu(&mut self, field: &'static TracepointField) -> Option<Cpu> {
        self.u32(field).map(Cpu)
    }

    #[inline]
    fn state(&mut self, field: &'static TracepointField) -> Option<TaskState> {
        TaskState::parse(self.word(field)?.as_bytes())
    }

    #[inline]
    fn nanoseconds(&mut self, field: &'static TracepointField) -> Option<Ns> {
        self.number(field).map(Ns)
    }

    fn unsigned(&mut self, field: &'static TracepointField) -> Option<u64> {
        self.number(field)
    }

    fn signed(&mut self, field: &'static TracepointField) -> Option<i64> {
        self.number(field).map(u64::cast_signed)
    }

    fn count(&mut self, field: &'static TracepointField) -> Option<u32> {
        self.u32(field)
    }

    fn text(&mut self, field: &'static TracepointField) -> Option<&'b str> {
        self.word(field)
    }

    fn flag(&mut self, field: &'static TracepointField) -> Option<Option<bool>> {
        Some(self.number(field).map(|flag| flag != 0))
    }

    fn nanoseconds_until(&mut self, field: &'static TracepointField) -> Option<Option<u64>> {
        Some(self.number(field))
    }

    fn end(&self, _: Tracepoint) -> Option<()> {
        Some(())
    }
}
