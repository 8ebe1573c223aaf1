//! The fields of a tracepoint as the kernel prints them: a label, a value, and so on to the end of the line.
//!
//! Must not know: which fields a tracepoint has.

use fairlab_event::{
    Comm, Cpu, EventKind, FieldForm, FieldSource, Ns, Pid, Prio, TaskState, Tracepoint, TracepointField,
};

use super::cursor::LineCursor;

/// The tracepoint called `name` that lines of text have and whose fields are read here. A path has no limit, so that of
/// `sched_process_exec` is read apart; a recorder's own knowledge stands in comments.
#[inline]
pub(super) fn tracepoint(name: &[u8]) -> Option<Tracepoint> {
    let has_no_text = |tracepoint: &Tracepoint| *tracepoint != Tracepoint::SchedProcessExec;
    Tracepoint::by_name(name).filter(|tracepoint| tracepoint.is_reported() && has_no_text(tracepoint))
}

/// Reads the fields of `tracepoint` exactly as a kernel prints them, or, with a lenient cursor, nearly so, and hands the
/// event to `take`.
#[inline(always)]
pub(super) fn read<T>(
    tracepoint: Tracepoint,
    mut cursor: LineCursor<'_>,
    take: impl FnOnce(EventKind<'static>) -> T,
) -> Option<T> {
    cursor.blanks();
    tracepoint.read(PrintedFields { cursor, is_at_value: false }, take)
}

/// Fields ahead.
#[derive(Clone, Copy)]
struct PrintedFields<'l> {
    cursor: LineCursor<'l>,
    /// The next field's label has been passed.
    is_at_value: bool,
}

impl PrintedFields<'_> {
    #[inline(always)]
    fn label(&mut self, field: &'static TracepointField) -> Option<()> {
        if std::mem::take(&mut self.is_at_value) {
            return Some(());
        }
        self.cursor.text(field.label)
    }
}

impl FieldSource<'static> for PrintedFields<'_> {
    #[inline(always)]
    fn comm<T>(
        mut self,
        field: &'static TracepointField,
        next: &'static TracepointField,
        rest: impl Fn(Self) -> Option<T>,
    ) -> Option<(Comm, T)> {
        self.label(field)?;
        self.cursor.comm_before(next.label, |cursor| rest(PrintedFields { cursor, is_at_value: true }))
    }

    #[inline(always)]
    fn pid(&mut self, field: &'static TracepointField) -> Option<Pid> {
        self.label(field)?;
        self.cursor.pid()
    }

    #[inline(always)]
    fn prio(&mut self, field: &'static TracepointField) -> Option<Prio> {
        self.label(field)?;
        self.cursor.prio()
    }

    #[inline(always)]
    fn cpu(&mut self, field: &'static TracepointField) -> Option<Cpu> {
        if field.form == FieldForm::TargetCpu && self.label(field).is_none() {
            success(&mut self.cursor)?;
            self.label(field)?;
        } else if field.form != FieldForm::TargetCpu {
            self.label(field)?;
        }
        self.cursor.cpu()
    }

    #[inline(always)]
    fn state(&mut self, field: &'static TracepointField) -> Option<TaskState> {
        self.label(field)?;
        TaskState::parse(self.cursor.word()?)
    }

    #[inline(always)]
    fn nanoseconds(&mut self, field: &'static TracepointField) -> Option<Ns> {
        self.label(field)?;
        self.cursor.nanoseconds()
    }

    #[inline(always)]
    fn unsigned(&mut self, field: &'static TracepointField) -> Option<u64> {
        self.label(field)?;
        self.cursor.unsigned()
    }

    #[inline(always)]
    fn signed(&mut self, field: &'static TracepointField) -> Option<i64> {
        self.label(field)?;
        self.cursor.signed()
    }

    #[inline(always)]
    fn count(&mut self, field: &'static TracepointField) -> Option<u32> {
        self.label(field)?;
        u32::try_from(self.cursor.unsigned()?).ok()
    }

    fn text(&mut self, _: &'static TracepointField) -> Option<&'static str> {
        None
    }

    #[inline(always)]
    fn flag(&mut self, field: &'static TracepointField) -> Option<Option<bool>> {
        if self.label(field).is_none() {
            return Some(None);
        }
        match self.cursor.word()? {
            b"true" | b"1" => Some(Some(true)),
            b"false" | b"0" => Some(Some(false)),
            _ => None,
        }
    }

    #[inline(always)]
    fn nanoseconds_until(&mut self, field: &'static TracepointField) -> Option<Option<u64>> {
        match self.label(field) {
            Some(()) => Some(Some(self.cursor.nanoseconds()?.0)),
            None => Some(None),
        }
    }

    /// Some patched kernels print the weight of an entity that is placed behind all that the event carries.
    #[inline(always)]
    fn end(&self, tracepoint: Tracepoint) -> Option<()> {
        let mut cursor = self.cursor;
        if tracepoint == Tracepoint::SchedPlace && cursor.literal(b" weight=").is_some() {
            cursor.unsigned()?;
        }
        cursor.end()
    }
}

/// Passes ` success=1`, which kernels before v4.3 print, or what trace-cmd prints where that field is gone; `None` when it
/// says that nobody was woken.
pub(super) fn success(cursor: &mut LineCursor<'_>) -> Option<()> {
    let mut ahead = *cursor;
    ahead.blanks();
    let _ = ahead.literal(b"success=");
    match ahead.signed() {
        Some(0) => return None,
        Some(_) => *cursor = ahead,
        None if ahead.literal(b"<CANT FIND FIELD success>").is_some() => *cursor = ahead,
        None => {}
    }
    Some(())
}
