//! `CompactSched`: switches and wakings of a bundle as columns.
//!
//! A column is read piece by piece, whatever its length: some recorders put all of a CPU into one bundle.
//! Must not know: what came before the bundle.

use std::io;

use fairlab_event::{Comm, Cpu, Pid, Prio};

use super::pieces::{StoreRange, StoreWalk};
use super::wire::{Wire, varint};
use crate::store::Store;

/// `CompactSched`'s fields.
const SWITCH_TIMESTAMP: u64 = 1;
const SWITCH_PREV_STATE: u64 = 2;
const SWITCH_NEXT_PID: u64 = 3;
const SWITCH_NEXT_PRIO: u64 = 4;
const INTERN_TABLE: u64 = 5;
const SWITCH_NEXT_COMM: u64 = 6;
const WAKING_TIMESTAMP: u64 = 7;
const WAKING_PID: u64 = 8;
const WAKING_TARGET_CPU: u64 = 9;
const WAKING_PRIO: u64 = 10;
const WAKING_COMM: u64 = 11;
const WAKING_FLAGS: u64 = 12;
const FIELDS: usize = 13;

/// More names than tasks can have in a bundle.
const NAMES_MAX: usize = 1 << 20;
/// Longer columns are read piece by piece.
const WHOLE_MAX: u64 = 1 << 16;
/// The longest name that is looked at.
const NAME_BYTES: u64 = 16;

/// A switch to a task; who left it the switch before tells.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CompactSwitch {
    pub(super) time: u64,
    pub(super) prev_state: u64,
    pub(super) next_pid: Pid,
    pub(super) next_prio: Prio,
    pub(super) next_comm: Comm,
}

/// A waking.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CompactWaking {
    pub(super) time: u64,
    pub(super) pid: Pid,
    pub(super) prio: Prio,
    pub(super) comm: Comm,
    pub(super) target_cpu: Cpu,
    pub(super) flags: Option<u8>,
}

/// The columns of one bundle.
#[derive(Debug, Default)]
pub(super) struct CompactBundle {
    /// All of them, where they are not long.
    whole: Option<Store>,
    names: Vec<Comm>,
    columns: [CompactColumn; FIELDS],
    switch_time: u64,
    waking_time: u64,
    /// Whether columns ended before others, or hold no numbers.
    pub(super) is_broken: bool,
}

impl CompactBundle {
    /// The columns that stand in `range` of `store`.
    pub(super) fn of(store: &Store, range: StoreRange) -> io::Result<CompactBundle> {
        let length = range.end - range.start;
        let whole = (length <= WHOLE_MAX).then(|| store.read_section(range.start, length)).transpose()?;
        let whole = whole.map(Store::Memory);
        let mut compact = match &whole {
            Some(whole) => CompactBundle::within(whole, 0, length)?,
            None => CompactBundle::within(store, range.start, range.end)?,
        };
        compact.whole = whole;
        Ok(compact)
    }

    fn within(store: &Store, start: u64, end: u64) -> io::Result<CompactBundle> {
        let mut compact = CompactBundle::default();
        let mut walk = StoreWalk::new(store, start, end);
        while walk.at < walk.end {
            let Some((tag, (start, end))) = walk.field()? else {
                compact.is_broken = true;
                break;
            };
            match (tag.field, tag.wire) {
                (INTERN_TABLE, Wire::Bytes) if compact.names.len() < NAMES_MAX => {
                    let name = store.read_section(start, (end - start).min(NAME_BYTES))?;
                    compact.names.push(Comm::new(&name));
                }
                (_, Wire::Bytes) => {
                    if let Some(column) = compact.columns.get_mut(tag.field as usize) {
                        column.pieces.push((start, end));
                    }
                }
                // Numbers that are not packed: no recorder writes them so.
                _ => compact.is_broken = true,
            }
        }
        for column in &mut compact.columns {
            column.pieces.reverse();
        }
        Ok(compact)
    }

    #[inline]
    fn next(&mut self, store: &Store, field: u64) -> io::Result<Option<u64>> {
        match self.columns.get_mut(field as usize) {
            Some(column) => column.next(self.whole.as_ref().unwrap_or(store)),
            None => Ok(None),
        }
    }

    /// The next switch.
    pub(super) fn switch(&mut self, store: &Store) -> io::Result<Option<CompactSwitch>> {
        let Some(delta) = self.next(store, SWITCH_TIMESTAMP)? else { return Ok(None) };
        self.switch_time = self.switch_time.wrapping_add(delta);
        let mut values = [0; 4];
        let fields = [SWITCH_PREV_STATE, SWITCH_NEXT_PID, SWITCH_NEXT_PRIO, SWITCH_NEXT_COMM];
        for (value, field) in values.iter_mut().zip(fields) {
            let Some(found) = self.next(store, field)? else { return Ok(self.ends_early()) };
            *value = found;
        }
        let [prev_state, pid, prio, comm] = values;
        let Some(&next_comm) = self.names.get(comm as usize) else { return Ok(self.ends_early()) };
        Ok(Some(CompactSwitch {
            time: self.switch_time,
            prev_state,
            next_pid: Pid(pid as i32),
            next_prio: Prio(prio as i32),
            next_comm,
        }))
    }

    /// The next waking.
    pub(super) fn waking(&mut self, store: &Store) -> io::Result<Option<CompactWaking>> {
        let Some(delta) = self.next(store, WAKING_TIMESTAMP)? else { return Ok(None) };
        self.waking_time = self.waking_time.wrapping_add(delta);
        let mut values = [0; 4];
        for (value, field) in values.iter_mut().zip([WAKING_PID, WAKING_TARGET_CPU, WAKING_PRIO, WAKING_COMM])
        {
            let Some(found) = self.next(store, field)? else { return Ok(self.ends_early()) };
            *value = found;
        }
        let flags = self.next(store, WAKING_FLAGS)?.map(|flags| flags as u8);
        let [pid, target_cpu, prio, comm] = values;
        let Some(&comm) = self.names.get(comm as usize) else { return Ok(self.ends_early()) };
        Ok(Some(CompactWaking {
            time: self.waking_time,
            pid: Pid(pid as i32),
            prio: Prio(prio as i32),
            comm,
            target_cpu: Cpu(target_cpu as u32),
            flags,
        }))
    }

    fn ends_early<T>(&mut self) -> Option<T> {
        self.is_broken = true;
        None
    }
}

/// Numbers of seven bits a byte, in pieces of a store, the last piece first.
#[derive(Debug, Default)]
struct CompactColumn {
    pieces: Vec<(u64, u64)>,
    buffer: Vec<u8>,
    at: usize,
}

/// So much of a column is read at a time.
const COLUMN_BYTES: u64 = 1 << 12;
/// The longest number.
const NUMBER_BYTES: usize = 10;

impl CompactColumn {
    #[inline]
    fn next(&mut self, store: &Store) -> io::Result<Option<u64>> {
        if self.buffer.len() - self.at < NUMBER_BYTES && !self.pieces.is_empty() {
            self.fill(store)?;
        }
        let mut rest = &self.buffer[self.at..];
        let number = varint(&mut rest);
        self.at = self.buffer.len() - rest.len();
        Ok(number)
    }

    fn fill(&mut self, store: &Store) -> io::Result<()> {
        self.buffer.drain(..self.at);
        self.at = 0;
        while let Some((start, end)) = self.pieces.last_mut()
            && self.buffer.len() < NUMBER_BYTES
        {
            let (count, kept) = (COLUMN_BYTES.min(*end - *start), self.buffer.len());
            self.buffer.resize(kept + count as usize, 0);
            let filled = store.read_at(&mut self.buffer[kept..], *start)?;
            self.buffer.truncate(kept + filled);
            *start += count;
            if *start >= *end {
                self.pieces.pop();
            }
        }
        Ok(())
    }
}
